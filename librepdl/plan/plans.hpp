// What a backend is given: validated, normalised descriptions of one call. Plain data; strides in elements.
//
// Everything here was checked at the API boundary: shapes agree, pointers are aligned and on the right device, outputs
// do not overlap anything that the operation does not allow. Axes of size 1 are gone and neighbouring axes are merged
// where the strides allow it, so a contiguous tensor has rank 1 (rank 0: a single element). Plans with nothing to
// compute are not handed to a backend.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "librepdl/ops/pair.hpp"
#include "librepdl/ops/structured.hpp"
#include "librepdl/options.hpp"
#include "librepdl/plan/inline_vector.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::plan {

using axes = std::array<std::int64_t, max_rank>;
using ops::pair;

/// Elementwise: out[i] = op(in[0][i], ...) over `rank` axes, row-major, the last one innermost (it is the output's most
/// contiguous one). Broadcast inputs have stride 0.
struct map_plan {
  ops::op_id op;
  int arity;
  int rank;
  std::int64_t count;  // the product of shape
  axes shape;
  struct operand {
    const void* data;
    axes stride;
    dtype type;            // in_type, or boolean
    std::uint64_t number;  // where data is null: a number in host memory, its bits
  } in[ops::most_operands];
  void* out;
  axes out_stride;
  dtype in_type;  // the format of the call: of all inputs but those that the row makes boolean
  dtype out_type;
  double options[ops::option_list::most];
  bool has_options;  // they are not all at their defaults
  /// Calls that run together, this one the first of them (plan/call_list.hpp): of one operation and the same formats, and none writes
  /// what another one reads or writes. Empty: this one alone.
  std::span<const map_plan> list = {};

  /// Whether an elementwise operation has its result in another floating-point format than the operands.
  bool has_other_format() const noexcept {
    return out_type != in_type && op != ops::op_id::convert && ops::row_of(op).has_any_float();
  }
  /// Of a backend's two loops, either of which may be null: `plain` for the defaults, and `with_options`.
  template <class Loops>
  auto loop_of(const Loops& l) const noexcept {
    return l.plain == nullptr || (has_options && l.with_options != nullptr) ? l.with_options : l.plain;
  }
};

/// Reductions: for every index of the kept axes, reduce over all indices of the reduced axes.
/// sum, mean, max, min: out of the inputs' type, but for sums (i64) and means (f64) of integers. argmax, argmin: out i64, the
/// row-major index within the reduced axes as the
/// caller gave them (merging axes keeps it). dot: two inputs, the terms are their products, and one more where there is a
/// bias; of f64 also scaled, alpha times the products' sum and beta times the bias. prelu_weight_backward: likewise, without the terms whose second factor is > 0, and no bias. sum_squares: dot of x and x;
/// vector_norm: that, sum, max or min. var, stddev and var_mean of f64 are var (spreads_of): the second input is the first element of
/// each output's, again and again.
struct reduce_plan {
  ops::op_id op;
  dtype type;  // of the inputs and the bias
  int inputs;  // 1, or 2 for products
  int kept_rank;
  int reduced_rank;
  std::int64_t outputs;  // the product of kept_shape, >= 1
  std::int64_t length;   // the product of reduced_shape, may be 0 (sum, mean, dot)
  axes kept_shape;
  axes reduced_shape;  // row-major, in the order of the input's axes
  struct operand {
    const void* data;
    axes kept_stride;
    axes reduced_stride;
  } in[2];
  void* out;
  axes out_stride;   // along the kept axes
  const void* bias;  // of dot; null: none
  axes bias_stride;  // along the kept axes
  double alpha = 1, beta = 1;
  bool magnitudes;    // of one input: its elements without their signs
  bool root;          // of dot and var: the result's root
  double correction;  // of var
  void* mean;         // of var: the mean of the first input, another output; null: none
  axes mean_stride;   // along the kept axes
  std::optional<dtype>
      other_format;  // of sum, mean and dot: the result's, where that is another floating-point one than type

