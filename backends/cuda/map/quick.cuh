// Quick bodies: what a CUDA thread tries first for functions of one binary32 number. A value in binary64 and a bound of its
// error, so short that memory stays the limit; a test for midpoints; where the test fails, in one element of thousands, or
// the result may not be a normal number, the body proper (librepdl/ops) decides. The bits are the body's: the test is a proof
// by the bounds below, and certificates compare every input on the GPU.
//
// What is saved: IEEE divisions (a reciprocal's seed and one cubic step instead), coefficients (the test forgives errors of
// 2^-42), and operations on 64-bit integers, which take two instructions here.
//
// The test. v has an error below w ulps of binary64, and the result is a normal number. Midpoints between binary32 numbers end in a 1
// and 28 zeros: v is within w ulps of one only if its last 29 bits, less 2^28, are within [-w, w] modulo 2^29. Otherwise no midpoint
// lies between v and the exact value, and v rounds as that does. At a power of two the next midpoint below is 2^27 of the smaller ulps
// away. Those 29 bits are moved to the end of a register: it counts eighths of ulps, modulo 2^32.
//
// Operands of f16 and bf16 are computed with in binary32, in bodies of several numbers, which give two ends around the exact value:
// if they round alike, it does. Operands are there 0 or between 2^-30 and 2^30 in magnitude, and bodies bound options and
// exponents: nothing underflows, and what is 0 is exactly that, or the exact value's sign is left undecided by ends of either sign.
//
// What a thread asks about an element is joined by & and |: && and || are branches here, which keep its elements from being computed
// side by side.
//
// Bounds: u = 2^-53, in binary32 u = 2^-24; every multiply-add fused.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/activation.hpp"
#include "librepdl/ops/elementwise/error_function.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/exp2.hpp"
#include "librepdl/ops/elementwise/expm1.hpp"
#include "librepdl/ops/elementwise/gelu.hpp"
#include "librepdl/ops/elementwise/log.hpp"
#include "librepdl/ops/elementwise/log_sigmoid.hpp"
#include "librepdl/ops/elementwise/logarithm.hpp"
#include "librepdl/ops/elementwise/mish.hpp"
#include "librepdl/ops/elementwise/rsqrt.hpp"
#include "librepdl/ops/elementwise/selu.hpp"
#include "librepdl/ops/elementwise/sigmoid.hpp"
#include "librepdl/ops/elementwise/silu.hpp"
#include "librepdl/ops/elementwise/tanh.hpp"

