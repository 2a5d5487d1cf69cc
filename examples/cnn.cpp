#include "examples/cnn.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <librepdl/librepdl.hpp>
#include <numeric>
#include <utility>

namespace examples {
namespace {

using repdl::const_tensor_view;
using repdl::dtype;
using repdl::sizes;
using repdl::tensor;
using repdl::tensor_view;

constexpr std::int64_t side = 8;  // of an image
constexpr std::string_view velocity_prefix = "velocity.";

const repdl::max_pool2d_options halve{.kernel = 2};
const repdl::conv2d_options same_size{.padding = 1};  // 3 x 3 kernels

tensor zeros(repdl::context& ctx, const sizes& shape) {
  return {ctx, std::vector<float>(static_cast<std::size_t>(repdl::element_count(shape))), shape};
}

std::vector<std::int64_t> in_order(const image_set& set) {
  std::vector<std::int64_t> order(set.labels.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// (images, 1, 8, 8), pixels from 0 to 1.
tensor images_of(repdl::context& ctx, const image_set& set, std::span<const std::int64_t> order,
                 std::span<const std::int64_t> moves = {}) {
  const std::vector<std::int64_t> integers = distorted(set, order, moves);
  const std::vector<float> pixels(integers.begin(), integers.end());  // below 2^24: exact
  tensor images(ctx, pixels, {static_cast<std::int64_t>(order.size()), 1, side, side});
  const tensor scale(ctx, std::vector<float>{1.0f / distorted_one}, {});
  repdl::mul(ctx, images, scale, images);
  return images;
}

tensor labels_of(repdl::context& ctx, const image_set& set, std::span<const std::int64_t> order) {
  std::vector<std::int64_t> labels;
  for (const std::int64_t image : order) labels.push_back(set.labels[static_cast<std::size_t>(image)]);
  return {ctx, labels, {static_cast<std::int64_t>(order.size())}};
}

// ---- checkpoints

std::string text_of(double x) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), x).ptr};
}

// All that a training depends on but the number of epochs.
std::string text_of(const cnn_settings& s) {
  std::string text = "batch " + std::to_string(s.batch) + "; rates";
  for (const rate_until& r : s.rates) text += " " + text_of(r.rate) + " until " + std::to_string(r.epoch);
  text += "; momentum " + text_of(s.momentum) + "; dropout " + text_of(s.dropout);
  return text + "; distortion " + std::to_string(s.distortion) + "; seed " + std::to_string(s.seed);
}

const std::string& metadata_of(const tensor_file& file, const std::string& path, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) throw file_error(path, "'" + key + "' in the metadata", "none");
  return found->second;
}

template <class Integer>
Integer integer_of(const tensor_file& file, const std::string& path, const std::string& key, Integer least) {
  const std::string& text = metadata_of(file, path, key);
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    throw file_error(path, "an integer from " + std::to_string(least) + " as '" + key + "'", "'" + text + "'");
  }
  return value;
}

stored_tensor stored(repdl::context& ctx, std::string name, const tensor& b) {
  stored_tensor t{std::move(name), b.type(), b.shape(), {}};
  t.bytes.resize(static_cast<std::size_t>(b.count()) * repdl::size_of(t.type));
  ctx.copy(t.bytes.data(), b.view().data(), t.bytes.size());
  return t;
}

void load(repdl::context& ctx, const tensor_file& file, const std::string& path, const std::string& name, tensor& to) {
  const auto found =
      std::find_if(file.tensors.begin(), file.tensors.end(), [&](const stored_tensor& t) { return t.name == name; });
  if (found == file.tensors.end()) throw file_error(path, "a tensor '" + name + "'", "none");
  if (found->view().spec() != to.view().spec()) {
    throw file_error(path, "'" + name + "' as f32 " + repdl::to_string(to.shape()),
                     std::string(repdl::name_of(found->type)) + " " + repdl::to_string(found->shape));
  }
  ctx.copy(to.view().data(), found->bytes.data(), found->bytes.size());
}

}  // namespace

