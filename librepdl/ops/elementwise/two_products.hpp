// sum_of_products(x, y, z, w) = x y + z w, difference_of_products = x y - z w, correctly rounded: what rotations and products of complex
// numbers are made of.
//
// Method, binary16, bfloat16 and binary32: products are exact in binary64 (48 bits, 0 or in [2^-298, 2^256)), and so is their sum as hi + lo
// (two_sum); made odd and rounded once (eft.hpp). Domain: every input; nothing is approximated.
//
// Zeros, infinities and NaN: hi is the sum of the products in IEEE arithmetic, where nothing overflows or underflows; lo counts as 0. A sum
// that is exactly 0 is a zero of either sign there, and + 0 makes it +0.
#pragma once

#include "librepdl/ops/elementwise/sums.hpp"

namespace repdl::ops {
struct sum_of_products;
struct difference_of_products;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// Sign: of the second product, 1 or -1.
template <int Sign>
struct two_products {
  template <class T>
  REPDL_HD static T eval(T x, T y, T z, T w) {
    const dd s = two_sum(widen(x) * widen(y), Sign * widen(z) * widen(w));
    return narrow<T>(round_to_odd(s.hi, s.lo) + 0.0);
  }
  // For f16 and bf16: within 2^-53 of itself.
  template <class T>
  requires is_unpacked<T> REPDL_HD static decided_value<T> quick(T x, T y, T z, T w) {
    return quick_value<T>(widen(x) * widen(y) + Sign * widen(z) * widen(w) + 0.0);
  }
};
template <>
struct body<ops::sum_of_products> : two_products<1> {};
template <>
struct body<ops::difference_of_products> : two_products<-1> {};

// ------------------------------------------------------------------------------------------------------- binary64

// The sum of two terms of 106 bits. Where one of them is 0 the other is rounded once by its multiplication, and two zeros make +0.
template <int Sign>
struct two_products64 {
  template <class R>
  REPDL_HD static R second_factor(R z) {
    return static_cast<double>(Sign) * z;
  }
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y, R z, R w) {
    return is_finite_not_zero(x) & is_finite_not_zero(y) & is_finite_not_zero(z) & is_finite_not_zero(w);
  }
  template <class R>
  REPDL_HD static R special(R x, R y, R z, R w) {
    const R s = second_factor(z);
    const R first = as_factor(x) * as_factor(y), second = as_factor(s) * as_factor(w);
    const R product = second != 0 ? s * w : x * y;
    const R number = (first != 0) | (second != 0) ? product : math<R>::all(0);
    return is_finite(x) & is_finite(y) & is_finite(z) & is_finite(w) ? number : canonical_of(first + second);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, R y, R z, R w) {
    using Ball = dd_ball<R>;
    return round_sum(number<Ball>(x) * number<Ball>(y) + number<Ball>(second_factor(z)) * number<Ball>(w));
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, double y, double z, double w) {
    return sum_of_terms(number<Ball>(x) * number<Ball>(y), number<Ball>(second_factor(z)) * number<Ball>(w),
                        number<Ball>(0));
  }
};
template <>
struct body64<ops::sum_of_products> : by_formula<two_products64<1>> {};
template <>
struct body64<ops::difference_of_products> : by_formula<two_products64<-1>> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
