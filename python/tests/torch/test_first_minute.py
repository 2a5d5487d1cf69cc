"""What a new user meets first: absolute values, dropout in every form, distributions, factories with out=."""

import math
from fractions import Fraction
from operator import mul

import pytest
import torch
from test_map import bits, values
from torch import nn
from torch.nn import functional as F

import librepdl
import librepdl.torch

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
SIXTEEN = {torch.float16: (11, -24), torch.bfloat16: (8, -133)}  # digits, exponent of the least subnormal number


@pytest.fixture(scope="module", autouse=True)
def enabled():
    """Once for all tests of this file, which is quicker."""
    with librepdl.torch.reproducible():
        yield


@pytest.fixture(autouse=True)
def as_it_was():
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def seeded(function, seed=3):
    torch.manual_seed(seed)
    return function()


def nearest(q, digits, least):
    """A fraction rounded to nearest, ties to even; what overflows stays too large."""
    if q == 0:
        return Fraction(0)
    exponent = max(abs(q).numerator.bit_length() - q.denominator.bit_length() - digits, least)
    while abs(q) >= Fraction(2) ** (exponent + digits):
        exponent += 1
    while exponent > least and abs(q) < Fraction(2) ** (exponent + digits - 1):
        exponent -= 1
    return round(q / Fraction(2) ** exponent) * Fraction(2) ** exponent


# ---- absolute values ----

@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_absolute_values(dtype):
    x, g = values(dtype, 1).requires_grad_(), values(dtype, 2)
    x.abs().backward(g)
    assert same(x.grad, librepdl.mul(g, librepdl.sign(x.detach())))
    y = x.detach().clone()
    assert same(torch.sgn(y), librepdl.sign(y)) and same(y.clone().sgn_(), librepdl.sign(y))
    assert same(torch._foreach_abs([y])[0], librepdl.abs(y))


def test_one_norms():
    torch.manual_seed(0)
    x, t = torch.randn(4, 6), torch.randn(4, 6)
    sign, difference = librepdl.sign(x), librepdl.sign(librepdl.sub(x, t))
    for function, expected in ((lambda v: v.norm(1), sign), (lambda v: v.norm(p=1, dim=1).sum(), sign),
                               (lambda v: torch.linalg.vector_norm(v, 1), sign),
                               (lambda v: torch.linalg.vector_norm(v, 1, dim=0).sum(), sign),
                               (lambda v: torch.linalg.matrix_norm(v, 1), sign * (x.abs().sum(0) == x.abs().sum(0).max())),
                               (lambda v: F.l1_loss(v, t, reduction="sum"), difference),
                               (lambda v: nn.L1Loss()(v, t), librepdl.mul(difference, torch.full((4, 6), 1 / 24))),
                               (lambda v: torch.dist(v, t, 1), difference)):
        leaf = x.clone().requires_grad_()
        function(leaf).backward()
        assert torch.equal(leaf.grad, expected)
    for module in (nn.L1Loss(), nn.TripletMarginLoss(p=1), nn.PairwiseDistance(1)):
        leaf = x.clone().requires_grad_()
        module(leaf, t, *([x + 1] if isinstance(module, nn.TripletMarginLoss) else [])).sum().backward()
        assert leaf.grad.ne(0).any()


def test_sums_of_float64():
    """Exact sums, rounded once, however they are asked for; and their gradients."""
    hard = torch.tensor([1e17, 1, -1e17, 0.1], dtype=torch.float64)
    assert hard.sum().item() == 1.1 and hard.mean().item() == 0.275 and hard.nansum().item() == 1.1
    torch.manual_seed(0)
    x = values(torch.float64, 1)[:1200].nan_to_num(0.5, 2.0**900, -(2.0**901)).view(40, 30)
    t = values(torch.float64, 2)[:1200].nan_to_num(0.5, 1.0, -1.0).view(40, 30)
    exact, other = ([[Fraction(v) for v in row] for row in m.tolist()] for m in (x, t))
    rows = torch.tensor([float(sum(row)) for row in exact], dtype=torch.float64)
    columns = torch.tensor([float(sum(row[j] for row in exact) / 40) for j in range(30)], dtype=torch.float64)
    everything = float(sum(map(sum, exact)))
    for sums in (x.sum(1), torch.sum(x, 1, keepdim=True).view(40), torch.sum(x, 1, out=torch.empty(0, dtype=torch.float64)), x.t().sum(0),
                 torch.nansum(x, -1), torch.vmap(torch.sum)(x)):
        assert same(sums, rows)
    assert same(x.mean(0), columns) and same(x.t().contiguous().mean(1), columns) and x.sum().item() == everything
    products = float(sum(a * b for a, b in zip(exact[3], other[3], strict=True)))
    for product in (x[3].dot(t[3]), torch.vdot(x[3], t[3]), x[3] @ t[3]):
        assert product.item() == products
    assert x[:30].trace().item() == float(sum(exact[i][i] for i in range(30)))
    norms = torch.tensor([float(sum(map(abs, row))) for row in exact], dtype=torch.float64)
    assert same(torch.linalg.vector_norm(x, 1, dim=1), norms) and same(x.norm(1, dim=1), norms) and same(torch.norm(x, 1, 1), norms)
    assert torch.tensor([3 * 2.0**900, -4 * 2.0**900], dtype=torch.float64).norm().item() == 5 * 2.0**900
    # Of another type: converted first, as in PyTorch.
    single = torch.tensor([1e17, 1, -1e17], dtype=torch.float32)
    assert same(single.sum(dtype=torch.float64), torch.ones((), dtype=torch.float64))
    assert torch.tensor([1, 2, 4]).mean(dtype=torch.float64).item() == 7 / 3
    assert torch.tensor([2**53, 1, 1]).sum(dtype=torch.float64).item() == 2**53 + 2
    assert torch.linalg.vector_norm(single[1:2], dtype=torch.float64).dtype == torch.float64
    leaf = x.clone().requires_grad_()
    (leaf * torch.ones(30, dtype=torch.float64, requires_grad=True)).mean().backward()
    assert same(leaf.grad, torch.full((40, 30), 1 / 1200, dtype=torch.float64))
    weight = torch.zeros(30, dtype=torch.float64, requires_grad=True)
    (x + weight).backward(t)  # a sum over what was broadcast
    assert same(weight.grad, torch.tensor([float(sum(row[j] for row in other)) for j in range(30)], dtype=torch.float64))


