// The softmax family in binary64: against the oracle in every way that must not matter (first tier, threads, layout), special values by their
// bits, and rows that several threads share.
#include "librepdl/ops/rows/softmax_binary64.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/wide_rows.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::doubles, tests::huge, tests::least, tests::most, tests::none;

namespace {

using integers = std::vector<std::int64_t>;

constexpr const char* six_operations[] = {"softmax",          "log_softmax",          "logsumexp",
                                          "softmax_backward", "log_softmax_backward", "logsumexp_backward"};

// Along the last axis.
tests::call_case case_of(const std::string& op, sample_class kind, const shape_list& x, std::uint64_t stream) {
  const bool several = op.starts_with("logsumexp"), gradient = op.ends_with("backward");
  attributes attrs;
  if (several) {
    attrs.push_back({"axis", integers{-1}});
  } else {
    attrs.push_back({"axis", std::int64_t{-1}});
  }
  std::vector<shape_list> shapes{x};
  if (gradient) shapes.insert(shapes.begin(), several ? shape_list(x.begin(), x.end() - 1) : x);
  return {op, reference::fill_inputs(op, kind, shapes, attrs, 47, stream, dtype::f64), attrs};
}

void check(const std::string& op, const std::vector<doubles>& in, const doubles& want) {
  std::vector<array> arrays;
  for (const doubles& x : in) arrays.push_back(tests::row_of(x));
  if (op.starts_with("logsumexp") && in.size() == 2) arrays[0].shape = {};
  CAPTURE(in.back());
  tests::check_bits(op, arrays, {}, {want});
}

}  // namespace

TEST_CASE("softmax of f64: every class, tier, number of threads and layout, against the oracle") {
  tests::wide_rows rows(53);
  std::uint64_t stream = 0;
  for (const std::int64_t n : {0, 1, 2, 3, 5, 8, 33, 130}) {
    for (const sample_class kind : tests::row_classes) {
      for (const std::string op : six_operations) {
        const tests::call_case c = case_of(op, kind, {3, n < 9 ? 3 : 1, n}, ++stream);
        CAPTURE(n);
        CAPTURE(stream);
        rows.check(c, kind);
      }
    }
  }
}

TEST_CASE("softmax of f64: rows that threads share, and that they have for themselves") {
  context one({.threads = 1}), several({.threads = 3});
  std::uint64_t stream = 700;
  for (const std::string op : six_operations) {
    for (const shape_list& x : {shape_list{1, 9001}, {2, 5003}, {700, 13}}) {
      const tests::call_case c = case_of(op, sample_class::normal_range, x, ++stream);
      CHECK(tests::run(several, c) == tests::run(one, c));
    }
  }
}

TEST_CASE("softmax of f64: special values, zeros and ties by their bits") {
  const double third = 1.0 / 3;
  check("softmax", {{1, 1, 1}}, {third, third, third});
  check("softmax", {{-huge, 2, -huge}}, {0, 1, 0});
  check("softmax", {{1, none}}, {none, none});
  check("softmax", {{1, huge}}, {none, none});
  check("softmax", {{-huge, -huge}}, {none, none});
  check("softmax", {{most, -most, most}}, {0.5, 0, 0.5});
  check("softmax", {{0, -745.13}}, {1, least});
  check("softmax", {{0, -745.14}}, {1, 0});
  check("log_softmax", {{0, -1000}}, {-0.0, -1000});
  check("log_softmax", {{0, -huge}}, {0, -huge});
  check("log_softmax", {{0, -700}}, {-std::exp(-700.0), -700});
  // Gaps between two numbers, and a logarithm below: away from 0, at the overflow too.
  check("log_softmax", {{0x1p56, -8}}, {-0.0, -0x1.0000000000001p56});
  check("log_softmax", {{0x1p53, -1}}, {-0.0, -0x1.0000000000001p53});
  check("log_softmax", {{most, -0x1p970}}, {-0.0, -huge});
  check("log_softmax", {{most, -0x1.fffffffffffffp969}}, {-0.0, -most});
  check("log_softmax", {{most, -most}}, {-0.0, -huge});
  check("logsumexp", {{-0.0}}, {0});
  check("logsumexp", {{-0.0, -1000}}, {0});
  check("logsumexp", {{most, most}}, {most});
  check("logsumexp", {{least, -740}}, {least + std::exp(-740.0)});
  check("logsumexp", {{huge, none}}, {none});
  check("logsumexp", {{huge, -huge}}, {huge});
  check("logsumexp", {{-huge, -huge}}, {-huge});
  check("logsumexp", {{}}, {-huge});
  // g / k is a tie among subnormal numbers, and what is far below decides.
  check("logsumexp_backward", {{3 * least}, {5, 5}}, {2 * least, 2 * least});
  check("logsumexp_backward", {{least}, {5, 5}}, {0, 0});
  check("logsumexp_backward", {{3 * least}, {5, 5, -1e300}}, {least, least, 0});
  check("logsumexp_backward", {{-3 * least}, {5, 5, -1e300}}, {-least, -least, -0.0});
  check("logsumexp_backward", {{most}, {0, -1400}}, {most, most * std::exp(-700.0) * std::exp(-700.0)});
  check("logsumexp_backward", {{huge}, {0, -1e300, -huge}}, {huge, huge, none});
  check("logsumexp_backward", {{-0.0}, {0, -huge}}, {-0.0, -0.0});
  // A difference that cancels, products of 54 bits and more, and beyond the range.
  check("softmax_backward", {{1, 1}, {0.5, 0.5}}, {0, 0});
  check("softmax_backward", {{-1, 0}, {1, -0.0}}, {0, -0.0});
  check("softmax_backward", {{most, 0}, {4, 0x1p-4}}, {-huge, -0x1p-2 * most});
  check("softmax_backward", {{least, 0}, {0.5, 1}}, {0, -0.0});
  check("softmax_backward", {{huge, 0}, {0.5, 1}}, {none, -huge});
  check("log_softmax_backward", {{1, 2}, {0, -huge}}, {-2, 2});
  check("log_softmax_backward", {{1, -1}, {-1, -2}}, {1, -1});
  check("log_softmax_backward", {{0, 3}, {-1e300, 0}}, {-0.0, 0});
  check("log_softmax_backward", {{0, 3}, {1e300, huge}}, {-huge, -huge});
  // Beside the middle of 2^53 + 1: e^y is a little more or less than 1.
  check("log_softmax_backward", {{1, -0x1p53}, {least, 0}}, {0x1p53, -1});
  check("log_softmax_backward", {{-1, -0x1p53, -1}, {least, 0, -least}}, {0x1.0000000000001p53, 2, 0x1p53});
  CHECK(num::has_wide_rule<ops::op_id::softmax>);
  CHECK(!num::has_wide_rule<ops::op_id::cross_entropy>);
}
