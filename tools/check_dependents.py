#!/usr/bin/env python3
"""What a new elementwise function compiles again, of the library and the command line: few objects may depend on the list of all
operations, as Ninja noted when it built them.

    tools/check_dependents.py BUILD
"""
import pathlib
import re
import subprocess
import sys

# The list, and what is written from it.
lists = ("librepdl/ops/elementwise/elementwise.def", "librepdl/ops/elementwise/bodies.hpp", "librepdl/include/librepdl/elementwise.hpp")
# With the function's loops, three times, and the build's id, 12 files: tests/growth.py.
most = 8
folders = ("librepdl", "backends", "reference", "tools", "examples/CMakeFiles/repdl_perceptron.dir")
registry = re.compile(r"/repdl_base\.dir/ops/registry\.cpp\.o$")


def main():
    build = pathlib.Path(sys.argv[1])
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    objects = {}  # object: whether it depends on a list
    for entry in text.split("\n\n"):
        name, *needed = entry.splitlines() or [""]
        name = name.split(":")[0]
        if name.startswith(tuple(f"{folder}/" for folder in folders)):
            objects[name] = any(line.endswith(lists) for line in needed)
    dependent = sorted(name for name, depends in objects.items() if depends)
    if not any(registry.search(name) for name in dependent):
        sys.exit(f"check_dependents: {build}: expected a build by Ninja, with the registry among what depends on elementwise.def")
    print("\n".join(dependent))
    print(f"check_dependents: {len(dependent)} of {len(objects)} objects depend on the list of elementwise operations, at most {most} may")
    sys.exit(len(dependent) > most)


main()
