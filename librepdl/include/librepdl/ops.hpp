// The operations, as functions. Every floating-point output element is the correctly rounded value of the exact result.
//
// Common to all: tensors have any strides and are on the context's device, and formats that docs/operations.md lists for each
// operation; operands and results have one, where nothing else is said. Outputs are allocated by the caller with
// the shape that infer() (dynamic.hpp) gives, and share no memory with inputs. Errors are thrown before anything is
// written: invalid_argument for shapes, axes, element counts; unsupported for element types. The one exception is
// error_site::undecided (context_options::last_tier_bits), found at the end of the work: what the output then holds is
// unspecified.
#pragma once

#include <span>

#include "librepdl/context.hpp"
#include "librepdl/elementwise.hpp"
#include "librepdl/export.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// out = x in out's type, every element type in any pair. To f16, bf16, f32, f64, f8_e5m2: rounded (IEEE 754 conversion, one
/// rounding); NaN becomes the canonical quiet NaN. To f8_e4m3fn, which has no infinities: likewise, but what rounds to beyond 448
/// is NaN; `saturate`. To i32, i64: the fraction is dropped, then the nearest number of the
/// type is taken; NaN becomes 0. To bool: x != 0, so NaN is true; a boolean is any byte, and written as 0 or 1. The same
/// type otherwise copies the bits.
void convert(context& ctx, const_tensor_view x, tensor_view out, const convert_options& options = {});

/// Reductions: operands of one type, which is that of a number that comes out. From sum to argmin and prod also of i64, i32 and bool: then a sum
/// or product is i64, modulo 2^64, and a mean f64.
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

/// out (rank 0) = the sum of x_k * y_k over two vectors of one length and one format, f16, bf16 or f32, rounded once; empty: +0.
void dot(context& ctx, const_tensor_view x, const_tensor_view y, tensor_view out);

/// out = the sum of x^2 over the axes, rounded once, by the rules for sums.
void sum_squares(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// out = the product of x over the axes, rounded once: no partial product overflows or underflows. NaN if an element is NaN, or one is
/// infinite and one 0; infinities and zeros have the exclusive or of all signs; over no elements 1. A long product so close to a midpoint that
/// last_tier_bits do not tell on which side it lies is `undecided` (librepdl/ops/scans/prefix.hpp).
void prod(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});

/// The norm of x over the axes: p = 1, the sum of |x|; 2, the root of the exact sum of x^2, rounded once; inf and -inf, the greatest
/// and the least |x|, of nothing an invalid_argument. NaN where an element is NaN, and, but for the least, else +inf where one is
/// infinite. Over no elements: +0. Any other p: invalid_argument.
/// Source of the root: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE Trans. Comput. 57 (2008):
/// rounding to odd.
void vector_norm(context& ctx, const_tensor_view x, tensor_view out, const vector_norm_options& options = {});

/// The gradient of prelu at its weight: out = the sum over the axes of x > 0 ? +0 : g * x, rounded once; of g and x of one
/// shape and one format, f16, bf16 or f32. All axes for a weight of one element, all but that of the channels for one each.
void prelu_backward_w(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view out,
                      const reduce_options& options = {});

/// out (..., m, n) = alpha a (..., m, k) times b (..., k, n), + beta bias, each element rounded once (accumulate::exact),
/// a and b of one format, f16, bf16, f32 or f64, out of that or a wider one (f32 or f64 of 16 bits, f64 of f32), bias of either; or by the
/// contract's FMA chain (accumulate::fma_chain), in f32 and without factors. Batch axes broadcast. k = 0 gives +0, or beta bias.
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

/// out (rank 1, f16, bf16, f32 or f64), of n elements: out_i = start + i (end - start) / (n - 1), rounded once; start
/// for n = 1.
void linspace(context& ctx, tensor_view out, const linspace_options& options);
/// out (rank 1, f16, bf16, f32 or f64): out_i = start + i step, rounded once.
void arange(context& ctx, tensor_view out, const arange_options& options = {});

/// out = mean + stddev sqrt(-2 ln u1) cos(2 pi u2) for even i, sin for odd i, rounded once; u1 in (0, 1] and u2 in
/// [0, 1) from Philox4x32-10 (Box and Muller, Ann. Math. Stat. 29 (1958); contract, section 6); out f16, bf16, f32 or
/// f64. Uses one stream value.
void normal(context& ctx, generator& g, tensor_view out, const normal_options& options = {});
/// out = -ln u / rate, rounded once, u in (0, 1) from Philox4x32-10 (contract, section 6), never 0: at least the least
/// positive number; out f16, bf16, f32 or f64. Uses one stream value.
void exponential(context& ctx, generator& g, tensor_view out, const exponential_options& options = {});
/// out (boolean) = true with probability p (rounded up to a multiple of 2^-32). Uses one stream value.
void bernoulli(context& ctx, generator& g, tensor_view out, double p = 0.5);
/// out (i64) = low + floor(W (high - low) / 2^64), W 64 random bits. Uses one stream value.
void randint(context& ctx, generator& g, tensor_view out, const randint_options& options);
/// Places of x (weights >= 0, f16, bf16, f32 or f64; (rows, n) or (n)), drawn in proportion to the weights of their row: out (i64), (rows,
/// samples) or (samples). With replacement the first i with C_i 2^64 > W C_n, C_i the exact sum of the weights up to i and W 64
/// random bits; without the places of the least keys RN_f64(-ln u_i / x_i), in their order, equal ones (infinities, too) by place
/// (contract, section 6). A row with a weight that is negative, infinite or NaN, or with too few that are not 0, is an error. Uses one
/// stream value.
void multinomial(context& ctx, generator& g, const_tensor_view x, tensor_view out,
                 const multinomial_options& options = {});
