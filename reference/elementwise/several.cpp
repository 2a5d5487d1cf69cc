#include "reference/elementwise/several.hpp"

#include <gmpxx.h>

#include <bit>
#include <cmath>
#include <utility>

#include "reference/numbers/real.hpp"

namespace repdl::reference {
namespace {

using patterns = const std::uint64_t*;
using doubles = const double*;

/// A rational number, an infinity or NaN, and the sign of a zero.
struct node {
  enum class kinds { nan, infinite, finite } kind = kinds::nan;
  bool negative = false;
  mpq_class q;

  bool nan() const { return kind == kinds::nan; }
  bool infinite() const { return kind == kinds::infinite; }
  bool finite() const { return kind == kinds::finite; }
  bool zero() const { return finite() && q == 0; }
  bool positive() const { return !nan() && !zero() && !negative; }
};
node not_a_number() { return {}; }
node infinite(bool negative) { return {node::kinds::infinite, negative, 0}; }
node zero(bool negative) { return {node::kinds::finite, negative, 0}; }
/// An exact zero is +0.
node exactly(const mpq_class& q) { return {node::kinds::finite, q < 0, q}; }

node of(dtype t, std::uint64_t bits) {
  const number n = widen(t, bits);
  if (n.kind == number_kind::nan) return not_a_number();
  if (n.kind == number_kind::infinite) return infinite(n.negative);
  if (n.kind == number_kind::zero) return zero(n.negative);
  return exactly(rational(t, bits));
}
node of(double finite) { return finite == 0 ? zero(std::signbit(finite)) : exactly(rational(finite)); }

node operator-(node a) {
  a.negative = !a.negative;
  a.q = -a.q;
  return a;
}
/// Section 3's sums: an exact zero is +0.
node operator+(const node& a, const node& b) {
  if (a.nan() || b.nan() || (a.infinite() && b.infinite() && a.negative != b.negative)) return not_a_number();
  if (a.infinite()) return a;
  if (b.infinite()) return b;
  return exactly(a.q + b.q);
}
/// Two terms as in IEEE 754: two zeros of one sign keep it.
node sum_of_two(const node& a, const node& b) {
  if (a.zero() && b.zero() && a.negative && b.negative) return a;
  return a + b;
}
node operator*(const node& a, const node& b) {
  if (a.nan() || b.nan() || (a.infinite() && b.zero()) || (a.zero() && b.infinite())) return not_a_number();
  const bool negative = a.negative != b.negative;
  if (a.infinite() || b.infinite()) return infinite(negative);
  return a.zero() || b.zero() ? zero(negative) : exactly(a.q * b.q);
}
node operator/(const node& a, const node& b) {
  if (a.nan() || b.nan() || (a.infinite() && b.infinite()) || (a.zero() && b.zero())) return not_a_number();
  const bool negative = a.negative != b.negative;
  if (a.infinite() || b.zero()) return infinite(negative);
  return a.zero() || b.infinite() ? zero(negative) : exactly(a.q / b.q);
}

std::uint64_t pattern(dtype t, std::uint64_t bits, outcome* where) {
  if (where != nullptr) *where = outcome_of_pattern(t, bits);
  return bits;
}
std::uint64_t round(dtype t, const node& v, outcome* where) {
  if (v.nan()) return pattern(t, nan_bits(t), where);
  if (v.infinite()) return pattern(t, infinity_bits(t, v.negative), where);
  if (v.zero()) return pattern(t, zero_bits(t, v.negative), where);
  return round_exact(t, v.q, where);
}

/// floor, or the integer nearest to 0.
mpz_class whole_part(const mpq_class& q, bool floor) {
  mpz_class i;
  (floor ? mpz_fdiv_q : mpz_tdiv_q)(i.get_mpz_t(), q.get_num_mpz_t(), q.get_den_mpz_t());
  return i;
}
node whole_quotient(const node& x, const node& y, bool floor) {
  if (!x.finite() || !y.finite() || y.zero()) {
    if (!x.finite() || !y.infinite()) return x / y;
    return floor && !x.zero() && x.negative != y.negative ? exactly(-1) : zero(x.negative != y.negative);
  }
  const mpz_class i = whole_part(x.q / y.q, floor);
  return i == 0 ? zero(x.negative != y.negative) : exactly(i);
}
node rest(const node& x, const node& y, bool floor) {
  if (!x.finite() || y.nan() || y.zero()) return not_a_number();
  const node& of_zero = floor ? y : x;
  if (x.zero()) return zero(of_zero.negative);
  if (y.infinite()) return floor && x.negative != y.negative ? y : x;
  const mpq_class r = x.q - y.q * whole_part(x.q / y.q, floor);
  return r == 0 ? zero(of_zero.negative) : exactly(r);
}

/// -1, 0, 1 as x is less than, equal to or greater than y; 2 where one is NaN.
int order(const node& x, const node& y) {
  if (x.nan() || y.nan()) return 2;
  const auto end = [](const node& a) { return a.infinite() ? (a.negative ? -1 : 1) : 0; };
  if (end(x) != 0 || end(y) != 0) return (end(x) > end(y)) - (end(x) < end(y));
  return (x.q > y.q) - (x.q < y.q);
}
/// Whether in[1] is what fmax (better = 1) or fmin (-1) of in[1] and in[2] gives.
bool first_wins(dtype t, patterns in, int better) {
  const node x = of(t, in[1]), y = of(t, in[2]);
  const int o = order(x, y);
  return o == better || o == 0 || y.nan();
}

}  // namespace

std::uint64_t located_addcmul(dtype t, patterns in, doubles o, outcome* where) {
  return round(t, sum_of_two(of(t, in[0]), of(o[0]) * of(t, in[1]) * of(t, in[2])), where);
}
std::uint64_t located_addcdiv(dtype t, patterns in, doubles o, outcome* where) {
  return round(t, sum_of_two(of(t, in[0]), of(o[0]) * of(t, in[1]) / of(t, in[2])), where);
}
std::uint64_t located_lerp(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]);
  return round(t, sum_of_two(x, of(t, in[2]) * (of(t, in[1]) + -x)), where);
}
std::uint64_t located_lerp_scalar(dtype t, patterns in, doubles o, outcome* where) {
  const node x = of(t, in[0]);
  return round(t, sum_of_two(x, of(o[0]) * (of(t, in[1]) + -x)), where);
}
std::uint64_t located_prelu(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]);
  return round(t, x.positive() ? x : of(t, in[1]) * x, where);
}
std::uint64_t located_prelu_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]);
  return round(t, of(t, in[1]).positive() ? g : of(t, in[2]) * g, where);
}