def exact(*rows):
    return [[Fraction(v) for v in row] for m in rows for row in m.tolist()]


def test_products_of_float64():
    """A layer's three products, each element one rounding of the exact sum; in every layout."""
    x, w, b, g = (torch.randn(*shape, dtype=torch.float64) for shape in ((6, 5), (4, 5), (4,), (6, 4)))

    def product(a, b, c=None):
        return torch.tensor([[float(sum(map(mul, row, column)) + (c[j] if c else 0)) for j, column in enumerate(exact(b.t()))]
                             for row in exact(a)], dtype=torch.float64)

    c = [Fraction(v) for v in b.tolist()]
    weight, leaf, bias = w.clone().requires_grad_(), x.clone().requires_grad_(), b.clone().requires_grad_()
    y = torch.nn.functional.linear(leaf, weight, bias)
    y.backward(g)
    assert same(y.detach(), product(x, w.t(), c))
    assert same(leaf.grad, product(g, w)) and same(weight.grad, product(g.t(), x))
    assert same(bias.grad, g.sum(0))
    want = product(x, w.t())
    for left in (x, x.t().contiguous().t(), torch.stack([x, x])[1]):
        assert same(left @ w.t(), want) and same(torch.mm(left, w.t().contiguous()), want)
    assert same(torch.bmm(x.expand(3, 6, 5), w.t().expand(3, 5, 4)), want.expand(3, 6, 4))
    assert same(torch.mv(x, w[0]), want[:, 0]) and same(torch.einsum("ik,jk->ij", x, w), want)
    scaled = [[float(3 * s + Fraction(0.1) * v) for s, v in zip(row, c)] for row in
              [[sum(map(mul, row, column)) for column in exact(w)] for row in exact(x)]]
    assert same(torch.addmm(b, x, w.t(), beta=0.1, alpha=3), torch.tensor(scaled, dtype=torch.float64))


@pytest.mark.parametrize("narrow, wide", [(torch.bfloat16, torch.float32), (torch.float16, torch.float32), (torch.float32, torch.float64)])
def test_products_in_wider_types(narrow, wide):
    """out_dtype: the nearest numbers of the wider type to exact fractions; what is added may have either type."""
    torch.manual_seed(0)
    x, w, b = torch.randn(6, 50).to(narrow), torch.randn(4, 50).to(narrow), torch.randn(4, dtype=wide)
    columns = exact(w)
    sums = [[sum(map(mul, row, column)) for column in columns] for row in exact(x)]
    # Of 16 bits, sums are binary64 numbers: one rounding.
    assert narrow == torch.float32 or all(float(s) == s for row in sums for s in row)
    want = torch.tensor([[float(s) for s in row] for row in sums], dtype=torch.float64).to(wide)
    assert same(torch.mm(x, w.t(), out_dtype=wide), want) and not same(torch.mm(x, w.t()).to(wide), want)
    assert same(torch.mm(x, w.t(), out_dtype=wide, out=torch.empty(6, 4, dtype=wide)), want)
    assert same(torch.mm(x, w.t(), out_dtype=narrow), torch.mm(x, w.t()))
    several = torch.bmm(x.expand(3, 6, 50), w.t().expand(3, 50, 4), out_dtype=wide)
    assert same(several, want.expand(3, 6, 4))
    for added in (b, b.to(narrow)):
        scaled = torch.tensor([[float(3 * s - Fraction(v)) for s, v in zip(row, added.tolist())] for row in sums], dtype=torch.float64).to(wide)
        assert same(torch.addmm(added, x, w.t(), out_dtype=wide, beta=-1, alpha=3), scaled)
        assert same(torch.baddbmm(added, x[None], w.t()[None], out_dtype=wide, beta=-1, alpha=3), scaled[None])
    with pytest.raises(RuntimeError, match="out_dtype must be"):
        torch.mm(x.to(wide), w.t().to(wide), out_dtype=narrow)


def test_variances_of_float64():
    """Of any axes, with any correction: the nearest numbers to exact fractions; and gradients."""
    torch.manual_seed(0)
    x = 1e9 + torch.randn(40, 30, dtype=torch.float64)
    exact = [[Fraction(v) for v in row] for row in x.tolist()]
    spreads = [sum(v * v for v in row) - sum(row) ** 2 / 30 for row in exact]
    variances = torch.tensor([float(s / 29) for s in spreads], dtype=torch.float64)
    means = torch.tensor([float(sum(row) / 30) for row in exact], dtype=torch.float64)
    for found in (x.var(1), torch.var(x.t(), 0, keepdim=True).view(40), torch.var_mean(x, 1)[0], torch.vmap(torch.var)(x)):
        assert same(found, variances)
    assert same(x.var(1, unbiased=False), torch.tensor([float(s / 30) for s in spreads], dtype=torch.float64))
    assert same(torch.var_mean(x, 1)[1], means) and same(torch.std_mean(x, 1)[1], means)
    for std, spread in zip(x.std(1).tolist(), spreads, strict=True):
        below, above = ((Fraction(std) + Fraction(math.nextafter(std, to))) / 2 for to in (0, math.inf))
        assert below**2 <= spread / 29 <= above**2
    assert same(torch.std_mean(x, 1)[0], x.std(1)) and same(torch.std(x, 1, out=torch.empty(0, dtype=torch.float64)), x.std(1))
    assert x[:, :1].var(1).isnan().all() and torch.full((3, 3), 0.1, dtype=torch.float64).var().item() == 0
    leaf = x.clone().requires_grad_()
    leaf.var().backward()
    assert torch.isfinite(leaf.grad).all() and leaf.grad.ne(0).any()


