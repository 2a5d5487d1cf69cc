// x^y: the dyadic values with GMP's integers, the others by Ziv's strategy with mpfr_pow. A value that is not dyadic is
// no midpoint, so Ziv's loop ends. Dyadic values whose odd part has more than a hundred bits are no midpoints either, and left to the
// loop.
#include "reference/elementwise/pow.hpp"

#include <gmpxx.h>

#include <bit>
#include <cmath>
#include <stdexcept>

#include "reference/numbers/real.hpp"

namespace repdl::reference {
namespace {

enum class parity { fraction, even, odd };

/// Of a finite number or an infinity (even).
parity parity_of(const number& y) {
  if (y.kind != number_kind::finite || y.exponent > 0) return parity::even;
  if (y.exponent < -63) return parity::fraction;  // 53 bits at most
  const std::uint64_t below = (std::uint64_t{1} << -y.exponent) - 1;
  if ((y.significand & below) != 0) return parity::fraction;
  return ((y.significand >> -y.exponent) & 1) != 0 ? parity::odd : parity::even;
}

/// value = significand * 2^exponent, significand odd.
struct odd_part {
  mpz_class significand;
  long exponent;
};
odd_part odd_part_of(const number& x) {
  mpz_class m = static_cast<unsigned long>(x.significand);
  const mp_bitcnt_t zeros = mpz_scan1(m.get_mpz_t(), 0);
  m >>= zeros;
  return {m, static_cast<long>(x.exponent) + static_cast<long>(zeros)};
}

/// True if |x|^y is dyadic and short: then *value is it. |x| is not 1, y not 0.
bool dyadic(const number& x, const number& y, odd_part* value) {
  const odd_part power = odd_part_of(y);
  odd_part base = odd_part_of(x);
  mpz_class count = power.significand;
  if (power.exponent < 0) {
    if (power.exponent < -11) return false;  // |base.exponent| < 2^11, significands below 2^64
    const unsigned long degree = 1UL << -power.exponent;
    if (base.exponent % static_cast<long>(degree) != 0) return false;
    if (mpz_root(base.significand.get_mpz_t(), base.significand.get_mpz_t(), degree) == 0) return false;
    base.exponent /= static_cast<long>(degree);
  } else {
    if (power.exponent > 100) return false;  // far out of range, or 1
    count <<= static_cast<mp_bitcnt_t>(power.exponent);
  }
  if (count > 4000) return false;  // the value is out of range, or has more than 4000 bits
  const unsigned long n = count.get_ui();
  value->exponent = base.exponent * static_cast<long>(n);
  value->significand = 1;
  if (base.significand != 1) {
    if (y.negative || (mpz_sizeinbase(base.significand.get_mpz_t(), 2) - 1) * n > 100) return false;
    mpz_pow_ui(value->significand.get_mpz_t(), base.significand.get_mpz_t(), n);
  }
  if (y.negative) value->exponent = -value->exponent;
  return true;
}

struct pow_reals {
  mpfr_t x, y, z;
  pow_reals() { mpfr_inits2(64, x, y, z, nullptr); }
  ~pow_reals() {
    mpfr_clears(x, y, z, nullptr);
    mpfr_free_cache();
  }
};
thread_local pow_reals pow_real;

void set_operands(const pow_operand& x, const pow_operand& y) {
  set_mpfr(pow_real.x, x.type, x.bits & ~format_of(x.type).sign_bit());
  set_mpfr(pow_real.y, y.type, y.bits);
}
number number_of(const pow_operand& x) { return widen(x.type, x.bits); }

/// The pattern that special operands give, or false.
bool special(dtype t, const number& a, const number& b, std::uint64_t* bits) {
  using enum number_kind;
  const std::uint64_t one = round(t, false, 1, 0, false);
  const int exponent = a.kind == finite ? a.exponent + 63 - std::countl_zero(a.significand) : 0;  // of the leading bit
  const bool unit = a.kind == finite && exponent == 0 && std::has_single_bit(a.significand);
  if (b.kind == zero || (unit && !a.negative)) {
    *bits = one;
    return true;
  }
  if (a.kind == nan || b.kind == nan) {
    *bits = nan_bits(t);
    return true;
  }
  const parity p = parity_of(b);
  const bool negative = a.negative && p == parity::odd;
  if (a.kind == zero || a.kind == infinite) {
    const bool vanishes = (a.kind == zero) != b.negative;
    *bits = vanishes ? zero_bits(t, negative) : infinity_bits(t, negative);
    return true;
  }
  if (a.negative && p == parity::fraction) {
    *bits = nan_bits(t);
    return true;
  }
  if (unit) {
    *bits = one | (negative ? format_of(t).sign_bit() : 0);
    return true;
  }
  if (b.kind == infinite) {
    const bool large = exponent >= 0;
    *bits = large == b.negative ? zero_bits(t, false) : infinity_bits(t, false);
    return true;
  }
  return false;
}

}  // namespace

std::uint64_t oracle_pow(dtype t, const pow_operand& x, const pow_operand& y) {
  std::uint64_t bits = 0;
  const number a = number_of(x), b = number_of(y);
  if (special(t, a, b, &bits)) return bits;
  const bool negative = a.negative && parity_of(b) == parity::odd;
  const std::uint64_t sign = negative ? format_of(t).sign_bit() : 0;
  odd_part exact;
  if (dyadic(a, b, &exact)) return round_integer(t, exact.significand.get_mpz_t(), exact.exponent) | sign;
  set_operands(x, y);
  for (mpfr_prec_t precision = t == dtype::f64 ? 80 : 60; precision <= 16384; precision *= 2) {
    mpfr_set_prec(pow_real.z, precision);
    mpfr_pow(pow_real.z, pow_real.x, pow_real.y, MPFR_RNDN);
    // 2^10000 and its inverse are beyond every threshold of every format.
    if (mpfr_inf_p(pow_real.z) != 0 || (mpfr_zero_p(pow_real.z) == 0 && mpfr_get_exp(pow_real.z) > 10000))
      return infinity_bits(t, negative);
    if (mpfr_zero_p(pow_real.z) != 0 || mpfr_get_exp(pow_real.z) < -10000) return zero_bits(t, negative);
    if (round_certain(t, pow_real.z, 1, &bits)) return bits | sign;
  }
  throw std::logic_error("reference::oracle_pow: Ziv's loop ended undecided");
}

outcome locate_pow(dtype t, const pow_operand& x, const pow_operand& y) {
  std::uint64_t bits = 0;
  const number a = number_of(x), b = number_of(y);
  if (special(t, a, b, &bits)) return outcome_of_pattern(t, bits);
  const mpz_class one = 1;
  odd_part exact;
  if (dyadic(a, b, &exact)) return locate(t, exact.significand.get_mpz_t(), one.get_mpz_t(), exact.exponent);
  // 160 bits: their error is far below the 2^-20 ulp that `near_tie` asks about.
  set_operands(x, y);
  mpfr_set_prec(pow_real.z, 160);
  mpfr_pow(pow_real.z, pow_real.x, pow_real.y, MPFR_RNDN);
  outcome o;
  const bool regular = mpfr_regular_p(pow_real.z) != 0;
  if (!regular || std::labs(mpfr_get_exp(pow_real.z)) > 4096) {  // keeps the integers below short
    o.overflow = mpfr_inf_p(pow_real.z) != 0 || (regular && mpfr_get_exp(pow_real.z) > 0);
    o.subnormal = !o.overflow;
    if (o.subnormal) o.boundary_distance = 0.5;
    return o;
  }
  mpz_class m;
  const std::int64_t e = mpfr_get_z_2exp(m.get_mpz_t(), pow_real.z);
  o = locate(t, m.get_mpz_t(), one.get_mpz_t(), e);
  o.near_tie = o.near_tie || o.tie;  // no dyadic number itself
  o.tie = o.exact = false;
  return o;
}

}  // namespace repdl::reference
