// Copies from global to shared memory that go on while other work is done. They come in groups: those that a thread has started since the last one.
#pragma once

namespace repdl::cuda {

// 4 or 16 bytes, aligned so; zeros where they are not present, and then nothing is read.
template <int Bytes>
__device__ void copy_async(float* shared, const float* global, bool present) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = present ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes));
  }
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for this thread's groups but the last Pending.
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace repdl::cuda
