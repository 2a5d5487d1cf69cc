// Gated units, a product of one operand and a function of the other, and their gradients, for f16, bf16, binary32: glu, swiglu,
// reglu, geglu, glu_backward_b, swiglu_backward_a, reglu_backward_a, geglu_backward_a. p phi(x), p an exact product of two
// operands, in binary64 with a rounding test; multi-limb balls decide what it leaves undecided.
//
//   glu                a / (1 + e^-b)          log_sigmoid_backward(a, -b)
//   swiglu             p = a b, x = a          phi = s, s = 1 / (1 + e^-x)
//   glu_backward_b     p = g a, x = b          phi = s (1 - s)
//   swiglu_backward_a  p = g b, x = a          phi = s (1 + (1 - s) x)
//   geglu              p = a b, x = a          phi = Phi, the distribution function of the normal distribution
//   geglu_backward_a   p = g b, x = a          phi = Phi(x) + x Phi'(x) (gelu_backward.hpp)
//   reglu, reglu_backward_a                    a product of 48 bits, rounded once; of f16 and bf16 in
//                      binary32 (basic.hpp)
//
// p has 48 bits, is exact in binary64 and at least 2^-298 or 0. x = 0: phi is 1/2 or 1/4 and p phi is exact, ties too.
// Limits of phi: +0 at -inf; 1 at +inf, of glu_backward_b +0; of the last two gradients -0 at -inf.
//
// Where x is far below 0, it is cut: swiglu and geglu put the limit in place of x in p, too; there |p phi| < 2^128 210 e^-210 <
// 2^-165, and so geglu at -20.5. The others have |p| < 2^256: at |x| = 300 e^-300 |x| < 2^-424, and geglu_backward_a at -24.5. So
// they round to zeros of their sign. -inf becomes a limit in p, a NaN stays. Far above 0 phi is 1 and a little, but p may be a
// midpoint, so the test goes on there.
//
// Error budgets, u = 2^-53, with the product by p and the ends of the test, 3 u phi (gradient.hpp, gelu.hpp, gelu_backward.hpp):
//   swiglu: s 8.1 u                                                                  < 16 u
//   glu_backward_b: s and 1 - s: 4.6 u and 8.1 u, their product 1 u                  < 17 u: 2^-48 = 32 u
//   swiglu_backward_a: as silu_backward
//   geglu: Phi(-v) 16 u, above 14.4375 21.4 u (gelu_backward.hpp), 1 - Phi(-v) 1 u more    < 26 u: 2^-48
//   geglu_backward_a: as gelu_backward
//
// Last tier. swiglu, glu_backward_b, swiglu_backward_a: for rational x != 0, w = e^x is transcendental (Hermite-Lindemann) and
// p phi a rational function of w that is no constant: no midpoint. Of geglu and geglu_backward_a no theorem says so: a midpoint
// would be `undecided`. But all may be as near as anything to an exact part D that is a midpoint (formula.hpp):
//   swiglu, geglu            D = p/2, the rest has the sign of p x;   D = p, x > 0: of -p
//   swiglu_backward_a, geglu_backward_a   D = p/2, of p x;            D = p, x > 2: of p
//   glu_backward_b           D = p/4, of -p
// For phi - 1/2 has the sign of x, of the gradients too: it is that of an odd function (gelu), or phi = 1/2 + (x + sinh x) / (2 +
// 2 cosh x) (silu); phi > 1 from x = 1.2785, 0.7518 on; and s (1 - s) < 1/4. p/2, p/4, p differ from another midpoint by 2^-48
// of themselves, so balls of 256 bits, of glu_backward_b (x^2) 512, tell p phi from that. Above x = 300 (14.4375) p (1 +- 2^-400)
// (2^-146) is a ball that does.
// geglu in f16 and bf16: tests/elementwise/several_test.cpp tries every pair ([long]).
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/gelu_backward.hpp"
#include "librepdl/ops/elementwise/logaddexp_backward.hpp"
#include "librepdl/ops/elementwise/silu_backward.hpp"

