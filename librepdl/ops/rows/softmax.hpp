// The softmax family: softmax, log_softmax, logsumexp, cross_entropy and their backward operations, as rules (rule.hpp).
//
// Method: with M the greatest element of a row and d_j = x_j - M <= 0 the gaps,
//     sum_j e^(x_j) = e^M (count + rest),   count = the number of d_j = 0,   rest = sum over d_j < 0 of e^(d_j),
// S = count + rest >= 1, and with R = ln S
//     softmax_i = e^(d_i) / S,   log_softmax_i = d_i - R,   logsumexp = M + R,   cross entropy = -d_t + R.
// count and rest are kept apart: S - 1 has a relative error bound, and so has R, however small it is. The gaps stay
// exact (two binary64 numbers), so the sum of a gap and an R far below its last bit is still rounded correctly: that is
// how the near-ties of log_softmax, such as the row (2^27, -8), are decided here.
//
// The gap in binary64: fl(x_j - M) is off by u|d_j| at most, and by nothing where the difference is a binary64 number.
// Gaps below -600 are cut to -600. In the sums the cut adds less than n e^-600 < 2^-810 absolutely; in an output a
// weight below e^-600, times |g| < 2^128, is below 2^-150 either way.
//
// Sums: e^(d_j)'s relative error is (5.1 + |d_j|) u. With q_j = e^(d_j) / rest, sum q_j |d_j| = H(q) - ln rest, H <= ln
// n the entropy. With additions over a tree of height h:
//     rest: (5.1 + h + ln n + max(0, -ln rest)) u (1 + tiny)      =: e_rest
//     S:    (5.1 + h + ln n + 1) u (1 + tiny)                     (the same with S >= 1 for rest)
//     R:    e_rest + 8 u:   dR/R = (rest / (S ln S)) (d rest / rest), the first factor <= 1; 8 u: fast_log
// where rest < 2^-700: see row_logarithm.
#pragma once

#include "librepdl/ops/rows/exponential_sum.hpp"
#include "librepdl/ops/rows/rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// The lines of the bounds, in u.
struct row_errors {
  static constexpr double exponential = 5.1;     // e^d: fast_exp
  static constexpr double least_sum = 1.0;       // S >= 1: max(0, -ln rest) weighted by rest / S
  static constexpr double second_order = 0.9;    // the (1 + tiny) of all lines
  static constexpr double roundings = 16.0;      // of an element: the templates below use at most 8
  static constexpr double gap = 64.0;            // half an ulp of |d_i| < 2^7: softmax is +0 below -104 - ln S
  static constexpr double gradient_gap = 128.0;  // of |d_i| < 2^8: |g| < 2^128 shifts that to -193
  static constexpr double logarithm = 8.0;       // fast_log
  static constexpr double ends = 16.0;           // for gap_ends below, which needs 4

  static constexpr double sum = exponential + least_sum + second_order;      // of S; and its height, and ln n
  static constexpr double element = exponential + second_order + roundings;  // of an element, besides S and the gap
};

inline row_bounds bounds_of_rows(std::int64_t length, std::int64_t height, std::int64_t tracked_height, bool gradient) {
  int bits = 1;  // ln n <= 0.7 bits
  while (bits < 62 && (length >> bits) != 0) ++bits;
  using E = row_errors;
  const double sum = E::sum + static_cast<double>(height) + 0.7 * static_cast<double>(bits);
  return {(sum + E::element + (gradient ? E::gradient_gap : E::gap)) * 0x1p-53,
          (sum + (E::logarithm + E::ends)) * 0x1p-53, static_cast<double>(2 * tracked_height + 4) * 0x1p-53, 0};
}

// R and the half-width f of an interval that holds it, or something that rounds as it does.
// rest < 2^-700 (cut gaps may be in it): 0 < R < 2^-699. R is then added to a gap, or to M: multiples of 2^-149. All
// sums of such a number and any number in (0, 2^-150) round alike, so R = 2^-700 stands for it and f = 0. Otherwise the
// cut changes rest by less than 2^-110 of itself.
template <class R>
struct row_logarithm {
  R value;
  R slack;
  R relative;  // slack as a part of value
};
template <class R>
REPDL_HD row_logarithm<R> logarithm_of_row(R count, R rest, double bound) {
  using M = math<R>;
  const auto r = fast_log(count, rest);
  // -ln rest <= 0.7 (1023 - biased exponent of rest)
  const auto exponent = M::from_bits((M::to_bits(rest) >> 52) | 0x4330000000000000) - 0x1p52;
  const auto deep = (1023.0 - exponent) * (0.7 * 0x1p-53);
  const auto zero = M::all(0.0);
  const auto e = bound + (deep > 0.0 ? deep : zero);
  const auto tiny = M::all(0x1p-700);
  const auto small = rest > 0.0 ? tiny : zero;
  const auto is_small = (count < 2.0 ? rest : count) < 0x1p-700;
  return {is_small ? small : r, is_small ? zero : r * e, is_small ? zero : e};
}

