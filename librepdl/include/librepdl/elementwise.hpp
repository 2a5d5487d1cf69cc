// Elementwise operations. Generated from librepdl/ops/elementwise/elementwise.def by tools/gen_elementwise.py; do not edit.
//
// All of them: tensors of any strides; the inputs have one of the formats that are listed, but for those that are
// boolean (bytes, true unless 0), and broadcast by NumPy's rule; `out` has their format where no other is said, and the broadcast shape, may be exactly one of the inputs, and must not
// overlap them otherwise. On a GPU a floating-point input of rank 0, beside another input, may also lie in host memory: a number,
// taken by the call. Options are doubles: coefficients, 0 or of magnitude in [2^-200, 2^200], where nothing else is said;
// `nonzero`, `nonnegative` and `positive` ones are coefficients != 0, >= 0 and > 0; a `margin` is in [0, 1/2], or NaN: absent; a `threshold` is compared as it is, any number but NaN; a `value`, any number or NaN, is
// rounded to the inputs' format first; an `upper` one is a value that is not below the option before. Each output element is
// the exact value of the formula, rounded once; NaN results are the canonical quiet NaN (except those of bit operations: the
// contract, section 2). Zeros, infinities: IEEE 754 and C23 Annex F. Errors: input_count, operand_dtype,
// attribute_value, broadcast, output_shape, output_dtype, device_mismatch, overlap, output_self_overlap.
#pragma once

// clang-format off
#include <limits>
#include <optional>

