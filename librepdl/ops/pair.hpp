// Height and width, and the sides of an image: what a per_axis is for planners, which check it first.
#pragma once

#include <cstdint>

namespace repdl::ops {

struct pair {
  std::int64_t h = 1;
  std::int64_t w = 1;
  friend bool operator==(const pair&, const pair&) = default;
};

/// Rows and columns around an image that are absent from every window (they are not zeros).
struct sides {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
};

}  // namespace repdl::ops
