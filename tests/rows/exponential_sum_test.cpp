// The late tiers of the softmax family, wide numbers and balls, and the last one of `normal`, against MPFR: random rows, and rows
// whose results are exact, midpoints, or closer to a midpoint than any number of bits shows.
#include "librepdl/ops/rows/exponential_sum.hpp"

#include <doctest/doctest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "librepdl/ops/random/normal_exact.hpp"

namespace {

using namespace repdl::num;

constexpr float inf = std::numeric_limits<float>::infinity();

struct real {
  explicit real(mpfr_prec_t bits) { mpfr_init2(v, bits); }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
  mpfr_t v;
};

// RN_f32 of a result that MPFR rounds once: f(y) sets a 24-bit y and returns the ternary value.
template <class F>
float rounded(F&& f) {
  real y(24);
  const int t = f(y.v);
  const mpfr_exp_t low = mpfr_get_emin();
  const mpfr_exp_t high = mpfr_get_emax();
  mpfr_set_emin(-148);
  mpfr_set_emax(128);
  mpfr_subnormalize(y.v, mpfr_check_range(y.v, t, MPFR_RNDN), MPFR_RNDN);
  mpfr_set_emin(low);
  mpfr_set_emax(high);
  return mpfr_get_flt(y.v, MPFR_RNDN);
}

// The oracle of a row: ln S - max = ln(k + rest) and the sums, at `bits` bits. Additions of exact numbers to R are
// rounded by MPFR itself, once, so however small R is, it counts.
struct oracle {
  oracle(const std::vector<float>& row, mpfr_prec_t precision)
      : x(row), bits(precision), rest(precision), sum(precision), logarithm(precision) {
    max = -inf;
    for (const float e : x) max = std::max(max, e);
    mpfr_set_zero(rest.v, 1);
    real t(bits);
    for (const float e : x) {
      if (e == max) ++k;
      if (e == max || e == -inf) continue;
      weight(t, e);
      mpfr_add(rest.v, rest.v, t.v, MPFR_RNDN);
    }
    mpfr_add_si(sum.v, rest.v, k, MPFR_RNDN);
    if (k == 1) {
      mpfr_log1p(logarithm.v, rest.v, MPFR_RNDN);
    } else {
      mpfr_log(logarithm.v, sum.v, MPFR_RNDN);
    }
  }
  // e^(e - max). A gap beyond 10^4 counts as 10^4: e^-gap is then hidden below every other difference, and only that it
  // is positive matters.
  void weight(real& t, float e) const {
    gap(t, e);
    if (mpfr_cmp_ui(t.v, 10000) > 0) mpfr_set_ui(t.v, 10000, MPFR_RNDN);
    mpfr_neg(t.v, t.v, MPFR_RNDN);
    mpfr_exp(t.v, t.v, MPFR_RNDN);
  }
  void gap(real& t, float e) const {  // max - e
    mpfr_set_flt(t.v, max, MPFR_RNDN);
    real y(24);
    mpfr_set_flt(y.v, e, MPFR_RNDN);
    mpfr_sub(t.v, t.v, y.v, MPFR_RNDN);
  }
  float cross_entropy(float e) const {
    real d(400);
    gap(d, e);
    return rounded([&](mpfr_t y) { return mpfr_add(y, d.v, logarithm.v, MPFR_RNDN); });
  }
  float log_softmax(float e) const {
    const float c = cross_entropy(e);
    return c == 0 && mpfr_zero_p(logarithm.v) != 0 ? 0.0f : -c;
  }
  float logsumexp() const {
    real m(24);
    mpfr_set_flt(m.v, max, MPFR_RNDN);
    return rounded([&](mpfr_t y) { return mpfr_add(y, m.v, logarithm.v, MPFR_RNDN); }) + 0.0f;
  }
  float gradient(float e, float g, std::int64_t n, bool target) const {
    real p(bits);
    if (e == -inf) {
      mpfr_set_zero(p.v, 1);
    } else {
      weight(p, e);
    }
    if (target) {  // -(the other weights)
      if (e == max) {
        mpfr_add_si(p.v, rest.v, k - 1, MPFR_RNDN);
      } else {
        mpfr_sub(p.v, sum.v, p.v, MPFR_RNDN);
      }
      if (mpfr_zero_p(p.v) == 0) mpfr_neg(p.v, p.v, MPFR_RNDN);
    }
    real a(bits + 100);
    real b(bits + 100);
    mpfr_mul_d(a.v, p.v, static_cast<double>(g), MPFR_RNDN);
    mpfr_mul_si(b.v, sum.v, n, MPFR_RNDN);
    return rounded([&](mpfr_t y) { return mpfr_div(y, a.v, b.v, MPFR_RNDN); });
  }

