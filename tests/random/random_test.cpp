// Random numbers: Philox's known answers, the places of its words, uniform against exact rationals, permutation,
// bernoulli, randint.
#include <doctest/doctest.h>
#include <gmpxx.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "librepdl/ops/random/uniform.hpp"
#include "reference/numbers/number.hpp"

namespace {

using namespace repdl;

std::uint64_t pattern(f16 x) { return x.bits; }
std::uint64_t pattern(bf16 x) { return x.bits; }
std::uint64_t pattern(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t pattern(double x) { return std::bit_cast<std::uint64_t>(x); }

template <class T>
std::vector<std::uint64_t> patterns(const std::vector<T>& v) {
  std::vector<std::uint64_t> p;
  p.reserve(v.size());
  for (const T x : v) p.push_back(pattern(x));
  return p;
}

// RN_T(low + (high - low) n 2^-bits) from exact rationals.
template <class T>
std::uint64_t expected(double low, double high, std::uint64_t n) {
  mpq_class u(static_cast<unsigned long>(n));
  mpq_div_2exp(u.get_mpq_t(), u.get_mpq_t(), static_cast<unsigned>(num::uniform_bits<T>));
  const mpq_class v = mpq_class(low) + (mpq_class(high) - mpq_class(low)) * u;
  return reference::round_rational(dtype_of<T>, v.get_mpq_t());
}

std::int64_t compared = 0;

// One element, by both tiers.
template <class T>
void check_element(double low, double high, std::uint64_t n) {
  ++compared;
  const num::uniform_range range(low, high);
  const std::uint64_t want = expected<T>(low, high, n);
  bool exact = false;
  const std::uint64_t fast = pattern(range.element<T>(n, false, &exact));
  bool forced = false;
  const std::uint64_t slow = pattern(range.element<T>(n, true, &forced));
  if (fast != want || slow != want || !forced) {
    CAPTURE(name_of(dtype_of<T>));
    CAPTURE(low);
    CAPTURE(high);
    CAPTURE(n);
    CHECK(fast == want);
    CHECK(slow == want);
    CHECK(forced);
  }
}

template <class T>
std::vector<T> draw(context& ctx, std::uint64_t seed, std::uint64_t stream, std::size_t n, uniform_options range = {}) {
  std::vector<T> out(n);
  generator g{seed, stream};
  uniform(ctx, g, out, range);
  CHECK(g.stream == stream + (n != 0 ? 1 : g.stream - stream));
  return out;
}

std::vector<std::int64_t> permute(context& ctx, std::uint64_t seed, std::uint64_t stream, std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  generator g{seed, stream};
  permutation(ctx, g, out);
  return out;
}

TEST_CASE("philox: Random123's known answers") {
  // github.com/DEShawResearch/random123, tests/kat_vectors, the lines "philox4x32 10" (counter, key, result).
  struct {
    num::philox_block counter;
    std::uint32_t key[2];
    num::philox_block result;
  } const answers[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {0xffffffff, 0xffffffff},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const auto& a : answers) {
    const num::philox_block r = num::philox4x32_10(a.counter, a.key[0], a.key[1]);
    CHECK(std::equal(r.w, r.w + 4, a.result.w));
  }
  // The same through (seed, stream, block).
  const num::philox_block r = num::philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88);
  CHECK(std::equal(r.w, r.w + 4, answers[2].result.w));
  CHECK(num::wide_word(r, 0) == 0x94fdccebd16cfe09);
  CHECK(num::wide_word(r, 1) == 0x24126ea15001e420);
}

TEST_CASE("uniform: the contract's layouts") {
  context ctx;
  // Seed 0, stream 0, block 0 are the words of the first known answer.
  CHECK(pattern(draw<float>(ctx, 0, 0, 4)[1]) == pattern(static_cast<float>(0xe169c5) * 0x1p-24f));
  CHECK(pattern(draw<double>(ctx, 0, 0, 2)[0]) == pattern(static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53));
  CHECK(pattern(draw<f16>(ctx, 0, 0, 3)[2]) ==
        reference::round_rational(dtype::f16, mpq_class(0xbc57ac4c >> 21, 1 << 11).get_mpq_t()));
  CHECK(pattern(draw<bf16>(ctx, 0, 0, 4)[3]) ==
        reference::round_rational(dtype::bf16, mpq_class(0x9b, 1 << 8).get_mpq_t()));
  // Element i of (seed, stream) anywhere.
  const std::uint64_t seed = 0x0123456789abcdef;
  const std::uint64_t stream = 0xfedcba9876543210;
  const auto f = draw<float>(ctx, seed, stream, 1001);
  const auto d = draw<double>(ctx, seed, stream, 1001);
  for (std::size_t i = 0; i < f.size(); ++i) {
    const num::philox_block four = num::philox(seed, stream, i / 4);
    const num::philox_block two = num::philox(seed, stream, i / 2);
    CHECK(pattern(f[i]) == pattern(static_cast<float>(four.w[i % 4] >> 8) * 0x1p-24f));
    CHECK(pattern(d[i]) == pattern(static_cast<double>(num::wide_word(two, static_cast<int>(i % 2)) >> 11) * 0x1p-53));
  }
}

TEST_CASE_TEMPLATE("uniform: every range is rounded once from the exact value", T, f16, bf16, float, double) {
  std::mt19937_64 engine(7);
  constexpr std::uint64_t top = (std::uint64_t{1} << num::uniform_bits<T>)-1;
  const double ends[] = {0.0,
                         -0.0,
                         1.0,
                         -1.0,
                         0.1,
                         -0.1,
                         3.0,
                         0x1p-200,
                         -0x1p-200,
                         0x1p200,
                         -0x1p200,
                         0x1.8p-24,
                         0x1p-25,
                         0x1p-133,
                         0x1.0p-149,
                         65504.0,
                         65536.0,
                         0x1.fffffep127,
                         0x1p128,
                         0x1.ffep15,
                         1.0 / 3,
                         0x1.fffffffffffffp199,
                         -0x1.0000000000001p-200,
                         2.0,
                         0x1.01p0};
  for (const double low : ends) {
    for (const double high : ends) {
      for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, top, top / 2, top / 2 + 1, engine() & top}) {
        check_element<T>(low, high, n);
      }
    }
  }
  const auto any = [&](std::uint64_t spread) {  // any significand, of either sign, exponents within +-spread
    const std::uint64_t word = engine();
    const std::uint64_t exponent = 1023 - spread + engine() % (2 * spread);
    return std::bit_cast<double>((word & 0x800fffffffffffff) | exponent << 52);
  };
  for (const std::uint64_t spread : {1, 4, 30, 60, 120, 200}) {
    for (int k = 0; k < 3000; ++k) {
      const double low = any(spread);
      check_element<T>(low, any(spread), engine() & top);
      // Cancellation: u near the zero of low (1 - u) + high u; an exact zero at n = top / 2 + 1.
      check_element<T>(low, -low, top / 2 + 1 + (engine() & 1));
      check_element<T>(low, -low * 3, top / 4 + (engine() & 3));
      check_element<T>(low, low, engine() & top);
    }
  }
  CHECK(compared >= 6 * 3000 * 4);
}

