// sin x and cos x, binary16, bfloat16 and binary32, correctly rounded, of every argument up to 2^128.
//
// Method: x = k pi + r, |r| <= pi/2, k an integer for sin, half an odd one for cos: the result is (-1)^k sin r, and
// (-1)^(k + 1/2) sin r. Two ways, both branch-free:
//   quick     for |x| <= 2^19: Cody-Waite reduction, one polynomial; a rounding test leaves few elements undecided;
//   careful   for every x: the reduction of M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric
//             functions", SIGNUM Newsletter 18 (1983), and double-double arithmetic.
// f16 ends at 65504 and needs quick only.
//
// ---- quick
//
// k is an integer (and a half) next to x / pi, |k| < 2^17.4: the last bits of x / pi + 1.5 * 2^52. x - k pi_hi is exact:
// k pi_hi has 34 + 19 bits, and the difference is a multiple of 2^-33 (of x's ulp where k = 0) below 2.
// Error budget, relative to sin r:
//   k pi_lo (2^-15.5) and its constant, each 2^-53: 2^-67.5 / |r|; |r| >= 2^-24 but for a few x      2^-43.5
//   polynomial, certified by reference/gen/circular.sollya: 0x1.7p-44 z |r|, z |r| / sin |r| < 3.9  2^-41.5
//   z, Horner steps, products: 6 * 2^-53                                                           2^-50.4
//   sum                                                                                            < 2^-41.1
// The test: in the last 29 bits of the binary64 number 2^28 is the midpoint of two binary32 numbers. Numbers within 2^12 of
// it, 2^-41 or more of themselves, are undecided: one in 2^16. (Subnormal sines are x: r = x, and 1 + z S(z) = 1.)
//
// ---- careful
//
// x = 2^(e - 23) m, m an integer of 24 bits, where e >= 0; else e = 0, and m is small. The table has 2^(e - 23) / pi less an
// even integer = a + b + c. a and b have 29 bits: m a and m b are exact, so is m a - k (multiples of 2^-28 up to 2^24; for
// small m, of 2^-51 below 2). f = x / pi - k (mod 2) = (m a - k) + m b + m c. |m c| < 2^-34, its error and c's: below
// 2^-86. |f| >= 2^-32.
//   sin(pi f) = f (p1 + p3 w + p5 w^2 + p7 w^3 + w^4 C(w)), w = f^2 <= 1/4
// Error budget, relative to sin(pi f) >= 2 f:
//   f: 2^-86 / |f|; for |f| >= 2^-22, all but 2^12 inputs, 2^-64                                     2^-54
//   C's polynomial, certified: 2^-57.8 w^4 <= 2^-65.8, over 2                                      2^-66.8
//   C <= 0.083, its Horner steps and product by w: 4 * 2^-53 * 0.083 w^4 <= 2^-62.5, over 2        2^-63.5
//   the rest in double-double                                                                      2^-98
//   sum, |f| >= 2^-22                                                                              < 2^-62.7
// The sum hi + lo is rounded to odd; sin x and cos x are irrational except sin 0. For |x| < 2^-12 sin x = x (1 - x^2/6 +
// ...) rounds to x, which is put in.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary. So are all 2^16 inputs of the
// narrow formats: quick's binary64 numbers are nowhere too near to their midpoints, which needs no test.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/circular_table.hpp"

namespace repdl::ops {
struct sin;
struct cos;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// quarter: 0 for sin, 1 for cos = sin(x + pi/2).
template <int quarter>
struct circular_core {
  // reference/gen/circular.sollya
  static constexpr double reciprocal_pi = 0x1.45f306dc9c883p-2;
  static constexpr double pi_hi = 0x1.921fb544p1, pi_lo = 0x1.0b4611a626331p-33;
  static constexpr double s3 = -0x1.55555555549d9p-3, s5 = 0x1.1111110fc15cp-7, s7 = -0x1.a01a00129ad79p-13,
                          s9 = 0x1.71dd8e21b101ap-19, s11 = -0x1.ae20d3603df6p-26, s13 = 0x1.54e88aad2b85ap-33;
  static constexpr dd p1 = {0x1.921fb54442d18p1, 0x1.1a62633145c07p-53},
                      p3 = {-0x1.4abbce625be53p2, 0x1.05511c68476a8p-52},
                      p5 = {0x1.466bc6775aae2p1, -0x1.6dc0cbddb0fc3p-54},
                      p7 = {-0x1.32d2cce62bd86p-1, 0x1.066847a026e69p-55};
  static constexpr double c9 = 0x1.50783487ee782p-4, c11 = -0x1.e3074fde888f7p-8, c13 = 0x1.e8f434d04f697p-12,
                          c15 = -0x1.6fadba1a7d7bp-16, c17 = 0x1.aaec4d2b1c0dap-21, c19 = -0x1.8a4496a811555p-26,
                          c21 = 0x1.263b33ecdff69p-31;
  static constexpr double shifter = 0x1.8p52;  // ulp 1, room for either sign
  static constexpr float quick_limit = 0x1p19f;

  // The integer next to t / ulp(shifter) in t's last bit decides the sign.
  REPDL_HD static double with_parity(double value, double t) { return double_of(bits_of(value) ^ (bits_of(t) << 63)); }

