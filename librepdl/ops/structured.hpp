// The structured operations: one type each.
#pragma once

#include <array>
#include <string_view>

#include "librepdl/ops/attributes.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::ops {

struct operand {
  std::string_view name;
  dtype_set types;
  bool optional = false;
};

// What a row of structured.def says of an operation.
template <op_id Id>
struct operation {
  static constexpr op_id id = Id;
  static constexpr structured_row row = structured_rows[static_cast<int>(Id) - elementwise_count];
  static constexpr std::string_view name = row.name;
};

struct convert : operation<op_id::convert> {
  static constexpr std::string_view formula = "x, rounded to the output's format";
  using attrs = convert_attrs;
  static constexpr operand in[] = {{"x", FLOATS}};
  static constexpr operand out[] = {{"out", FLOATS}};
};

template <op_id Id, dtype_set Out>
struct reduction : operation<Id> {
  using attrs = reduce_options;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", Out}};
};
struct sum : reduction<op_id::sum, F32> {
  static constexpr std::string_view formula = "sum of x over the axes; exact zero is +0";
};
struct mean : reduction<op_id::mean, F32> {
  static constexpr std::string_view formula = "(sum of x over the axes) / count";
};
struct max : reduction<op_id::max, F32> {
  static constexpr std::string_view formula = "the greatest x over the axes; NaN wins, -0 < +0";
};
struct min : reduction<op_id::min, F32> {
  static constexpr std::string_view formula = "the least x over the axes; NaN wins, -0 < +0";
};
struct argmax : reduction<op_id::argmax, I64> {
  static constexpr std::string_view formula = "the first index of max(x), row-major within the reduced axes";
};
struct argmin : reduction<op_id::argmin, I64> {
  static constexpr std::string_view formula = "the first index of min(x), row-major within the reduced axes";
};

struct dot : operation<op_id::dot> {
  static constexpr std::string_view formula = "sum of x_k * y_k";
  using attrs = no_attrs;
  static constexpr operand in[] = {{"x", F32}, {"y", F32}};
  static constexpr operand out[] = {{"out", F32}};
};

struct matmul : operation<op_id::matmul> {
  static constexpr std::string_view formula = "sum over k of a_ik * b_kj, + bias_ij";
  using attrs = matmul_options;
  static constexpr operand in[] = {{"a", F32}, {"b", F32}, {"bias", F32, true}};
  static constexpr operand out[] = {{"out", F32}};
};

struct uniform : operation<op_id::uniform> {
  static constexpr std::string_view formula = "low + (high - low) * u, u uniform on [0, 1) from Philox4x32-10";
  using attrs = uniform_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", FLOATS}};
};

struct permutation : operation<op_id::permutation> {
  static constexpr std::string_view formula = "0 .. n-1 sorted by Philox words";
  using attrs = permutation_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", I64}};
};

