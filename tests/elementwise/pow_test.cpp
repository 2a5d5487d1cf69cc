// pow: special cases, both tiers against the oracle, the bound of the first, and who decides.
#include "librepdl/ops/elementwise/pow.hpp"

#include <doctest/doctest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "reference/elementwise/pow.hpp"

namespace {

using namespace repdl;
using pow_body = num::body<ops::pow>;

template <class T>
using pattern = typename num::format<T>::storage;
template <class T>
pattern<T> bits_of(T x) {
  return num::bit_cast<pattern<T>>(x);
}
template <class T>
T of_bits(std::uint64_t bits) {
  return num::bit_cast<T>(static_cast<pattern<T>>(bits));
}
template <class T>
T rounded(double x) {
  return num::narrow<T>(x);
}
template <class T>
constexpr pattern<T> sign_bit = static_cast<pattern<T>>(pattern<T>{1} << (8 * sizeof(T) - 1));

struct counts {
  std::int64_t pairs = 0;
  std::int64_t undecided = 0;  // by the first tier
  std::int64_t wrong = 0;
};

// The first tier and the last one, at its least budget.
template <class T>
std::uint64_t check(T x, T y, counts& n) {
  const std::uint64_t want = reference::oracle_pow(dtype_of<T>, {dtype_of<T>, bits_of(x)}, {dtype_of<T>, bits_of(y)});
  const auto first = pow_body::eval(x, y);
  const auto last = pow_body::exact(x, y, 256);
  bool right = (!first.decided || bits_of(first.value) == want) && last.decided && bits_of(last.value) == want;
  if constexpr (std::is_same_v<T, float>) {  // CUDA's
    const auto wide = pow_body::eval_as<true>(x, y);
    right = right && (!wide.decided || bits_of(wide.value) == want);
  }
  ++n.pairs;
  n.undecided += first.decided ? 0 : 1;
  if (!right) {
    ++n.wrong;
    CAPTURE(bits_of(x));
    CAPTURE(bits_of(y));
    CAPTURE(want);
    CAPTURE(bits_of(first.value));
    CAPTURE(first.decided);
    CAPTURE(bits_of(last.value));
    CHECK(right);
  }
  return want;
}

// Numbers around which something happens; both signs.
template <class T>
std::vector<T> landmarks() {
  using F = num::format<T>;
  constexpr int p = F::precision;
  constexpr auto normal = pattern<T>{1} << (p - 1);  // 2^emin
  std::vector<T> list;
  for (const std::uint64_t b :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{normal} - 1,
        std::uint64_t{normal}, std::uint64_t{normal} + 1, std::uint64_t{F::infinity} - 1, std::uint64_t{F::infinity},
        std::uint64_t{F::nan}, std::uint64_t{F::infinity} + 1}) {
    list.push_back(of_bits<T>(b));
  }
  const std::uint64_t one = bits_of(rounded<T>(1));
  for (const int step : {-3, -2, -1, 0, 1, 2, 3, 64, -64}) {
    list.push_back(of_bits<T>(one + static_cast<std::uint64_t>(static_cast<std::int64_t>(step))));
  }
  for (const double v : {0.25,
                         1.0 / 3,
                         0.5,
                         0.7071067811865476,
                         0.75,
                         1.25,
                         1.4142135623730951,
                         1.5,
                         2.0,
                         2.5,
                         2.7182818,
                         3.0,
                         3.5,
                         4.0,
                         5.0,
                         7.0,
                         8.0,
                         9.0,
                         10.0,
                         15.0,
                         16.0,
                         17.0,
                         24.0,
                         25.0,
                         27.0,
                         31.0,
                         49.0,
                         81.0,
                         128.0,
                         149.0,
                         150.0,
                         225.0,
                         255.0,
                         343.0,
                         1000.0,
                         2047.0,
                         2048.0,
                         2049.0,
                         4097.0,
                         8388607.0,
                         8388608.0,
                         8388608.5,
                         16777215.0,
                         16777216.0,
                         16777218.0,
                         1e10,
                         1e-3,
                         1e-10}) {
    list.push_back(rounded<T>(v));
  }
  const std::size_t size = list.size();
  for (std::size_t i = 0; i < size; ++i) list.push_back(of_bits<T>(bits_of(list[i]) ^ sign_bit<T>));
  return list;
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE_TEMPLATE("pow: the special cases of C23", T, f16, bf16, float) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const double largest_odd = std::ldexp(1.0, num::format<T>::precision) - 1;
  struct row {
    double x, y, result;
  };
  const row table[] = {// 1 to anything, anything to 0
                       {1, 0, 1},
                       {1, -0.0, 1},
                       {1, 5, 1},
                       {1, -2.5, 1},
                       {1, inf, 1},
                       {1, -inf, 1},
                       {1, nan, 1},
                       {nan, 0, 1},
                       {nan, -0.0, 1},
                       {0, 0, 1},
                       {-0.0, -0.0, 1},
                       {inf, 0, 1},
                       {-inf, -0.0, 1},
                       {-3, 0, 1},
                       {2.5, 0, 1},
                       // -1
                       {-1, inf, 1},
                       {-1, -inf, 1},
                       {-1, 3, -1},
                       {-1, -3, -1},
                       {-1, 4, 1},
                       {-1, 0.5, nan},
                       {-1, nan, nan},
                       {-1, largest_odd, -1},
                       {-1, -largest_odd, -1},
                       {-1, largest_odd + 1, 1},
                       {-1, 2 * largest_odd, 1},
                       // negative numbers to fractions
                       {-2, 0.5, nan},
                       {-2, -1.5, nan},
                       {-0.25, 2.5, nan},
                       {-8, 1.0 / 3, nan},
                       {-2, 3, -8},
                       {-2, -3, -0.125},
                       {-2, 4, 16},
                       {-2, -2, 0.25},
                       {-0.5, -3, -8},
                       // zeros
                       {0, 3, 0},
                       {-0.0, 3, -0.0},
                       {0, 1, 0},
                       {-0.0, 1, -0.0},
                       {0, 2, 0},
                       {-0.0, 2, 0},
                       {0, 0.5, 0},
                       {-0.0, 0.5, 0},
                       {0, inf, 0},
                       {-0.0, inf, 0},
                       {0, -3, inf},
                       {-0.0, -3, -inf},
                       {0, -1, inf},
                       {-0.0, -1, -inf},
                       {0, -2, inf},
                       {-0.0, -2, inf},
                       {0, -0.5, inf},
                       {-0.0, -0.5, inf},
                       {0, -inf, inf},
                       {-0.0, -inf, inf},
                       {-0.0, largest_odd, -0.0},
                       {-0.0, largest_odd + 1, 0},
                       {-0.0, -largest_odd, -inf},
                       // infinite exponents
                       {0.5, inf, 0},
                       {-0.5, inf, 0},
                       {0.5, -inf, inf},
                       {-0.5, -inf, inf},
                       {2, inf, inf},
                       {-2, inf, inf},
                       {2, -inf, 0},
                       {-2, -inf, 0},
                       {inf, inf, inf},
                       {-inf, inf, inf},
                       {inf, -inf, 0},
                       {-inf, -inf, 0},
                       // infinite bases
                       {inf, 3, inf},
                       {inf, 0.5, inf},
                       {inf, -3, 0},
                       {inf, -0.5, 0},
                       {-inf, 3, -inf},
                       {-inf, 1, -inf},
                       {-inf, 2, inf},
                       {-inf, 0.5, inf},
                       {-inf, 2.5, inf},
                       {-inf, -3, -0.0},
                       {-inf, -1, -0.0},
                       {-inf, -2, 0},
                       {-inf, -0.5, 0},
                       {-inf, largest_odd, -inf},
                       {-inf, 2 * largest_odd, inf},
                       // NaN
                       {nan, 1, nan},
                       {nan, nan, nan},
                       {0, nan, nan},
                       {inf, nan, nan},
                       {nan, inf, nan},
                       {-2, nan, nan},
                       {2, nan, nan}};
  for (const row& r : table) {
    CAPTURE(r.x);
    CAPTURE(r.y);
    const T x = rounded<T>(r.x);
    const T y = rounded<T>(r.y);
    const pattern<T> want = bits_of(rounded<T>(r.result));
    const auto first = pow_body::eval(x, y);
    CHECK(first.decided);
    CHECK(bits_of(first.value) == want);
    const auto last = pow_body::exact(x, y, 0);
    CHECK(last.decided);
    CHECK(bits_of(last.value) == want);
    CHECK(reference::oracle_pow(dtype_of<T>, {dtype_of<T>, bits_of(x)}, {dtype_of<T>, bits_of(y)}) == want);
  }
  // Every NaN, a payload and a sign included.
  for (const std::uint64_t b : {std::uint64_t{num::format<T>::infinity} + 1, std::uint64_t{num::format<T>::nan} + 1,
                                std::uint64_t{sign_bit<T>} | num::format<T>::nan}) {
    CHECK(bits_of(pow_body::eval(of_bits<T>(b), rounded<T>(2)).value) == num::format<T>::nan);
    CHECK(bits_of(pow_body::eval(rounded<T>(2), of_bits<T>(b)).value) == num::format<T>::nan);
    CHECK(bits_of(pow_body::eval(rounded<T>(1), of_bits<T>(b)).value) == bits_of(rounded<T>(1)));
    CHECK(bits_of(pow_body::eval(of_bits<T>(b), rounded<T>(-0.0)).value) == bits_of(rounded<T>(1)));
  }
}