  const std::vector<float>& x;
  mpfr_prec_t bits;
  float max = 0;
  std::int64_t k = 0;
  real rest, sum, logarithm;
};

struct row_of {
  const std::vector<float>& x;
  float operator()(std::int64_t i) const { return x[static_cast<std::size_t>(i)]; }
  std::int64_t length() const { return static_cast<std::int64_t>(x.size()); }
};

bool same(float a, float b) { return bits_of(a) == bits_of(b); }

std::int64_t compared = 0;
std::int64_t decided_by_wide = 0;

// Of one formula: what balls and what wide numbers say.
struct decision {
  certified exact;
  certified wide;
};
// finish(sums) -> certified, of the sums in any arithmetic.
template <class Finish>
decision decide(const row_of& row, float max, const Finish& finish, int budget) {
  return {decide_by_levels([&]<int L>() { return finish(sum_of_row<ball<L>>(row, max)); }, budget),
          finish(sum_of_row<wide<double>>(row, max))};
}

// Balls decide, and wide numbers where they must (`ordinary`).
void check_value(decision d, float expected, const std::string& what, const std::vector<float>& x, std::size_t i,
                 bool ordinary = false) {
  ++compared;
  decided_by_wide += d.wide.decided ? 1 : 0;
  const certified c = d.exact;
  const bool wide_is_right = d.wide.decided ? same(d.wide.value, expected) : !ordinary;
  if (c.decided && same(c.value, expected) && wide_is_right) return;
  CAPTURE(what);
  CAPTURE(i);
  std::string row;
  for (const float e : x) {
    row += " ";
    row += std::to_string(bits_of(e));
  }
  CAPTURE(row);
  CHECK(bits_of(c.value) == bits_of(expected));
  CHECK(c.decided);
  CAPTURE(d.wide.decided);
  CAPTURE(bits_of(d.wide.value));
  CHECK(wide_is_right);
}

const std::vector<float> gradients = {
    1.0f,        -1.0f,        0.0f,      -0.0f,         0x1p-126f,        -0x1p-149f, 0x1.fffffep127f,
    0x1.8p-148f, -0x1.8p-148f, 0x1p-148f, 3 * 0x1p-130f, 0x1.000002p-126f, 5.5f};
const std::vector<std::int64_t> counts = {1, 2, 3, 7, 1000, std::int64_t{1} << 25, (std::int64_t{1} << 54) + 1};

// Every function of a row, every element; bits: the oracle's precision. Elements whose budget of 512 bits does not do
// fail. Of ordinary rows, wide numbers decide all but gradients, some of which are exact or subnormal.
void check_row(const std::vector<float>& x, mpfr_prec_t bits, std::mt19937_64& engine, int budget = 2048,
               bool ordinary = false) {
  const oracle o(x, bits);
  const row_of row{x};
  const auto check = [&](const auto& finish, float expected, const char* what, std::size_t i, bool by_wide) {
    check_value(decide(row, o.max, finish, budget), expected, what, x, i, by_wide);
  };
  check([](const auto& s) { return exact_logsumexp(repdl::dtype::f32, s); }, o.logsumexp(), "logsumexp", 0, ordinary);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float e = x[i];
    const auto softmax = [e](const auto& s) { return exact_scaled_gradient(repdl::dtype::f32, s, e, 1, 1, false); };
    check(softmax, o.gradient(e, 1, 1, false), "softmax", i, ordinary);
    check([e](const auto& s) { return exact_log_softmax(repdl::dtype::f32, s, e); },
          e == -inf ? -inf : o.log_softmax(e), "log_softmax", i, ordinary);
    check([e](const auto& s) { return exact_cross_entropy(repdl::dtype::f32, s, e); },
          e == -inf ? inf : o.cross_entropy(e), "cross_entropy", i, ordinary);
    for (int j = 0; j < 3; ++j) {
      const float g = j == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(engine()) & 0xbfffffffu)
                             : gradients[engine() % gradients.size()];
      const std::int64_t n = counts[engine() % counts.size()];
      for (const bool target : {false, true}) {
        const auto gradient = [&](const auto& s) {
          return exact_scaled_gradient(repdl::dtype::f32, s, e, g, n, target);
        };
        check(gradient, o.gradient(e, g, n, target), "gradient", i, false);
      }
    }
  }
}

