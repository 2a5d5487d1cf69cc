// Normally distributed numbers: mean + stddev sqrt(-2 ln u1) cos|sin(2 pi u2), rounded once to f16, bf16, f32 or f64
// (contract, section 6). The two tiers before multi-limb numbers (normal_exact.hpp): binary64 and double-double.
//
// Method: G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates", Ann. Math. Statist. 29
// (1958), with Ziv's rounding test. u1 and u2 are integers over a power of two, so every range reduction is exact.
// Domain: u1 = a1 2^-b, 1 <= a1 <= 2^b, u2 = a2 2^-b, 0 <= a2 < 2^b, b = 32 (f16, bf16, f32) or 64 (f64); mean, stddev
// 0 or of magnitude in [2^-200, 2^200]. So -2 ln u1 is 0 or in [2^-63, 89], a sine or cosine 0 or at least 2^-62, and
// every product below is 0 or in [2^-300, 2^210]: binary64 neither over- nor underflows, low parts included.
//
// y = stddev sqrt(-2 ln u1) cos|sin is 0 only if one of the factors is, and those zeros are exact in both tiers: ln 1,
// a sine at d = 0. Else y is transcendental. The exact result is mean + y; an exact zero is +0: mean is made +0 if it
// is -0, and +0 + -0 = +0.
//
// Below, u = 2^-53; constants by reference/gen/normal.sollya, their certified errors quoted from its output. All bounds
// hold with fused and with separate multiply-adds. Checked by tests/random/random_test.cpp.
//
// ---- Tier 1, binary64, b = 32
//
// ln u1 as in ops/elementwise/log.hpp: a1 2^-32 = 2^e m, sqrt(1/2) <= m < sqrt 2, f = m - 1, s = f/(2 + f), z = s^2,
//     ln u1 = e ln2 + f - (f^2/2 - s (f^2/2 + z L(z))),  |s| <= 0.1716, z <= 0.0295, |f| <= 0.4143.
// Exact: m, f, 2 + f (33 bits), e ln2_hi (6 + 45 bits).
//   z L(z): polynomial 2^-51.5 z, then times s                      2^-58.1 |s| <= 2^-58.1 * 0.59 |f|     0.04 u|f|
//   s: u; z: 3 u; L, z L, f^2/2 + z L (< 0.106), product: 8 u at most of |s| * 0.106 <= 0.062 |f|         0.5  u|f|
//   f^2/2 <= 0.21 |f|: u; the difference f^2/2 - s (...) <= 0.21 |f|: u                                  0.42 u|f|
//   e = 0 (then f <= 0): the last subtraction u; |ln u1| >= |f|: in all                                  2    u|ln u1|
//   e < 0: |ln u1| >= 0.346; the lines above <= 0.4 u, the inner subtraction (<= 0.37) 0.37 u, e ln2_lo and its sum
//   below 2^-40 u; the last subtraction u: in all (0.4 + 0.37)/0.346 + 1 < 3.3                           3.3  u|ln u1|
// sqrt(-2 ln u1): half of it and its own rounding                                                        2.7  u
// d/2^32 = u2 - q/4, q the nearest integer: |d| <= 2^29, x = d 2^-32 exact. sin = x S(x^2), cos = 1 + x^2 C(x^2):
//   sin: polynomial 2^-54.5 (0.36 u); last sum and product u each; the part after s0 is at most 0.11 of S, with
//   errors of 5 u: 0.6 u                                                                                  3    u
//   cos >= 0.7071: polynomial 2^-49.5 / 64 = 2^-55.5; x^2, its product and C: 4 u of 0.293; the sum u/2: in all
//   (0.18 + 1.2 + 0.5) u / 0.7071                                                                        2.7  u
// y: 2.7 + 3 + two products: 7.7 u, with second-order terms                                              8    u|y|
// v = fl(mean + y) and the ends fl(v -+ e): u (|mean| + |y|) and u (|v| + e). So e = 16 u (|mean| + |y|), itself
// rounded three times, exceeds the sum of all, 11 u (|mean| + |y|). 16 u = 2^-49.
//
// ---- Tier 2, double-double
//
// a1 as a 64-bit integer (b = 32: times 2^32), a1 2^-64 = 2^e m with 1/2 <= m r <= 2 ... f = m r - 1 from a table of
// 128 reciprocals r, |f| < 2^-7.97; m's halves have 32 bits, r 13: f = f.hi + f.lo exactly.
//     ln u1 = (e ln2_hi + t_hi) + (e ln2_lo + t_lo) + log1p(f),  log1p(f) = f + f^2 (-1/2 + f/3 + f^2 P(f)).
// The first bracket is exact: multiples of 2^-42 below 2^6. e = 0 at u1 = 1, where r = 1/2 (for 2m), t = 0.
//   f^2 P <= 2^-17.9: P and f^2 rounded, their product, the low part of f^2 left out, two sums: 6.2 u; polynomial
//   2^-63.6: in all 2^-68.2 in the bracket, f^2 2^-68.2 <= |f| 2^-76.1 in log1p
//   f^2 (bracket): its low products, at most 2^-33.8, rounded three times: 2^-85.2 at |f| = 2^-7.97, falling as f^4:
//   |f| 2^-77.2 at most. Everything else, 2^-86 |f|. log1p: |f| 2^-75.5
//   |ln u1| >= |f| (e = 0 and the last interval: f < 0), else at least 1.4 max|f|                    ln u1: 2^-75.5
//   sums with e ln2_lo + t_lo (< 2^-36): 2^-89
// sqrt(h + l) = root + (h - root^2 + l)/(2 root), remainder exact: 2^-103; half the error of ln: R: 2^-76.4
// u2 = j/256 + d 2^-64, |d| <= 2^55, B = 2 pi d 2^-64, |B| <= pi/256 < 2^-6.34, z = B^2, B and z to 2^-102:
//   sin B = B + B (-z/6 + z^2 S2(z)): z^2 S2 <= 2^-32.2, its five roundings and polynomial (2^-63): 2^-82.8
//   cos B - 1 = -z/2 + z^2 C2(z): z^2 C2 <= 2^-29.9, five roundings, polynomial (2^-58.6 z^2 = 2^-83.9): 2^-80.3
//   cos(A + B) = cA + (cA (cos B - 1) - sA sin B), sin(A + B) = sA + (sA (cos B - 1) + cA sin B), A in [-pi/4, pi/4):
//   cos >= 0.70: 2^-80.3 + 0.71 * 2^-89; sin: 2^-82.8 if A = 0, else sin >= sA/2: 2^-79.3
// R * cos|sin * stddev: two more double-double products: 2^-102. In all 2^-76.4 + 2^-79.2 < 2^-76: y = y.hi + y.lo.
//
// mean + y: s + t = two_sum(mean, y.hi) exactly, w = fl(t + y.lo), so mean + y = s + w with an error below
// 2^-76 |y| + u|w|; forming w -+ e rounds by u (|w| + e). e = 2^-75 |y.hi| + 2 u (2|w|), itself rounded, exceeds them.
// The ends s + (w -+ e) are rounded to T once. There is no term in |mean|: cancellation and a mean that is a midpoint
// cost nothing.
#pragma once

