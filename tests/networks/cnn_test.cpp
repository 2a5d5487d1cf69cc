// The example's convolutional network: the oracle trains the same network with MPFR and GMP, operation by operation,
// and must end in the same fingerprint; and so must a training that was stopped, saved and continued elsewhere. So the
// published fingerprint is a value of the contract, not of the library.
#include "examples/cnn.hpp"

#include <doctest/doctest.h>
#include <xmmintrin.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "examples/contrast.hpp"
#include "reference/evaluate.hpp"
#include "tools/cli/scratch_directory.hpp"

namespace {

using examples::cnn_settings;
using examples::cnn_training;
using examples::digit_classes;
using examples::digit_data;
using examples::digits;
using examples::file_error;
using examples::image_set;
using examples::moves_per_image;
using examples::pixels_per_image;
using examples::tensor_file;
using examples::train_cnn;
using repdl::reference::array;
using repdl::reference::evaluate;
using repdl::reference::evaluate_all;
using repdl::reference::shape_list;

// ---- the oracle's training

array floats(const std::vector<float>& values, const shape_list& shape) {
  array a(repdl::dtype::f32, shape);
  std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
array integers(const std::vector<std::int64_t>& values, const shape_list& shape) {
  array a(repdl::dtype::i64, shape);
  std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
std::vector<std::int64_t> integers_of(const array& a) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(a.count()));
  std::memcpy(v.data(), a.bytes.data(), a.bytes.size());
  return v;
}

// Entries first .. end of the first axis.
array part(const array& a, std::int64_t first, std::int64_t end) {
  shape_list shape = a.shape;
  const std::size_t one = a.bytes.size() / static_cast<std::size_t>(shape[0]);
  shape[0] = end - first;
  array p(a.type, shape);
  std::memcpy(p.bytes.data(), a.bytes.data() + one * static_cast<std::size_t>(first), p.bytes.size());
  return p;
}

array reshaped(array a, shape_list shape) {
  a.shape = std::move(shape);
  return a;
}

array images_of(const image_set& set, const std::vector<std::int64_t>& order, const std::vector<std::int64_t>& moves) {
  const std::vector<std::int64_t> pixels = examples::distorted(set, order, moves);
  return evaluate("mul", {floats({pixels.begin(), pixels.end()}, {static_cast<std::int64_t>(order.size()), 1, 8, 8}),
                          floats({1.0f / examples::distorted_one}, {})});
}

struct trained_tensor {
  array value, velocity, gradient;
};

class oracle_network {
 public:
  oracle_network(const cnn_settings& s) : s_(s) {
    add({s.channels1, 1, 3, 3});
    add({s.channels2, s.channels1, 3, 3});
    add({s.hidden, s.channels2 * 16});
    add({digit_classes, s.hidden});
  }

  repdl::attributes next(repdl::attributes attrs) {
    attrs.push_back({"seed", static_cast<std::int64_t>(s_.seed)});
    attrs.push_back({"stream", stream_++});
    return attrs;
  }

  array forward(const array& images) {
    conv1 = evaluate("conv2d", {images, w(0), b(0)}, padded);
    relu1 = evaluate("relu", {conv1});
    conv2 = evaluate("conv2d", {relu1, w(1), b(1)}, padded);
    relu2 = evaluate("relu", {conv2});
    const array pool = evaluate("max_pool2d", {relu2}, halved);
    flat = reshaped(pool, {pool.shape[0], s_.channels2 * 16});
    linear1 = evaluate("matmul", {flat, w(2), b(2)}, transposed_b);
    return evaluate("relu", {linear1});
  }
  array output(const array& hidden) { return evaluate("matmul", {hidden, w(3), b(3)}, transposed_b); }

