// Real numbers as intervals of MPFR numbers with directed rounding, and the loop that doubles the precision until an
// interval rounds to one pattern. Needs no error analysis: every operation encloses its exact result.
#pragma once

#include <gmpxx.h>
#include <mpfr.h>

#include <functional>

#include "reference/numbers/number.hpp"

namespace repdl::reference {

/// [lo, hi]; a bound may be infinite, and zero where the number is too small for MPFR.
class interval {
 public:
  explicit interval(mpfr_prec_t p) {
    mpfr_init2(lo_, p);
    mpfr_init2(hi_, p);
    mpfr_set_zero(lo_, 1);
    mpfr_set_zero(hi_, 1);
  }
  interval(mpfr_prec_t p, const mpq_class& q) : interval(p) {
    mpfr_set_q(lo_, q.get_mpq_t(), MPFR_RNDD);
    mpfr_set_q(hi_, q.get_mpq_t(), MPFR_RNDU);
  }
  /// m * 2^e.
  interval(mpfr_prec_t p, const mpz_class& m, std::int64_t e) : interval(p) {
    mpfr_set_z_2exp(lo_, m.get_mpz_t(), e, MPFR_RNDD);
    mpfr_set_z_2exp(hi_, m.get_mpz_t(), e, MPFR_RNDU);
  }
  interval(const interval& o) : interval(o.precision()) { *this = o; }
  interval& operator=(const interval& o) {
    mpfr_set_prec(lo_, o.precision());
    mpfr_set_prec(hi_, o.precision());
    mpfr_set(lo_, o.lo_, MPFR_RNDN);
    mpfr_set(hi_, o.hi_, MPFR_RNDN);
    return *this;
  }
  ~interval() {
    mpfr_clear(lo_);
    mpfr_clear(hi_);
  }

  mpfr_prec_t precision() const { return mpfr_get_prec(lo_); }
  mpfr_srcptr lo() const { return lo_; }
  mpfr_srcptr hi() const { return hi_; }

  interval operator-() const;
  friend interval operator+(const interval& a, const interval& b);
  friend interval operator-(const interval& a, const interval& b) { return a + -b; }
  friend interval operator*(const interval& a, const interval& b);
  /// 0 is not in b.
  friend interval operator/(const interval& a, const interval& b);
  friend interval exp(const interval& a);
  friend interval log(const interval& a);
  friend interval log1p(const interval& a);
  friend interval sqrt(const interval& a);
  friend interval erfc(const interval& a);
  friend interval atan(const interval& a);
  /// sin(pi a) and cos(pi a) for a number a (lo = hi) in [0, 1/2].
  friend interval sin_pi(const interval& a);
  friend interval cos_pi(const interval& a);
  /// Of a number (lo = hi).
  friend interval sin(const interval& a);
  friend interval cos(const interval& a);
  static interval pi(mpfr_prec_t p);

 private:
  template <class F>
  static interval increasing(const interval& a, F&& f);

  mpfr_t lo_, hi_;
};

/// RN_t of the nonzero real number that f(precision) encloses for every precision. It is no midpoint, and not nearer to
/// one than a few thousand bits can tell: the caller says why. Throws std::logic_error beyond 2^17 bits.
std::uint64_t decide(dtype t, const std::function<interval(mpfr_prec_t)>& f, outcome* where = nullptr);

/// RN_t(q) and where it lies; an exact zero is +0.
std::uint64_t round_exact(dtype t, const mpq_class& q, outcome* where = nullptr);
/// RN_t of a number q + r that is not evaluated, |r| tiny, r != 0: of a stand-in for which the caller shows that it
/// lies between the same midpoints. `where` is that of q, but a near-tie where q is a midpoint.
std::uint64_t round_beside(dtype t, const mpq_class& stand_in, const mpq_class& q, outcome* where = nullptr);

/// The outcome of a NaN, of an infinity and of an exact zero.
outcome outcome_of_pattern(dtype t, std::uint64_t bits);

/// The value of a finite pattern.
mpq_class rational(dtype t, std::uint64_t bits);
/// The value of a finite double.
mpq_class rational(double v);
/// 2^e.
mpq_class power_of_two(long e);
/// The value of a finite binary32 pattern in units of 2^-149.
mpz_class fixed(std::uint32_t bits);
inline constexpr long fixed_unit = -149;

}  // namespace repdl::reference
