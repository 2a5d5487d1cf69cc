// logit(x; eps) = ln(z / (1 - z)), z = x cut to [eps, 1 - eps], and logit_backward(g, x; eps) = g / (x (1 - x)) within
// those bounds, +0 beyond; softshrink and its gradient: for f16, bf16, binary32, in binary64 with a rounding test,
// softshrink without; multi-limb balls decide what is left undecided. eps is NaN where it is absent: every comparison with it
// is false. u = 2^-53.
//
// logit. 1 - eps has more bits than binary64: where x is above it the result is -logit(eps), of which the sign is kept in
// z's place. x > 1 - eps: x >= 1, or 1 - x, exact for 1/2 <= x <= 1, is less than eps; x < 1/2 is not above. t =
// z / (1 - z), 2 u. 0.42 <= z <= 0.58: ln(1 + f), f = (2 z - 1) / (1 - z), the numerator exact: |f| < 0.39 within 2 u, 4 u for
// log_binary64 (logarithmic.hpp). Elsewhere |ln t| > 0.32: t's 2 u count for 2 / 0.32 < 6.3 u, log_binary64 5 u (|e| <
// 2^10). With the ends 2^-49 = 16 u covers both. eps may be as small as 2^-1074: below 2^-900 it is multiplied by 2^256,
// which comes off e. Last tier: the logarithm of a rational number != 1 is transcendental; ln z - ln(1 - z) cancels next
// to 1/2, which more bits bear. z = 1/2 is +0, z = 0 and 1 are infinite, outside of [0, 1] NaN.
//
// logit_backward. g / (x (1 - x)): three roundings and the ends, 2^-50 = 8 u. Last tier: x (1 - x) has at most 24 + 173
// bits, the quotient is compared with the border exactly (formula.hpp). x = ±0 and 1 are poles, g times +inf, without eps
// NaN outside.
//
// softshrink: x -+ lambd, two_sum makes it odd; x = lambd is not among its cases, so that no sum is 0.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/logarithmic.hpp"

namespace repdl::ops {
struct logit;
struct logit_backward;
struct softshrink;
struct softshrink_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// x > 1 - eps
REPDL_HD bool above_margin(double x, double eps) { return (x > 0.5) & (1.0 - x < eps); }

struct logit_formula {
  double z;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    ball<L> rest = number<L>(1) - number<L>(z);
    to_logarithm(rest);
    return logarithm(limbs_of_value<L>(z)) - rest;
  }
};
template <>
struct body<ops::logit> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double z = cut(widen(x), p.value[0]);
    const double sign = above_margin(widen(x), p.value[0]) ? -1.0 : 1.0;
    const bool plain = (z > 0) & (z < 1) & (z != 0.5);
    const double c = choose(plain, z, 0.25);
    const bool tiny = c < 0x1p-900;
    const double rest = 1.0 - c;
    const auto [e, f] = pow_reduce(tiny ? c * 0x1p256 : c / rest);
    const bool middle = (c >= 0.42) & (c <= 0.58);
    const double log = log_binary64(middle ? 0.0 : e - (tiny ? 256.0 : 0.0), middle ? (2.0 * c - 1.0) / rest : f);
    return certify_as<T>(plain ? sign * log : special(z, sign), plain ? 0x1p-49 * magnitude_of(log) : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    const double z = cut(widen(x), p.value[0]);
    if (!(z > 0 && z < 1 && z != 0.5)) return eval(x, p);
    const decided_value<T> r = decide<T>(logit_formula{z}, last_tier_bits);
    if (!above_margin(widen(x), p.value[0])) return r;
    return {from_bits<T>(static_cast<storage_of<T>>(to_bits(r.value) ^ sign_mask<T>)), r.decided};
  }

 private:
  // x cut to [eps, 1 - eps], eps in place of 1 - eps.
  REPDL_HD static double cut(double x, double eps) { return choose((x < eps) | above_margin(x, eps), eps, x); }
  REPDL_HD static double special(double z, double sign) {
    const double pole = z == 0 ? -infinity : z == 1 ? infinity : double_of(format<double>::nan);
    return z == 0.5 ? 0.0 : sign * pole;
  }
};

