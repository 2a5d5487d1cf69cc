// The loss of the elements at targets, nll_loss, and its gradient: f16, bf16, binary32; below what is another thing in binary64.
//
// Of a sample with target t it is -w_t x_t: a product of 48 bits, 0 or in [2^-298, 2^256), a binary64 number. So is -g w_t; divided by W,
// a binary32 number, quotient_to_odd has RO of it (sums.hpp: why that rounds as the quotient does).
//
// A sum over samples is -P, P the sum of w_t x_t, a mean -P / W, W the sum of w_t. Both are added up in binary64, compensated:
// P = p + d, |d| <= e, and W = w + d', |d'| <= e' (rounded_compensated_bound: p and w are rounded). Then
//     P / W - p / w = (d - d' p / w) / W,   of magnitude at most (e + e' |p / w|) / (|w| - e').
// q = fl(p / w) errs by u |q|, certify's (C) wants as much again, and the bound itself takes four roundings: 2^-50 |q| and the factor 1
// + 2^-40 cover them. p is 0 or a multiple of 2^-298 below 2^319, w one of 2^-149 below 2^191: nothing overflows or underflows.
// Sums of ones are exact, below 2^53.
// What that leaves undecided is decided by exact sums: P and W as balls of 1024 bits, and m W for a midpoint m in P - m W, bits 2^-299 to
// 2^319.
//
// Binary64. -w_t x_t is IEEE 754's product. -g w_t / W is a quotient of integers of 106 and 53 bits, which are divided bit by bit
// (fixed_point.hpp). Sums: products with their errors (two_prod), compensated, P = p + d in double-double, W likewise
// (wide_compensated_bound); p / w is off by 16 u^2 (dd.hpp) and by what d and d' bring, as above: 2^-100 |q| = 64 u^2 |q| and the factor 1
// + 2^-40 cover the roundings, where q is in the middle (certify.hpp). Exactly: the integers P and W, divided bit by bit.
//
// Checked by tests/losses/nll_test.cpp.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/formula.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// What a sample has at its target: nothing where it is ignored, NaN where there is no such class.
enum class nll_target { ignored, present, absent };
REPDL_HD nll_target kind_of_target(std::int64_t target, std::int64_t ignored, std::int64_t classes) {
  if (target == ignored) return nll_target::ignored;
  return target >= 0 && target < classes ? nll_target::present : nll_target::absent;
}

// The sum of the weights is of binary32, in binary64 of that.
template <class T>
using nll_weight = std::conditional_t<std::is_same_v<T, double>, double, float>;

// RN(-a w).
template <class T>
REPDL_HD T nll_product(double a, double w) {
  return narrow<T>(-(a * w));
}
// RN(-g w / total).
REPDL_HD double wide_nll_quotient(double g, double w, double total) {
  const double special = -(as_factor(g) * as_factor(w)) / as_factor(total);
  if (special == 0 || !is_finite(special)) return narrow<double>(special);
  const integral_parts a = decompose(g), b = decompose(w), c = decompose(total);
  fixed_point<0, 2> product, divisor;
  std::uint64_t high = 0;
  const std::uint64_t low = multiply_wide(a.significand, b.significand, &high);
  product.add_scaled(low, 0, false);
  product.add_scaled(high, 64, false);
  divisor.add_scaled(c.significand, 0, false);
  if (special < 0) product.negate();
  return round_quotient<double>(product, divisor, a.exponent + b.exponent - c.exponent);
}
template <class T>
REPDL_HD T nll_quotient(double g, double w, double total) {
  if constexpr (std::is_same_v<T, double>) {
    return wide_nll_quotient(g, w, total);
  } else {
    return narrow<T>(quotient_to_odd(-(g * w), total));
  }
}

struct nll_sum {
  measured_sum products;
  measured_sum weights;

  template <class T>
  REPDL_HD void add(double x, double w) {
    if constexpr (std::is_same_v<T, double>) {
      const dd p = two_prod(x, w);
      products.add_term(p.hi);
      products.lo += p.lo;
    } else {
      products.add_term(x * w);
    }
    weights.add_term(w);
  }
  REPDL_HD void merge(const nll_sum& o) {
    products.merge(o.products);
    weights.merge(o.weights);
  }
};

// How the sums are used.
struct nll_total {
  bool mean;
  bool weighted;        // else the weights are ones
  bool force;           // binary64 decides nothing
  std::int64_t height;  // of its additions
  std::int64_t count;   // of its terms, at most
};

