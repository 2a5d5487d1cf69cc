// multinomial: exact sums and the search in them against GMP, for words next to where the place changes; against the oracle on every
// instruction set, with threads, tiers, strides; weights over the whole range; rows that nothing can be drawn from.
#include "librepdl/ops/random/multinomial.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "librepdl/librepdl.hpp"
#include "reference/evaluate.hpp"
#include "reference/samples.hpp"
#include "reference/structured/structured.hpp"
#include "tests/helpers/class_engines.hpp"
#include "tests/helpers/placed_tensor.hpp"

namespace {

using namespace repdl;
using num::draw_chunk;
using num::weight_sum;
using reference::array;
using reference::shape_list;

template <class W>
mpz_class units(W w) {
  return mpz_class(mpq_class(static_cast<double>(w)) << -num::least_exponent<W>);
}
template <class W>
mpz_class value_of(const weight_sum<W>& s) {
  mpz_class v = 0;
  for (int i = weight_sum<W>::limbs; i-- > 0;) v = (v << 64) + static_cast<unsigned long>(s.limb[i]);
  return v;
}

// Weights of every size, of one size, mostly zeros, all the same, and subnormal ones.
template <class W>
std::vector<W> weights_of(std::mt19937_64& engine, std::size_t n, int kind) {
  using storage = num::storage_of<W>;
  const storage infinity = num::format<W>::infinity, largest = num::format<W>::largest, one = num::to_bits(W{1});
  const storage hidden = num::to_bits(std::numeric_limits<W>::min());
  std::vector<W> w(n);
  for (W& x : w) {
    const auto bits = static_cast<storage>(engine());
    x = num::from_bits<W>(kind == 0   ? bits % infinity
                          : kind == 1 ? one + bits % hidden
                          : kind == 2 ? (bits % 8 == 0    ? 1 + bits % 3
                                         : bits % 16 == 1 ? largest
                                                          : 0)
                          : kind == 3 ? one
                                      : bits % hidden);
  }
  if (kind != 5) w[engine() % n] = 1;
  if (kind == 5) w[engine() % n] = num::from_bits<W>(1);
  return w;
}

TEST_CASE_TEMPLATE("multinomial: the search, next to where the place changes", W, float, double) {
  std::mt19937_64 engine(3);
  for (int k = 0; k < 300; ++k) {
    const std::size_t n = k % 7 == 0 ? 1 + engine() % 3 : 1 + engine() % 700;
    const std::vector<W> w = weights_of<W>(engine, n, k % 6);
    std::vector<mpz_class> upto;
    std::vector<weight_sum<W>> sums;
    std::vector<double> within, rounded;
    weight_sum<W> sum{};
    mpz_class exact = 0;
    double running = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i % draw_chunk == 0) running = 0;
      sum.add(w[i]);
      exact += units(w[i]);
      within.push_back(running += num::weight_units(w[i]));
      upto.push_back(exact);
      if ((i + 1) % draw_chunk == 0 || i + 1 == n) {
        sums.push_back(sum);
        rounded.push_back(sum.rounded());
        CHECK(bool(value_of(sum) == exact));
        constexpr bool wide = weight_sum<W>::wide;  // units of 2^41, and what underflows
        const mpq_class found = mpq_class(rounded.back()) << (wide ? 1115 : 0);
        const mpq_class underflown = mpq_class(wide ? 1 : 0) << 115;
        CHECK(bool(abs(found - exact) <= mpq_class(exact) * mpq_class(35 * 0x1p-53) + underflown));
      }
    }
    const num::row_sums<W> row{static_cast<std::int64_t>(n), within.data(), sums.data(), rounded.data()};
    int quick = 0, all = 0;
    for (int repeat = 0; repeat < 60; ++repeat) {
      std::uint64_t word = engine();
      if (repeat % 3 != 0) {  // the greatest word that does not reach a sum, and its neighbours
        const mpz_class at = (upto[engine() % n] << 64) / exact;
        word = at >> 64 != 0 ? ~std::uint64_t{0} : at.get_ui();
        word += engine() % 3 - 1;
      } else if (repeat % 9 == 0) {
        word = repeat == 0 ? 0 : ~std::uint64_t{0};
      }
      const mpz_class t = exact * mpz_class(static_cast<unsigned long>(word));
      std::int64_t want = 0;
      while ((upto[static_cast<std::size_t>(want)] << 64) <= t) ++want;
      CHECK(bool(value_of(sum.part(word)) == t >> 64));
      const std::int64_t found = row.find(word);
      CHECK((found == want || found == -1));
      const bool random = repeat % 3 == 0 && repeat % 9 != 0;
      quick += found == want && random ? 1 : 0;
      all += random ? 1 : 0;
      CHECK(row.find_exactly(word, [&](std::int64_t i) { return w[static_cast<std::size_t>(i)]; }) == want);
    }
    const bool tiny = weight_sum<W>::wide && k % 6 == 5;  // exact sums alone tell
    CHECK((tiny ? quick == 0 : quick >= all - 1));
  }
}

