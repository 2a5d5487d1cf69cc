// Method: least significant digit first, stable counting passes of eight bits. Per pass: each tile counts its
// digits; a block per digit turns the counts of all tiles into positions; each tile moves its entries in order.
// Integers only; the result does not depend on the order in which blocks run.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/random/radix_sort.hpp"

namespace repdl::cuda {
namespace {

constexpr int digits = 256;
constexpr int threads = 256;  // one per digit
constexpr int warps = threads / 32;
constexpr int rounds = 8;
constexpr int tile = threads * rounds;

__device__ inline int digit_of(std::uint64_t key, int pass) { return static_cast<int>(key >> (8 * pass) & 255); }

__global__ void __launch_bounds__(threads)
    count_digits(std::int64_t count, std::int64_t tiles, const std::uint64_t* keys, int pass, std::int64_t* counts) {
  __shared__ int histogram[digits];
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    histogram[threadIdx.x] = 0;
    __syncthreads();
    for (int r = 0; r < rounds; ++r) {
      const std::int64_t i = t * tile + r * threads + threadIdx.x;
      if (i < count) atomicAdd(&histogram[digit_of(keys[i], pass)], 1);
    }
    __syncthreads();
    counts[threadIdx.x * tiles + t] = histogram[threadIdx.x];
  }
}

// The sum over the threads of the block before this one; *total: over all of them.
__device__ std::int64_t exclusive_sum(std::int64_t x, std::int64_t* total) {
  __shared__ std::int64_t of_warp[warps];
  std::int64_t inclusive = x;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const std::int64_t other = __shfl_up_sync(full_warp, inclusive, distance);
    if (lane_of_thread() >= distance) inclusive += other;
  }
  __syncthreads();
  if (lane_of_thread() == 31) of_warp[threadIdx.x / 32] = inclusive;
  __syncthreads();
  std::int64_t before = 0;
  *total = 0;
  for (int w = 0; w < warps; ++w) {
    if (w < static_cast<int>(threadIdx.x / 32)) before += of_warp[w];
    *total += of_warp[w];
  }
  return before + inclusive - x;
}

__global__ void __launch_bounds__(threads) scan_tiles(std::int64_t tiles, std::int64_t* counts, std::int64_t* totals) {
  std::int64_t* const of_digit = counts + blockIdx.x * tiles;
  std::int64_t base = 0;
  for (std::int64_t first = 0; first < tiles; first += threads) {
    const std::int64_t i = first + threadIdx.x;
    std::int64_t total;
    const std::int64_t before = exclusive_sum(i < tiles ? of_digit[i] : 0, &total);
    if (i < tiles) of_digit[i] = base + before;
    base += total;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = base;
}

__global__ void __launch_bounds__(threads)
    move_entries(std::int64_t count, std::int64_t tiles, const sort_entries from, const sort_entries to, int pass,
                 const std::int64_t* counts, const std::int64_t* totals) {
  __shared__ std::int64_t next[digits];   // where the tile's next entry of a digit goes
  __shared__ int of_warp[warps][digits];  // per round: entries of a digit in a warp, then in the warps before it
  std::int64_t all;
  const std::int64_t digit_begin = exclusive_sum(totals[threadIdx.x], &all);
  const int warp = static_cast<int>(threadIdx.x / 32);
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    __syncthreads();
    next[threadIdx.x] = digit_begin + counts[threadIdx.x * tiles + t];
    for (int r = 0; r < rounds; ++r) {
      const std::int64_t i = t * tile + r * threads + threadIdx.x;
      const bool inside = i < count;
      const std::uint64_t key = inside ? from.keys[i] : 0;
      const std::int64_t value = inside ? from.values[i] : 0;
      const int digit = inside ? digit_of(key, pass) : digits;
      for (int w = 0; w < warps; ++w) of_warp[w][threadIdx.x] = 0;
      __syncthreads();
      const unsigned peers = __match_any_sync(full_warp, digit);
      const int rank = __popc(peers & ((1u << lane_of_thread()) - 1));
      if (inside && rank == 0) of_warp[warp][digit] = __popc(peers);
      __syncthreads();
      int sum = 0;
      for (int w = 0; w < warps; ++w) {
        const int n = of_warp[w][threadIdx.x];
        of_warp[w][threadIdx.x] = sum;
        sum += n;
      }
      __syncthreads();
      if (inside) {
        const std::int64_t at = next[digit] + of_warp[warp][digit] + rank;
        to.keys[at] = key;
        to.values[at] = value;
      }
      __syncthreads();
      next[threadIdx.x] += sum;
    }
  }
}

}  // namespace

void take_workspace(sort_buffers& b, std::int64_t count, carver& c) {
  for (sort_entries& e : b.entries) {
    c.take(e.keys, count);
    c.take(e.values, count);
  }
  c.take(b.counts, ceil_div(count, tile), digits);
  c.take(b.totals, digits);
}

void sort_by_key(std::int64_t count, const sort_buffers& b, const job& j, int passes) {
  const std::int64_t tiles = ceil_div(count, tile);
  const unsigned grid = grid_for(j.device, tiles, 8);
  for (int pass = 0; pass < passes; ++pass) {
    const sort_entries& from = b.entries[pass % 2];
    const sort_entries& to = b.entries[(pass + 1) % 2];
    launch_kernel<count_digits>(j, grid, threads, 0, count, tiles, from.keys, pass, b.counts);
    launch_kernel<scan_tiles>(j, digits, threads, 0, tiles, b.counts, b.totals);
    launch_kernel<move_entries>(j, grid, threads, 0, count, tiles, from, to, pass, b.counts, b.totals);
  }
}

}  // namespace repdl::cuda
