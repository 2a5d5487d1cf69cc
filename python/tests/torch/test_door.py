"""What a user sees of librepdl.torch beside the numbers."""

import copy
import io
import math
import pathlib
import re
import subprocess
import sys
import threading
import warnings

import pytest
import torch
from torch import nn

import librepdl.torch
from librepdl.torch import _past, _patches


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        return torch.fft.rfft(self.inner(x)).abs()


def test_enable_and_disable():
    x = torch.linspace(-3, 3, 1001)
    plain = torch.exp(x)
    assert not librepdl.torch.is_enabled()
    librepdl.torch.enable()
    librepdl.torch.enable()
    assert librepdl.torch.is_enabled()
    assert torch.equal(torch.exp(x), librepdl.exp(x))
    with librepdl.torch.exempt():
        assert torch.equal(torch.exp(x), plain)
        torch.fft.rfft(x)
    librepdl.torch.disable()
    librepdl.torch.disable()
    assert torch.equal(torch.exp(x), plain)
    with librepdl.torch.reproducible():
        with librepdl.torch.reproducible():
            pass
        assert librepdl.torch.is_enabled()
    assert not librepdl.torch.is_enabled()
    with pytest.raises(ZeroDivisionError), librepdl.torch.reproducible():
        raise ZeroDivisionError
    assert not librepdl.torch.is_enabled()


def test_refusals_name_the_operation_and_the_module():
    librepdl.torch.enable()
    with pytest.raises(NotImplementedError, match=r"aten::fft_rfft \(float32, cpu\): not reproducible yet; called by Net"):
        Net()(torch.ones(2, 4))
    with pytest.raises(NotImplementedError, match=r"aten::lgamma \(float64, cpu\): not reproducible yet$"):
        torch.lgamma(torch.ones(2, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match=r"aten::fft_fft \(complex64, cpu\)"):
        torch.fft.fft(torch.ones(2, dtype=torch.complex64))
    # Integers round nothing.
    assert torch.equal(torch.cumsum(torch.arange(3), 0), torch.tensor([0, 1, 3]))
    assert torch.arange(5).sum() == 10
    # A result that would be a floating-point number is refused, too.
    with pytest.raises(NotImplementedError, match="aten::polygamma"):
        torch.polygamma(1, torch.arange(2))


def test_the_backward_pass_is_covered_in_its_own_threads():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return torch.polygamma(1, g * 3 * x * x)

    librepdl.torch.enable()
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"aten::polygamma \(float32, cpu\).*the backward pass, "):
        Cube.apply(x).sum().backward()


def test_other_threads_and_exemption():
    librepdl.torch.enable()
    found = []

    def other():
        try:
            torch.fft.fft(torch.ones(2))
        except NotImplementedError:
            found.append("refused")

    with librepdl.torch.exempt():
        torch.fft.fft(torch.ones(2))
        t = threading.Thread(target=other)
        t.start()
        t.join()
    assert found == ["refused"]


def test_without_strictness_it_is_noted():
    librepdl.torch.status()
    with librepdl.torch.reproducible(strict=False):
        Net()(torch.ones(2, 4))
        status = librepdl.torch.status()
        assert not status["strict"]
        assert any("aten::fft_rfft (float32, cpu)" in what for what in status["noted"])


def test_status():
    with librepdl.torch.reproducible():
        status = librepdl.torch.status()
    assert status["enabled"] and status["strict"] and status["policy"] >= 1
    assert status["replaced"] > 300 and status["refused"] > 300 and status["passed"] > 300
    assert status["overridden"] == []
    if status["tested"]:
        assert status["changed"] == []


def test_kernels_that_others_register_are_noticed():
    librepdl.torch.enable()
    other = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.impl("exp", lambda x: x, "CPU", allow_override=True)
    try:
        assert librepdl.torch.status()["overridden"] == ["aten::exp (CPU)"]
        with pytest.raises(RuntimeError, match=r"other kernels stand where librepdl's should: aten::exp \(CPU\)"):
            librepdl.torch.enable()
    finally:
        other._destroy()
    assert librepdl.torch.status()["overridden"] == []


def test_printing_saving_copying():
    librepdl.torch.enable()
    x = torch.tensor([1.5, float("nan"), -2e20])
    assert "1.5000e+00" in repr(x) and "nan" in str(x)
    assert repr(torch.linspace(0, 1, 2000))
    net = nn.Linear(3, 3)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other = nn.Linear(3, 3)
    other.load_state_dict(torch.load(file))
    assert librepdl.torch.fingerprint(other) == librepdl.torch.fingerprint(net) == librepdl.torch.fingerprint(copy.deepcopy(net))