  void step(const array& images, const array& labels, double rate) {
    array hidden = forward(images);
    repdl::attributes dropout;
    if (s_.dropout != 0) {
      dropout = next({{"p", s_.dropout}});
      hidden = evaluate("dropout", {hidden}, dropout);
    }
    array e = evaluate("cross_entropy_backward", {floats({1}, {}), output(hidden), labels});
    linear_gradients(3, e, hidden);
    e = evaluate("matmul", {e, w(3)});
    if (s_.dropout != 0) e = evaluate("dropout_backward", {e}, dropout);
    e = evaluate("relu_backward", {e, linear1});
    linear_gradients(2, e, flat);
    e = reshaped(evaluate("matmul", {e, w(2)}), {images.shape[0], s_.channels2, 4, 4});
    e = evaluate("relu_backward", {evaluate("max_pool2d_backward", {e, relu2}, halved), conv2});
    conv_gradients(1, e, relu1);
    repdl::attributes sized = padded;
    sized.push_back({"size", shape_list{8, 8}});
    e = evaluate("relu_backward", {evaluate("conv2d_grad_input", {e, w(1)}, sized), conv1});
    conv_gradients(0, e, images);

    std::vector<array> all;
    for (const trained_tensor& t : tensors) all.insert(all.end(), {t.value, t.gradient, t.velocity});
    const std::vector<array> updated = evaluate_all("sgd", all, {{"lr", rate}, {"momentum", s_.momentum}});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].value = updated[2 * i];
      tensors[i].velocity = updated[2 * i + 1];
    }
  }

  std::vector<trained_tensor> tensors;  // w, b of each layer

 private:
  void add(const shape_list& shape) {
    repdl::attributes attrs = next({{"shape", shape}, {"stddev", s_.stddev[tensors.size() / 2]}});
    tensors.push_back({evaluate("normal", {}, attrs), array(repdl::dtype::f32, shape), {}});
    const array zeros(repdl::dtype::f32, {shape[0]});
    tensors.push_back({zeros, zeros, {}});
  }
  const array& w(std::size_t layer) const { return tensors[2 * layer].value; }
  const array& b(std::size_t layer) const { return tensors[2 * layer + 1].value; }
  void linear_gradients(std::size_t layer, const array& e, const array& in) {
    tensors[2 * layer].gradient = evaluate("matmul", {e, in}, {{"transpose_a", true}});
    tensors[2 * layer + 1].gradient = evaluate("sum", {e}, {{"axis", shape_list{0}}});
  }
  void conv_gradients(std::size_t layer, const array& e, const array& in) {
    repdl::attributes sized = padded;
    sized.push_back({"kernel", shape_list{3, 3}});
    tensors[2 * layer].gradient = evaluate("conv2d_grad_weight", {e, in}, sized);
    tensors[2 * layer + 1].gradient = evaluate("conv2d_grad_bias", {e});
  }

  const repdl::attributes padded{{"padding", shape_list{1, 1, 1, 1}}};
  const repdl::attributes halved{{"kernel", shape_list{2, 2}}};
  const repdl::attributes transposed_b{{"transpose_b", true}};
  cnn_settings s_;
  std::int64_t stream_ = 0;
  array conv1, relu1, conv2, relu2, flat, linear1;
};

std::string oracle_fingerprint(const digit_data& data, const cnn_settings& s) {
  oracle_network network(s);
  const std::int64_t images = data.train.size();
  for (int epoch = 1; epoch <= s.epochs; ++epoch) {
    const auto order = integers_of(evaluate("permutation", {}, network.next({{"n", images}})));
    const array moves = evaluate(
        "randint", {},
        network.next(
            {{"shape", shape_list{images, moves_per_image}}, {"low", -s.distortion}, {"high", s.distortion + 1}}));
    const array inputs = images_of(data.train, order, integers_of(moves));
    std::vector<std::int64_t> labels;
    labels.reserve(order.size());
    for (const std::int64_t image : order) labels.push_back(data.train.labels[static_cast<std::size_t>(image)]);
    const array targets = integers(labels, {images});
    for (std::int64_t first = 0; first + s.batch <= images; first += s.batch) {
      network.step(part(inputs, first, first + s.batch), part(targets, first, first + s.batch),
                   examples::rate_of(s, epoch));
    }
  }

  std::vector<std::int64_t> all(data.test.labels.size());
  std::iota(all.begin(), all.end(), 0);
  const array outputs = network.output(network.forward(images_of(data.test, all, {})));
  std::vector<repdl::const_tensor_view> identity;
  const auto add = [&](const array& a) {
    identity.emplace_back(a.bytes.data(), a.type, repdl::sizes(std::span<const std::int64_t>(a.shape)));
  };
  for (const trained_tensor& t : network.tensors) add(t.value);
  add(outputs);
  repdl::context ctx;
  return repdl::fingerprint(ctx, identity);
}

