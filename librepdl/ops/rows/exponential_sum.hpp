// The softmax family's late formulas: sum_j e^(x_j) of a row and what is decided from it, in any arithmetic A: wide numbers, then balls
// of more and more limbs.
//
// Notation: m = max x_j, S = e^m (k + rest): k the number of elements equal to m, rest = sum over x_j < m of e^(x_j -
// m). The gaps m - x_j are exact differences of two floats: multiples of 2^-149 below 2^129, 278 bits. p_i = e^(x_i -
// m) / (k + rest) is the softmax. Exact parts are kept in at least 512 bits whatever the level.
//
// Why every function decides (Lindemann-Weierstrass: exponentials of distinct rational numbers are linearly independent
// over the algebraic numbers, so none of the formulas is rational, in particular a midpoint, unless listed as exact):
// more bits decide, except where a term is smaller than any number of bits shows: gaps reach 2^129, a term may be
// 2^-(2^129). Such a term is never evaluated. Every function names an exact part D and shows that no boundary (midpoint
// or float) lies strictly between D and D + (anything of the term's sign below a threshold, 2^-160 or 2^-400): then the
// term is replaced by a number at the threshold, which is exact. Boundaries are b' 2^y, |b'| < 2^25, y >= -150.
// What is left is decided with about as many bits as the smallest visible difference has: gaps are multiples of 2^-149,
// so p_i can be as close as 2^-298 / n to a rational tie (the gaps +-2^-149 cancel to first order): 512 bits; a sum of
// more logarithms or exponentials that is closer to a boundary than that by accident takes more, and `undecided` says
// so.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/ops/rows/exponentials.hpp"
#include "librepdl/ops/rows/rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// The sum over the finite elements of a row, or of a part of it, or of rows side by side, a lane each; elements are binary32 numbers, or of
// T = double. Trivially copyable, a multiple of 8 bytes, no padding.
template <class A, class T = float>
struct exponential_sum {
  using real = real_of<A>;
  real max;           // of the row, finite
  real multiplicity;  // the number of elements equal to max: k
  A rest;

  REPDL_HD void start(real greatest) {
    max = greatest;
    multiplicity = real{};
    rest = A{};
  }
  // x <= max, or -inf, which adds nothing.
  REPDL_HD void add(real x) {
    if constexpr (std::is_same_v<real, double>) {
      if (x >= max) {
        multiplicity += 1;
      } else if (x > -infinity) {
        rest = add_positive(rest, exponentials<A>::template of_gap<T>(x, max));
      }
    } else {
      const auto counts = x >= max;
      const real zero{};
      A e = exponentials<A>::of_gap(x, max);
      e = {{counts ? zero : e.value.hi, counts ? zero : e.value.lo}, counts ? zero : e.error};
      multiplicity += counts ? zero + 1.0 : zero;
      rest = add_positive(rest, e);
    }
  }
  // The row goes on with elements up to one that is greater, and finite: all that was added is rest beside it, with the errors of a product,
  // of at least 1, and of an exponential that is enclosed where the gap is large: no zero. R = binary64.
  REPDL_HD void raise(real greatest) {
    add_value(rest, multiplicity);
    multiply_by(rest, exponentials<A>::template of_gap<T>(max, greatest));
    max = greatest;
    multiplicity = 0;
  }
  // Another part of the same row.
  REPDL_HD void merge(const exponential_sum& other) {
    multiplicity += other.multiplicity;
    rest = add_positive(rest, other.rest);
  }
  exponential_sum<wide<double>> lane(int l) const { return {max[l], multiplicity[l], num::lane(rest, l)}; }
  // Is the sum e^max, exactly?
  REPDL_HD bool is_single() const { return multiplicity == 1 && is_zero(rest); }
};

REPDL_HD certified decided_float(float x) { return {x, true}; }

