// The kernels of the binary64 tier of convolutions; instantiated by conv_product_*.cu, one object file per tile shape, and another
// one for results of 16 bits.
// See conv_product.cu for the method and the bound.
#pragma once

#include "backends/cuda/product/conv_certify.cuh"
#include "backends/cuda/product/mma.cuh"

namespace repdl::cuda::conv {

template <class T>
struct shared_state {
  static_assert(T::lines % 4 == 0);
  view v;
  term_steps steps;
  place line[T::lines];       // by position
  place term[2][2][panel_k];  // by panel's parity; a, b
  int index[3][panel_k];      // the last three numbers of the terms' indices; the first of them where it is counted
  place out[T::lines];
  float bias[T::rows];
};

// In the panels' place when they are done.
template <class T>
struct line_summaries {
  summary lines[T::lines];
  double norm[T::lines];
  int lsb[T::lines];
};

__device__ inline void tile_of(const schedule& s, std::int64_t index, std::int64_t& row, std::int64_t& col,
                               std::int64_t& product) {
  // There are fewer tiles than a grid may have blocks, 2^31.
  const auto n = static_cast<unsigned>(index);
  const auto rows = static_cast<unsigned>(s.row_tiles);
  const auto cols = static_cast<unsigned>(s.col_tiles);
  const unsigned rest = n / rows;
  row = n % rows;
  col = rest % cols;
  product = rest / cols;
}

template <class T, bool AKFast, bool BKFast>
inline constexpr std::size_t shared_bytes =
    T::sums * sizeof(double) + sizeof(shared_state<T>) +
    static_cast<std::size_t>(greatest_of(T::stages*(panel<T::rows, AKFast, 1>::size + panel<T::cols, BKFast, 1>::size) *
                                             4,
                                         static_cast<int>(sizeof(line_summaries<T>))));

template <class T, class Out, bool AKFast, bool BKFast>
__global__ void __launch_bounds__(T::threads, T::blocks)
    product_kernel(const __grid_constant__ problem p, const __grid_constant__ schedule s,
                   const __grid_constant__ loading l, counter* counters) {
  using panel_a = panel<T::rows, AKFast, T::row_vector>;
  using panel_b = panel<T::cols, BKFast, T::col_vector>;
  constexpr int stage = panel_a::size + panel_b::size;
  double* const shared = &memory_of_block<double>();
  double2* const blocks_sum = reinterpret_cast<double2*>(shared);
  auto& state = *reinterpret_cast<shared_state<T>*>(shared + T::sums);
  float* const panels = reinterpret_cast<float*>(&state + 1);
  __builtin_assume(threadIdx.x < T::threads);
  const int tid = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int g = lane / 4;
  const int t = lane % 4;
  const int warp_m = tid / 32 / T::warps_n;
  const int warp_n = tid / 32 % T::warps_n;
  const int warp_row = warp_m * T::m_tiles * 16;
  const int warp_col = warp_n * T::n_tiles * 8;

  const int extra = static_cast<int>(blockIdx.x) - static_cast<int>(s.whole);
  const int tile = extra < 0 ? static_cast<int>(blockIdx.x) : static_cast<int>(s.whole) + extra / s.parts;
  const int part = extra < 0 ? 0 : extra % s.parts;
  const int parts = extra < 0 ? 1 : s.parts;
  std::int64_t row0;
  std::int64_t col0;
  std::int64_t product;
  tile_of(s, tile, row0, col0, product);
  row0 *= T::rows;
  col0 *= T::cols;
  make_view(state.v, p, product, tid, T::threads, [] { __syncthreads(); });
  const view& v = state.v;
  if (tid == T::threads - 1) describe_steps(v, state.steps);
  for (int i = tid; i < T::lines; i += T::threads) {
    place at = absent_place();
    if (i < T::rows) {
      if (row0 + i < v.m) at = outer_place(v.a, v.a.data, v.row.split(row0 + i));
    } else if (col0 + (i - T::rows) < v.n) {
      at = outer_place(v.b, v.b.data, v.col.split(col0 + (i - T::rows)));
    }
    state.line[i < T::rows ? panel_a::position(i) : T::rows + panel_b::position(i - T::rows)] = at;
  }
  const std::int64_t all_panels = (v.k + panel_k - 1) / panel_k;
  const std::int64_t first_panel = parts == 1 ? 0 : all_panels * part / parts;
  const int count = static_cast<int>((parts == 1 ? all_panels : all_panels * (part + 1) / parts) - first_panel);

  // Threads 0 .. panel_k - 1 walk through the terms, one panel ahead of the copies.
  std::int64_t term = first_panel * panel_k + tid;
  if (tid < panel_k) {
    const index4 n = v.term.split(term);
#pragma unroll
    for (int i = 0; i < 3; ++i) state.index[i][tid] = static_cast<int>(n.i[i + 1]);
    state.term[0][0][tid] = term < v.k ? inner_place(v.a, n) : absent_place();
    state.term[0][1][tid] = term < v.k ? inner_place(v.b, n) : absent_place();
  }
  const auto locate = [&](int to) {  // from the panel before
    if (tid >= panel_k) return;
    const term_steps& steps = state.steps;
    place x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      x[i] = load_place(&state.term[to ^ 1][i][tid]);
      add_place(x[i], steps.always[i]);
    }
    int index3 = state.index[2][tid] + steps.step3;
    int index2 = state.index[1][tid] + steps.step2;
    if (index3 >= steps.d3) {
      index3 -= steps.d3;
      ++index2;
      add_place(x[0], steps.wrap3[0]);
      add_place(x[1], steps.wrap3[1]);
    }
    state.index[2][tid] = index3;
    const bool wraps = index2 >= steps.d2;
    if (wraps) {
      index2 -= steps.d2;
      add_place(x[0], steps.wrap2[0]);
      add_place(x[1], steps.wrap2[1]);
    }
    state.index[1][tid] = index2;
    if (steps.step1 >= 0) {
      int index1 = state.index[0][tid] + steps.step1 + (wraps ? 1 : 0);
      if (index1 >= steps.d1) {
        index1 -= steps.d1;
        add_place(x[0], steps.wrap1[0]);
        add_place(x[1], steps.wrap1[1]);
      }
      state.index[0][tid] = index1;
    }
    term += panel_k;
    const bool inside = term < v.k;
    state.term[to][0][tid] = inside ? x[0] : absent_place();
    state.term[to][1][tid] = inside ? x[1] : absent_place();
  };
  __syncthreads();
  copier<panel_a, T::threads, T::ahead> copy_a(state.line, v.a);
  copier<panel_b, T::threads, T::ahead> copy_b(state.line + T::rows, v.b);
  const auto begin_copies = [&](int slot, int parity, bool real) {
    copy_a.begin(panels + slot * stage, state.term[parity][0], real);
    copy_b.begin(panels + slot * stage + panel_a::size, state.term[parity][1], real);
  };
  for (int i = 0; i < T::stages - 1; ++i) {
    if (i != 0) {
      locate(i & 1);
      __syncthreads();
    }
    begin_copies(i, i & 1, i < count);
#pragma unroll
    for (int unit = 0; unit < copy_a.units; ++unit) copy_a.copy(unit, l.a_quads);
#pragma unroll
    for (int unit = 0; unit < copy_b.units; ++unit) copy_b.copy(unit, l.b_quads);
    commit_copies();
  }
  locate((T::stages - 1) & 1);
  // While the first panels are on their way.
  auto& after = *reinterpret_cast<line_summaries<T>*>(panels);
  const line_results lines{{after.norm, after.lsb}, state.out, state.bias};
  if (extra < 0) describe_lines<T, Out>(v, row0, col0, lines);

