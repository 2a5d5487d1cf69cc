// The binary64 tier of convolutions with few weights for each output, depthwise ones above all, where tiles of the matrix instruction would be empty but for a row: a
// thread adds up its outputs' terms one after the other, and the magnitudes of the terms beside them. The threads of a block share a product's weights.
//
// Error: products of 24-bit factors are exact, and each of k <= 256 additions by fma rounds a partial sum, of magnitude at most M (1 + k u), M = sum |a b|,
// u = 2^-53: |s - S| <= k u M (1 + k u). The magnitudes' sum falls short of M by k u M at most. So e = (k + 4) u fl(M); with a bias c, + 2u (|s| + |c|).
// A sum of zeros alone has e = 0: it is +0. Absent terms are zeros here, which is the same unless the other factor is infinite or NaN: then fl(M) is, too,
// and the later tiers decide, which skip them.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/conv.hpp"
#include "librepdl/num/certify.hpp"

namespace repdl::cuda::conv {
namespace {

constexpr int threads = 256, each = 4, most_rows = 4, most_terms = 256;  // each: outputs of a row that a thread has

// What a term adds to the place of an output's first element of b.
struct tap {
  std::int64_t offset;
  int y, x;
};

__device__ bool inside(std::int64_t x, std::int64_t size) {
  return static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(size);
}

template <class Out>
__global__ void __launch_bounds__(threads)
    direct_kernel(const __grid_constant__ problem p, std::int64_t blocks_of_product, counter* counters) {
  alignas(16) __shared__ std::byte memory[sizeof(view)];
  __shared__ double weights[most_rows * most_terms];
  __shared__ tap taps[most_terms];
  view& v = reinterpret_cast<view&>(memory);
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t product = blockIdx.x / blocks_of_product,
                     first = blockIdx.x % blocks_of_product * (threads * each) + tid;
  make_view(v, p, product, tid, threads, [] { __syncthreads(); });
  __syncthreads();
  const int terms = static_cast<int>(v.k), rows = static_cast<int>(v.m);
  for (int i = tid; i < terms; i += threads) {
    const index4 n = v.term.split(i);
    taps[i] = {v.b.inner.offset_at(n), static_cast<int>(v.b.inner.y_at(n)), static_cast<int>(v.b.inner.x_at(n))};
  }
  for (int i = tid; i < rows * terms; i += threads) {
    const index4 r = v.row.split(i / terms), n = v.term.split(i % terms);
    const bool is_there =
        inside(v.a.outer.y_at(r) + v.a.inner.y_at(n), v.a.h) && inside(v.a.outer.x_at(r) + v.a.inner.x_at(n), v.a.w);
    weights[i] =
        is_there
            ? static_cast<double>(static_cast<const float*>(v.a.data)[v.a.outer.offset_at(r) + v.a.inner.offset_at(n)])
            : 0.0;
  }
  __syncthreads();

  const float* from[each];
  int y[each], x[each];
  index4 column[each];
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const std::int64_t col = first + i * threads;
    column[i] = v.col.split(col < v.n ? col : 0);
    from[i] = static_cast<const float*>(v.b.data) + v.b.outer.offset_at(column[i]);
    y[i] = static_cast<int>(v.b.outer.y_at(column[i]));
    x[i] = static_cast<int>(v.b.outer.x_at(column[i]));
  }
  const auto h = static_cast<unsigned>(v.b.h), w = static_cast<unsigned>(v.b.w);
  const double slope = static_cast<double>(terms + 4) * 0x1p-53;
  std::int64_t decided = 0;
  for (int row = 0; row < rows; ++row) {
    double sums[each] = {}, sizes[each] = {};
    const double* const of_row = weights + row * terms;
    for (int n = 0; n < terms; ++n) {
      const tap t = taps[n];
      const double a = of_row[n];
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const bool is_there = static_cast<unsigned>(y[i] + t.y) < h && static_cast<unsigned>(x[i] + t.x) < w;
        const auto b = static_cast<double>(is_there ? from[i][t.offset] : 0.0f);
        sums[i] = num::fma(a, b, sums[i]);
        sizes[i] = num::fma(num::magnitude_of(a), num::magnitude_of(b), sizes[i]);
      }
    }
    const index4 r = v.row.split(row);
    const double c = v.bias != nullptr ? static_cast<double>(v.bias_of<float>(row)) : 0.0;
    Out* const to = static_cast<Out*>(v.result) + v.out.outer.offset_at(r);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const std::int64_t col = first + i * threads;
      const bool is_there = col < v.n && inside(v.out.outer.y_at(r) + v.out.inner.y_at(column[i]), v.out.h) &&
                            inside(v.out.outer.x_at(r) + v.out.inner.x_at(column[i]), v.out.w);
      const double s = (sums[i] + c) + 0.0;
      const double bound =
          slope * sizes[i] + (v.bias != nullptr ? 0x1p-52 * (num::magnitude_of(sums[i]) + num::magnitude_of(c)) : 0.0);
      const num::decided_value<Out> result = num::certify<Out>(s, bound);
      const bool is_known = result.decided && bound < 0x1p1000 && p.first_tier <= tier::binary64;
      if (is_there) to[v.out.inner.offset_at(column[i])] = result.value;
      decided += is_there && is_known ? 1 : 0;
      const unsigned open = __ballot_sync(full_warp, is_there && !is_known);
      if (open != 0 && lane_of_thread() == 0) p.marks.add(open, product * p.m + row, col);
    }
  }
  count_elements(counters, tier::binary64, decided);
}

}  // namespace

bool is_direct(const problem& p) { return p.m <= most_rows && p.k <= most_terms; }

void run_direct(const problem& p, const job& j) {
  const std::int64_t blocks = ceil_div(p.n, std::int64_t{threads} * each);
  with_result(p, [&]<class Out>() {
    if constexpr (sizeof(Out) < 8) {
      launch_kernel<direct_kernel<Out>>(j, p.products() * blocks, threads, 0, p, blocks, j.counters);
    }
  });
}

}  // namespace repdl::cuda::conv
