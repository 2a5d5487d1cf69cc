// Losses of d = x - t and their gradients: mse_loss, l1_loss, smooth_l1_loss, huber_loss. Binary64: losses_binary64.hpp; here f16, bf16,
// binary32.
//
// An element in binary64, `first`: a value and a bound on its error, 0 where the value is the exact one rounded to odd
// (sums.hpp: RO, and why a quotient of RO(v) by a number of few bits rounds as that of v does). With u = 2^-53:
//
//   d = dh + dl exactly (two_sum); dl = 0 unless the exponents of x and t differ by 29. Where dl = 0, dh has 53 bits and
//   RO(dh dh), RO(g dh), RO(g c) come from two_prod; else their error is u for each dl, 2 u for RO.
//   |d| - c/2 has one rounding to odd (add_to_odd). Times c: two_prod where |d| - c/2 is a binary64 number, else u more.
//   A divisor (c n, 2 c, n) is exact and of at most 27 bits, or within u of itself: m of 25 bits times 27 bits are the 52 that RO
//   allows. RO of the quotient: 2 u.
//
// In all at most 2 u + u + u + 2 u and u for each end of the interval: 2^-50 |v| = 8 u |v| covers them.
// Sizes: |d| < 2^129, a multiple of 2^-149; c is 0 or in [2^-200, 2^200], a multiple of 2^-252; |g| < 2^128; n < 2^53. All
// products are multiples of 2^-505 and below 2^402, quotients above 2^-560: nothing overflows or underflows, so an infinity or NaN
// is the formula's in the reals with infinities, and a zero an exact one.
//
// What this leaves undecided is a quotient N / D of dyadic numbers, which balls of 1024 bits hold exactly: `exact`.
//   d^2: 556 bits. c (2 |d| - c), |d| > c, so c < 2^129: bits 2^-504 to 2^259. g d: 2^-298 to 2^257. g c: 2^-401 to 2^328.
//   N - m D for a midpoint m next to N / D: m D is a multiple of 2^-150 2^-252, and below 2 N.
//
// Sums. All four are (A + 2 c B - c^2 M) / D: A the sum of d^2 over the elements that are quadratic in d, B the sum of |d| over the
// M others (D: mse 1, smooth_l1 2 c, huber 2; l1 is B). A is a sum of products, d^2 = x^2 - 2 x t + t^2: fixed-point numbers hold
// A and B for 2^62 elements (fixed_point.hpp). In N = A + 2 c B - c^2 M, c = 2^k: A < 2^(2k + 64), a multiple of 2^-298 (0 unless
// k > -150), B is 0 unless k < 129: for k = 129 bits 2^-298 to 2^322, for k = -150 2^-404 to 2^43, beyond fewer. 1024 are enough.
//
// First the values of `first` are added up, compensated. They are within 2 u of the exact elements, RO, or within their error: as
// leaves of 4 additions; and twice the sum of the errors covers that of the errors.
//
// Checked by tests/losses/losses_test.cpp.
#pragma once

#include <utility>

#include "librepdl/num/formula.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/elementwise/sums.hpp"
#include "librepdl/ops/losses/losses_binary64.hpp"
#include "librepdl/ops/structured.hpp"

namespace repdl::ops {

// What the elements of a call share.
struct loss_constants {
  double c;              // beta, delta
  double count;          // what all is divided by: for a mean the number of elements, else 1
  double count_error;    // 0, or 2^-50: relative, where count has more than 27 bits
  double divisor;        // of smooth_l1_loss where it is quadratic in d: 2 c, and of its gradient: c count
  double divisor_error;  // likewise
  double force;          // 0, or infinity: the first tier decides nothing
  std::int64_t n;        // count
};

}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

using ops::loss_constants;

// Of a divisor a b that was rounded.
REPDL_HD double error_of_product(double a, double b) {
  const dd p = two_prod(a, b);
  return p.lo == 0 && (bits_of(p.hi) & 0x3ffffff) == 0 ? 0.0 : 0x1p-50;
}
REPDL_HD loss_constants make_loss_constants(double c, std::int64_t n, bool gradient, bool force) {
  const double count = static_cast<double>(n);
  const double factor = gradient ? count : 2;
  return {c, count, error_of_product(count, 1), c * factor, error_of_product(c, factor), force ? infinity : 0.0, n};
}

struct loss_term {
  double value;
  double error;
};

// x - t; an exact zero is +0.
REPDL_HD dd distance(double x, double t) {
  const dd d = two_sum(x, -t);
  return {d.hi + 0.0, d.lo};
}
REPDL_HD dd magnitude_of(dd d) {
  const bool negative = d.hi < 0;
  return {negative ? -d.hi : d.hi, negative ? -d.lo : d.lo};
}
REPDL_HD bool is_below(dd a, double c) { return (a.hi < c) | ((a.hi == c) & (a.lo < 0)); }
REPDL_HD bool is_at_most(dd a, double c) { return (a.hi < c) | ((a.hi == c) & (a.lo <= 0)); }

// RO(v.hi + v.lo) where v.lo is exact; infinities and NaN as v.hi.
REPDL_HD double to_odd(dd v) { return round_to_odd(v.hi, v.lo); }
// 2^-50 where something beside the value was left out.
REPDL_HD double error_beside(double left_out) { return (left_out < 0) | (left_out > 0) ? 0x1p-50 : 0.0; }
REPDL_HD loss_term with_error(double v, double relative) {
  return {v, is_regular(v) & (relative != 0) ? relative * magnitude_of(v) : 0.0};
}

