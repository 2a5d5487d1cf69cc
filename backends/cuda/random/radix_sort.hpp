// A stable sort of (64-bit key, 64-bit value) pairs by key, ascending.
#pragma once

#include <cstdint>

#include "backends/cuda/core/drivers.hpp"

namespace repdl::cuda {

struct sort_entries {
  std::uint64_t* keys;
  std::int64_t* values;
};
struct sort_buffers {
  sort_entries entries[2];  // the input and the result in [0]
  std::int64_t* counts;     // [digit][tile]
  std::int64_t* totals;     // [digit]
};

void take_workspace(sort_buffers& b, std::int64_t count, carver& c);
// By the low 8 * passes bits of the keys; passes is even.
void sort_by_key(std::int64_t count, const sort_buffers& buffers, const job& j, int passes = 8);

}  // namespace repdl::cuda