#include "librepdl/num/dd.hpp"
#include "librepdl/ops/random/normal_tables.hpp"
#include "librepdl/ops/random/uniform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// sqrt(-2 ln u1) cos(2 pi u2) and the same with sin.
template <class Number>
struct normal_pair {
  Number cosine;
  Number sine;
};

// The binary64 number n, n < 2^52, in operations that vectorise on every instruction set.
[[gnu::always_inline]] REPDL_HD double number_of(std::uint64_t n) { return double_of(n | 0x4330000000000000) - 0x1p52; }

// all is 0 or all ones.
[[gnu::always_inline]] REPDL_HD double select(std::uint64_t all, double yes, double no) {
  return double_of((bits_of(yes) & all) | (bits_of(no) & ~all));
}
[[gnu::always_inline]] REPDL_HD double flip_sign(double x, std::uint64_t odd) {
  return double_of(bits_of(x) ^ odd << 63);
}

// Turns (cos, sin) of an angle into those of the angle + q quarter turns.
[[gnu::always_inline]] REPDL_HD normal_pair<double> turn(double cosine, double sine, std::uint64_t q) {
  const std::uint64_t swap = 0 - (q & 1);
  return {flip_sign(select(swap, sine, cosine), (q + 1) >> 1), flip_sign(select(swap, cosine, sine), q >> 1)};
}

