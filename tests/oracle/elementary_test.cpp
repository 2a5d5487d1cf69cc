// The oracle's functions of one variable: against MPFR alone, or other formulas for the same function; the balls and
// series that they are made of; and the tabulation of all binary32 results against one result at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "reference/elementwise/elementary_functions.hpp"
#include "reference/elementwise/tabulate.hpp"
#include "reference/samples.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;

constexpr dtype formats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

/// y = f(x) for numbers, with all bits of y right but a few; written without series.
using formula = void (*)(mpfr_ptr y, mpfr_srcptr x);

template <int (*F)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)>
constexpr formula direct = [](mpfr_ptr y, mpfr_srcptr x) { F(y, x, MPFR_RNDN); };

void half_of_one_plus(mpfr_ptr y, mpfr_srcptr x) {  // y = x (1 + y) / 2
  mpfr_add_ui(y, y, 1, MPFR_RNDN);
  mpfr_mul(y, y, x, MPFR_RNDN);
  mpfr_div_2ui(y, y, 1, MPFR_RNDN);
}
void tanh_of_half(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_div_2ui(y, x, 1, MPFR_RNDN);
  mpfr_tanh(y, y, MPFR_RNDN);
}
void scale(mpfr_ptr y, const char* decimal) {
  mpfr_t c;
  mpfr_init2(c, mpfr_get_prec(y));
  mpfr_set_str(c, decimal, 10, MPFR_RNDN);
  mpfr_mul(y, y, c, MPFR_RNDN);
  mpfr_clear(c);
}
void two_over_pi_root(mpfr_ptr y) {  // y = sqrt(2 / pi)
  mpfr_const_pi(y, MPFR_RNDN);
  mpfr_ui_div(y, 2, y, MPFR_RNDN);
  mpfr_sqrt(y, y, MPFR_RNDN);
}

struct other_formula {
  std::string_view name;
  formula f;
};
const other_formula others[] = {
    {"exp", direct<mpfr_exp>},
    {"exp2", direct<mpfr_exp2>},
    {"expm1", direct<mpfr_expm1>},
    {"log", direct<mpfr_log>},
    {"log2", direct<mpfr_log2>},
    {"log10", direct<mpfr_log10>},
    {"log1p", direct<mpfr_log1p>},
    {"rsqrt", direct<mpfr_rec_sqrt>},
    {"sin", direct<mpfr_sin>},
    {"cos", direct<mpfr_cos>},
    {"tanh", direct<mpfr_tanh>},
    {"erf", direct<mpfr_erf>},
    {"erfc", direct<mpfr_erfc>},
    {"erfinv",
     [](mpfr_ptr y, mpfr_srcptr x) {  // Newton's method, with 250 bits
       const double v = mpfr_get_d(x, MPFR_RNDN), pole = std::fabs(v) - 1;
       if (pole >= 0) return pole > 0 ? mpfr_set_nan(y) : mpfr_set_inf(y, v > 0 ? 1 : -1);
       mpfr_t z, step, slope;
       mpfr_inits2(250, z, step, slope, nullptr);
       mpfr_set_d(z, std::fabs(v) < 0.5 ? 0.9 * v : std::copysign(std::sqrt(-std::log1p(-v * v)), v), MPFR_RNDN);
       for (int i = 0; i < 12; ++i) {
         mpfr_erf(step, z, MPFR_RNDN);
         mpfr_sub(step, step, x, MPFR_RNDN);
         mpfr_sqr(slope, z, MPFR_RNDN);
         mpfr_exp(slope, slope, MPFR_RNDN);
         mpfr_mul(step, step, slope, MPFR_RNDN);
         two_over_pi_root(slope);  // sqrt(pi) / 2 is 1 / (sqrt 2 times it)
         mpfr_div(step, step, slope, MPFR_RNDN);
         mpfr_sqrt_ui(slope, 2, MPFR_RNDN);
         mpfr_div(step, step, slope, MPFR_RNDN);
         mpfr_sub(z, z, step, MPFR_RNDN);
       }
       mpfr_set(y, z, MPFR_RNDN);
       mpfr_clears(z, step, slope, nullptr);
     }},
    {"sigmoid",
     [](mpfr_ptr y, mpfr_srcptr x) {
       tanh_of_half(y, x);
       mpfr_add_ui(y, y, 1, MPFR_RNDN);
       mpfr_div_2ui(y, y, 1, MPFR_RNDN);
     }},
    {"log_sigmoid",
     [](mpfr_ptr y, mpfr_srcptr x) {  // x - ln(1 + e^x)
       mpfr_exp(y, x, MPFR_RNDN);
       mpfr_log1p(y, y, MPFR_RNDN);
       mpfr_sub(y, x, y, MPFR_RNDN);
     }},
    {"silu",
     [](mpfr_ptr y, mpfr_srcptr x) {
       tanh_of_half(y, x);
       half_of_one_plus(y, x);
     }},
    {"gelu",
     [](mpfr_ptr y, mpfr_srcptr x) {
       mpfr_sqrt_ui(y, 2, MPFR_RNDN);
       mpfr_div(y, x, y, MPFR_RNDN);
       mpfr_erf(y, y, MPFR_RNDN);
       half_of_one_plus(y, x);
     }},
    {"gelu_tanh",
     [](mpfr_ptr y, mpfr_srcptr x) {
       mpfr_t u;
       mpfr_init2(u, mpfr_get_prec(y));
       mpfr_pow_ui(u, x, 3, MPFR_RNDN);
       scale(u, "0.044715");
       mpfr_add(u, u, x, MPFR_RNDN);
       two_over_pi_root(y);
       mpfr_mul(y, y, u, MPFR_RNDN);
       mpfr_tanh(y, y, MPFR_RNDN);
       half_of_one_plus(y, x);
       mpfr_clear(u);
     }},
    {"mish",
     [](mpfr_ptr y, mpfr_srcptr x) {
       mpfr_exp(y, x, MPFR_RNDN);
       mpfr_log1p(y, y, MPFR_RNDN);
       mpfr_tanh(y, y, MPFR_RNDN);
       mpfr_mul(y, y, x, MPFR_RNDN);
     }},
    {"selu",
     [](mpfr_ptr y, mpfr_srcptr x) {
       mpfr_set(y, x, MPFR_RNDN);
       if (mpfr_sgn(x) < 0) {
         mpfr_exp(y, x, MPFR_RNDN);
         mpfr_sub_ui(y, y, 1, MPFR_RNDN);
         scale(y, "1.6732632423543772848170429916717");
       }
       scale(y, "1.0507009873554804934193349852946");
     }},
    {"softsign",
     [](mpfr_ptr y, mpfr_srcptr x) {
       mpfr_abs(y, x, MPFR_RNDN);
       mpfr_add_ui(y, y, 1, MPFR_RNDN);
       mpfr_div(y, x, y, MPFR_RNDN);
     }},
    {"tanhshrink",
     [](mpfr_ptr y, mpfr_srcptr x) {
       mpfr_tanh(y, x, MPFR_RNDN);
       mpfr_sub(y, x, y, MPFR_RNDN);
     }},
};

