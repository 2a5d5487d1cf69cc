#pragma once

#include <bit>
#include <cstdint>

namespace repdl::tests {

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

}  // namespace repdl::tests