// hi + t rounded to odd, so that one rounding more makes RN(hi + t) of it, for any hi and t.
template <class R>
REPDL_HD R odd_sum(R hi, R t) {
  using M = math<R>;
  const auto s = two_sum(hi, t);
  const auto sb = M::to_bits(s.hi);
  const auto one = M::from_bits((sb & 0) + 1);
  const auto none = M::from_bits(sb & 0);
  const auto inexact = M::to_bits(magnitude_of(s.lo) > 0.0 ? one : none);
  return M::from_bits((sb - (((M::to_bits(s.lo) ^ sb) >> 63) & inexact)) | inexact);
}

// (a - b) - R at both ends of R's interval; a, b binary32 values.
// a - b = hi + lo exactly. t = lo - (R +- g), g >= f + 2u(|lo| + R) (the 2uR is part of f): then fl(t) is beyond the
// true end as long as lo != 0 or R's own interval covers the rounding, u|t| <= u(|lo| + R + g). lo = 0: t = -(R +- f)
// exactly but for that rounding, and t = 0 only if R = 0.
template <class R>
REPDL_HD ends<R> gap_ends(R a, R b, R r, R f) {
  const auto d = two_sum(a, -b);
  const auto g = f + 0x1p-51 * magnitude_of(d.lo);
  return {odd_sum(d.hi, d.lo - (r + g)), odd_sum(d.hi, d.lo - (r - g))};
}

// The same in a third of the operations, for a <= b, a = -inf included, and r >= 0: leaves gaps undecided whose own value is a midpoint
// and whose r is below their last bit. Nothing cancels: |a - b|, r <= |v| (1 + 2u), two roundings and those of the ends
// are below 8u|v|, as f <= r.
template <class R>
REPDL_HD ends<R> quick_gap_ends(R a, R b, R r, R f) {
  using M = math<R>;
  const auto v = (a - b) - r;
  return {M::muladd(v, M::all(1 + 0x1p-50), -f), M::muladd(v, M::all(1 - 0x1p-50), f)};
}

// y (g - P) at both ends, P = hi + lo +- e (the sum of g_j y_j).
// g - hi = z + zl exactly; w = z + ((zl - lo) -+ f), its two additions and the product with y are off by u each: 4u of
// |z|, |zl|, |lo| cover them. All exact and e = 0: f is 4u|z|, and 0 where z is: an exact zero is decided, with its
// sign (the sum +0).
template <class R>
REPDL_HD ends<R> softmax_gradient(R g, R y, R hi, R lo, R e) {
  const auto z = two_sum(g, -hi);
  const auto t = z.lo - lo;
  const auto f = (e + 0x1p-51 * (magnitude_of(z.hi) + magnitude_of(z.lo) + magnitude_of(lo))) * (1 + 0x1p-40);
  return {y * ((z.hi + (t - f)) + 0.0), y * ((z.hi + (t + f)) + 0.0)};
}

// g - e^y G at both ends, G = hi + lo +- e. y: cut to |y| <= 600 (e^-600 |G| >= 2^-1015 if G != 0, e^600 |G| >
// 2^128: both ends round as the exact value does); `weight` = e^y, or 0 for y = -inf.
// Relative errors of e^y G: 5.1u, hi + lo u, the product u, below 16u; the difference u.
template <class R>
REPDL_HD ends<R> log_softmax_gradient(R g, R weight, R hi, R lo, R e) {
  const auto product = weight * (hi + lo);
  const auto v = (g - product) + 0.0;
  const auto f = (weight * e + 0x1p-49 * magnitude_of(product) + 0x1p-51 * magnitude_of(v)) * (1 + 0x1p-40);
  return {v - f, v + f};
}

// -------------------------------------------------------------------------------------------- weights, their sums

