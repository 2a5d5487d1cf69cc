"""accumulate="fma_chain" against plain Python loops of fused multiply-adds in the contract's order (docs/contract.md, section 5)."""

import fractions
import itertools
import math

import numpy as np
import pytest

import librepdl
from librepdl.random import Generator


def fma(a, b, c):
    """RN(a b + c) in binary32, from rational numbers."""
    exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    if exact == 0:  # RN keeps a zero's sign: that of the sum of two zeros of one sign, else +
        product_negative = (math.copysign(1, a) * math.copysign(1, b)) < 0
        return -0.0 if product_negative and math.copysign(1, c) < 0 and a * b == 0 and c == 0 else 0.0
    return nearest(exact)


def nearest(q):
    """The binary32 number nearest to a rational one that is not 0, ties to even; subnormals too."""
    sign, q = (-1, -q) if q < 0 else (1, q)
    exponent = q.numerator.bit_length() - q.denominator.bit_length()
    if fractions.Fraction(2) ** exponent > q:
        exponent -= 1
    ulp = fractions.Fraction(2) ** max(exponent - 23, -149)
    n = round(q / ulp)  # Fraction rounds half to even
    value = n * ulp
    return sign * (math.inf if value >= fractions.Fraction(2) ** 128 else float(value))


def values(shape, seed):
    x = Generator(seed).normal(shape)
    scale = np.ldexp(np.float32(1), Generator(seed + 100).randint(x.size, 40, -40).astype(np.int32)).reshape(shape)
    y = x * scale
    y.reshape(-1)[::7] = 0
    y.reshape(-1)[3::11] *= np.float32(-0.0)
    y.reshape(-1)[5::13] = np.float32(1e-44)
    return y.astype(np.float32)


def check(got, loops):
    expected = np.array(loops, np.float32).reshape(got.shape)
    assert librepdl.compare(got, expected), str(librepdl.compare(got, expected))


def chain(pairs):
    s = 0.0
    for a, b in pairs:
        s = fma(float(a), float(b), s)
    return s


@pytest.mark.parametrize(("m", "k", "n"), [(3, 0, 2), (1, 1, 1), (5, 17, 4), (2, 64, 3)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_matmul(m, k, n, with_bias):
    a, b = values((m, k), 1), values((k, n), 2)
    bias = values((n,), 3) if with_bias else None
    loops = []
    for i, j in itertools.product(range(m), range(n)):
        s = np.float32(chain(zip(a[i], b[:, j])))
        loops.append(s if bias is None else np.float32(s + bias[j]))
    check(librepdl.matmul(a, b, bias, accumulate="fma_chain"), loops)


options = [dict(stride=1, padding=1, dilation=1, groups=1), dict(stride=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2), groups=2)]


def taps(x, w, o, stride=1, padding=0, dilation=1, groups=1):
    """(output row, column) -> the (channel, kernel row, kernel column, image row, image column) of the taps inside the image."""
    two = lambda v: (v, v) if isinstance(v, int) else v  # noqa: E731
    top, left = (padding, padding) if isinstance(padding, int) else (padding[0], padding[2])
    (sh, sw), (dh, dw) = two(stride), two(dilation)
    per_group = w.shape[1]
    first = o // (w.shape[0] // groups) * per_group

    def at(row, column):
        for c, r, s in itertools.product(range(per_group), range(w.shape[2]), range(w.shape[3])):
            i, j = row * sh - top + r * dh, column * sw - left + s * dw
            if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]:
                yield c, r, s, first + c, i, j

    return at


@pytest.mark.parametrize("option", options)
def test_conv2d_and_its_gradients(option):
    x, w, bias = values((2, 4, 6, 5), 4), values((4, 4 // option["groups"], 3, 2), 5), values((4,), 6)
    out = librepdl.conv2d(x, w, bias, **option, accumulate="fma_chain")
    g = values(out.shape, 7)
    forward, by_pixel, by_weight = [], {}, {}
    for n, o, i, j in itertools.product(*map(range, out.shape)):
        at = list(taps(x, w, o, **option)(i, j))
        # input channel, kernel row, kernel column
        s = np.float32(chain((x[n, ch, ii, jj], w[o, c, r, s]) for c, r, s, ch, ii, jj in at))
        forward.append(np.float32(s + bias[o]))
        for c, r, s, ch, ii, jj in at:
            by_pixel.setdefault((n, ch, ii, jj), []).append(((o, r, s), (g[n, o, i, j], w[o, c, r, s])))
            by_weight.setdefault((o, c, r, s), []).append(((n, i, j), (g[n, o, i, j], x[n, ch, ii, jj])))
    check(out, forward)

    def chained(shape, terms):
        return [chain(pair for _, pair in sorted(terms.get(at, []), key=lambda t: t[0])) for at in itertools.product(*map(range, shape))]

    # output channel, kernel row, kernel column; sample, output row, output column
    check(librepdl.conv2d_grad_input(g, w, x.shape[2:], **option, accumulate="fma_chain"), chained(x.shape, by_pixel))
    check(librepdl.conv2d_grad_weight(g, x, w.shape[2:], **option, accumulate="fma_chain"), chained(w.shape, by_weight))
