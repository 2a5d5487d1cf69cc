// Optimiser steps: what the driver launches, by the format of parameters and gradients.
#pragma once

#include "backends/cuda/core/drivers.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

template <class T>
void launch_step(const plan::step_plan&, const job&);

}  // namespace repdl::cuda
