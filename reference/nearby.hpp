// What 64 bits decide: a rounding of values that glibc's functions of long double enclose. It shares nothing with the library, nor with
// MPFR, and takes a fraction of a microsecond; `repdl sweep --compare-only` asks it first and MPFR where it does not decide.
#pragma once

#include <cstdint>
#include <string_view>

#include "librepdl/tensor.hpp"

namespace repdl::reference {

/// Whether the result is decided; then it goes to *out. in: patterns of `t`; options: a row's.
using nearby_function = bool (*)(dtype t, const std::uint64_t* in, const double* options, std::uint64_t* out);

/// Null where there is none, and where long double has not 64 bits.
nearby_function nearby_named(std::string_view name);

}  // namespace repdl::reference