array make(const attributes& attrs, const array& x) { return reference::evaluate("multinomial", {x}, attrs); }
attributes options(std::int64_t samples, bool replacement, std::int64_t stream) {
  return {{"num_samples", samples}, {"replacement", replacement}, {"seed", std::int64_t{77}}, {"stream", stream}};
}

TEST_CASE("multinomial: against the oracle") {
  std::vector<test::engine> all = test::engines();
  std::mt19937_64 engine(4);
  for (int k = 0; k < 240; ++k) {
    const auto below = [&](int n) { return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n)); };
    const bool replacement = k % 2 == 0, one = k % 5 == 0;
    const std::int64_t rows = one ? 1 : below(4), n = k % 3 == 0 ? 1 + below(3) : 1 + below(k % 8 == 1 ? 900 : 60);
    const std::int64_t samples = k % 4 < 2 ? 1 : replacement ? 1 + below(80) : 1 + below(static_cast<int>(n));
    const dtype type = std::array{dtype::f32, dtype::f16, dtype::bf16, dtype::f64}[static_cast<std::size_t>(k % 7 % 4)];
    const auto c = reference::element_classes[static_cast<std::size_t>(k) % reference::element_classes.size()];
    const shape_list shape = one ? shape_list{n} : shape_list{rows, n};
    const array x = reference::fill_weights(c, type, shape, replacement ? 1 : samples, static_cast<std::uint64_t>(k));
    const attributes attrs = options(samples, replacement, k);
    const std::vector<array> expected{make(attrs, x)};
    for (test::engine& e : all) {
      const std::string text = test::difference(test::run(*e.ctx, "multinomial", {x}, expected, attrs), expected);
      CHECK_MESSAGE(text.empty(), e.name << ", call " << k << ": " << text);
    }
  }
}

// Subnormal weights beside the greatest power, many rows, threads that share rows and chunks.
TEST_CASE_TEMPLATE("multinomial: long rows, threads, strides of both signs", W, float, double) {
  constexpr dtype type = dtype_of<W>;
  std::mt19937_64 engine(5);
  for (const bool replacement : {true, false}) {
    for (const auto& [rows, n, samples] :
         {std::tuple{3, 5003, 2001}, std::tuple{40, 301, 40}, std::tuple{1, 20011, 1}}) {
      array x(type, {rows, n});
      std::vector<W> w =
          weights_of<W>(engine, static_cast<std::size_t>(rows) * static_cast<std::size_t>(n), replacement ? 0 : 4);
      for (std::size_t i = 0; i < w.size(); ++i) {
        if (i % 3 == 0) w[i] = num::from_bits<W>(static_cast<num::storage_of<W>>(1 + i % 5));
        if (i % 1001 == 0) w[i] = std::ldexp(W{1}, num::format<W>::emax);
        x.set(i, num::to_bits(w[i]));
      }
      const attributes attrs = options(samples, replacement, 9);
      const array want = make(attrs, x);
      for (const int threads : {1, 2, 5}) {
        context ctx({.threads = threads});
        CHECK(test::difference(test::run(ctx, "multinomial", {x}, {want}, attrs), {want}).empty());
        std::vector<W> memory(w.size() * 2);
        std::vector<std::int64_t> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(samples) * 3);
        for (std::int64_t r = 0; r < rows; ++r) {  // backwards in both axes, the first one innermost
          for (std::int64_t i = 0; i < n; ++i) {
            memory[static_cast<std::size_t>(2 * (rows * (n - 1 - i) + rows - 1 - r))] =
                w[static_cast<std::size_t>(r * n + i)];
          }
        }
        generator g{77, 9};
        multinomial(ctx, g, const_tensor_view(memory.data() + 2 * (rows * n - 1), type, {rows, n}, {-2, -2 * rows}),
                    tensor_view(out.data() + 3 * (rows * samples - 1), dtype::i64, {rows, samples}, {-3 * samples, -3}),
                    {replacement});
        CHECK(g.stream == 10);
        bool same = true;
        for (std::int64_t i = 0; i < rows * samples; ++i) {
          same = same && static_cast<std::uint64_t>(out[static_cast<std::size_t>(3 * (rows * samples - 1 - i))]) ==
                             want.get(static_cast<std::size_t>(i));
        }
        CHECK(same);
      }
    }
  }
}

