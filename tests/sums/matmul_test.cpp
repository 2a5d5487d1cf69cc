// matmul on the CPU against an exact oracle (GMP integers, one rounding by MPFR) and against the naive fmaf loop: every
// instruction set, thread count, forced tier, layout and adversarial class. Bits are compared, never values.
#include "backends/cpu/product/matmul.hpp"

#include <doctest/doctest.h>
#include <gmp.h>
#include <mpfr.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/core/isa.hpp"
#include "librepdl/librepdl.hpp"
#include "librepdl/plan/plans.hpp"
#include "tests/helpers/matmul_inputs.hpp"

namespace {

using repdl::tier;
using repdl::cpu::counters;
using repdl::cpu::instruction_set;
using repdl::plan::accumulate_kind;
using repdl::plan::product_plan;
using namespace matmul_inputs;

const float canonical_nan = from_bits(0x7fc00000u);

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

// -------------------------------------------------------------------------------------------------------------- runs

struct problem {
  matrix a, b, bias, out;
  bool has_bias = false;
  std::int64_t batches = 1, m = 0, n = 0, k = 0;
};

// Of matrices along one axis each.
product_plan sizes_of(std::int64_t batches, std::int64_t m, std::int64_t n, std::int64_t k, accumulate_kind how) {
  product_plan q{};
  q.accumulate = how;
  q.alpha = q.beta = 1;
  q.batch = {batches > 1 ? 1 : 0, batches, {batches}};
  q.row = {1, m, {m}};
  q.column = {1, n, {n}};
  q.term = {1, k, {k}};
  return q;
}

template <class Memory>
void set(product_plan::operand<Memory>& to, Memory* data, std::int64_t outer, std::int64_t inner,
         std::int64_t batch = 0) {
  to.data = data;
  to.type = repdl::dtype::f32;
  to.batch = {batch};
  to.outer = {outer};
  to.inner = {inner};
}

product_plan plan_of(problem& p, accumulate_kind how) {
  product_plan q = sizes_of(p.batches, p.m, p.n, p.k, how);
  const auto place = [](matrix& x) { return x.buffer.data() + x.origin; };
  set<const void>(q.a, place(p.a), p.a.row, p.a.col, p.a.batch);
  set<const void>(q.b, place(p.b), p.b.col, p.b.row, p.b.batch);
  if (p.has_bias) set<const void>(q.bias, place(p.bias), p.bias.row, p.bias.col, p.bias.batch);
  set<void>(q.out, place(p.out), p.out.row, p.out.col, p.out.batch);
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

void run(const product_plan& plan, const instruction_set& isa, int threads, tier first, counters& counted) {
  repdl::dispatch::stored_task task;
  repdl::cpu::prepare(plan, {{threads, nullptr, first, 2048, nullptr}, isa, counted}, task);
  const std::size_t bytes = task->bytes().value();
  const workspace w(bytes);
  task->run(w.data);
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
        INFO(what, " isa ", isa.name, " threads ", threads, " first tier ", static_cast<int>(first), " shape ",
             p.batches, "x", p.m, "x", p.n, "x", p.k);
        std::fill(p.out.buffer.begin(), p.out.buffer.end(), from_bits(0xdeadbeefu));
        counters counted;
        run(plan_of(p, accumulate_kind::exact), isa, threads, first, counted);
        CHECK(mismatches(p, want.exact) == 0);
        checked_exact += outputs;
        std::int64_t total = 0;
        for (int t = 0; t < 4; ++t) {
          total += counted.elements[t];
          if (t < std::max(static_cast<int>(first), 1)) CHECK(counted.elements[t] == 0);
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

// a and b up to every_layout[last].
layouts any_layouts(random_engine& g, int last) {
  layouts l;
  l.a = every_layout[uniform(g, 0, last)];
  l.b = every_layout[uniform(g, 0, last)];
  l.bias = every_layout[uniform(g, 0, 7)];
  l.out = every_layout[uniform(g, 0, output_layouts - 1)];
  return l;
}

problem make_problem(kind what, std::int64_t batches, std::int64_t m, std::int64_t n, std::int64_t k, bool bias,
                     const layouts& l, random_engine& g) {
  problem p;
  p.batches = batches, p.m = m, p.n = n, p.k = k;
  p.has_bias = bias;
  p.a = make(batches, m, k, l.a, l.shared_a, l.misaligned);
  p.b = make(batches, k, n, l.b, l.shared_b, l.misaligned);
  p.bias = make(batches, m, n, l.bias, l.shared_bias, l.misaligned);
  p.out = make(batches, m, n, l.out, false, l.misaligned);
  fill(what, p.a, p.b, p.bias, k, g);
  return p;
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("matmul: every class, shape and instruction set against GMP and fmaf") {
  random_engine g(1);
  constexpr std::int64_t shapes[][3] = {{1, 1, 0},    {1, 1, 1},    {1, 1, 2},    {3, 2, 0},    {2, 3, 1},
                                        {5, 7, 2},    {7, 5, 3},    {8, 24, 16},  {9, 25, 33},  {17, 49, 64},
                                        {1, 50, 130}, {50, 1, 130}, {3, 100, 40}, {100, 3, 40}, {16, 16, 385},
                                        {6, 11, 770}, {4, 48, 5},   {33, 31, 17}, {4, 7, 200}};
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
    MESSAGE(std::string(kind_names[what]), ": binary64 ", sum.elements[1], ", double-double ", sum.elements[2],
            ", exact ", sum.elements[3]);
    // Infinities and NaN are decided where they are met.
    if (static_cast<kind>(what) == kind::special) CHECK(sum.elements[2] + sum.elements[3] <= 10);
  }
  MESSAGE("distinct outputs ", distinct_exact, ", exact runs ", checked_exact, ", fma_chain runs ", checked_chain);
  CHECK(distinct_exact > 100000);
}

TEST_CASE("matmul: layouts, batches and broadcasting") {
  random_engine g(2);
  for (int round = 0; round < 500; ++round) {
    layouts l = any_layouts(g, 7);
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
  // The same b in every batch: batches become rows where the strides allow it.
  for (const std::int64_t rows : {1, 3}) {
    for (const bool shared_bias : {false, true}) {
      for (const layout down : {layout::row_major, layout::one_row, layout::padded}) {
        layouts l;
        l.shared_b = true;
        l.shared_bias = shared_bias;
        l.bias = down;
        l.a = down == layout::padded ? layout::padded : layout::row_major;
        problem p = make_problem(kind::normal, 5, rows, 30, 20, true, l, g);
        check(p, "shared b");
      }
    }
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

// So few outputs that a packed panel would be mostly padding: dot products, or blocks that pack slices of their own.
TEST_CASE("matmul: few outputs of long sums") {
  random_engine g(8);
  constexpr std::int64_t shapes[][2] = {{1, 1}, {1, 2}, {2, 2}, {4, 1}, {3, 2}, {5, 6}, {1, 10}};
  for (const kind what : {kind::normal, kind::special, kind::bit_patterns, kind::subnormal, kind::cancelling,
                          kind::ties, kind::bias_stagnation}) {
    for (const auto& s : shapes) {
      layouts l = any_layouts(g, 4);
      l.shared_b = uniform(g, 0, 2) == 0;
      problem p = make_problem(what, uniform(g, 1, 2), s[0], s[1], 11000, uniform(g, 0, 1) != 0, l, g);
      check(p, kind_names[static_cast<int>(what)]);
    }
  }
}

TEST_CASE("matmul: workspaces are at most twice the operands, and 1 MiB for each thread") {
  const float x = 1;
  float out[40 * 40];
  for (const instruction_set& isa : repdl::cpu::all_instruction_sets()) {
    if (!isa.available()) continue;
    for (const int threads : {1, 2, 7}) {
      for (const std::int64_t k : {std::int64_t{1} << 13, std::int64_t{1} << 16, std::int64_t{1} << 20,
                                   std::int64_t{1} << 24, std::int64_t{1} << 58}) {
        for (const std::int64_t m : {1, 2, 3, 5, 6, 8, 12, 13, 23, 24, 40}) {
          for (const std::int64_t n : {1, 2, 3, 5, 6, 8, 12, 13, 23, 24, 40}) {
            if (k >> 58 != 0 && m * n > 1) continue;  // operands of 2^62 bytes
            for (const accumulate_kind how : {accumulate_kind::exact, accumulate_kind::fma_chain}) {
              INFO(isa.name, " threads ", threads, " shape ", m, "x", n, "x", k, " ", static_cast<int>(how));
              product_plan q = sizes_of(1, m, n, k, how);
              set<const void>(q.a, &x, 0, 0);  // repeated: nothing runs here
              set<const void>(q.b, &x, 0, 0);
              set<void>(q.out, out, n, 1);
              counters counted;
              repdl::dispatch::stored_task task;
              repdl::cpu::prepare(q, {{threads, nullptr, tier::proved, 2048, nullptr}, isa, counted}, task);
              const auto bytes = task->bytes();
              REQUIRE(bytes.fits());
              const double bound = 8.0 * static_cast<double>(m + n) * static_cast<double>(k) + threads * 0x1p20;
              CHECK(static_cast<double>(bytes.value()) <= bound);
            }
          }
        }
      }
    }
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
  product_plan q = sizes_of(1, m, n, k, accumulate_kind::exact);
  set<const void>(q.a, a.data(), 1, 1);  // row i is a[i], a[i + 1], ...: overlapping rows keep the test small
  set<const void>(q.b, b.data(), 1, 1);
  set<void>(q.out, out.data(), n, 1);
  std::vector<float> want;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;  // |sum| < 2^24 here: exact
      for (std::int64_t x = 0; x < k; ++x)
        sum += a[static_cast<std::size_t>(i + x)] * b[static_cast<std::size_t>(j + x)];
      want.push_back(sum);
    }
  }
  bool seen = false;
  for (const instruction_set& isa : repdl::cpu::all_instruction_sets()) {
    if (!isa.available() || std::string(isa.name) == "baseline") continue;
    seen = true;
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
  if (!seen) MESSAGE("skipped: there is the baseline only, which takes long");
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

// The context guards its caller's thread, `parallel` the workers' (context_impl.hpp, parallel.hpp).
TEST_CASE("matmul: the caller's floating-point environment changes nothing and is kept") {
  random_engine g(7);
  for (const kind what : {kind::normal, kind::subnormal}) {
    problem p = make_problem(what, 1, 150, 70, 30, true, {}, g);
    const expected want = oracle(p);
    const auto view = [](matrix& x, std::int64_t rows, std::int64_t cols) {
      return repdl::tensor_view(x.buffer.data() + x.origin, repdl::dtype::f32, {rows, cols}, {x.row, x.col});
    };
    for (const repdl::isa_info& isa : repdl::instruction_sets()) {
      if (!isa.available) continue;
      for (const accumulate_kind how : {accumulate_kind::exact, accumulate_kind::fma_chain}) {
        for (const int threads : {1, 2}) {
          for (const bool prepared : {false, true}) {
            repdl::context ctx({.threads = threads, .isa = std::string(isa.name)});
            const auto call = [&] {
              matmul(ctx, view(p.a, p.m, p.k), view(p.b, p.k, p.n), view(p.out, p.m, p.n),
                     {.accumulate = how, .bias = view(p.bias, p.m, p.n)});
            };
            std::fill(p.out.buffer.begin(), p.out.buffer.end(), from_bits(0xdeadbeefu));
            const unsigned before = _mm_getcsr();
            const unsigned hostile = before | 0x8040u | 0x6000u;  // FTZ, DAZ, toward zero
            _mm_setcsr(hostile);
            prepared ? ctx.prepare(call).run() : call();
            const unsigned after = _mm_getcsr();
            _mm_setcsr(before);
            CHECK((after & 0xffc0u) == (hostile & 0xffc0u));
            CHECK(mismatches(p, how == accumulate_kind::exact ? want.exact : want.chain) == 0);
          }
        }
      }
    }
  }
}

TEST_SUITE_END();
