"""Sums between processes, and trainings that do not depend on how many there are.

    import torch.distributed as dist
    import librepdl.torch, librepdl.torch.distributed

    dist.init_process_group()
    librepdl.torch.enable()                      # dist.all_reduce(x) is exact from here on; so are these functions, always:
    librepdl.torch.distributed.all_reduce(x)     # each element the exact sum over the ranks, rounded once
"""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if not dist.is_available():
    raise ImportError("librepdl.torch.distributed: expected a PyTorch with torch.distributed, got one without")

from torch.distributed import ReduceOp, all_gather, broadcast

from librepdl.torch.distributed import _collectives
from librepdl.torch.distributed._groups import Handle

if TYPE_CHECKING:
    from librepdl.torch.distributed._sampler import ShardSampler
    from librepdl.torch.distributed._shards import Shards, shards
    from librepdl.torch.distributed._tensor_parallel import ColumnParallel, RowParallel, cross_entropy

__all__ = ["ColumnParallel", "RowParallel", "ShardSampler", "Shards", "all_gather", "all_reduce", "broadcast", "cross_entropy", "reduce",
           "reduce_scatter", "reduce_scatter_tensor", "shards"]

#: What needs PyTorch's DTensor, which takes a second to import.
_LATER = {"ShardSampler": "_sampler", "Shards": "_shards", "shards": "_shards", "ColumnParallel": "_tensor_parallel",
          "RowParallel": "_tensor_parallel", "cross_entropy": "_tensor_parallel"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


_Op = ReduceOp | ReduceOp.RedOpType


def _group(group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    """The group, or that of all processes."""
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError("librepdl.torch.distributed: group: expected a process group that this process is in, got "
                         + ("none: call torch.distributed.init_process_group() first" if group is None else "one that it is not in"))
    return group


def _given(handle: Handle, async_op: bool) -> Handle | None:
    """The handle, or after waiting None, as torch.distributed's functions return it."""
    if async_op:
        return handle
    handle.wait()
    return None


def all_reduce(tensor: torch.Tensor | Sequence[torch.Tensor], op: _Op = ReduceOp.SUM, group: dist.ProcessGroup | None = None,
               async_op: bool = False) -> Handle | None:
    """Each element becomes the exact sum over the ranks, rounded once; AVG: the exact sum over the number of ranks; MIN, MAX: NaN wins,
    -0 < +0. The same bits on every rank, whatever the transport.

    tensor: float16, bfloat16, float32 or float64, of any strides; or a list of such, reduced together
    group: the ranks that take part; None: all
    async_op: return a handle, wait() of which waits for the results, and raises the error
    ValueError where ranks call with other shapes or types. Integers are torch.distributed.all_reduce's.
    """
    tensors = [tensor] if isinstance(tensor, torch.Tensor) else list(tensor)
    return _given(_collectives.submit_all_reduce(_group(group), tensors, op), async_op)


def reduce(tensor: torch.Tensor, dst: int = 0, op: _Op = ReduceOp.SUM, group: dist.ProcessGroup | None = None,
           async_op: bool = False) -> Handle | None:
    """As all_reduce, but only rank dst (of all processes) gets the result; the others' tensors stay."""
    at = _group(group)
    return _given(_collectives.submit_reduce(at, [tensor], op, dist.get_group_rank(at, dst)), async_op)


def reduce_scatter(output: torch.Tensor, input_list: Sequence[torch.Tensor], op: _Op = ReduceOp.SUM, group: dist.ProcessGroup | None = None,
                   async_op: bool = False) -> Handle | None:
    """Rank r gets what the r-th tensors of all ranks' lists are reduced to, as by all_reduce. Their sizes may differ from each other."""
    return _given(_collectives.submit_reduce_scatter(_group(group), [output], [input_list], op), async_op)


def reduce_scatter_tensor(output: torch.Tensor, input: torch.Tensor, op: _Op = ReduceOp.SUM, group: dist.ProcessGroup | None = None,
                          async_op: bool = False) -> Handle | None:
    """As reduce_scatter of the input cut into as many equal parts, along its first axis, as there are ranks."""
    at = _group(group)
    pieces = _collectives.pieces_of(input, output, at.size())
    return _given(_collectives.submit_reduce_scatter(at, [output], [pieces], op), async_op)
