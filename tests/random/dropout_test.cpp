// dropout: which elements it drops, and x / (1 - p) against exact rationals.
#include "librepdl/ops/random/dropout.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/num/philox.hpp"
#include "reference/numbers/number.hpp"

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

}  // namespace
