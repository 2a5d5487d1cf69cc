#!/usr/bin/env python3
"""Which kernels of two PTX files differ: whether a change of the sources reached what a GPU runs.

    tools/compare_ptx.py OLD NEW... [--rename OLD_NAME=NEW_NAME]...

OLD and NEW are what `nvcc -ptx` makes of the old and the new sources with the flags of backends/cuda/CMakeLists.txt. Kernels are
compared by their demangled names, as text without comments, symbols' names and labels' numbers, with all that they call and
the data that they read. --rename: replaces a regular expression in the old names first. Exit status 1 when a kernel of NEW is
not one of OLD.
"""
import argparse
import pathlib
import re
import subprocess
import sys


def kernels_of(text, renames=()):
    """{demangled name: text without what depends on the file} of the kernels of a PTX, each with the functions and the data that
    it reaches."""
    parts, kernels = {}, []
    start = r"^(?:\.visible |\.weak |\.common )?\.(?:entry|func|global|const) "
    for part in re.split(f"(?={start})", text, flags=re.M)[1:]:
        part = re.sub(r"//.*", "", part)
        kind = re.search(r"\.(entry|func|global|const) ", part).group(1)
        if kind in ("entry", "func"):
            name = re.match(r"[^(]*(?:\([^)]*\)\s*)?\b(\w+)\s*\(", part).group(1)
            if "\n}\n" not in part:
                continue  # a declaration; the definition follows
            part = part[:part.index("\n}\n") + 3]
        else:
            name = re.search(r"([\w$]+)(?:\[\d*\])*(?:\s*=[^;]*)?;", part).group(1)
            part = part[:part.index(";") + 1]
        parts[name] = part
        if kind == "entry":
            kernels.append(name)

    def reached(name):
        found = [name]
        for at in found:  # which grows
            calls = re.findall(r"\bcall(?:\.uni)?\s*(?:\([^)]*\)\s*,\s*)?([^\s,;]+)", parts[at])
            if unknown := [c for c in calls if c not in parts]:
                sys.exit(f"{name} calls {', '.join(unknown)}, which is not there")
            found += [n for n in dict.fromkeys(re.findall(r"[\w$]+", parts[at])) if n in parts and n not in found]
        return found

    def plain(name, constants):
        body = re.sub(rf"\b{re.escape(name)}_param_", "PARAMETER_", parts[name])
        for i, constant in enumerate(constants):
            body = re.sub(rf"(?<![\w$]){re.escape(constant)}(?![\w$])", f"CONSTANT_{i}", body)
        return re.sub(r"(\$L__BB|__local_depot)\d+", r"\1", re.sub(r"_Z\w+", "SYMBOL", body))

    demangle = ["c++filt", "--no-params"]
    names = subprocess.run(demangle, input="\n".join(kernels), capture_output=True, text=True, check=True).stdout.splitlines()
    result = {}
    for name, kernel in zip(names, kernels):
        name = re.sub(r"repdl::(cuda::)?|\(anonymous namespace\)::|\w+_GLOBAL__N__\w+::|_GLOBAL__N__\w+::", "", name)
        for old, new in renames:
            name = re.sub(old, new, name)
        if name in result:
            sys.exit(f"two kernels are called {name}")
        everything = reached(kernel)
        constants = [n for n in everything if re.match(r"\.const [^=;]*=", parts[n])]  # their values are in the text
        result[name] = "".join(plain(n, constants) for n in everything)
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