// Tier 1. w1, w2: 32-bit words, u1 = (w1 + 1) 2^-32, u2 = w2 2^-32. Relative error < 7 u.
struct normal_binary64 {
  // reference/gen/normal.sollya
  static constexpr double l0 = 0x1.5555555555558p-1, l1 = 0x1.99999999952d9p-2, l2 = 0x1.2492492df75b2p-2,
                          l3 = 0x1.c71c62dc17c4ap-3, l4 = 0x1.7462b76fd5e16p-3, l5 = 0x1.39fe05dd81adap-3,
                          l6 = 0x1.2b5c824eba01bp-3;
  static constexpr double s0 = 0x1.921fb54442d18p2, s1 = -0x1.4abbce625be09p5, s2 = 0x1.466bc67754fffp6,
                          s3 = -0x1.32d2ccdfe9424p6, s4 = 0x1.50782d5f14825p5, s5 = -0x1.e2fe76fdffd29p3,
                          s6 = 0x1.e357ef99eaea7p1;
  static constexpr double c0 = -0x1.3bd3cc9be45dep4, c1 = 0x1.03c1f081b5a23p6, c2 = -0x1.55d3c7e3b7782p6,
                          c3 = 0x1.e1f50664cca8cp5, c4 = -0x1.a6d1d2d5fcbcep4, c5 = 0x1.f9b7a4a3ee171p2,
                          c6 = -0x1.ac077c3d4df7ep0;
  // ops/elementwise/log.hpp's: 45 bits and the rest.
  static constexpr double ln2_hi = 0x1.62e42fefa3ap-1, ln2_lo = -0x1.0ca86c3898dp-49;

  static constexpr double bound = 0x1p-49;  // of v, relative to |mean| + |y|

  [[gnu::always_inline]] REPDL_HD static normal_pair<double> eval(std::uint64_t w1, std::uint64_t w2) {
    const double r = sqrt(-2.0 * log(w1));
    constexpr std::uint64_t half = std::uint64_t{1} << 29;
    const std::uint64_t shifted = w2 + half;
    const double x = (number_of(shifted & (2 * half - 1)) - 0x1p29) * 0x1p-32;
    const double z = x * x;
    double s = muladd(s6, z, s5);
    s = muladd(s, z, s4);
    s = muladd(s, z, s3);
    s = muladd(s, z, s2);
    s = muladd(s, z, s1);
    s = muladd(s, z, s0);
    double c = muladd(c6, z, c5);
    c = muladd(c, z, c4);
    c = muladd(c, z, c3);
    c = muladd(c, z, c2);
    c = muladd(c, z, c1);
    c = muladd(c, z, c0);
    const normal_pair<double> direction = turn(muladd(c, z, 1.0), s * x, shifted >> 30 & 3);
    return {r * direction.cosine, r * direction.sine};
  }

  // ln u1.
  [[gnu::always_inline]] REPDL_HD static double log(std::uint64_t w1) {
    constexpr std::uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;    // 1, RN(sqrt(1/2))
    const std::uint64_t a = bits_of(double_of(w1 | 0x4330000000000000) - (0x1p52 - 1));  // w1 + 1
    const std::uint64_t biased = (a + (one - sqrt_half)) >> 52;
    const double e = double_of(biased | 0x4330000000000000) - (0x1p52 + 1023 + 32);
    const double f = double_of(a - (biased << 52) + one) - 1.0;
    const double half_square = 0.5 * f * f;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double p = muladd(l6, z, l5);
    p = muladd(p, z, l4);
    p = muladd(p, z, l3);
    p = muladd(p, z, l2);
    p = muladd(p, z, l1);
    p = muladd(p, z, l0);
    const double t = muladd(s, muladd(p, z, half_square), e * ln2_lo);
    return e * ln2_hi - ((half_square - t) - f);
  }
};

