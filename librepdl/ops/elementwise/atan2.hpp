// atan2(y, x), the angle of the point (x, y), for f16, bf16, binary32: binary64 with a rounding test; multi-limb balls
// decide what it leaves undecided.
//
// n <= d are |x| and |y|, finite and not 0. arctan(n/d) = arctan z for n <= 0.4142 d, z = n/d; else pi/4 + arctan z,
// z = (n - d)/(n + d), sum and difference exact (25 and 26 bits); |z| <= 0.4144. The angle is m pi/4 +- arctan z, m = 0 to
// 4. Errors, u = 2^-53:
//   z                                                                                u of |arctan z|
//   z + z^3 p(z^2): p from reference/gen/atan2.sollya to 2^-55.5, times z^2 < 0.1718; its steps, z^2
//     and z^3 p: 6 u of 0.06; the sum                                                            < 1.5 u of |arctan z|
//   m pi/4 < 1.4 u, at most twice the angle; the sum u; |arctan z| is at most the angle; the ends 2 u
//   sum                                                                              < 8.3 u < 2^-49
//
// Last tier. With a, 2^64 times about the angle of (x, |y|) in turns, a from the first tier: rotated by it, the point has
// the angle arctan t, t = (|y| cos - x sin) / (x cos + |y| sin), |t| < 2^-45: a short series. arctan of an algebraic
// number != 0 is transcendental, and so is the angle: e^(i angle) is algebraic. No midpoint, but for x > 0 it may be next
// to one, y/x, on the side of 0.
//
// Zeros and infinities: C23 Annex F, multiples of pi/4 rounded.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct atan2;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// arctan t, |t| < 2^-32: t (1 - w/3 + w^2/5 - ...), w = t^2 < 2^-64, alternating: what is left out is less than
// t w^(L + 1).
template <int L>
REPDL_HD_CALL ball<L> small_arctan(const ball<L>& t) {
  if (!upper(t).below_power(-32)) return {t.middle, unknown()};
  const ball<L> w = t * t;
  ball<L> sum = number<L>(1) / number<L>(2 * L + 1);
  REPDL_LIMB_LOOP(7)
  for (int k = L - 1; k >= 0; --k) sum = number<L>(1) / number<L>(2 * k + 1) - w * sum;
  return grown(t * sum, multiply(upper(t), power_magnitude(-64 * (L + 1))));
}

// The angle of (width, height), from `turn`, about it in units of 2^-64 turns: the point is rotated back by that.
template <int L>
REPDL_HD_CALL ball<L> angle_of_point(std::uint64_t turn, const ball<L>& height, const ball<L>& width) {
  const ball<L> sine = circular<L>(turn, true).value;
  const ball<L> cosine = circular<L>(turn, false).value;
  const ball<L> rest = small_arctan((height * cosine - width * sine) / (width * cosine + height * sine));
  return quarter_pi_ball<L>() * scaled(exact_ball(limbs_of<L>(turn)), -61) + rest;
}

struct atan2_formula {
  double y, x;
  std::uint64_t turn;  // of (x, |y|), in units of 2^-64
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> width = number<L>(x);
    const ball<L> angle = angle_of_point(turn, number<L>(magnitude_of(y)), width);
    return {y < 0 ? negated(angle) : angle, x > 0 ? number<L>(y) / width : number<L>(0), (y < 0) == (x > 0) ? 1 : -1};
  }
};

template <>
struct body<ops::atan2> {
  // reference/gen/atan2.sollya
  static constexpr double c1 = -0x1.5555555555555p-2, c2 = 0x1.9999999999804p-3, c3 = -0x1.24924924806aep-3,
                          c4 = 0x1.c71c71bb6946p-4, c5 = -0x1.745d151fb545ep-4, c6 = 0x1.3b13729ed42e7p-4,
                          c7 = -0x1.110c6525f3edbp-4, c8 = 0x1.e1694b5ef0725p-5, c9 = -0x1.ab012814bdb98p-5,
                          c10 = 0x1.6d3f1c02ae372p-5, c11 = -0x1.0204f0ae1ade1p-5, c12 = 0x1.554c393d7b834p-7,
                          c13 = 0x1.42a46734ba596p-8;
  static constexpr double quarter = 0x1.921fb54442d18p-1;  // RN(pi / 4)

