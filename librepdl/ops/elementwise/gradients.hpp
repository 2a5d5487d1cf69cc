// Gradients of algebraic functions, for f16, bf16, binary32:
//   sqrt_backward       g / (2 y)              lerp_backward_x, lerp_scalar_backward_x   g (1 - w)
//   log_backward        g / x                  lerp_backward_weight                      g (end - x)
//   log1p_backward      g / (1 + x)            hypot_backward     g x / r
//   rsqrt_backward      -g y^3 / 2             atan2_backward_y   g x / (x^2 + y^2)
//   reciprocal_backward -g y^2                 atan2_backward_x   -g y / (x^2 + y^2)
//   expm1_backward      g (y + 1)              xlogy_backward_y   g x / y
//   div_backward_y      -g x / y^2             fmod_backward_y       -g trunc(x / y)
//   addcdiv_backward_z  -g value y / z^2       remainder_backward_y  -g floor(x / y)
//
// Method: exact numerators and denominators, quotients rounded to odd in binary64, after S. Boldo and G. Melquiond, "Emulation
// of a FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008). Domain: every
// input; nothing is left undecided. Operands are 0 or in [2^-149, 2^128), of 24 bits, so products of two have 48 bits and are 0
// or in [2^-298, 2^256): exact in binary64. A coefficient is 0 or in [2^-200, 2^200].
//
// Products and sums, exact as one or two binary64 numbers:
//   reciprocal, rsqrt     (g y) y, (g y / 2)(y y): two_prod, in [2^-599, 2^512). f16, bf16: 44 bits at most, one number
//   expm1, lerp           g + g a, g end - g x: two_sum
//   lerp_scalar           g + (-w) g: add_to_odd, as in sums.hpp
// Quotients of two exact binary64 numbers:
//   xlogy, hypot          (g x) / y, (g x) / r, rounded again: for a midpoint m, at most 25 bits, m y has 49, so that g x - m y is 0
//     or at least 2^-49 |g x|: binary64's quotient, within 2^-53 of itself, is on the right side of m, or m.
//   sqrt                  (g / 2) / y likewise; f16, bf16: in binary32, as div in basic.hpp; g / 2 is exact there.
//   div                   (g x) / y^2: quotient_to_odd (body.hpp), since the remainder is exact
// Denominators of two numbers: quotient_to_odd (activation.hpp), for a positive one.
//   log1p                 1 + x: two_sum; x < -1: -g / -(1 + x)
//   atan2                 x^2 + y^2: two_sum
// A numerator of two numbers, n = n.hi + n.lo = value g y (two_prod: in [2^-498, 2^456), a multiple of 2^-550), over d = z^2:
//   q = n.hi / d rounded to 26 bits, U its last place: n / d is less than U from q. r = n.hi - q d is exact as there, and one
//   addition has the sign of r + n.lo = n - q d.
//
// fmod, remainder: with r = |x| mod |y| exactly (remainder.hpp), |trunc(x / y)| = (|x| - r) / |y|, and |floor(x / y)| is that or,
// where the signs differ and r != 0, (|x| + (|y| - r)) / |y|; |y| - r has 24 bits for |x| >= |y|. So |g| times it is the sum of two
// products, rounded to odd, over a number of 24 bits: sums.hpp says why that is enough. |x| < |y|: 0 or |y|, over |y|. quick: g
// times a whole number below 2^29, or 2^29, exactly.
//
// Zeros, infinities and NaN are those of the plain formula in binary64, whose operations neither overflow nor underflow for finite
// operands. g (1 + a) and g (end - x) are 0 only where the plain formula is (an inexact difference is no 0); end - x is +0 for
// zeros of any sign. The whole quotient is, where x or y is not finite or y is 0, trunc or floor of x / y, floor(x / y) = -1 for a
// finite x != 0 and an infinite y of other signs; an infinite or NaN g times 0 or an infinity, likewise, by `plain`.
//
// quick, for f16 and bf16 (formula.hpp): the plain formula, where no terms cancel, within some 2^-53 of itself.
//
// Checked by tests/gradients/gradients_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/activation.hpp"
#include "librepdl/ops/elementwise/basic.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/remainder.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct sqrt_backward;
struct log_backward;
struct log1p_backward;
struct rsqrt_backward;
struct reciprocal_backward;
struct expm1_backward;
struct lerp_backward_x;
struct lerp_backward_weight;
struct lerp_scalar_backward_x;
struct div_backward_y;
struct xlogy_backward_y;
struct hypot_backward;
struct addcdiv_backward_z;
struct atan2_backward_y;
struct atan2_backward_x;
struct fmod_backward_y;
struct remainder_backward_y;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::sqrt_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T y) {
    using F = std::conditional_t<is_small_float<T>, float, double>;
    return narrow<T>(F(0.5) * static_cast<F>(widen_to_float(g)) / static_cast<F>(widen_to_float(y)));
  }
};

