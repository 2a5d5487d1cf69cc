// Rational activations: relu6 hardsigmoid hardswish softsign, and their backwards, correctly rounded.
//
// Method: exact sums and quotients in binary64, rounded to odd, after S. Boldo and G. Melquiond, "Emulation of a FMA
// and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008); quotients by 3
// and 6 as products. Domain: every input; nothing is left undecided. With and without FMA. The proofs are for binary32;
// f16 and bf16 numbers are among its numbers, and so are their midpoints, or they are midpoints of it.
//
// Below m is a midpoint beside the exact result r: 2^j <= |r| < 2^(j+1), m a multiple of 2^k with k >= j - 24, more
// where r is subnormal. A computed value that is m where r is, and else is nearer to r than m is, rounds as r does.
//
// Quotients by 3 (by 6 alike). c = RN(1/3) = (1 - 2^-54) / 3, q = RN(n c).
//   n/3 has at most 53 bits: q = n/3, which is at most half an ulp from n c, a tie only if n/3 is a power of two: even.
//   else |q - n/3| < 2^-52 |n/3|: 2^-54 for c, 2^-53 for the product's rounding.
// f16, bf16: in binary32 c = (1 + 2^-25) / 3, and the same holds with 2^-23, or 2^-149 where q is subnormal.
//
// hardsigmoid = n/6, n = x + 3, |x| <= 3.
//   |x| < 2^-25: r and what is computed are less than 2^-26 from 1/2 and round to it.
//   else n is exact, a multiple of 2^-48. r >= 1/4: 6 m is a multiple of 2^-48, too: if r is not m, |r - m| >=
//   2^-48 / 6 > 2^-52. r < 1/4: x < -3/2, n is a multiple of 2^-23 and 6 m of 2^(j-23), so |r - m| >= 2^(j-23) / 6; the
//   error is below 2^(j-51).
//   f16, bf16 in binary32: tests/elementwise/activation_test.cpp compares every input.
// hardsigmoid_backward = g/6, g = G 2^a, 2^23 <= G < 2^24: j >= a + 20, 6 m is a multiple of 2^(a-3): |r - m| >=
//   2^(a-3) / 6 if not 0; the error is below 2^-52 |r| < 2^(a-28) / 6. In binary32 with p bits (8 or 11) for 24:
//   2^(a-3) / 6 and 2^(a+p-23) / 6.
//
// hardswish_backward = g (x/3 + 1/2) = h + l, h = g/2, l = g x / 3, |x| < 3. h and g x (48 bits) are exact.
//   g = G 2^a, x = X 2^b, 2^23 <= G, X < 2^24, b <= -22: l's error is below 2^-52 |l| < 2^(a+b-4) / 3.
//   r = g (2 x + 3) / 6, and |2 x + 3|, a multiple of 2^(b+1), is 0 or |r| >= 2^(a+b+23) / 3: k >= a + b - 3.
//   r - m = (3 g + 2 g x - 6 m) / 6: if not 0, at least the smaller of 2^(a+b+1) and 2^(k+1), over 6: 2^(a+b-3) / 3.
//   r = m: then g x / 3 is a binary fraction of 47 bits, l is exact.
//   r = 0, infinities and NaN: the formula in binary64, whose signs, zeros and infinities are right.
// hardswish = x/2 + x^2 / 6 likewise, with the sign of x: x = X 2^e, e <= -22; the error is below 2^(2e-4) / 6; |r| =
//   |x (x + 3)| / 6 >= 2^(2e+23) / 6 or 0, k >= 2e - 4, r - m is 0 or at least 2^(2e-3) / 6. Subnormal x: x/2 is a
//   midpoint and r above it, as is the sum before its rounding to odd. x > 3: `beyond` is added to 3; its rounding does
//   not reach binary32.
//
// softsign = x/d, d = 1 + |x|. d is exact for 2^-29 <= |x| <= 2^30, the remainder of the quotient always (Dekker), and
//   its sign rounds to odd. Smaller x: the result is x, within 2^-28. Larger ones are cut: 1 - 2^-30 rounds to 1.
//
// quotient_to_odd: n/d, d = P + p > 0 normalised, |p| <= ulp(P)/2; n of any 53 bits.
//   q = n/P rounded to 26 bits, U its last place: n/d is less than U from q, so the sign of n - q d says where.
//   Let W = U ulp(P). r = n - q P: both subtractions are exact: q P is near n, and r is a multiple of W below 2^53 W.
//   q p = u + v exactly. Both r and u are multiples of ulp(u), as ulp(u) <= W: r - u is 0 or at least ulp(u) > |v|, and
//   tail has the sign of r - u - v = n - q d, and is 0 if that is. Rounded to odd: between q and its neighbour in 26
//   bits, where there is no midpoint.
//   n or the quotient 0, infinite or NaN: tail is 0 or NaN, q stays.
// softsign_backward = g/d, d = (1 + |x|)^2 = z + w, z = x^2 (48 bits, exact), w = 1 + 2 |x|.
//   2^-28 <= |x| < 2^52: w is exact, and d = P + p (two_sum).
//   |x| >= 2^52: w lacks the 1. q = Q 2^i, 2^25 <= Q < 2^26, |x| = X 2^e, e >= 29: g - q (d - 1) = g - q |x| (|x| + 2)
//   is not 0, for the odd part of |x| + 2 has more than 24 bits, and a multiple of 2^(i+e+1) > q (g's last bit is
//   higher: q x^2 is near g). So the 1 does not change its sign.
//   |x| < 2^-28: the result is g, and what is computed is between g (1 - 2^-26) and g.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct relu6;
struct hardsigmoid;
struct hardswish;
struct softsign;
struct relu6_backward;
struct hardsigmoid_backward;
struct hardswish_backward;
struct softsign_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// x cut to [lo, hi]; NaN stays.
template <class F>
REPDL_HD F cut_to(F x, F lo, F hi) {
  const F above = x < lo ? lo : x;
  return above > hi ? hi : above;
}

