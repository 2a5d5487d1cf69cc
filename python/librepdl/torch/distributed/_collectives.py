"""Reductions between processes: each element the exact sum over the ranks, rounded once."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import librepdl
from librepdl.torch.distributed._groups import Handle, Ranks, group_of

RedOp: Any = ReduceOp.RedOpType
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
#: Below this many bytes in all, each rank gets everything and adds up all of it: one message in place of two.
_SMALL = 1 << 14

#: Over the first axis, the ranks; exact, rounded once.
_OVER_RANKS: dict[Any, Callable[..., torch.Tensor]] = {RedOp.SUM: librepdl.sum, RedOp.AVG: librepdl.mean, RedOp.MIN: librepdl.min,
                                                       RedOp.MAX: librepdl.max}
_NAMES = {RedOp.SUM: "sum", RedOp.AVG: "mean", RedOp.MIN: "min", RedOp.MAX: "max"}


def takes(dtype: torch.dtype, op: Any) -> bool:
    """Whether a reduction of these elements is one of librepdl's."""
    return dtype in FLOATS and op in _OVER_RANKS


def _reduced(rows: torch.Tensor, op: Any) -> torch.Tensor:
    """Over the ranks, the first axis."""
    if len(rows) == 2 and op in (RedOp.SUM, RedOp.AVG):  # the same number, in a fifth of the time
        factor = 1.0 if op == RedOp.SUM else 0.5
        return librepdl.sum_of_products(rows[0], factor, rows[1], factor)
    return _OVER_RANKS[op](rows, 0)


