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
#include "librepdl/ops/elementwise/elu.hpp"
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

// Binary64: s a (e^x - 1), or s x, in the decimals s and a. s x is no midpoint, nor next to 0 s a x: 5 divides their
// denominators more often than 53 bits have room for. e^x is transcendental.
struct selu64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return is_finite_not_zero(x);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x < 0 ? math<R>::all(-dd_selu_scale_alpha.hi) : x;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const Ball below = constant<Ball>(dd_selu_scale_alpha);
    const R about = x < 0 ? x : math<R>::all(0);
    return round_growth(below, number<Ball>(x), about, select(x < 0, below, constant<Ball>(dd_selu_scale)), x);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    constexpr int L = limbs_of_ball<Ball>;
    if (x > 0) return number<Ball>(x) * scale<Ball>();
    return scale<Ball>() * alpha<Ball>() * elu_formula{x, 1, 1, 1}.template eval<L>().value;
  }
  template <class Ball>
  REPDL_HD static Ball scale() {
    return (number<Ball>(1050700987355480) * number<Ball>(1e16) + number<Ball>(4934193349852946)) / one<Ball>();
  }
  template <class Ball>
  REPDL_HD static Ball alpha() {
    return (number<Ball>(1673263242354377) * number<Ball>(1e16) + number<Ball>(2848170429916717)) / one<Ball>();
  }
  template <class Ball>
  REPDL_HD static Ball one() {
    return number<Ball>(1e15) * number<Ball>(1e16);
  }
};
template <>
struct body64<ops::selu> : by_formula<selu64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
