// Gradients of norms, as rules (rule.hpp): to x, of layer_norm (group_norm and batch_norm are the same of other rows) and rms_norm; and
// to the weight.
//
// Of a row of n, with its mean m and r = rstd as given, d_j = x_j - m, t_j = g_j w_j, A = sum t_j, B = sum t_j d_j:
//     grad_x = r (t - A / n - d r^2 B / n).
// rms_norm: m = 0 and A = 0. The gradient to a weight, over the numbers that it was a factor of: sum of g_j d_j r_j, each with its row's
// m and r.
//
// Tier binary64. u = 2^-53, h the height of the sums, g = (h + 6) u, |A|* and |B|* the sums of magnitudes.
//     A               (h u) |A|*: its terms are binary64 numbers
//     B               (h + 3) u |B|*: u for d, u for the product
//     a = A (1 / n)   g |A|* / n + 3 u |a| =: e_a
//     b = r^2 B / n   g r^2 |B|* / n + 8 u |b| =: e_b
// On a GPU, where A and B are known better (signed_sum), that in place of g |A|* and g |B|*.
//     v = t - a - d b     e_a + |d| e_b + 2 u |d b| + u |t - a| + u |v|, |t - a| <= |v| + |d b|
//     grad_x = r v    u of itself: 3 u (|d b| + |v|) in all, up to second order
// weight: (h + 6) u sum of magnitudes, or what is known on a GPU. Nothing over- or underflows: t is in [2^-298, 2^256], d in [2^-149, 2^129], r^2 B d below 2^802
// and above 2^-1050 or 0 (a subnormal number there is off by 2^-1075, where v, a multiple of 2^-1043 unless it is 0, is not near).
//
// Where terms cancel, B first of all, which is a mean's rounding error where g w is one number, the sums are known as wide numbers, and a, b with
// them: a = a.hi + a.lo within e_a, b likewise. With t - a.hi = p + q, d = d.hi + d.lo, d.hi b.hi = P + Q, p - P = h + k, all exactly (Q errs
// by 2^-1074 at most where it is subnormal; 2^-1060 in e_a makes up for it, if b is not 0),
//     v = h + ((k + q - Q) - (a.lo + (d.hi b.lo + d.lo b.hi)))    e_a + |d| e_b + 2^-106 |P| for d.lo b.lo + 8 u (the magnitudes of what is added to h)
// and u |v| for that addition, u for r v and u for each end: 4u |v|. Where B = 0, no sum erred, and A / n is a number all of this is 0 where v is:
// zeros are decided.
//
// Late tiers: n grad_x = r (n t - A - d r^2 B), a rational number: multiples of 2^-1043 below 2^(929 + 62 + 2), of which 33 limbs, 2112
// bits, hold every one; the quotient by n is a midpoint only where it is exact.
#pragma once

#include "librepdl/ops/rows/norm.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// A sum, and what is known of its error: that its terms' magnitudes add up to `spread`. Rounded: terms are products a b, and b is off by 2 u of
// itself at most.
template <class R, bool Rounded>
struct signed_sum {
  R value{};
  R spread{};

  REPDL_HD void add(R term) {
    value += term;
    spread += magnitude_of(term);
  }
  REPDL_HD void add_product(R a, R b) { add(a * b); }
  REPDL_HD void merge(const signed_sum& o) {
    value += o.value;
    spread += o.spread;
  }
  signed_sum<double, Rounded> lane(int l) const { return {value[l], spread[l]}; }
  static signed_sum of_total(double total, double spread) { return {math<R>::all(total), math<R>::all(spread)}; }
  REPDL_HD R lowest() const { return value; }
  REPDL_HD R width() const { return spread; }
  REPDL_HD R error(double g) const { return g * spread; }
};
// Of parts that are too long for merge. Sums of parts that cancel later are off by 2^-104 of themselves.
struct signed_total {
  dd value{};
  double spread = 0;
  template <bool Rounded>
  REPDL_HD void join(const signed_sum<double, Rounded>& s) {
    value = num::add(value, s.lowest());
    spread += s.width() + 0x1p-100 * magnitude_of(value.hi);
  }
  REPDL_HD void join(const signed_total& o) {
    value = num::add(value, o.value);
    spread += o.spread + 0x1p-100 * magnitude_of(value.hi);
  }
  template <class R, bool Rounded>
  REPDL_HD signed_sum<R, Rounded> of_row() const {
    return signed_sum<R, Rounded>::of_total(value.hi, spread);
  }
};

