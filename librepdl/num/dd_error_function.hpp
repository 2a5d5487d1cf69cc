// The error functions in double-double: erf z of small z, and F(z) = e^(z^2) erfc z beyond, e^(-z^2) being the caller's. R is binary64, or a
// register of it. No tables, no branches: one polynomial p of t, whose coefficients are chosen.
//
//   0 <= z < 7/8          erf z = z p(t),  t = x - 49/128,    x = z^2
//   7/8 <= z < 31/8       F(z) = x p(t),   t = x - 127/512,   x = 1 / (z + 69/32)
//   31/8 <= z <= 153/4    F(z) = x p(t),   t = x - 233/2048,  x = 1 / (z + 17/16)
//
// (z + d) F(z) varies little, after M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
// 0 <= x < oo", Math. Comp. 36 (1981). So in p = c_0 + c_1 t + ... what is added to c_0 is small, and c_6 t^6 + ... so small, below
// 2^-17 of it, that binary64 is enough. Coefficients, and the bounds that stand in quotation marks, are printed by
// reference/gen/error_function_binary64.sollya.
//
// Errors, relative, u = 2^-53:
//                                                                          z < 7/8     z < 31/8    z <= 153/4
//   |p / f - 1|, "reference" and "approximation", certified                 2^-73.81    2^-72.63    2^-70.30
//   c_6 + c_7 t + ... in binary64, of t.hi for t: Horner's scheme errs by
//     u (2 (k - 6) + 1) of the k-th term, with FMA or without, and
//     t.lo <= u |t| counts k - 6 times: u "rounding"                        2^-74.37    2^-69.68    2^-71.62
//   all other operations, see below                                         2^-98       2^-98       2^-98
//   sum                                                                     < 2^-73     < 2^-69.5   < 2^-69.8
// so that erfc z = 1 - erf z has less than 2^-71.1 for z < 7/8, and e^(-z^2) F(z) what the exponential adds to F's.
//
// All other operations, in units u^2 of the result:
//   x = z^2: 6, z.lo^2 and the roundings of low parts. x = 1 / v: v = z + d, v.lo <= 2 u v, errs by 2. With r = RN(1 / v.hi), e = 1 - v r <=
//     3 u: 1 - v.hi r is exact, v.lo r and the difference err by 5, r + r e leaves out e^2, 9, and its low part's rounding is 3. In all 19.
//   t = x - centre: 4 for the sum of low parts, 8 where t.hi is the smaller one.
//     Errors of x and t count "slope" < 1.1 times in p, x's once more in the factor x: 54.
//   Steps c_k + t p', k < 6, p' the polynomial so far. |t p'| <= |c_k| / 3.3 ("ratio"), so it is below 0.44 of the sum s, and c_k below
//     1.44. Low part: s.lo + c_k.lo + 2 u |t p'| + |t p'.lo|, at most u |s| (1 + 1.44 + 0.88) and 0.44 times that of p': below 6 u |s|. Its
//     six roundings, without FMA, and t.lo p'.lo: 39; what the step before lost, 0.44 times: 70 in the last one.
//   The product by x or z: 46, four roundings of low parts of at most 10 u, and low times low.
//   Less than 2^8 in all.
//
// Checked by tests/numerics/dd_error_function_test.cpp.
#pragma once

#include "librepdl/num/dd.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Where the pieces meet, and the end of the last one. A double-word number is on the side where its high part is.
inline constexpr double erf_end = 0.875, scaled_erfc_middle = 3.875, scaled_erfc_end = 38.25;

