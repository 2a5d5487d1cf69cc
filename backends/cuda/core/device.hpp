// The device, and the arithmetic of how work is cut for it. Knows nothing of CUDA: how a call is cut (*_cut.hpp) is plain functions of
// a plan and a device, which are tested without one (tests/cuda/cuts_test.cpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "librepdl/dispatch/backend.hpp"

namespace repdl::cuda {

// The device, as a self-test wants it to be seen.
struct properties {
  int index;
  int multiprocessors;
  int capability;  // 90 for 9.0
  dispatch::kernel_choice choice;
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

// Whether 32 bits hold every index below `count`.
constexpr bool fits_32_bits(std::int64_t count) { return count < std::int64_t{1} << 31; }

// The number of blocks of a grid-stride loop over `items` block-sized pieces.
inline unsigned grid_for(const properties& d, std::int64_t items, int blocks_per_multiprocessor) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(items, 1, std::int64_t{d.multiprocessors} * blocks_per_multiprocessor));
}

// The blocks that add up `count` elements, whose sums one block then joins (block_sums.cuh).
inline int blocks_of_sum(const properties& device, std::int64_t count, int threads) {
  constexpr int each = 4, blocks_per_multiprocessor = 8, most = 1024;
  return std::min(static_cast<int>(grid_for(device, ceil_div(count, each * threads), blocks_per_multiprocessor)), most);
}

// Dynamic shared memory that a block may have, less what the kernel itself uses (CUDA programming guide, table of
// technical specifications).
constexpr std::int64_t shared_limit(const properties& device) {
  const int c = device.capability;
  if (c == 86 || c == 89 || c >= 120) return 96 << 10;
  return (c < 90 ? 160 : 224) << 10;
}

}  // namespace repdl::cuda
