// softplus(x; b, threshold) = b x > threshold ? x : ln(1 + e^(b x)) / b, and softplus_backward(g, x), g / (1 + e^(-b x))
// in place of the logarithm: for f16, bf16, binary32, in binary64 with a rounding test; multi-limb balls decide what it
// leaves undecided.
//
// w = b x has 53 + 24 bits: two_prod compares it with the threshold, exactly. u = 2^-53; w is rounded to within u |w|.
//
// softplus. |w| is cut to 260. w > 260: the result is x up to a relative 2^-375: x, a number. w < -260: e^w / b < 2^-375
// 2^200 rounds to a zero. As in logaddexp (logarithmic.hpp), ln(1 + e^w) = max(w, 0) + l, l = ln(1 + e^-|w|):
//   e^-|w|: 260 u and 5.1 u; in l as much, and 4.4 u; in all < 280 u                 < 2^-44 l
//   max(w, 0) u, the sum u, the quotient u, the ends: 2^-50 = 8 u of the sum
// Last tier: ln(1 + e^w) is transcendental for rational w, as logaddexp's is: no midpoint.
//
// softplus_backward. |w| is cut to 210 (gradient.hpp); 1 / (1 + e^-w): 210 u and 8.1 u, product and ends 3 u: 2^-45 = 256
// u. Last tier: transcendental for w != 0; w = 0: g/2, exactly. w next to 0: g/2 may be a midpoint, the rest g (1/(1 +
// e^-w) - 1/2) has the sign of g w.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/gradient.hpp"
#include "librepdl/ops/elementwise/logarithmic.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"

namespace repdl::ops {
struct softplus;
struct softplus_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// b x > threshold
REPDL_HD bool softplus_passes(double x, const parameters& p) {
  const dd w = two_prod(p.value[0], x);
  return (w.hi > p.value[1]) | ((w.hi == p.value[1]) & (w.lo > 0));
}

struct softplus_formula {
  double x, beta;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    ball<L> r = exponential(number<L>(beta) * number<L>(x));
    to_logarithm_1p(r);
    return r / number<L>(beta);
  }
};
template <>
struct body<ops::softplus> {
  static constexpr double limit = 260;
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double v = widen(x);
    const double w = p.value[0] * v;
    const double c = cut_to(w, -limit, limit);
    const double z = exp_core::eval(-magnitude_of(c));
    const bool upper = z > 0x1.a8p-2;
    const double l = log_binary64(upper ? 1.0 : 0.0, upper ? 0.5 * (z - 1.0) : z);
    const double sum = (c < 0 ? 0.0 : c) + l;
    const double inverse = 1.0 / p.value[0];
    const bool itself = softplus_passes(v, p) | (w > limit);
    const double error = muladd(0x1p-44, l, 0x1p-50 * sum) * magnitude_of(inverse);
    return certify_as<T>(itself ? v : sum * inverse, itself ? 0.0 : error);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (softplus_passes(v, p) || !(magnitude_of(p.value[0] * v) <= limit)) return eval(x, p);
    return decide<T>(softplus_formula{v, p.value[0]}, last_tier_bits);
  }
};

struct softplus_gradient_formula {
  double g, x, beta;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> w = number<L>(beta) * number<L>(x);
    const ball<L> v = number<L>(g) / (number<L>(1) + exponential(negated(w)));
    return {v, number<L>(0.5 * g), (g < 0) == (beta * x < 0) ? 1 : -1};
  }
};
template <>
struct body<ops::softplus_backward> {
  static constexpr double limit = 210;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    const double w = p.value[0] * v;
    const double phi = logistic(cut_to(w, -limit, limit), 0.0).value;
    const bool passes = softplus_passes(v, p);
    return certify_gradient<T>(widen(g), choose(passes, 0.0, w), passes ? 1.0 : phi, passes ? 0.0 : 0x1p-45 * phi, 0.0,
                               1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (softplus_passes(v, p) || !is_undecided(widen(g), p.value[0] * v, -limit, limit)) return eval(g, x, p);
    return decide<T>(softplus_gradient_formula{widen(g), v, p.value[0]}, last_tier_bits);
  }
};

