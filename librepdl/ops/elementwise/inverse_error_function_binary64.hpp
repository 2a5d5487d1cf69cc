// erfinv, erfcinv and ndtri in binary64.
//
// y >= 0 with erf y = p, and erfc y = q = 1 - p, both known exactly: one of them is the operand, or 1 or 2 less it, and the other is two numbers. For a y0 near
// y, and D = (sqrt(pi) / 2) e^(y0^2) (p - erf y0), what the derivative of erf makes of the difference, Taylor's series of the inverse function is
//   y = y0 + D + y0 D^2 + (1 + 4 y0^2) D^3 / 3 + R,   |R| <= (28 z + 48 z^3) / 24 (D e^(z^2 - y0^2))^4,  z between y0 and y.
// With a = y0 + 2 |D| and |D| a <= 2^-9: erf' >= erf'(y0) / 2 up to y0 + 2 |D|, so that z <= a, e^(4 (z^2 - y0^2)) < 1.04 and
//   |R| <= (1.3 a + 2.1 a^3) D^4.
// So nothing needs to be known of y0: D, computed from it, tells.
//
// First tier, in balls of double-doubles: y0 from a polynomial, within 2^-27 of itself. D is
//   e^(y0^2) (p - erf y0)         y0 < 7/8
//   F(y0) - q e^(y0^2)            beyond, F(y) = e^(y^2) erfc y (dd_error_function.hpp), where q may be as small as 2^-1074
// times sqrt(pi) / 2; the terms behind it, below 2^-42 of y, in binary64: six roundings of each, D without its low part, and D's own bound, count less than 2^-48 of them.
// Last tier: Newton's method in multi-limb balls, of whose last step D is
//   |y - (y0 + D)| <= a (D e^(z^2 - y0^2))^2 < 32 D^2,  |D| < 2^-15, y0 < 2^5.
//
// Whether results but 0 can be rational is not known: a midpoint, or what is nearer to one than the last tier's bits tell, stays undecided.
// Checked by tests/elementwise/inverse_error_function_test.cpp, with MPFR.
#pragma once

#include "librepdl/ops/elementwise/error_function.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// reference/gen/inverse_error_function_binary64.py
struct inverse_error_function_start {
  static constexpr double p0 = 0x1.d5b68cab22522p-1, p1 = 0x1.12fc00eac6226p-2, p2 = 0x1.56a033d733ecdp-3,
                          p3 = 0x1.08877d170467dp-3, p4 = 0x1.c499a4d9b4810p-4, p5 = 0x1.9b35bf0f7703fp-4,
                          p6 = 0x1.84774ab5d7722p-4, p7 = 0x1.79969206c6486p-4, p8 = 0x1.867c30276bf8ep-4,
                          p9 = 0x1.8a37c95f3f020p-4;
  static constexpr double a0 = 0x1.7574b3cbd1572p-1, a1 = -0x1.985e8ad4dcf8dp-2, a2 = 0x1.a2b435f4f5914p-4,
                          a3 = 0x1.ed6d4fb286bc9p-5, a4 = -0x1.901b4f3e894fap-4, a5 = 0x1.1f7b3f4123728p-4,
                          a6 = -0x1.0c8a22c0dc75fp-5, a7 = 0x1.b3f428aa09463p-7, a8 = -0x1.8e9b1e6e3210cp-7,
                          a9 = 0x1.30b91a24e3fb1p-7;
  static constexpr double b0 = 0x1.e02c8b014079bp-1, b1 = -0x1.8113f82efffdcp-2, b2 = -0x1.1889f66e8d2e1p-2,
                          b3 = 0x1.36bbab72e6cb2p-1, b4 = -0x1.675da183b720cp-1, b5 = 0x1.f62be7d46ab61p-1,
                          b6 = -0x1.018b4278ad086p+1, b7 = 0x1.4f2c38b2a25cbp+2, b8 = -0x1.db7fe42bd3dd8p+3,
                          b9 = 0x1.9324963515142p+4;
  static constexpr double c0 = 0x1.f95cc96fa7cedp-1, c1 = -0x1.d79ce1545decep-3, c2 = -0x1.79a6744081995p-1,
                          c3 = 0x1.b6c84029ead03p+0, c4 = -0x1.2cd0ba316621cp+2, c5 = 0x1.47499fe501601p+4,
                          c6 = -0x1.9b73cd6e2dc19p+6, c7 = 0x1.ef8d211b804e4p+8, c8 = -0x1.9862b06e582f7p+12,
                          c9 = 0x1.1262a46768189p+16;

