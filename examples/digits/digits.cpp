#include "examples/digits/digits.hpp"

#include <charconv>
#include <span>
#include <string_view>

namespace examples {

// From the generated data file.
std::span<const std::string_view> digits_csv_lines();

const digit_data& digits() {
  static const digit_data all = [] {
    constexpr std::int64_t training_images = 1500;
    digit_data data;
    for (const std::string_view line : digits_csv_lines()) {
      image_set& set = data.train.size() < training_images ? data.train : data.test;
      const char* at = line.data();
      const char* const end = at + line.size();
      for (int column = 0; column <= pixels_per_image; ++column) {
        int value = 0;
        at = std::from_chars(at, end, value).ptr + 1;
        if (column < pixels_per_image) {
          set.pixels.push_back(static_cast<std::uint8_t>(value));
        } else {
          set.labels.push_back(value);
        }
      }
    }
    return data;
  }();
  return all;
}

}  // namespace examples
