// erf x and erfc x, binary16, bfloat16 and binary32, correctly rounded.
//
// Method, for v = |x|, in binary64; rounded by the conversion, which also does subnormal results:
//   erf v = 1 - e^-c,  c = -ln(erfc v) = v q(v), one polynomial, since an error of c counts less the larger v is
//   erfc v = e^-v^2 g(y),  y = (v - 4) / (v + 4), after M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of
//     (1 + 2x) exp(x^2) erfc x in 0 <= x < oo", Math. Comp. 36 (1981);  erfc(-v) = 2 - erfc v
// v^2 is exact (48 bits).
//
// Domain: every input. v is cut down to 4, 1 - erf 4 < 2^-25.9, and to 10.125, erfc 10.125 < 2^-151: they round as every
// value beyond them does (2 - erfc v to 2). NaN is put back at the end.
//
// Error budget of erf, relative, u = 2^-53 (with or without FMA); an error of c counts c e^-c / (1 - e^-c) <= 1:
//   q, approximated by reference/gen/error_function.sollya; its constant q0          0.4 u
//   q's Horner steps, falling with v; v q                                            3   u
//   1 - e^-c (expm1.hpp)                                                             2.2 u
//   sum                                                                              5.6 u < 2^-50.5
// erf(+-0) = +-0 (c = 0). Near 0 the first line vanishes but for q0 (0.04 u).
//
// Error budget of erfc v, relative:
//   e^-v^2 (exp.hpp)                                                                 5.1 u
//   v - 4, v + 4: exact for v >= 2^-26; y: u, times |g'/g| < 2.3                     2.3 u
//   g, approximated by reference/gen/error_function.sollya                           0.5 u
//   g's Horner steps: the sum of its partial results, 3.3 g; twice without FMA       6.6 u
//   product                                                                          1   u
//   sum                                                                              15.5 u < 2^-49
// and less of 2 - erfc v.
// v < 2^-8, where that is not enough (0xb76c9f62): 1 - erf x, a sum rounded to odd; of erf x < 2^-7.8:
//   series cut after e5: v^6 / 42                                                    2^-53.3
//   its rounding: five steps                                                         5   u
//   sum                                                                              5.9 u, of the result < 2^-58
// At 0 the bit set gives 1 + 2^-52, which converts to 1.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary. So are all 2^16 inputs of the
// narrow formats.
#pragma once

#include "librepdl/num/dd_error_function.hpp"
#include "librepdl/num/multi_limb_error_function.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/expm1.hpp"

namespace repdl::ops {
struct erf;
struct erfc;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// -erf v, 0 <= v <= 4.
struct erf_core {
  // reference/gen/error_function.sollya
  static constexpr double q0 = 0x1.20dd750429b6dp0, q1 = 0x1.45f306dc9c8c4p-1, q2 = 0x1.a4f4e2a1aa8b6p-4,
                          q3 = -0x1.3966859088916p-6, q4 = -0x1.b6b6a35fa4246p-13, q5 = 0x1.bca6948a08f2fp-10,
                          q6 = -0x1.3566617b2b054p-11, q7 = 0x1.b2b03d9f8b10cp-16, q8 = 0x1.0e2229c83e3b6p-14,
                          q9 = -0x1.ef972a4d5ee45p-16, q10 = 0x1.a0f2a296a84c3p-19, q11 = 0x1.afe973c66f867p-19,
                          q12 = -0x1.1d6ff83220122p-19, q13 = 0x1.5a3e423bdad4cp-21, q14 = -0x1.045526b4193adp-24,
                          q15 = -0x1.592d947cb898ap-25, q16 = 0x1.9cb3f21a19ab4p-26, q17 = -0x1.f8aeb85d886a4p-28,
                          q18 = 0x1.9bba781b732f2p-30, q19 = -0x1.d13f9ae5f48cdp-33, q20 = 0x1.60f1e4602b98dp-36,
                          q21 = -0x1.455058e26c4ap-40, q22 = 0x1.143d26e548d9ap-45;