// The gap cut at -600, NaN too.
template <class R>
REPDL_HD R cut_gap(R x, R max) {
  if constexpr (on_device) {
    // A gap is +0 or negative, so its upper half orders as an unsigned number (-600 is 0xc082c000 00000000; what is left of the lower
    // one moves the cut by less than 2^-11).
    const R d = x - max;
    return with_upper_half(d, lesser(upper_half(d), 0xc082c000u));
  } else {
    return row_math<R>::larger(x - max, math<R>::all(least_gap));
  }
}

// rest and count of a row.
template <class R>
struct row_weights {
  R rest;
  R count;
};
// Of a part of a row, or of parts of rows side by side. Not Separate: rest has all (-inf counts as the least gap), count is 0.
template <class R, bool Separate>
struct weight_sums {
  R rest{};
  typename row_math<R>::tally count{};

  REPDL_HD void add(const R* at, R max, R weight) {
    const R x = at[0];
    const R zero = math<R>::all(0.0);
    const typename row_math<R>::tally none{};
    count += x >= max ? none + 1 : none;
    const R below = x < max ? weight : zero;
    rest += x > -infinity ? below : zero;
  }
  REPDL_HD void merge(const weight_sums& o) {
    rest += o.rest;
    count += o.count;
  }
  REPDL_HD row_weights<R> of_row() const { return {rest, row_math<R>::of_tally(count)}; }
  weight_sums<double, Separate> lane(int l) const { return {rest[l], static_cast<row_math<double>::tally>(count[l])}; }
};
template <class R>
struct weight_sums<R, false> {
  R rest{};

  REPDL_HD void add(const R*, R, R weight) { rest += weight; }
  REPDL_HD void merge(const weight_sums& o) { rest += o.rest; }
  REPDL_HD row_weights<R> of_row() const { return {rest, math<R>::all(0.0)}; }
  weight_sums<double, false> lane(int l) const { return {rest[l]}; }
};
// Of all parts of a row.
struct weight_total {
  dd rest{};
  double count = 0;

  template <bool Separate>
  REPDL_HD void join(const weight_sums<double, Separate>& s) {
    const row_weights<double> w = s.of_row();
    rest = num::add(rest, w.rest);
    count += w.count;
  }
  REPDL_HD void join(const weight_total& o) {
    rest = num::add(rest, o.rest);
    count += o.count;
  }
  template <class R>
  REPDL_HD row_weights<R> of_row() const {
    return {math<R>::all(rest.hi), math<R>::all(count)};
  }
};

// f = g / n / S, within a relative bound. A bound of 1 or more: nothing is to be decided.
template <class R>
struct weight_factor {
  R low;
  R high;

  // Of a row with this S.
  REPDL_HD static weight_factor of(R f, double bound, R) {
    using M = math<R>;
    const R least = M::all(-infinity);
    const R most = M::all(infinity);
    if (!(bound < 1)) return {least, most};
    const auto known = magnitude_of(f) < infinity;
    return {known ? f * (1 - bound) : least, known ? f * (1 + bound) : most};
  }
  // e f; `gap`: the u that the bound has for the greatest gap.
  REPDL_HD ends<R> times(R e, double) const { return {e * low, e * high}; }
  // The same at the least cost.
  template <class T>
  REPDL_HD verdict<R> product(R e) const {
    return verdict_of<T>(times(e, 0));
  }
};

// R beside a gap.
template <class R>
struct logarithm_numbers {
  R max;
  row_logarithm<R> log;

  REPDL_HD static logarithm_numbers of(R max, const row_logarithm<R>& log) { return {max, log}; }
  // An element of log_softmax: (x - max) - R.
  template <class T>
  REPDL_HD verdict<R> element(R x) const {
    return verdict_of<T>(quick_gap_ends<R>(x, max, log.value, log.slack));
  }
};

// ------------------------------------------------------------------------------------- softmax and gradients of its kind

struct exponential_rule : plain_rule {
  static constexpr row_look look = row_look::greatest;
  static constexpr bool has_exponential = true;
  template <class R, class Exponential = plain_exponential>
  REPDL_HD static R term(const R* x, R max, const Exponential& exponential = {}) {
    return exponential(cut_gap(x[0], max));
  }
  template <class A>
  using late = exponential_sum<A>;
};

