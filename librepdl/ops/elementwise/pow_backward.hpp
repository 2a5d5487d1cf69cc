// The gradients of x^y: pow_backward_x(g, x, y) = y = 0 ? +0 : g y x^(y - 1) and pow_backward_y(g, x, y) = x = 0 and y
// >= 0 ? +0 : g x^y ln x, for f16, bf16, binary32: binary64 with a rounding test; integers and multi-limb balls decide
// what it leaves undecided.
//
// Powers are C23's (F.10.4.5), of the exact y - 1: of x = -1, say, or -0, it is odd for every even y, however large.
// The rest is the formula in the reals with infinities; ln x is NaN for x < 0, and x = 0 > y gives g (-inf) whatever
// the sign of x.
//
// ---- the first tier, u = 2^-53. x stands for |x|, w = y ln x: ln x 4 u (logarithmic.hpp), w 1 u, so that e^w errs by
// 5 u |w|.
//
// pow_backward_x, as (g y / x) x^y: g y is exact (48 bits), g y / x is in [2^-426, 2^405). |w| is cut down to 420:
// e^420 > 2^605 and what it multiplies is 2^179 or more, an infinity; 2^-605 makes 2^-200 of it, or less, a zero.
// Errors, relative:
//   e^w, the square of e^(w/2): twice 11.3 u (exp.hpp) and 1 u                        23.6 u + 5 u |w|
//   the quotient, the product, the ends                                              3   u
// y = 1, 2, 3, 4: g y, times x for y > 1, is exact (26 + 24 bits), times 1, x (24 bits) or x^2 (48 bits) a product of
// two (two_prod) that is rounded to odd: ties are right. x = +-1: so is g y.
//
// pow_backward_y: |w| is cut down to 210: 2^302 |g ln x| > 2^302 2^-149 2^-25 is an infinity, 2^-302 |g ln x| < 2^-302
// 2^128 2^7 a zero.
//   e^w 11.3 u + 5 u |w|, ln x 4 u, two products, the ends                            18.3 u + 5 u |w|
//
// 32 u + 8 u |w| has room for both and for the error's own rounding.
//
// ---- the last tier
//
// pow_backward_y: for x != 1 x^y is algebraic and not 0, ln x transcendental, so the product is no midpoint, and a ball
// decides.
//
// pow_backward_x, here with any binary64 number y, as pow_scalar_backward has it; x != 1. Let y - 1 = +-n 2^q, n odd, x =
// 2^e m, m odd. As in pow_exact.hpp x^(y - 1) is rational only if q >= 0, or 2^k, k = -q, divides e and m is a 2^k-th
// power; a midpoint's quotient by g y is rational. k <= 7, as |e| < 2^8, and k <= 3 if m > 1, as m < 2^24. Then x is
// replaced by its root and y - 1 by an integer +-n.
// - m^n < 2^64: the result is g y 2^(+-e n) m^n, or that over m^n: integers of less than 24 + 53 + 64 bits decide
//   (formula.hpp). Where g y and m^n are numbers of binary64, that is a product or quotient of two, rounded to odd: times a power of
//   two still, above 2^-1022 where it is above 2^-700, the least number of T being 2^-149; a quotient's remainder is exact, where g y,
//   of 48 bits, is above 2^-300.
// - Else it is no midpoint: g y m^n has an odd part of more than p + 1 bits; and m^n does not divide that of g y, which
//   is below 2^24 max(8, n), as y = (2^k - n) / 2^k: less than 2^64 for n < 2^40, and less than 3^n beyond.
// So balls decide what is left. y next to 0, where the result is g y / x (1 + y ln x + ...), needs 2^-174 of it, which 256
// bits have; with a y of binary64 |y| > 2^-428, or the result is next to 0, and 2^-455 is needed, which 512 bits have.
// Where y - 1 is inexact in binary64 and |w| < 450, so |y| < 2^34, k > 53 - 35: irrational. Where a binary64 estimate
// of w is beyond 450 (230), the first tier has decided. So the argument of the exponential is below 2^10.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/logarithmic.hpp"

