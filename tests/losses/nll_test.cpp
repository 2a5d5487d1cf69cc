// nll_loss and its gradient against the oracle: every class of operands in every format, each reduction, with weights and without, from
// every tier, on every instruction set, with one thread and with several; invariance; what is exact at the borders.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "reference/structured/structured.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::absent_shape;
using reference::array;
using reference::outcomes;
using reference::sample_class;
using reference::shape_list;

namespace {

constexpr float infinity = INFINITY;

struct nll_call {
  shape_list x;
  attributes attrs;
  std::int64_t axis;
  bool weighted;
};
attribute whole(const char* name, std::int64_t v) { return {name, v}; }
const nll_call calls[] = {
    {{100, 9}, {}, 1, false},
    {{100, 9}, {}, 1, true},
    {{60, 5, 11}, {whole("ignore_index", 3)}, 1, true},
    {{13, 2, 3, 4, 4}, {whole("axis", -1), whole("ignore_index", -1)}, 4, true},
    {{600, 3}, {whole("axis", 1)}, 1, false},
    {{17}, {}, 0, true},
    {{3, 1000}, {whole("axis", 0)}, 0, false},
};
std::vector<shape_list> shapes_of(const nll_call& c, bool gradient, const std::string& reduction) {
  shape_list rows = c.x;
  rows.erase(rows.begin() + c.axis);
  const shape_list weight = c.weighted ? shape_list{c.x[static_cast<std::size_t>(c.axis)]} : absent_shape;
  if (!gradient) return {c.x, rows, weight};
  return {reduction == "none" ? rows : shape_list{}, c.x, rows, weight,
          reduction == "mean" ? shape_list{} : absent_shape};
}

struct counts {
  std::int64_t outputs = 0, ties = 0, near_ties = 0, overflows = 0, zeros = 0, subnormal = 0, nan = 0;
};

void check_classes(const std::string& op, const std::string& reduction, int rounds, counts& n) {
  const std::vector<test::engine> contexts = test::every_context({tier::proved, tier::exact});
  std::uint64_t seed = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const nll_call& c : calls) {
      for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
        for (const sample_class k : reference::element_classes) {
          attributes attrs = c.attrs;
          attrs.push_back({"reduction", reduction});
          const std::vector<shape_list> shapes = shapes_of(c, op == "nll_loss_backward", reduction);
          const std::vector<array> in = reference::fill_nll(op, k, t, shapes, attrs, ++seed, 0);
          outcomes where;
          const std::vector<array> want = reference::evaluate_all(op, in, attrs, &where);
          for (const reference::outcome& o : where) {
            ++n.outputs;
            n.ties += k == sample_class::ties && o.tie;
            n.near_ties += k == sample_class::near_ties && o.near_tie;
            n.overflows += k == sample_class::overflow_border && o.overflow;
            n.zeros += k == sample_class::cancelling && o.exact_zero;
            n.subnormal += k == sample_class::subnormal && o.subnormal;
            n.nan += o.nan;
          }
          const test::engine& which = contexts[seed % contexts.size()];
          const std::string text = test::difference(test::run(*which.ctx, op, in, want, attrs), want);
          REQUIRE_MESSAGE(text.empty(), op << " " << reduction << " " << std::string(name_of(t)) << " "
                                           << std::string(name_of(k)) << " on " << which.name << ": " << text);
        }
      }
    }
  }
}

}  // namespace

TEST_SUITE_BEGIN("portable values");

TEST_CASE("nll_loss: classes of operands, each loss") {
  counts n;
  check_classes("nll_loss", "none", 3, n);
  CHECK(n.outputs > 200000);
  CHECK(n.ties > 1000);
  CHECK(n.near_ties > 500);
  CHECK(n.subnormal > 1000);
  CHECK(n.overflows > 100);
  CHECK(n.nan > 100);
}

