#!/usr/bin/env python3
"""Prepares clang-tidy: tools/lint_files.py COMPILE_COMMANDS OUT_DIR

Writes OUT_DIR/compile_commands.json with each source file once (kernels: the AVX2 build) and without the options that clang
does not know, and prints the files, one a line.
"""
import json
import pathlib
import sys

gcc_only = ("-fno-lto", "-fopenmp-simd", "-Wno-restrict")


def main():
    commands = json.loads(pathlib.Path(sys.argv[1]).read_text())
    out = pathlib.Path(sys.argv[2])
    chosen = {}
    for c in commands:
        if "repdl_kernels_" in c["command"] and "repdl_kernels_avx2" not in c["command"]:
            continue
        if c["file"].endswith(".cpp"):
            words = [w for w in c["command"].split() if w not in gcc_only]
            chosen.setdefault(c["file"], dict(c, command=" ".join(words)))
    out.mkdir(parents=True, exist_ok=True)
    (out / "compile_commands.json").write_text(json.dumps(list(chosen.values()), indent=1))
    print("\n".join(chosen))


main()
