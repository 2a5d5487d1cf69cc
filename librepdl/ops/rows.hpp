// The softmax family's fast tiers: binary64 and double-double, host and device.
//
// Method: with M the greatest element of a row and d_j = x_j - M <= 0 the gaps,
//     sum_j e^(x_j) = e^M (count + rest),   count = the number of d_j = 0,   rest = sum over d_j < 0 of e^(d_j),
// S = count + rest >= 1, and with R = ln S
//     softmax_i = e^(d_i) / S,   log_softmax_i = d_i - R,   logsumexp = M + R,   cross entropy = -d_t + R.
// count and rest are kept apart: S - 1 has a relative error bound, and so has R, however small it is. The gaps stay
// exact (two binary64 numbers), so the sum of a gap and an R far below its last bit is still rounded correctly: that is
// how the near-ties of log_softmax, such as the row (2^27, -8), are decided here.
//
// Constants: reference/gen/rows.sollya; the polynomials are those of exp.hpp and log.hpp. u = 2^-53.
//
// e^d, binary64, for binary64 |d| <= 600 (fast_exp): the reduction of exp.hpp with ln2_1 of 42 bits, so that k ln2_1 is
// exact for |k| < 2^11. d - k ln2_1 is exact: k = 0, or |d| > 1/4 is a multiple of 2^-54 and the difference, a multiple
// of 2^-54, is below 1/2. The other errors are those of exp.hpp: relative error < 5.1 u; e^0 = 1 exactly.
//
// The gap in binary64: fl(x_j - M) is off by u|d_j| at most, and by nothing where the difference is a binary64 number.
// Gaps below -600 are cut to -600. In the sums the cut adds less than n e^-600 < 2^-810 absolutely; in an output a
// weight below e^-600, times |g| < 2^128, is below 2^-150 either way.
//
// Sums: e^(d_j)'s relative error is (5.1 + |d_j|) u. With q_j = e^(d_j) / rest, sum q_j |d_j| = H(q) - ln rest, H <= ln
// n the entropy. With additions over a tree of height h:
//     rest: (5.1 + h + ln n + max(0, -ln rest)) u (1 + tiny)      =: e_rest
//     S:    (5.1 + h + ln n + 1) u (1 + tiny)                     (the same with S >= 1 for rest)
//     R:    e_rest + 8 u:   dR/R = (rest / (S ln S)) (d rest / rest), the first factor <= 1; 8 u: fast_log
// where rest < 2^-700: see row_logarithm.
#pragma once

#include "librepdl/num/dd.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/exp.hpp"
#include "librepdl/ops/log.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr double least_gap = -600.0;

struct row_constants {
  static constexpr double ln2_1 = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
  static constexpr double ln2_2 = 0x1.ef35793c768p-45, ln2_3 = -0x1.9ff0342542fc3p-90;
};

// e^d, |d| <= 600. Relative error < 5.1 u.
template <class R>
REPDL_HD R fast_exp(R d) {
  using M = math<R>;
  using C = exp_core;
  using K = row_constants;
  const auto t = M::muladd(d, M::all(C::log2e), M::all(C::shifter));
  const auto k = t - C::shifter;
  const auto r = M::muladd(k, M::all(-K::ln2_low), M::muladd(k, M::all(-K::ln2_1), d));
  auto p = M::muladd(M::all(C::c10), r, M::all(C::c9));
  p = M::muladd(p, r, M::all(C::c8));
  p = M::muladd(p, r, M::all(C::c7));
  p = M::muladd(p, r, M::all(C::c6));
  p = M::muladd(p, r, M::all(C::c5));
  p = M::muladd(p, r, M::all(C::c4));
  p = M::muladd(p, r, M::all(C::c3));
  p = M::muladd(p, r, M::all(C::c2));
  p = M::muladd(p, r, M::all(1.0));
  p = M::muladd(p, r, M::all(1.0));
  return M::from_bits(M::to_bits(p) + (M::to_bits(t) << 52));
}

