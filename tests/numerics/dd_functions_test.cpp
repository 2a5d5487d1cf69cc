// Balls of double-doubles against MPFR: what the operations and functions say of their errors, in registers as in single numbers, and
// what rounding decides.
#include <doctest/doctest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "backends/cpu/core/simd.hpp"
#include "librepdl/num/dd_erf.hpp"
#include "librepdl/num/formula.hpp"

namespace {

using namespace repdl::num;
using lanes = repdl::cpu::REPDL_ISA::f64v;
constexpr int width = repdl::cpu::REPDL_ISA::lanes64;
using one_ball = dd_ball<double>;

struct real {
  explicit real(double x = 0) {
    mpfr_init2(v, 400);
    mpfr_set_d(v, x, MPFR_RNDN);
  }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
  mpfr_t v;
};
bool contains(const one_ball& b, const real& exact) {
  real d;
  mpfr_sub_d(d.v, exact.v, b.hi, MPFR_RNDN);
  mpfr_sub_d(d.v, d.v, b.lo, MPFR_RNDN);
  return mpfr_cmpabs_ui(d.v, 0) == 0 || std::fabs(mpfr_get_d(d.v, MPFR_RNDA)) <= b.error;
}
bool same(double a, double b) { return bits_of(a) == bits_of(b); }

class source {
 public:
  std::uint64_t word() { return g_(); }
  // Significands of 53 bits, or a few; exponents between these.
  double number(double lo, double hi, bool negative) {
    const double e = lo + (hi - lo) * static_cast<double>(word() >> 11) * 0x1p-53;
    const std::uint64_t fraction = word() % 4 == 0 ? word() & 0xe000000000000 : word() & 0xfffffffffffff;
    const double m = std::ldexp(double_of(0x3ff0000000000000 | fraction), static_cast<int>(std::floor(e)));
    return negative && (word() & 1) != 0 ? -m : m;
  }

 private:
  std::mt19937_64 g_{20261127};
};

using mpfr_function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// f, of numbers of exponents between lo and hi, is what MPFR says, in every lane; its errors are less than 2^bits of the value, but for
// a share of 1 / rare of the operands, next to zeros.
template <class F>
void check_function(const char* name, const F& f, mpfr_function expected, double lo, double hi, bool negative, int bits,
                    int rare = 0) {
  INFO(std::string(name));
  source s;
  int wide = 0;
  constexpr int count = 1500;
  for (int i = 0; i < count; ++i) {
    double x[width];
    for (double& v : x) v = s.number(lo, hi, negative);
    const auto r = f(repdl::cpu::REPDL_ISA::load<lanes>(x));
    for (int k = 0; k < width; ++k) {
      CAPTURE(x[k]);
      const one_ball b = f(x[k]);
      CHECK((same(b.hi, r.hi[k]) && same(b.lo, r.lo[k]) && same(b.error, r.error[k])));
      real value(x[k]);
      expected(value.v, value.v, MPFR_RNDN);
      CHECK(contains(b, value));
      CHECK(same(b.hi, b.hi + b.lo));
      if (!(b.error <= std::ldexp(std::fabs(b.hi), bits))) ++wide;
    }
  }
  CHECK(wide <= (rare == 0 ? 0 : width * count / rare));
}

template <class R>
dd_ball<R> ball_of(R x) {
  return number<dd_ball<R>>(x);
}

}  // namespace

TEST_SUITE_BEGIN("portable values");

