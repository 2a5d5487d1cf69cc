// What the rounding tests of a call leave undecided.
#pragma once

#include <span>

#include "backends/cuda/core/drivers.hpp"
#include "backends/cuda/map/map_cut.hpp"

namespace repdl::cuda {

// Element i is bit i % 32 of word i / 32, in blocks of elements, that is of the kernel that tested them. any: whether a block has
// some; where not, its words are not written. Null: all elements are undecided (notes_undecided).
struct undecided_elements {
  std::uint32_t* words = nullptr;
  std::uint32_t* any = nullptr;
};

// Takes what a call of so many elements wants, and of some before that are not there (pack_operands).
inline void take_undecided(carver& space, undecided_elements& undecided, std::int64_t count, const job& j) {
  if (!notes_undecided(count, j.device, j.first_tier)) return;
  count += 8;
  space.take(undecided.words, ceil_div(count, greatest_block), greatest_block / 32);
  space.take(undecided.any, ceil_div(count, least_block));
}

// Of calls that run together: what the longest launch of them wants, or any call alone.
inline void take_undecided(carver& space, undecided_elements& undecided, std::span<const plan::map_plan> list) {
  std::int64_t blocks = 0;
  for (const plan::map_plan& c : list) blocks += ceil_div(c.count + 8, greatest_block);
  space.take(undecided.words, blocks, greatest_block / 32);
  space.take(undecided.any, blocks, greatest_block / least_block);
}

}  // namespace repdl::cuda
