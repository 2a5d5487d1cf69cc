// The error functions in double-double, of R = double, and in multi-limb balls, against MPFR.
#include "librepdl/num/dd_error_function.hpp"

#include <doctest/doctest.h>
#include <gmpxx.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "librepdl/num/multi_limb_error_function.hpp"

namespace {

using namespace repdl::num;

struct real {
  explicit real(int bits = 200) { mpfr_init2(v, bits); }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  ~real() { mpfr_clear(v); }
  mpfr_t v;
};

class source {
 public:
  std::uint64_t word() { return engine_(); }
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  double fraction() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  std::mt19937_64 engine_{53};
};

// A double-word number next to hi: low parts of every size up to half an ulp.
dd draw(source& r, double hi) {
  const int kind = r.below(4);
  const double lo = kind == 0 ? 0.0 : (2 * r.fraction() - 1) * 0x1p-53 * hi * (kind == 1 ? 0x1p-30 : 1);
  return fast_two_sum(hi, lo);
}

void set(real& z, const dd& a) {
  mpfr_set_d(z.v, a.hi, MPFR_RNDN);
  mpfr_add_d(z.v, z.v, a.lo, MPFR_RNDN);
}

// e^(z^2) erfc z: of small z as it is written; of z > 3.5, where MPFR takes milliseconds, 1 / (sqrt(pi) (z + (1/2)/(z + (2/2)/(z + ...)))).
void set_scaled_erfc(real& f, const real& z) {
  if (mpfr_cmp_d(z.v, 3.5) < 0) {
    real w;
    mpfr_sqr(w.v, z.v, MPFR_RNDN);
    mpfr_exp(w.v, w.v, MPFR_RNDN);
    mpfr_erfc(f.v, z.v, MPFR_RNDN);
    mpfr_mul(f.v, f.v, w.v, MPFR_RNDN);
    return;
  }
  const double square = mpfr_get_d(z.v, MPFR_RNDN) * mpfr_get_d(z.v, MPFR_RNDN);
  mpfr_set(f.v, z.v, MPFR_RNDN);
  for (int m = 30 + static_cast<int>(1400 / square); m > 0; --m) {
    mpfr_ui_div(f.v, static_cast<unsigned long>(m), f.v, MPFR_RNDN);
    mpfr_div_2ui(f.v, f.v, 1, MPFR_RNDN);
    mpfr_add(f.v, f.v, z.v, MPFR_RNDN);
  }
  real root;
  mpfr_const_pi(root.v, MPFR_RNDN);
  mpfr_sqrt(root.v, root.v, MPFR_RNDN);
  mpfr_mul(f.v, f.v, root.v, MPFR_RNDN);
  mpfr_ui_div(f.v, 1, f.v, MPFR_RNDN);
}

// |a / exact - 1|
double relative_error(const dd& a, const real& exact) {
  real d;
  mpfr_sub_d(d.v, exact.v, a.hi, MPFR_RNDN);
  mpfr_sub_d(d.v, d.v, a.lo, MPFR_RNDN);
  mpfr_div(d.v, d.v, exact.v, MPFR_RNDN);
  return std::fabs(mpfr_get_d(d.v, MPFR_RNDA));
}

void check(const dd& z) {
  CAPTURE(z.hi);
  CAPTURE(z.lo);
  real argument;
  real exact;
  set(argument, z);
  const bool small = z.hi < erf_end;
  if (small) {
    mpfr_erf(exact.v, argument.v, MPFR_RNDN);
  } else {
    set_scaled_erfc(exact, argument);
  }
  const dd f = erf_or_scaled_erfc(z);
  CHECK(relative_error(f, exact) <= std::exp2(small ? -73 : z.hi < scaled_erfc_middle ? -69.5 : -69.8));
  CHECK(f.hi + f.lo == f.hi);
  const dd alone = small ? erf_near_zero(z) : scaled_erfc(z);
  CHECK(alone.hi == f.hi);
  CHECK(alone.lo == f.lo);
  if (small) {
    const dd odd = erf_near_zero(dd{-z.hi, -z.lo});
    CHECK(odd.hi == -f.hi);
    CHECK(odd.lo == -f.lo);
  }
}

TEST_SUITE_BEGIN("portable values");

TEST_CASE("error functions in double-double stay within their bounds") {
  source r;
  for (int i = 0; i < 8000; ++i) {
    check(draw(r, erf_end * r.fraction()));
    check(draw(r, std::ldexp(1 + r.fraction(), -1 - r.below(899))));
  }
  for (int i = 0; i < 4000; ++i) {
    check(draw(r, erf_end + (scaled_erfc_middle - erf_end) * (i % 4 == 0 ? std::pow(r.fraction(), 8) : r.fraction())));
    check(draw(
        r, scaled_erfc_middle + (scaled_erfc_end - scaled_erfc_middle) * (1 - 0x1p-40) * std::pow(r.fraction(), 2)));
  }
  // The pieces' ends, and where t is next to 0.
  for (const double z :
       {erf_end, scaled_erfc_middle, std::sqrt(49.0 / 128), 512.0 / 127 - 69.0 / 32, 2048.0 / 233 - 17.0 / 16}) {
    for (int i = 0; i < 100; ++i) check(draw(r, z + std::ldexp(2 * r.fraction() - 1, -r.below(53))));
  }
  check({scaled_erfc_end, 0});
  check({scaled_erfc_end, -0x1p-50});
  check({erf_end, -0x1p-55});
  check({scaled_erfc_middle, -0x1p-53});
  check({0x1p-900, 0});
  CHECK(erf_or_scaled_erfc(dd{0, 0}).hi == 0);
  // The fraction that says what is right beyond 3.5.
  for (const double z : {3.5, 3.75, 4.5, 6.0, 27.0}) {
    real argument;
    real exact;
    real fraction;
    mpfr_set_d(argument.v, z, MPFR_RNDN);
    set_scaled_erfc(fraction, argument);
    mpfr_sqr(exact.v, argument.v, MPFR_RNDN);
    mpfr_exp(exact.v, exact.v, MPFR_RNDN);
    mpfr_erfc(argument.v, argument.v, MPFR_RNDN);
    mpfr_mul(exact.v, exact.v, argument.v, MPFR_RNDN);
    mpfr_sub(fraction.v, fraction.v, exact.v, MPFR_RNDN);
    CHECK(std::fabs(mpfr_get_d(fraction.v, MPFR_RNDN)) <= 0x1p-140);
  }
}

template <int L>
void set(real& r, const multi_limb<L>& a) {
  mpz_class z;
  mpz_import(z.get_mpz_t(), L, -1, 8, 0, 0, a.limb);
  REQUIRE(mpfr_set_z_2exp(r.v, z.get_mpz_t(), a.exponent - 64 * L, MPFR_RNDN) == 0);
  if (a.negative != 0) mpfr_neg(r.v, r.v, MPFR_RNDN);
}
template <int L>
bool contains(const ball<L>& a, const real& exact) {
  real d(static_cast<int>(mpfr_get_prec(exact.v)));
  real radius;
  set(d, a.middle);
  mpfr_set_ui_2exp(radius.v, a.radius.significand, a.radius.exponent, MPFR_RNDN);
  mpfr_sub(d.v, exact.v, d.v, MPFR_RNDZ);
  return mpfr_cmpabs(d.v, radius.v) <= 0;
}

// An exact z, and a ball around another middle that has it.
template <int L>
void check_balls(source& r, double leading, bool negative) {
  CAPTURE(L);
  CAPTURE(leading);
  multi_limb<L> z = limbs_of_value<L>(leading);
  if (r.below(2) == 0) z.limb[0] |= r.word() >> (L == 2 ? 12 : 0);
  z.negative = negative ? 1 : 0;
  bool inexact = false;
  const std::int64_t width = z.exponent - 4 - r.below(64 * L - 8);
  const multi_limb<L> moved = add(z, limbs_of_power<L>(width, r.below(2) == 0), &inexact);
  const ball<L> wide{moved, power_magnitude(inexact ? width + 1 : width)};

  const int bits = 64 * L + 300;
  real argument(bits);
  real erf(bits);
  real erfc(bits);
  set(argument, z);
  mpfr_erf(erf.v, argument.v, MPFR_RNDN);
  if (leading < 6) {
    mpfr_erfc(erfc.v, argument.v, MPFR_RNDN);
  } else {  // faster
    real tail(bits);
    mpfr_abs(argument.v, argument.v, MPFR_RNDN);
    mpfr_set(tail.v, argument.v, MPFR_RNDN);
    for (int m = static_cast<int>(0.07 * bits * bits / (leading * leading)) + bits / 4; m > 0; --m) {
      mpfr_ui_div(tail.v, static_cast<unsigned long>(m), tail.v, MPFR_RNDN);
      mpfr_div_2ui(tail.v, tail.v, 1, MPFR_RNDN);
      mpfr_add(tail.v, tail.v, argument.v, MPFR_RNDN);
    }
    mpfr_const_pi(erfc.v, MPFR_RNDN);
    mpfr_sqrt(erfc.v, erfc.v, MPFR_RNDN);
    mpfr_mul(tail.v, tail.v, erfc.v, MPFR_RNDN);
    mpfr_sqr(erfc.v, argument.v, MPFR_RNDN);
    mpfr_neg(erfc.v, erfc.v, MPFR_RNDN);
    mpfr_exp(erfc.v, erfc.v, MPFR_RNDN);
    mpfr_div(erfc.v, erfc.v, tail.v, MPFR_RNDN);
    if (negative) mpfr_ui_sub(erfc.v, 2, erfc.v, MPFR_RNDN);
  }

  const ball<L> near = error_function(exact_ball(z));
  const ball<L> far = complementary_error_function(exact_ball(z));
  CHECK(contains(near, erf));
  CHECK(contains(far, erfc));
  CHECK(contains(error_function(wide), erf));
  CHECK(contains(complementary_error_function(wide), erfc));
  // 16 bits lost of erf's; of erfc's as many as the header says.
  CHECK(near.radius.below_power(near.middle.exponent + 16 - 64 * L));
  const bool series = leading * leading < 8 * L;
  CHECK(far.radius.below_power(far.middle.exponent + 16 + (series && !negative ? 12 * L : 0) - 64 * L));
}

template <int L>
void check_level(source& r, int count) {
  for (int i = 0; i < count; ++i) {
    const double end = i % 3 == 0 ? 38.5 : i % 3 == 1 ? 6.5 : 1.0;
    const double leading = i % 8 == 7 ? std::ldexp(1 + r.fraction(), -1 - r.below(1000)) : end * r.fraction();
    check_balls<L>(r, leading, r.below(4) == 0);
  }
  const double border = std::sqrt(8.0 * L);
  check_balls<L>(r, border * (1 - 0x1p-50), false);
  check_balls<L>(r, border * (1 + 0x1p-50), false);
  check_balls<L>(r, 0x1p-1022, false);
  check_balls<L>(r, 63.5, false);
  check_balls<L>(r, 27.25, true);
}

TEST_CASE("error functions in balls contain what is right") {
  source r;
  check_level<2>(r, 120);
  check_level<4>(r, 80);
  check_level<8>(r, 40);
  check_level<16>(r, 16);
  check_level<32>(r, 6);
  const ball<4> zero = exact_ball(zero_limbs<4>());
  CHECK(error_function(zero).exact());
  CHECK(error_function(zero).middle.is_zero());
  CHECK(double_near(complementary_error_function(zero).middle) == 1);
  CHECK_FALSE(error_function(exact_ball(limbs_of<4>(64))).radius.below_power(0));  // nothing is known
  CHECK_FALSE(complementary_error_function(ball<4>{limbs_of<4>(3), power_magnitude(-10)}).radius.below_power(0));
}

TEST_SUITE_END();

}  // namespace