TEST_CASE("functions in double-double stay within their bounds, in registers, too") {
  const auto exp = [](auto x) { return exponential(ball_of(x)); };
  check_function("exp", exp, mpfr_exp, -20, 8.99, true, -69);
  const auto expm1 = [](auto x) { return exponential_minus_one(ball_of(x)); };
  check_function("expm1", expm1, mpfr_expm1, -60, 8.99, true, -67);
  const auto reduced = [](auto x) {
    const auto z = exponential_minus_one(reduce_exponent(value_of(ball_of(x))));
    return dd_ball<decltype(x)>{z.hi, z.lo, 0x1.7p-71 * magnitude_of(z.hi)};
  };
  check_function("expm1, reduced", reduced, mpfr_expm1, -60, 8.99, true, -70);
  const auto log = [](auto x) { return logarithm(ball_of(x)); };
  check_function("log", log, mpfr_log, -1022, 1023, false, -68);
  check_function("log near 1", log, mpfr_log, -1, 1, false, -68);
  const auto precise = [](auto x) { return logarithm<true>(ball_of(x)); };
  check_function("log, precise", precise, mpfr_log, -2, 2, false, -82);
  const auto log1p = [](auto x) { return logarithm_1p(ball_of(x)); };
  check_function("log1p", log1p, mpfr_log1p, -100, 500, false, -68);
  check_function("log1p, negative", log1p, mpfr_log1p, -100, 0, true, -68);
  const auto short_log = [](auto x) {
    const auto l = logarithm_by_short_table(x, math<decltype(x)>::all(0));
    const auto z = normalised(l.value);
    return dd_ball<decltype(x)>{z.hi, z.lo, l.error * magnitude_of(z.hi)};
  };
  check_function("log by a short table", short_log, mpfr_log, -1022, 1023, false, -66);
  check_function("log by a short table, near 1", short_log, mpfr_log, -1, 1, false, -66);
  const auto sin = [](auto x) { return circular(x, true); };
  const auto cos = [](auto x) { return circular(x, false); };
  check_function("sin", sin, mpfr_sin, -40, 24, true, -74, 50);
  check_function("cos", cos, mpfr_cos, -40, 24, true, -74, 50);
  const auto arctan = [](auto x) { return arctangent(x, math<decltype(x)>::all(1)); };
  check_function("arctan", arctan, mpfr_atan, -300, 0, false, -71);
  const auto arctan_of_balls = [](auto x) { return arctangent(ball_of(x), ball_of(math<decltype(x)>::all(1))); };
  check_function("arctan of balls", arctan_of_balls, mpfr_atan, -300, 0, false, -75);
  const auto erf = [](auto x) {
    const auto z = normalised(erf_by_table(x));
    return dd_ball<decltype(x)>{z.hi, z.lo, 0x1p-68 * z.hi};
  };
  check_function("erf by a table", erf, mpfr_erf, -890, 1.99, false, -68);
  const auto erf_beyond_4 = [&](auto x) { return erf(x + 4.0); };
  const auto expected = [](mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t round) {
    mpfr_add_ui(y, x, 4, round);
    return mpfr_erf(y, y, round);
  };
  check_function("erf by a table, beyond 4", erf_beyond_4, expected, -48, 1.01, false, -68);
  const auto root = [](auto x) { return square_root(ball_of(x)); };
  check_function("sqrt", root, mpfr_sqrt, -800, 800, false, -99);
}