// ln(k + rest), relative accuracy also near 0.
template <class A, class T>
REPDL_HD_CALL A logarithm_of(const exponential_sum<A, T>& s) {
  A r = s.rest;
  if (s.multiplicity == 1) {
    to_logarithm_1p(r);
  } else {
    add_value(r, s.multiplicity);
    to_logarithm(r);
  }
  return r;
}

// R = ln(k + rest) > 0 beside a D that is a multiple of 2^-149: boundaries are multiples of 2^-150, so every R below
// 2^-160 gives the same rounding of +-D +- R, and 2^-160 stands for it. (A divisor n does not change this: D + R and n
// times a boundary are compared.) D + 2^-160 with D < 2^(129 + 55) is exact in 512 bits.
template <class A>
REPDL_HD_CALL void separate(A& r) {
  if (below_power(r, -160)) set_power(r, -160);
}

// (max - x) + ln(k + rest) for a finite x, not for a single element. 512 bits hold max - x.
template <class A>
REPDL_HD_CALL exact_form<A> gap_and_logarithm(const exponential_sum<A>& s, float x) {
  exact_form<A> logarithm = to_exact_form(logarithm_of(s));
  separate(logarithm);
  exact_form<A> r = arithmetic<exact_form<A>>::number(s.max);
  add_value(r, -static_cast<double>(x));
  add_to(r, logarithm);
  return r;
}

// x_i - ln S = -((max - x_i) + ln(k + rest)). A single element: ln S = x_i, the exact zero +0; in every other row the
// value is negative (-0 where it rounds to zero). x_i = -inf: -inf.
// D = max - x_i. k >= 2: ln(k + rest) >= ln 2, nothing to separate.
template <class A>
REPDL_HD_CALL certified exact_log_softmax(dtype to, const exponential_sum<A>& s, float x_i) {
  if (x_i == -static_cast<float>(infinity)) return decided_float(x_i);
  if (s.is_single()) return decided_float(0.0f);
  return round_to(to, negated(gap_and_logarithm(s, x_i)));
}

// ln S = max + ln(k + rest); a single element: max, with an exact zero +0. D = max.
template <class A>
REPDL_HD_CALL certified exact_logsumexp(dtype to, const exponential_sum<A>& s) {
  if (s.is_single()) return decided_float(static_cast<float>(s.max) + 0.0f);
  return round_to(to, gap_and_logarithm(s, 0.0f));
}

// ln S - x_t of one row (reduction none): log_softmax's opposite; a single element: +0. x_t = -inf: +inf.
template <class A>
REPDL_HD_CALL certified exact_cross_entropy(dtype to, const exponential_sum<A>& s, float x_t) {
  if (x_t == -static_cast<float>(infinity)) return decided_float(-x_t);
  if (s.is_single()) return decided_float(0.0f);
  return round_to(to, gap_and_logarithm(s, x_t));
}

// ------------------------------------------------------------------------------------------- softmax and its gradient

// Below, a tiny quantity is one under 2^-400; n < 2^53, k < 2^53.
inline constexpr int tiny_power = -400;

