// Double-double arithmetic: about 106 bits, with proved bounds and its own lattice rule. R is binary64, or a register of it.
//
// Source: M. Joldes, J.-M. Muller, V. Popescu, "Tight and rigorous error bounds for basic building blocks of
// double-word arithmetic", ACM TOMS 44 (2017): algorithms 4 (DWPlusFP, error 2u²) and 6 (AccurateDWPlusDW, 3u²/(1 -
// 4u)); the second proof was completed by Muller and Rideau, ACM TOMS 48 (2022). u = 2^-53. The "sloppy" addition
// (algorithm 5) has no relative bound under cancellation and is not used. Checked by tests/numerics/num_test.cpp against exact
// integers.
#pragma once

#include "librepdl/num/certify.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// x + y, relative error <= 2u². x normalised, no overflow.
template <class R>
REPDL_HD double_word<R> add(double_word<R> x, R y) {
  const double_word<R> s = two_sum(x.hi, y);
  return fast_two_sum(s.hi, x.lo + s.lo);
}

// x + y, relative error <= 3u²/(1 - 4u). Both normalised, no overflow.
template <class R>
REPDL_HD double_word<R> add(double_word<R> x, double_word<R> y) {
  const double_word<R> s = two_sum(x.hi, y.hi);
  const double_word<R> t = two_sum(x.lo, y.lo);
  const double_word<R> v = fast_two_sum(s.hi, s.lo + t.hi);
  return fast_two_sum(v.hi, t.lo + v.lo);
}

// The same of numbers of one sign, |y| <= |x|, or |y| <= |x| / 3: relative error <= 5u² / (1 - 4u). u² (|x| + |y|) for the sum of low
// parts, u² (|x + y| + |x| + |y|) for the second one, and |x| + |y| <= 2 |x + y|.
template <class R>
REPDL_HD double_word<R> add_smaller(double_word<R> x, double_word<R> y) {
  const double_word<R> s = fast_two_sum(x.hi, y.hi);
  return fast_two_sum(s.hi, s.lo + (x.lo + y.lo));
}

// a b, normalised, relative error below 8u² (algorithms 10 to 12 without FMA); two_prod's preconditions.
template <class R>
REPDL_HD double_word<R> mul(double_word<R> a, double_word<R> b) {
  const double_word<R> p = two_prod(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
template <class R>
REPDL_HD double_word<R> mul(double_word<R> a, R b) {
  const double_word<R> p = two_prod(a.hi, b);
  return fast_two_sum(p.hi, p.lo + a.lo * b);
}
// a / b, relative error below 16u²: the remainder a - q b is off by 8u²|a|, the second quotient by 2u of itself.
template <class R>
REPDL_HD double_word<R> div(double_word<R> a, double_word<R> b) {
  const R q = a.hi / b.hi;
  const double_word<R> p = mul(b, q);
  return fast_two_sum(q, ((a.hi - p.hi) + (a.lo - p.lo)) / b.hi);
}

// The error of a sum over any tree of the two additions above, of height h <= 2^25 (additions on the longest path):
// a term passes at most h additions, each with a factor 1 + d, |d| <= 3.1u², so
//     |s - S| <= ((1 + 3.1u²)^h - 1) sum|x| <= 3.2 h u² sum|x|,
// and with magnitude >= sum|x|(1 - 2^-25) the value fl(4h 2^-106 magnitude) covers it. certify(dd, e) wants no slack.
REPDL_HD double dd_bound(std::int64_t height, double magnitude) {
  return static_cast<double>(4 * height) * 0x1p-106 * magnitude;
}

// The same where results are of binary64, whose terms may be as small as its least numbers, and so large that hi or the magnitude is not
// finite: NaN, or infinity, then, which decides nothing. Additions do not underflow; where the bound does, 2^-1074 is more than it. A
// product that is no multiple of 2^-1074 loses less than 2^-1071, also by way of split numbers (two_prod): `products` of them.
REPDL_HD double wide_dd_bound(std::int64_t height, double magnitude, std::int64_t products) {
  if (magnitude == 0 && products == 0) return 0;
  return dd_bound(height, magnitude) + (static_cast<double>(products) * 0x1p-1071 + 0x1p-1074);
}

// The lattice rule for dd. All terms are multiples of g, sum|x| <= 2^105 g. Then every operation in both additions is
// exact: all operands are multiples of g; the high parts are at most 2^105 g, so low parts and errors of two_sum are at
// most half an ulp of that, 2^51 g (2^52 g for the few steps that come before renormalisation), and sums of two of them
// stay within 2^53 g: binary64 numbers. (dd + double alone would allow 2^106 g.) Plain additions of k two_sum errors,
// each at most u·sum|x|, are exact when k·u·sum|x| <= 2^53 g; k·sum|x| <= 2^105 g is enough.
// `magnitude` may be rounded (relative error below 2^-25): tested with a factor of two in hand. plain_errors >= 1 is k.
REPDL_HD bool lattice_holds_dd(double magnitude, int lsb, std::int64_t plain_errors = 1) {
  return lsb >= -900 && static_cast<double>(plain_errors) * magnitude <= power_of_two((lsb > 800 ? 800 : lsb) + 104);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
