"""python -m librepdl: the repdl program of this package."""

import os
import pathlib
import sys


def main() -> None:
    package = pathlib.Path(__file__).resolve().parent
    program, library = package / "bin/repdl", package / "librepdl_cuda.so"
    if not program.exists():
        sys.exit(f"librepdl: expected the program {program}, which was left out of this build (REPDL_TOOLS=OFF), got none")
    # It is beside the modules, where they look for it; the program looks beside itself.
    if library.exists() and not os.environ.get("REPDL_CUDA_LIBRARY"):
        os.environ["REPDL_CUDA_LIBRARY"] = str(library)
    os.execv(program, ["repdl", *sys.argv[1:]])


main()
