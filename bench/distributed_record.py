#!/usr/bin/env python3
"""One training on 1, 2, 4 and 8 processes, as a document in Markdown: fingerprints, a run that is killed and goes on, and times.

    python3 bench/distributed_record.py [--device cuda] [--sizes 1 2 4 8] [--out FILE] [--minutes 9] [--quick]

Every number of processes that the machine has GPUs for (NCCL; --device cpu: gloo) trains LeNet-5, ResNet-18, a small GPT-2 and a small Llama in 8
shards: as they are, in DistributedDataParallel, sharded by FSDP2, and with layers in parts on 1, 2 and 4 processes. All of them shall have
the fingerprint that one process has on the CPU. examples/pytorch/ddp.py is killed on the largest number and goes on with smaller ones.
bench/distributed.py measures reductions of 1 MB to 1 GB and steps. What fails is told, and does not end the rest; the exit status is 1 then.
--quick: two small models, less of everything.
"""

import argparse
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

import distributed as times
import librepdl.torch
from librepdl.torch.distributed import ColumnParallel, RowParallel, ShardSampler

sys.path += [str(times.ROOT / "examples" / "pytorch")]
import ddp

SHARDS = 8
EXAMPLE = times.ROOT / "examples" / "pytorch" / "ddp.py"
#: Seconds without a result after which processes are ended.
SILENCE = 90


# ---- trainings: in each process ----


def images(o):
    from resnet18 import ResNet18

    x, y = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
    return ResNet18(width=8 if o.quick else 64), partial(torch.optim.SGD, lr=0.1, momentum=0.9), (x, y), times.loss_of_classes


def texts(model):
    pieces = torch.tensor(list((times.ROOT / "LICENSE").read_bytes())).unfold(0, 65, 8).contiguous()
    return model, partial(torch.optim.AdamW, lr=1e-3), (pieces,), times.loss_of_tokens


def gpt2(o):
    from steps import GPT2

    return texts(GPT2(256, 64, 128, 2, 0.1))


def llama(o):
    from steps import Llama

    return texts(Llama(256, 64, 2, 8, 4))


MODELS = {"lenet": ddp.lenet, "resnet18": images, "gpt2": gpt2, "llama": llama}
#: Which layers are in parts. GPT-2's queries, keys and values are one layer, so all processes compute its attention.
PLANS = {
    "gpt2": lambda: {"blocks.*.qkv": ColumnParallel(gather=True), "blocks.*.proj": ColumnParallel(gather=True), "blocks.*.up": ColumnParallel(),
                     "blocks.*.down": RowParallel(), "places": ColumnParallel(gather=True)},
    "llama": lambda: {"words": RowParallel(), "classify": ColumnParallel(gather=True),
                      **{f"blocks.*.{name}": ColumnParallel() for name in ("q", "k", "v", "gate", "up")},
                      **{f"blocks.*.{name}": RowParallel() for name in ("out", "down")}},
}


def kinds(model, size):
    """How a model is trained on so many processes."""
    parts = [f"tp{n}" for n in (1, 2, 4) if size % n == 0] if model in PLANS else []
    return ["plain", "ddp", "fsdp", *parts]


