// var_mean (var is the same without the mean) and stddev, as rules (rule.hpp): what norms find of a row (norm.hpp), as results. A
// row_call's eps is the correction c. Of binary64 they are reductions: ops/sums/spread.hpp.
//
// With n, D, Q and V = n Q - D^2 = n^2 v as norm.hpp has them, f = n - c and everything exact:
//     var = V / (n f),   stddev = V / sqrt(V n f).
//
// Tier binary64. u, g = (h + 6) u and k are norm.hpp's; a = k (h + 3) u, so that D errs by a sqrt(n Q) at most, what a total in
// double-double drops of it included; h < 2^25.
//     D^2 / n             a (2 + a) Q, and 3.1 u (1 + a)^2 D^2 / n <= 3.2 u Q for D (1 / n) and its product with D
//     S = Q - D^2 / n     g Q + that + u S, and 2 a <= 2 k g - 6 k u, a^2 < u: (2 k + 1) g Q + u S
//     f                   u of itself: n is a binary64 number, and so is the correction
//     S / f               2 u of itself
//     var                 (2 k + 1) g Q / f + 4 u var; 8 u leaves 3 u for the ends var -+ e, and e (1 + 2^-10) room for what e errs by
//     stddev              the roots of the ends, each within u of itself: 2^-50 of them outwards
// Nothing over- or underflows: Q is 0 or from 2^-298 to 2^320, f from 2^-53 to 2^201. An end below 0 has no root: NaN, undecided.
//
// Late tiers: the formulas above. Of balls V is exact, 680 bits: a multiple of 2^-298 below 2^382; n f: a multiple of 2^-252 below
// 2^262, or, of |c| < 1, 2^125. V / (n f) is a midpoint t only where it is exact, and t n f - V is a multiple of 2^-402 otherwise.
// Of the root the squares of V and t sqrt(V n f) are compared: V^2 has 1360 bits from 2^-596 on, t^2 V n f, where they are close,
// ends at most 1244 bits below V^2's first. 24 limbs have 1536.
//
// Source: T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance: analysis and recommendations",
// The American Statistician 37 (1983): shifted data.
#pragma once

#include "librepdl/ops/rows/norm.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class R>
struct variance_numbers : norm_numbers<R> {
  R variance, of_variance;  // S / f, and what it errs by beside 8 u
};

// n - correction; NaN, and so every number of binary64, where there is no variance.
REPDL_HD double degrees_of_freedom(const row_call& c) {
  const double f = static_cast<double>(c.length) - c.eps;
  return f > 0 ? f : double_of(format<double>::nan);
}

template <bool Root>
struct variance_rule : norm_rule<true> {
  using base = norm_rule<true>;
  static constexpr row_inputs inputs = {};
  static constexpr bool per_element = false;
  static constexpr int results = Root ? 1 : 2;  // var, mean, or stddev

  template <class R>
  using numbers = variance_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R top, const deviations<R>& s) {
    const norm_numbers<R> all = base::prepare<R>(c, own, top, s);  // of which rstd means nothing
    const double f = degrees_of_freedom(c);
    constexpr int k = deviation_sums<R>::k;
    return {all, (s.second - s.first * all.offset) / f, ((2 * k + 1) * c.bounds.sum / f) * s.second};
  }
  template <class R>
  REPDL_HD static ends<R> result(const row_call& c, const numbers<R>& r, R at, int what) {
    using M = row_math<R>;
    if (!Root && what == 1) return base::result<R>(c, r, at, 0);
    const R e = (r.of_variance + 0x1p-50 * magnitude_of(r.variance)) * (1 + 0x1p-10);
    const R low = r.variance - e;
    const R high = r.variance + e;
    if constexpr (Root) return {M::root(low) * (1 - 0x1p-50), M::root(high) * (1 + 0x1p-50)};
    return {low, high};
  }

  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s, const float* x,
                                   int what) {
    if (!Root && what == 1) return base::settle<A>(to, c, o, s, x, 1);
    if (!is_finite(degrees_of_freedom(c)) || !is_finite(s.plain)) return {float_of(canonical_nan_f32), true};
    const std::int64_t n = c.length;
    A v = s.squares(n);
    to_spread(v, s.sum(n), n, 0.0);
    if (is_zero(v)) return {0.0f, true};
    A divisor = arithmetic<A>::number(static_cast<double>(n));
    add_value(divisor, -c.eps);
    multiply_by_count(divisor, n);
    if constexpr (!Root) {
      divide_by(v, divisor);
      return round_to(to, v);
    }
    if (sign_in(v) != 1) return {0.0f, false};
    multiply_by(divisor, v);
    return round_over_root(to, v, divisor, 0.0);
  }
};
template <>
struct row_rule<ops::op_id::var_mean> : variance_rule<false> {};
template <>
struct row_rule<ops::op_id::stddev> : variance_rule<true> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
