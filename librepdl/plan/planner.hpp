// From checked operands to plans: one planner per structured operation, and one for all elementwise operations.
//
//   infer(in, attrs)      what the outputs are; makes every error that the inputs and attributes allow
//   make(in, out, attrs)  the plan; called after everything was checked, for outputs that are not empty
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "librepdl/ops/structured.hpp"
#include "librepdl/plan/checked_size.hpp"
#include "librepdl/plan/checks.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::plan {

/// What the outputs of a call are.
using specs = inline_vector<tensor_spec, 5>;

/// The shape of elementwise results; the inputs have one format, but for those that the row makes boolean.
sizes infer_map(const ops::elementwise_row& row, std::span<const ops::operand> rows, inputs in);
/// options: as many as the row has.
map_plan make_map(ops::op_id op, inputs in, const tensor_view& out, std::span<const double> options = {});
/// Options as they are given, or not.
using option_span = std::span<const std::optional<double>>;
/// Their values for operands of a format: as many as the row has.
std::array<double, ops::option_list::most> numbers_of(const ops::elementwise_row& row, dtype format,
                                                      option_span options);
/// What option i takes, as text.
std::string range_of(const ops::option_list& options, int i);
/// Their ranges.
void check_options(const ops::elementwise_row& row, std::span<const double> options);

/// The dtype attribute of an operation whose result has any floating-point format, checked.
dtype float_type(std::string_view op, dtype type);
/// A real parameter: 0, or of magnitude in [2^-200, 2^200].
void check_parameter(std::string_view op, std::string_view name, double value, bool may_be_negative);

tensor_spec infer_convert(inputs in, const ops::convert_attrs&);

tensor_spec infer_reduce(ops::op_id op, std::string_view name, inputs in, const reduce_options&);
reduce_plan make_reduce(ops::op_id op, inputs in, const tensor_view& out, const reduce_options&);

reduce_plan make_sum_squares(inputs in, const tensor_view& out, const reduce_options&);
tensor_spec infer_vector_norm(inputs in, const vector_norm_options&);
reduce_plan make_vector_norm(inputs in, const tensor_view& out, const vector_norm_options&);

// What a call's dtype makes of the type of its result.
dtype other_type(std::string_view op, dtype own, const std::optional<dtype>& wanted);
tensor_spec infer_sum(ops::op_id op, std::string_view name, inputs in, const ops::sum_attrs&);
tensor_spec infer_dot(inputs in, const ops::dot_attrs&);
// The same sum, rounded to the output's format.
reduce_plan in_format_of(const tensor_view& out, reduce_plan p);
/// The formats of products of operands of a format: that, and those that have all of its numbers.
ops::dtype_set product_types(dtype own);
tensor_spec infer_matmul(inputs in, const ops::matmul_attrs&);
product_plan make_product(inputs in, const tensor_view& out, const matmul_options&);

/// A product whose operands have a narrower format than it is computed in: copies of those in a wider one, which are exact, and the product
/// of the copies.
template <class Plan>
struct widened {
  inline_vector<map_plan, 3> copies;
  Plan plan;
  checked_size bytes;  ///< of all copies, which lie at `memory`
};
inline bool is_widened(const product_plan& p) noexcept { return p.a.type != p.out.type; }
/// In the result's format. memory: 256-byte aligned. Where it is not known yet, any such address will do.
widened<product_plan> make_widened(const product_plan&, std::byte* memory);

tensor_spec infer_uniform(const ops::uniform_attrs&);
tensor_spec infer_permutation(const ops::permutation_attrs&);
tensor_spec infer_normal(const ops::normal_attrs&);
tensor_spec infer_exponential(const ops::exponential_attrs&);
tensor_spec infer_linspace(const ops::linspace_attrs&);
tensor_spec infer_arange(const ops::arange_attrs&);
sequence_plan make_linspace(const tensor_view& out, const ops::linspace_attrs&);
sequence_plan make_arange(const tensor_view& out, const ops::arange_attrs&);
tensor_spec infer_upsample(bool backward, const const_tensor_view& in, const ops::upsample_nearest2d_attrs&);
upsample_plan make_upsample(bool backward, const const_tensor_view& in, const tensor_view& out,
                            const ops::upsample_nearest2d_attrs&);
tensor_spec infer_interpolation(std::string_view op, bool backward, const const_tensor_view& in,
                                const ops::interpolation_attrs&);
interpolation_plan make_interpolation(bool backward, bool cubic, const const_tensor_view& in, const tensor_view& out,
                                      const ops::interpolation_attrs&);
