// Multi-limb numbers and balls against GMP and MPFR: every primitive's stated bound, at every level.
#include <doctest/doctest.h>
#include <gmpxx.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "librepdl/num/multi_limb_in_place.hpp"
#include "librepdl/ops/elementwise/gelu_backward.hpp"
#include "librepdl/ops/random/normal_exact.hpp"

namespace {

using namespace repdl::num;

// An MPFR number of `bits` bits.
struct real {
  explicit real(int bits = 6000) { mpfr_init2(v, bits); }
  real(const real& o) {
    mpfr_init2(v, mpfr_get_prec(o.v));
    mpfr_set(v, o.v, MPFR_RNDN);
  }
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
  mpfr_t v;
};

template <int L>
mpz_class integer(const multi_limb<L>& a) {
  mpz_class z;
  mpz_import(z.get_mpz_t(), L, -1, 8, 0, 0, a.limb);
  return a.negative != 0 ? mpz_class(-z) : z;
}
template <int L>
void set(real& r, const multi_limb<L>& a) {  // exact for a precision of at least 64 L bits
  REQUIRE(mpfr_set_z_2exp(r.v, integer(a).get_mpz_t(), a.exponent - 64 * L, MPFR_RNDN) == 0);
}
void set(real& r, magnitude m) { REQUIRE(mpfr_set_ui_2exp(r.v, m.significand, m.exponent, MPFR_RNDN) == 0); }
template <int L>
bool well_formed(const multi_limb<L>& a) {
  bool zero = true;
  for (int i = 0; i < L; ++i) zero = zero && a.limb[i] == 0;
  if (zero) return a.exponent == 0 && a.negative == 0;
  return a.limb[L - 1] >> 63 == 1 && a.negative <= 1;
}
// |exact - middle| in ulps of the middle.
template <int L>
double ulps(const multi_limb<L>& a, const real& exact) {
  real d;
  set(d, a);
  mpfr_sub(d.v, exact.v, d.v, MPFR_RNDA);
  mpfr_mul_2si(d.v, d.v, 64 * L - a.exponent, MPFR_RNDA);
  return std::fabs(mpfr_get_d(d.v, MPFR_RNDA));
}
template <int L>
bool contains(const ball<L>& a, const real& exact) {
  real d;
  real r(64);
  set(d, a.middle);
  set(r, a.radius);
  mpfr_sub(d.v, exact.v, d.v, MPFR_RNDZ);
  return well_formed(a.middle) && mpfr_cmpabs(d.v, r.v) <= 0;
}

template <int L>
ball<L> logarithm_of(ball<L> a) {
  to_logarithm(a);
  return a;
}
template <int L>
ball<L> logarithm_1p_of(ball<L> a) {
  to_logarithm_1p(a);
  return a;
}

struct source {
  std::mt19937_64 engine{20250301};
  std::uint64_t word() { return engine(); }
  int between(int lo, int hi) { return lo + static_cast<int>(engine() % static_cast<std::uint64_t>(hi - lo + 1)); }
  // Limbs random, or mostly 0 or all ones: carries, borrows, and the digit guesses of the division.
  template <int L>
  multi_limb<L> number(int range) {
    multi_limb<L> a;
    const int kind = between(0, 3);
    for (auto& w : a.limb) {
      const int what = kind == 0 ? 0 : between(0, 3);
      w = what == 0 ? word() : what == 1 ? 0 : what == 2 ? ~std::uint64_t{0} : word() >> between(0, 63);
    }
    a.limb[L - 1] |= std::uint64_t{1} << 63;
    if (kind == 3) a.limb[L - 1] = std::uint64_t{1} << 63 | (word() & 1);
    a.exponent = between(-range, range);
    a.negative = word() & 1;
    return a;
  }
};

// The same in place, of numbers u and v in two balls.
template <int L>
void check_in_place(const ball<L>& p, const ball<L>& q, const real& u, const real& v) {
  limb_space<L> space;
  real wide(20000);
  const auto check = [&](const ball<L>& by_value, const auto& change, int bits) {
    ball<L> b = p;
    change(b);
    CHECK(contains(b, wide));
    // As narrow: but for some ulps of quotients and roots.
    const magnitude most = add(add(by_value.radius, by_value.radius),
                               bits == 0 ? magnitude{0, 0} : power_magnitude(by_value.middle.exponent + bits - 64 * L));
    CHECK(b.radius.below_power(most.is_zero() ? -(std::int64_t{1} << 60) : most.exponent + 32));
  };
  for (const bool minus : {false, true}) {
    (minus ? mpfr_sub : mpfr_add)(wide.v, u.v, v.v, MPFR_RNDN);
    check(
        minus ? subtract(p, q) : add(p, q), [&](ball<L>& b) { add_to(b, q, minus, space); }, 0);
  }
  mpfr_mul(wide.v, u.v, v.v, MPFR_RNDN);
  check(
      multiply(p, q), [&](ball<L>& b) { multiply_by(b, q, space); }, 0);
  mpfr_div(wide.v, u.v, v.v, MPFR_RNDN);
  check(
      divide(p, q), [&](ball<L>& b) { divide_by(b, q, space); }, 8);
  if (p.middle.negative == 0) {
    mpfr_sqrt(wide.v, u.v, MPFR_RNDN);
    check(
        square_root(p), [&](ball<L>& b) { take_root(b, space); }, 8);
  }
  multi_limb<L> r = p.middle;  // an operand is the result
  bool inexact = false;
  multiply_to(r, q.middle, r, space.w, &inexact);
  bool by_value = false;
  const multi_limb<L> product = multiply(p.middle, q.middle, &by_value);
  CHECK(inexact == by_value);
  CHECK(compare_magnitudes(r, product) == 0);
  CHECK(r.negative == product.negative);
}

template <int L>
void check_arithmetic(source& r, int count) {
  for (int i = 0; i < count; ++i) {
    const multi_limb<L> a = r.number<L>(i % 3 == 0 ? 2 : 64 * L + 70);
    multi_limb<L> b = r.number<L>(i % 3 == 0 ? 2 : 64 * L + 70);
    if (i % 7 == 0) {  // total or nearly total cancellation
      b = negated(a);
      if (i % 2 == 0) b.limb[r.between(0, L - 2)] ^= r.word();
      if (i % 5 == 0) b.exponent += r.between(-1, 1);
    }
    real x;
    real y;
    real exact(64 * L * 5);
    set(x, a);
    set(y, b);
    bool inexact = false;
    const multi_limb<L> sum = add(a, b, &inexact);
    REQUIRE(mpfr_add(exact.v, x.v, y.v, MPFR_RNDN) == 0);
    CHECK(well_formed(sum));
    const double error = mpfr_zero_p(exact.v) != 0 ? (sum.is_zero() ? 0.0 : 1e9) : ulps(sum, exact);
    CHECK(error <= 1 + 0x1p-50);
    CHECK(inexact == (error != 0));

    inexact = false;
    const multi_limb<L> product = multiply(a, b, &inexact);
    REQUIRE(mpfr_mul(exact.v, x.v, y.v, MPFR_RNDN) == 0);
    CHECK(well_formed(product));
    CHECK(ulps(product, exact) <= 1);
    CHECK(inexact == (ulps(product, exact) != 0));

    inexact = false;
    const std::uint64_t word = b.limb[0] >> (i % 64);
    const multi_limb<L> multiple = multiply(a, word, &inexact);
    mpz_class factor;
    mpz_import(factor.get_mpz_t(), 1, -1, 8, 0, 0, &word);
    REQUIRE(mpfr_mul_z(exact.v, x.v, factor.get_mpz_t(), MPFR_RNDN) == 0);
    CHECK(well_formed(multiple));
    CHECK(multiple.is_zero() == (word == 0));
    CHECK(ulps(multiple, exact) <= 1);
    CHECK(inexact == (word != 0 && ulps(multiple, exact) != 0));

    inexact = false;
    const multi_limb<L> quotient = divide(i % 4 == 0 ? product : a, b, &inexact);
    if (i % 4 == 0) set(x, product);
    const bool rounded = mpfr_div(exact.v, x.v, y.v, MPFR_RNDN) != 0;
    CHECK(well_formed(quotient));
    CHECK(ulps(quotient, exact) <= 1);
    CHECK(inexact == (rounded || ulps(quotient, exact) != 0));

    // Balls: exact numbers somewhere inside, the result inside the result's ball.
    const ball<L> p{a, {r.word() >> 32 | 0x80000000u, a.exponent - 32 - r.between(20, 64 * L)}};
    const ball<L> q{b, {r.word() >> 32 | 0x80000000u, b.exponent - 32 - r.between(20, 64 * L)}};
    real u;
    real v;
    set(u, p.radius);
    mpfr_mul_si(u.v, u.v, r.between(-8, 8), MPFR_RNDN);
    mpfr_div_2ui(u.v, u.v, 3, MPFR_RNDN);
    set(x, a);
    mpfr_add(u.v, u.v, x.v, MPFR_RNDN);
    set(v, q.radius);
    mpfr_mul_si(v.v, v.v, r.between(-8, 8), MPFR_RNDN);
    mpfr_div_2ui(v.v, v.v, 3, MPFR_RNDN);
    mpfr_add(v.v, v.v, y.v, MPFR_RNDN);
    real wide(20000);
    mpfr_add(wide.v, u.v, v.v, MPFR_RNDN);
    CHECK(contains(add(p, q), wide));
    mpfr_sub(wide.v, u.v, v.v, MPFR_RNDN);
    CHECK(contains(subtract(p, q), wide));
    mpfr_mul(wide.v, u.v, v.v, MPFR_RNDN);
    CHECK(contains(multiply(p, q), wide));
    mpfr_div(wide.v, u.v, v.v, MPFR_RNDN);
    CHECK(contains(divide(p, q), wide));
    if (p.middle.negative == 0) {
      mpfr_sqrt(wide.v, u.v, MPFR_RNDN);
      CHECK(contains(square_root(p), wide));
      if constexpr (L <= 32) {  // there are constants for so many
        if (i % 8 == 0) {
          mpfr_log(wide.v, u.v, MPFR_RNDN);
          CHECK(contains(logarithm_of(p), wide));
        }
      }
    }
    check_in_place(p, q, u, v);
    check_in_place(exact_ball(a), exact_ball(b), x, y);
  }
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("multi-limb arithmetic stays within its bounds") {
  source r;
  check_arithmetic<2>(r, 4000);
  check_arithmetic<4>(r, 4000);
  check_arithmetic<8>(r, 1500);
  check_arithmetic<16>(r, 400);
  check_arithmetic<32>(r, 100);
  check_arithmetic<64>(r, 30);
}

template <int L>
void check_functions(source& r, int count) {
  for (int i = 0; i < count; ++i) {
    // e^x: all sizes up to 2^14, both signs, floats and long numbers, next to multiples of ln 2.
    multi_limb<L> x =
        i % 2 == 0 ? r.number<L>(0) : limbs_of_value<L>(std::bit_cast<double>(r.word() >> 12 | 1023ull << 52));
    x.exponent = r.between(-180, 13);
    x.negative = r.word() & 1;
    real exact(3000);
    real value(3000);
    if (i % 5 == 0) {
      bool inexact = false;
      x = multiply(limbs_of<L>(r.word() % 20000 + 1, 0, (r.word() & 1) != 0), ln2_ball<L>().middle, &inexact);
    }
    set(value, x);
    mpfr_exp(exact.v, value.v, MPFR_RNDN);
    const ball<L> e = exponential(x);
    CHECK(contains(e, exact));
    CHECK(ulps(e.middle, exact) < 1 + 0x1p-9);
    CHECK(e.radius.below_power(e.middle.exponent - 64 * L + 1));

    // ln x, near 1 as well.
    multi_limb<L> y = r.number<L>(i % 3 == 0 ? 5000 : 1);
    y.negative = 0;
    if (i % 5 == 0) {
      bool inexact = false;
      y = add(limbs_of<L>(1), limbs_of_power<L>(-r.between(1, 64 * L - 1), (r.word() & 1) != 0), &inexact);
    }
    set(value, y);
    mpfr_log(exact.v, value.v, MPFR_RNDN);
    const ball<L> l = logarithm(y);
    CHECK(contains(l, exact));
    const std::int64_t scale = mpfr_zero_p(exact.v) != 0 || mpfr_get_exp(exact.v) < 0 ? 0 : mpfr_get_exp(exact.v);
    CHECK(l.radius.below_power(scale + 5 - 64 * L));

    // ln(1 + v): relative accuracy, any size; ball arguments.
    multi_limb<L> v = r.number<L>(0);
    v.exponent = r.between(i % 2 == 0 ? -12000 : -40, 3);
    v.negative = 0;
    set(value, v);
    mpfr_log1p(exact.v, value.v, MPFR_RNDN);
    const ball<L> m = logarithm_1p_of(exact_ball(v));
    CHECK(contains(m, exact));
    CHECK(m.radius.below_power(m.middle.exponent + 45 - 64 * L));
    const ball<L> wide{v, power_magnitude(v.exponent - 20)};
    mpfr_mul_d(value.v, value.v, 1 + (i % 2 == 0 ? 0x1p-20 : -0x1p-20), MPFR_RNDN);
    mpfr_log1p(exact.v, value.v, MPFR_RNDN);
    CHECK(contains(logarithm_1p_of(wide), exact));

    // sqrt
    set(value, y);
    mpfr_sqrt(exact.v, value.v, MPFR_RNDN);
    const ball<L> s = square_root(exact_ball(y));
    CHECK(contains(s, exact));
    CHECK(s.radius.below_power(s.middle.exponent + 5 - 64 * L));

    // sin and cos of 2 pi a / 2^64: everywhere, near the octants' ends, near the zeros.
    std::uint64_t a = r.word();
    if (i % 2 == 0) a = static_cast<std::uint64_t>(r.between(0, 7)) << 61;
    if (i % 4 == 0) a += static_cast<std::uint64_t>(static_cast<std::int64_t>(r.word()) >> r.between(4, 63));
    for (const bool sine : {false, true}) {
      mpfr_const_pi(value.v, MPFR_RNDN);
      mpz_class turns;
      mpz_import(turns.get_mpz_t(), 1, -1, 8, 0, 0, &a);
      mpfr_mul_z(value.v, value.v, turns.get_mpz_t(), MPFR_RNDN);
      mpfr_div_2ui(value.v, value.v, 63, MPFR_RNDN);
      (sine ? mpfr_sin : mpfr_cos)(exact.v, value.v, MPFR_RNDN);
      const circular_value<L> c = circular<L>(a, sine);
      if (a << 2 == 0) {
        CHECK(c.exact == static_cast<int>(mpfr_get_si(exact.v, MPFR_RNDN)));
        CHECK(c.value.exact());
        CHECK(double_near(c.value.middle) == c.exact);
      } else {
        CHECK(c.exact == 2);
        CHECK(contains(c.value, exact));
        CHECK(c.value.radius.below_power(c.value.middle.exponent + 4 - 64 * L));
      }
    }

    // sin x and cos x of numbers of all sizes, some next to multiples of pi / 2.
    double z = std::ldexp(static_cast<double>(r.word() >> 11), r.between(-200, 971));
    if (i % 3 == 0) {
      bool inexact = false;
      multi_limb<L> turns = limbs_of<L>(r.word() >> r.between(0, 62) | 1);
      if (i % 2 == 0) turns = scaled(turns, r.between(0, 900));
      z = double_near(multiply(turns, scaled(quarter_pi_ball<L>().middle, 1), &inexact));
    }
    if ((r.word() & 1) != 0) z = -z;
    mpfr_set_d(value.v, z, MPFR_RNDN);
    for (const bool sine : {false, true}) {
      (sine ? mpfr_sin : mpfr_cos)(exact.v, value.v, MPFR_RNDN);
      const ball<L> c = circular<L>(z, sine);
      CHECK(contains(c, exact));
      const int size = std::fabs(z) < 0x1p54 ? std::max(std::ilogb(z) + 1, 0) : 0;
      CHECK(c.radius.below_power(size + 4 - 64 * L));
      if (sine && std::fabs(z) < 0.5) CHECK(c.radius.below_power(c.middle.exponent + 3 - 64 * L));
    }

    // What the distribution function of the normal distribution is made of, from the border of float up to where it ends.
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(r.word()));
    const double w = i % 4 == 0 ? f
                                : (i % 2 == 0 ? 20.5 : 3.0) * static_cast<float>(static_cast<int>(r.word() >> 40)) *
                                      0x1p-24 * (i % 3 == 0 ? -1 : 1);
    if (std::fabs(w) <= 20.5) {
      mpfr_set_d(value.v, static_cast<float>(w), MPFR_RNDN);
      real square(3000);
      mpfr_sqr(square.v, value.v, MPFR_RNDN);
      mpfr_div_2ui(square.v, square.v, 1, MPFR_RNDN);
      mpfr_exp(square.v, square.v, MPFR_RNDN);
      real half_pi(3000);
      mpfr_const_pi(half_pi.v, MPFR_RNDN);
      mpfr_div_2ui(half_pi.v, half_pi.v, 1, MPFR_RNDN);
      mpfr_sqrt(half_pi.v, half_pi.v, MPFR_RNDN);
      real root_two(3000);
      mpfr_sqrt_ui(root_two.v, 2, MPFR_RNDN);
      mpfr_div(value.v, value.v, root_two.v, MPFR_RNDN);
      mpfr_erf(exact.v, value.v, MPFR_RNDN);
      mpfr_mul(exact.v, exact.v, square.v, MPFR_RNDN);
      mpfr_mul(exact.v, exact.v, half_pi.v, MPFR_RNDN);
      const ball<L> n = normal_series<L>(static_cast<float>(w));
      CHECK(contains(n, exact));
      CHECK(n.radius.below_power(n.middle.exponent + 16 - 64 * L));
    }
  }
}

TEST_CASE("multi-limb functions stay within their bounds") {
  source r;
  check_functions<2>(r, 600);
  check_functions<4>(r, 600);
  check_functions<8>(r, 200);
  check_functions<16>(r, 60);
  check_functions<32>(r, 20);
  CHECK(normal_series<2>(0).exact());
  CHECK(exponential(zero_limbs<4>()).exact());
  CHECK(logarithm(limbs_of<4>(1)).middle.is_zero());
}

std::uint64_t pattern(double x) { return bits_of(x); }
std::uint64_t pattern(float x) { return bits_of(x); }
template <class T>
std::uint64_t pattern(T x) {
  return x.bits;
}

// RN_T of an MPFR number, as a bit pattern.
template <class T>
std::uint64_t round_real(const real& x) {
  using F = format<T>;
  const mpfr_exp_t low = mpfr_get_emin();
  const mpfr_exp_t high = mpfr_get_emax();
  real y(F::precision);
  const int t = mpfr_set(y.v, x.v, MPFR_RNDN);
  mpfr_set_emin(F::emin - F::precision + 2);
  mpfr_set_emax(F::emax + 1);
  mpfr_subnormalize(y.v, mpfr_check_range(y.v, t, MPFR_RNDN), MPFR_RNDN);
  mpfr_set_emin(low);
  mpfr_set_emax(high);
  return pattern(narrow<T>(mpfr_get_d(y.v, MPFR_RNDN)));  // exact
}

TEST_CASE("rounding a ball, every format" * doctest::test_suite("")) {
  source r;
  const auto check = [&]<class T>(T) {
    using F = format<T>;
    for (int i = 0; i < 20000; ++i) {
      multi_limb<4> a = r.number<4>(0);
      const int range = i % 4;
      a.exponent = range == 0   ? r.between(F::emin - F::precision - 3, F::emin + 3)
                   : range == 1 ? r.between(F::emax - 2, F::emax + 3)
                                : r.between(-20, 20);
      if (i % 3 == 0) {  // short: ties
        for (int k = 0; k < 3; ++k) a.limb[k] = 0;
        a.limb[3] &= ~std::uint64_t{0} << (64 - r.between(1, F::precision + 1));
        if (i % 2 == 0) a.limb[0] = 1;
      }
      real x;
      set(x, a);
      const auto expected = round_real<T>(x);
      CHECK(round_bits<T>(a) == expected);
      // A ball decides only if both ends agree.
      const ball<4> b{a, power_magnitude(a.exponent - r.between(1, 200))};
      const decided_value<T> d = round_ball<T>(b);
      real end;
      real rad(64);
      set(rad, b.radius);
      mpfr_add(end.v, x.v, rad.v, MPFR_RNDN);
      const auto top = round_real<T>(end);
      mpfr_sub(end.v, x.v, rad.v, MPFR_RNDN);
      const auto bottom = round_real<T>(end);
      if (d.decided) CHECK((top == bottom && pattern(d.value) == top));
      if (top == bottom && b.radius.below_power(a.exponent - 100) && i % 3 != 0) CHECK(d.decided);
    }
  };
  check(repdl::f16{});
  check(repdl::bf16{});
  check(float{});
  check(double{});
  CHECK_FALSE(round_ball<float>(ball<4>{zero_limbs<4>(), power_magnitude(-200)}).decided);  // the sign is not known
  CHECK_FALSE(round_ball<float>(ball<4>{limbs_of<4>(1), unknown()}).decided);
}

}  // namespace

TEST_SUITE_END();
