// cross_entropy with class weights w, label smoothing s, or probabilities p, and its gradient, as rules (rule.hpp).
//
// Notation: C classes, M the greatest element of a row, k of its elements equal to M, rest as in softmax.hpp, L = M + R = M + ln(k +
// rest). With
//     a_c = w_c ((1 - s) p_c + s / C),   of targets: (1 - s) w_t (c = t) + w_c s / C,   A = sum a_c,   G = sum a_c (M - x_c)
// a row's loss is sum a_c (L - x_c) = A R + G, and its gradient g (A softmax_i - a_i). A term whose a_c is 0 is absent, so x_c = -inf
// adds nothing there, and is infinite elsewhere. n: the rows, or of targets the sum of w_t.
//
// Binary64, u = 2^-53. Weights and probabilities that are below 0 make a row's sums NaN: its outputs are undecided. Of others no sum cancels:
// a term of A errs by less than 6u of itself, one of G by 8u, h additions by h u: bounds.sum = (h + 24) u, with what A R + G, its
// division and the ends round. R errs as in softmax.hpp, but the stand-in for a tiny R is good for one gap only: here it counts as
// R +- 2^-690. Elements: A e^d / S by the bound of softmax and that of A; a_i by 4u. e^d of a gap cut at -600 is off by less than 2^-860.
//
// Late. Times C all that is rational is exact in 1024 bits: C a_c = w_c (C (1 - s) p_c + s), s >= 2^-64 a multiple of 2^-116, so that
// C G has bits from 2^-564 to 2^460 at the most. Every output is
//     (X + a f) / D,   X, a, D exact, f = 0 or transcendental and positive:
//     the loss            X = C G,                 a = C A,      f = R,              D = C n
//     gradient, x_i = M   X = g (C A - k C a_i),   a = -g C A,   f = rest / S,       D = k C n
//               x_i < M   X = -g C a_i,            a = g C A,    f = e^(x_i - M) / S,   D = C n
// (A / S - a_i = (A - k a_i) / k - A rest / (k S)). f = 0: a quotient, which comes out exact where it is a midpoint. Otherwise it is
// irrational for a != 0 (Lindemann-Weierstrass, exponential_sum.hpp), and more bits of f decide, but where f is smaller than any number
// of bits shows. Boundaries b are multiples of 2^-150, so X - b D is a multiple of 2^m, m the lowest bit of X and of 2^-150 D: every
// a f below 2^m in magnitude rounds alike, and +-2^(m - 1) stands for it. (X and 2^(m - 1) that are further apart than 1024 bits, which
// takes weights and probabilities from one end of binary32 to the other in one row, may be undecided.)
//
// Sums over rows: X and a f are added up. Rows with A of both signs (weights below 0) may cancel exactly, which is undecided.
#pragma once

#include "librepdl/ops/rows/softmax.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// --------------------------------------------------------------------------------------------------------- binary64

template <class R>
struct blended_row {
  R rest, count;
  R finite;                  // elements that are not -inf
  R weights, weighted_gaps;  // sums of w, w (M - x), of those
  R products, product_gaps;  // of w p, w p (M - x); infinite where one is of -inf
};
template <class R>
struct blended_sums {
  using tally = typename row_math<R>::tally;
  R rest{};
  tally count{}, finite{};
  R weights{}, weighted_gaps{}, products{}, product_gaps{};

