// exponential: the bounds of its tiers against MPFR, its words, parameters, tiers, strides, the last tier's budget, and that no draw is
// 0; the keys of draws without replacement beside it.
#include "librepdl/ops/random/exponential.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/random/exponential_exact.hpp"
#include "reference/numbers/number.hpp"
#include "reference/structured/structured.hpp"

namespace {

using namespace repdl;

template <class T>
std::uint64_t pattern(T x) {
  return num::to_bits(x);
}

// -ln(n 2^-power) to 400 bits.
mpq_class minus_log(const mpz_class& n, int power) {
  mpfr_t y;
  mpfr_init2(y, 400);
  mpfr_set_z_2exp(y, n.get_mpz_t(), -power, MPFR_RNDN);
  mpfr_log(y, y, MPFR_RNDN);
  mpfr_neg(y, y, MPFR_RNDN);
  mpq_class q;
  mpfr_get_q(q.get_mpq_t(), y);
  mpfr_clear(y);
  return q;
}
// -ln(a 2^-64), 0 for 2^64; 0 stands for it.
mpq_class minus_log(std::uint64_t a) {
  return minus_log(a == 0 ? mpz_class(mpz_class(1) << 64) : mpz_class(static_cast<unsigned long>(a)), 64);
}
// -ln(1 - 2^-(bits + 1))
mpq_class minus_log_of_last(int bits) { return minus_log(mpz_class((mpz_class(1) << (bits + 1)) - 1), bits + 1); }

// Words of every size, next to both ends, and next to where a table's interval ends.
struct words {
  std::mt19937_64 engine{12};
  std::uint64_t operator()(int kind) {
    const std::uint64_t w = engine();
    const int shift = static_cast<int>(engine() % 64);
    switch (kind % 5) {
      case 0:
        return w >> shift;
      case 1:
        return ~(w >> shift);
      case 2:
        return ((w | std::uint64_t{1} << 63) >> 56 << 56) - (engine() >> shift);
      case 3:
        return (std::uint64_t{0xb504f333f9de6485} >> (w & 63)) + (engine() & 7) - 4;  // sqrt(1/2)
      default:
        return w;
    }
  }
};

// Every tier on one word: what is decided has the exact result's bits.
template <class T>
void check_tiers(std::uint64_t w, double rate) {
  constexpr int bits = sizeof(T) == 8 ? 64 : 32;
  const std::uint64_t a = (w + 1) << (64 - bits);
  const mpq_class value = (a == 0 ? minus_log_of_last(bits) : minus_log(a)) / mpq_class(rate);
  const std::uint64_t want = std::max<std::uint64_t>(1, reference::round_rational(dtype_of<T>, value.get_mpq_t()));
  CAPTURE(w);
  CAPTURE(rate);
  const auto scale = num::exponential_scale::of(rate);
  const auto second = scale.double_double<T>(a, num::normal_table, 0);
  if (pattern(second.below) == pattern(second.above)) CHECK(pattern(second.below) == want);
  if constexpr (bits == 32) {
    const auto first = scale.binary64<T>(w, 0);
    if (pattern(first.below) == pattern(first.above)) CHECK(pattern(first.below) == want);
  }
  const auto last = num::exponential_exact<T>(w, bits, rate, 2048);
  CHECK(last.decided);
  CHECK(pattern(last.value) == want);
  const auto shortest = num::exponential_exact<T>(w, bits, rate, 256);
  CHECK(shortest.decided);
  CHECK(pattern(shortest.value) == want);
  const auto forced = scale.double_double<T>(a, num::normal_table, num::infinity);
  CHECK(pattern(forced.below) != pattern(forced.above));
}

bool within(double hi, double lo, const mpq_class& exact, double bound) {
  return abs(mpq_class(hi) + mpq_class(lo) - exact) <= exact * mpq_class(bound);
}

TEST_CASE("exponential: the bounds of both tiers") {
  words next;
  for (int k = 0; k < 20000; ++k) {
    const std::uint64_t w = next(k);
    const num::dd y = num::normal_double_double::minus_two_log(w + 1, num::normal_table);
    CHECK(within(y.hi / 2, y.lo / 2, minus_log(w + 1), 0x1p-75 * .71));  // 2^-75.5
    const std::uint64_t h = w >> 32;
    CHECK(within(-num::normal_binary64::log(h), 0, minus_log((h + 1) << 32), 3.3 * 0x1p-53));
    const double rate = std::ldexp(1 + static_cast<double>(next(4) >> 12) * 0x1p-52, k % 400 - 200);
    const num::dd inverse = num::exponential_scale::of(rate).half_inverse;
    CHECK(within(inverse.hi, inverse.lo, 1 / (2 * mpq_class(rate)), 0x1p-106));
  }
}

TEST_CASE_TEMPLATE("exponential: what a tier decides is right", T, f16, bf16, float, double) {
  constexpr int p = num::format<T>::precision;
  const double largest = std::ldexp(1.0, std::min<int>(num::format<T>::emax, 199));
  const double smallest = std::ldexp(1.0, std::max(num::format<T>::emin - p, -199));
  words next;
  int k = 0;
  const int shift = sizeof(T) == 8 ? 0 : 32;
  for (const double rate : {1.0, 0x1p-200, 0x1p200, 0.1, 3.0, 1 + 0x1p-52, 2 - 0x1p-52, 1 / largest, 1 / smallest}) {
    for (int repeat = 0; repeat < 100; ++repeat, ++k) check_tiers<T>(next(k) >> shift, rate);
  }
  // k 2^-bits / rate is a midpoint next to u = 1: odd numbers of p + 1 bits; and next to half of the least number.
  const std::uint64_t ones = ~std::uint64_t{0} >> shift;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::uint64_t odd = (std::uint64_t{1} << p | next(4) >> (64 - p)) | 1;
    if (odd - 1 < ones) check_tiers<T>(ones - odd, repeat % 2 == 0 ? 1.0 : 0x1p-30);
    check_tiers<T>(ones - 1, std::ldexp(1.0, -repeat));
    check_tiers<T>(ones - 1, std::ldexp(1.0, repeat));
  }
  check_tiers<T>(0, 1);
  for (int power = -200; power <= 200; ++power) check_tiers<T>(ones, std::ldexp(power % 3 == 0 ? 1 : 1.25, power));
}

