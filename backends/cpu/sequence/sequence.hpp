// The inner loops of numbers at equal distances of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

struct sequence_kernels {
  // Elements first .. first + n - 1 of a plan, side by side, by output format. undecided[i] != 0 where number i is
  // undecided; returns whether any is. force: 0, or +inf, which leaves all undecided.
  bool (*loop[4])(const plan::sequence_plan&, std::int64_t first, std::int64_t n, double force, void* out,
                  std::uint32_t* undecided);
};

}  // namespace repdl::cpu