  bool is_scaled() const noexcept { return alpha != 1 || (bias != nullptr && beta != 1); }
  bool is_spread() const noexcept { return op == ops::op_id::var; }
  bool is_sum() const noexcept {
    using enum ops::op_id;
    return op == sum || op == mean || op == dot || op == prelu_weight_backward || is_spread();
  }
  /// Whether sums are rounded by tests, in tiers: those of integers are exact at once.
  bool is_tested() const noexcept { return is_sum() && ops::is_floating(type); }
  bool drops_positive() const noexcept { return op == ops::op_id::prelu_weight_backward; }
  /// Whether every partial sum, in any order, is a binary64 number: of f16 terms, which are multiples of 2^-24 below 2^16, up to
  /// 2^13 add up to multiples of 2^-24 below 2^29.
  bool is_exact_in_binary64() const noexcept {
    return type == dtype::f16 && inputs == 1 && length <= std::int64_t{1} << 13;
  }
};

using accumulate_kind = repdl::accumulate;

/// Sums of products: matmul, whose batches are its first axes; convolutions and their gradients can be said so, too
/// (below).
///     out[batch][row][column] = alpha * (sum over terms of a[batch][row][term] * b[batch][column][term])
///                             + beta * bias[batch][row][column]
/// Each of the four indices runs over a space, row-major. Where an operand's element lies is affine in the places along
/// the axes of two of them and of the batch; so are its coordinates, if it has any. An element one of whose coordinates
/// is outside [0, size) is absent: its products are no terms, and of out it is not there. Every element of the result
/// is out's for one triple of indices.
///
/// A convolution, for each of one to three dimensions (stride, dilation, padding before: `top`; sizes h, kh and oh of
/// image, kernel and result), groups a batch axis; result pixel y and tap r meet image pixel y * stride + r * dilation
/// - top:
///     forward          row: o      column: n, y     term: c, r    a: kernel   b: image, with that coordinate in [0, h)
///     to the kernel    row: o      column: c, r     term: n, y    a: result   b: image, likewise
///     to the input     row: c      column: n, z     term: o, j    a: kernel   b: result   out: image
/// The last one in phases, so that no term is multiplied whose tap meets no result pixel: with d = gcd(stride,
/// dilation), batch axes r0 in [0, stride / d) and e in [0, d), tap r = r0 + j * (stride / d) meets image pixel z *
/// stride + r0 * dilation + e - top from result pixel z - j * (dilation / d) if e is 0, and otherwise none does. So a's
/// coordinate is r + e * kh in [0, kh), b's that result pixel in [0, oh), and out's that image pixel in [0, h), each of
/// which is one phase's; z begins where phases reach pixel 0.
struct product_plan {
  struct space {
    int rank;            // 0: a single index
    std::int64_t count;  // the product of shape
    axes shape;
  };
  /// first + the places along the axes, times the strides.
  struct affine {
    std::int64_t first;
    axes batch, outer, inner;  // of a: rows and terms; of b: columns and terms; of bias and out: rows and columns
  };
  struct coordinate : affine {
    std::int64_t size;
  };
  /// As an affine number: the place in `data`, in elements. Memory: const void, or void of the output.
  template <class Memory>
  struct operand : affine {
    Memory* data;  // null: no bias
    dtype type;
    int coordinates;  // 0: nothing is absent
    coordinate where[3];

    /// The element of the first indices.
    Memory* begin() const noexcept {
      using byte = std::conditional_t<std::is_const_v<Memory>, const std::byte, std::byte>;
      return static_cast<byte*>(data) + first * static_cast<std::int64_t>(size_of(type));
    }
    /// Whether it is the same for every batch.
    bool is_shared(const space& batches) const noexcept {
      return std::all_of(batch.begin(), batch.begin() + batches.rank, [](std::int64_t stride) { return stride == 0; });
    }
  };
  accumulate_kind accumulate;
  double alpha, beta;
  space batch, row, column, term;  // none is empty but, maybe, that of terms
  operand<const void> a, b, bias;
  operand<void> out;

  bool is_scaled() const noexcept { return alpha != 1 || (bias.data != nullptr && beta != 1); }
  /// Whether rows, columns and terms lie along one axis each (also one of size 1) and nothing is absent: what matmul
  /// makes, and all that drivers take so far.
  bool has_matrices() const noexcept {
    return row.rank == 1 && column.rank == 1 && term.rank == 1 &&
           a.coordinates + b.coordinates + bias.coordinates + out.coordinates == 0;
  }
};

/// The exact product as one dot product per output, where nothing is absent; scaled ones of f64 only.
reduce_plan dots_of(const product_plan&);

