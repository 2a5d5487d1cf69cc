// What the kernels of the exact product in binary64 share: clusters of blocks that have some of the terms each, norms of lines, and the rounding test.
#pragma once

#include "backends/cuda/core/cluster.cuh"
#include "backends/cuda/product/matmul_repair.cuh"

namespace repdl::cuda {

using line_known = line_summary<common_lattice>;

// What lanes add for lost bits, less than 2^22 2^-149 each (line_summary.cuh), is nothing beside sums from 2^-90 on. Below, and where squares overflow, -1
// stands for the norm, until a warp has it from squares in binary64.
__device__ inline double norm_of(const line_known& x) {
  const bool known = x.squares == 0 || (x.squares >= 0x1p-90 && x.squares < num::infinity);
  return known ? num::sqrt(x.squares) : -1.0;
}
// The sum of squares of a line, exact but for its additions: for lines with squares outside of binary32. By a warp.
__device__ inline double squares_of(const operand_source& s, std::int64_t batch, std::int64_t line) {
  const char* const from = near_rows::row_of(s, batch, line);
  double sum = 0;
  for (std::int64_t k = lane_of_thread(); k < s.k; k += 32) {
    const double x = s.type == dtype::f32    ? static_cast<double>(reinterpret_cast<const float*>(from)[k * s.k_stride])
                     : s.type == dtype::bf16 ? num::widen(reinterpret_cast<const bf16*>(from)[k * s.k_stride])
                                             : num::widen(reinterpret_cast<const f16*>(from)[k * s.k_stride]);
    sum += x * x;
  }
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) sum += __shfl_xor_sync(full_warp, sum, distance);
  return sum;
}

// The rounding test of matmul_tiles.cu, from the engine's sum; dot_bound has `height`. lsb(): the sum of the lines' lattices.
template <class Format, bool Scaled, class Lsb>
__device__ num::decided_value<Format> decide(const product& p, double s, std::int64_t height, double norm_a,
                                             double norm_b, const Format* bias, const Lsb& lsb) {
  const double e = num::dot_bound(height, norm_a, norm_b);
  const auto is_on_lattice = [&](double magnitude) {
    int least = lsb();
    if constexpr (!Scaled) {
      if (bias != nullptr) least = min(least, num::lsb_exponent(*bias));
    }
    return num::lattice_holds(magnitude, least);
  };
  const double c = bias == nullptr ? 0.0 : num::widen(*bias);
  if (!Scaled || !p.is_scaled) {
    double t = s;
    double of_t = e;
    if (bias != nullptr) {
      of_t += 0x1p-51 * (fabs(s) + fabs(c));
      t += c;
    }
    // What certify does for numbers that are not zero; what this leaves, once more, with the lattice.
    const num::decided_value<Format> result =
        num::same_bits(num::rounded<Format>(t - of_t), num::rounded<Format>(t + of_t));
    if (result.decided) return result;
    if constexpr (!Scaled) {
      return num::certify<Format>(t, is_on_lattice(norm_a * norm_b + fabs(c)) ? 0.0 : of_t);
    }
  }
  const auto x = num::scaled_sum(p.alpha, p.beta, s, is_on_lattice(norm_a * norm_b) ? 0.0 : e, c);
  return num::certify<Format>(x.value, x.error);
}

}  // namespace repdl::cuda
