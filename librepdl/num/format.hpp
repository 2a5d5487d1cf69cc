// The formats: their parameters, canonical NaNs, and the exact conversions to and from binary64.
//
// Every value of binary16, bfloat16 and binary32 is a binary64 number, so `widen` is exact, and a result in one of them
// is rounded once by `narrow` from a binary64 number: exact there, or rounded to odd there (eft.hpp).
#pragma once

#include <type_traits>

#include "librepdl/num/eft.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Parameters of a binary interchange format (IEEE 754-2019, 3.3): `precision` counts the significand's bits, the hidden
// one included; emin is the exponent of the smallest normal number, emax of the largest.
template <class T>
struct format;

// Patterns of the same size, as unsigned numbers.
template <std::size_t Size>
struct unsigned_of;
template <>
struct unsigned_of<1> {
  using type = std::uint8_t;
};
template <>
struct unsigned_of<2> {
  using type = std::uint16_t;
};
template <>
struct unsigned_of<4> {
  using type = std::uint32_t;
};
template <>
struct unsigned_of<8> {
  using type = std::uint64_t;
};

// The pattern of infinity, where there is one.
template <class Storage, Storage Largest, bool HasInfinities>
struct infinity_of {
  static constexpr Storage infinity = Largest + 1;
};
template <class Storage, Storage Largest>
struct infinity_of<Storage, Largest, false> {};

#define REPDL_FLOAT(id, number, of, name, python, dlpack, p, least, most, largest_one, computed_nan, infinities) \
  template <>                                                                                                    \
  struct format<of> : infinity_of<typename unsigned_of<sizeof(of)>::type, largest_one, infinities> {             \
    using storage = typename unsigned_of<sizeof(of)>::type;                                                      \
    static constexpr int precision = p, emin = least, emax = most;                                               \
    static constexpr storage largest = largest_one, nan = computed_nan;                                          \
    static constexpr bool has_infinities = infinities;                                                           \
  };
#define REPDL_INTEGER(...)
#include "librepdl/formats.def"

// A number of a narrow format T on its way through a loop that unpacked it: operands are numbers of T, exactly; of a result,
// which `narrow` makes, the loop makes RN_T(value), so it can only be returned. NaN need not be canonical.
template <class T>
struct unpacked {
  using packed = T;
  float value;
};
template <class T>
struct format<unpacked<T>> : format<float> {
  static constexpr int precision = format<T>::precision, emin = format<T>::emin, emax = format<T>::emax;
};

template <class T, class Narrow>
inline constexpr bool is_format = std::is_same_v<T, Narrow> || std::is_same_v<T, unpacked<Narrow>>;
template <class T>
inline constexpr bool is_small_float = is_format<T, f16> || is_format<T, bf16>;
template <class T>
inline constexpr bool is_byte_float = std::is_same_v<T, f8_e4m3fn> || std::is_same_v<T, f8_e5m2>;
template <class T>
inline constexpr bool is_unpacked = is_small_float<T> && sizeof(T) == sizeof(float);

template <class T>
using storage_of = typename format<T>::storage;
template <class T>
inline constexpr storage_of<T> sign_mask = static_cast<storage_of<T>>(storage_of<T>{1} << (8 * sizeof(T) - 1));

REPDL_HD std::uint32_t to_bits(float a) { return bits_of(a); }
REPDL_HD std::uint64_t to_bits(double a) { return bits_of(a); }
REPDL_HD std::uint8_t to_bits(f8_e4m3fn a) { return a.bits; }
REPDL_HD std::uint8_t to_bits(f8_e5m2 a) { return a.bits; }
template <class T>
requires is_small_float<T> REPDL_HD storage_of<T> to_bits(T a) {
  if constexpr (is_unpacked<T>) {
    return bits_of(a.value);
  } else {
    return a.bits;
  }
}
template <class T>
REPDL_HD T from_bits(storage_of<T> b) {
  return bit_cast<T>(b);
}
// |x| with the sign of `of`.
template <class T>
REPDL_HD T with_sign(T x, T of) {
  const storage_of<T> magnitude = to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>);
  return from_bits<T>(magnitude | (to_bits(of) & sign_mask<T>));
}
template <class T>
REPDL_HD bool is_nan(T a) {
  if constexpr (is_unpacked<T>) {
    return a.value != a.value;
  } else if constexpr (is_small_float<T>) {
    return (a.bits & 0x7fff) > format<T>::infinity;
  } else {
    return a != a;
  }
}