template <>
struct body<ops::log_backward> : body<ops::div> {};

template <>
struct body<ops::log1p_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    const dd d = two_sum(1.0, widen(x));
    const std::uint64_t sign = bits_of(d.hi) & sign_mask<double>;
    const auto turned = [=](double v) { return double_of(bits_of(v) ^ sign); };
    return narrow<T>(quotient_to_odd(turned(widen(g)), dd{turned(d.hi), turned(d.lo)}));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T x) {
    return quick_value<T>(widen(g) / (1.0 + widen(x)));
  }
};

// RN_T(a b) for exact a, b.
template <class T>
REPDL_HD T round_product(double a, double b) {
  if constexpr (is_small_float<T>) {
    return narrow<T>(a * b);
  } else {
    const dd p = two_prod(a, b);
    return narrow<T>(round_to_odd(p.hi, p.lo));
  }
}
template <>
struct body<ops::rsqrt_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T y) {
    const double v = widen(y);
    return round_product<T>(-0.5 * (widen(g) * v), v * v);
  }
};
template <>
struct body<ops::reciprocal_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T y) {
    const double v = widen(y);
    return round_product<T>(-(widen(g) * v), v);
  }
};

// RN_T(s) for s = a + b exactly, or the plain formula where that is 0 or not finite.
template <class T>
REPDL_HD T round_sum(dd s, double plain) {
  const bool regular = is_regular(plain) & (plain != 0);
  return narrow<T>(regular ? round_to_odd(s.hi, s.lo) : plain);
}
template <>
struct body<ops::expm1_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T y) {
    const double gd = widen(g);
    const double v = widen(y);
    return round_sum<T>(two_sum(gd, gd * v), gd * (1.0 + v));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T y) {
    return quick_value<T>(widen(g) * (1.0 + widen(y)));
  }
};
template <>
struct body<ops::lerp_backward_x> {
  template <class T>
  REPDL_HD static T eval(T g, T weight) {
    const double gd = widen(g);
    const double w = widen(weight);
    return round_sum<T>(two_sum(gd, -(gd * w)), gd * (1.0 - w));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T weight) {
    return quick_value<T>(widen(g) * (1.0 - widen(weight)));
  }
};
template <>
struct body<ops::lerp_backward_weight> {
  template <class T>
  REPDL_HD static T eval(T g, T x, T end) {
    const double gd = widen(g);
    const double a = widen(x);
    const double b = widen(end);
    return round_sum<T>(two_sum(gd * b, -(gd * a)), gd * ((b - a) + 0.0));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T x, T end) {
    return quick_value<T>(widen(g) * ((widen(end) - widen(x)) + 0.0));
  }
};
template <>
struct body<ops::lerp_scalar_backward_x> {
  template <class T>
  REPDL_HD static T eval(T g, const parameters& p) {
    const double gd = widen(g);
    const double w = p.value[0];
    return round_sum<T>({add_to_odd(gd, two_prod(-w, gd)), 0.0}, gd * (1.0 - w));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, const parameters& p) {
    return quick_value<T>(widen(g) * (1.0 - p.value[0]));
  }
};

// a b / (c d) for f16 and bf16; of f16 both products are numbers of binary32.
template <class T>
REPDL_HD decided_value<T> quick_quotient(float a, float b, float c, float d) {
  if constexpr (is_format<T, f16>) {
    const float q = a * b / (c * d);
    return {{q}, midpoint_mark<T>(q)};
  } else {
    using F = double;
    return quick_value<T>(F{a} * F{b} / (F{c} * F{d}));
  }
}

