// A two-layer perceptron that learns to read handwritten digits, written from librepdl's operations.
//
//     h = relu(x W1 + b1)        x: 64 pixels, h: 128 hidden units
//     y = h W2 + b2              y: 10 outputs; the digit is the index of the greatest
//     loss = |y - t|^2           t: 1 for the digit shown, 0 for the others
//
// Trained by minibatch gradient descent with momentum. There is no floating-point arithmetic in this example: every
// number is an integer, a constant, or the result of a librepdl operation. So the trained weights are a function of the
// data, the settings and the operations' definitions, and of nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <librepdl/options.hpp>
#include <librepdl/owning_tensor.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "examples/digits/digits.hpp"

namespace examples {

struct training_settings {
  int epochs = 80;
  std::int64_t hidden = 128;
  std::int64_t batch = 150;  ///< divides the number of training images
  float rate = 0.003f;       ///< for half the gradient of the loss summed over a batch
  float momentum = 0.85f;
  double first_bound = 0.1;  ///< initial weights are uniform in +-bound
  double second_bound = 0.06;
  std::uint64_t seed = 1;
};

struct epoch_report {
  int epoch;             ///< from 1
  float loss;            ///< per training image, as seen during the epoch
  std::int64_t correct;  ///< test images read correctly, of `tests`
  std::int64_t tests;
};

struct training_result {
  std::int64_t correct = 0;
  std::int64_t tests = 0;
  std::string fingerprint;  ///< of all weights and of the outputs for the test images
};

/// Trains from the seed and reports after every epoch.
training_result train(repdl::context& ctx, const digit_data& data, const training_settings& settings = {},
                      const std::function<void(const epoch_report&)>& report = {});

/// What `train` ends with for the default settings, on every machine (digits/fingerprint.txt).
std::string_view published_fingerprint();

/// One layer: a weight matrix and a bias, and how fast they are moving.
struct layer {
  repdl::tensor weight, bias;
  repdl::tensor weight_speed, bias_speed;
  repdl::tensor weight_gradient, bias_gradient;

  /// Weights uniform in +-bound; uses one value of the generator. All else +0.
  layer(repdl::context& ctx, repdl::generator& random, std::int64_t inputs, std::int64_t outputs, double bound);
};

/// The network and everything that a training step needs.
class perceptron {
 public:
  perceptron(repdl::context& ctx, repdl::generator& random, const training_settings& settings);

  /// One step of gradient descent on a batch; losses: one per image.
  void step(const repdl::const_tensor_view& images, const repdl::const_tensor_view& targets,
            const repdl::tensor_view& losses);
  /// outputs = y for every image.
  void evaluate(const repdl::const_tensor_view& images, const repdl::tensor_view& outputs);
  /// W1, b1, W2, b2.
  std::vector<repdl::const_tensor_view> weights() const;

 private:
  void descend(const repdl::tensor& gradient, repdl::tensor& speed, repdl::tensor& value);

  repdl::context& ctx_;
  layer first_, second_;
  repdl::tensor momentum_, minus_rate_;
  repdl::tensor hidden_in_, hidden_, outputs_, error_, squares_;  // of a batch
  repdl::tensor hidden_error_, hidden_in_error_;
};

/// x: (images, 64), pixels / 16.
repdl::tensor make_inputs(repdl::context& ctx, const image_set& set, const std::vector<std::int64_t>& order);
/// t: (images, 10).
repdl::tensor make_targets(repdl::context& ctx, const image_set& set, const std::vector<std::int64_t>& order);

}  // namespace examples