// The canonical NaN if a is any NaN, else a. A select of bit patterns: between two floating-point values that are both
// NaN the compiler need not distinguish.
REPDL_HD float canonical(float a) {
  const std::uint32_t b = bits_of(a);
  return float_of(a != a ? format<float>::nan : b);
}
REPDL_HD double canonical(double a) {
  const std::uint64_t b = bits_of(a);
  return double_of(a != a ? format<double>::nan : b);
}
template <class T>
requires is_small_float<T> REPDL_HD T canonical(T a) {
  if constexpr (is_unpacked<T>) {
    return a;
  } else {
    const bool is_nan = (a.bits & 0x7fff) > format<T>::infinity;
    return T{is_nan ? format<T>::nan : a.bits};
  }
}

// The value of a as a binary32 number, exactly; NaN becomes some NaN.
REPDL_HD float widen_to_float(float a) { return a; }
REPDL_HD float widen_to_float(bf16 a) { return float_of(static_cast<std::uint32_t>(a.bits) << 16); }
REPDL_HD float widen_to_float(f16 a) { return value_of_f16(a.bits); }

// The upper half of an f16.
REPDL_HD float widen_to_float(f8_e5m2 a) {
  return widen_to_float(f16{static_cast<std::uint16_t>(static_cast<std::uint32_t>(a.bits) << 8)});
}
// As f16: the fields move up by 20 bits, the bias grows by 120; a subnormal m * 2^-9 is (2^-6 + m * 2^-9) - 2^-6.
REPDL_HD float widen_to_float(f8_e4m3fn a) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(a.bits & 0x7f) << 20;
  const std::uint32_t rebiased = magnitude == (0x7fu << 20) ? format<float>::nan : magnitude + (120u << 23);
  const std::uint32_t small = bits_of(float_of(magnitude + (121u << 23)) - 0x1p-6f);
  const std::uint32_t sign = static_cast<std::uint32_t>(a.bits & 0x80) << 24;
  return float_of((magnitude < (1u << 23) ? small : rebiased) | sign);
}

template <class T>
REPDL_HD float widen_to_float(unpacked<T> a) {
  return a.value;
}

// The value of a as a binary64 number, exactly; NaN becomes some NaN.
REPDL_HD double widen(double a) { return a; }
template <class T>
REPDL_HD double widen(T a) {
  return static_cast<double>(widen_to_float(a));
}

// f.template operator()<T>() for a type of ops::NARROW. No plan has another one where this is asked.
template <class F>
REPDL_HD auto with_format(dtype of, const F& f) {
  switch (of) {
    case dtype::f16:
      return f.template operator()<f16>();
    case dtype::bf16:
      return f.template operator()<bf16>();
    case dtype::f32:
    case dtype::f64:
    case dtype::i64:
    case dtype::boolean:
    case dtype::i32:
    case dtype::f8_e4m3fn:
    case dtype::f8_e5m2:
      break;
  }
  return f.template operator()<float>();
}

REPDL_HD bool is_regular(double v) { return v - v == 0; }

// c ? a : b, on the CPU by their bits: where what is chosen is compared g++ 12 compares before it chooses, between truths, and
// vectorises nothing.
REPDL_HD double choose(bool c, double a, double b) {
  if constexpr (on_device) {
    return c ? a : b;
  } else {
    const std::uint64_t mask = 0 - static_cast<std::uint64_t>(c);
    return double_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
  }
}
REPDL_HD float choose(bool c, float a, float b) {
  if constexpr (on_device) {
    return c ? a : b;
  } else {
    const std::uint32_t mask = 0 - static_cast<std::uint32_t>(c);
    return float_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
  }
}

