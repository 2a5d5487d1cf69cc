#!/usr/bin/env python3
"""No list of operations stands outside the tables of operations (elementwise.def, structured.def) and what is made of them: who goes
through all operations of a kind asks their records.

    tools/check_lists.py

A list: the names of three operations or more, as strings or op_id, with nothing but punctuation and comparisons between them.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
tables = ("librepdl/ops/elementwise/elementwise.def", "librepdl/ops/structured.def")
# Names of other things, too: reductions of losses, families, attributes.
ambiguous = {"sum", "mean", "normal", "convert", "matmul", "softmax"}
names = {n for t in tables for n in re.findall(r"^\s*REPDL_\w+\((\w+)", (root / t).read_text(), re.M)} - ambiguous
name = r'(?:(?:ops::)?op_id::\w+|"\w+")'
several = re.compile(rf"{name}(?:\s*(?:,|\|\||&&|[=!]=|[(){{}}]|\b(?:op|op_|name|c\.op|p\.op|p_\.op|if|else)\b)\s*)+"
                     rf"(?={name})")


def lists(text: str):
    """(the place, operations), ... of what may be a list."""
    at = 0
    while match := several.search(text, at):
        begin, end = match.start(), match.end()
        while more := several.match(text, end):
            end = more.end()
        last = re.compile(name).match(text, end)
        found = re.findall(r"\w+(?=\"|\b)", " ".join(re.findall(name, text[begin:last.end()])))
        yield begin, [n for n in found if n in names]
        at = last.end()


files = sorted(p for d in ("librepdl", "backends", "reference", "tools/cli") for p in (root / d).rglob("*")
               if p.suffix in (".cpp", ".hpp", ".cu", ".cuh")) + [root / "tests/helpers/class_calls.hpp"]
wrong = 0
for file in files:
    text = file.read_text()
    for place, found in lists(text):
        if len(set(found)) > 2:
            wrong += 1
            print(f"{file.relative_to(root)}:{text.count(chr(10), 0, place) + 1}: lists {', '.join(found)}: what do they have in common?")
if len(names) < 100 or not files:
    sys.exit("check_lists: no operations or no files found")
print(f"check_lists: {len(files)} files, {len(names)} operations, {wrong} lists")
sys.exit(wrong != 0)
