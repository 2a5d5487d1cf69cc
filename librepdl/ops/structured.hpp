// The structured operations: one type each. Its `attrs` are the reflection from which parsing, printing, the C ABI, the
// command line and the documentation are made.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "librepdl/ops/registry.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::ops {

struct operand {
  std::string_view name;
  dtype_set types;
  bool optional = false;
};

template <class Attrs, class T>
struct field {
  using pointer = T Attrs::*;  // by name: what nvcc makes of a declarator is parenthesised, which g++ warns of
  std::string_view name;
  pointer member;
  std::string_view doc;
  bool required = false;  // by infer and the command line, where there is no output tensor to take it from
  bool pattern = false;   // 64 bits, which text may give as an unsigned number too
};
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view) -> field<Attrs, T>;
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view, bool) -> field<Attrs, T>;
template <class Attrs, class T>
field(std::string_view, T Attrs::*, std::string_view, bool, bool) -> field<Attrs, T>;

struct no_attrs {
  static constexpr auto fields = std::tuple{};
};

struct convert_attrs {
  std::optional<repdl::dtype> dtype;
  static constexpr auto fields = std::tuple{
      field{"dtype", &convert_attrs::dtype, "the format rounded to; the output tensor's where there is one", true}};
};

struct reduce_attrs {
  std::optional<sizes> axis;
  bool keepdim = false;
  static constexpr auto fields =
      std::tuple{field{"axis", &reduce_attrs::axis, "the axes to reduce, negative from the end; all when absent"},
                 field{"keepdim", &reduce_attrs::keepdim, "keep the reduced axes with size 1"}};
};

struct matmul_attrs {
  bool transpose_a = false;
  bool transpose_b = false;
  repdl::accumulate accumulate = repdl::accumulate::exact;
  static constexpr auto fields =
      std::tuple{field{"transpose_a", &matmul_attrs::transpose_a, "a is (..., k, m)"},
                 field{"transpose_b", &matmul_attrs::transpose_b, "b is (..., n, k)"},
                 field{"accumulate", &matmul_attrs::accumulate, "exact, or fma_chain: f32 FMAs with k ascending"}};
};

// What every random operation has.
struct philox_attrs {
  std::int64_t seed = 0;
  std::int64_t stream = 0;
  static constexpr auto fields = std::tuple{
      field{"seed", &philox_attrs::seed, "the Philox key (its 64 bits)", false, true},
      field{"stream", &philox_attrs::stream, "the upper half of the Philox counter (its 64 bits)", false, true}};
};
struct uniform_attrs : philox_attrs {
  std::optional<sizes> shape;
  std::optional<repdl::dtype> dtype;
  double low = 0;
  double high = 1;
  static constexpr auto fields =
      std::tuple_cat(std::tuple{field{"shape", &uniform_attrs::shape, "the output's shape", true},
                                field{"dtype", &uniform_attrs::dtype, "the output's format; f32 when absent"}},
                     philox_attrs::fields,
                     std::tuple{field{"low", &uniform_attrs::low, "finite, 0 or of magnitude in [2^-200, 2^200]"},
                                field{"high", &uniform_attrs::high, "finite, 0 or of magnitude in [2^-200, 2^200]"}});
};

struct permutation_attrs : philox_attrs {
  std::optional<std::int64_t> n;
  static constexpr auto fields = std::tuple_cat(
      std::tuple{field{"n", &permutation_attrs::n, "the number of indices", true}}, philox_attrs::fields);
};

struct conv2d_attrs {
  pair stride{};
  padding2d padding{};
  pair dilation{};
  std::int64_t groups = 1;
  repdl::accumulate accumulate = repdl::accumulate::exact;
  static constexpr auto fields = std::tuple{
      field{"stride", &conv2d_attrs::stride, "h,w"},
      field{"padding", &conv2d_attrs::padding, "top,bottom,left,right, or h,w, or one number; absent taps"},
      field{"dilation", &conv2d_attrs::dilation, "h,w"},
      field{"groups", &conv2d_attrs::groups, "divides the input's and the output's channels"},
      field{"accumulate", &conv2d_attrs::accumulate, "exact, or fma_chain: f32 FMAs in the contract's order"}};
};
struct conv2d_grad_input_attrs : conv2d_attrs {
  std::optional<pair> size;
  static constexpr auto fields = std::tuple_cat(
      conv2d_attrs::fields, std::tuple{field{"size", &conv2d_grad_input_attrs::size, "the image's h,w", true}});
};
struct conv2d_grad_weight_attrs : conv2d_attrs {
  std::optional<pair> kernel;
  static constexpr auto fields = std::tuple_cat(
      conv2d_attrs::fields, std::tuple{field{"kernel", &conv2d_grad_weight_attrs::kernel, "the kernel's h,w", true}});
};