/// Windows along one spatial axis: window o covers the image's positions o * stride + r * dilation - before, r < kernel, of which those
/// outside [0, image) are absent. An axis that an operation does not have is one window of one element.
struct window_axis {
  std::int64_t image = 1, windows = 1, kernel = 1, stride = 1, dilation = 1, before = 0;

  friend bool operator==(const window_axis&, const window_axis&) = default;
};
/// Depth, height and width; images of two axes lack the first.
using window_axes = std::array<window_axis, 3>;
/// Of samples, channels, depth, height, width.
using image_strides = std::array<std::int64_t, 5>;

/// conv2d, conv3d and their gradients. Three tensors play the same roles in all of them; `out` is the one that is computed (its
/// entry has null data and the strides to write with):
///     image   n, groups * c, and the axes' image    x;   grad_x is the output of the gradient to the input
///     kernel  groups * o, c, their kernel           w;   grad_w is the output of the gradient to the weight
///     result  n, groups * o, their windows          out of the forward operation;   g of the gradients
/// A tap outside the image is absent. Channel i of group t is t * c + i, output channel j is t * o + j. Any size may be 0 but those
/// of the output.
struct conv_plan {
  struct tensor {
    const void* data;
    image_strides stride;
  };
  enum class role { image, kernel, result };
  ops::op_id op;
  role computed;
  dtype type;  // of the operands and the bias
  dtype out_type;
  accumulate_kind accumulate;
  std::int64_t n, groups, c, o;  // c, o: per group
  window_axes axis;
  tensor image, kernel, result;
  const void* bias;  // of a result: null or one per output channel
  std::int64_t bias_stride;
  void* out;
};

/// Pooling over samples, channels and the axes. adaptive: window o of an axis covers the positions from floor(o image / windows) up
/// to and without ceil((o + 1) image / windows). Adaptive operations have the plans of the others, and adaptive ones only where the
/// windows are of several sizes.
///   max_pool2d           image x -> pooled out, and where in the volume each is; every window has a present tap
///   max_pool2d_backward  pooled g, image x -> image out
///   avg_pool2d           image x -> pooled out
///   avg_pool2d_backward  pooled g -> image out
struct pool_plan {
  ops::op_id op;  // one of these, in three dimensions too
  dtype type;     // of the operands and the output
  std::int64_t n, c;
  window_axes axis;                    // adaptive: kernel, stride and dilation are 1, before 0
  std::array<std::int64_t, 3> padded;  // the padded image, as far as windows reach
  bool adaptive;
  bool count_include_pad;  // avg: the divisor is the number of taps on the padded image; else of present taps
  std::int64_t divisor;    // avg: of all windows, or 0: each has its own
  bool negated;            // avg: the sums, since the divisor is negative
  std::int64_t common;     // avg_pool2d_backward: the least common multiple of all windows' divisors if < 2^29, else 0
  const void* x;
  const void* g;
  void* out;
  std::int64_t* indices;        // max_pool2d: row-major in the volume, or null
  image_strides image_stride;   // of x
  image_strides pooled_stride;  // of g
  image_strides out_stride, indices_stride;

  bool backward() const noexcept {
    return op == ops::op_id::max_pool2d_backward || op == ops::op_id::avg_pool2d_backward;
  }
};

/// Rows: along the reduced axes of a tensor something is found that every element is computed with. There is one row of `length`
/// elements for every index of the kept axes. Operands are in the order of the operation (ops/structured.hpp; what a rule makes of
/// them: ops/rows/rule.hpp); one that is the same along an axis has the stride 0 there.
///   softmax, log_softmax, their gradients, logsumexp_backward, cross_entropy_backward   an output for each element
///   logsumexp              one for each row
///   cross_entropy          one for each row, or (mean, sum) one in all
///   cross_entropy_probabilities and its gradient, which are also those of cross_entropy with weights or smoothing, likewise: of targets
///                          there are no probabilities, of probabilities no targets
///   norms                  one for each element, and mean and rstd for each row, and what becomes of running statistics
///   var_mean, stddev       one or two for each row; of f64 a backend takes them as reductions (spreads_of)
/// There is an output that is not empty; rows or length may be 0. Row index = row-major over kept_shape.
struct row_plan {
  static constexpr int most_inputs = 5;
  static constexpr int most_outputs = 5;

