"""FSDP2 (torch.distributed.fsdp.fully_shard) in shards(): reduce-scatters that keep the exact sum until the last shard."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter
from torch.distributed.tensor import Shard

from librepdl.torch.distributed._exact import Sum
from librepdl.torch.distributed._groups import Ranks, group_of


class _ExactReduceScatter(ReduceScatter):
    """Of one module: the sum of this rank's part of its gradients. FSDP adds what it gives to the gradients: -0, which changes no number,
    until the last shard, then the result."""

    def __init__(self, name: str) -> None:
        self._name, self._sum = name, Sum()
        self._weights: Sequence[int] = ()
        self._divisor: int | None = None
        self.calls, self._size = 0, 0

    def begin_shard(self, weights: Sequence[int], divisor: int | None) -> None:
        """weights: of the ranks' shards; divisor: in the last one."""
        self._weights, self._divisor = weights, divisor
        self.calls = 0

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: dist.ProcessGroup, op: Any,
                 async_op: bool = False) -> None:
        self.calls += 1
        n, size = output_tensor.numel(), group.size()
        if self.calls > 1 or self._size not in (0, n):
            raise NotImplementedError(f"shards: model: {self._name}: expected one backward pass in each shard, with gradients of the same parameters "
                                      "in all of them, as FSDP reduces at once")
        self._size = n

        def job(ranks: Ranks) -> list[torch.Tensor]:
            ranks.agree(f"reduce_scatter of shards of {self._name}, {output_tensor.dtype} {n}", output_tensor.device)
            rows = ranks.exchange(input_tensor.detach().reshape(-1), [n] * size, [n] * size).view(size, n)
            for row, weight in zip(rows.unbind(), self._weights):
                if weight or row.dtype == torch.float64:
                    self._sum.add(row if weight else torch.zeros_like(row), weight)
            if self._divisor is None:
                output_tensor.fill_(-0.0)
            else:
                if not self._sum.rows:
                    self._sum.add(torch.zeros_like(output_tensor))
                output_tensor.copy_(self._sum.over(self._divisor, output_tensor.dtype))
            return [output_tensor]

        group_of(group).submit(job, output_tensor.device).wait()


class ExactReduceScatters:
    """Those of a model; none where nothing is sharded by FSDP, or on one process, where FSDP reduces nothing."""

    def __init__(self, model: nn.Module, size: int) -> None:
        self.parameters: set[int] = set()  #: ids of those whose gradients they reduce
        self._placed: list[tuple[Any, Any, Any, _ExactReduceScatter]] = []
        for name, module in model.named_modules():
            if not isinstance(module, FSDPModule):
                continue
            state = module._get_fsdp_state()
            groups = state._fsdp_param_groups if hasattr(state, "_fsdp_param_groups") else [state._fsdp_param_group]
            for of_parameters in filter(None, groups):
                name = name or type(module).__name__
                self._check(name, of_parameters, size)
                if size > 1:
                    self.parameters.update(id(p.sharded_param) for p in of_parameters.fsdp_params)
                    self._placed.append((of_parameters, of_parameters._reduce_scatter_comm, of_parameters.gradient_divide_factor,
                                         _ExactReduceScatter(name)))

    @staticmethod
    def _check(name: str, of_parameters: Any, size: int) -> None:
        for p in of_parameters.fsdp_params:
            placements = p.sharded_param.placements
            if len(placements) != 1 or not isinstance(placements[0], Shard) or p.sharded_param.device_mesh.size() != size:
                raise NotImplementedError(f"shards: model: {name}: expected parameters sharded by FSDP over the {size} processes of the group, and "
                                          f"nothing else, got {placements} on {p.sharded_param.device_mesh}")
        policy = of_parameters.mp_policy
        for p in of_parameters.fsdp_params:
            dtype = p.sharded_param.dtype
            reduced = policy.reduce_dtype or policy.param_dtype or dtype
            if reduced != dtype:
                raise NotImplementedError(f"shards: model: {name}: expected gradients reduced in the parameters' type, {dtype} "
                                          f"(MixedPrecisionPolicy(reduce_dtype={dtype})), got {reduced}")
        if not of_parameters.reduce_grads or of_parameters.gradient_divide_factor is not None:
            raise NotImplementedError(f"shards: model: {name}: expected FSDP's own reduction of gradients, got set_requires_gradient_sync(False) or "
                                      "set_gradient_divide_factor")

    def place(self) -> None:
        for of_parameters, _, _, scatter in self._placed:
            of_parameters._reduce_scatter_comm = scatter
            of_parameters.gradient_divide_factor = 1.0  # FSDP divides nothing

    def begin_shard(self, weights: Sequence[int], divisor: int | None) -> None:
        for *_, scatter in self._placed:
            scatter.begin_shard(weights, divisor)

    def end_shard(self) -> None:
        if self._placed and len({scatter.calls for *_, scatter in self._placed}) != 1:
            missing = ", ".join(scatter._name for *_, scatter in self._placed if not scatter.calls)
            raise NotImplementedError(f"shards: model: expected gradients of every module that FSDP shards in each shard, got none of {missing}")

    def restore(self) -> None:
        for of_parameters, scatter, factor, _ in self._placed:
            of_parameters._reduce_scatter_comm = scatter
            of_parameters.gradient_divide_factor = factor
