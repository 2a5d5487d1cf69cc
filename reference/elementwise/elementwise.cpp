// The formulas. Algebraic ones are evaluated exactly (extended) and rounded once; the functions of one variable that
// need MPFR are in elementary_functions.hpp.
#include "reference/elementwise/elementwise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "librepdl/ops/operations.hpp"
#include "reference/attributes.hpp"
#include "reference/elementwise/elementary_functions.hpp"
#include "reference/elementwise/pow.hpp"
#include "reference/elementwise/several.hpp"

namespace repdl::reference {
namespace {

std::uint32_t low32(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

__extension__ using wide = unsigned __int128;

/// The integer part of the square root, bit by bit.
std::uint64_t integer_root(wide v) {
  std::uint64_t r = 0;
  for (int b = 63; b >= 0; --b) {
    const std::uint64_t c = r | (std::uint64_t{1} << b);
    if (static_cast<wide>(c) * c <= v) r = c;
  }
  return r;
}

std::uint64_t oracle_sqrt(dtype from, dtype t, std::uint64_t x) {
  const number n = widen(from, x);
  using enum number_kind;
  if (n.kind == nan) return nan_bits(t);
  if (n.kind == zero) return zero_bits(t, n.negative);
  if (n.negative) return nan_bits(t);
  if (n.kind == infinite) return infinity_bits(t, false);
  // value = v * 2^(2h), v in [2^125, 2^127): the root has 63 or 64 bits, enough before the sticky bit.
  int shift = 63 + std::countl_zero(n.significand);
  if ((n.exponent - shift) % 2 != 0) --shift;
  const wide v = static_cast<wide>(n.significand) << shift;
  const std::uint64_t r = integer_root(v);
  return round(t, false, r, (n.exponent - shift) / 2, static_cast<wide>(r) * r != v);
}

std::uint64_t oracle_div(dtype from, dtype t, std::uint64_t x, std::uint64_t y) {
  const number a = widen(from, x), b = widen(from, y);
  const bool negative = a.negative != b.negative;
  using enum number_kind;
  if (a.kind == nan || b.kind == nan) return nan_bits(t);
  if (a.kind == infinite) return b.kind == infinite ? nan_bits(t) : infinity_bits(t, negative);
  if (b.kind == infinite) return zero_bits(t, negative);
  if (b.kind == zero) return a.kind == zero ? nan_bits(t) : infinity_bits(t, negative);
  if (a.kind == zero) return zero_bits(t, negative);
  // n has its top bit at 126, d at 63, so the quotient has 63 or 64 bits before the sticky one.
  const int la = std::countl_zero(a.significand), lb = std::countl_zero(b.significand);
  const wide n = static_cast<wide>(a.significand << la) << 63;
  const std::uint64_t d = b.significand << lb;
  return round(t, negative, static_cast<std::uint64_t>(n / d), a.exponent - la - 63 - b.exponent + lb, n % d != 0);
}

extended value(double x) { return {dtype::f64, std::bit_cast<std::uint64_t>(x)}; }

/// coefficient * y; by 1 without a product, which is slower.
extended scaled(double coefficient, const extended& y) { return coefficient == 1 ? y : value(coefficient) * y; }

using patterns = const std::uint64_t*;
using reals64 = const double*;

/// The exact result, rounded once.
template <auto Exact>
std::uint64_t rounded_to(dtype from, dtype to, patterns in, reals64 options) {
  return Exact(from, in, options).round(to);
}
template <auto Exact>
std::uint64_t rounded(dtype t, patterns in, reals64 options) {
  return rounded_to<Exact>(t, t, in, options);
}
/// The sum of two exact terms, rounded once; as in IEEE 754 two zeros of one sign keep it.
template <auto Terms>
std::uint64_t rounded_sum_to(dtype from, dtype to, patterns in, reals64 options) {
  const auto [a, b] = Terms(from, in, options);
  if (a.is_zero() && b.is_zero() && a.negative() && b.negative()) return zero_bits(to, true);
  return (a + b).round(to);
}
template <auto Terms>
std::uint64_t rounded_sum(dtype t, patterns in, reals64 options) {
  return rounded_sum_to<Terms>(t, t, in, options);
}
template <auto Terms>
extended exact_sum_of(dtype t, patterns in, reals64 options) {
  const auto [a, b] = Terms(t, in, options);
  return a + b;
}

/// x / y, rounded once; infinities, zeros and NaN as in IEEE 754.
std::uint64_t rounded_quotient(dtype t, const extended& x, const extended& y) {
  const bool negative = x.negative() != y.negative();
  const outcome o = locate_quotient(t, x, y);
  if (o.nan) return nan_bits(t);
  if (o.infinite) return infinity_bits(t, negative);
  if (x.is_zero() || y.is_infinite()) return zero_bits(t, negative);
  mpz_t n, d;
  mpz_init_set(n, x.significand());
  mpz_init_set(d, y.significand());
  if (mpz_sgn(d) < 0) {
    mpz_neg(n, n);
    mpz_neg(d, d);
  }
  const std::uint64_t r = round_quotient(t, n, d, x.exponent() - y.exponent());
  mpz_clears(n, d, nullptr);
  return r;
}

std::uint64_t oracle_square(dtype t, patterns in, reals64) {
  const number n = widen(t, in[0]);
  if (n.kind == number_kind::nan) return nan_bits(t);
  if (n.kind == number_kind::infinite) return infinity_bits(t, false);
  if (n.kind == number_kind::zero) return 0;
  const wide square = static_cast<wide>(n.significand) * n.significand;
  const auto high = static_cast<std::uint64_t>(square >> 64);
  const int shift = high == 0 ? 0 : 64 - std::countl_zero(high);
  const wide kept = square >> shift;
  return round(t, false, static_cast<std::uint64_t>(kept), 2 * n.exponent + shift, kept << shift != square);
}

/// A NaN operand makes the result NaN, or is ignored.
template <bool Larger, bool NanWins>
std::uint64_t oracle_select(dtype t, patterns in, reals64) {
  const bool x = widen(t, in[0]).kind == number_kind::nan, y = widen(t, in[1]).kind == number_kind::nan;
  if ((x && y) || (NanWins && (x || y))) return nan_bits(t);
  if (x || y) return in[x ? 1 : 0];
  return in[(order_key(t, in[0]) >= order_key(t, in[1])) == Larger ? 0 : 1];
}

std::uint64_t oracle_neg(dtype t, patterns in, reals64) { return in[0] ^ format_of(t).sign_bit(); }
std::uint64_t oracle_abs(dtype t, patterns in, reals64) { return in[0] & ~format_of(t).sign_bit(); }
std::uint64_t oracle_copysign(dtype t, patterns in, reals64) {
  const std::uint64_t sign = format_of(t).sign_bit();
  return (in[0] & ~sign) | (in[1] & sign);
}

std::uint64_t oracle_heaviside(dtype t, patterns in, reals64) {
  const number x = widen(t, in[0]), v = widen(t, in[1]);
  if (x.kind == number_kind::nan) return nan_bits(t);
  if (x.kind == number_kind::zero) return v.kind == number_kind::nan ? nan_bits(t) : in[1];
  return x.negative ? 0 : round(t, false, 1, 0, false);
}
/// By the order of all numbers, in which -0 and +0 are two: a zero next to x is one step, and from a zero the other is none.
std::uint64_t oracle_nextafter(dtype t, patterns in, reals64) {
  const number x = widen(t, in[0]), y = widen(t, in[1]);
  if (x.kind == number_kind::nan || y.kind == number_kind::nan) return nan_bits(t);
  if (x.kind == number_kind::zero) return y.kind == number_kind::zero ? in[1] : zero_bits(t, y.negative) + 1;
  const std::int64_t from = order_key(t, in[0]), to = order_key(t, in[1]);
  if (from == to) return in[1];
  // Magnitudes as integers: of one sign the order of the numbers.
  return (from < to) != x.negative ? in[0] + 1 : in[0] - 1;
}

std::uint64_t oracle_relu_backward(dtype t, patterns in, reals64) {
  const number g = widen(t, in[0]), x = widen(t, in[1]);
  const bool pass = x.kind == number_kind::nan || (!x.negative && x.kind != number_kind::zero);
  return !pass ? 0 : g.kind == number_kind::nan ? nan_bits(t) : in[0];
}

/// -1, 0, 1 as x is less than, equal to or greater than y; 2 where one is NaN.
int order(dtype t, patterns in) {
  const number a = widen(t, in[0]), b = widen(t, in[1]);
  if (a.kind == number_kind::nan || b.kind == number_kind::nan) return 2;
  if (a.kind == number_kind::zero && b.kind == number_kind::zero) return 0;
  const std::int64_t x = order_key(t, in[0]), y = order_key(t, in[1]);
  return x < y ? -1 : x > y ? 1 : 0;
}
/// Whether the order is one of two.
template <int A, int B>
std::uint64_t oracle_order(dtype t, patterns in, reals64) {
  const int o = order(t, in);
  return o == A || o == B ? 1 : 0;
}
std::uint64_t oracle_not_equal(dtype t, patterns in, reals64) { return order(t, in) != 0 ? 1 : 0; }

template <auto Is>
std::uint64_t oracle_class(dtype t, patterns in, reals64) {
  return Is(widen(t, in[0])) ? 1 : 0;
}
std::uint64_t oracle_signbit(dtype t, patterns in, reals64) { return (in[0] & format_of(t).sign_bit()) != 0 ? 1 : 0; }

pow_operand scalar(double v) { return {dtype::f64, std::bit_cast<std::uint64_t>(v)}; }

std::uint64_t oracle_relu(dtype t, patterns in, reals64) {
  const number n = widen(t, in[0]);
  return n.kind == number_kind::nan ? nan_bits(t) : n.negative ? 0 : in[0];
}

/// What becomes of the integer part i of |x|, and a fraction that is below, at or above a half (0 where there is none).
using integer_rule = std::uint64_t (*)(std::uint64_t i, bool negative, bool fraction, int half);
constexpr integer_rule to_floor = [](std::uint64_t i, bool negative, bool fraction, int) {
  return i + (negative && fraction ? 1 : 0);
};
constexpr integer_rule to_ceil = [](std::uint64_t i, bool negative, bool fraction, int) {
  return i + (!negative && fraction ? 1 : 0);
};
constexpr integer_rule to_zero = [](std::uint64_t i, bool, bool, int) { return i; };
constexpr integer_rule to_nearest = [](std::uint64_t i, bool, bool, int half) {
  return i + (half > 0 || (half == 0 && i % 2 != 0) ? 1 : 0);
};

template <integer_rule Rule>
std::uint64_t oracle_integer(dtype t, patterns in, reals64) {
  const number n = widen(t, in[0]);
  if (n.kind == number_kind::nan) return nan_bits(t);
  if (n.kind != number_kind::finite || n.exponent >= 0) return in[0];
  const int shift = std::min(-n.exponent, 63);  // a significand has at most 53 bits: from 63 on |x| < 1/2
  const std::uint64_t i = n.significand >> shift, rest = n.significand - (i << shift);
  const std::uint64_t middle = std::uint64_t{1} << (shift - 1);
  const int half = rest > middle ? 1 : rest == middle ? 0 : -1;
  return round(t, n.negative, Rule(i, n.negative, rest != 0, half), 0, false);
}

std::uint64_t oracle_frac(dtype t, patterns in, reals64) {
  const number n = widen(t, in[0]);
  if (n.kind == number_kind::nan || n.kind == number_kind::infinite) return nan_bits(t);
  if (n.kind == number_kind::zero || n.exponent >= 0) return 0;
  const std::uint64_t below = n.exponent <= -64 ? ~std::uint64_t{0} : (std::uint64_t{1} << -n.exponent) - 1;
  const std::uint64_t rest = n.significand & below;
  return rest == 0 ? 0 : round(t, n.negative, rest, n.exponent, false);
}

std::uint64_t oracle_sign(dtype t, patterns in, reals64) {
  const number n = widen(t, in[0]);
  if (n.kind == number_kind::nan) return nan_bits(t);
  return n.kind == number_kind::zero ? in[0] : round(t, n.negative, 1, 0, false);
}

/// The pattern of an option that is a value.
std::uint64_t entering(dtype t, double v) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(v);
  return widen(dtype::f64, bits).kind == number_kind::nan ? nan_bits(t) : convert(dtype::f64, t, bits);
}
/// NaN made canonical.
std::uint64_t computed(dtype t, std::uint64_t x) { return widen(t, x).kind == number_kind::nan ? nan_bits(t) : x; }
/// order() of x and a double.
int order_with(dtype t, std::uint64_t x, double y) {
  const std::uint64_t both[] = {convert(t, dtype::f64, x), std::bit_cast<std::uint64_t>(y)};
  return order(dtype::f64, both);
}

std::uint64_t oracle_clip(dtype t, patterns in, reals64) {
  const std::uint64_t lower[] = {oracle_select<true, true>(t, in, nullptr), in[2]};
  return oracle_select<false, true>(t, lower, nullptr);
}
std::uint64_t oracle_clamp(dtype t, patterns in, reals64 bounds) {
  const std::uint64_t all[] = {in[0], entering(t, bounds[0]), entering(t, bounds[1])};
  return oracle_clip(t, all, nullptr);
}
/// The order of operands i and k.
int order_of(dtype t, patterns in, int i, int k) {
  const std::uint64_t both[] = {in[i], in[k]};
  return order(t, both);
}
/// g, x, lo, hi.
template <auto Passes>
std::uint64_t oracle_clip_gradient(dtype t, patterns in, reals64) {
  return Passes(order_of(t, in, 1, 2), order_of(t, in, 1, 3), order_of(t, in, 2, 3)) ? computed(t, in[0]) : 0;
}
constexpr auto to_inside = [](int x_lo, int x_hi, int) {
  return (x_lo == 0 || x_lo == 1) && (x_hi == 0 || x_hi == -1);
};
constexpr auto to_low = [](int x_lo, int, int lo_hi) { return x_lo == -1 && lo_hi == -1; };
constexpr auto to_high = [](int, int x_hi, int lo_hi) { return x_hi == 1 || lo_hi == 1; };
/// g, x: of x with the lower and the upper bound.
template <auto Zero>
std::uint64_t oracle_bounds_gradient(dtype t, patterns in, reals64 bounds) {
  const std::uint64_t low[] = {in[1], entering(t, bounds[0])}, high[] = {in[1], entering(t, bounds[1])};
  return Zero(order(t, low), order(t, high)) ? 0 : computed(t, in[0]);
}
constexpr auto not_inside = [](int low, int high) { return !((low == 0 || low == 1) && (high == -1 || high == 0)); };
constexpr auto outside = [](int low, int high) { return low == -1 || low == 0 || high == 0 || high == 1; };

bool up_to(int order) { return order == -1 || order == 0; }
std::uint64_t oracle_threshold(dtype t, patterns in, reals64 o) {
  return up_to(order_with(t, in[0], o[0])) ? entering(t, o[1]) : computed(t, in[0]);
}
std::uint64_t oracle_threshold_backward(dtype t, patterns in, reals64 o) {
  return up_to(order_with(t, in[1], o[0])) ? 0 : computed(t, in[0]);
}
/// The first operand, or +0 where the last one is small.
template <int Last>
std::uint64_t oracle_hardshrink(dtype t, patterns in, reals64 o) {
  const int low = order_with(t, in[Last], -o[0]);
  const bool small = (low == 0 || low == 1) && up_to(order_with(t, in[Last], o[0]));
  return small ? 0 : computed(t, in[0]);
}
std::uint64_t oracle_nan_to_num(dtype t, patterns in, reals64 o) {
  const number n = widen(t, in[0]);
  if (n.kind == number_kind::nan) return entering(t, o[0]);
  return n.kind == number_kind::infinite ? entering(t, o[n.negative ? 2 : 1]) : in[0];
}

/// Patterns of a boolean operand: true unless 0.
std::uint64_t oracle_where(dtype, patterns in, reals64) { return in[in[0] != 0 ? 1 : 2]; }
std::uint64_t oracle_masked_fill(dtype t, patterns in, reals64 o) { return in[1] != 0 ? entering(t, o[0]) : in[0]; }
bool truth(dtype t, std::uint64_t x) { return t == dtype::boolean ? x != 0 : widen(t, x).kind != number_kind::zero; }
template <auto Of>
std::uint64_t oracle_logical(dtype t, patterns in, reals64) {
  return Of(truth(t, in[0]), truth(t, in[1])) ? 1 : 0;
}

extended leaky(dtype t, patterns in, reals64 slope) {
  const extended x(t, in[0]);
  return !x.is_nan() && !x.is_zero() && !x.negative() ? x : value(slope[0]) * x;
}

/// -1, 0, 1 as a number x is less than, equal to or greater than y; 2 where it is NaN.
int compared(const extended& x, int y) {
  const extended d = x - extended(y);
  return x.is_nan() ? 2 : d.is_zero() ? 0 : d.negative() ? -1 : 1;
}

std::uint64_t oracle_relu6(dtype t, patterns in, reals64) {
  const extended x(t, in[0]);
  if (x.is_nan()) return nan_bits(t);
  return compared(x, 0) <= 0 ? 0 : compared(x, 6) > 0 ? round(t, false, 6, 0, false) : in[0];
}
std::uint64_t oracle_relu6_backward(dtype t, patterns in, reals64) {
  const extended g(t, in[0]), x(t, in[1]);
  const bool stops = !x.is_nan() && (compared(x, 0) <= 0 || compared(x, 6) >= 0);
  return stops ? 0 : g.is_nan() ? nan_bits(t) : in[0];
}

using terms = std::pair<extended, extended>;
constexpr auto add_terms = [](dtype t, patterns in, reals64 o) { return terms({t, in[0]}, scaled(o[0], {t, in[1]})); };
constexpr auto sub_terms = [](dtype t, patterns in, reals64 o) { return terms({t, in[0]}, -scaled(o[0], {t, in[1]})); };
constexpr auto fma_terms = [](dtype t, patterns in, reals64) {
  return terms(extended(t, in[0]) * extended(t, in[1]), {t, in[2]});
};
constexpr auto product = [](dtype t, patterns in, reals64) { return extended(t, in[0]) * extended(t, in[1]); };
constexpr auto two_products = [](dtype t, patterns in, reals64) {
  return extended(t, in[0]) * extended(t, in[1]) + extended(t, in[2]) * extended(t, in[3]);
};
constexpr auto products_apart = [](dtype t, patterns in, reals64) {
  return extended(t, in[0]) * extended(t, in[1]) - extended(t, in[2]) * extended(t, in[3]);
};
constexpr auto exact_square = [](dtype t, patterns in, reals64) { return extended(t, in[0]) * extended(t, in[0]); };
/// 1, x: the operands of the division that a reciprocal is.
constexpr auto over_one = [](dtype t, patterns in) { return std::array{round(t, false, 1, 0, false), in[0]}; };
constexpr auto tanh_gradient = [](dtype t, patterns in, reals64) {
  const extended y(t, in[1]);
  return extended(t, in[0]) * (extended(1) - y * y);
};
constexpr auto sigmoid_gradient = [](dtype t, patterns in, reals64) {
  const extended y(t, in[1]);
  return extended(t, in[0]) * y * (extended(1) - y);
};

/// Numerators and denominators.
constexpr auto hardsigmoid_gradient = [](dtype t, patterns in) {
  const extended g(t, in[0]), x(t, in[1]);
  return !x.is_nan() && compared(x, -3) > 0 && compared(x, 3) < 0 ? terms(g, extended(6))
                                                                  : terms(extended(), extended(1));
};
constexpr auto hardswish_gradient = [](dtype t, patterns in) {
  const extended g(t, in[0]), x(t, in[1]);
  if (!x.is_nan() && compared(x, -3) <= 0) return terms(extended(), extended(1));
  if (x.is_nan() || compared(x, 3) >= 0) return terms(g, extended(1));
  return terms(g * (x + x + extended(3)), extended(6));
};
constexpr auto softsign_gradient = [](dtype t, patterns in) {
  const extended g(t, in[0]), x(t, in[1]), root = extended(1) + (x.negative() ? -x : x);
  return terms(g, root * root);
};

template <auto Exact>
constexpr oracle algebraic(std::string_view name) {
  return {.name = name, .f = rounded<Exact>, .to = rounded_to<Exact>, .exact = Exact};
}
template <auto Terms>
constexpr oracle sum_of(std::string_view name) {
  return {.name = name, .f = rounded_sum<Terms>, .to = rounded_sum_to<Terms>, .exact = exact_sum_of<Terms>};
}

template <auto Parts>
constexpr oracle quotient_of(std::string_view name) {
  return {.name = name,
          .f =
              [](dtype t, patterns in, reals64) {
                const auto [n, d] = Parts(t, in);
                return rounded_quotient(t, n, d);
              },
          .where =
              [](dtype t, patterns in, reals64) {
                const auto [n, d] = Parts(t, in);
                return locate_quotient(t, n, d);
              }};
}

constexpr oracle oracles[] = {
    sum_of<add_terms>("add"),
    sum_of<sub_terms>("sub"),
    algebraic<product>("mul"),
    {.name = "div",
     .f = [](dtype t, patterns in, reals64) { return oracle_div(t, t, in[0], in[1]); },
     .to = [](dtype from, dtype to, patterns in, reals64) { return oracle_div(from, to, in[0], in[1]); },
     .where = [](dtype t, patterns in, reals64) { return locate_quotient(t, in); }},
    sum_of<fma_terms>("fma"),
    algebraic<two_products>("sum_of_products"),
    algebraic<products_apart>("difference_of_products"),
    {.name = "square", .f = oracle_square, .exact = exact_square},
    {.name = "reciprocal",
     .f = [](dtype t, patterns in, reals64) { return oracle_div(t, t, over_one(t, in)[0], in[0]); },
     .where = [](dtype t, patterns in, reals64) { return locate_quotient(t, over_one(t, in).data()); }},
    {.name = "neg", .f = oracle_neg},
    {.name = "abs", .f = oracle_abs},
    {.name = "copysign", .f = oracle_copysign},
    {.name = "sqrt",
     .f = [](dtype t, patterns in, reals64) { return oracle_sqrt(t, t, in[0]); },
     .to = [](dtype from, dtype to, patterns in, reals64) { return oracle_sqrt(from, to, in[0]); },
     .near = [](mpfr_ptr y, mpfr_srcptr x) -> unsigned {
       mpfr_sqrt(y, x, MPFR_RNDN);  // at most half an ulp
       return 1;
     }},
    {.name = "maximum", .f = oracle_select<true, true>},
    {.name = "minimum", .f = oracle_select<false, true>},
    {.name = "fmax", .f = oracle_select<true, false>},
    {.name = "fmin", .f = oracle_select<false, false>},
    {.name = "heaviside", .f = oracle_heaviside},
    {.name = "nextafter", .f = oracle_nextafter},
    {.name = "less", .f = oracle_order<-1, -1>},
    {.name = "less_equal", .f = oracle_order<-1, 0>},
    {.name = "greater", .f = oracle_order<1, 1>},
    {.name = "greater_equal", .f = oracle_order<1, 0>},
    {.name = "equal", .f = oracle_order<0, 0>},
    {.name = "not_equal", .f = oracle_not_equal},
    {.name = "isnan", .f = oracle_class<[](const number& n) { return n.kind == number_kind::nan; }>},
    {.name = "isinf", .f = oracle_class<[](const number& n) { return n.kind == number_kind::infinite; }>},
    {.name = "isfinite",
     .f = oracle_class<[](const number& n) { return n.kind == number_kind::zero || n.kind == number_kind::finite; }>},
    {.name = "signbit", .f = oracle_signbit},
    {.name = "floor", .f = oracle_integer<to_floor>},
    {.name = "ceil", .f = oracle_integer<to_ceil>},
    {.name = "trunc", .f = oracle_integer<to_zero>},
    {.name = "round", .f = oracle_integer<to_nearest>},
    {.name = "frac", .f = oracle_frac},
    {.name = "sign", .f = oracle_sign},
    {.name = "pow",
     .f =
         [](dtype t, patterns in, reals64) {
           return oracle_pow(t, {t, in[0]}, {t, in[1]});
         },
     .where =
         [](dtype t, patterns in, reals64) {
           return locate_pow(t, {t, in[0]}, {t, in[1]});
         }},
    {.name = "pow_scalar",
     .f =
         [](dtype t, patterns in, reals64 o) {
           return oracle_pow(t, {t, in[0]}, scalar(o[0]));
         },
     .where =
         [](dtype t, patterns in, reals64 o) {
           return locate_pow(t, {t, in[0]}, scalar(o[0]));
         }},
    {.name = "scalar_pow",
     .f =
         [](dtype t, patterns in, reals64 o) {
           return oracle_pow(t, scalar(o[0]), {t, in[0]});
         },
     .where =
         [](dtype t, patterns in, reals64 o) {
           return locate_pow(t, scalar(o[0]), {t, in[0]});
         }},
    {.name = "relu", .f = oracle_relu},
    algebraic<leaky>("leaky_relu"),
    {.name = "relu_backward", .f = oracle_relu_backward},
    {.name = "clamp", .f = oracle_clamp},
    {.name = "clip", .f = oracle_clip},
    {.name = "clip_backward", .f = oracle_clip_gradient<to_inside>},
    {.name = "clip_backward_lo", .f = oracle_clip_gradient<to_low>},
    {.name = "clip_backward_hi", .f = oracle_clip_gradient<to_high>},
    {.name = "clamp_backward", .f = oracle_bounds_gradient<not_inside>},
    {.name = "hardtanh", .f = oracle_clamp},
    {.name = "hardtanh_backward", .f = oracle_bounds_gradient<outside>},
    {.name = "threshold", .f = oracle_threshold},
    {.name = "threshold_backward", .f = oracle_threshold_backward},
    {.name = "hardshrink", .f = oracle_hardshrink<0>},
    {.name = "hardshrink_backward", .f = oracle_hardshrink<1>},
    {.name = "nan_to_num", .f = oracle_nan_to_num},
    {.name = "where", .f = oracle_where},
    {.name = "masked_fill", .f = oracle_masked_fill},
    {.name = "logical_and", .f = oracle_logical<[](bool x, bool y) { return x && y; }>},
    {.name = "logical_or", .f = oracle_logical<[](bool x, bool y) { return x || y; }>},
    {.name = "logical_xor", .f = oracle_logical<[](bool x, bool y) { return x != y; }>},
    {.name = "logical_not",
     .f = [](dtype t, patterns in, reals64) -> std::uint64_t { return truth(t, in[0]) ? 0 : 1; }},
    algebraic<tanh_gradient>("tanh_backward"),
    algebraic<sigmoid_gradient>("sigmoid_backward"),
    {.name = "relu6", .f = oracle_relu6},
    {.name = "relu6_backward", .f = oracle_relu6_backward},
    quotient_of<hardsigmoid_gradient>("hardsigmoid_backward"),
    quotient_of<hardswish_gradient>("hardswish_backward"),
    quotient_of<softsign_gradient>("softsign_backward"),
    located<located_addcmul>("addcmul"),
    located<located_addcdiv>("addcdiv"),
    located<located_lerp>("lerp"),
    located<located_lerp_scalar>("lerp_scalar"),
    located<located_prelu>("prelu"),
    located<located_prelu_backward>("prelu_backward"),
    located<located_hypot>("hypot"),
    located<located_fmod>("fmod"),
    located<located_remainder>("remainder"),
    located<located_div_trunc>("div_trunc"),
    located<located_div_floor>("div_floor"),
    {.name = "log_backward",
     .f = [](dtype t, patterns in, reals64) { return oracle_div(t, t, in[0], in[1]); },
     .where = [](dtype t, patterns in, reals64) { return locate_quotient(t, in); }},
    located<located_abs_backward>("abs_backward"),
    located<located_sqrt_backward>("sqrt_backward"),
    located<located_log1p_backward>("log1p_backward"),
    located<located_rsqrt_backward>("rsqrt_backward"),
    located<located_reciprocal_backward>("reciprocal_backward"),
    located<located_expm1_backward>("expm1_backward"),
    located<located_div_backward_y>("div_backward_y"),
    located<located_addcdiv_backward_z>("addcdiv_backward_z"),
    located<located_lerp_backward_x>("lerp_backward_x"),
    located<located_lerp_backward_weight>("lerp_backward_weight"),
    located<located_lerp_scalar_backward_x>("lerp_scalar_backward_x"),
    located<located_hypot_backward>("hypot_backward"),
    located<located_atan2_backward_y>("atan2_backward_y"),
    located<located_atan2_backward_x>("atan2_backward_x"),
    located<located_xlogy_backward_y>("xlogy_backward_y"),
    located<located_fmod_backward_y>("fmod_backward_y"),
    located<located_remainder_backward_y>("remainder_backward_y"),
    located<located_copysign_backward>("copysign_backward"),
    located<located_maximum_backward>("maximum_backward"),
    located<located_minimum_backward>("minimum_backward"),
    located<located_fmax_backward_x>("fmax_backward_x"),
    located<located_fmax_backward_y>("fmax_backward_y"),
    located<located_fmin_backward_x>("fmin_backward_x"),
    located<located_fmin_backward_y>("fmin_backward_y"),
    located<located_xlogy>("xlogy"),
    located<located_logaddexp>("logaddexp"),
    located<located_elu>("elu"),
    located<located_silu_backward>("silu_backward"),
    located<located_mish_backward>("mish_backward"),
    located<located_log_sigmoid_backward>("log_sigmoid_backward"),
    located<located_gelu_backward>("gelu_backward"),
    located<located_gelu_tanh_backward>("gelu_tanh_backward"),
    located<located_leaky_relu_backward>("leaky_relu_backward"),
    located<located_elu_backward>("elu_backward"),
    located<located_selu_backward>("selu_backward"),
    located<located_celu>("celu"),
    located<located_celu_backward>("celu_backward"),
    located<located_softplus>("softplus"),
    located<located_softplus_backward>("softplus_backward"),
    located<located_atan2>("atan2"),
    located<located_logaddexp2>("logaddexp2"),
    located<located_logit>("logit"),
    located<located_logit_backward>("logit_backward"),
    located<located_softshrink>("softshrink"),
    located<located_softshrink_backward>("softshrink_backward"),
    located<located_log2_backward>("log2_backward"),
    located<located_log10_backward>("log10_backward"),
    located<located_exp2_backward>("exp2_backward"),
    located<located_xlogy_backward_x>("xlogy_backward_x"),
    located<located_logaddexp_backward>("logaddexp_backward"),
    located<located_logaddexp2_backward>("logaddexp2_backward"),
    located<located_sin_backward>("sin_backward"),
    located<located_cos_backward>("cos_backward"),
    located<located_tan_backward>("tan_backward"),
    located<located_asin_backward>("asin_backward"),
    located<located_acos_backward>("acos_backward"),
    located<located_atan_backward>("atan_backward"),
    located<located_sinh_backward>("sinh_backward"),
    located<located_cosh_backward>("cosh_backward"),
    located<located_asinh_backward>("asinh_backward"),
    located<located_acosh_backward>("acosh_backward"),
    located<located_atanh_backward>("atanh_backward"),
    located<located_erf_backward>("erf_backward"),
    located<located_erfc_backward>("erfc_backward"),
    located<located_erfinv_backward>("erfinv_backward"),
    located<located_ndtri_backward>("ndtri_backward"),
    located<located_pow_backward_x>("pow_backward_x"),
    located<located_pow_backward_y>("pow_backward_y"),
    located<located_pow_scalar_backward>("pow_scalar_backward"),
    located<located_scalar_pow_backward>("scalar_pow_backward"),
    located<located_glu>("glu"),
    located<located_swiglu>("swiglu"),
    located<located_reglu>("reglu"),
    located<located_geglu>("geglu"),
    located<located_glu_backward_b>("glu_backward_b"),
    located<located_swiglu_backward_a>("swiglu_backward_a"),
    located<located_reglu_backward_a>("reglu_backward_a"),
    located<located_geglu_backward_a>("geglu_backward_a"),
};

template <std::size_t I>
constexpr oracle elementary_oracle() {
  oracle o{.name = elementary_functions[I].name,
           .f = [](dtype t, patterns in, reals64) { return evaluate(elementary_functions[I], t, in[0]); }};
  if (elementary_functions[I].rational != nullptr) {
    o.where = [](dtype t, patterns in, reals64) { return locate_rational(elementary_functions[I], t, in[0]); };
  } else {
    o.near = [](mpfr_ptr y, mpfr_srcptr x) { return approximate(elementary_functions[I].f, y, x); };
  }
  return o;
}
constexpr auto elementary_oracles = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{elementary_oracle<I>()...};
}
(std::make_index_sequence<std::size(elementary_functions)>());

constexpr const oracle* oracle_named(std::string_view name) {
  for (const oracle& o : oracles)
    if (o.name == name) return &o;
  for (const oracle& o : elementary_oracles)
    if (o.name == name) return &o;
  return nullptr;
}
constexpr auto check = []<class Op>() {
  constexpr const ops::elementwise_row& row = Op::row;
  constexpr const oracle* o = oracle_named(row.name);
  static_assert(o != nullptr, "an operation without oracle");
  static_assert(!row.has_any_float() || o->to != nullptr, "an operation without oracle of other formats");
};
static_assert((ops::for_each_elementwise(check), true));

}  // namespace

option_values::option_values(const ops::elementwise_row& row, dtype t, const attributes& attrs) {
  for (int i = 0; i < row.options.count(); ++i) {
    const ops::real_option& o = row.options.all[i];
    value[i] = o.otherwise.in(t);
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

std::uint64_t evaluate(const ops::elementwise_row& row, dtype t, dtype to, const std::uint64_t* in,
                       const option_values& options) {
  return oracle_of(row.name).to(t, to, in, options.value);
}

std::uint32_t evaluate(const ops::elementwise_row& row, const std::uint32_t* in) {
  std::uint64_t wide[ops::most_operands] = {};
  std::copy_n(in, row.arity, wide);
  return low32(evaluate(row, f32, wide, option_values(row, f32)));
}

std::uint32_t evaluate(std::string_view name, const std::uint32_t* in) {
  return evaluate(*elementwise_named(name), in);
}

}  // namespace repdl::reference
