// Balls of double-doubles: the level below the multi-limb balls (multi_limb_ball.hpp), for formulas of binary64. A value, hi + lo, and a
// bound of its error; R is binary64, or a register of it. The bound 0 says that the value is exact, one that is not finite that nothing
// is known. Nothing branches, but round_scaled on a CPU.
//
// Every operation's bound has the errors of dd.hpp (u = 2^-53), those that its operands bring, and room for the roundings of bounds
// (`up`). A bound that underflows would say "exact": multiplications and divisions of what is not exact add 2^-1010, which is nothing
// beside results of 2^-900 and more; of smaller results, whose low parts would underflow, and of those above 2^900, nothing is known.
// Infinities and NaN make low parts or bounds NaN, which pass no test.
//
// Checked by tests/numerics/dd_functions_test.cpp.
#pragma once

#include <concepts>

#include "librepdl/num/dd.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class R>
struct dd_ball {
  using real = R;
  R hi, lo;  // hi = RN(hi + lo)
  R error;   // |value - (hi + lo)| <= error
};
template <class Ball>
inline constexpr bool is_dd_ball = false;
template <class R>
inline constexpr bool is_dd_ball<dd_ball<R>> = true;

// Comparisons of R make these: bool, or a register of integers; both are joined by & and |, and choose by ?:.
template <class R>
using mask_of = decltype(R{} < R{});

// An exact number: of R, or one for all of a register.
template <class Ball, class X>
requires is_dd_ball<Ball> REPDL_HD Ball number(const X& x) {
  using R = typename Ball::real;
  if constexpr (std::same_as<X, R>) {
    return {x, math<R>::all(0), math<R>::all(0)};
  } else {
    return {math<R>::all(x), math<R>::all(0), math<R>::all(0)};
  }
}
// A constant that is not a double-double: within u^2 of hi.
template <class Ball>
requires is_dd_ball<Ball> REPDL_HD Ball constant(dd c) {
  using R = typename Ball::real;
  return {math<R>::all(c.hi), math<R>::all(c.lo), math<R>::all(0x1p-106 * magnitude_of(c.hi))};
}

// A bound that a few roundings made too small.
template <class R>
REPDL_HD R up(R bound) {
  return bound * (1 + 0x1p-49);
}
template <class R>
REPDL_HD mask_of<R> is_in_middle(R x) {
  const R a = magnitude_of(x);
  return (a >= 0x1p-900) & (a <= 0x1p900);
}
template <class R>
REPDL_HD double_word<R> value_of(const dd_ball<R>& a) {
  return {a.hi, a.lo};
}
template <class R>
REPDL_HD dd_ball<R> negated(const dd_ball<R>& a) {
  return {-a.hi, -a.lo, a.error};
}
template <class R>
REPDL_HD dd_ball<R> grown(const dd_ball<R>& a, R by) {
  return {a.hi, a.lo, up(a.error + by)};
}
// a 2^power, |power| <= 64.
template <class R>
REPDL_HD dd_ball<R> scaled(const dd_ball<R>& a, int power) {
  const double s = power_of_two(power);
  return {a.hi * s, a.lo * s, a.error * s};
}
// a by lanes, or b.
template <class R>
REPDL_HD dd_ball<R> select(mask_of<R> which, const dd_ball<R>& a, const dd_ball<R>& b) {
  return {which ? a.hi : b.hi, which ? a.lo : b.lo, which ? a.error : b.error};
}

// AccurateDWPlusDW (dd.hpp) with what its two roundings lose: no rest, no error.
template <class R>
REPDL_HD dd_ball<R> operator+(const dd_ball<R>& a, const dd_ball<R>& b) {
  const double_word<R> s = two_sum(a.hi, b.hi);
  const double_word<R> t = two_sum(a.lo, b.lo);
  const double_word<R> c = two_sum(s.lo, t.hi);
  const double_word<R> v = fast_two_sum(s.hi, c.hi);
  const double_word<R> w = two_sum(t.lo, v.lo);
  const double_word<R> z = fast_two_sum(v.hi, w.hi);
  return {z.hi, z.lo, up((a.error + b.error) + (magnitude_of(c.lo) + magnitude_of(w.lo)))};
}
template <class R>
REPDL_HD dd_ball<R> operator-(const dd_ball<R>& a, const dd_ball<R>& b) {
  return a + negated(b);
}

