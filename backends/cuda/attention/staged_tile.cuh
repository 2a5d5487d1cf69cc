// Tiles of attention's operands on their way to the fp64 matrix instruction.
#pragma once

#include "backends/cuda/core/async_copy.cuh"
#include "backends/cuda/core/device.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

inline constexpr int most_size = 128;     // numbers of a line in a tile
inline constexpr int steps_of_chain = 2;  // of eight terms each, of a score, which are added up first

template <int N>
__device__ void add_to(double (&sum)[N][4], const double (&part)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int x = 0; x < 4; ++x) sum[i][x] += part[i][x];
  }
}

// A tile of lines as they are in memory, with room behind each row so that no two lanes' words are in one bank.
template <class T, int Size, int Threads, int Rows>
struct staged_tile {
  static constexpr int bytes = Size * sizeof(T) + 16;
  alignas(16) unsigned char rows[Rows][bytes];

  // By `Threads` threads, of which this is number `thread`.
  __device__ void copy(int thread, const T* from, std::int64_t row, std::int64_t count, std::int64_t size) {
    constexpr int parts = Size * sizeof(T) / 16, each = 16 / sizeof(T);
#pragma unroll
    for (int i = thread; i < Rows * parts; i += Threads) {
      const int r = i / parts, part = i % parts;
      const bool present = r < count && part * each < size;
      copy_async<16>(reinterpret_cast<float*>(rows[r] + part * 16),
                     reinterpret_cast<const float*>(present ? from + r * row + part * each : from), present);
    }
  }
  __device__ double at(int r, int c) const {
    return static_cast<double>(num::widen_to_float(reinterpret_cast<const T*>(rows[r])[c]));
  }
};

// Whether packs of 16 bytes can be copied from an operand's lines.
inline bool is_packed(const plan::attention_plan& p, const void* data, const plan::attention_place& at,
                      std::int64_t size) {
  const auto fits = [&](std::int64_t n) { return n * static_cast<std::int64_t>(size_of(p.type)) % 16 == 0; };
  bool all = at.element == 1 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && fits(at.head) && fits(at.row) &&
             fits(size);
  for (int i = 0; i < p.batch_rank; ++i) all = all && fits(at.batch[static_cast<std::size_t>(i)]);
  return all;
}

// What a block may have that uses no other shared memory.
inline std::int64_t largest_memory(const properties& d) {
  return d.capability >= 90 && d.capability < 120 ? 227 << 10 : shared_limit(d);
}

}  // namespace repdl::cuda
