// Exact numbers of GMP and MPFR, rounded once. Shares no arithmetic with librepdl.
#pragma once

#include <gmp.h>
#include <mpfr.h>

#include <cstdint>

#include "reference/numbers/format.hpp"

namespace repdl::reference {

/// RN(m * 2^exponent); an exact zero is +0.
std::uint64_t round_integer(dtype t, mpz_srcptr m, std::int64_t exponent);

/// RN(num / den * 2^exponent), den > 0; an exact zero is +0.
std::uint64_t round_quotient(dtype t, mpz_srcptr num, mpz_srcptr den, std::int64_t exponent);

/// RN of the exact value of q; an exact zero is +0.
std::uint64_t round_rational(dtype t, mpq_srcptr q);

/// RN of the exact value of y (which may be ±0, ±inf or NaN; a zero keeps its sign).
std::uint64_t round_mpfr(dtype t, mpfr_srcptr y);

/// Ziv's test. y is finite and nonzero and |y - f| < errors * ulp(y), ulp in y's own precision, f the exact real.
/// True if every real in that interval rounds to the same pattern, which is then stored.
bool round_certain(dtype t, mpfr_srcptr y, unsigned errors, std::uint64_t* bits);

/// y = the value of a pattern (y's precision must hold it exactly).
void set_mpfr(mpfr_ptr y, dtype t, std::uint64_t bits);

/// The outcome of num / den * 2^exponent (den > 0), decided with integers.
outcome locate(dtype t, mpz_srcptr num, mpz_srcptr den, std::int64_t exponent);

}  // namespace repdl::reference
