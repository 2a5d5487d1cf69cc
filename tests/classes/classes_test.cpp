// sum, mean, dot and matmul against the oracle: at least 200,000 outputs of each, on every instruction set and, where
// there is one, on the GPU, from the same inputs. The oracle says how many outputs of a class really were what the
// class promises (a tie, a near-tie, an exact zero, ...); below the stated share the test fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"

using namespace repdl;
using reference::array;
using reference::outcome;
using reference::outcomes;
using reference::sample_class;
using test::engine;

namespace {

constexpr std::int64_t required_outputs = 200'000;

constexpr auto& classes = reference::element_classes;

// The least share of outputs that must be of the class, by the oracle's word. (Not all can be: sums of one or two terms
// have no near-ties, and one NaN or infinity reaches one row or column of a product. Sums of products of few bits are seldom numbers of few bits,
// and products of subnormal numbers of 16 bits are mostly zero.)
double least_share(sample_class c, const std::string& op, dtype type) {
  const bool is_narrow = type == dtype::f16 || type == dtype::bf16;
  if (is_narrow && c == sample_class::narrow_lattice) return 0.15;
  if (is_narrow && c == sample_class::subnormal) return type == dtype::f16 ? 0.5 : 0.05;
  if (is_narrow && c == sample_class::overflow_border) return 0.4;
  switch (c) {
    case sample_class::ties:
    case sample_class::near_ties:
      return 0.75;
    case sample_class::cancelling:
      return 0.7;
    case sample_class::subnormal:
      return 0.9;
    case sample_class::overflow_border:
      return op == "mean" ? 0.01 : 0.5;  // few means of finite terms come near it
    case sample_class::single_nonfinite:
      return 0.4;
    case sample_class::zeros:
    case sample_class::narrow_lattice:
      return 0.5;
    default:
      return 0;
  }
}

struct tally {
  std::int64_t outputs = 0;
  std::int64_t hits = 0;
};

// One call on every engine, compared with the oracle.
void check(std::vector<engine>& all, const std::string& op, sample_class c, const std::vector<array>& in,
           const attributes& attrs, tally& counted) {
  outcomes where;
  const std::vector<array> expected = reference::evaluate_all(op, in, attrs, &where);
  counted.outputs += expected[0].count();
  counted.hits += std::count_if(where.begin(), where.end(), [&](const outcome& o) { return hit(c, o); });
  for (engine& e : all) {
    const std::string text = test::difference(test::run(*e.ctx, op, in, expected, attrs), expected);
    if (!text.empty()) FAIL_CHECK(op << " on " << e.name << ", class " << std::string(name_of(c)) << ": " << text);
  }
}

template <class Calls>
void check_all(const std::string& op, const Calls& calls, std::int64_t required = required_outputs) {
  std::vector<engine> all = test::engines(op == "matmul");
  std::string names;
  for (const engine& e : all) names += (names.empty() ? "" : ", ") + e.name;
  std::int64_t total = 0;
  std::string table;
  dtype type{};
  for (const sample_class c : classes) {
    tally counted;
    calls(c, [&](const std::vector<array>& in, const attributes& attrs) {
      type = in[0].type;
      check(all, op, c, in, attrs, counted);
    });
    total += counted.outputs;
    const double share = static_cast<double>(counted.hits) / static_cast<double>(counted.outputs);
    char line[96];
    std::snprintf(line, sizeof line, "\n  %-16s %7lld outputs, %7lld of the class", std::string(name_of(c)).c_str(),
                  static_cast<long long>(counted.outputs), static_cast<long long>(counted.hits));
    table += line;
    const double least = least_share(c, op, type);
    if (least == 0) continue;  // nothing is promised
    CHECK_MESSAGE(share >= least, op << " " << name_of(c) << ": " << counted.hits << " of " << counted.outputs);
  }
  CHECK(total >= required);
  MESSAGE(op << " of " << name_of(type) << ": " << total << " outputs against the oracle on each of " << names
             << table);
}

// Rows and terms per row; about 18,600 outputs.
struct row_shape {
  std::int64_t rows, length;
};
constexpr row_shape row_shapes[] = {{1500, 1},   {3000, 2},  {5000, 3},  {4000, 7},   {3500, 16},
                                    {1300, 100}, {290, 513}, {10, 5000}, {2, 100'000}};

// 1 / part of the outputs.
void check_rows(const std::string& op, bool mean, std::uint64_t seed, dtype type = dtype::f32, std::int64_t part = 1) {
  const auto calls = [&](sample_class c, const auto& call_on_all) {
    for (const row_shape& s : row_shapes) {
      const auto stream = static_cast<std::uint64_t>(s.length);
      call_on_all({reference::fill_terms(c, s.rows / part, s.length, mean, seed, stream, type)},
                  {{"axis", std::vector<std::int64_t>{1}}});
    }
  };
  check_all(op, calls, required_outputs / part);
}

// One call per output: the shortest vectors make up the number.
void check_dots(std::uint64_t seed, dtype type = dtype::f32, int part = 1) {
  const auto all = [&](sample_class c, const auto& call_on_all) {
    std::uint64_t stream = 0;
    const auto calls = [&](int count, std::int64_t k) {
      for (int i = 0; i < count / part; ++i) {
        reference::factors f = reference::fill_factors(c, 1, 1, k, false, seed, stream++, type);
        f.a.shape = {k};
        f.b.shape = {k};
        call_on_all({f.a, f.b}, {});
      }
    };
    calls(6000, 2);
    calls(6000, 5);
    calls(4000, 17);
    calls(2000, 64);
    calls(200, 700);
    calls(4, 50'000);
  };
  check_all("dot", all, required_outputs / part);
}

}  // namespace

TEST_SUITE_BEGIN("portable values");

TEST_CASE("sum: 200,000 outputs against the oracle, every class counted") { check_rows("sum", false, 7); }

TEST_CASE("mean: 200,000 outputs against the oracle, every class counted") { check_rows("mean", true, 8); }

TEST_CASE("matmul: 200,000 outputs of each format against the oracle, every class counted") {
  struct shape {
    std::int64_t m, n, k;
  };
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32}) {
    check_all("matmul", [type](sample_class c, const auto& call_on_all) {
      std::uint64_t stream = 0;
      for (const shape& s : {shape{20, 40, 1},
                             {31, 40, 2},
                             {25, 67, 5},
                             {35, 65, 33},
                             {32, 96, 100},
                             {31, 33, 700},
                             {2, 3, 20'000},
                             {1, 2, 1 << 18}}) {
        for (const bool bias : {false, true}) {
          if (bias && s.k > 100) continue;
          const reference::factors f = reference::fill_factors(c, s.m, s.n, s.k, bias, 9, stream++, type);
          call_on_all(bias ? std::vector{f.a, f.b, f.bias} : std::vector{f.a, f.b}, {});
        }
      }
    });
  }
}

TEST_CASE("dot: 200,000 outputs against the oracle, every class counted") { check_dots(10); }

TEST_CASE("sum of binary64: 100,000 outputs against the oracle, every class counted") {
  check_rows("sum", false, 11, dtype::f64, 2);
}

TEST_CASE("mean of binary64: 100,000 outputs against the oracle, every class counted") {
  check_rows("mean", true, 12, dtype::f64, 2);
}

TEST_CASE("dot of binary64: 100,000 outputs against the oracle, every class counted") { check_dots(13, dtype::f64, 2); }

TEST_SUITE_END();
