// Comparisons and classes: less less_equal greater greater_equal equal not_equal isnan isinf isfinite signbit.
//
// IEEE 754-2019, 5.6.1 and 5.7.2: with a NaN every comparison is false but not_equal. Domain: every input. Nothing is
// approximated.
#pragma once

#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct less;
struct less_equal;
struct greater;
struct greater_equal;
struct equal;
struct not_equal;
struct isnan;
struct isinf;
struct isfinite;
struct signbit;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// f16 and bf16 are compared as binary32 numbers, which they are.
template <class T>
REPDL_HD auto comparable(T x) {
  if constexpr (is_small_float<T>) {
    return widen_to_float(x);
  } else {
    return x;
  }
}

struct comparison_body {
  static constexpr bool takes_unpacked = true;
};

template <>
struct body<ops::less> : comparison_body {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return comparable(x) < comparable(y);
  }
};
template <>
struct body<ops::less_equal> : comparison_body {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return comparable(x) <= comparable(y);
  }
};
template <>
struct body<ops::greater> : comparison_body {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return comparable(x) > comparable(y);
  }
};
template <>
struct body<ops::greater_equal> : comparison_body {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return comparable(x) >= comparable(y);
  }
};
template <>
struct body<ops::equal> : comparison_body {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return comparable(x) == comparable(y);
  }
};
template <>
struct body<ops::not_equal> : comparison_body {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return comparable(x) != comparable(y);
  }
};

template <>
struct body<ops::isnan> {
  template <class T>
  REPDL_HD static bool eval(T x) {
    return is_nan(x);
  }
};
template <>
struct body<ops::isinf> {
  template <class T>
  REPDL_HD static bool eval(T x) {
    return (to_bits(x) | sign_mask<T>) == (format<T>::infinity | sign_mask<T>);
  }
};
template <>
struct body<ops::isfinite> {
  template <class T>
  REPDL_HD static bool eval(T x) {
    return (to_bits(x) & format<T>::infinity) != format<T>::infinity;
  }
};
template <>
struct body<ops::signbit> {
  template <class T>
  REPDL_HD static bool eval(T x) {
    return (to_bits(x) & sign_mask<T>) != 0;
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
