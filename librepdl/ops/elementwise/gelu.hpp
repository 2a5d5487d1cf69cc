// gelu x = x Phi(x), Phi the distribution function of the normal distribution, and its approximation
// gelu_tanh x = x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3); binary16, bfloat16 and binary32,
// correctly rounded.
//
// Method, for v = |x|, in binary64; rounded by the conversion, which also does subnormal results:
//   Phi(-v) = e^(-v^2/2) g(y),  y = (v - 5.75) / (v + 5.75), as erfc (error_function.hpp);  Phi(v) = 1 - Phi(-v)
//   2 u = v (a + b v^2), a = sqrt(8/pi), b = 0.044715 a, in double-double: e^-2u is relative to an error of 2 u <= 110
// v^2 is exact (48 bits).
//
// Domain: every input. Where they underflow v is cut down to 14.4375 and 10.875: the results there are below 2^-151 and
// round to -0, as every value beyond them does; for x > 0 Phi and 1 / (1 + e^-2u) are 1 there. NaN is put back at the end.
// v is cut up to 2^-40, as a factor of x no larger than it is. There the exact result is x/2 (1 + d), |d| < 2^-39, and d
// has the sign of x: for x/2 that is a number of the format, d does not count; where it is a midpoint (odd subnormal
// numbers), its sign decides, and the computed factor 1/2 -+ 2^-41.3 keeps it. (2^-40: f16's numbers are larger.)
//
// Error budget, relative, u = 2^-53 (with or without FMA):
//   gelu:
//     e^(-v^2/2) (exp.hpp)                                                           5.1 u
//     v - 5.75, v + 5.75: exact for v >= 2^-26; y: u, times |g'/g| < 2.3             2.3 u
//     g, approximated by reference/gen/gelu.sollya                                   0.9 u
//     g's Horner steps: the sum of its partial results, 3.3 g; twice without FMA     6.6 u
//     product; 1 - Phi(-v), times x                                                  3   u
//     sum                                                                            17.9 u < 2^-48.8
//   2^-40 < v < 2^-8, where that is not enough (gelu of 0x37b0a46f, gelu_tanh of 0xb7b0a46f): x/2 + v (Phi(v) - 1/2), and
//   so for 1 / (1 + e^-2u), a sum rounded to odd
//     series cut after the third term: v^6 / 60 of the second term                   2^-53.9
//     its rounding: five steps                                                       5   u
//     the second term is less than 2^-8.3 of the sum                                 < 2^-58.7
//   gelu_tanh:
//     2 u: a and b to 2^-106, three sums and products of low parts: 2^-102, times 110   < 0.01 u
//     e^-2u (exp.hpp)                                                                5.1 u
//     1 + e^-2u, product, quotient                                                   3   u
//     sum                                                                            8.2 u < 2^-49.9
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary. So are all 2^16 inputs of the
// narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/normal_distribution.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"

namespace repdl::ops {
struct gelu;
struct gelu_tanh;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// Phi(-v), 0 <= v <= 14.4375.
struct normal_tail_core {
  // reference/gen/gelu.sollya
  static constexpr double g0 = 0x1.1445a52cb7b7cp-4, g1 = -0x1.05a4d56a93e99p-3, g2 = 0x1.bbffff3057ca8p-4,
                          g3 = -0x1.5058d3703c213p-4, g4 = 0x1.c4128c0ae9e1dp-5, g5 = -0x1.0ab2470d1d897p-5,
                          g6 = 0x1.0f880bb6d5029p-6, g7 = -0x1.cf2b3ae173f93p-8, g8 = 0x1.3816d2ebef5f8p-9,
                          g9 = -0x1.1ca49bf3112d6p-11, g10 = 0x1.c6fdcbb10062dp-16, g11 = 0x1.3b91f786dfeabp-15,
                          g12 = -0x1.f062819335356p-17, g13 = 0x1.0c0834476a9cep-21, g14 = 0x1.88538b9fce96dp-20,
                          g15 = -0x1.a7a7b5332d591p-22, g16 = -0x1.a92f191e2365dp-24, g17 = 0x1.337b6e831fd79p-24,
                          g18 = 0x1.68a2a282cebap-27, g19 = -0x1.114d7f190b04bp-27, g20 = -0x1.0bbaec4568cb3p-29;

