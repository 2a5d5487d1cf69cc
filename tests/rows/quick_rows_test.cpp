// The quick tier of rows in binary64 (librepdl/ops/rows/quick_rule.hpp): the same bits as from the last tier, of short rows and of those that are too
// long for terms to be kept; and that it decides nearly all there is in ordinary ones.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/rows/quick_rule.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/wide_rows.hpp"

using namespace repdl;
using reference::array;

namespace {

// Multiples of 2^-50 around `centre`, less than `spread` away.
array numbers(const std::vector<std::int64_t>& shape, double centre, double spread, std::uint64_t stream) {
  array a(dtype::f64, shape);
  reference::word_stream words(83, stream);
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double unit = static_cast<double>(static_cast<std::int64_t>(words.next64()) >> 13) * 0x1p-50;
    a.set(static_cast<std::size_t>(i), std::bit_cast<std::uint64_t>(centre + spread * unit));
  }
  return a;
}

struct quick_case {
  const char* op;
  std::vector<array> in;
};
std::vector<quick_case> cases_of(std::int64_t rows, std::int64_t length, double centre, double spread) {
  const std::vector<std::int64_t> shape{rows, length}, each{rows}, one{length};
  const array x = numbers(shape, centre, spread, 1), g = numbers(shape, 0, 1, 2), y = numbers(shape, -1, 0.9, 3);
  const array w = numbers(one, 1, 0.5, 5), b = numbers(one, 0, 1, 6), mean = numbers(each, centre, spread / 8, 7),
              rstd = numbers(each, 1 / spread, 0.5 / spread, 8);
  return {{"softmax", {x}},
          {"log_softmax", {x}},
          {"logsumexp", {x}},
          {"softmax_backward", {g, y}},
          {"log_softmax_backward", {g, y}},
          {"logsumexp_backward", {numbers(each, 0, 1, 4), x}},
          {"layer_norm", {x, w, b}},
          {"rms_norm", {x, w}},
          {"layer_norm_backward", {g, x, mean, rstd, w}},
          {"rms_norm_backward", {g, x, rstd, w}}};
}

}  // namespace

TEST_CASE("quick rows of f64: the last tier's bits, and most of them from the first") {
  context quick, exact({.first_tier = tier::exact});
  for (const std::int64_t length : {std::int64_t{3}, std::int64_t{40}, std::int64_t{700}, num::most_kept_terms + 9}) {
    for (const auto& [centre, spread] : {std::pair{0.0, 4.0}, {-3.0, 0x1p-20}, {1e8, 1.0}, {0.0, 40.0}}) {
      for (const quick_case& c : cases_of(length < 100 ? 40 : 1, length, centre, spread)) {
        CAPTURE(c.op);
        CAPTURE(length);
        CAPTURE(spread);
        attributes attrs;
        if (std::string(c.op).starts_with("logsumexp")) attrs.push_back({"axis", std::vector<std::int64_t>{-1}});
        if (std::string(c.op) == "rms_norm") attrs.push_back({"eps", 1e-6});
        const tests::call_case call{c.op, c.in, attrs};
        quick.reset_statistics();
        const std::vector<array> got = tests::run(quick, call);
        const statistics decided = quick.read_statistics();
        const std::int64_t all = decided.elements[1] + decided.elements[2] + decided.elements[3];
        CHECK(decided.elements[1] + (all < 1000 ? 2 : all / 500) >= all);
        if (length < 1000 || spread == 4) CHECK(got == tests::run(exact, call));
      }
    }
  }
}

TEST_CASE("quick rows of f64: a mean that is a tie, of numbers with few bits") {
  context quick, exact({.first_tier = tier::exact});
  array x(dtype::f64, {1, 4}), w(dtype::f64, {4}), b(dtype::f64, {4});
  for (std::size_t i = 0; i < 4; ++i) {
    x.set(i, std::bit_cast<std::uint64_t>(i < 2 ? 1.0 : 1 + 0x1p-52));
    w.set(i, std::bit_cast<std::uint64_t>(1.0));
    b.set(i, std::bit_cast<std::uint64_t>(0.25));
  }
  const tests::call_case call{"layer_norm", {x, w, b}, {}};
  const std::vector<array> got = tests::run(quick, call);
  CHECK(got == tests::run(exact, call));
  CHECK(got[1].get(0) == std::bit_cast<std::uint64_t>(1.0));
  CHECK(quick.read_statistics().elements[1] == 6);
}
