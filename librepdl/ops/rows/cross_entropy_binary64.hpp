// cross_entropy in binary64 and its gradient, of targets or probabilities, with weights and smoothing or without: wide rules (wide_rule.hpp).
//
// Notation of cross_entropy.hpp: a_c = w_c ((1 - s) p_c + s / C), A = sum a_c, G = sum a_c (M - x_c), R = ln(k + rest). Every output is
//     (X + a f) / D,   X, a, D exact, f = 0 or transcendental and positive:
//     the loss            X = C G,                  a = C A,      f = R,               D = C n
//     gradient, x_i = M   X = g (C A - k C a_i),    a = -g C A,   f = rest / S,        D = k C n
//               x_i < M   X = -g C a_i,             a = g C A,    f = e^(x_i - M) / S, D = C n
//
// Wide numbers first, by operations that say so where the range ends (wide_rule.hpp).
//
// Late. The sums of w, w x, w p and w p x are integers in fixed point, and so are 1 - s = hi + lo, X, C A and D: every one of them is exact. a f is
// a ball. X + a f is compared with a boundary b by the sign of E + a f, E = X - b D exact: its bits are needed relative to E, however much X and
// b D cancel. E is 0 or a multiple of 2^lsb, lsb that of blend_total: where a f, whose sign is known, is below that, +-2^(lsb - 1) stands for
// it. That is so wherever an exponential is only enclosed: |a| < 2^3188, and f < 2^35 e^-8192 < 2^-11783, of 2^62 rows, too. E = 0 and a f = 0: b itself.
// Otherwise E + a f is not 0 for a != 0 (Lindemann-Weierstrass, exponential_sum.hpp), and more bits of f decide.
//
// Sums over rows: X and a f are added up. Rows with A of both signs (weights below 0) may cancel exactly, which is undecided.
#pragma once

#include "librepdl/num/exact_root.hpp"
#include "librepdl/ops/rows/cross_entropy.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Of a call: s, 1 - s, C.
struct blend64 {
  double smoothing;
  dd kept;
  std::uint64_t classes;
  std::uint64_t probabilities;  // 1: they are given

  REPDL_HD explicit blend64(const wide_row_given& o)
      : smoothing(o.eps),
        kept(two_sum(1.0, -o.eps)),
        classes(static_cast<std::uint64_t>(o.length)),
        probabilities(o.biased ? 1 : 0) {}
  blend64() = default;
  // Whether elements that are not the target have a part.
  REPDL_HD bool takes_all() const { return smoothing != 0 || probabilities != 0; }
};

// Fixed point. decompose gives s >= 2^-64 the exponent -116 or more, hi >= 2^-53 of 1 - s -105, lo, a multiple of 2^-116, -168: 192 places serve
// them. Bits above, of 2^62 terms (exact_accumulator), C < 2^53 and k < 2^53:
//   C A and k C a_i < 2^(2048 + 62 + 106), their difference 2^2217, in 2^2267;  X < 2^(1024 + 2217) of gradients, of losses 2^(3073 + 62 + 53), of 2^62
//   rows 2^3250, and b D < 2^(1024 + 1192): 2^3369;  D < 2^(1024 + 62 + 106), in 2^1229.
using blend_sum = fixed_point<2 * least_exponent<double> - 192, 72>;
using blend_total = fixed_point<3 * least_exponent<double> - 192, 106>;
using blend_divisor = fixed_point<least_exponent<double>, 36>;

// to += C (1 - s) f .., and that times a sum.
template <class To, class... Factor>
REPDL_HD void add_kept(To& to, const blend64& b, Factor... f) {
  add(to, product_of(b.kept.hi, b.classes, f...));
  add(to, product_of(b.kept.lo, b.classes, f...));
}
template <class To, class Sum>
REPDL_HD void add_kept_sum(To& to, const blend64& b, const Sum& s) {
  add_multiple(to, s, product_of(b.kept.hi, b.classes));
  if (b.kept.lo != 0) add_multiple(to, s, product_of(b.kept.lo, b.classes));
}

// ------------------------------------------------------------------------------------------------------------------- sums

// Of a row, or of a part of it. Trivially copyable, a multiple of 8 bytes, no padding.
template <class A>
struct blended_sum64 {
  exponential_sum<A, double> exponentials;
  blend64 blend;
  exact_accumulator<double, 1> weights;        // w,
  exact_accumulator<double, 2> weighted_gaps;  // w (M - x): of smoothing
  exact_accumulator<double, 2> products;       // w p,
  exact_accumulator<double, 3> product_gaps;   // w p (M - x): of probabilities
  double infinite;                             // what elements of -inf add up to
  double bad;                                  // NaN: a weight or probability is not finite

