#include "reference/numbers/number.hpp"

#include <cmath>
#include <stdexcept>

namespace repdl::reference {
namespace {

/// Integers kept per thread, so that no call allocates.
struct scratch {
  mpz_t a, b, c;
  scratch() { mpz_inits(a, b, c, nullptr); }
  ~scratch() { mpz_clears(a, b, c, nullptr); }
};
thread_local scratch tmp;

/// |m|'s leading 64 bits (or all of it), their exponent and whether anything nonzero was cut off.
struct leading {
  std::uint64_t bits;
  std::int64_t exponent;
  bool sticky;
};

leading leading_bits(mpz_srcptr m, std::int64_t exponent) {
  const std::size_t size = mpz_sizeinbase(m, 2);
  if (size <= 64) {
    std::uint64_t v = 0;
    mpz_export(&v, nullptr, -1, sizeof v, 0, 0, m);
    return {v, exponent, false};
  }
  const std::size_t cut = size - 64;
  mpz_tdiv_q_2exp(tmp.c, m, cut);
  std::uint64_t v = 0;
  mpz_export(&v, nullptr, -1, sizeof v, 0, 0, tmp.c);
  return {v, exponent + static_cast<std::int64_t>(cut), mpz_scan1(m, 0) < cut};
}

}  // namespace

std::uint64_t round_integer(dtype t, mpz_srcptr m, std::int64_t exponent) {
  if (mpz_sgn(m) == 0) return 0;
  const leading l = leading_bits(m, exponent);
  return round(t, mpz_sgn(m) < 0, l.bits, l.exponent, l.sticky);
}

std::uint64_t round_quotient(dtype t, mpz_srcptr num, mpz_srcptr den, std::int64_t exponent) {
  if (mpz_sgn(num) == 0) return 0;
  // Scale so that the integer quotient has at least 64 bits; a nonzero remainder is the sticky bit.
  const auto n = static_cast<std::int64_t>(mpz_sizeinbase(num, 2));
  const auto d = static_cast<std::int64_t>(mpz_sizeinbase(den, 2));
  const std::int64_t shift = n - d >= 66 ? 0 : 66 - (n - d);
  mpz_abs(tmp.a, num);
  mpz_mul_2exp(tmp.a, tmp.a, static_cast<mp_bitcnt_t>(shift));
  mpz_tdiv_qr(tmp.a, tmp.b, tmp.a, den);
  const leading l = leading_bits(tmp.a, exponent - shift);
  return round(t, mpz_sgn(num) < 0, l.bits, l.exponent, l.sticky || mpz_sgn(tmp.b) != 0);
}

std::uint64_t round_rational(dtype t, mpq_srcptr q) { return round_quotient(t, mpq_numref(q), mpq_denref(q), 0); }

std::uint64_t round_mpfr(dtype t, mpfr_srcptr y) {
  if (mpfr_nan_p(y)) return nan_bits(t);
  if (mpfr_inf_p(y)) return infinity_bits(t, mpfr_signbit(y) != 0);
  if (mpfr_zero_p(y)) return zero_bits(t, mpfr_signbit(y) != 0);
  const std::int64_t e = mpfr_get_z_2exp(tmp.a, y);
  return round_integer(t, tmp.a, e);
}

bool round_certain(dtype t, mpfr_srcptr y, unsigned errors, std::uint64_t* bits) {
  const std::int64_t e = mpfr_get_z_2exp(tmp.a, y);  // |tmp.a| < 2^precision, in units of ulp(y) = 2^e
  if (mpz_sizeinbase(tmp.a, 2) <= 63) {              // one limb: the same test without GMP
    const bool negative = mpz_sgn(tmp.a) < 0;
    std::uint64_t m = 0;
    mpz_export(&m, nullptr, -1, sizeof m, 0, 0, tmp.a);
    if (m <= errors) return false;
    const std::uint64_t low = round(t, negative, m - errors, e, false);
    *bits = low;
    return low == round(t, negative, m + errors, e, false);
  }
  mpz_sub_ui(tmp.b, tmp.a, errors);
  const std::uint64_t low = round_integer(t, tmp.b, e);
  mpz_add_ui(tmp.b, tmp.a, errors);
  const std::uint64_t high = round_integer(t, tmp.b, e);
  *bits = low;
  return low == high;
}

void set_mpfr(mpfr_ptr y, dtype t, std::uint64_t bits) {
  const number n = widen(t, bits);
  switch (n.kind) {
    case number_kind::nan:
      mpfr_set_nan(y);
      return;
    case number_kind::infinite:
      mpfr_set_inf(y, n.negative ? -1 : 1);
      return;
    case number_kind::zero:
      mpfr_set_zero(y, n.negative ? -1 : 1);
      return;
    case number_kind::finite:
      break;
  }
  if (mpfr_set_ui_2exp(y, n.significand, n.exponent, MPFR_RNDN) != 0)
    throw std::logic_error("reference::set_mpfr: precision too small");
  if (n.negative) mpfr_neg(y, y, MPFR_RNDN);
}

outcome locate(dtype t, mpz_srcptr num, mpz_srcptr den, std::int64_t exponent) {
  const format& f = format_of(t);
  outcome o;
  if (mpz_sgn(num) == 0) {
    o.exact = o.exact_zero = true;
    o.boundary_distance = 0.5;
    return o;
  }
  mpz_t n, d, q, r, limit;
  mpz_inits(n, d, q, r, limit, nullptr);
  mpz_abs(n, num);
  mpz_set(d, den);
  if (exponent >= 0) {
    mpz_mul_2exp(n, n, static_cast<mp_bitcnt_t>(exponent));
  } else {
    mpz_mul_2exp(d, d, static_cast<mp_bitcnt_t>(-exponent));
  }
  // top: 2^top <= n / d < 2^(top+1).
  std::int64_t top = static_cast<std::int64_t>(mpz_sizeinbase(n, 2)) - static_cast<std::int64_t>(mpz_sizeinbase(d, 2));
  mpz_set(q, top >= 0 ? d : n);
  mpz_mul_2exp(q, q, static_cast<mp_bitcnt_t>(top >= 0 ? top : -top));
  if (top >= 0 ? mpz_cmp(n, q) < 0 : mpz_cmp(q, d) < 0) --top;
  o.subnormal = top < f.emin;
  const std::int64_t capped = top > f.emax ? f.emax : top;
  const std::int64_t last = (capped < f.emin ? f.emin : capped) - (f.precision - 1);
  // q + r / d = 2 * value / ulp: an odd integer is a midpoint.
  const std::int64_t shift = 1 - last;
  mpz_mul_2exp(shift >= 0 ? n : d, shift >= 0 ? n : d, static_cast<mp_bitcnt_t>(shift >= 0 ? shift : -shift));
  mpz_fdiv_qr(q, r, n, d);
  const bool odd = mpz_odd_p(q) != 0;
  const bool whole = mpz_sgn(r) == 0;
  o.tie = odd && whole;
  o.exact = !odd && whole && top <= f.emax;
  // Distance to the nearest odd integer, below 2^-19 (2^-20 ulp): r / d itself, or 1 - r / d.
  if (!whole) {
    if (!odd) mpz_sub(r, d, r);
    mpz_mul_2exp(limit, r, 19);
    o.near_tie = mpz_cmp(limit, d) < 0;
    mpz_mul_2exp(limit, r, 512);
    mpz_tdiv_q(limit, limit, d);
    long scale = 0;
    const double leading = mpz_get_d_2exp(&scale, limit);
    o.boundary_distance = std::ldexp(leading, static_cast<int>(scale) - 513);
  } else {
    o.boundary_distance = odd ? 0 : 0.5;
  }
  if (capped == f.emax) {
    // The threshold is half an ulp above the largest number, and goes to that one where its significand is even.
    const std::uint64_t largest = f.largest_significand();
    mpz_set_ui(limit, 2 * largest + 1);
    const int above = mpz_cmp(q, limit);
    o.overflow = above > 0 || (above == 0 && (!whole || largest % 2 != 0));
    mpz_sub(limit, limit, q);
    o.border = mpz_cmpabs_ui(limit, 4) <= 0;
    o.exact = o.exact && !o.overflow;
    if (o.overflow && (top > f.emax || above > 0)) o.tie = o.near_tie = false;
  }
  mpz_clears(n, d, q, r, limit, nullptr);
  return o;
}

}  // namespace repdl::reference
