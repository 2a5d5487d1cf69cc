// The images of digits.csv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

inline constexpr int pixels_per_image = 64;  // 8 x 8
inline constexpr int digit_classes = 10;

struct image_set {
  std::vector<std::uint8_t> pixels;  ///< 0 .. 16, pixels_per_image for each image
  std::vector<std::int64_t> labels;  ///< 0 .. 9
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

struct digit_data {
  image_set train;  ///< the first 1500
  image_set test;   ///< the last 297
};

/// The file's contents, which the build puts into the program.
const digit_data& digits();

}  // namespace examples
