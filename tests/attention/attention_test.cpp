// attention through the public API: against the oracle in every way that must not matter, what the contract says of ties, masks and what is not
// finite, and that no bit depends on how a computation is cut: batch, place, padding, cache, pages, chunks of queries, heads.
#include <doctest/doctest.h>

#include <algorithm>
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
constexpr double infinity = std::numeric_limits<double>::infinity();

// Numbers of a format, rounded.
array of(dtype t, const shape_list& shape, const std::vector<double>& numbers) {
  array x(dtype::f64, shape);
  for (std::size_t i = 0; i < numbers.size(); ++i) x.set(i, std::bit_cast<std::uint64_t>(numbers[i]));
  return reference::evaluate("convert", {x}, {{"dtype", std::string(name_of(t))}});
}
// Ordinary numbers of f32 between -2 and 2.
array ordinary(const shape_list& shape, std::uint64_t seed) {
  reference::word_stream w(seed, 9);
  array x(dtype::f32, shape);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i)
    x.set(i, std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(w.next())) * 0x1p-30f));
  return x;
}
// Rows [first, first + count) of the last but one axis, of each matrix.
array rows(const array& x, std::int64_t first, std::int64_t count) {
  const std::size_t axis = x.shape.size() - 2;
  const std::int64_t have = x.shape[axis], width = x.shape[axis + 1];
  shape_list shape = x.shape;
  shape[axis] = count;
  array r(x.type, shape);
  for (std::int64_t i = 0; i < r.count(); ++i) {
    const std::int64_t matrix = i / (count * width), rest = i % (count * width);
    r.set(reference::index(i), x.get(reference::index(matrix * have * width + first * width + rest)));
  }
  return r;
}
std::vector<array> attend(context& ctx, const std::vector<array>& in, const attributes& attrs) {
  return run(ctx, call_case{"attention", in, attrs});
}

}  // namespace

TEST_CASE("attention: every class, format, tier, number of threads and layout, against the oracle") {
  tests::everywhere all(6);
  std::uint64_t seed = 0;
  for (const attention_problem& p : attention_problems()) {
    for (int k = 0; k < static_cast<int>(std::size(reference::element_classes)); ++k) {
      const sample_class kind = reference::element_classes[static_cast<std::size_t>(k)];
      for (const dtype t : formats) {
        CAPTURE(std::string(name_of(kind)));
        CAPTURE(std::string(name_of(t)));
        CAPTURE(p.shapes[0].size());
        const std::vector<array> in = p.fill(kind, t, ++seed);
        all.check({"attention", in, p.attrs},
                  {k, static_cast<int>(t), static_cast<int>(&p - attention_problems().data())},
                  reference::evaluate_all("attention", in, p.attrs));
      }
    }
  }
}

TEST_CASE("attention: samples are of their classes" * doctest::test_suite("values")) {
  for (const dtype t : formats) {
    for (const sample_class kind : {sample_class::ties, sample_class::near_ties, sample_class::subnormal,
                                    sample_class::overflow_border, sample_class::cancelling, sample_class::zeros}) {
      reference::outcomes where;
      const attention_problem p{{{8, 16, 4}, {8, 6, 4}, {8, 6, 3}}, {}};
      reference::evaluate_all("attention", p.fill(kind, t, 5), {}, &where);
      std::int64_t hits = 0;
      for (std::size_t i = 0; i < 8 * 16 * 3; ++i) hits += hit(kind, where[i]) ? 1 : 0;
      CAPTURE(std::string(name_of(kind)));
      CAPTURE(std::string(name_of(t)));
      CHECK(hits >= 100);
    }
  }
}

