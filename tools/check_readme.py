#!/usr/bin/env python3
"""Checks that the example in README.md is examples/readme.cpp, which the build compiles, and its fingerprint the published
one.

    tools/check_readme.py           exits with 1 and a message when they differ
    tools/check_readme.py --write   puts the file into the README
"""
import pathlib
import re
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
        return
    published = (root / "examples/digits/cnn_fingerprint.txt").read_text().split()[-1]
    told = set(re.findall(r"\b[0-9a-f]{64}\b", text)) | set(re.findall(r"\b([0-9a-f]{16})\.\.\.", text))
    if told != {published, published[:16]}:
        sys.exit(f"README.md: expected the fingerprint {published} and its first 16 digits, got {', '.join(sorted(told))}")
    if shown != wanted:
        sys.exit("README.md: the example differs from examples/readme.cpp: run tools/check_readme.py --write")


main()