// ------------------------------------------------------------------------------------------------------------------ to x

// A and B of a row, or of a part of it; the same in an arithmetic.
template <class R, bool Centred>
struct gradient_moments {
  signed_sum<R, false> first;
  signed_sum<R, Centred> second;

  REPDL_HD void add(const R* x, R mean, R t) {
    if constexpr (Centred) first.add(t);
    second.add_product(t, Centred ? x[1] - mean : x[1]);
  }
  REPDL_HD void merge(const gradient_moments& o) {
    first.merge(o.first);
    second.merge(o.second);
  }
  REPDL_HD const gradient_moments& of_row() const { return *this; }
  gradient_moments<double, Centred> lane(int l) const { return {first.lane(l), second.lane(l)}; }
};
template <bool Centred>
struct gradient_moments_total {
  signed_total first;
  signed_total second;

  template <class Part>
  REPDL_HD void join(const Part& o) {
    first.join(o.first);
    second.join(o.second);
  }
  template <class R>
  REPDL_HD gradient_moments<R, Centred> of_row() const {
    return {first.of_row<R, false>(), second.of_row<R, Centred>()};
  }
};

// plain: what is not finite where a term is not.
template <class A, bool Centred>
struct late_moments;
template <class R, bool Centred>
struct late_moments<wide<R>, Centred> {
  R mean{};
  R plain_first{};
  R plain_second{};
  wide_sum<R> first;
  wide_sum<R> second;

  REPDL_HD void start(R top) { mean = top; }
  REPDL_HD void add(R g, R x, R w) {
    const R t = g * w;
    const double_word<R> d = two_sum(x, -mean);
    const double_word<R> product = mul(d, t);
    const R zero{};
    const R lost = 0x1p-103 * magnitude_of(product.hi);
    plain_first += t;
    plain_second += t * (x - mean);
    if constexpr (Centred) first.add(t);
    second.add(product, d.lo == 0.0 ? zero : lost);
  }
  REPDL_HD void merge(const late_moments& o) {
    plain_first += o.plain_first;
    plain_second += o.plain_second;
    first.merge(o.first);
    second.merge(o.second);
  }
  late_moments<wide<double>, Centred> lane(int l) const {
    return {mean[l], plain_first[l], plain_second[l], num::lane(first, l), num::lane(second, l)};
  }
  REPDL_HD wide<R> sum(std::int64_t n) const { return first.total(n); }
  REPDL_HD wide<R> products(std::int64_t n) const { return second.total(n); }
};
template <int L, bool Centred>
struct late_moments<ball<L>, Centred> {
  double mean = 0;
  double plain_first = 0;
  double plain_second = 0;
  exact_accumulator<float, 2> first;   // g w
  exact_accumulator<float, 3> second;  // g w x

  REPDL_HD void start(double top) { mean = top; }
  REPDL_HD void add(double g, double x, double w) {
    const double t = g * w;
    const double term = t * (x - mean);
    plain_first += t;
    plain_second += term;
    if (!is_finite(term)) return;
    first.add_product(static_cast<float>(g), static_cast<float>(w));
    second.add_product(static_cast<float>(g), static_cast<float>(w), static_cast<float>(x));
  }
  REPDL_HD void merge(const late_moments& o) {
    plain_first += o.plain_first;
    plain_second += o.plain_second;
    first.merge(o.first);
    second.merge(o.second);
  }
  REPDL_HD ball<L> sum(std::int64_t) const { return arithmetic<ball<L>>::of_limbs(limbs_of_sum<16>(first)); }
  REPDL_HD ball<L> products(std::int64_t n) const {
    ball<L> r = sum(n);
    multiply_by_value(r, -mean);
    add_to(r, arithmetic<ball<L>>::of_limbs(limbs_of_sum<16>(second)));
    return r;
  }
};

