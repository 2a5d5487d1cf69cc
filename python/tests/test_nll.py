"""nll_loss: against exact fractions, its statistics, its gradient, and errors."""
from fractions import Fraction

import numpy as np
import pytest

import librepdl
from test_fma_chain import nearest


def test_the_mean_is_the_quotient_of_exact_sums():
    r = np.random.default_rng(3)
    x, weight = -r.random((200, 7), np.float32), r.random(7, np.float32)
    targets = r.integers(0, 7, 200)
    targets[::9] = -100
    rows = [(Fraction(float(x[i, t])), Fraction(float(weight[t]))) for i, t in enumerate(targets) if t >= 0]
    loss, total = -sum(a * w for a, w in rows), sum(w for _, w in rows)
    out, total_weight = librepdl.nll_loss(x, targets, weight, statistics=True)
    assert out == nearest(loss / total) and total_weight == nearest(total) and total_weight.dtype == np.float32
    assert librepdl.nll_loss(x, targets, weight, reduction="sum") == nearest(loss)
    order = r.permutation(200)
    assert librepdl.nll_loss(x[order], targets[order], weight) == out
    grad = librepdl.nll_loss_backward(np.float32(3), x, targets, weight, total_weight)
    for i, t in enumerate(targets):
        want = np.zeros(7, np.float32)
        if t >= 0:
            want[t] = nearest(-3 * Fraction(float(weight[t])) / Fraction(float(total_weight)))
        assert np.array_equal(grad[i], want)


def test_float64():
    r = np.random.default_rng(4)
    x, weight = -r.random((200, 7)), r.random(7) * 2.0 ** r.integers(-30, 30, 7)
    targets = r.integers(0, 7, 200)
    targets[::9] = -100
    rows = [(Fraction(x[i, t]), Fraction(weight[t])) for i, t in enumerate(targets) if t >= 0]
    loss, total = -sum(a * w for a, w in rows), sum(w for _, w in rows)
    out, total_weight = librepdl.nll_loss(x, targets, weight, statistics=True)
    assert out == float(loss / total) and total_weight == float(total) and total_weight.dtype == np.float64
    assert librepdl.nll_loss(x, targets, weight, reduction="sum") == float(loss)
    assert librepdl.nll_loss(x, targets) == float(-sum(a for a, _ in rows) / len(rows))
    grad = librepdl.nll_loss_backward(np.float64(0.3), x, targets, weight, total_weight)
    for i, t in enumerate(targets):
        assert np.flatnonzero(grad[i]).tolist() == ([t] if t >= 0 else [])
        if t >= 0:
            assert grad[i, t] == float(-Fraction(0.3) * Fraction(weight[t]) / Fraction(float(total_weight)))
    with pytest.raises(NotImplementedError, match="nll_loss_backward: total_weight: expected f64, got f32"):
        librepdl.nll_loss_backward(np.float64(1), x, targets, weight, np.float32(1))


def test_each_loss_along_any_axis():
    x = np.float16([[-1, -2, -3], [-4, -5, -6]])
    assert librepdl.nll_loss(x, np.int64([1, 0, 1]), axis=0, reduction="none").tolist() == [4, 2, 6]
    assert librepdl.nll_loss(x, np.int64([2, 0]), reduction="none").tolist() == [3, 4]
    assert np.isnan(librepdl.nll_loss(x, np.int64([3, 0])))


def test_errors():
    x, targets = np.float32([[-1, -2]]), np.int64([0])
    with pytest.raises(ValueError, match=r"nll_loss: targets: expected shape \[1\], got \[2\]"):
        librepdl.nll_loss(x, np.int64([0, 1]))
    with pytest.raises(ValueError, match=r"nll_loss: weight: expected shape \[2\], got \[3\]"):
        librepdl.nll_loss(x, targets, np.float32([1, 2, 3]))
    with pytest.raises(ValueError, match="nll_loss_backward: total_weight: expected a tensor, for the mean, got none"):
        librepdl.nll_loss_backward(np.float32(1), x, targets)