/// out = +0 where a bernoulli(p) draw is true, else x / (1 - p), rounded once; 0 <= p <= 1. Uses one stream value.
void dropout(context& ctx, generator& g, const_tensor_view x, tensor_view out, double p = 0.5);
/// The same for the gradient: `g` is the generator as it was before dropout().
void dropout_backward(context& ctx, const generator& g, const_tensor_view grad, tensor_view grad_x, double p = 0.5);

// ---- convolution and pooling
//
// Images are (n, channels, h, w), kernels (output channels, input channels / groups, kh, kw); channels-last is a matter
// of strides. A tap on padding is absent: it is not a product with zero. Output sizes:
// floor((h + top + bottom - dilation.h (kh - 1) - 1) / stride.h) + 1. Of pooling with ceil_mode the quotient is rounded up, and a
// last window that would begin behind the image, at h + top or later, is left out. Formats: f16, bf16, f32 or f64, all operands
// and the result of one.

/// out (n, o, oh, ow) = the cross-correlation of x with w, + bias_o, each element rounded once (accumulate::exact) or
/// by the contract's FMA chain over input channel, kernel row, kernel column, in f32.
void conv2d(context& ctx, const_tensor_view x, const_tensor_view w, tensor_view out,
            const conv2d_options& options = {});
/// grad_x (n, c, h, w): the gradient of conv2d for g, the gradient of its output; grad_x's sizes say which image. It does not depend
/// on the bias, which is no operand of it: options that have one are an invalid_argument. Chain order: output channel, kernel row, kernel column.
void conv2d_backward_x(context& ctx, const_tensor_view g, const_tensor_view w, tensor_view grad_x,
                       const conv2d_options& options = {});
/// grad_w (o, c / groups, kh, kw), likewise without a bias. Chain order: sample, output row, output column.
void conv2d_backward_w(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_w,
                       const conv2d_options& options = {});
/// grad_bias (o) = the sum of g over samples, rows and columns, rounded once.
void conv2d_backward_bias(context& ctx, const_tensor_view g, tensor_view grad_bias);

/// out (n, c, oh, ow) = the greatest element of each window: NaN wins (canonical), -0 < +0.
void max_pool2d(context& ctx, const_tensor_view x, tensor_view out, const max_pool2d_options& options);
/// grad_x = the exact sum, rounded once, of g over the windows whose first greatest element (row-major) is here.
void max_pool2d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x,
                         const max_pool2d_options& options);
/// out (n, c, oh, ow) = (exact sum of the window) / count, rounded once; NaN for a count of 0. The count: of the present taps; with
/// count_include_pad, of the taps on the padded image; or divisor_override, which may be negative.
void avg_pool2d(context& ctx, const_tensor_view x, tensor_view out, const avg_pool2d_options& options);
/// grad_x = the exact sum of g / count over the windows that hold the element, rounded once.
void avg_pool2d_backward(context& ctx, const_tensor_view g, tensor_view grad_x, const avg_pool2d_options& options);
/// max_pool2d, and indices (i64, out's shape): row h + column of the first greatest element (the first NaN) in its plane.
void max_pool2d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                             const max_pool2d_options& options);
/// out (n, c, size.h, size.w) = the greatest element of each window, in the order of max_pool2d. Window i has the rows from
/// floor(i h / size.h) up to and without ceil((i + 1) h / size.h), likewise columns.
void adaptive_max_pool2d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool2d_options& options);
/// That, and indices as those of max_pool2d_with_indices.
void adaptive_max_pool2d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                                      const adaptive_pool2d_options& options);
/// grad_x = the exact sum, rounded once, of g over the windows whose first greatest element (row-major) is here. g is of the shape
/// that adaptive_max_pool2d gave.
void adaptive_max_pool2d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x);
/// out (n, c, size.h, size.w) = the exact mean of each window of adaptive_max_pool2d, rounded once; of an empty image NaN.
void adaptive_avg_pool2d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool2d_options& options);
/// grad_x = the exact sum, rounded once, over the windows that hold the element of g / the size of the window.
void adaptive_avg_pool2d_backward(context& ctx, const_tensor_view g, tensor_view grad_x);

