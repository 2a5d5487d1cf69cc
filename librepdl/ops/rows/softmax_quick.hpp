// The softmax family in binary64: quick rules (quick_rule.hpp), of the formulas and names of softmax_binary64.hpp.
#pragma once

#include "librepdl/num/dd_functions.hpp"
#include "librepdl/ops/rows/quick_rule.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Relative errors of e^d for |d| <= 600, d a double-double: of the quick one, which dd_functions.hpp has bounds of, and of the precise one
// (exponentials.hpp). Scaling by 2^k is exact: e^-600 > 2^-866, and low parts have 2^-980 and more, or are not among the bits that count.
inline constexpr double quick_exp_error = exp_reduced_error + 0x1p-94;
inline constexpr double precise_exp_error = 0x1p-96;
template <bool Precise>
inline constexpr double exp_error = Precise ? precise_exp_error : quick_exp_error;
template <bool Precise>
REPDL_HD dd exp_of(dd d) {
  if constexpr (Precise) {
    return wide_exp(d.hi, d.lo);
  } else {
    const reduced_exponent<double> e = reduce_exponent(d);
    const dd m = exp_reduced<false>(e);
    const double s = power_of(e.k);
    return {m.hi * s, m.lo * s};
  }
}
// e^(x - max) for x <= max, x = -inf included: 0 where the gap is beyond -600, which is off by less than 2^-865.
template <bool Precise>
REPDL_HD dd weight_below(double x, double max) {
  const dd d = two_sum(x, -max);
  const bool is_deep = !(d.hi >= least_gap);
  const dd e = exp_of<Precise>(is_deep ? dd{least_gap, 0.0} : d);
  return {is_deep ? 0.0 : e.hi, is_deep ? 0.0 : e.lo};
}

// A sum of terms that are not negative. An addition loses 3 u^2 of the sum (add_positive), and no number passes more than there are terms and merges,
// which are fewer than terms and 64: of n together less than 2^-103 (2 n + 64), the products of errors included. Deep gaps: 2^-865 each.
struct sum_of_weights {
  dd sum;

  REPDL_HD void add(dd term) {
    const dd s = two_sum(sum.hi, term.hi);
    sum = fast_two_sum(s.hi, s.lo + (sum.lo + term.lo));
  }
  template <bool Precise>
  REPDL_HD wide64 enclosed(std::int64_t n) const {
    const auto terms = static_cast<double>(n);
    const double relative = exp_error<Precise> * (1 + 0x1p-20) + 0x1p-103 * (2 * terms + 64);
    return {sum, relative * sum.hi + 0x1p-864 * terms};
  }
};
// k + rest.
struct quick_weights {
  sum_of_weights all;

  REPDL_HD void start(const wide_row_given&) { all = {}; }
  REPDL_HD void add(const dd& term, const double*) { all.add(term); }
  REPDL_HD void merge(const quick_weights& o) { all.add(o.all.sum); }
};
// k and rest, as exponential_sum has them: a logarithm may be as small as rest.
struct quick_weights_beside_greatest {
  double max;
  double count;
  sum_of_weights rest;

  REPDL_HD void start(const wide_row_given& o) { *this = {o.top, 0.0, {}}; }
  REPDL_HD void add(const dd& term, const double* x) {
    const bool counts = x[0] == max;
    count += counts ? 1.0 : 0.0;
    rest.add({counts ? 0.0 : term.hi, counts ? 0.0 : term.lo});
  }
  REPDL_HD void merge(const quick_weights_beside_greatest& o) {
    count += o.count;
    rest.add(o.rest.sum);
  }
};

template <ops::op_id Op>
struct quick_exponential_rule : row_rule<Op> {
  static constexpr bool keeps_term = true;
  template <bool Precise>
  REPDL_HD static dd term(const wide_row_given& o, const double* x) {
    return weight_below<Precise>(x[0], o.top);  // of the greatest ones 1, exactly
  }
  REPDL_HD static bool needs_operands(const dd& term) { return term.hi == 0; }
};

