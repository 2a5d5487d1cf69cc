// The distribution function of the normal distribution, Phi(x) = erfc(-x / sqrt 2) / 2.
//
// Transcendental for x != 0 (Siegel): no midpoints.
//
// Narrower formats, u = 2^-53: z = |x| / sqrt 2 within 1.6 u, cut down to 10.125, erfc z / 2 by error_function.hpp, within 15.5 u; z counts |z (erfc z)' / erfc z| <= 2 z^2 +
// 1.2 < 207 times, and z^2 there is rounded, 103 u: 450 u in all, less than 2^-44.1, and less of 1 - erfc z / 2.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/error_function.hpp"

namespace repdl::ops {
struct ndtr;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// Phi(-|x|) = e^(-x^2/2) F / 2 with F = e^(z^2) erfc z of z = |x| / sqrt 2, or (1 - erf z) / 2, and e^(-x^2/2) = m 2^k.
template <class R>
struct normal_terms {
  error_terms<R> t;
  scaled_ball<R> e;
  explicit REPDL_HD normal_terms(R x)
      : t(normalised(product(all_of<R>(dd_inverse_root_2), double_word<R>{magnitude_of(x), math<R>::all(0)})), x),
        e(scaled_exponential(negated(scaled(beside_zero(number<dd_ball<R>>(x) * number<dd_ball<R>>(x), x), -1)))) {}
  // Phi(x), near; and e^(-x^2/2) as a ball, k >= -200.
  REPDL_HD dd_ball<R> near() const { return scaled(number<dd_ball<R>>(1) + t.signed_erf, -1); }
  REPDL_HD dd_ball<R> density() const {
    const R s = power_of(e.k < -200 ? math<R>::all(-200) : e.k);
    return {e.m.hi * s, e.m.lo * s, e.m.error * s};
  }
};
// Phi(x) in multi-limb balls, |x| < 90.
template <int L>
REPDL_HD_CALL ball<L> normal_distribution(double x) {
  return scaled(complementary_error_function(negated(number<L>(x)) / square_root(number<L>(2))), -1);
}

// F / 2 in [2^-7, 1/4] is the factor of a tail, x from -38.6. x > 8.5: Phi(-x) < 2^-55; x < -38.6: Phi(x) < 2^-1075. |x| < 2^-60: 1/2 + x / sqrt(2 pi) + ...
struct ndtr64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 8.5) & (x >= -38.6) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x < 0 ? math<R>::all(0) : math<R>::all(1);
    const R limit = magnitude_of(x) < 1 ? math<R>::all(0.5) : far;
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const normal_terms<R> n(x);
    const Ball half_tail = scaled(n.t.value, -1);
    const decided_lanes<R> phi = round_ball(select(n.t.near, n.near(), number<Ball>(1) - n.density() * half_tail));
    const decided_lanes<R> tail = round_scaled(scaled(n.e.m * half_tail, 7), n.e.k - 7.0);
    const mask_of<R> is_tail = (n.t.near == 0) & (x < 0);
    return {is_tail ? tail.value : phi.value, is_tail ? tail.decided : phi.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return normal_distribution<limbs_of_ball<Ball>>(x);
  }
  static constexpr double near_error = 0x1p-44;
  REPDL_HD static double near(double x) {
    const double tail = 0.5 * erfc_core::eval(within(magnitude_of(x) * dd_inverse_root_2.hi, 0, 10.125));
    return x < 0 ? tail : 1 - tail;
  }
};
template <>
struct body<ops::ndtr> : by_binary64<ndtr64> {};
template <>
struct body64<ops::ndtr> : by_formula<ndtr64> {};

// The sign of a ball, or 0 where it is not known.
REPDL_HD int sign_of(const dd_ball<double>& a) {
  if (!(magnitude_of(a.hi) > 2 * a.error)) return 0;
  return a.hi < 0 ? -1 : 1;
}
// A late tier of narrower formats, by double-doubles: RN_T of D's value, which is next to D::near(x) and so between two neighbours. side_of(x, m) is the sign of
// the value less their middle m, or 0 where it is not known. Beyond the largest number is 2^(emax + 1).
template <class T, class D, class Side>
REPDL_HD decided_value<T> decide_by_midpoint(double x, const Side& side_of) {
  const lanes_together lanes;
  const double y = x == x ? D::near(x) : x;
  const T inner = narrow<T>(y * (1 - D::near_error));
  const T outer = narrow<T>(y * (1 + D::near_error));
  decided_value<T> r{inner, to_bits(inner) == to_bits(outer)};
  if (!r.decided) {
    const double beyond =
        magnitude_of(widen(outer)) == infinity ? copy_sign(power_of_two(format<T>::emax + 1), y) : widen(outer);
    const int side = side_of(x, 0.5 * (widen(inner) + beyond));
    r = {(side > 0) == (y > 0) ? outer : inner, side != 0};
  }
  lanes.meet();
  return r;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
