// Balls of thousands of bits on a GPU: the operations of multi_limb_ball.hpp and square roots, where every number lies in memory that
// the caller has, shared or global. A function that returns such numbers, or keeps one, needs it on the stack of each thread that the
// device can hold, gigabytes in all. Here a stack has pointers and single words.
//
// Bounds of errors as there: |result - exact| <= (1 + 2^-60) ulp(result) for sums and products of middles. Quotients and roots are
// Newton's, by products alone, and what they err is measured.
// Checked by tests/numerics/multi_limb_test.cpp against multi_limb_ball.hpp.
#pragma once

#include "librepdl/num/multi_limb_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// What operations on L limbs use.
template <int L>
struct limb_space {
  multi_limb<L> y, t, z;  // of quotients and roots
  std::uint64_t w[2 * L + 1];
};

// r = (-1)^negative · sum w[i] 2^(64 i) · 2^(exponent - 64 size), truncated; r is apart from w.
template <int L>
REPDL_HD_CALL void normalise_to(multi_limb<L>& r, const std::uint64_t* w, int size, std::int64_t exponent,
                                std::uint64_t negative, bool* inexact) {
  int top = size - 1;
  while (top > 0 && w[top] == 0) --top;
  const bool zero = w[top] == 0;
  const int shift = zero ? 0 : leading_zeros(w[top]);
  for (int i = 0; i < L; ++i) {
    const int at = top - i;
    const std::uint64_t high = at >= 0 ? w[at] : 0;
    const std::uint64_t low = at >= 1 ? w[at - 1] : 0;
    r.limb[L - 1 - i] = shift == 0 ? high : high << shift | low >> (64 - shift);
  }
  std::uint64_t lost = top >= L ? w[top - L] << shift : 0;
  for (int i = 0; i < top - L; ++i) lost |= w[i];
  if (lost != 0) *inexact = true;
  r.exponent = zero ? 0 : exponent - 64 * (size - 1 - top) - shift;
  r.negative = zero ? 0 : negative;
}

template <int L>
REPDL_HD_CALL void set_value(multi_limb<L>& r, double x) {  // finite x, exactly
  const std::uint64_t b = bits_of(x);
  const int e = static_cast<int>(b >> 52) & 0x7ff;
  const std::uint64_t w = (b & 0xfffffffffffffull) | (e != 0 ? 0x10000000000000ull : 0);
  bool inexact = false;
  normalise_to(r, &w, 1, (e != 0 ? e : 1) - 1075 + 64, b >> 63, &inexact);
}

// r = a + b, or a - b; r may be one of them. The operand of the larger exponent, x, takes the upper half of 2 L limbs, the other one is
// shifted to its place; what falls off is less than 2^(1 - 64 L) ulp of the result, which is |x| / 2 at least where anything does.
template <int L>
REPDL_HD_CALL void add_to(multi_limb<L>& r, const multi_limb<L>& a, const multi_limb<L>& b, bool minus,
                          std::uint64_t* w, bool* inexact) {
  const std::uint64_t sign_b = b.is_zero() ? 0 : b.negative ^ static_cast<std::uint64_t>(minus);
  if (a.is_zero() || b.is_zero()) {
    const std::uint64_t sign = a.is_zero() ? sign_b : a.negative;
    r = a.is_zero() ? b : a;
    r.negative = sign;
    return;
  }
  const bool ordered = a.exponent >= b.exponent;
  const multi_limb<L>& x = ordered ? a : b;
  const multi_limb<L>& y = ordered ? b : a;
  std::uint64_t negative = ordered ? a.negative : sign_b;
  const bool subtract = a.negative != sign_b;
  const std::int64_t exponent = x.exponent;
  const std::int64_t d = exponent - y.exponent;
  const std::int64_t limbs = d >> 6;
  const int bits = static_cast<int>(d & 63);
  const auto limb_of_y = [&](std::int64_t i) { return i >= 0 && i < L ? y.limb[i] : 0; };
  std::uint64_t lost = 0;
  for (int i = 0; i < L; ++i) {  // limb i of y goes to i + L - limbs, and its low bits one further down
    const std::int64_t to = i + L - limbs;
    lost |= to < 0 ? y.limb[i] : to == 0 && bits != 0 ? y.limb[i] << (64 - bits) : 0;
  }
  std::uint64_t carry = subtract ? 1 : 0;
  for (int i = 0; i < 2 * L; ++i) {
    const std::int64_t from = i - L + limbs;
    const std::uint64_t low = limb_of_y(from);
    const std::uint64_t shifted = bits == 0 ? low : low >> bits | limb_of_y(from + 1) << (64 - bits);
    w[i] = add_carry(i < L ? 0 : x.limb[i - L], subtract ? ~shifted : shifted, &carry);
  }
  w[2 * L] = subtract ? 0 : carry;
  if (subtract && carry == 0) {  // |x| < |y|, which needs d = 0
    negative ^= 1;
    carry = 1;
    for (int i = 0; i < 2 * L; ++i) w[i] = add_carry(~w[i], 0, &carry);
  }
  if (lost != 0) *inexact = true;
  normalise_to(r, w, 2 * L + 1, exponent + 64, negative, inexact);
}

