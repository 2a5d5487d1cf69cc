// The softmax family in binary64: wide rules (wide_rule.hpp) whose first tier are wide numbers (num/wide.hpp), the last multi-limb balls; both
// compute the same formula, a template over the arithmetic A. Nothing is computed in binary64 alone: its results need more than its own 53 bits.
//
// Notation: m = max x_j, d_j = x_j - m <= 0 the gaps, k the number of d_j = 0, rest = sum over d_j < 0 of e^(d_j), S = k + rest, R = ln S.
// Gaps have up to 2100 bits: differences of binary64 numbers are taken in A, never in binary64.
//
// Why every function decides is said in exponential_sum.hpp: none of the formulas is rational (Lindemann-Weierstrass) but where it is listed as
// exact. Where a term may be smaller than any number of bits shows, the exact part is separated. Boundaries are the midpoints of binary64,
// b' 2^y with |b'| < 2^54 and y >= -1075. Results may be of a narrower format (wide_row_given::to), whose midpoints are such numbers, too, with
// |b'| < 2^25 and y >= -150: what is said of all b' 2^y holds of them; what is not is said beside it.
#pragma once

#include "librepdl/num/formula.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"
#include "librepdl/ops/rows/softmax.hpp"
#include "librepdl/ops/rows/wide_rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Of wide numbers, with what wide.hpp's bounds leave to who rounds.
REPDL_HD dd_ball<double> dd_ball_of(const wide<double>& a) { return {a.value.hi, a.value.lo, a.error * (1 + 0x1p-10)}; }

// RN(g v 2^k), g finite and not 0, v not 0; of wide numbers outside 2^+-900 undecided. In a narrower format g = 1, and v 2^k, of wide numbers,
// is at least e^-128 over a row's length: scaling is exact, or off by less than 2^-1074, far less than what the bound is rounded up by.
template <class A>
REPDL_HD_CALL decided64 round_product_of(double g, const A& v, double k, dtype to = dtype::f64) {
  if constexpr (is_wide_number<A>) {
    if (to != dtype::f64) {
      const double s = power_of(k);
      return round_in(to, A{{v.value.hi * s, v.value.lo * s}, v.error * s});
    }
    const decided_lanes<double> r = round_product(g, dd_ball_of(v), k);
    return {r.value, r.decided};
  } else {
    A p = v;
    multiply_by_value(p, g);
    return round_in(to, scaled(p, static_cast<std::int64_t>(k)));
  }
}

// e^(x - max) = m 2^k for x < max, max - x < 2048; of wide numbers, where the gap is beyond -1000, nothing is known.
template <class A>
struct scaled_weight {
  A m;
  double k;
};
template <class A>
REPDL_HD_CALL scaled_weight<A> weight_of_gap(double x, double max) {
  if constexpr (is_wide_number<A>) {
    const dd d = two_sum(x, -max);
    const bool is_known = d.hi >= -1000;
    const wide_power<double> e = wide_exp_parts(is_known ? d.hi : 0.0, is_known ? d.lo : 0.0);
    const dd m = add_smaller(dd{1.0, 0.0}, e.p);
    return {{m, is_known ? 0x1p-96 * m.hi : infinity}, e.k};
  } else {
    return {exponentials<A>::template of_gap<double>(x, max), 0};
  }
}

