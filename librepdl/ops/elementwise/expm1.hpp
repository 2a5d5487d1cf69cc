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

}  // namespace REPDL_ISA
}  // namespace repdl::num
