// exp2(x) = 2^x, binary16, bfloat16 and binary32, correctly rounded.
//
// Method: 2^x = 2^k 2^r, k an integer next to x, r = x - k exactly, |r| <= 1/2; one polynomial in binary64.
//
// Domain: every input. |x| is cut down to 151: 2^151 and 2^-151 round as every value beyond them does. In the narrow formats x is
// cut down to 128 and, from the tie 2^(emin - p) = half the least number downwards, to emin - p - 1, whose 2^x rounds to +0 as the
// tie does. NaN is put back at the end. Integers: r = 0, 2^k is exact.
//
// Error budget, relative to 2^x, u = 2^-53 (with or without FMA):
//   polynomial, certified by reference/gen/exp2.sollya: 0x1.223p-49                  18.14 u
//   q (0.5 to 1): its last step, 1 u (two roundings), times |r| / 2^r < 0.71         0.71 u
//   all earlier steps: 0.5 u in c1 + r (...), times r^2 / 2^r < 0.36                 0.2  u
//   r q where it is rounded by itself (< 0.42): 0.25 u, relative to 2^r >= 0.7       0.36 u
//   1 + r q                                                                          1    u
//   sum                                                                              < 20.5 u; 2^k: exact
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats. 2^x of 0x3b429d37 and 0xbcf3a937 is within 2^-53 of a midpoint, which the nearest binary64 number is, and
// which rounds to the other side: the polynomial is made so much too large there.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct exp2;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// 2^x for |x| <= 1000. Relative error < 20.5 * 2^-53; none for integers.
struct exp2_core {
  // reference/gen/exp2.sollya
  static constexpr double shifter = 0x1.8p52;  // ulp 1, room for either sign
  static constexpr double c1 = 0x1.62e42fefa3a1cp-1, c2 = 0x1.ebfbdff82e612p-3, c3 = 0x1.c6b08d7040f24p-5,
                          c4 = 0x1.3b2ab6f7229bbp-7, c5 = 0x1.5d87fe8e02ad5p-10, c6 = 0x1.43091f6b113e3p-13,
                          c7 = 0x1.ffcb903dd08ep-17, c8 = 0x1.62a4e33396d01p-20, c9 = 0x1.b631e634e482ap-24,
                          c10 = 0x1.074e35d392ee1p-27;

  // For unpacked T without the last three terms: all 2^16 inputs are compared, with FMA and without.
  template <class T = float>
  REPDL_HD static double eval(double x) {
    const double t = x + shifter;
    const double r = x - (t - shifter);
    double p = c7;
    if constexpr (!is_unpacked<T>) {
      p = muladd(c10, r, c9);
      p = muladd(p, r, c8);
      p = muladd(p, r, c7);
    }
    p = muladd(p, r, c6);
    p = muladd(p, r, c5);
    p = muladd(p, r, c4);
    p = muladd(p, r, c3);
    p = muladd(p, r, c2);
    p = muladd(p, r, c1);
    p = muladd(p, r, 1.0);
    return double_of(bits_of(p) + (bits_of(t) << 52));
  }
};

template <>
struct body<ops::exp2> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    if constexpr (std::is_same_v<T, float>) {
      const double power = exp2_core::eval<T>(static_cast<double>(clamp_magnitude(v, 151.0f)));
      // It is a number, and narrow would ask whether it is one.
      return v != v ? float_of(format<T>::nan) : static_cast<float>(power);
    } else {
      constexpr float tie = format<T>::emin - format<T>::precision;
      const float above = v > tie ? v : tie - 1;
      const float c = above < 128 ? above : 128.0f;
      const T r = round_no_midpoint<T>(exp2_core::eval<T>(static_cast<double>(c)));
      return from_bits<T>(v != v ? format<T>::nan : to_bits(r));
    }
  }
};

// Binary64. 2^x is rational for whole x only: no midpoint but 2^-1075, whose result, as that of what is less, is 0. Of a whole x
// everything is exact.
struct exp2_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x < 1024) & (x > -1075);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x > 0 ? math<R>::all(infinity) : math<R>::all(0);
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const reduced_exponent<R> e = reduce_exponent_of_2(x);
    const double_word<R> m = exp_reduced<false>(e);
    const mask_of<R> exact = (e.r.hi == 0) & (e.row.hi == 1);
    return round_scaled(dd_ball<R>{m.hi, m.lo, exact ? math<R>::all(0) : exp_reduced_error * m.hi}, e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return exponential(number<Ball>(x) * ln2<Ball>());
  }
};
template <>
struct body64<ops::exp2> : by_formula<exp2_64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
