// Choices by booleans, and of them: where masked_fill logical_and logical_or logical_xor logical_not.
//
// Bit operations: what is chosen keeps its bits, payloads of NaN too. Of a number everything but zero is true, NaN too. Domain:
// every input. Nothing is approximated.
#pragma once

#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct where;
struct masked_fill;
struct logical_and;
struct logical_or;
struct logical_xor;
struct logical_not;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <class T>
REPDL_HD T choose(bool condition, T x, T y) {
  return from_bits<T>(condition ? to_bits(x) : to_bits(y));
}

template <>
struct body<ops::where> {
  template <class T>
  REPDL_HD static T eval(bool condition, T x, T y) {
    return choose(condition, x, y);
  }
};
template <>
struct body<ops::masked_fill> {
  template <class T>
  REPDL_HD static T eval(T x, bool mask, const parameters& p) {
    return choose(mask, narrow<T>(p.value[0]), x);
  }
};

REPDL_HD bool truth(bool x) { return x; }
template <class T>
REPDL_HD bool truth(T x) {
  return (to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>)) != 0;
}

template <>
struct body<ops::logical_and> {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return truth(x) & truth(y);
  }
};
template <>
struct body<ops::logical_or> {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return truth(x) | truth(y);
  }
};
template <>
struct body<ops::logical_xor> {
  template <class T>
  REPDL_HD static bool eval(T x, T y) {
    return truth(x) != truth(y);
  }
};
template <>
struct body<ops::logical_not> {
  template <class T>
  REPDL_HD static bool eval(T x) {
    return !truth(x);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
