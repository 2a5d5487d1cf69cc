"""What stands in the place of c10d's reductions while librepdl is enabled."""

import warnings
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad

from librepdl.torch._door import door
from librepdl.torch.distributed import _collectives
from librepdl.torch.distributed._collectives import takes

if TYPE_CHECKING:
    from librepdl.torch._patches import Patches

_Kernel = Callable[..., Any]


def _options(kind: Any, op: Any, timeout: int, **more: Any) -> Any:
    options = kind()
    options.reduceOp = op
    if timeout >= 0:
        options.timeout = timedelta(milliseconds=timeout)
    for name, value in more.items():
        setattr(options, name, value)
    return options


def _ours(name: str, tensors: Sequence[torch.Tensor], op: Any) -> bool:
    """Whether librepdl reduces these; else the backend does: integers, and what is exempt, or not strict."""
    if door().is_exempt():
        return False
    floats = [t for t in tensors if t.is_floating_point() or t.is_complex()]
    if not floats:
        return False
    if len(floats) == len(tensors) and all(takes(t.dtype, op) for t in tensors):
        return True
    first = floats[0]
    why = (f"the reduction {op.name}" if takes(first.dtype, dist.ReduceOp.SUM)
           else "reductions of float16, bfloat16, float32 and float64 are")
    door().refuse(f"c10d::{name} ({str(first.dtype).removeprefix('torch.')}, {first.device.type})", why)
    return False


def _kernels() -> dict[str, _Kernel]:
    """By the name of c10d's operation. Groups, operations and handles come and go as objects of TorchScript."""
    c10d = torch._C._distributed_c10d
    group_of: Any = c10d.ProcessGroup.unbox

    def kind_of(op: Any) -> Any:
        return dist.ReduceOp.RedOpType(op.op())

    def backend(group: Any, tensors: Sequence[torch.Tensor]) -> Any:
        return group._get_backend(tensors[0].device)

    def allreduce(tensors: Any, group: Any, op: Any, sparse: Any, async_op: bool = True, timeout: int = -1) -> Any:
        group, kind = group_of(group), kind_of(op)
        if _ours("allreduce_", tensors, kind):
            work = _collectives.submit_all_reduce(group, tensors, kind)
        else:
            work = backend(group, tensors).allreduce(tensors, _options(dist.AllreduceOptions, kind, timeout))
        return tensors, work.boxed()

    def allreduce_coalesced(tensors: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1) -> Any:
        group, kind = group_of(group), kind_of(op)
        if _ours("allreduce_coalesced_", tensors, kind):
            return _collectives.submit_all_reduce(group, tensors, kind).boxed()
        return backend(group, tensors).allreduce_coalesced(tensors, _options(dist.AllreduceCoalescedOptions, kind, timeout)).boxed()

    def reduce(tensors: Any, group: Any, op: Any, root: int, root_tensor: int, async_op: bool = True, timeout: int = -1) -> Any:
        group, kind = group_of(group), kind_of(op)
        if _ours("reduce_", tensors, kind):
            return _collectives.submit_reduce(group, tensors, kind, root).boxed()
        return backend(group, tensors).reduce(tensors, _options(dist.ReduceOptions, kind, timeout, rootRank=root, rootTensor=root_tensor)).boxed()

    def reduce_scatter(outputs: Any, inputs: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1) -> Any:
        group, kind = group_of(group), kind_of(op)
        if _ours("reduce_scatter_", outputs, kind):
            work = _collectives.submit_reduce_scatter(group, outputs, inputs, kind)
        else:
            work = backend(group, outputs).reduce_scatter(outputs, inputs, _options(dist.ReduceScatterOptions, kind, timeout))
        return outputs, work.boxed()

    def reduce_scatter_base(output: Any, input: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1) -> Any:
        group, kind = group_of(group), kind_of(op)
        if _ours("_reduce_scatter_base_", [output], kind):
            pieces = _collectives.pieces_of(input, output, group.size())
            work = _collectives.submit_reduce_scatter(group, [output], [pieces], kind)
        else:
            work = backend(group, [output])._reduce_scatter_base(output, input, _options(dist.ReduceScatterOptions, kind, timeout))
        return output, work.boxed()

    def reduce_scatter_coalesced(outputs: Any, inputs: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1) -> Any:
        group, kind = group_of(group), kind_of(op)
        if _ours("reduce_scatter_tensor_coalesced_", outputs, kind):
            pieces = [_collectives.pieces_of(i, o, group.size()) for i, o in zip(inputs, outputs)]
            return _collectives.submit_reduce_scatter(group, outputs, pieces, kind).boxed()
        options = _options(dist.ReduceScatterOptions, kind, timeout)
        return backend(group, outputs).reduce_scatter_tensor_coalesced(outputs, inputs, options).boxed()

    return {"allreduce_": allreduce, "allreduce_coalesced_": allreduce_coalesced, "reduce_": reduce, "reduce_scatter_": reduce_scatter,
            "_reduce_scatter_base_": reduce_scatter_base, "reduce_scatter_tensor_coalesced_": reduce_scatter_coalesced}