// Equal scores: averages that are ties, to even, whatever else is far below.
TEST_CASE("attention: ties, and what decides beside them") {
  const double above = 1 + 0x1p-23;
  struct line {
    std::vector<double> scores, values;
    double want;
  };
  const line lines[] = {
      {{0, 0}, {1, above}, 1},
      {{0, 0}, {above, 1 + 0x1p-22}, 1 + 0x1p-22},
      {{5, 5, 5, 5}, {1, 1, above, above}, 1},
      {{0, 0, -1000}, {1, above, 1}, 1},
      {{0, 0, -1000}, {1, above, 2}, above},
      {{0, 0, -1e30}, {1, above, 2}, above},
      {{0, 0, -1e30, -1e30}, {1, above, 2, 1 + 0x1p-23 - 1}, 1},  // 2 and 2^-23 are on average below the middle
      {{0, 0, -1e4, -1e30}, {1, above, above, 0}, above},
      {{0, 0}, {3, -3}, 0.0},
      {{0, 0, -1000}, {3, -3, -1}, -0.0},
      {{0, -1000}, {0, -1}, -0.0},
      {{0, -1000}, {0, 1}, 0.0},
      {{0, 0}, {0x1p-149, 0}, 0.0},
      {{0, 0}, {0x1p-149, 0x1p-148}, 0x1p-148},
      {{7}, {-3.5}, -3.5},
  };
  for (const line& l : lines) {
    const auto n = std::ssize(l.scores);
    const std::vector<array> in = {of(dtype::f32, {1, 1}, {1}), of(dtype::f32, {n, 1}, l.scores),
                                   of(dtype::f32, {n, 1}, l.values)};
    const array want = of(dtype::f32, {1, 1}, {l.want});
    REQUIRE(reference::evaluate_all("attention", in, {})[0] == want);
    for (const setting& s : every_setting()) CHECK(attend(*s.ctx, in, {})[0] == want);
  }
}

TEST_CASE("attention: what is absent is not looked at, and what is not finite") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct line {
    std::vector<double> scores, values, mask;
    double out, lse;
  };
  const line lines[] = {
      {{0, nan}, {1, nan}, {0, -infinity}, 1, 0},
      {{0, nan}, {1, 1}, {0, 0}, nan, nan},
      {{0, infinity}, {1, 1}, {0, 0}, nan, infinity},
      {{0, -infinity}, {1, 5}, {0, 0}, 1, 0},
      {{0, -infinity}, {1, infinity}, {0, 0}, nan, 0},
      {{0, -1e30}, {1, infinity}, {0, 0}, infinity, 0},
      {{0, -1e30}, {-infinity, infinity}, {0, 0}, nan, 0},
      {{-infinity, -infinity}, {1, 2}, {0, 0}, nan, -infinity},
      {{1, 2}, {1, 2}, {-infinity, -infinity}, 0, -infinity},
      {{infinity, 2}, {1, 2}, {-infinity, 0}, 2, 2},
  };
  for (const line& l : lines) {
    const std::vector<array> in = {of(dtype::f32, {1, 1}, {1}), of(dtype::f32, {2, 1}, l.scores),
                                   of(dtype::f32, {2, 1}, l.values), of(dtype::f32, {1, 2}, l.mask)};
    const std::vector<array> want = {of(dtype::f32, {1, 1}, {l.out}), of(dtype::f32, {1}, {l.lse})};
    REQUIRE(reference::evaluate_all("attention", in, {}) == want);
    for (const setting& s : every_setting()) CHECK(attend(*s.ctx, in, {}) == want);
  }
}

