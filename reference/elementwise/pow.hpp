// The oracle of pow; a power or a base may be a binary64 number whatever the format of the result.
#pragma once

#include "reference/numbers/number.hpp"

namespace repdl::reference {

/// A pattern of a format.
struct pow_operand {
  dtype type;
  std::uint64_t bits;
};

/// RN_t(x^y), with C23's special cases.
std::uint64_t oracle_pow(dtype t, const pow_operand& x, const pow_operand& y);

/// Where the exact x^y lies.
outcome locate_pow(dtype t, const pow_operand& x, const pow_operand& y);

}  // namespace repdl::reference