std::uint64_t located_hypot(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]), y = of(t, in[1]);
  if (x.infinite() || y.infinite()) return round(t, infinite(false), where);
  if (x.nan() || y.nan()) return round(t, not_a_number(), where);
  const mpq_class square = x.q * x.q + y.q * y.q;
  mpq_class root;
  root.get_num() = sqrt(square.get_num());
  root.get_den() = sqrt(square.get_den());
  if (root * root == square) return round(t, exactly(root), where);
  return decide(
      t, [&](mpfr_prec_t p) { return sqrt(interval(p, square)); }, where);  // irrational: no midpoint
}

std::uint64_t located_fmod(dtype t, patterns in, doubles, outcome* where) {
  return round(t, rest(of(t, in[0]), of(t, in[1]), false), where);
}
std::uint64_t located_remainder(dtype t, patterns in, doubles, outcome* where) {
  return round(t, rest(of(t, in[0]), of(t, in[1]), true), where);
}
std::uint64_t located_div_trunc(dtype t, patterns in, doubles, outcome* where) {
  return round(t, whole_quotient(of(t, in[0]), of(t, in[1]), false), where);
}
std::uint64_t located_div_floor(dtype t, patterns in, doubles, outcome* where) {
  return round(t, whole_quotient(of(t, in[0]), of(t, in[1]), true), where);
}

// Gradients. Selections read their operands as numbers, too: what is chosen is rounded to its own format.
std::uint64_t located_abs_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  return round(t, x.nan() ? x : x.zero() ? zero(false) : x.negative ? -g : g, where);
}
std::uint64_t located_sqrt_backward(dtype t, patterns in, doubles, outcome* where) {
  return round(t, of(t, in[0]) / (exactly(2) * of(t, in[1])), where);
}
std::uint64_t located_log1p_backward(dtype t, patterns in, doubles, outcome* where) {
  return round(t, of(t, in[0]) / (exactly(1) + of(t, in[1])), where);
}
std::uint64_t located_rsqrt_backward(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[1]);
  return round(t, -of(t, in[0]) * y * y * y / exactly(2), where);
}
std::uint64_t located_reciprocal_backward(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[1]);
  return round(t, -of(t, in[0]) * y * y, where);
}
std::uint64_t located_expm1_backward(dtype t, patterns in, doubles, outcome* where) {
  return round(t, of(t, in[0]) * (of(t, in[1]) + exactly(1)), where);
}
std::uint64_t located_div_backward_y(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[2]);
  return round(t, -of(t, in[0]) * of(t, in[1]) / (y * y), where);
}
std::uint64_t located_addcdiv_backward_z(dtype t, patterns in, doubles o, outcome* where) {
  const node z = of(t, in[2]);
  return round(t, -of(t, in[0]) * of(o[0]) * of(t, in[1]) / (z * z), where);
}
std::uint64_t located_lerp_backward_x(dtype t, patterns in, doubles, outcome* where) {
  return round(t, of(t, in[0]) * (exactly(1) + -of(t, in[1])), where);
}
std::uint64_t located_lerp_backward_weight(dtype t, patterns in, doubles, outcome* where) {
  return round(t, of(t, in[0]) * (of(t, in[2]) + -of(t, in[1])), where);
}
std::uint64_t located_lerp_scalar_backward_x(dtype t, patterns in, doubles o, outcome* where) {
  return round(t, of(t, in[0]) * (exactly(1) + -of(o[0])), where);
}
std::uint64_t located_hypot_backward(dtype t, patterns in, doubles, outcome* where) {
  const node r = of(t, in[2]);
  return round(t, r.zero() ? zero(false) : of(t, in[0]) * of(t, in[1]) / r, where);
}
std::uint64_t located_atan2_backward_y(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[1]), x = of(t, in[2]);
  return round(t, x.zero() && y.zero() ? zero(false) : of(t, in[0]) * x / (x * x + y * y), where);
}
std::uint64_t located_atan2_backward_x(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[1]), x = of(t, in[2]);
  return round(t, x.zero() && y.zero() ? zero(false) : -of(t, in[0]) * y / (x * x + y * y), where);
}
std::uint64_t located_xlogy_backward_y(dtype t, patterns in, doubles, outcome* where) {
  return round(t, of(t, in[0]) * of(t, in[1]) / of(t, in[2]), where);
}
std::uint64_t located_fmod_backward_y(dtype t, patterns in, doubles, outcome* where) {
  return round(t, -of(t, in[0]) * whole_quotient(of(t, in[1]), of(t, in[2]), false), where);
}
std::uint64_t located_remainder_backward_y(dtype t, patterns in, doubles, outcome* where) {
  return round(t, -of(t, in[0]) * whole_quotient(of(t, in[1]), of(t, in[2]), true), where);
}
std::uint64_t located_copysign_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  const bool to_minus = (in[2] & format_of(t).sign_bit()) != 0;  // of NaN too
  return round(t, x.nan() ? x : x.zero() ? zero(false) : x.negative == to_minus ? g : -g, where);
}
std::uint64_t located_maximum_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]);
  const int o = order(of(t, in[1]), of(t, in[2]));
  return round(t, o == 0 ? g / exactly(2) : o == -1 ? zero(false) : g, where);
}
std::uint64_t located_minimum_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]);
  const int o = order(of(t, in[1]), of(t, in[2]));
  return round(t, o == 0 ? g / exactly(2) : o == 1 ? zero(false) : g, where);
}
std::uint64_t located_fmax_backward_x(dtype t, patterns in, doubles, outcome* where) {
  return round(t, first_wins(t, in, 1) ? of(t, in[0]) : zero(false), where);
}
std::uint64_t located_fmax_backward_y(dtype t, patterns in, doubles, outcome* where) {
  return round(t, first_wins(t, in, 1) ? zero(false) : of(t, in[0]), where);
}
std::uint64_t located_fmin_backward_x(dtype t, patterns in, doubles, outcome* where) {
  return round(t, first_wins(t, in, -1) ? of(t, in[0]) : zero(false), where);
}
std::uint64_t located_fmin_backward_y(dtype t, patterns in, doubles, outcome* where) {
  return round(t, first_wins(t, in, -1) ? zero(false) : of(t, in[0]), where);
}

