// batch_norm with given statistics, and its gradients, as rules (rule.hpp). With M and W the running mean and variance of the row,
// d = x - M and V = W + eps:
//     y = d w / sqrt(V) + b,   grad_x = g w / sqrt(V),   grad_weight = (sum of g d) / sqrt(V).
//
// Tier binary64. u = 2^-53, h the height of the sum, |S|* its sum of magnitudes.
//     1 / sqrt(V)     V is off by u of itself, half of which is left by the root, which is off by 2 u: 3 u of itself
//     y               as of layer_norm (norm.hpp) without sums: |w z| 12 u + 4 u |y|, the sign of d being exact
//     grad_x          g w is exact; a product: 4 u of itself
//     grad_weight     (h + 3) u |S|* for the sum (signed_sum): u for d, u for the product; 4 u of itself for the rest
// Nothing over- or underflows: 1 / sqrt(V) is in [2^-101, 2^101], or in [2^-64, 2^75] without eps, everything else as in norm.hpp.
//
// Late tiers: the formulas, their signs of y - t as of layer_norm. Bits: d 278, times w 555, squared 1110; the sum of g d 617
// (multiples of 2^-298 below 2^(257 + 62)), squared 1234; V 453 (2^-252 to 2^201), (b - t)^2 556, their product 1009. 24 limbs have 1536.
//
// What has no number as its V, or no positive one, is NaN or known from signs.
#pragma once

#include "librepdl/ops/rows/norm_backward.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Nothing is summed up.
template <class R>
struct no_sums {
  R nothing{};

  REPDL_HD void add(const R*, R, R) {}
  REPDL_HD void merge(const no_sums&) {}
  REPDL_HD no_sums of_row() const { return {}; }
  no_sums<double> lane(int) const { return {}; }
};
struct no_total {
  double nothing = 0;

  template <class Part>
  REPDL_HD void join(const Part&) {}
  template <class R>
  REPDL_HD no_sums<R> of_row() const {
    return {};
  }
};
template <class R>
struct no_late_sums {
  R top{};

  REPDL_HD void start(R t) { top = t; }
  REPDL_HD void add(R) {}
  REPDL_HD void merge(const no_late_sums&) {}
  no_late_sums<double> lane(int l) const { return {top[l]}; }
};

// What all of them have; g is W.
struct given_statistics : plain_rule {
  static constexpr int exact_limbs = 24;

  static row_bounds bounds(std::int64_t, std::int64_t height, std::int64_t) {
    return {0, 0, 0, static_cast<double>(height + 6) * 0x1p-53};
  }
  REPDL_HD static double spread(const row_call& c, const row_operands& o) {
    return (static_cast<double>(o.g) + c.eps) + 0.0;  // -0 counts as 0
  }
  // The root of a number below 0, or of NaN.
  REPDL_HD static row_class classify(const row_call& c, const row_operands& o, float) {
    return {!(spread(c, o) >= 0), float_of(canonical_nan_f32)};
  }
  // V in an arithmetic.
  template <class A>
  REPDL_HD static A exact_spread(const row_call& c, const row_operands& o) {
    A v = arithmetic<A>::number(static_cast<double>(o.g));
    add_value(v, c.eps);
    return v;
  }
  // v >= 0 a number whose root divides, and is not 0.
  REPDL_HD static bool divides(double v) { return v > 0 && is_finite(v); }
};

// Of elements of which nothing is summed up: binary64 may be told to decide nothing, by infinite bounds.
template <class R>
REPDL_HD R reciprocal_root_of_spread(const row_call& c, R g) {
  return row_math<R>::reciprocal_root(g + c.eps);
}
REPDL_HD double relative_or_nothing(const row_call& c, double relative) {
  return c.bounds.sum < 1 ? relative : static_cast<double>(infinity);
}

template <>
struct row_rule<ops::op_id::batch_norm_inference> : given_statistics {
  // x, running_mean, running_var, weight, bias
  static constexpr row_look look = row_look::given;
  static constexpr row_inputs inputs = {{0, 3, 4}, 2, -1, 1};
  static constexpr bool others_of_rows = true;
  static constexpr float absent[most_elements] = {0.0f, 1.0f, -0.0f};
  static constexpr bool has_factors = true;
  static constexpr bool has_sums = false;
  using elements = norm_rule<true>;

  template <class R>
  REPDL_HD static R term(const R*, R) {
    return R{};
  }
  template <class R>
  using sums = no_sums<R>;
  using total = no_total;
  template <class R>
  using numbers = norm_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R top, const no_sums<R>&) {
    using M = math<R>;
    const R zero = M::all(0.0);
    const R rstd = reciprocal_root_of_spread(c, own.g);
    const R relative = M::all(relative_or_nothing(c, 0x1.8p-50 * (1 + 0x1p-10)));
    return {zero, zero, top, M::all(-0.0), zero, rstd, relative, zero, M::all(c.biased ? 0.0 : -0.0), zero};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R term) {
    return elements::element<T>(r, x, term);
  }

  template <class A>
  using late = no_late_sums<real_of<A>>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s, const float* x,
                                   int) {
    const auto w = static_cast<double>(x[1]);
    const double b = c.biased ? static_cast<double>(x[2]) : 0.0;
    const double v = spread(c, o);
    const double d = (static_cast<double>(x[0]) - s.top) + 0.0;
    if (!divides(v) || !is_finite(d) || d == 0 || w == 0 || !is_finite(w) || !is_finite(b)) {
      // Of a number d / sqrt(v) only the sign matters.
      const bool is_number = divides(v) && is_finite(d);
      const double z = !is_number ? d / num::sqrt(v) : d > 0 ? 1.0 : d < 0 ? -1.0 : d;
      const double y = z * w;
      return {canonical(static_cast<float>(c.biased ? (y + b) + 0.0 : y)), true};
    }
    A p = arithmetic<A>::number(static_cast<double>(x[0]));
    add_value(p, -s.top);
    multiply_by_value(p, w);
    return round_over_root(to, p, exact_spread<A>(c, o), b);
  }
};

