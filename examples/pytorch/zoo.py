#!/usr/bin/env python3
"""Small models of all kinds, trained and served: plain PyTorch, or with --reproducible, where each has one fingerprint.

Each is made, trained for three steps (forward, backward, its optimiser, its schedule) and served in batches of several sizes; a
sample's result must not depend on its batch. The fingerprint is of weights, the optimiser's state, losses and what was served, and must
be the same in every setting: threads, oneDNN's kernels, memory format, lists of tensors in optimisers. A model that needs an operation
that librepdl lacks is listed as refused, with all such operations; one whose package is not installed as passed over.

zoo.txt beside this file has the fingerprints that were written with --write; others are reported. Exit status 1: a model has other
bits in another setting or batch, other bits than zoo.txt, or failed.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import sys
import time
import traceback
from dataclasses import asdict, dataclass

import torch

import zoo

RECORD = pathlib.Path(__file__).with_name("zoo.txt")
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "pytorch-models.md"
MARKS = "<!-- zoo:begin -->\n", "<!-- zoo:end -->\n"


@dataclass
class Outcome:
    name: str
    family: str
    parameters: int = 0
    fingerprint: str = ""  #: the first 16 digits; none where there is not one
    refused: tuple[str, ...] = ()  #: operations
    remark: str = ""  #: what is wrong, or why there is nothing
    wrong: bool = False
    seconds: float = 0.0

    @property
    def result(self):
        return "refused: " + ", ".join(self.refused) if self.refused else self.fingerprint or "-"


def operation(text):
    """The operation of a refusal, without overload, and what is refused of it: aten::x (float64), aten::y (why)."""
    name, kind, why = re.match(r"(\S+)(?: \((\w+), \w+\))?: not reproducible yet(?: \((.*?)\))?(?:; called by|$)", text).groups()
    details = [part for part in (kind if kind != "float32" else None, why) if part]
    return name.partition(".")[0] + (f" ({'; '.join(details)})" if details else "")


#: What PyTorch's own kernels of refused operations call: convolutions, Fourier transforms, gradients of sparse embeddings.
WITHIN = {"_convolution", "mkldnn_convolution", "slow_conv3d", "slow_conv3d_forward", "_fft_r2c", "_fft_c2r", "_fft_c2c", "empty"}


def essential(operations):
    """One name for what is missing together: aten::cdist, without its aten::_cdist_forward. Sparse tensors are one thing, complex numbers
    another."""
    found = {}
    for op in sorted(operations, key=lambda op: (len(op), op)):
        if "not dense" in op or re.search("sparse|coalesce", op):
            op = "sparse tensors"
        elif "(complex" in op:
            op = "complex numbers"
        name = op.removeprefix("aten::").partition(" (")[0]
        stem = name.strip("_")
        if name not in WITHIN and not any(stem == other or stem.startswith(other + "_") for other in found):
            found[stem] = op
    return tuple(sorted(found.values()))


def once(entry, options, setting):
    """One run: its fingerprint, whether it is the same in every batch, the number of parameters."""
    import librepdl.torch

    with zoo.within(setting):
        torch.manual_seed(1)
        task = entry.task()
        found, alike = zoo.run(task, options.device, setting)
        return librepdl.torch.fingerprint(found)[:16], alike, zoo.parameters(task.net)


def refusals(entry, options):
    """All operations that a run would be refused, not only the first: those that PyTorch computes where librepdl leaves them to it; and
    the number of parameters."""
    import librepdl.torch

    librepdl.torch.status()
    with librepdl.torch.reproducible(strict=False):
        *_, parameters = once(entry, options, zoo.SETTINGS["plain"])
        return essential({operation(text) for text in librepdl.torch.status()["noted"]}), parameters


def examine(entry, options):
    """The model in every setting."""
    outcome = Outcome(entry.name, entry.family)
    if entry.absent():
        outcome.remark = f"passed over: {entry.package} is not installed"
        return outcome
    began = time.monotonic()
    try:
        found = {}
        whole = True
        for name in options.settings:
            found[name], alike, outcome.parameters = once(entry, options, zoo.SETTINGS[name])
            whole &= alike
        remarks = [] if whole else ["a sample's result depends on its batch"]
        if len(set(found.values())) > 1:
            remarks.append("not one: " + ", ".join(f"{name} {f[:8]}" for name, f in found.items()))
        else:
            outcome.fingerprint = next(iter(found.values()))
        outcome.remark, outcome.wrong = "; ".join(remarks), bool(remarks) and options.reproducible
    except Exception as e:
        if options.reproducible and isinstance(e, NotImplementedError) and "not reproducible yet" in str(e):
            outcome.refused, outcome.parameters = refusals(entry, options)
        else:
            traceback.print_exc()
            outcome.wrong, outcome.remark = True, f"failed: {type(e).__name__}: {e}".splitlines()[0]
    outcome.seconds = round(time.monotonic() - began, 2)
    return outcome


# ---- the record ----


def versions():
    """Of what the bits of a model depend on: its initial weights are its package's."""
    packages = ("timm", "transformers")
    return {name: importlib.metadata.version(name) for name in packages if zoo.importlib.util.find_spec(name) is not None}


def recorded():
    """The versions, and the line of each model: name, family, parameters, fingerprint or what was refused."""
    if not RECORD.exists():
        return {}, {}
    lines = RECORD.read_text().splitlines()
    known = dict(re.findall(r"(\w+) ([\d.]+)", next(line for line in lines if line.startswith("# with "))))
    return known, {line.split()[0]: line for line in lines if line and not line.startswith("#")}


