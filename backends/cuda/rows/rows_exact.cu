// The last tier of the softmax family (librepdl/ops/exponential_sum.hpp): a warp for each row that is still open. Its
// lanes add up the row in parts, and then decide the open elements side by side. One launch per level of bits, as far
// as the budget goes; what is open after the last one is counted as undecided.
#include <type_traits>

#include "backends/cuda/rows/rows.cuh"
#include "librepdl/ops/exponential_sum.hpp"

namespace repdl::cuda {
namespace {

// Up to 512 bits: the driver reserves the largest stack of the kernels for every thread that fits the device.
constexpr int most_limbs = 8;

constexpr int threads = 128;
constexpr int warps = threads / 32;

template <class T>
__device__ T from_lane(const T& v, int distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
  constexpr int words = sizeof(T) / 8;
  std::uint64_t w[words];
  memcpy(w, &v, sizeof(T));
#pragma unroll 1
  for (int i = 0; i < words; ++i) w[i] = __shfl_xor_sync(full_warp, w[i], distance);
  T out;
  memcpy(&out, w, sizeof(T));
  return out;
}

__device__ float warp_max(const row_geometry& g, const row_site& at) {
  std::int32_t key = num::order_key(-row_inf, num::order_max);
  for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) {
    key = max(key, num::order_key(at.x(g, j), num::order_max));
  }
  return num::order_value(__reduce_max_sync(full_warp, key), num::order_max);
}

// The whole row's sum, in every lane.
template <int L>
__device__ __noinline__ void sum_of_warp(num::exponential_sum<L>& s, const row_geometry& g, const row_site& at) {
  s.start(warp_max(g, at));
  for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) s.add(at.x(g, j));
  __syncwarp();
  for (int distance = 16; distance >= 1; distance /= 2) s.merge(from_lane(s, distance));
}

template <class Accumulator>
__device__ void merge_lanes(Accumulator& a) {
  for (int distance = 16; distance >= 1; distance /= 2) a.merge(from_lane(a, distance));
}

__device__ bool is_open(const row_geometry& g, std::int64_t bit) {
  return (g.open_elements[bit >> 5] >> static_cast<unsigned>(bit & 31) & 1u) != 0;
}

// Calls decide(j) -> certified for every open element of the row, a lane each. Returns how many this lane decided.
template <class Decide>
__device__ int open_elements_of(const row_geometry& g, const row_site& at, Decide&& decide) {
  int decided = 0;
  for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) {
    const std::int64_t bit = at.row * g.length + j;
    if (!is_open(g, bit)) continue;
    const num::certified c = decide(j);
    if (!c.decided) continue;
    at.to(g, j) = c.value;
    atomicAnd(g.open_elements + (bit >> 5), ~(1u << static_cast<unsigned>(bit & 31)));
    ++decided;
  }
  __syncwarp();
  return decided;
}

__device__ bool any_open(const row_geometry& g, std::int64_t row) {
  bool any = false;
  if (cuda_per_element(g.op)) {
    for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) any |= is_open(g, row * g.length + j);
  } else {
    any = (g.left.bits[row >> 5] >> static_cast<unsigned>(row & 31) & 1u) != 0;
  }
  return __any_sync(full_warp, any);
}

template <int L>
__global__ void __launch_bounds__(threads) exact_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  const std::int64_t count = static_cast<std::int64_t>(*g.left.count);
  int decided = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * warps) {
    const std::int64_t row = g.left.rows[i];
    if (!any_open(g, row)) continue;
    const row_site at(g, row);
    num::exponential_sum<L> s;
    sum_of_warp(s, g, at);
    const std::int64_t target = cuda_is_loss(g.op) ? g.target[row_offset<4>(g.kept, row)] : -1;
    if (cuda_per_element(g.op)) {
      const bool scales = g.op == op_id::logsumexp_backward || g.op == op_id::cross_entropy_backward;
      const float factor = scales ? g.row_g[row_offset<3>(g.kept, row)] : 1.0f;
      const std::int64_t n = g.is_mean ? static_cast<std::int64_t>(*g.counted) : 1;
      decided += open_elements_of(g, at, [&](std::int64_t j) {
        const float x = at.x(g, j);
        return g.op == op_id::log_softmax ? num::exact_log_softmax(s, x)
                                          : num::exact_scaled_gradient(s, x, factor, n, j == target);
      });
    } else if (lane_of_thread() == 0) {
      const num::certified c =
          g.op == op_id::logsumexp ? num::exact_logsumexp(s) : num::exact_cross_entropy(s, at.x(g, target));
      if (c.decided) {
        *at.out = c.value;
        atomicAnd(g.left.bits + (row >> 5), ~(1u << static_cast<unsigned>(row & 31)));
        ++decided;
      }
    }
    __syncwarp();
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier::exact, decided);
}

