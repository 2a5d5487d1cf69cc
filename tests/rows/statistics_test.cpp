// var, stddev and var_mean through the public API: against the oracle in every way that must not matter (instruction set, threads,
// first tier, layout, whether the mean is wanted), special values and ties by their bits.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/covering.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/placed_calls.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::available;
using tests::bits;
using tests::inf;
using tests::inf_bits;
using tests::layout;
using tests::nan;
using tests::nan_bits;
using tests::placed_tensor;
using tests::row;

namespace {

using integers = std::vector<std::int64_t>;
using patterns = std::vector<std::uint32_t>;

constexpr const char* operations_of_rows[] = {"var", "stddev", "var_mean"};

std::vector<array> run(context& ctx, const std::string& name, const array& x, const attributes& attrs,
                       layout from = layout::contiguous, layout to = layout::contiguous, bool wants_mean = true) {
  return tests::run(ctx, {name, {x}, attrs}, from, to, wants_mean ? ~0U : 1);
}

}  // namespace

TEST_CASE("statistics: every class, tier, number of threads and layout, against the oracle") {
  const std::vector<tests::setting> settings = tests::every_setting();
  const double corrections[] = {1, 0, 0.5, -2, 3, 0x1p-200, -0x1p200, 0.1, 1 - 0x1p-53};
  reference::covering some(6);
  reference::word_stream words(41, 0);
  std::uint64_t stream = 0;
  for (const std::int64_t n : {0, 1, 2, 3, 4, 8, 16, 20, 33, 64, 257, 1100, 8300}) {
    for (int k = 0; k < reference::sample_class_count; ++k) {
      const auto kind = static_cast<sample_class>(k);
      if (kind == sample_class::all_patterns) continue;
      if (n > 1000 && kind != sample_class::normal_range && kind != sample_class::near_ties) continue;
      for (const std::string op : operations_of_rows) {
        const std::int64_t rows = n < 100 ? 6 : 2, half = (n + 1) / 2;
        const std::pair<shape_list, integers> shapes[] = {
            {{rows, n}, {1}}, {{n, 5}, {0}}, {{2, rows, half}, {2, 0}}, {{2, 1, half, rows}, {-2, 0, 1}}, {{n}, {}}};
        for (const auto& [shape, axis] : shapes) {
          attributes attrs{{"correction", n >= 20 && words.flip() ? static_cast<double>(n) - (words.flip() ? 8 : 2)
                                                                  : corrections[words.below(std::size(corrections))]}};
          if (!axis.empty() || words.flip()) attrs.push_back({"axis", axis});
          if (words.flip()) attrs.push_back({"keepdim", true});
          const array x = reference::fill_inputs(op, kind, {shape}, attrs, 43, ++stream).at(0);
          const std::vector<array> want = reference::evaluate_all(op, {x}, attrs);
          std::int64_t count = 0;
          for (const array& a : want) count += a.count();
          for (std::size_t i = 0; i < settings.size(); ++i) {
            const tests::setting& s = settings[i];
            if (!some.takes(static_cast<int>(i), {find(op)->id, k})) continue;
            CAPTURE(op);
            CAPTURE(n);
            CAPTURE(shape.size());
            CAPTURE(stream);
            CAPTURE(std::string(name_of(kind)));
            CAPTURE(s.isa);
            CAPTURE(static_cast<int>(s.first));
            s.ctx->reset_statistics();
            CHECK(run(*s.ctx, op, x, attrs) == want);
            const repdl::statistics decided = s.ctx->read_statistics();
            CHECK(decided.elements[0] + decided.elements[1] + decided.elements[2] + decided.elements[3] == count);
            const layout from = tests::layouts[words.below(6)], to = tests::layouts[words.below(6)];
            const std::vector<array> got = run(*s.ctx, op, x, attrs, from, to, false);
            CHECK(got[0] == want[0]);
          }
        }
      }
    }
  }
}

TEST_CASE("statistics: eight axes, and rows that repeat") {
  context ctx({.threads = 2});
  const shape_list shape{2, 1, 3, 2, 1, 2, 5, 2};
  for (const std::string op : operations_of_rows) {
    for (const integers& axis : {integers{0, 2, 4, 6}, integers{1, -1, 3}, integers{7, 6, 5, 4, 3, 2, 1, 0}}) {
      const attributes attrs{{"axis", axis}};
      const array x = reference::fill_inputs(op, sample_class::normal_range, {shape}, attrs, 43, 1).at(0);
      const std::vector<array> want = reference::evaluate_all(op, {x}, attrs);
      for (const layout from : tests::layouts) CHECK(run(ctx, op, x, attrs, from, from) == want);
    }
  }
  // A row that is one number n times has no variance, whatever its stride.
  const std::vector<float> x{0.1f, 3};
  std::vector<float> v(2, 7), m(2, 7);
  var_mean(ctx, const_tensor_view(x.data(), dtype::f32, {2, 5}, {1, 0}), tensor_view(v), tensor_view(m), {.axis = 1});
  CHECK(v == std::vector<float>{0, 0});
  CHECK(m == x);
}

TEST_CASE("statistics: long rows, and many of them, on several threads") {
  context one({.threads = 1});
  std::uint64_t stream = 9000;
  for (const std::string& isa : available()) {
    context several({.threads = 4, .isa = isa});
    for (const std::string op : operations_of_rows) {
      for (const auto& [shape, axis] :
           {std::pair{shape_list{300'000}, 0}, {{3, 70'001}, 1}, {{20'000, 9}, 0}, {{30'000, 8}, 1}}) {
        const attributes attrs{{"axis", integers{axis}}};
        const array x = reference::fill_inputs(op, sample_class::normal_range, {shape}, attrs, 43, ++stream).at(0);
        CHECK(run(several, op, x, attrs) == run(one, op, x, attrs));
      }
    }
  }
}