  REPDL_HD static double eval(double v) {
    double p = muladd(q22, v, q21);
    p = muladd(p, v, q20);
    p = muladd(p, v, q19);
    p = muladd(p, v, q18);
    p = muladd(p, v, q17);
    p = muladd(p, v, q16);
    p = muladd(p, v, q15);
    p = muladd(p, v, q14);
    p = muladd(p, v, q13);
    p = muladd(p, v, q12);
    p = muladd(p, v, q11);
    p = muladd(p, v, q10);
    p = muladd(p, v, q9);
    p = muladd(p, v, q8);
    p = muladd(p, v, q7);
    p = muladd(p, v, q6);
    p = muladd(p, v, q5);
    p = muladd(p, v, q4);
    p = muladd(p, v, q3);
    p = muladd(p, v, q2);
    p = muladd(p, v, q1);
    p = muladd(p, v, q0);
    return expm1_core::eval(-(v * p));
  }
};

// erfc v, 0 <= v <= 10.125.
struct erfc_core {
  // reference/gen/error_function.sollya
  static constexpr double g0 = 0x1.18932bf08e154p-3, g1 = -0x1.0949227374319p-2, g2 = 0x1.bff01a5f90886p-3,
                          g3 = -0x1.506666f69e5ffp-3, g4 = 0x1.be502c3657907p-4, g5 = -0x1.027d5744b2ff1p-4,
                          g6 = 0x1.0066e104af5a6p-5, g7 = -0x1.a4ded4163719ap-7, g8 = 0x1.0a17eb723017fp-8,
                          g9 = -0x1.a2f8faccdd6d9p-11, g10 = -0x1.6d19a34dc806ep-16, g11 = 0x1.4b4740034e686p-14,
                          g12 = -0x1.7a6ef617f8474p-16, g13 = -0x1.fe966b10ade79p-20, g14 = 0x1.8b7184e5fedffp-19,
                          g15 = -0x1.b9780f00e612fp-22, g16 = -0x1.36d14e7a69ca9p-22, g17 = 0x1.a1143ef35795dp-24,
                          g18 = 0x1.1c3e73600cdfdp-25, g19 = -0x1.72dea6f1b1436p-27, g20 = -0x1.082b6601c93e6p-28;

  REPDL_HD static double eval(double v) {
    const double y = (v - 4.0) / (v + 4.0);
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
    p = muladd(p, y, g0);
    return exp_core::eval(-(v * v)) * p;
  }
};

template <>
struct body<ops::erf> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double c = static_cast<double>(clamp_magnitude(float_of(bits_of(v) & 0x7fffffff), 4.0f));
    if constexpr (is_unpacked<T>) return v != v ? x : with_sign(round_no_midpoint<T>(erf_core::eval(c)), x);
    const auto r = to_bits(with_sign(narrow<T>(erf_core::eval(c)), x));
    return from_bits<T>(v != v ? format<T>::nan : r);
  }
};

template <>
struct body<ops::erfc> {
  // reference/gen/error_function.sollya
  static constexpr double e1 = 0x1.20dd750429b6dp0, e3 = -0x1.812746b0379e7p-2, e5 = 0x1.ce2f21a042be2p-4;

  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double m = static_cast<double>(clamp_magnitude(float_of(bits_of(v) & 0x7fffffff), 10.125f));
    const double tail = erfc_core::eval(m);
    const double far = v < 0 ? 2.0 - tail : tail;
    // Enough: all 2^16 inputs are compared, with FMA and without.
    if constexpr (is_unpacked<T>) return v != v ? T{v} : round_no_midpoint<T>(far);
    const double z = m * m;
    const dd sum = fast_two_sum(1.0, static_cast<double>(v) * muladd(muladd(-e5, z, -e3), z, -e1));
    const double near_zero = round_to_odd(sum.hi, sum.lo, 1);
    const auto r = to_bits(narrow<T>(m < 0x1p-8 ? near_zero : far));
    return from_bits<T>(v != v ? format<T>::nan : r);
  }
};

