// x 2^n, and x as a significand and an exponent: a number of any format.
#pragma once

#include "librepdl/num/certify.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/ops/elementwise/binary64.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// RN(x 2^n), by one multiplication that rounds or by one conversion.
//
// f64: x = m 2^k with |m| in [1, 2), e = k + n. Of |n| > 2200 the result is that of 2200: then e is above 1126 or below -1176. Above 1024 it
// is an infinity, below -1076 a zero, and so is m 2^1024 and m 2^-1076, to which e is cut. With h = e cut to [-1022, 1023], m 2^h is a normal number, exact,
// and the second factor 2^(e - h) rounds once.
//
// Narrower formats: |x| is 0 or in [2^-149, 2^128). Of |n| > 400 the result is that of 400, and x 2^n is below 2^528 and 0 or above 2^-549: a normal
// number of binary64, exact, which the conversion rounds once.
template <class T>
REPDL_HD T scaled_by_power(T x, std::int64_t n) {
  constexpr int most = sizeof(T) == 8 ? 2200 : 400;
  const int power = n > most ? most : n < -most ? -most : static_cast<int>(n);
  const double v = widen(x);
  if constexpr (sizeof(T) != 8) {
    return narrow<T>(v * power_of_two(power));
  } else {
    if (v != v) return double_of(format<double>::nan);
    if (v == 0 || !is_finite(v)) return v;
    const significand<double> s = significand_of(v);
    const int sum = static_cast<int>(s.k) + power;
    const int e = sum > 1024 ? 1024 : sum < -1076 ? -1076 : sum;
    const int h = e > 1023 ? 1023 : e < -1022 ? -1022 : e;
    return s.m * power_of_two(h) * power_of_two(e - h);
  }
}

// x = value 2^exponent with |value| in [1/2, 1); of 0, infinities and NaN x and 0. Exact: a significand has as many bits as x, or fewer.
template <class T>
struct taken_apart {
  T value;
  std::int32_t exponent;
};
template <class T>
REPDL_HD taken_apart<T> take_apart(T x) {
  const double v = widen(x);
  if (v != v) return {from_bits<T>(format<T>::nan), 0};
  if (v == 0 || !is_finite(v)) return {x, 0};
  const significand<double> s = significand_of(v);
  return {narrow<T>(s.m * 0.5), static_cast<std::int32_t>(s.k) + 1};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
