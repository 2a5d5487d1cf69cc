// log(x), the natural logarithm, binary16, bfloat16 and binary32, correctly rounded. The narrow formats use logarithm.hpp's core;
// the rest is about binary32.
//
// Method: the reduction of fdlibm's log (Sun Microsystems, 1993): ln(1 + f) = f - f^2/2 + s (f^2/2 + R), with the
// leading terms exact here, which leaves a small correction. The result is a sum of two binary64 numbers, rounded to
// odd: two inputs, 0x4c5d65a5 and 0x65d890d3, have logarithms within 2^-33 ulp of a midpoint, nearer than binary64's
// rounding.
//
// Domain: x > 0 finite; log(+-0) = -inf, log(x < 0) = NaN, log(inf) = inf, put in at the end.
//
// Range reduction:  x = 2^e m,  sqrt(1/2) <= m < sqrt 2,  f = m - 1,  s = f / (2 + f),  z = s^2
//                   ln x = e ln2 + 2 atanh(s) = e ln2 + (f - f^2/2) + s (f^2/2 + R(z)),  R(z) = 2/3 z + 2/5 z^2 + ...
// - 2 s = f - s f and s f = f^2/2 - s f^2/2. In binary64 binary32's subnormals are normal: -149 <= e <= 128.
// - Exact: m and f (24 bits), f^2/2 (48 bits, a multiple of 2^-49), f - f^2/2 (a multiple of 2^-49 below 1/2), 2 + f,
//   e ln2_hi (8 + 45 bits).
// - Exact, too, the two sums of head and sum: e = 0, or |e ln2_hi| > 0.69 > 0.35 > |f - f^2/2|; and |head.lo + t| <
//   |head.hi|, or both are 0 (x = 1).
//
// Error budget, absolute, |s| <= 0.1716, z <= 0.02945, |f| <= 0.4143:
//   R's polynomial, certified by reference/gen/log.sollya: 0x1.63p-52 z |s|          2^-59.1
//   s: 2^-53 relative, twice that in z; in s (f^2/2 + R), at most 0.019              2^-57.1
//   Horner steps and p z: 3 * 2^-53 relative in R <= 0.0205, times |s|               2^-59.5
//   f^2/2 + R < 0.125: 2^-57, times |s|                                              2^-59.5
//   products and sum of t < 0.02: 2^-59 each, three                                  2^-57.4
//   e ln2_lo (< 2^-41), its constant                                                 < 2^-90
//   head.lo + t < 2^-5                                                               2^-59
//   sum                                                                              < 2^-55.7
// Where e = 0, head.lo = 0 and t is f^3/4 + ...: the errors are relative to t and vanish beside ln x as f goes to 0.
//
// Rounding: the sum hi + lo, hi = RN(hi + lo), is truncated and its last bit set. ln x is irrational except ln 1 = 0,
// where the bit gives 2^-1074, which converts to +0.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary. So is one over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/logarithm.hpp"

namespace repdl::ops {
struct log;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::log> {
  // reference/gen/log.sollya
  static constexpr double ln2_hi = 0x1.62e42fefa3ap-1;
  static constexpr double ln2_lo = -0x1.0ca86c3898dp-49;
  static constexpr double c1 = 0x1.5555555555558p-1, c2 = 0x1.99999999952d9p-2, c3 = 0x1.2492492df75b2p-2,
                          c4 = 0x1.c71c62dc17c4bp-3, c5 = 0x1.7462b76fd5d4bp-3, c6 = 0x1.39fe05dd846afp-3,
                          c7 = 0x1.2b5c824e8c644p-3;

  REPDL_HD static float eval(float x) {
    constexpr std::uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;  // 1, RN(sqrt(1/2))
    const std::uint64_t u = bits_of(static_cast<double>(x));
    const std::uint64_t biased = (u + (one - sqrt_half)) >> 52;
    // biased = e + 1023 < 2^52: under the exponent of 2^52 it is 2^52 + biased.
    const double e = double_of(biased | 0x4330000000000000) - 0x1.00000000003ffp52;
    const double m = double_of(u - (biased << 52) + one);
    const double f = m - 1.0;
    const double half_square = 0.5 * f * f;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double p = muladd(c7, z, c6);
    p = muladd(p, z, c5);
    p = muladd(p, z, c4);
    p = muladd(p, z, c3);
    p = muladd(p, z, c2);
    p = muladd(p, z, c1);
    const double t = muladd(s, muladd(p, z, half_square), e * ln2_lo);
    const dd head = fast_two_sum(e * ln2_hi, f - half_square);
    const dd sum = fast_two_sum(head.hi, head.lo + t);
    std::uint32_t r = bits_of(static_cast<float>(round_to_odd(sum.hi, sum.lo, 1)));
    r = bits_of(x) == format<float>::infinity ? format<float>::infinity : r;
    r = x == 0 ? 0xff800000 : r;
    return float_of(x >= 0 ? r : format<float>::nan);
  }

  template <class T>
  requires is_small_float<T> REPDL_HD static T eval(T x) {
    using core = log_core<base_e>;
    const float v = widen_to_float(x);
    return with_pole<T>(v, 0, core::sum<T>(core::reduce(static_cast<double>(v))).hi);
  }
};

// Binary64. ln x is transcendental for x != 1: no midpoints.
struct log64 : logarithm64 {
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    if constexpr (uses_tables && has_fast_fma) {
      const mask_of<R> subnormal = x < 0x1p-1022;
      const R e = subnormal ? math<R>::all(-54) : math<R>::all(0);
      const short_logarithm<R> log = logarithm_by_short_table(subnormal ? 0x1p54 * x : x, e);
      return round_within(log.value, log.error);
    } else if constexpr (uses_tables) {  // without FMA, short tables save nothing
      return round_ball(join_logarithm<false>(reduce_any_logarithm(x)));
    } else {
      const logarithm64_parts<R> a = logarithm64_of(x);
      const double_word<R> s = fast_two_sum(a.k * ln2_parts[0], a.k * ln2_parts[1]);
      const double_word<R> power = fast_two_sum(s.hi, s.lo + a.k * ln2_parts[2]);
      return round_ball(dd_ball<R>{power.hi, power.lo, magnitude_of(a.k) * 0x1p-94} + a.log);
    }
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return logarithm(number<Ball>(x));
  }
};
template <>
struct body64<ops::log> : by_formula<log64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