// Of three spatial axes: images are (n, channels, d, h, w), kernels (output channels, input channels / groups, kd, kh, kw). The chain orders
// of conv3d have depth before the rows.
void conv3d(context& ctx, const_tensor_view x, const_tensor_view w, tensor_view out,
            const conv3d_options& options = {});
void conv3d_backward_x(context& ctx, const_tensor_view g, const_tensor_view w, tensor_view grad_x,
                       const conv3d_options& options = {});
void conv3d_backward_w(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_w,
                       const conv3d_options& options = {});
void conv3d_backward_bias(context& ctx, const_tensor_view g, tensor_view grad_bias);
void max_pool3d(context& ctx, const_tensor_view x, tensor_view out, const max_pool3d_options& options);
/// indices: (slice h + row) w + column.
void max_pool3d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                             const max_pool3d_options& options);
void max_pool3d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x,
                         const max_pool3d_options& options);
void avg_pool3d(context& ctx, const_tensor_view x, tensor_view out, const avg_pool3d_options& options);
void avg_pool3d_backward(context& ctx, const_tensor_view g, tensor_view grad_x, const avg_pool3d_options& options);
void adaptive_max_pool3d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool3d_options& options);
void adaptive_max_pool3d_with_indices(context& ctx, const_tensor_view x, tensor_view out, tensor_view indices,
                                      const adaptive_pool3d_options& options);
void adaptive_max_pool3d_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x);
void adaptive_avg_pool3d(context& ctx, const_tensor_view x, tensor_view out, const adaptive_pool3d_options& options);
void adaptive_avg_pool3d_backward(context& ctx, const_tensor_view g, tensor_view grad_x);

/// out (n, c, oh, ow) = x (n, c, h, w) at row min(floor(i r), h - 1), with exact min(floor((i + 1/2) r), h - 1), and
/// column likewise: bits are kept. r = h / oh, or 1 / scale_h exactly, for the double that it is.
void upsample_nearest2d(context& ctx, const_tensor_view x, tensor_view out,
                        const upsample_nearest2d_options& options = {});
/// grad_x = the exact sum, rounded once, of g over the pixels that are taken from here; +0 where none is.
void upsample_nearest2d_backward(context& ctx, const_tensor_view g, tensor_view grad_x,
                                 const upsample_nearest2d_options& options = {});

/// out = the sum of the weights of pixels times x, exactly, rounded once. x (n, c, w), (n, c, h, w) or (n, c, d, h, w). Element i along an axis
/// lies at u = max((i + 1/2) r - 1/2, 0), r = h / oh, or 1 / scale exactly; with align_corners at i (h - 1) / (oh - 1), at 0 for oh = 1. With
/// i0 = min(floor(u), h - 1) pixel i0 has the weight 1 - t and pixel min(i0 + 1, h - 1) the weight t = min(u - i0, 1), and weights of an element
/// are products of those along the axes. A pixel whose weight is 0 is not looked at.
void upsample_linear(context& ctx, const_tensor_view x, tensor_view out, const interpolation_options& options = {});
/// grad_x = the exact sum, rounded once, of g times the weights that the pixel has in upsample_linear; +0 where there are none.
void upsample_linear_backward(context& ctx, const_tensor_view g, tensor_view grad_x,
                              const interpolation_options& options = {});
/// As upsample_linear, but u = (i + 1/2) r - 1/2 may be below 0, and pixels i0 - 1 to i0 + 2, at the ends that of the border, have the weights
/// of cubic convolution with A = -3/4; those of one pixel add up.
void upsample_cubic(context& ctx, const_tensor_view x, tensor_view out, const interpolation_options& options = {});
/// grad_x = the exact sum, rounded once, of g times the weights that the pixel has in upsample_cubic.
void upsample_cubic_backward(context& ctx, const_tensor_view g, tensor_view grad_x,
                             const interpolation_options& options = {});

// ---- prefixes
//
// Each output element is the exact value of the elements up to its place along the axis, rounded once. Along a line of any length the
// work grows with the length. Of f16, bf16, f32 or f64, all of one format, which is the result's; of i64, i32 and bool, but for
// logcumsumexp, i64, modulo 2^64.

/// out_i = the sum of x_0 to x_i along the axis, by the rules for sums.
void cumsum(context& ctx, const_tensor_view x, tensor_view out, const scan_options& options = {});
/// out_i = the product of x_0 to x_i along the axis, as prod.
void cumprod(context& ctx, const_tensor_view x, tensor_view out, const scan_options& options = {});
/// out_i = ln sum of e^x_0 to e^x_i along the axis, as logsumexp.
void logcumsumexp(context& ctx, const_tensor_view x, tensor_view out, const scan_options& options = {});

// ---- exponents

