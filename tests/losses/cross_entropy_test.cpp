// cross_entropy with class weights, label smoothing and probabilities, and its gradient, against the oracle: every class of operands in
// every format, each reduction, from every tier, on every instruction set; the gradient is the derivative of the loss; invariance; what is
// exact at the borders.
#include <doctest/doctest.h>
#include <mpfr.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::absent_shape;
using reference::array;
using reference::outcomes;
using reference::sample_class;
using reference::shape_list;

namespace {

constexpr float inf = INFINITY;

attribute text(const char* name, std::string v) { return {name, std::move(v)}; }
attribute whole(const char* name, std::int64_t v) { return {name, v}; }
attribute number(const char* name, double v) { return {name, v}; }

struct call_of_targets {
  shape_list x;
  std::int64_t axis;
  attributes attrs;
  bool weighted;
};
const call_of_targets calls_of_targets[] = {
    {{30, 9}, 1, {}, true},
    {{40, 4}, 1, {number("label_smoothing", .125)}, false},
    {{20, 5, 4}, 1, {number("label_smoothing", .1), whole("ignore_index", 3)}, true},
    {{6, 2, 3, 4}, 3, {whole("axis", -1), number("label_smoothing", 1)}, true},
    {{70, 3}, 1, {number("label_smoothing", 0x1p-64)}, true},
    {{17}, 0, {number("label_smoothing", .75)}, true},
    {{2, 300}, 1, {number("label_smoothing", .25)}, true},
};

struct counts {
  std::int64_t outputs = 0, ties = 0, near_ties = 0, subnormal = 0, infinite = 0, nan = 0;
};
constexpr sample_class more_classes[] = {sample_class::exact_gaps, sample_class::multiplicities};

counts check_classes(const std::string& op, const std::string& reduction, int rounds) {
  const std::vector<test::engine> contexts = test::every_context({tier::proved, tier::double_double, tier::exact});
  const bool gradient = op.ends_with("backward");
  counts n;
  std::uint64_t seed = 0;
  std::vector<sample_class> classes(reference::element_classes.begin(), reference::element_classes.end());
  classes.insert(classes.end(), std::begin(more_classes), std::end(more_classes));
  for (int round = 0; round < rounds; ++round) {
    for (const call_of_targets& c : calls_of_targets) {
      for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32}) {
        for (const sample_class k : classes) {
          attributes attrs = c.attrs;
          attrs.push_back(text("reduction", reduction));
          shape_list rows = c.x;
          rows.erase(rows.begin() + c.axis);
          std::vector<shape_list> shapes{c.x, rows,
                                         c.weighted ? shape_list{c.x[static_cast<std::size_t>(c.axis)]} : absent_shape};
          if (gradient) shapes.insert(shapes.begin(), reduction == "none" ? rows : shape_list{});
          std::vector<array> in = reference::fill_inputs(op, k, shapes, attrs, ++seed, 0, t);
          outcomes where;
          const std::vector<array> want = reference::evaluate_all(op, in, attrs, &where);
          for (const reference::outcome& o : where) {
            ++n.outputs;
            n.ties += o.tie;
            n.near_ties += o.near_tie;
            n.subnormal += o.subnormal;
            n.infinite += o.infinite;
            n.nan += o.nan;
          }
          const test::engine& which = contexts[seed % contexts.size()];
          const std::string difference = test::difference(test::run(*which.ctx, op, in, want, attrs), want);
          REQUIRE_MESSAGE(difference.empty(), op << " " << reduction << " " << std::string(name_of(t)) << " "
                                                 << std::string(name_of(k)) << " call " << seed << " on " << which.name
                                                 << ": " << difference);
        }
      }
    }
  }
  MESSAGE(op << " " << reduction << ": " << n.outputs << " outputs, " << n.ties << " ties, " << n.near_ties
             << " near-ties, " << n.subnormal << " subnormal, " << n.infinite << " infinite, " << n.nan << " NaN");
  return n;
}

}  // namespace

TEST_CASE("cross_entropy with weights and smoothing: classes of operands" * doctest::test_suite("portable values")) {
  for (const std::string reduction : {"none", "mean", "sum"}) {
    const counts n = check_classes("cross_entropy", reduction, reduction == "none" ? 4 : 8);
    CHECK(n.infinite > 10);
    CHECK(n.nan > 10);
    CHECK((reduction == "mean" || n.subnormal > 10));
    CHECK((reduction != "none" || n.near_ties > 50));
  }
}