namespace repdl::ops {
struct pow_backward_x;
struct pow_backward_y;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// The bound of the errors above.
REPDL_HD double pow_backward_error(double value, double w) {
  return magnitude_of(value) * muladd(magnitude_of(w), 0x1p-50, 0x1p-48);
}

// g y x^(y - 1), x > 0
struct pow_slope_formula {
  double g, x, y;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(g) * number<L>(y) * exponential((number<L>(y) - number<L>(1)) * logarithm(limbs_of_value<L>(x)));
  }
};
// x^(y - 1) = 2^exponent odd, or over odd.
struct rational_power {
  std::int64_t exponent;
  std::uint64_t odd;
  bool inverse;
};
// g y times that.
struct pow_slope_quotient {
  double g, y;
  rational_power power;
  template <int L>
  REPDL_HD_CALL quotient<L> eval() const {
    const ball<L> n = scaled(number<L>(g) * number<L>(y), power.exponent);
    const ball<L> m = exact_ball(limbs_of<L>(power.odd));
    return {power.inverse ? n : n * m, power.inverse ? m : number<L>(1)};
  }
};
// Returns whether x^(y - 1) is one. x > 0, x != 1, y != 1, |(y - 1) ln x| < 460.
REPDL_HD_CALL bool find_rational_power(double x, double y, rational_power& found) {
  odd_number factor = odd_number_of(x);
  const dd less = two_sum(y, -1.0);
  odd_number power = odd_number_of(less.hi);
  bool is_rational = less.lo == 0;
  for (; is_rational && power.exponent < 0; ++power.exponent) is_rational = take_root(factor);
  // n, cut down: where e != 0, n < 2^12 or w is out of range, unless m^n is far above 2^64.
  const double count = static_cast<double>(power.significand) *
                       power_of_two(static_cast<int>(power.exponent < 40 ? power.exponent : 40));
  const auto n = static_cast<std::int64_t>(count < 0x1p40 ? count : 0x1p40);
  std::uint64_t odd = 1;
  std::int64_t done = factor.significand == 1 || !is_rational ? n : 0;
  for (; done < n && odd <= ~std::uint64_t{0} / factor.significand; ++done) odd *= factor.significand;
  const bool inverse = less.hi < 0;
  found = {inverse ? -factor.exponent * n : factor.exponent * n, odd, inverse};
  return is_rational && done == n;
}
// RN_T(g y x^(y - 1)) of such a power, if it and g y are numbers of binary64.
template <class T>
REPDL_HD decided_value<T> round_rational_slope(double g, double y, const rational_power& power) {
  const dd c = two_prod(g, y);
  const auto m = static_cast<double>(power.odd);
  const dd product = two_prod(c.hi, m);
  const double v = power.inverse ? divide_to_odd(c.hi, m) : round_to_odd(product.hi, product.lo);
  const std::int64_t e = power.exponent < -700 ? -700 : power.exponent < 700 ? power.exponent : 700;
  return {narrow<T>(v * power_of_two(static_cast<int>(e))), c.lo == 0 && power.odd < std::uint64_t{1} << 53};
}
// RN_T(g y x^(y - 1)), no factor 0.
template <class T>
REPDL_HD_CALL decided_value<T> pow_slope_exact(double g, double x, double y, int last_tier_bits) {
  const lanes_together lanes;
  rational_power power;
  const bool is_rational = find_rational_power(x, y, power);
  decided_value<T> r{};
  if (is_rational) r = round_rational_slope<T>(g, y, power);
  if (!r.decided) {
    r = is_rational ? decide_together<T>(pow_slope_quotient{g, y, power}, last_tier_bits)
                    : decide_together<T>(pow_slope_formula{g, x, y}, last_tier_bits);
  }
  lanes.meet();
  return r;
}

