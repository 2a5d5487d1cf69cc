// The gradients of logaddexp and logaddexp2 by their first operand: logaddexp_backward(g, x, y) = g / (1 + e^(y - x)),
// logaddexp2_backward(g, x, y) = g / (1 + 2^(y - x)), for f16, bf16, binary32: binary64 with a rounding test;
// multi-limb balls decide what it leaves undecided. d = y - x is hi + lo in binary64, exactly. Where g is 0 or not finite,
// or d is not finite, the formula in binary64 is right with any number in place of the exponential of a finite d. Else:
//
// |hi| is cut down to 210 for e, to 300 for 2. Below, the result is g: g - |g| 2^-300 rounds so. Above, |g| e^-d <
// 2^-174 rounds to a zero, as what is computed does.
//
// Fast tier. Errors, relative, u = 2^-53:
//   e^d: 11.3 u (exp.hpp); the sum, the quotient, the ends 1 u each                    14.3 u < 2^-49
//   2^d: 20.5 u (exp2.hpp), the factor 1 + lo ln 2, |lo| <= 2^-45, 1 u; the others     24.5 u < 2^-48
// d = 0: g / 2 is exact. An integer d, base 2: the quotient g / (1 + 2^d) is rounded to odd (eft.hpp): for |d| <= 52
// its denominator is a binary64 number; beyond, it is a power of two and a little, and the quotient is a number of 24
// bits less a little.
//
// Last tier. For other d e^d is transcendental (Hermite-Lindemann) and 2^d irrational, so the result is no midpoint. It
// is next to D = g / 2 for d next to 0, a midpoint where g is an odd multiple of the least number; the rest has the
// sign of -g d (formula.hpp). For base 2 it may be next to g / (1 + 2^n), n an integer not 0, too, but that is no
// midpoint: that would be k / 2^s with an odd k of at most p + 1 bits, and g = k (1 + 2^n) / 2^s has more than p bits,
// or, where the midpoint is below the normal numbers, half of the least number as its last bit, or less.
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/exp2.hpp"
#include "librepdl/ops/elementwise/pow.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct logaddexp_backward;
struct logaddexp2_backward;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// base: 2, or 0 for e.
template <int base>
struct share_formula {
  double g, x, y;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    ball<L> d = number<L>(y) - number<L>(x);
    if constexpr (base == 2) d = d * ln2_ball<L>();
    const ball<L> all = number<L>(g);
    return {all / (number<L>(1) + exponential(d)), scaled(all, -1), (g < 0) == (y < x) ? -1 : 1};
  }
};

template <int base>
struct share_body {
  static constexpr double cut = base == 2 ? 300 : 210;
  static constexpr double ln2 = 0x1.62e42fefa39efp-1;  // reference/gen/backward.sollya

  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T g, T x, T y) {
    const double a = widen(g);
    const dd d = two_sum(widen(y), -widen(x));
    const std::uint64_t beyond = pow_beyond(d.hi, cut);
    const double hi = pow_limited(d.hi, cut, beyond);
    const double lo = double_of(bits_of(d.lo) & ~beyond);
    const bool rational = is_rational(hi, lo);
    const double power = exponential(hi, lo);
    const double sum = 1.0 + power;
    double quotient = a / sum;
    if constexpr (base == 2) {
      const dd p = two_prod(quotient, sum);
      const double rest = (a - p.hi) - p.lo;
      const double tail = magnitude_of(hi) > 52 ? -a : rest;
      const double odd = round_to_odd(quotient, tail);
      quotient = rational ? odd : quotient;
    }
    const bool plain = is_plain(a, d.hi);
    const double error = (base == 2 ? 0x1p-48 : 0x1p-49) * magnitude_of(rational ? 0.0 : quotient);
    return certify_as<T>(plain ? quotient : special(a, d.hi), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T g, T x, T y, int last_tier_bits) {
    const double a = widen(g);
    const dd d = two_sum(widen(y), -widen(x));
    if (!is_plain(a, d.hi) || magnitude_of(d.hi) > cut || is_rational(d.hi, d.lo)) return eval(g, x, y);
    return decide<T>(share_formula<base>{a, widen(x), widen(y)}, last_tier_bits);
  }

 private:
  REPDL_HD static bool is_plain(double g, double d) { return is_regular(g) & (g != 0) & is_regular(d); }
  REPDL_HD static double special(double g, double d) {
    return g / (1.0 + (d == infinity ? d : d == -infinity ? 0.0 : is_regular(d) ? 1.0 : d));
  }
  // Of e^d or 2^d, |hi| <= 300.
  REPDL_HD static bool is_rational(double hi, double lo) {
    constexpr double shifter = 0x1.8p52;
    return base == 2 ? (lo == 0) & (hi == (hi + shifter) - shifter) : hi == 0;
  }
  REPDL_HD static double exponential(double hi, double lo) {
    if constexpr (base == 2) {
      const double power = exp2_core::eval(hi);
      return power + power * (lo * ln2);
    } else {
      return exp_by_square(hi, lo);
    }
  }
};
template <>
struct body<ops::logaddexp_backward> : share_body<0> {};
template <>
struct body<ops::logaddexp2_backward> : share_body<2> {};