def line_of(outcome):
    return f"{outcome.name:30} {outcome.family:14} {outcome.parameters:7}  {outcome.result}"


def compare(outcome, entry, known, device):
    """Whether the model has the recorded bits, where the record is of the same version of its package. What is refused has other names on GPUs."""
    packages, lines = known
    line = lines.get(outcome.name)
    if line is None or outcome.wrong or outcome.remark:
        return
    if entry.package in packages and packages[entry.package] != versions().get(entry.package):
        outcome.remark = f"recorded with {entry.package} {packages[entry.package]}"
    elif line.split(maxsplit=3)[3] != outcome.result and not (device != "cpu" and outcome.refused and "refused: " in line):
        outcome.wrong, outcome.remark = True, f"zoo.txt has {line.split(maxsplit=3)[3]}"


def write(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def missing_operations(lines):
    """The table of what is refused, from the record: how many models need it, and how many nothing else."""
    needs = {name: line.split("refused: ")[1].split(", ") for name, line in lines.items() if "refused: " in line}
    rows = []
    for missing in {op for ops in needs.values() for op in ops}:
        alone = sorted(name for name, ops in needs.items() if ops == [missing])
        among = sorted(name for name, ops in needs.items() if missing in ops and ops != [missing])
        rows.append((-len(alone), -len(among), missing, alone, among))
    table = "".join(f"| `{op.removeprefix('aten::')}` | {', '.join(alone)} | {', '.join(among)} |\n" for _, _, op, alone, among in sorted(rows))
    return (
        f"{len(lines) - len(needs)} of {len(lines)} models run strictly. What the others lack:\n\n"
        "| operation | models that lack nothing else | models that lack more |\n|---|---|---|\n" + table
    )


def document(lines):
    """docs/pytorch-models.md with the table in its place."""
    begin, _, rest = DOCUMENT.read_text().partition(MARKS[0])
    return begin + MARKS[0] + missing_operations(lines) + MARKS[1] + rest.partition(MARKS[1])[2]


def write_record(outcomes, all_names):
    packages, lines = recorded()
    lines.update({o.name: line_of(o) for o in outcomes if o.fingerprint or o.refused})
    lines = {name: lines[name] for name in all_names if name in lines}
    packages.update(versions())
    with_ = ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
    write(
        RECORD,
        f"# Written by zoo.py --reproducible --write: model, family, parameters, fingerprint or what librepdl refuses.\n# with {with_}\n"
        + "".join(line + "\n" for line in lines.values()),
    )
    write(DOCUMENT, document(lines))


# ---- the command ----


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--reproducible", action="store_true", help="compute with librepdl: the same bits everywhere")
    p.add_argument("--only", metavar="NAMES", help="models or families, with commas between them")
    p.add_argument("--list", action="store_true", help="say which models there are, and end")
    p.add_argument("--settings", default="plain,all-others", help=f"among {', '.join(zoo.SETTINGS)}, or all; by default %(default)s")
    p.add_argument("--device", default="cpu", help="cpu, cuda")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results there, too")
    p.add_argument("--write", action="store_true", help="put the fingerprints into zoo.txt, and what is refused into docs/pytorch-models.md")
    o = p.parse_args()
    o.settings = list(zoo.SETTINGS) if o.settings == "all" else o.settings.split(",")
    for name in o.settings:
        if name not in zoo.SETTINGS:
            p.error(f"--settings: expected {', '.join(zoo.SETTINGS)} or all, got {name!r}")
    if o.write and not o.reproducible:
        p.error("--write: expected --reproducible with it: the bits of plain PyTorch are this machine's")
    if o.json is not None and not (o.json.absolute().parent.is_dir() and os.access(o.json.absolute().parent, os.W_OK)):
        p.error(f"--json: expected a file in a directory that can be written, got {o.json}")
    o.models = list(zoo.entries().values())
    if o.only is not None:
        wanted = o.only.split(",")
        known = {m.name for m in o.models} | {m.family for m in o.models}
        for name in wanted:
            if name not in known:
                p.error(f"--only: expected models or families of --list, got {name!r}")
        o.models = [m for m in o.models if m.name in wanted or m.family in wanted]
    return o


def main():
    o = arguments()
    if o.list:
        for entry in o.models:
            print(f"{entry.name:30} {entry.family:14} {entry.package or '':13} {entry.about}")
        return 0
    if o.reproducible:
        import librepdl.torch

        librepdl.torch.enable()
    known = recorded() if o.reproducible and not o.write else ({}, {})
    outcomes = []
    print(f"{'model':30} {'family':14} {'params':>7}  {'fingerprint':16} {'time/s':>6}")
    for entry in o.models:
        outcome = examine(entry, o)
        compare(outcome, entry, known, o.device)
        outcomes.append(outcome)
        remark = ("WRONG: " if outcome.wrong else "") + outcome.remark
        print(
            f"{outcome.name:30} {outcome.family:14} {outcome.parameters:7}  {outcome.result:16} {outcome.seconds:6.2f}  {remark}".rstrip(), flush=True
        )
    if o.json is not None:
        write(o.json, json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    if o.write:
        write_record(outcomes, list(zoo.entries()))
    wrong = sum(outcome.wrong for outcome in outcomes)
    print(
        f"{len(outcomes)} models: {sum(bool(x.fingerprint) for x in outcomes)} with one fingerprint, {sum(bool(x.refused) for x in outcomes)} "
        f"refused, {sum(x.remark.startswith('passed over') for x in outcomes)} passed over, {wrong} wrong"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
