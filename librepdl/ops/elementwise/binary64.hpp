// Elementwise operations in binary64: a formula in balls (num/formula.hpp), which is written once. In double-doubles, with their bounds, it is
// the first tier, of registers on a CPU; in multi-limb balls it decides what the first tier leaves undecided.
//
// An operation's definition D has, of its operands x, and its options behind them where it has some:
//   plain(x...)           where the formula holds: a mask
//   special(x...)         the result elsewhere
//   formula<Ball>(x...)   the value, of plain operands: a ball, or, of multi-limb balls, a quotient, root or part with a rest (num/formula.hpp)
// and, if it needs to,
//   first<R>(x...)        a first tier of its own, instead of the formula's: decided_lanes<R>
//   known(x...)           of plain operands, what theorems say of exact results and midpoints: decided_value<double>, before multi-limb balls
// plain, special and first are templates of R, binary64 or a register of it: no branches, but ?: by masks, which are joined by & and |.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class D, class... X>
concept takes = requires(const X&... x) {
  D::plain(x...);
};
template <class D, class... X>
concept knows = requires(const X&... x) {
  D::known(x...);
};
template <class D, class R, class... X>
concept has_own_first_tier = requires(const R& x, const X&... more) {
  D::first(x, more...);
};

// The value of a formula, for all formats.
template <class Ball, class D, class... X>
REPDL_HD_SHARED auto ball_of(const X&... x) {
  return D::template formula<Ball>(x...);
}

template <class D>
struct by_formula {
  template <class R, class... X>
  requires takes<D, R, X...> REPDL_HD static decided_lanes<R> lanes(const R& x, const X&... more) {
    const auto plain = D::plain(x, more...);
    decided_lanes<R> r;
    if constexpr (has_own_first_tier<D, R, X...>) {
      r = D::first(x, more...);
    } else {
      r = round_ball(D::template formula<dd_ball<R>>(x, more...));
    }
    if constexpr (!on_device) {
      if (math<R>::every(plain)) return r;
    }
    return {plain ? r.value : D::special(x, more...), static_cast<mask_of<R>>(r.decided | (plain == 0))};
  }
  template <class... X>
  requires takes<D, double, X...> REPDL_HD static decided_value<double> eval(double x, const X&... more) {
    const decided_lanes<double> r = lanes(x, more...);
    return {r.value, r.decided};
  }
  // One end, where a GPU's lanes meet (docs/ptxas-barriers.md).
  template <class... X>
  requires takes<D, double, X...> REPDL_HD_CALL static decided_value<double> exact(int last_tier_bits, double x,
                                                                                   const X&... more) {
    const lanes_together lanes;
    decided_value<double> r{0, false};
    if (D::plain(x, more...)) {
      if constexpr (knows<D, double, X...>) r = D::known(x, more...);
      if (!r.decided) {
        r = decide_by_balls<double>([&]<class Ball>() { return ball_of<Ball, D>(x, more...); }, last_tier_bits);
      }
    } else {
      r = {D::special(x, more...), true};
    }
    lanes.meet();
    return r;
  }
};

// f16, bf16 and binary32 of a formula D of one operand or two, by binary64: D::near(x...), of their numbers and infinities, plain or not, is the value within D::near_error of itself,
// with room for two roundings more, u of itself each; infinities, NaN and zeros are the value's. A value that is a number of the format is decided: it alone
// is not on the border between two results.
template <class D>
struct by_binary64 {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x) {
    return round_near<T>(widen(x));
  }
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, T y) {
    return round_near<T>(widen(x), widen(y));
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, int last_tier_bits) {
    const lanes_together lanes;
    const decided_value<T> r = by_balls<T>(last_tier_bits, widen(x));
    lanes.meet();
    return r;
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, T y, int last_tier_bits) {
    const lanes_together lanes;
    const decided_value<T> r = by_balls<T>(last_tier_bits, widen(x), widen(y));
    lanes.meet();
    return r;
  }

 protected:
  template <class T, class... V>
  REPDL_HD static decided_value<T> round_near(V... v) {
    const bool numbers = (static_cast<int>(v == v) & ...) != 0;
    const double r = numbers ? D::near(v...) : double_of(format<double>::nan);
    return certify_between<T>(r * (1 - D::near_error), r * (1 + D::near_error));
  }
  // The caller has lanes_together.
  template <class T, class... V>
  REPDL_HD static decided_value<T> by_balls(int last_tier_bits, V... v) {
    decided_value<T> r{narrow<T>(0.0), false};
    if (D::plain(v...)) {
      r = decide_by_balls<T>([&]<class Ball>() { return ball_of<Ball, D>(v...); }, last_tier_bits);
    } else {
      r = {narrow<T>(D::special(v...)), true};
    }
    return r;
  }
};
// x, but at least low and at most high.
REPDL_HD double within(double x, double low, double high) {
  const double y = x < high ? x : high;
  return y > low ? y : low;
}

