// x^y, binary16, bfloat16, binary32: the first tier. What it leaves undecided goes to pow_exact.hpp, which decides it all.
//
// Method: e^(y ln x) with Ziv's rounding test (certify.hpp), in binary64; on CUDA, where a warp waits for what one number leaves
// undecided, f32 in binary64 whose leading terms are exact because their factors are cut short, after T. J. Dekker, "A
// floating-point technique for extending the available precision", Numer. Math. 18 (1971). Range reductions as in log.hpp
// and exp.hpp. No tables.
//
// Domain: every pair of operands. Special cases (C23, F.10.4.5) are selected at the end, over whatever was computed. x
// below stands for |x| > 0. |y ln x| is cut down to 105: e^105 > 2^151 and e^-105 < 2^-151 round as all beyond them do.
//
// Ties. Let y be a whole number and x = 2^e (1 + n / 2^t) (t is taken too large for subnormal x). Where t = 0, or y > 0
// and t y <= p + 2, x^y has 1 bit, or at most (t + 1) y <= 2 t y <= 2 p + 4 <= 52: the computed number is rounded to it
// and counts as exact. Every tie of a whole y > 0 is among them: its odd part m^y, m > 2^t, has p + 1 bits at most, so
// t y <= p; for y < 0 it is a power of two. Ties of other y, such as 49^(3/2) in bf16, are left undecided.
//
// ---- f32 on CUDA (pow_wide). u = 2^-53; bounds hold with fused and with separate multiply-adds, and "exact" is exact with both.
//
// ln x = e ln2 + ln m, sqrt(1/2) <= m < sqrt 2, f = m - 1, sigma = f / (6 + 3 f), |sigma| < 0.0573, z = sigma^2:
//     ln m = 2 atanh(3 sigma) = 6 sigma (1 + 3 z + z^2 R(z)).
// sigma = s + s_lo, s of 24 bits; g = 3 s^2, g_cut its leading 27 bits, a = 6 s, b = 3 (z - s^2) + z^2 R(z):
//     ln m = a + a g_cut + tail,  tail = a ((g - g_cut) + b) + 6 s_lo (1 + g + b).
// - Exact: f (24 bits), d = 6 + 3 f (27), s d (51), f - s d (28: |f/d - s| is little above an ulp of s), g (50), a
//   (26), a g_cut (53), e ln2_hi (8 + 45); the two sums: e = 0, or |e ln2_hi| > 0.69 > 0.344 > |a|; |a g_cut| < |a|/64.
// - |s_lo| < 2^-22 |s|, z^2 R(z) < 2^-12.5, |a| < |ln x|. Errors of tail:
//   z^2 R in b: z twice (1 u each), z^2, its polynomial 1.1 u, product, sum            6.1 u |tail|
//   the bracket, its product with a, the sum                                           3   u |tail|
//   s_lo's part: 5 u of 2^-23; polynomial 0x1.78p-74 (reference/gen/pow.sollya)        2^-72 |ln x|
//   log_lo = tail + e ln2_lo + errors of the two sums: two more sums                   2   u |tail|
// y ln x = y log_hi + y (remainder + log_lo), log_hi being the first 29 bits of the sum:
//   y log_hi (24 + 29 bits)                                                            exact
//   remainder + log_lo, its product with y                                             2   u |tail|
// So w + w_lo = y ln x up to 13.1 u |y tail| + 2^-65. The remainder (2^-28 |ln x|) and e ln2_lo may cancel a part of
// tail: |y tail| < |w_lo| + 2^-20, hence up to 13.1 u |w_lo| + 2^-64.9. |w_lo| < 105 (2^-12.5 + 2^-21) < 0.0182.
//
// e^(w + w_lo) = 2^k e^v, k = an integer next to (w + w_lo) / ln2, |k| <= 152.
// - r = w - k ln2_hi is exact: k = 0, or |w| > 1/4 is a multiple of 2^-54 and the difference is below 1/2.
// - r_lo = w_lo - k ln2_lo up to u |w_lo| + 2^-93. v = r + r_lo, |v| < ln2/2 + 2^-40.
// - v = v_hi + v_lo, v_hi a multiple of 2^-25, |v_lo| < 2^-25.9 up to 2^-67.
//     e^v = (1 + v_hi + v_hi^2 / 2) + rest,  rest = v_lo (1 + v_hi + v_lo / 2) + v^3 E(v).
// - The bracket is exact: a multiple of 2^-51 below 2. |v^3 E(v)| < 0.0077. Errors of rest:
//   v^3 E: v rounded to binary64 3.1 u, two products, E 1.2 u, product                 7.3 u (|rest| + 2^-25)
//   the sum                                                                            1   u |rest|
//   v_lo's part: 3 u of 2^-26; polynomial 0x1.0cp-64                                   2^-63.9
// hi + lo is their sum exactly. With the errors of w + w_lo and of r_lo, times e^v < 1.4143, in all
//     20 u |w_lo| + 8.3 u |rest| + 2^-62.9  <  error = 22 u |w_lo| + 10 u |rest| + 2^-62  <  2^-54,
// with room for the roundings of error itself and of lo -+ error. Rounding: |lo| is at most half an ulp of hi, so
// |lo -+ error| is less than an ulp, and the ends hi + (lo -+ error) are rounded to odd (eft.hpp); x^y is strictly
// between them. Exact cases: x^y 2^-k is a multiple of 2^-52 within 2^-54 of hi + lo, so it is hi.
// |rest| is about 2^-9 and |w_lo| less: a share of about 2^-32 of random operands is left undecided.
//
// ---- in binary64 (pow_binary64)
//
// ln x with log.hpp's terms. e = 0: f - f^2/2 is exact, t < 0.06 |ln x| has 5 u, the sum u. e != 0, |ln x| > 0.346:
// 2^-55.8 and the sum 2^-54.5, then u |ln x|. So ln x is within 2^-51.7 |ln x|, w within 2^-51.2 |w| < 2^-44.4. With
// exp.hpp's 5.1 u (its reduction is exact for binary64 numbers, too, as above) the error is below 2^-44.3 x^y; 2^-44
// has room for the roundings of the ends. Exact cases: at most 26 bits, so the nearest number of 31 bits is x^y. Of f32 a share of
// about 2^-19 is left undecided.
//
// Checked by tests/elementwise/pow_test.cpp against MPFR.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/body.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/log.hpp"
#include "librepdl/ops/elementwise/pow_exact.hpp"