// Double-doubles that need not be normalised, |lo| <= 9 u |hi|: what is computed with, in fewer operations than dd.hpp's, on the way to
// a result.
//   product   |lo| <= 9 u |hi| of operands with |lo| <= 4 u |hi|; the relative error is less than 40 u^2: 16 u^2 for the product of low parts, which is
//             left out, 9 u^2 and 5 u^2 for the sums' roundings, 8 u^2 for those of products where muladd has two
//   square    likewise; of a larger |lo| <= m u |hi| with m <= 12: |lo| <= (2 m + 1) u |hi| and an error less than (m^2 + 6 m) u^2
//   sum       of numbers |y| <= |x| of one sign, or |y| <= |x| / 3: |lo| <= 4 u |hi| where y.lo is within 9 u / 3 of x.hi, and an error less than 12 u^2
template <class R>
REPDL_HD double_word<R> product(double_word<R> a, double_word<R> b) {
  const double_word<R> p = two_prod(a.hi, b.hi);
  return {p.hi, math<R>::muladd(a.hi, b.lo, math<R>::muladd(a.lo, b.hi, p.lo))};
}
template <class R>
REPDL_HD double_word<R> square(double_word<R> a) {
  const double_word<R> p = two_prod(a.hi, a.hi);
  return {p.hi, math<R>::muladd(a.hi + a.hi, a.lo, p.lo)};
}
template <class R>
REPDL_HD double_word<R> sum(double_word<R> x, double_word<R> y) {
  const double_word<R> s = fast_two_sum(x.hi, y.hi);
  return {s.hi, s.lo + (x.lo + y.lo)};
}
// a b + c where that is a number of binary64, and c + RN(a b), too.
template <class R>
REPDL_HD R exact_muladd(R a, R b, R c) {
  if constexpr (has_fast_fma) {
    return math<R>::muladd(a, b, c);
  } else {
    const double_word<R> p = two_prod(a, b);
    return (c + p.hi) + p.lo;
  }
}
// c + a b, |a b| <= |c| / 2 or c = 0: as `sum` of c and the product. With FMA c.hi - s is exact, and so is what the second one adds to it but for its own rounding.
template <class R>
REPDL_HD double_word<R> sum_of_product(double_word<R> c, R a, R b) {
  if constexpr (has_fast_fma) {
    const R s = math<R>::muladd(a, b, c.hi);
    return {s, math<R>::muladd(a, b, c.hi - s) + c.lo};
  } else {
    const double_word<R> p = two_prod(a, b);
    const double_word<R> s = fast_two_sum(c.hi, p.hi);
    return {s.hi, s.lo + (c.lo + p.lo)};
  }
}
template <class R>
REPDL_HD double_word<R> sum_of_product(double_word<R> c, R a, double_word<R> b) {
  const double_word<R> s = sum_of_product(c, a, b.hi);
  return {s.hi, math<R>::muladd(a, b.lo, s.lo)};
}
template <class R>
REPDL_HD double_word<R> sum_of_product(double_word<R> c, double_word<R> a, double_word<R> b) {
  const double_word<R> s = sum_of_product(c, a.hi, b);
  return {s.hi, math<R>::muladd(a.lo, b.hi, s.lo)};
}
template <class R>
REPDL_HD double_word<R> normalised(double_word<R> a) {
  return fast_two_sum(a.hi, a.lo);
}
// a / b of normalised operands, normalised, within 64 u^2, by one division: i = RN(1 / b.hi), q = RN(a.hi i), off by 2 u and less than 3 u of
// a.hi / b.hi; a.hi - q b.hi, of which only the last subtraction rounds (3 u^2), the rest of a and b (2 u, rounded twice: 10 u^2), times i
// (2 u of 5 u), and what b.lo changes of that (5 u^2).
template <class R>
REPDL_HD double_word<R> ratio(double_word<R> a, double_word<R> b) {
  const R inverse = 1.0 / b.hi;
  const R q = a.hi * inverse;
  const double_word<R> p = two_prod(q, b.hi);
  const R rest = ((a.hi - p.hi) - p.lo) + math<R>::muladd(-q, b.lo, a.lo);
  return fast_two_sum(q, rest * inverse);
}
// The same of a number a, and |b.lo| <= 2 u |b.hi|; not normalised, |lo| <= 3 u |hi|.
template <class R>
REPDL_HD double_word<R> ratio(R a, double_word<R> b) {
  const R inverse = 1.0 / b.hi;
  const R q = a * inverse;
  const R rest = exact_muladd(-q, b.hi, a);
  return {q, math<R>::muladd(-q, b.lo, rest) * inverse};
}