// g p_i, p_i = e^(d_i) / S, g finite: softmax (g = 1) and logsumexp_backward.
//
// Exact: g = 0 and p_i = 0 (x_i = -inf), zeros of g's sign; rest = 0: g / k, a tie among subnormal numbers, if it is one.
//   x_i < m: with 2048 or more between them p_i < e^-2048 < 2^-2954, and |g p_i| < 2^(1024 - 2954): a zero of g's sign. Else rest >= e^(d_i) is
//     evaluated. In a narrower format g = 1, and 128 or more between them will do: p_i < e^-128 < 2^-184, less than half its least number.
//   x_i = m: g / (k + rest) = b for rest = (g - b k) / b. The numerator is a multiple of 2^min(x, y) for g = g' 2^x, |g'| < 2^53, so at
//     least 2^-53 |g| or 2^-54 |b|, or 0; |b| <= |g|. Hence rest >= 2^-54, or 0: no boundary is crossed by a rest in (0, 2^-400), for which
//     2^-400 stands. 512 bits hold k + 2^-400.
template <class A>
REPDL_HD_CALL decided64 scaled_softmax(const exponential_sum<A, double>& s, double x, double g, dtype to = dtype::f64) {
  const double zero = zero_of_sign(has_sign(g));
  if (g == 0 || x == -infinity || s.max - x >= (to == dtype::f64 ? 2048 : 128)) return known_number(zero);
  const bool greatest = x == s.max;
  A sum = s.rest;
  if (is_zero(sum)) {
    if constexpr (!is_wide_number<A>) {
      constexpr int limbs = limbs_of_ball<A>;
      return round_formula_in<limbs>(to, quotient<limbs>{number<A>(g), number<A>(s.multiplicity)});
    }
  } else if (greatest && below_power(sum, tiny_power)) {
    set_power(sum, tiny_power);
  }
  add_value(sum, s.multiplicity);
  scaled_weight<A> w{arithmetic<A>::number(1), 0};
  if (!greatest) w = weight_of_gap<A>(x, s.max);
  divide_by(w.m, sum);
  return round_product_of(g, w.m, w.k, to);
}

// (max - at) + R, R > 0: for a row of more than one finite element. An exact part D = max - at and a rest above it: where D is a boundary the
// rest's sign decides (num/formula.hpp), and where it is not, it has a distance of 2^-109 |D| or more from all of them: D = hi + lo in two
// binary64 numbers, h half of what the last bit of hi is worth, or of a power of two above D a quarter; |lo| <= h, and h - |lo| is 0 or at
// least 2^-53 h, as both are binary64 numbers. So 128 bits see it, if R is smaller than they show. D = 0: R, a relative accuracy.
// R < 2^-1200 is only enclosed: 0 < ln(1 + rest) < rest. As D is 0 or at least 2^-1074, that is as good as R.
//
// Boundaries of narrower formats are binary64 numbers. Where hi is none of them, D has a distance of h >= 2^-54 |D| or more from all: near D
// they are multiples of 2 h, as hi is. Where it is one, the exact part is hi, and the rest lo + R, whose sign is lo's
// where R is below 2^-1200, and else that of a sum of two numbers with relative accuracy, which are not the same, as R is transcendental.
// A D beyond binary64's range is beyond theirs.
template <class A>
REPDL_HD_CALL decided64 gap_and_logarithm64(const exponential_sum<A, double>& s, double at, dtype to = dtype::f64) {
  if constexpr (is_wide_number<A>) {
    return round_in(to, add(A{two_sum(s.max, -at), 0.0}, logarithm_of(s)));
  } else {
    constexpr int limbs = limbs_of_ball<A>;
    const bool is_tiny = s.multiplicity == 1 && below_power(s.rest, -1200);
    if (is_tiny && s.max == at) return known_number(0.0);
    A log = {zero_limbs<limbs>(), power_magnitude(-1200)};
    if (!is_tiny) log = logarithm_of(s);
    if (s.max == at) return round_in(to, log);
    const A part = number<A>(s.max) - number<A>(at);
    const dd gap = two_sum(s.max, -at);
    if (to == dtype::f64 || !is_finite(gap.hi)) return round_formula_in<limbs>(to, beside<limbs>{part + log, part, 1});
    const int side = !is_tiny ? sign_in(number<A>(gap.lo) + log) : gap.lo < 0 ? -1 : 1;
    return round_formula_in<limbs>(to, beside<limbs>{part + log, number<A>(gap.hi), side});
  }
}

// -------------------------------------------------------------------------------------------------------- sums of gradients

// The sum of g y or of g in A: exactly, with what is not finite, beside balls.
template <class A, bool Products>
struct gradient_sum64 {
  exact_sum<double, Products ? 2 : 1> exact;

  REPDL_HD void start(double) {}
  REPDL_HD void add(double g, double y) {
    if constexpr (Products) {
      exact.add_product(g, y);
    } else {
      exact.add(g);
    }
  }
  REPDL_HD void merge(const gradient_sum64& o) { exact.merge(o.exact); }
};
// Of what is not finite, or overflows on its way, the value or its bound is not either, and nothing is decided. A product that may have lost bits
// below 2^-1074 is off by less than 2^-1070, also by way of split numbers (two_prod).
template <bool Products>
struct gradient_sum64<wide<double>, Products> {
  wide<double> sum;

