// g phi(x) for activations: what their gradients share.
//
// Where |x| is large phi is a constant, or g phi(x) rounds to a zero: bodies cut x, to where exp.hpp's bounds hold, |x|
// <= 350: k has 9 bits and ln2_hi 44, their product is exact; |k ln2_lo| < 2^-39. e^-210 < 2^-302: times |x| and g it is
// below 2^-165.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/activation.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// phi(x) in binary64, and the bound of its error.
struct bounded_factor {
  double value, bound;
};

// RN_T(g phi(x)), where |phi(x) - factor| + 3 u |factor| <= bound, u = 2^-53; low and high are the limits of phi. The
// products are at least 2^-149 2^-303 or 0. Zeros and infinite g have the sign of `factor`: bodies say why it is that of
// phi.
template <class T>
REPDL_HD decided_value<T> certify_gradient(double g, double x, double factor, double bound, double low, double high) {
  const bool finite = magnitude_of(x) < infinity;
  const double phi = x == infinity ? high : x == -infinity ? low : factor;
  const double error = magnitude_of(g) * bound;
  return certify_as<T>(g * phi, finite & is_regular(g) ? error : 0.0);
}
// Whether certify_gradient may have left it undecided: g finite and not 0, and x not cut.
REPDL_HD bool is_undecided(double g, double x, double low, double high) {
  return is_regular(g) & (g != 0) & (x >= low) & (x <= high);
}

// 1 / (1 + e^-w) and 1 / (1 + e^w) for w + low, |w| <= 350, |low| < 2^-45, |low| <= |w|. Relative errors, z = e^-|w|:
//   z (exp.hpp)                                                                      5.1 u
//   1 / (1 + z): z / (1 + z) <= 1/2 of it, a sum, a quotient                         4.6 u
//   z / (1 + z): 1 / (1 + z) of it, a sum, a quotient, a product                     8.1 u
struct logistic_pair {
  double value, complement;
};
REPDL_HD logistic_pair logistic(double w, double low) {
  const double z = exp_core::eval(-magnitude_of(w), w < 0 ? low : -low);
  const double larger = 1.0 / (1.0 + z);
  const double smaller = z * larger;
  return {w < 0 ? smaller : larger, w < 0 ? larger : smaller};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
