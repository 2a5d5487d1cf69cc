// Error-free transforms: the rounded result of an operation together with its rounding error, exactly. R is binary64, or a
// register of such numbers: math<R> says what it takes beyond operators (backends/cpu/core/simd.hpp has the registers).
//
// Sources: T. J. Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971);
// D. E. Knuth, TAOCP vol. 2, 4.2.2; S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
// algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008).
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class R>
struct math;

// An unevaluated sum hi + lo. Normalised means hi = RN(hi + lo).
template <class R>
struct double_word {
  R hi;
  R lo;
};
using dd = double_word<double>;

template <>
struct math<double> {
  using single = float;  // as many binary32 numbers
  REPDL_HD static double all(double x) { return x; }
  // One rounding if has_fast_fma, else two.
  REPDL_HD static double muladd(double a, double b, double c) { return num::muladd(a, b, c); }
  REPDL_HD static std::uint64_t to_bits(double a) { return bits_of(a); }
  REPDL_HD static double from_bits(std::uint64_t a) { return double_of(a); }
  REPDL_HD static float to_float(double a) { return static_cast<float>(a); }
  REPDL_HD static double sqrt(double a) { return num::sqrt(a); }
  // A row of a table, of which one takes two neighbouring numbers at a time.
  struct row {
    const double* numbers;
    REPDL_HD dd two(int first) const { return {numbers[first], numbers[first + 1]}; }
  };
  template <int Rows, int Columns>
  REPDL_HD static row look_up(const double (&table)[Rows][Columns], std::uint64_t at) {
    return row{&table[at][0]};
  }
  REPDL_HD static bool every(bool of) { return of; }
};

// |a|
template <class R>
REPDL_HD R magnitude_of(R a) {
  return math<R>::from_bits(math<R>::to_bits(a) & 0x7fffffffffffffffull);
}

// a + b = hi + lo exactly, hi = RN(a + b). Precondition: no overflow. (Addition cannot underflow inexactly.)
template <class R>
REPDL_HD double_word<R> two_sum(R a, R b) {
  const R s = a + b;
  const R bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

// As two_sum. Precondition: a = 0, or exponent(a) >= exponent(b) (|a| >= |b| suffices), no overflow.
template <class R>
REPDL_HD double_word<R> fast_two_sum(R a, R b) {
  const R s = a + b;
  return {s, b - (s - a)};
}

// a = hi + lo exactly, both halves of at most 26 bits (Veltkamp). Precondition: |a| < 2^996.
template <class R>
REPDL_HD double_word<R> split(R a) {
  const R c = 134217729.0 * a;  // 2^27 + 1
  const R hi = c - (c - a);
  return {hi, a - hi};
}

// a * b = hi + lo exactly, hi = RN(a * b). Preconditions: |a|, |b| < 2^996, |a * b| < 2^1023, and the exact product is
// zero or a multiple of 2^-1074 (|a * b| >= 2^-968 suffices), so that lo is representable.
template <class R>
REPDL_HD double_word<R> two_prod(R a, R b) {
  const R p = a * b;
  if constexpr (has_fast_fma) {
    return {p, math<R>::muladd(a, b, -p)};
  } else {
    const double_word<R> x = split(a);
    const double_word<R> y = split(b);
    return {p, x.lo * y.lo - (((p - x.hi * y.hi) - x.lo * y.hi) - x.hi * y.lo)};
  }
}

// a + x y = hi + lo exactly, where x y is a binary64 number (a product of two binary32 numbers): two_sum, whose second operand
// is never formed, since muladd rounds once in either form.
template <class R>
REPDL_HD double_word<R> two_sum_of_product(R a, R x, R y) {
  const R s = math<R>::muladd(x, y, a);
  const R bb = s - a;
  return {s, (a - (s - bb)) + math<R>::muladd(x, y, -bb)};
}

// RO(s + tail), rounding to odd: s with its last bit made odd where the exact value is not s. Converting the result to
// a format T with p_T <= 51 bits (its subnormals included) gives RN_T of the exact value: Boldo and Melquiond,
// theorem 3.
//   inexact = 1: the exact value lies strictly between s and its neighbour on tail's side (s = RN(s + tail) is not
//     required). Truncating it towards zero and setting the last bit is rounding to odd: s steps one ulp down if tail
//     points to zero, and of two neighbours the odd one is chosen by the bit.
//   inexact = 0: s, unchanged, infinities and NaN too.
// Branch-free, in operations that vectorise on every instruction set (no 64-bit integer comparison).
REPDL_HD double round_to_odd(double s, double tail, std::uint64_t inexact) {
  const std::uint64_t b = bits_of(s);
  return double_of((b - (((bits_of(tail) ^ b) >> 63) & inexact)) | inexact);
}

// RO(s + tail) for s = RN(s + tail). s = 0 requires tail = 0; a NaN tail, which two_sum gives with an infinite s,
// counts as 0.
REPDL_HD double round_to_odd(double s, double tail) {
  const double magnitude = double_of(bits_of(tail) & 0x7fffffffffffffffull);
  return round_to_odd(s, tail, bits_of(magnitude > 0 ? double_of(1) : 0.0));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