namespace repdl::cuda {
namespace {

// Numbers of 64 bits in constant memory are operands of an instruction; written into the code they take two more.
__constant__ double exp_tail[] = {0x1.ffffffffee9c1p-2,  0x1.555555554c91ap-3,  0x1.555555819a334p-5,
                                  0x1.1111112faaefep-7,  0x1.6c1635ce3cc6bp-10, 0x1.a0196e21c0017p-13,
                                  0x1.a1747c85b52fdp-16, 0x1.7307e0a55fabbp-19};
__constant__ double log_rest[] = {0x1.55555555651e2p-4, 0x1.999998c93a238p-7, 0x1.249325106da85p-9,
                                  0x1.c67a5a58e055ap-12, 0x1.8c9491680e9b1p-14};
__constant__ double erf_rate[] = {0x1.20dd750429b6dp0,    0x1.45f306dc76395p-1,   0x1.a4f4e2dd2d231p-4,
                                  -0x1.3966958a54fb9p-6,  -0x1.b671ee3aee5cdp-13, 0x1.bc7b096e1994bp-10,
                                  -0x1.34492269badb6p-11, 0x1.62cebcaf58205p-16,  0x1.2de14bed6757ap-14,
                                  -0x1.410da6bee6595p-15, 0x1.602c00a292213p-17,  -0x1.6969d3aea5c48p-20,
                                  -0x1.1bd748b10e1d5p-23, 0x1.996879df0a6acp-24,  -0x1.4ad0db56d505ep-26,
                                  0x1.0a37a2aeb1c9ap-29,  -0x1.67cba9536cea7p-34};
__constant__ double erfc_tail[] = {
    0x1.18932bf08e278p-3,   -0x1.0949227373e09p-2,  0x1.bff01a5f75837p-3,  -0x1.506666f6e16b9p-3,
    0x1.be502c42c57f2p-4,   -0x1.027d572c31d1fp-4,  0x1.0066defa0e4b9p-5,  -0x1.a4dee6f27e97ep-7,
    0x1.0a187a2d953f6p-8,   -0x1.a2eac3676679dp-11, -0x1.6e70caa56c96p-16, 0x1.48e3b6d6c984p-14,
    -0x1.819566f29a1dfp-16, -0x1.117b36a14eb1cp-20, 0x1.44e9a5d5da3f8p-18, 0x1.fa411b833c499p-21};
// Phi(-v) e^(v^2/2), v to 10, in (v - 4) / (v + 4): 2^-41.2.
__constant__ double gelu_tail[] = {
    0x1.82b4bb8c943ddp-4,  -0x1.5cf97b0ae74d3p-3, 0x1.fd751a2066c81p-4,  -0x1.25b6aa9781345p-4,  0x1.f9b05e9329de7p-6,
    -0x1.1644db926b828p-7, 0x1.0a1ce41aa2ff2p-11, 0x1.4eec6e6755aefp-11, -0x1.88b052f46a393p-13, -0x1.7eb869bcfc6cep-15,
    0x1.e45f3bea7a208p-16, 0x1.549bbdf6aca5ap-18, -0x1.26926f294fa6p-18, -0x1.c55b5279f6c31p-20, -0x1.3eb700ac6dabp-23};
// exp_tail to 2^-51.1, for gradients, in which terms cancel.
__constant__ double exp_tail_close[] = {0x1.000000000000dp-1,  0x1.555555555060bp-3,  0x1.555555554f02ep-5,
                                        0x1.1111112600b59p-7,  0x1.6c16c189b5fbbp-10, 0x1.a0198c59b4516p-13,
                                        0x1.a0198b140742ap-16, 0x1.72ea20207ec17p-19, 0x1.28baf7191f702p-22};
// exp_tail[i] (-1/2)^(i + 2)
__constant__ double bell_tail[] = {0x1.ffffffffee9c1p-4,   -0x1.555555554c91ap-6, 0x1.555555819a334p-9,
                                   -0x1.1111112faaefep-12, 0x1.6c1635ce3cc6bp-16, -0x1.a0196e21c0017p-20,
                                   0x1.a1747c85b52fdp-24,  -0x1.7307e0a55fabbp-28};
__constant__ double pow_log_rest[] = {0x1.55555555553b3p-4,  0x1.9999999b8b14bp-7,  0x1.249246260bee7p-9,
                                      0x1.c71fd085b07c3p-12, 0x1.73824cdbf0a96p-14, 0x1.5471d07cd7a92p-16};
// In binary32: e^x up to 2^-27, ln(1 + f) 2^-28.4, Phi(-v) e^(v^2/2) in (v - 5.75) / (v + 5.75) 2^-23.8 up to 9,
// (sin r - r) / r^3 to pi/2: 2^-25.2 of sin r.
__constant__ float exp_tail_short[] = {0x1.000008p-1f, 0x1.55549p-3f, 0x1.5548dp-5f, 0x1.123ab2p-7f, 0x1.75c7aep-10f};
__constant__ float log_rest_short[] = {0x1.55555cp-4f, 0x1.997b94p-7f, 0x1.2ef7cp-9f};
__constant__ float gelu_tail_short[] = {0x1.1445a4p-4f,  -0x1.05a4d2p-3f, 0x1.bc01p-4f,
                                        -0x1.505a5cp-4f, 0x1.c3c7e2p-5f,  -0x1.0b00ecp-5f,
                                        0x1.1514fcp-6f,  -0x1.87a65p-8f,  0x1.de2908p-9f};
__constant__ float sine_short[] = {-0x1.555554p-3f, 0x1.11103ap-7f, -0x1.9fb2b8p-13f, 0x1.6169ep-19f};
__constant__ double log2e = 0x1.71547652b82fep0;
__constant__ double ln2 = 0x1.62e42fefa39efp-1;  // RN(ln 2), below it by less than 2^-55.2
__constant__ double half_log2e = 0x1.71547652b82fep-1, twice_ln2 = 0x1.62e42fefa39efp0;
__constant__ double log10_2 = 0x1.34413509f79ffp-2, log10e = 0x1.bcb7b1526e50ep-2;

// The bodies that there are. Functions: covers(x), where eval(x) is within 2^log2_ulps ulps and the result is normal. Others:
// approximate<R>(x..., options), R = double or float. The result is the rounded value, of functions finish(that, x).
template <class R>
struct approximation;
template <>
struct approximation<double> {
  double value;
  // Of ulps of value, which it errs by at most, less 1; 0: by nothing, and ties are ties.
  std::uint32_t eighths;
  bool covered;  // else nothing is known of value
};
constexpr std::uint32_t by_anything = 0xffffffff;  // eighths
constexpr __host__ __device__ std::uint32_t eighths_of(std::uint32_t ulps) { return ulps == 0 ? 0 : 8 * ulps - 1; }
// Of 2^(log2_ulps - e), e <= 0; from 2^29 on by anything.
__device__ inline std::uint32_t eighths_of_power(int log2_ulps, int e) {
  return by_anything >> max(29 - log2_ulps + e, 0);
}
template <>
struct approximation<float> {
  float below, above;
  bool covered;
};
// A value that errs by `width` ulps, in binary32 by `units` u of itself, one of which is the ends' own; 0: it is exact.
template <class R>
__device__ inline approximation<R> within(R value, std::uint32_t width, float units, bool covered) {
  if constexpr (std::is_same_v<R, double>) {
    return {value, eighths_of(width), covered};
  } else {
    return {value * (1 - units * 0x1p-24f), value * (1 + units * 0x1p-24f), covered};
  }
}
template <class Op>
struct quick;
struct quick_plain {
  __device__ static float finish(float y, float) { return y; }
};
template <class Op>
concept quick_is_function = requires {
  quick<Op>::log2_ulps;
};
template <class Op>
concept quick_takes_options = requires {
  requires quick<Op>::takes_options;
};
template <class Op>
concept quick_is_narrow = requires {  // f32 gains nothing by it
  requires quick<Op>::narrow;
};
template <class Op, class T, class... Options>
concept has_quick = requires {
  sizeof(quick<Op>);
}
&&quick_takes_options<Op> == (sizeof...(Options) > 0) && (sizeof(T) == 2 || (sizeof(T) == 4 && !quick_is_narrow<Op>));

// Distances from midpoints are whole eighths of ulps, and multiples of 8.
__device__ inline bool rounds_surely(double v, std::uint32_t eighths) {
  std::uint32_t from_midpoint;  // 8 low + 2^31, of which nvcc would make a shift and an exclusive or
  asm("mad.lo.u32 %0, %1, 8, 0x80000000;" : "=r"(from_midpoint) : "r"(__double2loint(v)));
  return (static_cast<std::int32_t>(from_midpoint) < 0 ? -from_midpoint : from_midpoint) >= eighths;
}
// The same of a constant, shorter.
template <std::uint32_t Ulps>
__device__ inline bool rounds_surely(double v) {
  static_assert(Ulps >= 1 && Ulps < 1u << 28);
  return (static_cast<std::uint32_t>(__double2loint(v)) << 3) + (8 * Ulps - 0x80000000u) >= 16 * Ulps;
}

// For f32 what is not normal is left to the body, but for zeros; so is 2^-126.
template <class T>
__device__ inline num::tentative<T> round_approximation(const approximation<double>& a) {
  if constexpr (std::is_same_v<T, float>) {
    const auto r = static_cast<float>(a.value);
    const std::uint32_t twice = 2 * __float_as_uint(r);
    const bool zero = ((__double2hiint(a.value) & 0x7fffffff) | __double2loint(a.value)) == 0;
    const bool known = (twice - 0x01000001u < 0xff000000u - 0x01000001u) | zero;
    const bool decided = a.covered & known & rounds_surely(a.value, a.eighths);
    return {r, decided};
  } else {
    // w ulps are at most w 2^-52 of the value, (8 w - 1) 2^-54 at least 7/4 of that.
    const auto r = num::certify_as<T>(a.value, fabs(a.value) * (a.eighths * 0x1p-54));
    const bool decided = r.decided & a.covered & (a.eighths != by_anything) & (fabs(a.value) < num::infinity);
    return {r.value, decided};
  }
}
template <class T>
__device__ inline num::tentative<T> round_approximation(const approximation<float>& a) {
  std::uint32_t ends;
  if constexpr (std::is_same_v<T, f16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(ends) : "f"(a.above), "f"(a.below));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(ends) : "f"(a.above), "f"(a.below));
  }
  const bool decided = a.covered & (__byte_perm(ends, 0, 0x1010) == ends);
  return {num::bit_cast<T>(static_cast<std::uint16_t>(ends)), decided};
}