  [[gnu::always_inline]] REPDL_HD static double quick(double x) {
    double t, k;
    if constexpr (quarter == 0) {
      t = muladd(x, reciprocal_pi, shifter);
      k = t - shifter;
    } else {
      t = muladd(x, reciprocal_pi, 0.5) + shifter;
      k = (t - shifter) - 0.5;
    }
    return with_parity(sine(muladd(k, -pi_lo, muladd(k, -pi_hi, x))), t);
  }
  // sin r, |r| <= pi/2 + 2^-30.
  [[gnu::always_inline]] REPDL_HD static double sine(double r) {
    const double z = r * r;
    double p = muladd(s13, z, s11);
    p = muladd(p, z, s9);
    p = muladd(p, z, s7);
    p = muladd(p, z, s5);
    p = muladd(p, z, s3);
    return r * muladd(p, z, 1.0);  // a product, which keeps the sign of r = -0
  }

  // c + w y. |c| >= |w y|.
  [[gnu::always_inline]] REPDL_HD static dd step(dd c, dd w, dd y) {
    const dd product = two_prod(w.hi, y.hi);
    const dd sum = fast_two_sum(c.hi, product.hi);
    return {sum.hi, sum.lo + (c.lo + (product.lo + muladd(w.hi, y.lo, w.lo * y.hi)))};
  }

  // Rounded to odd; for a NaN or an infinity a NaN.
  [[gnu::always_inline]] REPDL_HD static double careful(float x) {
    const double wide = static_cast<double>(x);
    const auto exponent = static_cast<std::int64_t>((bits_of(wide) >> 52) & 0x7ff) - 1023;
    const std::int64_t above = exponent > 0 ? exponent : 0;
    const std::int64_t e = above < 127 ? above : 127;  // 64 bits: g++ 12 gathers doubles by nothing less
    const double scaled = wide * double_of(static_cast<std::uint64_t>(1046 - e) << 52);
    const circular_columns& table = circular_table();
    const double y = scaled * table.a[e];
    const double t = (quarter == 0 ? y : y + 0.5) + shifter;
    const double k = quarter == 0 ? t - shifter : (t - shifter) - 0.5;
    const dd sum = two_sum(y - k, scaled * table.b[e]);
    const dd f = fast_two_sum(sum.hi, muladd(scaled, table.c[e], sum.lo));
    const dd square = two_prod(f.hi, f.hi);
    const dd w = {square.hi, muladd(2.0 * f.hi, f.lo, square.lo)};
    double p = muladd(c21, w.hi, c19);
    p = muladd(p, w.hi, c17);
    p = muladd(p, w.hi, c15);
    p = muladd(p, w.hi, c13);
    p = muladd(p, w.hi, c11);
    p = muladd(p, w.hi, c9);
    const dd factor = step(p1, w, step(p3, w, step(p5, w, step(p7, w, {p, 0.0}))));
    const dd product = two_prod(f.hi, factor.hi);
    const dd s = fast_two_sum(product.hi, product.lo + muladd(f.hi, factor.lo, f.lo * factor.hi));
    const double rounded = with_parity(round_to_odd(s.hi, s.lo, 1), t);
    const bool is_near = quarter == 0 && double_of(bits_of(wide) & 0x7fffffffffffffff) < 0x1p-12;
    return is_near ? wide : rounded;
  }
};

template <int quarter>
struct circular_body {
  // Open elements are few, or |x| > 2^19, or x is NaN.
  template <class T>
  requires(!is_format<T, f16>) REPDL_HD static tentative<T> quick(T x) {
    const float v = widen_to_float(x);
    const auto magnitude = static_cast<std::int32_t>(bits_of(v) & 0x7fffffff);
    const bool in_domain = magnitude <= static_cast<std::int32_t>(bits_of(circular_core<quarter>::quick_limit));
    const double s = circular_core<quarter>::quick(static_cast<double>(v));
    if constexpr (std::is_same_v<T, float>) {
      constexpr std::int32_t last = 0x1fffffff, midpoint = 0x10000000, distance = 0x1000;
      const auto beside =
          static_cast<std::int32_t>((static_cast<std::uint32_t>(bits_of(s)) - (midpoint - distance)) & last);
      const bool decided = in_domain & (beside > 2 * distance);
      return {static_cast<float>(s), decided};
    } else {
      return {round_no_midpoint<T>(s), in_domain};
    }
  }

  template <class T>
  [[gnu::always_inline]] REPDL_HD static T careful(T x) {
    return narrow<T>(circular_core<quarter>::careful(widen_to_float(x)));
  }

  template <class T>
  requires is_format<T, f16> REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    return round_no_midpoint<T>(
        circular_core<quarter>::quick(static_cast<double>(v - v == 0 ? v : float_of(format<float>::nan))));
  }
};

template <>
struct body<ops::sin> : circular_body<0> {};
template <>
struct body<ops::cos> : circular_body<1> {};

// Binary64. sin x and cos x are transcendental for x != 0: no midpoints. Of |x| < 2^-27 the next terms, less than 2^-54.5 of x or of 1 ulp of
// what is below 1, are less than half of the distance to a neighbour: x, and 1. Beyond 2^24 multi-limb balls decide.
template <bool Sine>
struct circular64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-27) & (magnitude_of(x) < infinity);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R small = Sine ? x : math<R>::all(1);
    return magnitude_of(x) < infinity ? small : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x) {
    return circular_of<Ball>(x, Sine);
  }
};
template <>
struct body64<ops::sin> : by_formula<circular64<true>> {};
template <>
struct body64<ops::cos> : by_formula<circular64<false>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
