// Results in another format than the operands': of operations whose row says `any_float`, a binary64 number that rounds to the
// output's format as the exact result does.
//
// Method: rounding to odd in binary64, then one rounding to at most 24 bits: S. Boldo and G. Melquiond, "Emulation of a FMA and
// correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008). Domain: every input.
//
// For f16, bf16 and f32 outputs (`to_odd`). Let v be the exact result, finite, and B what decides a rounding to one of these
// formats: its numbers, the midpoints of neighbours, half of its least number, and 2^emax (2 - 2^-p), from where on RN is
// infinite. These have at most 25 bits, are multiples of 2^-150 and at most 2^128: binary64 numbers with an even last bit of 53.
// RO(v) is v if that is a binary64 number, else of the two numbers around v the one whose last bit is odd, so none of B: it is
// on the same side as v of every b in B, and equal to b only if v is. RN is constant between neighbours of B, so RN(RO(v)) =
// RN(v), subnormal results and the border of overflow included. The same for a number d in place of RO(v) where
//   (tiny) |v|, |d| < 2^-150, with the same sign (a zero d too): both round to the zero of that sign;
//   (huge) |v|, |d| >= 2^128, an infinite d too, with the same sign: both round to that infinity.
// So over- and underflow in binary64 do no harm as long as the sign is kept. An exact zero, infinities and NaN are IEEE's.
//
// Operands of f16, bf16 and f32 are 0 or in [2^-149, 2^128) with at most 24 bits; a coefficient is 0 or in [2^-200, 2^200]:
//   x +- y          two_sum: exact
//   x +- alpha y    add_to_odd, as add_product (body.hpp)
//   x y             48 bits in [2^-298, 2^256): v itself
//   x y + z         two_sum of a product of 48 bits and a number: exact
//   x / y           q = RN64(v) does: it is b in B only if v is. For v != b: |v - b| = |x - b y| / |y|, where x, b and y have 24,
//                   25 and 24 bits; x - b y is a multiple of the last place of x or of b y, at least 2^-24 |x| or 2^-49 |b y|:
//                   |v - b| >= 2^-49 min(|v|, |b|), and RN64 moves v by at most 2^-53 |v|. It is monotone, so q stays on v's
//                   side of b. (b = 0: q keeps the sign, |v| >= 2^-277.)
//   sqrt x          likewise: |x - b^2| is a multiple of the last place of x or of b^2, of 24 and 50 bits: at least 2^-50
//                   min(x, b^2), so |sqrt x - b| >= 2^-52 min(sqrt x, b), and RN64 moves sqrt x by at most 2^-53 sqrt x.
//
// Operands of f64. Let s = RN64(v); a tail with the sign of v - s, 0 only if that is, is what round_to_odd asks for.
//   x +- y          two_sum. |s| < 2^1000: no step overflows (|x| >= 2^1022: y is in [-2x, -x/2], so s is exact, by Sterbenz,
//                   and the steps give y and x back). Else whatever the tail is, the result is s or its neighbour: huge.
//   x y             s and fma(x, y, -s), exact for 2^-900 <= |s|, s finite. Else s or its neighbour, tiny or huge: s = +-0 has
//                   the tail fma(x, y, -s) = +-0; an infinite operand has a NaN, which counts as 0.
//   x y + z, x +- alpha y    num::fma is s. Outside of [2^-300, 2^300] that is tiny or huge, or special, and taken. Inside:
//                   p = RN64(x y) is finite (else |v| >= 2^970). |p| >= 2^-900: x y = p + fma(x, y, -p) exactly, and add_to_odd
//                   (its sums do not overflow, as above) is RO(v). |p| < 2^-900: |z| >= 2^-301, and RO(v) depends on the sign of
//                   x y only, if it is not 0: z's neighbours are more than 2^-355 away. 2^-900 with that sign stands for it.
//   x / y           q = RN64(x / y), and fma(-q, y, x) times the sign of y for the tail. |y| < 2^-400: both times 2^600 first.
//                   For |v| in [2^-151, 2^129], y is in [2^-474, 2^1024) and the remainder is a multiple of 2^-203 times 2^-474,
//                   so its sign is right. Else q or its neighbour, tiny or huge: q = +-0 has the remainder x, with the sign
//                   of q; an infinity or zero among the operands a NaN, or 0.
//   sqrt x          r = RN64(sqrt x) and fma(-r, r, x), exact for x >= 2^-302; below r is tiny. (-0: the remainder is -0.)
//
// For f64 outputs (`to_nearest`), of f16, bf16 and f32: the operations of binary64 on the widened operands, x y of fma exact.
#pragma once

