"""python -m librepdl.torch.evidence compare: whether files of fingerprints are of the same bits."""

import argparse
import sys

from librepdl.torch.evidence import compare_fingerprints


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m librepdl.torch.evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    comparison = commands.add_parser("compare", help="of two files or more that Fingerprints wrote; exit status 1, and the first difference, "
                                                     "where one is of other bits than the first, 2 where one cannot be read")
    comparison.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    first, *others = options.files
    if not others:
        comparison.error("expected two files or more, got one")
    status = 0
    for other in others:
        try:
            found = compare_fingerprints(first, other)
        except (OSError, ValueError) as e:
            print(f"python -m librepdl.torch.evidence compare: {e}", file=sys.stderr)
            sys.exit(2)
        print(f"{first} and {other}: {'the same bits' if found is None else f'first difference: {found}'}")
        status |= found is not None
    sys.exit(status)


if __name__ == "__main__":
    main()
