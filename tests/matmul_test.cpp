// matmul on the CPU against an exact oracle (GMP integers, one rounding by MPFR) and against the naive fmaf loop: every
// instruction set, thread count, forced tier, layout and adversarial class. Bits are compared, never values.
#include <doctest/doctest.h>
#include <gmp.h>
#include <mpfr.h>
#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/isa.hpp"
#include "backends/cpu/matmul.hpp"
#include "librepdl/plan/plans.hpp"

namespace {

using repdl::tier;
using repdl::cpu::counters;
using repdl::cpu::instruction_set;
using repdl::plan::accumulate_kind;
using repdl::plan::matmul_plan;
using random_engine = std::mt19937_64;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float from_bits(std::uint32_t b) { return std::bit_cast<float>(b); }
const float canonical_nan = from_bits(0x7fc00000u);
constexpr float inf = std::numeric_limits<float>::infinity();

// ------------------------------------------------------------------------------------------------------------ oracle

// The exact sum in units of 2^-298, and what is not finite in it (contract, section 3).
class exact_sum {
 public:
  exact_sum() {
    mpz_init(sum_);
    mpz_init(term_);
  }
  ~exact_sum() {
    mpz_clear(sum_);
    mpz_clear(term_);
  }
  exact_sum(const exact_sum&) = delete;
  exact_sum& operator=(const exact_sum&) = delete;

  void add_product(float a, float b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return add_special(a * b);
    if (a == 0 || b == 0) return;
    const auto [ma, ea] = parts(a);
    const auto [mb, eb] = parts(b);
    mpz_set_si(term_, ma * mb);
    mpz_mul_2exp(term_, term_, static_cast<mp_bitcnt_t>(ea + eb + 298));
    mpz_add(sum_, sum_, term_);
  }
  void add(float c) { add_product(c, 1.0f); }

  float rounded() {
    if (nan_ || (plus_ && minus_)) return canonical_nan;
    if (plus_ || minus_) return plus_ ? inf : -inf;
    if (mpz_sgn(sum_) == 0) return 0.0f;
    const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_t x;
    mpfr_init2(x, 24);
    const int inexact = mpfr_set_z_2exp(x, sum_, -298, MPFR_RNDN);
    mpfr_subnormalize(x, inexact, MPFR_RNDN);
    const float r = mpfr_get_flt(x, MPFR_RNDN);
    mpfr_clear(x);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    return r;
  }

 private:
  struct scaled {
    long significand;
    int exponent;
  };
  static scaled parts(float x) {
    int e = 0;
    const float f = std::frexp(x, &e);
    // 24 bits, but never below 2^-149, the unit of the subnormals.
    const int shift = std::min(24, e + 149);
    return {static_cast<long>(std::ldexp(f, shift)), e - shift};
  }
  void add_special(float t) {
    nan_ |= std::isnan(t);
    plus_ |= t == inf;
    minus_ |= t == -inf;
  }

  mpz_t sum_, term_;
  bool nan_ = false, plus_ = false, minus_ = false;
};

// ---------------------------------------------------------------------------------------------------------- matrices

// A matrix in a buffer of its own, at strides of its own.
struct matrix {
  std::int64_t batches = 0, rows = 0, cols = 0;
  std::int64_t batch = 0, row = 0, col = 0, origin = 0;
  std::vector<float> buffer;

