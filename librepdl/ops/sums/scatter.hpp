// Sums to places given by indices: x + alpha S, or S / n, S the exact sum of n terms, alpha a coefficient.
//
// Of terms of binary32 or a narrower format S is added up by a tracked_sum: S = hi + lo + d, |d| <= b (sums.hpp), and hi, lo are
// multiples of 2^-149 below 2^190. With u = 2^-53, p = alpha hi exactly (two_prod: a multiple of 2^-401, below 2^390), t = x + p.hi
// exactly:
//     x + alpha S = t.hi + r + d',   r = fl(fl(t.lo + p.lo) + q), q = fl(alpha lo)
// where q errs by u |q| (1 + u), the additions by u (|t.lo| + |p.lo|) (1 + u) and u (|t.lo| + |p.lo| + |q|) (1 + 2u), so that
//     |d'| <= |alpha| b + (2u + 4u^2) (|t.lo| + |p.lo| + |q|).
// The bound below has 1 + 8u and 4u for that, which makes up for its own four roundings. Where no addition of terms erred, S = hi,
// and x + p is rounded once, by way of odd: ties are decided, too. The rest is decided by integers: S in units of T's least
// number, times alpha's significand.
//
// Of terms of binary64 S is added up by a twice_tracked_sum, which takes x as one more term if alpha is 1. Else
//     x + alpha S = x + p + q + alpha d,   p = alpha hi, q = alpha lo,
// where p and q are two numbers each (two_prod) and all five are added up likewise. They are p and q exactly where those are 0 or where
// products neither overflow nor underflow (is_in_middle); else less than 2^-1071 of each is lost (dd.hpp), or a sum is not finite, which
// decides nothing. |alpha| b is rounded twice and may underflow: 1 + 2^-50 and 2^-1074 make up for that.
#pragma once

#include <type_traits>

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/sums.hpp"
#include "librepdl/ops/elementwise/body.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct scatter_formula {
  double alpha;
  bool mean;
  bool force;  // the first tier decides nothing
};

// What adds up the terms, R as in sums.hpp.
template <class T, class R = double>
using scatter_terms = std::conditional_t<std::is_same_v<T, double>, twice_tracked_sum<R>, tracked_sum<R>>;

// x + S for alpha = 1 in binary64: with r = fl(t.lo + lo) and v = fl(t.hi + r) it is v within b + u |r| + u |v|, and certify's (C)
// asks for e (1 - u) to be u |v| more. Where no addition of terms erred and r = 0 it is v = t.hi exactly: ties are decided, too.
// Infinities and NaN are left undecided: there t.lo is NaN.
struct scatter_interval {
  double value, error;
};
REPDL_HD scatter_interval quick_interval(double x, const tracked_sum<double>& s, std::int64_t height) {
  const dd t = two_sum(x, s.hi);
  const double r = t.lo + s.lo;
  const double v = t.hi + r + 0.0;  // an exact zero is +0
  const bool exact = s.error + magnitude_of(r) == 0;
  return {v, exact ? 0.0 : 2 * s.bound(height) + (0x1p-52 * magnitude_of(r) + 0x1p-51 * magnitude_of(v))};
}
template <class T>
REPDL_HD decided_value<T> scatter_quick(double x, const tracked_sum<double>& s, std::int64_t height) {
  const scatter_interval of = quick_interval(x, s, height);
  return same_bits(rounded<T>(of.value - of.error), rounded<T>(of.value + of.error));
}

// Of n terms whose sum is s, of a height.
template <class T>
REPDL_HD decided_value<T> scatter_first(const scatter_formula& f, double x, const tracked_sum<double>& s,
                                        std::int64_t height, std::int64_t n) {
  if (f.mean) {
    if (!is_finite(s.hi)) return {non_finite_result<T>(s.hi), true};
    if (f.force) return {T{}, false};
    return s.error == 0 ? certify_mean<T>(s.hi, 0.0, n) : certify_mean<T>(s.total(), s.bound(height), n);
  }
  if (!is_finite(s.hi) || !is_finite(x)) return {non_finite_result<T>(x + f.alpha * s.hi), true};
  if (f.force) return {T{}, false};
  const dd p = two_prod(f.alpha, s.hi);
  if (s.error == 0) return {narrow<T>(add_to_odd(x, p) + 0.0), true};  // an exact zero is +0
  const dd t = two_sum(x, p.hi);
  const double q = f.alpha * s.lo;
  const double size = magnitude_of(t.lo) + magnitude_of(p.lo) + magnitude_of(q);
  const double e = magnitude_of(f.alpha) * s.bound(height) * (1 + 0x1p-50) + 0x1p-51 * size;
  return certify<T>(two_sum(t.hi, (t.lo + p.lo) + q), e);
}

template <class T>
requires std::is_same_v<T, double> REPDL_HD decided_value<T> scatter_first(const scatter_formula& f, double x,
                                                                           twice_tracked_sum<double> s, std::int64_t,
                                                                           std::int64_t n) {
  const double force = f.force ? infinity : 0.0;
  if (f.mean) return certify_mean_of_sum(s, force, n);
  if (f.alpha == 1) {
    s.add(x);
    return certify_sum(s, force);
  }
  const dd p = two_prod(f.alpha, s.hi), q = two_prod(f.alpha, s.lo);
  const bool nothing_lost = f.alpha == 0 || ((s.hi == 0 || is_in_middle(p.hi)) && (s.lo == 0 || is_in_middle(q.hi)));
  twice_tracked_sum<double> sum;
  sum.add(x);
  sum.add(p);
  sum.add(q);
  const double bound = s.bound();
  if (bound != 0) sum.error += magnitude_of(f.alpha) * bound * (1 + 0x1p-50) + 0x1p-1074;
  if (!nothing_lost) sum.error += 0x1p-1070;
  return certify_sum(sum, force);
}

// alpha is 0 or a multiple of 2^-252 below 2^201, a sum of 2^62 terms below 2^190: 792 bits and a sign. Of binary64 the sum is a multiple of
// 2^-1074 below 2^1086: 2613 bits and a sign.
template <class T>
using scatter_accumulator =
    std::conditional_t<std::is_same_v<T, double>, fixed_point<-1326, 41>, fixed_point<-401, 13>>;

template <class T>
REPDL_HD T scatter_exact(const scatter_formula& f, T x, const exact_sum<T, 1>& s, std::int64_t n) {
  if (f.mean) return s.mean(n);
  const double a = widen(x);
  if (s.special.any()) return narrow<T>(a + f.alpha * widen(s.special.template value<T>()));
  if (!is_finite(a)) return canonical(x);
  scatter_accumulator<T> value;
  add_multiple(value, s.finite, f.alpha);
  value.add(x);
  return value.template round<T>();
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
