// The order of max, min, argmax, argmin (contract, section 3): NaN wins, -0 < +0, then the first index. As integers, so
// that the maximum needs no floating-point comparison and no special cases.
#pragma once

#include <limits>
#include <type_traits>

#include "librepdl/num/format.hpp"
#include "librepdl/num/integers.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// XORed into the bits before they are ordered: 0 for the maximum; the sign bit for the minimum, which is the maximum of
// the negated values.
inline constexpr std::uint32_t order_max = 0;
inline constexpr std::uint32_t order_min = 0x80000000u;

// The keys of the numbers of T: of 32 bits, or of binary64's 64.
template <class T>
using order_key_of = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// Monotone in the order above: the key of x is greater iff x wins. Sign and magnitude become two's complement (negative
// numbers get their magnitude bits inverted), every NaN becomes the greatest key. No other value has that key, and none
// has the least: of binary32 +inf is 0x7f800000, -inf 0x807fffff. The bits of a narrower format are the upper ones of 32.
template <class Key>
inline constexpr Key nan_key_of = std::numeric_limits<Key>::max();
template <class Key>
inline constexpr Key no_key_of = std::numeric_limits<Key>::min();
inline constexpr std::int32_t nan_key = nan_key_of<std::int32_t>;
inline constexpr std::int32_t no_key = no_key_of<std::int32_t>;
template <class T>
inline constexpr int below_order = 8 * static_cast<int>(sizeof(order_key_of<T>) - sizeof(T));
// A key as the bits that it was made of, and back.
template <class Key>
REPDL_HD Key order_turned(Key bits) {
  return bits ^ ((bits >> (8 * sizeof(Key) - 1)) & nan_key_of<Key>);
}
template <class Key>
REPDL_HD std::make_unsigned_t<Key> order_flip(std::uint32_t flip) {
  return static_cast<std::make_unsigned_t<Key>>(flip) << (8 * sizeof(Key) - 32);
}
template <class T>
REPDL_HD order_key_of<T> order_key(T x, std::uint32_t flip) {
  using key = order_key_of<T>;
  using bits = std::make_unsigned_t<key>;
  const bits b = static_cast<bits>(to_bits(x)) << below_order<T>;
  const key k = order_turned(static_cast<key>(b ^ order_flip<key>(flip)));
  return (b & bits{nan_key_of<key>}) > bits{format<T>::infinity} << below_order<T> ? nan_key_of<key> : k;
}

// The value of a key; the canonical NaN for that of NaN.
template <class T = float>
requires(!std::is_integral_v<T>) REPDL_HD T order_value(order_key_of<T> key, std::uint32_t flip) {
  using bits = std::make_unsigned_t<order_key_of<T>>;
  const bits b = static_cast<bits>(order_turned(key)) ^ order_flip<order_key_of<T>>(flip);
  return from_bits<T>(key == nan_key_of<order_key_of<T>> ? format<T>::nan
                                                         : static_cast<storage_of<T>>(b >> below_order<T>));
}

// Integers, and booleans: the number itself, or for the minimum its complement. No number's key is no_key but one, the last of all: a
// search that begins with no_key and the index 0, and goes on to greater keys only, is right where all elements are that number.
template <class Key>
REPDL_HD Key order_complement(std::uint32_t flip) {
  return flip == order_min ? ~Key{0} : Key{0};
}
template <class T>
requires std::is_integral_v<T> REPDL_HD order_key_of<T> order_key(T x, std::uint32_t flip) {
  return integer_value(x) ^ order_complement<order_key_of<T>>(flip);
}
template <class T>
requires std::is_integral_v<T> REPDL_HD T order_value(order_key_of<T> key, std::uint32_t flip) {
  return static_cast<T>(key ^ order_complement<order_key_of<T>>(flip));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
