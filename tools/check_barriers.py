#!/usr/bin/env python3
"""Kernels in which a register for waiting lanes is saved in memory around a call: docs/ptxas-barriers.md.

    tools/check_barriers.py FILE...

FILE: a program, library, object or cubin with machine code for GPUs (CMAKE_CUDA_ARCHITECTURES=90, not 90-virtual). Needs cuobjdump
of the CUDA toolkit. Prints each such kernel; exit status 1 if there is one, 2 if a file has no machine code.
"""
import re
import subprocess
import sys


def faults(path):
    run = subprocess.run(["cuobjdump", "-sass", path], capture_output=True, text=True)
    functions = re.split(r"^\s*Function : ", run.stdout, flags=re.M)[1:]
    if not functions:
        print(f"check_barriers: {path}: no machine code for GPUs {run.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    found = []
    for text in functions:
        # A register that lanes may wait in, read into an ordinary one: BMOV.32.CLEAR R3, B2.
        if re.search(r"\bBMOV\.32\.CLEAR R\d+, B\d+", text):
            found.append(text.split("\n", 1)[0].strip())
    return len(functions), found


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    kernels, bad = 0, []
    for path in sys.argv[1:]:
        count, found = faults(path)
        kernels += count
        bad += found
    for name in bad:
        print(f"check_barriers: {name}")
    print(f"check_barriers: {kernels} kernels, {len(bad)} that save a barrier register around a call")
    sys.exit(1 if bad else 0)


main()
