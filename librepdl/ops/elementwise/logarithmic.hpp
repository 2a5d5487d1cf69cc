// Logarithms of two operands: xlogy, logaddexp, for f16, bf16, binary32: binary64 with a rounding test; multi-limb balls decide
// what it leaves undecided.
//
// Nothing is ever a midpoint: x ln y is transcendental for algebraic x != 0 and y > 0, y != 1 (Hermite-Lindemann), and so is
// ln(e^a + e^b) for rational a, b: were it a rational c, e^a + e^b = e^c would contradict Lindemann-Weierstrass. So a level
// decides. What it needs is not bounded by a theorem; 256 bits are enough unless some value is 2^-190 ulp from a midpoint.
//
// ln(1 + f) = f - f^2/2 + s (f^2/2 + R(z)), s = f / (2 + f), z = s^2, with log.hpp's polynomial, |f| < 0.4143. Error budget,
// relative to ln(1 + f), u = 2^-53, for any binary64 f; |f| <= 1.2 |ln(1 + f)|, t = s (f^2/2 + R) < 0.06 |ln(1 + f)|:
//   f^2/2: u f^2/2, and its difference with f: u |f|                                 1.5 u
//   t: s twice, R, their sum and products, 5 u of t (log.hpp)                        0.3 u
//   R's polynomial: 0x1.63p-52 z |s|                                                 0.1 u
//   the sum with t                                                                   1   u
//   sum                                                                              < 3 u
// e != 0: e ln2_hi is exact, e ln2_lo is in t; |ln y| > 0.346: 1 u more for the sum with e ln2_hi.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/pow.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct xlogy;
struct logaddexp;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// e ln 2 + ln(1 + f), relative error < 4 * 2^-53 as above.
[[gnu::always_inline]] REPDL_HD double log_binary64(double e, double f) {
  using log = body<ops::log>;
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = muladd(log::c7, z, log::c6);
  p = muladd(p, z, log::c5);
  p = muladd(p, z, log::c4);
  p = muladd(p, z, log::c3);
  p = muladd(p, z, log::c2);
  p = muladd(p, z, log::c1);
  const double t = muladd(s, muladd(p, z, half_square), e * log::ln2_lo);
  return e * log::ln2_hi + ((f - half_square) + t);
}

// x ln y. Relative errors: ln y 4 u, the product 1 u, its ends 1 u and more: 2^-50 = 8 u covers them.
struct xlogy_formula {
  double x, y;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(x) * logarithm(limbs_of_value<L>(y));
  }
};
template <>
struct body<ops::xlogy> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const auto [e, f] = pow_reduce(b);
    const double product = a * log_binary64(e, f);
    const double v = is_plain(a, b) ? product : special(a, b);
    const double error = is_plain(a, b) ? 0x1p-50 * magnitude_of(product) : 0.0;
    return certify_as<T>(v, error);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, T y, int last_tier_bits) {
    const double a = widen(x);
    const double b = widen(y);
    if (!is_plain(a, b)) return {narrow<T>(special(a, b)), true};
    return decide<T>(xlogy_formula{a, b}, last_tier_bits);
  }

 private:
  // x != 0 and y > 0, both finite, y != 1.
  REPDL_HD static bool is_plain(double x, double y) {
    return is_regular(x) & (x != 0) & (y > 0) & (y < infinity) & (y != 1);
  }
  // x ln y where x is 0 or not finite, or ln y is; of a finite ln y the sign, or +0. x = ±0 gives +0 unless y is NaN.
  REPDL_HD static double special(double x, double y) {
    const double sign = y > 1 ? 1.0 : y == 1 ? 0.0 : -1.0;
    const double log = y == 0 || y == infinity ? sign * infinity : y > 0 ? sign : double_of(format<double>::nan);
    const double product = x * log;
    return (x == 0) & (y == y) ? 0.0 : product;
  }
};

