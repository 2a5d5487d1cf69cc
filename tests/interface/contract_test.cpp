// Corners of docs/contract.md as known answers: the library on every engine, from the last tier too, and the oracle.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "tests/helpers/class_engines.hpp"

namespace {

using namespace repdl;
using reference::array;
using reference::shape_list;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();  // 0x7fc00000, the canonical one
constexpr float least = 0x1p-149f;

array floats(const shape_list& shape, const std::vector<float>& values) {
  array a(dtype::f32, shape);
  for (std::size_t i = 0; i < values.size(); ++i) a.set(i, std::bit_cast<std::uint32_t>(values[i]));
  return a;
}
array integers(const shape_list& shape, const std::vector<std::int64_t>& values) { return {dtype::i64, shape, values}; }
attribute list(const char* name, std::vector<std::int64_t> v) { return {name, std::move(v)}; }

struct known {
  std::string op;
  std::vector<array> in;
  attributes attrs;
  std::vector<array> out;
};

void check(const std::vector<known>& cases) {
  std::vector<test::engine> engines = test::engines();
  for (test::engine& e : test::every_context({tier::exact})) engines.push_back(std::move(e));
  for (const known& c : cases) {
    CHECK_MESSAGE(test::difference(reference::evaluate_all(c.op, c.in, c.attrs), c.out) == "", "oracle: ", c.op);
    for (const test::engine& e : engines) {
      CHECK_MESSAGE(test::difference(test::run(*e.ctx, c.op, c.in, c.out, c.attrs), c.out) == "", e.name, ": ", c.op);
    }
  }
}

TEST_SUITE_BEGIN("portable");

TEST_CASE("contract: elementwise operations broadcast; relu_backward computes") {
  check({
      {"add", {floats({2, 1}, {1, 2}), floats({3}, {10, 20, 30})}, {}, {floats({2, 3}, {11, 21, 31, 12, 22, 32})}},
      {"mul", {floats({0, 1}, {}), floats({3}, {1, 2, 3})}, {}, {floats({0, 3}, {})}},
      {"relu_backward",
       {floats({5}, {std::bit_cast<float>(0xff812345u), -nan, 2, -0.0f, nan}), floats({5}, {1, nan, -nan, 1, -1})},
       {},
       {floats({5}, {nan, nan, 2, -0.0f, 0})}},
  });
}

TEST_CASE("contract: the formula of adamw in the reals with infinities") {
  const auto step = [](double eps, const std::vector<float>& p, const std::vector<float>& g,
                       const std::vector<float>& m, const std::vector<float>& v, const std::vector<float>& new_p,
                       const std::vector<float>& new_m, const std::vector<float>& new_v) {
    const shape_list n{static_cast<std::int64_t>(p.size())};
    return known{"adamw",
                 {floats(n, p), floats(n, g), floats(n, m), floats(n, v)},
                 {{"lr", 1.0}, {"beta1", 0.5}, {"beta2", 0.5}, {"eps", eps}, {"weight_decay", 0.0}},
                 {floats(n, new_p), floats(n, new_m), floats(n, new_v)}};
  };
  check({
      // x / 0 and 0 / 0; inf - inf
      step(0, {5, 5, 5, inf, inf}, {0, 0, 0, 0, 0}, {1, -1, 0, 1, -1}, {0, 0, 0, 0, 0}, {-inf, inf, nan, nan, inf},
           {.5f, -.5f, 0, .5f, -.5f}, {0, 0, 0, 0, 0}),
      // inf / inf, x / inf
      step(0, {5, 5}, {inf, 0x1p100f}, {0, 0}, {0, 0}, {nan, 5}, {inf, 0x1p99f}, {inf, inf}),
      // The root of a negative number; of -0, which is what -2^-150 was rounded to
      step(0, {5, 5, 5}, {0, 0, 0}, {1, 1, 1}, {-1, -inf, -least}, {nan, nan, -inf}, {.5f, .5f, .5f},
           {-.5f, -inf, -0.0f}),
      step(1, {5, 5}, {0, 0}, {1, 1}, {-1, -least}, {nan, 4}, {.5f, .5f}, {-.5f, -0.0f}),
  });
}

TEST_CASE("contract: the softmax family's gradients of infinities, NaN rows and bad targets") {
  const attributes none{{"reduction", std::string("none")}};
  const attributes mean{{"reduction", std::string("mean")}};
  const attributes total{{"reduction", std::string("sum")}};
  check({
      {"log_softmax_backward",
       {floats({5, 2}, {1, 2, inf, 1, 1, -1, 1, 1, 1, 1}), floats({5, 2}, {-inf, 0, -inf, 0, inf, 0, inf, 0, nan, 0})},
       {},
       {floats({5, 2}, {1, -1, nan, -inf, nan, -1, -inf, -1, nan, -1})}},
      {"logsumexp_backward",
       {floats({3}, {0, 0, 0}), floats({3, 2}, {nan, 1, inf, 0, -inf, -inf})},
       {list("axis", {1})},
       {floats({3, 2}, {nan, nan, nan, nan, nan, nan})}},
      // g = 0: a NaN, a bad target, +inf; an ignored row
      {"cross_entropy_backward",
       {floats({4}, {0, 0, 0, 0}), floats({4, 2}, {nan, 0, 0, 0, inf, 0, nan, 0}), integers({4}, {0, 7, 0, -100})},
       none,
       {floats({4, 2}, {nan, nan, nan, nan, nan, nan, 0, 0})}},
      // The row with the bad target counts: n = 2
      {"cross_entropy_backward",
       {floats({}, {1}), floats({3, 2}, {0, 0, 0, 0, 0, 0}), integers({3}, {0, 5, -100})},
       mean,
       {floats({3, 2}, {-.25f, .25f, nan, nan, 0, 0})}},
      {"cross_entropy", {floats({2, 2}, {0, 0, 0, 0}), integers({2}, {0, -1})}, mean, {floats({}, {nan})}},
      // Nothing: no rows, only ignored ones
      {"cross_entropy", {floats({0, 2}, {}), integers({0}, {})}, total, {floats({}, {0})}},
      {"cross_entropy", {floats({1, 2}, {nan, 0}), integers({1}, {-100})}, total, {floats({}, {0})}},
      {"cross_entropy", {floats({1, 2}, {nan, 0}), integers({1}, {-100})}, mean, {floats({}, {nan})}},
  });
}

TEST_CASE("contract: cross_entropy's divisors; zeros by negative sums; where probabilities are 0") {
  const auto with = [](const char* reduction, double smoothing = 0) {
    return attributes{{"reduction", std::string(reduction)}, {"label_smoothing", smoothing}};
  };
  const array logits = floats({3, 2}, {0, 0, 0, 0, 0, 0}), targets = integers({3}, {0, 5, -100}), g = floats({}, {1});
  const array two = floats({2, 1}, {3, 4}), both = integers({2}, {0, 0}), minus = floats({1}, {-1});
  const array row = floats({1, 2}, {-inf, 0}), chances = floats({1, 2}, {0, 1});
  check({
      // A target outside the classes: without weights its row counts, n = 2; with weights nothing is left of the mean
      {"cross_entropy", {logits, targets}, with("mean", .5), {floats({}, {nan})}},
      {"cross_entropy_backward",
       {g, logits, targets},
       with("mean", .5),
       {floats({3, 2}, {-.125f, .125f, nan, nan, 0, 0})}},
      {"cross_entropy_backward",
       {g, logits, targets, floats({2}, {1, 1})},
       with("mean", .5),
       {floats({3, 2}, {nan, nan, nan, nan, 0, 0})}},
      {"cross_entropy_backward",
       {g, logits, targets, floats({2}, {1, 1})},
       with("sum", .5),
       {floats({3, 2}, {-.25f, .25f, nan, nan, 0, 0})}},
      // 0 / -2
      {"cross_entropy", {two, both, minus}, with("mean"), {floats({}, {0})}},
      {"cross_entropy", {two, both, minus}, with("mean", .5), {floats({}, {0})}},
      {"nll_loss",
       {floats({2, 1}, {0, 0}), both, minus},
       {{"reduction", std::string("mean")}},
       {floats({}, {0}), floats({}, {-2})}},
      {"cross_entropy_backward", {g, two, both, minus}, with("mean"), {floats({2, 1}, {-0.0f, -0.0f})}},
      {"cross_entropy_backward", {floats({}, {-1}), two, both, minus}, with("mean"), {floats({2, 1}, {0, 0})}},
      // A probability 0 beside -inf: absent, not 0 inf
      {"cross_entropy_probabilities", {row, chances}, with("sum"), {floats({}, {0})}},
      {"cross_entropy_probabilities", {row, chances}, with("sum", .5), {floats({}, {inf})}},
      {"cross_entropy_probabilities_backward", {g, row, chances}, with("sum"), {floats({1, 2}, {0, 0})}},
      {"cross_entropy_probabilities_backward",
       {floats({}, {-1}), row, chances},
       with("sum"),
       {floats({1, 2}, {-0.0f, -0.0f})}},
      {"cross_entropy_probabilities_backward", {g, row, chances}, with("sum", .5), {floats({1, 2}, {-.25f, .25f})}},
      {"kl_div", {row, chances}, {{"reduction", std::string("none")}}, {floats({1, 2}, {nan, 0})}},
      {"kl_div", {row, chances}, {{"reduction", std::string("sum")}}, {floats({}, {nan})}},
  });
}

TEST_CASE("contract: elu with rate 0; alpha is exactly its double; norms of no tensors") {
  const array x = floats({6}, {-1, -least, -0.0f, 0, -inf, nan});
  const auto with = [](double alpha, double scale, double rate) {
    return attributes{{"alpha", alpha}, {"scale", scale}, {"rate", rate}};
  };
  const array plus = floats({6}, {0, 0, -0.0f, 0, nan, nan}), minus = floats({6}, {-0.0f, -0.0f, 0, -0.0f, nan, nan});
  check({
      {"elu", {x}, with(3, 2, 0), {plus}},
      {"elu", {x}, with(-3, -2, 0), {plus}},
      {"elu", {x}, with(-3, 2, 0), {minus}},
      {"elu", {x}, with(3, -2, 0), {minus}},
      {"elu", {x}, with(3, 2, -0.0), {floats({6}, {0, 0, 0, -0.0f, nan, nan})}},
      {"elu", {x}, with(3, -2, -0.0), {floats({6}, {-0.0f, -0.0f, -0.0f, 0, nan, nan})}},
      {"add", {floats({2}, {-1, 0}), floats({2}, {1, 1})}, {{"alpha", 1 + 0x1p-40}}, {floats({2}, {0x1p-40f, 1})}},
      {"sub", {floats({1}, {1}), floats({1}, {1})}, {{"alpha", 1 + 0x1p-40}}, {floats({1}, {-0x1p-40f})}},
      {"total_norm", {}, {{"p", 1.0}}, {floats({}, {0})}},
      {"total_norm", {}, {{"p", 2.0}}, {floats({}, {0})}},
      {"total_norm", {}, {{"p", static_cast<double>(inf)}}, {floats({}, {0})}},
  });
}

TEST_CASE("contract: windows without taps, the channels of a group") {
  const attributes window{list("kernel", {1, 1}), list("padding", {0, 1})};
  attributes with_pad = window;
  with_pad.push_back({"count_include_pad", true});
  attributes with_size = window;
  with_size.push_back(list("size", {1, 1}));
  const array x = floats({1, 1, 1, 1}, {3});
  const array w = floats({1, 1, 1, 1}, {inf});
  check({
      {"avg_pool2d", {x}, window, {floats({1, 1, 1, 3}, {nan, 3, nan})}},
      {"avg_pool2d", {x}, with_pad, {floats({1, 1, 1, 3}, {0, 3, 0})}},
      {"avg_pool2d_backward", {floats({1, 1, 1, 3}, {inf, 2, nan})}, with_size, {floats({1, 1, 1, 1}, {2})}},
      {"conv2d", {x, w}, {list("padding", {0, 1})}, {floats({1, 1, 1, 3}, {0, inf, 0})}},
      {"conv2d", {x, w, floats({1}, {-0.0f})}, {list("padding", {0, 1})}, {floats({1, 1, 1, 3}, {0, inf, 0})}},
      {"conv2d", {x, w, floats({1}, {7})}, {list("padding", {0, 1})}, {floats({1, 1, 1, 3}, {7, inf, 7})}},
      {"conv2d",
       {floats({1, 4, 1, 1}, {1, 2, 3, 4}), floats({2, 2, 1, 1}, {1, 10, 100, 1000})},
       {{"groups", std::int64_t{2}}},
       {floats({1, 2, 1, 1}, {21, 4300})}},
  });
}

TEST_CASE("contract: the ranges of real parameters") {
  const float memory[2] = {};
  const const_tensor_view x(memory, sizes{1});
  const std::vector<const_tensor_view> two(2, x), three(3, x), four(4, x);
  const auto random = [](attribute a) { return attributes{list("shape", {1}), std::move(a)}; };
  struct range {
    const char* op;
    const char* name;
    double low, high;         // of what is legal
    double least = 0x1p-200;  // magnitude, 0 apart
  };
  constexpr double huge = 0x1p200;
  const range ranges[] = {
      {"sgd", "lr", -huge, huge},       {"sgd", "weight_decay", -huge, huge}, {"sgd", "dampening", -huge, huge},
      {"sgd", "momentum", 0, huge},     {"adamw", "lr", -huge, huge},         {"adamw", "weight_decay", -huge, huge},
      {"adamw", "eps", 0, huge},        {"adamw", "beta1", 0, 1 - 0x1p-53},   {"adamw", "beta2", 0, 1 - 0x1p-53},
      {"normal", "mean", -huge, huge},  {"normal", "stddev", 0, huge},        {"uniform", "low", -huge, huge},
      {"uniform", "high", -huge, huge}, {"bernoulli", "p", 0, 1, 0x1p-1074},  {"dropout", "p", 0, 1, 0x1p-1074},
  };
  for (const range& r : ranges) {
    const std::string op = r.op;
    const auto legal = [&](double v) {
      const attribute a{r.name, v};
      try {
        if (op == "sgd") {
          infer(*find(op), v != 0 && std::string(r.name) == "momentum" ? three : two, {a});
        } else if (op == "adamw") {
          infer(*find(op), four, {a});
        } else if (op == "dropout") {
          infer(*find(op), std::vector{x}, {a});
        } else {
          infer(*find(op), {}, random(a));
        }
      } catch (const error& e) {
        CHECK(e.site() == error_site::attribute_value);
        CHECK(e.argument() == r.name);
        return false;
      }
      return true;
    };
    INFO(op, " ", r.name);
    for (const double v : {0.0, -0.0, r.low, r.high, r.least, 0.25}) CHECK(legal(v));
    CHECK(legal(-r.least) == (r.low < 0));
    CHECK(legal(-0.25) == (r.low < 0));
    CHECK(!legal(std::nextafter(r.high, HUGE_VAL)));
    CHECK(!legal(std::nextafter(r.low, -HUGE_VAL)));
    if (r.least > 0x1p-1074) CHECK(!legal(std::nextafter(r.least, 0.0)));
    for (const double v : {HUGE_VAL, -HUGE_VAL, std::nan("")}) CHECK(!legal(v));
  }
}

}  // namespace

TEST_SUITE_END();
