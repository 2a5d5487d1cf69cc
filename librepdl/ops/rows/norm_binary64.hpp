// Norms of binary64 and their gradients: wide rules (wide_rule.hpp) of the formulas in norm.hpp, norm_backward.hpp and norm_inference.hpp.
//
// Tier double-double: the formulas in wide numbers, which carry their bounds (num/wide.hpp), of sums of such numbers. What underflows in a
// product is added to its error, and what leaves the range in which quotients and roots are known is undecided (below).
//
// Tier exact: every result is P / sqrt(W) + b, or rational. Of integers, in units that all operands are multiples of,
//     of a row            S = sum x, Q = sum x^2, n S', all exact;  V = n Q - S^2 + n^2 eps = n^2 (v + eps)
//     y                   ((n x - S) w) / sqrt(V) + b             rstd    n / sqrt(V)             (num/exact_root.hpp)
//     mean                S / n
//     running mean        ((1 - q) n M + q S) / n                 running variance    ((1 - q) n (n - 1) W + q V) / (n (n - 1)), eps = 0
//     grad_x              n grad_x = r n g w - r A - r^3 (x - m) B, A = sum g w, B = sum g w (x - m): seven numbers' products at most
//     grad_weight         sum g x r - g m r
//     given statistics    M and W:  (x - M) w / sqrt(W + eps) + b,  g w / sqrt(W + eps),  sum g (x - M) / sqrt(W + eps)
// Words: |S| < 2^(1024 + 62), Q < 2^(2048 + 62), V < 2^(2048 + 124), (n x - S) w < 2^(2048 + 63).
//
// What is not finite is known from signs, as in the other formats.
#pragma once

#include "librepdl/num/exact_root.hpp"
#include "librepdl/ops/rows/norm_inference.hpp"
#include "librepdl/ops/rows/wide_rule.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// --------------------------------------------------------------------------------------------------------- wide numbers

REPDL_HD wide64 root_of_any(const wide64& a) {
  if (!is_in_middle(a.value.hi)) return nothing_known();
  wide64 r = a;
  to_square_root(r);
  return r;
}
// RN(a / sqrt(v) + b).
REPDL_HD_CALL decided64 round_over_root(const wide64& a, const wide64& v, double b) {
  return round_number<double>(add(quotient_of_any(a, root_of_any(v)), wide_of(b)));
}

// What the arithmetic of wide rules is: wide numbers, or exact.
template <class A, class Wide, class Exact>
using wide_or_exact = std::conditional_t<is_wide_number<A>, Wide, Exact>;

// ---------------------------------------------------------------------------------------------------------------- norms

// Of x - c: D and Q; without a mean of x, Q alone.
template <bool Centred>
struct wide_norm_sums {
  double centre;
  wide_sum<double> first;
  wide_sum<double> second;

  REPDL_HD void start(double top) { *this = {top, {}, {}}; }
  REPDL_HD void add(double x) {
    const wide64 d{two_sum(x, -centre), 0.0};
    const wide64 square = product_of_any(d, d);
    if constexpr (Centred) first.add(d.value, 0.0);
    second.add(square.value, square.error);
  }
  REPDL_HD void merge(const wide_norm_sums& o) {
    first.merge(o.first);
    second.merge(o.second);
  }
  // n^2 (v + eps).
  REPDL_HD wide64 spread(std::int64_t n, double eps) const {
    const auto count = static_cast<double>(n);
    const wide64 d = first.total(n);
    const wide64 of_eps = product_of_any(product_of_any(wide_of(eps), count), count);
    return num::add(num::add(product_of_any(second.total(n), count), negated(product_of_any(d, d))), of_eps);
  }
  // n x - S.
  REPDL_HD wide64 deviation(double x, std::int64_t n) const {
    const wide64 d{two_sum(x, -centre), 0.0};
    return num::add(product_of_any(d, static_cast<double>(n)), negated(first.total(n)));
  }
  REPDL_HD wide64 sum(std::int64_t n) const {
    return num::add(product_of_any(wide_of(centre), static_cast<double>(n)), first.total(n));
  }
};
// Of x: S and Q.
template <bool Centred>
struct exact_norm_sums {
  fixed_point<root_quotient::unit, 35> first;
  fixed_point<2 * root_quotient::unit, 68> second;
  special_terms special;

