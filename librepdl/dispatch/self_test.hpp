// The known-answer test of a backend: run once per backend, instruction set and device, when the first context is made.
#pragma once

#include <cstdint>
#include <vector>

#include "librepdl/context.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::dispatch {

struct known_answer {
  std::uint32_t in[ops::most_operands];
  std::uint32_t out;
};
/// Hardest-to-round, subnormal and special inputs of an elementwise operation in binary32, and their results.
std::vector<known_answer> known_answers(ops::op_id op);

/// Throws error_site::self_test, naming the operation, its inputs and both results, when a result is not the known one:
/// a build with the wrong flags, a broken driver, hardware that does not do IEEE 754 arithmetic.
void self_test(context::impl& c);

}  // namespace repdl::dispatch
