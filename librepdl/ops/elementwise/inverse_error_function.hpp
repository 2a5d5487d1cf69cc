// erfinv x, the inverse of erf, correctly rounded; of binary64 in inverse_error_function_binary64.hpp, of binary16, bfloat16 and binary32 here.
//
// Method, for v = |x|, in binary64, after M. B. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition (2011):
//   erfinv v = v (p0 + w q(w)),  w = -ln(1 - v^2),  p0 = sqrt(pi) / 2
// with one polynomial in w - 3 up to w = 6, and another in w - 11 beyond. v p0 is a head, exact, and a tail; the sum of the head and
// the rest is rounded to odd.
//
// Domain: |x| < 1; erfinv(+-1) = +-inf, beyond NaN, put in at the end. v is cut down to 1 - 2^-24, the largest number below 1 of
// any of the formats, where w = 15.95.
//
// v^2 is exact (48 bits), and so is 1 - v^2 for v >= 1/4; below, the logarithm is that of 1 + f for f = -v^2 itself.
//
// Error budget, relative, u = 2^-53 (with or without FMA), p(w) = p0 + w q(w):
//   w, logarithm.hpp: k = 0, 4.6 u of w < 0.18, times w p' / p                       0.2 u
//     else an absolute 2^-55.5, and 2^-54 where c m is rounded, times p' / p < 0.27  0.2 u
//     its last rounding, times w p' / p < 0.52                                       0.5 u
//   rest = p0_lo + w q, of it:
//     w - 3, w - 11: u, times |t q' / q| < 0.13                                      0.1 u
//     q, approximated by reference/gen/inverse_error_function.sollya: 0x1.05p-54     0.5 u
//     q's Horner steps, of which all but the last vanish beside q                    1.3 u
//     products and sum                                                               3   u
//     in all 4.9 u, of p(w) at most 0.78                                             3.8 u
//   sum                                                                              4.7 u < 2^-50.7
// Where v is small, w q is v^2 pi / 12 of p0, and what is left of all that 2^-31 u.
// erfinv(+-0) = +-0: of the sum 0 the bit set gives 2^-1074, which converts to +0.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary. So are all 2^16 inputs of the
// narrow formats.
#pragma once

#include "librepdl/ops/elementwise/inverse_error_function_binary64.hpp"
#include "librepdl/ops/elementwise/logarithm.hpp"

namespace repdl::ops {
struct erfinv;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// erfinv v, 0 <= v < 1, rounded to odd.
struct erfinv_core {
  // reference/gen/inverse_error_function.sollya
  static constexpr double p0_hi = 0x1.c5bf892p-1, p0_lo = -0x1.2c4255618f13fp-31;
  static constexpr double a0 = 0x1.f7572654c901p-3, a1 = -0x1.69df13faf5c8ep-10, a2 = -0x1.7cc83828acf55p-10,
                          a3 = 0x1.aee2b1a594d6ep-13, a4 = -0x1.d1541cf11f789p-19, a5 = -0x1.9dd047d63b9f3p-19,
                          a6 = 0x1.ddde5ccf4c06ep-22, a7 = 0x1.c43aded810203p-30, a8 = -0x1.2227de97013c2p-27,
                          a9 = 0x1.10d01cd2ec665p-30, a10 = 0x1.5ae3adca79bd4p-35, a11 = -0x1.9f89885f96ebdp-36,
                          a12 = 0x1.272aa7659ef4cp-39, a13 = 0x1.c37b92f7dffe7p-43, a14 = -0x1.23a569e82f42fp-44,
                          a15 = 0x1.1cf5d008b162ep-48, a16 = 0x1.c95db1a8c11f2p-51, a17 = -0x1.928690ce4a7a9p-53,
                          a18 = 0x1.2fe72b3c3445p-58, a19 = 0x1.bf6adba4037d7p-59, a20 = -0x1.8be5a3c3f0f4ep-62,
                          a21 = -0x1.c15db42c6518bp-66, a22 = 0x1.5dae4dc916a0bp-68;
  static constexpr double b0 = 0x1.a5a34cb495593p-3, b1 = -0x1.43158b3fe7708p-8, b2 = 0x1.2f14d8d793735p-13,
                          b3 = -0x1.56c69d4606597p-22, b4 = -0x1.3f4fd944eee49p-21, b5 = 0x1.5dbc3df3a203ap-24,
                          b6 = -0x1.0ee00bab190b2p-27, b7 = 0x1.5303b273e1961p-31, b8 = -0x1.4f2ef39d84647p-35,
                          b9 = 0x1.a8359c73f470fp-40, b10 = 0x1.cfaa4a78996ebp-46, b11 = -0x1.c80620a3b96abp-47,
                          b12 = 0x1.c066fccb4706cp-50, b13 = -0x1.338de4b1475d5p-53, b14 = 0x1.3c3a433c73e2bp-57,
                          b15 = -0x1.939cfec8f01ffp-62, b16 = -0x1.5c2db91473936p-68, b17 = 0x1.47d194cc83516p-69,
                          b18 = -0x1.5de1c37934d69p-72, b19 = 0x1.7b1b0bcd92e74p-75, b20 = -0x1.ad8ba9c75ddd2p-79,
                          b21 = -0x1.7573ca33d2f78p-84, b22 = 0x1.1e745d2e78855p-86;

