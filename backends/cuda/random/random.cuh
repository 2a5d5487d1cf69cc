// What the kernels of random numbers share: where the elements of a Philox block go.
#pragma once

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/philox.hpp"

namespace repdl::cuda {

inline constexpr int random_threads = 256;

// The output, and dropout's input.
struct random_target {
  std::uint64_t seed;
  std::uint64_t stream;
  std::int64_t count;
  strided_axes<2> axes;  // of the output, of dropout's input
  void* out;
  const void* in;

  __device__ std::int64_t out_offset(std::int64_t index) const { return axes.offset<0>(index); }
  __device__ std::int64_t in_offset(std::int64_t index) const { return axes.offset<1>(index); }
};

inline random_target target_of(const plan::random_plan& p) {
  random_target t{};
  t.seed = p.seed;
  t.stream = p.stream;
  t.count = p.count;
  t.out = p.out;
  t.in = p.in;
  t.axes.set_shape(p.rank, p.shape);
  t.axes.set_stride(0, p.out_stride);
  t.axes.set_stride(1, p.in_stride);
  return t;
}

// The elements of one Philox block.
template <class T, int Elements>
struct alignas(sizeof(T) * Elements) pack {
  T v[Elements];
};

// True if packs can be moved whole: contiguous and aligned.
template <class T, int Elements>
bool moves_whole(const plan::random_plan& p, const void* data, const plan::axes& stride) {
  return (p.count == 1 || (p.rank == 1 && stride[0] == 1)) &&
         reinterpret_cast<std::uintptr_t>(data) % alignof(pack<T, Elements>) == 0;
}

// Writes the first `here` elements of block `block`.
template <class T, int Elements>
__device__ void store_block(const random_target& t, std::int64_t block, int here, bool whole,
                            const pack<T, Elements>& made) {
  T* const out = static_cast<T*>(t.out);
  if (whole && here == Elements) {
    reinterpret_cast<pack<T, Elements>*>(out)[block] = made;
  } else {
#pragma unroll
    for (int place = 0; place < Elements; ++place) {
      if (place < here) out[t.out_offset(block * Elements + place)] = made.v[place];
    }
  }
}

// Calls make(block, words, here) -> pack for every Philox block, one thread each, and stores what it returns.
template <class T, int Elements, class Make>
__device__ void for_blocks(const random_target& t, bool whole, Make make) {
  const std::int64_t blocks = (t.count + Elements - 1) / Elements;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; block < blocks;
       block += step) {
    const num::philox_block words = num::philox(t.seed, t.stream, static_cast<std::uint64_t>(block));
    const std::int64_t rest = t.count - block * Elements;
    const int here = rest < Elements ? static_cast<int>(rest) : Elements;
    store_block<T, Elements>(t, block, here, whole, make(block, words, here));
  }
}

inline unsigned random_grid(const properties& device, std::int64_t count, int per_block) {
  return grid_for(device, ceil_div(count, std::int64_t{random_threads} * per_block), 32);
}

__device__ inline bool first_thread() { return blockIdx.x == 0 && threadIdx.x == 0; }

// Counts `all` elements for tier `first`, by one thread, and moves this warp's `later` of them to tier `last`: modulo
// 2^64 a negative number takes them off again. All threads of the warp must call it.
__device__ inline void count_tiers(counter* counters, tier first, std::int64_t all, tier last, int later) {
  if (first_thread()) count_elements(counters, first, all);
  later = __reduce_add_sync(full_warp, later);
  if (lane_of_thread() == 0 && later != 0) {
    count_elements(counters, last, later);
    count_elements(counters, first, -static_cast<std::int64_t>(later));
  }
}

// normal, exponential (random_late.cu).
void prepare_late(const plan::random_plan&, const job&, dispatch::task&);

}  // namespace repdl::cuda
