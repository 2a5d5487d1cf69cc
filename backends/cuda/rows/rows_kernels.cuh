// The binary64 kernels of the softmax family: rows in registers, in shared memory, and a thread each. Included by
// rows.cu only.
#pragma once

#include "backends/cuda/rows/rows.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = 16;  // the most of a block

// Combines v over the team; all threads of the block take part. scratch: one per warp.
template <class T, class Combine>
__device__ T over_team(T v, int team, T* scratch, Combine&& combine) {
  for (int distance = min(team, 32) / 2; distance >= 1; distance /= 2) {
    v = combine(v, __shfl_xor_sync(full_warp, v, distance));
  }
  if (team > 32) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int of_team = team / 32;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[warp] = v;
    __syncthreads();
    const int first = warp / of_team * of_team;
    v = scratch[first];
    for (int i = 1; i < of_team; ++i) v = combine(v, scratch[first + i]);
  }
  return v;
}

__device__ inline float max_or_nan(float a, float b) {
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
  return m;
}

// The tracked sum of a team; all threads of the block take part.
__device__ num::tracked_sum<double> over_team(num::tracked_sum<double> s, int team, double (&scratch)[3][warps]) {
  part_sums p{s.hi, s.lo, s.error};
  for (int distance = min(team, 32) / 2; distance >= 1; distance /= 2) {
    p.merge({__shfl_xor_sync(full_warp, p.hi, distance), __shfl_xor_sync(full_warp, p.lo, distance),
             __shfl_xor_sync(full_warp, p.third, distance)},
            true);
  }
  if (team > 32) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int of_team = team / 32;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) {
      scratch[0][warp] = p.hi;
      scratch[1][warp] = p.lo;
      scratch[2][warp] = p.third;
    }
    __syncthreads();
    const int first = warp / of_team * of_team;
    p = {0, 0, 0};
    for (int i = 0; i < of_team; ++i)
      p.merge({scratch[0][first + i], scratch[1][first + i], scratch[2][first + i]}, true);
  }
  return {p.hi, p.lo, p.third};
}

// One element's part of rest and count.
template <op_id Op>
__device__ double add_weight(float x, float max, double& rest, int& count) {
  const double w = weight_of(x, max);
  if constexpr (cuda_is_separate(Op)) {
    count += x == max ? 1 : 0;
    rest += x == max || x == -row_inf ? 0.0 : w;
  } else {
    rest += w;
  }
  return w;
}

