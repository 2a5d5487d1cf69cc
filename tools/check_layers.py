#!/usr/bin/env python3
"""Which part of the library includes which: each only those before it, and the public headers; nothing in librepdl a backend. What a
GPU has of its own (words of CUDA C++) stands in one header of librepdl.

    tools/check_layers.py
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent / "librepdl"
# What a call goes through from the top down, read from the bottom. `samples` and `self_test` call the library as its users do; what
# contexts know of them is declared in `dispatch`.
layers = ("num", "ops", "plan", "dispatch", "api", "samples", "self_test")
platform = root / "num" / "platform.hpp"
of_device = re.compile(r"\b(?:__CUDA\w*|__NVCC__|__(?:device|host|global|shared|constant|launch_bounds)__"
                       r"|(?:thread|block)Idx|(?:block|grid)Dim"
                       r"|__(?:sync|shfl|activemask|ballot|umul|clz|ffs)\w*|__(?:double|float|int|ll|hiloint)2\w+"
                       r"|__(?:[df](?:add|sub|mul|div)|fmaf?)_r[nzud])\b|#pragma unroll")
include = re.compile(r'^#include "(librepdl/(\w+)/[^"]*|backends/[^"]*)"', re.M)
includes = wrong = 0
for i, layer in enumerate(layers):
    for file in sorted((root / layer).rglob("*.[ch]pp")):
        for path, of in include.findall(file.read_text()):
            includes += 1
            if path.startswith("backends/") or of in layers[i + 1:]:
                wrong += 1
                print(f"{file.relative_to(root.parent)}: includes {path}: {layer} stands below {of or 'the backends'}")
of_a_gpu = 0
for file in sorted(f for f in root.rglob("*") if f.suffix in {".hpp", ".cpp", ".h", ".def"} and f != platform):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if word := of_device.search(line):
            of_a_gpu += 1
            print(f"{file.relative_to(root.parent)}:{number}: {word[0]}: expected in {platform.relative_to(root.parent)} or a backend only")
if includes == 0 or not of_device.search(platform.read_text()):
    sys.exit("check_layers: no includes found, or no words of a GPU")
print(f"check_layers: {includes} includes between {' < '.join(layers)}, {wrong} upward; {of_a_gpu} lines with words of a GPU outside "
      f"{platform.relative_to(root.parent)}")
sys.exit(wrong + of_a_gpu != 0)
