// attention_backward through the public API: against the oracle in every way that must not matter, what the contract says of zeros, ties and what is not
// finite, and that no bit depends on how a computation is cut: batch, padding, chunks of queries, heads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/digests.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/attention_problems.hpp"
#include "tests/helpers/everywhere.hpp"

using namespace repdl;
using reference::absent_shape;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::attention_problem;
using tests::attention_problems;
using tests::call_case;
using tests::every_setting;
using tests::setting;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

// Numbers of f32, rounded.
array of(const shape_list& shape, const std::vector<double>& numbers) {
  array x(dtype::f32, shape);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    x.set(i, std::bit_cast<std::uint32_t>(static_cast<float>(numbers[i])));
  return x;
}
// Ordinary numbers between -2 and 2.
array ordinary(const shape_list& shape, std::uint64_t seed) {
  reference::word_stream w(seed, 9);
  array x(dtype::f32, shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i)
    x.set(i, std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(w.next())) * 0x1p-30f));
  return x;
}
std::vector<array> gradients(context& ctx, const std::vector<array>& in, const attributes& attrs) {
  return run(ctx, call_case{"attention_backward", in, attrs});
}
// Of axis a of an array, places [first, first + count).
array part(const array& x, std::size_t axis, std::int64_t first, std::int64_t count) {
  shape_list shape = x.shape;
  shape[axis] = count;
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  array r(x.type, shape);
  for (std::int64_t i = 0; i < r.count(); ++i) {
    const std::int64_t outer = i / (count * inner), rest = i % (count * inner);
    r.set(reference::index(i), x.get(reference::index((outer * x.shape[axis] + first) * inner + rest)));
  }
  return r;
}

}  // namespace

TEST_CASE("attention_backward: every class, format, tier, number of threads and layout, against the oracle") {
  tests::everywhere all(6);
  std::uint64_t seed = 0;
  for (int i = 0; i < std::ssize(attention_problems()); ++i) {
    const attention_problem& p = attention_problems()[static_cast<std::size_t>(i)];
    for (int k = 0; k < std::ssize(reference::element_classes); ++k) {
      const sample_class kind = reference::element_classes[static_cast<std::size_t>(k)];
      const dtype t = formats[(k + i) % 4];  // every class in every format, problem after problem
      CAPTURE(std::string(name_of(kind)));
      CAPTURE(std::string(name_of(t)));
      CAPTURE(i);
      const std::vector<array> in = p.fill_backward(kind, t, ++seed);
      all.check({"attention_backward", in, p.attrs}, {k, static_cast<int>(t), i},
                reference::evaluate_all("attention_backward", in, p.attrs));
    }
  }
}

TEST_CASE("attention_backward: samples are of their classes" * doctest::test_suite("values")) {
  for (const dtype t : formats) {
    for (const sample_class kind : {sample_class::ties, sample_class::near_ties, sample_class::subnormal,
                                    sample_class::overflow_border, sample_class::cancelling, sample_class::zeros}) {
      const attention_problem p{{{8, 16, 4}, {8, 6, 4}, {8, 6, 3}}, {}};
      std::int64_t hits = 0;
      for (const std::uint64_t seed : {5, 6, 7, 8}) {
        reference::outcomes where;
        reference::evaluate_all("attention_backward", p.fill_backward(kind, t, seed), {}, &where);
        for (const reference::outcome& o : where) hits += hit(kind, o) ? 1 : 0;
      }
      CAPTURE(std::string(name_of(kind)));
      CAPTURE(std::string(name_of(t)));
      CHECK(hits >= 100);
    }
  }
}

// One query and keys of one number each, q = 1 and scale 1: what is known by hand.
TEST_CASE("attention_backward: zeros, ties, and what decides beside them") {
  const double above = 1 + 0x1p-23;
  struct line {
    std::vector<double> scores, values;
    double g, y, lse, grad_q, grad_v0;
  };
  const line lines[] = {
      {{3}, {5}, 7, 5, 3, 0, 7},                                   // the only key: y is its v
      {{3}, {5}, 0, 1, 3, 0, 0},                                   // no gradient comes
      {{above}, {1}, 1.5, 0, above, 1 + 0x1p-22 + 0.5, 1.5},       // 1.5 above is a tie, to even
      {{above, -200}, {1, 1}, 1.5, 0, above, 1.5 + 0x1p-23, 1.5},  // the second key's score is negative: below the tie
      {{above, above}, {1, -1}, 1.5, 0, above, 0, 1.5},            // terms that cancel
      {{above, above, -300}, {1, -1, -1}, 1.5, 0, above, 0.0, 1.5},
      {{2}, {1}, 1, 0, -100, infinity, infinity},
      {{2}, {1}, 1, 0, 300, 0, 0},
      {{-2}, {1}, 1, 0, 300, -0.0, 0},
      {{2}, {3}, 1, 0, -infinity, infinity, infinity},      // e^inf
      {{2}, {3}, 1, 3, -infinity, not_a_number, infinity},  // times 0
      {{2}, {3}, 1, 2, infinity, 0, 0},                     // e^-inf
      {{2}, {infinity}, 1, 2, infinity, not_a_number, 0},
      {{2}, {3}, 1, 2, not_a_number, not_a_number, not_a_number},
  };
  for (const line& l : lines) {
    const auto n = std::ssize(l.scores);
    const std::vector<array> in = {of({1, 1}, {l.g}),    of({1, 1}, {1}),   of({n, 1}, l.scores),
                                   of({n, 1}, l.values), of({1, 1}, {l.y}), of({1}, {l.lse})};
    const std::vector<array> want = reference::evaluate_all("attention_backward", in, {});
    CAPTURE(&l - lines);
    CHECK(want[0] == of({1, 1}, {l.grad_q}));
    CHECK(part(want[2], 0, 0, 1) == of({1, 1}, {l.grad_v0}));
    for (const setting& s : every_setting()) CHECK(gradients(*s.ctx, in, {}) == want);
  }
}

