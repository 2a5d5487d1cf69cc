// mish(x) = x tanh(ln(1 + e^x)), correctly rounded.
//
// Method: with w = e^x (exp.hpp) and t = w (w + 2) = (1 + w)^2 - 1, tanh(ln(1 + w)) = t / (t + 2), in binary64: no term
// cancels.
//
// Domain: every input. |x| is cut down to 110 but for the factor x > 0: mish(x) rounds to x from 20 on, and |mish(x)| <
// 2^-150 below -110. For |x| <= 110 exp.hpp's bounds hold: |k| <= 159 < 2^8.
//
// Error budget, relative, u = 2^-53:
//   w: 5.1 u (exp.hpp); t: times (2 w + 2) / (w + 2) < 2, and two roundings          12.2 u
//   t / (t + 2): times 2 / (t + 2) < 1, a sum's rounding                             13.2 u
//   x t, the quotient                                                                2 u
//   sum                                                                              15.2 u < 2^-49
// For x > 0 the first factors, 4 (w + 1) / ((w + 2) (t + 2)) together, are below 0.54, so that less than 7 u remain. Near 0,
// mish is 3x/5 (1 + 8x/15 + ...), at least a tenth of an ulp away from midpoints, subnormal results included.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"

namespace repdl::ops {
struct mish;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::mish> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const float c = clamp_magnitude(v, 110.0f);
    const double w = exp_core::eval<T>(static_cast<double>(c));
    const double t = w * (w + 2.0);
    const double n = static_cast<double>(v < 0 ? c : v);
    return narrow<T>(n * t / (t + 2.0));
  }
};

// Binary64. With n = w (w + 2), w = e^x: x n / (n + 2). With a = e^-|x|, p = a + 2 and d = a^2 + 2 a + 2: x a p / d for
// x < 0, whose power of 2 is left to rounding; for x > 0, p = 1 + 2 a and d = 1 + 2 a + 2 a^2: x p / d. x > 20: x (1 - 2
// e^-40) rounds to x; x < -760: less than 2^-1075. e^x is transcendental, and 3x/5, to which it tends at 0, a tenth of a
// unit away from midpoints: there are none.
template <class R>
struct mish_terms {
  scaled_ball<R> e;
  dd_ball<R> a, square, p, d;
  REPDL_HD explicit mish_terms(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> negative = x < 0;
    e = scaled_exponential(number<Ball>(-magnitude_of(x)));
    a = sigmoid64::beside_one(e);
    square = a * a;
    const Ball two = scaled(a, 1);
    const Ball last = number<Ball>(negative ? math<R>::all(2) : math<R>::all(1));
    p = select(negative, a, two) + last;
    d = select(negative, square, scaled(square, 1)) + (two + last);
  }
};
struct mish64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 20) & (x >= -760) & (x != 0);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x < -1 ? math<R>::all(-0.0) : x;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const mish_terms<R> t(x);
    const mask_of<R> negative = x < 0;
    const dd_ball<R> factor = t.p / t.d;
    return round_product(x, select(negative, factor * t.e.m, factor), negative ? t.e.k : math<R>::all(0));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const Ball w = exponential(number<Ball>(x));
    const Ball n = w * (w + number<Ball>(2));
    return number<Ball>(x) * n / (n + number<Ball>(2));
  }
};
template <>
struct body64<ops::mish> : by_formula<mish64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
