"""Reductions to places and bags: one rounding of the exact sum, mean or product, and what other formulas of several operations are."""

import math
from fractions import Fraction

import pytest
import torch
from torch.nn import functional as F

import librepdl.torch
from exact import FORMATS, adversarial, expected_sum, rounded

PLACES = 40


def bits(t):
    with librepdl.torch.exempt():
        t = torch.where(t.isnan(), torch.full_like(t, float("nan")), t)
        return t.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])


def product(terms, dtype):
    if any(t != t for t in terms) or (0 in terms and any(math.isinf(t) for t in terms)):
        return float("nan")
    sign = math.prod(math.copysign(1, t) for t in terms)
    if any(math.isinf(t) for t in terms):
        return sign * float("inf")
    return math.copysign(rounded(math.prod(map(Fraction, terms)), *FORMATS[dtype]), sign)


def extreme(terms, greatest):
    if any(t != t for t in terms):
        return float("nan")
    return (max if greatest else min)(terms, key=lambda t: (t, math.copysign(1, t)))


def reduced(how, terms, dtype):
    if how == "prod":
        return product(terms, dtype)
    return extreme(terms, how == "amax") if how in ("amax", "amin") else expected_sum(terms, len(terms) if how == "mean" else 1, dtype)


def hard(dtype, seed):
    """Numbers for places that get none to 33 of them, with the places and each place's numbers."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 34, (PLACES,), generator=generator)
    counts[:4] = torch.tensor([0, 1, 2, 32])
    columns = [adversarial(int(n), 1, dtype, seed * 100 + i)[:, 0] if n > 2 else torch.randn(int(n), generator=generator).to(dtype)
               for i, n in enumerate(counts)]
    place = torch.arange(PLACES).repeat_interleave(counts)
    order = torch.randperm(len(place), generator=generator)
    return torch.cat(columns)[order], place[order], [c.double().tolist() for c in columns]


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize("how", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("with_self", [False, True])
def test_scatter_and_index(dtype, how, with_self):
    for seed in range(3):
        source, place, terms = hard(dtype, seed)
        own = torch.randn(PLACES, generator=torch.Generator().manual_seed(seed)).to(dtype)
        own[0] = -0.0  # nothing goes there
        expected = [reduced(how, t + [float(o)] * with_self, dtype) if t else float(o) for t, o in zip(terms, own)]
        expected = torch.tensor(expected, dtype=torch.float64).to(dtype)
        with librepdl.torch.reproducible():
            found = own.scatter_reduce(0, place, source, how, include_self=with_self)
            assert torch.equal(bits(found), bits(expected))
            # As rows and columns of a matrix, of which the index is shorter in one; in place; over slices.
            wide, at = torch.stack([source, source.flip(0)], 1), torch.stack([place, place.flip(0)], 1)
            both = own.unsqueeze(1).repeat(1, 3).scatter_reduce_(0, at, wide, how, include_self=with_self)
            assert torch.equal(bits(both), bits(torch.stack([expected, expected, own], 1)))
            if how != "sum":
                slices = own.repeat(2, 1).index_reduce(1, place, source.repeat(2, 1), how, include_self=with_self)
                assert torch.equal(bits(slices), bits(expected.repeat(2, 1)))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
@pytest.mark.parametrize("how", ["sum", "mean", "prod", "max", "min"])
def test_segments(dtype, how):
    source, place, terms = hard(dtype, 5)
    source = torch.cat([torch.tensor(t, dtype=torch.float64) for t in terms]).to(dtype)
    lengths = torch.tensor([len(t) for t in terms])
    of_nothing = {"sum": 0.0, "mean": float("nan"), "prod": 1.0, "max": float("-inf"), "min": float("inf")}[how]
    kind = {"max": "amax", "min": "amin"}.get(how, how)
    expected = torch.tensor([reduced(kind, t, dtype) if t else of_nothing for t in terms], dtype=torch.float64).to(dtype)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    with librepdl.torch.reproducible():
        assert torch.equal(bits(torch.segment_reduce(source, how, lengths=lengths)), bits(expected))
        assert torch.equal(bits(torch.segment_reduce(source, how, offsets=offsets)), bits(expected))
        lines = torch.segment_reduce(torch.stack([source, source]), how, lengths=lengths.repeat(2, 1), axis=1)
        assert torch.equal(bits(lines), bits(expected.repeat(2, 1)))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_bags(dtype):
    """A weighted sum of rows is exact, also where products cancel or overflow on the way; the greatest rows, with the first of equal ones."""
    precision, least, greatest = FORMATS[dtype]
    big = 2.0 ** (greatest - 1)
    weight = torch.tensor([[big, 1.0], [-big, 2.0**-precision], [2.0**least, -0.0], [3.0, float("inf")], [0.1, 5.0]], dtype=torch.float64).to(dtype)
    indices, offsets = torch.tensor([0, 1, 2, 4, 2, 2, 0, 4, 4, 3]), torch.tensor([0, 3, 3, 4, 9])
    factors = torch.tensor([4.0, 4.0, 1.0, 0.3, 1.0, -1.0, 2.0**-3, 0.7, -0.7, 0.5], dtype=torch.float64).to(dtype)
    ends = [*offsets.tolist(), len(indices)]
    expected = [[expected_sum([a * b for a, b in zip(map(Fraction, factors[i:j].double().tolist()), map(Fraction, column[i:j]))], 1, dtype)
                 for column in weight[indices].double().T.tolist()] if not i == 9 else [1.5, float("inf")] for i, j in zip(ends, ends[1:])]
    with librepdl.torch.reproducible():
        found = F.embedding_bag(indices, weight, offsets, mode="sum", per_sample_weights=factors)
        assert torch.equal(bits(found), bits(torch.tensor(expected, dtype=torch.float64).to(dtype)))
        trained, parts = weight.clone().requires_grad_(), factors.clone().requires_grad_()
        g = torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        g[-1] = 0.25
        F.embedding_bag(indices[:9], trained, offsets[:4], mode="sum", per_sample_weights=parts[:9]).backward(g[:4])
        bag = torch.tensor([0, 0, 0, 2, 3, 3, 3, 3, 3])
        for row in range(5):
            of_row = [i for i in range(9) if indices[i] == row]
            exact = [expected_sum([Fraction(float(factors[i])) * Fraction(float(g[bag[i], k])) for i in of_row], 1, dtype) for k in (0, 1)]
            assert trained.grad[row].tolist() == torch.tensor(exact, dtype=torch.float64).to(dtype).tolist()
        for i in range(9):
            exact = expected_sum([Fraction(float(a)) * Fraction(float(b)) for a, b in zip(weight[indices[i]].double(), g[bag[i]].double())], 1, dtype)
            assert float(parts.grad[i]) == float(torch.tensor(exact, dtype=torch.float64).to(dtype))
        trained.grad = None
        most = F.embedding_bag(torch.tensor([0, 4, 4, 2, 1]), trained, torch.tensor([0, 3, 3]), mode="max")
        assert torch.equal(most[:2], torch.stack([torch.maximum(weight[0], weight[4]), torch.zeros(2, dtype=dtype)]))
        most[0].sum().backward()
        assert trained.grad[0].tolist() == [1, 0] and trained.grad[4].tolist() == [0, 1]


def test_formulas():
    """Of several operations, each of which is rounded."""
    librepdl.torch.enable()
    x = torch.randn(200, generator=torch.Generator().manual_seed(2))
    assert torch.equal(x.norm(3), x.abs().pow(3).sum().pow(1 / 3)) and torch.equal(x.norm(0), torch.tensor(200.0))
    half = x.bfloat16()
    assert torch.equal(half.norm(3), half.float().norm(3).bfloat16())
    assert torch.equal(x.round(decimals=2), (x * 100).round() / 100) and torch.equal(x.round(decimals=-1), (x / 10).round() * 10)
    assert torch.equal(half.round(decimals=2), half.float().round(decimals=2).bfloat16())
    assert torch.equal(torch.special.entr(x.abs()), -torch.xlogy(x.abs(), x.abs()))
    special = torch.tensor([0.0, -0.0, -1.0, float("inf"), float("nan")])
    assert str(torch.special.entr(special).tolist()) == "[0.0, 0.0, -inf, -inf, nan]"
    assert str(torch.special.xlog1py(special, torch.tensor([-1.0, 2.0, 1.0, 0.5, 0.0])).tolist()) == f"[0.0, 0.0, {-float(torch.log1p(torch.ones(())))}, inf, nan]"
    assert str(torch.angle(special).tolist()) == f"[0.0, 0.0, {float(torch.tensor(math.pi))}, 0.0, nan]"
    assert torch.equal(torch.angle(torch.tensor([-2, 3])), torch.tensor([math.pi, 0]))
    u, v, a = torch.randn(3), torch.randn(4), torch.randn(3, 4)
    assert torch.equal(torch.addr(a, u, v, beta=0.5, alpha=2), torch.addmm(a, u[:, None], v[None], beta=0.5, alpha=2))
    assert torch.logspace(-2, 2, 5).tolist() == torch.tensor([0.01, 0.1, 1, 10, 100], dtype=torch.float64).float().tolist()
    values, places = torch.tensor([[2.0, 1, 2, 1, 3], [float("nan"), 0, -0.0, float("nan"), 5]]).mode(1)
    assert str(values.tolist()) == "[1.0, -0.0]" and places.tolist() == [3, 2]
    assert torch.equal(torch.special.modified_bessel_i0(x), torch.i0(x)) and torch.equal(torch.special.modified_bessel_i1(x), torch.special.i1(x))


def test_margins():
    librepdl.torch.enable()
    x, target, w = torch.randn(6, 5), torch.tensor([0, 4, 2, 2, 1, 3]), torch.rand(5)
    each = (x.gather(1, target[:, None]).neg() + 0.7 + x).clamp_min(0).scatter(1, target[:, None], 0)
    for p in (1, 2):
        loss = ((each.square() if p == 2 else each) * w[target][:, None]).sum(1) / 5
        assert torch.equal(F.multi_margin_loss(x, target, p=p, margin=0.7, weight=w, reduction="none"), loss)
        assert torch.equal(F.multi_margin_loss(x, target, p=p, margin=0.7, weight=w), loss.mean())
    labels = torch.tensor([[3, 0, -1, 1, 2]]).expand(6, 5)
    pairs = [(x[:, t].neg() + 1 + x[:, j]).clamp_min(0) for t in (3, 0) for j in (1, 2, 4)]
    assert torch.equal(F.multilabel_margin_loss(x, labels, reduction="none"), torch.stack(pairs, 1).sum(1) / 5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_in_three_dimensions(mode):
    librepdl.torch.enable()
    for options in ({"size": (5, 3, 8)}, {"scale_factor": (1.5, 2, 0.7)}):
        x = torch.randn(2, 3, 4, 5, 6, requires_grad=True)
        y = F.interpolate(x, mode=mode, **options)
        with librepdl.torch.exempt():
            assert torch.equal(y, F.interpolate(x, mode=mode, **options))
        g = torch.randn(y.shape)
        (found,) = torch.autograd.grad(y, x, g)
        # Each pixel's own sum, exactly: that of where the pixel's number is.
        with librepdl.torch.exempt():
            at = F.interpolate(torch.arange(x.numel(), dtype=torch.float64).view(x.shape), mode=mode, **options).long()
        assert torch.equal(found.flatten(), torch.zeros(x.numel()).index_add(0, at.flatten(), g.flatten()))
        last = F.interpolate(x.detach().to(memory_format=torch.channels_last_3d), mode=mode, **options)
        assert torch.equal(last, y) and last.is_contiguous(memory_format=torch.channels_last_3d)