  REPDL_HD void add(const R* at, R max, R weight) {
    using M = math<R>;
    weight_sums<R, true> exponentials{rest, count};
    exponentials.add(at, max, weight);
    rest = exponentials.rest;
    count = exponentials.count;
    const R zero = M::all(0.0);
    const R unknown = M::all(double_of(format<double>::nan));
    const tally none{};
    const auto present = at[0] > -infinity;
    const R gap = max - at[0];
    const R w = at[1] >= 0.0 ? at[1] : unknown;
    const R p = at[2] >= 0.0 ? at[2] : unknown;
    const R q = w * p;
    finite += present ? none + 1 : none;
    weights += present ? w : zero;
    weighted_gaps += present ? w * gap : zero;
    products += q;
    product_gaps += q > 0.0 ? q * gap : q;
  }
  REPDL_HD void merge(const blended_sums& o) {
    rest += o.rest;
    count += o.count;
    finite += o.finite;
    weights += o.weights;
    weighted_gaps += o.weighted_gaps;
    products += o.products;
    product_gaps += o.product_gaps;
  }
  REPDL_HD blended_row<R> of_row() const {
    using M = row_math<R>;
    return {rest, M::of_tally(count), M::of_tally(finite), weights, weighted_gaps, products, product_gaps};
  }
  blended_sums<double> lane(int l) const {
    using of_lane = row_math<double>::tally;
    return {rest[l],
            static_cast<of_lane>(count[l]),
            static_cast<of_lane>(finite[l]),
            weights[l],
            weighted_gaps[l],
            products[l],
            product_gaps[l]};
  }
};
struct blended_total {
  weight_total exponentials;
  double finite = 0;
  double weights = 0, weighted_gaps = 0, products = 0, product_gaps = 0;

  template <class R>
  REPDL_HD void join(const blended_sums<R>& s) {
    exponentials.join(weight_sums<R, true>{s.rest, s.count});
    const blended_row<R> r = s.of_row();
    add(r.finite, r.weights, r.weighted_gaps, r.products, r.product_gaps);
  }
  REPDL_HD void join(const blended_total& o) {
    exponentials.join(o.exponentials);
    add(o.finite, o.weights, o.weighted_gaps, o.products, o.product_gaps);
  }
  template <class R>
  REPDL_HD blended_row<R> of_row() const {
    const auto all = [](double v) { return math<R>::all(v); };
    const row_weights<R> e = exponentials.template of_row<R>();
    return {e.rest, e.count, all(finite), all(weights), all(weighted_gaps), all(products), all(product_gaps)};
  }

 private:
  REPDL_HD void add(double f, double w, double wg, double p, double pg) {
    finite += f;
    weights += w;
    weighted_gaps += wg;
    products += p;
    product_gaps += pg;
  }
};

// 1 - s, s / C.
struct blend {
  double kept;
  double spread;
  REPDL_HD explicit blend(const row_call& c) : kept(1 - c.eps), spread(c.eps / static_cast<double>(c.length)) {}
};
// A, and G without the target's part; kept_weight: (1 - s) w_t, which A has.
template <class R>
struct blended_numbers {
  R max;
  R sum;
  R gaps;
  R kept_weight;
};
template <class R>
REPDL_HD blended_numbers<R> blended(const row_call& c, const row_given<R>& own, R max, const blended_row<R>& s) {
  using M = math<R>;
  const R zero = M::all(0.0);
  const R unknown = M::all(double_of(format<double>::nan));
  const blend b(c);
  blended_numbers<R> r{max, zero, zero, zero};
  if (c.biased) {
    r.sum = b.kept * s.products;
    r.gaps = b.kept == 0 ? zero : b.kept * s.product_gaps;
  } else {
    r.kept_weight = own.weight >= 0.0 ? b.kept * own.weight : unknown;
    r.sum = r.kept_weight;
  }
  if (c.eps != 0) {
    r.sum += s.finite < static_cast<double>(c.length) ? unknown : b.spread * s.weights;
    r.gaps += b.spread * s.weighted_gaps;
  }
  return r;
}

struct blended_rule : exponential_rule {
  static constexpr float absent[most_elements] = {0, 1, 0};
  static constexpr int summed = 3;
  static constexpr bool outside_is_absent = true;
  static row_bounds bounds(std::int64_t length, std::int64_t height, std::int64_t tracked, bool gradient) {
    row_bounds b = bounds_of_rows(length, height, tracked, gradient);
    b.sum = static_cast<double>(height + 24) * 0x1p-53;
    // Half an ulp of |d| < 2^10: with weights, and divided by them, no e^d is too small for an output.
    b.weight += 0x1p-44;
    return b;
  }
  // Without classes there is no term.
  REPDL_HD static row_class classify(const row_call& c, const row_operands& o, float top) {
    if (o.ignored || (c.biased && c.length == 0)) return {true, 0.0f};
    const bool valid = c.biased || o.has_target(c.length);
    return {!(valid && magnitude_of(static_cast<double>(top)) < infinity), float_of(canonical_nan_f32)};
  }
  template <class R>
  using sums = blended_sums<R>;
  using total = blended_total;
};