// g l'(d) / n, l'(d) = ±g c: c = 1, or a coefficient; d = 0: +0; a NaN stays.
REPDL_HD double signed_as(double v, double d) { return d > 0 ? v : d < 0 ? -v : d == 0 ? 0.0 : d; }

// ---- exactly

template <int L>
REPDL_HD_CALL ball<L> exact_distance(double x, double t) {
  return number<L>(x) - number<L>(t);
}
template <int L>
REPDL_HD ball<L> magnitude_of(ball<L> a) {
  a.middle.negative = 0;
  return a;
}
template <int L>
REPDL_HD ball<L> counted(std::int64_t n) {
  return exact_ball(limbs_of<L>(static_cast<std::uint64_t>(n)));
}
inline constexpr int loss_limbs = 16;
// The same by the ball's type, also of double-doubles: formulas that are written once.
template <class Ball>
REPDL_HD Ball distance_of(double x, double t) {
  if constexpr (is_multi_limb<Ball>) {
    return exact_distance<limbs_of_ball<Ball>>(x, t);
  } else {
    return number<Ball>(x) - number<Ball>(t);
  }
}
REPDL_HD dd_ball<double> magnitude_of(const dd_ball<double>& a) { return a.hi < 0 ? negated(a) : a; }
template <class Ball>
REPDL_HD Ball count_of(std::int64_t n) {
  if constexpr (is_multi_limb<Ball>) {
    return counted<limbs_of_ball<Ball>>(n);
  } else {
    const auto high = static_cast<double>(n);
    return {high, static_cast<double>(n - static_cast<std::int64_t>(high)), 0.0};
  }
}

// The exact sums.
struct distance_sum {
  dot_accumulator squares;
  sum_accumulator lengths;
  std::int64_t linear = 0;  // how many lengths

  REPDL_HD void add_square(float x, float t) {
    squares.add_product(x, x);
    squares.add_product(t, t);
    squares.add_product(-x, t);
    squares.add_product(-x, t);
  }
  REPDL_HD void add_length(float x, float t) {
    const bool negative = x < t;
    lengths.add(negative ? -x : x);
    lengths.add(negative ? t : -t);
    ++linear;
  }
  REPDL_HD void merge(const distance_sum& o) {
    squares.merge(o.squares);
    lengths.merge(o.lengths);
    linear += o.linear;
  }
};
REPDL_HD_CALL ball<loss_limbs> exact_squares(const distance_sum& s) {
  return exact_ball(limbs_of_sum<loss_limbs>(s.squares));
}
REPDL_HD_CALL ball<loss_limbs> exact_lengths(const distance_sum& s) {
  return exact_ball(limbs_of_sum<loss_limbs>(s.lengths));
}
// A + 2 c B - c^2 M.
REPDL_HD_CALL ball<loss_limbs> mixed_total(const distance_sum& s, double c) {
  const ball<loss_limbs> by = number<loss_limbs>(c);
  return exact_squares(s) + scaled(by * exact_lengths(s), 1) - by * by * counted<loss_limbs>(s.linear);
}

// ---- the losses and their gradients

// A body has `first` and `exact` of an element, operands as the operation's, `is_quadratic` in d, and of binary64 `scale`; a loss beside it
// `total`, its sum divided by the count.
template <class Op>
struct loss_body;
template <>
struct loss_body<ops::mse_loss> {
  REPDL_HD static loss_scale scale(const loss_constants&) { return {1, 0}; }
  REPDL_HD static loss_term first(const loss_constants&, double x, double t) {
    const dd d = distance(x, t);
    const double v = to_odd(two_prod(d.hi, d.hi));
    return with_error(v, error_beside(d.lo));
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants&, double x, double t) {
    const Ball d = distance_of<Ball>(x, t);
    return d * d;
  }
  REPDL_HD static bool is_quadratic(const loss_constants&, double, double) { return true; }
  REPDL_HD_CALL static quotient<loss_limbs> total(const loss_constants& k, const distance_sum& s) {
    return {exact_squares(s), counted<loss_limbs>(k.n)};
  }
};
template <>
struct loss_body<ops::mse_loss_backward> {
  REPDL_HD static bool is_quadratic(const loss_constants&, double, double) { return true; }
  REPDL_HD static loss_scale scale(const loss_constants&) { return {1, 1}; }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t) {
    const dd d = distance(x, t);
    const double v = divide_to_odd(2 * to_odd(two_prod(g, d.hi)), k.count);
    return with_error(v, error_beside(d.lo) + k.count_error);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double g, double x, double t) {
    return quotient_of(scaled(number<Ball>(g) * distance_of<Ball>(x, t), 1), count_of<Ball>(k.n));
  }
};

