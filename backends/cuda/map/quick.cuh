// Quick bodies: what a CUDA thread tries first for functions of one binary32 number. A value in binary64 and a bound of its
// error, so short that memory stays the limit; a test for midpoints; where the test fails, in one element of thousands, or
// the result may not be a normal number, the body proper (librepdl/ops) decides. The bits are the body's: the test is a proof
// by the bounds below, and certificates compare every input on the GPU.
//
// What is saved: IEEE divisions (a reciprocal's seed and one cubic step instead), coefficients (the test forgives errors of
// 2^-42), and operations on 64-bit integers, which take two instructions here.
//
// The test. v has an error below 2^W ulps of binary64, W <= 16, and the result is a normal number. Midpoints between
// binary32 numbers end in a 1 and 28 zeros: v is within 2^W ulps of one only if its last 29 bits, less 2^28, are within
// [-2^W, 2^W] modulo 2^29. Otherwise no midpoint lies between v and the exact value, and v rounds as that does. At a power of
// two the next midpoint below is 2^27 of the smaller ulps away.
//
// Bounds: u = 2^-53, every multiply-add fused.
#pragma once

#include "librepdl/ops/exp.hpp"

namespace repdl::cuda {

// The bodies that there are: covers(x), where eval(x) is within 2^log2_ulps ulps and the result is normal. The result is
// finish(y, x), y = eval(x) rounded, where there is such a function.
template <class Op>
struct quick;
template <class Op>
concept has_quick = requires(float x) {
  quick<Op>::eval(x);
};

template <int Log2Ulps>
__device__ inline bool rounds_surely(double v) {
  static_assert(Log2Ulps <= 16);
  constexpr std::uint32_t width = 1u << Log2Ulps;
  const auto low = static_cast<std::uint32_t>(__double2loint(v));
  return ((low + (width - (1u << 28))) & 0x1fffffffu) > 2 * width;
}

template <class Op>
__device__ inline num::tentative<float> quick_eval(float x) {
  const double v = quick<Op>::eval(x);
  const bool sure = quick<Op>::covers(x) && rounds_surely<quick<Op>::log2_ulps>(v);
  const auto y = static_cast<float>(v);
  if constexpr (requires { quick<Op>::finish(y, x); }) {
    return {quick<Op>::finish(y, x), sure};
  } else {
    return {y, sure};
  }
}

// 1/d, and a/d, for normal d with normal 1/d. The seed's error is e, |e| < 2^-19 (PTX says "gross"; all 2^20 seeds of an
// H200: 2^-20.0): 1/d = y (1 + e + e^2 + ...), so that the step leaves e^3 < 2^-57. reciprocal: the last addition, 1.1 u.
// quotient: q = a y is rounded, too, 2.1 u.
__device__ inline double reciprocal_seed(double d) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  return y;
}
__device__ inline double reciprocal(double d) {
  const double y = reciprocal_seed(d);
  const double e = num::fma(-d, y, 1.0);
  return num::fma(y, num::fma(e, e, e), y);
}
__device__ inline double quotient(double a, double d) {
  const double y = reciprocal_seed(d);
  const double e = num::fma(-d, y, 1.0);
  const double q = a * y;
  return num::fma(q, num::fma(e, e, e), q);
}

// e^x = 2^k e^r, k = an integer next to x / ln2, |x| <= 105 where the caller makes use of it.
struct quick_exp {
  // reference/gen/quick.sollya: (e^r - 1 - r) / r^2
  static constexpr double c2 = 0x1.ffffffffee9c1p-2, c3 = 0x1.555555554c91ap-3, c4 = 0x1.555555819a334p-5,
                          c5 = 0x1.1111112faaefep-7, c6 = 0x1.6c1635ce3cc6bp-10, c7 = 0x1.a0196e21c0017p-13,
                          c8 = 0x1.a1747c85b52fdp-16, c9 = 0x1.7307e0a55fabbp-19;
  static constexpr double ln2 = 0x1.62e42fefa39efp-1;  // RN(ln 2), below it by less than 2^-55.4

  double r;
  int k;