// What the bound of a product or quotient z adds: 64 u^2 of it, and 2^-1010, unless everything is exact; and infinity where z is too
// small or too large, but for an exact 0.
template <class R>
REPDL_HD R own_error(R z, mask_of<R> inexact, mask_of<R> zero) {
  const R own = inexact ? 0x1p-100 * magnitude_of(z) + 0x1p-1010 : math<R>::all(0);
  return zero | is_in_middle(z) ? own : math<R>::all(infinity);
}
// a b within 40 u^2. Where neither operand has a low part, the product is exact.
template <class R>
REPDL_HD dd_ball<R> operator*(const dd_ball<R>& a, const dd_ball<R>& b) {
  const double_word<R> z = normalised(product(value_of(a), value_of(b)));
  const mask_of<R> inexact = (a.lo != 0) | (b.lo != 0) | (a.error + b.error != 0);
  const R brought = magnitude_of(a.hi) * b.error + (magnitude_of(b.hi) + b.error) * a.error;
  const R own = own_error(z.hi, inexact, (a.hi == 0) | (b.hi == 0));
  return {z.hi, z.lo, up(brought + own)};
}
// a / b within 64 u^2; a/b - a'/b' = (a - a')/b + (a'/b')(b' - b)/b, and |b| >= (15/16)|b'| where b's bound is at most
// |b'|/16, of which 17/16 has room for low parts, too; else nothing is known.
template <class R>
REPDL_HD dd_ball<R> operator/(const dd_ball<R>& a, const dd_ball<R>& b) {
  const double_word<R> z = ratio(value_of(a), value_of(b));
  const R divisor = magnitude_of(b.hi);
  const R brought = 1.125 * ((a.error + magnitude_of(z.hi) * b.error) / divisor);
  const mask_of<R> known = is_in_middle(b.hi) & (is_in_middle(a.hi) | (a.hi == 0)) & (16 * b.error <= divisor);
  const R own = own_error(z.hi, a.hi == a.hi, a.hi == 0);
  return {z.hi, z.lo, known ? up(brought + own) : math<R>::all(infinity)};
}
// sqrt a, a > 0: r = RN(sqrt hi), d = RN((hi - r^2 + lo) / 2r), the difference exact: certify_root (certify.hpp) has r + d within 8 u^2 r.
// sqrt(a + e) - sqrt(a) <= e / (2 sqrt(a - e)) <= 0.6 e / sqrt(a) for e <= a/16.
template <class R>
REPDL_HD dd_ball<R> square_root(const dd_ball<R>& a) {
  const R r = math<R>::sqrt(a.hi);
  const double_word<R> p = two_prod(r, r);
  const double_word<R> z = fast_two_sum(r, (((a.hi - p.hi) - p.lo) + a.lo) / (2 * r));
  const mask_of<R> known = is_in_middle(a.hi) & (a.hi > 0) & (16 * a.error <= a.hi);
  return {z.hi, z.lo, known ? up(0.6 * (a.error / r) + 0x1p-100 * r) : math<R>::all(infinity)};
}

// ------------------------------------------------------------------------------------------------------- rounding

// As decided_value<double>, of R.
template <class R>
struct decided_lanes {
  R value;
  mask_of<R> decided;
};

// The ends of a ball, each before its last rounding, hi + end: fl(lo - e) <= lo - e' for e = (e' + u |lo|)(1 + 4u) and more.
template <class R>
struct dd_ball_ends {
  R low, high;
};
template <class R>
REPDL_HD dd_ball_ends<R> low_ends(const dd_ball<R>& a) {
  const R e = up(a.error + 0x1p-52 * magnitude_of(a.lo));
  return {a.lo - e, a.lo + e};
}
// RN of every number in the ball, if that is one value other than 0: rounding is monotone. What is exact is rounded to hi, ties included.
template <class R>
REPDL_HD decided_lanes<R> round_ball(const dd_ball<R>& a) {
  const auto [low_end, high_end] = low_ends(a);
  const R low = a.hi + low_end;
  const R high = a.hi + high_end;
  const mask_of<R> exact = (a.error == 0) & (a.lo == a.lo);
  return {a.hi, static_cast<mask_of<R>>(((low == high) | exact) & (a.hi != 0))};
}