  float& at(std::int64_t b, std::int64_t i, std::int64_t j) {
    return buffer[static_cast<std::size_t>(origin + b * batch + i * row + j * col)];
  }
  float at(std::int64_t b, std::int64_t i, std::int64_t j) const { return const_cast<matrix*>(this)->at(b, i, j); }
};

enum class layout { row_major, transposed, padded, strided, reversed, one_row, one_column, scalar };
constexpr layout every_layout[] = {layout::row_major, layout::transposed, layout::padded,     layout::strided,
                                   layout::reversed,  layout::one_row,    layout::one_column, layout::scalar};
constexpr int output_layouts = 5;  // the first ones: no element twice

matrix make(std::int64_t batches, std::int64_t rows, std::int64_t cols, layout how, bool shared, bool misaligned) {
  matrix m;
  m.batches = batches;
  m.rows = rows;
  m.cols = cols;
  switch (how) {
    case layout::row_major: m.row = cols, m.col = 1; break;
    case layout::transposed: m.row = 1, m.col = rows; break;
    case layout::padded: m.row = cols + 3, m.col = 1; break;
    case layout::strided: m.row = 2 * cols + 1, m.col = 2; break;
    case layout::reversed: m.row = -cols, m.col = -1; break;
    case layout::one_row: m.row = 0, m.col = 1; break;
    case layout::one_column: m.row = 1, m.col = 0; break;
    case layout::scalar: m.row = 0, m.col = 0; break;
  }
  const std::int64_t span = std::max<std::int64_t>(0, rows - 1) * std::abs(m.row) +
                            std::max<std::int64_t>(0, cols - 1) * std::abs(m.col) + 1;
  m.batch = shared ? 0 : span;
  m.origin = (misaligned ? 1 : 0) + (how == layout::reversed ? span - 1 : 0);
  m.buffer.assign(static_cast<std::size_t>(span * (shared ? 1 : batches) + 2), from_bits(0xdeadbeefu));
  return m;
}

// ----------------------------------------------------------------------------------------------------------- classes

enum class kind {
  normal, integers, bf16_values, powers, bit_patterns, wide, cancelling, ties, overflow_border, subnormal, zeros, special,
  sparse, count
};
constexpr const char* kind_names[] = {"normal", "integers", "bf16", "powers", "bit patterns", "wide", "cancelling", "ties",
                                      "overflow border", "subnormal", "zeros", "special", "sparse"};

float any_finite(random_engine& g) {
  for (;;) {
    const float x = from_bits(static_cast<std::uint32_t>(g()));
    if (std::isfinite(x)) return x;
  }
}

int uniform(random_engine& g, int low, int high) {
  return low + static_cast<int>(g() % static_cast<std::uint64_t>(high - low + 1));
}

float element(kind what, random_engine& g) {
  std::normal_distribution<float> normal;
  switch (what) {
    case kind::integers: return static_cast<float>(uniform(g, -50, 50));
    case kind::bf16_values: return from_bits(bits(normal(g)) & 0xffff0000u);
    case kind::powers: return std::ldexp(uniform(g, 0, 1) != 0 ? 1.0f : -1.0f, uniform(g, -20, 20));
    case kind::bit_patterns: return any_finite(g);
    case kind::wide: return std::ldexp(normal(g), uniform(g, -40, 40));
    case kind::subnormal:
      return uniform(g, 0, 3) == 0 ? from_bits(static_cast<std::uint32_t>(g()) & 0x807fffffu)
                                   : std::ldexp(normal(g), uniform(g, -78, -70));
    case kind::zeros: return uniform(g, 0, 9) == 0 ? normal(g) : uniform(g, 0, 1) != 0 ? 0.0f : -0.0f;
    case kind::special: {
      const float odd[] = {inf, -inf, from_bits(0x7f800001u), from_bits(0xffc12345u), 0.0f, -0.0f};
      return uniform(g, 0, 99) < 2 ? odd[uniform(g, 0, 5)] : normal(g);
    }
    case kind::sparse: return uniform(g, 0, 3) != 0 ? 0.0f : normal(g);
    default: return normal(g);
  }
}

// Fills a (m x k) and b (k x n). The crafted classes use one pair of vectors u, v with a chosen u.v, scaled by powers of
// two per row and per column, so that every output meets the case; a last term, of its own in each column, moves some off
// it by next to nothing.
void fill(kind what, matrix& a, matrix& b, std::int64_t k, random_engine& g) {
  for (std::int64_t batch = 0; batch < a.batches; ++batch) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t x = 0; x < k; ++x) a.at(batch, i, x) = element(what, g);
    for (std::int64_t x = 0; x < k; ++x)
      for (std::int64_t j = 0; j < b.cols; ++j) b.at(batch, x, j) = element(what, g);
    if (what != kind::cancelling && what != kind::ties && what != kind::overflow_border) continue;

