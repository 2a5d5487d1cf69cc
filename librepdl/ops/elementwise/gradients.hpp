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

}  // namespace REPDL_ISA
}  // namespace repdl::num