std::vector<std::int64_t> distorted(const image_set& set, std::span<const std::int64_t> order,
                                    std::span<const std::int64_t> moves) {
  constexpr std::int64_t unit = 128;  // of positions, per pixel
  constexpr std::int64_t pixel_scale = distorted_one / 16 / (unit * unit);
  static_assert(pixel_scale * 16 * unit * unit == distorted_one);
  std::vector<std::int64_t> out;
  out.reserve(order.size() * pixels_per_image);
  constexpr std::int64_t still[moves_per_image] = {};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint8_t* image = set.pixels.data() + order[i] * pixels_per_image;
    const std::int64_t* m = moves.empty() ? still : moves.data() + static_cast<std::int64_t>(i) * moves_per_image;
    const auto pixel = [&](std::int64_t y, std::int64_t x) -> std::int64_t {
      return y < 0 || y >= side || x < 0 || x >= side ? 0 : image[y * side + x];
    };
    for (std::int64_t y = 0; y < side; ++y) {
      for (std::int64_t x = 0; x < side; ++x) {
        const std::int64_t from_y = 2 * y - (side - 1);  // twice the distance from the middle
        const std::int64_t from_x = 2 * x - (side - 1);
        const std::int64_t at_y = unit * y + m[0] * from_y + m[1] * from_x + unit / 16 * m[4];
        const std::int64_t at_x = unit * x + m[2] * from_y + m[3] * from_x + unit / 16 * m[5];
        const std::int64_t row = at_y >> 7;  // rounds down
        const std::int64_t col = at_x >> 7;
        const std::int64_t down = at_y - unit * row;
        const std::int64_t right = at_x - unit * col;
        out.push_back(pixel_scale * ((unit - down) * ((unit - right) * pixel(row, col) + right * pixel(row, col + 1)) +
                                     down * ((unit - right) * pixel(row + 1, col) + right * pixel(row + 1, col + 1))));
      }
    }
  }
  return out;
}

double rate_of(const cnn_settings& s, int epoch) {
  for (const rate_until& r : s.rates) {
    if (epoch <= r.epoch) return r.rate;
  }
  return s.rates.back().rate;
}

// ---- the network

cnn::activations::activations(repdl::context& ctx, const cnn_settings& s, std::int64_t n)
    : conv1(ctx, dtype::f32, {n, s.channels1, side, side}),
      relu1(ctx, dtype::f32, {n, s.channels1, side, side}),
      conv2(ctx, dtype::f32, {n, s.channels2, side, side}),
      relu2(ctx, dtype::f32, {n, s.channels2, side, side}),
      pool(ctx, dtype::f32, {n, s.channels2, side / 2, side / 2}),
      linear1(ctx, dtype::f32, {n, s.hidden}),
      relu3(ctx, dtype::f32, {n, s.hidden}),
      dropped(ctx, dtype::f32, {n, s.hidden}),
      outputs(ctx, dtype::f32, {n, digit_classes}) {}

tensor_view cnn::activations::flat() {
  const sizes& shape = pool.shape();
  return pool.view().reshape({shape[0], shape[1] * shape[2] * shape[3]});
}

cnn::cnn(repdl::context& ctx, repdl::generator& random, const cnn_settings& s)
    : ctx_(ctx), settings_(s), one_(ctx, std::vector<float>{1}, {}), batch_(ctx, s, s.batch), error_(ctx, s, s.batch) {
  const auto add = [&](std::string_view name, const sizes& shape) {
    parameters_.push_back({name, zeros(ctx, shape), zeros(ctx, shape), zeros(ctx, shape)});
  };
  add("conv1.weight", {s.channels1, 1, 3, 3});
  add("conv1.bias", {s.channels1});
  add("conv2.weight", {s.channels2, s.channels1, 3, 3});
  add("conv2.bias", {s.channels2});
  add("linear1.weight", {s.hidden, s.channels2 * (side / 2) * (side / 2)});
  add("linear1.bias", {s.hidden});
  add("linear2.weight", {digit_classes, s.hidden});
  add("linear2.bias", {digit_classes});
  const double* stddev = s.stddev;
  for (const which w : {conv1_weight, conv2_weight, linear1_weight, linear2_weight}) {
    repdl::normal(ctx, random, value(w), {.stddev = *stddev++});
  }
}

