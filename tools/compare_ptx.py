#!/usr/bin/env python3
"""Which kernels of two PTX files differ: whether a change of the sources reached what a GPU runs.

    tools/compare_ptx.py OLD NEW... [--rename OLD_NAME=NEW_NAME]...

OLD and NEW are what `nvcc -ptx` makes of the old and the new sources with the flags of backends/cuda/CMakeLists.txt. Kernels are
compared by their demangled names, as text without comments, symbols' names and labels' numbers. --rename: replaces a regular
expression in the old names first. Exit status 1 when a kernel of NEW is not one of OLD.
"""
import argparse
import pathlib
import re
import subprocess
import sys


def kernels_of(text, renames=()):
    """{demangled name: text without what depends on the file} of the kernels of a PTX."""
    parts = {}
    for part in re.split(r"(?=^(?:\.visible |\.weak )?\.entry )", text, flags=re.M)[1:]:
        parts[re.match(r"(?:\.\w+ )?\.entry (\w+)", part).group(1)] = part
    names = subprocess.run(["c++filt"], input="\n".join(parts), capture_output=True, text=True, check=True).stdout.splitlines()
    result = {}
    for name, (part_name, part) in zip(names, parts.items()):
        name = re.sub(r"repdl::(cuda::)?|\(anonymous namespace\)::|\w+_GLOBAL__N__\w+::|_GLOBAL__N__\w+::", "", name)
        name = name.removeprefix("void ").split("(")[0].strip()
        for old, new in renames:
            name = re.sub(old, new, name)
        body = re.sub(r"//.*", "", part[:part.index("\n}\n") + 3])
        body = re.sub(rf"\b{part_name}_param_", "PARAMETER_", body)
        body = re.sub(r"(\$L__BB|__local_depot)\d+", r"\1", re.sub(r"_Z\w+", "SYMBOL", body))
        result[name] = body
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new", nargs="+")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    args = parser.parse_args()
    old = kernels_of(pathlib.Path(args.old).read_text(), [r.split("=", 1) for r in args.rename])
    new = {}
    for file in args.new:
        new |= kernels_of(pathlib.Path(file).read_text())
    if not new:
        sys.exit(f"{' '.join(args.new)}: expected kernels, found none")
    for name in sorted(new):
        if old.get(name) != new[name]:
            print(f"{'changed' if name in old else 'new'}: {name}")
    same = sum(old.get(name) == new[name] for name in new)
    print(f"{same} of {len(new)} kernels are those of {args.old}, which has {len(old)}")
    sys.exit(same != len(new))


if __name__ == "__main__":
    main()