// g (p_i - t) / n, t = 1 for the target, 0 otherwise: cross_entropy_backward, and logsumexp_backward with n = 1 and
// target = false; softmax with g = n = 1. g finite; x_i an element of the row, -inf allowed (p_i = 0).
//
// Exact: g = 0; p_i = 0: g (0 - t) / n; the only finite element: p_i = 1; rest = 0: p_i = 1/k. Zeros: a product, so the
// XOR of the signs of g and of p_i - t, whose zero (1 - 1, or a weight 0) is +0. Quotients of integers: D = g G / n
// with G = 1, 1/k, 1 - 1/k in 512 bits: a quotient of at most 25 bits comes out exact (a tie); any other one differs
// from a boundary b by |D - b| >= 2^-200 |D|.
//
// Near those, with f = b for a boundary b = b' 2^y and g = g' 2^x, |g'| < 2^24: integer combinations of g and b are
// multiples of 2^min(x, y), with 2^x > 2^-24 |g| and 2^y > 2^-25 |b|.
//   x_i = m, t = 0: f = g / ((k + rest) n) = b for rest = (g - b k n) / (b n), |b n| <= |g|: a nonzero numerator gives
//     at least 2^-25 / n. No crossing for a tiny rest: 2^-400 stands for it.
//   x_i = m, t = 1: f = -g (k - 1 + rest) / ((k + rest) n). k = 1: |f| < 2^(128 - 400) for a tiny rest, a zero of the
//     sign of -g. k >= 2: f = -b for rest = (b k n - g (k - 1)) / (g - b n), |g - b n| <= |g| and |b| >= |g| / (2 n):
//     at least 2^-26 / n. 2^-400 stands for a tiny rest.
//   x_i < m, t = 0: if e^(x_i - m) is tiny, |f| < 2^(128 - 400), a zero of the sign of g; otherwise rest is not tiny.
//   x_i < m, t = 1: f = -(g / n)(1 - p_i) = -b for p_i = (g - b n) / g, p_i < 1/2, so |b| >= |g| / (2 n): at least
//     2^-26 / n. If e^(x_i - m) >= p_i is tiny, 2^-400 stands for p_i; otherwise rest is not tiny.
// 512 bits hold k + 2^-400 and show 2^-400 beside 1.
template <class A>
REPDL_HD_CALL certified exact_scaled_gradient(dtype to, const exponential_sum<A>& s, float x_i, float g, std::int64_t n,
                                              bool target) {
  const bool absent = x_i == -static_cast<float>(infinity);
  const bool greatest = static_cast<double>(x_i) == s.max;
  const bool zero_difference = target ? s.is_single() && !absent : absent;  // p_i - t = +0
  const bool negative = sign_bit(g) != (target && !zero_difference);
  const certified vanishing = decided_float(signed_zero(negative));
  if (zero_difference || g == 0) return vanishing;

  exact_form<A> sum = to_exact_form(s.rest);
  if (!is_zero(sum) && below_power(sum, tiny_power)) {
    if (greatest && target && s.multiplicity == 1) return vanishing;
    set_power(sum, tiny_power);
  }
  exact_form<A> f = sum;  // becomes |p_i - t|, times `sum`
  add_value(sum, s.multiplicity);
  if (greatest) {
    if (target) {
      add_value(f, s.multiplicity - 1);
    } else {
      set_power(f, 0);
    }
  } else if (absent) {
    set_power(f, 0);
    set_power(sum, 0);
  } else {
    f = to_exact_form(exponentials<A>::of_gap(static_cast<double>(x_i), s.max));
    const bool small = below_power(f, tiny_power);
    if (small && !target) return vanishing;
    if (small) set_power(f, tiny_power);
    if (target) {
      if (!small) divide_by(f, sum);
      f = negated(f);
      add_value(f, 1);
      set_power(sum, 0);
    }
  }
  multiply_by_value(f, target ? -static_cast<double>(g) : static_cast<double>(g));
  multiply_by_count(sum, n);
  divide_by(f, sum);
  return round_to(to, f);
}

// --------------------------------------------------------------------------------- cross_entropy, mean and sum

// The sum over rows of ln S - x_t = (max - x_t) + ln(k + rest). The gaps are added exactly; the sum R of the logarithms
// is 0 or positive: 0 only if every row is a single element, and then the gaps are 0 too. D = sum of the gaps.
template <class A>
struct cross_entropy_total {
  sum_accumulator gaps;
  A logarithms;
  std::uint64_t any_positive;