TEST_CASE_TEMPLATE("uniform: midpoints, and values next to them", T, f16, bf16, float, double) {
  // 1 + u, u in units of half an ulp of T above 1: every odd n is a tie. 2^-200 more or less on the high end moves v
  // off the tie by about 2^-200: only the integers see it.
  std::mt19937_64 engine(8);
  constexpr std::uint64_t top = (std::uint64_t{1} << num::uniform_bits<T>)-1;
  for (int k = 0; k < 2000; ++k) {
    const std::uint64_t n = (engine() & top) | 1;
    check_element<T>(1.0, 2.0, n);
    check_element<T>(-2.0, -1.0, n);
    check_element<T>(0x1p100, 0x1p101, n);
    check_element<T>(0x1p-140, 0x1p-139, n);  // subnormal or zero in bf16, f32
    check_element<T>(0x1p-24, 0x1p-15, n);    // subnormal in f16
    check_element<T>(0x1p15, 0x1p16, n);      // f16's largest numbers
    check_element<T>(0x1p127, 0x1p128, n);    // f32's and bf16's
  }
  // u = 3/4 and an odd m with 2^p < 3m < 2^(p+1): 3m is a midpoint of T, and so is high u for high = m 2^j. A low end
  // of 2^-200 moves v off it by 2^-202; in binary64 only the integers see that (elsewhere the pair h + r is still
  // exact).
  const std::uint64_t power = std::uint64_t{1} << num::uniform_bits<T>;
  for (int k = 0; k < 1000; ++k) {
    const std::uint64_t odd = (power / 3 + 1 + engine() % (power / 3)) | 1;
    const auto m = static_cast<double>(odd);
    for (const double scale : {0x1p-30, -0x1p-55, 0x1p-8}) {
      for (const double low : {0.0, 0x1p-200, -0x1p-200, 0x1p-60}) {
        check_element<T>(low, m * scale, power / 4 * 3);
        bool exact = false;
        num::uniform_range(low, m * scale).template element<T>(power / 4 * 3, false, &exact);
        const bool want = std::is_same_v<T, double> && (low == 0x1p-200 || low == -0x1p-200);
        if (low != 0x1p-60 && exact != want) CHECK(exact == want);
      }
    }
  }
  CHECK(compared >= 2000 * 7 + 1000 * 12);
}

