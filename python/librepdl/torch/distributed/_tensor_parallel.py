"""Layers in parts on several processes, with the bits of the whole layer on one: styles for torch.distributed.tensor.parallel.

What a sum over all ranks' parts of k is made of, RN(sum over r of A_r B_r + bias), is first computed in binary64, a product on each rank by
PyTorch's own kernels and in whatever order they add; products of narrower numbers are exact there. With k terms the error is at most
k u / (1 - k u) sum |a b|, u = 2^-53 (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), and sum |a b| at most the
product of the row's and the column's norms. Where every number within that bound of the ranks' sum rounds alike, that is the result. For the
other elements each rank gives its product as two binary64 numbers, by librepdl's products; where these do not decide, the elements' rows
and columns are gathered.
"""

import math
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ParallelStyle
from torch.nn import functional as F

import librepdl
from librepdl.torch._door import door
from librepdl.torch.distributed._collectives import FLOATS, reduce_everywhere, share
from librepdl.torch.distributed._groups import Ranks, group_of

#: Elements that are decided at a time by their rows and columns.
_AT_ONCE = 4096


def _run(group: dist.ProcessGroup, job: Any, device: torch.device) -> Any:
    """What job(ranks) gives."""
    return group_of(group).submit(job, device).result()


# ---- sums of products over ranks ----


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """In binary64, by PyTorch's own kernel."""
    before = door().exempt(True)
    try:
        return torch.mm(a.double(), b.double())
    finally:
        door().exempt(before)


def _norms(x: torch.Tensor, axis: int) -> torch.Tensor:
    found: torch.Tensor = librepdl.vector_norm(librepdl.convert(x, torch.float64), axis=axis)
    return found