float any_finite(std::mt19937_64& engine) {
  for (;;) {
    const float f = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
    if (std::isfinite(f)) return f;
  }
}

TEST_CASE("random rows") {
  std::mt19937_64 engine(7);
  std::normal_distribution<float> normal;
  std::int64_t ordinary[2] = {};  // compared, decided by wide numbers
  for (int round = 0; round < 160; ++round) {
    std::vector<float> x(1 + engine() % 9);
    const int kind = round % 8;
    for (auto& e : x) {
      const int small = static_cast<int>(engine() % 5);
      switch (kind) {
        case 0:
          e = normal(engine);
          break;
        case 1:
          e = 10 * normal(engine);
          break;
        case 2:
          e = static_cast<float>(small - 2);
          break;
        case 3:  // equal but for the last place
          e = std::bit_cast<float>(0x3f800000u + static_cast<std::uint32_t>(small));
          break;
        case 4:
          e = static_cast<float>(small - 2) * 0x1p-149f;
          break;
        case 5:
          e = 1000 * normal(engine);
          break;
        case 6:
          e = small == 0 ? -inf : normal(engine) * 0x1p-20f;
          break;
        default:
          e = any_finite(engine);
      }
    }
    if (kind == 6) x[0] = 0.25f;
    const bool normal_row = kind < 2 && x.size() > 1;
    const std::int64_t before[2] = {compared, decided_by_wide};
    check_row(x, kind == 5 || kind == 7 ? 16000 : 3000, engine, 2048, normal_row);
    if (!normal_row) continue;
    ordinary[0] += compared - before[0];
    ordinary[1] += decided_by_wide - before[1];
  }
  CHECK(compared > 5000);
  CHECK(ordinary[0] > 1000);
  CHECK(ordinary[1] * 100 > ordinary[0] * 99);
}

TEST_CASE("rows with exact results, midpoints and hidden terms") {
  std::mt19937_64 engine(11);
  const std::vector<std::vector<float>> rows = {
      {0x1p27f, -8.0f},                     // log_softmax: a midpoint and e^-1.3e8
      {100.0f, 0x1p-18f},                   // 100 - 2^-18 is a midpoint, e^-100
      {0x1p24f, -1.0f},                     //
      {0x1p24f, -1.0f, -1.0f, -0x1p30f},    //
      {0.0f, -1000.0f},                     // -0
      {0.0f, -inf},                         // +0
      {-0.0f, -inf, -inf},                  //
      {-0.0f},                              //
      {0.0f, -0.0f},                        // two equal elements
      {5.0f},                               //
      {5.0f, 5.0f, 5.0f},                   // 1/3
      {5.0f, 5.0f, 5.0f, 5.0f, -3000.0f},   // 1/4 and less
      {5.0f, 5.0f, 5.0f, -700.0f},          //
      {0x1p127f, -0x1p127f},                // gap 2^128
      {0x1.fffffep127f, -0x1.fffffep127f},  //
      {0x1p-149f, 0.0f},                    // gap 2^-149
      {0x1p-149f, 0.0f, -0x1p-149f},        // 3 + 2^-298: second order
      {0x1p-149f, -0x1p-149f, -0x1p-149f},  //
      {0.0f, -87.0f, -88.0f, -103.0f, -103.9f, -103.973f, -103.97208f, -104.0f},  // subnormal softmax
      {0x1.fffffep127f, 0x1.fffffep127f, 0x1.fffffcp127f},                        // overflow border of logsumexp
      {-0x1.62e43p-1f, -0x1.62e43p-1f},                                           // max + ln 2 nearly 0
      {-0x1.62e42ep-1f, -0x1.62e42ep-1f},                                         //
      {-0x1.62e43p-1f, -0x1.62e43p-1f, -28.0f, -38.9f},
      {16.0f, -9.0f, -16.0f, -1e30f},    //
      {1.0f, 1.0f - 0x1p-24f, -400.0f},  //
      {0x1.000002p27f, -24.0f, -1e5f},   // ties to even, upwards
      {9000.0f, 0.0f},                   // beyond the exponential's range
      {8193.0f, 0x1p-12f, 1.0f},         //
      {0x1p60f, 0x1p60f, 2048.0f},       //
      {277.0f, -0.25f, 0x1p-17f},
  };
  for (const auto& x : rows) {
    float least = inf;
    float most = -inf;
    for (const float e : x) {
      if (e != -inf) least = std::min(least, e);
      most = std::max(most, e);
    }
    const double gap = static_cast<double>(most) - static_cast<double>(least);
    check_row(x, gap > 1e4 ? 30000 : 16000, engine, 512);
  }
  CHECK(compared > 500);
}

