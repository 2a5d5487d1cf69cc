"""Autocast: CUDA's lists on the CPU, too."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import librepdl.torch

x, y, w = (torch.linspace(-2, 2, 24).view(4, 6).to(torch.bfloat16) + torch.tensor(i, dtype=torch.bfloat16) for i in range(3))
target = torch.tensor([0, 5, 2, 2])
#: What is computed in float32, of operands in bfloat16.
IN_FLOAT32 = {
    "exp": lambda x, y: torch.exp(x),
    "log1p": lambda x, y: torch.log1p(x.abs()),
    "rsqrt": lambda x, y: torch.rsqrt(x.abs()),
    "pow": lambda x, y: x.abs() ** 1.5,
    "softplus": lambda x, y: F.softplus(x),
    "mse_loss": lambda x, y: F.mse_loss(x, y),
    "l1_loss": lambda x, y: F.l1_loss(x, y),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y),
    "nll_loss": lambda x, y: F.nll_loss(x, target),
    "bce_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y.clamp(0, 1)),
    "kl_div": lambda x, y: F.kl_div(x, y.abs(), reduction="sum"),
    "layer_norm": lambda x, y: F.layer_norm(x, (6,), y[0], y[1]),
    "group_norm": lambda x, y: F.group_norm(x, 2),
    "logsumexp": lambda x, y: torch.logsumexp(x, 1),
    "softmax": lambda x, y: torch.softmax(x, 1),
    "log_softmax": lambda x, y: torch.log_softmax(x, 1),
    "sum": lambda x, y: x.sum(),
    "sum of an axis": lambda x, y: x.sum(1),
    "vector_norm": lambda x, y: torch.linalg.vector_norm(x),
    "norm": lambda x, y: torch.ops.aten.norm.Scalar(x, 2),
    "norm of an axis": lambda x, y: torch.ops.aten.norm.ScalarOpt_dim(x, 2, [1], False),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y),
}


@pytest.mark.parametrize("name", IN_FLOAT32)
def test_in_float32(name):
    librepdl.torch.enable()
    function = IN_FLOAT32[name]
    expected = function(x.float(), y.float())
    with torch.autocast("cpu", torch.bfloat16):
        found = function(x, y)
    assert found.dtype == torch.float32 and torch.equal(found, expected)


def test_in_the_lower_type():
    librepdl.torch.enable()
    a, b = x.float(), y.float()
    for dtype in (torch.bfloat16, torch.float16):
        p, q = a.to(dtype), b.to(dtype)
        with torch.autocast("cpu", dtype):
            for found, expected in ((F.linear(a, b), F.linear(p, q)), (a @ b.t(), p @ q.t()), (torch.addmm(a[0, :4], a, b.t()), torch.addmm(p[0, :4], p, q.t())),
                                    (F.scaled_dot_product_attention(a[None], b[None], a[None]), F.scaled_dot_product_attention(p[None], q[None], p[None])),
                                    (torch.einsum("ij,kj->ik", a, b), torch.einsum("ij,kj->ik", p, q))):
                assert found.dtype == dtype and torch.equal(found, expected)
            cell = nn.GRUCell(6, 3)
            assert cell(a).dtype == dtype


def test_in_the_widest_type_and_as_it_is():
    librepdl.torch.enable()
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(torch.addcmul(x, y.float(), w), torch.addcmul(x.float(), y.float(), w.float()))
        assert torch.addcmul(x, y, w).dtype == torch.bfloat16
        at = (torch.tensor([1, 3]),)
        assert torch.equal(torch.index_put(x, at, y[:2].float()), x.float().index_put(at, y[:2].float()))
        assert torch.tanh(x).dtype == torch.bfloat16 and (x + y).dtype == torch.bfloat16
        # A type that is given stays: cross_entropy gives its operand's to log_softmax.
        assert torch.equal(F.cross_entropy(x, target), F.nll_loss(torch.log_softmax(x, 1, dtype=torch.bfloat16).float(), target))
        assert x.sum(dtype=torch.bfloat16).dtype == torch.bfloat16
        assert torch.equal(torch.arange(4).sum(), torch.tensor(6))
        with librepdl.torch.exempt():
            assert torch.exp(x).dtype == torch.bfloat16  # PyTorch's list for the CPU
        assert librepdl.torch.status()["overridden"] == []
        librepdl.torch.disable()
        assert torch.exp(x).dtype == torch.bfloat16
        assert F.mse_loss(x, y).dtype == torch.float32


def test_training_of_a_norm():
    """Weights in float32, an input in bfloat16: gradients to the weights are those of float32."""
    librepdl.torch.enable()
    norm = nn.LayerNorm(6)
    given = x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        norm(given).sum().backward()
    other = x.float().requires_grad_()
    weights = [p.grad.clone() for p in norm.parameters()]
    norm.zero_grad()
    norm(other).sum().backward()
    assert given.grad.dtype == torch.bfloat16 and other.grad.dtype == torch.float32
    assert all(torch.equal(a, p.grad) for a, p in zip(weights, norm.parameters()))


def test_softmax_of_half_to_float():
    """What CUDA makes of softmax(dtype=float32) of float16: one call instead of two."""
    librepdl.torch.enable()
    h, g = x.to(torch.float16), y.float()
    for kernel, backward, function in ((torch.ops.aten._softmax, torch.ops.aten._softmax_backward_data, torch.softmax),
                                       (torch.ops.aten._log_softmax, torch.ops.aten._log_softmax_backward_data, torch.log_softmax)):
        given = h.clone().requires_grad_()
        expected = function(given, 1, dtype=torch.float32)
        found = kernel(h, 1, True)
        assert torch.equal(found, expected)
        expected.backward(g)
        assert torch.equal(backward(g, found, 1, torch.float16), given.grad)