std::uint64_t located_xlogy(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]), y = of(t, in[1]);
  if (x.nan() || y.nan()) return round(t, not_a_number(), where);
  if (x.zero()) return round(t, zero(false), where);
  if (y.zero()) return round(t, x * infinite(true), where);
  if (y.negative) return round(t, not_a_number(), where);
  if (y.infinite()) return round(t, x * y, where);
  if (y.q == 1) return round(t, x * zero(false), where);
  if (x.infinite()) return round(t, infinite(x.negative != (y.q < 1)), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, x.q) * log(interval(p, y.q)); }, where);  // transcendental
}

namespace {
/// x + r, x a number of t and 0 < r < 2^-1400: far less than the distance of a number to its nearest midpoint, and nothing beside 0.
std::uint64_t beside_nothing(dtype t, const mpq_class& x, outcome* where) {
  return round_beside(t, x + power_of_two(-1400), x, where);
}
}  // namespace

std::uint64_t located_logaddexp(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]), y = of(t, in[1]);
  if (x.nan() || y.nan()) return round(t, not_a_number(), where);
  for (const auto& [a, b] : {std::pair{&x, &y}, {&y, &x}}) {
    if (a->infinite()) return round(t, a->negative ? *b + zero(false) : *a, where);  // e^-inf is 0
  }
  const mpq_class least = x.q < y.q ? x.q : y.q, most = x.q < y.q ? y.q : x.q;
  if (most - least > 1000) return beside_nothing(t, most, where);  // e^-1000 < 2^-1442
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, most) + log1p(exp(interval(p, least) - interval(p, most))); },
      where);  // transcendental
}

// c (e^w - 1) with c = scale alpha, w = rate x, rational. Transcendental for c, w != 0.
std::uint64_t located_elu(dtype t, patterns in, doubles o, outcome* where) {
  const node x = of(t, in[0]), c = of(o[1]) * of(o[0]), rate = of(o[2]), w = rate * x;
  if (x.nan()) return round(t, x, where);
  if (x.positive()) return round(t, of(o[1]) * x, where);
  if (x.zero()) return round(t, c * w, where);
  if (w.nan()) return round(t, w, where);
  if (w.infinite()) return round(t, c * (w.negative ? exactly(-1) : w), where);
  if (w.zero()) return round(t, c * zero(false), where);
  if (c.zero()) return round(t, c * w, where);  // e^w - 1 has the sign of w
  // |c| >= 2^-400 and e^2000 > 2^2800; |c| < 2^401 and e^-2000 < 2^-2800, and c has 106 bits, the last one from 2^-504 on.
  if (w.q > 2000) return round(t, infinite(c.negative), where);
  if (w.q < -2000) return round_beside(t, -c.q * (1 - power_of_two(-2000)), -c.q, where);
  // e^w - 1 = w (1 + w / 2 + ...), and c w has 212 bits.
  if (abs(w.q) < power_of_two(-400)) return round_beside(t, c.q * w.q * (1 + w.q / 2), c.q * w.q, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, c.q) * (exp(interval(p, w.q)) - interval(p, mpq_class(1))); }, where);
}

namespace {

/// How fast a factor goes to its limits: beyond `to_zero` it is below e^-2900 < 2^-4180, beyond `to_one` within e^-190 < 2^-270 of 1.
struct decay {
  int to_zero, to_one;
};
constexpr decay exponential{3000, 200}, gaussian{100, 20};

// g times a factor of x, with the limits `low` and `high` for x below and above, each 0 or 1; near 1 it is above or below it (side). At
// infinities, those.
template <class Factor>
std::uint64_t gradient(dtype t, const node& g, const node& x, const node& low, const node& high, const Factor& factor,
                       outcome* where, decay speed = exponential, int side = 1) {
  if (x.nan()) return round(t, x, where);
  if (x.infinite()) return round(t, g * (x.negative ? low : high), where);
  const node& limit = x.negative ? low : high;
  const bool beyond = abs(x.q) > (limit.zero() ? speed.to_zero : speed.to_one);
  if (g.nan()) return round(t, g, where);
  if (g.infinite() || g.zero()) {  // the factor's sign
    bool negative = limit.negative;
    for (mpfr_prec_t p = 128; !beyond; p *= 2) {
      const interval f = factor(p);
      negative = mpfr_sgn(f.hi()) < 0;
      if (negative || mpfr_sgn(f.lo()) > 0) break;
    }
    return round(t, g * exactly(negative ? -1 : 1), where);
  }
  if (!beyond)
    return decide(
        t, [&](mpfr_prec_t p) { return interval(p, g.q) * factor(p); }, where);
  // |g| < 2^2049, a number (selu: times 1.76) or a product of two: g 2^-4180 is nothing beside 0. g has 106 bits: if it
  // is no midpoint, its distance to one is at least 2^-107 |g|.
  const mpq_class away = g.q * power_of_two(-4000);
  const mpq_class nearest = g.q * limit.q;
  const bool below = limit.zero() ? limit.negative : side < 0;
  return round_beside(t, below ? mpq_class(nearest - away) : mpq_class(nearest + away), nearest, where);
}

interval whole(mpfr_prec_t p, const mpq_class& q) { return interval(p, q); }
/// 1 / (1 + e^-a)
interval logistic(const interval& a) { return whole(a.precision(), 1) / (whole(a.precision(), 1) + exp(-a)); }

mpq_class decimal(const char* digits, long places) {
  mpz_class ten;
  mpz_ui_pow_ui(ten.get_mpz_t(), 10, static_cast<unsigned long>(places));
  mpq_class q{mpz_class(digits), ten};
  q.canonicalize();
  return q;
}
mpq_class selu_scale() { return decimal("10507009873554804934193349852946", 31); }
mpq_class selu_alpha() { return decimal("16732632423543772848170429916717", 31); }

}  // namespace

