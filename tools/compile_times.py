#!/usr/bin/env python3
"""What a build spent its time on: a table of its dearest objects, and of its parts.

    tools/compile_times.py BUILD_DIR [--rows N]     of a build that began with an empty compiler cache
    tools/compile_times.py BUILD_DIR --ptx          what a CUDA build's PTX consists of

Reads ninja's log: seconds from the start to the end of a compiler, which are core-seconds where as many ran as there are cores.
docs/compile-times.md has the output.
"""
import argparse
import collections
import pathlib
import re
import sys

import elf
import fatbin


def last_build(log):
    """{object: seconds}; of an object that was compiled again the last time."""
    lines = log.read_text().splitlines()
    if not lines or not lines[0].startswith("# ninja log"):
        sys.exit(f"{log}: expected a log of ninja, got {lines[:1]}")
    seconds = {}
    for line in lines[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith(".o"):
            seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def part_of(output):
    """A directory of the sources; of kernels the instruction set; elementwise loops apart."""
    if kernels := re.match(r"backends/CMakeFiles/repdl_kernels_(\w+)\.dir/(.*)", output):
        return f"{'elementwise loops' if '/map/map_' in kernels[2] else 'other kernels'}, {kernels[1]}"
    if output.startswith("backends/cuda/"):
        return f"CUDA, {pathlib.PurePath(output).parent.name}"
    if output.startswith("backends/"):
        return "backends, drivers"
    return output.split("/")[0]


def name_of(output):
    place, _, source = output.partition(".dir/")
    kernels = re.search(r"repdl_kernels_(\w+)$", place)
    where = "" if kernels or "repdl_cpu" in place or "repdl_cuda" in place else place.split("/")[0] + "/"
    return where + re.sub(r".*/shards/", "shards/", source).removesuffix(".o") + (f", {kernels[1]}" if kernels else "")


def print_ptx(build, objects):
    sizes = collections.defaultdict(lambda: [0, 0])
    for output in objects:
        if output.startswith("backends/cuda/") and output.endswith(".cu.o"):
            of_part = sizes[part_of(output)]
            of_part[0] += len(elf.File(build / output).contents(".nv_fatbin"))
            of_part[1] += sum(map(len, fatbin.ptx_of(build / output).values()))
    if not sizes:
        sys.exit(f"{build}: expected objects of CUDA, found none")
    print("| part | compressed, MB | PTX, MB |\n|---|---:|---:|")
    sizes["all"] = [sum(of_part[i] for of_part in sizes.values()) for i in range(2)]
    for part, (compressed, text) in sorted(sizes.items(), key=lambda s: -s[1][0]):
        print(f"| {part} | {compressed / 1e6:.1f} | {text / 1e6:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--ptx", action="store_true")
    args = parser.parse_args()
    seconds = last_build(args.build / ".ninja_log")
    if not seconds:
        sys.exit(f"{args.build}: expected compiled objects, found none")
    if args.ptx:
        return print_ptx(args.build, seconds)
    parts = collections.defaultdict(list)
    for output, t in seconds.items():
        parts[part_of(output)].append(t)
    print(f"{len(seconds)} objects, {sum(seconds.values()):.0f} s\n\n| part | objects | s |\n|---|---:|---:|")
    for part, times in sorted(parts.items(), key=lambda p: -sum(p[1])):
        print(f"| {part} | {len(times)} | {sum(times):.0f} |")
    print("\n| object | s |\n|---|---:|")
    for output, t in sorted(seconds.items(), key=lambda o: -o[1])[: args.rows]:
        print(f"| {name_of(output)} | {t:.1f} |")


main()
