// The options of the structured operations.
//
// Operands are no options: weights and biases are parameters of the calls (ops.hpp). As members they stay for this version
// (docs/migrating.md); a call that gets one both ways is an invalid_argument.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "librepdl/export.hpp"
#include "librepdl/tensor.hpp"

namespace repdl REPDL_EXPORT {

/// How sums of products are accumulated.
enum class accumulate : std::int32_t {
  exact = 0,  ///< the exact sum, rounded once (the default)
  fma_chain =
      1,  ///< s = fma(a_k, b_k, s) in f32 from s = +0, k ascending; a bias is added afterwards (contract, section 5)
};

/// Every axis of a tensor, whatever its rank.
struct all_axes_t {
  explicit all_axes_t() = default;
};
inline constexpr all_axes_t all_axes{};

/// Axes of a tensor: none ({}), one (1), several ({0, -1}, or a sizes) or all of them (all_axes). Negative ones count
/// from the end.
class axis_list {
 public:
  axis_list() : list_(sizes{}) {}
  axis_list(all_axes_t) {}
  template <integer_type T>
  axis_list(T axis) : list_(sizes{axis}) {}
  axis_list(std::initializer_list<sizes::entry> axes) : list_(sizes(axes)) {}
  template <class Axes>
  requires std::convertible_to<const Axes&, sizes> axis_list(const Axes& axes) : list_(axes) {}

  /// The axes; absent: all.
  const std::optional<sizes>& list() const noexcept { return list_; }
  friend bool operator==(const axis_list&, const axis_list&) = default;

 private:
  std::optional<sizes> list_;
};

/// Options of convert.
struct convert_options {
  /// To f8_e4m3fn and f8_e5m2: what rounds to beyond the largest number, infinities too, becomes the largest number of its sign,
  /// not infinity (f8_e5m2) or NaN (f8_e4m3fn). To other types: false.
  bool saturate = false;
};

/// Options of sum, prod, mean, max, min, argmax, argmin, logsumexp and logsumexp_backward.
struct reduce_options {
  axis_list axis = all_axes;  ///< the axes to reduce; over none, each element is a result
  bool keepdim = false;       ///< keep the reduced axes with size 1
};

/// Options of matmul.
struct matmul_options {
  bool transpose_a = false;  ///< a is (..., k, m)
  bool transpose_b = false;  ///< b is (..., n, k)
  repdl::accumulate accumulate = repdl::accumulate::exact;
  const_tensor_view bias{};  ///< deprecated, an operand: of a's or the result's format, broadcast to the output's shape
  double alpha = 1;          ///< a factor of the product: 0 or of magnitude in [2^-200, 2^200]; 1 with fma_chain
  double beta = 1;           ///< a factor of the bias, likewise; 0 multiplies, too: 0 inf is NaN
};

/// Options of attention. off is Lk - Lq with bottom_right, else 0.
struct attention_options {
  /// A factor of q . k: 0 or of magnitude in [2^-200, 2^200]; absent: 1 / sqrt(D), rounded once.
  std::optional<double> scale{};
  bool causal = false;        ///< keys j <= i + off alone
  bool bottom_right = false;  ///< queries are the last ones of the sequence: off = Lk - Lq
  std::int64_t left = -1;     ///< keys j >= i + off - left alone; negative: all
  std::int64_t right = -1;    ///< keys j <= i + off + right alone; negative: all
  double dropout = 0;  ///< the share of weights that are dropped: 0, or in [2^-32, 1); others are divided by 1 less it
  std::uint64_t seed = 0;  ///< of the draws: a generator's; that of a pair is its word of the scores in row-major order
  std::uint64_t stream = 0;  ///< likewise
};

/// Options of rotary.
struct rotary_options {
  bool interleaved = false;  ///< pairs are elements 2i and 2i + 1, not i and i + d / 2
  bool inverse = false;      ///< by the opposite angles, - sin in place of sin: the gradient, too
};

/// Options of upsample_nearest2d and its gradient.
struct upsample_nearest2d_options {
  double scale_h = 0;  ///< in [2^-200, 2^200]; 0: the ratio of the heights
  double scale_w = 0;  ///< likewise, of the widths
  bool exact = false;  ///< from the middle of a pixel
};

/// Options of upsample_linear, upsample_cubic and their gradients.
struct interpolation_options {
  bool align_corners = false;  ///< the middles of the outermost pixels of both images lie on each other; no scales
  double scale_d = 0;          ///< of the depth: in [2^-32, 2^32]; 0: the ratio of the sizes
  double scale_h = 0;          ///< likewise, of the height
  double scale_w = 0;          ///< likewise, of the width
};

/// Options of uniform.
struct uniform_options {
  double low = 0;   ///< finite, 0 or of magnitude in [2^-200, 2^200]
  double high = 1;  ///< likewise
};

/// Numbers for the spatial axes of images, however many those are: one for each ({2, 1}, or a sizes), or one that stands
/// for all of them (2); none ({}) is the operation's default. Paddings may also say both sides of each axis:
/// {top, bottom, left, right}; of three axes {front, back, top, bottom, left, right}. How many there must be depends on the
/// operation, which checks it (attribute_value).
class per_axis {
 public:
  per_axis() = default;
  template <integer_type T>
  per_axis(T all) : list_{all} {}
  per_axis(std::initializer_list<sizes::entry> each) : list_(each) {}
  template <class Sizes>
  requires std::convertible_to<const Sizes&, sizes> per_axis(const Sizes& each) : list_(each) {}