TEST_CASE("attention: no bit depends on batch, place, cache, chunks, padding or heads") {
  const array q = ordinary({2, 4, 45, 24}, 1), k = ordinary({2, 2, 150, 24}, 2), v = ordinary({2, 2, 150, 40}, 3);
  const attributes causal{{"causal", true}, {"bottom_right", true}};
  for (const setting& s : every_setting()) {
    if (s.first == tier::exact) continue;  // the same for larger tiers takes long
    context& ctx = *s.ctx;
    const std::vector<array> whole = attend(ctx, {q, k, v}, causal);
    // Decoding: the last queries alone, from one to eight, and chunks of a prompt.
    for (const std::int64_t n : {1, 2, 8, 17}) {
      CHECK(attend(ctx, {rows(q, 45 - n, n), k, v}, causal)[0] == rows(whole[0], 45 - n, n));
    }
    CHECK(attend(ctx, {rows(q, 0, 20), rows(k, 0, 125), rows(v, 0, 125)}, causal)[0] == rows(whole[0], 0, 20));
    // Padding: more keys, which a mask says are absent, with anything in them.
    array more_k(dtype::f32, {2, 2, 157, 24}), more_v(dtype::f32, {2, 2, 157, 40}), mask(dtype::boolean, {45, 157});
    for (array* x : {&more_k, &more_v}) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(x->count()); ++i) x->set(i, 0x7fc00000);
    }
    const auto put = [](array& to, const array& from) {
      const std::int64_t width = to.shape[3], have = from.shape[2], rows = to.shape[2];
      for (std::int64_t i = 0; i < from.count(); ++i) {
        const std::int64_t matrix = i / (have * width), rest = i % (have * width);
        to.set(reference::index(matrix * rows * width + rest), from.get(reference::index(i)));
      }
    };
    put(more_k, k);
    put(more_v, v);
    for (std::int64_t i = 0; i < 45; ++i) {
      for (std::int64_t j = 0; j < 157; ++j) mask.set(reference::index(i * 157 + j), j <= i + 105 ? 1 : 0);
    }
    CHECK(attend(ctx, {q, more_k, more_v, mask}, {}) == whole);
    // One of the batch, and heads of keys repeated.
    const auto second = [](const array& x) {
      shape_list shape = x.shape;
      shape[0] = 1;
      array r(x.type, shape);
      for (std::int64_t i = 0; i < r.count(); ++i) r.set(reference::index(i), x.get(reference::index(i + r.count())));
      return r;
    };
    CHECK(attend(ctx, {second(q), second(k), second(v)}, causal) ==
          std::vector<array>{second(whole[0]), second(whole[1])});
    const auto repeated = [](const array& x) {
      shape_list shape = x.shape;
      shape[1] *= 2;
      array r(x.type, shape);
      const std::int64_t head = x.shape[2] * x.shape[3];
      for (std::int64_t i = 0; i < r.count(); ++i)
        r.set(reference::index(i), x.get(reference::index(i / (2 * head) * head + i % head)));
      return r;
    };
    CHECK(attend(ctx, {q, repeated(k), repeated(v)}, causal) == whole);
  }
}

// Lk up to 65,536, and a query that sees so many equal keys that their weights add up to an even number.
TEST_CASE("attention: many keys" * doctest::test_suite("values")) {
  const array q = ordinary({2, 8}, 4), k = ordinary({65536, 8}, 5), v = ordinary({65536, 2}, 6);
  context ctx({.threads = 2});
  const std::vector<array> got = attend(ctx, {q, k, v}, {}), want = reference::evaluate_all("attention", {q, k, v}, {});
  CHECK(got == want);
  const array none(dtype::f32, {2, 8});
  CHECK(attend(ctx, {none, k, v}, {}) == reference::evaluate_all("attention", {none, k, v}, {}));
}

TEST_CASE("attention: the default scale is the rounded reciprocal root") {
  context ctx;
  for (const std::int64_t d : {1, 2, 3, 5, 7, 16, 24, 63, 64, 65, 80, 96, 128, 255, 256, 257, 1000}) {
    const array q = ordinary({1, d}, 7), k = ordinary({3, d}, 8), v = ordinary({3, 1}, 9);
    CHECK(attend(ctx, {q, k, v}, {}) == reference::evaluate_all("attention", {q, k, v}, {}));
  }
}

TEST_CASE("attention: results that are made, and their statistics") {
  context ctx({.threads = 1});
  const std::vector<float> q = {1, 0}, k = {1, 0, 0, 1}, v = {1, 2};
  const const_tensor_view vq(q.data(), {1, 2}), vk(k.data(), {2, 2}), vv(v.data(), {2, 1});
  float out = 0, lse = 0;
  attention(ctx, vq, vk, vv, tensor_view(&out, {1, 1}), {.scale = 1}, {}, {}, tensor_view(&lse, {1}));
  const auto e = std::exp(1.0);
  CHECK(out == static_cast<float>((e + 2) / (e + 1)));
  CHECK(lse == static_cast<float>(std::log(e + 1)));
  CHECK(ctx.read_statistics()[tier::binary64] == 2);
  float again = 0;
  attention(ctx, vq, vk, vv, tensor_view(&again, {1, 1}), {.scale = 1});
  CHECK(again == out);
}
