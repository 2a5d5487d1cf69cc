"""Calls of librepdl's functions, and elementwise operations by the rules of aten's TensorIterator (src/map.cpp), in Python."""

import ctypes
from collections.abc import Iterable
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

import librepdl

#: Element types, as policy.def names them.
BITS = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16"}
_broadcast_shapes: Any = torch.broadcast_shapes  # which PyTorch has not typed


class Refuse(Exception):
    """Not reproducible, with a reason; without arguments: the types are not the row's."""


def plain(x: Any) -> Any:
    """What librepdl takes; autograd has seen the tensor already."""
    return x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x


def call(name: str, *operands: Any, **options: Any) -> Any:
    """librepdl's function. Its results are row-major; an option that is None is absent."""
    return getattr(librepdl, name)(*map(plain, operands), **{key: v for key, v in options.items() if v is not None})


def rounded(value: Any, dtype: torch.dtype) -> float:
    """A number as PyTorch computes with it."""
    return float(value) if dtype == torch.float64 else ctypes.c_float(float(value)).value


def common_type(operands: list[Any]) -> torch.dtype:
    """The type that tensors and Python numbers promote to."""
    found = {x.dtype for x in operands if isinstance(x, torch.Tensor)}
    if len(found) == 1:
        (first,) = found
        if all(isinstance(x, torch.Tensor) or (first in BITS and not isinstance(x, complex)) for x in operands):
            return first
    return elementwise_dtypes(*operands, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1]


def elementwise(operation: str, operands: list[Any], dtype: torch.dtype, options: dict[str, float], into: torch.Tensor | None = None,
                numbers: bool = False) -> torch.Tensor:
    """librepdl's operation on operands that promote to `dtype` and broadcast; in the tensor `into` where that is as the result.
    numbers: of a 16-bit result those are float32, and the operation rounds once from there."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    where = next((x.device for x in tensors if x.dim() > 0 or x.device.type != "cpu"), tensors[0].device)
    for x in tensors:
        if x.device != where and x.dim() > 0:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {where} and {x.device}!")
    shape = tensors[0].shape
    if any(x.shape != shape for x in tensors):
        shape = _broadcast_shapes(*(x.shape for x in tensors))
    computed = dtype
    if numbers and dtype in (torch.float16, torch.bfloat16):
        if "alpha" in options or any(not isinstance(x, torch.Tensor) or (x.dim() == 0 and x.dtype != dtype) for x in operands):
            computed = torch.float32

    def operand(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.device != where:
            return torch.full((), rounded(x, computed), dtype=computed, device=where)
        return plain(x if x.dtype == computed else x.to(computed))

    if into is not None and into.dtype == dtype and into.shape == shape:
        result = into
    else:
        like = next((x for x in tensors if x.shape == shape), None)
        result = (torch.empty(shape, dtype=dtype, device=where) if like is None else
                  torch.empty_like(like, dtype=dtype, device=where, requires_grad=False))
    getattr(librepdl, operation)(*map(operand, operands), **options, out=plain(result))
    return result


def map_(name: str, *operands: Any, **options: float) -> torch.Tensor:
    """librepdl's operation on tensors that promote and broadcast, for formulas."""
    return elementwise(name, list(operands), common_type(list(operands)), options)


def check(right: bool, message: str) -> None:
    if not right:
        raise RuntimeError(message)


def expect_all(condition: torch.Tensor, what: str) -> None:
    """PyTorch's error where the condition is not true of every element; on a GPU by an assertion of the device."""
    if condition.is_cpu:
        check(bool(condition.all()), what)
    else:
        torch._assert_async(condition.all(), what)


def axis_of(x: torch.Tensor, axis: int) -> int:
    """Not negative."""
    rank = max(x.dim(), 1)
    if not -rank <= axis < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {axis})")
    return axis % rank


def axes_of(x: torch.Tensor, axes: int | Iterable[int] | None) -> tuple[int, ...] | None:
    """Of a reduction; aten: an empty list means all."""
    found = tuple(axis_of(x, a) for a in ([axes] if isinstance(axes, int) else axes or ()))
    return found if found and x.dim() > 0 else None


def with_an_axis(t: torch.Tensor) -> torch.Tensor:
    return t.unsqueeze(0) if t.dim() == 0 else t