template <op_id Op, int Per>
__global__ void __launch_bounds__(threads, 3) row_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  __shared__ double scratch[3][warps];
  __shared__ float tops[warps];
  constexpr bool tracked = Op == op_id::softmax_backward || Op == op_id::log_softmax_backward;
  constexpr bool keeps = Op == op_id::softmax || Op == op_id::logsumexp_backward || Op == op_id::cross_entropy_backward;
  const int team = g.team;
  const int n = static_cast<int>(g.length);
  const int lane = static_cast<int>(threadIdx.x) & (team - 1);
  const std::int64_t per_block = threads / team;
  std::int64_t proved = 0;
  std::int64_t decided = 0;
  const auto place = [&](int i) { return g.packed ? ((i / 4) * team + lane) * 4 + i % 4 : i * team + lane; };
  for (std::int64_t base = blockIdx.x * per_block; base < g.rows; base += gridDim.x * per_block) {
    const std::int64_t row = base + static_cast<int>(threadIdx.x) / team;
    const bool active = row < g.rows;
    const int length = active ? n : 0;
    const row_site at(g, active ? row : base);
    constexpr float outside = tracked ? 0.0f : -row_inf;
    float x[Per];
    float y[tracked ? Per : 1];
    if (g.packed) {
#pragma unroll
      for (int i = 0; i < Per; i += 4) {
        const int j = place(i);
        float4 v = {outside, outside, outside, outside};
        float4 w = {0, 0, 0, 0};
        if (j < length) {
          v = *reinterpret_cast<const float4*>(at.a + j);
          if constexpr (tracked) w = *reinterpret_cast<const float4*>(at.b + j);
        }
        x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
        if constexpr (tracked) y[i] = w.x, y[i + 1] = w.y, y[i + 2] = w.z, y[i + 3] = w.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < Per; ++i) {
        const int j = place(i);
        x[i] = j < length ? at.x(g, j) : outside;
        if constexpr (tracked) y[i] = j < length ? at.y(g, j) : 0.0f;
      }
    }

    row_numbers r{};
    double e[keeps ? Per : 1];
    if constexpr (tracked) {
#pragma unroll
      for (int i = 0; i < Per; ++i) {
        r.sum.add(Op == op_id::softmax_backward ? static_cast<double>(x[i]) * static_cast<double>(y[i])
                                                : static_cast<double>(x[i]));
      }
      r.sum = over_team(r.sum, team, scratch);
      r.slack = g.bounds.weight < 1 ? r.sum.bound(g.tracked_height) : num::infinity;
    } else {
      float top = -row_inf;
#pragma unroll
      for (int i = 0; i < Per; ++i) top = max_or_nan(top, x[i]);
      top = over_team(top, team, tops, [](float a, float b) { return max_or_nan(a, b); });
      classify<Op>(r, g, active ? row : base, num::order_key(top, num::order_max));
      const float max = r.fills ? 0.0f : r.max;
      double rest[4] = {};
      int count = 0;
#pragma unroll
      for (int i = 0; i < Per; ++i) {
        const double w = add_weight<Op>(x[i], max, rest[i & 3], count);
        if constexpr (keeps) e[i] = w;
      }
      const auto plus = [](double a, double b) { return a + b; };
      r.rest = over_team((rest[0] + rest[1]) + (rest[2] + rest[3]), team, scratch[0], plus);
      if constexpr (cuda_is_separate(Op)) r.count = over_team(static_cast<double>(count), team, scratch[1], plus);
    }

    if constexpr (Op == op_id::logsumexp || Op == op_id::cross_entropy) {
      if (lane == 0 && active) {
        const bool fills = r.fills;
        const int done = finish_row<Op>(r, g, at);
        (fills ? proved : decided) += done;
      }
    } else {
      float out[Per];
      unsigned open = 0;
      unsigned wanted = 0;
#pragma unroll
      for (int i = 0; i < Per; ++i) wanted |= place(i) < length ? 1u << i : 0u;
      if (!r.fills && !tracked) prepare<Op>(r, g);
      if (r.fills) {
#pragma unroll
        for (int i = 0; i < Per; ++i) out[i] = r.fill;
      } else if constexpr (keeps) {
#pragma unroll
        for (int i = 0; i < Per; ++i) {
          const num::certified c = scaled_weight(e[i], r.low, r.high, r.margin);
          out[i] = c.value;
          open |= c.decided ? 0u : 1u << i;
        }
        if constexpr (Op != op_id::softmax) {
          // What is not a weight times a finite g: the target, and rows whose g is infinite or NaN.
          const int target = static_cast<int>(r.target);
          if (!(fabsf(r.g) < row_inf)) {
            open = 0;
#pragma unroll
            for (int i = 0; i < Per; ++i) {
              const int j = place(i);
              out[i] = j < length ? infinite_gradient(r, at.x(g, j), j == target) : 0.0f;
            }
          } else if (target >= 0) {
            const num::certified c = target_value(r, g, at.x(g, target));
#pragma unroll
            for (int i = 0; i < Per; ++i) {
              if (place(i) != target) continue;
              out[i] = c.value;
              open = c.decided ? open & ~(1u << i) : open | 1u << i;
            }
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < Per; ++i) {
          const num::certified c = element_of<Op>(r, g, x[i], tracked ? y[tracked ? i : 0] : 0.0f, 0.0, place(i));
          out[i] = c.value;
          open |= c.decided ? 0u : 1u << i;
        }
      }
      if (g.packed) {
#pragma unroll
        for (int i = 0; i < Per; i += 4) {
          const int j = place(i);
          if (j < length) *reinterpret_cast<float4*>(at.out + j) = float4{out[i], out[i + 1], out[i + 2], out[i + 3]};
        }
      } else {
#pragma unroll
        for (int i = 0; i < Per; ++i) {
          const int j = place(i);
          if (j < length) at.to(g, j) = out[i];
        }
      }
      open &= wanted;
      (r.fills ? proved : decided) += __popc(wanted) - __popc(open);
      for (; open != 0; open &= open - 1) mark_element(g, row, place(__ffs(static_cast<int>(open)) - 1));
    }
  }
  count_rows_decided(counters, static_cast<int>(proved), static_cast<int>(decided));
}

// A block per row, which lies in shared memory (tracked operations: both operands).
constexpr int block_threads = 512;

