// Remainders and rounded quotients: fmod remainder div_trunc div_floor, for f16, bf16, binary32, binary64. Exact, by integers.
//
// Domain: every input; nothing is approximated. Quotients are as large as 2^277 (binary32), 2^2098 (binary64): the remainder
// takes one modular power of 2, whose cost is the logarithm of that exponent, and not a loop over the quotient's bits.
//
// |x| = X 2^a, |y| = Y 2^b, X and Y integers below 2^53, as binary64 numbers have them: X, Y >= 2^52, or a, b = -1074. If |x|
// < |y|, x is its own remainder. Else a >= b (a < b would need a < 971 and Y >= 2^52: then |x| < 2^53 2^a <= |y|), and with
// k = a - b
//     |x| mod |y| = (X 2^k mod Y) 2^b,  an integer below Y: a number of the operands' format.
//
// u v mod m for v, m < 2^53 and u v < 2^53 m: q = the binary64 value of u v (1 / m), cut off. Three roundings, each 2^-53 of a
// number below 2^53 (1 + 2^-51), make less than 4, and cutting off 1 more: q is at most 4 below and 3 above floor(u v / m),
// so u v - q m, which wraps modulo 2^64 to itself, lies in [-3 m, 5 m), and with 3 m added in [0, 8 m), 8 m < 2^56.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::ops {
struct fmod;
struct remainder;
struct div_trunc;
struct div_floor;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// a < 2^53 as a binary64 number and back; by way of signed integers, whose conversions are the faster ones.
REPDL_HD double real_of(std::uint64_t a) { return static_cast<double>(static_cast<std::int64_t>(a)); }

REPDL_HD std::uint64_t reduce_once(std::uint64_t a, std::uint64_t m) { return a >= m ? a - m : a; }

REPDL_HD std::uint64_t multiply_modulo(std::uint64_t u, std::uint64_t v, std::uint64_t m, double inverse) {
  const auto q = static_cast<std::uint64_t>(static_cast<std::int64_t>(real_of(u) * real_of(v) * inverse));
  const std::uint64_t r = u * v - q * m + 3 * m;
  return reduce_once(reduce_once(reduce_once(r, 4 * m), 2 * m), m);
}

// x 2^k mod m, x < 2^53, k < 2^(steps + 5).
template <int Steps>
REPDL_HD std::uint64_t shift_modulo(std::uint64_t x, int k, std::uint64_t m) {
  const double inverse = 1.0 / real_of(m);
  std::uint64_t power = multiply_modulo(std::uint64_t{1} << (k >> Steps), 1, m, inverse);
  for (int i = Steps - 1; i >= 0; --i) {
    power = multiply_modulo(power, power, m, inverse);
    power = reduce_once(power << ((k >> i) & 1), m);
  }
  return multiply_modulo(x, power, m, inverse);
}

// |x| = significand 2^exponent for finite x; of an infinity or NaN, something of that form.
struct magnitude_parts {
  std::uint64_t significand;
  int exponent;
};
REPDL_HD magnitude_parts parts_of(double x) {
  const std::uint64_t b = bits_of(x) & 0x7fffffffffffffff;
  const int e = static_cast<int>(b >> 52);
  return {(b & 0xfffffffffffff) | (e != 0 ? 0x10000000000000u : 0u), (e != 0 ? e : 1) - 1075};
}

// |x| mod |y| of numbers of T, as a binary64 number; something if x is not finite, or y is 0 or not finite and |y| <= |x|.
template <class T>
REPDL_HD double remainder_magnitude(double x, double y) {
  const double a = double_of(bits_of(x) & 0x7fffffffffffffff);
  const double b = double_of(bits_of(y) & 0x7fffffffffffffff);
  const magnitude_parts p = parts_of(x);
  const magnitude_parts q = parts_of(y);
  const bool regular = (a >= b) & (b > 0) & (a < __builtin_huge_val());
  const std::uint64_t m = regular ? q.significand : 1;
  const int k = regular ? p.exponent - q.exponent : 0;
  const std::uint64_t r = shift_modulo<(std::is_same_v<T, double> ? 7 : 4)>(p.significand, k, m);
  const int e = q.exponent;
  const std::uint64_t power = e >= -1022 ? static_cast<std::uint64_t>(e + 1023) << 52 : std::uint64_t{1} << (e + 1074);
  return a < b ? a : real_of(r) * double_of(power);
}

