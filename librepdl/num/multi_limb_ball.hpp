// Balls: a multi-limb middle and a radius. The ball of a result contains every exact result of numbers in the operands'
// balls, so a formula written with these operations carries its own error bound, and an exact result has radius 0.
//
// Method: F. Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE Trans. Comput.
// 66 (2017). Radii are 32-bit significands, every operation on them rounds up.
#pragma once

#include "librepdl/num/format.hpp"
#include "librepdl/num/multi_limb.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// significand · 2^exponent, an upper bound (or where said, a lower one); significand in [2^31, 2^32), or 0.
struct magnitude {
  std::uint64_t significand;
  std::int64_t exponent;

  REPDL_HD bool is_zero() const { return significand == 0; }
  REPDL_HD bool below_power(std::int64_t power) const { return is_zero() || exponent + 32 <= power; }  // < 2^power
};

// s · 2^e rounded up to 32 bits.
REPDL_HD magnitude magnitude_of(std::uint64_t s, std::int64_t e) {
  if (s == 0) return {0, 0};
  const int shift = 32 - leading_zeros(s);  // the bits above 32
  if (shift <= 0) return {s << -shift, e + shift};
  std::uint64_t m = (s >> shift) + static_cast<std::uint64_t>((s << (64 - shift)) != 0);
  if (m >> 32 != 0) return {m >> 1, e + shift + 1};  // 2^32
  return {m, e + shift};
}
REPDL_HD magnitude power_magnitude(std::int64_t power) { return {0x80000000u, power - 31}; }
REPDL_HD_CALL magnitude add(magnitude a, magnitude b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const bool ordered = a.exponent >= b.exponent;
  const magnitude x = ordered ? a : b;
  const magnitude y = ordered ? b : a;
  const std::int64_t d = x.exponent - y.exponent;
  const std::uint64_t shifted = d > 31 ? 0 : y.significand >> d;
  return magnitude_of(x.significand + shifted + static_cast<std::uint64_t>(d != 0), x.exponent);
}
REPDL_HD magnitude multiply(magnitude a, magnitude b) {
  return magnitude_of(a.significand * b.significand, a.exponent + b.exponent);
}
// a / b for a an upper and b a lower bound, b != 0.
REPDL_HD magnitude divide(magnitude a, magnitude b) {
  if (a.is_zero()) return a;
  return magnitude_of((a.significand << 32) / b.significand + 1, a.exponent - b.exponent - 32);
}
// a (1 + 2^-3), which takes quotients from |b| to |b| - r for r <= |b| / 16.
REPDL_HD magnitude with_eighth(magnitude a) { return magnitude_of(a.significand * 9, a.exponent - 3); }

// An impossible radius: nothing is known. Large enough that no formula brings it back.
REPDL_HD magnitude unknown() { return power_magnitude(std::int64_t{1} << 40); }

template <int L>
REPDL_HD magnitude upper(const multi_limb<L>& a) {
  return a.is_zero() ? magnitude{0, 0} : magnitude_of((a.limb[L - 1] >> 32) + 1, a.exponent - 32);
}
template <int L>
REPDL_HD magnitude lower(const multi_limb<L>& a) {
  return a.is_zero() ? magnitude{0, 0} : magnitude{a.limb[L - 1] >> 32, a.exponent - 32};
}

template <int Limbs>
struct ball {
  multi_limb<Limbs> middle;
  magnitude radius;

  REPDL_HD bool exact() const { return radius.is_zero(); }
};

template <int L>
REPDL_HD ball<L> exact_ball(const multi_limb<L>& a) {
  return {a, {0, 0}};
}
// An upper bound of every number's magnitude in the ball.
template <int L>
REPDL_HD magnitude upper(const ball<L>& a) {
  return add(upper(a.middle), a.radius);
}
template <int L>
REPDL_HD ball<L> grown(ball<L> a, magnitude by) {
  a.radius = add(a.radius, by);
  return a;
}
// The rounding error of one operation on middles: (1 + 2^-60) ulp <= (1 + 2^-31) ulp. An exact zero of a difference is
// exact (add loses bits only of operands too far apart to cancel).
template <int L>
REPDL_HD magnitude rounding_error(const multi_limb<L>& a, bool inexact) {
  return inexact ? magnitude{0x80000001u, a.exponent - 64 * L - 31} : magnitude{0, 0};
}

template <int L>
REPDL_HD ball<L> negated(const ball<L>& a) {
  return {negated(a.middle), a.radius};
}
template <int L>
REPDL_HD ball<L> scaled(ball<L> a, std::int64_t power) {
  a.middle = scaled(a.middle, power);
  a.radius.exponent += a.radius.is_zero() ? 0 : power;
  return a;
}
template <int L, int M>
REPDL_HD ball<L> widen_ball(const ball<M>& a) {
  return {widen_limbs<L>(a.middle), a.radius};
}