// Tier 2. a1: u1 = a1 2^-64, where 0 stands for 2^64; u2 = a2 2^-64. Relative error < 2^-76.2.
struct normal_double_double {
  // reference/gen/normal.sollya
  static constexpr double ln2_hi = 0x1.62e42fefa38p-1, ln2_lo = 0x1.ef35793c7673p-45;
  static constexpr dd third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
  static constexpr dd minus_sixth = {-0x1.5555555555555p-3, -0x1.5555555555555p-57};
  static constexpr dd two_pi = {0x1.921fb54442d18p-62, 0x1.1a62633145c07p-116};  // 2 pi 2^-64
  static constexpr double p0 = -0x1p-2, p1 = 0x1.999999999999dp-3, p2 = -0x1.555555555555dp-3,
                          p3 = 0x1.2492492353b23p-3, p4 = -0x1.fffffffc6b907p-4, p5 = 0x1.c720040a4a353p-4,
                          p6 = -0x1.999d885a20dcfp-4;
  static constexpr double s0 = 0x1.1111111111111p-7, s1 = -0x1.a01a019ffc199p-13, s2 = 0x1.71dd7c5818ffdp-19;
  static constexpr double c0 = 0x1.5555555555555p-5, c1 = -0x1.6c16c16bce822p-10, c2 = 0x1.a0185aeb9512p-16;

  static constexpr double bound = 0x1p-75;  // relative to |y|

  [[gnu::always_inline]] REPDL_HD static normal_pair<dd> eval(std::uint64_t a1, std::uint64_t a2,
                                                              const normal_tables& tables) {
    const dd r = root(minus_two_log(a1, tables));
    const normal_pair<dd> direction = angle(a2, tables);
    return {mul(r, direction.cosine), mul(r, direction.sine)};
  }

  [[gnu::always_inline]] REPDL_HD static dd minus_two_log(std::uint64_t a1, const normal_tables& tables) {
    const double high = number_of(a1 >> 32) * 0x1p32;
    const double low = number_of(a1 & 0xffffffff);
    // The leading 53 bits, for the exponent and the interval. They would be rounded up to the next power of two only if
    // all of them are ones; then a1 >> 53 is ones too, as many as there are bits to round, and clears these.
    const std::uint64_t lead = bits_of(high + number_of(a1 & ~(a1 >> 53) & 0xffffffff));
    const std::uint64_t biased = lead >> 52;
    const std::uint64_t interval = lead >> 45 & 127;
    const auto& entry = tables.log[interval];
    const double scale = double_of((2046 - biased) << 52);
    const dd f = two_sum(high * scale * entry.reciprocal - 1.0, low * scale * entry.reciprocal);
    const double e = double_of((biased + ((interval + 75) >> 7)) | 0x4330000000000000) - (0x1p52 + 1023 + 64);
    double p = muladd(p6, f.hi, p5);
    p = muladd(p, f.hi, p4);
    p = muladd(p, f.hi, p3);
    p = muladd(p, f.hi, p2);
    p = muladd(p, f.hi, p1);
    p = muladd(p, f.hi, p0);
    const dd q = two_prod(f.hi, f.hi);
    const double q_lo = muladd(f.hi + f.hi, f.lo, q.lo);
    const dd c = two_prod(third.hi, f.hi);
    const double c_lo = muladd(q.hi, p, c.lo + muladd(third.lo, f.hi, third.hi * f.lo));
    const dd g = fast_two_sum(-0.5, c.hi);
    const double g_lo = g.lo + c_lo;
    const dd b = two_prod(q.hi, g.hi);
    const double b_lo = b.lo + muladd(q.hi, g_lo, q_lo * g.hi);
    const dd s = fast_two_sum(f.hi, b.hi);
    const double s_lo = s.lo + (f.lo + b_lo);
    const dd t = fast_two_sum(muladd(e, ln2_hi, entry.log_hi), s.hi);
    const double t_lo = t.lo + (s_lo + muladd(e, ln2_lo, entry.log_lo));
    const dd sum = fast_two_sum(-2.0 * t.hi, -2.0 * t_lo);
    const std::uint64_t not_one = 0 - ((a1 | (0 - a1)) >> 63);  // 0 where a1 = 0: ln 1 = 0
    return {double_of(bits_of(sum.hi) & not_one), double_of(bits_of(sum.lo) & not_one)};
  }

 private:
  // x normalised, >= 0.
  [[gnu::always_inline]] REPDL_HD static dd root(dd x) {
    const double r = sqrt(x.hi);
    const dd p = two_prod(r, r);
    const double rest = ((x.hi - p.hi) - p.lo) + x.lo;
    return fast_two_sum(r, rest * (0.5 / (r > 0 ? r : 1.0)));
  }