/// out = x 2^n, rounded once, subnormal results too; n of i64 or i32, which broadcasts with x. Zeros and infinities stay what they are for
/// every n.
void ldexp(context& ctx, const_tensor_view x, const_tensor_view n, tensor_view out);
/// x = significand 2^exponent, exactly, with a significand of magnitude in [1/2, 1) and x's sign, and an exponent of i32. Of zeros,
/// infinities and NaN the significand is x and the exponent 0.
void frexp(context& ctx, const_tensor_view x, tensor_view significand, tensor_view exponent);

// ---- attention

/// out_i = (sum_j e^(a_j) v_j) / (sum_j e^(a_j)) over the keys that are present, a_j = scale q_i . k_j + slope (j - i - off) + mask_ij, and
/// lse_i = ln(sum_j e^(a_j)): scores, weights and sums exact, each result rounded once. Nothing of the size Lq x Lk is in memory.
///
/// q (.., H, Lq, D), k (.., G, Lk, D), v (.., G, Lk, E) and out (.., H, Lq, E) of f16, bf16, f32 or f64, G a divisor of H: head h of q goes with head
/// floor(h G / H) of k and v; tensors of two axes have no heads. mask: bool, true where a key takes part, or of q's format, added, and -inf
/// where a key is absent; broadcast to (.., H, Lq, Lk). slopes (H) and lse (.., H, Lq): f32, lse of f64 f64. A query without keys has +0, and lse -inf. Absent keys
/// are not looked at; a score NaN or +inf makes its query NaN. With options.dropout p the first sum is without keys that are dropped, and results are
/// divided by 1 - p inside their rounding; a score's draw is the generator's word of its place in row-major order. Errors: attention_shape, broadcast, operand_dtype, operand_rank, attribute_value.
///
/// Source: A. Vaswani et al., "Attention is all you need" (2017); linear biases: O. Press et al. (2021).
void attention(context& ctx, const_tensor_view q, const_tensor_view k, const_tensor_view v, tensor_view out,
               const attention_options& options = {}, const_tensor_view mask = {}, const_tensor_view slopes = {},
               tensor_view lse = {});

/// The gradients of sum g y, y and lse as attention gives them, in their formats: with P_ij = e^(a_ij - lse_i) and T_ij = g_i . v_j - g_i . y_i
/// of keys j that are present beside queries i
///     grad_q_i = scale sum_j P_ij T_ij k_j,   grad_k_j = scale sum_i P_ij T_ij q_i,   grad_v_j = sum_i P_ij g_i,
/// sums of keys over the queries of all heads that go with theirs; each element is rounded once. Nothing of the size Lq x Lk is in memory.
///
/// g and y (.., H, Lq, E), lse (.., H, Lq) of f32, or f64, the others and the options as of attention; gradients have the shapes of q, k and v. A sum of
/// no terms is +0. Errors: as attention.
///
/// Source: T. Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness" (2022), algorithm 4.
void attention_backward(context& ctx, const_tensor_view g, const_tensor_view q, const_tensor_view k,
                        const_tensor_view v, const_tensor_view y, const_tensor_view lse, tensor_view grad_q,
                        tensor_view grad_k, tensor_view grad_v, const attention_options& options = {},
                        const_tensor_view mask = {}, const_tensor_view slopes = {});

/// attention of sequences of different lengths that lie one behind the other: sequence i has the rows of q, out and lse from q_offsets[i] to
/// q_offsets[i + 1] - 1, and those of k and v likewise by k_offsets; its results are those of attention for it alone, with heads before rows,
/// the same options and slopes, and, for dropout, stream + i. A call for each sequence, on views: nothing is copied.
///
/// q (Lq, H, D), k (Lk, G, D), v (Lk, G, E) and out (Lq, H, E), the rows of all sequences; lse (H, Lq). Offsets, i32 or i64, one more than there
/// are sequences, on the context's device or the CPU: from 0, never descending, to Lq or Lk; the call waits for their values. Errors: as
/// attention; index_range.
void attention_varlen(context& ctx, const_tensor_view q, const_tensor_view k, const_tensor_view v,
                      const_tensor_view q_offsets, const_tensor_view k_offsets, tensor_view out,
                      const attention_options& options = {}, const_tensor_view slopes = {}, tensor_view lse = {});
/// The gradients of sum g y, y and lse as attention_varlen gives them: those of attention_backward for each sequence alone.
void attention_varlen_backward(context& ctx, const_tensor_view g, const_tensor_view q, const_tensor_view k,
                               const_tensor_view v, const_tensor_view y, const_tensor_view lse,
                               const_tensor_view q_offsets, const_tensor_view k_offsets, tensor_view grad_q,
                               tensor_view grad_k, tensor_view grad_v, const attention_options& options = {},
                               const_tensor_view slopes = {});