template <int L>
REPDL_HD_ONCE ball<L> add(const ball<L>& a, const ball<L>& b) {
  bool inexact = false;
  const multi_limb<L> m = add(a.middle, b.middle, &inexact);
  return {m, add(add(a.radius, b.radius), rounding_error(m, inexact))};
}
template <int L>
REPDL_HD ball<L> subtract(const ball<L>& a, const ball<L>& b) {
  return add(a, negated(b));
}
// |ab - a'b'| <= |a'| rb + |b'| ra + ra rb for |a - a'| <= ra, |b - b'| <= rb.
template <int L>
REPDL_HD_ONCE ball<L> multiply(const ball<L>& a, const ball<L>& b) {
  bool inexact = false;
  const multi_limb<L> m = multiply(a.middle, b.middle, &inexact);
  const magnitude spread = add(multiply(upper(a), b.radius), multiply(upper(b.middle), a.radius));
  return {m, add(spread, rounding_error(m, inexact))};
}
// a/b - a'/b' = (a - a')/b + (a'/b')(b' - b)/b, and |b| >= |b'| - rb >= (15/16)|b'| when rb <= |b'| / 16.
template <int L>
REPDL_HD_ONCE ball<L> divide(const ball<L>& a, const ball<L>& b) {
  if (b.middle.is_zero() || !b.radius.below_power(b.middle.exponent - 5)) return {a.middle, unknown()};
  bool inexact = false;
  const multi_limb<L> m = divide(a.middle, b.middle, &inexact);
  const magnitude error = rounding_error(m, inexact);
  const magnitude spread = add(a.radius, multiply(add(upper(m), error), b.radius));
  return {m, add(with_eighth(divide(spread, lower(b.middle))), error)};
}

// In place. A GPU gives every temporary its own memory: functions that call these instead need less of it.
template <int L>
REPDL_HD_ONCE void set_power(ball<L>& a, std::int64_t power) {  // 2^power
  a = exact_ball(limbs_of_power<L>(power));
}
template <int L>
REPDL_HD_ONCE void add_to(ball<L>& a, const ball<L>& b) {
  a = add(a, b);
}
template <int L>
REPDL_HD_ONCE void add_value(ball<L>& a, double b) {
  a = add(a, exact_ball(limbs_of_value<L>(b)));
}
template <int L>
REPDL_HD_ONCE void add_count(ball<L>& a, std::int64_t n) {
  a = add(a, exact_ball(limbs_of<L>(static_cast<std::uint64_t>(n))));
}
template <int L>
REPDL_HD_ONCE void multiply_by(ball<L>& a, const ball<L>& b) {
  a = multiply(a, b);
}
template <int L>
REPDL_HD_ONCE void multiply_by_value(ball<L>& a, double b) {
  a = multiply(a, exact_ball(limbs_of_value<L>(b)));
}
template <int L>
REPDL_HD_ONCE void multiply_by_count(ball<L>& a, std::int64_t n) {
  a = multiply(a, exact_ball(limbs_of<L>(static_cast<std::uint64_t>(n))));
}
template <int L>
REPDL_HD_ONCE void divide_by(ball<L>& a, const ball<L>& b) {
  a = divide(a, b);
}

// --------------------------------------------------------------------------------------------------------- rounding

// RN_T(a), ties to even, subnormals and overflow included; a zero is +0.
template <class T, int L>
REPDL_HD_ONCE storage_of<T> round_bits(const multi_limb<L>& a) {
  if (a.is_zero()) return 0;
  std::uint64_t below = 0;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L - 1; ++i) below |= a.limb[i];
  return round_leading<T>(a.negative != 0, a.limb[L - 1], below, a.exponent - 1);
}

// Of unpacked numbers: the loop rounds the value, where `undecided` is 0. A word, as wide as the value.
template <class T>
struct decided_value<unpacked<T>> {
  unpacked<T> value;
  std::uint32_t undecided;
};

// Numbers that enclose a ball: middle -+ r' with r' >= r (1 + 2^-32) + 4 ulp(middle). The addition errs by at most 1.01 ulp
// of an end, which is at most 2^(1 - 64 L) 1.01 (|middle| + r') <= 2.1 ulp(middle) + 2^-126 r'.
template <int L>
struct ball_ends {
  multi_limb<L> low, high;
};
template <int L>
REPDL_HD_ONCE ball_ends<L> ends_of(const ball<L>& a) {
  magnitude r = add(a.radius, power_magnitude(a.radius.exponent));
  if (!a.middle.is_zero()) r = add(r, power_magnitude(a.middle.exponent - 64 * L + 2));
  bool inexact = false;
  const multi_limb<L> step = limbs_of<L>(r.significand, r.exponent);
  return {add(a.middle, negated(step), &inexact), add(a.middle, step, &inexact)};
}
// RN_T of every number in the ball, if that is one value; an exact zero is +0.
template <class T, int L>
REPDL_HD_ONCE decided_value<T> round_ball(const ball<L>& a) {
  using storage = typename format<T>::storage;
  if (a.exact()) return {bit_cast<T>(round_bits<T>(a.middle)), true};
  const ball_ends<L> ends = ends_of(a);
  const storage low = round_bits<T>(ends.low);
  const storage high = round_bits<T>(ends.high);
  return {bit_cast<T>(low), low == high && a.radius.exponent < (std::int64_t{1} << 39)};
}

// Calls attempt.template operator()<Limbs>() for 128, 256, 512, 1024, 2048 bits until one decides or the budget, at least 256, is
// spent. 128 bits decide nearly all that comes here, in a third of the time of 256.
template <class Attempt>
REPDL_HD auto decide_by_levels(const Attempt& attempt, int budget_bits) {
  decltype(attempt.template operator()<2>()) c{};
  if (budget_bits >= 256) c = attempt.template operator()<2>();
  if (!c.decided && budget_bits >= 256) c = attempt.template operator()<4>();
  if (!c.decided && budget_bits >= 512) c = attempt.template operator()<8>();
  if (!c.decided && budget_bits >= 1024) c = attempt.template operator()<16>();
  if (!c.decided && budget_bits >= 2048) c = attempt.template operator()<32>();
  return c;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
