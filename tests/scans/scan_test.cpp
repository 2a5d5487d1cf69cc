// cumsum, prod, cumprod and logcumsumexp through the public API: against the oracle in every way that must not matter (instruction set,
// threads, first tier, layout), special values, ties and hard products by their bits, and against sum and logsumexp of every beginning.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/digests.hpp"
#include "reference/evaluate.hpp"
#include "reference/layout.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/everywhere.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::every_setting;
using tests::run;
using tests::setting;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr dtype integers[] = {dtype::i64, dtype::i32, dtype::boolean};
constexpr const char* operation_names[] = {"cumsum", "prod", "cumprod", "logcumsumexp"};
constexpr double inf = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();

attributes along(const std::string& op, std::int64_t axis) {
  if (op == "prod") return {{"axis", std::vector<std::int64_t>{axis}}};
  return {{"axis", axis}};
}

// Numbers that every format has, or is to round.
array line_of(dtype t, const std::vector<double>& values) {
  array wide(dtype::f64, {std::ssize(values)});
  for (std::size_t i = 0; i < values.size(); ++i) wide.set(i, std::bit_cast<std::uint64_t>(values[i]));
  return reference::evaluate("convert", {wide}, {{"dtype", std::string(name_of(t))}});
}

// In every format, on every setting.
void check(const std::string& op, const std::vector<double>& x, const std::vector<double>& want) {
  static const std::vector<setting> settings = every_setting();
  CAPTURE(op);
  for (const dtype t : formats) {
    CAPTURE(std::string(name_of(t)));
    const array in = line_of(t, x), out = line_of(t, want);
    CHECK(reference::evaluate(op, {in}, along(op, 0)).bytes == out.bytes);
    for (const setting& s : settings) CHECK(run(*s.ctx, op, in, along(op, 0)).bytes == out.bytes);
  }
}

array beginning(const array& x, std::int64_t n) {
  array b(x.type, {n});
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) b.set(i, x.get(i));
  return b;
}

}  // namespace

TEST_CASE("scans: every class, format, tier, number of threads and layout, against the oracle") {
  tests::everywhere all(6);
  std::uint64_t seed = 0;
  struct shape_case {
    shape_list shape;
    std::int64_t axis;
  };
  const std::vector<shape_case> shapes = {{{5}, 0},     {{9, 1}, -1},   {{4, 2}, 1},           {{3, 23}, 1},
                                          {{30, 4}, 0}, {{2, 3, 7}, 1}, {{2, 1, 3, 2, 5}, -3}, {{0, 3}, -1},
                                          {{3, 0}, 1},  {{1, 57}, -1}};
  std::vector<sample_class> classes(reference::element_classes.begin(), reference::element_classes.end());
  const std::size_t of_all = classes.size();
  classes.insert(classes.end(), {sample_class::exact_gaps, sample_class::multiplicities});
  for (int o = 0; o < 4; ++o) {
    const std::string op = operation_names[o];
    std::vector<dtype> types(std::begin(formats), std::end(formats));
    if (op != "logcumsumexp") types.insert(types.end(), std::begin(integers), std::end(integers));
    for (const auto& [shape, axis] : shapes) {
      for (int k = 0; k < static_cast<int>(op == "logcumsumexp" ? classes.size() : of_all); ++k) {
        const sample_class kind = classes[static_cast<std::size_t>(k)];
        for (const dtype t : types) {
          const attributes attrs = along(op, axis);
          const array x = reference::count_of(shape) == 0
                              ? array(t, shape)
                              : reference::inputs({op, 1, {t, t}, kind, {shape}, attrs, ++seed})[0];
          const array want = reference::evaluate(op, {x}, attrs);
          CAPTURE(seed);
          CAPTURE(std::string(name_of(kind)));
          CAPTURE(std::string(name_of(t)));
          all.check({op, {x}, attrs}, {o, k, static_cast<int>(t)}, {want});
        }
      }
    }
  }
}

