// One step of AdamW (contract, section 4): the moments are linear formulas (step.hpp); the parameter is
//
//     p' = RN_T(P),   P = p A - lr (m / c1) / (sqrt(v / c2) + eps),   A = 1 - lr wd,   m, v the new moments.
//
// p and the gradient are of the format T, the moments f32, or f64 where T is. Domain: as step.hpp; c1, c2 doubles in [2^-53, 1]; lr, wd
// of either sign; eps >= 0; every p, m, v.
//
// Tier binary64: the formula with k = RN(lr / c1), r = RN(1 / c2), a = RN(A). u = 2^-53.
//     v r            2u (r, product)           its root then u, and u for the root's own rounding: 2u
//     root + eps     3u: both are >= 0
//     k m            2u                        divided by the root: 2 + 3 + 1 = 6u
//     p a            2u                        difference: u |P|
// |error| <= 7u(|p a| + |k m / ...|) with room for second order terms, and 16u times that satisfies (C) of certify.hpp.
// Nothing over- or underflows: k <= 2^253, the denominator is 0 or in [2^-200, 2^201] (v >= 2^-149 has a root above
// 2^-75), so the quotient is 0 or in [2^-550, 2^581]. A non-finite result is that of the formula tree and final; v < 0
// gives NaN, v = -0 counts as 0 (eps + -0 is +0: a sum).
//
// Tier double_double, of f64: the same formula in balls of double-doubles, with k, r and A such balls. Where m = 0 or v = 0 they would
// know an exact 0 within 2^-1010 only; it is put there.
//
// Tier exact: adamw_formula, in balls (num/algebraic.hpp) of more and more bits.
// Checked by tests/steps/step_test.cpp against exact rationals and intervals of 4000 bits.
#pragma once

#include "librepdl/num/algebraic.hpp"
#include "librepdl/num/multi_limb_in_place.hpp"
#include "librepdl/ops/steps/step.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct adamw_param {
  double lr, c1, c2, eps, k, r;
  dd lr_wd;  // lr wd, exactly
  double a;
  dd_ball<double> ball_of_k, ball_of_r, ball_of_a;
};

struct adamw_stages {
  adamw_first_moment first_moment;
  adamw_second_moment second_moment;
  adamw_param param;
};

inline adamw_stages make_adamw_stages(double lr, double beta1, double beta2, double eps, double wd, double c1,
                                      double c2) {
  const dd k1 = two_sum(1.0, -beta1);
  const dd k2 = two_sum(1.0, -beta2);
  const dd lr_wd = two_prod(lr, wd);
  // 1 - hi - lo: rounded once if 1 - hi is exact, else |1 - hi| >= 1/2 (hi is outside [1/2, 2]) and the tail's rounding
  // is of second order. A = 0 gives 0.
  const dd difference = two_sum(1.0, -lr_wd.hi);
  const double a = difference.hi + (difference.lo - lr_wd.lo);
  adamw_stages s{};
  set_coefficient(s.first_moment, 0, beta1);
  set_coefficient(s.first_moment, 1, k1.hi, k1.lo);
  set_coefficient(s.second_moment, 0, beta2);
  set_coefficient(s.second_moment, 1, k2.hi, k2.lo);
  using Ball = dd_ball<double>;
  const auto of = [](double x) { return number<Ball>(x); };
  s.param = {lr,
             c1,
             c2,
             eps + 0.0,
             lr / c1,
             1 / c2,
             lr_wd,
             a,
             lr == 0 ? of(0) : quotient_of(of(lr), of(c1)),
             quotient_of(of(1), of(c2)),
             of(1) - of(lr_wd.hi) - of(lr_wd.lo)};
  return s;
}

REPDL_HD int sign_of(double x) { return static_cast<int>(x > 0) - static_cast<int>(x < 0); }

struct estimate {
  double value;
  double magnitude;
};
REPDL_HD estimate guess_param(const adamw_param& c, double p, double m, double v) {
  const double denominator = sqrt(v * c.r) + c.eps;
  const double move = c.k * m / denominator;
  const double kept = p * c.a;
  return {kept - move, magnitude_of(kept) + magnitude_of(move)};
}

// By tier binary64. `force` is 0, or +inf: undecided.
template <class T>
REPDL_HD outcome attempt(const adamw_param& c, double force, float p, float m, float v) {
  const estimate s = guess_param(c, static_cast<double>(p), static_cast<double>(m), static_cast<double>(v));
  return test<T>(s.value, 0x1p-49 * s.magnitude + force);
}