template <>
struct body<ops::pow_backward_x> {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x, T y) {
    const double a = widen(g);
    const double b = widen(x);
    const double c = widen(y);
    const double base = magnitude_of(b);
    const auto [e, f] = pow_reduce(base);
    const double full = c * log_binary64(e, f);
    const double w = pow_limited(full, 420.0, pow_beyond(full, 420.0));
    const double root = exp_by_square(0.5 * w, 0.0);
    const bool unit = base == 1;
    const double power = a * c / base * (unit ? 1.0 : root * root);
    const double value = turns(b, c) ? -power : power;

    const bool is_short = (c == 1) | (c == 2) | (c == 3) | (c == 4);
    const double first = c == 1 ? a : a * c * b;
    const dd product = two_prod(first, c == 4 ? b * b : c == 3 ? b : 1.0);

    const bool plain = is_plain(a, b, c);
    const double v = is_short ? round_to_odd(product.hi, product.lo) : plain ? value : special(a, b, c);
    const double error = pow_backward_error(is_short ? 0.0 : value, w);
    return certify_as<T>(v, plain & !unit ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, T y, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(x);
    const double c = widen(y);
    if (!is_long(a, b, c)) return eval(g, x, y);
    return pow_slope_exact<T>(turns(b, c) ? -a : a, magnitude_of(b), c, last_tier_bits);
  }
  // Only of rational powers, which for numbers of few bits are most of what eval leaves undecided.
  template <class T>
  REPDL_HD_CALL static decided_value<T> rational(T g, T x, T y) {
    const double a = widen(g);
    const double b = widen(x);
    const double c = widen(y);
    rational_power power;
    if (!is_long(a, b, c) || !find_rational_power(magnitude_of(b), c, power)) return {T{}, false};
    return round_rational_slope<T>(turns(b, c) ? -a : a, c, power);
  }

  // Whether the first tier has to leave it undecided.
  REPDL_HD static bool is_long(double g, double x, double y) {
    const bool is_short = (y == 1) | (y == 2) | (y == 3) | (y == 4) | (magnitude_of(x) == 1);
    return !is_short && is_plain(g, x, y) && !(magnitude_of(pow_estimate(magnitude_of(x), y)) > 450);
  }
  // x^(y - 1) has the sign of x and that is a minus. y is even: half of the least number of binary64 is not, but 0.
  REPDL_HD static bool turns(double x, double y) {
    return ((bits_of(x) >> 63) != 0) & is_regular(y) & is_whole(y) & is_whole(0.5 * y);
  }
  REPDL_HD static bool is_plain(double g, double x, double y) {
    return is_regular(g) & (g != 0) & is_regular(x) & (x != 0) & is_regular(y) & (y != 0) & ((x > 0) | is_whole(y));
  }
  // A number stands for a power that is finite and not 0.
  REPDL_HD static double special(double g, double x, double y) {
    const double base = magnitude_of(x);
    const bool grows = (base > 1) == (y > 1);
    const bool extreme = (base == 0) | (base == infinity) | !is_regular(y);
    const double limit = extreme & (base != 1) & (y != 1) ? (grows ? infinity : 0.0) : 1.0;
    const double power = turns(x, y) ? -limit : limit;
    const bool invalid = (x != x) | ((x < 0) & (base < infinity) & is_regular(y) & !is_whole(y));
    const double product = g * (y * (invalid ? double_of(format<double>::nan) : power));  // g y may overflow beside 0
    return y == 0 ? 0.0 : product;
  }
};

// g x^y ln x, x > 0
struct pow_growth_formula {
  double g, x, y;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    const ball<L> log = logarithm(limbs_of_value<L>(x));
    return number<L>(g) * exponential(number<L>(y) * log) * log;
  }
};
template <>
struct body<ops::pow_backward_y> {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x, T y) {
    const double a = widen(g);
    const double b = widen(x);
    const double c = widen(y);
    const auto [e, f] = pow_reduce(b);
    const double log = log_binary64(e, f);
    const double w = pow_limited(c * log, 210.0, pow_beyond(c * log, 210.0));
    const double value = a * log * exp_by_square(w, 0.0);
    const bool plain = is_plain(a, b, c);
    return certify_as<T>(plain ? value : special(a, b, c), plain ? pow_backward_error(value, w) : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, T y, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(x);
    const double c = widen(y);
    if (!is_plain(a, b, c) || magnitude_of(pow_estimate(b, c)) > 230) return eval(g, x, y);
    return decide<T>(pow_growth_formula{a, b, c}, last_tier_bits);
  }

