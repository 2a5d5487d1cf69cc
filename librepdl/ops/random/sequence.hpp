// linspace and arange: numbers at equal distances, rounded once to f16, bf16, f32 or f64.
//
//     linspace   v = (a (n - i) + b i) / n     0 <= i <= n, n = count - 1 (1 for one number)
//     arange     v = a + b i                   n = 1
//
// Domain: a, b 0 or of magnitude in [2^-200, 2^200]; weights and n are integers up to 2^48, numbers of binary64. With
// two_prod
//     n v = p.hi + p.lo + q.hi + q.lo          exactly, each 0 or a multiple of 2^-252, below 2^249.
//
// Tier 1, binary64 pairs, w = 2^-53. P = |p.hi| + |q.hi|:
//     h + l, t + t', r + r'    two_sum of p.hi, q.hi; of p.lo, q.lo; of l, t: as in uniform.hpp, n v = h + r + (t' + r'),
//                              |h| <= (1 + w) P, |r| <= 2w (1 + w)^2 P, |t'| + |r'| <= 3 w^2 (1 + w)^3 P
// arange: v = h + r but for t' + r'. linspace, with y = fl(1 / n):
//     c = fl(h y)              |c - h / n| <= 2.1 w |h| / n
//     m = h - c n              |m| <= 2.1 w |h|. Exact: c n as a pair, then the difference of neighbouring numbers; m
//                              itself is a multiple of half of c's last place, as h is, and below 2.2 n times that
//                              place: 52 bits
//     s + s' = m + r           two_sum, exact: |s| <= 4.2 w P, |s'| <= w |s|
//     k = fl(s y)              |k - s / n| <= 2.1 w |s| / n
// so v = c + k but for (t' + r' + s') / n and k's error, at most (3 + 4.2 + 8.9) w^2 P / n and second-order terms; it
// is c + k exactly where t' = r' = s' = 0 and k n = s. Forming k -+ e rounds by w (|k| + e) <= 4.3 w^2 P / n: in all
// below 20.5 w^2 P / n (arange: 5.1 w^2 P). e = 32 w^2 P / n, rounded three times, exceeds it, and is 0 where v = c +
// k. Both ends are rounded to T once (to odd first, where T is narrower); equal bits at both ends are RN_T(v), ties too
// where e = 0. Nothing underflows: what is not 0 is at least 2^-252-53 before and 2^-252-53-48-53 after the division.
//
// Tier 2, integers: n v in a fixed-point register, a multiple of 2^-252 below 2^250; its quotient by n is rounded once
// (fixed_point::mean). It always decides.
//
// Zero: v = 0 is +0. a and b are made +0 if they are -0. h is +0: both products are -0 only if one is a weight 0 times
// a number below 0 and the other one 0 times a positive weight, which is +0. So c is +0, and so is c + k. The register
// gives +0, too. Checked against exact rationals by tests/random/sequence_test.cpp.
#pragma once

#include "librepdl/num/certify.hpp"
#include "librepdl/ops/random/uniform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct sequence {
  double a, b;
  std::int64_t n;
  bool between;  // linspace

  template <class T>
  struct ends {
    T below, above;
  };

  // force: 0, or +inf, which leaves everything undecided.
  template <class T>
  [[gnu::always_inline]] REPDL_HD ends<T> first(std::int64_t i, double force) const {
    const double at = whole(i), parts = whole(n);
    const dd p = between ? two_prod(a, parts - at) : dd{a, 0.0}, q = two_prod(b, at);
    const dd h = two_sum(p.hi, q.hi), t = two_sum(p.lo, q.lo), r = two_sum(h.lo, t.hi);
    double c = h.hi, k = r.hi, lost = magnitude_of(t.lo) + magnitude_of(r.lo);
    double bound = 0x1p-101 * (magnitude_of(p.hi) + magnitude_of(q.hi));
    if (between) {
      const double inverse = 1 / parts;
      c = h.hi * inverse;
      const dd product = two_prod(c, parts);
      const dd s = two_sum((h.hi - product.hi) - product.lo, r.hi);
      k = s.hi * inverse;
      const dd back = two_prod(k, parts);
      lost += magnitude_of(s.lo) + magnitude_of(back.hi - s.hi) + magnitude_of(back.lo);
      bound *= inverse;
    }
    const double e = (lost == 0 ? 0.0 : bound) + force;
    return {round_sum<T>(c, k - e), round_sum<T>(c, k + e)};
  }

  template <class T>
  REPDL_HD T exact(std::int64_t i) const {
    fixed_point<-1074, 21> sum;  // as low as T's numbers go: 1074 + 250 bits and mean's two
    add_to(sum, a, between ? n - i : 1);
    add_to(sum, b, i);
    return sum.template mean<T>(n);
  }

 private:
  [[gnu::always_inline]] REPDL_HD static double whole(std::int64_t i) {
    return double_of(static_cast<std::uint64_t>(i) | 0x4330000000000000) - 0x1p52;
  }
  template <class Sum>
  REPDL_HD static void add_to(Sum& sum, double x, std::int64_t weight) {
    const dd p = two_prod(x, whole(weight));
    sum.add(p.hi);
    sum.add(p.lo);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
