// Sums of integers, and their means. The sum of at most 2^62 integers of 64 bits is below 2^125: integer_sum holds it exactly, whatever
// the order of the additions.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/integers.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

using integer_sum = fixed_point<0, 2>;

// Modulo 2^64.
REPDL_HD std::int64_t wrapped(const integer_sum& s) { return static_cast<std::int64_t>(s.word(0)); }

// RN(s / n) in binary64; NaN of n = 0. A numerator and a divisor of at most 53 bits are binary64 numbers, and one division rounds their
// quotient; it is 0 or at least 2^-53, where nothing underflows.
REPDL_HD double mean_of(const integer_sum& s, std::int64_t n) {
  if (n == 0) return double_of(format<double>::nan);
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const std::int64_t low = wrapped(s);
  const bool is_low = s.word(1) == (low < 0 ? ~std::uint64_t{0} : 0);
  if (is_low && low >= -most && low <= most && n <= most) return static_cast<double>(low) / static_cast<double>(n);
  integer_sum divisor;
  divisor.add_integer(n);
  return round_quotient<double>(s, divisor);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
