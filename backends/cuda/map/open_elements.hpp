// What the rounding tests of a call leave open.
#pragma once

#include "backends/cuda/core/drivers.hpp"
#include "backends/cuda/map/map_cut.hpp"

namespace repdl::cuda {

// Element i is bit i % 32 of word i / 32, in blocks of elements, that is of the kernel that tested them. any: whether a block has
// some; where not, its words are not written. Null: all elements are open (notes_open).
struct open_elements {
  std::uint32_t* words = nullptr;
  std::uint32_t* any = nullptr;
};

// Takes what a call of so many elements wants, and of some before that are not there (pack_operands).
inline void take_open(carver& space, open_elements& open, std::int64_t count, const job& j) {
  if (!notes_open(count, j.device, j.first_tier)) return;
  count += 8;
  space.take(open.words, ceil_div(count, greatest_block), greatest_block / 32);
  space.take(open.any, ceil_div(count, least_block));
}

}  // namespace repdl::cuda
