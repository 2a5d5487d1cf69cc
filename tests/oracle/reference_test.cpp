// The oracle's primitives: known values, MPFR's own roundings, exact cases, and whether samples are what they claim.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <vector>

#include "librepdl/api/sha256.hpp"
#include "reference/digests.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/evaluate.hpp"
#include "reference/exhaustive.hpp"
#include "reference/nearby.hpp"
#include "tests/helpers/bits.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;
using tests::bits;

constexpr std::uint32_t inf = 0x7f800000, nan32 = 0x7fc00000, sign = 0x80000000;
constexpr dtype floats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

const ops::elementwise_row& row(std::string_view name) { return *elementwise_named(name); }
std::uint32_t f(std::string_view name, std::uint32_t x, std::uint32_t y = 0, std::uint32_t z = 0) {
  const std::uint32_t in[] = {x, y, z};
  return evaluate(row(name), in);
}
array vec(const std::vector<std::uint32_t>& v) { return {dtype::f32, {static_cast<std::int64_t>(v.size())}, v}; }
std::uint64_t one(const std::string& op, const std::vector<array>& in, const attributes& attrs = {}) {
  return evaluate(op, in, attrs).get(0);
}

/// MPFR with a format's exponent range: it rounds by itself, mpfr_subnormalize included.
struct mpfr_range {
  mpfr_exp_t lo = mpfr_get_emin(), hi = mpfr_get_emax();
  explicit mpfr_range(const format& g) {
    mpfr_set_emin(g.ulp_min() + 1);
    mpfr_set_emax(g.emax + 1);
  }
  ~mpfr_range() {
    mpfr_set_emin(lo);
    mpfr_set_emax(hi);
  }
};

struct real {
  mpfr_t v;
  explicit real(mpfr_prec_t p) { mpfr_init2(v, p); }
  real(dtype t, std::uint64_t b) : real(format_of(t).precision) { set_mpfr(v, t, b); }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
};