template <>
struct row_rule<ops::op_id::batch_norm_inference_backward> : given_statistics {
  // g, running_var, weight
  static constexpr row_inputs inputs = {{0, 2}, 1};
  static constexpr float absent[most_elements] = {0.0f, 1.0f};
  static constexpr bool has_factors = true;
  static constexpr bool has_sums = false;

  template <class R>
  REPDL_HD static R term(const R*, R) {
    return R{};
  }
  template <class R>
  using sums = no_sums<R>;
  using total = no_total;
  template <class R>
  struct numbers {
    R rstd, relative;
  };
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R, const no_sums<R>&) {
    return {reciprocal_root_of_spread(c, own.g), math<R>::all(relative_or_nothing(c, 0x1p-50))};
  }
  template <class T, class R>
  REPDL_HD static verdict<R> element(const numbers<R>& r, const R* x, R) {
    const R y = (x[0] * x[1]) * r.rstd;
    return quick_within<R>::template of<T>(y, magnitude_of(y) * r.relative, R{});
  }

  template <class A>
  using late = no_late_sums<real_of<A>>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>&, const float* x,
                                   int) {
    const double v = spread(c, o);
    const double t = static_cast<double>(x[0]) * static_cast<double>(x[1]);
    if (!divides(v) || !is_finite(t) || t == 0) {
      const double y = divides(v) ? t : t / num::sqrt(v);
      return {canonical(static_cast<float>(y)), true};
    }
    return round_over_root(to, arithmetic<A>::number(t), exact_spread<A>(c, o), 0.0);
  }
};

// The sum of g d: as that of the gradient of other norms, with rstd = 1.
template <class A>
struct late_deviations {
  using number = real_of<A>;
  number mean{};
  late_weight_gradient<A> all;

  REPDL_HD void start(number top) { mean = top; }
  REPDL_HD void add(number g, number x) { all.add(g, x, mean, number{} + 1.0); }
  REPDL_HD void merge(const late_deviations& o) { all.merge(o.all); }
  late_deviations<wide<double>> lane(int l) const { return {mean[l], all.lane(l)}; }
};
template <>
struct row_rule<ops::op_id::batch_norm_inference_weight_backward> : given_statistics {
  // g, x, running_mean, running_var
  static constexpr row_look look = row_look::given;
  static constexpr row_inputs inputs = {{0, 1}, 3, -1, 2};
  static constexpr int summed = 2;
  static constexpr int required = 2;
  static constexpr bool per_element = false;
  static constexpr int results = 1;

  REPDL_HD static row_class classify(const row_call& c, const row_operands& o, float top) {
    const double v = spread(c, o);
    const bool known = is_finite(static_cast<double>(top)) && v >= 0 && is_finite(v);
    return {!known, float_of(canonical_nan_f32)};
  }
  template <class R>
  REPDL_HD static R term(const R* x, R) {
    return x[0];
  }
  template <class R>
  REPDL_HD static R factor(const R* x, R top) {
    return x[1] - top;
  }
  template <class R>
  using sums = weight_gradient_sum<R, row_rule>;
  using total = weight_gradient_total;
  template <class R>
  using numbers = weight_gradient_numbers<R>;
  template <class R>
  REPDL_HD static numbers<R> prepare(const row_call& c, const row_given<R>& own, R, const signed_sum<R, true>& s) {
    const R rstd = reciprocal_root_of_spread(c, own.g);
    const R y = s.lowest() * rstd + 0.0;
    return {y, s.error(c.bounds.sum * (1 + 0x1p-10)) * rstd + 0x1p-50 * magnitude_of(y)};
  }
  template <class R>
  REPDL_HD static ends<R> result(const row_call&, const numbers<R>& r, R, int) {
    return r.ends();
  }

  template <class A>
  using late = late_deviations<A>;
  template <class A>
  REPDL_HD static certified settle(dtype to, const row_call& c, const row_operands& o, const late<A>& s, const float*,
                                   int) {
    const double v = spread(c, o);  // a number
    const double plain = s.all.plain;
    if (!is_finite(plain)) return {canonical(static_cast<float>(plain / num::sqrt(v))), true};
    const A sum = s.all.value(c.length);
    const int sign = sign_in(sum);
    if (sign == 2) return {0.0f, false};
    if (v == 0 || sign == 0) {
      return {canonical(static_cast<float>(static_cast<double>(sign) / num::sqrt(v))), true};
    }
    return round_over_root(to, sum, exact_spread<A>(c, o), 0.0);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
