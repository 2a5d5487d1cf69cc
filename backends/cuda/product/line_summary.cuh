// What an engine's bound and lattice rule need to know of a line, a row of a or a column of b: its norm, and a power of
// two that all of its elements are multiples of. Collected by lanes, each of which walks through some of the line's
// terms, and put together.
//
// Two things differ from engine to engine, and are parameters: what squares are added up in (lane_summary), and how
// well the lattice is known. A lattice that is too fine is still right: then the lattice rule decides fewer of the
// outputs that it could, and later tiers decide those. No bit depends on it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/certify.hpp"

namespace repdl::cuda {

// A lower bound of the greatest power of two that all elements are multiples of, in two instructions an element, for engines that have no more to spare: the least
// nonzero magnitude (as the pattern without its sign, times two, minus 1: zeros come out greatest), and the OR of the patterns. A number with exponent field e is a
// multiple of 2^(max(e, 1) - 150 + z), z the trailing zeros that all significands have. It is exact where the smallest number needs all of the common bits; 1, 2, 3,
// 1000 come out as multiples of 2^-6.
struct common_lattice {
  unsigned least = 0xffffffffu;
  unsigned bits = 0;

  __device__ void add(float x) {
    const unsigned b = num::bits_of(x);
    least = min(least, b + b - 1);
    bits |= b;
  }
  __device__ void merge(common_lattice other) {
    least = min(least, other.least);
    bits |= other.bits;
  }
  __device__ common_lattice of_lane(int distance) const {
    return {__shfl_xor_sync(full_warp, least, distance), __shfl_xor_sync(full_warp, bits, distance)};
  }
  __device__ bool has_zeros_only() const { return least == 0xffffffffu; }
  __device__ int lsb() const {
    if (has_zeros_only()) return num::no_lsb;
    const int e = static_cast<int>((least + 1) >> 24);
    const int zeros = __ffs(static_cast<int>((bits & 0x7fffffu) | 0x800000u)) - 1;
    return max(e, 1) - 150 + zeros;
  }
};

// Of a line, or of a part of it. `squares`: their sum, in binary64, added up from what lanes and parts have. With N
// additions, those of a lane among them if they are binary64's, it falls short of the exact sum by at most a relative N
// u.
template <class Lattice>
struct line_summary {
  double squares = 0;
  Lattice lattice;

  __device__ void merge(line_summary other) {
    squares += other.squares;
    lattice.merge(other.lattice);
  }
  __device__ void merge_lanes(int distance) {
    merge({__shfl_xor_sync(full_warp, squares, distance), lattice.of_lane(distance)});
  }
};

// What a lane has, while it walks through its terms.
//
// Squares in binary64: they are exact, and what is rounded are additions.
//
// Squares in binary32, for an engine whose fp64 unit multiplies matrices meanwhile: after n fused steps the value s has
// S <= s (1 - 2^-24)^-n + n 2^-149 (a step loses at most 2^-24 of its result, or 2^-150 where that is subnormal), and
// (1 - 2^-24)^-n <= 1 + n 2^-23 for n <= 2^22; `finish` returns that, at least the lane's sum, in binary64, whose own
// errors 2^-53 are in the margin between 2^-23 and 2^-24. Squares that overflow make the bound infinite.
template <class Real, class Lattice>
struct lane_summary {
  Real squares = 0;
  Lattice lattice;

  static constexpr bool is_wide = std::is_same_v<Real, double>;

  __device__ void add(float x) {
    if constexpr (is_wide) {
      squares += static_cast<double>(x) * static_cast<double>(x);
    } else {
      squares = __fmaf_rn(x, x, squares);
    }
    lattice.add(x);
  }
  __device__ line_summary<Lattice> finish() const requires is_wide { return {squares, lattice}; }
  // `steps`: calls of add, or more.
  __device__ line_summary<Lattice> finish(int steps) const requires(!is_wide) {
    const double n = static_cast<double>(steps);
    return {lattice.has_zeros_only() ? 0.0 : static_cast<double>(squares) * (1 + n * 0x1p-23) + n * 0x1p-149, lattice};
  }
};

// Of many lines: what rounding tests read.
struct line_bounds {
  double* norm;  // at least the exact one, but for the roundings that an engine's bound allows for
  int* lsb;      // no_lsb: there are zeros only

  template <class Lattice>
  __device__ void set(std::int64_t line, const line_summary<Lattice>& x) const {
    norm[line] = num::sqrt(x.squares);
    lsb[line] = x.lattice.lsb();
  }
};

}  // namespace repdl::cuda
