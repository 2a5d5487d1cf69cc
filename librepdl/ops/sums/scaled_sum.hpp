// alpha S + beta c, S a sum of products of numbers of one format, c such a number, alpha and beta coefficients: 0 or of
// magnitude in [2^-200, 2^200]. Rounded once to T.
//
// Of binary32 and narrower formats S and what approximates it are multiples of 2^-298 below 2^318, a coefficient is a multiple of 2^-252: products are
// multiples of 2^-550 below 2^518, so that two_prod is exact and nothing over- or underflows.
//
// Not finite: of these formats alpha s + beta c in binary64 is what the contract says of the reals with infinities, since s is
// (certify.hpp), 0 inf is NaN, and finite parts overflow nowhere.
#pragma once

#include "librepdl/num/bounded_value.hpp"
#include "librepdl/num/dd_ball.hpp"
#include "librepdl/num/fixed_point.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// From |S - s| <= e. With p = alpha s, q = beta c, t = p.hi + q.hi, all exact pairs,
//     alpha S + beta c = t.hi + (t.lo + p.lo + q.lo) + alpha (S - s).
// With m = |t.lo| + |p.lo| + |q.lo| the rest errs by (2u + u^2) m, v = fl(t.hi + rest) by u |v| more. (C) wants another
// u |v|, so that
//     E (1 - u) >= |alpha| e + 2u |v| + (2u + u^2) m
// suffices: below, 1 + 8u and 4u make up for that and for the roundings of E and m, at most four on a path. e = m = 0:
// v = t.hi is the value.
template <class R>
REPDL_HD bounded_value<R> scaled_sum(R alpha, R beta, R s, R e, R c) {
  const double_word<R> p = two_prod(alpha, s);
  const double_word<R> q = two_prod(beta, c);
  const double_word<R> t = two_sum(p.hi, q.hi);
  const R zero = math<R>::all(0.0);
  const R limit = math<R>::all(infinity);
  const R v = t.hi + (t.lo + (p.lo + q.lo));  // an exact zero is +0: t.lo of zeros, and what cancels, is
  const R m = magnitude_of(t.lo) + (magnitude_of(p.lo) + magnitude_of(q.lo));
  R error = magnitude_of(alpha) * e * (1 + 0x1p-50) + 0x1p-51 * (magnitude_of(v) + m);
  error = error == error ? error : limit;  // 0 inf
  error = ((e == zero) & (m == zero)) ? zero : error;
  const auto finite = magnitude_of(t.hi) < limit;
  return {finite ? v : t.hi, finite ? error : zero};
}

// From a double-double: |S - (s.hi + s.lo)| <= e. With r = alpha s.lo, and the low parts added up exactly, l + d for
// their sum,
//     alpha S + beta c = t.hi + l + d + alpha (S - s),   |d| <= the sum of the magnitudes of its four parts,
// where 1 + 16u makes up for the roundings of the bound, at most four on a path. Where it is 0 ties are decided, too.
template <class T>
REPDL_HD decided_value<T> certify_scaled(double alpha, double beta, dd s, double e, double c) {
  const double plain = alpha * s.hi + beta * c;
  if (!is_finite(plain)) return {non_finite_result<T>(plain), true};
  const dd p = two_prod(alpha, s.hi);
  const dd q = two_prod(beta, c);
  const dd r = two_prod(alpha, s.lo);
  const dd t = two_sum(p.hi, q.hi);
  const dd first = two_sum(p.lo, q.lo);
  const dd second = two_sum(first.hi, r.hi);
  const dd third = two_sum(second.hi, t.lo);
  const double d = (magnitude_of(first.lo) + magnitude_of(second.lo)) + (magnitude_of(third.lo) + magnitude_of(r.lo));
  return certify<T>(two_sum(t.hi, third.hi), (magnitude_of(alpha) * e + d) * (1 + 0x1p-49));
}

// From S itself and finite c. A multiple of 2^-550 below 2^519: 1069 bits and a sign.
template <class T>
REPDL_HD T round_scaled(double alpha, double beta, const dot_accumulator& s, double c) {
  fixed_point<-550, 17> value;
  add_multiple(value, s, alpha);
  value.add_product(beta, c);
  return value.round<T>();
}

// Of binary64, as balls (dd_ball.hpp): what is too large or too small for them is not decided, nor is an exact 0.
struct wide_scaled_sum {
  double alpha, beta, c;

  // |S - s| <= e.
  REPDL_HD decided_value<double> certify(dd s, double e) const {
    using Ball = dd_ball<double>;
    const Ball sum{s.hi, s.lo, e};
    const decided_lanes<double> r = round_ball(number<Ball>(alpha) * sum + number<Ball>(beta) * number<Ball>(c));
    return {r.value, r.decided};
  }
  // S is a multiple of 2^-2148 below 2^2110, so that the value is one of 2^-2400 below 2^2312: 4712 bits and a sign. Where a part is not
  // finite, finite ones count as 0, but a factor 0 makes NaN of it: what the contract says of the reals with infinities.
  REPDL_HD_ONCE double round(const exact_sum<double, 2>& s) const {
    if (s.special.any() || !is_finite(c)) {
      const double scaled = s.special.any() ? alpha * s.special.value<double>() : 0;
      return non_finite_result<double>(is_finite(c) ? scaled : scaled + beta * c);
    }
    fixed_point<-2400, 74> value;
    add_multiple(value, s.finite, alpha);
    value.add_product(beta, c);
    return value.round<double>();
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