// Numbers of f16 are no smaller.
template <class T>
__device__ inline bool is_moderate(float x) {
  return (fabsf(x) < 0x1p30f) & (std::is_same_v<T, f16> | (fabsf(x) >= 0x1p-30f) | (x == 0));
}
__device__ inline bool is_moderate(double x) {
  return (fabs(x) <= 256) & ((fabs(x) >= 1.0 / 256) | (x == 0));
}  // an option

template <class Op>
concept quick_is_in_binary64 = requires {
  requires quick<Op>::in_binary64;
};
template <class Op, class T>
using real_for = std::conditional_t<sizeof(T) == 2 && !quick_is_in_binary64<Op>, float, double>;
template <class Op>
concept has_invalid = requires {  // invalid<R>(x..., options): the result is NaN
  requires quick<Op>::may_be_invalid;
};

// A product in which one operand enters by a factor that takes longer to compute than to look up: which one, or -1 (map_factor.cuh).
template <class Op>
constexpr int factor_operand_of = [] {
  if constexpr (requires { quick<Op>::factor_operand; }) return quick<Op>::factor_operand;
  return -1;
}();

// Options with which a function is a product: asked once, not for every element. is_product(options), product<R>(x..., options).
template <class Op>
concept has_products = requires(const num::parameters& p) {
  quick<Op>::is_product(p);
};

