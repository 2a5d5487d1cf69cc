// exp2(x) = 2^x, binary16, bfloat16 and binary32, correctly rounded.
//
// Method: 2^x = 2^k 2^r, k an integer next to x, r = x - k exactly, |r| <= 1/2; one polynomial in binary64. The last sum,
// 1 + r q, is rounded to odd (eft.hpp): 0x3b429d37 has 2^x within 2^-29 ulp of a midpoint, nearer than binary64's rounding.
//
// Domain: every input. x is cut down to 128 and, from the tie 2^(emin - p) = half the least number downwards, to emin -
// p - 1, whose 2^x rounds to +0 as the tie does. NaN is put back at the end. Integers: r = 0, p is 1 with its last bit set,
// which converts to 2^k in every format that has it; below, only the tie would notice the bit.
//
// Error budget, relative to 2^x, u = 2^-53 (with or without FMA), before the last sum:
//   polynomial, certified by reference/gen/exp2.sollya                               0.03 u
//   q (0.5 to 1): its last step, 1 u (two roundings), times |r| / 2^r < 0.71         0.71 u
//   all earlier steps: 0.5 u in c1 + r (...), times r^2 / 2^r < 0.36                 0.2  u
//   r q where it is rounded by itself (< 0.42): 0.25 u, relative to 2^r >= 0.7       0.36 u
//   sum                                                                              < 1.4 u
//   last sum: v = RN(1 + r q), v - 1 is exact (1/2 <= v <= 2), `rest` has the sign of what v lacks; rounding to odd adds
//   less than 2 u, and nothing where an end of the interval is a midpoint. 2^k: exact.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/body.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// 2^x for |x| <= 1000, rounded to odd but for an error of 1.4 * 2^-53.
struct exp2_core {
  // reference/gen/exp2.sollya
  static constexpr double shifter = 0x1.8p52;  // ulp 1, room for either sign
  static constexpr double c1 = 0x1.62e42fefa39efp-1, c2 = 0x1.ebfbdff82c5a6p-3, c3 = 0x1.c6b08d704a12cp-5,
                          c4 = 0x1.3b2ab6fb9fda6p-7, c5 = 0x1.5d87fe789e96fp-10, c6 = 0x1.4309130f6cbdbp-13,
                          c7 = 0x1.ffcbfc6685ee5p-17, c8 = 0x1.62bfc6596be6ap-20, c9 = 0x1.b52522bc20bcdp-24,
                          c10 = 0x1.e61d4332035bap-28, c11 = 0x1.e9731780488cp-32;

  // For unpacked T without the last four terms, and not rounded to odd: all 2^16 inputs are compared, with FMA and without.
  template <class T = float>
  REPDL_HD static double eval(double x) {
    const double t = x + shifter;
    const double r = x - (t - shifter);
    double p = c7;
    if constexpr (!is_unpacked<T>) {
      p = muladd(c11, r, c10);
      p = muladd(p, r, c9);
      p = muladd(p, r, c8);
      p = muladd(p, r, c7);
    }
    p = muladd(p, r, c6);
    p = muladd(p, r, c5);
    p = muladd(p, r, c4);
    p = muladd(p, r, c3);
    p = muladd(p, r, c2);
    p = muladd(p, r, c1);
    const double v = muladd(p, r, 1.0);
    if constexpr (is_unpacked<T>) return double_of(bits_of(v) + (bits_of(t) << 52));
    const double rest = muladd(p, r, 1.0 - v);
    const std::uint64_t odd = (bits_of(v) - (bits_of(rest) >> 63)) | 1;
    return double_of(odd + (bits_of(t) << 52));
  }
};

template <>
struct body<ops::exp2> {
  template <class T>
  REPDL_HD static T eval(T x) {
    constexpr float tie = format<T>::emin - format<T>::precision;
    const float v = widen_to_float(x);
    const float above = v > tie ? v : tie - 1;
    const float c = above < 128 ? above : 128.0f;
    const T r = round_no_midpoint<T>(exp2_core::eval<T>(static_cast<double>(c)));
    return from_bits<T>(v != v ? format<T>::nan : to_bits(r));
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
