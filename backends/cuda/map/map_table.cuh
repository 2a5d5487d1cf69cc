// Tables of all results.
#pragma once

#include "backends/cuda/map/map_operation.cuh"

namespace repdl::cuda {
namespace {

// Rank 1, 16 bits in and out, of long functions and many elements: every block keeps all 2^16 results in its shared memory. Looking
// one up costs less than memory does. Contiguous: the output begins at a vector, `skip` elements before the first one that there is.
constexpr int table_threads = 1024;
template <class F>
__global__ void __launch_bounds__(threads) make_table(const operands<F> p, std::uint16_t* table) {
  const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
  const auto x = num::bit_cast<typename F::input>(static_cast<std::uint16_t>(i));
  typename F::tally tally;
  if constexpr (tentative_operation<F>) {
    const auto r = p.attempt(&x);
    table[i] = num::bit_cast<std::uint16_t>(r.decided && !skips_test(p) ? r.value : p.eval(&x, tally));
  } else {
    table[i] = num::bit_cast<std::uint16_t>(p.eval(&x, tally));
  }
}
template <class F>
__global__ void __launch_bounds__(table_threads)
    map_table(const operands<F> p, const std::uint16_t* made, bool contiguous, int skip, counter* counters) {
  using bits = std::uint16_t;
  static_assert(sizeof(typename F::input) == sizeof(bits) && sizeof(typename F::output) == sizeof(bits));
  extern __shared__ uint4 shared[];
  bits* const table = reinterpret_cast<bits*>(shared);
#pragma unroll
  for (int i = threadIdx.x; i < static_cast<int>(table_size * sizeof(bits) / sizeof(uint4)); i += table_threads)
    shared[i] = reinterpret_cast<const uint4*>(made)[i];
  __syncthreads();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * table_threads;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * table_threads + threadIdx.x;
  if (thread == 0) count_elements(counters, F::first, p.count - skip);
  const bits* const in = static_cast<const bits*>(p.in[0]);
  bits* const out = static_cast<bits*>(p.out);
  // What the next turn looks up is on its way while that of this one is looked up. out may be in: a thread's elements are its own.
  if (!contiguous) {
    constexpr int run = 8;
    bits ahead[run];
    const auto read = [&](std::int64_t i) {
      walk<run>(i, step, p.count, p.axes.stride[0][0], [&](int k, std::int64_t at) { ahead[k] = in[at]; });
    };
    read(thread);
    for (std::int64_t i = thread; i < p.count; i += run * step) {
      bits x[run];
#pragma unroll
      for (int k = 0; k < run; ++k) x[k] = table[ahead[k]];
      read(i + run * step);
      walk<run>(i, step, p.count, p.axes.stride[1][0], [&](int k, std::int64_t at) { out[at] = x[k]; });
    }
    return;
  }
  // Vectors of eight elements, those of the input from two where it is not aligned, which the last one of all may not have.
  constexpr int vector = sizeof(uint4) / sizeof(bits);
  const int shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(in) % sizeof(uint4) / sizeof(bits));
  const std::int64_t vectors = (shift == 0 ? p.count : p.count - vector) / vector;
  const uint4* const from = reinterpret_cast<const uint4*>(in - shift);
  uint4* const to = reinterpret_cast<uint4*>(out);
  const auto pair = [&](std::uint32_t x) {
    return table[x & 0xffff] | static_cast<std::uint32_t>(table[x >> 16]) << 16;
  };
  constexpr int run = 2;
  uint4 ahead[run], beyond[run];
  const auto read = [&](std::int64_t i) {
#pragma unroll
    for (int k = 0; k < run; ++k) {
      if (i + k * step >= vectors) break;
      ahead[k] = __ldcs(from + (i + k * step));
      if (shift != 0) beyond[k] = from[i + k * step + 1];
    }
  };
  // Elements shift to shift + 7 of two vectors.
  const auto shifted = [&](const uint4& x, const uint4& y) {
    const bool two = (shift & 4) != 0, one = (shift & 2) != 0;
    const std::uint32_t a = two ? x.z : x.x, b = two ? x.w : x.y, c = two ? y.x : x.z, d = two ? y.y : x.w,
                        e = two ? y.z : y.x, f = two ? y.w : y.y;
    const std::uint32_t w[] = {one ? b : a, one ? c : b, one ? d : c, one ? e : d, one ? f : e};
    const int odd = 16 * (shift & 1);
    return uint4{__funnelshift_r(w[0], w[1], odd), __funnelshift_r(w[1], w[2], odd), __funnelshift_r(w[2], w[3], odd),
                 __funnelshift_r(w[3], w[4], odd)};
  };
  // The first vector has elements that are not there.
  const std::int64_t first = thread + (skip != 0 ? 1 : 0);
  read(first);
  for (std::int64_t i = first; i < vectors; i += run * step) {
    uint4 x[run];
#pragma unroll
    for (int k = 0; k < run; ++k) x[k] = shift != 0 ? shifted(ahead[k], beyond[k]) : ahead[k];
    read(i + run * step);
#pragma unroll
    for (int k = 0; k < run; ++k) {
      if (i + k * step < vectors)
        __stcs(to + (i + k * step), uint4{pair(x[k].x), pair(x[k].y), pair(x[k].z), pair(x[k].w)});
    }
  }
  if (thread < vector && thread >= skip && skip != 0 && thread < p.count) out[thread] = table[in[thread]];
  const std::int64_t rest = (vectors > 0 ? vectors : skip != 0 ? 1 : 0) * vector + thread;
  if (rest < p.count && thread < 2 * vector) out[rest] = table[in[rest]];
}

}  // namespace
}  // namespace repdl::cuda
