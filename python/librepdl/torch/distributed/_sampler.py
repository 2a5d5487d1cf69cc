"""Which samples a process takes, so that the global batches do not depend on the number of processes."""

from collections.abc import Iterator, Sized

import torch
import torch.distributed as dist
from torch.utils.data import Sampler

from librepdl.torch.distributed._shards import derived_seed, shard_sizes


class ShardSampler(Sampler[list[int]]):
    """The batch_sampler of a DataLoader: in each step the indices of this process's shards, as shards() takes them.

        sampler = ShardSampler(dataset, batch=256, count=8, seed=1)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for x, y in DataLoader(dataset, batch_sampler=sampler):
                for x, y in shards((x, y), 8, model=model): ...

    data: what has a length, or the length
    batch: samples of a step, of all processes
    count: of the shards of a step, a multiple of the number of processes
    shuffle: in an order that depends on the seed and the epoch alone
    drop_last: leave out a last batch that is not full; else it must have `count` samples or more
    group: the processes; None: all
    """

    def __init__(self, data: Sized | int, batch: int, count: int = 8, *, shuffle: bool = True, seed: int = 0, drop_last: bool = True,
                 group: dist.ProcessGroup | None = None) -> None:
        self._length = data if isinstance(data, int) else len(data)
        there = dist.is_initialized()
        self._size, self._rank = (dist.get_world_size(group), dist.get_rank(group)) if there else (1, 0)
        if count < 1 or count % self._size:
            raise ValueError(f"ShardSampler: count: expected a multiple of the {self._size} ranks of the group, got {count}")
        if batch < count:
            raise ValueError(f"ShardSampler: batch: expected at least one sample for each of the {count} shards, got {batch}")
        rest = self._length % batch
        if not drop_last and 0 < rest < count:
            raise ValueError(f"ShardSampler: drop_last: expected True, or a last batch of at least one sample for each of the {count} shards, got "
                             f"{rest} samples")
        self._steps = self._length // batch + (not drop_last and rest > 0)
        self._batch, self._count, self._shuffle, self._seed, self._epoch, self._start = batch, count, shuffle, seed, 0, 0

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """The order is that of this epoch from now on; it begins with step `start`, where a training goes on."""
        if not 0 <= start <= self._steps:
            raise ValueError(f"ShardSampler.set_epoch: start: expected one of the epoch's {self._steps} steps, got {start}")
        self._epoch, self._start = epoch, start

    def __len__(self) -> int:
        return self._steps - self._start

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.arange(self._length)
        if self._shuffle:
            order = torch.randperm(self._length, generator=torch.Generator().manual_seed(derived_seed("epoch", self._seed, self._epoch)))
        own = self._count // self._size
        for step in range(self._start, self._steps):
            chosen = order[step * self._batch: (step + 1) * self._batch].tolist()
            sizes = shard_sizes(len(chosen), self._count)
            begin = sum(sizes[: self._rank * own])
            yield chosen[begin: begin + sum(sizes[self._rank * own: (self._rank + 1) * own])]
