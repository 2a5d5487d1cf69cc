// tanh_backward(g, y) = g (1 - y^2) and sigmoid_backward(g, y) = g y (1 - y).
//
// Method: the exact value, as the exact sum of two or three binary64 numbers, is reduced to one binary64 number rounded
// to odd and converted once: S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved
// algorithms using rounding to odd", IEEE Trans. Comput. 57 (2008). Domain: every input; nothing is approximated or
// repaired.
//
// Both are F - A B with binary64 numbers F, A, B that are exact:
//     tanh_backward      F = g     A = g y   B = y
//     sigmoid_backward   F = g y   A = g y   B = y
//
// Exactness for finite binary32 g, y (24 bits; 0 or in [2^-149, 2^128), multiples of 2^-149):
//   g y        48 bits <= 53; 0 or in [2^-298, 2^256): exact in binary64.
//   A B        0 or in [2^-447, 2^384), a multiple of 2^-447: c + d = A B exactly by two_prod (|A|, |B| < 2^996; every
//              partial product is a multiple of 2^-447, far above 2^-1074). |d| <= ulp(c)/2.
//   v + t      = F - c exactly by two_sum (no overflow below 2^385). |t| <= ulp(v)/2.
//   w + z      = t - d exactly by two_sum. |z| <= ulp(w)/2.
//   v' + t'    = v + w exactly by two_sum. |t'| <= ulp(v')/2.
// So the exact value is v' + t' + z.
//
// Why tail = RN(t' + z) rounds it right. ufp(a) is the power of two in |a|'s binade.
//   If t = 0: w = -d and z = 0, so the exact value is v' + t', v' is its RN, tail = t'.
//   If t != 0: F and -c do not cancel within a factor of 2 (F and c are binary64 numbers: if they had the same sign and
//   were within a factor of 2, F - c would be exact, Sterbenz), hence |v| >= max(|F|, |c|)/2 up to its rounding, so
//   |d| <= ulp(c)/2 <= ulp(v) and |w| <= 2 ulp(v): v is a multiple of ulp(w), and so are v' and t'.
//     t' != 0: |t'| >= ulp(w) > |z|, so tail has the sign of t' + z, and is not 0.
//     t'  = 0: tail = z.
//   v' is not 0 then, and |t' + z| <= ulp(v')/2 + 2^-51 ulp(v'): the exact value lies strictly between v' and its
//   neighbour on tail's side (on the narrower side of a power of two |t'| is at most half of that gap, too), or is v'
//   if tail = 0. round_to_odd asks for no more. v' = 0 means that v = -w: v = 0 and t = d = 0 (|w| <= 2 ulp(v) < |v|
//   otherwise), or t = 0 and v = d. In both cases the exact value is 0, and tail = 0.
// The odd result has 53 bits, at least 2 more than binary32, and lies in binary64's normal range (multiples of 2^-447):
// its conversion is RN of the exact value, in binary32's subnormal range and at overflow, too.
//
// Exact zeros, infinities, NaN come from the plain formula in binary64, `naive`: g (1 - y y) and (g y) (1 - y).
//   Finite g, y: no operation over- or underflows (magnitudes in [2^-298, 2^384), differences are multiples of 2^-298),
//   and RN(1 - a) is 0 only if a = 1, +0 then, and has the sign of 1 - a otherwise: naive is 0 if and only if the exact
//   value is, and has the sign of the formula tree's zero (a product: exclusive or of the signs; 1 - y^2 = 0 is +0).
//   Non-finite g or y: the tree's operations on finite operands are right up to rounding, never 0 or infinite wrongly,
//   so every sign, infinity and NaN is that of the tree.
#pragma once

#include "librepdl/ops/body.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// RN(first - a * b) to binary32 if naive is finite and not 0, else naive. See above.
REPDL_HD float subtract_product(double first, double a, double b, double naive) {
  const dd ab = two_prod(a, b);
  const dd v = two_sum(first, -ab.hi);
  const dd w = two_sum(v.lo, -ab.lo);
  const dd r = two_sum(v.hi, w.hi);
  const double exact = truncate_to_odd(r.hi, r.lo + w.lo);
  const bool regular = naive - naive == 0 && naive != 0;
  return canonical(static_cast<float>(regular ? exact : naive));
}

template <>
struct body<ops::tanh_backward> {
  REPDL_HD static float eval(float g, float y) {
    const double gd = static_cast<double>(g);
    const double yd = static_cast<double>(y);
    return subtract_product(gd, gd * yd, yd, gd * (1.0 - yd * yd));
  }
};

template <>
struct body<ops::sigmoid_backward> {
  REPDL_HD static float eval(float g, float y) {
    const double yd = static_cast<double>(y);
    const double gy = static_cast<double>(g) * yd;
    return subtract_product(gy, gy, yd, gy * (1.0 - yd));
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