def _sum_of_products(ranks: Ranks, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """RN(sum over the ranks of a b, + bias): a (m, k), b (k, n) of one type, k from rank to rank another; bias (n), the same on all ranks."""
    (m, k), n = a.shape, b.shape[1]
    ranks.agree(f"a sum of products over ranks, {a.dtype} {m} x {n}", a.device)
    if ranks.size == 1:
        return librepdl.matmul(a, b, bias)  # type: ignore[no-any-return]
    flat = torch.empty(m * n, dtype=a.dtype, device=a.device)
    if not flat.numel():
        return flat.view(m, n)
    piece, sizes = share(m * n, ranks.size)
    first, mine = piece * ranks.rank, sizes[ranks.rank]
    if a.dtype == torch.float64:  # nothing is exact in binary64
        part, undecided = torch.zeros(mine, dtype=a.dtype, device=a.device), torch.arange(first, first + mine, device=a.device)
    else:
        rows = ranks.exchange(_product(a, b).view(-1), sizes, [mine] * ranks.size).view(ranks.size, mine)
        longest = int(ranks.gather(torch.tensor([k], device=a.device)).max())
        of_rows, of_columns = ranks.gather(_norms(a, 1)).view(ranks.size, m), ranks.gather(_norms(b, 0)).view(ranks.size, n)
        part, wrong = _rounded(rows, longest, of_rows, of_columns, bias, first, a.dtype)
        undecided = wrong.nonzero().flatten() + first
    padded = torch.cat([part, part.new_zeros(piece - mine)]) if mine < piece else part
    flat.copy_(ranks.gather(padded)[: m * n])
    everywhere = torch.cat(ranks.gather_uneven(undecided))
    for places in torch.split(everywhere, _AT_ONCE) if len(everywhere) else ():
        i, j = places // n, places % n
        flat[places] = _decided(ranks, a[i], b[:, j].T, None if bias is None else bias[j])
    return flat.view(m, n)


def _decided(ranks: Ranks, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """RN(sum over the ranks of the rows' products a . b, + bias): a, b (count, k), bias (count). First by each rank's product as two
    binary64 numbers; where these do not decide, all of a and b is gathered."""
    count = len(a)
    left, right = a[:, None, :], b[:, :, None]
    high = librepdl.matmul(left, right, dtype=torch.float64)
    low = librepdl.matmul(left, right, -high, dtype=torch.float64)
    terms = ranks.gather(torch.cat([high.view(-1), torch.where(high.isfinite(), low, 0.0).view(-1)])).view(2 * ranks.size, count)
    bound = librepdl.mul(librepdl.sum(terms[1::2].abs(), 0), 2.0**-52)  # the lower ones' rounding
    if a.dtype == torch.float64:
        bound = librepdl.add(bound, 2.0**-1060)  # where they are subnormal numbers
    if bias is not None:
        terms = torch.cat([terms, librepdl.convert(bias, torch.float64)[None]])
    below: torch.Tensor = librepdl.sum(torch.cat([terms, -bound[None]]), 0, dtype=a.dtype)
    above = librepdl.sum(torch.cat([terms, bound[None]]), 0, dtype=a.dtype)
    # Of finite float64 numbers a product can be infinite, and others cancel it.
    wrong = (_bits(below) != _bits(above)) | (~below.isfinite() if a.dtype == torch.float64 else torch.zeros_like(below, dtype=torch.bool))
    places = wrong.nonzero().flatten()
    if len(places):
        rest = len(places)
        parts = [torch.cat([t.view(rest, len(t) // rest) for t in ranks.gather_uneven(x[places].reshape(-1))], 1) for x in (a, b)]
        added = None if bias is None else bias[places].view(rest, 1, 1)
        below[places] = librepdl.matmul(parts[0].view(rest, 1, -1), parts[1].view(rest, -1, 1), added).view(rest)
    return below


def _bits(x: torch.Tensor) -> torch.Tensor:
    return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def _rounded(rows: torch.Tensor, k: int, of_rows: torch.Tensor, of_columns: torch.Tensor, bias: torch.Tensor | None, first: int,
             dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Elements [first, ...) of the result, as one vector, and which of them the bound leaves undecided. rows: each rank's product; k: the
    most terms of a rank."""
    size, count = rows.shape
    n = of_columns.shape[1]
    places = torch.arange(first, first + count, device=rows.device)
    top, bottom = first // n, (first + count - 1) // n + 1 if count else first // n
    # Products of norms, over the rows that the elements are in; then the elements.
    magnitudes = _product(of_rows[:, top:bottom].T, of_columns).view(-1)[first - top * n: first - top * n + count]
    if bias is not None:
        term = librepdl.convert(bias, torch.float64)[places % n]
        rows, magnitudes = torch.cat([rows, term[None]]), librepdl.add(magnitudes, term.abs())
    total = librepdl.sum(rows, 0)
    # 8 covers the roundings of the total, the norms and the ends of the interval.
    bound = librepdl.mul(magnitudes, (k + size + 8) * 2.0**-53 * 1.001)
    low, high = librepdl.convert(librepdl.sub(total, bound), dtype), librepdl.convert(librepdl.add(total, bound), dtype)
    decided = (_bits(low) == _bits(high)) | ~total.isfinite()
    return torch.where(total.isfinite(), low, librepdl.convert(total, dtype)), ~decided


def _as_matrix(x: torch.Tensor) -> torch.Tensor:
    return x.detach().reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _gradients(ctx: Any, g: torch.Tensor, x: torch.Tensor) -> tuple[Any, Any]:
    """To this rank's weight and bias."""
    to_weight = librepdl.matmul(g, _as_matrix(x), transpose_a=True) if ctx.needs_input_grad[1] else None
    return to_weight, librepdl.sum(g, 0) if ctx.needs_input_grad[2] else None


class _Column(torch.autograd.Function):
    """x (..., k) times this rank's rows of the weight (n, k); the gradient to x is a sum over all ranks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.group = group
        y: torch.Tensor = librepdl.matmul(_as_matrix(x), weight.detach(), None if bias is None else bias.detach(), transpose_b=True)
        return y.view(*x.shape[:-1], len(weight))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        x, weight = (t.detach() for t in ctx.saved_tensors)
        g, to_x = _as_matrix(gradients[0]), None
        if ctx.needs_input_grad[0]:
            to_x = _run(ctx.group, lambda ranks: _sum_of_products(ranks, g, weight, None), g.device).view(x.shape)
        return to_x, *_gradients(ctx, g, x), None


class _Row(torch.autograd.Function):
    """This rank's part of x (..., k) times its columns of the weight (n, k), summed over all ranks, plus the bias."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        flat, columns, given = _as_matrix(x), weight.detach().T, None if bias is None else bias.detach()
        y: torch.Tensor = _run(group, lambda ranks: _sum_of_products(ranks, flat, columns, given), x.device)
        return y.view(*x.shape[:-1], len(weight))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        x, weight = (t.detach() for t in ctx.saved_tensors)
        g = _as_matrix(gradients[0])
        to_x = librepdl.matmul(g, weight).view(x.shape) if ctx.needs_input_grad[0] else None
        return to_x, *_gradients(ctx, g, x), None


# ---- moving data ----


class _Select(torch.autograd.Function):
    """Rows that one rank each has: the bits of that rank's."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, here: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        ctx.save_for_backward(here)
        bits = torch.where(here[..., None], _bits(x), 0).view(-1)
        found: torch.Tensor = _run(group, lambda ranks: reduce_everywhere(ranks, [bits], lambda rows: rows.sum(0, dtype=bits.dtype)), x.device)
        return found.view(x.dtype).view(x.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        (here,) = ctx.saved_tensors
        return torch.where(here[..., None], gradients[0], 0.0), None, None


class _Gather(torch.autograd.Function):
    """The ranks' parts of the last axis side by side; every rank has the gradient of all of it, and takes its part."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        parts = _run(group, lambda ranks: ranks.gather_uneven(x.detach().reshape(-1)), x.device)
        sizes = [len(p) // max(1, x[..., 0].numel()) for p in parts]
        ctx.sizes, ctx.rank = sizes, group.rank()
        return torch.cat([p.view(*x.shape[:-1], size) for p, size in zip(parts, sizes)], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return torch.split(gradients[0], ctx.sizes, -1)[ctx.rank].contiguous(), None


def _through(function: Any, *arguments: Any) -> Any:
    """function.apply, which autograd sees."""
    return function.apply(*arguments)


# ---- styles ----


def _mesh_group(mesh: DeviceMesh, what: str) -> dist.ProcessGroup:
    if mesh.ndim != 1:
        raise ValueError(f"{what}: expected a device mesh of one axis, that of tensor parallelism, got {mesh.ndim}")
    return mesh.get_group()


def _local(parameter: Any) -> Any:
    """This rank's part; its gradient is that part's."""
    if parameter is None:
        return None
    return parameter.to_local(grad_placements=parameter.placements)


class _Style(ParallelStyle):
    """Of a Linear or an Embedding whose weight is cut along an axis."""

    _bias: Any

    def _cut(self, module: nn.Module, mesh: DeviceMesh, axis: int) -> None:
        what = type(self).__name__
        if not isinstance(module, (nn.Linear, nn.Embedding)):
            raise NotImplementedError(f"{what}: expected torch.nn.Linear or torch.nn.Embedding, got {type(module).__name__}")
        if module.weight.dtype not in FLOATS:
            raise NotImplementedError(f"{what}: expected a weight of float16, bfloat16, float32 or float64, got {module.weight.dtype}")
        if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.sparse or module.scale_grad_by_freq):
            raise NotImplementedError(f"{what}: expected an Embedding without max_norm, sparse and scale_grad_by_freq")
        for name, parameter in list(module.named_parameters(recurse=False)):
            placement = Shard(axis) if name == "weight" else self._bias
            cut = distribute_tensor(parameter.detach(), mesh, [placement], src_data_rank=self.src_data_rank)
            module.register_parameter(name, nn.Parameter(cut, requires_grad=parameter.requires_grad))


class ColumnParallel(_Style):
    """Each rank has some of a Linear's outputs, or of an Embedding's columns; the input is whole on every rank.

    gather: every rank gets the whole output; else its part of the last axis
    """

    _bias = Shard(0)

    def __init__(self, gather: bool = False) -> None:
        self._gather = gather

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        group = _mesh_group(device_mesh, "ColumnParallel")
        self._cut(module, device_mesh, 0 if isinstance(module, nn.Linear) else 1)

        def forward(x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor
            if isinstance(module, nn.Linear):
                y = _through(_Column, x, _local(module.weight), _local(module.bias), group)
            else:
                y = F.embedding(x, _local(module.weight), cast(int | None, module.padding_idx))
            return cast(torch.Tensor, _through(_Gather, y, group)) if self._gather else y

        module.forward = forward
        return module


class RowParallel(_Style):
    """Each rank has some of a Linear's inputs, which ColumnParallel layers leave there, or of an Embedding's rows; the output is whole on
    every rank, each element the exact sum over all of k, rounded once."""

    _bias = Replicate()

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        group = _mesh_group(device_mesh, "RowParallel")
        whole = module.weight.shape[0] if isinstance(module, nn.Embedding) else 0
        self._cut(module, device_mesh, 1 if isinstance(module, nn.Linear) else 0)

        def linear(x: torch.Tensor) -> torch.Tensor:
            assert isinstance(module, nn.Linear)
            return cast(torch.Tensor, _through(_Row, x, _local(module.weight), _local(module.bias), group))

        def embedding(x: torch.Tensor) -> torch.Tensor:
            assert isinstance(module, nn.Embedding)
            if x.numel() and not bool(((x >= 0) & (x < whole)).all()):
                raise IndexError("index out of range in self")
            weight = _local(module.weight)
            first = share(whole, group.size())[0] * group.rank()
            here = (x >= first) & (x < first + len(weight))
            padding = None if module.padding_idx is None or not 0 <= module.padding_idx - first < len(weight) else module.padding_idx - first
            if not len(weight):
                weight = torch.cat([weight, weight.new_zeros(1, weight.shape[1])])
            found = F.embedding(torch.where(here, x - first, 0), weight, padding)
            return cast(torch.Tensor, _through(_Select, found, here, group))

        module.forward = linear if isinstance(module, nn.Linear) else embedding
        return module


# ---- cross entropy ----


class _ToRows(torch.autograd.Function):
    """From some columns of all rows to all columns of some rows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        rows, columns = x.shape

        def job(ranks: Ranks) -> tuple[torch.Tensor, list[int]]:
            every = ranks.gather(torch.tensor([columns], device=x.device)).tolist()
            _, sizes = share(rows, ranks.size)
            mine = sizes[ranks.rank]
            taken = ranks.exchange(x.detach().reshape(-1), [s * columns for s in sizes], [mine * c for c in every])
            return torch.cat([t.view(mine, c) for t, c in zip(torch.split(taken, [mine * c for c in every]), every)], 1), every

        found: torch.Tensor
        found, ctx.columns = _run(group, job, x.device)
        ctx.group, ctx.rows = group, rows
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        g = gradients[0]

        def job(ranks: Ranks) -> torch.Tensor:
            _, sizes = share(ctx.rows, ranks.size)
            mine, columns = sizes[ranks.rank], ctx.columns[ranks.rank]
            flat = torch.cat([part.reshape(-1) for part in torch.split(g, ctx.columns, 1)])
            return ranks.exchange(flat, [mine * c for c in ctx.columns], [s * columns for s in sizes]).view(ctx.rows, columns)

        return _run(ctx.group, job, g.device), None


class _FromRows(torch.autograd.Function):
    """Every rank's numbers of its rows, one behind the other."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        parts = _run(group, lambda ranks: ranks.gather_uneven(x.detach()), x.device)
        ctx.sizes, ctx.rank = [len(p) for p in parts], group.rank()
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return torch.split(gradients[0], ctx.sizes)[ctx.rank], None


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, mesh: DeviceMesh, *, ignore_index: int = -100,
                  reduction: str = "mean") -> torch.Tensor:
    """F.cross_entropy of logits (rows, classes) whose classes are in parts on the ranks of a device mesh, as a ColumnParallel Linear leaves
    them; targets (rows) are the same on all. The bits are those of the whole logits on one process.

    reduction: "none": the logits are exchanged so that each rank has some rows; "mean", "sum", which are one rounding over all rows: each rank
    gets all logits
    """
    group = _mesh_group(mesh, "cross_entropy")
    if logits.dim() != 2 or targets.shape != logits.shape[:1]:
        raise ValueError(f"cross_entropy: logits, targets: expected (rows, classes) and (rows), got {list(logits.shape)} and {list(targets.shape)}")
    if reduction != "none":
        return F.cross_entropy(_through(_Gather, logits, group), targets, ignore_index=ignore_index, reduction=reduction)
    piece, sizes = share(len(targets), group.size())
    own = targets[piece * group.rank():][: sizes[group.rank()]]
    losses = F.cross_entropy(_through(_ToRows, logits, group), own, ignore_index=ignore_index, reduction="none")
    return cast(torch.Tensor, _through(_FromRows, losses, group))