TEST_CASE("cross_entropy_backward with weights and smoothing: classes of operands" *
          doctest::test_suite("portable values")) {
  for (const std::string reduction : {"none", "mean", "sum"}) {
    const counts n = check_classes("cross_entropy_backward", reduction, 1);
    CHECK(n.ties > 50);
    CHECK(n.near_ties > 10);
    CHECK(n.subnormal > 100);
    CHECK(n.nan > 100);
  }
}

// With 320 bits: the quotient of differences (l(x + h) - l(x - h)) / 2h errs by some h^2.
TEST_CASE("cross_entropy's gradients are the derivatives of the losses") {
  constexpr int classes = 5, bits = 320;
  std::mt19937 engine(7);
  std::normal_distribution<float> normal(0, 1.5f);
  context ctx;
  for (const bool probabilities : {false, true}) {
    for (const double smoothing : {0.0, .3}) {
      float x[classes], w[classes], p[classes] = {}, got[classes];
      for (float& v : x) v = normal(engine);
      for (float& v : w) v = .25f + std::fabs(normal(engine));
      const std::int64_t target = 3;
      for (float& v : p) v = probabilities ? std::fabs(normal(engine)) : 0;
      if (!probabilities) p[target] = 1;
      const float g = 1;
      const const_tensor_view logits(x, {1, classes}), weight(w, {classes});
      if (probabilities) {
        cross_entropy_backward(ctx, {&g, {1}}, logits, {p, {1, classes}}, tensor_view(got, {1, classes}),
                               {.reduction = reduction::none, .label_smoothing = smoothing, .weight = weight});
      } else {
        cross_entropy_backward(ctx, {&g, {1}}, logits, {&target, sizes{1}}, tensor_view(got, {1, classes}),
                               {.reduction = reduction::none, .label_smoothing = smoothing, .weight = weight});
      }
      for (int i = 0; i < classes; ++i) {
        mpfr_t side[2], sum, t, a, h;
        mpfr_inits2(bits, side[0], side[1], sum, t, a, h, nullptr);
        mpfr_set_ui_2exp(h, 1, -100, MPFR_RNDN);
        for (int s = 0; s < 2; ++s) {
          const auto logit = [&](int c) {
            mpfr_set_flt(t, x[c], MPFR_RNDN);
            if (c == i) (s == 0 ? mpfr_add : mpfr_sub)(t, t, h, MPFR_RNDN);
          };
          mpfr_set_zero(sum, 1);
          for (int c = 0; c < classes; ++c) {
            logit(c);
            mpfr_exp(t, t, MPFR_RNDN);
            mpfr_add(sum, sum, t, MPFR_RNDN);
          }
          mpfr_log(sum, sum, MPFR_RNDN);
          mpfr_set_zero(side[s], 1);
          for (int c = 0; c < classes; ++c) {
            mpfr_set_d(a, -smoothing, MPFR_RNDN);
            mpfr_add_ui(a, a, 1, MPFR_RNDN);
            mpfr_mul_d(a, a, static_cast<double>(p[c]), MPFR_RNDN);
            mpfr_set_d(t, smoothing, MPFR_RNDN);
            mpfr_div_ui(t, t, classes, MPFR_RNDN);
            mpfr_add(a, a, t, MPFR_RNDN);
            mpfr_mul_d(a, a, static_cast<double>(w[c]), MPFR_RNDN);
            logit(c);
            mpfr_sub(t, sum, t, MPFR_RNDN);
            mpfr_fma(side[s], a, t, side[s], MPFR_RNDN);
          }
        }
        mpfr_sub(t, side[0], side[1], MPFR_RNDN);
        mpfr_div(t, t, h, MPFR_RNDN);
        CHECK(got[i] == mpfr_get_flt(t, MPFR_RNDN) / 2);
        mpfr_clears(side[0], side[1], sum, t, a, h, nullptr);
      }
    }
  }
}

