// Sums with products and quotients, and hypot: addcmul addcdiv lerp lerp_scalar prelu prelu_backward hypot, for f16, bf16,
// binary32.
//
// Method: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to
// odd", IEEE Trans. Comput. 57 (2008). Domain: every input.
//
// Let RO be rounding to odd in binary64 (eft.hpp). RO(v) is on the same side as v of every number of at most 52 bits, or is it
// as v is. So not only is RN_T(v) = RN_T(RO(v)). With m a midpoint of T or a number of T, which have at most 25 bits:
//   v / d, d > 0 of 24 bits:   v / d < m  iff  v < m d  iff  RO(v) < m d  iff  RO(v) / d < m, since m d has 49 bits
//   sqrt v:                    sqrt v < m  iff  v < m^2  iff  sqrt RO(v) < m, since m^2 has 50 bits
// and a quotient or a root of a binary64 number has an exact remainder, whose sign makes it RO, too.
//
// x, y, z, w below are 0 or in [2^-149, 2^128), of 24 bits; a coefficient is 0 or in [2^-200, 2^200]. All exact in binary64:
//   addcmul   y z has 48 bits, in [2^-298, 2^256). value (y z): two_prod, below 2^456, a multiple of 2^-550.
//   addcdiv   (x z + value y) / z: x z has 48 bits; value y: two_prod, a multiple of 2^-401. The sum s is 0 or in [2^-401,
//             2^330), s / z in [2^-529, 2^480).
//   lerp      x + w end - w x, products of 48 bits: three numbers, the last two normalised by two_sum.
//   hypot     x^2 + y^2, squares of 48 bits in [2^-298, 2^256): two_sum.
//
// Zeros, infinities and NaN are those of the plain formula in binary64, `plain`, whose operations neither overflow nor
// underflow for finite operands. Where it is finite and the exact value is not 0 the value is the one above.
// - addcmul: add_to_odd's own.
// - addcdiv: s = 0 with x != 0 is an exact zero of nonzero terms, +0. x = 0 and s = 0: value y = 0, and plain is x + (a zero).
// - lerp: x = 0: plain is x + w end, exact; else an exact zero is add_to_odd's x + (-x) = +0.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct addcmul;
struct addcdiv;
struct lerp;
struct lerp_scalar;
struct prelu;
struct prelu_backward;
struct hypot;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// quick, for f16 and bf16: x + p, p within 2^-51 of itself.
template <class T>
REPDL_HD decided_value<T> quick_sum(double x, double p) {
  const double error = 0x1p-50 * magnitude_of(p);
  return certify_between<T>(x + (p - error), x + (p + error));
}

template <>
struct body<ops::addcmul> {
  static constexpr bool in_lists = true;
  template <class T>
  REPDL_HD static T eval(T x, T y, T z, const parameters& p) {
    return narrow<T>(add_to_odd(widen(x), two_prod(p.value[0], widen(y) * widen(z))));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T x, T y, T z, const parameters& p) {
    return quick_sum<T>(widen(x), p.value[0] * (widen(y) * widen(z)));
  }
};

template <>
struct body<ops::addcdiv> {
  static constexpr bool in_lists = true;
  template <class T>
  REPDL_HD static T eval(T x, T y, T z, const parameters& p) {
    const double a = widen(x);
    const double d = widen(z);
    const double product = p.value[0] * widen(y);
    const double plain = a + product / d;
    const double s = add_to_odd(a * d, two_prod(p.value[0], widen(y)));
    const double quotient = s == 0 ? 0.0 : quotient_to_odd(s, d);
    const bool finite = is_regular(plain) & is_regular(d);
    return narrow<T>(finite & ((s != 0) | (a != 0)) ? quotient : plain);
  }
};