  // Phi(-v) = e^(-v^2/2) times that.
  REPDL_HD static double place(double v) { return (v - 5.75) / (v + 5.75); }
  REPDL_HD static double polynomial(double y) {
    double p = muladd(g20, y, g19);
    p = muladd(p, y, g18);
    p = muladd(p, y, g17);
    p = muladd(p, y, g16);
    p = muladd(p, y, g15);
    p = muladd(p, y, g14);
    p = muladd(p, y, g13);
    p = muladd(p, y, g12);
    p = muladd(p, y, g11);
    p = muladd(p, y, g10);
    p = muladd(p, y, g9);
    p = muladd(p, y, g8);
    p = muladd(p, y, g7);
    p = muladd(p, y, g6);
    p = muladd(p, y, g5);
    p = muladd(p, y, g4);
    p = muladd(p, y, g3);
    p = muladd(p, y, g2);
    p = muladd(p, y, g1);
    return muladd(p, y, g0);
  }
  REPDL_HD static double eval(double v) {
    const double p = polynomial(place(v));
    return exp_core::eval(-0.5 * (v * v)) * p;
  }
};

// |x| between 2^-40 and limit.
REPDL_HD double gelu_magnitude(float x, float limit) {
  const auto m = static_cast<std::int32_t>(bits_of(x) & 0x7fffffff);
  const auto low = static_cast<std::int32_t>(bits_of(0x1p-40f)), high = static_cast<std::int32_t>(bits_of(limit));
  const std::int32_t above = m > low ? m : low;
  return static_cast<double>(float_of(static_cast<std::uint32_t>(above < high ? above : high)));
}

// x/2 + v^2 (c1 + c3 v^2 + c5 v^4), v = |x|, rounded to odd.
REPDL_HD double gelu_near_zero(double x, double v, double c1, double c3, double c5) {
  const double z = v * v;
  const dd sum = fast_two_sum(0.5 * x, z * muladd(muladd(c5, z, c3), z, c1));
  return round_to_odd(sum.hi, sum.lo, 1);
}
REPDL_HD bool gelu_is_near_zero(double v) { return (v > 0x1p-40) & (v < 0x1p-8); }

template <>
struct body<ops::gelu> {
  // reference/gen/gelu.sollya
  static constexpr double d1 = 0x1.9884533d43651p-2, d3 = -0x1.1058377e2ceep-4, d5 = 0x1.46d04297691dap-7;