  REPDL_HD void start(double) {}
  REPDL_HD void add(double x) {
    special.add(x);
    if (!is_finite(x)) return;
    if constexpr (Centred) first.add(x);
    second.add_product(x, x);
  }
  REPDL_HD void merge(const exact_norm_sums& o) {
    first.merge(o.first);
    second.merge(o.second);
    special.merge(o.special);
  }
};

// RN(S / n).
REPDL_HD decided64 round_mean(const wide_norm_sums<true>& s, std::int64_t n) {
  const wide64 sum = s.sum(n);
  if (is_zero(sum)) return known_number(0.0);
  return certify_mean<double>(sum.value, sum.error * (1 + 0x1p-10), n);
}

// V of exact sums; of rms_norm without S.
template <bool Centred>
REPDL_HD_CALL void add_spread(root_quotient::quotient_term& v, const exact_norm_sums<Centred>& s, std::int64_t n,
                              double eps) {
  const auto count = static_cast<std::uint64_t>(n);
  add_multiple(v, s.second, product_of(count));
  if constexpr (Centred) subtract_square(v, s.first);
  add(v, product_of(eps, count, count));
}

template <ops::op_id Op, bool Centred>
struct wide_norm_rule : row_rule<Op> {
  template <class A>
  using late = wide_or_exact<A, wide_norm_sums<Centred>, exact_norm_sums<Centred>>;

  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    return {o.length == 0, double_of(format<double>::nan)};
  }
  // y of a z of which only the sign matters, or that is NaN.
  REPDL_HD static decided64 of_sign(const wide_row_given& o, double z, const double* x) {
    const double y = z * x[1];
    if constexpr (Centred) {
      if (o.biased) return known_number(canonical((y + x[2]) + 0.0));
    }
    return known_number(canonical(y));
  }
  REPDL_HD static double bias_of(const wide_row_given& o, const double* x) {
    if constexpr (Centred) {
      if (o.biased) return x[2];
    }
    return 0.0;
  }
  REPDL_HD static double sign_or_zero(int sign, double x) {
    return sign != 0 ? static_cast<double>(sign) : Centred ? 0.0 : x;
  }
  REPDL_HD static bool are_factors(const wide_row_given& o, const double* x) {
    return x[1] != 0 && is_finite(x[1]) && is_finite(bias_of(o, x));
  }

  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* x, int what) {
    const std::int64_t n = o.length;
    const bool is_mean = Centred && what == 1;
    if constexpr (is_wide_number<A>) {
      if constexpr (Centred) {
        if (is_mean) return round_mean(s, n);
      }
      const wide64 v = s.spread(n, o.eps);
      if (sign_in(v) != 1 || !is_in_middle(v.value.hi)) return {0.0, false};
      if (what != 0) return round_over_root(wide_of(static_cast<double>(n)), v, 0.0);
      const wide64 d = s.deviation(x[0], n);
      const int sign = sign_in(d);
      if (sign == 2) return {0.0, false};
      if (sign == 0 || !are_factors(o, x)) return of_sign(o, sign_or_zero(sign, x[0]), x);
      return round_over_root(product_of_any(d, x[1]), v, bias_of(o, x));
    } else {
      if (s.special.any()) {
        return known_number(is_mean ? s.special.template value<double>() : double_of(format<double>::nan));
      }
      if (is_mean) return known_number(s.first.template mean<double>(n));
      root_quotient r;
      add_spread(r.square, s, n, o.eps);
      if (r.square.is_zero()) return known_number(what == 0 ? double_of(format<double>::nan) : infinity);
      const auto count = static_cast<std::uint64_t>(n);
      if (what != 0) {
        add(r.numerator, product_of(count));
        r.split_sign();
        return known_number(r.round());
      }
      auto deviation = s.first;  // without a mean 0
      deviation.negate();
      add(deviation, product_of(x[0], count));
      const int sign = deviation.sign();
      if (sign == 0 || !are_factors(o, x)) return of_sign(o, sign_or_zero(sign, x[0]), x);
      add_multiple(r.numerator, deviation, x[1]);
      r.split_sign();
      r.b = bias_of(o, x);
      return known_number(r.round());
    }
  }
};
template <>
struct wide_rule<ops::op_id::layer_norm> : wide_norm_rule<ops::op_id::layer_norm, true> {
  static constexpr int exact_limbs = 2;
};
template <>
struct wide_rule<ops::op_id::rms_norm> : wide_norm_rule<ops::op_id::rms_norm, false> {
  static constexpr int exact_limbs = 2;
};

