// Exponentials and logarithms of rows: binary64, whole registers of it, and wide numbers. u = 2^-53.
//
// Constants: reference/gen/rows.sollya; the polynomials are those of exp.hpp and log.hpp.
//
// e^d, binary64, for |d| <= 600 (fast_exp): the reduction of exp.hpp with ln2_1 of 42 bits, so that k ln2_1 is exact for |k| < 2^11.
// d - k ln2_1 is exact: k = 0, or |d| > 1/4 is a multiple of 2^-54 and the difference, a multiple of 2^-54, is below 1/2. The other
// errors are those of exp.hpp: relative error < 5.1 u; e^0 = 1 exactly.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/num/wide.hpp"
#include "librepdl/ops/elementwise/exp.hpp"
#include "librepdl/ops/elementwise/log.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr double least_gap = -600.0;
// Of binary64: a gap, and the exponent of what is more than its e^-gap.
inline constexpr double wide_gap = 8192.0;
inline constexpr int wide_gap_power = -11818;

struct row_constants {
  static constexpr double ln2_1 = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
  static constexpr double ln2_2 = 0x1.ef35793c768p-45, ln2_3 = -0x1.9ff0342542fc3p-90;
};

// e^d, |d| <= 600. Relative error < 5.1 u.
template <class R>
REPDL_HD R fast_exp(R d) {
  using M = math<R>;
  using C = exp_core;
  using K = row_constants;
  const auto t = M::muladd(d, M::all(C::log2e), M::all(C::shifter));
  const auto k = t - C::shifter;
  const auto r = M::muladd(k, M::all(-K::ln2_low), M::muladd(k, M::all(-K::ln2_1), d));
  auto p = M::muladd(M::all(C::c10), r, M::all(C::c9));
  p = M::muladd(p, r, M::all(C::c8));
  p = M::muladd(p, r, M::all(C::c7));
  p = M::muladd(p, r, M::all(C::c6));
  p = M::muladd(p, r, M::all(C::c5));
  p = M::muladd(p, r, M::all(C::c4));
  p = M::muladd(p, r, M::all(C::c3));
  p = M::muladd(p, r, M::all(C::c2));
  p = M::muladd(p, r, M::all(1.0));
  p = M::muladd(p, r, M::all(1.0));
  return M::from_bits(M::to_bits(p) + (M::to_bits(t) << 52));
}

// The same as a rule is given it.
struct plain_exponential {
  template <class R>
  REPDL_HD R operator()(R d) const {
    return fast_exp(d);
  }
};

// ln(count + rest), count an integer in [1, 2^52], 0 <= rest < 2^52: relative error < 8 u, 0 exactly for (1, 0).
//   S = 2^e m, sqrt(1/2) <= m < sqrt 2;  f = m - 1 = (count 2^-e - 1) + rest 2^-e, the first part exact, one rounding;
//   ln(1 + f) = s (2 + z), s = f / (2 + f), z = s^2 (log.hpp): f u, 2 + f and the quotient 2 u, R 0.1 u, the sum
//   and the product 2 u: 5.1 u;  e ln2: with e >= 1, |ln(1 + f)| <= ln S, and two sums: 2 u more.
template <class R>
REPDL_HD R fast_log(R count, R rest) {
  using M = math<R>;
  using L = body<ops::log>;
  using K = row_constants;
  constexpr std::uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;
  const auto biased = (M::to_bits(count + rest) + (one - sqrt_half)) >> 52;
  const auto e = M::from_bits(biased | 0x4330000000000000) - 0x1.00000000003ffp52;
  const auto scale = M::from_bits((2046 - biased) << 52);
  const auto f = (count * scale - 1.0) + rest * scale;
  const auto s = f / (2.0 + f);
  const auto z = s * s;
  auto p = M::muladd(M::all(L::c7), z, M::all(L::c6));
  p = M::muladd(p, z, M::all(L::c5));
  p = M::muladd(p, z, M::all(L::c4));
  p = M::muladd(p, z, M::all(L::c3));
  p = M::muladd(p, z, M::all(L::c2));
  p = M::muladd(p, z, M::all(L::c1));
  const auto l = s * M::muladd(p, z, M::all(2.0));
  return M::muladd(e, M::all(K::ln2_1), M::muladd(e, M::all(K::ln2_low), l));
}

