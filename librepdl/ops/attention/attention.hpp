// Attention, one query at a time: what its tiers share, and those that decide what binary64 leaves.
//
// Of a query, with the exact scores a_j of the keys that are present:
//     out_e = N_e / S,   lse = M + ln S,   S = sum e^(a_j - M),   N_e = sum e^(a_j - M) v_je.
//
// With dropout N_e is the sum over the keys that are kept, divided by 1 - p: all that is said of results below is then said of (1 - p) out_e, of
// (1 - p) c in the place of a middle c, and v_je of other keys is 0.
//
// In binary64 products of numbers may overflow and underflow: what is not finite then, or too small for its low part, is not known to the
// double-double tier, and the last one decides.
//
// The double-double tier (query_tier): scores as wide numbers (num/wide.hpp), of which M is the greatest less 1, so that S >= 2, as its
// logarithm wants; sums of positive terms, and tracked ones. Scores beyond 600 below M are enclosed; a score whose double-double is not known
// within 2^-10, as one of 2^100, leaves its query undecided.
//
// The last tier (query_exact) decides between two neighbours lo < hi of the format, with c the middle of both, by the sign of
//     F(c) = sum_j e^(a_j) (v_je - c) = sum over groups g of equal scores of e^(a_g) V_g,   V_g = sum over g of (v_je - c),
// which is that of out_e - c. V_g is computed exactly, and so is whether two scores are equal. By Lindemann and Weierstrass exponentials of
// distinct rational numbers are linearly independent over the algebraic numbers: F(c) = 0 if and only if every V_g = 0, and then out_e = c,
// a tie (or, between -0 and +0, the exact zero). Otherwise groups without a sum are left out, the greatest score m of the others is the
// reference, and e^(a_g - m) V_g are added up in balls of more and more bits: however small weights are, nothing is lost below what decides.
//
// lse of more than one key is irrational, as e^lse - sum e^(a_j) = 0 would be such a relation; of one it is its score. With k keys of the greatest score m
// lse = m + ln(k + rest). Scores are multiples of 2^-550 (2^-298 for products of two numbers of binary32, 2^-252 for scale), so that no midpoint, a
// multiple of 2^-150, lies strictly between m and m + 2^-560: a logarithm below that is replaced by it. In binary64 they are multiples of 2^-2400, and
// midpoints of 2^-1075.
#pragma once

#include "librepdl/num/certify.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/num/philox.hpp"
#include "librepdl/num/wide.hpp"
#include "librepdl/ops/rows/exponentials.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Which weights are dropped: of pairs whose word of the generator is below the threshold. A pair's number is that of its score in row-major order.
struct attention_draws {
  std::uint64_t threshold = 0, seed = 0, stream = 0;
  double dropped = 0;  // p; at least 2^-32, so that 1 - p is a multiple of 2^-84

  REPDL_HD bool any() const { return threshold != 0; }
  REPDL_HD bool keep(std::int64_t pair) const {
    const auto n = static_cast<std::uint64_t>(pair);
    return philox(seed, stream, n >> 2).w[n & 3] >= threshold;
  }
  // 1 - p.
  REPDL_HD dd kept() const { return two_sum(1.0, -dropped); }
  REPDL_HD wide<double> wide_kept() const { return {kept(), 0.0}; }
  // 1 / (1 - p), within 2 u of itself: 1 - p rounded, and the quotient.
  REPDL_HD double rate() const { return 1 / (1 - dropped); }
};
template <class Plan>
attention_draws draws_of(const Plan& p) {
  return {p.threshold, p.seed, p.stream, p.dropout};
}

// Numbers of T, f16, bf16, float or double, as the late tiers read them; and the format of lse.
template <class T>
inline constexpr bool is_binary64 = std::is_same_v<T, double>;
template <class T>
using attention_number = std::conditional_t<is_binary64<T>, double, float>;
template <class T>
using lse_of = attention_number<T>;
template <class T>
REPDL_HD attention_number<T> number_of(T x) {
  if constexpr (is_binary64<T>) {
    return x;
  } else {
    return widen_to_float(x);
  }
}

