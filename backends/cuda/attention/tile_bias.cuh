// What scores in tiles have beside products: masks and slopes.
#pragma once

#include "backends/cuda/attention/attention.cuh"

namespace repdl::cuda {

// What a kernel of tiles is compiled for beside plain scores: draws, or masks and slopes, and then draws if there are any.
enum class tile_extras { none, draws, masks };
inline tile_extras extras_of(const void* mask, const float* slopes, const num::attention_draws& draws) {
  return mask != nullptr || slopes != nullptr ? tile_extras::masks
         : draws.any()                        ? tile_extras::draws
                                              : tile_extras::none;
}

// Weights of scores below are left out: below 2^-721, where some weight is 2^-460 or the result does not depend on any.
inline constexpr double least_score = -500;
inline constexpr double least_sum = 0x1p-460;

// What a score has beside its product.
struct score_bias {
  double slope = 0, distance = 0, mask = 0;
  bool is_present = false;

  __device__ double along() const { return slope * distance; }
  __device__ double size() const { return num::magnitude_of(along()) + num::magnitude_of(mask); }
};
// at: the mask's element, if there is one.
template <class T>
__device__ score_bias bias_of(const void* mask, bool is_added, std::int64_t at, double slope, std::int64_t distance) {
  score_bias b{slope, static_cast<double>(distance), 0.0, true};
  if (mask == nullptr) return b;
  if (is_added) {
    b.mask = static_cast<double>(num::widen_to_float(static_cast<const T*>(mask)[at]));
    b.is_present = !(b.mask == -num::infinity);
  } else {
    b.is_present = static_cast<const std::uint8_t*>(mask)[at] != 0;
  }
  if (!b.is_present) b = score_bias{};
  return b;
}

}  // namespace repdl::cuda