  [[gnu::always_inline]] REPDL_HD static normal_pair<dd> angle(std::uint64_t a2, const normal_tables& tables) {
    const std::uint64_t j = ((a2 >> 55) + 1) >> 1;
    const std::uint64_t d = a2 - (j << 56) + (std::uint64_t{1} << 55);  // + 2^55: not negative
    const auto& entry = tables.angle[(j + 32) & 63];
    const std::uint64_t quadrant = (j + 32) >> 6 & 3;
    const dd x = fast_two_sum(number_of(d >> 28) * 0x1p28 - 0x1p55, number_of(d & 0xfffffff));
    const dd b = mul(two_pi, x);
    const dd q = two_prod(b.hi, b.hi);
    const double q_lo = muladd(b.hi + b.hi, b.lo, q.lo);
    const double q2 = q.hi * q.hi;
    // sin B
    const dd m = two_prod(q.hi, minus_sixth.hi);
    const double m_lo =
        muladd(q2, muladd(muladd(s2, q.hi, s1), q.hi, s0), m.lo + muladd(q.hi, minus_sixth.lo, q_lo * minus_sixth.hi));
    const dd n = two_prod(b.hi, m.hi);
    const double n_lo = n.lo + muladd(b.hi, m_lo, b.lo * m.hi);
    const dd o = fast_two_sum(b.hi, n.hi);
    const dd sin_b = fast_two_sum(o.hi, o.lo + (b.lo + n_lo));
    // cos B - 1
    const dd cos_b = fast_two_sum(-0.5 * q.hi, muladd(q2, muladd(muladd(c2, q.hi, c1), q.hi, c0), -0.5 * q_lo));
    const dd sin_a = {entry.sin_hi, entry.sin_lo};
    const dd cos_a = {entry.cos_hi, entry.cos_lo};
    const dd cosine = add_small(cos_a, mul(cos_a, cos_b), mul(dd{-sin_a.hi, -sin_a.lo}, sin_b));
    const dd sine = add_small(sin_a, mul(sin_a, cos_b), mul(cos_a, sin_b));
    const normal_pair<double> hi = turn(cosine.hi, sine.hi, quadrant);
    const normal_pair<double> lo = turn(cosine.lo, sine.lo, quadrant);
    return {{hi.cosine, lo.cosine}, {hi.sine, lo.sine}};
  }

  // a + (x + y); a = 0 or |a| >= |x + y|.
  [[gnu::always_inline]] REPDL_HD static dd add_small(dd a, dd x, dd y) {
    const dd s = two_sum(x.hi, y.hi);
    const dd t = fast_two_sum(a.hi, s.hi);
    return fast_two_sum(t.hi, t.lo + (a.lo + (s.lo + (x.lo + y.lo))));
  }
};

// Both ends of an interval that holds the exact value, rounded to T: it is decided when their bits agree.
template <class T>
struct normal_ends {
  T below;
  T above;
};

// narrow<T> of a number that is not NaN.
template <class T>
[[gnu::always_inline]] REPDL_HD T round_end(double a) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(a);
  } else {
    return narrow<T>(a);
  }
}

// force: 0, or +inf, which leaves everything undecided.
template <class T>
[[gnu::always_inline]] REPDL_HD normal_ends<T> normal_round(double mean, double stddev, double z, double force) {
  const double y = stddev * z;
  const double v = mean + y;
  const double e = normal_binary64::bound * ((mean < 0 ? -mean : mean) + (y < 0 ? -y : y)) + force;
  return {round_end<T>(v - e), round_end<T>(v + e)};
}

template <class T>
[[gnu::always_inline]] REPDL_HD normal_ends<T> normal_round(double mean, double stddev, dd z, double force) {
  const dd y = mul(z, stddev);
  const dd s = two_sum(mean, y.hi);
  const double w = s.lo + y.lo;
  const double e = (normal_double_double::bound * (y.hi < 0 ? -y.hi : y.hi) + 0x1p-51 * (w < 0 ? -w : w)) + force;
  if constexpr (std::is_same_v<T, double>) {
    return {s.hi + (w - e), s.hi + (w + e)};
  } else {
    return {round_sum<T>(s.hi, w - e), round_sum<T>(s.hi, w + e)};
  }
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
