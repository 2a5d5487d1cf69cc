// A sum of products in exact integers, in parts that the lanes of a warp hold: the last tier of matrix products and
// convolutions.
#pragma once

#include <type_traits>

#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/fixed_point.hpp"

namespace repdl::cuda {

struct exact_dot : num::exact_sum<float, 2> {
  __device__ void merge_lanes() {
    static_assert(std::is_trivially_copyable_v<num::dot_accumulator>);
    constexpr int words = sizeof(num::dot_accumulator) / 8;
    for (int distance = 16; distance >= 1; distance /= 2) {
      std::uint64_t w[words];
      memcpy(w, &finite, sizeof(finite));
      for (std::uint64_t& x : w) x = __shfl_xor_sync(full_warp, x, distance);
      num::dot_accumulator other;
      memcpy(&other, w, sizeof(other));
      finite.merge(other);
    }
    special.nan = __any_sync(full_warp, special.nan);
    special.positive = __any_sync(full_warp, special.positive);
    special.negative = __any_sync(full_warp, special.negative);
  }
};

}  // namespace repdl::cuda