  REPDL_HD void start() {
    gaps = sum_accumulator();
    logarithms = A{};
    any_positive = 0;
  }
  REPDL_HD void add_row(const exponential_sum<A>& s, const row_operands& o) { add_row(s, o.at_target); }
  // x_t finite; a row with x_t = -inf makes the total +inf, which is the caller's to see.
  REPDL_HD void add_row(const exponential_sum<A>& s, float x_t) {
    if (s.is_single()) return;
    gaps.add(static_cast<float>(s.max));
    gaps.add(-x_t);
    logarithms = num::add(logarithms, logarithm_of(s));
    any_positive = 1;
  }
  REPDL_HD void merge(const cross_entropy_total& other) {
    gaps.merge(other.gaps);
    logarithms = num::add(logarithms, other.logarithms);
    any_positive |= other.any_positive;
  }
  REPDL_HD certified finish(dtype to, const row_call& c) const { return finish(to, c.n); }
  // RN(total / n), 1 <= n < 2^53.
  REPDL_HD_CALL certified finish(dtype to, std::int64_t n) const {
    if (any_positive == 0) return decided_float(gaps.mean(n));
    exact_form<A> total = to_exact_form(logarithms);
    separate(total);
    add_to(total, arithmetic<exact_form<A>>::of_limbs(limbs_of_sum<8>(gaps)));
    if (n != 1) divide_by(total, arithmetic<exact_form<A>>::number(static_cast<double>(n)));
    return round_to(to, total);
  }
};

// -------------------------------------------------------------------------------------------- gradients from outputs

// g_i - e^(y_i) G, G the exact sum of all g, or a number that encloses it, finite; y_i finite or -inf (e^-inf = 0).
// Exact: G = 0 or y_i = -inf: g_i; y_i = 0: g_i - G; an exact zero is +0. Otherwise e^(y_i) G is transcendental; D =
// g_i, a multiple of 2^-149: a product below 2^-160 counts as one of 2^-160 and its sign. 2^-149 <= |G| < 2^190 and e^600 >
// 2^865: for y_i >= 600 the product overflows whatever g_i, for y_i <= -600 it is below 2^(190 - 865).
template <class A>
REPDL_HD_CALL certified exact_log_softmax_backward(dtype to, float g_i, float y_i, const exact_form<A>& sum_g) {
  const int sign = sign_in(sum_g);
  if (y_i == -static_cast<float>(infinity) || sign == 0) return decided_float(g_i + 0.0f);
  exact_form<A> product = negated(sum_g);
  if (y_i >= 600.0f) return {float_of(sign > 0 ? 0xff800000u : 0x7f800000u), sign != 2};
  if (y_i > -600.0f) {
    if (y_i != 0) multiply_by(product, to_exact_form(exponentials<A>::of(static_cast<double>(y_i))));
  } else {
    set_power(product, -600);
  }
  if (y_i != 0 && below_power(product, -160)) {
    if (sign == 2) return {0.0f, false};
    set_power(product, -160);
    if (sign > 0) product = negated(product);
  }
  add_value(product, static_cast<double>(g_i));
  return round_to(to, product);
}

// y_i (g_i - d), d the exact sum of g_j y_j, or a number that encloses it; all finite. Algebraic: the difference has at most 640
// bits, the product 664, in 1024. A zero is a product: the XOR of the signs, a zero difference being +0.
template <class A>
REPDL_HD_CALL certified exact_softmax_backward(dtype to, float g_i, float y_i, const A& sum) {
  A difference = negated(sum);
  add_value(difference, static_cast<double>(g_i));
  const int sign = sign_in(difference);
  if (y_i == 0 || sign == 0) return {signed_zero(sign_bit(y_i) != (sign < 0)), sign != 2};
  multiply_by_value(difference, static_cast<double>(y_i));
  return round_to(to, difference);
}

// ---------------------------------------------------------------------------------------------------------- the levels

// The sum of a whole row by one thread. Row: float operator()(std::int64_t) const, std::int64_t length() const.
template <class A, class Row>
REPDL_HD exponential_sum<A> sum_of_row(const Row& row, float max) {
  exponential_sum<A> s;
  s.start(static_cast<double>(max));
  const std::int64_t n = row.length();
  for (std::int64_t i = 0; i < n; ++i) s.add(static_cast<double>(row(i)));
  return s;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
