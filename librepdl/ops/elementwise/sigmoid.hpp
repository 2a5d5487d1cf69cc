// sigmoid(x) = 1 / (1 + e^-x), binary16, bfloat16 and binary32, correctly rounded.
//
// Method: the formula in binary64 with exp.hpp's e^-x, and near 0 the odd series around 1/2, rounded to odd; rounded to
// the format by the conversion, subnormal results included.
//
// Domain: every input. |x| is cut down to 105: sigmoid(105) > 1 - 2^-150 rounds to 1, and sigmoid(-105) < 2^-150 to +0,
// as every value beyond them does. NaN is put back at the end.
//
// |x| >= 2^-8. Error budget, relative, u = 2^-53:
//   e^-x: 5.1 u (exp.hpp), times e^-x / (1 + e^-x) < 1                               5.1 u
//   1 + e^-x, the quotient                                                           2 u
//   sum                                                                              7.1 u < 2^-50.1
//
// |x| < 2^-8: sigmoid(x) = 1/2 + q, q = x (1/4 + c3 x^2 + c5 x^4). Here binary64 is not enough: 1/2 + x/4 is a midpoint
// for many x (the smallest are 2^-23 and -2^-24), a tie that -x^3/48 breaks; and 0xba928601 (-0.00112) lies 2^-30 ulp
// from a midpoint. Error budget, absolute:
//   series, certified by reference/gen/sigmoid.sollya                                2^-68.2
//   q: its factor's rounding and its own, < 2^-51 |q|                                2^-61
//   1/2 + q = hi + lo exactly (fast_two_sum, |q| < 1/2), truncated, last bit set     0
// The value is irrational but for x = 0, where 1/2 + 2^-53 converts to 1/2. At a tie the cubic term is x^2/12 >=
// 2^-51.6 of x/4: the factor of x is less than 1/4 by 2^-53.6 or more, and its rounding (2^-56) keeps it below 1/4, so
// that q is on the right side.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct sigmoid;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::sigmoid> {
  // reference/gen/sigmoid.sollya
  static constexpr double c3 = -0x1.5555555555555p-6, c5 = 0x1.1111111111111p-9;

  template <class T>
  REPDL_HD static T eval(T x) {
    const float w = widen_to_float(x);
    const double c = static_cast<double>(clamp_magnitude(w, 105.0f));
    const double y = 1.0 / (1.0 + exp_core::eval<T>(-c));
    // Enough: all 2^16 inputs are compared, with FMA and without.
    if constexpr (is_unpacked<T>) return w != w ? T{w} : round_no_midpoint<T>(y);
    const double z = c * c;
    const dd near_half = fast_two_sum(0.5, c * muladd(muladd(c5, z, c3), z, 0.25));
    const double centre = round_to_odd(near_half.hi, near_half.lo, 1);
    const double v = double_of(bits_of(c) & 0x7fffffffffffffff) < 0x1p-8 ? centre : y;
    const storage_of<T> r = to_bits(round_no_midpoint<T>(v));
    return from_bits<T>(w != w ? format<T>::nan : r);
  }
};

// Binary64. With a = e^-|x|: 1 / (1 + a), or a / (1 + a) for x < 0, whose power of 2 is left to rounding. x > 40: a < 2^-57 and the result is 1;
// x < -745.2: less than 2^-1075. a is dropped beside 1 where it is less than 2^-190. No midpoints but for x = 0, where 1/2 is exact.
struct sigmoid64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 40) & (x >= -745.2);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x > 0 ? math<R>::all(1) : math<R>::all(0);
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const scaled_ball<R> a = scaled_exponential(number<Ball>(-magnitude_of(x)));
    const mask_of<R> negative = x < 0;
    const Ball numerator = select(negative, a.m, number<Ball>(1));
    return round_scaled(numerator / (number<Ball>(1) + beside_one(a)), negative ? a.k : math<R>::all(0));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return number<Ball>(1) / (number<Ball>(1) + exponential(number<Ball>(-x)));
  }
  // a, or below 2^-190 that it is.
  template <class R>
  REPDL_HD static dd_ball<R> beside_one(const scaled_ball<R>& a) {
    const mask_of<R> small = a.k < -191;
    const R s = power_of(small ? math<R>::all(0) : a.k);
    const R none = math<R>::all(0);
    return select(small, dd_ball<R>{none, none, math<R>::all(0x1p-190)},
                  dd_ball<R>{a.m.hi * s, a.m.lo * s, a.m.error * s});
  }
};
template <>
struct body64<ops::sigmoid> : by_formula<sigmoid64> {};

// Products with sigmoid: g / (1 + e^-w), |w| <= 760, as sigmoid64.
template <class R>
REPDL_HD decided_lanes<R> round_logistic(R g, const dd_ball<R>& w) {
  using Ball = dd_ball<R>;
  const mask_of<R> negative = w.hi < 0;
  const scaled_ball<R> a = scaled_exponential(select(negative, w, negated(w)));
  const Ball numerator = select(negative, a.m, number<Ball>(1));
  return round_product(g, numerator / (number<Ball>(1) + sigmoid64::beside_one(a)), negative ? a.k : math<R>::all(0));
}
// g s (1 + (1 - s) z), s = 1 / (1 + e^-w): with a = e^-|w|, (1 + a (1 + z)) / (1 + a)^2, or a (a + (1 + z)) / (1 + a)^2
// for w < 0.
template <class R>
REPDL_HD decided_lanes<R> round_logistic_gradient(R g, const dd_ball<R>& w, const dd_ball<R>& z) {
  using Ball = dd_ball<R>;
  const mask_of<R> negative = w.hi < 0;
  const Ball one = number<Ball>(1);
  const scaled_ball<R> e = scaled_exponential(select(negative, w, negated(w)));
  const Ball a = sigmoid64::beside_one(e);
  const Ball outer = one + z;
  const Ball sum = select(negative, outer, one) + select(negative, a, a * outer);
  const Ball d = one + a;
  return round_product(g, (sum * select(negative, e.m, one)) / (d * d), negative ? e.k : math<R>::all(0));
}
template <int L>
REPDL_HD_CALL ball<L> logistic_product(double g, const ball<L>& w) {
  return number<L>(g) / (number<L>(1) + exponential(negated(w)));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