template <>
struct loss_body<ops::l1_loss> {
  REPDL_HD static loss_scale scale(const loss_constants&) { return {1, 0}; }
  REPDL_HD static loss_term first(const loss_constants&, double x, double t) {
    return {to_odd(magnitude_of(distance(x, t))), 0.0};
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants&, double x, double t) {
    return magnitude_of(distance_of<Ball>(x, t));
  }
  REPDL_HD static bool is_quadratic(const loss_constants&, double, double) { return false; }
  REPDL_HD_CALL static quotient<loss_limbs> total(const loss_constants& k, const distance_sum& s) {
    return {exact_lengths(s), counted<loss_limbs>(k.n)};
  }
};
template <>
struct loss_body<ops::l1_loss_backward> {
  REPDL_HD static bool is_quadratic(const loss_constants&, double, double) { return false; }
  REPDL_HD static loss_scale scale(const loss_constants&) { return {1, 0}; }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t) {
    return with_error(signed_as(divide_to_odd(g, k.count), x - t), k.count_error);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double g, double x, double t) {
    return quotient_of(number<Ball>(signed_as(g, x - t)), count_of<Ball>(k.n));
  }
};

template <>
struct loss_body<ops::smooth_l1_loss> {
  REPDL_HD static loss_scale scale(const loss_constants& k) {
    return k.c == 0 ? loss_scale{1, 0} : loss_scale{k.c, -1};
  }
  REPDL_HD static loss_term first(const loss_constants& k, double x, double t) {
    const dd a = magnitude_of(distance(x, t));
    const double square = divide_to_odd(to_odd(two_prod(a.hi, a.hi)), k.divisor);
    const double line = add_to_odd(-0.5 * k.c, a);
    const bool quadratic = is_below(a, k.c);
    return with_error(quadratic ? square : line, quadratic ? error_beside(a.lo) + k.divisor_error : 0.0);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double x, double t) {
    const Ball a = magnitude_of(distance_of<Ball>(x, t));
    if (is_quadratic(k, x, t)) return quotient_of(a * a, number<Ball>(2 * k.c));
    return quotient_of(scaled(a, 1) - number<Ball>(k.c), number<Ball>(2.0));
  }
  REPDL_HD static bool is_quadratic(const loss_constants& k, double x, double t) {
    return is_below(magnitude_of(distance(x, t)), k.c);
  }
  REPDL_HD_CALL static quotient<loss_limbs> total(const loss_constants& k, const distance_sum& s) {
    if (k.c == 0) return {exact_lengths(s), counted<loss_limbs>(k.n)};
    return {mixed_total(s, k.c), number<loss_limbs>(2 * k.c) * counted<loss_limbs>(k.n)};
  }
};
template <>
struct loss_body<ops::smooth_l1_loss_backward> {
  REPDL_HD static bool is_quadratic(const loss_constants& k, double x, double t) {
    return loss_body<ops::smooth_l1_loss>::is_quadratic(k, x, t);
  }
  REPDL_HD static loss_scale scale(const loss_constants& k) { return {k.c == 0 ? 1.0 : k.c, 0}; }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t) {
    const dd d = distance(x, t);
    const double slope = divide_to_odd(to_odd(two_prod(g, d.hi)), k.divisor);
    const double line = signed_as(divide_to_odd(g, k.count), d.hi);
    const bool quadratic = is_below(magnitude_of(d), k.c);
    return with_error(quadratic ? slope : line, quadratic ? error_beside(d.lo) + k.divisor_error : k.count_error);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double g, double x, double t) {
    if (!is_quadratic(k, x, t)) return quotient_of(number<Ball>(signed_as(g, x - t)), count_of<Ball>(k.n));
    return quotient_of(number<Ball>(g) * distance_of<Ball>(x, t), number<Ball>(k.c) * count_of<Ball>(k.n));
  }
};

template <>
struct loss_body<ops::huber_loss> {
  REPDL_HD static loss_scale scale(const loss_constants&) { return {1, -1}; }
  REPDL_HD static loss_term first(const loss_constants& k, double x, double t) {
    const dd a = magnitude_of(distance(x, t));
    const double square = 0.5 * to_odd(two_prod(a.hi, a.hi));
    // |d| - c/2 = w.hi + w.lo + a.lo, |w.lo + a.lo| <= 2 u w.hi.
    const dd w = two_sum(a.hi, -0.5 * k.c);
    const double line = to_odd(two_prod(k.c, w.hi));
    const bool quadratic = is_at_most(a, k.c);
    const double left_out = error_beside(a.lo) + (quadratic ? 0.0 : error_beside(w.lo));
    return with_error(quadratic ? square : line, left_out);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double x, double t) {
    const Ball a = magnitude_of(distance_of<Ball>(x, t));
    if (is_quadratic(k, x, t)) return scaled(a * a, -1);
    return scaled(number<Ball>(k.c) * (scaled(a, 1) - number<Ball>(k.c)), -1);
  }
  REPDL_HD static bool is_quadratic(const loss_constants& k, double x, double t) {
    return is_at_most(magnitude_of(distance(x, t)), k.c);
  }
  REPDL_HD_CALL static quotient<loss_limbs> total(const loss_constants& k, const distance_sum& s) {
    return {mixed_total(s, k.c), scaled(counted<loss_limbs>(k.n), 1)};
  }
};
template <>
struct loss_body<ops::huber_loss_backward> {
  REPDL_HD static bool is_quadratic(const loss_constants& k, double x, double t) {
    return loss_body<ops::huber_loss>::is_quadratic(k, x, t);
  }
  REPDL_HD static loss_scale scale(const loss_constants&) { return {1, 0}; }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t) {
    const dd d = distance(x, t);
    const bool quadratic = is_at_most(magnitude_of(d), k.c);
    const double slope = to_odd(two_prod(g, quadratic ? d.hi : k.c));
    const double v = divide_to_odd(quadratic ? slope : signed_as(slope, d.hi), k.count);
    return with_error(v, (quadratic ? error_beside(d.lo) : 0.0) + k.count_error);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double g, double x, double t) {
    const Ball slope = is_quadratic(k, x, t) ? distance_of<Ball>(x, t) : number<Ball>(signed_as(k.c, x - t));
    return quotient_of(number<Ball>(g) * slope, count_of<Ball>(k.n));
  }
};