def share(n: int, parts: int) -> tuple[int, list[int]]:
    """n elements in equal pieces but for the last ones: the size of a piece, and all sizes."""
    piece = -(-n // parts)
    return piece, [max(0, min(piece, n - i * piece)) for i in range(parts)]


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Their elements as one vector."""
    return tensors[0].reshape(-1).contiguous() if len(tensors) == 1 else torch.cat([t.reshape(-1) for t in tensors])


def _write(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    for t, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors])):
        t.copy_(part.view(t.shape))


def _describe(tensors: Sequence[torch.Tensor]) -> str:
    return ", ".join(f"{t.dtype} {list(t.shape)}".removeprefix("torch.") for t in tensors)


def reduce_everywhere(ranks: Ranks, rows: Sequence[torch.Tensor], over_rows: Callable[[torch.Tensor], torch.Tensor],
                      into: torch.Tensor | None = None) -> torch.Tensor:
    """Vectors of every rank, as many and as long on each, reduced by over_rows(all of them, rank after rank, as rows): an all-to-all of
    pieces, each of which one rank reduces, and an all-gather of the results. `into`: a vector, perhaps one of the rows, that may become the
    result; another one is returned where it does not."""
    n, size = rows[0].numel(), ranks.size

    def stacked(of_ranks: list[torch.Tensor], length: int) -> torch.Tensor:
        return of_ranks[0].view(size, length) if len(rows) == 1 else torch.stack([t.view(size, length) for t in of_ranks], 1).view(-1, length)

    if n * size * rows[0].element_size() <= _SMALL:
        return over_rows(stacked([ranks.gather(row) for row in rows], n))
    piece, sizes = share(n, size)
    mine = sizes[ranks.rank]
    part = over_rows(stacked([ranks.exchange(row, sizes, [mine] * size) for row in rows], mine))
    if piece * size == n:
        return ranks.gather(part, into)
    if mine < piece:
        part = torch.cat([part, part.new_zeros(piece - mine)])
    return ranks.gather(part)[:n]


# ---- jobs: what each rank of a group does ----


def _all_reduce(ranks: Ranks, tensors: Sequence[torch.Tensor], op: Any) -> None:
    ranks.agree(f"all_reduce {_NAMES[op]} of {_describe(tensors)}", tensors[0].device)
    flat = _flat(tensors)
    if flat.numel():
        found = reduce_everywhere(ranks, [flat], lambda rows: _reduced(rows, op), flat)
        if found is not flat or flat.data_ptr() != tensors[0].data_ptr():
            _write(found, tensors)


def _reduce(ranks: Ranks, tensors: Sequence[torch.Tensor], op: Any, root: int) -> None:
    ranks.agree(f"reduce {_NAMES[op]} to rank {root} of {_describe(tensors)}", tensors[0].device)
    flat = _flat(tensors)
    if not flat.numel():
        return
    _, sizes = share(flat.numel(), ranks.size)
    mine = sizes[ranks.rank]
    part = _reduced(ranks.exchange(flat, sizes, [mine] * ranks.size).view(ranks.size, mine), op)
    at_root = ranks.rank == root
    whole = ranks.exchange(part, [mine if r == root else 0 for r in range(ranks.size)], sizes if at_root else [0] * ranks.size)
    if at_root:
        _write(whole, tensors)


def _reduce_scatter(ranks: Ranks, output: torch.Tensor, inputs: Sequence[torch.Tensor], op: Any) -> None:
    """inputs[r]: what becomes the output of rank r."""
    ranks.agree(f"reduce_scatter {_NAMES[op]} of {_describe(inputs)}", output.device)
    sizes = [t.numel() for t in inputs]
    mine = output.numel()
    if sum(sizes):
        rows = ranks.exchange(_flat(inputs), sizes, [mine] * ranks.size).view(ranks.size, mine)
        if mine:
            output.copy_(_reduced(rows, op).view(output.shape))


# ---- calls ----


def _checked(name: str, tensors: Sequence[torch.Tensor], op: Any) -> Any:
    """The operation's plain form; an error for what is not reduced here."""
    kind = getattr(op, "op", op)
    if kind not in _OVER_RANKS:
        raise NotImplementedError(f"librepdl.torch.distributed.{name}: op: expected SUM, AVG, MIN or MAX, got {getattr(kind, 'name', kind)}")
    if not tensors:
        raise ValueError(f"librepdl.torch.distributed.{name}: expected tensors, got none")
    for t in tensors:
        if not isinstance(t, torch.Tensor) or t.dtype not in FLOATS or t.layout != torch.strided:
            got = f"{t.dtype}, {t.layout}" if isinstance(t, torch.Tensor) else type(t).__name__
            raise NotImplementedError(f"librepdl.torch.distributed.{name}: expected dense tensors of float16, bfloat16, float32 or float64, got "
                                      f"{got}")
        if t.dtype != tensors[0].dtype or t.device != tensors[0].device:
            raise ValueError(f"librepdl.torch.distributed.{name}: expected tensors of one type and device, got {tensors[0].dtype} on "
                             f"{tensors[0].device} and {t.dtype} on {t.device}")
    return kind


def submit_all_reduce(group: dist.ProcessGroup, tensors: Sequence[torch.Tensor], op: Any) -> Handle:
    kind, given = _checked("all_reduce", tensors, op), [t.detach() for t in tensors]

    def job(ranks: Ranks) -> list[torch.Tensor]:
        _all_reduce(ranks, given, kind)
        return given

    return group_of(group).submit(job, given[0].device, given)


def submit_reduce(group: dist.ProcessGroup, tensors: Sequence[torch.Tensor], op: Any, root: int) -> Handle:
    """root: the rank in the group."""
    kind, given = _checked("reduce", tensors, op), [t.detach() for t in tensors]

    def job(ranks: Ranks) -> list[torch.Tensor]:
        _reduce(ranks, given, kind, root)
        return given

    return group_of(group).submit(job, given[0].device, given)


def submit_reduce_scatter(group: dist.ProcessGroup, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]],
                          op: Any) -> Handle:
    """outputs[i] becomes what the i-th list of inputs, one tensor a rank, is reduced to."""
    kind = _checked("reduce_scatter", [*outputs, *(t for one in inputs for t in one)], op)
    size, rank = group.size(), group.rank()
    for output, one in zip(outputs, inputs):
        if len(one) != size:
            raise ValueError(f"librepdl.torch.distributed.reduce_scatter: expected {size} tensors, one for each rank of the group, got {len(one)}")
        if output.shape != one[rank].shape:
            raise ValueError(f"librepdl.torch.distributed.reduce_scatter: output: expected the shape of input {rank}, {list(one[rank].shape)}, got "
                             f"{list(output.shape)}")
    given = [t.detach() for t in outputs]

    def job(ranks: Ranks) -> list[torch.Tensor]:
        for output, one in zip(given, inputs):
            _reduce_scatter(ranks, output, [t.detach() for t in one], kind)
        return given

    return group_of(group).submit(job, given[0].device, [*given, *(t for one in inputs for t in one)])


def pieces_of(input: torch.Tensor, output: torch.Tensor, size: int) -> list[torch.Tensor]:
    """Of reduce_scatter_tensor: the input as one tensor for each rank."""
    if input.numel() != size * output.numel():
        raise ValueError(f"librepdl.torch.distributed.reduce_scatter_tensor: input: expected {size} times the output's {output.numel()} elements, "
                         f"one part for each rank of the group, got {input.numel()}")
    return list(input.reshape(size, *output.shape).unbind())