// As round_to_odd (eft.hpp), in integers: between two 64-bit values of integer use, selects do not vectorise with SSE2.
REPDL_HD double round_to_odd_by(double s, double tail) {
  const std::uint64_t before = (bits_of(tail) & 0x7fffffffffffffff) - 1;
  return round_to_odd(s, tail, ((before - bits_of(__builtin_inf())) & ~before) >> 63);
}

// n / d, d = d.hi + d.lo > 0, as a number of 26 bits that is made odd where it is not exact; see above.
REPDL_HD double leading_bits(double v) { return double_of((bits_of(v) + 0x4000000) & ~std::uint64_t{0x7ffffff}); }
REPDL_HD double quotient_to_odd(double n, dd d) {
  const double q = leading_bits(n / d.hi);
  const dd high = two_prod(q, d.hi);
  const dd low = two_prod(q, d.lo);
  return round_to_odd_by(q, (((n - high.hi) - high.lo) - low.hi) - low.lo);
}

template <>
struct body<ops::relu6> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const float r = v <= 0 ? 0.0f : v;
    return narrow<T>(v > 6 ? 6.0f : r);
  }
};

template <>
struct body<ops::hardsigmoid> {
  template <class T>
  REPDL_HD static T eval(T x) {
    using F = std::conditional_t<is_small_float<T>, float, double>;
    const float v = cut_to(widen_to_float(x), -3.0f, 3.0f);
    return narrow<T>((static_cast<F>(v) + F(3)) * (F(1) / F(6)));
  }
};

template <>
struct body<ops::hardswish> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const float from = v < -3.0f ? -3.0f : v;
    const float to = from > 3.0f ? 3.0f : from;
    const double c = static_cast<double>(to);
    // x (x + 3) / 6; what is added to 3 is not lost, and makes x/2 more or less, as x^2 / 6 does.
    if constexpr (is_unpacked<T>) {
      const float part = with_sign(to, 1.0f) > 0x1p-50f ? to : with_sign(0x1p-50f, to);
      const float inside = narrow<T>(c * (3.0 + static_cast<double>(part)) * (1.0 / 6)).value;
      return {v > 3 ? v : inside};
    }
    const dd sum = fast_two_sum(0.5 * c, c * c * (1.0 / 6));
    const double beyond = static_cast<double>(from) - c;
    return narrow<T>(with_sign(round_to_odd_by(sum.hi, sum.lo) + beyond, c));
  }
};

template <>
struct body<ops::softsign> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const double c = static_cast<double>(cut_to(widen_to_float(x), -0x1p30f, 0x1p30f));
    const double d = 1.0 + with_sign(c, 1.0);
    const double q = c / d;
    const dd product = two_prod(q, d);
    // Enough: tests/elementwise/activation_test.cpp compares every input.
    if constexpr (is_unpacked<T>) return narrow<T>(q);
    return narrow<T>(round_to_odd_by(q, (c - product.hi) - product.lo));
  }
};

template <>
struct body<ops::relu6_backward> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    const float v = widen_to_float(x);
    const bool stops = (v <= 0) | (v >= 6);
    return from_bits<T>(stops ? storage_of<T>{0} : to_bits(canonical(g)));
  }
};

template <>
struct body<ops::hardsigmoid_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    using F = std::conditional_t<is_small_float<T>, float, double>;
    const float v = widen_to_float(x);
    const bool passes = (v > -3) & (v < 3);
    const T r = narrow<T>(static_cast<F>(widen_to_float(g)) * (F(1) / F(6)));
    return from_bits<T>(passes ? to_bits(r) : storage_of<T>{0});
  }
};

template <>
struct body<ops::hardswish_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    const float v = widen_to_float(x);
    const double gd = widen(g);
    const double c = static_cast<double>(v);
    const dd sum = two_sum(0.5 * gd, gd * c * (1.0 / 3));
    const double exact = round_to_odd_by(sum.hi, sum.lo);
    const double naive = gd * (2.0 * c + 3.0);
    const bool regular = naive - naive == 0 && naive != 0;
    const double inside = regular ? exact : naive;
    const double r = (v > -3) & (v < 3) ? inside : gd;
    return narrow<T>(v <= -3 ? 0.0 : r);
  }
};