// In binary32 a body may say by itself which operands, of T, it covers: approximate<R, T>.
template <class Op>
concept quick_bounds_operands = requires {
  requires quick<Op>::bounds_operands;
};

// R: what it computes in.
template <class Op, class T, class R = real_for<Op, T>, bool Product = false, class... P>
__device__ inline num::tentative<T> quick_eval(const T* x, const P&... p) {
  const auto on_floats = [&](const auto& f) {
    return num::with_places<Op::arity>([&]<int... K>() { return f(num::widen_to_float(x[K])...); });
  };
  if constexpr (quick_is_function<Op>) {
    const double v = quick<Op>::eval(num::widen_to_float(*x));
    const bool covered = quick<Op>::covers(num::widen_to_float(*x));
    num::tentative<T> r;
    if constexpr (std::is_same_v<T, float>) {
      static_assert(quick<Op>::log2_ulps <= 16);
      r = {static_cast<float>(v), bool(covered & rounds_surely<1u << quick<Op>::log2_ulps>(v))};
    } else {
      const auto narrow = num::certify_as<T>(v, 0x1p-40 * fabs(v));  // which the narrow formats leave room for
      r = {narrow.value, bool(covered & narrow.decided)};
    }
    if constexpr (!std::is_base_of_v<quick_plain, quick<Op>>) {
      const float z = quick<Op>::finish(num::widen_to_float(r.value), num::widen_to_float(*x));
      if constexpr (std::is_same_v<T, float>) {
        r.value = z;
      } else {
        r.value = num::narrow<T>(z);
      }
    }
    return r;
  } else {
    return on_floats([&](const auto... v) {
      approximation<R> a = [&] {
        if constexpr (Product) {
          return quick<Op>::template product<R>(v..., p...);
        } else if constexpr (quick_bounds_operands<Op>) {
          return quick<Op>::template approximate<R, T>(v..., p...);
        } else {
          return quick<Op>::template approximate<R>(v..., p...);
        }
      }();
      if constexpr (std::is_same_v<R, float> && !quick_bounds_operands<Op>) {
        a.covered = a.covered & (is_moderate<T>(v) & ...);
      }
      num::tentative<T> r = round_approximation<T>(a);
      if constexpr (has_invalid<Op> && !Product) {
        const bool invalid = quick<Op>::template invalid<R>(v..., p...);
        r.value = invalid ? num::from_bits<T>(num::format<T>::nan) : r.value;
        r.decided = r.decided | invalid;
      }
      return r;
    });
  }
}

__device__ inline double fused(double a, double b, double c) { return num::fma(a, b, c); }
__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }

// c[0] + c[1] x + ...
template <class R, int N>
__device__ inline R polynomial(const R (&c)[N], R x) {
  R p = c[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; --i) p = fused(p, x, c[i]);
  return p;
}

