// The formulas of policy.def: aten's operations in terms of librepdl's.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "door.hpp"

namespace repdl_torch::formulas {

#define REPDL_MAP(...)
#define REPDL_FORMULA(types, schema, function) void function(call&);
#define REPDL_PIN(schema, function) void function(call&);
#define REPDL_DERIVATIVE(schema, function) void function(call&);
#define REPDL_PASS(...)
#define REPDL_REFUSE(...)
#include "policy.def"
#undef REPDL_MAP
#undef REPDL_FORMULA
#undef REPDL_PIN
#undef REPDL_DERIVATIVE
#undef REPDL_PASS
#undef REPDL_REFUSE

/// PyTorch's error where the condition is not true of every element; on a GPU by an assertion of the device, at the next
/// synchronisation, as PyTorch has it. (On the CPU replaced::compute asks aten's kernel for the words.)
void expect_all(const Tensor& condition, const char* what);
/// The exact sum over every axis but one.
Tensor sum_over_all_but(const Tensor& t, int64_t axis);

}  // namespace repdl_torch::formulas