  // Near the y with erf y = p, erfc y = q > 0; of p = 0 it is 0.
  template <class R>
  REPDL_HD static R of(R p, R q) {
    const mask_of<R> near = p <= 0.5;
    const significand<R> m = significand_of(q);
    const R logarithm = math<R>::muladd(m.k, math<R>::all(-dd_ln2.hi), -num::logarithm(number<dd_ball<R>>(m.m)).hi);
    const R t = math<R>::sqrt(near ? math<R>::all(1) : logarithm);
    const R s = 1.0 / t;
    const mask_of<R> first = s >= 0.4, second = s >= 0x1.249249p-3;
    const auto one_of = [&](double of_p, double of_a, double of_b, double of_c) {
      return near ? math<R>::all(of_p) : first ? math<R>::all(of_a) : second ? math<R>::all(of_b) : math<R>::all(of_c);
    };
    const R x = (near ? p * p : s) - one_of(0.125, 0.75, 0.25, 0.09375);
    R r = one_of(p9, a9, b9, c9);
    r = math<R>::muladd(r, x, one_of(p8, a8, b8, c8));
    r = math<R>::muladd(r, x, one_of(p7, a7, b7, c7));
    r = math<R>::muladd(r, x, one_of(p6, a6, b6, c6));
    r = math<R>::muladd(r, x, one_of(p5, a5, b5, c5));
    r = math<R>::muladd(r, x, one_of(p4, a4, b4, c4));
    r = math<R>::muladd(r, x, one_of(p3, a3, b3, c3));
    r = math<R>::muladd(r, x, one_of(p2, a2, b2, c2));
    r = math<R>::muladd(r, x, one_of(p1, a1, b1, c1));
    r = math<R>::muladd(r, x, one_of(p0, a0, b0, c0));
    return r * (near ? p : t);
  }
};

// p and q as double-doubles.
template <class R>
REPDL_HD dd_ball<R> inverse_error_function(const dd_ball<R>& p, const dd_ball<R>& q) {
  using Ball = dd_ball<R>;
  const R y = inverse_error_function_start::of(p.hi, q.hi);
  const error_terms<R> t({y, math<R>::all(0)}, y);
  const scaled_ball<R> e = scaled_exponential(number<Ball>(y) * number<Ball>(y));
  // 2^k twice, as it may be beyond all numbers; of what is near k is 0 or 1.
  const R half = nearest(0.5 * e.k);
  const R s = power_of(half), rest = power_of(e.k - half);
  const auto times = [&](const Ball& a) { return Ball{a.hi * s * rest, a.lo * s * rest, a.error * s * rest}; };
  const Ball difference = select(t.near, times(p - t.value), t.value);
  const Ball by = select(t.near, difference * e.m, difference - times(q) * e.m) * constant<Ball>(dd_half_root_pi);
  const R d = by.hi, a = y + 2 * magnitude_of(d), square = d * d;
  const R more = square * math<R>::muladd(d, math<R>::muladd(4 * y, y, math<R>::all(1)) * (1.0 / 3), y);
  const R left_out = (1.3 + 2.1 * a * a) * a * square * square;
  const mask_of<R> known = (magnitude_of(d) * a <= 0x1p-9) & (y >= 0x1p-890);
  const Ball sum = number<Ball>(y) + by + number<Ball>(more);
  const R error = left_out + 0x1p-48 * magnitude_of(more) + 0x1p-8 * by.error;
  return {sum.hi, sum.lo, known ? up(sum.error + error) : math<R>::all(infinity)};
}
// p and q exactly, from a number near y.
template <int L>
REPDL_HD_CALL ball<L> inverse_error_function(const ball<L>& p, const ball<L>& q, double start) {
  ball<L> y = number<L>(start), by = y;
  const bool near = start < erf_end;
  const auto step = [&] {
    const ball<L> difference = near ? p - error_function(y) : complementary_error_function(y) - q;
    by = difference * exponential(y * y) * square_root(quarter_pi_ball<L>());
  };
  for (int bits = 26; bits < 32 * L + 16; bits = 2 * bits - 12) {
    step();
    y = exact_ball((y + by).middle);
  }
  step();
  const magnitude most = add(upper(by.middle), by.radius);
  if (!most.below_power(-15)) return {y.middle, unknown()};
  return grown(y + by, multiply(multiply(most, most), magnitude_of(32, 0)));
}

