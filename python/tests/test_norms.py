"""Norms against their formulas in rational numbers and decimals; their statistics, out=, and wrong calls."""

import decimal
import fractions

import numpy as np
import pytest

import librepdl
from conftest import torch
from librepdl.random import Generator
from test_fma_chain import nearest

EPS = 2.0**-17


def numbers(shape, seed):
    return Generator(seed).normal(shape)


def formula(x, weight, bias, is_rms):
    """(out, mean, rstd) of a row, none of whose results is 0 or a tie."""
    x, weight, bias = ([fractions.Fraction(float(v)) for v in a] for a in (x, weight, bias))
    m = 0 if is_rms else sum(x) / len(x)
    d = sum((v - m) ** 2 for v in x) / len(x) + fractions.Fraction(EPS)
    with decimal.localcontext() as context:
        context.prec = 200
        r = fractions.Fraction(1 / (decimal.Decimal(d.numerator) / decimal.Decimal(d.denominator)).sqrt())
    return [nearest((v - m) * r * w + b) for v, w, b in zip(x, weight, bias)], None if is_rms else nearest(m), nearest(r)


# name: options, shape of x, of weights, of weights as they broadcast, of statistics; x as rows
CALLS = {
    "layer_norm": ({"axis": (2, 1)}, (3, 4, 5), (4, 5), (4, 5), (3,), lambda a: a.reshape(3, 20)),
    "rms_norm": ({}, (3, 4, 5), (5,), (5,), (3, 4), lambda a: a.reshape(12, 5)),
    "group_norm": ({"groups": 3}, (2, 6, 3, 2), (6,), (6, 1, 1), (2, 3), lambda a: a.reshape(6, 12)),
    "batch_norm": ({}, (3, 4, 5), (4,), (4, 1), (4,), lambda a: np.moveaxis(a, 1, 0).reshape(4, 15)),
}


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_formulas(library, name, with_weight, with_bias):
    options, shape, weights, broadcast, statistics, rows = CALLS[name]
    is_rms = name == "rms_norm"
    if is_rms and with_bias:
        pytest.skip("it has none")
    x = numbers(shape, 1)
    weight = numbers(weights, 2) if with_weight else np.ones(weights, np.float32)
    bias = numbers(weights, 3) if with_bias else np.zeros(weights, np.float32)
    given = {key: library.array(value.tobytes(), "f32", value.shape)
             for key, value, is_given in (("x", x, True), ("weight", weight, with_weight), ("bias", bias, with_bias)) if is_given}
    got = getattr(librepdl, name)(**given, **options, eps=EPS, statistics=True)
    assert isinstance(got, tuple) and [tuple(a.shape) for a in got] == [shape, *[statistics] * (len(got) - 1)]
    out, *found = (np.frombuffer(library.bytes(a), np.float32).reshape(a.shape) for a in got)
    each = [rows(a) for a in (x, *(np.broadcast_to(a.reshape(broadcast), shape) for a in (weight, bias)))]
    expected = [formula(*row, is_rms) for row in zip(*each)]
    assert rows(out).tolist() == [row for row, _, _ in expected]
    assert found[-1].reshape(-1).tolist() == [r for _, _, r in expected]
    if not is_rms:
        assert found[0].reshape(-1).tolist() == [m for _, m, _ in expected]
    alone = getattr(librepdl, name)(**given, **options, eps=EPS)
    assert library.bytes(alone) == library.bytes(got[0])


