#!/usr/bin/env python3
"""Certificates: which build of which body was proved on every input, when and where.

    tools/certificates.py record REPDL [OP...]   runs `REPDL verify OP` for each operation that is proved by enumeration
                                                 and notes the run in docs/certificates/OP.txt
    tools/certificates.py check                  fails when a body has changed since its certificate, or when a
                                                 certificate lacks an instruction set
    tools/certificates.py unproved COMPILER      prints the operations whose proof is the enumeration of all inputs and
                                                 that no certificate proves for this compiler ("g++ 12.2.0") on every
                                                 instruction set of x86-64

A certificate names the source it is about by a SHA-256 over the body's header and everything of librepdl that it
includes, comments and white space removed. A changed body or constant makes it stale; `record` then starts it afresh.
`repdl verify OP` runs all 2^32 inputs on every instruction set of the CPU, and on the GPU if there is one, and compares
SHA-256 digests of the results with those the MPFR/GMP reference wrote (docs/digests).
"""
import argparse
import datetime
import hashlib
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
folder = root / "docs/certificates"
data_only = {"librepdl/ops/registry.hpp", "librepdl/ops/structured.hpp"}  # no arithmetic
required = {"baseline", "avx2", "avx512", "cuda"}
inputs_per_chunk = 2**24


def operations():
    """Every operation with committed digests of all inputs."""
    return sorted({p.name.split(".")[0] for p in (root / "docs/digests").glob("*.f32*.txt")})


def body_header(op):
    pattern = "struct convert_body" if op == "convert" else f"struct body<ops::{op}>"
    for path in sorted((root / "librepdl/ops").glob("*.hpp")):
        if pattern in path.read_text():
            return path.relative_to(root).as_posix()
    sys.exit(f"certificates: no header in librepdl/ops has '{pattern}'")


def sources(op):
    """The body's header and what it includes of librepdl, in a fixed order."""
    found, todo = [], [body_header(op)]
    while todo:
        name = todo.pop()
        if name in found or name in data_only:
            continue
        found.append(name)
        todo += re.findall(r'^#include "(librepdl/(?:num|ops)/[^"]+)"', (root / name).read_text(), re.M)
    return sorted(found)


def source_hash(op):
    h = hashlib.sha256()
    for name in sources(op):
        code = re.sub(r"//[^\n]*", "", (root / name).read_text())
        h.update(name.encode() + b"\0" + re.sub(r"\s+", " ", code).strip().encode() + b"\0")
    return h.hexdigest()


def digest_files(op):
    return sorted((root / "docs/digests").glob(f"{op}.f32*.txt"))


def head(op):
    lines = [f"operation  {op}",
             "claim      every one of the 2^32 binary32 inputs gives the correctly rounded result",
             f"source     sha256 {source_hash(op)} of " + " ".join(sources(op))]
    for path in digest_files(op):
        lines.append(f"digests    sha256 {hashlib.sha256(path.read_bytes()).hexdigest()} of {path.relative_to(root)}")
    return lines


def command_output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def info_of(repdl):
    info = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in command_output(repdl, "info").splitlines()
                if re.search(r"\s{2,}", line))
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return info, cpu.group(1) if cpu else "unknown CPU"


def engines_of(info):
    found = [key.split()[1] for key, value in info.items() if key.startswith("isa ") and value.startswith("yes")]
    return found + (["cuda"] if "cuda:0" in info else [])


def record(repdl, ops):
    info, cpu = info_of(repdl)
    engines = engines_of(info)
    where = cpu + (f", {info['cuda:0']}" if "cuda" in engines else "")
    for op in ops or operations():
        formats = len(digest_files(op))
        print(f"certificates: {op}: all inputs on {', '.join(engines)}", flush=True)
        run = subprocess.run([repdl, "verify", op], capture_output=True, text=True)
        found = re.search(r"^verified: .* (\d+) chunks of 2\^24 inputs, .* 0 mismatches", run.stdout, re.M)
        if run.returncode != 0 or not found or int(found.group(1)) != 256 * formats * len(engines):
            sys.exit(f"certificates: `repdl verify {op}` did not pass on every engine:\n{run.stdout[-2000:]}{run.stderr}")
        line = (f"run        {datetime.date.today()} | {where} | {info['compiler']} | {' '.join(engines)} | "
                f"{int(found.group(1)) * inputs_per_chunk} inputs, 0 mismatches | repdl verify {op}")
        path = folder / f"{op}.txt"
        lines = head(op)
        old = path.read_text().splitlines() if path.exists() else []
        runs = [r for r in old if r.startswith("run ")] if old[:len(lines)] == lines else []
        same = line.split("|")[1:4]
        runs = [r for r in runs if r.split("|")[1:4] != same] + [line]
        folder.mkdir(exist_ok=True)
        path.write_text("\n".join(lines + runs) + "\n")


def check():
    failures = []
    for op in operations():
        path = folder / f"{op}.txt"
        if not path.exists():
            failures.append(f"{op}: no certificate; run: tools/certificates.py record REPDL {op}")
            continue
        lines = path.read_text().splitlines()
        if lines[:len(head(op))] != head(op):
            failures.append(f"{op}: the body, its constants or its digests have changed since the certificate; run: "
                            f"tools/certificates.py record REPDL {op}")
            continue
        proved = set()
        for run in lines[len(head(op)):]:
            fields = [f.strip() for f in run.split("|")]
            count = len(fields[3].split()) * len(digest_files(op)) * 2**32
            if not fields[4].startswith(f"{count} inputs, 0 mismatches"):
                failures.append(f"{op}: a run does not cover every input: {run}")
            proved |= set(fields[3].split())
        if required - proved:
            failures.append(f"{op}: not proved on {', '.join(sorted(required - proved))}")
    for failure in failures:
        print(f"certificates: {failure}", file=sys.stderr)
    print(f"certificates: {len(operations()) - len({f.split(':')[0] for f in failures})} of {len(operations())} are good")
    return 1 if failures else 0


def enumerated():
    """The elementwise operations whose proof is enumeration."""
    rows = (root / "librepdl/ops/elementwise.def").read_text()
    names = re.findall(r"^REPDL_ELEMENTWISE\((\w+),.*\benumerate,", rows, re.M)
    return names or sys.exit("certificates: elementwise.def has no row with the proof 'enumerate'")


def unproved(compiler):
    for op in enumerated():
        path = folder / f"{op}.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        proved = set()
        if lines[:len(head(op))] == head(op):
            for run in lines[len(head(op)):]:
                fields = [f.strip() for f in run.split("|")]
                if fields[2] == compiler:
                    proved |= set(fields[3].split())
        if required - {"cuda"} - proved:
            print(op)
    return 0


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(dest="command", required=True)
recorder = commands.add_parser("record")
recorder.add_argument("repdl", metavar="REPDL", help="the repdl program")
recorder.add_argument("ops", metavar="OP", nargs="*")
commands.add_parser("check")
finder = commands.add_parser("unproved")
finder.add_argument("compiler", metavar="COMPILER")
args = parser.parse_args()
if args.command == "check":
    sys.exit(check())
sys.exit(unproved(args.compiler) if args.command == "unproved" else record(args.repdl, args.ops))