/// Throws unless value is in [2^-200, 2^200].
void check_positive(std::string_view op, std::string_view name, double value);
tensor_spec infer_bernoulli(const ops::bernoulli_attrs&);
tensor_spec infer_randint(const ops::randint_attrs&);
tensor_spec infer_scan(std::string_view op, inputs in, const scan_options&);
scan_plan make_scan(ops::op_id op, const const_tensor_view& x, const tensor_view& out, const scan_options&);
scan_plan make_prod(inputs in, const tensor_view& out, const reduce_options&);
tensor_spec infer_ldexp(inputs in);
exponent_plan make_ldexp(inputs in, const tensor_view& out);
specs infer_frexp(inputs in);
exponent_plan make_frexp(inputs in, outputs out);
specs infer_attention(std::span<const ops::operand> out, inputs in, const attention_options&);
attention_plan make_attention(inputs in, outputs out, const attention_options&);
specs infer_attention_backward(inputs in, const attention_options&);
attention_plan make_attention_backward(inputs in, outputs out, const attention_options&);
tensor_spec infer_multinomial(inputs in, const ops::multinomial_attrs&);
draw_plan make_multinomial(inputs in, const tensor_view& out, const ops::multinomial_attrs&);
tensor_spec infer_dropout(std::string_view op, inputs in, const ops::dropout_attrs&);
/// Where a random operation writes, and its generator; the operation's own fields are zero.
random_plan make_random(ops::op_id op, const generator&, const tensor_view& out, const const_tensor_view* in = nullptr);
/// Words below it are true with probability p: ceil(p 2^32).
std::uint64_t threshold_of(double p) noexcept;

// op: the operation's name, which says how many spatial axes there are.
tensor_spec infer_conv(std::string_view op, inputs in, const conv2d_options&);
tensor_spec infer_conv(std::string_view op, inputs in, const ops::conv2d_grad_input_attrs&);
tensor_spec infer_conv(std::string_view op, inputs in, const ops::conv2d_grad_weight_attrs&);
conv_plan make_conv(std::string_view op, ops::op_id, inputs in, const tensor_view& out, const conv2d_options&);
/// Of operands of 16 bits, in f32; the result's format stays.
widened<conv_plan> make_widened(const conv_plan&, std::byte* memory);
tensor_spec infer_conv_grad_bias(std::string_view op, inputs in);
reduce_plan make_conv_grad_bias(inputs in, const tensor_view& out);

specs infer_max_pool(std::string_view op, std::span<const ops::operand> out, inputs in, const max_pool2d_options&);
tensor_spec infer_max_pool_backward(std::string_view op, inputs in, const max_pool2d_options&);
pool_plan make_max_pool(std::string_view op, inputs in, outputs out, const max_pool2d_options&);
tensor_spec infer_avg_pool(std::string_view op, inputs in, const avg_pool2d_options&);
pool_plan make_avg_pool(std::string_view op, inputs in, const tensor_view& out, const avg_pool2d_options&);
tensor_spec infer_avg_pool_backward(std::string_view op, inputs in, const ops::avg_pool2d_backward_attrs&);
pool_plan make_avg_pool_backward(std::string_view op, inputs in, const tensor_view& out,
                                 const ops::avg_pool2d_backward_attrs&);
specs infer_adaptive_pool(std::string_view op, std::span<const ops::operand> out, inputs in, const per_axis& size);
tensor_spec infer_adaptive_max_pool_backward(std::string_view op, inputs in);
tensor_spec infer_adaptive_avg_pool_backward(std::string_view op, inputs in, const per_axis& image);
pool_plan make_adaptive_pool(std::string_view op, inputs in, outputs out);

tensor_spec infer_softmax(std::string_view op, inputs in, const softmax_options&);
row_plan make_softmax(ops::op_id op, inputs in, const tensor_view& out, const softmax_options&);
tensor_spec infer_logsumexp(inputs in, const reduce_options&);
row_plan make_logsumexp(inputs in, const tensor_view& out, const reduce_options&);
tensor_spec infer_logsumexp_backward(inputs in, const reduce_options&);
row_plan make_logsumexp_backward(inputs in, const tensor_view& out, const reduce_options&);
/// The classes of cross_entropy and nll_loss, in an operand of this name.
int class_axis(std::string_view op, std::string_view name, const const_tensor_view& x,
               std::optional<std::int64_t> axis);
