// The optimiser kernels of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

inline constexpr std::int64_t step_block = 1024;
inline constexpr std::size_t step_constants_bytes = 2048;

// n <= step_block elements of one tensor, side by side in memory. Operands and outputs as in plan::step_tensor; an
// output may be the input of its name. Null: absent.
struct step_operands {
  const void* in[4];
  void* out[3];
  std::int64_t n;
};

struct step_counts {
  std::int64_t elements[4] = {};
};

struct step_kernels {
  // Makes the constants of a plan, step_constants_bytes at most, 64-byte aligned; under the library's floating-point
  // environment.
  void (*prepare)(const plan::step_plan&, tier first_tier, void* constants);
  // Not noexcept, though nothing throws: see gemm_kernels::multiply.
  void (*step)(const void* constants, const step_operands&, step_counts&);
};

}  // namespace repdl::cpu