/// g(y, RNDN) rounded by MPFR alone.
template <class G>
std::uint64_t by_mpfr(dtype t, G&& g) {
  real y(format_of(t).precision);
  const mpfr_range range(format_of(t));
  int ternary = g(y.v);
  ternary = mpfr_check_range(y.v, ternary, MPFR_RNDN);
  mpfr_subnormalize(y.v, ternary, MPFR_RNDN);
  return round_mpfr(t, y.v);
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("sha256: FIPS 180-4 examples, both paths, any division into updates" * doctest::test_suite("portable")) {
  for (const bool portable : {false, true}) {
    sha256::force_portable(portable);
    CHECK(sha256::hex(sha256::of("", 0)) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256::hex(sha256::of("abc", 3)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const std::string a(1000000, 'a');
    CHECK(sha256::hex(sha256::of(a.data(), a.size())) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    for (std::size_t cut = 0; cut < 200; ++cut) {
      const auto whole = sha256::of(a.data(), 200);
      CHECK(sha256().update(a.data(), cut).update(a.data(), 200 - cut).finish() == whole);
    }
  }
  sha256::force_portable(false);
}

TEST_CASE("reference: Philox4x32-10 known answers of Random123") {
  const auto is = [](philox_block b, std::uint32_t w0, std::uint32_t w1, std::uint32_t w2, std::uint32_t w3) {
    return b.w[0] == w0 && b.w[1] == w1 && b.w[2] == w2 && b.w[3] == w3;
  };
  constexpr std::uint32_t f4[] = {~0U, ~0U, ~0U, ~0U}, f2[] = {~0U, ~0U}, z4[4] = {}, z2[2] = {};
  constexpr std::uint32_t pi4[] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, pi2[] = {0xa4093822, 0x299f31d0};
  CHECK(is(philox(z4, z2), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  CHECK(is(philox(f4, f2), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  CHECK(is(philox(pi4, pi2), 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST_CASE("reference: every 16-bit pattern survives widening and rounding; conversions equal MPFR's") {
  for (const dtype from : floats) {
    word_stream w(1, static_cast<std::uint64_t>(from));
    for (std::uint64_t i = 0; i < 65536; ++i) {
      std::uint64_t b = size_of(from) == 2 ? i : sample(static_cast<sample_class>(i % 11), from, w);
      const real x(from, b);
      CHECK(round_mpfr(from, x.v) == (mpfr_nan_p(x.v) != 0 ? nan_bits(from) : b));
      for (const dtype to : floats) {
        if (from == to) {
          CHECK(convert(from, to, b) == b);
        } else {
          CHECK(convert(from, to, b) == by_mpfr(to, [&](mpfr_ptr y) { return mpfr_set(y, x.v, MPFR_RNDN); }));
        }
      }
    }
  }
}

TEST_CASE("reference: integers and booleans are converted as MPFR does it") {
  constexpr dtype integers[] = {dtype::i32, dtype::i64};
  const auto value = [](dtype t, std::uint64_t b) {
    return t == dtype::i32 ? static_cast<std::int32_t>(b) : static_cast<std::int64_t>(b);
  };
  for (const sample_class c : element_classes) {
    for (const dtype from : integers) {
      for (const dtype to : floats) {
        const array a = fill_conversion(c, from, to, 3000, 1, 2);
        for (std::size_t i = 0; i < 3000; ++i) {
          const std::int64_t v = value(from, a.get(i));
          CHECK(convert(from, to, a.get(i)) == by_mpfr(to, [&](mpfr_ptr y) { return mpfr_set_si(y, v, MPFR_RNDN); }));
        }
      }
    }
    for (const dtype from : floats) {
      for (const dtype to : integers) {
        const array a = fill_conversion(c, from, to, 3000, 1, 3);
        for (std::size_t i = 0; i < 3000; ++i) {
          const real x(from, a.get(i));
          long v = mpfr_get_si(x.v, MPFR_RNDZ);  // saturates; NaN: 0
          if (to == dtype::i32) v = std::clamp<long>(v, INT32_MIN, INT32_MAX);
          CHECK(value(to, convert(from, to, a.get(i))) == v);
          CHECK(convert(from, dtype::boolean, a.get(i)) == (mpfr_zero_p(x.v) != 0 ? 0 : 1));
        }
      }
    }
  }
  for (const std::uint64_t b : {0, 1, 2, 128, 255}) {
    const std::uint64_t truth = b != 0 ? 1 : 0;
    for (const dtype to : {dtype::i32, dtype::i64, dtype::boolean}) CHECK(convert(dtype::boolean, to, b) == truth);
    for (const dtype to : floats)
      CHECK(convert(dtype::boolean, to, b) == (truth != 0 ? exact_pattern(to, false, 1, 0) : 0));
  }
  for (const std::int64_t v :
       {INT64_MIN, INT64_MIN + 1, std::int64_t{INT32_MIN} - 1, std::int64_t{INT32_MIN}, std::int64_t{-1},
        std::int64_t{0}, std::int64_t{INT32_MAX}, std::int64_t{INT32_MAX} + 1, INT64_MAX}) {
    const auto b = static_cast<std::uint64_t>(v);
    CHECK(value(dtype::i32, convert(dtype::i64, dtype::i32, b)) == std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX));
    CHECK(convert(dtype::i32, dtype::i64, b & 0xffffffff) == static_cast<std::uint64_t>(static_cast<std::int32_t>(v)));
    CHECK(convert(dtype::i64, dtype::boolean, b) == (v != 0 ? 1 : 0));
  }
}

TEST_CASE("reference: rounding at midpoints, subnormals and the overflow threshold") {
  for (const dtype t : floats) {
    const format& g = format_of(t);
    const std::uint64_t top = (std::uint64_t{1} << g.precision) - 1;
    CHECK(round(t, false, 2 * top, g.emax - g.precision, false) == g.largest());
    if (g.precision < 60) {
      CHECK(round(t, false, 4 * top + 1, g.emax - g.precision - 1, false) == g.largest());
      CHECK(round(t, true, 4 * top + 2, g.emax - g.precision - 1, false) == infinity_bits(t, true));  // a tie
    }
    CHECK(round(t, false, 1, g.ulp_min() - 1, false) == 0);  // a tie with zero
    CHECK(round(t, true, 1, g.ulp_min() - 1, false) == g.sign_bit());
    CHECK(round(t, false, 3, g.ulp_min() - 2, false) == 1);
    CHECK(round(t, false, 3, g.ulp_min() - 1, false) == 2);
    CHECK(round(t, false, std::uint64_t{1} << 63, g.ulp_min() - 64, true) == 1);
    CHECK(round(t, false, top, g.emin - g.precision, false) == std::uint64_t{1} << (g.precision - 1));  // carry
  }
}

TEST_CASE("reference: IEEE rows equal MPFR on every class") {
  for (int c = 0; c < 11; ++c) {
    const auto in = fill_operands(static_cast<sample_class>(c), dtype::f32, 3, 3000, 7, static_cast<std::uint64_t>(c));
    for (std::size_t i = 0; i < 3000; ++i) {
      const auto b = [&](std::size_t j) { return static_cast<std::uint32_t>(in[j].get(i)); };
      const real x(dtype::f32, b(0)), y(dtype::f32, b(1)), z(dtype::f32, b(2));
      const auto same = [&](std::string_view name, auto&& g) {
        return f(name, b(0), b(1), b(2)) == by_mpfr(dtype::f32, g);
      };
      CHECK(same("add", [&](mpfr_ptr r) { return mpfr_add(r, x.v, y.v, MPFR_RNDN); }));
      CHECK(same("sub", [&](mpfr_ptr r) { return mpfr_sub(r, x.v, y.v, MPFR_RNDN); }));
      CHECK(same("mul", [&](mpfr_ptr r) { return mpfr_mul(r, x.v, y.v, MPFR_RNDN); }));
      CHECK(same("div", [&](mpfr_ptr r) { return mpfr_div(r, x.v, y.v, MPFR_RNDN); }));
      CHECK(same("fma", [&](mpfr_ptr r) { return mpfr_fma(r, x.v, y.v, z.v, MPFR_RNDN); }));
      CHECK(same("sqrt", [&](mpfr_ptr r) { return mpfr_sqrt(r, x.v, MPFR_RNDN); }));
      CHECK(same("exp", [&](mpfr_ptr r) { return mpfr_exp(r, x.v, MPFR_RNDN); }));
      CHECK(same("log", [&](mpfr_ptr r) { return mpfr_log(r, x.v, MPFR_RNDN); }));
      CHECK(same("tanh", [&](mpfr_ptr r) { return mpfr_tanh(r, x.v, MPFR_RNDN); }));
    }
  }
}

TEST_CASE("reference: every row has an oracle; special values") {
  for (const ops::elementwise_row& r : ops::elementwise_rows()) {
    for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
      if ((r.formats & ops::one(t)) == 0) continue;
      const std::uint64_t nan = nan_bits(t), other = nan | format_of(t).sign_bit() | 5;
      const std::uint64_t in[] = {other, other, other, other};
      static_assert(std::size(in) >= ops::most_operands);
      INFO(r.name);
      const std::uint64_t result = evaluate(r, t, in, option_values(r, t));
      if (r.has_own_type()) {
        const bool is_true = r.name == "not_equal" || r.name == "isnan" || r.name == "signbit" ||
                             r.name == "logical_and" || r.name == "logical_or";
        CHECK(result == (is_true ? 1 : 0));
      } else if (r.kind == ops::op_kind::compute) {
        // What does not read the NaN: an option in its place, and a gradient outside of bounds.
        const bool is_zero = r.name == "nan_to_num" || r.name == "clamp_backward" || r.name == "hardsigmoid_backward" ||
                             r.name == "fmax_backward_y" || r.name == "fmin_backward_y" ||
                             r.name.starts_with("clip_backward");
        CHECK(result == (is_zero ? 0 : nan));
      } else if (r.name == "masked_fill") {
        CHECK(result == 0);
      } else {
        CHECK((result | format_of(t).sign_bit()) == other);
      }
    }
  }
  CHECK(f("exp", bits(1)) == 0x402df854);
  CHECK(f("log", bits(2)) == 0x3f317218);
  CHECK(f("tanh", bits(1)) == 0x3f42f7d6);
  CHECK(f("sigmoid", bits(1)) == 0x3f3b26a8);
  CHECK(f("exp", sign) == bits(1));
  CHECK(f("exp", inf | sign) == 0);
  CHECK(f("log", sign) == (inf | sign));
  CHECK(f("log", bits(-1)) == nan32);
  CHECK(f("log", bits(1)) == 0);
  CHECK(f("tanh", sign) == sign);
  CHECK(f("sigmoid", inf | sign) == 0);
  CHECK(f("sigmoid", 1) == bits(0.5F));
  CHECK(f("sqrt", sign) == sign);
  CHECK(f("relu", sign) == 0);
  CHECK(f("maximum", sign, 0) == 0);
  CHECK(f("minimum", 0, sign) == sign);
  CHECK(f("add", sign, sign) == sign);
  CHECK(f("sub", bits(1), bits(1)) == 0);
  CHECK(f("fma", bits(1), sign, sign) == sign);
  CHECK(f("relu_backward", bits(-3), nan32) == bits(-3));
  CHECK(f("relu_backward", bits(-3), 0) == 0);
  // tanh_backward: g (1 - y^2); sigmoid_backward: g y (1 - y), with zeros, infinities and one rounding
  CHECK(f("tanh_backward", bits(-2), bits(1)) == sign);
  CHECK(f("tanh_backward", inf, bits(-1)) == nan32);
  CHECK(f("tanh_backward", bits(2), inf) == (inf | sign));
  CHECK(f("tanh_backward", sign, inf) == nan32);
  CHECK(f("tanh_backward", 0x7f7fffff, 0x7f7fffff) == (inf | sign));
  CHECK(f("sigmoid_backward", bits(3), sign) == sign);
  CHECK(f("sigmoid_backward", bits(-3), bits(1)) == sign);
  CHECK(f("sigmoid_backward", 0x7f7fffff, bits(2)) == (inf | sign));
  CHECK(f("sigmoid_backward", 1, bits(0.5F)) == 0);  // 2^-151
}

TEST_CASE("reference: ranges equal the pointwise oracle") {
  constexpr std::size_t count = 1 << 11;
  for (const ops::elementwise_row& r : ops::elementwise_rows()) {
    if (r.arity != 1 || r.options.count() != 0) continue;
    array out(r.result_type(dtype::f32), {count});
    for (const std::uint64_t middle :
         {0x00000800ULL, 0x00800000ULL, 0x39800000ULL, 0x3e800000ULL, 0x3f800000ULL, 0x40800000ULL, 0x41200000ULL,
          0x42b17218ULL, 0x4b800000ULL, 0x7f800000ULL, 0x80000000ULL, 0x80800000ULL, 0xb9800000ULL, 0xbf800000ULL,
          0xc2cff1b5ULL, 0xff800000ULL, 0xfffff000ULL}) {
      const auto first = static_cast<std::uint32_t>(middle < count / 2 ? 0 : middle - count / 2);
      evaluate_range(r, first, count, out.bytes.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto x = static_cast<std::uint32_t>(first + i);
        wrong += evaluate(r, &x) != out.get(i);
      }
      CHECK_MESSAGE(wrong == 0, std::string(r.name));
    }
  }
}

TEST_CASE("reference: sums, means and products of sums") {
  const std::uint32_t M = 0x7f7fffff, m = M | sign;
  CHECK(one("sum", {vec({M, M, m})}) == M);
  CHECK(one("sum", {vec({M, M})}) == inf);
  CHECK(one("sum", {vec({M, bits(0x1p103F)})}) == inf);          // the tie at the threshold
  CHECK(one("sum", {vec({M, bits(0x1p103F), sign | 1})}) == M);  // just below it
  CHECK(one("sum", {vec({sign, sign})}) == 0);
  CHECK(one("sum", {vec({})}) == 0);
  CHECK(one("sum", {vec({inf, inf | sign})}) == nan32);
  CHECK(one("sum", {vec({inf, M})}) == inf);
  CHECK(one("sum", {vec({bits(1), bits(0x1p-24F)})}) == bits(1));        // ties to even, down
  CHECK(one("sum", {vec({0x3f800001, bits(0x1p-24F)})}) == 0x3f800002);  // and up
  CHECK(one("sum", {vec({bits(1), bits(0x1p-24F), 1})}) == 0x3f800001);  // a near-tie
  CHECK(one("mean", {vec({})}) == nan32);
  CHECK(one("mean", {vec({M, M, M})}) == M);
  CHECK(one("mean", {vec({1, 0})}) == 0);  // 2^-150
  CHECK(one("mean", {vec({bits(1), 0, 0})}) == 0x3eaaaaab);
  CHECK(one("dot", {vec({inf}), vec({sign})}) == nan32);
  CHECK(one("dot", {vec({M, M}), vec({M, m})}) == 0);
  CHECK(one("dot", {vec({1, 1}), vec({bits(0.5F), 1})}) == 1);  // 2^-150 + 2^-298

  word_stream w(3, 3);
  exact_sum s;
  real total(1200), x(24), y(24);
  for (int trial = 0; trial < 300; ++trial) {
    s.clear();
    mpfr_set_zero(total.v, 1);
    for (int k = 0; k < 40; ++k) {
      const auto a = static_cast<std::uint32_t>(sample(sample_class::wide_exponents, dtype::f32, w));
      const auto b = static_cast<std::uint32_t>(sample(sample_class::wide_exponents, dtype::f32, w));
      s.add_product(a, b);
      set_mpfr(x.v, dtype::f32, a);
      set_mpfr(y.v, dtype::f32, b);
      REQUIRE(mpfr_fma(total.v, x.v, y.v, total.v, MPFR_RNDN) == 0);  // exact
    }
    CHECK(s.round() == by_mpfr(dtype::f32, [&](mpfr_ptr r) { return mpfr_set(r, total.v, MPFR_RNDN); }));
    CHECK(s.round_mean(77) == by_mpfr(dtype::f32, [&](mpfr_ptr r) { return mpfr_div_ui(r, total.v, 77, MPFR_RNDN); }));
  }
}

TEST_CASE("reference: order, axes, matmul layouts, fma_chain") {
  CHECK(one("argmax", {vec({sign, 0})}) == 1);
  CHECK(one("argmin", {vec({0, sign, sign})}) == 1);
  CHECK(one("argmax", {vec({inf, 0x7f800001, nan32})}) == 1);
  CHECK(one("max", {vec({inf, 0xffc00001})}) == nan32);
  CHECK(one("min", {vec({bits(2), bits(-2), bits(-2)})}) == bits(-2));

  std::vector<std::uint32_t> iota;
  for (int i = 0; i < 24; ++i) iota.push_back(bits(static_cast<float>(i)));
  const array cube(dtype::f32, {2, 3, 4}, iota);
  using integers = std::vector<std::int64_t>;
  const array mid = evaluate("sum", {cube}, {{"axis", integers{0, -1}}, {"keepdim", true}});
  CHECK(mid.shape == shape_list{1, 3, 1});
  CHECK(mid.patterns() == patterns{bits(60), bits(92), bits(124)});
  CHECK(one("argmax", {cube}, {{"axis", integers{0, 2}}}) == 7);

  const array a(dtype::f32, {2, 3}, std::vector(iota.begin(), iota.begin() + 6)),
      b(dtype::f32, {3, 2}, std::vector(iota.begin(), iota.begin() + 6));
  CHECK(evaluate("matmul", {a, b}).patterns() == patterns{bits(10), bits(13), bits(28), bits(40)});
  CHECK(evaluate("matmul", {a, a}, {{"transpose_b", true}}).patterns() ==
        patterns{bits(5), bits(14), bits(14), bits(50)});
  CHECK(evaluate("matmul", {a, b, vec({bits(1), bits(2)})}).patterns() ==
        patterns{bits(11), bits(15), bits(29), bits(42)});

  // ((1 + 2^-24) + 2^-24) rounds twice in the chain, once exactly; a tiny negative product makes the chain -0
  const array ones(dtype::f32, {3, 1}, std::vector<std::uint32_t>(3, bits(1)));
  const array steps(dtype::f32, {1, 3}, std::vector<std::uint32_t>{bits(1), bits(0x1p-24F), bits(0x1p-24F)});
  CHECK(one("matmul", {steps, ones}, {{"accumulate", std::string("fma_chain")}}) == bits(1));
  CHECK(one("matmul", {steps, ones}) == 0x3f800001);
  const array tiny(dtype::f32, {1, 1}, std::vector<std::uint32_t>{sign | 1}),
      half(dtype::f32, {1, 1}, std::vector<std::uint32_t>{bits(0.25F)});
  CHECK(one("matmul", {tiny, half}, {{"accumulate", std::string("fma_chain")}}) == sign);
}

TEST_CASE("reference: uniform and permutation") {
  const std::uint64_t unit_low = 0, unit_high = std::bit_cast<std::uint64_t>(1.0);
  for (const dtype t : floats) {
    const array u = uniform(t, {1001}, 5, 6, unit_low, unit_high);
    for (std::size_t i = 0; i < 1001; ++i) CHECK(u.get(i) < convert(dtype::f64, t, unit_high));
  }
  CHECK(uniform(dtype::f32, {1}, 0, 0, unit_low, unit_high).get(0) ==
        convert(dtype::f64, dtype::f32, std::bit_cast<std::uint64_t>((0x6627e8d5 >> 8) * 0x1p-24)));
  const array p = permutation(1000, 1, 2);
  std::vector<bool> seen(1000);
  for (std::size_t i = 0; i < 1000; ++i) seen.at(p.get(i)) = true;
  CHECK(std::count(seen.begin(), seen.end(), true) == 1000);
}

TEST_CASE("reference: samples are what their class says") {
  const auto share = [](sample_class c, const outcomes& w) {
    return static_cast<double>(std::count_if(w.begin(), w.end(), [&](const outcome& o) { return hit(c, o); })) /
           static_cast<double>(w.size());
  };
  for (const sample_class c : {sample_class::ties, sample_class::near_ties}) {
    for (const std::int64_t k : {3, 10, 333}) {
      outcomes sums, means, products;
      reduce(reduction::sum, fill_terms(c, 50, k, false, 1, 1), shape_list{1}, false, &sums);
      reduce(reduction::mean, fill_terms(c, 50, k, true, 1, 1), shape_list{1}, false, &means);
      const factors g = fill_factors(c, 9, 11, k, true, 1, 1);
      matmul(g.a, g.b, &g.bias, {}, &products);
      CHECK(share(c, sums) == 1);
      CHECK(share(c, means) == 1);
      CHECK(share(c, products) == 1);
    }
    // Sums of f16 are near ties only where they are large.
    for (const dtype t : {dtype::f16, dtype::bf16}) {
      for (const std::int64_t k : {10, 333}) {
        outcomes sums, means, dots;
        reduce(reduction::sum, fill_terms(c, 50, k, false, 1, 1, t), shape_list{1}, false, &sums);
        reduce(reduction::mean, fill_terms(c, 50, k, true, 1, 1, t), shape_list{1}, false, &means);
        for (std::uint64_t i = 0; i < 50; ++i) {
          factors g = fill_factors(c, 1, 1, k, false, 1, i, t);
          g.a.shape = g.b.shape = {k};
          dot(g.a, g.b, &dots);
        }
        const bool few = c == sample_class::near_ties && t == dtype::f16;
        CHECK(share(c, sums) > (few ? 0.1 : 0.95));
        CHECK(share(c, means) > (few ? 0.3 : 0.9));
        CHECK(share(c, dots) > 0.9);
      }
    }
    for (const char* op : {"add", "sub", "mul", "div", "fma", "tanh_backward", "sigmoid_backward"}) {
      outcomes o;
      evaluate(op, fill_operands(c, dtype::f32, row(op).arity, 4000, 1, 1), {}, &o);
      CHECK_MESSAGE(share(c, o) > 0.02, op);
    }
    outcomes o;
    evaluate("convert", {fill_conversion(c, dtype::f64, dtype::bf16, 1000, 1, 1)}, {{"dtype", std::string("bf16")}},
             &o);
    CHECK(share(c, o) == 1);
    // Integers: from 2^63 on nothing overflows but in f16.
    if (c == sample_class::ties || c == sample_class::overflow_border) {
      o.clear();
      evaluate("convert", {fill_conversion(c, dtype::i64, dtype::f16, 1000, 1, 1)}, {{"dtype", std::string("f16")}},
               &o);
      CHECK(share(c, o) > 0.5);
    }
  }
  const std::uint32_t tie[] = {bits(1), bits(0x1p-24F)}, near[] = {bits(1), bits(0x1.8p-25F)};
  CHECK(locate(row("add"), tie).tie);
  CHECK(locate(row("add"), tie).boundary_distance == 0);
  CHECK(locate(row("add"), near).boundary_distance == doctest::Approx(0.125));
  CHECK(!locate(row("add"), near).near_tie);
}

TEST_CASE("digests: the committed files are read, and a part of them is confirmed") {
  const std::string dir = std::string(REPDL_SOURCE_DIR) + "/docs/digests/";
  std::size_t i = 0;
  for (const op_info& op : operations()) {
    for (const committed_digest& d : read_cases(dir, op)) {
      if (i++ % 193 == 0) CHECK_MESSAGE(digest(d.c, expected(d.c)) == d.value, to_text(d.c));
    }
  }
  for (const exhaustive_op& op : exhaustive_ops()) {
    std::ifstream in(dir + op.file_name());
    REQUIRE_MESSAGE(in, op.file_name());
    const exhaustive_digests d = read_exhaustive(in);
    CHECK(d.op.name == op.name);
    if (i++ % 8 != 0) continue;
    const int chunk = 0x88;  // quick everywhere: tiny negative numbers
    std::vector<unsigned char> out(chunk_elements * size_of(op.to));
    oracle_range(op)(static_cast<std::uint32_t>(chunk) << 24, chunk_elements, out.data());
    CHECK(chunk_digest(op, chunk, piece_digests(out.data(), chunk_elements, size_of(op.to))) == d.chunks[chunk]);
  }
}

// All that 64 bits decide is what MPFR says; and they decide most of what is not special.
TEST_CASE("reference: what 64 bits decide") {
  std::mt19937_64 random(1);
  int covered = 0;
  for (const ops::elementwise_row& r : ops::elementwise_rows()) {
    const nearby_function nearby = nearby_named(r.name);
    if (nearby == nullptr) continue;
    ++covered;
    CAPTURE(r.name);
    int decided = 0, tried = 0;
    for (const dtype t : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
      const option_values options(r, t);
      const format& to = format_of(t);
      for (int i = 0; i < 400; ++i) {
        std::uint64_t in[ops::most_operands] = {};
        for (int k = 0; k < r.arity; ++k) {
          // Every pattern, or a number next to 1, of few bits or of all.
          const std::uint64_t all = random() & (to.sign_bit() | (to.sign_bit() - 1));
          const double near_one =
              std::ldexp(1 + static_cast<double>(random() % 1024) / 1024, static_cast<int>(random() % 9) - 5);
          const double v = random() % 3 == 0 ? std::round(4 * near_one) / 4 : near_one;
          const std::uint64_t some =
              convert(dtype::f64, t, std::bit_cast<std::uint64_t>(v)) | (random() % 3 == 0 ? to.sign_bit() : 0);
          in[k] = i % 4 == 0 ? all : some;
        }
        std::uint64_t got = 0;
        ++tried;
        if (!nearby(t, in, options.value, &got)) continue;
        ++decided;
        const std::uint64_t expected = evaluate(r, t, in, options);
        CHECK_MESSAGE(got == expected, format_name(t) << std::hex << " " << in[0] << " " << in[1] << " " << in[2]);
      }
    }
    CHECK(decided > tried / 4);
  }
#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
  CHECK(covered > 50);
#endif
}

}  // namespace

TEST_SUITE_END();