// Binary64. g / (1 + e) or g e / (1 + e), e = b^-|d|. Below d = -40 (base 2: -56) the result is g (1 - 2^-56) or more, and rounds to g: half of
// the distance to its neighbour is at least 2^-54 of it. Above 1455 (2099) it is less than 2^1024 b^-d < 2^-1075. d = 0: half of g.
//
// Last tier: as above, and in base 2 of a whole d >= 60 the result is next to D = g 2^-d, which may be a midpoint of subnormal numbers; the rest has
// the sign of -g. Where d is not whole, 2^-d is 2^-1075 of itself or more from such a power, and 2048 bits tell.
template <int base>
struct share64 {
  static constexpr double least = base == 2 ? -56 : -40, most = base == 2 ? 2099 : 1455;

  template <class R>
  REPDL_HD static mask_of<R> plain(R g, R x, R y) {
    const R d = y - x;
    return (g != 0) & (magnitude_of(g) < infinity) & (d >= least) & (d <= most) & (d != 0);
  }
  // Of operands that are not finite the formula; finite ones may have a difference that is not.
  template <class R>
  REPDL_HD static R special(R g, R x, R y) {
    const R d = y - x;
    const mask_of<R> last = (d > most) & ((magnitude_of(x) == infinity) | (magnitude_of(y) == infinity));
    const R beyond = d > most ? copy_sign(math<R>::all(0), g) : g;
    const R limit = d == 0 ? 0.5 * g : beyond;
    const R of_infinity = last ? nan_of<R>() : g;
    const R r = magnitude_of(g) == infinity ? of_infinity : limit;
    return (g == g) & (d == d) ? r : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static auto formula(R g, R x, R y) {
    if constexpr (is_multi_limb<Ball>) {
      constexpr int L = limbs_of_ball<Ball>;
      beside<L> r = share_formula<base>{g, x, y}.template eval<L>();
      const dd d = two_sum(y, -x);
      if (base == 2 && d.hi >= 60 && d.lo == 0 && nearest(d.hi) == d.hi) {
        r.part = scaled(number<Ball>(g), -static_cast<std::int64_t>(d.hi));
        r.rest = g < 0 ? 1 : -1;
      }
      return r;
    } else {
      Ball d = number<Ball>(y) - number<Ball>(x);
      if constexpr (base == 2) d = d * ln2<Ball>();
      const mask_of<R> positive = d.hi > 0;
      const Ball one = number<Ball>(1);
      const Ball e = exponential(select(positive, negated(d), d));
      return number<Ball>(g) * select(positive, e, one) / (one + e);
    }
  }
};
template <>
struct body64<ops::logaddexp_backward> : by_formula<share64<0>> {};
template <>
struct body64<ops::logaddexp2_backward> : by_formula<share64<2>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