/// Rotary position embedding. Along the last axis of x, of an even size d, elements i and i + d / 2 are a pair, or with options.interleaved 2i and
/// 2i + 1; of a pair (x1, x2), the i-th, and the numbers c of cos and s of sin at i
///     out1 = x1 c - x2 s,   out2 = x2 c + x1 s,
/// each rounded once: difference_of_products and sum_of_products of views. x and out of one shape, cos and sin broadcast to that shape with d / 2
/// in place of d; all of one format, f16, bf16, f32 or f64; out shares no memory with the others. The gradient of sum g out at x is rotary(g, cos,
/// sin) with options.inverse. Errors: as elementwise operations; attention_shape, operand_rank.
///
/// Source: J. Su et al., "RoFormer: enhanced transformer with rotary position embedding" (2021).
void rotary(context& ctx, const_tensor_view x, const_tensor_view cos, const_tensor_view sin, tensor_view out,
            const rotary_options& options = {});

// ---- softmax and losses
//
// One rounding per output element, the whole formula inside it. An element -inf has weight 0; a row with NaN, +inf or
// only -inf is NaN. Near-ties are decided with multi-limb exponentials and logarithms (librepdl/ops/rows/
// exponential_sum.hpp). Operands are f16, bf16, f32 or f64, all of one format, which is the result's; of softmax and
// log_softmax it may be another one: x is not rounded to it, the result once.

/// out_i = e^x_i / sum of e^x_j along the axis.
void softmax(context& ctx, const_tensor_view x, tensor_view out, const softmax_options& options = {});
/// out_i = x_i - ln sum of e^x_j along the axis.
void log_softmax(context& ctx, const_tensor_view x, tensor_view out, const softmax_options& options = {});
/// out = ln sum of e^x over the axes: NaN if any is NaN, else +inf if any is, -inf over nothing or only -inf.
void logsumexp(context& ctx, const_tensor_view x, tensor_view out, const reduce_options& options = {});
/// The mean, the sum, or each of logsumexp(row) - row[target]; targets are i64 of the logits' shape without the class
/// axis; out is a scalar (rank 0) or has the targets' shape. A target outside the classes that is not ignore_index
/// makes its terms NaN; the mean over nothing is NaN. With weights w or label smoothing s a row's loss is the sum of a_c (logsumexp(row) -
/// row_c), a_c = (1 - s) w_t (c = t) + w_c s / classes, t the target, terms with a_c = 0 being absent, and the mean divides by the sum of
/// w_t; a weight with a part in a row that is infinite or NaN makes it NaN, a target outside the classes also the sum of w_t.
/// C. Szegedy and others, "Rethinking the Inception architecture for computer vision", CVPR 2016: smoothing.
///
/// Targets may be probabilities p instead, of the shape and the format of the logits, which need not add up to 1; ignore_index is then
/// not to be given. The mean over rows, the sum, or each of sum over c of a_c (logsumexp(row) - row_c), a_c = w_c ((1 - s) p_c + s /
/// classes): terms with a_c = 0 are absent. A weight or probability that is infinite or NaN makes its row NaN; a row without classes is
/// +0. out is a scalar or has the logits' shape without the class axis. One rounding for each output.
void cross_entropy(context& ctx, const_tensor_view logits, const_tensor_view targets, tensor_view out,
                   const cross_entropy_options& options = {});

/// grad_x_i = y_i (g_i - sum of g_j y_j along the axis), y the output of softmax.
void softmax_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view grad_x,
                      const softmax_options& options = {});
/// grad_x_i = g_i - e^y_i sum of g_j along the axis, y the output of log_softmax.
void log_softmax_backward(context& ctx, const_tensor_view g, const_tensor_view y, tensor_view grad_x,
                          const softmax_options& options = {});
/// grad_x_i = g e^x_i / sum of e^x_j over the axes; g has the shape of logsumexp's output.
void logsumexp_backward(context& ctx, const_tensor_view g, const_tensor_view x, tensor_view grad_x,
                        const reduce_options& options = {});
/// grad_logits_i = g (softmax(row)_i - (i = target)), divided by the number of rows not ignored for the mean; g has the
/// shape of cross_entropy's output. With weights, smoothing or probabilities: g (A softmax(row)_i - a_i), A the sum of a_c; of
/// probabilities divided by the number of rows for the mean.
void cross_entropy_backward(context& ctx, const_tensor_view g, const_tensor_view logits, const_tensor_view targets,
                            tensor_view grad_logits, const cross_entropy_options& options = {});

/// cross_entropy and its gradient, whose targets are probabilities.
REPDL_DEPRECATED("cross_entropy")
void cross_entropy_probabilities(context& ctx, const_tensor_view logits, const_tensor_view probabilities,
                                 tensor_view out, const cross_entropy_probabilities_options& options = {});
REPDL_DEPRECATED("cross_entropy_backward")
void cross_entropy_probabilities_backward(context& ctx, const_tensor_view g, const_tensor_view logits,
                                          const_tensor_view probabilities, tensor_view grad_logits,
                                          const cross_entropy_probabilities_options& options = {});

