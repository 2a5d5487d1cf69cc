#!/usr/bin/env python3
"""Sweeps of many tuples of every operation of several operands or with options, and a record of them.

    tools/record_sweeps.py REPDL [--count N] [--out FILE] [OP...]

Runs `REPDL sweep OP --compare-only --count N --seed 3` (N: 100,000,000 when absent) for each operation that arithmetic of 64 bits
decides (reference/nearby.cpp); MPFR computes what it does not decide. FILE (docs/sweeps.md when absent) keeps the lines of operations
that were not run now. Exit status 1 when a result was wrong.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

head = """# Sweeps: results compared with the independent reference

Written by tools/record_sweeps.py. Operands of f16, bf16 and f32 in the classes of reference/samples.hpp (every exponent, special values,
small integers, ties, neighbours of borders), options drawn with them. What glibc's functions of long double, with a bound of their
error, decide is not computed with MPFR (reference/nearby.cpp); the rest is, ties among it. Neither shares code with the library.

| operation | tuples | decided in 64 bits | mismatches | seconds | date | on | command |
|---|---|---|---|---|---|---|---|
"""


def operations(repdl):
    text = subprocess.run([repdl, "info", "--operations"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def sweep(repdl, op, count):
    command = [repdl, "sweep", op, "--compare-only", "--count", str(count), "--seed", "3", "--threads", "1", "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(run.stdout.splitlines()[0])
    except (IndexError, ValueError):
        sys.exit(f"record_sweeps: {' '.join(command)}: {run.stderr.strip() or run.stdout.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repdl", type=pathlib.Path)
    parser.add_argument("ops", nargs="*", metavar="OP")
    parser.add_argument("--count", type=int, default=100_000_000)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/sweeps.md"))
    args = parser.parse_args()
    repdl = str(args.repdl)

    lines = {}
    if args.out.exists():
        for line in args.out.read_text().splitlines():
            if match := re.match(r"\| (\w+) \| \d", line):
                lines[match.group(1)] = line
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    wrong = []
    order = operations(repdl)

    for op in args.ops or order:
        if not args.ops and sweep(repdl, op, 20_000)["in_64_bits"] == 0:
            continue
        r = sweep(repdl, op, args.count)
        lines[op] = (f"| {op} | {r['inputs']} | {r['in_64_bits']} | {r['mismatches']} | {r['seconds']:.0f} | "
                     f"{datetime.date.today()} | {cpu.group(1) if cpu else 'unknown CPU'}, {r['isa']} | "
                     f"`repdl sweep {op} --compare-only --count {args.count} --seed 3` |")
        print(f"{op}: {r['inputs']} tuples, {r['in_64_bits']} decided in 64 bits, {r['mismatches']} mismatches, "
              f"{r['seconds']:.0f} s", flush=True)
        if r["mismatches"]:
            wrong.append(op)
            print(r["first_mismatch"])
        args.out.write_text(head + "".join(lines[o] + "\n" for o in order if o in lines))
    return 1 if wrong else 0


sys.exit(main())
