// cross_entropy in binary64 and its gradient, of targets and of probabilities: against the oracle in every way that must not matter, every
// reduction, with and without weights and smoothing; special values by their bits; rows and totals that several threads share.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_calls.hpp"
#include "tests/helpers/wide_rows.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::check_bits, tests::doubles, tests::huge, tests::least, tests::most, tests::none, tests::number_of,
    tests::row_of;

namespace {

constexpr const char* four_operations[] = {"cross_entropy", "cross_entropy_backward", "cross_entropy_probabilities",
                                           "cross_entropy_probabilities_backward"};
constexpr const char* reductions[] = {"none", "mean", "sum"};
constexpr double smoothings[] = {0, 0.1, 1, 0x1p-64, 0.5, 0x1.fffffffffffffp-1};

tests::call_case case_of(const std::string& op, sample_class kind, const shape_list& x, const std::string& reduction,
                         double smoothing, bool weighted, std::uint64_t stream) {
  attributes attrs{{"reduction", reduction}, {"label_smoothing", smoothing}};
  if (!op.starts_with("cross_entropy_prob")) attrs.push_back({"ignore_index", std::int64_t{1}});
  const test::class_call c = test::call_at(op, x, attrs, {weighted});
  return {op, reference::fill_inputs(op, kind, c.shapes, c.attrs, 59, stream, dtype::f64), c.attrs};
}

array of_rows(const std::vector<doubles>& rows) {
  doubles all;
  for (const doubles& r : rows) all.insert(all.end(), r.begin(), r.end());
  array a = row_of(all);
  a.shape = {std::ssize(rows), std::ssize(rows.at(0))};
  return a;
}
array targets_of(const std::vector<std::int64_t>& targets) {
  array a(dtype::i64, {std::ssize(targets)});
  for (std::size_t i = 0; i < targets.size(); ++i) a.set(i, static_cast<std::uint64_t>(targets[i]));
  return a;
}
attributes with(const char* reduction, double smoothing = 0) {
  return {{"reduction", std::string(reduction)}, {"label_smoothing", smoothing}};
}

}  // namespace

TEST_CASE("cross_entropy of f64: every class, tier, number of threads and layout, against the oracle") {
  tests::wide_rows rows(67);
  std::uint64_t stream = 0;
  for (const std::int64_t n : {1, 2, 3, 8, 33}) {
    for (const sample_class kind : tests::row_classes) {
      for (const std::string op : four_operations) {
        for (const char* const reduction : reductions) {
          const double smoothing = smoothings[rows.words.below(12) % 6 * rows.words.below(2)];
          const tests::call_case c =
              case_of(op, kind, {3, n, n < 9 ? 2 : 1}, reduction, smoothing, rows.words.flip(), ++stream);
          CAPTURE(n);
          CAPTURE(stream);
          CAPTURE(smoothing);
          CAPTURE(reduction);
          rows.check(c, kind);
        }
      }
    }
  }
}

TEST_CASE("cross_entropy of f64: rows and totals that threads share, and that they have for themselves") {
  context one({.threads = 1}), several({.threads = 3});
  std::uint64_t stream = 700;
  for (const std::string op : four_operations) {
    for (const char* const reduction : reductions) {
      for (const shape_list& x : {shape_list{1, 5003}, {2, 4001}, {700, 7}}) {
        const tests::call_case c = case_of(op, sample_class::normal_range, x, reduction, 0.125, true, ++stream);
        CHECK(tests::run(several, c) == tests::run(one, c));
      }
    }
  }
}

