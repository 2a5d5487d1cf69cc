// The structured operations: one type each; and operands, of elementwise ones too.
#pragma once

#include <array>
#include <string_view>

#include "librepdl/ops/attributes.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::ops {

/// What shape an operand of a forward operation has: `x`, that of the first operand; `rows`, x's without the axes of the call, one
/// number for each row; `along`, x's along those axes, as weights have; or its own.
enum class extent { x, rows, along, own };
/// What its numbers are, where not any will do: else every result would be NaN, or an error, or, of scores, nothing a GPU decides soon.
enum class domain { any, probabilities, weights, logarithms, indices, exponents, scores };
struct operand {
  std::string_view name;
  dtype_set types;
  bool optional = false;
  ops::extent extent = ops::extent::x;
  ops::domain domain = ops::domain::any;
};
constexpr operand of(domain numbers, operand o) {
  o.domain = numbers;
  return o;
}
/// Optional.
constexpr operand along(std::string_view name, dtype_set formats = NARROW) {
  return {name, formats, true, extent::along};
}

// The operands of an elementwise operation ("x,y" -> x, y).
struct elementwise_operands {
  operand all[most_operands];
  int count;
  operand result[1];
  constexpr std::span<const operand> in() const { return {all, static_cast<std::size_t>(count)}; }
  constexpr std::span<const operand> out() const { return result; }
};
const elementwise_operands& operands_of(op_id op) noexcept;

/// Which axes the rows of a call lie along if its attributes name none: all axes, the last one, that of the classes (1, of a vector
/// 0); or what belongs together are channels (axis 1, or the one named), perhaps in groups of them.
enum class row_axes { all, last, classes, channels, groups };
template <class Attrs>
inline constexpr row_axes row_axes_of = row_axes::all;
template <>
inline constexpr row_axes row_axes_of<softmax_options> = row_axes::last;
template <>
inline constexpr row_axes row_axes_of<softmax_attrs> = row_axes::last;
template <>
inline constexpr row_axes row_axes_of<scan_options> = row_axes::last;
template <>
inline constexpr row_axes row_axes_of<layer_norm_options> = row_axes::last;
template <>
inline constexpr row_axes row_axes_of<rms_norm_options> = row_axes::last;
template <>
inline constexpr row_axes row_axes_of<cross_entropy_options> = row_axes::classes;
template <>
inline constexpr row_axes row_axes_of<cross_entropy_probabilities_options> = row_axes::classes;
template <>
inline constexpr row_axes row_axes_of<nll_loss_options> = row_axes::classes;
template <>
inline constexpr row_axes row_axes_of<batch_norm_options> = row_axes::channels;
template <>
inline constexpr row_axes row_axes_of<batch_norm_running_options> = row_axes::channels;
template <>
inline constexpr row_axes row_axes_of<group_norm_options> = row_axes::groups;

// What a row of structured.def says of an operation.
template <op_id Id>
struct operation {
  static constexpr op_id id = Id;
  static constexpr structured_row row = structured_row_of(Id);
  static constexpr std::string_view name = row.name;
};

// Operands that many have.
template <op_id Id, class Attrs, dtype_set Types = F32, dtype_set Out = Types>
struct of_x : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"x", Types}};
  static constexpr operand out[] = {{"out", Out}};
};
template <op_id Id, class Attrs, dtype_set Out>
struct of_nothing : operation<Id> {
  using attrs = Attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", Out}};
};
template <op_id Id, class Attrs, dtype_set Types = F32>
struct gradient : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"g", Types}};
  static constexpr operand out[] = {{"grad_x", Types}};
};
template <op_id Id, class Attrs, dtype_set Types = F32>
struct gradient_at_x : gradient<Id, Attrs, Types> {
  static constexpr operand in[] = {{"g", Types}, {"x", Types}};
};
template <op_id Id, class Attrs, dtype_set Types = F32>
struct gradient_at_y : gradient<Id, Attrs, Types> {
  static constexpr operand in[] = {{"g", Types}, {"y", Types}};
};

struct convert : operation<op_id::convert> {
  static constexpr std::string_view formula =
      "as bool x != 0; as an integer x truncated, NaN 0, and saturated; as a floating-point number x";
  using attrs = convert_attrs;
  static constexpr operand in[] = {{"x", ALL}};
  static constexpr operand out[] = {{"out", ALL}};
};

// Reductions: operands of one type, which is that of a number that comes out; but integers are added up in i64, and have means in f64,
// and sums, means and dot products of floating-point numbers have any other format that the call says.
template <op_id Id, dtype_set Types = NARROW, dtype_set Out = Types, class Attrs = reduce_options>
using reduction_of_x = of_x<Id, Attrs, Types, Out>;
struct sum : reduction_of_x<op_id::sum, FLOATS | INTEGERS, FLOATS | I64, sum_attrs> {
  static constexpr std::string_view formula =
      "sum of x over the axes; exact zero is +0; of integers i64, modulo 2^64, of booleans how many are true";
};
struct mean : reduction_of_x<op_id::mean, FLOATS | INTEGERS, FLOATS, sum_attrs> {
  static constexpr std::string_view formula = "(sum of x over the axes) / count; of integers f64";
};
struct max : reduction_of_x<op_id::max, FLOATS | INTEGERS> {
  static constexpr std::string_view formula = "the greatest x over the axes; NaN wins, -0 < +0";
};
struct min : reduction_of_x<op_id::min, FLOATS | INTEGERS> {
  static constexpr std::string_view formula = "the least x over the axes; NaN wins, -0 < +0";
};
struct argmax : reduction_of_x<op_id::argmax, FLOATS | INTEGERS, I64> {
  static constexpr std::string_view formula = "the first index of max(x), row-major within the reduced axes";
};
struct argmin : reduction_of_x<op_id::argmin, FLOATS | INTEGERS, I64> {
  static constexpr std::string_view formula = "the first index of min(x), row-major within the reduced axes";
};

