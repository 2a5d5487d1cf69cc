// Clusters of blocks, of compute capability 9.0 and newer: elsewhere a block is alone.
#pragma once

namespace repdl::cuda {

__device__ inline void meet_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// The same object, in shared memory, of another block of the cluster.
template <class T>
__device__ const T& of_block(const T& mine, [[maybe_unused]] int block) {
#if __CUDA_ARCH__ >= 900
  const T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(&mine), "r"(block));
  return *there;
#else
  return mine;
#endif
}

}  // namespace repdl::cuda