  ops::op_id op;  // whose rule it is (ops::for_row_operation)
  int kept_rank;
  int reduced_rank;
  std::int64_t rows;    // the product of kept_shape
  std::int64_t length;  // the product of reduced_shape
  axes kept_shape;
  axes reduced_shape;
  struct strides {
    axes kept;
    axes reduced;
  };
  const void* in[most_inputs];  // null: absent
  dtype in_type[most_inputs];
  strides in_stride[most_inputs];
  void* out[most_outputs];  // null: not wanted
  dtype out_type[most_outputs];
  strides out_stride[most_outputs];
  repdl::reduction reduction;
  std::int64_t ignore_index;
  double eps;  // var_mean, stddev: the correction; cross_entropy_probabilities: the smoothing
  double momentum;

  /// Whether softmax or log_softmax has results of another format than x.
  bool has_other_format() const noexcept {
    return (op == ops::op_id::softmax || op == ops::op_id::log_softmax) && out_type[0] != in_type[0];
  }
  bool is_binary64() const noexcept {
    return in_type[0] == dtype::f64 || (has_other_format() && out_type[0] == dtype::f64);
  }
  bool is_spread() const noexcept { return op == ops::op_id::var_mean || op == ops::op_id::stddev; }
};

/// var_mean and stddev of f64 as reductions: sums of binary64 are theirs.
reduce_plan spreads_of(const row_plan&);
/// That mean on its own.
reduce_plan mean_beside(const reduce_plan&);

/// One step of sgd or adamw on many tensors. Operands: 0 param, 1 grad, 2 velocity or first_moment, 3 second_moment;
/// outputs: 0 param, 1 velocity or first_moment, 2 second_moment. An output may be exactly the input of its name.
/// Null: absent (sgd without velocity; its input at the first step). param and grad are of the plan's type, states f32, or f64 beside
/// f64.
struct step_tensor {
  std::int64_t count;  // >= 1
  int rank;
  axes shape;
  const void* in[4];
  axes in_stride[4];
  void* out[3];
  axes out_stride[3];
};
struct step_plan {
  ops::op_id op;
  dtype type;
  sgd_options sgd;
  adamw_options adamw;
  double c1, c2;  // adamw: RN(1 - beta^step)
  inline_vector<step_tensor, 1> tensors;

  bool empty() const noexcept { return tensors.empty(); }
};

/// total_norm and clip_grad_norm: many tensors as one vector. An output may be exactly its input.
struct clip_tensor {
  std::int64_t count;  // >= 1
  int rank;
  axes shape;
  const void* in;
  axes in_stride;
  void* out;  // null: of total_norm
  axes out_stride;
};
struct clip_plan {
  ops::op_id op;
  dtype type;
  double p;  // 1, 2 or inf
  double max_norm;
  void* total;  // null: not wanted
  inline_vector<clip_tensor, 1> tensors;

  bool clips() const noexcept { return op == ops::op_id::clip_grad_norm; }
  bool empty() const noexcept { return tensors.empty() && total == nullptr; }
};

/// Losses and their gradients: elements over `rank` axes, their operands as the operation has them, broadcast ones with
/// stride 0; any order of elements. Gradients, and losses without reduction, have an output per element; a mean or sum has
/// one, and may have no elements.
struct loss_plan {
  ops::op_id op;
  dtype type;            // of all operands
  double parameter;      // beta, delta; kl_div: 1 where t holds logarithms, else 0
  std::int64_t divisor;  // what sums and gradients are divided by
  bool each;             // an output per element
  int inputs;
  int rank;
  std::int64_t count;  // the product of shape
  axes shape;
  struct operand {
    const void* data;  // null: absent, every number of it is 1
    axes stride;
  } in[5];
  void* out;
  axes out_stride;
};

