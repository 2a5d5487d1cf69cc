// The kernels of operands side by side, along a line, and of any strides.
#pragma once

#include <algorithm>
#include <iterator>

#include "backends/cuda/map/map_settle.cuh"

namespace repdl::cuda {
namespace {

// What may be tried again together, at a block's end: the more, the better for warps that would wait. So such blocks do their packs in
// rounds, a few at a time, and read those of the next one ahead. Others do all at once: a grid that goes round and round is slower.
template <class F>
constexpr bool tries_together = settles_late<F>&& tests_16_bits<F>;
template <class F>
constexpr bool reads_ahead = settles_late<F> || tests_16_bits<F>;
template <class F>
constexpr int packs_per_thread = sizeof(typename F::input) != 2 ? (reads_ahead<F> ? 1 : 2)
                                 : F::arity == 1                ? 4
                                                                : 2;

// Rank 1, stride 1. Exact aliasing of out and an input is legal: a thread reads its elements before it writes them.
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>)
    map_packed(const operands<F> p, const packing line, int most_rounds, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  constexpr int elements = packs_per_thread<F> * batch;
  const int rounds = reads_ahead<F> ? most_rounds : 1;
  undecided_in_block<F> left_undecided(undecided_in_block<F>::memory());
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * packs_per_thread<F> * rounds;
  if (block + threadIdx.x == 0) count_elements(counters, F::first, p.count - line.skip);
  const some_packs packs(line, block, threads * packs_per_thread<F> * rounds);
  operand_words<F> ahead[packs_per_thread<F>];
  if (reads_ahead<F>) read_packs(p, line.aligned, packs, static_cast<int>(threadIdx.x), threads, ahead);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const int first = round * threads * packs_per_thread<F> + static_cast<int>(threadIdx.x);
    operand_words<F> words[packs_per_thread<F>];
    if constexpr (reads_ahead<F>) {
#pragma unroll
      for (int k = 0; k < packs_per_thread<F>; ++k) words[k] = ahead[k];
      read_packs(p, line.aligned, packs, first + threads * packs_per_thread<F>, threads, ahead);
    } else {
      read_packs(p, line.aligned, packs, first, threads, words);
    }
    shift_packs(p, line.aligned, words);
    unsigned undecided = 0;
#pragma unroll
    for (int k = 0; k < packs_per_thread<F>; ++k) {
      if (!packs.has(first + k * threads)) continue;
      const std::int64_t i = block + first + k * threads;
      pack<In> x[F::arity];
      words[k].unpack(p, x);
      pack<Out> y;
      const unsigned left = apply(p, x, y);
      if (left == 0) {
        store_streaming(static_cast<pack<Out>*>(p.out) + i, y);
      } else {
        store_decided(static_cast<Out*>(p.out) + i * batch, y, left);
        undecided |= left << (k * batch);
      }
    }
    left_undecided.leave(p, undecided, [&](int j) { return (first + j / batch * threads) * batch + j % batch; });
  }
  if (blockIdx.x == 0 || blockIdx.x + 1 == gridDim.x) {
    const std::int64_t beside = element_beside(line, p.count, static_cast<int>(threadIdx.x));
    const bool mine = beside >= block * batch && beside - block * batch < threads * elements * rounds;
    if constexpr (settles_late<F>) {
      left_undecided.leave(p, mine ? 1 : 0, [&](int) { return static_cast<int>(beside - block * batch); });
    } else if (mine) {
      typename F::tally none;
      In arguments[F::arity];
#pragma unroll
      for (int a = 0; a < F::arity; ++a) arguments[a] = read_element(p, a, beside);
      static_cast<Out*>(p.out)[beside] = p.eval(arguments, none);
    }
  }
  left_undecided.finish(p, threads * elements * rounds, [](std::int64_t i, int) { return i; });
}

