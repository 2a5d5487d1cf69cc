// Any operation of the registry on contiguous arrays, by name and attributes: what tests, sweeps and digests call.
#pragma once

#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "reference/attributes.hpp"
#include "reference/structured.hpp"

namespace repdl::reference {

/// The one output of `op`. Optional inputs may be left out. `where`, if given, gets an outcome per output element where
/// the operation rounds (elementwise, convert, sum, mean, dot, matmul with exact accumulation, uniform).
/// Throws std::invalid_argument or std::logic_error for what the library refuses.
array evaluate(const std::string& op, const std::vector<array>& inputs, const attributes& attrs = {},
               outcomes* where = nullptr);

}  // namespace repdl::reference