// ---- a small training

image_set first_of(const image_set& all, std::int64_t n) {
  return {{all.pixels.begin(), all.pixels.begin() + n * pixels_per_image},
          {all.labels.begin(), all.labels.begin() + n}};
}
const digit_data& few_digits() {
  static const digit_data few{first_of(digits().train, 100), first_of(digits().test, 20)};
  return few;
}
cnn_settings short_settings() {
  cnn_settings s;
  s.epochs = 2;
  s.batch = 25;
  s.rates = {{1, 0.05}, {2, 0.02}};
  return s;
}

std::vector<repdl::context_options> everywhere() {
  std::vector<repdl::context_options> all;
  for (const repdl::isa_info& isa : repdl::instruction_sets()) {
    if (!isa.available) continue;
    for (const int threads : {1, 2, 3}) all.push_back({.threads = threads, .isa = isa.name});
  }
  return all;
}

// A training whose every epoch runs in the next context, saved and read again in between.
std::string relay_fingerprint(const std::vector<repdl::context_options>& legs, const cnn_settings& s) {
  const repdl::tools::scratch_directory dir;
  const std::string file = dir.file("checkpoint");
  std::string fingerprint;
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    repdl::context ctx(legs[static_cast<std::size_t>(epoch) % legs.size()]);
    if (epoch == 0) {
      cnn_training training(ctx, few_digits(), s);
      training.run_epoch();
      examples::write_tensors(file, training.checkpoint());
    } else {
      cnn_training training(ctx, few_digits(), s, examples::read_tensors(file), file);
      CHECK(training.epoch() == epoch);
      training.run_epoch();
      examples::write_tensors(file, training.checkpoint());
      fingerprint = training.result().fingerprint;
    }
  }
  return fingerprint;
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("cnn: short trainings end in the oracle's fingerprint, on every instruction set, thread count and tier") {
  for (const double dropout : {0.0, 0.25}) {
    CAPTURE(dropout);
    cnn_settings s = short_settings();
    s.dropout = dropout;
    if (dropout != 0) s.epochs = 1;
    const std::string want = oracle_fingerprint(few_digits(), s);
    for (repdl::context_options o : everywhere()) {
      CAPTURE(o.isa);
      CAPTURE(o.threads);
      for (const repdl::tier first : {repdl::tier::proved, repdl::tier::double_double}) {
        if (first != repdl::tier::proved && (dropout != 0 || o.threads == 1)) continue;
        o.first_tier = first;
        repdl::context ctx(o);
        CHECK(train_cnn(ctx, few_digits(), s).fingerprint == want);
      }
    }
  }
}

TEST_CASE("cnn: every element decided by the last tier, and the fingerprint is the same" *
          doctest::test_suite("values")) {
  cnn_settings s = short_settings();
  s.epochs = 1;
  repdl::context usual;
  repdl::context exact({.first_tier = repdl::tier::exact});
  exact.reset_statistics();
  CHECK(train_cnn(exact, few_digits(), s).fingerprint == train_cnn(usual, few_digits(), s).fingerprint);
  const repdl::statistics counted = exact.read_statistics();
  CHECK(counted[repdl::tier::double_double] == 0);
  CHECK(counted[repdl::tier::exact] > counted[repdl::tier::binary64]);
}

TEST_CASE("cnn: any floating-point environment" * doctest::test_suite("values")) {
  const cnn_settings s = short_settings();
  repdl::context usual;
  const std::string want = train_cnn(usual, few_digits(), s).fingerprint;
  const unsigned ordinary = _mm_getcsr();
  // Round downward, upward, towards zero, with FTZ and DAZ.
  for (const unsigned rounding : {0x2000u, 0x4000u, 0x6000u}) {
    for (const repdl::context_options& o : everywhere()) {
      repdl::context ctx(o);
      _mm_setcsr((ordinary & ~0x6000u) | rounding | 0x8040u);
      const examples::training_result result = train_cnn(ctx, few_digits(), s);
      _mm_setcsr(ordinary);
      CHECK(result.fingerprint == want);
    }
  }
}

