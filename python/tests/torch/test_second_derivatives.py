"""Gradients of gradients as people use them: one fingerprint over threads, oneDNN and memory formats, and close to plain PyTorch in float64."""

import contextlib
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jvp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn import functional as F

import librepdl.torch

#: Of a result's greatest element: some 900 times float32's eps, as for first gradients (opinfo.py).
BOUND = 1e-4


def random(shape, dtype, seed):
    """The same numbers in both types."""
    with librepdl.torch.exempt():
        return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def filled(module, dtype):
    module = module.to(dtype)
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(random(p.shape, dtype, 100 + i) / math.sqrt(max(p[0].numel(), 1)))
    return module


def gradient_penalty(dtype, last=False):
    """WGAN-GP: a critic's slope between what is real and what is not has the norm 1."""
    critic = filled(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 4, stride=2, padding=1), nn.InstanceNorm2d(8, affine=True),
                                  nn.SiLU(), nn.Conv2d(8, 4, 3, padding=1, groups=2), nn.GroupNorm(2, 4), nn.Softplus(), nn.Flatten(), nn.Linear(64, 1)), dtype)
    real, fake, share = random((4, 3, 8, 8), dtype, 0), random((4, 3, 8, 8), dtype, 1), random((4, 1, 1, 1), dtype, 2).sigmoid()
    if last:
        critic, real, fake = (t.to(memory_format=torch.channels_last) for t in (critic, real, fake))
    between = (share * real + (1 - share) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    penalty = (slope.flatten(1).norm(2, dim=1) - 1).square().mean()
    (critic(fake).mean() - critic(real).mean() + 10 * penalty).backward()
    return [p.grad for p in critic.parameters()]


def maml(dtype):
    """Gradients through two steps of learning, for several tasks; batch norms with statistics of each."""
    net = filled(nn.Sequential(nn.Conv1d(2, 6, 3, padding=1), nn.BatchNorm1d(6, track_running_stats=False), nn.ReLU(), nn.MaxPool1d(2),
                               nn.Flatten(), nn.Linear(24, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 5)), dtype)
    total = 0
    for task in range(3):
        x, y = random((10, 2, 8), dtype, task), torch.arange(10).mul(3 + task).remainder(5)
        now = dict(net.named_parameters())
        for _ in range(2):
            loss = F.cross_entropy(functional_call(net, now, (x[:6],)), y[:6], label_smoothing=0.1)
            now = {k: p - 0.1 * g for (k, p), g in zip(now.items(), torch.autograd.grad(loss, list(now.values()), create_graph=True))}
        total = total + F.cross_entropy(functional_call(net, now, (x[6:],)), y[6:])
    return list(torch.autograd.grad(total, list(net.parameters())))


def hessian_vector(dtype):
    """Curvature of a transformer's loss along a direction: Pearlmutter's product, and forward over reverse mode."""
    layer = filled(nn.TransformerEncoderLayer(16, 4, 24, dropout=0, activation="gelu", batch_first=True, norm_first=True), dtype)
    x, weights = random((2, 7, 16), dtype, 3), list(layer.parameters())
    along = [random(p.shape, dtype, 200 + i) for i, p in enumerate(weights)]
    loss = F.softmax(layer(x), -1).square().sum() + F.log_softmax(layer(x)[:, 0], -1)[:, 1].mean()
    first = torch.autograd.grad(loss, weights, create_graph=True)
    product = torch.autograd.grad(first, weights, along)

    def f(w):
        return (torch.tanh(x @ w) - x.roll(1, -1)).square().mean()

    w, v = random((16, 16), dtype, 4), random((16, 16), dtype, 5)
    return [*product, jvp(grad(f), (w,), (v,))[1]]


def equation(dtype):
    """A network that shall solve Burgers' equation, u_t + u u_x = u_xx / 100: derivatives to x and t, and of their squares to the weights."""
    net = filled(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Softplus(beta=2), nn.Linear(16, 1)), dtype)
    at = random((20, 2), dtype, 6).requires_grad_()
    u = net(at)
    (slope,) = torch.autograd.grad(u.sum(), at, create_graph=True)
    (curve,) = torch.autograd.grad(slope[:, 0].sum(), at, create_graph=True)
    left = slope[:, 1:] + u * slope[:, :1] - curve[:, :1] / 100
    loss = left.square().mean() + (u - torch.sin(math.pi * at[:, :1])).square().mean()
    # Also with torch.func, a sample at a time.
    curves = vmap(hessian(lambda p: net(p).squeeze()))(at.detach())
    return [*torch.autograd.grad(loss, list(net.parameters())), curves]


