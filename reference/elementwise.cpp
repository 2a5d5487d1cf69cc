// The formulas. Algebraic ones are evaluated exactly (extended) and rounded once; transcendental ones by Ziv's strategy
// in MPFR: more bits until the interval around the approximation rounds to one pattern. That ends, because for binary32
// arguments exp, log, tanh and 1/(1+e^-x) are transcendental except at the arguments that are answered beforehand
// (Lindemann-Weierstrass), so they are never a midpoint.
#include "reference/elementwise.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace repdl::reference {
namespace {

constexpr dtype f32 = dtype::f32;
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

// y = f(x) to y's precision; returns a bound of |y - f(x)| in ulp(y), strict.
using approximation = unsigned (*)(mpfr_ptr y, mpfr_srcptr x);

unsigned approximate_exp(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_exp(y, x, MPFR_RNDN);  // at most half an ulp
  return 1;
}
unsigned approximate_log(mpfr_ptr y, mpfr_srcptr x) {
  mpfr_log(y, x, MPFR_RNDN);
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

/// RN(f(x)) for a finite x where f(x) is finite, nonzero and no midpoint.
std::uint32_t ziv(approximation f, std::uint32_t x) {
  set_mpfr(real.x, f32, x);
  for (mpfr_prec_t precision = 40; precision <= 4096; precision *= 2) {
    mpfr_set_prec(real.y, precision);
    const unsigned errors = f(real.y, real.x);
    std::uint64_t bits = 0;
    if (round_certain(f32, real.y, errors, &bits)) return low32(bits);
  }
  throw std::logic_error("reference: Ziv's loop ended undecided");
}

/// |x| >= bound, for a bound given as a pattern.
bool at_least(std::uint32_t x, std::uint32_t bound) { return magnitude(x) >= bound; }

constexpr std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

std::uint32_t oracle_exp(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return one32;
  // e^110 > 2^158 overflows; 0 < e^-110 < 2^-158 is below half of the least number 2^-149.
  if (at_least(x, bits_of(110))) return is_negative(x) ? 0 : inf32;
  return ziv(approximate_exp, x);
}

std::uint32_t oracle_log(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return inf32 | sign32;
  if (is_negative(x)) return nan32;
  if (x == inf32) return inf32;
  if (x == one32) return 0;
  return ziv(approximate_log, x);
}

std::uint32_t oracle_tanh(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return x;
  // 1 - tanh 10 < 2 e^-20 < 2^-27: above the midpoint 1 - 2^-25.
  if (at_least(x, bits_of(10))) return one32 | (x & sign32);
  return ziv(approximate_tanh, x);
}

std::uint32_t oracle_sigmoid(std::uint32_t x) {
  if (is_nan(x)) return nan32;
  if (is_zero(x)) return bits_of(0.5F);
  // sigmoid(-110) < e^-110 < 2^-158; 1 - sigmoid(110) < e^-110.
  if (at_least(x, bits_of(110))) return is_negative(x) ? 0 : one32;
  return ziv(approximate_sigmoid, x);
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

/// IEEE 754: x + y, or x * y + z, where two zeros of one sign keep it.
std::uint32_t ieee_sum(const extended& a, const extended& b) {
  if (a.is_zero() && b.is_zero() && a.negative() && b.negative()) return sign32;
  return low32((a + b).round(f32));
}

extended value(std::uint32_t x) { return {f32, x}; }

struct oracle_entry {
  std::string_view name;
  int arity;
  std::uint32_t (*f)(const std::uint32_t* in);
};

constexpr oracle_entry oracles[] = {
    {"add", 2, [](const std::uint32_t* in) { return ieee_sum(value(in[0]), value(in[1])); }},
    {"sub", 2, [](const std::uint32_t* in) { return ieee_sum(value(in[0]), -value(in[1])); }},
    {"mul", 2, [](const std::uint32_t* in) { return low32((value(in[0]) * value(in[1])).round(f32)); }},
    {"div", 2, [](const std::uint32_t* in) { return oracle_div(in[0], in[1]); }},
    {"fma", 3, [](const std::uint32_t* in) { return ieee_sum(value(in[0]) * value(in[1]), value(in[2])); }},
    {"neg", 1, [](const std::uint32_t* in) { return in[0] ^ sign32; }},
    {"abs", 1, [](const std::uint32_t* in) { return in[0] & ~sign32; }},
    {"sqrt", 1, [](const std::uint32_t* in) { return oracle_sqrt(in[0]); }},
    {"maximum", 2, [](const std::uint32_t* in) { return oracle_select(in[0], in[1], true); }},
    {"minimum", 2, [](const std::uint32_t* in) { return oracle_select(in[0], in[1], false); }},
    {"relu", 1, [](const std::uint32_t* in) { return is_nan(in[0])        ? nan32
                                                     : is_negative(in[0]) ? 0
                                                                          : in[0]; }},
    {"exp", 1, [](const std::uint32_t* in) { return oracle_exp(in[0]); }},
    {"log", 1, [](const std::uint32_t* in) { return oracle_log(in[0]); }},
    {"tanh", 1, [](const std::uint32_t* in) { return oracle_tanh(in[0]); }},
    {"sigmoid", 1, [](const std::uint32_t* in) { return oracle_sigmoid(in[0]); }},
    {"relu_backward", 2,
     [](const std::uint32_t* in) {
       const bool pass = is_nan(in[1]) || (!is_negative(in[1]) && !is_zero(in[1]));
       return pass ? quieten(in[0]) : 0;
     }},
    {"tanh_backward", 2,
     [](const std::uint32_t* in) {
       const extended g = value(in[0]), y = value(in[1]);
       return low32((g * (extended(1) - y * y)).round(f32));
     }},
    {"sigmoid_backward", 2,
     [](const std::uint32_t* in) {
       const extended g = value(in[0]), y = value(in[1]);
       return low32((g * y * (extended(1) - y)).round(f32));
     }},
};

const oracle_entry& find(std::string_view name) {
  for (const oracle_entry& o : oracles)
    if (o.name == name) return o;
  throw std::logic_error("reference: no oracle is named " + std::string(name));
}

}  // namespace

oracle_function oracle_named(std::string_view name) { return find(name).f; }

std::uint32_t evaluate(std::string_view oracle, const std::uint32_t* inputs) { return find(oracle).f(inputs); }

std::uint32_t evaluate(const ops::elementwise_row& row, const std::uint32_t* inputs) {
  const oracle_entry& o = find(row.oracle);
  if (o.arity != row.arity) throw std::logic_error("reference: wrong arity for " + std::string(row.name));
  return o.f(inputs);
}

}  // namespace repdl::reference
