// Where the exact results of elementwise operations lie: ties, near-ties, subnormal results and so on, for tests that
// count how many of their inputs really are what they were made to be.
#include <stdexcept>
#include <string>

#include "reference/elementwise.hpp"

namespace repdl::reference {
namespace {

outcome of(const extended& v) {
  outcome o;
  if (v.is_nan()) {
    o.nan = true;
  } else if (v.is_infinite()) {
    o.infinite = true;
  } else {
    mpz_t one;
    mpz_init_set_ui(one, 1);
    o = locate(dtype::f32, v.significand(), one, v.exponent());
    mpz_clear(one);
  }
  return o;
}

outcome of_quotient(const extended& x, const extended& y) {
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
  o = locate(dtype::f32, n, d, x.exponent() - y.exponent());
  mpz_clears(n, d, nullptr);
  return o;
}

/// 120 bits: their error is far below the 2^-20 ulp that `near_tie` asks about; where MPFR says exact, it is exact.
outcome of_function(std::string_view name, std::uint32_t bits) {
  mpfr_t x, y;
  mpfr_init2(x, 24);
  mpfr_init2(y, 120);
  set_mpfr(x, dtype::f32, bits);
  if (name == "exp") {
    mpfr_exp(y, x, MPFR_RNDN);
  } else if (name == "log") {
    mpfr_log(y, x, MPFR_RNDN);
  } else if (name == "tanh") {
    mpfr_tanh(y, x, MPFR_RNDN);
  } else if (name == "sqrt") {
    mpfr_sqrt(y, x, MPFR_RNDN);
  } else if (name == "sigmoid") {
    mpfr_neg(y, x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
  } else {
    throw std::logic_error("reference::locate: no row is named " + std::string(name));
  }
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
    o = locate(dtype::f32, n, one, e);
  }
  mpz_clears(n, one, nullptr);
  mpfr_clears(x, y, nullptr);
  return o;
}

}  // namespace

outcome locate(const ops::elementwise_row& row, const std::uint32_t* in) {
  extended v[3];
  for (int i = 0; i < row.arity; ++i) v[i] = extended(dtype::f32, in[i]);
  const std::string_view f = row.oracle;
  if (f == "add") return of(v[0] + v[1]);
  if (f == "sub") return of(v[0] - v[1]);
  if (f == "mul") return of(v[0] * v[1]);
  if (f == "div") return of_quotient(v[0], v[1]);
  if (f == "fma") return of(v[0] * v[1] + v[2]);
  if (f == "tanh_backward") return of(v[0] * (extended(1) - v[1] * v[1]));
  if (f == "sigmoid_backward") return of(v[0] * v[1] * (extended(1) - v[1]));
  if (f == "neg" || f == "abs" || f == "relu" || f == "maximum" || f == "minimum" || f == "relu_backward")
    return of(extended(dtype::f32, evaluate(row, in)));
  return of_function(f, in[0]);
}

}  // namespace repdl::reference
