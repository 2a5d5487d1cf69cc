#!/usr/bin/env python3
"""Checks that the example in README.md is examples/readme.cpp, which the build compiles.

    tools/check_readme.py           exits with 1 and a message when they differ
    tools/check_readme.py --write   puts the file into the README
"""
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent.parent
begin, end = "<!-- example:begin -->\n", "<!-- example:end -->"


def main():
    readme = root / "README.md"
    text = readme.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit("README.md: expected the markers of the example once each")
    before, rest = text.split(begin)
    shown, after = rest.split(end)
    wanted = "```cpp\n" + (root / "examples/readme.cpp").read_text() + "```\n"
    if "--write" in sys.argv[1:]:
        readme.write_text(before + begin + wanted + end + after)
    elif shown != wanted:
        sys.exit("README.md: the example differs from examples/readme.cpp: run tools/check_readme.py --write")


main()