# ---- DistributedDataParallel ----


def _mean(group: dist.ProcessGroup, bucket: Any) -> "torch.futures.Future[torch.Tensor]":
    """The exact mean of the ranks' gradients, rounded once; PyTorch's own reduction divides first, and rounds more than once."""
    handle = _collectives.submit_all_reduce(group, [bucket.buffer()], dist.ReduceOp.AVG)
    return handle.get_future().then(lambda done: done.value()[0])


def _parallel(patches: "Patches") -> None:
    """Models without a hook of their own for their gradients get ours at their next forward pass."""
    before: Callable[..., Any] = DistributedDataParallel._pre_forward
    register: Any = torch._C._distributed_c10d._register_comm_hook
    hooked: weakref.WeakSet[Any] = weakref.WeakSet()  # reducers

    def pre_forward(self: Any, *inputs: Any, **options: Any) -> Any:
        if not self._comm_hooks and self.reducer not in hooked:
            hooked.add(self.reducer)
            try:
                register(self.reducer, self.process_group, _mean)
            except RuntimeError:
                pass  # there is one: of PyTorch's built-in hooks, or ours from before
        return before(self, *inputs, **options)

    patches.set(DistributedDataParallel, "_pre_forward", pre_forward)


def _synchronised(patches: "Patches") -> None:
    """SyncBatchNorm in training: an element of the result is one rounding of a formula of the joined batch's exact statistics, which the
    processes' own, rounded, do not determine."""
    before: Callable[..., torch.Tensor] = torch.nn.SyncBatchNorm.forward

    def forward(self: Any, input: torch.Tensor) -> torch.Tensor:
        if self.training and dist.is_initialized() and dist.get_world_size(self.process_group) > 1 and not door().is_exempt():
            door().refuse("SyncBatchNorm of several processes", "it combines rounded statistics; BatchNorm in "
                          "librepdl.torch.distributed.shards has the same bits on any number of processes")
        return before(self, input)

    patches.set(torch.nn.SyncBatchNorm, "forward", forward)


# ---- norms of gradients in parts ----


def _norms(patches: "Patches", tensor: Any) -> None:
    """clip_grad_norm_ of DTensors: each gradient's norm is that of all of it, rounded once, as on one process. tensor: torch.distributed.tensor"""
    DTensor = tensor.DTensor
    before: Callable[..., torch.Tensor] = clip_grad._get_total_norm

    def total_norm(tensors: Any, norm_type: float = 2.0, *more: Any, **options: Any) -> torch.Tensor:
        given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        parts = [t for t in given if isinstance(t, DTensor)]
        if not parts:
            return before(given, norm_type, *more, **options)
        # The norm of one number is that number.
        found = before([torch.linalg.vector_norm(t.full_tensor(), norm_type) if isinstance(t, DTensor) else t for t in given], norm_type, *more,
                       **options)
        if len(parts) < len(given):
            return found
        mesh = parts[0].device_mesh
        return cast(torch.Tensor, DTensor.from_local(found, mesh, [tensor.Replicate()] * mesh.ndim, run_check=False))

    clip: Callable[..., None] = clip_grad._clip_grads_with_norm_

    def clip_grads(parameters: Any, max_norm: float, total_norm: torch.Tensor, foreach: bool | None = None) -> None:
        given = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        if len({isinstance(p.grad, DTensor) for p in given if p.grad is not None}) > 1:
            foreach = False  # a list is of one kind
        clip(given, max_norm, total_norm, foreach)

    patches.set(clip_grad, "_clip_grads_with_norm_", clip_grads)
    patches.set(torch.nn.utils, "clip_grads_with_norm_", clip_grads)
    patches.set(clip_grad, "_get_total_norm", total_norm)
    patches.set(torch.nn.utils, "get_total_norm", total_norm)


def place(patches: "Patches") -> None:
    """Puts the kernels at the dispatcher's keys, over the refusals that stand there, until patches.leave()."""
    _parallel(patches)
    _synchronised(patches)
    patches.after_import("torch.distributed.tensor", lambda module: _norms(patches, module))
    for key in ("CPU", "CUDA"):
        library = torch._C._dispatch_library("IMPL", "c10d", key, "librepdl", 0)  # as those of src/register.cpp: status() knows them by it
        patches.finally_(library.reset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel was there
            for name, kernel in _kernels().items():
                library.impl(name, key, kernel)
