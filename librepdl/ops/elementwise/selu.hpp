// selu(x) = x <= 0 ? s a (e^x - 1) : s x, correctly rounded.
//
// Method: s x with s rounded to binary64; e^x - 1 (expm1.hpp) times s a rounded to binary64.
//
// Domain: every input. x < -30 is cut: s a e^-30 < 2^-42, and s a is more than 2^-25 from a midpoint. A zero
// goes the way of x > 0: it keeps its sign.
//
// Error budget for x < 0, relative, u = 2^-53 (with or without FMA):
//   e^x - 1 (expm1.hpp)                                                              5.5 u
//   s a and its product                                                              1.5 u
//   sum                                                                              7   u < 2^-50.1
// x > 0: s and its product: 1.5 u, the same for every exponent of a normal result.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/elementwise/activation.hpp"
#include "librepdl/ops/elementwise/expm1.hpp"

namespace repdl::ops {
struct selu;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::selu> {
  static constexpr double s = 1.0507009873554804934193349852946;
  static constexpr double s_a = 1.7580993408473768599402175208123;

  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double below = s_a * expm1_core::eval<T>(static_cast<double>(cut_to(v, -30.0f, 0.0f)));
    const double above = s * static_cast<double>(v);
    return narrow<T>(v < 0 ? below : above);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
