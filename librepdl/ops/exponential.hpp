// Exponentially distributed numbers: -ln u / rate, rounded once to f16, bf16, f32 or f64 (contract, section 6). The two
// tiers before multi-limb numbers (exponential_exact.hpp): binary64 and double-double, with the logarithms of
// normal.hpp.
//
// Domain: u = a 2^-b, 1 <= a <= 2^b, b = 32 (f16, bf16, f32) or 64 (f64), so -ln u is 0 or in [2^-64, 45]; rate in
// [2^-200, 2^200]. Results and everything before them are 0 or in [2^-266, 2^207], low parts in [2^-372, ...): binary64
// neither over- nor underflows. u = 1 gives an exact +0 in both tiers.
//
// Below, u = 2^-53. 1 / (2 rate) = h + l: h rounded, the remainder 1 - 2 rate h exact (two_prod), its quotient rounded:
// |h + l - 1 / (2 rate)| <= u^2 / (2 rate).
//
// Tier 1: v = fl(fl(-2 ln u) h): -2 ln u to 3.3 u (normal.hpp), h and the product u each, with second-order terms 5.4 u
// |v|; forming the ends rounds by u (|v| + e). e = 2^-50 |v| = 8 u |v|, exact, exceeds them.
//
// Tier 2: -2 ln u to 2^-75.5 (normal.hpp), h + l to 2^-106, the double-double product 2^-102: y = y.hi + y.lo to
// 2^-75.4. Forming y.lo -+ e rounds by u (|y.lo| + e) < 2^-104 |y|. e = 2^-75 |y.hi|, exact, exceeds them. The ends are
// rounded to T once. Checked by tests/exponential_test.cpp.
#pragma once

#include "librepdl/ops/normal.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct exponential_scale {
  dd half_inverse;  // 1 / (2 rate)

  REPDL_HD static exponential_scale of(double rate) {
    const double twice = 2 * rate;
    const double h = 1 / twice;
    const dd p = two_prod(h, twice);
    return {{h, ((1 - p.hi) - p.lo) / twice}};
  }

  // w: the 32-bit word, u = (w + 1) 2^-32. force: 0, or +inf, which leaves everything undecided.
  template <class T>
  [[gnu::always_inline]] REPDL_HD normal_ends<T> binary64(std::uint64_t w, double force) const {
    const double v = (0.0 - 2.0 * normal_binary64::log(w)) * half_inverse.hi;  // 0 - 0 is +0
    const double e = 0x1p-50 * v + force;
    return {round_end<T>(v - e), round_end<T>(v + e)};
  }

  // u = a 2^-64, where 0 stands for 2^64.
  template <class T>
  [[gnu::always_inline]] REPDL_HD normal_ends<T> double_double(std::uint64_t a, const normal_tables& tables,
                                                               double force) const {
    const dd y = mul(normal_double_double::minus_two_log(a, tables), half_inverse);
    const double e = 0x1p-75 * y.hi + force;
    if constexpr (std::is_same_v<T, double>) {
      return {y.hi + (y.lo - e), y.hi + (y.lo + e)};
    } else {
      return {round_sum<T>(y.hi, y.lo - e), round_sum<T>(y.hi, y.lo + e)};
    }
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
