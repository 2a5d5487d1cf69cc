// Sums of a block's threads.
#pragma once

#include <cstdint>

namespace repdl::cuda {

// Joins what the threads of a block hold into thread 0's.
template <int Threads, class Sum>
__device__ void join(Sum& mine) {
  __shared__ std::uint64_t memory[Threads * sizeof(Sum) / 8];
  static_assert(sizeof(Sum) % 8 == 0);
  Sum* const all = reinterpret_cast<Sum*>(memory);
  all[threadIdx.x] = mine;
  for (int half = Threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < static_cast<unsigned>(half)) {
      mine.merge(all[threadIdx.x + half]);
      all[threadIdx.x] = mine;
    }
  }
}

}  // namespace repdl::cuda