  double sum[T::m_tiles][T::n_tiles][4] = {};
  constexpr int own_m = (T::m_tiles + T::warps_n - 1) / T::warps_n;  // the warps share the summaries of lines
  constexpr int own_n = (T::n_tiles + T::warps_m - 1) / T::warps_m;
  lane_of_line of_rows[own_m][2];
  lane_of_line of_cols[own_n];
  int in_block = 0;
  int slot = 0;
  int fill = T::stages - 1;
  bool has_blocks = false;
  for (int i = 0; i < count; ++i) {
    wait_for_copies<T::stages - 2>();
    __syncthreads();  // this panel is there, and everybody is done with the one whose place is filled next
    begin_copies(fill, (i + T::stages - 1) & 1, i + T::stages - 1 < count);
    locate((i + T::stages) & 1);
    const float* const a = panels + slot * stage;
    const float* const b = a + panel_a::size;
    slot = slot + 1 == T::stages ? 0 : slot + 1;
    fill = fill + 1 == T::stages ? 0 : fill + 1;
    double b_part[T::n_tiles][4];
    {
      float f[T::n_tiles][4];
      panel_b::template read<T::n_tiles>(b, warp_col, g, t, f);
#pragma unroll
      for (int n = 0; n < T::n_tiles; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) b_part[n][j] = static_cast<double>(f[n][j]);
        if (T::warps_m == 1 || n % T::warps_m == warp_m) {
#pragma unroll
          for (int j = 0; j < 4; ++j) of_cols[n / T::warps_m].add(f[n][j]);
        }
      }
    }
    constexpr int V = T::row_vector;
#pragma unroll
    for (int m = 0; m < T::m_tiles; m += V / 2) {
      float f[V][4];
      panel_a::template read<V>(a, warp_row + m * 16, g, t, f);
#pragma unroll
      for (int d = 0; d < V / 2; ++d) {
        double a_part[8];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
          for (int h = 0; h < 2; ++h) a_part[2 * j + h] = static_cast<double>(f[2 * d + h][j]);
        }
        if ((m + d) % T::warps_n == warp_n) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int h = 0; h < 2; ++h) of_rows[(m + d) / T::warps_n][h].add(f[2 * d + h][j]);
          }
        }