namespace repdl::ops {
struct glu;
struct swiglu;
struct glu_backward_b;
struct swiglu_backward_a;
struct geglu;
struct geglu_backward_a;
struct reglu;
struct reglu_backward_a;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// As certify_gradient, and phi(0) = centre exactly.
template <class T>
REPDL_HD decided_value<T> certify_gate(double product, double x, bounded_factor phi, double centre, double low,
                                       double high) {
  const bool at_zero = x == 0;
  return certify_gradient<T>(product, x, at_zero ? centre : phi.value, at_zero ? 0.0 : phi.bound, low, high);
}
// Whether it may have left it undecided.
REPDL_HD bool is_gate_open(double product, double x, double low) {
  return is_undecided(product, x, low, 0x1.fffffep127) & (x != 0);
}

// product phi(x), a part of it and the sign of the rest; of phi next to 1 a ball of relative radius 2^-bits.
template <int L>
REPDL_HD ball<L> about(const ball<L>& product, int bits) {
  return grown(product, multiply(upper(product), power_magnitude(-bits)));
}
REPDL_HD int sign_as(double product) { return product < 0 ? -1 : 1; }

template <>
struct body<ops::glu> {
  template <class T>
  REPDL_HD static T turned(T b) {
    return from_bits<T>(static_cast<storage_of<T>>(to_bits(b) ^ sign_mask<T>));
  }
  template <class T>
  REPDL_HD static decided_value<T> eval(T a, T b) {
    return body<ops::log_sigmoid_backward>::eval(a, turned(b));
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T a, T b, int last_tier_bits) {
    return body<ops::log_sigmoid_backward>::exact(a, turned(b), last_tier_bits);
  }
};

struct swiglu_formula {
  double product, x;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> p = number<L>(product);
    const int sign = sign_as(product);
    if (x > 300) return {about(p, 400), p, -sign};
    const ball<L> value = p / (number<L>(1) + exponential(number<L>(-x)));
    return x > 1 ? beside<L>{value, p, -sign} : beside<L>{value, scaled(p, -1), x < 0 ? -sign : sign};
  }
};
template <>
struct body<ops::swiglu> {
  static constexpr double limit = 210;
  template <class T>
  REPDL_HD static decided_value<T> eval(T a, T b) {
    const double v = widen(a);
    const double c = cut_to(v, -limit, limit);
    const double s = logistic(c, 0.0).value;
    return certify_gate<T>(product_of(a, b), v, {s, 0x1p-49 * s}, 0.5, 0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T a, T b, int last_tier_bits) {
    const double product = product_of(a, b);
    if (!is_gate_open(product, widen(a), -limit)) return eval(a, b);
    return decide<T>(swiglu_formula{product, widen(a)}, last_tier_bits);
  }

 private:
  template <class T>
  REPDL_HD static double product_of(T a, T b) {
    return cut_to(widen(a), -limit, infinity) * widen(b);
  }
};

struct glu_gradient_formula {
  double product, x;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> p = number<L>(product);
    const ball<L> e = exponential(number<L>(-magnitude_of(x)));
    const ball<L> d = number<L>(1) + e;
    return {p * e / (d * d), scaled(p, -2), -sign_as(product)};
  }
};
template <>
struct body<ops::glu_backward_b> {
  static constexpr double limit = 300;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T a, T b) {
    const double v = widen(b);
    const logistic_pair s = logistic(cut_to(v, -limit, limit), 0.0);
    const double phi = s.value * s.complement;
    return certify_gate<T>(widen(g) * widen(a), v, {phi, 0x1p-48 * phi}, 0.25, 0.0, 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T a, T b, int last_tier_bits) {
    const double product = widen(g) * widen(a);
    if (!is_gate_open(product, widen(b), -limit) || widen(b) > limit) return eval(g, a, b);
    return decide<T>(glu_gradient_formula{product, widen(b)}, last_tier_bits);
  }
};

