"""python -m librepdl.torch: build, status."""

import argparse
import sys

from librepdl.torch import _build, status


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m librepdl.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="compile the library for the PyTorch that is installed, as the first enable() does")
    commands.add_parser("status", help="versions, and what is replaced, passed and refused")
    if parser.parse_args().command == "build":
        try:
            print(_build.library())
        except (_build.NoCompiler, _build.UntrustedCache) as e:
            sys.exit(str(e))
    else:
        import librepdl.torch
        with librepdl.torch.reproducible():
            for key, value in status().items():
                print(f"{key:12} {value}")


if __name__ == "__main__":
    main()
