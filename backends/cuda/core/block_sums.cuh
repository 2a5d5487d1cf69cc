// Sums over a grid, in two launches that do not depend on the data: each block adds up its share of the elements, then one block adds up
// the blocks' sums and rounds. A certified sum is made so in binary64 first, and once more exactly where the rounding test decides
// nothing: its second block leaves a flag in memory, without which the exact launches end at once.
#pragma once

#include <cstdint>

#include "backends/cuda/core/axes.hpp"

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

// The first launch: add(sum) adds up a thread's share.
template <int Threads, class Sum, class Add>
__device__ void add_up_block(Sum* sums, const Add& add) {
  Sum mine;
  add(mine);
  join<Threads>(mine);
  if (threadIdx.x == 0) sums[blockIdx.x] = mine;
}

// The second one, of one block: whether this thread has the whole sum, in `all`.
template <int Threads, class Sum, class Count>
__device__ bool add_up_blocks(const Sum* sums, Count blocks, Sum& all) {
  for (Count b = static_cast<Count>(threadIdx.x); b < blocks; b += Threads) all.merge(sums[b]);
  join<Threads>(all);
  return threadIdx.x == 0;
}

// The elements that a grid's threads share, of operands that are walked along together.
template <int Operands>
struct shared_elements {
  std::int64_t count;
  bool small;  // 32 bits hold every index
  strided_axes<Operands> axes;

  template <int N>
  __device__ void locate(std::int64_t i, std::int64_t (&offset)[N]) const {
    if (small) {
      axes.template locate<0>(static_cast<std::uint32_t>(i), offset);
    } else {
      axes.template locate<0>(static_cast<std::uint64_t>(i), offset);
    }
  }
  // use(the first N offsets of an element) for a thread's share.
  template <int Threads, int N, class Use>
  __device__ void for_each(const Use& use) const {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Threads;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x; i < count; i += step) {
      std::int64_t at[N];
      locate(i, at);
      use(at);
    }
  }
};

}  // namespace repdl::cuda
