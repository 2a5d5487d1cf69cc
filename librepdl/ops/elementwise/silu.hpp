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

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"

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

// Binary64, as sigmoid64: |x| a / (1 + a) for x < 0, less than 2^-1075 beyond -752; x > 40: x (1 - a) rounds to x. x / 2 + x^2 / 4 - ... is next
// to x / 2, which may be a midpoint of subnormal numbers: the value is greater than it. Else no midpoints.
struct silu64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 40) & (x >= -752) & (x != 0);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x < -1 ? math<R>::all(-0.0) : x;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const scaled_ball<R> a = scaled_exponential(number<Ball>(-magnitude_of(x)));
    const mask_of<R> far = x < -1;  // then the product with |x| is at least 1/2
    const mask_of<R> negative = x < 0;
    const Ball s = power_ball(a, far);
    const Ball numerator = select(negative, s, number<Ball>(1)) * number<Ball>(magnitude_of(x));
    const Ball value = numerator / (number<Ball>(1) + sigmoid64::beside_one(a));
    const decided_lanes<R> scaled = round_scaled(value, far ? a.k : math<R>::all(0));
    const decided_lanes<R> near = round_ball(value);
    return {copy_sign(far ? scaled.value : near.value, x), far ? scaled.decided : near.decided};
  }
  // m where it stays scaled, else m 2^k.
  template <class R>
  REPDL_HD static dd_ball<R> power_ball(const scaled_ball<R>& a, mask_of<R> stays) {
    const R s = power_of(stays ? math<R>::all(0) : a.k);
    return {a.m.hi * s, a.m.lo * s, a.m.error * s};
  }
  template <class Ball>
  REPDL_HD static auto formula(double x) {
    constexpr int L = limbs_of_ball<Ball>;
    const Ball value = number<Ball>(x) / (number<Ball>(1) + exponential(number<Ball>(-x)));
    return beside<L>{value, scaled(number<Ball>(x), -1), 1};
  }
};
template <>
struct body64<ops::silu> : by_formula<silu64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
