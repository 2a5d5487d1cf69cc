// Integers and booleans as numbers of GMP, and what is i64 again.
#pragma once

#include <gmpxx.h>

#include "reference/numbers/number.hpp"

namespace repdl::reference {

inline mpz_class integer_of(dtype t, std::uint64_t bits) {
  const number v = widen(t, bits);
  if (v.kind == number_kind::zero) return 0;
  return (v.negative ? -1 : 1) * mpz_class(v.significand);
}

inline std::uint64_t modulo_64(const mpz_class& v) {
  mpz_class wrapped;
  mpz_fdiv_r_2exp(wrapped.get_mpz_t(), v.get_mpz_t(), 64);
  return wrapped.get_ui();
}

inline outcome outcome_of_integer(const mpz_class& v) {
  outcome o;
  o.exact = true;
  o.exact_zero = v == 0;
  return o;
}

}  // namespace repdl::reference