#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// The options of add.
struct add_options {
  double alpha = 1;  ///< the coefficient of y
};
/// out = x + alpha * y; f16, bf16, f32, f64; out has any of these formats
void add(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out, const add_options& options = {});
/// The options of sub.
struct sub_options {
  double alpha = 1;  ///< the coefficient of y
};
/// out = x - alpha * y; f16, bf16, f32, f64; out has any of these formats
void sub(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out, const sub_options& options = {});
/// out = x * y; f16, bf16, f32, f64; out has any of these formats
void mul(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x / y; f16, bf16, f32, f64; out has any of these formats
void div(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x * y + z; f16, bf16, f32, f64; out has any of these formats
void fma(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out);
/// out = -x; f16, bf16, f32, f64
void neg(context& ctx, const_tensor_view x, tensor_view out);
/// out = |x|; f16, bf16, f32, f64
void abs(context& ctx, const_tensor_view x, tensor_view out);
/// out = sqrt(x); f16, bf16, f32, f64; out has any of these formats
void sqrt(context& ctx, const_tensor_view x, tensor_view out);
/// out = max(x, y), NaN wins, -0 < +0; f16, bf16, f32, f64
void maximum(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = min(x, y), NaN wins, -0 < +0; f16, bf16, f32, f64
void minimum(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x < y; f16, bf16, f32, f64, out is boolean
void less(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x^y; f16, bf16, f32, f64
void pow(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = max(x, +0); f16, bf16, f32, f64
void relu(context& ctx, const_tensor_view x, tensor_view out);
/// The options of leaky_relu.
struct leaky_relu_options {
  double slope = 0.01;  ///< the coefficient of x <= 0
};
/// out = x > 0 ? x : slope * x; f16, bf16, f32, f64
void leaky_relu(context& ctx, const_tensor_view x, tensor_view out, const leaky_relu_options& options = {});
/// out = e^x; f16, bf16, f32, f64
void exp(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln x; f16, bf16, f32, f64
void log(context& ctx, const_tensor_view x, tensor_view out);
/// out = tanh x; f16, bf16, f32, f64
void tanh(context& ctx, const_tensor_view x, tensor_view out);
/// out = 1 / (1 + e^-x); f16, bf16, f32, f64
void sigmoid(context& ctx, const_tensor_view x, tensor_view out);
/// out = x > 0 or x is NaN ? g : +0; f16, bf16, f32, f64
void relu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * (1 - y^2); f16, bf16, f32, f64
void tanh_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g * y * (1 - y); f16, bf16, f32, f64
void sigmoid_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = x * x; f16, bf16, f32, f64
void square(context& ctx, const_tensor_view x, tensor_view out);
/// out = 1 / x; f16, bf16, f32, f64
void reciprocal(context& ctx, const_tensor_view x, tensor_view out);
/// out = the largest integer <= x, a zero with the sign of x; f16, bf16, f32, f64
void floor(context& ctx, const_tensor_view x, tensor_view out);
/// out = the smallest integer >= x, a zero with the sign of x; f16, bf16, f32, f64
void ceil(context& ctx, const_tensor_view x, tensor_view out);
/// out = x without its fraction, a zero with the sign of x; f16, bf16, f32, f64
void trunc(context& ctx, const_tensor_view x, tensor_view out);
/// out = the nearest integer, ties to even, a zero with the sign of x; f16, bf16, f32, f64
void round(context& ctx, const_tensor_view x, tensor_view out);
/// out = x - trunc x; f16, bf16, f32, f64
void frac(context& ctx, const_tensor_view x, tensor_view out);
/// out = x > 0 ? 1 : x < 0 ? -1 : x; f16, bf16, f32, f64
void sign(context& ctx, const_tensor_view x, tensor_view out);
/// out = max(x, y), NaN only where both are, -0 < +0; f16, bf16, f32, f64
void fmax(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = min(x, y), NaN only where both are, -0 < +0; f16, bf16, f32, f64
void fmin(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = |x| with the sign of y; f16, bf16, f32, f64
void copysign(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x = y; f16, bf16, f32, f64, out is boolean
void equal(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = not x = y; f16, bf16, f32, f64, out is boolean
void not_equal(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x <= y; f16, bf16, f32, f64, out is boolean
void less_equal(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x > y; f16, bf16, f32, f64, out is boolean
void greater(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x >= y; f16, bf16, f32, f64, out is boolean
void greater_equal(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x is NaN; f16, bf16, f32, f64, out is boolean
void isnan(context& ctx, const_tensor_view x, tensor_view out);
/// out = x is an infinity; f16, bf16, f32, f64, out is boolean
void isinf(context& ctx, const_tensor_view x, tensor_view out);
/// out = x is finite; f16, bf16, f32, f64, out is boolean
void isfinite(context& ctx, const_tensor_view x, tensor_view out);
/// out = the sign bit of x, of NaN too; f16, bf16, f32, f64, out is boolean
void signbit(context& ctx, const_tensor_view x, tensor_view out);
/// The options of clamp.
struct clamp_options {
  double min = -std::numeric_limits<double>::infinity();  ///< the lower bound (value)
  double max = std::numeric_limits<double>::infinity();  ///< the upper bound (value)
};
/// out = min(max(x, min), max), NaN wins, -0 < +0; f16, bf16, f32, f64
void clamp(context& ctx, const_tensor_view x, tensor_view out, const clamp_options& options = {});
/// out = min(max(x, lo), hi), NaN wins, -0 < +0; f16, bf16, f32, f64
void clip(context& ctx, const_tensor_view x, const_tensor_view lo, const_tensor_view hi, tensor_view out);
/// The options of clamp_backward.
struct clamp_backward_options {
  double min = -std::numeric_limits<double>::infinity();  ///< the lower bound (value)
  double max = std::numeric_limits<double>::infinity();  ///< the upper bound (value)
};
/// out = x >= min and x <= max ? g : +0; f16, bf16, f32, f64
void clamp_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const clamp_backward_options& options = {});
/// The options of hardtanh.
struct hardtanh_options {
  double min_val = -1;  ///< the lower bound (value)
  double max_val = 1;  ///< the upper bound (upper)
};
/// out = min(max(x, min_val), max_val), NaN wins, -0 < +0; f16, bf16, f32, f64
void hardtanh(context& ctx, const_tensor_view x, tensor_view out, const hardtanh_options& options = {});
/// The options of hardtanh_backward.
struct hardtanh_backward_options {
  double min_val = -1;  ///< the lower bound (value)
  double max_val = 1;  ///< the upper bound (upper)
};
/// out = x <= min_val or x >= max_val ? +0 : g; f16, bf16, f32, f64
void hardtanh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const hardtanh_backward_options& options = {});
/// The options of threshold.
struct threshold_options {
  double threshold = 0;  ///< what x is compared with (threshold)
  double value = 0;  ///< the result up to it (value)
};
/// out = x <= threshold ? value : x; f16, bf16, f32, f64
void threshold(context& ctx, const_tensor_view x, tensor_view out, const threshold_options& options = {});
/// The options of threshold_backward.
struct threshold_backward_options {
  double threshold = 0;  ///< what x is compared with (threshold)
};
/// out = x <= threshold ? +0 : g; f16, bf16, f32, f64
void threshold_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const threshold_backward_options& options = {});
/// The options of hardshrink.
struct hardshrink_options {
  double lambd = 0.5;  ///< the bound of what becomes 0 (threshold)
};
/// out = x >= -lambd and x <= lambd ? +0 : x; f16, bf16, f32, f64
void hardshrink(context& ctx, const_tensor_view x, tensor_view out, const hardshrink_options& options = {});
/// The options of hardshrink_backward.
struct hardshrink_backward_options {
  double lambd = 0.5;  ///< the bound of what becomes 0 (threshold)
};
/// out = x >= -lambd and x <= lambd ? +0 : g; f16, bf16, f32, f64
void hardshrink_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const hardshrink_backward_options& options = {});
/// The options of nan_to_num.
struct nan_to_num_options {
  double nan = 0;  ///< in place of NaN (value)
  std::optional<double> posinf;  ///< in place of +inf (value); absent: the largest number of the format
  std::optional<double> neginf;  ///< in place of -inf (value); absent: -the largest number of the format
};
/// out = x is NaN ? nan : x = inf ? posinf : x = -inf ? neginf : x; f16, bf16, f32, f64
void nan_to_num(context& ctx, const_tensor_view x, tensor_view out, const nan_to_num_options& options = {});
/// out = cond ? x : y; f16, bf16, f32, f64, cond is boolean
void where(context& ctx, const_tensor_view cond, const_tensor_view x, const_tensor_view y, tensor_view out);
/// The options of masked_fill.
struct masked_fill_options {
  double value = 0;  ///< of the masked elements (value)
};
/// out = mask ? value : x; f16, bf16, f32, f64, mask is boolean
void masked_fill(context& ctx, const_tensor_view x, const_tensor_view mask, tensor_view out, const masked_fill_options& options = {});
/// out = x and y; all but 0 are true, NaN too; f16, bf16, f32, f64, boolean, out is boolean
void logical_and(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x or y; all but 0 are true, NaN too; f16, bf16, f32, f64, boolean, out is boolean
void logical_or(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x or y, not both; all but 0 are true, NaN too; f16, bf16, f32, f64, boolean, out is boolean
void logical_xor(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = not x; all but 0 are true, NaN too; f16, bf16, f32, f64, boolean, out is boolean
void logical_not(context& ctx, const_tensor_view x, tensor_view out);
/// out = sin x; f16, bf16, f32, f64
void sin(context& ctx, const_tensor_view x, tensor_view out);
/// out = cos x; f16, bf16, f32, f64
void cos(context& ctx, const_tensor_view x, tensor_view out);
/// out = 2 / sqrt(pi) * integral of e^-t^2 from 0 to x; f16, bf16, f32, f64
void erf(context& ctx, const_tensor_view x, tensor_view out);
/// out = 1 - erf x; f16, bf16, f32, f64
void erfc(context& ctx, const_tensor_view x, tensor_view out);
/// out = x / 2 * (1 + erf(x / sqrt 2)); f16, bf16, f32, f64
void gelu(context& ctx, const_tensor_view x, tensor_view out);
/// out = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))); f16, bf16, f32, f64
void gelu_tanh(context& ctx, const_tensor_view x, tensor_view out);
/// out = 2^x; f16, bf16, f32, f64
void exp2(context& ctx, const_tensor_view x, tensor_view out);
/// out = e^x - 1; f16, bf16, f32, f64
void expm1(context& ctx, const_tensor_view x, tensor_view out);
/// out = log2 x; f16, bf16, f32, f64
void log2(context& ctx, const_tensor_view x, tensor_view out);
/// out = log10 x; f16, bf16, f32, f64
void log10(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln(1 + x); f16, bf16, f32, f64
void log1p(context& ctx, const_tensor_view x, tensor_view out);
/// out = 1 / sqrt(x); f16, bf16, f32, f64
void rsqrt(context& ctx, const_tensor_view x, tensor_view out);
/// out = -ln(1 + e^-x); f16, bf16, f32, f64
void log_sigmoid(context& ctx, const_tensor_view x, tensor_view out);
/// out = x / (1 + e^-x); f16, bf16, f32, f64
void silu(context& ctx, const_tensor_view x, tensor_view out);
/// out = x * tanh(ln(1 + e^x)); f16, bf16, f32, f64
void mish(context& ctx, const_tensor_view x, tensor_view out);
/// out = x <= 0 ? s * a * (e^x - 1) : s * x; f16, bf16, f32, f64
void selu(context& ctx, const_tensor_view x, tensor_view out);
/// out = x - tanh x; f16, bf16, f32, f64
void tanhshrink(context& ctx, const_tensor_view x, tensor_view out);
/// out = x / (1 + |x|); f16, bf16, f32, f64
void softsign(context& ctx, const_tensor_view x, tensor_view out);
/// out = min(max(x, +0), 6); f16, bf16, f32, f64
void relu6(context& ctx, const_tensor_view x, tensor_view out);
/// out = x <= -3 ? +0 : x < 3 ? (x + 3) / 6 : x is NaN ? NaN : 1; f16, bf16, f32, f64
void hardsigmoid(context& ctx, const_tensor_view x, tensor_view out);
/// out = x <= -3 ? -0 : x < 3 ? x * (x + 3) / 6 : x; f16, bf16, f32, f64
void hardswish(context& ctx, const_tensor_view x, tensor_view out);
/// out = g / (1 + |x|)^2; f16, bf16, f32, f64
void softsign_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = x <= 0 or x >= 6 ? +0 : g; f16, bf16, f32, f64
void relu6_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = x > -3 and x < 3 ? g / 6 : +0; f16, bf16, f32, f64
void hardsigmoid_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = x <= -3 ? +0 : x < 3 ? g * (x / 3 + 1 / 2) : g; f16, bf16, f32, f64
void hardswish_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// The options of addcmul.
struct addcmul_options {
  double value = 1;  ///< the coefficient of y z
};
/// out = x + value * y * z; f16, bf16, f32, f64
void addcmul(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out, const addcmul_options& options = {});
/// The options of addcdiv.
struct addcdiv_options {
  double value = 1;  ///< the coefficient of y / z
};
/// out = x + value * y / z; f16, bf16, f32, f64
void addcdiv(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out, const addcdiv_options& options = {});
/// out = x + weight * (end - x); f16, bf16, f32, f64
void lerp(context& ctx, const_tensor_view x, const_tensor_view end, const_tensor_view weight, tensor_view out);
/// The options of lerp_scalar.
struct lerp_scalar_options {
  double weight = 0.5;  ///< the coefficient of end - x
};
/// out = x + weight * (end - x); f16, bf16, f32, f64
void lerp_scalar(context& ctx, const_tensor_view x, const_tensor_view end, tensor_view out, const lerp_scalar_options& options = {});
/// out = x > 0 ? x : w * x; f16, bf16, f32, f64
void prelu(context& ctx, const_tensor_view x, const_tensor_view w, tensor_view out);
/// out = x > 0 ? g : w * g; f16, bf16, f32, f64
void prelu_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view w, tensor_view out);
/// out = sqrt(x^2 + y^2); f16, bf16, f32, f64
void hypot(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x - y trunc(x / y), a zero with the sign of x; f16, bf16, f32, f64
void fmod(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x - y floor(x / y), a zero with the sign of y; f16, bf16, f32, f64
void remainder(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = trunc(x / y); f16, bf16, f32, f64
void div_trunc(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = floor(x / y); f16, bf16, f32, f64
void div_floor(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x ln y; f16, bf16, f32, f64
void xlogy(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = ln(e^x + e^y); f16, bf16, f32, f64
void logaddexp(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// The options of elu.
struct elu_options {
  double alpha = 1;  ///< the coefficient of e^(rate x) - 1
  double scale = 1;  ///< the coefficient of both branches
  double rate = 1;  ///< the coefficient of x in the exponent
};
/// out = x <= 0 ? scale * alpha * (e^(rate * x) - 1) : scale * x; f16, bf16, f32, f64
void elu(context& ctx, const_tensor_view x, tensor_view out, const elu_options& options = {});
/// out = g * s * (1 + x * (1 - s)), s = 1 / (1 + e^-x); f16, bf16, f32, f64
void silu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * (t + x * (1 - t^2) / (1 + e^-x)), t = tanh(ln(1 + e^x)); f16, bf16, f32, f64
void mish_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / (1 + e^x); f16, bf16, f32, f64
void log_sigmoid_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * (Phi(x) + x * e^(-x^2 / 2) / sqrt(2 pi)), Phi(x) = (1 + erf(x / sqrt 2)) / 2; f16, bf16, f32, f64
void gelu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * s * (1 + (1 - s) * sqrt(8 / pi) * (x + 0.134145 * x^3)), s = 1 / (1 + e^(-sqrt(8 / pi) * (x + 0.044715 * x^3))); f16, bf16, f32, f64
void gelu_tanh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// The options of leaky_relu_backward.
struct leaky_relu_backward_options {
  double slope = 0.01;  ///< the coefficient of g where x <= 0
};
/// out = x > 0 ? g : slope * g; f16, bf16, f32, f64
void leaky_relu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const leaky_relu_backward_options& options = {});
/// The options of elu_backward.
struct elu_backward_options {
  double alpha = 1;  ///< the coefficient of e^(rate x) - 1
  double scale = 1;  ///< the coefficient of both branches
  double rate = 1;  ///< the coefficient of x in the exponent
};
/// out = x <= 0 ? g * scale * alpha * rate * e^(rate * x) : g * scale; f16, bf16, f32, f64
void elu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const elu_backward_options& options = {});
/// out = x <= 0 ? g * s * a * e^x : g * s; f16, bf16, f32, f64
void selu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// The options of celu.
struct celu_options {
  double alpha = 1;  ///< the coefficient, and the divisor of x (nonzero)
};
/// out = x <= 0 ? alpha * (e^(x / alpha) - 1) : x; f16, bf16, f32, f64
void celu(context& ctx, const_tensor_view x, tensor_view out, const celu_options& options = {});
/// The options of celu_backward.
struct celu_backward_options {
  double alpha = 1;  ///< the divisor of x (nonzero)
};
/// out = x <= 0 ? g * e^(x / alpha) : g; f16, bf16, f32, f64
void celu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const celu_backward_options& options = {});
/// The options of softplus.
struct softplus_options {
  double beta = 1;  ///< the coefficient of x (nonzero)
  double threshold = 20;  ///< of beta x, above which the result is x; inf: none (threshold)
};
/// out = beta * x > threshold ? x : ln(1 + e^(beta * x)) / beta; f16, bf16, f32, f64
void softplus(context& ctx, const_tensor_view x, tensor_view out, const softplus_options& options = {});
/// The options of softplus_backward.
struct softplus_backward_options {
  double beta = 1;  ///< the coefficient of x (nonzero)
  double threshold = 20;  ///< of beta x, above which the result is g; inf: none (threshold)
};
/// out = beta * x > threshold ? g : g / (1 + e^(-beta * x)); f16, bf16, f32, f64
void softplus_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const softplus_backward_options& options = {});
/// out = the angle of (x, y), in [-pi, pi]; f16, bf16, f32, f64
void atan2(context& ctx, const_tensor_view y, const_tensor_view x, tensor_view out);
/// out = log2(2^x + 2^y); f16, bf16, f32, f64
void logaddexp2(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// The options of logit.
struct logit_options {
  double eps = std::numeric_limits<double>::quiet_NaN();  ///< x is cut to [eps, 1 - eps] (margin)
};
/// out = ln(z / (1 - z)), z = x < eps ? eps : x > 1 - eps ? 1 - eps : x; f16, bf16, f32, f64
void logit(context& ctx, const_tensor_view x, tensor_view out, const logit_options& options = {});
/// The options of logit_backward.
struct logit_backward_options {
  double eps = std::numeric_limits<double>::quiet_NaN();  ///< beyond eps and 1 - eps the result is 0 (margin)
};
/// out = x < eps or x > 1 - eps ? +0 : g / (x * (1 - x)); f16, bf16, f32, f64
void logit_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const logit_backward_options& options = {});
/// The options of softshrink.
struct softshrink_options {
  double lambd = 0.5;  ///< the bound of what becomes 0 (nonnegative)
};
/// out = x > lambd ? x - lambd : x < -lambd ? x + lambd : x is NaN ? NaN : +0; f16, bf16, f32, f64
void softshrink(context& ctx, const_tensor_view x, tensor_view out, const softshrink_options& options = {});
/// The options of softshrink_backward.
struct softshrink_backward_options {
  double lambd = 0.5;  ///< the bound of what becomes 0 (nonnegative)
};
/// out = x >= -lambd and x <= lambd ? +0 : g; f16, bf16, f32, f64
void softshrink_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const softshrink_backward_options& options = {});
/// out = x > 0 ? g : x < 0 ? -g : x is NaN ? NaN : +0; f16, bf16, f32, f64
void abs_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / (2 * y); f16, bf16, f32, f64
void sqrt_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g / x; f16, bf16, f32, f64
void log_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / (1 + x); f16, bf16, f32, f64
void log1p_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = -g * y^3 / 2; f16, bf16, f32, f64
void rsqrt_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = -g * y^2; f16, bf16, f32, f64
void reciprocal_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g * (y + 1); f16, bf16, f32, f64
void expm1_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = -g * x / y^2; f16, bf16, f32, f64
void div_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x = y ? g / 2 : x < y ? +0 : g; f16, bf16, f32, f64
void maximum_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x = y ? g / 2 : x > y ? +0 : g; f16, bf16, f32, f64
void minimum_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x >= y or y is NaN ? g : +0; f16, bf16, f32, f64
void fmax_backward_x(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x >= y or y is NaN ? +0 : g; f16, bf16, f32, f64
void fmax_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x <= y or y is NaN ? g : +0; f16, bf16, f32, f64
void fmin_backward_x(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x <= y or y is NaN ? +0 : g; f16, bf16, f32, f64
void fmin_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = r = 0 ? +0 : g * x / r; f16, bf16, f32, f64
void hypot_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view r, tensor_view out);
/// out = x = y = 0 ? +0 : g * x / (x^2 + y^2); f16, bf16, f32, f64
void atan2_backward_y(context& ctx, const_tensor_view g, const_tensor_view y, const_tensor_view x, tensor_view out);
/// out = x = y = 0 ? +0 : -g * y / (x^2 + y^2); f16, bf16, f32, f64
void atan2_backward_x(context& ctx, const_tensor_view g, const_tensor_view y, const_tensor_view x, tensor_view out);
/// out = g * (1 - weight); f16, bf16, f32, f64
void lerp_backward_x(context& ctx, const_tensor_view g, const_tensor_view weight, tensor_view out);
/// out = g * (end - x); f16, bf16, f32, f64
void lerp_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view end, tensor_view out);
/// The options of lerp_scalar_backward_x.
struct lerp_scalar_backward_x_options {
  double weight = 0.5;  ///< the coefficient of end - x
};
/// out = g * (1 - weight); f16, bf16, f32, f64
void lerp_scalar_backward_x(context& ctx, const_tensor_view g, tensor_view out, const lerp_scalar_backward_x_options& options = {});
/// The options of addcdiv_backward_z.
struct addcdiv_backward_z_options {
  double value = 1;  ///< the coefficient of y / z
};
/// out = -g * value * y / z^2; f16, bf16, f32, f64
void addcdiv_backward_z(context& ctx, const_tensor_view g, const_tensor_view y, const_tensor_view z, tensor_view out, const addcdiv_backward_z_options& options = {});
/// out = g * x / y; f16, bf16, f32, f64
void xlogy_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x = 0 ? +0 : x is NaN ? NaN : g with the sign that x was given; f16, bf16, f32, f64
void copysign_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = -g * trunc(x / y); f16, bf16, f32, f64
void fmod_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = -g * floor(x / y); f16, bf16, f32, f64
void remainder_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = g / (x ln 2); f16, bf16, f32, f64
void log2_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / (x ln 10); f16, bf16, f32, f64
void log10_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * y * ln 2; f16, bf16, f32, f64
void exp2_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = x = 0 and y <= 0 ? +0 : g ln y; f16, bf16, f32, f64
void xlogy_backward_x(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = g / (1 + e^(y - x)); f16, bf16, f32, f64
void logaddexp_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = g / (1 + 2^(y - x)); f16, bf16, f32, f64
void logaddexp2_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = g cos x; f16, bf16, f32, f64
void sin_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = -g sin x; f16, bf16, f32, f64
void cos_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * 2 / sqrt(pi) * e^(-x^2); f16, bf16, f32, f64
void erf_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = -g * 2 / sqrt(pi) * e^(-x^2); f16, bf16, f32, f64
void erfc_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = y = 0 ? +0 : g * y * x^(y - 1); f16, bf16, f32, f64
void pow_backward_x(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x = 0 and y >= 0 ? +0 : g * x^y * ln x; f16, bf16, f32, f64
void pow_backward_y(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = a / (1 + e^-b); f16, bf16, f32, f64
void glu(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = a / (1 + e^-a) * b; f16, bf16, f32, f64
void swiglu(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = max(a, +0) * b; f16, bf16, f32, f64
void reglu(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = a / 2 * (1 + erf(a / sqrt 2)) * b; f16, bf16, f32, f64
void geglu(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = g * a * s * (1 - s), s = 1 / (1 + e^-b); f16, bf16, f32, f64
void glu_backward_b(context& ctx, const_tensor_view g, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = g * b * s * (1 + a * (1 - s)), s = 1 / (1 + e^-a); f16, bf16, f32, f64
void swiglu_backward_a(context& ctx, const_tensor_view g, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = a > 0 or a is NaN ? g * b : +0; f16, bf16, f32, f64
void reglu_backward_a(context& ctx, const_tensor_view g, const_tensor_view a, const_tensor_view b, tensor_view out);
/// out = g * b * (Phi(a) + a * e^(-a^2 / 2) / sqrt(2 pi)), Phi(a) = (1 + erf(a / sqrt 2)) / 2; f16, bf16, f32, f64
void geglu_backward_a(context& ctx, const_tensor_view g, const_tensor_view a, const_tensor_view b, tensor_view out);
/// The options of pow_scalar.
struct pow_scalar_options {
  double exponent = 2;  ///< the power (real)
};
/// out = x^exponent; f16, bf16, f32, f64
void pow_scalar(context& ctx, const_tensor_view x, tensor_view out, const pow_scalar_options& options = {});
/// The options of scalar_pow.
struct scalar_pow_options {
  double base = 2;  ///< of the power x (real)
};
/// out = base^x; f16, bf16, f32, f64
void scalar_pow(context& ctx, const_tensor_view x, tensor_view out, const scalar_pow_options& options = {});
/// out = lo <= x and x <= hi ? g : +0; f16, bf16, f32, f64
void clip_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view lo, const_tensor_view hi, tensor_view out);
/// out = x < lo and lo < hi ? g : +0; f16, bf16, f32, f64
void clip_backward_lo(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view lo, const_tensor_view hi, tensor_view out);
/// out = x > hi or hi < lo ? g : +0; f16, bf16, f32, f64
void clip_backward_hi(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view lo, const_tensor_view hi, tensor_view out);
/// The options of pow_scalar_backward.
struct pow_scalar_backward_options {
  double exponent = 2;  ///< the power (real)
};
/// out = exponent = 0 ? +0 : g * exponent * x^(exponent - 1); f16, bf16, f32, f64
void pow_scalar_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const pow_scalar_backward_options& options = {});
/// The options of scalar_pow_backward.
struct scalar_pow_backward_options {
  double base = 2;  ///< of the power x (real)
};
/// out = base = 0 and x >= 0 ? +0 : g * base^x * ln base; f16, bf16, f32, f64
void scalar_pow_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out, const scalar_pow_backward_options& options = {});
/// out = y with erf y = x; f16, bf16, f32, f64
void erfinv(context& ctx, const_tensor_view x, tensor_view out);
/// out = x < 0 ? +0 : x > 0 ? 1 : x = 0 ? v : NaN; f16, bf16, f32, f64
void heaviside(context& ctx, const_tensor_view x, const_tensor_view v, tensor_view out);
/// out = the number next to x on the side of y; x = y: y; f16, bf16, f32, f64
void nextafter(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = tan x; f16, bf16, f32, f64
void tan(context& ctx, const_tensor_view x, tensor_view out);
/// out = y in [-pi/2, pi/2] with sin y = x; f16, bf16, f32, f64
void asin(context& ctx, const_tensor_view x, tensor_view out);
/// out = y in [0, pi] with cos y = x; f16, bf16, f32, f64
void acos(context& ctx, const_tensor_view x, tensor_view out);
/// out = y in (-pi/2, pi/2) with tan y = x; f16, bf16, f32, f64
void atan(context& ctx, const_tensor_view x, tensor_view out);
/// out = (e^x - e^-x) / 2; f16, bf16, f32, f64
void sinh(context& ctx, const_tensor_view x, tensor_view out);
/// out = (e^x + e^-x) / 2; f16, bf16, f32, f64
void cosh(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln(x + sqrt(x^2 + 1)); f16, bf16, f32, f64
void asinh(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln(x + sqrt(x^2 - 1)); f16, bf16, f32, f64
void acosh(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln((1 + x) / (1 - x)) / 2; f16, bf16, f32, f64
void atanh(context& ctx, const_tensor_view x, tensor_view out);
/// out = y with y^3 = x; f16, bf16, f32, f64
void cbrt(context& ctx, const_tensor_view x, tensor_view out);
/// out = 10^x; f16, bf16, f32, f64
void exp10(context& ctx, const_tensor_view x, tensor_view out);
/// out = 2^x - 1; f16, bf16, f32, f64
void exp2m1(context& ctx, const_tensor_view x, tensor_view out);
/// out = 10^x - 1; f16, bf16, f32, f64
void exp10m1(context& ctx, const_tensor_view x, tensor_view out);
/// out = log2(1 + x); f16, bf16, f32, f64
void log2p1(context& ctx, const_tensor_view x, tensor_view out);
/// out = log10(1 + x); f16, bf16, f32, f64
void log10p1(context& ctx, const_tensor_view x, tensor_view out);
/// out = sin(pi x); x whole: a zero with the sign of x; f16, bf16, f32, f64
void sinpi(context& ctx, const_tensor_view x, tensor_view out);
/// out = cos(pi x); x halfway between whole numbers: +0; f16, bf16, f32, f64
void cospi(context& ctx, const_tensor_view x, tensor_view out);
/// out = sin(pi x) / cos(pi x); f16, bf16, f32, f64
void tanpi(context& ctx, const_tensor_view x, tensor_view out);
/// out = x = 0 ? 1 : sin(pi x) / (pi x); f16, bf16, f32, f64
void sinc(context& ctx, const_tensor_view x, tensor_view out);
/// out = Phi(x) = (1 + erf(x / sqrt 2)) / 2; f16, bf16, f32, f64
void ndtr(context& ctx, const_tensor_view x, tensor_view out);
/// out = g * (1 + y^2); f16, bf16, f32, f64
void tan_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g / sqrt(1 - x^2); f16, bf16, f32, f64
void asin_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = -g / sqrt(1 - x^2); f16, bf16, f32, f64
void acos_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / (1 + x^2); f16, bf16, f32, f64
void atan_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g cosh x; f16, bf16, f32, f64
void sinh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g sinh x; f16, bf16, f32, f64
void cosh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / sqrt(x^2 + 1); f16, bf16, f32, f64
void asinh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / sqrt(x^2 - 1); f16, bf16, f32, f64
void acosh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g / (1 - x^2); f16, bf16, f32, f64
void atanh_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = ln |gamma(x)|; f16, bf16, f32
void lgamma(context& ctx, const_tensor_view x, tensor_view out);
/// out = gamma(x); f16, bf16, f32
void tgamma(context& ctx, const_tensor_view x, tensor_view out);
/// out = the derivative of ln |gamma(x)|; f16, bf16, f32
void digamma(context& ctx, const_tensor_view x, tensor_view out);
/// out = I_0(x), a modified Bessel function; f16, bf16, f32
void i0(context& ctx, const_tensor_view x, tensor_view out);
/// out = e^-|x| I_0(x); f16, bf16, f32
void i0e(context& ctx, const_tensor_view x, tensor_view out);
/// out = I_1(x), a modified Bessel function; f16, bf16, f32
void i1(context& ctx, const_tensor_view x, tensor_view out);
/// out = e^-|x| I_1(x); f16, bf16, f32
void i1e(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2; f16, bf16, f32, f64
void log_ndtr(context& ctx, const_tensor_view x, tensor_view out);
/// out = y with erfc y = x; f16, bf16, f32, f64
void erfcinv(context& ctx, const_tensor_view x, tensor_view out);
/// out = y with Phi(y) = x, Phi(y) = (1 + erf(y / sqrt 2)) / 2; f16, bf16, f32, f64
void ndtri(context& ctx, const_tensor_view x, tensor_view out);
/// out = g * sqrt(pi) / 2 * e^(y^2); f16, bf16, f32, f64
void erfinv_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g * sqrt(2 pi) * e^(y^2 / 2); f16, bf16, f32, f64
void ndtri_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = x * y + z * w; f16, bf16, f32, f64
void sum_of_products(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, const_tensor_view w, tensor_view out);
/// out = x * y - z * w; f16, bf16, f32, f64
void difference_of_products(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, const_tensor_view w, tensor_view out);

}  // namespace repdl
