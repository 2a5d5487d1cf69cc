// erf z and erfc z in multi-limb balls, |z| < 2^6, for binary64's last tiers. w = z^2, a unit is 2^(1 - 64 L) (1 + 2^-60), what one
// operation on middles may lose of its result.
//
//   w < 8 L     erf z = 2 z e^(-w) / sqrt(pi) S,  S = 1 + 2w/3 (1 + 2w/5 (1 + ...)), all terms positive;  erfc z = 1 - erf z, which loses
//               less than 11.6 L + 6 of 64 L bits
//   w >= 8 L    erfc z = e^(-w) / (sqrt(pi) K),  K = z + (1/2)/(z + (2/2)/(z + (3/2)/(z + ...))), z > 0, in relative accuracy;
//               erf z = 1 - erfc z, erfc z = 2 - erfc(-z)
//
// Sources: M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions" (1964), 7.1.6 and 7.1.14; the bounds of the fraction's
// tails are derived below. Checked by tests/numerics/dd_error_function_test.cpp against MPFR.
#pragma once

#include "librepdl/num/formula.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// S of a number w within a unit of the given one, 0 < w < 8 L. Its k-th term is the one before by 2 w / (2 k + 1): once that is below 1/2
// the terms left out are less than the last one added, here less than 2^(-64 L - 2), and S > 1. From the last term on S = A/B without
// divisions: B becomes (2 k + 1) B, A this and 2 w A. All is positive: a step adds a unit to B's relative error and two to A's; with the
// division 3 terms + 1 units. A unit of w makes less than w units of S: as 2 w / (2 k + 1) < w / k, that mean of k is below w.
template <int L>
REPDL_HD_CALL ball<L> error_function_series(const multi_limb<L>& w) {
  const double twice = w.exponent < -1000 ? 0.0 : 2 * double_near(w);
  int terms = 0;
  double term = 1;  // of S, times 2^below
  for (int below = 0; below < 64 * L;) {
    ++terms;
    term *= twice / (2 * terms + 1);
    if (term < 0x1p-66 && 2 * terms > 2 * twice) {
      term *= 0x1p64;
      below += 64;
    }
  }
  bool inexact = false;
  const multi_limb<L> factor = scaled(w, 1);
  multi_limb<L> a = limbs_of<L>(1);
  multi_limb<L> b = a;
  REPDL_LIMB_LOOP(7)
  for (int k = terms; k > 0; --k) {
    b = multiply(b, static_cast<std::uint64_t>(2 * k + 1), &inexact);
    a = add(b, multiply(a, factor, &inexact), &inexact);
  }
  const multi_limb<L> ratio = divide(a, b, &inexact);
  return {ratio, multiply(upper(ratio), magnitude_of(static_cast<std::uint64_t>(3 * terms + 3 + 8 * L), 1 - 64 * L))};
}