struct swiglu_gradient_formula {
  double product, x;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> p = number<L>(product);
    const int sign = sign_as(product);
    if (x > 300) return {about(p, 400), p, sign};
    const ball<L> value = logistic_gradient(product, number<L>(x), number<L>(x));
    return x > 2 ? beside<L>{value, p, sign} : beside<L>{value, scaled(p, -1), x < 0 ? -sign : sign};
  }
};
template <>
struct body<ops::swiglu_backward_a> {
  static constexpr double limit = 300;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T a, T b) {
    const double v = widen(a);
    const double c = cut_to(v, -limit, limit);
    return certify_gate<T>(widen(g) * widen(b), v, logistic_factor(c, 0.0, c), 0.5, -0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T a, T b, int last_tier_bits) {
    const double product = widen(g) * widen(b);
    if (!is_gate_open(product, widen(a), -limit)) return eval(g, a, b);
    return decide<T>(swiglu_gradient_formula{product, widen(a)}, last_tier_bits);
  }
};

struct geglu_formula {
  double product, x;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> p = number<L>(product);
    const int sign = sign_as(product);
    if (x > normal_gate::cut) return {about(p, 146), p, -sign};
    const ball<L> value = p * (number<L>(0.5) + normal_density<L>(x) * normal_series<L>(x));
    return x > 1 ? beside<L>{value, p, -sign} : beside<L>{value, scaled(p, -1), x < 0 ? -sign : sign};
  }
};
template <>
struct body<ops::geglu> {
  static constexpr double limit = 20.5;
  template <class T>
  REPDL_HD static decided_value<T> eval(T a, T b) {
    const double v = widen(a);
    const double product = product_of(a, b);
    const double tail = normal_gate::eval(v, limit).tail;
    const double phi = choose(v < 0, tail, 1.0 - tail);
    return certify_gate<T>(product, v, {phi, 0x1p-48 * phi}, 0.5, 0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T a, T b, int last_tier_bits) {
    const double product = product_of(a, b);
    if (!is_gate_open(product, widen(a), -limit)) return eval(a, b);
    return decide<T>(geglu_formula{product, widen(a)}, last_tier_bits);
  }

 private:
  template <class T>
  REPDL_HD static double product_of(T a, T b) {
    return cut_to(widen(a), -limit, infinity) * widen(b);
  }
};

struct geglu_gradient_formula {
  double product, x;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> p = number<L>(product);
    const int sign = sign_as(product);
    if (x > normal_gate::cut) return {about(p, 146), p, sign};
    const ball<L> value = gelu_gradient_formula{product, x}.eval<L>();
    return x > 2 ? beside<L>{value, p, sign} : beside<L>{value, scaled(p, -1), x < 0 ? -sign : sign};
  }
};
template <>
struct body<ops::geglu_backward_a> {
  static constexpr double limit = 24.5;
  template <class T>
  REPDL_HD static decided_value<T> eval(T g, T a, T b) {
    const double v = widen(a);
    const double product = widen(g) * widen(b);
    return certify_gate<T>(product, v, gelu_factor(v, limit), 0.5, -0.0, 1.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T a, T b, int last_tier_bits) {
    const double product = widen(g) * widen(b);
    if (!is_gate_open(product, widen(a), -limit)) return eval(g, a, b);
    return decide<T>(geglu_gradient_formula{product, widen(a)}, last_tier_bits);
  }
};

// relu(a) b
template <>
struct body<ops::reglu> {
  template <class T>
  REPDL_HD static T eval(T a, T b) {
    using F = product_format<T>;
    const F v = static_cast<F>(widen_to_float(a));
    return narrow<T>((v <= 0 ? F(0) : v) * static_cast<F>(widen_to_float(b)));
  }
};
template <>
struct body<ops::reglu_backward_a> {
  template <class T>
  REPDL_HD static T eval(T g, T a, T b) {
    using F = product_format<T>;
    const F product = static_cast<F>(widen_to_float(g)) * static_cast<F>(widen_to_float(b));
    return narrow<T>(widen_to_float(a) <= 0 ? F(0) : product);
  }
};

// Binary64: glu is logaddexp_backward(a, b, 0).
struct glu64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R a, R b) {
    return share64<0>::plain(a, b, math<R>::all(0));
  }
  template <class R>
  REPDL_HD static R special(R a, R b) {
    return share64<0>::special(a, b, math<R>::all(0));
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R a, R b) {
    return share64<0>::formula<Ball>(a, b, math<R>::all(0));
  }
};
template <>
struct body64<ops::glu> : by_formula<glu64> {};