// What MPFR rounds itself, with operands next to which results overflow, are first subnormal, vanish or reach a limit, in binary32
// and binary64, and the hardest ones known.
using mpfr_function = int (*)(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t);
#if MPFR_VERSION < MPFR_VERSION_NUM(4, 2, 0)  // older ones lack these, which then are not compared
constexpr mpfr_function mpfr_exp2m1 = nullptr, mpfr_exp10m1 = nullptr, mpfr_log2p1 = nullptr, mpfr_log10p1 = nullptr,
                        mpfr_sinpi = nullptr, mpfr_cospi = nullptr, mpfr_tanpi = nullptr;
#endif
int lgamma_of(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t rounding) {
  int sign = 0;
  return mpfr_lgamma(y, &sign, x, rounding);
}
void sinc(mpfr_ptr y, mpfr_srcptr x) {
  if (mpfr_integer_p(x) != 0) return mpfr_set_zero(y, 1);
  mpfr_t angle;
  mpfr_init2(angle, mpfr_get_prec(y));
  mpfr_const_pi(angle, MPFR_RNDN);
  mpfr_mul(angle, angle, x, MPFR_RNDN);
  mpfr_sin(y, angle, MPFR_RNDN);
  mpfr_div(y, y, angle, MPFR_RNDN);
  mpfr_clear(angle);
}
/// erfc(-x / sqrt 2) / 2
void normal(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_sqrt_ui(y, 2, MPFR_RNDN);
  mpfr_div(y, x, y, MPFR_RNDN);
  mpfr_neg(y, y, MPFR_RNDN);
  mpfr_erfc(y, y, MPFR_RNDN);
  mpfr_div_2ui(y, y, 1, MPFR_RNDN);
}
void log_normal(mpfr_ptr y, mpfr_srcptr x) {
  if (mpfr_sgn(x) > 0) {
    mpfr_t opposite;
    mpfr_init2(opposite, 53);
    mpfr_neg(opposite, x, MPFR_RNDN);
    normal(y, opposite);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_log1p(y, y, MPFR_RNDN);
    mpfr_clear(opposite);
  } else if (mpfr_cmp_d(x, -0x1p14) > 0) {
    normal(y, x);
    mpfr_log(y, y, MPFR_RNDN);
  } else {  // -x^2 / 2 - ln(2 pi x^2) / 2 - 1 / x^2 + ..., far beyond what decides
    mpfr_t square, v;
    mpfr_inits2(mpfr_get_prec(y), square, v, nullptr);
    mpfr_sqr(square, x, MPFR_RNDN);
    mpfr_const_pi(v, MPFR_RNDN);
    mpfr_mul(v, v, square, MPFR_RNDN);
    mpfr_mul_2ui(v, v, 1, MPFR_RNDN);
    mpfr_log(v, v, MPFR_RNDN);
    mpfr_add(y, square, v, MPFR_RNDN);
    mpfr_div_2ui(y, y, 1, MPFR_RNDN);
    mpfr_ui_div(v, 1, square, MPFR_RNDN);
    mpfr_add(y, y, v, MPFR_RNDN);
    mpfr_neg(y, y, MPFR_RNDN);
    mpfr_clears(square, v, nullptr);
  }
}
/// I_n(x), or e^-|x| I_n(x): the power series, whose terms are ((x / 2)^(2k + n)) / (k! (k + n)!), or from 3000 on Hankel's, whose
/// terms go on by (4n^2 - (2k + 1)^2) / (8 (k + 1) x).
template <int N, bool Scaled>
void bessel(mpfr_ptr y, mpfr_srcptr x) {
  const bool far = std::fabs(mpfr_get_d(x, MPFR_RNDN)) > 3000;
  if (far && !Scaled) return mpfr_set_inf(y, N == 1 ? mpfr_sgn(x) : 1);
  mpfr_t t, v;
  mpfr_inits2(mpfr_get_prec(y), t, v, nullptr);
  mpfr_abs(v, x, MPFR_RNDN);
  if (far) {
    mpfr_const_pi(t, MPFR_RNDN);
    mpfr_mul(t, t, v, MPFR_RNDN);
    mpfr_mul_2ui(t, t, 1, MPFR_RNDN);
    mpfr_rec_sqrt(t, t, MPFR_RNDN);
  } else {
    mpfr_div_2ui(v, v, 1, MPFR_RNDN);
    mpfr_set_ui(t, 1, MPFR_RNDN);
    if (N == 1) mpfr_set(t, v, MPFR_RNDN);
    mpfr_sqr(v, v, MPFR_RNDN);
  }
  mpfr_set(y, t, MPFR_RNDN);
  for (long k = 0; mpfr_get_exp(t) > mpfr_get_exp(y) - mpfr_get_prec(y) - 8; ++k) {
    if (far) {
      mpfr_mul_si(t, t, (2 * k + 1) * (2 * k + 1) - 4 * N, MPFR_RNDN);
      mpfr_div_si(t, t, 8 * (k + 1), MPFR_RNDN);
      mpfr_div(t, t, v, MPFR_RNDN);
    } else {
      mpfr_mul(t, t, v, MPFR_RNDN);
      mpfr_div_si(t, t, (k + 1) * (k + 1 + N), MPFR_RNDN);
    }
    mpfr_add(y, y, t, MPFR_RNDN);
  }
  if (Scaled && !far) {
    mpfr_abs(v, x, MPFR_RNDN);
    mpfr_neg(v, v, MPFR_RNDN);
    mpfr_exp(v, v, MPFR_RNDN);
    mpfr_mul(y, y, v, MPFR_RNDN);
  }
  if (N == 1) mpfr_setsign(y, y, mpfr_signbit(x), MPFR_RNDN);
  mpfr_clears(t, v, nullptr);
}
struct own_rounding {
  std::string_view name;
  mpfr_function f;
  std::vector<double> borders;
  formula g = nullptr;        ///< where MPFR has no such function, nonzero numbers
  formula inverse = nullptr;  ///< nor that; the function is defined from 0 to `end`
  double end = 0;
};
const own_rounding own_roundings[] = {
    {"tan", mpfr_tan, {1.5707963267948966, 0x1.dffffffffff1fp-22, 6381956970095103 * 0x1p797}},
    {"asin", mpfr_asin, {0.5}},
    {"acos", mpfr_acos, {0.5, -0.5}},
    {"atan", mpfr_atan, {6.3e7, 5.8e15}},
    {"sinh", mpfr_sinh, {11.783, 89.41599, 710.4758600739439}},
    {"cosh", mpfr_cosh, {11.783, 89.41599, 710.4758600739439, 0x1p-12, 0x1p-26}},
    {"asinh", mpfr_asinh, {}},
    {"acosh", mpfr_acosh, {1.5}},
    {"atanh", mpfr_atanh, {0.5}},
    {"cbrt", mpfr_cbrt, {}},
    {"exp10", mpfr_exp10, {4.816, 38.53184, -37.92978, -45.15450, 308.2547155599167, -307.6526555685888, -323.60724}},
    {"exp2m1", mpfr_exp2m1, {16, 128, -25, 1024, -54, -53.99999}},
    {"exp10m1", mpfr_exp10m1, {4.816, 38.53184, -7.525750, 308.2547155599167, -16.2556}},
    {"log2p1", mpfr_log2p1, {}},
    {"log10p1", mpfr_log10p1, {}},
    {"sinpi", mpfr_sinpi, {1e6, 1e15}},
    {"cospi", mpfr_cospi, {1e6, 1e15, 0x1p-14, 0x1p-28}},
    {"tanpi", mpfr_tanpi, {1e6, 1e15}},
    {"sinc", nullptr, {1e6, 1e15, 0x1p-14, 0x1p-28}, sinc},
    {"lgamma", lgamma_of, {1.4616321449683622, -2.4570247382208006, 4.0850034e36, 2.5563e305}},
    {"tgamma",
     mpfr_gamma,
     {1.4616321449683622, 35.0401, 171.62437695630272, -35.0401, -40.5, -41, -45, -170.5, -183, -186}},
    {"digamma", mpfr_digamma, {1.4616321449683622, -0.5040830082644554}},
    {"ndtr", nullptr, {-13.0, -14.17, -37.5194, -38.4854, 5.2, 8.29}, normal},
    {"log_ndtr", nullptr, {13, 14.17, 37.5194, 38.4854, -12.7, -19, 2.6087637e19, 1.9e154}, log_normal},
    {"i0", nullptr, {91.9, 713.986, 0x1p-11, 0x1p-26}, bessel<0, false>},
    {"i1", nullptr, {91.9, 713.987}, bessel<1, false>},
    {"i0e", nullptr, {80, 112, 192, 0x1p-24, 0x1p-53}, bessel<0, true>},
    {"i1e", nullptr, {80, 112, 192}, bessel<1, true>},
    {"erfcinv", nullptr, {0.5, 1, 1e-6, 1.5}, nullptr, direct<mpfr_erfc>, 2},
    {"ndtri", nullptr, {0.25, 0.5, 5e-7, 0.75}, nullptr, normal, 1},
};

