#include "reference/elementwise/elementary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "reference/elementwise/elementary_functions.hpp"

namespace repdl::reference {
namespace {

struct reals {
  mpfr_t x, y;
  reals() { mpfr_inits2(64, x, y, nullptr); }
  ~reals() {
    mpfr_clears(x, y, nullptr);
    mpfr_free_cache();
  }
};
thread_local reals real;

double value(const number& x) {
  if (x.kind == number_kind::infinite) return x.negative ? -HUGE_VAL : HUGE_VAL;
  const double v = std::ldexp(static_cast<double>(x.significand), x.exponent);
  return x.negative ? -v : v;
}

std::uint64_t of_double(dtype t, double v) { return convert(dtype::f64, t, std::bit_cast<std::uint64_t>(v)); }

std::uint64_t ziv(const elementary& f, dtype t, std::uint64_t x) {
  set_mpfr(real.x, t, x);
  // From 40 bits for 24 or less, from 80 for 53 on: the first ones decide most.
  for (mpfr_prec_t precision = t == dtype::f64 ? 80 : 40; precision <= 8192; precision *= 2) {
    mpfr_set_prec(real.y, precision);
    const unsigned errors = approximate(f.f, real.y, real.x);
    std::uint64_t bits = 0;
    if (errors != no_bound && round_certain(t, real.y, errors, &bits)) return bits;
  }
  throw std::logic_error("reference: Ziv's loop ended undecided: " + std::string(f.name));
}

}  // namespace

unsigned approximate(expression f, mpfr_ptr y, mpfr_srcptr x) {
  for (mpfr_prec_t guard = 16; guard <= 4096; guard *= 4) {  // more than 16 where terms cancel
    const ball v = f(series(ball(mpfr_get_prec(y) + guard, x))).c[0];
    mpfr_set(y, v.mid, MPFR_RNDN);  // half an ulp
    if (mpfr_nan_p(y) != 0 || mpfr_inf_p(y) != 0) break;
    if (mpfr_zero_p(y) != 0) continue;
    const mpfr_exp_t scale = mpfr_get_prec(y) - mpfr_get_exp(y);
    if (scale > 16000 || scale < -16000) break;  // no error_bound has such exponents
    const error_bound ulps = std::ldexp(v.radius, static_cast<int>(scale));
    if (ulps < 0x1p10L) return static_cast<unsigned>(ulps) + 2;
  }
  return no_bound;
}

const tail* tail_of(const elementary& f, dtype t, const number& x) {
  const double v = value(x);
  return v <= f.below.from.of(t) ? &f.below : v >= f.above.from.of(t) ? &f.above : nullptr;
}

std::uint64_t evaluate(const elementary& f, dtype t, std::uint64_t x) {
  if (t != dtype::f16 && t != dtype::bf16 && t != dtype::f32 && t != dtype::f64) {
    throw std::logic_error("reference: an elementary function of f16, bf16, f32 or f64");
  }
  const number n = widen(t, x);
  if (n.kind == number_kind::nan) return nan_bits(t);
  if (const auto bits = f.exact(t, n)) return *bits;
  if (const tail* beyond = tail_of(f, t, n)) return beyond->itself ? x : of_double(t, beyond->value);
  if (f.rational != nullptr) return round_exact(t, f.rational(rational(t, x)));
  return ziv(f, t, x);
}

const elementary* elementary_named(std::string_view name) {
  for (const elementary& f : elementary_functions)
    if (f.name == name) return &f;
  return nullptr;
}

outcome locate_rational(const elementary& f, dtype t, std::uint64_t x) {
  outcome where;
  const number n = widen(t, x);
  const bool beyond = n.kind == number_kind::infinite || n.kind == number_kind::nan || tail_of(f, t, n) != nullptr;
  const std::uint64_t result = evaluate(f, t, x);
  const number_kind kind = widen(t, result).kind;
  if (beyond && kind != number_kind::finite) return outcome_of_pattern(t, result);
  round_exact(t, beyond ? rational(t, result) : f.rational(rational(t, x)), &where);
  return where;
}

namespace elementary_detail {

exact_result nothing(dtype, const number&) { return {}; }
exact_result zero_itself(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return zero_bits(t, x.negative);
  return {};
}
exact_result half_at_zero(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return of_double(t, 0.5);
  return {};
}
exact_result one_at_zero(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return of_double(t, 1);
  return {};
}

namespace {
/// The exponent of a power of two, or nothing.
std::optional<int> power_of_two(const number& x) {
  if (x.kind != number_kind::finite || x.negative || !std::has_single_bit(x.significand)) return {};
  return x.exponent + std::countr_zero(x.significand);
}
}  // namespace

exact_result exp2_exact(dtype t, const number& x) {
  // Beyond 1100 the tails. 2^x is rational for no other rational x than the integers.
  const double v = value(x);
  if (std::fabs(v) > 1100 || v != std::trunc(v)) return {};
  return round(t, false, 1, static_cast<int>(v), false);
}
exact_result log_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, true);
  if (value(x) == 1) return 0;
  return {};
}
exact_result log2_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, true);
  if (const auto e = power_of_two(x)) return of_double(t, *e);
  return {};
}
exact_result log10_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, true);
  double power = 1;  // 10^22 = 2^22 5^22 has 52 bits before its zeros, 10^23 has 54; 10^-1 is no binary fraction
  for (int n = 0; n <= 22; ++n, power *= 10)
    if (value(x) == power) return of_double(t, n);
  return {};
}
exact_result log1p_exact(dtype t, const number& x) {
  if (value(x) == -1) return infinity_bits(t, true);
  return zero_itself(t, x);
}
exact_result rsqrt_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, x.negative);
  const auto e = power_of_two(x);
  if (e && *e % 2 == 0) return round(t, false, 1, -*e / 2, false);
  return {};
}
exact_result poles_at_ones(dtype t, const number& x) {
  if (std::fabs(value(x)) == 1) return infinity_bits(t, x.negative);
  return zero_itself(t, x);
}
exact_result zero_at_one(dtype, const number& x) {
  if (value(x) == 1) return 0;
  return {};
}
exact_result exp10_exact(dtype t, const number& x) {
  std::uint64_t power = 1;  // 10^n = 5^n 2^n, 5^27 < 2^63; at 23 it is a midpoint of 53 bits
  for (int n = 0; n <= 27; ++n, power *= 5)
    if (value(x) == n) return round(t, false, power, n, false);
  return {};
}
exact_result exp2m1_exact(dtype t, const number& x) {
  const double v = value(x);
  if (std::fabs(v) > 63 || v != std::trunc(v) || v == 0) return zero_itself(t, x);
  const int n = static_cast<int>(v);  // 2^n - 1, or -(2^-n - 1) 2^n
  return round(t, n < 0, (std::uint64_t{1} << std::abs(n)) - 1, std::min(n, 0), false);
}
exact_result exp10m1_exact(dtype t, const number& x) {
  std::uint64_t power = 10;
  for (int n = 1; n <= 19; ++n, power *= 10)
    if (value(x) == n) return round(t, false, power - 1, 0, false);
  return zero_itself(t, x);
}
exact_result sinpi_exact(dtype t, const number& x) {
  if (x.kind == number_kind::infinite) return nan_bits(t);
  if (std::fmod(value(x), 1) == 0) return zero_bits(t, x.negative);
  return {};
}
exact_result cospi_exact(dtype t, const number& x) {
  if (x.kind == number_kind::infinite) return nan_bits(t);
  if (std::fabs(std::fmod(value(x), 1)) == 0.5) return 0;
  return one_at_zero(t, x);
}
exact_result tanpi_exact(dtype t, const number& x) {
  // The sign that sinpi / cospi has, whose zeros are sinpi(+-n) = +-0 and cospi(n + 1/2) = +0.
  if (x.kind == number_kind::infinite) return nan_bits(t);
  const double turn = std::fabs(std::fmod(value(x), 2));
  const bool negative = x.negative != (turn >= 1);
  if (std::fmod(turn, 1) == 0) return zero_bits(t, negative);
  if (std::fmod(turn, 1) == 0.5) return infinity_bits(t, negative);
  return {};
}
exact_result sinc_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return of_double(t, 1);
  if (x.kind == number_kind::infinite) return nan_bits(t);
  if (std::fmod(value(x), 1) == 0) return 0;
  return {};
}
namespace {
/// 0, -1, -2 ..., -inf.
bool pole_of_gamma(const number& x) {
  return x.kind == number_kind::zero ||
         (x.negative && (x.kind == number_kind::infinite || std::fmod(value(x), 1) == 0));
}
}  // namespace

