// mish(x) = x tanh(ln(1 + e^x)), correctly rounded.
//
// Method: with w = e^x (exp.hpp) and t = w (w + 2) = (1 + w)^2 - 1, tanh(ln(1 + w)) = t / (t + 2), in binary64: no term
// cancels.
//
// Domain: every input. |x| is cut down to 110 but for the factor x > 0: mish(x) rounds to x from 20 on, and |mish(x)| <
// 2^-150 below -110. For |x| <= 110 exp.hpp's bounds hold: |k| <= 159 < 2^8.
//
// Error budget, relative, u = 2^-53:
//   w: 5.1 u (exp.hpp); t: times (2 w + 2) / (w + 2) < 2, and two roundings          12.2 u
//   t / (t + 2): times 2 / (t + 2) < 1, a sum's rounding                             13.2 u
//   x t, the quotient                                                                2 u
//   sum                                                                              15.2 u < 2^-49
// For x > 0 the first factors, 4 (w + 1) / ((w + 2) (t + 2)) together, are below 0.54, so that less than 7 u remain. Near 0,
// mish is 3x/5 (1 + 8x/15 + ...), at least a tenth of an ulp away from midpoints, subnormal results included.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct mish;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::mish> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const float c = clamp_magnitude(v, 110.0f);
    const double w = exp_core::eval<T>(static_cast<double>(c));
    const double t = w * (w + 2.0);
    const double n = static_cast<double>(v < 0 ? c : v);
    return narrow<T>(n * t / (t + 2.0));
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
