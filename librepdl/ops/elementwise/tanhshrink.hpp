// tanhshrink(x) = x - tanh x, correctly rounded.
//
// Method: for |x| < 3/4 the odd series x^3/3 (1 + z P(z)), z = x^2; beyond, (|x| - 1) + 2 / (e^(2|x|) + 1) with
// exp.hpp's exponential, where little cancels. Both are sums of two binary64 numbers, rounded to odd.
//
// Domain: every input. |x| is cut down to 10 in the exponential: from there on the result is |x| - 1 + r with 0 < r <
// 2^-27, less than half an ulp, and what is computed is such a number, too. For 2^24 < |x| <= 2^25 (2^p in general)
// |x| - 1 is a midpoint and r gives |x|. From 2^26 on the result is x; of +-0 it is +0, else it has the sign of x.
//
// |x| < 3/4. Error budget, relative, u = 2^-53:
//   x^3/3: z is exact (48 bits), z |x| 1 u, its third 1.5 u                          2.5 u
//   series, certified by reference/gen/tanhshrink.sollya: 0x1.9fp-55                 0.4 u
//   z P (|z P| < 0.19): 1.6 u of P, two products and one more, times 0.19 / 0.81      1.2 u
//   sum                                                                              4.1 u < 2^-50.9
// x^3/3 is a midpoint for some x, such as 3 * 2^-50. Then x^3 = 3 m has at most 27 bits and x^3/3 is exact (division by
// 3 in activation.hpp); z P < 0 breaks the tie however small it is.
//
// |x| >= 3/4. Error budget, relative to the result v >= 0.114:
//   e^(2|x|): 5.1 u (exp.hpp), times 2 e^(2|x|) / (e^(2|x|) + 1)^2 / v               < 15 u
//   sum and quotient (2 u of at most 0.365), over v                                  < 6.5 u
//   the sum |x| - 1 + y, exact: |x| - 1 is a multiple of y's last bit                0
//   sum                                                                              < 21.5 u at 3/4, 7 u at 1, falling
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct tanhshrink;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::tanhshrink> {
  // reference/gen/tanhshrink.sollya
  static constexpr double third = 0x1.5555555555555p-2;
  static constexpr double c0 = -0x1.999999999999ap-2, c1 = 0x1.4b94b94b8fde2p-3, c2 = -0x1.0cbb765f8770dp-4,
                          c3 = 0x1.b3a54f01719a1p-6, c4 = -0x1.611ebec5a2bfep-7, c5 = 0x1.1e388004355dp-8,
                          c6 = -0x1.cfd54a47c2853p-10, c7 = 0x1.76b035b89bcf5p-11, c8 = -0x1.292ec271f6e53p-12,
                          c9 = 0x1.b53ca04e4d88fp-14, c10 = -0x1.0109f86963898p-15, c11 = 0x1.53ec987433219p-18;

  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double a = static_cast<double>(with_sign(v, 1.0f));
    const double e = exp_core::eval<T>(2.0 * (a < 10 ? a : 10.0));
    const dd far = fast_two_sum(a - 1.0, 2.0 / (e + 1.0));
    const double z = a * a;
    const double cube = z * a * third;
    double p = muladd(c11, z, c10);
    p = muladd(p, z, c9);
    p = muladd(p, z, c8);
    p = muladd(p, z, c7);
    p = muladd(p, z, c6);
    p = muladd(p, z, c5);
    p = muladd(p, z, c4);
    p = muladd(p, z, c3);
    p = muladd(p, z, c2);
    p = muladd(p, z, c1);
    p = muladd(p, z, c0);
    const dd near = fast_two_sum(cube, cube * (z * p));
    const bool is_near = a < 0.75;
    const double hi = is_near ? near.hi : far.hi;
    const double lo = is_near ? near.lo : far.lo;
    const double r = with_sign(round_to_odd(hi, lo, 1), static_cast<double>(v));
    const double large = a < 0x1p26 ? r : static_cast<double>(v);
    return narrow<T>(v == 0 ? 0.0 : large);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
