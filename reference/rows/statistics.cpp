// Statistics of rows (contract, section 4): rational numbers, and a root of one.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/rows/norm_results.hpp"

namespace repdl::reference {
namespace {

/// The sum of (x - m)^2, of integers: n x - (sum of x) in units of the format's least number. Nothing where a term is no number.
std::optional<mpq_class> spread_of(dtype type, const std::vector<std::uint64_t>& x) {
  const int unit = format_of(type).ulp_min();
  if (x.empty()) return std::nullopt;
  std::vector<mpz_class> terms;
  mpz_class sum = 0;
  for (const std::uint64_t v : x) {
    const number n = widen(type, v);
    if (n.kind != number_kind::zero && n.kind != number_kind::finite) return std::nullopt;
    mpz_class& term = terms.emplace_back(n.kind == number_kind::zero ? 0UL : static_cast<unsigned long>(n.significand));
    if (term != 0) mpz_mul_2exp(term.get_mpz_t(), term.get_mpz_t(), static_cast<mp_bitcnt_t>(n.exponent - unit));
    if (n.negative) term = -term;
    sum += term;
  }
  const mpz_class n = static_cast<unsigned long>(x.size());
  mpz_class squares = 0;
  for (const mpz_class& term : terms) {
    const mpz_class d = n * term - sum;
    squares += d * d;
  }
  return mpq_class(squares) * power_of_two(2 * unit) / mpq_class(n * n);
}

/// Of a row of numbers.
struct row {
  mpq_class spread, degrees;  ///< the sum of (x - m)^2; its number less the correction, above 0
  std::int64_t count;

  mpq_class variance() const { return spread / degrees; }
};
result exact_or_zero(const mpq_class& q) { return q == 0 ? zero_result(false) : exact_result(q); }

/// The first result of each; var_mean has the mean as well.
struct statistic {
  std::string_view name;
  result (*of)(const row&);
};
constexpr statistic all_statistics[] = {
    {"var", [](const row& r) { return exact_or_zero(r.variance()); }},
    {"var_mean", [](const row& r) { return exact_or_zero(r.variance()); }},
    {"stddev", [](const row& r) { return r.spread == 0 ? zero_result(false) : with_root(0, false, r.variance()); }},
};
const statistic& statistic_named(std::string_view name) {
  for (const statistic& s : all_statistics)
    if (s.name == name) return s;
  throw std::logic_error("reference: no oracle for " + std::string(name));
}

}  // namespace

std::vector<array> statistics(std::string_view op, const array& x, const attributes& attrs, outcomes* where) {
  const reduce_layout l =
      layout_of(x.shape, attribute_of<shape_list>(attrs, "axis"), attribute_or(attrs, "keepdim", false));
  const mpq_class degrees =
      mpq_class(static_cast<unsigned long>(l.reduced.size())) - rational(attribute_or(attrs, "correction", 1.0));
  array var(x.type, l.kept_shape), mean(x.type, l.kept_shape);
  outcomes at_var, at_mean;
  const statistic& what = statistic_named(op);
  for (std::size_t r = 0; r < l.kept.size(); ++r) {
    std::vector<std::uint64_t> elements;
    for (const std::int64_t i : l.reduced) elements.push_back(x.get(index(l.kept[r] + i)));
    const std::optional<mpq_class> spread = spread_of(x.type, elements);
    const auto n = static_cast<std::int64_t>(elements.size());
    const rounded v = (spread && degrees > 0 ? what.of({*spread, degrees, n}) : nan_result())(x.type);
    var.set(r, v.bits);
    at_var.push_back(v.where);
    exact_sum sum(x.type);
    for (const std::uint64_t e : elements) sum.add(e);
    mean.set(r, sum.round_mean(n));
    at_mean.push_back(sum.where(n));
  }
  if (where != nullptr) {
    where->insert(where->end(), at_var.begin(), at_var.end());
    if (op == "var_mean") where->insert(where->end(), at_mean.begin(), at_mean.end());
  }
  if (op == "var_mean") return {var, mean};
  return {var};
}

}  // namespace repdl::reference