TEST_CASE("long rows, merged parts, budgets") {
  std::mt19937_64 engine(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(700);
  for (auto& e : x) e = 3 * normal(engine);
  x[3] = x[17] = 14;
  const oracle o(x, 2000);
  exponential_sum<ball<4>> parts[3];
  exponential_sum<wide<double>> wide_parts[3];
  const auto merge = [&x](auto& p) {
    for (auto& part : p) part.start(14);
    for (std::size_t i = 0; i < x.size(); ++i) p[i % 3].add(static_cast<double>(x[i]));
    p[0].merge(p[2]);
    p[1].merge(p[0]);
  };
  merge(parts);
  merge(wide_parts);
  const auto check = [&](const auto& finish, float expected, std::size_t i) {
    check_value({finish(parts[1]), finish(wide_parts[1])}, expected, "merged", {}, i, true);
  };
  check([](const auto& s) { return exact_logsumexp(repdl::dtype::f32, s); }, o.logsumexp(), 0);
  for (std::size_t i = 0; i < 50; ++i) {
    check([&](const auto& s) { return exact_log_softmax(repdl::dtype::f32, s, x[i]); }, o.log_softmax(x[i]), i);
    check([&](const auto& s) { return exact_scaled_gradient(repdl::dtype::f32, s, x[i], 1, 1, false); },
          o.gradient(x[i], 1, 1, false), i);
  }
  // p = 1 / (3 + 2^-298 + ...): 9 · 2^-149 p / 2 lies just below the midpoint 3 · 2^-150, and 256 bits do not show it.
  const std::vector<float> three = {0x1p-149f, 0.0f, -0x1p-149f};
  const row_of row{three};
  const auto hard = [](const auto& s) {
    return exact_scaled_gradient(repdl::dtype::f32, s, 0, 9 * 0x1p-149f, 2, false);
  };
  const auto softmax = [](const auto& s) { return exact_scaled_gradient(repdl::dtype::f32, s, 0, 1, 1, false); };
  CHECK_FALSE(decide(row, 0x1p-149f, hard, 256).exact.decided);
  CHECK_FALSE(decide(row, 0x1p-149f, hard, 256).wide.decided);
  check_value(decide(row, 0x1p-149f, hard, 512), 0x1p-149f, "hard", three, 1);
  CHECK_FALSE(decide(row, 0x1p-149f, softmax, 0).exact.decided);
  CHECK_FALSE(decide(row, 0x1p-149f, softmax, 255).exact.decided);
  CHECK(decide(row, 0x1p-149f, softmax, 256).exact.decided);
  static_assert(std::is_trivially_copyable_v<exponential_sum<ball<4>>> && sizeof(exponential_sum<ball<4>>) == 80);
  static_assert(std::is_trivially_copyable_v<cross_entropy_total<ball<4>>>);
  static_assert(std::is_trivially_copyable_v<exponential_sum<wide<double>>> &&
                sizeof(exponential_sum<wide<double>>) == 40);
}

// RN(sum of (max - x_t) + ln(..)) / n): the logarithms at 3000 bits, the rest exact.
float total_by_mpfr(const std::vector<std::vector<float>>& rows, const std::vector<std::size_t>& targets,
                    std::int64_t n) {
  real gaps(500);
  real logarithms(3000);
  mpfr_set_zero(gaps.v, 1);
  mpfr_set_zero(logarithms.v, 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const oracle o(rows[i], 3000);
    real d(400);
    o.gap(d, rows[i][targets[i]]);
    mpfr_add(gaps.v, gaps.v, d.v, MPFR_RNDN);
    mpfr_add(logarithms.v, logarithms.v, o.logarithm.v, MPFR_RNDN);
  }
  real sum(20000);  // of numbers down to e^-7000
  mpfr_add(sum.v, gaps.v, logarithms.v, MPFR_RNDN);
  return rounded([&](mpfr_t y) { return mpfr_div_si(y, sum.v, n, MPFR_RNDN); }) + 0.0f;
}

template <class A>
certified total_of(const std::vector<std::vector<float>>& rows, const std::vector<std::size_t>& targets,
                   std::int64_t n) {
  cross_entropy_total<A> halves[2];
  for (auto& h : halves) h.start();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float max = *std::max_element(rows[i].begin(), rows[i].end());
    halves[i % 2].add_row(sum_of_row<A>(row_of{rows[i]}, max), rows[i][targets[i]]);
  }
  halves[0].merge(halves[1]);
  return halves[0].finish(repdl::dtype::f32, n);
}