TEST_CASE("attention_backward: what is absent is not looked at") {
  // The second key is masked out, the second query sees no key.
  const std::vector<array> in = {of({2, 1}, {1, not_a_number}),
                                 of({2, 1}, {1, not_a_number}),
                                 of({2, 1}, {1, not_a_number}),
                                 of({2, 1}, {2, not_a_number}),
                                 of({2, 1}, {1, not_a_number}),
                                 of({2}, {1, not_a_number}),
                                 of({2, 2}, {0, -infinity, -infinity, -infinity})};
  const std::vector<array> want = {of({2, 1}, {1, 0}), of({2, 1}, {1, 0}), of({2, 1}, {1, 0})};
  REQUIRE(reference::evaluate_all("attention_backward", in, {}) == want);
  for (const setting& s : every_setting()) CHECK(gradients(*s.ctx, in, {}) == want);
}

TEST_CASE("attention_backward: no bit depends on batch, chunks, padding or heads") {
  const array q = ordinary({2, 4, 45, 24}, 1), k = ordinary({2, 2, 70, 24}, 2), v = ordinary({2, 2, 70, 40}, 3),
              g = ordinary({2, 4, 45, 40}, 4);
  const attributes causal{{"causal", true}, {"bottom_right", true}};
  for (const setting& s : every_setting()) {
    if (s.first == tier::exact) continue;  // the same for larger tiers takes long
    context& ctx = *s.ctx;
    const std::vector<array> y = run(ctx, call_case{"attention", {q, k, v}, causal});
    const std::vector<array> whole = gradients(ctx, {g, q, k, v, y[0], y[1]}, causal);
    const auto of_queries = [](const array& x, std::int64_t first, std::int64_t count) {
      return part(x, 2, first, count);
    };
    // Queries alone.
    for (const std::int64_t n : {1, 8}) {
      const auto last = [&](const array& x) { return of_queries(x, 45 - n, n); };
      CHECK(gradients(ctx, {last(g), last(q), k, v, last(y[0]), last(y[1])}, causal)[0] == last(whole[0]));
    }
    // One of the batch.
    const auto second = [](const array& x) { return part(x, 0, 1, 1); };
    CHECK(gradients(ctx, {second(g), second(q), second(k), second(v), second(y[0]), second(y[1])}, causal) ==
          std::vector<array>{second(whole[0]), second(whole[1]), second(whole[2])});
    // Keys that no query sees, with anything in them: their gradients are 0.
    const auto padded = [](const array& x, std::uint64_t bits) {
      shape_list shape = x.shape;
      shape[2] += 7;
      array r(x.type, shape);
      for (std::int64_t i = 0; i < r.count(); ++i) r.set(reference::index(i), bits);
      const std::int64_t width = x.shape[3];
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const std::int64_t matrix = i / (x.shape[2] * width), rest = i % (x.shape[2] * width);
        r.set(reference::index(matrix * shape[2] * width + rest), x.get(reference::index(i)));
      }
      return r;
    };
    array mask(dtype::boolean, {45, 77});
    for (std::int64_t i = 0; i < 45; ++i) {
      for (std::int64_t j = 0; j < 77; ++j) mask.set(reference::index(i * 77 + j), j <= i + 25 ? 1 : 0);
    }
    constexpr std::uint64_t some_nan = 0x7fc00000;
    CHECK(gradients(ctx, {g, q, padded(k, some_nan), padded(v, some_nan), y[0], y[1], mask}, {}) ==
          std::vector<array>{whole[0], padded(whole[1], 0), padded(whole[2], 0)});
    // Heads of keys repeated: the gradient of a query is the same, and with one head of queries to each that of keys is a head's own.
    const auto repeated = [](const array& x) {
      shape_list shape = x.shape;
      shape[1] *= 2;
      array r(x.type, shape);
      const std::int64_t head = x.shape[2] * x.shape[3];
      for (std::int64_t i = 0; i < r.count(); ++i)
        r.set(reference::index(i), x.get(reference::index(i / (2 * head) * head + i % head)));
      return r;
    };
    const std::vector<array> alone = gradients(ctx, {g, q, repeated(k), repeated(v), y[0], y[1]}, causal);
    CHECK(alone[0] == whole[0]);
    const auto head = [](const array& x, std::int64_t h) { return part(x, 1, h, 1); };
    const std::vector<array> one =
        gradients(ctx, {head(g, 2), head(q, 2), head(k, 1), head(v, 1), head(y[0], 2), head(y[1], 2)}, causal);
    CHECK(one == std::vector<array>{head(whole[0], 2), head(alone[1], 2), head(alone[2], 2)});
  }
}

// More columns and rows than a block has, in every format: mostly binary64, some double-doubles.
TEST_CASE("attention_backward: blocks of rows and columns" * doctest::test_suite("values")) {
  const array q = ordinary({2, 70, 20}, 4), k = ordinary({1, 140, 20}, 5), v = ordinary({1, 140, 9}, 6),
              g = ordinary({2, 70, 9}, 7);
  context ctx({.threads = 2});
  for (const dtype t : formats) {
    const auto to = [&](const array& x) {
      return reference::evaluate("convert", {x}, {{"dtype", std::string(name_of(t))}});
    };
    const std::vector<array> y = run(ctx, call_case{"attention", {to(q), to(k), to(v)}, {}});
    const std::vector<array> in = {to(g), to(q), to(k), to(v), y[0], y[1]};
    CHECK(gradients(ctx, in, {}) == reference::evaluate_all("attention_backward", in, {}));
  }
}
