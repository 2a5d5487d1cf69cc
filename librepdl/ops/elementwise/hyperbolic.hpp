// sinh x, cosh x and tan x.
//
// Binary64. e^x = m 2^k and e^x - 1 = z 2^k, |x| for x:
//   cosh x = 2^k (m + 2^-2k / m) / 2
//   sinh x = 2^k (z + 2^-k z / (z + 2^-k)) / 2, for (e^x - 1) + (1 - e^-x)
// where 2^-k is left out beyond 2^-60 and 2^-100. In multi-limb balls (e^x - e^-x) / 2 and (e^x + e^-x) / 2, which cancel where x is small: more bits decide.
// tan x = sin x / cos x. All are transcendental for x != 0 (Lindemann): no midpoints. Of |x| < 2^-27 sinh x = x + x^3/6 + ... and tan x = x +
// x^3/3 + ... round to x, and cosh x = 1 + x^2/2 + ... to 1: what follows is less than 2^-55 of it. cosh and sinh of 710.5 are beyond 2^1024.
//
// Narrower formats, u = 2^-53: |x| is cut down to 90, cosh 90 > sinh 90 > 2^128.
//   sinh x = (d + d / (d + 1)) / 2, d = e^|x| - 1 within 5.5 u (expm1.hpp), the quotient within 5.5 u + 2 u, the sum within 8.5 u
//   cosh x = (e + 1 / e) / 2, e = e^|x| within 5.1 u (exp.hpp), the quotient within 6.1 u, the sum within 7.1 u
//   tan x  = sin x / cos x
//     |x| <= 2^19: both within 2^-41.4 of themselves, but for what their rests are off by, d: 0 for |x| < 1.5 (k = 0; cos has k = -1/2 and 1/2 there: k pi_hi
//     and k pi_lo are exact, pi is off by 2^-85), else less than 2^-67.4 (circular.hpp: three times 2^-69, but for u of the rest). Relative to tan x that
//     is d (|cot x| + |tan x|), absolutely d (1 + tan^2 x); the rest is below 2^-40.3.
//     |x| > 2^19: both are within 2^-52 + 2^-53.9 of themselves, the quotient within 2^-50.
#pragma once

#include "librepdl/ops/elementwise/circular.hpp"
#include "librepdl/ops/elementwise/expm1.hpp"

namespace repdl::ops {
struct sinh;
struct cosh;
struct tan;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

struct sinh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) <= 710.5);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x == x ? copy_sign(math<R>::all(infinity), x) : nan_of<R>();
    return magnitude_of(x) < 1 ? x : far;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const reduced_exponent<R> e = reduce_exponent(double_word<R>{magnitude_of(x), math<R>::all(0)});
    const Ball z = scaled_minus_one(e);
    const mask_of<R> far = e.k > 100;
    const Ball c = number<Ball>(power_of(far ? math<R>::all(-100) : -e.k));
    const Ball sum = z + c * (z / (z + c));
    const decided_lanes<R> r = round_scaled(grown(sum, far ? math<R>::all(0x1p-99) : math<R>::all(0)), e.k - 1);
    return {copy_sign(r.value, x), r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball e = exponential(number<Ball>(x));
    return scaled(e - number<Ball>(1.0) / e, -1);
  }
  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double x) {
    const double d = expm1_core::eval(within(magnitude_of(x), 0, 90));
    return copy_sign(0.5 * (d + d / (d + 1)), x);
  }
};
template <>
struct body<ops::sinh> : by_binary64<sinh64> {};
template <>
struct body64<ops::sinh> : by_formula<sinh64> {};

struct cosh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) <= 710.5);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x == x ? math<R>::all(infinity) : nan_of<R>();
    return magnitude_of(x) < 1 ? math<R>::all(1) : far;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const scaled_ball<R> e = scaled_exponential(number<Ball>(magnitude_of(x)));
    const mask_of<R> far = e.k > 60;
    const Ball c = number<Ball>(power_of(far ? math<R>::all(-120) : -2 * e.k));
    const Ball sum = e.m + c / e.m;
    return round_scaled(grown(sum, far ? math<R>::all(0x1p-119) : math<R>::all(0)), e.k - 1);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball e = exponential(number<Ball>(x));
    return scaled(e + number<Ball>(1.0) / e, -1);
  }
  static constexpr double near_error = 0x1p-49;
  REPDL_HD static double near(double x) {
    const double e = exp_core::eval(within(magnitude_of(x), 0, 90));
    return 0.5 * (e + 1 / e);
  }
};
template <>
struct body<ops::cosh> : by_binary64<cosh64> {};
template <>
struct body64<ops::cosh> : by_formula<cosh64> {};

struct tan64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    return magnitude_of(x) < 1 ? x : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x) {
    return circular_of<Ball>(x, true) / circular_of<Ball>(x, false);
  }
};
template <>
struct body<ops::tan> : by_binary64<tan64> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x) {
    const double v = widen(x);
    const double a = magnitude_of(v);
    const bool far = is_far(v);
    const double y = far ? 0.0 : v;
    const double r = circular_core<0>::quick(y) / circular_core<1>::quick(y);  // of infinities NaN
    const double rests = a < 1.5 ? 0.0 : 0x1p-66;
    const double off = 0x1p-40 * magnitude_of(r) + rests * (1 + r * r) + (far ? infinity : 0.0);
    return certify_as<T>(r, off);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, int last_tier_bits) {
    const lanes_together lanes;
    decided_value<T> r{narrow<T>(widen(x)), false};
    if (is_far(widen(x))) {
      const double v = circular_core<0>::careful(widen_to_float(x)) / circular_core<1>::careful(widen_to_float(x));
      r = certify_as<T>(v, 0x1p-49 * magnitude_of(v));
    }
    if (!r.decided) r = by_balls<T>(last_tier_bits, widen(x));
    lanes.meet();
    return r;
  }

 private:
  REPDL_HD static bool is_far(double x) {
    return (magnitude_of(x) > circular_core<0>::quick_limit) & (magnitude_of(x) < infinity);
  }
};
template <>
struct body64<ops::tan> : by_formula<tan64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
