// x / (1 - p), 0 <= p < 1 a binary64 number, rounded once to binary32 or binary64 (contract, section 4: dropout).
//
// Let D = 1 - p exactly, 2^-53 <= D <= 1, and u = 2^-53.
//
// No quotient is a midpoint M of binary32. Suppose x = M D. If D = 2^-k, then M = x 2^k has at most 24 significant
// bits and is a multiple of 2^-149: it is representable, or at least 2^128, never the midpoint 2^128 - 2^103. Else
// D = j 2^-k with j odd, j >= 3, k >= 1; M = n 2^g with n odd. In the normal range n > 2^24, and x, whose odd part is n
// j, has more than 24 bits. In the subnormal range g = -150, and x = n j 2^(-150 - k) is no multiple of 2^-149. So the
// sign of x - M D decides, and it is never 0. But quotients come close to midpoints: with p next to 0.2 and 1/D next to
// 5/4, a quarter of all x / D lie within 2^-54 |x| of one, so the first tier must see more than 53 bits.
//
// p < 2^-60: the result is x. |x/D - x| < 2^-59 |x|, and the midpoints next to x are at least 2^-25 |x| away (subnormal
// x: 2^-150 > 2^-59 2^-126). Then 1 stands for 1/D below.
//
// Tier 1, binary64. 1/D = hi + lo + delta, hi of 29 bits. a = x hi is exact (24 + 29 bits), b = fl(x lo), and
// s + t = a + b exactly (fast_two_sum: |b| < |a|, or both are 0). |x| >= 2^-149 and |x/D| < 2^182: nothing underflows
// or overflows. So x/D = s + t + error, |error| <= |x| (u |lo| + |delta|). With D = Dh + Dl (two_sum), i = fl(1/Dh),
// two_prod(i, Dh) = h + l, the residual r = 1 - i D = (1 - h) - l - i Dl is made of three numbers of at most 2^-52 (1 -
// h is exact), so |r| < 2^-50, and it is off by at most 2^-103; 1/D = i / (1 - r) = i + i r + i r^2 (1 + 2^-49):
//     lo = fl((i - hi) + fl(i r)),  |delta| <= u |lo| + i (2^-103 + 2^-103 + 2^-100 (1 + 2^-49))
// (i - hi is exact). slack = 2^-50 |lo| + 2^-98 hi exceeds u |lo| + |delta|, so |t| >= slack |x| says that t has the
// sign of x/D - s, and that sign is all that rounding to odd asks for (eft.hpp): if x/D lies beyond the middle between
// s and its neighbour, the odd one of the two is the same. If D is a power of two, hi is 1/D, and lo, slack and t are
// 0. Where s is itself a binary32 number (x/D may be s: p = 1/4, x a multiple of 3), no midpoint is near and any t will
// do.
//
// Tier 2, integers. With v = fl(|x| i), r = RN(v) and M the midpoint between r and its neighbour on v's side (|v| -
// |x|/D is small beside their distance, so |x|/D rounds to one of these two), the sign of
//     |x| - M D = |x| - M + M p
// is computed in a 448-bit fixed-point register: |x| and M are multiples of 2^-150 below 2^129, p one of 2^-112, M p is
// a sum of two binary64 numbers. It always decides. Checked against exact rationals by tests/random/dropout_test.cpp.
//
// Binary64 (wide_dropout_scale): no quotient is a midpoint, likewise: n has 54 bits, and g = -1075 for subnormal numbers. p < 2^-56: the
// result is x, which midpoints are 2^-54 |x| away from, subnormal x 2^-1075 > 2^-55 2^-1022. Else D is a multiple of 2^-108 and
// Dh + Dl exactly, and 1/D = h + l within 16 u^2 (dd.hpp).
// Tier 1, double-double. Where x is in the middle (is_in_middle), nothing over- or underflows. x h = q + q' exactly, |q'| <= u |q|;
// x l is off by u |x l| < 1.1 u^2 |q|, its sum with q' by 2.2 u^2 |q|, and x/D by 16 u^2 |x/D| more: in all below 20 u^2 |q|, for
// which 2^-100 |q| = 64 u^2 |q| has room.
// Tier 2, integers: |x| = m 2^e, so that |x|/D = 2^e m / D, a quotient of two integers but for powers of two, rounded at once.
#pragma once

#include <type_traits>