@contextlib.contextmanager
def settings(threads=1, mkldnn=True):
    before = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.set_num_threads(threads)
    torch.backends.mkldnn.enabled = mkldnn
    yield
    torch.set_num_threads(before[0])
    torch.backends.mkldnn.enabled = before[1]


@pytest.mark.parametrize("use", [gradient_penalty, maml, hessian_vector, equation], ids=lambda f: f.__name__)
def test_use(use):
    with librepdl.torch.reproducible():
        with settings():
            ours = use(torch.float32)
        expected = librepdl.torch.fingerprint(dict(enumerate(ours)))
        for other in [{"threads": 2}, {"threads": 3, "mkldnn": False}]:
            with settings(**other):
                assert librepdl.torch.fingerprint(dict(enumerate(use(torch.float32)))) == expected, other
        if use is gradient_penalty:
            contiguous = [t.contiguous() for t in use(torch.float32, last=True)]
            assert librepdl.torch.fingerprint(dict(enumerate(contiguous))) == librepdl.torch.fingerprint(dict(enumerate(t.contiguous() for t in ours)))
        wide = use(torch.float64)
    with sdpa_kernel(SDPBackend.MATH):  # the others of plain PyTorch have no second derivative
        plain = use(torch.float64)
    assert len(ours) == len(plain) and any(bool(t.any()) for t in plain)
    for x, y, z in zip(*([t.detach() for t in found] for found in (ours, wide, plain))):
        scale = max(1.0, float(z.abs().max()))
        assert float((x - z).abs().max()) <= BOUND * scale and float((y - z).abs().max()) <= 2e-13 * scale


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss, F.l1_loss], ids=lambda f: f.__name__)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(loss, reduction):
    """PyTorch's second derivatives call the gradient with a value for each element, also of a loss that is one number."""
    def second(dtype):
        x, t = random((3, 4), dtype, 0).requires_grad_(), random((3, 4), dtype, 1).requires_grad_(loss is not F.soft_margin_loss)
        y = loss(x, t, reduction=reduction)
        g = random(y.shape, dtype, 2).requires_grad_()
        leaves = [v for v in (x, t, g) if v.requires_grad]
        first = [v for v in torch.autograd.grad(y, leaves[:-1], g, create_graph=True) if v.requires_grad]
        return [v for v in torch.autograd.grad(first, leaves, [random(v.shape, dtype, 3) for v in first], allow_unused=True) if v is not None]

    with librepdl.torch.reproducible():
        ours = second(torch.float32)
    for x, z in zip(ours, second(torch.float64)):
        assert float((x - z).abs().max()) <= BOUND * max(1.0, float(z.detach().abs().max()))


OPERATIONS = ["mul", "matmul", "tanh", "linalg.vector_norm", "cumprod", "index_add", "nn.functional.conv2d", "nn.functional.conv_transpose2d", "nn.functional.linear",
              "nn.functional.gelu", "nn.functional.glu", "nn.functional.softmin", "log_softmax", "nn.functional.adaptive_max_pool2d",
              "nn.functional.avg_pool2d", "nn.functional.cross_entropy"]


def of_samples(*arguments):
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("second.py")), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


def test_operations_of_samples():
    assert " 0 refused by name, 0 wrong" in of_samples(*(word for name in OPERATIONS for word in ("--only", name)))


@pytest.mark.long
def test_all_operations_of_samples():
    of_samples("--dtype", "all")