/// The loss at targets: each -w x[target], w = weight[target], or 1; their sum; or their mean, the sum divided by the sum of w. x has the
/// logarithms of probabilities along options.axis (log_softmax makes them); targets are i64 of x's shape without that axis; out is a scalar
/// (rank 0) or has the targets' shape. total_weight, a scalar, f32 or, where x is, f64, becomes the sum of w. A target outside the
/// classes that is not ignore_index makes its terms NaN; rows with ignore_index take no part. The mean over nothing is NaN. One rounding
/// of each result, the quotient of the exact sums included.
void nll_loss(context& ctx, const_tensor_view x, const_tensor_view targets, tensor_view out,
              const nll_loss_options& options = {}, tensor_view total_weight = {});
/// grad_x_i = -g weight[i] where i is the row's target, for the mean divided by total_weight, which it then needs: as nll_loss gave it,
/// rounded; +0 elsewhere. NaN in a row whose target is outside the classes. g has the shape of nll_loss's output; x gives its shape alone.
void nll_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view targets,
                       tensor_view grad_x, const nll_loss_options& options = {}, const_tensor_view total_weight = {});

/// The mean, the sum, or each of (x - t)^2, |x - t|, and of d = x - t
///   smooth_l1_loss   |d| < beta ? d^2 / (2 beta) : |d| - beta / 2
///   huber_loss       |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)
/// f16, bf16 or f32, x and t broadcast; out is a scalar (rank 0) or has their broadcast shape. A sum or mean is the exact one
/// of the exact elements, rounded once; over nothing +0, or NaN.
void mse_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
              const loss_options& options = {});
void l1_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out, const loss_options& options = {});
void smooth_l1_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                    const smooth_l1_loss_options& options = {});
void huber_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                const huber_loss_options& options = {});
/// ln(1 + e^(-t x)), t of any value, though it is 1 or -1 mostly.
void soft_margin_loss(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                      const loss_options& options = {});
/// grad_x, of the broadcast shape of x and t: g times the derivative, divided by the number of elements for the mean, one
/// rounding; g has the shape of the loss.
///   mse_loss_backward         2 g d
///   l1_loss_backward          d > 0 ? g : d < 0 ? -g : +0
///   smooth_l1_loss_backward   |d| < beta ? g d / beta : as l1_loss_backward
///   huber_loss_backward       |d| <= delta ? g d : +-g delta
///   soft_margin_loss_backward -g t / (1 + e^(t x))
void mse_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, tensor_view grad_x,
                       const loss_options& options = {});
void l1_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, tensor_view grad_x,
                      const loss_options& options = {});
void smooth_l1_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                             tensor_view grad_x, const smooth_l1_loss_options& options = {});
void huber_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                         tensor_view grad_x, const huber_loss_options& options = {});
void soft_margin_loss_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                               tensor_view grad_x, const loss_options& options = {});

/// The mean, the sum, or each of w ((1 - t) x + (1 + (q - 1) t) ln(1 + e^-x)), w = options.weight, q = options.pos_weight,
/// which broadcast too; x = +inf: w (1 - t) inf, -inf: w q t inf, +0 where that factor is 0.
void binary_cross_entropy_with_logits(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                                      const binary_cross_entropy_with_logits_options& options = {});
/// grad_x = g w ((1 - t) / (1 + e^-x) - q t / (1 + e^x)), divided as the gradients above.
void binary_cross_entropy_with_logits_backward(context& ctx, const_tensor_view g, const_tensor_view x,
                                               const_tensor_view t, tensor_view grad_x,
                                               const binary_cross_entropy_with_logits_options& options = {});
/// The mean, the sum, or each of w (t min(-ln x, 100) + (1 - t) min(-ln(1 - x), 100)); NaN for x outside [0, 1].
void binary_cross_entropy(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
                          const binary_cross_entropy_options& options = {});
/// grad_x = g w (x - t) / max(x (1 - x), 10^-12) with the decimal, divided as the gradients above.
void binary_cross_entropy_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t,
                                   tensor_view grad_x, const binary_cross_entropy_options& options = {});
/// The mean, the sum, the sum over the size of the first axis, or each of t (ln t - x), x a logarithm: +0 for t = 0 and a
/// finite x, NaN for t < 0; with log_target e^t (t - x), -0 for t = -inf and a finite x.
void kl_div(context& ctx, const_tensor_view x, const_tensor_view t, tensor_view out,
            const kl_div_options& options = {});
/// grad_x = -g t, with log_target -g e^t, divided as the sum was; x gives its shape alone.
void kl_div_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view t, tensor_view grad_x,
                     const kl_div_options& options = {});

