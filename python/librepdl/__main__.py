"""python -m librepdl: the repdl program of this package."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin/repdl"
    if not program.exists():
        sys.exit(f"librepdl: expected the program {program}, which was left out of this build (REPDL_TOOLS=OFF), got none")
    os.execv(program, ["repdl", *sys.argv[1:]])


main()