def test_losses_of_float64():
    """Elements, sums, means and gradients: the nearest numbers to exact fractions."""
    torch.manual_seed(0)
    x, t = 1e3 + torch.randn(2, 40, 7, dtype=torch.float64)
    d = [[Fraction(a) - Fraction(b) for a, b in zip(*rows, strict=True)] for rows in zip(x.tolist(), t.tolist(), strict=True)]
    third = Fraction(0.3)
    losses = {
        F.mse_loss: ({}, lambda d: d * d, lambda d: 2 * d),
        F.smooth_l1_loss: ({"beta": 0.3}, lambda d: d * d / (2 * third) if abs(d) < third else abs(d) - third / 2,
                           lambda d: d / third if abs(d) < third else (d > 0) - (d < 0)),
        F.huber_loss: ({"delta": 0.3}, lambda d: d * d / 2 if abs(d) <= third else third * (abs(d) - third / 2),
                       lambda d: d if abs(d) <= third else third * ((d > 0) - (d < 0))),
    }
    for function, (options, loss, slope) in losses.items():
        each = torch.tensor([[float(loss(v)) for v in row] for row in d], dtype=torch.float64)
        total = sum(loss(v) for row in d for v in row)
        assert same(function(x, t, reduction="none", **options), each)
        assert function(x, t, reduction="sum", **options).item() == float(total)
        leaf = x.clone().requires_grad_()
        mean = function(leaf, t, **options)
        assert mean.item() == float(total / 280)
        mean.backward()
        assert same(leaf.grad, torch.tensor([[float(slope(v) / 280) for v in row] for row in d], dtype=torch.float64))
    targets, weight = torch.arange(40) % 7, torch.rand(7, dtype=torch.float64)
    rows = [(Fraction(a[i]), Fraction(weight[i].item())) for a, i in zip(x.tolist(), targets.tolist(), strict=True)]
    leaf = x.clone().requires_grad_()
    nll = F.nll_loss(leaf, targets, weight)
    assert nll.item() == float(-sum(a * w for a, w in rows) / sum(w for _, w in rows))
    nll.backward()
    total = Fraction(float(sum(w for _, w in rows)))
    assert leaf.grad[torch.arange(40), targets].tolist() == [float(-w / total) for _, w in rows] and leaf.grad.count_nonzero() == 40
    assert F.nll_loss(x.t()[None], targets[None], reduction="sum").item() == float(-sum(a for a, _ in rows))


def test_losses_with_logarithms_of_float64():
    torch.manual_seed(0)
    x, t, w = torch.randn(40, 7, dtype=torch.float64), torch.rand(40, 7, dtype=torch.float64), torch.rand(7, dtype=torch.float64)
    p, sign = x.sigmoid(), x.roll(1, 0).sign()
    for reduction in ("none", "mean", "sum"):
        options = {"reduction": reduction}
        assert same(F.soft_margin_loss(x, sign, **options), librepdl.soft_margin_loss(x, sign, **options))
        assert same(F.binary_cross_entropy(p, t, w, **options), librepdl.binary_cross_entropy(p, t, w, **options))
        assert same(F.binary_cross_entropy_with_logits(x, t, w, pos_weight=w, **options),
                    librepdl.binary_cross_entropy_with_logits(x, t, w, w, **options))
    assert F.soft_margin_loss(x[:1, :1], x[:1, :1] * 0).item() == math.log(2)
    for function, a, b in ((F.soft_margin_loss, x, sign), (F.binary_cross_entropy, p, t), (F.binary_cross_entropy_with_logits, x, t)):
        leaf = a.clone().requires_grad_()
        function(leaf, b).backward()
        gradient = getattr(librepdl, function.__name__ + "_backward")
        if function is not F.binary_cross_entropy_with_logits:  # autograd's formula is another
            assert same(leaf.grad, gradient(torch.ones((), dtype=torch.float64), a, b))
        assert torch.isfinite(leaf.grad).all() and leaf.grad.ne(0).all()


def test_norms_of_float64():
    """Forward and backward the library's numbers, which test_norms.py compares with fractions; running statistics of float64."""
    x = torch.randn(6, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 9 + 1e6
    g = torch.linspace(-1, 1, 120, dtype=torch.float64).view(6, 4, 5)
    a, w, b = (t.clone().requires_grad_() for t in (x, x[0, 0] - 1e6, x[0, 1] - 1e6))
    y = F.layer_norm(a, (5,), w, b)
    y.backward(g)
    want, mean, rstd = librepdl.layer_norm(x, w.detach(), b.detach(), statistics=True)
    assert same(y.detach(), want) and same(a.grad, librepdl.layer_norm_backward(g, x, mean, rstd, w.detach()))
    assert same(w.grad, librepdl.layer_norm_weight_backward(g, x, mean, rstd)) and same(b.grad, librepdl.sum(g, axis=(0, 1)))
    assert same(F.group_norm(x, 2), librepdl.group_norm(x, groups=2)) and same(F.rms_norm(x, (5,), eps=0.5), librepdl.rms_norm(x, 0.5))
    net = nn.BatchNorm1d(4, dtype=torch.float64)
    mean, var = net.running_mean.clone(), net.running_var.clone()
    want = librepdl.batch_norm_running(x, mean, var, net.weight.detach(), net.bias.detach(), statistics=True)
    assert same(net(x).detach(), want[0]) and same(net.running_mean, want[3]) and same(net.running_var, want[4])
    net.eval()
    assert same(net(x).detach(), librepdl.batch_norm_inference(x, want[3], want[4], net.weight.detach(), net.bias.detach()))


def test_softmax_of_float64():
    """Forward and backward the library's numbers, which test_numpy_manners.py compares with decimals; also by way of dtype=."""
    x = torch.randn(40, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 9
    g = torch.linspace(-1, 1, 1200, dtype=torch.float64).view(40, 30)
    for function, backward, name in ((torch.softmax, librepdl.softmax_backward, "softmax"),
                                     (torch.log_softmax, librepdl.log_softmax_backward, "log_softmax")):
        want = getattr(librepdl, name)(x.numpy(), axis=1)
        leaf = x.clone().requires_grad_()
        y = function(leaf, 1)
        assert same(y.detach(), torch.from_numpy(want)) and same(torch.vmap(lambda t, f=function: f(t, 0))(x), y.detach())
        assert same(function(x.t(), 0).t(), y.detach())
        y.backward(g)
        assert same(leaf.grad, torch.from_numpy(backward(g.numpy(), want, axis=1)))
        assert same(function(x.float(), 1, dtype=torch.float64), function(x.float().double(), 1))
    assert same(torch.logsumexp(x, 1), torch.from_numpy(librepdl.logsumexp(x.numpy(), axis=1)))
    assert torch.softmax(torch.full((3,), 7.0, dtype=torch.float64), 0).tolist() == [1 / 3] * 3


def test_the_sign_of_a_complex_number_is_refused():
    z = torch.view_as_complex(torch.ones(3, 2))
    for function in (torch.sgn, torch.Tensor.sgn_, lambda t: torch.sgn(t, out=torch.empty_like(t))):
        with pytest.raises(NotImplementedError, match=r"aten::sgn.*complex64"):
            function(z)
    assert torch.arange(-2, 3).sgn().tolist() == [-1, -1, 0, 1, 1]


# ---- dropout ----

@pytest.mark.parametrize("dtype, p", [(dtype, p) for dtype in SIXTEEN for p in (0.1, 1 / 3, 0.5, 0.99)])
def test_dropout_of_16_bits_is_one_rounding(dtype, p):
    """The places of float32, and x / (1 - p) rounded once: with p next to 1/3 half of the quotients are next to a tie."""
    x = torch.randint(0, 2**16, (3000,)).sub(2**15).to(torch.int16).view(dtype)
    y, wide = seeded(lambda: F.dropout(x, p)), seeded(lambda: F.dropout(x.float(), p))
    kept = wide.ne(0) | wide.isnan()
    assert torch.equal(y.ne(0), kept)  # nothing underflows
    digits, least = SIXTEEN[dtype]
    for a, b in zip(x[kept].tolist(), y[kept].tolist()):
        if a != a or abs(a) == float("inf"):
            assert b == a or b != b
            continue
        exact = nearest(Fraction(a) / (1 - Fraction(p)), digits, least)
        assert float(exact) == b or (abs(exact) > torch.finfo(dtype).max and b == float("inf") * (1 if a > 0 else -1)), (a, b)
    if p == 1 / 3:
        assert not torch.equal(y[kept & x.isfinite()], wide.to(dtype)[kept & x.isfinite()])  # two roundings are others
    leaf = torch.ones(300, dtype=dtype, requires_grad=True)
    out = seeded(lambda: F.dropout(leaf, p))
    out.backward(torch.full_like(out, 1.5))
    scaled = float(nearest(Fraction(1.5) * Fraction(1 / (1 - p)), digits, least))
    assert torch.equal(leaf.grad, torch.where(out.ne(0), torch.tensor(scaled, dtype=dtype), torch.zeros((), dtype=dtype)))


def test_dropout_of_16_bits_next_to_1():
    x = torch.ones(3, dtype=torch.bfloat16)
    with pytest.raises(NotImplementedError, match="within 2\\^-40 of 1"):
        F.dropout(x, 1 - 2**-41)
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name, shape", [
    ("dropout", (4, 6)), ("dropout1d", (4, 6, 5)), ("dropout2d", (4, 6, 2, 3)), ("dropout3d", (4, 6, 2, 2, 2)), ("alpha_dropout", (4, 6)),
    ("feature_alpha_dropout", (4, 6, 2, 3))])
