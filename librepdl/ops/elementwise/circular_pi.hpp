// sin(pi x), cos(pi x), tan(pi x), and sinc x = sin(pi x) / (pi x).
//
// Binary64. x = 4 a + q/2 + f, a and q whole, |f| <= 1/4, exactly: f pi in double-double or in a multi-limb ball, then sin and cos of that and q quarter turns. Of
// |x| < 2^-60 sin(pi x) and tan(pi x) are pi x (1 + ...), within 2^-115.
//
// At rationals x the values are algebraic, and rational ones are 0, +-1/2 and +-1 (Niven), for tan 0 and +-1: at multiples of 1/2, and of tan of 1/4, which are
// not plain, or numbers of binary64 (1/6 and its multiples are none). An algebraic number that is not rational is no midpoint; sinc x is not rational, since pi is
// transcendental. Of |x| < 2^-29 cos(pi x) > 1 - 5 x^2, of |x| < 2^-28 sinc x > 1 - 2 x^2: both round to 1.
//
// Narrower formats: x = k + g, exactly where x is one of their numbers and for cos |x| >= 2^-29, k whole, or for cos half an odd number, |g| <= 1/2; then +- sin(pi g) by the
// polynomial of circular.hpp, within 2^-41.4 of itself; pi g is off by 1.5 u, which counts at most once. In tan cos of smaller |x| is off by 2^-53. Quotients: less
// than 2^-40.3.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/circular.hpp"

namespace repdl::ops {
struct sinpi;
struct cospi;
struct tanpi;
struct sinc;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <class R>
struct half_turns {
  R f;                                       // |f| <= 1/4
  decltype(math<R>::to_bits(R{})) quadrant;  // q, in its last two bits
  REPDL_HD mask_of<R> is_odd() const { return bit(52) != 0; }
  REPDL_HD mask_of<R> is_upper() const { return bit(51) != 0; }  // q mod 4 is 2 or 3

 private:
  // The least bit, or the one above, in the exponent's place.
  REPDL_HD R bit(int shift) const { return math<R>::from_bits((quadrant << shift) & (std::uint64_t{1} << 52)); }
};
// The quarter of a number below 2^53 is below 2^51; larger numbers are even.
template <class R>
REPDL_HD half_turns<R> half_turns_of(R x) {
  const R y = magnitude_of(x) < 0x1p53 ? x : math<R>::all(0);
  const R within = y - 4 * nearest(0.25 * y);
  const R shifted = 2 * within + 0x1.8p52;
  return {within - 0.5 * (shifted - 0x1.8p52), math<R>::to_bits(shifted)};
}

// sin(pi x) or cos(pi x), |x| in [2^-400, 2^51].
template <class Ball, class R>
REPDL_HD Ball circular_pi_of(R x, bool sine) {
  if constexpr (is_multi_limb<Ball>) {
    const half_turns<double> a = half_turns_of(x);
    const Ball angle = scaled(quarter_pi_ball<limbs_of_ball<Ball>>(), 2) * number<Ball>(a.f);
    return circular_of_rest(angle, a.quadrant, sine);
  } else {
    const half_turns<R> a = half_turns_of(x);
    const Ball angle = number<Ball>(a.f) * scaled(half_pi<Ball>(), 1);
    return circular(reduced_angle<R>{value_of(angle), angle.error, a.quadrant}, sine);
  }
}

// The same in binary64, of numbers of the narrower formats, of which those from 2^24 on are even. A zero of sin has the sign of x, of cos it is +0.
template <bool Sine>
REPDL_HD double near_circular_pi(double x) {
  using circular = circular_core<Sine ? 0 : 1>;
  const double y = magnitude_of(x) < 0x1p24 ? x : 0;
  const double t = (Sine ? y : y + 0.5) + circular::shifter;
  const double k = Sine ? t - circular::shifter : (t - circular::shifter) - 0.5;
  const double r = circular::with_parity(circular::sine((y - k) * (2 * dd_half_pi.hi)), t);
  return Sine ? (r == 0 ? copy_sign(r, x) : r) : r + 0.0;
}

template <bool Sine>
struct circular_pi64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (half_turns_of(x).f != 0) & (magnitude_of(x) < infinity) & (magnitude_of(x) >= (Sine ? 0 : 0x1p-29));
  }
  // Of a multiple of 1/2, or for cos of a small x, too.
  template <class R>
  REPDL_HD static R special(R x) {
    const half_turns<R> a = half_turns_of(x);
    const R one = a.is_upper() ? math<R>::all(-1) : math<R>::all(1);
    const R zero = Sine ? copy_sign(math<R>::all(0), x) : math<R>::all(0);
    const R value = a.is_odd() ? (Sine ? one : zero) : (Sine ? zero : one);
    return magnitude_of(x) < infinity ? value : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> small = magnitude_of(x) < 0x1p-60;
    const decided_lanes<R> r = round_ball(circular_pi_of<Ball>(small ? math<R>::all(0.25) : x, Sine));
    if constexpr (!Sine) return r;
    const Ball pi = grown(scaled(half_pi<Ball>(), 1), math<R>::all(0x1p-103));
    const decided_lanes<R> tiny = round_product(x, pi, math<R>::all(0));
    return {small ? tiny.value : r.value, small ? tiny.decided : r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return circular_pi_of<Ball>(x, Sine);
  }
  static constexpr double near_error = 0x1p-41;
  REPDL_HD static double near(double x) {
    return magnitude_of(x) < infinity ? near_circular_pi<Sine>(x) : nan_of<double>();
  }
};
template <>
struct body<ops::sinpi> : by_binary64<circular_pi64<true>> {};
template <>
struct body64<ops::sinpi> : by_formula<circular_pi64<true>> {};
template <>
struct body<ops::cospi> : by_binary64<circular_pi64<false>> {};
template <>
struct body64<ops::cospi> : by_formula<circular_pi64<false>> {};

