"""upsample_linear, upsample_cubic and their gradients: against exact fractions, which one rounding makes numbers."""
from fractions import Fraction

import numpy as np
import pytest

import librepdl
from interpolation_reference import interpolated

FORMATS = {np.float16: (11, -24, 16), np.float32: (24, -149, 128), np.float64: (53, -1074, 1024)}


def nearest(q, dtype):
    digits, least, end = FORMATS[dtype]
    if q == 0:
        return dtype(0)
    exponent = abs(q).numerator.bit_length() - q.denominator.bit_length()
    if Fraction(2) ** exponent > abs(q):
        exponent -= 1
    ulp = Fraction(2) ** max(exponent - digits + 1, least)
    value = round(q / ulp) * ulp  # half to even
    return dtype(np.copysign(np.inf if abs(value) >= Fraction(2) ** end else float(abs(value)), 1 if q > 0 else -1))


CALLS = [((5,), (8,), {}), ((9,), (4,), {"align_corners": True}), ((7,), (7,), {}), ((1,), (5,), {}), ((6,), (1,), {}),
         ((6,), (1,), {"align_corners": True}), ((10,), (7,), {"scale_w": 0.7}), ((3,), (40,), {}), ((31,), (3,), {}),
         ((4, 5), (8, 10), {}), ((3, 4), (7, 5), {}), ((5, 4), (3, 6), {"align_corners": True}),
         ((4, 6), (6, 4), {"scale_h": 1.7, "scale_w": 0.6}), ((2, 3, 4), (4, 6, 8), {}), ((3, 2, 3), (2, 5, 4), {}),
         ((2, 3, 2), (3, 3, 5), {"scale_d": 1.5, "scale_h": 1.1}), ((2, 2, 2), (3, 4, 1), {"align_corners": True})]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", ["linear", "cubic"])
@pytest.mark.parametrize("image, size, options", CALLS)
def test_exact_sums(dtype, name, image, size, options):
    r = np.random.default_rng(sum(image) * 31 + sum(size))
    scales = [options.get(s) for s in ("scale_d", "scale_h", "scale_w")[3 - len(image):]]
    given = {"cubic": name == "cubic", "align_corners": options.get("align_corners", False), "scales": scales}
    for backward, here, there in ((False, image, size), (True, size, image)):
        f = getattr(librepdl, f"upsample_{name}" + ("_backward" if backward else ""))
        # Of numbers of one magnitude, whose sums are ties now and then, and of any.
        for x in (r.integers(-2**10, 2**10, (1, 2, *here)).astype(dtype) + dtype(1), r.standard_normal((2, 1, *here)) * 2.0 ** r.integers(-14, 3, here)):
            x = x.astype(dtype)
            expected = np.vectorize(lambda q: nearest(q, dtype), otypes=[dtype])(interpolated(x, there, backward, **given))
            got = f(x, there, **options)
            assert got.dtype == dtype
            assert np.array_equal(got.view(f"i{got.itemsize}"), expected.view(f"i{got.itemsize}"))


def test_what_is_absent():
    inf = np.float32(np.inf)
    assert librepdl.upsample_linear(np.float32([[[1, inf, -3]]]), 2, align_corners=True).tolist() == [[[1, -3]]]
    assert librepdl.upsample_linear(np.float32([[[1, inf]]]), 4).tolist() == [[[1, inf, inf, inf]]]
    assert librepdl.upsample_cubic(np.float32([[[1, inf]]]), 4).tolist() == [[[-inf, inf, inf, inf]]]
    nan = np.float32([[[np.nan, 2, 5]]])
    assert librepdl.upsample_linear_backward(nan, 5, align_corners=True)[0, 0, 2:].tolist() == [2, 0, 5]


def test_sizes():
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    assert librepdl.upsample_linear(x, 2).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert librepdl.upsample_linear(x.tolist(), (4, 2)).shape == (1, 1, 4, 2)
    with pytest.raises(ValueError, match="upsample_linear: size: expected one number, or 2, got "):
        librepdl.upsample_linear(x, (1, 2, 3))
    with pytest.raises(ValueError, match=r"upsample_cubic: scale_w: expected 0, or a number in \[2\^-32, 2\^32\]"):
        librepdl.upsample_cubic(x, 3, scale_w=-1.0)
    with pytest.raises(ValueError, match="upsample_linear: x: expected at least one pixel to take, got none"):
        librepdl.upsample_linear(np.zeros((1, 1, 0), np.float32), 3)
