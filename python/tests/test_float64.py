"""NumPy's default just works: every function takes float64, arrays and lists, but those that are named here."""

import numpy as np
import pytest

import librepdl
from conftest import NUMPY_TYPES
from registry import ROWS

# No float64 yet. A function that takes it is no longer here.
WITHOUT = set("""
    erfinv conv2d conv2d_grad_input conv2d_grad_weight conv2d_grad_bias
    cross_entropy cross_entropy_backward cross_entropy_probabilities cross_entropy_probabilities_backward nll_loss nll_loss_backward
    mse_loss mse_loss_backward l1_loss l1_loss_backward smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward
    soft_margin_loss soft_margin_loss_backward binary_cross_entropy binary_cross_entropy_backward
    binary_cross_entropy_with_logits binary_cross_entropy_with_logits_backward kl_div kl_div_backward
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
    x = np.float64([0.125, 0.25, 0.5, 0.75]) + (row["name"] == "acosh")  # which begins at 1
    if row["name"] == "matmul":
        x = x.reshape(2, 2)
    operands = [convert(x < 0.5 if i["types"] == ["bool"] else x) for i in row["inputs"]]
    if row["name"] == "logsumexp_backward":  # a row's number
        operands[0] = 0.5
    return function(*operands, **({"dtype": np.float64} if row["name"] == "convert" else {}))


@pytest.mark.parametrize("name", WITH)
def test_float64(name):
    row = ROWS[name]
    types = row["outputs"][0]["types"]
    for convert in (lambda x: x, np.ndarray.tolist):
        result = call(row, convert)
        assert type(result) is np.ndarray and result.dtype == (np.float64 if "f64" in types else NUMPY_TYPES[types[0]])
        assert np.isfinite(result).all() and result.tobytes() == call(row, np.copy).tobytes()
