// Optimiser steps: what the driver launches, by the format of parameters and gradients.
#pragma once

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

// Elements of a tensor are taken in units of so many.
inline constexpr std::int64_t step_unit = 1024;

// What AdamW's first tier leaves undecided, noted by units: a bit for each element, and for each 128 of them a byte, 1 where one of their
// bits is set; elsewhere the bits are anything.
struct noted_elements {
  std::uint32_t* words;  // 32 a unit
  std::uint8_t* flags;   // 8 a unit
};

template <class T>
void launch_step(const plan::step_plan&, const job&, const noted_elements&);

}  // namespace repdl::cuda