template <op_id Op>
__global__ void __launch_bounds__(block_threads, 2)
    block_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  extern __shared__ float elements[];
  __shared__ double scratch[3][warps];
  __shared__ float tops[warps];
  constexpr bool tracked = Op == op_id::softmax_backward || Op == op_id::log_softmax_backward;
  const int n = static_cast<int>(g.length);
  const int first = static_cast<int>(threadIdx.x);
  float* const x = elements;
  float* const y = elements + (tracked ? n : 0);
  int proved = 0;
  int decided = 0;
  for (std::int64_t row = blockIdx.x; row < g.rows; row += gridDim.x) {
    const row_site at(g, row);
    row_numbers r{};
    __syncthreads();
    if constexpr (tracked) {
#pragma unroll 4
      for (int j = first; j < n; j += block_threads) {
        x[j] = at.x(g, j);
        y[j] = at.y(g, j);
        r.sum.add(Op == op_id::softmax_backward ? static_cast<double>(x[j]) * static_cast<double>(y[j])
                                                : static_cast<double>(x[j]));
      }
      r.sum = over_team(r.sum, block_threads, scratch);
      r.slack = g.bounds.weight < 1 ? r.sum.bound(g.tracked_height) : num::infinity;
    } else {
      float top = -row_inf;
#pragma unroll 8
      for (int j = first; j < n; j += block_threads) {
        const float v = at.x(g, j);
        x[j] = v;
        top = max_or_nan(top, v);
      }
      top = over_team(top, block_threads, tops, [](float a, float b) { return max_or_nan(a, b); });
      classify<Op>(r, g, row, num::order_key(top, num::order_max));
      const float max = r.fills ? 0.0f : r.max;
      double rest[4] = {};
      int count = 0;
      int j = first;
      for (; j + 3 * block_threads < n; j += 4 * block_threads) {
#pragma unroll
        for (int i = 0; i < 4; ++i) add_weight<Op>(x[j + i * block_threads], max, rest[i], count);
      }
      for (; j < n; j += block_threads) add_weight<Op>(x[j], max, rest[0], count);
      const auto plus = [](double a, double b) { return a + b; };
      r.rest = over_team((rest[0] + rest[1]) + (rest[2] + rest[3]), block_threads, scratch[0], plus);
      if constexpr (cuda_is_separate(Op)) {
        r.count = over_team(static_cast<double>(count), block_threads, scratch[1], plus);
      }
    }
    if constexpr (Op == op_id::logsumexp || Op == op_id::cross_entropy) {
      if (threadIdx.x == 0) {
        const bool fills = r.fills;
        const int done = finish_row<Op>(r, g, at);
        (fills ? proved : decided) += done;
      }
    } else {
      if (!r.fills && !tracked) prepare<Op>(r, g);
#pragma unroll 4
      for (int j = first; j < n; j += block_threads) {
        num::certified c{r.fill, true};
        if (!r.fills) {
          const double e = tracked || Op == op_id::log_softmax ? 0.0 : weight_of(x[j], r.max);
          c = element_of<Op>(r, g, x[j], y[j], e, j);
        }
        at.to(g, j) = c.value;
        if (c.decided) {
          ++(r.fills ? proved : decided);
        } else {
          mark_element(g, row, j);
        }
      }
    }
  }
  count_rows_decided(counters, proved, decided);
}

// A thread per row.
template <op_id Op>
__global__ void __launch_bounds__(threads) column_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  int proved = 0;
  int decided = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    const row_site at(g, row);
    row_numbers r{};
    if constexpr (cuda_is_tracked(Op)) {
#pragma unroll 4
      for (std::int64_t j = 0; j < g.length; ++j) {
        r.sum.add(Op == op_id::softmax_backward ? static_cast<double>(at.x(g, j)) * static_cast<double>(at.y(g, j))
                                                : static_cast<double>(at.x(g, j)));
      }
      r.slack = g.bounds.weight < 1 ? r.sum.bound(g.tracked_height) : num::infinity;
    } else {
      std::int32_t key = num::order_key(-row_inf, num::order_max);
#pragma unroll 8
      for (std::int64_t j = 0; j < g.length; ++j) key = max(key, num::order_key(at.x(g, j), num::order_max));
      classify<Op>(r, g, row, key);
      double rest[4] = {};
      std::int64_t count = 0;
      if (!r.fills) {
#pragma unroll 4
        for (std::int64_t j = 0; j < g.length; ++j) {
          const float x = at.x(g, j);
          double w = weight_of(x, r.max);
          if constexpr (cuda_is_separate(Op)) {
            count += x == r.max ? 1 : 0;
            w = x < r.max && x != -row_inf ? w : 0.0;
          }
          rest[j & 3] += w;
        }
      }
      r.rest = (rest[0] + rest[1]) + (rest[2] + rest[3]);
      r.count = static_cast<double>(count);
    }
    if constexpr (!cuda_per_element(Op)) {
      const bool fills = r.fills;
      const int n = finish_row<Op>(r, g, at);
      (fills ? proved : decided) += n;
    } else {
      if (!r.fills && !cuda_is_tracked(Op)) prepare<Op>(r, g);
#pragma unroll 4
      for (std::int64_t j = 0; j < g.length; ++j) {
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
  }
  count_rows_decided(counters, proved, decided);
}

__global__ void __launch_bounds__(threads) count_targets(const __grid_constant__ row_geometry g) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  unsigned n = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    n += g.target[row_offset<4>(g.kept, row)] != g.ignore_index ? 1u : 0u;
  }
  n = __reduce_add_sync(full_warp, n);
  if (lane_of_thread() == 0 && n != 0) atomicAdd(g.counted, static_cast<unsigned long long>(n));
}

}  // namespace
}  // namespace repdl::cuda
