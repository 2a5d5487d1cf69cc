// Gradients of 16 bits and many elements: products in which one operand x of f16 or bf16 enters by a factor phi(x) alone, for those
// whose phi takes longer to compute. All its values are made once a call, and every block keeps those that data have in its shared memory.
//
// Bound, u = 2^-24: phi(x) as a binary32 number, from binary64 within 2^-32: 1.01; c, the product of the other operands, is exact;
// c phi(x) 1; an end 1. What is beyond the table, or not between 2^-30 and 2^30, is NaN there, and left open; so are infinite
// results. bf16 results below 2^-90 are left open, too: then c is a normal number or 0, and the product does not underflow; of f16
// no product does. Zeros are those of c or of phi, exactly.
#pragma once

#include "backends/cuda/map/map_operation.cuh"
#include "backends/cuda/map/quick.cuh"

namespace repdl::cuda {
namespace {

// The longest table; and whether the kernel may have it twice on a multiprocessor's memory, or once on a smaller one.
constexpr std::int64_t most_factors = 2 * ((12 << 10) + 2);
inline bool has_room_for_factors(const job& j) { return shared_limit(j.device) >= 4 * most_factors + 16384; }

template <class F>
concept has_factor = requires(const F& f) {
  f.factor(typename F::input{});
};

// For each sign of x: its magnitudes from 2^-8 to 16 (f16) or from 2^-30 to 1024 (bf16), then zero, then all others.
template <class T>
struct factor_table {
  static constexpr std::uint32_t low = std::is_same_v<T, f16> ? 7 << 10 : 97 << 7;
  static constexpr std::uint32_t high = std::is_same_v<T, f16> ? 19 << 10 : 137 << 7;
  static constexpr int zero = high - low, other = zero + 1, each = other + 1, size = 2 * each;
  static_assert(size <= most_factors);
  __device__ static int place(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7fff;
    const int i = magnitude - low < high - low ? static_cast<int>(magnitude - low) : other;
    return (magnitude == 0 ? zero : i) + ((bits & 0x8000) != 0 ? each : 0);
  }
  // The number at a place.
  __device__ static T number(int i) {
    const int magnitude = i % each;
    return num::bit_cast<T>(static_cast<std::uint16_t>((magnitude < zero ? magnitude + static_cast<int>(low) : 0) |
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
    const bool known = phi.covered && phi.width <= 1u << 20 && ((m >= 0x1p-30 && m <= 0x1p30) || zero);
    table[i] =
        known && i % table_of::each != table_of::other ? static_cast<float>(phi.value) : __int_as_float(0x7fc00000);
  }
  for (std::int64_t i = first; i < (p.count + 31) / 32; i += step) p.open.words[i] = 0;
  for (std::int64_t i = first; i < (p.count + greatest_block - 1) / greatest_block; i += step) p.open.any[i] = 0;
}

// Rank 1, fewer than 2^32 elements, any strides; unit: all are 1; packed: every pointer is aligned to a pack besides. A warp lists what
// it leaves open, and attempts it again when there is enough for all of its threads; what the list has no room for is noted at once.
constexpr int factor_threads = 512, factor_blocks = 2;
template <class F>
__global__ void __launch_bounds__(factor_threads, factor_blocks)
    map_factor(const operands<F> p, const float* made, bool unit, bool packed, counter* counters) {
  using T = typename F::input;
  using table_of = factor_table<T>;
  constexpr int packs = 4, elements = packs * batch, warps = factor_threads / 32, most_listed = 128;
  extern __shared__ float table[];
  __shared__ std::uint32_t lists[warps][most_listed];
  __shared__ int lengths[warps];
  for (int i = threadIdx.x; i < table_of::size; i += factor_threads) table[i] = made[i];
  if (threadIdx.x < warps) lengths[threadIdx.x] = 0;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, F::first, p.count);
  std::uint32_t* const list = lists[threadIdx.x / 32];
  int& length = lengths[threadIdx.x / 32];

  const auto attempt = [&](const T* x, T& y) {
    float c = 1;
#pragma unroll
    for (int a = 0; a < F::arity; ++a) {
      if (a != F::factor_operand) c = c * num::widen_to_float(x[a]);
    }
    const float phi = table[table_of::place(num::to_bits(x[F::factor_operand]))];
    const float v = c * phi;
    bool covered = fabsf(v) < __int_as_float(0x7f800000);
    if constexpr (!std::is_same_v<T, f16>) {
      covered = covered & ((fabsf(v) >= 0x1p-90f) | ((v == 0) & ((c == 0) | (phi == 0))));
    }
    const num::tentative<T> r = round_approximation<T>(within<float>(v, 0, 4, covered));
    y = r.value;
    return r.decided;
  };
  const auto note = [&](std::int64_t i) {
    atomicOr(p.open.words + i / 32, 1u << (i % 32));
    p.open.any[i / greatest_block] = 1;
  };

  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * factor_threads * elements;
  bool done = false;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * factor_threads * elements; !done; block += step) {
    done = block >= p.count;
    const auto place = [&](int j) {
      const int t = static_cast<int>(threadIdx.x);
      return block + (packed ? (t + j / batch * factor_threads) * batch + j % batch : t + j * factor_threads);
    };
    unsigned open = 0;
    if (!done && packed) {
      pack<T> x[packs][F::arity];
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (place(k * batch) + batch > p.count) break;
#pragma unroll
        for (int a = 0; a < F::arity; ++a)
          x[k][a] = load_streaming(static_cast<const pack<T>*>(p.in[a]) + place(k * batch) / batch);
      }
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        const std::int64_t i = place(k * batch);
        unsigned left = 0;
        if (i + batch > p.count) {
          for (int j = 0; j < batch; ++j) left |= i + j < p.count ? 1u << j : 0;
        } else {
          pack<T> y;
#pragma unroll
          for (int j = 0; j < batch; ++j) {
            T arguments[F::arity];
#pragma unroll
            for (int a = 0; a < F::arity; ++a) arguments[a] = x[k][a].v[j];
            left |= attempt(arguments, y.v[j]) ? 0u : 1u << j;
          }
          if (left == 0) {
            store_streaming(static_cast<pack<T>*>(p.out) + i / batch, y);
          } else {
            store_decided(static_cast<T*>(p.out) + i, y, left);
          }
        }
        open |= left << (k * batch);
      }
    } else if (!done) {
      // Without branches and products the addresses of neighbours are constants apart.
      const auto scalar = [&](auto plain) {
        constexpr int run = elements / 2;
        const auto stride = [&](int a) { return plain.value ? 1 : p.axes.stride[a][0]; };
#pragma unroll 1
        for (int from = 0; from < elements; from += run) {
          const std::int64_t first = place(from);
          T x[run][F::arity]{};
#pragma unroll
          for (int a = 0; a < F::arity; ++a) {
            const T* const in = static_cast<const T*>(p.in[a]) + first * stride(a);
#pragma unroll
            for (int j = 0; j < run; ++j) {
              if (plain.value || first + j * factor_threads < p.count) x[j][a] = in[j * factor_threads * stride(a)];
            }
          }
          T* const out = static_cast<T*>(p.out) + first * stride(F::arity);
#pragma unroll
          for (int j = 0; j < run; ++j) {
            T y;
            const bool decided = attempt(x[j], y);
            if (!plain.value && first + j * factor_threads >= p.count) break;
            if (decided) {
              out[j * factor_threads * stride(F::arity)] = y;
            } else {
              open |= 1u << (from + j);
            }
          }
        }
      };
      if (unit && block + factor_threads * elements <= p.count) {
        scalar(std::true_type{});
      } else {
        scalar(std::false_type{});
      }
    }
    __syncwarp();
    int slot = open != 0 ? atomicAdd(&length, __popc(open)) : 0;
    for (; open != 0; open &= open - 1, ++slot) {
      const std::int64_t i = place(__ffs(static_cast<int>(open)) - 1);
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
    while (rest >= 32 || (done && rest > 0)) {
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
  }
}

}  // namespace
}  // namespace repdl::cuda