TEST_CASE("cross_entropy of f64: special values, zeros, ties and what is far below, by their bits") {
  const array both = targets_of({0, 1}), first = targets_of({0});
  const double ln2 = 0x1.62e42fefa39efp-1;
  check_bits("cross_entropy", {of_rows({{1, 1}, {-huge, 5}}), both}, with("none"), {{ln2, 0}});
  check_bits("cross_entropy", {of_rows({{1, 1}, {3, 3}}), both}, with("sum"), {{2 * ln2}});
  check_bits("cross_entropy", {of_rows({{-huge, 5}}), first}, with("none"), {{huge}});
  check_bits("cross_entropy", {of_rows({{0, 0}}), targets_of({2})}, with("mean"), {{none}});
  check_bits("cross_entropy", {of_rows({{0, 0}}), targets_of({-100})}, with("mean"), {{none}});
  check_bits("cross_entropy", {of_rows({{0, none}}), targets_of({-100})}, with("sum"), {{0}});
  // Gaps between two numbers, and a logarithm above them; at the border of overflow, too.
  check_bits("cross_entropy", {of_rows({{-1, 0x1p53}}), first}, with("none"), {{0x1.0000000000001p53}});
  check_bits("cross_entropy", {of_rows({{-0x1p970, most}}), first}, with("none"), {{huge}});
  check_bits("cross_entropy", {of_rows({{-0x1.fffffffffffffp969, most}}), first}, with("none"), {{most}});
  // A mean of three that is a tie among subnormal numbers; the weights are a third of it.
  const array light = row_of({least, least}), heavy = row_of({most, most});
  check_bits("cross_entropy", {of_rows({{0, 1.5}}), first, light}, with("none"), {{2 * least}});
  check_bits("cross_entropy", {of_rows({{0, -3000}}), first, heavy}, with("none"), {{0}});
  // A logarithm of 2^-4328, times 2^1024, over 2^-1074; and of e^-1450 what is left.
  check_bits("cross_entropy", {of_rows({{0, -3000}}), first, row_of({least, most})}, with("mean", 0x1p-64), {{huge}});
  check_bits("cross_entropy", {of_rows({{0, -1450}}), first, row_of({least, 0})}, with("mean"), {{0}});
  check_bits("cross_entropy", {of_rows({{0, 0}}), first, row_of({huge, 1})}, with("none"), {{none}});
  check_bits("cross_entropy", {of_rows({{0, 0}}), first, row_of({1, huge})}, with("none"), {{ln2}});
  check_bits("cross_entropy", {of_rows({{0, 0}, {-huge, 0}}), both, row_of({1, -1})}, with("mean"), {{huge}});
  // Weights whose sum is beyond the range.
  check_bits("cross_entropy", {of_rows({{0, 0}, {1, 1}}), both, heavy}, with("mean"), {{ln2}});
  check_bits("cross_entropy_backward", {number_of(1), of_rows({{0, 0}, {1, 1}}), both, heavy}, with("mean"),
             {{-0.25, 0.25, 0.25, -0.25}});
  check_bits("cross_entropy_backward", {number_of(1), of_rows({{3, -huge}}), first}, with("mean"), {{0, 0}});
  check_bits("cross_entropy_backward", {number_of(-1), of_rows({{3, -huge}}), first}, with("mean"), {{-0.0, -0.0}});
  check_bits("cross_entropy_backward", {number_of(huge), of_rows({{3, 3, -huge}}), first}, with("mean"),
             {{-huge, huge, none}});
  // 3/2 of the least number is a tie, and what is far below decides.
  check_bits("cross_entropy_backward", {number_of(3 * least), of_rows({{5, 5}}), first}, with("sum"),
             {{-2 * least, 2 * least}});
  check_bits("cross_entropy_backward", {number_of(3 * least), of_rows({{5, 5, -1e300}}), first}, with("sum"),
             {{-2 * least, least, 0}});
  check_bits("cross_entropy_backward", {number_of(5 * least), of_rows({{5, 5, -1e300}}), first}, with("sum"),
             {{-3 * least, 2 * least, 0}});
  check_bits("cross_entropy_backward", {number_of(most), of_rows({{0, -1400}}), first}, with("sum"),
             {{-most * std::exp(-700.0) * std::exp(-700.0), most * std::exp(-700.0) * std::exp(-700.0)}});
  // Probabilities: 0 is absent, and coefficients that add up to 0 leave the gap.
  check_bits("cross_entropy_probabilities", {of_rows({{0, -huge}}), of_rows({{1, 0}})}, with("sum"), {{0}});
  check_bits("cross_entropy_probabilities", {of_rows({{0, -huge}}), of_rows({{1, least}})}, with("sum"), {{huge}});
  check_bits("cross_entropy_probabilities", {of_rows({{0, -huge}}), of_rows({{1, -least}})}, with("sum"), {{-huge}});
  check_bits("cross_entropy_probabilities", {of_rows({{0, -3}}), of_rows({{-1, 1}})}, with("sum"), {{3}});
  check_bits("cross_entropy_probabilities", {of_rows({{0, -3 * least}}), of_rows({{-0.5, 0.5}})}, with("sum"),
             {{2 * least}});
  // (1 - s) p C + s of -inf: exactly 0.
  check_bits("cross_entropy_probabilities", {of_rows({{0, -huge}}), of_rows({{0, -0.5}})}, with("sum", 0.5), {{0}});
}