/// The shape of their targets, which are checked.
sizes check_targets(std::string_view op, const const_tensor_view& x, int axis, const const_tensor_view& targets);
/// Their weights: one for each class, or none.
void check_class_weights(std::string_view op, std::string_view name, const const_tensor_view& x, int axis,
                         const const_tensor_view& weight);
/// cross_entropy in all forms. probabilities: in place of targets.
struct cross_entropy_call {
  std::optional<std::int64_t> axis;
  repdl::reduction reduction;
  std::int64_t ignore_index;
  double label_smoothing;
  bool probabilities;
  bool backward;
};
tensor_spec infer_cross_entropy(std::string_view op, inputs in, const cross_entropy_call&);
row_plan make_cross_entropy(inputs in, const tensor_view& out, const cross_entropy_call&);

/// Of a norm's options: which axes of x are a row, and which of them weights have.
struct norm_call {
  sizes reduced;
  sizes weight;
  double eps = 0;
  std::int64_t groups = 0;  ///< not 0: axis 1 is cut into so many parts, a row has one of them
  double momentum = 0;
};
norm_call check_norm(std::string_view op, const const_tensor_view& x, const layer_norm_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const rms_norm_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const group_norm_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const layer_norm_backward_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const group_norm_backward_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_backward_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_running_options&);
norm_call check_norm(std::string_view op, const const_tensor_view& x, const batch_norm_inference_backward_options&);
/// The operand whose axes are those of the rows: x, or g where there is no x.
constexpr int lead_of(std::span<const ops::operand> in) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].name == "x") return static_cast<int>(i);
  }
  return 0;
}
/// in, out: the operation's operands, whose names say what they are.
specs infer_norm(std::string_view op, std::span<const ops::operand> in, std::span<const ops::operand> out, inputs x,
                 const norm_call&);
row_plan make_norm(ops::op_id op, std::span<const ops::operand> in, std::span<const ops::operand> out, inputs x,
                   outputs y, const norm_call&);

/// var, stddev and var_mean.
specs infer_var(std::string_view op, std::span<const ops::operand> out, inputs in, const var_options&);
row_plan make_var(ops::op_id op, inputs in, outputs out, const var_options&);

/// A loss's options, whatever it has.
struct loss_call {
  repdl::reduction reduction;
  double parameter = 0;
  bool by_sample = false;  // the sum is divided by the size of the first axis
};
loss_call check_loss(std::string_view op, const loss_options&);
loss_call check_loss(std::string_view op, const smooth_l1_loss_options&);
loss_call check_loss(std::string_view op, const huber_loss_options&);
loss_call check_loss(std::string_view op, const binary_cross_entropy_options&);
loss_call check_loss(std::string_view op, const binary_cross_entropy_with_logits_options&);
loss_call check_loss(std::string_view op, const kl_div_options&);
/// A gradient's first operand is g.
tensor_spec infer_loss(std::string_view op, std::span<const ops::operand> rows, inputs in, const loss_call&,
                       bool gradient);
loss_plan make_loss(ops::op_id op, inputs in, const tensor_view& out, const loss_call&, bool gradient);

specs infer_nll_loss(inputs in, const nll_loss_options&);
tensor_spec infer_nll_loss_backward(inputs in, const nll_loss_options&);
nll_plan make_nll_loss(inputs in, outputs out, const nll_loss_options&);
nll_plan make_nll_loss_backward(inputs in, const tensor_view& out, const nll_loss_options&);

tensor_spec infer_index_add(std::string_view op, inputs in, const index_add_options&);
tensor_spec infer_scatter_add(std::string_view op, inputs in, const index_add_options&);
tensor_spec infer_embedding_backward(std::string_view op, inputs in, const ops::embedding_backward_attrs&);
scatter_plan make_index_add(inputs in, const tensor_view& out, const index_add_options&);
scatter_plan make_scatter_add(inputs in, const tensor_view& out, const index_add_options&);
scatter_plan make_embedding_backward(inputs in, const tensor_view& out, const ops::embedding_backward_attrs&);

/// The operands of a call: Op's rows, for optimisers once per tensor.
class operand_rows {
 public:
  operand_rows(std::span<const ops::operand> in, std::span<const ops::operand> out) : in_(in), out_(out) {}
  /// As many groups as the inputs fill; `once`: outputs that come once, after the others.
  operand_rows(std::span<const ops::operand> in, std::span<const ops::operand> out, std::size_t given,
               std::span<const ops::operand> once = {});
  /// One group's inputs; empty where operands come once.
  std::span<const ops::operand> group() const { return group_; }
  operand_rows(const operand_rows&) = delete;
  operand_rows& operator=(const operand_rows&) = delete;
  std::span<const ops::operand> in() const { return in_; }
  std::span<const ops::operand> out() const { return out_; }

