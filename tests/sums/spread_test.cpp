// var, stddev and var_mean of binary64: results lie between the middles beside them, which exact fractions say, in every way that must
// not matter (instruction set, threads, first tier, layout).
#include "librepdl/ops/sums/spread.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "librepdl/librepdl.hpp"
#include "reference/covering.hpp"
#include "tests/helpers/settings.hpp"

using namespace repdl;

namespace {

using doubles = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity(), quiet = std::numeric_limits<double>::quiet_NaN();
constexpr double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

mpq_class exact(double x) {
  int e = 0;
  mpq_class q(mpz_class(std::ldexp(std::frexp(x, &e), 53)));
  e -= 53;
  if (e >= 0) q <<= static_cast<mp_bitcnt_t>(e);
  if (e < 0) q >>= static_cast<mp_bitcnt_t>(-e);
  return q;
}

// Whether x is the nearest number to q >= 0, or of its root; ties to even.
bool is_rounded(double x, const mpq_class& q, bool root) {
  if (std::isnan(x) || std::signbit(x)) return false;
  const std::uint64_t b = bits_of(x);
  const mpq_class beyond = exact(std::ldexp(1.0, 1023)) * 2;  // what would follow the largest number
  const auto value = [&](std::uint64_t pattern) {
    const auto v = std::bit_cast<double>(pattern);
    return std::isinf(v) ? beyond : exact(v);
  };
  const auto middle = [&](std::uint64_t below) {
    const mpq_class m = (value(below) + value(below + 1)) / 2;
    return root ? mpq_class(m * m) : m;
  };
  const int under = b == 0 ? 1 : cmp(q, middle(b - 1)), over = std::isinf(x) ? -1 : cmp(q, middle(b));
  return (under > 0 || (under == 0 && b % 2 == 0)) && (over < 0 || (over == 0 && b % 2 == 0));
}

// Nothing where results are NaN.
struct row_values {
  bool is_number;
  mpq_class variance;
};
row_values values_of(const doubles& x, double correction) {
  const mpq_class f = mpq_class(static_cast<long>(x.size())) - exact(correction);
  mpq_class sum, squares;
  for (const double v : x) {
    if (!std::isfinite(v)) return {false, {}};
    sum += exact(v);
    squares += exact(v) * exact(v);
  }
  if (x.empty() || f <= 0) return {false, {}};
  return {true, (squares - sum * sum / static_cast<long>(x.size())) / f};
}

constexpr int kinds = 13;
doubles make(int kind, std::size_t n, std::mt19937_64& g) {
  std::normal_distribution<double> normal;
  const auto small = [&](int m) { return static_cast<double>(static_cast<int>(g() % static_cast<unsigned>(m))); };
  doubles x(n);
  for (double& v : x) {
    switch (kind) {
      case 0:
        v = normal(g);
        break;
      case 1:  // far from 0: all but the last bits cancel
        v = 0x1p60 + 256 * small(5);
        break;
      case 2:
        v = 1e9 + normal(g);
        break;
      case 3:
        v = 0.1;
        break;
      case 4:  // equal but for one last bit
        v = 0.1 + (&v == &x[n / 2] ? 0x1p-56 : 0);
        break;
      case 5:
        v = std::ldexp(normal(g), static_cast<int>(g() % 2000) - 1000);
        break;
      case 6:  // results that are subnormal, and roots of subnormal numbers
        v = std::ldexp(normal(g), -530 + static_cast<int>(g() % 8));
        break;
      case 7:
        v = least * (small(9) - 4);
        break;
      case 8:  // about the border of overflow, of the variance and of its root
        v = std::ldexp(normal(g), 510 + static_cast<int>(g() % 3));
        break;
      case 9:
        v = (g() & 1) != 0 ? most : -most;
        break;
      case 10:  // ties
        v = (g() & 1) != 0 ? 0 : 0x1p27 - 2 * small(4) - 1;
        break;
      case 11:
        v = small(3) - 1;
        break;
      default:  // the first one far away
        v = normal(g) + (&v == x.data() ? 0x1p40 : 0);
    }
  }
  return x;
}

// x: rows of n.
struct call_result {
  doubles var, root, mean;
};
call_result run(context& ctx, const const_tensor_view& x, std::size_t rows, const var_options& o) {
  call_result r{doubles(rows, 7), doubles(rows, 7), doubles(rows, 7)};
  doubles again(rows, 7);
  var_mean(ctx, x, tensor_view(r.var), tensor_view(r.mean), o);
  stddev(ctx, x, tensor_view(r.root), o);
  var(ctx, x, tensor_view(again), o);
  for (std::size_t i = 0; i < rows; ++i) CHECK(bits_of(again[i]) == bits_of(r.var[i]));
  return r;
}
void check(const call_result& r, std::size_t i, const doubles& x, double correction) {
  const row_values want = values_of(x, correction);
  if (!want.is_number) {
    CHECK(bits_of(r.var[i]) == 0x7ff8000000000000);
    CHECK(bits_of(r.root[i]) == 0x7ff8000000000000);
    return;
  }
  CHECK(is_rounded(r.var[i], want.variance, false));
  CHECK(is_rounded(r.root[i], want.variance, true));
}

}  // namespace

