// Arithmetic and selection: add sub mul div fma square reciprocal neg abs copysign sqrt maximum minimum fmax fmin relu
// leaky_relu relu_backward.
//
// Method: the hardware operations are correctly rounded (IEEE 754-2019, 5.4.1), so only NaN results change. The
// exception is fma where there is no such instruction: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly
// rounded sums: proved algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008). Domain: every input. Nothing
// is approximated.
//
// f16 and bf16, of precision p = 11 and 8:
//   x +- y   in binary32, rounded again. If both operands have at most p bits and the result of the wider format P >=
//            2p + 2 bits, the second rounding is that of the exact sum: S. A. Figueroa, "When is double rounding
//            innocuous?", SIGNUM Newsl. 30 (1995); 24 >= 24, 18. Sums are multiples of the least subnormal: where the
//            result is subnormal in T or in binary32, the first sum is exact. Overflow: 2^128 - 2^119 (bf16) is a
//            binary32 number.
//   x * y    in binary32, rounded again. 2p bits, so exact unless it is beyond 2^128, infinite in bf16, too, or less than
//            2^-133: only in bf16, where it rounds to 0 or, above the midpoint 2^-134, to the least number. Above that the
//            product is a multiple of 2^-149, and exact. Just below, the only multiple of 2^-150 that binary32 would round to
//            the midpoint is (2^16 - 1) 2^-150, and 2^16 - 1 = 3 5 17 257 is not the product of two numbers below 2^8.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct add;
struct sub;
struct mul;
struct div;
struct reciprocal;
struct square;
struct sqrt;
struct fma;
struct neg;
struct abs;
struct copysign;
struct maximum;
struct minimum;
struct fmax;
struct fmin;
struct relu;
struct leaky_relu;
struct relu_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// x + y or x - y. With a coefficient x - a y is x + (-a) y: a sign is exact, and IEEE's zeros are those of x + y.
template <bool Minus>
struct sum_body {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    if constexpr (is_small_float<T>) {
      return narrow<T>(sum(widen_to_float(x), widen_to_float(y)));
    } else {
      return canonical(sum(x, y));
    }
  }
  template <class T>
  REPDL_HD static T eval(T x, T y, const parameters& p) {
    return add_product(x, Minus ? -p.value[0] : p.value[0], y);
  }

 private:
  template <class T>
  REPDL_HD static T sum(T x, T y) {
    return Minus ? x - y : x + y;
  }
};
template <>
struct body<ops::add> : sum_body<false> {};
template <>
struct body<ops::sub> : sum_body<true> {};

template <>
struct body<ops::mul> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    if constexpr (is_small_float<T>) {
      return narrow<T>(widen_to_float(x) * widen_to_float(y));
    } else {
      return canonical(x * y);
    }
  }
};

// f16, bf16: in binary32, rounded again. For quotients and roots, too, the second rounding is that of the exact result where
// P >= 2p + 2 (Figueroa, above; 24 >= 24, 18). Subnormal results have midpoints of fewer bits, which are further away. Only
// quotients of bf16 are subnormal in binary32, too, where the first rounding moves q = x / y by up to 2^-150. Let x = X 2^a,
// y = Y 2^b with integers 0 < X, Y < 2^8, and m = n 2^-134 a midpoint other than q. |q - m| = |X 2^a - n Y 2^(b-134)| / (Y
// 2^b), and the numerator is a multiple of the smaller power of two: at least 2^-134 / Y > 2^-142, or 2^(a-b) / Y = q / X >
// 2^-8 q, above 2^-143 from q = 2^-135 on; smaller q are 2^-135 away from every midpoint. A midpoint is itself a number of
// binary32. All pairs of either format were compared with binary64's, quotients and products (tests/elementwise/selection_test.cpp, [long]).
template <>
struct body<ops::div> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    if constexpr (is_small_float<T>) {
      return narrow<T>(widen_to_float(x) / widen_to_float(y));
    } else {
      return canonical(x / y);
    }
  }
};

template <>
struct body<ops::reciprocal> {
  template <class T>
  REPDL_HD static T eval(T x) {
    if constexpr (is_small_float<T>) {
      return narrow<T>(1.0f / widen_to_float(x));
    } else {
      return canonical(T(1) / x);
    }
  }
};