  REPDL_HD static bool is_plain(double g, double x, double y) {
    return is_regular(g) & (g != 0) & (x > 0) & (x < infinity) & (x != 1) & is_regular(y);
  }
  // Numbers stand for a power and a logarithm that are finite and not 0.
  REPDL_HD static double special(double g, double x, double y) {
    const double quiet = double_of(format<double>::nan);
    const bool extreme = ((x == infinity) | !is_regular(y)) & (x != 1) & (y != 0);
    const double limit = (x > 1) == (y > 0) ? infinity : 0.0;
    const double power = extreme ? limit : 1.0;
    const double sign = x > 1 ? 1.0 : -1.0;
    const double finite = x == 1 ? 0.0 : sign;
    const double log = x == infinity ? x : finite;
    const double gain = x == 0 ? -infinity : power * log;
    const bool invalid = (x < 0) | (x != x) | ((y != y) & (x != 1));
    const double product = g * (invalid ? quiet : gain);
    return (x == 0) & (y >= 0) ? 0.0 : product;
  }
};

// Binary64. g y = c 2^k, and x^(y - 1) = e^w with w = (y - 1) ln x as in pow.hpp. |w| > 3000 is out of range, as |g y| is in [2^-2148, 2^2048];
// pow_estimate knows w within a relative 2^-13.
//
// Rational powers, which integers decide, as above: k <= 10, as |e| < 2^11, and k <= 5 if m > 1, as m < 2^53 (3^32 < 2^53 < 3^64). Where m^n >=
// 2^64, m^n does not divide the odd part of g y, which is below 2^53 max(32, n): less than 2^64 for n < 2^11, and less than 3^n beyond.
// Where y - 1 is inexact in binary64, k > 10, or |y| > 2^42; then x^(y - 1) is irrational, or m^n is such a large one: as |w| < 3100, x
// is next to 1, m > 2^30. Other values are no midpoints; those next to g y / x, of small y, may be next to one: x^y > 1 says where.
struct pow_backward_x64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, R y) {
    return (magnitude_of(g) < infinity) & (g != 0) & (magnitude_of(x) < infinity) & (x != 0) &
           (magnitude_of(y) < infinity) & (y != 0) & ((x > 0) | (has_fraction(y) == 0));
  }
  // body<ops::pow_backward_x>::special's, and g of y = 1
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    const R zero = math<R>::all(0), one = math<R>::all(1);
    const R base = magnitude_of(x);
    const mask_of<R> is_number = magnitude_of(y) < infinity;
    const mask_of<R> extreme = ((base == 0) | (base == infinity) | (is_number == 0)) & (base != 1);
    const R limit = (base > 1) == (y > 1) ? math<R>::all(infinity) : zero;
    const R power = extreme ? limit : one;
    const mask_of<R> nan = (x != x) | ((x < 0) & (base < infinity) & is_number & has_fraction(y));
    const R slope = y * (nan ? nan_of<R>() : turns(x, y) ? -power : power);  // g y may overflow beside 0
    const R product = g * (y == 1 ? one : slope);
    const R other = product == product ? product : nan_of<R>();
    return y == 0 ? zero : other;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, R y) {
    using Ball = dd_ball<R>;
    const binary_parts<R> a = binary_parts_of(g), b = binary_parts_of(y);
    const R base = magnitude_of(x);
    const Ball w = (power_ball(y) - number<Ball>(1.0)) * precise_logarithm(base);
    const Ball exponent = select(base == 1, number<Ball>(0.0), w);
    const decided_lanes<R> r = round_with_power(number<Ball>(a.m) * number<Ball>(b.m), a.e + b.e, exponent);
    return {signed_as(r.value, g, x, y), r.decided};
  }
  REPDL_HD_CALL static decided_value<double> known(double g, double x, double y) {
    const double base = magnitude_of(x);
    const bool unit = (base == 1) | (y == 1);
    const double w = unit ? 0 : pow_estimate(base, y - 1);
    if (magnitude_of(w) > 3000) return {signed_as(w > 0 ? infinity : 0.0, g, x, y), true};
    rational_power power{0, 1, false};
    if (!unit && !find_rational_power(base, y, power)) return {0, false};
    return decide_together<double>(pow_slope_quotient{turns(x, y) ? -g : g, y, power}, 256);  // of 170 bits at most
  }
  template <class Ball>
  REPDL_HD static auto formula(double g, double x, double y) {
    constexpr int L = limbs_of_ball<Ball>;
    const double base = magnitude_of(x);
    const double turned = turns(x, y) ? -g : g;
    const Ball value = pow_slope_formula{turned, base, y}.eval<L>();
    const Ball part = number<Ball>(turned) * number<Ball>(y) / number<Ball>(base);
    const bool grows = (y > 0) == (base > 1);
    const bool positive = (turned > 0) == (y > 0);
    return beside<L>{value, part, grows == positive ? 1 : -1};
  }
  // x^(y - 1) has the sign of x and that is a minus.
  template <class R>
  REPDL_HD static mask_of<R> turns(R x, R y) {
    return has_sign(x) & (magnitude_of(y) < infinity) & is_even_whole(y);
  }
  // The result's, on its magnitude.
  template <class R>
  REPDL_HD static R signed_as(R magnitude, R g, R x, R y) {
    const R v = copy_sign(magnitude, g);
    return (y < 0) == turns(x, y) ? v : -v;
  }
};
template <>
struct body64<ops::pow_backward_x> : by_formula<pow_backward_x64> {};