template <int L>
__global__ void __launch_bounds__(threads)
    exact_tracked_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  const std::int64_t count = static_cast<std::int64_t>(*g.left.count);
  int decided = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * warps) {
    const std::int64_t row = g.left.rows[i];
    if (!any_open(g, row)) continue;
    const row_site at(g, row);
    if (g.op == op_id::softmax_backward) {
      num::dot_accumulator dot;
      for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) dot.add_product(at.x(g, j), at.y(g, j));
      __syncwarp();
      merge_lanes(dot);
      decided += open_elements_of(g, at, [&](std::int64_t j) {
        return num::certified{num::exact_softmax_backward(dot, at.x(g, j), at.y(g, j)), true};
      });
    } else {
      num::sum_accumulator sum;
      for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) sum.add(at.x(g, j));
      __syncwarp();
      merge_lanes(sum);
      decided += open_elements_of(g, at, [&](std::int64_t j) {
        const float y = at.y(g, j);
        if (y == row_inf) {  // g - inf G
          const float v = sum.is_zero() ? row_nan() : sum.negative() ? row_inf : -row_inf;
          return num::certified{v, true};
        }
        return num::exact_log_softmax_backward<L>(at.x(g, j), y, sum);
      });
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier::exact, decided);
}

__global__ void __launch_bounds__(threads) count_undecided(const __grid_constant__ row_geometry g, counter* counters) {
  const std::int64_t count = static_cast<std::int64_t>(*g.left.count);
  unsigned open = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * warps) {
    const std::int64_t row = g.left.rows[i];
    if (cuda_per_element(g.op)) {
      for (std::int64_t j = lane_of_thread(); j < g.length; j += 32) open += is_open(g, row * g.length + j) ? 1u : 0u;
    } else if (lane_of_thread() == 0) {
      open += g.left.bits[row >> 5] >> static_cast<unsigned>(row & 31) & 1u;
    }
  }
  open = __reduce_add_sync(full_warp, open);
  if (lane_of_thread() == 0 && open != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(open));
}

// ------------------------------------------------------------------------------------- cross_entropy, mean and sum

constexpr int total_blocks = 132;

template <int L>
__global__ void __launch_bounds__(threads)
    exact_total_kernel(const __grid_constant__ row_geometry g, num::cross_entropy_total<L>* parts) {
  if (*g.total_open == 0) return;
  num::cross_entropy_total<L> total;
  total.start();
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  for (std::int64_t row = warp; row < g.rows; row += static_cast<std::int64_t>(gridDim.x) * warps) {
    const std::int64_t target = g.target[row_offset<4>(g.kept, row)];
    if (target == g.ignore_index) continue;
    const row_site at(g, row);
    num::exponential_sum<L> s;
    sum_of_warp(s, g, at);
    total.add_row(s, at.x(g, target));
    __syncwarp();
  }
  if (lane_of_thread() == 0) parts[warp] = total;
}

template <int L>
__global__ void exact_total_finish(const __grid_constant__ row_geometry g, const num::cross_entropy_total<L>* parts,
                                   counter* counters) {
  if (*g.total_open == 0) return;
  num::cross_entropy_total<L> total = parts[0];
  for (int i = 1; i < total_blocks * warps; ++i) total.merge(parts[i]);
  const num::certified c = total.finish(g.is_mean ? static_cast<std::int64_t>(*g.counted) : 1);
  if (!c.decided) return;
  *g.out = c.value;
  *g.total_open = 0;
  count_elements(counters, tier::exact, 1);
}

__global__ void total_undecided(const __grid_constant__ row_geometry g, counter* counters) {
  if (*g.total_open != 0) atomicAdd(counters + undecided_counter, counter{1});
}

template <int L>
void launch(const row_geometry& g, std::byte* total, unsigned grid, const job& j) {
  if (g.last_tier_bits < 64 * L && g.op != op_id::softmax_backward) return;
  if (g.is_total) {
    auto* const parts = reinterpret_cast<num::cross_entropy_total<L>*>(total);
    launch_kernel<exact_total_kernel<L>>(j, total_blocks, threads, 0, g, parts);
    launch_kernel<exact_total_finish<L>>(j, 1, 1, 0, g, parts, j.counters);
  } else if (cuda_is_tracked(g.op)) {
    launch_kernel<exact_tracked_kernel<L>>(j, grid, threads, 0, g, j.counters);
  } else {
    launch_kernel<exact_kernel<L>>(j, grid, threads, 0, g, j.counters);
  }
}

}  // namespace

void take_exact_workspace(std::byte*& parts, const row_geometry& g, carver& c) {
  if (g.is_total) c.take(parts, total_blocks, warps, sizeof(num::cross_entropy_total<most_limbs>));
}

void decide_rows_exactly(const row_geometry& g, std::byte* parts, const job& j) {
  const unsigned grid = grid_for(j.device, ceil_div(g.rows, warps), 2);
  if (!j.device.choice.wide || g.op == op_id::softmax_backward) launch<4>(g, parts, grid, j);
  if (g.op != op_id::softmax_backward) {
    launch<most_limbs>(g, parts, grid, j);
  }
  if (g.is_total) {
    launch_kernel<total_undecided>(j, 1, 1, 0, g, j.counters);
  } else {
    launch_kernel<count_undecided>(j, grid, threads, 0, g, j.counters);
  }
}

}  // namespace repdl::cuda
