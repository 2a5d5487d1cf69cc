// Sums of products by residues (librepdl/num/residues.hpp), in exact integers and rational numbers: what the comments there say.
#include "librepdl/num/residues.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace repdl::num;

// f of a sum whose residues are up to three moduli off.
std::uint64_t fraction_of(const mpz_class& sum, const residue_system& s, std::mt19937_64& random) {
  std::uint64_t f = 0;
  for (int i = 0; i < s.count; ++i) {
    const residue_weight& w = s.of[i];
    const int modulus = -w.negative;
    const mpz_class rest = ((sum % modulus) + modulus) % modulus;
    const std::int64_t r = rest.get_si() + static_cast<std::int64_t>(random() % 4) * modulus - modulus;
    const std::uint64_t weight =
        (static_cast<std::uint64_t>(w.high) << 32) + static_cast<std::uint64_t>(std::int64_t{w.low});
    f += static_cast<std::uint64_t>(r) * weight;
  }
  return f;
}
mpz_class product_of_moduli(int count) {
  mpz_class p = 1;
  for (int i = 0; i < count; ++i) p *= moduli.at[i];
  return p;
}
mpq_class rational(double x) { return mpq_class(x); }
mpq_class power(int e) {
  mpq_class one = 1;
  if (e >= 0) {
    mpq_mul_2exp(one.get_mpq_t(), one.get_mpq_t(), static_cast<mp_bitcnt_t>(e));
  } else {
    mpq_div_2exp(one.get_mpq_t(), one.get_mpq_t(), static_cast<mp_bitcnt_t>(-e));
  }
  return one;
}

// A line as an engine has it, and its integers.
struct line {
  residue_line known;
  std::vector<std::int64_t> scaled;

  line(const std::vector<float>& x, double limit) {
    double squares = 0;
    known.lsb = no_lsb;
    for (const float v : x) {
      squares += static_cast<double>(v) * static_cast<double>(v);
      known.lsb = std::min(known.lsb, lsb_exponent(v));
    }
    known.norm = std::sqrt(squares) * (1 + 0x1p-30);
    known.shift = residue_shift(limit, known.norm);
    double lost = 0;
    for (const float v : x) {
      const double a = std::nearbyint(std::ldexp(static_cast<double>(v), known.shift));
      const double rest = static_cast<double>(v) - std::ldexp(a, -known.shift);
      lost += rest * rest;
      scaled.push_back(static_cast<std::int64_t>(a));
    }
    known.residual = std::sqrt(lost) * (1 + 0x1p-30);
  }
};

enum class data { normal, narrow, wide, cancelling, mostly_zero, subnormal };
std::vector<float> numbers(data what, std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float v = normal(random);
    switch (what) {
      case data::normal:
        x[i] = v;
        break;
      case data::narrow:
        x[i] = std::nearbyint(4 * v);
        break;
      case data::wide:
        x[i] = std::ldexp(v, static_cast<int>(random() % 80) - 40);
        break;
      case data::cancelling:
        x[i] = i % 2 == 1 ? -x[i - 1] : v;
        break;
      case data::mostly_zero:
        x[i] = random() % 8 == 0 ? v : 0;
        break;
      case data::subnormal:
        x[i] = std::ldexp(v, -130 - static_cast<int>(random() % 20));
        break;
    }
  }
  return x;
}

}  // namespace

TEST_SUITE_BEGIN("portable");

TEST_CASE("residues: moduli are coprime, as large as they can be, and fit groups of three") {
  CHECK(moduli.at[0] == 256);
  for (int i = 0; i < most_moduli; ++i) {
    for (int j = 0; j < i; ++j) CHECK(std::gcd(moduli.at[i], moduli.at[j]) == 1);
    if (i > 0) CHECK(moduli.at[i] < moduli.at[i - 1]);
    if (i % 3 == 0) CHECK(moduli.at[i] * moduli.at[i + 1] * moduli.at[i + 2] < 1 << 24);
  }
}

