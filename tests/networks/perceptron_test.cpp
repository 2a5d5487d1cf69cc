// The example's training: the oracle trains the same perceptron with MPFR and GMP, operation by operation, and must end
// in the same fingerprint. So the published fingerprint is a value of the contract, not of the library.
#include "examples/perceptron.hpp"

#include <doctest/doctest.h>
#include <xmmintrin.h>

#include <cstring>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "reference/evaluate.hpp"

namespace {

using examples::digit_classes;
using examples::digits;
using examples::image_set;
using examples::pixels_per_image;
using examples::training_settings;
using repdl::reference::array;
using repdl::reference::evaluate;
using index_list = std::vector<std::int64_t>;

array floats(const std::vector<float>& values, const index_list& shape) {
  array a(repdl::dtype::f32, shape);
  std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}

array rows(const array& a, std::int64_t first, std::int64_t end) {
  array part(a.type, {end - first, a.shape[1]});
  const std::size_t row = a.bytes.size() / static_cast<std::size_t>(a.shape[0]);
  std::memcpy(part.bytes.data(), a.bytes.data() + row * static_cast<std::size_t>(first), part.bytes.size());
  return part;
}

array inputs_of(const image_set& set, const index_list& order) {
  std::vector<float> x;
  for (const std::int64_t image : order) {
    for (int p = 0; p < pixels_per_image; ++p) {
      x.push_back(set.pixels[static_cast<std::size_t>(image * pixels_per_image + p)]);
    }
  }
  return evaluate("mul",
                  {floats(x, {static_cast<std::int64_t>(order.size()), pixels_per_image}), floats({0.0625f}, {})});
}

array targets_of(const image_set& set, const index_list& order) {
  std::vector<float> t;
  for (const std::int64_t image : order) {
    for (int digit = 0; digit < digit_classes; ++digit) {
      t.push_back(set.labels[static_cast<std::size_t>(image)] == digit ? 1 : 0);
    }
  }
  return floats(t, {static_cast<std::int64_t>(order.size()), digit_classes});
}

// A tensor that is trained, and its speed.
struct trained_tensor {
  array value;
  array speed;

  explicit trained_tensor(array v) : value(std::move(v)), speed(value.type, value.shape) {}
  void descend(const array& gradient, const training_settings& s) {
    speed = evaluate("fma", {floats({s.momentum}, {}), speed, gradient});
    value = evaluate("fma", {floats({-s.rate}, {}), speed, value});
  }
};

std::string oracle_fingerprint(const training_settings& s) {
  std::int64_t stream = 0;
  const auto seed = static_cast<std::int64_t>(s.seed);
  const auto weights = [&](const index_list& shape, double bound) {
    return evaluate("uniform", {},
                    {{"shape", shape}, {"seed", seed}, {"stream", stream++}, {"low", -bound}, {"high", bound}});
  };
  trained_tensor w1(weights({pixels_per_image, s.hidden}, s.first_bound));
  trained_tensor b1(array(repdl::dtype::f32, {s.hidden}));
  trained_tensor w2(weights({s.hidden, digit_classes}, s.second_bound));
  trained_tensor b2(array(repdl::dtype::f32, {digit_classes}));

  const std::int64_t images = digits().train.size();
  const repdl::attributes columns{{"axis", index_list{0}}};
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    const array order = evaluate("permutation", {}, {{"n", images}, {"seed", seed}, {"stream", stream++}});
    index_list shuffled(static_cast<std::size_t>(images));
    std::memcpy(shuffled.data(), order.bytes.data(), order.bytes.size());
    const array inputs = inputs_of(digits().train, shuffled);
    const array targets = targets_of(digits().train, shuffled);
    for (std::int64_t first = 0; first < images; first += s.batch) {
      const array x = rows(inputs, first, first + s.batch);
      const array hidden_in = evaluate("matmul", {x, w1.value, b1.value});
      const array hidden = evaluate("relu", {hidden_in});
      const array y = evaluate("matmul", {hidden, w2.value, b2.value});
      const array error = evaluate("sub", {y, rows(targets, first, first + s.batch)});
      const array hidden_error = evaluate("matmul", {error, w2.value}, {{"transpose_b", true}});
      const array hidden_in_error = evaluate("relu_backward", {hidden_error, hidden_in});
      w2.descend(evaluate("matmul", {hidden, error}, {{"transpose_a", true}}), s);
      b2.descend(evaluate("sum", {error}, columns), s);
      w1.descend(evaluate("matmul", {x, hidden_in_error}, {{"transpose_a", true}}), s);
      b1.descend(evaluate("sum", {hidden_in_error}, columns), s);
    }
  }

  index_list all(digits().test.labels.size());
  std::iota(all.begin(), all.end(), 0);
  const array hidden = evaluate("relu", {evaluate("matmul", {inputs_of(digits().test, all), w1.value, b1.value})});
  const array outputs = evaluate("matmul", {hidden, w2.value, b2.value});
  std::vector<repdl::const_tensor_view> identity;
  for (const array* a : std::initializer_list<const array*>{&w1.value, &b1.value, &w2.value, &b2.value, &outputs}) {
    identity.emplace_back(a->bytes.data(), a->type, repdl::sizes(std::span<const std::int64_t>(a->shape)));
  }
  repdl::context ctx;
  return repdl::fingerprint(ctx, identity);
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("perceptron: two epochs end in the oracle's fingerprint, on every instruction set, thread count and tier") {
  training_settings s;
  s.epochs = 2;
  const std::string want = oracle_fingerprint(s);
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    for (const int threads : {1, 3}) {
      for (const repdl::tier first : {repdl::tier::proved, repdl::tier::double_double}) {
        repdl::context ctx({.threads = threads, .isa = isa.name, .first_tier = first});
        CHECK(examples::train(ctx, digits(), s).fingerprint == want);
      }
    }
  }
}

TEST_CASE("perceptron: the published fingerprint, for every number of threads and any floating-point environment") {
  const unsigned ordinary = _mm_getcsr();
  // Round to nearest; then upward, with FTZ and DAZ.
  for (const unsigned environment : {ordinary, (ordinary & ~0x6000u) | 0x4000u | 0x8040u}) {
    for (const int threads : {1, 2, 3, 7}) {
      repdl::context ctx({.threads = threads});
      _mm_setcsr(environment);
      const examples::training_result result = examples::train(ctx, digits());
      _mm_setcsr(ordinary);
      CHECK(result.fingerprint == examples::published_fingerprint());
      CHECK(result.correct * 100 > result.tests * 94);
    }
  }
}

// About a minute: with the long checks (--no-skip).
TEST_CASE("perceptron: the published fingerprint is the oracle's" * doctest::skip()) {
  CHECK(oracle_fingerprint({}) == examples::published_fingerprint());
}

}  // namespace

TEST_SUITE_END();