    std::vector<float> u(static_cast<std::size_t>(k)), v(static_cast<std::size_t>(k));
    std::size_t at = 0;
    const auto put = [&](float x, float y) {
      if (at < u.size()) u[at] = x, v[at++] = y;
    };
    if (what == kind::ties) {
      const auto odd = static_cast<float>((g() % (1u << 23)) | (1u << 23));  // 24 bits, and a half behind them
      put(odd, 1.0f);
      put(0.5f, 1.0f);
    }
    if (what == kind::overflow_border) {
      put(0x1.fffffep127f, 1.0f);  // the largest number, and half an ulp: the tie that goes to infinity
      put(0x1p103f, 1.0f);
    }
    const std::size_t tail = u.size() - (u.size() > 2 ? 1 : 0);
    while (at + 1 < tail) {
      const float x = element(kind::wide, g), y = element(kind::wide, g);
      put(x, y);
      put(uniform(g, 0, 1) != 0 ? -x : x, 0);
      v[at - 1] = u[at - 1] == x ? -y : y;
    }
    std::vector<std::size_t> order(u.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(tail), g);
    const bool border = what == kind::overflow_border;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const float scale = std::ldexp(uniform(g, 0, 1) != 0 ? 1.0f : -1.0f, border ? 0 : uniform(g, -3, 3));
      for (std::int64_t x = 0; x < k; ++x) {
        const std::size_t from = order[static_cast<std::size_t>(x)];
        a.at(batch, i, x) = from >= tail ? 1.0f : scale * u[from];
      }
    }
    for (std::int64_t j = 0; j < b.cols; ++j) {
      const float scale = std::ldexp(1.0f, border ? 0 : uniform(g, -3, 3));
      for (std::int64_t x = 0; x < k; ++x) {
        const std::size_t from = order[static_cast<std::size_t>(x)];
        const float residue = uniform(g, 0, 2) != 0 ? 0.0f : std::ldexp(uniform(g, 0, 1) != 0 ? 1.0f : -1.0f, uniform(g, -149, -20));
        b.at(batch, x, j) = from >= tail ? residue : scale * v[from];
      }
    }
  }
}

// -------------------------------------------------------------------------------------------------------------- runs

struct problem {
  matrix a, b, bias, out;
  bool has_bias = false;
  std::int64_t batches = 1, m = 0, n = 0, k = 0;
};

matmul_plan plan_of(problem& p, accumulate_kind how) {
  matmul_plan q{};
  q.accumulate = how;
  q.batch_rank = p.batches > 1 ? 1 : 0;
  q.batches = p.batches;
  q.batch_shape[0] = p.batches;
  q.m = p.m, q.n = p.n, q.k = p.k;
  const auto operand = [](const matrix& x) {
    return matmul_plan::matrix{x.buffer.data() + x.origin, {x.batch}, x.row, x.col};
  };
  q.a = operand(p.a);
  q.b = operand(p.b);
  if (p.has_bias) q.bias = operand(p.bias);
  q.out = p.out.buffer.data() + p.out.origin;
  q.out_batch_stride[0] = p.out.batch;
  q.out_row = p.out.row, q.out_col = p.out.col;
  return q;
}

struct workspace {
  explicit workspace(std::size_t bytes) : size((bytes + 255) / 256 * 256), data(std::aligned_alloc(256, size + 256)) {
    std::memset(data, 0xff, size + 256);  // NaN everywhere: nothing may be read before it is written
  }
  ~workspace() { std::free(data); }
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;
  bool overrun(std::size_t bytes) const {
    const auto* p = static_cast<const unsigned char*>(data);
    return std::any_of(p + bytes, p + size + 256, [](unsigned char c) { return c != 0xff; });
  }
  std::size_t size;
  void* data;
};

