// erfcinv x, the y with erfc y = x, and ndtri x, the y with Phi(y) = x, -sqrt 2 erfcinv(2 x), correctly rounded; of binary64 in inverse_error_function_binary64.hpp,
// of binary16, bfloat16 and binary32 here.
//
// Method, of x or 2 x, in binary64, v = 1 - x, w = -ln(1 - v^2) = -ln(x (2 - x)), after inverse_error_function.hpp:
//   w < 15.9   |y| = erfinv |v|
//   beyond     y = C(sqrt w), a polynomial, for x from 2^-22 down to 2^-150; x below 2 is 2 - 2^-23 at most
// Last tier: between neighbours y lies beside a midpoint m. As erfc falls and Phi grows, the side follows from that of erfc m, or Phi(m), on which x is. Double-doubles
// compare these, within 2^-68: of 2^32 operands all are decided. Exact results are erfcinv 1 = ndtri(1/2) = 0, and no others are known.
//
// Error budget, relative, u = 2^-53 (with or without FMA):
//   w < 15.9: x > 2^-24, a multiple of 2^-47: v and 2 - x are exact. x (2 - x) is rounded, u of it and so of w, times p' / p < 0.27 of p(w) = p0 + w q(w); v p0_hi is
//     rounded where v has more than 24 bits, u; the rest as in inverse_error_function.hpp, 4.7 u     < 6 u
//     For x in [3/4, 5/4] the logarithm is that of 1 - v^2, and v^2 exact, as there.
//   beyond: 2 - x, the product, w and its root, |s C' / C| < 1.1                         < 4 u
//     C at 2001 points: 2^-48.1; Horner's rule 4.2 u (reference/gen/inverse_complementary_error_function.py)
//   sqrt 2 and the product of ndtri                                                      < 2 u
//   sum                                                                                 < 2^-47
#pragma once

#include "librepdl/ops/elementwise/inverse_error_function.hpp"
#include "librepdl/ops/elementwise/normal_distribution.hpp"

namespace repdl::ops {
struct erfcinv;
struct ndtri;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

struct erfcinv_core {
  // reference/gen/inverse_complementary_error_function.py
  static constexpr double c0 = 0x1.b79e049a17812p+2, c1 = 0x1.023352980a5b7p+0, c2 = -0x1.0cc7570771fc1p-11,
                          c3 = 0x1.a5be65c7d6687p-18, c4 = 0x1.965385e2480cep-18, c5 = -0x1.b2ae61e9a49a3p-20,
                          c6 = 0x1.51665138b0ac2p-22, c7 = -0x1.cf1cdf703f88cp-25, c8 = 0x1.2947745448290p-27,
                          c9 = -0x1.6d5bc116df6dbp-30, c10 = 0x1.b476c88ab44c2p-33, c11 = -0x1.00a1ea3e9cf84p-35,
                          c12 = 0x1.19cf64f072b3bp-38, c13 = -0x1.06135c9f36641p-41, c14 = 0x1.9e69c254c5aa0p-44,
                          c15 = -0x1.0ae14f4f6b60fp-45, c16 = 0x1.64529b272c7e2p-51, c17 = 0x1.1b2e2e340b6cep-49,
                          c18 = -0x1.38c3aee653ef0p-55, c19 = -0x1.4d556aa3065a1p-53, c20 = 0x1.bebb9ef99e355p-57,
                          c21 = 0x1.3dde0d76dc747p-58, c22 = -0x1.5c03b2c64c42fp-61;

  // |erfcinv x|, 0 < x < 2; of other x anything.
  [[gnu::always_inline]] REPDL_HD static double eval(double x) {
    using log = log_core<base_e>;
    const double v = magnitude_of(1 - x);
    const double square = v * v;
    log::reduced r = log::reduce(x * (2 - x));
    r.f = square < 0.0625 ? -square : r.f;
    const double w = -log::sum(r).hi;
    const double t = num::sqrt(magnitude_of(w)) - 7;
    const double far = horner(t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18,
                              c19, c20, c21, c22);
    return w < 15.9 ? erfinv_core::of(v, w) : far;
  }
};

template <bool IsNormal>
struct erfcinv_definition {
  // The largest x, of y = -inf, or inf.
  static constexpr double end = IsNormal ? 1 : 2;
  REPDL_HD static bool plain(double x) { return static_cast<bool>((x > 0) & (x < end) & (x != 0.5 * end)); }
  REPDL_HD static double special(double x) {
    const double pole = IsNormal == (x == 0) ? -infinity : infinity;
    const double value = x == 0.5 * end ? 0.0 : pole;
    return (x >= 0) & (x <= end) ? value : nan_of<double>();
  }
  static constexpr double near_error = 0x1p-46;
  REPDL_HD static double near(double x) {
    const double magnitude = erfcinv_core::eval(IsNormal ? 2 * x : x);
    const double y = copy_sign(IsNormal ? 2 * dd_inverse_root_2.hi * magnitude : magnitude, IsNormal ? x - 0.5 : 1 - x);
    return plain(x) ? y : special(x);
  }
};
// The sign of y - m, m of 25 bits, or 0 where it is not known: of erfc m - x, or of 2 x - erfc(-m / sqrt 2). Differences from 1 and 2 are exact, as what they are
// compared with is 0.2 at least; m^2 is, too. Beyond erf_end erfc is e^(-z^2) F(z), or 2 less that.
template <bool IsNormal>
REPDL_HD_CALL int side_of_inverse(double x, double m) {
  using Ball = dd_ball<double>;
  const double argument = IsNormal ? -m : m;
  const double value = IsNormal ? 2 * x : x;
  const double size = magnitude_of(m);
  const double_word<double> z = product(IsNormal ? dd_inverse_root_2 : dd{1, 0}, double_word<double>{size, 0});
  const error_terms<double> t(normalised(z), argument);
  const scaled_ball<double> e = scaled_exponential(number<Ball>(IsNormal ? -0.5 * m * m : -m * m));
  const Ball from_one = number<Ball>(1 - value) - t.signed_erf;
  const Ball tail = e.m * t.value - number<Ball>((argument > 0 ? value : 2 - value) * power_of(-e.k));
  const int side = sign_of(select(t.near, from_one, argument > 0 ? tail : negated(tail)));
  return IsNormal ? -side : side;
}

template <bool IsNormal>
struct erfcinv_body : by_binary64<erfcinv_definition<IsNormal>> {
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, int) {
    return decide_by_midpoint<T, erfcinv_definition<IsNormal>>(
        widen(x), [](double v, double m) { return side_of_inverse<IsNormal>(v, m); });
  }
};
template <>
struct body<ops::erfcinv> : erfcinv_body<false> {};
template <>
struct body<ops::ndtri> : erfcinv_body<true> {};
template <>
struct body64<ops::erfcinv> : by_formula<inverse_error_function64<inverse_of::erfc>> {};
template <>
struct body64<ops::ndtri> : by_formula<inverse_error_function64<inverse_of::phi>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