  REPDL_HD void start(double greatest, const wide_row_given& o) {
    *this = {};
    exponentials.start(greatest);
    blend = blend64(o);
  }
  REPDL_HD_CALL void add(double x, double w, double p) {
    exponentials.add(x);
    if (!blend.takes_all()) return;
    if (!is_finite(w) || !is_finite(p)) {
      bad = double_of(format<double>::nan);
      return;
    }
    const double max = exponentials.max;
    const bool absent = x == -infinity;
    if (blend.smoothing != 0) {
      weights.add(w);
      if (!absent) {
        weighted_gaps.add_product(w, max);
        weighted_gaps.add_product(-w, x);
      }
    }
    if (blend.probabilities != 0) {
      products.add_product(w, p);
      if (!absent) {
        num::add(product_gaps, product_of(w, p, max));
        num::add(product_gaps, product_of(-w, p, x));
      }
    }
    if (!absent) return;
    exact_accumulator<double, 2> part;  // C a_c / w
    part.add(blend.smoothing);
    if (blend.probabilities != 0) add_kept(part, blend, p);
    const int sign = w < 0 ? -part.sign() : w > 0 ? part.sign() : 0;
    if (sign != 0) infinite += sign < 0 ? -infinity : infinity;
  }
  REPDL_HD void merge(const blended_sum64& o) {
    exponentials.merge(o.exponentials);
    weights.merge(o.weights);
    weighted_gaps.merge(o.weighted_gaps);
    products.merge(o.products);
    product_gaps.merge(o.product_gaps);
    infinite += o.infinite;
    bad += o.bad;
  }
  REPDL_HD bool has_bad_factor(const wide_row_given& o) const {
    const double b = blend.probabilities != 0 ? bad : bad + 0 * o.weight;
    return b != b;
  }
};

// C (1 - s), of at most 117 + 53 bits, and C a_c but for a target's part.
REPDL_HD wide<double> wide_kept(const blend64& b) {
  return product_of_any(wide<double>{b.kept, 0.0}, wide_of(static_cast<double>(b.classes)));
}
REPDL_HD wide<double> wide_coefficient(const blend64& b, double w, double p) {
  wide<double> q = product_of_any(wide_of(w), b.smoothing);
  if (b.probabilities != 0) add_to(q, product_of_any(wide_kept(b), product_of_any(wide_of(w), p)));
  return q;
}

// An infinite part of which the sign is not known: then `sum` is not bounded, and nothing is decided.
template <>
struct blended_sum64<wide<double>> {
  using number = wide<double>;
  exponential_sum<number, double> exponentials;
  blend64 blend;
  number sum, gaps;  // C A and C G without the target's part
  double infinite, bad;

  REPDL_HD void start(double greatest, const wide_row_given& o) {
    *this = {};
    exponentials.start(greatest);
    blend = blend64(o);
  }
  REPDL_HD void add(double x, double w, double p) {
    exponentials.add(x);
    if (!blend.takes_all()) return;
    bad += (w - w) + (p - p);
    const number q = wide_coefficient(blend, w, p);
    add_to(sum, q);
    if (x > -infinity) {
      add_to(gaps, product_of_any(q, number{two_sum(exponentials.max, -x), 0.0}));
      return;
    }
    const int sign = sign_in(q);
    if (sign == 2) sum.error = infinity;
    if (sign == 1 || sign == -1) infinite += sign < 0 ? -infinity : infinity;
  }
  REPDL_HD void merge(const blended_sum64& o) {
    exponentials.merge(o.exponentials);
    add_to(sum, o.sum);
    add_to(gaps, o.gaps);
    infinite += o.infinite;
    bad += o.bad;
  }
  REPDL_HD bool has_bad_factor(const wide_row_given& o) const {
    const double b = blend.probabilities != 0 ? bad : bad + 0 * o.weight;
    return b != b;
  }
};

