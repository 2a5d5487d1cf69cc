// log_ndtr x = ln Phi(x), the logarithm of the normal distribution function, correctly rounded.
//
// Method. With a = |x| and phi(x) = e^(-x^2/2) / sqrt(2 pi), Phi(-a) = phi(a) / K, K = a + 1/(a + 2/(a + 3/(a + ...))):
//   x < 0   -x^2/2 + ln(e^(x^2/2) Phi(x)), e^(x^2/2) Phi(x) = e^(z^2) erfc(z) / 2 of z = a / sqrt 2, or 1 / (sqrt(2 pi) K): both terms are below 0
//   x > 0   ln(1 - Phi(-a)), -Phi(-a) and less
// Sources: M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions" (1964), 26.2.12 and 26.2.14.
//
// Where they are, results are ln(1/2) at 0, -0 of inf, where they underflow, too, and -inf of -inf. Nothing is known of exact ones or midpoints, but
// that -x^2/2 may be a midpoint: the rest has a sign, whatever its size.
//
// Narrower formats, in binary64, u = 2^-53:
//   x < 0: z within 1.6 u, cut down to 10.125; e^(z^2) erfc z by error_function.hpp, 9.4 u, and its slope |z F' / F| <= 1; beyond, tail_series' 2^-44 and
//     6 u. Its logarithm: 11 u, or 2^-43.7 where x^2/2 > 102; ln a itself 2^-55.5 and u of it. x^2/2 is exact (48 bits), the sum is rounded. The result is 0.69 at
//     least: 20 u in all, or 2^-50 and 3 u.
//   x >= 0: t = Phi(-a) within 450 u, or 17.4 u next to 0 (normal_distribution.hpp), which counts t / ((1 - t) -ln(1 - t)) <= 1.45 times where t is 1/2, 1 + t
//     where it is small; 1 - t is rounded where t > 1/8, 2^-54 of 0.13 at least, and the logarithm has 2 u: 455 u in all, less than 2^-44.1.
#pragma once

#include "librepdl/ops/elementwise/logarithm.hpp"
#include "librepdl/ops/elementwise/normal_distribution.hpp"

