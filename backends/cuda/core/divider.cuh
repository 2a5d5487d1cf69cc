// Division by a number that every thread divides by.
#pragma once

#include <cstdint>

namespace repdl::cuda {

// Division of n < 2^31 by a constant 1 <= d < 2^31 (T. Granlund and P. Montgomery, "Division by invariant integers
// using multiplication", PLDI 1994, figure 4.1; the sum cannot overflow for such n).
struct divider {
  std::uint32_t size, factor, shift;

  explicit divider(std::int64_t d) : size(static_cast<std::uint32_t>(d)), shift(0) {
    while ((std::uint64_t{1} << shift) < size) ++shift;
    factor = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - size) << 32) / size + 1);
  }
  __device__ int quotient(int n) const {
    return static_cast<int>((__umulhi(factor, static_cast<std::uint32_t>(n)) + static_cast<std::uint32_t>(n)) >> shift);
  }
  // n becomes the quotient; returns the remainder.
  __device__ int split(int& n) const {
    const int q = quotient(n);
    const int r = n - q * static_cast<int>(size);
    n = q;
    return r;
  }
};

}  // namespace repdl::cuda
