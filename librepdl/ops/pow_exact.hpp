// The last tier of pow: RN_T(x^y) for every x and y of T = f16, bf16, float, decided with integers or in multi-limb
// balls.
//
// Why it decides. Special cases are C23's (F.10.4.5). Otherwise x > 0 (the sign is put in at the end), x != 1, y != 0.
// Let x = 2^e m, m odd, and |y| = n 2^q, n odd. Midpoints and representable numbers are dyadic, and x^y is dyadic only
// in the following cases.
// - q < 0, k = -q: (x^y)^(2^k) = x^(+-n) with n odd. If x^y is dyadic, x^(+-n) is the 2^k-th power of a dyadic number,
//   so 2^k divides n e, hence e, and m^n is a 2^k-th power, hence m (2^k divides n times each prime's exponent in m).
//   Then x is replaced by its 2^k-th root and y by +-n: m < 2^24 allows k <= 3 unless m = 1, and |e| <= 149 k <= 7.
// - y = +-E, E an integer: 2^(+-e E) for m = 1; for m > 1 dyadic iff y > 0, and then m^E is odd: with more than p + 1
//   bits it is neither representable nor a midpoint (subnormal numbers have fewer bits).
// m^E is computed exactly where b E <= 256, b the bits of m. Beyond that m^E >= 2^((b - 1) E) >= 2^(b E / 2) > 2^128,
// more than p + 1 bits. So what the integers leave is no midpoint, and a ball that is narrow enough decides.
//
// Balls: e^(y ln x). First |y ln x| > 199, from a binary64 estimate, gives infinity or zero: e^199 > 2^128, e^-199 <
// 2^-150. So |y ln x| < 201, and with |ln x| >= 2^-24 (x next to 1) |y| < 2^32. logarithm is within 2^(5 - 64 L) max(1,
// |ln x|), y ln x within 2^(37 - 64 L), and the ball of x^y is x^y 2^(38 - 64 L) wide at most: 2^-218 for 256 bits.
// |y ln x| >= 2^-173 (|y| >= 2^-149): even 1 + 2^-173 is told from 1, although it need not be, since 1 is no midpoint.
// 256 bits are enough unless some x^y is 2^-190 ulp from a midpoint; 2^64 pairs come as near as 2^-64 by chance.
// Checked by tests/pow_test.cpp.
#pragma once

#include "librepdl/num/multi_limb_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// 2^exponent significand.
struct odd_number {
  std::uint64_t significand;  // odd
  std::int64_t exponent;
};
REPDL_HD odd_number odd_number_of(double x) {  // finite, not 0, |x| normal
  const std::uint64_t b = bits_of(x);
  const std::uint64_t m = (b & 0xfffffffffffffull) | 0x10000000000000ull;
  const int zeros = 63 - leading_zeros(m & (0 - m));
  return {m >> zeros, (static_cast<std::int64_t>(b >> 52) & 0x7ff) - 1075 + zeros};
}

// x becomes its square root if that is dyadic.
REPDL_HD bool take_root(odd_number& x) {
  const auto root = static_cast<std::uint64_t>(num::sqrt(static_cast<double>(x.significand)));  // exact for squares
  if ((x.exponent & 1) != 0 || root * root != x.significand) return false;
  x = {root, x.exponent / 2};
  return true;
}

// RN_T(x^y) if x^y is dyadic and b E <= 256 as above, else undecided: then it is no midpoint. x > 0, x != 1, y != 0;
// finite.
template <class T>
REPDL_HD_CALL decided_value<T> pow_dyadic(double x, double y) {
  odd_number base = odd_number_of(x);
  odd_number power = odd_number_of(y);
  for (; power.exponent < 0; ++power.exponent) {
    if (!take_root(base)) return {T{}, false};
  }
  // E, cut down to 2^40: that times an exponent other than 0 is out of range, too.
  const double count = static_cast<double>(power.significand) *
                       power_of_two(static_cast<int>(power.exponent < 40 ? power.exponent : 40));
  const auto n = static_cast<std::int64_t>(count < 0x1p40 ? count : 0x1p40);
  bool inexact = false;
  multi_limb<4> value = limbs_of<4>(1);
  if (base.significand != 1) {
    if (y < 0 || (64 - leading_zeros(base.significand)) * n > 256) return {T{}, false};
    multi_limb<4> square = limbs_of<4>(base.significand);
    for (std::int64_t rest = n; rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) value = multiply(value, square, &inexact);
      square = multiply(square, square, &inexact);
    }
  }
  return {bit_cast<T>(round_bits<T>(scaled(value, y < 0 ? -base.exponent * n : base.exponent * n))), true};
}

