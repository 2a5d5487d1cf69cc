// All binary32 results of an elementary function, fast: runs of consecutive inputs by tabulated differences (after
// V. Lefevre), a few nanoseconds an element.
#pragma once

#include <cstdint>

#include "reference/elementwise/elementary.hpp"

namespace repdl::reference {

/// Patterns of binary32.
inline constexpr std::uint32_t inf32 = 0x7f800000, sign32 = 0x80000000;

/// out[i] = evaluate(f, f32, first + i) for i < count; first + count <= 2^32. Returns how many elements it left to
/// evaluate.
std::uint64_t tabulate(const elementary& f, std::uint32_t first, std::uint64_t count, std::uint32_t* out);

}  // namespace repdl::reference
