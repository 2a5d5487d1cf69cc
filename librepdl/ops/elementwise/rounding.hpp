// Integers near x: floor ceil trunc round (ties to even) frac; sign; and Heaviside's step.
//
// Method: with M = 2^(p-1) and m = |x| < M, the sum m + M lies in [M, 2M], where the ulp is 1: (m + M) - M is m rounded to the
// nearest integer, ties to even, and the subtraction is exact. The other roundings correct that by 1, exactly: an integer
// at most M. From M on every number is an integer. f16 and bf16 are rounded as binary32 numbers; the results have no more
// bits than x or are powers of two, so they are numbers of the format. IEEE 754-2019, 5.9; C23, 7.12.9. Domain: every input.
#pragma once

#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct floor;
struct ceil;
struct trunc;
struct round;
struct frac;
struct sign;
struct heaviside;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

template <class F>
inline constexpr F integers_from = F(std::uint64_t{1} << (format<F>::precision - 1));

// Round::of(x, nearest), for the nearest integer of a number below M in magnitude; in binary32 or binary64. Of unpacked numbers
// Round::of(x), where that is an instruction.
template <class Round>
struct integer_body {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T x) {
    if constexpr (is_unpacked<T> && has_fast_rounding) {
      return {Round::of(x.value)};
    } else if constexpr (is_small_float<T>) {
      return narrow<T>(in(widen_to_float(x)));
    } else {
      return canonical(in(x));
    }
  }

 private:
  template <class F>
  REPDL_HD static F in(F x) {
    constexpr F M = integers_from<F>;
    const F m = with_sign(x, F(0));
    const F nearest = with_sign((m + M) - M, x);
    const F r = Round::of(x, nearest);
    return m < M ? with_sign(r, x) : x;
  }
};

struct round_to_nearest {
  REPDL_HD static float of(float x) { return __builtin_rintf(x); }
  template <class F>
  REPDL_HD static F of(F, F nearest) {
    return nearest;
  }
};
struct round_down {
  REPDL_HD static float of(float x) { return __builtin_floorf(x); }
  template <class F>
  REPDL_HD static F of(F x, F nearest) {
    return nearest - (nearest > x ? F(1) : F(0));
  }
};
struct round_up {
  REPDL_HD static float of(float x) { return __builtin_ceilf(x); }
  template <class F>
  REPDL_HD static F of(F x, F nearest) {
    return nearest + (nearest < x ? F(1) : F(0));
  }
};
struct round_to_zero {
  REPDL_HD static float of(float x) { return __builtin_truncf(x); }
  template <class F>
  REPDL_HD static F of(F x, F nearest) {
    const F m = with_sign(x, F(0));
    const F n = with_sign(nearest, F(0));
    return n - (n > m ? F(1) : F(0));
  }
};

template <>
struct body<ops::floor> : integer_body<round_down> {};
template <>
struct body<ops::ceil> : integer_body<round_up> {};
template <>
struct body<ops::trunc> : integer_body<round_to_zero> {};
template <>
struct body<ops::round> : integer_body<round_to_nearest> {};

// Exact; x - x is +0, for infinities NaN.
template <>
struct body<ops::frac> {
  static constexpr bool takes_unpacked = true;
  template <class T>
  REPDL_HD static T eval(T x) {
    const T whole = body<ops::trunc>::eval(x);
    if constexpr (is_small_float<T>) {
      return narrow<T>(widen_to_float(x) - widen_to_float(whole));
    } else {
      return canonical(x - whole);
    }
  }
};

// The bits of 1: the exponent's bias, which is emax.
template <class T>
inline constexpr auto one_bits = static_cast<storage_of<T>>(static_cast<storage_of<T>>(format<T>::emax)
                                                            << (format<T>::precision - 1));

template <>
struct body<ops::sign> {
  template <class T>
  REPDL_HD static T eval(T x) {
    const auto magnitude = static_cast<storage_of<T>>(to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>));
    const auto sign = static_cast<storage_of<T>>(to_bits(x) & sign_mask<T>);
    const auto r = static_cast<storage_of<T>>((magnitude == 0 ? 0 : one_bits<T>) | sign);
    return from_bits<T>(is_nan(x) ? format<T>::nan : r);
  }
};

// The value at 0 is an operand.
template <>
struct body<ops::heaviside> {
  template <class T>
  REPDL_HD static T eval(T x, T v) {
    const bool zero = (to_bits(x) & static_cast<storage_of<T>>(~sign_mask<T>)) == 0;
    const auto side = static_cast<storage_of<T>>((to_bits(x) & sign_mask<T>) != 0 ? 0 : one_bits<T>);
    const auto r = zero ? to_bits(canonical(v)) : side;
    return from_bits<T>(is_nan(x) ? format<T>::nan : r);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
