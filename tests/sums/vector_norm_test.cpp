// sum_squares and vector_norm through the public API: against the oracle in every way that must not matter (instruction set, threads,
// first tier, layout), special values and ties by their bits; dot decides what sum_squares is.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/attributes.hpp"
#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_tensor.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;
using reference::array;
using reference::magnitude_sum;
using reference::sample_class;
using reference::shape_list;
using tests::available;
using tests::every_setting;
using tests::layout;
using tests::placed_tensor;
using tests::setting;

namespace {

using integers = std::vector<std::int64_t>;

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

struct norm_case {
  std::string op;
  double p;
  magnitude_sum kind;
};
const norm_case cases[] = {{"sum_squares", 0, magnitude_sum::squares},
                           {"vector_norm", 2, magnitude_sum::root},
                           {"vector_norm", 1, magnitude_sum::plain},
                           {"vector_norm", inf, magnitude_sum::plain},
                           {"vector_norm", -inf, magnitude_sum::plain}};

attributes attributes_of(const norm_case& c, const integers& axis, bool keepdim = false) {
  attributes attrs{{"axis", axis}};
  if (keepdim) attrs.push_back({"keepdim", true});
  if (c.p != 0 && (c.p != 2 || keepdim)) attrs.push_back({"p", c.p});
  return attrs;
}

array run(context& ctx, const std::string& name, const std::vector<array>& x, const attributes& attrs,
          layout from = layout::contiguous, layout to = layout::contiguous) {
  const op_info& op = *find(name);
  std::vector<std::unique_ptr<placed_tensor>> in;
  std::vector<const_tensor_view> views;
  for (const array& a : x) {
    in.push_back(std::make_unique<placed_tensor>(ctx, a, from));
    views.push_back(in.back()->view());
  }
  const tensor_spec s = infer(op, views, attrs)[0];
  placed_tensor out(ctx, s.type, shape_list(s.shape.begin(), s.shape.end()), to);
  const tensor_view out_views[] = {out.view()};
  call(ctx, op, views, out_views, attrs);
  return out.get();
}

}  // namespace

TEST_CASE("vector_norm: every class, format, tier, number of threads and layout, against the oracle") {
  const std::vector<setting> settings = every_setting();
  reference::covering some(6);
  reference::word_stream words(47, 0);
  std::uint64_t stream = 0;
  struct shape_case {
    shape_list shape;
    integers axis;
  };
  for (const auto& [shape, axis] : {shape_case{{40, 1}, {1}},
                                    {{40, 3}, {1}},
                                    {{12, 30}, {0}},
                                    {{70, 9}, {0}},
                                    {{300, 20}, {0}},
                                    {{5, 700}, {1}},
                                    {{3, 5, 2, 4, 6}, {4, 0, -3}},
                                    {{2, 3000}, {-1}},
                                    {{4, 0}, {1}},
                                    {{7}, {}}}) {
    for (int k = 0; k < static_cast<int>(std::size(reference::element_classes)); ++k) {
      const sample_class kind = reference::element_classes[static_cast<std::size_t>(k)];
      for (const dtype t : formats) {
        for (const norm_case& c : cases) {
          if (c.p != 0 && c.p != 1 && c.p != 2 && reference::count_of(shape) == 0) continue;
          const attributes attrs = attributes_of(c, axis, words.flip());
          const reference::reduce_layout l = reference::layout_of(shape, axis, false);
          const array terms =
              reference::fill_magnitudes(kind, std::ssize(l.kept), std::ssize(l.reduced), c.kind, 53, ++stream, t);
          array x(t, shape);
          std::size_t at = 0;
          for (const std::int64_t base : l.kept)
            for (const std::int64_t d : l.reduced) x.set(static_cast<std::size_t>(base + d), terms.get(at++));
          const array want = reference::evaluate(c.op, {x}, attrs);
          for (std::size_t i = 0; i < settings.size(); ++i) {
            const setting& s = settings[i];
            if (!some.takes(static_cast<int>(i),
                            {static_cast<int>(c.kind) + ((c.kind == magnitude_sum::plain && c.p != 1) ? 3 : 0), k,
                             static_cast<int>(t)}))
              continue;
            CAPTURE(c.op);
            CAPTURE(c.p);
            CAPTURE(stream);
            CAPTURE(std::string(name_of(kind)));
            CAPTURE(std::string(name_of(t)));
            CAPTURE(s.isa);
            CAPTURE(static_cast<int>(s.first));
            CHECK(run(*s.ctx, c.op, {x}, attrs) == want);
            const layout from = tests::layouts[words.below(6)], to = tests::layouts[words.below(6)];
            CHECK(run(*s.ctx, c.op, {x}, attrs, from, to) == want);
          }
        }
      }
    }
  }
}