 private:
  std::vector<std::string> names_;  // "grad[3]"
  inline_vector<ops::operand, 8> all_;
  std::span<const ops::operand> in_, out_, group_;
};
/// One group's rows: sgd without momentum has no velocity.
std::span<const ops::operand> group_in(const sgd_options&);
std::span<const ops::operand> group_out(const sgd_options&);
specs infer_step(std::string_view op, const operand_rows& rows, inputs in, std::size_t group_in, std::size_t group_out);
void check_step(const sgd_options&);
void check_step(const adamw_options&);
step_plan make_step(ops::op_id op, inputs in, outputs out, std::size_t group_in, std::size_t group_out);
specs infer_total_norm(const operand_rows& rows, inputs in, const total_norm_options&);
specs infer_clip_grad_norm(const operand_rows& rows, inputs in, const clip_grad_norm_options&);
clip_plan make_clip(ops::op_id op, inputs in, outputs out, double p, double max_norm);
/// RN(1 - beta^step), 0 <= beta < 1, step >= 1.
double bias_correction(double beta, std::int64_t step);

/// Axes of one iteration space with the strides of several operands; normalised in place.
struct loop_axes {
  int rank = 0;
  int operands = 0;
  axes shape;
  std::array<axes, row_plan::most_inputs + row_plan::most_outputs> stride;

  loop_axes() noexcept : shape{}, stride{} {}
  /// Without zeros, for who reads no more than was pushed.
  struct bare {};
  explicit loop_axes(bare) noexcept {}  // NOLINT

  void push(std::int64_t size, std::span<const std::int64_t> strides);
  void push(std::int64_t size, std::initializer_list<std::int64_t> strides) {
    push(size, std::span<const std::int64_t>(strides.begin(), strides.size()));
  }
  /// Drops axes of size 1. A space without elements becomes one axis of size 0: the product of its other sizes may be
  /// no int64.
  void squeeze();
  /// The product of the sizes, after squeeze().
  std::int64_t count() const;
  /// Sorts the axes so that the given operand's strides fall (the order of iteration must not matter).
  void sort_by(int operand);
  /// Merges neighbours that every operand steps through as one.
  void merge();
  void remove(int axis);
};

template <class Op>
struct planner;