// reference/gen/error_function_binary64.sollya
struct error_function_coefficients {
  static constexpr dd a0 = {0x1.ffc211d0545c8p-1, 0x1.44bb1187f98f4p-57};
  static constexpr dd a1 = {-0x1.33abd0a6067cep-2, 0x1.dc808fe67b463p-56};
  static constexpr dd a2 = {0x1.60cdfaf1b617dp-4, -0x1.d43744b45826cp-60};
  static constexpr double a3 = -0x1.4798c13c0524ep-6, a4 = 0x1.f573e6a3bf8c4p-9, a5 = -0x1.4497ccdc49c48p-11,
                          a6 = 0x1.6b3d8a75cb2d2p-14, a7 = -0x1.658e2c5651bcap-17, a8 = 0x1.39f3aa661be7ap-20,
                          a9 = -0x1.f16adf2b3daa7p-24, a10 = 0x1.66dd819ff0764p-27, a11 = -0x1.db494d948b3ap-31,
                          a12 = 0x1.22ce5a57fd85p-34, a13 = -0x1.4dbbbee83ed41p-38, a14 = 0x1.70e0e529b5e58p-42;
  static constexpr dd b0 = {0x1.1609eb74bb91ap0, -0x1.e46fcb2ee33bdp-54};
  static constexpr dd b1 = {0x1.ad27f9a14a125p1, 0x1.aa8dd38d6dc18p-54};
  static constexpr dd b2 = {0x1.a4dc9ca57e061p2, -0x1.534a40e7e4f58p-55};
  static constexpr double b3 = 0x1.720ee78e3be82p2, b4 = -0x1.5cb93bf9ca4e1p2, b5 = -0x1.decef308b820dp3,
                          b6 = 0x1.4a368be64d50ep3, b7 = 0x1.36af7e8ea41bap5, b8 = -0x1.6faf8abc025bdp5,
                          b9 = -0x1.7695e5709c9cp6, b10 = 0x1.d75de4b5da6b7p7, b11 = 0x1.5ce72b73e212fp6,
                          b12 = -0x1.ef89e2c8b3ea3p9, b13 = 0x1.01c2474f61386p10, b14 = 0x1.32edf9d6e991bp11,
                          b15 = -0x1.07c18a2bbe3aap13, b16 = 0x1.0c4980db90c25p12, b17 = 0x1.d0cf8ffb9b91ep14,
                          b18 = -0x1.0bce51ca362adp16;
  static constexpr dd c0 = {0x1.45e635a1896aep-1, -0x1.c3d32da0f2673p-55};
  static constexpr dd c1 = {0x1.55766451b708fp-1, -0x1.21997afbff6c8p-56};
  static constexpr dd c2 = {0x1.bf4b626e64ff8p-3, -0x1.91e54f35bd2fdp-57};
  static constexpr double c3 = -0x1.20db69ba7d7adp-1, c4 = -0x1.33069ee13d6cdp-1, c5 = 0x1.f510d948feceep-1,
                          c6 = 0x1.9ac10562250c4p0, c7 = -0x1.7b7b864fd3601p1, c8 = -0x1.31c08e1dd2fbep2,
                          c9 = 0x1.9ef8a15f4f7f8p3, c10 = 0x1.abd32184ffe3fp3, c11 = -0x1.106e5d053593cp6,
                          c12 = -0x1.8d3a42f5ef853p3, c13 = 0x1.76055ecdffd6ap8, c14 = -0x1.414eca704482fp8,
                          c15 = -0x1.d5772269b277ep10, c16 = 0x1.0e3b9089a8501p12, c17 = 0x1.9a036739dab5ap12,
                          c18 = -0x1.e51f2690754f6p14;
};

// Which piece each lane is in, and its numbers. One for all three pieces, one for the first alone, one for the others.
template <class R>
struct any_error_function {
  static constexpr bool has_erf = true, has_erfc = true;
  decltype(R{} < R{}) is_erf, is_near;
  explicit REPDL_HD any_error_function(R z) : is_erf(z < erf_end), is_near(z < scaled_erfc_middle) {}
  REPDL_HD R operator()(double a, double b, double c) const {
    return is_erf ? math<R>::all(a) : is_near ? math<R>::all(b) : math<R>::all(c);
  }
  REPDL_HD R erf_or(R a, R b) const { return is_erf ? a : b; }
};
template <class R>
struct erf_alone {
  static constexpr bool has_erf = true, has_erfc = false;
  explicit REPDL_HD erf_alone(R) {}
  REPDL_HD R operator()(double a, double, double) const { return math<R>::all(a); }
  REPDL_HD R erf_or(R a, R) const { return a; }
};
template <class R>
struct scaled_erfc_alone {
  static constexpr bool has_erf = false, has_erfc = true;
  decltype(R{} < R{}) is_near;
  explicit REPDL_HD scaled_erfc_alone(R z) : is_near(z < scaled_erfc_middle) {}
  REPDL_HD R operator()(double, double b, double c) const { return is_near ? math<R>::all(b) : math<R>::all(c); }
  REPDL_HD R erf_or(R, R b) const { return b; }
};

// c + t p, |t p| <= |c| / 3. The low part is not what a rounding leaves, but up to 6 u of the high one.
template <class R>
REPDL_HD double_word<R> error_function_step(double_word<R> c, double_word<R> t, double_word<R> p) {
  const double_word<R> m = two_prod(t.hi, p.hi);
  const double_word<R> s = fast_two_sum(c.hi, m.hi);
  const R low = math<R>::muladd(t.hi, p.lo, math<R>::muladd(t.lo, p.hi, m.lo));
  return {s.hi, s.lo + (c.lo + low)};
}
// Of a c, or a p, without a low part.
template <class R>
REPDL_HD double_word<R> error_function_step(R c, double_word<R> t, double_word<R> p) {
  const double_word<R> m = two_prod(t.hi, p.hi);
  const double_word<R> s = fast_two_sum(c, m.hi);
  return {s.hi, s.lo + math<R>::muladd(t.hi, p.lo, math<R>::muladd(t.lo, p.hi, m.lo))};
}
template <class R>
REPDL_HD double_word<R> error_function_step(R c, double_word<R> t, R p) {
  const double_word<R> m = two_prod(t.hi, p);
  const double_word<R> s = fast_two_sum(c, m.hi);
  return {s.hi, s.lo + math<R>::muladd(t.lo, p, m.lo)};
}

