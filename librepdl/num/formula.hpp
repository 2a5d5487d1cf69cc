// One formula, many precisions: the last tier of elementwise operations.
//
// A formula is a type with a template eval<L>() that says its value in balls of L limbs, once for all levels. Where balls
// alone cannot decide, because the value may be a midpoint or come closer to one than any precision tells, it says more:
//
//   ball<L>       a dyadic expression is exact at some level, and rounded there, ties included; an irrational one is no
//                 midpoint, and some level decides
//   quotient<L>   N / D
//   root<L>       sqrt(N / D) or -sqrt(N / D), N >= 0, D > 0
//   beside<L>     a value, and an exact part: value = part + rest, the rest not 0 and of a known sign
//
// A ball that does not decide leaves one border m between two neighbours of the format, mostly. On which side of m the value
// lies is then the exact sign of N - m D or N - m^2 D, where these are exact at the level; or, if the part is m, that of the
// rest. The last needs no bound on the rest: value - m is the rest. If the part is not m, it does not help, and more bits do.
//
// A formula of binary64 is a template of the type of its balls, not of their limbs, and takes numbers: of double-doubles, its first tier,
// these are registers. The functions that it may call have one name for both (below, and in dd_ball.hpp and dd_functions.hpp).
//
// In the end every level computes the same: what a level decides is right whatever the later ones would say.
#pragma once

#include "librepdl/num/dd_functions.hpp"
#include "librepdl/num/multi_limb_functions.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <int L>
struct quotient {
  ball<L> numerator, denominator;
};
template <int L>
struct root {
  ball<L> numerator, denominator;
  bool negative = false;
};
template <int L>
struct beside {
  ball<L> value;
  ball<L> part;
  int rest;  // its sign
};

// A finite number, exactly.
template <int L>
REPDL_HD ball<L> number(double x) {
  return exact_ball(limbs_of_value<L>(x));
}
// The same by the ball's type.
template <class Ball>
inline constexpr bool is_multi_limb = false;
template <int L>
inline constexpr bool is_multi_limb<ball<L>> = true;
template <class Ball>
inline constexpr int limbs_of_ball = 0;
template <int L>
inline constexpr int limbs_of_ball<ball<L>> = L;
template <class Ball>
requires is_multi_limb<Ball> REPDL_HD Ball number(double x) { return number<limbs_of_ball<Ball>>(x); }
template <int L>
REPDL_HD ball<L> operator+(const ball<L>& a, const ball<L>& b) {
  return add(a, b);
}
template <int L>
REPDL_HD ball<L> operator-(const ball<L>& a, const ball<L>& b) {
  return subtract(a, b);
}
template <int L>
REPDL_HD ball<L> operator*(const ball<L>& a, const ball<L>& b) {
  return multiply(a, b);
}
template <int L>
REPDL_HD ball<L> operator/(const ball<L>& a, const ball<L>& b) {
  return divide(a, b);
}

// e^x of a ball, |x| < 2^14: e^(x + d) - e^x <= e^x |d| (1 + 2^-3) for |d| < 2^-10; wider balls say nothing.
template <int L>
REPDL_HD_ONCE ball<L> exponential(const ball<L>& x) {
  if (!x.radius.below_power(-10)) return {x.middle, unknown()};
  const ball<L> r = exponential(x.middle);
  return grown(r, with_eighth(multiply(upper(r), x.radius)));
}

// What else formulas of binary64 call: as the functions of dd_functions.hpp; e^x - 1 and ln(1 + v) here without relative accuracy next to 0,
// where |x| < 2^-33 (more bits decide).
template <int L>
REPDL_HD_CALL ball<L> exponential_minus_one(const ball<L>& x) {
  return exponential(x) - number<L>(1);
}
template <bool Precise = false, int L>
REPDL_HD ball<L> logarithm(ball<L> x) {
  to_logarithm(x);
  return x;
}
template <int L>
REPDL_HD ball<L> logarithm_1p(ball<L> v) {
  to_logarithm_1p(v);
  return v;
}
// sin x or cos x, as balls of this type.
template <class Ball, class R>
REPDL_HD Ball circular_of(R x, bool sine) {
  if constexpr (is_multi_limb<Ball>) {
    return circular<limbs_of_ball<Ball>>(x, sine);
  } else {
    return circular(x, sine);
  }
}
template <class Ball>
REPDL_HD Ball ln2() {
  if constexpr (is_multi_limb<Ball>) {
    return ln2_ball<limbs_of_ball<Ball>>();
  } else {
    return constant<Ball>(dd_ln2);
  }
}
template <class Ball>
REPDL_HD Ball half_pi() {
  if constexpr (is_multi_limb<Ball>) {
    return scaled(quarter_pi_ball<limbs_of_ball<Ball>>(), 1);
  } else {
    return constant<Ball>(dd_half_pi);
  }
}
template <class Ball>
REPDL_HD Ball inverse_ln10() {
  if constexpr (is_multi_limb<Ball>) {
    return number<Ball>(1) / logarithm(number<Ball>(10));
  } else {
    return constant<Ball>(dd_log10_e);
  }
}

