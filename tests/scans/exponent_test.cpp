// ldexp and frexp through the public API: against the oracle in every way that must not matter (instruction set, threads, layout),
// ties of subnormal numbers, ends of the exponents' ranges, and each undoing the other.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/digests.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/everywhere.hpp"

using namespace repdl;
using reference::array;
using reference::sample_class;
using reference::shape_list;
using tests::call_case;
using tests::every_setting;
using tests::setting;

namespace {

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};
constexpr dtype exponent_types[] = {dtype::i64, dtype::i32};
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       greatest = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("exponents: every class, format, number of threads and layout, against the oracle") {
  tests::everywhere all(6);
  std::uint64_t seed = 0;
  const std::vector<std::vector<shape_list>> shapes = {{{}, {}},
                                                       {{7}, {7}},
                                                       {{3, 1, 5}, {4, 1}},
                                                       {{4}, {3, 1, 1}},
                                                       {{0, 3}, {3}},
                                                       {{2, 1, 3, 2, 2, 1, 3, 5}, {5}},
                                                       {{70, 31}, {70, 31}}};
  for (const auto& of_call : shapes) {
    for (int k = 0; k < static_cast<int>(std::size(reference::element_classes)); ++k) {
      const sample_class kind = reference::element_classes[static_cast<std::size_t>(k)];
      for (const dtype t : formats) {
        for (const dtype e : exponent_types) {
          CAPTURE(std::string(name_of(kind)));
          CAPTURE(std::string(name_of(t)));
          const std::vector<array> in = reference::fill_exponents(kind, {t, e}, of_call, ++seed);
          all.check({"ldexp", in, {}}, {0, k, static_cast<int>(t), static_cast<int>(e)},
                    {reference::evaluate("ldexp", in, {})});
          if (e == dtype::i32) {
            all.check({"frexp", {in[0]}, {}}, {1, k, static_cast<int>(t)},
                      reference::evaluate_all("frexp", {in[0]}, {}));
          }
        }
      }
    }
  }
}

TEST_CASE("exponents: samples are of their classes" * doctest::test_suite("values")) {
  for (const dtype t : formats) {
    for (const sample_class kind :
         {sample_class::ties, sample_class::near_ties, sample_class::subnormal, sample_class::overflow_border}) {
      if (kind == sample_class::near_ties && size_of(t) == 2) continue;  // of 2 p bits
      reference::outcomes where;
      reference::evaluate_all("ldexp", reference::fill_exponents(kind, {t, dtype::i64}, {{400}, {400}}, 73), {},
                              &where);
      std::int64_t hits = 0;
      for (const reference::outcome& o : where) hits += hit(kind, o) ? 1 : 0;
      CAPTURE(std::string(name_of(kind)));
      CAPTURE(std::string(name_of(t)));
      CHECK(hits >= 200);
    }
  }
}

