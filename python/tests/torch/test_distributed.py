"""Reductions between processes against exact integers, and trainings that end in the same bits on any number of processes."""

import os
import random
import re
import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import librepdl.torch
import ranks
from exact import FORMATS, adversarial, expected_sum, rounded
from librepdl.torch.distributed import ShardSampler, shards
from librepdl.torch.distributed._shards import derived_seed

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="PyTorch without gloo")


# ---- collectives ----


def bits(t):
    return [struct.pack("<d", v) for v in t.double().flatten().tolist()]


def collectives(seed):
    """Every reduction of every format, enabled and not, on rows that all ranks know."""
    size, rank = dist.get_world_size(), dist.get_rank()
    ours = librepdl.torch.distributed
    found = {}
    for dtype, count in ((torch.float32, 20000), (torch.float16, 7000), (torch.bfloat16, 7000), (torch.float64, 7000), (torch.float32, 1)):
        rows = adversarial(size, count, dtype, seed)
        mine = rows[rank]
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            x = mine.clone()
            ours.all_reduce(x, op)
            found[dtype, count, str(op)] = x
            with librepdl.torch.reproducible():
                handles = [(y := mine.clone(), dist.all_reduce(y, op, async_op=True)) for _ in range(3)]
                for y, handle in handles:
                    handle.wait()
                    assert bits(y) == bits(x)
                y = mine.clone()
                dist.reduce(y, size - 1, op)
                assert bits(y) == bits(x if rank == size - 1 else mine)
                shifted = [mine.roll(r) for r in range(size)]  # rank r's output: the sum, shifted by r
                y = torch.empty(count, dtype=dtype)
                dist.reduce_scatter_tensor(y, torch.cat(shifted), op)
                assert bits(y) == bits(x.roll(rank))
                uneven = list(mine.split([count // size + r for r in range(size - 1)] + [count - sum(count // size + r for r in range(size - 1))])
                              if count > 100 else mine.split([1] + [0] * (size - 1)))
                y = torch.empty_like(uneven[rank])
                ours.reduce_scatter(y, uneven, op)
                assert bits(y) == bits(x.split([len(u) for u in uneven])[rank])
                strided = torch.zeros(count, 2, dtype=dtype)
                strided[:, 1] = mine
                dist.all_reduce(strided[:, 1], op)
                assert bits(strided[:, 1]) == bits(x) and not strided[:, 0].any()
        with librepdl.torch.reproducible():
            for op, select in ((dist.ReduceOp.MAX, torch.amax), (dist.ReduceOp.MIN, torch.amin)):
                x = mine.clone()
                dist.all_reduce(x, op)
                assert bits(x) == bits(select(rows, 0))
    assert not librepdl.torch.status()["overridden"]
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_sums_are_exact_and_rounded_once(size):
    results = ranks.run(size, collectives, size)
    for (dtype, count, op), found in results[0].items():
        for other in results[1:]:
            assert bits(other[dtype, count, op]) == bits(found)
        rows = adversarial(size, count, dtype, size).double().T.tolist()
        divisor = size if "AVG" in op else 1
        assert bits(found) == [struct.pack("<d", expected_sum(terms, divisor, dtype)) for terms in rows]


def other_calls():
    """Mixed lists, integers, subgroups, functional collectives; what is refused; calls that differ between ranks."""
    import torch.distributed._functional_collectives as functional

    librepdl.torch.enable()
    ours = librepdl.torch.distributed
    size, rank = dist.get_world_size(), dist.get_rank()
    a, b = torch.full((2, 3), 0.1 * (rank + 1)), torch.full((5,), 2.0**rank)
    ours.all_reduce([a, b])
    expected = sum(Fraction(float(torch.tensor(0.1 * (r + 1)))) for r in range(size))
    assert a.tolist() == [[rounded(expected, *FORMATS[torch.float32])] * 3] * 2 and b.tolist() == [2.0**size - 1] * 5
    whole = torch.ones(3, dtype=torch.int64)
    dist.all_reduce(whole)
    assert whole.tolist() == [size] * 3
    pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    for members, group in zip(([0, 1], [1, 2]), pairs):
        if rank in members:
            x = torch.tensor([2.0**-30 if rank == members[0] else 1.0])
            dist.all_reduce(x, group=group)
            y = torch.tensor([float(rank)])
            dist.reduce(y, members[1], group=group)
            assert y.item() == (sum(members) if rank == members[1] else rank)
    x = torch.tensor([1.5 + rank], requires_grad=True)
    y = functional.all_reduce(x, "avg", dist.group.WORLD)
    assert (y + 0).item() == 2.5
    y = functional.reduce_scatter_tensor(torch.arange(6.0), "sum", 0, dist.group.WORLD)
    assert (y + 0).tolist() == [6.0 * rank, 6.0 * rank + 3]
    # A sum, data that others move at the same time, another sum.
    first = dist.all_reduce(torch.ones(4000), async_op=True)
    z = torch.full((4,), float(rank))
    dist.broadcast(z, 1)
    second = dist.all_reduce(z, async_op=True)
    second.wait()
    first.wait()
    assert z.tolist() == [3.0] * 4
    errors = []
    for call in (lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.PRODUCT), lambda: ours.all_reduce(torch.ones(2), dist.ReduceOp.PRODUCT),
                 lambda: dist.all_reduce(torch.ones(2).to(torch.float8_e5m2)), lambda: ours.all_reduce(torch.ones(2, dtype=torch.int64)),
                 lambda: ours.all_reduce([]), lambda: ours.reduce_scatter(torch.ones(1), [torch.ones(1)]),
                 lambda: ours.reduce_scatter_tensor(torch.ones(2), torch.ones(5)), lambda: dist.all_reduce(torch.ones(2 + rank)),
                 lambda: dist.all_reduce(torch.ones(2, dtype=torch.float32 if rank else torch.float16)),
                 lambda: dist.all_reduce(torch.ones(2), async_op=True).wait() if rank else dist.reduce(torch.ones(2), 0)):
        try:
            call()
            errors.append(None)
        except (NotImplementedError, ValueError) as e:
            errors.append(f"{type(e).__name__}: {e}")
    x = torch.ones(1)
    dist.all_reduce(x)  # as ever
    return errors, x.item()


def test_lists_subgroups_and_errors():
    for rank, (errors, after) in enumerate(ranks.run(3, other_calls)):
        assert after == 3.0
        for found, part in zip(errors, ("c10d::allreduce_ (float32, cpu): not reproducible yet (the reduction PRODUCT)",
                                        "op: expected SUM, AVG, MIN or MAX, got PRODUCT", "float8_e5m2", "got torch.int64", "got none",
                                        "expected 3 tensors", "expected 3 times the output's 2 elements", "float32 [2]", "float16 [2]",
                                        "expected the same call on every rank of the group"), strict=True):
            assert found is not None and part in found, (rank, found)


def one_raises():
    librepdl.torch.enable()
    x = torch.ones(100_000)
    dist.all_reduce(x)
    if dist.get_rank() == 1:
        raise ArithmeticError("of rank 1")
    dist.all_reduce(x)


def test_a_rank_that_raises_ends_the_others():
    results = ranks.attempt(3, one_raises, timeout=20)
    assert not any(well for well, _ in results) and "of rank 1" in results[1][1]
    assert all("no answer" not in text for _, text in results)


# ---- shards ----


class Net(nn.Module):
    """Convolution, batch_norm, dropout, tied weights, and a layer that few shards use."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1) if dtype == torch.float32 else nn.Flatten()
        self.norm = nn.BatchNorm2d(4) if dtype == torch.float32 else nn.LayerNorm(16)
        self.tied = nn.Linear(64 if dtype == torch.float32 else 16, 10)
        self.mirror = nn.Linear(10, self.tied.in_features, bias=False)
        self.rare = nn.Linear(10, 10)
        self.never = nn.Linear(3, 3)
        self.to(dtype)

    def forward(self, x):
        rarely = float(x.float().mean()) > 0.1
        x = self.norm(self.conv(x)).flatten(1)
        x = F.dropout(torch.tanh(self.tied(x)), 0.25)
        x = self.tied(F.relu(F.linear(x, self.tied.weight.T) + self.mirror(x)))
        return self.rare(x) if rarely else x


def problem(samples, dtype=torch.float32):
    librepdl.torch.enable()
    torch.manual_seed(5)
    x = torch.randn(samples, 1, 4, 4)
    x[0] += 2
    return Net(dtype), x.to(dtype), torch.randint(10, (samples,))


def own_part(samples, count):
    sizes = [samples // count + (i < samples % count) for i in range(count)]
    own = count // dist.get_world_size()
    first = dist.get_rank() * own
    return slice(sum(sizes[:first]), sum(sizes[: first + own]))


def trained(samples, count, dtype=torch.float32, wrapped=False, bucket=25 << 20, steps=2):
    """The fingerprint of a training, the losses, and the gradients of its last step."""
    model, x, y = problem(samples, dtype)
    if wrapped:
        model = nn.parallel.DistributedDataParallel(model, **wrapped)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    mine, means = own_part(samples, count), []
    for _ in range(steps):
        optimizer.zero_grad()
        step, losses = shards((x[mine], y[mine]), count, model=model, bucket=bucket), []
        for a, b in step:
            losses.append(F.cross_entropy(model(a), b))
            losses[-1].backward()
        means.append(step.mean(losses).item())
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    model = model.module if wrapped else model
    state = {"model": model, "optimizer": optimizer.state_dict()["state"], "means": means, "next": torch.rand(3)}
    return librepdl.torch.fingerprint(state), means, {n: p.grad for n, p in model.named_parameters()}


def trainings():
    """Equal shards and others, every format; as plain modules and as DistributedDataParallel, in buckets of 25 MB and of 1 KB."""
    found = {(samples, dtype): trained(samples, 8, dtype) for samples, dtype in ((24, torch.float32), (27, torch.float32), (27, torch.bfloat16),
                                                                                   (27, torch.float64))}
    for options in ({"find_unused_parameters": True}, {"gradient_as_bucket_view": True, "broadcast_buffers": False}, {"static_graph": True}):
        assert trained(24, 8, torch.float32, options, 1 << 10)[0] == found[24, torch.float32][0], options
    assert found[24, torch.float32][2]["rare.weight"] is not None and found[24, torch.float32][2]["never.weight"] is None
    return [fingerprint for fingerprint, _, _ in found.values()]


class Counter(nn.Linear):
    """Counts its calls in a buffer."""

    def __init__(self):
        super().__init__(2, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_other_buffers_that_change_are_refused():
    librepdl.torch.enable()
    model = Counter()
    with pytest.raises(NotImplementedError, match="buffer calls changes"):
        for part in shards(torch.ones(4, 2), 2, model=model):
            model(part).sum().backward()
    assert model.weight.grad is None


def synchronised():
    """SyncBatchNorm in a step as it is, in shards, and in evaluation."""
    librepdl.torch.enable()
    model = nn.Sequential(nn.Linear(2, 2), nn.SyncBatchNorm(2))
    for call, error in ((lambda: model(torch.ones(4, 2)), "SyncBatchNorm of several processes: not reproducible yet (it combines rounded statistics"),
                        (lambda: list(shards(torch.ones(4, 2), 2, model=model)), "1: expected BatchNorm, whose statistics are those of a shard, got Sync")):
        with pytest.raises(NotImplementedError, match=re.escape(error)):
            call()
    return model.eval()(torch.ones(4, 2)).shape


def test_synchronised_statistics_are_refused():
    assert ranks.run(2, synchronised) == [(4, 2)] * 2


def test_the_example_has_one_fingerprint(tmp_path):
    """LeNet on one process, then on two, sharded, where one is killed, and to the end on one."""
    example = Path(__file__).resolve().parents[3] / "examples" / "pytorch" / "ddp.py"
    options = [str(example), "--reproducible", "--steps", "12", "--batch", "16"]
    saved = ["--checkpoint", str(tmp_path / "checkpoint")]
    found = []
    for launcher, more, status in (([], [], 0), (["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
                                                 [*saved, "--parallel", "fsdp", "--die-at", "11"], 1), ([], saved, 0)):
        done = subprocess.run([sys.executable, *launcher, *options, *more], capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        assert done.returncode == status, done.stderr
        found += re.findall(r"fingerprint  (\w+)", done.stdout)
    assert len(found) == 2 and found[0] == found[1]


def test_a_training_in_shards_has_one_fingerprint():
    found = {tuple(every) for size in (1, 2, 4, 8) for every in ranks.run(size, trainings, order=range(size)[::-1])}
    assert len(found) == 1 and len(set(found.pop())) == 4


def gradients_by_hand(samples, count, dtype, weights):
    """A step's gradients, and each shard's."""
    model, x, y = problem(samples, dtype)
    key = int(torch.randint(1 << 62, ()))
    torch.manual_seed(5)
    model, x, y = problem(samples, dtype)
    for a, b in shards((x, y), count, model=model, samples=weights):
        F.cross_entropy(model(a), b).backward()
    found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    parts = []
    torch.manual_seed(5)
    other, _, _ = problem(samples, dtype)
    running = None
    for i, (a, b) in enumerate(zip(x.tensor_split(count), y.tensor_split(count))):
        torch.manual_seed(derived_seed("shard", key, i))
        other.zero_grad()
        if dtype == torch.float32:
            other.norm.reset_running_stats()
            other.norm.momentum = 1.0
        F.cross_entropy(other(a), b).backward()
        parts.append({n: p.grad.clone() for n, p in other.named_parameters() if p.grad is not None})
        if dtype == torch.float32:  # RN(9/10 of what was, and 1/10 of the shard's)
            now = [other.norm.running_mean.clone(), other.norm.running_var.clone()]
            running = [librepdl.lerp_scalar(r, t, weight=0.1) for r, t in zip(running or [torch.zeros(4), torch.ones(4)], now)]
    if running:
        assert [bits(model.norm.running_mean), bits(model.norm.running_var)] == list(map(bits, running))
        assert model.norm.num_batches_tracked == count and model.norm.momentum == 0.1
    return found, parts


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("samples, count, weights", [(16, 4, None), (21, 3, None), (13, 5, None), (12, 4, "odd")])
def test_gradients_are_exact_means(samples, count, weights, dtype):
    """Each element is the exact weighted mean of the shards' gradients, rounded once; by integers."""
    by = (lambda part: int((part[1] % 2).sum())) if weights else None
    found, parts = gradients_by_hand(samples, count, dtype, by)
    _, _, y = problem(samples, dtype)
    numbers = [by((None, t)) if by else len(t) for t in y.tensor_split(count)]
    assert len(set(numbers)) > 1 or samples == 16 or samples == 21
    for name, g in found.items():
        rows = [(n, part[name].double().flatten().tolist()) for n, part in zip(numbers, parts) if name in part]
        expected = [rounded(sum((n * Fraction(row[i]) for n, row in rows), Fraction(0)) / sum(numbers), *FORMATS[dtype]) for i in range(g.numel())]
        assert bits(g) == [struct.pack("<d", v) for v in expected], name


def plainly_wrapped():
    """A DistributedDataParallel's gradients without shards(): the exact means of the ranks'. Its first hook is the user's where there is one."""
    model, x, y = problem(12)
    size, rank = dist.get_world_size(), dist.get_rank()
    rows = []
    for r in range(size):
        model.zero_grad()
        torch.manual_seed(r)
        F.cross_entropy(model(x[r::size]), y[r::size]).backward()
        rows.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    expected = {n: torch.stack([row.get(n, torch.zeros_like(rows[0][n])) for row in rows]).mean(0) for n in rows[0]}
    for options in ({}, {"bucket_cap_mb": 0.001}):
        model.zero_grad()
        wrapped = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True, **options)
        torch.manual_seed(rank)
        F.cross_entropy(wrapped(x[rank::size]), y[rank::size]).backward()
        assert all(bits(p.grad) == bits(expected[n]) for n, p in model.named_parameters() if n in expected)
    called = []
    wrapped = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
    wrapped.register_comm_hook(called, _at_once)
    wrapped(torch.ones(1, 3)).sum().backward()
    assert called
    return True


