#!/usr/bin/env python3
"""Reductions between processes, and steps of DistributedDataParallel, by PyTorch and by librepdl, by turns: medians of the rounds, in
milliseconds, on the slowest process: PyTorch's kernels and the backend's reductions; librepdl's kernels and the backend's reductions; both
librepdl's; the ratio of the last two. On any number of processes (bench/distributed_record.py: on each number, as a document):

    torchrun --nproc-per-node 2 bench/distributed.py [--device cuda] [--largest BYTES] [--rounds N] [all_reduce resnet18 gpt2 lenet shards]

    all_reduce    f32, from 1 KB to --largest: the sum, by the backend's own reduction and exactly
    resnet18      a step of ResNet-18 (K. He et al., 2016), 64 images of 32 x 32 a process, SGD
    gpt2          the same of GPT-2 (A. Radford et al., 2019; 124 million parameters), 4 x 1024 tokens a process, AdamW
    lenet         the same of LeNet-5 (Y. LeCun et al., 1998), 50 images a process
    shards        a step of LeNet-5 in 8 shards, as DistributedDataParallel with gradients added up in no_sync(), and by shards()
"""

import argparse
import contextlib
import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import librepdl.torch
from librepdl.torch.distributed import shards

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "examples" / "pytorch"), str(ROOT / "bench")]


def seconds(function, device):
    """Of one call, on the slowest process."""
    dist.barrier()
    if device.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    took = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
    with librepdl.torch.exempt():
        took = took.to(device)
        dist.all_reduce(took, dist.ReduceOp.MAX)
    return took.item()


@contextlib.contextmanager
def by_pytorch():
    """Backward passes, too, which run in threads of their own."""
    librepdl.torch.disable()
    try:
        yield
    finally:
        librepdl.torch.enable()


def compared(name, backend, exact, device, rounds, plain=None):
    """The row of a table. plain: by PyTorch alone; None: as `backend`."""
    ways = [(backend, contextlib.nullcontext), (exact, contextlib.nullcontext)] + ([(plain, by_pytorch)] if plain else [])
    times = [[] for _ in ways]
    for i in range(rounds + 2):
        for (function, context), found in zip(ways, times):
            with context():
                took = seconds(function, device)
            if i > 1:
                found.append(took)
    a, b, *more = (1000 * statistics.median(found) for found in times)
    return name, more[0] if plain else None, a, b


def all_reduce(options):
    size = options.smallest
    while size <= options.largest:
        x = torch.randn(size // 4, device=options.device)
        small = torch.zeros_like(x)

        def exact(x=x, y=small):
            y.copy_(x)
            dist.all_reduce(y)

        def plain(exact=exact):
            with librepdl.torch.exempt():
                exact()

        yield compared(f"all_reduce, {size} bytes", plain, exact, options.device, options.rounds)
        size *= 32


def by_the_backend(group, bucket):
    """A hook that reduces as PyTorch does: divided first, then added up in the backend's order."""
    with librepdl.torch.exempt():
        buffer = bucket.buffer().div_(dist.get_world_size())
        return dist.all_reduce(buffer, group=group, async_op=True).get_future().then(lambda done: done.value()[0])


def loss_of_tokens(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def loss_of_classes(model, x, y):
    return F.cross_entropy(model(x), y)


def model_of(name, device):
    """The model, a batch of one process, the loss, the optimiser."""
    with device:
        if name == "gpt2":
            from steps import GPT2

            return GPT2(50257, 1024, 768, 12, 0.0), (torch.randint(50257, (4, 1025)),), loss_of_tokens, torch.optim.AdamW
        if name == "resnet18":
            from resnet18 import ResNet18 as Model

            x = torch.randn(64, 3, 32, 32)
        else:
            from lenet import LeNet as Model

            x = torch.randn(48, 1, 32, 32)
        return Model(), (x, torch.randint(10, (len(x),))), loss_of_classes, torch.optim.SGD


def steps(name, options):
    def step_with(hook):
        torch.manual_seed(1)
        model, batch, loss_of, kind = model_of(name, options.device)
        wrapped = nn.parallel.DistributedDataParallel(model)
        if hook is not None:
            wrapped.register_comm_hook(None, hook)
        optimizer = kind(wrapped.parameters(), lr=1e-3)

        def step():
            optimizer.zero_grad()
            loss_of(wrapped, *batch).backward()
            optimizer.step()

        return step

    with by_pytorch():
        plain = step_with(None)
    yield compared(f"{name}, a step", step_with(by_the_backend), step_with(None), options.device, options.rounds, plain)


def in_shards(options):
    count = 8 if 8 % dist.get_world_size() == 0 else dist.get_world_size()

    def step_with(exact):
        torch.manual_seed(1)
        model, batch, loss_of, kind = model_of("lenet", options.device)
        wrapped = nn.parallel.DistributedDataParallel(model)
        wrapped.register_comm_hook(None, by_the_backend)  # shards() needs none
        optimizer = kind(wrapped.parameters(), lr=1e-3)

        def step():
            optimizer.zero_grad()
            if exact:
                for part in shards(batch, count, model=wrapped):
                    loss_of(wrapped, *part).backward()
            else:
                parts = list(zip(*(t.tensor_split(count // dist.get_world_size()) for t in batch)))
                for i, part in enumerate(parts):
                    with wrapped.no_sync() if i + 1 < len(parts) else contextlib.nullcontext():
                        (loss_of(wrapped, *part) / len(parts)).backward()
            optimizer.step()

        return step

    yield compared(f"lenet, a step in {count} shards", step_with(False), step_with(True), options.device, options.rounds)


def rows(what, options):
    """Of a part of the benchmark: a name, milliseconds by PyTorch (or None), by the backend's reductions, by librepdl."""
    if what == "all_reduce":
        return all_reduce(options)
    return in_shards(options) if what == "shards" else steps(what, options)


def begin(device, **more):
    """This process's device, in the group of all of them; librepdl enabled."""
    device = torch.device(device if device == "cpu" else f"cuda:{os.environ['LOCAL_RANK']}")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.backends.cudnn.allow_tf32 = False
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", **more)
    librepdl.torch.enable()
    return device


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="*", default=["all_reduce", "lenet", "shards"], help="all_reduce, resnet18, gpt2, lenet, shards")
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--smallest", type=int, default=1 << 10, help="bytes")
    p.add_argument("--largest", type=int, default=1 << 25, help="bytes")
    p.add_argument("--rounds", type=int, default=9)
    o = p.parse_args()
    unknown = set(o.what) - {"all_reduce", "resnet18", "gpt2", "lenet", "shards"}
    if unknown:
        p.error(f"expected all_reduce, resnet18, gpt2, lenet or shards, got {', '.join(sorted(unknown))}")
    o.device = begin(o.device)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} processes, {o.device.type}, PyTorch {torch.__version__}, librepdl {librepdl.__version__}, "
              f"{torch.get_num_threads()} threads each, medians of {o.rounds}")
        print(f"{'':28} {'PyTorch':>10} {'backend':>10} {'librepdl':>10} {'ratio':>7}")
    for what in o.what:
        for name, plain, a, b in rows(what, o):
            if dist.get_rank() == 0:
                print(f"{name:28} {'' if plain is None else f'{plain:.3f}':>10} {a:10.3f} {b:10.3f} {b / a:7.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
