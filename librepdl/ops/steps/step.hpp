// One step of SGD: each new state and the new parameter is one rounding of one formula (contract, section 4). The tests
// and the exact arithmetic here also serve the states of AdamW (step_adamw.hpp).
//
//     v' = RN_f32(mu v + (1 - d)(g + lambda p))   first step: v' = RN_f32(g + lambda p)
//     p' = RN_T(p - lr v')                        nesterov:   p' = RN_T(p - lr (g + lambda p + mu v'))
//                                                 mu = 0:     p' = RN_T(p - lr (g + lambda p))
//
// p and g are of the format T; states are f32, or f64 where T is. Domain: hyper-parameters 0 or of magnitude in [2^-200, 2^200],
// mu < 1; every operand. Hyper-parameters are the exact values of doubles, and 1 - d is that exact real number. Operands of f16 and bf16
// are binary32 numbers, so what is said of those holds; T says how a sum is rounded, and nothing else. What f64 has of its own is said
// at the end.
//
// Multiplied out, a formula is a sum of two to four products c x, c a real number that is known exactly, x an operand.
// Two tiers; u = 2^-53. (Plain binary64 would not do as a first tier: with beta = 0.9 the sum beta m + (1 - beta) g is
// nearly a multiple of a tenth of an ulp, and one element in twenty comes within 2^-54 of a midpoint.)
//   double_double  Error-free products and sums, their small parts added up with a running bound: `evaluate` below.
//   exact          The same products in a fixed-point register: always decides. Products are multiples of 2^-653 (two
//                  hyper-parameters of 2^-200-52, an operand of 2^-149; or one and a squared gradient, 2^-252-298) and
//                  below 2^529; with at most eight of them 1185 bits and a sign suffice; the register has 1216.
// Nothing over- or underflows in either: with finite operands every value is 0 or in [2^-653, 2^530].
//
// Operands that are infinite or NaN follow the formula tree (section 3 of the contract: 0 * inf is NaN, also when the
// zero is a hyper-parameter). The plain binary64 sum of the products gives the same: RN(c) = 0 only for c = 0, no
// finite value overflows, and k (g + lambda p) is non-finite exactly when k g + (k lambda) p is, with the same value.
// (p and
// - lr lambda p stay two terms: their sum for an infinite p is NaN.)
//
// Of f64 the first tier is the formula in balls of double-doubles (dd_ball.hpp), which know where their products leave the range in
// which they are bounded; what is not finite, and products that overflow, are left to `exact`. There products are multiples of 2^-2400
// (a coefficient's part 2^-252, two gradients 2^-1074 each; or 2^-504 and one operand) and below 2^2049 (a part of 1 - beta, at most 1 +
// 2^-53, and 2^1024 twice; others are below 2^1426), 16 of them at most: 4454 bits and a sign; the register has 4480. Where operands are
// infinite or NaN, the finite ones count as 0: a coefficient times a finite number is finite.
// Checked by tests/steps/step_test.cpp against exact rationals.
#pragma once

#include <type_traits>

#include "librepdl/num/dd_ball.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// The numbers that states beside parameters of T are, and as which operands of T are read.
template <class T>
using state_of = std::conditional_t<std::is_same_v<T, double>, double, float>;

// What a tier says about one element. value: RN_T, or, of f16 and bf16, a number of binary32 that rounds as the exact value does
// (`unpacked`, format.hpp). undecided: 0 or 1; of binary32 an integer of the value's width, so that loops vectorise.
template <class State>
struct outcome_of {
  State value;
  std::uint32_t undecided;
};
using outcome = outcome_of<float>;

// RN_T(v), as an outcome has it; NaN need not be canonical.
template <class T>
REPDL_HD float value_in(double v) {
  if constexpr (is_small_float<T>) {
    return narrow<unpacked<T>>(v).value;
  } else {
    return static_cast<float>(v);
  }
}
// What tells results apart.
template <class T>
REPDL_HD std::uint32_t result_bits(float value) {
  if constexpr (is_small_float<T>) {
    return to_bits(narrow<T>(value));
  } else {
    return bits_of(value);
  }
}

// num::certify in operations that vectorise: s, e under (C) of certify.hpp; e = +inf for undecided.
template <class T>
REPDL_HD outcome test(double s, double e) {
  const bool finite = s - s == 0;
  const double t = s + 0.0;
  const float low = value_in<T>(finite ? t - e : s);
  const float high = value_in<T>(finite ? t + e : s);
  const std::uint32_t differs = result_bits<T>(low) ^ result_bits<T>(high);
  return {canonical(low), (differs | (0u - differs)) >> 31};
}

