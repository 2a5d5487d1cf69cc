// Launching, and small device functions that every kernel file uses.
#pragma once

#include <cstdint>
#include <tuple>

#include "backends/cuda/core/drivers.hpp"
#include "backends/cuda/core/kernel_tests.hpp"

namespace repdl::cuda {

// The record of a kernel: of each instantiation of a template one.
template <auto Kernel>
const char* signature_of() {
  return __PRETTY_FUNCTION__;
}
template <auto Kernel>
inline kernel_record record_of{signature_of<Kernel>(), reinterpret_cast<const void*>(Kernel)};

// Launches Kernel on j.stream, after its self-test where this is its first use on the device.
template <auto Kernel, class... Args>
void launch_kernel(const job& j, std::int64_t blocks, int threads, std::size_t shared_bytes, const Args&... args) {
  if (!before_launch(record_of<Kernel>, j)) return;
  if (shared_bytes > std::size_t{32} << 10) {  // with its own memory a kernel may have 48 KiB unasked
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          j.what.name(), "cudaFuncSetAttribute");
  }
  Kernel<<<grid_of(j.what.name(), blocks), static_cast<unsigned>(threads), shared_bytes, j.stream>>>(args...);
  check(cudaGetLastError(), j.what.name(), "kernel launch");
}

// The launch itself, with an attribute.
template <auto Kernel, class... Args>
void launch_with(cudaLaunchAttribute attribute, const job& j, std::int64_t blocks, int threads, const Args&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid_of(j.what.name(), blocks);
  config.blockDim = static_cast<unsigned>(threads);
  config.stream = j.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, Kernel, args...), j.what.name(), "kernel launch");
}
// launch_kernel of a kernel that begins with wait_for_former: on 9.0 and newer its blocks may come before the former kernel is done.
template <auto Kernel, class... Args>
void launch_behind(const job& j, std::int64_t blocks, int threads, const Args&... args) {
  if (j.device.capability < 90) return launch_kernel<Kernel>(j, blocks, threads, 0, args...);
  if (!before_launch(record_of<Kernel>, j)) return;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  launch_with<Kernel>(early, j, blocks, threads, args...);
}
// Until all that the kernels before this one wrote is there. Those behind it may come, and wait for it.
__device__ inline void wait_for_former() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#endif
}

// A kernel that is not for this device: its self-test has nothing to run.
template <auto Kernel>
void pass_over(const job& j) {
  if (j.self_test) before_launch(record_of<Kernel>, j);
}

// A call that is one launch.
template <auto Kernel, class... Args>
class planned_launch final : public planned {
 public:
  planned_launch(const job& given, std::int64_t blocks, int threads, const Args&... args)
      : planned(given), blocks_(blocks), threads_(threads), args_(args...) {}

 private:
  void enqueue() override {
    std::apply([&](const Args&... args) { launch_kernel<Kernel>(j, blocks_, threads_, 0, args...); }, args_);
  }

  const std::int64_t blocks_;
  const int threads_;
  const std::tuple<Args...> args_;
};
template <auto Kernel, class... Args>
void plan_launch(dispatch::task& t, const job& j, std::int64_t blocks, int threads, const Args&... args) {
  t.emplace<planned_launch<Kernel, Args...>>(j, blocks, threads, args...);
}

// The dynamic shared memory of a block.
template <class Memory>
__device__ Memory& memory_of_block() {
  extern __shared__ __align__(16) unsigned char memory[];
  return *reinterpret_cast<Memory*>(memory);
}

__device__ inline void count_elements(counter* counters, tier t, std::int64_t n) {
  if (n != 0) atomicAdd(counters + static_cast<int>(t), static_cast<counter>(n));
}

inline constexpr unsigned full_warp = 0xffffffffu;

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x & 31u); }

}  // namespace repdl::cuda