def test_dropout_in_place(name, shape, dtype):
    """The same numbers and gradients as not in place."""
    function = getattr(F, name)
    x, g = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)

    def run(inplace):
        leaf = x.clone().requires_grad_()
        given = leaf * 1
        out = seeded(lambda: function(given, 0.3, True, inplace))
        assert (out is given) == inplace
        out.backward(g)
        return out.detach(), leaf.grad

    (a, da), (b, db) = run(False), run(True)
    assert same(a, b) and same(da, db) and not torch.equal(a, x)
    assert same(function(x.clone(), 0.3, False, True), x)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        function(x.clone().requires_grad_(), 0.3, True, True)
    with pytest.raises((RuntimeError, ValueError), match="between 0 and 1"):
        function(x.clone(), 1.5, True, True)
    assert nn.Dropout(0.3, inplace=True)(a) is a


def test_dropout_of_features_drops_whole_ones():
    x = torch.full((50, 40, 3, 3), 3.0)
    y = seeded(lambda: F.dropout2d(x, 0.25))
    noise = seeded(lambda: torch.empty(50, 40, 1, 1).bernoulli_(0.75)) / 0.75
    assert same(y, x * noise) and 0 < int(y.eq(0).sum()) < y.numel()


# ---- normal numbers and distributions ----

@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_of_tensors(dtype):
    """mean + std z in one rounding, z a standard normal number of the type."""
    mean, std = torch.linspace(-2, 3, 40, dtype=dtype), torch.linspace(0, 4, 120, dtype=dtype).view(3, 40)
    z = seeded(lambda: torch.empty(3, 40, dtype=dtype).normal_())
    expected = librepdl.fma(z, std, mean)
    assert same(seeded(lambda: torch.normal(mean, std)), expected)
    out = torch.empty(0, dtype=dtype)
    torch.normal(mean, std, generator=torch.Generator().manual_seed(3), out=out)
    assert same(out, expected)
    row = seeded(lambda: torch.empty(40, dtype=dtype).normal_())
    wide = [t.double() for t in (row, mean)]
    number = torch.full((40,), 0.1, dtype=torch.float64)  # aten's float is exact
    assert same(seeded(lambda: torch.normal(mean, 0.1)), librepdl.fma(wide[0], number, wide[1], out=torch.empty_like(mean)))
    assert same(seeded(lambda: torch.normal(0.1, std[1])), librepdl.fma(wide[0], std[1].double(), number, out=torch.empty_like(mean)))
    other = torch.float64 if dtype != torch.float64 else torch.float32
    assert same(seeded(lambda: torch.normal(mean, std[1].to(other))),
                librepdl.fma(wide[0], std[1].to(other).double(), wide[1], out=torch.empty_like(mean)))


def test_normal_errors():
    x = torch.ones(3)
    calls = [(x, -x), (x, torch.tensor(float("nan"))), (x, -1.0), (0.0, -x), (torch.arange(3), x)]
    for arguments, text in zip(calls, ["all elements of std >= 0.0"] * 2 + ["std >= 0.0, but found std -1", "all elements of std >= 0.0", ""]):
        with pytest.raises(RuntimeError, match=f"normal expects {text}|not implemented for 'Long'"):
            torch.normal(*arguments)
    assert torch.normal(torch.ones(0), torch.ones(1)).shape == (0,)