  REPDL_HD void start(double) { sum = wide<double>{}; }
  REPDL_HD void add(double g, double y) {
    wide<double> term{{g, 0.0}, 0.0};
    if constexpr (Products) {
      const dd p = two_prod(g, y);
      const bool is_exact = magnitude_of(p.hi) >= 0x1p-900 || g == 0 || y == 0;
      term = {p, is_exact ? 0.0 : 0x1p-1070};
    }
    sum = num::add(sum, term);
  }
  REPDL_HD void merge(const gradient_sum64& o) { sum = num::add(sum, o.sum); }
};

// The leading L limbs of an exact sum, and a radius where that is not all.
template <int L, int lsb, int words>
REPDL_HD_CALL ball<L> ball_of_sum(const fixed_point<lsb, words>& sum) {
  fixed_point<lsb, words> a = sum;
  const std::uint64_t is_negative = a.negative() ? 1 : 0;
  if (is_negative != 0) a.negate();
  std::uint64_t w[words];
  REPDL_LIMB_LOOP(words)
  for (int i = 0; i < words; ++i) w[i] = a.word(i);
  bool inexact = false;
  const multi_limb<L> m = normalise<L, words>(w, 64 * words + lsb, is_negative, &inexact);
  return {m, rounding_error(m, inexact)};
}

// y_i (g_i - P), P the sum of g_j y_j: algebraic, and so exact in the end, without a number of bits. A zero is a product: the exclusive or of the
// signs, a zero difference being +0. With P not finite, by the operations of IEEE 754: g_i is finite then or the sum's own term.
template <class A>
REPDL_HD_CALL decided64 softmax_gradient64(double g, double y, const gradient_sum64<A, true>& s) {
  if constexpr (is_wide_number<A>) {
    wide<double> difference = negated(s.sum);
    add_value(difference, g);
    const int sign = sign_in(difference);
    if (y == 0 || sign == 0) return {zero_of_sign(has_sign(y) != (sign < 0)), sign != 2};
    return round_product_of(y, difference, 0);
  } else {
    if (s.exact.special.any()) {
      return known_number(canonical_of(y * (g - s.exact.special.template value<double>())));
    }
    auto difference = s.exact.finite;
    difference.negate();
    difference.add(g);
    const int sign = difference.sign();
    if (y == 0 || sign == 0) return known_number(zero_of_sign(has_sign(y) != (sign < 0)));
    exact_accumulator<double, 3> product;
    add_multiple(product, difference, y);
    return known_number(product.template round<double>());
  }
}

// g_i - e^(y_i) G, G the sum of g_j, finite, y_i finite.
//
// Exact: G = 0: g_i; y_i = 0: g_i - G; a zero is +0. Otherwise the product is transcendental, of the sign of G. 2^-1074 <= |G| < 2^1088 and
// e^1600 > 2^2308: from y_i = 1600 on it overflows whatever g_i is, and for y_i <= -1600 it is below 2^-1220, so that g_i stays, and of g_i = 0
// a zero is left. Between, of balls: an exact part D = g_i - G, and the rest -G (e^(y_i) - 1), which has a sign and no lower bound. For |y_i| <
// 2^-64 it is y (1 + y/2) G within y^3, as e^y - 1 - y - y^2/2 < |y|^3 / 5.
// Of wide numbers: of a product up to four roundings of low parts lose less than 2^-1069.
template <class A>
REPDL_HD_CALL decided64 log_softmax_gradient64(double g, double y, const gradient_sum64<A, false>& s) {
  int sign = 0;
  if constexpr (is_wide_number<A>) {
    sign = sign_in(s.sum);
    if (!(magnitude_of(s.sum.value.hi) < infinity) || !(y < infinity)) return {0.0, false};
  } else {
    sign = s.exact.finite.sign();
    if (s.exact.special.any() || !(y < infinity)) {
      // e^y is NaN, infinite, 0, or some positive number: only its kind matters beside an infinite sum, and only the sum's sign beside an
      // infinite e^y.
      const bool is_finite_sum = !s.exact.special.any();
      const double total = is_finite_sum ? static_cast<double>(sign) : s.exact.special.template value<double>();
      const double weight = y != y ? y : y == infinity ? infinity : y == -infinity ? 0.0 : 1.0;
      return known_number(canonical_of((g - weight * total) + 0.0));
    }
  }
  if (y == -infinity || sign == 0) return known_number(g + 0.0);
  if (y >= 1600) return {sign < 0 ? infinity : -infinity, sign != 2};
  if (y <= -1600) return {g == 0 ? zero_of_sign(sign > 0) : g, g != 0 || sign != 2};
  if constexpr (is_wide_number<A>) {
    wide<double> product = negated(s.sum);
    if (y != 0) {
      if (!(magnitude_of(y) <= -least_gap)) return {0.0, false};
      multiply_by(product, exponentials<A>::of(y));
      product.error += 0x1p-1069;
    }
    add_value(product, g);
    return round_number<double>(product);
  } else {
    constexpr int limbs = limbs_of_ball<A>;
    auto difference = s.exact.finite;
    difference.negate();
    difference.add(g);
    if (y == 0) return known_number(difference.template round<double>());
    const A total = ball_of_sum<limbs>(s.exact.finite);
    const A part = ball_of_sum<limbs>(difference);
    A value;
    if (magnitude_of(y) < 0x1p-64) {
      const A exact_y = number<A>(y);
      const A square = exact_y * exact_y;
      const A less = grown(exact_y + scaled(square, -1), multiply(upper(square), upper(exact_y)));
      value = part - total * less;
    } else {
      value = number<A>(g) - total * exponential(exact_ball(limbs_of_value<limbs>(y)));
    }
    return round_formula<double, limbs>(beside<limbs>{value, part, (sign > 0) == (y > 0) ? -1 : 1});
  }
}

