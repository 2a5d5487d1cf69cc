// cbrt x.
//
// Binary64. |x| = m 8^j, m in [1, 8); y next to the root of m in binary64, and then y + (m - y^3) / (3 y^2) in double-double.
// - m = n 2^i, n in [1, 2), i = 0, 1, 2: p(n) from reference/gen/cbrt.sollya is n^(-1/3) within 2^-14.7; times RN(2^(-i/3)) it is z = m^(-1/3) (1 + d),
//   |d| < 2^-14.6. With e = 1 - m z^3, |e| < 2^-13, m^(-1/3) = z (1 - e)^(-1/3) = z (1 + e/3 + 2 e^2/9 + 14 e^3/81 + ...): what is left out is below
//   2^-54, roundings below 2^-50: y = m z^2 is within 2^-48 of the root.
// - with m = y^3 (1 + f), |f| < 2^-46, the root is y (1 + f/3 - f^2/9 + ...), of which y (1 + f/3) leaves f^2/8 < 2^-94; m - y^3 is off by 40 u^2 of m
//   (dd_ball.hpp), a third of which counts, and its quotient by 3 y^2 by 5 u of itself, 2^-97.
// A rational root of x has at most 18 bits, so that there are no midpoints, and the root of a number is never subnormal. In multi-limb balls e^(ln(m) / 3). For narrower
// formats y 2^j is enough.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct cbrt;
}

namespace repdl::num {
inline namespace REPDL_ISA {

struct cbrt64 {
  // reference/gen/cbrt.sollya
  static constexpr double c0 = 0x1.ab859043f8b7ep0, c1 = -0x1.2c41e23e1ac07p0, c2 = 0x1.6416505a13fa6p-1,
                          c3 = -0x1.c5186105f7b16p-3, c4 = 0x1.d46f7d335a165p-6;
  static constexpr double inverse_root_2 = 0x1.965fea53d6e3dp-1, inverse_root_4 = 0x1.428a2f98d728bp-1;

  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return is_finite_not_zero(x);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    return canonical_of(x);
  }
  template <class R>
  struct approximate_root {
    R m, j, z, y;
  };
  template <class R>
  REPDL_HD static approximate_root<R> approximate(R x) {
    const significand<R> s = significand_of(x);
    const R n = magnitude_of(s.m);
    const R j = nearest((s.k - 1) * 0x1.5555555555555p-2);
    const R i = s.k - 3 * j;
    const R m = n * (i == 0 ? math<R>::all(1) : 2 * i);
    const R upper = i == 1 ? math<R>::all(inverse_root_2) : math<R>::all(inverse_root_4);
    R z = horner(n, c0, c1, c2, c3, c4) * (i == 0 ? math<R>::all(1) : upper);
    const R e = math<R>::muladd(m * z * z, -z, math<R>::all(1));
    z = math<R>::muladd(z * e, horner(e, 1.0 / 3, 2.0 / 9, 14.0 / 81), z);
    return {m, j, z, m * z * z};
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const auto [m, j, z, y] = approximate(x);
    const double_word<R> cube = product(two_prod(y, y), double_word<R>{y, math<R>::all(0)});
    const R rest = (m - cube.hi) - cube.lo;
    const double_word<R> root = fast_two_sum(y, (rest * 0x1.5555555555555p-2) * (z * z));
    const decided_lanes<R> r = round_normal(dd_ball<R>{root.hi, root.lo, 0x1p-90 * root.hi}, j);
    return {copy_sign(r.value, x), r.decided};
  }
  static constexpr double near_error = 0x1p-47;
  REPDL_HD static double near(double x) {
    const approximate_root<double> r = approximate(x);
    return is_finite_not_zero(x) ? copy_sign(r.y * power_of(r.j), x) : x;
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball r = exponential(logarithm(number<Ball>(magnitude_of(x))) / number<Ball>(3.0));
    return x < 0 ? negated(r) : r;
  }
};
template <>
struct body<ops::cbrt> : by_binary64<cbrt64> {};
template <>
struct body64<ops::cbrt> : by_formula<cbrt64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
