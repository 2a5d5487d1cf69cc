// silu(x) = x / (1 + e^-x), correctly rounded.
//
// Method: as sigmoid.hpp: the formula in binary64 with exp.hpp's e^-x, and near 0 x/2 + (x/2) tanh(x/2), rounded to
// odd.
//
// Domain: every input. |x| is cut down to 110 but in the numerator of positive x: silu(x) rounds to x from 20 on, and
// |silu(x)| < 2^-150 below -110. For |x| <= 110 exp.hpp's bounds hold: |k| <= 159 < 2^8. The result has the sign of x.
//
// |x| >= 2^-8. Error budget, relative, u = 2^-53:
//   e^-x: 5.1 u (exp.hpp), times e^-x / (1 + e^-x) < 1                               5.1 u
//   1 + e^-x, the quotient                                                           2   u
//   sum                                                                              7.1 u < 2^-50.1
//
// |x| < 2^-8: h + l, h = x/2, l = x^2 (1/4 + c4 x^2 + c6 x^4). Error budget, relative to l:
//   series, certified by reference/gen/silu.sollya: 0x1.bbp-59                       0.03 u
//   the factor of x^2 (exact), its product                                           2.1 u
//   h + l exactly (fast_two_sum, |l| < |h|), truncated, last bit set                 0
// Binary64 is not enough: x/2 + x^2/4 is a midpoint for x = 2^-23, a tie that -x^4/48 breaks, x^2/12 > 2^-49.6 of l;
// and x/2 is one for every odd multiple of the least subnormal number, which l > 0 breaks.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct silu;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::silu> {
  // reference/gen/silu.sollya
  static constexpr double c4 = -0x1.5555555555555p-6, c6 = 0x1.1111111111111p-9;

  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double c = static_cast<double>(clamp_magnitude(v, 110.0f));
    const double n = v > 110 || v != v ? static_cast<double>(v) : c;
    // Unpacked: all 2^16 inputs are compared, with FMA and without. |x| < 2^-40, only in bf16: x/2 (1 + 2^-41 or less), on the right side of midpoints x/2.
    if constexpr (is_unpacked<T>) {
      const double least = with_sign(0x1p-40, c);
      return narrow<T>(with_sign(n / (1.0 + exp_core::eval<T>(with_sign(c, 1.0) > 0x1p-40 ? -c : -least)), c));
    }
    const double y = n / (1.0 + exp_core::eval(-c));
    const double z = c * c;
    const dd sum = fast_two_sum(0.5 * c, z * muladd(muladd(c6, z, c4), z, 0.25));
    const double centre = round_to_odd(sum.hi, sum.lo, 1);
    const double r = with_sign(c, 1.0) < 0x1p-8 ? centre : y;
    return narrow<T>(with_sign(r, c));
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
