#include "reference/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>

#include "reference/elementwise.hpp"

namespace repdl::reference {
namespace {

array elementwise(const ops::elementwise_row& row, const std::vector<array>& in, const attributes& attrs,
                  outcomes* where) {
  if (in.size() != static_cast<std::size_t>(row.arity)) throw std::invalid_argument("reference: number of inputs");
  shape_list shape;
  for (const array& a : in) shape = broadcast_shape(shape, a.shape);
  const dtype t = in[0].type;
  const option_values options(row, attrs);
  const oracle_function f = oracle_of(row.name).f;
  array out(row.result_type(t), shape);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    std::uint64_t v[3] = {};
    for (std::size_t j = 0; j < in.size(); ++j)
      v[j] = in[j].get(static_cast<std::size_t>(broadcast_index(in[j].shape, shape, i)));
    out.set(static_cast<std::size_t>(i), f(t, v, options.value));
    if (where != nullptr) where->push_back(locate(row, t, v, options));
  }
  return out;
}

array converted(const array& x, dtype to, outcomes* where) {
  array out(to, x.shape);
  mpz_t n, one;
  mpz_init(n);
  mpz_init_set_ui(one, 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i) {
    out.set(i, convert(x.type, to, x.get(i)));
    if (where == nullptr) continue;
    const number v = widen(x.type, x.get(i));
    outcome o;
    o.nan = v.kind == number_kind::nan;
    o.infinite = v.kind == number_kind::infinite;
    mpz_set_ui(n, v.significand);
    if (!o.nan && !o.infinite) o = locate(to, n, one, v.exponent);
    where->push_back(o);
  }
  mpz_clears(n, one, nullptr);
  return out;
}

const array& input(const std::vector<array>& in, std::size_t i) {
  if (i >= in.size()) throw std::invalid_argument("reference: number of inputs");
  return in[i];
}

/// An optional input.
const array* optional_input(const std::vector<array>& in, std::size_t i) {
  return i < in.size() && !in[i].absent() ? &in[i] : nullptr;
}

using integers = std::vector<std::int64_t>;

std::optional<array> reduction_of(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                                  outcomes* where) {
  constexpr std::pair<std::string_view, reduction> reductions[] = {
      {"sum", reduction::sum}, {"mean", reduction::mean},     {"max", reduction::max},
      {"min", reduction::min}, {"argmax", reduction::argmax}, {"argmin", reduction::argmin}};
  const auto found = std::find_if(std::begin(reductions), std::end(reductions), [&](auto& r) { return op == r.first; });
  const bool is_reduction = found != std::end(reductions);
  if (!is_reduction && !op.starts_with("logsumexp")) return std::nullopt;
  const auto axes = attribute_of<integers>(attrs, "axis");
  const bool keepdim = attribute_or(attrs, "keepdim", false);
  if (is_reduction) return reduce(found->second, input(in, 0), axes, keepdim, where);
  if (op == "logsumexp") return logsumexp(input(in, 0), axes, keepdim, where);
  return logsumexp_backward(input(in, 0), input(in, 1), axes, keepdim, where);
}

std::optional<array> product_of(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                                outcomes* where) {
  if (op == "dot") return dot(input(in, 0), input(in, 1), where);
  if (op == "matmul") {
    const matmul_case options{attribute_or(attrs, "transpose_a", false), attribute_or(attrs, "transpose_b", false),
                              attribute_or<std::string>(attrs, "accumulate", "exact") == "fma_chain"};
    return matmul(input(in, 0), input(in, 1), optional_input(in, 2), options, where);
  }
  if (op == "conv2d") return conv2d(input(in, 0), input(in, 1), optional_input(in, 2), attrs, where);
  if (op == "conv2d_grad_input") return conv2d_grad_input(input(in, 0), input(in, 1), attrs, where);
  if (op == "conv2d_grad_weight") return conv2d_grad_weight(input(in, 0), input(in, 1), attrs, where);
  if (op == "conv2d_grad_bias") return conv2d_grad_bias(input(in, 0), where);
  if (op == "max_pool2d") return max_pool2d(input(in, 0), attrs);
  if (op == "max_pool2d_backward") return max_pool2d_backward(input(in, 0), input(in, 1), attrs, where);
  if (op == "avg_pool2d") return avg_pool2d(input(in, 0), attrs, where);
  if (op == "avg_pool2d_backward") return avg_pool2d_backward(input(in, 0), attrs, where);
  return std::nullopt;
}

std::optional<array> row_operation(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                                   outcomes* where) {
  if (op.starts_with("cross_entropy")) {
    const cross_entropy_case options{attribute_of<std::int64_t>(attrs, "axis"),
                                     attribute_or<std::string>(attrs, "reduction", "mean"),
                                     attribute_or<std::int64_t>(attrs, "ignore_index", -100)};
    if (op == "cross_entropy") return cross_entropy(input(in, 0), input(in, 1), options, where);
    return cross_entropy_backward(input(in, 0), input(in, 1), input(in, 2), options, where);
  }
  constexpr std::string_view names[] = {"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"};
  if (std::find(std::begin(names), std::end(names), op) == std::end(names)) return std::nullopt;
  const auto axis = attribute_or<std::int64_t>(attrs, "axis", -1);
  if (op == "softmax") return softmax(input(in, 0), axis, where);
  if (op == "log_softmax") return log_softmax(input(in, 0), axis, where);
  if (op == "softmax_backward") return softmax_backward(input(in, 0), input(in, 1), axis, where);
  return log_softmax_backward(input(in, 0), input(in, 1), axis, where);
}

std::optional<array> random_numbers(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                                    outcomes* where) {
  constexpr std::string_view names[] = {"uniform", "permutation", "normal",          "bernoulli",
                                        "randint", "dropout",     "dropout_backward"};
  if (std::find(std::begin(names), std::end(names), op) == std::end(names)) return std::nullopt;
  const auto seed = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "seed", 0));
  const auto stream = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "stream", 0));
  const integers shape = attribute_or<integers>(attrs, "shape", {});
  const dtype type = format_named(attribute_or<std::string>(attrs, "dtype", "f32"));
  if (op == "uniform") {
    return uniform(type, shape, seed, stream, std::bit_cast<std::uint64_t>(attribute_or(attrs, "low", 0.0)),
                   std::bit_cast<std::uint64_t>(attribute_or(attrs, "high", 1.0)), where);
  }
  if (op == "permutation") return permutation(attribute_or<std::int64_t>(attrs, "n", 0), seed, stream);
  if (op == "normal")
    return normal(type, shape, seed, stream, attribute_or(attrs, "mean", 0.0), attribute_or(attrs, "stddev", 1.0),
                  where);
  const double p = attribute_or(attrs, "p", 0.5);
  if (op == "bernoulli") return bernoulli(shape, seed, stream, p);
  if (op == "randint")
    return randint(shape, seed, stream, attribute_or<std::int64_t>(attrs, "low", 0),
                   attribute_or<std::int64_t>(attrs, "high", 0));
  return dropout(input(in, 0), seed, stream, p, where);
}

}  // namespace

std::vector<array> evaluate_all(const std::string& op, const std::vector<array>& in, const attributes& attrs,
                                outcomes* where) {
  if (op == "sgd") return sgd(in, attrs, where);
  if (op == "adamw") return adamw(in, attrs, where);
  if (const ops::elementwise_row* row = elementwise_named(op)) return {elementwise(*row, in, attrs, where)};
  if (op == "convert")
    return {converted(input(in, 0), format_named(attribute_or<std::string>(attrs, "dtype", "f32")), where)};
  for (const auto family : {reduction_of, product_of, row_operation, random_numbers})
    if (std::optional<array> out = family(op, in, attrs, where)) return {*std::move(out)};
  throw std::logic_error("reference: no oracle for " + op);
}

array evaluate(const std::string& op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  std::vector<array> all = evaluate_all(op, in, attrs, where);
  if (all.size() != 1) throw std::logic_error("reference: " + op + " has several outputs");
  return std::move(all[0]);
}

}  // namespace repdl::reference