struct dot : operation<op_id::dot> {
  static constexpr std::string_view formula = "sum of x_k * y_k";
  using attrs = dot_attrs;
  static constexpr operand in[] = {{"x", FLOATS}, {"y", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};

struct prelu_weight_backward : operation<op_id::prelu_weight_backward> {
  static constexpr std::string_view formula = "sum over the axes of x > 0 ? +0 : g * x";
  using attrs = reduce_options;
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};

struct matmul : operation<op_id::matmul> {
  static constexpr std::string_view formula = "alpha * sum over k of a_ik * b_kj, + beta * bias_ij";
  using attrs = matmul_attrs;
  static constexpr operand in[] = {
      {"a", FLOATS}, {"b", FLOATS, false, extent::own}, {"bias", FLOATS, true, extent::own}};
  static constexpr operand out[] = {{"out", FLOATS}};
};

struct uniform : of_nothing<op_id::uniform, uniform_attrs, FLOATS> {
  static constexpr std::string_view formula = "low + (high - low) * u, u uniform on [0, 1) from Philox4x32-10";
};

struct permutation : of_nothing<op_id::permutation, permutation_attrs, I64> {
  static constexpr std::string_view formula = "0 .. n-1 sorted by Philox words";
};

// Convolutions over two axes and over three.
template <op_id Id>
struct convolution : operation<Id> {
  using attrs = conv2d_options;
  static constexpr operand in[] = {
      {"x", FLOATS}, {"w", FLOATS, false, extent::own}, {"bias", FLOATS, true, extent::own}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
template <op_id Id>
struct convolution_to_input : operation<Id> {
  using attrs = conv2d_grad_input_attrs;
  static constexpr operand in[] = {{"g", FLOATS}, {"w", FLOATS}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
template <op_id Id>
struct convolution_to_weight : operation<Id> {
  using attrs = conv2d_grad_weight_attrs;
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}};
  static constexpr operand out[] = {{"grad_w", FLOATS}};
};
template <op_id Id>
struct convolution_to_bias : operation<Id> {
  using attrs = no_attrs;
  static constexpr operand in[] = {{"g", FLOATS}};
  static constexpr operand out[] = {{"grad_bias", FLOATS}};
};
struct conv2d : convolution<op_id::conv2d> {
  static constexpr std::string_view formula = "sum over c, r, s of x_n,c,ih,iw * w_o,c,r,s, + bias_o";
};
struct conv2d_grad_input : convolution_to_input<op_id::conv2d_grad_input> {
  static constexpr std::string_view formula = "sum over o, r, s of g_n,o,oh,ow * w_o,c,r,s";
};
struct conv2d_grad_weight : convolution_to_weight<op_id::conv2d_grad_weight> {
  static constexpr std::string_view formula = "sum over n, oh, ow of g_n,o,oh,ow * x_n,c,ih,iw";
};
struct conv2d_grad_bias : convolution_to_bias<op_id::conv2d_grad_bias> {
  static constexpr std::string_view formula = "sum over n, oh, ow of g_n,o,oh,ow";
};
struct conv3d : convolution<op_id::conv3d> {
  static constexpr std::string_view formula = "sum over c, q, r, s of x_n,c,id,ih,iw * w_o,c,q,r,s, + bias_o";
};
struct conv3d_grad_input : convolution_to_input<op_id::conv3d_grad_input> {
  static constexpr std::string_view formula = "sum over o, q, r, s of g_n,o,od,oh,ow * w_o,c,q,r,s";
};
struct conv3d_grad_weight : convolution_to_weight<op_id::conv3d_grad_weight> {
  static constexpr std::string_view formula = "sum over n, od, oh, ow of g_n,o,od,oh,ow * x_n,c,id,ih,iw";
};
struct conv3d_grad_bias : convolution_to_bias<op_id::conv3d_grad_bias> {
  static constexpr std::string_view formula = "sum over n, od, oh, ow of g_n,o,od,oh,ow";
};

// Pooling: operands and results of one format.
template <op_id Id, class Attrs>
struct pooling_of_x : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
template <op_id Id, class Attrs>
struct pooling_gradient : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"g", FLOATS}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
// Of maxima, and of adaptive ones.
template <op_id Id, class Attrs>
struct pooling_gradient_at_x : pooling_gradient<Id, Attrs> {
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}};
  static constexpr std::string_view formula = "sum of g over the windows whose (first) greatest x is here";
};
template <op_id Id>
struct greatest_of_window : pooling_of_x<Id, max_pool2d_options> {
  static constexpr std::string_view formula = "the greatest x in the window; NaN wins, -0 < +0";
};
template <op_id Id>
struct mean_of_window : pooling_of_x<Id, avg_pool2d_options> {
  static constexpr std::string_view formula = "(sum of x in the window) / count";
};
template <op_id Id>
struct mean_of_window_gradient : pooling_gradient<Id, avg_pool2d_backward_attrs> {
  static constexpr std::string_view formula = "sum over the windows that hold the pixel of g / count";
};
struct max_pool2d : greatest_of_window<op_id::max_pool2d> {};
struct max_pool2d_backward : pooling_gradient_at_x<op_id::max_pool2d_backward, max_pool2d_options> {};
struct avg_pool2d : mean_of_window<op_id::avg_pool2d> {};
struct avg_pool2d_backward : mean_of_window_gradient<op_id::avg_pool2d_backward> {};
struct max_pool3d : greatest_of_window<op_id::max_pool3d> {};
struct max_pool3d_backward : pooling_gradient_at_x<op_id::max_pool3d_backward, max_pool2d_options> {};
struct avg_pool3d : mean_of_window<op_id::avg_pool3d> {};
struct avg_pool3d_backward : mean_of_window_gradient<op_id::avg_pool3d_backward> {};

struct softmax : of_x<op_id::softmax, softmax_attrs, FLOATS> {
  static constexpr std::string_view formula = "e^x_i / sum of e^x_j along the axis";
};
struct log_softmax : of_x<op_id::log_softmax, softmax_attrs, FLOATS> {
  static constexpr std::string_view formula = "x_i - ln sum of e^x_j along the axis";
};
struct logsumexp : of_x<op_id::logsumexp, reduce_options, FLOATS> {
  static constexpr std::string_view formula = "ln sum of e^x over the axes";
};
struct cross_entropy : operation<op_id::cross_entropy> {
  static constexpr std::string_view formula =
      "logsumexp(x) - x_target per row; their mean, sum, or each; with weights and smoothing s: the sum of a_i * "
      "(logsumexp(x) - "
      "x_i), a_i = (1 - s) * weight_i * (i = target) + s / classes * weight_i; the mean by the sum of weight_target";
  using attrs = cross_entropy_options;
  static constexpr operand in[] = {{"logits", FLOATS}, {"targets", I64, false, extent::rows}, along("weight", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct softmax_backward : gradient_at_y<op_id::softmax_backward, softmax_options, FLOATS> {
  static constexpr std::string_view formula = "y_i * (g_i - sum of g_j * y_j along the axis)";
};
struct log_softmax_backward : gradient_at_y<op_id::log_softmax_backward, softmax_options, FLOATS> {
  static constexpr operand in[] = {{"g", FLOATS}, of(domain::logarithms, {"y", FLOATS})};
  static constexpr std::string_view formula = "g_i - e^y_i * sum of g_j along the axis";
};
struct logsumexp_backward : gradient_at_x<op_id::logsumexp_backward, reduce_options, FLOATS> {
  static constexpr std::string_view formula = "g * e^x_i / sum of e^x_j over the axes";
};
struct cross_entropy_backward : operation<op_id::cross_entropy_backward> {
  static constexpr std::string_view formula =
      "g * (softmax(x)_i - (i = target)), / rows not ignored for mean; with weights and smoothing: g * (softmax(x)_i * "
      "sum of a_j - "
      "a_i), / the sum of weight_target";
  using attrs = cross_entropy_options;
  static constexpr operand in[] = {{"g", FLOATS}, {"logits", FLOATS}, {"targets", I64}, {"weight", FLOATS, true}};
  static constexpr operand out[] = {{"grad_logits", FLOATS}};
};
struct cross_entropy_probabilities : operation<op_id::cross_entropy_probabilities> {
  static constexpr std::string_view formula =
      "the sum of a_i * (logsumexp(x) - x_i) per row, a_i = weight_i * ((1 - s) * probability_i + s / classes), s the "
      "smoothing; their "
      "mean over rows, sum, or each";
  using attrs = cross_entropy_probabilities_options;
  static constexpr operand in[] = {{"logits", FLOATS}, {"probabilities", FLOATS}, along("weight", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct cross_entropy_probabilities_backward : operation<op_id::cross_entropy_probabilities_backward> {
  static constexpr std::string_view formula = "g * (softmax(x)_i * sum of a_j - a_i), / rows for mean";
  using attrs = cross_entropy_probabilities_options;
  static constexpr operand in[] = {
      {"g", FLOATS}, {"logits", FLOATS}, {"probabilities", FLOATS}, {"weight", FLOATS, true}};
  static constexpr operand out[] = {{"grad_logits", FLOATS}};
};

// Norms: of a row's mean m and variance v, both exact. The statistics are outputs that may be absent, binary32, beside f64 f64.
template <op_id Id, class Attrs>
struct norm_of_rows : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"x", FLOATS}, along("weight", FLOATS), along("bias", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS}, {"mean", STATES, true}, {"rstd", STATES, true}};
};
struct layer_norm : norm_of_rows<op_id::layer_norm, layer_norm_options> {
  static constexpr std::string_view formula =
      "(x - m) / sqrt(v + eps) * weight + bias, m and v the mean and variance over the axes; m; 1 / sqrt(v + eps)";
};
struct rms_norm : operation<op_id::rms_norm> {
  static constexpr std::string_view formula =
      "x / sqrt(q + eps) * weight, q the mean of x^2 over the axes; 1 / sqrt(q + eps)";
  using attrs = rms_norm_options;
  static constexpr operand in[] = {{"x", FLOATS}, along("weight", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS}, {"rstd", STATES, true}};
};
struct group_norm : norm_of_rows<op_id::group_norm, group_norm_options> {
  static constexpr std::string_view formula =
      "as layer_norm, over a group of channels (axis 1) of a sample (axis 0); weight and bias per channel";
};
struct batch_norm : norm_of_rows<op_id::batch_norm, batch_norm_options> {
  static constexpr std::string_view formula =
      "as layer_norm, over all but one axis, along which weight and bias lie: training";
};

// Gradients of norms, of the statistics as they are given: h = (x - mean) * rstd. That to a bias is a sum.
template <op_id Id, class Attrs>
struct norm_gradient : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {
      {"g", FLOATS}, {"x", FLOATS}, {"mean", STATES}, {"rstd", STATES}, {"weight", FLOATS, true}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
template <op_id Id, class Attrs>
struct norm_weight_gradient : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}, {"mean", STATES}, {"rstd", STATES}};
  static constexpr operand out[] = {{"grad_weight", FLOATS}};
};
struct layer_norm_backward : norm_gradient<op_id::layer_norm_backward, layer_norm_backward_options> {
  static constexpr std::string_view formula =
      "rstd * (t - (sum of t) / n - h * (sum of t * h) / n) over the axes, t = g * weight, h = (x - mean) * rstd";
};
struct rms_norm_backward : operation<op_id::rms_norm_backward> {
  static constexpr std::string_view formula =
      "rstd * (t - h * (sum of t * h) / n) over the axes, t = g * weight, h = x * rstd";
  using attrs = layer_norm_backward_options;
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}, {"rstd", STATES}, {"weight", FLOATS, true}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
struct group_norm_backward : norm_gradient<op_id::group_norm_backward, group_norm_backward_options> {
  static constexpr std::string_view formula = "as layer_norm_backward, over a group of channels of a sample";
};
struct batch_norm_backward : norm_gradient<op_id::batch_norm_backward, batch_norm_backward_options> {
  static constexpr std::string_view formula = "as layer_norm_backward, over all but one axis: training";
};
struct layer_norm_weight_backward
    : norm_weight_gradient<op_id::layer_norm_weight_backward, layer_norm_backward_options> {
  static constexpr std::string_view formula = "sum of g * (x - mean) * rstd over all that share the weight";
};
struct rms_norm_weight_backward : operation<op_id::rms_norm_weight_backward> {
  static constexpr std::string_view formula = "sum of g * x * rstd over all that share the weight";
  using attrs = layer_norm_backward_options;
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}, {"rstd", STATES}};
  static constexpr operand out[] = {{"grad_weight", FLOATS}};
};
struct group_norm_weight_backward
    : norm_weight_gradient<op_id::group_norm_weight_backward, group_norm_backward_options> {
  static constexpr std::string_view formula = "sum of g * (x - mean) * rstd over all that share the weight";
};
struct batch_norm_weight_backward
    : norm_weight_gradient<op_id::batch_norm_weight_backward, batch_norm_backward_options> {
  static constexpr std::string_view formula = "sum of g * (x - mean) * rstd over all that share the weight";
};