// By tier double_double; what is not finite, a negative v and 0 / 0 are undecided.
template <class R>
REPDL_HD decided_lanes<R> attempt_in_balls(const adamw_param& c, const R& p, const R& m, const R& v) {
  using Ball = dd_ball<R>;
  const auto all = [](const dd_ball<double>& a) {
    return Ball{math<R>::all(a.hi), math<R>::all(a.lo), math<R>::all(a.error)};
  };
  const Ball zero = number<Ball>(0.0);
  const Ball root = select(v == 0, zero, square_root(number<Ball>(v) * all(c.ball_of_r)));
  const Ball divisor = root + number<Ball>(c.eps);
  const Ball move = select(m == 0, zero, all(c.ball_of_k) * number<Ball>(m) / divisor);
  const decided_lanes<R> r = round_sum(number<Ball>(p) * all(c.ball_of_a) - move);
  return {r.value, static_cast<mask_of<R>>(r.decided & (v >= 0) & (divisor.hi > 0))};
}
template <class T>
requires std::is_same_v<T, double> REPDL_HD outcome_of<double> attempt(const adamw_param& c, double force, double p,
                                                                       double m, double v) {
  const decided_lanes<double> r = attempt_in_balls(c, p, m, v);
  return {r.value, static_cast<std::uint32_t>(!r.decided || force != 0)};
}

// Whether P follows from what is not finite or 0; else m = 0 says that the quotient is 0.
template <class T>
REPDL_HD bool is_special(const adamw_param& c, double p, double& m, double v, T* result) {
  const double zero = 0;
  const auto infinite = [](bool negative) {
    return from_bits<T>(static_cast<storage_of<T>>(format<T>::infinity | (negative ? sign_mask<T> : 0)));
  };
  *result = from_bits<T>(format<T>::nan);
  if (!(v >= 0) || p != p || m != m) return true;
  const bool v_infinite = v == infinity;
  const bool by_zero = v == zero && c.eps == zero;
  // The quotient lr (m / c1) / denominator: NaN, an infinity of sign `direction`, or finite.
  const int numerator = sign_of(c.lr) * sign_of(m);
  const bool m_infinite = !is_finite(m);
  if (m_infinite && (c.lr == zero || v_infinite)) return true;
  if (by_zero && numerator == 0) return true;
  const int direction = m_infinite || by_zero ? numerator : 0;
  if (!is_finite(p)) {
    const int kept = sign_of(p) * sign_of(c.a);
    if (kept != 0 && kept != direction) *result = infinite(kept < 0);
    return true;
  }
  if (direction != 0) {
    *result = infinite(direction > 0);
    return true;
  }
  if (v_infinite || numerator == 0) m = 0;  // the quotient is 0: P = p A
  return false;
}

// Tier exact: P as a formula (algebraic.hpp). Of binary32 operands a ball of 4096 bits always decides. With U, V and powers as there, in
// bits:
//     A                  U 509, power >= -506;  p A less a midpoint t, e: U 786, power >= -655 (x = lr wd of 106 bits, 2^-400 to 2^400)
//     sqrt(v / c2)       U 25, V 39, power -75 to 117;  + eps: U 396, V 39, power >= -252;  times c1: U 449, power >= -358
//     lr m               U 77, power >= -401;  the quotient: U 116, V 449, power -518 to 610
//     e - quotient       U < 786 + 449 + 518 + 104, or 116 + 610 + 655, V 449, power >= -655
// |P| < 2^581: it is off by 2^(581 - 4080), and 2^(-655 - 1860 - 449) is the least that it can be.
//
// Of f64, with S = U + power, a ball of 8704 bits:
//     p A                U 562, S 1428, power >= -1074 - 506;  t: S 1025, power >= -1075
//     sqrt(v / c2)       U 54, V 54, power -537 to 564;  + eps: U 618 + 252 + 1, power <= 200;  times c1: U 924, V 54, power >= -642
//     lr m               U 106, power -1326 to 1223;  the quotient: U 160, V 924, power -1526 to 1865; of eps = 0 V 107, power >= -1890
//     p A - quotient - t S < max(1428 + 924, 160 + 1865, 1025 + 924) + 2 = 2354, V 924, power >= -1580, so U < 2354 + 1580; of eps = 0
//                        S < 2027, V 107, power >= -1890
// It is 0 or at least 2^(-1580 - 3934 - 924); of eps = 0 2^(-1890 - 3917 - 107). |P| < 2^1815 (2^1224 for lr m, 2^53 for 1 / c1, 2^537 for
// the root): it is off by 2^(1815 - 8688).
struct adamw_formula {
  const adamw_param& c;
  double p, m, v;
  template <int L>
  REPDL_HD_CALL surd<L> eval() const {
    const auto of = [](double x) { return dyadic<L>(x); };
    const algebraic<L> kept = of(p) * (of(1) - of(c.lr_wd.hi) - of(c.lr_wd.lo));
    if (m == 0) return {kept, 1};
    return {kept - of(c.lr) * of(m) / (of(c.c1) * (square_root(of(v) / of(c.c2)) + of(c.eps))), 2};
  }
};

// The last level's limbs.
template <class T>
inline constexpr int adamw_limbs = std::is_same_v<T, double> ? 136 : 64;

