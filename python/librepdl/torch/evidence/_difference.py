"""Where two states differ first: the tensor, the element, its bits."""

import sys
from typing import Any

import numpy as np
import torch

from librepdl.torch import _parts


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bits of each element: a row of bytes for each, in row-major order."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.numel() == 0:
        return np.empty((0, flat.element_size()), np.uint8)
    return flat.view(torch.uint8).numpy().reshape(flat.numel(), flat.element_size())


def _hexadecimal(row: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    return f"0x{int.from_bytes(row.tobytes(), sys.byteorder):0{2 * len(row)}x}"


def _of_tensors(a: torch.Tensor, b: torch.Tensor) -> str | None:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return " and ".join(f"{str(t.dtype).removeprefix('torch.')} of shape {list(t.shape)}" for t in (a, b))
    x, y = _bytes(a), _bytes(b)
    differ = (x != y).any(1)
    if not differ.any():
        return None
    first = int(differ.argmax())
    index = [int(i) for i in np.unravel_index(first, tuple(a.shape))]
    values = " and ".join(f"{t.detach()[tuple(index)].item()!r} ({_hexadecimal(rows[first])})" for t, rows in ((a, x), (b, y)))
    return f"{int(differ.sum())} of {len(differ)} elements differ, the first at {index}: {values}"


def _of_values(a: Any, b: Any) -> str | None:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _of_tensors(a, b)
    texts = [f"{type(v).__name__} of shape {list(v.shape)}" if isinstance(v, torch.Tensor) else
             f"{v!r} ({v.hex()})" if isinstance(v, float) else f"{type(v).__name__} {v!r}" for v in (a, b)]
    return None if texts[0] == texts[1] else " and ".join(texts)


def _parts_of(state: Any) -> dict[str, Any]:
    parts = dict(_parts("", state))
    for path, value in parts.items():
        if not (value is None or isinstance(value, (torch.Tensor, bool, int, float, str, bytes)) or callable(value)):
            raise TypeError(f"first_difference: {path or 'state'}: expected tensors, numbers, strings, dicts and lists, "
                            f"got {type(value).__name__}")
    return parts


def first_difference(a: Any, b: Any) -> str | None:
    """The first difference of two states (modules, optimisers, state_dicts; what librepdl.torch.fingerprint takes), bit by bit, or None:

        /'model'/'linear.weight': 3 of 50 elements differ, the first at [0, 7]: 0.5 (0x3f000000) and 0.50000006 (0x3f000001)

    -0 and +0 differ, as do two NaNs with other bits. Memory formats and devices do not count. None means that the fingerprints are equal.
    """
    one, other = _parts_of(a), _parts_of(b)
    for path, value in one.items():
        if path not in other:
            return f"{path}: only in the first"
        if callable(value) and callable(other[path]) and not isinstance(value, torch.Tensor):
            continue  # names alone count, as in a fingerprint
        difference = _of_values(value, other[path])
        if difference is not None:
            return f"{path or 'state'}: {difference}"
    for path in other:
        if path not in one:
            return f"{path}: only in the second"
    return None