TEST_CASE("nll_loss: classes of operands, sums and means") {
  for (const std::string reduction : {"sum", "mean"}) {
    counts n;
    check_classes("nll_loss", reduction, 15, n);
    MESSAGE(reduction << ": " << n.ties << " ties, " << n.near_ties << " near-ties, " << n.overflows << " overflows, "
                      << n.zeros << " zeros, " << n.subnormal << " subnormal, " << n.nan << " NaN");
    CHECK(n.ties > 100);
    CHECK(n.near_ties > 30);
    CHECK(n.subnormal > 30);
    CHECK(n.nan > 30);
    CHECK((reduction == "mean" || n.overflows > 20));
    CHECK((reduction == "mean" || n.zeros > 100));
  }
}

TEST_CASE("nll_loss_backward: classes of operands") {
  for (const std::string reduction : {"none", "sum", "mean"}) {
    counts n;
    check_classes("nll_loss_backward", reduction, 1, n);
    CHECK(n.outputs > 200000);
    CHECK((reduction != "none" || n.ties > 300));
    CHECK((reduction != "mean" || n.ties > 300));
    CHECK(n.subnormal > 100);
    CHECK(n.nan > 100);
  }
}

TEST_CASE("nll_loss: every tier decides, and no order of the samples changes a bit" * doctest::test_suite("")) {
  std::mt19937 engine(3);
  constexpr std::int64_t n = 20000, classes = 7;
  std::vector<float> x(n * classes), weight(classes);
  std::vector<std::int64_t> targets(n);
  std::normal_distribution<float> normal(-2, 1);
  for (float& v : x) v = normal(engine);
  for (float& v : weight) v = 1 + std::fabs(normal(engine));
  for (std::int64_t& t : targets) t = engine() % 16 == 0 ? -100 : static_cast<std::int64_t>(engine() % classes);
  const auto losses = [&](context& ctx) {
    std::vector<float> all;
    for (const reduction r : {reduction::mean, reduction::sum}) {
      float out = 0, total = 0;
      nll_loss_options o{.reduction = r, .weight = {weight.data(), {classes}}};
      nll_loss(ctx, {x.data(), {n, classes}}, const_tensor_view(targets), tensor_view(&out, {}), o,
               tensor_view(&total, {}));
      all.push_back(out);
      all.push_back(total);
    }
    return all;
  };
  context plain({.threads = 1});
  const std::vector<float> want = losses(plain);
  CHECK(plain.read_statistics().elements[1] == 4);
  context exact({.threads = 2, .first_tier = tier::exact});
  CHECK(losses(exact) == want);
  CHECK(exact.read_statistics().elements[3] == 4);
  for (int turn = 0; turn < 5; ++turn) {
    for (std::int64_t i = n - 1; i > 0; --i) {
      const auto j = static_cast<std::int64_t>(engine() % static_cast<std::uint32_t>(i + 1));
      std::swap(targets[static_cast<std::size_t>(i)], targets[static_cast<std::size_t>(j)]);
      std::swap_ranges(x.begin() + i * classes, x.begin() + (i + 1) * classes, x.begin() + j * classes);
    }
    context several({.threads = 1 + turn});
    CHECK(losses(several) == want);
  }
}

TEST_CASE("nll_loss: optional operands at the end may be left out" * doctest::test_suite("")) {
  context ctx;
  const float x[] = {-1, -2, -3, -4}, g = 1;
  const std::int64_t targets[] = {1, 0};
  const const_tensor_view view(x, {2, 2}), at(targets, sizes{2});
  float out = 0, grad[4] = {};
  call(ctx, *find("nll_loss"), {{view, at}}, {{tensor_view(&out, {}), tensor_view()}}, {});
  CHECK(out == 2.5f);
  call(ctx, *find("nll_loss_backward"), {{const_tensor_view(&g, {}), view, at}}, {{tensor_view(grad, {2, 2})}},
       {{"reduction", std::string("sum")}});
  CHECK((grad[0] == 0 && grad[1] == -1 && grad[2] == -1 && grad[3] == 0));
}

