#include "examples/perceptron.hpp"

#include <librepdl/librepdl.hpp>
#include <numeric>

namespace examples {
namespace {

using repdl::const_tensor_view;
using repdl::dtype;
using repdl::sizes;
using repdl::tensor;
using repdl::tensor_view;

tensor zeros(repdl::context& ctx, const sizes& shape) {
  return {ctx, std::vector<float>(static_cast<std::size_t>(repdl::element_count(shape))), shape};
}

tensor constant(repdl::context& ctx, float value) { return {ctx, std::vector<float>{value}, {}}; }

std::vector<std::int64_t> in_order(const image_set& set) {
  std::vector<std::int64_t> order(set.labels.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

layer::layer(repdl::context& ctx, repdl::generator& random, std::int64_t inputs, std::int64_t outputs, double bound)
    : weight(ctx, dtype::f32, {inputs, outputs}),
      bias(zeros(ctx, {outputs})),
      weight_speed(zeros(ctx, {inputs, outputs})),
      bias_speed(zeros(ctx, {outputs})),
      weight_gradient(ctx, dtype::f32, {inputs, outputs}),
      bias_gradient(ctx, dtype::f32, {outputs}) {
  repdl::uniform(ctx, random, weight, {.low = -bound, .high = bound});
}

perceptron::perceptron(repdl::context& ctx, repdl::generator& random, const training_settings& s)
    : ctx_(ctx),
      first_(ctx, random, pixels_per_image, s.hidden, s.first_bound),
      second_(ctx, random, s.hidden, digit_classes, s.second_bound),
      momentum_(constant(ctx, s.momentum)),
      minus_rate_(constant(ctx, -s.rate)),
      hidden_in_(ctx, dtype::f32, {s.batch, s.hidden}),
      hidden_(ctx, dtype::f32, {s.batch, s.hidden}),
      outputs_(ctx, dtype::f32, {s.batch, digit_classes}),
      error_(ctx, dtype::f32, {s.batch, digit_classes}),
      squares_(ctx, dtype::f32, {s.batch, digit_classes}),
      hidden_error_(ctx, dtype::f32, {s.batch, s.hidden}),
      hidden_in_error_(ctx, dtype::f32, {s.batch, s.hidden}) {}

void perceptron::step(const const_tensor_view& images, const const_tensor_view& targets, const tensor_view& losses) {
  // Forward.
  repdl::matmul(ctx_, images, first_.weight, first_.bias, hidden_in_);
  repdl::relu(ctx_, hidden_in_, hidden_);
  repdl::matmul(ctx_, hidden_, second_.weight, second_.bias, outputs_);
  repdl::sub(ctx_, outputs_, targets, error_);
  repdl::mul(ctx_, error_, error_, squares_);
  repdl::sum(ctx_, squares_, losses, {.axis = 1});

  // Backward. The factor 2 of the derivative of a square is left to the learning rate.
  repdl::matmul(ctx_, hidden_, error_, second_.weight_gradient, {.transpose_a = true});
  repdl::sum(ctx_, error_, second_.bias_gradient, {.axis = 0});
  repdl::matmul(ctx_, error_, second_.weight, hidden_error_, {.transpose_b = true});
  repdl::relu_backward(ctx_, hidden_error_, hidden_in_, hidden_in_error_);
  repdl::matmul(ctx_, images, hidden_in_error_, first_.weight_gradient, {.transpose_a = true});
  repdl::sum(ctx_, hidden_in_error_, first_.bias_gradient, {.axis = 0});

  for (layer* l : {&first_, &second_}) {
    descend(l->weight_gradient, l->weight_speed, l->weight);
    descend(l->bias_gradient, l->bias_speed, l->bias);
  }
}

void perceptron::descend(const tensor& gradient, tensor& speed, tensor& value) {
  repdl::fma(ctx_, momentum_, speed, gradient, speed);
  repdl::fma(ctx_, minus_rate_, speed, value, value);
}

void perceptron::evaluate(const const_tensor_view& images, const tensor_view& outputs) {
  tensor hidden(ctx_, dtype::f32, {images.shape()[0], first_.bias.count()});
  repdl::matmul(ctx_, images, first_.weight, first_.bias, hidden);
  repdl::relu(ctx_, hidden, hidden);
  repdl::matmul(ctx_, hidden, second_.weight, second_.bias, outputs);
}

std::vector<const_tensor_view> perceptron::weights() const {
  return {first_.weight, first_.bias, second_.weight, second_.bias};
}

tensor make_inputs(repdl::context& ctx, const image_set& set, const std::vector<std::int64_t>& order) {
  std::vector<float> pixels;
  for (const std::int64_t image : order) {
    for (int p = 0; p < pixels_per_image; ++p) {
      pixels.push_back(set.pixels[static_cast<std::size_t>(image * pixels_per_image + p)]);
    }
  }
  tensor inputs(ctx, pixels, {static_cast<std::int64_t>(order.size()), pixels_per_image});
  const tensor scale = constant(ctx, 0.0625f);
  repdl::mul(ctx, inputs, scale, inputs);
  return inputs;
}

tensor make_targets(repdl::context& ctx, const image_set& set, const std::vector<std::int64_t>& order) {
  std::vector<float> targets;
  for (const std::int64_t image : order) {
    const std::int64_t label = set.labels[static_cast<std::size_t>(image)];
    for (int digit = 0; digit < digit_classes; ++digit) targets.push_back(digit == label ? 1 : 0);
  }
  return {ctx, targets, {static_cast<std::int64_t>(order.size()), digit_classes}};
}

training_result train(repdl::context& ctx, const digit_data& data, const training_settings& settings,
                      const std::function<void(const epoch_report&)>& report) {
  repdl::generator random{.seed = settings.seed};
  perceptron network(ctx, random, settings);
  const std::int64_t images = data.train.size();

  const tensor test_inputs = make_inputs(ctx, data.test, in_order(data.test));
  tensor test_outputs(ctx, dtype::f32, {data.test.size(), digit_classes});
  tensor answers(ctx, dtype::i64, {data.test.size()});
  tensor order(ctx, dtype::i64, {images});
  tensor losses(ctx, dtype::f32, {images});
  tensor loss(ctx, dtype::f32, {});

  training_result result{.correct = 0, .tests = data.test.size()};
  for (int epoch = 1; epoch <= settings.epochs; ++epoch) {
    repdl::permutation(ctx, random, order);
    const std::vector<std::int64_t> shuffled = order.to_vector<std::int64_t>();
    const tensor inputs = make_inputs(ctx, data.train, shuffled);
    const tensor targets = make_targets(ctx, data.train, shuffled);
    for (std::int64_t first = 0; first < images; first += settings.batch) {
      const std::int64_t end = first + settings.batch;
      network.step(inputs.view().slice(0, first, end), targets.view().slice(0, first, end),
                   losses.view().slice(0, first, end));
    }
    repdl::mean(ctx, losses, loss);

    network.evaluate(test_inputs, test_outputs);
    repdl::argmax(ctx, test_outputs, answers, {.axis = 1});
    const std::vector<std::int64_t> read = answers.to_vector<std::int64_t>();
    result.correct = 0;
    for (std::size_t i = 0; i < read.size(); ++i) result.correct += read[i] == data.test.labels[i] ? 1 : 0;
    if (report) report({epoch, loss.to_vector<float>()[0], result.correct, result.tests});
  }

  std::vector<const_tensor_view> identity = network.weights();
  identity.push_back(test_outputs);
  result.fingerprint = repdl::fingerprint(ctx, identity);
  return result;
}

}  // namespace examples
