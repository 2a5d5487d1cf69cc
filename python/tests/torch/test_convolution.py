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
    with pytest.raises(NotImplementedError, match="no tap reaches"):
        F.conv_transpose2d(x[:, :, :1], torch.ones(2, 3, 1, 1), stride=(8, 1), padding=(3, 0), output_padding=(7, 0))
    assert F.conv_transpose2d(torch.ones(0, 2, 4, 4), w).shape == (0, 3, 6, 6)


# stride, padding, dilation, groups
VOLUMES = [(1, 0, 1, 1), ((1, 2, 1), (1, 0, 2), 1, 2), ((3, 1, 2), (2, 1, 0), (1, 2, 1), 1), (2, 3, (2, 1, 1), 4)]


@pytest.mark.parametrize("stride, padding, dilation, groups", VOLUMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_volumes(stride, padding, dilation, groups, dtype):
    """Of small integers, which are exact in any order; forward, backward, in both formats of memory, alone and in a batch."""
    g = torch.Generator().manual_seed(4)
    x = torch.randint(-3, 4, (2, 4, 6, 5, 7), generator=g).to(dtype)
    w = torch.randint(-3, 4, (4, 4 // groups, 3, 2, 3), generator=g).to(dtype)
    b = torch.randint(-3, 4, (4,), generator=g).to(dtype)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

    def run(x, w, b, call=F.conv3d):
        inputs = [t.clone(memory_format=torch.preserve_format).requires_grad_() for t in (x, w, b)]
        y = call(*inputs, **options)
        (y * (torch.arange(y.numel()) % 3 - 1).to(y.dtype).view_as(y)).sum().backward()
        return [y.detach(), *(t.grad for t in inputs)]

    plain = [t.to(dtype) for t in run(x.double(), w.double(), b.double())]
    librepdl.torch.enable()
    found = run(x, w, b)
    assert all(torch.equal(p, f) for p, f in zip(plain, found))
    last = run(x.contiguous(memory_format=torch.channels_last_3d), w, b)
    assert all(torch.equal(p, f) for p, f in zip(plain, last)) and last[0].is_contiguous(memory_format=torch.channels_last_3d)
    assert torch.equal(found[0][1:], F.conv3d(x[1:], w, b, **options)) and torch.equal(found[0][1], F.conv3d(x[1], w, b, **options))
    if dtype == torch.float32:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(F.conv3d(x, w, b, **options), found[0].bfloat16())
    transposed = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = F.conv_transpose3d(x, w, None, **transposed)
    assert torch.equal(y, librepdl.conv3d_grad_input(x, w, size=list(y.shape[2:]), **transposed))


def test_volumes_of_pictures():
    """Of one slice: the bits of conv2d. Transposed ones have a second rounding for the bias."""
    x, w, b = torch.randn(2, 3, 6, 7), torch.randn(4, 3, 3, 3), torch.randn(4)
    librepdl.torch.enable()
    assert torch.equal(F.conv3d(x[:, :, None], w[:, :, None], b, padding=(0, 1, 1))[:, :, 0], F.conv2d(x, w, b, padding=1))
    v = w.transpose(0, 1).contiguous()
    assert torch.equal(F.conv_transpose3d(x[:, :, None], v[:, :, None], b, stride=(1, 2, 2), output_padding=(0, 1, 1))[:, :, 0],
                       F.conv_transpose2d(x, v, b, stride=2, output_padding=1))
    assert torch.equal(F.max_pool3d(x[:, :, None], (1, 2, 2), (1, 1, 1))[:, :, 0], F.max_pool2d(x, 2, 1))
    assert torch.equal(F.avg_pool3d(x[:, :, None], (1, 3, 3), (1, 2, 2))[:, :, 0], F.avg_pool2d(x, 3, 2))
    assert torch.equal(F.adaptive_avg_pool3d(x[:, :, None], (1, 4, 3))[:, :, 0], F.adaptive_avg_pool2d(x, (4, 3)))


POOLINGS = [lambda x: F.max_pool3d(x, 2), lambda x: F.max_pool3d(x, (3, 2, 2), (1, 2, 2), (1, 0, 1), (1, 2, 1), ceil_mode=True),
            lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True)[0], lambda x: F.avg_pool3d(x, 2),
            lambda x: F.avg_pool3d(x, (3, 2, 3), (2, 1, 2), 1, ceil_mode=True), lambda x: F.avg_pool3d(x, 3, 1, 1, count_include_pad=False),
            lambda x: F.avg_pool3d(x, 2, divisor_override=3), lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), lambda x: F.adaptive_avg_pool3d(x, 1),
            lambda x: F.adaptive_max_pool3d(x, (3, 2, 4)), lambda x: F.adaptive_avg_pool3d(x, (2, 2, 4))]


@pytest.mark.parametrize("pool", POOLINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_pooling_of_volumes(pool, dtype):
    x = torch.randn(2, 3, 6, 5, 8, generator=torch.Generator().manual_seed(5)).to(dtype)

    def run(x):
        x = x.clone(memory_format=torch.preserve_format).requires_grad_()
        y = pool(x)
        (y * (torch.arange(y.numel()) % 5 - 2).to(y.dtype).view_as(y)).sum().backward()
        return y.detach(), x.grad

    plain = run(x.double())
    librepdl.torch.enable()
    found = run(x)
    last = run(x.contiguous(memory_format=torch.channels_last_3d))
    assert all(torch.equal(a, b) for a, b in zip(found, last))
    assert torch.equal(found[0][1], pool(x[1]))  # without samples
    # A rounding of 2^-8 at most, of a result and of what it is made of.
    for a, b in zip(found, plain):
        assert (a.double() - b).abs().max() <= (2**-7 if dtype == torch.bfloat16 else 2**-22) * b.abs().max()


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(6, 16, 5),
                                                torch.nn.ReLU(), torch.nn.MaxPool2d(2))
        self.linear = torch.nn.Sequential(torch.nn.Linear(256, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10))

    def forward(self, x):
        return self.linear(self.convolutions(x).flatten(1))


class Residual(torch.nn.Module):
    """ResNet-18's first stages, of few channels."""

    def __init__(self, width=4):
        super().__init__()

        def half(a, b, stride):
            return torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(b))

        self.first = half(3, width, 1)
        self.blocks = torch.nn.ModuleList()
        for a, b, stride in ((width, width, 1), (width, 2 * width, 2)):
            shortcut = torch.nn.Sequential() if stride == 1 else torch.nn.Conv2d(a, b, 1, stride, bias=False)
            self.blocks.append(torch.nn.ModuleList((half(a, b, stride), half(b, b, 1), shortcut)))
        self.depthwise = torch.nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width)
        self.classify = torch.nn.Linear(2 * width, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for one, two, shortcut in self.blocks:
            x = torch.relu(two(torch.relu(one(x))) + shortcut(x))
        return self.classify(self.depthwise(x).mean((2, 3)))


def trained(make, shape, dtype=torch.float32, autocast=None, channels_last=False, steps=2):
    """The parameters after some steps of SGD, and the last loss."""
    with librepdl.torch.exempt():  # parameters and data are PyTorch's
        generator = torch.Generator().manual_seed(7)
        torch.manual_seed(5)
        model = make().to(dtype)
        images = [(torch.randint(0, 256, shape, generator=generator).float() / 256 - 0.5).to(dtype) for _ in range(steps)]
        labels = torch.randint(0, 10, shape[:1], generator=generator)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for x in images:
        x = x.contiguous(memory_format=torch.channels_last) if channels_last else x
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
    return [loss.detach(), *(p.detach() for p in model.parameters())]


@pytest.mark.parametrize("make, shape, options", [
    (LeNet, (6, 1, 28, 28), {"dtype": torch.float64}), (LeNet, (6, 1, 28, 28), {"autocast": torch.bfloat16}),
    (Residual, (4, 3, 12, 12), {"autocast": torch.bfloat16}), (Residual, (4, 3, 12, 12), {"autocast": torch.float16}),
    (Residual, (4, 3, 12, 12), {"dtype": torch.bfloat16}), (Residual, (4, 3, 12, 12), {"dtype": torch.float64})])
def test_training(make, shape, options):
    """One result in any number of threads, with and without mkldnn, in either memory format; near plain PyTorch's."""
    plain = trained(make, shape, **options)
    librepdl.torch.enable()
    found = trained(make, shape, **options)
    assert all(p.dtype == options.get("dtype", torch.float32) for p in found[1:])
    for threads, mkldnn, channels_last in ((1, True, False), (2, False, False), (3, True, True)):
        torch.set_num_threads(threads)
        torch.backends.mkldnn.enabled = mkldnn
        assert all(map(torch.equal, found, trained(make, shape, channels_last=channels_last, **options)))
    librepdl.torch.disable()
    tolerance = 1e-9 if options.get("dtype") == torch.float64 else 0.1
    for a, b in zip(found, plain, strict=True):
        assert (a.double() - b.double()).abs().max() <= tolerance * max(1, float(b.abs().max()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_formats(dtype):
    """Of small integers, whose sums are exact in every format: those of float32."""
    g = torch.Generator().manual_seed(3)
    x, w = (torch.randint(-3, 4, s, generator=g).to(dtype) for s in ((2, 4, 6, 5), (6, 2, 3, 3)))
    b = torch.randint(-3, 4, (6,), generator=g).to(dtype)
    options = {"stride": (2, 1), "padding": (1, 0), "groups": 2}
    librepdl.torch.enable()

    def run(dtype):
        inputs = [t.to(dtype).requires_grad_() for t in (x.detach(), w.detach(), b.detach())]
        y = F.conv2d(*inputs, **options)
        return [y.detach(), *torch.autograd.grad(y, inputs, torch.ones_like(y))]

    for a, wide in zip(run(dtype), run(torch.float32), strict=True):
        assert a.dtype == dtype and torch.equal(a, wide.to(dtype))
    assert F.conv1d(x[:, :, 0], w[:, :, 0], b, groups=2).dtype == F.conv_transpose2d(x, w[:4, :2], groups=2).dtype == dtype
