// Gradients of activations that are made of e^x: silu_backward, gelu_tanh_backward, log_sigmoid_backward, mish_backward,
// for f16, bf16, binary32: g phi(x) in binary64 with a rounding test; multi-limb balls decide what it leaves undecided.
//
//   silu          phi = s (1 + (1 - s) x)           s = 1 / (1 + e^-x)
//   gelu_tanh     phi = s (1 + (1 - s) w'x)         s = 1 / (1 + e^-w), w = a x + b x^3, w'x = a x + 3 b x^3, a = sqrt(8/pi),
//                                                   b = 0.044715 a (gelu.hpp)
//   log_sigmoid   phi = 1 / (1 + e^x)
//   mish          phi = n/d + 4 x w (1 + w) / d^2   w = e^x, n = w (w + 2), d = n + 2: n/d = tanh(ln(1 + w))
//
// Domain: every input. Limits: -0 at -inf, 1 at +inf; log_sigmoid 1 and +0. x is cut to |x| <= 210, of mish to [-210,
// 60], of gelu_tanh to |x| <= 13.875, where w > 210. Beyond, phi is 1 up to 2^-80, and g is a number; or g phi rounds to
// a zero of its sign (gradient.hpp). The zeros of phi, -1.27846454276107..., -0.752461422071016..., -1.19243121451549...,
// have no binary32 number within 2^-29: the computed sign is that of phi.
//
// Error budgets, u = 2^-53, with the product by g and the ends of the test, 3 u |phi|:
//   silu: s and 1 - s 8.1 u each, two products and a sum: (8.1 + 9.1 + 1 + 1 + 3) u s (1 + (1 - s) |x|)           22.2 u
//   gelu_tanh: w in double-double up to 2^-101 of 220 (gelu.hpp); w'x: 3 u more                                   25.3 u
//     so 2^-48 s (1 + (1 - s) |w'x|) = 32 u ... for both
//   log_sigmoid: (8.1 + 3) u phi                                                                                  < 16 u
//   mish: w 5.1 u; n: 2 (5.1) and two roundings 12.2 u; d: 13.2 u; n/d: 2/d of n's error, two roundings 14.2 u;
//     4 x w (1 + w) / d^2: 5.1 + 6.1 + 3 + 2 (13.2) + 2 u                                                         < 43 u
//     with the sum and 3 u: 2^-47 (n/d + |second|) = 64 u ...
//
// Last tier. silu, log_sigmoid, mish: for rational x != 0, w = e^x is transcendental (Hermite-Lindemann), and g phi is a
// rational function of w that is no constant: no midpoint. x = 0: g/2 is exact, and 3 g/5 at least a tenth of a unit from
// midpoints. gelu_tanh: no theorem is known; a midpoint would be `undecided`. x next to 0: |phi - 1/2| >= 2^-151, and
// balls of 256 bits tell g phi from g/2, which may be a midpoint.
// gelu_tanh in f16 and bf16: every pair was tried, 256 bits decide all.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/gelu.hpp"
#include "librepdl/ops/elementwise/gradient.hpp"
#include "librepdl/ops/elementwise/mish.hpp"

namespace repdl::ops {
struct silu_backward;
struct gelu_tanh_backward;
struct log_sigmoid_backward;
struct mish_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// g s (1 + (1 - s) z), s = 1 / (1 + e^-w): with e = e^-w, g (1 + e (1 + z)) / (1 + e)^2.
template <int L>
REPDL_HD_CALL ball<L> logistic_gradient(double g, const ball<L>& w, const ball<L>& z) {
  const ball<L> one = number<L>(1);
  const ball<L> e = exponential(negated(w));
  const ball<L> d = one + e;
  return number<L>(g) * (one + e * (one + z)) / (d * d);
}
// The same factor in binary64.
REPDL_HD bounded_factor logistic_factor(double w, double low, double z) {
  const logistic_pair s = logistic(w, low);
  const double product = s.complement * z;
  return {s.value * (1.0 + product), 0x1p-48 * (s.value * (1.0 + magnitude_of(product)))};
}

struct silu_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return logistic_gradient(g, number<L>(x), number<L>(x));
  }
};
template <>
struct body<ops::silu_backward> {
  static constexpr double limit = 210;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x) {
    const double v = widen(x);
    const double c = cut_to(v, -limit, limit);
    const bounded_factor phi = logistic_factor(c, 0.0, c);
    return certify_gradient<T>(widen(g), v, phi.value, phi.bound, -0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    if (!is_undecided(widen(g), widen(x), -limit, limit)) return eval(g, x);
    return decide<T>(silu_gradient_formula{widen(g), widen(x)}, last_tier_bits);
  }
};

