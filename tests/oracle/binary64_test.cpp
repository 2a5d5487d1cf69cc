// The oracle of elementwise operations in binary64: against MPFR's own rounding of single functions, and against formulas in MPFR with
// so many bits that no bound is needed.
#include "reference/samples/binary64.hpp"

#include <doctest/doctest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "reference/attributes.hpp"
#include "reference/elementwise/elementwise.hpp"
#include "reference/numbers/number.hpp"
#include "reference/samples.hpp"

namespace {

using namespace repdl;
using namespace repdl::reference;

std::uint64_t bits_of(double v) { return std::bit_cast<std::uint64_t>(v); }
double number_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }
/// NaN made canonical.
std::uint64_t pattern(double v) { return std::isnan(v) ? nan_bits(dtype::f64) : bits_of(v); }

/// Some operands of every class, and numbers of exponents where most functions bend.
template <class F>
void for_each_input(const ops::elementwise_row& row, std::int64_t count, F&& f) {
  for (const sample_class c : element_classes) {
    const std::vector<array> in = fill_operands(c, row, dtype::f64, count, 5, static_cast<unsigned>(c));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::uint64_t x[ops::most_operands] = {};
      for (std::size_t k = 0; k < in.size(); ++k) x[k] = in[k].get(i);
      f(c, x);
    }
  }
  word_stream w(6, 1);
  for (std::int64_t i = 0; i < 4 * count; ++i) {
    std::uint64_t x[ops::most_operands] = {};
    for (int k = 0; k < row.arity; ++k) {
      const bool negative = w.flip();
      const int exponent = w.between(-12, 10);
      x[k] = row.operand_type(k, dtype::f64) == dtype::boolean ? w.below(2)
                                                               : compose(dtype::f64, negative, exponent, w.next64());
    }
    f(sample_class::normal_range, x);
  }
}

TEST_SUITE_BEGIN("portable values");

// MPFR rounds to 53 bits, and then as the exponents of binary64 need it.
struct own_rounding {
  std::string_view name;
  int (*unary)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  int (*binary)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t) = nullptr;
  std::vector<double> borders = {};  ///< operands next to which results overflow, or vanish, or are first subnormal
};
double rounded_by_mpfr(const own_rounding& f, const std::uint64_t* in) {
  const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
  mpfr_set_emin(-1073);
  mpfr_set_emax(1024);
  mpfr_t x, y, z;
  mpfr_inits2(53, x, y, z, nullptr);
  mpfr_set_d(x, number_of(in[0]), MPFR_RNDN);
  mpfr_set_d(y, number_of(in[1]), MPFR_RNDN);
  const int side = f.unary != nullptr ? f.unary(z, x, MPFR_RNDN) : f.binary(z, x, y, MPFR_RNDN);
  mpfr_subnormalize(z, side, MPFR_RNDN);
  const double result = mpfr_get_d(z, MPFR_RNDN);
  mpfr_clears(x, y, z, nullptr);
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  return result;
}

const own_rounding own_roundings[] = {
    {"exp", mpfr_exp, nullptr, {709.782712893384, -708.3964185322641, -745.1332191019411}},
    {"exp2", mpfr_exp2, nullptr, {1024, -1022, -1074, -1075}},
    {"expm1", mpfr_expm1, nullptr, {709.782712893384, -37.42994775023705}},
    {"log", mpfr_log, nullptr, {1}},
    {"log2", mpfr_log2, nullptr, {1, 2, 0x1p-1074}},
    {"log10", mpfr_log10, nullptr, {1, 10, 1e22, 1e23}},
    {"log1p", mpfr_log1p, nullptr, {-1, 0x1p-53, -0x1p-53}},
    {"rsqrt", mpfr_rec_sqrt, nullptr, {1, 4, 0x1p-1074}},
    {"sin", mpfr_sin, nullptr, {3.141592653589793, 6381956970095103 * 0x1p797}},
    {"cos", mpfr_cos, nullptr, {1.5707963267948966, 6381956970095103 * 0x1p797}},
    {"tanh", mpfr_tanh, nullptr, {19.06154746539849, 0x1.e0000000000e1p-22}},
    {"erf", mpfr_erf, nullptr, {5.921587195794507}},
    {"erfc", mpfr_erfc, nullptr, {26.543258, 27.226017, -5.863584748755167}},
    {"pow", nullptr, mpfr_pow},
    {"hypot", nullptr, mpfr_hypot},
    {"atan2", nullptr, mpfr_atan2},
    {"fmod", nullptr, mpfr_fmod},
};

