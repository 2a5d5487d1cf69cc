// gelu_backward(g, x) = g (Phi(x) + x phi(x)), Phi the distribution function and phi the density of the normal
// distribution, for f16, bf16, binary32: binary64 with a rounding test; multi-limb balls decide what it leaves undecided.
//
// Fast tier, v = |x|, E = e^(-v^2/2), c = 1/sqrt(2 pi), Phi(-v) = E G(v) with gelu.hpp's core or, above 14.4375, where its bounds
// end, a polynomial of its own: the factor is h = E G - v c E for x < 0, and 1 - h for x > 0. v is cut to 20.5: beyond, g times the
// factor rounds to a zero of its sign, 2^128 20.5 c e^-210 < 2^-170, or to g, the factor being 1 up to 2^-290. The zero of the
// factor, -0.751791524693564457..., has no binary32 number within 2^-27: the computed sign is right. Errors, u = 2^-53:
//   E G                                                                              16   u E G (gelu.hpp)
//   E G, 14.4375 < v <= 24.5 (geglu_backward_a):
//     E 5.1 u; y within u/2 counts 2 y / (1 - y^2) < 2 times that; the polynomial 2^-58; the sums p_k and products p_(k+1) y of
//     Horner's scheme, y <= 0.62: u y^k |p_k| add up to 0.12 u beside G > 0.0162, those of the products, where there is no
//     FMA, to 0.11 u: 14.2 u; the product u                                          21.4 u E G
//   v c E: E 5.1 u, c, two products                                                  8.1  u v c E
//   h and 1 - h, product by g, ends                                                  5    u (E G + v c E), and 5 u where x > 0
//   2^-48 = 32 u of E G + v c E, and of 1 where x > 0, covers them.
//
// Last tier. Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...). The k-th term is the one before by x^2 / (2 k + 1). Once
// that is below 1/2, the terms left out are less than the last one added. x < 0 cancels, up to 2^-310, which 1024
// bits bear. No theorem says that the value is not a midpoint: such a one would be `undecided`. x next to 0: |factor -
// 1/2| > 2^-150, and balls of 256 bits tell it from g/2, a midpoint for odd multiples of the least number. x = 0: exactly
// g/2.
// In f16 and bf16 every pair was tried: 512 bits decide all.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/gelu.hpp"
#include "librepdl/ops/elementwise/gradient.hpp"