// ---- normalisation
//
// A row is what is normalised over; m is its exact mean, v its exact variance, the mean of (x - m)^2. Each element of out is
// one formula of x, weight, bias and eps, rounded once: rounded statistics take no part in it. Those are outputs of their own,
// for backward operations: mean = m and rstd = 1 / sqrt(v + eps) of each row, each rounded once, of the shape of x without the
// axes that are normalised over; absent, they are not written. x, weight, bias, out and their gradients have one format, f16, bf16, f32
// or f64, but that weight and bias may be f32 beside 16 bits; statistics are f32, of f64 f64.

/// out = (x - m) / sqrt(v + eps) * weight + bias, rows along the axes; weight and bias have x's sizes along them.
/// J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", arXiv:1607.06450 (2016).
void layer_norm(context& ctx, const_tensor_view x, tensor_view out, const layer_norm_options& options = {},
                const norm_statistics& of_rows = {});
/// out = x / sqrt(q + eps) * weight, q the exact mean of x^2 along the axes; rstd = 1 / sqrt(q + eps), or absent.
/// B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.
void rms_norm(context& ctx, const_tensor_view x, tensor_view out, const rms_norm_options& options,
              tensor_view rstd = {});
/// As layer_norm, of x (samples, channels, ...): a row is a group of neighbouring channels of a sample. weight and bias have
/// one element for each channel; the statistics are (samples, groups). Y. Wu and K. He, "Group normalization", ECCV 2018.
void group_norm(context& ctx, const_tensor_view x, tensor_view out, const group_norm_options& options = {},
                const norm_statistics& of_rows = {});
/// As layer_norm, in training: a row is a channel of all samples; weight, bias and the statistics have one element for each.
/// Averages over several batches: batch_norm_running. S. Ioffe and C. Szegedy, "Batch normalization: accelerating deep network
/// training by reducing internal covariate shift", ICML 2015.
void batch_norm(context& ctx, const_tensor_view x, tensor_view out, const batch_norm_options& options = {},
                const norm_statistics& of_rows = {});

// Gradients take the statistics as they are given, h = (x - mean) rstd, and round once. Statistics that are not finite make all
// gradients to x of their row NaN. The gradient to a bias is the sum of g.

/// grad_x = rstd (t - (sum of t) / n - h (sum of t h) / n), t = g * weight, n and the sums those of a row.
void layer_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                         const_tensor_view rstd, tensor_view grad_x, const layer_norm_backward_options& options = {});
/// grad_x = rstd (t - h (sum of t h) / n), t = g * weight, h = x rstd.
void rms_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view rstd,
                       tensor_view grad_x, const layer_norm_backward_options& options = {});
void group_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                         const_tensor_view rstd, tensor_view grad_x, const group_norm_backward_options& options = {});
void batch_norm_backward(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                         const_tensor_view rstd, tensor_view grad_x, const batch_norm_backward_options& options = {});
/// grad_weight = the sum of g h over all elements that the weight was a factor of; groups, axis: the forward operation's.
void layer_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                                const_tensor_view rstd, tensor_view grad_weight, const axis_list& axis = -1);
void rms_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view rstd,
                              tensor_view grad_weight, const axis_list& axis = -1);
void group_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                                const_tensor_view rstd, tensor_view grad_weight, std::int64_t groups);
void batch_norm_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x, const_tensor_view mean,
                                const_tensor_view rstd, tensor_view grad_weight, std::int64_t axis = 1);

// batch_norm with statistics over several batches: f32, of f64 f64 (of batch_norm_running those of x's format, too), one for each channel.

/// batch_norm, and what a batch of n elements a channel makes of the running statistics, of its exact m and v, rounded once each:
/// updated.mean = (1 - momentum) running_mean + momentum m, updated.var = (1 - momentum) running_var + momentum v n / (n - 1);
/// the latter is NaN where n is 1. What is updated may be what was given (the same view), or absent, as of_rows.
/// Source: as batch_norm, section 3.1, with a moving average.
void batch_norm_running(context& ctx, const_tensor_view x, const_tensor_view running_mean,
                        const_tensor_view running_var, tensor_view out, const running_statistics& updated,
                        const batch_norm_running_options& options = {}, const norm_statistics& of_rows = {});
/// out = (x - running_mean) / sqrt(running_var + eps) * weight + bias, rounded once; NaN where running_var + eps < 0.
void batch_norm_inference(context& ctx, const_tensor_view x, const_tensor_view running_mean,
                          const_tensor_view running_var, tensor_view out, const batch_norm_options& options = {});
/// grad_x = g * weight / sqrt(running_var + eps), rounded once.
void batch_norm_inference_backward(context& ctx, const_tensor_view g, const_tensor_view running_var, tensor_view grad_x,
                                   const batch_norm_inference_backward_options& options = {});
