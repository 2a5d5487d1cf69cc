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
    {"relu", 1, [](const std::uint32_t* in) { return is_nan(in[0]) ? nan32 : is_negative(in[0]) ? 0 : in[0]; }},
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

// ---- ranges ----

struct range_filler {
  std::uint32_t (*f)(const std::uint32_t*);
  std::uint32_t base;
  std::uint32_t* out;

  std::uint32_t at(std::uint64_t x) const {
    const auto v = static_cast<std::uint32_t>(x);
    return f(&v);
  }
  /// Everything strictly between a and b, whose results are fa and fb.
  void between(std::uint64_t a, std::uint32_t fa, std::uint64_t b, std::uint32_t fb) const {
    if (b - a <= 1) return;
    if (fa == fb) {
      std::fill(out + (a + 1 - base), out + (b - base), fa);
      return;
    }
    const std::uint64_t m = a + (b - a) / 2;
    const std::uint32_t fm = at(m);
    out[m - base] = fm;
    between(a, fa, m, fm);
    between(m, fm, b, fb);
  }
  /// [a, b), within which the input's sign is constant and f is monotone, or NaN throughout a subinterval.
  void fill(std::uint64_t a, std::uint64_t b) const {
    if (a >= b) return;
    const std::uint32_t fa = at(a), fb = at(b - 1);
    out[a - base] = fa;
    out[b - 1 - base] = fb;
    between(a, fa, b - 1, fb);
  }
};

/// For 0 < |x| <= 2^-12: |x| - |x|^3/3 < |tanh x| < |x|, and x^2/3 <= 2^-24/3 < 2^-25, while the midpoint below |x| is
/// at least 2^-25 |x| away (normal numbers; x a power of two is the worst case) or 2^-150 (subnormal ones, where
/// |x|^3/3 < 2^-370): RN(tanh x) = x.
constexpr std::uint32_t tanh_identity = bits_of(0x1p-12F);

void fill_tanh(const range_filler& r, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sign = a & sign32;
  const std::uint64_t split = std::clamp(sign + tanh_identity + 1, a, b);
  for (std::uint64_t x = a; x < split; ++x) r.out[x - r.base] = static_cast<std::uint32_t>(x);
  r.fill(split, b);
}

/// Positive finite x, consecutive: the result grows by at most one pattern per step (d sqrt / dx stays below one unit
/// per unit), and is kept while x is below the square of the midpoint above it, compared in integers.
void fill_sqrt(const range_filler& r, std::uint64_t a, std::uint64_t b) {
  for (std::uint64_t x = a; x < b;) {
    const std::uint32_t y = r.at(x);
    // The midpoint above y is (2m + 1) * 2^(e - 1); x = s * 2^t <= its square, (2m + 1)^2 * 2^(2e - 2), keeps y.
    const number root = widen(f32, y);
    const std::uint64_t odd = 2 * root.significand + 1;
    const std::uint64_t square = odd * odd;
    const int e = 2 * root.exponent - 2;
    for (; x < b; ++x) {
      const number n = widen(f32, x);
      // square < 2^50 and x is below twice the square, so the shifted significand stays below 2^52; never equal, since
      // an odd square of 49 bits is no binary32 number.
      if ((n.significand << (n.exponent - e)) > square) break;
      r.out[x - r.base] = y;
    }
  }
}

}  // namespace

std::uint32_t evaluate(std::string_view oracle, const std::uint32_t* inputs) { return find(oracle).f(inputs); }

std::uint32_t evaluate(const ops::elementwise_row& row, const std::uint32_t* inputs) {
  const oracle_entry& o = find(row.oracle);
  if (o.arity != row.arity) throw std::logic_error("reference: wrong arity for " + std::string(row.name));
  return o.f(inputs);
}

void evaluate_range(const ops::elementwise_row& row, std::uint32_t first, std::uint64_t count, std::uint32_t* out) {
  const oracle_entry& o = find(row.oracle);
  if (o.arity != 1 || row.arity != 1) throw std::logic_error("reference: evaluate_range needs a unary row");
  const range_filler r{o.f, first, out};
  const std::uint64_t end = first + count;
  // Positive numbers with +inf, NaNs, negative numbers with -inf, NaNs.
  constexpr std::uint64_t cuts[] = {0, inf32 + 1ULL, sign32, (sign32 | inf32) + 1ULL, 1ULL << 32};
  for (int s = 0; s < 4; ++s) {
    const std::uint64_t a = std::max<std::uint64_t>(first, cuts[s]), b = std::min(end, cuts[s + 1]);
    if (a >= b) continue;
    if (row.monotone == ops::monotone_kind::no) {
      for (std::uint64_t x = a; x < b; ++x) out[x - first] = r.at(x);
    } else if (o.name == "tanh" && (s & 1) == 0) {
      fill_tanh(r, a, b);
    } else if (o.name == "sqrt" && s == 0) {
      const std::uint64_t lo = std::max<std::uint64_t>(a, 1), hi = std::min<std::uint64_t>(b, inf32);
      if (a == 0) out[0] = r.at(0);
      if (lo < hi) fill_sqrt(r, lo, hi);
      if (b == inf32 + 1ULL) out[inf32 - first] = r.at(inf32);
    } else {
      r.fill(a, b);
    }
  }
}

void convert_range(dtype from, dtype to, std::uint32_t first, std::uint64_t count, void* out) {
  for (std::uint64_t i = 0; i < count; ++i) store(to, out, i, convert(from, to, first + i));
}

}  // namespace repdl::reference