TEST_CASE("cross_entropy with weights: no order of rows changes a bit, one-hot probabilities are targets") {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal(0, 3);
  constexpr std::int64_t rows = 700, classes = 37;
  std::vector<float> x(rows * classes), weight(classes);
  std::vector<std::int64_t> targets(rows);
  for (float& v : x) v = normal(engine);
  for (float& v : weight) v = std::fabs(normal(engine));
  for (std::int64_t& t : targets) t = static_cast<std::int64_t>(engine() % classes);
  const auto loss = [&](context& ctx, reduction r) {
    float out = 0;
    cross_entropy(ctx, {x.data(), {rows, classes}}, const_tensor_view(targets), tensor_view(&out, {}),
                  {.reduction = r, .label_smoothing = .1, .weight = {weight.data(), {classes}}});
    return out;
  };
  context one({.threads = 1});
  const float mean = loss(one, reduction::mean), sum = loss(one, reduction::sum);
  for (int turn = 0; turn < 4; ++turn) {
    for (std::int64_t i = rows - 1; i > 0; --i) {
      const auto j = static_cast<std::int64_t>(engine() % static_cast<std::uint32_t>(i + 1));
      std::swap(targets[static_cast<std::size_t>(i)], targets[static_cast<std::size_t>(j)]);
      std::swap_ranges(x.begin() + i * classes, x.begin() + (i + 1) * classes, x.begin() + j * classes);
    }
    context several({.threads = 1 + turn, .first_tier = turn == 3 ? tier::exact : tier::proved});
    CHECK(loss(several, reduction::mean) == mean);
    CHECK(loss(several, reduction::sum) == sum);
  }
  std::vector<float> p(rows * classes, 0.0f), each(rows), as_targets(rows), grad(rows * classes),
      grad_of_targets(rows * classes);
  for (std::size_t r = 0; r < rows; ++r) p[r * classes + static_cast<std::size_t>(targets[r])] = 1;
  const const_tensor_view logits(x.data(), {rows, classes}), w(weight.data(), {classes});
  cross_entropy(one, logits, {p.data(), {rows, classes}}, tensor_view(each),
                {.reduction = reduction::none, .label_smoothing = .1, .weight = w});
  cross_entropy(one, logits, const_tensor_view(targets), tensor_view(as_targets),
                {.reduction = reduction::none, .label_smoothing = .1, .weight = w});
  CHECK(each == as_targets);
  cross_entropy_backward(one, const_tensor_view(each), logits, {p.data(), {rows, classes}},
                         tensor_view(grad.data(), {rows, classes}),
                         {.reduction = reduction::none, .label_smoothing = .1, .weight = w});
  cross_entropy_backward(one, const_tensor_view(each), logits, const_tensor_view(targets),
                         tensor_view(grad_of_targets.data(), {rows, classes}),
                         {.reduction = reduction::none, .label_smoothing = .1, .weight = w});
  CHECK(grad == grad_of_targets);
  // Weights of one are no weights.
  std::vector<float> ones(classes, 1.0f), plain(rows);
  cross_entropy(one, logits, const_tensor_view(targets), tensor_view(plain), {.reduction = reduction::none});
  cross_entropy(one, logits, const_tensor_view(targets), tensor_view(as_targets),
                {.reduction = reduction::none, .weight = {ones.data(), {classes}}});
  CHECK(plain == as_targets);
}