TEST_CASE("cross_entropy over rows") {
  std::mt19937_64 engine(3);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<float>> rows(1 + engine() % 5);
    std::vector<std::size_t> targets;
    for (auto& x : rows) {
      x.resize(1 + engine() % 4);
      for (auto& e : x) {
        e = round % 4 == 0   ? any_finite(engine)
            : round % 4 == 1 ? static_cast<float>(static_cast<int>(engine() % 7)) * 300
                             : normal(engine);
      }
      targets.push_back(engine() % x.size());
    }
    const std::int64_t n = round % 3 == 0 ? 1 : static_cast<std::int64_t>(rows.size());
    const float expected = total_by_mpfr(rows, targets, n);
    const certified in_wide = total_of<wide<double>>(rows, targets, n);
    check_value({total_of<ball<4>>(rows, targets, n), in_wide}, expected, "total 4", rows[0], targets[0],
                round % 4 > 1);
    check_value({total_of<ball<8>>(rows, targets, n), in_wide}, expected, "total 8", rows[0], targets[0]);
  }
  // Midpoints: two rows whose gaps average to one, and logarithms of e^-2000 and less; a midpoint and 2^-150 beside it.
  const std::vector<std::vector<float>> near[] = {
      {{0x1p27f, -8.0f}, {2000.0f, 0.0f, 1999.0f}},
      {{0x1p25f, -2.0f}, {0x1p25f, -2.0f}},
      {{0x1p101f, -0x1p77f}, {0x1p-149f, 0.0f}},
      {{7.0f}, {3.0f}},
      {{0.0f, -5000.0f}, {0.0f, -6000.0f}},
      {{0x1.fffffep127f, -0x1.fffffep127f}, {0x1.fffffep127f, -0x1.fffffep127f}},
  };
  for (const auto& rows : near) {
    const std::vector<std::size_t> last = {rows[0].size() - 1, rows[1].size() - 1};
    const std::vector<std::size_t> first = {0, 0};
    for (const std::int64_t n : {1, 2, 3}) {
      check_value({total_of<ball<4>>(rows, last, n), total_of<wide<double>>(rows, last, n)},
                  total_by_mpfr(rows, last, n), "near", rows[0], 0);
      check_value({total_of<ball<4>>(rows, first, n), total_of<wide<double>>(rows, first, n)},
                  total_by_mpfr(rows, first, n), "near", rows[0], 1);
    }
  }
  CHECK(compared >= 2 * 200 + 2 * 3 * 6);
}

// By balls and by wide numbers, from the exact sum.
decision log_softmax_backward(float g, float y, const sum_accumulator& total, int budget) {
  const auto in = [&]<class A>() {
    return exact_log_softmax_backward<A>(repdl::dtype::f32, g, y,
                                         arithmetic<exact_form<A>>::of_limbs(limbs_of_sum<8>(total)));
  };
  return {decide_by_levels([&]<int L>() { return in.template operator()<ball<L>>(); }, budget),
          in.template operator()<wide<double>>()};
}
decision softmax_backward(float g, float y, const dot_accumulator& dot) {
  const auto in = [&]<class A>() {
    return exact_softmax_backward(repdl::dtype::f32, g, y, arithmetic<A>::of_limbs(limbs_of_sum<16>(dot)));
  };
  return {in.template operator()<ball<16>>(), in.template operator()<wide<double>>()};
}

