// Arithmetic and selection: add sub mul div fma neg abs sqrt maximum minimum less relu leaky_relu relu_backward.
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
//   x * y    in binary64, exactly (2p bits, 0 or in [2^-266, 2^256)), rounded once.
#pragma once

#include "librepdl/ops/body.hpp"

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
      return narrow<T>(widen(x) * widen(y));
    } else {
      return canonical(x * y);
    }
  }
};

template <>
struct body<ops::div> {
  REPDL_HD static float eval(float x, float y) { return canonical(x / y); }
};

template <>
struct body<ops::sqrt> {
  REPDL_HD static float eval(float x) { return canonical(num::sqrt(x)); }
};

// Without the instruction, for finite x, y, z:
//   p = x * y is exact: 24 + 24 <= 53 bits, and |p| is 0 or in [2^-298, 2^256).
//   s + t = p + z exactly: two_sum, |s| < 2^257; s = 0 only if p + z = 0, with IEEE's sign since p and z are exact.
//   round_to_odd(s, t) converts to RN(p + z), in binary32's subnormal range and at overflow, too: eft.hpp.
// Otherwise s is p + z in IEEE arithmetic, the right infinity or NaN (p is finite if x, y are), and t, which is NaN,
// counts as 0.
template <>
struct body<ops::fma> {
  REPDL_HD static float eval(float x, float y, float z) {
    if constexpr (has_fast_fma) {
      return canonical(__builtin_fmaf(x, y, z));
    } else {
      const dd s = two_sum(static_cast<double>(x) * static_cast<double>(y), static_cast<double>(z));
      return canonical(static_cast<float>(round_to_odd(s.hi, s.lo)));
    }
  }
};

// Bit operations: NaN payloads survive.
template <>
struct body<ops::neg> {
  REPDL_HD static float eval(float x) { return float_of(bits_of(x) ^ 0x80000000); }
};

template <>
struct body<ops::abs> {
  REPDL_HD static float eval(float x) { return float_of(bits_of(x) & 0x7fffffff); }
};

// Operands that compare equal have the same bits or are zeros: `and` of their bits is then the larger (+0 if one of
// them is +0), `or` the smaller.
template <>
struct body<ops::maximum> {
  REPDL_HD static float eval(float x, float y) {
    const std::uint32_t a = bits_of(x);
    const std::uint32_t b = bits_of(y);
    const std::uint32_t larger = x > y ? a : b;
    const std::uint32_t ordered = x == y ? a & b : larger;
    const std::uint32_t checked = x != x ? format<float>::nan : ordered;
    return float_of(y != y ? format<float>::nan : checked);
  }
};

template <>
struct body<ops::minimum> {
  REPDL_HD static float eval(float x, float y) {
    const std::uint32_t a = bits_of(x);
    const std::uint32_t b = bits_of(y);
    const std::uint32_t smaller = x < y ? a : b;
    const std::uint32_t ordered = x == y ? a | b : smaller;
    const std::uint32_t checked = x != x ? format<float>::nan : ordered;
    return float_of(y != y ? format<float>::nan : checked);
  }
};

template <>
struct body<ops::less> {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    if constexpr (is_small_float<T>) {
      return widen_to_float(x) < widen_to_float(y);
    } else {
      return x < y;
    }
  }
};

template <>
struct body<ops::relu> {
  REPDL_HD static float eval(float x) {
    const std::uint32_t positive = x > 0 ? bits_of(x) : 0u;
    return float_of(x != x ? format<float>::nan : positive);
  }
  template <class T>
  requires is_small_float<T> REPDL_HD static T eval(T x) {
    const auto positive = static_cast<std::uint16_t>(x.bits & ((x.bits >> 15) - 1));
    return canonical(T{(x.bits & 0x7fff) > format<T>::infinity ? x.bits : positive});
  }
};

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
};

// g where x > 0 or x is NaN, else +0.
template <>
struct body<ops::relu_backward> {
  REPDL_HD static float eval(float g, float x) {
    const std::uint32_t b = bits_of(canonical(g));
    return float_of(x <= 0 ? 0u : b);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