// ---- losses with transcendental terms (losses_logistic.hpp, losses_entropy.hpp)

// factor times a number within `error` of `value`. A factor 0 or infinite leaves the sign of the number to tell: where the error
// does not, error is infinite.
REPDL_HD loss_term with_factor(double factor, loss_term r) {
  const double v = factor * r.value;
  const bool bare = (factor == 0) | (magnitude_of(factor) == infinity);
  const bool undecided = bare & is_regular(r.value) & (r.error != 0) & !(magnitude_of(r.value) > r.error);
  const double error = bare | !is_regular(v) ? 0.0 : magnitude_of(factor) * r.error;
  return {undecided ? factor : v, undecided ? infinity : error};
}
REPDL_HD bool is_undecided_sign(loss_term r) { return ((r.value == 0) | !is_regular(r.value)) & (r.error == infinity); }

// Instead of `exact` and `total` a body has `parts` of an element, for every level. An element, and a sum of them, is
// value = part + rest: part a rational number, exact at some level; rest is 0, or not 0 and of that sign, or unknown (2).
// Terms beyond the range of balls count by their signs alone: above 2^11900 (huge, not in `value`), and those above 2^10000.
enum beyond_range : std::int64_t { huge_term = 1, minus_huge_term = 2, large_term = 4, minus_large_term = 8 };
template <int L>
struct loss_parts {
  ball<L> value = exact_ball(zero_limbs<L>());
  ball<L> part = exact_ball(zero_limbs<L>());
  std::int64_t rest = 0;
  std::int64_t beyond = 0;  // of beyond_range

  REPDL_HD void merge(const loss_parts& o) {
    value = value + o.value;
    part = part + o.part;
    beyond |= o.beyond;
    rest = rest == 0 || rest == o.rest ? o.rest : o.rest == 0 ? rest : 2;
  }
};
// value / n, n > 0.
template <int L>
struct parts_over {
  const loss_parts<L>& of;
  ball<L> n;
};
template <int L>
REPDL_HD ball<L> enclosure(const parts_over<L>& f) {
  return f.of.value / f.n;
}
template <int L>
REPDL_HD_CALL int side_of(const parts_over<L>& f, const ball<L>& m) {
  const int side = sign_of((f.of.rest == 0 ? f.of.value : f.of.part) - m * f.n);
  return f.of.rest == 0 ? side : side == 0 ? static_cast<int>(f.of.rest) : 2;
}
// RN(value / n). Beside a part 0 the value has the sign of the rest, though its ball may have 0 in it.
template <class T, int L>
REPDL_HD_CALL decided_value<T> round_parts(const loss_parts<L>& p, std::int64_t n) {
  if ((p.beyond & (huge_term | minus_huge_term)) != 0) {  // 2^62 others are below 2^11200
    const bool negative = (p.beyond & huge_term) == 0;
    const bool decided = (p.beyond & (negative ? large_term : minus_huge_term | minus_large_term)) == 0;
    return {narrow<T>(negative ? -infinity : infinity), decided};
  }
  const decided_value<T> r = round_formula<T, L>(parts_over<L>{p, counted<L>(n)});
  if (r.decided || sign_of(p.part) != 0 || (p.rest != 1 && p.rest != -1)) return r;
  const ball_ends<L> ends = ends_of(enclosure(parts_over<L>{p, counted<L>(n)}));
  const storage_of<T> both = static_cast<storage_of<T>>(round_bits<T>(ends.low) | round_bits<T>(ends.high));
  if ((both & static_cast<storage_of<T>>(~sign_mask<T>)) != 0) return r;
  return {from_bits<T>(p.rest < 0 ? sign_mask<T> : storage_of<T>{0}), true};
}
template <class Op>
concept has_parts = requires(const loss_constants& k, const double* in) {
  loss_body<Op>::template parts<4>(k, in);
};
template <class T, class Op>
struct parts_attempt {
  const loss_constants& k;
  const double* in;
  std::int64_t power;  // all is multiplied by 2^power
  template <int L>
  REPDL_HD decided_value<T> operator()() const {
    loss_parts<L> p = loss_body<Op>::template parts<L>(k, in);
    p.value = scaled(p.value, power);
    p.part = scaled(p.part, power);
    return round_parts<T, L>(p, k.n);
  }
};
// Operands that are factors of all the rest.
template <class Op>
concept has_factors = requires {
  loss_body<Op>::is_factor(0);
};

