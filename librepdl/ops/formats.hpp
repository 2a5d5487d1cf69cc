// What formats.def says of the element types, as data.
#pragma once

#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "librepdl/tensor.hpp"

namespace repdl::ops {

/// A floating-point format; all 0 for an integer type.
struct float_traits {
  int precision, emin, emax;
  std::uint64_t largest, nan;
  bool has_infinities;
};

struct type_traits {
  dtype type;
  std::string_view name, python;
  std::uint8_t dlpack_code;
  bool is_floating;
  float_traits floating;
};

inline constexpr type_traits types[] = {
#define REPDL_FLOAT(id, number, type, name, python, dlpack, ...) {dtype::id, name, python, dlpack, true, {__VA_ARGS__}},
#define REPDL_INTEGER(id, number, type, name, python, dlpack) {dtype::id, name, python, dlpack, false, {}},
#include "librepdl/formats.def"
};
inline constexpr int dtype_count = static_cast<int>(std::size(types));
static_assert([] {
  for (int i = 0; i < dtype_count; ++i) {
    if (static_cast<int>(types[i].type) != i) return false;
  }
  return true;
}());

constexpr const type_traits& traits_of(dtype t) { return types[static_cast<int>(t)]; }
constexpr bool is_floating(dtype t) { return traits_of(t).is_floating; }

/// The largest finite number of a floating-point format.
constexpr double largest(dtype format) {
  const float_traits& f = traits_of(format).floating;
  const std::uint64_t hidden = std::uint64_t{1} << (f.precision - 1);
  const auto power = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + f.emax - (f.precision - 1)) << 52);
  return static_cast<double>((f.largest & (hidden - 1)) | hidden) * power;
}

/// A set of element types.
using dtype_set = unsigned;
constexpr dtype_set one(dtype t) { return 1u << static_cast<unsigned>(t); }
inline constexpr dtype_set F32 = one(dtype::f32);
inline constexpr dtype_set NARROW = one(dtype::f16) | one(dtype::bf16) | F32;
inline constexpr dtype_set F64 = one(dtype::f64);
inline constexpr dtype_set FLOATS = NARROW | F64;
/// Of what is kept beside operands of FLOATS: f32, beside f64 f64 (state_format). Of dropout.
inline constexpr dtype_set STATES = F32 | F64;
inline constexpr dtype_set I64 = one(dtype::i64);
inline constexpr dtype_set BOOL = one(dtype::boolean);
inline constexpr dtype_set I32 = one(dtype::i32);
inline constexpr dtype_set INTEGERS = I64 | BOOL | I32;
inline constexpr dtype_set LOGICAL = FLOATS | BOOL;
/// Formats of 8 bits: conversions only.
inline constexpr dtype_set F8 = one(dtype::f8_e4m3fn) | one(dtype::f8_e5m2);
inline constexpr dtype_set ALL = (1u << dtype_count) - 1;
constexpr dtype state_format(dtype of) { return of == dtype::f64 ? dtype::f64 : dtype::f32; }
/// Of sums and products: those of integers and booleans are i64, modulo 2^64.
constexpr dtype total_type(dtype of) { return is_floating(of) ? of : dtype::i64; }
/// "f16, bf16, f32 or f64".
std::string describe(dtype_set set);

/// Calls f.template operator()<T>() for the element types in a set, in the order of dtype.
template <dtype_set Set, class F>
constexpr void for_each_format(F&& f) {
#define REPDL_TYPE(id, number, type, ...) \
  if constexpr ((Set & one(dtype::id)) != 0) f.template operator()<type>();
#include "librepdl/formats.def"
}

}  // namespace repdl::ops
