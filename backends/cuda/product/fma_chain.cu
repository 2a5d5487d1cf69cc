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

// Strides of an operand, as in the plan.
struct steps {
  std::int64_t outer, inner;
};

struct chain {
  std::int64_t m, n, k, batches;
  const float* a;
  const float* b;
  const float* bias;  // null: none
  float* out;
  steps of_a, of_b, of_bias, of_out;
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
  __shared__ __align__(16) float a_tile[2][tile_k][tile + 4];
  __shared__ __align__(16) float b_tile[2][tile_k][tile + 4];
  const std::int64_t cols = (c.n + tile - 1) / tile;
  const std::int64_t rows = (c.m + tile - 1) / tile;
  const std::int64_t index = blockIdx.x;
  std::int64_t offset[4];
  c.batch.locate(index / (rows * cols), offset);
  const std::int64_t row0 = index / cols % rows * tile;
  const std::int64_t col0 = index % cols * tile;
  const float* const a = c.a + offset[0];
  const float* const b = c.b + offset[1];
  float* const out = c.out + offset[2];
  const float* const bias = c.bias == nullptr ? nullptr : c.bias + offset[3];
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
      next_a[i] = row0 + r < c.m && k0 + k < c.k ? a[(row0 + r) * c.of_a.outer + (k0 + k) * c.of_a.inner] : 0.0f;
      place(c.b_k_fast, i, r, k);
      next_b[i] = col0 + r < c.n && k0 + k < c.k ? b[(col0 + r) * c.of_b.outer + (k0 + k) * c.of_b.inner] : 0.0f;
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

  const std::int64_t tiles = (c.k + tile_k - 1) / tile_k;
  if (tiles > 0) {
    load(0);
    store(0);
    __syncthreads();
  }
  for (std::int64_t t = 0; t < tiles; ++t) {
    const int buffer = static_cast<int>(t & 1);
    if (t + 1 < tiles) load((t + 1) * tile_k);
    const std::int64_t rest = c.k - t * tile_k;
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
      if (row < c.m && col < c.n) {
        float s = sum[i][j];
        if (bias != nullptr) s = __fadd_rn(s, bias[row * c.of_bias.outer + col * c.of_bias.inner]);
        out[row * c.of_out.outer + col * c.of_out.inner] = num::canonical(s);
      }
    }
  }
  if (index == 0 && tid == 0) count_elements(counters, tier::proved, c.batches * c.m * c.n);
}

}  // namespace

void prepare_fma_chain(const plan::product_plan& p, const job& j, dispatch::task& t) {
  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  chain c{};
  c.m = p.row.count;
  c.n = p.column.count;
  c.k = p.term.count;
  c.batches = p.batch.count;
  c.a = static_cast<const float*>(p.a.begin());
  c.b = static_cast<const float*>(p.b.begin());
  c.bias = static_cast<const float*>(p.bias.begin());
  c.out = static_cast<float*>(p.out.begin());
  c.of_a = {p.a.outer[0], p.a.inner[0]};
  c.of_b = {p.b.outer[0], p.b.inner[0]};
  c.of_bias = {p.bias.outer[0], p.bias.inner[0]};
  c.of_out = {p.out.outer[0], p.out.inner[0]};
  c.a_k_fast = size(c.of_a.inner) <= size(c.of_a.outer);
  c.b_k_fast = size(c.of_b.inner) <= size(c.of_b.outer);
  c.batch.set_shape(p.batch.rank, p.batch.shape);
  c.batch.set_stride(0, p.a.batch);
  c.batch.set_stride(1, p.b.batch);
  c.batch.set_stride(2, p.out.batch);
  c.batch.set_stride(3, p.bias.batch);
  const std::int64_t blocks = ceil_div(c.m, tile) * ceil_div(c.n, tile) * c.batches;
  plan_launch<chain_kernel>(t, j, blocks, threads, c, j.counters);
}

}  // namespace repdl::cuda