def _at_once(called, bucket):
    called.append(True)
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def test_distributed_data_parallel_takes_exact_means():
    assert all(ranks.run(3, plainly_wrapped))


def wrong_calls():
    """Errors of shards(); a part that isn't the rank's is found by all of them."""
    rank = dist.get_rank()
    model = nn.Linear(2, 2)
    used = nn.Linear(2, 2)
    used(torch.ones(1, 2)).sum().backward()
    x = torch.ones(4, 2)
    errors = []
    for call in (lambda: shards(x, 3, model=model), lambda: shards(x, 8, model=used), lambda: shards(x[:3], 8, model=model),
                 lambda: shards((x, x[:2]), 8, model=model), lambda: shards([], 8, model=model), lambda: shards(x, 8, model=x),
                 lambda: shards(x, 4, model=model, samples=lambda part: -1), lambda: shards(x, 4, model=model, samples=lambda part: 0),
                 lambda: shards(torch.ones(4 + rank, 2), 4, model=model), lambda: shards(x, 4 if rank else 8, model=model),
                 lambda: [list(s := shards(x, 4, model=model)), list(s)], lambda: shards(x, 4, model=model).mean([]),
                 lambda: ShardSampler(10, 4, 3), lambda: ShardSampler(10, 2, 4), lambda: ShardSampler(9, 4, 4, drop_last=False),
                 lambda: ShardSampler(8, 4, 4).set_epoch(0, 3)):
        try:
            call()
            errors.append("none")
        except (ValueError, TypeError, RuntimeError) as e:
            errors.append(str(e))
    torch.manual_seed(rank)
    try:
        shards(x, 4, model=model)
        errors.append("none")
    except ValueError as e:
        errors.append(str(e))
    return errors