template <>
struct wide_rule<ops::op_id::batch_norm_running> : wide_norm_rule<ops::op_id::batch_norm_running, true> {
  using base = wide_norm_rule<ops::op_id::batch_norm_running, true>;

  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* x, int what) {
    if (what < 3) return base::template settle<A>(o, s, x, what);
    const std::int64_t n = o.length;
    const bool is_mean = what == 3;
    const double former = o.former[what - 3];
    const double q = o.momentum;
    const dd rest = two_sum(1.0, -q);
    const auto count = static_cast<double>(n);
    if constexpr (is_wide_number<A>) {
      if (!is_finite(former) || (!is_mean && n == 1)) return {0.0, false};
      wide64 divisor = wide_of(count);
      if (!is_mean) divisor = product_of_any(divisor, count - 1);
      const wide64 of_batch = is_mean ? s.sum(n) : s.spread(n, 0.0);
      const wide64 own = product_of_any(product_of_any(wide64{rest, 0.0}, former), divisor);
      return round_number<double>(quotient_of_any(num::add(own, product_of_any(of_batch, q)), divisor));
    } else {
      const bool is_known = !s.special.any();
      if (!is_known || !is_finite(former) || (!is_mean && n == 1)) {
        const double nan = double_of(format<double>::nan);
        const double of_sum = is_known ? 0.0 : s.special.template value<double>();
        const double of_batch = is_mean ? of_sum : is_known && n != 1 ? 0.0 : nan;
        return known_number(canonical((1 - q) * former + q * of_batch));
      }
      const auto times = static_cast<std::uint64_t>(n);
      if (is_mean) {
        exact_accumulator<double, 2> sum;
        add_multiple(sum, s.first, product_of(q));
        add(sum, product_of(rest.hi, former, times));
        add(sum, product_of(rest.lo, former, times));
        return known_number(sum.template mean<double>(n));
      }
      root_quotient::quotient_term v;
      add_spread(v, s, n, 0.0);
      exact_accumulator<double, 3> sum;
      add_multiple(sum, v, product_of(q));
      add(sum, product_of(rest.hi, former, times, times - 1));
      add(sum, product_of(rest.lo, former, times, times - 1));
      fixed_point<0, 3> divisor;
      add(divisor, product_of(times, times - 1));
      return known_number(round_quotient<double>(sum, divisor));
    }
  }
  static constexpr int exact_limbs = 2;
};

// ------------------------------------------------------------------------------------------------------------ gradients

