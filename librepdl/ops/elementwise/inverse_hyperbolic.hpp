// asinh x, acosh x and atanh x.
//
// Binary64, |x| for x in asinh and atanh, which are odd:
//   asinh x = ln(1 + v), v = x + x^2 / (1 + sqrt(1 + x^2))
//   acosh x = ln(1 + v), v = (x - 1) + sqrt((x - 1)(x + 1))
//   atanh x = ln(1 + v) / 2, v = 2 x / (1 - x)
// From 2^60 on the first two are ln 2x, within 1/(4 x^2) < 2^-121 (1 + 2^-100). The logarithm of an algebraic number other than 1 is transcendental: no midpoints. Of |x| <
// 2^-27 asinh x = x - x^3/6 + ... and atanh x = x + x^3/3 + ... round to x: what follows is less than 2^-55 of it.
//
// Narrower formats: the same in binary64, u = 2^-53.
//   asinh: x^2 is exact, sqrt(1 + x^2) within 1.6 u, 1 + that and the quotient within 3.7 u, v within 4.8 u
//   acosh: x + 1, their product and root within 2.1 u, x - 1 within u, v within 3.2 u
//   atanh: 1 - x is exact, v within u
//   ln(1 + v), v > 0, v / (1 + v) <= ln(1 + v), so that v's error counts once at most. Of v < 1/8 by log_core (logarithm.hpp): 5 u. Else of 1 + v, which is
//   rounded, u of ln(1 + v) >= 0.117: 8.6 u; the core's 2^-55.5 and the rounding of c m, 2^-54: 4.5 u; the last sum, u.
// 19 u in all.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/logarithm.hpp"

namespace repdl::ops {
struct asinh;
struct acosh;
struct atanh;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// ln(1 + v), or where `large` ln 2x.
template <class R>
REPDL_HD dd_ball<R> logarithm_1p_or_of_twice(const dd_ball<R>& v, mask_of<R> large, R x) {
  const double_word<R> beside_one = add(value_of(v), math<R>::all(1));
  const double_word<R> argument{large ? x : v.hi, large ? math<R>::all(0) : v.lo};
  const double_word<R> whole{large ? x : beside_one.hi, large ? math<R>::all(0) : beside_one.lo};
  reduced_logarithm<R> a = reduce_logarithm_1p(argument, whole);
  a.k = a.k + (large ? math<R>::all(1) : math<R>::all(0));
  const dd_ball<R> z = join_logarithm<false>(a);
  const R brought = large ? math<R>::all(0x1p-120) : 1.125 * (v.error / whole.hi);
  const mask_of<R> known = large | (16 * v.error <= whole.hi);
  return {z.hi, z.lo, known ? up(z.error + brought) : math<R>::all(infinity)};
}

struct asinh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    return canonical_of(x);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const R a = magnitude_of(x);
    const mask_of<R> large = a >= 0x1p60;
    const dd_ball<R> v = argument(number<dd_ball<R>>(large ? math<R>::all(1) : a));
    const decided_lanes<R> r = round_ball(logarithm_1p_or_of_twice(v, large, a));
    return {copy_sign(r.value, x), r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball r = logarithm_1p(argument(number<Ball>(magnitude_of(x))));
    return x < 0 ? negated(r) : r;
  }
  static constexpr double near_error = 0x1p-48;
  REPDL_HD static double near(double x) {
    const double a = magnitude_of(x);
    const double square = a * a;
    const double r = log_core<base_e>::of_more(a + square / (1 + sqrt(1 + square)));
    return a < infinity ? copy_sign(r, x) : x;
  }

 private:
  template <class Ball>
  REPDL_HD static Ball argument(const Ball& x) {
    const Ball one = number<Ball>(1.0);
    const Ball square = x * x;
    return x + square / (one + square_root(one + square));
  }
};
template <>
struct body<ops::asinh> : by_binary64<asinh64> {};
template <>
struct body64<ops::asinh> : by_formula<asinh64> {};

struct acosh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x > 1) & (x < infinity);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R end = x == 1 ? math<R>::all(0) : x;
    return x >= 1 ? end : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const mask_of<R> large = x >= 0x1p60;
    const dd_ball<R> v = argument(number<dd_ball<R>>(large ? math<R>::all(2) : x));
    return round_ball(logarithm_1p_or_of_twice(v, large, x));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return logarithm_1p(argument(number<Ball>(x)));
  }
  static constexpr double near_error = 0x1p-48;
  REPDL_HD static double near(double x) {
    const double r = log_core<base_e>::of_more((x - 1) + sqrt((x - 1) * (x + 1)));
    const double end = x > 1 ? infinity : nan_of<double>();
    return (x >= 1) & (x < infinity) ? r : end;
  }

 private:
  template <class Ball>
  REPDL_HD static Ball argument(const Ball& x) {
    const Ball one = number<Ball>(1.0);
    const Ball less = x - one;
    return less + square_root(less * (x + one));
  }
};
template <>
struct body<ops::acosh> : by_binary64<acosh64> {};
template <>
struct body64<ops::acosh> : by_formula<acosh64> {};

struct atanh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) < 1);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R end = magnitude_of(x) == 1 ? copy_sign(math<R>::all(infinity), x) : nan_of<R>();
    return magnitude_of(x) < 1 ? x : end;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const decided_lanes<R> r = round_ball(of_magnitude<dd_ball<R>>(magnitude_of(x)));
    return {copy_sign(r.value, x), r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball r = of_magnitude<Ball>(magnitude_of(x));
    return x < 0 ? negated(r) : r;
  }
  static constexpr double near_error = 0x1p-48;
  REPDL_HD static double near(double x) {
    const double a = magnitude_of(x);
    const double r = 0.5 * log_core<base_e>::of_more(2 * a / (1 - a));
    const double end = a == 1 ? infinity : nan_of<double>();
    return copy_sign(a < 1 ? r : end, x);
  }

 private:
  template <class Ball, class R>
  REPDL_HD static Ball of_magnitude(R x) {
    return scaled(logarithm_1p(number<Ball>(2 * x) / (number<Ball>(1.0) - number<Ball>(x))), -1);
  }
};
template <>
struct body<ops::atanh> : by_binary64<atanh64> {};
template <>
struct body64<ops::atanh> : by_formula<atanh64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