def test_errors_of_shards():
    for errors in ranks.run(2, wrong_calls):
        for found, part in zip(errors, ("expected a multiple of the 2 ranks of the group, got 3", "call optimizer.zero_grad() before",
                                        "each of this rank's 4 shards, got 3 samples", "got first axes of 2, 4", "got first axes of no tensor",
                                        "expected a torch.nn.Module, got Tensor", "expected integers from 0", "expected a sum from 1",
                                        "expected 9 samples in shards of [3, 2, 2, 2], got shards of [2, 2, 3, 2]", "expected the same call on every",
                                        "a second time", "each of this rank's 2 shards, got 0", "multiple of the 2 ranks", "at least one sample for",
                                        "got 1 samples", "expected one of the epoch's 2 steps, got 3", "generator at"), strict=True):
            assert part in found, (found, part)


def sampled():
    sampler = ShardSampler(22, 8, 4, seed=3, drop_last=False)
    found = []
    for epoch, start in ((0, 0), (1, 0), (1, 2)):
        sampler.set_epoch(epoch, start)
        found.append(list(sampler))
        assert len(sampler) == len(found[-1])
    return found


def test_samplers_choose_by_global_index():
    whole = ranks.run(1, sampled)[0]
    parts = ranks.run(2, sampled)
    assert [[a + b for a, b in zip(*epochs)] for epochs in zip(*parts)] == whole
    assert [len(batch) for batch in whole[0]] == [8, 8, 6] and sorted(sum(whole[0], [])) == list(range(22))
    assert whole[1] != whole[0] and whole[2] == whole[1][2:]


