#include "reference/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "librepdl/ops/structured.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/layout.hpp"
#include "reference/nearby.hpp"

namespace repdl::reference {
namespace {

array elementwise(const ops::elementwise_row& row, const std::vector<array>& in, const attributes& attrs,
                  outcomes* where, std::int64_t* in_64_bits) {
  if (in.size() != static_cast<std::size_t>(row.arity)) throw std::invalid_argument("reference: number of inputs");
  shape_list shape;
  for (const array& a : in) shape = broadcast_shape(shape, a.shape);
  const dtype t = in[static_cast<std::size_t>(row.leading())].type;
  const option_values options(row, t, attrs);
  const oracle& o = oracle_of(row.name);
  dtype to = row.result_type(t);
  if (row.has_any_float()) to = format_named(attribute_or(attrs, "dtype", std::string(format_name(to))));
  array out(to, shape);
  const nearby_function nearby = in_64_bits != nullptr && to == t ? nearby_named(row.name) : nullptr;
  for (std::int64_t i = 0; i < out.count(); ++i) {
    std::uint64_t v[ops::most_operands] = {};
    for (std::size_t j = 0; j < in.size(); ++j)
      v[j] = in[j].get(static_cast<std::size_t>(broadcast_index(in[j].shape, shape, i)));
    if (std::uint64_t bits; nearby != nullptr && nearby(t, v, options.value, &bits)) {
      out.set(static_cast<std::size_t>(i), bits);
      ++*in_64_bits;
      continue;
    }
    const bool same = to == row.result_type(t);
    out.set(static_cast<std::size_t>(i), same ? o.f(t, v, options.value) : o.to(t, to, v, options.value));
    if (where != nullptr) where->push_back(locate(row, t, to, v, options));
  }
  return out;
}

/// Whether two finite numbers have one magnitude.
bool is_same(number a, number b) {
  for (number* n : {&a, &b}) {
    const int zeros = std::countr_zero(n->significand);
    n->significand >>= zeros % 64;
    n->exponent += zeros;
  }
  return a.significand == b.significand && a.exponent == b.exponent;
}

array converted(const array& x, dtype to, bool saturate, outcomes* where) {
  array out(to, x.shape);
  mpz_t n, one;
  mpz_init(n);
  mpz_init_set_ui(one, 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i) {
    out.set(i, convert(x.type, to, x.get(i), saturate));
    if (where == nullptr) continue;
    const number v = widen(x.type, x.get(i));
    outcome o;
    o.nan = v.kind == number_kind::nan;
    o.infinite = v.kind == number_kind::infinite;
    mpz_set_ui(n, v.significand);
    if (!is_floating(to)) {
      o.exact_zero = v.kind == number_kind::zero;
      o.exact = o.exact_zero || (v.kind == number_kind::finite && is_same(v, widen(to, out.get(i))));
    } else if (!o.nan && !o.infinite) {
      o = locate(to, n, one, v.exponent);
    }
    where->push_back(o);
  }
  mpz_clears(n, one, nullptr);
  return out;
}

using integers = std::vector<std::int64_t>;
using results = std::vector<array>;

struct call {
  const std::vector<array>& in;
  const attributes& attrs;
  outcomes* where;

  const array& operator[](std::size_t i) const {
    if (i >= in.size()) throw std::invalid_argument("reference: number of inputs");
    return in[i];
  }
  const array* optional(std::size_t i) const { return i < in.size() && !in[i].absent() ? &in[i] : nullptr; }