// 1/d, and a/d, for normal d with normal 1/d. The seed's error is e, taken to be below 2^-19: it has 20 bits, but PTX
// promises none, so the comparison of all inputs is what proves it. 1/d = y (1 + e + e^2 + ...): the step leaves e^3 < 2^-57.
// reciprocal: the last addition, 1.1 u. quotient: q = a y is rounded, too, 2.1 u. In binary32, where PTX says 1 ulp, the
// step leaves e^2 < 2^-38, and the errors are the same.
__device__ inline double reciprocal_seed(double d) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  return y;
}
__device__ inline float reciprocal_seed(float d) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
  return y;
}
__device__ inline double series(double e) { return num::fma(e, e, e); }
__device__ inline float series(float e) { return e; }
template <class R>
__device__ inline R reciprocal(R d) {
  const R y = reciprocal_seed(d);
  return fused(y, series(fused(-d, y, R{1})), y);
}
template <class R>
__device__ inline R quotient(R a, R d) {
  const R y = reciprocal_seed(d);
  const R e = fused(-d, y, R{1});
  const R q = a * y;
  return fused(q, series(e), q);
}

// e^x = 2^k e^r, k = an integer next to x / ln2, |x| <= 105 where the caller makes use of it.
template <class R = double>
struct quick_exp {
  double r;
  int k;

  __device__ quick_exp(double rest, int power) : r(rest), k(power) {}
  // The product k ln2 is off by |k| 2^-55.2, and r's rounding by 2^-55: less than 2^-47.9 for |k| <= 151, and less than
  // 2^-50 for |k| <= 29.
  __device__ explicit quick_exp(double x) {
    const double t = num::fma(x, log2e, num::exp_core::shifter);
    r = num::fma(t - num::exp_core::shifter, -ln2, x);
    k = __double2loint(t);
  }
  // 2^x = 2^k e^(f ln 2), f = x - k, exact where x is of binary32; the product with ln 2: u.
  __device__ static quick_exp of_power(double x) {
    const double t = x + num::exp_core::shifter;
    return {(x - (t - num::exp_core::shifter)) * ln2, __double2loint(t)};
  }
  __device__ double tail() const { return polynomial(exp_tail, r); }  // (e^r - 1 - r) / r^2
  // Relative error: the polynomial 2^-45.3, r 2^-47.9, steps 2.2 u; below 2^-44.8, 2^8.2 ulps.
  __device__ double value() const { return of_tail(tail()); }
  // With one coefficient more 2^-51.1 and, for |k| <= 120, r's 2^-48.2: below 2^-47.8.
  __device__ double close_value() const { return of_tail(polynomial(exp_tail_close, r)); }
  __device__ double of_tail(double t) const {
    const double p = num::fma(num::fma(t, r, 1.0), r, 1.0);
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
// In binary32, |x| <= 80. k ln2_hi is exact in its multiply-add, r rounded twice: 0.5 u; ln2_hi + ln2_lo is ln 2 up to 2^-50.
// The polynomial 2^-27; steps: 0.6 u of r (1 + r tail), 0.75 u of the last sum where it is below 1, u above. Below 2.5 u.
template <>
struct quick_exp<float> {
  static constexpr float shifter = 0x1.8p23f, log2e = 0x1.715476p0f, ln2_hi = 0x1.62e43p-1f, ln2_lo = -0x1.05c61p-29f;
  float r;
  int k;

  __device__ quick_exp(float rest, int power) : r(rest), k(power) {}
  __device__ explicit quick_exp(float x) {
    const float t = fused(x, log2e, shifter);
    const float n = t - shifter;
    r = fused(n, -ln2_lo, fused(n, -ln2_hi, x));
    k = __float_as_int(t);
  }
  __device__ static quick_exp of_power(float x) {
    const float t = x + shifter;
    return {(x - (t - shifter)) * ln2_hi, __float_as_int(t)};
  }
  __device__ float value() const {
    const float p = fused(fused(polynomial(exp_tail_short, r), r, 1.0f), r, 1.0f);
    return __int_as_float(__float_as_int(p) + (k << 23));
  }
  __device__ float close_value() const { return value(); }
};

// e^(-s/2), s >= 0: quick_exp's with q = -2 r, powers of two having moved into the coefficients.
__device__ inline double quick_bell(double s) {
  const double t = num::fma(s, -half_log2e, num::exp_core::shifter);
  const double q = num::fma(t - num::exp_core::shifter, twice_ln2, s);
  const double p = num::fma(num::fma(polynomial(bell_tail, q), q, -0.5), q, 1.0);
  return __hiloint2double(__double2hiint(p) + (__double2loint(t) << 20), __double2loint(p));
}

template <>
struct quick<ops::exp> : quick_plain {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }  // 2^-125.6 < e^x < 2^125.6
  __device__ static double eval(float x) { return quick_exp<>(x).value(); }
};

// 1 / (1 + e^-x): e^-x counts e^-x / (1 + e^-x) < 1 of its 2^-44.8; a sum and a reciprocal, 2.1 u.
template <>
struct quick<ops::sigmoid> : quick_plain {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }  // e^-87 is normal
  __device__ static double eval(float x) { return reciprocal(1.0 + quick_exp<>(-static_cast<double>(x)).value()); }
};

