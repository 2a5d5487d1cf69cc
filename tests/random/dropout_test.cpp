// dropout: which elements it drops, and x / (1 - p) against exact rationals.
#include "librepdl/ops/random/dropout.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/philox.hpp"
#include "reference/numbers/number.hpp"
#include "reference/samples.hpp"
#include "tests/helpers/class_engines.hpp"

namespace {

using namespace repdl;

// Patterns of every kind: zeros, subnormal, near 1, near overflow, infinite, NaN.
std::vector<float> dropout_inputs(std::size_t n) {
  std::mt19937_64 engine(12);
  std::vector<float> x;
  for (std::size_t i = 0; i < n; ++i) {
    const auto b = static_cast<std::uint32_t>(engine());
    const std::uint32_t forms[] = {b,
                                   b & 0x807fffff,
                                   b & 0x80000003,
                                   (b & 0x80ffffff) | 0x7f000000,
                                   (b & 0x80000000) | (0x7f7fffff - (b & 3)),
                                   (b & 0x807fffff) | 0x3f800000,
                                   b & 0x81ffffff,
                                   (b & 0x80000000) | 0x7f800000 | (b & 1)};
    x.push_back(std::bit_cast<float>(forms[engine() % 8]));
  }
  return x;
}

std::uint32_t expected_quotient(float x, double p) {
  if (x != x) return 0x7fc00000;
  if (x == 0 || x - x != 0) return std::bit_cast<std::uint32_t>(x);
  const mpq_class value = mpq_class(x) / (1 - mpq_class(p));
  const auto r = static_cast<std::uint32_t>(reference::round_rational(dtype::f32, value.get_mpq_t()));
  return r | (std::bit_cast<std::uint32_t>(x) & 0x80000000);
}

std::uint32_t expected_dropout(float x, double p, std::uint32_t w) {
  return mpq_class(w) < mpq_class(p) * mpq_class(0x1p32) ? 0 : expected_quotient(x, p);
}

TEST_CASE("dropout: +0 or x / (1 - p), rounded once") {
  constexpr std::size_t n = 5003;
  const std::vector<float> x = dropout_inputs(n);
  const double ps[] = {0.0,     0x1p-1074,   0x1p-200,    0x1.fffffffffffffp-61,
                       0x1p-60, 0x1p-59,     0x1p-54,     0x1.8p-30,
                       0.1,     0.2,         0.25,        1.0 / 3,
                       0.5,     0.6,         0.75,        0x1.0000000000001p-1,
                       0.9,     1 - 0x1p-20, 1 - 0x1p-32, 1 - 0x1p-53,
                       1.0};
  for (const double p : ps) {
    CAPTURE(p);
    std::vector<std::uint32_t> want;
    for (std::size_t i = 0; i < n; ++i) want.push_back(expected_dropout(x[i], p, num::philox(3, 8, i / 4).w[i % 4]));
    for (const isa_info& isa : instruction_sets()) {
      if (!isa.available) continue;
      for (const tier first : {tier::proved, tier::exact}) {
        context ctx({.threads = 2, .isa = isa.name, .first_tier = first});
        const auto matches = [&](const std::vector<float>& out) {
          bool same = true;
          for (std::size_t i = 0; i < n; ++i) same = same && std::bit_cast<std::uint32_t>(out[i]) == want[i];
          return same;
        };
        std::vector<float> out(n);
        generator g{3, 8};
        dropout(ctx, g, x, out, p);
        CHECK(g.stream == 9);
        CHECK(matches(out));
        g = {3, 8};
        std::vector<float> in_place = x;
        dropout_backward(ctx, g, in_place, in_place, p);
        CHECK(g.stream == 8);
        CHECK(matches(in_place));
        std::vector<float> backwards(x.rbegin(), x.rend());
        dropout(ctx, g, const_tensor_view(backwards.data() + n - 1, dtype::f32, {n}, {-1}), out, p);
        CHECK(matches(out));
      }
    }
  }
}

TEST_CASE("dropout: the integers decide what binary64 does not") {
  std::size_t decided = 0, compared = 0;
  const std::vector<float> x = dropout_inputs(3000);
  for (const double p : {0x1p-60, 0x1p-59, 0x1.8p-40, 0.1, 0.2, 0.25, 1.0 / 3, 0.5, 0.9, 1 - 0x1p-53}) {
    const num::dropout_scale scale = num::dropout_scale::of(p, false);
    for (const float v : x) {
      const std::uint32_t want = expected_quotient(v, p);
      const auto fast = scale.round(v);
      ++compared;
      decided += fast.undecided == 0 ? 1 : 0;
      if (fast.undecided == 0 && fast.bits != want) CHECK(fast.bits == want);
      const auto exact = std::bit_cast<std::uint32_t>(num::dropout_scale::exact(v, p));
      if (exact != want) CHECK(exact == want);
    }
  }
  CHECK(2 * decided > compared);
}

// ------------------------------------------------------------------------------------------------------- binary64

std::vector<double> wide_inputs(std::size_t n) {
  std::mt19937_64 engine(14);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63, fraction = (std::uint64_t{1} << 52) - 1,
                          infinity = 0x7ff0000000000000, largest = infinity - 1;
  std::vector<double> x;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t b = engine();
    const std::uint64_t forms[] = {
        b,
        b & (sign | fraction),
        b & (sign | 3),
        (b & (sign | fraction)) | 0x7fe0000000000000,
        (b & sign) | (largest - (b & 3)),
        (b & (sign | fraction)) | 0x3ff0000000000000,
        b & (sign | fraction | 0x0010000000000000),
        (b & sign) | infinity | (b & 1),
        (b & (sign | fraction)) | (engine() % 3 == 0 ? 0x07b0000000000000 : 0x7830000000000000)};
    x.push_back(std::bit_cast<double>(forms[engine() % std::size(forms)]));
  }
  return x;
}