  template <class T>
  REPDL_HD static decided_value<T> eval(T y, T x) {
    const double a = widen(y);
    const double b = widen(x);
    const bool plain = is_plain(a, b);
    const double v = plain ? angle(magnitude_of(a), b) : special(a, b);
    return certify_as<T>(with_sign(v, a), plain ? 0x1p-49 * v : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T y, T x, int last_tier_bits) {
    const double a = widen(y);
    const double b = widen(x);
    if (!is_plain(a, b)) return eval(y, x);
    const double turn = angle(magnitude_of(a), b) * (0x1p61 / quarter);  // [0, 2^63]
    return decide<T>(atan2_formula{a, b, static_cast<std::uint64_t>(turn)}, last_tier_bits);
  }

  // The angle of (x, y), y > 0.
  REPDL_HD static double angle(double y, double x) {
    const double width = magnitude_of(x);
    const bool steep = y > width;
    const double n = steep ? width : y;
    const double d = steep ? y : width;
    const bool middle = n > 0x1.a8p-2 * d;  // 0.4141
    const double z = (middle ? n - d : n) / (middle ? n + d : d);
    const double w = z * z;
    double p = muladd(c13, w, c12);
    p = muladd(p, w, c11);
    p = muladd(p, w, c10);
    p = muladd(p, w, c9);
    p = muladd(p, w, c8);
    p = muladd(p, w, c7);
    p = muladd(p, w, c6);
    p = muladd(p, w, c5);
    p = muladd(p, w, c4);
    p = muladd(p, w, c3);
    p = muladd(p, w, c2);
    p = muladd(p, w, c1);
    const double t = muladd(p * w, z, z);
    const double m = middle ? 1.0 : 0.0;
    const double turned = steep ? 2.0 - m : m;
    const double eighths = x < 0 ? 4.0 - turned : turned;
    return eighths * quarter + (steep != (x < 0) ? -t : t);
  }

 private:
  // Both finite and not 0.
  REPDL_HD static bool is_plain(double y, double x) { return is_regular(y) & is_regular(x) & (y != 0) & (x != 0); }
  // The angle of (x, |y|).
  REPDL_HD static double special(double y, double x) {
    const bool left = (bits_of(x) >> 63) != 0;
    const bool flat = (y == 0) | ((magnitude_of(x) == infinity) & (magnitude_of(y) < infinity));
    const bool corner = (magnitude_of(x) == infinity) & (magnitude_of(y) == infinity);
    const double along = left ? 4.0 : 0.0;
    const double diagonal = left ? 3.0 : 1.0;
    const double eighths = flat ? along : corner ? diagonal : 2.0;
    return (x != x) | (y != y) ? double_of(format<double>::nan) : eighths * quarter;
  }
};

// Binary64. A multiple of pi/2, and t or -t, t = arctan(n/d). For t both are multiplied by a power of 2 that takes d to [1, 2), or subnormal d as far
// as one can; of d >= 2^1023, where it would be subnormal, it is 0, and nothing is known. Beside a multiple that is not 0, t is only bounded where
// it is less than 2^-109. No midpoints, and next to y/x, as above. The last tier has its turn from t within 2^-50.
struct atan2_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R y, R x) {
    return (y != 0) & (magnitude_of(y) < infinity) & (x != 0) & (magnitude_of(x) < infinity);
  }
  // Multiples of pi/4, rounded: 3 RN(pi/4) has 52 bits and is RN(3 pi/4), too.
  template <class R>
  REPDL_HD static R special(R y, R x) {
    const R a = magnitude_of(y), b = magnitude_of(x);
    const mask_of<R> left = has_sign(x);
    const mask_of<R> flat = (y == 0) | ((b == infinity) & (a < infinity));
    const mask_of<R> corner = (a == infinity) & (b == infinity);
    const R along = left ? math<R>::all(4) : math<R>::all(0);
    const R diagonal = left ? math<R>::all(3) : math<R>::all(1);
    const R steep = corner ? diagonal : math<R>::all(2);
    const R eighths = flat ? along : steep;
    return (x == x) & (y == y) ? copy_sign(eighths * body<ops::atan2>::quarter, y) : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R y, R x) {
    const R a = magnitude_of(y), b = magnitude_of(x);
    const mask_of<R> steep = a > b;
    const R n = steep ? b : a, d = steep ? a : b;
    const R scale = math<R>::from_bits((2046 - (math<R>::to_bits(d) >> 52)) << 52);
    if constexpr (uses_tables) {
      // Within 2^-71 of itself, and 2^-105 for pi/2's parts; a tiny t, which may have underflowed, is nothing beside pi/2.
      const R m = n * scale, one = d * scale;
      const double_word<R> t = arctangent_by_table(m, one);
      const mask_of<R> flipped = steep != (x < 0);
      const R far = x < 0 ? math<R>::all(2) : math<R>::all(0);
      const R quarters = steep ? math<R>::all(1) : far;
      const double_word<R> s = fast_two_sum(quarters * dd_half_pi.hi, flipped ? -t.hi : t.hi);
      const R low = math<R>::muladd(quarters, math<R>::all(dd_half_pi.lo), flipped ? -t.lo : t.lo);
      const decided_lanes<R> r = round_within(double_word<R>{s.hi, s.lo + low}, math<R>::all(0x1p-70));
      return {copy_sign(r.value, y), static_cast<mask_of<R>>(r.decided & (one >= 1) & (m + quarters >= 0x1p-400))};
    } else {
      using Ball = dd_ball<R>;
      const mask_of<R> beside = (n < 0x1p-110 * d) & (steep | (x < 0));
      const R none = math<R>::all(0);
      const Ball t = select(beside, Ball{none, none, math<R>::all(0x1p-109)}, arctangent(n * scale, d * scale));
      const decided_lanes<R> r = round_ball(turned(t, steep, x < 0));
      return {copy_sign(r.value, y), r.decided};
    }
  }
  template <class Ball>
  REPDL_HD static auto formula(double y, double x) {
    const double a = magnitude_of(y), b = magnitude_of(x);
    const double ratio = a > b ? b / a : a / b;
    const double angle = turned(arctangent(ratio, 1.0), a > b, x < 0).hi;
    const double turn = angle * (0x1p61 / body<ops::atan2>::quarter);  // [0, 2^63]
    return atan2_formula{y, x, static_cast<std::uint64_t>(turn)}.eval<limbs_of_ball<Ball>>();
  }

 private:
  // The angle of (x, |y|) from t.
  template <class R>
  REPDL_HD static dd_ball<R> turned(const dd_ball<R>& t, mask_of<R> steep, mask_of<R> left) {
    const R far = left ? math<R>::all(2) : math<R>::all(0);
    const R quarters = steep ? math<R>::all(1) : far;
    const dd_ball<R> unit = half_pi<dd_ball<R>>();
    const dd_ball<R> start{quarters * unit.hi, quarters * unit.lo, quarters * unit.error};
    return start + select(steep != left, negated(t), t);
  }
};
template <>
struct body64<ops::atan2> : by_formula<atan2_64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
