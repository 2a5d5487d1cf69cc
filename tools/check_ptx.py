#!/usr/bin/env python3
"""Checks the PTX that the build has compiled.

    tools/check_ptx.py BUILD_DIR [--jobs N]

It is read from the objects of BUILD_DIR/compile_commands.json (tools/fatbin.py), for every architecture.

Arithmetic as written: with -fmad=false each floating-point mul, add and sub says .rn; without it they are bare, and ptxas
may fuse them. -ftz=false, -prec-div=true and -prec-sqrt=true leave no .ftz, .approx or .full.

Parameters read where the source says: nvcc 13.0 and 13.1 get the places wrong in some loops that index a kernel's parameters
(docs/nvcc-parameter-loop.md). So
  - a parameter is read at constant places only (tools/ptx_flow.py), except by the kernels listed in `indexing_by_design`;
  - a walk along strided_axes (backends/cuda/core/axes.hpp) divides by each size but the last, and by no stride.

A checker that accepts everything would pass too: canaries compiled here with each fault must be rejected, and are accepted
without it.
"""
import argparse
import collections
import concurrent.futures
import gc
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import fatbin
import ptx_flow

# Of a statement: behind its predicate, at the start of a line or within the braces of an asm.
opcode = re.compile(r"(?:^|[;{}])[ \t]*(?:@!?%\w+[ \t]+)?([a-z]\w*(?:\.\w+)+)(?=[\s;])", re.M)
rules = [
    ("a mul, add or sub that may be fused", re.compile(r"(?:mul|add|sub)\.(?:f32|f64|f16|bf16)(?:x2)?")),
    ("a multiply-add without rounding", re.compile(r"mad\.(?:f32|f64)")),
    ("flushes subnormals", re.compile(r".*\.ftz\b.*")),
    ("an approximation", re.compile(r"(?:div|rcp|sqrt|rsqrt|sin|cos|ex2|lg2|tanh)\..*\b(?:approx|full)\b.*")),
]
# What an fma of the source looks like: not a fault, but counted.
arithmetic = re.compile(r"(?:add|sub|mul|fma|div|sqrt)\.rn\.(?:f32|f64)")
options_of_bits = ["-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]

indexed = "indexes its parameters by a register"
leaves = "passes the address of a parameter to where it is not followed"
wrong_divisor = "divides by what is no size of an axis"
missing_divisor = "does not divide by the size of an axis"

# Function (without repdl::cuda:: and template arguments): the parameters' numbers, and why.
settles = ((0, 1), "copies AdamW's constants word by word: a single array; and finds its tensor as step_kernel")
copies = ((0,), "copies the problem word by word to shared memory: a single array")
finds = ((0,), "finds its tensor in a list by bisection and reads that entry: an array of structures")
axes = "walks along three axes: arrays of structures, of fewer than the four that such a loop takes at once where it goes wrong"
indexing_by_design = {
    "map_list": finds,
    "settle_list": finds,
    "norm_sums": finds,
    "norm_exact_sums": finds,
    "clip_attempts": finds,
    "clip_elements": finds,
    "conv::chain_kernel": copies,
    "conv::product_kernel": copies,
    "conv::direct_kernel": copies,
    "conv::finish_kernel": copies,
    "conv::list_kernel": copies,
    "conv::finish_list_kernel": copies,
    "conv::repair_kernel": copies,
    "step_kernel": ((1,), "finds its tensor in a list by bisection and reads that entry: an array of structures"),
    "settle_kernel": settles,
    "last_kernel": settles,
    "table_kernel": ((0,), axes),
    "interpolation_kernel": ((1,), axes),
    "decide_exactly": ((0,), "reads the words of a coefficient in a loop: a single array"),
    "repdl::num::cuda::round_formula": ((0,), "reads the limbs of its balls in loops: single arrays"),
    "repdl::num::cuda::ball_of_sum": ((0,), "copies the words of a sum in a loop: a single array"),
    "repdl::num::cuda::limbs_of_sum": ((0,), "copies the words of a sum in a loop: a single array"),
    "repdl::num::cuda::subtract_square": ((1,), "copies the words of a sum in a loop: a single array"),
}

# Seeds and guards of elementwise bodies, in their shards and those of losses and rows only: nothing depends on their accuracy beyond
# what the headers say, and functions of one number are compared on all inputs (backends/cuda/map/quick.cuh, librepdl/ops/elementwise/rsqrt.hpp);
# that of rows is looked at where it is used (row_math, librepdl/ops/rows/rule.hpp).
seeds = {"rcp.approx.ftz.f32", "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f32", "lg2.approx.f32"}

arithmetic_canary = """
__global__ void canary(float* x, double* y) {
  const int i = threadIdx.x;
  x[i] = x[i] * x[i + 1] + x[i + 2];
  y[i] = y[i] * y[i + 1] + y[i + 2];
  x[i + 4] = x[i] * x[i + 3];
  y[i + 4] = y[i] + y[i + 3];
  x[i] = sqrtf(x[i]) / x[i + 3];
}
"""
# WRONG: the axis that is divided by a stride. PLACE: the size that a function reads through a reference.
axes_canary = """
struct axes {
  int rank;
  long long size[8];
  long long stride[2][8];
};
__global__ void walk(const axes p, long long index, long long* out) {
  asm volatile("{ .reg .b32 strided_axes_8_2; mov.b32 strided_axes_8_2, %0; }" ::"r"(p.rank));
  long long at = 0;
#pragma unroll
  for (int d = 0; d < 8; ++d) {
    long long digit = index;
    const bool last = d + 1 == 8 || d + 1 >= p.rank;
    if (!last) {
      const long long size = d == WRONG ? p.stride[1][d] : p.size[d];
      index /= size;
      digit -= index * size;
    }
    at += digit * p.stride[0][d];
    if (last) break;
  }
  *out = at;
}
__device__ __noinline__ long long read(const axes& p, int i) { return p.size[PLACE] + i; }
__global__ void call(const __grid_constant__ axes p, long long* out) { *out = read(p, threadIdx.x); }
"""
loop_canary = pathlib.Path(__file__).resolve().parent.parent / "docs/nvcc-parameter-loop.cu"


def names_of(symbols):
    """{symbol: the function's name without repdl::cuda::, arguments and template arguments}"""
    plain = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    names = {}
    for symbol, name in zip(symbols, plain.splitlines()):
        name = name.replace("(anonymous namespace)::", "")
        while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
            name = shorter
        name = re.sub(r"\b_INTERNAL_\w+::", "", name.split("(")[0]).split()[-1]
        names[symbol] = name.removeprefix("repdl::cuda::")
    return names


def faults_of_arithmetic(opcodes, may_seed):
    for name, count in opcodes.items():
        for what, rule in rules:
            if rule.fullmatch(name) and not (may_seed and name in seeds):
                yield what, f"{name}, {count} times"


def faults_of_walks(found):
    """8 bytes after the rank come the sizes, then the strides of each operand; all are 64 bits wide."""
    for root, rank, sizes, operands in found.walks:
        if rank is ptx_flow.varying:
            yield wrong_divisor, f"the rank of strided_axes is read from no one place of a parameter (got {root})"
            continue
        needed = {rank + 8 + 8 * i for i in range(sizes - 1)}
        last = rank + 8 * sizes
        end = last + 8 + 8 * sizes * operands
        seen = {at for of, at in found.divisors if of == root and rank <= at < end}
        yield from ((wrong_divisor, f"[{root}+{at}], sizes are at {rank + 8} to {last}") for at in sorted(seen - needed - {last}))
        yield from ((missing_divisor, f"[{root}+{at}]") for at in sorted(needed - seen))


def check(ptx, may_seed=False):
    """(faults, used entries of indexing_by_design, instructions, walks); a fault: (what, function, text)."""
    opcodes = collections.Counter(opcode.findall(ptx))
    faults = [(what, "", text) for what, text in faults_of_arithmetic(opcodes, may_seed)]
    used, walks = set(), 0
    analysed = ptx_flow.analyse(ptx)
    names = names_of([f.name for f, _ in analysed])
    for f, found in analysed:
        name = names[f.name]
        allowed = indexing_by_design.get(name)
        for root, text in sorted(found.index):
            if allowed and root.lstrip("*") in [f.params[number] for number in allowed[0]]:
                used.add(name)
            else:
                faults.append((indexed, name, text))
        faults += ((leaves, name, text) for _, text in sorted(found.escape))
        faults += ((what, name, text) for what, text in faults_of_walks(found))
        walks += len(found.walks)
    return faults, used, sum(count for name, count in opcodes.items() if arithmetic.fullmatch(name)), walks


def compile_here(nvcc, source, options, output):
    done = subprocess.run([nvcc, "-std=c++20", *options, str(source), "-o", str(output)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_ptx: {source}\n{done.stderr[-3000:]}")


def check_canaries(nvcc, pool):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        numbers = itertools.count()

        def faults(source, *options):
            output = folder / f"{next(numbers)}.ptx"
            compile_here(nvcc, source, ["-ptx", "-arch=compute_90", *options], output)
            return {what for what, _, _ in check(output.read_text())[0]}

        bare, axes = folder / "arithmetic.cu", folder / "axes.cu"
        bare.write_text(arithmetic_canary)
        axes.write_text(axes_canary)
        fused, fast, indexes = {rules[0][0]}, {rules[2][0], rules[3][0]}, {indexed}
        cases = [  # the faults that must be found; no others may be where there are none
            ("arithmetic without -fmad=false", fused, bare, []),
            ("arithmetic with -use_fast_math", fast, bare, ["-use_fast_math"]),
            ("arithmetic", set(), bare, options_of_bits),
            ("nvcc-parameter-loop.cu", indexes, loop_canary, []),
            ("nvcc-parameter-loop.cu, unrolled", set(), loop_canary, ["-DUNROLLED"]),
            ("a walk that divides by a stride", {wrong_divisor, missing_divisor}, axes, ["-DWRONG=2", "-DPLACE=3"]),
            ("a function that indexes a parameter of its caller", indexes, axes, ["-DWRONG=8", "-DPLACE=i"]),
            ("a walk along axes", set(), axes, ["-DWRONG=8", "-DPLACE=3"]),
        ]
        for (what, expected, _, _), got in zip(cases, pool.map(lambda c: faults(c[2], *c[3]), cases)):
            if not expected <= got:
                sys.exit(f"check_ptx: the canary '{what}' was accepted: expected {sorted(expected)}, found {sorted(got)}")
            if not expected and got:
                sys.exit(f"check_ptx: the canary '{what}' was rejected: {sorted(got)}")

        # What is read from an object is what was compiled.
        compile_here(nvcc, bare, ["-ptx", "-arch=compute_90"], folder / "bare.ptx")
        compile_here(nvcc, bare, ["-c", "--generate-code=arch=compute_90,code=[compute_90,sm_90]"], folder / "bare.o")
        plain = re.sub(r"//[^\n]*", "", (folder / "bare.ptx").read_text()).split()
        if [text.split() for text in fatbin.ptx_of(folder / "bare.o").values()] != [plain]:
            sys.exit("check_ptx: the PTX read from an object is not what nvcc compiles")
        return len(cases)


def check_object(path):
    gc.disable()  # millions of small objects, none in a cycle: to look for some takes a quarter of the time
    may_seed = re.match(r"(map_\w+|loss_each_\d+|rows(_\w+)?)\.cu", path.name) is not None
    return {architecture: check(ptx, may_seed) for architecture, ptx in fatbin.ptx_of(path).items()}


def group(faults):
    groups = collections.defaultdict(list)
    for what, function, text in faults:
        groups[what, function].append(" ".join(text.split()))
    return groups


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    # The library's: not the benchmark's, nor the kernels with a seeded fault.
    commands = [c for c in json.loads((args.build / "compile_commands.json").read_text())
                if c["file"].endswith(".cu") and "/repdl_cuda.dir/" in c["command"]]
    if not commands:
        sys.exit(f"check_ptx: no CUDA files of repdl_cuda in {args.build}/compile_commands.json")
    objects = []
    for command in commands:
        words = shlex.split(command["command"])
        source, built = pathlib.Path(command["file"]), pathlib.Path(command["directory"], words[words.index("-o") + 1])
        if absent := [o for o in options_of_bits if o not in words]:
            sys.exit(f"check_ptx: {source}: compiled without {' '.join(absent)}")
        if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
            sys.exit(f"check_ptx: {built}: missing or older than {source.name}; build first")
        objects.append(built)

    failed = instructions = walks = 0
    used = set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as threads:
        canaries = check_canaries(next(w for w in shlex.split(commands[0]["command"]) if pathlib.Path(w).name == "nvcc"), threads)
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as processes:
        for built, results in zip(objects, processes.map(check_object, objects)):
            for architecture, (faults, names, count, found) in results.items():
                used |= names
                instructions += count
                walks += found
                failed += len(faults)
                for (what, function), alike in group(faults).items():
                    more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
                    print(f"{built.stem}, sm_{architecture}: {what}: {function + ': ' if function else ''}{alike[0]}{more}")
    if walks == 0:
        sys.exit("check_ptx: no walk along strided_axes found: does axes.hpp mark them?")
    if unused := set(indexing_by_design) - used:
        sys.exit(f"check_ptx: listed, but indexes its parameters no more: {', '.join(sorted(unused))}")
    print(f"check_ptx: {len(objects)} objects, {instructions} correctly rounded instructions, {walks} walks along axes, "
          f"{failed} faults; {canaries} canaries")
    sys.exit(failed != 0)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"check_ptx: {error}")
