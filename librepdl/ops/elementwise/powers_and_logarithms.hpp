// 10^x, 2^x - 1, 10^x - 1, log2(1 + x) and log10(1 + x).
//
// Binary64. By e^y - 1 and e^y of y = x ln 10 or x ln 2, and ln(1 + x). Of |x| < 2^-100 2^x - 1 is x ln 2 (1 + x ln 2 / 2 + ...), 10^x - 1 x ln 10 (1 + x ln
// 10 / 2 + ...), log2(1 + x) x / ln 2 (1 - x/2 + ...), log10(1 + x) likewise: the first factors within 2^-97 of themselves.
//
// Exact results are those of whole x (Gelfond and Schneider: powers of 2 and 10 with algebraic irrational exponents are transcendental; with rational ones that are
// not whole, irrational). 10^x is a number of binary64 up to x = 22, and at 23 a midpoint; beyond, and for x < 0, it has too many bits for either. 2^x -
// 1 has |x| bits: a number up to 53 of them, a midpoint of 54, where the result is 2^54 or -1. 10^x - 1 is a number up to x = 15 and a midpoint at 16; beyond, and for x
// < 0, it has too many bits. Of narrower formats likewise. Balls of whole numbers are exact, and decide all of these. The logarithms are rational where 1 + x is a power
// of 2, or of 10, and then whole.
//
// Narrower formats, u = 2^-53:
//   10^x = e^t, 10^x - 1 and 2^x - 1 = e^t - 1, with t = x ln 10 or x ln 2 within 1.6 u of itself, |t| <= 106: by expm1.hpp and exp.hpp, 5.5 u. t counts |t| times in e^t, and
//   |t| e^t / |e^t - 1| <= 1 + |t| times in e^t - 1. x is cut down to where the result is beyond 2^129, below 2^-151, or next to -1: 177 u in all.
//   The logarithms by log_core (logarithm.hpp), of 1 + x, exact for |x| >= 1/8 or, for x > 2^29, within u of itself, 2^-57 of its logarithm; 5 u.
#pragma once

#include "librepdl/ops/elementwise/expm1.hpp"
#include "librepdl/ops/elementwise/logarithm.hpp"
#include "librepdl/ops/elementwise/pow_exact.hpp"

namespace repdl::ops {
struct exp10;
struct exp2m1;
struct exp10m1;
struct log2p1;
struct log10p1;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <class Ball>
REPDL_HD Ball ln10() {
  if constexpr (is_multi_limb<Ball>) {
    return logarithm(number<Ball>(10.0));
  } else {
    return constant<Ball>(dd_ln10);
  }
}

// 2^x or 10^x, exactly for whole numbers x, |x| <= 1100, and x from 0 to 32; within a ball elsewhere.
template <int base, class Ball>
REPDL_HD_CALL Ball power_ball(double x) {
  if (base == 2 && is_whole(x)) return scaled(number<Ball>(1.0), static_cast<int>(x));
  if (base == 10 && is_whole(x) && x >= 0 && x <= 32) {
    Ball r = number<Ball>(1.0);
    for (int i = 0; i < static_cast<int>(x); ++i) r = r * number<Ball>(10.0);
    return r;
  }
  return exponential(number<Ball>(x) * (base == 2 ? ln2<Ball>() : ln10<Ball>()));
}

// 10^308.3 > 2^1024, 10^-323.7 < 2^-1075.
struct exp10_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x < 308.3) & (x > -323.7);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x > 0 ? math<R>::all(infinity) : math<R>::all(0);
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> small = magnitude_of(x) < 0x1p-100;  // products with it may underflow: 1, within 2^-98
    const Ball y = select(small, grown(number<Ball>(math<R>::all(0)), math<R>::all(0x1p-98)),
                          number<Ball>(small ? math<R>::all(1) : x) * ln10<Ball>());
    const scaled_ball<R> e = scaled_exponential(y);
    return round_scaled(e.m, e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return power_ball<10, Ball>(x);
  }
  static constexpr double near_error = 0x1p-45;
  REPDL_HD static double near(double x) { return exp_core::eval(within(x, -46, 40) * dd_ln10.hi); }
};
template <>
struct body<ops::exp10> : by_binary64<exp10_64> {};
template <>
struct body64<ops::exp10> : by_formula<exp10_64> {};

