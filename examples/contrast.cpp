#include "examples/contrast.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <librepdl/ops.hpp>
#include <numeric>
#include <utility>

namespace examples {
namespace {

constexpr std::int64_t side = 8;  // of an image
constexpr std::int64_t area = side * side;
constexpr std::int64_t taps = 9;  // of a kernel
constexpr std::int64_t pooled_side = side / 2;
constexpr std::int64_t pooled_area = pooled_side * pooled_side;

using floats = std::vector<float>;

floats make(std::int64_t count) { return floats(static_cast<std::size_t>(count)); }

// A view of a matrix, with strides so that it can be transposed.
struct matrix {
  float* data;
  std::int64_t rows, cols, row_stride, col_stride;

  matrix(float* d, std::int64_t r, std::int64_t c) : matrix(d, r, c, c, 1) {}
  matrix(float* d, std::int64_t r, std::int64_t c, std::int64_t rs, std::int64_t cs)
      : data(d), rows(r), cols(c), row_stride(rs), col_stride(cs) {}
  float& at(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * col_stride]; }
  matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

// The index that comes `k`-th of n.
std::int64_t pick(summation order, std::int64_t k, std::int64_t n) {
  return order == summation::forwards ? k : n - 1 - k;
}

// out = a b. The rows of b and out are contiguous.
void multiply(const matrix& a, const matrix& b, const matrix& out, summation order) {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    float* const row = out.data + i * out.row_stride;
    std::fill_n(row, out.cols, 0.0f);
    for (std::int64_t k = 0; k < a.cols; ++k) {
      const std::int64_t at = pick(order, k, a.cols);
      const float factor = a.at(i, at);
      const float* const from = b.data + at * b.row_stride;
      for (std::int64_t j = 0; j < out.cols; ++j) row[j] += factor * from[j];
    }
  }
}

void add_to_rows(const floats& bias, const matrix& out) {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    for (std::int64_t j = 0; j < out.cols; ++j) out.at(i, j) += bias[static_cast<std::size_t>(j)];
  }
}

// out[j] = the sum of column j.
void sum_columns(const matrix& a, floats& out, summation order) {
  std::fill(out.begin(), out.end(), 0.0f);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) out[static_cast<std::size_t>(j)] += a.at(pick(order, i, a.rows), j);
  }
}

// Images are (n, y, x, channel) here, kernels (channel, tap, output channel), so that a convolution is a product of
// matrices: of a row per pixel that holds what the kernel sees there, 0 outside the image, and the kernel.
void windows_of(const floats& images, std::int64_t channels, floats& windows) {
  const std::int64_t n = static_cast<std::int64_t>(images.size()) / (area * channels);
  float* out = windows.data();
  for (std::int64_t image = 0; image < n; ++image) {
    const float* from = images.data() + image * area * channels;
    for (std::int64_t pixel = 0; pixel < area; ++pixel) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t y = pixel / side + tap / 3 - 1;
          const std::int64_t x = pixel % side + tap % 3 - 1;
          *out++ = y < 0 || y >= side || x < 0 || x >= side ? 0 : from[(y * side + x) * channels + c];
        }
      }
    }
  }
}

// The gradient of that: every pixel sums over the windows that hold it.
void from_windows(const floats& windows, std::int64_t channels, floats& images) {
  std::fill(images.begin(), images.end(), 0.0f);
  const std::int64_t n = static_cast<std::int64_t>(images.size()) / (area * channels);
  const float* in = windows.data();
  for (std::int64_t image = 0; image < n; ++image) {
    float* to = images.data() + image * area * channels;
    for (std::int64_t pixel = 0; pixel < area; ++pixel) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t tap = 0; tap < taps; ++tap, ++in) {
          const std::int64_t y = pixel / side + tap / 3 - 1;
          const std::int64_t x = pixel % side + tap % 3 - 1;
          if (y >= 0 && y < side && x >= 0 && x < side) to[(y * side + x) * channels + c] += *in;
        }
      }
    }
  }
}

