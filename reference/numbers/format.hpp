// Floating-point formats, and the one rounding: the only place of the oracle where a real number becomes a bit pattern.
// Integers only; needs neither GMP nor MPFR, so that sample inputs and digests exist in every build.
//
// A bit pattern of any format is held in the low bits of a std::uint64_t. Every rounding ends in `round`, which takes
// an integer significand, an exponent and a sticky flag, so there is one rounding to read and to test.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "librepdl/tensor.hpp"

namespace repdl::reference {

inline constexpr dtype f32 = dtype::f32;  ///< the format of most operations

/// A binary format: patterns are ordered as magnitudes, and what is above the largest number is infinity, if there is one, then NaN.
struct format {
  int width;      ///< bits in all
  int precision;  ///< significand bits, the hidden one included
  int emin;       ///< 2^emin is the least positive normal number
  int emax;       ///< 2^emax is the largest power of two
  std::uint64_t largest_pattern, nan_pattern;
  bool has_infinities;
  constexpr int ulp_min() const { return emin - precision + 1; }  ///< 2^ulp_min is the least positive number
  constexpr std::uint64_t sign_bit() const { return std::uint64_t{1} << (width - 1); }
  constexpr std::uint64_t largest() const { return largest_pattern; }
  constexpr std::uint64_t nan() const { return nan_pattern; }
  /// The least pattern that is no finite number; infinity, if there is one.
  constexpr std::uint64_t infinity() const { return largest_pattern + 1; }
  /// The least pattern of a NaN.
  constexpr std::uint64_t first_nan() const { return infinity() + (has_infinities ? 1 : 0); }
  /// The significand of the largest number, an integer of `precision` bits.
  constexpr std::uint64_t largest_significand() const {
    const std::uint64_t hidden = std::uint64_t{1} << (precision - 1);
    return (largest_pattern & (hidden - 1)) | hidden;
  }
};

bool is_floating(dtype t);
/// The format of a floating-point dtype.
const format& format_of(dtype t);
/// "f16", "bf16", "f32", "f64", "i64", "bool", "i32" (here too, so that the oracle links alone).
std::string_view format_name(dtype t);
/// The inverse; throws std::invalid_argument.
dtype format_named(std::string_view name);

enum class number_kind { zero, finite, infinite, nan };

/// A bit pattern taken apart: (-1)^negative * significand * 2^exponent.
struct number {
  number_kind kind = number_kind::zero;
  bool negative = false;
  std::uint64_t significand = 0;  ///< 0 unless finite
  int exponent = 0;
};

/// Exact. Integers are numbers with the exponent 0; a boolean is 1, or 0 where its byte is.
number widen(dtype t, std::uint64_t bits);

/// The canonical quiet NaN; infinity, or NaN where there is none; zero.
std::uint64_t nan_bits(dtype t);
std::uint64_t infinity_bits(dtype t, bool negative);
std::uint64_t zero_bits(dtype t, bool negative);

/// RN((-1)^negative * (m + d) * 2^exponent) to nearest, ties to even, where d = 0, or 0 < d < 1 if sticky.
/// A zero (m = 0, not sticky) has the sign given. With sticky, m needs at least precision + 2 significant bits, so that
/// d is below every midpoint's last place; the callers pass 64.
std::uint64_t round(dtype t, bool negative, std::uint64_t m, std::int64_t exponent, bool sticky);

/// Conversion between element types. The same type: the bits. To a format: IEEE 754, NaN is canonical. To an integer: the value
/// without its fraction, then the nearest integer of the type; NaN is 0. To a boolean, from one too: 1 for all but zeros.
/// Saturated, what is beyond the largest number of a format is that number.
std::uint64_t convert(dtype from, dtype to, std::uint64_t bits, bool saturate = false);

/// An integer that maps the order NaN-free patterns have (-0 < +0) to the order of integers; of an integer itself.
std::int64_t order_key(dtype t, std::uint64_t bits);

/// Where an exact result lies with respect to a format: what tests count.
struct outcome {
  bool nan = false;
  bool infinite = false;    ///< an infinite exact result
  bool exact_zero = false;  ///< finite and exactly zero
  bool exact = false;       ///< representable
  bool tie = false;         ///< exactly a midpoint of two neighbours
  bool near_tie = false;    ///< no tie, but within 2^-20 ulp of a midpoint
  bool subnormal = false;   ///< nonzero and below 2^emin in magnitude
  bool overflow = false;    ///< finite, rounds to infinity
  bool border = false;      ///< finite, within 2 ulp of the overflow threshold
  /// |exact - the nearest midpoint| in ulp of the result: 0 for a tie, 0.5 where it is representable; 1 for inf and NaN
  /// inputs. For reports only, so it may be a few bits off.
  double boundary_distance = 1;
};
using outcomes = std::vector<outcome>;

}  // namespace repdl::reference