#pragma unroll
        for (int n = 0; n < T::n_tiles; ++n) {
          multiply_add(sum[m + d][n], a_part, b_part[n]);
          constexpr int pieces = T::m_tiles * T::n_tiles;
          const int piece = (m + d) * T::n_tiles + n;
#pragma unroll
          for (int u = 0; u < copy_b.units; ++u) {
            if (u * pieces / copy_b.units == piece) copy_b.copy(u, l.b_quads);
          }
#pragma unroll
          for (int u = 0; u < copy_a.units; ++u) {
            if (u * pieces / copy_a.units == piece) copy_a.copy(u, l.a_quads);
          }
        }
      }
    }
    commit_copies();
    if (++in_block == block_panels && i + 1 < count) {
      in_block = 0;
#pragma unroll
      for (int q = 0; q < T::lane_sums / 2; ++q) {
        double* const x = &sum[q / 2 / T::n_tiles][q / 2 % T::n_tiles][q % 2 * 2];
        double2& total = blocks_sum[q * T::threads + tid];
        double2 y = double2{x[0], x[1]};
        if (has_blocks) y = double2{total.x + y.x, total.y + y.y};
        total = y;
        x[0] = 0;
        x[1] = 0;
      }
      has_blocks = true;
    }
  }
  wait_for_copies<0>();
  double2* const own_sums =
      extra >= 0 ? reinterpret_cast<double2*>(s.partial + std::int64_t{extra} * T::sums) + tid : blocks_sum + tid;
#pragma unroll
  for (int q = 0; q < T::lane_sums / 2; ++q) {
    const double* const x = &sum[q / 2 / T::n_tiles][q / 2 % T::n_tiles][q % 2 * 2];
    double2 y = double2{x[0], x[1]};
    if (has_blocks) {
      const double2 total = blocks_sum[q * T::threads + tid];
      y = double2{total.x + y.x, total.y + y.y};
    }
    own_sums[q * T::threads] = y;
  }
  __syncthreads();  // everybody is done with the panels
#pragma unroll
  for (int m = 0; m < T::m_tiles; ++m) {
    if (m % T::warps_n == warp_n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        summary x = of_rows[m / T::warps_n][h].finish(4 * count);
        x.merge_lanes(1);
        x.merge_lanes(2);
        if (t == 0) after.lines[warp_row + T::row(2 * m + h, g)] = x;
      }
    }
  }
#pragma unroll
  for (int n = 0; n < T::n_tiles; ++n) {
    if (T::warps_m == 1 || n % T::warps_m == warp_m) {
      summary x = of_cols[n / T::warps_m].finish(4 * count);
      x.merge_lanes(1);
      x.merge_lanes(2);
      if (t == 0) after.lines[T::rows + warp_col + T::col(n, g)] = x;
    }
  }
  __syncthreads();

  if (extra >= 0) {
    summary* const summaries = reinterpret_cast<summary*>(s.partial_summary) + std::int64_t{extra} * T::lines;
    for (int i = tid; i < T::lines; i += T::threads) summaries[i] = after.lines[i];
    return;
  }
  for (int i = tid; i < T::lines; i += T::threads) lines.set(i, after.lines[i]);
  __syncthreads();
  int decided = finish_rows<T, Out>(p, v, lines, product, row0, col0, warp_row, warp_col, 0, 2 * T::m_tiles, s.height,
                                    own_sums, T::threads);
  decided = __reduce_add_sync(full_warp, decided);
  if (lane == 0) count_elements(counters, tier::binary64, decided);
}