// e^x is transcendental for rational x != 0: no midpoint but at x = 0, where these are g/2, g/2 and 3 g/5.
std::uint64_t located_silu_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.zero()) return round(t, g * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) {
    const interval s = logistic(interval(p, x.q)), one = whole(p, 1);
    return s * (one + interval(p, x.q) * (one - s));
  };
  return gradient(t, g, x, zero(true), exactly(1), factor, where);
}
std::uint64_t located_log_sigmoid_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.zero()) return round(t, g * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) { return logistic(-interval(p, x.q)); };
  return gradient(t, g, x, exactly(1), zero(false), factor, where, exponential, -1);
}
std::uint64_t located_mish_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.zero()) return round(t, g * exactly(mpq_class(3, 5)), where);
  const auto factor = [&](mpfr_prec_t p) {
    // With w = e^v, n = w (w + 2): tanh(ln(1 + w)) = n / (n + 2), and 1 less its square is 4 (n + 1) / (n + 2)^2.
    const interval one = whole(p, 1), two = whole(p, 2), v = interval(p, x.q), w = exp(v), n = w * (w + two),
                   d = n + two;
    return n / d + v * whole(p, 4) * (n + one) / (d * d) * logistic(v);
  };
  return gradient(t, g, x, zero(true), exactly(1), factor, where);
}
// Nothing is known of these; x = 0: g/2.
std::uint64_t located_gelu_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.zero()) return round(t, g * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) {
    const interval v = interval(p, x.q), two = whole(p, 2);
    const interval density = exp(interval(p, mpq_class(-x.q * x.q / 2))) / sqrt(two * interval::pi(p));
    return erfc(-v / sqrt(two)) / two + v * density;
  };
  return gradient(t, g, x, zero(true), exactly(1), factor, where, gaussian);
}
std::uint64_t located_gelu_tanh_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.zero()) return round(t, g * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) {
    const interval one = whole(p, 1), unit = sqrt(whole(p, 2) / interval::pi(p));
    const mpq_class cube = x.q * x.q * x.q;
    const interval u = unit * interval(p, mpq_class(x.q + mpq_class(44715, 1000000) * cube));
    const interval slope = unit * interval(p, mpq_class(1 + mpq_class(134145, 1000000) * x.q * x.q));
    const interval upper = logistic(u + u);  // (1 + tanh u) / 2, and 1 - tanh^2 u = 4 upper (1 - upper)
    return upper + interval(p, x.q) * whole(p, 2) * upper * (one - upper) * slope;
  };
  return gradient(t, g, x, zero(true), exactly(1), factor, where, gaussian);
}

std::uint64_t located_leaky_relu_backward(dtype t, patterns in, doubles o, outcome* where) {
  const node g = of(t, in[0]);
  return round(t, of(t, in[1]).positive() ? g : of(o[0]) * g, where);
}
std::uint64_t located_elu_backward(dtype t, patterns in, doubles o, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.nan() || x.positive()) return round(t, g * of(o[1]), where);
  const node c = g * of(o[1]) * of(o[0]) * of(o[2]), w = of(o[2]) * x;
  if (w.nan()) return round(t, w, where);
  if (w.infinite()) return round(t, c * (w.negative ? zero(false) : w), where);
  if (!c.finite() || c.zero() || w.zero()) return round(t, c, where);
  // |c| in [2^-1674, 2^1624], of 212 bits; e^2000 > 2^2800.
  if (w.q > 2000) return round(t, infinite(c.negative), where);
  if (w.q < -2000) return round_beside(t, c.q * power_of_two(-2800), 0, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, c.q) * exp(interval(p, w.q)); }, where);
}
std::uint64_t located_selu_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.nan() || x.positive()) return round(t, g * exactly(selu_scale()), where);
  const mpq_class c = selu_scale() * selu_alpha();
  if (x.zero()) return round(t, g * exactly(c), where);
  const auto factor = [&](mpfr_prec_t p) { return interval(p, c) * exp(interval(p, x.q)); };
  return gradient(t, g, x, zero(false), zero(false), factor, where);
}

std::uint64_t located_celu(dtype t, patterns in, doubles o, outcome* where) {
  const node x = of(t, in[0]), a = of(o[0]), w = x / a;
  if (x.nan() || x.positive() || x.zero()) return round(t, x, where);
  if (w.infinite()) return round(t, a * (w.negative ? exactly(-1) : w), where);
  if (w.q > 2000) return round(t, infinite(a.negative), where);
  if (w.q < -2000) return round_beside(t, -a.q * (1 - power_of_two(-2000)), -a.q, where);
  if (abs(w.q) < power_of_two(-400)) return round_beside(t, x.q * (1 + w.q / 2), x.q, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, a.q) * (exp(interval(p, w.q)) - interval(p, mpq_class(1))); }, where);
}
std::uint64_t located_celu_backward(dtype t, patterns in, doubles o, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]), w = x / of(o[0]);
  if (x.nan() || x.positive() || x.zero()) return round(t, g, where);
  if (w.infinite()) return round(t, g * (w.negative ? zero(false) : w), where);
  if (!g.finite() || g.zero()) return round(t, g, where);
  if (w.q > 2000) return round(t, infinite(g.negative), where);
  if (w.q < -2000) return round_beside(t, g.q * power_of_two(-2800), 0, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, g.q) * exp(interval(p, w.q)); }, where);
}