/// grad_weight = (the sum of g (x - running_mean) over a channel) / sqrt(running_var + eps), rounded once; NaN where
/// running_mean or running_var is not finite. The gradient to the bias is the sum of g.
void batch_norm_inference_backward_weight(context& ctx, const_tensor_view g, const_tensor_view x,
                                          const_tensor_view running_mean, const_tensor_view running_var,
                                          tensor_view grad_weight, std::int64_t axis = 1, double eps = 1e-5);

// ---- statistics

/// out = (the sum of (x - m)^2 over the axes) / (count - correction), m their exact mean: one formula, rounded once. x
/// and out are f16, bf16 or f32, of one format. All equal: +0. NaN where an element is NaN or infinite, and where
/// count - correction <= 0.
/// T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance", Am. Stat. 37 (1983).
void var(context& ctx, const_tensor_view x, tensor_view out, const var_options& options = {});
/// out = the root of what var is, exact within the one rounding. (The name std is the language's.)
void stddev(context& ctx, const_tensor_view x, tensor_view out, const var_options& options = {});
/// var, and the mean by the rules for sums, which may be absent.
void var_mean(context& ctx, const_tensor_view x, tensor_view var, tensor_view mean, const var_options& options = {});

// ---- sums to places given by indices
//
// f16, bf16 or f32, indices i64. An element that several indices name gets the exact sum of what is added there, rounded once:
// neither the order of the indices nor threads matter. An index out of range is an invalid_argument error; a call on a GPU
// cannot throw it, so that synchronize() does, and what the output then holds is unspecified.

/// out = x + alpha * (the sum of source's slices along the axis whose index is here), rounded once; where no index is x itself,
/// with its bits. index (n); source of x's shape, but n along the axis; 0 <= index < x's size there. By the rules for sums; an
/// exact zero is +0. out may be x.
void index_add(context& ctx, const_tensor_view x, const_tensor_view index, const_tensor_view source, tensor_view out,
               const index_add_options& options = {});
/// The same where each element of source has an index of its own: element i of index says where source_i goes along the axis. index
/// has x's rank, and along each axis at most source's size, and x's but along the axis.
void scatter_add(context& ctx, const_tensor_view x, const_tensor_view index, const_tensor_view source, tensor_view out,
                 const index_add_options& options = {});
/// grad_weight (rows, dim) = the sum of g over the places with the row's number, divided by how many they are if asked for,
/// rounded once; +0 in row padding_idx and where there are none. indices of any shape, in [0, rows); g (indices' shape, dim).
void embedding_backward(context& ctx, const_tensor_view g, const_tensor_view indices, tensor_view grad_weight,
                        const embedding_backward_options& options = {});

// ---- optimisers
//
// Many tensors in one call, updated in place. Every new state and the new parameter is one formula of the old tensors,
// the gradient and the doubles given, rounded once; the parameter's update reads the rounded new state. Parameters and
// gradients of a call have one format, f16, bf16, f32 or f64; states are f32, of f64 f64; all tensors of a parameter have its shape.

struct sgd_tensor {
  tensor_view param;
  const_tensor_view grad;
  tensor_view velocity{};  ///< absent with momentum 0
};
/// velocity = momentum velocity + (1 - dampening)(grad + weight_decay param), at the first step grad + weight_decay
/// param; param -= lr velocity, with nesterov lr (grad + weight_decay param + momentum velocity); without momentum
/// param -= lr (grad + weight_decay param).
void sgd(context& ctx, std::span<const sgd_tensor> tensors, const sgd_options& options = {});

struct adamw_tensor {
  tensor_view param;
  const_tensor_view grad;
  tensor_view first_moment;
  tensor_view second_moment;
};
/// I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019, with c_i = 1 - beta_i^step rounded
/// to binary64.
void adamw(context& ctx, std::span<const adamw_tensor> tensors, const adamw_options& options = {});

// ---- norms of lists
//
// Many tensors of any shapes and of one format, f16, bf16, f32 or f64, as one vector. The norm is exact, whatever its size and theirs.

/// out, a scalar of their format, = RN(N): N the sum of |x| over all elements of all tensors (p = 1), the root of the sum of x^2
/// (2), the greatest |x| (inf). A NaN among them: NaN; else an infinity: +inf. Of no elements +0 (out is f32 where there are no
/// tensors).
void total_norm(context& ctx, std::span<const const_tensor_view> tensors, tensor_view out,
                const total_norm_options& options = {});
/// out[i] = RN(grads[i] * min(1, max_norm / (N + 10^-6))), N the norm of all gradients and 10^-6 the decimal, both exact: one
/// rounding. Where the factor is 1 the bits stay. N = inf: the factor is 0; N = NaN: everything is NaN. out has a tensor for each of
/// grads, of its shape, and may be exactly that. total_norm, which may be absent, = RN(N).
void clip_grad_norm(context& ctx, std::span<const const_tensor_view> grads, std::span<const tensor_view> out,
                    const clip_grad_norm_options& options = {}, tensor_view total_norm = {});

}  // namespace repdl