// K of an exact z >= 1. Its tails K_m = z + (m/2) / K_(m+1), K = K_1.
//
// Let g(s) = (z + sqrt(z^2 + 2 s)) / 2, so that g(s) = z + (s/2) / g(s). If g(m) <= K_(m+1) <= g(m+1), then K_m <= z + (m/2) / g(m) = g(m),
// and K_m >= z + (m/2) / g(m+1) >= g(m-1), the latter since m g(m-1) >= (m-1) g(m+1): of the parts z, and of the roots, for
//   m^2 (z^2 + 2m - 2) - (m-1)^2 (z^2 + 2m + 2) = (2m - 1) z^2 + 2 (m-1) >= 0.
// So all tails of a fraction that ends with any number T in [g(n), g(n+1)] in the place of K_(n+1) are in such intervals; the fraction
// converges, so K's own are, too. A relative error d of K_(m+1) becomes one of at most
//   d (m/2) / (g(m-1) g(m)) = d (1 - z / g(m)) g(m) / g(m-1)
// of K_m: from |d| <= g(n+1) / g(n) - 1 < 1/2 of T to less than g(n) / (2 z) times the product of all 1 - z / g(m) in K_1. n is where this is
// below 2^(-64 L), with a factor of 2 for binary64's roundings. T = g(n + 1/2): its roundings are less than its distances from both ends.
//
// K = P/Q without divisions: (P, Q) becomes (z P + (m/2) Q, P); all is positive, and a step adds two units to the greater one of their
// relative errors: 4 n units for the quotient, and one for the division.
//
// As z grows K does, by no more (0 <= K' <= 1): K_m' = 1 - (m/2) K_(m+1)' / K_(m+1)^2, where (m/2) / g(m)^2 < 1, from T' = 0 on.
template <int L>
REPDL_HD_CALL ball<L> error_function_fraction(const multi_limb<L>& z) {
  const double leading = double_near(z);
  const double square = leading * leading;
  int n = 0;
  double g = leading;
  double product = 1;  // times 2^below
  for (int below = 0; below < 64 * L || product * g > leading;) {
    ++n;
    g = 0.5 * (leading + num::sqrt(square + 2 * n));
    product *= 1 - leading / g;
    if (product < 0x1p-64) {
      product *= 0x1p64;
      below += 64;
    }
  }
  bool inexact = false;
  multi_limb<L> p = limbs_of_value<L>(0.5 * (leading + num::sqrt(square + (2 * n + 1))));
  multi_limb<L> q = limbs_of<L>(1);
  REPDL_LIMB_LOOP(7)
  for (int m = n; m > 0; --m) {
    const multi_limb<L> next = scaled(multiply(q, static_cast<std::uint64_t>(m), &inexact), -1);
    q = p;
    p = add(multiply(p, z, &inexact), next, &inexact);
  }
  const multi_limb<L> ratio = divide(p, q, &inexact);
  return {ratio, multiply(upper(ratio), magnitude_of(static_cast<std::uint64_t>(4 * n + 3), 1 - 64 * L))};
}

// Whether w < 8 L, nearly.
template <int L>
REPDL_HD bool takes_error_series(const multi_limb<L>& z) {
  if (z.is_zero() || z.exponent < 0) return true;
  const double leading = double_near(z);
  return leading * leading < 8 * L;
}
// erf z, w < 8 L. |erf'| < 2.
template <int L>
REPDL_HD_CALL ball<L> error_function_near_zero(const ball<L>& z) {
  const magnitude spread = add(z.radius, z.radius);
  if (z.middle.is_zero()) return {z.middle, spread};
  const ball<L> middle = exact_ball(z.middle);
  const ball<L> w = middle * middle;
  return grown(middle * exponential(negated(w)) * error_function_series(w.middle) / square_root(quarter_pi_ball<L>()),
               spread);
}
// erfc z, w >= 8 L, z > 0.
template <int L>
REPDL_HD_CALL ball<L> error_function_tail(const ball<L>& z) {
  const ball<L> fraction = grown(error_function_fraction(z.middle), z.radius);
  return scaled(exponential(negated(z * z)) / (square_root(quarter_pi_ball<L>()) * fraction), -1);
}

// Of |z| >= 2^6 nothing is known, nor of balls with a radius of 2^-20 or more.
template <int L>
REPDL_HD bool is_beyond_error_functions(const ball<L>& z) {
  return z.middle.exponent > 6 || !z.radius.below_power(-20);
}
template <int L>
REPDL_HD_CALL ball<L> error_function(const ball<L>& z) {
  if (is_beyond_error_functions(z)) return {z.middle, unknown()};
  if (takes_error_series(z.middle)) return error_function_near_zero(z);
  if (z.middle.negative != 0) return error_function_tail(negated(z)) - number<L>(1);
  return number<L>(1) - error_function_tail(z);
}
template <int L>
REPDL_HD_CALL ball<L> complementary_error_function(const ball<L>& z) {
  if (is_beyond_error_functions(z)) return {z.middle, unknown()};
  if (takes_error_series(z.middle)) return number<L>(1) - error_function_near_zero(z);
  if (z.middle.negative != 0) return number<L>(2) - error_function_tail(negated(z));
  return error_function_tail(z);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