TEST_CASE("spreads of binary64: exact fractions, every tier, number of threads and layout") {
  const std::vector<tests::setting> settings = tests::every_setting();
  reference::covering some(6);
  std::mt19937_64 g(64);
  statistics decided{};
  for (const std::size_t n : {0, 1, 2, 3, 7, 8, 33, 70, 600, 2050}) {
    for (int kind = 0; kind < kinds; ++kind) {
      const std::size_t rows = n < 100 ? 9 : 2;
      const double some_corrections[] = {1,
                                         0,
                                         0.5,
                                         -3,
                                         static_cast<double>(n) - 0.25,
                                         0x1p-200,
                                         -0x1p200,
                                         0.1,
                                         static_cast<double>(n) * (1 - 0x1p-53)};
      double correction = some_corrections[g() % std::size(some_corrections)];
      if (n == 0 || (correction < 0 && n > 100)) correction = 1;
      std::vector<doubles> x;
      for (std::size_t r = 0; r < rows; ++r) x.push_back(make(kind, n, g));
      if (kind == 0 && n > 2) x[1][g() % n] = (g() & 1) != 0 ? inf : quiet;
      // Rows; columns; every other number of a row, from the last one on, over two axes.
      doubles by_rows, by_columns(rows * n), apart(rows * n * 2);
      for (std::size_t r = 0; r < rows; ++r) {
        by_rows.insert(by_rows.end(), x[r].begin(), x[r].end());
        for (std::size_t i = 0; i < n; ++i) {
          by_columns[i * rows + r] = x[r][i];
          apart[2 * ((r + 1) * n - 1 - i)] = x[r][i];
        }
      }
      const auto size = static_cast<std::int64_t>(n), count = static_cast<std::int64_t>(rows);
      mpq_class sum;
      for (std::size_t s = 0; s < settings.size(); ++s) {
        if (!some.takes(static_cast<int>(s), {kind, n < 100 ? 0 : 1})) continue;
        context& ctx = *settings[s].ctx;
        CAPTURE(n);
        CAPTURE(kind);
        CAPTURE(correction);
        CAPTURE(settings[s].isa);
        CAPTURE(static_cast<int>(settings[s].first));
        ctx.reset_statistics();
        const call_result r = run(ctx, const_tensor_view(by_rows.data(), {count, size}), rows, {1, false, correction});
        for (std::size_t i = 0; i < rows; ++i) check(r, i, x[i], correction);
        doubles means(rows);
        mean(ctx, const_tensor_view(by_rows.data(), {count, size}), tensor_view(means), {1});
        const statistics now = ctx.read_statistics();
        for (int t = 0; t < 4; ++t) decided.elements[t] += now.elements[t];
        const call_result columns =
            run(ctx, const_tensor_view(by_columns.data(), {size, count}), rows, {0, false, correction});
        const double* const last = n == 0 ? apart.data() : apart.data() + 2 * (n - 1);
        const std::int64_t half = n % 2 == 0 ? 2 : 1;
        const const_tensor_view strided(last, dtype::f64, {half, count, size / half},
                                        {-2 * (size / half), 2 * size, -2});
        const call_result others = run(ctx, strided, rows, {{0, 2}, false, correction});
        for (std::size_t i = 0; i < rows; ++i) {
          CHECK(bits_of(means[i]) == bits_of(r.mean[i]));
          for (const call_result* other : {&columns, &others}) {
            CHECK(bits_of(other->var[i]) == bits_of(r.var[i]));
            CHECK(bits_of(other->root[i]) == bits_of(r.root[i]));
            CHECK(bits_of(other->mean[i]) == bits_of(r.mean[i]));
          }
        }
      }
    }
  }
  CHECK(decided.elements[static_cast<int>(tier::double_double)] > 0);
  CHECK(decided.elements[static_cast<int>(tier::exact)] > 0);
}

