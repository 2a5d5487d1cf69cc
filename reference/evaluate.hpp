// Any operation of the registry on contiguous arrays, by name and attributes: what tests, sweeps and digests call.
#pragma once

#include <string>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "reference/attributes.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {

/// All outputs of `op`, in order. Optional inputs at the end may be left out, any may be array::none(). `where`, if
/// given, gets an outcome per output element where the operation rounds: all but max, min, argmax, argmin, max_pool2d,
/// permutation, bernoulli, randint, and sums accumulated as fma_chain. in_64_bits, if given: what arithmetic of 64 bits decides
/// (nearby.hpp) is not computed with MPFR, but counted there; nothing is said of where that lies.
/// Throws std::invalid_argument or std::logic_error for what the library refuses.
std::vector<array> evaluate_all(const std::string& op, const std::vector<array>& inputs, const attributes& attrs = {},
                                outcomes* where = nullptr, std::int64_t* in_64_bits = nullptr);

/// The one output of an operation that has one; else throws std::logic_error.
array evaluate(const std::string& op, const std::vector<array>& inputs, const attributes& attrs = {},
               outcomes* where = nullptr);

}  // namespace repdl::reference