// The sign of an exact number, 2 of any other.
template <int L>
REPDL_HD int sign_of(const ball<L>& a) {
  if (!a.exact()) return 2;
  return a.middle.is_zero() ? 0 : a.middle.negative != 0 ? -1 : 1;
}

// The sign of value - m, or 2.
template <int L>
REPDL_HD_CALL int side_of(const ball<L>&, const ball<L>&) {
  return 2;
}
template <int L>
REPDL_HD_CALL int side_of(const quotient<L>& f, const ball<L>& m) {
  const int sign = sign_of(f.numerator - m * f.denominator);
  return sign != 2 && f.denominator.middle.negative != 0 ? -sign : sign;
}
template <int L>
REPDL_HD_CALL int side_of(const root<L>& f, const ball<L>& m) {  // m of the same sign
  const int sign = sign_of(f.numerator - m * m * f.denominator);
  return sign != 2 && f.negative ? -sign : sign;
}
template <int L>
REPDL_HD_CALL int side_of(const beside<L>& f, const ball<L>& m) {
  return sign_of(f.part - m) == 0 ? f.rest : 2;
}

template <int L>
REPDL_HD const ball<L>& enclosure(const ball<L>& f) {
  return f;
}
template <int L>
REPDL_HD ball<L> enclosure(const quotient<L>& f) {
  return f.numerator / f.denominator;
}
template <int L>
REPDL_HD ball<L> enclosure(const root<L>& f) {
  const ball<L> r = square_root(f.numerator / f.denominator);
  return f.negative ? negated(r) : r;
}
template <int L>
REPDL_HD const ball<L>& enclosure(const beside<L>& f) {
  return f.value;
}

// RN_T of a formula's value at one level. The ends of the ball as in round_ball; if they round to neighbours, the border m
// between them is half their sum, infinity counting as 2^(emax + 1). Zero is between the least numbers of either sign, not a
// border: of ends of different signs nothing is said.
template <class T, int L, class Value>
REPDL_HD_ONCE decided_value<T> round_formula(const Value& f) {
  using F = format<T>;
  using storage = typename F::storage;
  const ball<L> b = enclosure(f);
  const decided_value<T> plain = round_ball<T>(b);
  if (plain.decided || b.radius.exponent >= (std::int64_t{1} << 39)) return plain;
  const ball_ends<L> ends = ends_of(b);
  const storage low = round_bits<T>(ends.low);
  const storage high = round_bits<T>(ends.high);
  const bool negative = (low & sign_mask<T>) != 0;
  const storage inner = negative ? high : low;  // next to zero
  const storage outer = negative ? low : high;
  if (outer != static_cast<storage>(inner + 1) || ends.low.is_zero() || ends.high.is_zero()) return plain;
  const auto value_of = [](storage s) {
    const storage magnitude = static_cast<storage>(s & ~sign_mask<T>);
    const ball<L> v = magnitude == F::infinity ? exact_ball(limbs_of_power<L>(F::emax + 1))
                                               : number<L>(widen(from_bits<T>(magnitude)));
    return (s & sign_mask<T>) != 0 ? negated(v) : v;
  };
  const ball<L> m = scaled(value_of(inner) + value_of(outer), -1);  // p + 1 bits: exact
  const int side = side_of(f, m);
  if (side == 2) return plain;
  const storage even = static_cast<storage>((inner & 1) == 0 ? inner : outer);
  return {from_bits<T>(side == 0 ? even : side < 0 ? low : high), true};
}

