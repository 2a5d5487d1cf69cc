// The softmax family's double-double tier, host and device. Method, notation and the gaps: rows.hpp. u = 2^-53.
//
// Source: M. Joldes, J.-M. Muller, V. Popescu, "Tight and rigorous error bounds for basic building blocks of
// double-word arithmetic", ACM TOMS 44 (2017). Every bound below is several times what the operations need. What it
// leaves open: gaps that are midpoints, or exact, beside an R below 2^-100 of them (binary64 decides those), and ties
// (1/4 of an odd subnormal): the last tier (librepdl/ops/exponential_sum.hpp).
#pragma once

#include "librepdl/num/dd.hpp"
#include "librepdl/ops/rows.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// e^d = 2^k (1 + p), d = hi + lo normalised, |d| <= 600.
//   r = d - k ln2 = (hi - k ln2_1) - k ln2_2 + (lo - k ln2_3): the first two exact (two_sum); lo <= 2^-44, so the last
//   sums are off by 2^-97 = 2^9 u^2. k = 0: r = d exactly.
//   h = r / 16, |h| < 0.0217:  e^h - 1 = h + h^2 (1/2 + ... + h^5/7! + h^6 (1/8! + ... + h^6/14!)), cut off below
//   2^-113 of itself; the last bracket in binary64, 2^-107; the others 4u^2 in all.
//   four times p <- 2p + p^2: each 12u^2 of itself, and at most 1.2 times the error so far.
// p, for k = 0: relative error < 100u^2. e^d: below 2^9 u^2 + 100u^2 < 2^10 u^2.
template <class R>
struct wide_power {
  double_word<R> p;
  R scale;  // 2^k
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
  const auto step = [&](double c, double c_low) { a = add(double_word<R>{M::all(c), M::all(c_low)}, mul(h, a)); };
  step(0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65);
  step(0x1.1111111111111p-7, 0x1.1111111111111p-63);
  step(0x1.5555555555555p-5, 0x1.5555555555555p-59);
  step(0x1.5555555555555p-3, 0x1.5555555555555p-57);
  step(0.5, 0.0);
  a = add(h, mul(mul(h, h), a));
  for (int i = 0; i < 4; ++i) a = add(double_word<R>{a.hi * 2.0, a.lo * 2.0}, mul(a, a));
  return {a, M::from_bits((M::to_bits(t) << 52) + 0x3ff0000000000000)};
}
template <class R>
REPDL_HD double_word<R> wide_exp(R hi, R lo) {
  using M = math<R>;
  const auto e = wide_exp_parts(hi, lo);
  const auto w = add(double_word<R>{M::all(1.0), M::all(0.0)}, e.p);
  return {w.hi * e.scale, w.lo * e.scale};
}

// e^(x - max) for a finite x <= max, the gap cut to -600.
REPDL_HD dd dd_weight(float x, float max) {
  const dd d = two_sum(static_cast<double>(x), -static_cast<double>(max));
  const bool cut = d.hi < least_gap;
  return wide_exp(cut ? least_gap : d.hi, cut ? 0.0 : d.lo);
}

// One row in double-double. rest's relative error: (2^10 + 4 height) u^2, height the additions on a term's path.
struct dd_row {
  float max;
  double count;
  dd rest;
  double error;  // relative, of rest and of S
  dd sum;        // S
  dd log;        // R; error 4 times the one above, relative
  bool shallow;  // rest >= 2^-700 or count > 1: R as said; otherwise the tier cannot tell it

  // R = R0 + ln(S e^-R0), R0 = fast_log. S e^-R0 - 1 = d: below 16u R in magnitude, d - d^2/2 in binary64 is enough.
  //   count = 1, R0 < 0.34: d = rest + p + rest p with p = e^-R0 - 1, all relative to rest: 2.5 times rest's error;
  //   otherwise from S e^-R0 near 1, absolute, R >= 0.34: 3 times S's error and 2^10 u^2.
  // So with E = error + 2^11 u^2: R's relative error is below 4 E.
  REPDL_HD void finish(float greatest, double multiplicity, dd small, std::int64_t height) {
    max = greatest;
    count = multiplicity;
    rest = small;
    error = (0x1p12 + 4.0 * static_cast<double>(height)) * 0x1p-106;
    sum = add(rest, count);
    shallow = count > 1 || rest.hi >= 0x1p-700;
    const double r0 = fast_log(count, rest.hi);
    const wide_power<double> e = wide_exp_parts(-r0, 0.0);
    double d = 0;
    if (count < 2 && e.scale == 1) {
      const dd v = add(add(rest, e.p), mul(rest, e.p));
      d = v.hi;
    } else {
      const dd w = mul(mul(sum, e.scale), add(dd{1.0, 0.0}, e.p));
      d = (w.hi - 1.0) + w.lo;
    }
    log = two_sum(r0, d - 0.5 * d * d);
  }

