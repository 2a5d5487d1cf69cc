// One row of the softmax family, with its exact part separated: x_i = M + (x_i - M), M the greatest element, k times in
// the row, so that sum of e^x_j = e^M (k + rho), rho = sum of e^(x_j - M) over the smaller elements.
//
// Which results can be midpoints or representable (Lindemann-Weierstrass: e^a, a over distinct algebraic numbers, are
// linearly independent over the algebraic numbers): with two different finite elements, no softmax, no product of it
// with a rational number and no logarithm of the sum is rational. Without, rho = 0, and the callers use rationals.
// How near to a midpoint they can be: as near as rho is to 0, and rho has no lower bound. So where rho < 2^-500, or of
// binary64 2^-2400 (`negligible`), the callers compare without evaluating it; else some thousand bits decide.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "reference/layout.hpp"
#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {

inline mpq_class integer(std::int64_t v) { return mpq_class(mpz_class(static_cast<long>(v))); }

/// A result in a format and where it lies.
struct rounded {
  std::uint64_t bits = 0;
  outcome where;
};
/// The same before it is rounded.
using result = std::function<rounded(dtype)>;
inline result nan_result() {
  return [](dtype t) -> rounded { return {nan_bits(t), outcome_of_pattern(t, nan_bits(t))}; };
}
inline result infinite_result(bool negative) {
  return [=](dtype t) -> rounded {
    const std::uint64_t bits = infinity_bits(t, negative);
    return {bits, outcome_of_pattern(t, bits)};
  };
}
inline result zero_result(bool negative) {
  return [=](dtype t) -> rounded { return {zero_bits(t, negative), outcome_of_pattern(t, 0)}; };
}

class softmax_row {
 public:
  /// Of binary32 or binary64.
  softmax_row(dtype type, const std::vector<std::uint64_t>& x);
  explicit softmax_row(const patterns& x) : softmax_row(dtype::f32, {x.begin(), x.end()}) {}

  bool any_nan = false, any_plus = false;  ///< NaN; +inf
  std::size_t finite_count = 0;
  /// NaN, +inf or nothing but -inf: no softmax.
  bool invalid() const { return any_nan || any_plus || finite_count == 0; }

  // Of a valid row:
  bool is_finite(std::size_t i) const { return finite_[i]; }
  bool is_greatest(std::size_t i) const { return finite_[i] && x_[i] == greatest_; }
  /// All finite elements are equal: rho = 0.
  bool all_equal() const { return finite_count == static_cast<std::size_t>(k); }
  bool negligible() const;                                          ///< 0 < rho < 2^-500 or 2^-2400
  bool negligible(std::size_t i) const;                             ///< e^(x_i - M), likewise
  long unit() const { return unit_; }                               ///< 2^-149 or 2^-1074
  const mpz_class& greatest() const { return greatest_; }           ///< M in units
  mpz_class gap(std::size_t i) const { return x_[i] - greatest_; }  ///< x_i - M <= 0 in units
  long k = 0;

  interval weight(mpfr_prec_t p, std::size_t i) const { return at(p).e[i]; }  ///< e^(x_i - M)
  interval rho(mpfr_prec_t p) const { return at(p).rho; }
  interval sum(mpfr_prec_t p) const { return interval(p, mpq_class(k)) + rho(p); }        ///< k + rho
  interval sum_without(mpfr_prec_t p, std::size_t i) const;                               ///< k + rho - e^(x_i - M)
  interval log_sum(mpfr_prec_t p) const { return k == 1 ? log1p(rho(p)) : log(sum(p)); }  ///< ln(k + rho)

 private:
  struct weights {
    std::vector<interval> e;
    interval rho;
  };
  const weights& at(mpfr_prec_t p) const;

  long unit_;
  std::vector<bool> finite_;
  std::vector<mpz_class> x_;
  mpz_class greatest_;
  mutable std::map<mpfr_prec_t, weights> cache_;
};

/// Element i of g / n * softmax(row), g finite and not zero, the row valid.
result scaled_softmax(const softmax_row& row, std::size_t i, const mpq_class& g, std::int64_t n);

/// An exact rational result.
inline result exact_result(const mpq_class& q) {
  return [=](dtype t) {
    rounded r;
    r.bits = round_exact(t, q, &r.where);
    return r;
  };
}
/// See round_beside.
inline result beside_result(const mpq_class& stand_in, const mpq_class& q) {
  return [=](dtype t) {
    rounded r;
    r.bits = round_beside(t, stand_in, q, &r.where);
    return r;
  };
}
/// f is kept, and so is what it refers to.
template <class F>
result decided_result(F f) {
  return [=](dtype t) {
    rounded r;
    r.bits = decide(t, f, &r.where);
    return r;
  };
}

/// The axis as a list, and row-major rows of an array along axes.
inline shape_list one_axis(std::int64_t axis) { return {axis}; }
inline patterns row_of(const patterns& x, const reduce_layout& l, std::int64_t base) {
  patterns v;
  for (const std::int64_t d : l.reduced) v.push_back(x[static_cast<std::size_t>(base + d)]);
  return v;
}

}  // namespace repdl::reference