// ------------------------------------------------------------------------------------------------------------- late

// Of a call, where rational parts are exact: what C a_c is made of.
struct blend_factors {
  double smoothing = 0;
  double classes = 0;
  double probabilities = 0;  // 1: they are given

  blend_factors() = default;
  REPDL_HD explicit blend_factors(const row_call& c)
      : smoothing(c.eps), classes(static_cast<double>(c.length)), probabilities(c.biased ? 1.0 : 0.0) {}
  // Whether elements that are not the target have a part.
  REPDL_HD bool takes_all() const { return smoothing != 0 || probabilities != 0; }
};

// Rational parts: wide numbers, or in 1024 bits whatever f has.
template <class A>
struct rational_form {
  using type = A;
};
template <int L>
struct rational_form<ball<L>> {
  using type = ball<(L < 16 ? 16 : L)>;
};
template <class A>
using rational = typename rational_form<A>::type;
REPDL_HD const wide<double>& to_rational(const wide<double>& a) { return a; }
REPDL_HD bool is_bounded(const wide<double>& a) { return a.error < infinity; }
template <int L>
REPDL_HD bool is_bounded(const ball<L>&) {
  return true;
}
template <int L>
REPDL_HD rational<ball<L>> to_rational(const ball<L>& a) {
  return widen_ball<(L < 16 ? 16 : L)>(a);
}

// C (1 - s), and C a_c of an element but for the target's part; w and p finite. Of wide numbers: products of binary64 numbers and
// kept, which errs by 8u^2, below 2^-100 of themselves.
template <class Q>
struct blend_coefficients;
template <class R>
struct blend_coefficients<wide<R>> {
  REPDL_HD static double_word<R> kept(const blend_factors& b) {
    const dd k = mul(two_sum(1.0, -b.smoothing), b.classes);
    return {math<R>::all(k.hi), math<R>::all(k.lo)};
  }
  REPDL_HD static wide<R> of(const blend_factors& b, R w, R p) {
    wide<R> q{};
    if (b.smoothing != 0) q.value = two_prod(w, math<R>::all(b.smoothing));
    if (b.probabilities == 0) return q;
    const double_word<R> t = mul(kept(b), w * p);
    return num::add(q, wide<R>{t, 0x1p-100 * magnitude_of(t.hi)});
  }
  REPDL_HD static wide<R> of_target(const blend_factors& b, R w) {
    const double_word<R> t = mul(kept(b), w);
    return {t, 0x1p-100 * magnitude_of(t.hi)};
  }
};
template <int L>
struct blend_coefficients<ball<L>> {
  using number = ball<L>;
  REPDL_HD_CALL static number of_target(const blend_factors& b, double w) {
    number q = arithmetic<number>::number(1.0);
    add_value(q, -b.smoothing);
    multiply_by_value(q, b.classes);
    multiply_by_value(q, w);
    return q;
  }
  REPDL_HD_CALL static number of(const blend_factors& b, double w, double p) {
    number q = exact_ball(zero_limbs<L>());
    if (b.probabilities != 0) q = of_target(b, w * p);
    if (b.smoothing == 0) return q;
    number t = arithmetic<number>::number(w);
    multiply_by_value(t, b.smoothing);
    return add(q, t);
  }
};

// Of a row, or of a part: C A and C G without the target's part. Trivially copyable, a multiple of 8 bytes, no padding.
template <class A>
struct blended_sum {
  using number = rational<A>;
  exponential_sum<A> exponentials;
  blend_factors factors;
  number sum, gaps;
  double infinite;  // what elements of -inf add up to
  double bad;       // NaN: a weight or probability is not finite