// e^d = 2^k (1 + p), d = hi + lo normalised, |d| <= 1000.
//   r = d - k ln2 = (hi - k ln2_1) - k ln2_2 + (lo - k ln2_3): the first two exact (two_sum); lo <= 2^-44, so the last
//   sums are off by 2^-97 = 2^9 u^2. k = 0: r = d exactly.
//   h = r / 16, |h| < 0.0217:  e^h - 1 = h + h^2 (1/2 + ... + h^5/7! + h^6 (1/8! + ... + h^6/14!)), cut off below
//   2^-113 of itself; the last bracket in binary64, 2^-107; the others 6u^2 in all, as what is added is below 1/40.
//   four times p <- 2p + p^2: each 12u^2 of itself, and at most 1.2 times the error so far.
// p, for k = 0: relative error < 100u^2. e^d: below 2^9 u^2 + 100u^2 < 2^10 u^2.
template <class R>
struct wide_power {
  double_word<R> p;
  R scale;  // 2^k, for |d| <= 600
  R k;
};
template <class R>
REPDL_HD wide_power<R> wide_exp_parts(R hi, R lo) {
  using M = math<R>;
  using K = row_constants;
  const auto t = hi * exp_core::log2e + exp_core::shifter;
  const auto k = t - exp_core::shifter;
  const auto s = two_sum(hi - k * K::ln2_1, -(k * K::ln2_2));
  const auto r = two_sum(s.hi, s.lo + (lo - k * K::ln2_3));
  const double_word<R> h = {r.hi * 0.0625, r.lo * 0.0625};
  auto q = M::muladd(h.hi, M::all(0x1.93974a8c07c9dp-37), M::all(0x1.6124613a86d09p-33));
  q = M::muladd(h.hi, q, M::all(0x1.1eed8eff8d898p-29));
  q = M::muladd(h.hi, q, M::all(0x1.ae64567f544e4p-26));
  q = M::muladd(h.hi, q, M::all(0x1.27e4fb7789f5cp-22));
  q = M::muladd(h.hi, q, M::all(0x1.71de3a556c734p-19));
  q = M::muladd(h.hi, q, M::all(0x1.a01a01a01a01ap-16));
  auto a = fast_two_sum(M::all(0x1.a01a01a01a01ap-13), M::muladd(h.hi, q, M::all(0x1.a01a01a01a01ap-73)));
  const auto step = [&](double c, double c_low) {
    a = add_smaller(double_word<R>{M::all(c), M::all(c_low)}, mul(h, a));
  };
  step(0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65);
  step(0x1.1111111111111p-7, 0x1.1111111111111p-63);
  step(0x1.5555555555555p-5, 0x1.5555555555555p-59);
  step(0x1.5555555555555p-3, 0x1.5555555555555p-57);
  step(0.5, 0.0);
  a = add_smaller(h, mul(mul(h, h), a));
  for (int i = 0; i < 4; ++i) a = add_smaller(double_word<R>{a.hi * 2.0, a.lo * 2.0}, mul(a, a));
  return {a, M::from_bits((M::to_bits(t) << 52) + 0x3ff0000000000000), k};
}
template <class R>
REPDL_HD double_word<R> wide_exp(R hi, R lo) {
  using M = math<R>;
  const auto e = wide_exp_parts(hi, lo);
  const auto w = add_smaller(double_word<R>{M::all(1.0), M::all(0.0)}, e.p);
  return {w.hi * e.scale, w.lo * e.scale};
}