// C A, with the target's part.
REPDL_HD wide<double> whole_sum64(const blended_sum64<wide<double>>& s, const wide_row_given& o) {
  if (s.blend.probabilities != 0) return s.sum;
  return add(s.sum, product_of_any(wide_kept(s.blend), o.weight));
}
template <int L>
REPDL_HD_CALL blend_sum whole_sum64(const blended_sum64<ball<L>>& s, const wide_row_given& o) {
  blend_sum a;
  if (s.blend.probabilities != 0) {
    add_kept_sum(a, s.blend, s.products);
  } else {
    add_kept(a, s.blend, o.weight);
  }
  if (s.blend.smoothing != 0) add_multiple(a, s.weights, product_of(s.blend.smoothing));
  return a;
}
// C a_i of an element; `is_target`: with the target's part.
template <class A>
struct own_coefficient64;
template <>
struct own_coefficient64<wide<double>> {
  REPDL_HD static wide<double> of(const blend64& b, double w, double p, bool is_target) {
    const wide<double> q = b.takes_all() ? wide_coefficient(b, w, p) : wide<double>{};
    return is_target ? add(q, product_of_any(wide_kept(b), w)) : q;
  }
};
template <int L>
struct own_coefficient64<ball<L>> {
  REPDL_HD_CALL static blend_sum of(const blend64& b, double w, double p, bool is_target) {
    blend_sum a;
    if (b.smoothing != 0) add(a, product_of(b.smoothing, w));
    if (b.probabilities != 0) add_kept(a, b, w, p);
    if (is_target) add_kept(a, b, w);
    return a;
  }
};

// -------------------------------------------------------------------------------------------------------------- quotients

// (X + a f) / D
template <int L>
struct blended_value64 {
  blend_total exact;      // X
  ball<L> product;        // a f
  int sign;               // of every number in it, 0: it is 0; 2: not known
  blend_divisor divisor;  // D
};
template <int L>
REPDL_HD_CALL ball<L> enclosure(const blended_value64<L>& v) {
  ball<L> all = ball_of_sum<L>(v.exact);
  add_to(all, v.product);
  divide_by(all, ball_of_sum<L>(v.divisor));
  return all;
}
// m: a midpoint, whose 54 bits are in its first limb; the others of that limb are 0.
template <int L>
REPDL_HD_CALL int side_of(const blended_value64<L>& v, const ball<L>& m) {
  const std::uint64_t first = m.middle.limb[L - 1];
  const int zeros = trailing_zeros(first);
  number_product b;
  b.times(first >> zeros);
  b.exponent = static_cast<int>(m.middle.exponent) - 64 + zeros;
  b.negative = m.middle.negative == 0;
  blend_total rest = v.exact;
  add_multiple(rest, v.divisor, b);
  ball<L> all = ball_of_sum<L>(rest);
  add_to(all, v.product);
  const int sign = rest.is_zero() ? v.sign : sign_in(all);
  return sign != 2 && v.divisor.negative() ? -sign : sign;
}
// Where a f is below every E that is not 0.
template <int L>
REPDL_HD void stand_in(blended_value64<L>& v) {
  if (v.sign == 0 || v.sign == 2 || !upper(v.product).below_power(blend_total::lsb)) return;
  set_power(v.product, blend_total::lsb - 1);
  if (v.sign < 0) v.product = negated(v.product);
}
// The sign of X + a f, or 2.
template <int L>
REPDL_HD_CALL int sign_of_dividend(const blended_value64<L>& v) {
  if (v.exact.is_zero()) return v.sign;
  ball<L> all = ball_of_sum<L>(v.exact);
  add_to(all, v.product);
  return sign_in(all);
}
// An exact zero: of the given sign.
template <int L>
REPDL_HD_CALL decided64 round_blended64(const blended_value64<L>& v, bool negative_zero) {
  if (v.exact.is_zero() && v.sign == 0) return known_number(zero_of_sign(negative_zero));
  return round_formula<double, L>(v);
}
// k C n.
REPDL_HD_CALL blend_divisor blended_divisor64(const wide_row_given& o, double k) {
  blend_divisor d;
  add_multiple(d, o.divisor->sum.finite,
               product_of(static_cast<std::uint64_t>(o.length), static_cast<std::uint64_t>(k)));
  return d;
}
REPDL_HD wide<double> wide_blended_divisor(const wide_row_given& o, double k) {
  return product_of_any(product_of_any(o.divisor->near, static_cast<double>(o.length)), k);
}
REPDL_HD bool is_divisor64(double total) { return total == 1 || total == -1; }

// -------------------------------------------------------------------------------------------------------------- the loss

// What is known of the products of rows.
struct product_signs {
  double bits;  // 1 positive, 2 negative, 4 unknown ones; 8: a row of which nothing is known

