"""scaled_dot_product_attention is librepdl.attention, forward and backward: the bits of one rounding, whatever the way to it."""

import pytest
import torch
from torch.func import grad, vmap
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import librepdl
import librepdl.torch

FORMATS = [torch.float32, torch.bfloat16, torch.float16]
attention = F.scaled_dot_product_attention


def operands(*shapes, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


def gradients(y, g, *of, **options):
    return torch.autograd.grad(y, of, g, **options)


def library(*operands, backward=False, **options):
    function = librepdl.attention_backward if backward else librepdl.attention
    return function(*(t.detach() for t in operands), **options)


def equal(got, expected):
    return len(got) == len(expected) and all(torch.equal(a, b) for a, b in zip(got, expected))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}], ids=str)
def test_is_the_librarys(dtype, options):
    librepdl.torch.enable()
    q, k, v = operands((2, 4, 9, 8), (2, 4, 11, 8), (2, 4, 11, 6), dtype=dtype)
    how = {"causal": options.get("is_causal", False), "scale": options.get("scale")}
    y = attention(q, k, v, **options)
    g = torch.randn(y.shape).to(dtype)
    with torch.no_grad():
        expected, lse = library(q, k, v, **how, lse=True)
        assert torch.equal(y, expected) and torch.equal(attention(q, k, v, **options), expected)
        of_all = library(g, q, k, v, expected, lse, **how, backward=True)
    assert equal(gradients(y, g, q, k, v), of_all)


def test_shapes_that_broadcast():
    librepdl.torch.enable()
    q, k, v = (t.detach() for t in operands((3, 2, 4, 5, 8), (3, 2, 4, 7, 8), (3, 2, 4, 7, 6)))
    whole = attention(q, k, v)
    assert torch.equal(whole[1, 0], attention(q[1, 0], k[1, 0], v[1, 0]))
    assert torch.equal(whole[1, 0, 2], attention(q[1, 0, 2], k[1, 0, 2], v[1, 0, 2]))
    assert torch.equal(attention(q, k[:, :1, :1], v[:1])[2, 1, 3], attention(q[2, 1, 3], k[2, 0, 0], v[0, 1, 3]))
    strange = q.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert torch.equal(attention(strange, k, v), whole)
    assert attention(q[:0], k[:0], v[:0]).shape == (0, 2, 4, 5, 6) and attention(q[..., :0, :], k, v).shape == (3, 2, 4, 0, 6)
    assert not attention(q, k[..., :0, :], v[..., :0, :]).any()


@pytest.mark.parametrize("shape", [(), (7,), (5, 7), (4, 5, 7), (1, 1, 5, 7), (2, 1, 1, 7), (2, 4, 5, 7), (3, 2, 1, 5, 7)], ids=str)
def test_masks(shape):
    librepdl.torch.enable()
    q, k, v = operands((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6))
    mask = torch.rand(shape) < 0.7
    added = torch.randn(shape).masked_fill(~mask, float("-inf"))
    if mask.dim() <= 4:
        with torch.no_grad():
            for m in (mask, added):
                assert torch.equal(attention(q, k, v, attn_mask=m), library(q, k, v, mask=m))
    # Each sequence alone; and the gradient to what is added is that of the three operations.
    y = attention(q, k, v, attn_mask=added)
    wide = added.expand(y.shape[:-1] + (7,))
    last = (-1,) * (y.dim() - 3)
    assert torch.equal(y[last], attention(q[-1], k[-1], v[-1], attn_mask=wide[last]))
    added.requires_grad_()
    g = torch.randn(y.shape)
    ours = gradients(attention(q, k, v, attn_mask=added), g, q, k, v, added)
    scores = torch.baddbmm(added.detach().expand(y.shape[:-1] + (7,)).reshape(-1, 5, 7), q.expand(y.shape[:-2] + (5, 8)).reshape(-1, 5, 8),
                           k.expand(y.shape[:-2] + (7, 8)).reshape(-1, 7, 8).transpose(-1, -2), alpha=8**-0.5)
    scores = scores.detach().requires_grad_()
    three = torch.matmul(torch.ops.aten._safe_softmax(scores, -1), v.expand(y.shape[:-2] + (7, 6)).reshape(-1, 7, 6))
    (of_scores,) = gradients(three, g.reshape(three.shape), scores)
    assert torch.equal(ours[3], of_scores.view(y.shape[:-1] + (7,)).sum_to_size(shape))


def test_grouped_heads():
    librepdl.torch.enable()
    q, k, v = operands((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6))
    y = attention(q, k, v, enable_gqa=True, is_causal=True)
    repeated = [t.repeat_interleave(3, 1) for t in (k, v)]
    assert torch.equal(y, attention(q, *repeated, is_causal=True))
    assert torch.equal(attention(q, k, repeated[1], enable_gqa=True, is_causal=True), y)
    with torch.no_grad():
        expected, lse = library(q, k, v, causal=True, lse=True)
        g = torch.randn(y.shape)
        of_all = library(g, q, k, v, expected, lse, causal=True, backward=True)
    assert equal(gradients(y, g, q, k, v), of_all)