// Rank 1, any strides. A thread's elements are a block apart, so that a warp reads and writes side by side; all that it reads at a
// time has registers of its own.
template <class F>
constexpr int line_blocks = F::arity == 1 && sizeof(typename F::input) == 4 && !settles_late<F> ? 5
                            : tentative_operation<F>                                            ? least_blocks<F>
                                                                                                : 3;
template <class F>
constexpr int packs_per_line = sizeof(typename F::input) == 8      ? 1
                               : F::arity == 1 && tests_16_bits<F> ? 4
                                                                   : 2;
template <class F>
__global__ void __launch_bounds__(threads, line_blocks<F>)
    map_line(const operands<F> p, int most_rounds, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  constexpr int elements = packs_per_line<F> * batch;
  const int rounds = tries_together<F> ? most_rounds : 1;
  undecided_in_block<F> left_undecided(undecided_in_block<F>::memory());
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * elements * rounds;
  if (block + threadIdx.x == 0) count_elements(counters, F::first, p.count);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const int start = round * threads * elements + static_cast<int>(threadIdx.x);
    const std::int64_t i = block + start;
    const auto each = [&](int operand, const auto& element) {
      walk<elements>(i, threads, p.count, p.axes.stride[operand][0], element);
    };
    pack<In> x[packs_per_line<F>][F::arity]{};
#pragma unroll
    for (int a = 0; a < F::arity; ++a)
      each(a, [&](int j, std::int64_t at) { x[j / batch][a].v[j % batch] = read_element(p, a, at); });
    unsigned undecided = 0;
    pack<Out> y[packs_per_line<F>];
#pragma unroll
    for (int k = 0; k < packs_per_line<F>; ++k) undecided |= apply(p, x[k], y[k]) << (k * batch);
    each(F::arity, [&](int j, std::int64_t at) {
      if (!settles_late<F> || (undecided >> j & 1) == 0) static_cast<Out*>(p.out)[at] = y[j / batch].v[j % batch];
    });
    if (p.count - i <= threads * (elements - 1))
      undecided &= i < p.count ? (2u << ((p.count - i - 1) / threads)) - 1 : 0;
    left_undecided.leave(p, undecided, [&](int j) { return start + j * threads; });
  }
  left_undecided.finish(p, threads * elements * rounds, [&](std::int64_t i, int a) { return i * p.axes.stride[a][0]; });
}

// Any strides, fewer than 2^31 elements. A warp's elements are side by side. Packed: the innermost size is a multiple of
// `batch`, its stride is 1 for the output and 0 or 1 for the inputs, and every pack with stride 1 is aligned.
template <class F>
__global__ void __launch_bounds__(threads, least_blocks<F>)
    map_strided(const operands<F> p, bool packed, int most_rounds, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const int rounds = tries_together<F> ? most_rounds : 1;
  undecided_in_block<F> left_undecided(undecided_in_block<F>::memory());
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * threads * batch * rounds;
  if (block + threadIdx.x == 0) count_elements(counters, F::first, p.count);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    // The place of element j in the block.
    const auto place = [&](int j) {
      const int t = static_cast<int>(threadIdx.x);
      return round * threads * batch + (packed ? t * batch + j : t + j * threads);
    };
    const std::int64_t first = block + place(0);
    pack<In> x[F::arity];
    pack<Out> y;
    unsigned undecided = 0;
    if (first >= p.count) break;
    std::int64_t to[batch];  // the outputs' places; packed: that of the first
    if (packed) {
      std::int64_t at[F::arity + 1];
      p.axes.locate(static_cast<std::uint32_t>(first), at);
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        if (p.axes.stride[a][0] == 0) {
#pragma unroll
          for (int j = 0; j < batch; ++j) x[a].v[j] = read_element(p, a, at[a]);
        } else if (is_boolean<F>(a)) {
          const auto bytes =
              *reinterpret_cast<const pack<std::uint8_t>*>(static_cast<const std::uint8_t*>(p.in[a]) + at[a]);
#pragma unroll
          for (int j = 0; j < batch; ++j) x[a].v[j] = to_boolean<In>(bytes.v[j]);
        } else {
          x[a] = *reinterpret_cast<const pack<In>*>(static_cast<const In*>(p.in[a]) + at[a]);
        }
      }
      to[0] = at[F::arity];
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        std::int64_t at[F::arity + 1];
        const std::int64_t i = first + j * threads;
        p.axes.locate(static_cast<std::uint32_t>(i < p.count ? i : first), at);
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a].v[j] = read_element(p, a, at[a]);
        to[j] = at[F::arity];
      }
    }
    const unsigned left = apply(p, x, y);
    Out* const out = static_cast<Out*>(p.out);
    if (packed) {
      undecided = left;
      if (undecided == 0) {
        *reinterpret_cast<pack<Out>*>(out + to[0]) = y;
      } else {
        store_decided(out + to[0], y, undecided);
      }
    } else {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        if (first + j * threads >= p.count) break;
        if ((left >> j & 1) == 0) {
          out[to[j]] = y.v[j];
        } else {
          undecided |= 1u << j;
        }
      }
    }
    left_undecided.leave(p, undecided, place);
  }
  left_undecided.finish(p, threads * batch * rounds, [&](std::int64_t i, int a) {
    std::int64_t at[F::arity + 1];
    p.axes.locate(static_cast<std::uint32_t>(i), at);
    std::int64_t place = 0;
#pragma unroll
    for (int k = 0; k <= F::arity; ++k) place = a == k ? at[k] : place;
    return place;
  });
}

