// A sum of products in exact integers, in parts that the lanes of a warp hold: the last tier of matrix products and
// convolutions.
#pragma once

#include <type_traits>

#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/fixed_point.hpp"

namespace repdl::cuda {

template <class N>
struct exact_products : num::exact_sum<N, 2> {
  using accumulator = num::exact_accumulator<N, 2>;

  __device__ void merge_lanes() {
    static_assert(std::is_trivially_copyable_v<accumulator>);
    constexpr int words = sizeof(accumulator) / 8;
    for (int distance = 16; distance >= 1; distance /= 2) {
      std::uint64_t w[words];
      memcpy(w, &this->finite, sizeof(accumulator));
      for (std::uint64_t& x : w) x = __shfl_xor_sync(full_warp, x, distance);
      accumulator other;
      memcpy(&other, w, sizeof(other));
      this->finite.merge(other);
    }
    num::special_terms& s = this->special;
    s.nan = __any_sync(full_warp, s.nan);
    s.positive = __any_sync(full_warp, s.positive);
    s.negative = __any_sync(full_warp, s.negative);
  }
};
using exact_dot = exact_products<float>;

}  // namespace repdl::cuda
