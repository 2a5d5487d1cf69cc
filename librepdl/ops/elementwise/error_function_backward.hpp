// erf_backward(g, x) = g (2 / sqrt(pi)) e^(-x^2) and erfc_backward = -erf_backward, for f16, bf16, binary32: binary64
// with a rounding test; multi-limb balls decide what it leaves undecided. Where g is 0 or not finite, or x is not finite,
// the formula in binary64 is right with any number in place of the factor of a finite x. Else:
//
// x^2 is exact (48 bits) and cut down to 210: |g| e^-210 < 2^-174 rounds to a zero, as what is computed does. Errors,
// relative, u = 2^-53:
//   e^(-x^2): 11.3 u (exp.hpp); the constant u/2, two products, the ends 1 u each      14.8 u < 2^-49
//
// Last tier. Whether e^(-x^2) / sqrt(pi) can be rational is not known: a result that is a midpoint, or nearer to one
// than the bits of the last tier tell, stays undecided. In f16 and bf16 none is nearer than 2^-36 of itself, for whatever
// g and x (reference/gen/gradients.py): the fast tier decides all.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct erf_backward;
struct erfc_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

struct erf_backward_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    const ball<L> square = number<L>(x) * number<L>(x);
    return number<L>(g) * exponential(negated(square)) / square_root(quarter_pi_ball<L>());
  }
};
template <int sign>
struct erf_backward_body {
  static constexpr double factor = sign * 0x1.20dd750429b6dp0;  // 2 / sqrt(pi), reference/gen/backward.sollya

  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x) {
    const double a = factor * widen(g);
    const double square = widen(x) * widen(x);
    const double product = a * exp_by_square(square < 210 ? -square : -210.0, 0.0);
    const bool plain = is_plain(a, square);
    const double error = 0x1p-49 * magnitude_of(product);
    return certify_as<T>(plain ? product : special(a, square), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    const double a = sign * widen(g);
    const double b = widen(x);
    if (!is_plain(a, b * b) || b * b > 210) return eval(g, x);
    return decide<T>(erf_backward_formula{a, b}, last_tier_bits);
  }

 private:
  REPDL_HD static bool is_plain(double g, double square) { return is_regular(g) & (g != 0) & is_regular(square); }
  REPDL_HD static double special(double g, double square) {
    return g * (square == infinity ? 0.0 : is_regular(square) ? 1.0 : square);
  }
};
template <>
struct body<ops::erf_backward> : erf_backward_body<1> {};
template <>
struct body<ops::erfc_backward> : erf_backward_body<-1> {};

// Binary64. |x| > 38.2: 2^1024 e^(-x^2) < 2^-1075.
template <int sign>
struct erf_gradient64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (magnitude_of(x) <= 38.2);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const mask_of<R> vanishes = (magnitude_of(x) == infinity) | ((magnitude_of(x) > 38.2) & is_finite_not_zero(g));
    const R r = (sign * g) * (vanishes ? math<R>::all(0) : math<R>::all(1));
    return (r == r) & (x == x) ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    using Ball = dd_ball<R>;
    const scaled_ball<R> e = scaled_exponential(negated(beside_zero(number<Ball>(x) * number<Ball>(x), x)));
    return round_product(sign * g, e.m * constant<Ball>(dd_two_over_root_pi), e.k);
  }
  template <class Ball>
  REPDL_HD static Ball formula(double g, double x) {
    return erf_backward_formula{sign * g, x}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::erf_backward> : by_formula<erf_gradient64<1>> {};
template <>
struct body64<ops::erfc_backward> : by_formula<erf_gradient64<-1>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