TEST_CASE("binary64: functions that MPFR rounds itself") {
  for (const own_rounding& f : own_roundings) {
    const ops::elementwise_row& row = *elementwise_named(f.name);
    const option_values options(row, dtype::f64);
    int wrong = 0;
    const auto compare = [&](const std::uint64_t* x) {
      double expected = rounded_by_mpfr(f, x);
      if (f.name == "rsqrt" && number_of(x[0]) == 0) expected = std::copysign(HUGE_VAL, number_of(x[0]));  // MPFR: +inf
      const std::uint64_t result = evaluate(row, dtype::f64, x, options);
      const bool same = result == pattern(expected);
      if (!same && wrong++ < 3) {
        MESSAGE(std::string(f.name) << " " << std::hex << x[0] << " " << x[1] << ": " << result << " for "
                                    << pattern(expected));
      }
    };
    for_each_input(row, 60, [&](sample_class, const std::uint64_t* x) { compare(x); });
    for (const double v : f.borders) {
      for (std::uint64_t d = 0; d < 9; ++d) {
        const std::uint64_t x[2] = {bits_of(v) + d - 4, 0};
        compare(x);
      }
    }
    CHECK_MESSAGE(wrong == 0, std::string(f.name));
  }
}

// What the other makers do not know of: transcendental results.
TEST_CASE("binary64: operands that are made for a row are of their class") {
  const auto share = [](std::string_view name, sample_class c) {
    const ops::elementwise_row& row = *elementwise_named(name);
    const option_values options(row, dtype::f64);
    constexpr std::int64_t count = 200;
    const std::vector<array> in = fill_operands(c, row, dtype::f64, count, 8, 9);
    int hits = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t x[ops::most_operands] = {};
      for (std::size_t k = 0; k < in.size(); ++k) x[k] = in[k].get(i);
      hits += hit(c, locate(row, dtype::f64, x, options)) ? 1 : 0;
    }
    return hits * 100 / static_cast<int>(count);
  };
  for (const char* name : {"exp",
                           "log",
                           "sin",
                           "log10",
                           "erf",
                           "hypot",
                           "atan2",
                           "rsqrt",
                           "log1p",
                           "sigmoid",
                           "gelu",
                           "xlogy",
                           "softplus",
                           "logaddexp",
                           "sin_backward",
                           "swiglu",
                           "gelu_tanh_backward",
                           "pow_backward_x",
                           "pow",
                           "pow_scalar"}) {
    INFO(std::string(name));
    CHECK(share(name, sample_class::near_ties) > 25);
  }
  for (const char* name : {"exp", "exp2", "sigmoid", "log_sigmoid", "silu", "gelu", "gelu_tanh", "mish", "erfc",
                           "tanhshrink", "softplus", "pow_scalar", "scalar_pow", "erf_backward", "gelu_backward",
                           "mish_backward", "glu", "swiglu", "glu_backward_b"}) {
    INFO(std::string(name));
    CHECK(share(name, sample_class::subnormal) > 25);
  }
  CHECK(share("hypot", sample_class::ties) > 90);
  CHECK(share("pow", sample_class::ties) > 45);  // for a third of the powers n no m^n has 54 bits
  CHECK(share("pow", sample_class::subnormal) > 40);
  CHECK(share("pow", sample_class::overflow_border) > 25);
  CHECK(share("exp", sample_class::overflow_border) > 5);
}

