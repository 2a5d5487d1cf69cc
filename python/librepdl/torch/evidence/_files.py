"""Files of JSON: read with a look at what they are, written by rename."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any, sort_keys: bool = False) -> None:
    """Whoever reads the file finds the former text or the new one. Raises OSError where it cannot be written."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        new.write_text(json.dumps(value, indent=1, sort_keys=sort_keys, allow_nan=False) + "\n", encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read_json(path: str | os.PathLike[str], form: str, writer: str) -> dict[str, Any]:
    """An object whose "format" is `form`. Raises OSError, or ValueError, with who writes such files, where it is something else."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as e:
        raise ValueError(f"{os.fspath(path)}: expected JSON, got something else: {e}") from e
    if not isinstance(found, dict) or found.get("format") != form:
        raise ValueError(f"{os.fspath(path)}: expected a file of the format {form!r}, which {writer} writes, got another")
    return found
