// The formulas. Algebraic ones are evaluated exactly (extended) and rounded once; transcendental ones by Ziv's strategy
// in MPFR: more bits until the interval around the approximation rounds to one pattern. That ends, because for binary32
// arguments exp, log, tanh and 1/(1+e^-x) are transcendental except at the arguments that are answered beforehand
// (Lindemann-Weierstrass), so they are never a midpoint.
#include "reference/elementwise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "reference/attributes.hpp"
#include "reference/pow.hpp"

namespace repdl::reference {
namespace {

constexpr std::uint32_t nan32 = 0x7fc00000;
constexpr std::uint32_t inf32 = 0x7f800000;
constexpr std::uint32_t one32 = 0x3f800000;
constexpr std::uint32_t sign32 = 0x80000000;

std::uint32_t magnitude(std::uint32_t x) { return x & ~sign32; }
bool is_nan(std::uint32_t x) { return magnitude(x) > inf32; }
bool is_zero(std::uint32_t x) { return magnitude(x) == 0; }
bool is_negative(std::uint32_t x) { return (x & sign32) != 0; }
std::uint32_t low32(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t quieten(std::uint32_t x) { return is_nan(x) ? nan32 : x; }

struct reals {
  mpfr_t x, y;
  reals() { mpfr_inits2(24, x, y, nullptr); }
  ~reals() {
    mpfr_clears(x, y, nullptr);
    mpfr_free_cache();
  }
};
thread_local reals real;

unsigned approximate_exp(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_exp(y, x, MPFR_RNDN);  // at most half an ulp
  return 1;
}
unsigned approximate_log(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_log(y, x, MPFR_RNDN);
  return 1;
}
unsigned approximate_sqrt(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_sqrt(y, x, MPFR_RNDN);
  return 1;
}
unsigned approximate_tanh(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_tanh(y, x, MPFR_RNDN);
  return 1;
}
// e^-x, 1 + ., 1 / .: three roundings of relative error 2^-p each (the first one enters with a factor below 1);
// ulp(y) > 2^-p |y|, so the sum is below 4 ulp.
unsigned approximate_sigmoid(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_neg(y, x, MPFR_RNDN);  // exact: every precision used is above 24
  mpfr_exp(y, y, MPFR_RNDN);
  mpfr_add_ui(y, y, 1, MPFR_RNDN);
  mpfr_ui_div(y, 1, y, MPFR_RNDN);
  return 4;
}

/// RN_t(f(x)) for a finite x, of at most 24 bits, where f(x) is finite, nonzero and no midpoint.
std::uint64_t ziv(approximation f, dtype t, std::uint64_t x) {
  set_mpfr(real.x, t, x);
  for (mpfr_prec_t precision = 40; precision <= 4096; precision *= 2) {
    mpfr_set_prec(real.y, precision);
    const unsigned errors = f(real.y, real.x);
    std::uint64_t bits = 0;
    if (round_certain(t, real.y, errors, &bits)) return bits;
  }
  throw std::logic_error("reference: Ziv's loop ended undecided");
}

/// |x| >= bound, for a bound given as a pattern.
bool at_least(std::uint32_t x, std::uint32_t bound) { return magnitude(x) >= bound; }

constexpr std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

std::uint64_t oracle_exp(dtype t, std::uint64_t x) {
  const number n = widen(t, x);
  if (n.kind == number_kind::nan) return nan_bits(t);
  // e^110 > 2^158 overflows; 0 < e^-110 < 2^-158 is below half of the least number 2^-149.
  const bool beyond = n.kind == number_kind::infinite ||
                      (n.kind == number_kind::finite && std::ldexp(double(n.significand), n.exponent) >= 110);
  if (beyond) return n.negative ? 0 : infinity_bits(t, false);
  if (n.kind == number_kind::zero) return round(t, false, 1, 0, false);
  return ziv(approximate_exp, t, x);
}

std::uint32_t oracle_log(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return inf32 | sign32;
  if (is_negative(x)) return nan32;
  if (x == inf32) return inf32;
  if (x == one32) return 0;
  return low32(ziv(approximate_log, f32, x));
}

std::uint32_t oracle_tanh(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return x;
  // 1 - tanh 10 < 2 e^-20 < 2^-27: above the midpoint 1 - 2^-25.
  if (at_least(x, bits_of(10))) return one32 | (x & sign32);
  return low32(ziv(approximate_tanh, f32, x));
}

std::uint32_t oracle_sigmoid(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return bits_of(0.5F);
  // sigmoid(-110) < e^-110 < 2^-158; 1 - sigmoid(110) < e^-110.
  if (at_least(x, bits_of(110))) return is_negative(x) ? 0 : one32;
  return low32(ziv(approximate_sigmoid, f32, x));
}

/// The integer part of the square root, bit by bit.
std::uint64_t integer_root(std::uint64_t v) {
  std::uint64_t r = 0;
  for (int b = 31; b >= 0; --b) {
    const std::uint64_t c = r | (std::uint64_t{1} << b);
    if (c * c <= v) r = c;
  }
  return r;
}

std::uint32_t oracle_sqrt(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return x;
  if (is_negative(x)) return nan32;
  if (x == inf32) return inf32;
  const number n = widen(f32, x);
  // value = v * 2^(2h), v in [2^58, 2^62): the root has 30 or 31 bits, enough before the sticky bit.
  int shift = std::countl_zero(n.significand) - 2;
  if ((n.exponent - shift) % 2 != 0) --shift;
  const std::uint64_t v = n.significand << shift;
  const std::uint64_t r = integer_root(v);
  return low32(round(f32, false, r, (n.exponent - shift) / 2, r * r != v));
}

std::uint32_t oracle_div(std::uint32_t x, std::uint32_t y) {
  const number a = widen(f32, x), b = widen(f32, y);
  const bool negative = a.negative != b.negative;
  using enum number_kind;
  if (a.kind == nan || b.kind == nan) return nan32;
  if (a.kind == infinite) return b.kind == infinite ? nan32 : low32(infinity_bits(f32, negative));
  if (b.kind == infinite) return low32(zero_bits(f32, negative));
  if (b.kind == zero) return a.kind == zero ? nan32 : low32(infinity_bits(f32, negative));
  if (a.kind == zero) return low32(zero_bits(f32, negative));
  // n has its top bit at 62, d at 32, so the quotient has 30 or 31 bits before the sticky one.
  const int la = std::countl_zero(a.significand), lb = std::countl_zero(b.significand);
  const std::uint64_t n = a.significand << (la - 1), d = b.significand << (lb - 31);
  return low32(round(f32, negative, n / d, a.exponent - (la - 1) - b.exponent + (lb - 31), n % d != 0));
}

std::uint32_t oracle_select(std::uint32_t x, std::uint32_t y, bool larger) {
  if (is_nan(x) || is_nan(y)) return nan32;
  return (order_key(f32, x) >= order_key(f32, y)) == larger ? x : y;
}

extended value(double x) { return {dtype::f64, std::bit_cast<std::uint64_t>(x)}; }

/// coefficient * y; by 1 without a product, which is slower.
extended scaled(double coefficient, const extended& y) { return coefficient == 1 ? y : value(coefficient) * y; }

using patterns = const std::uint64_t*;
using reals64 = const double*;

/// The exact result, rounded once.
template <auto Exact>
std::uint64_t rounded(dtype t, patterns in, reals64 options) {
  return Exact(t, in, options).round(t);
}
/// The sum of two exact terms, rounded once; as in IEEE 754 two zeros of one sign keep it.
template <auto Terms>
std::uint64_t rounded_sum(dtype t, patterns in, reals64 options) {
  const auto [a, b] = Terms(t, in, options);
  if (a.is_zero() && b.is_zero() && a.negative() && b.negative()) return zero_bits(t, true);
  return (a + b).round(t);
}
template <auto Terms>
extended exact_sum_of(dtype t, patterns in, reals64 options) {
  const auto [a, b] = Terms(t, in, options);
  return a + b;
}

/// An oracle that knows binary32 only.
template <auto F, int Arity>
std::uint64_t binary32_only(dtype t, patterns in, reals64) {
  if (t != f32) throw std::logic_error("reference: this oracle is of binary32");
  if constexpr (Arity == 1) {
    return F(low32(in[0]));
  } else {
    return F(low32(in[0]), low32(in[1]));
  }
}

std::uint32_t oracle_neg(std::uint32_t x) { return x ^ sign32; }
std::uint32_t oracle_abs(std::uint32_t x) { return x & ~sign32; }
std::uint32_t oracle_maximum(std::uint32_t x, std::uint32_t y) { return oracle_select(x, y, true); }
std::uint32_t oracle_minimum(std::uint32_t x, std::uint32_t y) { return oracle_select(x, y, false); }
std::uint32_t oracle_relu_backward(std::uint32_t g, std::uint32_t x) {
  const bool pass = is_nan(x) || (!is_negative(x) && !is_zero(x));
  return pass ? quieten(g) : 0;
}

std::uint64_t oracle_less(dtype t, patterns in, reals64) {
  const number a = widen(t, in[0]), b = widen(t, in[1]);
  if (a.kind == number_kind::nan || b.kind == number_kind::nan) return 0;
  if (a.kind == number_kind::zero && b.kind == number_kind::zero) return 0;
  return order_key(t, in[0]) < order_key(t, in[1]) ? 1 : 0;
}

std::uint64_t oracle_relu(dtype t, patterns in, reals64) {
  const number n = widen(t, in[0]);
  return n.kind == number_kind::nan ? nan_bits(t) : n.negative ? 0 : in[0];
}

extended leaky(dtype t, patterns in, reals64 slope) {
  const extended x(t, in[0]);
  return !x.is_nan() && !x.is_zero() && !x.negative() ? x : value(slope[0]) * x;
}

using terms = std::pair<extended, extended>;
constexpr auto add_terms = [](dtype t, patterns in, reals64 o) { return terms({t, in[0]}, scaled(o[0], {t, in[1]})); };
constexpr auto sub_terms = [](dtype t, patterns in, reals64 o) { return terms({t, in[0]}, -scaled(o[0], {t, in[1]})); };
constexpr auto fma_terms = [](dtype t, patterns in, reals64) {
  return terms(extended(t, in[0]) * extended(t, in[1]), {t, in[2]});
};
constexpr auto product = [](dtype t, patterns in, reals64) { return extended(t, in[0]) * extended(t, in[1]); };
constexpr auto tanh_gradient = [](dtype t, patterns in, reals64) {
  const extended y(t, in[1]);
  return extended(t, in[0]) * (extended(1) - y * y);
};
constexpr auto sigmoid_gradient = [](dtype t, patterns in, reals64) {
  const extended y(t, in[1]);
  return extended(t, in[0]) * y * (extended(1) - y);
};

template <auto Exact>
constexpr oracle algebraic(std::string_view name) {
  return {.name = name, .f = rounded<Exact>, .exact = Exact};
}
template <auto Terms>
constexpr oracle sum_of(std::string_view name) {
  return {.name = name, .f = rounded_sum<Terms>, .exact = exact_sum_of<Terms>};
}

constexpr oracle oracles[] = {
    sum_of<add_terms>("add"),
    sum_of<sub_terms>("sub"),
    algebraic<product>("mul"),
    {.name = "div", .f = binary32_only<oracle_div, 2>, .where = locate_quotient},
    sum_of<fma_terms>("fma"),
    {.name = "neg", .f = binary32_only<oracle_neg, 1>},
    {.name = "abs", .f = binary32_only<oracle_abs, 1>},
    {.name = "sqrt", .f = binary32_only<oracle_sqrt, 1>, .near = approximate_sqrt},
    {.name = "maximum", .f = binary32_only<oracle_maximum, 2>},
    {.name = "minimum", .f = binary32_only<oracle_minimum, 2>},
    {.name = "less", .f = oracle_less},
    {.name = "pow",
     .f = [](dtype t, patterns in, reals64) { return oracle_pow(t, in[0], in[1]); },
     .where = [](dtype t, patterns in) { return locate_pow(t, in[0], in[1]); }},
    {.name = "relu", .f = oracle_relu},
    algebraic<leaky>("leaky_relu"),
    {.name = "exp", .f = [](dtype t, patterns in, reals64) { return oracle_exp(t, in[0]); }, .near = approximate_exp},
    {.name = "log", .f = binary32_only<oracle_log, 1>, .near = approximate_log},
    {.name = "tanh", .f = binary32_only<oracle_tanh, 1>, .near = approximate_tanh},
    {.name = "sigmoid", .f = binary32_only<oracle_sigmoid, 1>, .near = approximate_sigmoid},
    {.name = "relu_backward", .f = binary32_only<oracle_relu_backward, 2>},
    algebraic<tanh_gradient>("tanh_backward"),
    algebraic<sigmoid_gradient>("sigmoid_backward"),
};

constexpr const oracle* oracle_named(std::string_view name) {
  for (const oracle& o : oracles)
    if (o.name == name) return &o;
  return nullptr;
}
constexpr auto check = []<class Op>() {
  static_assert(oracle_named(ops::elementwise_rows[static_cast<int>(Op::id)].name) != nullptr,
                "an operation without oracle");
};
static_assert((ops::for_each_elementwise(check), true));

}  // namespace

option_values::option_values(const ops::elementwise_row& row, const attributes& attrs) {
  for (int i = 0; i < row.options.count(); ++i) {
    const ops::real_option& o = row.options.all[i];
    value[i] = o.otherwise;
    for (const attribute& a : attrs)
      if (a.name == o.name) value[i] = std::get<double>(a.value);
  }
}

const oracle& oracle_of(std::string_view name) {
  if (const oracle* o = oracle_named(name)) return *o;
  throw std::logic_error("reference: no oracle is named " + std::string(name));
}

std::uint64_t evaluate(const ops::elementwise_row& row, dtype t, const std::uint64_t* in,
                       const option_values& options) {
  return oracle_of(row.name).f(t, in, options.value);
}

std::uint32_t evaluate(const ops::elementwise_row& row, const std::uint32_t* in) {
  std::uint64_t wide[3] = {};
  std::copy_n(in, row.arity, wide);
  return low32(evaluate(row, f32, wide, option_values(row)));
}

std::uint32_t evaluate(std::string_view name, const std::uint32_t* in) {
  return evaluate(*elementwise_named(name), in);
}

}  // namespace repdl::reference
