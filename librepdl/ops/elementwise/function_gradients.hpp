// Gradients of tan, sinh, cosh and of the inverses of these and of sin and cos:
//   tan_backward    g (1 + y^2), y = tan x     sinh_backward   g cosh x            cosh_backward   g sinh x
//   asin_backward   g / sqrt(1 - x^2)          acos_backward   -g / sqrt(1 - x^2)  atan_backward   g / (1 + x^2)
//   asinh_backward  g / sqrt(x^2 + 1)          acosh_backward  g / sqrt(x^2 - 1)   atanh_backward  g / (1 - x^2)
//
// Zeros, infinities and NaN: what IEEE 754 makes of g and the exact factor, which is an infinity of the sign of a pole's one side that there is; outside the domain NaN.
// Of |x| < 2^-28 the factors of sinh, asin, asinh and atanh, but for a sign, are within 2^-56 of 1: half the distance from g to a neighbour is at least 2^-54 of it, and
// the result is g, or -g of acos.
//
// Last tier. Quotients and roots of exact numbers decide midpoints, too. Beside x^2, x > 2^200, 1 is replaced by b^2, b = 2^-200 x: g^2 and m^2 x^2, m a midpoint, are
// equal or differ by 2^-330 of themselves at least, and b^2 is less and has the sign. g (1 + y^2) = g y^2 + g: a part of 159 bits and a rest of the sign of g. g cosh x and g sinh x
// are transcendental for x != 0 (Hermite and Lindemann); the latter may be as near to g x as anything: a part, and a rest of the sign of g x.
// sinh and cosh of 1500 are above 2^2160, and times g above 2^1085.
//
// Narrower formats, u = 2^-53, relative errors:
//   1 + y^2, 1 + x^2: u; (1 - x)(1 + x) and (x - 1)(x + 1): 3 u; roots 2.5 u; products and quotients by g, u more                             < 4 u
//   cosh x = (e + 1/e) / 2, |x| cut down to 200: e 11.3 u (exp_by_square), the quotient 12.3 u, sum and product                           < 14.4 u
//   sinh x for |x| <= 100: 8.6 u (hyperbolic.hpp); beyond e / 2, within 2^-288 more                                                        < 12.4 u
// 2^-149 times sinh or cosh of 200 is above 2^128.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/expm1.hpp"
#include "librepdl/ops/elementwise/gradients.hpp"

namespace repdl::ops {
struct tan_backward;
struct asin_backward;
struct acos_backward;
struct atan_backward;
struct sinh_backward;
struct cosh_backward;
struct asinh_backward;
struct acosh_backward;
struct atanh_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

struct tan_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y) {
    return is_finite_not_zero(g) & (magnitude_of(y) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R y) {
    return canonical_of(g * (magnitude_of(y) < infinity ? math<R>::all(1) : magnitude_of(y)));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R y) {
    const Ball part = number<Ball>(g) * (number<Ball>(y) * number<Ball>(y));
    if constexpr (is_multi_limb<Ball>) {
      return beside<limbs_of_ball<Ball>>{part + number<Ball>(g), part, g < 0 ? -1 : 1};
    } else {
      return number<Ball>(g) * (number<Ball>(1) + number<Ball>(y) * number<Ball>(y));
    }
  }
  static constexpr double near_error = 0x1p-50;
  REPDL_HD static double near(double g, double y) { return g * (1 + y * y); }
};
template <>
struct body<ops::tan_backward> : by_binary64<tan_backward64> {};
template <>
struct body64<ops::tan_backward> : by_formula<tan_backward64> {};

struct atan_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return inverse_gradient64::special(g, math<R>::all(1), x);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    return inverse_gradient64::formula<Ball>(g, math<R>::all(1), x);
  }
  static constexpr double near_error = 0x1p-50;
  REPDL_HD static double near(double g, double x) { return g / (1 + x * x); }
};
template <>
struct body<ops::atan_backward> : by_binary64<atan_backward64> {};
template <>
struct body64<ops::atan_backward> : by_formula<atan_backward64> {};

