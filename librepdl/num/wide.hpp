// Double-double numbers that know their error: balls of about 106 bits, the tier between binary64 and multi-limb balls.
//
// A wide number encloses: |exact - (hi + lo)| <= error, hi + lo normalised. Its operations have the names that balls have
// (multi_limb_ball.hpp), so that one formula, a template over the arithmetic, is computed in either. R is binary64, or a register.
//
// Errors. u = 2^-53. What an operation loses is bounded, or, of additions, and of products of binary64 numbers, known: where nothing is
// lost error stays 0, and ties and zeros of exact operands are decided. Errors themselves are computed in binary64, each of some
// operations off by a relative 4 u at most: after k operations the computed error is at least (1 - 4 u)^k of the bound, and `round`
// takes 1 + 2^-10 of it, which is enough for k < 2^40. No result of a product or quotient is in (0, 2^-900): there the low parts would
// underflow. Infinite and NaN errors say that nothing is known.
//
// Sources: M. Joldes, J.-M. Muller, V. Popescu, ACM TOMS 44 (2017), as dd.hpp.
#pragma once

#include "librepdl/num/dd.hpp"
#include "librepdl/num/multi_limb_functions.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <class R>
struct wide {
  double_word<R> value{};
  R error{};
};

// One of a register.
template <class R>
wide<double> lane(const wide<R>& a, int l) {
  return {{a.value.hi[l], a.value.lo[l]}, a.error[l]};
}

// What a formula that is a template over the arithmetic A asks of it.
template <class A>
struct arithmetic;
template <class R>
struct arithmetic<wide<R>> {
  using real = R;         // of the terms of sums
  using exact = wide<R>;  // where dyadic parts of up to 512 bits are exact; of this one, there is no other
  REPDL_HD static wide<R> number(double x) { return {{math<R>::all(x), math<R>::all(0.0)}, math<R>::all(0.0)}; }
  // The leading 53 bits, and those of the rest; what is left of that is below u of it.
  template <int L>
  REPDL_HD_CALL static wide<R> of_limbs(const multi_limb<L>& a) {
    const double hi = double_of(round_bits<double>(a));
    bool inexact = false;
    const multi_limb<L> rest = num::add(a, limbs_of_value<L>(-hi), &inexact);
    const double lo = double_of(round_bits<double>(rest));
    const multi_limb<L> left = num::add(rest, limbs_of_value<L>(-lo), &inexact);
    return {fast_two_sum(hi, lo), inexact || !left.is_zero() ? 0x1p-53 * magnitude_of(lo) : 0.0};
  }
};
template <int L>
struct arithmetic<ball<L>> {
  using real = double;
  using exact = ball<(L < 8 ? 8 : L)>;
  REPDL_HD static ball<L> number(double x) { return exact_ball(limbs_of_value<L>(x)); }
  template <int M>
  REPDL_HD static ball<L> of_limbs(const multi_limb<M>& a) {
    return exact_ball(widen_limbs<L>(a));
  }
};
template <class A>
using real_of = typename arithmetic<A>::real;
template <class A>
using exact_form = typename arithmetic<A>::exact;

// a + b: algorithm 6, whose two roundings are done without error here, so that what it leaves out is known.
template <class R>
REPDL_HD wide<R> add(const wide<R>& a, const wide<R>& b) {
  const double_word<R> s = two_sum(a.value.hi, b.value.hi);
  const double_word<R> t = two_sum(a.value.lo, b.value.lo);
  const double_word<R> c = two_sum(s.lo, t.hi);
  const double_word<R> v = fast_two_sum(s.hi, c.hi);
  const double_word<R> w = two_sum(t.lo, v.lo);
  const R lost = magnitude_of(c.lo) + magnitude_of(w.lo);
  return {fast_two_sum(v.hi, w.hi), (a.error + b.error) + lost};
}
REPDL_HD void add_to(wide<double>& a, const wide<double>& b) { a = add(a, b); }
// The same of numbers that are not negative, in half the operations: 3 u^2 of the sum, two of them for the additions of low parts.
template <class R>
REPDL_HD wide<R> add_positive(const wide<R>& a, const wide<R>& b) {
  const double_word<R> s = two_sum(a.value.hi, b.value.hi);
  const double_word<R> sum = fast_two_sum(s.hi, s.lo + (a.value.lo + b.value.lo));
  return {sum, (a.error + b.error) + 0x1p-104 * sum.hi};
}
template <int L>
REPDL_HD ball<L> add_positive(const ball<L>& a, const ball<L>& b) {
  return add(a, b);
}
// The sum of many, in a fifth of the operations. terms: at least as many as were added.
template <class R>
struct wide_sum {
  tracked_sum<R> sum;
  R error{};