TEST_CASE("scans: samples are of their classes" * doctest::test_suite("values")) {
  for (const dtype t : formats) {
    for (const std::string op : {"cumsum", "prod"}) {
      for (const sample_class kind : {sample_class::ties, sample_class::near_ties, sample_class::overflow_border}) {
        if (op == "prod" && kind == sample_class::near_ties && size_of(t) == 2) continue;  // of 2 p bits
        const array x = reference::inputs({op, 1, {t, t}, kind, {{200, 16}}, along(op, 1), 73})[0];
        reference::outcomes where;
        reference::evaluate_all(op, {x}, along(op, 1), &where);
        std::int64_t hits = 0;
        for (const reference::outcome& o : where) hits += hit(kind, o) ? 1 : 0;
        CAPTURE(op);
        CAPTURE(std::string(name_of(kind)));
        CAPTURE(std::string(name_of(t)));
        CHECK(hits >= 100);
      }
    }
  }
}

TEST_CASE("scans: integers wrap") {
  using values = std::vector<std::int64_t>;
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         greatest = std::numeric_limits<std::int64_t>::max();
  const auto check_integers = [](const std::string& op, dtype t, const values& x, const values& want) {
    CAPTURE(op);
    for (const setting& s : every_setting())
      CHECK(run(*s.ctx, op, array(t, {std::ssize(x)}, x), along(op, 0)) == array(dtype::i64, {std::ssize(want)}, want));
  };
  check_integers("cumsum", dtype::i64, {greatest, 1, least, -1}, {greatest, least, 0, -1});
  check_integers("cumsum", dtype::i32, {2147483647, 2147483647, -2147483648}, {2147483647, 4294967294, 2147483646});
  check_integers("cumsum", dtype::boolean, {1, 0, 255, 2}, {1, 1, 2, 3});
  check_integers("cumprod", dtype::i64, {least, -1, greatest, 3, 2, 5}, {least, least, least, least, 0, 0});
  check_integers("cumprod", dtype::i64, {3037000500, -3037000500}, {3037000500, 9223372036709301616});
  check_integers("cumprod", dtype::i32, {-2147483648, -2147483648, 2, 3},
                 {-2147483648, std::int64_t{1} << 62, least, least});
  check_integers("cumprod", dtype::boolean, {255, 2, 0, 1}, {1, 1, 0, 0});
}

TEST_CASE("scans: special values") {
  check("cumsum", {-0.0, -0.0, 1, -1, -0.0}, {0, 0, 1, 0, 0});
  check("cumsum", {1, inf, 2, -inf, 3}, {1, inf, inf, none, none});
  check("cumsum", {-inf, 2, none}, {-inf, -inf, none});
  check("cumprod", {-0.0, -1, 2, -3}, {-0.0, 0, 0, -0.0});
  check("cumprod", {2, inf, -1, 0, 1}, {2, inf, -inf, none, none});
  check("cumprod", {-0.0, inf}, {-0.0, none});
  check("cumprod", {-1, -inf, -2, none}, {-1, inf, -inf, none});
  check("prod", {}, {1});
  check("prod", {-2}, {-2});
  check("prod", {inf, -0.0}, {none});
  check("prod", {none, 0}, {none});
  check("prod", {-1, -0.0, 3}, {0});
  check("logcumsumexp", {-inf, -inf, -0.0, -inf}, {-inf, -inf, 0, 0});
  check("logcumsumexp", {-inf, inf, 3, none}, {-inf, inf, inf, none});
  check("logcumsumexp", {none, inf}, {none, none});
  check("logcumsumexp", {-2}, {-2});
}

