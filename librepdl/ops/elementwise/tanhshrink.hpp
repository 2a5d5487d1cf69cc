// tanhshrink(x) = x - tanh x, correctly rounded.
//
// Method: for |x| < 3/4 the odd series x^3/3 (1 + z P(z)), z = x^2; beyond, (|x| - 1) + 2 / (e^(2|x|) + 1) with
// exp.hpp's exponential, where little cancels. Both are sums of two binary64 numbers, rounded to odd.
//
// Domain: every input. |x| is cut down to 10 in the exponential: from there on the result is |x| - 1 + r with 0 < r <
// 2^-27, less than half an ulp, and what is computed is such a number, too. For 2^24 < |x| <= 2^25 (2^p in general)
// |x| - 1 is a midpoint and r gives |x|. From 2^26 on the result is x; of +-0 it is +0, else it has the sign of x.
//
// |x| < 3/4. Error budget, relative, u = 2^-53:
//   x^3/3: z is exact (48 bits), z |x| 1 u, its third 1.5 u                          2.5 u
//   series, certified by reference/gen/tanhshrink.sollya: 0x1.9fp-55                 0.4 u
//   z P (|z P| < 0.19): 1.6 u of P, two products and one more, times 0.19 / 0.81      1.2 u
//   sum                                                                              4.1 u < 2^-50.9
// x^3/3 is a midpoint for some x, such as 3 * 2^-50. Then x^3 = 3 m has at most 27 bits and x^3/3 is exact (division by
// 3 in activation.hpp); z P < 0 breaks the tie however small it is.
//
// |x| >= 3/4. Error budget, relative to the result v >= 0.114:
//   e^(2|x|): 5.1 u (exp.hpp), times 2 e^(2|x|) / (e^(2|x|) + 1)^2 / v               < 15 u
//   sum and quotient (2 u of at most 0.365), over v                                  < 6.5 u
//   the sum |x| - 1 + y, exact: |x| - 1 is a multiple of y's last bit                0
//   sum                                                                              < 21.5 u at 3/4, 7 u at 1, falling
//
// Proved by enumeration: a sweep over all 2^32 inputs against MPFR, for each compiled binary; all of f16 and bf16.
#pragma once

#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/elementwise/exp.hpp"

namespace repdl::ops {
struct tanhshrink;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <>
struct body<ops::tanhshrink> {
  // reference/gen/tanhshrink.sollya
  static constexpr double third = 0x1.5555555555555p-2;
  static constexpr double c0 = -0x1.999999999999ap-2, c1 = 0x1.4b94b94b8fde2p-3, c2 = -0x1.0cbb765f8770dp-4,
                          c3 = 0x1.b3a54f01719a1p-6, c4 = -0x1.611ebec5a2bfep-7, c5 = 0x1.1e388004355dp-8,
                          c6 = -0x1.cfd54a47c2853p-10, c7 = 0x1.76b035b89bcf5p-11, c8 = -0x1.292ec271f6e53p-12,
                          c9 = 0x1.b53ca04e4d88fp-14, c10 = -0x1.0109f86963898p-15, c11 = 0x1.53ec987433219p-18;

