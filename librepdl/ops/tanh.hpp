// tanh(x), binary32, correctly rounded.
//
// Method: tanh |x| = d / (d + 2), d = e^(2|x|) - 1, in binary64, with d accurate relative to itself as in fdlibm's
// expm1 (Sun Microsystems, 1993); the sign is that of x. Rounded to binary32 by the conversion.
//
// Domain: every input. |x| is cut down to 10: tanh(10) > 1 - 2^-27 rounds to 1, as every value beyond it does. NaN is
// put back at the end.
//
// Range reduction:  a = 2 |x|,  k = an integer next to a / ln2,  r = a - k ln2,  d = 2^k (e^r - 1) + (2^k - 1),
//                   0 <= k <= 29, |r| <= ln2/2 + 2^-30; exact up to the last subtraction, as in exp.hpp.
//
// Error budget, relative, u = 2^-53 (with or without FMA):
//   p = r + r^2 q, approximating e^r - 1, relative to itself:
//     polynomial, certified by reference/gen/tanh.sollya: 0x1.68p-56                 0.18 u
//     r^2 q, |r^2 q| < 0.25 |p|: 3.5 u times 0.25                                    0.9  u
//     sum                                                                            1    u
//   d: k = 0: d = p (r = a is exact)                                                 2.1  u
//      k > 0: |p| 2^k / d <= 1.42 and 2^k / d <= 4.9 (both at k = 1, r = -ln2/2);
//             p's error, 2^-55 of r, and one sum (2^k p is exact)                    5.3  u
//   d / (d + 2): an error of d counts 2 / (d + 2) < 1; two roundings                 2    u
//   sum                                                                              < 7.5 u < 2^-50
//   exact: 2^k - 1, 2^k p; tanh(+-0) = +-0 (d = 0)
// For |x| < 2^-12, subnormals included, tanh x = x (1 - x^2/3 + ...) rounds to x with room for that error.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary.
#pragma once

#include "librepdl/ops/exp.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// e^a - 1 for binary64 numbers |a| <= 40; the budget of d above, for a < 0 (2^k |p| / |d| <= 0.71, 2^k / |d| <= 1.8) too.
struct expm1_core {
  // reference/gen/tanh.sollya
  static constexpr double c2 = 0x1.0000000000005p-1, c3 = 0x1.555555555553bp-3, c4 = 0x1.5555555552111p-5,
                          c5 = 0x1.1111111118833p-7, c6 = 0x1.6c16c17f2d325p-10, c7 = 0x1.a01a0177ef8dep-13,
                          c8 = 0x1.a019a6a84b11bp-16, c9 = 0x1.71de8115c2875p-19, c10 = 0x1.28a2879f6a954p-22,
                          c11 = 0x1.ae7759161b75ap-26;

  REPDL_HD static double eval(double a) {
    const double t = muladd(a, exp_core::log2e, exp_core::shifter);
    const double k = t - exp_core::shifter;
    const double r = muladd(k, -exp_core::ln2_lo, muladd(k, -exp_core::ln2_hi, a));
    double q = muladd(c11, r, c10);
    q = muladd(q, r, c9);
    q = muladd(q, r, c8);
    q = muladd(q, r, c7);
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
struct body<ops::tanh> {
  REPDL_HD static float eval(float x) {
    const std::uint32_t sign = bits_of(x) & 0x80000000;
    const double a = 2.0 * static_cast<double>(clamp_magnitude(float_of(bits_of(x) ^ sign), 10.0f));
    const double d = expm1_core::eval(a);
    const std::uint32_t y = bits_of(static_cast<float>(d / (d + 2.0))) | sign;
    return float_of(x != x ? format<float>::nan : y);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