exact_result lgamma_exact(dtype t, const number& x) {
  if (pole_of_gamma(x)) return infinity_bits(t, false);
  if (value(x) == 1 || value(x) == 2) return 0;
  return {};
}
exact_result tgamma_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, x.negative);
  if (pole_of_gamma(x)) return nan_bits(t);
  // |gamma(x)| = pi / (|sin pi x| gamma(1 - x)), |sin pi x| >= 2 (the distance to a whole number). From 45 on numbers of at most 24
  // bits are at least 2^-18 from those, from 186 on, of 53, 2^-45: pi 2^17 / 45! < 2^-168, pi 2^44 / 186! < 2^-1090.
  const double v = value(x);
  if (v <= (t == dtype::f64 ? -186 : -45)) return zero_bits(t, std::fmod(std::ceil(-v), 2) == 1);
  // The odd part of (n - 1)!: 22! has one of 51 bits; 23!, 24! and those after have 56 bits and more.
  std::uint64_t odd = 1;
  int exponent = 0;
  for (unsigned n = 1; n <= 23; ++n) {
    if (v == n) return round(t, false, odd, exponent, false);
    odd *= n >> std::countr_zero(n);
    exponent += std::countr_zero(n);
  }
  return {};
}
exact_result digamma_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, !x.negative);
  if (pole_of_gamma(x)) return nan_bits(t);
  return {};
}
exact_result erfcinv_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, false);
  if (value(x) == 2) return infinity_bits(t, true);
  return zero_at_one(t, x);
}
exact_result ndtri_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return infinity_bits(t, true);
  if (value(x) == 1) return infinity_bits(t, false);
  if (value(x) == 0.5) return 0;
  return {};
}
namespace {

/// x/2 and a little more, away from 0, or less.
exact_result beside_half(dtype t, const number& x, bool outwards) {
  // x/2 + r with 0 < |r| < x^2 (silu: x^2/4; gelu: x^2 / sqrt(2 pi), both forms; hardswish: x^2/6; i1: |x|^3/16; i1e: x^2/2; each less
  // next terms of relative size |x|). x = s 2^e with s < 2^p, and x^2 < 2^(2e + 2p). From normal numbers below 2^-100, e < -100 - p
  // on, that is less than a unit 2^(e - 1 - k) of m below, k = 63 - p: 2e + 2p < e - 64 + p for e < -64 - p. So it is for subnormal ones.
  if (x.kind != number_kind::finite || std::fabs(value(x)) >= 0x1p-100) return zero_itself(t, x);
  const int more = 63 - format_of(t).precision;
  const std::uint64_t m = x.significand << more;  // |x|/2 = m 2^(exponent - 1 - more)
  return round(t, x.negative, outwards ? m : m - 1, x.exponent - 1 - more, true);
}

}  // namespace
exact_result half_and_more(dtype t, const number& x) { return beside_half(t, x, !x.negative); }
exact_result half_outwards(dtype t, const number& x) { return beside_half(t, x, true); }
exact_result half_inwards(dtype t, const number& x) { return beside_half(t, x, false); }
exact_result tanhshrink_exact(dtype t, const number& x) {
  if (x.kind == number_kind::zero) return 0;
  const double v = std::fabs(value(x));
  if (v < 0x1p-360) return zero_bits(t, x.negative);  // x^3/3
  // From 32 to the tail, |x| - 1 + r with 0 < r < 2 e^-64 < 2^-91. |x| = s 2^e, s of p bits: e from 6 - p to 2, or with p = 24, 11
  // and 8 to 26 - p. With k = 62 - p more bits, 1 is 2^(k - e) units, k - e from 7 to 56, and a unit is 2^-56 or more:
  // the number and its sticky bit.
  if (v < 32 || tail_of(*elementary_named("tanhshrink"), t, x) != nullptr) return {};
  const int more = 62 - format_of(t).precision;
  const std::uint64_t m = (x.significand << more) - (std::uint64_t{1} << (more - x.exponent));
  return round(t, x.negative, m, x.exponent - more, true);
}

}  // namespace elementary_detail
}  // namespace repdl::reference