// Terms of a sum. A term of factor 0 is 0.
template <class Op, class... X>
REPDL_HD loss_term first_summand(const loss_constants& k, X... x) {
  loss_term r = loss_body<Op>::first(k, x...);
  if constexpr (has_factors<Op>) r.error = (r.value == 0) & (r.error == infinity) ? 0.0 : r.error;
  return r;
}
template <class Op, int L, class... X>
REPDL_HD_CALL loss_parts<L> summand_parts(const loss_constants& k, X... x) {
  const loss_term r = first_summand<Op>(k, x...);
  loss_parts<L> p;
  if (r.value == 0 && r.error == 0) return p;
  if (!is_regular(r.value)) {  // beside an infinity of unknown sign
    p.value.radius = unknown();
    return p;
  }
  const double in[] = {x...};
  return loss_body<Op>::template parts<L>(k, in);
}

// Sums of many terms with few keys, on a CPU. `key` says of which numbers a term has rational multiples, -infinity: of none;
// `multiples` says which, of at most two, `numbers` what these numbers are, `part` what a term has beside them. Terms of one key are
// added up first: multiples and parts are exact, so what cancels among them is gone, and each number is computed once. Where
// nothing is left but the parts, the sum is rational.
template <class Op>
concept has_keys = requires(const loss_constants& k, const double* in) {
  loss_body<Op>::key(k, in);
};
// In binary64 a key is exact only where it is an operand.
template <class Op>
concept has_product_keys = requires {
  loss_body<Op>::key_is_product;
};
// Multiples and parts have bits 2^-596 to 2^513 (losses_logistic.hpp), those of 2^62 terms up to 2^575.
inline constexpr int group_limbs = 20;
inline constexpr int most_groups = 64;

// A number that is not 0: of this sign; as a term above 0 it is beyond the range in this way, huge_term or large_term.
template <int L>
struct key_number {
  ball<L> value;
  int sign = 1;
  std::int64_t beyond = 0;
};
struct key_group {
  double key;
  ball<group_limbs> first = exact_ball(zero_limbs<group_limbs>());
  ball<group_limbs> second = exact_ball(zero_limbs<group_limbs>());
};
struct key_groups {
  bool complete = true;  // no more than most_groups keys, and no terms of which nothing is known
  int count = 0;
  ball<group_limbs> part = exact_ball(zero_limbs<group_limbs>());
  key_group of[most_groups];

  template <class Op, class... X>
  void add(const loss_constants& k, X... x) {
    if (!complete) return;
    const loss_term r = first_summand<Op>(k, x...);
    if (r.value == 0 && r.error == 0) return;
    const double in[] = {x...};
    complete = is_regular(r.value);
    if (complete) add_number<Op>(k, in);
  }
  template <class Op>
  void add_number(const loss_constants& k, const double* in) {
    part = part + loss_body<Op>::template part<group_limbs>(k, in);
    key_group one{loss_body<Op>::key(k, in)};
    if (one.key == -infinity) return;
    loss_body<Op>::multiples(k, in, one.first, one.second);
    merge(one);
  }
  void merge(const key_groups& o) {
    complete = complete && o.complete;
    part = part + o.part;
    for (int i = 0; complete && i < o.count; ++i) merge(o.of[i]);
  }

 private:
  void merge(const key_group& o) {
    int at = 0;
    while (at < count && of[at].key != o.key) ++at;
    if (at == most_groups) {
      complete = false;
    } else if (at == count) {
      of[count++] = o;
    } else {
      of[at].first = of[at].first + o.first;
      of[at].second = of[at].second + o.second;
    }
  }
};

// Of any number of limbs.
template <int L>
ball<L> resized(const ball<group_limbs>& a) {
  if constexpr (L >= group_limbs) {
    return widen_ball<L>(a);
  } else {
    bool inexact = false;
    const auto m = normalise<L, group_limbs>(a.middle.limb, a.middle.exponent, a.middle.negative, &inexact);
    return {m, add(a.radius, rounding_error(m, inexact))};
  }
}
// What groups say of their sum. The sign of the rest, where terms differ in theirs, is that of the ball where it is clear.
template <class Op, int L>
loss_parts<L> parts_of_groups(const loss_constants& k, const key_groups& g) {
  loss_parts<L> sum, one;
  sum.part = resized<L>(g.part);
  for (int i = 0; i < g.count; ++i) {
    const key_group& group = g.of[i];
    for (const int which : {0, 1}) {
      const ball<group_limbs>& multiple = which == 0 ? group.first : group.second;
      const int sign = sign_of(multiple);
      if (sign == 0) continue;
      const key_number<L> n = loss_body<Op>::template number_of_key<L>(k, group.key, which);
      one.value = (n.beyond & huge_term) != 0 ? exact_ball(zero_limbs<L>()) : resized<L>(multiple) * n.value;
      one.rest = sign == 2 ? 2 : sign * n.sign;
      one.beyond = (one.rest > 0 ? n.beyond : 0) | (one.rest != 1 ? n.beyond << 1 : 0);
      sum.merge(one);
    }
  }
  const ball<L>& rest = sum.value;
  const bool clear = !rest.middle.is_zero() && rest.radius.below_power(rest.middle.exponent - 1);
  if (sum.rest == 2 && clear) sum.rest = rest.middle.negative != 0 ? -1 : 1;
  sum.value = sum.part + rest;
  return sum;
}

// ---- binary64