def test_rows_of_float16():
    x = np.array([[1, 3], [-2, -8], [0, 2**-24]], np.float16)
    out, mean, rstd = librepdl.layer_norm(x, eps=0.0, statistics=True)
    assert out.dtype == np.float16 and mean.dtype == rstd.dtype == np.float32
    assert out.tolist() == [[-1, 1], [1, -1], [-1, 1]]
    assert mean.tolist() == [2.0, -5.0, 2.0**-25] and rstd[0] == 1 and rstd[2] == 2.0**25
    same = np.full((2, 4), 7, np.float16)
    assert librepdl.softmax(same).tolist() == [[0.25] * 4] * 2 and librepdl.softmax(same).dtype == np.float16
    assert librepdl.softmax(same[:, :3], dtype=np.float64).tolist() == [[1 / 3] * 3] * 2
    for type in np.float32, np.float64:  # float16 has 2048 and 2050, and the logarithm is not 0
        got = librepdl.log_softmax(np.array([0, -2049], type), dtype=np.float16)
        assert got.dtype == np.float16 and got.tolist() == [0, -2050]
    out = np.empty(2)
    assert librepdl.softmax(np.array([0, 1], np.float32), out=out) is out and abs(out.sum() - 1) < 1e-15
    with pytest.raises(NotImplementedError, match="softmax_backward: y: expected f16, as g, got f32"):
        librepdl.softmax_backward(same, same.astype(np.float32))


def test_rows_of_float64():
    """One rounding of the formula, and of the statistics, which are float64, too; far from 0 as well."""
    g = np.random.default_rng(64)
    x, weight, bias = 1e9 + g.standard_normal((7, 12)), g.standard_normal(12), g.standard_normal(12)
    out, mean, rstd = librepdl.layer_norm(x, weight, bias, eps=EPS, statistics=True)
    assert out.dtype == mean.dtype == rstd.dtype == np.float64
    for row, y, m, r in zip(x.tolist(), out.tolist(), mean.tolist(), rstd.tolist(), strict=True):
        v = [fractions.Fraction(a) for a in row]
        exact_m = sum(v) / 12
        d = sum((a - exact_m) ** 2 for a in v) / 12 + fractions.Fraction(EPS)
        with decimal.localcontext() as context:
            context.prec = 200
            exact_r = fractions.Fraction(1 / (decimal.Decimal(d.numerator) / decimal.Decimal(d.denominator)).sqrt())
        assert (m, r) == (float(exact_m), float(exact_r))
        wb = zip(v, map(fractions.Fraction, weight.tolist()), map(fractions.Fraction, bias.tolist()), strict=True)
        assert y == [float((a - exact_m) * exact_r * w + b) for a, w, b in wb]
    gradient = librepdl.layer_norm_backward(out, x, mean, rstd, weight)
    exact = [fractions.Fraction(a) for a in (*out[0], *x[0], mean[0], rstd[0])]
    t = [a * fractions.Fraction(w) for a, w in zip(exact[:12], weight.tolist(), strict=True)]
    h = [(a - exact[24]) * exact[25] for a in exact[12:24]]
    of_t, of_th = sum(t) / 12, sum(a * b for a, b in zip(t, h, strict=True)) / 12
    assert gradient[0].tolist() == [float(exact[25] * (a - of_t - b * of_th)) for a, b in zip(t, h, strict=True)]


def test_weights_of_float32():
    """x of float16: one rounding, also where that is next to the middle of two numbers."""
    x = np.array([[1, -1, 1, -1]], np.float16)
    middle = 1 + np.array([1, 1, 3, 3], np.float32) * np.float32(2**-11)
    tiny = np.full(4, 2**-40, np.float32)
    out, mean, rstd = librepdl.layer_norm(x, tiny, middle, eps=0.0, statistics=True)
    assert out.dtype == np.float16 and mean.dtype == rstd.dtype == np.float32
    assert out.tolist() == [[1 + 2**-10, 1, 1 + 2**-9, 1 + 2**-10]]
    assert librepdl.rms_norm(x, 2.0**-60, weight=middle).tolist() == [[1, -1, 1 + 2**-10, -1 - 2**-10]]
    with pytest.raises(NotImplementedError, match="layer_norm: bias: expected f32, as weight, got f16"):
        librepdl.layer_norm(x, tiny, middle.astype(np.float16))
    with pytest.raises(NotImplementedError, match="rms_norm: weight: expected f32, as x, got f16"):
        librepdl.rms_norm(x.astype(np.float32), 0.0, weight=middle.astype(np.float16))