def test_bits_that_lie_far_apart():
    """Sums that one binary64 number cannot hold; the state's size."""
    librepdl.torch.enable()
    draw = random.Random(1)
    columns = []
    for i in range(50):
        big, tiny = 2.0 ** draw.randint(60, 120), draw.choice([1.0, -1.0, 0.0]) * 2.0 ** draw.randint(-140, -60)
        third = 3.0 * draw.choice([1, 5, 7])
        # What cancels, and leaves what binary64 had no room for; midpoints times 3, with and without what breaks the tie.
        column = [big, tiny, -big] if i % 2 else [third, third * 2.0**-24, tiny]
        columns.append(column + [draw.choice([0.0, tiny, big, -big]) for _ in range(3)])
    rows = list(zip(*columns))
    for count, weights in ((6, None), (3, None), (3, lambda part: 7), (6, lambda part: 1 + int(part.item())),
                           (2, lambda part: 1 + int(part.item() > 0))):
        model = nn.Linear(50, 1, bias=False)
        given = torch.tensor(rows[:count])
        for part in (step := shards(torch.arange(count), count, model=model, samples=weights)):
            model.weight.grad = given[part].clone()
        numbers = [weights(torch.tensor(i)) if weights else 1 for i in range(count)]
        expected = [rounded(sum((n * Fraction(v) for n, v in zip(numbers, column)), Fraction(0)) / sum(numbers), *FORMATS[torch.float32])
                    for column in zip(*rows[:count])]
        assert bits(model.weight.grad) == [struct.pack("<d", v) for v in expected] and step.samples == sum(numbers)