  // RN(v), v with a relative error; below 2^-200 (an exact zero included) a zero of `sign`.
  REPDL_HD static certified round_relative(dd v, double relative, float sign) {
    if (magnitude_of(v.hi) < 0x1p-200) return {sign < 0 || bits_of(sign) == 0x80000000u ? -0.0f : 0.0f, true};
    return certify(v, relative * magnitude_of(v.hi));
  }
  // g / n e^(x_i) / S; softmax with g = n = 1. Errors: e^d 2^10 u^2, S, 50u^2.
  REPDL_HD certified weight(float x, float g, double n) const {
    const dd v = div(mul(dd_weight(x, max), static_cast<double>(g)), mul(sum, n));
    return round_relative(v, 2 * error, g);
  }
  // g / n (e^(x_t) / S - 1) = -g / n (S - e^(x_t)) / S; the difference is rest, or at least S / 2.
  REPDL_HD certified target_weight(float x, float g, double n) const {
    dd z = sum;
    if (x == max) {
      z = add(rest, count - 1);
    } else if (x > -infinity) {
      const dd w = dd_weight(x, max);
      z = add(sum, dd{-w.hi, -w.lo});
    }
    if (z.hi == 0) return {0.0f * g, true};  // one finite element: (1 - 1) g
    const dd v = div(mul(z, -static_cast<double>(g)), mul(sum, n));
    return round_relative(v, 6 * error, -g);
  }
  // a - b - R, a and b binary32 values; sign = -1: a - b + R.
  REPDL_HD certified gap(float a, float b, double sign) const {
    const dd d = two_sum(static_cast<double>(a), -static_cast<double>(b));
    if (count == 1 && rest.hi == 0) return certify(dd{d.hi + 0.0, d.lo}, 0.0);
    const dd v = add(d, dd{-sign * log.hi, -sign * log.lo});
    return certify(v, shallow ? 4 * error * log.hi + 0x1p-103 * magnitude_of(v.hi) : infinity);
  }
};

// g - e^y G, G = s.hi + s.lo +- slack; y finite, or -inf. y = 0: e^y = 1, and nothing is rounded where t.lo = 0.
REPDL_HD certified dd_log_softmax_gradient(float g, float y, const tracked_sum<double>& s, double slack) {
  if (y == -infinity) return certify(static_cast<double>(g), 0.0);
  const double cut = y > 600.0f ? 600.0 : y < -600.0f ? -600.0 : static_cast<double>(y);
  dd total = two_sum(s.hi, s.lo);
  double e = slack;
  if (y != 0) {
    const dd w = wide_exp(cut, 0.0);
    total = mul(w, total);
    e = (slack * w.hi + 0x1p-95 * magnitude_of(total.hi)) * (1 + 0x1p-40);
  }
  const dd a = two_sum(static_cast<double>(g), -total.hi);
  const dd t = two_sum(a.lo, -total.lo);
  return certify(two_sum(a.hi, t.hi), e + 2 * magnitude_of(t.lo));
}

// y (g - P), P = s.hi + s.lo +- slack, all finite. Exact products; e gathers what is left over.
REPDL_HD certified dd_softmax_gradient(float g, float y, const tracked_sum<double>& s, double slack) {
  const dd total = two_sum(s.hi, s.lo);
  const dd a = two_sum(static_cast<double>(g), -total.hi);
  const dd t = two_sum(a.lo, -total.lo);
  const dd z = two_sum(a.hi, t.hi);
  const double left = slack + magnitude_of(t.lo);
  if (y == 0 || (z.hi == 0 && left == 0)) {
    const double sign = z.hi + 0.0;
    return {y * (sign < 0 ? -1.0f : 1.0f) * 0.0f, left == 0 || magnitude_of(z.hi) > 2 * left};
  }
  const dd p = two_prod(static_cast<double>(y), z.hi);
  const dd q = two_prod(static_cast<double>(y), z.lo);
  const dd c = two_sum(p.lo, q.hi);
  const double e =
      (magnitude_of(static_cast<double>(y)) * left + magnitude_of(c.lo) + magnitude_of(q.lo)) * (1 + 0x1p-40);
  return certify(two_sum(p.hi, c.hi), e);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
