// matmul with accumulate::fma_chain (contract, section 5): s = +0; s = fma(a_k, b_k, s) in binary32, k ascending; then,
// apart, s + bias. The order is the result's definition, so blocks only cut m and n, and the last block of k is not
// padded: fma(0, 0, -0) is +0, so a padded step would change a bit.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/matmul.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int tile = 128;  // rows and columns of a block
constexpr int tile_k = 16;
constexpr int per_thread = tile * tile_k / threads;

struct chain {
  plan::matmul_plan plan;
  strided_axes<4> batch;    // of a, b, the output, the bias
  bool a_k_fast, b_k_fast;  // which index of an operand is consecutive in memory
};

// Element i of a thread's share of a tile_k x tile panel: where it lies.
__device__ inline void place(bool k_fast, int i, int& row, int& k) {
  const int n = i * threads + static_cast<int>(threadIdx.x);
  row = k_fast ? n / tile_k : n % tile;
  k = k_fast ? n % tile_k : n / tile;
}

__global__ void __launch_bounds__(threads, 2) chain_kernel(const __grid_constant__ chain c, counter* counters) {
  const plan::matmul_plan& p = c.plan;
  __shared__ __align__(16) float a_tile[2][tile_k][tile + 4];
  __shared__ __align__(16) float b_tile[2][tile_k][tile + 4];
  const std::int64_t cols = (p.n + tile - 1) / tile;
  const std::int64_t rows = (p.m + tile - 1) / tile;
  const std::int64_t index = blockIdx.x;
  std::int64_t offset[4];
  c.batch.locate(index / (rows * cols), offset);
  const std::int64_t row0 = index / cols % rows * tile;
  const std::int64_t col0 = index % cols * tile;
  const float* const a = static_cast<const float*>(p.a.data) + offset[0];
  const float* const b = static_cast<const float*>(p.b.data) + offset[1];
  float* const out = static_cast<float*>(p.out) + offset[2];
  const float* const bias = p.bias.data == nullptr ? nullptr : static_cast<const float*>(p.bias.data) + offset[3];
  const int tid = static_cast<int>(threadIdx.x);
  const int ty = tid / 16 * 4;  // rows ty + {0..3} and 64 + ty + {0..3}, columns likewise
  const int tx = tid % 16 * 4;

  float next_a[per_thread];
  float next_b[per_thread];
  const auto load = [&](std::int64_t k0) {
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      int r;
      int k;
      place(c.a_k_fast, i, r, k);
      next_a[i] = row0 + r < p.m && k0 + k < p.k ? a[(row0 + r) * p.a.row + (k0 + k) * p.a.col] : 0.0f;
      place(c.b_k_fast, i, r, k);
      next_b[i] = col0 + r < p.n && k0 + k < p.k ? b[(col0 + r) * p.b.col + (k0 + k) * p.b.row] : 0.0f;
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      int r;
      int k;
      place(c.a_k_fast, i, r, k);
      a_tile[buffer][k][r] = next_a[i];
      place(c.b_k_fast, i, r, k);
      b_tile[buffer][k][r] = next_b[i];
    }
  };

  float sum[8][8] = {};
  const auto step = [&](int buffer, int k) {
    float x[8];
    float y[8];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      *reinterpret_cast<float4*>(x + 4 * h) = *reinterpret_cast<const float4*>(&a_tile[buffer][k][64 * h + ty]);
      *reinterpret_cast<float4*>(y + 4 * h) = *reinterpret_cast<const float4*>(&b_tile[buffer][k][64 * h + tx]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
    }
  };

  const std::int64_t tiles = (p.k + tile_k - 1) / tile_k;
  if (tiles > 0) {
    load(0);
    store(0);
    __syncthreads();
  }
  for (std::int64_t t = 0; t < tiles; ++t) {
    const int buffer = static_cast<int>(t & 1);
    if (t + 1 < tiles) load((t + 1) * tile_k);
    const std::int64_t rest = p.k - t * tile_k;
    if (rest >= tile_k) {
#pragma unroll
      for (int k = 0; k < tile_k; ++k) step(buffer, k);
    } else {
      for (int k = 0; k < rest; ++k) step(buffer, k);
    }
    if (t + 1 < tiles) {
      store(buffer ^ 1);
      __syncthreads();
    }
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::int64_t row = row0 + i / 4 * 64 + ty + i % 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::int64_t col = col0 + j / 4 * 64 + tx + j % 4;
      if (row < p.m && col < p.n) {
        float s = sum[i][j];
        if (bias != nullptr) s = __fadd_rn(s, bias[row * p.bias.row + col * p.bias.col]);
        out[row * p.out_row + col * p.out_col] = num::canonical(s);
      }
    }
  }
  if (index == 0 && tid == 0) count_elements(counters, tier::proved, p.batches * p.m * p.n);
}

}  // namespace

void prepare_fma_chain(const plan::matmul_plan& p, const job& j, dispatch::task& t) {
  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  chain c{p, {}, size(p.a.col) <= size(p.a.row), size(p.b.row) <= size(p.b.col)};
  c.batch.set_shape(p.batch_rank, p.batch_shape);
  c.batch.set_stride(0, p.a.batch_stride);
  c.batch.set_stride(1, p.b.batch_stride);
  c.batch.set_stride(2, p.out_batch_stride);
  c.batch.set_stride(3, p.bias.batch_stride);
  const std::int64_t blocks = ceil_div(p.m, tile) * ceil_div(p.n, tile) * p.batches;
  plan_launch<chain_kernel>(t, j, blocks, threads, c, j.counters);
}

}  // namespace repdl::cuda
