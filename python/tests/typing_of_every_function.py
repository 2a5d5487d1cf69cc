"""For mypy and pyright. Written by tools/gen_python.py from the registry of operations; do not edit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import librepdl

x: NDArray[np.float32] = np.ones((1, 1, 1, 1), np.float32)
g = librepdl.random.Generator(1)
r_add: NDArray[np.float32] = librepdl.add(x, x, alpha=0.5, out=x)
r_sub: NDArray[np.float32] = librepdl.sub(x, x, alpha=0.5, out=x)
librepdl.subtract
r_mul: NDArray[np.float32] = librepdl.mul(x, x, out=x)
librepdl.multiply
r_div: NDArray[np.float32] = librepdl.div(x, x, out=x)
librepdl.divide
r_fma: NDArray[np.float32] = librepdl.fma(x, x, x, out=x)
r_neg: NDArray[np.float32] = librepdl.neg(x, out=x)
librepdl.negative
r_abs: NDArray[np.float32] = librepdl.abs(x, out=x)
librepdl.absolute
r_sqrt: NDArray[np.float32] = librepdl.sqrt(x, out=x)
r_maximum: NDArray[np.float32] = librepdl.maximum(x, x, out=x)
r_minimum: NDArray[np.float32] = librepdl.minimum(x, x, out=x)
r_less: Any = librepdl.less(x, x, out=x)
r_pow: NDArray[np.float32] = librepdl.pow(x, x, out=x)
r_relu: NDArray[np.float32] = librepdl.relu(x, out=x)
r_leaky_relu: NDArray[np.float32] = librepdl.leaky_relu(x, slope=0.5, out=x)
r_exp: NDArray[np.float32] = librepdl.exp(x, out=x)
r_log: NDArray[np.float32] = librepdl.log(x, out=x)
r_tanh: NDArray[np.float32] = librepdl.tanh(x, out=x)
r_sigmoid: NDArray[np.float32] = librepdl.sigmoid(x, out=x)
r_relu_backward: NDArray[np.float32] = librepdl.relu_backward(x, x, out=x)
r_tanh_backward: NDArray[np.float32] = librepdl.tanh_backward(x, x, out=x)
r_sigmoid_backward: NDArray[np.float32] = librepdl.sigmoid_backward(x, x, out=x)
r_square: NDArray[np.float32] = librepdl.square(x, out=x)
r_reciprocal: NDArray[np.float32] = librepdl.reciprocal(x, out=x)
r_floor: NDArray[np.float32] = librepdl.floor(x, out=x)
r_ceil: NDArray[np.float32] = librepdl.ceil(x, out=x)
r_trunc: NDArray[np.float32] = librepdl.trunc(x, out=x)
r_round: NDArray[np.float32] = librepdl.round(x, out=x)
r_frac: NDArray[np.float32] = librepdl.frac(x, out=x)
r_sign: NDArray[np.float32] = librepdl.sign(x, out=x)
r_fmax: NDArray[np.float32] = librepdl.fmax(x, x, out=x)
r_fmin: NDArray[np.float32] = librepdl.fmin(x, x, out=x)
r_copysign: NDArray[np.float32] = librepdl.copysign(x, x, out=x)
r_equal: Any = librepdl.equal(x, x, out=x)
r_not_equal: Any = librepdl.not_equal(x, x, out=x)
r_less_equal: Any = librepdl.less_equal(x, x, out=x)
r_greater: Any = librepdl.greater(x, x, out=x)
r_greater_equal: Any = librepdl.greater_equal(x, x, out=x)
r_isnan: Any = librepdl.isnan(x, out=x)
r_isinf: Any = librepdl.isinf(x, out=x)
r_isfinite: Any = librepdl.isfinite(x, out=x)
r_signbit: Any = librepdl.signbit(x, out=x)
r_clamp: NDArray[np.float32] = librepdl.clamp(x, min=0.5, max=0.5, out=x)
r_clip: NDArray[np.float32] = librepdl.clip(x, x, x, out=x)
r_clamp_backward: NDArray[np.float32] = librepdl.clamp_backward(x, x, min=0.5, max=0.5, out=x)
r_hardtanh: NDArray[np.float32] = librepdl.hardtanh(x, min_val=0.5, max_val=0.5, out=x)
r_hardtanh_backward: NDArray[np.float32] = librepdl.hardtanh_backward(x, x, min_val=0.5, max_val=0.5, out=x)
r_threshold: NDArray[np.float32] = librepdl.threshold(x, threshold=0.5, value=0.5, out=x)
r_threshold_backward: NDArray[np.float32] = librepdl.threshold_backward(x, x, threshold=0.5, out=x)
r_hardshrink: NDArray[np.float32] = librepdl.hardshrink(x, lambd=0.5, out=x)
r_hardshrink_backward: NDArray[np.float32] = librepdl.hardshrink_backward(x, x, lambd=0.5, out=x)
r_nan_to_num: NDArray[np.float32] = librepdl.nan_to_num(x, nan=0.5, posinf=0.5, neginf=0.5, out=x)
r_where: NDArray[np.float32] = librepdl.where(x, x, x, out=x)
r_masked_fill: NDArray[np.float32] = librepdl.masked_fill(x, x, value=0.5, out=x)
r_logical_and: Any = librepdl.logical_and(x, x, out=x)
r_logical_or: Any = librepdl.logical_or(x, x, out=x)
r_logical_xor: Any = librepdl.logical_xor(x, x, out=x)
r_logical_not: Any = librepdl.logical_not(x, out=x)
r_convert: Any = librepdl.convert(x=x, dtype=np.float32, out=x)
librepdl.astype
r_sum: NDArray[np.float32] = librepdl.sum(x=x, axis=(1, 1), keepdims=True, out=x)
r_mean: NDArray[np.float32] = librepdl.mean(x=x, axis=(1, 1), keepdims=True, out=x)
r_max: NDArray[np.float32] = librepdl.max(x=x, axis=(1, 1), keepdims=True, out=x)
r_min: NDArray[np.float32] = librepdl.min(x=x, axis=(1, 1), keepdims=True, out=x)
r_argmax: Any = librepdl.argmax(x=x, axis=(1, 1), keepdims=True, out=x)
r_argmin: Any = librepdl.argmin(x=x, axis=(1, 1), keepdims=True, out=x)
r_dot: NDArray[np.float32] = librepdl.dot(x=x, y=x, out=x)
r_matmul: NDArray[np.float32] = librepdl.matmul(a=x, b=x, bias=x, transpose_a=True, transpose_b=True,
    accumulate="mean", out=x)
r_uniform: Any = g.uniform(shape=(1, 1), dtype=np.float32, low=0.5, high=0.5, out=x, like=None)
r_permutation: Any = g.permutation(n=1, out=x, like=None)
r_conv2d: NDArray[np.float32] = librepdl.conv2d(x=x, w=x, bias=x, stride=(1, 1), padding=(1, 1), dilation=(1, 1),
    groups=1, accumulate="mean", out=x)
r_conv2d_grad_input: NDArray[np.float32] = librepdl.conv2d_grad_input(g=x, w=x, size=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), groups=1, accumulate="mean", out=x)
r_conv2d_grad_weight: NDArray[np.float32] = librepdl.conv2d_grad_weight(g=x, x=x, kernel=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), groups=1, accumulate="mean", out=x)
r_conv2d_grad_bias: NDArray[np.float32] = librepdl.conv2d_grad_bias(g=x, out=x)
r_max_pool2d: NDArray[np.float32] = librepdl.max_pool2d(x=x, kernel=(1, 1), stride=(1, 1), padding=(1, 1),
    dilation=(1, 1), out=x)
r_max_pool2d_backward: NDArray[np.float32] = librepdl.max_pool2d_backward(g=x, x=x, kernel=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), out=x)
r_avg_pool2d: NDArray[np.float32] = librepdl.avg_pool2d(x=x, kernel=(1, 1), stride=(1, 1), padding=(1, 1),
    count_include_pad=True, out=x)
r_avg_pool2d_backward: NDArray[np.float32] = librepdl.avg_pool2d_backward(g=x, kernel=(1, 1), size=(1, 1),
    stride=(1, 1), padding=(1, 1), count_include_pad=True, out=x)
r_softmax: NDArray[np.float32] = librepdl.softmax(x=x, axis=1, out=x)
r_log_softmax: NDArray[np.float32] = librepdl.log_softmax(x=x, axis=1, out=x)
r_logsumexp: NDArray[np.float32] = librepdl.logsumexp(x=x, axis=(1, 1), keepdims=True, out=x)
r_cross_entropy: NDArray[np.float32] = librepdl.cross_entropy(logits=x, targets=x, axis=1, reduction="mean",
    ignore_index=1, out=x)
r_softmax_backward: NDArray[np.float32] = librepdl.softmax_backward(g=x, y=x, axis=1, out=x)
r_log_softmax_backward: NDArray[np.float32] = librepdl.log_softmax_backward(g=x, y=x, axis=1, out=x)
r_logsumexp_backward: NDArray[np.float32] = librepdl.logsumexp_backward(g=x, x=x, axis=(1, 1), keepdims=True, out=x)
r_cross_entropy_backward: NDArray[np.float32] = librepdl.cross_entropy_backward(g=x, logits=x, targets=x, axis=1,
    reduction="mean", ignore_index=1, out=x)
librepdl.sgd(param=[x], grad=[x], velocity=[x], lr=0.5, momentum=0.5, dampening=0.5, weight_decay=0.5, nesterov=True,
    first_step=True)
librepdl.adamw(param=[x], grad=[x], first_moment=[x], second_moment=[x], lr=0.5, beta1=0.5, beta2=0.5, eps=0.5,
    weight_decay=0.5, step=1)
r_normal: Any = g.normal(shape=(1, 1), dtype=np.float32, mean=0.5, stddev=0.5, out=x, like=None)
r_bernoulli: Any = g.bernoulli(shape=(1, 1), p=0.5, out=x, like=None)
r_randint: Any = g.randint(shape=(1, 1), high=1, low=1, out=x, like=None)
r_dropout: NDArray[np.float32] = g.dropout(x=x, p=0.5, out=x)
r_dropout_backward: NDArray[np.float32] = g.dropout_backward(g=x, p=0.5, out=x)
d: float = float(librepdl.sum(x))
c: librepdl.Comparison = librepdl.compare(x, x)
s: str = librepdl.fingerprint({'x': x})
i: dict[str, Any] = librepdl.info()
p: librepdl.Prepared = librepdl.prepare(lambda: librepdl.exp(x))
p.run()
with librepdl.context(threads=1, isa=None, device='cpu') as k:
    n: int = k.threads
    m: dict[str, int] = k.statistics()
mixed: NDArray[np.float32] = librepdl.mul(x, 0.1)