std::uint64_t below(word_stream& w, std::uint64_t n) { return w.next64() % n; }

TEST_SUITE_BEGIN("portable values");

// 900 bits know 1 - tanh 300, and what is left where terms cancel down to the square of the least number; for binary64, 2400 bits, and 800.
TEST_CASE("elementary: other formulas, with 900 bits and more, round to the same patterns") {
  mpfr_t x, y;
  mpfr_init2(x, 53);
  mpfr_init2(y, 900);
  std::uint64_t stream = 0;
  for (const other_formula& o : others) {
    const elementary& f = *elementary_named(o.name);
    for (const dtype t : formats) {
      const format& g = format_of(t);
      word_stream w(4, stream++);
      int wrong = 0;
      mpfr_set_prec(y, t == dtype::f64 ? 2400 : 900);
      for (int i = 0; i < (t == dtype::f64 ? 200 : 600); ++i) {
        // Any pattern, or one of exponents -12 to 11 and so on the scale on which most functions bend.
        std::uint64_t b = w.next64() & (g.sign_bit() | (g.sign_bit() - 1));
        if (i % 3 != 0) {
          const std::uint64_t fraction = (std::uint64_t{1} << (g.precision - 1)) - 1;
          b = (b & (g.sign_bit() | fraction)) | (static_cast<std::uint64_t>(g.emax - 12) + below(w, 24))
                                                    << (g.precision - 1);
        }
        const number n = widen(t, b);
        // Infinities, NaN and zeros are the next case's. 900 bits know nothing of 1 + e^-1000.
        if (n.kind != number_kind::finite) continue;
        const double v = std::ldexp(static_cast<double>(n.significand), n.exponent);
        if (v > (t == dtype::f64 ? 800 : 300) && (o.name == "tanhshrink" || (o.name == "log_sigmoid" && !n.negative)))
          continue;
        set_mpfr(x, t, b);
        o.f(y, x);
        const std::uint64_t result = evaluate(f, t, b);
        std::uint64_t expected = round_mpfr(t, y);
        if (mpfr_zero_p(y) != 0) expected = result & g.sign_bit();  // 1 - 1 lost it
        wrong += result != expected;
      }
      CHECK_MESSAGE(wrong == 0, std::string(o.name));
    }
  }
  mpfr_clears(x, y, nullptr);
}