// ln(count + rest), count an integer in [1, 2^52], 0 <= rest < 2^52: relative error < 8 u, 0 exactly for (1, 0).
//   S = 2^e m, sqrt(1/2) <= m < sqrt 2;  f = m - 1 = (count 2^-e - 1) + rest 2^-e, the first part exact, one rounding;
//   ln(1 + f) = s (2 + z), s = f / (2 + f), z = s^2 (log.hpp): f u, 2 + f and the quotient 2 u, R 0.1 u, the sum
//   and the product 2 u: 5.1 u;  e ln2: with e >= 1, |ln(1 + f)| <= ln S, and two sums: 2 u more.
template <class R>
REPDL_HD R fast_log(R count, R rest) {
  using M = math<R>;
  using L = body<ops::log>;
  using K = row_constants;
  constexpr std::uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;
  const auto biased = (M::to_bits(count + rest) + (one - sqrt_half)) >> 52;
  const auto e = M::from_bits(biased | 0x4330000000000000) - 0x1.00000000003ffp52;
  const auto scale = M::from_bits((2046 - biased) << 52);
  const auto f = (count * scale - 1.0) + rest * scale;
  const auto s = f / (2.0 + f);
  const auto z = s * s;
  auto p = M::muladd(M::all(L::c7), z, M::all(L::c6));
  p = M::muladd(p, z, M::all(L::c5));
  p = M::muladd(p, z, M::all(L::c4));
  p = M::muladd(p, z, M::all(L::c3));
  p = M::muladd(p, z, M::all(L::c2));
  p = M::muladd(p, z, M::all(L::c1));
  const auto l = s * M::muladd(p, z, M::all(2.0));
  return M::muladd(e, M::all(K::ln2_1), M::muladd(e, M::all(K::ln2_low), l));
}

// ---------------------------------------------------------------------------------------------------- binary64 tier

// The lines of the bounds, in u.
struct row_errors {
  static constexpr double exponential = 5.1;     // e^d: fast_exp
  static constexpr double least_sum = 1.0;       // S >= 1: max(0, -ln rest) weighted by rest / S
  static constexpr double second_order = 0.9;    // the (1 + tiny) of all lines
  static constexpr double roundings = 16.0;      // of an element: the templates below use at most 8
  static constexpr double gap = 64.0;            // half an ulp of |d_i| < 2^7: softmax is +0 below -104 - ln S
  static constexpr double gradient_gap = 128.0;  // of |d_i| < 2^8: |g| < 2^128 shifts that to -193
  static constexpr double logarithm = 8.0;       // fast_log
  static constexpr double ends = 16.0;           // for gap_ends below, which needs 4

  static constexpr double sum = exponential + least_sum + second_order;      // of S; and its height, and ln n
  static constexpr double element = exponential + second_order + roundings;  // of an element, besides S and the gap
};

// What depends on the call alone.
struct row_bounds {
  double weight;     // relative error of e^(d_i) / S and of what is made of it
  double logarithm;  // relative error of R but for max(0, -ln rest) u
};
REPDL_HD row_bounds bounds_of_rows(std::int64_t length, std::int64_t height, bool gradient) {
  int bits = 1;  // ln n <= 0.7 bits
  while (bits < 62 && (length >> bits) != 0) ++bits;
  using E = row_errors;
  const double sum = E::sum + static_cast<double>(height) + 0.7 * static_cast<double>(bits);
  return {(sum + E::element + (gradient ? E::gradient_gap : E::gap)) * 0x1p-53,
          (sum + (E::logarithm + E::ends)) * 0x1p-53};
}

// R and the half-width f of an interval that holds it, or something that rounds as it does.
// rest < 2^-700 (cut gaps may be in it): 0 < R < 2^-699. R is then added to a gap, or to M: multiples of 2^-149. All
// sums of such a number and any number in (0, 2^-150) round alike, so R = 2^-700 stands for it and f = 0. Otherwise the
// cut changes rest by less than 2^-110 of itself.
template <class R>
struct row_logarithm {
  R value;
  R slack;
};
template <class R>
REPDL_HD row_logarithm<R> logarithm_of_row(R count, R rest, double bound) {
  using M = math<R>;
  const auto r = fast_log(count, rest);
  // -ln rest <= 0.7 (1023 - biased exponent of rest)
  const auto exponent = M::from_bits((M::to_bits(rest) >> 52) | 0x4330000000000000) - 0x1p52;
  const auto deep = (1023.0 - exponent) * (0.7 * 0x1p-53);
  const auto zero = M::all(0.0);
  const auto e = bound + (deep > 0.0 ? deep : zero);
  const auto tiny = M::all(0x1p-700);
  const auto small = rest > 0.0 ? tiny : zero;
  const auto is_small = (count < 2.0 ? rest : count) < 0x1p-700;
  return {is_small ? small : r, is_small ? zero : r * e};
}