void run(const matmul_plan& plan, const instruction_set& isa, int threads, tier first, counters& counted) {
  repdl::dispatch::launch launch{nullptr, 0, threads, nullptr, first};
  const std::size_t bytes = repdl::cpu::matmul_workspace(plan, launch, *isa.matmul);
  const workspace w(bytes);
  launch.workspace = w.data;
  launch.bytes = bytes;
  repdl::cpu::run_matmul(plan, launch, *isa.matmul, counted);
  CHECK_FALSE(w.overrun(bytes));
}

std::int64_t checked_exact = 0, checked_chain = 0, distinct_exact = 0;

struct expected {
  std::vector<float> exact, chain;
};

expected oracle(const problem& p) {
  expected e;
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        exact_sum s;
        float chain = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          s.add_product(p.a.at(batch, i, k), p.b.at(batch, k, j));
          chain = std::fmaf(p.a.at(batch, i, k), p.b.at(batch, k, j), chain);
        }
        if (p.has_bias) {
          s.add(p.bias.at(batch, i, j));
          chain += p.bias.at(batch, i, j);
        }
        e.exact.push_back(s.rounded());
        e.chain.push_back(std::isnan(chain) ? canonical_nan : chain);
      }
    }
  }
  distinct_exact += static_cast<std::int64_t>(e.exact.size());
  return e;
}

// Counts wrong outputs and elements of the buffer around them that changed.
std::int64_t mismatches(const problem& p, const std::vector<float>& want) {
  std::int64_t bad = 0;
  std::vector<bool> ours(p.out.buffer.size(), false);
  std::size_t at = 0;
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        ours[static_cast<std::size_t>(p.out.origin + batch * p.out.batch + i * p.out.row + j * p.out.col)] = true;
        bad += bits(p.out.at(batch, i, j)) != bits(want[at++]);
      }
    }
  }
  for (std::size_t i = 0; i < ours.size(); ++i) bad += !ours[i] && bits(p.out.buffer[i]) != 0xdeadbeefu;
  return bad;
}

struct totals {
  std::int64_t elements[4] = {};
};

totals check(problem& p, const std::string& what) {
  const expected want = oracle(p);
  const auto outputs = static_cast<std::int64_t>(want.exact.size());
  totals seen;
  for (const instruction_set& isa : repdl::cpu::all_instruction_sets()) {
    if (!isa.available()) continue;
    for (const int threads : {1, 2, 7}) {
      for (const tier first : {tier::proved, tier::double_double, tier::exact}) {
        // A sum over a long k costs the forced exact tier most; one thread count says enough.
        if (first == tier::exact && threads == 7) continue;
        INFO(what, " isa ", isa.name, " threads ", threads, " first tier ", static_cast<int>(first), " shape ", p.batches,
             "x", p.m, "x", p.n, "x", p.k);
        std::fill(p.out.buffer.begin(), p.out.buffer.end(), from_bits(0xdeadbeefu));
        counters counted;
        run(plan_of(p, accumulate_kind::exact), isa, threads, first, counted);
        CHECK(mismatches(p, want.exact) == 0);
        checked_exact += outputs;
        std::int64_t total = 0;
        for (int t = 0; t < 4; ++t) {
          total += counted.elements[t];
          if (t < static_cast<int>(first)) CHECK(counted.elements[t] == 0);
          if (first == tier::proved && threads == 1) seen.elements[t] += counted.elements[t];
        }
        CHECK(total == outputs);
      }
      INFO(what, " fma_chain isa ", isa.name, " threads ", threads, " shape ", p.batches, "x", p.m, "x", p.n, "x", p.k);
      std::fill(p.out.buffer.begin(), p.out.buffer.end(), from_bits(0xdeadbeefu));
      counters counted;
      run(plan_of(p, accumulate_kind::fma_chain), isa, threads, tier::proved, counted);
      CHECK(mismatches(p, want.chain) == 0);
      CHECK(counted.elements[0] == outputs);
      checked_chain += outputs;
    }
  }
  return seen;
}

struct layouts {
  layout a = layout::row_major, b = layout::row_major, bias = layout::row_major, out = layout::row_major;
  bool shared_a = false, shared_b = false, shared_bias = false, misaligned = false;
};

