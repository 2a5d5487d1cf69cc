// A chain of launches: each begins with wait_for_former (launch.cuh), so that on 9.0 and newer its blocks may come before
// the launch ahead of it has ended.
#pragma once

#include "backends/cuda/core/launch.cuh"

namespace repdl::cuda {

template <auto Kernel, class... Args>
void launch_next(const job& j, std::int64_t blocks, int threads, std::size_t shared_bytes, const Args&... args) {
  if (j.device.capability < 90) return launch_kernel<Kernel>(j, blocks, threads, shared_bytes, args...);
  if (!before_launch(record_of<Kernel>, j)) return;
  if (shared_bytes > std::size_t{32} << 10) {  // with its own memory a kernel may have 48 KiB unasked
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          j.what.name(), "cudaFuncSetAttribute");
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid_of(j.what.name(), blocks);
  config.blockDim = static_cast<unsigned>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = j.stream;
  config.attrs = &early;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, Kernel, args...), j.what.name(), "kernel launch");
}

}  // namespace repdl::cuda
