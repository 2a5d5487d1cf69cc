// Gradients of selections, for f16, bf16, binary32, binary64: abs_backward copysign_backward maximum_backward minimum_backward,
// fmax_backward_x fmax_backward_y fmin_backward_x fmin_backward_y.
//
// Comparisons are IEEE 754's: -0 = +0, and one with NaN is false. g, -g, g/2 or +0; g/2 is one IEEE operation (f16, bf16: exact in
// binary32, 2^-134 and more). Domain: every input. Nothing is approximated.
#pragma once

#include "librepdl/ops/elementwise/bounds.hpp"

namespace repdl::ops {
struct copysign_backward;
struct abs_backward;
struct maximum_backward;
struct minimum_backward;
struct fmax_backward_x;
struct fmax_backward_y;
struct fmin_backward_x;
struct fmin_backward_y;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// g, or -g where the signs of x and y differ; +0 for x = 0, NaN for a NaN x. Of y only the sign bit counts.
template <>
struct body<ops::copysign_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x, T y) {
    const storage_of<T> turned = to_bits(g) ^ ((to_bits(x) ^ to_bits(y)) & sign_mask<T>);
    const storage_of<T> chosen = to_bits(canonical(from_bits<T>(turned)));
    const storage_of<T> magnitude = to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>);
    return from_bits<T>(is_nan(x) ? format<T>::nan : magnitude == 0 ? storage_of<T>{0} : chosen);
  }
};
template <>
struct body<ops::abs_backward> {
  template <class T>
  REPDL_HD static T eval(T g, T x) {
    return body<ops::copysign_backward>::eval(g, x, from_bits<T>(0));
  }
};

// g/2 where x = y; +0 where y is chosen.
template <bool Larger>
struct selection_gradient {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, T y) {
    const auto a = comparable(x);
    const auto b = comparable(y);
    const auto v = comparable(g);
    const storage_of<T> half = to_bits(narrow<T>(decltype(v)(0.5) * v));
    const storage_of<T> one = to_bits(zero_or(Larger ? a < b : a > b, g));
    return from_bits<T>(a == b ? half : one);
  }
};
template <>
struct body<ops::maximum_backward> : selection_gradient<true> {};
template <>
struct body<ops::minimum_backward> : selection_gradient<false> {};

// g goes to the first operand where it is chosen (of equal ones it is), else to the second.
template <bool Larger, bool First>
struct number_selection_gradient {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, T y) {
    const auto a = comparable(x);
    const auto b = comparable(y);
    const bool first = (Larger ? a >= b : a <= b) | (b != b);
    return zero_or(first != First, g);
  }
};
template <>
struct body<ops::fmax_backward_x> : number_selection_gradient<true, true> {};
template <>
struct body<ops::fmax_backward_y> : number_selection_gradient<true, false> {};
template <>
struct body<ops::fmin_backward_x> : number_selection_gradient<false, true> {};
template <>
struct body<ops::fmin_backward_y> : number_selection_gradient<false, false> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