TEST_CASE("vector_norm: samples are of their classes, and long rows on several threads" *
          doctest::test_suite("values")) {
  for (const dtype t : formats) {
    for (const norm_case& c : cases) {
      if ((c.kind == magnitude_sum::plain && c.p != 1)) continue;
      for (const sample_class kind : {sample_class::ties, sample_class::near_ties, sample_class::overflow_border}) {
        const array x = reference::fill_magnitudes(kind, 200, 16, c.kind, 59, 1, t);
        reference::outcomes where;
        reference::evaluate_all(c.op, {x}, attributes_of(c, {1}), &where);
        std::int64_t hits = 0;
        for (const reference::outcome& o : where) hits += hit(kind, o) ? 1 : 0;
        CAPTURE(c.op);
        CAPTURE(c.p);
        CAPTURE(std::string(name_of(kind)));
        CAPTURE(std::string(name_of(t)));
        CHECK(hits >= (kind == sample_class::overflow_border ? 20 : 190));
      }
    }
    for (const std::string& isa : available()) {
      context one({.threads = 1}), several({.threads = 4, .isa = isa});
      for (const norm_case& c : cases) {
        const array x = reference::fill_magnitudes(sample_class::normal_range, 1, 300'000, c.kind, 59, 2, t);
        CHECK(run(several, c.op, {x}, attributes_of(c, {0, 1})) == run(one, c.op, {x}, attributes_of(c, {0, 1})));
      }
    }
  }
}

TEST_CASE("vector_norm: sum_squares is dot of x and x, and every root of a square is the number") {
  context ctx;
  for (const dtype t : formats) {
    for (const sample_class kind : reference::element_classes) {
      const array x = reference::fill(kind, t, {333}, 61, 1);
      CHECK(run(ctx, "sum_squares", {x}, {}) == run(ctx, "dot", {x, x}, {}));
    }
    // All of 16 bits, or many.
    const array x = reference::fill(t == dtype::f32 ? sample_class::uniform_patterns : sample_class::all_patterns, t,
                                    {65536}, 61, 2);
    const attributes none{{"axis", integers{}}};
    for (const double p : {1.0, 2.0, static_cast<double>(inf), static_cast<double>(-inf)}) {
      attributes attrs = none;
      attrs.push_back({"p", p});
      CHECK(run(ctx, "vector_norm", {x}, attrs) ==
            reference::evaluate("abs", {reference::evaluate("max", {x}, none)}, {}));
    }
  }
}

TEST_CASE("vector_norm: special values and ties by their bits") {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
    context ctx({.first_tier = first});
    const auto of = [&](const std::vector<float>& x, double p) {
      float out = 7;
      vector_norm(ctx, x, tensor_view(&out, dtype::f32, {}), {.p = p});
      return bits(out);
    };
    const float most = std::numeric_limits<float>::max();
    CHECK(of({3, -4}, 2) == bits(5));
    CHECK(of({3, -4}, 1) == bits(7));
    CHECK(of({3, -4}, inf) == bits(4));
    CHECK(of({3, -4}, -inf) == bits(3));
    for (const double p : {1.0, 2.0, static_cast<double>(inf)}) {
      CHECK(of({-0.0f, 0}, p) == 0);
      CHECK(of({1, -inf}, p) == bits(inf));
      CHECK(of({inf, nan}, p) == 0x7fc00000);
      CHECK(of({-inf, inf}, p) == bits(inf));
      CHECK(of({-most}, p) == bits(most));
      CHECK(of({-0x1p-149f}, p) == 1);
    }
    CHECK(of({-1, -inf}, -inf) == bits(1));
    CHECK(of({-inf, inf}, -inf) == bits(inf));
    CHECK(of({1, nan}, -inf) == 0x7fc00000);
    CHECK(of({-0.0f, 2}, -inf) == 0);
    CHECK(of({}, 1) == 0);
    CHECK(of({}, 2) == 0);
    CHECK(of({most, most}, 2) == bits(inf));
    CHECK(of({most, 0x1p103f}, 1) == bits(inf));  // a tie: half an ulp above the largest number
    CHECK(of({most, 0x1.fffffep102f}, 1) == bits(most));
    CHECK(of({most, 0x1p115f}, 2) == bits(most));  // less than half an ulp
    // 2^24 + 1 and 2^24 + 3, whose squares are sums of these: ties to even.
    CHECK(of({0x1p24f, 5792, 84, 10, 3, 2}, 2) == bits(0x1p24f));
    CHECK(of({0x1p24f, 5792, 84, 10, 3, 2, 0x1p-100f}, 2) == bits(0x1p24f + 2));
    CHECK(of({0x1p24f + 2, 5792, 84, 10, 4, 1}, 2) == bits(0x1p24f + 4));
    CHECK(of({0x1.8p-148f, 0x1p-147f}, 2) == 5);
    CHECK(of({0x1p-149f, 0x1p-149f}, 2) == 1);
  }
}
