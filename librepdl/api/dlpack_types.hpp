// Element types by DLPack's numbers: what the C ABI and the Python package exchange.
#pragma once

#include <cstdint>
#include <optional>

#include "librepdl/ops/formats.hpp"

namespace repdl::api {

// All have one lane.
struct dlpack_type {
  std::uint8_t code, bits;
};

constexpr dlpack_type dlpack_type_of(dtype type) {
  return {ops::traits_of(type).dlpack_code, static_cast<std::uint8_t>(8 * size_of(type))};
}

constexpr std::optional<dtype> type_from_dlpack(std::uint8_t code, std::uint8_t bits) {
  for (const ops::type_traits& t : ops::types) {
    if (t.dlpack_code == code && 8 * size_of(t.type) == bits) return t.type;
  }
  return std::nullopt;
}

}  // namespace repdl::api