#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/format.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct dropout_scale {
  double hi, lo, slack;
  double least;  // takes slack's place where s is a binary32 number: 0, unless forced

  // forced: the first tier leaves every finite number but 0 undecided.
  REPDL_HD static dropout_scale of(double p, bool forced) {
    dropout_scale s = {1, 0, 0, forced ? infinity : 0};
    const dd d = two_sum(1.0, -p);
    const double i = 1.0 / d.hi;
    if (!(p < 0x1p-60) && (d.lo != 0 || (bits_of(d.hi) << 12) != 0)) {
      const dd one = two_prod(i, d.hi);
      const double r = ((1.0 - one.hi) - one.lo) - i * d.lo;
      s.hi = double_of(bits_of(i) & ~std::uint64_t{0xffffff});
      s.lo = (i - s.hi) + i * r;
      s.slack = 0x1p-50 * (s.lo < 0 ? -s.lo : s.lo) + 0x1p-98 * s.hi;
    } else if (!(p < 0x1p-60)) {
      s.hi = i;
    }
    if (forced) s.slack = infinity;
    return s;
  }

  // Tier 1: the result, and 1 where it is undecided, else 0.
  struct rounded {
    std::uint32_t bits;
    std::uint32_t undecided;
  };
  [[gnu::always_inline]] REPDL_HD rounded round(float x) const {
    const double wide = static_cast<double>(x);
    const dd s = fast_two_sum(wide * hi, wide * lo);
    const float result = static_cast<float>(round_to_odd(s.hi, s.lo));
    const double tail = double_of(bits_of(s.lo) & 0x7fffffffffffffff);
    const double bound = slack * double_of(bits_of(wide) & 0x7fffffffffffffff);
    const bool on_grid = s.hi == static_cast<double>(result);
    const auto undecided = static_cast<std::uint32_t>(bits_of(tail - (on_grid ? least : bound)) >> 63);
    const std::uint32_t r = bits_of(result);
    const std::uint32_t b = bits_of(x);
    const std::uint32_t magnitude = b & 0x7fffffff;
    const std::uint32_t special = magnitude > format<float>::infinity ? format<float>::nan : b;
    const bool is_special = magnitude >= format<float>::infinity;
    return {is_special ? special : r | (b ^ magnitude), is_special || magnitude == 0 ? 0 : undecided};
  }

  // Tier 2. Any x.
  REPDL_HD static float exact(float x, double p) {
    const float magnitude = float_of(bits_of(x) & 0x7fffffff);
    const std::uint32_t sign = bits_of(x) & 0x80000000;
    if (!(magnitude > 0) || magnitude == static_cast<float>(infinity) || p < 0x1p-60) return canonical(x);
    const double v = static_cast<double>(magnitude) * (1.0 / (1.0 - p));
    if (v >= 0x1p128) return float_of(format<float>::infinity | sign);
    const std::uint32_t r = bits_of(static_cast<float>(v));
    const bool up = v >= value(r);
    const std::uint32_t lower = up ? r : r - 1;  // v >= 2^-149: r is not 0
    const double middle = 0.5 * (value(lower) + value(lower + 1));
    fixed_point<-262, 7> sum;
    const dd product = two_prod(middle, p);
    sum.add(magnitude);
    sum.add(-middle);
    sum.add(product.hi);
    sum.add(product.lo);
    return float_of((sum.negative() ? lower : lower + 1) | sign);
  }

 private:
  // Infinity stands for 2^128, the number after the largest.
  REPDL_HD static double value(std::uint32_t bits) {
    return bits == format<float>::infinity ? 0x1p128 : static_cast<double>(float_of(bits));
  }
};

struct wide_dropout_scale {
  dd inverse;    // of 1 - p
  double force;  // 0, or +inf: tier 1 leaves every finite number but 0 undecided

  REPDL_HD static wide_dropout_scale of(double p, bool forced) {
    const dd one = {1, 0};
    return {is_identity(p) ? one : div(one, two_sum(1.0, -p)), forced ? infinity : 0.0};
  }

  [[gnu::always_inline]] REPDL_HD decided_value<double> round(double x) const {
    const dd q = two_prod(x, inverse.hi);
    const auto r = certify<double>(fast_two_sum(q.hi, q.lo + x * inverse.lo), 0x1p-100 * magnitude_of(q.hi) + force);
    const bool is_middle = is_in_middle(x);
    return {double_of(is_middle ? bits_of(r.value) : bits_of(canonical(x))),
            is_middle ? r.decided : x == 0 || !is_finite(x)};
  }

  // Any x.
  REPDL_HD static double exact(double x, double p) {
    if (x == 0 || !is_finite(x) || is_identity(p)) return canonical(x);
    const integral_parts v = decompose(x);
    fixed_point<0, 2> m;
    m.add_scaled(v.significand, 0, false);
    fixed_point<-110, 2> d;
    d.add(1.0);
    d.add(-p);
    return with_sign(round_quotient<double>(m, d, v.exponent), x);
  }

 private:
  REPDL_HD static bool is_identity(double p) { return p < 0x1p-56; }
};

template <class T>
using dropout_scale_of = std::conditional_t<std::is_same_v<T, double>, wide_dropout_scale, dropout_scale>;

}  // namespace REPDL_ISA
}  // namespace repdl::num