// The least number u and the largest M of each format, 2^p and their halves by way of every kind of exponent.
TEST_CASE("exponents: rounding once at both ends, and far exponents") {
  for (const dtype t : formats) {
    const reference::format& f = reference::format_of(t);
    CAPTURE(std::string(name_of(t)));
    struct element {
      std::uint64_t x;
      std::int64_t n;
      std::uint64_t want;
    };
    const std::uint64_t one = static_cast<std::uint64_t>(1 - f.emin) << (f.precision - 1), next = one + 1,
                        half = std::uint64_t{1} << (f.precision - 2), sign = f.sign_bit(), most = f.largest(),
                        infinity = f.infinity(), three_halves = one + half;
    const std::int64_t u = f.ulp_min();
    const element all[] = {{one, u, 1},
                           {one, u - 1, 0},  // ties, to even
                           {three_halves, u, 2},
                           {three_halves - 1, u, 1},
                           {three_halves + 1, u, 2},
                           {next, u - 1, 1},
                           {one | sign, u - 1, sign},
                           {next | sign, u - 1, 1 | sign},
                           {most, u - 1 - f.emax, 1},
                           {most, u - 2 - f.emax, 0},
                           {1, f.emax - u, reference::compose(t, false, f.emax, 0)},
                           {1, f.emax - u + 1, infinity},
                           {most, 1, infinity},
                           {most | sign, 1, infinity | sign},
                           {most, 0, most},
                           {next, f.emin - 1, half + 0},
                           {next + 1, f.emin - 1, half + 1},
                           {most, f.emin - f.emax - 1, half * 2},  // rounds up to the least normal number
                           {one, greatest, infinity},
                           {one | sign, least, sign},
                           {1, greatest, infinity},
                           {most, least, 0},
                           {0, greatest, 0},
                           {sign, least, sign},
                           {infinity, least, infinity},
                           {infinity | sign, greatest, infinity | sign},
                           {f.nan() | sign, 3, f.nan()},
                           {infinity + 1, least, f.nan()}};  // a signalling one
    const auto count = std::ssize(all);
    array x(t, {count}), n(dtype::i64, {count}), short_n(dtype::i32, {count}), want(t, {count});
    for (std::size_t i = 0; i < std::size(all); ++i) {
      x.set(i, all[i].x);
      n.set(i, static_cast<std::uint64_t>(all[i].n));
      const std::int64_t low = std::numeric_limits<std::int32_t>::min(),
                         high = std::numeric_limits<std::int32_t>::max();
      short_n.set(i, static_cast<std::uint64_t>(std::clamp(all[i].n, low, high)));
      want.set(i, all[i].want);
    }
    CHECK(reference::evaluate("ldexp", {x, n}, {}) == want);
    for (const setting& s : every_setting()) {
      CHECK(run(*s.ctx, call_case{"ldexp", {x, n}, {}})[0] == want);
      CHECK(run(*s.ctx, call_case{"ldexp", {x, short_n}, {}})[0] == want);
    }
  }
}

TEST_CASE("exponents: frexp of every number of 16 bits, as std::frexp, and back by ldexp") {
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    array x(t, {1 << 16});
    for (std::size_t i = 0; i < 1 << 16; ++i) x.set(i, i);
    const array wide = reference::evaluate("convert", {x}, {{"dtype", std::string("f64")}});
    for (const setting& s : every_setting()) {
      const std::vector<array> r = run(*s.ctx, call_case{"frexp", {x}, {}});
      std::int64_t wrong = 0;
      const array m = reference::evaluate("convert", {r[0]}, {{"dtype", std::string("f64")}});
      for (std::size_t i = 0; i < 1 << 16; ++i) {
        const auto v = std::bit_cast<double>(wide.get(i));
        int e = 0;
        const double significand = std::frexp(v, &e);
        const bool finite = std::isfinite(v);
        wrong += finite
                     ? std::bit_cast<double>(m.get(i)) != significand || std::signbit(significand) != std::signbit(v) ||
                           static_cast<std::int32_t>(r[1].get(i)) != e
                     : static_cast<std::int32_t>(r[1].get(i)) != 0 || m.get(i) != wide.get(i);
      }
      CHECK(wrong == 0);
      const array back = run(*s.ctx, call_case{"ldexp", r, {}})[0];
      CHECK(back == reference::evaluate("ldexp", {x, array(dtype::i32, {1})}, {}));
    }
  }
}

TEST_CASE("exponents: the result in x's place, and results that are made") {
  context ctx;
  std::vector<float> x = {1, -3, 0x1p-149f};
  const std::vector<std::int32_t> n = {4, -1, 150};
  ldexp(ctx, x, n, tensor_view(x.data(), {3}));
  CHECK(x == std::vector<float>{16, -1.5, 2});
  std::vector<float> m(3);
  std::vector<std::int32_t> e(3);
  frexp(ctx, x, tensor_view(m.data(), {3}), tensor_view(e.data(), dtype::i32, {3}));
  CHECK(m == std::vector<float>{0.5, -0.75, 0.5});
  CHECK(e == std::vector<std::int32_t>{5, 1, 2});
}
