// Of binary64: V / (n - c), V the sum of (x - m)^2 of n numbers x, m their mean, c a coefficient (var), and its root (stddev).
//
// With y any number, d = x - y, D the sum of d and Q that of d^2, all exact,
//     V = Q - D^2 / n = (n sum x^2 - (sum x)^2) / n,   and for y one of the x   Q <= (n + 1) V,
// since Q = V + n (m - y)^2 and (y - m)^2 is a part of V. So y is the row's first element: what cancels is little, however far from 0 the
// numbers lie, and V = 0 only where every d is.
//
// Tier double-double. u = 2^-53; d = h + l exactly (two_sum), |l| <= u |h|. D is a sum of h with the errors l, as of products: a compensated
// one of height k errs by 2 k (k + 1) u^2 M, M the sum of |h|. The terms of Q are h^2 + 2 h l + l^2 = p + r + 2 h l + l^2, p + r = h^2
// (two_prod). Of these e = fl(r + fl(2 h l)) is added to the errors, l^2 <= u^2 h^2 left out: e is off by (2 + 3) u^2 h^2, and at most
// 3.1 u p, so that the errors add up to (k + 3.1) u Q and their 2 k additions err by 2 k (k + 3.1) u^2 Q. All in all less than
//     3 (k + 2)^2 u^2 Q:   compensated_bound(k + 2, Q), which covers D's error, of M, too.
// Later additions of double-doubles add 4 u^2 a level to both (dd_bound). Let eta be the sum, relative to Q and M. M^2 <= n Q, D^2 <= n Q:
//     D^2 / n          (2 eta + eta^2) Q for D, 8 u^2 for the square and 16 u^2 for the quotient, of at most Q
//     Q - D^2 / n      eta Q, and 3.1 u^2 of itself for the subtraction: (3 eta + eta^2 + 28 u^2) Q; 4 eta + 64 u^2 has room for the
//                      computed Q, and for what underflows
//     f = n - c        exact (two_sum)
//     V / f            16 u^2 of itself; 64 u^2 likewise
// Q is from 2^-800 to 2^900: no h^2 overflows, and what underflows, less than 2^-1070 for each term and each step, is less than 2^-200 Q.
// The quotient is in the middle (certify.hpp), or undecided.
//
// Tier exact: N = n sum x^2 - (sum x)^2 and G = n f as integers. N / G is divided bit by bit; the first 127 or 128 bits, and whether
// anything is left, decide the rounded quotient and its root. f > 0 is from 2^-53 to 2^201, a multiple of 2^-252: a double's low part of it
// has bits down to 2^-304.
#pragma once

#include "librepdl/num/dd.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// What is asked of a row's sums.
struct spread_formula {
  std::int64_t n;
  double correction;
  bool root;

  REPDL_HD dd degrees() const { return two_sum(static_cast<double>(n), -correction); }
  REPDL_HD bool is_defined() const { return n > 0 && degrees().hi > 0; }
};

// hi + lo of D and Q, and the sum of |h|, of which only whether it is 0 matters.
template <class R>
struct spread_sum {
  compensated_sum<R> sum;
  compensated_sum<R> squares;
  R magnitude{};

  REPDL_HD void add(R x, R first) {
    const double_word<R> d = two_sum(x, -first);
    sum.add(d.hi);
    sum.lo += d.lo;
    magnitude += magnitude_of(d.hi);
    const double_word<R> p = two_prod(d.hi, d.hi);
    squares.add(p.hi);
    squares.lo += p.lo + (d.hi + d.hi) * d.lo;
  }
  REPDL_HD void merge(const spread_sum& o) {
    sum.merge(o.sum);
    squares.merge(o.squares);
    magnitude += o.magnitude;
  }
};
// The height of a compensated sum's terms, above, in units of 4 u^2.
REPDL_HD constexpr std::int64_t spread_height(std::int64_t additions) { return (additions + 2) * (additions + 2); }

// D, Q and the magnitude; eta.
REPDL_HD decided_value<double> certify_spread(const spread_formula& f, dd sum, dd squares, double magnitude,
                                              double eta) {
  if (magnitude == 0) return {0.0, true};
  if (!(squares.hi >= 0x1p-800 && squares.hi <= 0x1p900)) return {0.0, false};
  const dd degrees = f.degrees();
  const dd m = div(mul(sum, sum), dd{static_cast<double>(f.n), 0.0});
  const dd v = add(squares, dd{-m.hi, -m.lo});
  const dd q = div(v, degrees);
  const double e = ((4 * eta + 0x1p-100) * squares.hi + 0x1p-100 * magnitude_of(v.hi)) / degrees.hi * (1 + 0x1p-40);
  if (!is_in_middle(q.hi)) return {0.0, false};
  return f.root ? certify_root<double>(q, e) : certify<double>(q, e);
}

// The sums of x and x^2, of any x.
struct exact_spread {
  exact_sum<double, 1> sum;
  exact_accumulator<double, 2> squares;

  REPDL_HD void add(double x) {
    sum.add(x);
    if (is_finite(x)) squares.add_product(x, x);
  }
  REPDL_HD void merge(const exact_spread& o) {
    sum.merge(o.sum);
    squares.merge(o.squares);
  }
  // f is defined.
  REPDL_HD double round(const spread_formula& f) const {
    if (sum.special.any()) return double_of(format<double>::nan);
    using count = std::uint64_t;
    fixed_point<decltype(squares)::lsb, decltype(squares)::words + 1> spread;
    for (int i = 0; i < decltype(squares)::words; ++i)
      add_wide(spread, squares.word(i), static_cast<count>(f.n), i, false);
    auto total = sum.finite;
    if (total.negative()) total.negate();
    constexpr int words = decltype(total)::words;
    for (int i = 0; i < words; ++i) {
      for (int k = 0; total.word(i) != 0 && k < words; ++k) add_wide(spread, total.word(i), total.word(k), i + k, true);
    }
    fixed_point<-304, 9> divisor;
    const dd degrees = f.degrees();
    const double parts[] = {degrees.hi, degrees.lo};
    for (const double part : parts) {
      const integral_parts p = decompose(part);
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(p.significand, static_cast<count>(f.n), &high);
      if (p.significand == 0) continue;
      divisor.add_scaled(low, p.exponent, p.negative);
      divisor.add_scaled(high, p.exponent + 64, p.negative);
    }
    const first_bits q = first_bits_of_quotient(spread, divisor);
    return f.root && q.high != 0 ? round_root<double>(q) : round_first_bits<double>(q);
  }

 private:
  // += or -= a b, in units of 2^(lsb + 64 at).
  template <class To>
  REPDL_HD static void add_wide(To& to, std::uint64_t a, std::uint64_t b, int at, bool negative) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(a, b, &high);
    to.add_scaled(low, To::lsb + 64 * at, negative);
    if (high != 0) to.add_scaled(high, To::lsb + 64 * (at + 1), negative);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