#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct add;
struct sub;
struct mul;
struct div;
struct fma;
struct sqrt;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// RO(x y + z), for numbers below 2^-300 and from 2^300 on such a one; x y + z as IEEE 754 has it where it is not finite or 0.
REPDL_HD double fma_to_odd(double x, double y, double z) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const auto magnitude = [](double v) { return double_of(bits_of(v) & ~sign); };
  const double s = fma(x, y, z);
  const double p = x * y;
  const bool is_zero = (x == 0) | (y == 0);
  const double little = double_of(bits_of(0x1p-900) | ((bits_of(x) ^ bits_of(y)) & sign));
  const dd product = magnitude(p) < 0x1p-900 ? dd{is_zero ? p : little, 0.0} : dd{p, fma(x, y, -p)};
  const double exact = add_to_odd(z, product);
  return (magnitude(s) >= 0x1p-300) & (magnitude(s) <= 0x1p300) ? exact : s;
}

template <class Op>
struct wide_body;

// x + y or x - y, with a coefficient x + (-a) y.
template <bool Minus>
struct wide_sum {
  template <class T>
  REPDL_HD static double to_odd(T x, T y) {
    const dd s = two_sum(widen(x), Minus ? -widen(y) : widen(y));
    return round_to_odd(s.hi, s.lo);
  }
  template <class T>
  REPDL_HD static double to_odd(T x, T y, const parameters& p) {
    const double a = Minus ? -p.value[0] : p.value[0];
    if constexpr (std::is_same_v<T, double>) {
      return fma_to_odd(a, y, x);
    } else {
      return add_to_odd(widen(x), two_prod(a, widen(y)));
    }
  }
  template <class T>
  REPDL_HD static double to_nearest(T x, T y) {
    return Minus ? widen(x) - widen(y) : widen(x) + widen(y);
  }
  template <class T>
  REPDL_HD static double to_nearest(T x, T y, const parameters& p) {
    return fma(Minus ? -p.value[0] : p.value[0], widen(y), widen(x));
  }
};
template <>
struct wide_body<ops::add> : wide_sum<false> {};
template <>
struct wide_body<ops::sub> : wide_sum<true> {};

template <>
struct wide_body<ops::mul> {
  template <class T>
  REPDL_HD static double to_odd(T x, T y) {
    const double p = to_nearest(x, y);
    return std::is_same_v<T, double> ? round_to_odd(p, fma(widen(x), widen(y), -p)) : p;
  }
  template <class T>
  REPDL_HD static double to_nearest(T x, T y) {
    return widen(x) * widen(y);
  }
};

template <>
struct wide_body<ops::div> {
  template <class T>
  REPDL_HD static double to_odd(T x, T y) {
    const double q = to_nearest(x, y);
    if constexpr (std::is_same_v<T, double>) {
      constexpr std::uint64_t sign = std::uint64_t{1} << 63;
      const double scale = double_of(bits_of(y) & ~sign) < 0x1p-400 ? 0x1p600 : 1.0;
      const double rest = fma(-q, y * scale, x * scale);
      return round_to_odd(q, double_of(bits_of(rest) ^ (bits_of(y) & sign)));
    } else {
      return q;
    }
  }
  template <class T>
  REPDL_HD static double to_nearest(T x, T y) {
    return widen(x) / widen(y);
  }
};

template <>
struct wide_body<ops::fma> {
  template <class T>
  REPDL_HD static double to_odd(T x, T y, T z) {
    if constexpr (std::is_same_v<T, double>) {
      return fma_to_odd(x, y, z);
    } else {
      const dd s = two_sum(widen(x) * widen(y), widen(z));
      return round_to_odd(s.hi, s.lo);
    }
  }
  template <class T>
  REPDL_HD static double to_nearest(T x, T y, T z) {
    return widen(x) * widen(y) + widen(z);
  }
};

template <>
struct wide_body<ops::sqrt> {
  template <class T>
  REPDL_HD static double to_odd(T x) {
    const double r = to_nearest(x);
    return std::is_same_v<T, double> ? round_to_odd(r, fma(-r, r, widen(x))) : r;
  }
  template <class T>
  REPDL_HD static double to_nearest(T x) {
    return num::sqrt(widen(x));
  }
};

// A wide body, and behind the operands nothing or the parameters. Nearest: the result in binary64 itself, NaN the canonical one.
template <class Op, bool Nearest, class... A>
REPDL_HD double evaluate_wide(const A&... a) {
  if constexpr (Nearest) {
    return canonical(wide_body<Op>::to_nearest(a...));
  } else {
    return wide_body<Op>::to_odd(a...);
  }
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