// RN32(hi + t) with one rounding, for any hi and t (the sum is rounded to odd in binary64 first).
template <class R>
REPDL_HD typename math<R>::single round_pair(R hi, R t) {
  using M = math<R>;
  const auto s = two_sum(hi, t);
  const auto sb = M::to_bits(s.hi);
  const auto one = M::from_bits((sb & 0) + 1);
  const auto none = M::from_bits(sb & 0);
  const auto inexact = M::to_bits(magnitude_of(s.lo) > 0.0 ? one : none);
  const auto odd = (sb - (((M::to_bits(s.lo) ^ sb) >> 63) & inexact)) | inexact;
  return M::to_float(M::from_bits(odd));
}

template <class R>
struct float_ends {
  typename math<R>::single low;
  typename math<R>::single high;
};

// (a - b) - R rounded at both ends of R's interval; a, b binary32 values.
// a - b = hi + lo exactly. t = lo - (R +- g), g >= f + 2u(|lo| + R) (the 2uR is part of f): then fl(t) is beyond the
// true end as long as lo != 0 or R's own interval covers the rounding, u|t| <= u(|lo| + R + g). lo = 0: t = -(R +- f)
// exactly but for that rounding, and t = 0 only if R = 0.
template <class R>
REPDL_HD float_ends<R> gap_ends(R a, R b, R r, R f) {
  const auto d = two_sum(a, -b);
  const auto g = f + 0x1p-51 * magnitude_of(d.lo);
  return {round_pair(d.hi, d.lo - (r + g)), round_pair(d.hi, d.lo - (r - g))};
}

// The same in a third of the operations, for a <= b and r >= 0: leaves gaps open whose own value is a midpoint and
// whose r is below their last bit. Nothing cancels: |a - b|, r <= |v| (1 + 2u), three roundings and those of the ends
// are below 8u|v|.
template <class R>
REPDL_HD float_ends<R> quick_gap_ends(R a, R b, R r, R f) {
  using M = math<R>;
  const auto v = (a - b) - r;
  const auto g = f + 0x1p-50 * magnitude_of(v);
  return {M::to_float(v - g), M::to_float(v + g)};
}

// y (g - P) rounded at both ends, P = hi + lo +- e (the sum of g_j y_j).
// g - hi = z + zl exactly; w = z + ((zl - lo) -+ f), its two additions and the product with y are off by u each: 4u of
// |z|, |zl|, |lo| cover them. All exact and e = 0: f is 4u|z|, and 0 where z is: an exact zero is decided, with its
// sign (the sum +0).
template <class R>
REPDL_HD float_ends<R> softmax_gradient(R g, R y, R hi, R lo, R e) {
  using M = math<R>;
  const auto z = two_sum(g, -hi);
  const auto t = z.lo - lo;
  const auto f = (e + 0x1p-51 * (magnitude_of(z.hi) + magnitude_of(z.lo) + magnitude_of(lo))) * (1 + 0x1p-40);
  return {M::to_float(y * ((z.hi + (t - f)) + 0.0)), M::to_float(y * ((z.hi + (t + f)) + 0.0))};
}

// g - e^y G rounded at both ends, G = hi + lo +- e. y: cut to |y| <= 600 (e^-600 |G| >= 2^-1015 if G != 0, e^600 |G| >
// 2^128: both ends round as the exact value does); `weight` = e^y, or 0 for y = -inf.
// Relative errors of e^y G: 5.1u, hi + lo u, the product u, below 16u; the difference u.
template <class R>
REPDL_HD float_ends<R> log_softmax_gradient(R g, R weight, R hi, R lo, R e) {
  using M = math<R>;
  const auto product = weight * (hi + lo);
  const auto v = (g - product) + 0.0;
  const auto f = (weight * e + 0x1p-49 * magnitude_of(product) + 0x1p-51 * magnitude_of(v)) * (1 + 0x1p-40);
  return {M::to_float(v - f), M::to_float(v + f)};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
