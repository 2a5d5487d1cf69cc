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
  if (d.q > 2000) return round(t, zero(g.negative), where);
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

/// g (2 / sqrt(pi)) e^(-x^2)
std::uint64_t bell(dtype t, const node& g, const node& x, outcome* where) {
  if (x.nan() || x.infinite()) return round(t, x.nan() ? x : g * zero(false), where);
  if (!regular(g)) return round(t, g, where);
  if (x.q * x.q > 2000) return round(t, zero(g.negative), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, 2 * g.q) * exp(interval(p, -x.q * x.q)) / sqrt(interval::pi(p)); },
      where);
}

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

std::uint64_t located_erf_backward(dtype t, patterns in, doubles, outcome* where) {
  return bell(t, of(t, in[0]), of(t, in[1]), where);
}
std::uint64_t located_erfc_backward(dtype t, patterns in, doubles, outcome* where) {
  return bell(t, -of(t, in[0]), of(t, in[1]), where);
}

// g y x^z, z = y - 1 exactly. A power that is no rational number makes the product none.
std::uint64_t located_pow_backward_x(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]), y = of(t, in[2]), z = y + exactly(-1), product = g * y;
  if (y.zero()) return round(t, zero(false), where);
  if (z.zero()) return round(t, g, where);
  if (x.nan() || z.nan()) return round(t, not_a_number(), where);
  const bool whole = z.finite() && z.q.get_den() == 1;
  const bool negative = x.negative && whole && mpz_odd_p(z.q.get_num_mpz_t()) != 0;
  if (x.zero() || x.infinite())
    return round(t, product * (x.zero() == z.negative ? infinite(negative) : zero(negative)), where);
  const mpq_class base = abs(x.q);
  if (z.infinite() && base != 1)
    return round(t, product * ((base > 1) == z.negative ? zero(false) : infinite(false)), where);
  if (z.finite() && x.negative && !whole) return round(t, not_a_number(), where);
  const node signed_product = product * unit(negative);
  if (base == 1 || !regular(product)) return round(t, signed_product, where);
  // |product| is in [2^-298, 2^256].
  const double size = z.q.get_d() * binary_logarithm(base);
  if (std::abs(size) > 3000)
    return round(t, size > 0 ? infinite(signed_product.negative) : zero(signed_product.negative), where);
  mpq_class root = base;
  const mpz_class n = z.q.get_num(), degree = z.q.get_den();
  // base has less than 150 bits; a power with thousands of them, or their inverse, is no midpoint.
  if (degree < 256 && abs(n) < 4000 && take_root(root, degree.get_ui()))
    return round_exact(t, signed_product.q * power(root, n.get_si()), where);
  return decide(
      t, [&](mpfr_prec_t p) { return interval(p, signed_product.q) * exp(interval(p, z.q) * log(interval(p, base))); },
      where);
}

// Algebraic times transcendental: no midpoint.
std::uint64_t located_pow_backward_y(dtype t, patterns in, doubles, outcome* where) {
  const node g = of(t, in[0]), x = of(t, in[1]), y = of(t, in[2]);
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
  const double size = y.q.get_d() * binary_logarithm(x.q);  // |g ln x| is in [2^-174, 2^136]
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

}  // namespace repdl::reference
