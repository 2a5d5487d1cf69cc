// linspace and arange: against exact rationals, tiers, strides, zeros, ends, errors.
#include "librepdl/ops/random/sequence.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace {

using namespace repdl;

struct numbers {
  bool between;
  double first, last;  // linspace: start, end; arange: start, step
};

template <class T>
std::vector<std::uint64_t> made(context& ctx, const numbers& s, std::size_t n) {
  std::vector<T> out(n);
  if (s.between) {
    linspace(ctx, out, {s.first, s.last});
  } else {
    arange(ctx, out, {s.first, s.last});
  }
  std::vector<std::uint64_t> bits;
  for (const T x : out) bits.push_back(num::to_bits(x));
  return bits;
}

template <class T>
std::vector<std::uint64_t> expected(const numbers& s, std::size_t n) {
  const auto count = static_cast<std::int64_t>(n);
  const reference::array a = s.between ? reference::linspace(dtype_of<T>, count, s.first, s.last)
                                       : reference::arange(dtype_of<T>, count, s.first, s.last);
  std::vector<std::uint64_t> bits;
  for (std::size_t i = 0; i < n; ++i) bits.push_back(a.get(i));
  return bits;
}

// Ends of every size; cancellation; ties, exact and next to them; subnormal results, the border of overflow.
template <class T>
std::vector<numbers> cases() {
  using F = num::format<T>;
  constexpr int p = F::precision;
  const double ulp = std::ldexp(1.0, 1 - p);
  const double least = std::ldexp(1.0, std::max(F::emin - p + 1, -190));
  const double most = std::ldexp(2 - ulp, std::min<int>(F::emax, 190));
  std::vector<numbers> all;
  for (const bool between : {true, false}) {
    const double pairs[][2] = {{0, 1},
                               {0, 0.1},
                               {-1, 1},
                               {-0.0, -0.0},
                               {-0.0, 3},
                               {-7, -0.0},
                               {1, 1 + ulp},
                               {1, ulp / 2},
                               {1 + ulp / 2, ulp},
                               {-1, -ulp / 4},
                               {0, 3 * least / 2},
                               {-least, least / 2},
                               {0.1, -0.1},
                               {-most, most},
                               {most, ulp * most / 4},
                               {0x1p200, -0x1p200},
                               {0x1p-200, -0x1p200},
                               {1, 0x1p-200},
                               {1 + ulp / 2, 0x1p-200},
                               {1 + ulp / 2, -0x1p-200},
                               {-0x1.fffffffffffffp199, 0x1.fffffffffffffp199},
                               {0x1.0000000000001p-200, 0x1.fffffffffffffp-200},
                               {3, 0x1.5555555555555p-2}};
    for (const auto& e : pairs) all.push_back({between, e[0], e[1]});
  }
  std::mt19937_64 engine(3);
  for (int k = 0; k < 60; ++k) {
    const auto real = [&] {
      const int e = k % 3 == 0 ? static_cast<int>(engine() % 400) - 200 : static_cast<int>(engine() % 8) - 4;
      const double x = std::ldexp(1 + static_cast<double>(engine() >> 12) * 0x1p-52, e);
      return engine() % 2 == 0 ? x : -x;
    };
    const double first = real();
    const double last = real();
    all.push_back({k % 2 == 0, first, last});
  }
  return all;
}

TEST_CASE_TEMPLATE("sequence: against exact rationals, every tier, instruction set and number of threads", T, f16, bf16,
                   float, double) {
  std::vector<context> all;
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    all.push_back(context({.threads = 1, .isa = isa.name}));
    all.push_back(context({.threads = 3, .isa = isa.name, .first_tier = tier::exact}));
  }
  for (const numbers& s : cases<T>()) {
    CAPTURE(s.between);
    CAPTURE(s.first);
    CAPTURE(s.last);
    for (const std::size_t n : {0, 1, 2, 3, 11, 64, 257}) {
      const auto want = expected<T>(s, n);
      for (context& ctx : all) CHECK(made<T>(ctx, s, n) == want);
    }
  }
  const numbers many{true, -0.3, 12.7};
  const auto want = expected<T>(many, 9001);
  for (context& ctx : all) CHECK(made<T>(ctx, many, 9001) == want);
  const statistics s = all[1].read_statistics();
  CHECK(s[tier::double_double] == 0);
  CHECK(s[tier::exact] > 0);
}

