// The rounding test: from an approximation and a bound to a correctly rounded result, or to "undecided". T is binary32, or a narrower
// format: what is converted from binary64 is rounded once, exact there or rounded to odd (eft.hpp). From double-doubles also binary64, of
// which hi is the rounded number.
//
// Method: Ziv's test. If |s - S| <= e then S lies in [s - e, s + e]; rounding is monotone, so when both ends round to
// the same float, S rounds to it too. The ends are computed in binary64, so a bound has to carry some slack: the
// caller's contract is
//     (C)   fl(s - e) <= S <= fl(s + e),
// and every bound here and in sums.hpp is made large enough for it. Without the slack the test is unsound: s = m - 2^-49,
// e = 2^-49 + 2^-54 at the midpoint m = 1 + 2^-24 round to 1 at both ends although S = s + e > m rounds up.
//
// u = 2^-53 throughout.
// Checked by tests/numerics/num_test.cpp (against exact integers, and on the counterexample above).
#pragma once

#include "librepdl/num/eft.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr std::uint32_t canonical_nan_f32 = format<float>::nan;
inline constexpr double infinity = __builtin_huge_val();

template <class T>
struct decided_value {
  T value;  // meaningless unless decided
  bool decided;
};
using certified = decided_value<float>;

// RN_T(a). Of binary32 NaN need not be canonical.
template <class T>
REPDL_HD T rounded(double a) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(a);
  } else {
    return narrow<T>(a);
  }
}

// What a non-finite binary64 sum of f32 terms, or of products of two f32 factors, says about the result.
// Finite terms are below 2^256 and there are fewer than 2^63, so no partial sum of finite terms overflows 2^1024. An
// infinite node of the evaluation tree therefore has an infinite term below it, and a NaN node a NaN term (inf * 0
// included) or infinities of both signs; conversely each of these reaches the root, because inf + finite = inf and
// NaN + x = NaN. So s = +-inf, NaN is the result of the contract (section 3, rule 1), whatever the order.
template <class T = float>
REPDL_HD T non_finite_result(double s) {
  return narrow<T>(s);
}
REPDL_HD bool is_finite(double s) { return (bits_of(s) << 1) < 0xffe0000000000000ull; }

// The test itself: both ends, already rounded. NaN ends (an invalid bound) never pass. Bits, not values: an interval with +0 and
// -0 at its ends has both signs of tiny results in it.
template <class T>
REPDL_HD decided_value<T> same_bits(T lo, T hi) {
  return {lo, to_bits(lo) == to_bits(hi) && !is_nan(lo)};
}

// S from s and e under (C); e = 0 says S = s. e = +inf forces "undecided" for every finite s; a NaN e does too.
//   s = -0, e = 0: an exact zero is +0 (s + 0.0 makes it so, the other values stay).
//   s = +-e: fl(s -+ e) = +0 only if s = +-e exactly, so an end that is +0 belongs to the interval as a real number.
template <class T = float>
REPDL_HD decided_value<T> certify(double s, double e) {
  const double t = s + 0.0;
  const decided_value<T> c = same_bits(rounded<T>(t - e), rounded<T>(t + e));
  const bool finite = is_finite(s);
  return {finite ? c.value : non_finite_result<T>(s), !finite || c.decided};
}

// Double-double tier: S = s.hi + s.lo + delta, |delta| <= e, s normalised and finite; here e needs no slack.
// Each end is hi + t with t = fl(lo -+ f): exact by two_sum, odd-rounded to binary64, then rounded once to T.
// f must make up for the rounding of t: fl(lo - f) <= lo - f + u(|lo| + f) <= lo - e needs f >= (e + u|lo|)/(1 - u);
// f = fl(fl(e + 2u|lo|)(1 + 4u)) >= (e + 2u|lo|)(1 - u)^2(1 + 4u) has it. (lo is a multiple of 2^-298 for f32 products,
// e is 0 or at least 2^-106 of such a number: nothing underflows.) e = 0: f = 0 and both ends are the value itself.
struct dd_ends {
  dd lo;
  dd hi;
};
REPDL_HD dd_ends interval_ends(dd s, double e, double extra) {
  const double lo = s.lo < 0 ? -s.lo : s.lo;
  const double f = e == 0 ? 0.0 : (e + (0x1p-52 * lo + extra)) * (1 + 0x1p-51);
  return {two_sum(s.hi, s.lo - f), two_sum(s.hi, s.lo + f)};
}
template <class T>
REPDL_HD T round_dd(dd s) {
  if constexpr (std::is_same_v<T, double>) return s.hi + 0.0;  // normalised: RN(hi + lo)
  return rounded<T>(round_to_odd(s.hi + 0.0, s.lo));
}

