// Rows that are too long for a cluster: cut into chunks, a block for each. Their greatest keys meet in an integer maximum,
// their sums are joined by a warp per row, then every chunk writes its outputs.
#include "backends/cuda/rows/rows_chunks.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

// keys: order_key with the sign flipped, so that 0 is less than any.
template <op_id Op>
__device__ float top_of(const row_geometry& g, const long_work& w, const row_site<Op>& at) {
  if constexpr (row_rule<Op>::look != num::row_look::greatest) return least_top<Op>(g, at);
  return num::order_value(static_cast<std::int32_t>(w.keys[at.row] ^ 0x80000000u), num::order_max);
}

__global__ void __launch_bounds__(threads) top_kernel(const __grid_constant__ row_geometry g, std::uint32_t* keys) {
  for_chunks<long_chunk>(g, g.rows, [&](std::int64_t, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const float* const x = g.x[0] + row_offset<0>(g, row);
    std::int32_t key = num::order_key(-row_inf, num::order_max);
#pragma unroll 8
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      key = max(key, num::order_key(x[element_offset<0>(g, j)], num::order_max));
    }
    key = __reduce_max_sync(full_warp, key);
    if (lane_of_thread() == 0) atomicMax(keys + row, static_cast<std::uint32_t>(key) ^ 0x80000000u);
  });
}

template <op_id Op>
__global__ void __launch_bounds__(threads) sum_kernel(const __grid_constant__ row_geometry g, long_work work) {
  using total = typename row_rule<Op>::total;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(total)];
  const num::row_call call = call_of(g);
  for_chunks<long_chunk>(g, g.rows, [&](std::int64_t item, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const row_site<Op> at(g, row);
    const row_state<Op> state = state_of<Op>(g, call, at, top_of<Op>(g, work, at));
    typename row_rule<Op>::template sums<double> part;
    if (!state.c.fills) {
#pragma unroll 4
      for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
        add_element<Op>(part, at.template values<row_rule<Op>::summed>(g, j).x, state.top);
      }
    }
    total sum;
    sum.join(part);
    over_block<threads>(sum, scratch, [](total& a, const total& b) { a.join(b); });
    if (threadIdx.x == 0) reinterpret_cast<total*>(work.chunks)[item] = sum;
  });
}

template <op_id Op>
__global__ void __launch_bounds__(threads)
    join_kernel(const __grid_constant__ row_geometry g, long_work work, counter* counters) {
  using total = typename row_rule<Op>::total;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  const num::row_call call = call_of(g);
  row_tally tally;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; row < g.rows; row += step) {
    total sum;
    const std::int64_t chunks = chunks_of<long_chunk>(g);
    for (std::int64_t c = lane_of_thread(); c < chunks; c += 32) {
      sum.join(reinterpret_cast<const total*>(work.chunks)[row * chunks + c]);
    }
    for (int distance = 16; distance >= 1; distance /= 2) sum.join(from_lane(sum, distance));
    if (lane_of_thread() != 0) continue;
    const row_site<Op> at(g, row);
    const float top = top_of<Op>(g, work, at);
    known_of<Op>(g, row) = {sum, top};
    if constexpr (row_rule<Op>::results != 0) {
      const row_state<Op> state = state_of<Op>(g, call, at, top);
      finish_row<Op>(g, call, at, state, numbers_of<Op>(call, state, whole_of(sum)), sum, tally);
    }
  }
  count_rows_decided(counters, tally);
}

template <op_id Op>
__global__ void __launch_bounds__(threads) output_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  const num::row_call call = call_of(g);
  row_tally tally;
  for_chunks<long_chunk>(g, g.rows, [&](std::int64_t, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const row_site<Op> at(g, row);
    const known_row<Op> known = known_of<Op>(g, row);
    const bool open = write_elements<Op>(g, call, at, state_of<Op>(g, call, at, known.top), whole_of(known.sums),
                                         begin + threadIdx.x, threads, end, tally);
    if (__any_sync(full_warp, open) && lane_of_thread() == 0) g.list(0).add(row);
  });
  count_rows_decided(counters, tally);
}

template <op_id Op>
void launch(const row_geometry& g, const long_work& w, const job& j) {
  const unsigned grid = grid_for(j.device, g.rows * chunks_of<long_chunk>(g), 8);
  if constexpr (row_rule<Op>::look == num::row_look::greatest) {
    check(cudaMemsetAsync(w.keys, 0, static_cast<std::size_t>(g.rows) * 4, j.stream), "rows", "cudaMemsetAsync");
    launch_kernel<top_kernel>(j, grid, threads, 0, g, w.keys);
  }
  launch_kernel<sum_kernel<Op>>(j, grid, threads, 0, g, w);
  launch_kernel<join_kernel<Op>>(j, grid_for(j.device, ceil_div(g.rows, warps), 8), threads, 0, g, w, j.counters);
  if constexpr (row_rule<Op>::per_element) {
    launch_kernel<output_kernel<Op>>(j, grid, threads, 0, g, j.counters);
  }
}

}  // namespace

void take_workspace(long_work& w, const row_geometry& g, carver& c) {
  c.take(w.keys, g.rows);
  ops::for_row_operation(g.op, [&]<class Op>() {
    c.take(w.chunks, g.rows, chunks_of<long_chunk>(g), sizeof(typename row_rule<Op::id>::total));
  });
}

void run_long_rows(const row_geometry& g, const long_work& w, const job& j) {
  ops::for_row_operation(g.op, [&]<class Op>() { launch<Op::id>(g, w, j); });
}

}  // namespace repdl::cuda
