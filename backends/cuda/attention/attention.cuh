// What the kernels of attention share.
#pragma once

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/attention/attention.hpp"

namespace repdl::cuda {

inline constexpr double unit_roundoff = 0x1p-53;

struct place {
  std::int64_t head, row, element;
};
struct attention_geometry {
  const void* q;
  const void* k;
  const void* v;
  const void* mask;
  const float* slopes;
  void* out;
  void* lse;
  std::int64_t total, heads, group, queries, keys, size, value_size, words;
  strided_axes<6> batch;  // of q, k, v, mask, out, lse
  place q_at, k_at, v_at, mask_at, out_at, lse_at;
  std::int64_t slope_step, offset, before, after;
  double scale;
  bool is_added;
  num::attention_draws draws;
};

// One query, and where its results go.
template <class T>
struct query_at {
  num::attention_query<T> query;
  T* out;
  num::lse_of<T>* lse;

  __device__ query_at(const attention_geometry& g, std::int64_t n) {
    const std::int64_t i = n % g.queries, h = n / g.queries % g.heads, of_keys = h / g.group;
    std::int64_t at[6];
    g.batch.locate(n / g.queries / g.heads, at);
    query.q = static_cast<const T*>(g.q) + at[0] + h * g.q_at.head + i * g.q_at.row;
    query.k = static_cast<const T*>(g.k) + at[1] + of_keys * g.k_at.head;
    query.v = static_cast<const T*>(g.v) + at[2] + of_keys * g.v_at.head;
    query.is_added = g.mask != nullptr && g.is_added;
    const std::int64_t mask = at[3] + h * g.mask_at.head + i * g.mask_at.row;
    query.mask = g.mask == nullptr
                     ? nullptr
                     : static_cast<const char*>(g.mask) + mask * (g.is_added ? static_cast<int>(sizeof(T)) : 1);
    query.q_step = g.q_at.element;
    query.k_row = g.k_at.row;
    query.k_step = g.k_at.element;
    query.v_row = g.v_at.row;
    query.v_step = g.v_at.element;
    query.mask_step = g.mask_at.element;
    query.size = g.size;
    query.at = i + g.offset;
    const auto within = [&](std::int64_t j) { return j < 0 ? 0 : j > g.keys ? g.keys : j; };
    query.first = within(query.at - g.before);
    query.last = within(query.at + g.after + 1);
    query.scale = g.scale;
    query.has_slope = g.slopes != nullptr;
    query.slope = query.has_slope ? static_cast<double>(g.slopes[h * g.slope_step]) : 0.0;
    query.draws = g.draws;
    query.first_pair = n * g.keys;
    out = static_cast<T*>(g.out) + at[4] + h * g.out_at.head + i * g.out_at.row;
    lse =
        g.lse == nullptr ? nullptr : static_cast<num::lse_of<T>*>(g.lse) + at[5] + h * g.lse_at.head + i * g.lse_at.row;
  }
};

// The last word of a query's bits: of lse, and of queries that attention_first computes after attention_tiles.
inline constexpr std::uint32_t lse_bit = 1, first_bit = 2;

// The greater magnitude, in the order of the bits, in which NaN is the greatest.
__device__ inline float greater(float a, float b) {
  return (__float_as_uint(a) & 0x7fffffffu) > (__float_as_uint(b) & 0x7fffffffu) ? a : b;
}

// Joins what the threads of a block have; every thread gets it.
template <class V, class Join>
__device__ V over_block(const V& mine, V* shared, const Join& join) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned by = blockDim.x / 2; by > 0; by /= 2) {
    if (threadIdx.x < by) join(shared[threadIdx.x], shared[threadIdx.x + by]);
    __syncthreads();
  }
  const V all = shared[0];
  __syncthreads();
  return all;
}

__device__ inline num::wide_sum<double> over_warp(num::wide_sum<double> s) {
#pragma unroll 1
  for (int by = 16; by > 0; by /= 2) {
    num::wide_sum<double> other;
    other.sum.hi = __shfl_xor_sync(full_warp, s.sum.hi, by);
    other.sum.lo = __shfl_xor_sync(full_warp, s.sum.lo, by);
    other.sum.error = __shfl_xor_sync(full_warp, s.sum.error, by);
    other.error = __shfl_xor_sync(full_warp, s.error, by);
    s.merge(other);
  }
  return s;
}
// Of the lanes of a warp, all of which ask.
struct any_lane {
  __device__ bool operator()(bool x) const { return __any_sync(full_warp, x); }
};

__device__ inline double over_warp(double x) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(full_warp, x, by);
  return x;
}
__device__ inline double greatest_of_warp(double x) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    const double y = __shfl_xor_sync(full_warp, x, by);
    x = y > x ? y : x;
  }
  return x;
}

// The rows of a block that have something left, found among some at a time, at most as many as it has threads, all of which ask.
template <int Threads>
struct open_rows_of_block {
  std::int64_t* found;
  int* count;
  std::int64_t rows, at_once, next_looked_at;
  int left = 0;

  __device__ open_rows_of_block(std::int64_t all, bool few_are_open) : rows(all) {
    const std::int64_t share = (all + gridDim.x - 1) / gridDim.x;
    at_once = !few_are_open || share < 1 ? 1 : share < Threads ? share : Threads;
    next_looked_at = blockIdx.x * at_once;
    __shared__ std::int64_t some[Threads];
    __shared__ int some_count;
    found = some;
    count = &some_count;
  }
  // One of them; -1: no more.
  template <class HasAny>
  __device__ std::int64_t next(const HasAny& has_any) {
    while (left == 0 && next_looked_at < rows) {
      __syncthreads();
      if (threadIdx.x == 0) *count = 0;
      __syncthreads();
      const std::int64_t looked_at = next_looked_at + threadIdx.x;
      if (threadIdx.x < at_once && looked_at < rows && has_any(looked_at)) found[atomicAdd(count, 1)] = looked_at;
      __syncthreads();
      left = *count;
      next_looked_at += gridDim.x * at_once;
    }
    return left == 0 ? -1 : found[--left];
  }
};

// attention_backward.cu
void prepare_gradients(const plan::attention_plan&, const job&, dispatch::task&);

// attention_tiles.cu: whether a call is for it, and its launches; bits: of all queries.
bool is_for_tiles(const plan::attention_plan&, const properties&);
std::int64_t statistics_of_tiles(const plan::attention_plan&, const properties&);  // numbers of binary32
// Into how many parts the keys are split where queries are few; 0: they are not. And the numbers of binary64 that the parts leave.
std::int64_t parts_of_tiles(const plan::attention_plan&, const properties&);
std::int64_t sums_of_tiles(const plan::attention_plan&, const properties&);
// The numbers of keys and values in binary64, of as many heads as are computed at a time.
std::int64_t packed_of_tiles(const plan::attention_plan&, const properties&);
// The queries with bits of each head of keys, of which there are `most`: found by attention_tiles, read by attention_second.
struct open_queries {
  std::int64_t* queries;
  int* counts;
  std::int64_t most;

  __device__ void add(std::int64_t of, std::int64_t n) const { queries[of * most + atomicAdd(counts + of, 1)] = n; }
};
void enqueue_tiles(const attention_geometry&, dtype, bool by_first, std::int64_t parts, double* sums, double* packed,
                   float* statistics, std::uint32_t* bits, const open_queries&, const job&);
// attention_second.cu: decides those, and takes their bits away.
void enqueue_second(const attention_geometry&, dtype, std::int64_t parts, const float* statistics, std::uint32_t* bits,
                    const open_queries&, const job&);

}  // namespace repdl::cuda