template <class T = float>
REPDL_HD decided_value<T> certify(dd s, double e) {
  const dd_ends ends = interval_ends(s, e, 0);
  return same_bits(round_dd<T>(ends.lo), round_dd<T>(ends.hi));
}

// Where double-doubles of binary64 results neither overflow nor underflow.
REPDL_HD bool is_in_middle(double s) {
  const double a = double_of(bits_of(s) & 0x7fffffffffffffffull);
  return (a >= 0x1p-900) & (a <= 0x1p900);
}

// RO(s / n), rounding to odd: the quotient and the sign of its remainder. s - q n is a binary64 number (the remainder
// of a division that does not underflow), s - fl(q n) is exact (Sterbenz), so r below is that remainder exactly.
// Preconditions: n in [2^-60, 2^60]; s = 0 or 2^-800 < |s| < 2^900.
REPDL_HD double divide_to_odd(double s, double n) {
  const double q = s / n;
  const dd p = two_prod(q, n);
  return round_to_odd(q, (s - p.hi) - p.lo);
}

// RN(S / n) from s and e under (C). Dividing by n > 0 is monotone and both ends are rounded once (through odd), so the
// bound does not grow, and an exact s (e = 0) decides every tie. n in [1, 2^53] (2^55 bytes of floats).
// s = 0 and s = +-e as above; a nonzero quotient that rounds to zero keeps its sign.
template <class T = float>
REPDL_HD decided_value<T> certify_mean(double s, double e, std::int64_t n) {
  const double t = s + 0.0;
  const double d = static_cast<double>(n);
  const bool finite = is_finite(s) && e < 0x1p900;
  if (!finite) return {non_finite_result<T>(s), !is_finite(s)};
  return same_bits(rounded<T>(divide_to_odd(t - e, d)), rounded<T>(divide_to_odd(t + e, d)));
}

// The same from a double-double. An end h + l becomes q + d, q = fl(h / n), r = h - q n exactly, d = fl(fl(r + l) / n):
// |r| <= u|h|(1 + u), |l| <= u|h|, so |q + d - (h + l)/n| <= 2.1u · 2.1u|h|/n < 5u²|h|/n, and widening the ends by
// 2^-102|hi| = 16u²|hi| before the division covers it (|h| <= |hi| + |lo| + f; the part f is in the factor 1 + 4u).
// Ties are therefore left undecided here; an exactly known sum goes through fixed_point::mean.
// Binary64: |s| in [2^-900, 2^900], where nothing underflows; anything else is left undecided.
template <class T = float>
REPDL_HD decided_value<T> certify_mean(dd s, double e, std::int64_t n) {
  if (!(e < 0x1p900)) return {T{}, false};
  if (std::is_same_v<T, double> && !is_in_middle(s.hi)) return {T{}, false};
  const double d = static_cast<double>(n);
  const double slack = 0x1p-102 * (s.hi < 0 ? -s.hi : s.hi);
  const dd_ends ends = interval_ends(s, e == 0 ? slack : e, slack);
  const dd side[2] = {ends.lo, ends.hi};
  T out[2];
  for (int i = 0; i < 2; ++i) {
    const double q = side[i].hi / d;
    const dd p = two_prod(q, d);
    const double r = (side[i].hi - p.hi) - p.lo;
    out[i] = round_dd<T>(two_sum(q, (r + side[i].lo) / d));
  }
  return same_bits(out[0], out[1]);
}

// RO(sqrt v) in binary64: v - r^2 is a binary64 number for r = fl(sqrt v), and its sign is that of the rest. v = 0, or in [2^-900,
// 2^900]; NaN below 0.
REPDL_HD double root_to_odd(double v) {
  const double r = num::sqrt(v);
  const dd p = two_prod(r, r);
  return round_to_odd(r, (v - p.hi) - p.lo);
}