template <class T>
requires std::is_same_v<T, double> REPDL_HD decided_value<T> certify_nll(const nll_sum& s, const nll_total& t) {
  const dd p = two_sum(-s.products.hi, -s.products.lo);
  const double p_error = wide_compensated_bound(t.height, s.products.magnitude, t.count);
  const dd w = two_sum(s.weights.hi, s.weights.lo);
  if (t.force || !(p_error < 0x1p900) || !is_in_middle(p.hi) || !is_in_middle(w.hi)) return {0.0, false};
  if (!t.mean) return certify<double>(p, p_error);
  const double w_error = t.weighted ? wide_compensated_bound(t.height, s.weights.magnitude, 0) : 0.0;
  const dd q = div(p, w);
  const double left = magnitude_of(w.hi) * (1 - 0x1p-50) - w_error;
  const double e = (p_error + 2 * magnitude_of(q.hi) * w_error) / left * (1 + 0x1p-40) + 0x1p-100 * magnitude_of(q.hi);
  if (!(left > 0) || !(e < infinity) || !is_in_middle(q.hi)) return {0.0, false};
  return certify<double>(q, e);
}
template <class T>
requires(!std::is_same_v<T, double>) REPDL_HD decided_value<T> certify_nll(const nll_sum& s, const nll_total& t) {
  const double p = s.products.hi + s.products.lo;
  const double p_error = rounded_compensated_bound(t.height, s.products.magnitude) + (t.force ? infinity : 0.0);
  if (!t.mean) {
    const double hi = s.products.hi;
    if (!is_finite(hi)) return {narrow<T>(-hi), true};
    return certify<T>(-p, p_error);
  }
  const double w = s.weights.hi + s.weights.lo;
  const double w_error = t.weighted ? rounded_compensated_bound(t.height, s.weights.magnitude) : 0.0;
  const double left = magnitude_of(w) - w_error;
  const double q = -(p / w);
  const double e = (p_error + magnitude_of(q) * w_error) / left * (1 + 0x1p-40) + 0x1p-50 * magnitude_of(q);
  const decided_value<T> r = same_bits(rounded<T>(q - e), rounded<T>(q + e));
  return {r.value, r.decided && left > 0 && is_finite(q) && is_finite(e)};
}
template <class W>
REPDL_HD decided_value<W> certify_weights(const nll_sum& s, const nll_total& t) {
  const double w = s.weights.hi;
  if constexpr (std::is_same_v<W, double>) {
    const double error = t.weighted ? wide_compensated_bound(t.height, s.weights.magnitude, 0) : 0.0;
    if (t.force || !(error < infinity) || !is_in_middle(w)) return {0.0, false};
    return certify<W>(two_sum(w, s.weights.lo), error);
  } else {
    if (!is_finite(w)) return {narrow<W>(w), true};
    const double error = t.weighted ? rounded_compensated_bound(t.height, s.weights.magnitude) : 0.0;
    return certify<W>(w + s.weights.lo, error + (t.force ? infinity : 0.0));
  }
}

template <class W>
struct exact_nll_sum {
  exact_sum<W, 2> products;
  exact_sum<W, 1> weights;

  REPDL_HD void add(W x, W w) {
    products.add_product(-x, w);
    weights.add(w);
  }
  REPDL_HD void merge(const exact_nll_sum& o) {
    products.merge(o.products);
    weights.merge(o.weights);
  }
};
// Beside an infinite sum, or a divisor 0, a sum counts as -1, 0 or 1.
template <class Sum>
REPDL_HD double infinity_or_sign(const Sum& s) {
  return s.special.any() ? widen(s.special.template value<float>()) : static_cast<double>(s.finite.sign());
}
template <class T>
REPDL_HD_CALL decided_value<T> round_nll(const exact_nll_sum<nll_weight<T>>& s, bool mean) {
  if (!mean) return {s.products.template round<T>(), true};
  const double p = infinity_or_sign(s.products);
  const double w = infinity_or_sign(s.weights);
  if (s.products.special.any() || s.weights.special.any() || w == 0) {
    const double q = p / w;
    return {narrow<T>(q == 0 ? 0.0 : q), true};
  }
  if constexpr (std::is_same_v<T, double>) {
    auto numerator = s.products.finite;
    auto denominator = s.weights.finite;
    if (w < 0) {
      numerator.negate();
      denominator.negate();
    }
    return {round_quotient<double>(numerator, denominator), true};
  } else {
    constexpr int limbs = 16;
    ball<limbs> numerator = exact_ball(limbs_of_sum<limbs>(s.products.finite));
    ball<limbs> denominator = exact_ball(limbs_of_sum<limbs>(s.weights.finite));
    if (w < 0) {
      numerator = exact_ball(zero_limbs<limbs>()) - numerator;
      denominator = exact_ball(zero_limbs<limbs>()) - denominator;
    }
    return round_formula<T, limbs>(quotient<limbs>{numerator, denominator});
  }
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