// x^y, |y ln x| < 201.
template <int L>
REPDL_HD_CALL ball<L> pow_ball(double x, double y) {
  ball<L> r = logarithm(limbs_of_value<L>(x));
  multiply_by_value(r, y);
  // e^(z + d) - e^z <= e^z |d| (1 + 2^-3) for |d| < 2^-10.
  const magnitude spread = r.radius;
  r = exponential(r.middle);
  return grown(r, with_eighth(multiply(upper(r), spread)));
}

template <class T>
struct pow_attempt {
  double x, y;
  template <int L>
  REPDL_HD decided_value<T> operator()() const {
    return round_ball<T>(pow_ball<L>(x, y));
  }
};

// About y ln x, x > 0: ln x is within 2^-39, a relative 2^-14 for x next to 1.
REPDL_HD double pow_estimate(double x, double y) {
  const std::uint64_t b = bits_of(x);
  const double m = double_of((b & 0xfffffffffffffull) | 0x3ff0000000000000ull);  // in [1, 2)
  const bool above = m > 1.4142;
  const std::int64_t e = static_cast<std::int64_t>(b >> 52) - 1023 + (above ? 1 : 0);
  return y * (static_cast<double>(e) * 0x1.62e42fefa39efp-1 + log_start(above ? 0.5 * m : m));  // RN(ln 2)
}

// x > 0, x != 1, y != 0; finite.
template <class T>
REPDL_HD_CALL decided_value<T> pow_positive(double x, double y, int last_tier_bits) {
  using storage = typename format<T>::storage;
  const decided_value<T> r = pow_dyadic<T>(x, y);
  if (r.decided) return r;
  const double z = pow_estimate(x, y);
  if (z > 200) return {bit_cast<T>(format<T>::infinity), true};
  if (z < -200) return {bit_cast<T>(storage{0}), true};
  return decide_by_levels(pow_attempt<T>{x, y}, last_tier_bits);
}

// last_tier_bits: 256, 512, 1024, 2048; less than 256 leaves open what is not dyadic and not out of range.
template <class T>
REPDL_HD decided_value<T> pow_exact(T base, T power, int last_tier_bits) {
  using F = format<T>;
  using storage = typename F::storage;
  constexpr int sign_place = 8 * sizeof(storage) - 1;
  const double x = widen(base);
  const double y = widen(power);
  const double magnitude = x < 0 ? -x : x;
  const double steps = y < 0 ? -y : y;
  const bool whole =
      steps >= 0x1p53 || steps == static_cast<double>(static_cast<std::int64_t>(steps < 0x1p53 ? steps : 0));
  const bool odd = whole && steps < 0x1p53 && (static_cast<std::int64_t>(steps) & 1) != 0;
  const storage sign = static_cast<storage>(odd ? bit_cast<storage>(base) >> sign_place << sign_place : 0);
  if (y == 0 || x == 1) return {bit_cast<T>(narrow<T>(1.0)), true};
  if (x != x || y != y) return {bit_cast<T>(F::nan), true};
  storage zero_or_infinity = F::infinity;
  if (magnitude == 0 || magnitude == infinity) {
    if ((magnitude == 0) == (y > 0)) zero_or_infinity = 0;
    return {bit_cast<T>(static_cast<storage>(sign | zero_or_infinity)), true};
  }
  if (x < 0 && !whole) return {bit_cast<T>(F::nan), true};
  if (magnitude == 1) return {bit_cast<T>(static_cast<storage>(sign | bit_cast<storage>(narrow<T>(1.0)))), true};
  if (steps == infinity) {
    if ((magnitude > 1) != (y > 0)) zero_or_infinity = 0;
    return {bit_cast<T>(zero_or_infinity), true};
  }
  const decided_value<T> r = pow_positive<T>(magnitude, y, last_tier_bits);
  return {bit_cast<T>(static_cast<storage>(sign | bit_cast<storage>(r.value))), r.decided};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
