// Elementwise operations. Generated from librepdl/ops/elementwise.def by tools/gen_elementwise.py; do not edit.
//
// All of them: f32 tensors of any strides; inputs broadcast by NumPy's rule; `out` has the broadcast shape, may be exactly
// one of the inputs, and must not overlap them otherwise. Each output element is the correctly rounded value of the
// formula; NaN results are the canonical quiet NaN (except neg and abs, which only touch the sign bit). Zeros,
// infinities: IEEE 754 and C23 Annex F. Errors: input_count, operand_dtype, broadcast, output_shape, output_dtype,
// device_mismatch, overlap, output_self_overlap.
#pragma once

// clang-format off
#include "librepdl/context.hpp"
#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// out = x + y
void add(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x - y
void sub(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x * y
void mul(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x / y
void div(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = x * y + z
void fma(context& ctx, const_tensor_view x, const_tensor_view y, const_tensor_view z, tensor_view out);
/// out = -x
void neg(context& ctx, const_tensor_view x, tensor_view out);
/// out = |x|
void abs(context& ctx, const_tensor_view x, tensor_view out);
/// out = sqrt(x)
void sqrt(context& ctx, const_tensor_view x, tensor_view out);
/// out = max(x, y), NaN wins, -0 < +0
void maximum(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = min(x, y), NaN wins, -0 < +0
void minimum(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);
/// out = max(x, +0)
void relu(context& ctx, const_tensor_view x, tensor_view out);
/// out = e^x
void exp(context& ctx, const_tensor_view x, tensor_view out);
/// out = ln x
void log(context& ctx, const_tensor_view x, tensor_view out);
/// out = tanh x
void tanh(context& ctx, const_tensor_view x, tensor_view out);
/// out = 1 / (1 + e^-x)
void sigmoid(context& ctx, const_tensor_view x, tensor_view out);
/// out = x > 0 or x is NaN ? g : +0
void relu_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out);
/// out = g * (1 - y^2)
void tanh_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);
/// out = g * y * (1 - y)
void sigmoid_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view out);

}  // namespace repdl