# ---- models in parts, checkpoints ----


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(13, 10)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(10, 10), nn.GELU(), nn.LayerNorm(10), nn.Dropout(0.1)) for _ in range(2))
        self.head = nn.Linear(10, 13)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def whole(t):
    return t.full_tensor() if hasattr(t, "full_tensor") else t


class Training:
    """Of Blocks: as it is, sharded by FSDP, or with a sharded optimiser; 16 sequences a step in 4 shards."""

    def __init__(self, kind, policy=None):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.optim import ZeroRedundancyOptimizer

        librepdl.torch.enable()
        torch.manual_seed(3)
        self.model = Blocks()
        self.x, self.y = torch.randint(13, (2, 16, 5))
        if kind == "fsdp":
            options = {"mesh": init_device_mesh("cpu", (dist.get_world_size(),)), **({"mp_policy": policy} if policy else {})}
            for block in self.model.blocks:
                fully_shard(block, **options)
            fully_shard(self.model, **options)
        make = ZeroRedundancyOptimizer if kind == "zero" else torch.optim.AdamW
        more = {"optimizer_class": torch.optim.AdamW} if kind == "zero" else {}
        self.optimizer = make(self.model.parameters(), lr=0.01, **more)
        self.loss = None

    def step(self, die=False):
        self.optimizer.zero_grad()
        mine, losses = own_part(16, 4), []
        for a, b in (step := shards((self.x[mine], self.y[mine]), 4, model=self.model)):
            losses.append(F.cross_entropy(self.model(a).flatten(0, 1), b.flatten()))
            losses[-1].backward()
            if die and dist.get_rank() == dist.get_world_size() - 1:
                os._exit(9)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.3)
        self.optimizer.step()
        self.loss = step.mean(losses).item(), whole(norm).item()

    def fingerprint(self):
        return librepdl.torch.fingerprint({"model": {n: whole(p.detach()) for n, p in self.model.named_parameters()}, "loss": list(self.loss)})


