// exp(x), binary16, bfloat16 and binary32, correctly rounded.
//
// Method: two-term range reduction and one polynomial in binary64, after P. T. P. Tang, "Table-driven implementation of
// the exponential function in IEEE floating-point arithmetic", ACM TOMS 15 (1989), without the table; rounded to
// binary32 by the conversion, which also does overflow and subnormal results.
//
// Domain: every input. |x| is first cut down to 105: e^105 > 2^128 and e^-105 < 2^-150 round as every value beyond them
// does. NaN is put back at the end.
//
// Range reduction:  k = an integer next to x / ln2,  r = x - k ln2,  e^x = 2^k e^r,  |k| <= 152, |r| <= ln2/2 + 2^-30.
// - k: the last bits of x log2e + 1.5 * 2^52. The errors before that rounding are below 2^-44 and widen r's interval by
//   far less than 2^-30.
// - ln2_hi has 45 bits (a multiple of 2^-45), ln2_hi + ln2_lo = ln2 (1 + d), |d| < 2^-100.
// - k ln2_hi is exact (8 + 45 bits). x - k ln2_hi is exact: k = 0, or |x| > 1/4 is a multiple of 2^-54 (of 2^-25, in
//   binary32), and so is the difference, below 1/2. So a fused and an unfused multiply-add give the same.
//
// Error budget, relative to e^x, u = 2^-53 (with or without FMA):
//   subtraction of k ln2_lo, |r| < 1/2: 2^-55 on r                                   0.25 u
//   k ln2_lo (< 2^-40) and its constant                                              < 0.01 u
//   polynomial, certified by reference/gen/exp.sollya: 0x1.4ep-52                    2.61 u
//   q1 = 1 + r q2 (|r q2| < 0.22): 1.13 u, times |r| / e^r <= 0.5                    0.57 u
//   q2 (0.4 to 0.6) and all earlier steps: 0.65 u, times r^2 / e^r <= 0.17, falling  0.2  u
//   r q1 where it is rounded by itself (< 0.42): 0.25 u, relative to e^r >= 0.7      0.36 u
//   1 + r q1                                                                         1    u
//   sum                                                                              < 5.1 u < 2^-50.6
//   exact: e^0 = 1 (r = 0), multiplication by 2^k (p is in [0.7, 1.42], so nothing over- or underflows)
//
// Proved by enumeration: the bound leaves inputs undecided whose e^x lies within 2^-26 ulp of a midpoint; a sweep over all
// 2^32 inputs against MPFR decides them, for each compiled binary. So do those over all 2^16 inputs of the narrow
// formats, whose |x| is cut down to 105, too.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct exp;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// e^x for binary64 numbers |x| <= 110. Relative error < 5.1 * 2^-53.
struct exp_core {
  // reference/gen/exp.sollya
  static constexpr double log2e = 0x1.71547652b82fep0;
  static constexpr double ln2_hi = 0x1.62e42fefa3ap-1;
  static constexpr double ln2_lo = -0x1.0ca86c3898dp-49;
  static constexpr double shifter = 0x1.8p52;  // ulp 1, room for either sign
  static constexpr double c2 = 0x1.ffffffffffed2p-2, c3 = 0x1.55555555507c5p-3, c4 = 0x1.5555555589107p-5,
                          c5 = 0x1.11111125b3efcp-7, c6 = 0x1.6c16c0c825acap-10, c7 = 0x1.a0198d5839fefp-13,
                          c8 = 0x1.a01b7c68fe1f2p-16, c9 = 0x1.72e91b114312ap-19, c10 = 0x1.27079210d6464p-22;

  // For unpacked T the last four terms and ln2_lo are left out: all 2^16 inputs are compared, with FMA and without.
  template <class T = float>
  REPDL_HD static double eval(double x) {
    const double t = muladd(x, log2e, shifter);
    const double k = t - shifter;
    if constexpr (is_unpacked<T>) {
      return power<T>(t, muladd(k, -ln2_hi, x));
    } else {
      return power<T>(t, muladd(k, -ln2_lo, muladd(k, -ln2_hi, x)));
    }
  }
  // e^(x + low), |low| < 2^-45; the same bound.
  REPDL_HD static double eval(double x, double low) {
    const double t = muladd(x, log2e, shifter);
    const double k = t - shifter;
    return power<float>(t, muladd(k, -ln2_hi, x) + muladd(k, -ln2_lo, low));
  }

 private:
  template <class T>
  REPDL_HD static double power(double t, double r) {
    double p = c6;
    if constexpr (!is_unpacked<T>) {
      p = muladd(c10, r, c9);
      p = muladd(p, r, c8);
      p = muladd(p, r, c7);
      p = muladd(p, r, c6);
    }
    p = muladd(p, r, c5);
    p = muladd(p, r, c4);
    p = muladd(p, r, c3);
    p = muladd(p, r, c2);
    p = muladd(p, r, 1.0);
    p = muladd(p, r, 1.0);
    return double_of(bits_of(p) + (bits_of(t) << 52));
  }
};

// e^(x + low) for |x| <= 210, |low| < 2^-44: the square of e^(x/2 + low/2), whose error counts twice, rounded. Relative error
// < 11.3 * 2^-53.
REPDL_HD double exp_by_square(double x, double low) {
  const double root = exp_core::eval(0.5 * x, 0.5 * low);
  return root * root;
}

template <>
struct body<ops::exp> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double e = exp_core::eval<T>(static_cast<double>(clamp_magnitude(v, 105.0f)));
    // e is a number, and narrow would ask whether it is one.
    if constexpr (std::is_same_v<T, float>) return v != v ? float_of(format<T>::nan) : static_cast<float>(e);
    const T rounded = round_no_midpoint<T>(e);
    return v != v ? bit_cast<T>(format<T>::nan) : rounded;
  }
};

// Binary64. e^709.8 > 2^1024, and e^-745.2 < 2^-1075 rounds to 0. e^x is transcendental for x != 0: no midpoint; of a small x, which double-doubles
// see as 1 with their error, it rounds to 1.
struct exp64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 709.8) & (x >= -745.2);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x > 0 ? math<R>::all(infinity) : math<R>::all(0);
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    if constexpr (uses_tables) {
      const reduced_exponent<R> e = reduce_exponent(double_word<R>{x, math<R>::all(0)});
      const double_word<R> m = exp_reduced<false>(e);
      return round_scaled_within(m, exp_reduced_error, e.k);
    } else {
      const scaled_ball<R> e = scaled_exponential(number<dd_ball<R>>(x));
      return round_scaled(e.m, e.k);
    }
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return exponential(number<Ball>(x));
  }
};
template <>
struct body64<ops::exp> : by_formula<exp64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
