"""Reductions between processes against exact integers, and trainings that end in the same bits on any number of processes."""

import math
import random
import struct
from fractions import Fraction

import pytest
import torch
import torch.distributed as dist

import librepdl.torch
import ranks

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="PyTorch without gloo")

#: Precision, the exponent of the least subnormal number, of the greatest number's leading bit.
FORMATS = {torch.float16: (11, -24, 15), torch.bfloat16: (8, -133, 127), torch.float32: (24, -149, 127), torch.float64: (53, -1074, 1023)}


# ---- collectives ----


def rounded(value, precision, least, greatest):
    """A Fraction, to the nearest number of the format, ties to even: by integers alone."""
    if value == 0:
        return 0.0
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    n = round(value / unit)  # ties to even
    result = n * unit
    if abs(result) >= Fraction(2) ** (greatest + 1):
        return float("inf") if n > 0 else float("-inf")
    return math.copysign(float(result), value)


def expected_sum(terms, divisor, dtype):
    if any(t != t for t in terms) or (float("inf") in terms and float("-inf") in terms):
        return float("nan")
    for infinity in (float("inf"), float("-inf")):
        if infinity in terms:
            return infinity
    return rounded(sum(map(Fraction, terms), Fraction(0)) / divisor, *FORMATS[dtype])


def adversarial(size, count, dtype, seed):
    """Rows, one for a rank, of numbers that cancel, tie, overflow on the way, or are special."""
    precision, least, greatest = FORMATS[dtype]
    draw = random.Random(seed)
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.0**least, -(2.0**least), 2.0**greatest, -(2.0**greatest)]
    columns = []
    for i in range(count):
        kind = i % 5
        if kind == 0:  # wide exponents
            column = [draw.uniform(-2, 2) * 2.0 ** draw.randint(max(least, -60), min(greatest, 60) - 2) for _ in range(size)]
        elif kind == 1:  # the last one cancels what the others add up to
            column = [draw.uniform(-2, 2) * 2.0 ** draw.randint(-12, 12) for _ in range(size - 1)]
            column.append(-sum(column) + draw.choice([0, 2.0**max(least, -40)]))
        elif kind == 2:  # a tie, and something that breaks it, or not
            column = [1.0 + draw.randint(0, 7) * 2.0 ** (1 - precision), 2.0**-precision,
                      draw.choice([0.0, 1, -1]) * 2.0 ** max(least, -100)] + [0.0] * size
        elif kind == 3:  # sums of parts overflow
            column = [2.0**greatest, 2.0**greatest, -(2.0**greatest), 1.0] + [-(2.0**greatest)] * size
        else:
            column = [draw.choice(special) for _ in range(size)]
        column = column[:size]
        draw.shuffle(column)
        columns.append(column)
    return torch.tensor(columns, dtype=torch.float64).to(dtype).T.contiguous()


def bits(t):
    return [struct.pack("<d", v) for v in t.double().flatten().tolist()]


def collectives(seed):
    """Every reduction of every format, enabled and not, on rows that all ranks know."""
    size, rank = dist.get_world_size(), dist.get_rank()
    ours = librepdl.torch.distributed
    found = {}
    for dtype, count in ((torch.float32, 3000), (torch.float16, 1000), (torch.bfloat16, 1000), (torch.float64, 1000), (torch.float32, 1)):
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
