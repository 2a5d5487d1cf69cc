// expm1(x) = e^x - 1, binary16, bfloat16 and binary32, correctly rounded.
//
// Method: d = e^x - 1 accurate relative to itself, as in fdlibm's expm1 (Sun Microsystems, 1993), without its quotient; the
// sign is that of x (expm1(-0) = -0). Rounded to the format by the conversion.
//
// Domain: every input. |x| is cut down to 105: e^105 > 2^128, and e^-105 - 1 rounds to -1, as every value beyond them does.
// NaN is put back at the end.
//
// Range reduction:  k = an integer next to x / ln2,  r = x - k ln2,  d = 2^k (e^r - 1) + (2^k - 1),
//                   |k| <= 152, |r| <= ln2/2 + 2^-30; exact up to the last subtraction, as in exp.hpp.
//
// Error budget, relative, u = 2^-53 (with or without FMA):
//   p = r + r^2 q, approximating e^r - 1, relative to itself:
//     polynomial, certified by reference/gen/expm1.sollya: 0x1.68p-56                0.18 u
//     r^2 q, |r^2 q| < 0.25 |p|: 3.5 u times 0.25                                    0.9  u
//     sum                                                                            1    u
//   d: k = 0: d = p (r = x is exact)                                                 2.1  u
//      k > 0: |p| 2^k / d <= 1.42 and 2^k / d <= 4.9 (both at k = 1, r = -ln2/2);
//             p's error, 2^-55 of r, and one sum (2^k p is exact)                    5.3  u
//      k < 0: |p| 2^k / |d| <= 0.71 and 2^k / |d| <= 1.71 (both at k = -1, r = ln2/2);
//             likewise; below k = -53, 2^k - 1 is rounded to -1, half a u more                           < 4 u
//   exact: 2^k - 1 for |k| <= 53, 2^k p; above, 2^k - 1 is one more rounding, of 2^k / d <= 1.42
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct expm1;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// e^x - 1 for binary64 numbers |x| <= 105. Relative error < 5.5 * 2^-53. (x = -0 gives +0.)
struct expm1_core {
  // reference/gen/expm1.sollya
  static constexpr double c2 = 0x1.0000000000005p-1, c3 = 0x1.555555555553bp-3, c4 = 0x1.5555555552111p-5,
                          c5 = 0x1.1111111118833p-7, c6 = 0x1.6c16c17f2d325p-10, c7 = 0x1.a01a0177ef8dep-13,
                          c8 = 0x1.a019a6a84b11bp-16, c9 = 0x1.71de8115c2875p-19, c10 = 0x1.28a2879f6a954p-22,
                          c11 = 0x1.ae7759161b75ap-26;

  // For unpacked T without the last four terms and ln2_lo, as in exp.hpp.
  template <class T = float>
  REPDL_HD static double eval(double x) {
    const double t = muladd(x, exp_core::log2e, exp_core::shifter);
    const double k = t - exp_core::shifter;
    double r = muladd(k, -exp_core::ln2_hi, x);
    if constexpr (!is_unpacked<T>) r = muladd(k, -exp_core::ln2_lo, r);
    double q = c7;
    if constexpr (!is_unpacked<T>) {
      q = muladd(c11, r, c10);
      q = muladd(q, r, c9);
      q = muladd(q, r, c8);
      q = muladd(q, r, c7);
    }
    q = muladd(q, r, c6);
    q = muladd(q, r, c5);
    q = muladd(q, r, c4);
    q = muladd(q, r, c3);
    q = muladd(q, r, c2);
    const double p = muladd(q, r * r, r);
    const double scale = double_of((bits_of(t) << 52) + 0x3ff0000000000000);
    return muladd(scale, p, scale - 1.0);
  }
};

template <>
struct body<ops::expm1> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const T d = round_no_midpoint<T>(expm1_core::eval<T>(static_cast<double>(clamp_magnitude(v, 105.0f))));
    const auto r = static_cast<storage_of<T>>(to_bits(d) | (to_bits(x) & sign_mask<T>));
    return from_bits<T>(v != v ? format<T>::nan : r);
  }
};

// 2^-k (e^x - 1) of what was reduced with k, for k > -60: E + (1 - 2^-k) with E = e^r - 1; k = 0 leaves E; else the sum is at least 0.2, and 2^-k
// is exact, or for k > 100 nothing beside the error.
template <class R>
REPDL_HD dd_ball<R> scaled_minus_one(const reduced_exponent<R>& e) {
  using Ball = dd_ball<R>;
  const R power = power_of(e.k > 100 ? math<R>::all(-100) : -e.k);
  if constexpr (uses_tables) {
    // Within 2^-70.5, or 2^-99 of it more where k > 100.
    const double_word<R> z = exp_reduced_less(e, power);
    return {z.hi, z.lo, 0x1p-69 * magnitude_of(z.hi)};
  } else {
    const double_word<R> p = exp_reduced<true>(e);
    const Ball reduced{p.hi, p.lo, 0x1.8p-69 * magnitude_of(p.hi) + 1.5 * e.error};
    const mask_of<R> none = e.k == 0;
    const Ball one = number<Ball>(none ? math<R>::all(0) : math<R>::all(1));
    const Ball less = number<Ball>(none ? math<R>::all(0) : -power);
    return grown((reduced + one) + less, none ? math<R>::all(0) : math<R>::all(0x1p-99));
  }
}

// Binary64. |x| < 2^-54: x + x^2/2 + ... rounds to x, for x^2/2 < 2^-55 |x| is less than half of the distance to either neighbour. Below -38,
// e^x < 2^-54 and the result is -1. No midpoints: e^x is transcendental.
struct expm1_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 709.8) & (x >= -38) & (magnitude_of(x) >= 0x1p-54);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x > 1 ? math<R>::all(infinity) : math<R>::all(-1);
    const R far = magnitude_of(x) > 1 ? limit : x;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const reduced_exponent<R> e = reduce_exponent(double_word<R>{x, math<R>::all(0)});
    return round_scaled(scaled_minus_one(e), e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return exponential_minus_one(number<Ball>(x));
  }
};
template <>
struct body64<ops::expm1> : by_formula<expm1_64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
