// Tiles of attention's operands on their way to the fp64 matrix instruction.
#pragma once

#include "backends/cuda/core/async_copy.cuh"
#include "backends/cuda/core/device.hpp"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/num/format.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

inline constexpr int most_size = 128;  // numbers of a line in a tile
inline constexpr std::int64_t most_lines = std::int64_t{1} << 30;

// A tile of lines as they are in memory, with room behind each row so that no two lanes' words are in one bank.
template <class T, int Size, int Threads, int Rows>
struct staged_tile {
  static constexpr int bytes = Size * sizeof(T) + 16;
  alignas(16) unsigned char rows[Rows][bytes];

  // By `Threads` threads, of which this is number `thread`.
  __device__ void copy(int thread, const T* from, std::int64_t row, std::int64_t count, std::int64_t size) {
    constexpr int parts = Size * sizeof(T) / 16, each = 16 / sizeof(T);
#pragma unroll 4
    for (int i = thread; i < Rows * parts; i += Threads) {
      const int r = i / parts, part = i % parts;
      const bool present = r < count && part * each < size;
      copy_async<16>(reinterpret_cast<float*>(rows[r] + part * 16),
                     reinterpret_cast<const float*>(present ? from + r * row + part * each : from), present);
    }
  }
  __device__ float number(int r, int c) const { return num::widen_to_float(reinterpret_cast<const T*>(rows[r])[c]); }
  __device__ double at(int r, int c) const { return static_cast<double>(number(r, c)); }
  // Operand b of the instruction, of eight lines and eight numbers: products of lines, and sums over them, line 2 t + j being in the place 4 j + t.
  __device__ void for_products(int eight, int s, double (&b)[2]) const {
    const int lane = lane_of_thread(), row = lane / 4, t = lane % 4;
    b[0] = at(8 * eight + row, 8 * s + t);
    b[1] = at(8 * eight + row, 8 * s + 4 + t);
  }
  __device__ void for_sums(int eight, int s, double (&b)[2]) const {
    const int lane = lane_of_thread(), row = lane / 4, t = lane % 4;
    b[0] = at(8 * eight + 2 * t, 8 * s + row);
    b[1] = at(8 * eight + 2 * t + 1, 8 * s + row);
  }
};

// A warp's 16 rows as the instruction takes them: of each step, what a lane has.
template <int Steps, int Threads>
using row_tile = float4[Steps][Threads];

// Of eight terms each, of a product, which are added up first. With fewer of them more is added up later, which takes registers and time.
inline constexpr int steps_of_chain = 4;

// to = products of a warp's rows, which a thread keeps in place `thread`, and a tile's lines.
template <int Steps, int Threads, int Eights, class Tile>
__device__ void multiply_lines(const row_tile<Steps, Threads>& rows, int thread, const Tile& lines,
                               double (&to)[Eights][4]) {
#pragma unroll
  for (int chain = 0; chain < Steps; chain += steps_of_chain) {
    double part[Eights][4] = {};
#pragma unroll
    for (int s = chain; s < chain + steps_of_chain; ++s) {
      const float4 a = rows[s][thread];
#pragma unroll
      for (int eight = 0; eight < Eights; ++eight) {
        double b[2];
        lines.for_products(eight, s, b);
        multiply_add<2>(part[eight], {a.x, a.y, a.z, a.w}, b);
      }
    }
#pragma unroll
    for (int eight = 0; eight < Eights; ++eight) {
#pragma unroll
      for (int x = 0; x < 4; ++x) to[eight][x] = chain == 0 ? part[eight][x] : to[eight][x] + part[eight][x];
    }
  }
}
// What a product is within, in u |x| |y|: 32 terms by the instruction, and sums of these.
__device__ inline double height_of_product(std::int64_t size) {
  constexpr int terms = 8 * steps_of_chain;
  return terms + static_cast<double>((size + terms - 1) / terms);
}

// to += weights, as multiply_lines leaves what they are made of, times a tile's lines, added up before. Two columns of eight at a time: what one waits
// for the other computes.
template <int Steps, int Eights, class Tile>
__device__ void add_lines(const double (&weights)[Eights][4], const Tile& lines, double (&to)[Steps][4]) {
#pragma unroll
  for (int s = 0; s < Steps; s += 2) {
    double part[2][4] = {};
#pragma unroll
    for (int eight = 0; eight < Eights; ++eight) {
      const double(&w)[4] = weights[eight];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        double b[2];
        lines.for_sums(eight, s + i, b);
        multiply_add<2>(part[i], {w[0], w[2], w[1], w[3]}, b);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int x = 0; x < 4; ++x) to[s + i][x] += part[i][x];
    }
  }
}

// The columns that a warp's rows have, each those from first[h] to last[h]: all of them, or any.
struct column_range {
  int all_first, all_last, any_first, any_last;

  __device__ column_range(const int (&first)[2], const int (&last)[2], int columns)
      : all_first(first[0] > first[1] ? first[0] : first[1]),
        all_last(last[0] < last[1] ? last[0] : last[1]),
        any_first(columns),
        any_last(0) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (last[h] <= first[h]) continue;
      any_first = first[h] < any_first ? first[h] : any_first;
      any_last = last[h] > any_last ? last[h] : any_last;
    }
#pragma unroll
    for (int by = 4; by < 32; by *= 2) {
      const auto swapped = [&](int x) { return __shfl_xor_sync(full_warp, x, by); };
      const int a = swapped(all_first), b = swapped(all_last), c = swapped(any_first), d = swapped(any_last);
      all_first = a > all_first ? a : all_first;
      all_last = b < all_last ? b : all_last;
      any_first = c < any_first ? c : any_first;
      any_last = d > any_last ? d : any_last;
    }
  }
  __device__ bool has_any(int from, int count) const { return from < any_last && from + count > any_first; }
  __device__ bool has_all(int from, int count) const { return all_first <= from && from + count <= all_last; }
};

__device__ inline bool any_lane_of_row(bool x) {
  const unsigned all = __ballot_sync(full_warp, x);
  return (all >> (lane_of_thread() / 4 * 4) & 15u) != 0;
}
__device__ inline double greatest_over_lanes_of_row(double x) {
#pragma unroll
  for (int by = 1; by < 4; by *= 2) {
    const double y = __shfl_xor_sync(full_warp, x, by);
    x = y > x ? y : x;
  }
  return x;
}
// Over the four lanes of a row.
__device__ inline void over_lanes_of_row(double& x) {
  x += __shfl_xor_sync(full_warp, x, 1);
  x += __shfl_xor_sync(full_warp, x, 2);
}

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
