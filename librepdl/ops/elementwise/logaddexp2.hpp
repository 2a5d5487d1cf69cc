// logaddexp2(x, y) = log2(2^x + 2^y), for f16, bf16, binary32: binary64 with a rounding test; multi-limb balls decide
// what it leaves undecided.
//
// m + ln(1 + e^-t) / ln 2, m the larger operand, t = d ln 2, d = |x - y|; as logaddexp (logarithmic.hpp). d = 0: m + 1,
// exactly. d >= 152: log2(1 + 2^-d) < 2^-151 is less than half of the distance between numbers at m: the result is m, or
// +0 where m = 0. Else, u = 2^-53:
//   d u, ln 2 and the product 2 u: 3 u t < 316 u, e^-t 5.1 u, in l = ln(1 + e^-t) as much and 4.4 u; 1/ln 2 and the product 2 u
//   in all, of g = l / ln 2                                                          < 512 u g = 2^-44 g
//   m + g, and the ends                                                              < 4 u |m + g| = 2^-51 |m + g|
//
// Last tier. Powers of 2 with rational exponents that are distinct modulo 1 are linearly independent over the rationals:
// for d no integer, 2^x + 2^y is none. For an integer d > 0, 1 + 2^-d would be an integer power of 2. So the result is
// irrational, no midpoint. x next to y: it is 1 + (x + y)/2 + log2 cosh(t/2), whose first part may be a midpoint; the
// rest is positive.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/logarithmic.hpp"

namespace repdl::ops {
struct logaddexp2;
}

namespace repdl::num {
inline namespace REPDL_ISA {

struct logaddexp2_formula {
  double larger, smaller;
  template <int L>
  REPDL_HD_CALL beside<L> eval() const {
    const ball<L> unit = ln2_ball<L>();
    ball<L> r = exponential((number<L>(smaller) - number<L>(larger)) * unit);
    to_logarithm_1p(r);
    const ball<L> mean = (number<L>(larger) + number<L>(smaller)) * number<L>(0.5);
    return {r / unit + number<L>(larger), mean + number<L>(1), 1};
  }
};
template <>
struct body<ops::logaddexp2> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, T y) {
    const double a = widen(x);
    const double b = widen(y);
    const double m = a > b ? a : b;
    const double d = magnitude_of(a - b);
    const bool plain = (d < 152) & (d != 0);
    const double w = exp_core::eval(plain ? d * -0x1.62e42fefa39efp-1 : 0.0);
    const bool upper = w > 0x1.a8p-2;
    const double g = log_binary64(upper ? 1.0 : 0.0, upper ? 0.5 * (w - 1.0) : w) * 0x1.71547652b82fep0;
    const double sum = m + g;
    const double error = muladd(0x1p-44, g, 0x1p-51 * magnitude_of(sum));
    return certify_as<T>(plain ? sum : special(a, b, m), plain ? error : 0.0);
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, T y, int last_tier_bits) {
    const double a = widen(x);
    const double b = widen(y);
    const double m = a > b ? a : b;
    if (!(magnitude_of(a - b) < 152) || a == b) return {narrow<T>(special(a, b, m)), true};
    return decide<T>(logaddexp2_formula{m, a > b ? b : a}, last_tier_bits);
  }

 private:
  // a = b, d >= 152, or an operand is not finite. m is b where one is NaN: a + b says so.
  REPDL_HD static double special(double a, double b, double m) {
    const dd next = two_sum(m, 1.0);
    const double other = a == b ? round_to_odd(next.hi, next.lo) : m + 0x1p-300;
    return (a == a) & (b == b) ? other : double_of(format<double>::nan);
  }
};

// Binary64. 2^-1076 / ln 2 < 2^-1075. The theorems and the part next to which the result may be are those above.
struct logaddexp2_64 : logarithm_of_sum64<2> {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, R y) {
    return (magnitude_of(x - y) <= 1076) & (x != y);
  }
  template <class R>
  REPDL_HD static R special(R x, R y) {
    return x == y ? x + 1.0 : at_limit(x, y);
  }
  template <class Ball>
  REPDL_HD static auto formula(double x, double y) {
    return logaddexp2_formula{x > y ? x : y, x > y ? y : x}.eval<limbs_of_ball<Ball>>();
  }
};
template <>
struct body64<ops::logaddexp2> : by_formula<logaddexp2_64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
