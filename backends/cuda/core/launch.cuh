// Launching, and small device functions that every kernel file uses.
#pragma once

#include <cstdint>
#include <span>
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

// Whether to launch Kernel, after its self-test where this is its first use on the device.
template <auto Kernel>
bool prepare_launch(const job& j, std::size_t shared_bytes) {
  if (!before_launch(record_of<Kernel>, j)) return false;
  if (shared_bytes > std::size_t{32} << 10) {  // with its own memory a kernel may have 48 KiB unasked
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          j.what.name(), "cudaFuncSetAttribute");
  }
  return true;
}
// Launches Kernel on j.stream, if it is to be launched.
template <auto Kernel, class... Args>
void launch_kernel(const job& j, std::int64_t blocks, int threads, std::size_t shared_bytes, const Args&... args) {
  if (!prepare_launch<Kernel>(j, shared_bytes)) return;
  Kernel<<<grid_of(j.what.name(), blocks), static_cast<unsigned>(threads), shared_bytes, j.stream>>>(args...);
  check(cudaGetLastError(), j.what.name(), "kernel launch");
}

// The launch itself, with attributes.
template <auto Kernel, class... Args>
void launch_with(std::span<cudaLaunchAttribute> attributes, const job& j, std::int64_t blocks, int threads,
                 std::size_t shared_bytes, const Args&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid_of(j.what.name(), blocks);
  config.blockDim = static_cast<unsigned>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = j.stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  check(cudaLaunchKernelEx(&config, Kernel, args...), j.what.name(), "kernel launch");
}
inline cudaLaunchAttribute before_former_is_done() {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  return early;
}
// launch_kernel of a kernel that begins with wait_for_former: on 9.0 and newer its blocks may come before the former kernel is done.
template <auto Kernel, class... Args>
void launch_behind(const job& j, std::int64_t blocks, int threads, const Args&... args) {
  if (j.device.capability < 90) return launch_kernel<Kernel>(j, blocks, threads, 0, args...);
  if (!before_launch(record_of<Kernel>, j)) return;
  cudaLaunchAttribute early[] = {before_former_is_done()};
  launch_with<Kernel>(early, j, blocks, threads, 0, args...);
}
// The kernel behind this one may come when all blocks have said so, if it is launched for that.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Until all that the kernels before this one wrote is there. Those behind it may come, and wait for it.
__device__ inline void wait_for_former() {
  let_next_begin();
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
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

// Waits for the others of `count` threads of the block, which are whole warps. barrier: another one than other threads' in the meantime; not 0.
__device__ inline void meet_threads(int barrier, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x & 31u); }

}  // namespace repdl::cuda