  REPDL_HD void start(double greatest, const row_call& c) {
    exponentials.start(greatest);
    factors = blend_factors(c);
    sum = gaps = arithmetic<number>::number(0.0);
    infinite = bad = 0;
  }
  REPDL_HD_CALL void add(double x, double w, double p) {
    exponentials.add(x);
    if (!factors.takes_all()) return;
    if (!is_finite(w) || !is_finite(p)) {
      bad = double_of(format<double>::nan);
      return;
    }
    number q = blend_coefficients<number>::of(factors, w, p);
    add_to(sum, q);
    if (x == -infinity) {
      const int sign = sign_in(q);
      if (sign != 0) infinite += sign < 0 ? -infinity : infinity;
      return;
    }
    number gap = arithmetic<number>::number(exponentials.max);
    add_value(gap, -x);
    multiply_by(q, gap);
    add_to(gaps, q);
  }
  REPDL_HD void merge(const blended_sum& o) {
    exponentials.merge(o.exponentials);
    add_to(sum, o.sum);
    add_to(gaps, o.gaps);
    infinite += o.infinite;
    bad += o.bad;
  }
};
// An infinite part of which the sign is not known: then `sum` is not bounded, and nothing is decided.
template <class R>
struct blended_sum<wide<R>> {
  using number = wide<R>;
  exponential_sum<wide<R>> exponentials;
  blend_factors factors;
  number sum, gaps;
  R infinite, bad;

  REPDL_HD void start(R greatest, const row_call& c) {
    exponentials.start(greatest);
    factors = blend_factors(c);
    sum = gaps = number{};
    infinite = bad = R{};
  }
  REPDL_HD void add(R x, R w, R p) {
    using M = math<R>;
    exponentials.add(x);
    if (!factors.takes_all()) return;
    const R zero = M::all(0.0);
    bad += (w - w) + (p - p);
    const number q = blend_coefficients<number>::of(factors, w, p);
    sum = num::add(sum, q);
    const auto absent = x == -infinity;
    const double_word<R> gap = two_sum(exponentials.max, -x);
    const double_word<R> g = mul(q.value, double_word<R>{absent ? zero : gap.hi, absent ? zero : gap.lo});
    gaps = num::add(gaps, number{g, q.error * (magnitude_of(absent ? zero : gap.hi) * (1 + 0x1p-20)) +
                                        0x1p-103 * magnitude_of(g.hi)});
    const R size = q.value.hi;
    const R endless = M::all(infinity);
    const R signed_size = size > 0.0 ? endless : size < 0.0 ? -endless : zero;
    const auto unsure = q.error * (1 + 0x1p-10) >= magnitude_of(size);
    infinite += absent ? signed_size : zero;
    sum.error += absent ? (unsure ? (q.error > 0.0 ? endless : zero) : zero) : zero;
  }
  REPDL_HD void merge(const blended_sum& o) {
    exponentials.merge(o.exponentials);
    sum = num::add(sum, o.sum);
    gaps = num::add(gaps, o.gaps);
    infinite += o.infinite;
    bad += o.bad;
  }
  blended_sum<wide<double>> lane(int l) const {
    return {exponentials.lane(l), factors, num::lane(sum, l), num::lane(gaps, l), infinite[l], bad[l]};
  }
};

// (X + a f) / D
template <class A>
struct blended_quotient {
  using number = rational<A>;
  number exact;        // X
  number product;      // a f
  int sign;            // of every number in it, 0: it is 0; 2: not known
  number denominator;  // D
};
// The lowest bit of an exact number.
template <int L>
REPDL_HD_CALL std::int64_t lowest_bit(const ball<L>& a) {
  std::int64_t bit = 0;
  for (int i = 0; i < L; ++i) {
    if (a.middle.limb[i] == 0) continue;
    bit = 64 * i + 63 - leading_zeros(a.middle.limb[i] & (~a.middle.limb[i] + 1));
    break;
  }
  return a.middle.is_zero() ? std::int64_t{1} << 40 : a.middle.exponent - 64 * L + bit;
}
REPDL_HD void stand_in(blended_quotient<wide<double>>&) {}
template <int L>
REPDL_HD_CALL void stand_in(blended_quotient<ball<L>>& q) {
  const std::int64_t x = lowest_bit(q.exact);
  const std::int64_t d = lowest_bit(q.denominator) - 150;
  const std::int64_t m = x < d ? x : d;
  if (q.sign == 0 || q.sign == 2 || !upper(q.product).below_power(m)) return;
  set_power(q.product, m - 1);
  if (q.sign < 0) q.product = negated(q.product);
}
// Adds a f to X: the sum's sign, 2 if it is not known.
template <class A>
REPDL_HD_CALL int add_product(blended_quotient<A>& q) {
  stand_in(q);
  const bool alone = is_zero(q.exact);
  add_to(q.exact, q.product);
  return alone ? q.sign : sign_in(q.exact);
}
// RN of the quotient, which is used up; an exact zero: of the given sign.
template <class A>
REPDL_HD_CALL certified round_blended(dtype to, blended_quotient<A>& q, bool negative_zero) {
  const int sign = add_product(q);
  if (sign == 0) return {signed_zero(negative_zero), true};
  divide_by(q.exact, q.denominator);
  const certified c = round_to(to, q.exact);
  if (c.value != 0) return c;
  return {signed_zero((sign < 0) != (sign_in(q.denominator) < 0)), c.decided && sign != 2};
}

