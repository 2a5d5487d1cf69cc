// torch.func.vmap: each sample has the bits that it has alone.
#pragma once

#include <string>
#include <vector>

#include "door.hpp"

namespace repdl_torch {

/// The names and arguments of batches.def.
std::string batched_by_aten();

/// How a call is computed whose tensors torch.func.vmap batches: each sample by itself; all side by side, of elementwise operations;
/// or each by itself and with numbers of its own, if vmap's `randomness` says so.
enum class batching { each, together, drawn };
/// At the level of the innermost vmap. False, and nothing done: there are no samples, whose results had no shape.
bool run_batched(batching how, const c10::OperatorHandle& op, Stack* stack);
/// Whether of the arguments on the stack no others than `those` are batched.
bool only_batched(const std::vector<bool>& those, const c10::OperatorHandle& op, const Stack& stack);

}  // namespace repdl_torch