/// A number of 3000 bits. Operations round it; terms cancel by no more than the square of the least number, 2148 bits.
class precise {
 public:
  precise() { mpfr_init2(v, 3000); }
  precise(double x) : precise() { mpfr_set_d(v, x, MPFR_RNDN); }
  precise(const precise& o) : precise() { mpfr_set(v, o.v, MPFR_RNDN); }
  precise& operator=(const precise& o) {
    mpfr_set(v, o.v, MPFR_RNDN);
    return *this;
  }
  ~precise() { mpfr_clear(v); }
  mpfr_t v;
};
template <auto F, class... X>
precise call(const X&... x) {
  precise r;
  F(r.v, x.v..., MPFR_RNDN);
  return r;
}
precise operator+(const precise& a, const precise& b) { return call<mpfr_add>(a, b); }
precise operator-(const precise& a, const precise& b) { return call<mpfr_sub>(a, b); }
precise operator*(const precise& a, const precise& b) { return call<mpfr_mul>(a, b); }
precise operator/(const precise& a, const precise& b) { return call<mpfr_div>(a, b); }
precise operator-(const precise& a) { return call<mpfr_neg>(a); }
precise exp(const precise& a) { return call<mpfr_exp>(a); }
precise log(const precise& a) { return call<mpfr_log>(a); }
precise tanh(const precise& a) { return call<mpfr_tanh>(a); }
precise power(const precise& a, const precise& b) { return call<mpfr_pow>(a, b); }
precise root(const precise& a) { return call<mpfr_sqrt>(a); }
precise pi() {
  precise r;
  mpfr_const_pi(r.v, MPFR_RNDN);
  return r;
}
precise decimal(const char* digits) {
  precise r;
  mpfr_set_str(r.v, digits, 10, MPFR_RNDN);
  return r;
}
bool positive(const precise& a) { return mpfr_sgn(a.v) > 0; }
precise greater(const precise* x) { return call<mpfr_max>(x[0], x[1]); }
precise distance(const precise* x) { return call<mpfr_abs>(x[0] - x[1]); }
/// (1 + tanh(x / 2)) / 2
precise logistic(const precise& x) { return (tanh(x / 2.0) + 1.0) / 2.0; }
/// (1 + erf(x / sqrt 2)) / 2
precise normal(const precise& x) { return (call<mpfr_erf>(x / root(2.0)) + 1.0) / 2.0; }
precise normal_slope(const precise& x) { return normal(x) + x * exp(-(x * x) / 2.0) / root(pi() * 2.0); }
precise silu_slope(const precise& x) { return logistic(x) * (precise(1) + x * logistic(-x)); }
precise slope_of_power(const precise& g, const precise& x, const precise& y) { return g * y * power(x, y - 1.0); }

bool is_midpoint(const precise& y) {
  mpz_t m, one;
  mpz_init(m);
  mpz_init_set_ui(one, 1);
  const outcome o = locate(dtype::f64, m, one, mpfr_get_z_2exp(m, y.v));
  mpz_clears(m, one, nullptr);
  return o.tie;
}