// ----------------------------------------------------------------------------------------------------------- binary64

// beta x > threshold, exactly: of small or large x, both are scaled first, so that the product's parts are numbers. A
// threshold that over- or underflows then is far from it.
template <class R>
REPDL_HD mask_of<R> softplus_passes64(R x, const parameters& p) {
  const R a = magnitude_of(x);
  const R lower = a > 0x1p500 ? math<R>::all(0x1p-400) : math<R>::all(1);
  const R s = a < 0x1p-500 ? math<R>::all(0x1p400) : lower;
  const R t = p.value[1] * s;
  const double_word<R> w = two_prod(math<R>::all(p.value[0]), x * s);
  return (w.hi > t) | ((w.hi == t) & (w.lo > 0));
}

// With a = e^-|w|, w = beta x, and l = ln(1 + a), as log_sigmoid64: (max(w, 0) + l) / beta. w > 40: x up to 2^-57 of
// itself. w < -884: less than 2^-1275 / |beta|, and w < -760, |beta| >= 2^-10: than 2^-1086. No midpoints.
struct softplus64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, const parameters& p) {
    const R w = p.value[0] * x;
    return (softplus_passes64(x, p) == 0) & (w <= 40) & (w >= (magnitude_of(p.value[0]) >= 0x1p-10 ? -760.0 : -884.0));
  }
  template <class R>
  REPDL_HD static R special(R x, const parameters& p) {
    const mask_of<R> itself = softplus_passes64(x, p) | (p.value[0] * x > 40);
    const R r = itself ? x : math<R>::all(p.value[0] > 0 ? 0.0 : -0.0);
    return x == x ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, const parameters& p) {
    using Ball = dd_ball<R>;
    const Ball beta = number<Ball>(p.value[0]);
    const Ball w = beside_zero<R>(beta * number<Ball>(x), p.value[0] * x);
    const mask_of<R> negative = w.hi < 0;
    const scaled_ball<R> a = scaled_exponential(select(negative, w, negated(w)));
    const mask_of<R> small = a.k < -191;
    const Ball sum = select(negative, number<Ball>(0), w) + logarithm_1p(sigmoid64::beside_one(a));
    const Ball l = select(small, grown(a.m, math<R>::all(0x1p-189)), sum);
    return round_product(math<R>::all(1), l / beta, small ? a.k : math<R>::all(0));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x, const parameters& p) {
    return softplus_formula{x, p.value[0]}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::softplus> : by_formula<softplus64> {};

// g / (1 + e^-w). w > 40: 1 - 2^-57 or more. w < -1500: 2^1024 e^-1500 < 2^-1075, and 2^10 e^-760.
struct softplus_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, const parameters& p) {
    const R w = p.value[0] * x;
    return (softplus_passes64(x, p) == 0) & (magnitude_of(w) >= 0x1p-60) & is_finite_not_zero(g) & (w <= 40) &
           (w >= -1500) & ((w >= -760) | (magnitude_of(g) > 0x1p10));
  }
  template <class R>
  REPDL_HD static R special(R g, R x, const parameters& p) {
    const R w = p.value[0] * x;
    const R below = special_gradient(g, x, w, w < 0 ? math<R>::all(0) : math<R>::all(1), math<R>::all(1));
    const R r = softplus_passes64(x, p) ? g : below;
    return (r == r) & (x == x) ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, const parameters& p) {
    using Ball = dd_ball<R>;
    return round_logistic(g, number<Ball>(p.value[0]) * number<Ball>(x));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x, const parameters& p) {
    return logistic_product(g, number<Ball>(p.value[0]) * number<Ball>(x));
  }
};
template <>
struct body64<ops::softplus_backward> : by_formula<softplus_gradient64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