namespace {
/// beta x > threshold; neither is NaN.
bool passes(const node& w, double threshold) {
  if (threshold == HUGE_VAL) return false;
  if (threshold == -HUGE_VAL) return !(w.infinite() && w.negative);
  return w.infinite() ? !w.negative : w.q > rational(threshold);
}
}  // namespace
std::uint64_t located_softplus(dtype t, patterns in, doubles o, outcome* where) {
  const node x = of(t, in[0]), b = of(o[0]), w = b * x;
  if (x.nan() || passes(w, o[1])) return round(t, x, where);
  if (w.infinite()) return round(t, (w.negative ? zero(false) : w) / b, where);
  if (w.q > 2000) return round_beside(t, x.q * (1 + power_of_two(-2000)), x.q, where);
  if (w.q < -2000) return round_beside(t, power_of_two(-2000) / b.q, 0, where);
  return decide(
      t, [&](mpfr_prec_t p) { return log1p(exp(interval(p, w.q))) / interval(p, b.q); }, where);
}
std::uint64_t located_softplus_backward(dtype t, patterns in, doubles o, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]), w = of(o[0]) * x;
  if (x.nan()) return round(t, x, where);
  if (passes(w, o[1])) return round(t, g, where);
  if (w.zero()) return round(t, g * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) { return logistic(interval(p, w.q)); };
  return gradient(t, g, w, zero(false), exactly(1), factor, where, exponential, -1);
}

// arctan of an algebraic number != 0 is transcendental, and so is its sum with pi: 2 arctan is the angle of an algebraic number.
std::uint64_t located_atan2(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[0]), x = of(t, in[1]);
  if (x.nan() || y.nan()) return round(t, not_a_number(), where);
  const auto turns = [&](const mpq_class& of_pi) {
    const mpq_class q = y.negative ? mpq_class(-of_pi) : of_pi;
    return decide(
        t, [&](mpfr_prec_t p) { return interval(p, q) * interval::pi(p); }, where);
  };
  if (y.infinite()) return turns(!x.infinite() ? mpq_class(1, 2) : x.negative ? mpq_class(3, 4) : mpq_class(1, 4));
  if (y.zero() || x.infinite()) return x.negative ? turns(1) : round(t, zero(y.negative), where);
  if (x.zero()) return turns(mpq_class(1, 2));
  const mpq_class q = y.q / x.q;
  // atan q = q (1 - q^2 / 3 + ...). q is a midpoint (where results are subnormal), or further than 2^-108 |q| from one: for a midpoint m of 54
  // bits, y and m x are different multiples of the lesser of their last bits, and at most 107 bits above it.
  if (!x.negative && abs(q) < power_of_two(-60)) return round_beside(t, q * (1 - power_of_two(-120)), q, where);
  return decide(
      t,
      [&](mpfr_prec_t p) {
        const interval a = atan(interval(p, q));
        return !x.negative ? a : y.negative ? a - interval::pi(p) : a + interval::pi(p);
      },
      where);
}

// Rational iff x = y: powers of 2 with rational exponents that are distinct modulo 1 are linearly independent over the rationals.
std::uint64_t located_logaddexp2(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]), y = of(t, in[1]);
  if (x.nan() || y.nan()) return round(t, not_a_number(), where);
  for (const auto& [a, b] : {std::pair{&x, &y}, {&y, &x}}) {
    if (a->infinite()) return round(t, a->negative ? *b + zero(false) : *a, where);
  }
  const mpq_class least = x.q < y.q ? x.q : y.q, most = x.q < y.q ? y.q : x.q;
  if (most == least) return round(t, exactly(most + 1), where);
  if (most - least > 1500) return beside_nothing(t, most, where);  // 2^-1500 / ln 2
  return decide(
      t,
      [&](mpfr_prec_t p) {
        const interval unit = log(whole(p, 2));
        return interval(p, most) + log1p(exp(interval(p, mpq_class(least - most)) * unit)) / unit;
      },
      where);
}

// The logarithm of a rational number != 1 is transcendental.
std::uint64_t located_logit(dtype t, patterns in, doubles o, outcome* where) {
  const node x = of(t, in[0]);
  if (x.nan()) return round(t, x, where);
  mpq_class z = x.q;
  if (!std::isnan(o[0])) {
    const mpq_class eps = rational(o[0]);
    if (x.infinite()) {
      z = x.negative ? eps : mpq_class(1 - eps);
    } else {
      z = x.q < eps ? eps : x.q > 1 - eps ? mpq_class(1 - eps) : x.q;
    }
  } else if (x.infinite()) {
    return round(t, not_a_number(), where);
  }
  if (z < 0 || z > 1) return round(t, not_a_number(), where);
  if (z == 0 || z == 1) return round(t, infinite(z == 0), where);
  if (z == mpq_class(1, 2)) return round(t, zero(false), where);
  return decide(
      t, [&](mpfr_prec_t p) { return log(interval(p, mpq_class(z / (1 - z)))); }, where);
}
std::uint64_t located_logit_backward(dtype t, patterns in, doubles o, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (x.nan()) return round(t, x, where);
  const bool absent = std::isnan(o[0]);
  const mpq_class eps = absent ? mpq_class(0) : rational(o[0]);
  if (x.infinite() || x.q < eps || x.q > 1 - eps) return round(t, absent ? not_a_number() : zero(false), where);
  const node rest = exactly(1 - x.q), z = exactly(x.q);
  return round(t, g / (z * rest), where);
}

std::uint64_t located_softshrink(dtype t, patterns in, doubles o, outcome* where) {
  const node x = of(t, in[0]), l = of(o[0]);
  if (!x.finite()) return round(t, x, where);
  return round(t, x.q > l.q ? exactly(x.q - l.q) : x.q < -l.q ? exactly(x.q + l.q) : zero(false), where);
}
std::uint64_t located_softshrink_backward(dtype t, patterns in, doubles o, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]), l = of(o[0]);
  return round(t, x.finite() && x.q >= -l.q && x.q <= l.q ? zero(false) : g, where);
}