// batch_norm with statistics of several batches: updated in training, given in inference.
struct batch_norm_running : operation<op_id::batch_norm_running> {
  static constexpr std::string_view formula =
      "as batch_norm, of a batch of n elements a channel; running_mean' = (1 - momentum) running_mean + momentum m, "
      "running_var' = (1 - momentum) running_var + momentum v n / (n - 1)";
  using attrs = batch_norm_running_options;
  static constexpr operand in[] = {{"x", FLOATS},
                                   {"running_mean", FLOATS, false, extent::along},
                                   {"running_var", FLOATS, false, extent::along},
                                   along("weight", FLOATS),
                                   along("bias", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS},
                                    {"mean", STATES, true},
                                    {"rstd", STATES, true},
                                    {"running_mean", FLOATS, true},
                                    {"running_var", FLOATS, true}};
};
struct batch_norm_inference : operation<op_id::batch_norm_inference> {
  static constexpr std::string_view formula = "(x - running_mean) / sqrt(running_var + eps) * weight + bias";
  using attrs = batch_norm_options;
  static constexpr operand in[] = {{"x", FLOATS},
                                   {"running_mean", STATES, false, extent::along},
                                   {"running_var", STATES, false, extent::along},
                                   along("weight", FLOATS),
                                   along("bias", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct batch_norm_inference_backward : operation<op_id::batch_norm_inference_backward> {
  static constexpr std::string_view formula = "g * weight / sqrt(running_var + eps)";
  using attrs = batch_norm_inference_backward_options;
  static constexpr operand in[] = {{"g", FLOATS}, {"running_var", STATES}, {"weight", FLOATS, true}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
struct batch_norm_inference_weight_backward : operation<op_id::batch_norm_inference_weight_backward> {
  static constexpr std::string_view formula =
      "(sum of g * (x - running_mean) over a channel) / sqrt(running_var + eps)";
  using attrs = batch_norm_inference_backward_options;
  static constexpr operand in[] = {{"g", FLOATS}, {"x", FLOATS}, {"running_mean", STATES}, {"running_var", STATES}};
  static constexpr operand out[] = {{"grad_weight", FLOATS}};
};

// The operands of sgd and adamw are one group per tensor: p0 g0 v0 p1 g1 v1 ..., the outputs likewise. Parameters and gradients have
// one format, states are f32, of f64 parameters f64.
struct sgd : operation<op_id::sgd> {
  static constexpr std::string_view formula =
      "v' = momentum v + (1 - dampening)(g + weight_decay p), without v g + weight_decay p; p' = p - lr v'; nesterov: "
      "p' = p - lr (g + weight_decay p + momentum v')";
  using attrs = sgd_options;
  static constexpr operand in[] = {{"param", FLOATS}, {"grad", FLOATS}, {"velocity", STATES, true}};
  static constexpr operand out[] = {{"param", FLOATS}, {"velocity", STATES, true}};
};
struct adamw : operation<op_id::adamw> {
  static constexpr std::string_view formula =
      "m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; c_i = 1 - beta_i^step; p' = p (1 - lr "
      "weight_decay) - lr (m' / c1) / (sqrt(v' / c2) + eps)";
  using attrs = adamw_options;
  static constexpr operand in[] = {
      {"param", FLOATS}, {"grad", FLOATS}, {"first_moment", STATES}, {"second_moment", STATES}};
  static constexpr operand out[] = {{"param", FLOATS}, {"first_moment", STATES}, {"second_moment", STATES}};
};

struct normal : of_nothing<op_id::normal, normal_attrs, FLOATS> {
  static constexpr std::string_view formula =
      "mean + stddev * sqrt(-2 ln u1) * (cos, sin)(2 pi u2), u1 and u2 from Philox4x32-10";
};
struct exponential : of_nothing<op_id::exponential, exponential_attrs, FLOATS> {
  static constexpr std::string_view formula = "-ln u / rate, never 0, u on (0, 1) from Philox4x32-10";
};
struct linspace : of_nothing<op_id::linspace, linspace_attrs, FLOATS> {
  static constexpr std::string_view formula = "start + i * (end - start) / (count - 1); start if count is 1";
};
struct arange : of_nothing<op_id::arange, arange_attrs, FLOATS> {
  static constexpr std::string_view formula = "start + i * step";
};
struct bernoulli : of_nothing<op_id::bernoulli, bernoulli_attrs, BOOL> {
  static constexpr std::string_view formula = "w < ceil(p 2^32), w a Philox word";
};
struct randint : of_nothing<op_id::randint, randint_attrs, I64> {
  static constexpr std::string_view formula = "low + floor(W (high - low) / 2^64), W 64 bits from Philox";
};
struct multinomial : operation<op_id::multinomial> {
  static constexpr std::string_view formula =
      "the first i with C_i 2^64 > W C_n, C_i = x_0 + ... + x_i; without replacement the least -ln u_i / x_i";
  using attrs = multinomial_attrs;
  static constexpr operand in[] = {of(domain::weights, {"x", FLOATS})};
  static constexpr operand out[] = {{"out", I64}};
};
struct dropout : of_x<op_id::dropout, dropout_attrs, STATES> {
  static constexpr std::string_view formula = "+0 where bernoulli(p), else x / (1 - p)";
};
struct dropout_backward : gradient<op_id::dropout_backward, dropout_attrs, STATES> {
  static constexpr std::string_view formula = "+0 where bernoulli(p), else g / (1 - p)";
};

// Losses: operands of one format, which broadcast; a gradient is one of x, of the broadcast shape.
template <op_id Id, class Attrs, dtype_set Formats = NARROW>
struct loss_of_x_t : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"x", Formats}, {"t", Formats}};
  static constexpr operand out[] = {{"out", Formats}};
};
template <op_id Id, class Attrs, dtype_set Formats = NARROW>
struct loss_gradient : operation<Id> {
  using attrs = Attrs;
  static constexpr operand in[] = {{"g", Formats}, {"x", Formats}, {"t", Formats}};
  static constexpr operand out[] = {{"grad_x", Formats}};
};
struct mse_loss : loss_of_x_t<op_id::mse_loss, loss_options, FLOATS> {
  static constexpr std::string_view formula = "(x - t)^2 per element; their mean, sum, or each";
};
struct l1_loss : loss_of_x_t<op_id::l1_loss, loss_options, FLOATS> {
  static constexpr std::string_view formula = "|x - t| per element; their mean, sum, or each";
};
struct smooth_l1_loss : loss_of_x_t<op_id::smooth_l1_loss, smooth_l1_loss_options, FLOATS> {
  static constexpr std::string_view formula =
      "d = x - t: |d| < beta ? d^2 / (2 beta) : |d| - beta / 2 per element; their mean, sum, or each";
};
struct huber_loss : loss_of_x_t<op_id::huber_loss, huber_loss_options, FLOATS> {
  static constexpr std::string_view formula =
      "d = x - t: |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2) per element; their mean, sum, or each";
};
struct mse_loss_backward : loss_gradient<op_id::mse_loss_backward, loss_options, FLOATS> {
  static constexpr std::string_view formula = "2 g (x - t), / elements for mean";
};
struct l1_loss_backward : loss_gradient<op_id::l1_loss_backward, loss_options, FLOATS> {
  static constexpr std::string_view formula = "x > t ? g : x < t ? -g : +0, / elements for mean";
};
struct smooth_l1_loss_backward : loss_gradient<op_id::smooth_l1_loss_backward, smooth_l1_loss_options, FLOATS> {
  static constexpr std::string_view formula =
      "d = x - t: |d| < beta ? g d / beta : d > 0 ? g : d < 0 ? -g : +0, / elements for mean";
};
struct huber_loss_backward : loss_gradient<op_id::huber_loss_backward, huber_loss_options, FLOATS> {
  static constexpr std::string_view formula =
      "d = x - t: |d| <= delta ? g d : d > 0 ? g delta : -g delta, / elements for mean";
};

struct soft_margin_loss : loss_of_x_t<op_id::soft_margin_loss, loss_options, FLOATS> {
  static constexpr std::string_view formula = "ln(1 + e^(-t x)) per element; their mean, sum, or each";
};
struct soft_margin_loss_backward : loss_gradient<op_id::soft_margin_loss_backward, loss_options, FLOATS> {
  static constexpr std::string_view formula = "-g t / (1 + e^(t x)), / elements for mean";
};

struct binary_cross_entropy_with_logits : operation<op_id::binary_cross_entropy_with_logits> {
  static constexpr std::string_view formula =
      "w ((1 - t) x + (1 + (q - 1) t) ln(1 + e^-x)) per element, w = weight, q = pos_weight, 1 where absent; their "
      "mean, "
      "sum, or each";
  using attrs = binary_cross_entropy_with_logits_options;
  static constexpr operand in[] = {
      {"x", FLOATS}, {"t", FLOATS}, {"weight", FLOATS, true}, {"pos_weight", FLOATS, true}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct binary_cross_entropy_with_logits_backward : operation<op_id::binary_cross_entropy_with_logits_backward> {
  static constexpr std::string_view formula = "g w ((1 - t) / (1 + e^-x) - q t / (1 + e^x)), / elements for mean";
  using attrs = binary_cross_entropy_with_logits_options;
  static constexpr operand in[] = {
      {"g", FLOATS}, {"x", FLOATS}, {"t", FLOATS}, {"weight", FLOATS, true}, {"pos_weight", FLOATS, true}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
struct binary_cross_entropy : operation<op_id::binary_cross_entropy> {
  static constexpr std::string_view formula =
      "w (t min(-ln x, 100) + (1 - t) min(-ln(1 - x), 100)) per element, w = weight, 1 where absent; their mean, sum, "
      "or "
      "each";
  using attrs = binary_cross_entropy_options;
  static constexpr operand in[] = {of(domain::probabilities, {"x", FLOATS}), of(domain::probabilities, {"t", FLOATS}),
                                   of(domain::probabilities, {"weight", FLOATS, true})};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct binary_cross_entropy_backward : operation<op_id::binary_cross_entropy_backward> {
  static constexpr std::string_view formula = "g w (x - t) / max(x (1 - x), 10^-12), / elements for mean";
  using attrs = binary_cross_entropy_options;
  static constexpr operand in[] = {of(domain::probabilities, {"g", FLOATS}), of(domain::probabilities, {"x", FLOATS}),
                                   of(domain::probabilities, {"t", FLOATS}),
                                   of(domain::probabilities, {"weight", FLOATS, true})};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
struct kl_div : loss_of_x_t<op_id::kl_div, kl_div_options, FLOATS> {
  static constexpr operand in[] = {of(domain::probabilities, {"x", FLOATS}), of(domain::probabilities, {"t", FLOATS})};
  static constexpr std::string_view formula =
      "t (ln t - x), with log_target e^t (t - x), per element; their mean, sum, sum over samples (batchmean), or each";
};
struct kl_div_backward : loss_gradient<op_id::kl_div_backward, kl_div_options, FLOATS> {
  static constexpr std::string_view formula =
      "-g t, with log_target -g e^t, / elements for mean, / samples for batchmean";
};

// Losses of the elements at targets.
struct nll_loss : operation<op_id::nll_loss> {
  static constexpr std::string_view formula =
      "-weight_target * x_target per row; their sum / sum of weight_target (mean), their sum, or each; the sum of "
      "weight_target";
  using attrs = nll_loss_options;
  static constexpr operand in[] = {{"x", FLOATS}, {"targets", I64, false, extent::rows}, along("weight", FLOATS)};
  static constexpr operand out[] = {{"out", FLOATS}, {"total_weight", F32 | F64, true}};
};
struct nll_loss_backward : operation<op_id::nll_loss_backward> {
  static constexpr std::string_view formula = "-g * weight_i at i = target, / total_weight for mean; +0 elsewhere";
  using attrs = nll_loss_options;
  static constexpr operand in[] = {
      {"g", FLOATS}, {"x", FLOATS}, {"targets", I64}, {"weight", FLOATS, true}, {"total_weight", F32 | F64, true}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};

// Sums to places that indices give. A place that no index names keeps the bits that it had.
template <op_id Id>
struct sum_to_places : operation<Id> {
  using attrs = index_add_options;
  static constexpr operand in[] = {
      {"x", FLOATS}, of(domain::indices, {"index", I64, false, extent::own}), {"source", FLOATS, false, extent::own}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct index_add : sum_to_places<op_id::index_add> {
  static constexpr std::string_view formula =
      "x + alpha * sum of the slices of source along the axis whose index is here; x itself where no index is";
};
struct scatter_add : sum_to_places<op_id::scatter_add> {
  static constexpr std::string_view formula =
      "x + alpha * sum of the elements of source whose index along the axis is here; x itself where no index is";
};
struct embedding_backward : operation<op_id::embedding_backward> {
  static constexpr std::string_view formula =
      "sum of g over the places with this index, / their number with scale_grad_by_freq; +0 where no index is";
  using attrs = embedding_backward_attrs;
  static constexpr operand in[] = {{"g", FLOATS}, of(domain::indices, {"indices", I64, false, extent::own})};
  static constexpr operand out[] = {{"grad_weight", FLOATS}};
};

// What is found of rows: m their mean, both exact. Statistics: the operations with these options.
template <class Op>
inline constexpr bool is_statistic = std::is_same_v<typename Op::attrs, var_options>;
struct var : of_x<op_id::var, var_options, FLOATS> {
  static constexpr std::string_view formula =
      "(sum of (x - m)^2 over the axes) / (count - correction), m the mean of x";
};
struct stddev : of_x<op_id::stddev, var_options, FLOATS> {
  static constexpr std::string_view formula =
      "sqrt((sum of (x - m)^2 over the axes) / (count - correction)), m the mean of x";
};
struct var_mean : operation<op_id::var_mean> {
  static constexpr std::string_view formula =
      "(sum of (x - m)^2 over the axes) / (count - correction), m the mean of x; m";
  using attrs = var_options;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"var", FLOATS}, {"mean", FLOATS, true}};
};

// Reductions whose plans are those of dot, sum, max or min.
struct sum_squares : reduction_of_x<op_id::sum_squares, FLOATS> {
  static constexpr std::string_view formula = "sum of x^2 over the axes";
};
struct vector_norm : operation<op_id::vector_norm> {
  static constexpr std::string_view formula =
      "over the axes, p = 1: sum of |x|; 2: sqrt(sum of x^2); inf, -inf: the greatest, least |x|";
  using attrs = vector_norm_options;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};

// What the first elements of a line make, or all of them.
struct cumsum : of_x<op_id::cumsum, scan_options, FLOATS | INTEGERS, FLOATS | I64> {
  static constexpr std::string_view formula =
      "sum of x_0 to x_i along the axis; exact zero is +0; of integers i64, modulo 2^64";
};
struct prod : reduction_of_x<op_id::prod, FLOATS | INTEGERS, FLOATS | I64> {
  static constexpr std::string_view formula =
      "product of x over the axes, 1 of none; a zero with an infinity is NaN; of integers i64, modulo 2^64";
};
struct cumprod : of_x<op_id::cumprod, scan_options, FLOATS | INTEGERS, FLOATS | I64> {
  static constexpr std::string_view formula =
      "product of x_0 to x_i along the axis; a zero with an infinity is NaN; of integers i64, modulo 2^64";
};
struct logcumsumexp : of_x<op_id::logcumsumexp, scan_options, FLOATS> {
  static constexpr std::string_view formula = "ln sum of e^x_0 to e^x_i along the axis";
};

struct ldexp : operation<op_id::ldexp> {
  static constexpr std::string_view formula = "x * 2^n";
  using attrs = no_attrs;
  static constexpr operand in[] = {{"x", FLOATS}, of(domain::exponents, {"n", I64 | I32})};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct frexp : operation<op_id::frexp> {
  static constexpr std::string_view formula =
      "m and e with x = m * 2^e, |m| in [1/2, 1); of zeros, infinities and NaN x and 0";
  using attrs = no_attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"significand", FLOATS}, {"exponent", I32}};
};

// q (.., H, Lq, D), k (.., G, Lk, D), v (.., G, Lk, E), mask to (.., H, Lq, Lk), slopes (H).
struct attention : operation<op_id::attention> {
  static constexpr std::string_view formula =
      "(sum over j of e^(a_j) * v_j) / (sum of e^(a_j)), a_j = scale * q_i . k_j + slope * (j - i - off) + mask_ij; "
      "lse the logarithm of that sum";
  using attrs = attention_options;
  static constexpr operand in[] = {{"q", FLOATS},
                                   {"k", FLOATS, false, extent::own},
                                   {"v", FLOATS, false, extent::own},
                                   {"mask", BOOL | FLOATS, true, extent::own},
                                   {"slopes", F32, true, extent::own}};
  static constexpr operand out[] = {{"out", FLOATS}, {"lse", STATES, true}};
};
// Beside these g and y (.., H, Lq, E), lse (.., H, Lq).
struct attention_backward : operation<op_id::attention_backward> {
  static constexpr std::string_view formula =
      "P_ij = e^(a_ij - lse_i), T_ij = g_i . v_j - g_i . y_i: grad_q_i = scale * sum over j of P_ij * T_ij * k_j, "
      "grad_k_j = scale * sum over i of P_ij * T_ij * q_i, grad_v_j = sum over i of P_ij * g_i";
  using attrs = attention_options;
  static constexpr operand in[] = {{"g", FLOATS},
                                   of(domain::scores, {"q", FLOATS, false, extent::own}),
                                   of(domain::scores, {"k", FLOATS, false, extent::own}),
                                   {"v", FLOATS, false, extent::own},
                                   {"y", FLOATS},
                                   of(domain::scores, {"lse", STATES, false, extent::own}),
                                   of(domain::scores, {"mask", BOOL | FLOATS, true, extent::own}),
                                   of(domain::scores, {"slopes", F32, true, extent::own})};
  static constexpr operand out[] = {{"grad_q", FLOATS}, {"grad_k", FLOATS}, {"grad_v", FLOATS}};
};

// Pooling whose plans are those of max_pool2d, avg_pool2d and their gradients.
template <op_id Id, class Attrs>
struct pooling_with_indices : pooling_of_x<Id, Attrs> {
  static constexpr operand out[] = {{"out", FLOATS}, {"indices", I64}};
};
struct max_pool2d_with_indices : pooling_with_indices<op_id::max_pool2d_with_indices, max_pool2d_options> {
  static constexpr std::string_view formula = "max_pool2d; where in the plane (row-major) the first greatest x is";
};
struct max_pool3d_with_indices : pooling_with_indices<op_id::max_pool3d_with_indices, max_pool2d_options> {
  static constexpr std::string_view formula = "max_pool3d; where in the volume (row-major) the first greatest x is";
};
template <op_id Id>
struct greatest_of_adaptive_window : pooling_of_x<Id, adaptive_pool2d_options> {
  static constexpr std::string_view formula =
      "the greatest of x from floor(i h / oh) to ceil((i + 1) h / oh) - 1, likewise w";
};
template <op_id Id>
struct mean_of_adaptive_window : pooling_of_x<Id, adaptive_pool2d_options> {
  static constexpr std::string_view formula =
      "the mean of x from floor(i h / oh) to ceil((i + 1) h / oh) - 1, likewise w";
};
template <op_id Id>
struct mean_of_adaptive_window_gradient : pooling_gradient<Id, adaptive_avg_pool2d_backward_attrs> {
  static constexpr std::string_view formula = "sum over the windows that hold the pixel of g / their size";
};
struct adaptive_max_pool2d : greatest_of_adaptive_window<op_id::adaptive_max_pool2d> {};
struct adaptive_max_pool2d_with_indices
    : pooling_with_indices<op_id::adaptive_max_pool2d_with_indices, adaptive_pool2d_options> {
  static constexpr std::string_view formula =
      "adaptive_max_pool2d; where in the plane (row-major) the first greatest x is";
};
struct adaptive_max_pool2d_backward : pooling_gradient_at_x<op_id::adaptive_max_pool2d_backward, no_attrs> {};
struct adaptive_avg_pool2d : mean_of_adaptive_window<op_id::adaptive_avg_pool2d> {};
struct adaptive_avg_pool2d_backward : mean_of_adaptive_window_gradient<op_id::adaptive_avg_pool2d_backward> {};
struct adaptive_max_pool3d : greatest_of_adaptive_window<op_id::adaptive_max_pool3d> {};
struct adaptive_max_pool3d_with_indices
    : pooling_with_indices<op_id::adaptive_max_pool3d_with_indices, adaptive_pool2d_options> {
  static constexpr std::string_view formula =
      "adaptive_max_pool3d; where in the volume (row-major) the first greatest x is";
};
struct adaptive_max_pool3d_backward : pooling_gradient_at_x<op_id::adaptive_max_pool3d_backward, no_attrs> {};
struct adaptive_avg_pool3d : mean_of_adaptive_window<op_id::adaptive_avg_pool3d> {};
struct adaptive_avg_pool3d_backward : mean_of_adaptive_window_gradient<op_id::adaptive_avg_pool3d_backward> {};

struct upsample_nearest2d : operation<op_id::upsample_nearest2d> {
  static constexpr std::string_view formula =
      "x at row min(floor(i r), h - 1), r = h / oh, or 1 / scale_h; exact: floor((i + 1/2) r); likewise columns";
  using attrs = upsample_nearest2d_attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct upsample_nearest2d_backward : operation<op_id::upsample_nearest2d_backward> {
  static constexpr std::string_view formula = "sum of g over the pixels that upsample_nearest2d takes from here";
  using attrs = upsample_nearest2d_attrs;
  static constexpr operand in[] = {{"g", FLOATS}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};

struct upsample_linear : operation<op_id::upsample_linear> {
  static constexpr std::string_view formula =
      "sum of the weights of pixels i0 and i0 + 1 at u times x, along 1 to 3 axes: 1 - min(u - i0, 1), min(u - i0, 1)";
  using attrs = interpolation_attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct upsample_linear_backward : operation<op_id::upsample_linear_backward> {
  static constexpr std::string_view formula = "sum of g times the weights that this pixel has in upsample_linear";
  using attrs = interpolation_attrs;
  static constexpr operand in[] = {{"g", FLOATS}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};
struct upsample_cubic : operation<op_id::upsample_cubic> {
  static constexpr std::string_view formula =
      "sum of the weights of pixels i0 - 1 to i0 + 2 at u times x, along 1 to 3 axes: those of cubic convolution, A = "
      "-3/4";
  using attrs = interpolation_attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct upsample_cubic_backward : operation<op_id::upsample_cubic_backward> {
  static constexpr std::string_view formula = "sum of g times the weights that this pixel has in upsample_cubic";
  using attrs = interpolation_attrs;
  static constexpr operand in[] = {{"g", FLOATS}};
  static constexpr operand out[] = {{"grad_x", FLOATS}};
};

// Lists of tensors as one vector: x0 x1 ...; of clip_grad_norm the outputs likewise, then the norm.
struct total_norm : operation<op_id::total_norm> {
  static constexpr std::string_view formula =
      "over all elements of all tensors, p = 1: sum of |x|; 2: sqrt(sum of x^2); inf: the greatest |x|";
  using attrs = total_norm_options;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct clip_grad_norm : operation<op_id::clip_grad_norm> {
  static constexpr std::string_view formula =
      "grad min(1, max_norm / (N + 10^-6)), N total_norm of all gradients, not rounded; N";
  using attrs = clip_grad_norm_options;
  static constexpr operand in[] = {{"grad", FLOATS}};
  static constexpr operand out[] = {{"grad", FLOATS}, {"total_norm", FLOATS, true}};
};

/// Whether an operation's first operand is the gradient of its forward operation's result.
template <class Op>
inline constexpr bool is_gradient = Op::in[0].name == "g";
/// The operation whose gradient this is, by its name; itself if it is none, or that of no structured operation.
constexpr op_id forward_of(op_id op) {
  const std::string_view name = structured_row_of(op).name;
  for (const std::string_view end : {"_weight_backward", "_backward", "_grad_input", "_grad_weight", "_grad_bias"}) {
    if (!name.ends_with(end)) continue;
    for (const structured_row& row : structured_rows) {
      if (row.name == name.substr(0, name.size() - end.size()))
        return static_cast<op_id>(first_structured + (&row - structured_rows));
    }
  }
  return op;
}
static_assert(forward_of(op_id::batch_norm_inference_weight_backward) == op_id::batch_norm_inference &&
              forward_of(op_id::embedding_backward) == op_id::embedding_backward);

/// Calls f.template operator()<Op>() for every structured operation, in op_id's order.
template <class F>
constexpr void for_each_structured(F&& f) {
#define REPDL_STRUCTURED(name, ...) f.template operator()<name>();
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
}

/// Calls f.template operator()<Op>() for the operation of a number, which is of one of the families. f is compiled for each of them:
/// what has no case for one of them can say so.
template <family... Families, class F>
constexpr void for_operation(op_id id, F&& f) {
  for_each_structured([&]<class Op>() {
    if constexpr (((Op::row.kind == Families) || ...)) {
      if (Op::id == id) f.template operator()<Op>();
    }
  });
}
template <class Op, op_id... Ids>
inline constexpr bool is_one_of = ((Op::id == Ids) || ...);
/// Of a row operation. group_norm and batch_norm are layer_norm of other rows, and so are their gradients; var is var_mean without
/// the mean: their plans say so.
template <class F>
constexpr void for_row_operation(op_id id, F&& f) {
  for_operation<family::softmax, family::norm>(id, [&]<class Op>() {
    using enum op_id;
    constexpr bool of_other_rows = is_one_of<Op, group_norm, batch_norm, group_norm_backward, batch_norm_backward,
                                             group_norm_weight_backward, batch_norm_weight_backward, var>;
    if constexpr (!of_other_rows) f.template operator()<Op>();
  });
}
template <class Op>
inline constexpr bool has_no_case = false;

}  // namespace repdl::ops
