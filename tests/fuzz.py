#!/usr/bin/env python3
"""Runs several processes of `repdl fuzz` side by side, each with a seed of its own, and adds up what they did.

    tests/fuzz.py REPDL [--processes N] [--seed S] [--seconds N | --count N] [--under 'COMMAND...'] [OPTION...]

Seeds are S, S + 1, ...; S is random when absent. --count is of calls in all processes together. --under runs them under
another program, such as compute-sanitizer. Further options go to `repdl fuzz`. Prints the reports of processes that
found something (status 1), else the table of operation x rank x layout of all processes together, what was never hit,
and how many calls there were.
"""
import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("repdl")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 40))
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--count", type=int)
    parser.add_argument("--under", default="")
    args, options = parser.parse_known_args()

    start = time.monotonic()
    limit = ["--count", str(-(-args.count // args.processes))] if args.count else ["--seconds", str(args.seconds)]
    commands = [[*shlex.split(args.under), args.repdl, "fuzz", *limit, "--seed", str(args.seed + i), *options]
                for i in range(args.processes)]
    # Threads that wait leave their cores to the other processes.
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    processes = [subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) for c in commands]
    outputs = [p.communicate()[0] for p in processes]
    took = time.monotonic() - start

    failed = 0
    for p, command, out in zip(processes, commands, outputs):
        if p.returncode != 0:
            failed += 1
            print(f"FAILED with status {p.returncode}: {' '.join(command)}\n{out}")
    totals = [re.search(r"^fuzz: seed \d+, (\d+) calls in .*, (\d+) with a GPU as subject, (\d+) undecided, (\d+) elements compared, "
                        r"(\d+) faulty calls refused$",
                        out, re.M) for out in outputs]
    if not all(totals):
        sys.exit("a process ended without its last line")
    calls, on_gpu, undecided, elements, refused = (sum(int(t.group(i)) for t in totals) for i in (1, 2, 3, 4, 5))
    if calls >= 1000 and 10 * refused < calls:  # every fourth call is made with a fault, if it can have the one that is drawn
        sys.exit(f"fuzz: {refused} faulty calls beside {calls}: expected a tenth or more")

    if not failed:
        tables = [[line.split() for line in out.splitlines() if re.match(r"\w+ +\d( +(\d+|-))+$", line)] for out in outputs]
        header = next(line for line in outputs[0].splitlines() if line.startswith("operation "))
        layouts = re.sub(r"\(.*", "", header).replace("size 1", "size_1").split()[2:]
        print(header)
        never, hit, possible = [], 0, 0
        for rows in zip(*tables):
            assert all(row[:2] == rows[0][:2] for row in rows)
            cells = ["-" if all(c == "-" for c in column) else sum(int(c) for c in column if c != "-")
                     for column in zip(*(row[2:] for row in rows))]
            # With a GPU two numbers per layout, the GPU's first; a lone "-" stands for an impossible layout.
            pairs, rest = [], list(cells)
            for _ in layouts:
                two = on_gpu > 0 and rest[0] != "-"
                pairs.append(rest[:2] if two else rest[:1])
                del rest[:2 if two else 1]
            print(f"{rows[0][0]:<22} {rows[0][1]:>4} " + " ".join(f"{' '.join(f'{n:>6}' for n in p):>13}" for p in pairs))
            counted = [(layout, p[0]) for layout, p in zip(layouts, pairs) if p[0] != "-"]
            possible += len(counted)
            hit += sum(n > 0 for _, n in counted)
            missing = [layout for layout, n in counted if n == 0]
            if missing:
                never.append(f"never: {rows[0][0]}, rank {rows[0][1]}: {', '.join(missing)}")
        print("\n".join(never))
        print(f"{hit} of {possible} combinations of operation, rank and layout hit{' on a GPU' if on_gpu else ''}")
    print(f"fuzz: {args.processes} processes, seeds {args.seed} to {args.seed + args.processes - 1}, {calls} calls in {took:.1f} s "
          f"({calls / took:.0f}/s), {on_gpu} with a GPU as subject, {undecided} undecided, {elements} elements compared, "
          f"{refused} faulty calls refused, {failed} failed")
    sys.exit(failed != 0)


main()