TEST_CASE("balls of double-doubles contain what they say, and know what is exact") {
  source s;
  int exact_sums = 0, exact_products = 0;
  for (int i = 0; i < 40000; ++i) {
    // A ball, and a number in it.
    real x, y, z;
    const auto draw = [&](real& value) {
      const dd v = fast_two_sum(s.number(-60, 60, true), s.word() % 3 == 0 ? 0.0 : s.number(-120, -70, true));
      const one_ball b{v.hi, v.lo, s.word() % 2 == 0 ? 0.0 : s.number(-140, -66, false)};
      mpfr_set_d(value.v, b.hi, MPFR_RNDN);
      mpfr_add_d(value.v, value.v, b.lo, MPFR_RNDN);
      const int where = static_cast<int>(s.word() % 3) - 1;
      mpfr_add_d(value.v, value.v, where * b.error, MPFR_RNDN);
      return b;
    };
    const one_ball a = draw(x), b = draw(y);
    CAPTURE(a.hi);
    CAPTURE(b.hi);
    mpfr_add(z.v, x.v, y.v, MPFR_RNDN);
    CHECK(contains(a + b, z));
    exact_sums += (a + b).error == 0;
    mpfr_sub(z.v, x.v, y.v, MPFR_RNDN);
    CHECK(contains(a - b, z));
    mpfr_mul(z.v, x.v, y.v, MPFR_RNDN);
    CHECK(contains(a * b, z));
    exact_products += (a * b).error == 0;
    if (b.error < 0x1p-4 * std::fabs(b.hi)) {
      mpfr_div(z.v, x.v, y.v, MPFR_RNDN);
      CHECK(contains(a / b, z));
    }
    if (a.hi > 0 && b.hi >= a.hi && a.error < 0x1p-5 * a.hi && b.error < 0x1p-5 * b.hi) {
      mpfr_atan2(z.v, x.v, y.v, MPFR_RNDN);
      CHECK(contains(arctangent(a, b), z));
    }
    if (a.hi > 0 && a.error < 0x1p-5 * a.hi) {
      mpfr_sqrt(z.v, x.v, MPFR_RNDN);
      CHECK(contains(square_root(a), z));
    }
  }
  CHECK(exact_sums > 100);
  CHECK(exact_products > 1000);
  // What is not known: operands and results that over- or underflow, and what they make.
  const auto unknown = [](const one_ball& b) { return !(b.error < 0x1p1000) && !round_ball(b).decided; };
  CHECK(unknown(ball_of(0x1p-500) * ball_of(0x1p-500)));
  CHECK(unknown(ball_of(0x1p600) * ball_of(0x1p600)));
  CHECK(unknown(ball_of(1.0) / ball_of(0.0)));
  CHECK(unknown(ball_of(1.0) / ball_of(0x1p-950)));
  CHECK(unknown(ball_of(infinity) - ball_of(infinity)));
  CHECK(unknown(square_root(ball_of(-1.0))));
  CHECK(unknown(logarithm(ball_of(-1.0))));
  CHECK(unknown(logarithm(ball_of(0.0))));
  CHECK(unknown(circular(0x1p30, true)));
  CHECK(unknown((ball_of(0x1p600) * ball_of(0x1p600)) * ball_of(0.0) + ball_of(1.0)));
  CHECK_FALSE(round_ball(ball_of(0.0)).decided);
}

TEST_CASE("tables of 16 rows where one row begins, in registers, too") {
  source s;
  const auto check = [&](const auto& f, mpfr_function expected, double bound, double x) {
    CAPTURE(x);
    const dd z = f(x);
    real value(x);
    expected(value.v, value.v, MPFR_RNDN);
    CHECK(contains({z.hi, z.lo, bound * std::fabs(z.hi)}, value));
    const auto r = f(math<lanes>::all(x));
    CHECK((same(r.hi[width - 1], z.hi) && same(r.lo[0], z.lo)));
  };
  for (int row = 0; row < 16; ++row) {
    for (int i = 0; i < 100; ++i) {
      const double near = 1 + s.number(-53, -4, true);
      check([](auto x) { return erf_by_table(x); }, mpfr_erf, 0x1p-68,
            (row + 0.5) * 13 / 32 * (row < 15 ? near : 0.99));
      const double tangent = (row + 0.5) / 16 * near;
      if (tangent <= 1) {
        check([](auto x) { return arctangent_by_table(x, math<decltype(x)>::all(1)); }, mpfr_atan, 0x1p-71, tangent);
      }
      const auto log = [](auto x) { return logarithm_by_short_table(x, math<decltype(x)>::all(0)); };
      const double x = 16 / (row + 8.5) * near;
      check([&](auto v) { return log(v).value; }, mpfr_log, log(x).error, x);
      const double next_to_1 = 1 + s.number(-52, -20, true);
      check([&](auto v) { return log(v).value; }, mpfr_log, log(next_to_1).error, next_to_1);
    }
  }
  // Divisors from 1 to 2, where their reciprocal is least exact.
  for (int i = 0; i < 4000; ++i) {
    const double d = 1 + s.number(-20, -0.01, false), n = d * s.number(-12, -0.01, false);
    CAPTURE(n);
    CAPTURE(d);
    const dd z = arctangent_by_table(n, d);
    real y(n), x(d);
    mpfr_atan2(y.v, y.v, x.v, MPFR_RNDN);
    CHECK(contains({z.hi, z.lo, 0x1p-71 * z.hi}, y));
  }
}