struct formula {
  std::string_view name;
  precise (*f)(const precise* x, const double* o);
};
const formula formulas[] = {
    {"xlogy", [](const precise* x, const double*) { return x[0] * log(x[1]); }},
    {"logaddexp", [](const precise* x, const double*) { return greater(x) + log(exp(-distance(x)) + 1.0); }},
    {"logaddexp2",
     [](const precise* x, const double*) { return greater(x) + call<mpfr_log2>(call<mpfr_exp2>(-distance(x)) + 1.0); }},
    {"elu", [](const precise* x, const double*) { return positive(x[0]) ? x[0] : exp(x[0]) - 1.0; }},
    {"celu", [](const precise* x, const double*) { return positive(x[0]) ? x[0] : exp(x[0]) - 1.0; }},
    {"softplus",
     [](const precise* x, const double*) { return mpfr_cmp_ui(x[0].v, 20) > 0 ? x[0] : log(exp(x[0]) + 1.0); }},
    {"logit", [](const precise* x, const double*) { return log(x[0] / (precise(1) - x[0])); }},
    {"silu_backward", [](const precise* x, const double*) { return x[0] * silu_slope(x[1]); }},
    {"mish_backward",
     [](const precise* x, const double*) {
       const precise th = tanh(log(exp(x[1]) + 1.0));
       return x[0] * (th + x[1] * (precise(1) - th * th) * logistic(x[1]));
     }},
    {"log_sigmoid_backward", [](const precise* x, const double*) { return x[0] * logistic(-x[1]); }},
    {"gelu_backward", [](const precise* x, const double*) { return x[0] * normal_slope(x[1]); }},
    {"gelu_tanh_backward",
     [](const precise* x,
        const double*) {  // u = s (x + c x^3): (1 + tanh u) / 2 + x / 2 (1 - tanh^2 u) s (1 + 3 c x^2)
       const precise s = root(precise(2) / pi()), c = precise(44715) / 1e6, square = x[1] * x[1];
       const precise th = tanh(s * x[1] * (c * square + 1.0));
       return x[0] * ((th + 1.0) / 2.0 + x[1] / 2.0 * (precise(1) - th * th) * s * (c * square * 3.0 + 1.0));
     }},
    {"selu_backward",
     [](const precise* x, const double*) {
       const precise scaled = x[0] * decimal("1.0507009873554804934193349852946");
       return positive(x[1]) ? scaled : scaled * decimal("1.6732632423543772848170429916717") * exp(x[1]);
     }},
    {"elu_backward", [](const precise* x, const double*) { return positive(x[1]) ? x[0] : x[0] * exp(x[1]); }},
    {"celu_backward", [](const precise* x, const double*) { return positive(x[1]) ? x[0] : x[0] * exp(x[1]); }},
    {"softplus_backward",
     [](const precise* x, const double*) { return mpfr_cmp_ui(x[1].v, 20) > 0 ? x[0] : x[0] * logistic(x[1]); }},
    {"log2_backward", [](const precise* x, const double*) { return x[0] / x[1] / log(2.0); }},
    {"log10_backward", [](const precise* x, const double*) { return x[0] / x[1] / log(10.0); }},
    {"exp2_backward", [](const precise* x, const double*) { return x[0] * x[1] * log(2.0); }},
    {"xlogy_backward_x", [](const precise* x, const double*) { return x[0] * log(x[2]); }},
    {"logaddexp_backward", [](const precise* x, const double*) { return x[0] / (exp(x[2] - x[1]) + 1.0); }},
    {"logaddexp2_backward",
     [](const precise* x, const double*) { return x[0] / (call<mpfr_exp2>(x[2] - x[1]) + 1.0); }},
    {"sin_backward", [](const precise* x, const double*) { return x[0] * call<mpfr_cos>(x[1]); }},
    {"sinh_backward", [](const precise* x, const double*) { return x[0] * call<mpfr_cosh>(x[1]); }},
    {"cosh_backward", [](const precise* x, const double*) { return x[0] * call<mpfr_sinh>(x[1]); }},
    {"tan_backward", [](const precise* x, const double*) { return x[0] * (x[1] * x[1] + 1.0); }},
    {"asin_backward", [](const precise* x, const double*) { return x[0] / root((precise(1) - x[1]) * (x[1] + 1.0)); }},
    {"acosh_backward",
     [](const precise* x, const double*) {
       return mpfr_sgn(x[1].v) > 0 ? x[0] / root((x[1] - 1.0) * (x[1] + 1.0)) : call<mpfr_log>(precise(-1));
     }},
    {"cos_backward", [](const precise* x, const double*) { return -x[0] * call<mpfr_sin>(x[1]); }},
    {"erf_backward", [](const precise* x, const double*) { return x[0] * exp(-(x[1] * x[1])) * 2.0 / root(pi()); }},
    {"erfc_backward", [](const precise* x, const double*) { return -x[0] * exp(-(x[1] * x[1])) * 2.0 / root(pi()); }},
    {"erfinv_backward", [](const precise* x, const double*) { return x[0] * exp(x[1] * x[1]) * root(pi()) / 2.0; }},
    {"ndtri_backward",
     [](const precise* x, const double*) { return x[0] * exp(x[1] * x[1] / 2.0) * root(pi() * 2.0); }},
    {"pow_backward_x", [](const precise* x, const double*) { return slope_of_power(x[0], x[1], x[2]); }},
    {"pow_backward_y", [](const precise* x, const double*) { return x[0] * power(x[1], x[2]) * log(x[1]); }},
    {"pow_scalar_backward", [](const precise* x, const double* o) { return slope_of_power(x[0], x[1], o[0]); }},
    {"scalar_pow_backward", [](const precise* x, const double* o) { return x[0] * power(o[0], x[1]) * log(o[0]); }},
    {"pow_scalar", [](const precise* x, const double* o) { return power(x[0], o[0]); }},
    {"scalar_pow", [](const precise* x, const double* o) { return power(o[0], x[0]); }},
    {"glu", [](const precise* x, const double*) { return x[0] * logistic(x[1]); }},
    {"swiglu", [](const precise* x, const double*) { return x[0] * x[1] * logistic(x[0]); }},
    {"geglu", [](const precise* x, const double*) { return x[0] * x[1] * normal(x[0]); }},
    {"glu_backward_b", [](const precise* x, const double*) { return x[0] * x[1] * logistic(x[2]) * logistic(-x[2]); }},
    {"swiglu_backward_a", [](const precise* x, const double*) { return x[0] * x[2] * silu_slope(x[1]); }},
    {"geglu_backward_a", [](const precise* x, const double*) { return x[0] * x[2] * normal_slope(x[1]); }},
    {"hypot_backward", [](const precise* x, const double*) { return x[0] * x[1] / x[2]; }},
    {"atan2_backward_x", [](const precise* x, const double*) { return -x[0] * x[1] / (x[2] * x[2] + x[1] * x[1]); }},
    {"addcdiv", [](const precise* x, const double*) { return x[0] + x[1] / x[2]; }},
    {"rsqrt_backward", [](const precise* x, const double*) { return -x[0] * x[1] * x[1] * x[1] / 2.0; }},
    {"sqrt_backward", [](const precise* x, const double*) { return x[0] / x[1] / 2.0; }},
    {"tanh_backward", [](const precise* x, const double*) { return x[0] * (precise(1) - x[1] * x[1]); }},
};