  template <class T>
  REPDL_HD static T eval(T x) {
    const float v = widen_to_float(x);
    const double a = static_cast<double>(with_sign(v, 1.0f));
    const double e = exp_core::eval<T>(2.0 * (a < 10 ? a : 10.0));
    const dd far = fast_two_sum(a - 1.0, 2.0 / (e + 1.0));
    const double z = a * a;
    const double cube = z * a * third;
    double p = muladd(c11, z, c10);
    p = muladd(p, z, c9);
    p = muladd(p, z, c8);
    p = muladd(p, z, c7);
    p = muladd(p, z, c6);
    p = muladd(p, z, c5);
    p = muladd(p, z, c4);
    p = muladd(p, z, c3);
    p = muladd(p, z, c2);
    p = muladd(p, z, c1);
    p = muladd(p, z, c0);
    const dd near = fast_two_sum(cube, cube * (z * p));
    const bool is_near = a < 0.75;
    const double hi = is_near ? near.hi : far.hi;
    const double lo = is_near ? near.lo : far.lo;
    const double r = with_sign(round_to_odd(hi, lo, 1), static_cast<double>(v));
    const double large = a < 0x1p26 ? r : static_cast<double>(v);
    return narrow<T>(v == 0 ? 0.0 : large);
  }
};

// Binary64. x - tanh x = x^3/3 (1 - 2/5 x^2 + ...).
//
// |x| < 1: (x cosh x - sinh x) / cosh x, two series of positive terms in z = x^2, the first one x z (1/3 + z/30 + ... +
// 2k/(2k + 1)! z^(k - 1) + ...). Beside the first terms, which are less than the sums:
//   left out: from 24/25! on, beside 1/3, and from 1/24! on                           < 2^-77
//   in binary64: from 10/11! and 1/10! on, 4.2 u of them (dd_functions.hpp, and u for a numerator)   < 2^-71
//   sum, and what double-double operations lose                                       < 2^-70
// 1 <= |x| <= 20: (|x| - 1) + 2 / (e^2|x| + 1). From there on the last term is less than 2^-56, and |x| - 1, a number up
// to 2^53, is the result, but beyond, where it is a midpoint or nearer to |x|, |x|. |x| < 2^-360: less than 2^-1081.
//
// x^3/3 may be a midpoint, but no other value of tanh x is rational: the value is nearer to 0. If it is none, it is
// 2^-160 of itself away from one, and for |x| < 2^-100 tanh's series makes a ball of 2^-200 of it: 2 x^5/15 - ... <
// x^5/7.
struct tanhshrink64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x) {
    return (magnitude_of(x) >= 0x1p-360) & (magnitude_of(x) <= 20);
  }
  template <class R>
  REPDL_HD static R special(R x) {
    const R a = magnitude_of(x);
    const R far = a <= 0x1p53 ? a - 1 : a;
    const R r = copy_sign(a < 1 ? math<R>::all(0) : far, x);
    const R number = x == 0 ? math<R>::all(0) : r;
    return x == x ? number : nan_of<R>();
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x) {
    using Ball = dd_ball<R>;
    const R a = magnitude_of(x);
    const significand<R> s = significand_of(x);
    const mask_of<R> near = a < 1;
    const Ball square = number<Ball>(s.m) * number<Ball>(s.m);
    const Ball far = number<Ball>(a - 1) + number<Ball>(2) / (exponential(number<Ball>(2 * a)) + number<Ball>(1));
    const R one = copy_sign(math<R>::all(1), x);
    return round_product(near ? x : one, select(near, square * ratio(x), far), near ? 2 * s.k : math<R>::all(0));
  }
  // (x cosh x - sinh x) / (x^3 cosh x), |x| < 1.
  template <class R>
  REPDL_HD static dd_ball<R> ratio(R x) {
    const double_word<R> z = two_prod(x, x);
    const auto times = [](double s, dd c) -> dd { return {s * c.hi, s * c.lo}; };
    const R q = horner(z.hi, of<5>(), of<6>(), of<7>(), of<8>(), of<9>(), of<10>(), of<11>());
    double_word<R> n = sum(all_of<R>(times(8, dd_inverse_factorial<9>())), z.hi * q);
    n = add_smaller(all_of<R>(dd_inverse_840), mul(z, n));
    n = add_smaller(all_of<R>(times(4, dd_inverse_factorial<5>())), mul(z, n));
    n = add_smaller(all_of<R>(times(2, dd_inverse_factorial<3>())), mul(z, n));
    const R c =
        horner(z.hi, inverse_factorial<10>(), inverse_factorial<12>(), inverse_factorial<14>(), inverse_factorial<16>(),
               inverse_factorial<18>(), inverse_factorial<20>(), inverse_factorial<22>());
    double_word<R> d = sum(all_of<R>(dd_inverse_factorial<8>()), z.hi * c);
    d = add_smaller(all_of<R>(dd_inverse_factorial<6>()), mul(z, d));
    d = add_smaller(all_of<R>(dd_inverse_factorial<4>()), mul(z, d));
    d = add_smaller(all_of<R>(dd_inverse_factorial<2>()), mul(z, d));
    d = add_smaller(all_of<R>(dd{1, 0}), mul(z, d));
    const double_word<R> r = div(n, d);
    return {r.hi, r.lo, 0x1p-69 * r.hi};
  }
  // 2 k / (2 k + 1)!
  template <int k>
  REPDL_HD static constexpr double of() {
    return 2 * k * inverse_factorial<2 * k + 1>();
  }
  template <class Ball>
  REPDL_HD static auto formula(double x) {
    constexpr int L = limbs_of_ball<Ball>;
    const Ball v = number<Ball>(x);
    const Ball cube = v * v * v / number<Ball>(3);
    Ball value = cube;
    if (magnitude_of(x) < 0x1p-100) {
      value = grown(cube, upper(cube * v * v));
    } else {
      const Ball e = exponential(scaled(v, 1));
      value = v - (e - number<Ball>(1)) / (e + number<Ball>(1));
    }
    return beside<L>{value, cube, x < 0 ? 1 : -1};
  }
};
template <>
struct body64<ops::tanhshrink> : by_formula<tanhshrink64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
