"""The command python -m librepdl.torch compare."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from librepdl.torch.evidence import _manifest
from librepdl.torch.evidence._fingerprints import compare_fingerprints


def _is_record(path: str) -> bool:
    try:
        found = json.loads(Path(path).read_bytes())
    except ValueError:  # who reads it says what is wrong
        return False
    return isinstance(found, dict) and found.get("format") == _manifest.FORMAT


def difference(one: str, other: str) -> str | None:
    """The first one of two files: both the records of runs, or both what Fingerprints wrote. None where they agree. Raises OSError, ValueError."""
    if not _is_record(one):
        return compare_fingerprints(one, other)
    found = _manifest.compare(_manifest.load(one), _manifest.load(other)).different
    return next((f"{category}: {text}" for category, text in found.items()), None)


def _act(options: argparse.Namespace) -> int:
    """Status 0 where all agree with the first, else 1; 2 where one cannot be read."""
    first, *others = options.files
    if not others:
        options.error("expected two files or more, got one")
    status = 0
    for other in others:
        try:
            found = difference(first, other)
        except (OSError, ValueError) as e:
            print(f"python -m librepdl.torch compare: {e}", file=sys.stderr)
            return 2
        print(f"{first} and {other}: {'the same' if found is None else f'NOT THE SAME: {found}'}")
        status |= found is not None
    return status


def add(commands: Any) -> None:
    """Its parser, to those of `add_subparsers()`; `act` takes the options and returns the exit status."""
    parser = commands.add_parser("compare", help="of two or more files of fingerprints, or two or more records of runs: the first difference from the "
                                                 "first of them. Status 1 where there is one, 2 where a file cannot be read")
    parser.add_argument("files", nargs="+", metavar="FILE", help="what evidence.Fingerprints and the callbacks write, or run --manifest")
    parser.set_defaults(act=_act, error=parser.error)
