// log_sigmoid(x) = -ln(1 + e^-x), binary16, bfloat16 and binary32, correctly rounded.
//
// Method: min(x, 0) - ln(1 + z), z = e^-|x|, in binary64: exp.hpp's z, logarithm.hpp's polynomial; the last sum is rounded to
// odd (eft.hpp): 0xb9ea41d0 has its value within 2^-33 ulp of a midpoint.
//
// Domain: every input. |x| is cut down to 105 in z: above, the result rounds to -0 (e^-105 < 2^-150), below, to x. -inf and
// NaN are put back at the end.
//
// Range reduction:  1 + f = c (1 + z),  c = 1 for z < s - 1, 1/2 for z > 2 lo - 1 (lo, s: logarithm.hpp), else the c of base e;
//                   f = c z + (c - 1), so that nothing is lost in 1 + z.   ln(1 + z) = h + tail + ln(1 + f)
//
// Error budget, u = 2^-53 (with or without FMA), relative to the result y, |y| >= ln(1 + z) =: l:
//   z: 5.1 u (exp.hpp), times z / ((1 + z) l) <= 1                                   5.1 u
//   c = 1 (f = z): 3 u of ln(1 + f)'s three steps                                    3   u
//   else, absolute, l >= 0.17: c z and f, 2^-54 and 2^-56; ln(1 + f) < 0.19 (3 steps), 2^-55; min(x, 0) - h, 2^-53 where
//     |y| >= 1.1, 2^-54 where it is less: in all less than 2^-53 of 0.17             5.9 u
//   the last sum, rounded to odd (min(x, 0) - h is 0 or exceeds f): nothing where an end of the interval is a midpoint
//   sum                                                                              < 11 u < 2^-49.5
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/logarithm.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"

namespace repdl::ops {
struct log_sigmoid;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::log_sigmoid> {
  template <class T>
  REPDL_HD static T eval(T x) {
    using log = log_core<base_e>;
    const float v = widen_to_float(x);
    const double a = static_cast<double>(clamp_magnitude(v, 105.0f));
    const double z = exp_core::eval<T>(double_of(bits_of(a) | 0x8000000000000000));
    const bool one = z < log::split - 1;
    const bool half = z > 2 * log::lo - 1;
    const double c = one ? 1.0 : half ? 0.5 : base_e::c;
    const double h = one ? 0.0 : half ? base_e::unit_hi : base_e::h;
    const double tail = half ? base_e::unit_lo : 0.0;
    const double f = muladd(z, c, c - 1.0);
    const double rest = muladd(log::after_first<T>(f), f * f, f) + tail;
    const dd y = fast_two_sum(static_cast<double>(v < 0 ? v : 0.0f) - h, -rest);
    storage_of<T> r = to_bits(round_no_midpoint<T>(round_to_odd(y.hi, y.lo, 1)));
    constexpr std::uint32_t below = format<float>::infinity | 0x80000000;
    r = bits_of(v) == below ? static_cast<storage_of<T>>(format<T>::infinity | sign_mask<T>) : r;
    return from_bits<T>(v != v ? format<T>::nan : r);
  }
};

// Binary64. With a = e^-|x| and l = ln(1 + a): -l, or -(|x| + l) for x < 0. Where a < 2^-190, l is a (1 - 2^-191) or more: for x > 0 its power of 2 is
// left to rounding, and below -745.2 |x| + l rounds to |x|. x > 745.2: less than 2^-1075. No midpoints.
struct log_sigmoid64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return magnitude_of(x) <= 745.2;
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x > 0 ? math<R>::all(-0.0) : x;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const scaled_ball<R> a = scaled_exponential(number<Ball>(-magnitude_of(x)));
    const mask_of<R> small = a.k < -191;
    const Ball beside = sigmoid64::beside_one(a);
    const Ball l = select(small, beside, logarithm_1p(beside));
    const decided_lanes<R> sum = round_ball(number<Ball>(x < 0 ? -x : math<R>::all(0)) + l);
    const decided_lanes<R> scaled = round_scaled(grown(a.m, math<R>::all(0x1p-189)), a.k);
    const mask_of<R> stays = small & (x > 0);
    return {-(stays ? scaled.value : sum.value), stays ? scaled.decided : sum.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball l = logarithm_1p(exponential(number<Ball>(-magnitude_of(x))));
    return x < 0 ? number<Ball>(x) - l : negated(l);
  }
};
template <>
struct body64<ops::log_sigmoid> : by_formula<log_sigmoid64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