TEST_CASE("rounding a double-double with a relative bound") {
  source s;
  int decided = 0, undecided = 0;
  for (int i = 0; i < 60000; ++i) {
    const double hi = s.number(-2, 9, true);
    const dd v{hi, s.word() % 2 == 0 ? s.number(-110, -46, true) : hi * 0x1p-53 * (1 + s.number(-20, -2, true))};
    const double bound = s.number(-70, -60, false);
    const int k = static_cast<int>(s.word() % 2200) - 1100;
    CAPTURE(v.hi);
    CAPTURE(v.lo);
    CAPTURE(k);
    const auto rounded = [&](double side, int power) {
      real x(v.hi);
      mpfr_add_d(x.v, x.v, v.lo, MPFR_RNDN);
      mpfr_add_d(x.v, x.v, side * (1 - 0x1p-12) * bound * v.hi, MPFR_RNDN);
      mpfr_mul_2si(x.v, x.v, power, MPFR_RNDN);
      return mpfr_get_d(x.v, MPFR_RNDN);
    };
    const decided_lanes<double> r = round_within(v, bound);
    ++(r.decided ? decided : undecided);
    if (r.decided) CHECK((same(r.value, rounded(-1, 0)) && same(r.value, rounded(1, 0))));
    if (v.hi < 0) continue;
    const decided_lanes<double> t = round_scaled_within(v, bound, static_cast<double>(k));
    if (t.decided) CHECK((same(t.value, rounded(-1, k)) && same(t.value, rounded(1, k))));
  }
  CHECK(decided > 20000);
  CHECK(undecided > 300);
}

TEST_CASE("rounding a ball of double-doubles times a power of two: normal, subnormal and overflowing results") {
  source s;
  int decided = 0, subnormal = 0;
  for (int i = 0; i < 60000; ++i) {
    const dd v = fast_two_sum(s.number(-2, 9, false), s.word() % 2 == 0 ? s.number(-110, -46, true) : 0.0);
    const one_ball a{v.hi, v.lo, s.word() % 2 == 0 ? 0.0 : s.number(-90, -70, false)};
    const int k = s.word() % 2 == 0 ? -1000 - static_cast<int>(s.word() % 100)
                                    : static_cast<int>(s.word() % 2000) - 1000 + (i % 8 == 0 ? 40 : 0);
    const decided_lanes<double> r = round_scaled(a, static_cast<double>(k));
    CAPTURE(a.hi);
    CAPTURE(k);
    // Both ends, rounded once, to binary64 with its subnormal numbers.
    const auto rounded = [&](int side) {
      real x(a.hi);
      mpfr_add_d(x.v, x.v, a.lo, MPFR_RNDN);
      mpfr_add_d(x.v, x.v, side * a.error, MPFR_RNDN);
      mpfr_mul_2si(x.v, x.v, k, MPFR_RNDN);
      return mpfr_get_d(x.v, MPFR_RNDN);
    };
    if (r.decided) {
      ++decided;
      subnormal += r.value < 0x1p-1022;
      CHECK(same(r.value, rounded(-1)));
      CHECK(same(r.value, rounded(1)));
    }
  }
  CHECK(decided > 30000);
  CHECK(subnormal > 10000);
}

TEST_SUITE_END();
