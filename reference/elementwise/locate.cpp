// Where the exact results of elementwise operations lie: ties, near-ties, subnormal results and so on, for tests that
// count how many of their inputs really are what they were made to be.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "reference/elementwise/elementwise.hpp"

namespace repdl::reference {
namespace {

outcome of(dtype t, const extended& v) {
  outcome o;
  if (v.is_nan()) {
    o.nan = true;
  } else if (v.is_infinite()) {
    o.infinite = true;
  } else {
    mpz_t one;
    mpz_init_set_ui(one, 1);
    o = locate(t, v.significand(), one, v.exponent());
    mpz_clear(one);
  }
  return o;
}

/// 120 bits, or 150 of binary64: their error is far below the 2^-20 ulp that `near_tie` asks about, and the hardest numbers known are no
/// ties; where MPFR says exact, it is exact. `known`: what was found is a number; far out, where the result is a limit, terms of the
/// expression may overflow.
outcome of_function(approximation f, dtype from, dtype t, std::uint64_t bits, bool* known) {
  mpfr_t x, y;
  mpfr_init2(x, 53);
  mpfr_init2(y, from == dtype::f64 ? 150 : 120);
  set_mpfr(x, from, bits);
  f(y, x);
  *known = mpfr_regular_p(y) != 0;
  outcome o;
  mpz_t n, one;
  mpz_init(n);
  mpz_init_set_ui(one, 1);
  if (mpfr_nan_p(y) != 0) {
    o.nan = true;
  } else if (mpfr_inf_p(y) != 0) {
    o.infinite = true;
  } else if (mpfr_zero_p(y) != 0) {
    o.exact = o.exact_zero = true;
    o.boundary_distance = 0.5;
  } else if (mpfr_get_exp(y) > 4096 || mpfr_get_exp(y) < -4096) {  // keeps the integers below short
    o.overflow = mpfr_get_exp(y) > 0;
    o.subnormal = !o.overflow;
    if (o.subnormal) o.boundary_distance = 0.5;
  } else {
    const std::int64_t e = mpfr_get_z_2exp(n, y);
    o = locate(t, n, one, e);
  }
  mpz_clears(n, one, nullptr);
  mpfr_clears(x, y, nullptr);
  return o;
}

}  // namespace

outcome locate_quotient(dtype t, const std::uint64_t* in) {
  return locate_quotient(t, extended(t, in[0]), extended(t, in[1]));
}

outcome locate_quotient(dtype t, const extended& x, const extended& y) {
  outcome o;
  o.nan = x.is_nan() || y.is_nan() || (x.is_zero() && y.is_zero()) || (x.is_infinite() && y.is_infinite());
  o.infinite = !o.nan && (x.is_infinite() || y.is_zero());
  if (o.nan || o.infinite) return o;
  if (x.is_zero() || y.is_infinite()) {
    o.exact = o.exact_zero = true;
    o.boundary_distance = 0.5;
    return o;
  }
  mpz_t n, d;
  mpz_init_set(n, x.significand());
  mpz_init_set(d, y.significand());
  mpz_abs(d, d);
  o = locate(t, n, d, x.exponent() - y.exponent());
  mpz_clears(n, d, nullptr);
  return o;
}

outcome locate(const ops::elementwise_row& row, dtype t, const std::uint64_t* in, const option_values& options) {
  const oracle& o = oracle_of(row.name);
  if (o.exact != nullptr) return of(t, o.exact(t, in, options.value));
  if (o.near != nullptr) {
    bool known = false;
    const outcome w = of_function(o.near, t, t, in[0], &known);
    return known ? w : of(t, extended(t, o.f(t, in, options.value)));
  }
  if (o.where != nullptr) return o.where(t, in, options.value);
  if (row.proof != ops::proof_kind::select) {
    throw std::logic_error("reference: nothing says where results of " + std::string(row.name) + " lie");
  }
  if (!row.has_own_type()) return of(t, extended(t, o.f(t, in, options.value)));
  outcome selection;
  selection.exact = true;
  selection.boundary_distance = 0.5;
  return selection;
}

outcome locate(const ops::elementwise_row& row, dtype t, dtype to, const std::uint64_t* in,
               const option_values& options) {
  if (t == to || !row.has_any_float()) return locate(row, t, in, options);
  const oracle& o = oracle_of(row.name);
  if (o.exact != nullptr) return of(to, o.exact(t, in, options.value));
  bool known = false;
  if (o.near != nullptr) return of_function(o.near, t, to, in[0], &known);
  if (row.name == "div") return locate_quotient(to, extended(t, in[0]), extended(t, in[1]));
  throw std::logic_error("reference: nothing says where results of " + std::string(row.name) + " lie");
}

outcome locate(const ops::elementwise_row& row, const std::uint32_t* in) {
  std::uint64_t wide[ops::most_operands] = {};
  std::copy_n(in, row.arity, wide);
  return locate(row, dtype::f32, wide, option_values(row, dtype::f32));
}

}  // namespace repdl::reference