enum class inverse_of { erf, erfc, phi };
template <inverse_of Which>
struct inverse_error_function64 {
  // p and q of operands that are plain; the sign of y, beside theirs.
  template <class Ball, class R>
  struct arguments {
    Ball p, q;
    mask_of<R> is_negative;

    explicit REPDL_HD arguments(R x) {
      if constexpr (Which == inverse_of::erf) {
        p = number<Ball>(magnitude_of(x));
        q = number<Ball>(math<R>::all(1)) - p;
        is_negative = x < 0;
      } else {
        constexpr double one = Which == inverse_of::erfc ? 1 : 0.5;
        const mask_of<R> above = x > one;
        const R less = (Which == inverse_of::erfc ? 1.0 : 2.0) * (above ? 2 * one - x : x);  // exact
        q = number<Ball>(less);
        p = number<Ball>(math<R>::all(1)) - q;
        is_negative = Which == inverse_of::erfc ? above : x < one;
      }
    }
  };
  static constexpr double end = Which == inverse_of::erfc ? 2 : 1;

  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    if constexpr (Which == inverse_of::erf) return (magnitude_of(x) < 1) & (x != 0);
    return (x > 0) & (x < end) & (x != 0.5 * end);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    if constexpr (Which == inverse_of::erf) {
      const R pole = magnitude_of(x) == 1 ? copy_sign(math<R>::all(infinity), x) : nan_of<R>();
      return x == 0 ? x : pole;
    } else {
      const R below = math<R>::all(Which == inverse_of::phi ? -infinity : infinity);
      const R pole = x == 0 ? below : -below;
      const R value = x == 0.5 * end ? math<R>::all(0) : pole;
      return (x >= 0) & (x <= end) ? value : nan_of<R>();
    }
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const arguments<dd_ball<R>, R> of(x);
    dd_ball<R> y = inverse_error_function(of.p, of.q);
    if constexpr (Which == inverse_of::phi) y = scaled(y * constant<dd_ball<R>>(dd_inverse_root_2), 1);
    const decided_lanes<R> r = round_ball(y);
    const R value = of.is_negative ? -r.value : r.value;
    if constexpr (Which != inverse_of::erf) return {value, r.decided};
    // Of a small x, which may have few bits, sqrt(pi) / 2 x, within pi / 12 x^2 of itself.
    const decided_lanes<R> least =
        round_product(x, grown(constant<dd_ball<R>>(dd_half_root_pi), math<R>::all(0x1p-121)), math<R>::all(0));
    const mask_of<R> is_small = magnitude_of(x) < 0x1p-60;
    return {is_small ? least.value : value, is_small ? least.decided : r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    constexpr int L = limbs_of_ball<Ball>;
    const arguments<dd_ball<double>, double> of(x);
    const auto exactly = [](const dd_ball<double>& a) { return number<L>(a.hi) + number<L>(a.lo); };
    Ball y =
        inverse_error_function<L>(exactly(of.p), exactly(of.q), inverse_error_function_start::of(of.p.hi, of.q.hi));
    if constexpr (Which == inverse_of::phi) y = y * square_root(number<L>(2));
    return of.is_negative ? negated(y) : y;
  }
};
}  // namespace REPDL_ISA
}  // namespace repdl::num
