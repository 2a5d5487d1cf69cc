#!/usr/bin/env python3
"""Checks that the examples in README.md are examples/readme.cpp and readme.c, which the build compiles, and its fingerprint the
published one.

    tools/check_readme.py           exits with 1 and a message when they differ
    tools/check_readme.py --write   puts the files into the README
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent


def main():
    readme = root / "README.md"
    text = written = readme.read_text()
    for marker, language in (("example", "cpp"), ("c-example", "c")):
        begin, end = f"<!-- {marker}:begin -->\n", f"<!-- {marker}:end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            sys.exit(f"README.md: expected the markers {begin.strip()} and {end} once each")
        before, rest = written.split(begin)
        _, after = rest.split(end)
        example = (root / f"examples/readme.{language}").read_text()
        written = f"{before}{begin}```{language}\n{example}```\n{end}{after}"
    if "--write" in sys.argv[1:]:
        readme.write_text(written)
        return
    published = (root / "examples/digits/cnn_fingerprint.txt").read_text().split()[-1]
    told = set(re.findall(r"\b[0-9a-f]{64}\b", text)) | set(re.findall(r"\b([0-9a-f]{16})\.\.\.", text))
    if told != {published, published[:16]}:
        sys.exit(f"README.md: expected the fingerprint {published} and its first 16 digits, got {', '.join(sorted(told))}")
    if text != written:
        sys.exit("README.md: an example differs from examples/readme.cpp or readme.c: run tools/check_readme.py --write")


main()
