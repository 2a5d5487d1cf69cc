// The order of max, min, argmax, argmin (contract, section 3): NaN wins, -0 < +0, then the first index. As integers, so
// that the maximum needs no floating-point comparison and no special cases.
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// XORed into the bits before they are ordered: 0 for the maximum; the sign bit for the minimum, which is the maximum of
// the negated values.
inline constexpr std::uint32_t order_max = 0;
inline constexpr std::uint32_t order_min = 0x80000000u;

// Monotone in the order above: the key of x is greater iff x wins. Sign and magnitude become two's complement (negative
// numbers get their magnitude bits inverted), every NaN becomes the greatest key. No other value has that key, and none
// has INT32_MIN: +inf is 0x7f800000, -inf 0x807fffff.
inline constexpr std::int32_t nan_key = 0x7fffffff;
inline constexpr std::int32_t no_key = -0x7fffffff - 1;
REPDL_HD std::int32_t order_key(float x, std::uint32_t flip) {
  const std::uint32_t b = bits_of(x);
  const std::int32_t signed_bits = static_cast<std::int32_t>(b ^ flip);
  const std::int32_t key = signed_bits ^ ((signed_bits >> 31) & 0x7fffffff);
  return (b & 0x7fffffffu) > 0x7f800000u ? nan_key : key;
}

// The value of a key; the canonical NaN for nan_key.
REPDL_HD float order_value(std::int32_t key, std::uint32_t flip) {
  const std::uint32_t b = static_cast<std::uint32_t>(key ^ ((key >> 31) & 0x7fffffff)) ^ flip;
  return float_of(key == nan_key ? 0x7fc00000u : b);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