// (1 - x)(1 + x)
template <class Ball, class R>
REPDL_HD Ball one_less_square(R x) {
  return (number<Ball>(1.0) - number<Ball>(x)) * (number<Ball>(1.0) + number<Ball>(x));
}
// g / d or -g / d, at poles of d = +0; outside the domain NaN, and g where |x| is small.
template <class R>
REPDL_HD R special_inside(R g, R x) {
  const R pole = magnitude_of(x) == 1 ? g / math<R>::all(0) : nan_of<R>();
  return canonical_of(magnitude_of(x) < 1 ? g : pole);
}
template <class R>
REPDL_HD mask_of<R> is_plain_inside(R g, R x) {
  return is_finite_not_zero(g) & (magnitude_of(x) >= 0x1p-28) & (magnitude_of(x) < 1);
}

struct atanh_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_plain_inside(g, x);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_inside(g, x);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    return quotient_of(number<Ball>(g), one_less_square<Ball>(x));
  }
  static constexpr double near_error = 0x1p-50;
  REPDL_HD static double near(double g, double x) {
    const double d = (1 - x) * (1 + x);
    return d >= 0 ? g / d : nan_of<double>();
  }
};
template <>
struct body<ops::atanh_backward> : by_binary64<atanh_backward64> {};
template <>
struct body64<ops::atanh_backward> : by_formula<atanh_backward64> {};

// g / sqrt d
template <class Ball, class R>
REPDL_HD auto over_root(R g, const Ball& d) {
  if constexpr (is_multi_limb<Ball>) {
    return root<limbs_of_ball<Ball>>{number<Ball>(g) * number<Ball>(g), d, g < 0};
  } else {
    return number<Ball>(g) / square_root(d);
  }
}

// Of g, or -g for acos.
template <bool Negative>
struct over_root_inside64 {
  template <class R>
  REPDL_HD static R factor(R g) {
    return Negative ? -g : g;
  }
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_plain_inside(g, x);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_inside(factor(g), x);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    return over_root(factor(g), one_less_square<Ball>(x));
  }
  static constexpr double near_error = 0x1p-50;
  REPDL_HD static double near(double g, double x) { return factor(g) / sqrt((1 - x) * (1 + x)); }
};
template <>
struct body<ops::asin_backward> : by_binary64<over_root_inside64<false>> {};
template <>
struct body64<ops::asin_backward> : by_formula<over_root_inside64<false>> {};
template <>
struct body<ops::acos_backward> : by_binary64<over_root_inside64<true>> {};
template <>
struct body64<ops::acos_backward> : by_formula<over_root_inside64<true>> {};

// What stands for 1 beside x.
template <class R>
REPDL_HD R one_beside(R x) {
  return magnitude_of(x) > 0x1p200 ? 0x1p-200 * magnitude_of(x) : math<R>::all(1);
}

struct asinh_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(x) >= 0x1p-28) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return canonical_of(g / (magnitude_of(x) < infinity ? math<R>::all(1) : magnitude_of(x)));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    const Ball one = number<Ball>(one_beside(x));
    return over_root(g, number<Ball>(x) * number<Ball>(x) + one * one);
  }
  static constexpr double near_error = 0x1p-50;
  REPDL_HD static double near(double g, double x) { return g / sqrt(1 + x * x); }
};
template <>
struct body<ops::asinh_backward> : by_binary64<asinh_backward64> {};
template <>
struct body64<ops::asinh_backward> : by_formula<asinh_backward64> {};

struct acosh_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (x > 1) & (x < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const R divisor = x < infinity ? math<R>::all(1) : x;
    return canonical_of(g / (x > 1 ? divisor : x == 1 ? math<R>::all(0) : nan_of<R>()));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    const Ball one = number<Ball>(one_beside(x));
    return over_root(g, (number<Ball>(x) - one) * (number<Ball>(x) + one));
  }
  static constexpr double near_error = 0x1p-50;
  REPDL_HD static double near(double g, double x) { return x >= 1 ? g / sqrt((x - 1) * (x + 1)) : nan_of<double>(); }
};
template <>
struct body<ops::acosh_backward> : by_binary64<acosh_backward64> {};
template <>
struct body64<ops::acosh_backward> : by_formula<acosh_backward64> {};

