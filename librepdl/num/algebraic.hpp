// Algebraic formulas: +, -, *, / and square roots of dyadic numbers, stated once, evaluated in balls, and each with a bound that tells
// when it is 0: what is closer to 0 than that is 0. So a value that is a midpoint is recognised, at a precision that the formula
// itself says, and no formula needs a comparison of its own.
//
// Sources: C. Burnikel, S. Funke, K. Mehlhorn, S. Schirra, S. Schmitt, "A separation bound for real algebraic expressions",
// Algorithmica 55 (2009); S. Pion, C. Yap, "Constructive root bound for k-ary rational numbers", Theoretical Computer Science 369
// (2006): powers of two are kept apart.
//
// A number is E = 2^power U / V, U and V algebraic integers in a field of degree at most D, 2 for each square root in the formula,
// all conjugates of U at most 2^upper in magnitude, of V 2^lower, V != 0:
//     n 2^k, n odd     U = n                                V = 1
//     E + F            2^(k - min) U_E V_F + 2^(l - min) U_F V_E, k and l their powers, and V_E V_F
//     E F              U_E U_F, V_E V_F                      E / F    U_E V_F, V_E U_F
//     sqrt E           k even (else 2 U): sqrt(U V) and V, or U and sqrt(U V)
// Conjugates of sums, products and roots are sums, products and roots of conjugates, which gives the bounds. If E != 0, the
// product of all conjugates of U is an integer and not 0, so |U| >= 2^(-(D - 1) upper), |V| <= 2^lower, and
//     |E| >= 2^(power - (D - 1) upper - lower).
// Checked by tests/numerics/algebraic_test.cpp against GMP and MPFR.
#pragma once

#include "librepdl/num/formula.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

template <int L>
struct algebraic {
  ball<L> value;
  std::int64_t power, upper, lower;  // nothing of them is known of 0, which is exact

  REPDL_HD bool is_zero() const { return value.exact() && value.middle.is_zero(); }
};

// An exact ball's number.
template <int L>
REPDL_HD_CALL algebraic<L> dyadic(const ball<L>& a) {
  int limb = 0;
  while (limb < L - 1 && a.middle.limb[limb] == 0) ++limb;
  const std::uint64_t w = a.middle.limb[limb];
  const int zeros = 64 * limb + 63 - leading_zeros((w & (0 - w)) | 1);
  return {a, a.middle.exponent - 64 * L + zeros, 64 * L - zeros, 0};
}
template <int L>
REPDL_HD algebraic<L> dyadic(double x) {
  return dyadic(number<L>(x));
}

template <int L>
REPDL_HD_CALL algebraic<L> operator+(const algebraic<L>& a, const algebraic<L>& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const std::int64_t power = a.power < b.power ? a.power : b.power;
  const std::int64_t first = a.upper + a.power - power + b.lower;
  const std::int64_t second = b.upper + b.power - power + a.lower;
  return {a.value + b.value, power, (first > second ? first : second) + 1, a.lower + b.lower};
}
template <int L>
REPDL_HD algebraic<L> operator-(const algebraic<L>& a, const algebraic<L>& b) {
  return a + algebraic<L>{negated(b.value), b.power, b.upper, b.lower};
}
template <int L>
REPDL_HD_CALL algebraic<L> operator*(const algebraic<L>& a, const algebraic<L>& b) {
  return {a.value * b.value, a.power + b.power, a.upper + b.upper, a.lower + b.lower};
}
template <int L>
REPDL_HD_CALL algebraic<L> operator/(const algebraic<L>& a, const algebraic<L>& b) {
  return {a.value / b.value, a.power - b.power, a.upper + b.lower, a.lower + b.upper};
}
template <int L>
REPDL_HD_CALL algebraic<L> square_root(const algebraic<L>& a) {
  if (a.is_zero()) return a;
  const std::int64_t odd = a.power & 1;
  const std::int64_t upper = a.upper + odd;
  const std::int64_t both = (upper + a.lower + 1) >> 1;
  const bool over = upper >= a.lower;
  return {square_root(a.value), (a.power - odd) / 2, over ? both : upper, over ? a.lower : both};
}

// What is closer to 0 than 2^least_power(a, degree) is 0, of a in a field of that degree.
template <int L>
REPDL_HD std::int64_t least_power(const algebraic<L>& a, int degree) {
  return a.power - (degree - 1) * a.upper - a.lower;
}
// The sign of a number in a ball that is 0 if it is closer to 0 than 2^least, or 2.
template <int L>
REPDL_HD_CALL int sign_of(const ball<L>& b, std::int64_t least) {
  if (b.exact()) return sign_of(b);
  if (!b.middle.is_zero() && b.radius.below_power(b.middle.exponent - 1)) return b.middle.negative != 0 ? -1 : 1;
  return upper(b).below_power(least) ? 0 : 2;
}
template <int L>
REPDL_HD int sign_of(const algebraic<L>& a, int degree) {
  return sign_of(a.value, least_power(a, degree));
}

// What eval<L>() of a formula with square roots returns (formula.hpp); degree: 2 for each.
template <int L>
struct surd {
  algebraic<L> value;
  int degree;
};
template <int L>
REPDL_HD const ball<L>& enclosure(const surd<L>& f) {
  return f.value.value;
}
template <int L>
REPDL_HD_CALL int side_of(const surd<L>& f, const ball<L>& m) {
  return sign_of(f.value - dyadic(m), f.degree);
}

// RN_T of a formula's value at one level; an exact zero, which no ball may show, is +0.
template <class T, int L>
REPDL_HD_CALL decided_value<T> round_surd(const surd<L>& f) {
  if (sign_of(f.value, f.degree) == 0) return {T{}, true};
  return round_formula<T, L>(f);
}
template <class T, class Formula>
struct surd_attempt {
  const Formula& formula;
  template <int L>
  REPDL_HD decided_value<T> operator()() const {
    return round_surd<T, L>(formula.template eval<L>());
  }
};
// As formula.hpp's decide.
template <class T, class Formula>
REPDL_HD_CALL decided_value<T> decide_surd(const Formula& f, int last_tier_bits) {
  return decide_by_levels(surd_attempt<T, Formula>{f}, last_tier_bits);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