TEST_CASE("nll_loss: nothing, ignored samples, weights that add up to 0, infinities" * doctest::test_suite("")) {
  context ctx;
  const auto loss = [&](const std::vector<float>& x, const std::vector<std::int64_t>& targets,
                        const std::vector<float>& weight, reduction r) {
    float out = 7, total = 7;
    const auto n = static_cast<std::int64_t>(targets.size());
    const auto classes = n == 0 ? 3 : static_cast<std::int64_t>(x.size()) / n;
    nll_loss_options o{.reduction = r};
    if (!weight.empty()) o.weight = {weight.data(), {classes}};
    nll_loss(ctx, {x.data(), {n, classes}}, {targets.data(), sizes{n}}, tensor_view(&out, {}), o,
             tensor_view(&total, {}));
    return std::pair(out, total);
  };
  const auto is = [](const std::pair<float, float>& got, float out, float total) {
    CHECK(std::memcmp(&got.first, &out, 4) == 0);
    CHECK(std::memcmp(&got.second, &total, 4) == 0);
  };
  const float nan = std::bit_cast<float>(0x7fc00000u);
  is(loss({}, {}, {}, reduction::sum), 0.0f, 0.0f);
  is(loss({}, {}, {}, reduction::mean), nan, 0.0f);
  is(loss({-1, -2}, {-100}, {}, reduction::mean), nan, 0.0f);
  is(loss({-1, -2}, {1}, {}, reduction::mean), 2.0f, 1.0f);
  is(loss({-1, -2, -1, -2}, {1, 0}, {0, 0}, reduction::mean), nan, 0.0f);
  is(loss({-1, -2, -1, -5}, {0, 1}, {1, -1}, reduction::mean), -infinity, 0.0f);  // 1 - 5 over an exact 0
  is(loss({-1, -2, -3, -4}, {0, 1}, {-2, 1}, reduction::mean), -2.0f, -1.0f);     // 2 over -1
  is(loss({-1, -infinity}, {1}, {}, reduction::mean), infinity, 1.0f);
  is(loss({-1, -infinity}, {1}, {1, 0}, reduction::mean), nan, 0.0f);
  is(loss({-1, -2}, {0}, {infinity, 1}, reduction::mean), nan, infinity);
  is(loss({-1, -2}, {2}, {}, reduction::mean), nan, nan);
  is(loss({-1, -2}, {-1}, {}, reduction::sum), nan, nan);
  is(loss({0, 0}, {0}, {}, reduction::sum), 0.0f, 1.0f);
  is(loss({1, 0}, {0}, {-1e-45f, 1}, reduction::mean), -1.0f, -1e-45f);
}

TEST_CASE("nll_loss_backward: the least and the greatest numbers as classes" * doctest::test_suite("")) {
  // Whole rows in the hands of several threads: their parts begin within a row.
  constexpr std::int64_t classes = 100001;
  const std::vector<float> x(3 * classes);
  const std::vector<std::int64_t> targets{INT64_MIN, classes - 1, INT64_MAX};
  const std::vector<float> g{3, 5, 7};
  std::vector<float> out(3 * classes, -1);
  context ctx({.threads = 4});
  nll_loss_backward(ctx, const_tensor_view(g), {x.data(), {3, classes}}, const_tensor_view(targets),
                    {out.data(), {3, classes}}, {.reduction = reduction::none, .ignore_index = INT64_MIN});
  const auto row = [&](std::int64_t r) { return out.begin() + r * classes; };
  CHECK(std::all_of(row(0), row(2) - 1, [](float v) { return v == 0; }));
  CHECK(row(2)[-1] == -5);
  CHECK(std::all_of(row(2), row(3), [](float v) { return std::isnan(v); }));
}

TEST_SUITE_END();
