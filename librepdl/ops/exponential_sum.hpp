// The last tier of the softmax family: sum_j e^(x_j) of a row in multi-limb balls, and what is decided from it.
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
#include "librepdl/num/multi_limb_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <int L>
inline constexpr int exact_limbs = L < 8 ? 8 : L;

// e^(a - b), a <= b. A gap of g = 45 (L + 4) or more is only enclosed: e^-g < 2^(-64 (L + 4)), and 2^35 such terms,
// every addition of their radii rounded up, stay below 2^-457 (more are undecided at L = 4 and decided later). A
// smaller one has at most 160 bits, as both floats are multiples of 2^-149: it is exact. (Rounding is monotone: a
// rounded difference below the integer g belongs to an exact one below g.)
template <int L>
REPDL_HD_CALL ball<L> exponential_of_gap(float a, float b) {
  if (static_cast<double>(b) - static_cast<double>(a) >= 45.0 * (L + 4)) {
    return {zero_limbs<L>(), power_magnitude(-64 * (L + 4))};
  }
  bool inexact = false;
  return exponential(add(limbs_of_value<L>(a), limbs_of_value<L>(-static_cast<double>(b)), &inexact));
}

// The sum over the finite elements of a row, or of a part of it. Trivially copyable, a multiple of 8 bytes, no padding.
template <int Limbs>
struct exponential_sum {
  float max;
  std::uint32_t any_rest;     // 1: rest > 0
  std::int64_t multiplicity;  // the number of elements equal to max: k
  ball<Limbs> rest;

  // The empty sum of a row whose maximum, finite, is `greatest`.
  REPDL_HD void start(float greatest) {
    max = greatest;
    any_rest = 0;
    multiplicity = 0;
    rest = exact_ball(zero_limbs<Limbs>());
  }
  // x <= max, or -inf, which adds nothing.
  REPDL_HD void add(float x) {
    if (x == max) ++multiplicity;
    if (x >= max || x == -static_cast<float>(infinity)) return;
    any_rest = 1;
    rest = num::add(rest, exponential_of_gap<Limbs>(x, max));
  }
  // Another part of the same row.
  REPDL_HD void merge(const exponential_sum& other) {
    any_rest |= other.any_rest;
    multiplicity += other.multiplicity;
    rest = num::add(rest, other.rest);
  }
};

REPDL_HD certified decided_float(float x) { return {x, true}; }
REPDL_HD float signed_zero(bool negative) { return float_of(negative ? 0x80000000u : 0u); }
REPDL_HD bool sign_bit(float x) { return (bits_of(x) >> 31) != 0; }

// ln(k + rest), relative accuracy also near 0.
template <int L>
REPDL_HD_CALL ball<L> logarithm_of(const exponential_sum<L>& s) {
  ball<L> r = s.rest;
  if (s.multiplicity == 1) {
    to_logarithm_1p(r);
  } else {
    add_count(r, s.multiplicity);
    to_logarithm(r);
  }
  return r;
}
// Is the sum e^max, exactly?
template <int L>
REPDL_HD bool is_single(const exponential_sum<L>& s) {
  return s.multiplicity == 1 && s.any_rest == 0;
}

// R = ln(k + rest) > 0 beside a D that is a multiple of 2^-149: boundaries are multiples of 2^-150, so every R below
// 2^-160 gives the same rounding of +-D +- R, and 2^-160 stands for it. (A divisor n does not change this: D + R and n
// times a boundary are compared.) D + 2^-160 with D < 2^(129 + 55) is exact in 512 bits.
template <int W>
REPDL_HD_CALL void separate(ball<W>& r) {
  if (upper(r).below_power(-160)) set_power(r, -160);
}

// (max - x) + ln(k + rest) for a finite x, not for a single element. 512 bits hold max - x.
template <int L>
REPDL_HD_CALL ball<exact_limbs<L>> gap_and_logarithm(const exponential_sum<L>& s, float x) {
  constexpr int W = exact_limbs<L>;
  ball<W> r = exact_ball(limbs_of_value<W>(s.max));
  add_value(r, -static_cast<double>(x));
  ball<W> logarithm_part = widen_ball<W>(logarithm_of(s));
  separate(logarithm_part);
  add_to(r, logarithm_part);
  return r;
}

// x_i - ln S = -((max - x_i) + ln(k + rest)). A single element: ln S = x_i, the exact zero +0; in every other row the
// value is negative (-0 where it rounds to zero). x_i = -inf: -inf.
// D = max - x_i. k >= 2: ln(k + rest) >= ln 2, nothing to separate.
template <int L>
REPDL_HD_CALL certified exact_log_softmax(const exponential_sum<L>& s, float x_i) {
  if (x_i == -static_cast<float>(infinity)) return decided_float(x_i);
  if (is_single(s)) return decided_float(0.0f);
  return round_to_float(negated(gap_and_logarithm(s, x_i)));
}