TEST_CASE("cnn: stopped, saved and continued elsewhere, it ends in the same fingerprint" *
          doctest::test_suite("values")) {
  cnn_settings s = short_settings();
  s.dropout = 0.25;  // so that the generator's state matters in every step
  s.epochs = 4;
  repdl::context usual;
  const std::string want = train_cnn(usual, few_digits(), s).fingerprint;
  std::vector<repdl::context_options> legs = everywhere();
  CHECK(relay_fingerprint({legs.front(), legs.back()}, s) == want);
  CHECK(relay_fingerprint({legs.back(), legs.front(), legs[1]}, s) == want);

  std::string why;
  std::vector<repdl::context_options> gpus;
  for (const repdl::device_info& d : repdl::devices(&why)) {
    if (d.where.kind == repdl::device_kind::cuda) gpus.push_back({.where = d.where});
  }
  if (gpus.empty()) {
    MESSAGE("skipped on a GPU: " << why);
    return;
  }
  for (const repdl::context_options& gpu : gpus) {
    repdl::context ctx(gpu);
    CHECK(train_cnn(ctx, few_digits(), s).fingerprint == want);
    CHECK(relay_fingerprint({legs.front(), gpu}, s) == want);
    CHECK(relay_fingerprint({gpu, legs.back()}, s) == want);
  }
}

TEST_CASE("cnn: a checkpoint is a file of named tensors, and one of something else is refused" *
          doctest::test_suite("")) {
  const cnn_settings s = short_settings();
  repdl::context ctx;
  cnn_training training(ctx, few_digits(), s);
  const std::string fresh = training.result().fingerprint;
  training.run_epoch();
  const tensor_file file = training.checkpoint();
  CHECK(file.metadata.at("epoch") == "1");
  CHECK(file.metadata.at("generator.seed") == "1");
  CHECK(file.metadata.at("generator.stream") == "6");  // four tensors of weights, a permutation, distortions
  const std::map<std::string, repdl::sizes> shapes{{"conv1.weight", {16, 1, 3, 3}},  {"conv1.bias", {16}},
                                                   {"conv2.weight", {48, 16, 3, 3}}, {"conv2.bias", {48}},
                                                   {"linear1.weight", {64, 768}},    {"linear1.bias", {64}},
                                                   {"linear2.weight", {10, 64}},     {"linear2.bias", {10}}};
  REQUIRE(file.tensors.size() == 2 * shapes.size());
  for (const examples::stored_tensor& t : file.tensors) {
    const std::string velocity = "velocity.";
    CHECK(t.type == repdl::dtype::f32);
    CHECK(t.shape == shapes.at(t.name.starts_with(velocity) ? t.name.substr(velocity.size()) : t.name));
  }
  CHECK(training.result().fingerprint != fresh);

  const auto refusal = [&](const tensor_file& f, const cnn_settings& with) -> std::string {
    try {
      cnn_training(ctx, few_digits(), with, f, "FILE");
    } catch (const file_error& e) {
      return e.what();
    }
    return "nothing thrown";
  };
  CHECK(refusal(file, s) == "nothing thrown");
  tensor_file bad = file;
  bad.metadata.erase("settings");
  CHECK(refusal(bad, s) == "FILE: expected 'settings' in the metadata, got none");
  cnn_settings other = s;
  other.momentum = 0.5;
  CHECK(
      refusal(file, other) ==
      "FILE: expected the settings batch 25; rates 0.05 until 1 0.02 until 2; momentum 0.5; dropout 0; distortion 12; "
      "seed 1, got batch 25; rates 0.05 until 1 0.02 until 2; momentum 0.9; dropout 0; distortion 12; seed 1");
  bad = file;
  bad.metadata["epoch"] = "-1";
  CHECK(refusal(bad, s) == "FILE: expected an integer from 0 as 'epoch', got '-1'");
  bad.metadata["epoch"] = "99999999999";
  CHECK(refusal(bad, s) == "FILE: expected an integer from 0 as 'epoch', got '99999999999'");
  bad = file;
  bad.metadata["generator.stream"] = "6 ";
  CHECK(refusal(bad, s) == "FILE: expected an integer from 0 as 'generator.stream', got '6 '");
  bad = file;
  bad.tensors[1].name = "bias";
  CHECK(refusal(bad, s) == "FILE: expected a tensor 'conv1.bias', got none");
  bad = file;
  bad.tensors[1].shape = {4, 4};
  CHECK(refusal(bad, s) == "FILE: expected 'conv1.bias' as f32 [16], got f32 [4, 4]");
  bad = file;
  bad.tensors[1].type = repdl::dtype::f64;
  CHECK(refusal(bad, s) == "FILE: expected 'conv1.bias' as f32 [16], got f64 [16]");
  bad = file;
  bad.tensors.push_back(bad.tensors[0]);
  bad.tensors.back().name = "more";
  CHECK(refusal(bad, s) == "FILE: expected 16 tensors, got 17");
}