// Of a number its sign, what is not finite as it is.
REPDL_HD double sign_of_any(double x) { return !is_finite(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
// x - m, m finite, likewise.
REPDL_HD double sign_of_difference(double x, double m) { return !is_finite(x) ? x : x > m ? 1.0 : x < m ? -1.0 : 0.0; }

// A and B.
struct wide_gradient_sums {
  double mean;
  wide_sum<double> first;
  wide_sum<double> second;

  REPDL_HD void start(double top) { *this = {top, {}, {}}; }
  REPDL_HD void add(double g, double x, double w) {
    const wide64 t = product_of_any(wide_of(g), w);
    const wide64 product = product_of_any(t, wide64{two_sum(x, -mean), 0.0});
    first.add(t.value, t.error);
    second.add(product.value, product.error);
  }
  REPDL_HD void merge(const wide_gradient_sums& o) {
    first.merge(o.first);
    second.merge(o.second);
  }
};
// A and the sum of g w x; what is not finite of the terms of A and B.
struct exact_gradient_sums {
  double mean;
  exact_accumulator<double, 2> first;
  exact_accumulator<double, 3> second;
  special_terms special_first;
  special_terms special_second;

  REPDL_HD void start(double top) { mean = top; }
  REPDL_HD void add(double g, double x, double w) {
    const double t = sign_of_any(g) * sign_of_any(w);
    const double term = t * sign_of_difference(x, mean);
    special_first.add(t);
    special_second.add(term);
    if (!is_finite(t) || !is_finite(term)) return;
    first.add_product(g, w);
    num::add(second, product_of(g, w, x));
  }
  REPDL_HD void merge(const exact_gradient_sums& o) {
    first.merge(o.first);
    second.merge(o.second);
    special_first.merge(o.special_first);
    special_second.merge(o.special_second);
  }
};

template <ops::op_id Op, bool Centred>
struct wide_norm_gradient_rule : row_rule<Op> {
  static constexpr int exact_limbs = 2;
  template <class A>
  using late = wide_or_exact<A, wide_gradient_sums, exact_gradient_sums>;

  // rstd is g.
  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    return {!is_finite(o.top) || !is_finite(o.g), double_of(format<double>::nan)};
  }
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double* in, int) {
    const double g = in[0];
    const double x = in[1];
    const double w = in[2];
    const double r = o.g;
    const std::int64_t n = o.length;
    if constexpr (is_wide_number<A>) {
      if (r == 0) return {0.0, false};
      const auto count = static_cast<double>(n);
      wide64 p = product_of_any(product_of_any(wide_of(g), w), count);
      if constexpr (Centred) p = num::add(p, negated(s.first.total(n)));
      const wide64 h = product_of_any(product_of_any(wide64{two_sum(x, -s.mean), 0.0}, r), r);
      p = num::add(p, negated(product_of_any(h, s.second.total(n))));
      const int sign = sign_in(p);
      if (sign == 2) return {0.0, false};
      if (sign == 0) return known_number(zero_of_sign(sign_bit(r)));
      return round_number<double>(quotient_of_any(product_of_any(p, r), wide_of(count)));
    } else {
      if (s.special_first.any() || s.special_second.any()) {
        const double first = s.special_first.any() ? s.special_first.template value<double>() : 0.0;
        const double second = s.special_second.any() ? s.special_second.template value<double>() : 0.0;
        const double h = sign_of_difference(x, s.mean) * sign_of_any(r);
        const double t = sign_of_any(g) * sign_of_any(w) - (Centred ? first : 0.0);
        return known_number(canonical(sign_of_any(r) * (t - h * (second * sign_of_any(r)))));
      }
      const auto count = static_cast<std::uint64_t>(n);
      if (r == 0) {  // a zero of the sign that n t - A gives it
        exact_accumulator<double, 2> p;
        if constexpr (Centred) add_multiple(p, s.first, -1.0);
        add(p, product_of(g, w, count));
        return known_number(zero_of_sign((p.sign() < 0) != sign_bit(r)));
      }
      exact_accumulator<double, 7> p;
      add(p, product_of(r, g, w, count));
      add_multiple(p, s.second, product_of(-r, r, r, x));
      if constexpr (Centred) {
        const double m = s.mean;
        add_multiple(p, s.first, product_of(-r));
        add_multiple(p, s.second, product_of(r, r, r, m));
        add_multiple(p, s.first, product_of(r, r, r, x, m));
        add_multiple(p, s.first, product_of(-r, r, r, m, m));
      }
      if (p.is_zero()) return known_number(zero_of_sign(sign_bit(r)));
      return known_number(p.template mean<double>(n));
    }
  }
};
template <>
struct wide_rule<ops::op_id::layer_norm_backward> : wide_norm_gradient_rule<ops::op_id::layer_norm_backward, true> {};
template <>
struct wide_rule<ops::op_id::rms_norm_backward> : wide_norm_gradient_rule<ops::op_id::rms_norm_backward, false> {};