problem make_problem(kind what, std::int64_t batches, std::int64_t m, std::int64_t n, std::int64_t k, bool bias,
                     const layouts& l, random_engine& g) {
  problem p;
  p.batches = batches, p.m = m, p.n = n, p.k = k;
  p.has_bias = bias;
  p.a = make(batches, m, k, l.a, l.shared_a, l.misaligned);
  p.b = make(batches, k, n, l.b, l.shared_b, l.misaligned);
  p.bias = make(batches, m, n, l.bias, l.shared_bias, l.misaligned);
  p.out = make(batches, m, n, l.out, false, l.misaligned);
  fill(what, p.a, p.b, k, g);
  for (std::int64_t batch = 0; batch < batches; ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) p.bias.at(batch, i, j) = element(what, g);
  return p;
}

}  // namespace

TEST_CASE("matmul: every class, shape and instruction set against GMP and fmaf") {
  random_engine g(1);
  constexpr std::int64_t shapes[][3] = {{1, 1, 0},    {1, 1, 1},   {1, 1, 2},    {3, 2, 0},     {2, 3, 1},   {5, 7, 2},
                                        {7, 5, 3},    {8, 24, 16}, {9, 25, 33},  {17, 49, 64},  {1, 50, 130}, {50, 1, 130},
                                        {3, 100, 40}, {100, 3, 40}, {16, 16, 385}, {6, 11, 770}, {4, 48, 5},  {33, 31, 17}};
  for (int what = 0; what < static_cast<int>(kind::count); ++what) {
    totals sum;
    for (const auto& s : shapes) {
      for (const bool bias : {false, true}) {
        if (bias && s[0] * s[1] * s[2] > 20000) continue;
        problem p = make_problem(static_cast<kind>(what), 1, s[0], s[1], s[2], bias, {}, g);
        const totals t = check(p, kind_names[what]);
        for (int i = 0; i < 4; ++i) sum.elements[i] += t.elements[i];
      }
    }
    MESSAGE(std::string(kind_names[what]), ": binary64 ", sum.elements[1], ", double-double ", sum.elements[2], ", exact ",
            sum.elements[3]);
  }
}

TEST_CASE("matmul: layouts, batches and broadcasting") {
  random_engine g(2);
  for (int round = 0; round < 260; ++round) {
    layouts l;
    l.a = every_layout[uniform(g, 0, 7)];
    l.b = every_layout[uniform(g, 0, 7)];
    l.bias = every_layout[uniform(g, 0, 7)];
    l.out = every_layout[uniform(g, 0, output_layouts - 1)];
    l.shared_a = uniform(g, 0, 2) == 0;
    l.shared_b = uniform(g, 0, 2) == 0;
    l.shared_bias = uniform(g, 0, 2) == 0;
    l.misaligned = uniform(g, 0, 1) != 0;
    const auto what = static_cast<kind>(uniform(g, 0, static_cast<int>(kind::count) - 1));
    problem p = make_problem(what, uniform(g, 1, 4), uniform(g, 1, 20), uniform(g, 1, 60), uniform(g, 0, 40),
                             uniform(g, 0, 1) != 0, l, g);
    check(p, kind_names[static_cast<int>(what)]);
  }
}

TEST_CASE("matmul: many blocks and threads") {
  random_engine g(3);
  for (const kind what : {kind::normal, kind::special, kind::cancelling}) {
    problem p = make_problem(what, 1, 301, 65, 40, true, {}, g);
    check(p, kind_names[static_cast<int>(what)]);
    problem q = make_problem(what, 3, 70, 61, 50, false, {layout::transposed, layout::transposed}, g);
    check(q, kind_names[static_cast<int>(what)]);
  }
  // More columns than one block has.
  problem wide = make_problem(kind::normal, 1, 9, 2500, 4, false, {}, g);
  check(wide, "wide");
}

TEST_CASE("matmul: long k") {
  random_engine g(4);
  for (const kind what : {kind::normal, kind::bf16_values, kind::bit_patterns, kind::cancelling, kind::ties}) {
    problem p = make_problem(what, 1, 2, 3, 100000, what == kind::ties, {}, g);
    check(p, kind_names[static_cast<int>(what)]);
  }
}