template <>
struct planner<ops::convert> {
  static tensor_spec infer(inputs in, const ops::convert_attrs& a) { return infer_convert(in, a); }
  static map_plan make(inputs in, const tensor_view& out, const ops::convert_attrs& a) {
    map_plan p = make_map(ops::op_id::convert, in, out);
    p.options[0] = a.saturate ? 1 : 0;
    p.has_options = a.saturate;
    return p;
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, reduce_options>  // logsumexp and its gradient have planners of their own
struct planner<Op> {
  static tensor_spec infer(inputs in, const reduce_options& a) { return infer_reduce(Op::id, Op::name, in, a); }
  static reduce_plan make(inputs in, const tensor_view& out, const reduce_options& a) {
    return make_reduce(Op::id, in, out, a);
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, ops::sum_attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::sum_attrs& a) { return infer_sum(Op::id, Op::name, in, a); }
  static reduce_plan make(inputs in, const tensor_view& out, const ops::sum_attrs& a) {
    return in_format_of(out, make_reduce(Op::id, in, out, a));
  }
};

template <>
struct planner<ops::dot> {
  static tensor_spec infer(inputs in, const ops::dot_attrs& a) { return infer_dot(in, a); }
  static reduce_plan make(inputs in, const tensor_view& out, const ops::dot_attrs&) {
    return in_format_of(out, make_reduce(ops::op_id::dot, in, out, {}));
  }
};

template <>
struct planner<ops::sum_squares> {
  static tensor_spec infer(inputs in, const reduce_options& a) {
    return infer_reduce(ops::op_id::sum_squares, "sum_squares", in, a);
  }
  static reduce_plan make(inputs in, const tensor_view& out, const reduce_options& a) {
    return make_sum_squares(in, out, a);
  }
};
template <>
struct planner<ops::vector_norm> {
  static tensor_spec infer(inputs in, const vector_norm_options& a) { return infer_vector_norm(in, a); }
  static reduce_plan make(inputs in, const tensor_view& out, const vector_norm_options& a) {
    return make_vector_norm(in, out, a);
  }
};

template <>
struct planner<ops::matmul> {
  static tensor_spec infer(inputs in, const ops::matmul_attrs& a) { return infer_matmul(in, a); }
  static product_plan make(inputs in, const tensor_view& out, const ops::matmul_attrs& a) {
    return make_product(in, out, a);
  }
};

template <>
struct planner<ops::uniform> {
  static tensor_spec infer(inputs, const ops::uniform_attrs& a) { return infer_uniform(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::uniform_attrs& a) {
    random_plan p = make_random(ops::op_id::uniform, a, out);
    p.low = a.low;
    p.high = a.high;
    return p;
  }
};

template <>
struct planner<ops::permutation> {
  static tensor_spec infer(inputs, const ops::permutation_attrs& a) { return infer_permutation(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::permutation_attrs& a) {
    return make_random(ops::op_id::permutation, a, out);
  }
};

template <>
struct planner<ops::normal> {
  static tensor_spec infer(inputs, const ops::normal_attrs& a) { return infer_normal(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::normal_attrs& a) {
    random_plan p = make_random(ops::op_id::normal, a, out);
    p.low = a.mean;
    p.high = a.stddev;
    return p;
  }
};

template <>
struct planner<ops::exponential> {
  static tensor_spec infer(inputs, const ops::exponential_attrs& a) { return infer_exponential(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::exponential_attrs& a) {
    random_plan p = make_random(ops::op_id::exponential, a, out);
    p.high = a.rate;
    return p;
  }
};

template <>
struct planner<ops::linspace> {
  static tensor_spec infer(inputs, const ops::linspace_attrs& a) { return infer_linspace(a); }
  static sequence_plan make(inputs, const tensor_view& out, const ops::linspace_attrs& a) {
    return make_linspace(out, a);
  }
};
template <>
struct planner<ops::arange> {
  static tensor_spec infer(inputs, const ops::arange_attrs& a) { return infer_arange(a); }
  static sequence_plan make(inputs, const tensor_view& out, const ops::arange_attrs& a) { return make_arange(out, a); }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, ops::upsample_nearest2d_attrs>
struct planner<Op> {
  static constexpr bool backward = ops::is_gradient<Op>;
  static tensor_spec infer(inputs in, const ops::upsample_nearest2d_attrs& a) {
    return infer_upsample(backward, in[0], a);
  }
  static upsample_plan make(inputs in, const tensor_view& out, const ops::upsample_nearest2d_attrs& a) {
    return make_upsample(backward, in[0], out, a);
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, ops::interpolation_attrs>
struct planner<Op> {
  static constexpr bool backward = ops::is_gradient<Op>;
  static tensor_spec infer(inputs in, const ops::interpolation_attrs& a) {
    return infer_interpolation(Op::name, backward, in[0], a);
  }
  static interpolation_plan make(inputs in, const tensor_view& out, const ops::interpolation_attrs& a) {
    return make_interpolation(backward, ops::forward_of(Op::id) == ops::op_id::upsample_cubic, in[0], out, a);
  }
};

template <>
struct planner<ops::bernoulli> {
  static tensor_spec infer(inputs, const ops::bernoulli_attrs& a) { return infer_bernoulli(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::bernoulli_attrs& a) {
    random_plan p = make_random(ops::op_id::bernoulli, a, out);
    p.threshold = threshold_of(a.p);
    return p;
  }
};

template <>
struct planner<ops::randint> {
  static tensor_spec infer(inputs, const ops::randint_attrs& a) { return infer_randint(a); }
  static random_plan make(inputs, const tensor_view& out, const ops::randint_attrs& a) {
    random_plan p = make_random(ops::op_id::randint, a, out);
    p.first = a.low;
    p.range = static_cast<std::uint64_t>(a.high) - static_cast<std::uint64_t>(a.low);
    return p;
  }
};

template <>
struct planner<ops::multinomial> {
  static tensor_spec infer(inputs in, const ops::multinomial_attrs& a) { return infer_multinomial(in, a); }
  static draw_plan make(inputs in, const tensor_view& out, const ops::multinomial_attrs& a) {
    return make_multinomial(in, out, a);
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, scan_options>
struct planner<Op> {
  static tensor_spec infer(inputs in, const scan_options& a) { return infer_scan(Op::name, in, a); }
  static scan_plan make(inputs in, const tensor_view& out, const scan_options& a) {
    return make_scan(Op::id, in[0], out, a);
  }
};
template <>
struct planner<ops::prod> {
  static tensor_spec infer(inputs in, const reduce_options& a) { return infer_reduce(ops::op_id::prod, "prod", in, a); }
  static scan_plan make(inputs in, const tensor_view& out, const reduce_options& a) { return make_prod(in, out, a); }
};

template <>
struct planner<ops::ldexp> {
  static tensor_spec infer(inputs in, const ops::no_attrs&) { return infer_ldexp(in); }
  static exponent_plan make(inputs in, const tensor_view& out, const ops::no_attrs&) { return make_ldexp(in, out); }
};
template <>
struct planner<ops::frexp> {
  static specs infer(inputs in, const ops::no_attrs&) { return infer_frexp(in); }
  static exponent_plan make(inputs in, outputs out, const ops::no_attrs&) { return make_frexp(in, out); }
};

template <>
struct planner<ops::attention> {
  static specs infer(inputs in, const attention_options& a) { return infer_attention(ops::attention::out, in, a); }
  static attention_plan make(inputs in, outputs out, const attention_options& a) { return make_attention(in, out, a); }
};
template <>
struct planner<ops::attention_backward> {
  static specs infer(inputs in, const attention_options& a) { return infer_attention_backward(in, a); }
  static attention_plan make(inputs in, outputs out, const attention_options& a) {
    return make_attention_backward(in, out, a);
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, ops::dropout_attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::dropout_attrs& a) { return infer_dropout(Op::name, in, a); }
  static random_plan make(inputs in, const tensor_view& out, const ops::dropout_attrs& a) {
    random_plan p = make_random(Op::id, a, out, &in[0]);
    p.threshold = threshold_of(a.p);
    p.p = a.p;
    return p;
  }
};

template <class Op>
requires std::is_base_of_v<conv2d_options, typename Op::attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const typename Op::attrs& a) { return infer_conv(Op::name, in, a); }
  static conv_plan make(inputs in, const tensor_view& out, const typename Op::attrs& a) {
    return make_conv(Op::name, Op::id, in, out, a);
  }
};

template <class Op>
requires(Op::row.kind == ops::family::convolution &&
         std::is_same_v<typename Op::attrs, ops::no_attrs>) struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::no_attrs&) { return infer_conv_grad_bias(Op::name, in); }
  static reduce_plan make(inputs in, const tensor_view& out, const ops::no_attrs&) {
    return make_conv_grad_bias(in, out);
  }
};

template <class Op>
requires(std::is_same_v<typename Op::attrs, max_pool2d_options>&& std::size(Op::in) == 1) struct planner<Op> {
  static specs infer(inputs in, const max_pool2d_options& a) { return infer_max_pool(Op::name, Op::out, in, a); }
  static pool_plan make(inputs in, outputs out, const max_pool2d_options& a) {
    return make_max_pool(Op::name, in, out, a);
  }
};
template <class Op>
requires(std::is_same_v<typename Op::attrs, max_pool2d_options>&& std::size(Op::in) == 2) struct planner<Op> {
  static tensor_spec infer(inputs in, const max_pool2d_options& a) { return infer_max_pool_backward(Op::name, in, a); }
  static pool_plan make(inputs in, const tensor_view& out, const max_pool2d_options& a) {
    return make_max_pool(Op::name, in, {&out, 1}, a);
  }
};
template <class Op>
requires std::is_same_v<typename Op::attrs, avg_pool2d_options>
struct planner<Op> {
  static tensor_spec infer(inputs in, const avg_pool2d_options& a) { return infer_avg_pool(Op::name, in, a); }
  static pool_plan make(inputs in, const tensor_view& out, const avg_pool2d_options& a) {
    return make_avg_pool(Op::name, in, out, a);
  }
};
template <class Op>
requires std::is_same_v<typename Op::attrs, ops::avg_pool2d_backward_attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::avg_pool2d_backward_attrs& a) {
    return infer_avg_pool_backward(Op::name, in, a);
  }
  static pool_plan make(inputs in, const tensor_view& out, const ops::avg_pool2d_backward_attrs& a) {
    return make_avg_pool_backward(Op::name, in, out, a);
  }
};

template <class Op>
requires std::is_same_v<typename Op::attrs, adaptive_pool2d_options>
struct planner<Op> {
  static specs infer(inputs in, const adaptive_pool2d_options& a) {
    return infer_adaptive_pool(Op::name, Op::out, in, a.size);
  }
  static pool_plan make(inputs in, outputs out, const adaptive_pool2d_options&) {
    return make_adaptive_pool(Op::name, in, out);
  }
};
template <class Op>
requires(Op::row.kind == ops::family::pooling && std::is_same_v<typename Op::attrs, ops::no_attrs>) struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::no_attrs&) { return infer_adaptive_max_pool_backward(Op::name, in); }
  static pool_plan make(inputs in, const tensor_view& out, const ops::no_attrs&) {
    return make_adaptive_pool(Op::name, in, {&out, 1});
  }
};
template <class Op>
requires std::is_same_v<typename Op::attrs, ops::adaptive_avg_pool2d_backward_attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const ops::adaptive_avg_pool2d_backward_attrs& a) {
    return infer_adaptive_avg_pool_backward(Op::name, in, *a.size);
  }
  static pool_plan make(inputs in, const tensor_view& out, const ops::adaptive_avg_pool2d_backward_attrs&) {
    return make_adaptive_pool(Op::name, in, {&out, 1});
  }
};

template <class Op>
requires std::is_base_of_v<softmax_options, typename Op::attrs>
struct planner<Op> {
  static tensor_spec infer(inputs in, const typename Op::attrs& a) {
    tensor_spec s = infer_softmax(Op::name, in, a);
    if constexpr (std::is_same_v<typename Op::attrs, ops::softmax_attrs>)
      s.type = other_type(Op::name, s.type, a.dtype);
    return s;
  }
  static row_plan make(inputs in, const tensor_view& out, const softmax_options& a) {
    return make_softmax(Op::id, in, out, a);
  }
};
template <>
struct planner<ops::logsumexp> {
  static tensor_spec infer(inputs in, const reduce_options& a) { return infer_logsumexp(in, a); }
  static row_plan make(inputs in, const tensor_view& out, const reduce_options& a) {
    return make_logsumexp(in, out, a);
  }
};
template <>
struct planner<ops::logsumexp_backward> {
  static tensor_spec infer(inputs in, const reduce_options& a) { return infer_logsumexp_backward(in, a); }
  static row_plan make(inputs in, const tensor_view& out, const reduce_options& a) {
    return make_logsumexp_backward(in, out, a);
  }
};
template <class Op>
requires std::is_same_v<typename Op::attrs, cross_entropy_options>
struct planner<Op> {
  static cross_entropy_call of(const cross_entropy_options& a) {
    return {a.axis, a.reduction, a.ignore_index, a.label_smoothing, false, ops::is_gradient<Op>};
  }
  static tensor_spec infer(inputs in, const cross_entropy_options& a) {
    return infer_cross_entropy(Op::name, in, of(a));
  }
  static row_plan make(inputs in, const tensor_view& out, const cross_entropy_options& a) {
    return make_cross_entropy(in, out, of(a));
  }
};
template <class Op>
requires std::is_same_v<typename Op::attrs, cross_entropy_probabilities_options>
struct planner<Op> {
  static cross_entropy_call of(const cross_entropy_probabilities_options& a) {
    return {a.axis, a.reduction, -100, a.label_smoothing, true, ops::is_gradient<Op>};
  }
  static tensor_spec infer(inputs in, const cross_entropy_probabilities_options& a) {
    return infer_cross_entropy(Op::name, in, of(a));
  }
  static row_plan make(inputs in, const tensor_view& out, const cross_entropy_probabilities_options& a) {
    return make_cross_entropy(in, out, of(a));
  }
};
template <>
struct planner<ops::nll_loss> {
  static specs infer(inputs in, const nll_loss_options& a) { return infer_nll_loss(in, a); }
  static nll_plan make(inputs in, outputs out, const nll_loss_options& a) { return make_nll_loss(in, out, a); }
};
template <>
struct planner<ops::nll_loss_backward> {
  static tensor_spec infer(inputs in, const nll_loss_options& a) { return infer_nll_loss_backward(in, a); }
  static nll_plan make(inputs in, const tensor_view& out, const nll_loss_options& a) {
    return make_nll_loss_backward(in, out, a);
  }
};
template <class Op>
requires std::is_same_v<typename Op::attrs, var_options>
struct planner<Op> {
  static specs infer(inputs in, const var_options& a) { return infer_var(Op::name, Op::out, in, a); }
  static row_plan make(inputs in, outputs out, const var_options& a) { return make_var(Op::id, in, out, a); }
};
template <class Op>
requires(Op::row.kind == ops::family::norm && !std::is_same_v<typename Op::attrs, var_options>) struct planner<Op> {
  static const const_tensor_view& x(inputs in) { return in[static_cast<std::size_t>(lead_of(Op::in))]; }
  static specs infer(inputs in, const typename Op::attrs& a) {
    return infer_norm(Op::name, Op::in, Op::out, in, check_norm(Op::name, x(in), a));
  }
  static row_plan make(inputs in, outputs out, const typename Op::attrs& a) {
    return make_norm(Op::id, Op::in, Op::out, in, out, check_norm(Op::name, x(in), a));
  }
};

template <class Op>
requires(Op::row.kind == ops::family::loss) struct planner<Op> {
  static tensor_spec infer(inputs in, const typename Op::attrs& a) {
    return infer_loss(Op::name, Op::in, in, check_loss(Op::name, a), ops::is_gradient<Op>);
  }
  static loss_plan make(inputs in, const tensor_view& out, const typename Op::attrs& a) {
    return make_loss(Op::id, in, out, check_loss(Op::name, a), ops::is_gradient<Op>);
  }
};

// Optimisers: many tensors, each with a group of operands.
template <>
struct planner<ops::sgd> {
  static operand_rows rows(std::size_t n, const sgd_options& a) { return {group_in(a), group_out(a), n}; }
  static specs infer(const operand_rows& rows, inputs in, const sgd_options& a) {
    check_step(a);
    return infer_step("sgd", rows, in, group_in(a).size(), group_out(a).size());
  }
  static step_plan make(inputs in, outputs out, const sgd_options& a) {
    step_plan p = make_step(ops::op_id::sgd, in, out, group_in(a).size(), group_out(a).size());
    p.sgd = a;
    return p;
  }
};
template <>
struct planner<ops::adamw> {
  static operand_rows rows(std::size_t n, const adamw_options&) { return {ops::adamw::in, ops::adamw::out, n}; }
  static specs infer(const operand_rows& rows, inputs in, const adamw_options& a) {
    check_step(a);
    return infer_step("adamw", rows, in, std::size(ops::adamw::in), std::size(ops::adamw::out));
  }
  static step_plan make(inputs in, outputs out, const adamw_options& a) {
    step_plan p = make_step(ops::op_id::adamw, in, out, std::size(ops::adamw::in), std::size(ops::adamw::out));
    p.adamw = a;
    p.c1 = bias_correction(a.beta1, a.step);
    p.c2 = bias_correction(a.beta2, a.step);
    return p;
  }
};

template <>
struct planner<ops::total_norm> {
  static operand_rows rows(std::size_t n, const total_norm_options&) {
    return {ops::total_norm::in, {}, n, ops::total_norm::out};
  }
  static specs infer(const operand_rows& rows, inputs in, const total_norm_options& a) {
    return infer_total_norm(rows, in, a);
  }
  static clip_plan make(inputs in, outputs out, const total_norm_options& a) {
    return make_clip(ops::op_id::total_norm, in, out, a.p, 0);
  }
};
template <>
struct planner<ops::clip_grad_norm> {
  static operand_rows rows(std::size_t n, const clip_grad_norm_options&) {
    return {ops::clip_grad_norm::in, std::span(ops::clip_grad_norm::out).first(1), n,
            std::span(ops::clip_grad_norm::out).last(1)};
  }
  static specs infer(const operand_rows& rows, inputs in, const clip_grad_norm_options& a) {
    return infer_clip_grad_norm(rows, in, a);
  }
  static clip_plan make(inputs in, outputs out, const clip_grad_norm_options& a) {
    return make_clip(ops::op_id::clip_grad_norm, in, out, a.p, a.max_norm);
  }
};

template <>
struct planner<ops::index_add> {
  static tensor_spec infer(inputs in, const index_add_options& a) { return infer_index_add("index_add", in, a); }
  static scatter_plan make(inputs in, const tensor_view& out, const index_add_options& a) {
    return make_index_add(in, out, a);
  }
};
template <>
struct planner<ops::scatter_add> {
  static tensor_spec infer(inputs in, const index_add_options& a) { return infer_scatter_add("scatter_add", in, a); }
  static scatter_plan make(inputs in, const tensor_view& out, const index_add_options& a) {
    return make_scatter_add(in, out, a);
  }
};
template <>
struct planner<ops::embedding_backward> {
  static tensor_spec infer(inputs in, const ops::embedding_backward_attrs& a) {
    return infer_embedding_backward("embedding_backward", in, a);
  }
  static scatter_plan make(inputs in, const tensor_view& out, const ops::embedding_backward_attrs& a) {
    return make_embedding_backward(in, out, a);
  }
};

}  // namespace repdl::plan