struct conv2d : operation<op_id::conv2d> {
  static constexpr std::string_view formula = "sum over c, r, s of x_n,c,ih,iw * w_o,c,r,s, + bias_o";
  using attrs = conv2d_options;
  static constexpr operand in[] = {{"x", F32}, {"w", F32}, {"bias", F32, true}};
  static constexpr operand out[] = {{"out", F32}};
};
struct conv2d_grad_input : operation<op_id::conv2d_grad_input> {
  static constexpr std::string_view formula = "sum over o, r, s of g_n,o,oh,ow * w_o,c,r,s";
  using attrs = conv2d_grad_input_attrs;
  static constexpr operand in[] = {{"g", F32}, {"w", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct conv2d_grad_weight : operation<op_id::conv2d_grad_weight> {
  static constexpr std::string_view formula = "sum over n, oh, ow of g_n,o,oh,ow * x_n,c,ih,iw";
  using attrs = conv2d_grad_weight_attrs;
  static constexpr operand in[] = {{"g", F32}, {"x", F32}};
  static constexpr operand out[] = {{"grad_w", F32}};
};
struct conv2d_grad_bias : operation<op_id::conv2d_grad_bias> {
  static constexpr std::string_view formula = "sum over n, oh, ow of g_n,o,oh,ow";
  using attrs = no_attrs;
  static constexpr operand in[] = {{"g", F32}};
  static constexpr operand out[] = {{"grad_bias", F32}};
};

struct max_pool2d : operation<op_id::max_pool2d> {
  static constexpr std::string_view formula = "the greatest x in the window; NaN wins, -0 < +0";
  using attrs = max_pool2d_options;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct max_pool2d_backward : operation<op_id::max_pool2d_backward> {
  static constexpr std::string_view formula = "sum of g over the windows whose (first) greatest x is here";
  using attrs = max_pool2d_options;
  static constexpr operand in[] = {{"g", F32}, {"x", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct avg_pool2d : operation<op_id::avg_pool2d> {
  static constexpr std::string_view formula = "(sum of x in the window) / count";
  using attrs = avg_pool2d_options;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct avg_pool2d_backward : operation<op_id::avg_pool2d_backward> {
  static constexpr std::string_view formula = "sum over the windows that hold the pixel of g / count";
  using attrs = avg_pool2d_backward_attrs;
  static constexpr operand in[] = {{"g", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};

struct softmax : operation<op_id::softmax> {
  static constexpr std::string_view formula = "e^x_i / sum of e^x_j along the axis";
  using attrs = softmax_options;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct log_softmax : operation<op_id::log_softmax> {
  static constexpr std::string_view formula = "x_i - ln sum of e^x_j along the axis";
  using attrs = softmax_options;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct logsumexp : operation<op_id::logsumexp> {
  static constexpr std::string_view formula = "ln sum of e^x over the axes";
  using attrs = reduce_options;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct cross_entropy : operation<op_id::cross_entropy> {
  static constexpr std::string_view formula = "logsumexp(x) - x_target per row; their mean, sum, or each";
  using attrs = cross_entropy_options;
  static constexpr operand in[] = {{"logits", F32}, {"targets", I64}};
  static constexpr operand out[] = {{"out", F32}};
};
struct softmax_backward : operation<op_id::softmax_backward> {
  static constexpr std::string_view formula = "y_i * (g_i - sum of g_j * y_j along the axis)";
  using attrs = softmax_options;
  static constexpr operand in[] = {{"g", F32}, {"y", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct log_softmax_backward : operation<op_id::log_softmax_backward> {
  static constexpr std::string_view formula = "g_i - e^y_i * sum of g_j along the axis";
  using attrs = softmax_options;
  static constexpr operand in[] = {{"g", F32}, {"y", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct logsumexp_backward : operation<op_id::logsumexp_backward> {
  static constexpr std::string_view formula = "g * e^x_i / sum of e^x_j over the axes";
  using attrs = reduce_options;
  static constexpr operand in[] = {{"g", F32}, {"x", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct cross_entropy_backward : operation<op_id::cross_entropy_backward> {
  static constexpr std::string_view formula = "g * (softmax(x)_i - (i = target)), / rows not ignored for mean";
  using attrs = cross_entropy_options;
  static constexpr operand in[] = {{"g", F32}, {"logits", F32}, {"targets", I64}};
  static constexpr operand out[] = {{"grad_logits", F32}};
};

// The operands of sgd and adamw are one group per tensor: p0 g0 v0 p1 g1 v1 ..., the outputs likewise.
struct sgd : operation<op_id::sgd> {
  static constexpr std::string_view formula =
      "v' = momentum v + (1 - dampening)(g + weight_decay p), without v g + weight_decay p; p' = p - lr v'; nesterov: "
      "p' = p - lr (g + weight_decay p + momentum v')";
  using attrs = sgd_options;
  static constexpr operand in[] = {{"param", F32}, {"grad", F32}, {"velocity", F32, true}};
  static constexpr operand out[] = {{"param", F32}, {"velocity", F32, true}};
};
struct adamw : operation<op_id::adamw> {
  static constexpr std::string_view formula =
      "m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; c_i = 1 - beta_i^step; p' = p (1 - lr "
      "weight_decay) - lr (m' / c1) / (sqrt(v' / c2) + eps)";
  using attrs = adamw_options;
  static constexpr operand in[] = {{"param", F32}, {"grad", F32}, {"first_moment", F32}, {"second_moment", F32}};
  static constexpr operand out[] = {{"param", F32}, {"first_moment", F32}, {"second_moment", F32}};
};

struct normal : operation<op_id::normal> {
  static constexpr std::string_view formula =
      "mean + stddev * sqrt(-2 ln u1) * (cos, sin)(2 pi u2), u1 and u2 from Philox4x32-10";
  using attrs = normal_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", FLOATS}};
};
struct bernoulli : operation<op_id::bernoulli> {
  static constexpr std::string_view formula = "w < ceil(p 2^32), w a Philox word";
  using attrs = bernoulli_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", BOOL}};
};
struct randint : operation<op_id::randint> {
  static constexpr std::string_view formula = "low + floor(W (high - low) / 2^64), W 64 bits from Philox";
  using attrs = randint_attrs;
  static constexpr std::array<operand, 0> in{};
  static constexpr operand out[] = {{"out", I64}};
};
struct dropout : operation<op_id::dropout> {
  static constexpr std::string_view formula = "+0 where bernoulli(p), else x / (1 - p)";
  using attrs = dropout_attrs;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct dropout_backward : operation<op_id::dropout_backward> {
  static constexpr std::string_view formula = "+0 where bernoulli(p), else g / (1 - p)";
  using attrs = dropout_attrs;
  static constexpr operand in[] = {{"g", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};

/// Calls f.template operator()<Op>() for every structured operation, in op_id's order.
template <class F>
constexpr void for_each_structured(F&& f) {
#define REPDL_STRUCTURED(name, ...) f.template operator()<name>();
#include "librepdl/ops/structured.def"
#undef REPDL_STRUCTURED
}

}  // namespace repdl::ops