void relu_of(const floats& x, floats& out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
void relu_backward(floats& g, const floats& x) {
  for (std::size_t i = 0; i < x.size(); ++i) g[i] = x[i] > 0 ? g[i] : 0;
}

// Where in x is the k-th element of the window of pooled element i, and the window's greatest.
std::int64_t in_window(std::int64_t i, std::int64_t k, std::int64_t channels) {
  const std::int64_t c = i % channels;
  const std::int64_t x = 2 * (i / channels % pooled_side) + k % 2;
  const std::int64_t y = 2 * (i / channels / pooled_side % pooled_side) + k / 2;
  return ((i / channels / pooled_area * side + y) * side + x) * channels + c;
}
std::int64_t greatest_of(const floats& x, std::int64_t i, std::int64_t channels) {
  std::int64_t best = in_window(i, 0, channels);
  for (std::int64_t k = 1; k < 4; ++k) {
    const std::int64_t at = in_window(i, k, channels);
    if (x[static_cast<std::size_t>(at)] > x[static_cast<std::size_t>(best)]) best = at;
  }
  return best;
}

struct trained_tensor {
  floats value, velocity, gradient;
  explicit trained_tensor(std::int64_t n) : value(make(n)), velocity(make(n)), gradient(make(n)) {}

  void descend(float rate, float momentum) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      value[i] -= rate * velocity[i];
    }
  }
};

