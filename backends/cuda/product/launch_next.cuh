// A chain of launches: each begins with wait_for_former (launch.cuh), so that on 9.0 and newer its blocks may come before
// the launch ahead of it has ended.
#pragma once

#include "backends/cuda/core/launch.cuh"

namespace repdl::cuda {

// In clusters of `together` blocks: 1 below 9.0. `early`: it is not the first of the chain.
template <auto Kernel, class... Args>
void launch_in_clusters(const job& j, bool early, std::int64_t blocks, int together, int threads,
                        std::size_t shared_bytes, const Args&... args) {
  if (j.device.capability < 90) return launch_kernel<Kernel>(j, blocks, threads, shared_bytes, args...);
  if (!before_launch(record_of<Kernel>, j)) return;
  if (shared_bytes > std::size_t{32} << 10) {  // with its own memory a kernel may have 48 KiB unasked
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          j.what.name(), "cudaFuncSetAttribute");
  }
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = early ? 1 : 0;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = static_cast<unsigned>(together);
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid_of(j.what.name(), blocks);
  config.blockDim = static_cast<unsigned>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = j.stream;
  config.attrs = attributes;
  config.numAttrs = together > 1 ? 2 : 1;
  check(cudaLaunchKernelEx(&config, Kernel, args...), j.what.name(), "kernel launch");
}
template <auto Kernel, class... Args>
void launch_next(const job& j, std::int64_t blocks, int threads, std::size_t shared_bytes, const Args&... args) {
  launch_in_clusters<Kernel>(j, true, blocks, 1, threads, shared_bytes, args...);
}

}  // namespace repdl::cuda
