#!/usr/bin/env python3
"""Runs the cases of a doctest program, each in a process of its own, several at once.

    tests/in_parallel.py [--jobs N] PROGRAM [FILTER...]

FILTER: doctest's options that choose cases (--test-case, --test-case-exclude, ...). Prints the whole output of a case that
fails, the slowest cases, and how many passed. A case counts as passed when its process ends with status 0, reports the
duration of this case and of no other, and made assertions; or as skipped when it says "skipped: WHY" and made none.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("program")
    args, filters = parser.parse_known_args()

    listed = subprocess.run([args.program, "--list-test-cases", "--no-colors", *filters], capture_output=True, text=True)
    names = [line for line in listed.stdout.splitlines() if line and not line.startswith(("[doctest]", "=====", "-----"))]
    counted = re.search(r"unskipped test cases passing the current filters: (\d+)", listed.stdout)
    if listed.returncode != 0 or counted is None or int(counted.group(1)) != len(names) or not names:
        sys.exit(f"{args.program}: no list of test cases\n{listed.stdout[-2000:]}{listed.stderr[-2000:]}")

    # Threads that wait leave their cores to the other processes.
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")

    def run(number):
        start = time.monotonic()
        command = [args.program, "--no-colors", "--duration", f"--first={number}", f"--last={number}", *filters]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=environment)
        ran = re.findall(r"^[0-9.]+ s: (.*)$", done.stdout, re.M)
        assertions = re.search(r"assertions: +(\d+)", done.stdout)
        n = int(assertions.group(1)) if assertions else 0
        skipped = n == 0 and "MESSAGE: skipped: " in done.stdout
        passed = done.returncode == 0 and ran == [names[number - 1]] and (n > 0 or skipped)
        return passed, skipped, n, time.monotonic() - start, done

    failed, skips, assertions, times = [], 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(run, i + 1): name for i, name in enumerate(names)}
        for future in concurrent.futures.as_completed(runs):
            passed, skipped, n, seconds, done = future.result()
            skips += passed and skipped
            name = runs[future]
            assertions += n
            times.append((seconds, name))
            if not passed:
                failed.append(name)
                print(f"FAILED: {name}: status {done.returncode}\n{done.stdout}", flush=True)
    for seconds, name in sorted(times, reverse=True)[:5]:
        print(f"{seconds:7.1f} s  {name}")
    for name in failed:
        print(f"failed: {name}")
    print(f"test cases: {len(names)} | {len(names) - len(failed) - skips} passed | {len(failed)} failed | {skips} skipped; "
          f"assertions: {assertions}")
    sys.exit(bool(failed))


main()