// g (p - t) / n. Target: cross_entropy_backward, where the target's t is 1 and rows may be ignored.
template <bool Scaled, bool Target>
struct weight_rule : exponential_rule {
  static constexpr row_inputs inputs = {{Scaled ? 1 : 0}, Scaled ? 0 : -1, Target ? 2 : -1};
  static constexpr bool keeps_term = true;
  static constexpr bool has_exception = Target;
  static row_bounds bounds(std::int64_t length, std::int64_t height, std::int64_t tracked) {
    return bounds_of_rows(length, height, tracked, Scaled);
  }

  REPDL_HD static row_class classify(const row_call& c, const row_operands& o, float top) {
    if (o.ignored) return {true, 0.0f};
    const bool valid = !Target || o.has_target(c.length);
    const bool regular = valid && magnitude_of(static_cast<double>(top)) < infinity;
    return {!regular, float_of(canonical_nan_f32)};
  }
  template <class R>
  using sums = weight_sums<R, Target>;
  using total = weight_total;
  template <class R>
  using numbers = weight_factor<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R, const row_weights<R>& s) {
    const R sum = s.count + s.rest;
    return numbers<R>::of((Scaled ? Target ? own.g / static_cast<double>(c.n) : own.g : math<R>::all(1.0)) / sum,
                          c.bounds.weight, sum);
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R*, R weight) {
    return r.template product<T>(weight);
  }
  template <class T, class R>
  REPDL_HD static verdict<R> careful(const numbers<R>& r, const R*, R weight) {
    return verdict_of<T>(r.times(weight, Scaled ? row_errors::gradient_gap : row_errors::gap));
  }
  // The target: g / n (p - 1) = -(g / n)(S - e^d) / S. S - e^d is rest, or at least S / 2: three times the bound, and 2^-43 for the
  // gaps in a rest made of small weights.
  REPDL_HD static ends<double> exception(const row_call& c, const row_operands& o, double max,
                                         const row_weights<double>& s) {
    const double x = static_cast<double>(o.at_target);
    const double w = x == -infinity ? 0.0 : fast_exp(cut_gap(x, max));
    const double z = x == max ? (s.count - 1) + s.rest : (s.count + s.rest) - w;
    const double g = static_cast<double>(o.g);
    if (!is_finite(g)) return anything<double>();
    if (z == 0) return {0 * g, 0 * g};  // the only finite element: 1 - 1
    const double v = -(z / (s.count + s.rest)) * (g / static_cast<double>(c.n));
    if (v == 0) return c.bounds.weight < 1 ? ends<double>{v, v} : anything<double>();
    const double e = (4 * c.bounds.weight + 0x1p-43) * magnitude_of(v);
    return {v - e, v + e};
  }
  // A g that is infinite or NaN, by the formula's tree: inf times a p, or p - 1, of exactly 0 is NaN.
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s,
                                   const float* at, int what) {
    const float x = at[0];
    const bool target = what == 1;
    if (!is_finite(static_cast<double>(o.g))) {
      const bool absent = x == -static_cast<float>(infinity);
      const bool zero = target ? !absent && s.is_single() : absent;
      return {canonical(zero ? float_of(canonical_nan_f32) : target ? -o.g : o.g), true};
    }
    return exact_scaled_gradient(to, s, x, o.g, c.n, target);
  }
};
template <>
struct row_rule<ops::op_id::softmax> : weight_rule<false, false> {};
template <>
struct row_rule<ops::op_id::logsumexp_backward> : weight_rule<true, false> {};
template <>
struct row_rule<ops::op_id::cross_entropy_backward> : weight_rule<true, true> {};

// ------------------------------------------------------------------------------------------------------------ logarithms

template <bool Target>
struct logarithm_rule : exponential_rule {
  static constexpr row_inputs inputs = {{0}, -1, Target ? 1 : -1};
  static row_bounds bounds(std::int64_t length, std::int64_t height, std::int64_t tracked) {
    return bounds_of_rows(length, height, tracked, false);
  }
  template <class R>
  using sums = weight_sums<R, true>;
  using total = weight_total;
  template <class R>
  using numbers = logarithm_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>&, R max, const row_weights<R>& s) {
    const double bound = c.bounds.logarithm;
    row_logarithm<R> log = logarithm_of_row(s.count, s.rest, bound);
    if (!(bound < 1)) log.slack = log.relative = math<R>::all(infinity);
    return numbers<R>::of(max, log);
  }
  // (max - at) + R
  template <class R>
  REPDL_HD static ends<R> result(const row_call&, const numbers<R>& r, R at, int) {
    return gap_ends<R>(r.max, at, -r.log.value, r.log.slack);
  }
};