  const sizes& list() const noexcept { return list_; }
  friend bool operator==(const per_axis&, const per_axis&) = default;

 private:
  sizes list_;
};

/// Height and width.
struct REPDL_DEPRECATED("a per_axis takes {h, w}") pair {
  std::int64_t h = 1;
  std::int64_t w = 1;
  operator sizes() const { return {h, w}; }
};
/// Rows and columns around an image.
struct REPDL_DEPRECATED("a per_axis takes {top, bottom, left, right}") padding2d {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
  operator sizes() const { return {top, bottom, left, right}; }
};

/// Options of conv2d, conv3d and their gradients.
struct conv2d_options {
  per_axis stride = 1;
  per_axis padding = 0;  ///< absent taps; they are not zeros
  per_axis dilation = 1;
  std::int64_t groups = 1;  ///< divides the input's and the output's channels; as many as those: depthwise
  repdl::accumulate accumulate = repdl::accumulate::exact;
  const_tensor_view bias{};  ///< deprecated, an operand: conv2d alone: f32, one per output channel
};
using conv3d_options = conv2d_options;

/// Options of max_pool2d, max_pool3d and their gradients.
struct max_pool2d_options {
  per_axis kernel = 1;   ///< the window
  per_axis stride{};     ///< none: the window's size
  per_axis padding = 0;  ///< absent taps; every window must have at least one that is present
  per_axis dilation = 1;
  bool ceil_mode = false;  ///< a last window may reach over the padded image
};
using max_pool3d_options = max_pool2d_options;

/// Options of avg_pool2d, avg_pool3d and their gradients.
struct avg_pool2d_options {
  per_axis kernel = 1;             ///< the window
  per_axis stride{};               ///< none: the window's size
  per_axis padding = 0;            ///< absent taps
  bool count_include_pad = false;  ///< divide by the window's taps on the padded image, not by those that are present
  bool ceil_mode = false;          ///< a last window may reach over the padded image
  std::int64_t divisor_override = 0;  ///< divide by this number, of magnitude below 2^31; 0: by the count
};
using avg_pool3d_options = avg_pool2d_options;

/// Options of the adaptive pooling operations.
struct adaptive_pool2d_options {
  per_axis size = 1;  ///< of the result
};
using adaptive_pool3d_options = adaptive_pool2d_options;

/// Options of softmax, log_softmax and their backward operations.
struct softmax_options {
  std::int64_t axis = -1;  ///< negative ones count from the end
};

/// Options of cumsum, cumprod and logcumsumexp.
struct scan_options {
  std::int64_t axis = -1;  ///< negative ones count from the end
};

/// How a loss combines its elements (cross_entropy: the rows that are not ignored).
enum class reduction : std::int32_t { mean = 0, sum = 1, none = 2 };

/// Options of cross_entropy and cross_entropy_backward.
struct cross_entropy_options {
  std::optional<std::int64_t> axis{};  ///< the classes; absent: 1, or 0 for a vector
  repdl::reduction reduction = repdl::reduction::mean;
  std::int64_t ignore_index = -100;  ///< rows with this target take no part
  double label_smoothing = 0;        ///< 0, or from 2^-64 to 1; exactly this double
  const_tensor_view weight{};        ///< deprecated, an operand: of the logits' format, one for each class; absent: 1
};

/// Options of cross_entropy_probabilities and cross_entropy_probabilities_backward.
struct cross_entropy_probabilities_options {
  std::optional<std::int64_t> axis{};  ///< the classes; absent: 1, or 0 for a vector
  repdl::reduction reduction = repdl::reduction::mean;
  double label_smoothing = 0;  ///< 0, or from 2^-64 to 1; exactly this double
  const_tensor_view weight{};  ///< deprecated, an operand: of the logits' format, one for each class; absent: 1
};

/// Options of nll_loss and nll_loss_backward.
struct nll_loss_options {
  std::optional<std::int64_t> axis{};  ///< the classes; absent: 1, or 0 for a vector
  repdl::reduction reduction = repdl::reduction::mean;
  std::int64_t ignore_index = -100;  ///< rows with this target take no part
  const_tensor_view weight{};        ///< deprecated, an operand: of x's format, one for each class; absent: 1
};

/// Options of layer_norm.
struct layer_norm_options {
  axis_list axis = -1;         ///< the axes that are normalised over
  double eps = 1e-5;           ///< >= 0: 0 or in [2^-200, 2^200]; exactly this double
  const_tensor_view weight{};  ///< deprecated, an operand: of x's format and its sizes along `axis`; absent: 1
  const_tensor_view bias{};    ///< deprecated, an operand: likewise; absent: no term
};
/// Options of rms_norm.
struct rms_norm_options {
  axis_list axis = -1;          ///< the axes that are normalised over
  std::optional<double> eps{};  ///< as layer_norm's, but without a default (PyTorch's is 2^-23)
  const_tensor_view weight{};   ///< deprecated, an operand: of x's format and its sizes along `axis`; absent: 1
};
/// Options of group_norm. One group for each channel is instance_norm.
struct group_norm_options {
  std::int64_t groups = 1;     ///< divides the channels, axis 1
  double eps = 1e-5;           ///< >= 0: 0 or in [2^-200, 2^200]; exactly this double
  const_tensor_view weight{};  ///< deprecated, an operand: of x's format, one for each channel; absent: 1
  const_tensor_view bias{};    ///< deprecated, an operand: likewise; absent: no term
};
/// Options of batch_norm.
struct batch_norm_options {
  std::int64_t axis = 1;       ///< the channels: every other axis is normalised over
  double eps = 1e-5;           ///< >= 0: 0 or in [2^-200, 2^200]; exactly this double
  const_tensor_view weight{};  ///< deprecated, an operand: of x's format, one for each channel; absent: 1
  const_tensor_view bias{};    ///< deprecated, an operand: likewise; absent: no term
};
/// Options of batch_norm_running.
struct batch_norm_running_options {
  std::int64_t axis = 1;       ///< the channels: every other axis is normalised over
  double eps = 1e-5;           ///< >= 0: 0 or in [2^-200, 2^200]; exactly this double
  double momentum = 0.1;       ///< 0 or in [2^-200, 1]; exactly this double, and so is 1 - momentum
  const_tensor_view weight{};  ///< deprecated, an operand: of x's format, one for each channel; absent: 1
  const_tensor_view bias{};    ///< deprecated, an operand: likewise; absent: no term
};
/// Options of layer_norm_backward and rms_norm_backward.
struct layer_norm_backward_options {
  axis_list axis = -1;         ///< as the forward operation's
  const_tensor_view weight{};  ///< deprecated, an operand: likewise; absent: 1
};
/// Options of group_norm_backward.
struct group_norm_backward_options {
  std::int64_t groups = 1;     ///< as group_norm's
  const_tensor_view weight{};  ///< deprecated, an operand: likewise; absent: 1
};
/// Options of batch_norm_backward.
struct batch_norm_backward_options {
  std::int64_t axis = 1;       ///< as batch_norm's
  const_tensor_view weight{};  ///< deprecated, an operand: likewise; absent: 1
};
/// Options of batch_norm_inference_backward.
struct batch_norm_inference_backward_options {
  std::int64_t axis = 1;       ///< as batch_norm_inference's
  double eps = 1e-5;           ///< likewise
  const_tensor_view weight{};  ///< deprecated, an operand: likewise; absent: 1
};
/// Statistics of rows that are wanted besides, for a backward operation: f32, of f64 f64, or absent.
struct norm_statistics {
  tensor_view mean{};
  tensor_view rstd{};  ///< 1 / sqrt(v + eps)
};
/// Statistics over batches as batch_norm_running leaves them: f32, of f64 f64, or absent. Each may be the tensor that was given.
struct running_statistics {
  tensor_view mean{};
  tensor_view var{};
};

/// Options of mse_loss, l1_loss, soft_margin_loss and their backward operations.
struct loss_options {
  repdl::reduction reduction = repdl::reduction::mean;  ///< over all elements
};
/// Options of smooth_l1_loss and smooth_l1_loss_backward.
struct smooth_l1_loss_options {
  repdl::reduction reduction = repdl::reduction::mean;
  double beta = 1;  ///< 0 or in [2^-200, 2^200]; 0 makes it l1_loss
};
/// Options of huber_loss and huber_loss_backward.
struct huber_loss_options {
  repdl::reduction reduction = repdl::reduction::mean;
  double delta = 1;  ///< in [2^-200, 2^200]
};

/// Options of binary_cross_entropy and binary_cross_entropy_backward.
struct binary_cross_entropy_options {
  repdl::reduction reduction = repdl::reduction::mean;
  const_tensor_view weight{};  ///< deprecated, an operand: a factor of each element; absent: 1
};
/// Options of binary_cross_entropy_with_logits and its backward operation.
struct binary_cross_entropy_with_logits_options {
  repdl::reduction reduction = repdl::reduction::mean;
  const_tensor_view weight{};      ///< deprecated, an operand: a factor of each element; absent: 1
  const_tensor_view pos_weight{};  ///< deprecated, an operand: a factor of t's term; absent: 1
};
/// How kl_div combines its elements: as `reduction`, and batchmean, the sum over the size of the first axis.
enum class batch_reduction : std::int32_t { mean = 0, sum = 1, none = 2, batchmean = 3 };
/// Options of kl_div and kl_div_backward.
struct kl_div_options {
  repdl::batch_reduction reduction = repdl::batch_reduction::mean;
  bool log_target = false;  ///< t holds logarithms
};

/// Options of sgd. Real numbers are finite, 0 or of magnitude in [2^-200, 2^200].
struct sgd_options {
  double lr = 0.001;
  double momentum = 0;  ///< >= 0; 0: there is no velocity
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;    ///< needs momentum > 0
  bool first_step = false;  ///< the velocity is written and not read
};

/// Options of adamw. Real numbers are finite, 0 or of magnitude in [2^-200, 2^200].
struct adamw_options {
  double lr = 0.001;
  double beta1 = 0.9;    ///< in [0, 1)
  double beta2 = 0.999;  ///< in [0, 1)
  double eps = 1e-8;     ///< >= 0
  double weight_decay = 0.01;
  std::int64_t step = 1;  ///< from 1
};

/// Options of normal.
struct normal_options {
  double mean = 0;    ///< finite, 0 or of magnitude in [2^-200, 2^200]
  double stddev = 1;  ///< likewise, and >= 0
};

/// Options of exponential.
struct exponential_options {
  double rate = 1;  ///< lambda, in [2^-200, 2^200]
};

/// Options of linspace.
struct linspace_options {
  double start = 0;  ///< 0 or of magnitude in [2^-200, 2^200]
  double end = 1;    ///< likewise
};
/// Options of arange.
struct arange_options {
  double start = 0;  ///< 0 or of magnitude in [2^-200, 2^200]
  double step = 1;   ///< likewise
};

/// Options of randint: integers in [low, high).
struct randint_options {
  std::int64_t low = 0;
  std::int64_t high = 0;  ///< > low
};

/// Options of multinomial.
struct multinomial_options {
  bool replacement = false;  ///< a place may be drawn again
};

/// The state of a random generator: each random operation uses one stream value and moves on to the next.
struct generator {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

/// Options of index_add and scatter_add.
struct index_add_options {
  std::int64_t axis = 0;  ///< the axis of x that is indexed; negative ones count from the end
  double alpha = 1;       ///< a factor of the sums: 0 or of magnitude in [2^-200, 2^200]
};

/// Options of embedding_backward.
struct embedding_backward_options {
  std::optional<std::int64_t> padding_idx{};  ///< its row gets +0; negative ones count from the end; absent: none
  bool scale_grad_by_freq = false;            ///< divide each sum by the number of its terms, inside the one rounding
};

/// Options of var, stddev and var_mean.
struct var_options {
  axis_list axis = all_axes;  ///< the axes to reduce
  bool keepdim = false;       ///< keep the reduced axes with size 1
  double correction =
      1;  ///< subtracted from the number of elements: 0 or of magnitude in [2^-200, 2^200]; exactly this double
};

/// Options of vector_norm.
struct vector_norm_options {
  double p = 2;               ///< 1, 2, inf or -inf
  axis_list axis = all_axes;  ///< the axes to reduce
  bool keepdim = false;       ///< keep the reduced axes with size 1
};

/// Options of total_norm.
struct total_norm_options {
  double p = 2;  ///< 1, 2 or inf
};

/// Options of clip_grad_norm.
struct clip_grad_norm_options {
  double max_norm = 1;  ///< >= 0, or inf; exactly this double
  double p = 2;         ///< of the norm: 1, 2 or inf
};

}  // namespace repdl