// The canonical NaN.
template <class R>
REPDL_HD R nan_of() {
  return math<R>::all(double_of(format<double>::nan));
}
template <class R>
REPDL_HD R copy_sign(R magnitude, R sign) {
  return math<R>::from_bits((math<R>::to_bits(magnitude) & 0x7fffffffffffffffull) |
                            (math<R>::to_bits(sign) & 0x8000000000000000ull));
}
template <class R>
REPDL_HD mask_of<R> has_sign(R x) {
  return copy_sign(math<R>::all(1), x) < 0;
}

template <class R>
REPDL_HD R canonical_of(R x) {
  return x == x ? x : nan_of<R>();
}
// Of registers; of binary64 there is one (certify.hpp).
template <class R>
REPDL_HD mask_of<R> is_finite(R x) {
  return x - x == 0;
}
template <class R>
REPDL_HD mask_of<R> is_finite_not_zero(R x) {
  return is_finite(x) & (x != 0);
}
// A factor for the signs, zeros, infinities and NaN of a product or quotient: a number other than 0 becomes 1 with its
// sign, and nothing over- or underflows.
template <class R>
REPDL_HD R as_factor(R x) {
  return is_finite_not_zero(x) ? copy_sign(math<R>::all(1), x) : x;
}
// x = m 2^k, |m| in [1, 2), for finite x != 0; of others meaningless.
template <class R>
struct significand {
  R m, k;
};
template <class R>
REPDL_HD significand<R> significand_of(R x) {
  const mask_of<R> subnormal = magnitude_of(x) < 0x1p-1022;
  const auto bits = math<R>::to_bits(subnormal ? x * 0x1p64 : x);
  const R biased = math<R>::from_bits(((bits >> 52) & 0x7ff) | 0x4330000000000000ull) - 0x1p52;
  const auto fraction = bits & 0x800fffffffffffffull;
  return {math<R>::from_bits(fraction | 0x3ff0000000000000ull),
          biased - (subnormal ? math<R>::all(1087) : math<R>::all(1023))};
}
// RN(g v 2^k), g finite and not 0, k whole, |k| <= 2000, subnormal results and overflow included. With g = m 2^j, m v =
// p = a 2^e for a in [1, 2): j + e + k beyond 1100 makes infinities, below -1100 zeros. Undecided where the ball may
// have 0 in it, for k = NaN, and for v outside 2^+-900.
template <class R>
REPDL_HD decided_lanes<R> round_product(R g, const dd_ball<R>& v, R k) {
  const significand<R> factor = significand_of(g);
  const dd_ball<R> p = v * number<dd_ball<R>>(factor.m);
  const R e = significand_of(p.hi).k;
  const R s = copy_sign(power_of(-e), p.hi);
  const dd_ball<R> a{p.hi * s, p.lo * s, p.error * magnitude_of(s)};
  const R sum = (k + factor.k) + e;
  const R cut = sum > 1100 ? math<R>::all(1100) : sum;
  const decided_lanes<R> r = round_scaled(a, cut < -1100 ? math<R>::all(-1100) : cut);
  const mask_of<R> known = (2 * a.error <= a.hi) & (a.hi >= 1) & (sum == sum);
  return {copy_sign(r.value, p.hi), static_cast<mask_of<R>>(r.decided & known)};
}
// w, a product or quotient of x, where |about| < 2^-110 says that w is small, below 2^-100: 0 with that bound, for the
// low part of w may underflow.
template <class R>
REPDL_HD dd_ball<R> beside_zero(const dd_ball<R>& w, R about) {
  const R none = math<R>::all(0);
  return select(magnitude_of(about) < 0x1p-110, dd_ball<R>{none, none, math<R>::all(0x1p-100)}, w);
}
// RN(g/2 + r) for an r that is not 0 but tiny, of this sign: it decides between the neighbours of g/2 where that is a
// midpoint, which rounding to half and g - half are.
template <class R>
REPDL_HD R half_beside(R g, mask_of<R> up) {
  const R half = 0.5 * g;
  const R other = g - half;
  return (half < other) == up ? other : half;
}
// g phi(w), w = w(x), where no rounding test is needed: NaN; g = 0 or infinite, a zero or infinity of the sign of
// phi(w); infinite x, g `limit`, and so for w far towards them, of which there is no more to see. |w| < 2^-60: g/2,
// where phi(w) is 1/2 + c w + ..., 0 < c <= 1.
template <class R>
REPDL_HD R special_gradient(R g, R x, R w, R limit, R sign) {
  const R next_to_half = half_beside(g, static_cast<mask_of<R>>(has_sign(g) == has_sign(w)));
  const R near = x == 0 ? 0.5 * g : next_to_half;
  const R regular = magnitude_of(w) < 1 ? near : g * limit;
  const R finite = (g - g == 0) & (g != 0) ? regular : g * sign;
  const R r = magnitude_of(x) < infinity ? finite : g * limit;
  return (r == r) & (x == x) ? r : nan_of<R>();
}
}  // namespace REPDL_ISA
}  // namespace repdl::num
