// Tables of all results.
#pragma once

#include "backends/cuda/map/map_operation.cuh"

namespace repdl::cuda {
namespace {

// Rank 1, 16 bits in and out, of long functions and many elements: every block keeps all 2^16 results in its shared memory. Looking
// one up costs less than memory does. Packed: strides are 1, pointers aligned.
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
    map_table(const operands<F> p, const std::uint16_t* made, bool packed, counter* counters) {
  using bits = std::uint16_t;
  static_assert(sizeof(typename F::input) == sizeof(bits) && sizeof(typename F::output) == sizeof(bits));
  extern __shared__ uint4 shared[];
  bits* const table = reinterpret_cast<bits*>(shared);
#pragma unroll
  for (int i = threadIdx.x; i < static_cast<int>(table_size * sizeof(bits) / sizeof(uint4)); i += table_threads)
    shared[i] = reinterpret_cast<const uint4*>(made)[i];
  __syncthreads();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * table_threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * table_threads;
  if (first == 0) count_elements(counters, F::first, p.count);
  const bits* const in = static_cast<const bits*>(p.in[0]);
  bits* const out = static_cast<bits*>(p.out);
  const std::int64_t packs = packed ? p.count / 8 : 0;
  const auto pair = [&](std::uint32_t x) {
    return table[x & 0xffff] | static_cast<std::uint32_t>(table[x >> 16]) << 16;
  };
  const auto look_up = [&](uint4 x) { return uint4{pair(x.x), pair(x.y), pair(x.z), pair(x.w)}; };
  const uint4* const from = static_cast<const uint4*>(p.in[0]);
  uint4* const to = static_cast<uint4*>(p.out);
  // The packs of the next turn are on their way while those of this one are looked up. out may be in: a thread's packs are its
  // own.
  uint4 ahead[2];
  const auto read = [&](std::int64_t i) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (i + k * step < packs) ahead[k] = __ldcs(from + (i + k * step));
    }
  };
  read(first);
  for (std::int64_t i = first; i < packs; i += 2 * step) {
    const uint4 x[2] = {ahead[0], ahead[1]};
    read(i + 2 * step);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (i + k * step < packs) __stcs(to + (i + k * step), look_up(x[k]));
    }
  }
  // The elements of a turn are read before any is written.
  constexpr int batches = 16;
  const std::int64_t from_stride = p.axes.stride[0][0], to_stride = p.axes.stride[1][0];
  for (std::int64_t i = packs * 8 + first; i < p.count; i += batches * step) {
    bits x[batches];
#pragma unroll
    for (int k = 0; k < batches; ++k) x[k] = i + k * step < p.count ? in[(i + k * step) * from_stride] : 0;
#pragma unroll
    for (int k = 0; k < batches; ++k) {
      if (i + k * step < p.count) out[(i + k * step) * to_stride] = table[x[k]];
    }
  }
}

}  // namespace
}  // namespace repdl::cuda
