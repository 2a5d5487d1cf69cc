// Rows in chunks, a block for each.
#pragma once

#include "backends/cuda/rows/rows.cuh"

namespace repdl::cuda {

REPDL_HD std::int64_t chunks_of(const row_geometry& g, std::int64_t chunk) {
  return g.length <= chunk ? 1 : (g.length - 1) / chunk + 1;
}

// By the first kernel of a call.
__device__ inline void clear_lists(const row_geometry& g) {
  auto* const words = reinterpret_cast<std::uint32_t*>(g.status);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < g.cleared_words;
       i += step)
    words[i] = 0;
}

// f(item, index of the row, begin, end) for the chunks of `rows` rows, a block each.
template <class F>
__device__ void for_chunks(const row_geometry& g, std::int64_t chunk, std::int64_t rows, F&& f) {
  const std::int64_t chunks = chunks_of(g, chunk);
  const std::int64_t items = rows * chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t row = item / chunks;
    const std::int64_t begin = (item - row * chunks) * chunk;
    f(item, row, begin, min(begin + chunk, g.length));
  }
}

// Combines v over the block, into every thread's. scratch: a T for each warp.
template <int Threads, class T, class Combine>
__device__ void over_block(T& v, std::byte* scratch, Combine&& combine) {
  T* const of_warp = reinterpret_cast<T*>(scratch);
  for (int distance = 16; distance >= 1; distance /= 2) combine(v, from_lane(v, distance));
  __syncthreads();
  if (lane_of_thread() == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = of_warp[lane_of_thread() & (Threads / 32 - 1)];
#pragma unroll 1
  for (int distance = Threads / 64; distance >= 1; distance /= 2) combine(v, from_lane(v, distance));
}

}  // namespace repdl::cuda
