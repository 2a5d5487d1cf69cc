// softplus(x; b, threshold) = b x > threshold ? x : ln(1 + e^(b x)) / b, and softplus_backward(g, x), g / (1 + e^(-b x))
// in place of the logarithm: for f16, bf16, binary32, in binary64 with a rounding test; multi-limb balls decide what it
// leaves undecided.
//
// w = b x has 53 + 24 bits: two_prod compares it with the threshold, exactly. u = 2^-53; w is rounded to within u |w|.
//
// softplus. |w| is cut to 260. w > 260: the result is x up to a relative 2^-375: x, a number. w < -260: e^w / b < 2^-375
// 2^200 rounds to a zero. As in logaddexp (logarithmic.hpp), ln(1 + e^w) = max(w, 0) + l, l = ln(1 + e^-|w|):
//   e^-|w|: 260 u and 5.1 u; in l as much, and 4.4 u; in all < 280 u                 < 2^-44 l
//   max(w, 0) u, the sum u, the quotient u, the ends: 2^-50 = 8 u of the sum
// Last tier: ln(1 + e^w) is transcendental for rational w, as logaddexp's is: no midpoint.
//
// softplus_backward. |w| is cut to 210 (gradient.hpp); 1 / (1 + e^-w): 210 u and 8.1 u, product and ends 3 u: 2^-45 = 256
// u. Last tier: transcendental for w != 0; w = 0: g/2, exactly. w next to 0: g/2 may be a midpoint, the rest g (1/(1 +
// e^-w) - 1/2) has the sign of g w.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/gradient.hpp"
#include "librepdl/ops/elementwise/logarithmic.hpp"

namespace repdl::ops {
struct softplus;
struct softplus_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// b x > threshold
REPDL_HD bool softplus_passes(double x, const parameters& p) {
  const dd w = two_prod(p.value[0], x);
  return (w.hi > p.value[1]) | ((w.hi == p.value[1]) & (w.lo > 0));
}

struct softplus_formula {
  double x, beta;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    ball<L> r = exponential(number<L>(beta) * number<L>(x));
    to_logarithm_1p(r);
    return r / number<L>(beta);
  }
};
template <>
struct body<ops::softplus> {
  static constexpr double limit = 260;
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double v = widen(x);
    const double w = p.value[0] * v;
    const double c = cut_to(w, -limit, limit);
    const double z = exp_core::eval(-magnitude_of(c));
    const bool upper = z > 0x1.a8p-2;
    const double l = log_binary64(upper ? 1.0 : 0.0, upper ? 0.5 * (z - 1.0) : z);
    const double sum = (c < 0 ? 0.0 : c) + l;
    const double inverse = 1.0 / p.value[0];
    const bool itself = softplus_passes(v, p) | (w > limit);
    const double error = muladd(0x1p-44, l, 0x1p-50 * sum) * magnitude_of(inverse);
    return certify_as<T>(itself ? v : sum * inverse, itself ? 0.0 : error);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (softplus_passes(v, p) || !(magnitude_of(p.value[0] * v) <= limit)) return eval(x, p);
    return decide<T>(softplus_formula{v, p.value[0]}, last_tier_bits);
  }
};

struct softplus_gradient_formula {
  double g, x, beta;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> w = number<L>(beta) * number<L>(x);
    const ball<L> v = number<L>(g) / (number<L>(1) + exponential(negated(w)));
    return {v, number<L>(0.5 * g), (g < 0) == (beta * x < 0) ? 1 : -1};
  }
};
template <>
struct body<ops::softplus_backward> {
  static constexpr double limit = 210;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    const double w = p.value[0] * v;
    const double phi = logistic(cut_to(w, -limit, limit), 0.0).value;
    const bool passes = softplus_passes(v, p);
    return certify_gradient<T>(widen(g), choose(passes, 0.0, w), passes ? 1.0 : phi, passes ? 0.0 : 0x1p-45 * phi, 0.0,
                               1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (softplus_passes(v, p) || !is_undecided(widen(g), p.value[0] * v, -limit, limit)) return eval(g, x, p);
    return decide<T>(softplus_gradient_formula{widen(g), v, p.value[0]}, last_tier_bits);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