template <>
struct body<ops::square> {
  template <class T>
  REPDL_HD static T eval(T x) {
    return body<ops::mul>::eval(x, x);
  }
};

template <>
struct body<ops::sqrt> {
  template <class T>
  REPDL_HD static T eval(T x) {
    if constexpr (is_small_float<T>) {
      return narrow<T>(num::sqrt(widen_to_float(x)));
    } else {
      return canonical(num::sqrt(x));
    }
  }
};

// Without the instruction, for finite x, y, z:
//   p = x * y is exact: 24 + 24 <= 53 bits, and |p| is 0 or in [2^-298, 2^256).
//   s + t = p + z exactly: two_sum, |s| < 2^257; s = 0 only if p + z = 0, with IEEE's sign since p and z are exact.
//   round_to_odd(s, t) converts to RN(p + z), in binary32's subnormal range and at overflow, too: eft.hpp.
// Otherwise s is p + z in IEEE arithmetic, the right infinity or NaN (p is finite if x, y are), and t, which is NaN,
// counts as 0.
//
// f16 and bf16, where there is one, in binary32, r = RN(x * y + z). x * y has 2p bits; where it is a number of binary32, two_sum
// gives the rest, and r, rounded to odd, has 24 >= p + 2 bits. Else (bf16):
//   |x * y| >= 2^128: the rest, NaN, counts as 0, and is 0 where r is finite: |z| >= 2^120 then, and both terms are multiples
//   of 2^113.
//   |x * y| < 2^-133, rounded to a multiple of 2^-149 as r is: z = 0 leaves the product (above); else |z| >= 2^-133, and the
//   exact value is r, or within half of the least number of it on the side of the rest, or on that of 0 with the rest 0;
//   from a midpoint it is as far as the product is from 2^-134, and that one rounds right.
// quick: r, which rounds as the exact value does where it is no midpoint (formula.hpp).
template <>
struct body<ops::fma> {
  template <class T>
  REPDL_HD static T eval(T x, T y, T z) {
    if constexpr (std::is_same_v<T, double>) {
      return canonical(num::fma(x, y, z));
    } else if constexpr (std::is_same_v<T, float> && has_fast_fma) {
      return canonical(__builtin_fmaf(x, y, z));
    } else if constexpr (is_unpacked<T> && has_fast_fma) {
      const float product = x.value * y.value;
      const float r = __builtin_fmaf(x.value, y.value, z.value);
      const float second = r - product;
      const float rest = (product - (r - second)) + (z.value - second);
      const std::uint32_t b = bits_of(r);
      const std::uint32_t odd = (b - ((bits_of(rest) ^ b) >> 31)) | 1;
      return {float_of((rest < 0) | (rest > 0) ? odd : b)};
    } else {
      const dd s = two_sum(widen(x) * widen(y), widen(z));
      return narrow<T>(round_to_odd(s.hi, s.lo));
    }
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T x, T y, T z) {
    if constexpr (has_fast_fma) {
      const float r = __builtin_fmaf(x.value, y.value, z.value);
      return {{r}, midpoint_mark<T>(r)};
    } else {
      return quick_value<T>(widen(x) * widen(y) + widen(z));
    }
  }
};

// Bit operations: NaN payloads survive.
template <>
struct body<ops::neg> {
  static constexpr bool in_lists = true;
  template <class T>
  REPDL_HD static T eval(T x) {
    return from_bits<T>(to_bits(x) ^ sign_mask<T>);
  }
};

template <>
struct body<ops::abs> {
  template <class T>
  REPDL_HD static T eval(T x) {
    return from_bits<T>(to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>));
  }
};

template <>
struct body<ops::copysign> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    return with_sign(x, y);
  }
};

