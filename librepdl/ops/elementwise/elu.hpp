// elu(x; alpha, scale, rate) = x <= 0 ? scale alpha (e^(rate x) - 1) : scale x, for f16, bf16, binary32: binary64 with a
// rounding test; multi-limb balls decide what it leaves undecided.
//
// x > 0: scale x has 53 + 24 bits, two_prod makes it odd (sums.hpp). Else let c = scale alpha and w = rate x; c, w != 0.
//
// Fast tier, -105 <= w <= 105 (below, w is cut down: e^-105 < 2^-151; above, all is left undecided). e^w - 1 = E, from exp.hpp's
// reduction w = k ln2 + r and polynomial 1 + r P(r). Errors relative to E, u = 2^-53:
//   w: u w, in E |w e^w / (e^w - 1)| as much, at most 105.1                          106 u
//   k = 0: r = w, E = r P. P's coefficients differ from 1 / n! by 2^-45.8, 2^-40.7, 2^-39.2, 2^-34.6, ... from n = 2 on,
//     which for |r| < 2^-4 is less than 2^-47.8; beyond, 0x1.4ep-52 e^r (exp.sollya) is less than 2^-47.6          46 u
//     Horner steps and the product                                                   3   u
//   k != 0: |w| > 0.34, 5.1 u e^w, e^w / |e^w - 1| < 3.6, and the subtraction        20  u
//   c, its product with E, the ends and the error                                    5   u
//   sum                                                                              < 160 u < 2^-45
//
// Last tier. e^w is transcendental (Hermite-Lindemann), so the result is no midpoint. But it may be as near as anything to an
// exact part D that is one, and the sign of the rest decides (formula.hpp):
//   D = c w    rest c (e^w - 1 - w), of the sign of c: w next to 0, such as elu(x; 1/2) of odd multiples of the least number
//   D = -c     rest c e^w, of the sign of c: w far below 0, such as scale alpha = 1 + 2^-24 in binary32
// c w has 183 bits. |w| < 2^-300: E is w up to w^2, a relative 2^-300, less than the distance of c w from any other midpoint.
// w < -1000: E is -1 up to 2^-1400. w > 1000: c e^w > 2^-400 2^1442 is infinite. Else e^w as a ball. Where D is not the midpoint
// 512 bits tell |w| >= 2^-300 from 0, and 1024 and more what is left.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct elu;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// e^w - 1 for |w| <= 105, relative error as above.
[[gnu::always_inline]] REPDL_HD double expm1_binary64(double w) {
  using e = exp_core;
  const double t = muladd(w, e::log2e, e::shifter);
  const double k = t - e::shifter;
  const double r = muladd(k, -e::ln2_lo, muladd(k, -e::ln2_hi, w));
  double p = muladd(e::c10, r, e::c9);
  p = muladd(p, r, e::c8);
  p = muladd(p, r, e::c7);
  p = muladd(p, r, e::c6);
  p = muladd(p, r, e::c5);
  p = muladd(p, r, e::c4);
  p = muladd(p, r, e::c3);
  p = muladd(p, r, e::c2);
  p = muladd(p, r, 1.0);
  const double scaled = double_of(bits_of(muladd(p, r, 1.0)) + (bits_of(t) << 52)) - 1.0;
  return k == 0 ? p * r : scaled;
}

struct elu_formula {
  double x, alpha, scale, rate;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> c = number<L>(scale) * number<L>(alpha);
    const ball<L> w = number<L>(rate) * number<L>(x);
    const double near = rate * x;
    const ball<L> one = number<L>(1);
    ball<L> e = w;
    if (magnitude_of(near) < 0x1p-300) {
      e = grown(w, multiply(upper(w), upper(w)));
    } else if (near < -1000) {
      e = grown(negated(one), power_magnitude(-1400));
    } else {
      e = exponential(w) - one;
    }
    return {c * e, near < -1 ? negated(c) : c * w, (scale < 0) == (alpha < 0) ? 1 : -1};
  }
};

