// normal: the bounds of its tiers against MPFR, its words, parameters, zeros, tiers, strides, and the last tier's
// budget.
#include "librepdl/ops/random/normal.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/random/normal_exact.hpp"
#include "reference/numbers/number.hpp"
#include "reference/structured/structured.hpp"

namespace {

using namespace repdl;

template <class T>
std::uint64_t pattern(T x) {
  if constexpr (num::is_small_float<T>) {
    return x.bits;
  } else {
    return num::bits_of(x);
  }
}

// sqrt(-2 ln((w1 + 1) 2^-64)) times cos and sin of 2 pi w2 2^-64, to 400 bits; zeros exact.
struct exact_pair {
  mpq_class part[2];

  exact_pair(std::uint64_t w1, std::uint64_t w2) {
    mpfr_t radius, angle, c, s;
    mpfr_inits2(400, radius, angle, c, s, static_cast<mpfr_ptr>(nullptr));
    const mpz_class a1 = mpz_class(static_cast<unsigned long>(w1)) + 1;
    mpfr_set_z_2exp(radius, a1.get_mpz_t(), -64, MPFR_RNDN);
    mpfr_log(radius, radius, MPFR_RNDN);
    mpfr_mul_si(radius, radius, -2, MPFR_RNDN);
    mpfr_sqrt(radius, radius, MPFR_RNDN);
    mpfr_const_pi(angle, MPFR_RNDN);
    mpfr_mul_ui(angle, angle, static_cast<unsigned long>(w2), MPFR_RNDN);
    mpfr_div_2ui(angle, angle, 63, MPFR_RNDN);
    mpfr_sin_cos(s, c, angle, MPFR_RNDN);
    const std::uint64_t quarter = std::uint64_t{1} << 62;
    if (w2 % quarter == 0) mpfr_set_zero(w2 / quarter % 2 == 0 ? s : c, 0);
    mpfr_mul(c, c, radius, MPFR_RNDN);
    mpfr_mul(s, s, radius, MPFR_RNDN);
    mpfr_get_q(part[0].get_mpq_t(), c);
    mpfr_get_q(part[1].get_mpq_t(), s);
    mpfr_clears(radius, angle, c, s, static_cast<mpfr_ptr>(nullptr));
  }
};

// True if z is within bound |exact| of it, or 0 with it.
bool within(num::dd z, const mpq_class& exact, double bound) {
  const mpq_class error = abs(mpq_class(z.hi) + mpq_class(z.lo) - exact);
  return error <= abs(exact) * mpq_class(bound);
}

// Words near the places where a factor is 0, a table's interval ends, or an octant does.
struct words {
  std::mt19937_64 engine{11};
  std::uint64_t operator()(int kind) {
    const std::uint64_t w = engine();
    const int shift = static_cast<int>(engine() % 64);
    switch (kind % 6) {
      case 0:
        return w >> shift;
      case 1:
        return ~(w >> shift);
      case 2:
        return (w >> 61 << 61) + (engine() >> shift);
      case 3:
        return (w >> 57 << 57) - (engine() >> shift);
      case 4:
        return engine() % 4 << 62;
      default:
        return w;
    }
  }
};

// Every tier on one pair of words of `bits` bits: what is decided has the exact result's bits.
template <class T>
void check_tiers(std::uint64_t w1, std::uint64_t w2, double mean, double stddev) {
  constexpr int bits = sizeof(T) == 8 ? 64 : 32;
  const std::uint64_t a1 = (w1 + 1) << (64 - bits);
  const std::uint64_t a2 = w2 << (64 - bits);
  const exact_pair exact(a1 - 1, a2);
  const auto dd = num::normal_double_double::eval(a1, a2, num::normal_table);
  for (int i = 0; i < 2; ++i) {
    const mpq_class value = mpq_class(mean) + mpq_class(stddev) * exact.part[i];
    const std::uint64_t want = reference::round_rational(dtype_of<T>, value.get_mpq_t());
    CAPTURE(w1);
    CAPTURE(w2);
    CAPTURE(mean);
    CAPTURE(stddev);
    const auto second = num::normal_round<T>(mean, stddev, i == 0 ? dd.cosine : dd.sine, 0.0);
    if (num::to_bits(second.below) == num::to_bits(second.above)) CHECK(pattern(second.below) == want);
    if constexpr (bits == 32) {
      const auto z = num::normal_binary64::eval(w1, w2);
      const auto first = num::normal_round<T>(mean, stddev, i == 0 ? z.cosine : z.sine, 0.0);
      if (num::to_bits(first.below) == num::to_bits(first.above)) CHECK(pattern(first.below) == want);
    }
    const auto last = num::normal_exact<T>(w1, w2, bits, i == 1, mean, stddev, 2048);
    CHECK(last.decided);
    CHECK(pattern(last.value) == want);
    const auto forced = num::normal_round<T>(mean, stddev, i == 0 ? dd.cosine : dd.sine, num::infinity);
    CHECK(num::to_bits(forced.below) != num::to_bits(forced.above));
  }
}

TEST_CASE("normal: the bounds of both tiers" * doctest::test_suite("portable values")) {
  words next;
  for (int k = 0; k < 30000; ++k) {
    const std::uint64_t w1 = next(k);
    const std::uint64_t w2 = next(k / 6);
    const exact_pair wide(w1, w2);
    const auto z = num::normal_double_double::eval(w1 + 1, w2, num::normal_table);
    CHECK(within(z.cosine, wide.part[0], 0x1p-76));
    CHECK(within(z.sine, wide.part[1], 0x1p-76));
    const std::uint64_t h1 = w1 >> 32;
    const std::uint64_t h2 = w2 >> 32;
    const exact_pair narrow(w1 | 0xffffffff, h2 << 32);
    const auto y = num::normal_binary64::eval(h1, h2);
    CHECK(within({y.cosine, 0}, narrow.part[0], 7 * 0x1p-53));
    CHECK(within({y.sine, 0}, narrow.part[1], 7 * 0x1p-53));
  }
}

TEST_CASE_TEMPLATE("normal: what a tier decides is right", T, f16, bf16, float, double) {
  constexpr int p = num::format<T>::precision;
  const double smallest = std::ldexp(1.0, std::max(num::format<T>::emin - p, -199));
  const double largest = std::ldexp(1.0, std::min<int>(num::format<T>::emax, 199));
  const double means[] = {0.0,
                          1.0,
                          1 + std::ldexp(1.0, -p),
                          -1 - std::ldexp(3.0, -p),
                          1.5 * largest,
                          0x1p-200,
                          -0x1p200,
                          smallest,
                          3 * smallest,
                          -smallest,
                          0.1};
  const double deviations[] = {1.0,
                               0x1p-200,
                               0x1p200,
                               smallest,
                               largest,
                               0.1,
                               std::ldexp(1.0, -p),
                               0x1p-60,
                               0x1p-120,
                               0.0,
                               std::ldexp(1.0, -2 * p)};
  words next;
  int k = 0;
  for (const double mean : means) {
    for (const double stddev : deviations) {
      for (int repeat = 0; repeat < 12; ++repeat, ++k) {
        const int shift = sizeof(T) == 8 ? 0 : 32;
        check_tiers<T>(next(k) >> shift, next(k / 6) >> shift, mean, stddev);
      }
    }
  }
  // Cancellation: mean next to -stddev z.
  for (int repeat = 0; repeat < 400; ++repeat) {
    const int shift = sizeof(T) == 8 ? 0 : 32;
    const std::uint64_t w1 = next(5) >> shift;
    const std::uint64_t w2 = next(5) >> shift;
    const auto z = num::normal_double_double::eval((w1 + 1) << shift, w2 << shift, num::normal_table);
    const double y = -3.7 * (repeat % 2 == 0 ? z.cosine.hi : z.sine.hi);
    check_tiers<T>(w1, w2, repeat % 4 < 2 ? y : std::nextafter(y, 1e9), 3.7);
  }
}

template <class T>
std::vector<std::uint64_t> draw(context& ctx, std::uint64_t seed, std::uint64_t stream, std::size_t n,
                                normal_options options = {}) {
  std::vector<T> out(n);
  generator g{seed, stream};
  normal(ctx, g, out, options);
  std::vector<std::uint64_t> bits;
  for (const T x : out) bits.push_back(pattern(x));
  return bits;
}

template <class T>
std::vector<std::uint64_t> expected(std::uint64_t seed, std::uint64_t stream, std::size_t n, normal_options options) {
  const reference::array a =
      reference::normal(dtype_of<T>, {static_cast<std::int64_t>(n)}, seed, stream, options.mean, options.stddev);
  std::vector<std::uint64_t> bits;
  for (std::size_t i = 0; i < n; ++i) bits.push_back(a.get(i));
  return bits;
}

TEST_CASE_TEMPLATE("normal: no bit depends on count, threads, instruction set, tier, strides", T, f16, bf16, float,
                   double) {
  const normal_options options{-0.3, 1.7};
  constexpr std::size_t size = 9001;
  const auto want = expected<T>(5, 0xfedcba9876543210, size, options);
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    for (const int threads : {1, 3}) {
      for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
        context ctx({.threads = threads, .isa = isa.name, .first_tier = first});
        std::int64_t made = 0;
        for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{1025},
                                    first == tier::exact ? std::size_t{1500} : size}) {
          const auto got = draw<T>(ctx, 5, 0xfedcba9876543210, n, options);
          CHECK(std::equal(got.begin(), got.end(), want.begin()));
          made += static_cast<std::int64_t>(n);
        }
        const statistics s = ctx.read_statistics();
        CHECK(s[tier::binary64] + s[tier::double_double] + s[tier::exact] == made);
        if (first != tier::proved) CHECK(s[tier::binary64] == 0);
        if (first == tier::exact) CHECK(s[tier::double_double] == 0);
      }
    }
  }
  context ctx({.threads = 3});
  const auto check_strides = [&](sizes strides, std::int64_t origin, std::int64_t memory_size) {
    std::vector<T> memory(static_cast<std::size_t>(memory_size));
    generator g{5, 0xfedcba9876543210};
    normal(ctx, g, tensor_view(memory.data() + origin, dtype_of<T>, {59, 61}, strides), options);
    bool same = true;
    for (std::int64_t i = 0; i < 59; ++i) {
      for (std::int64_t j = 0; j < 61; ++j) {
        const T x = memory[static_cast<std::size_t>(origin + i * strides[0] + j * strides[1])];
        same = same && pattern(x) == want[static_cast<std::size_t>(i * 61 + j)];
      }
    }
    CHECK(same);
  };
  check_strides({1, 59}, 0, 59 * 61);
  check_strides({122, 2}, 0, 2 * 59 * 61);
  check_strides({-61, -1}, 59 * 61 - 1, 59 * 61);
  check_strides({64, 1}, 0, 64 * 59);
}