// Binary64. ln t, t = z / (1 - z); next to 1/2 ln(1 + v), v = (2 z - 1) / (1 - z), whose numerator is exact: v in [-0.28, 0.39]. A bound e of t
// counts at most 1.125 e / t, one of v 1.125 e / (1 + v) < 1.6 e (dd_functions.hpp); it is infinite where t is less than 2^-900. No midpoints.
struct logit64 {
  template <class R>
  REPDL_HD static mask_of<R> above(R x, double eps) {
    return (x > 0.5) & (1.0 - x < eps);
  }
  template <class R>
  REPDL_HD static R cut(R x, double eps) {
    return (x < eps) | above(x, eps) ? math<R>::all(eps) : x;
  }
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, const parameters& p) {
    const R z = cut(x, p.value[0]);
    return (z > 0) & (z < 1) & (z != 0.5);
  }
  template <class R>
  REPDL_HD static R special(R x, const parameters& p) {
    const R z = cut(x, p.value[0]);
    const R sign = above(x, p.value[0]) ? math<R>::all(-1) : math<R>::all(1);
    const R pole = z == 0 ? math<R>::all(-infinity) : math<R>::all(infinity);
    const R limit = z == 0.5 ? math<R>::all(0) : sign * pole;
    return (z == 0.5) | (z == 0) | (z == 1) ? limit : nan_of<R>();
  }
  // Of t, or where `middle` of 1 + t.
  template <class R>
  REPDL_HD static reduced_logarithm<R> reduced(double_word<R> t, mask_of<R> middle) {
    double_word<R> x = t;
    if constexpr (uses_tables) {
      const double_word<R> sum = add(t, math<R>::all(1));
      x = {middle ? sum.hi : t.hi, middle ? sum.lo : t.lo};
    }
    reduced_logarithm<R> a = reduce_logarithm(x);
    const mask_of<R> small = uses_tables ? static_cast<mask_of<R>>(middle & (a.row.hi == 0) & (a.k == 0)) : middle;
    a.f = {small ? t.hi : a.f.hi, small ? t.lo : a.f.lo};
    a.k = small ? math<R>::all(0) : a.k;
    return a;
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x, const parameters& p) {
    const R z = cut(x, p.value[0]);
    if constexpr (is_multi_limb<Ball>) {
      const Ball log = logit_formula{z}.template eval<limbs_of_ball<Ball>>();
      return above(x, p.value[0]) ? negated(log) : log;
    } else {
      const mask_of<R> middle = (z >= 0.42) & (z <= 0.58);
      const Ball t = number<Ball>(middle ? 2.0 * z - 1.0 : z) / (number<Ball>(1) - number<Ball>(z));
      const reduced_logarithm<R> a = reduced(value_of(t), middle);
      const Ball log = join_logarithm<false>(a);
      const R brought = 1.6 * (middle ? t.error : t.error / t.hi);
      const Ball r{log.hi, log.lo, up(log.error + brought)};
      return select(above(x, p.value[0]), negated(r), r);
    }
  }
};
template <>
struct body64<ops::logit> : by_formula<logit64> {};

struct logit_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL quotient<L> eval() const {
    return {number<L>(g), number<L>(x) * (number<L>(1) - number<L>(x))};
  }
};
template <>
struct body<ops::logit_backward> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    const double eps = p.value[0];
    const double q = widen(g) / ((v == 0 ? 0.0 : v) * (1.0 - v));
    const bool inside = (v >= 0) & (v <= 1);
    const bool beyond = (v < eps) | above_margin(v, eps);
    const double r = inside | (v != v) ? q : double_of(format<double>::nan);
    const bool plain = inside & !beyond & is_regular(q);
    return certify_as<T>(beyond ? 0.0 : r, plain ? 0x1p-50 * magnitude_of(q) : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    const bool beyond = v < p.value[0] || above_margin(v, p.value[0]);
    if (beyond || !(v > 0 && v < 1) || !is_regular(widen(g)) || widen(g) == 0) return eval(g, x, p);
    return decide<T>(logit_gradient_formula{widen(g), v}, last_tier_bits);
  }
};

template <>
struct body<ops::softshrink> {
  template <class T>
  REPDL_HD static T eval(T x, const parameters& p) {
    const double v = widen(x);
    const double l = p.value[0];
    const dd sum = two_sum(v, v > 0 ? -l : l);
    const double r = (v > l) | (v < -l) ? round_to_odd(sum.hi, sum.lo) : 0.0;
    return narrow<T>(v != v ? v : r);
  }
};
template <>
struct body<ops::softshrink_backward> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    const bool stops = (v >= -p.value[0]) & (v <= p.value[0]);
    return from_bits<T>(stops ? storage_of<T>{0} : to_bits(canonical(g)));
  }
};

// Binary64. g / (x (1 - x)): the quotient is compared with borders exactly, in balls as above. x (1 - x) has at most 53 + 1074 bits, times a
// border 54 more: exact in 2048 bits.
struct logit_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> beyond(R x, const parameters& p) {
    const R eps = math<R>::all(p.value[0]);
    return (x < eps) | ((x > 0.5) & (1 - x < eps));
  }
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, const parameters& p) {
    return (x > 0) & (x < 1) & (beyond(x, p) == 0) & (magnitude_of(g) > 0) & (magnitude_of(g) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R x, const parameters& p) {
    const R zero = math<R>::all(0);
    const R q = g / ((x == 0) | (x == 1) ? zero : math<R>::all(1));
    return beyond(x, p) ? zero : (x >= 0) & (x <= 1) & (q == q) ? q : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x, const parameters&) {
    if constexpr (is_multi_limb<Ball>) {
      return logit_gradient_formula{g, x}.template eval<limbs_of_ball<Ball>>();
    } else {
      return number<Ball>(g) / (number<Ball>(x) * (number<Ball>(1) - number<Ball>(x)));
    }
  }
};
template <>
struct body64<ops::logit_backward> : by_formula<logit_backward64> {};

// One addition, and a selection.
template <>
struct body64<ops::softshrink> {
  template <class R>
  REPDL_HD static R lanes(const R& x, const parameters& p) {
    const R l = math<R>::all(p.value[0]);
    const R inside = x == x ? math<R>::all(0) : nan_of<R>();
    const R below = x < -l ? x + l : inside;
    return x > l ? x - l : below;
  }
  REPDL_HD static double eval(double x, const parameters& p) { return lanes(x, p); }
};
template <>
struct body64<ops::softshrink_backward> {
  template <class R>
  REPDL_HD static R lanes(const R& g, const R& x, const parameters& p) {
    const R l = math<R>::all(p.value[0]);
    const R kept = g == g ? g : nan_of<R>();
    return (x >= -l) & (x <= l) ? math<R>::all(0) : kept;
  }
  REPDL_HD static double eval(double g, double x, const parameters& p) { return lanes(g, x, p); }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
