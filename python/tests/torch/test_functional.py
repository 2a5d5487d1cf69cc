"""torch.func: each sample of vmap has the bits that it has alone, and derivatives are autograd's."""

import functools
import re
import subprocess
import sys

import functional
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn import functional as F

import librepdl.torch

#: Operations of the short run: those whose batching rules PyTorch writes as several roundings, and one of each other kind.
OPERATIONS = """addmm addmv addbmm addr baddbmm addcmul addcdiv lerp matmul mv dot linalg.vecdot inner nn.functional.linear
    nn.functional.layer_norm nn.functional.group_norm nn.functional.rms_norm nn.functional.instance_norm nn.functional.batch_norm
    nn.functional.cross_entropy nn.functional.nll_loss nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.mse_loss nn.functional.smooth_l1_loss nn.functional.huber_loss
    nn.functional.kl_div nn.functional.scaled_dot_product_attention softmax log_softmax logsumexp nn.functional.conv2d
    nn.functional.embedding nn.functional.prelu nn.functional.logsigmoid nn.functional.gelu nn.functional.max_pool2d index_add
    scatter_add index_put cumsum nn.functional.dropout std var_mean linspace""".split()


def same(a, b):
    return functional.different(functional.tensors_of(a), functional.tensors_of(b)) is None


def looped(f, *arguments, in_dims=None):
    """f of each sample, stacked."""
    in_dims = in_dims or (0,) * len(arguments)
    size = next(t.size(d) for t, d in zip(arguments, in_dims) if d is not None)
    found = [f(*(t if d is None else t.select(d, i) for t, d in zip(arguments, in_dims))) for i in range(size)]
    return torch.stack(found) if isinstance(found[0], torch.Tensor) else tuple(map(torch.stack, zip(*found)))