TEST_CASE_TEMPLATE("pow: every pair of landmarks", T, f16, bf16, float) {
  counts n;
  const std::vector<T> list = landmarks<T>();
  for (const T x : list) {
    for (const T y : list) check(x, y, n);
  }
  CHECK(n.wrong == 0);
}

TEST_CASE_TEMPLATE("pow: random patterns", T, f16, bf16, float) {
  std::mt19937_64 engine{1};
  counts n;
  for (int i = 0; i < 60000; ++i) check(of_bits<T>(engine()), of_bits<T>(engine()), n);
  CHECK(n.wrong == 0);
  CHECK(n.undecided <= 60000 / 1000);  // two-thirds are special or out of range; ties to fractional powers are rare
}

// x within a few binades of 1, y in (-5, 5): nothing special.
TEST_CASE_TEMPLATE("pow: the first tier decides nearly everything", T, f16, bf16, float) {
  std::mt19937_64 engine{2};
  std::uniform_real_distribution<double> exponent(-4, 4);
  std::uniform_real_distribution<double> power(-5, 5);
  std::int64_t undecided = 0;
  std::int64_t undecided_wide = 0;
  constexpr int size = 1 << 20;
  for (int i = 0; i < size; ++i) {
    const T x = rounded<T>(std::exp2(exponent(engine)));
    const T y = rounded<T>(power(engine));
    undecided += pow_body::eval(x, y).decided ? 0 : 1;
    if constexpr (std::is_same_v<T, float>) undecided_wide += pow_body::eval_as<true>(x, y).decided ? 0 : 1;
  }
  // f32: shares of 2^-19 and 2^-30 are expected. f16, bf16: ties to fractional powers.
  CHECK(undecided <= (sizeof(T) == 4 ? 20 : size >> 10));
  CHECK(undecided_wide == 0);
}

