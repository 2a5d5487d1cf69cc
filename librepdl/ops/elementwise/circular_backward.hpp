// sin_backward(g, x) = g cos x and cos_backward(g, x) = -g sin x, for f16, bf16, binary32: binary64 with a rounding
// test; multi-limb balls decide what it leaves undecided. Where g is 0 or not finite, x = 0 or x is not finite, the formula
// in binary64 says the result: cos 0 = 1, sin of +-0 is +-0, of an infinity NaN.
//
// Fast tier. cos x, and sin x for |x| >= 2^-12, from circular.hpp, relative errors, u = 2^-53:
//   careful (bf16, f32): 2^-86 / |f|, |f| >= 2^-32; rounded to odd, 2 u               2.5 u
//     the product, the ends                                                          4.5 u < 2^-50
//   quick (f16): |r| > 2^-16.1 for all numbers from 1/2 on, so that k pi_lo costs 2^-51.4, and the rest 2^-41.5
//     the product, the ends                                                          < 2^-41
// -g sin x for |x| < 2^-12: p + p c, p = -g x exactly (48 bits), c = -x^2 (c3 + c5 x^2), |c| < 2^-26, relative errors of
// p c:
//   the series 0.6 u, Horner's step 2 u; x^2 is exact, the products with it and p     4.6 u
//   the sum of lo and the error                                                      1   u
//   sum                                                                              5.6 u < 2^-50
// As pow.hpp's, the ends hi + (lo -+ 2^-50 |p c|) are rounded to odd; |p c| > 2^-600.
//
// Last tier. sin x and cos x are transcendental for rational x != 0 (Hermite-Lindemann), so nothing is a midpoint.
// -g sin x is next to D = -g x, which often is one; the rest -g (sin x - x) has the sign of g x (formula.hpp). g cos x is
// next to g, a number, and to g (1 - x^2 / 2), from which it differs by x^4 / 24 of it: x > 2^-13 where that is a midpoint.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/circular.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct sin_backward;
struct cos_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// sin x (quarter 0) and cos x (1) in binary64, and a bound of what a product with it and its ends err by, relative to
// it.
template <int quarter, class T>
REPDL_HD double circular_binary64(T x) {
  const float v = widen_to_float(x);
  if constexpr (is_format<T, f16>) {
    return circular_core<quarter>::quick(static_cast<double>(v - v == 0 ? v : float_of(format<float>::nan)));
  } else {
    return circular_core<quarter>::careful(v);
  }
}
template <class T>
inline constexpr double circular_error = is_format<T, f16> ? 0x1p-41 : 0x1p-50;

struct sin_backward_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(g) * circular<L>(x, false);
  }
};
template <>
struct body<ops::sin_backward> {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x) {
    const double a = widen(g);
    const double b = widen(x);
    const double product = a * circular_binary64<1>(x);
    const double error = circular_error<T> * magnitude_of(product);
    return certify_as<T>(b == 0 ? a : product, is_plain(a, b) ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(x);
    if (!is_plain(a, b)) return eval(g, x);
    return decide<T>(sin_backward_formula{a, b}, last_tier_bits);
  }

 private:
  REPDL_HD static bool is_plain(double g, double x) { return is_regular(g) & (g != 0) & is_regular(x) & (x != 0); }
};

struct cos_backward_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> factor = number<L>(-g);
    return {factor * circular<L>(x, true), factor * number<L>(x), (g < 0) == (x < 0) ? 1 : -1};
  }
};
template <>
struct body<ops::cos_backward> {
  // reference/gen/backward.sollya
  static constexpr double c3 = 0x1.5555555555555p-3, c5 = -0x1.1111111111111p-7;

  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x) {
    const double a = -widen(g);
    const double b = widen(x);
    const double s = circular_binary64<0>(x);
    const bool plain = is_plain(a, b);
    const bool near = plain & (magnitude_of(b) < 0x1p-12);
    const double product = a * (b == 0 ? b : s);
    const double error = plain ? circular_error<T> * magnitude_of(product) : 0.0;

    const double p = a * b;
    const double z = b * b;
    const double rest = -p * (z * muladd(c5, z, c3));
    const dd sum = fast_two_sum(p, rest);
    const double rest_error = 0x1p-50 * magnitude_of(rest);
    const double below = near ? round_to_odd(sum.hi, sum.lo - rest_error, 1) : product - error;
    const double above = near ? round_to_odd(sum.hi, sum.lo + rest_error, 1) : plain ? product + error : product;
    return certify_between<T>(below, above);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    const double a = widen(g);
    const double b = widen(x);
    if (!is_plain(a, b)) return eval(g, x);
    return decide<T>(cos_backward_formula{a, b}, last_tier_bits);
  }

 private:
  REPDL_HD static bool is_plain(double g, double x) { return is_regular(g) & (g != 0) & is_regular(x) & (x != 0); }
};

// Binary64. g cos x for |x| < 2^-27 is g (1 - 2^-55) or more, and rounds to g; -g sin x may be as near to -g x as anything, as above. Else no
// midpoints. Zeros and infinite g have the sign of cos x or -sin x, which the ball of it says, or its rounded value.
template <bool Sine>
struct circular_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return (g == g) & (magnitude_of(x) < infinity) & (Sine ? x != 0 : magnitude_of(x) >= 0x1p-27);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const R near = Sine ? -g * x : g;
    return (magnitude_of(x) < infinity) & (near == near) ? near : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    using Ball = dd_ball<R>;
    const R factor = Sine ? -g : g;
    const Ball c = circular(x, Sine);
    const decided_lanes<R> product = round_ball(number<Ball>(factor) * c);
    const mask_of<R> regular = (g != 0) & (magnitude_of(g) < infinity);
    const mask_of<R> has_sign = magnitude_of(c.hi) > c.error;
    return {regular ? product.value : factor * c.hi, regular ? product.decided : has_sign};
  }
  REPDL_HD_CALL static decided_value<double> known(double g, double x) {
    if (g != 0 && is_regular(g)) return {0, false};
    const double factor = Sine ? -g : g;
    if (Sine && magnitude_of(x) < 0x1p-27) return {factor * x, true};
    return {factor * by_formula<circular64<Sine>>::exact(2048, x).value, true};
  }
  template <class Ball>
  REPDL_HD static auto formula(double g, double x) {
    if constexpr (Sine) {
      return cos_backward_formula{g, x}.eval<limbs_of_ball<Ball>>();
    } else {
      return sin_backward_formula{g, x}.eval<limbs_of_ball<Ball>>();
    }
  }
};
template <>
struct body64<ops::sin_backward> : by_formula<circular_backward64<false>> {};
template <>
struct body64<ops::cos_backward> : by_formula<circular_backward64<true>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