struct gelu_tanh_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    const ball<L> ax = square_root(number<L>(2) / quarter_pi_ball<L>()) * number<L>(x);
    const ball<L> square = number<L>(x) * number<L>(x) * number<L>(44715) / number<L>(1000000);
    const ball<L> one = number<L>(1);
    return logistic_gradient(g, ax * (one + square), ax * (one + number<L>(3) * square));
  }
};
template <>
struct body<ops::gelu_tanh_backward> {
  static constexpr double limit = 13.875;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x) {
    using forward = body<ops::gelu_tanh>;
    const double v = widen(x);
    const double c = cut_to(v, -limit, limit);
    const double square = c * c;
    const dd cubic = two_prod(square, forward::b.hi);
    const dd factor = two_sum(forward::a.hi, cubic.hi);
    const double factor_lo = factor.lo + (muladd(square, forward::b.lo, cubic.lo) + forward::a.lo);
    const dd w = two_prod(c, factor.hi);
    const double z = c * muladd(2.0, cubic.hi, factor.hi);
    const bounded_factor phi = logistic_factor(w.hi, muladd(c, factor_lo, w.lo), z);
    return certify_gradient<T>(widen(g), v, phi.value, phi.bound, -0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    if (!is_undecided(widen(g), widen(x), -limit, limit)) return eval(g, x);
    return decide<T>(gelu_tanh_gradient_formula{widen(g), widen(x)}, last_tier_bits);
  }
};

struct log_sigmoid_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(g) / (number<L>(1) + exponential(number<L>(x)));
  }
};
template <>
struct body<ops::log_sigmoid_backward> {
  static constexpr double limit = 210;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x) {
    const double v = widen(x);
    const double phi = logistic(cut_to(v, -limit, limit), 0.0).complement;
    return certify_gradient<T>(widen(g), v, phi, 0x1p-49 * phi, 1.0, 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    if (!is_undecided(widen(g), widen(x), -limit, limit)) return eval(g, x);
    return decide<T>(log_sigmoid_gradient_formula{widen(g), widen(x)}, last_tier_bits);
  }
};

struct mish_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    const ball<L> w = exponential(number<L>(x));
    const ball<L> n = w * (w + number<L>(2));
    const ball<L> d = n + number<L>(2);
    const ball<L> second = number<L>(x) * number<L>(4) * w * (w + number<L>(1));
    return number<L>(g) * (n * d + second) / (d * d);
  }
};
template <>
struct body<ops::mish_backward> {
  static constexpr double low = -210, high = 60;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x) {
    const double v = widen(x);
    const double c = cut_to(v, low, high);
    const double w = exp_core::eval(c);
    const double n = w * (w + 2.0);
    const double d = n + 2.0;
    const double first = n / d;
    const double second = 4.0 * c * w * (1.0 + w) / (d * d);
    return certify_gradient<T>(widen(g), v, first + second, 0x1p-47 * (first + magnitude_of(second)), -0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    if (!is_undecided(widen(g), widen(x), low, high)) return eval(g, x);
    return decide<T>(mish_gradient_formula{widen(g), widen(x)}, last_tier_bits);
  }
};