template <>
struct body<ops::lerp> {
  static constexpr bool in_lists = true;
  template <class T>
  REPDL_HD static T eval(T x, T end, T weight) {
    const double a = widen(x);
    const double b = widen(end);
    const double w = widen(weight);
    const double plain = a + w * (b - a);
    const double exact = add_to_odd(a, two_sum(w * b, -(w * a)));
    return narrow<T>(is_regular(plain) & (a != 0) ? exact : plain);
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T x, T end, T weight) {
    const double product = widen(weight) * (widen(end) - widen(x));  // of f16 exact
    if constexpr (is_format<T, f16>) return quick_value<T>(widen(x) + product);
    return quick_sum<T>(widen(x), product);
  }
};

// x + w (end - x), w a coefficient. end - x = d.hi + d.lo exactly. Mostly d.lo = 0 (the exponents of x and end differ by 29 at
// most, or the bits are few): then s = RO(x + w d.hi) decides. Else, with u = 2^-53:
//   s for x + w d.hi            2 u |s|
//   w d.lo                      |w d.lo|, computed within u of itself
//   s -+ error                  u |s| + u error
// and error = 2^-50 |s| + (1 + 2^-20) |w d.lo| covers them. |w d.lo| <= u |w d.hi|: what is left undecided is a share of 2^-25 of
// the inputs with d.lo != 0 in binary32, and where x nearly cancels w end. Multi-limb numbers decide: exact are
//   end - x                     bits 2^-149 to 2^128
//   w (end - x)                 bits 2^-401 to 2^329
//   the sum                     731 bits: 1024 are enough
struct lerp_formula {
  double x, end, weight;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(x) + number<L>(weight) * (number<L>(end) - number<L>(x));
  }
};
template <>
struct body<ops::lerp_scalar> {
  static constexpr bool in_lists = true;
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, T end, const parameters& p) {
    const double a = widen(x);
    const double w = p.value[0];
    const dd d = two_sum(widen(end), -a);
    const double plain = a + w * d.hi;
    const double s = add_to_odd(a, two_prod(w, d.hi));
    const double error = 0x1p-50 * magnitude_of(s) + 0x1.00001p0 * magnitude_of(w * d.lo);
    const bool exact = (d.lo == 0) | !is_regular(plain);
    return certify_with_ties<T>(is_regular(plain) ? s : plain, exact ? 0.0 : error);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, T end, const parameters& p, int last_tier_bits) {
    const double a = widen(x);
    const double b = widen(end);
    const double plain = a + p.value[0] * (b - a);
    if (!is_regular(plain) || a == b || a == 0) return eval(x, end, p);  // nothing is added to a product: d.lo = 0
    return decide<T>(lerp_formula{a, b, p.value[0]}, last_tier_bits);
  }
};

// w x: 48 bits; of f16 and bf16 in binary32 (basic.hpp).
template <class T>
using product_format = std::conditional_t<is_small_float<T>, float, double>;
template <>
struct body<ops::prelu> {
  template <class T>
  REPDL_HD static T eval(T x, T w) {
    using F = product_format<T>;
    const F a = static_cast<F>(widen_to_float(x));
    const F product = static_cast<F>(widen_to_float(w)) * a;
    return narrow<T>(a > 0 ? a : product);
  }
};
template <>
struct body<ops::prelu_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x, T w) {
    using F = product_format<T>;
    const F a = static_cast<F>(widen_to_float(g));
    const F product = static_cast<F>(widen_to_float(w)) * a;
    return narrow<T>(static_cast<F>(widen_to_float(x)) > 0 ? a : product);
  }
};

template <>
struct body<ops::hypot> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const dd s = two_sum(a * a, b * b);
    const double square = round_to_odd(s.hi, s.lo);
    const double r = num::sqrt(square);
    const dd p = two_prod(r, r);
    const double exact = round_to_odd(r, (square - p.hi) - p.lo);
    const bool infinite = (magnitude_of(a) == infinity) | (magnitude_of(b) == infinity);
    return narrow<T>(infinite ? infinity : exact);
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const bool infinite = (magnitude_of(a) == infinity) | (magnitude_of(b) == infinity);
    return quick_value<T>(infinite ? infinity : num::sqrt(a * a + b * b));
  }
};

// ------------------------------------------------------------------------------------------------------- binary64