template <class T>
bool aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(pack<T>) == 0;
}
template <class F>
bool aligned_input(const void* p, int a) {
  return is_boolean<F>(a) ? aligned<std::uint8_t>(p) : aligned<typename F::input>(p);
}

// Whether map_strided may move packs.
template <class F>
bool can_pack(const operands<F>& p) {
  const strided_axes<F::arity + 1>& x = p.axes;
  if (x.rank == 0 || x.size[0] % batch != 0 || x.stride[F::arity][0] != 1) return false;
  if (!aligned<typename F::output>(p.out)) return false;
  for (int a = 0; a <= F::arity; ++a) {
    if (x.stride[a][0] == 0) continue;
    if (x.stride[a][0] != 1 || (a < F::arity && !aligned_input<F>(p.in[a], a))) return false;
    for (int d = 1; d < x.rank; ++d) {
      if (x.stride[a][d] % batch != 0) return false;
    }
  }
  return true;
}

inline std::int64_t blocks_of(std::int64_t count, int per_thread) {
  return std::max<std::int64_t>(1, ceil_div(count, threads * per_thread));
}

// What has more elements than a launch takes is cut along its longest axis.
template <class F, class Launch>
void in_parts(operands<F> p, std::size_t out_size, std::int64_t most, const Launch& launch_part) {
  if (p.count <= most) return launch_part(p);
  const auto cut = std::max_element(p.axes.size, p.axes.size + p.axes.rank) - p.axes.size;
  const std::int64_t size = p.axes.size[cut], half = size / 2;
  operands<F> rest = p;
  p.axes.size[cut] = half;
  p.count = p.count / size * half;
  rest.axes.size[cut] -= half;
  rest.count -= p.count;
  for (int a = 0; a < F::arity; ++a) {
    const std::size_t bytes = is_boolean<F>(a) ? 1 : sizeof(typename F::input);
    rest.in[a] =
        static_cast<const std::byte*>(p.in[a]) + half * p.axes.stride[a][cut] * static_cast<std::int64_t>(bytes);
  }
  rest.out = static_cast<std::byte*>(p.out) + half * p.axes.stride[F::arity][cut] * static_cast<std::int64_t>(out_size);
  in_parts(p, out_size, most, launch_part);
  in_parts(rest, out_size, most, launch_part);
}

}  // namespace
}  // namespace repdl::cuda