// Of binary64 -ln u / w may be more than the greatest number, which makes an infinity, or less than the least: ties go by place.
TEST_CASE("multinomial: keys that are infinite, subnormal and 0") {
  std::vector<double> w;
  for (const double x : {0x1p-1074, 0x1p1023, 1.0, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1020, 0.0, 0x1p-1010})
    for (int i = 0; i < 40; ++i) w.push_back(x);
  const auto n = std::ssize(w);
  array x(dtype::f64, {n});
  for (std::size_t i = 0; i < w.size(); ++i) x.set(i, num::bits_of(w[i]));
  const attributes attrs = options(n - 40, false, 5);
  const std::vector<array> want{make(attrs, x)};
  for (test::engine& e : test::engines()) {
    CHECK_MESSAGE(test::difference(test::run(*e.ctx, "multinomial", {x}, want, attrs), want).empty(), e.name);
  }
  context ctx({.threads = 2});
  const std::vector<double> least{0x1p-1074, 1, 0x1p-1074, 0, 0x1p-1074};
  std::vector<std::int64_t> out(4);
  generator g{1, 1};
  multinomial(ctx, g, least, out);
  CHECK(out == std::vector<std::int64_t>{1, 0, 2, 4});
}

TEST_CASE("multinomial: weights that are repeated in memory, tiers, a budget too small") {
  const std::vector<float> w{0.5f};
  const const_tensor_view same(w.data(), dtype::f32, {3, 1000}, {0, 0});
  const array x(dtype::f32, {3, 1000}, std::vector<std::uint32_t>(3000, 0x3f000000));
  for (const bool replacement : {true, false}) {
    const array want = make(options(1000, replacement, 1), x);
    for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
      context ctx({.threads = 2, .first_tier = first});
      std::vector<std::int64_t> out(3000);
      generator g{77, 1};
      multinomial(ctx, g, same, tensor_view(out.data(), {3, 1000}), {replacement});
      for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(static_cast<std::uint64_t>(out[i]) == want.get(i));
      const statistics s = ctx.read_statistics();
      CHECK(s[tier::binary64] + s[tier::double_double] + s[tier::exact] == 3000);
      if (first == tier::exact) CHECK(s[tier::exact] == 3000);
    }
  }
  // Without replacement and n samples of n: every place once.
  context ctx({.threads = 2});
  std::vector<std::int64_t> out(1000);
  generator g{1, 1};
  multinomial(ctx, g, same.slice(0, 0, 1).reshape({1000}), out);
  std::sort(out.begin(), out.end());
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i] == static_cast<std::int64_t>(i));
  context poor({.first_tier = tier::exact, .last_tier_bits = 0});
  CHECK_THROWS_AS(multinomial(poor, g, same.slice(0, 0, 1).reshape({1000}), out), error);
}