std::uint64_t pattern(dtype t, double v) { return convert(dtype::f64, t, std::bit_cast<std::uint64_t>(v)); }

/// MPFR rounds to the format's precision, and then as its exponents need it.
std::uint64_t rounded_by_mpfr(mpfr_function f, dtype t, std::uint64_t in) {
  const format& g = format_of(t);
  mpfr_t x, y;
  mpfr_init2(x, 53);
  mpfr_init2(y, g.precision);
  set_mpfr(x, t, in);
  const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
  mpfr_set_emin(g.ulp_min() + 1);
  mpfr_set_emax(g.emax + 1);
  const int side = f(y, x, MPFR_RNDN);
  mpfr_subnormalize(y, side, MPFR_RNDN);
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  const std::uint64_t result = mpfr_nan_p(y) != 0 ? nan_bits(t) : round_mpfr(t, y);
  mpfr_clears(x, y, nullptr);
  return result;
}

/// The same of a formula with many bits: what is left of terms that cancel, beside a midpoint, is x^2 times as large as they are.
std::uint64_t rounded(formula f, dtype t, std::uint64_t in) {
  mpfr_t x, y;
  mpfr_init2(x, 53);
  set_mpfr(x, t, in);
  mpfr_init2(y, std::abs(mpfr_get_exp(x)) > 30 ? 2400 : 160);
  f(y, x);
  const std::uint64_t result = round_mpfr(t, y);
  mpfr_clears(x, y, nullptr);
  return result;
}
/// Whether x lies between the inverse function's values at the midpoints next to a result, which is no zero.
bool between_midpoints(formula inverse, dtype t, std::uint64_t in, std::uint64_t result) {
  mpfr_t x, middle, beside, v;
  mpfr_inits2(200, x, middle, beside, v, nullptr);
  set_mpfr(x, t, in);
  int order[2] = {};
  for (const std::uint64_t d : {0, 1}) {
    set_mpfr(middle, t, result - d);
    set_mpfr(beside, t, result - d + 1);
    mpfr_add(middle, middle, beside, MPFR_RNDN);
    mpfr_div_2ui(middle, middle, 1, MPFR_RNDN);
    inverse(v, middle);
    order[d] = mpfr_cmp(v, x);
  }
  mpfr_clears(x, middle, beside, v, nullptr);
  return order[0] * order[1] < 0;
}

/// Where functions have exact results, or midpoints, and powers of two down to the least number.
std::vector<double> numbers_of_few_bits() {
  std::vector<double> all{1e22, 1e23};
  double power = 1;
  for (int n = 0; n <= 64; ++n, power *= 10) {
    all.insert(all.end(), {n + 0.0, n / 4.0, std::ldexp(1, n) - 1, std::ldexp(1, -n) - 1, 1.0 * n * n * n});
    if (n < 20) all.insert(all.end(), {power, power - 1});
  }
  for (int n = 1; n <= 1074; n += n < 64 ? 1 : 17) all.push_back(std::ldexp(1, -n));
  all.push_back(0x1p-1074);
  return all;
}

