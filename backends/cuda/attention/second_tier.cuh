// The second tier of attention and its gradients: products of split operands by the fp64 matrix instruction.
//
// With a = ceil log2 N_x, b = ceil log2 N_y of norms, or bounds of them: x = x_h + x_l and y = y_h + y_l, x_h a multiple of 2^(a - 25), y_h of 2^(b - 25), so that
//   sum = sum of x_h y_h          is exact: its terms and partial sums are multiples of 2^(a + b - 50) and below 2^(a + b + 1) (Cauchy and Schwarz),
//   rest = sum of x_l y + x_h y_l   is below 2 sqrt(D) 2^(a + b - 26) (1 + 2^-20), and within 2 D u of that: 2 D additions (mma.cuh, D1).
#pragma once

#include "backends/cuda/attention/staged_tile.cuh"
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/product/mma.cuh"
#include "backends/cuda/rows/exponential_of_lanes.cuh"
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
  return (2 * d + 4) * 0x1p-53 * sqrt(d) * 0x1p-25 * power_above(norm_x) * power_above(norm_y);
}

namespace {

// What 2^(j / 32), rounded to nearest, is less than itself by (reference/gen/rows.sollya); 0 as a number that can be scaled.
__device__ const double low_powers_of_lanes[32] = {0x1p-200,
                                                   0x1.d73e2a475b465p-55,
                                                   0x1.8a62e4adc610bp-54,
                                                   -0x1.6c51039449b3ap-54,
                                                   -0x1.19041b9d78a76p-55,
                                                   0x1.e016e00a2643cp-54,
                                                   0x1.9b07eb6c70573p-54,
                                                   0x1.612e8afad1255p-55,
                                                   0x1.6f46ad23182e4p-55,
                                                   -0x1.63aeabf42eae2p-54,
                                                   0x1.ada0911f09ebcp-55,
                                                   0x1.89b7a04ef80dp-59,
                                                   0x1.d4397afec42e2p-56,
                                                   -0x1.07abe1db13cadp-55,
                                                   0x1.6324c054647adp-54,
                                                   -0x1.383c17e40b497p-54,
                                                   -0x1.bdd3413b26456p-54,
                                                   -0x1.16e4786887a99p-55,
                                                   -0x1.41577ee04992fp-55,
                                                   -0x1.d4c1dd41532d8p-54,
                                                   0x1.6e9f156864b27p-54,
                                                   -0x1.75fc781b57ebcp-57,
                                                   0x1.c7c46b071f2bep-56,
                                                   -0x1.d2f6edb8d41e1p-54,
                                                   0x1.7a1cd345dcc81p-54,
                                                   -0x1.5584f7e54ac3bp-56,
                                                   0x1.11065895048ddp-55,
                                                   0x1.503cbd1e949dbp-56,
                                                   0x1.2ed02d75b3707p-55,
                                                   -0x1.1a5cd4f184b5cp-54,
                                                   -0x1.e9c23179c2893p-54,
                                                   0x1.9d3e12dd8a18bp-54};
__constant__ double tail_of_wide[] = {1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320};

// e^(hi + lo), |hi| <= 500, |lo| <= u |hi|, within 2^-71 of itself, by the lanes of a warp, all of which ask: lane j has 2^(j / 32).
//   hi = k ln2 / 32 + x + ..., |x| < 0.0109 = 2^-6.5, as exponential_of_lanes does, but the product with the rest of ln2 / 32, off by 2^-98, is kept whole,
//   and what x lacks, below 2^-43, is `rest`.
//   e^x = 1 + x + x^2 / 2 + tail, the first three in two words. tail, below 2^-22: terms to x^8, what is left out is below 2^-77; five roundings,
//   2^-72.9. What is added to the lower word, below 2^-22 too, is rounded to within 2^-75 three times, and again twice as a product with 2^(k / 32), whose
//   lower word enters but for 2^-76. rest^2 and k times what is off are below 2^-83. All: below 2^-71.8.
struct wide_exponential_of_lanes {
  int upper, lower, low_upper, low_lower;

  __device__ wide_exponential_of_lanes() {
    const int j = lane_of_thread();
    const double power = powers_of_lanes[j], low = low_powers_of_lanes[j];
    upper = __double2hiint(power) - (j << 15);
    lower = __double2loint(power);
    low_upper = __double2hiint(low) - (j << 15);
    low_lower = __double2loint(low);
  }
  __device__ num::dd operator()(double hi, double lo) const {
    const double t = num::fma(hi, ln2_of_lanes[0], num::exp_core::shifter);
    const double k = t - num::exp_core::shifter;
    const num::dd p = num::two_prod(k, -ln2_of_lanes[2]);
    const num::dd r = num::two_sum(num::fma(k, -ln2_of_lanes[1], hi), p.hi);
    const double x = r.hi, rest = (r.lo + p.lo) + lo;
    const num::dd q = num::two_prod(x, x);
    double tail = num::fma(tail_of_wide[5], x, tail_of_wide[4]);
    tail = num::fma(tail, x, tail_of_wide[3]);
    tail = num::fma(tail, x, tail_of_wide[2]);
    tail = num::fma(tail, x, tail_of_wide[1]);
    tail = num::fma(tail, x, tail_of_wide[0]) * (x * q.hi);
    const num::dd s = num::fast_two_sum(1.0, x), c = num::fast_two_sum(s.hi, 0.5 * q.hi);
    double low = (s.lo + c.lo) + num::fma(0.5, q.lo, tail);
    low = num::fma(rest, c.hi + low, low);
    const int place = __double2loint(t), by = place << 15;
    const double power =
        __hiloint2double(__shfl_sync(full_warp, upper, place) + by, __shfl_sync(full_warp, lower, place));
    const double low_power =
        __hiloint2double(__shfl_sync(full_warp, low_upper, place) + by, __shfl_sync(full_warp, low_lower, place));
    const num::dd w = num::two_prod(c.hi, power);
    return num::fast_two_sum(w.hi, num::fma(c.hi, low_power, num::fma(low, power, w.lo)));
  }
};

}  // namespace

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
