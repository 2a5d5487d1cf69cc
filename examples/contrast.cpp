#include "examples/contrast.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace examples {
namespace {

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

// out = a b, + bias if there is one.
void multiply(const matrix& a, const matrix& b, const float* bias, const matrix& out, summation order) {
  for (std::int64_t i = 0; i < out.rows; ++i) {
    for (std::int64_t j = 0; j < out.cols; ++j) out.at(i, j) = 0;
    for (std::int64_t k = 0; k < a.cols; ++k) {
      const std::int64_t at = pick(order, k, a.cols);
      const float factor = a.at(i, at);
      for (std::int64_t j = 0; j < out.cols; ++j) out.at(i, j) += factor * b.at(at, j);
    }
    if (bias != nullptr) {
      for (std::int64_t j = 0; j < out.cols; ++j) out.at(i, j) += bias[j];
    }
  }
}

// out[j] = the sum of column j.
void sum_columns(const matrix& a, float* out, summation order) {
  std::fill_n(out, a.cols, 0.0f);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) out[j] += a.at(pick(order, i, a.rows), j);
  }
}

void relu_in_place(std::vector<float>& v) {
  for (float& x : v) x = x > 0 ? x : 0;
}

std::vector<float> random_weights(repdl::context& ctx, repdl::generator& random, std::int64_t count, double bound) {
  std::vector<float> w(static_cast<std::size_t>(count));
  repdl::uniform(ctx, random, w, {.low = -bound, .high = bound});
  return w;
}

std::vector<float> inputs_of(const image_set& set, const std::vector<std::int64_t>& order) {
  std::vector<float> x;
  for (const std::int64_t image : order) {
    const std::uint8_t* first = set.pixels.data() + image * pixels_per_image;
    std::transform(first, first + pixels_per_image, std::back_inserter(x),
                   [](std::uint8_t p) { return static_cast<float>(p) / 16; });
  }
  return x;
}

struct trained_tensor {
  std::vector<float> value, speed, gradient;
  explicit trained_tensor(std::vector<float> v) : value(std::move(v)), speed(value.size()), gradient(value.size()) {}

  void descend(const training_settings& s) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      speed[i] = s.momentum * speed[i] + gradient[i];
      value[i] -= s.rate * speed[i];
    }
  }
};

}  // namespace

ordinary_result train_ordinary(const digit_data& data, const training_settings& s, summation order) {
  repdl::context ctx({.threads = 1});
  repdl::generator random{.seed = s.seed};
  const std::int64_t hidden = s.hidden;
  trained_tensor w1(random_weights(ctx, random, pixels_per_image * hidden, s.first_bound));
  trained_tensor b1{std::vector<float>(static_cast<std::size_t>(hidden))};
  trained_tensor w2(random_weights(ctx, random, hidden * digit_classes, s.second_bound));
  trained_tensor b2{std::vector<float>(digit_classes)};
  const matrix m1(w1.value.data(), pixels_per_image, hidden);
  const matrix m2(w2.value.data(), hidden, digit_classes);

  std::vector<float> h(static_cast<std::size_t>(s.batch * hidden));
  std::vector<float> h_error(h.size());
  std::vector<float> error(static_cast<std::size_t>(s.batch * digit_classes));
  const matrix mh(h.data(), s.batch, hidden);
  const matrix mh_error(h_error.data(), s.batch, hidden);
  const matrix m_error(error.data(), s.batch, digit_classes);

  const std::int64_t images = data.train.size();
  std::vector<std::int64_t> shuffled(static_cast<std::size_t>(images));
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    repdl::permutation(ctx, random, shuffled);
    std::vector<float> inputs = inputs_of(data.train, shuffled);
    for (std::int64_t first = 0; first < images; first += s.batch) {
      const matrix x(inputs.data() + first * pixels_per_image, s.batch, pixels_per_image);
      multiply(x, m1, b1.value.data(), mh, order);
      relu_in_place(h);
      multiply(mh, m2, b2.value.data(), m_error, order);
      for (std::int64_t i = 0; i < s.batch; ++i) {
        const std::int64_t image = shuffled[static_cast<std::size_t>(first + i)];
        m_error.at(i, data.train.labels[static_cast<std::size_t>(image)]) -= 1;
      }
      multiply(mh.transposed(), m_error, nullptr, {w2.gradient.data(), hidden, digit_classes}, order);
      sum_columns(m_error, b2.gradient.data(), order);
      multiply(m_error, m2.transposed(), nullptr, mh_error, order);
      for (std::size_t i = 0; i < h.size(); ++i) h_error[i] = h[i] > 0 ? h_error[i] : 0;
      multiply(x.transposed(), mh_error, nullptr, {w1.gradient.data(), pixels_per_image, hidden}, order);
      sum_columns(mh_error, b1.gradient.data(), order);
      for (trained_tensor* t : {&w1, &b1, &w2, &b2}) t->descend(s);
    }
  }

  ordinary_result result;
  for (const trained_tensor* t : {&w1, &b1, &w2, &b2}) {
    result.weights.insert(result.weights.end(), t->value.begin(), t->value.end());
  }
  const std::int64_t tests = data.test.size();
  std::vector<std::int64_t> all(static_cast<std::size_t>(tests));
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> inputs = inputs_of(data.test, all);
  std::vector<float> test_hidden(static_cast<std::size_t>(tests * hidden));
  result.test_outputs.resize(static_cast<std::size_t>(tests * digit_classes));
  multiply({inputs.data(), tests, pixels_per_image}, m1, b1.value.data(), {test_hidden.data(), tests, hidden}, order);
  relu_in_place(test_hidden);
  multiply({test_hidden.data(), tests, hidden}, m2, b2.value.data(), {result.test_outputs.data(), tests, digit_classes},
           order);
  for (std::int64_t i = 0; i < tests; ++i) {
    const float* y = result.test_outputs.data() + i * digit_classes;
    result.answers.push_back(std::max_element(y, y + digit_classes) - y);
  }
  return result;
}

}  // namespace examples