TEST_CASE("elementary: MPFR's own rounding") {
  const std::vector<double> few_bits = numbers_of_few_bits();
  std::uint64_t stream = 0;
  for (const own_rounding& o : own_roundings) {
    if (o.f == nullptr && o.g == nullptr && o.inverse == nullptr) continue;
    const elementary& f = *elementary_named(o.name);
    for (const dtype t : formats) {
      const format& g = format_of(t);
      word_stream w(7, ++stream);
      int wrong = 0;
      const auto compare = [&](std::uint64_t x) {
        const std::uint64_t result = evaluate(f, t, x);
        if (o.f == nullptr && widen(t, x).kind != number_kind::finite) return;  // the next case has them
        std::uint64_t expected = 0;
        if (o.inverse == nullptr) {
          expected = o.f != nullptr ? rounded_by_mpfr(o.f, t, x) : rounded(o.g, t, x);
        } else if ((x & g.sign_bit()) != 0 || x > pattern(t, o.end)) {
          expected = nan_bits(t);
        } else if (x == pattern(t, o.end)) {
          return;
        } else {  // 0 in the middle alone
          const bool nonzero = widen(t, result).kind == number_kind::finite;
          const bool known = nonzero ? between_midpoints(o.inverse, t, x, result)
                                     : result % g.sign_bit() == 0 && x == pattern(t, o.end / 2);
          expected = known ? result : ~result;
        }
        if (result != expected && wrong++ < 3) {
          MESSAGE(std::string(o.name) << " " << std::string(format_name(t)) << " " << x << ": " << result << " for "
                                      << expected);
        }
      };
      const auto about = [&](double v) {
        const std::uint64_t middle = pattern(t, v);
        for (const std::uint64_t d : {0, 1, 2, 3}) {
          compare(middle + d);
          if (middle % g.sign_bit() >= d) compare(middle - d);
        }
      };
      for (const sample_class c : element_classes) {
        const array x = std::move(fill_operands(c, t, 1, 12, 7, stream).front());
        for (std::size_t i = 0; i < 12; ++i) compare(x.get(i));
      }
      for (int i = 0; i < 60; ++i) {
        compare(compose(t, w.flip(), w.between(-12, 10), w.next64()));
        compare(compose(t, w.flip(), w.between(g.ulp_min(), g.emax), w.next64()));
      }
      for (const double v : few_bits) {
        compare(pattern(t, v));
        compare(pattern(t, -v));
      }
      // Tails begin where they are said to: a result at the bound, where it is not yet the limit, would be wrong.
      about(f.below.from.of(t));
      about(f.above.from.of(t));
      for (const double v : o.borders) {
        about(v);
        about(-v);
      }
      CHECK_MESSAGE(wrong == 0, std::string(o.name));
    }
  }
}

