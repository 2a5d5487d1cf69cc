// The second tier of attention and its gradients: products of split operands by the fp64 matrix instruction.
//
// With a = ceil log2 N_x, b = ceil log2 N_y of norms, or bounds of them: x = x_h + x_l and y = y_h + y_l, x_h a multiple of 2^(a - 25), y_h of 2^(b - 25), so that
//   sum = sum of x_h y_h          is exact: its terms and partial sums are multiples of 2^(a + b - 50) and below 2^(a + b + 1) (Cauchy and Schwarz),
//   rest = sum of x_l y + x_h y_l   is below 2 sqrt(D) 2^(a + b - 26) (1 + 2^-20), and within 4 D u of that: 2 D additions of two u (mma.cuh, D1).
#pragma once

#include "backends/cuda/attention/staged_tile.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/mma.cuh"
#include "librepdl/num/wide.hpp"

namespace repdl::cuda {

// Queries or keys of a block, and results of each that it decides; others are left to later kernels.
inline constexpr int rows_of_second = 16, most_open = 4;

// 2^p >= x > 0, or the least power for 0.
__device__ inline double power_above(double x) {
  const std::uint64_t exponent = (num::bits_of(x) >> 52) + 1;
  return num::double_of(exponent << 52);
}
// Adding it, and taking it away, leaves multiples of 2^-25 of `power`.
__device__ inline double splitter_of(double power) { return power * 0x1.8p27; }

// A sum as its greater part and what is added up of the rest.
struct running_sum {
  double hi = 0, lo = 0;

  __device__ void add(double high, double low) {
    const num::dd s = num::two_sum(hi, high);
    hi = s.hi;
    lo += s.lo + low;
  }
  // That of four lanes, of the rows' columns.
  __device__ void over_lanes() {
#pragma unroll
    for (int by = 1; by < 4; by *= 2) {
      const double other = __shfl_xor_sync(full_warp, hi, by), rest = __shfl_xor_sync(full_warp, lo, by);
      add(other, rest);
    }
  }
};

// What sum + rest is within, of products of `size` numbers.
__device__ inline double split_error(std::int64_t size, double norm_x, double norm_y) {
  const double d = static_cast<double>(size);
  return (4 * d + 4) * 0x1p-53 * sqrt(d) * 0x1p-25 * power_above(norm_x) * power_above(norm_y);
}

// sum and rest of a warp's 16 rows, in parts as the instruction takes them, and the columns of a tile.
template <int Steps, int Eights, class Tile>
__device__ void multiply_split(const double (&high)[Steps][4][32], const double (&low)[Steps][4][32], const Tile& from,
                               double splitter, double (&sum)[Eights][4], double (&rest)[Eights][4]) {
  const int lane = lane_of_thread(), row = lane / 4, t = lane % 4;
#pragma unroll
  for (int s = 0; s < Steps; ++s) {
    const double a[4] = {high[s][0][lane], high[s][1][lane], high[s][2][lane], high[s][3][lane]};
    const double b[4] = {low[s][0][lane], low[s][1][lane], low[s][2][lane], low[s][3][lane]};
#pragma unroll
    for (int eight = 0; eight < Eights; ++eight) {
      const double x = from.at(8 * eight + row, 8 * s + t), y = from.at(8 * eight + row, 8 * s + 4 + t);
      const double x_high = (x + splitter) - splitter, y_high = (y + splitter) - splitter;
      multiply_add<2>(sum[eight], a, {x_high, y_high});
      multiply_add<2>(rest[eight], b, {x, y});
      multiply_add<2>(rest[eight], a, {x - x_high, y - y_high});
    }
  }
}

// The first bits that are set, of so many words; -1: no more.
__device__ inline void find_open(const std::uint32_t* words, std::int64_t count, int (&open)[most_open]) {
  int found = 0;
  for (int i = 0; i < most_open; ++i) open[i] = -1;
  for (std::int64_t word = 0; word < count && found < most_open; ++word) {
    for (std::uint32_t left = words[word]; left != 0 && found < most_open; left &= left - 1)
      open[found++] = static_cast<int>(32 * word) + __ffs(static_cast<int>(left)) - 1;
  }
}

}  // namespace repdl::cuda
