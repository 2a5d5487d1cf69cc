#include "reference/evaluate.hpp"

#include <bit>
#include <stdexcept>

#include "reference/elementwise.hpp"

namespace repdl::reference {
namespace {

array elementwise(const ops::elementwise_row& row, const std::vector<array>& in, outcomes* where) {
  if (in.size() != static_cast<std::size_t>(row.arity)) throw std::invalid_argument("reference: number of inputs");
  shape_list shape;
  for (const array& a : in) shape = broadcast_shape(shape, a.shape);
  array out(dtype::f32, shape);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    std::uint32_t v[3] = {};
    for (std::size_t j = 0; j < in.size(); ++j)
      v[j] = static_cast<std::uint32_t>(in[j].get(static_cast<std::size_t>(broadcast_index(in[j].shape, shape, i))));
    out.set(static_cast<std::size_t>(i), evaluate(row, v));
    if (where != nullptr) where->push_back(locate(row, v));
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

}  // namespace

array evaluate(const std::string& op, const std::vector<array>& in, const attributes& attrs, outcomes* where) {
  using integers = std::vector<std::int64_t>;
  if (const ops::elementwise_row* row = elementwise_named(op)) return elementwise(*row, in, where);
  const auto seed = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "seed", 0));
  const auto stream = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "stream", 0));
  const dtype type = format_named(attribute_or<std::string>(attrs, "dtype", "f32"));
  if (op == "convert") return converted(input(in, 0), type, where);
  if (op == "dot") return dot(input(in, 0), input(in, 1), where);
  if (op == "matmul") {
    const matmul_case options{attribute_or(attrs, "transpose_a", false), attribute_or(attrs, "transpose_b", false),
                              attribute_or<std::string>(attrs, "accumulate", "exact") == "fma_chain"};
    return matmul(input(in, 0), input(in, 1), in.size() > 2 ? &in[2] : nullptr, options, where);
  }
  if (op == "uniform") {
    return uniform(type, attribute_or<integers>(attrs, "shape", {}), seed, stream,
                   std::bit_cast<std::uint64_t>(attribute_or(attrs, "low", 0.0)),
                   std::bit_cast<std::uint64_t>(attribute_or(attrs, "high", 1.0)), where);
  }
  if (op == "permutation") return permutation(attribute_or<std::int64_t>(attrs, "n", 0), seed, stream);
  constexpr std::pair<std::string_view, reduction> reductions[] = {
      {"sum", reduction::sum}, {"mean", reduction::mean},     {"max", reduction::max},
      {"min", reduction::min}, {"argmax", reduction::argmax}, {"argmin", reduction::argmin}};
  for (const auto& [name, r] : reductions) {
    if (op != name) continue;
    std::optional<shape_list> axes;
    for (const attribute& a : attrs)
      if (a.name == "axis") axes = std::get<integers>(a.value);
    return reduce(r, input(in, 0), axes, attribute_or(attrs, "keepdim", false), where);
  }
  throw std::logic_error("reference: no oracle for " + op);
}

}  // namespace repdl::reference