// A body may say this itself, of other formulas: is_special(k, x...), and special(k, x...), the result.
template <class Op>
concept has_specials = requires {
  &loss_body<Op>::is_special;
};
// Whether the result is that of IEEE 754's operations: where d has no value, g none or is 0, or a product has a factor that is infinite
// or 0.
template <class Op>
requires(!has_specials<Op>) REPDL_HD bool is_special_loss(const loss_constants&, double x, double t) {
  return !is_finite(x) || !is_finite(t);
}
template <class Op>
requires(!has_specials<Op>) REPDL_HD bool is_special_loss(const loss_constants& k, double g, double x, double t) {
  const double d = x - t;  // 0 only where x = t
  const bool no_number = !is_finite(x) || !is_finite(t);
  return g == 0 || !is_finite(g) || d == 0 || d != d || (no_number && loss_body<Op>::is_quadratic(k, x, t));
}
template <class Op>
requires(!has_specials<Op>) REPDL_HD double special_loss(const loss_constants&, double x, double t) {
  return narrow<double>(magnitude_of(x - t));
}
template <class Op>
requires(!has_specials<Op>) REPDL_HD double special_loss(const loss_constants& k, double g, double x, double t) {
  const double d = x - t;
  const double factor = is_finite(x) && is_finite(t) ? signed_as(1, d) : d;  // a finite d may overflow
  return narrow<double>(loss_body<Op>::is_quadratic(k, x, t) ? g * factor : signed_as(g, d));
}

template <class Op, class... X>
requires has_specials<Op> REPDL_HD bool is_special_loss(const loss_constants& k, X... x) {
  return loss_body<Op>::is_special(k, x...);
}
template <class Op, class... X>
requires has_specials<Op> REPDL_HD double special_loss(const loss_constants& k, X... x) {
  return narrow<double>(loss_body<Op>::special(k, x...));
}

// What the first tier says of an element.
template <class Op, class... X>
REPDL_HD dd_ball<double> wide_loss(const loss_constants& k, X... x) {
  if constexpr (has_parts<Op>) {
    return loss_body<Op>::wide(k, x...);
  } else {
    return loss_body<Op>::template exact<dd_ball<double>>(k, x...);
  }
}
// Factors that are 0 or infinite, of which there is only one kind, leave the sign of the rest to tell, and their own: 1 stands for them.
enum class bare_factors { none, zero, infinite };
template <class Op>
REPDL_HD bare_factors replace_bare_factors(double* in, int count) {
  auto kind = bare_factors::none;
  if constexpr (has_factors<Op>) {
    for (int i = 0; i < count; ++i) {
      if (!loss_body<Op>::is_factor(i) || (in[i] != 0 && is_finite(in[i]))) continue;
      kind = in[i] == 0 ? bare_factors::zero : bare_factors::infinite;
      in[i] = (bits_of(in[i]) >> 63) != 0 ? -1.0 : 1.0;
    }
  }
  return kind;
}
// A factor 0 or infinite times a number of which there is a ball.
REPDL_HD dd_ball<double> with_bare_factors(bare_factors bare, const dd_ball<double>& a) {
  if (bare == bare_factors::none) return a;
  const double size = bare == bare_factors::zero ? 0.0 : infinity;
  return {a.hi < 0 ? -size : size, 0.0, magnitude_of(a.hi) > 2 * a.error ? 0.0 : infinity};
}
// One way for all lanes of a GPU.
template <class Op, class... X>
REPDL_HD decided_value<double> evaluate_wide_loss(const loss_constants& k, X... x) {
  double in[] = {x...};
  const bare_factors bare = replace_bare_factors<Op>(in, sizeof...(X));
  const dd_ball<double> r = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return with_bare_factors(bare, wide_loss<Op>(k, in[I]...));
  }
  (std::make_index_sequence<sizeof...(X)>());
  const decided_lanes<double> rounded = round_sum(r);
  const bool alone = bare != bare_factors::none;  // then a zero has its sign
  const double value = alone ? r.hi : rounded.value;
  const bool decided = alone ? r.error == 0 : rounded.decided;
  const bool special = is_special_loss<Op>(k, x...);
  return {special ? special_loss<Op>(k, x...) : value, (special || decided) && k.force == 0};
}

// Adds what an element is multiplied by its scale.
template <class Op>
REPDL_HD void add_exactly(wide_loss_sum& s, const loss_constants& k, double x, double t) {
  if (is_special_loss<Op>(k, x, t)) {
    s.terms.special.add(magnitude_of(x - t));
  } else if (loss_body<Op>::is_quadratic(k, x, t)) {
    s.add_square(x, t);
  } else {
    s.add_line(x, t, k.c);
  }
}
template <class Op>
REPDL_HD void add_exactly(wide_loss_sum& s, const loss_constants& k, double g, double x, double t) {
  if (loss_body<Op>::is_quadratic(k, x, t)) {
    s.add_slope(g, x, t);
  } else {
    s.terms.finite.add_product(x < t ? -g : g, k.c == 0 ? 1.0 : k.c);
  }
}
template <class Op, class... X>
REPDL_HD_CALL double round_wide_loss(const loss_constants& k, X... x) {
  if (is_special_loss<Op>(k, x...)) return special_loss<Op>(k, x...);
  wide_loss_sum s;
  add_exactly<Op>(s, k, x...);
  return s.round(loss_body<Op>::scale(k), k.n);
}

// ---- an element