// Operands are numbers but 0; where the formula vanishes or is NaN, by an infinity of its own making or a limit, nothing is compared.
TEST_CASE("binary64: every row is evaluated and located; formulas with 3000 bits round to the same patterns") {
  int compared = 0;
  for (const ops::elementwise_row& row : ops::elementwise_rows()) {
    CAPTURE(row.name);
    const auto* const other =
        std::find_if(std::begin(formulas), std::end(formulas), [&](const formula& f) { return f.name == row.name; });
    const option_values options(row, dtype::f64);
    int wrong = 0;
    for_each_input(row, other == std::end(formulas) ? 10 : 6, [&](sample_class, const std::uint64_t* x) {
      const std::uint64_t result = evaluate(row, dtype::f64, x, options);
      const outcome where = locate(row, dtype::f64, x, options);
      const number_kind kind = widen(dtype::f64, result).kind;
      if (!row.has_own_type()) {
        wrong += where.nan != (kind == number_kind::nan);
        wrong += (where.infinite || where.overflow) != (kind == number_kind::infinite);
      }
      if (other == std::end(formulas)) return;
      precise in[3];
      for (int k = 0; k < row.arity; ++k) {
        if (widen(dtype::f64, x[k]).kind != number_kind::finite) return;
        mpfr_set_d(in[k].v, number_of(x[k]), MPFR_RNDN);
      }
      const precise y = other->f(in, options.value);
      if (mpfr_nan_p(y.v) != 0 || mpfr_zero_p(y.v) != 0) return;
      const std::uint64_t expected = round_mpfr(dtype::f64, y.v);
      if (result != expected && !where.tie && is_midpoint(y)) return;  // 3000 bits have lost what is beside it
      ++compared;
      if (result != expected && wrong++ < 3) {
        MESSAGE(std::string(row.name) << " " << std::hex << x[0] << " " << x[1] << " " << x[2] << ": " << result
                                      << " for " << expected);
      }
    });
    CHECK(wrong == 0);
  }
  CHECK(compared > 2000);
}

/// The exact value, with 3000 bits or, of an elementary function, 400.
precise value_of(std::string_view name, const double* x) {
  const precise in[3] = {x[0], x[1], x[2]};
  precise y;
  const auto is = [&](const auto& f) { return f.name == name; };
  const auto* const own = std::find_if(std::begin(own_roundings), std::end(own_roundings), is);
  const auto* const other = std::find_if(std::begin(formulas), std::end(formulas), is);
  if (own != std::end(own_roundings)) {
    own->unary != nullptr ? own->unary(y.v, in[0].v, MPFR_RNDN) : own->binary(y.v, in[0].v, in[1].v, MPFR_RNDN);
  } else if (other != std::end(formulas)) {
    y = other->f(in, option_values(*elementwise_named(name), dtype::f64).value);
  } else {
    mpfr_set_prec(y.v, 400);
    REQUIRE(approximate(elementary_named(name)->f, y.v, in[0].v) != no_bound);
  }
  return y;
}

TEST_CASE("binary64: hard operands are as hard as they are said to be") {
  const auto check = [](const hard_operands& h) {
    CAPTURE(h.row);
    CAPTURE(h.x[0]);
    // In units of the last place, all results being normal; the fraction's distance from a half.
    const precise y = value_of(h.row, h.x);
    precise places;
    mpfr_div_2si(places.v, y.v, mpfr_get_exp(y.v) - 53, MPFR_RNDN);
    mpfr_frac(places.v, places.v, MPFR_RNDN);
    mpfr_abs(places.v, places.v, MPFR_RNDN);
    mpfr_sub_d(places.v, places.v, 0.5, MPFR_RNDN);
    REQUIRE(mpfr_regular_p(places.v) != 0);
    CHECK(-mpfr_get_exp(places.v) == h.bits);  // in [2^-(bits + 1), 2^-bits)
    const std::uint64_t x[ops::most_operands] = {bits_of(h.x[0]), bits_of(h.x[1]), bits_of(h.x[2])};
    const ops::elementwise_row& row = *elementwise_named(h.row);
    const outcome where = locate(row, dtype::f64, x, option_values(row, dtype::f64));
    CHECK(where.near_tie);
    CHECK(!where.tie);
  };
  for (const hard_operands& h : published_hard_operands()) check(h);
  for (const hard_operands& h : found_hard_operands()) check(h);
}

}  // namespace

TEST_SUITE_END();
