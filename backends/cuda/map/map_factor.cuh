// Gradients of 16 bits and many elements: products in which one operand x of f16 or bf16 enters by a factor phi(x) alone, for those
// whose phi takes longer to compute. All its values are made once a call, and every block keeps those that data have in its shared memory.
//
// Bound, u = 2^-24: phi(x) as a binary32 number, from binary64 within 2^-32: 1.01; c, the product of the other operands, is exact;
// c phi(x) 1; an end 1. What is beyond the table, or not between 2^-30 and 2^30, is NaN there, and left undecided; so are infinite
// results. bf16 results below 2^-90 are left undecided, too: then c is a normal number or 0, and the product does not underflow; of f16
// no product does. Zeros are those of c or of phi, exactly.
#pragma once

#include "backends/cuda/map/map_operation.cuh"
#include "backends/cuda/map/quick.cuh"

namespace repdl::cuda {
namespace {

template <class F>
concept has_factor = requires(const F& f) {
  f.factor(typename F::input{});
};

// For each sign of x: its magnitudes from 2^-13 to 16 (f16) or from 2^-30 to 1024 (bf16), then all others, then zero.
template <class T>
struct factor_table {
  static constexpr std::uint32_t low = std::is_same_v<T, f16> ? 2 << 10 : 97 << 7;
  static constexpr std::uint32_t high = std::is_same_v<T, f16> ? 19 << 10 : 137 << 7;
  static constexpr int other = high - low, zero = other + 1, each = zero + 1, size = 2 * each;
  static_assert(size <= most_factors);
  __device__ static int place(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7fff;
    const std::uint32_t i = min(magnitude - low, high - low);
    return static_cast<int>((magnitude == 0 ? std::uint32_t{zero} : i) + (bits >> 15) * each);
  }
  // The number at a place.
  __device__ static T number(int i) {
    const int magnitude = i % each;
    return num::bit_cast<T>(static_cast<std::uint16_t>((magnitude < other ? magnitude + static_cast<int>(low) : 0) |
                                                       (i >= each ? 0x8000 : 0)));
  }
};

// Also clears what the call notes.
template <class F>
__global__ void __launch_bounds__(threads) make_factors(const operands<F> p, float* table) {
  using table_of = factor_table<typename F::input>;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = first; i < table_of::size; i += step) {
    const approximation<double> phi = p.factor(table_of::number(static_cast<int>(i)));
    const double m = fabs(phi.value);
    const bool zero = i % table_of::each == table_of::zero && m == 0;
    const bool known = phi.covered && phi.eighths <= eighths_of(1u << 20) && ((m >= 0x1p-30 && m <= 0x1p30) || zero);
    table[i] =
        known && i % table_of::each != table_of::other ? static_cast<float>(phi.value) : __int_as_float(0x7fc00000);
  }
  for (std::int64_t i = first; i < (p.count + 31) / 32; i += step) p.undecided.words[i] = 0;
  for (std::int64_t i = first; i < (p.count + greatest_block - 1) / greatest_block; i += step) p.undecided.any[i] = 0;
}

// Rank 1, fewer than 2^32 elements. Contiguous: as map_packed; else of any strides. A warp lists what it leaves undecided, and attempts it
// again when there is enough for all of its threads; what the list has no room for is noted at once.
constexpr int factor_threads = 1024, factor_blocks = 1;
template <class F>
__global__ void __launch_bounds__(factor_threads, factor_blocks)
    map_factor(const operands<F> p, const float* made, bool contiguous, const packing line, counter* counters) {
  using T = typename F::input;
  using table_of = factor_table<T>;
  constexpr int run = 2, elements = run * batch, warps = factor_threads / 32, most_listed = 128;
  extern __shared__ float table[];
  __shared__ std::uint32_t lists[warps][most_listed];
  __shared__ int lengths[warps];
  for (int i = threadIdx.x; i < table_of::size; i += factor_threads) table[i] = made[i];
  if (threadIdx.x < warps) lengths[threadIdx.x] = 0;
  __syncthreads();
  const int thread = static_cast<int>(blockIdx.x * factor_threads + threadIdx.x);
  const int step = static_cast<int>(gridDim.x * factor_threads);
  if (thread == 0) count_elements(counters, F::first, p.count - line.skip);
  std::uint32_t* const list = lists[threadIdx.x / 32];
  int& length = lengths[threadIdx.x / 32];

  const auto attempt = [&](const pack<T>(&x)[F::arity], pack<T>& y) {
    bool decided[batch], all = true;
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      float c = 1;
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        if (a != F::factor_operand) c = c * num::widen_to_float(x[a].v[j]);
      }
      const float phi = table[table_of::place(num::to_bits(x[F::factor_operand].v[j]))];
      const float v = c * phi;
      bool covered = fabsf(v) < __int_as_float(0x7f800000);
      if constexpr (!std::is_same_v<T, f16>) {
        covered = covered & ((fabsf(v) >= 0x1p-90f) | ((v == 0) & ((c == 0) | (phi == 0))));
      }
      const num::tentative<T> r = round_approximation<T>(within<float>(v, 0, 4, covered));
      y.v[j] = r.value;
      decided[j] = r.decided;
      all = all & r.decided;
    }
    unsigned undecided = 0;
    if (all) return undecided;
#pragma unroll
    for (int j = 0; j < batch; ++j) undecided |= decided[j] ? 0u : 1u << j;
    return undecided;
  };
  const auto note = [&](std::int64_t i) {
    atomicOr(p.undecided.words + i / 32, 1u << (i % 32));
    p.undecided.any[i / greatest_block] = 1;
  };
  // What a turn leaves undecided: of bit j, element place(j).
  const auto leave = [&](unsigned undecided, bool last, const auto& place) {
    if (!last && __any_sync(full_warp, undecided != 0) == 0) return;
    int slot = undecided != 0 ? atomicAdd(&length, __popc(undecided)) : 0;
    for (; undecided != 0; undecided &= undecided - 1, ++slot) {
      const std::int64_t i = place(__ffs(static_cast<int>(undecided)) - 1);
      if (slot < most_listed) {
        list[slot] = static_cast<std::uint32_t>(i);
      } else {
        note(i);
      }
    }
    __syncwarp();
    int rest = min(length, most_listed);
    __syncwarp();
#pragma unroll 1
    while (rest >= 32 || (last && rest > 0)) {
      const int from = max(rest - 32, 0);
      if (lane_of_thread() < rest - from) {
        const std::int64_t i = list[from + lane_of_thread()];
        T x[F::arity];
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a] = static_cast<const T*>(p.in[a])[i * p.axes.stride[a][0]];
        const auto r = p.attempt_again(x);
        if (r.decided) {
          static_cast<T*>(p.out)[i * p.axes.stride[F::arity][0]] = r.value;
        } else {
          note(i);
        }
      }
      rest = from;
    }
    if (lane_of_thread() == 0) length = rest;
    __syncwarp();
  };

  // The operands of a warp's next turn are on their way while those of this one are looked up. A warp makes its turns together.
  const int warp = thread - lane_of_thread();
  if (contiguous) {
    const some_packs packs(line, 0, 1 << 30);
    operand_words<F> ahead[run];
    read_packs(p, line.aligned, packs, thread, step, ahead);
    for (int turn = 0; warp + turn < packs.end; turn += run * step) {
      operand_words<F> words[run];
#pragma unroll
      for (int k = 0; k < run; ++k) words[k] = ahead[k];
      const int first = thread + turn;
      read_packs(p, line.aligned, packs, first + run * step, step, ahead);
      shift_packs(p, line.aligned, words);
      unsigned undecided = 0;
#pragma unroll
      for (int k = 0; k < run; ++k) {
        const int i = first + k * step;
        if (!packs.has(i)) continue;
        pack<T> x[F::arity], y;
        words[k].unpack(p, x);
        const unsigned left = attempt(x, y);
        if (left == 0) {
          store_streaming(static_cast<pack<T>*>(p.out) + i, y);
        } else {
          store_decided(static_cast<T*>(p.out) + static_cast<std::int64_t>(i) * batch, y, left);
          undecided |= left << (k * batch);
        }
      }
      leave(undecided, false,
            [&](int j) { return static_cast<std::int64_t>(first + j / batch * step) * batch + j % batch; });
    }
    const std::int64_t rest = element_beside(line, p.count, thread);
    leave(rest >= 0 ? 1 : 0, true, [&](int) { return rest; });
    return;
  }
  const auto each = [&](std::int64_t i, int operand, const auto& element) {
    walk<elements>(i, step, p.count, p.axes.stride[operand][0], element);
  };
  pack<T> ahead[run][F::arity]{};
  const auto read = [&](std::int64_t i) {
#pragma unroll
    for (int a = 0; a < F::arity; ++a) {
      each(i, a,
           [&](int j, std::int64_t at) { ahead[j / batch][a].v[j % batch] = static_cast<const T*>(p.in[a])[at]; });
    }
  };
  read(thread);
  for (std::int64_t turn = 0; warp + turn < p.count; turn += elements * step) {
    const std::int64_t first = thread + turn;
    pack<T> y[run];
    unsigned undecided = 0;
#pragma unroll
    for (int k = 0; k < run; ++k) undecided |= attempt(ahead[k], y[k]) << (k * batch);
    read(first + elements * step);
    each(first, F::arity, [&](int j, std::int64_t at) {
      if ((undecided >> j & 1) == 0) static_cast<T*>(p.out)[at] = y[j / batch].v[j % batch];
    });
    if (first + (elements - 1) * step >= p.count)
      undecided &= first < p.count ? (2u << ((p.count - first - 1) / step)) - 1 : 0;
    leave(undecided, false, [&](int j) { return first + j * step; });
  }
  leave(0, true, [](int) { return std::int64_t{0}; });
}

}  // namespace
}  // namespace repdl::cuda