template <class T>
inline constexpr bool is_wide_loss = std::is_same_v<T, double>;
template <class T, class Op, class... X>
REPDL_HD decided_value<T> evaluate_loss(const loss_constants& k, X... x) {
  if constexpr (is_wide_loss<T>) {
    return evaluate_wide_loss<Op>(k, x...);
  } else {
    const loss_term r = loss_body<Op>::first(k, x...);
    return certify_as<T>(r.value, r.error + k.force);
  }
}
// An attempt with balls of at most Limbs limbs.
template <int Limbs, class Attempt>
REPDL_HD decltype(auto) decide_by_levels_to(const Attempt& attempt, int last_tier_bits) {
  static_assert(Limbs == 32 || Limbs == 8);
  if constexpr (Limbs == 32) return decide_by_levels(attempt, last_tier_bits);
  decltype(attempt.template operator()<4>()) r{};
  if (last_tier_bits >= 256) r = attempt.template operator()<4>();
  if (!r.decided && last_tier_bits >= 512) r = attempt.template operator()<8>();
  return r;
}
// The sign of a value, or 2.
template <int L>
REPDL_HD_CALL int sign_of_parts(const loss_parts<L>& p) {
  const int exact = p.rest == 0 ? sign_of(p.value) : 2;
  if (exact != 2) return exact;
  if (sign_of(p.part) == 0 && p.rest != 2) return static_cast<int>(p.rest);
  const ball<L>& v = p.value;
  const bool clear = !v.middle.is_zero() && v.radius.below_power(v.middle.exponent - 1);
  return !clear ? 2 : v.middle.negative != 0 ? -1 : 1;
}
template <class Op>
struct bare_attempt {
  const loss_constants& k;
  const double* in;
  double size;  // 0 or infinity
  template <int L>
  REPDL_HD decided_value<double> operator()() const {
    const int sign = sign_of_parts(loss_body<Op>::template parts<L>(k, in));
    return {sign < 0 ? -size : size, sign == 1 || sign == -1};
  }
};
// What that leaves undecided; Limbs: where the last tier has levels. A body may decide by an integer formula of its own, `decide`.
template <class Op>
concept decides_itself = requires {
  &loss_body<Op>::decide;
};
template <class T, class Op, int Limbs = 32, class... X>
requires is_wide_loss<T> REPDL_HD decided_value<T> decide_loss(const loss_constants& k, int last_tier_bits, X... x) {
  if constexpr (has_parts<Op>) {
    if (is_special_loss<Op>(k, x...)) return {special_loss<Op>(k, x...), true};
    double in[] = {x...};
    const bare_factors bare = replace_bare_factors<Op>(in, sizeof...(X));
    if (bare == bare_factors::none) return decide_by_levels_to<Limbs>(parts_attempt<T, Op>{k, in, 0}, last_tier_bits);
    const double size = bare == bare_factors::zero ? 0.0 : infinity;
    return decide_by_levels_to<Limbs>(bare_attempt<Op>{k, in, size}, last_tier_bits);
  } else if constexpr (decides_itself<Op>) {
    const bool special = is_special_loss<Op>(k, x...);
    return {special ? special_loss<Op>(k, x...) : loss_body<Op>::decide(k, x...), true};
  } else {
    return {round_wide_loss<Op>(k, x...), true};
  }
}
template <class T, class Op, int Limbs = 32, class... X>
requires(!is_wide_loss<T>) REPDL_HD_CALL decided_value<T> decide_loss(const loss_constants& k, int last_tier_bits,
                                                                      X... x) {
  const loss_term first = loss_body<Op>::first(k, x...);
  if ((!is_regular(first.value) || first.value == 0) && first.error == 0) return {narrow<T>(first.value), true};
  if constexpr (has_parts<Op>) {
    double in[] = {x...};
    std::int64_t power = 0;
    if constexpr (has_factors<Op>) {
      if (is_undecided_sign(first)) {  // with a factor of 1 for it, and beyond the format's range
        power = first.value == 0 ? -20000 : 20000;
        for (int i = 0; i < static_cast<int>(sizeof...(X)); ++i) {
          const bool bare = loss_body<Op>::is_factor(i) && (in[i] == 0 || !is_regular(in[i]));
          if (bare) in[i] = (bits_of(in[i]) >> 63) != 0 ? -1.0 : 1.0;
        }
      }
    }
    return decide_by_levels_to<Limbs>(parts_attempt<T, Op>{k, in, power}, last_tier_bits);
  } else {
    return round_formula<T, loss_limbs>(loss_body<Op>::template exact<ball<loss_limbs>>(k, x...));
  }
}

// ---- a sum

struct loss_sum : measured_sum {
  double error = 0;

