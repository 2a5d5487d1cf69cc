// Exact products and P / sqrt(W) + b against GMP.
#include "librepdl/num/exact_root.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/numbers/real.hpp"
#include "reference/rows/norm_results.hpp"
#include "reference/samples.hpp"

using namespace repdl;
using num::product_of;
using num::root_quotient;

namespace {

constexpr double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();

template <int Lsb, int Words>
mpq_class value_of(num::fixed_point<Lsb, Words> a) {
  const bool negative = a.negative();
  if (negative) a.negate();
  mpz_class v;
  std::uint64_t w[Words];
  for (int i = 0; i < Words; ++i) w[i] = a.word(i);
  mpz_import(v.get_mpz_t(), Words, -1, sizeof *w, 0, 0, w);
  return reference::power_of_two(Lsb) * (negative ? mpz_class(-v) : v);
}

// p w / sqrt(v) + b.
struct quotient_case {
  double p, w, v, b;
};
std::uint64_t rounded(const quotient_case& c) {
  root_quotient r;
  num::add(r.numerator, product_of(c.p, c.w));
  r.square.add(c.v);
  r.b = c.b;
  r.split_sign();
  return std::bit_cast<std::uint64_t>(r.round());
}
std::uint64_t expected(const quotient_case& c) {
  const mpq_class p = reference::rational(c.p) * reference::rational(c.w);
  return reference::with_root(reference::rational(c.b), p < 0, p * p / reference::rational(c.v))(dtype::f64).bits;
}
void check(const quotient_case& c) {
  CAPTURE(c.p);
  CAPTURE(c.w);
  CAPTURE(c.v);
  CAPTURE(c.b);
  CHECK(rounded(c) == expected(c));
}

}  // namespace

TEST_SUITE_BEGIN("portable exact roots");

TEST_CASE("products of several numbers, and multiples of exact sums by them") {
  reference::word_stream words(5, 0);
  const auto number = [&] {
    return std::bit_cast<double>(reference::sample(reference::sample_class::wide_exponents, dtype::f64, words));
  };
  for (int k = 0; k < 300; ++k) {
    const double a = number(), b = number(), c = number(), d = number(), e = number();
    const std::uint64_t n = words.next64() >> 2;
    num::exact_accumulator<double, 7> to;
    num::add(to, product_of(a, b, c, d, e));
    num::add(to, product_of(a, -b, n));
    num::exact_accumulator<double, 2> sum;
    sum.add_product(c, d);
    sum.add_product(-a, e);
    num::add_multiple(to, sum, product_of(b, c, -d, e, e));
    using reference::rational;
    const mpq_class of_sum = rational(c) * rational(d) - rational(a) * rational(e);
    const mpq_class five = rational(a) * rational(b) * rational(c) * rational(d) * rational(e);
    mpz_class count;
    mpz_import(count.get_mpz_t(), 1, 1, sizeof n, 0, 0, &n);
    const bool is_sum =
        value_of(to) == five - rational(a) * rational(b) * count -
                            of_sum * rational(b) * rational(c) * rational(d) * rational(e) * rational(e);
    CHECK(is_sum);
    num::fixed_point<root_quotient::unit, 35> s;
    s.add(a);
    s.add(b);
    num::fixed_point<2 * root_quotient::unit, 68> minus;
    num::subtract_square(minus, s);
    const bool is_square = value_of(minus) == -(rational(a) + rational(b)) * (rational(a) + rational(b));
    CHECK(is_square);
  }
}

TEST_CASE("quotients by roots are rounded as the exact ones: ties, neighbours of ties, borders") {
  for (const double sign : {1.0, -1.0}) {
    check({sign, 1, 4, 0});
    check({sign * 3, 0x1p53 + 1, 9, 0});
    check({sign, 1, 1, 0x1p53});  // a tie
    check({sign * 3, 1, 9, 0x1.0000000000001p53});
    check({sign, 1, 1 + 0x1p-52, 0x1p53});  // next to it
    check({sign, 1, 1 - 0x1p-53, 0x1p53});
    check({sign, 1, 2, -sign * std::sqrt(0.5)});  // nearly 0
    check({sign * 5, 1, 25, -sign});              // 0
    check({sign * least, 1, 4, 0});               // half the least number
    check({sign * 3 * least, 1, 4, 0});
    check({sign * least, 1, 3, 0});
    check({sign * least, least, most, 0});
    check({sign * most, 1, 1, 0x1p970 * sign});  // the border of overflow
    check({sign * most, 1, 1, 0x1.fffffffffffffp969 * sign});
    check({sign * most, most, least, 0});
    check({sign * most, 1, 1, -sign * most});
    check({sign * most, 1, 2, -sign * most});
    check({0, 1, 2, sign});
  }
  reference::word_stream words(7, 0);
  using enum reference::sample_class;
  for (const auto kind : {wide_exponents, normal_range, subnormal, uniform_patterns}) {
    const auto number = [&] {
      const double x = std::bit_cast<double>(reference::sample(kind, dtype::f64, words));
      return std::isfinite(x) ? x : 1.0;
    };
    for (int k = 0; k < 150; ++k) {
      quotient_case c{number(), number(), std::fabs(number()), k % 3 == 0 ? 0.0 : number()};
      if (c.v == 0) c.v = 1;
      check(c);
      const double z = c.p * c.w / std::sqrt(c.v);  // a bias that cancels most
      if (!std::isfinite(z)) continue;
      c.b = -z;
      check(c);
    }
  }
}

TEST_SUITE_END();