// a b / c for f16 and bf16 in binary32, rounded again. Let a b = P 2^i, c = C 2^j, and m = M 2^k a midpoint other than a b / c,
// integers below 2^(2p), 2^p and 2^(p+1). P 2^i - M C 2^(j+k) is a multiple of the smaller power of two, so a b / c is 2^-(2p+1) of
// itself or of m at least away from m, 2^-23 or 2^-17, and rounded to within 2^-24 of itself: to a number on its side of m, for m is
// one of binary32. Of bf16, a product or quotient that is not normal in binary32 is left undecided, but for those of a zero, exact.
template <class T>
REPDL_HD undecided_value<T> quick_product_quotient(float a, float b, float c) {
  const float product = a * b;
  const float q = product / c;
  if constexpr (is_format<T, f16>) return {{q}, 0};
  const auto magnitude = [](float v) { return bits_of(v) & 0x7fffffff; };
  const auto beyond = [&](float v) { return (magnitude(v) - 0x00800000) | (0x7f7fffff - magnitude(v)); };
  const std::uint32_t zero = (magnitude(a) - 1) | (magnitude(b) - 1);
  return {{q}, ((beyond(product) | beyond(q)) & ~zero) >> 31};
}
template <>
struct body<ops::div_backward_y> {
  template <class T>
  REPDL_HD static T eval(T g, T x, T y) {
    const double d = widen(y);
    return narrow<T>(quotient_to_odd(-(widen(g) * widen(x)), d * d));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T x, T y) {
    return quick_quotient<T>(-g.value, x.value, y.value, y.value);
  }
};
template <>
struct body<ops::xlogy_backward_y> {
  template <class T>
  REPDL_HD static T eval(T g, T x, T y) {
    return narrow<T>(widen(g) * widen(x) / widen(y));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static undecided_value<T> quick(T g, T x, T y) {
    return quick_product_quotient<T>(g.value, x.value, y.value);
  }
};
template <>
struct body<ops::hypot_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x, T r) {
    const double d = widen(r);
    const double quotient = widen(g) * widen(x) / d;
    return narrow<T>(d == 0 ? 0.0 : quotient);
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static undecided_value<T> quick(T g, T x, T r) {
    auto q = quick_product_quotient<T>(g.value, x.value, r.value);
    const std::uint32_t kept = r.value == 0 ? 0u : ~0u;
    q.value.value = float_of(bits_of(q.value.value) & kept);
    return q;
  }
};

template <>
struct body<ops::addcdiv_backward_z> {
  template <class T>
  REPDL_HD static T eval(T g, T y, T z, const parameters& p) {
    const double d = widen(z) * widen(z);
    const dd n = two_prod(-p.value[0], widen(g) * widen(y));
    const double q = leading_bits(n.hi / d);
    const dd high = two_prod(q, d);
    return narrow<T>(round_to_odd_by(q, ((n.hi - high.hi) - high.lo) + n.lo));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T y, T z, const parameters& p) {
    return quick_value<T>(-p.value[0] * (widen(g) * widen(y)) / (widen(z) * widen(z)));
  }
};

// g a / (a^2 + b^2), +0 where both are 0.
template <class T>
REPDL_HD T inverse_gradient(double g, double a, double b) {
  const dd d = two_sum(a * a, b * b);
  const double quotient = quotient_to_odd(g * a, d);
  return narrow<T>(d.hi == 0 ? 0.0 : quotient);
}
template <class T>
REPDL_HD decided_value<T> quick_inverse_gradient(double g, double a, double b) {
  const double d = a * a + b * b;
  const double quotient = g * a / d;
  return quick_value<T>(choose(d == 0, 0.0, quotient));
}
template <>
struct body<ops::atan2_backward_y> {
  template <class T>
  REPDL_HD static T eval(T g, T y, T x) {
    return inverse_gradient<T>(widen(g), widen(x), widen(y));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T y, T x) {
    return quick_inverse_gradient<T>(widen(g), widen(x), widen(y));
  }
};
template <>
struct body<ops::atan2_backward_x> {
  template <class T>
  REPDL_HD static T eval(T g, T y, T x) {
    return inverse_gradient<T>(-widen(g), widen(y), widen(x));
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T g, T y, T x) {
    return quick_inverse_gradient<T>(-widen(g), widen(y), widen(x));
  }
};

