#include "backends/cuda/reduce/reduce_kernels.cuh"

template void repdl::cuda::launch_reduction<std::int64_t>(const reduction&, const job&);
template void repdl::cuda::launch_reduction<std::int32_t>(const reduction&, const job&);
template void repdl::cuda::launch_reduction<std::uint8_t>(const reduction&, const job&);