// r = a b; r may be one of them.
template <int L>
REPDL_HD_CALL void multiply_to(multi_limb<L>& r, const multi_limb<L>& a, const multi_limb<L>& b, std::uint64_t* w,
                               bool* inexact) {
  multiply_limbs<L>(a.limb, b.limb, w);
  normalise_to(r, w, 2 * L, a.exponent + b.exponent, a.negative ^ b.negative, inexact);
}

// ------------------------------------------------------------------------------------------------------------- balls

template <int L>
REPDL_HD_CALL void set_value(ball<L>& r, double x) {
  set_value(r.middle, x);
  r.radius = {0, 0};
}
template <int L>
REPDL_HD_CALL void add_to(ball<L>& r, const ball<L>& b, bool minus, limb_space<L>& space) {  // r += b, or -= b
  bool inexact = false;
  add_to(r.middle, r.middle, b.middle, minus, space.w, &inexact);
  r.radius = add(add(r.radius, b.radius), rounding_error(r.middle, inexact));
}
template <int L>
REPDL_HD_CALL void multiply_by(ball<L>& r, const ball<L>& b, limb_space<L>& space) {
  bool inexact = false;
  const magnitude spread = add(multiply(upper(r), b.radius), multiply(upper(b.middle), r.radius));
  multiply_to(r.middle, r.middle, b.middle, space.w, &inexact);
  r.radius = add(spread, rounding_error(r.middle, inexact));
}

// At most |s d - n| (1 + 2^-30) / |d|, what s = n / d errs, or for n = x, d = s what a root does. t becomes s d - n.
template <int L>
REPDL_HD_CALL magnitude measured_error(const multi_limb<L>& s, const multi_limb<L>& d, const multi_limb<L>& n,
                                       multi_limb<L>& t, limb_space<L>& space) {
  bool inexact = false;
  multiply_to(t, s, d, space.w, &inexact);
  const magnitude of_product = rounding_error(t, inexact);
  inexact = false;
  add_to(t, t, n, true, space.w, &inexact);
  return divide(add(add(upper(t), rounding_error(t, inexact)), of_product), lower(d));
}

// r /= b. With y near 1 / b, y += y (1 - b y) doubles its bits.
template <int L>
REPDL_HD_CALL void divide_by(ball<L>& r, const ball<L>& b, limb_space<L>& space) {
  if (b.middle.is_zero() || !b.radius.below_power(b.middle.exponent - 5)) {
    r.radius = unknown();
    return;
  }
  if (r.middle.is_zero() && r.exact()) return;
  multi_limb<L>&y = space.y, &t = space.t, &z = space.z;
  bool inexact = false;
  const double lead = static_cast<double>(b.middle.limb[L - 1] >> 11) * 0x1p-53;
  set_value(y, b.middle.negative != 0 ? -1 / lead : 1 / lead);
  y.exponent -= b.middle.exponent;
  set_value(z, 1);
  for (int bits = 48; bits < 64 * L; bits *= 2) {
    multiply_to(t, b.middle, y, space.w, &inexact);
    add_to(t, z, t, true, space.w, &inexact);
    multiply_to(t, t, y, space.w, &inexact);
    add_to(y, y, t, false, space.w, &inexact);
  }
  multiply_to(y, y, r.middle, space.w, &inexact);
  const magnitude error = measured_error(y, b.middle, r.middle, t, space);
  const magnitude spread = add(r.radius, multiply(add(upper(y), error), b.radius));
  r.middle = y;
  r.radius = add(with_eighth(divide(spread, lower(b.middle))), error);
}

// r = sqrt r, as square_root (multi_limb_functions.hpp).
template <int L>
REPDL_HD_CALL void take_root(ball<L>& r, limb_space<L>& space) {
  if (r.middle.is_zero() && r.exact()) return;
  if (r.middle.is_zero() || r.middle.negative != 0) {
    r.radius = unknown();
    return;
  }
  multi_limb<L>&y = space.y, &t = space.t, &z = space.z;
  const std::int64_t half = (r.middle.exponent - (r.middle.exponent & 1)) / 2;
  r.middle.exponent -= 2 * half;  // in [1/2, 2)
  bool inexact = false;
  set_value(y, 1 / num::sqrt(double_near(r.middle)));
  set_value(z, 1);
  for (int bits = 48; bits < 64 * L; bits *= 2) {  // y += y (1 - r y^2) / 2
    multiply_to(t, y, y, space.w, &inexact);
    multiply_to(t, t, r.middle, space.w, &inexact);
    add_to(t, z, t, true, space.w, &inexact);
    multiply_to(t, t, y, space.w, &inexact);
    t.exponent -= t.is_zero() ? 0 : 1;
    add_to(y, y, t, false, space.w, &inexact);
  }
  multiply_to(y, y, r.middle, space.w, &inexact);
  magnitude error = measured_error(y, y, r.middle, t, space);
  if (!r.radius.is_zero()) {
    error = add(error, divide(magnitude{r.radius.significand, r.radius.exponent - 2 * half}, lower(y)));
  }
  r.middle = y;
  r.middle.exponent += half;
  if (!error.is_zero()) error.exponent += half;
  r.radius = error;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