/// nll_loss and its gradient. The space is that of the samples, for the gradient that of x; `class_of` steps through the number of an
/// element's class as strides do through memory.
struct nll_plan {
  ops::op_id op;
  dtype type;  // of x, weight and out
  repdl::reduction reduction;
  bool each;  // an output per element
  std::int64_t classes;
  std::int64_t ignore_index;
  int rank;
  std::int64_t count;  // the product of shape
  axes shape;
  const void* x;  // nll_loss: x of class 0; its gradient: g
  axes x_stride;
  std::int64_t class_stride;  // of x
  const std::int64_t* targets;
  axes target_stride;
  const void* weight;  // null: ones
  std::int64_t weight_stride;
  const void* total;  // what gradients are divided by, of num::nll_weight; null: nothing
  axes class_of;      // of gradients
  void* out;
  axes out_stride;
  void* total_weight;  // nll_loss: the sum of the weights, likewise, or null

  bool has_sums() const noexcept { return !each || total_weight != nullptr; }
};

/// Philox (contract, section 6). Element i is the row-major logical index in `shape`.
struct random_plan {
  ops::op_id op;  // uniform, permutation, normal, exponential, bernoulli, randint, dropout, dropout_backward
  std::uint64_t seed;
  std::uint64_t stream;
  std::int64_t count;
  int rank;
  axes shape;
  void* out;
  axes out_stride;
  dtype out_type;           // permutation, randint: i64; bernoulli: boolean
  double low, high;         // uniform; normal: mean and standard deviation; exponential: -, the rate
  std::uint64_t threshold;  // bernoulli, dropout: a word below it is true (dropped)
  double p;                 // dropout
  std::int64_t first;       // randint: the least value
  std::uint64_t range;      // randint: how many values there are, >= 1
  const void* in;           // dropout
  axes in_stride;
};

/// Element i of `count` is (first (parts - i) + last i) / parts, `between`, or first + last i, rounded once; i, parts
/// <= 2^48.
struct sequence_plan {
  std::int64_t count;
  void* out;
  std::int64_t stride;
  dtype out_type;
  bool between;
  double first, last;  // not -0
  std::int64_t parts;  // 1 if not `between`
};

/// One axis of nearest neighbours: of `image` pixels, output pixel o takes number min(floor(t a / b), image - 1), t = 2
/// o + half. From t = limit on that is image - 1. b <= 2^32, a < 2^63; image b < 2^63, and so is t a below the limit.
struct nearest_axis {
  std::int64_t image, size;  // of the output
  std::uint64_t a, b, limit;
  std::int64_t half;  // 0 or 1
};
/// upsample_nearest2d: from an image (n, c, y.image, x.image) to one (n, c, y.size, x.size); `backward` from the second
/// to the first.
struct upsample_plan {
  bool backward;
  dtype type;  // f16, bf16, f32
  std::int64_t n, c;
  nearest_axis y, x;
  const void* in;
  void* out;
  std::int64_t in_stride[4], out_stride[4];

  std::int64_t height() const noexcept { return backward ? y.image : y.size; }  // of the output
  std::int64_t width() const noexcept { return backward ? x.image : x.size; }
};

/// One axis of an interpolation: position i of `size` lies at (a i + b) / d among `image` pixels, of which it is made of `taps` neighbouring ones
/// (ops/sums/interpolation.hpp). d <= 2^54; |a i + b| < 2^118.
struct interpolation_axis {
  __extension__ using integer = __int128;
  std::int64_t image, size;
  integer a, b;
  std::uint64_t d;
  int taps;
  bool cubic;
};
/// upsample_linear, upsample_cubic: from an image (n, c, image of each axis) to one (n, c, size of each axis); `backward` from the second to the
/// first. Axes that a call lacks have one pixel and one position, and come first.
struct interpolation_plan {
  bool backward;
  dtype type;
  std::int64_t n, c;
  interpolation_axis axis[3];
  double common;  // the product of the weights' denominators, or 0 where that is above 2^50
  const void* in;
  void* out;
  std::int64_t in_stride[5], out_stride[5];

  std::int64_t length(int a) const noexcept { return backward ? axis[a].image : axis[a].size; }  // of the output
};
/// What of one of its axes a backend keeps in memory: of each position its first pixel and the numerators of `taps` of them; of gradients also the
/// positions from and up to which a pixel is one of those.
struct interpolation_table {
  std::int64_t* first;
  double* numerators;
  std::int64_t* from;
  std::int64_t* to;
  int taps;
  bool backward;
};

/// multinomial: of each row of n weights `samples` places. n, samples >= 1.
struct draw_plan {
  std::uint64_t seed, stream;
  bool replacement;
  std::int64_t rows, n, samples;
  dtype type;
  const void* in;
  std::int64_t in_row, in_stride;
  std::int64_t* out;
  std::int64_t out_row, out_stride;
};