class ordinary_network {
 public:
  ordinary_network(repdl::context& ctx, repdl::generator& random, const cnn_settings& s, summation order)
      : s_(s),
        order_(order),
        w1_(taps * s.channels1),
        b1_(s.channels1),
        w2_(s.channels1 * taps * s.channels2),
        b2_(s.channels2),
        w3_(pooled_area * s.channels2 * s.hidden),
        b3_(s.hidden),
        w4_(s.hidden * digit_classes),
        b4_(digit_classes) {
    // As the convolutional network draws and stores them: (output, input), and channels before pixels.
    const auto draw = [&](trained_tensor& t, std::int64_t outputs, double stddev) {
      floats w = make(static_cast<std::int64_t>(t.value.size()));
      repdl::normal(ctx, random, w, {.stddev = stddev});
      const std::int64_t inputs = static_cast<std::int64_t>(w.size()) / outputs;
      for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t i = 0; i < inputs; ++i) {
          t.value[static_cast<std::size_t>(i * outputs + o)] = w[static_cast<std::size_t>(o * inputs + i)];
        }
      }
    };
    draw(w1_, s.channels1, s.stddev[0]);
    draw(w2_, s.channels2, s.stddev[1]);
    draw(w3_, s.hidden, s.stddev[2]);
    draw(w4_, digit_classes, s.stddev[3]);
  }

  // Outputs (n, 10) of images (n, 64).
  floats forward(floats images) {
    const std::int64_t n = static_cast<std::int64_t>(images.size()) / area;
    const std::int64_t pixels = n * area;
    images_ = std::move(images);
    convolve(images_, 1, w1_, b1_, s_.channels1, windows1_, conv1_);
    relu1_.resize(conv1_.size());
    relu_of(conv1_, relu1_);
    convolve(relu1_, s_.channels1, w2_, b2_, s_.channels2, windows2_, conv2_);
    relu2_.resize(conv2_.size());
    relu_of(conv2_, relu2_);
    // Into (channel, pixel), as the linear layer's weights are.
    pool_ = make(pixels / 4 * s_.channels2);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(pool_.size()); ++i) {
      pool_[static_cast<std::size_t>(flat(i))] = relu2_[static_cast<std::size_t>(greatest_of(relu2_, i, s_.channels2))];
    }
    linear1_ = make(n * s_.hidden);
    multiply({pool_.data(), n, features()}, {w3_.value.data(), features(), s_.hidden}, {linear1_.data(), n, s_.hidden},
             order_);
    add_to_rows(b3_.value, {linear1_.data(), n, s_.hidden});
    relu3_.resize(linear1_.size());
    relu_of(linear1_, relu3_);
    floats outputs = make(n * digit_classes);
    multiply({relu3_.data(), n, s_.hidden}, {w4_.value.data(), s_.hidden, digit_classes},
             {outputs.data(), n, digit_classes}, order_);
    add_to_rows(b4_.value, {outputs.data(), n, digit_classes});
    return outputs;
  }

  void step(floats images, const std::int64_t* labels, float rate) {
    floats e = forward(std::move(images));
    const std::int64_t n = static_cast<std::int64_t>(e.size()) / digit_classes;
    for (std::int64_t i = 0; i < n; ++i) softmax_gradient(e.data() + i * digit_classes, labels[i], n);

    const matrix m4(e.data(), n, digit_classes);
    multiply(matrix(relu3_.data(), n, s_.hidden).transposed(), m4, {w4_.gradient.data(), s_.hidden, digit_classes},
             order_);
    sum_columns(m4, b4_.gradient, order_);
    floats e3 = times_transposed(m4, w4_, s_.hidden);
    relu_backward(e3, linear1_);
    const matrix m3(e3.data(), n, s_.hidden);
    multiply(matrix(pool_.data(), n, features()).transposed(), m3, {w3_.gradient.data(), features(), s_.hidden},
             order_);
    sum_columns(m3, b3_.gradient, order_);
    const floats pool_error = times_transposed(m3, w3_, features());
    floats e2 = make(static_cast<std::int64_t>(relu2_.size()));
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(pool_error.size()); ++i) {
      e2[static_cast<std::size_t>(greatest_of(relu2_, i, s_.channels2))] =
          pool_error[static_cast<std::size_t>(flat(i))];
    }
    relu_backward(e2, conv2_);
    const matrix m2(e2.data(), n * area, s_.channels2);
    const std::int64_t seen = s_.channels1 * taps;
    multiply(matrix(windows2_.data(), n * area, seen).transposed(), m2, {w2_.gradient.data(), seen, s_.channels2},
             order_);
    sum_columns(m2, b2_.gradient, order_);
    floats e1 = make(static_cast<std::int64_t>(relu1_.size()));
    from_windows(times_transposed(m2, w2_, seen), s_.channels1, e1);
    relu_backward(e1, conv1_);
    const matrix m1(e1.data(), n * area, s_.channels1);
    multiply(matrix(windows1_.data(), n * area, taps).transposed(), m1, {w1_.gradient.data(), taps, s_.channels1},
             order_);
    sum_columns(m1, b1_.gradient, order_);
    for (trained_tensor* t : tensors()) t->descend(rate, static_cast<float>(s_.momentum));
  }

  std::vector<trained_tensor*> tensors() { return {&w1_, &b1_, &w2_, &b2_, &w3_, &b3_, &w4_, &b4_}; }

 private:
  std::int64_t features() const { return pooled_area * s_.channels2; }
  // (n, pixel, channel) -> (n, channel, pixel).
  std::int64_t flat(std::int64_t i) const {
    const std::int64_t c = i % s_.channels2;
    const std::int64_t pixel = i / s_.channels2 % pooled_area;
    return (i / features() * s_.channels2 + c) * pooled_area + pixel;
  }

  void convolve(const floats& images, std::int64_t channels, trained_tensor& w, const trained_tensor& b,
                std::int64_t outputs, floats& windows, floats& out) const {
    const std::int64_t pixels = static_cast<std::int64_t>(images.size()) / channels;
    windows.resize(images.size() * static_cast<std::size_t>(taps));
    windows_of(images, channels, windows);
    out.resize(static_cast<std::size_t>(pixels * outputs));
    multiply({windows.data(), pixels, channels * taps}, {w.value.data(), channels * taps, outputs},
             {out.data(), pixels, outputs}, order_);
    add_to_rows(b.value, {out.data(), pixels, outputs});
  }

  // m w^T, w being (inputs, m.cols).
  floats times_transposed(const matrix& m, const trained_tensor& w, std::int64_t inputs) const {
    floats transposed = make(inputs * m.cols);
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t j = 0; j < m.cols; ++j) {
        transposed[static_cast<std::size_t>(j * inputs + i)] = w.value[static_cast<std::size_t>(i * m.cols + j)];
      }
    }
    floats out = make(m.rows * inputs);
    multiply(m, {transposed.data(), m.cols, inputs}, {out.data(), m.rows, inputs}, order_);
    return out;
  }

  // y -> (softmax(y) - (i = label)) / n.
  void softmax_gradient(float* y, std::int64_t label, std::int64_t n) const {
    const float greatest = *std::max_element(y, y + digit_classes);
    float sum = 0;
    for (std::int64_t k = 0; k < digit_classes; ++k) {
      float& e = y[pick(order_, k, digit_classes)];
      e = std::exp(e - greatest);
      sum += e;
    }
    for (std::int64_t i = 0; i < digit_classes; ++i) {
      y[i] = (y[i] / sum - static_cast<float>(i == label)) / static_cast<float>(n);
    }
  }

  cnn_settings s_;
  summation order_;
  trained_tensor w1_, b1_, w2_, b2_, w3_, b3_, w4_, b4_;  // weights are (inputs, outputs)
  floats images_, windows1_, conv1_, relu1_, windows2_, conv2_, relu2_, pool_, linear1_, relu3_;
};