template <class T>
std::vector<std::uint64_t> draw(context& ctx, std::uint64_t seed, std::uint64_t stream, std::size_t n,
                                double rate = 1) {
  std::vector<T> out(n);
  generator g{seed, stream};
  exponential(ctx, g, out, {rate});
  CHECK(g.stream == stream + 1);
  std::vector<std::uint64_t> bits;
  for (const T x : out) bits.push_back(pattern(x));
  return bits;
}

template <class T>
std::vector<std::uint64_t> expected(std::uint64_t seed, std::uint64_t stream, std::size_t n, double rate) {
  const reference::array a = reference::exponential(dtype_of<T>, {static_cast<std::int64_t>(n)}, seed, stream, rate);
  std::vector<std::uint64_t> bits;
  for (std::size_t i = 0; i < n; ++i) bits.push_back(a.get(i));
  return bits;
}

// u = 1 in the places that were found to have it, and words next to it.
template <class T>
std::uint64_t last_draw(context& ctx, std::uint64_t seed, std::size_t n, double rate = 1) {
  std::vector<T> out(n);
  generator g{seed, 0};
  exponential(ctx, g, out, {rate});
  CHECK(std::none_of(out.begin(), out.end(), [](T x) { return pattern(x) == 0; }));
  return pattern(out.back());
}