def test_dropout_draws_for_each_score():
    librepdl.torch.enable()
    q, k, v = operands((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6))
    torch.manual_seed(5)
    out, lse, seed, stream = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.3)
    how = {"dropout": 0.3, "seed": seed.item(), "stream": stream.item()}
    torch.manual_seed(5)
    y = attention(q, k, v, dropout_p=0.3)
    with torch.no_grad():
        expected, lse = library(q, k, v, **how, lse=True)
        assert torch.equal(y, expected) and torch.equal(out, expected)
        g = torch.randn(y.shape)
        of_all = library(g, q, k, v, expected, lse, **how, backward=True)
    assert equal(gradients(y, g, q, k, v), of_all)
    torch.manual_seed(5)
    again = checkpoint(lambda *x: attention(*x, dropout_p=0.3), q, k, v, use_reentrant=False)
    assert equal(gradients(again, g, q, k, v), of_all)
    # The draws are those of F.dropout on the weights.
    torch.manual_seed(6)
    seen = attention(q, k, torch.eye(7).expand(2, 3, 7, 7), dropout_p=0.5)
    torch.manual_seed(6)
    assert torch.equal(seen != 0, F.dropout(torch.ones(2, 3, 5, 7), 0.5) != 0)
    assert not attention(q, k, v, dropout_p=1.0).any()


def in_three(q, k, v):
    scores = torch.baddbmm(torch.zeros(1, 1, 1), q, k.transpose(-1, -2), beta=0, alpha=1 / q.shape[-1] ** 0.5)
    return torch.softmax(scores, -1) @ v


def gradients_in_three(g, q, k, v):
    scale, none = 1 / q.shape[-1] ** 0.5, torch.zeros(1, 1, 1)
    weights = torch.softmax(torch.baddbmm(none, q, k.transpose(-1, -2), beta=0, alpha=scale), -1)
    to_scores = torch.ops.aten._softmax_backward_data(g @ v.transpose(-1, -2), weights, -1, weights.dtype)
    of_q = torch.baddbmm(none, to_scores, k, beta=0, alpha=scale)
    return of_q, torch.baddbmm(none, to_scores.transpose(-1, -2), q, beta=0, alpha=scale), weights.transpose(-1, -2) @ g


def test_second_derivatives():
    librepdl.torch.enable()
    x = operands((3, 5, 8), (3, 7, 8), (3, 7, 6))
    g = torch.randn(3, 5, 6).requires_grad_()
    plain = gradients(attention(*x), g, *x)
    first = gradients(attention(*x), g, *x, create_graph=True)
    assert equal(first, plain)
    weights = [torch.randn(t.shape) for t in x]
    second = gradients(first, weights, *x, g)
    assert equal(second, gradients(gradients_in_three(g, *x), weights, *x, g))


def test_torch_func_and_forward_derivatives():
    librepdl.torch.enable()
    q, k, v = (t.detach() for t in operands((4, 3, 5, 8), (4, 3, 7, 8), (4, 3, 7, 6)))
    whole = attention(q, k, v, is_causal=True)
    assert torch.equal(vmap(lambda *x: attention(*x, is_causal=True))(q, k, v), whole)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda *x: attention(*x, dropout_p=0.5))(q, k, v)
    torch.manual_seed(2)
    drawn = vmap(lambda *x: attention(*x, dropout_p=0.5), randomness="same")(q, k, v)
    torch.manual_seed(2)
    assert torch.equal(drawn[0], attention(q[0], k[0], v[0], dropout_p=0.5))
    of_q = vmap(grad(lambda *x: attention(*x).square().sum()))(q, k, v)
    leaf = q.clone().requires_grad_()
    attention(leaf, k, v).square().sum().backward()
    assert torch.equal(of_q, leaf.grad)
    tangents = tuple(torch.randn(t.shape) for t in (q[0], k[0], v[0]))
    value, tangent = torch.func.jvp(attention, (q[0], k[0], v[0]), tangents)
    assert torch.equal(value, attention(q[0], k[0], v[0]))
    assert torch.equal(tangent, torch.func.jvp(in_three, (q[0], k[0], v[0]), tangents)[1])


def test_what_stays_three_operations():
    librepdl.torch.enable()
    x = [t.detach().double() for t in operands((3, 5, 8), (3, 7, 8), (3, 7, 6))]
    assert torch.equal(attention(*x), in_three(*x).double())
    y = torch.autograd.gradcheck(attention, [t.requires_grad_() for t in x])
    assert y


def test_errors():
    librepdl.torch.enable()
    q, k, v = (t.detach() for t in operands((2, 4, 5, 8), (2, 3, 7, 8), (2, 4, 7, 6)))
    with pytest.raises(RuntimeError):
        attention(q, k, v)
    with pytest.raises(RuntimeError, match="divide"):
        attention(q, k, v, enable_gqa=True)
    with pytest.raises(RuntimeError, match="is_causal"):
        attention(q, q, q, attn_mask=torch.ones(5, 5, dtype=torch.bool), is_causal=True)
    with pytest.raises(RuntimeError):
        attention(q, q, q, attn_mask=torch.ones(5, 4, dtype=torch.bool))
    with pytest.raises(RuntimeError):
        attention(q, q.half(), q)


def test_modules():
    """nn.MultiheadAttention and nn.TransformerEncoderLayer go this way where they give no weights."""
    librepdl.torch.enable()
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    x = torch.randn(3, 5, 16)
    y, _ = layer(x, x, x, need_weights=False)
    q, k, v = (t.view(3, 5, 4, 4).transpose(1, 2) for t in F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1))
    expected = F.linear(library(q, k, v).transpose(1, 2).reshape(3, 5, 16), layer.out_proj.weight,
                        layer.out_proj.bias)
    assert torch.equal(y, expected)
    encoder = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    with torch.no_grad():
        assert torch.equal(encoder(x)[1:2], encoder(x[1:2]))