// g p_i: g / (k + rest) times e^(d_i).
//
// Of itself it errs by what the factor and the term do, and by the product's 8 u^2, together less than their sum (1 + 2^-19); and round_within wants
// 2^-104 more. The factor is between 2^-60 and 2^800, and e^(d_i) > 2^-866: nothing underflows.
// What is deep is 0 where 747 or more are between x_i and m: p_i < e^-747 < 2^-1077; with g 2048 or more (scaled_softmax).
template <ops::op_id Op, bool Scaled>
struct quick_softmax_rule : quick_exponential_rule<Op> {
  using sums = quick_weights;
  struct numbers {
    bool is_known;
    double max;
    double g;
    dd factor;
    double error;  // of the factor, relative
  };
  template <bool Precise>
  REPDL_HD static numbers prepare(const wide_row_given& o, const quick_weights& s) {
    const wide64 sum = s.all.template enclosed<Precise>(o.length);
    wide64 factor = wide_of(Scaled ? o.g : 1.0);
    divide_by(factor, sum);
    const double size = magnitude_of(factor.value.hi);
    const bool is_known = size >= 0x1p-60 && size <= 0x1p800;
    return {is_known, o.top, o.g, factor.value, factor.error / size * (1 + 0x1p-10) + 0x1p-102};
  }
  template <bool Precise>
  REPDL_HD static decided64 element(const numbers& n, const dd& term, const double* x) {
    if (term.hi == 0) {
      return {Scaled ? zero_of_sign(has_sign(n.g)) : 0.0, x[0] - n.max < (Scaled ? -2049.0 : -747.0)};
    }
    const dd p = mul(n.factor, term);
    const decided_lanes<double> r = round_within(p, (n.error + exp_error<Precise>)*(1 + 0x1p-19) + 0x1p-102);
    return {r.value, r.decided};
  }
};
template <>
struct quick_rule<ops::op_id::softmax> : quick_softmax_rule<ops::op_id::softmax, false> {};
template <>
struct quick_rule<ops::op_id::logsumexp_backward> : quick_softmax_rule<ops::op_id::logsumexp_backward, true> {};

// R = ln(k + rest), if it is not tiny, and known.
template <ops::op_id Op>
struct quick_logarithm_rule : quick_exponential_rule<Op> {
  using sums = quick_weights_beside_greatest;
  struct numbers {
    bool is_known;
    double max;
    wide64 log;
  };
  template <bool Precise>
  REPDL_HD static numbers prepare(const wide_row_given& o, const sums& s) {
    const wide64 log =
        logarithm_of(exponential_sum<wide64, double>{s.max, s.count, s.rest.template enclosed<Precise>(o.length)});
    return {log.value.hi >= 0x1p-700 && log.error <= 0x1p-40 * log.value.hi, s.max, log};
  }
};
// d_i - R, both of one sign: R's error, and 3 u^2 of the sum. x_i = -inf: it.
template <>
struct quick_rule<ops::op_id::log_softmax> : quick_logarithm_rule<ops::op_id::log_softmax> {
  static constexpr bool keeps_term = false;
  template <bool>
  REPDL_HD static decided64 element(const numbers& n, const dd&, const double* x) {
    const dd v = add(two_sum(x[0], -n.max), dd{-n.log.value.hi, -n.log.value.lo});
    if (x[0] == -infinity) return known_number(x[0]);
    return round_enclosed(v, n.log.error * (1 + 0x1p-10) + 0x1p-103 * magnitude_of(v.hi));
  }
};
// m + R.
template <>
struct quick_rule<ops::op_id::logsumexp> : quick_logarithm_rule<ops::op_id::logsumexp> {
  REPDL_HD static decided64 result(const wide_row_given&, const numbers& n, const sums&, int) {
    return round_number<double>(add(wide_of(n.max), n.log));
  }
};

// -------------------------------------------------------------------------------------------------------------- gradients