def test_compile_runs_eagerly_and_says_so():
    librepdl.torch.enable()
    _past._warned = False
    with pytest.warns(UserWarning, match="runs eagerly"):
        f = torch.compile(lambda x: torch.exp(x) + 1)
    x = torch.linspace(0, 1, 17)
    assert torch.equal(f(x), torch.exp(x) + 1)


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((3,), float(i)).exp()


def test_data_loader_workers():
    librepdl.torch.enable()
    torch.set_num_threads(2)
    torch.exp(torch.ones(100000))  # OpenMP has threads that a child lacks
    g = torch.Generator().manual_seed(3)
    batches = list(torch.utils.data.DataLoader(Squares(), batch_size=4, shuffle=True, num_workers=2, generator=g))
    order = torch.cat(batches)[:, 0].log().round().to(torch.int64)
    assert sorted(order.tolist()) == list(range(12))
    assert torch.equal(torch.cat(batches), order.to(torch.float32).exp()[:, None].expand(12, 3))
    again = torch.utils.data.DataLoader(range(12), batch_size=12, shuffle=True, generator=torch.Generator().manual_seed(3))
    assert next(iter(again)).tolist() == order.tolist()


def test_random_numbers():
    """A seed gives the same numbers in any number of threads; a generator's state can be saved and restored."""
    librepdl.torch.enable()

    def draws():
        return [torch.rand(5), torch.randn(3, 2), torch.randint(0, 10, (7,)), torch.randperm(9), torch.bernoulli(torch.full((6,), 0.3)),
                nn.functional.dropout(torch.ones(20), 0.4), torch.empty(4).exponential_(2.0), torch.empty(3, dtype=torch.bfloat16).normal_()]

    torch.manual_seed(5)
    first, state, second = draws(), torch.get_rng_state(), draws()
    torch.set_num_threads(2)
    torch.manual_seed(5)
    assert all(torch.equal(a, b) for a, b in zip(first, draws()))
    torch.set_rng_state(state)
    assert all(torch.equal(a, b) for a, b in zip(second, draws()))
    assert not torch.equal(first[0], second[0])
    g = torch.Generator().manual_seed(5)
    assert torch.equal(torch.rand(5, generator=g), first[0])
    kept = first[5] != 0
    assert torch.equal(first[5][kept], librepdl.div(torch.ones(int(kept.sum())), torch.full((int(kept.sum()),), 0.6)))


