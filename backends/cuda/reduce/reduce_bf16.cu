#include "backends/cuda/reduce/reduce_kernels.cuh"

template void repdl::cuda::launch_reduction<repdl::bf16>(const reduction&, const job&);