TEST_CASE("cross_entropy with weights and probabilities: at the borders, by their bits") {
  context ctx;
  const auto same = [](float got, float want) {
    CAPTURE(got);
    CAPTURE(want);
    CHECK(std::memcmp(&got, &want, 4) == 0);
  };
  const float nan = std::bit_cast<float>(0x7fc00000u);
  const auto loss = [&](const std::vector<float>& x, const std::vector<std::int64_t>& t, const std::vector<float>& w,
                        double s, reduction r) {
    const auto rows = static_cast<std::int64_t>(t.size()), n = static_cast<std::int64_t>(w.size());
    float out = 7;
    cross_entropy(ctx, {x.data(), {rows, n}}, {t.data(), sizes{rows}}, tensor_view(&out, {}),
                  {.reduction = r, .label_smoothing = s, .weight = {w.data(), {n}}});
    return out;
  };
  const float ln2 = 0x1.62e43p-1f;
  same(loss({0, 0}, {0}, {3, 1}, 0, reduction::mean), ln2);
  same(loss({0, 0}, {0}, {2, 1}, 0, reduction::sum), 2 * ln2);
  // Coefficients 3/2 + 3/4 and 5/4, then 3/4 and 5/2 + 5/4: 8 ln 2 by 8.
  same(loss({0, 0, 1, 1}, {0, 1}, {3, 5}, .5, reduction::mean), ln2);
  same(loss({0, 0}, {0}, {0, 1}, 0, reduction::mean), nan);  // 0 / 0
  same(loss({0, -inf}, {0}, {1, 0}, .5, reduction::sum), 0.0f);
  same(loss({0, -inf}, {0}, {1, 1}, .5, reduction::sum), inf);
  same(loss({0, -inf}, {0}, {1, -1}, .5, reduction::sum), -inf);
  same(loss({0, -inf}, {1}, {1, 0}, 0, reduction::sum), 0.0f);
  same(loss({0, 0}, {0}, {inf, 1}, 0, reduction::sum), nan);
  same(loss({0, 0}, {1}, {inf, 1}, 0, reduction::sum), ln2);  // has no part
  same(loss({0, 0}, {1}, {inf, 1}, .5, reduction::sum), nan);
  same(loss({0, 0}, {2}, {1, 1}, .5, reduction::sum), nan);
  same(loss({0, 0}, {-100}, {1, 1}, .5, reduction::sum), 0.0f);
  same(loss({0, 0}, {-100}, {1, 1}, .5, reduction::mean), nan);
  same(loss({inf, 0}, {0}, {1, 1}, .5, reduction::sum), nan);
  // Weights of both signs: their sum is 0, the losses' is not.
  same(loss({0, 0, 5, 4}, {0, 1}, {1, -1}, 0, reduction::mean), -inf);

  const auto of = [&](const std::vector<float>& x, const std::vector<float>& p, double s, reduction r) {
    const auto n = static_cast<std::int64_t>(x.size());
    float out = 7;
    cross_entropy(ctx, {x.data(), {1, n}}, {p.data(), {1, n}},
                  tensor_view(&out, r == reduction::none ? sizes{1} : sizes{}), {.reduction = r, .label_smoothing = s});
    return out;
  };
  for (const reduction r : {reduction::none, reduction::mean, reduction::sum}) {
    same(of({}, {}, 0, r), 0.0f);
    same(of({0, 0}, {.5f, .5f}, 0, r), ln2);
    same(of({5, -inf}, {1, 0}, 0, r), 0.0f);
    same(of({5, -inf}, {1, 1}, 0, r), inf);
    same(of({5, -inf}, {1, -1}, 0, r), -inf);
    same(of({5, -inf, -inf}, {0, -1, 1}, 0, r), nan);
    same(of({5, -inf}, {1, -.5f}, .5, r), 0.0f);  // -.5 / 2 + .5 / 2: absent
    same(of({5, -inf}, {1, std::nextafter(-.5f, 0.0f)}, .5, r), inf);
    same(of({5, -inf}, {1, std::nextafter(-.5f, -1.0f)}, .5, r), -inf);
    same(of({5, 3}, {inf, 0}, 0, r), nan);
    same(of({5, 3}, {nan, 0}, 0, r), nan);
    // The coefficients add up to 0: gaps, exactly, a tie among them.
    same(of({0x1p24f, -1}, {-1, 1}, 0, r), 0x1p24f);
    same(of({0x1p24f, -3}, {-1, 1}, 0, r), 0x1p24f + 4);
    same(of({0x1p24f, -3}, {1, -1}, 0, r), -(0x1p24f + 4));
    // Beside it by less than any number of bits shows.
    same(of({0x1p24f, -1}, {0, 1}, 0, r), 0x1p24f + 2);
    same(of({0x1p24f, 0x1p24f, -1}, {-1, -1, 1}, 0, r), 0x1p24f);  // 2^24 + 1 - ln 2
  }
  float gradient[3];
  const auto backward = [&](float g, std::vector<float> x, std::vector<float> p, double s) {
    x.resize(3, -inf);
    p.resize(3, 0);
    cross_entropy_backward(ctx, {&g, {1}}, {x.data(), {1, 3}}, {p.data(), {1, 3}}, tensor_view(gradient, {1, 3}),
                           {.reduction = reduction::none, .label_smoothing = s});
  };
  const auto are = [&](float a, float b, float c) {
    same(gradient[0], a);
    same(gradient[1], b);
    same(gradient[2], c);
  };
  backward(1, {0, 0}, {1, 0}, 0);
  are(-.5f, .5f, 0);
  backward(-1, {0, 0}, {.5f, .5f}, 0);
  are(-0.0f, -0.0f, -0.0f);
  backward(1, {0}, {1}, 0);
  are(0, 0, 0);
  backward(inf, {0, 0}, {1, 0}, 0);
  are(-inf, inf, nan);
  backward(0, {0, 0}, {1, 0}, 0);
  are(-0.0f, 0, 0);
  backward(1, {0, -1000}, {1, 0}, 0);  // -e^-1000, e^-1000
  are(-0.0f, 0, 0);
  backward(1, {0, -1000}, {.25f, 0x1p-149f}, 0);  // beside exact results
  are(0x1p-149f, -0x1p-149f, 0);
  backward(3, {0, 0}, {inf, 0}, 0);
  are(nan, nan, nan);
}