// By tier exact, on the CPU.
template <class T>
T decide(const adamw_param& c, state_of<T> p, state_of<T> m, state_of<T> v) {
  adamw_formula f{c, static_cast<double>(p), static_cast<double>(m), static_cast<double>(v)};
  T special{};
  if (is_special(c, f.p, f.m, f.v, &special)) return special;
  const decided_value<T> r = decide_surd<T>(f, 2048);
  constexpr int last = adamw_limbs<T>;
  return r.decided ? r.value : round_surd<T, last>(f.eval<last>()).value;
}

// Where a GPU keeps the numbers of its last level, shared memory.
template <int L>
struct adamw_space {
  ball<L> value, divisor, move, x;
  limb_space<L> limbs;
};

// The formula in place: space.value becomes its ball.
template <int L>
REPDL_HD_CALL void evaluate_in_place(const adamw_formula& f, adamw_space<L>& s) {
  const auto number = [&](double x) -> const ball<L>& {
    set_value(s.x, x);
    return s.x;
  };
  set_value(s.value, 1);
  add_to(s.value, number(f.c.lr_wd.hi), true, s.limbs);
  add_to(s.value, number(f.c.lr_wd.lo), true, s.limbs);
  multiply_by(s.value, number(f.p), s.limbs);
  if (f.m == 0) return;
  set_value(s.divisor, f.v);
  divide_by(s.divisor, number(f.c.c2), s.limbs);
  take_root(s.divisor, s.limbs);
  add_to(s.divisor, number(f.c.eps), false, s.limbs);
  multiply_by(s.divisor, number(f.c.c1), s.limbs);
  set_value(s.move, f.c.lr);
  multiply_by(s.move, number(f.m), s.limbs);
  divide_by(s.move, s.divisor, s.limbs);
  add_to(s.value, s.move, true, s.limbs);
}

// RN_T of the formula, as round_surd has it, in place. The bounds below which the value, and its distance from a border, are 0 do
// not depend on the level: 128 bits know them.
template <class T, int L>
REPDL_HD_CALL decided_value<T> round_in_place(const adamw_formula& f, adamw_space<L>& s) {
  using F = format<T>;
  using storage = storage_of<T>;
  evaluate_in_place(f, s);
  const surd<2> bounds = f.eval<2>();
  if (s.value.exact()) return {from_bits<T>(round_bits<T>(s.value.middle)), true};
  if (sign_of(s.value, least_power(bounds.value, bounds.degree)) == 0) return {T{}, true};
  // The ends (ends_of).
  magnitude r = add(s.value.radius, power_magnitude(s.value.radius.exponent));
  if (!s.value.middle.is_zero()) r = add(r, power_magnitude(s.value.middle.exponent - 64 * L + 2));
  bool inexact = false;
  normalise_to(s.x.middle, &r.significand, 1, r.exponent + 64, 0, &inexact);
  add_to(s.move.middle, s.value.middle, s.x.middle, true, s.limbs.w, &inexact);
  const storage low = round_bits<T>(s.move.middle);
  add_to(s.move.middle, s.value.middle, s.x.middle, false, s.limbs.w, &inexact);
  const storage high = round_bits<T>(s.move.middle);
  if (low == high) return {from_bits<T>(low), true};
  // Neighbours, and the border between them (round_formula).
  const bool negative = (low & sign_mask<T>) != 0;
  const storage inner = negative ? high : low;
  const storage outer = negative ? low : high;
  if (outer != static_cast<storage>(inner + 1)) return {T{}, false};
  const auto set_pattern = [](multi_limb<L>& to, storage b) {
    const auto magnitude = static_cast<storage>(b & static_cast<storage>(~sign_mask<T>));
    const bool beyond = magnitude == F::infinity;  // as 2^(emax + 1)
    set_value(to, beyond ? power_of_two(F::emax) : widen(from_bits<T>(magnitude)));
    to.exponent += static_cast<std::int64_t>(beyond);
    to.negative = static_cast<std::uint64_t>((b & sign_mask<T>) != 0 && !to.is_zero());
  };
  set_pattern(s.x.middle, inner);
  set_pattern(s.move.middle, outer);
  add_to(s.x.middle, s.x.middle, s.move.middle, false, s.limbs.w, &inexact);
  s.x.middle.exponent -= 1;
  s.x.radius = {0, 0};
  const multi_limb<2> border = {
      {s.x.middle.limb[L - 2], s.x.middle.limb[L - 1]}, s.x.middle.exponent, s.x.middle.negative};
  add_to(s.value, s.x, true, s.limbs);
  const algebraic<2> distance = bounds.value - dyadic(exact_ball(border));
  const int side = sign_of(s.value, least_power(distance, bounds.degree));
  if (side == 2) return {T{}, false};
  const auto even = static_cast<storage>((inner & 1) == 0 ? inner : outer);
  return {from_bits<T>(side == 0 ? even : side < 0 ? low : high), true};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
