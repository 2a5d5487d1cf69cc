#!/usr/bin/env python3
"""Which part of the library includes which: each only those before it, and the public headers; nothing in librepdl a backend.

    tools/check_layers.py
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent / "librepdl"
# What a call goes through from the top down, read from the bottom. `samples` and `self_test` call the library as its users do; what
# contexts know of them is declared in `dispatch`.
layers = ("num", "ops", "plan", "dispatch", "api", "samples", "self_test")
include = re.compile(r'^#include "(librepdl/(\w+)/[^"]*|backends/[^"]*)"', re.M)
includes = wrong = 0
for i, layer in enumerate(layers):
    for file in sorted((root / layer).rglob("*.[ch]pp")):
        for path, of in include.findall(file.read_text()):
            includes += 1
            if path.startswith("backends/") or of in layers[i + 1:]:
                wrong += 1
                print(f"{file.relative_to(root.parent)}: includes {path}: {layer} stands below {of or 'the backends'}")
if includes == 0:
    sys.exit("check_layers: no includes found")
print(f"check_layers: {includes} includes between {' < '.join(layers)}, {wrong} upward")
sys.exit(wrong != 0)