// In an arithmetic: e^(x - max), x <= max finite, or -inf, which gives 0; and e^x.
template <class A>
struct exponentials;
// Gaps beyond -600 are only enclosed: e^-600 < 2^-865.
template <class R>
struct exponentials<wide<R>> {
  template <class T = float>
  REPDL_HD static wide<R> of_gap(R x, R max) {
    using M = math<R>;
    const R zero = M::all(0.0);
    const R tiny = M::all(0x1p-865);
    const auto d = two_sum(x, -max);
    const auto deep = d.hi < least_gap;
    const auto absent = x == -infinity;
    const double_word<R> e = wide_exp(deep ? M::all(least_gap) : d.hi, deep ? zero : d.lo);
    const R error = deep ? tiny : 0x1p-96 * e.hi;
    return {{deep ? zero : e.hi, deep ? zero : e.lo}, absent ? zero : error};
  }
  // Of a binary64 number, |x| <= 600.
  REPDL_HD static wide<R> of(R x) {
    const double_word<R> e = wide_exp(x, math<R>::all(0.0));
    return {e, x == 0.0 ? math<R>::all(0.0) : 0x1p-96 * e.hi};
  }
};
// A large gap is only enclosed. Of binary32 numbers one of g = 45 (L + 4) or more: e^-g < 2^(-64 (L + 4)), and 2^35 such terms, every
// addition of their radii rounded up, stay below 2^-457 (more are undecided at L = 4 and decided later). Of binary64 ones, where e^-745 may be a
// result, and weights are factors, one of 8192 or more: e^-8192 < 2^-11818. (Rounding is monotone: a rounded difference below the integer g belongs to an exact
// one below g.) A smaller one is a ball: exact where L limbs hold it.
template <int L>
struct exponentials<ball<L>> {
  template <class T = float>
  REPDL_HD_CALL static ball<L> of_gap(double x, double max) {
    constexpr bool wide = sizeof(T) == 8;
    if (x == -infinity) return exact_ball(zero_limbs<L>());
    if (max - x >= (wide ? wide_gap : 45.0 * (L + 4))) {
      return {zero_limbs<L>(), power_magnitude(wide ? wide_gap_power : -64 * (L + 4))};
    }
    return exponential(subtract(exact_ball(limbs_of_value<L>(x)), exact_ball(limbs_of_value<L>(max))));
  }
  REPDL_HD static ball<L> of(double x) { return exponential(limbs_of_value<L>(x)); }
};

// ln(1 + v), v >= 0, and ln v, v >= 2, in place: R = R0 + ln(S e^-R0), R0 = fast_log. S e^-R0 - 1 = d: below 16 u R in magnitude,
// d - d^2 / 2 in binary64 is enough.
// - 1 + v, R0 < 0.34: d = v + p + v p with p = e^-R0 - 1, p and v off by 100 u^2 of themselves, the operations 16 u^2: below 2^8 u^2 v
//   < 2^9 u^2 R.
// - otherwise from S e^-R0 near 1, absolute: 2^10.1 u^2 < 2^11.7 u^2 R, as R >= 0.34.
// An error e of v is one of e / S at most. A v that is not known to lie so, or at all, says nothing.
REPDL_HD void to_logarithm_of(wide<double>& v, bool beside_one) {
  const double one = beside_one ? 1.0 : 0.0;
  const double spread = v.error / (one + v.value.hi) * (1 + 0x1p-3);
  if (!(v.value.hi >= 2 - 2 * one) || !(v.error <= (one + v.value.hi) * 0x1p-4)) {
    v.error = infinity;
    return;
  }
  const double r0 = fast_log(1.0, beside_one ? v.value.hi : v.value.hi - 1);
  const wide_power<double> e = wide_exp_parts(-r0, 0.0);
  double d = 0;
  if (beside_one && e.scale == 1) {
    d = add(add(v.value, e.p), mul(v.value, e.p)).hi;
  } else {
    const dd w = mul(mul(beside_one ? add(v.value, 1.0) : v.value, e.scale), add(dd{1.0, 0.0}, e.p));
    d = (w.hi - 1.0) + w.lo;
  }
  v = {two_sum(r0, d - 0.5 * d * d), is_zero(v) ? 0.0 : spread + 0x1p-94 * r0};
}
REPDL_HD void to_logarithm_1p(wide<double>& v) { to_logarithm_of(v, true); }
REPDL_HD void to_logarithm(wide<double>& v) { to_logarithm_of(v, false); }

}  // namespace REPDL_ISA
}  // namespace repdl::num