TEST_CASE("gradients from saved outputs") {
  const std::int64_t before[2] = {compared, decided_by_wide};
  std::mt19937_64 engine(13);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 4000; ++round) {
    const int kind = round % 5;
    const std::size_t n = 1 + engine() % 4;
    std::vector<float> g(n);
    for (auto& e : g) {
      e = kind == 0   ? any_finite(engine)
          : kind == 1 ? static_cast<float>(static_cast<int>(engine() % 5) - 2)
                      : normal(engine);
    }
    if (kind == 2 && n > 1) g[1] = -g[0];
    float y = -std::fabs(normal(engine)) * (kind == 3 ? 100.0f : 1.0f);
    if (round % 7 == 0) y = any_finite(engine);
    if (round % 11 == 0) y = 0;
    if (round % 13 == 0) y = static_cast<float>(static_cast<int>(engine() % 5) - 2) * 0x1p-149f;
    if (round % 17 == 0) y = -inf;
    sum_accumulator total;
    real sum(600);
    real factor(600);
    mpfr_set_zero(sum.v, 1);
    for (const float e : g) {
      total.add(e);
      mpfr_add_d(sum.v, sum.v, static_cast<double>(e), MPFR_RNDN);
    }
    const float bounded = std::max(std::min(y, 2e4f), -2e4f);  // beyond, only the sign counts
    real product(1500);
    mpfr_set_flt(product.v, y == -inf ? y : bounded, MPFR_RNDN);
    mpfr_exp(product.v, product.v, MPFR_RNDN);
    mpfr_mul(product.v, product.v, sum.v, MPFR_RNDN);
    mpfr_set_flt(factor.v, g[0], MPFR_RNDN);
    const float expected = rounded([&](mpfr_t r) { return mpfr_sub(r, factor.v, product.v, MPFR_RNDN); });
    const bool zero = g[0] == 0 && mpfr_zero_p(product.v) != 0;
    check_value(log_softmax_backward(g[0], y, total, 2048), zero ? 0.0f : expected, "log_softmax_backward", {g[0], y},
                0);

    // softmax_backward: the dot product exactly, one rounding.
    std::vector<float> p(n);
    for (auto& e : p) e = kind == 0 ? any_finite(engine) : std::fabs(normal(engine));
    if (kind == 1) p[0] = 1;
    if (kind == 4) p[0] = -0.0f;
    dot_accumulator dot;
    real exact(1200);
    mpfr_set_flt(exact.v, g[0], MPFR_RNDN);
    for (std::size_t j = 0; j < n; ++j) {
      dot.add_product(g[j], p[j]);
      real t(60);
      mpfr_set_flt(t.v, g[j], MPFR_RNDN);
      mpfr_mul_d(t.v, t.v, static_cast<double>(p[j]), MPFR_RNDN);
      mpfr_sub(exact.v, exact.v, t.v, MPFR_RNDN);
    }
    const bool zero_difference = mpfr_zero_p(exact.v) != 0;
    if (zero_difference) mpfr_set_zero(exact.v, 1);
    const float want = rounded([&](mpfr_t r) { return mpfr_mul_d(r, exact.v, static_cast<double>(p[0]), MPFR_RNDN); });
    check_value(softmax_backward(g[0], p[0], dot), want, "softmax_backward", {g[0], p[0]}, 0);
  }
  CHECK((decided_by_wide - before[1]) * 100 > (compared - before[0]) * 95);
  sum_accumulator one;
  one.add(1.0f);  // near-ties to g: only the sign of e^y counts
  CHECK(log_softmax_backward(0.0f, -1e30f, one, 256).exact.value == 0.0f);
  CHECK(std::signbit(log_softmax_backward(0.0f, -1e30f, one, 256).exact.value));
  CHECK(same(log_softmax_backward(1.0f, 1e30f, one, 256).exact.value, -inf));
}