  [[gnu::always_inline]] REPDL_HD static double eval(double v) {
    using log = log_core<base_e>;
    const double square = v * v;
    log::reduced r = log::reduce(1.0 - square);
    r.f = square < 0.0625 ? -square : r.f;
    return of(v, -log::sum(r).hi);
  }
  // w = -ln(1 - v^2) <= 16
  [[gnu::always_inline]] REPDL_HD static double of(double v, double w) {
    const bool far = w > 6;
    const double t = w - (far ? 11.0 : 3.0);
    double p = far ? b22 : a22;
    p = muladd(p, t, far ? b21 : a21);
    p = muladd(p, t, far ? b20 : a20);
    p = muladd(p, t, far ? b19 : a19);
    p = muladd(p, t, far ? b18 : a18);
    p = muladd(p, t, far ? b17 : a17);
    p = muladd(p, t, far ? b16 : a16);
    p = muladd(p, t, far ? b15 : a15);
    p = muladd(p, t, far ? b14 : a14);
    p = muladd(p, t, far ? b13 : a13);
    p = muladd(p, t, far ? b12 : a12);
    p = muladd(p, t, far ? b11 : a11);
    p = muladd(p, t, far ? b10 : a10);
    p = muladd(p, t, far ? b9 : a9);
    p = muladd(p, t, far ? b8 : a8);
    p = muladd(p, t, far ? b7 : a7);
    p = muladd(p, t, far ? b6 : a6);
    p = muladd(p, t, far ? b5 : a5);
    p = muladd(p, t, far ? b4 : a4);
    p = muladd(p, t, far ? b3 : a3);
    p = muladd(p, t, far ? b2 : a2);
    p = muladd(p, t, far ? b1 : a1);
    p = muladd(p, t, far ? b0 : a0);
    const dd sum = two_sum(v * p0_hi, v * muladd(w, p, p0_lo));
    return round_to_odd(sum.hi, sum.lo, 1);
  }
};

template <>
struct body<ops::erfinv> {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const std::uint32_t magnitude = bits_of(v) & 0x7fffffff;
    constexpr std::uint32_t one = 0x3f800000;
    const double c = static_cast<double>(clamp_magnitude(float_of(magnitude), 0x1.fffffep-1f));
    storage_of<T> r = to_bits(round_no_midpoint<T>(erfinv_core::eval(c)));
    r = magnitude == one ? format<T>::infinity : r;
    r = to_bits(with_sign(from_bits<T>(r), x));
    return from_bits<T>(magnitude > one ? format<T>::nan : r);
  }
};
template <>
struct body64<ops::erfinv> : by_formula<inverse_error_function64<inverse_of::erf>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