def in_parts():
    from torch.distributed.fsdp import MixedPrecisionPolicy

    mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    found = []
    for kind, policy in (("plain", None), ("zero", None), ("fsdp", None), ("fsdp", mixed)):
        training = Training(kind, policy)
        for _ in range(2):
            training.step()
        found.append(training.fingerprint())
    with pytest.raises(NotImplementedError, match="reduce_dtype=torch.float32"):
        Training("fsdp", MixedPrecisionPolicy(param_dtype=torch.bfloat16)).step()
    training = Training("fsdp")
    training.model.set_requires_gradient_sync(False)
    with pytest.raises(NotImplementedError, match="set_requires_gradient_sync"):
        training.step()
    return found


def test_models_and_optimisers_in_parts_have_the_same_fingerprint():
    found = [every for size in (1, 2, 4) for every in ranks.run(size, in_parts)]
    assert all(every == found[0] for every in found)
    plain, zero, fsdp, mixed = found[0]
    assert plain == zero == fsdp != mixed


def resumable(folder, first, last, die_at=None):
    """Steps [first, last) of an FSDP training that is saved after each, in a folder of its own that gets its name when it is complete."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    training = Training("fsdp")
    if first:
        model, optimizer = get_state_dict(training.model, training.optimizer)
        state = {"model": model, "optimizer": optimizer, "random": torch.get_rng_state()}
        checkpoint.load(state, checkpoint_id=f"{folder}/{first}")
        set_state_dict(training.model, training.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        torch.set_rng_state(state["random"])
    for step in range(first, last):
        training.step(die=step == die_at)
        model, optimizer = get_state_dict(training.model, training.optimizer)
        checkpoint.save({"model": model, "optimizer": optimizer, "random": torch.get_rng_state()}, checkpoint_id=f"{folder}/new{step + 1}")
        dist.barrier()
        if dist.get_rank() == 0:
            os.replace(f"{folder}/new{step + 1}", f"{folder}/{step + 1}")
    dist.barrier()
    return training.fingerprint()


def test_a_training_that_is_killed_goes_on_with_another_number_of_processes(tmp_path):
    expected = ranks.run(1, resumable, str(tmp_path / "whole"), 0, 4)
    killed = ranks.attempt(2, resumable, str(tmp_path / "parts"), 0, 4, 2)
    assert not any(well for well, _ in killed)
    found = ranks.run(4, resumable, str(tmp_path / "parts"), 2, 4)
    assert set(found) == set(expected)


# ---- layers in parts ----


class SmallGpt(nn.Module):
    """Two layers of attention and a perceptron; `ranks` of them share its heads and hidden units."""

    def __init__(self, ranks=1, vocabulary=21, width=16, heads=4):
        super().__init__()
        self.heads, self.size = heads // ranks, width // heads
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(8, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "q": nn.Linear(width, width), "k": nn.Linear(width, width), "v": nn.Linear(width, width, bias=False),
            "o": nn.Linear(width, width), "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width),
        }) for _ in range(2))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            y = layer["norm1"](x)
            q, k, v = (layer[n](y).unflatten(-1, (self.heads, self.size)).transpose(1, 2) for n in "qkv")
            x = x + layer["o"](F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return self.head(x)


def plan(gather):
    from librepdl.torch.distributed import ColumnParallel, RowParallel

    styles = {"tokens": RowParallel(), "places": ColumnParallel(gather=True), "head": ColumnParallel(gather=gather)}
    for i in range(2):
        styles |= {f"layers.{i}.{n}": ColumnParallel() for n in ("q", "k", "v", "up")}
        styles |= {f"layers.{i}.{n}": RowParallel() for n in ("o", "down")}
    return styles


def tensor_parallel(parts):
    """A training of 2 steps, then log-probabilities of a sampler; whether as it is, or on all ranks in parts."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    librepdl.torch.enable()
    size = dist.get_world_size() if parts else 1
    torch.manual_seed(2)
    whole_model = SmallGpt()
    model = SmallGpt(size)
    model.load_state_dict(whole_model.state_dict())
    tokens = torch.randint(21, (4, 9), generator=torch.Generator().manual_seed(1))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if parts:
        parallelize_module(model, mesh, plan(False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        logits, targets = model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
        kinds = ("mean", "none")
        if parts:
            loss, each = (librepdl.torch.distributed.cross_entropy(logits, targets, mesh, reduction=kind) for kind in kinds)
        else:
            loss, each = (F.cross_entropy(logits, targets, reduction=kind) for kind in kinds)
        (loss + (each * each.detach()).mean()).backward()
        losses += [loss.detach(), each.detach(), whole(nn.utils.clip_grad_norm_(model.parameters(), 0.5))]
        optimizer.step()
    state = {n: whole(p.detach()) for n, p in model.named_parameters()}
    sampler = SmallGpt(size)
    sampler.load_state_dict(state)
    if parts:
        parallelize_module(sampler, mesh, plan(True))
    with torch.no_grad():
        probabilities = torch.log_softmax(sampler(tokens[:, :-1]), -1).gather(2, tokens[:, 1:, None])
    return librepdl.torch.fingerprint([state, losses, probabilities])


def test_a_model_in_parts_has_the_fingerprint_of_the_whole():
    found = set(ranks.run(1, tensor_parallel, False))
    for size in (1, 2, 4):
        found |= set(ranks.run(size, tensor_parallel, True))
    assert len(found) == 1


def both_ways(in_parts):
    """Steps of 4 shards on half of the ranks each, whose layers are in parts on two; or on one process."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    librepdl.torch.enable()
    torch.manual_seed(2)
    whole_model, model = SmallGpt(), SmallGpt(2 if in_parts else 1)
    model.load_state_dict(whole_model.state_dict())
    tokens = torch.randint(21, (8, 9), generator=torch.Generator().manual_seed(1))
    group, part = None, slice(None)
    if in_parts:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "layers"))
        parallelize_module(model, mesh["layers"], plan(True))
        group, here = mesh["data"].get_group(), mesh["data"].get_local_rank()
        part = slice(4 * here, 4 * here + 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        for shard in shards(tokens[part], 4, model=model, group=group):
            F.cross_entropy(model(shard[:, :-1]).flatten(0, 1), shard[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return librepdl.torch.fingerprint({n: whole(p.detach()) for n, p in model.named_parameters()})


def test_shards_of_models_in_parts():
    assert len({*ranks.run(1, both_ways, False), *ranks.run(4, both_ways, True)}) == 1


def hard_products():
    """Sums over ranks that cancel, tie, or are infinite: RowParallel forward and ColumnParallel backward, in every format."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    librepdl.torch.enable()
    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    draw = random.Random(4)
    for dtype in FORMATS:
        precision, least, _ = FORMATS[dtype]
        a = torch.tensor([[draw.choice([1, -1]) * 2.0 ** draw.randint(-6, 6) for _ in range(6)] for _ in range(5)], dtype=torch.float64)
        a[:, 5] = -a[:, 0]  # cancels
        # A tie on one rank, which what binary64 has no room for breaks, or the bias.
        a[0] = torch.tensor([1.0, 2.0**-precision, 2.0 ** max(least, -100), 0.0, 0.0, 0.0])
        a[1] = torch.tensor([1.0, 2.0 ** (1 - precision), 2.0**-precision, 0.0, 0.0, 0.0])
        a[2] = 0.0
        a[3, 1], a[4, 2] = float("inf"), float("nan")
        b = torch.tensor([[draw.choice([1.0, 0.5, 3.0]) for _ in range(6)] for _ in range(7)])
        b[:3] = 1.0
        a, b = a.to(dtype), b.to(dtype)
        whole_row, whole_column = nn.Linear(6, 7).to(dtype), nn.Linear(7, 6).to(dtype)
        with torch.no_grad():
            whole_row.weight.copy_(b)
            whole_row.bias.copy_(torch.tensor([0.0, 2.0**-20, 0.5, -0.0, 1.0, 2.0, 3.0]))
            whole_column.weight.copy_(b.T)
        expected = whole_row(a)
        x = torch.randn(5, 7).to(dtype).requires_grad_()
        whole_column(x).backward(a)
        to_x, to_weight = x.grad, whole_column.weight.grad
        row = parallelize_module(whole_row, mesh, librepdl.torch.distributed.RowParallel())
        chunk = -(-6 // size)  # of 4 ranks the last one has nothing
        mine = slice(dist.get_rank() * chunk, (dist.get_rank() + 1) * chunk)
        assert bits(row(a[:, mine])) == bits(expected), dtype
        x.grad = None
        column = parallelize_module(whole_column, mesh, librepdl.torch.distributed.ColumnParallel())
        column.weight.grad = None
        column(x).backward(a[:, mine])
        assert bits(x.grad) == bits(to_x) and bits(column.weight.grad.full_tensor()) == bits(to_weight), dtype
    return True


def test_sums_over_ranks_of_products_are_exact():
    for size in (1, 2, 4):
        assert all(ranks.run(size, hard_products))
