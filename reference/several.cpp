#include "reference/several.hpp"

#include <gmpxx.h>

#include <cmath>
#include <utility>

#include "reference/real.hpp"

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

std::uint64_t located_logaddexp(dtype t, patterns in, doubles, outcome* where) {
  const node x = of(t, in[0]), y = of(t, in[1]);
  if (x.nan() || y.nan()) return round(t, not_a_number(), where);
  for (const auto& [a, b] : {std::pair{&x, &y}, {&y, &x}}) {
    if (a->infinite()) return round(t, a->negative ? *b + zero(false) : *a, where);  // e^-inf is 0
  }
  const mpq_class least = x.q < y.q ? x.q : y.q, most = x.q < y.q ? y.q : x.q;
  // e^-300 < 2^-432: far less than the distance of a number to its nearest midpoint, and nothing beside 0.
  if (most - least > 300) {
    if (most == 0) return round_beside(t, power_of_two(-432), 0, where);
    return round_beside(t, most + power_of_two(-432), most, where);
  }
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
  // |c| >= 2^-400 and e^2000 > 2^2800; |c| < 2^401 and e^-2000 < 2^-2800, and c has 106 bits, the last one above 2^-504.
  if (w.q > 2000) return round(t, infinite(c.negative), where);
  if (w.q < -2000) return round_beside(t, -c.q * (1 - power_of_two(-2000)), -c.q, where);
  // e^w - 1 = w (1 + w / 2 + ...), and c w has 183 bits.
  if (abs(w.q) < power_of_two(-400)) return round_beside(t, c.q * w.q * (1 + w.q / 2), c.q * w.q, where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, c.q) * (exp(interval(p, w.q)) - interval(p, mpq_class(1))); }, where);
}

}  // namespace repdl::reference