// Binary64: p phi(x) with e = e^-|x|, p = a b exactly: of 106 bits, less than 2^2048.
//   swiglu             p / (1 + e), p e / (1 + e)                                        0 below -1463: |x| 2^1024 e^x < 2^-1075
//   glu_backward_b     p e / (1 + e)^2                                                   0 where |x| > 2165: 2^2048 e^-|x| < 2^-1075
//   swiglu_backward_a  p (1 + e (1 + x)) / (1 + e)^2, p e (1 + x + e) / (1 + e)^2        0 below -2173: 2^2048 (1 + |x|) e^x < 2^-1075
// x = 0: p/2 or p/4; half of the larger factor is exact, or both are so small that the product is less than 2^-1075. Where x is large, phi is 1 but
// for less than 2^-280 from 200 on: x is cut there.
//
// Last tier: no midpoints but where p, p/2 or p/4 is one, as above; other p differ from a midpoint by 2^-107 of themselves, or more.
struct gate64 {
  template <class R>
  REPDL_HD static mask_of<R> is_regular_pair(R a, R b) {
    return (a != 0) & (magnitude_of(a) < infinity) & (b != 0) & (magnitude_of(b) < infinity);
  }
  // RN(a b part), part = 1/2 or 1/4.
  template <class R>
  REPDL_HD static R part_of_product(R a, R b, double part) {
    const mask_of<R> ordered = magnitude_of(a) > magnitude_of(b);
    return (ordered ? part * a : a) * (ordered ? b : part * b);
  }
  // a b times +0: 0 of its sign, though a b may be more than binary64 has, and NaN where a or b is infinite.
  template <class R>
  REPDL_HD static R nothing_of(R a, R b) {
    return (0.0 * a) * (0.0 * b);
  }
  template <class R>
  REPDL_HD static R canonical_of(R v) {
    return v == v ? v : nan_of<R>();
  }
  // What cutting x adds to the error of a factor next to 1.
  template <class R>
  REPDL_HD static R cut_error(R x) {
    return x > 200 ? math<R>::all(0x1p-270) : math<R>::all(0);
  }
  template <class R>
  REPDL_HD static R cut(R x) {
    return x > 200 ? math<R>::all(200) : x;
  }
};
struct swiglu64 : gate64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R a, R b) {
    return is_regular_pair(a, b) & (a >= -1463);
  }
  template <class R>
  REPDL_HD static R special(R a, R b) {
    const mask_of<R> vanishes = (a < -1463) & ((a == -infinity) | (magnitude_of(b) < infinity));
    return canonical_of((vanishes ? math<R>::all(-0.0) : a) * b);
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R a, R b) {
    const Ball p = number<Ball>(a) * number<Ball>(b);
    const Ball one = number<Ball>(1);
    if constexpr (is_multi_limb<Ball>) {
      constexpr int L = limbs_of_ball<Ball>;
      const int sign = (a < 0) == (b < 0) ? 1 : -1;
      if (a > 300) return beside<L>{about(p, 400), p, -sign};
      const Ball value = p / (one + exponential(number<Ball>(-a)));
      return a > 1 ? beside<L>{value, p, -sign} : beside<L>{value, scaled(p, -1), a < 0 ? -sign : sign};
    } else {
      const Ball e = exponential(number<Ball>(-magnitude_of(cut(a))));
      return p * select(a < 0, e, one) / grown(one + e, cut_error(a));
    }
  }
};
template <>
struct body64<ops::swiglu> : by_formula<swiglu64> {};

