// Optimiser steps: the driver.
#include "backends/cuda/step/step.cuh"
#include "librepdl/ops/registry.hpp"

namespace repdl::cuda {

void run(const plan::step_plan& p, const job& j) {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> == p.type) launch_step<T>(p, j);
  });
}

}  // namespace repdl::cuda
