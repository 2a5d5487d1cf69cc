#include "backends/cuda/reduce/reduce_kernels.cuh"

template void repdl::cuda::launch_reduction<double>(const reduction&, const job&);