// g times sinh or cosh of x, where g is 0 or not finite, or |x| > 1500: the factor is `unit`, +-1 for a number other than 0, but for large ones.
template <class R>
REPDL_HD R special_growing(R g, R x, R unit) {
  const mask_of<R> far = (magnitude_of(x) > 1500) & (g != 0);
  return canonical_of(g * (far ? copy_sign(math<R>::all(infinity), unit) : unit));
}

struct sinh_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(x) >= 0x1p-28) & (magnitude_of(x) <= 1500);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_growing(g, x, magnitude_of(x) < infinity ? math<R>::all(1) : magnitude_of(x));
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R x) {
    const Ball e = exponential(number<Ball>(magnitude_of(x)));
    return number<Ball>(g) * scaled(e + number<Ball>(1.0) / e, -1);
  }
  static constexpr double near_error = 0x1p-48;
  REPDL_HD static double near(double g, double x) {
    const double a = magnitude_of(x);
    const double e = exp_by_square(within(a, 0, 200), 0.0);
    return g * (a < infinity ? 0.5 * (e + 1 / e) : a);
  }
};
template <>
struct body<ops::sinh_backward> : by_binary64<sinh_backward64> {};
template <>
struct body64<ops::sinh_backward> : by_formula<sinh_backward64> {};

// sinh x, |x| < 2^-28: x (1 + w/6 (1 + w/20 (1 + ...))), w = x^2 < 2^-56, with 2 L factors; what is left out is less than 2^(-112 L) of it.
template <int L>
REPDL_HD_CALL ball<L> small_sinh(double x) {
  const ball<L> w = number<L>(x) * number<L>(x);
  ball<L> sum = number<L>(1);
  REPDL_LIMB_LOOP(7)
  for (int k = 2 * L; k > 0; --k) sum = number<L>(1) + w / number<L>(2 * k * (2 * k + 1)) * sum;
  const ball<L> r = number<L>(x) * sum;
  return grown(r, multiply(upper(r), power_magnitude(-112 * L)));
}

struct cosh_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (x != 0) & (magnitude_of(x) <= 1500);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return special_growing(g, x, magnitude_of(x) < infinity ? as_factor(x) : x);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    if constexpr (is_multi_limb<Ball>) {
      const Ball part = number<Ball>(g) * number<Ball>(x);
      const Ball e = exponential(number<Ball>(x));
      const Ball sine =
          magnitude_of(x) < 0x1p-28 ? small_sinh<limbs_of_ball<Ball>>(x) : scaled(e - number<Ball>(1.0) / e, -1);
      return beside<limbs_of_ball<Ball>>{number<Ball>(g) * sine, part, (g < 0) == (x < 0) ? 1 : -1};
    } else {
      const Ball e = exponential_minus_one(number<Ball>(magnitude_of(x)));
      return number<Ball>(copy_sign(g, g * as_factor(x))) * scaled(e + e / (e + number<Ball>(1)), -1);
    }
  }
  static constexpr double near_error = 0x1p-48;
  REPDL_HD static double near(double g, double x) {
    const double a = magnitude_of(x);
    const double d = expm1_core::eval(within(a, 0, 100));
    const double far = exp_by_square(within(a, 0, 200), 0.0);
    const double sine = 0.5 * (a <= 100 ? d + d / (d + 1) : far);
    return g * copy_sign(a < infinity ? sine : a, x);
  }
};
template <>
struct body<ops::cosh_backward> : by_binary64<cosh_backward64> {};
template <>
struct body64<ops::cosh_backward> : by_formula<cosh_backward64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