// C A of a row, with the target's part; NaN or 0.
template <class A>
REPDL_HD rational<A> whole_sum(const blended_sum<A>& s, const row_operands& o) {
  if (s.factors.probabilities != 0 || !is_finite(static_cast<double>(o.weight))) return s.sum;
  return num::add(s.sum, blend_coefficients<rational<A>>::of_target(s.factors, static_cast<double>(o.weight)));
}
REPDL_HD double not_finite(double bad, const row_operands& o, bool probabilities) {
  return probabilities ? bad : bad + 0 * static_cast<double>(o.weight);
}

// A row's C A R and C G; `special` is not 0: what the row's loss is instead.
template <class A>
struct blended_loss {
  rational<A> gaps;
  rational<A> product;
  int sign;  // of product
  double special;
};
template <class A>
REPDL_HD_CALL blended_loss<A> loss_of(const blended_sum<A>& s, const row_operands& o) {
  const bool probabilities = s.factors.probabilities != 0;
  const double bad = not_finite(s.bad, o, probabilities);
  blended_loss<A> r{s.gaps, whole_sum(s, o), 0, s.infinite + bad};
  if (bad != bad) return r;
  if (!probabilities) {
    rational<A> t = blend_coefficients<rational<A>>::of_target(s.factors, static_cast<double>(o.weight));
    const int sign = sign_in(t);
    if (o.at_target == -static_cast<float>(infinity)) {
      if (sign != 0) r.special += sign < 0 ? -infinity : infinity;
    } else {
      rational<A> gap = arithmetic<rational<A>>::number(s.exponentials.max);
      add_value(gap, -static_cast<double>(o.at_target));
      multiply_by(t, gap);
      add_to(r.gaps, t);
    }
  }
  r.sign = s.exponentials.is_single() ? 0 : sign_in(r.product);
  const rational<A> log = to_rational(logarithm_of(s.exponentials));
  if (r.sign == 0) {
    r.product = arithmetic<rational<A>>::number(0.0);
  } else {
    multiply_by(r.product, log);
  }
  return r;
}
// C n.
template <class A>
REPDL_HD_CALL rational<A> blended_divisor(const row_call& c) {
  using number = rational<A>;
  number d = c.weights != nullptr ? arithmetic<number>::of_limbs(limbs_of_sum<sum_accumulator::words>(*c.weights))
                                  : arithmetic<number>::number(static_cast<double>(c.n));
  multiply_by_count(d, c.length);
  return d;
}
// What losses are divided by is a number other than 0.
REPDL_HD bool is_divisor(double total) { return is_finite(total) && total != 0; }

// The sum over rows.
template <class A>
struct blended_total_loss {
  rational<A> gaps;
  rational<A> product;
  double special;
  double signs;  // bits: 1 positive, 2 negative, 4 unknown products; 8: a row of which nothing is known

