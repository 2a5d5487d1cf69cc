// The loops of ldexp and frexp of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

struct exponent_kernels {
  // Elements [begin, end), row-major.
  void (*run)(const plan::exponent_plan&, std::int64_t begin, std::int64_t end) noexcept;
};

}  // namespace repdl::cpu