// ln S = max + ln(k + rest); a single element: max, with an exact zero +0. D = max.
template <int L>
REPDL_HD_CALL certified exact_logsumexp(const exponential_sum<L>& s) {
  if (is_single(s)) return decided_float(s.max + 0.0f);
  return round_to_float(gap_and_logarithm(s, 0.0f));
}

// ln S - x_t of one row (reduction none): log_softmax's opposite; a single element: +0. x_t = -inf: +inf.
template <int L>
REPDL_HD_CALL certified exact_cross_entropy(const exponential_sum<L>& s, float x_t) {
  if (x_t == -static_cast<float>(infinity)) return decided_float(-x_t);
  if (is_single(s)) return decided_float(0.0f);
  return round_to_float(gap_and_logarithm(s, x_t));
}

// ------------------------------------------------------------------------------------------- softmax and its gradient

// Below, a tiny quantity is one under 2^-400; n < 2^55, k < 2^55.
inline constexpr std::int64_t tiny_power = -400;

// g (p_i - t) / n, t = 1 for the target, 0 otherwise: cross_entropy_backward, and logsumexp_backward with n = 1 and
// target = false. g finite; 1 <= n < 2^55; x_i an element of the row, -inf allowed (p_i = 0).
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
template <int L>
REPDL_HD_CALL certified exact_scaled_gradient(const exponential_sum<L>& s, float x_i, float g, std::int64_t n,
                                              bool target) {
  constexpr int W = exact_limbs<L>;
  const bool absent = x_i == -static_cast<float>(infinity);
  const bool greatest = x_i == s.max;
  const bool zero_difference = target ? is_single(s) && !absent : absent;  // p_i - t = +0
  const bool negative = sign_bit(g) != (target && !zero_difference);
  const certified vanishing = decided_float(signed_zero(negative));
  if (zero_difference || g == 0) return vanishing;

  ball<W> sum = widen_ball<W>(s.rest);
  if (s.any_rest != 0 && upper(sum).below_power(tiny_power)) {
    if (greatest && target && s.multiplicity == 1) return vanishing;
    set_power(sum, tiny_power);
  }
  ball<W> f = sum;  // becomes |p_i - t|, times `sum`
  add_count(sum, s.multiplicity);
  if (greatest) {
    if (target) {
      add_count(f, s.multiplicity - 1);
    } else {
      set_power(f, 0);
    }
  } else if (absent) {
    set_power(f, 0);
    set_power(sum, 0);
  } else {
    f = widen_ball<W>(exponential_of_gap<L>(x_i, s.max));
    const bool small = upper(f).below_power(tiny_power);
    if (small && !target) return vanishing;
    if (small) set_power(f, tiny_power);
    if (target) {
      if (!small) divide_by(f, sum);
      f.middle.negative ^= 1;
      add_count(f, 1);
      set_power(sum, 0);
    }
  }
  multiply_by_value(f, target ? -static_cast<double>(g) : static_cast<double>(g));
  multiply_by_count(sum, n);
  divide_by(f, sum);
  return round_to_float(f);
}

// p_i = RN(e^(x_i) / S); x_i = -inf: +0. Never negative.
template <int L>
REPDL_HD certified exact_softmax(const exponential_sum<L>& s, float x_i) {
  return exact_scaled_gradient(s, x_i, 1.0f, 1, false);
}

// --------------------------------------------------------------------------------- cross_entropy, mean and sum

// The sum over rows of ln S - x_t = (max - x_t) + ln(k + rest). The gaps are added exactly; the sum R of the logarithms
// is 0 or positive: 0 only if every row is a single element, and then the gaps are 0 too. D = sum of the gaps.
template <int Limbs>
struct cross_entropy_total {
  sum_accumulator gaps;
  ball<Limbs> logarithms;
  std::uint64_t any_positive;

  REPDL_HD void start() {
    gaps = sum_accumulator();
    logarithms = exact_ball(zero_limbs<Limbs>());
    any_positive = 0;
  }
  // x_t finite; a row with x_t = -inf makes the total +inf, which is the caller's to see.
  REPDL_HD void add_row(const exponential_sum<Limbs>& s, float x_t) {
    if (is_single(s)) return;
    gaps.add(s.max);
    gaps.add(-x_t);
    logarithms = num::add(logarithms, logarithm_of(s));
    any_positive = 1;
  }
  REPDL_HD void merge(const cross_entropy_total& other) {
    gaps.merge(other.gaps);
    logarithms = num::add(logarithms, other.logarithms);
    any_positive |= other.any_positive;
  }
  // RN(total / n), 1 <= n < 2^55.
  REPDL_HD_CALL certified finish(std::int64_t n) const {
    constexpr int W = exact_limbs<Limbs>;
    if (any_positive == 0) return decided_float(gaps.mean(n));
    ball<W> total = widen_ball<W>(logarithms);
    separate(total);
    add_to(total, exact_ball(limbs_of_sum<W>(gaps)));
    divide_by(total, exact_ball(limbs_of<W>(static_cast<std::uint64_t>(n))));
    return round_to_float(total);
  }
};

// -------------------------------------------------------------------------------------------- gradients from outputs