  template <class T>
  T value(std::string_view name, T otherwise) const {
    return attribute_or<T>(attrs, name, std::move(otherwise));
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const { return value(name, otherwise); }
  std::optional<shape_list> axes() const { return attribute_of<integers>(attrs, "axis"); }
  dtype type() const { return format_named(value<std::string>("dtype", "f32")); }
  std::optional<dtype> other_type() const {
    const auto name = attribute_of<std::string>(attrs, "dtype");
    return name ? std::optional(format_named(*name)) : std::nullopt;
  }
  shape_list shape() const { return value<integers>("shape", {}); }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(integer("seed", 0)); }
  std::uint64_t stream() const { return static_cast<std::uint64_t>(integer("stream", 0)); }
  double probability() const { return value("p", 0.5); }
  matmul_case product() const {
    return {value("transpose_a", false),
            value("transpose_b", false),
            value<std::string>("accumulate", "exact") == "fma_chain",
            value("alpha", 1.0),
            value("beta", 1.0),
            other_type()};
  }
  cross_entropy_case loss() const {
    return {attribute_of<std::int64_t>(attrs, "axis"), value<std::string>("reduction", "mean"),
            integer("ignore_index", -100)};
  }
};

/// What a parameter of an oracle stands for is told by its type; arrays are the inputs in order.
template <class T>
decltype(auto) argument(const call& c, std::size_t& next) {
  using type = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<type, array>) {
    return c[next++];
  } else if constexpr (std::is_same_v<type, const array*>) {
    return c.optional(next++);
  } else if constexpr (std::is_same_v<type, attributes>) {
    return (c.attrs);
  } else if constexpr (std::is_same_v<type, outcomes*>) {
    return c.where;
  } else if constexpr (std::is_same_v<type, std::optional<shape_list>>) {
    return c.axes();
  } else if constexpr (std::is_same_v<type, std::optional<dtype>>) {
    return c.other_type();
  } else if constexpr (std::is_same_v<type, std::int64_t>) {
    return c.integer("axis", -1);
  } else if constexpr (std::is_same_v<type, bool>) {
    return c.value("keepdim", false);
  } else {
    static_assert(std::is_same_v<type, matmul_case>);
    return c.product();
  }
}

template <class... T>
array with_arguments(array (*f)(T...), const call& c) {
  std::size_t next = 0;
  const std::tuple<decltype(argument<T>(c, next))...> all{argument<T>(c, next)...};  // braces: in this order
  return std::apply(f, all);
}
template <auto F>
results of(const call& c) {
  return {with_arguments(F, c)};
}
template <reduction Op>
results reduced(const call& c) {
  return {reduce(Op, c[0], c.axes(), c.value("keepdim", false), c.where, c.other_type())};
}
template <auto F>
results stepped(const call& c) {
  return F(c.in, c.attrs, c.where);
}

array oracle_dot(const call& c) { return dot(c[0], c[1], c.where, c.other_type()); }
array oracle_vector_norm(const call& c) {
  return vector_norm(c[0], c.value("p", 2.0), c.axes(), c.value("keepdim", false), c.where);
}
/// Without weights and smoothing by the formula of their own, but in binary64.
array oracle_cross_entropy(const call& c) {
  if (c[0].type == dtype::f64 || c.optional(2) != nullptr || c.value("label_smoothing", 0.0) != 0)
    return blended_cross_entropy(c.in, c.attrs, c.where);
  return cross_entropy(c[0], c[1], c.loss(), c.where);
}
array oracle_cross_entropy_backward(const call& c) {
  if (c[0].type == dtype::f64 || c.optional(3) != nullptr || c.value("label_smoothing", 0.0) != 0)
    return blended_cross_entropy_backward(c.in, c.attrs, c.where);
  return cross_entropy_backward(c[0], c[1], c[2], c.loss(), c.where);
}
array oracle_cross_entropy_probabilities(const call& c) { return blended_cross_entropy(c.in, c.attrs, c.where); }
array oracle_cross_entropy_probabilities_backward(const call& c) {
  return blended_cross_entropy_backward(c.in, c.attrs, c.where);
}
array oracle_nll_loss_backward(const call& c) { return nll_loss_backward(c.in, c.attrs, c.where); }
array oracle_convert(const call& c) { return converted(c[0], c.type(), c.value("saturate", false), c.where); }
array oracle_uniform(const call& c) {
  const auto end = [&](const char* name, double otherwise) {
    return std::bit_cast<std::uint64_t>(c.value(name, otherwise));
  };
  return uniform(c.type(), c.shape(), c.seed(), c.stream(), end("low", 0), end("high", 1), c.where);
}
array oracle_normal(const call& c) {
  const double mean = c.value("mean", 0.0), stddev = c.value("stddev", 1.0);
  return normal(c.type(), c.shape(), c.seed(), c.stream(), mean, stddev, c.where);
}
array oracle_exponential(const call& c) {
  return exponential(c.type(), c.shape(), c.seed(), c.stream(), c.value("rate", 1.0), c.where);
}
array oracle_multinomial(const call& c) {
  return multinomial(c[0], c.integer("num_samples", 0), c.value("replacement", false), c.seed(), c.stream(), c.where);
}
array oracle_upsample_nearest2d(const call& c) { return upsample_nearest2d(c[0], c.attrs); }
array oracle_upsample_nearest2d_backward(const call& c) { return upsample_nearest2d_backward(c[0], c.attrs, c.where); }
array oracle_linspace(const call& c) {
  return linspace(c.type(), c.integer("count", 0), c.value("start", 0.0), c.value("end", 1.0), c.where);
}
array oracle_arange(const call& c) {
  return arange(c.type(), c.integer("count", 0), c.value("start", 0.0), c.value("step", 1.0), c.where);
}
array oracle_bernoulli(const call& c) { return bernoulli(c.shape(), c.seed(), c.stream(), c.probability()); }
array oracle_randint(const call& c) {
  return randint(c.shape(), c.seed(), c.stream(), c.integer("low", 0), c.integer("high", 0));
}
array oracle_permutation(const call& c) { return permutation(c.integer("n", 0), c.seed(), c.stream()); }
array oracle_dropout(const call& c) { return dropout(c[0], c.seed(), c.stream(), c.probability(), c.where); }
template <auto F>
results named(const call& c) {
  return {F(c)};
}

template <class Op>
results entropy(const call& c) {
  return {loss_of_entropy(Op::name, c.in, c.attrs, c.where)};
}

template <class Op>
results scattered(const call& c) {
  return {scatter(Op::name, c.in, c.attrs, c.where)};
}

template <class Op>
results interpolated(const call& c) {
  return {interpolation(Op::name, c[0], c.attrs, c.where)};
}

template <class Op>
results normed(const call& c) {
  return norm(Op::name, c.in, c.attrs, c.where);
}
template <class Op>
results norm_gradient(const call& c) {
  return {norm_backward(Op::name, c.in, c.attrs, c.where)};
}

results running(const call& c) { return running_norm(c.in, c.attrs, c.where); }
template <class Op>
results given(const call& c) {
  return {given_norm(Op::name, c.in, c.attrs, c.where)};
}

results taken_apart(const call& c) { return frexp(c[0]); }
results attended(const call& c) { return attention(c.in, c.attrs, c.where); }
results attended_backward(const call& c) { return attention_backward(c.in, c.attrs, c.where); }

template <bool WithIndices>
results max_pooled(const call& c) {
  return max_pool(c[0], c.attrs, WithIndices);
}

struct oracle_line {
  std::string_view name;
  results (*f)(const call& c);
};
constexpr oracle_line oracles[] = {
    {"convert", named<oracle_convert>},
    {"sum", reduced<reduction::sum>},
    {"mean", reduced<reduction::mean>},
    {"max", reduced<reduction::max>},
    {"min", reduced<reduction::min>},
    {"argmax", reduced<reduction::argmax>},
    {"argmin", reduced<reduction::argmin>},
    {"dot", named<oracle_dot>},
    {"prelu_weight_backward", of<prelu_weight_backward>},
    {"matmul", of<matmul>},
    {"uniform", named<oracle_uniform>},
    {"permutation", named<oracle_permutation>},
    {"conv2d", of<convolve>},
    {"conv2d_grad_input", of<convolve_grad_input>},
    {"conv2d_grad_weight", of<convolve_grad_weight>},
    {"conv2d_grad_bias", of<convolve_grad_bias>},
    {"max_pool2d", max_pooled<false>},
    {"max_pool2d_backward", of<max_pool_backward>},
    {"avg_pool2d", of<avg_pool>},
    {"avg_pool2d_backward", of<avg_pool_backward>},
    {"softmax", of<softmax>},
    {"log_softmax", of<log_softmax>},
    {"logsumexp", of<logsumexp>},
    {"cross_entropy", named<oracle_cross_entropy>},
    {"softmax_backward", of<softmax_backward>},
    {"log_softmax_backward", of<log_softmax_backward>},
    {"logsumexp_backward", of<logsumexp_backward>},
    {"cross_entropy_backward", named<oracle_cross_entropy_backward>},
    {"cross_entropy_probabilities", named<oracle_cross_entropy_probabilities>},
    {"cross_entropy_probabilities_backward", named<oracle_cross_entropy_probabilities_backward>},
    {"sgd", stepped<sgd>},
    {"adamw", stepped<adamw>},
    {"normal", named<oracle_normal>},
    {"exponential", named<oracle_exponential>},
    {"multinomial", named<oracle_multinomial>},
    {"upsample_nearest2d", named<oracle_upsample_nearest2d>},
    {"upsample_nearest2d_backward", named<oracle_upsample_nearest2d_backward>},
    {"upsample_linear", interpolated<ops::upsample_linear>},
    {"upsample_linear_backward", interpolated<ops::upsample_linear_backward>},
    {"upsample_cubic", interpolated<ops::upsample_cubic>},
    {"upsample_cubic_backward", interpolated<ops::upsample_cubic_backward>},
    {"linspace", named<oracle_linspace>},
    {"arange", named<oracle_arange>},
    {"bernoulli", named<oracle_bernoulli>},
    {"randint", named<oracle_randint>},
    {"dropout", named<oracle_dropout>},
    {"dropout_backward", named<oracle_dropout>},
    {"mse_loss", of<mse_loss>},
    {"mse_loss_backward", of<mse_loss_backward>},
    {"l1_loss", of<l1_loss>},
    {"l1_loss_backward", of<l1_loss_backward>},
    {"smooth_l1_loss", of<smooth_l1_loss>},
    {"smooth_l1_loss_backward", of<smooth_l1_loss_backward>},
    {"huber_loss", of<huber_loss>},
    {"huber_loss_backward", of<huber_loss_backward>},
    {"soft_margin_loss", of<soft_margin_loss>},
    {"soft_margin_loss_backward", of<soft_margin_loss_backward>},
    {"binary_cross_entropy_with_logits", entropy<ops::binary_cross_entropy_with_logits>},
    {"binary_cross_entropy_with_logits_backward", entropy<ops::binary_cross_entropy_with_logits_backward>},
    {"binary_cross_entropy", entropy<ops::binary_cross_entropy>},
    {"binary_cross_entropy_backward", entropy<ops::binary_cross_entropy_backward>},
    {"kl_div", entropy<ops::kl_div>},
    {"kl_div_backward", entropy<ops::kl_div_backward>},
    {"layer_norm", normed<ops::layer_norm>},
    {"rms_norm", normed<ops::rms_norm>},
    {"group_norm", normed<ops::group_norm>},
    {"batch_norm", normed<ops::batch_norm>},
    {"layer_norm_backward", norm_gradient<ops::layer_norm_backward>},
    {"rms_norm_backward", norm_gradient<ops::rms_norm_backward>},
    {"group_norm_backward", norm_gradient<ops::group_norm_backward>},
    {"batch_norm_backward", norm_gradient<ops::batch_norm_backward>},
    {"layer_norm_weight_backward", norm_gradient<ops::layer_norm_weight_backward>},
    {"rms_norm_weight_backward", norm_gradient<ops::rms_norm_weight_backward>},
    {"group_norm_weight_backward", norm_gradient<ops::group_norm_weight_backward>},
    {"batch_norm_weight_backward", norm_gradient<ops::batch_norm_weight_backward>},
    {"batch_norm_running", running},
    {"batch_norm_inference", given<ops::batch_norm_inference>},
    {"batch_norm_inference_backward", given<ops::batch_norm_inference_backward>},
    {"batch_norm_inference_weight_backward", given<ops::batch_norm_inference_weight_backward>},
    {"index_add", scattered<ops::index_add>},
    {"embedding_backward", scattered<ops::embedding_backward>},
    {"scatter_add", scattered<ops::scatter_add>},
    {"nll_loss", stepped<nll_loss>},
    {"nll_loss_backward", named<oracle_nll_loss_backward>},
    {"sum_squares", of<sum_squares>},
    {"vector_norm", named<oracle_vector_norm>},
    {"max_pool2d_with_indices", max_pooled<true>},
    {"adaptive_max_pool2d", max_pooled<false>},
    {"adaptive_max_pool2d_with_indices", max_pooled<true>},
    {"adaptive_max_pool2d_backward", of<max_pool_backward>},
    {"adaptive_avg_pool2d", of<avg_pool>},
    {"adaptive_avg_pool2d_backward", of<avg_pool_backward>},
    {"cumsum", of<cumsum>},
    {"prod", of<prod>},
    {"cumprod", of<cumprod>},
    {"logcumsumexp", of<logcumsumexp>},
    {"ldexp", of<ldexp>},
    {"frexp", taken_apart},
    {"attention", attended},
    {"attention_backward", attended_backward},
    {"total_norm", stepped<total_norm>},
    {"clip_grad_norm", stepped<clip_grad_norm>},
    {"conv3d", of<convolve>},
    {"conv3d_grad_input", of<convolve_grad_input>},
    {"conv3d_grad_weight", of<convolve_grad_weight>},
    {"conv3d_grad_bias", of<convolve_grad_bias>},
    {"max_pool3d", max_pooled<false>},
    {"max_pool3d_with_indices", max_pooled<true>},
    {"max_pool3d_backward", of<max_pool_backward>},
    {"avg_pool3d", of<avg_pool>},
    {"avg_pool3d_backward", of<avg_pool_backward>},
    {"adaptive_max_pool3d", max_pooled<false>},
    {"adaptive_max_pool3d_with_indices", max_pooled<true>},
    {"adaptive_max_pool3d_backward", of<max_pool_backward>},
    {"adaptive_avg_pool3d", of<avg_pool>},
    {"adaptive_avg_pool3d_backward", of<avg_pool_backward>},
};

constexpr const oracle_line* oracle_named(std::string_view name) {
  for (const oracle_line& o : oracles)
    if (o.name == name) return &o;
  return nullptr;
}
constexpr auto check = []<class Op>() {
  static_assert(oracle_named(Op::name) != nullptr || ops::is_statistic<Op>, "an operation without oracle");
};
static_assert((ops::for_each_structured(check), true));

}  // namespace

std::vector<array> evaluate_all(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                                outcomes* where, std::int64_t* in_64_bits) {
  if (const ops::elementwise_row* row = elementwise_named(op)) return {elementwise(*row, in, attrs, where, in_64_bits)};
  if (is_statistic(op)) return statistics(op, call{in, attrs, where}[0], attrs, where);
  if (const oracle_line* o = oracle_named(op)) return o->f({in, attrs, where});
  throw std::logic_error("reference: no oracle for " + op);
}

array evaluate(const std::string& op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  std::vector<array> all = evaluate_all(op, in, attrs, where);
  if (all.size() != 1) throw std::logic_error("reference: " + op + " has several outputs");
  return std::move(all[0]);
}

}  // namespace repdl::reference