// -g times the whole quotient.
template <bool Floor>
struct whole_division_gradient {
  template <class T>
  REPDL_HD static T eval(T g, T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const double p = magnitude_of(a);
    const double q = magnitude_of(b);
    const double scale = magnitude_of(widen(g));
    const double r = remainder_magnitude<T>(a, b);
    const std::uint64_t sign = (bits_of(a) ^ bits_of(b)) >> 63;
    const bool up = Floor & (sign != 0) & (r != 0);
    const bool defined = (p < infinity) & (q > 0);
    const bool small = p < q;
    const double first = small ? 0.0 : p;
    const double rest = small ? 0.0 : r;
    const double divisor = q < infinity ? q : 1.0;
    const dd s = two_sum(scale * first, scale * (up ? divisor - rest : -rest));
    const double exact = quotient_to_odd(round_to_odd(s.hi, s.lo), divisor);
    const double whole = small & !up ? 0.0 : 1.0;  // of a finite one whether it is 0
    const double plain = scale * (defined ? whole : p / q);
    const double v = defined & (scale < infinity) ? exact : plain;
    return narrow<T>(double_of(bits_of(v) ^ ((~bits_of(widen(g)) ^ sign << 63) & sign_mask<double>)));
  }
  template <class T>
  requires has_24_bits<T> REPDL_HD static auto quick(T g, T x, T y) {
    const auto d = quick_whole_quotient<Floor>(x, y);
    const T v = narrow<T>(-widen(g) * static_cast<double>(d.quotient));
    return d.template give<T>(widen_to_float(v));
  }
};
template <>
struct body<ops::fmod_backward_y> : whole_division_gradient<false> {};
template <>
struct body<ops::remainder_backward_y> : whole_division_gradient<true> {};

// -------------------------------------------------------------------------------------------------------- binary64
//
// Balls. Every value is a product of numbers, or a quotient N / D of sums and products of numbers. In multi-limb balls these are exact, of
// fewer than 1024 bits: products are rounded there, ties included, and quotients compared with a border exactly. Sums of numbers far
// apart are no exception: see term_beside.
//
// Where every operand is finite and not 0, and no sum is 0, the formula holds. Elsewhere zeros, infinities and NaN are those of the plain formula,
// whose results do not change if a number other than 0 becomes 1 with its sign: so nothing overflows or underflows.

// b, as a term beside a != 0: in sums a + b, and squares a^2 + b^2. In multi-limb balls, if |b| < |a| 2^-128, a number of that magnitude and
// of b's sign, so that a + b has fewer than 256 bits, a^2 + b^2 fewer than 512.
//
// The result is the same. Without b the value would be q, and it is q (1 + d), |d| < 2^-127 for sums, 2^-254 for squares (the product with
// 2^-128 may be rounded among subnormal numbers: by a quarter at most, if b is less), the sign of d being the same for either b. Let m be a
// border of rounding, of 54 bits at most, q/2 < m < 2 q, as others are far. With q = N / D, N - m D is 0, or at least a unit of N's or of
// m D's last place. In sums N = g a, D = 1, or N = g, D = a, or N = g x, D = y with x for a; in squares N = g a, D = b^2, or N = g, D = a: so q is m,
// or 2^-108 |q| from it in sums, 2^-161 |q| in squares, and the value is on the side of m that q and the sign of d say.
template <class Ball, class R>
REPDL_HD Ball term_beside(R b, R a) {
  if constexpr (is_multi_limb<Ball>) {
    const double least = 0x1p-128 * magnitude_of(a);
    if (b != 0 && magnitude_of(b) < least) return scaled(number<Ball>(copy_sign(magnitude_of(a), b)), -128);
  }
  return number<Ball>(b);
}

// g s, for an s that is exact, if its bound does not say that nothing is known: the sum of two exact products, which decides ties. The second
// one, where it is too small to have a low part: within 2^-52 of itself and 2^-1010.
template <class R>
REPDL_HD dd_ball<R> times(R g, const dd_ball<R>& s) {
  using Ball = dd_ball<R>;
  const R rough = g * s.lo;
  const mask_of<R> small = (magnitude_of(rough) < 0x1p-900) & (s.lo != 0);
  const Ball bounded{rough, math<R>::all(0), 0x1p-52 * magnitude_of(rough) + 0x1p-1010};
  const Ball second = select(small, bounded, number<Ball>(g) * number<Ball>(s.lo));
  return grown(number<Ball>(g) * number<Ball>(s.hi) + second, magnitude_of(g) * s.error);
}
template <int L>
REPDL_HD ball<L> times(double g, const ball<L>& s) {
  return number<L>(g) * s;
}