// d / (d + 2), d = e^(2|x|) - 1: d counts 2 / (d + 2) < 1 of its 2^-41.6; sum and quotient 3.1 u. Below 2^-41.5, 2^11.5 ulps.
// Subnormal x: v is within 2^-41.5 x of x, whose last 29 bits in binary64 are 0: sure, and x is the result.
template <>
struct quick<ops::tanh> {
  static constexpr int log2_ulps = 12;
  __device__ static bool covers(float x) { return x == x; }
  __device__ static double eval(float x) {
    const float m = fminf(fabsf(x), 10.0f);
    const double d = quick_exp<>(m + m).minus_one();
    return quotient(d, d + 2.0);
  }
  __device__ static float finish(float y, float x) { return copysignf(y, x); }
};

// x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt 2 up to 2^-20, cut by the high words; ln(1 + f) = w + w z L(z),
// w = 2 f / (2 + f) = f / (1 + f/2), z = w^2, L(z) = 1/12 + z/80 + ...
//   the polynomial, relative to w                                                    2^-43.1
//   w: 1 + f/2, exact or u; 2.1 u. z, w z L, their sum: 2.2 u                         2^-50
// in all below 2^-42.9 of ln(1 + f): 2^10.2 ulps.
template <class R = double>
struct quick_log {
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
  template <int N>
  __device__ double rest(const double (&l)[N]) const {  // ln(1 + f)
    const double w = quotient(f, num::fma(f, 0.5, 1.0));
    const double z = w * w;
    return num::fma(polynomial(l, z) * z, w, w);
  }
  __device__ double rest() const { return rest(log_rest); }
  // e ln2 is off by |e| 2^-55.2, the sum by u; if e is not 0, |ln x| > 0.34 |e|: 2^-51 of it.
  __device__ double value() const { return num::fma(e, ln2, rest()); }
  // With one coefficient more the polynomial is 2^-50.4, in all below 2^-49.4.
  __device__ double close_value() const { return num::fma(e, ln2, rest(pow_log_rest)); }
};
// In binary32, of numbers of f16 and bf16: f and 1 + f/2 are exact. w: the seed, of which PTX says 1 ulp, 2 u, and 1.1 u; z w L and the
// sum 1.1 u; where e is not 0, ln 2 counts 0.1 u, the sum u, and |ln(1 + f)| <= 1.02 |ln x|. Below 5.6 u.
template <>
struct quick_log<float> {
  float e;
  float f;
  __device__ explicit quick_log(float x) {
    constexpr int one = 0x3f800000, sqrt_half = 0x3f3504f3;
    const int bits = __float_as_int(x);
    const int biased = bits + (one - sqrt_half);
    e = __int_as_float(0x4b000000 | biased >> 23) - (0x1p23f + 127);
    f = __int_as_float(bits - ((biased & 0x7f800000) - one)) - 1.0f;
  }
  __device__ float value() const {
    const float w = f * reciprocal_seed(fused(f, 0.5f, 1.0f));
    const float z = w * w;
    return fused(e, quick_exp<float>::ln2_hi, fused(polynomial(log_rest_short, z) * z, w, w));
  }
  __device__ float close_value() const { return value(); }
};

// NaN for x < 0, which may be many of the elements; 0, infinities and NaN are left to the body. A logarithm is 0 or at least
// 2^-25 in magnitude.
struct quick_logarithm {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return (x < __int_as_float(0x7f800000)) & (x != 0); }
  __device__ static float finish(float y, float x) { return x < 0 ? __int_as_float(0x7fc00000) : y; }
};
template <>
struct quick<ops::log> : quick_logarithm {
  __device__ static double eval(float x) { return quick_log<>(fabsf(x)).value(); }
};

