// Sums, means and dot products in another format than their operands': against the oracle in every way that must not matter, special values
// and ties by their bits, and what is refused.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/wide_rows.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::huge, tests::least, tests::most, tests::none;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

tests::call_case case_of(const std::string& op, sample_class kind, const shape_list& x, dtype from, dtype to,
                         std::uint64_t stream) {
  attributes attrs{{"dtype", std::string(name_of(to))}};
  if (op != "dot") attrs.push_back({"axis", std::vector<std::int64_t>{-1}});
  std::vector<array> in;
  for (std::uint64_t i = 0; i < (op == "dot" ? 2 : 1); ++i) in.push_back(reference::fill(kind, from, x, stream, i));
  return {op, std::move(in), attrs};
}

void check(const std::string& op, const std::vector<array>& in, dtype to, std::uint64_t want) {
  for (const tier first : {tier::proved, tier::exact}) {
    context ctx({.threads = 1, .first_tier = first});
    const array got = tests::run(ctx, {op, in, {{"dtype", std::string(name_of(to))}}}).at(0);
    CAPTURE(op);
    CHECK(got.type == to);
    CHECK(got.get(0) == want);
  }
}

}  // namespace

TEST_CASE("sums in other formats: every class, tier, number of threads and layout, against the oracle") {
  tests::wide_rows calls(73);
  std::uint64_t stream = 0;
  for (const std::string op : {"sum", "mean", "dot"}) {
    for (const dtype from : formats) {
      for (const dtype to : formats) {
        if (from == to) continue;
        for (const sample_class kind : reference::element_classes) {
          for (const std::int64_t n : {0, 1, 2, 7, 300}) {
            CAPTURE(n);
            CAPTURE(std::string(name_of(from)));
            CAPTURE(std::string(name_of(to)));
            calls.check(case_of(op, kind, op == "dot" ? shape_list{n} : shape_list{2, n}, from, to, ++stream), kind);
          }
        }
      }
    }
  }
}

TEST_CASE("sums in other formats: terms that threads share") {
  context one({.threads = 1}), several({.threads = 3});
  for (const std::string op : {"sum", "mean", "dot"}) {
    for (const dtype from : formats) {
      const dtype to = from == dtype::f64 ? dtype::f32 : dtype::f64;
      const tests::call_case c = case_of(op, sample_class::normal_range, {70001}, from, to, 5);
      CHECK(tests::run(several, c) == tests::run(one, c));
      CHECK(tests::run(one, c) == reference::evaluate_all(op, c.in, c.attrs));
    }
  }
}

TEST_CASE("sums in other formats: special values and ties by their bits") {
  using tests::row, tests::row_of;
  // 1 + 2^-24 is a tie of binary32; 2^-60 more is not; from binary64 at once.
  check("sum", {row_of({1, 0x1p-24})}, dtype::f32, 0x3f800000);
  check("sum", {row_of({1, 0x1p-24, 0x1p-600})}, dtype::f32, 0x3f800001);
  check("sum", {row_of({1, 0x1p-24, -least})}, dtype::f32, 0x3f800000);
  check("sum", {row({1, 0x1p-24f})}, dtype::f64, 0x3ff0000010000000);
  check("sum", {row_of({most, most, -most})}, dtype::f32, 0x7f800000);
  check("sum", {row_of({most, most, -most, -most, 3})}, dtype::f16, 0x4200);
  check("sum", {row_of({least, -0.0})}, dtype::f32, 0);
  check("sum", {row_of({-least})}, dtype::f32, 0x80000000);
  check("sum", {row_of({-0.0, -0.0})}, dtype::f32, 0);
  check("sum", {row_of({huge, 1})}, dtype::bf16, 0x7f80);
  check("sum", {row_of({huge, -huge})}, dtype::f32, 0x7fc00000);
  check("sum", {row_of({none})}, dtype::f16, 0x7e00);
  check("sum", {row({})}, dtype::f64, 0);
  check("mean", {row({})}, dtype::f64, 0x7ff8000000000000);
  check("mean", {row({1, 0, 0})}, dtype::f64, 0x3fd5555555555555);
  check("mean", {row_of({0x1.000001p1, 0})}, dtype::f32, 0x3f800000);
  check("mean", {row_of({0x1.000003p1, 0})}, dtype::f32, 0x3f800002);
  check("dot", {row({0x1.000002p0f, 0x1p-149f}), row({0x1.000002p0f, 0x1p-149f})}, dtype::f64, 0x3ff0000040000040);
  check("dot", {row_of({1e300, 1e-300}), row_of({-1e300, 1})}, dtype::f32, 0xff800000);
  check("dot", {row({0, 1}), row({tests::inf, 1})}, dtype::f64, 0x7ff8000000000000);
}

TEST_CASE("sums in other formats: what is refused; an output says its format") {
  context ctx;
  const std::vector<float> x{1, 0x1p-24f};
  const std::vector<std::int64_t> whole{1, 2};
  double wide = 0;
  sum(ctx, const_tensor_view(x.data(), {2}), tensor_view(&wide, {}));
  CHECK(wide == 1 + 0x1p-24);
  dot(ctx, const_tensor_view(x.data(), {2}), const_tensor_view(x.data(), {2}), tensor_view(&wide, {}));
  CHECK(wide == 1 + 0x1p-48);
  const std::vector<const_tensor_view> floats{const_tensor_view(x.data(), {2})},
      integers{const_tensor_view(whole.data(), sizes{2})};
  const attributes narrow{{"dtype", std::string("f32")}}, i64{{"dtype", std::string("i64")}};
  CHECK_THROWS_WITH(infer(*find("sum"), floats, i64),
                    doctest::Contains("sum: dtype: expected f16, bf16, f32 or f64, got i64"));
  CHECK_THROWS_WITH(infer(*find("sum"), integers, narrow), doctest::Contains("sum: dtype: expected i64, got f32"));
  CHECK_THROWS_WITH(infer(*find("mean"), integers, narrow),
                    doctest::Contains("mean: dtype: expected f64, of integers, got f32"));
}