namespace {

bool regular(const node& a) { return a.finite() && !a.zero(); }
/// A number for one of which only the sign counts.
node unit(bool negative) { return exactly(negative ? -1 : 1); }

/// g / (x ln b)
std::uint64_t over_logarithm(dtype t, patterns in, int base, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (!regular(g) || !regular(x)) return round(t, g / x, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, g.q / x.q) / log(interval(p, mpq_class(base))); }, where);
}

/// g / (1 + b^(y - x)), b = 2 or e (0)
std::uint64_t share(dtype t, patterns in, int base, outcome* where) {
  const node g = of(t, in[0]), d = of(t, in[2]) + -of(t, in[1]);
  if (d.infinite()) return round(t, g / (d.negative ? exactly(1) : d), where);
  if (d.nan() || !regular(g)) return round(t, d.nan() ? d : g, where);
  if (d.q > 2200) return round(t, zero(g.negative), where);  // 2^(1024 - 2200)
  if (d.q < -2000) return round_beside(t, g.q * (1 - power_of_two(-1000)), g.q, where);
  if (d.zero()) return round(t, exactly(g.q / 2), where);
  if (base == 2 && d.q.get_den() == 1)
    return round(t, exactly(g.q / (1 + power_of_two(d.q.get_num().get_si()))), where);
  return decide(
      t,
      [&](mpfr_prec_t p) {
        interval exponent(p, d.q);
        if (base == 2) exponent = exponent * log(interval(p, mpq_class(2)));
        return interval(p, g.q) / (interval(p, mpq_class(1)) + exp(exponent));
      },
      where);
}

/// g c e^(s x^2), c a square root
template <class Square>
std::uint64_t bell(dtype t, const node& g, const mpq_class& s, const node& x, const Square& c_squared, outcome* where) {
  const node limit = s < 0 ? zero(false) : infinite(false);
  if (x.nan() || x.infinite()) return round(t, x.nan() ? x : g * limit, where);
  if (!regular(g)) return round(t, g, where);
  if (x.q * x.q > 4000) return round(t, g * limit, where);  // 2^1026 e^-2000 < 2^-1800, 2^-1075 e^2000 > 2^1800
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, g.q) * exp(interval(p, s * x.q * x.q)) * sqrt(c_squared(p)); }, where);
}

interval four_over_pi(mpfr_prec_t p) { return whole(p, 4) / interval::pi(p); }

/// log2 x, roughly; x > 0.
double binary_logarithm(const mpq_class& x) {
  const interval v = log(interval(64, x));
  return mpfr_get_d(v.lo(), MPFR_RNDN) / 0.6931471805599453;
}

/// x becomes its root of degree n, if that is rational.
bool take_root(mpq_class& x, unsigned long n) {
  mpq_class r;
  const bool exact =
      mpz_root(r.get_num_mpz_t(), x.get_num_mpz_t(), n) != 0 && mpz_root(r.get_den_mpz_t(), x.get_den_mpz_t(), n) != 0;
  if (exact) x = r;
  return exact;
}
mpq_class power(const mpq_class& x, long n) {
  mpq_class r;
  const auto count = static_cast<unsigned long>(n < 0 ? -n : n);
  mpz_pow_ui(r.get_num_mpz_t(), x.get_num_mpz_t(), count);
  mpz_pow_ui(r.get_den_mpz_t(), x.get_den_mpz_t(), count);
  return n < 0 ? 1 / r : r;
}

/// g / sqrt(square), at a zero of it as at +0; NaN below.
std::uint64_t over_root(dtype t, const node& g, const node& square, outcome* where) {
  if (square.nan() || square.negative) return round(t, not_a_number(), where);
  if (square.infinite() || square.zero()) return round(t, g / square, where);
  if (!regular(g)) return round(t, g, where);
  mpq_class root = square.q;
  if (take_root(root, 2)) return round(t, exactly(g.q / root), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, g.q) / sqrt(interval(p, square.q)); },
      where);  // irrational: no midpoint
}
/// g / sqrt(x^2 + one), one = 1 or -1. |x| > 2^400: |g / x| (1 - one / (2 x^2)), and g / x is a midpoint or further from one than 2^-200 of itself.
std::uint64_t over_root_beside(dtype t, const node& g, const node& x, int one, outcome* where) {
  if (regular(g) && x.finite() && abs(x.q) > power_of_two(400)) {
    const mpq_class q = g.q / abs(x.q);
    return round_beside(t, q * (1 - one * power_of_two(-700)), q, where);
  }
  return over_root(t, g, x * x + exactly(one), where);
}

}  // namespace

std::uint64_t located_log2_backward(dtype t, patterns in, doubles, outcome* where) {
  return over_logarithm(t, in, 2, where);
}
std::uint64_t located_log10_backward(dtype t, patterns in, doubles, outcome* where) {
  return over_logarithm(t, in, 10, where);
}
std::uint64_t located_exp2_backward(dtype t, patterns in, doubles, outcome* where) {
  const node product = of(t, in[0]) * of(t, in[1]);
  if (!regular(product)) return round(t, product, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, product.q) * log(interval(p, mpq_class(2))); }, where);
}

std::uint64_t located_xlogy_backward_x(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]), y = of(t, in[2]);
  if (x.zero() && !y.nan() && !y.positive()) return round(t, zero(false), where);
  if (y.zero()) return round(t, g * infinite(true), where);
  if (!y.positive()) return round(t, not_a_number(), where);
  if (y.infinite() || y.q == 1) return round(t, g * (y.infinite() ? y : zero(false)), where);
  if (!regular(g)) return round(t, g * unit(y.q < 1), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, g.q) * log(interval(p, y.q)); }, where);
}

std::uint64_t located_logaddexp_backward(dtype t, patterns in, doubles, outcome* where) {
  return share(t, in, 0, where);
}
std::uint64_t located_logaddexp2_backward(dtype t, patterns in, doubles, outcome* where) {
  return share(t, in, 2, where);
}