template <>
struct quick<ops::log2> : quick_logarithm {
  __device__ static double eval(float x) {
    const quick_log<> l(fabsf(x));
    return num::fma(l.rest(), log2e, l.e);
  }
};
template <>
struct quick<ops::log10> : quick_logarithm {
  __device__ static double eval(float x) {
    const quick_log<> l(fabsf(x));
    return num::fma(l.e, log10_2, l.rest() * log10e);
  }
};
// Below -1 NaN, of whatever the logarithm of -(1 + x) is.
template <>
struct quick<ops::log1p> {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return (x < __int_as_float(0x7f800000)) & (x != -1); }
  __device__ static double eval(float x) {
    return quick_log<>::of_one_plus(x < -1 ? -2 - static_cast<double>(x) : static_cast<double>(x)).value();
  }
  __device__ static float finish(float y, float x) { return x < -1 ? __int_as_float(0x7fc00000) : x == 0 ? x : y; }
};
// -ln(1 + e^-x): the exponential counts at most its 2^-44.8; with the logarithm below 2^-42.6.
template <>
struct quick<ops::log_sigmoid> : quick_plain {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }
  __device__ static double eval(float x) {
    return -quick_log<>::of_one_plus(quick_exp<>(-static_cast<double>(x)).value()).value();
  }
};

template <>
struct quick<ops::exp2> : quick_plain {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return fabsf(x) < 126.0f; }
  __device__ static double eval(float x) { return quick_exp<>::of_power(x).value(); }
};
template <>
struct quick<ops::expm1> {
  static constexpr int log2_ulps = 12;
  __device__ static bool covers(float x) { return fabsf(x) < 87.0f; }
  __device__ static double eval(float x) { return quick_exp<>(x).minus_one(); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
};

// x / (1 + e^-x): the exponential's share is at most its 2^-44.8; a sum and a quotient, 3.1 u. From 2^-100 on the result is
// normal.
template <>
struct quick<ops::silu> {
  static constexpr int log2_ulps = 9;
  __device__ static bool covers(float x) { return (fabsf(x) < 80.0f) & ((fabsf(x) > 0x1p-100f) | (x == 0)); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) {
    return quotient<double>(x, 1.0 + quick_exp<>(-static_cast<double>(x)).value());
  }
};
// x n / (n + 2), n = e^x (e^x + 2): 2^-43.8, of which 2 / (n + 2) counts.
template <>
struct quick<ops::mish> {
  static constexpr int log2_ulps = 10;
  __device__ static bool covers(float x) { return (fabsf(x) < 80.0f) & ((fabsf(x) > 0x1p-100f) | (x == 0)); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) {
    const double e = quick_exp<>(x).value();
    const double n = e * (e + 2.0);
    return quotient(static_cast<double>(x) * n, n + 2.0);
  }
};
// s x, or s a (e^x - 1) as in expm1; from -80 down that is what it is at -80.
template <>
struct quick<ops::selu> {
  static constexpr int log2_ulps = 12;
  static constexpr double scale = 0x1.0cfabd6a91132p0, product = 0x1.c212cc640f031p0;
  __device__ static bool covers(float x) { return (fabsf(x) > 0x1p-100f) | (x == 0); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) {
    const double negative = product * quick_exp<>(fminf(fmaxf(x, -80.0f), 80.0f)).minus_one();
    return x > 0 ? scale * static_cast<double>(x) : negative;
  }
};
// 1 + |x| is rounded by u, the quotient 2.1 u.
template <>
struct quick<ops::softsign> : quick_plain {
  static constexpr int log2_ulps = 3;
  __device__ static bool covers(float x) { return fabsf(x) < __int_as_float(0x7f800000); }
  __device__ static double eval(float x) { return quotient<double>(x, 1.0 + static_cast<double>(fabsf(x))); }
};
// y = s (1 + e/2 + 3/8 e^2), e = 1 - x s^2, |e| < 2^-18 of the seed s: the series leaves e^3 < 2^-54; 3 u.
template <>
struct quick<ops::rsqrt> : quick_plain {
  static constexpr int log2_ulps = 4;
  __device__ static bool covers(float x) { return (x > 0) & (x < __int_as_float(0x7f800000)); }
  __device__ static double eval(float x) {
    const double d = static_cast<double>(x);
    double s;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(s) : "d"(d));
    const double e = num::fma(-(d * s), s, 1.0);
    return num::fma(num::fma(e, 0.375, 0.5) * e, s, s);
  }
};

