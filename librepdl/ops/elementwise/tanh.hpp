// tanh(x), binary16, bfloat16 and binary32, correctly rounded.
//
// Method: tanh |x| = d / (d + 2), d = e^(2|x|) - 1, in binary64, with d accurate relative to itself (expm1.hpp);
// the sign is that of x. Rounded to the format by the conversion.
//
// Domain: every input. |x| is cut down to 10: tanh(10) > 1 - 2^-27 rounds to 1, as every value beyond it does. NaN is
// put back at the end.
//
// Error budget, relative, u = 2^-53 (with or without FMA):
//   d: expm1.hpp                                                                     5.3  u
//   d / (d + 2): an error of d counts 2 / (d + 2) < 1; two roundings                 2    u
//   sum                                                                              < 7.5 u < 2^-50
//   exact: tanh(+-0) = +-0 (d = 0)
// For |x| < 2^-12, subnormals included, tanh x = x (1 - x^2/3 + ...) rounds to x with room for that error.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/expm1.hpp"

namespace repdl::ops {
struct tanh;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::tanh> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const std::uint32_t sign = bits_of(v) & 0x80000000;
    const double d =
        expm1_core::eval<T>(2.0 * static_cast<double>(clamp_magnitude(float_of(bits_of(v) ^ sign), 10.0f)));
    const auto y =
        static_cast<storage_of<T>>(to_bits(round_no_midpoint<T>(d / (d + 2.0))) | (to_bits(x) & sign_mask<T>));
    return from_bits<T>(v != v ? format<T>::nan : y);
  }
};

// Binary64, E / (E + 2) with E = e^2x - 1. |x| < 2^-27: x - x^3/3 + ... rounds to x, for x^2/3 < 2^-55.5; |x| > 19.1: 1 - |tanh x| < 2 e^-38.2 <
// 2^-54. In between tanh x is transcendental: no midpoints.
struct tanh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) <= 19.1);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R one = copy_sign(math<R>::all(1), x);
    const R far = magnitude_of(x) > 1 ? one : x;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    if constexpr (uses_tables) {
      // z = 2^-k E within 2^-70.5; E / (E + 2) has a smaller relative error than E > 0, and the quotient adds 2^-98.
      const reduced_exponent<R> e = reduce_exponent(double_word<R>{2 * magnitude_of(x), math<R>::all(0)});
      const R c = power_of(-e.k);
      const double_word<R> z = exp_reduced_less(e, c);
      const double_word<R> s = two_sum(z.hi, 2 * c);
      const double_word<R> t = ratio(z, fast_two_sum(s.hi, s.lo + z.lo));
      const decided_lanes<R> r = round_within(t, math<R>::all(0x1p-69));
      return {copy_sign(r.value, x), r.decided};
    } else {
      return round_ball(formula<dd_ball<R>>(x));
    }
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x) {
    const Ball e = exponential_minus_one(scaled(number<Ball>(x), 1));
    return e / (e + number<Ball>(2));
  }
};
template <>
struct body64<ops::tanh> : by_formula<tanh64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
