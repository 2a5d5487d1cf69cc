// The order of max, min, argmax, argmin (contract, section 3): NaN wins, -0 < +0, then the first index. As integers, so
// that the maximum needs no floating-point comparison and no special cases.
#pragma once

#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// XORed into the bits before they are ordered: 0 for the maximum; the sign bit for the minimum, which is the maximum of
// the negated values.
inline constexpr std::uint32_t order_max = 0;
inline constexpr std::uint32_t order_min = 0x80000000u;

// Monotone in the order above: the key of x is greater iff x wins. Sign and magnitude become two's complement (negative
// numbers get their magnitude bits inverted), every NaN becomes the greatest key. No other value has that key, and none
// has INT32_MIN: of binary32 +inf is 0x7f800000, -inf 0x807fffff. The bits of a narrower format are the upper ones of 32.
inline constexpr std::int32_t nan_key = 0x7fffffff;
inline constexpr std::int32_t no_key = -0x7fffffff - 1;
template <class T>
inline constexpr int below_order = 32 - 8 * static_cast<int>(sizeof(T));
template <class T>
REPDL_HD std::int32_t order_key(T x, std::uint32_t flip) {
  const std::uint32_t b = static_cast<std::uint32_t>(to_bits(x)) << below_order<T>;
  const std::int32_t signed_bits = static_cast<std::int32_t>(b ^ flip);
  const std::int32_t key = signed_bits ^ ((signed_bits >> 31) & 0x7fffffff);
  return (b & 0x7fffffffu) > std::uint32_t{format<T>::infinity} << below_order<T> ? nan_key : key;
}

// The value of a key; the canonical NaN for nan_key.
template <class T = float>
REPDL_HD T order_value(std::int32_t key, std::uint32_t flip) {
  const std::uint32_t b = static_cast<std::uint32_t>(key ^ ((key >> 31) & 0x7fffffff)) ^ flip;
  return from_bits<T>(key == nan_key ? format<T>::nan : static_cast<storage_of<T>>(b >> below_order<T>));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