namespace repdl::ops {
struct pow;
}

namespace repdl::num {
inline namespace REPDL_ISA {

// x = 2^exponent (1 + fraction), sqrt(1/2) <= 1 + fraction < sqrt 2; x > 0, normal.
struct pow_reduced {
  double exponent;
  double fraction;
};
[[gnu::always_inline]] REPDL_HD pow_reduced pow_reduce(double x) {
  constexpr std::uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;  // 1, RN(sqrt(1/2))
  const std::uint64_t u = bits_of(x);
  const std::uint64_t biased = (u + (one - sqrt_half)) >> 52;
  // biased = exponent + 1023 < 2^52: under the exponent of 2^52 it is 2^52 + biased.
  return {double_of(biased | 0x4330000000000000) - 0x1.00000000003ffp52, double_of(u - (biased << 52) + one) - 1.0};
}

// x^y = (hi + lo) 2^k, hi in [0.7, 1.42], hi = RN(hi + lo), with an error below error 2^k.
struct pow_wide {
  // reference/gen/pow.sollya
  static constexpr double log2e = 0x1.71547652b82fep0;
  static constexpr double ln2_hi = 0x1.62e42fefa3ap-1;
  static constexpr double ln2_lo = -0x1.0ca86c3898dp-49;
  static constexpr double shifter = 0x1.8p52;  // ulp 1, room for either sign
  static constexpr double l0 = 0x1.0333333333331p4, l1 = 0x1.a09249249337dp6, l2 = 0x1.6c7ffffecd7b7p9,
                          l3 = 0x1.4f81752754c0ap12, l4 = 0x1.3f5fdaa49cf96p15, l5 = 0x1.37758f432b9cdp18,
                          l6 = 0x1.32c64c617c19cp21, l7 = 0x1.6212b5556379bp24;
  static constexpr double e0 = 0x1.555555555555bp-3, e1 = 0x1.555555555555ap-5, e2 = 0x1.111111110ed9dp-7,
                          e3 = 0x1.6c16c16c141ffp-10, e4 = 0x1.a01a01b31f5c3p-13, e5 = 0x1.a01a01b1c9643p-16,
                          e6 = 0x1.71ddf0df66e0bp-19, e7 = 0x1.27e4c32ddc366p-22, e8 = 0x1.af6ad3581200ep-26,
                          e9 = 0x1.1f991ca6cc0c9p-29;
  double hi, lo, error;
  std::uint64_t exponent;  // k 2^52 mod 2^64

  REPDL_HD static double cut(double x, int bits) { return double_of(bits_of(x) >> bits << bits); }
  REPDL_HD static double magnitude(double x) { return double_of(bits_of(x) & 0x7fffffffffffffff); }

  [[gnu::always_inline]] REPDL_HD static pow_wide eval(double x, double y) {
    const auto [e, f] = pow_reduce(x);
    const double d = muladd(3.0, f, 6.0);
    const double q = 1.0 / d;
    const double s = cut(f * q, 29);
    const double s_lo = muladd(-s, d, f) * q;
    const double g = 3.0 * s * s;
    const double g_cut = cut(g, 26);
    const double z_lo = s_lo * muladd(2.0, s, s_lo);
    const double z = muladd(s, s, z_lo);
    double p = muladd(l7, z, l6);
    p = muladd(p, z, l5);
    p = muladd(p, z, l4);
    p = muladd(p, z, l3);
    p = muladd(p, z, l2);
    p = muladd(p, z, l1);
    p = muladd(p, z, l0);
    const double b = muladd(z * z, p, 3.0 * z_lo);
    const double a = 6.0 * s;
    const double tail = muladd(a, (g - g_cut) + b, 6.0 * s_lo * (1.0 + (g + b)));
    const dd head = fast_two_sum(e * ln2_hi, a);
    const dd sum = fast_two_sum(head.hi, a * g_cut);
    const double log_lo = (head.lo + sum.lo) + muladd(e, ln2_lo, tail);

    const double log_hi = cut(sum.hi, 24);
    const double product = y * log_hi;
    const double product_lo = y * ((sum.hi - log_hi) + log_lo);
    const std::uint64_t beyond = pow_beyond(product, 105.0);
    const double w = pow_limited(product, 105.0, beyond);
    const double w_lo = double_of(bits_of(product_lo) & ~beyond);

    const double t = muladd(w + w_lo, log2e, shifter);
    const double k = t - shifter;
    const double r = muladd(k, -ln2_hi, w);
    const double r_lo = muladd(k, -ln2_lo, w_lo);
    const double v = r + r_lo;
    const double v_hi = (v + 0x1.8p27) - 0x1.8p27;
    const double v_lo = (r - v_hi) + r_lo;
    double c = muladd(e9, v, e8);
    c = muladd(c, v, e7);
    c = muladd(c, v, e6);
    c = muladd(c, v, e5);
    c = muladd(c, v, e4);
    c = muladd(c, v, e3);
    c = muladd(c, v, e2);
    c = muladd(c, v, e1);
    c = muladd(c, v, e0);
    const double rest = muladd(v * v * v, c, muladd(v_lo, muladd(v_lo, 0.5, v_hi), v_lo));
    const dd result = fast_two_sum(muladd(0.5 * v_hi, v_hi, 1.0 + v_hi), rest);
    return {result.hi, result.lo, muladd(magnitude(w_lo), 0x1.6p-49, muladd(magnitude(rest), 0x1.4p-50, 0x1p-62)),
            bits_of(t) << 52};
  }
};

// x^y in binary64, relative error below pow_binary64_error.
inline constexpr double pow_binary64_error = 0x1p-44;
[[gnu::always_inline]] REPDL_HD double pow_binary64(double x, double y) {
  using log = body<ops::log>;
  const auto [e, f] = pow_reduce(x);
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = muladd(log::c7, z, log::c6);
  p = muladd(p, z, log::c5);
  p = muladd(p, z, log::c4);
  p = muladd(p, z, log::c3);
  p = muladd(p, z, log::c2);
  p = muladd(p, z, log::c1);
  const double t = muladd(s, muladd(p, z, half_square), e * log::ln2_lo);
  const double w = y * (e * log::ln2_hi + ((f - half_square) + t));
  return exp_core::eval(pow_limited(w, 105.0, pow_beyond(w, 105.0)));
}

// Both ends of an interval that holds x^y, rounded to T, as patterns. inexact: 0 for the exact cases ("Ties" above),
// else 1.
struct pow_ends {
  std::uint32_t low;
  std::uint32_t high;
};

[[gnu::always_inline]] REPDL_HD pow_ends pow_round_wide(double x, double y, std::uint64_t inexact) {
  const pow_wide c = pow_wide::eval(x, y);
  const std::uint64_t scaled = bits_of(c.hi) + c.exponent;
  const std::uint64_t below = (scaled - ((bits_of(c.lo - c.error) >> 63) & inexact)) | inexact;
  const std::uint64_t above = (scaled - ((bits_of(c.lo + c.error) >> 63) & inexact)) | inexact;
  return {bits_of(static_cast<float>(double_of(below))), bits_of(static_cast<float>(double_of(above)))};
}

// f16 and bf16 are rounded as format.hpp's narrow does, the upper end by the ulp of the lower one's binade: if that is too
// small because a power of two lies between them, they agree only where both round to that power. Unpacked: in binary32, for
// the test of certify_between.
template <class T>
[[gnu::always_inline]] REPDL_HD pow_ends pow_round(double x, double y, std::uint64_t inexact) {
  using F = format<T>;
  const double value = pow_binary64(x, y);
  const std::uint64_t exact = inexact - 1;
  const double centre = double_of((bits_of(value) + (0x200000 & exact)) & ~(0x3fffff & exact));
  const double error = centre * double_of(bits_of(pow_binary64_error) & ~exact);
  const double low = centre - error;
  const double high = centre + error;
  if constexpr (is_unpacked<T> || std::is_same_v<T, float>) {
    return {bits_of(static_cast<float>(low)), bits_of(static_cast<float>(high))};
  } else {
    constexpr double smallest = bit_cast<double>(static_cast<std::uint64_t>(F::emin + 1023) << 52);
    constexpr double magic = bit_cast<double>(static_cast<std::uint64_t>(53 - F::precision + 1023) << 52);
    const double binade = double_of(bits_of(low) & 0x7ff0000000000000);
    const double scale = binade > smallest ? binade : smallest;
    const auto exponent = static_cast<std::uint32_t>(bits_of(scale) >> (53 - F::precision)) -
                          (static_cast<std::uint32_t>(F::emin + 1023) << (F::precision - 1));
    const std::uint32_t n = static_cast<std::uint32_t>(bits_of(low + scale * magic)) + exponent;
    const std::uint32_t m = static_cast<std::uint32_t>(bits_of(high + scale * magic)) + exponent;
    return {n < F::infinity ? n : F::infinity, m < F::infinity ? m : F::infinity};
  }
}

template <>
struct body<ops::pow> {
  template <class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval(T x, T y) {
    constexpr bool wide = on_device && std::is_same_v<T, float>;
    return eval_as<wide>(x, y);
  }
  template <bool Wide, class T>
  [[gnu::always_inline]] REPDL_HD static decided_value<T> eval_as(T x, T y) {
    using F = format<T>;
    using storage = typename F::storage;
    constexpr int sign_place = 8 * sizeof(storage) - 1;
    const std::uint32_t one = to_bits(narrow<T>(1.0f));
    const float base = widen_to_float(x);
    const float power = widen_to_float(y);
    const std::uint32_t base_bits = bits_of(base) & 0x7fffffff;
    const std::uint32_t base_sign = bits_of(base) >> 31;
    const std::uint32_t power_bits = bits_of(power) & 0x7fffffff;
    const bool inverse = power < 0;

    // What y is. Magnitudes beyond 2^24 are even numbers, as 2^24 is.
    const float steps = clamp_magnitude(float_of(power_bits), 0x1p24f);
    const auto count = static_cast<std::int32_t>(steps);
    const bool whole = static_cast<float>(count) == steps;
    const std::uint32_t odd = whole ? static_cast<std::uint32_t>(count) & 1 : 0;

    // fraction_bits: x = 2^e (1 + an integer / 2^fraction_bits) for normal x.
    const std::uint32_t significand = (base_bits & 0x7fffff) | 0x800000;
    const auto last_bit = static_cast<float>(static_cast<std::int32_t>(significand & (0 - significand)));
    const auto fraction_bits = static_cast<std::int32_t>(150 - (bits_of(last_bit) >> 23));
    const bool is_short = static_cast<float>(fraction_bits) * steps <= static_cast<float>(F::precision + 2);
    const bool dyadic = whole & is_short & (!inverse | (fraction_bits == 0));

    const std::uint64_t inexact = dyadic ? 0u : 1u;
    const auto magnitude = static_cast<double>(float_of(base_bits));
    const auto exponent = static_cast<double>(power);
    pow_ends ends;
    if constexpr (Wide) {
      ends = pow_round_wide(magnitude, exponent, inexact);
    } else {
      ends = pow_round<T>(magnitude, exponent, inexact);
    }
    std::uint32_t r = ends.low;
    const bool is_zero = base_bits == 0;
    const bool pole = is_zero | (base_bits == 0x7f800000);
    const std::uint32_t limit = is_zero == inverse ? F::infinity : 0;
    r = pole ? limit : r;
    r = base_bits == 0x3f800000 ? one : r;
    const std::uint32_t sign = (base_sign & odd) << sign_place;
    r |= sign;
    const bool nan = ((base < 0) & !whole & !pole) | (base_bits > 0x7f800000) | (power_bits > 0x7f800000);
    r = nan ? F::nan : r;
    const bool is_one = (power_bits == 0) | (bits_of(base) == 0x3f800000);
    r = is_one ? one : r;
    if constexpr (is_unpacked<T>) {
      const std::uint32_t undecided = (ends.low ^ ends.high) | midpoint_mark<T>(float_of(ends.low));
      return {from_bits<T>(r), r == (ends.low | sign) ? undecided : 0};
    } else {
      return {bit_cast<T>(static_cast<storage>(r)), ends.low == ends.high};
    }
  }

  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, T y, int last_tier_bits) {
    return pow_exact<T>(widen(x), widen(y), last_tier_bits);
  }
};

// ---- Binary64: x^y = e^(y ln x), and of its gradients c e^w, c of any magnitude.

// Numbers beyond 2^52 are whole, infinities and NaN count as such; and those beyond 2^53 are even.
template <class R>
REPDL_HD mask_of<R> has_fraction(R y) {
  const R a = magnitude_of(y);
  const R steps = a < 0x1p52 ? a : math<R>::all(0x1p52);
  return (steps + 0x1p52) - 0x1p52 != steps;
}
template <class R>
REPDL_HD mask_of<R> is_odd_whole(R y) {
  return (has_fraction(y) == 0) & has_fraction(0.5 * y);
}
// Half of the least number is not a number, but 0: y is asked, too.
template <class R>
REPDL_HD mask_of<R> is_even_whole(R y) {
  return (has_fraction(y) == 0) & (has_fraction(0.5 * y) == 0);
}

// |x| = m 2^e, m in [1, 2), for a number x that is not 0.
template <class R>
struct binary_parts {
  R m, e;
};
template <class R>
REPDL_HD binary_parts<R> binary_parts_of(R x) {
  const R a = magnitude_of(x);
  const mask_of<R> subnormal = a < 0x1p-1022;
  const auto bits = math<R>::to_bits(subnormal ? 0x1p64 * a : a);
  const R e = math<R>::from_bits((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const R m = math<R>::from_bits((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  return {m, subnormal ? e - 64.0 : e};
}

// ln x of any number x > 0, within 2^-83 of itself as logarithm<true>, which takes normal ones: |k| <= 1075.
template <class R>
REPDL_HD dd_ball<R> precise_logarithm(R x) {
  const binary_parts<R> parts = binary_parts_of(x);
  reduced_logarithm<R> a = reduce_logarithm(double_word<R>{parts.m, math<R>::all(0)});
  a.k = a.k + parts.e;
  return join_logarithm<true>(a);
}
// y as a factor of ln x, x != 1, whose magnitude is in [2^-54, 2^10]: beyond 2^200 any y makes more than 2^146, which is out of every range;
// below 2^-200 it is a ball around 0, so that products do not underflow.
template <class R>
REPDL_HD dd_ball<R> power_ball(R y) {
  const R a = magnitude_of(y);
  const mask_of<R> small = a < 0x1p-200;
  const R limited = a < 0x1p200 ? y : copy_sign(math<R>::all(0x1p200), y);
  return {small ? math<R>::all(0) : limited, math<R>::all(0), small ? a : math<R>::all(0)};
}

// RN(c 2^k), c in [1/4, 2^8], k whole: beyond 2^1095 it is an infinity, below 2^-1095 a zero. Of an exact c it is hi, where it is normal, ties
// included.
template <class R>
REPDL_HD decided_lanes<R> round_limited(const dd_ball<R>& c, R k) {
  const R n = magnitude_of(k) < 1095 ? k : copy_sign(math<R>::all(1095), k);
  const decided_lanes<R> r = round_scaled(c, n);
  const mask_of<R> exact = (c.error == 0) & (magnitude_of(k) <= 1000);
  return {exact ? c.hi * power_of(n) : r.value, static_cast<mask_of<R>>(exact | r.decided)};
}
// c p, and c exactly where p is exactly 1.
template <class R>
REPDL_HD dd_ball<R> multiplied(const dd_ball<R>& c, const dd_ball<R>& p) {
  return select((p.hi == 1) & (p.lo == 0) & (p.error == 0), c, c * p);
}
// RN(c 2^k e^w), c in [1/2, 2^7], k whole, |k| < 2^12; `scaled` makes c m of m. Where |w| > 760, e^w is 2^n, n = w / ln 2 beyond 1096, within a
// factor of 2: the result is an infinity or zero if |k + n| >= 1095, else undecided.
template <class R, class Scaled>
REPDL_HD decided_lanes<R> round_scaled_power(const Scaled& scaled, R k, const dd_ball<R>& w) {
  const mask_of<R> far = magnitude_of(w.hi) > 760;
  const scaled_ball<R> e = scaled_exponential(select(far, number<dd_ball<R>>(0.0), w));
  const R total = k + (far ? w.hi * dd_log2_e.hi : e.k);
  const decided_lanes<R> r = round_limited(scaled(e.m), total);
  return {r.value, static_cast<mask_of<R>>(far ? magnitude_of(total) >= 1095 : r.decided)};
}
template <class R>
REPDL_HD decided_lanes<R> round_with_power(const dd_ball<R>& c, R k, const dd_ball<R>& w) {
  return round_scaled_power([&](const dd_ball<R>& m) { return multiplied(c, m); }, k, w);
}
// RN(c 2^k |x|^n), -2 <= n <= 4, c in [1, 4).
template <class R>
REPDL_HD decided_lanes<R> round_with_whole_power(const dd_ball<R>& c, R k, R x, int n) {
  const binary_parts<R> parts = binary_parts_of(x);
  dd_ball<R> p = number<dd_ball<R>>(1.0);
  for (int i = n < 0 ? -n : n; i != 0; --i) p = p * number<dd_ball<R>>(parts.m);
  const dd_ball<R> v = n < 0 ? select(p.hi == 1, c, c / p) : multiplied(c, p);
  return round_limited(v, k + static_cast<double>(n) * parts.e);
}

// First tier: |y ln x| <= 760 with an error below 2^-73, and e^w to 2^-69.4; on a CPU, with less to do where results are far from over- and underflow. What is exact, or a midpoint (of subnormal numbers, too), pow_dyadic
// finds: its theorem (pow_exact.hpp) holds for operands and results of 53 bits as it is. So balls meet only values that are no midpoints; results
// next to 1 they see as 1. |y ln x| > 800 is out of range, and pow_estimate knows it within a relative 2^-13.
struct pow64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y) {
    const R base = magnitude_of(x);
    return (base < infinity) & (base != 0) & (base != 1) & (magnitude_of(y) < infinity) & (y != 0) &
           ((x > 0) | (has_fraction(y) == 0));
  }
  // pow_special's
  template <class R>
  REPDL_HD static R special(R x, R y) {
    const R zero = math<R>::all(0), one = math<R>::all(1);
    const R base = magnitude_of(x);
    const mask_of<R> is_number = magnitude_of(y) < infinity;
    const mask_of<R> extreme = ((base == 0) | (base == infinity) | (is_number == 0)) & (base != 1);
    const R limit = (base > 1) == (y > 0) ? math<R>::all(infinity) : zero;
    const R power = with_sign_of_base(extreme ? limit : one, x, y);
    const mask_of<R> nan = (x != x) | (y != y) | ((x < 0) & (base < infinity) & is_number & has_fraction(y));
    const R other = nan ? nan_of<R>() : power;
    return (y == 0) | (x == 1) ? one : other;
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R y) {
    if constexpr (uses_tables) {
      const dd_ball<R> log = precise_logarithm(magnitude_of(x));
      const double_word<R> w = product(double_word<R>{y, math<R>::all(0)}, value_of(log));
      const mask_of<R> near = magnitude_of(w.hi) <= 690;
      if (math<R>::every(near)) {
        const reduced_exponent<R> e = reduce_exponent(w);
        const double_word<R> m = exp_reduced<false>(e);
        const decided_lanes<R> r = round_within(m, math<R>::all(0x1p-69));
        return {with_sign_of_base(r.value * power_of(e.k), x, y), r.decided};
      }
    }
    const dd_ball<R> w = power_ball(y) * precise_logarithm(magnitude_of(x));
    const auto as_it_is = [](const dd_ball<R>& m) { return m; };
    const decided_lanes<R> r = round_scaled_power(as_it_is, math<R>::all(0), w);
    return {with_sign_of_base(r.value, x, y), r.decided};
  }
  REPDL_HD_CALL static decided_value<double> known(double x, double y) {
    const double base = magnitude_of(x);
    const double w = pow_estimate(base, y);
    decided_value<double> r = pow_dyadic<double>(base, y);
    if (!r.decided && magnitude_of(w) > 800) r = {w > 0 ? infinity : 0.0, true};
    return {with_sign_of_base(r.value, x, y), r.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x, double y) {
    const Ball power = pow_ball<limbs_of_ball<Ball>>(magnitude_of(x), y);
    return (x < 0) & is_odd(y) ? negated(power) : power;
  }
  template <class R>
  REPDL_HD static R with_sign_of_base(R power, R x, R y) {
    return has_sign(x) & is_odd_whole(y) ? -power : power;
  }
};
template <>
struct body64<ops::pow> : by_formula<pow64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
