// Gradients of leaky_relu, elu, selu; celu and its gradient: for f16, bf16, binary32. Binary64 with a rounding test, for
// leaky_relu_backward none; multi-limb balls decide what is left undecided. u = 2^-53.
//
// leaky_relu_backward: slope g has 53 + 24 bits, two_prod makes it odd (basic.hpp).
//
// elu_backward, x <= 0: c e^w, c = g scale alpha rate, w = rate x. |c| is 0 or in [2^-749, 2^728]: nothing over- or
// underflows.
//   fast: |w| <= 350; w u |w| <= 350 u, e^w 5.1 u, c 3 u, its product and the ends 4 u: 2^-44 = 512 u. w < -350: c e^w rounds to a
//     zero if c e^-350 is below 2^-160. Else, and for w > 350, all is left undecided.
//   last: e^w is transcendental for w != 0 (Hermite-Lindemann): no midpoint. c may be one; next to it the rest c (e^w - 1) has the
//     sign of c w. c has 183 bits. w = 0: c, exactly. |w| > 2000: infinite, and zero.
// x > 0, or NaN: scale g, made odd.
//
// selu_backward, x <= 0: g s a e^x; s a rounded, e^x, two products and the ends: < 16 u. Last tier with the decimals of s
// and a: transcendental, or, at x = 0 and for x > 0, a fraction whose denominator 5 divides. |x| is cut to 210
// (gradient.hpp).
//
// celu, x < 0: a (e^w - 1), w = x / a: elu.hpp's bounds, with w within u again: 2^-45. w tiny: it is next to x, a number. w
// far below 0: it is next to -a, which may be a midpoint, and the rest a e^w has the sign of a. The last tier as there.
//
// celu_backward, x <= 0: g e^w, 2^-44 as above. e^350 > 2^504 makes it infinite, e^-350 zero. w next to 0: next to g, a number.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/basic.hpp"
#include "librepdl/ops/elementwise/elu.hpp"
#include "librepdl/ops/elementwise/gradient.hpp"
#include "librepdl/ops/elementwise/selu.hpp"

namespace repdl::ops {
struct leaky_relu_backward;
struct elu_backward;
struct selu_backward;
struct celu;
struct celu_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::leaky_relu_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x, const parameters& p) {
    const dd product = two_prod(p.value[0], widen(g));
    return narrow<T>(widen(x) > 0 ? widen(g) : round_to_odd(product.hi, product.lo));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static tentative<T> quick(T g, T x, const parameters& p) {
    return quick_scaled(g, x.value > 0, p.value[0]);
  }
};

struct elu_gradient_formula {
  double g, x, alpha, scale, rate;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> c = number<L>(g) * number<L>(scale) * number<L>(alpha) * number<L>(rate);
    const ball<L> w = number<L>(rate) * number<L>(x);
    return {c * exponential(w), c, sign_of(c) * sign_of(w)};
  }
};
template <>
struct body<ops::elu_backward> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    const double w = p.value[2] * v;
    const double product = coefficient(widen(g), p) * exp_core::eval(cut_to(w, -350.0, 350.0));
    const bool known = (w <= 350) & ((w >= -350) | (magnitude_of(product) < 0x1p-160));
    const bool plain = is_plain(widen(g), v, p);
    const double error = known ? 0x1p-44 * magnitude_of(product) : infinity;
    return certify_as<T>(plain ? product : special(widen(g), v, p), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    const double w = p.value[2] * v;
    if (!is_plain(widen(g), v, p)) return {narrow<T>(special(widen(g), v, p)), true};
    if (magnitude_of(w) > 2000) return {narrow<T>(coefficient(widen(g), p) * (w > 0 ? infinity : 0.0)), true};
    return decide<T>(elu_gradient_formula{widen(g), v, p.value[0], p.value[1], p.value[2]}, last_tier_bits);
  }

 private:
  REPDL_HD static double coefficient(double g, const parameters& p) { return g * p.value[1] * p.value[0] * p.value[2]; }
  // x <= 0 finite, g finite, c not 0.
  REPDL_HD static bool is_plain(double g, double x, const parameters& p) {
    return (x <= 0) & (x > -infinity) & is_regular(g) & (coefficient(g, p) != 0);
  }
  // scale g where x > 0 or x is NaN. Else c e^w for an infinite x, or c for a finite one, an infinity, a zero or NaN.
  REPDL_HD static double special(double g, double x, const parameters& p) {
    const double rate = p.value[2];
    const dd line = two_prod(p.value[1], g);
    const double e = rate < 0 ? infinity : rate > 0 ? 0.0 : double_of(format<double>::nan);
    const double below = coefficient(g, p) * (x == -infinity ? e : 1.0);
    return x <= 0 ? below : round_to_odd(line.hi, line.lo);
  }
};