TEST_CASE("spreads of binary64: many outputs side by side, long rows, numbers that repeat; who decides ordinary ones") {
  std::mt19937_64 g(65);
  std::normal_distribution<double> normal;
  for (const auto& [rows, n] : {std::pair<std::size_t, std::size_t>{700, 9}, {3, 40'000}, {600, 41}}) {
    doubles x(rows * n), turned(rows * n);
    for (double& v : x) v = 1e6 + normal(g);
    for (std::size_t i = 0; i < x.size(); ++i) turned[i % n * rows + i / n] = x[i];
    const auto size = static_cast<std::int64_t>(n), count = static_cast<std::int64_t>(rows);
    call_result first;
    for (const int threads : {1, 4}) {
      for (const std::string& isa : tests::available()) {
        context ctx({.threads = threads, .isa = isa});
        const call_result r = run(ctx, const_tensor_view(x.data(), {count, size}), rows, {1});
        const call_result c = run(ctx, const_tensor_view(turned.data(), {size, count}), rows, {0});
        CHECK(ctx.read_statistics().elements[static_cast<int>(tier::exact)] == 0);
        if (first.var.empty()) {
          first = r;
          for (const std::size_t i : {std::size_t{0}, rows / 2, rows - 1})
            check(r, i,
                  doubles(x.begin() + static_cast<std::ptrdiff_t>(i * n),
                          x.begin() + static_cast<std::ptrdiff_t>((i + 1) * n)),
                  1);
        }
        for (const call_result* other : {&r, &c}) {
          CHECK(other->var == first.var);
          CHECK(other->root == first.root);
          CHECK(other->mean == first.mean);
        }
      }
    }
  }
  // Two numbers, each 10^5 times: n - c has more bits than a double.
  context ctx;
  const doubles pair{0.1, 3};
  double v = 0;
  const std::int64_t times = 100'000;
  const double c = 2 * times * (1 - 0x1p-53);
  var(ctx, const_tensor_view(pair.data(), dtype::f64, {2, times}, {1, 0}), tensor_view(&v, {}), {.correction = c});
  const mpq_class d = exact(3) - exact(0.1), f = mpq_class(2 * times) - exact(c);
  CHECK(is_rounded(v, d * d * times / 2 / f, false));
}

TEST_CASE("spreads of binary64: special values, zeros and ties by their bits") {
  for (const tier first : {tier::proved, tier::exact}) {
    context ctx({.first_tier = first});
    const auto of = [&](const doubles& x, double correction) {
      const call_result r =
          run(ctx, const_tensor_view(x.data(), {static_cast<std::int64_t>(x.size())}), 1, {0, true, correction});
      return std::vector<std::uint64_t>{bits_of(r.var[0]), bits_of(r.root[0]), bits_of(r.mean[0])};
    };
    const auto these = [](double a, double b, double c) {
      return std::vector<std::uint64_t>{bits_of(a), bits_of(b), bits_of(c)};
    };
    const double none = std::bit_cast<double>(0x7ff8000000000000);
    CHECK(of({1, 3}, 1) == these(2, 0x1.6a09e667f3bcdp0, 2));
    CHECK(of({1, 3}, -6) == these(.25, .5, 2));
    CHECK(of({-0.0, -0.0}, 1) == these(0, 0, 0));
    CHECK(of({-0.0, 0}, 0) == these(0, 0, 0));
    CHECK(of({inf, 1, 2}, 1) == these(none, none, inf));
    CHECK(of({1, -inf, inf}, 1) == these(none, none, none));
    CHECK(of({quiet, 1, 1}, 1) == these(none, none, none));
    CHECK(of({3}, 1) == these(none, none, 3));
    CHECK(of({1, 3}, 2.5) == these(none, none, 2));
    CHECK(of({1, 3}, 0x1p200) == these(none, none, 2));
    CHECK(of({}, -1) == these(none, none, none));
    CHECK(of({3}, 1 - 0x1p-53) == these(0, 0, 3));
    CHECK(of({1, 3}, 2 - 0x1p-52) == these(0x1p53, 0x1.6a09e667f3bcdp26, 2));
    // d^2 / 2 of 54 bits: to even, down and up; and with something tiny beside it.
    const double d = 134217727;  // 2^27 - 1: d^2 = 2^54 - 2^28 + 1
    CHECK(of({0, d}, 1)[0] == bits_of(0x1p53 - 0x1p27));
    CHECK(of({0, d - 2}, 1)[0] == bits_of(0x1p53 - 3 * 0x1p27 + 4));
    CHECK(of({-least, d}, 1)[0] == bits_of(0x1p53 - 0x1p27 + 1));
    // The ends: the variance overflows, the root of the same does not.
    CHECK(of({most, -most}, 0) == these(inf, most, 0));
    CHECK(of({most, -most}, 1) == these(inf, inf, 0));
    CHECK(of({0x1p-538, -0x1p-538}, 0) == these(0, 0x1p-538, 0));  // 2^-1076
    CHECK(of({0x1p-537, -0x1p-537}, 0) == these(least, 0x1p-537, 0));
    CHECK(of({least, 0}, 0) == these(0, 0, 0));
    CHECK(of({least, 0}, 1) == these(0, least, 0));
    CHECK(of({0x1p60, 0x1p60 + 256, 0x1p60 - 256}, 1) == these(0x1p16, 256, 0x1p60));
  }
}

TEST_CASE("spreads of binary64: the first bits of quotients" * doctest::test_suite("portable values")) {
  using dividend = num::fixed_point<-128, 5>;
  using divisor = num::fixed_point<-64, 3>;
  std::mt19937_64 g(66);
  for (int i = 0; i < 3000; ++i) {
    dividend n;
    divisor d;
    mpz_class big, small;
    const auto add = [&](auto& to, mpz_class& value, int lsb, unsigned width) {
      const int shift = static_cast<int>(g() % width);
      const std::uint64_t m = g() >> g() % 64 | 1;
      to.add_scaled(m, lsb + shift, false);
      value += mpz_class(static_cast<unsigned long>(m)) << static_cast<mp_bitcnt_t>(shift);
    };
    for (std::uint64_t k = g() % 3 + 1; k > 0; --k) add(n, big, -128, 250);
    for (std::uint64_t k = g() % 3 + 1; k > 0; --k) add(d, small, -64, 120);
    if (g() % 4 == 0) {  // exact
      small = 1;
      d = {};
      d.add_scaled(1, -64, false);
    }
    const num::first_bits q = num::first_bits_of_quotient(n, d);
    const mpz_class m = (mpz_class(static_cast<unsigned long>(q.high)) << 64) + static_cast<unsigned long>(q.low);
    mpz_class left = big, right = m * small;  // big 2^-128 / (small 2^-64) = (m + f) 2^exponent
    const auto e = q.exponent + 64;
    if (e >= 0) right <<= static_cast<mp_bitcnt_t>(e);
    if (e < 0) left <<= static_cast<mp_bitcnt_t>(-e);
    const mpz_class unit = e >= 0 ? mpz_class(small << static_cast<mp_bitcnt_t>(e)) : small;
    CHECK(q.exponent % 2 == 0);
    CHECK((q.high >> 62) != 0);
    CHECK((left >= right));
    CHECK((left < right + unit));
    CHECK(q.cut == bool(left != right));
  }
}