TEST_CASE_TEMPLATE("pow: dyadic values and ties", T, f16, bf16, float) {
  constexpr int p = num::format<T>::precision;
  constexpr int emin = num::format<T>::emin;
  std::mt19937_64 engine{3};
  counts n;
  std::int64_t ties = 0;
  std::int64_t exact = 0;
  std::int64_t open = 0;  // undecided ties of integer powers
  const auto one_pair = [&](double x, double y) {
    if (std::fabs(x) < std::ldexp(1.0, emin - p + 1) || std::fabs(x) >= std::ldexp(1.0, num::format<T>::emax + 1))
      return;
    if (num::widen(rounded<T>(x)) != x || num::widen(rounded<T>(y)) != y) return;
    const T a = rounded<T>(x);
    const T b = rounded<T>(y);
    check(a, b, n);
    const auto where = reference::locate_pow(dtype_of<T>, {dtype_of<T>, bits_of(a)}, {dtype_of<T>, bits_of(b)});
    ties += where.tie ? 1 : 0;
    exact += where.exact ? 1 : 0;
    if (where.tie && y == std::floor(y) && !pow_body::eval(a, b).decided) ++open;
    if (where.tie || where.exact) CHECK(pow_body::exact(a, b, 0).decided);
  };
  // m^E of about p + 1 bits, scaled; and its roots: (m^(2^k))^(E / 2^k).
  for (int e = 1; e <= p + 1; ++e) {
    const double last = std::min(std::exp2((p + 1.2) / e), std::exp2(p));
    for (int i = 0; i < 400; ++i) {
      const double top = last * (i % 2 == 0 ? 1.0 : std::exp2(-1.2 / e));
      double m = 2 * std::floor(top / 2 * (1 - 0.3 * static_cast<double>(engine() % 1024) / 1024)) + 1;
      if (i < 20) m = 2 * i + 1;
      for (int k = 0; k < 4; ++k, m *= m) {
        const int scale = (static_cast<int>(engine() % 41) - 20) * (1 << k);
        one_pair((i % 3 == 0 ? -1 : 1) * std::ldexp(m, scale), std::ldexp(e, -k));
        one_pair(std::ldexp(m, scale), -std::ldexp(e, -k));
        // into the subnormal numbers: m^E 2^(j E) about 2^(emin - p)
        const int j = (emin - p + static_cast<int>(engine() % 8)) / e;
        one_pair(std::ldexp(m, j * (1 << k)), std::ldexp(e, -k));
      }
    }
  }
  // Powers of two, every exponent of the base: to an integer, and to a fraction that may make the least midpoint.
  for (int a = emin - p + 1; a <= num::format<T>::emax; ++a) {
    for (int b = emin - p - 2; b <= num::format<T>::emax + 2; ++b) {
      if (a == 0) continue;
      const double y = static_cast<double>(b) / a;
      if (a % 7 == 0 || y == std::floor(y * 256) / 256) one_pair(std::ldexp(1.0, a), y);
    }
  }
  // Small integers.
  for (int i = 2; i < 40; ++i) {
    for (int j = -12; j < 40; ++j) {
      one_pair(i, j);
      one_pair(-i, j);
      one_pair(static_cast<double>(i) * i, 0.5 * j);
    }
  }
  CHECK(n.wrong == 0);
  CHECK(open == 0);
  CHECK(ties > 300);
  CHECK(exact > 3000);
}