std::uint64_t located_sin_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (!x.finite()) return round(t, not_a_number(), where);
  if (x.zero()) return round(t, g, where);
  const auto factor = [&](mpfr_prec_t p) { return cos(interval(p, x.q)); };
  if (!regular(g)) return round(t, g * unit(mpfr_sgn(factor(200).lo()) < 0), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, g.q) * factor(p); }, where);
}
std::uint64_t located_cos_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (!x.finite()) return round(t, not_a_number(), where);
  if (x.zero()) return round(t, -g * x, where);
  const auto factor = [&](mpfr_prec_t p) { return sin(interval(p, x.q)); };
  if (!regular(g)) return round(t, -g * unit(mpfr_sgn(factor(200).lo()) < 0), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, -g.q) * factor(p); }, where);
}

std::uint64_t located_tan_backward(dtype t, patterns in, doubles, outcome* where) {
  const node y = of(t, in[1]);
  return round(t, of(t, in[0]) * (exactly(1) + y * y), where);
}
std::uint64_t located_atan_backward(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[1]);
  return round(t, of(t, in[0]) / (exactly(1) + x * x), where);
}
std::uint64_t located_atanh_backward(dtype t, patterns in, doubles, outcome* where) {
  const node d = exactly(1) + -(of(t, in[1]) * of(t, in[1]));
  return round(t, d.negative ? not_a_number() : of(t, in[0]) / d, where);
}
std::uint64_t located_asin_backward(dtype t, patterns in, doubles, outcome* where) {
  return over_root(t, of(t, in[0]), exactly(1) + -(of(t, in[1]) * of(t, in[1])), where);
}
std::uint64_t located_acos_backward(dtype t, patterns in, doubles, outcome* where) {
  return over_root(t, -of(t, in[0]), exactly(1) + -(of(t, in[1]) * of(t, in[1])), where);
}
std::uint64_t located_asinh_backward(dtype t, patterns in, doubles, outcome* where) {
  return over_root_beside(t, of(t, in[0]), of(t, in[1]), 1, where);
}
std::uint64_t located_acosh_backward(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[1]);
  return over_root_beside(t, of(t, in[0]), x.positive() ? x : not_a_number(), -1, where);
}
std::uint64_t located_sinh_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  if (!regular(g) || !x.finite()) return round(t, g * (x.finite() ? exactly(1) : x * x), where);
  if (x.zero()) return round(t, g, where);
  if (abs(x.q) > 3000) return round(t, exactly(g.q * power_of_two(4000)), where);
  if (abs(x.q) < power_of_two(-100)) return round_beside(t, g.q * (1 + power_of_two(-200)), g.q, where);
  return decide(
      t,
      [&](mpfr_prec_t p) {
        const interval e = exp(interval(p, x.q));
        return interval(p, g.q / 2) * (e + interval(p, mpq_class(1)) / e);
      },
      where);
}
std::uint64_t located_cosh_backward(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]);
  const node product = g * x;
  if (!regular(g) || !x.finite() || x.zero()) return round(t, product, where);
  if (abs(x.q) > 3000) return round(t, exactly(product.q * power_of_two(4000)), where);
  // g x has 106 bits, from 2^-2148 on.
  if (abs(x.q) < power_of_two(-400)) return round_beside(t, product.q * (1 + power_of_two(-1500)), product.q, where);
  return decide(
      t,
      [&](mpfr_prec_t p) {
        const interval e = exp(interval(p, x.q));
        return interval(p, g.q / 2) * (e - interval(p, mpq_class(1)) / e);
      },
      where);
}
std::uint64_t located_erf_backward(dtype t, patterns in, doubles, outcome* where) {
  return bell(t, of(t, in[0]), -1, of(t, in[1]), four_over_pi, where);
}
std::uint64_t located_erfc_backward(dtype t, patterns in, doubles, outcome* where) {
  return bell(t, -of(t, in[0]), -1, of(t, in[1]), four_over_pi, where);
}
std::uint64_t located_erfinv_backward(dtype t, patterns in, doubles, outcome* where) {
  const auto c_squared = [](mpfr_prec_t p) { return interval::pi(p) / whole(p, 4); };
  return bell(t, of(t, in[0]), 1, of(t, in[1]), c_squared, where);
}
std::uint64_t located_ndtri_backward(dtype t, patterns in, doubles, outcome* where) {
  const auto c_squared = [](mpfr_prec_t p) { return interval::pi(p) * whole(p, 2); };
  return bell(t, of(t, in[0]), mpq_class(1, 2), of(t, in[1]), c_squared, where);
}

// Gated units: a product of two operands times a function of x. e^x is transcendental for rational x != 0.
std::uint64_t located_glu(dtype t, patterns in, doubles, outcome* where) {
  const node a = of(t, in[0]), b = of(t, in[1]);
  if (b.zero()) return round(t, a * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) { return logistic(interval(p, b.q)); };
  return gradient(t, a, b, zero(false), exactly(1), factor, where, exponential, -1);
}
std::uint64_t located_swiglu(dtype t, patterns in, doubles, outcome* where) {
  const node a = of(t, in[0]), b = of(t, in[1]);
  if (a.infinite() && a.negative) return round(t, zero(true) * b, where);
  if (a.zero()) return round(t, a * b, where);
  const auto factor = [&](mpfr_prec_t p) { return logistic(interval(p, a.q)); };
  return gradient(t, a * b, a, zero(false), exactly(1), factor, where, exponential, -1);
}
std::uint64_t located_reglu(dtype t, patterns in, doubles, outcome* where) {
  const node a = of(t, in[0]);
  return round(t, (a.nan() || a.positive() ? a : zero(false)) * of(t, in[1]), where);
}
std::uint64_t located_geglu(dtype t, patterns in, doubles, outcome* where) {
  const node a = of(t, in[0]), b = of(t, in[1]);
  if (a.infinite() && a.negative) return round(t, zero(true) * b, where);
  if (a.zero()) return round(t, a * b, where);
  const auto factor = [&](mpfr_prec_t p) { return erfc(-interval(p, a.q) / sqrt(whole(p, 2))) / whole(p, 2); };
  return gradient(t, a * b, a, zero(false), exactly(1), factor, where, gaussian, -1);
}
std::uint64_t located_glu_backward_b(dtype t, patterns in, doubles, outcome* where) {
  const node product = of(t, in[0]) * of(t, in[1]), b = of(t, in[2]);
  if (b.zero()) return round(t, product * exactly(mpq_class(1, 4)), where);
  const auto factor = [&](mpfr_prec_t p) { return logistic(interval(p, b.q)) * logistic(-interval(p, b.q)); };
  return gradient(t, product, b, zero(false), zero(false), factor, where);
}
std::uint64_t located_swiglu_backward_a(dtype t, patterns in, doubles, outcome* where) {
  const node product = of(t, in[0]) * of(t, in[2]), a = of(t, in[1]);
  if (a.zero()) return round(t, product * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) {
    const interval s = logistic(interval(p, a.q));
    return s + interval(p, a.q) * s * logistic(-interval(p, a.q));
  };
  return gradient(t, product, a, zero(true), exactly(1), factor, where);
}
std::uint64_t located_reglu_backward_a(dtype t, patterns in, doubles, outcome* where) {
  const node a = of(t, in[1]);
  return round(t, a.nan() || a.positive() ? of(t, in[0]) * of(t, in[2]) : zero(false), where);
}
std::uint64_t located_geglu_backward_a(dtype t, patterns in, doubles, outcome* where) {
  const node product = of(t, in[0]) * of(t, in[2]), a = of(t, in[1]);
  if (a.zero()) return round(t, product * exactly(mpq_class(1, 2)), where);
  const auto factor = [&](mpfr_prec_t p) {
    const interval v = interval(p, a.q), two = whole(p, 2);
    const interval density = exp(interval(p, mpq_class(-a.q * a.q / 2))) / sqrt(two * interval::pi(p));
    return erfc(-v / sqrt(two)) / two + v * density;
  };
  return gradient(t, product, a, zero(true), exactly(1), factor, where, gaussian);
}