// What is not known.
REPDL_HD wide<double> anything() { return {{0.0, 0.0}, infinity}; }
// A value of finite numbers: where it overflowed, anything.
template <class T>
REPDL_HD wide<double> unless_overflown(const wide<double>& a) {
  if constexpr (is_binary64<T>) {
    if (!(magnitude_of(a.value.hi) < 0x1p1000) || !is_finite(a.value.lo)) return anything();
  }
  return a;
}
// t += x y for numbers of T, exactly but for what its error says.
template <class T>
REPDL_HD void add_product(tracked_sum<double>& t, double x, double y) {
  if constexpr (is_binary64<T>) {
    const dd p = two_prod(x, y);
    t.add(p);
    // The low part is no number of binary64. bound() takes 2^-52 of the error at least.
    if (magnitude_of(p.hi) < 0x1p-900 && x != 0 && y != 0) t.error += 0x1p-940;
  } else {
    t.add(x * y);
  }
}
// a, a product of numbers none of which is 0 unless `zero`: below 2^-900, where low parts underflow, no more is known of it than that.
REPDL_HD void allow_underflow(wide<double>& a, bool zero) {
  if (!zero && magnitude_of(a.value.hi) < 0x1p-900) a.error += 0x1p-890;
}
// A product where it is not finite by its factors, else 0.
REPDL_HD double odd_product(double x, double y) {
  const bool finite = is_finite(x) && is_finite(y);
  return finite ? 0.0 : x * y;
}

// A query and its keys in memory.
template <class T>
struct attention_query {
  using number = attention_number<T>;
  const T* q;
  const T* k;
  const T* v;
  const void* mask;  // of booleans, or of T where is_added; null: none
  std::int64_t q_step, k_row, k_step, v_row, v_step, mask_step;
  std::int64_t size;         // D
  std::int64_t first, last;  // the keys within causality and window, [first, last)
  std::int64_t at;           // i + off
  double scale, slope;
  bool is_added, has_slope;
  attention_draws draws;
  std::int64_t first_pair;  // the number of its pair with key 0

  // Whether the weight of key j is not dropped.
  REPDL_HD bool is_kept(std::int64_t j) const { return !draws.any() || draws.keep(first_pair + j); }
  REPDL_HD number mask_value(std::int64_t j) const { return number_of(static_cast<const T*>(mask)[j * mask_step]); }
  REPDL_HD bool is_present(std::int64_t j) const {
    if (mask == nullptr) return true;
    if (is_added) return !(mask_value(j) == -static_cast<number>(infinity));
    return static_cast<const std::uint8_t*>(mask)[j * mask_step] != 0;
  }
  REPDL_HD number query_value(std::int64_t d) const { return number_of(q[d * q_step]); }
  REPDL_HD number key_value(std::int64_t j, std::int64_t d) const { return number_of(k[j * k_row + d * k_step]); }
  REPDL_HD number value(std::int64_t j, std::int64_t e) const { return number_of(v[j * v_row + e * v_step]); }

  // The sum of products with a key.
  REPDL_HD tracked_sum<double> products(std::int64_t j) const {
    tracked_sum<double> t;
    for (std::int64_t d = 0; d < size; ++d)
      num::add_product<T>(t, static_cast<double>(query_value(d)), static_cast<double>(key_value(j, d)));
    return t;
  }
  // The score in binary64: what it is where it is not finite, for nothing finite overflows there (scale <= 2^200, D < 2^62). Of numbers of binary64
  // what is finite may; it counts as 0.
  REPDL_HD double near_score(std::int64_t j, const tracked_sum<double>& products) const {
    if constexpr (is_binary64<T>) {
      double s = 0;
      for (std::int64_t d = 0; d < size; ++d) s += odd_product(query_value(d), key_value(j, d));
      s = odd_product(s, scale);
      if (has_slope) s += odd_product(slope, static_cast<double>(j - at));
      if (is_added && !is_finite(mask_value(j))) s += mask_value(j);
      return s;
    }
    double s = products.hi * scale;
    if (has_slope) s += slope * static_cast<double>(j - at);
    if (is_added) s += static_cast<double>(mask_value(j));
    return s;
  }
  REPDL_HD wide<double> wide_score(std::int64_t j, const tracked_sum<double>& products) const {
    wide<double> a = unless_overflown<T>({products.total(), products.bound(size)});
    if constexpr (is_binary64<T>) {
      const bool zero = is_zero(a) || scale == 0;
      multiply_by_value(a, scale);
      allow_underflow(a, zero);
    } else {
      multiply_by_value(a, scale);
    }
    if (has_slope) {
      wide<double> b = arithmetic<wide<double>>::number(slope);
      multiply_by_value(b, static_cast<double>(j - at));
      a = add(a, b);
    }
    if (is_added) add_value(a, static_cast<double>(mask_value(j)));
    return unless_overflown<T>(a);
  }
};