// Adds the parts of a tile and finishes it. A block per tile, warp and m_tile; its own warps share the parts.
template <class T>
inline constexpr int finish_helpers = T::n_tiles > 4 ? 4 : 8;
template <class T, class Out>
__global__ void __launch_bounds__(finish_helpers<T> * 32)
    finish_kernel(const __grid_constant__ problem p, const __grid_constant__ schedule s, counter* counters) {
  constexpr int helpers = finish_helpers<T>;
  constexpr int lane_sums = T::n_tiles * 4;
  constexpr int tile_warps = T::warps_m * T::warps_n;
  __shared__ view v;
  __shared__ double norm[T::lines];
  __shared__ int lsb[T::lines];
  __shared__ place out[T::lines];
  __shared__ float bias[T::rows];
  const line_results lines{{norm, lsb}, out, bias};
  __shared__ double2 shared[helpers][lane_sums / 2][32];
  const int tid = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int helper = tid / 32;
  const std::int64_t split_tile = blockIdx.x / (tile_warps * T::m_tiles);
  const int warp = static_cast<int>(blockIdx.x / T::m_tiles % tile_warps);
  const int m = static_cast<int>(blockIdx.x % T::m_tiles);
  std::int64_t row0;
  std::int64_t col0;
  std::int64_t product;
  tile_of(s, s.whole + split_tile, row0, col0, product);
  row0 *= T::rows;
  col0 *= T::cols;
  make_view(v, p, product, tid, helpers * 32, [] { __syncthreads(); });
  double2 sum[lane_sums / 2] = {};
  for (int part = helper; part < s.parts; part += helpers) {
    const double2* const from = reinterpret_cast<const double2*>(s.partial + (split_tile * s.parts + part) * T::sums) +
                                m * (lane_sums / 2) * T::threads + warp * 32 + lane;
#pragma unroll
    for (int q = 0; q < lane_sums / 2; ++q) {
      const double2 x = from[q * T::threads];
      sum[q].x += x.x;
      sum[q].y += x.y;
    }
  }
#pragma unroll
  for (int q = 0; q < lane_sums / 2; ++q) shared[helper][q][lane] = sum[q];
  const int warp_row = warp / T::warps_n * T::m_tiles * 16;
  const int warp_col = warp % T::warps_n * T::n_tiles * 8;
  for (int i = tid; i < 16 + T::n_tiles * 8; i += helpers * 32) {
    const int line = i < 16 ? warp_row + T::row(2 * m + i / 8, i % 8) : T::rows + warp_col + (i - 16);
    const summary* const from = reinterpret_cast<const summary*>(s.partial_summary) + split_tile * s.parts * T::lines;
    summary total;
    for (int part = 0; part < s.parts; ++part) total.merge(from[part * T::lines + line]);
    lines.set(line, total);
  }
  __syncthreads();
  describe_lines<T, Out>(v, row0, col0, lines);
  __syncthreads();
  if (helper != 0) return;
#pragma unroll
  for (int q = 0; q < lane_sums / 2; ++q) {
    double2 x = shared[0][q][lane];
    for (int h = 1; h < helpers; ++h) {
      x.x += shared[h][q][lane].x;
      x.y += shared[h][q][lane].y;
    }
    shared[0][q][lane] = x;
  }
  int decided = finish_rows<T, Out>(p, v, lines, product, row0, col0, warp_row, warp_col, 2 * m, 2, s.height,
                                    &shared[0][0][lane], 32);
  decided = __reduce_add_sync(full_warp, decided);
  if (lane == 0) count_elements(counters, tier::binary64, decided);
}

template <class T, class Out, bool AKFast, bool BKFast>
void launch(const problem& p, const schedule& s, const loading& l, const job& j) {
  constexpr std::size_t bytes = shared_bytes<T, AKFast, BKFast>;
  const std::int64_t blocks = s.whole + s.split * s.parts;
  launch_kernel<product_kernel<T, Out, AKFast, BKFast>>(j, blocks, T::threads, bytes, p, s, l, j.counters);
}

template <class T, class Out>
void launch_tile(const problem& p, const schedule& s, const loading& l, const job& j) {
  if (l.a_k_fast) {
    if (l.b_k_fast) {
      launch<T, Out, true, true>(p, s, l, j);
    } else {
      launch<T, Out, true, false>(p, s, l, j);
    }
  } else if (l.b_k_fast) {
    launch<T, Out, false, true>(p, s, l, j);
  } else {
    launch<T, Out, false, false>(p, s, l, j);
  }
  if (s.split > 0) {
    const std::int64_t blocks = s.split * T::warps_m * T::warps_n * T::m_tiles;
    launch_kernel<finish_kernel<T, Out>>(j, blocks, finish_helpers<T> * 32, 0, p, s, j.counters);
  }
}

}  // namespace repdl::cuda::conv