// g / (2 y): one division. 2 y is exact, or else g / 2, unless it is subnormal, where |y| >= 2^1023 and the result is a zero either way.
template <>
struct body64<ops::sqrt_backward> {
  template <class R>
  REPDL_HD static R lanes(const R& g, const R& y) {
    const mask_of<R> large = magnitude_of(y) >= 0x1p1023;
    return canonical_of((large ? 0.5 * g : g) / (large ? y : 2 * y));
  }
  REPDL_HD static double eval(double g, double y) { return lanes(g, y); }
};

struct log1p_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(x) < infinity) & (x != -1);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    return canonical_of(g / (1 + x));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x) {
    const R one = math<R>::all(1);
    const mask_of<R> large = magnitude_of(x) > 1;
    const Ball sum = number<Ball>(large ? x : one) + term_beside<Ball>(large ? one : x, large ? x : one);
    return quotient_of(number<Ball>(g), sum);
  }
};
template <>
struct body64<ops::log1p_backward> : by_formula<log1p_backward64> {};

struct rsqrt_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y) {
    return is_finite_not_zero(g) & is_finite_not_zero(y);
  }
  template <class R>
  REPDL_HD static R special(R g, R y) {
    const R unit = as_factor(y);
    return canonical_of(-as_factor(g) * unit * unit * unit);
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R y) {
    return scaled((number<Ball>(-g) * number<Ball>(y)) * (number<Ball>(y) * number<Ball>(y)), -1);
  }
};
template <>
struct body64<ops::rsqrt_backward> : by_formula<rsqrt_backward64> {};

struct reciprocal_backward64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y) {
    return is_finite_not_zero(g) & is_finite_not_zero(y);
  }
  template <class R>
  REPDL_HD static R special(R g, R y) {
    const R unit = as_factor(y);
    return canonical_of(-as_factor(g) * unit * unit);
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R g, R y) {
    return times(-g, number<Ball>(y) * number<Ball>(y));
  }
};
template <>
struct body64<ops::reciprocal_backward> : by_formula<reciprocal_backward64> {};

// g (a + b), of which a row says what they are. a + b = 0 is +0.
template <class R>
struct sum_gradient_terms {
  R g, a, b;
};
template <class Row, class... X>
concept has_terms = requires(const X&... x) {
  Row::of(x...);
};
template <class Row>
struct sum_gradient64 {
  template <class R, class... X>
  requires has_terms<Row, R, X...> REPDL_HD static mask_of<R> plain(const R& g, const X&... x) {
    const sum_gradient_terms<R> t = Row::of(g, x...);
    return is_finite_not_zero(t.g) & (magnitude_of(t.a) < infinity) & (magnitude_of(t.b) < infinity) & (t.a != -t.b);
  }
  template <class R, class... X>
  REPDL_HD static R special(const R& g, const X&... x) {
    const sum_gradient_terms<R> t = Row::of(g, x...);
    const mask_of<R> finite = (magnitude_of(t.a) < infinity) & (magnitude_of(t.b) < infinity);
    const R below = t.a < -t.b ? math<R>::all(-1) : math<R>::all(0);
    const R sign = t.a > -t.b ? math<R>::all(1) : below;
    return canonical_of(t.g * (finite ? sign : t.a + t.b));
  }
  template <class Ball, class R, class... X>
  REPDL_HD static Ball formula(const R& g, const X&... x) {
    const sum_gradient_terms<R> t = Row::of(g, x...);
    const mask_of<R> swapped = magnitude_of(t.a) < magnitude_of(t.b);
    const R larger = swapped ? t.b : t.a;
    return times(t.g, number<Ball>(larger) + term_beside<Ball>(swapped ? t.a : t.b, larger));
  }
};
struct expm1_backward_terms {
  template <class R>
  REPDL_HD static sum_gradient_terms<R> of(R g, R y) {
    return {g, y, math<R>::all(1)};
  }
};
template <>
struct body64<ops::expm1_backward> : by_formula<sum_gradient64<expm1_backward_terms>> {};
struct lerp_backward_x_terms {
  template <class R>
  REPDL_HD static sum_gradient_terms<R> of(R g, R weight) {
    return {g, -weight, math<R>::all(1)};
  }
};
template <>
struct body64<ops::lerp_backward_x> : by_formula<sum_gradient64<lerp_backward_x_terms>> {};
struct lerp_scalar_backward_x_terms {
  template <class R>
  REPDL_HD static sum_gradient_terms<R> of(R g, const parameters& p) {
    return {g, math<R>::all(-p.value[0]), math<R>::all(1)};
  }
};
template <>
struct body64<ops::lerp_scalar_backward_x> : by_formula<sum_gradient64<lerp_scalar_backward_x_terms>> {};
struct lerp_backward_weight_terms {
  template <class R>
  REPDL_HD static sum_gradient_terms<R> of(R g, R x, R end) {
    return {g, end, -x};
  }
};
template <>
struct body64<ops::lerp_backward_weight> : by_formula<sum_gradient64<lerp_backward_weight_terms>> {};