// RN of every number within `bound` hi of hi + lo, |lo| <= 2^-19 |hi|, if that is one value other than 0. `bound` has room for what the sum with lo rounds, 2^-52 of lo,
// and without FMA the product, 2^-53 of itself.
template <class R>
REPDL_HD decided_lanes<R> round_within(double_word<R> a, R bound) {
  const R low = a.hi + math<R>::muladd(a.hi, -bound, a.lo);
  const R high = a.hi + math<R>::muladd(a.hi, bound, a.lo);
  return {low, low == high};
}

// 2^k for a whole number k, |k| <= 1000.
template <class R>
REPDL_HD R power_of(R k) {
  return math<R>::from_bits(math<R>::to_bits(k + (0x1.8p52 + 1023)) << 52);
}

// RN(a 2^k) for k a whole number, |k| <= 1000, and normal results.
template <class R>
REPDL_HD decided_lanes<R> round_normal(const dd_ball<R>& a, R k) {
  const auto [low_end, high_end] = low_ends(a);
  const R low = a.hi + low_end;
  return {low * power_of(k), low == a.hi + high_end};
}

// RN(a 2^k) for k a whole number of |k| <= 1100 and a in [1/4, 2^50], subnormal results and overflow included, or for k >= -1000 any a that
// is not 0 with |a| in [2^-20, 2^50]. A subnormal result, a < 2^p
// with p = -1022 - k, is a multiple of 2^(p - 52), the last bit of numbers in [2^p, 2^(p + 1)]: adding c = 2^p first rounds hi to one, and
// the rest of hi joins lo: one more rounding, u of the rest, for which e has room. hi >= 2^p is what a is rounded to, or nothing is
// decided. 2^k is made in two factors. On a CPU all lanes mostly have normal results, and take a short way.
template <class R>
REPDL_HD decided_lanes<R> round_scaled(const dd_ball<R>& a, R k) {
  if constexpr (!on_device) {
    const mask_of<R> normal = (k >= -1000) & (k <= 970);
    if (math<R>::every(normal)) return round_normal(a, k);
  }
  const R p = -1022 - k;
  const R least = p < -2 ? math<R>::all(0) : power_of(p);
  const mask_of<R> subnormal = (a.hi < least) & (p >= -2);
  const R c = subnormal ? least : math<R>::all(0);
  const double_word<R> s = fast_two_sum(c, a.hi);
  const R start = subnormal ? s.hi : a.hi;
  const R rest = subnormal ? s.lo : math<R>::all(0);
  const R e = up(a.error + 0x1p-52 * (magnitude_of(a.lo) + magnitude_of(rest)));
  const R middle = rest + a.lo;
  const R low = start + (middle - e);
  const R high = start + (middle + e);
  const R half = (0.5 * k + 0x1.8p52) - 0x1.8p52;
  return {((low - c) * power_of(half)) * power_of(k - half), low == high};
}

// The same of every number within `bound` hi of hi + lo, as in round_within.
template <class R>
REPDL_HD decided_lanes<R> round_scaled_within(double_word<R> a, double bound, R k) {
  if constexpr (!on_device) {
    const mask_of<R> normal = (k >= -1000) & (k <= 970);
    if (math<R>::every(normal)) {
      const decided_lanes<R> r = round_within(a, math<R>::all(bound));
      return {r.value * power_of(k), r.decided};
    }
  }
  const double_word<R> z = normalised(a);
  return round_scaled(dd_ball<R>{z.hi, z.lo, bound * z.hi}, k);
}

// ------------------------------------------------------------------------------------------ exact quotients and zeros

template <class R>
REPDL_HD mask_of<R> is_exact_zero(const dd_ball<R>& a) {
  return (a.hi == 0) & (a.error == 0);
}
// a / b, without an error where hi + lo is the quotient, as at midpoints: (hi + lo) b = a in exact operations.
template <class R>
REPDL_HD dd_ball<R> quotient_of(const dd_ball<R>& a, const dd_ball<R>& b) {
  using Ball = dd_ball<R>;
  const Ball z = a / b;
  const mask_of<R> exact = is_exact_zero((a - number<Ball>(z.hi) * b) - number<Ball>(z.lo) * b);
  return {z.hi, z.lo, exact ? math<R>::all(0) : z.error};
}
// round_ball of a sum: an exact zero is +0.
template <class R>
REPDL_HD decided_lanes<R> round_sum(const dd_ball<R>& a) {
  const decided_lanes<R> r = round_ball(a);
  return {r.value + 0.0, static_cast<mask_of<R>>(r.decided | is_exact_zero(a))};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
