"""For mypy and pyright. Written by tools/gen_python.py from the registry of operations; do not edit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import librepdl

x: NDArray[np.float32] = np.ones((1, 1, 1, 1), np.float32)
g = librepdl.random.Generator(1)
r_add: Any = librepdl.add(x, x, alpha=0.5, dtype=np.float32, out=x)
r_sub: Any = librepdl.sub(x, x, alpha=0.5, dtype=np.float32, out=x)
librepdl.subtract
r_mul: Any = librepdl.mul(x, x, dtype=np.float32, out=x)
librepdl.multiply
r_div: Any = librepdl.div(x, x, dtype=np.float32, out=x)
librepdl.divide
librepdl.true_divide
r_fma: Any = librepdl.fma(x, x, x, dtype=np.float32, out=x)
r_neg: NDArray[np.float32] = librepdl.neg(x, out=x)
librepdl.negative
r_abs: NDArray[np.float32] = librepdl.abs(x, out=x)
librepdl.absolute
librepdl.fabs
r_sqrt: Any = librepdl.sqrt(x, dtype=np.float32, out=x)
r_maximum: NDArray[np.float32] = librepdl.maximum(x, x, out=x)
r_minimum: NDArray[np.float32] = librepdl.minimum(x, x, out=x)
r_less: Any = librepdl.less(x, x, out=x)
r_pow: NDArray[np.float32] = librepdl.pow(x, x, out=x)
librepdl.power
r_relu: NDArray[np.float32] = librepdl.relu(x, out=x)
r_leaky_relu: NDArray[np.float32] = librepdl.leaky_relu(x, slope=0.5, out=x)
r_exp: NDArray[np.float32] = librepdl.exp(x, out=x)
r_log: NDArray[np.float32] = librepdl.log(x, out=x)
r_tanh: NDArray[np.float32] = librepdl.tanh(x, out=x)
r_sigmoid: NDArray[np.float32] = librepdl.sigmoid(x, out=x)
librepdl.expit
r_relu_backward: NDArray[np.float32] = librepdl.relu_backward(x, x, out=x)
r_tanh_backward: NDArray[np.float32] = librepdl.tanh_backward(x, x, out=x)
r_sigmoid_backward: NDArray[np.float32] = librepdl.sigmoid_backward(x, x, out=x)
r_square: NDArray[np.float32] = librepdl.square(x, out=x)
r_reciprocal: NDArray[np.float32] = librepdl.reciprocal(x, out=x)
r_floor: NDArray[np.float32] = librepdl.floor(x, out=x)
r_ceil: NDArray[np.float32] = librepdl.ceil(x, out=x)
r_trunc: NDArray[np.float32] = librepdl.trunc(x, out=x)
librepdl.fix
r_round: NDArray[np.float32] = librepdl.round(x, out=x)
librepdl.rint
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
r_sin: NDArray[np.float32] = librepdl.sin(x, out=x)
r_cos: NDArray[np.float32] = librepdl.cos(x, out=x)
r_erf: NDArray[np.float32] = librepdl.erf(x, out=x)
r_erfc: NDArray[np.float32] = librepdl.erfc(x, out=x)
r_gelu: NDArray[np.float32] = librepdl.gelu(x, out=x)
r_gelu_tanh: NDArray[np.float32] = librepdl.gelu_tanh(x, out=x)
r_exp2: NDArray[np.float32] = librepdl.exp2(x, out=x)
r_expm1: NDArray[np.float32] = librepdl.expm1(x, out=x)
r_log2: NDArray[np.float32] = librepdl.log2(x, out=x)
r_log10: NDArray[np.float32] = librepdl.log10(x, out=x)
r_log1p: NDArray[np.float32] = librepdl.log1p(x, out=x)
r_rsqrt: NDArray[np.float32] = librepdl.rsqrt(x, out=x)
r_log_sigmoid: NDArray[np.float32] = librepdl.log_sigmoid(x, out=x)
librepdl.log_expit
r_silu: NDArray[np.float32] = librepdl.silu(x, out=x)
r_mish: NDArray[np.float32] = librepdl.mish(x, out=x)
r_selu: NDArray[np.float32] = librepdl.selu(x, out=x)
r_tanhshrink: NDArray[np.float32] = librepdl.tanhshrink(x, out=x)
r_softsign: NDArray[np.float32] = librepdl.softsign(x, out=x)
r_relu6: NDArray[np.float32] = librepdl.relu6(x, out=x)
r_hardsigmoid: NDArray[np.float32] = librepdl.hardsigmoid(x, out=x)
r_hardswish: NDArray[np.float32] = librepdl.hardswish(x, out=x)
r_softsign_backward: NDArray[np.float32] = librepdl.softsign_backward(x, x, out=x)
r_relu6_backward: NDArray[np.float32] = librepdl.relu6_backward(x, x, out=x)
r_hardsigmoid_backward: NDArray[np.float32] = librepdl.hardsigmoid_backward(x, x, out=x)
r_hardswish_backward: NDArray[np.float32] = librepdl.hardswish_backward(x, x, out=x)
r_addcmul: NDArray[np.float32] = librepdl.addcmul(x, x, x, value=0.5, out=x)
r_addcdiv: NDArray[np.float32] = librepdl.addcdiv(x, x, x, value=0.5, out=x)
r_lerp: NDArray[np.float32] = librepdl.lerp(x, x, x, out=x)
r_lerp_scalar: NDArray[np.float32] = librepdl.lerp_scalar(x, x, weight=0.5, out=x)
r_prelu: NDArray[np.float32] = librepdl.prelu(x, x, out=x)
r_prelu_backward: NDArray[np.float32] = librepdl.prelu_backward(x, x, x, out=x)
r_hypot: NDArray[np.float32] = librepdl.hypot(x, x, out=x)
r_fmod: NDArray[np.float32] = librepdl.fmod(x, x, out=x)
r_remainder: NDArray[np.float32] = librepdl.remainder(x, x, out=x)
librepdl.mod
r_div_trunc: NDArray[np.float32] = librepdl.div_trunc(x, x, out=x)
r_div_floor: NDArray[np.float32] = librepdl.div_floor(x, x, out=x)
librepdl.floor_divide
r_xlogy: NDArray[np.float32] = librepdl.xlogy(x, x, out=x)
r_logaddexp: NDArray[np.float32] = librepdl.logaddexp(x, x, out=x)
r_elu: NDArray[np.float32] = librepdl.elu(x, alpha=0.5, scale=0.5, rate=0.5, out=x)
r_silu_backward: NDArray[np.float32] = librepdl.silu_backward(x, x, out=x)
r_mish_backward: NDArray[np.float32] = librepdl.mish_backward(x, x, out=x)
r_log_sigmoid_backward: NDArray[np.float32] = librepdl.log_sigmoid_backward(x, x, out=x)
r_gelu_backward: NDArray[np.float32] = librepdl.gelu_backward(x, x, out=x)
r_gelu_tanh_backward: NDArray[np.float32] = librepdl.gelu_tanh_backward(x, x, out=x)
r_leaky_relu_backward: NDArray[np.float32] = librepdl.leaky_relu_backward(x, x, slope=0.5, out=x)
r_elu_backward: NDArray[np.float32] = librepdl.elu_backward(x, x, alpha=0.5, scale=0.5, rate=0.5, out=x)
r_selu_backward: NDArray[np.float32] = librepdl.selu_backward(x, x, out=x)
r_celu: NDArray[np.float32] = librepdl.celu(x, alpha=0.5, out=x)
r_celu_backward: NDArray[np.float32] = librepdl.celu_backward(x, x, alpha=0.5, out=x)
r_softplus: NDArray[np.float32] = librepdl.softplus(x, beta=0.5, threshold=0.5, out=x)
r_softplus_backward: NDArray[np.float32] = librepdl.softplus_backward(x, x, beta=0.5, threshold=0.5, out=x)
r_atan2: NDArray[np.float32] = librepdl.atan2(x, x, out=x)
librepdl.arctan2
r_logaddexp2: NDArray[np.float32] = librepdl.logaddexp2(x, x, out=x)
r_logit: NDArray[np.float32] = librepdl.logit(x, eps=0.5, out=x)
r_logit_backward: NDArray[np.float32] = librepdl.logit_backward(x, x, eps=0.5, out=x)
r_softshrink: NDArray[np.float32] = librepdl.softshrink(x, lambd=0.5, out=x)
r_softshrink_backward: NDArray[np.float32] = librepdl.softshrink_backward(x, x, lambd=0.5, out=x)
r_abs_backward: NDArray[np.float32] = librepdl.abs_backward(x, x, out=x)
r_sqrt_backward: NDArray[np.float32] = librepdl.sqrt_backward(x, x, out=x)
r_log_backward: NDArray[np.float32] = librepdl.log_backward(x, x, out=x)
r_log1p_backward: NDArray[np.float32] = librepdl.log1p_backward(x, x, out=x)
r_rsqrt_backward: NDArray[np.float32] = librepdl.rsqrt_backward(x, x, out=x)
r_reciprocal_backward: NDArray[np.float32] = librepdl.reciprocal_backward(x, x, out=x)
r_expm1_backward: NDArray[np.float32] = librepdl.expm1_backward(x, x, out=x)
r_div_backward_y: NDArray[np.float32] = librepdl.div_backward_y(x, x, x, out=x)
r_maximum_backward: NDArray[np.float32] = librepdl.maximum_backward(x, x, x, out=x)
r_minimum_backward: NDArray[np.float32] = librepdl.minimum_backward(x, x, x, out=x)
r_fmax_backward_x: NDArray[np.float32] = librepdl.fmax_backward_x(x, x, x, out=x)
r_fmax_backward_y: NDArray[np.float32] = librepdl.fmax_backward_y(x, x, x, out=x)
r_fmin_backward_x: NDArray[np.float32] = librepdl.fmin_backward_x(x, x, x, out=x)
r_fmin_backward_y: NDArray[np.float32] = librepdl.fmin_backward_y(x, x, x, out=x)
r_hypot_backward: NDArray[np.float32] = librepdl.hypot_backward(x, x, x, out=x)
r_atan2_backward_y: NDArray[np.float32] = librepdl.atan2_backward_y(x, x, x, out=x)
r_atan2_backward_x: NDArray[np.float32] = librepdl.atan2_backward_x(x, x, x, out=x)
r_lerp_backward_x: NDArray[np.float32] = librepdl.lerp_backward_x(x, x, out=x)
r_lerp_backward_weight: NDArray[np.float32] = librepdl.lerp_backward_weight(x, x, x, out=x)
r_lerp_scalar_backward_x: NDArray[np.float32] = librepdl.lerp_scalar_backward_x(x, weight=0.5, out=x)
r_addcdiv_backward_z: NDArray[np.float32] = librepdl.addcdiv_backward_z(x, x, x, value=0.5, out=x)
r_xlogy_backward_y: NDArray[np.float32] = librepdl.xlogy_backward_y(x, x, x, out=x)
r_copysign_backward: NDArray[np.float32] = librepdl.copysign_backward(x, x, x, out=x)
r_fmod_backward_y: NDArray[np.float32] = librepdl.fmod_backward_y(x, x, x, out=x)
r_remainder_backward_y: NDArray[np.float32] = librepdl.remainder_backward_y(x, x, x, out=x)
r_log2_backward: NDArray[np.float32] = librepdl.log2_backward(x, x, out=x)
r_log10_backward: NDArray[np.float32] = librepdl.log10_backward(x, x, out=x)
r_exp2_backward: NDArray[np.float32] = librepdl.exp2_backward(x, x, out=x)
r_xlogy_backward_x: NDArray[np.float32] = librepdl.xlogy_backward_x(x, x, x, out=x)
r_logaddexp_backward: NDArray[np.float32] = librepdl.logaddexp_backward(x, x, x, out=x)
r_logaddexp2_backward: NDArray[np.float32] = librepdl.logaddexp2_backward(x, x, x, out=x)
r_sin_backward: NDArray[np.float32] = librepdl.sin_backward(x, x, out=x)
r_cos_backward: NDArray[np.float32] = librepdl.cos_backward(x, x, out=x)
r_erf_backward: NDArray[np.float32] = librepdl.erf_backward(x, x, out=x)
r_erfc_backward: NDArray[np.float32] = librepdl.erfc_backward(x, x, out=x)
r_pow_backward_x: NDArray[np.float32] = librepdl.pow_backward_x(x, x, x, out=x)
r_pow_backward_y: NDArray[np.float32] = librepdl.pow_backward_y(x, x, x, out=x)
r_glu: NDArray[np.float32] = librepdl.glu(x, x, out=x)
r_swiglu: NDArray[np.float32] = librepdl.swiglu(x, x, out=x)
r_reglu: NDArray[np.float32] = librepdl.reglu(x, x, out=x)
r_geglu: NDArray[np.float32] = librepdl.geglu(x, x, out=x)
r_glu_backward_b: NDArray[np.float32] = librepdl.glu_backward_b(x, x, x, out=x)
r_swiglu_backward_a: NDArray[np.float32] = librepdl.swiglu_backward_a(x, x, x, out=x)
r_reglu_backward_a: NDArray[np.float32] = librepdl.reglu_backward_a(x, x, x, out=x)
r_geglu_backward_a: NDArray[np.float32] = librepdl.geglu_backward_a(x, x, x, out=x)
r_pow_scalar: NDArray[np.float32] = librepdl.pow_scalar(x, exponent=0.5, out=x)
r_scalar_pow: NDArray[np.float32] = librepdl.scalar_pow(x, base=0.5, out=x)
r_clip_backward: NDArray[np.float32] = librepdl.clip_backward(x, x, x, x, out=x)
r_clip_backward_lo: NDArray[np.float32] = librepdl.clip_backward_lo(x, x, x, x, out=x)
r_clip_backward_hi: NDArray[np.float32] = librepdl.clip_backward_hi(x, x, x, x, out=x)
r_pow_scalar_backward: NDArray[np.float32] = librepdl.pow_scalar_backward(x, x, exponent=0.5, out=x)
r_scalar_pow_backward: NDArray[np.float32] = librepdl.scalar_pow_backward(x, x, base=0.5, out=x)
r_erfinv: NDArray[np.float32] = librepdl.erfinv(x, out=x)
r_heaviside: NDArray[np.float32] = librepdl.heaviside(x, x, out=x)
r_nextafter: NDArray[np.float32] = librepdl.nextafter(x, x, out=x)
r_tan: NDArray[np.float32] = librepdl.tan(x, out=x)
r_asin: NDArray[np.float32] = librepdl.asin(x, out=x)
r_acos: NDArray[np.float32] = librepdl.acos(x, out=x)
r_atan: NDArray[np.float32] = librepdl.atan(x, out=x)
r_sinh: NDArray[np.float32] = librepdl.sinh(x, out=x)
r_cosh: NDArray[np.float32] = librepdl.cosh(x, out=x)
r_asinh: NDArray[np.float32] = librepdl.asinh(x, out=x)
r_acosh: NDArray[np.float32] = librepdl.acosh(x, out=x)
r_atanh: NDArray[np.float32] = librepdl.atanh(x, out=x)
r_cbrt: NDArray[np.float32] = librepdl.cbrt(x, out=x)
r_exp10: NDArray[np.float32] = librepdl.exp10(x, out=x)
r_exp2m1: NDArray[np.float32] = librepdl.exp2m1(x, out=x)
r_exp10m1: NDArray[np.float32] = librepdl.exp10m1(x, out=x)
r_log2p1: NDArray[np.float32] = librepdl.log2p1(x, out=x)
r_log10p1: NDArray[np.float32] = librepdl.log10p1(x, out=x)
r_sinpi: NDArray[np.float32] = librepdl.sinpi(x, out=x)
r_cospi: NDArray[np.float32] = librepdl.cospi(x, out=x)
r_tanpi: NDArray[np.float32] = librepdl.tanpi(x, out=x)
r_sinc: NDArray[np.float32] = librepdl.sinc(x, out=x)
r_ndtr: NDArray[np.float32] = librepdl.ndtr(x, out=x)
r_tan_backward: NDArray[np.float32] = librepdl.tan_backward(x, x, out=x)
r_asin_backward: NDArray[np.float32] = librepdl.asin_backward(x, x, out=x)
r_acos_backward: NDArray[np.float32] = librepdl.acos_backward(x, x, out=x)
r_atan_backward: NDArray[np.float32] = librepdl.atan_backward(x, x, out=x)
r_sinh_backward: NDArray[np.float32] = librepdl.sinh_backward(x, x, out=x)
r_cosh_backward: NDArray[np.float32] = librepdl.cosh_backward(x, x, out=x)
r_asinh_backward: NDArray[np.float32] = librepdl.asinh_backward(x, x, out=x)
r_acosh_backward: NDArray[np.float32] = librepdl.acosh_backward(x, x, out=x)
r_atanh_backward: NDArray[np.float32] = librepdl.atanh_backward(x, x, out=x)
r_lgamma: NDArray[np.float32] = librepdl.lgamma(x, out=x)
r_tgamma: NDArray[np.float32] = librepdl.tgamma(x, out=x)
r_digamma: NDArray[np.float32] = librepdl.digamma(x, out=x)
r_i0: NDArray[np.float32] = librepdl.i0(x, out=x)
r_i0e: NDArray[np.float32] = librepdl.i0e(x, out=x)
r_i1: NDArray[np.float32] = librepdl.i1(x, out=x)
r_i1e: NDArray[np.float32] = librepdl.i1e(x, out=x)
r_log_ndtr: NDArray[np.float32] = librepdl.log_ndtr(x, out=x)
r_erfcinv: NDArray[np.float32] = librepdl.erfcinv(x, out=x)
r_ndtri: NDArray[np.float32] = librepdl.ndtri(x, out=x)
r_erfinv_backward: NDArray[np.float32] = librepdl.erfinv_backward(x, x, out=x)
r_ndtri_backward: NDArray[np.float32] = librepdl.ndtri_backward(x, x, out=x)
r_sum_of_products: NDArray[np.float32] = librepdl.sum_of_products(x, x, x, x, out=x)
r_difference_of_products: NDArray[np.float32] = librepdl.difference_of_products(x, x, x, x, out=x)
r_convert: Any = librepdl.convert(x=x, dtype=np.float32, saturate=True, out=x)
librepdl.astype
r_sum: Any = librepdl.sum(x=x, axis=(1, 1), keepdims=True, dtype=np.float32, out=x)
r_mean: Any = librepdl.mean(x=x, axis=(1, 1), keepdims=True, dtype=np.float32, out=x)
r_max: NDArray[np.float32] = librepdl.max(x=x, axis=(1, 1), keepdims=True, out=x)
librepdl.amax
r_min: NDArray[np.float32] = librepdl.min(x=x, axis=(1, 1), keepdims=True, out=x)
librepdl.amin
r_argmax: Any = librepdl.argmax(x=x, axis=(1, 1), keepdims=True, out=x)
r_argmin: Any = librepdl.argmin(x=x, axis=(1, 1), keepdims=True, out=x)
r_dot: Any = librepdl.dot(x=x, y=x, dtype=np.float32, out=x)
r_matmul: Any = librepdl.matmul(a=x, b=x, bias=x, transpose_a=True, transpose_b=True, accumulate="mean", alpha=0.5,
    beta=0.5, dtype=np.float32, out=x)
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
    dilation=(1, 1), ceil_mode=True, out=x)
r_max_pool2d_backward: NDArray[np.float32] = librepdl.max_pool2d_backward(g=x, x=x, kernel=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), ceil_mode=True, out=x)
r_avg_pool2d: NDArray[np.float32] = librepdl.avg_pool2d(x=x, kernel=(1, 1), stride=(1, 1), padding=(1, 1),
    count_include_pad=True, ceil_mode=True, divisor_override=1, out=x)
r_avg_pool2d_backward: NDArray[np.float32] = librepdl.avg_pool2d_backward(g=x, kernel=(1, 1), size=(1, 1),
    stride=(1, 1), padding=(1, 1), count_include_pad=True, ceil_mode=True, divisor_override=1, out=x)
r_softmax: Any = librepdl.softmax(x=x, axis=1, dtype=np.float32, out=x)
r_log_softmax: Any = librepdl.log_softmax(x=x, axis=1, dtype=np.float32, out=x)
r_logsumexp: NDArray[np.float32] = librepdl.logsumexp(x=x, axis=(1, 1), keepdims=True, out=x)
r_cross_entropy: NDArray[np.float32] = librepdl.cross_entropy(logits=x, targets=x, weight=x, axis=1, reduction="mean",
    ignore_index=1, label_smoothing=0.5, out=x)
r_softmax_backward: NDArray[np.float32] = librepdl.softmax_backward(g=x, y=x, axis=1, out=x)
r_log_softmax_backward: NDArray[np.float32] = librepdl.log_softmax_backward(g=x, y=x, axis=1, out=x)
r_logsumexp_backward: NDArray[np.float32] = librepdl.logsumexp_backward(g=x, x=x, axis=(1, 1), keepdims=True, out=x)
r_cross_entropy_backward: NDArray[np.float32] = librepdl.cross_entropy_backward(g=x, logits=x, targets=x, weight=x,
    axis=1, reduction="mean", ignore_index=1, label_smoothing=0.5, out=x)
librepdl.sgd(param=[x], grad=[x], velocity=[x], lr=0.5, momentum=0.5, dampening=0.5, weight_decay=0.5, nesterov=True,
    first_step=True)
librepdl.adamw(param=[x], grad=[x], first_moment=[x], second_moment=[x], lr=0.5, beta1=0.5, beta2=0.5, eps=0.5,
    weight_decay=0.5, step=1)
r_normal: Any = g.normal(shape=(1, 1), dtype=np.float32, mean=0.5, stddev=0.5, out=x, like=None)
r_bernoulli: Any = g.bernoulli(shape=(1, 1), p=0.5, out=x, like=None)
r_randint: Any = g.randint(shape=(1, 1), high=1, low=1, out=x, like=None)
r_dropout: NDArray[np.float32] = g.dropout(x=x, p=0.5, out=x)
r_dropout_backward: NDArray[np.float32] = g.dropout_backward(g=x, p=0.5, out=x)
r_mse_loss: NDArray[np.float32] = librepdl.mse_loss(x=x, t=x, reduction="mean", out=x)
r_l1_loss: NDArray[np.float32] = librepdl.l1_loss(x=x, t=x, reduction="mean", out=x)
r_smooth_l1_loss: NDArray[np.float32] = librepdl.smooth_l1_loss(x=x, t=x, reduction="mean", beta=0.5, out=x)
r_huber_loss: NDArray[np.float32] = librepdl.huber_loss(x=x, t=x, reduction="mean", delta=0.5, out=x)
r_mse_loss_backward: NDArray[np.float32] = librepdl.mse_loss_backward(g=x, x=x, t=x, reduction="mean", out=x)
r_l1_loss_backward: NDArray[np.float32] = librepdl.l1_loss_backward(g=x, x=x, t=x, reduction="mean", out=x)
r_smooth_l1_loss_backward: NDArray[np.float32] = librepdl.smooth_l1_loss_backward(g=x, x=x, t=x, reduction="mean",
    beta=0.5, out=x)
r_huber_loss_backward: NDArray[np.float32] = librepdl.huber_loss_backward(g=x, x=x, t=x, reduction="mean", delta=0.5,
    out=x)
r_soft_margin_loss: NDArray[np.float32] = librepdl.soft_margin_loss(x=x, t=x, reduction="mean", out=x)
r_soft_margin_loss_backward: NDArray[np.float32] = librepdl.soft_margin_loss_backward(g=x, x=x, t=x, reduction="mean",
    out=x)
r_binary_cross_entropy_with_logits: NDArray[np.float32] = librepdl.binary_cross_entropy_with_logits(x=x, t=x,
    weight=x, pos_weight=x, reduction="mean", out=x)
r_binary_cross_entropy_with_logits_backward: NDArray[np.float32] = librepdl.binary_cross_entropy_with_logits_backward(
    g=x, x=x, t=x, weight=x, pos_weight=x, reduction="mean", out=x)
r_binary_cross_entropy: NDArray[np.float32] = librepdl.binary_cross_entropy(x=x, t=x, weight=x, reduction="mean", out=x)
r_binary_cross_entropy_backward: NDArray[np.float32] = librepdl.binary_cross_entropy_backward(g=x, x=x, t=x, weight=x,
    reduction="mean", out=x)
r_kl_div: NDArray[np.float32] = librepdl.kl_div(x=x, t=x, reduction="mean", log_target=True, out=x)
r_kl_div_backward: NDArray[np.float32] = librepdl.kl_div_backward(g=x, x=x, t=x, reduction="mean", log_target=True,
    out=x)
r_prelu_weight_backward: NDArray[np.float32] = librepdl.prelu_weight_backward(g=x, x=x, axis=(1, 1), keepdims=True,
    out=x)
r_layer_norm_statistics: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] = librepdl.layer_norm(
    x=x, weight=x, bias=x, axis=(1, 1), eps=0.5, out=(x, x, x), statistics=True)
r_layer_norm: NDArray[np.float32] = librepdl.layer_norm(x=x, weight=x, bias=x, axis=(1, 1), eps=0.5, out=x)
r_rms_norm_statistics: tuple[NDArray[np.float32], NDArray[np.float32]] = librepdl.rms_norm(x=x, eps=0.5, weight=x,
    axis=(1, 1), out=(x, x), statistics=True)
r_rms_norm: NDArray[np.float32] = librepdl.rms_norm(x=x, eps=0.5, weight=x, axis=(1, 1), out=x)
r_group_norm_statistics: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] = librepdl.group_norm(
    x=x, weight=x, bias=x, groups=1, eps=0.5, out=(x, x, x), statistics=True)
r_group_norm: NDArray[np.float32] = librepdl.group_norm(x=x, weight=x, bias=x, groups=1, eps=0.5, out=x)
r_batch_norm_statistics: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] = librepdl.batch_norm(
    x=x, weight=x, bias=x, axis=1, eps=0.5, out=(x, x, x), statistics=True)
r_batch_norm: NDArray[np.float32] = librepdl.batch_norm(x=x, weight=x, bias=x, axis=1, eps=0.5, out=x)
r_layer_norm_backward: NDArray[np.float32] = librepdl.layer_norm_backward(g=x, x=x, mean=x, rstd=x, weight=x,
    axis=(1, 1), out=x)
r_rms_norm_backward: NDArray[np.float32] = librepdl.rms_norm_backward(g=x, x=x, rstd=x, weight=x, axis=(1, 1), out=x)
r_group_norm_backward: NDArray[np.float32] = librepdl.group_norm_backward(g=x, x=x, mean=x, rstd=x, weight=x,
    groups=1, out=x)
r_batch_norm_backward: NDArray[np.float32] = librepdl.batch_norm_backward(g=x, x=x, mean=x, rstd=x, weight=x, axis=1,
    out=x)
r_layer_norm_weight_backward: NDArray[np.float32] = librepdl.layer_norm_weight_backward(g=x, x=x, mean=x, rstd=x,
    axis=(1, 1), out=x)
r_rms_norm_weight_backward: NDArray[np.float32] = librepdl.rms_norm_weight_backward(g=x, x=x, rstd=x, axis=(1, 1),
    out=x)
r_group_norm_weight_backward: NDArray[np.float32] = librepdl.group_norm_weight_backward(g=x, x=x, mean=x, rstd=x,
    groups=1, out=x)
r_batch_norm_weight_backward: NDArray[np.float32] = librepdl.batch_norm_weight_backward(g=x, x=x, mean=x, rstd=x,
    axis=1, out=x)
r_batch_norm_running_statistics: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] = librepdl.batch_norm_running(
    x=x, running_mean=x, running_var=x, weight=x, bias=x, axis=1, eps=0.5, momentum=0.5, out=(x, x, x, x, x),
    statistics=True)
r_batch_norm_running: NDArray[np.float32] = librepdl.batch_norm_running(x=x, running_mean=x, running_var=x, weight=x,
    bias=x, axis=1, eps=0.5, momentum=0.5, out=x)
r_batch_norm_inference: NDArray[np.float32] = librepdl.batch_norm_inference(x=x, running_mean=x, running_var=x,
    weight=x, bias=x, axis=1, eps=0.5, out=x)
r_batch_norm_inference_backward: NDArray[np.float32] = librepdl.batch_norm_inference_backward(g=x, running_var=x,
    weight=x, axis=1, eps=0.5, out=x)
r_batch_norm_inference_weight_backward: NDArray[np.float32] = librepdl.batch_norm_inference_weight_backward(g=x, x=x,
    running_mean=x, running_var=x, axis=1, eps=0.5, out=x)
r_index_add: NDArray[np.float32] = librepdl.index_add(x=x, index=x, source=x, axis=1, alpha=0.5, out=x)
r_embedding_backward: NDArray[np.float32] = librepdl.embedding_backward(g=x, indices=x, rows=1, padding_idx=1,
    scale_grad_by_freq=True, out=x)
r_scatter_add: NDArray[np.float32] = librepdl.scatter_add(x=x, index=x, source=x, axis=1, alpha=0.5, out=x)
r_var: NDArray[np.float32] = librepdl.var(x=x, axis=(1, 1), keepdims=True, correction=0.5, ddof=0.5, out=x)
r_stddev: NDArray[np.float32] = librepdl.stddev(x=x, axis=(1, 1), keepdims=True, correction=0.5, ddof=0.5, out=x)
librepdl.std
r_var_mean_statistics: tuple[NDArray[np.float32], NDArray[np.float32]] = librepdl.var_mean(x=x, axis=(1, 1),
    keepdims=True, correction=0.5, ddof=0.5, out=(x, x), statistics=True)
r_var_mean: NDArray[np.float32] = librepdl.var_mean(x=x, axis=(1, 1), keepdims=True, correction=0.5, ddof=0.5, out=x)
r_sum_squares: NDArray[np.float32] = librepdl.sum_squares(x=x, axis=(1, 1), keepdims=True, out=x)
r_vector_norm: NDArray[np.float32] = librepdl.vector_norm(x=x, p=0.5, axis=(1, 1), keepdims=True, out=x)
r_max_pool2d_with_indices: tuple[NDArray[np.float32], Any] = librepdl.max_pool2d_with_indices(x=x, kernel=(1, 1),
    stride=(1, 1), padding=(1, 1), dilation=(1, 1), ceil_mode=True, out=[x])
r_adaptive_max_pool2d: NDArray[np.float32] = librepdl.adaptive_max_pool2d(x=x, size=(1, 1), out=x)
r_adaptive_max_pool2d_with_indices: tuple[NDArray[np.float32], Any] = librepdl.adaptive_max_pool2d_with_indices(x=x,
    size=(1, 1), out=[x])
r_adaptive_max_pool2d_backward: NDArray[np.float32] = librepdl.adaptive_max_pool2d_backward(g=x, x=x, out=x)
r_adaptive_avg_pool2d: NDArray[np.float32] = librepdl.adaptive_avg_pool2d(x=x, size=(1, 1), out=x)
r_adaptive_avg_pool2d_backward: NDArray[np.float32] = librepdl.adaptive_avg_pool2d_backward(g=x, size=(1, 1), out=x)
r_nll_loss_statistics: tuple[NDArray[np.float32], NDArray[np.float32]] = librepdl.nll_loss(x=x, targets=x, weight=x,
    axis=1, reduction="mean", ignore_index=1, out=(x, x), statistics=True)
r_nll_loss: NDArray[np.float32] = librepdl.nll_loss(x=x, targets=x, weight=x, axis=1, reduction="mean",
    ignore_index=1, out=x)
r_nll_loss_backward: NDArray[np.float32] = librepdl.nll_loss_backward(g=x, x=x, targets=x, weight=x, total_weight=x,
    axis=1, reduction="mean", ignore_index=1, out=x)
r_total_norm: Any = librepdl.total_norm(x=[x], p=0.5)
r_clip_grad_norm: Any = librepdl.clip_grad_norm(grad=[x], max_norm=0.5, p=0.5)
r_cross_entropy_probabilities: NDArray[np.float32] = librepdl.cross_entropy_probabilities(logits=x, probabilities=x,
    weight=x, axis=1, reduction="mean", label_smoothing=0.5, out=x)
r_cross_entropy_probabilities_backward: NDArray[np.float32] = librepdl.cross_entropy_probabilities_backward(g=x,
    logits=x, probabilities=x, weight=x, axis=1, reduction="mean", label_smoothing=0.5, out=x)
r_exponential: Any = g.exponential(shape=(1, 1), dtype=np.float32, rate=0.5, out=x, like=None)
r_linspace: Any = librepdl.linspace(start=0.5, stop=0.5, num=1, dtype=np.float32, out=x, like=None)
r_arange: Any = librepdl.arange(start=0.5, stop=0.5, step=0.5, dtype=np.float32, count=1, out=x, like=None)
r_upsample_nearest2d: NDArray[np.float32] = librepdl.upsample_nearest2d(x=x, size=(1, 1), scale_h=0.5, scale_w=0.5,
    exact=True, out=x)
r_upsample_nearest2d_backward: NDArray[np.float32] = librepdl.upsample_nearest2d_backward(g=x, size=(1, 1),
    scale_h=0.5, scale_w=0.5, exact=True, out=x)
r_multinomial: Any = g.multinomial(x=x, num_samples=1, replacement=True, out=x)
r_cumsum: Any = librepdl.cumsum(x=x, axis=1, out=x)
r_prod: Any = librepdl.prod(x=x, axis=(1, 1), keepdims=True, out=x)
r_cumprod: Any = librepdl.cumprod(x=x, axis=1, out=x)
r_logcumsumexp: NDArray[np.float32] = librepdl.logcumsumexp(x=x, axis=1, out=x)
r_ldexp: NDArray[np.float32] = librepdl.ldexp(x=x, n=x, out=x)
r_frexp: tuple[NDArray[np.float32], Any] = librepdl.frexp(x=x, out=[x])
r_attention_statistics: tuple[NDArray[np.float32], NDArray[np.float32]] = librepdl.attention(q=x, k=x, v=x, mask=x,
    slopes=x, scale=0.5, causal=True, bottom_right=True, left=1, right=1, dropout=0.5, seed=1, stream=1, out=(x, x),
    lse=True)
r_attention: NDArray[np.float32] = librepdl.attention(q=x, k=x, v=x, mask=x, slopes=x, scale=0.5, causal=True,
    bottom_right=True, left=1, right=1, dropout=0.5, seed=1, stream=1, out=x)
r_attention_backward: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]] = librepdl.attention_backward(
    g=x, q=x, k=x, v=x, y=x, lse=x, mask=x, slopes=x, scale=0.5, causal=True, bottom_right=True, left=1, right=1,
    dropout=0.5, seed=1, stream=1, out=[x])
r_conv3d: NDArray[np.float32] = librepdl.conv3d(x=x, w=x, bias=x, stride=(1, 1), padding=(1, 1), dilation=(1, 1),
    groups=1, accumulate="mean", out=x)
r_conv3d_grad_input: NDArray[np.float32] = librepdl.conv3d_grad_input(g=x, w=x, size=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), groups=1, accumulate="mean", out=x)
r_conv3d_grad_weight: NDArray[np.float32] = librepdl.conv3d_grad_weight(g=x, x=x, kernel=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), groups=1, accumulate="mean", out=x)
r_conv3d_grad_bias: NDArray[np.float32] = librepdl.conv3d_grad_bias(g=x, out=x)
r_max_pool3d: NDArray[np.float32] = librepdl.max_pool3d(x=x, kernel=(1, 1), stride=(1, 1), padding=(1, 1),
    dilation=(1, 1), ceil_mode=True, out=x)
r_max_pool3d_with_indices: tuple[NDArray[np.float32], Any] = librepdl.max_pool3d_with_indices(x=x, kernel=(1, 1),
    stride=(1, 1), padding=(1, 1), dilation=(1, 1), ceil_mode=True, out=[x])
r_max_pool3d_backward: NDArray[np.float32] = librepdl.max_pool3d_backward(g=x, x=x, kernel=(1, 1), stride=(1, 1),
    padding=(1, 1), dilation=(1, 1), ceil_mode=True, out=x)
r_avg_pool3d: NDArray[np.float32] = librepdl.avg_pool3d(x=x, kernel=(1, 1), stride=(1, 1), padding=(1, 1),
    count_include_pad=True, ceil_mode=True, divisor_override=1, out=x)
r_avg_pool3d_backward: NDArray[np.float32] = librepdl.avg_pool3d_backward(g=x, kernel=(1, 1), size=(1, 1),
    stride=(1, 1), padding=(1, 1), count_include_pad=True, ceil_mode=True, divisor_override=1, out=x)
r_adaptive_max_pool3d: NDArray[np.float32] = librepdl.adaptive_max_pool3d(x=x, size=(1, 1), out=x)
r_adaptive_max_pool3d_with_indices: tuple[NDArray[np.float32], Any] = librepdl.adaptive_max_pool3d_with_indices(x=x,
    size=(1, 1), out=[x])
r_adaptive_max_pool3d_backward: NDArray[np.float32] = librepdl.adaptive_max_pool3d_backward(g=x, x=x, out=x)
r_adaptive_avg_pool3d: NDArray[np.float32] = librepdl.adaptive_avg_pool3d(x=x, size=(1, 1), out=x)
r_adaptive_avg_pool3d_backward: NDArray[np.float32] = librepdl.adaptive_avg_pool3d_backward(g=x, size=(1, 1), out=x)
r_upsample_linear: NDArray[np.float32] = librepdl.upsample_linear(x=x, size=(1, 1), align_corners=True, scale_d=0.5,
    scale_h=0.5, scale_w=0.5, out=x)
r_upsample_linear_backward: NDArray[np.float32] = librepdl.upsample_linear_backward(g=x, size=(1, 1),
    align_corners=True, scale_d=0.5, scale_h=0.5, scale_w=0.5, out=x)
r_upsample_cubic: NDArray[np.float32] = librepdl.upsample_cubic(x=x, size=(1, 1), align_corners=True, scale_d=0.5,
    scale_h=0.5, scale_w=0.5, out=x)
r_upsample_cubic_backward: NDArray[np.float32] = librepdl.upsample_cubic_backward(g=x, size=(1, 1),
    align_corners=True, scale_d=0.5, scale_h=0.5, scale_w=0.5, out=x)
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
