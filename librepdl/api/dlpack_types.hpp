// Element types by DLPack's numbers: what the C ABI and the Python package exchange.
#pragma once

#include <cstdint>
#include <optional>

#include "librepdl/tensor.hpp"

namespace repdl::api {

struct dlpack_type {
  dtype type;
  std::uint8_t code;  // kDLInt 0, kDLFloat 2, kDLBfloat 4, kDLBool 6
  std::uint8_t bits;
};
// In the order of dtype. All have one lane.
inline constexpr dlpack_type dlpack_types[] = {{dtype::f16, 2, 16}, {dtype::bf16, 4, 16}, {dtype::f32, 2, 32},
                                               {dtype::f64, 2, 64}, {dtype::i64, 0, 64},  {dtype::boolean, 6, 8},
                                               {dtype::i32, 0, 32}};

constexpr const dlpack_type& dlpack_type_of(dtype type) { return dlpack_types[static_cast<std::size_t>(type)]; }

constexpr std::optional<dtype> type_from_dlpack(std::uint8_t code, std::uint8_t bits) {
  for (const dlpack_type& t : dlpack_types) {
    if (t.code == code && t.bits == bits) return t.type;
  }
  return std::nullopt;
}

}  // namespace repdl::api
