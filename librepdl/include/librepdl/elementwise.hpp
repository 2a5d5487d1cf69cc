// Elementwise operations. Generated from librepdl/ops/elementwise.def by tools/gen_elementwise.py; do not edit.
//
// All of them: tensors of any strides; the inputs have one of the formats that are listed, and broadcast by NumPy's rule;
// `out` has their format where no other is said, and the broadcast shape, may be exactly one of the inputs, and must not
// overlap them otherwise. Options are coefficients: exact doubles, 0 or of magnitude in [2^-200, 2^200]. Each output
// element is the exact value of the formula, rounded once; NaN results are the canonical quiet NaN (except neg, abs and
// copysign, which only touch the sign bit). Zeros, infinities: IEEE 754 and C23 Annex F. Errors: input_count, operand_dtype,
// attribute_value, broadcast, output_shape, output_dtype, device_mismatch, overlap, output_self_overlap.
#pragma once

// clang-format off
#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// The options of add.
struct add_options {
  double alpha = 1;  ///< the coefficient of y
};
/// out = x + alpha * y; f16, bf16, f32, f64
void add(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out, const add_options& options = {});
/// The options of sub.
struct sub_options {
  double alpha = 1;  ///< the coefficient of y
};
/// out = x - alpha * y; f16, bf16, f32, f64
void sub(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out, const sub_options& options = {});
/// out = x * y; f16, bf16, f32, f64
void mul(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x / y; f16, bf16, f32, f64
void div(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x * y + z; f16, bf16, f32, f64
void fma(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out);
/// out = -x; f16, bf16, f32, f64
void neg(context& ctx, const_tensor_view x, tensor_view out);
/// out = |x|; f16, bf16, f32, f64
void abs(context& ctx, const_tensor_view x, tensor_view out);
/// out = sqrt(x); f16, bf16, f32, f64
void sqrt(context& ctx, const_tensor_view x, tensor_view out);
/// out = max(x, y), NaN wins, -0 < +0; f16, bf16, f32, f64
void maximum(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = min(x, y), NaN wins, -0 < +0; f16, bf16, f32, f64
void minimum(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x < y; f16, bf16, f32, f64, out is boolean
void less(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x^y; f16, bf16, f32
void pow(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = max(x, +0); f16, bf16, f32
void relu(context& ctx, const_tensor_view x, tensor_view out);
/// The options of leaky_relu.
struct leaky_relu_options {
  double slope = 0.01;  ///< the coefficient of x <= 0
};
/// out = x > 0 ? x : slope * x; f16, bf16, f32
void leaky_relu(context& ctx, const_tensor_view x, tensor_view out, const leaky_relu_options& options = {});
/// out = e^x; f16, bf16, f32
void exp(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln x; f32
void log(context& ctx, const_tensor_view x, tensor_view out);
/// out = tanh x; f32
void tanh(context& ctx, const_tensor_view x, tensor_view out);
/// out = 1 / (1 + e^-x); f32
void sigmoid(context& ctx, const_tensor_view x, tensor_view out);
/// out = x > 0 or x is NaN ? g : +0; f16, bf16, f32
void relu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * (1 - y^2); f32
void tanh_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g * y * (1 - y); f32
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
/// The options of addcmul.
struct addcmul_options {
  double value = 1;  ///< the coefficient of y z
};
/// out = x + value * y * z; f16, bf16, f32
void addcmul(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out, const addcmul_options& options = {});
/// The options of addcdiv.
struct addcdiv_options {
  double value = 1;  ///< the coefficient of y / z
};
/// out = x + value * y / z; f16, bf16, f32
void addcdiv(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out, const addcdiv_options& options = {});
/// out = x + weight * (end - x); f16, bf16, f32
void lerp(context& ctx, const_tensor_view x, const_tensor_view end, const_tensor_view weight, tensor_view out);
/// The options of lerp_scalar.
struct lerp_scalar_options {
  double weight = 0.5;  ///< the coefficient of end - x
};
/// out = x + weight * (end - x); f16, bf16, f32
void lerp_scalar(context& ctx, const_tensor_view x, const_tensor_view end, tensor_view out, const lerp_scalar_options& options = {});
/// out = x > 0 ? x : w * x; f16, bf16, f32
void prelu(context& ctx, const_tensor_view x, const_tensor_view w, tensor_view out);
/// out = x > 0 ? g : w * g; f16, bf16, f32
void prelu_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view w, tensor_view out);
/// out = sqrt(x^2 + y^2); f16, bf16, f32
void hypot(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x - y trunc(x / y), a zero with the sign of x; f16, bf16, f32, f64
void fmod(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x - y floor(x / y), a zero with the sign of y; f16, bf16, f32, f64
void remainder(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = trunc(x / y); f16, bf16, f32, f64
void div_trunc(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = floor(x / y); f16, bf16, f32, f64
void div_floor(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x ln y; f16, bf16, f32
void xlogy(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = ln(e^x + e^y); f16, bf16, f32
void logaddexp(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// The options of elu.
struct elu_options {
  double alpha = 1;  ///< the coefficient of e^(rate x) - 1
  double scale = 1;  ///< the coefficient of both branches
  double rate = 1;  ///< the coefficient of x in the exponent
};
/// out = x <= 0 ? scale * alpha * (e^(rate * x) - 1) : scale * x; f16, bf16, f32
void elu(context& ctx, const_tensor_view x, tensor_view out, const elu_options& options = {});

}  // namespace repdl
