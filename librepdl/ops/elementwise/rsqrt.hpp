// rsqrt(x) = 1 / sqrt(x), binary16, bfloat16 and binary32, correctly rounded.
//
// Method: an estimate in binary32 and one step of the third order in binary64,
//                   1/sqrt(x) = y (1 - e)^(-1/2) = y (1 + e/2 + 3/8 e^2 + ...),  e = 1 - x y^2.
//
// Domain: x > 0 finite. Else the estimate is the result: rsqrt(+-0) = +-inf, rsqrt(inf) = +0, NaN for x < 0; e is NaN then.
//
// Error budget, relative, u = 2^-53 (with or without FMA):
//   the estimate, whoever makes it, is within 2^-22 (two roundings; CUDA: 2 ulp): |e| < 2^-20.9; 5/16 e^3   2^-64
//   e: x y^2 (y^2 is exact, 48 bits) and the difference, 1.1 u, times 1/2                                    0.6 u
//   the correction < 2^-21.9: its roundings                                                                  < 0.01 u
//   the last sum                                                                                             1 u
//   sum                                                                                                      < 2^-52.3
// Exact: x = 2^j / n^2 with an odd n is a number for n = 1 alone: powers of 4; so no result is a midpoint. Two binades of
// x, 2^24 numbers, give every significand of a result: the nearest midpoint is expected at 2^-25 ulp, 2^-49 relative.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct rsqrt;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::rsqrt> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    if constexpr (is_unpacked<T>) return {reciprocal_root_estimate(v)};  // enough: all 2^16 inputs are compared
    const double y = static_cast<double>(reciprocal_root_estimate(v));
    const double e = muladd(-static_cast<double>(v), y * y, 1.0);
    const double r = muladd(y * e, muladd(e, 0.375, 0.5), y);
    return narrow<T>(e == e ? r : y);
  }
};

// Binary64. No midpoints: m^2 x = 1 with dyadic m and x makes both powers of 2, and results are no subnormal numbers.
struct rsqrt64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x > 0) & is_finite(x);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x == 0 ? copy_sign(math<R>::all(infinity), x) : nan_of<R>();
    return x > 0 ? math<R>::all(0) : far;
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x) {
    return number<Ball>(1) / square_root(number<Ball>(x));
  }
};
template <>
struct body64<ops::rsqrt> : by_formula<rsqrt64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