struct selu_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    const ball<L> unit = number<L>(1e16);
    const ball<L> s = number<L>(1050700987355480) * unit + number<L>(4934193349852946);
    const ball<L> a = number<L>(1673263242354377) * unit + number<L>(2848170429916717);
    const ball<L> one = number<L>(1e15) * unit;
    const ball<L> above = number<L>(g) * s / one;
    return x > 0 ? above : above * a * exponential(number<L>(x)) / one;
  }
};
template <>
struct body<ops::selu_backward> {
  static constexpr double limit = 210;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x) {
    using forward = body<ops::selu>;
    const double v = widen(x);
    const double below = forward::s_a * exp_core::eval(cut_to(v, -limit, 0.0));
    const double factor = choose(v <= 0, below, forward::s);
    return certify_gradient<T>(widen(g), choose(v <= 0, v, 0.0), factor, 0x1p-49 * factor, 0.0, 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    const double v = widen(x) >= -infinity && widen(x) < 1 ? widen(x) : 1.0;  // all x > 0, and NaN, are alike
    if (!is_undecided(widen(g), v, -limit, 1)) return eval(g, x);
    return decide<T>(selu_gradient_formula{widen(g), v}, last_tier_bits);
  }
};

struct celu_formula {
  double x, alpha;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> a = number<L>(alpha);
    const ball<L> w = number<L>(x) / a;
    const double near = x / alpha;
    const ball<L> one = number<L>(1);
    ball<L> e = w;
    if (magnitude_of(near) < 0x1p-300) {
      e = grown(w, multiply(upper(w), upper(w)));
    } else if (near < -1000) {
      e = grown(negated(one), power_magnitude(-1400));
    } else {
      e = exponential(w) - one;
    }
    return {a * e, negated(a), alpha < 0 ? -1 : 1};
  }
};
template <>
struct body<ops::celu> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double v = widen(x);
    const double w = v / p.value[0];
    const double product = p.value[0] * expm1_binary64(w > -105 && w < 105 ? w : -105.0);
    const double error = w < 105 ? 0x1p-45 * magnitude_of(product) : infinity;
    const bool plain = (v < 0) & (v > -infinity);
    return certify_as<T>(plain ? product : special(v, p), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (!(v < 0 && v > -infinity)) return {narrow<T>(special(v, p)), true};
    if (v / p.value[0] > 1000) return {narrow<T>(-infinity), true};
    return decide<T>(celu_formula{v, p.value[0]}, last_tier_bits);
  }

 private:
  REPDL_HD static double special(double x, const parameters& p) {
    const double limit = p.value[0] > 0 ? -p.value[0] : -infinity;
    return x == -infinity ? limit : x;
  }
};

struct celu_gradient_formula {
  double g, x, alpha;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(g) * exponential(number<L>(x) / number<L>(alpha));
  }
};
template <>
struct body<ops::celu_backward> {
  static constexpr double limit = 350;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    const double w = choose(v < 0, v / p.value[0], 0.0);
    const double phi = exp_core::eval(cut_to(w, -limit, limit));
    return certify_gradient<T>(widen(g), w, phi, v < 0 ? 0x1p-44 * phi : 0.0, 0.0, infinity);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (!(v < 0) || !is_undecided(widen(g), v / p.value[0], -limit, limit)) return eval(g, x, p);
    return decide<T>(celu_gradient_formula{widen(g), v, p.value[0]}, last_tier_bits);
  }
};

// ----------------------------------------------------------------------------------------------------------- binary64

template <>
struct body64<ops::leaky_relu_backward> {
  template <class R>
  REPDL_HD static R lanes(const R& g, const R& x, const parameters& p) {
    const R r = x > 0 ? g : p.value[0] * g;
    return r == r ? r : nan_of<R>();
  }
  REPDL_HD static double eval(double g, double x, const parameters& p) { return lanes(g, x, p); }
};

