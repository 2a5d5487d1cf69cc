// The contrast to the example's convolutional network: the same training in ordinary float32 loops.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "examples/cnn.hpp"

namespace examples {

enum class summation { forwards, backwards };

struct ordinary_result {
  std::vector<float> weights;       ///< of all layers, one after the other
  std::vector<float> test_outputs;  ///< (test images, 10)
  std::vector<std::int64_t> answers;
};

/// As train_cnn without dropout: the same data, initial weights, order of the images and formulas. Every sum is a loop
/// that adds in float32, over its terms from first to last or from last to first. Calls after_epoch() after every
/// epoch.
ordinary_result train_ordinary(const digit_data& data, const cnn_settings& settings, summation order,
                               const std::function<void()>& after_epoch = {});

}  // namespace examples
