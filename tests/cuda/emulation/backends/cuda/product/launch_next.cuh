// Launches of emulated kernels, one after the other; a block is alone.
#pragma once

#include "backends/cuda/core/launch.cuh"

namespace repdl::cuda {

template <auto Kernel, class... Args>
void launch_in_clusters(const job& j, bool, std::int64_t blocks, int, int threads, std::size_t shared_bytes,
                        const Args&... args) {
  launch_kernel<Kernel>(j, blocks, threads, shared_bytes, args...);
}

}  // namespace repdl::cuda