template <>
struct body<ops::elu> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double v = widen(x);
    const double w = p.value[2] * v;
    const double c = p.value[0] * p.value[1];
    const double product = c * expm1_binary64(w > -105 && w < 105 ? w : -105.0);
    const bool plain = is_plain(v, p);
    const double error = w < 105 ? 0x1p-45 * magnitude_of(product) : infinity;
    return certify_as<T>(plain ? product : special(v, p), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    const double v = widen(x);
    if (!is_plain(v, p) || p.value[2] * v > 1000) return {narrow<T>(special(v, p)), true};
    return decide<T>(elu_formula{v, p.value[0], p.value[1], p.value[2]}, last_tier_bits);
  }

 private:
  // x < 0, finite, c and w not 0.
  REPDL_HD static bool is_plain(double x, const parameters& p) {
    return (x < 0) & (x > -infinity) & (p.value[0] * p.value[1] * p.value[2] != 0);
  }
  // scale x for x > 0. A zero of the signs of c rate x for x = 0. Else RO(c) times E: e^w - 1 for an infinite or very large w,
  // or its sign where c = 0, or +0 where rate = 0.
  REPDL_HD static double special(double x, const parameters& p) {
    const double rate = p.value[2];
    const dd line = two_prod(p.value[1], x);
    const dd c = two_prod(p.value[0], p.value[1]);
    const double w = rate * x;
    const double infinite = rate < 0 ? infinity : -1.0;
    const double finite = (w > 1000) & (c.hi != 0) ? infinity : w < 0 ? -1.0 : w > 0 ? 1.0 : 0.0;
    const double e = x == -infinity ? (rate == 0 ? w : infinite) : x == 0 ? w : finite;
    return x > 0 ? round_to_odd(line.hi, line.lo) : x != x ? x : round_to_odd(c.hi, c.lo) * e;
  }
};

// ----------------------------------------------------------------------------------------------------------- binary64

// c (e^w - 1), for |c| in [2^-400, 2^400] and w < 0 or a little more. `about` is near w. |w| < 2^-110: slope x (1 + w/2
// + ...), where c w = slope x: within 2^-110 of itself. w < -620: e^w < 2^-890.
template <class R>
REPDL_HD decided_lanes<R> round_growth(const dd_ball<R>& c, const dd_ball<R>& w, R about, const dd_ball<R>& slope,
                                       R x) {
  using Ball = dd_ball<R>;
  const mask_of<R> near = magnitude_of(about) < 0x1p-110;
  const Ball none{math<R>::all(-1), math<R>::all(0), math<R>::all(0x1p-890)};
  const Ball e = select(about < -620, none, exponential_minus_one(w));
  const Ball v = select(near, grown(slope, 0x1p-109 * magnitude_of(slope.hi)), c * e);
  return round_product(near ? x : math<R>::all(1), v, math<R>::all(0));
}

// x > 0: a product. c e^w > 2^-400 2^1442 for w > 1000. Zeros and infinities as in body<ops::elu>. The last tier's
// formula is that of the other formats: c w has 212 bits, the last one from 2^-1500 on, so that it is a midpoint or
// 2^-213 of itself away from every one.
struct elu64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, const parameters& p) {
    const double c = p.value[0] * p.value[1];
    return (x < 0) & (x > -infinity) & (math<R>::all(c * p.value[2]) != 0) & (p.value[2] * x <= 1000);
  }
  template <class R>
  REPDL_HD static R special(R x, const parameters& p) {
    const double rate = p.value[2];
    const double c = p.value[0] * p.value[1];
    const R w = rate * x;
    const R sign = copy_sign(math<R>::all(1), w);
    const R finite = (w > 1000) & (math<R>::all(c) != 0) ? math<R>::all(infinity) : sign;
    const R infinite = math<R>::all(rate < 0 ? infinity : rate > 0 ? -1 : double_of(format<double>::nan));
    const R below = x == -infinity ? infinite : math<R>::all(rate) == 0 ? math<R>::all(0) : finite;
    const R r = x > 0 ? p.value[1] * x : c * (x == 0 ? w : below);
    return (r == r) & (x == x) ? r : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, const parameters& p) {
    using Ball = dd_ball<R>;
    const Ball c = number<Ball>(p.value[0]) * number<Ball>(p.value[1]);
    const Ball rate = number<Ball>(p.value[2]);
    return round_growth<R>(c, rate * number<Ball>(x), p.value[2] * x, c * rate, x);
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, const parameters& p) {
    return elu_formula{x, p.value[0], p.value[1], p.value[2]}.template eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::elu> : by_formula<elu64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