  REPDL_HD void add(loss_term x) {
    add_term(x.value);
    error += x.error;
  }
  REPDL_HD void add(const dd_ball<double>& x) {  // of binary64
    add_term(x.hi);
    lo += x.lo;
    error += x.error;
  }
  REPDL_HD void merge(const loss_sum& o) {
    measured_sum::merge(o);
    error += o.error;
  }
};
// Adds an element of a sum.
template <class Op, class T, class... X>
REPDL_HD void add_loss(loss_sum& s, const loss_constants& k, X... x) {
  if constexpr (is_wide_loss<T>) {
    if constexpr (has_specials<Op>) {
      if (is_special_loss<Op>(k, x...)) return s.add(dd_ball<double>{special_loss<Op>(k, x...), 0.0, 0.0});
    }
    if constexpr (has_factors<Op>) {
      double in[] = {x...};
      if (replace_bare_factors<Op>(in, sizeof...(X)) == bare_factors::zero) return;
    }
    s.add(wide_loss<Op>(k, x...));
  } else {
    s.add(first_summand<Op>(k, x...));
  }
}
// RN(sum / count) of a tree of at most that height. Binary64: an element's lo, at most u of hi, is added to the errors, as that of a
// product (wide_compensated_bound); where an operand is not finite, or anything overflows, hi or an error is not finite.
template <class T>
requires is_wide_loss<T> REPDL_HD decided_value<T> certify_total(const loss_sum& c, std::int64_t height,
                                                                 const loss_constants& k) {
  const dd s = two_sum(c.hi, c.lo);
  const double e = wide_compensated_bound(height, c.magnitude, 0) + 2 * c.error;
  if (!(e < 0x1p900) || !is_in_middle(s.hi) || k.force != 0) return {0.0, false};
  return k.n == 1 ? certify<double>(s, e) : certify_mean<double>(s, e, k.n);
}
template <class T>
requires(!is_wide_loss<T>) REPDL_HD decided_value<T> certify_total(const loss_sum& c, std::int64_t height,
                                                                   const loss_constants& k) {
  if (!is_regular(c.hi)) return {narrow<T>(c.hi), c.hi != c.hi || c.error < infinity};
  const double s = (c.hi + c.lo) + 0.0;
  const double e = rounded_compensated_bound(height, c.magnitude, 4) + 2 * c.error;
  const T low = narrow<T>(divide_to_odd(s - e, k.count));
  const T high = narrow<T>(divide_to_odd(s + e, k.count));
  return {low, to_bits(low) == to_bits(high) && k.force == 0};
}
// Parts of binary64, and operands of which there are none.
template <int L>
struct wide_loss_parts {
  loss_parts<L> finite;
  special_terms special;

  REPDL_HD void merge(const wide_loss_parts& o) {
    finite.merge(o.finite);
    special.merge(o.special);
  }
};
template <class T, int L>
using parts_sum = std::conditional_t<is_wide_loss<T>, wide_loss_parts<L>, loss_parts<L>>;
template <class Op, int L, class... X>
REPDL_HD void add_parts(loss_parts<L>& sum, const loss_constants& k, X... x) {
  sum.merge(summand_parts<Op, L>(k, x...));
}
template <class Op, int L, class... X>
REPDL_HD void add_parts(wide_loss_parts<L>& sum, const loss_constants& k, X... x) {
  if (is_special_loss<Op>(k, x...)) return sum.special.add(special_loss<Op>(k, x...));
  double in[] = {x...};
  const bare_factors bare = replace_bare_factors<Op>(in, sizeof...(X));
  if (bare == bare_factors::zero) return;
  loss_parts<L> p = loss_body<Op>::template parts<L>(k, in);
  if (bare == bare_factors::infinite) {
    const int sign = sign_of_parts(p);
    if (sign == 1 || sign == -1) return sum.special.add(sign * infinity);
    p.value.radius = unknown();
  }
  sum.finite.merge(p);
}
template <class T, class Op>
inline constexpr bool groups_keys = has_keys<Op> && !(is_wide_loss<T> && has_product_keys<Op>);
template <class Op, class T, class... X>
void add_to_groups(key_groups& sum, const loss_constants& k, X... x) {
  if constexpr (is_wide_loss<T>) {
    double in[] = {x...};
    const bool special = is_special_loss<Op>(k, x...);
    const bare_factors bare = replace_bare_factors<Op>(in, sizeof...(X));
    if (special ? special_loss<Op>(k, x...) == 0 : bare == bare_factors::zero) return;
    sum.complete = sum.complete && !special && bare == bare_factors::none;
    if (sum.complete) sum.add_number<Op>(k, in);
  } else {
    sum.add<Op>(k, x...);
  }
}
template <class T, int L>
REPDL_HD decided_value<T> round_parts(const wide_loss_parts<L>& p, std::int64_t n) {
  if (p.special.any() && p.finite.value.radius.exponent < (std::int64_t{1} << 39))
    return {p.special.template value<T>(), true};
  return round_parts<T, L>(p.finite, n);
}
template <class T>
using exact_loss_sum = std::conditional_t<is_wide_loss<T>, wide_loss_sum, distance_sum>;
template <class Op, class T>
requires(!is_wide_loss<T>) REPDL_HD void add_exactly(distance_sum& s, const loss_constants& k, T x, T t) {
  const float a = widen_to_float(x);
  const float b = widen_to_float(t);
  if (loss_body<Op>::is_quadratic(k, widen(x), widen(t))) {
    s.add_square(a, b);
  } else {
    s.add_length(a, b);
  }
}
template <class Op, class T>
REPDL_HD_CALL decided_value<T> exact_total(const distance_sum& s, const loss_constants& k) {
  return round_formula<T, loss_limbs>(loss_body<Op>::total(k, s));
}
template <class Op, class T>
REPDL_HD decided_value<T> exact_total(const wide_loss_sum& s, const loss_constants& k) {
  return {s.round(loss_body<Op>::scale(k), k.n), true};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