// All ones if a, read as a signed number, is negative, else 0. The compiler vectorises 64-bit integer comparisons and
// selects only from SSE4.2 on, this everywhere.
REPDL_HD std::uint64_t mask_if_negative(std::uint64_t a) { return 0 - (a >> 63); }

// RN_T(a), ties to even, one rounding, subnormals and overflow included; the canonical NaN for NaN. Unpacked: a itself.
//
// bf16 has binary32's exponents, so its pattern is the upper half of binary32's, rounded as an integer: adding 2^15 - 1 and the
// last bit kept carries past 2^15 exactly when RN rounds up.
//
// Narrower exponents (f16, those of 8 bits), with p the precision and P that of a's format. Let c = min(|a|, L), L the number that
// what is above the largest finite pattern would be, 2^(emax+1) or 480; c rounds as |a| does. Let E = 2^e be the larger
// of c's binade and 2^emin, and q = E * 2^(1-p) the target's ulp there. Let M = 2^(P-1) q; since c < 2E <= M, the sum c + M lies
// in [M, 2M), where the ulp of a's format is q: it is M + n q, n q being c rounded to a multiple of q, ties to even n, and n is
// the low end of its bit pattern. The target's pattern is n + (e - emin) 2^(p-1): n's own bit 2^(p-1), there for normal numbers,
// adds the 1 by which a normal number's biased exponent exceeds e - emin, and carries, up to infinity, come out right.
template <class T>
REPDL_HD std::uint32_t rounded_magnitude(std::uint32_t bits) {
  using F = format<T>;
  constexpr std::int32_t smallest_exponent = F::emin + 127;
  constexpr std::int32_t limit = ((F::largest + 1) << (24 - F::precision)) + ((F::emin + 126) << 23);
  constexpr float magic = bit_cast<float>((24 - F::precision + 127) << 23);
  const std::int32_t magnitude = static_cast<std::int32_t>(bits & 0x7fffffff);
  const std::int32_t c = magnitude < limit ? magnitude : limit;
  const std::int32_t distance = (c >> 23) - smallest_exponent;
  const std::int32_t exponent = distance > 0 ? distance : 0;
  const float power = bit_cast<float>((exponent + smallest_exponent) << 23);
  const std::uint32_t n = bits_of(bit_cast<float>(c) + power * magic) & 0xffff;
  return n + (static_cast<std::uint32_t>(exponent) << (F::precision - 1));
}
template <class T>
REPDL_HD T narrow(float a) {
  if constexpr (!is_small_float<T>) {
    return canonical(static_cast<T>(a));
  } else if constexpr (is_unpacked<T>) {
    return {a};
  } else if constexpr (narrows_float) {
    const std::uint16_t b = narrow_by_instruction<format<T>::precision>(a);
    return T{a != a ? format<T>::nan : b};
  } else {
    const std::uint32_t b = bits_of(a);
    if constexpr (std::is_same_v<T, bf16>) {
      const std::uint32_t code = (b + 0x7fff + (b >> 16 & 1)) >> 16;
      return T{static_cast<std::uint16_t>(a != a ? format<T>::nan : code)};
    } else {
      const std::uint32_t code = rounded_magnitude<T>(b) | (b >> 31 << 15);
      return T{static_cast<std::uint16_t>((b & 0x7fffffff) > 0x7f800000 ? format<T>::nan : code)};
    }
  }
}