// x - centre for a centre that is a multiple of ulp(x.hi), so that both sums are exact or fast_two_sum's: where |x.hi| > centre, the
// difference is a multiple of ulp(x.hi) below |x.hi|.
template <class R>
REPDL_HD double_word<R> error_function_place(double_word<R> x, R centre) {
  const double_word<R> s = fast_two_sum(-centre, x.hi);
  return fast_two_sum(s.hi, s.lo + x.lo);
}

// 1 / v; |v.lo| <= 2 u |v|.
template <class R>
REPDL_HD double_word<R> error_function_reciprocal(double_word<R> v) {
  const R r = 1.0 / v.hi;
  const double_word<R> p = two_prod(v.hi, r);
  const R e = ((1.0 - p.hi) - p.lo) - v.lo * r;
  return {r, r * e};
}

template <class Pieces, class R>
REPDL_HD double_word<R> error_function_piece(double_word<R> z) {
  using c = error_function_coefficients;
  const Pieces of(z.hi);
  double_word<R> x{}, factor{};
  if constexpr (Pieces::has_erf) {
    x = two_prod(z.hi, z.hi);
    x.lo = math<R>::muladd(z.hi + z.hi, z.lo, x.lo);
    factor = z;
  }
  if constexpr (Pieces::has_erfc) {
    double_word<R> v = two_sum(z.hi, of(0, 69.0 / 32, 17.0 / 16));
    v.lo = v.lo + z.lo;
    const double_word<R> y = error_function_reciprocal(v);
    x = {of.erf_or(x.hi, y.hi), of.erf_or(x.lo, y.lo)};
    factor = {of.erf_or(factor.hi, y.hi), of.erf_or(factor.lo, y.lo)};
  }
  const double_word<R> t = error_function_place(x, of(49.0 / 128, 127.0 / 512, 233.0 / 2048));

  R q = of(c::a14, c::b14, c::c14);
  if constexpr (Pieces::has_erfc) {
    q = of(0, c::b18, c::c18);
    q = math<R>::muladd(q, t.hi, of(0, c::b17, c::c17));
    q = math<R>::muladd(q, t.hi, of(0, c::b16, c::c16));
    q = math<R>::muladd(q, t.hi, of(0, c::b15, c::c15));
    q = math<R>::muladd(q, t.hi, of(c::a14, c::b14, c::c14));
  }
  q = math<R>::muladd(q, t.hi, of(c::a13, c::b13, c::c13));
  q = math<R>::muladd(q, t.hi, of(c::a12, c::b12, c::c12));
  q = math<R>::muladd(q, t.hi, of(c::a11, c::b11, c::c11));
  q = math<R>::muladd(q, t.hi, of(c::a10, c::b10, c::c10));
  q = math<R>::muladd(q, t.hi, of(c::a9, c::b9, c::c9));
  q = math<R>::muladd(q, t.hi, of(c::a8, c::b8, c::c8));
  q = math<R>::muladd(q, t.hi, of(c::a7, c::b7, c::c7));
  q = math<R>::muladd(q, t.hi, of(c::a6, c::b6, c::c6));
  double_word<R> p = error_function_step(of(c::a5, c::b5, c::c5), t, q);
  p = error_function_step(of(c::a4, c::b4, c::c4), t, p);
  p = error_function_step(of(c::a3, c::b3, c::c3), t, p);
  p = error_function_step(double_word<R>{of(c::a2.hi, c::b2.hi, c::c2.hi), of(c::a2.lo, c::b2.lo, c::c2.lo)}, t, p);
  p = error_function_step(double_word<R>{of(c::a1.hi, c::b1.hi, c::c1.hi), of(c::a1.lo, c::b1.lo, c::c1.lo)}, t, p);
  p = error_function_step(double_word<R>{of(c::a0.hi, c::b0.hi, c::c0.hi), of(c::a0.lo, c::b0.lo, c::c0.lo)}, t, p);
  return mul(factor, p);
}

// Of z normalised, z = 0 or 2^-900 <= z <= 153/4: erf z where z.hi < erf_end, F(z) elsewhere; normalised. Of other z anything.
template <class R>
REPDL_HD double_word<R> erf_or_scaled_erfc(double_word<R> z) {
  return error_function_piece<any_error_function<R>>(z);
}
// erf z alone, z of either sign, |z| <= erf_end.
template <class R>
REPDL_HD double_word<R> erf_near_zero(double_word<R> z) {
  return error_function_piece<erf_alone<R>>(z);
}
// F(z) alone, erf_end <= z.
template <class R>
REPDL_HD double_word<R> scaled_erfc(double_word<R> z) {
  return error_function_piece<scaled_erfc_alone<R>>(z);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
