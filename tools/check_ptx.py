#!/usr/bin/env python3
"""Checks that nvcc was told to keep the arithmetic as written.

    tools/check_ptx.py BUILD_DIR [--jobs N]

Every CUDA file is compiled to PTX with the options of BUILD_DIR/compile_commands.json. With -fmad=false each floating-point
mul, add and sub says .rn; without it they are bare, and ptxas may fuse them. -ftz=false, -prec-div=true and -prec-sqrt=true
leave no .ftz, .approx or .full. A canary compiled without the options must be rejected, and is accepted with them: a checker
that accepts everything would pass too.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

rules = [
    ("a mul, add or sub that may be fused", re.compile(r"^\s*(?:@!?%\w+\s+)?(?:mul|add|sub)\.(?:f32|f64|f16|bf16)(?:x2)?\s")),
    ("a multiply-add without rounding", re.compile(r"^\s*(?:@!?%\w+\s+)?mad\.(?:f32|f64)\s")),
    ("flushes subnormals", re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z]\w*(?:\.\w+)*\.ftz\b")),
    ("an approximation", re.compile(r"^\s*(?:@!?%\w+\s+)?(?:div|rcp|sqrt|rsqrt|sin|cos|ex2|lg2|tanh)(?:\.\w+)*\.(?:approx|full)\b")),
]
# What an fma of the source looks like: not a fault, but counted.
arithmetic = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:add|sub|mul|fma|div|sqrt)\.rn\.(?:f32|f64)\s")

canary = """
__global__ void canary(float* x, double* y) {
  const int i = threadIdx.x;
  x[i] = x[i] * x[i + 1] + x[i + 2];
  y[i] = y[i] * y[i + 1] + y[i + 2];
  x[i + 4] = x[i] * x[i + 3];
  y[i + 4] = y[i] + y[i + 3];
  x[i] = sqrtf(x[i]) / x[i + 3];
}
"""
options_of_bits = ["-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]


def faults(ptx):
    for number, line in enumerate(ptx.splitlines(), 1):
        for what, rule in rules:
            if rule.search(line):
                yield number, what, line.strip()


def to_ptx(nvcc, source, options, directory):
    with tempfile.NamedTemporaryFile(suffix=".ptx") as ptx:
        done = subprocess.run([nvcc, *options, "-ptx", "-arch=compute_90", str(source), "-o", ptx.name], cwd=directory,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"check_ptx: {source}\n{done.stderr[-3000:]}")
        return pathlib.Path(ptx.name).read_text()


def compile_options(command):
    """The command's options without output, dependencies, source and architecture."""
    words, kept, skip = shlex.split(command), [], 0
    for word in words[1:]:
        if skip:
            skip -= 1
        elif word in ("-o", "-MF", "-MT", "-c", "-x"):
            skip = 1
        elif word in ("-MD", "-dc") or word.endswith(".cu") or re.match(r"-?-(generate-code|gencode|arch|threads)", word):
            pass
        else:
            kept.append(word)
    return words[0], kept


def check_canary(nvcc):
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "canary.cu"
        source.write_text(canary)
        fused = {what for _, what, _ in faults(to_ptx(nvcc, source, [], directory))}
        fast = {what for _, what, _ in faults(to_ptx(nvcc, source, ["-use_fast_math"], directory))}
        clean = list(faults(to_ptx(nvcc, source, options_of_bits, directory)))
    if rules[0][0] not in fused:
        sys.exit("check_ptx: the canary compiled without -fmad=false was accepted")
    if not {rules[2][0], rules[3][0]} <= fast:
        sys.exit("check_ptx: the canary compiled with -use_fast_math was accepted")
    if clean:
        sys.exit(f"check_ptx: the canary compiled with the options was rejected: {clean[0]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    commands = [c for c in json.loads((args.build / "compile_commands.json").read_text()) if c["file"].endswith(".cu")]
    if not commands:
        sys.exit(f"check_ptx: no CUDA files in {args.build}/compile_commands.json")
    check_canary(compile_options(commands[0]["command"])[0])

    def one(command):
        nvcc, options = compile_options(command["command"])
        return to_ptx(nvcc, command["file"], options, command["directory"])

    failed = total = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for command, ptx in zip(commands, pool.map(one, commands)):
            name = pathlib.Path(command["file"]).name
            total += sum(1 for line in ptx.splitlines() if arithmetic.search(line))
            for number, what, line in faults(ptx):
                print(f"{name}: PTX line {number}: {what}: {line}")
                failed += 1
    print(f"check_ptx: {len(commands)} files, {total} correctly rounded instructions, {failed} faults; the canary is rejected")
    sys.exit(failed != 0)


main()