// The same from binary64. Unpacked: a binary32 number that rounds as a does, a rounded to odd, to 13 >= p + 2 bits (Boldo and
// Melquiond, eft.hpp). It is a number of binary32, except where it is 0 or infinite in f16 and bf16, too: above 2^128, or below
// 2^-137. By way of it f16 and bf16 are rounded where no instruction does.
template <class T>
REPDL_HD T narrow(double a) {
  if constexpr (!is_small_float<T>) {
    return canonical(static_cast<T>(a));
  } else if constexpr (is_unpacked<T>) {
    constexpr std::uint64_t rest = (std::uint64_t{1} << 40) - 1;
    const std::uint64_t b = bits_of(a);
    return {static_cast<float>(double_of((b | ((b & rest) + rest)) & ~rest))};
  } else if constexpr (narrows_double) {
    const std::uint16_t b = narrow_by_instruction<format<T>::precision>(a);
    return T{a != a ? format<T>::nan : b};
  } else {
    return narrow<T>(narrow<unpacked<T>>(a).value);
  }
}

// The same to 8 bits. Too large a number gives infinity, or NaN where there is none; `saturate`: the largest number, of infinities, too.
template <class T>
requires is_byte_float<T> REPDL_HD T narrow(float a, bool saturate) {
  using F = format<T>;
  const std::uint32_t b = bits_of(a);
  const std::uint32_t code = rounded_magnitude<T>(b);
  const bool is_over = code > F::largest;
  const bool is_nan = (b & 0x7fffffff) > 0x7f800000 || (!F::has_infinities && is_over && !saturate);
  const std::uint32_t magnitude = is_over && saturate ? F::largest : code;
  return T{static_cast<std::uint8_t>(is_nan ? F::nan : magnitude | (b >> 31 << 7))};
}
// By way of a binary32 number that rounds alike, as f16.
template <class T>
requires is_byte_float<T> REPDL_HD T narrow(double a, bool saturate) {
  return narrow<T>(narrow<unpacked<f16>>(a).value, saturate);
}

// Not 0 if a number of binary32 is a midpoint of T, and for few others of f16 (next to midpoints below its normal numbers, which
// 2^-14 moves to where midpoints have one pattern; too large ones).
template <class T>
REPDL_HD std::uint32_t midpoint_mark(float v) {
  constexpr std::uint32_t half = 1u << (23 - format<T>::precision);
  std::uint32_t b = bits_of(v);
  if constexpr (is_format<T, f16>) {
    constexpr std::uint32_t least_normal = bit_cast<std::uint32_t>(0x1p-14f);
    b &= 0x7fffffff;
    const std::uint32_t below = 0 - ((b - least_normal) >> 31);
    b = bits_of(float_of(b) + float_of(least_normal & below));
  }
  return (((b & (2 * half - 1)) ^ half) - 1) >> 31;
}

// Whether no midpoint of T is within `ulps` ulps of v, a number of binary32, and |v| is at least T's least normal number.
template <class T>
REPDL_HD bool is_far_from_midpoints(float v, std::int32_t ulps) {
  using F = format<T>;
  constexpr std::uint32_t last = (1u << (24 - F::precision)) - 1;
  const std::uint32_t b = bits_of(v);
  const std::int32_t magnitude = static_cast<std::int32_t>(b & 0x7fffffff);
  const bool in_range = (magnitude >= (F::emin + 127) << 23) & (magnitude < 0x7f800000);
  const std::uint32_t near = (last + 1) / 2 - static_cast<std::uint32_t>(ulps);
  return in_range & (static_cast<std::int32_t>((b - near) & last) > 2 * ulps);
}

// f.template operator()<T>() for a floating-point type.
template <class F>
REPDL_HD auto with_float(dtype of, const F& f) {
  if (of == dtype::f64) return f.template operator()<double>();
  return with_format(of, f);
}
REPDL_HD double number_of(dtype type, const void* data, std::int64_t at) {
  return with_float(type, [=]<class T>() { return widen(static_cast<const T*>(data)[at]); });
}
// v: a number of the format, or NaN.
REPDL_HD void set_number_of(dtype type, void* data, std::int64_t at, double v) {
  with_float(type, [=]<class T>() { static_cast<T*>(data)[at] = narrow<T>(v); });
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
