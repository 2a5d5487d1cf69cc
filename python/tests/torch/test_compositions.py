"""Operations of several roundings against the formulas that docs/pytorch-formulas.md has for them, bit by bit, and what no setting may change."""

import math
from fractions import Fraction

import pytest
import torch
from torch.nn import functional as F

import librepdl.torch
from exact import FORMATS, expected_sum, rounded

FLOATS = list(FORMATS)


def bits(t):
    with librepdl.torch.exempt():
        t = torch.where(t.isnan(), torch.full_like(t, float("nan")), t).detach()
        return t.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])


def same(a, b):
    return torch.equal(bits(a), bits(b))


def draw(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, math.inf, 3.0])
def test_distances(dtype, p):
    x, y = draw(2, 5, 7, dtype=dtype), draw(1, 6, 7, dtype=dtype, seed=1)
    x[0, 1] = y[0, 2]
    x[0, 2, 0] = x[0, 3, 1] = y[0, 4, 0] = 3.0
    with librepdl.torch.reproducible():
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        r = torch.cdist(a, b, p=p)
        g = draw(*r.shape, dtype=dtype, seed=2)
        r.backward(g)
        r = r.detach()
        d = x.unsqueeze(2) - y.unsqueeze(1)
        assert same(r, torch.linalg.vector_norm(d, p, -1))
        assert same(torch.cdist(x, y, p=p, compute_mode="use_mm_for_euclid_dist"), r)
        if p == 0:
            assert not a.grad.any() and not b.grad.any()
        else:
            size = d.abs()
            f = g if p in (1.0, math.inf) else (g / (r if p == 2 else r.pow(p - 1))).masked_fill(r == 0, 0)
            s = {1.0: d.sign(), 2.0: d, math.inf: d.sign().masked_fill(size != r.unsqueeze(-1), 0)}.get(p, d.sign() * size.pow(p - 1))
            for n in range(2):  # exact sums, rounded once
                for i in range(5):
                    for k in range(7):
                        terms = [Fraction(float(f[n, i, j])) * Fraction(float(s[n, i, j, k])) for j in range(6)]
                        assert float(a.grad[n, i, k]) == expected_sum(terms, 1, dtype)
            assert b.grad.shape == y.shape
        z = x[0].clone().requires_grad_()
        pairs = F.pdist(z, p)
        i, j = torch.triu_indices(5, 5, 1)
        assert same(pairs, torch.cdist(x[0], x[0], p=p)[i, j])
        pairs.backward(torch.ones_like(pairs))
        both = x[0].clone().requires_grad_()
        torch.cdist(both, x[0], p=p).backward(1 - torch.eye(5, dtype=dtype))
        assert same(z.grad + 0, both.grad + 0)