TEST_CASE("multinomial: rows that nothing can be drawn from") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  context ctx({.threads = 2});
  struct bad {
    std::vector<float> row;
    std::int64_t samples;
    bool replacement;
    const char* text;
  };
  for (const bad& b :
       {bad{{1, -1, 2}, 1, true, "-1 at place 1 in row 1"}, bad{{1, nan, 2}, 1, false, "at place 1 in row 1"},
        bad{{1, 2, infinity}, 2, true, "at place 2 in row 1"},
        bad{{0, 0, -0.0f}, 1, true, "at least 1 weights that are not 0, got 0 in row 1"},
        bad{{0, 3, 0}, 2, false, "at least 2 weights that are not 0, got 1 in row 1"}}) {
    std::vector<float> x{1, 2, 3};
    x.insert(x.end(), b.row.begin(), b.row.end());
    std::vector<std::int64_t> out(2 * static_cast<std::size_t>(b.samples), -7);
    generator g{1, 1};
    std::string text;
    try {
      multinomial(ctx, g, {x.data(), {2, 3}}, tensor_view(out.data(), {2, b.samples}), {b.replacement});
    } catch (const error& e) {
      CHECK(e.site() == error_site::weights);
      text = e.what();
    }
    CHECK_MESSAGE(text.find(b.text) != std::string::npos, text);
    CHECK(std::count(out.begin(), out.end(), -7) == std::ssize(out));
    CHECK(g.stream == 1);
  }
  std::vector<float> x{-0.0f, 5, 0, 0};
  std::vector<std::int64_t> out(4);
  generator g{1, 1};
  multinomial(ctx, g, x, out, {.replacement = true});
  CHECK(std::count(out.begin(), out.end(), 1) == 4);
  multinomial(ctx, g, x, tensor_view(out.data(), {1}));
  CHECK(out[0] == 1);
  CHECK_THROWS_AS(multinomial(ctx, g, x, tensor_view(out.data(), sizes{0})), error);
  CHECK_THROWS_AS(multinomial(ctx, g, {x.data(), {2, 2}}, tensor_view(out.data(), {1, 3})), error);
  CHECK_THROWS_AS(multinomial(ctx, g, {x.data(), {1, 2, 2}}, tensor_view(out.data(), {1, 2})), error);
  CHECK_THROWS_AS(multinomial(ctx, g, {x.data(), {2, 0}}, tensor_view(out.data(), {2, 1}), {true}), error);
  CHECK_THROWS_AS(multinomial(ctx, g, {x.data(), {2, 2}}, tensor_view(out.data(), {2, 3})), error);
  multinomial(ctx, g, {x.data(), {0, 4}}, tensor_view(out.data(), {0, 3}));
}

TEST_CASE_TEMPLATE("multinomial on CUDA: as the CPU's, and rows that nothing can be drawn from", W, float, double) {
  if (!tests::has_gpu()) return;
  context cpu({.threads = 2}), ctx(context_options{.where = tests::gpu});
  std::mt19937_64 engine(7);
  for (int k = 0; k < 60; ++k) {
    const bool replacement = k % 2 == 0;
    const std::int64_t rows = 1 + static_cast<std::int64_t>(engine() % (k % 3 == 0 ? 300 : 4));
    const std::int64_t n = 1 + static_cast<std::int64_t>(engine() % (k % 3 == 0 ? 200 : 60000));
    const std::int64_t samples =
        k % 4 < 2 ? 1 : 1 + static_cast<std::int64_t>(engine() % (replacement ? 5000 : static_cast<std::uint64_t>(n)));
    array x(dtype_of<W>, {rows, n});
    const std::vector<W> w =
        weights_of<W>(engine, static_cast<std::size_t>(rows * n), replacement ? k / 2 % 6 : k / 2 % 2 * 3);
    for (std::size_t i = 0; i < w.size(); ++i) x.set(i, num::to_bits(w[i] == 0 && !replacement ? W{1} : w[i]));
    for (std::int64_t r = 0; r < rows; ++r) x.set(static_cast<std::size_t>(r * n), num::to_bits(W{1}));
    const attributes attrs = options(samples, replacement, k);
    const array shape(dtype::i64, {rows, samples});
    const std::vector<array> want = test::run(cpu, "multinomial", {x}, {shape}, attrs);
    CHECK(test::difference(test::run(ctx, "multinomial", {x}, {shape}, attrs), want).empty());
    if (k % 3 != 0) continue;
    const std::uint64_t bad[] = {num::format<W>::nan, num::format<W>::infinity, num::to_bits(W{-1})};
    x.set(static_cast<std::size_t>(engine() % w.size()), bad[k / 3 % 3]);
    error_site site{};
    try {
      test::run(ctx, "multinomial", {x}, {shape}, attrs);
    } catch (const error& e) {
      site = e.site();
    }
    CHECK(site == error_site::weights);
    ctx.synchronize();  // reported once
  }
}

}  // namespace