std::vector<std::uint64_t> patterns_of(const std::vector<double>& all) {
  std::vector<std::uint64_t> v;
  for (const double x : all) v.push_back(std::bit_cast<std::uint64_t>(x));
  return v;
}

std::uint64_t expected_quotient(double x, double p) {
  if (x != x) return 0x7ff8000000000000;
  if (x == 0 || x - x != 0) return std::bit_cast<std::uint64_t>(x);
  const mpq_class value = mpq_class(x) / (1 - mpq_class(p));
  return reference::round_rational(dtype::f64, value.get_mpq_t()) | (std::bit_cast<std::uint64_t>(x) & (1ull << 63));
}

TEST_CASE("dropout of f64: +0 or x / (1 - p), rounded once") {
  constexpr std::size_t n = 2503;
  const std::vector<double> x = wide_inputs(n);
  const double ps[] = {0.0,     0x1p-1074, 0x1p-200,    0x1.fffffffffffffp-57,
                       0x1p-56, 0x1p-54,   0x1p-53,     0x1.8p-30,
                       0.1,     0.25,      1.0 / 3,     0.5,
                       0.75,    0.9,       1 - 0x1p-53, 0x1.0000000000001p-1,
                       1.0,     0x1p-32,   1 - 0x1p-32};
  std::vector<test::engine> engines = test::engines();
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    const context_options exact{.threads = 2, .isa = isa.name, .first_tier = tier::exact};
    engines.push_back({std::string(isa.name) + " exact", std::make_unique<context>(exact)});
  }
  for (const double p : ps) {
    CAPTURE(p);
    std::vector<std::uint64_t> want;
    for (std::size_t i = 0; i < n; ++i) {
      const bool dropped = mpq_class(num::philox(3, 8, i / 4).w[i % 4]) < mpq_class(p) * mpq_class(0x1p32);
      want.push_back(dropped ? 0 : expected_quotient(x[i], p));
    }
    const reference::array in(dtype::f64, {static_cast<std::int64_t>(n)}, patterns_of(x)),
        expected(dtype::f64, {static_cast<std::int64_t>(n)}, want);
    const attributes attrs{{"seed", std::int64_t{3}}, {"stream", std::int64_t{8}}, {"p", p}};
    for (const std::string op : {"dropout", "dropout_backward"}) {
      for (const test::engine& e : engines) {
        const std::string text = test::difference(test::run(*e.ctx, op, {in}, {expected}, attrs), {expected});
        CHECK_MESSAGE(text.empty(), op, " on ", e.name, ": ", text);
      }
    }
    if (p == 0) continue;
    std::vector<double> in_place = x;  // and a stride of -1
    context ctx({.threads = 2});
    dropout_backward(ctx, generator{3, 8}, in_place, in_place, p);
    CHECK(patterns_of(in_place) == want);
    std::vector<double> backwards(x.rbegin(), x.rend()), out(n);
    dropout_backward(ctx, generator{3, 8},
                     const_tensor_view(backwards.data() + n - 1, dtype::f64, {static_cast<std::int64_t>(n)}, {-1}), out,
                     p);
    CHECK(patterns_of(out) == want);
  }
}

TEST_CASE("dropout of f64: quotients next to midpoints, which integers decide") {
  constexpr double p = 0x1.3333333333332p-2;  // 1 - p is an odd multiple of 2^-53
  const attributes attrs{{"seed", std::int64_t{3}}, {"stream", std::int64_t{8}}, {"p", p}};
  const reference::array in =
      reference::fill_inputs("dropout", reference::sample_class::near_ties, {{400}}, attrs, 5, 6, dtype::f64).at(0);
  const num::wide_dropout_scale scale = num::wide_dropout_scale::of(p, false);
  int undecided = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    const double x = std::bit_cast<double>(in.get(i));
    const auto fast = scale.round(x);
    const std::uint64_t want = expected_quotient(x, p);
    undecided += fast.decided ? 0 : 1;
    CHECK((!fast.decided || std::bit_cast<std::uint64_t>(fast.value) == want));
    CHECK(std::bit_cast<std::uint64_t>(num::wide_dropout_scale::exact(x, p)) == want);
  }
  CHECK(undecided > 300);
}

TEST_CASE("dropout of f64: what a tier decides is right") {
  std::size_t decided = 0, compared = 0;
  const std::vector<double> x = wide_inputs(2000);
  for (const double p : {0x1p-56, 0x1p-55, 0x1.8p-40, 0.1, 0.2, 0.25, 1.0 / 3, 0.5, 0.9, 1 - 0x1p-53}) {
    const num::wide_dropout_scale scale = num::wide_dropout_scale::of(p, false);
    for (const double v : x) {
      const std::uint64_t want = expected_quotient(v, p);
      const auto fast = scale.round(v);
      ++compared;
      decided += fast.decided ? 1 : 0;
      if (fast.decided && std::bit_cast<std::uint64_t>(fast.value) != want)
        CHECK(fast.value == std::bit_cast<double>(want));
      const auto exact = std::bit_cast<std::uint64_t>(num::wide_dropout_scale::exact(v, p));
      if (exact != want) CHECK(exact == want);
    }
  }
  CHECK(3 * decided > compared);
}

}  // namespace
