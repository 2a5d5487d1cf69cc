// log2(x), log10(x) and log1p(x) = ln(1 + x), binary16, bfloat16 and binary32, correctly rounded; the core of all logarithms
// but binary32's log (log.hpp).
//
// Method: without division or table. After the reduction one polynomial of 1 + f; the last sum is rounded to odd (eft.hpp)
// except in base 2, where binary64's rounding suffices.
//
// Domain: x > 0 finite (log1p: 1 + x), as a binary64 number; log(+-0) = -inf, log(x < 0) = NaN, log(inf) = inf, put in at
// the end. A zero of log1p, and every other result, has the sign of x.
//
// Range reduction, L = ln b:  x = 2^k m,  lo = 2^(-1/4) <= m < 2 lo;  above s = 2^(1/4) m is multiplied by c, next to
//                   sqrt(1/2), else by 1, and  1 + f = c m,  -0.162 < f < 0.195
//                   log x = (k unit_hi + h) + k unit_lo + ln(1 + f)/L,  h = -ln c / L, or 0
// - c has 20 bits, so that c m and f are exact for m of 33 bits: binary32 numbers, and their sums with 1 below 2^32. Beyond,
//   their rounding is 2^-54 beside 22.
// - ln c / L lies next to a multiple of unit_hi's last place, which serves for it (Gal's tables, of one entry): head = k
//   unit_hi + h is exact, 45 bits and |k| < 2^8. So a fused and an unfused multiply-add give the same.
// - log1p: 1 + x is exact for 1/8 <= |x| < 2^52, for larger x its rounding is 2^-53 beside 36. Where |x| < 1/8, k = 0, m is
//   not multiplied, and f is x instead of RN(1 + x) - 1.
//
// Error budget, u = 2^-53 (with or without FMA); log = head + tail + c1 f + f^2 q, |f^2 q| < 0.02/L:
//   base e, absolute (c1 f = f is exact, and so is its sum with head: head = 0, or |head| > 0.34 > |f|):
//     polynomial, certified by reference/gen/logarithms.sollya: 0x1.2bp-56 of 0.18   2^-58.2
//     h                                                                              2^-58.4
//     q (two roundings of 0.56), times f^2                                           2^-57.7
//     f^2, its product and sum with q, tail                                          2^-57.4
//     the sum with the low part of head + f                                          2^-58
//     sum                                                                            < 2^-55.5
//     Where head != 0, the result is above 0.159. Else the errors are f^2 q's, relative to it 4 u, and the polynomial's:
//     relative to the result < 0.6 u.
//   base 2 and 10, relative to ln(1 + f)/L:
//     polynomial 0x1.43p-55, c1 f + f^2 q (two roundings, and 4 u of f^2 q)          < 2.9 u
//     h, absolute                                                                    < 2^-59.5
//   where head != 0 |ln(1 + f)/L| is less than 1.1 of the result, else it is the result
//   the last sum: 1 u in base 2; else rounding to odd adds less than 2 u, and nothing where an end of the interval is a
//   midpoint.
//
// Exact results, log2 of 2^k and log10 of 10^n: 2^k has f = 0, that is k exactly, or in base 10 a number that is no
// midpoint's neighbour; the others are nearer than half an ulp to the integer. Tiny x in log1p: x - x^2/2 + ... is next to x.
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary, and over all 2^16 inputs of
// the narrow formats.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::ops {
struct log2;
struct log10;
struct log1p;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// reference/gen/logarithms.sollya
struct base_e {
  static constexpr double unit_hi = 0x1.62e42fefa3ap-1, unit_lo = -0x1.0ca86c3898dp-49;
  static constexpr double c = 0x1.69a04p-1, h = 0x1.640f2e5bebep-2;
  static constexpr double c1 = 1, c2 = -0x1.0000000000003p-1, c3 = 0x1.55555555552dep-2, c4 = -0x1.fffffffffb432p-3,
                          c5 = 0x1.9999999a780d4p-3, c6 = -0x1.5555555d53fc6p-3, c7 = 0x1.2492485517fb8p-3,
                          c8 = -0x1.fffff423f1104p-4, c9 = 0x1.c71d21eadeb41p-4, c10 = -0x1.999e240782f82p-4,
                          c11 = 0x1.74381282c904fp-4, c12 = -0x1.546671526d109p-4, c13 = 0x1.3eaf6d95697f7p-4,
                          c14 = -0x1.3d6d6c2a577dep-4, c15 = 0x1.ef179ecc8bcbcp-5;
};
struct base_2 {
  static constexpr double unit_hi = 1, unit_lo = 0;
  static constexpr double c = 0x1.6bbf6p-1, h = 0x1.f90b0ed6892p-2;
  static constexpr double c1 = 0x1.71547652b82fep0, c2 = -0x1.71547652b8301p-1, c3 = 0x1.ec709dc3a0108p-2,
                          c4 = -0x1.71547652b64e2p-2, c5 = 0x1.2776c50fa275ap-2, c6 = -0x1.ec709dca5b7f6p-3,
                          c7 = 0x1.a6176159184cfp-3, c8 = -0x1.715470a54b406p-3, c9 = 0x1.484ba66ee4271p-3,
                          c10 = -0x1.27793f412c59bp-3, c11 = 0x1.0c7ade8319939p-3, c12 = -0x1.eb4cf7262da9fp-4,
                          c13 = 0x1.ccf689636baadp-4, c14 = -0x1.c759258df51afp-4, c15 = 0x1.56beb20135dabp-4;
};
struct base_10 {
  static constexpr double unit_hi = 0x1.34413509f7ap-2, unit_lo = -0x1.0cee0ed4ca7e9p-54;
  static constexpr double c = 0x1.68f8p-1, h = 0x1.36e31ad122cp-3;
  static constexpr double c1 = 0x1.bcb7b1526e50ep-2, c2 = -0x1.bcb7b1526e519p-3, c3 = 0x1.287a7636f42dp-3,
                          c4 = -0x1.bcb7b15267c25p-4, c5 = 0x1.63c62775a8438p-4, c6 = -0x1.287a764098d8ep-4,
                          c7 = 0x1.fc3fa4f42ee3cp-5, c8 = -0x1.bcb7a458f224bp-5, c9 = 0x1.8b4e74edb49cap-5,
                          c10 = -0x1.63cac2225e5a5p-5, c11 = 0x1.43527d7a003cbp-5, c12 = -0x1.27969860f86f5p-5,
                          c13 = 0x1.145ca1af0ae83p-5, c14 = -0x1.14ab5b9837b3cp-5, c15 = 0x1.b7e3ec41dd09fp-6;
};

