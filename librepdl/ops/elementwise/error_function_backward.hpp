// Gradients of the error function, of erfc and of their inverses: g c e^w, w = s x^2, x the operand or y the result:
//   erf_backward     g (2 / sqrt(pi)) e^(-x^2), erfc_backward its negative
//   erfinv_backward  g (sqrt(pi) / 2) e^(y^2)         ndtri_backward  g sqrt(2 pi) e^(y^2 / 2)
//
// Where g is 0 or infinite, the factor of a finite x is as good as 1. |w| > 1460: e^w is beyond 2^+-2106, and |g c| is in
// [2^-1075, 2^1026): the result is a zero or infinity.
//
// f16, bf16, binary32: w is exact (48 bits) and cut down to +-210, e^210 > 2^302: |g| < 2^128 and |g| >= 2^-149 make a zero
// and an infinity of that, as of what is beyond. Errors, relative, u = 2^-53:
//   e^w: 11.3 u (exp.hpp); the constant u/2, two products u each                                                    < 14 u
//
// Last tier. Whether c e^w can be rational is not known: a result that is a midpoint, or nearer to one than the bits of the
// last tier tell, stays undecided. In f16 and bf16 none is nearer than 2^-37 of itself, for whatever g and x
// (reference/gen/gradients.py): the fast tier decides all.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct erf_backward;
struct erfc_backward;
struct erfinv_backward;
struct ndtri_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// c, in binary64 and as a ball, and s.
struct erf_slope {
  static constexpr double c = dd_two_over_root_pi.hi, s = -1;
  template <class Ball>
  REPDL_HD static Ball constant_of() {
    if constexpr (is_multi_limb<Ball>) {
      return number<Ball>(1.0) / square_root(quarter_pi_ball<limbs_of_ball<Ball>>());
    } else {
      return constant<Ball>(dd_two_over_root_pi);
    }
  }
};
struct erfinv_slope {
  static constexpr double c = dd_half_root_pi.hi, s = 1;
  template <class Ball>
  REPDL_HD static Ball constant_of() {
    if constexpr (is_multi_limb<Ball>) {
      return square_root(quarter_pi_ball<limbs_of_ball<Ball>>());
    } else {
      return constant<Ball>(dd_half_root_pi);
    }
  }
};
struct ndtri_slope {
  static constexpr double c = dd_root_2_pi.hi, s = 0.5;
  template <class Ball>
  REPDL_HD static Ball constant_of() {
    if constexpr (is_multi_limb<Ball>) {
      return square_root(scaled(quarter_pi_ball<limbs_of_ball<Ball>>(), 3));
    } else {
      return constant<Ball>(dd_root_2_pi);
    }
  }
};

// Of g, or of -g for erfc.
template <class Slope, int Sign = 1>
struct error_function_gradient64 {
  static constexpr double s = Slope::s;
  static constexpr double limit = s < 0 ? 0 : infinity;  // of e^w

  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(s * x * x) <= 1460);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const mask_of<R> far = (magnitude_of(s * x * x) > 1460) & is_finite_not_zero(g);
    const R r = (Sign * g) * (far | (magnitude_of(x) == infinity) ? math<R>::all(limit) : math<R>::all(1));
    return (r == r) & (x == x) ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    using Ball = dd_ball<R>;
    const Ball square = beside_zero(number<Ball>(x) * number<Ball>(x), x);
    const scaled_ball<R> e = scaled_exponential(Ball{s * square.hi, s * square.lo, magnitude_of(s) * square.error});
    return round_product(Sign * g, e.m * Slope::template constant_of<Ball>(), e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    const Ball w = number<Ball>(s) * (number<Ball>(x) * number<Ball>(x));
    return number<Ball>(Sign * g) * exponential(w) * Slope::template constant_of<Ball>();
  }

  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double g, double x) {
    const double e = exp_by_square(within(s * x * x, -210, 210), 0.0);
    return (Sign * Slope::c * g) * (magnitude_of(x) < infinity ? e : limit);
  }
};
template <>
struct body<ops::erf_backward> : by_binary64<error_function_gradient64<erf_slope>> {};
template <>
struct body64<ops::erf_backward> : by_formula<error_function_gradient64<erf_slope>> {};
template <>
struct body<ops::erfc_backward> : by_binary64<error_function_gradient64<erf_slope, -1>> {};
template <>
struct body64<ops::erfc_backward> : by_formula<error_function_gradient64<erf_slope, -1>> {};
template <>
struct body<ops::erfinv_backward> : by_binary64<error_function_gradient64<erfinv_slope>> {};
template <>
struct body64<ops::erfinv_backward> : by_formula<error_function_gradient64<erfinv_slope>> {};
template <>
struct body<ops::ndtri_backward> : by_binary64<error_function_gradient64<ndtri_slope>> {};
template <>
struct body64<ops::ndtri_backward> : by_formula<error_function_gradient64<ndtri_slope>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