def test_distributions():
    """Samples, densities and entropies of the usual ones, the same with one thread and with two."""
    d = torch.distributions

    def draws():
        torch.manual_seed(1)
        loc, scale = torch.linspace(-1, 1, 5).requires_grad_(), torch.linspace(0.5, 2, 5).requires_grad_()
        found = []
        for one in (d.Normal(loc, scale), d.Uniform(loc, loc + scale), d.Exponential(scale), d.Bernoulli(logits=loc),
                    d.Bernoulli(torch.rand(4)), d.Categorical(torch.rand(3, 4)), d.Categorical(logits=torch.randn(3, 4)),
                    d.Laplace(loc, scale), d.LogNormal(loc, scale), d.Gumbel(loc, scale), d.Independent(d.Normal(loc, scale), 1)):
            sample = one.rsample((7,)) if one.has_rsample else one.sample((7,))
            found += [one.sample(), sample, one.log_prob(sample), one.entropy()]
        total = sum(t.sum() for t in found[:4])
        total.backward()
        found += [d.kl_divergence(d.Normal(loc, scale), d.Normal(0.0, 1.0)), loc.grad, scale.grad]
        return librepdl.torch.fingerprint([t.detach() for t in found])

    torch.set_num_threads(1)
    first = draws()
    torch.set_num_threads(2)
    assert draws() == first
    loc, scale = torch.linspace(-1, 1, 5), torch.linspace(0.5, 2, 5)
    z = seeded(lambda: torch.empty(7, 5).normal_())
    assert same(seeded(lambda: d.Normal(loc, scale).sample((7,))), librepdl.fma(z, scale, loc))


# ---- selections and views ----

@pytest.mark.parametrize("dtype", FLOATS)
def test_heaviside(dtype):
    x = torch.tensor([-2, -0.0, 0, 3, float("inf"), -float("inf"), float("nan")], dtype=dtype)
    v = torch.tensor([5, -0.0, 0.5, 5, 5, 5, 5], dtype=dtype)
    expected = torch.tensor([0, -0.0, 0.5, 1, 1, 0, float("nan")], dtype=dtype)
    out = torch.empty(0, dtype=dtype)
    torch.heaviside(x, v, out=out)
    assert same(torch.heaviside(x, v), expected) and same(out, expected) and same(x.clone().heaviside_(v), expected)
    assert torch.heaviside(x[:, None], v).shape == (7, 7)
    with pytest.raises(RuntimeError, match="different dtypes"):
        torch.heaviside(x, torch.ones(7, dtype=torch.int64))
    assert torch.heaviside(torch.tensor([-1, 0, 1]), torch.tensor(7)).tolist() == [0, 7, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_put(dtype):
    """Places are in row-major order; of several values the last, or their exact sum."""
    index = torch.tensor([[1, 5, 1], [-1, 1, 0]])
    source = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    x = torch.full((3, 2), 0.5, dtype=dtype).t()
    assert x.put(index, source).tolist() == [[6, 5, 0.5], [0.5, 0.5, 4]]
    assert x.clone().put_(index, source).tolist() == [[6, 5, 0.5], [0.5, 0.5, 4]]
    assert x.clone().put_(index, source, accumulate=True).tolist() == [[6.5, 9.5, 0.5], [0.5, 0.5, 6.5]]
    big = torch.tensor([2.0**12, 2.0**-12, -(2.0**12)], dtype=dtype)
    assert torch.zeros(1, dtype=dtype).put_(torch.zeros(3, dtype=torch.int64), big, True).item() == 2.0**-12
    leaf = torch.randn(4).to(dtype).requires_grad_()
    leaf.take(torch.tensor([0, 2, 2])).backward(torch.ones(3, dtype=dtype))
    assert leaf.grad.tolist() == [1, 0, 2, 0]
    for arguments, error in (((index.int(), source), RuntimeError), ((index, source[:1]), IndexError), ((index + 6, source), IndexError),
                             ((index, source.double()), RuntimeError)):
        with pytest.raises(error):
            x.clone().put_(*arguments)
    assert torch.zeros(3, dtype=torch.int64).put_(torch.tensor([0, 0]), torch.tensor([2, 3]), True).tolist() == [5, 0, 0]


def test_shifts_and_complex_views():
    x = torch.randn(4, 5, requires_grad=True)
    assert same(torch.fft.fftshift(x), x.roll((2, 2), (0, 1))) and same(torch.fft.ifftshift(torch.fft.fftshift(x)), x)
    assert same(torch.fft.fftshift(x, dim=1), x.roll(2, 1))
    pairs = torch.randn(3, 2, requires_grad=True)
    z = torch.view_as_complex(pairs)
    assert z.dtype == torch.complex64 and torch.view_as_real(z).data_ptr() == pairs.data_ptr() and same(z.real, pairs[:, 0])
    torch.view_as_real(z).backward(pairs.detach())
    assert same(pairs.grad, pairs.detach())
    with pytest.raises(NotImplementedError, match="aten::mul"):
        z * z


def test_weight_norm():
    """aten's composite: v times g over the norm, rounded each time."""
    torch.manual_seed(0)
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(5, 3))
    g, v = (p.detach() for p in (layer.parametrizations.weight.original0, layer.parametrizations.weight.original1))
    norm = librepdl.vector_norm(v, axis=1, keepdims=True)
    assert same(layer.weight.detach(), librepdl.mul(v, librepdl.div(g, norm)))
    layer(torch.ones(2, 5)).sum().backward()
    assert layer.parametrizations.weight.original0.grad is not None


# ---- factories with out= ----

FACTORIES = [
    ("full", ((2, 3), 1.5)), ("zeros", ((2, 3),)), ("ones", ((2, 3),)), ("eye", (3,)), ("eye", (2, 3)), ("arange", (5,)),
    ("arange", (1, 5)), ("arange", (0, 1, 0.1)), ("linspace", (0, 1, 7)), ("rand", ((2, 3),)), ("randn", ((2, 3),)),
    ("randint", (9, (2, 3))), ("randint", (-4, 9, (2, 3))), ("randperm", (7,)), ("normal", (0.5, 2.0, (2, 3)))]


@pytest.mark.parametrize("dtype", FLOATS)
def test_factories_with_out(dtype):
    for name, arguments in FACTORIES:
        function = getattr(torch, name)
        expected = seeded(lambda: function(*arguments, dtype=dtype))
        for out in (torch.empty(0, dtype=dtype), torch.full(expected.shape, float("nan"), dtype=dtype)):
            assert seeded(lambda: function(*arguments, out=out)) is out
            assert same(out, expected), name


def test_factories_like_a_tensor_with_out():
    x, out = torch.randn(2, 3), torch.empty(0)
    for name, arguments in (("zeros_like", ()), ("ones_like", ()), ("full_like", (0.5,)), ("rand_like", ()), ("randn_like", ()),
                            ("randint_like", (5,))):
        op = getattr(torch.ops.aten, name)
        overload = next(o for o in (getattr(op, k) for k in op.overloads()) if o._overloadname == "out")
        assert same(seeded(lambda: overload(x, *arguments, out=out)), seeded(lambda: getattr(torch, name)(x, *arguments)))
    assert torch.empty(4, out=out).shape == (4,)