TEST_CASE("elementary: zeros, infinities, poles, exact results") {
  constexpr double inf = HUGE_VAL;
  const double nan = std::nan("");
  struct line {
    std::string_view name;
    double x, y;
  };
  const line lines[] = {
      {"exp", -0.0, 1},
      {"exp", -inf, 0},
      {"exp", inf, inf},
      {"exp2", 0, 1},
      {"exp2", -3, 0.125},
      {"exp2", 10, 1024},
      {"exp2", -inf, 0},
      {"exp2", inf, inf},
      {"expm1", 0, 0},
      {"expm1", -0.0, -0.0},
      {"expm1", -inf, -1},
      {"expm1", inf, inf},
      {"log", 0, -inf},
      {"log", -0.0, -inf},
      {"log", -1, nan},
      {"log", 1, 0},
      {"log", inf, inf},
      {"log", -inf, nan},
      {"log2", -0.0, -inf},
      {"log2", 0.25, -2},
      {"log2", 1, 0},
      {"log2", -1, nan},
      {"log2", inf, inf},
      {"log10", -0.0, -inf},
      {"log10", 1, 0},
      {"log10", 1000, 3},
      {"log10", -1, nan},
      {"log10", inf, inf},
      {"log1p", -0.0, -0.0},
      {"log1p", 0, 0},
      {"log1p", -1, -inf},
      {"log1p", -1.5, nan},
      {"log1p", inf, inf},
      {"log1p", -inf, nan},
      {"rsqrt", 0, inf},
      {"rsqrt", -0.0, -inf},
      {"rsqrt", 4, 0.5},
      {"rsqrt", 0.25, 2},
      {"rsqrt", -4, nan},
      {"rsqrt", inf, 0},
      {"rsqrt", -inf, nan},
      {"sin", -0.0, -0.0},
      {"sin", inf, nan},
      {"sin", -inf, nan},
      {"cos", 0, 1},
      {"cos", -inf, nan},
      {"tan", -0.0, -0.0},
      {"tan", inf, nan},
      {"asin", -0.0, -0.0},
      {"asin", 1, 1.5707963267948966},
      {"asin", 1.0078125, nan},
      {"acos", 1, 0},
      {"acos", -1, 3.141592653589793},
      {"acos", -0.0, 1.5707963267948966},
      {"acos", -inf, nan},
      {"atan", -0.0, -0.0},
      {"atan", -inf, -1.5707963267948966},
      {"atan", inf, 1.5707963267948966},
      {"sinh", -0.0, -0.0},
      {"sinh", -inf, -inf},
      {"sinh", inf, inf},
      {"cosh", -0.0, 1},
      {"cosh", -inf, inf},
      {"asinh", -0.0, -0.0},
      {"asinh", -inf, -inf},
      {"acosh", 1, 0},
      {"acosh", inf, inf},
      {"acosh", 0.99609375, nan},
      {"acosh", -0.0, nan},
      {"acosh", -inf, nan},
      {"atanh", -0.0, -0.0},
      {"atanh", 1, inf},
      {"atanh", -1, -inf},
      {"atanh", -1.0078125, nan},
      {"atanh", inf, nan},
      {"cbrt", -0.0, -0.0},
      {"cbrt", -27, -3},
      {"cbrt", 0x1p-12, 0x1p-4},
      {"cbrt", -inf, -inf},
      {"cbrt", inf, inf},
      {"exp10", -0.0, 1},
      {"exp10", 3, 1000},
      {"exp10", -inf, 0},
      {"exp10", inf, inf},
      {"exp2m1", -0.0, -0.0},
      {"exp2m1", 3, 7},
      {"exp2m1", -1, -0.5},
      {"exp2m1", -inf, -1},
      {"exp2m1", inf, inf},
      {"exp10m1", -0.0, -0.0},
      {"exp10m1", 2, 99},
      {"exp10m1", -inf, -1},
      {"exp10m1", inf, inf},
      {"log2p1", -0.0, -0.0},
      {"log2p1", 7, 3},
      {"log2p1", -0.5, -1},
      {"log2p1", -1, -inf},
      {"log2p1", -1.5, nan},
      {"log2p1", inf, inf},
      {"log10p1", -0.0, -0.0},
      {"log10p1", 99, 2},
      {"log10p1", -1, -inf},
      {"log10p1", -1.5, nan},
      {"log10p1", inf, inf},
      {"sinpi", -0.0, -0.0},
      {"sinpi", 2, 0},
      {"sinpi", -1, -0.0},
      {"sinpi", -1.5, 1},
      {"sinpi", -0x1p60, -0.0},
      {"sinpi", inf, nan},
      {"cospi", -0.0, 1},
      {"cospi", -0.5, 0},
      {"cospi", 3, -1},
      {"cospi", -0x1p60, 1},
      {"cospi", -inf, nan},
      {"tanpi", -0.0, -0.0},
      {"tanpi", 1, -0.0},
      {"tanpi", -1, 0},
      {"tanpi", 2, 0},
      {"tanpi", -2, -0.0},
      {"tanpi", 0.5, inf},
      {"tanpi", -0.5, -inf},
      {"tanpi", 1.5, -inf},
      {"tanpi", -1.5, inf},
      {"tanpi", 0.75, -1},
      {"tanpi", -0x1p60, -0.0},
      {"tanpi", -inf, nan},
      {"sinc", -0.0, 1},
      {"sinc", -2, 0},
      {"sinc", 0x1p60, 0},
      {"sinc", -0.5, 0.6366197723675814},
      {"sinc", inf, nan},
      {"tanh", -0.0, -0.0},
      {"tanh", -inf, -1},
      {"erf", -0.0, -0.0},
      {"erf", inf, 1},
      {"erf", -inf, -1},
      {"erfc", -0.0, 1},
      {"erfc", inf, 0},
      {"erfc", -inf, 2},
      {"erfcinv", -0.0, inf},
      {"erfcinv", 0, inf},
      {"erfcinv", 1, 0},
      {"erfcinv", 2, -inf},
      {"erfcinv", -0.0078125, nan},
      {"erfcinv", inf, nan},
      {"ndtr", -0.0, 0.5},
      {"ndtr", -inf, 0},
      {"ndtr", inf, 1},
      {"log_ndtr", -0.0, -0.6931471805599453},
      {"log_ndtr", inf, -0.0},
      {"log_ndtr", -inf, -inf},
      {"ndtri", -0.0, -inf},
      {"ndtri", 0, -inf},
      {"ndtri", 0.5, 0},
      {"ndtri", 1, inf},
      {"ndtri", 1.0078125, nan},
      {"ndtri", -inf, nan},
      {"i0", -0.0, 1},
      {"i0", -inf, inf},
      {"i1", -0.0, -0.0},
      {"i1", -inf, -inf},
      {"i1", inf, inf},
      {"i0e", -0.0, 1},
      {"i0e", -inf, 0},
      {"i0e", inf, 0},
      {"i1e", -0.0, -0.0},
      {"i1e", -inf, -0.0},
      {"i1e", inf, 0},
      {"lgamma", -0.0, inf},
      {"lgamma", -3, inf},
      {"lgamma", 1, 0},
      {"lgamma", 2, 0},
      {"lgamma", -0x1p60, inf},
      {"lgamma", -inf, inf},
      {"lgamma", inf, inf},
      {"tgamma", -0.0, -inf},
      {"tgamma", 0, inf},
      {"tgamma", -1, nan},
      {"tgamma", 5, 24},
      {"tgamma", 8, 5040},
      {"tgamma", -inf, nan},
      {"tgamma", inf, inf},
      {"digamma", 0, -inf},
      {"digamma", -0.0, inf},
      {"digamma", -2, nan},
      {"digamma", -inf, nan},
      {"digamma", inf, inf},
      {"erfinv", -0.0, -0.0},
      {"erfinv", 1, inf},
      {"erfinv", -1, -inf},
      {"erfinv", 1.0078125, nan},
      {"erfinv", -inf, nan},
      {"sigmoid", 0, 0.5},
      {"sigmoid", -inf, 0},
      {"sigmoid", inf, 1},
      {"log_sigmoid", inf, -0.0},
      {"log_sigmoid", -inf, -inf},
      {"log_sigmoid", -0.0, -0.6931471805599453},
      {"silu", -0.0, -0.0},
      {"silu", -inf, -0.0},
      {"silu", inf, inf},
      {"gelu", -0.0, -0.0},
      {"gelu", -inf, -0.0},
      {"gelu", inf, inf},
      {"gelu_tanh", 0, 0},
      {"gelu_tanh", -inf, -0.0},
      {"gelu_tanh", inf, inf},
      {"mish", -0.0, -0.0},
      {"mish", -inf, -0.0},
      {"mish", inf, inf},
      {"selu", -0.0, -0.0},
      {"selu", inf, inf},
      {"selu", -inf, -1.7580993408473768},
      {"softsign", -0.0, -0.0},
      {"softsign", inf, 1},
      {"softsign", -inf, -1},
      {"softsign", 7, 0.875},
      {"hardsigmoid", -3, 0},
      {"hardsigmoid", 3, 1},
      {"hardsigmoid", 0, 0.5},
      {"hardsigmoid", -inf, 0},
      {"hardsigmoid", inf, 1},
      {"hardsigmoid", 1.5, 0.75},
      {"hardswish", -3, -0.0},
      {"hardswish", 3, 3},
      {"hardswish", -0.0, -0.0},
      {"hardswish", -inf, -0.0},
      {"hardswish", inf, inf},
      {"hardswish", -1.5, -0.375},
      {"tanhshrink", -0.0, 0},
      {"tanhshrink", 0, 0},
      {"tanhshrink", inf, inf},
      {"tanhshrink", -inf, -inf},
  };
  std::vector<std::string_view> seen;
  for (const line& l : lines) {
    seen.push_back(l.name);
    for (const dtype t : formats) {
      const double largest = t == dtype::f16 ? 65504 : 3e38;
      if (std::isfinite(l.x) && std::fabs(l.x) > largest) continue;
      INFO(std::string(l.name) << " " << l.x);
      CHECK(evaluate(*elementary_named(l.name), t, pattern(t, l.x)) == pattern(t, l.y));
      CHECK(evaluate(*elementary_named(l.name), t, nan_bits(t) | 1) == nan_bits(t));
    }
  }
  for (const elementary& f : elementary_functions) CHECK(std::count(seen.begin(), seen.end(), f.name) > 1);
  const auto at = [](std::string_view name, dtype t, double x) {
    return evaluate(*elementary_named(name), t, pattern(t, x));
  };
  CHECK(at("exp2", dtype::f32, -150) == 0);  // a tie
  CHECK(at("exp2", dtype::f32, 128) == infinity_bits(dtype::f32, false));
  constexpr double inf64 = HUGE_VAL;
  const line wide[] = {
      {"exp2", -1074, 0x1p-1074},
      {"exp2", -1075, 0},  // a tie
      {"exp2", -0x1.0cbffffffffffp10, 0x1p-1074},
      {"exp2", -0x1.0cc0000000001p10, 0},
      {"exp2", 1023, 0x1p1023},
      {"exp2", 0x1.fffffffffffffp9, 0x1.ffffffffffd3ap1023},
      {"exp2", 1024, inf64},
      {"log2", 0x1p-1074, -1074},
      {"log2", 0x1p1023, 1023},
      {"log10", 1e22, 22},
      {"log10", 1e11, 11},
      {"exp10", 22, 1e22},
      {"exp10", 23, 1e23},  // a tie
      {"exp2m1", 53, 0x1.fffffffffffffp52},
      {"exp2m1", 54, 0x1p54},  // a tie
      {"exp2m1", -54, -1},     // a tie
      {"exp2m1", -53, -0x1.fffffffffffffp-1},
      {"exp10m1", 15, 999999999999999},
      {"exp10m1", 16, 1e16},  // a tie
      {"log2p1", 0x1.fffffffffffffp52, 53},
      {"log2p1", -0x1.fffffffffffffp-1, -53},
      {"log10p1", 999999999999999, 15},
      {"cosh", 0x1p-26, 0x1.0000000000001p0},
      {"tan", 0x1p-1074, 0x1p-1074},
      {"asinh", 0x1p-1074, 0x1p-1074},
      {"cbrt", -0x1p-1074, -0x1p-358},
      {"rsqrt", 0x1p-1074, 0x1p537},
      {"rsqrt", 0x1p1022, 0x1p-511},
      // A midpoint and something, by a Taylor series' next term.
      {"exp", 0x1p-53, 0x1.0000000000001p0},
      {"exp", -0x1p-54, 1},
      {"sigmoid", 0x1p-52, 0.5},
      {"sigmoid", -0x1p-53, 0.5},
      {"log1p", 0x1p-53, 0x1p-53},
      {"expm1", -0x1p-53, -0x1p-53},
      {"tanhshrink", 0x1.0000000000001p53, 0x1.0000000000001p53},
      {"tanhshrink", -0x1.8p53, -0x1.8p53},
      {"tanhshrink", 0x1p54, 0x1p54},
      {"tanhshrink", 0x1p53, 0x1.fffffffffffffp52},
      {"tanhshrink", 33, 32},
      {"tanhshrink", 0x1.8p-358, 0x1p-1074},  // x^3/3 = 1.125 2^-1074
      {"tanhshrink", 0x1p-1074, 0},
      {"tanhshrink", -0x1p-1074, -0.0},
      {"hardsigmoid", 3 * 0x1p-53, 0.5},  // a tie
      {"hardsigmoid", 0x1p-1074, 0.5},
      {"softsign", 0x1p56, 1},
      {"softsign", 0x1p52, 0x1.ffffffffffffep-1},
      {"silu", 0x1p-1074, 0x1p-1074},
      {"silu", -0x1p-1074, -0.0},
  };
  for (const line& l : wide) {
    INFO(std::string(l.name) << " " << l.x);
    CHECK(std::bit_cast<double>(at(l.name, dtype::f64, l.x)) == l.y);
    CHECK(std::signbit(std::bit_cast<double>(at(l.name, dtype::f64, l.x))) == std::signbit(l.y));
  }
  // The exact part beside a midpoint: odd multiples of the least number round towards +infinity.
  for (const char* name : {"silu", "gelu", "gelu_tanh", "hardswish"}) {
    for (const dtype t : formats) {
      CHECK(evaluate(*elementary_named(name), t, 5) == 3);
      CHECK(evaluate(*elementary_named(name), t, 5 | format_of(t).sign_bit()) == (2 | format_of(t).sign_bit()));
    }
  }
  CHECK(at("tanhshrink", dtype::f32, 0x1.000002p24) == pattern(dtype::f32, 0x1.000002p24));
  CHECK(at("tanhshrink", dtype::f16, -2050) == pattern(dtype::f16, -2050));
  CHECK(at("tanhshrink", dtype::bf16, 258) == pattern(dtype::bf16, 258));
  CHECK(at("tanhshrink", dtype::f32, 3 * 0x1p-50) == 4);                          // 4.5 less something
  CHECK(at("hardsigmoid", dtype::f32, 3 * 0x1p-24) == pattern(dtype::f32, 0.5));  // a tie
}