// The sum of c_i x_i. Each coefficient is the sum of its four parts, exactly, and within slack |high| of
// high + low. slack = 0 where that is the sum; `plain` where every low is 0 too. Coefficient `Unit` is 1 (-1: none).
template <int N, int Unit = -1>
struct linear_form {
  static constexpr int terms = N;
  static constexpr int unit = Unit;
  double high[N];
  double low[N];
  double slack;
  bool plain;
  double part[N][4];
};

// Tier double_double. `force` is 0, or +inf: undecided. Plain: form.plain holds.
//     high_i x_i = h_i + l_i      two_prod, exact
//     sum of h_i = s + sum of t_j two_sum, exact
//     low = fl(sum of all l_i, t_j and fl(low_i x_i))   at most 9 numbers: error <= 9u sigma (1 + 9u), sigma the sum of
//                                                       their magnitudes
//     s + low = v + tail          two_sum, exact
// With the slack of the coefficients, |S - (v + tail)| <= e = fl(2^-48 sigma + slack sum|h_i|): 2^-48 = 32u > 9u, and
// slack is twice the coefficients' error. If e = 0, S = v + tail. If |tail| >= e > 0, S - v is not 0, has the sign of
// tail, and |S - v| < ulp(v), so that rounding v + tail to odd and rounding S to odd is the same. In both cases RO(v +
// tail) converted to T is RN_T(S) (eft.hpp): midpoints, frequent where T is narrow, are decided here as well. Otherwise the element is
// undecided.
template <class T, bool Plain, class Form>
REPDL_HD outcome evaluate(const Form& form, const double (&x)[Form::terms], double force) {
  double s = 0;
  double low = 0;
  double sigma = 0;
  double sum = 0;
  REPDL_UNROLL_BY(4)
  for (int i = 0; i < Form::terms; ++i) {
    dd h = {x[i], 0.0};
    if (i != Form::unit) {
      h = two_prod(form.high[i], x[i]);
      low += h.lo;
      sigma += magnitude_of(h.lo);
      if constexpr (!Plain) {
        const double l = form.low[i] * x[i];
        low += l;
        sigma += magnitude_of(l);
      }
    }
    if constexpr (!Plain) sum += magnitude_of(h.hi);
    if (i == 0) {
      s = h.hi;
    } else {
      const dd t = two_sum(s, h.hi);
      s = t.hi;
      low += t.lo;
      sigma += magnitude_of(t.lo);
    }
  }
  const dd v = two_sum(s, low);
  const double e = (Plain ? 0x1p-48 * sigma : 0x1p-48 * sigma + form.slack * sum) + force;
  const bool finite = s - s == 0;
  const double rounded = finite ? round_to_odd(v.hi + 0.0, v.lo) : s;
  const std::uint64_t undecided = bits_of(finite ? magnitude_of(v.lo) - e : 0.0) >> 63;
  return {canonical(value_in<T>(rounded)), static_cast<std::uint32_t>(undecided)};
}

template <class State>
using step_accumulator =
    std::conditional_t<std::is_same_v<State, double>, fixed_point<-2400, 70>, fixed_point<-656, 19>>;

// += a b, a multiple of the register's unit. Without their trailing zeros the significands' exponents are the numbers' own.
template <class Sum>
REPDL_HD void add_product(Sum& sum, double a, double b) {
  const auto x = decompose(a);
  const auto y = decompose(b);
  if (x.significand == 0 || y.significand == 0) return;
  const int zeros_x = trailing_zeros(x.significand);
  const int zeros_y = trailing_zeros(y.significand);
  std::uint64_t high = 0;
  const std::uint64_t low = multiply_wide(x.significand >> zeros_x, y.significand >> zeros_y, &high);
  const int exponent = x.exponent + y.exponent + zeros_x + zeros_y;
  sum.add_scaled(low, exponent, x.negative != y.negative);
  if (high != 0) sum.add_scaled(high, exponent + 64, x.negative != y.negative);
}

// Tier exact. Finite operands.
template <class T, class Form, class Operand>
REPDL_HD T evaluate_exact(const Form& form, const Operand (&x)[Form::terms]) {
  step_accumulator<state_of<T>> sum;
  for (int i = 0; i < Form::terms; ++i) {
    for (int j = 0; j < 4; ++j) add_product(sum, form.part[i][j], x[i]);
  }
  return sum.template round<T>();
}

// ---------------------------------------------------------------------------------------------------------- stages
//
// A stage is one formula. Its operands are called x, y, z in `load`, for all stages: the velocity or moment, the
// gradient, the parameter, and are doubles, balls, or what is exact (`factors`). T: the format of the result.