def test_exponential_numbers_are_never_0():
    librepdl.torch.enable()
    torch.manual_seed(21178)
    draws = torch.empty(99120).exponential_()
    assert draws[99116] == 2.0**-33 and draws.min() == 2.0**-33
    torch.manual_seed(21178)
    x = torch.zeros(99120 // 8, 8)
    sample = nn.functional.gumbel_softmax(x, hard=True)
    assert (sample.sum(1) == 1).all()
    assert (torch.empty(9, dtype=torch.float16).exponential_(2.0**150) == 2.0**-24).all()


def test_frexp():
    librepdl.torch.enable()
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        x = torch.tensor([1.5, -0.0, 3e-8, -5.0, torch.inf, torch.nan]).to(dtype).requires_grad_()
        m, e = torch.frexp(x)
        expected = librepdl.frexp(x.detach())
        assert m.dtype == dtype and e.dtype == torch.int32 and torch.equal(e, expected[1]) and e[4:].tolist() == [0, 0]
        assert torch.equal(m[:5].detach(), expected[0][:5]) and m[5].isnan()
        assert torch.equal(librepdl.ldexp(m[:5].detach(), e[:5]), x[:5].detach())
        m[3].backward()
        assert x.grad[3] == 0.125 and x.grad[0] == 0
        assert torch.equal(torch.ldexp(x, torch.tensor(2))[:4].detach(), librepdl.ldexp(x[:4].detach(), 2))


def test_prefixes_and_products():
    librepdl.torch.enable()
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        x = torch.randn(3, 5, 4).to(dtype)
        for d in (0, 1, -1):
            assert torch.equal(x.cumsum(d), librepdl.cumsum(x, axis=d)) and torch.equal(x.cumprod(d), librepdl.cumprod(x, axis=d))
            assert torch.equal(x.logcumsumexp(d), librepdl.logcumsumexp(x, axis=d))
            assert torch.equal(x.prod(d, keepdim=True), librepdl.prod(x, axis=d, keepdims=True))
        assert torch.equal(x.prod(), librepdl.prod(x))
        in_place, out = x.clone().cumsum_(1), torch.empty_like(x)
        torch.cumprod(x, 0, out=out)
        assert torch.equal(in_place, x.cumsum(1)) and torch.equal(out, x.cumprod(0))
        turned = x.transpose(0, 2)
        assert torch.equal(turned.cumsum(1), librepdl.cumsum(turned.contiguous(), axis=1))
    # In the type that is asked for, to which the operand is converted first; integers are PyTorch's.
    half, whole = torch.tensor([1.5, 2.5]), torch.arange(1, 5)
    assert half.cumsum(0, dtype=torch.float64).dtype == torch.float64 and half.cumsum(0, dtype=torch.int64).tolist() == [1, 3]
    assert whole.cumprod(0).tolist() == [1, 2, 6, 24] and whole.prod() == 24 and half.prod(0, dtype=torch.int64) == 2
    assert torch.equal(whole.cumsum(0, dtype=torch.float32), torch.tensor([1.0, 3, 6, 10])) and whole.prod(dtype=torch.float32) == 24
    one = torch.tensor(3.0)
    assert one.cumsum(0) == 3 and one.cumprod(0) == 3 and one.logcumsumexp(0) == 3 and one.prod(0) == 3
    assert torch.empty(0, 3).cumsum(0).shape == (0, 3) and torch.equal(torch.empty(0, 3).prod(0), torch.ones(3))
    for f in (lambda t: t.cumsum(1), lambda t: t.cumprod(1), lambda t: t.logcumsumexp(1), lambda t: t.prod(1), lambda t: t.prod()):
        x = torch.randn(4, 5, dtype=torch.float64)
        x[1, 2] = 0
        x.requires_grad_()
        y = f(x)
        (ours,) = torch.autograd.grad(y, x, g := torch.randn_like(y))
        with librepdl.torch.exempt():
            (stock,) = torch.autograd.grad(f(x), x, g)
        assert torch.allclose(ours, stock)


def test_multinomial():
    """The library's places, in any layout and in place; errors are PyTorch's."""
    librepdl.torch.enable()
    w = torch.rand(3, 50).to(torch.bfloat16)
    w[:, ::7] = 0
    for x in (w, w.float(), w.half(), w.double(), w[1]):
        for replacement in (False, True):
            for samples in (1, 5, 42):
                torch.manual_seed(3)
                got = torch.multinomial(x, samples, replacement)
                assert got.shape == (*x.shape[:-1], samples) and got.dtype == torch.int64
                assert (x.gather(-1, got) > 0).all()
                if not replacement:
                    assert all(len(set(row)) == samples for row in got.reshape(-1, samples).tolist())
                torch.manual_seed(3)
                strided = x.t().contiguous().t() if x.dim() == 2 else x.repeat_interleave(2)[::2]
                assert torch.equal(got, torch.multinomial(strided, samples, replacement))
                out = torch.empty(0, dtype=torch.int64)
                torch.multinomial(x, samples, replacement, generator=torch.Generator().manual_seed(3), out=out)
                assert torch.equal(got, out)
    assert torch.multinomial(torch.ones(0, 3), 2).shape == (0, 2)
    many = torch.multinomial(torch.tensor([1.0, 0.0, 3.0]), 40000, True).bincount(minlength=3).tolist()
    assert many[1] == 0 and abs(many[0] - 10000) < 500
    for x, samples, replacement in ((torch.ones(2, 2, 2), 1, True), (torch.ones(3), 0, True), (torch.ones(3), 4, False),
                                    (torch.tensor([1.0, -1.0]), 1, True), (torch.tensor([1.0, float("nan")]), 1, False),
                                    (torch.tensor([1.0, float("inf")]), 1, True), (torch.zeros(3), 1, True),
                                    (torch.tensor([1.0, 0.0]), 2, False)):
        with pytest.raises(RuntimeError):
            torch.multinomial(x, samples, replacement)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_optimisers_are_librepdls(dtype):
    librepdl.torch.enable()
    torch.manual_seed(0)
    p, g = torch.randn(50, dtype=dtype), torch.randn(50, dtype=dtype)
    parameter = nn.Parameter(p.clone())
    o = torch.optim.AdamW([parameter], lr=0.01, betas=(0.9, 0.99), eps=1e-7, weight_decay=0.1, fused=True)
    m, v = torch.zeros(50, dtype=dtype), torch.zeros(50, dtype=dtype)
    for step in (1, 2):
        parameter.grad = g.clone()
        o.step()
        librepdl.adamw([p], [g], [m], [v], lr=0.01, beta1=0.9, beta2=0.99, eps=1e-7, weight_decay=0.1, step=step)
        assert torch.equal(parameter.detach(), p) and torch.equal(o.state[parameter]["exp_avg_sq"], v)
    parameter, velocity = nn.Parameter(p.clone()), torch.zeros(50, dtype=dtype)
    o = torch.optim.SGD([parameter], lr=0.1, momentum=0.9, fused=True)
    for step in range(2):
        parameter.grad = g.clone()
        o.step()
        librepdl.sgd([p], [g], [velocity], lr=0.1, momentum=0.9, first_step=step == 0)
        assert torch.equal(parameter.detach(), p) and torch.equal(o.state[parameter]["momentum_buffer"], velocity)
    plain = nn.Parameter(p.clone())
    plain.grad = g.clone()
    torch.optim.SGD([plain], lr=0.1, fused=True).step()
    librepdl.sgd([p], [g], lr=0.1)
    assert torch.equal(plain.detach(), p)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_optimisers_with_options(dtype):
    """maximize negates gradients; a tensor as lr; Adam without weight_decay is AdamW without it; what librepdl has no step of is refused."""
    librepdl.torch.enable()
    p, g = torch.randn(50, dtype=dtype), torch.randn(50, dtype=dtype)

    def stepped(optimiser, **options):
        parameter = nn.Parameter(p.clone())
        o = optimiser([parameter], fused=True, **options)
        for _ in range(3):
            parameter.grad = g.clone()
            o.step()
        assert torch.equal(parameter.grad, g)
        return parameter.detach()

    for options in ({}, {"maximize": True}):
        signed = librepdl.neg(g) if options else g
        for lr in (0.0625, torch.tensor(0.0625)):
            expected, m, v = p.clone(), torch.zeros(50, dtype=dtype), torch.zeros(50, dtype=dtype)
            for step in (1, 2, 3):
                librepdl.adamw([expected], [signed], [m], [v], lr=0.0625, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0, step=step)
            assert torch.equal(stepped(torch.optim.Adam, lr=lr, **options), expected)
            assert torch.equal(stepped(torch.optim.AdamW, lr=lr, weight_decay=0, **options), expected)
            expected, velocity = p.clone(), torch.zeros(50, dtype=dtype)
            for step in (1, 2, 3):
                librepdl.sgd([expected], [signed], [velocity], lr=0.0625, momentum=0.5, weight_decay=0.1, first_step=step == 1)
            assert torch.equal(stepped(torch.optim.SGD, lr=lr, momentum=0.5, weight_decay=0.1, **options), expected)
    with pytest.raises(NotImplementedError, match="_fused_adam_ .*with weight_decay there is no step"):
        stepped(torch.optim.Adam, weight_decay=0.1)
    with pytest.raises(NotImplementedError, match="_fused_adagrad_ .*no such step"):
        stepped(torch.optim.Adagrad)
    with pytest.raises(NotImplementedError, match="_fused_adamw_ .*amsgrad"):
        stepped(torch.optim.AdamW, amsgrad=True)


def test_matmul_and_linear_do_not_depend_on_strides():
    librepdl.torch.enable()
    x, w, b = torch.randn(3, 4, 5), torch.randn(6, 5), torch.randn(6)
    strided = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(nn.functional.linear(x, w, b), nn.functional.linear(strided, w, b))
    assert torch.equal(nn.functional.linear(x, w, b).view(12, 6), librepdl.matmul(x.reshape(12, 5), w.t(), b))
    y = torch.addmm(b, x[0], w.t(), beta=0.5, alpha=1.25)
    assert torch.equal(y, librepdl.matmul(x[0], w.t(), b, alpha=1.25, beta=0.5))
    h = torch.randn(4, 5, dtype=torch.bfloat16)
    assert torch.equal(h @ h.t(), librepdl.matmul(h, h.t()))


def test_attention_is_the_same_alone_and_in_a_batch():
    librepdl.torch.enable()
    q, k, v = (torch.randn(4, 2, 6, 8) for _ in range(3))
    attention = nn.functional.scaled_dot_product_attention
    whole = attention(q, k, v, is_causal=True)
    assert torch.equal(whole[2:3], attention(q[2:3], k[2:3], v[2:3], is_causal=True))
    # A key more that is masked changes nothing, nor do fewer queries.
    mask = torch.ones(6, 7, dtype=torch.bool).tril()
    longer = [torch.cat([t, torch.randn(4, 2, 1, 8)], 2) for t in (k, v)]
    assert torch.equal(whole, attention(q, *longer, attn_mask=mask))
    assert torch.equal(whole[:, :, 5:], attention(q[:, :, 5:], k, v))
    assert torch.equal(whole, librepdl.attention(q, k, v, causal=True))
    assert torch.equal(attention(q, k, v, attn_mask=torch.zeros(6, 6, dtype=torch.bool)), torch.zeros_like(q))


def test_of_several_values_the_last_stays():
    librepdl.torch.enable()
    index = torch.tensor([1, 3, 1, 1, 3])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    x = torch.zeros(4)
    x[index] = values
    assert x.tolist() == [0, 4, 0, 5]
    y = torch.full((4,), -0.0).index_put((index,), values, accumulate=True)
    assert y.tolist() == [0, 8, 0, 7] and torch.signbit(y).tolist() == [True, False, True, False]


def test_order_is_stable():
    librepdl.torch.enable()
    x = torch.tensor([1.0, 3.0, float("nan"), 3.0, 1.0, -0.0, 0.0])
    assert torch.topk(x, 4).indices.tolist() == [2, 1, 3, 0]
    assert torch.sort(x).indices.tolist() == [5, 6, 0, 4, 1, 3, 2]
    assert x.median().isnan() and x.nanmedian() == 1.0
    assert torch.kthvalue(x, 3).indices == 0
    assert x.max(0).indices == 2 and torch.argmin(x[:2]) == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int16, torch.uint8, torch.bool])