def test_blocks_of_distances():
    """Several blocks, whose rows are as those of one."""
    x, y = draw(700, 64), draw(300, 64, seed=1)
    with librepdl.torch.reproducible():
        whole = torch.cdist(x, y)
        assert same(whole[640:], torch.cdist(x[640:], y)) and same(whole[:3, :5], torch.cdist(x[:3], y[:5]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(dtype, align, padding):
    """Of one axis after the other as written; and in every layout."""
    inner = torch.float64 if dtype == torch.float64 else torch.float32
    x, grid = draw(2, 3, 4, 5, dtype=dtype), draw(2, 6, 7, 2, dtype=dtype, seed=1)
    grid[0, 0, :, 0] = torch.tensor([-1, 1, 0, 3, -3, math.inf, math.nan])

    def axis(v, size):
        u = (v + 1) / 2 * (size - 1) if align else ((v + 1) * size - 1) / 2
        if padding == "reflection":
            low, span = (0, size - 1) if align else (-0.5, size)
            e = (u - low).abs().fmod(2 * span)
            u = torch.where(e > span, 2 * span - e, e) + low
        if padding != "zeros":
            u = u.clamp(0, size - 1)
        below = u.floor()
        return [(below, (below + 1) - u), (below + 1, u - below)]

    with librepdl.torch.reproducible():
        g = grid.to(inner)
        found = F.grid_sample(x, grid, padding_mode=padding, align_corners=align)
        terms = []
        for across, wx in axis(g[..., 0], 5):
            for down, wy in axis(g[..., 1], 4):
                outside = (across < 0) | (across > 4) | (down < 0) | (down > 3)
                i, j = down.clamp(0, 3).long(), across.clamp(0, 4).long()
                pixel = torch.stack([x[n].to(inner)[:, i[n], j[n]] for n in range(2)]).masked_fill(outside.unsqueeze(1), 0)
                terms.append((pixel, (wx * wy).masked_fill(outside, 0).unsqueeze(1).expand(pixel.shape)))
        values, weights = (torch.stack(t, -1).reshape(-1, 4) for t in zip(*terms))
        exact = (values.unsqueeze(1) @ weights.unsqueeze(2)).reshape(found.shape).to(dtype)
        assert same(found, exact)
        # An exact sum, by fractions.
        for v, w, e in list(zip(values.tolist(), weights.tolist(), (values.unsqueeze(1) @ weights.unsqueeze(2)).flatten().tolist()))[::17]:
            if all(map(math.isfinite, v + w)):
                assert e == rounded(sum(Fraction(a) * Fraction(b) for a, b in zip(v, w)), *FORMATS[inner])

        def gradients(x, grid):
            a, b = x.detach().requires_grad_(), grid.detach().requires_grad_()
            r = F.grid_sample(a, b, padding_mode=padding, align_corners=align)
            return [r, *torch.autograd.grad(r, (a, b), torch.ones_like(r))]

        plain = gradients(x, grid)
        torch.set_num_threads(2)
        for other in (gradients(x.to(memory_format=torch.channels_last), grid), gradients(x, grid.transpose(1, 2).contiguous().transpose(1, 2))):
            assert all(map(same, plain, other))
        alone = [gradients(x[i:i + 1], grid[i:i + 1]) for i in range(2)]
        assert all(same(a, torch.cat(b)) for a, b in zip(plain, zip(*alone)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("align", [False, True])
def test_affine_grid(dtype, align):
    inner = torch.float64 if dtype == torch.float64 else torch.float32
    theta = draw(2, 2, 3, dtype=dtype)
    with librepdl.torch.reproducible():
        found = F.affine_grid(theta, (2, 1, 3, 5), align)
    for n, i, j in ((0, 0, 0), (1, 2, 3), (0, 1, 4)):
        x, y = (Fraction(rounded(Fraction(2 * k + 1 - size, size - 1 if align else size), *FORMATS[inner])) for k, size in ((j, 5), (i, 3)))
        for k in range(2):
            t = [Fraction(v) for v in theta[n, k].double().tolist()]
            once = rounded(t[0] * x + t[1] * y + t[2], *FORMATS[inner])
            assert float(found[n, i, j, k]) == rounded(Fraction(once), *FORMATS[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ctc(dtype):
    """The recursion, place by place; padded and concatenated targets, lengths as tensors, one sample alone."""
    lengths, targets = (9, 7, 4, 0), ([1, 2, 2], [3], [4, 4, 4], [])
    padded = torch.zeros(4, 3, dtype=torch.int64)
    for i, t in enumerate(targets):
        padded[i, :len(t)] = torch.tensor(t)
    joined = torch.tensor(sum(targets, []))
    counts = tuple(map(len, targets))
    with librepdl.torch.reproducible():
        lp = draw(9, 4, 5, dtype=dtype).log_softmax(-1)
        each = F.ctc_loss(lp, padded, lengths, counts, reduction="none")
        for n in range(4):
            labels = [0]
            for t in targets[n]:
                labels += [t, 0]
            wide = lp[:, n].double()
            alpha = [wide[0, c] if s < 2 else torch.tensor(-math.inf, dtype=torch.float64) for s, c in enumerate(labels)]
            for t in range(1, lengths[n]):
                alpha = [torch.stack([alpha[s], *alpha[max(s - 1, 0):s], *([alpha[s - 2]] if s > 1 and c not in (0, labels[s - 2]) else [])]).logsumexp(0)
                         + wide[t, c] for s, c in enumerate(labels)]
            expected = -torch.stack(alpha[-2:]).logsumexp(0) if lengths[n] else torch.tensor(0.0)
            assert same(each[n], expected.to(dtype)), n
        assert each[2] == math.inf  # no time for blanks between equal labels

        def gradient(targets, lengths, counts, **options):
            x = lp.clone().requires_grad_()
            loss = F.ctc_loss(x, targets, lengths, counts, zero_infinity=True, **options)
            return loss, torch.autograd.grad(loss, x, torch.ones_like(loss))[0]

        as_tensors = torch.tensor(lengths), torch.tensor(counts)
        for reduction in ("none", "sum", "mean"):
            loss, g = gradient(padded, lengths, counts, reduction=reduction)
            for other in (gradient(joined, lengths, counts, reduction=reduction), gradient(padded.int(), *as_tensors, reduction=reduction)):
                assert same(loss, other[0]) and same(g, other[1])
            kept = each.masked_fill(each.isinf(), 0)
            divided = kept / torch.tensor(counts).clamp_min(1)
            assert same(loss, {"none": kept, "sum": kept.sum(), "mean": divided.mean()}[reduction])
            assert not g[:, 2:].any() and not g[7:, 1].any()
        with librepdl.torch.exempt():
            x = lp.double().requires_grad_()
            F.ctc_loss(x, padded, lengths, counts, zero_infinity=True, reduction="mean").backward()
            assert torch.allclose(g.double(), x.grad, rtol=0, atol=1e-6 if dtype == torch.float32 else 1e-13)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fake_quantisation(dtype):
    """The exact quotient, where rounding it first would move it over the middle of two integers."""
    scale = 0.1
    s = Fraction(float(torch.tensor(scale)))
    x = torch.cat([draw(300, dtype=dtype) * 5, (torch.arange(-40, 41) + 0.5).mul(scale).to(dtype), torch.tensor([math.nan, math.inf, -math.inf, 0.0], dtype=dtype)])
    expected, mask = [], []
    for v in x.double().tolist():
        q = 3 + (0 if v != v else round(Fraction(v) / s) if math.isfinite(v) else math.copysign(1000, v))
        mask.append(-20 <= q <= 25)
        expected.append(rounded((Fraction(min(max(q, -20), 25)) - 3) * s, *FORMATS[dtype]))
    expected = torch.tensor(expected, dtype=torch.float64).to(dtype)
    with librepdl.torch.reproducible():
        y = x.clone().requires_grad_()
        found = torch.fake_quantize_per_tensor_affine(y, scale, 3, -20, 25)
        assert torch.equal(found, expected)
        found.sum().backward()
        assert y.grad.tolist() == [float(m) for m in mask]
        scales, zeros = torch.tensor([scale, 0.3]), torch.tensor([3, 0], dtype=torch.int32)
        channels = torch.fake_quantize_per_channel_affine(torch.stack([x, x], 1), scales, zeros, 1, -20, 25)
        assert torch.equal(channels[:, 0], expected)
        assert torch.equal(channels[:, 1], torch.fake_quantize_per_tensor_affine(x, float(scales[1]), 0, -20, 25))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_draws(dtype):
    """From the uniform and normal numbers of the same seed in float64."""
    def drawn(function):
        torch.manual_seed(7)
        return function(torch.empty(500, dtype=torch.float64))

    with librepdl.torch.reproducible():
        torch.manual_seed(7)
        assert same(torch.empty(500, dtype=dtype).log_normal_(0.5, 0.25), drawn(lambda t: t.normal_(0.5, 0.25).exp()).to(dtype))
        torch.manual_seed(7)
        found = torch.empty(500, dtype=dtype).geometric_(0.2)
        u = drawn(lambda t: t.uniform_(0, 1))
        assert same(found, ((-u).log1p() / torch.tensor(-0.2, dtype=torch.float64).log1p()).floor().add(1).to(dtype))
        torch.manual_seed(7)
        whole = torch.empty(500, dtype=dtype).cauchy_(1.0, 2.0)
        assert same(whole, torch.addcmul(torch.ones_like(u), librepdl.tanpi(u - 0.5), torch.full_like(u, 2.0)).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_functions(dtype):
    x = draw(200, dtype=dtype)
    with librepdl.torch.reproducible():
        assert same(x.deg2rad(), x * (math.pi / 180)) and same(x.rad2deg(), x * (180 / math.pi))
        y = x.clone().requires_grad_()
        value = torch.special.ndtr(y)
        assert same(value, librepdl.ndtr(x)) and same(torch.special.ndtr(x), value)
        z = x.clone().requires_grad_()
        ((z / -math.sqrt(2)).erfc() * 0.5).sum().backward()
        value.sum().backward()
        assert same(y.grad, z.grad)
        edges = torch.linspace(-1, 1, 6, dtype=dtype)
        weight = draw(200, dtype=dtype, seed=3)
        found, same_edges = torch.histogram(x, 5, range=(-1.0, 1.0), weight=weight)
        assert same(same_edges, edges)
        for k in range(5):
            inside = (x >= edges[k]) & ((x < edges[k + 1]) if k < 4 else (x <= edges[5]))
            assert float(found[k]) == expected_sum(weight[inside].double().tolist(), 1, dtype)