// Large indices, without the memory for them.
TEST_CASE_TEMPLATE("sequence: what a tier decides is right, at any index", T, f16, bf16, float, double) {
  std::mt19937_64 engine(5);
  int decided = 0, ties = 0;
  for (int k = 0; k < 20000; ++k) {
    const std::int64_t n = static_cast<std::int64_t>(engine() >> (16 + engine() % 48)) + 1;
    const std::int64_t i = static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n + 1));
    const auto real = [&]() -> double {
      const auto w = static_cast<std::int64_t>(engine()) >> (engine() % 64);
      return std::ldexp(static_cast<double>(w), static_cast<int>(engine() % 9) * 10 - 80);
    };
    const double first = real() + 0.0;
    const double last = real() + 0.0;
    const bool between = k % 2 == 0;
    const num::sequence s{first, last, between ? n : 1, between};
    const T exact = s.exact<T>(i);
    const auto ends = s.first<T>(i, 0);
    if (num::to_bits(ends.below) == num::to_bits(ends.above)) {
      ++decided;
      CHECK(num::to_bits(ends.below) == num::to_bits(exact));
    }
    const mpz_class at(static_cast<long>(i)), parts(static_cast<long>(n));
    mpq_class value = mpq_class(last) * at;
    if (between) {
      value += mpq_class(first) * mpz_class(parts - at);
      value /= parts;
    } else {
      value += first;
    }
    reference::outcome o;
    CHECK(std::uint64_t{num::to_bits(exact)} == reference::round_exact(dtype_of<T>, value, &o));
    ties += o.tie ? 1 : 0;
  }
  CHECK(decided > 19000);
  CHECK(ties > 0);
}

TEST_CASE("sequence: strides") {
  context ctx({.threads = 3});
  const auto want = expected<float>({true, -0.3, 12.7}, 9001);
  for (const std::int64_t stride : {2, -1, -3}) {
    const std::int64_t step = stride < 0 ? -stride : stride;
    std::vector<float> memory(static_cast<std::size_t>(9001 * step), -5.0f);
    float* const first = memory.data() + (stride < 0 ? 9000 * step : 0);
    linspace(ctx, tensor_view(first, dtype::f32, {9001}, {stride}), {-0.3, 12.7});
    bool same = true;
    for (std::int64_t i = 0; i < 9001; ++i)
      same = same && num::bits_of(first[i * stride]) == want[static_cast<std::size_t>(i)];
    CHECK(same);
    if (step > 1) CHECK(memory[static_cast<std::size_t>(step == 2 ? 1 : 4)] == -5.0f);
  }
}

TEST_CASE("sequence: what is refused") {
  context ctx;
  std::vector<float> out(3);
  for (const double bad : {0x1p-201, 0x1.0000000000001p200, std::nan(""), static_cast<double>(num::infinity)}) {
    CHECK_THROWS_AS(linspace(ctx, out, {bad, 1}), error);
    CHECK_THROWS_AS(linspace(ctx, out, {1, -bad}), error);
    CHECK_THROWS_AS(arange(ctx, out, {bad, 1}), error);
    CHECK_THROWS_AS(arange(ctx, out, {1, bad}), error);
  }
  CHECK_THROWS_AS(arange(ctx, tensor_view(out.data(), dtype::f32, {1, 3})), error);
  std::vector<std::int64_t> integers(3);
  CHECK_THROWS_AS(arange(ctx, integers), error);
}

}  // namespace