// 2^-54 and 10^-16.3 are at most half of the distance from -1 to the next number.
struct exp2m1_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x < 1024) & (x > -54) & (x != 0);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x > 0 ? math<R>::all(infinity) : math<R>::all(-1);
    return x == 0 ? x : x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> small = magnitude_of(x) < 0x1p-100;
    const decided_lanes<R> tiny = round_product(x, grown(ln2<Ball>(), math<R>::all(0x1p-98)), math<R>::all(0));
    const reduced_exponent<R> e = reduce_exponent_of_2(small ? math<R>::all(1) : x);
    Ball z = scaled_minus_one(e);
    z.error = (e.r.hi == 0) & (e.row.hi == 1) & (e.k <= 100) ? math<R>::all(0) : z.error;
    const decided_lanes<R> r = round_scaled(z, e.k);
    return {small ? tiny.value : r.value, small ? tiny.decided : r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return power_ball<2, Ball>(x) - number<Ball>(1.0);
  }
  static constexpr double near_error = 0x1p-45;
  REPDL_HD static double near(double x) { return copy_sign(expm1_core::eval(within(x, -54, 130) * dd_ln2.hi), x); }
};
template <>
struct body<ops::exp2m1> : by_binary64<exp2m1_64> {};
template <>
struct body64<ops::exp2m1> : by_formula<exp2m1_64> {};

struct exp10m1_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x < 308.3) & (x > -16.3) & (x != 0);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    return exp2m1_64::special(x);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> small = magnitude_of(x) < 0x1p-100;
    const decided_lanes<R> tiny = round_product(x, grown(ln10<Ball>(), math<R>::all(0x1p-97)), math<R>::all(0));
    const Ball y = number<Ball>(small ? math<R>::all(1) : x) * ln10<Ball>();
    const reduced_exponent<R> e = reduce_exponent(value_of(y));
    const decided_lanes<R> r = round_scaled(grown(scaled_minus_one(e), 1.5 * y.error), e.k);
    return {small ? tiny.value : r.value, small ? tiny.decided : r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return power_ball<10, Ball>(x) - number<Ball>(1.0);
  }
  static constexpr double near_error = 0x1p-45;
  REPDL_HD static double near(double x) { return copy_sign(expm1_core::eval(within(x, -17, 40) * dd_ln10.hi), x); }
};
template <>
struct body<ops::exp10m1> : by_binary64<exp10m1_64> {};
template <>
struct body64<ops::exp10m1> : by_formula<exp10m1_64> {};

// k log 2 + log(1 + f), of base 2 or 10.
template <int base>
struct logarithm_of_more64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x > -1) & (x < infinity) & (x != 0);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x == -1 ? math<R>::all(-infinity) : x;
    return x >= -1 ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> small = magnitude_of(x) < 0x1p-100;
    const Ball unit = constant<Ball>(base == 2 ? dd_log2_e : dd_log10_e);
    const decided_lanes<R> tiny = round_product(x, grown(unit, math<R>::all(0x1p-99)), math<R>::all(0));
    const R v = small ? math<R>::all(1) : x;
    const double_word<R> one_more = two_sum(v, math<R>::all(1));
    const reduced_logarithm<R> a = reduce_logarithm_1p(double_word<R>{v, math<R>::all(0)}, one_more);
    Ball power = number<Ball>(a.k);
    if constexpr (base == 10) power = power * constant<Ball>(dd_log10_2);
    const decided_lanes<R> r = round_ball(power + logarithm_without_power(a) * unit);
    return {small ? tiny.value : r.value, small ? tiny.decided : r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return logarithm_1p(number<Ball>(x)) / (base == 2 ? ln2<Ball>() : ln10<Ball>());
  }
  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double x) {
    const double r = log_core<std::conditional_t<base == 2, base_2, base_10>>::of_more(x);
    const double end = x < -1 ? nan_of<double>() : infinity;
    return copy_sign((x > -1) & (x < infinity) ? r : end, x);
  }
};
template <>
struct body<ops::log2p1> : by_binary64<logarithm_of_more64<2>> {};
template <>
struct body64<ops::log2p1> : by_formula<logarithm_of_more64<2>> {};
template <>
struct body<ops::log10p1> : by_binary64<logarithm_of_more64<10>> {};
template <>
struct body64<ops::log10p1> : by_formula<logarithm_of_more64<10>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