namespace {

// g y x^z, z = y - 1 exactly. A power that is no rational number makes the product none.
std::uint64_t slope_of_power(dtype t, const node& g, const node& x, const node& y, outcome* where) {
  const node z = y + exactly(-1), scaled = g * y;
  if (y.zero()) return round(t, zero(false), where);
  if (z.zero()) return round(t, g, where);
  if (x.nan() || z.nan()) return round(t, not_a_number(), where);
  const bool whole = z.finite() && z.q.get_den() == 1;
  const bool negative = x.negative && whole && mpz_odd_p(z.q.get_num_mpz_t()) != 0;
  if (x.zero() || x.infinite())
    return round(t, scaled * (x.zero() == z.negative ? infinite(negative) : zero(negative)), where);
  const mpq_class base = abs(x.q);
  if (z.infinite() && base != 1)
    return round(t, scaled * ((base > 1) == z.negative ? zero(false) : infinite(false)), where);
  if (z.finite() && x.negative && !whole) return round(t, not_a_number(), where);
  const node signed_product = scaled * unit(negative);
  if (base == 1 || !regular(scaled)) return round(t, signed_product, where);
  // |scaled| is in [2^-2148, 2^2048].
  const double size = z.q.get_d() * binary_logarithm(base);
  if (std::abs(size) > 4000)
    return round(t, size > 0 ? infinite(signed_product.negative) : zero(signed_product.negative), where);
  mpq_class root = base;
  const mpz_class n = z.q.get_num(), degree = z.q.get_den();
  // base has less than 1076 bits; a power with thousands of them, or their inverse, is no midpoint, nor times `scaled`, of 106.
  if (degree < 2048 && abs(n) < 5000 && take_root(root, degree.get_ui()))
    return round_exact(t, signed_product.q * power(root, n.get_si()), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, signed_product.q) * exp(interval(p, z.q) * log(interval(p, base))); },
      where);
}

// g x^y ln x. Algebraic times transcendental: no midpoint.
std::uint64_t growth_of_power(dtype t, const node& g, const node& x, const node& y, outcome* where) {
  if (x.zero()) {
    if (y.zero() || y.positive()) return round(t, zero(false), where);
    return round(t, y.nan() ? y : g * infinite(true), where);
  }
  if (!x.positive()) return round(t, not_a_number(), where);
  const bool one = x.finite() && x.q == 1, large = x.infinite() || x.q > 1;
  node slope = unit(!large);
  if (x.infinite()) slope = x;
  if (one) slope = zero(false);
  node factor = unit(false);
  if (!one && !y.zero() && (x.infinite() || !y.finite()))
    factor = y.nan() ? y : large == y.negative ? zero(false) : infinite(false);
  if (!regular(g) || !regular(slope) || !regular(factor)) return round(t, g * factor * slope, where);
  const double size = y.q.get_d() * binary_logarithm(x.q);  // |g ln x| is in [2^-1127, 2^1034]
  const bool negative = g.negative != slope.negative;
  if (std::abs(size) > 3000) return round(t, size > 0 ? infinite(negative) : zero(negative), where);
  return decide(
      t,
      [&](mpfr_prec_t p) {
        const interval l = log(interval(p, x.q));
        return interval(p, g.q) * exp(interval(p, y.q) * l) * l;
      },
      where);
}

/// An option that may be infinite or NaN.
node of_real(double v) { return of(dtype::f64, std::bit_cast<std::uint64_t>(v)); }

}  // namespace

std::uint64_t located_pow_backward_x(dtype t, patterns in, doubles, outcome* where) {
  return slope_of_power(t, of(t, in[0]), of(t, in[1]), of(t, in[2]), where);
}
std::uint64_t located_pow_backward_y(dtype t, patterns in, doubles, outcome* where) {
  return growth_of_power(t, of(t, in[0]), of(t, in[1]), of(t, in[2]), where);
}
std::uint64_t located_pow_scalar_backward(dtype t, patterns in, doubles o, outcome* where) {
  return slope_of_power(t, of(t, in[0]), of(t, in[1]), of_real(o[0]), where);
}
std::uint64_t located_scalar_pow_backward(dtype t, patterns in, doubles o, outcome* where) {
  return growth_of_power(t, of(t, in[0]), of_real(o[0]), of(t, in[1]), where);
}

}  // namespace repdl::reference