  // The product k ln2 is off by |k| 2^-55.4, and r's rounding by 2^-55: less than 2^-46.9 for |k| <= 151, and less than
  // 2^-50 for |k| <= 29.
  __device__ explicit quick_exp(double x) {
    const double t = num::fma(x, num::exp_core::log2e, num::exp_core::shifter);
    r = num::fma(t - num::exp_core::shifter, -ln2, x);
    k = __double2loint(t);
  }
  __device__ double tail() const {  // (e^r - 1 - r) / r^2
    double p = num::fma(c9, r, c8);
    p = num::fma(p, r, c7);
    p = num::fma(p, r, c6);
    p = num::fma(p, r, c5);
    p = num::fma(p, r, c4);
    p = num::fma(p, r, c3);
    return num::fma(p, r, c2);
  }
  // Relative error: the polynomial 2^-45.3, r 2^-46.9, steps 2.2 u; below 2^-44.8, 2^8.2 ulps.
  __device__ double value() const {
    const double p = num::fma(num::fma(tail(), r, 1.0), r, 1.0);
    return __hiloint2double(__double2hiint(p) + (k << 20), __double2loint(p));
  }
  // d = 2^k (e^r - 1) + (2^k - 1), as in expm1.hpp. Relative error:
  //   e^r - 1 relative to itself: the polynomial 2^-42.3, steps 2 u                  2^-42.2
  //   |e^r - 1| 2^k / |d| <= 1.42                                                    2^-41.7
  //   r, where k is not 0: 2^-50 for |k| <= 29, 2^k / |d| <= 4.9; beyond, 2^-47.9     2^-47.6
  //   sums: 2.2 u                                                                    2^-51.8
  //   sum                                                                            2^-41.6, 2^11.4 ulps
  __device__ double minus_one() const {
    const double p = num::fma(tail(), r * r, r);
    const double power = __hiloint2double((k << 20) + 0x3ff00000, 0);
    return num::fma(power, p, power - 1.0);
  }
};

template <>
struct quick<ops::exp> {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }  // 2^-125.6 < e^x < 2^125.6
  __device__ static double eval(float x) { return quick_exp(x).value(); }
};

// 1 / (1 + e^-x): e^-x counts e^-x / (1 + e^-x) < 1 of its 2^-44.8; a sum and a reciprocal, 2.1 u.
template <>
struct quick<ops::sigmoid> {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }  // e^-87 is normal
  __device__ static double eval(float x) { return reciprocal(1.0 + quick_exp(-static_cast<double>(x)).value()); }
};

// d / (d + 2), d = e^(2|x|) - 1: d counts 2 / (d + 2) < 1 of its 2^-41.6; sum and quotient 3.1 u. Below 2^-41.5, 2^11.5 ulps.
// Subnormal x: v is within 2^-41.5 x of x, whose last 29 bits in binary64 are 0: sure, and x is the result.
template <>
struct quick<ops::tanh> {
  static constexpr int log2_ulps = 12;
  __device__ static bool covers(float x) { return x == x; }
  __device__ static double eval(float x) {
    const float m = fminf(fabsf(x), 10.0f);
    const double d = quick_exp(m + m).minus_one();
    return quotient(d, d + 2.0);
  }
  __device__ static float finish(float y, float x) { return copysignf(y, x); }
};

// x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt 2 up to 2^-20, cut by the high words; ln(1 + f) = w + w z L(z),
// w = 2 f / (2 + f) = f / (1 + f/2), z = w^2, L(z) = 1/12 + z/80 + ...
//   the polynomial, relative to w                                                    2^-43.1
//   w: 1 + f/2, exact or u; 2.1 u. z, w z L, their sum: 2.2 u                         2^-50
// in all below 2^-42.9 of ln(1 + f): 2^10.2 ulps.
struct quick_log {
  // reference/gen/quick.sollya
  static constexpr double l0 = 0x1.55555555651e2p-4, l1 = 0x1.999998c93a238p-7, l2 = 0x1.249325106da85p-9,
                          l3 = 0x1.c67a5a58e055ap-12, l4 = 0x1.8c9491680e9b1p-14;

  double e;
  double f;

  __device__ explicit quick_log(double x) {                  // positive, normal
    constexpr int one = 0x3ff00000, sqrt_half = 0x3fe6a09e;  // the high words of 1 and sqrt(1/2)
    const int high = __double2hiint(x);
    const int biased = high + (one - sqrt_half);
    e = __hiloint2double(0x43300000, biased >> 20) - 0x1.00000000003ffp52;
    f = __hiloint2double(high - ((biased & 0x7ff00000) - one), __double2loint(x)) - 1.0;
  }
  // Of 1 + y: where e = 0, f is y, not what 1 + y left of it. Elsewhere |y| > 0.29: 1 + y is rounded by u at most.
  __device__ static quick_log of_one_plus(double y) {
    quick_log l(1.0 + y);
    l.f = l.e == 0 ? y : l.f;
    return l;
  }
  __device__ double rest() const {  // ln(1 + f)
    const double w = quotient(f, num::fma(f, 0.5, 1.0));
    const double z = w * w;
    double p = num::fma(l4, z, l3);
    p = num::fma(p, z, l2);
    p = num::fma(p, z, l1);
    p = num::fma(p, z, l0);
    return num::fma(p * z, w, w);
  }
  // e ln2 is off by |e| 2^-55.4, the sum by u; if e is not 0, |ln x| > 0.34 |e|: 2^-51 of it.
  __device__ double value() const { return num::fma(e, quick_exp::ln2, rest()); }
};

