// asin x, acos x and atan x.
//
// Binary64. With s = sqrt((1 - x)(1 + x)) they are angles of points: asin x of (s, |x|), acos x of (x, s), atan x of (1, x). In
// double-doubles 1 - |x| and 1 + |x| are exact, and the angle is arctan t or pi/2 - arctan t, or pi less that, t <= 1 the quotient of the
// two coordinates, or what atan2.hpp does; in multi-limb balls the point is rotated by about its angle, as there.
//
// An arctangent of an algebraic number other than 0 is transcendental (atan2.hpp), and so are asin x and acos x for algebraic x, x != 0 and 1: no midpoints.
// Of |x| < 2^-27 asin x = x + x^3/6 + ... and atan x = x - x^3/3 + ... differ from x by less than 2^-55 of it, half of the distance to a
// neighbour is at least 2^-54 of it, and both round to x; of |x| < 2^-55 acos x = pi/2 - x - ... rounds to RN(pi/2), which is 2^-53.8 from pi/2, more than
// 2^-54.3 less than half of its last bit.
//
// Narrower formats: angles as in atan2.hpp, u = 2^-53. 1 + |x|, 1 - |x| and their product are off by 3 u, s by 2.5 u, which counts |sin cos| of the angle, at most 2.5 u
// of it. The sum and difference of s and x, which are exact there, are rounded here: 2 u more. 8.3 u + 4.5 u, and two roundings: less than 2^-49.
#pragma once

#include "librepdl/ops/elementwise/atan2.hpp"

namespace repdl::ops {
struct asin;
struct acos;
struct atan;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr double half_pi_rounded = 0x1.921fb54442d18p0;

// sqrt((1 - x)(1 + x)), |x| < 1.
template <class Ball, class X>
REPDL_HD Ball other_side(const X& x) {
  const Ball one = number<Ball>(1.0);
  return square_root((one - number<Ball>(x)) * (one + number<Ball>(x)));
}

REPDL_HD double near_other_side(double x) { return sqrt((1 - magnitude_of(x)) * (1 + magnitude_of(x))); }

// arctan(n/d) where the angle of the point (|x|, s), s as above, or of (s, |x|) is it, the one of at most pi/4.
template <class R>
struct least_angle {
  dd_ball<R> t;
  mask_of<R> beyond;  // |x| > s
};
template <class R>
REPDL_HD least_angle<R> least_angle_of(R x) {
  using Ball = dd_ball<R>;
  const R a = magnitude_of(x);
  const Ball s = other_side<Ball>(a);
  const mask_of<R> beyond = a > s.hi;
  const Ball n = select(beyond, s, number<Ball>(a));
  const Ball d = select(beyond, number<Ball>(a), s);
  return {arctangent(n, d), beyond};
}
// pi/2 quarters + t or - t.
template <class R>
REPDL_HD dd_ball<R> turned_by(R quarters, mask_of<R> minus, const dd_ball<R>& t) {
  const dd_ball<R> unit = half_pi<dd_ball<R>>();
  const dd_ball<R> start{quarters * unit.hi, quarters * unit.lo, quarters * unit.error};
  return start + select(minus, negated(t), t);
}
// The angle of (width, height), from about it.
template <class Ball>
REPDL_HD Ball angle_from(double about, const Ball& height, const Ball& width) {
  const double turn = about * (0x1p61 / body<ops::atan2>::quarter);
  return angle_of_point(static_cast<std::uint64_t>(turn), height, width);
}

struct asin64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) < 1);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R end = magnitude_of(x) == 1 ? copy_sign(math<R>::all(half_pi_rounded), x) : nan_of<R>();
    return magnitude_of(x) < 1 ? x : end;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const decided_lanes<R> r = round_ball(of_magnitude(x));
    return {copy_sign(r.value, x), r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball r = angle_from(of_magnitude(x).hi, number<Ball>(magnitude_of(x)), other_side<Ball>(x));
    return x < 0 ? negated(r) : r;
  }
  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double x) {
    return copy_sign(body<ops::atan2>::angle(magnitude_of(x), near_other_side(x)), x);
  }

 private:
  template <class R>
  REPDL_HD static dd_ball<R> of_magnitude(R x) {
    const least_angle<R> a = least_angle_of(x);
    return turned_by(a.beyond ? math<R>::all(1) : math<R>::all(0), a.beyond, a.t);
  }
};
template <>
struct body<ops::asin> : by_binary64<asin64> {};
template <>
struct body64<ops::asin> : by_formula<asin64> {};

struct acos64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-55) & (magnitude_of(x) < 1);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R left = x == -1 ? math<R>::all(2 * half_pi_rounded) : nan_of<R>();
    const R end = x == 1 ? math<R>::all(0) : left;
    return magnitude_of(x) < 1 ? math<R>::all(half_pi_rounded) : end;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    return round_ball(angle(x));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return angle_from(angle(x).hi, other_side<Ball>(x), number<Ball>(x));
  }
  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double x) { return body<ops::atan2>::angle(near_other_side(x), x); }

 private:
  template <class R>
  REPDL_HD static dd_ball<R> angle(R x) {
    const least_angle<R> a = least_angle_of(x);
    const R far = x < 0 ? math<R>::all(2) : math<R>::all(0);
    return turned_by(a.beyond ? far : math<R>::all(1), static_cast<mask_of<R>>(a.beyond == (x < 0)), a.t);
  }
};
template <>
struct body<ops::acos> : by_binary64<acos64> {};
template <>
struct body64<ops::acos> : by_formula<acos64> {};

struct atan64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R end = x == x ? copy_sign(math<R>::all(half_pi_rounded), x) : nan_of<R>();
    return magnitude_of(x) < 1 ? x : end;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    return atan2_64::first(x, math<R>::all(1));
  }
  template <class Ball>
  REPDL_HD static auto formula(double x) {
    return atan2_64::formula<Ball>(x, 1.0);
  }
  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double x) { return copy_sign(body<ops::atan2>::angle(magnitude_of(x), 1), x); }
};
template <>
struct body<ops::atan> : by_binary64<atan64> {};
template <>
struct body64<ops::atan> : by_formula<atan64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