// As elu64: c e^w, x <= 0. c = 0 has no e^w, nor an infinite one. |c| is in [2^-1674, 2^1624]: w > 2000 makes
// infinities, below -2000 zeros, and, for |c| <= 2^10, below -760. The last tier's formula is that of the other formats.
struct elu_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, const parameters& p) {
    const R w = p.value[2] * x;
    return (x <= 0) & (x > -infinity) & is_finite_not_zero(g) & (math<R>::all(factor(p)) != 0) &
           (magnitude_of(w) <= 2000) & ((w >= -760) | (magnitude_of(factor(p) * g) > 0x1p10));
  }
  template <class R>
  REPDL_HD static R special(R g, R x, const parameters& p) {
    const double rate = p.value[2];
    const double c = factor(p);
    const double limit = rate < 0 ? infinity : rate > 0 ? 0 : double_of(format<double>::nan);
    const mask_of<R> regular = is_finite_not_zero(g);
    const R sign = regular ? copy_sign(math<R>::all(1), g) : g;
    const mask_of<R> far = (x == -infinity) | (regular & (math<R>::all(c) != 0));
    const R below = (sign * c) * (far ? math<R>::all(limit) : math<R>::all(1));
    const R r = x <= 0 ? below : p.value[1] * g;
    return r == r ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, const parameters& p) {
    using Ball = dd_ball<R>;
    const Ball rate = number<Ball>(p.value[2]);
    const Ball c = number<Ball>(p.value[0]) * number<Ball>(p.value[1]) * rate;
    const scaled_ball<R> e = scaled_exponential(beside_zero<R>(rate * number<Ball>(x), p.value[2] * x));
    return round_product(g, c * e.m, e.k);
  }
  template <class Ball>
  REPDL_HD static auto formula(double g, double x, const parameters& p) {
    return elu_gradient_formula{g, x, p.value[0], p.value[1], p.value[2]}.template eval<limbs_of_ball<Ball>>();
  }
  REPDL_HD static double factor(const parameters& p) { return p.value[0] * p.value[1] * p.value[2]; }
};
template <>
struct body64<ops::elu_backward> : by_formula<elu_gradient64> {};

// g s a e^x, x <= 0, else g s. 2^1025 e^-1500 < 2^-1075, and so is 2^11 e^-760. No midpoints, as above.
struct selu_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & ((x < -1500) == 0) & (((x < -760) & (magnitude_of(g) <= 0x1p10)) == 0);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const mask_of<R> vanishes = (x == -infinity) | ((x < -1) & is_finite_not_zero(g));
    const R r = g * (vanishes ? math<R>::all(0) : math<R>::all(1));
    return r == r ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> below = x <= 0;
    const scaled_ball<R> e = scaled_exponential(number<Ball>(below ? x : math<R>::all(0)));
    return round_product(g, e.m * select(below, constant<Ball>(dd_selu_scale_alpha), constant<Ball>(dd_selu_scale)),
                         e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    return selu_gradient_formula{g, x <= 0 ? x : 1}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::selu_backward> : by_formula<selu_gradient64> {};

// As elu64, with w = x / alpha. Next to w = 0 it is x (1 + w/2 + ...), which rounds to x.
struct celu64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, const parameters& p) {
    return (x < 0) & (x > -infinity) & (x / p.value[0] <= 1000);
  }
  template <class R>
  REPDL_HD static R special(R x, const parameters& p) {
    const double limit = p.value[0] > 0 ? -p.value[0] : -infinity;
    const R upper = x < 0 ? math<R>::all(limit) : x;
    return x == x ? upper : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, const parameters& p) {
    using Ball = dd_ball<R>;
    const Ball alpha = number<Ball>(p.value[0]);
    return round_growth<R>(alpha, number<Ball>(x) / alpha, x / p.value[0], number<Ball>(1), x);
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, const parameters& p) {
    return celu_formula{x, p.value[0]}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::celu> : by_formula<celu64> {};

// As elu_gradient64: 2^1024 e^-2000, 2^10 e^-760 and 2^-1074 e^2000. |w| < 2^-60: less than half of the distance of g to
// either neighbour.
struct celu_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, const parameters& p) {
    const R w = x / p.value[0];
    return (x < 0) & is_finite_not_zero(g) & (magnitude_of(w) <= 2000) & (magnitude_of(w) >= 0x1p-60) &
           ((w >= -760) | (magnitude_of(g) > 0x1p10));
  }
  template <class R>
  REPDL_HD static R special(R g, R x, const parameters& p) {
    const mask_of<R> far = (x < 0) & (magnitude_of(x / p.value[0]) > 1) & (is_finite_not_zero(g) | (x == -infinity));
    const R r = g * (far ? math<R>::all(p.value[0] > 0 ? 0 : infinity) : math<R>::all(1));
    return r == r ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x, const parameters& p) {
    using Ball = dd_ball<R>;
    const scaled_ball<R> e = scaled_exponential(number<Ball>(x) / number<Ball>(p.value[0]));
    return round_product(g, e.m, e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x, const parameters& p) {
    return celu_gradient_formula{g, x, p.value[0]}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::celu_backward> : by_formula<celu_gradient64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