// ----------------------------------------------------------------------------------------------------------- binary64

// g phi(x) for a phi with the limits -0 and 1, negative below `root`: plain in [low, high], or, where |g| <= 2^10 and
// results vanish earlier, in [small, high].
template <class R>
REPDL_HD mask_of<R> is_plain_gradient(R g, R x, double low, double small, double high) {
  return is_finite_not_zero(g) & (x >= low) & (x <= high) & ((x >= small) | (magnitude_of(g) > 0x1p10));
}
template <class R>
REPDL_HD R special_gradient_of(R g, R x, double root) {
  const R limit = x < 0 ? math<R>::all(-0.0) : math<R>::all(1);
  return special_gradient(g, x, x, limit, x < root ? math<R>::all(-1) : math<R>::all(1));
}

// x > 45: phi - 1 is about x e^-x < 2^-59. x < -1500: 2^1024 x e^x < 2^-1075, and 2^10 x e^x from -760 on. phi is 0 at
// the root of 1 + x + e^x, between this number and the one below.
struct silu_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_plain_gradient(g, x, -1500, -760, 45) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_gradient_of(g, x, -0x1.474973c84120bp+0);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    const dd_ball<R> w = number<dd_ball<R>>(x);
    return round_logistic_gradient(g, w, w);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    return silu_gradient_formula{g, x}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::silu_backward> : by_formula<silu_gradient64> {};

// w = x (a + b x^2), z = x (a + 3 b x^2), as gelu_tanh64. x > 8: z < 123, w > 49, phi - 1 < z e^-w < 2^-63. x < -28: w <
// -1611 and z > -4800, and x < -21.7: w < -763, z > -2200.
struct gelu_tanh_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_plain_gradient(g, x, -28, -21.7, 8) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_gradient_of(g, x, -0x1.81429f9e97e4cp-1);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    using Ball = dd_ball<R>;
    return round_logistic_gradient(g, gelu_tanh64::exponent<Ball>(x, 1), gelu_tanh64::exponent<Ball>(x, 3));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    return gelu_tanh_gradient_formula{g, x}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::gelu_tanh_backward> : by_formula<gelu_tanh_gradient64> {};

// g / (1 + e^-w), w = -x. w > 40: 1 - 2^-57 or more. w < -1500: 2^1024 e^-1500 < 2^-1075, and 2^10 e^-760.
struct log_sigmoid_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_plain_gradient(g, -x, -1500, -760, 40) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_gradient(g, x, -x, x < 0 ? math<R>::all(1) : math<R>::all(0), math<R>::all(1));
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    return round_logistic(g, number<dd_ball<R>>(-x));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    return log_sigmoid_gradient_formula{g, x}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::log_sigmoid_backward> : by_formula<log_sigmoid_gradient64> {};

// (n d + 4 x w (w + 1)) / d^2 with d = n + 2, in the terms of mish64: (p d + 4 x (1 + a) a^2) / d^2, or, for x < 0, a (p
// d + 4 x (1 + a)) / d^2. x > 25: phi - 1 is about 4 x e^-2x < 2^-65. x < -1500 and -760 as in silu_gradient64; the root
// is between these numbers again. x = 0: 3 g/5.
struct mish_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_plain_gradient(g, x, -1500, -760, 25);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_gradient_of(g, x, -0x1.31432c0d12d84p+0);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    using Ball = dd_ball<R>;
    const mish_terms<R> t(x);
    const mask_of<R> negative = x < 0;
    const Ball one = number<Ball>(1);
    const Ball second = beside_zero(number<Ball>(4 * x) * (one + t.a) * select(negative, one, t.square), x);
    const Ball phi = (t.p * t.d + second) * select(negative, t.e.m, one) / (t.d * t.d);
    return round_product(g, phi, negative ? t.e.k : math<R>::all(0));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    return mish_gradient_formula{g, x}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::mish_backward> : by_formula<mish_gradient64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