template <class T, class Formula>
struct formula_attempt {
  const Formula& formula;
  template <int L>
  REPDL_HD decided_value<T> operator()() const {
    return round_formula<T, L>(formula.template eval<L>());
  }
};
// The first of 128, 256, 512, 1024, 2048 bits that decides, within the budget (256 or more).
template <class T, class Formula>
REPDL_HD_CALL decided_value<T> decide(const Formula& f, int last_tier_bits) {
  return decide_by_levels(formula_attempt<T, Formula>{f}, last_tier_bits);
}

// The same, where callers branch around it: on a GPU its lanes leave it together.
template <class T, class Formula>
REPDL_HD_CALL decided_value<T> decide_together(const Formula& f, int last_tier_bits) {
  const lanes_together lanes;
  const decided_value<T> r = decide_by_levels(formula_attempt<T, Formula>{f}, last_tier_bits);
  lanes.meet();
  return r;
}

// RN_T(value) of what formula.operator()<Ball>() says, as decide; the caller has lanes_together.
template <class T, class Formula>
struct ball_attempt {
  const Formula& formula;
  template <int L>
  REPDL_HD decided_value<T> operator()() const {
    return round_formula<T, L>(formula.template operator()<ball<L>>());
  }
};
template <class T, class Formula>
REPDL_HD decided_value<T> decide_by_balls(const Formula& f, int last_tier_bits) {
  return decide_by_levels(ball_attempt<T, Formula>{f}, last_tier_bits);
}

// ------------------------------------------------------------------------------------------------- the rounding test

// RN_T of what lies between two numbers, if they round alike: bits are compared, branch-free.
//
// Unpacked: in binary32, where rounding is monotone and midpoints of T are numbers. If both ends, each within 2^-30 of itself,
// are rounded to s, then so is everything between them, and what is below a midpoint is rounded to it or below: if s is none, all
// that is rounded to s is on one side of every midpoint, and RN_T(s) is the result.
template <class T>
REPDL_HD decided_value<T> certify_between(double below, double above) {
  if constexpr (is_unpacked<T>) {
    const auto low = static_cast<float>(below);
    const auto high = static_cast<float>(above);
    return {{low}, (bits_of(low) ^ bits_of(high)) | midpoint_mark<T>(low)};
  } else {
    const T low = narrow<T>(below);
    const T high = narrow<T>(above);
    return {low, to_bits(low) == to_bits(high)};
  }
}

// The same of what v is within 2^-50 of itself of.
template <class T>
requires is_unpacked<T> REPDL_HD decided_value<T> quick_value(double v) { return certify_between<T>(v, v); }

// A result.
template <class T>
REPDL_HD decided_value<T> decided(T v) {
  if constexpr (is_unpacked<T>) {
    return {v, 0};
  } else {
    return {v, true};
  }
}

// RN_T(v), by odd numbers where v is unpacked.
template <class T>
REPDL_HD decided_value<T> decided_as(double v) {
  return decided(narrow<T>(v));
}

// RN_T(v) if every number within `error` of v rounds alike. error has room for the roundings of v - error and v + error, which
// are u (|v| + error): so an end is not the exact value, and may be a zero of its side, +0 above or -0 below, or of either sign.
// error = 0 says that v is rounded as the exact value is, -0 too.
template <class T>
REPDL_HD decided_value<T> certify_as(double v, double error) {
  if constexpr (on_device) {
    return certify_between<T>(v - error, error == 0 ? v : v + error);
  } else {
    return certify_between<T>(v - error, -(-v - error));  // v + error, and -0 for -0; no select
  }
}

// The same where midpoints are frequent. Unpacked: both ends rounded to odd numbers of 13 bits (narrow), which lie on the side of
// every midpoint on which the ends do.
template <class T>
REPDL_HD decided_value<T> certify_with_ties(double v, double error) {
  if constexpr (is_unpacked<T>) {
    const T low = narrow<T>(v - error);
    const T high = narrow<T>(-(-v - error));
    return {low, to_bits(low) ^ to_bits(high)};
  } else {
    return certify_as<T>(v, error);
  }
}

// A quotient of exact balls, by the name of dd_ball.hpp.
template <int L>
REPDL_HD quotient<L> quotient_of(const ball<L>& a, const ball<L>& b) {
  return {a, b};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num

#include "librepdl/num/multi_limb_instances.hpp"
