// tanh_backward(g, y) = g (1 - y^2) and sigmoid_backward(g, y) = g y (1 - y), binary16, bfloat16 and binary32, correctly rounded.
//
// Method: the exact value, as a sum of two or three binary64 numbers, is reduced to one binary64 number rounded to odd
// and converted once: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms
// using rounding to odd", IEEE Trans. Comput. 57 (2008).
//
// Domain: every input; nothing is approximated, nothing is left undecided.
//
// Both are F - A B with binary64 numbers that are exact:
//   tanh_backward      F = g     A = g y   B = y
//   sigmoid_backward   F = g y   A = g y   B = y
//
// Exactness for finite g, y, binary32 numbers at most (24 bits; 0 or in [2^-149, 2^128); multiples of 2^-149):
//   g y             48 bits <= 53; 0 or in [2^-298, 2^256): exact in binary64.
//   c + d   = A B   two_prod: |A|, |B| < 2^996, |A B| < 2^384, a multiple of 2^-447 > 2^-1074. |d| <= ulp(c)/2.
//   v + t   = F - c   two_sum: no overflow. |t| <= ulp(v)/2.
//   w + z   = t - d   two_sum. |z| <= ulp(w)/2.
//   v' + t' = v + w   two_sum. |t'| <= ulp(v')/2.
// So the exact value is v' + t' + z.
//
// Why tail = RN(t' + z) makes the rounding right:
// - t = 0: then w = -d and z = 0, so the exact value is v' + t', v' is its RN, tail = t'. If v' = 0, then t' = 0.
// - t != 0: F and c cannot have the same sign and be within a factor of 2 (F - c would be exact, Sterbenz), so
//   |F - c| >= max(|F|, |c|) / 2, |d| <= ulp(c)/2 <= ulp(v), |w| <= 2 ulp(v). Hence v' != 0, and v is a multiple of
//   ulp(w), and so are v' and t'. If t' != 0, |t'| >= ulp(w) > |z|: tail has the sign of t' + z and is not 0. If t' =
//   0, tail = z. |z| <= ulp(w)/2 is tiny beside ulp(v'), and |t'| is at most half of the gap between v' and its
//   neighbour on its side: the exact value is v' if tail = 0, else strictly between v' and its neighbour on tail's
//   side.
// That is what round_to_odd asks for. The odd result has 53 bits, at least 2 more than the format, and is in
// binary64's normal range: its conversion is RN of the exact value, in the subnormal range and at overflow, too.
//
// Exact zeros, infinities and NaN are those of the plain formula in binary64, `naive`: g (1 - y y) and (g y) (1 - y).
// - Finite g, y: nothing over- or underflows (see the ranges above), and RN(1 - a) is 0 only if a = 1, +0 then,
//   else has the sign of 1 - a. So naive is 0 if and only if the exact value is, with the sign of the formula tree: a
//   product's zero has the exclusive or of the signs, 1 - y^2 = 0 is +0.
// - Non-finite g or y: what the tree's finite operations round neither becomes 0 nor infinite nor changes sign, so
//   every sign, infinity and NaN of the result is the tree's.
//
// Proved above; tests draw inputs with few bits, near 1, subnormal, special, and compare with MPFR at full width.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct tanh_backward;
struct sigmoid_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// RN_T(first - a * b) if naive is finite and not 0, else naive. See above.
template <class T>
REPDL_HD T subtract_product(double first, double a, double b, double naive) {
  double exact;
  if constexpr (is_unpacked<T>) {  // a b has 33 bits: exact
    const dd s = two_sum(first, -(a * b));
    exact = round_to_odd(s.hi, s.lo);
  } else {
    exact = add_to_odd(first, two_prod(-a, b));
  }
  const bool regular = naive - naive == 0 && naive != 0;
  return narrow<T>(regular ? exact : naive);
}

template <>
struct body<ops::tanh_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T y) {
    const double gd = widen(g);
    const double yd = widen(y);
    return subtract_product<T>(gd, gd * yd, yd, gd * (1.0 - yd * yd));
  }
};

template <>
struct body<ops::sigmoid_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T y) {
    const double yd = widen(y);
    const double gy = widen(g) * yd;
    return subtract_product<T>(gy, gy, yd, gy * (1.0 - yd));
  }
};

// Binary64. |y| <= 2^-28: g (1 - y^2) rounds to g, for y^2 <= 2^-56, and neighbours of g are at least 2^-53 of it away.
// Exact zeros, infinities and NaN: 1 - |y| has the sign of 1 - y^2, and is zero or infinite where that is. Midpoints:
// the value is dyadic, exact in 2048 bits for |y| < 2^900; else it is next to -g y^2, on g's side of it, or, where
// that is no midpoint, 2^-160 of itself away from every one, for -g y^2 has 159 bits: then a ball decides.
struct tanh_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y) {
    const R a = magnitude_of(y);
    return is_finite_not_zero(g) & (a > 0x1p-28) & (a != 1) & is_finite(y);
  }
  template <class R>
  REPDL_HD static R special(R g, R y) {
    const R a = magnitude_of(y);
    return canonical_of(a <= 0x1p-28 ? g : g * (1 - a));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R y) {
    const Ball factor = number<Ball>(g);
    const Ball square = number<Ball>(y) * number<Ball>(y);
    const Ball value = factor * (number<Ball>(1) - square);
    if constexpr (is_multi_limb<Ball>) {
      return beside<limbs_of_ball<Ball>>{value, negated(factor * square), sign_of(factor)};
    } else {
      return value;
    }
  }
};
template <>
struct body64<ops::tanh_backward> : by_formula<tanh_backward64> {};

// Likewise; no factor has more than 1128 bits between its first and its last, nor the product more than 1240: every
// midpoint is exact.
struct sigmoid_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y) {
    return is_finite_not_zero(g) & is_finite_not_zero(y) & (y != 1);
  }
  template <class R>
  REPDL_HD static R special(R g, R y) {
    return canonical_of(as_factor(g) * as_factor(y) * as_factor(1 - y));
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R y) {
    return number<Ball>(g) * number<Ball>(y) * (number<Ball>(1) - number<Ball>(y));
  }
};
template <>
struct body64<ops::sigmoid_backward> : by_formula<sigmoid_backward64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