// quick, for operands of 24 bits: most quotients are below 2^29. Binary64's is cut off to what the exact one is, n: if that is not
// whole, the distance from the next whole number N <= 2^29 above is more than half an ulp, at most 2^-53 N. N |y| - |x| is 2^a or 2^b
// at least: a >= b: N Y < 2^53, or N = 2^29, a power of 2, below which half an ulp is 2^-54 N; a < b: 2^a > 2^-26 N |y|, or
// N |y| > 2 |x|. n Y has 53 bits: n |y| is exact, and |x| - n |y|, too, which is a number.
//
// The same of f16 and bf16, of p bits, in binary32, N <= 2^(24 - p); half an ulp is at most 2^-24 N, and X, Y < 2^p. a >= b:
// N - |x / y| is 1 / Y at least, above 2^-p >= 2^-24 N; a < b: N |y| - |x| is 2^a at least, above 2^-p |x|. n Y has 24 bits.
template <class T>
concept has_24_bits = std::is_same_v<T, float> || is_unpacked<T>;
template <class F>
struct quick_division;
template <>
struct quick_division<double> {
  double quotient, remainder;
  bool decided;
  template <class T>
  REPDL_HD tentative<T> give(double v) const {
    return {static_cast<float>(v), decided};
  }
};
template <>
struct quick_division<float> {
  float quotient, remainder;
  std::uint32_t undecided;  // g++ 12 would keep a truth in memory, and make branches of comparisons
  template <class T>
  REPDL_HD undecided_value<T> give(float v) const {
    return {{v}, undecided};
  }
};
template <class T>
REPDL_HD auto divide_quickly(T of_x, T of_y) {
  using F = std::conditional_t<is_unpacked<T>, float, double>;
  constexpr F limit = is_unpacked<T> ? 1 << (24 - format<T>::precision) : 1 << 29;
  const F x = with_sign(static_cast<F>(widen_to_float(of_x)), F{0});
  const F y = with_sign(static_cast<F>(widen_to_float(of_y)), F{0});
  const F t = x / y;
  if constexpr (is_unpacked<T>) {
    const std::uint32_t undecided = (bits_of(limit) - 1 - (bits_of(t) & 0x7fffffff)) | (0x7f7fffff - bits_of(y));
    const auto n = static_cast<float>(static_cast<std::int32_t>(clamp_magnitude(t, limit)));
    return quick_division<F>{n, x - n * y, undecided >> 31};
  } else {
    const bool decided = (t < limit) & (y < infinity);
    const auto n = static_cast<double>(static_cast<std::int32_t>(choose(decided, t, 0.0)));
    return quick_division<F>{n, x - n * y, decided};
  }
}

template <>
struct body<ops::fmod> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const double r = with_sign(remainder_magnitude<T>(a, b), a);
    const bool defined = (a - a == 0) & (b == b) & (b != 0);
    return narrow<T>(defined ? r : double_of(format<double>::nan));
  }
  template <class T>
  requires has_24_bits<T> REPDL_HD static auto quick(T x, T y) {
    const auto d = divide_quickly(x, y);
    return d.template give<T>(with_sign(d.remainder, decltype(d.remainder){widen_to_float(x)}));
  }
};

// The floored remainder has the sign of y: r or, where the signs differ, |y| - r. For |x| >= |y| that is an integer below Y
// times 2^b, exact; else it is |y| - |x|, rounded. y = ±inf: inf - |x| is the infinity that the contract names.
template <>
struct body<ops::remainder> {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const double r = remainder_magnitude<T>(a, b);
    const double size = double_of(bits_of(b) & 0x7fffffffffffffff);
    const bool differ = ((bits_of(a) ^ bits_of(b)) >> 63 != 0) & (r != 0);
    double other = size - r;
    if constexpr (!std::is_same_v<T, double>) {
      const dd s = two_sum(size, -r);
      other = round_to_odd(s.hi, s.lo);
    }
    const bool defined = (a - a == 0) & (b == b) & (b != 0);
    return narrow<T>(defined ? with_sign(differ ? other : r, b) : double_of(format<double>::nan));
  }
  template <class T>
  requires has_24_bits<T> REPDL_HD static auto quick(T x, T y) {
    const auto d = divide_quickly(x, y);
    using F = std::remove_const_t<decltype(d.remainder)>;
    const F a = widen_to_float(x);
    const F b = widen_to_float(y);
    const bool differ = ((to_bits(a) ^ to_bits(b)) & sign_mask<F>) != 0;
    F other = with_sign(b, F{0}) - d.remainder;  // f16, bf16: in binary32, rounded again, as in basic.hpp
    if constexpr (!is_unpacked<T>) {
      const dd s = two_sum(magnitude_of(b), -d.remainder);
      other = round_to_odd(s.hi, s.lo);
    }
    return d.template give<T>(with_sign(choose(differ & (d.remainder != 0), other, d.remainder), b));
  }
};