template <class T>
void check_normal(std::mt19937_64& engine, int count) {
  const auto pattern = [](auto v) {
    if constexpr (sizeof(v) == 2) {
      return static_cast<std::uint64_t>(v.bits);
    } else {
      return static_cast<std::uint64_t>(bits_of(v));
    }
  };
  for (int i = 0; i < count; ++i) {
    const int bits = i % 2 == 0 ? 32 : 64;
    std::uint64_t a1 = engine() >> (64 - bits);
    std::uint64_t a2 = engine() >> (64 - bits);
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - bits);
    if (i % 5 == 0) a1 = ones - (engine() & 3);
    if (i % 7 == 0) a1 = engine() & 3;
    if (i % 3 == 0) a2 = ((engine() & 7) << (bits - 3)) + (engine() & 3) - (engine() & 3);
    a2 &= ones;
    const double means[] = {0,        -0.0,    1,          0x1.000001p0,  -0x1.004p0, 0x1.000003p0,
                            0x1.01p0, 0x1p200, 0x1.8p-200, 0x1.00000080p3};
    const double devs[] = {1, 1, 1, 0, 0x1p-200, 0x1.8p200, 3, -1.5, 0x1p-150};
    const double mean = means[engine() % 10];
    const double dev = devs[engine() % 9];
    for (const bool sine : {false, true}) {
      real z(700);
      real t(700);
      mpfr_set_uj_2exp(z.v, a1, -bits, MPFR_RNDN);
      mpfr_set_ui_2exp(t.v, 1, -bits, MPFR_RNDN);
      mpfr_add(z.v, z.v, t.v, MPFR_RNDN);
      mpfr_log(z.v, z.v, MPFR_RNDN);
      mpfr_mul_si(z.v, z.v, -2, MPFR_RNDN);
      mpfr_sqrt(z.v, z.v, MPFR_RNDN);
      const std::uint64_t turn = a2 << (64 - bits);
      mpfr_const_pi(t.v, MPFR_RNDN);
      real w(64);
      mpfr_set_uj_2exp(w.v, turn, -63, MPFR_RNDN);
      mpfr_mul(t.v, t.v, w.v, MPFR_RNDN);
      (sine ? mpfr_sin : mpfr_cos)(t.v, t.v, MPFR_RNDN);
      if (turn << 2 == 0) mpfr_rint(t.v, t.v, MPFR_RNDN);
      mpfr_mul(z.v, z.v, t.v, MPFR_RNDN);
      mpfr_mul_d(z.v, z.v, dev, MPFR_RNDN);
      real m(53);
      mpfr_set_d(m.v, mean, MPFR_RNDN);
      if (mpfr_zero_p(z.v) != 0) mpfr_set_zero(z.v, 1);
      // One rounding into T, through a precision so wide that odd rounding keeps a hidden r: to 2000 bits, exact here.
      real sum(2000);
      REQUIRE(mpfr_add(sum.v, m.v, z.v, MPFR_RNDN) == 0);
      using F = format<T>;
      real y(F::precision);
      const int ternary = mpfr_set(y.v, sum.v, MPFR_RNDN);
      const mpfr_exp_t low = mpfr_get_emin();
      const mpfr_exp_t high = mpfr_get_emax();
      mpfr_set_emin(F::emin - F::precision + 2);
      mpfr_set_emax(F::emax + 1);
      mpfr_subnormalize(y.v, mpfr_check_range(y.v, ternary, MPFR_RNDN), MPFR_RNDN);
      mpfr_set_emin(low);
      mpfr_set_emax(high);
      const bool zero = mpfr_zero_p(sum.v) != 0;
      const T expected = narrow<T>(zero ? 0.0 : mpfr_get_d(y.v, MPFR_RNDN));
      const decided_value<T> d = normal_exact<T>(a1, a2, bits, sine, mean, dev, 256);
      CAPTURE(a1);
      CAPTURE(a2);
      CAPTURE(mean);
      CAPTURE(dev);
      CHECK(d.decided);
      CHECK(pattern(d.value) == pattern(expected));
    }
  }
}

TEST_CASE("normal") {
  std::mt19937_64 engine(17);
  check_normal<repdl::f16>(engine, 400);
  check_normal<repdl::bf16>(engine, 400);
  check_normal<float>(engine, 800);
  check_normal<double>(engine, 800);
  // 1 + 2^-24 is a midpoint: the sign of a hidden term decides.
  CHECK(normal_exact<float>(5, 5, 32, false, 0x1.000001p0, 0x1p-200, 256).value == 0x1.000002p0f);
  CHECK(normal_exact<float>(5, 5, 32, false, 0x1.000001p0, -0x1p-200, 256).value == 1.0f);
  CHECK(bits_of(normal_exact<float>(0xffffffff, 5, 32, false, -0.0, 1, 0).value) == 0);
  CHECK_FALSE(normal_exact<float>(5, 5, 32, false, 0, 1, 0).decided);
}

}  // namespace