  REPDL_HD void add(R x) { sum.add(x); }
  REPDL_HD void add(const double_word<R>& x, R x_error) {
    sum.add(x);
    error += x_error;
  }
  REPDL_HD void merge(const wide_sum& o) {
    sum.merge(o.sum);
    error += o.error;
  }
  // No number passes more additions than there are terms, and merges, which are fewer than terms and 64.
  REPDL_HD wide<R> total(std::int64_t terms) const { return {sum.total(), error + sum.bound(2 * terms + 64)}; }
};
template <class R>
wide_sum<double> lane(const wide_sum<R>& s, int l) {
  return {{s.sum.hi[l], s.sum.lo[l], s.sum.error[l]}, s.error[l]};
}
REPDL_HD void add_value(wide<double>& a, double b) { a = add(a, arithmetic<wide<double>>::number(b)); }

REPDL_HD wide<double> negated(const wide<double>& a) { return {{-a.value.hi, -a.value.lo}, a.error}; }

// |a b - a' b'| <= |a'| eb + |b'| ea + ea eb; rounded 8 u^2, and exactly where both are binary64 numbers.
REPDL_HD void multiply_by(wide<double>& a, const wide<double>& b) {
  const dd p = mul(a.value, b.value);
  const double x = magnitude_of(a.value.hi);
  const double y = magnitude_of(b.value.hi);
  const double lost = a.value.lo == 0 && b.value.lo == 0 ? 0.0 : 0x1p-103 * magnitude_of(p.hi);
  a = {p, (x * b.error + y * a.error) + (a.error * b.error + lost)};
}
REPDL_HD void multiply_by_value(wide<double>& a, double b) { multiply_by(a, arithmetic<wide<double>>::number(b)); }
// n < 2^53.
REPDL_HD void multiply_by_count(wide<double>& a, std::int64_t n) { multiply_by_value(a, static_cast<double>(n)); }

// a / b - a' / b' = (a - a') / b + (a' / b') (b' - b) / b, and |b| >= 15/16 |b'|; rounded 16 u^2.
REPDL_HD void divide_by(wide<double>& a, const wide<double>& b) {
  const dd q = div(a.value, b.value);
  const double y = magnitude_of(b.value.hi);
  const double spread = (a.error + magnitude_of(q.hi) * b.error) / y * (1 + 0x1p-3);
  a = {q, b.error <= y * 0x1p-4 ? spread + 0x1p-102 * magnitude_of(q.hi) : infinity};
}

// sqrt a, a > 0: s = RN(sqrt hi), and (a - s^2) / (2 s), |a - s^2| <= 3.1 u a: the next term of the series is below 1.3 u^2 sqrt a, the
// roundings of this one below 5 u^2 sqrt a. |sqrt a - sqrt a'| <= e / (1.968 sqrt a') for e <= a' / 16.
REPDL_HD void to_square_root(wide<double>& a) {
  const double s = num::sqrt(a.value.hi);
  const dd p = two_prod(s, s);
  const double rest = ((a.value.hi - p.hi) - p.lo) + a.value.lo;
  const bool known = a.value.hi > 0 && a.error <= a.value.hi * 0x1p-4;
  a = {fast_two_sum(s, rest / (2 * s)), known ? 0.5625 * a.error / s + 0x1p-102 * s : infinity};
}
template <int L>
REPDL_HD void to_square_root(ball<L>& a) {
  a = square_root(a);
}

REPDL_HD void set_power(wide<double>& a, int power) { a = arithmetic<wide<double>>::number(power_of_two(power)); }
// Is every number in it below 2^power in magnitude?
REPDL_HD bool below_power(const wide<double>& a, int power) {
  return magnitude_of(a.value.hi) * (1 + 0x1p-10) + a.error * (1 + 0x1p-10) < power_of_two(power);
}
template <int L>
REPDL_HD bool below_power(const ball<L>& a, int power) {
  return upper(a).below_power(power);
}
// Zero, and nothing else.
REPDL_HD bool is_zero(const wide<double>& a) { return a.value.hi == 0 && a.error == 0; }
template <int L>
REPDL_HD bool is_zero(const ball<L>& a) {
  return a.exact() && a.middle.is_zero();
}
// The sign of every number in it, or 2.
REPDL_HD int sign_in(const wide<double>& a) {
  const double e = a.error * (1 + 0x1p-10);
  return is_zero(a) ? 0 : !(e * (1 + 0x1p-10) < magnitude_of(a.value.hi)) ? 2 : a.value.hi < 0 ? -1 : 1;
}
template <int L>
REPDL_HD int sign_in(const ball<L>& a) {
  if (is_zero(a)) return 0;
  const bool known = a.exact() || (!a.middle.is_zero() && a.radius.below_power(a.middle.exponent - 1));
  return !known ? 2 : a.middle.negative != 0 ? -1 : 1;
}

REPDL_HD const wide<double>& to_exact_form(const wide<double>& a) { return a; }
template <int L>
REPDL_HD exact_form<ball<L>> to_exact_form(const ball<L>& a) {
  return widen_ball<(L < 8 ? 8 : L)>(a);
}

template <class T>
REPDL_HD decided_value<T> round_number(const wide<double>& a) {
  if (!(a.error < 0x1p900)) return {T{}, false};
  return certify<T>(a.value, a.error * (1 + 0x1p-10));
}
template <class T, int L>
REPDL_HD decided_value<T> round_number(const ball<L>& a) {
  return round_ball<T>(a);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
