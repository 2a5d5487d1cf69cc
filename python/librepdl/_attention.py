"""What is made of operations of the registry for attention: rotary embedding, sequences of different lengths, pages of a cache."""

import sys
from typing import Any, TypeVar

import numpy

from librepdl import _core

__all__ = ["attention_paged", "attention_varlen", "attention_varlen_backward", "rotary"]

# An array of any library.
A = TypeVar("A")


def _integers(op: str, name: str, x: Any, rank: int) -> Any:
    """NumPy's array of what an array of any library, or lists, has; waits for a GPU."""
    a = numpy.asarray(x.tolist() if hasattr(x, "tolist") else x)
    if a.size == 0:
        a = a.astype(numpy.int64)
    if a.dtype.kind not in "iu":
        raise TypeError(f"{op}: {name}: expected integers, got {a.dtype}")
    if a.ndim != rank:
        raise ValueError(f"{op}: {name}: expected {rank} axes, got shape {a.shape}")
    return a.astype(numpy.int64)


def _index(numbers: Any, array: Any) -> Any:
    """NumPy's integers as what indexes the array."""
    torch = sys.modules.get("torch")
    return torch.from_numpy(numbers).to(array.device) if torch is not None and isinstance(array, torch.Tensor) else numbers


def rotary(x: A, cos: A, sin: A, positions: Any = None, *, interleaved: bool = False, inverse: bool = False, out: A | None = None) -> A:
    """Rotary position embedding: of each pair (x1, x2) along the last axis x1 * cos - x2 * sin and x2 * cos + x1 * sin, each rounded once.

    x: f16 bf16 f32 f64, the last axis of an even size d
    cos, sin: x's format; broadcast to x's shape with d / 2 in place of d
    positions: integers; rows of the tables cos and sin, (n, d / 2), in place of all of them: cos[positions], sin[positions], which are copied;
        the call waits for their values
    interleaved: pairs are elements 2i and 2i + 1, not i and i + d / 2
    inverse: by the opposite angles; of a result's gradient g, rotary(g, cos, sin, inverse=True) is that of x
    out: shares no memory with x
    """
    if positions is not None:
        p = numpy.asarray(positions.tolist() if hasattr(positions, "tolist") else positions)
        if p.size > 0 and p.dtype.kind not in "iu":
            raise TypeError(f"rotary: positions: expected integers, got {p.dtype}")
        tables: list[Any] = [cos, sin]
        for name, table in zip(("cos", "sin"), tables):
            rows = table.shape[0] if getattr(table, "ndim", 0) == 2 else -1
            if rows < 0:
                raise ValueError(f"rotary: {name}: expected a table of 2 axes, (rows, d / 2), beside positions")
            if p.size > 0 and not (0 <= p.min() and p.max() < rows):
                raise IndexError(f"rotary: positions: expected rows of {name}, 0 to {rows - 1}, got {p.min()} to {p.max()}")
        index = positions if hasattr(positions, "ndim") else _index(p.astype(numpy.int64), cos)
        cos, sin = (table[index] for table in tables)
    result: A = _core.rotary((x, cos, sin), out, interleaved, inverse)
    return result


def attention_varlen(q: A, k: A, v: A, q_offsets: Any, k_offsets: Any, *, slopes: Any = None, scale: float | None = None,
                     causal: bool = False, bottom_right: bool = False, left: int = -1, right: int = -1, dropout: float = 0.0,
                     seed: int = 0, stream: int = 0, out: Any = None, lse: bool = False) -> Any:
    """attention of sequences of different lengths that lie one behind the other, each with the bits that it has alone.

    Sequence i has rows q_offsets[i] to q_offsets[i + 1] - 1 of q and of the result, and rows of k and v likewise. A call for each sequence:
    nothing is copied, and no memory is needed beside the operands and results.

    q, k, v: f16 bf16 f32 f64, (Lq, H, D), (Lk, G, D), (Lk, G, E), of all sequences; the result is (Lq, H, E)
    q_offsets, k_offsets: i64 or i32, from 0, never descending, to Lq and Lk; the call waits for their values
    slopes, scale, causal, bottom_right, left, right: as of attention, of each sequence
    dropout, seed, stream: likewise; sequence i draws with stream + i
    lse: return lse, (H, Lq), as well, in a tuple; out is then one too, of arrays or None
    """
    values = (scale, causal, bottom_right, left, right, dropout, seed, stream)
    return _core.attention_varlen((q, k, v, q_offsets, k_offsets, slopes), out, values, lse)