# ---- modules of the second minute ----

def gradients(function, *operands, g=None):
    leaves = [t.clone().requires_grad_() for t in operands]
    out = function(*leaves)
    out.backward(torch.ones_like(out) if g is None else g)
    return out.detach(), [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_elu_in_place(dtype):
    """The gradient from the result: rate g (y + scale alpha), each operation rounded."""
    x, g = torch.linspace(-3, 2, 41).to(dtype), torch.linspace(-1, 2, 41).to(dtype)
    for name, options in (("elu", {}), ("elu", {"alpha": 0.75}), ("celu", {"alpha": 1.5}), ("selu", {})):
        function = getattr(F, name)
        y, (dx,) = gradients(lambda t: function(t * 1, **options, inplace=True), x, g=g)
        assert same(y, function(x, **options))
        alpha, scale, rate = {"elu": (options.get("alpha", 1.0), 1.0, 1.0), "celu": (1.5, 1.0, 1 / 1.5),
                              "selu": (1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)}[name]
        alpha, scale, rate = (Fraction(torch.tensor(v, dtype=torch.float32).item()) for v in (alpha, scale, rate))
        digits, least = {**SIXTEEN, torch.float32: (24, -149)}[dtype]

        def rounded(v):
            return nearest(v, digits, least)

        for a, b, c in zip(y.tolist(), g.tolist(), dx.tolist()):
            product = rounded(rate * Fraction(b)) if rate != 1 else Fraction(b)
            expected = rounded(scale * Fraction(b)) if a > 0 else rounded(product * rounded(Fraction(a) + scale * alpha))
            assert expected == c, (name, a, b)


def test_rrelu():
    """x, or where x is not above 0 a uniform number times x; without training leaky_relu."""
    x = torch.randn(300)
    x[0], x[1] = -0.0, 0.0
    slope = seeded(lambda: torch.empty_like(x).uniform_(0.125, 0.5))
    expected = torch.where(x > 0, x, librepdl.mul(x, slope))
    y, (dx,) = seeded(lambda: gradients(lambda t: F.rrelu(t, 0.125, 0.5, training=True), x))
    assert same(y, expected) and same(dx, torch.where(x > 0, torch.ones_like(x), slope))
    again = x.clone()
    assert seeded(lambda: F.rrelu(again, 0.125, 0.5, training=True, inplace=True)) is again and same(again, expected)
    assert same(F.rrelu(x, 0.125, 0.5), F.leaky_relu(x, 0.3125))
    with pytest.raises(RuntimeError, match="Lower bound"):
        F.rrelu(x, 0.5, 0.25)


def test_bilinear():
    """The product with the first input is rounded, then that with the second and the bias."""
    x, y = torch.randn(2, 3, 5), torch.randn(2, 3, 4)
    layer = nn.Bilinear(5, 4, 6)
    w, b = layer.weight.detach(), layer.bias.detach()
    half = librepdl.matmul(x.reshape(6, 5), w.permute(1, 0, 2).reshape(5, 24)).reshape(6, 6, 4)
    expected = librepdl.matmul(half, y.reshape(6, 4, 1), b.view(6, 1).expand(6, 6, 1)).view(2, 3, 6)
    out, grads = gradients(layer, x, y)
    assert same(out, expected) and all(g.abs().sum() > 0 for g in (*grads, layer.weight.grad, layer.bias.grad))
    assert F.bilinear(x[0, 0], y[0, 0], w).shape == (6,)
    with pytest.raises(RuntimeError, match="bilinear"):
        F.bilinear(x, y[:1], w)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_cross(dtype):
    """Each element is a difference of products in one rounding: where float32 products cancel, too."""
    x = torch.tensor([[1 + 2**-7, 3.0, -2.0], [2**5, 1.0, 2.0**-6]], dtype=dtype)
    y = torch.tensor([[1.0, 1 - 2**-7, 5.0], [1.0, 2**-5, 3.0]], dtype=dtype)
    expected = torch.tensor([[float(nearest(Fraction(a[i]) * Fraction(b[j]) - Fraction(a[j]) * Fraction(b[i]),
                                            *{**SIXTEEN, torch.float32: (24, -149)}[dtype])) for i, j in ((1, 2), (2, 0), (0, 1))]
                             for a, b in zip(x.tolist(), y.tolist())], dtype=dtype)
    assert torch.equal(torch.linalg.cross(x, y), expected) and torch.equal(torch.cross(x.t(), y.t(), dim=0), expected.t())
    _, (dx, dy) = gradients(torch.linalg.cross, x, y)
    one = torch.ones_like(x)
    assert same(dx, torch.linalg.cross(y, one)) and same(dy, torch.linalg.cross(one, x))
    assert same(torch.linalg.cross(x[:1], y), torch.linalg.cross(x[:1].expand(2, 3), y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_embedding_bag(dtype):
    """Exact sums of rows, or their means, rounded once; empty bags are 0, padding counts nowhere."""
    w = torch.randn(10, 4).to(dtype)
    w[3] *= 1000
    index, offsets = torch.tensor([1, 3, 3, 2, 5, 3, 1]), torch.tensor([0, 2, 2, 5])
    bags = [index[a:b] for a, b in ((0, 2), (2, 2), (2, 5), (5, 7))]
    for mode in ("sum", "mean"):
        for padding in (None, 3):
            kept = [b if padding is None else b[b != padding] for b in bags]
            function = getattr(librepdl, mode)
            expected = torch.stack([function(w[b], axis=0) if len(b) else torch.zeros(4, dtype=dtype) for b in kept])
            g = torch.randn(4, 4).to(dtype)
            out, (dw,) = gradients(lambda t: F.embedding_bag(index, t, offsets, mode=mode, padding_idx=padding), w, g=g)
            assert same(out, expected)
            scaled = [librepdl.div(g[i].double(), torch.full((4,), float(max(len(b), 1)), dtype=torch.float64), out=torch.empty_like(g[i]))
                      if mode == "mean" else g[i] for i, b in enumerate(kept)]
            rows = [(int(k), scaled[i]) for i, b in enumerate(kept) for k in b]
            places = librepdl.embedding_backward(torch.stack([r for _, r in rows]), torch.tensor([k for k, _ in rows]), rows=10)
            assert same(dw, places)
            with torch.no_grad():
                last = torch.cat([offsets, torch.tensor([7])])
                assert same(F.embedding_bag(index, w, last, mode=mode, padding_idx=padding, include_last_offset=True), expected)
    assert same(nn.EmbeddingBag.from_pretrained(w, mode="sum")(index[:6].view(2, 3)), torch.stack([librepdl.sum(w[index[:3]], axis=0),
                                                                                             librepdl.sum(w[index[3:6]], axis=0)]))
    with pytest.raises(RuntimeError, match="offsets"):
        F.embedding_bag(index, w, offsets + 1, mode="sum")


def test_max_unpool():
    x = torch.randn(2, 3, 8, 6)
    y, places = F.max_pool2d(x, 2, return_indices=True)
    out, (dy,) = gradients(lambda t: F.max_unpool2d(t, places, 2), y)
    assert torch.equal(out[out != 0], x[out != 0]) and int((out != 0).sum()) == y.numel() and same(dy, torch.ones_like(y))
    both = F.max_unpool2d(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3, 3]]]), (1, 2))
    assert both.tolist() == [[[0, 0, 0, 2]]]  # of one place the last
    with pytest.raises(RuntimeError):
        F.max_unpool2d(y, places + 48, 2)