  REPDL_HD void note(int sign) { join(sign == 0 ? 0u : sign == 2 ? 4u : sign > 0 ? 1u : 2u); }
  REPDL_HD void join(unsigned b) { bits = static_cast<double>(static_cast<unsigned>(bits) | b); }
  REPDL_HD void merge(const product_signs& o) { join(static_cast<unsigned>(o.bits)); }
  REPDL_HD int sign() const { return bits == 0 ? 0 : bits == 1 ? 1 : bits == 2 ? -1 : 2; }
};

// The sum over rows.
template <class A>
struct blended_total64 {
  blend_total gaps;
  A product;
  double special;  // NaN, infinities: what the loss is instead
  product_signs signs;

  REPDL_HD void start() { *this = {}; }
  REPDL_HD void add_special(double v) { special += v; }
  REPDL_HD_CALL void add_row(const blended_sum64<A>& s, const wide_row_given& o) {
    constexpr int limbs = limbs_of_ball<A>;
    if (s.has_bad_factor(o)) return add_special(double_of(format<double>::nan));
    const blend64& b = s.blend;
    double infinite = s.infinite;
    if (b.probabilities == 0 && b.kept.hi != 0 && o.weight != 0) {
      if (o.at_target == -infinity) {
        infinite += o.weight < 0 ? -infinity : infinity;
      } else {
        add_kept(gaps, b, o.weight, s.exponentials.max);
        add_kept(gaps, b, o.weight, -o.at_target);
      }
    }
    add_special(infinite);
    if (b.probabilities != 0) add_kept_sum(gaps, b, s.product_gaps);
    if (b.smoothing != 0) add_multiple(gaps, s.weighted_gaps, product_of(b.smoothing));
    if (s.exponentials.is_single()) return;
    const blend_sum sum = whole_sum64(s, o);
    signs.note(sum.sign());
    if (sum.is_zero()) return;
    A term = logarithm_of(s.exponentials);
    multiply_by(term, ball_of_sum<limbs>(sum));
    add_to(product, term);
  }
  REPDL_HD void merge(const blended_total64& o) {
    gaps.merge(o.gaps);
    add_to(product, o.product);
    special += o.special;
    signs.merge(o.signs);
  }
  // o: of any row.
  REPDL_HD_CALL decided64 finish(const wide_row_given& o) const {
    const double total = o.divisor->kind();
    blended_value64<limbs_of_ball<A>> v{gaps, product, signs.sign(), {}};
    stand_in(v);
    if (special == 0 && is_divisor64(total)) {
      v.divisor = blended_divisor64(o, 1);
      return round_blended64(v, false);
    }
    const int sign = special == 0 && total == 0 ? sign_of_dividend(v) : 0;
    const double q = (special == 0 ? static_cast<double>(sign) : special) / total;
    return {canonical_of(q == 0 ? 0.0 : q), sign != 2};
  }
};
template <>
struct blended_total64<wide<double>> {
  wide<double> gaps, product;
  double special;
  product_signs signs;

  REPDL_HD void start() { *this = {}; }
  REPDL_HD void add_special(double v) { special += v; }
  REPDL_HD void add_row(const blended_sum64<wide<double>>& s, const wide_row_given& o) {
    if (s.has_bad_factor(o)) return add_special(double_of(format<double>::nan));
    if (!(s.sum.error < infinity)) return signs.join(8);
    const blend64& b = s.blend;
    double infinite = s.infinite;
    add_to(gaps, s.gaps);
    if (b.probabilities == 0 && b.kept.hi != 0 && o.weight != 0) {
      if (o.at_target == -infinity) {
        infinite += o.weight < 0 ? -infinity : infinity;
      } else {
        const wide<double> gap = {two_sum(s.exponentials.max, -o.at_target), 0.0};
        add_to(gaps, product_of_any(product_of_any(wide_kept(b), o.weight), gap));
      }
    }
    add_special(infinite);
    if (s.exponentials.is_single()) return;
    const wide<double> sum = whole_sum64(s, o);
    signs.note(sign_in(sum));
    add_to(product, product_of_any(sum, logarithm_of(s.exponentials)));
  }
  REPDL_HD void merge(const blended_total64& o) {
    add_to(gaps, o.gaps);
    add_to(product, o.product);
    special += o.special;
    signs.merge(o.signs);
  }
  REPDL_HD decided64 finish(const wide_row_given& o) const {
    const double total = o.divisor->kind();
    if (signs.bits >= 8) return {0.0, false};
    if (special != 0 || (is_zero(gaps) && signs.sign() == 0)) {
      const double q = special / total;
      return known_number(canonical_of(q == 0 ? 0.0 : q));
    }
    if (!is_divisor64(total)) return {0.0, false};
    return round_number<double>(quotient_of_any(add(gaps, product), wide_blended_divisor(o, 1)));
  }
};

