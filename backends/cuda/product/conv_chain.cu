// Convolutions with accumulate::fma_chain (contract, section 5): s = +0; s = fma(a_k, b_k, s) in binary32, k ascending,
// absent terms skipped; then, apart, s + bias. conv.hpp's order of k is the contract's where channels are outermost.
//
// A skipped step and a step with a zero differ (fma(0, w, -0) is +0, 0 times infinity is NaN), so absent elements are
// marked by a NaN that no element has: elements that are NaN become the canonical NaN on the way, which changes no
// result.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/conv.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::cuda::conv {
namespace {

constexpr int threads = 256;
constexpr std::uint32_t absent_bits = 0xffffffffu;

struct place {
  std::int64_t offset, y, x;
};

// A block computes 16 R x 16 R outputs, a thread R x R: rows and columns in groups of V neighbours. The fewer outputs,
// the more terms at a time: a thread always copies the same number (R = 1: half of it).
template <int R>
inline constexpr int panel_terms = R == 1 ? 64 : 128 / R;
template <int R>
struct shared_state {
  static constexpr int tile = 16 * R;
  static constexpr int tile_k = panel_terms<R>;
  view v;
  place line[2][tile];
  place term[2][2][tile_k];  // by panel's parity; a, b
  index4 step;               // from a thread's term to its next one
  alignas(16) float panel[2][2][tile_k][tile + 4];
};

template <int R>
__global__ void __launch_bounds__(threads, 2)
    chain_kernel(const __grid_constant__ problem p, bool a_k_fast, bool b_k_fast, counter* counters) {
  constexpr int tile = 16 * R;
  constexpr int tile_k = panel_terms<R>;
  constexpr int copies = tile * tile_k / threads;  // of a thread, per operand and panel
  constexpr int V = R < 4 ? R : 4;
  __shared__ shared_state<R> state;
  const std::int64_t rows = (p.m + tile - 1) / tile;
  const std::int64_t cols = (p.n + tile - 1) / tile;
  const std::int64_t index = blockIdx.x;
  const std::int64_t product = index / (rows * cols);
  const std::int64_t row0 = index % rows * tile;
  const std::int64_t col0 = index / rows % cols * tile;
  const int tid = static_cast<int>(threadIdx.x);
  make_view(state.v, p, product, tid, threads, [] { __syncthreads(); });
  const view& v = state.v;
  // Lines beyond the end repeat the last one; their results are not written.
  for (int i = tid; i < 2 * tile; i += threads) {
    const bool second = i >= tile;
    const std::int64_t line = (second ? col0 : row0) + i % tile;
    const std::int64_t lines = second ? v.n : v.m;
    const index4 n = (second ? v.col : v.row).split(line < lines ? line : lines > 0 ? lines - 1 : 0);
    const side& s = (second ? v.b : v.a).outer;
    state.line[second][i % tile] = {s.offset_at(n), s.y_at(n), s.x_at(n)};
  }

  index4 at = v.term.split(tid);
  if (tid == 0) state.step = v.term.split(tile_k);
  __syncthreads();
  const auto locate = [&](int slot) {
    if (tid < tile_k) {
      const side& a = v.a.inner;
      const side& b = v.b.inner;
      state.term[slot][0][tid] = {a.offset_at(at), a.y_at(at), a.x_at(at)};
      state.term[slot][1][tid] = {b.offset_at(at), b.y_at(at), b.x_at(at)};
#pragma unroll
      for (int i = 0; i < 4; ++i) at.i[i] += state.step.i[i];
      if (at.i[3] >= v.term.d3) {
        at.i[3] -= v.term.d3;
        ++at.i[2];
      }
      if (at.i[2] >= v.term.d2) {
        at.i[2] -= v.term.d2;
        ++at.i[1];
      }
      if (v.term.d1 != 0 && at.i[1] >= v.term.d1) {
        at.i[1] -= v.term.d1;
        ++at.i[0];
      }
    }
  };
  const auto place_of = [&](bool k_fast, int i, int& line, int& k) {
    const int n = i * threads + tid;
    line = k_fast ? n / tile_k : n % tile;
    k = k_fast ? n % tile_k : n / tile;
  };
  const auto element = [&](const operand& t, int side_index, int parity, int line, int k, std::int64_t k0) {
    const place x = state.line[side_index][line];
    const place y = state.term[parity][side_index][k];
    const bool there = k0 + k < v.k && static_cast<std::uint64_t>(x.y + y.y) < static_cast<std::uint64_t>(t.h) &&
                       static_cast<std::uint64_t>(x.x + y.x) < static_cast<std::uint64_t>(t.w);
    return there ? num::canonical(static_cast<const float*>(t.data)[x.offset + y.offset]) : num::float_of(absent_bits);
  };
  float next_a[copies];
  float next_b[copies];
  const auto load = [&](int parity, std::int64_t k0) {
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      int line;
      int k;
      place_of(a_k_fast, i, line, k);
      next_a[i] = element(v.a, 0, parity, line, k, k0);
      place_of(b_k_fast, i, line, k);
      next_b[i] = element(v.b, 1, parity, line, k, k0);
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      int line;
      int k;
      place_of(a_k_fast, i, line, k);
      state.panel[buffer][0][k][line] = next_a[i];
      place_of(b_k_fast, i, line, k);
      state.panel[buffer][1][k][line] = next_b[i];
    }
  };

