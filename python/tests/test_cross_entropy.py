"""cross_entropy with weights, smoothing and probabilities: against 60 decimal digits, and errors."""
import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import librepdl
from test_fma_chain import nearest


def blended(x, a):
    """The sum of a_c (logsumexp - x_c) of a row."""
    numbers = [Decimal(float(v)) for v in x]
    total = sum(v.exp() for v in numbers).ln()
    return sum(c * (total - v) for c, v in zip(a, numbers))


def test_weights_smoothing_and_probabilities():
    r = np.random.default_rng(5)
    x, weight, p = (r.standard_normal((20, 6)).astype(np.float32), r.random(6, np.float32), r.random((20, 6), np.float32))
    targets = r.integers(0, 6, 20)
    targets[::7] = -100
    s = 0.1
    with decimal.localcontext() as ctx:
        ctx.prec = 60
        w = [Decimal(float(v)) for v in weight]
        kept, spread = 1 - Decimal(s), Decimal(s) / 6
        rows = [[(kept * (c == t) + spread) * w[c] for c in range(6)] for t in targets]
        loss = sum(blended(x[i], rows[i]) for i, t in enumerate(targets) if t >= 0)
        total = sum(w[t] for t in targets if t >= 0)
        assert librepdl.cross_entropy(x, targets, weight, label_smoothing=s) == nearest(Fraction(loss / total))
        assert librepdl.cross_entropy(x, targets, weight, label_smoothing=s, reduction="sum") == nearest(Fraction(loss))
        loss = sum(blended(x[i], [(kept * Decimal(float(q)) + spread) * w[c] for c, q in enumerate(p[i])]) for i in range(20))
        assert librepdl.cross_entropy_probabilities(x, p, weight, label_smoothing=s) == nearest(Fraction(loss / 20))
    grad = librepdl.cross_entropy_probabilities_backward(np.float32(1), x, p, weight)
    assert grad.shape == x.shape and grad.dtype == np.float32


def test_errors():
    x = np.float32([[-1, -2]])
    with pytest.raises(ValueError, match=r"cross_entropy: weight: expected shape \[2\], got \[3\]"):
        librepdl.cross_entropy(x, np.int64([0]), np.float32([1, 2, 3]))
    with pytest.raises(ValueError, match="cross_entropy: label_smoothing: expected 0, or from 2\\^-64 to 1, got 2"):
        librepdl.cross_entropy(x, np.int64([0]), label_smoothing=2.0)
    with pytest.raises(ValueError, match=r"cross_entropy_probabilities: probabilities: expected shape \[1, 2\], got \[2\]"):
        librepdl.cross_entropy_probabilities(x, np.float32([0, 1]))
