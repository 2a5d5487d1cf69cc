// The inner loops of draws of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

struct draw_kernels {
  // keys[i] = -ln u / weights[i], u = (words[i] + 1) / 2^64, weights in [2^-200, 2^200]. undecided[i] != 0 where number i is
  // undecided; returns whether any is. force: 0, or +inf, which leaves all undecided.
  bool (*keys)(const std::uint64_t* words, const double* weights, std::int64_t n, double force, double* keys,
               std::uint32_t* undecided);
};

}  // namespace repdl::cpu
