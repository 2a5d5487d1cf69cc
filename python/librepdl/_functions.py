"""The functions of the package. Written by tools/gen_python.py from the registry of operations; do not edit."""

from collections.abc import Sequence
from math import inf, nan
from typing import Any, Literal, TypeVar, overload

from librepdl import _core, _numpy
from librepdl._typing import DType, Ints

__all__ = [
    "abs", "abs_backward", "absolute", "acos", "acos_backward", "acosh", "acosh_backward", "adamw",
    "adaptive_avg_pool2d", "adaptive_avg_pool2d_backward", "adaptive_avg_pool3d", "adaptive_avg_pool3d_backward",
    "adaptive_max_pool2d", "adaptive_max_pool2d_backward", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_backward", "adaptive_max_pool3d_with_indices", "add", "addcdiv",
    "addcdiv_backward_z", "addcmul", "amax", "amin", "arange", "arctan2", "argmax", "argmin", "asin",
    "asin_backward", "asinh", "asinh_backward", "astype", "atan", "atan2", "atan2_backward_x", "atan2_backward_y",
    "atan_backward", "atanh", "atanh_backward", "attention", "attention_backward", "avg_pool2d",
    "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward", "batch_norm", "batch_norm_backward",
    "batch_norm_inference", "batch_norm_inference_backward", "batch_norm_inference_weight_backward",
    "batch_norm_running", "batch_norm_weight_backward", "binary_cross_entropy", "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward", "cbrt", "ceil", "celu",
    "celu_backward", "clamp", "clamp_backward", "clip", "clip_backward", "clip_backward_hi", "clip_backward_lo",
    "clip_grad_norm", "conv2d", "conv2d_grad_bias", "conv2d_grad_input", "conv2d_grad_weight", "conv3d",
    "conv3d_grad_bias", "conv3d_grad_input", "conv3d_grad_weight", "convert", "copysign", "copysign_backward",
    "cos", "cos_backward", "cosh", "cosh_backward", "cospi", "cross_entropy", "cross_entropy_backward",
    "cross_entropy_probabilities", "cross_entropy_probabilities_backward", "cumprod", "cumsum",
    "difference_of_products", "digamma", "div", "div_backward_y", "div_floor", "div_trunc", "divide", "dot", "elu",
    "elu_backward", "embedding_backward", "equal", "erf", "erf_backward", "erfc", "erfc_backward", "erfcinv",
    "erfinv", "erfinv_backward", "exp", "exp10", "exp10m1", "exp2", "exp2_backward", "exp2m1", "expit", "expm1",
    "expm1_backward", "fabs", "fix", "floor", "floor_divide", "fma", "fmax", "fmax_backward_x", "fmax_backward_y",
    "fmin", "fmin_backward_x", "fmin_backward_y", "fmod", "fmod_backward_y", "frac", "frexp", "geglu",
    "geglu_backward_a", "gelu", "gelu_backward", "gelu_tanh", "gelu_tanh_backward", "glu", "glu_backward_b",
    "greater", "greater_equal", "group_norm", "group_norm_backward", "group_norm_weight_backward", "hardshrink",
    "hardshrink_backward", "hardsigmoid", "hardsigmoid_backward", "hardswish", "hardswish_backward", "hardtanh",
    "hardtanh_backward", "heaviside", "huber_loss", "huber_loss_backward", "hypot", "hypot_backward", "i0", "i0e",
    "i1", "i1e", "index_add", "isfinite", "isinf", "isnan", "kl_div", "kl_div_backward", "l1_loss",
    "l1_loss_backward", "layer_norm", "layer_norm_backward", "layer_norm_weight_backward", "ldexp", "leaky_relu",
    "leaky_relu_backward", "lerp", "lerp_backward_weight", "lerp_backward_x", "lerp_scalar",
    "lerp_scalar_backward_x", "less", "less_equal", "lgamma", "linspace", "log", "log10", "log10_backward",
    "log10p1", "log1p", "log1p_backward", "log2", "log2_backward", "log2p1", "log_backward", "log_expit",
    "log_ndtr", "log_sigmoid", "log_sigmoid_backward", "log_softmax", "log_softmax_backward", "logaddexp",
    "logaddexp2", "logaddexp2_backward", "logaddexp_backward", "logcumsumexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "logit_backward", "logsumexp", "logsumexp_backward", "masked_fill",
    "matmul", "max", "max_pool2d", "max_pool2d_backward", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_backward", "max_pool3d_with_indices", "maximum", "maximum_backward", "mean", "min", "minimum",
    "minimum_backward", "mish", "mish_backward", "mod", "mse_loss", "mse_loss_backward", "mul", "multiply",
    "nan_to_num", "ndtr", "ndtri", "ndtri_backward", "neg", "negative", "nextafter", "nll_loss",
    "nll_loss_backward", "not_equal", "pow", "pow_backward_x", "pow_backward_y", "pow_scalar",
    "pow_scalar_backward", "power", "prelu", "prelu_backward", "prelu_weight_backward", "prod", "reciprocal",
    "reciprocal_backward", "reglu", "reglu_backward_a", "relu", "relu6", "relu6_backward", "relu_backward",
    "remainder", "remainder_backward_y", "rint", "rms_norm", "rms_norm_backward", "rms_norm_weight_backward",
    "round", "rsqrt", "rsqrt_backward", "scalar_pow", "scalar_pow_backward", "scatter_add", "selu", "selu_backward",
    "sgd", "sigmoid", "sigmoid_backward", "sign", "signbit", "silu", "silu_backward", "sin", "sin_backward", "sinc",
    "sinh", "sinh_backward", "sinpi", "smooth_l1_loss", "smooth_l1_loss_backward", "soft_margin_loss",
    "soft_margin_loss_backward", "softmax", "softmax_backward", "softplus", "softplus_backward", "softshrink",
    "softshrink_backward", "softsign", "softsign_backward", "sqrt", "sqrt_backward", "square", "std", "stddev",
    "sub", "subtract", "sum", "sum_of_products", "sum_squares", "swiglu", "swiglu_backward_a", "tan",
    "tan_backward", "tanh", "tanh_backward", "tanhshrink", "tanpi", "tgamma", "threshold", "threshold_backward",
    "total_norm", "true_divide", "trunc", "upsample_cubic", "upsample_cubic_backward", "upsample_linear",
    "upsample_linear_backward", "upsample_nearest2d", "upsample_nearest2d_backward", "var", "var_mean",
    "vector_norm", "where", "xlogy", "xlogy_backward_x", "xlogy_backward_y",
]

# In the order of the registry.
ORDER = (
    "add", "sub", "mul", "div", "fma", "neg", "abs", "sqrt", "maximum", "minimum", "less", "pow", "relu",
    "leaky_relu", "exp", "log", "tanh", "sigmoid", "relu_backward", "tanh_backward", "sigmoid_backward", "square",
    "reciprocal", "floor", "ceil", "trunc", "round", "frac", "sign", "fmax", "fmin", "copysign", "equal",
    "not_equal", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit", "clamp", "clip",
    "clamp_backward", "hardtanh", "hardtanh_backward", "threshold", "threshold_backward", "hardshrink",
    "hardshrink_backward", "nan_to_num", "where", "masked_fill", "logical_and", "logical_or", "logical_xor",
    "logical_not", "sin", "cos", "erf", "erfc", "gelu", "gelu_tanh", "exp2", "expm1", "log2", "log10", "log1p",
    "rsqrt", "log_sigmoid", "silu", "mish", "selu", "tanhshrink", "softsign", "relu6", "hardsigmoid", "hardswish",
    "softsign_backward", "relu6_backward", "hardsigmoid_backward", "hardswish_backward", "addcmul", "addcdiv",
    "lerp", "lerp_scalar", "prelu", "prelu_backward", "hypot", "fmod", "remainder", "div_trunc", "div_floor",
    "xlogy", "logaddexp", "elu", "silu_backward", "mish_backward", "log_sigmoid_backward", "gelu_backward",
    "gelu_tanh_backward", "leaky_relu_backward", "elu_backward", "selu_backward", "celu", "celu_backward",
    "softplus", "softplus_backward", "atan2", "logaddexp2", "logit", "logit_backward", "softshrink",
    "softshrink_backward", "abs_backward", "sqrt_backward", "log_backward", "log1p_backward", "rsqrt_backward",
    "reciprocal_backward", "expm1_backward", "div_backward_y", "maximum_backward", "minimum_backward",
    "fmax_backward_x", "fmax_backward_y", "fmin_backward_x", "fmin_backward_y", "hypot_backward",
    "atan2_backward_y", "atan2_backward_x", "lerp_backward_x", "lerp_backward_weight", "lerp_scalar_backward_x",
    "addcdiv_backward_z", "xlogy_backward_y", "copysign_backward", "fmod_backward_y", "remainder_backward_y",
    "log2_backward", "log10_backward", "exp2_backward", "xlogy_backward_x", "logaddexp_backward",
    "logaddexp2_backward", "sin_backward", "cos_backward", "erf_backward", "erfc_backward", "pow_backward_x",
    "pow_backward_y", "glu", "swiglu", "reglu", "geglu", "glu_backward_b", "swiglu_backward_a", "reglu_backward_a",
    "geglu_backward_a", "pow_scalar", "scalar_pow", "clip_backward", "clip_backward_lo", "clip_backward_hi",
    "pow_scalar_backward", "scalar_pow_backward", "erfinv", "heaviside", "nextafter", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "asinh", "acosh", "atanh", "cbrt", "exp10", "exp2m1", "exp10m1", "log2p1", "log10p1", "sinpi",
    "cospi", "tanpi", "sinc", "ndtr", "tan_backward", "asin_backward", "acos_backward", "atan_backward",
    "sinh_backward", "cosh_backward", "asinh_backward", "acosh_backward", "atanh_backward", "lgamma", "tgamma",
    "digamma", "i0", "i0e", "i1", "i1e", "log_ndtr", "erfcinv", "ndtri", "erfinv_backward", "ndtri_backward",
    "sum_of_products", "difference_of_products", "convert", "sum", "mean", "max", "min", "argmax", "argmin", "dot",
    "matmul", "uniform", "permutation", "conv2d", "conv2d_grad_input", "conv2d_grad_weight", "conv2d_grad_bias",
    "max_pool2d", "max_pool2d_backward", "avg_pool2d", "avg_pool2d_backward", "softmax", "log_softmax", "logsumexp",
    "cross_entropy", "softmax_backward", "log_softmax_backward", "logsumexp_backward", "cross_entropy_backward",
    "sgd", "adamw", "normal", "bernoulli", "randint", "dropout", "dropout_backward", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "mse_loss_backward", "l1_loss_backward", "smooth_l1_loss_backward",
    "huber_loss_backward", "soft_margin_loss", "soft_margin_loss_backward", "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_backward", "binary_cross_entropy", "binary_cross_entropy_backward", "kl_div",
    "kl_div_backward", "prelu_weight_backward", "layer_norm", "rms_norm", "group_norm", "batch_norm",
    "layer_norm_backward", "rms_norm_backward", "group_norm_backward", "batch_norm_backward",
    "layer_norm_weight_backward", "rms_norm_weight_backward", "group_norm_weight_backward",
    "batch_norm_weight_backward", "batch_norm_running", "batch_norm_inference", "batch_norm_inference_backward",
    "batch_norm_inference_weight_backward", "index_add", "embedding_backward", "scatter_add", "var", "stddev",
    "var_mean", "sum_squares", "vector_norm", "max_pool2d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool2d_backward", "adaptive_avg_pool2d",
    "adaptive_avg_pool2d_backward", "nll_loss", "nll_loss_backward", "total_norm", "clip_grad_norm",
    "cross_entropy_probabilities", "cross_entropy_probabilities_backward", "exponential", "linspace", "arange",
    "upsample_nearest2d", "upsample_nearest2d_backward", "multinomial", "cumsum", "prod", "cumprod", "logcumsumexp",
    "ldexp", "frexp", "attention", "attention_backward", "conv3d", "conv3d_grad_input", "conv3d_grad_weight",
    "conv3d_grad_bias", "max_pool3d", "max_pool3d_with_indices", "max_pool3d_backward", "avg_pool3d",
    "avg_pool3d_backward", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "adaptive_max_pool3d_backward", "adaptive_avg_pool3d", "adaptive_avg_pool3d_backward", "upsample_linear",
    "upsample_linear_backward", "upsample_cubic", "upsample_cubic_backward",
)

# An array of any library.
A = TypeVar("A")

_call = _core.call
_core.name_parameters({"keepdim": "keepdims", "linspace.end": "stop", "linspace.count": "num", "attention.statistics": "lse", "correction": "correction or ddof"})


def add(x: A | float, y: A | float, /, *, alpha: float = 1.0, dtype: DType | None = None, out: Any | None = None) -> Any:
    """x + alpha * y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    alpha: the coefficient of y
    dtype: the result's format; absent: the output's, or the operands'
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    return _call(0, (x, y), out, (alpha, dtype))


def sub(x: A | float, y: A | float, /, *, alpha: float = 1.0, dtype: DType | None = None, out: Any | None = None) -> Any:
    """x - alpha * y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    alpha: the coefficient of y
    dtype: the result's format; absent: the output's, or the operands'
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    return _call(1, (x, y), out, (alpha, dtype))


subtract = sub