// g ln x = c 2^k, |ln x| being in [2^-54, 2^10]. No midpoints, as above.
struct pow_backward_y64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, R y) {
    return (magnitude_of(g) < infinity) & (g != 0) & (x > 0) & (x < infinity) & (x != 1) & (magnitude_of(y) < infinity);
  }
  // body<ops::pow_backward_y>::special's
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    const R zero = math<R>::all(0), one = math<R>::all(1);
    const mask_of<R> is_number = magnitude_of(y) < infinity;
    const mask_of<R> extreme = ((x == infinity) | (is_number == 0)) & (x != 1) & (y != 0);
    const R limit = (x > 1) == (y > 0) ? math<R>::all(infinity) : zero;
    const R finite = x == 1 ? zero : x > 1 ? one : -one;
    const R log = x == infinity ? x : finite;
    const R gain = x == 0 ? math<R>::all(-infinity) : (extreme ? limit : one) * log;
    const mask_of<R> nan = (x < 0) | (x != x) | ((y != y) & (x != 1));
    const R product = g * gain;
    const R other = nan | (product != product) ? nan_of<R>() : product;
    return (x == 0) & (y >= 0) ? zero : other;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, R y) {
    using Ball = dd_ball<R>;
    const Ball log = precise_logarithm(x);
    const binary_parts<R> a = binary_parts_of(g), b = binary_parts_of(log.hi);
    const R s = power_of(-b.e);
    const R turned = copy_sign(s, log.hi);
    const Ball c = number<Ball>(a.m) * Ball{turned * log.hi, turned * log.lo, s * log.error};
    const decided_lanes<R> r = round_with_power(c, a.e + b.e, power_ball(y) * log);
    return {signed_as(r.value, g, x), r.decided};
  }
  REPDL_HD static decided_value<double> known(double g, double x, double y) {
    const double w = pow_estimate(x, y);
    return {signed_as(w > 0 ? infinity : 0.0, g, x), magnitude_of(w) > 3000};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x, double y) {
    return pow_growth_formula{g, x, y}.eval<limbs_of_ball<Ball>>();
  }
  template <class R>
  REPDL_HD static R signed_as(R magnitude, R g, R x) {
    const R v = copy_sign(magnitude, g);
    return x < 1 ? -v : v;
  }
};
template <>
struct body64<ops::pow_backward_y> : by_formula<pow_backward_y64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
