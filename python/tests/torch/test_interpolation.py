"""F.interpolate with weights: exact sums, rounded once, forward and backward."""

import pathlib
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import librepdl.torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from interpolation_reference import interpolated  # noqa: E402

FORMATS = {torch.float16: (11, -24), torch.bfloat16: (8, -133), torch.float32: (24, -149), torch.float64: (53, -1074)}


def nearest(q, dtype):
    digits, least = FORMATS[dtype]
    if q == 0:
        return 0.0
    exponent = abs(q).numerator.bit_length() - q.denominator.bit_length()
    if Fraction(2) ** exponent > abs(q):
        exponent -= 1
    ulp = Fraction(2) ** max(exponent - digits + 1, least)
    return float(round(q / ulp) * ulp)


def rounded(exact, dtype):
    return torch.tensor(np.vectorize(lambda q: nearest(q, dtype), otypes=[float])(exact)).to(dtype)


# Mode, image, what F.interpolate gets, and the scales that it hands on.
CALLS = [("linear", (5,), {"size": 8}, None), ("linear", (10,), {"scale_factor": 0.7}, [0.7]),
         ("bilinear", (4, 5), {"scale_factor": 2}, [2.0, 2.0]), ("bilinear", (6, 4), {"size": (3, 9), "align_corners": True}, None),
         ("bilinear", (5, 7), {"scale_factor": (1.7, 0.6), "recompute_scale_factor": True}, None),
         ("bicubic", (4, 5), {"scale_factor": 2.5}, [2.5, 2.5]), ("bicubic", (7, 3), {"size": (3, 7), "align_corners": True}, None),
         ("trilinear", (2, 3, 4), {"scale_factor": 2}, [2.0] * 3), ("trilinear", (3, 2, 3), {"size": (2, 4, 5)}, None)]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("mode, image, options, scales", CALLS)
def test_interpolate(mode, image, options, scales, dtype):
    x = torch.randn(2, 2, *image).to(dtype).requires_grad_()
    librepdl.torch.enable(strict=True)
    y = F.interpolate(x, mode=mode, **options)
    g = torch.ones_like(y) if y.numel() > 400 else torch.randn(y.shape).to(dtype)
    y.backward(g)
    librepdl.torch.disable()
    given = {"cubic": mode == "bicubic", "align_corners": options.get("align_corners", False), "scales": scales}
    assert torch.equal(y, rounded(interpolated(x.detach().double().numpy(), y.shape[2:], **given), dtype))
    assert torch.equal(x.grad, rounded(interpolated(g.double().numpy(), image, True, **given), dtype))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "trilinear"])
def test_formats_of_memory(mode):
    """The bits are those of contiguous tensors, and results lie as PyTorch's do."""
    image = (3, 4, 5) if mode == "trilinear" else (4, 5)
    format_ = torch.channels_last_3d if mode == "trilinear" else torch.channels_last
    x = torch.randn(2, 3, *image)
    stock = F.interpolate(x.contiguous(memory_format=format_), scale_factor=2, mode=mode)
    librepdl.torch.enable(strict=True)
    results = []
    for v in (x, x.contiguous(memory_format=format_), x[:, :, ..., ::1].transpose(-1, -2).contiguous().transpose(-1, -2)):
        v = v.detach().requires_grad_()
        y = F.interpolate(v, scale_factor=2, mode=mode)
        y.square().sum().backward()
        results.append((y.detach(), v.grad))
    assert results[1][0].stride() == stock.stride()
    for y, grad in results[1:]:
        assert torch.equal(y, results[0][0]) and torch.equal(grad, results[0][1])
    one = F.interpolate(x[1:], scale_factor=2, mode=mode)
    assert torch.equal(one[0], results[0][0][1])


def test_autocast_and_modules():
    x = torch.randn(1, 2, 4, 4)
    librepdl.torch.enable(strict=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.interpolate(x.bfloat16(), scale_factor=2, mode="bilinear")
    wide = F.interpolate(x.bfloat16().to(y.dtype), scale_factor=2, mode="bilinear")
    assert torch.equal(y, wide)
    assert torch.equal(nn.UpsamplingBilinear2d(scale_factor=2)(x), F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True))
    assert torch.equal(nn.Upsample(size=(6, 6), mode="bicubic")(x), F.interpolate(x, size=(6, 6), mode="bicubic"))


def test_absent_pixels():
    """A pixel without weight is not looked at, where stock PyTorch multiplies an infinity by 0."""
    x = torch.tensor([[[[1.0, float("inf"), -3.0]]]])
    librepdl.torch.enable(strict=True)
    assert F.interpolate(x, size=(1, 2), mode="bilinear", align_corners=True).tolist() == [[[[1, -3]]]]


def test_errors():
    librepdl.torch.enable(strict=True)
    with pytest.raises(RuntimeError, match="greater than 0"):
        torch.ops.aten.upsample_bilinear2d(torch.ones(1, 1, 2, 2), [0, 2], False)
    with pytest.raises(RuntimeError, match="It is expected output_size equals to 2"):
        torch.ops.aten.upsample_bicubic2d(torch.ones(1, 1, 2, 2), [2], False)
    with pytest.raises(RuntimeError, match="Non-empty 3D data tensor expected"):
        torch.ops.aten.upsample_linear1d(torch.ones(1, 0, 2), [4], False)
    assert F.interpolate(torch.ones(0, 2, 3, 3), scale_factor=2, mode="bilinear").shape == (0, 2, 6, 6)
