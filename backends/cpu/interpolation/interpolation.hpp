// The loops of interpolation of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

struct interpolation_kernels {
  // Rows [begin, end) of the output of one plane: row i is number i / height along the first axis, i % height along the second.
  void (*run)(const plan::interpolation_plan&, const plan::interpolation_table (&)[3], std::int64_t sample,
              std::int64_t channel, std::int64_t begin, std::int64_t end, tier first, tally&) noexcept;
};

}  // namespace repdl::cpu