// The magnitude of trunc(x / y), plus 1 if `up`; r = |x| mod |y|, x and y finite, y != 0.
//
// f16, bf16, f32: (|x| - r) / |y|, or (|x| - r + |y|) / |y| = (|x| + (|y| - r)) / |y|, whose second part is exact as above; a
// sum of two numbers, rounded to odd, over a number of 24 bits: sums.hpp says why that is enough. |x| < |y|: 0 or |y| / |y|.
REPDL_HD double whole_quotient(float, double x, double y, double r, bool up) {
  const bool small = x < y;
  const double first = small ? 0.0 : x;
  const double rest = small ? 0.0 : r;
  const dd s = two_sum(first, up ? y - rest : -rest);
  return quotient_to_odd(round_to_odd(s.hi, s.lo), y);
}
// f64: X and Y shifted up to 53 bits. The quotient's leading bits H, up to 56 of them, by long division, 11 bits a step, with
// remainder s < Y; j bits are left, rest = floor(s 2^j / Y) their value.
//   j = 0: the quotient is H. j > 0: H >= 2^54 has 55 bits at least, and the last one is made sticky before the rounding.
//   rest != 0 iff s 2^j >= Y iff s > floor((Y - 1) / 2^j). rest + 1 = 2^j, which carries into H and leaves nothing below,
//   iff s 2^j >= (2^j - 1) Y iff Y - s <= floor(Y / 2^j). Otherwise 1 <= rest + 1 < 2^j is sticky.
REPDL_HD double whole_quotient(double, double x, double y, double, bool up) {
  if (x < y) return up ? 1.0 : 0.0;
  const magnitude_parts p = parts_of(x);
  const magnitude_parts q = parts_of(y);
  const int p_shift = leading_zeros(p.significand) - 11;
  const int q_shift = leading_zeros(q.significand) - 11;
  const std::uint64_t divisor = q.significand << q_shift;
  int left = (p.exponent - p_shift) - (q.exponent - q_shift);
  std::uint64_t s = p.significand << p_shift;
  std::uint64_t h = s / divisor;
  s -= h * divisor;
  for (int i = 0; i < 5; ++i) {
    const int bits = left < 11 ? left : 11;
    s <<= bits;
    const std::uint64_t digit = s / divisor;
    s -= digit * divisor;
    h = h << bits | digit;
    left -= bits;
  }
  const int j = left < 63 ? left : 63;
  const bool carry = up & (divisor - s <= divisor >> j);
  const bool sticky = up ? !carry : s > (divisor - 1) >> j;
  const std::uint64_t leading = left == 0 ? h + (up ? 1 : 0) : carry ? h + 1 : h | (sticky ? 1 : 0);
  const int half = left / 2;
  return static_cast<double>(leading) * double_of(static_cast<std::uint64_t>(half + 1023) << 52) *
         double_of(static_cast<std::uint64_t>(left - half + 1023) << 52);
}

// The same in quick, with its sign, as `quotient`: at most 2^29 in binary64, 2^16 in binary32.
template <bool Floor, class T>
REPDL_HD auto quick_whole_quotient(T x, T y) {
  auto d = divide_quickly(x, y);
  using F = decltype(d.quotient);
  const auto sign = static_cast<storage_of<F>>(
      (to_bits(static_cast<F>(widen_to_float(x))) ^ to_bits(static_cast<F>(widen_to_float(y)))) & sign_mask<F>);
  const bool up = Floor & (sign != 0) & (d.remainder != 0);
  d.quotient = from_bits<F>(to_bits(d.quotient + choose(up, F{1}, F{0})) | sign);
  return d;
}

// Floor: one more in magnitude where the signs differ and something is left. A finite number over an infinity is 0 or, so, -1.
template <bool Floor>
struct whole_division_body {
  template <class T>
  REPDL_HD static T eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const double p = double_of(bits_of(a) & 0x7fffffffffffffff);
    const double q = double_of(bits_of(b) & 0x7fffffffffffffff);
    const double r = remainder_magnitude<T>(a, b);
    const std::uint64_t sign = (bits_of(a) ^ bits_of(b)) >> 63;
    const bool up = Floor & (sign != 0) & (r != 0);
    const bool defined = (p < __builtin_huge_val()) & (q > 0);
    const bool finite = defined & (q < __builtin_huge_val());
    using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const double whole = whole_quotient(wide{}, finite ? p : 0.0, finite ? q : 1.0, finite ? r : 0.0, up);
    const double quotient = finite ? whole : up ? 1.0 : 0.0;
    return narrow<T>(defined ? double_of(bits_of(quotient) | sign << 63) : a / b);
  }
  template <class T>
  requires has_24_bits<T> REPDL_HD static auto quick(T x, T y) {
    const auto d = quick_whole_quotient<Floor>(x, y);
    return d.template give<T>(d.quotient);
  }
};
template <>
struct body<ops::div_trunc> : whole_division_body<false> {};
template <>
struct body<ops::div_floor> : whole_division_body<true> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