// RN(sqrt S) from s and e under (C). A root is monotone, and both ends are rounded once: with m a midpoint or a number of T, of at most 25
// bits, sqrt v < m iff v < m^2, which has 50 bits, so that rounding v, and its root, to odd moves neither across one. An end below 0
// is NaN and passes no test; e = 0 decides ties.
template <class T = float>
REPDL_HD decided_value<T> certify_root(double s, double e) {
  const double t = s + 0.0;
  if (!is_finite(s)) return {non_finite_result<T>(s), true};
  return same_bits(rounded<T>(root_to_odd(t - e)), rounded<T>(root_to_odd(t + e)));
}
// From a double-double. Binary64: r = RN(sqrt h), d = fl((h - r^2 + l) / 2r), the difference exact (two_prod, Sterbenz) and its sum with
// l once rounded: sqrt(h + l) = r + d - d'^2 / 2r + ..., where |d'| <= 2.1 u r, d off by 2 u |d'|: r + d is off by less than 8 u^2 r, to
// which 2^-100 r = 64 u^2 r is room. Both ends are widened by it.
template <class T = float>
REPDL_HD decided_value<T> certify_root(dd s, double e) {
  const dd_ends ends = interval_ends(s, e, 0);
  if constexpr (std::is_same_v<T, double>) {
    if (!is_in_middle(ends.lo.hi) || !is_in_middle(ends.hi.hi) || ends.lo.hi < 0) return {T{}, false};
    const auto root = [](dd x, double side) {
      const double r = num::sqrt(x.hi);
      const dd p = two_prod(r, r);
      return two_sum(r, (((x.hi - p.hi) - p.lo) + x.lo) / (2 * r) + side * r).hi;
    };
    return same_bits(root(ends.lo, -0x1p-100), root(ends.hi, 0x1p-100));
  }
  return same_bits(rounded<T>(root_to_odd(round_to_odd(ends.lo.hi + 0.0, ends.lo.lo))),
                   rounded<T>(root_to_odd(round_to_odd(ends.hi.hi + 0.0, ends.hi.lo))));
}

// --------------------------------------------------------------------------------------------------------- lattice

// 2^e, -1022 <= e <= 1023.
REPDL_HD double power_of_two(int e) { return double_of(static_cast<std::uint64_t>(e + 1023) << 52); }

// The exponent of the least significant set bit: x is an odd multiple of 2^lsb_exponent(x). no_lsb for zero (an even
// larger lattice); meaningless for infinities and NaN, whose sums never reach a lattice test.
// Take the minimum over terms; for products of two rows add the two minima (either may be no_lsb).
inline constexpr int no_lsb = 1 << 20;
REPDL_HD int lsb_exponent(float x) {
  const std::uint32_t b = bits_of(x);
  const int e = static_cast<int>(b >> 23) & 0xff;
  const std::uint32_t m = (b & 0x7fffffu) | (e != 0 ? 0x800000u : 0u);
  if (m == 0) return no_lsb;
  // m & -m is a power of two <= 2^23: its conversion to float is exact and shows the exponent.
  const int zeros = static_cast<int>(bits_of(static_cast<float>(m & (0u - m))) >> 23) - 127;
  return zeros + (e != 0 ? e : 1) - 150;
}

// The lattice rule. If every term is a multiple of g = 2^lsb >= 2^-1074 and sum|terms| <= 2^53 g, then every subset sum
// is a multiple of g of at most 53 bits: a binary64 number. Every order, tree and fma is exact, s = S and e = 0.
// `magnitude` may be a rounded sum|x| or product of norms (relative error below 2^-25): the test at 2^52 leaves a
// factor of two for it. Without the margin, 400 terms with a = 3b and S = 2^53 + 1 passed and returned 2^53. lsb > 900
// (no nonzero term): magnitude is 0. NaN or infinite magnitudes fail.
REPDL_HD bool lattice_holds(double magnitude, int lsb) {
  return lsb >= -1074 && magnitude <= power_of_two((lsb > 900 ? 900 : lsb) + 52);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