floats inputs_of(const image_set& set, const std::vector<std::int64_t>& order, const std::vector<std::int64_t>& moves) {
  floats x;
  for (const std::int64_t p : distorted(set, order, moves)) x.push_back(static_cast<float>(p) / distorted_one);
  return x;
}

}  // namespace

ordinary_result train_ordinary(const digit_data& data, const cnn_settings& s, summation order,
                               const std::function<void()>& after_epoch) {
  repdl::context ctx({.threads = 1});
  repdl::generator random{.seed = s.seed};
  ordinary_network network(ctx, random, s, order);

  const std::int64_t images = data.train.size();
  std::vector<std::int64_t> shuffled(static_cast<std::size_t>(images));
  std::vector<std::int64_t> moves(shuffled.size() * moves_per_image);
  std::vector<std::int64_t> labels(shuffled.size());
  for (int epoch = 1; epoch <= s.epochs; ++epoch) {
    repdl::permutation(ctx, random, shuffled);
    repdl::randint(ctx, random, moves, {.low = -s.distortion, .high = s.distortion + 1});
    const floats inputs = inputs_of(data.train, shuffled, moves);
    std::transform(shuffled.begin(), shuffled.end(), labels.begin(),
                   [&](std::int64_t image) { return data.train.labels[static_cast<std::size_t>(image)]; });
    for (std::int64_t first = 0; first + s.batch <= images; first += s.batch) {
      const auto begin = inputs.begin() + first * area;
      network.step(floats(begin, begin + s.batch * area), labels.data() + first, static_cast<float>(rate_of(s, epoch)));
    }
    if (after_epoch) after_epoch();
  }

  ordinary_result result;
  for (const trained_tensor* t : network.tensors()) {
    result.weights.insert(result.weights.end(), t->value.begin(), t->value.end());
  }
  std::vector<std::int64_t> all(data.test.labels.size());
  std::iota(all.begin(), all.end(), 0);
  result.test_outputs = network.forward(inputs_of(data.test, all, {}));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float* y = result.test_outputs.data() + i * digit_classes;
    result.answers.push_back(std::max_element(y, y + digit_classes) - y);
  }
  return result;
}

}  // namespace examples