TEST_CASE_TEMPLATE("pow: near 1, near the borders, subnormal results", T, f16, bf16, float) {
  using F = num::format<T>;
  constexpr int p = F::precision;
  std::mt19937_64 engine{4};
  counts n;
  std::int64_t border = 0;
  std::int64_t subnormal = 0;
  std::int64_t near_one = 0;
  const std::uint64_t one = bits_of(rounded<T>(1));
  for (int i = 0; i < 30000; ++i) {
    // x: next to 1, or anything positive.
    const auto step = static_cast<std::int64_t>(engine() % 4097) - 2048;
    const std::uint64_t any = 1 + engine() % (F::infinity - 1);
    const T x = of_bits<T>(i % 2 == 0 ? one + static_cast<std::uint64_t>(i % 4 == 0 ? step : step / 512) : any);
    const double log = std::log2(num::widen(x));
    if (!(std::fabs(log) > 0) || !(std::fabs(log) < 1000)) continue;
    // y: so that x^y is about a target.
    double target = 0;
    switch (i / 2 % 4) {
      case 0:
        target = F::emax + 1 - std::ldexp(static_cast<double>(engine() % 64), -p);
        break;
      case 1:
        target = F::emin - p + 1 - static_cast<double>(engine() % 1024) / 512;
        break;
      case 2:
        target = F::emin - static_cast<double>(engine() % 1024) / 1024 * p;
        break;
      default:
        target = std::ldexp(static_cast<double>(engine() % 64) - 32, -p - 1);
        break;
    }
    const std::uint64_t nearest = bits_of(rounded<T>(target / log));
    if ((nearest & ~sign_bit<T>) >= F::infinity - 2u) continue;
    for (int j = -1; j <= 1; ++j) {
      const T y = of_bits<T>(nearest + static_cast<std::uint64_t>(static_cast<std::int64_t>(j)));
      const std::uint64_t r = check(x, y, n);
      const auto where = reference::locate_pow(dtype_of<T>, {dtype_of<T>, bits_of(x)}, {dtype_of<T>, bits_of(y)});
      border += where.border ? 1 : 0;
      subnormal += where.subnormal && r != 0 ? 1 : 0;
      near_one += r >= one - 32 && r <= one + 32 ? 1 : 0;
      check(of_bits<T>(bits_of(x) | sign_bit<T>), y, n);
    }
  }
  CHECK(n.wrong == 0);
  CHECK(n.undecided <= n.pairs / 200);  // ties of x = 2^a in bf16 and f16
  CHECK(border > 20);
  CHECK(subnormal > 1000);
  CHECK(near_one > 1000);
}