namespace repdl::ops {
struct log_ndtr;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// a / K = 1 - w + 3 w^2 - 15 w^3 + ... - 135135 w^7 + 2027025 w^8 of w = a^-2, as 1 - q: the terms alternate, and what is left out is less than the first term
// that is, 34459425 w^9. a > 14.3, w < 2^-7.67: 2^25.04 2^-69.03 < 2^-43.9; a > 54, w < 2^-11.5: 2^-78.4.
template <class R>
REPDL_HD R tail_series(R w) {
  return w * horner(w, 1, -3, 15, -105, 945, -10395, 135135, -2027025);
}

// K for a <= -from, a = -x. K_m = a + m / K_(m+1), K = K_1. All are at least a, and so a relative error d of K_(m+1) becomes one of at most d m / a^2 of K_m.
// K_n = a + n / K_(n+1) is within n / a^2 of a, which is taken for it: in all n! / a^(2n). n is where this is below 2^(-64 L) for a = from.
//
// K = P/Q without divisions: (P, Q) becomes (a P + m Q, P); all is positive, and a step adds two units to the greater one of their relative errors: 4 n units for
// the quotient, one for the division and one for what is left out.
inline constexpr double log_ndtr_far = -54;
template <int L>
REPDL_HD_CALL ball<L> mills_fraction(const multi_limb<L>& a) {
  int n = 0;
  double product = 1;  // times 2^below
  for (int below = 0; below < 64 * L;) {
    ++n;
    product *= n / (log_ndtr_far * log_ndtr_far);
    if (product < 0x1p-66) {
      product *= 0x1p64;
      below += 64;
    }
  }
  bool inexact = false;
  multi_limb<L> p = a;
  multi_limb<L> q = limbs_of<L>(1);
  REPDL_LIMB_LOOP(7)
  for (int m = n - 1; m > 0; --m) {
    const multi_limb<L> next = multiply(q, static_cast<std::uint64_t>(m), &inexact);
    q = p;
    p = add(multiply(p, a, &inexact), next, &inexact);
  }
  const multi_limb<L> ratio = divide(p, q, &inexact);
  return {ratio, multiply(upper(ratio), magnitude_of(static_cast<std::uint64_t>(4 * n + 3), 1 - 64 * L))};
}

// ln Phi(x). Of x > log_ndtr_far bits decide: |x^2/2| is of the size of the result, and the rest not small.
template <int L>
REPDL_HD_CALL beside<L> log_normal_distribution(double x) {
  if (x < log_ndtr_far) {
    const ball<L> v = number<L>(x);
    const ball<L> part = negated(scaled(v * v, -1));
    const ball<L> divisor = mills_fraction(negated(v.middle)) * square_root(scaled(quarter_pi_ball<L>(), 3));
    return {part - logarithm(divisor), part, -1};
  }
  const ball<L> value =
      x > 0 ? logarithm_1p(negated(normal_distribution<L>(-x))) : logarithm(normal_distribution<L>(x));
  return {value, number<L>(0), -1};
}

// ln Phi(x) = part + log, part = -x^2/2 of x on the left, where erf is not near, and 0 elsewhere; on the right -t and less, t = e half_tail. One logarithm, of `argument`;
// on the right of 1 + v.
template <class R>
struct log_normal_terms {
  using Ball = dd_ball<R>;
  mask_of<R> left, right;
  scaled_ball<R> e;
  Ball half_tail, log;
  explicit REPDL_HD log_normal_terms(R x) {
    const normal_terms<R> n(x);
    const mask_of<R> near = n.t.near;
    left = static_cast<mask_of<R>>((near == 0) & (x < 0));
    right = static_cast<mask_of<R>>((near == 0) & (x > 0));
    e = n.e;
    half_tail = scaled(n.t.value, -1);

    // 1 / (sqrt(2 pi) K). q < 2^-11.4 within 2^-50 of itself, with what is left out 2^-61.
    const R a = magnitude_of(x);
    const R r = 1.0 / a;
    const double_word<R> s = fast_two_sum(math<R>::all(1), -tail_series(r * r));
    const Ball far = constant<Ball>(dd_inverse_root_2_pi) * Ball{s.hi, s.lo, math<R>::all(0x1p-61)} / number<Ball>(a);
    const Ball scaled_tail = select(x < log_ndtr_far, far, half_tail);
    const Ball t = n.density() * half_tail;
    const Ball argument = select(left, scaled_tail, select(near, n.near(), number<Ball>(1) - t));
    const Ball v = select(right, negated(t), argument - number<Ball>(1));
    const Ball own = join_logarithm<false>(reduce_logarithm_1p(value_of(v), value_of(argument)));
    const R brought = right ? t.error : argument.error;
    const mask_of<R> known = 16 * brought <= argument.hi;
    log = {own.hi, own.lo, known ? up(own.error + 1.125 * (brought / argument.hi)) : math<R>::all(infinity)};
  }
};

// x > 38.6: Phi(-x) < 2^-1080. |x| < 2^-60: -ln 2 + x sqrt(2 / pi) + ..., and -ln 2 is 2^-54.8 from a midpoint. |x| >= 2^513: x^2/2 overflows.
struct log_ndtr64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 38.6) & (x > -0x1p513) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x < 0 ? math<R>::all(-infinity) : math<R>::all(-0.0);
    const R limit = magnitude_of(x) < 1 ? math<R>::all(-dd_ln2.hi) : far;
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const log_normal_terms<R> n(x);
    const Ball& log = n.log;
    // Left: 2^(2k - 1) (m^2 - 2^(1 - 2k) log), |log| < 360: beyond k = 100 the second term is below 2^-190.
    const significand<R> f = significand_of(magnitude_of(x));
    const mask_of<R> alone = f.k > 100;
    const R scale = power_of(alone ? math<R>::all(0) : 1 - 2 * f.k);
    const Ball scaled_log{log.hi * scale, log.lo * scale, log.error * scale};
    const Ball nothing{math<R>::all(0), math<R>::all(0), math<R>::all(0x1p-190)};
    const Ball square = number<Ball>(f.m) * number<Ball>(f.m);
    const Ball below = square - select(alone, nothing, scaled_log);
    const decided_lanes<R> on_left = round_scaled(below, 2 * f.k - 1);
    // Right, Phi(-a) = t < 2^-111: t (1 + t/2 + ...).
    const mask_of<R> tiny = n.right & (n.e.k < -110);
    const decided_lanes<R> on_right =
        round_scaled(grown(scaled(n.e.m * n.half_tail, 7), math<R>::all(0x1p-100)), n.e.k - 7.0);
    const decided_lanes<R> between = round_ball(log);
    const R value = n.left ? -on_left.value : tiny ? -on_right.value : between.value;
    return {value, n.left ? on_left.decided : tiny ? on_right.decided : between.decided};
  }
  template <class Ball>
  REPDL_HD static beside<limbs_of_ball<Ball>> formula(double x) {
    return log_normal_distribution<limbs_of_ball<Ball>>(x);
  }
  static constexpr double near_error = 0x1p-44;
  REPDL_HD static double near(double x) {
    using log = log_core<base_e>;
    using c = erfc_core;
    const double a = magnitude_of(x);
    const double z = within(a * dd_inverse_root_2.hi, 0, 10.125);
    const double scaled_tail =
        horner((z - 4.0) / (z + 4.0), c::g0, c::g1, c::g2, c::g3, c::g4, c::g5, c::g6, c::g7, c::g8, c::g9, c::g10,
               c::g11, c::g12, c::g13, c::g14, c::g15, c::g16, c::g17, c::g18, c::g19, c::g20);
    const double r = 1 / a;
    const double far = dd_inverse_root_2_pi.hi * r * (1 - tail_series(r * r));
    const double t = 0.5 * (exp_core::eval(-(z * z)) * scaled_tail);
    const bool left = x < 0;
    log::reduced reduced = log::reduce(left ? (z < 10.125 ? 0.5 * scaled_tail : far) : 1 - t);
    reduced.f = !left && t < 0.125 ? -t : reduced.f;
    const double y = log::sum(reduced).hi;
    return left ? y - 0.5 * (x * x) : y;
  }
};
// Narrower formats' last tier: between neighbours part + log lies beside a midpoint m, and is less or greater as (part - m) + log is, of which part and m are
// numbers of at most 48 bits. Within 2^-67: of 2^32 operands all are decided. From x = 15 on results round to -0.
template <>
struct body<ops::log_ndtr> : by_binary64<log_ndtr64> {
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, int) {
    return decide_by_midpoint<T, log_ndtr64>(widen(x), [](double v, double m) {
      using Ball = dd_ball<double>;
      const log_normal_terms<double> n(v);
      const double part = n.left ? -0.5 * (v * v) : 0.0;
      return sign_of((number<Ball>(part) - number<Ball>(m)) + n.log);
    });
  }
};
template <>
struct body64<ops::log_ndtr> : by_formula<log_ndtr64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
