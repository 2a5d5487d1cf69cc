// The known answers of the self-test that every backend passes before its first call, one file per elementwise
// operation: librepdl/self_test/known_answers/OP.txt. The files are the list; a line is "inputs -> result", binary32
// patterns in eight hexadecimal digits.
#pragma once

#include <iosfwd>
#include <string>

#include "librepdl/ops/registry.hpp"

namespace repdl::reference {

/// The file of an operation that has none yet. Inputs by rule: each special value (two operands and more: each pair of
/// them, the others moving along), the hardest to round of some thousands, and patterns spread evenly.
std::string proposed_known_answers(const ops::elementwise_row& row);

/// The file again, each result from the oracle. `name` is for messages; throws std::runtime_error, "NAME:LINE: ...".
std::string known_answers(const ops::elementwise_row& row, std::istream& in, const std::string& name);

}  // namespace repdl::reference
