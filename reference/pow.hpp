// The oracle of pow, for binary16, bfloat16 and binary32.
#pragma once

#include "reference/number.hpp"

namespace repdl::reference {

/// RN_t(x^y) for patterns of t, with C23's special cases.
std::uint64_t oracle_pow(dtype t, std::uint64_t x, std::uint64_t y);

/// Where the exact x^y lies.
outcome locate_pow(dtype t, std::uint64_t x, std::uint64_t y);

}  // namespace repdl::reference