template <class Base>
struct log_core {
  static constexpr std::uint64_t one = 0x3ff0000000000000, lo_bits = 0x3feae89f995ad3ad;
  static constexpr double lo = 0x1.ae89f995ad3adp-1, split = 0x1.306fe0a31b715p0;  // RN(2^(-1/4)), RN(2^(1/4))

  // log x = head + tail + log(1 + f)
  struct reduced {
    double head, tail, f;
  };
  REPDL_HD static reduced reduce(double x) {
    const std::uint64_t u = bits_of(x);
    const std::uint64_t biased = (u + (one - lo_bits)) >> 52;
    // biased = k + 1023 < 2^52: under the exponent of 2^52 it is 2^52 + biased.
    const double k = double_of(biased | 0x4330000000000000) - 0x1.00000000003ffp52;
    const double m = double_of(u - (biased << 52) + one);
    const bool upper = m > split;
    return {muladd(k, Base::unit_hi, upper ? Base::h : 0.0), k * Base::unit_lo, muladd(m, upper ? Base::c : 1.0, -1.0)};
  }

  // q: (log(1 + f) - c1 f) / f^2
  // For unpacked T without the last five terms: all 2^16 inputs are compared, with FMA and without.
  template <class T = float>
  REPDL_HD static double after_first(double f) {
    double p = Base::c10;
    if constexpr (!is_unpacked<T>) {
      p = muladd(Base::c15, f, Base::c14);
      p = muladd(p, f, Base::c13);
      p = muladd(p, f, Base::c12);
      p = muladd(p, f, Base::c11);
      p = muladd(p, f, Base::c10);
    }
    p = muladd(p, f, Base::c9);
    p = muladd(p, f, Base::c8);
    p = muladd(p, f, Base::c7);
    p = muladd(p, f, Base::c6);
    p = muladd(p, f, Base::c5);
    p = muladd(p, f, Base::c4);
    p = muladd(p, f, Base::c3);
    p = muladd(p, f, Base::c2);
    return p;
  }

  // log x, a normalised sum.
  template <class T = float>
  REPDL_HD static dd sum(const reduced& r) {
    const double square = r.f * r.f;
    if constexpr (Base::c1 == 1) {
      const dd first = fast_two_sum(r.head, r.f);
      return fast_two_sum(first.hi, first.lo + muladd(after_first<T>(r.f), square, r.tail));
    } else {
      return fast_two_sum(r.head, muladd(after_first<T>(r.f), square, muladd(Base::c1, r.f, r.tail)));
    }
  }

  // log(1 + x), x > -1 of binary64.
  REPDL_HD static double of_more(double x) {
    reduced r = reduce(1.0 + x);
    r.f = magnitude_of(x) < 0.125 ? x : r.f;
    return sum(r).hi;
  }
};

