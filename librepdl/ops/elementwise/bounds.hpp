// Selections with bounds: clamp clip hardtanh threshold hardshrink nan_to_num, and their backward operations. Bounds are options,
// but those of clip.
//
// Method: an option that is a value enters rounded to the operands' format, once and before any element; a threshold is
// compared as the binary64 number that it is, which every operand is, too. Nothing else is rounded. Domain: every input.
#pragma once

#include "librepdl/ops/elementwise/basic.hpp"
#include "librepdl/ops/elementwise/compare.hpp"

namespace repdl::ops {
struct clamp;
struct hardtanh;
struct clip;
struct clip_backward;
struct clip_backward_lo;
struct clip_backward_hi;
struct clamp_backward;
struct hardtanh_backward;
struct threshold;
struct threshold_backward;
struct hardshrink;
struct hardshrink_backward;
struct nan_to_num;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// min(max(x, lo), hi), NaN wins, -0 < +0.
template <class T>
REPDL_HD T clamp(T x, T lo, T hi) {
  return body<ops::minimum>::eval(body<ops::maximum>::eval(x, lo), hi);
}
// A value as it is compared.
template <class T>
REPDL_HD auto bound(double value) {
  return comparable(narrow<T>(value));
}
// +0 or x.
template <class T>
REPDL_HD T zero_or(bool zero, T x) {
  return from_bits<T>(zero ? storage_of<T>{0} : to_bits(canonical(x)));
}

struct clamp_body {
  template <class T>
  REPDL_HD static T eval(T x, const parameters& p) {
    return clamp(x, narrow<T>(p.value[0]), narrow<T>(p.value[1]));
  }
};
template <>
struct body<ops::clamp> : clamp_body {};
template <>
struct body<ops::hardtanh> : clamp_body {};
template <>
struct body<ops::clip> {
  template <class T>
  REPDL_HD static T eval(T x, T lo, T hi) {
    return clamp(x, lo, hi);
  }
};
// g goes to x within the bounds; to the bound that the result is, where the bounds are in order; of bounds that are not to hi.
template <>
struct body<ops::clip_backward> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, T lo, T hi) {
    const auto v = comparable(x);
    const bool inside = (v >= comparable(lo)) & (v <= comparable(hi));
    return zero_or(!inside, g);
  }
};
template <>
struct body<ops::clip_backward_lo> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, T lo, T hi) {
    const auto low = comparable(lo);
    const bool below = (comparable(x) < low) & (low < comparable(hi));
    return zero_or(!below, g);
  }
};
template <>
struct body<ops::clip_backward_hi> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, T lo, T hi) {
    const auto high = comparable(hi);
    const bool above = (comparable(x) > high) | (high < comparable(lo));
    return zero_or(!above, g);
  }
};
template <>
struct body<ops::clamp_backward> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, const parameters& p) {
    const auto v = comparable(x);
    const bool inside = (v >= bound<T>(p.value[0])) & (v <= bound<T>(p.value[1]));
    return zero_or(!inside, g);
  }
};
template <>
struct body<ops::hardtanh_backward> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, const parameters& p) {
    const auto v = comparable(x);
    const bool outside = (v <= bound<T>(p.value[0])) | (v >= bound<T>(p.value[1]));
    return zero_or(outside, g);
  }
};

template <>
struct body<ops::threshold> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T x, const parameters& p) {
    const storage_of<T> value = to_bits(narrow<T>(p.value[1]));
    return from_bits<T>(widen(x) <= p.value[0] ? value : to_bits(canonical(x)));
  }
};
template <>
struct body<ops::threshold_backward> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, const parameters& p) {
    return zero_or(widen(x) <= p.value[0], g);
  }
};

// +0 where -l <= x <= l, else g.
struct hardshrink_body {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T g, T x, const parameters& p) {
    const double v = widen(x);
    return zero_or((v >= -p.value[0]) & (v <= p.value[0]), g);
  }
};
template <>
struct body<ops::hardshrink> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T x, const parameters& p) {
    return hardshrink_body::eval(x, x, p);
  }
};
template <>
struct body<ops::hardshrink_backward> : hardshrink_body {};

template <>
struct body<ops::nan_to_num> {
  template <class T>
  REPDL_HD static T eval(T x, const parameters& p) {
    const storage_of<T> nan = to_bits(narrow<T>(p.value[0])), above = to_bits(narrow<T>(p.value[1])),
                        below = to_bits(narrow<T>(p.value[2])), bits = to_bits(x);
    constexpr storage_of<T> top = format<T>::infinity;
    const storage_of<T> upper = bits == top ? above : bits;
    const storage_of<T> lower = bits == (top | sign_mask<T>) ? below : upper;
    return from_bits<T>(is_nan(x) ? nan : lower);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
