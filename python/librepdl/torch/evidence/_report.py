"""What the reports share: the machine's name, tables, JSON, pictures."""

import json
import math
import os
import platform
import re
import tempfile
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

import torch

import librepdl


def machine() -> str:
    """The processor, PyTorch's threads, GPUs and versions, in words."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    threads = torch.get_num_threads()
    words = [found[1] if found else platform.processor() or platform.machine(), f"{threads} thread{'s' if threads > 1 else ''}"]
    words += [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return ", ".join([*words, f"PyTorch {torch.__version__}", f"librepdl {librepdl.__version__}"])


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Container[int] = ()) -> str:
    """Columns as wide as their widest entry; those of `right`, counted from 0, flush right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join("  ".join(cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
                     for row in (head, *rows))


def number(value: float | None, digits: int = 3) -> str:
    """Of a table: nothing where there is none."""
    return "" if value is None else "0" if value == 0 else f"{value:.{digits}g}"


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinities: as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _finite(v) for key, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, (list, tuple)) else value


def as_json(value: Any) -> str:
    return json.dumps(_finite(value), indent=2, allow_nan=False) + "\n"


def _replace(target: Path, write: Callable[[Path], object]) -> None:
    """By rename: the file is whole, or as it was."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        new = Path(folder) / target.name
        write(new)
        os.replace(new, target)


def write(path: str | os.PathLike[str], text: str) -> None:
    _replace(Path(path), lambda new: new.write_text(text))


def axes(who: str, rows: int = 1, height: float = 3.5) -> tuple[Any, list[Any]]:
    """matplotlib's figure of `rows` diagrams, one below the other, without a window. ModuleNotFoundError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(f"{who}: a plot needs matplotlib, which is not installed: pip install matplotlib; "
                                  "str() and json() do without", name="matplotlib") from e
    figure = Figure(figsize=(8, height * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, 1, i + 1) for i in range(rows)]


def format_of(figure: Any, path: str | os.PathLike[str]) -> str:
    """What the name ends in: svg, png, pdf. ValueError where matplotlib writes no such format."""
    kind, known = Path(path).suffix[1:].lower(), figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise ValueError(f"plot: path: expected a name that ends in one of {', '.join(sorted('.' + k for k in known))}, got {str(path)!r}")
    return kind


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """By rename. The same figure gives the same file: without the time of day and random identifiers."""
    from matplotlib import rc_context

    kind = format_of(figure, path)
    time = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "librepdl"}):
        _replace(Path(path), lambda new: figure.savefig(new, format=kind, metadata=time))