/// Prefixes: for every index of the kept axes a line along the reduced ones, in the order of the caller's axes. cumsum, cumprod,
/// logcumsumexp: one axis, and out as x. prod: the last prefix alone, a number for each line; length may be 0. Of integers out is i64.
struct scan_plan {
  ops::op_id op;
  dtype type;
  int kept_rank;
  int reduced_rank;
  std::int64_t lines;   // the product of kept_shape, >= 1
  std::int64_t length;  // the product of reduced_shape
  axes kept_shape;
  axes reduced_shape;
  const void* in;
  axes in_kept_stride;
  axes in_reduced_stride;
  void* out;
  axes out_kept_stride;
  std::int64_t out_step;  // along a line

  bool has_each() const noexcept { return op != ops::op_id::prod; }
};

/// Where an operand of attention is: the steps of leading axes, heads, rows (queries or keys) and elements.
struct attention_place {
  axes batch;
  std::int64_t head, row, element;
};
/// attention: for each batch and head `queries` rows of out, of `value_size` elements, and numbers of lse. Key j takes part in query i where
/// i + offset - before <= j <= i + offset + after and the mask is not false, or -inf. lse and mask may be null, out where it has no elements.
/// attention_backward: rows of grad_q for queries, of grad_k and grad_v for keys, each of which may be null where it has no elements.
struct attention_plan {
  ops::op_id op;
  dtype type;
  bool is_added;  // the mask is of the format, not boolean
  int batch_rank;
  std::int64_t batches;  // the product of batch_shape
  axes batch_shape;
  std::int64_t heads, key_heads;  // of q, out and mask; of k and v, a divisor
  std::int64_t queries, keys, size, value_size;
  const void* q;
  const void* k;
  const void* v;
  const void* mask;
  const float* slopes;
  void* out;
  void* lse;  // of f32, or f64 where that is the type
  attention_place q_at, k_at, v_at, mask_at, out_at, lse_at;
  std::int64_t slope_step;
  double scale;
  std::int64_t offset, before, after;
  double dropout;
  std::uint64_t threshold, seed, stream;  // a word below it drops
  // Of the gradients: what is given of the results, and theirs.
  const void* g;
  const void* y;
  const void* given_lse;
  void* grad_q;
  void* grad_k;
  void* grad_v;
  attention_place g_at, y_at, given_lse_at, grad_q_at, grad_k_at, grad_v_at;
};

/// ldexp: out = x 2^n. frexp: out and `exponent`, a number's significand and exponent. Elements over `rank` axes, broadcast operands with
/// stride 0; exponent_stride is n's, too.
struct exponent_plan {
  ops::op_id op;
  dtype type;           // of x and out
  dtype exponent_type;  // i64 or i32
  int rank;
  std::int64_t count;  // the product of shape, >= 1
  axes shape;
  const void* x;
  axes x_stride;
  void* out;
  axes out_stride;
  const void* n;           // of ldexp
  std::int32_t* exponent;  // of frexp
  axes exponent_stride;
};

/// Sums to places given by indices. A position p has an index, in [0, bound), and a slice of the source, of `inner` elements; its
/// target is target_step * index + the offset of p by target_stride. A target's slice of out is
///     x + alpha * S, or S / n with `mean`, S the sum of the slices of the n positions whose target it is,
/// and where there is none x itself, whatever it is; x null: +0. Operands are walked by the strides of position and inner, or of
/// target and inner. There is a target and an inner element; there may be no position.
struct scatter_plan {
  ops::op_id op;
  dtype type;
  double alpha;
  bool mean;
  std::int64_t bound;
  std::int64_t skipped;  // positions with this index have no target; -1: none

  struct space {
    int rank;
    std::int64_t count;
    axes shape;
  } positions, targets, inner;
  std::int64_t target_step;
  axes target_stride;  // along the positions

  const std::int64_t* index;
  axes index_stride;
  struct operand {
    const void* data;
    axes outer_stride;  // along the positions (source) or the targets (x, out)
    axes inner_stride;
  } source, x;
  void* out;
  axes out_stride;  // along the targets
  axes out_inner_stride;
};

}  // namespace repdl::plan