  REPDL_HD void start() {
    gaps = product = arithmetic<rational<A>>::number(0.0);
    special = signs = 0;
  }
  REPDL_HD_CALL void add_row(const blended_sum<A>& s, const row_operands& o) {
    if (!is_bounded(s.sum)) return note(8);
    const blended_loss<A> l = loss_of(s, o);
    special += l.special;
    if (l.special != 0 || l.special != l.special) return;
    add_to(gaps, l.gaps);
    add_to(product, l.product);
    note(l.sign == 0 ? 0u : l.sign > 0 && l.sign != 2 ? 1u : l.sign < 0 ? 2u : 4u);
  }
  REPDL_HD void merge(const blended_total_loss& o) {
    add_to(gaps, o.gaps);
    add_to(product, o.product);
    special += o.special;
    note(static_cast<unsigned>(o.signs));
  }
  REPDL_HD_CALL certified finish(dtype to, const row_call& c) const {
    const auto known = static_cast<unsigned>(signs);
    if (known >= 8) return {0.0f, false};
    blended_quotient<A> q{gaps, product,
                          known == 0   ? 0
                          : known == 1 ? 1
                          : known == 2 ? -1
                                       : sign_in(product),
                          blended_divisor<A>(c)};
    if (special == 0 && is_divisor(c.total)) return round_blended(to, q, false);
    const int sign = special == 0 && c.total == 0 ? add_product(q) : 0;
    const double v = (special == 0 ? static_cast<double>(sign) : special) / c.total;
    return {canonical(static_cast<float>(v == 0 ? 0.0 : v)), sign != 2};
  }

 private:
  REPDL_HD void note(unsigned s) { signs = static_cast<double>(static_cast<unsigned>(signs) | s); }
};

// ------------------------------------------------------------------------------------------------------------ the rules

// x = logits, weights, probabilities.
template <>
struct row_rule<ops::op_id::cross_entropy_probabilities> : blended_rule {
  static constexpr row_inputs inputs = {{0, 2, 3}, -1, 1};
  static constexpr bool per_element = false;
  static constexpr int results = 1;
  static row_bounds bounds(std::int64_t length, std::int64_t height, std::int64_t tracked) {
    return blended_rule::bounds(length, height, tracked, false);
  }
  template <class R>
  struct numbers {
    blended_numbers<R> row;
    row_logarithm<R> log;
    double bound;
  };
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R max, const blended_row<R>& s) {
    return {blended(c, own, max, s), logarithm_of_row(s.count, s.rest, c.bounds.logarithm), c.bounds.sum};
  }
  // A row's part of the loss: gap + log within slack, which is infinite where binary64 does not know.
  template <class R>
  REPDL_HD static loss_part<R> part(const numbers<R>& r, R at_target) {
    using M = math<R>;
    const R zero = M::all(0.0);
    const R target = r.row.kept_weight == 0.0 ? zero : r.row.kept_weight * (r.row.max - at_target);
    const R gap = r.row.gaps + target;
    const R log = r.row.sum * r.log.value;
    const R tiny = r.log.value == 0.0 ? zero : M::all(0x1p-690);
    const R slack = r.row.sum * (r.log.slack + tiny) + r.bound * (gap + log);
    const auto known = slack < infinity;
    return {{known ? gap : zero, zero}, known ? log : zero, known ? slack : M::all(infinity)};
  }
  template <class R>
  REPDL_HD static ends<R> result(const row_call&, const numbers<R>& r, R at_target, int) {
    const loss_part<R> p = part(r, at_target);
    const R v = p.gap.hi + p.log;
    return {v - p.slack, v + p.slack};
  }
  REPDL_HD static float counterpart(const row_operands& o, int) { return o.at_target; }
  template <class A>
  using late = blended_sum<A>;
  template <class A>
  using late_total = blended_total_loss<A>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s, const float*,
                                   int) {
    late_total<A> one;
    one.start();
    one.add_row(s, o);
    return one.finish(to, c);
  }
};