// m + ln(1 + e^-d), m the larger operand, d = |a - b|.
//
// d >= 105: e^-d < 2^-151 is less than half of the distance between numbers of T at m, m a number of T: the result is m, or +0
// where m = 0, as that of m + 2^-300 is. Else, w = e^-d, relative errors:
//   d: u d < 105 u, in w as much                                                     105 u
//   exp_core                                                                         5.1 u
//   ln(1 + w), which takes w's error with a factor w / ((1 + w) ln(1 + w)) < 1; w > 0.4142: ln 2 + ln(1 + f), f = (w - 1) / 2
//   up to 2^-55, beside ln(1 + w) > 0.346                                            4.4 u
//   in all, of g = ln(1 + w)                                                         < 128 u g = 2^-46 g
//   m + g, and the ends                                                              < 4 u |m + g| = 2^-51 |m + g|
struct logaddexp_formula {
  double larger, smaller;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    ball<L> r = exponential(number<L>(smaller) - number<L>(larger));
    to_logarithm_1p(r);
    return r + number<L>(larger);
  }
};
template <>
struct body<ops::logaddexp> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const double m = a > b ? a : b;
    const double d = magnitude_of(a - b);
    const bool plain = d < 105;
    const double w = exp_core::eval(plain ? -d : 0.0);
    const bool upper = w > 0x1.a8p-2;  // 0.4141
    const double g = log_binary64(upper ? 1.0 : 0.0, upper ? 0.5 * (w - 1.0) : w);
    const double sum = m + g;
    const double error = muladd(0x1p-46, g, 0x1p-51 * magnitude_of(sum));
    return certify_as<T>(plain ? sum : special(a, b, m), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, T y, int last_tier_bits) {
    const double a = widen(x);
    const double b = widen(y);
    const double m = a > b ? a : b;
    if (!(magnitude_of(a - b) < 105)) return {narrow<T>(special(a, b, m)), true};
    return decide<T>(logaddexp_formula{m, a > b ? b : a}, last_tier_bits);
  }

 private:
  // d >= 105 or an operand is not finite. m is b where one is NaN: a + b says so.
  REPDL_HD static double special(double a, double b, double m) {
    return (a == a) & (b == b) ? m + 0x1p-300 : double_of(format<double>::nan);
  }
};

// x times what ln y is: an infinity, 0, NaN, or else its sign.
template <class R>
REPDL_HD R times_sign_of_logarithm(R x, R y) {
  const R sign = y > 1 ? math<R>::all(1) : y == 1 ? math<R>::all(0) : math<R>::all(-1);
  const R size = (y == 0) | (y == infinity) ? math<R>::all(infinity) : math<R>::all(1);
  const R product = x * (sign * size);
  return (y >= 0) & (product == product) ? product : nan_of<R>();
}

// Binary64. No midpoints, as above.
struct xlogy64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y) {
    return (x != 0) & (magnitude_of(x) < infinity) & (y > 0) & (y < infinity) & (y != 1);
  }
  template <class R>
  REPDL_HD static R special(R x, R y) {
    return (x == 0) & (y == y) ? math<R>::all(0) : times_sign_of_logarithm(x, y);
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x, R y) {
    return number<Ball>(x) * logarithm(number<Ball>(y));
  }
};
template <>
struct body64<ops::xlogy> : by_formula<xlogy64> {};

// log_b(b^x + b^y), b = 2 or e (0): m + l, m the larger operand, l = log_b(1 + a) with a = b^-d, d the difference. Where l < 2^-1075, less
// than half of the least number, m + l rounds to m, and to +0 where m = 0. Where a < 2^-190, ln(1 + a) is a (1 - 2^-191) or more: of m = 0 its
// power of 2 is left to rounding, and other m, if they are large enough, are rounded alone.
template <int base>
struct logarithm_of_sum64 {
  template <class R>
  REPDL_HD static R at_limit(R x, R y) {
    const R m = x > y ? x : y;
    return (x == x) & (y == y) ? m + 0.0 : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R y) {
    using Ball = dd_ball<R>;
    const mask_of<R> ordered = x > y;
    const Ball m = number<Ball>(ordered ? x : y);
    const scaled_ball<R> a = scaled_exponential(in_base_e(number<Ball>(ordered ? y : x) - m));
    const mask_of<R> small = a.k < -191;
    const Ball beside = sigmoid64::beside_one(a);
    const Ball l = select(small, beside, logarithm_1p(beside));
    const decided_lanes<R> sum = round_ball(m + in_base(l));
    const decided_lanes<R> scaled = round_scaled(in_base(grown(a.m, math<R>::all(0x1p-189))), a.k);
    const mask_of<R> alone = small & (m.hi == 0);
    return {alone ? scaled.value : sum.value, alone ? scaled.decided : sum.decided};
  }

 private:
  template <class Ball>
  REPDL_HD static Ball in_base_e(const Ball& x) {
    if constexpr (base == 2) return x * ln2<Ball>();
    return x;
  }
  template <class Ball>
  REPDL_HD static Ball in_base(const Ball& x) {
    if constexpr (base == 2) return x * constant<Ball>(dd_log2_e);
    return x;
  }
};
// e^-745.2 < 2^-1075. No midpoints, as above.
struct logaddexp64 : logarithm_of_sum64<0> {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y) {
    return magnitude_of(x - y) <= 745.2;
  }
  template <class R>
  REPDL_HD static R special(R x, R y) {
    return at_limit(x, y);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x, double y) {
    return logaddexp_formula{x > y ? x : y, x > y ? y : x}.eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::logaddexp> : by_formula<logaddexp64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
