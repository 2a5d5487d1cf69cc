// Sums, means and sums of products of one format, rounded once to another: terms and factors are binary64 numbers on their way, whatever
// the formats.
//
// Double-double first: a sum that knows its error (num/wide.hpp), of products with theirs (two_prod), which are exact but for what lies below
// 2^-1074, where a product is below 2^-900: less than 2^-1070. Sums outside [2^-900, 2^900] are left to the integers, which decide
// everything; so is a sum that is not finite, as terms up to 2^1024 may overflow on their way.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/wide.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <int Factors>
struct other_wide_sum {
  wide_sum<double> sum;

  REPDL_HD void add(double x, [[maybe_unused]] double y) {
    if constexpr (Factors == 1) {
      sum.add(x);
    } else {
      const dd p = two_prod(x, y);
      const bool is_exact = magnitude_of(p.hi) >= 0x1p-900 || x == 0 || y == 0;
      sum.add(p, is_exact ? 0.0 : 0x1p-1070);
    }
  }
  REPDL_HD void merge(const other_wide_sum& o) { sum.merge(o.sum); }
  // Of so many terms; is_mean: over their number.
  REPDL_HD decided_value<double> round(dtype to, std::int64_t terms, bool is_mean) const {
    const wide<double> s = sum.total(terms);
    if (is_zero(s)) return {0.0, true};
    const double e = s.error * (1 + 0x1p-10);
    if (!is_in_middle(s.value.hi) || !(e < 0x1p900)) return {0.0, false};
    return with_float(to, [&]<class T>() {
      const decided_value<T> r = is_mean ? certify_mean<T>(s.value, e, terms) : certify<T>(s.value, e);
      return decided_value<double>{widen(r.value), r.decided};
    });
  }
};
template <int Factors>
struct other_exact_sum {
  exact_sum<double, Factors> sum;

  REPDL_HD void add(double x, [[maybe_unused]] double y) {
    if constexpr (Factors == 1) {
      sum.add(x);
    } else {
      sum.add_product(x, y);
    }
  }
  REPDL_HD void merge(const other_exact_sum& o) { sum.merge(o.sum); }
  REPDL_HD decided_value<double> round(dtype to, std::int64_t terms, bool is_mean) const {
    return with_float(to, [&]<class T>() {
      return decided_value<double>{widen(is_mean ? sum.template mean<T>(terms) : sum.template round<T>()), true};
    });
  }
};
// Of no terms.
REPDL_HD double other_empty(bool is_mean) { return is_mean ? double_of(format<double>::nan) : 0.0; }

}  // namespace REPDL_ISA
}  // namespace repdl::num