// y_i (g_i - P), P the sum of g_j y_j. Of the difference: P's error and 2 u^2 of itself; of the product 8 u^2 and |y_i| times that, where it does not
// underflow.
template <>
struct quick_rule<ops::op_id::softmax_backward> : row_rule<ops::op_id::softmax_backward> {
  static constexpr bool keeps_term = false;
  REPDL_HD static dd term(const wide_row_given&, const double* x) { return two_prod(x[0], x[1]); }
  struct sums {
    wide_sum<double> products;
    REPDL_HD void start(const wide_row_given&) { products = {}; }
    REPDL_HD void add(const dd& term, const double* x) {
      const bool is_exact = magnitude_of(term.hi) >= 0x1p-900 || x[0] == 0 || x[1] == 0;
      products.add(term, is_exact ? 0.0 : 0x1p-1070);
    }
    REPDL_HD void merge(const sums& o) { products.merge(o.products); }
  };
  struct numbers {
    bool is_known;
    dd sum;
    double error;
  };
  REPDL_HD static numbers prepare(const wide_row_given& o, const sums& s) {
    const wide64 p = s.products.total(o.length);
    return {magnitude_of(p.value.hi) <= 0x1p960 && p.error <= 0x1p900, p.value, p.error * (1 + 0x1p-10)};
  }
  REPDL_HD static decided64 element(const numbers& n, const dd&, const double* x) {
    const double y = x[1];
    const dd difference = add(dd{-n.sum.hi, -n.sum.lo}, x[0]);
    const double size = magnitude_of(difference.hi);
    const double error = n.error + 0x1p-104 * size;
    if (y == 0) return {zero_of_sign(has_sign(y) != has_sign(difference.hi)), 2 * error < size};
    const dd v = mul(difference, y);
    const decided64 r = round_enclosed(v, (magnitude_of(y) * error + 0x1p-102 * magnitude_of(v.hi)) * (1 + 0x1p-20));
    return {r.value, r.decided && size <= 0x1p960 && magnitude_of(v.hi) >= 0x1p-900};
  }
};

// g_i - e^(y_i) G, G the sum of g_j. y_i = -inf: g_i. Of the product: e^(y_i) times G's error, its own error times G, and 8 u^2; of the difference 3 u^2 of
// itself.
template <>
struct quick_rule<ops::op_id::log_softmax_backward> : row_rule<ops::op_id::log_softmax_backward> {
  static constexpr bool keeps_term = false;
  REPDL_HD static dd term(const wide_row_given&, const double* x) { return {x[0], 0.0}; }
  struct sums {
    wide_sum<double> gradients;
    REPDL_HD void start(const wide_row_given&) { gradients = {}; }
    REPDL_HD void add(const dd& term, const double*) { gradients.add(term.hi); }
    REPDL_HD void merge(const sums& o) { gradients.merge(o.gradients); }
  };
  struct numbers {
    bool is_known;
    dd sum;
    double error;
  };
  REPDL_HD static numbers prepare(const wide_row_given& o, const sums& s) {
    const wide64 g = s.gradients.total(o.length);
    return {magnitude_of(g.value.hi) <= 0x1p90 && magnitude_of(g.value.hi) >= 0x1p-90, g.value,
            g.error * (1 + 0x1p-10)};
  }
  REPDL_HD static decided64 element(const numbers& n, const dd&, const double* x) {
    const double y = x[1];
    const bool is_known = magnitude_of(y) <= -least_gap;
    const dd e = exp_of<false>({is_known ? y : 0.0, 0.0});
    const dd product = mul(e, n.sum);
    const dd v = add(dd{-product.hi, -product.lo}, dd{x[0], 0.0});
    if (y == -infinity) return known_number(x[0] + 0.0);
    const double error = (e.hi * n.error + (quick_exp_error + 0x1p-102) * magnitude_of(product.hi)) * (1 + 0x1p-20) +
                         0x1p-103 * magnitude_of(v.hi);
    const decided64 r = round_enclosed(v, error);
    return {r.value, r.decided && is_known};
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