TEST_CASE("residues: a fraction is the sum over the product of the moduli, up to 384 for each, and does not wrap") {
  std::mt19937_64 random(1);
  gmp_randclass big(gmp_randinit_default);
  big.seed(2);
  for (int count = 4; count <= most_moduli; ++count) {
    const residue_system s = residue_system_of(count);
    const mpz_class p = product_of_moduli(count);
    const mpq_class unit_off = abs(rational(s.unit) - mpq_class(p) * power(-64));
    const mpq_class squared = rational(s.limit) * rational(s.limit);
    const mpq_class half = mpq_class(p) / 2;
    const bool is_unit = unit_off <= mpq_class(p) * power(-64 - 53);
    const bool is_below = squared < half * (1 - power(-20)) * (1 - power(-20));
    const bool is_near = squared > half * (1 - power(-6));
    CHECK(is_unit);
    CHECK(is_below);
    CHECK(is_near);
    const mpz_class most = p / 2 - p / (1 << 20);
    std::int64_t wrong = 0;
    for (int i = 0; i < 2000; ++i) {
      mpz_class sum = i == 0   ? most
                      : i == 1 ? -most
                      : i == 2 ? mpz_class(0)
                               : mpz_class(big.get_z_range(2 * most) - most);
      if (i > 2 && i % 3 == 0) sum %= 1000;
      const auto f = static_cast<std::int64_t>(fraction_of(sum, s, random));
      const mpz_class off = mpz_class(static_cast<long>(f)) * p - (sum << 64);
      wrong += abs(off) > 384 * count * p;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("residues: values are within their bounds, and exact where they say so") {
  std::mt19937_64 random(3);
  const mpq_class u = power(-53);
  for (const int count : {4, 7, 10, 11, 12}) {
    const residue_system s = residue_system_of(count);
    for (const data a_data :
         {data::normal, data::narrow, data::wide, data::cancelling, data::mostly_zero, data::subnormal}) {
      for (const data b_data : {data::normal, data::narrow, data::wide}) {
        std::int64_t exact = 0, wrong = 0, wrapped = 0;
        constexpr int calls = 40;
        for (int i = 0; i < calls; ++i) {
          const std::size_t length = i == 0 ? 1 : 2 * (1 + random() % 100);
          const double limit = residue_limit(s.limit, std::sqrt(static_cast<double>(length)));
          const std::vector<float> x = numbers(a_data, length, random), y = numbers(b_data, length, random);
          const line a(x, limit), b(y, limit);
          mpz_class scaled = 0;
          mpq_class sum = 0;
          for (std::size_t k = 0; k < length; ++k) {
            scaled += mpz_class(static_cast<long>(a.scaled[k])) * mpz_class(static_cast<long>(b.scaled[k]));
            sum += rational(x[k]) * rational(y[k]);
          }
          wrapped += 2 * abs(scaled) >= product_of_moduli(count);
          const auto f = static_cast<std::int64_t>(fraction_of(scaled, s, random));
          const bounded_value<double> v = value_of_fraction(f, a.known, b.known, s.unit, count);
          if (v.error == 0) {
            ++exact;
            wrong += rational(v.value) != sum;
          } else {  // (C) of certify.hpp
            wrong += rational(v.error) * (1 - u) < abs(rational(v.value) - sum) + u * abs(rational(v.value));
          }
          // Ends in units.
          const double x_scale = std::ldexp(1.0, a.known.shift), y_scale = std::ldexp(1.0, b.known.shift);
          const fraction_width of_row(a.known.norm * x_scale, a.known.residual * x_scale, s.unit, count);
          const double width = of_row.with(b.known.norm * y_scale, b.known.residual * y_scale);
          const double unit = std::ldexp(s.unit, -a.known.shift - b.known.shift);
          wrong += rational((static_cast<double>(f) - width) * unit) > sum;
          wrong += rational((static_cast<double>(f) + width) * unit) < sum;
        }
        CAPTURE(count);
        CHECK(wrong == 0);
        CHECK(wrapped == 0);
        // Integers of a few bits lose nothing, so that their sums, ties and zeros among them, are known exactly.
        if (a_data == data::narrow && b_data == data::narrow && count >= 7) CHECK(exact == calls);
      }
    }
  }
}

TEST_CASE("residues: lines of zeros, and what is not finite") {
  const residue_system s = residue_system_of(10);
  const residue_line zero{0, 0, 0, no_lsb};
  const residue_line some{3, 0x1p-50, 20, -3};
  const residue_line infinite{infinity, infinity - infinity, 0, 0};
  CHECK(residue_shift(s.limit, 0) == 0);
  CHECK(residue_shift(s.limit, infinity) == 0);
  CHECK(residue_shift(s.limit, std::numeric_limits<double>::quiet_NaN()) == 0);
  const residue_line exact{3, 0, 20, -3};
  CHECK(value_of_fraction(17, zero, exact, s.unit, 10).error == 0);
  CHECK(value_of_fraction(17, zero, exact, s.unit, 10).value == 0);
  CHECK(!(value_of_fraction(17, infinite, some, s.unit, 10).error < infinity));
  CHECK(!(value_of_fraction(17, zero, infinite, s.unit, 10).error < infinity));
  // Norms at powers of two and beside the limit.
  for (const double norm :
       {0x1p-149, 1.0, 3.0, s.limit, std::nextafter(s.limit, 0.0), std::nextafter(s.limit, infinity), 0x1p150}) {
    const int shift = residue_shift(s.limit, norm);
    CHECK(std::ldexp(norm, shift) <= s.limit);
    CHECK(std::ldexp(norm, shift + 1) > s.limit);
  }
}

TEST_SUITE_END();