struct glu_backward_b64 : gate64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R a, R b) {
    return is_regular_pair(g, a) & (b != 0) & (magnitude_of(b) <= 2165);
  }
  template <class R>
  REPDL_HD static R special(R g, R a, R b) {
    const mask_of<R> vanishes = (magnitude_of(b) == infinity) | ((magnitude_of(b) > 2165) & is_regular_pair(g, a));
    const R limit = vanishes ? nothing_of(g, a) : part_of_product(g, a, 0.25);
    return b == b ? canonical_of(limit) : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R a, R b) {
    const Ball p = number<Ball>(g) * number<Ball>(a);
    const Ball e = exponential(number<Ball>(-magnitude_of(b)));
    const Ball d = number<Ball>(1) + e;
    const Ball value = p * e / (d * d);
    if constexpr (is_multi_limb<Ball>) {
      return beside<limbs_of_ball<Ball>>{value, scaled(p, -2), (g < 0) == (a < 0) ? -1 : 1};
    } else {
      return value;
    }
  }
};
template <>
struct body64<ops::glu_backward_b> : by_formula<glu_backward_b64> {};

struct swiglu_backward_a64 : gate64 {
  static constexpr double phi_zero = -0x1.474973c84120bp+0;  // next above the zero of phi, -1.278464542761073795109

  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R a, R b) {
    return is_regular_pair(g, b) & (a != 0) & (a >= -2173) & (a < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R a, R b) {
    const R sign = a < phi_zero ? math<R>::all(-1) : math<R>::all(1);
    const mask_of<R> vanishes = (a == -infinity) | ((a < -2173) & is_regular_pair(g, b));
    const R half = part_of_product(g, b, 0.5);
    const R product = a == 0 ? half : g * b;
    const R limit = vanishes ? nothing_of(g, b) : product;
    return a == a ? canonical_of(sign * limit) : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R a, R b) {
    const Ball p = number<Ball>(g) * number<Ball>(b);
    if constexpr (is_multi_limb<Ball>) {
      constexpr int L = limbs_of_ball<Ball>;
      const int sign = (g < 0) == (b < 0) ? 1 : -1;
      if (a > 300) return beside<L>{about(p, 400), p, sign};
      const Ball value = p * logistic_gradient(1, number<Ball>(a), number<Ball>(a));
      return a > 2 ? beside<L>{value, p, sign} : beside<L>{value, scaled(p, -1), a < 0 ? -sign : sign};
    } else {
      const Ball x = number<Ball>(cut(a));
      const Ball one = number<Ball>(1);
      const Ball e = exponential(number<Ball>(-magnitude_of(x.hi)));
      const mask_of<R> negative = a < 0;
      const Ball d = one + e;
      const Ball n = select(negative, d + x, one + e * (one + x));
      return p * select(negative, e, one) * grown(n / (d * d), cut_error(a));
    }
  }
};
template <>
struct body64<ops::swiglu_backward_a> : by_formula<swiglu_backward_a64> {};