TEST_CASE_TEMPLATE("uniform: no bit depends on count, threads, instruction set, tier, strides", T, f16, bf16, float,
                   double) {
  const uniform_options range{-0.3, 1.7};
  std::vector<std::uint64_t> want;
  for (std::uint64_t i = 0; i < 20001; ++i) {
    const num::philox_block b = num::philox(5, 9, i / num::per_block<T>);
    want.push_back(
        expected<T>(range.low, range.high, num::uniform_integer<T>(b, static_cast<int>(i % num::per_block<T>))));
  }
  for (const isa_info& isa : instruction_sets()) {
    if (!isa.available) continue;
    for (const int threads : {1, 2, 3, 7}) {
      for (const tier first : {tier::proved, tier::exact}) {
        context ctx({.threads = threads, .isa = isa.name, .first_tier = first});
        for (const std::size_t n : {0u, 1u, 2u, 3u, 5u, 1023u, 1025u, 20001u}) {
          const auto got = patterns(draw<T>(ctx, 5, 9, n, range));
          CHECK(std::equal(got.begin(), got.end(), want.begin()));
        }
        if (first == tier::exact) CHECK(ctx.read_statistics()[tier::double_double] == 0);
      }
    }
  }
  context ctx({.threads = 3});
  const std::vector<std::uint64_t> first_part(want.begin(), want.begin() + 130 * 151);
  // Shapes (130, 151), column-major, every second element, and backwards: the index is the logical one.
  const auto check_strides = [&](sizes shape, sizes strides, std::int64_t origin, std::int64_t size) {
    std::vector<T> memory(static_cast<std::size_t>(size));
    generator g{5, 9};
    uniform(ctx, g, tensor_view(memory.data() + origin, dtype_of<T>, shape, strides), range);
    std::vector<std::uint64_t> got;
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        got.push_back(pattern(memory[static_cast<std::size_t>(origin + i * strides[0] + j * strides[1])]));
      }
    }
    CHECK(got == first_part);
  };
  check_strides({130, 151}, {1, 130}, 0, 130 * 151);
  check_strides({130, 151}, {302, 2}, 0, 2 * 130 * 151);
  check_strides({130, 151}, {-151, -1}, 130 * 151 - 1, 130 * 151);
  check_strides({130, 151}, {160, 1}, 0, 160 * 130);
}