template <>
struct body64<ops::prelu> {
  template <class R>
  REPDL_HD static R lanes(R x, R w) {
    return canonical_of(x > 0 ? x : w * x);
  }
  REPDL_HD static double eval(double x, double w) { return lanes(x, w); }
};
template <>
struct body64<ops::prelu_backward> {
  template <class R>
  REPDL_HD static R lanes(R g, R x, R w) {
    return canonical_of(x > 0 ? g : w * g);
  }
  REPDL_HD static double eval(double g, double x, double w) { return lanes(g, x, w); }
};

// a + b + c of exact terms, of at most 159 bits each, in any order; they may be 0. Exponents go from -2200 to 2200:
// 2048 bits do not hold every sum. Let |a| be largest, |c| least (terms of one exponent in any order), m a midpoint of
// 54 bits.
//   b below 2^(-32 L) a: the value is next to a, which is m, and then b + c decides; or which is 2^-215 a from m, and a
//     ball decides.
//   else a + b is exact in 2048 bits, for it is a multiple of 2^-1184 a. If it is m, c decides. If not, and it is 0,
//     the value is c. If not, it is a multiple of 2^-1300 a away from m. A ball cannot decide if a + b + c - m is 0 or
//     below 2^-2030 a: then |c| is above 2^-1301 a, and everything is a multiple of 2^-1500 a, so it is 0, and the ball
//     exact.
// b + c has the sign of b where it is not exact: their exponents are different then.
template <int L>
REPDL_HD_CALL beside<L> sum_of_terms(const ball<L>& x, const ball<L>& y, const ball<L>& z) {
  const ball<L>*a = &x, *b = &y, *c = &z;
  const auto order = [](const ball<L>*& larger, const ball<L>*& smaller) {
    if (smaller->middle.is_zero()) return;
    if (!larger->middle.is_zero() && larger->middle.exponent >= smaller->middle.exponent) return;
    const ball<L>* kept = larger;
    larger = smaller;
    smaller = kept;
  };
  order(a, b);
  order(b, c);
  order(a, b);
  const ball<L> two = *a + *b;
  const ball<L> value = two + *c;
  if (b->middle.is_zero() || a->middle.exponent - b->middle.exponent <= 32 * L) return {value, two, sign_of(*c)};
  const ball<L> rest = *b + *c;
  return {value, *a, rest.exact() ? sign_of(rest) : b->middle.negative != 0 ? -1 : 1};
}

// x + value y z. Signs, zeros, infinities and NaN are those of x and the product of what is left of its factors
// (as_factor). A sum that is 0 is +0.
struct addcmul64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y, R z, const parameters& p) {
    return is_finite(x) & is_finite_not_zero(y) & is_finite_not_zero(z) & (math<R>::all(p.value[0]) != 0);
  }
  template <class R>
  REPDL_HD static R special(R x, R y, R z, const parameters& p) {
    return canonical_of(x + as_factor(p.value[0]) * as_factor(y) * as_factor(z));
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R y, R z, const parameters& p) {
    using Ball = dd_ball<R>;
    return round_sum(number<Ball>(x) + number<Ball>(p.value[0]) * number<Ball>(y) * number<Ball>(z));
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, double y, double z, const parameters& p) {
    return sum_of_terms(number<Ball>(x), number<Ball>(p.value[0]) * number<Ball>(y) * number<Ball>(z), number<Ball>(0));
  }
};
template <>
struct body64<ops::addcmul> : by_formula<addcmul64> {};