TEST_CASE("elementary: a Taylor polynomial and its remainder enclose the function") {
  std::uint64_t stream = 0;
  for (const elementary& f : elementary_functions) {
    word_stream w(5, stream++);
    int tried = 0, wrong = 0;
    for (int i = 0; i < 200; ++i) {
      const double c =
          std::ldexp(1 + static_cast<double>(below(w, 1 << 20)) * 0x1p-20, static_cast<int>(below(w, 12)) - 8) *
          (below(w, 2) != 0 ? -1 : 1);
      if (c <= f.below.from.narrow || c >= f.above.from.narrow) continue;
      const double width = std::fabs(c) * std::ldexp(1.0, -1 - static_cast<int>(below(w, 12)));
      const double s = static_cast<double>(below(w, 1 << 21)) * 0x1p-20 - 1;
      const int order = static_cast<int>(below(w, 6));
      ball whole(64, c);
      whole.radius = width;
      const ball remainder = f.f(series(order + 1, whole, ball(64, width))).c.back();
      if (!(remainder.most() < HUGE_VAL)) continue;
      ++tried;
      const series p = f.f(series(order, ball(192, c), ball(192, width)));
      ball sum = p.c.back();
      for (int k = order; k-- > 0;) sum = sum * ball(192, s) + p.c[static_cast<std::size_t>(k)];
      ball x(600, s);
      x = x * ball(600, width) + ball(600, c);
      const ball exact = f.f(series(x)).c[0];
      const ball difference = exact - sum;
      // The middles are nearer than the radii and the remainder together.
      wrong += !(std::fabs(mpfr_get_d(difference.mid, MPFR_RNDZ)) <= difference.radius + remainder.most());
    }
    CHECK_MESSAGE(wrong == 0, std::string(f.name));
    CHECK_MESSAGE(tried > 30, std::string(f.name));
  }
}