TEST_CASE_TEMPLATE("normal: parameters", T, f16, bf16, float, double) {
  context ctx({.threads = 2});
  for (const normal_options o :
       {normal_options{0, 1}, normal_options{1 + 0x1p-24, 0x1p-200}, normal_options{0, 0x1p200},
        normal_options{0, 0x1p-200}, normal_options{0x1p200, 0x1p200}, normal_options{0, std::ldexp(1.0, -20)},
        normal_options{100, 0.25}}) {
    CHECK(draw<T>(ctx, 1, 2, 2000, o) == expected<T>(1, 2, 2000, o));
  }
  // Nothing random: mean, rounded; -0 is +0.
  for (const double mean : {0.0, -0.0, 0.1, 0x1p200, -0x1p-200}) {
    CHECK(draw<T>(ctx, 1, 2, 100, {mean, 0}) == expected<T>(1, 2, 100, {mean, 0}));
  }
  CHECK(draw<T>(ctx, 1, 2, 5, {-0.0, 0}) == std::vector<std::uint64_t>(5, 0));
}

TEST_CASE("normal: a budget too small is an error, not a guess") {
  context ctx({.first_tier = tier::exact, .last_tier_bits = 0});
  std::vector<float> out(10);
  generator g{1, 1};
  CHECK_THROWS_AS(normal(ctx, g, out), error);
  normal(ctx, g, out, {2, 0});  // nothing to decide
  CHECK(out[9] == 2);
  context ordinary({.last_tier_bits = 0});
  normal(ordinary, g, out);
}

}  // namespace