// The sum of g (x - m) r.
struct wide_weight_gradient_sum {
  wide_sum<double> sum;

  REPDL_HD void start(double) { sum = {}; }
  REPDL_HD void add(double g, double x, double mean, double rstd) {
    const wide64 term = product_of_any(product_of_any(wide_of(g), rstd), wide64{two_sum(x, -mean), 0.0});
    sum.add(term.value, term.error);
  }
  REPDL_HD void add(double g, double x, double rstd) { add(g, x, 0.0, rstd); }
  REPDL_HD void merge(const wide_weight_gradient_sum& o) { sum.merge(o.sum); }
};
struct exact_weight_gradient_sum {
  exact_accumulator<double, 3> sum;
  special_terms special;

  REPDL_HD void start(double) {}
  REPDL_HD void add(double g, double x, double mean, double rstd) {
    const double d = is_finite(mean) ? sign_of_difference(x, mean) : sign_of_any(x) - mean;
    const double term = sign_of_any(g) * (d * sign_of_any(rstd));
    special.add(term);
    if (!is_finite(term)) return;
    num::add(sum, product_of(g, x, rstd));
    num::add(sum, product_of(-g, mean, rstd));
  }
  REPDL_HD void add(double g, double x, double rstd) { add(g, x, 0.0, rstd); }
  REPDL_HD void merge(const exact_weight_gradient_sum& o) {
    sum.merge(o.sum);
    special.merge(o.special);
  }
};
template <ops::op_id Op>
struct wide_norm_weight_rule : row_rule<Op> {
  static constexpr int exact_limbs = 2;
  template <class A>
  using late = wide_or_exact<A, wide_weight_gradient_sum, exact_weight_gradient_sum>;

  REPDL_HD static row_class64 classify(const wide_row_given&) { return {false, 0.0}; }
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double*, int) {
    if constexpr (is_wide_number<A>) {
      return round_number<double>(s.sum.total(o.length));
    } else {
      return known_number(s.special.any() ? s.special.template value<double>() : s.sum.template round<double>());
    }
  }
};
template <>
struct wide_rule<ops::op_id::layer_norm_weight_backward>
    : wide_norm_weight_rule<ops::op_id::layer_norm_weight_backward> {};
template <>
struct wide_rule<ops::op_id::rms_norm_weight_backward> : wide_norm_weight_rule<ops::op_id::rms_norm_weight_backward> {};

// ----------------------------------------------------------------------------------------------------- given statistics

// The running mean is top, the running variance g.
template <ops::op_id Op>
struct wide_given_rule : row_rule<Op> {
  static constexpr int exact_limbs = 2;

  // W + eps, of which only the sign matters, and whether it is a number; -0 counts as 0.
  REPDL_HD static double spread_of(const wide_row_given& o) { return (o.g + o.eps) + 0.0; }
  REPDL_HD static bool divides(double v) { return v > 0 && is_finite(v); }
  REPDL_HD static wide64 wide_spread(const wide_row_given& o) { return {two_sum(o.g, o.eps), 0.0}; }
  REPDL_HD static void add_spread(root_quotient& r, const wide_row_given& o) {
    r.square.add(o.g);
    r.square.add(o.eps);
  }
  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    return {!(spread_of(o) >= 0), double_of(format<double>::nan)};
  }
};
// Nothing is summed up.
struct no_wide_sums {
  double nothing;

  REPDL_HD void start(double) { nothing = 0; }
  REPDL_HD void add(double) {}
  REPDL_HD void merge(const no_wide_sums&) {}
};

