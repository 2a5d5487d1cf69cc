// The functions of one variable that are no selection and need more than integers: each one expression, and what is
// known of it where the expression alone does not decide. They are in elementary_functions.hpp.
//
// A result is found in this order: NaN gives NaN; `exact` knows results and parts of results that are rational; the
// tails; Ziv's loop, more bits until everything that the expression's ball contains rounds to one pattern. That ends:
// arguments have at most 32 bits, and the published cases and digests go through all of them. (For most functions
// theorems say as much: Lindemann-Weierstrass, Gelfond-Schneider.)
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
  double from;
  double value;
  bool itself = false;
};

struct elementary {
  std::string_view name;
  expression f;
  tail below, above;
  /// The result of a number that is no NaN, or nothing. Knows the zeros.
  std::optional<std::uint64_t> (*exact)(dtype t, const number& x);
  /// A rational function; below decides before. Then `f` is for tabulation only.
  mpq_class (*rational)(const mpq_class& x) = nullptr;
  int quarters = -1;  ///< the function is sin(x + quarters pi / 2), or -1
};

/// RN_t(f(x)), formats of at most 24 bits and the exponents of binary32.
std::uint64_t evaluate(const elementary& f, dtype t, std::uint64_t x);
/// Where the result of a rational function lies.
outcome locate_rational(const elementary& f, dtype t, std::uint64_t x);
/// The tail that x lies in, or null.
const tail* tail_of(const elementary& f, const number& x);

/// The function of that name, or null.
const elementary* elementary_named(std::string_view name);

}  // namespace repdl::reference
