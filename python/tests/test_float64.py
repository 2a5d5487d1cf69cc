"""NumPy's default just works: every function takes float64, arrays and lists, but those that are named here."""

from fractions import Fraction

import numpy as np
import pytest

import librepdl
from conftest import NUMPY_TYPES
from registry import ROWS

# No float64 yet. A function that takes it is no longer here.
WITHOUT = set("""
    erfinv i0 i0e i1 i1e conv2d conv2d_grad_input conv2d_grad_weight conv2d_grad_bias
    cross_entropy cross_entropy_backward cross_entropy_probabilities cross_entropy_probabilities_backward
    layer_norm layer_norm_backward layer_norm_weight_backward rms_norm rms_norm_backward rms_norm_weight_backward
    group_norm group_norm_backward group_norm_weight_backward batch_norm batch_norm_backward batch_norm_weight_backward
    batch_norm_running batch_norm_inference batch_norm_inference_backward batch_norm_inference_weight_backward
    max_pool2d max_pool2d_with_indices max_pool2d_backward avg_pool2d avg_pool2d_backward adaptive_avg_pool2d adaptive_avg_pool2d_backward
    adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool2d_backward upsample_nearest2d upsample_nearest2d_backward
    index_add scatter_add embedding_backward multinomial dropout dropout_backward
""".split())


def has(row, type):
    return any(type in operand["types"] for operand in row["inputs"] + row["outputs"])


# Lists of arrays are updated in place: test_arrays.py.
WITH = [name for name, row in ROWS.items() if has(row, "f64") and row["family"] != "optimizer"]


def test_functions_without_float64():
    assert {name for name, row in ROWS.items() if has(row, "f32") and not has(row, "f64")} == WITHOUT


def call(row, convert):
    """Its result; convert makes operands of arrays."""
    if any(a["name"] == "stream" for a in row["attributes"]):
        return getattr(librepdl.random.Generator(1), row["name"])(4, np.float64)
    function = getattr(librepdl, row["name"])
    if not row["inputs"]:
        return function(1.0, 5.0, dtype=np.float64)
    x = np.float64([0.125, 0.25, 0.375, 0.75]) + (row["name"] == "acosh")  # which begins at 1
    if row["name"].startswith("nll_loss"):  # at targets, the classes of two rows
        two = {"targets": np.int64([0, 1]), "x": x.reshape(2, 2), "weight": x[:2], "g": x[:2], "total_weight": np.asarray(x[0])}
        return function(*(convert(two[i["name"]]) for i in row["inputs"]), reduction="none")
    if row["name"] == "matmul":
        x = x.reshape(2, 2)
    operands = [convert(x < 0.5 if i["types"] == ["bool"] else x) for i in row["inputs"]]
    if row["name"] == "logsumexp_backward":  # a row's number
        operands[0] = 0.5
    if any(a["name"] == "reduction" for a in row["attributes"]):
        return function(*operands, reduction="none")
    return function(*operands, **({"dtype": np.float64} if row["name"] == "convert" else {}))


@pytest.mark.parametrize("name", WITH)
def test_float64(name):
    row = ROWS[name]
    types = row["outputs"][0]["types"]
    for convert in (lambda x: x, np.ndarray.tolist):
        result = call(row, convert)
        assert type(result) is np.ndarray and result.dtype == (np.float64 if "f64" in types else NUMPY_TYPES[types[0]])
        assert np.isfinite(result).all() and result.tobytes() == call(row, np.copy).tobytes()


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
