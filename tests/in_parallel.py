#!/usr/bin/env python3
"""Runs the cases of a doctest program, each in a process of its own, several at once.

    tests/in_parallel.py [--jobs N] [--budgets FILE] PROGRAM [FILTER...]

FILTER: doctest's options that choose cases (--test-suite, --test-case-exclude, ...). Prints each case that ends, the whole
output of one that fails, the slowest cases, and how many passed; with --budgets what each family, a folder of sources, took of
its core-seconds (tests/budgets.txt); a folder that no line of FILE names is an error. A case counts as passed when its process ends
with status 0, reports the duration of this case and of no other, and made assertions; or as skipped when it says
"skipped: WHY" and made none.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree


def read_budgets(path):
    """{family: core-seconds} of a file of budgets."""
    budgets = {}
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        family, seconds = line.split()
        budgets[family] = float(seconds)
    return budgets


def families_of(program, filters, path):
    """(budgets, the family of each test case in the order of its number)."""
    budgets = read_budgets(path)
    listed = subprocess.run([program, "--list-test-cases", "--reporters=xml", *filters], capture_output=True, text=True)
    cases = [c for c in xml.etree.ElementTree.fromstring(listed.stdout).iter("TestCase") if c.get("skipped") != "true"]
    families = [pathlib.Path(c.get("filename")).parent.name for c in cases]
    if missing := set(families) - set(budgets):
        sys.exit(f"{path}: expected a line for each folder of tests, found none for {', '.join(sorted(missing))}")
    return budgets, families


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--budgets", type=pathlib.Path)
    parser.add_argument("program")
    args, filters = parser.parse_known_args()

    listed = subprocess.run([args.program, "--list-test-cases", "--no-colors", *filters], capture_output=True, text=True)
    names = [line for line in listed.stdout.splitlines() if line and not line.startswith(("[doctest]", "=====", "-----"))]
    counted = re.search(r"unskipped test cases passing the current filters: (\d+)", listed.stdout)
    if listed.returncode != 0 or counted is None or int(counted.group(1)) != len(names) or not names:
        sys.exit(f"{args.program}: no list of test cases\n{listed.stdout[-2000:]}{listed.stderr[-2000:]}")

    budgets, families = families_of(args.program, filters, args.budgets) if args.budgets else ({}, [""] * len(names))
    if len(families) != len(names):
        sys.exit(f"{args.program}: {len(names)} test cases, of {len(families)} the source is known")

    # Threads that wait leave their cores to the other processes.
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")

    def run(number):
        command = [args.program, "--no-colors", "--duration", f"--first={number}", f"--last={number}", *filters]
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            done = subprocess.CompletedProcess(command, child.returncode, output.read())
        ran = re.findall(r"^[0-9.]+ s: (.*)$", done.stdout, re.M)
        assertions = re.search(r"assertions: +(\d+)", done.stdout)
        n = int(assertions.group(1)) if assertions else 0
        skipped = n == 0 and "MESSAGE: skipped: " in done.stdout
        passed = done.returncode == 0 and ran == [names[number - 1]] and (n > 0 or skipped)
        return passed, skipped, n, usage.ru_utime + usage.ru_stime, done

    failed, skips, assertions, times = [], 0, 0, []
    spent = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(run, i + 1): i for i in range(len(names))}
        for future in concurrent.futures.as_completed(runs):
            passed, skipped, n, seconds, done = future.result()
            skips += passed and skipped
            name = names[runs[future]]
            print(f"[{len(times) + 1}/{len(names)}] {name}", flush=True)
            spent[families[runs[future]]] += seconds
            assertions += n
            times.append((seconds, name))
            if not passed:
                failed.append(name)
                print(f"FAILED: {name}: status {done.returncode}\n{done.stdout}", flush=True)
    for seconds, name in sorted(times, reverse=True)[:5]:
        print(f"{seconds:7.1f} core-seconds  {name}")
    for family, budget in budgets.items():
        print(f"{spent[family]:7.1f} of {budget:3.0f} core-seconds  {family}{'  OVER ITS BUDGET' if spent[family] > budget else ''}")
    for name in failed:
        print(f"failed: {name}")
    print(f"test cases: {len(names)} | {len(names) - len(failed) - skips} passed | {len(failed)} failed | {skips} skipped; "
          f"assertions: {assertions}; {sum(t for t, _ in times):.0f} core-seconds")
    sys.exit(bool(failed))


main()