// -------------------------------------------------------------------------------------------------------------------- rules

// Of a row with a greatest element.
template <ops::op_id Op>
struct wide_exponential_rule : row_rule<Op> {
  template <class A>
  using late = exponential_sum<A, double>;
  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    return {!(magnitude_of(o.top) < infinity), double_of(format<double>::nan)};
  }
};
template <>
struct wide_rule<ops::op_id::softmax> : wide_exponential_rule<ops::op_id::softmax> {
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* x, int) {
    return scaled_softmax<A>(s, x[0], 1.0, o.to);
  }
};
// A g that is infinite or NaN: beside a p of exactly 0 NaN.
template <>
struct wide_rule<ops::op_id::logsumexp_backward> : wide_exponential_rule<ops::op_id::logsumexp_backward> {
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* x, int) {
    if (!is_finite(o.g)) return known_number(canonical_of(x[0] == -infinity ? o.g * 0.0 : o.g));
    return scaled_softmax<A>(s, x[0], o.g);
  }
};
// The only finite element: ln S = x_i, the exact zero +0; in every other row the value is negative, -0 where it rounds to zero.
template <>
struct wide_rule<ops::op_id::log_softmax> : wide_exponential_rule<ops::op_id::log_softmax> {
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* x, int) {
    if (x[0] == -infinity) return known_number(x[0]);
    if (s.is_single()) return known_number(0.0);
    const decided64 r = gap_and_logarithm64<A>(s, x[0], o.to);
    return {-r.value, r.decided};
  }
};
template <>
struct wide_rule<ops::op_id::logsumexp> : wide_exponential_rule<ops::op_id::logsumexp> {
  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    return {!(magnitude_of(o.top) < infinity), canonical_of(o.top)};
  }
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given&, const late<A>& s, const double*, int) {
    if (s.is_single()) return known_number(s.max + 0.0);
    return gap_and_logarithm64<A>(s, 0.0);
  }
};
template <ops::op_id Op, bool Products>
struct wide_gradient_rule : row_rule<Op> {
  template <class A>
  using late = gradient_sum64<A, Products>;
  REPDL_HD static row_class64 classify(const wide_row_given&) { return {false, 0.0}; }
};
template <>
struct wide_rule<ops::op_id::softmax_backward> : wide_gradient_rule<ops::op_id::softmax_backward, true> {
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given&, const late<A>& s, const double* x, int) {
    return softmax_gradient64<A>(x[0], x[1], s);
  }
};
template <>
struct wide_rule<ops::op_id::log_softmax_backward> : wide_gradient_rule<ops::op_id::log_softmax_backward, false> {
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given&, const late<A>& s, const double* x, int) {
    return log_softmax_gradient64<A>(x[0], x[1], s);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
