// Rows of more than 8192 elements: cut into chunks, a block for each. Their greatest keys meet in an integer maximum,
// their sums are joined by a warp per row, then every chunk writes its outputs.
#include "backends/cuda/rows/rows.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

// keys: order_key with the sign flipped, so that 0 is less than any.
__device__ std::int32_t key_of(std::uint32_t k) { return static_cast<std::int32_t>(k ^ 0x80000000u); }

__global__ void __launch_bounds__(threads) top_kernel(const __grid_constant__ row_geometry g, long_work work) {
  const std::int64_t items = g.rows * g.chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t row = item / g.chunks;
    const std::int64_t begin = (item - row * g.chunks) * long_chunk;
    const std::int64_t end = min(begin + long_chunk, g.length);
    const row_site at(g, row);
    std::int32_t key = num::order_key(-row_inf, num::order_max);
#pragma unroll 8
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      key = max(key, num::order_key(at.x(g, j), num::order_max));
    }
    key = __reduce_max_sync(full_warp, key);
    if (lane_of_thread() == 0) atomicMax(work.keys + row, static_cast<std::uint32_t>(key) ^ 0x80000000u);
  }
}

template <op_id Op>
__global__ void __launch_bounds__(threads) sum_kernel(const __grid_constant__ row_geometry g, long_work work) {
  __shared__ part_sums of_warp[warps];
  constexpr bool tracked = cuda_is_tracked(Op);
  const std::int64_t items = g.rows * g.chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t row = item / g.chunks;
    const std::int64_t begin = (item - row * g.chunks) * long_chunk;
    const std::int64_t end = min(begin + long_chunk, g.length);
    const row_site at(g, row);
    part_sums sums{0, 0, 0};
    if constexpr (tracked) {
      num::tracked_sum<double> s;
#pragma unroll 4
      for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
        s.add(Op == op_id::softmax_backward ? static_cast<double>(at.x(g, j)) * static_cast<double>(at.y(g, j))
                                            : static_cast<double>(at.x(g, j)));
      }
      sums = {s.hi, s.lo, s.error};
    } else {
      row_numbers r{};
      classify<Op>(r, g, row, key_of(work.keys[row]));
      if (!r.fills) {
#pragma unroll 4
        for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
          const float x = at.x(g, j);
          double w = weight_of(x, r.max);
          if constexpr (cuda_is_separate(Op)) {
            sums.third += x == r.max ? 1.0 : 0.0;
            w = x < r.max && x != -row_inf ? w : 0.0;
          }
          sums.hi += w;
        }
      }
    }
    sums.merge_lanes(tracked);
    __syncthreads();
    if (lane_of_thread() == 0) of_warp[threadIdx.x / 32] = sums;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 1; i < warps; ++i) sums.merge(of_warp[i], tracked);
      work.chunks[item] = sums;
    }
  }
}

template <op_id Op>
__global__ void __launch_bounds__(threads)
    join_kernel(const __grid_constant__ row_geometry g, long_work work, counter* counters) {
  constexpr bool tracked = cuda_is_tracked(Op);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  int proved = 0;
  int decided = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; row < g.rows; row += step) {
    part_sums sums{0, 0, 0};
    for (std::int64_t c = lane_of_thread(); c < g.chunks; c += 32) sums.merge(work.chunks[row * g.chunks + c], tracked);
    sums.merge_lanes(tracked);
    if (lane_of_thread() != 0) continue;
    work.rows[row] = sums;
    if constexpr (!cuda_per_element(Op)) {
      row_numbers r{};
      classify<Op>(r, g, row, key_of(work.keys[row]));
      r.rest = sums.hi;
      r.count = sums.third;
      const bool fills = r.fills;
      const int n = finish_row<Op>(r, g, row_site(g, row));
      (fills ? proved : decided) += n;
    }
  }
  count_rows_decided(counters, proved, decided);
}

template <op_id Op>
__global__ void __launch_bounds__(threads)
    output_kernel(const __grid_constant__ row_geometry g, long_work work, counter* counters) {
  const std::int64_t items = g.rows * g.chunks;
  int proved = 0;
  int decided = 0;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t row = item / g.chunks;
    const std::int64_t begin = (item - row * g.chunks) * long_chunk;
    const std::int64_t end = min(begin + long_chunk, g.length);
    const row_site at(g, row);
    const part_sums sums = work.rows[row];
    row_numbers r{};
    if constexpr (cuda_is_tracked(Op)) {
      r.sum = {sums.hi, sums.lo, sums.third};
      r.slack = g.bounds.weight < 1 ? r.sum.bound(g.tracked_height) : num::infinity;
    } else {
      classify<Op>(r, g, row, key_of(work.keys[row]));
      r.rest = sums.hi;
      r.count = sums.third;
      if (!r.fills) prepare<Op>(r, g);
    }
#pragma unroll 4
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      num::certified c{r.fill, true};
      if (!r.fills) {
        const float x = at.x(g, j);
        const float y = cuda_is_tracked(Op) ? at.y(g, j) : 0.0f;
        const double e = cuda_is_tracked(Op) || Op == op_id::log_softmax ? 0.0 : weight_of(x, r.max);
        c = element_of<Op>(r, g, x, y, e, j);
      }
      at.to(g, j) = c.value;
      if (c.decided) {
        ++(r.fills ? proved : decided);
      } else {
        mark_element(g, row, j);
      }
    }
  }
  count_rows_decided(counters, proved, decided);
}

template <op_id Op>
void launch(const row_geometry& g, const long_work& w, const job& j) {
  const unsigned grid = grid_for(j.device, g.rows * g.chunks, 8);
  if constexpr (!cuda_is_tracked(Op)) {
    check(cudaMemsetAsync(w.keys, 0, static_cast<std::size_t>(g.rows) * 4, j.stream), "rows", "cudaMemsetAsync");
    launch_kernel<top_kernel>(j, grid, threads, 0, g, w);
  }
  launch_kernel<sum_kernel<Op>>(j, grid, threads, 0, g, w);
  launch_kernel<join_kernel<Op>>(j, grid_for(j.device, ceil_div(g.rows, warps), 8), threads, 0, g, w, j.counters);
  if constexpr (cuda_per_element(Op)) {
    launch_kernel<output_kernel<Op>>(j, grid, threads, 0, g, w, j.counters);
  }
}

}  // namespace

void take_workspace(long_work& w, const row_geometry& g, carver& c) {
  c.take(w.keys, g.rows);
  c.take(w.chunks, g.rows, g.chunks);
  c.take(w.rows, g.rows);
}

void run_long_rows(const row_geometry& g, const long_work& w, const job& j) {
  ops::for_operation<ops::family::softmax>(g.op, [&]<class Op>() { launch<Op::id>(g, w, j); });
}

}  // namespace repdl::cuda
