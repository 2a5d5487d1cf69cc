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

// The significand of `s` made odd when the exact value is s + tail with s = RN(s + tail), tail != 0: the result is
// RO(s + tail), rounding to odd. Converting it to a format T with p_T <= 51 bits (its subnormals included) gives
// RN_T(s + tail): Boldo and Melquiond, theorem 3.
//   s even and tail != 0: the exact value lies strictly between s and its neighbour on tail's side, which is odd.
// Branch-free. s = 0 requires tail = 0. Infinities and NaN pass.
REPDL_HD double round_to_odd(double s, double tail) {
  const std::uint64_t b = bits_of(s);
  const std::uint64_t away = ((bits_of(tail) ^ b) >> 63) == 0 ? 1 : ~std::uint64_t{0};
  const bool step = tail != 0 && (b & 1) == 0 && (b << 1) < 0xffe0000000000000ull;
  return double_of(step ? b + away : b);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
