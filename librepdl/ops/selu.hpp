// selu(x) = x <= 0 ? s a (e^x - 1) : s x, correctly rounded.
//
// Method: s x with s rounded to binary64; e^x - 1 as in tanh.hpp (whose polynomial this is), times s a rounded to
// binary64.
//
// Domain: every input. x < -30 is cut: s a e^-30 < 2^-42, and s a is more than 2^-25 from a midpoint. A zero
// goes the way of x > 0: it keeps its sign.
//
// Range reduction:  r = x - k ln2, e^x - 1 = 2^k (e^r - 1) + (2^k - 1), -44 <= k <= 0, |r| <= ln2/2 + 2^-30; exact up
//                   to the last subtraction, as in exp.hpp.
//
// Error budget for x < 0, relative, u = 2^-53 (with or without FMA):
//   p, approximating e^r - 1, relative to itself (tanh.hpp)                          2.1 u
//   d: k = 0: d = p
//      k < 0: |d| >= 0.29 (k = -1, r = ln2/2), 2^k |p| <= |d| 0.73: p's error, 2^-55 of r, one sum   3.1 u
//   s a and its product                                                              1.5 u
//   sum                                                                              4.6 u < 2^-50.7
// x > 0: s and its product: 1.5 u, the same for every exponent of a normal result.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/tanh.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::selu> {
  static constexpr double s = 1.0507009873554804934193349852946;
  static constexpr double s_a = 1.7580993408473768599402175208123;

  template <class T>
  REPDL_HD static T eval(T x) {
    using tanh = body<ops::tanh>;
    const float v = widen_to_float(x);
    const double a = static_cast<double>(cut_to(v, -30.0f, 0.0f));
    const double t = muladd(a, exp_core::log2e, exp_core::shifter);
    const double k = t - exp_core::shifter;
    const double r = muladd(k, -exp_core::ln2_lo, muladd(k, -exp_core::ln2_hi, a));
    double q = muladd(tanh::c11, r, tanh::c10);
    q = muladd(q, r, tanh::c9);
    q = muladd(q, r, tanh::c8);
    q = muladd(q, r, tanh::c7);
    q = muladd(q, r, tanh::c6);
    q = muladd(q, r, tanh::c5);
    q = muladd(q, r, tanh::c4);
    q = muladd(q, r, tanh::c3);
    q = muladd(q, r, tanh::c2);
    const double p = muladd(q, r * r, r);
    const double scale = double_of((bits_of(t) << 52) + 0x3ff0000000000000);
    const double d = muladd(scale, p, scale - 1.0);
    const double below = s_a * d;
    const double above = s * static_cast<double>(v);
    return narrow<T>(v < 0 ? below : above);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
