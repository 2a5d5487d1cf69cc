// A sum of products in exact integers, in parts that the lanes of a warp hold: the last tier of matrix products and
// convolutions.
#pragma once

#include <type_traits>

#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/fixed_point.hpp"

namespace repdl::cuda {

struct exact_dot {
  num::dot_accumulator sum;
  num::special_terms special;

  __device__ void add_product(float x, float y) {
    const double xy = static_cast<double>(x) * static_cast<double>(y);
    if (num::is_finite(xy)) {
      sum.add_product(x, y);
    } else {
      special.add(xy);
    }
  }
  __device__ void add(float x) {
    const double c = static_cast<double>(x);
    if (num::is_finite(c)) {
      sum.add(c);
    } else {
      special.add(c);
    }
  }
  __device__ void merge(const exact_dot& o) {
    sum.merge(o.sum);
    special.merge(o.special);
  }
  __device__ void merge_lanes() {
    static_assert(std::is_trivially_copyable_v<num::dot_accumulator>);
    constexpr int words = sizeof(num::dot_accumulator) / 8;
    for (int distance = 16; distance >= 1; distance /= 2) {
      std::uint64_t w[words];
      memcpy(w, &sum, sizeof(sum));
      for (std::uint64_t& x : w) x = __shfl_xor_sync(full_warp, x, distance);
      num::dot_accumulator other;
      memcpy(&other, w, sizeof(other));
      sum.merge(other);
    }
    special.nan = __any_sync(full_warp, special.nan);
    special.positive = __any_sync(full_warp, special.positive);
    special.negative = __any_sync(full_warp, special.negative);
  }
  __device__ float round() const { return special.any() ? special.value() : sum.round_to_float(); }
};

}  // namespace repdl::cuda