// The larger or the smaller of two numbers. Operands that compare equal have the same bits or are zeros: `and` of their
// bits is then the larger (+0 if one of them is +0), `or` the smaller. Of f16 and bf16 the bits are compared as integers:
// those of negative numbers turned round they are in the order of the numbers, -0 < +0.
template <bool Larger, class T>
REPDL_HD T select_number(T x, T y) {
  const auto a = to_bits(x);
  const auto b = to_bits(y);
  if constexpr (is_small_float<T>) {
    const auto key = [](std::uint16_t v) {
      return static_cast<std::int16_t>(v ^ static_cast<std::uint16_t>((v >> 15 != 0 ? 0x7fff : 0)));
    };
    return T{(key(a) > key(b)) == Larger ? a : b};
  } else {
    const auto one = (Larger ? x > y : x < y) ? a : b;
    return from_bits<T>(x == y ? (Larger ? a & b : a | b) : one);
  }
}
// NaN wins.
template <bool Larger>
struct selection_body {
  static constexpr bool in_lists = true;
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    const auto r = to_bits(select_number<Larger>(x, y));
    const auto checked = is_nan(x) ? format<T>::nan : r;
    return from_bits<T>(is_nan(y) ? format<T>::nan : checked);
  }
};
template <>
struct body<ops::maximum> : selection_body<true> {};
template <>
struct body<ops::minimum> : selection_body<false> {};

// A NaN loses against a number.
template <bool Larger>
struct number_selection_body {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    const auto r = to_bits(select_number<Larger>(x, y));
    const auto first = is_nan(y) ? to_bits(x) : r;
    return canonical(from_bits<T>(is_nan(x) ? to_bits(y) : first));
  }
};
template <>
struct body<ops::fmax> : number_selection_body<true> {};
template <>
struct body<ops::fmin> : number_selection_body<false> {};

template <>
struct body<ops::relu> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const storage_of<T> positive = x > 0 ? to_bits(x) : 0;
    return from_bits<T>(x != x ? format<T>::nan : positive);
  }
  template <class T>
  requires is_small_float<T> REPDL_HD static T eval(T x) {
    const auto positive = static_cast<std::uint16_t>(x.bits & ((x.bits >> 15) - 1));
    return canonical(T{(x.bits & 0x7fff) > format<T>::infinity ? x.bits : positive});
  }
};

// quick, for f16 and bf16, x itself or slope x: two roundings to binary32, each of half an ulp; and the second ulp may be half of
// the first's.
template <class T>
REPDL_HD tentative<T> quick_scaled(T x, bool itself, double slope) {
  const double size = with_sign(slope, 0.0);
  const bool fits = ((size >= 0x1p-126) & (size <= 0x1p127)) | (size == 0);
  const float scaled = static_cast<float>(fits ? slope : 0.0) * x.value;
  const bool exact = itself | ((x.value == 0) & fits);
  const bool decided = exact | (fits & is_far_from_midpoints<T>(scaled, 2));
  return {{itself ? x.value : scaled}, decided};
}

// slope x: 53 + 24 bits, as hi + lo exactly (0 or in [2^-349, 2^328)), made odd, rounded once; a zero product and an
// infinite one have the sign of hi.
template <>
struct body<ops::leaky_relu> {
  template <class T>
  REPDL_HD static T eval(T x, const parameters& p) {
    const double v = widen(x);
    const dd product = two_prod(p.value[0], v);
    const double scaled = round_to_odd(product.hi, product.lo);
    return narrow<T>(v > 0 ? v : scaled);
  }
  template <class T>
  requires is_unpacked<T> REPDL_HD static tentative<T> quick(T x, const parameters& p) {
    return quick_scaled(x, x.value > 0, p.value[0]);
  }
};

// g where x > 0 or x is NaN, else +0.
template <>
struct body<ops::relu_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    const storage_of<T> b = to_bits(canonical(g));
    return from_bits<T>(x <= 0 ? 0 : b);
  }
  template <class T>
  requires is_small_float<T> REPDL_HD static T eval(T g, T x) {
    const bool passes = static_cast<std::int16_t>(x.bits) > 0 || is_nan(x);
    return T{passes ? canonical(g).bits : std::uint16_t{0}};
  }
};

// Binary64: a choice, and one product of IEEE 754.
template <>
struct body64<ops::leaky_relu> {
  template <class R>
  REPDL_HD static R lanes(R x, const parameters& p) {
    return canonical_of(x > 0 ? x : p.value[0] * x);
  }
  REPDL_HD static double eval(double x, const parameters& p) { return lanes(x, p); }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
