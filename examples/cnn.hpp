// A small convolutional network that learns to read handwritten digits, written from librepdl's operations.
//
//     8 x 8 pixels -> conv 3 x 3 -> relu                       16 channels of 8 x 8
//                  -> conv 3 x 3 -> relu -> max-pool 2 x 2     48 channels of 4 x 4
//                  -> linear -> relu [-> dropout]              64 hidden units
//                  -> linear                                   10 outputs; the digit is the index of the greatest
//     loss = cross-entropy, the mean over a batch
//
// Trained by stochastic gradient descent with momentum, on images that are distorted anew in every epoch. There is no
// floating-point arithmetic in this example: every number is an integer, a constant, or the result of a librepdl
// operation. So the trained weights are a function of the data, the settings and the operations' definitions, and of
// nothing else: not of the machine, and not of where the training was stopped, saved and continued.
#pragma once

#include <cstdint>
#include <functional>
#include <librepdl/options.hpp>
#include <librepdl/owning_tensor.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/digits/digits.hpp"
#include "examples/perceptron.hpp"
#include "examples/safetensors.hpp"

namespace examples {

/// The learning rate up to and including an epoch; the last one of a list holds for all later epochs.
struct rate_until {
  int epoch;
  double rate;
};

struct cnn_settings {
  int epochs = 30;
  std::int64_t channels1 = 16;
  std::int64_t channels2 = 48;
  std::int64_t hidden = 64;
  std::int64_t batch = 50;  ///< divides the number of training images
  std::vector<rate_until> rates{{15, 0.05}, {22, 0.015}, {27, 0.005}, {30, 0.0015}};
  double momentum = 0.9;
  double dropout = 0;            ///< 0: left out
  std::int64_t distortion = 12;  ///< see distorted()
  std::uint64_t seed = 1;
  /// Initial weights are normal with these standard deviations: sqrt(2 / inputs) (K. He et al., "Delving deep into
  /// rectifiers", ICCV 2015), sqrt(1 / inputs) for the last layer. Biases are 0.
  double stddev[4] = {0.47140452079103168, 0.11785113019775792, 0.051031036307982884, 0.125};
};

/// A tensor that is trained.
struct parameter {
  std::string_view name;  ///< and shape, as PyTorch has them
  repdl::tensor value;
  repdl::tensor velocity;
  repdl::tensor gradient;
};

/// The network and everything that a training step needs.
class cnn {
 public:
  /// Weights from the generator (four values of its stream), velocities and biases +0.
  cnn(repdl::context& ctx, repdl::generator& random, const cnn_settings& settings);

  /// One step on a batch of images (n, 1, 8, 8) and labels (n); loss is a scalar. Uses one value of the generator's
  /// stream if there is dropout.
  void step(const repdl::const_tensor_view& images, const repdl::const_tensor_view& labels,
            const repdl::tensor_view& loss, double rate, repdl::generator& random);
  /// outputs (n, 10), without dropout.
  void evaluate(const repdl::const_tensor_view& images, const repdl::tensor_view& outputs);

  std::span<parameter> parameters() { return parameters_; }
  std::span<const parameter> parameters() const { return parameters_; }

 private:
  enum which {
    conv1_weight,
    conv1_bias,
    conv2_weight,
    conv2_bias,
    linear1_weight,
    linear1_bias,
    linear2_weight,
    linear2_bias
  };

  // What a forward pass leaves for the backward pass. n images.
  struct activations {
    repdl::tensor conv1, relu1, conv2, relu2, pool, linear1, relu3, dropped, outputs;
    activations(repdl::context& ctx, const cnn_settings& s, std::int64_t n);
    repdl::tensor_view flat();  ///< pool as (n, features)
  };
  void forward(const repdl::const_tensor_view& images, activations& a);
  void output(const repdl::const_tensor_view& hidden, const repdl::tensor_view& outputs);
  repdl::tensor& value(which w) { return parameters_[static_cast<std::size_t>(w)].value; }
  repdl::tensor& gradient(which w) { return parameters_[static_cast<std::size_t>(w)].gradient; }

  repdl::context& ctx_;
  cnn_settings settings_;
  std::vector<parameter> parameters_;
  repdl::tensor one_;
  activations batch_;
  activations error_;  ///< the gradients of the loss with respect to batch_
};

/// A training that can be saved after any epoch and continued: in another process, on another machine or device.
class cnn_training {
 public:
  /// From the seed.
  cnn_training(repdl::context& ctx, const digit_data& data, const cnn_settings& settings = {});
  /// From a checkpoint with the same settings (the number of epochs may differ). Throws file_error, naming `path`.
  cnn_training(repdl::context& ctx, const digit_data& data, const cnn_settings& settings, const tensor_file& checkpoint,
               const std::string& path);

  int epoch() const { return epoch_; }  ///< how many are done
  epoch_report run_epoch();
  /// The weights, as "conv1.weight", their velocities, as "velocity.conv1.weight", and in the metadata the epoch, the
  /// state of the generator and the settings.
  tensor_file checkpoint() const;
  /// Of the weights and of the outputs for the test images.
  training_result result();

 private:
  std::int64_t evaluate();

  repdl::context& ctx_;
  const digit_data& data_;
  cnn_settings settings_;
  repdl::generator random_;
  cnn network_;
  int epoch_ = 0;
  repdl::tensor test_images_, test_outputs_;
};

/// Trains from the seed to the last epoch and reports after every epoch.
training_result train_cnn(repdl::context& ctx, const digit_data& data, const cnn_settings& settings = {},
                          const std::function<void(const epoch_report&)>& report = {});

/// What `train_cnn` ends with for the default settings, on every machine (digits/cnn_fingerprint.txt).
std::string_view published_cnn_fingerprint();

/// The learning rate of an epoch, from 1.
double rate_of(const cnn_settings& settings, int epoch);

/// Pixels of distorted images are multiples of 1 / distorted_one.
inline constexpr std::int64_t distorted_one = std::int64_t{16} << 14;
inline constexpr std::int64_t moves_per_image = 6;
/// The images of a set in the given order, (images, 64), in integers from 0 to distorted_one. `moves`: empty, or for
/// each image of the result six integers (a, b, c, d, e, f): pixel (y, x) is the bilinear interpolation at
/// (y + (a y' + b x') / 64 + e / 16, x + (c y' + d x') / 64 + f / 16), (y', x') counted from the middle of the image;
/// outside it there is 0.
std::vector<std::int64_t> distorted(const image_set& set, std::span<const std::int64_t> order,
                                    std::span<const std::int64_t> moves);

}  // namespace examples