TEST_CASE("statistics: special values, zeros and ties by their bits") {
  for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
    context ctx({.first_tier = first});
    const auto of = [&](const std::vector<float>& x, double correction) {
      patterns all;
      for (const std::string op : operations_of_rows) {
        for (const array& a : run(ctx, op, row(x), {{"correction", correction}})) {
          all.push_back(static_cast<std::uint32_t>(a.get(0)));
        }
      }
      CHECK(all[0] == all[2]);
      return patterns{all[0], all[1], all[3]};  // var, stddev, mean
    };
    CHECK(of({1, 3}, 1) == patterns{bits(2), bits(0x1.6a09e6p0f), bits(2)});
    CHECK(of({1, 3}, 0) == patterns{bits(1), bits(1), bits(2)});
    CHECK(of({1, 3}, -6) == patterns{bits(.25f), bits(.5f), bits(2)});
    CHECK(of({-0.0f, -0.0f}, 1) == patterns{0, 0, 0});
    CHECK(of({-0.0f, 0}, 0) == patterns{0, 0, 0});
    CHECK(of({inf, 1, 2}, 1) == patterns{nan_bits, nan_bits, inf_bits});
    CHECK(of({1, -inf, 2}, 1) == patterns{nan_bits, nan_bits, bits(-inf)});
    CHECK(of({1, -inf, inf}, 1) == patterns{nan_bits, nan_bits, nan_bits});
    CHECK(of({nan, 1, 1}, 1) == patterns{nan_bits, nan_bits, nan_bits});
    // n - correction is 0, below 0, and barely above.
    CHECK(of({3}, 1) == patterns{nan_bits, nan_bits, bits(3)});
    CHECK(of({3, 3}, 2) == patterns{nan_bits, nan_bits, bits(3)});
    CHECK(of({1, 3}, 2.5) == patterns{nan_bits, nan_bits, bits(2)});
    CHECK(of({1, 3}, 0x1p200) == patterns{nan_bits, nan_bits, bits(2)});
    CHECK(of({inf, 3}, 2) == patterns{nan_bits, nan_bits, inf_bits});
    CHECK(of({}, 1) == patterns{nan_bits, nan_bits, nan_bits});
    CHECK(of({}, -1) == patterns{nan_bits, nan_bits, nan_bits});
    CHECK(of({3}, 1 - 0x1p-53) == patterns{0, 0, bits(3)});
    CHECK(of({1, 3}, 2 - 0x1p-52) == patterns{bits(0x1p53f), bits(0x1.6a09e6p26f), bits(2)});
    // Ties to even: d^2 / 2, d odd, and d / 2 of 25 bits.
    CHECK(of({0, 4097}, 1)[0] == bits(8392704));
    CHECK(of({0, 4099}, 1)[0] == bits(8400900));
    CHECK(of({0x1p24f, -1, -1, -1}, 1)[1] == bits(0x1p23f));
    CHECK(of({0x1p24f, -3, -3, -3}, 1)[1] == bits(0x1p23f + 2));
    // The same with something tiny: no tie any more.
    CHECK(of({0x1p24f, -1, -1, -1.0000001f}, 1)[1] == bits(0x1p23f + 1));
    CHECK(of({9 * 0x1p-149f, -9 * 0x1p-149f}, 0)[1] == 9);
    // The ends: the variance overflows, the root of the same does not.
    const float most = std::numeric_limits<float>::max();
    CHECK(of({most, -most}, 0) == patterns{inf_bits, bits(most), 0});
    CHECK(of({most, -most}, 1) == patterns{inf_bits, inf_bits, 0});
    CHECK(of({0x1p-75f, -0x1p-75f}, 0) == patterns{0, bits(0x1p-75f), 0});  // 2^-150: a tie
    CHECK(of({0x1p-74f, -0x1p-75f}, 0)[0] == 1);                            // 9/16 2^-148
    CHECK(of({0x1p-149f, 0}, 0) == patterns{0, 0, 0});
    CHECK(of({0x1p-149f, 0}, 1) == patterns{0, 1, 0});
    // A mean that cancels all but a bit of x.
    CHECK(of({16777214, 16777215, 16777216}, 1) == patterns{bits(1), bits(1), bits(16777215)});
  }
}

TEST_CASE("statistics: the typed functions") {
  context ctx;
  const std::vector<float> x{1, 2, 3, 6, -1, -2, -3, -6};
  std::vector<float> v(2), m(2);
  const const_tensor_view in(x.data(), {2, 4});
  var(ctx, in, tensor_view(v), {.axis = 1, .correction = 0});
  CHECK(v == std::vector<float>{3.5f, 3.5f});
  stddev(ctx, in, tensor_view(v.data(), {2, 1}), {.axis = -1, .keepdim = true, .correction = 4 - 3.5});
  CHECK(v == std::vector<float>{2, 2});
  var_mean(ctx, in, tensor_view(v), tensor_view(m), {.axis = 1, .correction = 0});
  CHECK(v == std::vector<float>{3.5f, 3.5f});
  CHECK(m == std::vector<float>{3, -3});
  v = {};
  v.resize(2);
  var_mean(ctx, in, tensor_view(v), {}, {.axis = 1, .correction = 0});
  CHECK(v == std::vector<float>{3.5f, 3.5f});
  float all = 0;
  var(ctx, in, tensor_view(&all, dtype::f32, {}), {.correction = 0});
  CHECK(all == 12.5f);
}