def attention_varlen_backward(g: A, q: A, k: A, v: A, y: A, lse: Any, q_offsets: Any, k_offsets: Any, *, slopes: Any = None,
                              scale: float | None = None, causal: bool = False, bottom_right: bool = False, left: int = -1,
                              right: int = -1, dropout: float = 0.0, seed: int = 0, stream: int = 0, out: Any = None) -> tuple[A, A, A]:
    """The gradients of sum g y at q, k and v, y and lse as attention_varlen gives them: attention_backward of each sequence alone.

    Operands and options: as of attention_varlen; g and y have its result's shape. out is a tuple of arrays or None.
    """
    values = (scale, causal, bottom_right, left, right, dropout, seed, stream)
    result: tuple[A, A, A] = _core.attention_varlen_backward((g, q, k, v, y, lse, q_offsets, k_offsets, slopes), out, values)
    return result


def attention_paged(q: Any, k_pages: Any, v_pages: Any, table: Any, lengths: Any, *, q_offsets: Any = None, slopes: Any = None,
                    scale: float | None = None, causal: bool = False, left: int = -1, right: int = -1, lse: bool = False) -> Any:
    """attention of the last queries of sequences whose keys and values lie in pages, each with the bits that it has alone.

    Key j of sequence i is row j mod size of page table[i, j // size]; there are lengths[i] keys. Queries are the last ones of their sequence:
    bottom_right. Pages only name keys: those in use are copied, once, by indexing (memory for the keys and values of all sequences, without
    padding), and attention_varlen does the rest. The call waits for table and lengths.

    q: f16 bf16 f32 f64, (sequences, queries, H, D); with q_offsets (Lq, H, D), as of attention_varlen; the result is like q, with E for D
    k_pages, v_pages: (pages, size, G, D) and (pages, size, G, E)
    table: i64 or i32, (sequences, n), n size at least the greatest length; entries behind a sequence's last key are not looked at
    lengths: i64 or i32, (sequences)
    slopes, scale, causal, left, right: as of attention
    lse: return lse, (sequences, H, queries), or (H, Lq), as well, in a tuple
    """
    op = "attention_paged"
    for name, x, rank in (("q", q, 4 if q_offsets is None else 3), ("k_pages", k_pages, 4), ("v_pages", v_pages, 4)):
        if getattr(x, "ndim", None) != rank:
            raise ValueError(f"{op}: {name}: expected an array of {rank} axes, got {getattr(x, 'shape', type(x).__name__)}")
    pages, size = k_pages.shape[:2]
    if tuple(v_pages.shape[:2]) != (pages, size):
        raise ValueError(f"{op}: v_pages: expected {pages} pages of {size}, as k_pages has, got shape {tuple(v_pages.shape)}")
    entries, counts = _integers(op, "table", table, 2), _integers(op, "lengths", lengths, 1)
    if len(entries) != len(counts):
        raise ValueError(f"{op}: lengths: expected a number for each of the {len(entries)} sequences of table, got {len(counts)}")
    most = entries.shape[1] * size
    if counts.size > 0 and not (0 <= counts.min() and counts.max() <= most):
        raise ValueError(f"{op}: lengths: expected 0 to {most}, what {entries.shape[1]} pages of {size} hold, "
                         f"got {counts.min()} to {counts.max()}")
    places = [numpy.arange(n) for n in counts]
    page = numpy.concatenate([row[place // size] for row, place in zip(entries, places)] or [numpy.arange(0)])
    place = numpy.concatenate([place % size for place in places] or [numpy.arange(0)])
    if page.size > 0 and not (0 <= page.min() and page.max() < pages):
        raise IndexError(f"{op}: table: expected numbers of pages, 0 to {pages - 1}, got {page.min()} to {page.max()}")
    index = _index(page, k_pages), _index(place, k_pages)
    k, v = k_pages[index], v_pages[index]
    k_offsets = numpy.concatenate([[0], numpy.cumsum(counts)])
    shape = q.shape
    if q_offsets is None:
        if shape[0] != len(counts):
            raise ValueError(f"{op}: q: expected {len(counts)} sequences, as table has, got shape {tuple(shape)}")
        q_offsets = numpy.arange(len(counts) + 1) * shape[1]
        q = q.reshape((shape[0] * shape[1], *shape[2:]))
    results = attention_varlen(q, k, v, q_offsets, k_offsets, slopes=slopes, scale=scale, causal=causal, bottom_right=True, left=left,
                               right=right, lse=lse)
    if len(shape) == 3:
        return results
    y, *more = results if lse else (results,)
    y = y.reshape((*shape[:3], y.shape[-1]))
    return (y, more[0].reshape((shape[2], *shape[:2])).swapaxes(0, 1)) if lse else y