// NaN for x < 0, which may be many of the elements; 0, infinities and NaN are left to the body. A logarithm is 0 or at least
// 2^-25 in magnitude.
struct quick_logarithm {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return x < __int_as_float(0x7f800000) && x != 0; }
  __device__ static float finish(float y, float x) { return x < 0 ? __int_as_float(0x7fc00000) : y; }
};
template <>
struct quick<ops::log> : quick_logarithm {
  __device__ static double eval(float x) { return quick_log(fabsf(x)).value(); }
};

template <>
struct quick<ops::log2> : quick_logarithm {
  static constexpr double log2e = 0x1.71547652b82fep0;
  __device__ static double eval(float x) {
    const quick_log l(fabsf(x));
    return num::fma(l.rest(), log2e, l.e);
  }
};
template <>
struct quick<ops::log10> : quick_logarithm {
  static constexpr double log10_2 = 0x1.34413509f79ffp-2, log10e = 0x1.bcb7b1526e50ep-2;
  __device__ static double eval(float x) {
    const quick_log l(fabsf(x));
    return num::fma(l.e, log10_2, l.rest() * log10e);
  }
};
template <>
struct quick<ops::log1p> {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return x > -1 && x < __int_as_float(0x7f800000); }
  __device__ static double eval(float x) { return quick_log::of_one_plus(x).value(); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
};
// -ln(1 + e^-x): the exponential counts at most its 2^-44.8; with the logarithm below 2^-42.6.
template <>
struct quick<ops::log_sigmoid> {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }
  __device__ static double eval(float x) {
    return -quick_log::of_one_plus(quick_exp(-static_cast<double>(x)).value()).value();
  }
};

// 2^x = 2^k e^(f ln 2), f = x - k, exact; the product with ln 2: u.
template <>
struct quick<ops::exp2> {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 126.0f; }
  __device__ static double eval(float x) {
    const double t = static_cast<double>(x) + num::exp_core::shifter;
    quick_exp e(0.0);
    e.k = __double2loint(t);
    e.r = (static_cast<double>(x) - (t - num::exp_core::shifter)) * quick_exp::ln2;
    return e.value();
  }
};
template <>
struct quick<ops::expm1> {
  static constexpr int log2_ulps = 12;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }
  __device__ static double eval(float x) { return quick_exp(x).minus_one(); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
};

// x / (1 + e^-x): the exponential's share is at most its 2^-44.8; a sum and a quotient, 3.1 u. From 2^-100 on the result is
// normal.
template <>
struct quick<ops::silu> {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 80.0f && (fabsf(x) > 0x1p-100f || x == 0); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) { return quotient(x, 1.0 + quick_exp(-static_cast<double>(x)).value()); }
};
// x n / (n + 2), n = e^x (e^x + 2): 2^-43.8, of which 2 / (n + 2) counts.
template <>
struct quick<ops::mish> {
  static constexpr int log2_ulps = 10;
  __device__ static bool covers(float x) { return fabsf(x) < 80.0f && (fabsf(x) > 0x1p-100f || x == 0); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) {
    const double e = quick_exp(x).value();
    const double n = e * (e + 2.0);
    return quotient(static_cast<double>(x) * n, n + 2.0);
  }
};
// s x, or s a (e^x - 1) as in expm1; from -80 down that is what it is at -80.
template <>
struct quick<ops::selu> {
  static constexpr int log2_ulps = 12;
  static constexpr double scale = 0x1.0cfabd6a91132p0, product = 0x1.c212cc640f031p0;
  __device__ static bool covers(float x) { return fabsf(x) > 0x1p-100f || x == 0; }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) {
    const double negative = product * quick_exp(fminf(fmaxf(x, -80.0f), 80.0f)).minus_one();
    return x > 0 ? scale * static_cast<double>(x) : negative;
  }
};
// 1 + |x| is rounded by u, the quotient 2.1 u.
template <>
struct quick<ops::softsign> {
  static constexpr int log2_ulps = 3;
  __device__ static bool covers(float x) { return fabsf(x) < __int_as_float(0x7f800000); }
  __device__ static double eval(float x) { return quotient(x, 1.0 + static_cast<double>(fabsf(x))); }
};
// y = s (1 + e/2 + 3/8 e^2), e = 1 - x s^2, |e| < 2^-18 of the seed s: the series leaves e^3 < 2^-54; 3 u.
template <>
struct quick<ops::rsqrt> {
  static constexpr int log2_ulps = 4;
  __device__ static bool covers(float x) { return x > 0 && x < __int_as_float(0x7f800000); }
  __device__ static double eval(float x) {
    const double d = static_cast<double>(x);
    double s;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(s) : "d"(d));
    const double e = num::fma(-(d * s), s, 1.0);
    return num::fma(num::fma(e, 0.375, 0.5) * e, s, s);
  }
};

}  // namespace repdl::cuda