// RN_T(v), v = log(x - pole) for x > pole; -inf at the pole and NaN below it.
template <class T>
REPDL_HD T with_pole(float x, float pole, double v) {
  storage_of<T> r = to_bits(round_no_midpoint<T>(v));
  r = bits_of(x) == format<float>::infinity ? format<T>::infinity : r;
  r = x == pole ? static_cast<storage_of<T>>(format<T>::infinity | sign_mask<T>) : r;
  return from_bits<T>(x >= pole ? r : format<T>::nan);
}

template <>
struct body<ops::log2> {
  template <class T>
  REPDL_HD static T eval(T x) {
    using log = log_core<base_2>;
    const float v = widen_to_float(x);
    return with_pole<T>(v, 0, log::sum<T>(log::reduce(static_cast<double>(v))).hi);
  }
};

template <>
struct body<ops::log10> {
  template <class T>
  REPDL_HD static T eval(T x) {
    using log = log_core<base_10>;
    const float v = widen_to_float(x);
    const dd y = log::sum<T>(log::reduce(static_cast<double>(v)));
    return with_pole<T>(v, 0, round_to_odd(y.hi, y.lo, 1));
  }
};

template <>
struct body<ops::log1p> {
  template <class T>
  REPDL_HD static T eval(T x) {
    using log = log_core<base_e>;
    const float v = widen_to_float(x);
    const double d = static_cast<double>(v + 0.0f);  // +0 for -0, which round_to_odd would not take
    log::reduced r = log::reduce(1.0 + d);
    r.f = double_of(bits_of(d) & 0x7fffffffffffffff) < 0.125 ? d : r.f;
    const dd y = log::sum<T>(r);
    const double odd = round_to_odd(y.hi, y.lo, 1);
    return with_pole<T>(v, -1,
                        double_of((bits_of(odd) & 0x7fffffffffffffff) | (bits_of(widen(x)) & 0x8000000000000000)));
  }
};

// Binary64. Subnormal numbers are multiplied by 2^54 first.
template <class R>
struct logarithm64_parts {
  R k;
  dd_ball<R> log;  // ln(1 + f), x = 2^k (1 + f)
};
template <class R>
REPDL_HD reduced_logarithm<R> reduce_any_logarithm(R x) {
  const mask_of<R> subnormal = x < 0x1p-1022;
  reduced_logarithm<R> a = reduce_logarithm(double_word<R>{subnormal ? 0x1p54 * x : x, math<R>::all(0)});
  a.k = subnormal ? a.k - 54 : a.k;
  return a;
}
template <class R>
REPDL_HD logarithm64_parts<R> logarithm64_of(R x) {
  const reduced_logarithm<R> a = reduce_any_logarithm(x);
  return {a.k, logarithm_without_power(a)};
}
// What a logarithm is where it is not plain: of x < 0 and NaN NaN, of 0 and infinity an infinity, of 1 0.
struct logarithm64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x > 0) & (x < infinity) & (x != 1);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x == 0 ? math<R>::all(-infinity) : x == 1 ? math<R>::all(0) : x;
    return x >= 0 ? limit : nan_of<R>();
  }
};
// log2 x and log10 x are rational for powers of 2 and of 10 only, then whole numbers, which balls decide: no midpoints.
struct log2_64 : logarithm64 {
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    const logarithm64_parts<R> a = logarithm64_of(x);
    return round_ball(number<dd_ball<R>>(a.k) + a.log * constant<dd_ball<R>>(dd_log2_e));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return logarithm(number<Ball>(x)) / ln2<Ball>();
  }
};
template <>
struct body64<ops::log2> : by_formula<log2_64> {};
struct log10_64 : logarithm64 {
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const logarithm64_parts<R> a = logarithm64_of(x);
    return round_ball(number<Ball>(a.k) * constant<Ball>(dd_log10_2) + a.log * constant<Ball>(dd_log10_e));
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    return logarithm(number<Ball>(x)) * inverse_ln10<Ball>();
  }
};
template <>
struct body64<ops::log10> : by_formula<log10_64> {};

// Of |x| < 2^-54, x - x^2/2 + ... rounds to x, as in expm1.hpp. Elsewhere transcendental.
struct log1p_64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (x > -1) & (x < infinity) & (magnitude_of(x) >= 0x1p-54);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R limit = x == -1 ? math<R>::all(-infinity) : x;
    return x >= -1 ? limit : nan_of<R>();
  }
  template <class Ball, class R>
  REPDL_HD static Ball formula(R x) {
    return logarithm_1p(number<Ball>(x));
  }
};
template <>
struct body64<ops::log1p> : by_formula<log1p_64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