def generated(*arguments):
    """How many comparisons functional.py made, none of which failed."""
    done = subprocess.run([sys.executable, functional.__file__, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return int(re.search(r"equal (\d+)", done.stdout)[1])


def test_operations_of_samples():
    assert generated("--samples", "1", "--only", *OPERATIONS) > 500


@pytest.mark.long
def test_operations_of_all_samples():
    assert generated("--samples", "10") > 20000


@pytest.mark.parametrize("in_dims", [(0, None, None), (0, 0, 0), (2, 1, 0), (None, 0, None), (None, None, 0)])
def test_linear(in_dims):
    librepdl.torch.enable()
    shapes = [[4, 5], [6, 5], [6]]
    for d, shape in zip(in_dims, shapes):
        if d is not None:
            shape.insert(d, 3)
    arguments = [torch.randn(s) for s in shapes]
    for f in (F.linear, lambda x, w, b: torch.addmm(b, x, w.t(), beta=0.5, alpha=1.25), lambda x, w, b: torch.addmv(b, w, x[1]),
              lambda x, w, b: torch.baddbmm(b, x.expand(2, 4, 5), w.t().expand(2, 5, 6))):
        assert same(vmap(f, in_dims=in_dims)(*arguments), looped(f, *arguments, in_dims=in_dims))


def test_a_vector_is_a_row_of_a_batch():
    librepdl.torch.enable()
    x, w, b = torch.randn(50, 30), torch.randn(20, 30), torch.randn(20)
    whole = F.linear(x, w, b)
    assert same(looped(lambda t: F.linear(t, w, b), x), whole)
    assert same(vmap(lambda t: F.linear(t, w, b))(x), whole)
    assert same(F.linear(x, w[0], b[0]), whole[:, 0])


def test_vectors_are_one_sum_whatever_their_strides():
    librepdl.torch.enable()
    x, y = torch.randn(300, 3), torch.randn(300, 2)
    for i in range(3):
        expected = torch.dot(x[:, i].contiguous(), y[:, 1].contiguous())
        for a, b in ((x[:, i], y[:, 1]), (x[:, i].contiguous(), y[:, 1]), (x[:, i].contiguous(), y[:, 1].contiguous())):
            assert same(torch.inner(a, b), expected) and same(torch.tensordot(a, b, 1), expected)
    assert same(vmap(lambda t: torch.inner(t, y[:, 1]), in_dims=1)(x), (x.t() @ y)[:, 1])
    a, b = torch.randn(4, 1, 6), torch.randn(6, 5, 7)
    assert same(torch.tensordot(a, b, ([1, -1], [1, 0])), a[:, 0] @ b.sum(1))


def test_nested_and_of_no_samples():
    librepdl.torch.enable()
    x, w, b = torch.randn(3, 2, 4, 5), torch.randn(2, 6, 5), torch.randn(3, 6)

    def f(x, w, b):
        return F.layer_norm(F.linear(x, w, b), (6,), b, b)

    got = vmap(vmap(f, in_dims=(0, 0, None)), in_dims=(0, None, 0))(x, w, b)
    assert same(got, torch.stack([torch.stack([f(x[i, j], w[j], b[i]) for j in range(2)]) for i in range(3)]))
    assert vmap(f, in_dims=(0, None, None))(torch.ones(0, 4, 5), w[0], b[0]).shape == (0, 4, 6)
    ways = (0, None, None)
    assert same(vmap(f, in_dims=ways, chunk_size=2)(x[:, 0], w[0], b[0]), looped(f, x[:, 0], w[0], b[0], in_dims=ways))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Linear(4 * 9, 3)

    def forward(self, x):
        return self.out(F.gelu(self.norm(self.conv(x))).flatten(1))


def test_gradients_of_samples_are_those_that_they_have_alone():
    net, x, y = Net(), torch.randn(5, 1, 5, 5), torch.tensor([0, 2, 1, 1, 0])
    librepdl.torch.enable()
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(net, parameters, (x[None],)), y[None], label_smoothing=0.1)

    got = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for i in range(5):
        alone = F.cross_entropy(net(x[i:i + 1]), y[i:i + 1], label_smoothing=0.1)
        assert same([g[i] for g in got.values()], torch.autograd.grad(alone, list(net.parameters()), create_graph=True))
    # An ensemble: weights of two networks.
    several = {name: torch.stack([p, p * 0.75]) for name, p in parameters.items()}
    got = vmap(lambda p: functional_call(net, p, (x,)))(several)
    assert same(got, torch.stack([functional_call(net, {n: p[i] for n, p in several.items()}, (x,)) for i in range(2)]))


@pytest.mark.parametrize("f", [lambda x, v: torch.dot(x, v), lambda x, v: x @ v, lambda x, v: torch.inner(x, v),
                               lambda x, v: torch.linalg.vecdot(x, v), lambda x, v: torch.vdot(x, v), lambda x, v: (x @ x) * v,
                               lambda x, v: F.linear(torch.outer(x, v), torch.outer(v, v), v)])
def test_jacobians_are_loops_over_basis_vectors(f):
    """Tangents that PyTorch keeps as zeros without memory (of v) are no crash."""
    librepdl.torch.enable()
    x, v = torch.randn(4), torch.randn(4)
    g = functools.partial(f, v=v)
    columns = [jvp(g, (x,), (e,))[1] for e in torch.eye(4)]
    assert same(jacfwd(g)(x), torch.stack(columns, -1))
    result, pullback = vjp(g, x)
    rows = [pullback(e.reshape(result.shape))[0] for e in torch.eye(result.numel())]
    assert same(jacrev(g)(x), torch.stack(rows).reshape(*result.shape, 4))

    def scalar(x):
        return f(x, v).square().sum()

    forward_over_reverse = [jvp(jacrev(scalar), (x,), (e,))[1] for e in torch.eye(4)]
    assert same(hessian(scalar)(x), torch.stack(forward_over_reverse, -1))


def test_random_numbers_of_samples():
    """`different`: each call draws for one sample after the other, as a loop; `same`: all as one sample does."""
    librepdl.torch.enable()
    x = torch.randn(3, 8)
    weights = x.abs()
    for f in (lambda t: F.dropout(t, 0.3), lambda t: torch.rand(4) + t[0], lambda t: torch.randn_like(t), lambda t: t.clone().uniform_(),
              lambda t: torch.bernoulli(torch.full_like(t, 0.3)), lambda t: F.dropout(torch.ones(5), 0.5) * t[0],
              lambda t: torch.multinomial(t.abs(), 3), lambda t: torch.randperm(7) + t[0].to(torch.int64),
              lambda t: torch.randint(0, 9, (4,)) + t[0].to(torch.int64)):
        torch.manual_seed(3)
        expected, after = looped(f, x), torch.rand(2)
        torch.manual_seed(3)
        assert same(vmap(f, randomness="different")(x), expected) and same(torch.rand(2), after)
        alone = []
        for t in x:
            torch.manual_seed(3)
            alone.append(f(t))
        after = torch.rand(2)
        torch.manual_seed(3)
        assert same(vmap(f, randomness="same")(x), torch.stack(alone)) and same(torch.rand(2), after)
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(f)(x)
    assert same(vmap(lambda t: F.dropout(t, 0.3, training=False))(x), x)
    with pytest.raises(RuntimeError, match="vmap: .*one tensor for all"):
        vmap(lambda t: torch.ones(2).uniform_() + t, randomness="different")(weights)


def test_results_have_a_place_for_each_sample():
    librepdl.torch.enable()
    x, one = torch.randn(3, 4, 2), torch.zeros(4, 4)
    with pytest.raises(RuntimeError, match="vmap: .*addmm_"):
        vmap(lambda t: one.addmm_(t, t.t()))(x)
    mean, var = torch.zeros(2), torch.ones(2)
    with pytest.raises(RuntimeError, match="running_mean"):
        vmap(lambda t: F.batch_norm(t, mean, var, training=True))(x)
    assert not mean.any()
    means, vars = torch.zeros(3, 2), torch.ones(3, 2)
    got = vmap(lambda t, m, v: F.batch_norm(t, m, v, training=True))(x, means, vars)
    loop_means, loop_vars = torch.zeros(3, 2), torch.ones(3, 2)
    assert same(got, looped(lambda t, m, v: F.batch_norm(t, m, v, training=True), x, loop_means, loop_vars))
    assert same([means, vars], [loop_means, loop_vars])
    into = torch.zeros(3, 4, 4)
    assert same(vmap(lambda a, t: a.addmm_(t, t.t()))(into, x), looped(lambda t: t @ t.t(), x)) and into.any()


def test_recurrent_layers_of_samples():
    librepdl.torch.enable()
    for layer in (nn.LSTM(3, 4), nn.GRU(3, 4, num_layers=2), nn.RNN(3, 4)):
        x = torch.randn(3, 5, 2, 3)
        assert same(vmap(lambda t: layer(t)[0])(x), looped(lambda t: layer(t)[0], x))


def test_without_librepdl_they_are_as_they_were():
    names = ("aten::linear", "aten::addmm", "aten::add.Tensor", "aten::addr", "aten::dropout", "aten::native_dropout",
             "aten::scaled_dot_product_attention")
    x, w, b = torch.randn(3, 40, 50), torch.randn(60, 50), torch.randn(3, 60)
    plain = vmap(F.linear, in_dims=(0, None, 0))(x, w, b)  # PyTorch registers rules at its first vmap
    before = [torch._C._dispatch_dump_table(name) for name in names]
    librepdl.torch.enable()
    ours = vmap(F.linear, in_dims=(0, None, 0))(x, w, b)
    with librepdl.torch.exempt():
        assert same(vmap(F.linear, in_dims=(0, None, 0))(x, w, b), plain)
    assert not same(ours, plain) and librepdl.torch.status()["overridden"] == []
    librepdl.torch.disable()
    assert [torch._C._dispatch_dump_table(name) for name in names] == before