  template <class T>
  REPDL_HD static T eval(T x) {
    constexpr float limit = 14.4375f;
    const float v = widen_to_float(x);
    const double m = gelu_magnitude(v, limit);
    const double tail = normal_tail_core::eval(m);
    const double factor = static_cast<double>(v < -limit ? -limit : v);
    const double r = factor * (v < 0 ? tail : 1.0 - tail);
    if constexpr (is_unpacked<T>) return narrow<T>(r);  // enough: all 2^16 inputs are compared, with FMA and without
    const double near_zero = gelu_near_zero(factor, m, d1, d3, d5);
    return from_bits<T>(v != v ? format<T>::nan : to_bits(narrow<T>(gelu_is_near_zero(m) ? near_zero : r)));
  }
};

template <>
struct body<ops::gelu_tanh> {
  // reference/gen/gelu.sollya
  static constexpr double t1 = 0x1.9884533d43651p-2, t3 = -0x1.11b14cd36944fp-4, t5 = 0x1.4e48dd11e1651p-7;
  static constexpr dd a = {0x1.9884533d43651p0, -0x1.cbc0d30ebfd15p-54},
                      b = {0x1.2444f2a4d8b4bp-4, -0x1.6c843a29d1c7p-61};
  template <class T>
  REPDL_HD static T eval(T x) {
    constexpr float limit = 10.875f;
    const float v = widen_to_float(x);
    const double m = gelu_magnitude(v, limit);
    const double square = m * m;
    const dd cubic = two_prod(square, b.hi);
    const dd factor = two_sum(a.hi, cubic.hi);
    const double factor_lo = factor.lo + (muladd(square, b.lo, cubic.lo) + a.lo);
    const dd w = two_prod(m, factor.hi);
    const double e = exp_core::eval(-w.hi, -muladd(m, factor_lo, w.lo));
    const double c = static_cast<double>(v < -limit ? -limit : v);
    const double r = c * (v < 0 ? e : 1.0) / (1.0 + e);
    if constexpr (is_unpacked<T>) return narrow<T>(r);  // enough: all 2^16 inputs are compared, with FMA and without
    const double near_zero = gelu_near_zero(c, m, t1, t3, t5);
    return from_bits<T>(v != v ? format<T>::nan : to_bits(narrow<T>(gelu_is_near_zero(m) ? near_zero : r)));
  }
};

// Binary64: x / (1 + e^-w), w = x (a + b x^2). x > 8: e^-w < 2^-70, and it rounds to x. x < -21.6: |x| e^w < 2^-1075.
// |x| < 2^-60: x/2 + x w/4 - ..., more than x/2.
struct gelu_tanh64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 8) & (x >= -21.6) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R above = x > 1 ? x : half_beside(x, static_cast<mask_of<R>>(x == x));
    const R far = x < -1 ? math<R>::all(-0.0) : x == 0 ? x : above;
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    return round_logistic(x, exponent<dd_ball<R>>(x, 1));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return logistic_product(x, exponent<Ball>(x, 1));
  }
  // x (a + times b x^2)
  template <class Ball, class R>
  REPDL_HD static Ball exponent(R x, double times) {
    const Ball v = number<Ball>(x);
    if constexpr (is_multi_limb<Ball>) {
      const Ball square = number<Ball>(44715 * times) * v * v / number<Ball>(1000000);
      return square_root(number<Ball>(4) / half_pi<Ball>()) * v * (number<Ball>(1) + square);
    } else {
      using narrow_body = body<ops::gelu_tanh>;
      const Ball cubic = constant<Ball>(narrow_body::b) * (v * v) * number<Ball>(times);
      return v * (constant<Ball>(narrow_body::a) + cubic);
    }
  }
};
template <>
struct body64<ops::gelu_tanh> : by_formula<gelu_tanh64> {};

// Binary64. x > 8.5: Phi(-x) < 2^-55, and x; x < -38.6: less than 2^-1075. Next to x / 2, which the value is above, as silu64.
struct gelu64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x <= 8.5) & (x >= -38.6) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x < 0 ? math<R>::all(-0.0) : x;
    const R near = x == 0 ? x : half_beside(x, static_cast<mask_of<R>>(x == x));
    const R limit = magnitude_of(x) < 1 ? near : far;
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const normal_terms<R> n(x);
    const Ball half_tail = scaled(n.t.value, -1);
    const Ball phi = select(n.t.near, n.near(), number<Ball>(1) - n.density() * half_tail);
    const mask_of<R> is_tail = (n.t.near == 0) & (x < 0);
    const Ball value = number<Ball>(magnitude_of(x)) * select(is_tail, n.e.m * half_tail, phi);
    const decided_lanes<R> far = round_scaled(value, is_tail ? n.e.k : math<R>::all(0));
    const decided_lanes<R> near = round_ball(value);
    return {copy_sign(is_tail ? far.value : near.value, x), is_tail ? far.decided : near.decided};
  }
  template <class Ball>
  REPDL_HD static auto formula(double x) {
    constexpr int L = limbs_of_ball<Ball>;
    return beside<L>{number<L>(x) * normal_distribution<L>(x), scaled(number<L>(x), -1), 1};
  }
};
template <>
struct body64<ops::gelu> : by_formula<gelu64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
