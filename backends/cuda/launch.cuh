// Small device functions that every kernel file uses.
#pragma once

#include <cstdint>

#include "backends/cuda/drivers.hpp"

namespace repdl::cuda {

__device__ inline void count_elements(counter* counters, tier t, std::int64_t n) {
  if (n != 0) atomicAdd(counters + static_cast<int>(t), static_cast<counter>(n));
}

inline constexpr unsigned full_warp = 0xffffffffu;

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x & 31u); }

}  // namespace repdl::cuda