def test_the_mean_is_that_of_mean():
    x = numbers((5, 300), 4) + np.float32(1000)
    _, mean, _ = librepdl.layer_norm(x, statistics=True)
    assert librepdl.compare(mean, librepdl.mean(x, 1))


def test_one_norm_as_another():
    x = numbers((3, 4, 6, 5), 5)
    weight, bias = numbers(4, 6), numbers(4, 7)
    by_sample = [librepdl.batch_norm(x[i:i + 1], weight, bias) for i in range(3)]
    assert librepdl.compare(librepdl.group_norm(x, weight, bias, groups=4), np.concatenate(by_sample))
    assert librepdl.compare(librepdl.group_norm(x), librepdl.layer_norm(x, axis=(1, 2, 3)))
    assert librepdl.compare(librepdl.batch_norm(x), librepdl.layer_norm(x, axis=(0, 2, -1)))
    last = np.moveaxis(x, 1, -1)
    assert librepdl.compare(librepdl.batch_norm(last, weight, bias, axis=-1), np.moveaxis(librepdl.batch_norm(x, weight, bias), 1, -1))


def test_out():
    x = numbers((4, 9), 8)
    out, mean, rstd = librepdl.layer_norm(x, statistics=True)
    given = np.zeros((4, 9), np.float32)
    assert librepdl.layer_norm(x, out=given) is given and librepdl.compare(given, out)
    columns, spread = np.zeros((9, 4), np.float32).T, np.zeros(8, np.float32)[::2]
    for places in ((columns, None, spread), [columns, None, spread], (None, None, spread), None):
        columns[:], spread[:] = 0, 0
        got = librepdl.layer_norm(x, out=places, statistics=True)
        assert all(librepdl.compare(a, b) for a, b in zip(got, (out, mean, rstd), strict=True))
        assert all(place is None or a is place for a, place in zip(got, places or (None,) * 3))


def test_running_statistics():
    x, weight, bias = numbers((6, 4, 5), 13), numbers(4, 14), numbers(4, 15)
    mean, var = numbers(4, 16), np.abs(numbers(4, 17))
    out, m, rstd, new_mean, new_var = librepdl.batch_norm_running(x, mean, var, weight, bias, momentum=0.25, statistics=True)
    plain = librepdl.batch_norm(x, weight, bias, statistics=True)
    assert all(librepdl.compare(a, b) for a, b in zip((out, m, rstd), plain, strict=True))
    for channel, values in enumerate(np.moveaxis(x, 1, 0).reshape(4, 30)):
        exact = [fractions.Fraction(float(v)) for v in values]
        average = sum(exact) / 30
        unbiased = sum((v - average) ** 2 for v in exact) / 29
        assert new_mean[channel] == nearest((3 * fractions.Fraction(float(mean[channel])) + average) / 4)
        assert new_var[channel] == nearest((3 * fractions.Fraction(float(var[channel])) + unbiased) / 4)
    in_place = librepdl.batch_norm_running(x, mean, var, momentum=0.25, out=(None, None, None, mean, var), statistics=True)
    assert in_place[3] is mean and librepdl.compare(mean, new_mean) and librepdl.compare(var, new_var)


@pytest.mark.parametrize("axis", [1, -1])
def test_given_statistics(axis):
    x, g = (np.moveaxis(numbers((6, 4, 5), seed), 1, axis) for seed in (18, 19))
    weight, bias, mean, var = numbers(4, 20), numbers(4, 21), numbers(4, 22), np.abs(numbers(4, 23))
    rows = lambda a: [[fractions.Fraction(float(v)) for v in row] for row in np.moveaxis(a, axis, 0).reshape(4, 30)]
    out = librepdl.batch_norm_inference(x, mean, var, weight, bias, axis=axis, eps=EPS)
    to_x = librepdl.batch_norm_inference_backward(g, var, weight, axis=axis, eps=EPS)
    to_weight = librepdl.batch_norm_inference_weight_backward(g, x, mean, var, axis=axis, eps=EPS)
    for channel, (xs, gs, ys, ts) in enumerate(zip(rows(x), rows(g), rows(out), rows(to_x))):
        w, b, m, v = (fractions.Fraction(float(a[channel])) for a in (weight, bias, mean, var))
        v += fractions.Fraction(EPS)
        with decimal.localcontext() as context:
            context.prec = 200
            r = fractions.Fraction(1 / (decimal.Decimal(v.numerator) / decimal.Decimal(v.denominator)).sqrt())
        assert ys == [nearest((a - m) * r * w + b) for a in xs]
        assert ts == [nearest(a * w * r) for a in gs]
        assert to_weight[channel] == nearest(sum(c * (a - m) for a, c in zip(xs, gs)) * r)