def test_pooling_and_places_of_float64():
    """Sums that float64 cannot add up one after the other, and one rounding."""
    hard = torch.tensor([1e17, 1.0, -1e17, 0.1], dtype=torch.float64)
    x = hard.view(1, 1, 2, 2).clone().requires_grad_()
    y = F.avg_pool2d(x, 2)
    assert y.item() == 1.1 / 4 == F.adaptive_avg_pool2d(x, 1).item()
    y.sum().backward()
    assert x.grad.tolist() == [[[[0.25] * 2] * 2]]
    x.grad = None
    weights = torch.tensor([[1e17, 1.0, 1.0], [-1e17, 0.1, 2.0], [4.0, 8.0, 8.0]], dtype=torch.float64)
    (F.max_pool2d(x, 2, stride=1, padding=1) * weights).sum().backward()  # the greatest wins four windows
    assert x.grad.tolist() == [[[[1.1, 3.0], [4.0, 16.0]]]]
    one = torch.ones(1, 1, 1, 1, dtype=torch.float64, requires_grad=True)
    (F.interpolate(one, 2) * hard.view(1, 1, 2, 2)).sum().backward()
    assert one.grad.item() == 1.1
    index, zeros = torch.zeros(4, dtype=torch.long), torch.zeros(2, dtype=torch.float64)
    for sums in (zeros.index_add(0, index, hard), zeros.scatter_add(0, index, hard), zeros.index_put((index,), hard, accumulate=True)):
        assert sums.tolist() == [1.1, 0.0]
    assert F.fold(hard.diag().flip(0).view(1, 4, 4), (1, 7), (1, 4))[0, 0, 0, 3].item() == 1.1
    weight = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    (F.embedding(index, weight).view(4) * hard).sum().backward()
    assert weight.grad.tolist() == [[1.1], [0.0]]
    bags = F.embedding_bag(torch.arange(4), hard.view(4, 1), torch.tensor([0, 3]), mode="mean")
    assert bags.tolist() == [[float(Fraction(1, 3))], [0.1]]
    edge = torch.ones(1, 1, 2, dtype=torch.float64, requires_grad=True)
    (F.pad(edge, (3, 0), mode="replicate").view(5)[:4] * hard).sum().backward()
    assert edge.grad.tolist() == [[[1.1, 0.0]]]
    kept = F.dropout(hard, 0.2)
    assert all(k in (0.0, float(Fraction(v) / (1 - Fraction(0.2)))) for k, v in zip(kept.tolist(), hard.tolist(), strict=True))


def test_bincount():
    x = torch.tensor([0, 2, 2, 2])
    assert torch.bincount(x, weights=torch.tensor([0.5, 2.0**24, 1.0, -(2.0**24)]), minlength=4).tolist() == [0.5, 0, 1, 0]
    assert torch.bincount(x).tolist() == [1, 0, 3]
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(x - 1, weights=torch.ones(4))
    assert torch.bincount(x, weights=torch.tensor([0.1, 1e17, 1.0, -1e17], dtype=torch.float64)).tolist() == [0.1, 0, 1]
    with pytest.raises(NotImplementedError, match="neither float32 nor float64"):
        torch.bincount(x, weights=torch.ones(4, dtype=torch.float16))