TEST_CASE("exponential: a draw is never 0") {
  context ctx({.threads = 2});
  CHECK(last_draw<float>(ctx, 149059, 30339) == 0x2f000000);  // 2^-33
  CHECK(last_draw<bf16>(ctx, 149059, 30339) == 0x2f00);
  CHECK(last_draw<f16>(ctx, 149059, 30339) == 1);
  CHECK(last_draw<float>(ctx, 149059, 30339, 0x1p127) == 1);
  CHECK(last_draw<double>(ctx, 149059, 1000, 0x1p200) > 1);  // always far above the least number
  for (const double rate : {0x1p132, 0x1p200}) {
    CHECK(draw<f16>(ctx, 1, 2, 1000, rate) == std::vector<std::uint64_t>(1000, 1));
    CHECK(draw<float>(ctx, 1, 2, 1000, rate) == expected<float>(1, 2, 1000, rate));
    CHECK(draw<bf16>(ctx, 1, 2, 1000, rate) == expected<bf16>(1, 2, 1000, rate));
  }
  // The terms that follow 2 x of -2 ln(1 - x).
  for (const auto& [y, bits] :
       {std::pair{num::minus_two_log_of_last<float>(), 32}, {num::minus_two_log_of_last<double>(), 64}}) {
    const mpq_class exact = 2 * minus_log_of_last(bits);
    CHECK(within(y.hi, y.lo, exact, 0x1p-87));
    CHECK(within(y.hi + y.lo, 0, exact, bits == 32 ? 0x1p-67 : 0x1p-53));
  }
}

TEST_CASE("exponential: the keys of draws without replacement, +0 for u = 1") {
  words next;
  for (const float weight : {1.0f, 0x1p-149f, 0x1.fffffep127f, 3.0f}) {
    const auto scale = num::exponential_scale::of(weight);
    for (const std::uint64_t w : {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{0}, next(4)}) {
      const mpq_class value = minus_log(w + 1) / mpq_class(static_cast<double>(weight));
      const std::uint64_t want = reference::round_rational(dtype::f64, value.get_mpq_t());
      CHECK((want == 0) == (w + 1 == 0));
      const auto quick = scale.key(w + 1, num::normal_table, 0);
      if (pattern(quick.below) == pattern(quick.above)) CHECK(pattern(quick.below) == want);
      if (w + 1 == 0) CHECK(pattern(quick.above) == 0);
      const auto exact = num::exponential_key(w, static_cast<double>(weight), 256);
      CHECK(exact.decided);
      CHECK(pattern(exact.value) == want);
    }
  }
}

TEST_CASE_TEMPLATE("exponential: no bit depends on count, threads, instruction set, tier, strides", T, f16, bf16, float,
                   double) {
  constexpr std::size_t size = 9001;
  const auto want = expected<T>(5, 0xfedcba9876543210, size, 0.7);
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    for (const int threads : {1, 3}) {
      for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
        context ctx({.threads = threads, .isa = isa.name, .first_tier = first});
        std::int64_t made = 0;
        for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{1025},
                                    first == tier::exact ? std::size_t{1500} : size}) {
          const auto got = draw<T>(ctx, 5, 0xfedcba9876543210, n, 0.7);
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
    exponential(ctx, g, tensor_view(memory.data() + origin, dtype_of<T>, {59, 61}, strides), {0.7});
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
  check_strides({-61, -1}, 59 * 61 - 1, 59 * 61);
  check_strides({64, 1}, 0, 64 * 59);
}

TEST_CASE_TEMPLATE("exponential: parameters", T, f16, bf16, float, double) {
  context ctx({.threads = 2});
  for (const double rate : {1.0, 0x1p-200, 0x1p200, 1 + 0x1p-52, 0.001, 0x1p140}) {
    CHECK(draw<T>(ctx, 1, 2, 1000, rate) == expected<T>(1, 2, 1000, rate));
  }
  for (const double rate : {0.0, -1.0, 0x1p-201, 0x1.0000000000001p200, -0x1p-100, std::nan("")}) {
    CHECK_THROWS_AS(draw<T>(ctx, 1, 2, 1, rate), error);
  }
}

TEST_CASE("exponential: a budget too small is an error, not a guess") {
  context ctx({.first_tier = tier::exact, .last_tier_bits = 0});
  std::vector<float> out(10);
  generator g{1, 1};
  CHECK_THROWS_AS(exponential(ctx, g, out), error);
  context ordinary({.last_tier_bits = 0});
  exponential(ordinary, g, out);
}

}  // namespace