def train(o, name, kind):
    """The fingerprint of a training's weights, optimiser and last loss, on rank 0."""
    torch.manual_seed(1)
    model, optimizer_of, data, loss_of = MODELS[name](o)
    group, o.parallel = None, kind
    if kind.startswith("tp"):
        parts = int(kind[2:])
        mesh = init_device_mesh(o.device.split(":")[0], (dist.get_world_size() // parts, parts), mesh_dim_names=("data", "layers"))
        model = parallelize_module(model.to(o.device).train(), mesh["layers"], PLANS[name]())
        group = mesh["data"].get_group()
    else:
        model = model.to(o.device).train() if kind == "plain" else ddp.spread(o, model)
    optimizer = optimizer_of(model.parameters())
    for _, chosen in zip(range(o.steps), ddp.indices(ShardSampler(len(data[0]), 2 * SHARDS, SHARDS, seed=1, group=group))):
        optimizer.zero_grad()
        loss = ddp.gradients(o, model, tuple(t[chosen].to(o.device) for t in data), loss_of, SHARDS, group)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    weights, state = get_state_dict(model, optimizer, options=ddp.WHOLE)
    return librepdl.torch.fingerprint({"model": weights, "optimizer": state["state"], "loss": loss}) if dist.get_rank() == 0 else None


def measure(o, what):
    return list(times.rows(what, argparse.Namespace(device=torch.device(o.device), rounds=o.rounds, smallest=1 << 20, largest=o.largest)))


def as_rank(o):
    """The tasks of --tasks, one after the other. Rank 0 writes a line for what each gives; a rank where one raises writes its error, and ends."""
    def told(**what):
        with o.results.open("a") as file:
            file.write(json.dumps(what) + "\n")

    o.device = str(times.begin(o.device, timeout=timedelta(seconds=SILENCE)))
    o.reproducible, o.lr = True, 0.05
    for number, (task, *arguments) in enumerate(o.tasks):
        try:
            found = {"train": train, "measure": measure}[task](o, *arguments)
        except Exception as e:
            told(task=number, error=f"rank {dist.get_rank()}: {type(e).__name__}: {e}")
            os._exit(1)
        if dist.get_rank() == 0:
            told(task=number, found=found)
    dist.destroy_process_group()


# ---- what starts them ----


def say(text):
    print(f"[{time.monotonic() - BEGIN:5.0f} s] {text}", file=sys.stderr, flush=True)


def processes(size, command, deadline, heard=lambda: None):
    """The command as so many ranks: their statuses, why all were ended, and what each wrote. They are ended (status None) when one of them
    fails, when it is too late, or when nothing is heard for a while: heard() is called now and then, and gives something true for news."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        files = [(Path(folder) / str(rank)).open("w+") for rank in range(size)]
        threads = max(1, (os.cpu_count() or 1) // size)
        running = [subprocess.Popen([sys.executable, *map(str, command)], stdout=file, stderr=subprocess.STDOUT, env={
            "OMP_NUM_THREADS": str(threads), **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_NVLS_ENABLE": "0"}) for rank, file in enumerate(files)]
        try:
            last, why = time.monotonic(), ""
            while not why and any(p.poll() is None for p in running):
                time.sleep(0.1)
                last = time.monotonic() if heard() else last
                if any(p.poll() for p in running):
                    time.sleep(1)  # others may have an error to tell, too
                    break
                if time.monotonic() > min(deadline, last + SILENCE):
                    why = "ended: out of time" if time.monotonic() > deadline else f"ended: no result in {SILENCE} s"
            statuses = [p.poll() for p in running]
        finally:
            for p in running:
                p.kill()
                p.wait()
        heard()
        for file in files:
            file.seek(0)
        return statuses, why, [file.read() for file in files]


def run(o, size, device, tasks, deadline):
    """What each task gives on so many processes, or {"error": ...}. Tasks behind one that fails are begun again."""
    done = []
    while len(done) < len(tasks):
        if time.monotonic() > deadline:
            return done + [{"error": "not begun: out of time"}] * (len(tasks) - len(done))
        first = len(done)
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results"

            def heard(results=results, first=first):
                lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
                news = [line for line in lines if line["task"] == len(done) - first]
                for line in news[:1]:
                    done.append(line)
                    say(f"{size} x {device}: {' '.join(tasks[len(done) - 1])}: {line.get('error') or describe(line['found'])}")
                return news

            statuses, why, written = processes(size, [__file__, "--device", device, "--steps", o.steps, "--rounds", o.rounds, "--largest", o.largest,
                                                      *(["--quick"] if o.quick else []), "--results", results, "--tasks", json.dumps(tasks[first:])],
                                               deadline, heard)
            while heard():
                pass
        if len(done) < len(tasks) and not (done[first:] and "error" in done[-1]):
            ends = [f"rank {rank} ended with status {status}: {text.strip().splitlines()[-1:]}"
                    for rank, (status, text) in enumerate(zip(statuses, written)) if status]
            done.append({"error": why or "; ".join(ends) or "ended without a result"})
            say(f"{size} x {device}: {' '.join(tasks[len(done) - 1])}: {done[-1]['error']}")
    return done


def describe(found):
    return found[:8] if isinstance(found, str) else f"{len(found)} rows"


def resumed(o, sizes, deadline):
    """examples/pytorch/ddp.py, killed on each number of processes but the last; lines of the record, and whether all is well."""
    steps = [10 * (i + 1) + 1 for i in range(len(sizes))]
    common = [EXAMPLE, "--reproducible", "--batch", 16, "--steps", steps[-1]]
    prints, lines = [], []
    with tempfile.TemporaryDirectory() as folder:
        ways = [(1, [], "from the beginning to the end on one process, on the CPU", None)]
        for i, (size, stop) in enumerate(zip(sizes, steps)):
            parallel = ("fsdp", "ddp")[i % 2]
            more = ["--device", o.device, "--parallel", parallel, "--checkpoint", Path(folder) / "checkpoint"]
            last = i + 1 == len(sizes)
            text = f"{parallel} on {size}, " + ("to the end" if last else f"killed in step {stop}")
            ways.append((size, more if last else [*more, "--die-at", stop], text, None if last else 9))
        for size, more, text, expected in ways:
            if time.monotonic() > deadline:
                statuses, why, written = [], "not begun: out of time", [""]
            else:
                statuses, why, written = processes(size, [*common, *more], min(deadline, time.monotonic() + SILENCE))
            found = re.findall(r"fingerprint  (\w+)", written[0])
            if why or (statuses[-1] != expected if expected else any(statuses) or not found):
                why = why or f"statuses {statuses}: {written[-1].strip().splitlines()[-1:]}"
            prints += [f for f in found if not why]
            lines.append(f"- {text}: {why or (f'`{found[0][:8]}`' if found else 'as it should be')}")
            say(lines[-1][2:])
    return lines, len(prints) == 2 and len(set(prints)) == 1


# ---- the record ----


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def fingerprints(expected, found):
    """found: (model, kind, size): what run() gave."""
    sizes = sorted({size for _, _, size in found})

    def cell(model, kind, size):
        one = found.get((model, kind, size))
        if one is None:
            return ""
        if "error" in one:
            return "failed"
        return "the same" if one["found"] == expected[model].get("found") else f"**`{one['found'][:8]}`**"

    ways = dict.fromkeys((model, kind) for model, kind, _ in found)
    lines = table(["", "CPU, one process", *(f"on {size}" for size in sizes)],
                  [[f"{model}, {kind}", f"`{expected[model]['found'][:8]}`" if "found" in expected[model] else "failed",
                    *(cell(model, kind, size) for size in sizes)] for model, kind in ways])
    every = [(f"{model}, CPU", one) for model, one in expected.items()] + [(f"{m}, {k} on {size}", one) for (m, k, size), one in found.items()]
    lines += [f"- {name}: {one['error']}" for name, one in every if "error" in one] + [""] * any("error" in one for _, one in every)
    return lines, all("error" not in one for _, one in every) and all(one["found"] == expected[m]["found"] for (m, _, _), one in found.items())


def measured(found):
    """found: (what, size): what run() gave."""
    rows, alone = [], {}
    for (what, size), one in found.items():
        for name, plain, backend, ours in one.get("found", []):
            alone.setdefault(name, ours)  # on the smallest number
            speed = "" if what == "all_reduce" else f"{alone[name] / ours:.2f}"
            rows.append((name, size, "" if plain is None else f"{plain:.2f}", f"{backend:.2f}", f"{ours:.2f}", f"{ours / backend:.2f}", speed))
    rows.sort(key=lambda row: list(alone).index(row[0]))
    lines = table(["", "processes", "PyTorch", "its reductions", "librepdl", "ratio", "speed"], rows)
    return lines + [f"- {what} on {size}: {one['error']}" for (what, size), one in found.items() if "error" in one]


def record(o):
    deadline = BEGIN + 60 * o.minutes
    cuda = o.device == "cuda"
    where = "CPU, gloo"
    if cuda:
        where = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}"
    text = [f"# One training on {', '.join(map(str, o.sizes))} processes: {where}, {date.today()}", "",
            f"{platform.machine()}, {os.cpu_count()} threads, PyTorch {torch.__version__}, librepdl {librepdl.__version__}; NVLink multicast off "
            "(`NCCL_NVLS_ENABLE=0`).", "", f"    python3 bench/distributed_record.py {' '.join(sys.argv[1:])}", ""]

    def keep():
        """What there is so far."""
        if o.out:
            new = o.out.with_name(o.out.name + ".new")
            new.write_text("\n".join(text))
            new.replace(o.out)

    names = ["lenet", "llama"] if o.quick else list(MODELS)
    expected = dict(zip(names, run(o, 1, "cpu", [["train", name, "plain"] for name in names], deadline)))
    trained, timed = {}, {}
    measures = ["shards", "lenet"] if o.quick or not cuda else ["shards", "lenet", "resnet18", "gpt2"]
    for size in o.sizes:
        ways = [(name, kind) for name in names for kind in kinds(name, size)]
        trained |= zip([(*way, size) for way in ways], run(o, size, o.device, [["train", *way] for way in ways], deadline))
    lines, equal = fingerprints(expected, trained)
    text += [f"**Fingerprints** of weights, optimiser and loss after {o.steps} steps of {2 * SHARDS} samples in {SHARDS} shards; tp: layers in parts "
             "on so many processes, the others take shards.", "", *lines]
    keep()
    lines, well = resumed(o, o.sizes[::-1], deadline)
    text += ["**Killed, and gone on with another number of processes** (`examples/pytorch/ddp.py`):", "", *lines, "",
             "One fingerprint." if well else "**Not one fingerprint.**", ""]
    keep()
    for size in o.sizes:
        whats = measures + (["all_reduce"] if size > 1 else [])
        timed |= zip([(what, size) for what in whats], run(o, size, o.device, [["measure", what] for what in whats], deadline))
    lines = measured(timed)
    text += [f"**Times** in milliseconds, medians of {o.rounds}, by turns, on the slowest process: PyTorch's kernels and reductions; librepdl's "
             "kernels with the backend's reductions, and with its own; their ratio; the speed against that on the least number of processes, each "
             "with as many samples (1: no time is lost to the others).", "", *lines]
    keep()
    print("\n".join(text))
    return equal and well and all("error" not in one for one in timed.values())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    p.add_argument("--sizes", type=int, nargs="+", help="numbers of processes; left out: those of 1, 2, 4, 8 that there are GPUs or cores for")
    p.add_argument("--out", type=Path, help="is written after each part, too")
    p.add_argument("--minutes", type=float, default=9, help="what is not done by then is left out")
    p.add_argument("--steps", type=int, help="of the trainings")
    p.add_argument("--rounds", type=int, help="of the measurements")
    p.add_argument("--largest", type=int, help="bytes of the largest reduction")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tasks", type=json.loads, help=argparse.SUPPRESS)
    p.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    o = p.parse_args()
    o.steps, o.rounds = o.steps or (1 if o.quick else 3), o.rounds or (1 if o.quick else 5)
    o.largest = o.largest or (1 << 20 if o.quick else 1 << 30 if o.device == "cuda" else 1 << 25)
    if o.tasks is not None:
        return as_rank(o)
    there = torch.cuda.device_count() if o.device == "cuda" else max(2, os.cpu_count() or 1)
    o.sizes = sorted(set(o.sizes or [size for size in (1, 2, 4, 8) if size <= there]))
    if not o.sizes or not {*o.sizes} <= {1, 2, 4, 8} or (o.device == "cuda" and o.sizes[-1] > there):
        least = f", at most the {there} GPUs that are there" if o.device == "cuda" else ""
        p.error(f"--sizes: expected some of 1, 2, 4, 8{least}, got {o.sizes}")
    sys.exit(0 if record(o) else 1)


BEGIN = time.monotonic()
if __name__ == "__main__":
    main()
