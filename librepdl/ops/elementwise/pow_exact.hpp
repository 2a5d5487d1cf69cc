// The last tier of pow, pow_scalar, scalar_pow: RN_T(x^y), T = f16, bf16, float, for all x and y of binary64, decided with
// integers or in multi-limb balls. And what special operands give.
//
// Why it decides. Special cases are C23's (F.10.4.5). Otherwise x > 0 (the sign is put in at the end), x != 1, y != 0.
// Let x = 2^e m, m odd, and |y| = n 2^q, n odd. Midpoints and representable numbers are dyadic, and x^y is dyadic only
// in the following cases.
// - q < 0, k = -q: (x^y)^(2^k) = x^(+-n) with n odd. If x^y is dyadic, x^(+-n) is the 2^k-th power of a dyadic number,
//   so 2^k divides n e, hence e, and m^n is a 2^k-th power, hence m (2^k divides n times each prime's exponent in m).
//   Then x is replaced by its 2^k-th root and y by +-n: m < 2^53 allows k <= 5 unless m = 1, and |e| <= 1074 k <= 10.
// - y = +-E, E an integer: 2^(+-e E) for m = 1; for m > 1 dyadic iff y > 0, and then m^E is odd: with more than p + 1
//   bits it is neither representable nor a midpoint (subnormal numbers have fewer bits).
// m^E is computed exactly where b E <= 256, b the bits of m. Beyond that m^E >= 2^((b - 1) E) >= 2^(b E / 2) > 2^128,
// more than p + 1 bits. So what the integers leave is no midpoint, and a ball that is narrow enough decides.
//
// Balls: e^(y ln x). First |y ln x| > 199, from a binary64 estimate, gives infinity or zero: e^199 > 2^128, e^-199 <
// 2^-150. So |y ln x| < 201, and with |ln x| >= 2^-24 (x next to 1; 2^-53 where x has 53 bits) |y| < 2^32 (2^61).
// logarithm is within 2^(5 - 64 L) max(1, |ln x|), y ln x within 2^(37 - 64 L) (2^(66 - 64 L)), and the ball of x^y is
// twice as wide at most: 2^-218 (2^-189) of x^y for 256 bits. x^y next to 1 need not be told from 1, which is no midpoint.
// 256 bits are enough unless some x^y is 2^-190 (2^-160) ulp from a midpoint; 2^64 pairs come as near as 2^-64 by chance.
// Checked by tests/elementwise/pow_test.cpp and tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/num/multi_limb_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// All ones if |w| > limit or w is NaN, else 0; and w with |w| cut down to the limit by that. In integers, which the
// compiler does not turn into branches.
REPDL_HD std::uint64_t pow_beyond(double w, double limit) {
  return mask_if_negative(bits_of(limit) - (bits_of(w) & 0x7fffffffffffffff));
}
REPDL_HD double pow_limited(double w, double limit, std::uint64_t beyond) {
  const std::uint64_t magnitude = 0x7fffffffffffffff;
  return double_of((bits_of(w) & ~(beyond & magnitude)) | (bits_of(limit) & beyond));
}

// Numbers beyond 2^52 are whole, infinities count as such; and those beyond 2^53 are even.
REPDL_HD bool is_whole(double y) {
  const double steps = pow_limited(y, 0x1p52, pow_beyond(y, 0x1p52));
  const double m = steps < 0 ? -steps : steps;
  return (m + 0x1p52) - 0x1p52 == m;
}
REPDL_HD bool is_odd(double y) { return is_whole(y) & !is_whole(0.5 * y); }

// Where pow_special does not say what x^y is: finite, x != 0, 1, -1 and y != 0, and x > 0 or y whole.
REPDL_HD bool pow_is_plain(double x, double y) {
  const double base = x < 0 ? -x : x;
  return (base - base == 0) & (base != 0) & (base != 1) & (y - y == 0) & (y != 0) & ((x > 0) | is_whole(y));
}
// C23, F.10.4.5; a number for what is plain.
REPDL_HD double pow_special(double x, double y) {
  const double base = double_of(bits_of(x) & 0x7fffffffffffffff);
  const bool number = y - y == 0;
  const bool extreme = ((base == 0) | (base == infinity) | !number) & (base != 1);
  const double limit = (base > 1) == (y > 0) ? infinity : 0.0;
  const double power = extreme ? limit : 1.0;
  const double turned = (bits_of(x) >> 63 != 0) & is_odd(y) ? -power : power;
  const bool nan = (x != x) | (y != y) | ((x < 0) & (base < infinity) & number & !is_whole(y));
  return (y == 0) | (x == 1) ? 1.0 : nan ? double_of(format<double>::nan) : turned;
}

// 2^exponent significand.
struct odd_number {
  std::uint64_t significand;  // odd
  std::int64_t exponent;
};
REPDL_HD odd_number odd_number_of(double x) {  // finite, not 0
  const std::uint64_t b = bits_of(x);
  const auto e = static_cast<std::int64_t>(b >> 52) & 0x7ff;
  const std::uint64_t m = (b & 0xfffffffffffffull) | (e != 0 ? 0x10000000000000ull : 0);
  const int zeros = 63 - leading_zeros(m & (0 - m));
  return {m >> zeros, (e != 0 ? e : 1) - 1075 + zeros};
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

// About y ln x, x > 0: ln x is within a relative 2^-14, as within 2^-39, or (x next to 1) two terms of its series.
REPDL_HD double pow_estimate(double x, double y) {
  const bool tiny = x < 0x1p-1000;
  const std::uint64_t b = bits_of(tiny ? x * 0x1p200 : x);
  const double m = double_of((b & 0xfffffffffffffull) | 0x3ff0000000000000ull);  // in [1, 2)
  const bool above = m > 1.4142;
  const std::int64_t e = static_cast<std::int64_t>(b >> 52) - 1023 + (above ? 1 : 0) - (tiny ? 200 : 0);
  const double f = x - 1;
  if (f > -0x1p-10 && f < 0x1p-10) return y * (f - 0.5 * f * f);
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

// last_tier_bits: 256, 512, 1024, 2048; less than 256 leaves undecided what is not dyadic and not out of range.
template <class T>
REPDL_HD_CALL decided_value<T> pow_exact(double x, double y, int last_tier_bits) {
  using storage = typename format<T>::storage;
  if (!pow_is_plain(x, y)) return {narrow<T>(pow_special(x, y)), true};
  const decided_value<T> r = pow_positive<T>(x < 0 ? -x : x, y, last_tier_bits);
  const storage sign = (x < 0) & is_odd(y) ? sign_mask<T> : storage{0};
  return {bit_cast<T>(static_cast<storage>(sign | bit_cast<storage>(r.value))), r.decided};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