@pytest.mark.parametrize(("axis", "keepdims"), [(None, False), ((2, 0), True), (-2, False)])
@pytest.mark.parametrize("correction", [1.0, 0.0, -2.5])
def test_statistics(axis, keepdims, correction):
    x = numbers((3, 4, 5), 24)
    var, mean = librepdl.var_mean(x, axis, keepdims, correction, statistics=True)
    assert librepdl.compare(mean, librepdl.mean(x, axis, keepdims))
    for same in (librepdl.var_mean(x, axis, keepdims, correction), librepdl.var(x, axis, keepdims, correction)):
        assert librepdl.compare(same, var)
    root = librepdl.stddev(x, axis, keepdims, correction)
    gone = range(3) if axis is None else [a % 3 for a in np.atleast_1d(axis)]
    kept = [a for a in range(3) if a not in gone]
    rows = np.transpose(x, (*kept, *gone)).reshape(-1, np.prod([x.shape[a] for a in gone]))
    assert var.shape == np.var(x, axis=axis, keepdims=keepdims).shape
    for row, v, r in zip(rows, np.ravel(var), np.ravel(root), strict=True):
        exact = [fractions.Fraction(float(e)) for e in row]
        q = sum((e - sum(exact) / len(exact)) ** 2 for e in exact) / (len(exact) - fractions.Fraction(correction))
        with decimal.localcontext() as context:
            context.prec = 200
            s = fractions.Fraction((decimal.Decimal(q.numerator) / decimal.Decimal(q.denominator)).sqrt())
        assert v == nearest(q) and r == nearest(s)


@pytest.mark.parametrize("p", [1.0, 2.0, float("inf"), -float("inf")])
def test_vector_norms(p):
    x = numbers((3, 4, 5), 25)
    out = librepdl.vector_norm(x, p, (0, 2), True)
    assert out.shape == (1, 4, 1)
    for row, got, square in zip(np.moveaxis(x, 1, 0).reshape(4, 15), out.ravel(), librepdl.sum_squares(x, (2, 0)), strict=True):
        exact = [abs(fractions.Fraction(float(v))) for v in row]
        q = sum(v * v for v in exact)
        assert square == nearest(q)
        with decimal.localcontext() as context:
            context.prec = 200
            root = fractions.Fraction((decimal.Decimal(q.numerator) / decimal.Decimal(q.denominator)).sqrt())
        assert got == nearest({1.0: sum(exact), 2.0: root}.get(p, max(exact) if p > 0 else min(exact)))


def test_prepared_calls():
    x = numbers((4, 9), 9)
    p = librepdl.prepare(lambda: librepdl.rms_norm(x, EPS, statistics=True))
    for _ in range(2):
        p.run()
        assert all(librepdl.compare(a, b) for a, b in zip(p.result, librepdl.rms_norm(x, EPS, statistics=True), strict=True))
        x += np.float32(1)


