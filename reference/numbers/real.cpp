#include "reference/numbers/real.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <stdexcept>

namespace repdl::reference {
namespace {

constexpr mpfr_prec_t first_precision = 128, last_precision = 1 << 17;

/// The least and the greatest of f(a.lo or a.hi, b.lo or b.hi): the range of a product or a quotient.
template <class F>
void corners(mpfr_ptr lo, mpfr_ptr hi, const interval& a, const interval& b, F&& f) {
  mpfr_t v;
  mpfr_init2(v, mpfr_get_prec(lo));
  bool first = true;
  for (mpfr_srcptr x : {a.lo(), a.hi()}) {
    for (mpfr_srcptr y : {b.lo(), b.hi()}) {
      f(v, x, y, MPFR_RNDD);
      if (mpfr_nan_p(v) != 0) throw std::logic_error("reference::interval: 0 * inf");
      if (first || mpfr_less_p(v, lo) != 0) mpfr_set(lo, v, MPFR_RNDD);
      f(v, x, y, MPFR_RNDU);
      if (first || mpfr_greater_p(v, hi) != 0) mpfr_set(hi, v, MPFR_RNDU);
      first = false;
    }
  }
  mpfr_clear(v);
}

outcome locate_mpfr(dtype t, mpfr_srcptr y) {
  outcome o;
  if (mpfr_nan_p(y) != 0 || mpfr_inf_p(y) != 0 || mpfr_zero_p(y) != 0 || mpfr_get_exp(y) > 4096 ||
      mpfr_get_exp(y) < -4096) {  // bounds too large or too small to be numbers: keeps the integers below short
    const bool large = mpfr_inf_p(y) != 0 || (mpfr_zero_p(y) == 0 && mpfr_get_exp(y) > 0);
    o.overflow = large;
    o.subnormal = !large;
    if (!large) o.boundary_distance = 0.5;
    return o;
  }
  mpz_class m, one = 1;
  const std::int64_t e = mpfr_get_z_2exp(m.get_mpz_t(), y);
  o = locate(t, m.get_mpz_t(), one.get_mpz_t(), e);
  o.near_tie = o.near_tie || o.tie;  // the number itself is no dyadic fraction
  o.tie = o.exact = false;
  return o;
}

}  // namespace

interval interval::operator-() const {
  interval r(precision());
  mpfr_neg(r.lo_, hi_, MPFR_RNDD);
  mpfr_neg(r.hi_, lo_, MPFR_RNDU);
  return r;
}

interval operator+(const interval& a, const interval& b) {
  interval r(std::max(a.precision(), b.precision()));
  mpfr_add(r.lo_, a.lo_, b.lo_, MPFR_RNDD);
  mpfr_add(r.hi_, a.hi_, b.hi_, MPFR_RNDU);
  return r;
}

interval operator*(const interval& a, const interval& b) {
  interval r(std::max(a.precision(), b.precision()));
  corners(r.lo_, r.hi_, a, b, mpfr_mul);
  return r;
}

interval operator/(const interval& a, const interval& b) {
  if (mpfr_sgn(b.lo_) * mpfr_sgn(b.hi_) <= 0) throw std::logic_error("reference::interval: division by zero");
  interval r(std::max(a.precision(), b.precision()));
  corners(r.lo_, r.hi_, a, b, mpfr_div);
  return r;
}

template <class F>
interval interval::increasing(const interval& a, F&& f) {
  interval r(a.precision());
  f(r.lo_, a.lo_, MPFR_RNDD);
  f(r.hi_, a.hi_, MPFR_RNDU);
  return r;
}

interval exp(const interval& a) { return interval::increasing(a, mpfr_exp); }
interval log(const interval& a) { return interval::increasing(a, mpfr_log); }
interval log1p(const interval& a) { return interval::increasing(a, mpfr_log1p); }
interval sqrt(const interval& a) { return interval::increasing(a, mpfr_sqrt); }

interval atan(const interval& a) { return interval::increasing(a, mpfr_atan); }
interval erfc(const interval& a) {
  interval r(a.precision());
  mpfr_erfc(r.lo_, a.hi_, MPFR_RNDD);
  mpfr_erfc(r.hi_, a.lo_, MPFR_RNDU);
  return r;
}

interval interval::pi(mpfr_prec_t p) {
  interval r(p);
  mpfr_const_pi(r.lo_, MPFR_RNDD);
  mpfr_const_pi(r.hi_, MPFR_RNDU);
  return r;
}

// Both reduce to angles of at most pi / 4 (and what rounding adds to it), where sin increases and cos decreases.
interval sin_pi(const interval& a) {
  if (mpfr_cmp_d(a.lo_, 0.25) > 0) return cos_pi(interval(a.precision(), mpq_class(1, 2)) - a);
  return interval::increasing(interval::pi(a.precision()) * a, mpfr_sin);
}

interval cos_pi(const interval& a) {
  if (mpfr_cmp_d(a.lo_, 0.25) > 0) return sin_pi(interval(a.precision(), mpq_class(1, 2)) - a);
  const interval angle = interval::pi(a.precision()) * a;
  interval r(a.precision());
  mpfr_cos(r.lo_, angle.hi_, MPFR_RNDD);
  mpfr_cos(r.hi_, angle.lo_, MPFR_RNDU);
  return r;
}

interval sin(const interval& a) {
  if (mpfr_equal_p(a.lo_, a.hi_) == 0) throw std::logic_error("reference::interval: sin of no number");
  return interval::increasing(a, mpfr_sin);
}
interval cos(const interval& a) {
  if (mpfr_equal_p(a.lo_, a.hi_) == 0) throw std::logic_error("reference::interval: cos of no number");
  return interval::increasing(a, mpfr_cos);
}

std::uint64_t decide(dtype t, const std::function<interval(mpfr_prec_t)>& f, outcome* where) {
  for (mpfr_prec_t p = first_precision; p <= last_precision; p *= 2) {
    const interval v = f(p);
    const std::uint64_t bits = round_mpfr(t, v.lo());
    if (bits != round_mpfr(t, v.hi())) continue;
    if (where != nullptr) *where = locate_mpfr(t, v.hi());
    return bits;
  }
  throw std::logic_error("reference::decide: too close to a midpoint");
}

std::uint64_t round_exact(dtype t, const mpq_class& q, outcome* where) {
  if (where != nullptr) *where = locate(t, q.get_num_mpz_t(), q.get_den_mpz_t(), 0);
  return round_rational(t, q.get_mpq_t());
}

std::uint64_t round_beside(dtype t, const mpq_class& stand_in, const mpq_class& q, outcome* where) {
  if (where != nullptr) {
    *where = locate(t, q.get_num_mpz_t(), q.get_den_mpz_t(), 0);
    where->near_tie = where->near_tie || where->tie;
    where->subnormal = where->subnormal || where->exact_zero;
    where->tie = where->exact = where->exact_zero = false;
  }
  return round_rational(t, stand_in.get_mpq_t());
}

outcome outcome_of_pattern(dtype t, std::uint64_t bits) {
  outcome o;
  const number n = widen(t, bits);
  o.nan = n.kind == number_kind::nan;
  o.infinite = n.kind == number_kind::infinite;
  if (o.nan || o.infinite) return o;
  mpz_class m, one = 1;
  mpz_import(m.get_mpz_t(), 1, -1, sizeof n.significand, 0, 0, &n.significand);
  return locate(t, m.get_mpz_t(), one.get_mpz_t(), n.exponent);
}

mpq_class rational(dtype t, std::uint64_t bits) {
  const number n = widen(t, bits);
  if (n.kind != number_kind::finite && n.kind != number_kind::zero)
    throw std::logic_error("reference::rational: not finite");
  mpz_class m;
  mpz_import(m.get_mpz_t(), 1, -1, sizeof n.significand, 0, 0, &n.significand);
  mpq_class q(n.negative ? mpz_class(-m) : m);
  const auto scale = n.exponent < 0 ? mpq_div_2exp : mpq_mul_2exp;
  scale(q.get_mpq_t(), q.get_mpq_t(), static_cast<mp_bitcnt_t>(std::abs(n.exponent)));
  return q;
}

mpq_class rational(double v) { return rational(dtype::f64, std::bit_cast<std::uint64_t>(v)); }

mpq_class power_of_two(long e) {
  mpz_class m = 1;
  m <<= static_cast<mp_bitcnt_t>(e < 0 ? -e : e);
  return e < 0 ? mpq_class(mpz_class(1), m) : mpq_class(m);
}

mpz_class fixed(std::uint32_t bits) {
  const number n = widen(dtype::f32, bits);
  if (n.kind != number_kind::finite && n.kind != number_kind::zero)
    throw std::logic_error("reference::fixed: not finite");
  mpz_class m = static_cast<unsigned long>(n.significand);
  if (n.kind == number_kind::finite) m <<= static_cast<mp_bitcnt_t>(n.exponent - fixed_unit);
  return n.negative ? mpz_class(-m) : m;
}

}  // namespace repdl::reference