void cnn::forward(const const_tensor_view& images, activations& a) {
  repdl::conv2d(ctx_, images, value(conv1_weight), value(conv1_bias), a.conv1, same_size);
  repdl::relu(ctx_, a.conv1, a.relu1);
  repdl::conv2d(ctx_, a.relu1, value(conv2_weight), value(conv2_bias), a.conv2, same_size);
  repdl::relu(ctx_, a.conv2, a.relu2);
  repdl::max_pool2d(ctx_, a.relu2, a.pool, halve);
  repdl::matmul(ctx_, a.flat(), value(linear1_weight), value(linear1_bias), a.linear1, {.transpose_b = true});
  repdl::relu(ctx_, a.linear1, a.relu3);
}

void cnn::output(const const_tensor_view& hidden, const tensor_view& outputs) {
  repdl::matmul(ctx_, hidden, value(linear2_weight), value(linear2_bias), outputs, {.transpose_b = true});
}

void cnn::step(const const_tensor_view& images, const const_tensor_view& labels, const tensor_view& loss, double rate,
               repdl::generator& random) {
  activations& a = batch_;
  activations& e = error_;
  const repdl::generator before = random;
  const bool dropout = settings_.dropout != 0;
  const tensor& hidden = dropout ? a.dropped : a.relu3;
  forward(images, a);
  if (dropout) repdl::dropout(ctx_, random, a.relu3, a.dropped, settings_.dropout);
  output(hidden, a.outputs);
  repdl::cross_entropy(ctx_, a.outputs, labels, loss);

  repdl::cross_entropy_backward(ctx_, one_, a.outputs, labels, e.outputs);
  repdl::matmul(ctx_, e.outputs, hidden, gradient(linear2_weight), {.transpose_a = true});
  repdl::sum(ctx_, e.outputs, gradient(linear2_bias), {.axis = 0});
  repdl::matmul(ctx_, e.outputs, value(linear2_weight), dropout ? e.dropped : e.relu3);
  if (dropout) repdl::dropout_backward(ctx_, before, e.dropped, e.relu3, settings_.dropout);
  repdl::relu_backward(ctx_, e.relu3, a.linear1, e.linear1);
  repdl::matmul(ctx_, e.linear1, a.flat(), gradient(linear1_weight), {.transpose_a = true});
  repdl::sum(ctx_, e.linear1, gradient(linear1_bias), {.axis = 0});
  repdl::matmul(ctx_, e.linear1, value(linear1_weight), e.flat());
  repdl::max_pool2d_backward(ctx_, e.pool, a.relu2, e.relu2, halve);
  repdl::relu_backward(ctx_, e.relu2, a.conv2, e.conv2);
  repdl::conv2d_backward_w(ctx_, e.conv2, a.relu1, gradient(conv2_weight), same_size);
  repdl::conv2d_backward_bias(ctx_, e.conv2, gradient(conv2_bias));
  repdl::conv2d_backward_x(ctx_, e.conv2, value(conv2_weight), e.relu1, same_size);
  repdl::relu_backward(ctx_, e.relu1, a.conv1, e.conv1);
  repdl::conv2d_backward_w(ctx_, e.conv1, images, gradient(conv1_weight), same_size);
  repdl::conv2d_backward_bias(ctx_, e.conv1, gradient(conv1_bias));

  std::vector<repdl::sgd_tensor> all;
  for (parameter& p : parameters_) all.push_back({p.value, p.gradient, p.velocity});
  repdl::sgd(ctx_, all, {.lr = rate, .momentum = settings_.momentum});
}

void cnn::evaluate(const const_tensor_view& images, const tensor_view& outputs) {
  activations a(ctx_, settings_, images.shape()[0]);
  forward(images, a);
  output(a.relu3, outputs);
}

// ---- training

cnn_training::cnn_training(repdl::context& ctx, const digit_data& data, const cnn_settings& settings)
    : ctx_(ctx),
      data_(data),
      settings_(settings),
      random_{.seed = settings.seed},
      network_(ctx, random_, settings),
      test_images_(images_of(ctx, data.test, in_order(data.test))),
      test_outputs_(ctx, dtype::f32, {data.test.size(), digit_classes}) {}

