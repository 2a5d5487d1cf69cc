// The gradients of pow_scalar and scalar_pow: pow_scalar_backward(g, x; exponent) = exponent = 0 ? +0 : g exponent
// x^(exponent - 1) and scalar_pow_backward(g, x; base) = base = 0 and x >= 0 ? +0 : g base^x ln base, the scalar any
// binary64 number, for f16, bf16, binary32: binary64 with a rounding test. Special values, and what decides in the last
// tier, are those of pow_backward.hpp, of the number that the scalar is.
//
// ---- the first tier, u = 2^-53; x stands for |x|, y for the exponent. |w| is cut down to 420, e^w is the square of
// e^(w/2), twice 11.3 u (exp.hpp) and 1 u, and w's error comes to it.
//
// pow_scalar_backward: w = (y - 1) ln x; y - 1 1 u, ln x 4 u, the product 1 u. |y| is cut down to 2^280 where it
// multiplies. Errors, relative:
//   e^w                                                                              23.6 u + 6.1 u |w|
//   g y, its product with e^w, the ends                                              3   u
// Where |w| > 420, |y| > 3, as |ln x| < 105: e^420 > 2^605 and what it multiplies, 2^-148 or more, is an infinity; 2^-605
// |g y|, |y| <= 2^280, is below 2^-197, a zero, and so is what a larger |y| makes: e^w |y| <= |y| e^(-|y - 1| 2^-25). Where
// |y| > 2^280 is left with a smaller |w|, x is 1. Then g y is exact as a product of two (two_prod), or beyond 2^131, as it
// is with 2^280; or below 2^-800, next to 0. Where g y is below the normal numbers, |y| < 2^-870, and w > -150: a zero.
// y = 1, 2, 3, 4 as in pow_backward.hpp, rounded to odd: these ties, and those of x = 1, are right. Shorter, for the CPU's loops:
// g itself; 2 g x, exact in binary64, and of f16, 22 bits in [2^-47, 2^33], in binary32. Of bf16 g x, 16 bits, is rounded there
// only where it is infinite, as twice it is, or below 2^-134. From 2^-135 on it is a multiple of 2^-150 then and rounded to one of
// 2^-149; 2^-135, half of the midpoint 2^-134, would come only of (2^15 + 1) 2^-150, and 2^15 + 1 = 3^2 11 331 is not the product of
// two numbers below 2^8. What is less becomes 0, as in bf16.
//
// scalar_pow_backward: ln base 5 u (pow_scalar.hpp), w 1 u more. |ln base| is in [2^-53, 2^10): 2^605 |g ln base| > 2^403 is
// an infinity, 2^-605 |g ln base| < 2^-467 a zero.
//   e^w                                                                              23.6 u + 6.1 u |w|
//   ln base, two products, the ends                                                  8   u
//
// 32 u + 8 u |w| (pow_backward_error) has room for both; its own rounding is below 2^-95 |value|.
//
// ---- the last tier
//
// pow_scalar_backward: pow_backward.hpp. scalar_pow_backward: for base != 1 base^x is algebraic and not 0, ln base
// transcendental, so the product is no midpoint, and a ball decides. ln base is within 2^-198 of itself next to 1, in 256
// bits, e^w within 2^-189.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/pow_backward.hpp"
#include "librepdl/ops/elementwise/pow_scalar.hpp"

namespace repdl::ops {
struct pow_scalar_backward;
struct scalar_pow_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// e^w, |w| <= 420.
REPDL_HD double pow_backward_power(double w) {
  const double root = exp_by_square(0.5 * w, 0.0);
  return root * root;
}

template <>
struct body<ops::pow_scalar_backward> {
  using slope = body<ops::pow_backward_x>;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double a = widen(g);
    const double b = widen(x);
    const double y = p.value[0];
    const double c = pow_limited(y, 0x1p280, pow_beyond(y, 0x1p280));
    const double base = magnitude_of(b);
    const auto [e, f] = pow_reduce(base);
    const double full = (y - 1) * log_binary64(e, f);
    const double w = pow_limited(full, 420.0, pow_beyond(full, 420.0));
    const double power = a * c * pow_backward_power(w);
    const bool turns = slope::turns(b, y);
    const double value = turns ? -power : power;

    const bool plain = slope::is_plain(a, b, y);
    const bool unit = plain & (base == 1);
    const bool is_short = (y == 1) | (y == 2) | (y == 3) | (y == 4) | unit;
    const double first = (y == 1) | unit ? a : a * c * b;
    const double rest = y == 4 ? b * b : y == 3 ? b : 1.0;
    const double sign = turns ? -1.0 : 1.0;
    const dd product = two_prod(first, unit ? sign * c : rest);

