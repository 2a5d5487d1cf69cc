// Where the exact results of elementwise operations lie: ties, near-ties, subnormal results and so on, for tests that
// count how many of their inputs really are what they were made to be.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "reference/elementwise.hpp"
#include "reference/pow.hpp"

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

outcome of_quotient(dtype t, const extended& x, const extended& y) {
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

/// 120 bits: their error is far below the 2^-20 ulp that `near_tie` asks about; where MPFR says exact, it is exact.
outcome of_function(std::string_view name, dtype t, std::uint64_t bits) {
  mpfr_t x, y;
  mpfr_init2(x, 24);
  mpfr_init2(y, 120);
  set_mpfr(x, t, bits);
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
    o = locate(t, n, one, e);
  }
  mpz_clears(n, one, nullptr);
  mpfr_clears(x, y, nullptr);
  return o;
}

}  // namespace

outcome locate(const ops::elementwise_row& row, dtype t, const std::uint64_t* in, const option_values& options) {
  extended v[3];
  for (int i = 0; i < row.arity; ++i) v[i] = extended(t, in[i]);
  const auto option = [&](int i) { return extended(dtype::f64, std::bit_cast<std::uint64_t>(options.value[i])); };
  const std::string_view f = row.name;
  if (row.result == ops::result_kind::boolean) {
    outcome selection;
    selection.exact = true;
    selection.boundary_distance = 0.5;
    return selection;
  }
  if (f == "pow") return locate_pow(t, in[0], in[1]);
  if (f == "add") return of(t, v[0] + option(0) * v[1]);
  if (f == "sub") return of(t, v[0] - option(0) * v[1]);
  if (f == "mul") return of(t, v[0] * v[1]);
  if (f == "div") return of_quotient(t, v[0], v[1]);
  if (f == "fma") return of(t, v[0] * v[1] + v[2]);
  if (f == "leaky_relu" && (v[0].negative() || v[0].is_zero())) return of(t, option(0) * v[0]);
  if (f == "tanh_backward") return of(t, v[0] * (extended(1) - v[1] * v[1]));
  if (f == "sigmoid_backward") return of(t, v[0] * v[1] * (extended(1) - v[1]));
  if (row.proof == ops::proof_kind::select || f == "leaky_relu")
    return of(t, extended(t, evaluate(row, t, in, options)));
  return of_function(f, t, in[0]);
}

outcome locate(const ops::elementwise_row& row, const std::uint32_t* in) {
  std::uint64_t wide[3] = {};
  std::copy_n(in, row.arity, wide);
  return locate(row, dtype::f32, wide, option_values(row));
}

}  // namespace repdl::reference