template <>
struct row_rule<ops::op_id::log_softmax> : logarithm_rule<false> {
  static constexpr bool is_costly = true;
  REPDL_HD static row_class classify(const row_call&, const row_operands&, float top) {
    return {!(magnitude_of(static_cast<double>(top)) < infinity), float_of(canonical_nan_f32)};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    return r.template element<T>(x[0]);
  }
  // Rows in which a gap is a midpoint and R far below its last bit are rare.
  template <class T, class R>
  REPDL_HD static verdict<R> careful(const numbers<R>& r, const R* x, R) {
    const verdict<R> v = verdict_of<T>(gap_ends<R>(x[0], r.max, r.log.value, r.log.slack));
    const auto s = math<R>::to_float(x[0]);
    const auto absent = s == -__builtin_inff();
    const auto never = static_cast<typename row_math<R>::mask>(v.undecided & 0);
    return {absent ? s : v.value, absent ? never : v.undecided};
  }
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call&, const row_operands&, const late<A>& s, const float* x,
                                   int) {
    return exact_log_softmax(to, s, x[0]);
  }
};
template <>
struct row_rule<ops::op_id::logsumexp> : logarithm_rule<false> {
  static constexpr bool per_element = false;
  static constexpr int results = 1;
  REPDL_HD static row_class classify(const row_call&, const row_operands&, float top) {
    return {!(magnitude_of(static_cast<double>(top)) < infinity), canonical(top)};
  }
  REPDL_HD static float counterpart(const row_operands&, int) { return -0.0f; }
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call&, const row_operands&, const late<A>& s, const float*,
                                   int) {
    return exact_logsumexp(to, s);
  }
};

// A row's part of a mean or sum: gap + log, within slack.
template <class R>
struct loss_part {
  double_word<R> gap;
  R log;
  R slack;
};
template <>
struct row_rule<ops::op_id::cross_entropy> : logarithm_rule<true> {
  static constexpr bool per_element = false;
  static constexpr int results = 1;
  REPDL_HD static row_class classify(const row_call& c, const row_operands& o, float top) {
    if (o.ignored) return {true, 0.0f};
    if (!o.has_target(c.length) || !(magnitude_of(static_cast<double>(top)) < infinity))
      return {true, float_of(canonical_nan_f32)};
    const auto inf = static_cast<float>(infinity);
    return {o.at_target == -inf, inf};
  }
  REPDL_HD static float counterpart(const row_operands& o, int) { return o.at_target; }
  // The stand-in for a tiny R is only good for one gap: here it counts as R +- 2^-690.
  template <class R>
  REPDL_HD static loss_part<R> part(const numbers<R>& r, R at_target) {
    using M = math<R>;
    const R tiny = r.log.value == 0.0 ? M::all(0.0) : M::all(0x1p-690);
    return {two_sum(r.max, -at_target), r.log.value, r.log.slack + tiny};
  }
  template <class A>
  using late_total = cross_entropy_total<A>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call&, const row_operands& o, const late<A>& s, const float*,
                                   int) {
    return exact_cross_entropy(to, s, o.at_target);
  }
};

// ------------------------------------------------------------------------------------------------- gradients from outputs

// The exact sum of g y or of g, and the plain one, which is what the sum is where it is not finite.
template <class A, bool Products>
struct gradient_sum {
  exact_accumulator<float, Products ? 2 : 1> exact;
  double plain = 0;

  REPDL_HD void start(double) {}
  REPDL_HD void add(double x, double y) {
    const double term = Products ? x * y : x;
    plain += term;
    if (!is_finite(term)) return;
    if constexpr (Products) {
      exact.add_product(static_cast<float>(x), static_cast<float>(y));
    } else {
      exact.add(static_cast<float>(x));
    }
  }
  REPDL_HD void merge(const gradient_sum& o) {
    exact.merge(o.exact);
    plain += o.plain;
  }
  REPDL_HD exact_form<A> sum(std::int64_t) const {
    constexpr int limbs = Products ? 16 : sizeof(exact_form<A>::middle.limb) / 8;
    return arithmetic<exact_form<A>>::of_limbs(limbs_of_sum<limbs>(exact));
  }
};
template <class R, bool Products>
struct gradient_sum<wide<R>, Products> {
  wide_sum<R> terms;
  R plain{};

