// The operations, as functions. Every floating-point output element is the correctly rounded value of the exact result.
//
// Common to all: tensors are f32 unless said otherwise, of any strides, on the context's device; outputs are allocated
// by the caller with the shape that infer() (dynamic.hpp) gives, and share no memory with inputs. Errors are thrown
// before anything is written: invalid_argument for shapes, axes, element counts; unsupported for element types.
#pragma once

#include "librepdl/context.hpp"
#include "librepdl/elementwise.hpp"
#include "librepdl/export.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// out = x rounded to out's format (IEEE 754 conversion, one rounding); f16, bf16, f32, f64 in any pair. The same
/// format copies the bits. Otherwise NaN becomes the canonical quiet NaN.
void convert(context& ctx, const_tensor_view x, tensor_view out);

/// out = the sum of x over the axes, rounded once. NaN if a term is NaN or infinities of both signs occur, else an
/// infinite term; an exact zero, an empty sum too, is +0.
void sum(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// out = (exact sum) / count, rounded once; NaN over no elements.
void mean(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// The greatest element: NaN wins (canonical), -0 < +0. Over no elements: invalid_argument.
void max(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// The least element: NaN wins (canonical), -0 < +0. Over no elements: invalid_argument.
void min(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// The first index of max(x), row-major within the reduced axes; out i64. argmax([-0, +0]) = 1, unlike NumPy.
void argmax(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// The first index of min(x), row-major within the reduced axes; out i64.
void argmin(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});

/// out (rank 0) = the sum of x_k * y_k over two vectors of one length, rounded once; empty: +0.
void dot(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);

/// out (..., m, n) = a (..., m, k) times b (..., k, n), + bias, each element rounded once (accumulate::exact) or by the
/// contract's FMA chain (accumulate::fma_chain). Batch axes broadcast. k = 0 gives +0, or the bias.
/// Source of the certificate: S. M. Rump, "Error estimation of floating-point summation and dot product", BIT 52
/// (2012).
void matmul(context& ctx, const_tensor_view a, const_tensor_view b, tensor_view out,
            const matmul_options& options = {});

/// out = low + (high - low) u, rounded once, u uniform on [0, 1) from Philox4x32-10 (J. K. Salmon et al., SC11;
/// contract, section 6); out f16, bf16, f32 or f64. Element i depends only on (seed, stream, i). Uses one stream value.
void uniform(context& ctx, generator& g, tensor_view out, const uniform_options& options = {});
/// out (i64, rank 1) = a permutation of 0 .. n-1: the indices sorted by 64-bit Philox words, ties by index. Uses one
/// stream value.
void permutation(context& ctx, generator& g, tensor_view out);

}  // namespace repdl