// x + q, q = value y / z, likewise. In the last tier (x z + value y) / z, where 1024 bits hold the numerator if neither
// of x and q is below 2^-400 of the other. If q is, the value is next to x, no midpoint. If x is, 2^-400 |q| with its
// sign takes its place: q is a midpoint, and it is the sign that decides, or q is 2^-162 of itself or more away from
// every one.
struct addcdiv64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y, R z, const parameters& p) {
    return addcmul64::plain(x, y, z, p);
  }
  template <class R>
  REPDL_HD static R special(R x, R y, R z, const parameters& p) {
    return canonical_of(x + as_factor(p.value[0]) * as_factor(y) / as_factor(z));
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R y, R z, const parameters& p) {
    using Ball = dd_ball<R>;
    return round_sum(number<Ball>(x) + quotient_of(number<Ball>(p.value[0]) * number<Ball>(y), number<Ball>(z)));
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, double y, double z, const parameters& p) {
    constexpr int L = limbs_of_ball<Ball>;
    const Ball product = number<Ball>(p.value[0]) * number<Ball>(y);
    const Ball divisor = number<Ball>(z);
    Ball term = number<Ball>(x);
    const std::int64_t least = product.middle.exponent - divisor.middle.exponent - 400;
    if (x != 0 && term.middle.exponent < least) term = exact_ball(limbs_of_power<L>(least, x < 0));
    return quotient_of(term * divisor + product, divisor);
  }
};
template <>
struct body64<ops::addcdiv> : by_formula<addcdiv64> {};

// x + w (end - x), in the last tier x + w end - w x. Where x = 0 it is one product, and where w (end - x) = 0 the sum
// in binary64; so it is with infinities and NaN, if end - x, which is finite then, is kept from overflow: w may be 0.
struct lerp64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R end, R w) {
    return is_finite_not_zero(x) & is_finite(end) & is_finite_not_zero(w) & (end != x);
  }
  template <class R>
  REPDL_HD static R special(R x, R end, R w) {
    const R difference = end - x;
    const mask_of<R> finite = is_finite(x) & is_finite(end);
    const R product = w * (finite ? as_factor(is_finite(difference) ? difference : end) : difference);
    return canonical_of((x == 0) & (w != 0) & (end != 0) ? w * end : x + product);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R end, R w) {
    using Ball = dd_ball<R>;
    return round_sum(number<Ball>(x) + number<Ball>(w) * (number<Ball>(end) - number<Ball>(x)));
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, double end, double w) {
    const Ball weight = number<Ball>(w);
    return sum_of_terms(number<Ball>(x), weight * number<Ball>(end), weight * number<Ball>(-x));
  }
};
template <>
struct body64<ops::lerp> : by_formula<lerp64> {};

struct lerp_scalar64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R end, const parameters& p) {
    return lerp64::plain(x, end, math<R>::all(p.value[0]));
  }
  template <class R>
  REPDL_HD static R special(R x, R end, const parameters& p) {
    return lerp64::special(x, end, math<R>::all(p.value[0]));
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R end, const parameters& p) {
    return lerp64::first(x, end, math<R>::all(p.value[0]));
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, double end, const parameters& p) {
    return lerp64::formula<Ball>(x, end, p.value[0]);
  }
};
template <>
struct body64<ops::lerp_scalar> : by_formula<lerp_scalar64> {};

// With b <= a the magnitudes: b <= 2^-28 a, or rounded 2^-27 a, adds less than b^2 / (2 a) <= 2^-55 a, and a's
// neighbours are at least 2^-53 a away: the result is a. Else a^2 + b^2 and the square of a midpoint are exact in 256
// bits.
struct hypot64 {
  template <class R>
  REPDL_HD static R larger(R x, R y) {
    return magnitude_of(x) > magnitude_of(y) ? magnitude_of(x) : magnitude_of(y);
  }
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y) {
    const R least = 0x1p-28 * larger(x, y);
    return (magnitude_of(x) > least) & (magnitude_of(y) > least);
  }
  template <class R>
  REPDL_HD static R special(R x, R y) {
    const mask_of<R> infinite = (magnitude_of(x) == infinity) | (magnitude_of(y) == infinity);
    const R number = (x == x) & (y == y) ? larger(x, y) : nan_of<R>();
    return infinite ? math<R>::all(infinity) : number;
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R x, R y) {
    const Ball sum = number<Ball>(x) * number<Ball>(x) + number<Ball>(y) * number<Ball>(y);
    if constexpr (is_multi_limb<Ball>) {
      return root<limbs_of_ball<Ball>>{sum, number<Ball>(1)};
    } else {
      return square_root(sum);
    }
  }
};
template <>
struct body64<ops::hypot> : by_formula<hypot64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
