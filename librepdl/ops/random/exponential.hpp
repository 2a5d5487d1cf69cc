// Exponentially distributed numbers: -ln u / rate, rounded once to f16, bf16, f32 or f64 (contract, section 6), and the
// keys of draws without replacement, -ln u / weight in f64. The two tiers before multi-limb numbers
// (exponential_exact.hpp): binary64 and double-double, with the logarithms of normal.hpp.
//
// Domain: u = a 2^-b, 1 <= a <= 2^b, b = 32 (f16, bf16, f32) or 64 (f64). Of a draw u = 1 counts as 1 - 2^-(b + 1), so
// -ln u is in [2^-65, 45]; of a key u = 1 gives an exact +0. rate in [2^-200, 2^200]. Everything before the rounding is
// 0 or in [2^-266, 2^207], low parts in [2^-372, ...): binary64 neither over- nor underflows.
//
// A draw is never 0: what would round to +0 is the format's least positive number. That is a rounding like any other,
// monotonic, so an interval whose ends round alike is decided.
//
// u = 1 - x, x = 2^-(b + 1): -2 ln u = 2 x + x^2 + 2/3 x^3 + ..., of which the terms left out are below x^4 (0.51 x^4).
// Tier 2: hi = 2 x, lo = RN(x^2 + 2/3 x^3), off by u x^2 and x^4: 2^-87 of 2 x for b = 32, 2^-119 for b = 64. Tier 1 (b =
// 32): RN(hi + lo) = 2^-32 + 2^-66, which has 35 bits; off by 2^-67 of itself. Both are within the bounds of other u.
//
// Below, u = 2^-53. 1 / (2 rate) = h + l: h rounded, the remainder 1 - 2 rate h exact (two_prod), its quotient rounded:
// |h + l - 1 / (2 rate)| <= u^2 / (2 rate).
//
// Tier 1: v = fl(fl(-2 ln u) h): -2 ln u to 3.3 u (normal.hpp), h and the product u each, with second-order terms 5.4 u
// |v|; forming the ends rounds by u (|v| + e). e = 2^-50 |v| = 8 u |v|, exact, exceeds them.
//
// Tier 2: -2 ln u to 2^-75.5 (normal.hpp), h + l to 2^-106, the double-double product 2^-102: y = y.hi + y.lo to
// 2^-75.4. Forming y.lo -+ e rounds by u (|y.lo| + e) < 2^-104 |y|. e = 2^-75 |y.hi|, exact, exceeds them. The ends are
// rounded to T once. Checked by tests/random/exponential_test.cpp.
#pragma once

#include "librepdl/ops/random/normal.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// -2 ln(1 - 2^-(b + 1)), for draws of T where u = 1.
template <class T>
REPDL_HD constexpr dd minus_two_log_of_last() {
  constexpr double x = sizeof(T) == 8 ? 0x1p-65 : 0x1p-33;
  return {2 * x, x * x + 2 * x * x * x / 3};
}

// The least positive number, whose pattern is 1 in every format, for +0.
template <class T>
[[gnu::always_inline]] REPDL_HD T at_least_positive(T x) {
  const auto bits = to_bits(x);
  return from_bits<T>(static_cast<storage_of<T>>(bits | static_cast<storage_of<T>>(bits == 0)));
}
template <class T>
[[gnu::always_inline]] REPDL_HD normal_ends<T> at_least_positive(normal_ends<T> e) {
  return {at_least_positive(e.below), at_least_positive(e.above)};
}

struct exponential_scale {
  dd half_inverse;  // 1 / (2 rate)

  REPDL_HD static exponential_scale of(double rate) {
    const double twice = 2 * rate;
    const double h = 1 / twice;
    const dd p = two_prod(h, twice);
    return {{h, ((1 - p.hi) - p.lo) / twice}};
  }

  // A draw. w: the 32-bit word, u = (w + 1) 2^-32. force: 0, or +inf, which leaves everything undecided.
  template <class T>
  [[gnu::always_inline]] REPDL_HD normal_ends<T> binary64(std::uint64_t w, double force) const {
    constexpr dd last = minus_two_log_of_last<T>();
    const double log = normal_binary64::log(w);
    const double v = (log < 0 ? -2.0 * log : last.hi + last.lo) * half_inverse.hi;
    const double e = 0x1p-50 * v + force;
    return at_least_positive(normal_ends<T>{round_end<T>(v - e), round_end<T>(v + e)});
  }

  // A draw. u = a 2^-64, where 0 stands for 2^64.
  template <class T>
  [[gnu::always_inline]] REPDL_HD normal_ends<T> double_double(std::uint64_t a, const normal_tables& tables,
                                                               double force) const {
    constexpr dd last = minus_two_log_of_last<T>();
    const dd y = normal_double_double::minus_two_log(a, tables);
    return at_least_positive(ends<T>(dd{y.hi > 0 ? y.hi : last.hi, y.hi > 0 ? y.lo : last.lo}, force));
  }

  // A key of a weight, which is `rate`. a as above.
  [[gnu::always_inline]] REPDL_HD normal_ends<double> key(std::uint64_t a, const normal_tables& tables,
                                                          double force) const {
    return ends<double>(normal_double_double::minus_two_log(a, tables), force);
  }

 private:
  template <class T>
  [[gnu::always_inline]] REPDL_HD normal_ends<T> ends(dd minus_two_log, double force) const {
    const dd y = mul(minus_two_log, half_inverse);
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