// ------------------------------------------------------------------------------------------------------------ the gradient

// f: rest / S, or e^(x - M) / S; 0 where it is exactly that.
template <class A>
REPDL_HD_CALL A blended_share64(const exponential_sum<A, double>& s, double x) {
  A f = s.rest;
  if (x != s.max) f = exponentials<A>::template of_gap<double>(x, s.max);
  if (is_zero(f)) return f;
  A all = s.rest;
  add_value(all, s.multiplicity);
  divide_by(f, all);
  return f;
}
template <class A>
REPDL_HD_CALL decided64 blended_gradient64(const wide_row_given& o, const blended_sum64<A>& s, const double* x,
                                           bool is_target) {
  const double total = o.divisor->kind();
  const double g = o.g;
  if (s.has_bad_factor(o) || g != g || total != total) return known_number(double_of(format<double>::nan));
  const bool is_product = is_finite(g) && g != 0 && is_divisor64(total);
  const bool greatest = x[0] == s.exponentials.max;
  const double k = greatest ? s.exponentials.multiplicity : 1;
  const A f = blended_share64(s.exponentials, x[0]);
  const auto own = own_coefficient64<A>::of(s.blend, x[1], x[2], is_target);
  const auto sum = whole_sum64(s, o);
  const bool negative_zero = (g < 0) != (total < 0);
  if constexpr (is_wide_number<A>) {
    if (!is_product || !(s.sum.error < infinity)) return {0.0, false};
    A difference = negated(product_of_any(own, k));
    if (greatest) add_to(difference, sum);
    const A product = product_of_any(greatest ? negated(sum) : sum, f);
    if (is_zero(difference) && is_zero(product)) return known_number(zero_of_sign(negative_zero));
    add_to(difference, product);
    return round_number<double>(quotient_of_any(product_of_any(difference, g), wide_blended_divisor(o, k)));
  } else {
    constexpr int limbs = limbs_of_ball<A>;
    blend_sum difference;
    number_product times = product_of(static_cast<std::uint64_t>(k));
    times.negative = true;
    add_multiple(difference, own, times);
    if (greatest) difference.merge(sum);
    const double factor = is_product ? g : 1.0;
    blended_value64<limbs> v{{}, arithmetic<A>::number(0.0), 0, {}};
    add_multiple(v.exact, difference, product_of(factor));
    if (!is_zero(f)) {
      v.sign = greatest ? -sum.sign() : sum.sign();
      v.product = f;
      multiply_by(v.product, ball_of_sum<limbs>(sum));
      multiply_by_value(v.product, greatest ? -factor : factor);
      if (factor < 0) v.sign = -v.sign;
    }
    stand_in(v);
    if (is_product) {
      v.divisor = blended_divisor64(o, k);
      return round_blended64(v, negative_zero);
    }
    // By the formula's tree: g times the difference, whose zero is +0, over n.
    const int sign = sign_of_dividend(v);
    return {canonical_of(g * static_cast<double>(sign) / total), sign != 2};
  }
}

// ------------------------------------------------------------------------------------------------------------------- rules

// Without classes there is no term.
template <ops::op_id Op>
struct wide_blended_rule : row_rule<Op> {
  template <class A>
  using late = blended_sum64<A>;
  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    if (o.is_ignored || (o.biased && o.length == 0)) return {true, 0.0};
    const bool valid = o.biased || o.has_target();
    return {!(valid && magnitude_of(o.top) < infinity), double_of(format<double>::nan)};
  }
};
template <>
struct wide_rule<ops::op_id::cross_entropy_probabilities> : wide_blended_rule<ops::op_id::cross_entropy_probabilities> {
  template <class A>
  using late_total = blended_total64<A>;
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double*, int) {
    late_total<A> one;
    one.start();
    one.add_row(s, o);
    return one.finish(o);
  }
};
template <>
struct wide_rule<ops::op_id::cross_entropy_probabilities_backward>
    : wide_blended_rule<ops::op_id::cross_entropy_probabilities_backward> {
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* x, int what) {
    return blended_gradient64<A>(o, s, x, what == 1);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