struct max_pool2d_attrs {
  std::optional<pair> kernel;
  std::optional<pair> stride;
  padding2d padding{};
  pair dilation{};
  static constexpr auto fields =
      std::tuple{field{"kernel", &max_pool2d_attrs::kernel, "the window's h,w", true},
                 field{"stride", &max_pool2d_attrs::stride, "h,w; the window's when absent"},
                 field{"padding", &max_pool2d_attrs::padding, "top,bottom,left,right, or h,w, or one number"},
                 field{"dilation", &max_pool2d_attrs::dilation, "h,w"}};
};
struct avg_pool2d_attrs {
  std::optional<pair> kernel;
  std::optional<pair> stride;
  padding2d padding{};
  bool count_include_pad = false;
  static constexpr auto fields =
      std::tuple{field{"kernel", &avg_pool2d_attrs::kernel, "the window's h,w", true},
                 field{"stride", &avg_pool2d_attrs::stride, "h,w; the window's when absent"},
                 field{"padding", &avg_pool2d_attrs::padding, "top,bottom,left,right, or h,w, or one number"},
                 field{"count_include_pad", &avg_pool2d_attrs::count_include_pad,
                       "divide by the window's size, not by the number of present taps"}};
};
struct avg_pool2d_backward_attrs : avg_pool2d_attrs {
  std::optional<pair> size;
  static constexpr auto fields = std::tuple_cat(
      avg_pool2d_attrs::fields, std::tuple{field{"size", &avg_pool2d_backward_attrs::size, "the image's h,w", true}});
};

struct softmax_attrs {
  std::int64_t axis = -1;
  static constexpr auto fields = std::tuple{field{"axis", &softmax_attrs::axis, "negative from the end"}};
};
struct cross_entropy_attrs {
  std::optional<std::int64_t> axis;
  repdl::reduction reduction = repdl::reduction::mean;
  std::int64_t ignore_index = -100;
  static constexpr auto fields =
      std::tuple{field{"axis", &cross_entropy_attrs::axis, "the classes; 1 when absent, 0 for a vector"},
                 field{"reduction", &cross_entropy_attrs::reduction, "mean, sum or none, over the rows not ignored"},
                 field{"ignore_index", &cross_entropy_attrs::ignore_index, "rows with this target take no part"}};
};

struct sgd_attrs {
  double lr = 0.001;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  static constexpr auto fields =
      std::tuple{field{"lr", &sgd_attrs::lr, "the learning rate"},
                 field{"momentum", &sgd_attrs::momentum, ">= 0; 0: there is no velocity"},
                 field{"dampening", &sgd_attrs::dampening, "of the gradient in the velocity"},
                 field{"weight_decay", &sgd_attrs::weight_decay, "adds weight_decay * param to the gradient"},
                 field{"nesterov", &sgd_attrs::nesterov, "needs momentum > 0"}};
};
struct adamw_attrs {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  std::int64_t step = 1;
  static constexpr auto fields =
      std::tuple{field{"lr", &adamw_attrs::lr, "the learning rate"},
                 field{"beta1", &adamw_attrs::beta1, "in [0, 1)"},
                 field{"beta2", &adamw_attrs::beta2, "in [0, 1)"},
                 field{"eps", &adamw_attrs::eps, "added to the root"},
                 field{"weight_decay", &adamw_attrs::weight_decay, "decoupled: param * (1 - lr * weight_decay)"},
                 field{"step", &adamw_attrs::step, "t, from 1"}};
};