// g + lambda p
struct sgd_first_velocity : linear_form<2, 0> {
  template <class X>
  REPDL_HD static void load(const X&, const X& g, const X& p, X (&x)[2]) {
    x[0] = g, x[1] = p;
  }
};
// mu v + (1 - d) g + (1 - d) lambda p
struct sgd_velocity : linear_form<3> {
  template <class X>
  REPDL_HD static void load(const X& v, const X& g, const X& p, X (&x)[3]) {
    x[0] = v, x[1] = g, x[2] = p;
  }
};
// p - lr v'
struct sgd_param : linear_form<2, 1> {
  template <class X>
  REPDL_HD static void load(const X& v, const X&, const X& p, X (&x)[2]) {
    x[0] = v, x[1] = p;
  }
};
// p - lr g - lr lambda p
struct sgd_plain_param : linear_form<3, 2> {
  template <class X>
  REPDL_HD static void load(const X&, const X& g, const X& p, X (&x)[3]) {
    x[0] = g, x[1] = p, x[2] = p;
  }
};
// p - lr mu v' - lr g - lr lambda p
struct sgd_nesterov_param : linear_form<4, 3> {
  template <class X>
  REPDL_HD static void load(const X& v, const X& g, const X& p, X (&x)[4]) {
    x[0] = v, x[1] = g, x[2] = p, x[3] = p;
  }
};
// beta m + (1 - beta) g
struct adamw_first_moment : linear_form<2> {
  template <class X>
  REPDL_HD static void load(const X& m, const X& g, const X&, X (&x)[2]) {
    x[0] = m, x[1] = g;
  }
};
// beta v + (1 - beta) g^2; the square of a number of binary32 has 48 bits and is exact.
struct adamw_second_moment : linear_form<2> {
  template <class X>
  REPDL_HD static void load(const X& v, const X& g, const X&, X (&x)[2]) {
    x[0] = v, x[1] = g * g;
  }
};

// By tier double_double.
template <class T, bool Plain, class Stage>
REPDL_HD outcome attempt(const Stage& stage, double force, float x, float y, float z) {
  double operand[Stage::terms];
  Stage::load(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z), operand);
  return evaluate<T, Plain>(stage, operand, force);
}
// By tier exact; finite operands.
template <class T, class Stage>
requires(Stage::terms > 0 && !std::is_same_v<T, double>) REPDL_HD T
    decide(const Stage& stage, float x, float y, float z) {
  double operand[Stage::terms];
  Stage::load(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z), operand);
  return evaluate_exact<T>(stage, operand);
}

// ----------------------------------------------------------------------------------------------------------- binary64

// The sum of c_i x_i in balls. What the four parts of a coefficient have beside high and low is below 2^-103 of it (set_coefficient).
template <class R, class Form>
REPDL_HD dd_ball<R> ball_of(const Form& form, const dd_ball<R> (&x)[Form::terms]) {
  dd_ball<R> sum{};
  REPDL_UNROLL_BY(4)
  for (int i = 0; i < Form::terms; ++i) {
    dd_ball<R> term = x[i];
    if (i != Form::unit) {
      const dd c = fast_two_sum(form.high[i], form.low[i]);
      const double rest = form.part[i][1] != 0 || form.part[i][0] != 0 ? 0x1p-100 * magnitude_of(c.hi) : 0.0;
      term = dd_ball<R>{math<R>::all(c.hi), math<R>::all(c.lo), math<R>::all(rest)} * term;
    }
    sum = i == 0 ? term : sum + term;
  }
  return sum;
}

// By tier double_double.
template <class R, class Stage>
REPDL_HD decided_lanes<R> attempt_in_balls(const Stage& stage, const R& x, const R& y, const R& z) {
  using Ball = dd_ball<R>;
  Ball operand[Stage::terms];
  Stage::load(number<Ball>(x), number<Ball>(y), number<Ball>(z), operand);
  return round_sum(ball_of(stage, operand));
}
template <class T, bool, class Stage>
requires std::is_same_v<T, double> REPDL_HD outcome_of<double> attempt(const Stage& stage, double force, double x,
                                                                       double y, double z) {
  const decided_lanes<double> r = attempt_in_balls(stage, x, y, z);
  return {r.value, static_cast<std::uint32_t>(!r.decided || force != 0)};
}