namespace repdl::ops {
struct gelu_backward;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// phi(x), and (Phi(x) - 1/2) / phi(x).
template <int L>
REPDL_HD_CALL ball<L> normal_density(double x) {
  const ball<L> square = number<L>(x) * number<L>(x);
  return exponential(scaled(negated(square), -1)) / square_root(scaled(quarter_pi_ball<L>(), 3));
}
// x has at most 26 bits. z = x^2, x (1 + z/3 (1 + z/5 (1 + ...))) = x A/B without divisions: from the last term on B becomes
// (2 k + 1) B, A this and z A. All is positive: a step adds at most one truncation to B's relative error and two to A's, each
// below 2^(1 - 64 L) (1 + 2^-60); the terms left out are less than 2^(-64 L).
template <int L>
REPDL_HD_CALL ball<L> normal_series(double x) {
  if (x == 0) return number<L>(0);
  const double z = x * x;
  int terms = 0;
  double term = 1;  // z^k / (3 5 ... (2 k + 1)) 2^below
  for (int below = 0; below < 64 * L;) {
    ++terms;
    term *= z / (2 * terms + 1);
    if (term < 0x1p-65 && 2 * terms > 2 * z) {
      term *= 0x1p64;
      below += 64;
    }
  }
  const multi_limb<1> word = limbs_of_value<1>(z);
  bool inexact = false;
  multi_limb<L> a = limbs_of<L>(1);
  multi_limb<L> b = a;
  REPDL_LIMB_LOOP(7)
  for (int k = terms; k > 0; --k) {
    b = multiply(b, static_cast<std::uint64_t>(2 * k + 1), &inexact);
    a = add(b, scaled(multiply(a, word.limb[0], &inexact), word.exponent - 64), &inexact);
  }
  const multi_limb<L> ratio = divide(a, b, &inexact);
  const magnitude error = multiply(upper(ratio), magnitude_of(4 * terms + 4, 1 - 64 * L));
  return number<L>(x) * ball<L>{ratio, error};
}

struct gelu_gradient_formula {
  double g, x;
  template <int L>
  REPDL_HD_CALL ball<L> eval() const {
    return number<L>(g) * (number<L>(0.5) + normal_density<L>(x) * (normal_series<L>(x) + number<L>(x)));
  }
};

// Of x cut to |x| <= limit <= 24.5, v = |x|: Phi(-v) and v phi(v).
struct normal_gate {
  static constexpr double cut = 14.4375;
  static constexpr double c = 0x1.9884533d43651p-2;  // RN(1 / sqrt(2 pi))
  // reference/gen/gelu.sollya
  static constexpr double far0 = 0x1.1445a31f89f9dp-4, far1 = -0x1.05a4bfd50a595p-3, far2 = 0x1.bbfe6448a937fp-4,
                          far3 = -0x1.504fb79b66a19p-4, far4 = 0x1.c3ce3f4a1f11fp-5, far5 = -0x1.0a0185a8651f3p-5,
                          far6 = 0x1.0d0a1ed17154cp-6, far7 = -0x1.c2ec05cd51bap-8, far8 = 0x1.256643240f5e8p-9,
                          far9 = -0x1.05bb124e7950bp-11, far10 = 0x1.da835c8f75364p-15;
  double tail, slope;
  REPDL_HD static double far_polynomial(double y) {
    double p = muladd(far10, y, far9);
    p = muladd(p, y, far8);
    p = muladd(p, y, far7);
    p = muladd(p, y, far6);
    p = muladd(p, y, far5);
    p = muladd(p, y, far4);
    p = muladd(p, y, far3);
    p = muladd(p, y, far2);
    p = muladd(p, y, far1);
    return muladd(p, y, far0);
  }
  REPDL_HD static normal_gate eval(double x, double limit) {
    const double v = magnitude_of(cut_to(x, -limit, limit));
    const double y = normal_tail_core::place(v);
    const double e = exp_core::eval(-0.5 * (v * v));
    return {e * choose(v > cut, far_polynomial(y), normal_tail_core::polynomial(y)), v * c * e};
  }
};
// The factor of gelu's gradient, and its bound.
REPDL_HD bounded_factor gelu_factor(double x, double limit) {
  const normal_gate n = normal_gate::eval(x, limit);
  const double h = n.tail - n.slope;
  return {choose(x < 0, h, 1.0 - h), 0x1p-48 * (n.tail + n.slope + choose(x < 0, 0.0, 1.0))};
}

template <>
struct body<ops::gelu_backward> {
  static constexpr double limit = 20.5;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T x) {
    const double v = widen(x);
    const bounded_factor phi = gelu_factor(v, limit);
    return certify_gradient<T>(widen(g), v, phi.value, phi.bound, -0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, int last_tier_bits) {
    if (!is_undecided(widen(g), widen(x), -limit, normal_gate::cut)) return eval(g, x);
    return decide<T>(gelu_gradient_formula{widen(g), widen(x)}, last_tier_bits);
  }
};

// Binary64. Phi(x) + x e^(-x^2/2) / sqrt(2 pi): with B = |x| / sqrt(2 pi) - F / 2, which is at least 0.26 for |x| >= 1.23, 1 + e^(-x^2/2) B, or
// -e^(-x^2/2) B for x < 0. x > 9: phi - 1 < 2^-56; x < -54: 2^1024 |x| e^(-x^2/2) < 2^-1075, and 2^10 |x| e^(-x^2/2) from -39 on. Next to g / 2 as
// silu_gradient64. Its root is between this number and the one below.
struct gelu_gradient64 {
  static constexpr double root = -0x1.80ead197f00b3p-1;
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x) {
    return is_finite_not_zero(g) & (x >= -54) & (x <= 9) & ((x >= -39) | (magnitude_of(g) > 0x1p10)) &
           (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R g, R x) {
    const R limit = x < 0 ? math<R>::all(-0.0) : math<R>::all(1);
    return special_gradient(g, x, x, limit, x < root ? math<R>::all(-1) : math<R>::all(1));
  }
  // phi = value 2^k.
  template <class R>
  REPDL_HD static scaled_ball<R> factor(R x) {
    using Ball = dd_ball<R>;
    const normal_terms<R> n(x);
    const mask_of<R> is_tail = (n.t.near == 0) & (x < 0);
    const Ball slope = number<Ball>(magnitude_of(x)) * constant<Ball>(dd_inverse_root_2_pi);
    const Ball b = slope - select(n.t.near, number<Ball>(0), scaled(n.t.value, -1));
    const Ball added = n.density() * b;
    const Ball near = n.near() + select(has_sign(x), negated(added), added);
    const Ball phi = select(n.t.near, near, select(is_tail, negated(n.e.m * b), number<Ball>(1) + added));
    return {phi, is_tail ? n.e.k : math<R>::all(0)};
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R x) {
    const scaled_ball<R> phi = factor(x);
    return round_product(g, phi.m, phi.k);
  }
  // p phi(x), |x| < 90.
  template <int L>
  REPDL_HD_CALL static beside<L> about_half(const ball<L>& p, double x, int sign) {
    const ball<L> value = p * (normal_distribution<L>(x) + number<L>(x) * normal_density<L>(x));
    return {value, scaled(p, -1), x < 0 ? -sign : sign};
  }
  template <class Ball>
  REPDL_HD static auto formula(double g, double x) {
    return about_half(number<Ball>(g), x, g < 0 ? -1 : 1);
  }
};
template <>
struct body64<ops::gelu_backward> : by_formula<gelu_gradient64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