/// Tabulates runs of `length` inputs and compares `checks` of each with the pointwise oracle; the run at each place,
/// and random ones: as many in each of the 512 binades as `rounds`. Returns the number of wrong elements.
std::uint64_t wrong_elements(const elementary& f, std::uint64_t length, std::uint64_t checks, int rounds,
                             std::uint64_t stream) {
  std::vector<std::uint32_t> out(length);
  word_stream w(6, stream);
  std::uint64_t wrong = 0;
  const auto compare = [&](std::uint64_t first) {
    tabulate(f, static_cast<std::uint32_t>(first), length, out.data());
    for (std::uint64_t k = 0; k < checks; ++k) {
      const std::uint64_t i = checks == length ? k : below(w, length);
      wrong += evaluate(f, dtype::f32, first + i) != out[i];
    }
  };
  const auto about = [&](std::uint64_t middle) {
    compare(std::clamp<std::uint64_t>(middle, length / 2, (std::uint64_t{1} << 32) - length / 2) - length / 2);
  };
  constexpr std::uint64_t binade = std::uint64_t{1} << 23, sign = std::uint64_t{1} << 31;
  for (const std::uint64_t s : {std::uint64_t{0}, sign}) {
    for (std::uint64_t e = 0; e < 256; ++e) {
      for (int r = 0; r < rounds; ++r) compare(s + e * binade + below(w, binade - length));
    }
    // Zeros, subnormals, infinities; tails; where something changes: 1, pi, least and largest results.
    for (const double v : {0.0, 0x1p-126, 0x1p-125, 0x1p-50, 1.0, 2.0, 3.0, 3.141592653589793, 32.0, 88.722839,
                           87.336544, 103.97208, 104.0, 0x1p24, 0x1p25, 0x1p127}) {
      about(s + pattern(dtype::f32, v));
    }
    about(s + pattern(dtype::f32, f.above.from.narrow));
    about(s + pattern(dtype::f32, f.below.from.narrow) % sign);
    about(s + format_of(dtype::f32).infinity());
  }
  return wrong;
}

TEST_CASE("elementary: tabulated results are the pointwise oracle's") {
  std::uint64_t stream = 0;
  for (const elementary& f : elementary_functions) {
    const bool slow = f.name == "erfcinv" || f.name == "ndtri";  // next to their poles
    CHECK_MESSAGE(wrong_elements(f, slow ? 1 << 7 : 1 << 10, slow ? 8 : 24, 0, stream) == 0, std::string(f.name));
    std::uint32_t one = 0;
    for (const std::uint32_t x : {0x00000001U, 0x3f9e0652U, 0xbf9e0652U, 0xffffffffU}) {  // a single element
      tabulate(f, x, 1, &one);
      CHECK(one == evaluate(f, dtype::f32, x));
    }
    ++stream;
  }
  // One run of each binade, of functions of each kind.
  for (const char* name : {"log1p", "sin", "gelu", "tan", "cospi", "sinc"})
    CHECK(wrong_elements(*elementary_named(name), 1 << 12, 8, 1, stream) == 0);
}

// 10^8 elements of each function (REPDL_TABULATED_CHECKS: another number), stratified by binade.
TEST_CASE("elementary: tabulated results are the pointwise oracle's [long]" * doctest::skip()) {
  const char* const wanted = std::getenv("REPDL_TABULATED_CHECKS");
  const std::uint64_t total = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 100000000;
  constexpr std::uint64_t length = 1 << 16;
  constexpr int rounds = 8;
  const std::uint64_t checks = std::min<std::uint64_t>(length, total / (512 * rounds) + 1);
  std::atomic<std::size_t> next{0};
  std::vector<std::uint64_t> wrong(std::size(elementary_functions));
  std::vector<std::thread> pool;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    pool.emplace_back([&] {
      for (std::size_t k = next++; k < wrong.size(); k = next++) {
        wrong[k] = wrong_elements(elementary_functions[k], length, checks, rounds, 100 + k);
      }
    });
  }
  for (std::thread& t : pool) t.join();
  for (std::size_t k = 0; k < wrong.size(); ++k)
    CHECK_MESSAGE(wrong[k] == 0, std::string(elementary_functions[k].name));
}

}  // namespace

TEST_SUITE_END();
