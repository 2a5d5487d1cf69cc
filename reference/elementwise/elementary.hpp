// The functions of one variable that are no selection and need more than integers: each one expression, and what is
// known of it where the expression alone does not decide. They are in elementary_functions.hpp.
//
// A result is found in this order: NaN gives NaN; `exact` knows results and parts of results that are rational; the
// tails; Ziv's loop, more bits until everything that the expression's ball contains rounds to one pattern. That ends:
// arguments of at most 32 bits are gone through, all of them, by the published cases and digests. For most functions
// theorems say as much of every number: Lindemann-Weierstrass, Gelfond-Schneider.
#pragma once

#include <optional>
#include <string_view>

#include "reference/numbers/number.hpp"
#include "reference/numbers/real.hpp"
#include "reference/numbers/series.hpp"

namespace repdl::reference {

inline constexpr unsigned no_bound = ~0U;
/// y = f(x) to y's precision; returns a bound of |y - f(x)| in ulp(y), strict and below 2^11, or no_bound.
using approximation = unsigned (*)(mpfr_ptr y, mpfr_srcptr x);
using expression = series (*)(const series& x);

/// The approximation that an expression gives.
unsigned approximate(expression f, mpfr_ptr y, mpfr_srcptr x);

/// Beyond a bound (the bound and infinity included) a function's results are one number, or its argument.
struct tail {
  struct bound {
    double narrow, wide;  ///< for formats of at most 24 bits, and for binary64
    constexpr bound(double all) : narrow(all), wide(all) {}
    constexpr bound(double n, double w) : narrow(n), wide(w) {}
    constexpr double of(dtype t) const { return t == dtype::f64 ? wide : narrow; }
  };
  bound from;
  double value;
  bool itself = false;
};

/// What tabulation knows of functions of an angle.
enum class wave { none, sin, cos, tan, sinpi, cospi, tanpi, sinc };

struct elementary {
  std::string_view name;
  expression f;
  tail below, above;
  /// The result of a number that is no NaN, or nothing. Knows the zeros.
  std::optional<std::uint64_t> (*exact)(dtype t, const number& x);
  /// A rational function; below decides before. Then `f` is for tabulation only.
  mpq_class (*rational)(const mpq_class& x) = nullptr;
  wave angle = wave::none;
};

/// RN_t(f(x)), a format of the operations.
std::uint64_t evaluate(const elementary& f, dtype t, std::uint64_t x);
/// Where the result of a rational function lies.
outcome locate_rational(const elementary& f, dtype t, std::uint64_t x);
/// The tail that x, a number of t, lies in, or null.
const tail* tail_of(const elementary& f, dtype t, const number& x);

/// The function of that name, or null.
const elementary* elementary_named(std::string_view name);

}  // namespace repdl::reference