template <>
struct body<ops::softsign_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    const double a = with_sign(widen(x), 1.0);
    return narrow<T>(quotient_to_odd(widen(g), two_sum(a * a, 1.0 + 2.0 * a)));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T x) {
    const double d = 1.0 + with_sign(widen(x), 1.0);
    return quick_value<T>(widen(g) / (d * d));
  }
};

// ------------------------------------------------------------------------------------------------------- binary64
//
// Selections and one quotient of IEEE 754; the others are quotients, whose midpoints the sign of a remainder decides
// (formula.hpp).

template <>
struct body64<ops::relu6> {
  template <class R>
  REPDL_HD static R lanes(R x) {
    const R above = x <= 0 ? math<R>::all(0) : x;
    return canonical_of(x > 6 ? math<R>::all(6) : above);
  }
  REPDL_HD static double eval(double x) { return lanes(x); }
};
template <>
struct body64<ops::relu6_backward> {
  template <class R>
  REPDL_HD static R lanes(R g, R x) {
    return (x <= 0) | (x >= 6) ? math<R>::all(0) : canonical_of(g);
  }
  REPDL_HD static double eval(double g, double x) { return lanes(g, x); }
};
template <>
struct body64<ops::hardsigmoid_backward> {
  template <class R>
  REPDL_HD static R lanes(R g, R x) {
    return (x > -3) & (x < 3) ? canonical_of(g / 6) : math<R>::all(0);
  }
  REPDL_HD static double eval(double g, double x) { return lanes(g, x); }
};

// |x| <= 2^-53: x/6 is less than 2^-55, half of the distance from 1/2 to its neighbour below.
struct hardsigmoid64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) < 3) & (magnitude_of(x) > 0x1p-53);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R near = x > -3 ? math<R>::all(0.5) : math<R>::all(0);
    const R above = x >= 3 ? math<R>::all(1) : near;
    return x == x ? above : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R x) {
    return quotient_of(number<Ball>(x) + number<Ball>(3), number<Ball>(6));
  }
};
template <>
struct body64<ops::hardsigmoid> : by_formula<hardsigmoid64> {};

// x/2 + x^2 / 6. |x| < 2^-53: the second term is less than 2^-55.5 |x|, and neighbours of x/2 are at least 2^-54 |x|
// away: the result is x/2, or where that is a midpoint of subnormal numbers the number above it: RN(x/2), or the next
// one if RN went down.
struct hardswish64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) < 3) & (magnitude_of(x) >= 0x1p-53);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R half = 0.5 * x;
    const R up = half + half < x ? math<R>::all(0x1p-1074) : math<R>::all(0);
    const R near = copy_sign(half + up, x);
    const R above = x >= 3 ? x : near;
    return canonical_of(x <= -3 ? math<R>::all(-0.0) : above);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R x) {
    return quotient_of(number<Ball>(x) * (number<Ball>(x) + number<Ball>(3)), number<Ball>(6));
  }
};
template <>
struct body64<ops::hardswish> : by_formula<hardswish64> {};

// g (2 x + 3) / 6. A numerator has less than 1200 bits between its first and its last: the remainder is exact. 2 x + 3
// has its sign and its zero in binary64, too.
struct hardswish_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(x) < 3) & (x != -1.5);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const R near = magnitude_of(x) < 3 ? g * (2 * x + 3) : g;
    return x <= -3 ? math<R>::all(0) : canonical_of(near);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    const Ball twice = number<Ball>(x) + number<Ball>(x);
    return quotient_of(number<Ball>(g) * (twice + number<Ball>(3)), number<Ball>(6));
  }
};
template <>
struct body64<ops::hardswish_backward> : by_formula<hardswish_backward64> {};

// |x| < 2^-54: |x| - x^2 + ... rounds to |x|, whose neighbours are at least 2^-53 |x| away; |x| >= 2^54: 1 - 1 / (1 +
// |x|) rounds to 1, whose neighbour below is 2^-53 away.
struct softsign64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-54) & (magnitude_of(x) < 0x1p54);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = magnitude_of(x) > 1 ? copy_sign(math<R>::all(1), x) : x;
    return canonical_of(far);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R x) {
    return quotient_of(number<Ball>(x), number<Ball>(1) + number<Ball>(magnitude_of(x)));
  }
};
template <>
struct body64<ops::softsign> : by_formula<softsign64> {};

// With a = |x|, g / (1 + a)^2. Below a = 2^-60 the result is g, which is no midpoint; up to 2^900 the remainder is
// exact; beyond, the value is next to g / a^2, within 2^-898 of it, a ratio of 53 and 106 bits that is a midpoint, or
// at least 2^-161 of itself away from every one. From a midpoint the value is further than 2^-1024 of it: so a ball of
// 2048 bits decides. Exact zeros, infinities and NaN are those of g / (1 + a), which is finite where a is.
struct softsign_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & is_finite(x);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return canonical_of(g / (1 + magnitude_of(x)));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    const Ball root = number<Ball>(1) + number<Ball>(magnitude_of(x));
    return quotient_of(number<Ball>(g), root * root);
  }
};
template <>
struct body64<ops::softsign_backward> : by_formula<softsign_backward64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