  REPDL_HD void start(R) {}
  REPDL_HD void add(R x, R y) {
    const R term = Products ? x * y : x;
    plain += term;
    terms.add(term);
  }
  REPDL_HD void merge(const gradient_sum& o) {
    terms.merge(o.terms);
    plain += o.plain;
  }
  REPDL_HD wide<R> sum(std::int64_t n) const { return terms.total(n); }
  gradient_sum<wide<double>, Products> lane(int l) const { return {num::lane(terms, l), plain[l]}; }
};

template <class R>
struct gradient_terms {
  tracked_sum<R> sum;

  REPDL_HD void add(const R*, R, R term) { sum.add(term); }
  REPDL_HD void merge(const gradient_terms& o) { sum.merge(o.sum); }
  REPDL_HD const tracked_sum<R>& of_row() const { return sum; }
  gradient_terms<double> lane(int l) const { return {{sum.hi[l], sum.lo[l], sum.error[l]}}; }
};
struct gradient_total {
  tracked_sum<double> sum;

  REPDL_HD void join(const gradient_terms<double>& s) { sum.merge(s.sum); }
  REPDL_HD void join(const gradient_total& o) { sum.merge(o.sum); }
  template <class R>
  REPDL_HD tracked_sum<R> of_row() const {
    return {math<R>::all(sum.hi), math<R>::all(sum.lo), math<R>::all(sum.error)};
  }
};
// x = g, y = the outputs.
template <bool Products>
struct gradient_rule : plain_rule {
  static constexpr row_inputs inputs = {{0, 1}};
  static constexpr int summed = 2;
  static constexpr int required = 2;
  static row_bounds bounds(std::int64_t length, std::int64_t height, std::int64_t tracked) {
    return bounds_of_rows(length, height, tracked, false);
  }
  template <class R>
  using sums = gradient_terms<R>;
  using total = gradient_total;
  template <class R>
  REPDL_HD static R term(const R* x, R) {
    return Products ? x[0] * x[1] : x[0];
  }
  template <class R>
  struct numbers {
    R hi, lo, slack;
  };
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>&, R, const tracked_sum<R>& s) {
    const double bound = c.bounds.tracked;
    return {s.hi, s.lo, bound < 1 ? bound * s.error : math<R>::all(infinity)};
  }
  template <class A>
  using late = gradient_sum<A, Products>;
};
template <>
struct row_rule<ops::op_id::softmax_backward> : gradient_rule<true> {
  static constexpr int exact_limbs = 16;
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    return verdict_of<T>(softmax_gradient<R>(x[0], x[1], r.hi, r.lo, r.slack));
  }
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands&, const late<A>& s, const float* x,
                                   int) {
    const float g = x[0];
    const float y = x[1];
    if (!is_finite(s.plain)) {
      return {canonical(static_cast<float>(static_cast<double>(y) * (static_cast<double>(g) - s.plain))), true};
    }
    return exact_softmax_backward(to, g, y, s.sum(c.length));
  }
};
template <>
struct row_rule<ops::op_id::log_softmax_backward> : gradient_rule<false> {
  static constexpr bool is_costly = true;
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    using M = math<R>;
    const R g = x[0];
    const R y = x[1];
    const R zero = M::all(0.0);
    const R least = row_math<R>::larger(y, M::all(least_gap));
    R w = fast_exp(least < -least_gap ? least : M::all(-least_gap));
    w = y > -infinity ? w : zero;
    const R none = y < infinity ? zero : M::all(infinity);  // +inf and NaN: a formula of their own
    return verdict_of<T>(log_softmax_gradient<R>(g, w, r.hi, r.lo, r.slack + none));
  }
  // e^y is NaN, infinite, 0, or some positive number: only its kind matters beside an infinite sum, and only the sum's sign beside an
  // infinite e^y.
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands&, const late<A>& s, const float* x,
                                   int) {
    const float g = x[0];
    const float y = x[1];
    const auto inf = static_cast<float>(infinity);
    const bool finite = is_finite(s.plain);
    if (finite && y < inf) return exact_log_softmax_backward<A>(to, g, y, s.sum(c.length));
    const int sign = finite ? sign_in(s.sum(c.length)) : 0;
    const double total = finite ? static_cast<double>(sign) : s.plain;
    const double weight = y != y ? double_of(format<double>::nan) : y == inf ? infinity : y == -inf ? 0.0 : 1.0;
    return {canonical(static_cast<float>((static_cast<double>(g) - weight * total) + 0.0)), sign != 2};
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