// erf v = 1 - e^-c, c = v (q0 + v q(v)), as in error_function.hpp: c counts d c erfc(v) / erf(v), 2^-43.2 of the polynomial;
// with minus_one's 2^-41.6 and c's 2 u below 2^-41.2.
template <>
struct quick<ops::erf> {
  static constexpr int log2_ulps = 12;
  __device__ static bool covers(float x) { return (fabsf(x) > 0x1p-100f) | (x == 0); }
  __device__ static double eval(float x) {
    const double v = static_cast<double>(fminf(fabsf(x), 4.0f));
    return quick_exp<>(-(v * polynomial(erf_rate, v))).minus_one();  // -erf v
  }
  __device__ static float finish(float y, float x) { return copysignf(y, x); }
};
// erfc v = e^-v^2 g(y), y = (v - 4) / (v + 4): the exponential 2^-44.8, g 2^-43.8, y and steps: 14 u; below 2^-43.1. Down to
// -9, up to 9, where it is e^-83.
template <>
struct quick<ops::erfc> : quick_plain {
  static constexpr int log2_ulps = 11;
  __device__ static bool covers(float x) { return fabsf(x) <= 9.0f; }
  __device__ static double eval(float x) {
    const double v = static_cast<double>(fabsf(x));
    const double tail = quick_exp<>(-(v * v)).value() * polynomial(erfc_tail, quotient(v - 4.0, v + 4.0));
    return x < 0 ? 2.0 - tail : tail;
  }
};
// h(y) = e^(v^2/2) Phi(-v), v <= 10, y = (v - 4) / (v + 4) = 1 - 8 / (v + 4), the quotient by the reciprocal's steps of eight times
// the seed: y errs by 5.2 u of 1, of which h makes at most 2.5 times that of itself, its magnitudes add up to 5 of it, in 14 steps:
// 83 u, with the polynomial below 2^-41.2.
__device__ inline double normal_tail(double v) {
  const double d = v + 4.0;
  const double seed = reciprocal_seed(d);
  const double eight = __hiloint2double(__double2hiint(seed) + (3 << 20), __double2loint(seed));
  return polynomial(gelu_tail, 1.0 - num::fma(eight, series(num::fma(-d, seed, 1.0)), eight));
}
// x Phi(x) = max(x, 0) - v Phi(-v), v = |x|, Phi(-v) = e^(-v^2/2) h: the exponential 2^-44.8, h 2^-41.2, 3 u, where x > 0 relative to
// v (1 - Phi(-v)) >= v Phi(-v), and u; below 2^-41.
__device__ inline double quick_gelu(float x) {
  const double d = static_cast<double>(x);
  const double v = fabs(d);
  const double below = quick_bell(v * v) * normal_tail(v);
  const int kept = x < 0 ? 0 : -1;  // of x < 0 ? 0.0 : d nvcc 13.0 makes x <= 0 ? 0 : x, which is +0 for -0
  return num::fma(-v, below, __hiloint2double(__double2hiint(d) & kept, __double2loint(d) & kept));
}
template <>
struct quick<ops::gelu> {
  static constexpr int log2_ulps = 12;
  __device__ static bool covers(float x) { return (fabsf(x) <= 10.0f) & ((fabsf(x) > 0x1p-100f) | (x == 0)); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) { return quick_gelu(x); }
};
// x / (1 + e^-2u), 2 u = x (a + b x^2), off by 4 u of itself, at most 77: 2^-44.7; with the exponential below 2^-43.7.
template <>
struct quick<ops::gelu_tanh> {
  static constexpr int log2_ulps = 10;
  __device__ static bool covers(float x) { return (fabsf(x) <= 9.5f) & ((fabsf(x) > 0x1p-100f) | (x == 0)); }
  __device__ static float finish(float y, float x) { return x == 0 ? x : y; }
  __device__ static double eval(float x) {
    using core = num::body<ops::gelu_tanh>;
    const double d = static_cast<double>(x);
    return quotient(d, 1.0 + quick_exp<>(-(d * num::fma(d * d, core::b.hi, core::a.hi))).value());
  }
};

}  // namespace
}  // namespace repdl::cuda