// What is known of a query before anything is added up.
enum class query_kind { finite, no_keys, not_a_number, infinite, vanishing };
struct query_results {
  double out, lse;  // of a query that is not finite: all its results
};
REPDL_HD query_results results_of(query_kind kind) {
  const double nan = double_of(format<double>::nan);
  switch (kind) {
    case query_kind::no_keys:
      return {0.0, -infinity};
    case query_kind::infinite:
      return {nan, infinity};
    case query_kind::vanishing:
      return {nan, -infinity};
    default:
      return {nan, nan};
  }
}

// The scores that it was told of.
struct score_kinds {
  bool nan = false, positive = false, negative = false, finite = false;

  REPDL_HD void add(double s) {
    nan |= s != s;
    positive |= s == infinity;
    negative |= s == -infinity;
    finite |= is_finite(s);
  }
  REPDL_HD query_kind kind() const {
    return nan        ? query_kind::not_a_number
           : positive ? query_kind::infinite
           : finite   ? query_kind::finite
           : negative ? query_kind::vanishing
                      : query_kind::no_keys;
  }
};

// What the late tiers keep of a key: its score, where hi is -inf for one that has no weight; its weight beside the reference; and the first
// key of the same score, if that was asked for.
struct late_key {
  wide<double> score, weight;
  std::int64_t group;

  REPDL_HD bool has_weight() const { return score.value.hi > -infinity; }
};

// e^x, |x| <= 600, or x below -600: between 0 and 2^-865. Anything else is not known.
REPDL_HD wide<double> exponential_of(const wide<double>& x) {
  if (x.value.hi + x.error < least_gap - 1) return {{0.0, 0.0}, 0x1p-865};
  if (!(x.value.hi <= -least_gap) || !(x.error < 0x1p-10)) return {{0.0, 0.0}, infinity};
  const dd e = wide_exp(x.value.hi, x.value.lo);
  return {e, e.hi * (0x1p-96 + x.error * (1 + 0x1p-9))};
}

// scale a; an exact zero is +0.
REPDL_HD void scale_result(wide<double>& a, double scale) {
  const bool zero = (a.value.hi == 0 && a.error == 0) || scale == 0;
  multiply_by_value(a, scale);
  allow_underflow(a, zero);
  a.value.hi += 0.0;
}

// A weight times v, a number of T.
template <class T>
REPDL_HD wide<double> weighted(const wide<double>& weight, double v) {
  wide<double> term = weight;
  multiply_by_value(term, v);
  if constexpr (is_binary64<T>) allow_underflow(term, v == 0);
  return unless_overflown<T>(term);
}
// A sum of weights times numbers becomes a result. Weights that are dropped may be those beside which the others are nothing: what then
// underflows is not 0.
template <class T = float>
REPDL_HD void to_result(wide<double>& sum, const wide<double>& weights, const attention_draws& draws) {
  const bool zero = sum.value.hi == 0 && sum.error == 0;
  divide_by(sum, weights);
  if constexpr (is_binary64<T>) allow_underflow(sum, zero);
  if (!draws.any()) return;
  divide_by(sum, draws.wide_kept());
  if (!zero) sum.error += 0x1p-1000;
}
// e^(score - reference).
REPDL_HD wide<double> weight_of(const wide<double>& score, double reference) {
  wide<double> gap = score;
  add_value(gap, -reference);
  return exponential_of(gap);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