template <class R>
struct norm_gradient_numbers {
  R mean, rstd;
  R a, b;
  R a_error, b_error;
  R product;  // what t errs by in binary32, of itself
};

template <bool Centred>
struct precise_gradient_rule;

template <bool Centred>
struct norm_gradient_rule : plain_rule {
  using precise = precise_gradient_rule<Centred>;
  static constexpr row_look look = Centred ? row_look::given : row_look::nothing;
  // g, x, weight; rstd; mean
  static constexpr row_inputs inputs = Centred ? row_inputs{{0, 1, 4}, 3, -1, 2} : row_inputs{{0, 1, 3}, 2};
  static constexpr float absent[most_elements] = {0.0f, 0.0f, 1.0f};
  static constexpr bool has_factors = true;
  static constexpr int summed = 3;
  static constexpr int required = 2;
  static constexpr int exact_limbs = 33;

  static row_bounds bounds(std::int64_t, std::int64_t height, std::int64_t) {
    return {0, 0, 0, static_cast<double>(height + 6) * 0x1p-53};
  }
  // Statistics that are not finite are those of rows whose outputs are NaN, or infinite.
  REPDL_HD static row_class classify(const row_call&, const row_operands& o, float top) {
    const bool finite = is_finite(static_cast<double>(top)) && is_finite(static_cast<double>(o.g));
    return {!finite, float_of(canonical_nan_f32)};
  }
  template <class R>
  REPDL_HD static R term(const R* x, R) {
    return x[0] * x[2];
  }
  template <class R>
  using sums = gradient_moments<R, Centred>;
  using total = gradient_moments_total<Centred>;
  template <class R>
  using numbers = norm_gradient_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R mean,
                                     const gradient_moments<R, Centred>& s) {
    const double n = static_cast<double>(c.length);
    const R rstd = own.g;
    const double g = c.bounds.sum * (1 + 0x1p-10);
    const double part = 1 / n;
    const R scale = rstd * rstd * part;
    const R a = s.first.lowest() * part;
    const R b = s.second.lowest() * scale;
    const R a_error = s.first.error(g) * part + 0x1p-51 * magnitude_of(a);
    const R b_error = s.second.error(g) * scale + 0x1p-49 * magnitude_of(b);
    return {mean, rstd, a, b, a_error, b_error, math<R>::all(c.mixed ? 0x1p-24 : 0.0)};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    using M = math<R>;
    const R t = x[0] * x[2];
    const R d = Centred ? x[1] - r.mean : x[1];
    const R product = d * r.b;
    const R v = ((Centred ? t - r.a : t) - product) + 0.0;
    const R magnitude = (magnitude_of(product) + magnitude_of(t)) + magnitude_of(v);
    const R f = 0x1.2p-51 * magnitude + M::muladd(magnitude_of(d), r.b_error, r.a_error);
    return verdict_of<T, R>({r.rstd * (v - f), r.rstd * (v + f)});
  }
  template <class A>
  using late = late_moments<A, Centred>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s, const float* x,
                                   int) {
    const std::int64_t n = c.length;
    const auto g = static_cast<double>(x[0]);
    const auto w = static_cast<double>(x[2]);
    const auto rstd = static_cast<double>(o.g);
    if (!is_finite(s.plain_first) || !is_finite(s.plain_second)) {
      const double count = static_cast<double>(n);
      const double h = (static_cast<double>(x[1]) - s.mean) * rstd;
      const double t = Centred ? g * w - s.plain_first / count : g * w;
      return {canonical(static_cast<float>(rstd * (t - h * (s.plain_second * rstd / count)))), true};
    }
    A p = arithmetic<A>::number(g);
    multiply_by_value(p, w);
    multiply_by_count(p, n);
    if constexpr (Centred) add_to(p, negated(s.sum(n)));
    A q = arithmetic<A>::number(static_cast<double>(x[1]));
    add_value(q, -s.mean);
    multiply_by_value(q, rstd);
    multiply_by_value(q, rstd);
    multiply_by(q, s.products(n));
    add_to(p, negated(q));
    const int sign = sign_in(p);
    if (sign == 0 || (rstd == 0 && sign != 2)) return {signed_zero((sign < 0) != sign_bit(o.g)), true};
    if (rstd == 0) return {0.0f, false};
    multiply_by_value(p, rstd);
    A count = arithmetic<A>::number(1);
    multiply_by_count(count, n);
    divide_by(p, count);
    return round_to(to, p);
  }
};

