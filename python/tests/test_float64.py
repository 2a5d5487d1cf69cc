"""NumPy's default just works: every function takes float64, arrays and lists, but those that are named here."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import librepdl
from conftest import NUMPY_TYPES
from registry import ROWS

# No float64 yet. A function that takes it is no longer here.
WITHOUT = set("""
    lgamma tgamma digamma i0 i0e i1 i1e
""".split())


def has(row, type):
    return any(type in operand["types"] for operand in row["inputs"] + row["outputs"])


# Lists of arrays are updated in place: test_arrays.py. Images and places are below, attention in test_attention_gradients.py.
WITH = [name for name, row in ROWS.items()
        if has(row, "f64") and row["family"] not in ("optimizer", "pooling", "convolution", "upsample", "scatter", "attention")]


def test_functions_without_float64():
    assert {name for name, row in ROWS.items() if has(row, "f32") and not has(row, "f64")} == WITHOUT


def call(row, convert):
    """Its result; convert makes operands of arrays."""
    if any(a["name"] == "stream" for a in row["attributes"]):
        draw = getattr(librepdl.random.Generator(1), row["name"])
        samples = {"num_samples": 2} if row["name"] == "multinomial" else {}
        return draw(convert(np.float64([0.125, 0.25, 0.375, 0.75])), **samples) if row["inputs"] else draw(4, np.float64)
    function = getattr(librepdl, row["name"])
    if not row["inputs"]:
        return function(1.0, 5.0, dtype=np.float64)
    x = np.float64([0.125, 0.25, 0.375, 0.75]) + row["name"].startswith("acosh")  # which begins at 1
    if row["name"].startswith(("nll_loss", "cross_entropy")):  # at targets, the classes of two rows
        two = {"targets": np.int64([0, 1]), "x": x.reshape(2, 2), "weight": x[:2], "g": x[:2], "total_weight": np.asarray(x[0]),
               "logits": x.reshape(2, 2), "probabilities": x.reshape(2, 2)}
        return function(*(convert(two[i["name"]]) for i in row["inputs"]), reduction="none")
    if "norm" in row["name"] and row["family"] == "norm":  # of two rows
        statistics = x[:2].reshape(2, 1) if row["name"].startswith("group") else x[:2]
        two = {"x": x.reshape(2, 2), "g": x.reshape(2, 2), "mean": statistics, "rstd": statistics}
        return function(**{i["name"]: convert(two.get(i["name"], x[:2])) for i in row["inputs"]},
                        **({"eps": 0.5} if row["name"] == "rms_norm" else {}))
    if row["name"] == "matmul":
        x = x.reshape(2, 2)
    numbers = {"bool": x < 0.5, "i64": np.int64([-2, -1, 0, 3])}
    operands = [convert(x if "f64" in i["types"] else numbers[i["types"][0]]) for i in row["inputs"]]
    if row["name"] == "logsumexp_backward":  # a row's number
        operands[0] = 0.5
    if any(a["name"] == "reduction" for a in row["attributes"]):
        return function(*operands, reduction="none")
    return function(*operands, **({"dtype": np.float64} if row["name"] == "convert" else {}))


def first_of(results):
    return results[0] if isinstance(results, tuple) else results


@pytest.mark.parametrize("name", WITH)
def test_float64(name):
    row = ROWS[name]
    types = row["outputs"][0]["types"]
    for convert in (lambda x: x, np.ndarray.tolist):
        result = first_of(call(row, convert))
        assert type(result) is np.ndarray and result.dtype == (np.float64 if "f64" in types else NUMPY_TYPES[types[0]])
        assert np.isfinite(result).all() and result.tobytes() == first_of(call(row, np.copy)).tobytes()


def test_losses():
    """The nearest numbers to exact fractions."""
    g = np.random.default_rng(66)
    x, t = (1e9 + g.standard_normal((2, 40)) * 2.0 ** g.integers(-60, 3, (2, 40))).tolist(), g.standard_normal(40).tolist()
    third = Fraction(0.3)
    losses = {
        "mse_loss": ({}, lambda d: d * d, lambda d: 2 * d),
        "l1_loss": ({}, abs, lambda d: (d > 0) - (d < 0)),
        "smooth_l1_loss": ({"beta": 0.3}, lambda d: d * d / (2 * third) if abs(d) < third else abs(d) - third / 2,
                           lambda d: d / third if abs(d) < third else (d > 0) - (d < 0)),
        "huber_loss": ({"delta": 0.3}, lambda d: d * d / 2 if abs(d) <= third else third * (abs(d) - third / 2),
                       lambda d: d if abs(d) <= third else third * ((d > 0) - (d < 0))),
    }
    for x, t in ((x[0], x[1]), (t, [v / 2 for v in t]), (x[0], t)):
        exact = [Fraction(a) - Fraction(b) for a, b in zip(x, t, strict=True)]
        for name, (options, f, slope) in losses.items():
            loss, gradient = getattr(librepdl, name), getattr(librepdl, name + "_backward")
            assert loss(x, t, reduction="none", **options).tolist() == [float(f(d)) for d in exact]
            assert loss(x, t, reduction="sum", **options) == float(sum(map(f, exact)))
            assert loss(x, t, **options) == float(sum(map(f, exact)) / 40)
            assert gradient(0.7, x, t, **options).tolist() == [float(Fraction(0.7) * slope(d) / 40) for d in exact]
    assert librepdl.mse_loss([1e200, 1e-200, 0.0], [0.0, 0.0, 0.0], reduction="sum") == np.inf
    assert librepdl.mse_loss([2.0**512, 0.0], [0.0, 0.0]) == 2.0**1023  # the square overflows, half of it does not


def test_images():
    """Of windows of two rows and three columns, side by side; lists, too."""
    r = np.random.default_rng(67)
    x = r.standard_normal((2, 3, 4, 6)) * 2.0 ** r.integers(-60, 3, (2, 3, 4, 6))
    g = r.standard_normal((2, 3, 2, 2))
    windows = x.reshape(2, 3, 2, 2, 2, 3).swapaxes(3, 4).reshape(2, 3, 2, 2, 6)
    sums = np.vectorize(lambda w: sum(map(Fraction, w)), signature="(n)->()")(windows)
    spread = g.repeat(2, 2).repeat(3, 3)
    assert (librepdl.max_pool2d(x, (2, 3)) == windows.max(-1)).all()
    assert (librepdl.adaptive_max_pool2d(x, 2) == windows.max(-1)).all()
    assert librepdl.avg_pool2d(x, (2, 3)).tolist() == np.vectorize(lambda s: float(s / 6))(sums).tolist()
    assert librepdl.avg_pool2d(x.tolist(), (2, 3), divisor_override=7).tolist() == np.vectorize(lambda s: float(s / 7))(sums).tolist()
    assert librepdl.adaptive_avg_pool2d(x, 2).tolist() == np.vectorize(lambda s: float(s / 6))(sums).tolist()
    assert librepdl.upsample_nearest2d_backward(x, 2).tolist() == np.vectorize(float)(sums).tolist()
    assert (librepdl.upsample_nearest2d(g, (4, 6)) == spread).all()
    assert (librepdl.avg_pool2d_backward(g, (2, 3), (4, 6)) == spread / 6).all()
    assert (librepdl.adaptive_avg_pool2d_backward(g, (4, 6)) == spread / 6).all()
    greatest, where = librepdl.max_pool2d_with_indices(x, (2, 3))
    assert greatest.dtype == np.float64 and (x.reshape(2, 3, 24)[np.arange(2)[:, None, None], np.arange(3)[:, None], where.reshape(2, 3, 4)] ==
                                             greatest.reshape(2, 3, 4)).all()
    both = librepdl.adaptive_max_pool2d_with_indices(x, 2)
    assert (both[0] == greatest).all() and (both[1] == where).all()
    won = np.where(x == greatest.repeat(2, 2).repeat(3, 3), spread, 0.0)
    assert (librepdl.max_pool2d_backward(g, x, (2, 3)) == won).all() and (librepdl.adaptive_max_pool2d_backward(g, x) == won).all()
    assert librepdl.avg_pool2d(np.full((1, 1, 2, 2), np.finfo(np.float64).max), 2) == np.finfo(np.float64).max


def nearest(total, like):
    """The number of the format that is nearest; of two the even one. Sums here are no midpoints of binary64 alone."""
    if like == np.float64:
        return float(total)
    a = np.array(float(total), like)
    both = [a, np.nextafter(a, like.type(np.inf)), np.nextafter(a, like.type(-np.inf))]
    return float(min(both, key=lambda v: (abs(Fraction(float(v)) - total), int(v.view(f"u{like.itemsize}")) & 1)))


def test_convolutions():
    """In every format, of products that no binary64 number holds; strides, groups, absent taps; where only fractions decide."""
    r = np.random.default_rng(69)
    options = {"stride": (2, 1), "padding": (1, 1, 2, 1), "dilation": (1, 2), "groups": 2}

    def meetings(n, rows, columns, result):
        """Places in x, w and the result of all products."""
        for at in np.ndindex(n, 4, *result, 3, 3, 2):
            sample, o, i, j, c, s, t = at
            y, x = 2 * i + s - 1, j + 2 * t - 2
            if 0 <= y < rows and 0 <= x < columns:
                yield (sample, o // 2 * 3 + c, y, x), (o, c, s, t), (sample, o, i, j)

    for kind in ("f8", "f4", "f2"):
        like = np.dtype(kind)
        x, w, b, g = (r.standard_normal(s).astype(like) for s in ((2, 6, 5, 4), (4, 3, 3, 2), 4, (2, 4, 3, 5)))
        if kind == "f8":
            x[0] *= 2.0**-400
            w[1] *= 2.0**300
        y = librepdl.conv2d(x, w, b, **options)
        assert y.shape == g.shape and y.dtype == like
        exact = {name: np.full(a.shape, Fraction(0)) for name, a in (("y", g), ("x", x), ("w", w))}
        for in_x, in_w, in_y in meetings(2, 5, 4, (3, 5)):
            exact["y"][in_y] += Fraction(float(x[in_x])) * Fraction(float(w[in_w]))
            exact["x"][in_x] += Fraction(float(g[in_y])) * Fraction(float(w[in_w]))
            exact["w"][in_w] += Fraction(float(g[in_y])) * Fraction(float(x[in_x]))
        exact["y"] += np.array([Fraction(float(v)) for v in b])[:, None, None]
        found = {"y": y, "x": librepdl.conv2d_grad_input(g, w, (5, 4), **options), "w": librepdl.conv2d_grad_weight(g, x, (3, 2), **options)}
        for name, a in found.items():
            assert a.tolist() == np.vectorize(lambda v: nearest(v, like), otypes=[float])(exact[name]).tolist(), (kind, name)
        sums = [nearest(sum(Fraction(float(v)) for v in g[:, o].ravel()), like) for o in range(4)]
        assert librepdl.conv2d_grad_bias(g).tolist() == sums

    def one(x, w, **more):
        return librepdl.conv2d(np.array(x)[None, None, None, :], np.array(w)[None, None, None, :], **more)[0, 0, 0].tolist()

    assert one([1e200, 1.0, -1e200], [1e200, 2.0**-40, 1e200]) == [2.0**-40]  # a product overflows
    assert one([2.0**-600, 2.0**-600], [2.0**-500, 2.0**-475]) == [2.0**-1074]  # one underflows, and decides
    assert one([1.0, 2.0**-60], [1.0, 2.0**-60], bias=np.array([2.0**-53])) == [1 + 2.0**-52]  # above a midpoint
    assert one([1.0], [np.inf], padding=(0, 1)) == [0.0, np.inf, 0.0]
    assert np.isnan(one([np.inf, 1.0], [0.0, 1.0])[0])
    with pytest.raises(NotImplementedError, match="conv2d: x: expected f32 with fma_chain, got f64"):
        one([1.0], [1.0], accumulate="fma_chain")


def test_volumes():
    """conv3d and poolings over three axes, in fractions; in every format that has rounded sums of them."""
    r, kinds = np.random.default_rng(8), ("f8", "f4", "f2")
    options = {"stride": (2, 1, 2), "padding": (1, 0, 1, 1, 0, 2), "dilation": (1, 2, 1), "groups": 2}
    for kind in kinds:
        x, w, b = (r.standard_normal(s).astype(kind) for s in ((2, 4, 5, 5, 4), (4, 2, 3, 2, 2), (4,)))
        y = librepdl.conv3d(x, w, b, **options)
        g = r.standard_normal(y.shape).astype(kind)
        exact = {name: np.full(a.shape, Fraction(0)) for name, a in (("y", g), ("x", x), ("w", w))}
        for n, o, c, *at in itertools.product(range(2), range(4), range(2), *map(range, y.shape[2:]), *map(range, w.shape[2:])):
            window, tap = at[:3], at[3:]
            place = [window[d] * options["stride"][d] + tap[d] * options["dilation"][d] - options["padding"][2 * d] for d in range(3)]
            if all(0 <= i < size for i, size in zip(place, x.shape[2:])):
                in_x, in_w, in_y = (n, o // 2 * 2 + c, *place), (o, c, *tap), (n, o, *window)
                exact["y"][in_y] += Fraction(float(x[in_x])) * Fraction(float(w[in_w]))
                exact["x"][in_x] += Fraction(float(g[in_y])) * Fraction(float(w[in_w]))
                exact["w"][in_w] += Fraction(float(g[in_y])) * Fraction(float(x[in_x]))
        exact["y"] += np.array([Fraction(float(v)) for v in b])[:, None, None, None]
        found = {"y": y, "x": librepdl.conv3d_grad_input(g, w, x.shape[2:], **options), "w": librepdl.conv3d_grad_weight(g, x, w.shape[2:], **options)}
        for name, a in found.items():
            assert a.tolist() == np.vectorize(lambda v: nearest(v, x.dtype), otypes=[float])(exact[name]).tolist(), (kind, name)
        sums = [nearest(sum(Fraction(float(v)) for v in g[:, o].ravel()), x.dtype) for o in range(4)]
        assert librepdl.conv3d_grad_bias(g).tolist() == sums

        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), (2, 3, 4))[:, :, ::2, :, ::2].reshape(2, 4, 2, 3, 2, 12)
        shape = {"kernel": (2, 3, 2), "stride": (2, 1, 2)}
        assert (librepdl.max_pool3d(x, **shape) == windows.max(-1)).all()
        sums = np.vectorize(lambda *v: nearest(sum(map(Fraction, map(float, v))) / 12, x.dtype), otypes=[float])(*np.moveaxis(windows, -1, 0))
        assert librepdl.avg_pool3d(x, **shape).tolist() == sums.tolist()
        values, where = librepdl.max_pool3d_with_indices(x, **shape)
        flat = x.reshape(2, 4, -1)
        assert (np.take_along_axis(flat, where.reshape(2, 4, -1), 2).reshape(values.shape) == values).all()
        h = r.standard_normal(values.shape).astype(kind)
        won = np.full(flat.shape, Fraction(0))
        for n, c, z, i, j in itertools.product(*map(range, h.shape)):
            won[n, c, where[n, c, z, i, j]] += Fraction(float(h[n, c, z, i, j]))
        expected = np.vectorize(lambda v: nearest(v, x.dtype), otypes=[float])(won).reshape(x.shape)
        assert librepdl.max_pool3d_backward(h, x, **shape).tolist() == expected.tolist()
        each = librepdl.adaptive_avg_pool3d(x, (1, 1, 1)).ravel()
        assert each.tolist() == [nearest(sum(Fraction(float(v)) for v in plane) / 100, x.dtype) for plane in flat.reshape(8, -1)]
        assert (librepdl.adaptive_max_pool3d(x, 1).ravel() == flat.max(-1).ravel()).all()


def test_places():
    r = np.random.default_rng(68)
    source = r.standard_normal((60, 3)) * 2.0 ** r.integers(-60, 3, (60, 3))
    x, index = r.standard_normal((5, 3)), r.integers(0, 4, 60)
    each = index[:, None].repeat(3, 1)

    def sums(place, column):
        return sum(map(Fraction, source[index == place, column]))

    exact = [[sums(i, j) for j in range(3)] for i in range(5)]
    for alpha in (1.0, 0.1):
        want = [[float(Fraction(x[i, j]) + Fraction(alpha) * exact[i][j]) for j in range(3)] for i in range(5)]
        assert librepdl.index_add(x, index, source, alpha=alpha).tolist() == want
        assert librepdl.scatter_add(x, each, source, alpha=alpha).tolist() == want
    assert librepdl.embedding_backward(source, index, 5).tolist() == [[float(s) for s in row] for row in exact]
    counts = np.bincount(index, minlength=5)
    assert librepdl.embedding_backward(source, index, 5, scale_grad_by_freq=True).tolist() == [
        [float(s / int(max(n, 1))) for s in row] for row, n in zip(exact, counts, strict=True)]
    assert librepdl.index_add([1e17], [0, 0, 0], [1.0, -1e17, 0.1]).tolist() == [1.1]