// Binary64: p Phi(a), p phi(a), of gelu64 and gelu_gradient64, p = a b or g b as above. Where a > 39, Phi and phi are 1 but for less than 2^-1090; below
// -54 results are less than 2^-1075, of p below 2^2048 from -67 on.
struct geglu64 : gate64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R a, R b) {
    return is_regular_pair(a, b) & (a >= -54);
  }
  template <class R>
  REPDL_HD static R special(R a, R b) {
    const mask_of<R> vanishes = (a < -54) & ((a == -infinity) | (magnitude_of(b) < infinity));
    return canonical_of((vanishes ? math<R>::all(-0.0) : a) * b);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R a, R b) {
    using Ball = dd_ball<R>;
    const normal_terms<R> n(a > 39 ? math<R>::all(39) : a);
    const Ball half_tail = scaled(n.t.value, -1);
    const mask_of<R> is_tail = (n.t.near == 0) & (a < 0);
    const Ball phi = select(n.t.near, n.near(), number<Ball>(1) - n.density() * half_tail);
    const significand<R> x = significand_of(a);
    const R k = is_tail ? n.e.k : math<R>::all(0);
    return round_product(b, number<Ball>(x.m) * select(is_tail, n.e.m * half_tail, phi), k + x.k);
  }
  template <class Ball>
  REPDL_HD static auto formula(double a, double b) {
    constexpr int L = limbs_of_ball<Ball>;
    const int sign = (a < 0) == (b < 0) ? 1 : -1;
    const ball<L> p = number<L>(a) * number<L>(b);
    if (a > 60) return beside<L>{about(p, 2048), p, -sign};
    const ball<L> value = p * normal_distribution<L>(a);
    return a > 1 ? beside<L>{value, p, -sign} : beside<L>{value, scaled(p, -1), a < 0 ? -sign : sign};
  }
};
template <>
struct body64<ops::geglu> : by_formula<geglu64> {};

struct geglu_backward_a64 : gate64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R a, R b) {
    return is_regular_pair(g, b) & (a != 0) & (a >= -67) & (a < infinity);
  }
  template <class R>
  REPDL_HD static R special(R g, R a, R b) {
    const R sign = a < gelu_gradient64::root ? math<R>::all(-1) : math<R>::all(1);
    const mask_of<R> vanishes = (a == -infinity) | ((a < -67) & is_regular_pair(g, b));
    const R half = part_of_product(g, b, 0.5);
    const R limit = vanishes ? nothing_of(g, b) : a == 0 ? half : g * b;
    return a == a ? canonical_of(sign * limit) : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R g, R a, R b) {
    const scaled_ball<R> phi = gelu_gradient64::factor(a > 39 ? math<R>::all(39) : a < -39 ? math<R>::all(-39) : a);
    const significand<R> x = significand_of(b);
    const decided_lanes<R> r = round_product(g, phi.m * number<dd_ball<R>>(x.m), phi.k + x.k);
    return {r.value, static_cast<mask_of<R>>(r.decided & (a >= -39))};
  }
  template <class Ball>
  REPDL_HD static auto formula(double g, double a, double b) {
    constexpr int L = limbs_of_ball<Ball>;
    const int sign = (g < 0) == (b < 0) ? 1 : -1;
    const ball<L> p = number<L>(g) * number<L>(b);
    if (a > 60) return beside<L>{about(p, 2048), p, sign};
    const beside<L> half = gelu_gradient64::about_half(p, a, sign);
    return a > 2 ? beside<L>{half.value, p, sign} : half;
  }
};
template <>
struct body64<ops::geglu_backward_a> : by_formula<geglu_backward_a64> {};

// Binary64: one product.
template <>
struct body64<ops::reglu> {
  template <class R>
  REPDL_HD static R lanes(R a, R b) {
    return gate64::canonical_of((a <= 0 ? math<R>::all(0) : a) * b);
  }
  REPDL_HD static double eval(double a, double b) { return lanes(a, b); }
};
template <>
struct body64<ops::reglu_backward_a> {
  template <class R>
  REPDL_HD static R lanes(R g, R a, R b) {
    const R product = g * b;
    return a <= 0 ? math<R>::all(0) : gate64::canonical_of(product);
  }
  REPDL_HD static double eval(double g, double a, double b) { return lanes(g, a, b); }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