TEST_CASE("cnn: distortions are exact and start from the image itself" * doctest::test_suite("")) {
  const image_set& set = digits().test;
  const std::vector<std::int64_t> order{3, 7};
  const std::vector<std::int64_t> same = examples::distorted(set, order, {});
  CHECK(same == examples::distorted(set, order, std::vector<std::int64_t>(2 * moves_per_image)));
  // One pixel down and two to the right; then half a pixel up, between two pixels.
  const std::vector<std::int64_t> moved =
      examples::distorted(set, order, std::vector<std::int64_t>{0, 0, 0, 0, 16, 32, 0, 0, 0, 0, -8, 0});
  constexpr std::int64_t one = examples::distorted_one / 16;
  const auto pixel = [&](std::int64_t image, std::int64_t y, std::int64_t x) -> std::int64_t {
    if (y < 0 || y > 7 || x < 0 || x > 7) return 0;
    return set.pixels[static_cast<std::size_t>(image * pixels_per_image + y * 8 + x)];
  };
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 8; ++x) {
      const auto at = static_cast<std::size_t>(y * 8 + x);
      CHECK(same[at] == one * pixel(3, y, x));
      CHECK(moved[at] == one * pixel(3, y + 1, x + 2));
      CHECK(2 * moved[at + pixels_per_image] == one * (pixel(7, y - 1, x) + pixel(7, y, x)));
    }
  }
}

TEST_CASE("cnn: the ordinary float32 loops learn, too") {
  cnn_settings s = short_settings();
  s.epochs = 5;
  s.rates = {{5, 0.05}};
  const digit_data data{first_of(digits().train, 500), first_of(digits().test, 100)};
  repdl::context ctx;
  const examples::training_result trained = train_cnn(ctx, data, s);
  CHECK(trained.correct > 60);
  for (const auto order : {examples::summation::forwards, examples::summation::backwards}) {
    const examples::ordinary_result ordinary = examples::train_ordinary(data, s, order);
    std::int64_t correct = 0;
    for (std::size_t i = 0; i < ordinary.answers.size(); ++i) correct += ordinary.answers[i] == data.test.labels[i];
    CHECK(correct > 60);
    CHECK(ordinary.weights.size() == 16u * 9 + 16 + 48 * 16 * 9 + 48 + 64 * 768 + 64 + 10 * 64 + 10);
  }
}

TEST_CASE("cnn: the published fingerprint, and above 97 % of the test images [long]") {
  repdl::context ctx;
  const examples::training_result result = train_cnn(ctx, digits());
  CHECK(result.fingerprint == examples::published_cnn_fingerprint());
  CHECK(result.correct * 100 > result.tests * 97);
}

// A quarter of an hour: with the long checks (--no-skip).
TEST_CASE("cnn: the published fingerprint is the oracle's" * doctest::skip()) {
  CHECK(oracle_fingerprint(digits(), {}) == examples::published_cnn_fingerprint());
}

}  // namespace

TEST_SUITE_END();