// g_i - e^(y_i) G, G = the exact sum of all g, finite; y_i finite or -inf (e^-inf = 0).
// Exact: G = 0 or y_i = -inf: g_i; y_i = 0: g_i - G; an exact zero is +0. Otherwise e^(y_i) G is transcendental; D =
// g_i, a multiple of 2^-149: a product below 2^-160 counts as one of 2^-160 and its sign. |G| >= 2^-149 and e^(2^13) >
// 2^11817: for y_i >= 2^13 the product overflows whatever g_i, for y_i <= -2^13 it is below 2^(190 - 11818).
template <int L>
REPDL_HD_CALL certified exact_log_softmax_backward(float g_i, float y_i, const sum_accumulator& sum_g) {
  constexpr int W = exact_limbs<L>;
  if (y_i == -static_cast<float>(infinity) || sum_g.is_zero()) return decided_float(g_i + 0.0f);
  if (y_i == 0) {
    sum_accumulator d = sum_g;
    d.negate();
    d.add(g_i);
    return decided_float(d.round());
  }
  const multi_limb<W> total = negated(limbs_of_sum<W>(sum_g));
  const bool negative = total.negative != 0;
  if (y_i >= 0x1p13f) return decided_float(float_of(negative ? 0xff800000u : 0x7f800000u));
  ball<W> product = exact_ball(limbs_of_power<W>(-160, negative));
  if (y_i > -0x1p13f) {
    ball<W> r = widen_ball<W>(exponential(limbs_of_value<L>(y_i)));
    multiply_by(r, exact_ball(total));
    if (!upper(r).below_power(-160)) product = r;
  }
  add_value(product, static_cast<double>(g_i));
  return round_to_float(product);
}

// y_i (g_i - d), d = sum_j g_j y_j exactly; all finite. Algebraic: the difference has at most 640 bits, the product
// 664, in 1024. A zero is a product: the XOR of the signs, a zero difference being +0.
REPDL_HD float exact_softmax_backward(const dot_accumulator& d, float g_i, float y_i) {
  dot_accumulator difference = d;
  difference.negate();
  difference.add(g_i);
  if (y_i == 0 || difference.is_zero()) return signed_zero(sign_bit(y_i) != difference.negative());
  bool inexact = false;
  const multi_limb<16> product = multiply(limbs_of_sum<16>(difference), limbs_of_value<16>(y_i), &inexact);
  return float_of(round_bits<float>(product));
}

// ---------------------------------------------------------------------------------------------------------- the levels

// The sum of a whole row by one thread. Row: float operator()(std::int64_t) const, std::int64_t length() const.
template <int L, class Row>
REPDL_HD exponential_sum<L> sum_of_row(const Row& row, float max) {
  exponential_sum<L> s;
  s.start(max);
  const std::int64_t n = row.length();
  for (std::int64_t i = 0; i < n; ++i) s.add(row(i));
  return s;
}

// Finish: template <int L> certified operator()(const exponential_sum<L>&) const.
template <class Row, class Finish>
struct row_attempt {
  const Row& row;
  float max;
  const Finish& finish;
  template <int L>
  REPDL_HD certified operator()() const {
    return finish(sum_of_row<L>(row, max));
  }
};
template <class Row, class Finish>
REPDL_HD certified decide(const Row& row, float max, const Finish& finish, int budget_bits) {
  return decide_by_levels(row_attempt<Row, Finish>{row, max, finish}, budget_bits);
}

struct log_softmax_backward_attempt {
  float g_i, y_i;
  const sum_accumulator& sum_g;
  template <int L>
  REPDL_HD certified operator()() const {
    return exact_log_softmax_backward<L>(g_i, y_i, sum_g);
  }
};
REPDL_HD certified decide_log_softmax_backward(float g_i, float y_i, const sum_accumulator& sum_g, int budget_bits) {
  return decide_by_levels(log_softmax_backward_attempt{g_i, y_i, sum_g}, budget_bits);
}

// The finishing functions as objects, for decide.
struct softmax_finish {
  float x_i;
  template <int L>
  REPDL_HD certified operator()(const exponential_sum<L>& s) const {
    return exact_softmax(s, x_i);
  }
};
struct log_softmax_finish {
  float x_i;
  template <int L>
  REPDL_HD certified operator()(const exponential_sum<L>& s) const {
    return exact_log_softmax(s, x_i);
  }
};
struct logsumexp_finish {
  template <int L>
  REPDL_HD certified operator()(const exponential_sum<L>& s) const {
    return exact_logsumexp(s);
  }
};
struct cross_entropy_finish {
  float x_t;
  template <int L>
  REPDL_HD certified operator()(const exponential_sum<L>& s) const {
    return exact_cross_entropy(s, x_t);
  }
};
struct scaled_gradient_finish {
  float x_i, g;
  std::int64_t n;
  bool target;
  template <int L>
  REPDL_HD certified operator()(const exponential_sum<L>& s) const {
    return exact_scaled_gradient(s, x_i, g, n, target);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