  const int ty = tid / 16 * V;  // line q of a thread: q / V * 16 V + ty + q % V
  const int tx = tid % 16 * V;
  float sum[R][R] = {};
  const auto advance = [&](int buffer, int k) {
    float x[R];
    float y[R];
#pragma unroll
    for (int q = 0; q < R; ++q) {
      x[q] = state.panel[buffer][0][k][q / V * 16 * V + ty + q % V];
      y[q] = state.panel[buffer][1][k][q / V * 16 * V + tx + q % V];
    }
#pragma unroll
    for (int j = 0; j < R; ++j) {
      if (num::bits_of(y[j]) != absent_bits) {
#pragma unroll
        for (int i = 0; i < R; ++i) sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
      }
    }
  };

  const std::int64_t tiles = (v.k + tile_k - 1) / tile_k;
  locate(0);
  __syncthreads();
  if (tiles > 0) {
    load(0, 0);
    store(0);
  }
  locate(1);
  __syncthreads();
  for (std::int64_t t = 0; t < tiles; ++t) {
    const int buffer = static_cast<int>(t & 1);
    if (t + 1 < tiles) load(buffer ^ 1, (t + 1) * tile_k);
    locate(buffer);
    const std::int64_t rest = v.k - t * tile_k;
    if (rest >= tile_k) {
#pragma unroll 16
      for (int k = 0; k < tile_k; ++k) advance(buffer, k);
    } else {
      for (int k = 0; k < rest; ++k) advance(buffer, k);
    }
    if (t + 1 < tiles) store(buffer ^ 1);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < R; ++i) {
    const std::int64_t row = row0 + i / V * 16 * V + ty + i % V;
    if (row >= v.m) continue;
    const std::int64_t row_offset = v.out.outer.offset_at(v.row.split(row));
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const std::int64_t col = col0 + j / V * 16 * V + tx + j % V;
      if (col >= v.n) continue;
      float s = sum[i][j];
      if (v.bias != nullptr) s = __fadd_rn(s, v.bias_of<float>(row));
      static_cast<float*>(v.result)[row_offset + v.out.inner.offset_at(v.col.split(col))] = num::canonical(s);
    }
  }
  if (tid == 0) {
    const std::int64_t height = min(std::int64_t{tile}, v.m - row0);
    const std::int64_t width = min(std::int64_t{tile}, v.n - col0);
    count_elements(counters, tier::proved, width > 0 ? height * width : 0);
  }
}

template <int R>
void prepare(const problem& p, const loading& l, const job& j, dispatch::task& t) {
  const std::int64_t blocks = ceil_div(p.m, 16 * R) * ceil_div(p.n, 16 * R) * p.products();
  plan_launch<chain_kernel<R>>(t, j, blocks, threads, p, l.a_k_fast, l.b_k_fast, j.counters);
}

}  // namespace

void prepare_chain(const problem& p, const loading& l, const job& j, dispatch::task& t) {
  switch (chain_width(p.size(), j.device)) {
    case 8:
      return prepare<8>(p, l, j, t);
    case 4:
      return prepare<4>(p, l, j, t);
    case 2:
      return prepare<2>(p, l, j, t);
    default:
      return prepare<1>(p, l, j, t);
  }
}

}  // namespace repdl::cuda::conv
