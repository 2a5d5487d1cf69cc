// nextafter(x, y), the neighbour of x on the side of y.
//
// Method: bits. Numbers of one sign are in the order of their bits as integers, so the neighbour of a number but 0 is one more or
// one less: away from 0 beyond the largest number to infinity, towards 0 from the least one to the zero of its sign. From either
// zero it is the least number on the side of y. Where x = y the result is y: of zeros with y's sign. IEEE 754-2019, 5.3.1; C23,
// 7.12.11.3. Domain: every input; no result is rounded.
#pragma once

#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct nextafter;
}

namespace repdl::num {
inline namespace REPDL_ISA {

template <class T>
REPDL_HD storage_of<T> magnitude_bits(T x) {
  return static_cast<storage_of<T>>(to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>));
}

template <>
struct body<ops::nextafter> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    using storage = storage_of<T>;
    const storage a = to_bits(x);
    const storage b = to_bits(y);
    const bool zero = magnitude_bits(x) == 0;
    const bool same = (a == b) | (zero & (magnitude_bits(y) == 0));
    // x moves away from 0 where y has its sign and more magnitude.
    const bool outwards = (((a ^ b) & sign_mask<T>) == 0) & (magnitude_bits(y) > magnitude_bits(x));
    const auto moved = static_cast<storage>(outwards ? a + 1 : a - 1);
    const auto from_zero = static_cast<storage>((b & sign_mask<T>) | 1);
    const storage next = zero ? from_zero : moved;
    const storage r = same ? b : next;
    return from_bits<T>((is_nan(x) | is_nan(y)) ? format<T>::nan : r);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
