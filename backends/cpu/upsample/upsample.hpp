// The loops of nearest neighbours of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

struct upsample_kernels {
  // Rows [begin, end) of the output of one plane. force: 0, or +inf, which leaves every sum to the integers.
  void (*run)(const plan::upsample_plan&, std::int64_t sample, std::int64_t channel, std::int64_t begin,
              std::int64_t end, double force, tally&) noexcept;
};

}  // namespace repdl::cpu