struct tanpi64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (half_turns_of(x).f != 0) & (magnitude_of(x) < infinity);
  }
  // The quotient of sin(pi x) and cos(pi x), x >= 0: of a multiple of 1/2 a zero or infinity, less than 0 where one of them is.
  template <class R>
  REPDL_HD static R special(R x) {
    const half_turns<R> a = half_turns_of(magnitude_of(x));
    const R size = a.is_odd() ? math<R>::all(infinity) : math<R>::all(0);
    const R r = a.is_upper() ? -size : size;
    return magnitude_of(x) < infinity ? r * copy_sign(math<R>::all(1), x) : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const mask_of<R> small = magnitude_of(x) < 0x1p-60;
    const R y = small ? math<R>::all(0.25) : x;
    const decided_lanes<R> r = round_ball(circular_pi_of<Ball>(y, true) / circular_pi_of<Ball>(y, false));
    const Ball pi = grown(scaled(half_pi<Ball>(), 1), math<R>::all(0x1p-103));
    const decided_lanes<R> tiny = round_product(x, pi, math<R>::all(0));
    return {small ? tiny.value : r.value, small ? tiny.decided : r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return circular_pi_of<Ball>(x, true) / circular_pi_of<Ball>(x, false);
  }
  static constexpr double near_error = 0x1p-40;
  REPDL_HD static double near(double x) {
    const double r = near_circular_pi<true>(x) / near_circular_pi<false>(x);
    return magnitude_of(x) < infinity ? r : nan_of<double>();
  }
};
template <>
struct body<ops::tanpi> : by_binary64<tanpi64> {};
template <>
struct body64<ops::tanpi> : by_formula<tanpi64> {};

struct sinc64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    const mask_of<R> whole = half_turns_of(0.5 * x).f == 0;
    return (whole == 0) & (magnitude_of(x) < infinity) & (magnitude_of(x) >= 0x1p-28);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R r = magnitude_of(x) < 0x1p-28 ? math<R>::all(1) : math<R>::all(0);
    return magnitude_of(x) < infinity ? r : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x) {
    return circular_pi_of<Ball>(x, true) / (number<Ball>(x) * scaled(half_pi<Ball>(), 1));
  }
  static constexpr double near_error = 0x1p-41;
  REPDL_HD static double near(double x) {
    const double r = near_circular_pi<true>(x) / (x * (2 * dd_half_pi.hi));
    const double end = x == 0 ? 1.0 : nan_of<double>();
    return (x != 0) & (magnitude_of(x) < infinity) ? r : end;
  }
};
template <>
struct body<ops::sinc> : by_binary64<sinc64> {};
template <>
struct body64<ops::sinc> : by_formula<sinc64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
