"""A training step in shards: the same gradients on any number of processes."""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_leaves, tree_map

import librepdl
from librepdl.torch._door import door
from librepdl.torch.distributed._collectives import FLOATS, reduce_everywhere
from librepdl.torch.distributed._exact import LARGEST, Sum, quotient, repair
from librepdl.torch.distributed._fsdp import ExactReduceScatters
from librepdl.torch.distributed._groups import Ranks, group_of

#: Bytes of gradients that are added up and sent together.
_BUCKET = 25 << 20


def shard_sizes(samples: int, count: int) -> list[int]:
    """Of so many samples in `count` shards: the first ones may have one more."""
    return [samples // count + (i < samples % count) for i in range(count)]


def derived_seed(what: str, key: int, number: int) -> int:
    """Of a generator, from another's."""
    return int.from_bytes(hashlib.sha256(f"librepdl {what} {key} {number}".encode()).digest()[:8], "little") >> 1


def _samples(batch: Any) -> int:
    sizes = {len(t) if t.dim() else None for t in tree_leaves(batch) if isinstance(t, torch.Tensor)}
    if len(sizes) != 1 or None in sizes:
        raise ValueError("shards: batch: expected tensors whose first axis is that of the samples, got first axes of "
                         + (", ".join(map(str, sorted(sizes, key=str))) or "no tensor"))
    return int(sizes.pop())  # type: ignore[arg-type]


def _split(batch: Any, sizes: Sequence[int]) -> list[Any]:
    parts, begin = [], 0
    for size in sizes:
        parts.append(tree_map(lambda t, a=begin, b=begin + size: t[a:b] if isinstance(t, torch.Tensor) else t, batch))
        begin += size
    return parts


def _local(t: torch.Tensor) -> torch.Tensor:
    """What this process has of it."""
    return t.to_local() if isinstance(t, DTensor) else t


class _Bucket:
    """Parameters of one type and device whose gradients are one vector; of DTensors, this process's parts."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.sizes = [_local(p).numel() for p in parameters]
        self.dtype = parameters[0].dtype
        self.device = parameters[0].device
        self.used = [False] * len(parameters)
        self.sum = Sum()

    def take(self, weight: int) -> None:
        """The gradients, as they are, from the parameters to the sum. What has none counts as 0, which changes no exact sum."""
        parts = []
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                parts.append(torch.zeros(self.sizes[i], dtype=p.dtype, device=p.device))
                continue
            if p.grad.layout != torch.strided or p.grad.dtype != p.dtype:
                raise NotImplementedError(f"shards: expected dense gradients of their parameters' type, got {p.grad.dtype}, {p.grad.layout}")
            self.used[i] = True
            gradient = p.grad.detach()
            if isinstance(p, DTensor):
                gradient = cast(DTensor, gradient).redistribute(placements=p.placements)
            parts.append(_local(gradient).reshape(-1))
            p.grad = None
        self.sum.add(parts[0].clone() if len(parts) == 1 else torch.cat(parts), weight)

    def skip(self) -> None:
        """As take, of a shard that counts 0."""
        for p in self.parameters:
            p.grad = None
        if self.dtype == torch.float64:  # which has a row for each shard
            self.sum.add(torch.zeros(sum(self.sizes), dtype=self.dtype, device=self.device), 0)

    def give(self, flat: torch.Tensor, used: Sequence[bool]) -> None:
        for p, part, is_used in zip(self.parameters, torch.split(flat, self.sizes), used):
            gradient = part.view(_local(p).shape) if is_used else None
            if gradient is not None and isinstance(p, DTensor):
                gradient = DTensor.from_local(gradient, p.device_mesh, p.placements, run_check=False, shape=p.shape, stride=p.stride())
            p.grad = gradient


def _buckets(parameters: Sequence[nn.Parameter], size: int) -> list[_Bucket]:
    """In the order of the parameters, of at most so many bytes unless one parameter has more."""
    found: list[_Bucket] = []
    open_: dict[Any, list[nn.Parameter]] = {}
    filled: dict[Any, int] = {}
    for p in parameters:
        if p.dtype not in FLOATS or p.layout != torch.strided:
            raise NotImplementedError(f"shards: model: expected dense parameters of float16, bfloat16, float32 or float64, got {p.dtype}, "
                                      f"{p.layout}")
        key, needed = (p.dtype, p.device), _local(p).numel() * p.element_size()
        if key in open_ and filled[key] + needed > size:
            found.append(_Bucket(open_.pop(key)))
        if key not in open_:
            open_[key], filled[key] = [], 0
        open_[key].append(p)
        filled[key] += needed
    return [*found, *map(_Bucket, open_.values())]


class _Statistics:
    """Running statistics of batch_norm: those of each shard's batches, taken by the running ones in the order of shards at the step's end."""

    def __init__(self, model: nn.Module) -> None:
        for name, m in model.named_modules():
            if isinstance(m, nn.SyncBatchNorm) and m.training:
                raise NotImplementedError(f"shards: model: {name or 'it'}: expected BatchNorm, whose statistics are those of a shard, got "
                                          "SyncBatchNorm, whose statistics would be those of the shards that run at one time")
        self._modules: list[Any] = [m for m in model.modules() if isinstance(m, _NormBase) and m.training and m.running_mean is not None]
        self._before = [(m.momentum, m.running_mean.clone(), m.running_var.clone(), m.num_batches_tracked.clone()) for m in self._modules]
        self._found: list[list[list[torch.Tensor]]] = []  # by shard, module, call: mean, variance
        self._handles = []
        for i, m in enumerate(self._modules):
            m.momentum = 1.0  # running statistics become those of the batch
            self._handles += [m.register_forward_pre_hook(self._begin), m.register_forward_hook(lambda m, _, __, i=i: self._take(i, m))]

    @property
    def buffers(self) -> set[int]:
        return {id(b) for m in self._modules for b in m.buffers(recurse=False)}

    def begin_shard(self) -> None:
        self._found.append([[] for _ in self._modules])

    @staticmethod
    def _begin(m: Any, _: Any) -> None:
        with torch.no_grad():
            m.running_mean.zero_()
            m.running_var.zero_()

    def _take(self, i: int, m: Any) -> None:
        self._found[-1][i] += [m.running_mean.clone(), m.running_var.clone()]

    def restore(self) -> None:
        for handle in self._handles:
            handle.remove()
        for m, (momentum, mean, variance, tracked) in zip(self._modules, self._before):
            m.momentum = momentum
            with torch.no_grad():
                m.running_mean.copy_(mean)
                m.running_var.copy_(variance)
                m.num_batches_tracked.copy_(tracked)

    def update(self, ranks: Ranks) -> None:
        """After restore(): the running statistics, by those of all ranks' shards."""
        for i, m in enumerate(self._modules):
            mine = [t for shard in self._found for t in shard[i]]
            flat = torch.cat(mine) if mine else m.running_mean.new_empty(0)
            momentum = self._before[i][0]
            for part in ranks.gather_uneven(flat):
                for mean, variance in part.view(-1, 2, m.num_features).unbind():
                    m.num_batches_tracked.add_(1)
                    weight = 1.0 / float(m.num_batches_tracked) if momentum is None else momentum
                    for running, now in ((m.running_mean, mean), (m.running_var, variance)):
                        running.copy_(librepdl.lerp_scalar(running, now, weight=weight))


def _group_of_model(model: nn.Module) -> dist.ProcessGroup | None:
    """Of DistributedDataParallel and FSDP the model's own, else all processes, if there is more than this one."""
    if isinstance(model, nn.parallel.DistributedDataParallel):
        return model.process_group
    if isinstance(model, FSDPModule):
        for p in model.parameters():
            if isinstance(p, DTensor):
                return p.device_mesh.get_group()
    return dist.group.WORLD if dist.is_initialized() else None


class Shards:
    """What shards() returns: iterate over it once."""

    def __init__(self, batch: Any, count: int, model: nn.Module, group: dist.ProcessGroup | None, samples: Callable[[Any], int] | None,
                 mean: bool, bucket: int) -> None:
        self._model, self._mean, self._iterated = model, mean, False
        at = _group_of_model(model) if group is None else group
        self._group = group_of(at) if at is not None else None
        size = 1 if at is None else at.size()
        self.rank = 0 if at is None else at.rank()  #: of this process in the group
        if count < 1 or count % size:
            raise ValueError(f"shards: count: expected a multiple of the {size} ranks of the group, got {count}")
        self.count = count  #: of all shards
        self._own = count // size
        total = _samples(batch)
        sizes = shard_sizes(total, self._own)
        if sizes[-1] == 0:
            raise ValueError(f"shards: batch: expected at least one sample for each of this rank's {self._own} shards, got {total} samples")
        self._parts = _split(batch, sizes)
        counted = sizes if samples is None else [int(samples(part)) for part in self._parts]
        if any(not 0 <= n < LARGEST for n in counted):
            raise ValueError(f"shards: samples: expected integers from 0 to {LARGEST - 1}, got {counted}")
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._scatters = ExactReduceScatters(model, size)
        if any(p.grad is not None for p in self._parameters):
            raise ValueError("shards: model: expected parameters without gradients, got some with: call optimizer.zero_grad() before")
        self._buckets = _buckets([p for p in self._parameters if id(p) not in self._scatters.parameters], bucket)
        devices = {p.device for p in self._parameters} or {torch.device("cpu")}
        if len(devices) > 1:
            raise NotImplementedError(f"shards: model: expected parameters on one device, got {', '.join(sorted(map(str, devices)))}")
        (self._device,) = devices
        self._key = int(torch.randint(1 << 62, ()))
        self._agree(counted, sizes, samples is None)

    def _run(self, job: Callable[[Ranks], Any]) -> Any:
        """job(ranks), behind reductions that are under way."""
        if self._group is None:
            return job(Ranks(None))
        return self._group.submit(job, self._device).result()

    def _agree(self, counted: list[int], sizes: list[int], by_samples: bool) -> None:
        """What each shard counts, and whether all ranks are at the same step."""
        shapes = ", ".join(f"{p.dtype} {list(p.shape)}" for p in self._parameters)
        call = f"shards in {self.count}, {'mean' if self._mean else 'sum'}, generator at {self._key}, {len(self._parameters)} parameters {shapes}"

        def job(ranks: Ranks) -> list[list[int]]:
            ranks.agree(call, self._device, remember=False)
            mine = torch.tensor([*counted, *sizes], device=self._device)
            return ranks.gather(mine).view(-1, 2, self._own).transpose(0, 1).reshape(2, -1).tolist()

        weights, all_sizes = self._run(job)
        if by_samples and all_sizes != shard_sizes(sum(all_sizes), self.count):
            raise ValueError(f"shards: batch: expected {sum(all_sizes)} samples in shards of {shard_sizes(sum(all_sizes), self.count)}, got "
                             f"shards of {all_sizes}: each rank's part is that of its shards (ShardSampler)")
        self.samples = sum(weights)  #: in all shards
        if not self._mean:
            self._weights, self._divisor = [1] * self.count, 1
            return
        if not 0 < self.samples < LARGEST:
            raise ValueError(f"shards: samples: expected a sum from 1 to {LARGEST - 1}, got {self.samples}")
        common = math.gcd(*weights)
        self._weights, self._divisor = [w // common for w in weights], self.samples // common

    def __iter__(self) -> Iterator[Any]:
        if self._iterated:
            raise RuntimeError("shards: expected to be iterated over once, got a second time")
        self._iterated = True
        parallel = [m for m in self._model.modules() if isinstance(m, nn.parallel.DistributedDataParallel)]
        before = [(m.require_backward_grad_sync, m.static_graph) for m in parallel]
        statistics = _Statistics(self._model)
        versions = {name: (b, b._version) for name, b in self._model.named_buffers() if id(b) not in statistics.buffers}
        with torch.random.fork_rng([self._device] if self._device.type == "cuda" else []):
            try:
                self._scatters.place()
                for m in parallel:
                    m.require_backward_grad_sync = m.static_graph = False  # no reductions of its own
                for i, part in enumerate(self._parts):
                    shard = self.rank * self._own + i
                    torch.manual_seed(derived_seed("shard", self._key, shard))
                    statistics.begin_shard()
                    self._scatters.begin_shard(self._weights[i::self._own], self._divisor if i + 1 == self._own else None)
                    yield part
                    self._scatters.end_shard()
                    for bucket in self._buckets:
                        if self._weights[shard]:
                            bucket.take(self._weights[shard])
                        else:
                            bucket.skip()
            finally:
                statistics.restore()
                self._scatters.restore()
                for m, was in zip(parallel, before):
                    m.require_backward_grad_sync, m.static_graph = was
        for name, (b, version) in versions.items():
            if b._version != version:
                door().refuse(f"shards of a model whose buffer {name} changes", "its value would depend on the shards that a process has")
        with torch.no_grad():
            self._run(self._finish)
            self._run(statistics.update)

    def _finish(self, ranks: Ranks) -> list[torch.Tensor]:
        """The gradients, from all ranks' sums: the buckets' vectors, which a GPU's current stream is known to use then."""
        if not self._buckets:
            return []
        for bucket in self._buckets:
            if not bucket.sum.rows:  # all of this rank's shards count 0
                bucket.sum.add(torch.zeros(sum(bucket.sizes), dtype=bucket.dtype, device=bucket.device))
        counts = [len(bucket.sum.errors()[0]) for bucket in self._buckets]
        used = [flag for bucket in self._buckets for flag in bucket.used]
        header = torch.tensor([*counts, *used, *(b.sum.rows[0].dtype == b.dtype for b in self._buckets)], dtype=torch.int64, device=self._device)
        every = ranks.gather(header).view(ranks.size, -1)
        used_anywhere = every[:, len(counts):].any(0).tolist()
        with_errors = every[:, : len(counts)].any(0).tolist()
        narrow_everywhere = every[:, len(counts) + len(used):].all(0).tolist()
        begin, vectors = 0, []
        for bucket, has_errors, narrow in zip(self._buckets, with_errors, narrow_everywhere):
            flat = self._reduced(ranks, bucket, has_errors, narrow)
            bucket.give(flat, used_anywhere[begin: begin + len(bucket.parameters)])
            begin += len(bucket.parameters)
            vectors.append(flat)
        return vectors

    def _reduced(self, ranks: Ranks, bucket: _Bucket, has_errors: bool, narrow: bool) -> torch.Tensor:
        rows = bucket.sum.rows if narrow else [librepdl.convert(row, torch.float64) for row in bucket.sum.rows]
        weights = self._weights if bucket.dtype == torch.float64 else [1] * ranks.size

        def over_rows(all_rows: torch.Tensor) -> torch.Tensor:
            return quotient(all_rows, weights, self._divisor, bucket.dtype)

        flat = reduce_everywhere(ranks, rows, over_rows)
        if has_errors:
            self._repair(ranks, bucket, rows[0], flat)
        return flat

    def _repair(self, ranks: Ranks, bucket: _Bucket, row: torch.Tensor, flat: torch.Tensor) -> None:
        """Elements whose sums are not one binary64 number on each rank."""
        places, errors = (torch.cat(ranks.gather_uneven(t)) for t in bucket.sum.errors())
        repair(flat, places, errors, lambda wanted: ranks.gather(row[wanted]).view(ranks.size, -1), self._divisor)

    def mean(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """Of one number of each of this rank's shards, such as losses: as the gradients are, the exact mean (or sum) over all shards, rounded
        once, on every rank. float32 or float64."""
        if len(values) != self._own:
            raise ValueError(f"shards: mean: expected a number for each of this rank's {self._own} shards, got {len(values)}")
        mine = torch.stack([v.detach().reshape(()) for v in values])

        def job(ranks: Ranks) -> torch.Tensor:
            rows = librepdl.convert(ranks.gather(mine), torch.float64)
            kept = [i for i, w in enumerate(self._weights) if w]
            return quotient(rows[kept, None], [self._weights[i] for i in kept], self._divisor, mine.dtype)[0]

        return self._run(job)  # type: ignore[no-any-return]


def shards(batch: Any, count: int = 8, *, model: nn.Module, group: dist.ProcessGroup | None = None,
           samples: Callable[[Any], int] | None = None, mean: bool = True, bucket: int = _BUCKET) -> Shards:
    """This process's shards of a step's batch. After the loop the parameters' gradients are the mean over all samples of all processes:
    the exact sum of the shards' gradients, each times its number of samples, over the number of all samples, rounded once.

        for x, y in shards((x, y), 8, model=model):
            F.cross_entropy(model(x), y).backward()     # the mean over the shard's samples; not divided by anything
        optimizer.step()

    So a step has the same bits with 8 shards on one process, 4 on each of two, or 1 on each of eight. Each shard has a forward and a
    backward pass, random numbers of its own (from the generator's state at the step's beginning and the shard's number) and, in batch_norm,
    statistics of its own; running statistics take those of all shards in order.

    batch: tensors, also in tuples, lists and dicts, whose first axis are this process's samples (ShardSampler chooses them): those of
           shards rank * count / size and following. Of S samples in all, the first S % count shards have one more than the others
    count: of the shards of all processes; a multiple of the number of processes
    model: a module, or a DistributedDataParallel, whose own reductions are left out
    group: the processes; None: the model's, or all
    samples: samples(shard): what a shard counts, if not its samples: such as the tokens that are not ignored, where the loss is a mean over those
    mean: False: the sum of the shards' gradients, of losses that are sums
    bucket: bytes of gradients that are sent together
    Until the loop ends a process has 4 bytes more for each float32 parameter than its gradient, if it has one shard with equal weights none.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"shards: model: expected a torch.nn.Module, got {type(model).__name__}")
    return Shards(batch, count, model, group, samples, mean, bucket)
