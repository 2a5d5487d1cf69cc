// Gradients with a logarithm in them: log2_backward(g, x) = g / (x ln 2), log10_backward(g, x) = g / (x ln 10),
// exp2_backward(g, y) = g y ln 2 and xlogy_backward_x(g, x, y) = x = 0 and y <= 0 ? +0 : g ln y, for f16, bf16,
// binary32: binary64 with a rounding test; multi-limb balls decide what it leaves undecided.
//
// Zeros, infinities and NaN are those of the formula in binary64, which neither over- nor underflows for finite
// operands: g / x and g y are 0 or in [2^-298, 2^277], |ln y| is 0 or in [2^-25, 104]. Else, relative errors, u =
// 2^-53:
//   g / x u (g y: exact), the constant u/2, the product u, the ends u                  3.5 u
//   ln y 4 u (logarithmic.hpp), the product u, the ends u                              6   u
// 2^-50 = 8 u covers them.
//
// No value is a midpoint: ln 2, ln 10 and ln y, y != 1, are transcendental (Hermite-Lindemann). How near they come to
// one:
// - g / (x ln b) = m (1 + d), m a midpoint: ln b is next to g / (x m), a rational number whose denominator is less than
//   2^49; so is m / (g y) for exp2_backward. The partial quotients of the continued fractions of ln 2 and ln 10 up to
//   there are less than 2^10 (reference/gen/backward.sollya): |d| > 2^-112, and 256 bits decide.
// - g ln y: as xlogy.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/logarithmic.hpp"

namespace repdl::ops {
struct log2_backward;
struct log10_backward;
struct exp2_backward;
struct xlogy_backward_x;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// RN_T of a number that v is within 2^-50 of itself of; of v where that is 0, infinite or NaN.
template <class T>
REPDL_HD decided_value<T> certify_within_8u(double v) {
  if constexpr (is_unpacked<T>) {
    return quick_value<T>(v);
  } else {
    return certify_as<T>(v, is_regular(v) ? 0x1p-50 * magnitude_of(v) : 0.0);
  }
}

// RN_T of v, which is 0, infinite or NaN, or else of the formula.
template <class T, class Formula>
REPDL_HD decided_value<T> decide_unless_special(double v, const Formula& f, int last_tier_bits) {
  if (v == 0 || !is_regular(v)) return {narrow<T>(v), true};
  return decide<T>(f, last_tier_bits);
}

// numerator / (denominator ln base)
struct log_quotient_formula {
  double numerator, denominator, base;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(numerator) / (number<L>(denominator) * logarithm(limbs_of_value<L>(base)));
  }
};
template <int base>
struct log_backward_body {
  static_assert(base == 2 || base == 10);
  // reference/gen/backward.sollya
  static constexpr double factor = base == 2 ? 0x1.71547652b82fep0 : 0x1.bcb7b1526e50ep-2;  // 1 / ln base

  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x) {
    return certify_within_8u<T>(widen(g) / widen(x) * factor);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(x);
    return decide_unless_special<T>(a / b, log_quotient_formula{a, b, base}, last_tier_bits);
  }
};
template <>
struct body<ops::log2_backward> : log_backward_body<2> {};
template <>
struct body<ops::log10_backward> : log_backward_body<10> {};

// g ln y
struct log_product_formula {
  double g, y;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(g) * logarithm(limbs_of_value<L>(y));
  }
};

template <>
struct body<ops::exp2_backward> {
  static constexpr double ln2 = 0x1.62e42fefa39efp-1;  // reference/gen/backward.sollya

  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T y) {
    return certify_within_8u<T>(widen(g) * widen(y) * ln2);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T y, int last_tier_bits) {
    const double product = widen(g) * widen(y);  // 48 bits: exact
    return decide_unless_special<T>(product, log_product_formula{product, 2}, last_tier_bits);
  }
};

template <>
struct body<ops::xlogy_backward_x> {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x, T y) {
    const double a = widen(g);
    const double b = widen(y);
    const auto [e, f] = pow_reduce(b);
    const double log = (b > 0) & (b < infinity) ? log_binary64(e, f) : special_log(b);
    return certify_within_8u<T>(stops(widen(x), b) ? 0.0 : a * log);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, T y, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(y);
    const double sign = b > 1 ? 1.0 : b == 1 ? 0.0 : -1.0;
    const double v = a * ((b > 0) & (b < infinity) ? sign : special_log(b));
    return decide_unless_special<T>(stops(widen(x), b) ? 0.0 : v, log_product_formula{a, b}, last_tier_bits);
  }

 private:
  REPDL_HD static bool stops(double x, double y) { return (x == 0) & (y <= 0); }
  // ln y for y <= 0, infinite or NaN.
  REPDL_HD static double special_log(double y) {
    return y == 0 ? -infinity : y == infinity ? y : double_of(format<double>::nan);
  }
};

// Binary64. As above: no midpoints, and zeros, infinities and NaN are those of g / x, g y, and of g times the sign of ln y.
template <int base>
struct log_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return (g != 0) & (magnitude_of(g) < infinity) & (x != 0) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const R quotient = g / x;
    return quotient == quotient ? quotient : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R x) {
    if constexpr (base == 2) return number<Ball>(g) / (number<Ball>(x) * ln2<Ball>());
    return number<Ball>(g) * inverse_ln10<Ball>() / number<Ball>(x);
  }
};
template <>
struct body64<ops::log2_backward> : by_formula<log_backward64<2>> {};
template <>
struct body64<ops::log10_backward> : by_formula<log_backward64<10>> {};

struct exp2_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y) {
    return log_backward64<2>::plain(g, y);
  }
  template <class R>
  REPDL_HD static R special(R g, R y) {
    const R product = g * y;
    return product == product ? product : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R y) {
    return number<Ball>(g) * number<Ball>(y) * ln2<Ball>();
  }
};
template <>
struct body64<ops::exp2_backward> : by_formula<exp2_backward64> {};

struct xlogy_backward_x64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R, R y) {
    return xlogy64::plain(g, y);
  }
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    return (x == 0) & (y <= 0) ? math<R>::all(0) : times_sign_of_logarithm(g, y);
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R, R y) {
    return xlogy64::formula<Ball>(g, y);
  }
};
template <>
struct body64<ops::xlogy_backward_x> : by_formula<xlogy_backward_x64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