// |(hi + lo) 2^k - x^y| < error 2^k wherever nothing is cut down; and binary64's bound.
TEST_CASE("pow: the bounds of the first tier") {
  std::mt19937_64 engine{5};
  mpfr_t x, y, z, d;
  mpfr_inits2(200, x, y, z, d, static_cast<mpfr_ptr>(nullptr));
  double worst = 0;
  double worst_binary64 = 0;
  double largest = 0;
  for (int i = 0; i < 200000; ++i) {
    // Significands everywhere, next to sqrt 2 and next to 1.
    double base = 1 + static_cast<double>(engine() % (1 << 23)) * 0x1p-23;
    if (i % 4 == 1) base = 1 + static_cast<double>(engine() >> (41 + engine() % 23)) * 0x1p-23;
    if (i % 4 == 2)
      base = num::widen(static_cast<float>(1.41421354f + 0x1p-23f * (static_cast<float>(engine() % 64) - 32)));
    if (i % 4 == 3) base = 1 - static_cast<double>(engine() % 65536 + 1) * 0x1p-24;
    base = std::ldexp(base, i % 3 == 0 ? 0 : static_cast<int>(engine() % 250) - 126);
    if (base == 1) continue;
    const double target = (static_cast<double>(engine() >> 11) * 0x1p-53 - 0.5) * (i % 5 == 0 ? 2 : 209);
    const double power = num::widen(static_cast<float>(target / std::log(base)));
    if (!(std::fabs(power) < 0x1p120) || !(std::fabs(power) > 0x1p-120)) continue;
    const auto c = num::pow_wide::eval(base, power);
    mpfr_set_d(x, base, MPFR_RNDN);
    mpfr_set_d(y, power, MPFR_RNDN);
    mpfr_pow(z, x, y, MPFR_RNDN);
    mpfr_mul_2si(z, z, -(static_cast<std::int64_t>(c.exponent) >> 52), MPFR_RNDN);
    mpfr_set_d(d, c.hi, MPFR_RNDN);
    mpfr_add_d(d, d, c.lo, MPFR_RNDN);
    mpfr_sub(d, d, z, MPFR_RNDN);
    worst = std::max(worst, std::fabs(mpfr_get_d(d, MPFR_RNDN)) / c.error);
    largest = std::max(largest, c.error);
    mpfr_pow(z, x, y, MPFR_RNDN);
    mpfr_set_d(d, num::pow_binary64(base, power), MPFR_RNDN);
    mpfr_sub(d, d, z, MPFR_RNDN);
    mpfr_div(d, d, z, MPFR_RNDN);
    worst_binary64 = std::max(worst_binary64, std::fabs(mpfr_get_d(d, MPFR_RNDN)) / num::pow_binary64_error);
  }
  mpfr_clears(x, y, z, d, static_cast<mpfr_ptr>(nullptr));
  CHECK(worst < 1);
  CHECK(worst > 0.05);       // the bound says something
  CHECK(largest < 0x1p-54);  // so that |lo| + error < ulp(hi)
  CHECK(worst_binary64 < 1);
  CHECK(worst_binary64 > 0.02);
  MESSAGE("largest error / bound: " << worst << ", " << worst_binary64 << "; largest bound 2^" << std::log2(largest));
}

TEST_CASE_TEMPLATE("pow: the last tier's budgets", T, f16, bf16, float) {
  std::mt19937_64 engine{6};
  int open = 0;
  for (int i = 0; i < 300; ++i) {
    const T x = rounded<T>(std::exp2(static_cast<double>(engine() % 4096) / 1024 - 2));
    const T y = rounded<T>(static_cast<double>(engine() % 4096) / 1024 - 2);
    const std::uint64_t want = reference::oracle_pow(dtype_of<T>, {dtype_of<T>, bits_of(x)}, {dtype_of<T>, bits_of(y)});
    for (const int bits : {256, 512, 1024, 2048}) {
      const auto r = pow_body::exact(x, y, bits);
      CHECK(r.decided);
      CHECK(bits_of(r.value) == want);
    }
    const auto where = reference::locate_pow(dtype_of<T>, {dtype_of<T>, bits_of(x)}, {dtype_of<T>, bits_of(y)});
    const bool dyadic = where.exact || where.tie;
    for (const int bits : {0, 64, 255}) {
      const auto r = pow_body::exact(x, y, bits);
      if (dyadic) CHECK(r.decided);
      if (r.decided) CHECK(bits_of(r.value) == want);
      open += r.decided ? 0 : 1;
    }
  }
  CHECK(open > 500);
  // Irrational; rational, but not dyadic; dyadic; out of range.
  const auto decided = [](double x, double y) { return pow_body::exact(rounded<T>(x), rounded<T>(y), 255).decided; };
  CHECK(!decided(3, 0.5));
  CHECK(!decided(2, 0.5));
  CHECK(!decided(3, -1));
  CHECK(!decided(1.25, -2));
  CHECK(decided(2, -1));
  CHECK(decided(3, 2));
  CHECK(decided(9, 0.5));
  CHECK(decided(2.25, 1.5));
  CHECK(decided(0.0625, -0.75));
  CHECK(decided(3, 1000));
  CHECK(decided(3, -1000));
}

}  // namespace

TEST_SUITE_END();