// A softmax_i - a_i at both ends, times g / n. f errs by `bound` of itself, and where the gap was cut by 2^-860 of A; what the products
// round is below 2^-48 of the difference.
template <class R>
struct difference_numbers {
  R weight;  // A / S
  R sum;
  R scale;
  R kept_weight;
  double bound;
  double kept, spread;
};
template <class R>
REPDL_HD ends<R> difference_ends(const difference_numbers<R>& r, R x, R exponential, R coefficient) {
  using M = math<R>;
  const R zero = M::all(0.0);
  const R e = x > -infinity ? exponential : zero;
  const R f = r.weight * e;
  const R z = f - coefficient;
  const R cut = e > 0.0 ? (e < 0x1p-860 ? r.sum * 0x1p-860 : zero) : zero;
  const R error = r.bound * f + (0x1p-50 * magnitude_of(coefficient) + 0x1p-48 * magnitude_of(z)) + cut;
  return {(z - error) * r.scale, (z + error) * r.scale};
}
template <>
struct row_rule<ops::op_id::cross_entropy_probabilities_backward> : blended_rule {
  static constexpr row_inputs inputs = {{1, 3, 4}, 0, 2};
  static constexpr bool keeps_term = true;
  static constexpr bool has_exception = true;
  static row_bounds bounds(std::int64_t length, std::int64_t height, std::int64_t tracked) {
    return blended_rule::bounds(length, height, tracked, true);
  }
  template <class R>
  using numbers = difference_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R max, const blended_row<R>& s) {
    const blended_numbers<R> b = blended(c, own, max, s);
    const blend parts(c);
    const R total = s.count + s.rest;
    return {b.sum / total, b.sum,       own.g / c.total, b.kept_weight, c.bounds.weight + c.bounds.sum,
            parts.kept,    parts.spread};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R weight) {
    return verdict_of<T>(difference_ends<R>(r, x[0], weight, x[1] * (r.kept * x[2] + r.spread)));
  }
  // The target: kept_weight more. Its own a: w (1 - s + s / C).
  REPDL_HD static ends<double> exception(const row_call& c, const row_operands& o, double max,
                                         const blended_row<double>& s) {
    const row_given<double> own{static_cast<double>(o.g), static_cast<double>(o.weight)};
    const numbers<double> r = prepare<double>(c, own, max, s);
    const double x = static_cast<double>(o.at_target);
    return difference_ends<double>(r, x, fast_exp(cut_gap(x, max)), own.weight * (r.kept + r.spread));
  }
  template <class A>
  using late = blended_sum<A>;
  template <class A>
  REPDL_HD_CALL static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s,
                                        const float* at, int what) {
    using number = rational<A>;
    const blend_factors& b = s.factors;
    const double g = static_cast<double>(o.g);
    const double x = static_cast<double>(at[0]);
    const bool target = what == 1;
    const bool takes_all = b.takes_all();
    const double w = target ? static_cast<double>(o.weight) : static_cast<double>(at[1]);
    const double p = target || !takes_all ? 0.0 : static_cast<double>(at[2]);
    const double bad = not_finite(s.bad, o, b.probabilities != 0) + (takes_all ? 0 * w + 0 * p : 0.0);
    if (bad != bad || g != g || c.total != c.total) return {float_of(canonical_nan_f32), true};
    // C a_i
    number own = arithmetic<number>::number(0.0);
    if (takes_all) own = blend_coefficients<number>::of(b, w, p);
    if (target) add_to(own, blend_coefficients<number>::of_target(b, w));
    const number sum = whole_sum(s, o);
    const bool greatest = x == static_cast<double>(s.exponentials.max);
    const double k = static_cast<double>(s.exponentials.multiplicity);
    // The numerator without g.
    blended_quotient<A> q{negated(own), arithmetic<number>::number(0.0), 0, blended_divisor<A>(c)};
    A f = s.exponentials.rest;
    bool some = !is_zero(f);
    if (greatest) {
      multiply_by_value(q.exact, k);
      add_to(q.exact, sum);
      multiply_by_value(q.denominator, k);
    } else {
      some = x != -infinity;
      if (some) f = exponentials<A>::of_gap(x, static_cast<double>(s.exponentials.max));
    }
    const int sign = sign_in(sum);
    if (some && sign != 0) {
      A all = s.exponentials.rest;
      add_value(all, k);
      divide_by(f, all);
      q.product = to_rational(f);
      multiply_by(q.product, greatest ? negated(sum) : sum);
      q.sign = sign == 2 ? 2 : greatest ? -sign : sign;
    }
    if (!is_finite(g) || g == 0 || !is_divisor(c.total)) {
      const int of_difference = add_product(q);
      // By the formula's tree: g times the difference, whose zero is +0, over n.
      const double v = g * static_cast<double>(of_difference) / c.total;
      return {canonical(static_cast<float>(v)), of_difference != 2};
    }
    multiply_by_value(q.exact, g);
    multiply_by_value(q.product, g);
    if (g < 0 && q.sign != 2) q.sign = -q.sign;
    return round_blended(to, q, (g < 0) != (c.total < 0));
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
