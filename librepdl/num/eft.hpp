// Error-free transforms: the rounded result of an operation together with its rounding error, exactly.
//
// Sources: T. J. Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971);
// D. E. Knuth, TAOCP vol. 2, 4.2.2; S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
// algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008).
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// An unevaluated sum hi + lo. Normalised means hi = RN(hi + lo).
struct dd {
  double hi;
  double lo;
};

// a + b = hi + lo exactly, hi = RN(a + b). Precondition: no overflow. (Addition cannot underflow inexactly.)
REPDL_HD dd two_sum(double a, double b) {
  const double s = a + b;
  const double bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

// As two_sum. Precondition: a = 0, or exponent(a) >= exponent(b) (|a| >= |b| suffices), no overflow.
REPDL_HD dd fast_two_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}

// a = hi + lo exactly, both halves of at most 26 bits (Veltkamp). Precondition: |a| < 2^996.
REPDL_HD dd split(double a) {
  const double c = 134217729.0 * a;  // 2^27 + 1
  const double hi = c - (c - a);
  return {hi, a - hi};
}

// a * b = hi + lo exactly, hi = RN(a * b). Preconditions: |a|, |b| < 2^996, |a * b| < 2^1023, and the exact product is
// zero or a multiple of 2^-1074 (|a * b| >= 2^-968 suffices), so that lo is representable.
REPDL_HD dd two_prod(double a, double b) {
  const double p = a * b;
  if constexpr (has_fast_fma) {
    return {p, fma(a, b, -p)};
  } else {
    const dd x = split(a);
    const dd y = split(b);
    return {p, x.lo * y.lo - (((p - x.hi * y.hi) - x.lo * y.hi) - x.hi * y.lo)};
  }
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
