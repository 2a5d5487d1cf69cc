#!/usr/bin/env python3
"""Runs the libFuzzer programs of a build (preset fuzz) from the inputs that were kept.

    tests/bytes/libfuzzer.py BUILD [--seconds N] [--keep] [TARGET...]

TARGET: npy, safetensors, c_abi; all of them, where there is none. --seconds: of each (600). An input that breaks something is
printed in hexadecimal digits: a line for tests/bytes/TARGET.txt, once it is mended; the status is then 1. --keep writes
TARGET.txt again: a small set of inputs that reaches all that was reached (-merge=1).
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("npy", "safetensors", "c_abi")
LONGEST = {"npy": 512, "safetensors": 512, "c_abi": 384}  # inputs, in bytes
# Files are written to memory.
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", **({"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}),
                   ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1")


def unpack(path, directory):
    directory.mkdir()
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else []):
        (directory / f"{number:05}").write_bytes(bytes.fromhex(line))


def pack(directory, path):
    inputs = sorted((file.read_bytes() for file in directory.iterdir()), key=lambda b: (len(b), b))
    path.write_text("".join(b.hex() + "\n" for b in inputs if b))
    return len(inputs)


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=ENVIRONMENT)


def fuzz(build, target, seconds, keep):
    kept = HERE / f"{target}.txt"
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        inputs, fewer, found = directory / "inputs", directory / "fewer", directory / "found"
        unpack(kept, inputs)
        found.mkdir()
        fewer.mkdir()
        program = [build / "tests/bytes" / f"repdl_fuzz_{target}", f"-max_len={LONGEST[target]}", "-timeout=30"]
        done = run([*program, f"-max_total_time={seconds}", f"-artifact_prefix={found}/", "-print_final_stats=1", inputs])
        executions = re.search(r"number_of_executed_units: *(\d+)", done.stdout)
        covered = re.findall(r"cov: (\d+)", done.stdout)
        broken = list(found.iterdir())
        if done.returncode != 0 or broken:
            print(done.stdout[-8000:])
            for file in broken:
                print(f"{target}: {file.name}: {file.read_bytes().hex()}")
            print(f"{target}: FAILED, status {done.returncode}")
            return False
        words = f"{target}: {executions[1]} executions in {seconds} s, {covered[-1]} edges, nothing found"
        if keep:
            run([*program, "-merge=1", "-use_counters=0", fewer, inputs])  # edges, not how often
            words += f"; kept {pack(fewer, kept)} inputs, {kept.stat().st_size} bytes"
        print(words, flush=True)
        return True


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("target", nargs="*", metavar="TARGET")
    args = parser.parse_intermixed_args()
    if unknown := set(args.target) - set(TARGETS):
        parser.error(f"expected targets among {', '.join(TARGETS)}, got {', '.join(sorted(unknown))}")
    sys.exit(not all([fuzz(args.build.resolve(), target, args.seconds, args.keep) for target in args.target or TARGETS]))


if __name__ == "__main__":
    main()