@pytest.mark.parametrize("shape, dim", [((700,), 0), ((3, 700), 1), ((70, 2, 3), 0), ((4, 1), 1), ((0, 3), 1)])
def test_selections_are_those_of_a_stable_sort(dtype, shape, dim):
    librepdl.torch.enable()
    x = torch.randint(-9, 9, shape)
    if dtype.is_floating_point:
        special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan])[torch.randint(6, shape)]
        x = torch.where(torch.rand(shape) < 0.3, special, x / 4)
    x = x.to(dtype)

    def bytes_of(t):
        return t.clone(memory_format=torch.contiguous_format).reshape(-1, 1).view(torch.uint8)

    def same(found, *expected):
        for a, b in zip(found, expected):
            assert a.shape == b.shape and torch.equal(bytes_of(a), bytes_of(b)), (a, b)

    n = shape[dim]
    for descending in (False, True):
        values, places = torch.sort(x, stable=True, dim=dim, descending=descending)
        for k in {0, 1, min(3, n), n // 2, n}:
            same(x.topk(k, dim, largest=descending), values.narrow(dim, 0, k), places.narrow(dim, 0, k))
    values, places = torch.sort(x, stable=True, dim=dim)
    for k in {1, n // 2 + 1, n}:
        same(x.kthvalue(k, dim), values.select(dim, k - 1), places.select(dim, k - 1))
    if x.numel() == 0 or dtype is torch.bool:
        return
    nans = x.isnan().sum(dim, keepdim=True)
    for median, place in ((torch.median, torch.where(nans > 0, n - nans, (n - 1) // 2)), (torch.nanmedian, ((n - nans - 1) // 2).clamp(min=0))):
        same(median(x, dim, keepdim=True), values.gather(dim, place), places.gather(dim, place))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_sums_at_indices_are_those_at_places(dtype):
    librepdl.torch.enable()
    shape = 4, 5, 6
    i, j, pairs = torch.tensor([0, 3, -1, 3]), torch.tensor([4, 4, 0, 4]), torch.tensor([[1], [2]])
    for indices in ([i], [None, j], [i, j], [i, None, j], [None, j, i], [pairs, i], [None, pairs, i], [torch.rand(4, 5) < 0.5], [None, torch.rand(5, 6) < 0.5],
                    [torch.tensor([True, False, False, True]), None, j[:1]], [i[:0]], [torch.tensor(2)]):
        x, places = torch.randn(shape, dtype=dtype), torch.arange(120).view(shape)
        of = torch.ops.aten.index(places, indices)
        for values in torch.randn(of.shape, dtype=dtype), torch.randn(of.shape[-1:], dtype=dtype), torch.tensor(0.1, dtype=dtype):
            expected = x.flatten().scatter_add(0, of.flatten(), values.expand(of.shape).flatten()).view(shape)
            assert torch.equal(torch.ops.aten.index_put(x, indices, values, True), expected)
    index, source = torch.randint(5, (30,)), torch.randn(4, 30, 6, dtype=dtype)
    x = torch.randn(shape, dtype=dtype)
    index = index[None, :, None].expand(source.shape)
    assert torch.equal(x.scatter_add(1, index, source), x.scatter_add(1, index.contiguous(), source))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_selections_in_every_type(dtype):
    librepdl.torch.enable()
    x = torch.tensor([[1.0, 3.0, 0.5, 3.0], [-0.0, 0.0, 0.0, -0.0]], dtype=dtype)

    def one(t):  # the sign of a zero counts
        return [math.copysign(1.0, v) * (abs(v) + 1) for v in t.tolist()]

    assert x.max() == 3 and one(x.amax(1)) == [4, 1] and one(x.amin(1)) == [1.5, -1]
    assert torch.max(x, 1).indices.tolist() == [1, 1] and torch.min(x, 1).indices.tolist() == [2, 0]
    assert x.argmax() == 1 and x.argmin(1).tolist() == [2, 0]
    least, greatest = torch.aminmax(x, dim=1)
    assert one(least) == [1.5, -1] and one(greatest) == [4, 1]
    x[0, 2] = float("nan")
    assert x.max().isnan() and x.argmax() == 2 and x.argmin(1).tolist() == [2, 0]
    assert one(torch.relu(torch.tensor([-1.0, -0.0, 2.0], dtype=dtype))) == [1, 1, 3]
    y = torch.tensor([-1.0, 0.0, 2.0, 2.0], dtype=dtype, requires_grad=True)
    torch.relu(y).max().backward()
    assert y.grad.tolist() == [0, 0, 0.5, 0.5]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_extremes_so_far(dtype):
    librepdl.torch.enable()
    nan = float("nan")
    x = torch.tensor([1.0, 1.0, 0.0, 1.0, nan, 5.0, -nan], dtype=dtype)
    values, indices = torch.cummax(x, 0)
    assert indices.tolist() == [0, 1, 1, 3, 4, 4, 6]
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    canonical = torch.full((1,), nan, dtype=dtype).view(integer)
    assert values[:4].tolist() == [1, 1, 1, 1] and (values[4:].view(integer) == canonical).all()
    assert torch.cummin(x, 0).indices.tolist() == [0, 1, 2, 2, 4, 4, 6]
    zeros = torch.tensor([[-0.0], [0.0], [-0.0], [0.0]], dtype=dtype)
    assert torch.cummax(zeros, 0).indices.flatten().tolist() == [0, 1, 1, 3]
    assert torch.cummin(zeros, 0).indices.flatten().tolist() == [0, 0, 2, 2]
    assert torch.signbit(torch.cummin(zeros.t(), 1).values).all()
    assert torch.cummax(torch.tensor(2.0, dtype=dtype), 0).indices == 0 and torch.empty(0, 2, dtype=dtype).cummax(0).values.shape == (0, 2)
    if dtype == torch.float32:
        y = torch.tensor([1.0, 3.0, 2.0, 4.0], requires_grad=True)
        torch.cummax(y, 0).values.sum().backward()
        assert y.grad.tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("how", ["amax", "amin"])
def test_extremes_at_places(dtype, how):
    """scatter_reduce: NaN wins, -0 < +0, in any order; places that nothing comes to stay as they are; the gradient is shared by equals."""
    librepdl.torch.enable()
    values = torch.tensor([0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"), 2.0**-20], dtype=dtype)
    draws = torch.Generator().manual_seed(3)
    source = values[torch.randint(0, 8, (40, 3), generator=draws)]
    self = values[torch.randint(0, 8, (12, 3), generator=draws)]
    index = torch.randint(0, 11, (40, 3), generator=draws)  # nothing comes to the last row
    of_two = torch.maximum if how == "amax" else torch.minimum
    for with_self in (True, False):
        expected, touched = self.clone(), torch.zeros(12, 3, dtype=torch.bool)
        for i in range(40):
            for j in range(3):
                place = index[i, j], j
                first = not (with_self or touched[place])
                expected[place] = source[i, j] if first else of_two(expected[place], source[i, j])
                touched[place] = True
        found = self.scatter_reduce(0, index, source, how, include_self=with_self)
        order = torch.randperm(40, generator=draws)
        for result in (found, self.scatter_reduce(0, index[order], source[order], how, include_self=with_self),
                       self.clone().scatter_reduce_(0, index, source, how, include_self=with_self)):
            assert librepdl.torch.fingerprint(result) == librepdl.torch.fingerprint(expected)
    x = torch.tensor([1.0, 3.0, 2.0], dtype=dtype, requires_grad=True)
    y = torch.tensor([3.0, 3.0, 3.0, 1.0, 5.0], dtype=dtype, requires_grad=True)
    (x if how == "amax" else -x).scatter_reduce(0, torch.tensor([1, 1, 0, 0, 2]), y if how == "amax" else -y, how).sum().backward()
    sign, third = (1 if how == "amax" else -1), torch.tensor(1, dtype=dtype) / 3
    assert torch.equal(x.grad, torch.stack([0 * third, third, 0 * third]) * sign)
    assert torch.equal(y.grad, torch.stack([third, third, 3 * third, 0 * third, 3 * third]) * sign)


def test_initialisation_by_the_inverse_of_erf():
    librepdl.torch.enable()
    assert torch.erfinv(torch.tensor([0.5, -1.0, 1.0])).tolist() == [0.4769362807273865, -math.inf, math.inf]
    assert torch.erfinv(torch.tensor([0, 1, 2])).tolist()[:2] == [0, math.inf]
    assert torch.erfinv(torch.tensor([0.5, -1.0], dtype=torch.float64)).tolist() == [0.4769362762044699, -math.inf]
    torch.manual_seed(0)
    w = nn.init.trunc_normal_(torch.empty(1000), std=0.02)
    assert w.abs().max() <= 2 and 0.015 < w.square().mean().sqrt() < 0.025
    x = torch.tensor([0.25], requires_grad=True)
    y = torch.erfinv(x)
    y.backward(torch.tensor([3.0]))
    assert torch.equal(x.grad, torch.exp(y.detach() ** 2) * (0.5 * math.sqrt(math.pi)) * 3)


def test_normal_distribution():
    librepdl.torch.enable()
    assert torch.special.ndtri(torch.tensor([0.0, 0.25, 0.5, 1.0])).tolist() == [-math.inf, -0.6744897365570068, 0, math.inf]
    assert torch.special.ndtri(torch.tensor([0, 1])).tolist() == [-math.inf, math.inf]
    assert torch.special.log_ndtr(torch.tensor([0.0, -100.0, math.inf])).tolist() == [-0.6931471824645996, -5005.5244140625, 0]
    g = torch.tensor([3.0])
    x, z = torch.tensor([0.125], requires_grad=True), torch.tensor([-2.5], requires_grad=True)
    y, w = torch.special.ndtri(x), torch.special.log_ndtr(z)
    y.backward(g)
    w.backward(g)
    assert torch.equal(x.grad, g * math.sqrt(2 * math.pi) * torch.exp(y.detach() ** 2 / 2))
    assert torch.equal(z.grad, g / math.sqrt(2 * math.pi) * torch.exp(-(w.detach() + z.detach() ** 2 / 2)))
    assert torch.special.ndtri(torch.tensor([0.0, 0.25, 0.5], dtype=torch.float64)).tolist() == [-math.inf, -0.6744897501960817, 0]


def test_logarithm_of_gamma_and_its_gradient():
    librepdl.torch.enable()
    assert torch.lgamma(torch.tensor([0.0, 1.0, 2.0, -3.0, 0.5])).tolist() == [math.inf, 0, 0, math.inf, 0.5723649263381958]
    assert torch.digamma(torch.tensor([0.0, -0.0, 1.0])).tolist() == [-math.inf, math.inf, -0.5772156715393066]
    assert torch.lgamma(torch.arange(1, 4)).tolist() == [0, 0, 0.6931471824645996]
    assert torch.special.gammaln(torch.tensor(3.0)) == torch.tensor(3.0).lgamma() and torch.special.psi(torch.tensor(3.0)) == torch.tensor(3.0).digamma()
    x = torch.tensor([0.25, 7.5], requires_grad=True)
    torch.lgamma(x).backward(torch.tensor([3.0, -2.0]))
    assert torch.equal(x.grad, torch.digamma(x.detach()) * torch.tensor([3.0, -2.0]))
    with pytest.raises(NotImplementedError, match=r"aten::lgamma \(float64, cpu\): not reproducible yet$"):
        torch.lgamma(torch.ones(2, dtype=torch.float64))


def test_bessel_functions():
    librepdl.torch.enable()
    x = torch.tensor([0.0, 1.0, -2.0, math.inf])
    assert torch.equal(torch.i0(x), torch.tensor([1.0, 1.2660658777520084, 2.279585302336067, math.inf]))
    assert torch.equal(torch.special.i0(x), torch.i0(x))
    assert torch.equal(torch.special.i0e(x), torch.tensor([1.0, 0.46575960759364043, 0.308508322553671, 0.0]))
    assert torch.equal(torch.special.i1(x), torch.tensor([0.0, 0.5651591039924851, -1.5906368546373291, math.inf]))
    assert torch.equal(torch.special.i1e(x), torch.tensor([0.0, 0.2079104153497085, -0.2152692892489377, 0.0]))
    assert torch.equal(torch.i0(torch.tensor([0, 1])), torch.tensor([1.0, 1.2660658777520084]))
    y = torch.tensor([0.5, -3.0], requires_grad=True)
    torch.i0(y).backward(torch.tensor([3.0, 5.0]))
    assert torch.equal(y.grad, torch.tensor([3.0, 5.0]) * torch.special.i1(y.detach()))
    with pytest.raises(NotImplementedError, match=r"aten::i0 \(float64, cpu\): not reproducible yet$"):
        torch.i0(torch.ones(2, dtype=torch.float64))


def test_a_fingerprint_is_of_names_types_and_bits():
    net = nn.Linear(2, 2)
    state = net.state_dict()
    assert librepdl.torch.fingerprint(net) == librepdl.torch.fingerprint(state)
    assert librepdl.torch.fingerprint({"a": torch.tensor(0.0)}) != librepdl.torch.fingerprint({"a": torch.tensor(-0.0)})
    assert librepdl.torch.fingerprint({"a": torch.zeros(2)}) != librepdl.torch.fingerprint({"b": torch.zeros(2)})
    assert librepdl.torch.fingerprint([torch.zeros(2)]) != librepdl.torch.fingerprint([torch.zeros(2, dtype=torch.int32)])
    with pytest.raises(TypeError, match="expected tensors, numbers, strings"):
        librepdl.torch.fingerprint({"a": object()})


def test_reductions_between_processes():
    """Sums are librepdl's, also where a DistributedDataParallel calls for them; what it has not is refused, and moving data goes through."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("PyTorch without gloo")
    librepdl.torch.enable()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.ones(2)
        dist.broadcast(x, 0)
        dist.all_gather([torch.zeros(2)], x)
        dist.all_reduce(torch.ones(2, dtype=torch.int64))
        dist.all_reduce(x)
        assert torch.equal(x, torch.ones(2)) and not librepdl.torch.status()["overridden"]
        with pytest.raises(NotImplementedError, match=r"c10d::allreduce_ \(float32, cpu\): not reproducible yet \(the reduction PRODUCT\)"):
            dist.all_reduce(x, dist.ReduceOp.PRODUCT)
        with pytest.raises(NotImplementedError, match=r"c10d::reduce_ \(float8_e5m2, cpu\)"):
            dist.reduce(torch.ones(2).to(torch.float8_e5m2), 0)
        net = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        net(torch.ones(1, 2)).sum().backward()
        assert torch.equal(net.module.bias.grad, torch.ones(2))
    finally:
        dist.destroy_process_group()


def test_librepdl_without_torch():
    code = "import sys; sys.modules['torch'] = None; import numpy, librepdl; print(librepdl.exp(numpy.ones(1, 'f')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sources_include_what_they_call():
    """Each of aten's functions has a header of its own; which of them others include differs from version to version of PyTorch."""
    aten = pathlib.Path(torch.__file__).parent / "include/ATen/ops"
    sources = pathlib.Path(librepdl.torch.__file__).parent / "src"
    own = {path.name: path.read_text() for path in sources.glob("*pp")}

    def included(name):
        text = own[name]
        found = set(re.findall(r"#include <ATen/ops/(\w+)\.h>", text))
        return found.union(*(included(other) for other in re.findall(r'#include "(\w+\.hpp)"', text) if other in own))

    assert len(own) > 15
    for name, text in own.items():
        if "#include <torch/" not in text:
            called = {f for f in re.findall(r"\bat::([a-z_]\w*)", text) if (aten / f"{f}.h").exists()}
            assert called <= included(name), name