template <class R>
struct precise_gradient_numbers {
  R mean, rstd;
  double_word<R> a, b;
  R a_error, b_error;
};
// The same from wide sums, for many elements of a row.
template <bool Centred>
struct precise_gradient_rule : norm_gradient_rule<Centred> {
  template <class R>
  using numbers = precise_gradient_numbers<R>;
  template <class R>
  static numbers<R> prepare(const row_call& c, const row_operands& o, const late_moments<wide<double>, Centred>& s) {
    using M = math<R>;
    const auto rstd = static_cast<double>(o.g);
    const auto n = arithmetic<wide<double>>::number(static_cast<double>(c.length));
    wide<double> a = arithmetic<wide<double>>::number(0), b = s.products(c.length);
    if constexpr (Centred) {
      const wide<double> sum = s.sum(c.length);
      a = sum;
      divide_by(a, n);
      const dd back = two_prod(a.value.hi, n.value.hi);
      const bool exact = sum.error == 0 && sum.value.lo == 0 && a.value.lo == 0;
      if (exact && back.hi == sum.value.hi && back.lo == 0) a.error = 0;
    }
    multiply_by_value(b, rstd);
    multiply_by_value(b, rstd);
    divide_by(b, n);
    const double lost = b.value.hi == 0 ? 0.0 : 0x1p-1060;
    return {M::all(s.mean),
            M::all(rstd),
            {M::all(a.value.hi), M::all(a.value.lo)},
            {M::all(b.value.hi), M::all(b.value.lo)},
            M::all(a.error + lost),
            M::all(b.error)};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    const double_word<R> t = two_sum(x[0] * x[2], -r.a.hi);
    const double_word<R> d = two_sum(x[1], -r.mean);
    const double_word<R> product = two_prod(d.hi, r.b.hi);
    const double_word<R> s = two_sum(t.hi, -product.hi);
    const R first = d.hi * r.b.lo, second = d.lo * r.b.hi;
    const R rest = ((s.lo + t.lo) - product.lo) - (r.a.lo + (first + second));
    const R v = (s.hi + rest) + 0.0;
    const R size = ((magnitude_of(s.lo) + magnitude_of(t.lo)) + magnitude_of(product.lo)) +
                   (magnitude_of(r.a.lo) + (magnitude_of(first) + magnitude_of(second)));
    const R known = math<R>::muladd(magnitude_of(d.hi), (1 + 0x1p-40) * r.b_error, (1 + 0x1p-40) * r.a_error);
    const R f = (0x1p-50 * size + 0x1p-105 * magnitude_of(product.hi)) + (known + 0x1p-51 * magnitude_of(v));
    return verdict_of<T, R>({r.rstd * (v - f), r.rstd * (v + f)});
  }
};
template <>
struct row_rule<ops::op_id::layer_norm_backward> : norm_gradient_rule<true> {};
template <>
struct row_rule<ops::op_id::rms_norm_backward> : norm_gradient_rule<false> {};

// ------------------------------------------------------------------------------------------------------------ to a weight

// Of products of x[0] and Rule::factor, which is off by 2 u of itself at most.
template <class R, class Rule>
struct weight_gradient_sum {
  signed_sum<R, true> sum;
  REPDL_HD void add(const R* x, R top, R) { sum.add_product(x[0], Rule::template factor<R>(x, top)); }
  REPDL_HD void merge(const weight_gradient_sum& o) { sum.merge(o.sum); }
  REPDL_HD const signed_sum<R, true>& of_row() const { return sum; }
  weight_gradient_sum<double, Rule> lane(int l) const { return {sum.lane(l)}; }
};
struct weight_gradient_total : signed_total {
  using signed_total::join;
  template <class Rule>
  REPDL_HD void join(const weight_gradient_sum<double, Rule>& s) {
    join(s.sum);
  }
  template <class R>
  REPDL_HD signed_sum<R, true> of_row() const {
    return signed_total::of_row<R, true>();
  }
};

