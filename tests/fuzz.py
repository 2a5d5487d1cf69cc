#!/usr/bin/env python3
"""Runs `repdl fuzz` in several processes side by side, each with a seed of its own, and adds up what they report.

    tests/fuzz.py REPDL [--processes N] [--seconds S | --count CALLS] [--seed FIRST] [--op OP] [--prefix 'COMMAND ...']

--count is for all processes together. A combination of operation, rank and layout counts as never hit when no process hit
it. --prefix runs the program under another one, such as compute-sanitizer. Exit status 1: a process failed.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("repdl")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op")
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    limit = ["--count", str(-(-args.count // args.processes))] if args.count else ["--seconds", str(args.seconds or 10)]

    def one(seed):
        command = [*shlex.split(args.prefix), args.repdl, "fuzz", "--seed", str(seed), *limit]
        return subprocess.run(command + (["--op", args.op] if args.op else []), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.processes) as pool:
        runs = list(pool.map(one, range(args.seed, args.seed + args.processes)))
    seconds = time.monotonic() - start
    totals, combinations, never = [0] * 4, 0, None
    for run in runs:
        found = re.search(r"^fuzz: seed \d+, (\d+) calls .*?(\d+) with a GPU as subject, (\d+) undecided, (\d+) elements",
                          run.stdout, re.M)
        for i in range(4):
            totals[i] += int(found.group(i + 1)) if found else 0
        table = re.search(r"^\d+ of (\d+) combinations", run.stdout, re.M)
        combinations = max(combinations, int(table.group(1)) if table else 0)
        missed = {f"{where}: {kind}" for where, kinds in re.findall(r"^never: (.*): (.*)$", run.stdout, re.M)
                  for kind in kinds.split(", ")}
        if table:
            never = missed if never is None else never & missed
        if run.returncode != 0:
            print("\n".join(run.stdout.splitlines()[-40:]))
    for line in sorted(never or ()):
        print(f"never: {line}")
    failed = sum(run.returncode != 0 for run in runs)
    print(f"fuzz: {args.processes} processes, seeds {args.seed} to {args.seed + args.processes - 1}, {totals[0]} calls in "
          f"{seconds:.0f} s, {totals[1]} with a GPU as subject, {totals[2]} undecided, {totals[3]} elements compared; "
          f"{combinations - len(never or ())} of {combinations} combinations of operation, rank and layout hit; "
          f"{failed} processes failed")
    sys.exit(failed != 0)


main()
