#include "backends/cuda/step/step_kernels.cuh"

template void repdl::cuda::launch_step<double>(const plan::step_plan&, const job&, const noted_elements&);