cnn_training::cnn_training(repdl::context& ctx, const digit_data& data, const cnn_settings& settings,
                           const tensor_file& file, const std::string& path)
    : cnn_training(ctx, data, settings) {
  const std::string& saved = metadata_of(file, path, "settings");
  if (saved != text_of(settings)) throw file_error(path, "the settings " + text_of(settings), saved);
  epoch_ = integer_of(file, path, "epoch", 0);
  random_.seed = integer_of<std::uint64_t>(file, path, "generator.seed", 0);
  random_.stream = integer_of<std::uint64_t>(file, path, "generator.stream", 0);
  for (parameter& p : network_.parameters()) {
    const std::string name(p.name);
    load(ctx, file, path, name, p.value);
    load(ctx, file, path, std::string(velocity_prefix) + name, p.velocity);
  }
  if (file.tensors.size() != 2 * network_.parameters().size()) {
    throw file_error(path, std::to_string(2 * network_.parameters().size()) + " tensors",
                     std::to_string(file.tensors.size()));
  }
}

tensor_file cnn_training::checkpoint() const {
  tensor_file file;
  file.metadata = {{"producer", "librepdl's example of a convolutional network"},
                   {"settings", text_of(settings_)},
                   {"epoch", std::to_string(epoch_)},
                   {"generator.seed", std::to_string(random_.seed)},
                   {"generator.stream", std::to_string(random_.stream)}};
  for (const parameter& p : network_.parameters()) file.tensors.push_back(stored(ctx_, std::string(p.name), p.value));
  for (const parameter& p : network_.parameters()) {
    file.tensors.push_back(stored(ctx_, std::string(velocity_prefix).append(p.name), p.velocity));
  }
  return file;
}

epoch_report cnn_training::run_epoch() {
  ++epoch_;
  const std::int64_t images = data_.train.size();
  tensor order(ctx_, dtype::i64, {images});
  repdl::permutation(ctx_, random_, order);
  const std::vector<std::int64_t> shuffled = order.to_vector<std::int64_t>();
  tensor moves(ctx_, dtype::i64, {images, moves_per_image});
  repdl::randint(ctx_, random_, moves, {.low = -settings_.distortion, .high = settings_.distortion + 1});
  const tensor inputs = images_of(ctx_, data_.train, shuffled, moves.to_vector<std::int64_t>());
  const tensor labels = labels_of(ctx_, data_.train, shuffled);
  const std::int64_t steps = images / settings_.batch;
  tensor losses(ctx_, dtype::f32, {steps});
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t first = i * settings_.batch;
    const std::int64_t end = first + settings_.batch;
    network_.step(inputs.view().slice(0, first, end), labels.view().slice(0, first, end),
                  losses.view().slice(0, i, i + 1).reshape({}), rate_of(settings_, epoch_), random_);
  }
  tensor loss(ctx_, dtype::f32, {});
  repdl::mean(ctx_, losses, loss);
  return {epoch_, loss.to_vector<float>()[0], evaluate(), data_.test.size()};
}

std::int64_t cnn_training::evaluate() {
  network_.evaluate(test_images_, test_outputs_);
  tensor answers(ctx_, dtype::i64, {data_.test.size()});
  repdl::argmax(ctx_, test_outputs_, answers, {.axis = 1});
  const std::vector<std::int64_t> read = answers.to_vector<std::int64_t>();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < read.size(); ++i) correct += read[i] == data_.test.labels[i] ? 1 : 0;
  return correct;
}

training_result cnn_training::result() {
  training_result r{.correct = evaluate(), .tests = data_.test.size(), .fingerprint = {}};
  std::vector<const_tensor_view> identity;
  for (const parameter& p : network_.parameters()) identity.push_back(p.value);
  identity.push_back(test_outputs_);
  r.fingerprint = repdl::fingerprint(ctx_, identity);
  return r;
}

training_result train_cnn(repdl::context& ctx, const digit_data& data, const cnn_settings& settings,
                          const std::function<void(const epoch_report&)>& report) {
  cnn_training training(ctx, data, settings);
  while (training.epoch() < settings.epochs) {
    const epoch_report r = training.run_epoch();
    if (report) report(r);
  }
  return training.result();
}

}  // namespace examples