TEST_CASE("permutation: the indices sorted by (W_i, i)") {
  const std::uint64_t seed = 42;
  const std::uint64_t stream = 3;
  for (const std::int64_t n : {0, 1, 2, 3, 511, 513, 8191, 8192, 100003}) {
    std::vector<std::int64_t> want(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = static_cast<std::int64_t>(i);
    std::stable_sort(want.begin(), want.end(), [&](std::int64_t a, std::int64_t b) {
      return num::permutation_key(seed, stream, static_cast<std::uint64_t>(a)) <
             num::permutation_key(seed, stream, static_cast<std::uint64_t>(b));
    });
    for (const int threads : {1, 2, 5}) {
      context ctx({.threads = threads});
      CHECK(permute(ctx, seed, stream, n) == want);
    }
    std::vector<bool> seen(want.size());
    for (const std::int64_t i : want) seen[static_cast<std::size_t>(i)] = true;
    CHECK(std::count(seen.begin(), seen.end(), true) == n);
  }
}

TEST_CASE("permutation: strides, streams, workspace") {
  context ctx({.threads = 2});
  const auto plain = permute(ctx, 1, 0, 9000);
  CHECK(plain != permute(ctx, 1, 1, 9000));
  CHECK(plain != permute(ctx, 2, 0, 9000));
  generator g{1, 0};
  std::vector<std::int64_t> memory(3 * 9000, -1);
  permutation(ctx, g, tensor_view(memory.data() + 3 * 8999, dtype::i64, {9000}, {-3}));
  CHECK(g.stream == 1);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(memory[3 * (8999 - i)] == plain[i]);
  CHECK(memory[1] == -1);
  // A dry run names the workspace, uses no stream value, and the call then fits.
  std::vector<std::int64_t> out(9000);
  g = {1, 0};
  const std::size_t bytes = ctx.workspace_for([&] { permutation(ctx, g, out); });
  CHECK(g.stream == 0);
  CHECK(bytes >= 9000 * sizeof(std::int64_t));
  void* space = ctx.allocate(bytes);
  ctx.use_workspace(space, bytes);
  permutation(ctx, g, out);
  CHECK(out == plain);
  ctx.use_workspace(nullptr, 0);
  ctx.deallocate(space, bytes);
}

TEST_CASE("bernoulli, randint: their words") {
  const std::uint64_t seed = 77;
  const std::uint64_t stream = std::uint64_t{1} << 40;
  for (const int threads : {1, 3}) {
    context ctx({.threads = threads});
    for (const double p : {0.0, 0x1p-1074, 0x1p-32, 0.1, 0.5, 1 - 0x1p-32, 1 - 0x1p-33, 1.0}) {
      mpq_class threshold = mpq_class(p) * mpq_class(0x1p32);
      std::vector<std::uint8_t> out(9001);
      generator g{seed, stream};
      bernoulli(ctx, g, tensor_view(out.data(), dtype::boolean, {9001}), p);
      CHECK(g.stream == stream + 1);
      bool same = true;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint32_t w = num::philox(seed, stream, i / 4).w[i % 4];
        same = same && out[i] == (mpq_class(w) < threshold ? 1 : 0);  // w integer: w < ceil(t) iff w < t
      }
      CHECK(same);
    }
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const randint_options o : {randint_options{0, 10}, randint_options{-3, -2}, randint_options{least, most},
                                    randint_options{least, 0}, randint_options{most - 1, most}}) {
      std::vector<std::int64_t> out(9001);
      generator g{seed, stream};
      randint(ctx, g, out, o);
      bool same = true;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t w = num::wide_word(num::philox(seed, stream, i / 2), static_cast<int>(i % 2));
        const mpz_class range = mpz_class(static_cast<long>(o.high)) - mpz_class(static_cast<long>(o.low));
        const mpz_class value =
            mpz_class(static_cast<long>(o.low)) + ((mpz_class(static_cast<unsigned long>(w)) * range) >> 64);
        same = same && value == mpz_class(static_cast<long>(out[i]));
      }
      CHECK(same);
    }
  }
}

}  // namespace