struct normal_attrs : philox_attrs {
  std::optional<sizes> shape;
  std::optional<repdl::dtype> dtype;
  double mean = 0;
  double stddev = 1;
  static constexpr auto fields =
      std::tuple_cat(std::tuple{field{"shape", &normal_attrs::shape, "the output's shape", true},
                                field{"dtype", &normal_attrs::dtype, "the output's format; f32 when absent"}},
                     philox_attrs::fields,
                     std::tuple{field{"mean", &normal_attrs::mean, "finite, 0 or of magnitude in [2^-200, 2^200]"},
                                field{"stddev", &normal_attrs::stddev, "0 or in [2^-200, 2^200]"}});
};
struct bernoulli_attrs : philox_attrs {
  std::optional<sizes> shape;
  double p = 0.5;
  static constexpr auto fields =
      std::tuple_cat(std::tuple{field{"shape", &bernoulli_attrs::shape, "the output's shape", true}},
                     philox_attrs::fields, std::tuple{field{"p", &bernoulli_attrs::p, "of true, in [0, 1]"}});
};
struct randint_attrs : philox_attrs {
  std::optional<sizes> shape;
  std::int64_t low = 0;
  std::optional<std::int64_t> high;
  static constexpr auto fields = std::tuple_cat(
      std::tuple{field{"shape", &randint_attrs::shape, "the output's shape", true}}, philox_attrs::fields,
      std::tuple{field{"low", &randint_attrs::low, "the least value"},
                 field{"high", &randint_attrs::high, "> low: one more than the greatest value", true}});
};
struct dropout_attrs : philox_attrs {
  double p = 0.5;
  static constexpr auto fields = std::tuple_cat(
      philox_attrs::fields, std::tuple{field{"p", &dropout_attrs::p, "the share that is dropped, in [0, 1]"}});
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
  using attrs = reduce_attrs;
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
  using attrs = matmul_attrs;
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
  using attrs = conv2d_attrs;
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
  using attrs = max_pool2d_attrs;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct max_pool2d_backward : operation<op_id::max_pool2d_backward> {
  static constexpr std::string_view formula = "sum of g over the windows whose (first) greatest x is here";
  using attrs = max_pool2d_attrs;
  static constexpr operand in[] = {{"g", F32}, {"x", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct avg_pool2d : operation<op_id::avg_pool2d> {
  static constexpr std::string_view formula = "(sum of x in the window) / count";
  using attrs = avg_pool2d_attrs;
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
  using attrs = softmax_attrs;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct log_softmax : operation<op_id::log_softmax> {
  static constexpr std::string_view formula = "x_i - ln sum of e^x_j along the axis";
  using attrs = softmax_attrs;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct logsumexp : operation<op_id::logsumexp> {
  static constexpr std::string_view formula = "ln sum of e^x over the axes";
  using attrs = reduce_attrs;
  static constexpr operand in[] = {{"x", F32}};
  static constexpr operand out[] = {{"out", F32}};
};
struct cross_entropy : operation<op_id::cross_entropy> {
  static constexpr std::string_view formula = "logsumexp(x) - x_target per row; their mean, sum, or each";
  using attrs = cross_entropy_attrs;
  static constexpr operand in[] = {{"logits", F32}, {"targets", I64}};
  static constexpr operand out[] = {{"out", F32}};
};
struct softmax_backward : operation<op_id::softmax_backward> {
  static constexpr std::string_view formula = "y_i * (g_i - sum of g_j * y_j along the axis)";
  using attrs = softmax_attrs;
  static constexpr operand in[] = {{"g", F32}, {"y", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct log_softmax_backward : operation<op_id::log_softmax_backward> {
  static constexpr std::string_view formula = "g_i - e^y_i * sum of g_j along the axis";
  using attrs = softmax_attrs;
  static constexpr operand in[] = {{"g", F32}, {"y", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct logsumexp_backward : operation<op_id::logsumexp_backward> {
  static constexpr std::string_view formula = "g * e^x_i / sum of e^x_j over the axes";
  using attrs = reduce_attrs;
  static constexpr operand in[] = {{"g", F32}, {"x", F32}};
  static constexpr operand out[] = {{"grad_x", F32}};
};
struct cross_entropy_backward : operation<op_id::cross_entropy_backward> {
  static constexpr std::string_view formula = "g * (softmax(x)_i - (i = target)), / rows not ignored for mean";
  using attrs = cross_entropy_attrs;
  static constexpr operand in[] = {{"g", F32}, {"logits", F32}, {"targets", I64}};
  static constexpr operand out[] = {{"grad_logits", F32}};
};

// The operands of sgd and adamw are one group per tensor: p0 g0 v0 p1 g1 v1 ..., the outputs likewise.
struct sgd : operation<op_id::sgd> {
  static constexpr std::string_view formula =
      "v' = momentum v + (1 - dampening)(g + weight_decay p), without v g + weight_decay p; p' = p - lr v'; nesterov: "
      "p' = p - lr (g + weight_decay p + momentum v')";
  using attrs = sgd_attrs;
  static constexpr operand in[] = {{"param", F32}, {"grad", F32}, {"velocity", F32, true}};
  static constexpr operand out[] = {{"param", F32}, {"velocity", F32, true}};
};
struct adamw : operation<op_id::adamw> {
  static constexpr std::string_view formula =
      "m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2; c_i = 1 - beta_i^step; p' = p (1 - lr "
      "weight_decay) - lr (m' / c1) / (sqrt(v' / c2) + eps)";
  using attrs = adamw_attrs;
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
