#!/usr/bin/env python3
"""Checks what the arithmetic's object files define and need.

    tools/check_symbols.py BUILD_DIR [NM]

Every kernel file is compiled once for each instruction set. In those objects
  - a weak or unique symbol (an inline function, a template) must carry the instruction set in its mangled name:
    otherwise the linker may keep the AVX-512 copy for a machine without AVX-512;
  - the only other symbols defined for the outside are the tables repdl::cpu::ISA::*_table;
  - nothing is needed but the C library's memory functions and, for the baseline, a correctly rounded fma: no function of
    libm, whose results differ between platforms, and nothing that could throw or allocate.
"""
import pathlib
import re
import subprocess
import sys

memory_functions = {"memcpy", "memmove", "memset", "memcmp", "_GLOBAL_OFFSET_TABLE_"}
needed = {"baseline": memory_functions | {"fma", "fmaf"}, "avx2": memory_functions, "avx512": memory_functions,
          "neon": memory_functions}


def problems_of(isa, lines):
    """lines: nm's, without the file name."""
    carries = f"{len(isa)}{isa}"
    for line in lines:
        kind, symbol = line.split()[-2:]
        if kind in "vVwWu" and not line.startswith(" "):
            if carries not in symbol:
                yield f"weak symbol without the instruction set in its name: {symbol}"
        elif kind == "U":
            if symbol not in needed[isa] and carries not in symbol:
                yield f"needs {symbol}"
        elif kind.isupper() and kind not in "VW":
            if not re.fullmatch(rf"_ZN5repdl3cpu{carries}\d+\w+_tableE", symbol):
                yield f"defines {symbol} for the outside"


def self_test():
    """A checker that accepts everything would pass too."""
    bad = ["0000 W _ZN5repdl3num3expEd", "0000 u _ZZ1fvE1x", "0000 T main", "     U sinf", "     U fma", "     U _Znwm"]
    good = ["0000 W _ZN5repdl3num6avx5123expEd", "0000 D _ZN5repdl3cpu6avx5129map_tableE", "     U memcpy", "0000 t local"]
    assert len(list(problems_of("avx512", bad))) == len(bad), "the checker accepts a bad symbol"
    assert not list(problems_of("avx512", good)), "the checker rejects a good symbol"


def main():
    self_test()
    build = pathlib.Path(sys.argv[1])
    nm = sys.argv[2] if len(sys.argv) > 2 else "nm"
    objects = failures = symbols = 0
    folders = {isa: build / f"backends/CMakeFiles/repdl_kernels_{isa}.dir" for isa in needed}
    built = {isa for isa in needed if folders[isa].is_dir()}
    if built not in ({"baseline", "avx2", "avx512"}, {"neon"}):
        sys.exit(f"check_symbols: expected the kernels of all sets of one processor family, found {sorted(built)}")
    for isa in sorted(built):
        folder = folders[isa]
        paths = sorted(folder.glob("**/*.o"))
        if not paths:
            sys.exit(f"check_symbols: no kernel objects for {isa} under {build}")
        for path in paths:
            lines = subprocess.run([nm, path], check=True, capture_output=True, text=True).stdout.splitlines()
            objects += 1
            symbols += len(lines)
            for problem in problems_of(isa, lines):
                print(f"{path.relative_to(build)}: {problem}")
                failures += 1
    print(f"check_symbols: {objects} objects, {symbols} symbols, {failures} problems")
    sys.exit(failures != 0)


main()