// What partial results overflow or lose on the way: formats differ only in their range.
TEST_CASE("scans: no partial result is rounded") {
  check("cumprod", {0x1p10, 0x1p10, 0x1p-10, 0x1p-12}, {0x1p10, 0x1p20, 0x1p10, 0x1p-2});
  check("prod", {0x1p14, 0x1p14, 0x1p-14, 0x1p-14, 3}, {3});
  for (const setting& s : every_setting()) {
    const double most = std::numeric_limits<double>::max();
    const array x = line_of(dtype::f64, {most, most, -most, 1});
    CHECK(run(*s.ctx, "cumsum", x, along("cumsum", 0)) == line_of(dtype::f64, {most, inf, most, most}));
    const array p = line_of(dtype::f64, {1e300, 1e300, 1e-300, 0x1p-1074, 0x1p-1074, 1e300, 1e300});
    const array want = reference::evaluate("cumprod", {p}, along("cumprod", 0));
    CHECK(run(*s.ctx, "cumprod", p, along("cumprod", 0)) == want);
    const array y = line_of(dtype::f32, {1e30, 1e30, 1e-30});
    CHECK(run(*s.ctx, "cumprod", y, along("cumprod", 0)) == line_of(dtype::f32, {1e30, inf, 1e30}));
  }
}

// (2^53 + 3)(2^420 - 1), the product of ten numbers, lies 2^-420 of itself below a midpoint, which (2^53 + 3) 2^420 is. The eight greater ones
// and 5 make 2^420 - 1.
TEST_CASE("scans: a product beside a midpoint that 420 bits tell from it") {
  const std::vector<double> tie = {5, 1801439850948199, 0x1p420};
  const std::vector<double> below = {7292711059831267, 4288735653555571, 4569227079892033,
                                     5634663596278459, 5981293791885723, 7051073229243933,
                                     4624857949745737, 3447866141005895, 25,
                                     1801439850948199};
  for (const setting& s : every_setting()) {
    const auto product = [&](const std::vector<double>& x) {
      return run(*s.ctx, "prod", line_of(dtype::f64, x), along("prod", 0));
    };
    CHECK(product(tie).get(0) == std::bit_cast<std::uint64_t>(0x1.0000000000002p473));
    CHECK(product(below).get(0) == std::bit_cast<std::uint64_t>(0x1.0000000000001p473));
  }
  // Long enough, it is beyond the bits of a call that may have few.
  context few({.first_tier = tier::exact, .last_tier_bits = 256});
  CHECK_THROWS_AS(run(few, "prod", line_of(dtype::f64, below), along("prod", 0)), error);
}

TEST_CASE("scans: cumsum is sum of every beginning, and logcumsumexp logsumexp" * doctest::test_suite("portable")) {
  context ctx;
  for (const dtype t : formats) {
    for (const sample_class kind :
         {sample_class::normal_range, sample_class::wide_exponents, sample_class::cancelling}) {
      const array x = reference::fill(kind, t, {61}, 79, 1);
      const array sums = run(ctx, "cumsum", x, along("cumsum", 0)), logs = run(ctx, "logcumsumexp", x, along("", 0));
      for (std::int64_t n = 1; n <= 61; ++n) {
        const auto last = static_cast<std::size_t>(n - 1);
        CHECK(sums.get(last) == run(ctx, "sum", beginning(x, n), {}).get(0));
        CHECK(logs.get(last) == run(ctx, "logsumexp", beginning(x, n), {}).get(0));
      }
    }
  }
}

// As long as a line of which every element is undecided may be: each late state goes along it once.
TEST_CASE("scans: long lines") {
  for (const std::string op : operation_names) {
    for (const dtype t : formats) {
      const array x = reference::fill(sample_class::narrow_lattice, t, {3, 3000}, 83, 1);
      // Its exact numbers take too long.
      const tier last = op == "logcumsumexp" ? tier::double_double : tier::exact;
      context first({.threads = 1}), late({.threads = 3, .first_tier = last});
      CAPTURE(op);
      CHECK(run(first, op, x, along(op, 1)) == run(late, op, x, along(op, 1)));
    }
  }
}
