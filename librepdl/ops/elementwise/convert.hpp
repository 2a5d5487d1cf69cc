// Conversions between element types.
//
// To a floating-point format: RN_To(x), ties to even, one rounding. A narrow format is first widened exactly to binary32
// (format.hpp), an integer to binary64: exactly, or, of more than 53 bits, rounded to odd where one more rounding follows. Formats of 8
// bits may saturate.
// To an integer: x without its fraction, then the nearest number of the type; NaN gives 0. To bool: x != 0, so NaN is true.
//
// A conversion to the same type keeps the bits; any other is a computing operation: NaN becomes the canonical NaN.
#pragma once

#include <limits>
#include <type_traits>

#include "librepdl/ops/elementwise/logical.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Of an integer type.
template <class T>
inline constexpr T least = std::numeric_limits<T>::min();
template <class T>
inline constexpr T greatest = std::numeric_limits<T>::max();

// The number of an integer type that is nearest to an integer.
template <class To, class From>
REPDL_HD To saturated(From x) {
  if constexpr (sizeof(To) < sizeof(From)) {
    const From below = x < greatest<To> ? x : greatest<To>;
    return static_cast<To>(below > least<To> ? below : least<To>);
  } else {
    return static_cast<To>(x);
  }
}

// The one that is nearest to x without its fraction; NaN: 0. A C++ conversion is only defined for what fits. -2^31 and -2^63 are
// numbers of binary32 and binary64; of the greatest ones only 2^31 - 1 is one, of binary64.
template <class To, class Float>
REPDL_HD To truncated(Float x) {
  constexpr Float low = static_cast<Float>(least<To>);
  const Float number = x == x ? x : 0;
  const Float above = number > low ? number : low;
  if constexpr (format<Float>::precision >= static_cast<int>(8 * sizeof(To))) {
    constexpr Float high = static_cast<Float>(greatest<To>);
    return static_cast<To>(above < high ? above : high);
  } else {
    const To inside = static_cast<To>(above < -low ? above : 0);
    return above < -low ? inside : greatest<To>;
  }
}

// The same by sums, for loops. Let a = min(|x|, 2^63) = 2^32 h + l, h the integer nearest to 2^-32 a. Then |l| <= 2^31, and l is
// exact: a itself where h = 0; else a >= 2^31, and l is a multiple of a's last place, which is at least 2^-21. The integer nearest to
// l is floor(l), or above it by 1. Both integers are the low ends of the patterns of their sums with 1.5 * 2^52. Doubles are compared
// by the signs of differences: g++ 12 would compute what follows twice, and choose.
REPDL_HD std::int64_t truncated_by_sums(double x) {
  constexpr double limit = 0x1p63, shift = 0x1.8p52;
  const std::uint64_t negative = mask_if_negative(bits_of(x));
  const double magnitude = magnitude_of(x);
  const std::uint64_t fits = mask_if_negative(bits_of(magnitude - limit));
  const double a = double_of((bits_of(magnitude) & fits) | (bits_of(limit) & ~fits));
  const double high = a * 0x1p-32 + shift;
  const double l = a - (high - shift) * 0x1p32;
  const double low = l + shift;
  const std::uint64_t excess = bits_of(l - (low - shift)) >> 63;
  const std::uint64_t integer = (bits_of(high) << 32) + (bits_of(low) - bits_of(shift)) - excess;
  const std::uint64_t nearest = integer - (~negative & ~fits & 1);
  const std::uint64_t with_sign = (nearest ^ negative) - negative;
  return static_cast<std::int64_t>(x == x ? with_sign : 0);
}

// x as a binary64 number, where a rounding to at most 40 bits follows: exactly, or from 2^53 on rounded to odd to a multiple of 2^11,
// which has 42 bits at least (Boldo and Melquiond, eft.hpp). In two's complement, of either sign, that is: the last bit kept is set
// where what is cut is not 0. Without an instruction for the rest, the halves 2^32 m and n, m with a sign, are put beside
// 2^84 + 2^63 and 2^52, and added exactly.
REPDL_HD double widen_to_odd(std::int32_t x) { return x; }
REPDL_HD double widen_to_odd(std::int64_t x) {
  constexpr std::uint64_t rest = (1 << 11) - 1;
  const std::uint64_t b = static_cast<std::uint64_t>(x);
  const std::uint64_t is_long = mask_if_negative(0 - ((b + (std::uint64_t{1} << 53)) >> 54));
  const std::uint64_t odd = (b | ((b & rest) + rest)) & ~rest;
  const std::uint64_t v = (odd & is_long) | (b & ~is_long);
  if constexpr (has_fast_int64) {
    return static_cast<double>(static_cast<std::int64_t>(v));
  } else {
    const double high = double_of((v >> 32) ^ bit_cast<std::uint64_t>(0x1.00000800p84));
    const double low = double_of((v & 0xffffffff) | bit_cast<std::uint64_t>(0x1p52));
    return (high - 0x1.00000800p84) + (low - 0x1p52);
  }
}

// RN of an integer.
template <class To, class From>
REPDL_HD To rounded(From x, [[maybe_unused]] bool saturate) {
  using F = format<To>;
  if constexpr (std::is_same_v<From, bool>) {
    constexpr auto one = static_cast<storage_of<To>>(static_cast<storage_of<To>>(1 - F::emin) << (F::precision - 1));
    return from_bits<To>(x ? one : 0);
  } else if constexpr (is_small_float<To>) {
    return narrow<To>(widen_to_odd(x));
  } else if constexpr (is_byte_float<To>) {
    return narrow<To>(widen_to_odd(x), saturate);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
struct convert_body {
  REPDL_HD static To eval(From x, [[maybe_unused]] bool saturate = false) {
    constexpr bool from_integer = std::is_integral_v<From>;
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_same_v<To, bool>) {
      if constexpr (from_integer) {
        return x != 0;
      } else {
        return truth(x);
      }
    } else if constexpr (std::is_integral_v<To>) {
      if constexpr (from_integer) {
        return saturated<To>(x);
      } else if constexpr (sizeof(To) == 8 && !has_fast_int64) {
        return truncated_by_sums(widen(x));
      } else if constexpr (std::is_same_v<From, double>) {
        return truncated<To>(x);
      } else {
        return truncated<To>(widen_to_float(x));
      }
    } else if constexpr (from_integer) {
      return rounded<To>(x, saturate);
    } else if constexpr (is_byte_float<To> && std::is_same_v<From, double>) {
      return narrow<To>(x, saturate);
    } else if constexpr (is_byte_float<To>) {
      return narrow<To>(widen_to_float(x), saturate);
    } else if constexpr (std::is_same_v<From, double>) {
      return narrow<To>(x);
    } else {
      return narrow<To>(widen_to_float(x));
    }
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
