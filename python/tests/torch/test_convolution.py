"""Convolutions and transposed ones: librepdl's sums."""

import itertools

import pytest
import torch
from torch.nn import functional as F

import librepdl
import librepdl.torch


def gradient(x, w, size, stride, padding, dilation, groups):
    """The sum that a transposed convolution is, written as loops over taps; of small integers exact in any order."""
    n, outputs = x.shape[0], w.shape[1] * groups
    y = torch.zeros(n, outputs, *size)
    for i, j in itertools.product(range(x.shape[2]), range(x.shape[3])):
        for r, s in itertools.product(range(w.shape[2]), range(w.shape[3])):
            a, b = i * stride[0] - padding[0] + r * dilation[0], j * stride[1] - padding[1] + s * dilation[1]
            if 0 <= a < size[0] and 0 <= b < size[1]:
                for g in range(groups):
                    k, m = x.shape[1] // groups, w.shape[1]
                    y[:, g * m:(g + 1) * m, a, b] += x[:, g * k:(g + 1) * k, i, j] @ w[g * k:(g + 1) * k, :, r, s]
    return y


# stride, padding, output_padding, dilation, groups
GEOMETRIES = [((1, 1), (0, 0), (0, 0), (1, 1), 1), ((2, 3), (1, 2), (1, 2), (1, 1), 2), ((1, 2), (0, 1), (1, 0), (2, 3), 1),
              ((1, 1), (1, 0), (2, 2), (3, 3), 2), ((3, 2), (2, 2), (0, 1), (1, 2), 4)]


@pytest.mark.parametrize("stride, padding, more, dilation, groups", GEOMETRIES)
def test_transposed(stride, padding, more, dilation, groups):
    g = torch.Generator().manual_seed(1)
    x = torch.randint(-4, 5, (2, 4, 4, 5), generator=g).float()
    w = torch.randint(-4, 5, (4, 3, 3, 2), generator=g).float()
    b = torch.randn(3 * groups, generator=g)
    size = [(x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w.shape[2 + i] - 1) + more[i] + 1 for i in range(2)]
    librepdl.torch.enable()
    options = {"stride": stride, "padding": padding, "output_padding": more, "dilation": dilation, "groups": groups}
    without = F.conv_transpose2d(x, w, None, **options)
    with librepdl.torch.exempt():
        assert torch.equal(without, gradient(x, w, size, stride, padding, dilation, groups))
    # The bias is a second rounding.
    assert torch.equal(F.conv_transpose2d(x, w, b, **options), without + b[:, None, None])
    # Of numbers: the gradient of a convolution; in other formats of memory; of one sample alone; with an infinite weight.
    x, w = torch.randn(x.shape), torch.randn(w.shape)
    y = F.conv_transpose2d(x, w, b, **options)
    assert torch.equal(y, F.conv_transpose2d(x.contiguous(memory_format=torch.channels_last), w, b, **options))
    assert torch.equal(y[1:], F.conv_transpose2d(x[1:], w, b, **options))
    if more[0] < stride[0] and more[1] < stride[1]:
        sum_ = librepdl.conv2d_grad_input(x, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
        assert torch.equal(y, sum_ + b[:, None, None])
    w[0, 0, 0, 0] = float("inf")
    assert F.conv_transpose2d(x, w, b, **options)[:, w.shape[1]:].isfinite().all() or groups == 1


@pytest.mark.parametrize("stride, padding, more, dilation, groups", GEOMETRIES)
@pytest.mark.parametrize("lines", [False, True])
def test_transposed_gradients(stride, padding, more, dilation, groups, lines):
    """Near plain PyTorch's in float64, in any number of threads; of lines as of pictures of one row."""
    options = {"stride": stride, "padding": padding, "output_padding": more, "dilation": dilation, "groups": groups}
    shapes = [(2, 4, 4, 5), (4, 3, 3, 2), (3 * groups,)]
    function = F.conv_transpose2d
    if lines:
        options = {name: value if name == "groups" else value[1:] for name, value in options.items()}
        shapes = [(2, 4, 5), (4, 3, 2), (3 * groups,)]
        function = F.conv_transpose1d
    given = [torch.randn(s) for s in shapes]

    def run(call, dtype=torch.float32):
        inputs = [t.to(dtype).clone().requires_grad_() for t in given]
        y = call(*inputs)
        (y * torch.linspace(-1, 1, y.numel(), dtype=torch.float64).to(dtype).view_as(y)).sum().backward()
        return [y.detach(), *(t.grad for t in inputs)]

    plain = run(lambda *t: function(*t, **options), torch.float64)
    librepdl.torch.enable()
    found = run(lambda *t: function(*t, **options))
    torch.set_num_threads(2)
    assert all(torch.equal(a, b) for a, b in zip(found, run(lambda *t: function(*t, **options))))
    if lines:
        pictures = {"stride": (1, *options["stride"]), "padding": (0, *options["padding"]), "output_padding": (0, *options["output_padding"]),
                    "dilation": (1, *options["dilation"]), "groups": groups}
        other = run(lambda x, w, b: F.conv_transpose2d(x[:, :, None], w[:, :, None], b, **pictures)[:, :, 0])
        assert all(torch.equal(a, b) for a, b in zip(found, other))
    librepdl.torch.disable()
    # Three roundings of 2^-24: the gradient that comes in, the sum, the bias; the sum of |products| is below 2^6 of the largest.
    for a, b in zip(found, plain):
        assert (a.double() - b).abs().max() <= 2**-16 * b.abs().max()


def test_transposed_errors():
    librepdl.torch.enable()
    x, w = torch.ones(1, 2, 4, 4), torch.ones(2, 3, 3, 3)
    with pytest.raises(RuntimeError, match="output padding must be smaller"):
        F.conv_transpose2d(x, w, stride=2, output_padding=2)
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.conv_transpose2d(x, w, padding=4)
    with pytest.raises(RuntimeError, match="to have 3 channels"):
        F.conv_transpose2d(x, torch.ones(3, 2, 3, 3))
    with pytest.raises(NotImplementedError, match=r"aten::convolution \(float32, cpu\).*of 3 dimensions"):
        F.conv_transpose3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2))
    with pytest.raises(NotImplementedError, match="no tap reaches"):
        F.conv_transpose2d(x[:, :, :1], torch.ones(2, 3, 1, 1), stride=(8, 1), padding=(3, 0), output_padding=(7, 0))
    assert F.conv_transpose2d(torch.ones(0, 2, 4, 4), w).shape == (0, 3, 6, 6)
