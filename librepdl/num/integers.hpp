// Integers as they lie in memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// A boolean is a byte, true unless it is 0; a `bool` of C++ may only be 0 or 1.
template <class T>
using element_of = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

REPDL_HD std::int64_t integer_value(std::int64_t x) { return x; }
REPDL_HD std::int32_t integer_value(std::int32_t x) { return x; }
REPDL_HD std::int32_t integer_value(std::uint8_t boolean) { return boolean != 0 ? 1 : 0; }

}  // namespace REPDL_ISA
}  // namespace repdl::num