template <>
struct wide_rule<ops::op_id::batch_norm_inference> : wide_given_rule<ops::op_id::batch_norm_inference> {
  template <class>
  using late = no_wide_sums;

  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const no_wide_sums&, const double* x, int) {
    const double v = spread_of(o);
    const double w = x[1];
    const double b = o.biased ? x[2] : 0.0;
    // The sign of x - M, or what it is where that is not finite.
    const double d = is_finite(o.top) ? sign_of_difference(x[0], o.top) : sign_of_any(x[0]) - o.top;
    if (!divides(v) || !is_finite(d) || d == 0 || w == 0 || !is_finite(w) || !is_finite(b)) {
      const double y = (divides(v) && is_finite(d) ? d : d / num::sqrt(v)) * w;
      return known_number(canonical(o.biased ? (y + b) + 0.0 : y));
    }
    if constexpr (is_wide_number<A>) {
      return round_over_root(product_of_any(wide64{two_sum(x[0], -o.top), 0.0}, w), wide_spread(o), b);
    } else {
      root_quotient r;
      add_spread(r, o);
      add(r.numerator, product_of(x[0], w));
      add(r.numerator, product_of(-o.top, w));
      r.split_sign();
      r.b = b;
      return known_number(r.round());
    }
  }
};

template <>
struct wide_rule<ops::op_id::batch_norm_inference_backward>
    : wide_given_rule<ops::op_id::batch_norm_inference_backward> {
  template <class>
  using late = no_wide_sums;

  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const no_wide_sums&, const double* x, int) {
    const double v = spread_of(o);
    const double t = sign_of_any(x[0]) * sign_of_any(x[1]);
    if (!divides(v) || !is_finite(t) || t == 0) {
      return known_number(canonical(divides(v) ? t : t / num::sqrt(v)));
    }
    if constexpr (is_wide_number<A>) {
      return round_over_root(product_of_any(wide_of(x[0]), x[1]), wide_spread(o), 0.0);
    } else {
      root_quotient r;
      add_spread(r, o);
      add(r.numerator, product_of(x[0], x[1]));
      r.split_sign();
      return known_number(r.round());
    }
  }
};

// The sum of g (x - M), which is finite.
struct wide_deviations {
  double mean;
  wide_sum<double> sum;

  REPDL_HD void start(double top) { *this = {top, {}}; }
  REPDL_HD void add(double g, double x) {
    const wide64 term = product_of_any(wide_of(g), wide64{two_sum(x, -mean), 0.0});
    sum.add(term.value, term.error);
  }
  REPDL_HD void merge(const wide_deviations& o) { sum.merge(o.sum); }
};
struct exact_deviations {
  double mean;
  root_quotient::quotient_term sum;
  special_terms special;

  REPDL_HD void start(double top) { mean = top; }
  REPDL_HD void add(double g, double x) {
    const double term = sign_of_any(g) * sign_of_difference(x, mean);
    special.add(term);
    if (!is_finite(term)) return;
    sum.add_product(g, x);
    sum.add_product(-g, mean);
  }
  REPDL_HD void merge(const exact_deviations& o) {
    sum.merge(o.sum);
    special.merge(o.special);
  }
};
template <>
struct wide_rule<ops::op_id::batch_norm_inference_weight_backward>
    : wide_given_rule<ops::op_id::batch_norm_inference_weight_backward> {
  template <class A>
  using late = wide_or_exact<A, wide_deviations, exact_deviations>;

  REPDL_HD static row_class64 classify(const wide_row_given& o) {
    const double v = spread_of(o);
    return {!(is_finite(o.top) && v >= 0 && is_finite(v)), double_of(format<double>::nan)};
  }
  template <class A>
  REPDL_HD static decided64 settle(const wide_row_given& o, const late<A>& s, const double*, int) {
    const double v = spread_of(o);
    if constexpr (is_wide_number<A>) {
      const wide64 sum = s.sum.total(o.length);
      const int sign = sign_in(sum);
      if (sign == 2) return {0.0, false};
      if (sign == 0 || v == 0) return known_number(canonical(static_cast<double>(sign) / num::sqrt(v)));
      return round_over_root(sum, wide_spread(o), 0.0);
    } else {
      if (s.special.any()) return known_number(canonical(s.special.template value<double>() / num::sqrt(v)));
      const int sign = s.sum.sign();
      if (sign == 0 || v == 0) return known_number(canonical(static_cast<double>(sign) / num::sqrt(v)));
      root_quotient r;
      add_spread(r, o);
      r.numerator = s.sum;
      r.split_sign();
      return known_number(r.round());
    }
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
