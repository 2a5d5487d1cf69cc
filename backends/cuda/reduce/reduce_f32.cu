#include "backends/cuda/reduce/reduce_kernels.cuh"

template void repdl::cuda::launch_reduction<float>(const reduction&, const job&);