// factor g x / y^2, the factor a number.
struct over_square64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R factor, R g, R x, R y) {
    return is_finite_not_zero(factor) & is_finite_not_zero(g) & is_finite_not_zero(x) & is_finite_not_zero(y);
  }
  template <class R>
  REPDL_HD static R special(R factor, R g, R x, R y) {
    const R unit = as_factor(y);
    return canonical_of(as_factor(factor) * as_factor(g) * as_factor(x) / (unit * unit));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R factor, R g, R x, R y) {
    return quotient_of(number<Ball>(factor) * (number<Ball>(g) * number<Ball>(x)), number<Ball>(y) * number<Ball>(y));
  }
};
struct div_backward_y64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, R y) {
    return over_square64::plain(math<R>::all(-1), g, x, y);
  }
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    return over_square64::special(math<R>::all(-1), g, x, y);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x, R y) {
    return quotient_of(number<Ball>(-g) * number<Ball>(x), number<Ball>(y) * number<Ball>(y));
  }
};
template <>
struct body64<ops::div_backward_y> : by_formula<div_backward_y64> {};
struct addcdiv_backward_z64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y, R z, const parameters& p) {
    return over_square64::plain(math<R>::all(-p.value[0]), g, y, z);
  }
  template <class R>
  REPDL_HD static R special(R g, R y, R z, const parameters& p) {
    return over_square64::special(math<R>::all(-p.value[0]), g, y, z);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R y, R z, const parameters& p) {
    return over_square64::formula<Ball>(math<R>::all(-p.value[0]), g, y, z);
  }
};
template <>
struct body64<ops::addcdiv_backward_z> : by_formula<addcdiv_backward_z64> {};

struct xlogy_backward_y64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, R y) {
    return is_finite_not_zero(g) & is_finite_not_zero(x) & is_finite_not_zero(y);
  }
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    return canonical_of(as_factor(g) * as_factor(x) / as_factor(y));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x, R y) {
    return quotient_of(number<Ball>(g) * number<Ball>(x), number<Ball>(y));
  }
};
template <>
struct body64<ops::xlogy_backward_y> : by_formula<xlogy_backward_y64> {};
struct hypot_backward64 : xlogy_backward_y64 {
  template <class R>
  REPDL_HD static R special(R g, R x, R r) {
    return r == 0 ? math<R>::all(0) : xlogy_backward_y64::special(g, x, r);
  }
};
template <>
struct body64<ops::hypot_backward> : by_formula<hypot_backward64> {};

// g a / (a^2 + b^2), a != 0.
struct inverse_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R a, R b) {
    return is_finite_not_zero(g) & is_finite_not_zero(a) & (magnitude_of(b) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R a, R b) {
    const R p = as_factor(a);
    const R q = as_factor(b);
    return (a == 0) & (b == 0) ? math<R>::all(0) : canonical_of(as_factor(g) * p / (p * p + q * q));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R a, R b) {
    const mask_of<R> swapped = magnitude_of(a) < magnitude_of(b);
    const R larger = swapped ? b : a;
    const Ball p = number<Ball>(larger);
    const Ball q = term_beside<Ball>(swapped ? a : b, larger);
    return quotient_of(number<Ball>(g) * number<Ball>(a), p * p + q * q);
  }
};
struct atan2_backward_y64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y, R x) {
    return inverse_gradient64::plain(g, x, y);
  }
  template <class R>
  REPDL_HD static R special(R g, R y, R x) {
    return inverse_gradient64::special(g, x, y);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R y, R x) {
    return inverse_gradient64::formula<Ball>(g, x, y);
  }
};
template <>
struct body64<ops::atan2_backward_y> : by_formula<atan2_backward_y64> {};
struct atan2_backward_x64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R y, R x) {
    return inverse_gradient64::plain(-g, y, x);
  }
  template <class R>
  REPDL_HD static R special(R g, R y, R x) {
    return inverse_gradient64::special(-g, y, x);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R y, R x) {
    return inverse_gradient64::formula<Ball>(-g, y, x);
  }
};
template <>
struct body64<ops::atan2_backward_x> : by_formula<atan2_backward_x64> {};