// With k this long the packed form of b exceeds the budget, and columns are packed a few panels at a time. The data are
// integers: both accumulations are exact.
TEST_CASE("matmul: columns packed in several goes") {
  random_engine g(5);
  const std::int64_t m = 50, n = 60, k = 400000;
  std::vector<float> a(static_cast<std::size_t>(k + m)), b(static_cast<std::size_t>(k + n));
  for (float& x : a) x = static_cast<float>(uniform(g, -2, 2));
  for (float& x : b) x = static_cast<float>(uniform(g, -2, 2));
  std::vector<float> out(static_cast<std::size_t>(m * n));
  matmul_plan q{};
  q.batches = 1;
  q.m = m, q.n = n, q.k = k;
  q.a = {a.data(), {}, 1, 1};  // row i is a[i], a[i + 1], ...: overlapping rows keep the test small
  q.b = {b.data(), {}, 1, 1};
  q.out = out.data();
  q.out_row = n, q.out_col = 1;
  std::vector<float> want;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;  // |sum| < 2^24 here: exact
      for (std::int64_t x = 0; x < k; ++x) sum += a[static_cast<std::size_t>(i + x)] * b[static_cast<std::size_t>(j + x)];
      want.push_back(sum);
    }
  }
  for (const instruction_set& isa : repdl::cpu::all_instruction_sets()) {
    if (!isa.available() || std::string(isa.name) == "baseline") continue;
    for (const accumulate_kind how : {accumulate_kind::exact, accumulate_kind::fma_chain}) {
      q.accumulate = how;
      counters counted;
      run(q, isa, 2, tier::proved, counted);
      std::int64_t bad = 0;
      for (std::size_t i = 0; i < out.size(); ++i) bad += bits(out[i]) != bits(want[i]);
      CHECK(bad == 0);
      CHECK(counted.elements[2] + counted.elements[3] == 0);
    }
  }
}

TEST_CASE("matmul: narrow lattices do not escalate") {
  random_engine g(6);
  for (const kind what : {kind::integers, kind::bf16_values, kind::powers}) {
    problem p = make_problem(what, 1, 128, 96, 1024, false, {}, g);
    for (const instruction_set& isa : repdl::cpu::all_instruction_sets()) {
      if (!isa.available()) continue;
      counters counted;
      run(plan_of(p, accumulate_kind::exact), isa, 1, tier::proved, counted);
      INFO(kind_names[static_cast<int>(what)], " ", isa.name);
      // Wide-ranging powers of two may: their bound says so.
      CHECK(counted.elements[2] + counted.elements[3] <= (what == kind::integers ? 0 : 128 * 96 / 1000));
    }
  }
}

TEST_CASE("matmul: the caller's floating-point environment changes nothing and is kept") {
  random_engine g(7);
  for (const kind what : {kind::normal, kind::subnormal}) {
    problem p = make_problem(what, 1, 150, 70, 30, true, {}, g);
    const expected want = oracle(p);
    for (const instruction_set& isa : repdl::cpu::all_instruction_sets()) {
      if (!isa.available()) continue;
      for (const accumulate_kind how : {accumulate_kind::exact, accumulate_kind::fma_chain}) {
        for (const int threads : {1, 2}) {
          counters counted;
          const unsigned before = _mm_getcsr();
          const unsigned hostile = before | 0x8040u | 0x6000u;  // FTZ, DAZ, toward zero
          _mm_setcsr(hostile);
          run(plan_of(p, how), isa, threads, tier::proved, counted);
          const unsigned after = _mm_getcsr();
          _mm_setcsr(before);
          CHECK((after & 0xffc0u) == (hostile & 0xffc0u));
          CHECK(mismatches(p, how == accumulate_kind::exact ? want.exact : want.chain) == 0);
        }
      }
    }
  }
}

TEST_CASE("matmul: outputs checked") {
  MESSAGE("distinct outputs ", distinct_exact, ", exact runs ", checked_exact, ", fma_chain runs ", checked_chain);
}