@pytest.mark.skipif(torch is None, reason="no torch here")
def test_beside_torch():
    x, weight, bias = (torch.from_numpy(numbers(shape, seed)) for shape, seed in (((4, 6, 5, 7), 10), ((6,), 11), ((6,), 12)))
    f = torch.nn.functional
    last = weight.repeat(2)[:7]
    var, mean = librepdl.var_mean(x, (0, 2), correction=0.0, statistics=True)
    for ours, theirs in zip((var, mean), torch.var_mean(x, (0, 2), correction=0.0), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    for ours, theirs in ((librepdl.layer_norm(x, last), f.layer_norm(x, (7,), last)),
                         (librepdl.rms_norm(x, 2.0**-23, last), f.rms_norm(x, (7,), last)),
                         (librepdl.group_norm(x, weight, bias, groups=2), f.group_norm(x, 2, weight, bias)),
                         (librepdl.batch_norm(x, weight, bias), f.batch_norm(x, None, None, weight, bias, training=True)),
                         (librepdl.batch_norm_inference(x, bias, weight.abs(), weight, bias),
                          f.batch_norm(x, bias, weight.abs(), weight, bias))):
        assert type(ours) is torch.Tensor
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(("error", "text", "call"), [
    (ValueError, r"layer_norm: weight: expected shape \[3\], got \[2\]", lambda: librepdl.layer_norm(X, X[:, 0])),
    (ValueError, r"batch_norm: bias: expected shape \[3\], got \[1\]", lambda: librepdl.batch_norm(X, None, X[0, :1])),
    (ValueError, "layer_norm: eps: ", lambda: librepdl.layer_norm(X, eps=-1.0)),
    (ValueError, "layer_norm: axis: ", lambda: librepdl.layer_norm(X, axis=(0, 0))),
    (ValueError, "batch_norm: axis: ", lambda: librepdl.batch_norm(X, axis=2)),
    (ValueError, "group_norm: groups: expected a divisor of the 3 channels, got 2", lambda: librepdl.group_norm(X, groups=2)),
    (ValueError, "group_norm: x: ", lambda: librepdl.group_norm(X[0])),
    (ValueError, "vector_norm: p: expected 1, 2, inf or -inf, got 3", lambda: librepdl.vector_norm(X, 3.0)),
    (ValueError, "var: correction or ddof: ", lambda: librepdl.var(X, correction=float("nan"))),
    (TypeError, "eps", lambda: librepdl.rms_norm(X)),
    (TypeError, "rms_norm: eps: expected a number, got ndarray", lambda: librepdl.rms_norm(X, X[0])),
    (TypeError, "layer_norm: weight: expected an array", lambda: librepdl.layer_norm(X, "1")),
    (NotImplementedError, "layer_norm: weight: expected f64, as x, got f32",
     lambda: librepdl.layer_norm(X.astype(np.float64), np.ones(X.shape[-1], np.float32))),
    (TypeError, "layer_norm: statistics: expected a bool, got int", lambda: librepdl.layer_norm(X, statistics=1)),
    (TypeError, "layer_norm: out: expected an array .*, got tuple", lambda: librepdl.layer_norm(X, out=(None, None, None))),
    (TypeError, "layer_norm: out: expected a tuple of 3 arrays, got ndarray", lambda: librepdl.layer_norm(X, out=X.copy(), statistics=True)),
    (ValueError, "layer_norm: out: expected a tuple of 3 arrays, got 2", lambda: librepdl.layer_norm(X, out=(None, None), statistics=True)),
    (ValueError, r"layer_norm: mean: expected shape \[2\], got \[3\]",
     lambda: librepdl.layer_norm(X, out=(None, np.zeros(3, np.float32), None), statistics=True)),
    (TypeError, "layer_norm: rstd: expected f32, got f64", lambda: librepdl.layer_norm(X, out=(None, None, np.zeros(2)), statistics=True)),
    (TypeError, "statistics", lambda: librepdl.softmax(X, statistics=True)),
])
def test_wrong_calls(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_results_that_overlap():
    x = X.copy()
    with pytest.raises(ValueError, match="layer_norm: out: "):
        librepdl.layer_norm(x, out=x)
    memory = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="layer_norm: rstd: .*'mean'"):
        librepdl.layer_norm(x, out=(None, memory[:2], memory[1:]), statistics=True)
    assert (x == X).all() and not memory.any()