template <class R>
struct weight_gradient_numbers {
  R value, error;
  REPDL_HD num::ends<R> ends() const { return {value - error, value + error}; }
};

template <class A>
struct late_weight_gradient;
template <class R>
struct late_weight_gradient<wide<R>> {
  R plain{};
  wide_sum<R> sum;

  REPDL_HD void start(R) {}
  REPDL_HD void add(R g, R x, R mean, R rstd) {
    const double_word<R> d = two_sum(x, -mean);
    const double_word<R> product = mul(d, g * rstd);
    const R zero{};
    const R lost = 0x1p-103 * magnitude_of(product.hi);
    plain += g * ((x - mean) * rstd);
    sum.add(product, d.lo == 0.0 ? zero : lost);
  }
  REPDL_HD void add(R g, R x, R rstd) { add(g, x, R{}, rstd); }
  REPDL_HD void merge(const late_weight_gradient& o) {
    plain += o.plain;
    sum.merge(o.sum);
  }
  late_weight_gradient<wide<double>> lane(int l) const { return {plain[l], num::lane(sum, l)}; }
  REPDL_HD wide<R> value(std::int64_t n) const { return sum.total(n); }
};
template <int L>
struct late_weight_gradient<ball<L>> {
  double plain = 0;
  exact_accumulator<float, 3> sum;

  REPDL_HD void start(double) {}
  REPDL_HD void add(double g, double x, double mean, double rstd) {
    const double term = g * ((x - mean) * rstd);
    plain += term;
    if (!is_finite(term)) return;
    sum.add_product(static_cast<float>(g), static_cast<float>(x), static_cast<float>(rstd));
    sum.add_product(-static_cast<float>(g), static_cast<float>(mean), static_cast<float>(rstd));
  }
  REPDL_HD void add(double g, double x, double rstd) { add(g, x, 0.0, rstd); }
  REPDL_HD void merge(const late_weight_gradient& o) {
    plain += o.plain;
    sum.merge(o.sum);
  }
  REPDL_HD ball<L> value(std::int64_t) const { return arithmetic<ball<L>>::of_limbs(limbs_of_sum<L>(sum)); }
};

template <bool Centred>
struct norm_weight_rule : plain_rule {
  // g, x, mean, rstd
  static constexpr row_inputs inputs = {{0, 1, 2, Centred ? 3 : -1}};
  static constexpr int summed = Centred ? 4 : 3;
  static constexpr int required = summed;
  static constexpr int formatted = 2;
  static constexpr bool per_element = false;
  static constexpr int results = 1;
  static constexpr int exact_limbs = 16;

  static row_bounds bounds(std::int64_t, std::int64_t height, std::int64_t) {
    return {0, 0, 0, static_cast<double>(height + 6) * 0x1p-53};
  }
  template <class R>
  REPDL_HD static R term(const R* x, R) {
    return x[0];
  }
  template <class R>
  REPDL_HD static R factor(const R* x, R) {
    return Centred ? (x[1] - x[2]) * x[3] : x[1] * x[2];
  }
  template <class R>
  using sums = weight_gradient_sum<R, norm_weight_rule>;
  using total = weight_gradient_total;
  template <class R>
  using numbers = weight_gradient_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>&, R, const signed_sum<R, true>& s) {
    const R value = s.lowest() + 0.0;
    return {value, s.error(c.bounds.sum * (1 + 0x1p-10)) + 0x1p-51 * magnitude_of(value)};
  }
  template <class R>
  REPDL_HD static ends<R> result(const row_call&, const numbers<R>& r, R, int) {
    return r.ends();
  }
  template <class A>
  using late = late_weight_gradient<A>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands&, const late<A>& s, const float*,
                                   int) {
    if (!is_finite(s.plain)) return {canonical(static_cast<float>(s.plain)), true};
    const A sum = s.value(c.length);
    return is_zero(sum) ? certified{0.0f, true} : round_to(to, sum);
  }
};
template <>
struct row_rule<ops::op_id::layer_norm_weight_backward> : norm_weight_rule<true> {};
template <>
struct row_rule<ops::op_id::rms_norm_weight_backward> : norm_weight_rule<false> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