// floor(x / y), or where Up and `up` the next whole number if that is not x / y, for x >= y > 0; known for x / y < 2^100 and numbers in the
// middle. t = RN(x / y), or from the nearest whole number to that, and r = x - t y; then n nearest to r / y, s = r - n y; t + n is
// the floor or one more, as s >= 0 or s < 0.
//
// t y and n y are exact as double-doubles, r and s as numbers: with y = Y 2^b, Y >= 2^52, and d = 1, or the last place of t if that is more, r is a
// multiple of d 2^b, because t y is one and x is one: where d > 1, x's last place is more than 2^-53 t y (1 - 2^-53) >= 2^50 d 2^b, and where
// d = 1, x >= y. |r| <= (3/4) d y (half of d for the nearest to a quotient that is itself within 1/4), or in units of d 2^b less than Y; so
// r is a number. x and the high part of t y are, t = 1 included, within a factor of 2 of each other: their difference is exact, and
// less the low part it is r. |r / y| < d < 2^49, and s is likewise a multiple of 2^b and |s| <= (3/4) y.
template <bool Up, class R>
REPDL_HD dd_ball<R> whole_quotient_ball(R x, R y, mask_of<R> up) {
  const auto rest = [&](R of, R t) {
    const double_word<R> p = two_prod(t, y);
    return (of - p.hi) - p.lo;
  };
  const R quotient = x / y;
  const R t = quotient < 0x1p52 ? (quotient + 0x1p52) - 0x1p52 : quotient;
  const R r = rest(x, t);
  const R n = nearest(r / y);
  const R s = rest(r, n);
  R whole = n - (s < 0 ? math<R>::all(1) : math<R>::all(0));
  if constexpr (Up) whole = whole + (up & (s != 0) ? math<R>::all(1) : math<R>::all(0));
  const double_word<R> sum = two_sum(t, whole);
  const mask_of<R> known = (quotient < 0x1p100) & is_in_middle(x) & is_in_middle(y);
  return {sum.hi, sum.lo, known ? math<R>::all(0) : math<R>::all(infinity)};
}
// -g times the whole quotient; in multi-limb balls that is (|x| - r) / |y|, or (|x| + (|y| - r)) / |y|, as above: |x| >= |y| here, and
// |y| - r is a number, because it is a multiple of |y|'s last place.
template <bool Floor>
struct whole_division_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, R y) {
    return is_finite_not_zero(g) & is_finite_not_zero(x) & is_finite_not_zero(y) & (magnitude_of(x) >= magnitude_of(y));
  }
  // |x| < |y|: a zero, or floor is -1. |y| may be infinite then.
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    const R sign = copy_sign(math<R>::all(1), x) * copy_sign(math<R>::all(1), y);
    R small = 0.0 * sign;
    if constexpr (Floor) small = (sign < 0) & (x != 0) ? math<R>::all(-1) : small;
    const R whole = magnitude_of(x) < magnitude_of(y) ? small : as_factor(x) / as_factor(y);
    return canonical_of(-g * whole);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x, R y) {
    const mask_of<R> differ = has_sign(x) != has_sign(y);
    const R a = magnitude_of(x);
    const R b = magnitude_of(y);
    const R factor = differ ? g : -g;
    if constexpr (is_multi_limb<Ball>) {
      const double r = remainder_magnitude<double>(x, y);
      const double rest = Floor && differ && r != 0 ? b - r : -r;
      return quotient_of(times(factor, number<Ball>(a) + term_beside<Ball>(rest, a)), number<Ball>(b));
    } else {
      return times(factor, whole_quotient_ball<Floor>(a, b, differ));
    }
  }
};
template <>
struct body64<ops::fmod_backward_y> : by_formula<whole_division_gradient64<false>> {};
template <>
struct body64<ops::remainder_backward_y> : by_formula<whole_division_gradient64<true>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