// Binary64. erf z, or F(z) = e^(z^2) erfc z with e^(-z^2) = m 2^k, z = |x|: dd_error_function.hpp. Its bounds have room for what z's own error, 8 u^2
// at most, makes of a function whose relative slope is at most 1.
template <class R>
struct error_terms {
  mask_of<R> near;  // erf
  dd_ball<R> value, signed_erf;
  REPDL_HD error_terms(double_word<R> z, R x) {
    const double_word<R> v = erf_or_scaled_erfc(z);
    near = z.hi < erf_end;
    value = {v.hi, v.lo, (near ? math<R>::all(0x1p-72) : math<R>::all(0x1p-69)) * magnitude_of(v.hi)};
    signed_erf = select(has_sign(x), negated(value), value);
  }
};
// |x| > 6: 1 - |erf x| < 2^-55. Transcendental for x != 0 (Siegel): no midpoints.
struct erf64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) <= 6) & (x != 0);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x == 0 ? x : copy_sign(math<R>::all(1), x);
    return x == x ? far : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const R z = magnitude_of(x);
    const error_terms<R> t({z, math<R>::all(0)}, z);
    decided_lanes<R> r;
    if constexpr (uses_tables) {
      // e^(-z^2) F(z) <= 0.216 errs by 2^-69.4 and 2^-69.5 of itself, and erf z >= 0.784 by 2^-70 of itself.
      const double_word<R> square = two_prod(z, z);
      const reduced_exponent<R> e = reduce_exponent(double_word<R>{-square.hi, -square.lo});
      const double_word<R> tail = product(exp_reduced<false>(e), value_of(t.value));
      const R s = power_of(e.k);
      const double_word<R> sum = fast_two_sum(math<R>::all(1), -(tail.hi * s));
      const double_word<R> far = fast_two_sum(sum.hi, sum.lo - tail.lo * s);
      const R hi = t.near ? t.value.hi : far.hi;
      r = round_ball(Ball{hi, t.near ? t.value.lo : far.lo, 0x1p-70 * hi});
    } else {
      const Ball far = number<Ball>(1) - exponential(negated(number<Ball>(z) * number<Ball>(z))) * t.value;
      r = round_ball(select(t.near, t.value, far));
    }
    return {copy_sign(r.value, x), static_cast<mask_of<R>>(r.decided & (z >= 0x1p-900))};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return error_function(number<Ball>(x));
  }
};
template <>
struct body64<ops::erf> : by_formula<erf64> {};

// |x| < 2^-60: 1; x < -6: 2 - 2^-55 or more; x > 27.3: e^(-x^2) / x < 2^-1075. Of x > 7/8 the power of 2 is left to rounding.
struct erfc64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x >= -6) & (x <= 27.3) & (magnitude_of(x) >= 0x1p-60);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R far = x > 0 ? math<R>::all(0) : math<R>::all(2);
    const R limit = magnitude_of(x) < 1 ? math<R>::all(1) : far;
    return x == x ? limit : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const R z = magnitude_of(x);
    const error_terms<R> t({z, math<R>::all(0)}, x);
    const scaled_ball<R> e = scaled_exponential(negated(number<Ball>(z) * number<Ball>(z)));
    const Ball tail = e.m * t.value;
    const R s = power_of(e.k < -200 ? math<R>::all(-200) : e.k);
    const Ball above = number<Ball>(2) - Ball{tail.hi * s, tail.lo * s, tail.error * s};
    const decided_lanes<R> sum = round_ball(select(t.near, number<Ball>(1) - t.signed_erf, above));
    const decided_lanes<R> scaled_tail = round_scaled(scaled(tail, 6), e.k - 6.0);
    const mask_of<R> is_tail = (t.near == 0) & (x > 0);
    return {is_tail ? scaled_tail.value : sum.value, is_tail ? scaled_tail.decided : sum.decided};
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return complementary_error_function(number<Ball>(x));
  }
};
template <>
struct body64<ops::erfc> : by_formula<erfc64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