def mul(x: A | float, y: A | float, /, *, dtype: DType | None = None, out: Any | None = None) -> Any:
    """x * y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    dtype: the result's format; absent: the output's, or the operands'
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    return _call(2, (x, y), out, (dtype,))


multiply = mul


def div(x: A | float, y: A | float, /, *, dtype: DType | None = None, out: Any | None = None) -> Any:
    """x / y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    dtype: the result's format; absent: the output's, or the operands'
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    return _call(3, (x, y), out, (dtype,))


divide = div
true_divide = div


def fma(x: A | float, y: A | float, z: A | float, /, *, dtype: DType | None = None, out: Any | None = None) -> Any:
    """x * y + z, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    z: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    dtype: the result's format; absent: the output's, or the operands'
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    return _call(4, (x, y, z), out, (dtype,))


def neg(x: A, /, *, out: A | None = None) -> A:
    """-x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(5, (x,), out, None)
    return result


negative = neg


def abs(x: A, /, *, out: A | None = None) -> A:
    """|x|.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(6, (x,), out, None)
    return result


absolute = abs
fabs = abs


def sqrt(x: A, /, *, dtype: DType | None = None, out: Any | None = None) -> Any:
    """sqrt(x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    dtype: the result's format; absent: the output's, or the operands'
    Why the bits are right: IEEE 754 operation.
    """
    return _call(7, (x,), out, (dtype,))


def maximum(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """max(x, y), NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(8, (x, y), out, None)
    return result


def minimum(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """min(x, y), NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(9, (x, y), out, None)
    return result


def less(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x < y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(10, (x, y), out, None)


def pow(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x^y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(11, (x, y), out, None)
    return result


power = pow


def relu(x: A, /, *, out: A | None = None) -> A:
    """max(x, +0).

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(12, (x,), out, None)
    return result


def leaky_relu(x: A, /, *, slope: float = 0.01, out: A | None = None) -> A:
    """x > 0 ? x : slope * x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    slope: the coefficient of x <= 0
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(13, (x,), out, (slope,))
    return result


def exp(x: A, /, *, out: A | None = None) -> A:
    """e^x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(14, (x,), out, None)
    return result


def log(x: A, /, *, out: A | None = None) -> A:
    """ln x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(15, (x,), out, None)
    return result


def tanh(x: A, /, *, out: A | None = None) -> A:
    """tanh x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(16, (x,), out, None)
    return result


def sigmoid(x: A, /, *, out: A | None = None) -> A:
    """1 / (1 + e^-x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(17, (x,), out, None)
    return result


expit = sigmoid


def relu_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x > 0 or x is NaN ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(18, (g, x), out, None)
    return result


def tanh_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * (1 - y^2), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(19, (g, y), out, None)
    return result


def sigmoid_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * y * (1 - y), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(20, (g, y), out, None)
    return result


def square(x: A, /, *, out: A | None = None) -> A:
    """x * x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(21, (x,), out, None)
    return result


def reciprocal(x: A, /, *, out: A | None = None) -> A:
    """1 / x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(22, (x,), out, None)
    return result


def floor(x: A, /, *, out: A | None = None) -> A:
    """The largest integer <= x, a zero with the sign of x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(23, (x,), out, None)
    return result


def ceil(x: A, /, *, out: A | None = None) -> A:
    """The smallest integer >= x, a zero with the sign of x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(24, (x,), out, None)
    return result


def trunc(x: A, /, *, out: A | None = None) -> A:
    """x without its fraction, a zero with the sign of x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(25, (x,), out, None)
    return result


fix = trunc


def round(x: A, /, *, out: A | None = None) -> A:
    """The nearest integer, ties to even, a zero with the sign of x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(26, (x,), out, None)
    return result


rint = round


def frac(x: A, /, *, out: A | None = None) -> A:
    """x - trunc x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(27, (x,), out, None)
    return result


def sign(x: A, /, *, out: A | None = None) -> A:
    """x > 0 ? 1 : x < 0 ? -1 : x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(28, (x,), out, None)
    return result


def fmax(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """max(x, y), NaN only where both are, -0 < +0.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(29, (x, y), out, None)
    return result


def fmin(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """min(x, y), NaN only where both are, -0 < +0.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(30, (x, y), out, None)
    return result


def copysign(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """|x| with the sign of y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(31, (x, y), out, None)
    return result


def equal(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x = y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(32, (x, y), out, None)


def not_equal(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """not x = y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(33, (x, y), out, None)


def less_equal(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x <= y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(34, (x, y), out, None)


def greater(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x > y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(35, (x, y), out, None)


def greater_equal(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x >= y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(36, (x, y), out, None)


def isnan(x: A, /, *, out: Any | None = None) -> Any:
    """x is NaN.

    x: f16 bf16 f32 f64
    out: bool
    Why the bits are right: no rounding happens.
    """
    return _call(37, (x,), out, None)


def isinf(x: A, /, *, out: Any | None = None) -> Any:
    """x is an infinity.

    x: f16 bf16 f32 f64
    out: bool
    Why the bits are right: no rounding happens.
    """
    return _call(38, (x,), out, None)


def isfinite(x: A, /, *, out: Any | None = None) -> Any:
    """x is finite.

    x: f16 bf16 f32 f64
    out: bool
    Why the bits are right: no rounding happens.
    """
    return _call(39, (x,), out, None)


def signbit(x: A, /, *, out: Any | None = None) -> Any:
    """The sign bit of x, of NaN too.

    x: f16 bf16 f32 f64
    out: bool
    Why the bits are right: no rounding happens.
    """
    return _call(40, (x,), out, None)


def clamp(x: A, /, *, min: float = -inf, max: float = inf, out: A | None = None) -> A:
    """min(max(x, min), max), NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    min: the lower bound: a number or NaN, rounded to the operands' format
    max: the upper bound: a number or NaN, rounded to the operands' format
    Why the bits are right: no rounding happens.
    """
    result: A = _call(41, (x,), out, (min, max))
    return result


def clip(x: A | float, lo: A | float | None = None, hi: A | float | None = None, /, *, out: A | None = None) -> A:
    """min(max(x, lo), hi), NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    lo: f16 bf16 f32 f64
    hi: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Without a bound, or with None, there is none on that side.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(42, (x, -inf if lo is None else lo, inf if hi is None else hi), out, None)
    return result


def clamp_backward(g: A | float, x: A | float, /, *, min: float = -inf, max: float = inf, out: A | None = None) -> A:
    """x >= min and x <= max ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    min: the lower bound: a number or NaN, rounded to the operands' format
    max: the upper bound: a number or NaN, rounded to the operands' format
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(43, (g, x), out, (min, max))
    return result


def hardtanh(x: A, /, *, min_val: float = -1.0, max_val: float = 1.0, out: A | None = None) -> A:
    """min(max(x, min_val), max_val), NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    min_val: the lower bound: a number or NaN, rounded to the operands' format
    max_val: the upper bound: a number >= min_val, rounded to the operands' format
    Why the bits are right: no rounding happens.
    """
    result: A = _call(44, (x,), out, (min_val, max_val))
    return result


def hardtanh_backward(g: A | float, x: A | float, /, *, min_val: float = -1.0, max_val: float = 1.0,
        out: A | None = None) -> A:
    """x <= min_val or x >= max_val ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    min_val: the lower bound: a number or NaN, rounded to the operands' format
    max_val: the upper bound: a number >= min_val, rounded to the operands' format
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(45, (g, x), out, (min_val, max_val))
    return result


def threshold(x: A, /, *, threshold: float = 0.0, value: float = 0.0, out: A | None = None) -> A:
    """x <= threshold ? value : x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    threshold: what x is compared with: a number, not NaN
    value: the result up to it: a number or NaN, rounded to the operands' format
    Why the bits are right: no rounding happens.
    """
    result: A = _call(46, (x,), out, (threshold, value))
    return result


def threshold_backward(g: A | float, x: A | float, /, *, threshold: float = 0.0, out: A | None = None) -> A:
    """x <= threshold ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    threshold: what x is compared with: a number, not NaN
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(47, (g, x), out, (threshold,))
    return result


def hardshrink(x: A, /, *, lambd: float = 0.5, out: A | None = None) -> A:
    """x >= -lambd and x <= lambd ? +0 : x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    lambd: the bound of what becomes 0: a number, not NaN
    Why the bits are right: no rounding happens.
    """
    result: A = _call(48, (x,), out, (lambd,))
    return result


def hardshrink_backward(g: A | float, x: A | float, /, *, lambd: float = 0.5, out: A | None = None) -> A:
    """x >= -lambd and x <= lambd ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    lambd: the bound of what becomes 0: a number, not NaN
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(49, (g, x), out, (lambd,))
    return result


def nan_to_num(x: A, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None,
        out: A | None = None) -> A:
    """x is NaN ? nan : x = inf ? posinf : x = -inf ? neginf : x.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    nan: in place of NaN: a number or NaN, rounded to the operands' format
    posinf: in place of +inf: a number or NaN, rounded to the operands' format; absent: the largest finite number of the format, with its sign
    neginf: in place of -inf: a number or NaN, rounded to the operands' format; absent: the largest finite number of the format, with its sign
    Why the bits are right: no rounding happens.
    """
    result: A = _call(50, (x,), out, (nan, posinf, neginf))
    return result


def where(cond: Any, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """cond ? x : y.

    cond: bool
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(51, (cond, x, y), out, None)
    return result


def masked_fill(x: A | float, mask: Any, /, *, value: float = 0.0, out: A | None = None) -> A:
    """mask ? value : x.

    x: f16 bf16 f32 f64
    mask: bool
    out: f16 bf16 f32 f64
    value: of the masked elements: a number or NaN, rounded to the operands' format
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(52, (x, mask), out, (value,))
    return result


def logical_and(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x and y; all but 0 are true, NaN too.

    x: f16 bf16 f32 f64 bool
    y: f16 bf16 f32 f64 bool
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(53, (x, y), out, None)


def logical_or(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x or y; all but 0 are true, NaN too.

    x: f16 bf16 f32 f64 bool
    y: f16 bf16 f32 f64 bool
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(54, (x, y), out, None)


def logical_xor(x: A | float, y: A | float, /, *, out: Any | None = None) -> Any:
    """x or y, not both; all but 0 are true, NaN too.

    x: f16 bf16 f32 f64 bool
    y: f16 bf16 f32 f64 bool
    out: bool
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    return _call(55, (x, y), out, None)


def logical_not(x: A, /, *, out: Any | None = None) -> Any:
    """not x; all but 0 are true, NaN too.

    x: f16 bf16 f32 f64 bool
    out: bool
    Why the bits are right: no rounding happens.
    """
    return _call(56, (x,), out, None)


def sin(x: A, /, *, out: A | None = None) -> A:
    """sin x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(57, (x,), out, None)
    return result


def cos(x: A, /, *, out: A | None = None) -> A:
    """cos x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(58, (x,), out, None)
    return result


def erf(x: A, /, *, out: A | None = None) -> A:
    """2 / sqrt(pi) * integral of e^-t^2 from 0 to x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(59, (x,), out, None)
    return result


def erfc(x: A, /, *, out: A | None = None) -> A:
    """1 - erf x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(60, (x,), out, None)
    return result


def gelu(x: A, /, *, out: A | None = None) -> A:
    """x / 2 * (1 + erf(x / sqrt 2)), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(61, (x,), out, None)
    return result


def gelu_tanh(x: A, /, *, out: A | None = None) -> A:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(62, (x,), out, None)
    return result


def exp2(x: A, /, *, out: A | None = None) -> A:
    """2^x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(63, (x,), out, None)
    return result


def expm1(x: A, /, *, out: A | None = None) -> A:
    """e^x - 1, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(64, (x,), out, None)
    return result


def log2(x: A, /, *, out: A | None = None) -> A:
    """log2 x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(65, (x,), out, None)
    return result


def log10(x: A, /, *, out: A | None = None) -> A:
    """log10 x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(66, (x,), out, None)
    return result


def log1p(x: A, /, *, out: A | None = None) -> A:
    """ln(1 + x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(67, (x,), out, None)
    return result


def rsqrt(x: A, /, *, out: A | None = None) -> A:
    """1 / sqrt(x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(68, (x,), out, None)
    return result


def log_sigmoid(x: A, /, *, out: A | None = None) -> A:
    """-ln(1 + e^-x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(69, (x,), out, None)
    return result


log_expit = log_sigmoid


def silu(x: A, /, *, out: A | None = None) -> A:
    """x / (1 + e^-x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(70, (x,), out, None)
    return result


def mish(x: A, /, *, out: A | None = None) -> A:
    """x * tanh(ln(1 + e^x)), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(71, (x,), out, None)
    return result


def selu(x: A, /, *, out: A | None = None) -> A:
    """x <= 0 ? s * a * (e^x - 1) : s * x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(72, (x,), out, None)
    return result


def tanhshrink(x: A, /, *, out: A | None = None) -> A:
    """x - tanh x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(73, (x,), out, None)
    return result


def softsign(x: A, /, *, out: A | None = None) -> A:
    """x / (1 + |x|), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(74, (x,), out, None)
    return result


def relu6(x: A, /, *, out: A | None = None) -> A:
    """min(max(x, +0), 6).

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: no rounding happens.
    """
    result: A = _call(75, (x,), out, None)
    return result


def hardsigmoid(x: A, /, *, out: A | None = None) -> A:
    """x <= -3 ? +0 : x < 3 ? (x + 3) / 6 : x is NaN ? NaN : 1, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(76, (x,), out, None)
    return result


def hardswish(x: A, /, *, out: A | None = None) -> A:
    """x <= -3 ? -0 : x < 3 ? x * (x + 3) / 6 : x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(77, (x,), out, None)
    return result


def softsign_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (1 + |x|)^2, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(78, (g, x), out, None)
    return result


def relu6_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x <= 0 or x >= 6 ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(79, (g, x), out, None)
    return result


def hardsigmoid_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x > -3 and x < 3 ? g / 6 : +0, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(80, (g, x), out, None)
    return result


def hardswish_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x <= -3 ? +0 : x < 3 ? g * (x / 3 + 1 / 2) : g, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(81, (g, x), out, None)
    return result


def addcmul(x: A | float, y: A | float, z: A | float, /, *, value: float = 1.0, out: A | None = None) -> A:
    """x + value * y * z, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    z: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    value: the coefficient of y z
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(82, (x, y, z), out, (value,))
    return result


def addcdiv(x: A | float, y: A | float, z: A | float, /, *, value: float = 1.0, out: A | None = None) -> A:
    """x + value * y / z, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    z: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    value: the coefficient of y / z
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(83, (x, y, z), out, (value,))
    return result


def lerp(x: A | float, end: A | float, weight: A | float, /, *, out: A | None = None) -> A:
    """x + weight * (end - x), rounded once.

    x: f16 bf16 f32 f64
    end: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(84, (x, end, weight), out, None)
    return result


def lerp_scalar(x: A | float, end: A | float, /, *, weight: float = 0.5, out: A | None = None) -> A:
    """x + weight * (end - x), rounded once.

    x: f16 bf16 f32 f64
    end: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    weight: the coefficient of end - x
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(85, (x, end), out, (weight,))
    return result


def prelu(x: A | float, w: A | float, /, *, out: A | None = None) -> A:
    """x > 0 ? x : w * x, rounded once.

    x: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(86, (x, w), out, None)
    return result


def prelu_backward(g: A | float, x: A | float, w: A | float, /, *, out: A | None = None) -> A:
    """x > 0 ? g : w * g, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(87, (g, x, w), out, None)
    return result


def hypot(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """sqrt(x^2 + y^2), rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(88, (x, y), out, None)
    return result


def fmod(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x - y trunc(x / y), a zero with the sign of x, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(89, (x, y), out, None)
    return result


def remainder(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x - y floor(x / y), a zero with the sign of y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(90, (x, y), out, None)
    return result


mod = remainder


def div_trunc(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """trunc(x / y), rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(91, (x, y), out, None)
    return result


def div_floor(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """floor(x / y), rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(92, (x, y), out, None)
    return result


floor_divide = div_floor


def xlogy(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x ln y, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(93, (x, y), out, None)
    return result


def logaddexp(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """ln(e^x + e^y), rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(94, (x, y), out, None)
    return result


def elu(x: A, /, *, alpha: float = 1.0, scale: float = 1.0, rate: float = 1.0, out: A | None = None) -> A:
    """x <= 0 ? scale * alpha * (e^(rate * x) - 1) : scale * x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    alpha: the coefficient of e^(rate x) - 1
    scale: the coefficient of both branches
    rate: the coefficient of x in the exponent
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(95, (x,), out, (alpha, scale, rate))
    return result


def silu_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g * s * (1 + x * (1 - s)), s = 1 / (1 + e^-x), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(96, (g, x), out, None)
    return result


def mish_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g * (t + x * (1 - t^2) / (1 + e^-x)), t = tanh(ln(1 + e^x)), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(97, (g, x), out, None)
    return result


def log_sigmoid_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (1 + e^x), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(98, (g, x), out, None)
    return result


def gelu_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g * (Phi(x) + x * e^(-x^2 / 2) / sqrt(2 pi)), Phi(x) = (1 + erf(x / sqrt 2)) / 2, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(99, (g, x), out, None)
    return result


def gelu_tanh_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g * s * (1 + (1 - s) * sqrt(8 / pi) * (x + 0.134145 * x^3)), s = 1 / (1 + e^(-sqrt(8 / pi) * (x + 0.044715 * x^3))), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(100, (g, x), out, None)
    return result


def leaky_relu_backward(g: A | float, x: A | float, /, *, slope: float = 0.01, out: A | None = None) -> A:
    """x > 0 ? g : slope * g, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    slope: the coefficient of g where x <= 0
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(101, (g, x), out, (slope,))
    return result


def elu_backward(g: A | float, x: A | float, /, *, alpha: float = 1.0, scale: float = 1.0, rate: float = 1.0,
        out: A | None = None) -> A:
    """x <= 0 ? g * scale * alpha * rate * e^(rate * x) : g * scale, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    alpha: the coefficient of e^(rate x) - 1
    scale: the coefficient of both branches
    rate: the coefficient of x in the exponent
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(102, (g, x), out, (alpha, scale, rate))
    return result


def selu_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x <= 0 ? g * s * a * e^x : g * s, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(103, (g, x), out, None)
    return result


def celu(x: A, /, *, alpha: float = 1.0, out: A | None = None) -> A:
    """x <= 0 ? alpha * (e^(x / alpha) - 1) : x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    alpha: the coefficient, and the divisor of x: a magnitude in [2^-200, 2^200]
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(104, (x,), out, (alpha,))
    return result


def celu_backward(g: A | float, x: A | float, /, *, alpha: float = 1.0, out: A | None = None) -> A:
    """x <= 0 ? g * e^(x / alpha) : g, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    alpha: the divisor of x: a magnitude in [2^-200, 2^200]
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(105, (g, x), out, (alpha,))
    return result


def softplus(x: A, /, *, beta: float = 1.0, threshold: float = 20.0, out: A | None = None) -> A:
    """beta * x > threshold ? x : ln(1 + e^(beta * x)) / beta, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    beta: the coefficient of x: a magnitude in [2^-200, 2^200]
    threshold: of beta x, above which the result is x; inf: none: a number, not NaN
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(106, (x,), out, (beta, threshold))
    return result


def softplus_backward(g: A | float, x: A | float, /, *, beta: float = 1.0, threshold: float = 20.0,
        out: A | None = None) -> A:
    """beta * x > threshold ? g : g / (1 + e^(-beta * x)), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    beta: the coefficient of x: a magnitude in [2^-200, 2^200]
    threshold: of beta x, above which the result is g; inf: none: a number, not NaN
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(107, (g, x), out, (beta, threshold))
    return result


def atan2(y: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """The angle of (x, y), in [-pi, pi], rounded once.

    y: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(108, (y, x), out, None)
    return result


arctan2 = atan2


def logaddexp2(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """log2(2^x + 2^y), rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(109, (x, y), out, None)
    return result


def logit(x: A, /, *, eps: float = nan, out: A | None = None) -> A:
    """ln(z / (1 - z)), z = x < eps ? eps : x > 1 - eps ? 1 - eps : x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    eps: x is cut to [eps, 1 - eps]: a number in [0, 1/2], or NaN: absent
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(110, (x,), out, (eps,))
    return result


def logit_backward(g: A | float, x: A | float, /, *, eps: float = nan, out: A | None = None) -> A:
    """x < eps or x > 1 - eps ? +0 : g / (x * (1 - x)), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    eps: beyond eps and 1 - eps the result is 0: a number in [0, 1/2], or NaN: absent
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(111, (g, x), out, (eps,))
    return result


def softshrink(x: A, /, *, lambd: float = 0.5, out: A | None = None) -> A:
    """x > lambd ? x - lambd : x < -lambd ? x + lambd : x is NaN ? NaN : +0, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    lambd: the bound of what becomes 0: 0 or a number in [2^-200, 2^200]
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(112, (x,), out, (lambd,))
    return result


def softshrink_backward(g: A | float, x: A | float, /, *, lambd: float = 0.5, out: A | None = None) -> A:
    """x >= -lambd and x <= lambd ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    lambd: the bound of what becomes 0: 0 or a number in [2^-200, 2^200]
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(113, (g, x), out, (lambd,))
    return result


def abs_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x > 0 ? g : x < 0 ? -g : x is NaN ? NaN : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(114, (g, x), out, None)
    return result


def sqrt_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g / (2 * y), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(115, (g, y), out, None)
    return result


def log_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(116, (g, x), out, None)
    return result


def log1p_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (1 + x), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(117, (g, x), out, None)
    return result


def rsqrt_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """-g * y^3 / 2, rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(118, (g, y), out, None)
    return result


def reciprocal_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """-g * y^2, rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(119, (g, y), out, None)
    return result


def expm1_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * (y + 1), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(120, (g, y), out, None)
    return result


def div_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """-g * x / y^2, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(121, (g, x, y), out, None)
    return result


def maximum_backward(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x = y ? g / 2 : x < y ? +0 : g, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(122, (g, x, y), out, None)
    return result


def minimum_backward(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x = y ? g / 2 : x > y ? +0 : g, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(123, (g, x, y), out, None)
    return result


def fmax_backward_x(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x >= y or y is NaN ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(124, (g, x, y), out, None)
    return result


def fmax_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x >= y or y is NaN ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(125, (g, x, y), out, None)
    return result


def fmin_backward_x(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x <= y or y is NaN ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(126, (g, x, y), out, None)
    return result


def fmin_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x <= y or y is NaN ? +0 : g.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(127, (g, x, y), out, None)
    return result


def hypot_backward(g: A | float, x: A | float, r: A | float, /, *, out: A | None = None) -> A:
    """r = 0 ? +0 : g * x / r, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    r: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(128, (g, x, r), out, None)
    return result


def atan2_backward_y(g: A | float, y: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x = y = 0 ? +0 : g * x / (x^2 + y^2), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(129, (g, y, x), out, None)
    return result


def atan2_backward_x(g: A | float, y: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """x = y = 0 ? +0 : -g * y / (x^2 + y^2), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(130, (g, y, x), out, None)
    return result


def lerp_backward_x(g: A | float, weight: A | float, /, *, out: A | None = None) -> A:
    """g * (1 - weight), rounded once.

    g: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(131, (g, weight), out, None)
    return result


def lerp_backward_weight(g: A | float, x: A | float, end: A | float, /, *, out: A | None = None) -> A:
    """g * (end - x), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    end: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(132, (g, x, end), out, None)
    return result


def lerp_scalar_backward_x(g: A, /, *, weight: float = 0.5, out: A | None = None) -> A:
    """g * (1 - weight), rounded once.

    g: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    weight: the coefficient of end - x
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(133, (g,), out, (weight,))
    return result


def addcdiv_backward_z(g: A | float, y: A | float, z: A | float, /, *, value: float = 1.0, out: A | None = None) -> A:
    """-g * value * y / z^2, rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    z: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    value: the coefficient of y / z
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(134, (g, y, z), out, (value,))
    return result


def xlogy_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * x / y, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(135, (g, x, y), out, None)
    return result


def copysign_backward(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x = 0 ? +0 : x is NaN ? NaN : g with the sign that x was given.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(136, (g, x, y), out, None)
    return result


def fmod_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """-g * trunc(x / y), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(137, (g, x, y), out, None)
    return result


def remainder_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """-g * floor(x / y), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(138, (g, x, y), out, None)
    return result


def log2_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (x ln 2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(139, (g, x), out, None)
    return result


def log10_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (x ln 10), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(140, (g, x), out, None)
    return result


def exp2_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * y * ln 2, rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(141, (g, y), out, None)
    return result


def xlogy_backward_x(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x = 0 and y <= 0 ? +0 : g ln y, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(142, (g, x, y), out, None)
    return result


def logaddexp_backward(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g / (1 + e^(y - x)), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(143, (g, x, y), out, None)
    return result


def logaddexp2_backward(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g / (1 + 2^(y - x)), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(144, (g, x, y), out, None)
    return result


def sin_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g cos x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(145, (g, x), out, None)
    return result


def cos_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """-g sin x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(146, (g, x), out, None)
    return result


def erf_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g * 2 / sqrt(pi) * e^(-x^2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(147, (g, x), out, None)
    return result


def erfc_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """-g * 2 / sqrt(pi) * e^(-x^2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(148, (g, x), out, None)
    return result


def pow_backward_x(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """y = 0 ? +0 : g * y * x^(y - 1), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(149, (g, x, y), out, None)
    return result


def pow_backward_y(g: A | float, x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """x = 0 and y >= 0 ? +0 : g * x^y * ln x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(150, (g, x, y), out, None)
    return result


def glu(a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """a / (1 + e^-b), rounded once.

    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(151, (a, b), out, None)
    return result


def swiglu(a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """a / (1 + e^-a) * b, rounded once.

    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(152, (a, b), out, None)
    return result


def reglu(a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """max(a, +0) * b, rounded once.

    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(153, (a, b), out, None)
    return result


def geglu(a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """a / 2 * (1 + erf(a / sqrt 2)) * b, rounded once.

    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(154, (a, b), out, None)
    return result


def glu_backward_b(g: A | float, a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """g * a * s * (1 - s), s = 1 / (1 + e^-b), rounded once.

    g: f16 bf16 f32 f64
    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(155, (g, a, b), out, None)
    return result


def swiglu_backward_a(g: A | float, a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """g * b * s * (1 + a * (1 - s)), s = 1 / (1 + e^-a), rounded once.

    g: f16 bf16 f32 f64
    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(156, (g, a, b), out, None)
    return result


def reglu_backward_a(g: A | float, a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """a > 0 or a is NaN ? g * b : +0, rounded once.

    g: f16 bf16 f32 f64
    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header.
    """
    result: A = _call(157, (g, a, b), out, None)
    return result


def geglu_backward_a(g: A | float, a: A | float, b: A | float, /, *, out: A | None = None) -> A:
    """g * b * (Phi(a) + a * e^(-a^2 / 2) / sqrt(2 pi)), Phi(a) = (1 + erf(a / sqrt 2)) / 2, rounded once.

    g: f16 bf16 f32 f64
    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(158, (g, a, b), out, None)
    return result


def pow_scalar(x: A, /, *, exponent: float = 2.0, out: A | None = None) -> A:
    """x^exponent, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    exponent: the power: a number or NaN
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(159, (x,), out, (exponent,))
    return result


def scalar_pow(x: A, /, *, base: float = 2.0, out: A | None = None) -> A:
    """base^x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    base: of the power x: a number or NaN
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(160, (x,), out, (base,))
    return result


def clip_backward(g: A | float, x: A | float, lo: A | float, hi: A | float, /, *, out: A | None = None) -> A:
    """lo <= x and x <= hi ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    lo: f16 bf16 f32 f64
    hi: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(161, (g, x, lo, hi), out, None)
    return result


def clip_backward_lo(g: A | float, x: A | float, lo: A | float, hi: A | float, /, *, out: A | None = None) -> A:
    """x < lo and lo < hi ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    lo: f16 bf16 f32 f64
    hi: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(162, (g, x, lo, hi), out, None)
    return result


def clip_backward_hi(g: A | float, x: A | float, lo: A | float, hi: A | float, /, *, out: A | None = None) -> A:
    """x > hi or hi < lo ? g : +0.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    lo: f16 bf16 f32 f64
    hi: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(163, (g, x, lo, hi), out, None)
    return result


def pow_scalar_backward(g: A | float, x: A | float, /, *, exponent: float = 2.0, out: A | None = None) -> A:
    """exponent = 0 ? +0 : g * exponent * x^(exponent - 1), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    exponent: the power: a number or NaN
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(164, (g, x), out, (exponent,))
    return result


def scalar_pow_backward(g: A | float, x: A | float, /, *, base: float = 2.0, out: A | None = None) -> A:
    """base = 0 and x >= 0 ? +0 : g * base^x * ln base, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    base: of the power x: a number or NaN
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(165, (g, x), out, (base,))
    return result


def erfinv(x: A, /, *, out: A | None = None) -> A:
    """y with erf y = x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: every input enumerated, per build; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(166, (x,), out, None)
    return result


def heaviside(x: A | float, v: A | float, /, *, out: A | None = None) -> A:
    """x < 0 ? +0 : x > 0 ? 1 : x = 0 ? v : NaN.

    x: f16 bf16 f32 f64
    v: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(167, (x, v), out, None)
    return result


def nextafter(x: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """The number next to x on the side of y; x = y: y.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: no rounding happens.
    """
    result: A = _call(168, (x, y), out, None)
    return result


def tan(x: A, /, *, out: A | None = None) -> A:
    """tan x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(169, (x,), out, None)
    return result


def asin(x: A, /, *, out: A | None = None) -> A:
    """y in [-pi/2, pi/2] with sin y = x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(170, (x,), out, None)
    return result


def acos(x: A, /, *, out: A | None = None) -> A:
    """y in [0, pi] with cos y = x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(171, (x,), out, None)
    return result


def atan(x: A, /, *, out: A | None = None) -> A:
    """y in (-pi/2, pi/2) with tan y = x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(172, (x,), out, None)
    return result


def sinh(x: A, /, *, out: A | None = None) -> A:
    """(e^x - e^-x) / 2, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(173, (x,), out, None)
    return result


def cosh(x: A, /, *, out: A | None = None) -> A:
    """(e^x + e^-x) / 2, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(174, (x,), out, None)
    return result


def asinh(x: A, /, *, out: A | None = None) -> A:
    """ln(x + sqrt(x^2 + 1)), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(175, (x,), out, None)
    return result


def acosh(x: A, /, *, out: A | None = None) -> A:
    """ln(x + sqrt(x^2 - 1)), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(176, (x,), out, None)
    return result


def atanh(x: A, /, *, out: A | None = None) -> A:
    """ln((1 + x) / (1 - x)) / 2, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(177, (x,), out, None)
    return result


def cbrt(x: A, /, *, out: A | None = None) -> A:
    """y with y^3 = x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(178, (x,), out, None)
    return result


def exp10(x: A, /, *, out: A | None = None) -> A:
    """10^x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(179, (x,), out, None)
    return result


def exp2m1(x: A, /, *, out: A | None = None) -> A:
    """2^x - 1, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(180, (x,), out, None)
    return result


def exp10m1(x: A, /, *, out: A | None = None) -> A:
    """10^x - 1, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(181, (x,), out, None)
    return result


def log2p1(x: A, /, *, out: A | None = None) -> A:
    """log2(1 + x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(182, (x,), out, None)
    return result


def log10p1(x: A, /, *, out: A | None = None) -> A:
    """log10(1 + x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(183, (x,), out, None)
    return result


def sinpi(x: A, /, *, out: A | None = None) -> A:
    """sin(pi x); x whole: a zero with the sign of x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(184, (x,), out, None)
    return result


def cospi(x: A, /, *, out: A | None = None) -> A:
    """cos(pi x); x halfway between whole numbers: +0, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(185, (x,), out, None)
    return result


def tanpi(x: A, /, *, out: A | None = None) -> A:
    """sin(pi x) / cos(pi x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(186, (x,), out, None)
    return result


def sinc(x: A, /, *, out: A | None = None) -> A:
    """x = 0 ? 1 : sin(pi x) / (pi x), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(187, (x,), out, None)
    return result


def ndtr(x: A, /, *, out: A | None = None) -> A:
    """Phi(x) = (1 + erf(x / sqrt 2)) / 2, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(188, (x,), out, None)
    return result


def tan_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * (1 + y^2), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(189, (g, y), out, None)
    return result


def asin_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / sqrt(1 - x^2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(190, (g, x), out, None)
    return result


def acos_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """-g / sqrt(1 - x^2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(191, (g, x), out, None)
    return result


def atan_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (1 + x^2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(192, (g, x), out, None)
    return result


def sinh_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g cosh x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(193, (g, x), out, None)
    return result


def cosh_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g sinh x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(194, (g, x), out, None)
    return result


def asinh_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / sqrt(x^2 + 1), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(195, (g, x), out, None)
    return result


def acosh_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / sqrt(x^2 - 1), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(196, (g, x), out, None)
    return result


def atanh_backward(g: A | float, x: A | float, /, *, out: A | None = None) -> A:
    """g / (1 - x^2), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(197, (g, x), out, None)
    return result


def lgamma(x: A, /, *, out: A | None = None) -> A:
    """ln |gamma(x)|, rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(198, (x,), out, None)
    return result


def tgamma(x: A, /, *, out: A | None = None) -> A:
    """gamma(x), rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(199, (x,), out, None)
    return result


def digamma(x: A, /, *, out: A | None = None) -> A:
    """The derivative of ln |gamma(x)|, rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(200, (x,), out, None)
    return result


def i0(x: A, /, *, out: A | None = None) -> A:
    """I_0(x), a modified Bessel function, rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: every input enumerated, per build.
    """
    result: A = _call(201, (x,), out, None)
    return result


def i0e(x: A, /, *, out: A | None = None) -> A:
    """e^-|x| I_0(x), rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: every input enumerated, per build.
    """
    result: A = _call(202, (x,), out, None)
    return result


def i1(x: A, /, *, out: A | None = None) -> A:
    """I_1(x), a modified Bessel function, rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: every input enumerated, per build.
    """
    result: A = _call(203, (x,), out, None)
    return result


def i1e(x: A, /, *, out: A | None = None) -> A:
    """e^-|x| I_1(x), rounded once.

    x: f16 bf16 f32
    out: f16 bf16 f32
    Why the bits are right: every input enumerated, per build.
    """
    result: A = _call(204, (x,), out, None)
    return result


def log_ndtr(x: A, /, *, out: A | None = None) -> A:
    """ln Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(205, (x,), out, None)
    return result


def erfcinv(x: A, /, *, out: A | None = None) -> A:
    """y with erfc y = x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(206, (x,), out, None)
    return result


def ndtri(x: A, /, *, out: A | None = None) -> A:
    """y with Phi(y) = x, Phi(y) = (1 + erf(y / sqrt 2)) / 2, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(207, (x,), out, None)
    return result


def erfinv_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * sqrt(pi) / 2 * e^(y^2), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(208, (g, y), out, None)
    return result


def ndtri_backward(g: A | float, y: A | float, /, *, out: A | None = None) -> A:
    """g * sqrt(2 pi) * e^(y^2 / 2), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(209, (g, y), out, None)
    return result


def sum_of_products(x: A | float, y: A | float, z: A | float, w: A | float, /, *, out: A | None = None) -> A:
    """x * y + z * w, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    z: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(210, (x, y, z, w), out, None)
    return result


def difference_of_products(x: A | float, y: A | float, z: A | float, w: A | float, /, *, out: A | None = None) -> A:
    """x * y - z * w, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    z: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    Shapes broadcast. A Python number is an operand of the arrays' format, rounded to it first.
    Why the bits are right: proof in the body's header; f64: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(211, (x, y, z, w), out, None)
    return result


def convert(x: A, dtype: DType, saturate: bool = False, *, out: Any | None = None) -> Any:
    """as bool x != 0; as an integer x truncated, NaN 0, and saturated; as a floating-point number x, rounded once.

    x: f16 bf16 f32 f64 i64 bool i32 f8_e4m3fn f8_e5m2
    out: f16 bf16 f32 f64 i64 bool i32 f8_e4m3fn f8_e5m2
    dtype: the output's type; the output tensor's where there is one
    saturate: to f8: beyond the largest number is the largest number
    Why the bits are right: IEEE 754 operation.
    """
    return _call(212, (x,), out, (dtype, saturate))


astype = convert


def sum(x: A, axis: Ints | None = None, keepdims: bool = False, dtype: DType | None = None, *, out: Any | None = None) -> Any:
    """sum of x over the axes; exact zero is +0; of integers i64, modulo 2^64, of booleans how many are true, rounded once.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64 i64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    dtype: the result's format; absent: the output's, or the operands'
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(213, (x,), out, (axis, keepdims, dtype))


def mean(x: A, axis: Ints | None = None, keepdims: bool = False, dtype: DType | None = None, *, out: Any | None = None) -> Any:
    """(sum of x over the axes) / count; of integers f64, rounded once.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    dtype: the result's format; absent: the output's, or the operands'
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(214, (x,), out, (axis, keepdims, dtype))


def max(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """The greatest x over the axes; NaN wins, -0 < +0.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64 i64 bool i32
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: no rounding happens.
    """
    result: A = _call(215, (x,), out, (axis, keepdims))
    return result


amax = max


def min(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """The least x over the axes; NaN wins, -0 < +0.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64 i64 bool i32
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: no rounding happens.
    """
    result: A = _call(216, (x,), out, (axis, keepdims))
    return result


amin = min


def argmax(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: Any | None = None) -> Any:
    """The first index of max(x), row-major within the reduced axes.

    x: f16 bf16 f32 f64 i64 bool i32
    out: i64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: no rounding happens.
    """
    return _call(217, (x,), out, (axis, keepdims))


def argmin(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: Any | None = None) -> Any:
    """The first index of min(x), row-major within the reduced axes.

    x: f16 bf16 f32 f64 i64 bool i32
    out: i64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: no rounding happens.
    """
    return _call(218, (x,), out, (axis, keepdims))


def dot(x: A, y: A, dtype: DType | None = None, *, out: Any | None = None) -> Any:
    """sum of x_k * y_k, rounded once.

    x: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    dtype: the result's format; absent: the output's, or the operands'
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(219, (x, y), out, (dtype,))


def matmul(a: A, b: A, bias: A | None = None, transpose_a: bool = False, transpose_b: bool = False,
        accumulate: str = "exact", alpha: float = 1.0, beta: float = 1.0, dtype: DType | None = None, *,
        out: Any | None = None) -> Any:
    """alpha * sum over k of a_ik * b_kj, + beta * bias_ij, rounded once.

    a: f16 bf16 f32 f64
    b: f16 bf16 f32 f64
    bias: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    transpose_a: a is (..., k, m)
    transpose_b: b is (..., n, k)
    accumulate: exact, or fma_chain: f32 FMAs with k ascending
    alpha: a factor of the product: 0 or of magnitude in [2^-200, 2^200]
    beta: a factor of the bias, likewise
    dtype: the result's format: the operands' or a wider one; absent: the output's, or the operands'
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(220, (a, b, bias), out, (transpose_a, transpose_b, accumulate, alpha, beta, dtype))


def conv2d(x: A, w: A, bias: A | None = None, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, accumulate: str = "exact", *, out: A | None = None) -> A:
    """sum over c, r, s of x_n,c,ih,iw * w_o,c,r,s, + bias_o, rounded once.

    x: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    bias: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    stride: for each axis, or one number
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps
    dilation: for each axis, or one number
    groups: divides the input's and the output's channels
    accumulate: exact, or fma_chain: f32 FMAs in the contract's order
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(223, (x, w, bias), out, (stride, padding, dilation, groups, accumulate))
    return result


def conv2d_grad_input(g: A, w: A, size: Ints, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, accumulate: str = "exact", *, out: A | None = None) -> A:
    """sum over o, r, s of g_n,o,oh,ow * w_o,c,r,s, rounded once.

    g: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    stride: for each axis, or one number
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps
    dilation: for each axis, or one number
    groups: divides the input's and the output's channels
    accumulate: exact, or fma_chain: f32 FMAs in the contract's order
    size: the image's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(224, (g, w), out, (stride, padding, dilation, groups, accumulate, size))
    return result


def conv2d_grad_weight(g: A, x: A, kernel: Ints, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, accumulate: str = "exact", *, out: A | None = None) -> A:
    """sum over n, oh, ow of g_n,o,oh,ow * x_n,c,ih,iw, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_w: f16 bf16 f32 f64
    stride: for each axis, or one number
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps
    dilation: for each axis, or one number
    groups: divides the input's and the output's channels
    accumulate: exact, or fma_chain: f32 FMAs in the contract's order
    kernel: the kernel's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(225, (g, x), out, (stride, padding, dilation, groups, accumulate, kernel))
    return result


def conv2d_grad_bias(g: A, *, out: A | None = None) -> A:
    """sum over n, oh, ow of g_n,o,oh,ow, rounded once.

    g: f16 bf16 f32 f64
    grad_bias: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(226, (g,), out, None)
    return result


def max_pool2d(x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, *, out: A | None = None) -> A:
    """The greatest x in the window; NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    dilation: for each axis, or one number
    ceil_mode: a last window may reach over the padded image
    Why the bits are right: no rounding happens.
    """
    result: A = _call(227, (x,), out, (kernel, stride, padding, dilation, ceil_mode))
    return result


def max_pool2d_backward(g: A, x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, *, out: A | None = None) -> A:
    """sum of g over the windows whose (first) greatest x is here, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    dilation: for each axis, or one number
    ceil_mode: a last window may reach over the padded image
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(228, (g, x), out, (kernel, stride, padding, dilation, ceil_mode))
    return result


def avg_pool2d(x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, count_include_pad: bool = False,
        ceil_mode: bool = False, divisor_override: int = 0, *, out: A | None = None) -> A:
    """(sum of x in the window) / count, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    count_include_pad: divide by the window's taps on the padded image, not by the number of present taps
    ceil_mode: a last window may reach over the padded image
    divisor_override: divide by this number, not 0 and of magnitude below 2^31; 0: by the count
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(229, (x,), out, (kernel, stride, padding, count_include_pad, ceil_mode, divisor_override))
    return result


def avg_pool2d_backward(g: A, kernel: Ints, size: Ints, stride: Ints | None = None, padding: Ints = 0,
        count_include_pad: bool = False, ceil_mode: bool = False, divisor_override: int = 0, *, out: A | None = None) -> A:
    """sum over the windows that hold the pixel of g / count, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    count_include_pad: divide by the window's taps on the padded image, not by the number of present taps
    ceil_mode: a last window may reach over the padded image
    divisor_override: divide by this number, not 0 and of magnitude below 2^31; 0: by the count
    size: the image's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(230, (g,), out, (kernel, stride, padding, count_include_pad, ceil_mode, divisor_override, size))
    return result


def softmax(x: A, axis: int = -1, dtype: DType | None = None, *, out: Any | None = None) -> Any:
    """e^x_i / sum of e^x_j along the axis, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: negative from the end
    dtype: the result's format; absent: the output's, or the operand's
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    return _call(231, (x,), out, (axis, dtype))


def log_softmax(x: A, axis: int = -1, dtype: DType | None = None, *, out: Any | None = None) -> Any:
    """x_i - ln sum of e^x_j along the axis, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: negative from the end
    dtype: the result's format; absent: the output's, or the operand's
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    return _call(232, (x,), out, (axis, dtype))


def logsumexp(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """ln sum of e^x over the axes, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(233, (x,), out, (axis, keepdims))
    return result


def cross_entropy(logits: A, targets: Any, weight: A | None = None, axis: int | None = None, reduction: str = "mean",
        ignore_index: int = -100, label_smoothing: float = 0.0, *, out: A | None = None) -> A:
    """logsumexp(x) - x_target per row; their mean, sum, or each; with weights and smoothing s: the sum of a_i * (logsumexp(x) - x_i), a_i = (1 - s) * weight_i * (i = target) + s / classes * weight_i; the mean by the sum of weight_target, rounded once.

    logits: f16 bf16 f32 f64
    targets: i64
    weight: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    axis: the classes; 1 when absent, 0 for a vector
    reduction: mean, sum or none, over the rows not ignored
    ignore_index: rows with this target take no part
    label_smoothing: how much of a target is spread over all classes: 0, or from 2^-64 to 1; exactly this double
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(234, (logits, targets, weight), out, (axis, reduction, ignore_index, label_smoothing))
    return result


def softmax_backward(g: A, y: A, axis: int = -1, *, out: A | None = None) -> A:
    """y_i * (g_i - sum of g_j * y_j along the axis), rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    axis: negative from the end
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(235, (g, y), out, (axis,))
    return result


def log_softmax_backward(g: A, y: A, axis: int = -1, *, out: A | None = None) -> A:
    """g_i - e^y_i * sum of g_j along the axis, rounded once.

    g: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    axis: negative from the end
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(236, (g, y), out, (axis,))
    return result


def logsumexp_backward(g: A, x: A, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """g * e^x_i / sum of e^x_j over the axes, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(237, (g, x), out, (axis, keepdims))
    return result


def cross_entropy_backward(g: A, logits: A, targets: Any, weight: A | None = None, axis: int | None = None,
        reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0, *, out: A | None = None) -> A:
    """g * (softmax(x)_i - (i = target)), / rows not ignored for mean; with weights and smoothing: g * (softmax(x)_i * sum of a_j - a_i), / the sum of weight_target, rounded once.

    g: f16 bf16 f32 f64
    logits: f16 bf16 f32 f64
    targets: i64
    weight: f16 bf16 f32 f64, or None
    grad_logits: f16 bf16 f32 f64
    axis: the classes; 1 when absent, 0 for a vector
    reduction: mean, sum or none, over the rows not ignored
    ignore_index: rows with this target take no part
    label_smoothing: how much of a target is spread over all classes: 0, or from 2^-64 to 1; exactly this double
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(238, (g, logits, targets, weight), out, (axis, reduction, ignore_index, label_smoothing))
    return result


def sgd(param: Sequence[Any], grad: Sequence[Any], velocity: Sequence[Any] | None = None, *, lr: float = 0.001,
        momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
        first_step: bool = False) -> None:
    """v' = momentum v + (1 - dampening)(g + weight_decay p), without v g + weight_decay p; p' = p - lr v'; nesterov: p' = p - lr (g + weight_decay p + momentum v'), rounded once.

    param: f16 bf16 f32 f64, a list of arrays
    grad: f16 bf16 f32 f64, a list of arrays
    velocity: f32 f64, or None, a list of arrays
    lr: the learning rate
    momentum: >= 0; 0: there is no velocity
    dampening: of the gradient in the velocity
    weight_decay: adds weight_decay * param to the gradient
    nesterov: needs momentum > 0
    Updated in place: param, velocity.
    first_step: the optional state is written and not read
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    _core.call_grouped(239, (param, grad, velocity), (lr, momentum, dampening, weight_decay, nesterov), first_step)


def adamw(param: Sequence[Any], grad: Sequence[Any], first_moment: Sequence[Any], second_moment: Sequence[Any], *,
        lr: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.01,
        step: int = 1) -> None:
    """m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; c_i = 1 - beta_i^step; p' = p (1 - lr weight_decay) - lr (m' / c1) / (sqrt(v' / c2) + eps), rounded once.

    param: f16 bf16 f32 f64, a list of arrays
    grad: f16 bf16 f32 f64, a list of arrays
    first_moment: f32 f64, a list of arrays
    second_moment: f32 f64, a list of arrays
    lr: the learning rate
    beta1: in [0, 1)
    beta2: in [0, 1)
    eps: added to the root
    weight_decay: decoupled: param * (1 - lr * weight_decay)
    step: t, from 1
    Updated in place: param, first_moment, second_moment.
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    _core.call_grouped(240, (param, grad, first_moment, second_moment), (lr, beta1, beta2, eps, weight_decay, step), False)


def mse_loss(x: A, t: A, reduction: str = "mean", *, out: A | None = None) -> A:
    """(x - t)^2 per element; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(246, (x, t), out, (reduction,))
    return result


def l1_loss(x: A, t: A, reduction: str = "mean", *, out: A | None = None) -> A:
    """|x - t| per element; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(247, (x, t), out, (reduction,))
    return result


def smooth_l1_loss(x: A, t: A, reduction: str = "mean", beta: float = 1.0, *, out: A | None = None) -> A:
    """d = x - t: |d| < beta ? d^2 / (2 beta) : |d| - beta / 2 per element; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    beta: 0 or in [2^-200, 2^200]; 0: l1_loss
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(248, (x, t), out, (reduction, beta))
    return result


def huber_loss(x: A, t: A, reduction: str = "mean", delta: float = 1.0, *, out: A | None = None) -> A:
    """d = x - t: |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2) per element; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    delta: in [2^-200, 2^200]
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(249, (x, t), out, (reduction, delta))
    return result


def mse_loss_backward(g: A, x: A, t: A, reduction: str = "mean", *, out: A | None = None) -> A:
    """2 g (x - t), / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(250, (g, x, t), out, (reduction,))
    return result


def l1_loss_backward(g: A, x: A, t: A, reduction: str = "mean", *, out: A | None = None) -> A:
    """x > t ? g : x < t ? -g : +0, / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(251, (g, x, t), out, (reduction,))
    return result


def smooth_l1_loss_backward(g: A, x: A, t: A, reduction: str = "mean", beta: float = 1.0, *, out: A | None = None) -> A:
    """d = x - t: |d| < beta ? g d / beta : d > 0 ? g : d < 0 ? -g : +0, / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    beta: 0 or in [2^-200, 2^200]; 0: l1_loss
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(252, (g, x, t), out, (reduction, beta))
    return result


def huber_loss_backward(g: A, x: A, t: A, reduction: str = "mean", delta: float = 1.0, *, out: A | None = None) -> A:
    """d = x - t: |d| <= delta ? g d : d > 0 ? g delta : -g delta, / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    delta: in [2^-200, 2^200]
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(253, (g, x, t), out, (reduction, delta))
    return result


def soft_margin_loss(x: A, t: A, reduction: str = "mean", *, out: A | None = None) -> A:
    """ln(1 + e^(-t x)) per element; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(254, (x, t), out, (reduction,))
    return result


def soft_margin_loss_backward(g: A, x: A, t: A, reduction: str = "mean", *, out: A | None = None) -> A:
    """-g t / (1 + e^(t x)), / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(255, (g, x, t), out, (reduction,))
    return result


def binary_cross_entropy_with_logits(x: A, t: A, weight: A | None = None, pos_weight: A | None = None,
        reduction: str = "mean", *, out: A | None = None) -> A:
    """w ((1 - t) x + (1 + (q - 1) t) ln(1 + e^-x)) per element, w = weight, q = pos_weight, 1 where absent; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64, or None
    pos_weight: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(256, (x, t, weight, pos_weight), out, (reduction,))
    return result


def binary_cross_entropy_with_logits_backward(g: A, x: A, t: A, weight: A | None = None, pos_weight: A | None = None,
        reduction: str = "mean", *, out: A | None = None) -> A:
    """g w ((1 - t) / (1 + e^-x) - q t / (1 + e^x)), / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64, or None
    pos_weight: f16 bf16 f32 f64, or None
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(257, (g, x, t, weight, pos_weight), out, (reduction,))
    return result


def binary_cross_entropy(x: A, t: A, weight: A | None = None, reduction: str = "mean", *, out: A | None = None) -> A:
    """w (t min(-ln x, 100) + (1 - t) min(-ln(1 - x), 100)) per element, w = weight, 1 where absent; their mean, sum, or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(258, (x, t, weight), out, (reduction,))
    return result


def binary_cross_entropy_backward(g: A, x: A, t: A, weight: A | None = None, reduction: str = "mean", *,
        out: A | None = None) -> A:
    """g w (x - t) / max(x (1 - x), 10^-12), / elements for mean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64, or None
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(259, (g, x, t, weight), out, (reduction,))
    return result


def kl_div(x: A, t: A, reduction: str = "mean", log_target: bool = False, *, out: A | None = None) -> A:
    """t (ln t - x), with log_target e^t (t - x), per element; their mean, sum, sum over samples (batchmean), or each, rounded once.

    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements; batchmean: the sum over the size of the first axis
    log_target: t holds logarithms
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(260, (x, t), out, (reduction, log_target))
    return result


def kl_div_backward(g: A, x: A, t: A, reduction: str = "mean", log_target: bool = False, *, out: A | None = None) -> A:
    """-g t, with log_target -g e^t, / elements for mean, / samples for batchmean, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    t: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    reduction: mean, sum or none, over all elements; batchmean: the sum over the size of the first axis
    log_target: t holds logarithms
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(261, (g, x, t), out, (reduction, log_target))
    return result


def prelu_weight_backward(g: A, x: A, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """sum over the axes of x > 0 ? +0 : g * x, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(262, (g, x), out, (axis, keepdims))
    return result


@overload
def layer_norm(x: A, weight: A | None = None, bias: A | None = None, axis: Ints = -1, eps: float = 1e-05, *,
        out: A | None = None, statistics: Literal[False] = False) -> A: ...

@overload
def layer_norm(x: A, weight: A | None = None, bias: A | None = None, axis: Ints = -1, eps: float = 1e-05, *,
        out: Sequence[A | None] | None = None, statistics: Literal[True]) -> tuple[A, A, A]: ...

def layer_norm(x: A, weight: A | None = None, bias: A | None = None, axis: Ints = -1, eps: float = 1e-05, *,
        out: A | Sequence[A | None] | None = None, statistics: bool = False) -> Any:
    """(x - m) / sqrt(v + eps) * weight + bias, m and v the mean and variance over the axes; m; 1 / sqrt(v + eps), rounded once.

    x: f16 bf16 f32 f64
    weight: x's format or f32, or None
    bias: x's format or f32, or None
    out: f16 bf16 f32 f64
    axis: the axes that are normalised over
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    statistics: return mean and rstd as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(263, (x, weight, bias), out, (axis, eps), None, statistics)


@overload
def rms_norm(x: A, eps: float, weight: A | None = None, axis: Ints = -1, *, out: A | None = None,
        statistics: Literal[False] = False) -> A: ...

@overload
def rms_norm(x: A, eps: float, weight: A | None = None, axis: Ints = -1, *, out: Sequence[A | None] | None = None,
        statistics: Literal[True]) -> tuple[A, A]: ...

def rms_norm(x: A, eps: float, weight: A | None = None, axis: Ints = -1, *, out: A | Sequence[A | None] | None = None,
        statistics: bool = False) -> Any:
    """x / sqrt(q + eps) * weight, q the mean of x^2 over the axes; 1 / sqrt(q + eps), rounded once.

    x: f16 bf16 f32 f64
    weight: x's format or f32, or None
    out: f16 bf16 f32 f64
    axis: the axes that are normalised over
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    statistics: return rstd as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(264, (x, weight), out, (axis, eps), None, statistics)


@overload
def group_norm(x: A, weight: A | None = None, bias: A | None = None, groups: int = 1, eps: float = 1e-05, *,
        out: A | None = None, statistics: Literal[False] = False) -> A: ...

@overload
def group_norm(x: A, weight: A | None = None, bias: A | None = None, groups: int = 1, eps: float = 1e-05, *,
        out: Sequence[A | None] | None = None, statistics: Literal[True]) -> tuple[A, A, A]: ...

def group_norm(x: A, weight: A | None = None, bias: A | None = None, groups: int = 1, eps: float = 1e-05, *,
        out: A | Sequence[A | None] | None = None, statistics: bool = False) -> Any:
    """as layer_norm, over a group of channels (axis 1) of a sample (axis 0); weight and bias per channel, rounded once.

    x: f16 bf16 f32 f64
    weight: x's format or f32, or None
    bias: x's format or f32, or None
    out: f16 bf16 f32 f64
    groups: divides the channels, axis 1
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    statistics: return mean and rstd as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(265, (x, weight, bias), out, (groups, eps), None, statistics)


@overload
def batch_norm(x: A, weight: A | None = None, bias: A | None = None, axis: int = 1, eps: float = 1e-05, *,
        out: A | None = None, statistics: Literal[False] = False) -> A: ...

@overload
def batch_norm(x: A, weight: A | None = None, bias: A | None = None, axis: int = 1, eps: float = 1e-05, *,
        out: Sequence[A | None] | None = None, statistics: Literal[True]) -> tuple[A, A, A]: ...

def batch_norm(x: A, weight: A | None = None, bias: A | None = None, axis: int = 1, eps: float = 1e-05, *,
        out: A | Sequence[A | None] | None = None, statistics: bool = False) -> Any:
    """as layer_norm, over all but one axis, along which weight and bias lie: training, rounded once.

    x: f16 bf16 f32 f64
    weight: x's format or f32, or None
    bias: x's format or f32, or None
    out: f16 bf16 f32 f64
    axis: the channels; every other axis is normalised over
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    statistics: return mean and rstd as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(266, (x, weight, bias), out, (axis, eps), None, statistics)


def layer_norm_backward(g: A, x: A, mean: Any, rstd: Any, weight: A | None = None, axis: Ints = -1, *,
        out: A | None = None) -> A:
    """rstd * (t - (sum of t) / n - h * (sum of t * h) / n) over the axes, t = g * weight, h = (x - mean) * rstd, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    mean: f32 f64
    rstd: f32 f64
    weight: x's format or f32, or None
    grad_x: f16 bf16 f32 f64
    axis: the axes that were normalised over
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(267, (g, x, mean, rstd, weight), out, (axis,))
    return result


def rms_norm_backward(g: A, x: A, rstd: Any, weight: A | None = None, axis: Ints = -1, *, out: A | None = None) -> A:
    """rstd * (t - h * (sum of t * h) / n) over the axes, t = g * weight, h = x * rstd, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    rstd: f32 f64
    weight: x's format or f32, or None
    grad_x: f16 bf16 f32 f64
    axis: the axes that were normalised over
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(268, (g, x, rstd, weight), out, (axis,))
    return result


def group_norm_backward(g: A, x: A, mean: Any, rstd: Any, weight: A | None = None, groups: int = 1, *,
        out: A | None = None) -> A:
    """as layer_norm_backward, over a group of channels of a sample, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    mean: f32 f64
    rstd: f32 f64
    weight: x's format or f32, or None
    grad_x: f16 bf16 f32 f64
    groups: as group_norm's
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(269, (g, x, mean, rstd, weight), out, (groups,))
    return result


def batch_norm_backward(g: A, x: A, mean: Any, rstd: Any, weight: A | None = None, axis: int = 1, *,
        out: A | None = None) -> A:
    """as layer_norm_backward, over all but one axis: training, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    mean: f32 f64
    rstd: f32 f64
    weight: x's format or f32, or None
    grad_x: f16 bf16 f32 f64
    axis: the channels, as batch_norm's
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(270, (g, x, mean, rstd, weight), out, (axis,))
    return result


def layer_norm_weight_backward(g: A, x: A, mean: Any, rstd: Any, axis: Ints = -1, *, out: A | None = None) -> A:
    """sum of g * (x - mean) * rstd over all that share the weight, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    mean: f32 f64
    rstd: f32 f64
    grad_weight: f16 bf16 f32 f64
    axis: the axes that were normalised over
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(271, (g, x, mean, rstd), out, (axis,))
    return result


def rms_norm_weight_backward(g: A, x: A, rstd: Any, axis: Ints = -1, *, out: A | None = None) -> A:
    """sum of g * x * rstd over all that share the weight, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    rstd: f32 f64
    grad_weight: f16 bf16 f32 f64
    axis: the axes that were normalised over
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(272, (g, x, rstd), out, (axis,))
    return result


def group_norm_weight_backward(g: A, x: A, mean: Any, rstd: Any, groups: int = 1, *, out: A | None = None) -> A:
    """sum of g * (x - mean) * rstd over all that share the weight, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    mean: f32 f64
    rstd: f32 f64
    grad_weight: f16 bf16 f32 f64
    groups: as group_norm's
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(273, (g, x, mean, rstd), out, (groups,))
    return result


def batch_norm_weight_backward(g: A, x: A, mean: Any, rstd: Any, axis: int = 1, *, out: A | None = None) -> A:
    """sum of g * (x - mean) * rstd over all that share the weight, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    mean: f32 f64
    rstd: f32 f64
    grad_weight: f16 bf16 f32 f64
    axis: the channels, as batch_norm's
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(274, (g, x, mean, rstd), out, (axis,))
    return result


@overload
def batch_norm_running(x: A, running_mean: A, running_var: A, weight: A | None = None, bias: A | None = None,
        axis: int = 1, eps: float = 1e-05, momentum: float = 0.1, *, out: A | None = None,
        statistics: Literal[False] = False) -> A: ...

@overload
def batch_norm_running(x: A, running_mean: A, running_var: A, weight: A | None = None, bias: A | None = None,
        axis: int = 1, eps: float = 1e-05, momentum: float = 0.1, *, out: Sequence[A | None] | None = None,
        statistics: Literal[True]) -> tuple[A, A, A, A, A]: ...

def batch_norm_running(x: A, running_mean: A, running_var: A, weight: A | None = None, bias: A | None = None,
        axis: int = 1, eps: float = 1e-05, momentum: float = 0.1, *, out: A | Sequence[A | None] | None = None,
        statistics: bool = False) -> Any:
    """as batch_norm, of a batch of n elements a channel; running_mean' = (1 - momentum) running_mean + momentum m, running_var' = (1 - momentum) running_var + momentum v n / (n - 1), rounded once.

    x: f16 bf16 f32 f64
    running_mean: x's format or f32
    running_var: x's format or f32
    weight: x's format or f32, or None
    bias: x's format or f32, or None
    out: f16 bf16 f32 f64
    axis: the channels; every other axis is normalised over
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    momentum: the batch's weight, 0 or in [2^-200, 1]; exactly this double, and so is 1 - momentum
    statistics: return mean, rstd, running_mean and running_var as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(275, (x, running_mean, running_var, weight, bias), out, (axis, eps, momentum), None, statistics)


def batch_norm_inference(x: A, running_mean: Any, running_var: Any, weight: A | None = None, bias: A | None = None,
        axis: int = 1, eps: float = 1e-05, *, out: A | None = None) -> A:
    """(x - running_mean) / sqrt(running_var + eps) * weight + bias, rounded once.

    x: f16 bf16 f32 f64
    running_mean: f32 f64
    running_var: f32 f64
    weight: x's format or f32, or None
    bias: x's format or f32, or None
    out: f16 bf16 f32 f64
    axis: the channels; every other axis is normalised over
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(276, (x, running_mean, running_var, weight, bias), out, (axis, eps))
    return result


def batch_norm_inference_backward(g: A, running_var: Any, weight: A | None = None, axis: int = 1, eps: float = 1e-05,
        *, out: A | None = None) -> A:
    """g * weight / sqrt(running_var + eps), rounded once.

    g: f16 bf16 f32 f64
    running_var: f32 f64
    weight: x's format or f32, or None
    grad_x: f16 bf16 f32 f64
    axis: the channels, as batch_norm_inference's
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(277, (g, running_var, weight), out, (axis, eps))
    return result


def batch_norm_inference_weight_backward(g: A, x: A, running_mean: Any, running_var: Any, axis: int = 1,
        eps: float = 1e-05, *, out: A | None = None) -> A:
    """(sum of g * (x - running_mean) over a channel) / sqrt(running_var + eps), rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    running_mean: f32 f64
    running_var: f32 f64
    grad_weight: f16 bf16 f32 f64
    axis: the channels, as batch_norm_inference's
    eps: >= 0: 0 or in [2^-200, 2^200]; inside the root, exactly this double
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(278, (g, x, running_mean, running_var), out, (axis, eps))
    return result


def index_add(x: A, index: Any, source: A, axis: int = 0, alpha: float = 1.0, *, out: A | None = None) -> A:
    """x + alpha * sum of the slices of source along the axis whose index is here; x itself where no index is, rounded once.

    x: f16 bf16 f32 f64
    index: i64
    source: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axis of x that is indexed, negative from the end
    alpha: a factor of the sums: 0 or of magnitude in [2^-200, 2^200]
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(279, (x, index, source), out, (axis, alpha))
    return result


def embedding_backward(g: A, indices: Any, rows: int, padding_idx: int | None = None,
        scale_grad_by_freq: bool = False, *, out: A | None = None) -> A:
    """sum of g over the places with this index, / their number with scale_grad_by_freq; +0 where no index is, rounded once.

    g: f16 bf16 f32 f64
    indices: i64
    grad_weight: f16 bf16 f32 f64
    rows: the rows of the weight
    padding_idx: its row gets +0; negative from the end
    scale_grad_by_freq: divide by the number of places
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(280, (g, indices), out, (rows, padding_idx, scale_grad_by_freq))
    return result


def scatter_add(x: A, index: Any, source: A, axis: int = 0, alpha: float = 1.0, *, out: A | None = None) -> A:
    """x + alpha * sum of the elements of source whose index along the axis is here; x itself where no index is, rounded once.

    x: f16 bf16 f32 f64
    index: i64
    source: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axis of x that is indexed, negative from the end
    alpha: a factor of the sums: 0 or of magnitude in [2^-200, 2^200]
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(281, (x, index, source), out, (axis, alpha))
    return result


def var(x: A, axis: Ints | None = None, keepdims: bool = False, correction: float = 1.0, *, ddof: float | None = None,
        out: A | None = None) -> A:
    """(sum of (x - m)^2 over the axes) / (count - correction), m the mean of x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axes to reduce; all when absent
    keepdims: keep the reduced axes with size 1
    correction: subtracted from the number of elements: 0 or of magnitude in [2^-200, 2^200]; exactly this double
    ddof: NumPy's name of correction, which is 0 there when absent
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(282, (x,), out, (axis, keepdims, correction if ddof is None else ddof))
    return result


def stddev(x: A, axis: Ints | None = None, keepdims: bool = False, correction: float = 1.0, *,
        ddof: float | None = None, out: A | None = None) -> A:
    """sqrt((sum of (x - m)^2 over the axes) / (count - correction)), m the mean of x, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axes to reduce; all when absent
    keepdims: keep the reduced axes with size 1
    correction: subtracted from the number of elements: 0 or of magnitude in [2^-200, 2^200]; exactly this double
    ddof: NumPy's name of correction, which is 0 there when absent
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(283, (x,), out, (axis, keepdims, correction if ddof is None else ddof))
    return result


def std(x: A, axis: Ints | None = None, keepdims: bool = False, ddof: float = 0.0, *, out: A | None = None) -> A:
    """stddev with NumPy's name and default: the divisor is count - ddof. Why the bits are right: see stddev."""
    return stddev(x, axis, keepdims, ddof, out=out)


@overload
def var_mean(x: A, axis: Ints | None = None, keepdims: bool = False, correction: float = 1.0, *,
        ddof: float | None = None, out: A | None = None, statistics: Literal[False] = False) -> A: ...

@overload
def var_mean(x: A, axis: Ints | None = None, keepdims: bool = False, correction: float = 1.0, *,
        ddof: float | None = None, out: Sequence[A | None] | None = None, statistics: Literal[True]) -> tuple[A, A]: ...

def var_mean(x: A, axis: Ints | None = None, keepdims: bool = False, correction: float = 1.0, *,
        ddof: float | None = None, out: A | Sequence[A | None] | None = None, statistics: bool = False) -> Any:
    """(sum of (x - m)^2 over the axes) / (count - correction), m the mean of x; m, rounded once.

    x: f16 bf16 f32 f64
    var: f16 bf16 f32 f64
    axis: the axes to reduce; all when absent
    keepdims: keep the reduced axes with size 1
    correction: subtracted from the number of elements: 0 or of magnitude in [2^-200, 2^200]; exactly this double
    ddof: NumPy's name of correction, which is 0 there when absent
    statistics: return mean as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(284, (x,), out, (axis, keepdims, correction if ddof is None else ddof), None, statistics)


def sum_squares(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """sum of x^2 over the axes, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(285, (x,), out, (axis, keepdims))
    return result


def vector_norm(x: A, p: float = 2.0, axis: Ints | None = None, keepdims: bool = False, *, out: A | None = None) -> A:
    """over the axes, p = 1: sum of |x|; 2: sqrt(sum of x^2); inf, -inf: the greatest, least |x|, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    p: 1, 2, inf or -inf
    axis: the axes to reduce; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(286, (x,), out, (p, axis, keepdims))
    return result


def max_pool2d_with_indices(x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, *, out: Sequence[Any] | None = None) -> tuple[A, Any]:
    """max_pool2d; where in the plane (row-major) the first greatest x is.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    indices: i64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    dilation: for each axis, or one number
    ceil_mode: a last window may reach over the padded image
    A tuple is returned; out is one, too, of arrays or None.
    Why the bits are right: no rounding happens.
    """
    result: tuple[A, Any] = _call(287, (x,), out, (kernel, stride, padding, dilation, ceil_mode), None, True)
    return result


def adaptive_max_pool2d(x: A, size: Ints, *, out: A | None = None) -> A:
    """The greatest of x from floor(i h / oh) to ceil((i + 1) h / oh) - 1, likewise w.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's sizes, or one number
    Why the bits are right: no rounding happens.
    """
    result: A = _call(288, (x,), out, (size,))
    return result


def adaptive_max_pool2d_with_indices(x: A, size: Ints, *, out: Sequence[Any] | None = None) -> tuple[A, Any]:
    """adaptive_max_pool2d; where in the plane (row-major) the first greatest x is.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    indices: i64
    size: the result's sizes, or one number
    A tuple is returned; out is one, too, of arrays or None.
    Why the bits are right: no rounding happens.
    """
    result: tuple[A, Any] = _call(289, (x,), out, (size,), None, True)
    return result


def adaptive_max_pool2d_backward(g: A, x: A, *, out: A | None = None) -> A:
    """sum of g over the windows whose (first) greatest x is here, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(290, (g, x), out, None)
    return result


def adaptive_avg_pool2d(x: A, size: Ints, *, out: A | None = None) -> A:
    """The mean of x from floor(i h / oh) to ceil((i + 1) h / oh) - 1, likewise w, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(291, (x,), out, (size,))
    return result


def adaptive_avg_pool2d_backward(g: A, size: Ints, *, out: A | None = None) -> A:
    """sum over the windows that hold the pixel of g / their size, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    size: the image's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(292, (g,), out, (size,))
    return result


@overload
def nll_loss(x: A, targets: Any, weight: A | None = None, axis: int | None = None, reduction: str = "mean",
        ignore_index: int = -100, *, out: A | None = None, statistics: Literal[False] = False) -> A: ...

@overload
def nll_loss(x: A, targets: Any, weight: A | None = None, axis: int | None = None, reduction: str = "mean",
        ignore_index: int = -100, *, out: Sequence[A | None] | None = None, statistics: Literal[True]) -> tuple[A, A]: ...

def nll_loss(x: A, targets: Any, weight: A | None = None, axis: int | None = None, reduction: str = "mean",
        ignore_index: int = -100, *, out: A | Sequence[A | None] | None = None, statistics: bool = False) -> Any:
    """-weight_target * x_target per row; their sum / sum of weight_target (mean), their sum, or each; the sum of weight_target, rounded once.

    x: f16 bf16 f32 f64
    targets: i64
    weight: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    axis: the classes; 1 when absent, 0 for a vector
    reduction: mean, sum or none, over the rows not ignored
    ignore_index: rows with this target take no part
    statistics: return total_weight as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(293, (x, targets, weight), out, (axis, reduction, ignore_index), None, statistics)


def nll_loss_backward(g: A, x: A, targets: Any, weight: A | None = None, total_weight: Any | None = None,
        axis: int | None = None, reduction: str = "mean", ignore_index: int = -100, *, out: A | None = None) -> A:
    """-g * weight_i at i = target, / total_weight for mean; +0 elsewhere, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    targets: i64
    weight: f16 bf16 f32 f64, or None
    total_weight: f32 f64, or None
    grad_x: f16 bf16 f32 f64
    axis: the classes; 1 when absent, 0 for a vector
    reduction: mean, sum or none, over the rows not ignored
    ignore_index: rows with this target take no part
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(294, (g, x, targets, weight, total_weight), out, (axis, reduction, ignore_index))
    return result


def total_norm(x: Sequence[Any], *, p: float = 2.0) -> Any:
    """over all elements of all tensors, p = 1: sum of |x|; 2: sqrt(sum of x^2); inf: the greatest |x|, rounded once.

    x: f16 bf16 f32 f64, a list of arrays
    p: 1, 2 or inf
    Returned: out, an array of the same library.
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _core.call_grouped(295, (x,), (p,), False)


def clip_grad_norm(grad: Sequence[Any], max_norm: float, *, p: float = 2.0) -> Any:
    """grad min(1, max_norm / (N + 10^-6)), N total_norm of all gradients, not rounded; N, rounded once.

    grad: f16 bf16 f32 f64, a list of arrays
    max_norm: >= 0, or inf
    p: of the norm: 1, 2 or inf
    Updated in place: grad.
    Returned: total_norm, an array of the same library.
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _core.call_grouped(296, (grad,), (max_norm, p), False)


def cross_entropy_probabilities(logits: A, probabilities: A, weight: A | None = None, axis: int | None = None,
        reduction: str = "mean", label_smoothing: float = 0.0, *, out: A | None = None) -> A:
    """The sum of a_i * (logsumexp(x) - x_i) per row, a_i = weight_i * ((1 - s) * probability_i + s / classes), s the smoothing; their mean over rows, sum, or each, rounded once.

    logits: f16 bf16 f32 f64
    probabilities: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    axis: the classes; 1 when absent, 0 for a vector
    reduction: mean, sum or none, over the rows
    label_smoothing: how much of the probabilities is spread over all classes: 0, or from 2^-64 to 1; exactly this double
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(297, (logits, probabilities, weight), out, (axis, reduction, label_smoothing))
    return result


def cross_entropy_probabilities_backward(g: A, logits: A, probabilities: A, weight: A | None = None,
        axis: int | None = None, reduction: str = "mean", label_smoothing: float = 0.0, *, out: A | None = None) -> A:
    """g * (softmax(x)_i * sum of a_j - a_i), / rows for mean, rounded once.

    g: f16 bf16 f32 f64
    logits: f16 bf16 f32 f64
    probabilities: f16 bf16 f32 f64
    weight: f16 bf16 f32 f64, or None
    grad_logits: f16 bf16 f32 f64
    axis: the classes; 1 when absent, 0 for a vector
    reduction: mean, sum or none, over the rows
    label_smoothing: how much of the probabilities is spread over all classes: 0, or from 2^-64 to 1; exactly this double
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(298, (g, logits, probabilities, weight), out, (axis, reduction, label_smoothing))
    return result


def linspace(start: float, stop: float, num: int = 50, dtype: DType | None = None, *, out: Any | None = None,
        like: Any = None) -> Any:
    """start + i * (stop - start) / (num - 1); start if num is 1, rounded once.

    out: f16 bf16 f32 f64
    start: the first number: 0 or of magnitude in [2^-200, 2^200]
    stop: the last number: 0 or of magnitude in [2^-200, 2^200]
    num: how many numbers
    dtype: the output's format; f32 when absent
    Why the bits are right: integers; one exact rounding.
    """
    return _call(300, (), out, (start, stop, num, dtype), like)


def arange(start: float, stop: float | None = None, step: float = 1.0, dtype: DType | None = None, *,
        count: int | None = None, out: Any | None = None, like: Any = None) -> Any:
    """start + i * step, rounded once.

    out: f16 bf16 f32 f64
    start, stop: the numbers from start, as long as they are before stop; one number alone is stop, and start is 0
    step: not 0; of magnitude in [2^-200, 2^200], as start is if it is not 0
    count: how many numbers, in place of stop
    dtype: the output's format; f32 when absent
    Why the bits are right: integers; one exact rounding.
    """
    first, count = _numpy.progression(start, stop, step, count)
    return _call(301, (), out, (first, step, count, dtype), like)


def upsample_nearest2d(x: A, size: Ints, scale_h: float = 0.0, scale_w: float = 0.0, exact: bool = False, *,
        out: A | None = None) -> A:
    """x at row min(floor(i r), h - 1), r = h / oh, or 1 / scale_h; exact: floor((i + 1/2) r); likewise columns.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's h,w
    scale_h: in [2^-200, 2^200]; 0: oh / h
    scale_w: in [2^-200, 2^200]; 0: ow / w
    exact: from the middle of a pixel, (i + 1/2) r, not i r
    Why the bits are right: no rounding happens.
    """
    result: A = _call(302, (x,), out, (size, scale_h, scale_w, exact))
    return result


def upsample_nearest2d_backward(g: A, size: Ints, scale_h: float = 0.0, scale_w: float = 0.0, exact: bool = False, *,
        out: A | None = None) -> A:
    """sum of g over the pixels that upsample_nearest2d takes from here, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    size: the result's h,w
    scale_h: in [2^-200, 2^200]; 0: oh / h
    scale_w: in [2^-200, 2^200]; 0: ow / w
    exact: from the middle of a pixel, (i + 1/2) r, not i r
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(303, (g,), out, (size, scale_h, scale_w, exact))
    return result


def cumsum(x: A, axis: int = -1, *, out: Any | None = None) -> Any:
    """sum of x_0 to x_i along the axis; exact zero is +0; of integers i64, modulo 2^64, rounded once.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64 i64
    axis: negative from the end
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    return _call(305, (x,), out, (axis,))


def prod(x: A, axis: Ints | None = None, keepdims: bool = False, *, out: Any | None = None) -> Any:
    """product of x over the axes, 1 of none; a zero with an infinity is NaN; of integers i64, modulo 2^64, rounded once.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64 i64
    axis: the axes to reduce, negative from the end; all when absent
    keepdims: keep the reduced axes with size 1
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    return _call(306, (x,), out, (axis, keepdims))


def cumprod(x: A, axis: int = -1, *, out: Any | None = None) -> Any:
    """product of x_0 to x_i along the axis; a zero with an infinity is NaN; of integers i64, modulo 2^64, rounded once.

    x: f16 bf16 f32 f64 i64 bool i32
    out: f16 bf16 f32 f64 i64
    axis: negative from the end
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    return _call(307, (x,), out, (axis,))


def logcumsumexp(x: A, axis: int = -1, *, out: A | None = None) -> A:
    """ln sum of e^x_0 to e^x_i along the axis, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    axis: negative from the end
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: A = _call(308, (x,), out, (axis,))
    return result


def ldexp(x: A, n: Any, *, out: A | None = None) -> A:
    """x * 2^n, rounded once.

    x: f16 bf16 f32 f64
    n: i64 i32
    out: f16 bf16 f32 f64
    Why the bits are right: IEEE 754 operation.
    """
    result: A = _call(309, (x, n), out, None)
    return result


def frexp(x: A, *, out: Sequence[Any] | None = None) -> tuple[A, Any]:
    """m and e with x = m * 2^e, |m| in [1/2, 1); of zeros, infinities and NaN x and 0.

    x: f16 bf16 f32 f64
    significand: f16 bf16 f32 f64
    exponent: i32
    A tuple is returned; out is one, too, of arrays or None.
    Why the bits are right: no rounding happens.
    """
    result: tuple[A, Any] = _call(310, (x,), out, None, None, True)
    return result


@overload
def attention(q: A, k: A, v: A, *, mask: Any | None = None, slopes: Any | None = None, scale: float | None = None,
        causal: bool = False, bottom_right: bool = False, left: int = -1, right: int = -1, dropout: float = 0.0,
        seed: int = 0, stream: int = 0, out: A | None = None, lse: Literal[False] = False) -> A: ...

@overload
def attention(q: A, k: A, v: A, *, mask: Any | None = None, slopes: Any | None = None, scale: float | None = None,
        causal: bool = False, bottom_right: bool = False, left: int = -1, right: int = -1, dropout: float = 0.0,
        seed: int = 0, stream: int = 0, out: Sequence[A | None] | None = None, lse: Literal[True]) -> tuple[A, A]: ...

def attention(q: A, k: A, v: A, *, mask: Any | None = None, slopes: Any | None = None, scale: float | None = None,
        causal: bool = False, bottom_right: bool = False, left: int = -1, right: int = -1, dropout: float = 0.0,
        seed: int = 0, stream: int = 0, out: A | Sequence[A | None] | None = None, lse: bool = False) -> Any:
    """(sum over j of e^(a_j) * v_j) / (sum of e^(a_j)), a_j = scale * q_i . k_j + slope * (j - i - off) + mask_ij; lse the logarithm of that sum, rounded once.

    q: f16 bf16 f32 f64
    k: f16 bf16 f32 f64
    v: f16 bf16 f32 f64
    mask: f16 bf16 f32 f64 bool, or None
    slopes: f32, or None
    out: f16 bf16 f32 f64
    scale: a factor of q . k: 0 or of magnitude in [2^-200, 2^200]; absent: 1 / sqrt(D), rounded once
    causal: keys j <= i + off alone
    bottom_right: off is Lk - Lq, not 0
    left: keys j >= i + off - left alone; negative: all
    right: keys j <= i + off + right alone; negative: all
    dropout: the share of weights that are dropped: 0, or in [2^-32, 1); others are divided by 1 less it
    seed: of the draws: the Philox key (its 64 bits)
    stream: the upper half of the Philox counter (its 64 bits)
    lse: return lse as well, in a tuple; out is then one too, of arrays or None
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    return _call(311, (q, k, v, mask, slopes), out, (scale, causal, bottom_right, left, right, dropout, seed, stream), None, lse)


def attention_backward(g: A, q: A, k: A, v: A, y: A, lse: Any, *, mask: Any | None = None, slopes: Any | None = None,
        scale: float | None = None, causal: bool = False, bottom_right: bool = False, left: int = -1, right: int = -1,
        dropout: float = 0.0, seed: int = 0, stream: int = 0, out: Sequence[Any] | None = None) -> tuple[A, A, A]:
    """P_ij = e^(a_ij - lse_i), T_ij = g_i . v_j - g_i . y_i: grad_q_i = scale * sum over j of P_ij * T_ij * k_j, grad_k_j = scale * sum over i of P_ij * T_ij * q_i, grad_v_j = sum over i of P_ij * g_i, rounded once.

    g: f16 bf16 f32 f64
    q: f16 bf16 f32 f64
    k: f16 bf16 f32 f64
    v: f16 bf16 f32 f64
    y: f16 bf16 f32 f64
    lse: f32 f64
    mask: f16 bf16 f32 f64 bool, or None
    slopes: f32, or None
    grad_q: f16 bf16 f32 f64
    grad_k: f16 bf16 f32 f64
    grad_v: f16 bf16 f32 f64
    scale: a factor of q . k: 0 or of magnitude in [2^-200, 2^200]; absent: 1 / sqrt(D), rounded once
    causal: keys j <= i + off alone
    bottom_right: off is Lk - Lq, not 0
    left: keys j >= i + off - left alone; negative: all
    right: keys j <= i + off + right alone; negative: all
    dropout: the share of weights that are dropped: 0, or in [2^-32, 1); others are divided by 1 less it
    seed: of the draws: the Philox key (its 64 bits)
    stream: the upper half of the Philox counter (its 64 bits)
    A tuple is returned; out is one, too, of arrays or None.
    Why the bits are right: run-time certificate; wider numbers decide the rest.
    """
    result: tuple[A, A, A] = _call(312, (g, q, k, v, y, lse, mask, slopes), out, (scale, causal, bottom_right, left, right, dropout, seed, stream), None, True)
    return result


def conv3d(x: A, w: A, bias: A | None = None, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, accumulate: str = "exact", *, out: A | None = None) -> A:
    """sum over c, q, r, s of x_n,c,id,ih,iw * w_o,c,q,r,s, + bias_o, rounded once.

    x: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    bias: f16 bf16 f32 f64, or None
    out: f16 bf16 f32 f64
    stride: for each axis, or one number
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps
    dilation: for each axis, or one number
    groups: divides the input's and the output's channels
    accumulate: exact, or fma_chain: f32 FMAs in the contract's order
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(313, (x, w, bias), out, (stride, padding, dilation, groups, accumulate))
    return result


def conv3d_grad_input(g: A, w: A, size: Ints, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, accumulate: str = "exact", *, out: A | None = None) -> A:
    """sum over o, q, r, s of g_n,o,od,oh,ow * w_o,c,q,r,s, rounded once.

    g: f16 bf16 f32 f64
    w: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    stride: for each axis, or one number
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps
    dilation: for each axis, or one number
    groups: divides the input's and the output's channels
    accumulate: exact, or fma_chain: f32 FMAs in the contract's order
    size: the image's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(314, (g, w), out, (stride, padding, dilation, groups, accumulate, size))
    return result


def conv3d_grad_weight(g: A, x: A, kernel: Ints, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, accumulate: str = "exact", *, out: A | None = None) -> A:
    """sum over n, od, oh, ow of g_n,o,od,oh,ow * x_n,c,id,ih,iw, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_w: f16 bf16 f32 f64
    stride: for each axis, or one number
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number; absent taps
    dilation: for each axis, or one number
    groups: divides the input's and the output's channels
    accumulate: exact, or fma_chain: f32 FMAs in the contract's order
    kernel: the kernel's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(315, (g, x), out, (stride, padding, dilation, groups, accumulate, kernel))
    return result


def conv3d_grad_bias(g: A, *, out: A | None = None) -> A:
    """sum over n, od, oh, ow of g_n,o,od,oh,ow, rounded once.

    g: f16 bf16 f32 f64
    grad_bias: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(316, (g,), out, None)
    return result


def max_pool3d(x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, *, out: A | None = None) -> A:
    """The greatest x in the window; NaN wins, -0 < +0.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    dilation: for each axis, or one number
    ceil_mode: a last window may reach over the padded image
    Why the bits are right: no rounding happens.
    """
    result: A = _call(317, (x,), out, (kernel, stride, padding, dilation, ceil_mode))
    return result


def max_pool3d_with_indices(x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, *, out: Sequence[Any] | None = None) -> tuple[A, Any]:
    """max_pool3d; where in the volume (row-major) the first greatest x is.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    indices: i64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    dilation: for each axis, or one number
    ceil_mode: a last window may reach over the padded image
    A tuple is returned; out is one, too, of arrays or None.
    Why the bits are right: no rounding happens.
    """
    result: tuple[A, Any] = _call(318, (x,), out, (kernel, stride, padding, dilation, ceil_mode), None, True)
    return result


def max_pool3d_backward(g: A, x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
        ceil_mode: bool = False, *, out: A | None = None) -> A:
    """sum of g over the windows whose (first) greatest x is here, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    dilation: for each axis, or one number
    ceil_mode: a last window may reach over the padded image
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(319, (g, x), out, (kernel, stride, padding, dilation, ceil_mode))
    return result


def avg_pool3d(x: A, kernel: Ints, stride: Ints | None = None, padding: Ints = 0, count_include_pad: bool = False,
        ceil_mode: bool = False, divisor_override: int = 0, *, out: A | None = None) -> A:
    """(sum of x in the window) / count, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    count_include_pad: divide by the window's taps on the padded image, not by the number of present taps
    ceil_mode: a last window may reach over the padded image
    divisor_override: divide by this number, not 0 and of magnitude below 2^31; 0: by the count
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(320, (x,), out, (kernel, stride, padding, count_include_pad, ceil_mode, divisor_override))
    return result


def avg_pool3d_backward(g: A, kernel: Ints, size: Ints, stride: Ints | None = None, padding: Ints = 0,
        count_include_pad: bool = False, ceil_mode: bool = False, divisor_override: int = 0, *, out: A | None = None) -> A:
    """sum over the windows that hold the pixel of g / count, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    kernel: the window's sizes, or one number
    stride: for each axis, or one number; the window's when absent
    padding: before and behind each axis (top,bottom,left,right), or for each axis, or one number
    count_include_pad: divide by the window's taps on the padded image, not by the number of present taps
    ceil_mode: a last window may reach over the padded image
    divisor_override: divide by this number, not 0 and of magnitude below 2^31; 0: by the count
    size: the image's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(321, (g,), out, (kernel, stride, padding, count_include_pad, ceil_mode, divisor_override, size))
    return result


def adaptive_max_pool3d(x: A, size: Ints, *, out: A | None = None) -> A:
    """The greatest of x from floor(i h / oh) to ceil((i + 1) h / oh) - 1, likewise w.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's sizes, or one number
    Why the bits are right: no rounding happens.
    """
    result: A = _call(322, (x,), out, (size,))
    return result


def adaptive_max_pool3d_with_indices(x: A, size: Ints, *, out: Sequence[Any] | None = None) -> tuple[A, Any]:
    """adaptive_max_pool3d; where in the volume (row-major) the first greatest x is.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    indices: i64
    size: the result's sizes, or one number
    A tuple is returned; out is one, too, of arrays or None.
    Why the bits are right: no rounding happens.
    """
    result: tuple[A, Any] = _call(323, (x,), out, (size,), None, True)
    return result


def adaptive_max_pool3d_backward(g: A, x: A, *, out: A | None = None) -> A:
    """sum of g over the windows whose (first) greatest x is here, rounded once.

    g: f16 bf16 f32 f64
    x: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(324, (g, x), out, None)
    return result


def adaptive_avg_pool3d(x: A, size: Ints, *, out: A | None = None) -> A:
    """The mean of x from floor(i h / oh) to ceil((i + 1) h / oh) - 1, likewise w, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(325, (x,), out, (size,))
    return result


def adaptive_avg_pool3d_backward(g: A, size: Ints, *, out: A | None = None) -> A:
    """sum over the windows that hold the pixel of g / their size, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    size: the image's sizes, or one number
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(326, (g,), out, (size,))
    return result


def upsample_linear(x: A, size: Ints, align_corners: bool = False, scale_d: float = 0.0, scale_h: float = 0.0,
        scale_w: float = 0.0, *, out: A | None = None) -> A:
    """sum of the weights of pixels i0 and i0 + 1 at u times x, along 1 to 3 axes: 1 - min(u - i0, 1), min(u - i0, 1), rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's: a number for each axis of the image, or one for all
    align_corners: the middles of the outermost pixels lie on each other
    scale_d: in [2^-32, 2^32]; 0: od / d
    scale_h: in [2^-32, 2^32]; 0: oh / h
    scale_w: in [2^-32, 2^32]; 0: ow / w
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(327, (x,), out, (size, align_corners, scale_d, scale_h, scale_w))
    return result


def upsample_linear_backward(g: A, size: Ints, align_corners: bool = False, scale_d: float = 0.0,
        scale_h: float = 0.0, scale_w: float = 0.0, *, out: A | None = None) -> A:
    """sum of g times the weights that this pixel has in upsample_linear, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    size: the result's: a number for each axis of the image, or one for all
    align_corners: the middles of the outermost pixels lie on each other
    scale_d: in [2^-32, 2^32]; 0: od / d
    scale_h: in [2^-32, 2^32]; 0: oh / h
    scale_w: in [2^-32, 2^32]; 0: ow / w
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(328, (g,), out, (size, align_corners, scale_d, scale_h, scale_w))
    return result


def upsample_cubic(x: A, size: Ints, align_corners: bool = False, scale_d: float = 0.0, scale_h: float = 0.0,
        scale_w: float = 0.0, *, out: A | None = None) -> A:
    """sum of the weights of pixels i0 - 1 to i0 + 2 at u times x, along 1 to 3 axes: those of cubic convolution, A = -3/4, rounded once.

    x: f16 bf16 f32 f64
    out: f16 bf16 f32 f64
    size: the result's: a number for each axis of the image, or one for all
    align_corners: the middles of the outermost pixels lie on each other
    scale_d: in [2^-32, 2^32]; 0: od / d
    scale_h: in [2^-32, 2^32]; 0: oh / h
    scale_w: in [2^-32, 2^32]; 0: ow / w
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(329, (x,), out, (size, align_corners, scale_d, scale_h, scale_w))
    return result


def upsample_cubic_backward(g: A, size: Ints, align_corners: bool = False, scale_d: float = 0.0, scale_h: float = 0.0,
        scale_w: float = 0.0, *, out: A | None = None) -> A:
    """sum of g times the weights that this pixel has in upsample_cubic, rounded once.

    g: f16 bf16 f32 f64
    grad_x: f16 bf16 f32 f64
    size: the result's: a number for each axis of the image, or one for all
    align_corners: the middles of the outermost pixels lie on each other
    scale_d: in [2^-32, 2^32]; 0: od / d
    scale_h: in [2^-32, 2^32]; 0: oh / h
    scale_w: in [2^-32, 2^32]; 0: ow / w
    Why the bits are right: run-time certificate; exact integers decide the rest.
    """
    result: A = _call(330, (g,), out, (size, align_corners, scale_d, scale_h, scale_w))
    return result