def test_histc():
    """Bins are exact: numbers beside an edge that is no float32, the edges themselves, and what is outside."""
    for bins, low, high in ((10, 0.0, 1.0), (7, -1.0, 2.5), (3, 1e-3, 1e30), (5, 0.0, 0.0)):
        x = torch.cat([torch.randn(200), torch.linspace(low, high, bins + 1), torch.tensor([float("nan"), -0.0, 1e-30, 1e29])])
        edges = torch.linspace(low, high, bins + 1)
        x = torch.cat([x, *((bits(edges) + step).view(torch.float32) for step in (-1, 1))])
        x = x[~x.isinf()]
        if low == high:
            x = x[x.isfinite()]
        a, b = (Fraction(t.item()) for t in ((x.min(), x.max()) if low == high else torch.tensor([low, high])))
        expected = [0] * bins
        for v in x[~x.isnan()].tolist():
            if a <= v <= b:
                expected[min((Fraction(v) - a) * bins // (b - a), bins - 1)] += 1
        assert torch.histc(x, bins, low, high).tolist() == expected
    out = torch.empty(0)
    torch.histc(torch.ones(3), 3, out=out)
    assert out.tolist() == [0, 3, 0] and torch.histc(torch.ones(0), 2).tolist() == [0, 0]
    for arguments, error in (((torch.tensor([1.0, float("inf")]),), "not finite"), ((torch.ones(2), 0), "bins"),
                             ((torch.ones(2), 3, 2, 1), "larger")):
        with pytest.raises(RuntimeError, match=error):
            torch.histc(*arguments)


def test_renorm():
    """Each operation rounded: rows that are longer times maxnorm / (norm + 1e-7)."""
    x = torch.randn(6, 8)
    for p in (1, 2, float("inf")):
        norm = librepdl.vector_norm(x, p=float(p), axis=1, keepdims=True)
        most = float(norm.median())
        factor = librepdl.div(torch.full((6, 1), most), librepdl.add(norm, torch.full((6, 1), 1e-7)))
        expected = torch.where(norm > most, librepdl.mul(x, factor), x)
        assert same(torch.renorm(x, p, 0, most), expected) and same(x.clone().renorm_(p, 0, most), expected)
        assert same(torch.renorm(x.t(), p, 1, most), expected.t())
        table, index = x.clone(), torch.tensor([[5, 0], [0, 3]])
        assert same(F.embedding(index, table, max_norm=most, norm_type=float(p)), expected[index])
        named = torch.zeros(6, dtype=torch.bool)
        named[index] = True
        assert same(table, torch.where(named[:, None], expected, x))


def test_the_gradient_of_renorm_is_that_of_its_operations():
    """PyTorch's own computes a norm in float64 on the CPU, in float32 on a GPU."""

    def operations(x):
        norm = torch.linalg.vector_norm(x, 2, (0, 2), keepdim=True)
        return torch.where(norm > 0.5, x * (torch.tensor(0.5) / (norm + 1e-7)), x)

    x, g = torch.randn(3, 4, 5), torch.randn(3, 4, 5)
    gradients = []
    for function in (operations, lambda x: torch.renorm(x, 2, 1, 0.5), lambda x: (x * 1).renorm_(2, 1, 0.5)):
        leaf = x.clone().requires_grad_()
        gradients += torch.autograd.grad(function(leaf), leaf, g)
    assert same(gradients[0], gradients[1]) and same(gradients[0], gradients[2])


def test_local_response_norm():
    """Its average of squares is over channels: a window in three dimensions that is 1 wide in two."""
    x = torch.randn(2, 7, 3, 4)
    squares = F.pad(librepdl.square(x).view(2, 1, 7, 12), (0, 0, 1, 1))
    average = librepdl.avg_pool2d(squares.view(2, 1, 9, 12), (3, 1), (1, 1)).view(2, 7, 3, 4)
    scaled = librepdl.mul(average, torch.full_like(average, 1e-4))
    below = librepdl.pow_scalar(librepdl.add(scaled, torch.ones_like(average)), exponent=0.75)
    out, (dx,) = gradients(nn.LocalResponseNorm(3), x)
    assert same(out, librepdl.div(x, below)) and dx.ne(0).all()


def test_a_penalty_on_gradients():
    """Convolutions are differentiated twice: the gradient of a gradient is one of librepdl's convolutions, too."""
    torch.manual_seed(0)
    x, w, g, v = torch.randn(2, 3, 7, 6), torch.randn(4, 3, 3, 3), torch.randn(2, 4, 4, 3), torch.randn(2, 3, 7, 6)
    leaf, weight, up = (t.clone().requires_grad_() for t in (x, w, g))
    options = {"stride": 2, "padding": 1}
    (first,) = torch.autograd.grad(F.conv2d(leaf, weight, **options), leaf, up, create_graph=True)
    first.backward(v)
    assert same(first.detach(), librepdl.conv2d_grad_input(g, w, size=(7, 6), stride=(2, 2), padding=(1, 1)))
    assert same(weight.grad, librepdl.conv2d_grad_weight(g, v, kernel=(3, 3), stride=(2, 2), padding=(1, 1)))
    assert same(up.grad, librepdl.conv2d(v, w, stride=(2, 2), padding=(1, 1)))


def test_frequencies():
    assert torch.fft.fftfreq(5).tolist() == [v * torch.tensor(0.2).item() for v in (0, 1, 2, -2, -1)]
    assert torch.fft.rfftfreq(4, 0.5).tolist() == [0, 0.5, 1]


# ---- everything of this file, elsewhere ----

def fingerprint_of_everything(device):
    torch.manual_seed(3)
    found = []

    def leaf(*shape, dtype=torch.float32):
        found.append(torch.randn(*shape, device=device).to(dtype).requires_grad_())
        return found[-1]

    def keep(y):
        if y.requires_grad:
            y.backward(torch.linspace(-1, 2, y.numel(), device=device).to(y.dtype).view(y.shape))
        found.append(y.detach())

    index = torch.randint(0, 20, (30,), device=device)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for function in (torch.abs, lambda t: F.dropout(t, 1 / 3), lambda t: F.dropout(t * 1, 0.1, inplace=True), F.dropout2d,
                         F.alpha_dropout, lambda t: F.elu(t * 1, 0.7, inplace=True), lambda t: F.rrelu(t, training=True),
                         lambda t: t.norm(1, dim=1)):
            keep(function(leaf(6, 4, 3, 5, dtype=dtype)))
        keep(torch.normal(leaf(8, dtype=dtype), leaf(8, dtype=dtype).detach().abs()))
        keep(torch.linalg.cross(leaf(7, 3, dtype=dtype), leaf(1, 3, dtype=dtype)))
        keep(torch.heaviside(leaf(9, dtype=dtype).detach(), leaf(1, dtype=dtype).detach()))
        keep(leaf(20, dtype=dtype).detach().put(index, leaf(30, dtype=dtype).detach(), True))
        for mode in ("sum", "mean"):
            keep(F.embedding_bag(index, leaf(20, 5, dtype=dtype), torch.arange(0, 30, 4, device=device), mode=mode, padding_idx=3))
    keep(F.bilinear(leaf(4, 5), leaf(4, 6), leaf(3, 5, 6), leaf(3)))
    y, places = F.max_pool2d(leaf(2, 3, 8, 8), 2, return_indices=True)
    keep(F.max_unpool2d(y, places, 2))
    keep(F.local_response_norm(leaf(2, 6, 4, 4), 3))
    keep(torch.histc(leaf(500).detach(), 9, -2, 1.5))
    keep(torch.bincount(index, weights=leaf(30).detach()))
    keep(torch.renorm(leaf(5, 6).detach(), 2, 0, 1.0))
    keep(F.embedding(index, leaf(20, 5).detach(), max_norm=1.5))
    keep(torch.autograd.grad(F.conv2d(x := leaf(1, 2, 6, 6), leaf(3, 2, 3, 3)).square().sum(), x, create_graph=True)[0])
    return librepdl.torch.fingerprint([t.detach().cpu() for v in found for t in (v, v.grad) if t is not None])


def test_one_thread_and_two():
    torch.set_num_threads(1)
    first = fingerprint_of_everything("cpu")
    torch.set_num_threads(2)
    assert fingerprint_of_everything("cpu") == first