    const double v = is_short ? round_to_odd(product.hi, product.lo) : plain ? value : slope::special(a, b, y);
    return certify_as<T>(v, plain & !is_short ? pow_backward_error(value, w) : 0.0);
  }
  template <class T, int N>
  REPDL_HD static decided_value<T> eval(T g, T x, const short_parameters<N>&) {
    const double a = widen(g);
    const double b = widen(x);
    if constexpr (N == 1) {
      return decided<T>(canonical(g));
    } else if constexpr (N == 2 && is_small_float<T>) {
      return decided<T>(narrow<T>(widen_to_float(g) * widen_to_float(x) * 2.0f));
    } else if constexpr (N == 2) {
      return decided<T>(narrow<T>(a * b * 2.0));
    } else {
      const dd product = two_prod(a * N * b, N == 4 ? b * b : b);
      return decided_as<T>(round_to_odd(product.hi, product.lo));
    }
  }
  static constexpr int short_forms = 4;
  REPDL_HD static int short_form(const parameters& p) { return body<ops::pow_scalar>::short_form(p); }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(x);
    const double y = p.value[0];
    const double base = magnitude_of(b);
    const bool is_short = (y == 1) | (y == 2) | (y == 3) | (y == 4) | (base == 1);
    if (is_short || !slope::is_plain(a, b, y) || magnitude_of(pow_estimate(base, y - 1)) > 450) return eval(g, x, p);
    return pow_slope_exact<T>(slope::turns(b, y) ? -a : a, base, y, last_tier_bits);
  }
};

template <>
struct body<ops::scalar_pow_backward> {
  using growth = body<ops::pow_backward_y>;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double a = widen(g);
    const double b = p.value[0];
    const double c = widen(x);
    const bool tiny = b < 0x1p-1000;
    const auto [e, f] = pow_reduce(tiny ? b * 0x1p200 : b);
    const double log = log_binary64(tiny ? e - 200.0 : e, f);
    const double w = pow_limited(c * log, 420.0, pow_beyond(c * log, 420.0));
    const double value = a * log * pow_backward_power(w);
    const bool plain = growth::is_plain(a, b, c);
    return certify_as<T>(plain ? value : growth::special(a, b, c), plain ? pow_backward_error(value, w) : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double a = widen(g);
    const double b = p.value[0];
    const double c = widen(x);
    if (!growth::is_plain(a, b, c) || magnitude_of(pow_estimate(b, c)) > 450) return eval(g, x, p);
    return decide<T>(pow_growth_formula{a, b, c}, last_tier_bits);
  }
};

// Binary64. The exponents 1, 2, 3, 4, 5 and -1 are products and quotients. 2 g x is rounded once: the factor that is doubled does not
// overflow, or the result does.
struct pow_scalar_backward64 {
  using slope = pow_backward_x64;
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, const parameters& p) {
    return slope::plain(g, x, math<R>::all(p.value[0]));
  }
  template <class R>
  REPDL_HD static R special(R g, R x, const parameters& p) {
    return slope::special(g, x, math<R>::all(p.value[0]));
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, const parameters& p) {
    const double y = p.value[0];
    const bool is_short = (y == 1) | (y == 2) | (y == 3) | (y == 4) | (y == 5) | (y == -1);
    return is_short ? short_slope(g, x, y) : slope::first(g, x, math<R>::all(y));
  }
  template <class R, int N>
  REPDL_HD static decided_lanes<R> first(R g, R x, const short_parameters<N>&) {
    return short_slope(g, x, static_cast<double>(N));
  }
  REPDL_HD static decided_value<double> known(double g, double x, const parameters& p) {
    return slope::known(g, x, p.value[0]);
  }
  template <class Ball>
  REPDL_HD static auto formula(double g, double x, const parameters& p) {
    return slope::formula<Ball>(g, x, p.value[0]);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> short_slope(R g, R x, double y) {
    using Ball = dd_ball<R>;
    const mask_of<R> decided = x == x;
    if (y == 1) return {g, decided};
    if (y == 2) {
      const mask_of<R> small = magnitude_of(g) < 1;
      return {(small ? 2.0 * g : g) * (small ? x : 2.0 * x), decided};
    }
    const R all_y = math<R>::all(y);
    const binary_parts<R> a = binary_parts_of(g), b = binary_parts_of(all_y);
    const Ball c = number<Ball>(a.m) * number<Ball>(b.m);
    const decided_lanes<R> r = round_with_whole_power(c, a.e + b.e, x, static_cast<int>(y) - 1);
    return {slope::signed_as(r.value, g, x, all_y), r.decided};
  }
};
template <>
struct body64<ops::pow_scalar_backward> : by_formula<pow_scalar_backward64> {};

struct scalar_pow_backward64 {
  using growth = pow_backward_y64;
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, const parameters& p) {
    return growth::plain(g, math<R>::all(p.value[0]), x);
  }
  template <class R>
  REPDL_HD static R special(R g, R x, const parameters& p) {
    return growth::special(g, math<R>::all(p.value[0]), x);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, const parameters& p) {
    return growth::first(g, math<R>::all(p.value[0]), x);
  }
  REPDL_HD static decided_value<double> known(double g, double x, const parameters& p) {
    return growth::known(g, p.value[0], x);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x, const parameters& p) {
    return growth::formula<Ball>(g, p.value[0], x);
  }
};
template <>
struct body64<ops::scalar_pow_backward> : by_formula<scalar_pow_backward64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