// a b, exactly; of a number b is 1.
struct factors {
  double a, b;
  REPDL_HD factors operator*(const factors& o) const { return {a, o.a}; }  // of two numbers
};
// += c a b
template <class Sum>
REPDL_HD void add_product(Sum& sum, double c, const factors& x) {
  if (x.b == 1) return add_product(sum, c, x.a);
  const auto a = decompose(x.a);
  const auto b = decompose(x.b);
  const auto d = decompose(c);
  if (a.significand == 0 || b.significand == 0 || d.significand == 0) return;
  const int zeros = trailing_zeros(d.significand);
  std::uint64_t part[2];
  part[0] = multiply_wide(a.significand, b.significand, &part[1]);
  const int exponent = a.exponent + b.exponent + d.exponent + zeros;
  const bool negative = (a.negative != b.negative) != d.negative;
  for (int i = 0; i < 2; ++i) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(part[i], d.significand >> zeros, &high);
    sum.add_scaled(low, exponent + 64 * i, negative);
    sum.add_scaled(high, exponent + 64 * i + 64, negative);
  }
}

// By tier exact; every operand.
template <class T, class Stage>
requires(Stage::terms > 0 && std::is_same_v<T, double>) REPDL_HD
    double decide(const Stage& stage, double x, double y, double z) {
  factors operand[Stage::terms];
  Stage::load(factors{x, 1}, factors{y, 1}, factors{z, 1}, operand);
  bool finite = true;
  double sum = 0;
  for (int i = 0; i < Stage::terms; ++i) {
    const bool is_number = is_finite(operand[i].a);
    finite = finite && is_number;
    sum += is_number ? 0.0 : stage.high[i] * (operand[i].b == 1 ? operand[i].a : operand[i].a * operand[i].b);
  }
  return finite ? evaluate_exact<double>(stage, operand) : canonical(sum);
}

// Sets coefficient i to the exact sum of the parts, each 0 or a multiple of 2^-504 below 2^402.
// Three passes of error-free vector transformation (T. Ogita, S. Rump, S. Oishi, "Accurate sum and dot product", SIAM
// J. Sci. Comput. 26, 2005) keep the sum and leave the parts of a nearly normalised expansion: high = part[3], low =
// part[2], and the rest is below 8 u^2 |high|. (1 - x with x near 1 is where high cancels; the first pass leaves then
// nothing but the small parts, exactly.) slack = 2^-100 is 64u^2.
template <class Form>
void set_coefficient(Form& form, int i, double a, double b = 0, double c = 0, double d = 0) {
  double part[4] = {a, b, c, d};
  for (int pass = 0; pass < 3; ++pass) {
    for (int j = 1; j < 4; ++j) {
      const dd s = two_sum(part[j], part[j - 1]);
      part[j] = s.hi;
      part[j - 1] = s.lo;
    }
  }
  for (int j = 0; j < 4; ++j) form.part[i][j] = part[j] + 0.0;
  form.high[i] = part[3] + 0.0;
  form.low[i] = part[2] + 0.0;
  if (i == 0) form.plain = true, form.slack = 0;
  form.plain = form.plain && part[2] == 0;
  if (part[1] != 0 || part[0] != 0) form.plain = false, form.slack = 0x1p-100;
}

// The stages of one call. Made once, on the host.
struct sgd_stages {
  sgd_first_velocity first_velocity;
  sgd_velocity velocity;
  sgd_param param;
  sgd_plain_param plain_param;
  sgd_nesterov_param nesterov_param;
};

inline sgd_stages make_sgd_stages(double lr, double mu, double dampening, double lambda) {
  sgd_stages s{};
  const dd k = two_sum(1.0, -dampening);
  const dd decay_high = two_prod(k.hi, lambda);
  const dd decay_low = two_prod(k.lo, lambda);
  const dd lr_lambda = two_prod(lr, lambda);
  const dd lr_mu = two_prod(lr, mu);
  set_coefficient(s.first_velocity, 0, 1);
  set_coefficient(s.first_velocity, 1, lambda);
  set_coefficient(s.velocity, 0, mu);
  set_coefficient(s.velocity, 1, k.hi, k.lo);
  set_coefficient(s.velocity, 2, decay_low.lo, decay_low.hi, decay_high.lo, decay_high.hi);
  set_coefficient(s.param, 0, -lr);
  set_coefficient(s.param, 1, 1);
  set_coefficient(s.plain_param, 0, -lr);
  set_coefficient(s.plain_param, 1, -lr_lambda.hi, -lr_lambda.lo);
  set_coefficient(s.plain_param, 2, 1);
  set_coefficient(s.nesterov_param, 0, -lr_mu.hi, -lr_mu.lo);
  set_coefficient(s.nesterov_param, 1, -lr);
  set_coefficient(s.nesterov_param, 2, -lr_lambda.hi, -lr_lambda.lo);
  set_coefficient(s.nesterov_param, 3, 1);
  return s;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
