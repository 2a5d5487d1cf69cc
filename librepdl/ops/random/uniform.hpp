// low + (high - low) u, rounded once to f16, bf16, f32 or f64.
//
// Domain: low, high 0 or of magnitude in [2^-200, 2^200]; u = n 2^-b, 0 <= n < 2^b, b = 8, 11, 24, 53. The exact value
// is
//     v = low (1 - u) + high u.
// u and 1 - u are binary64 numbers (1 - u = (2^b - n) 2^-b), so with two_prod
//     v = p.hi + p.lo + q.hi + q.lo     exactly, every number of the four 0 or a multiple of 2^-252-53 = 2^-305.
//
// Tier 1, binary64 pairs. Let P = |p.hi| + |q.hi|, w = 2^-53:
//     h + l = p.hi + q.hi        two_sum, exact;  |l| <= w|h| <= w(1 + w)P
//     t + t' = p.lo + q.lo       two_sum, exact;  |t| <= w(1 + w)P, |t'| <= w|t|
//     r + r' = l + t             two_sum, exact;  |r| <= 2w(1 + w)^2 P, |r'| <= w|r|
//     v = h + r + (t' + r')      so v = h + r when t' = r' = 0: then e = 0. Otherwise
//     |v - (h + r)| <= |t'| + |r'|              <= 3w^2 (1 + w)^3 P
// and forming r - e, r + e with e = 8w^2 P rounds once more, by at most w(|r| + e) <= 2.01 w^2 P: in all below 5.02 w^2
// P, which e = fl(8w^2 fl(P)) exceeds. So v lies in [h + fl(r - e), h + fl(r + e)]. Both ends are rounded to T once (a
// sum of two binary64 numbers is rounded to odd there, or directly when T is binary64); rounding is monotone, so equal
// bits at both ends are RN_T(v). Comparing bits tells -0 from +0: v near 0 is never decided by this test unless e = 0.
//
// Tier 2, integers. The four numbers are added in a 512-bit fixed-point register: they are multiples of 2^-305, partial
// sums are below 2^204, so 509 bits and a sign hold them. It always decides.
//
// Zero: v = 0 is +0. low is made +0 if it is -0; then h is never -0 (p.hi = -0 would need low = -0, and x + y is -0
// only when both are), so h + r of an exact zero is +0; the register gives +0 too. Checked against exact rationals by
// tests/random/random_test.cpp.
#pragma once

#include "librepdl/num/eft.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/format.hpp"
#include "librepdl/num/philox.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

using uniform_accumulator = fixed_point<-305, 8>;

// RN_T(hi + lo), one rounding. Precondition: no overflow in binary64, no subnormal numbers other than 0.
template <class T>
REPDL_HD T round_sum(double hi, double lo) {
  const dd s = two_sum(hi, lo);
  if constexpr (std::is_same_v<T, double>) {
    return s.hi;
  } else {
    return narrow<T>(round_to_odd(s.hi, s.lo));
  }
}

// The range [low, high) of uniform numbers.
struct uniform_range {
  double low, high;

  REPDL_HD uniform_range(double from, double to) : low(from + 0.0), high(to) {}  // -0 + 0.0 is +0

  // u itself: a number of T for every T, nothing to round.
  REPDL_HD bool is_unit() const { return low == 0 && high == 1; }

  // The element whose u is n 2^-uniform_bits<T>. Sets *exact to true where the integers decided; `force_exact`: always.
  template <class T>
  REPDL_HD T element(std::uint64_t n, bool force_exact, bool* exact) const {
    constexpr std::uint64_t one = std::uint64_t{1} << uniform_bits<T>;
    constexpr double unit = 1.0 / static_cast<double>(one);
    const dd p = two_prod(low, static_cast<double>(static_cast<std::int64_t>(one - n)) * unit);
    const dd q = two_prod(high, static_cast<double>(static_cast<std::int64_t>(n)) * unit);
    const dd h = two_sum(p.hi, q.hi);
    const dd t = two_sum(p.lo, q.lo);
    const dd r = two_sum(h.lo, t.hi);
    const double magnitude = (p.hi < 0 ? -p.hi : p.hi) + (q.hi < 0 ? -q.hi : q.hi);
    const double e = r.lo == 0 && t.lo == 0 ? 0.0 : 0x1p-103 * magnitude;
    const T below = round_sum<T>(h.hi, r.hi - e);
    const T above = round_sum<T>(h.hi, r.hi + e);
    if (!force_exact && to_bits(below) == to_bits(above)) return below;
    *exact = true;
    uniform_accumulator sum;
    sum.add(p.hi);
    sum.add(p.lo);
    sum.add(q.hi);
    sum.add(q.lo);
    return sum.template round<T>();
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
