// Sums of binary64 numbers and what is known of their errors: everything that adds up terms does it by one of these, the
// exact ones of fixed_point.hpp, or double_word's additions (dd.hpp). R is binary64, or a register of sums side by side.
//
//     plain                 s                  |S - s| <= h u M                      dot_bound
//     bounded_sum           hi +- error        the rounding errors' magnitudes       bound()
//     compensated_sum       hi + lo            the errors, added plainly             compensated_bound
//     tracked_sum           hi + lo +- error   both                                  bound(height)
//     twice_tracked_sum     hi + lo +- error   the errors, added with theirs         bound()
//     double_word           hi + lo            no error larger than 4 h u^2 M        dd_bound
//     spread_sum            two of hi + lo     compensated sums of differences and of their squares   (ops/sums/spread.hpp)
//     exact_sum             an integer         none                                  (fixed_point.hpp; of integers integer_sum.hpp)
//     sums from a start     s - g + rest       of adding up the rests                binary64 terms on a CPU (backends/cpu/reduce)
//     fast_sum              low <= S <= high   rounded down and up: CUDA's, where rounding has a direction at no cost
//
// u = 2^-53, S the exact sum, M the sum of the terms' magnitudes. Height: the additions that a term passes, at most, those of
// merges and of padding zeros included. Terms are below 2^900 and fewer than 2^62: nothing overflows but what is not finite,
// and then hi is what the sum is (certify.hpp), and lo and error may be NaN. Where hi is finite, so is every term.
//
// Errors of two_sum. Each is at most u times its sum's magnitude, which is at most (1 + h u) times what the terms below it add
// up to; a term is below at most h sums. So with t all errors
//     S = hi + sum t exactly,   sum|t| <= h u (1 + h u) M.                                                               (E)
// - bounded_sum: error = fl(sum|t|), of at most 2 h additions a path. error = 0 proves S = hi, which decides ties. Else |S - hi| <=
//   error (1 + 2 h u), and e = 2 error + 2 u |hi| has certify's (C): e (1 - u) >= |S - hi| + u |hi| for h < 2^50.
// - compensated_sum: lo = fl(sum t); a merge takes two additions of it. It is off by 2 h u (1 + 2 h u) sum|t|, by (E) at most
//   2 h^2 u^2 (1 + 4 h u) M: 3 h^2 u^2 M for h <= 2^25, a magnitude known within 2^-20 included.
// - tracked_sum: likewise, by its own error: 2 h u error (1 + 4 h u); nothing where error = 0.
// - twice_tracked_sum: lo and the errors t' of adding up t are sum t exactly, and error = fl(sum|t'|), of at most 3 h additions a path,
//   is at least (1 - 3 h u) of sum|t'|, for which h < 2^40 has room in 1 + 2^-10. No bound on the height is needed beside.
// Leaves that are themselves sums, of height p by plain additions, err by p u M (1 + p u) more, in all.
//
// Sources: S. Rump, "Error estimation of floating-point summation and dot product", BIT 52 (2012); C.-P. Jeannerod and
// S. Rump, "Improved error bounds for inner products in floating-point arithmetic", SIAM J. Matrix Anal. 34 (2013): no
// restriction on the number of terms, any order; T. Ogita, S. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci.
// Comput. 26 (2005), Sum2. Checked by tests/numerics/num_test.cpp.
#pragma once

#include "librepdl/num/certify.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Dot product of f32 factors (products exact), K terms in any order, any tree, fma or mul + add:
//     |s - S| <= (K - 1) u |a||b|,  |a|, |b| the Euclidean norms.
// A = fl(sqrt(fl(sum a²))): sums of K nonnegative terms have fl >= (1 - (K-1)u) sum, so A >= |a|(1 - (K-1)u/2 - 2u),
// B likewise, and e = fl(fl((K+4)u A) B) >= (K+4)u|a||b|(1 - (K+6)u). (C) needs e(1 - u) >= (K-1)u|a||b| + u|s|, with
// |s| <= |a||b|(1 + Ku): (K+4)(1 - (K+7)u) >= K + Ku holds when 4 >= 2K²u + small, which K <= 2^26 makes 1 + small.
// A bias c is one more term: |c| is added to |a||b|. Blocked accumulation: K becomes the height of the tree (block length + number of
// blocks) in the factor, and the norms keep all terms (heights <= 2^26).
REPDL_HD double dot_bound(std::int64_t height, double norm_a, double norm_b) {
  return static_cast<double>(height + 4) * 0x1p-53 * norm_a * norm_b;
}

// Of hi + lo of a compensated_sum, for certify(dd, e); leaves are sums of `leaf` plain additions, 2^-6 of which is room for (1 + p u)
// and what the magnitude errs by.
inline constexpr std::int64_t greatest_height = std::int64_t{1} << 25;
REPDL_HD double compensated_bound(std::int64_t height, double magnitude, int leaf = 0) {
  if (height > greatest_height) return infinity;
  const auto h = static_cast<double>(height);
  return (static_cast<double>(leaf) * (1 + 0x1p-6) + 3 * h * h * 0x1p-53) * 0x1p-53 * magnitude;
}
// The same for certify(double, e) of fl(hi + lo), which errs by u |s|, s <= M (1 + 2^-20), and (C) wants as much: 3 u M.
REPDL_HD double rounded_compensated_bound(std::int64_t height, double magnitude, int leaf = 0) {
  return compensated_bound(height, magnitude, leaf + 3);
}

// Of terms of binary64, and of products with their errors (two_prod), which lo takes, too: at most (h + 1) u M in 2 h additions, so that lo is
// off by 2 h (h + 1) u^2 M. For certify(dd, e) of binary64 results: what dd.hpp says of wide_dd_bound.
REPDL_HD double wide_compensated_bound(std::int64_t height, double magnitude, std::int64_t products) {
  if (magnitude == 0 && products == 0) return 0;
  return compensated_bound(height + 1, magnitude) + (static_cast<double>(products) * 0x1p-1071 + 0x1p-1074);
}

template <class R>
struct bounded_sum {
  R hi{};
  R error{};

  REPDL_HD void add(R x) {
    const double_word<R> s = two_sum(hi, x);
    hi = s.hi;
    error += magnitude_of(s.lo);
  }
  // A term that errs itself.
  REPDL_HD void add(R x, R x_error) {
    add(x);
    error += x_error;
  }
  // 0 where hi is exact; NaN where it is not finite, which certify handles.
  REPDL_HD double bound() const { return error == 0 ? 0.0 : 2 * error + 0x1p-52 * magnitude_of(hi); }
};

template <class R>
struct compensated_sum {
  R hi{};
  R lo{};

  REPDL_HD void add(R x) { add_exactly(two_sum(hi, x)); }
  // x y is a binary64 number.
  REPDL_HD void add_product(R x, R y) { add_exactly(two_sum_of_product(hi, x, y)); }
  REPDL_HD void merge(const compensated_sum& o) {
    lo += o.lo;
    add(o.hi);
  }
  REPDL_HD double_word<R> total() const { return two_sum(hi, lo); }

 private:
  REPDL_HD void add_exactly(double_word<R> s) {
    hi = s.hi;
    lo += s.lo;
  }
};

template <class R>
struct tracked_sum {
  R hi{};
  R lo{};
  R error{};

  REPDL_HD void add(R x) {
    const double_word<R> s = two_sum(hi, x);
    hi = s.hi;
    lo += s.lo;
    error += magnitude_of(s.lo);
  }
  // hi + lo, exactly.
  REPDL_HD void add(double_word<R> x) {
    add(x.hi);
    lo += x.lo;
    error += magnitude_of(x.lo);
  }
  REPDL_HD void merge(const tracked_sum& o) {
    add(o.hi);
    lo += o.lo;
    error += o.error;
  }
  REPDL_HD double_word<R> total() const { return two_sum(hi, lo); }
  REPDL_HD double bound(std::int64_t height) const { return static_cast<double>(2 * height + 4) * 0x1p-53 * error; }
};

template <class R>
struct twice_tracked_sum {
  R hi{};
  R lo{};
  R error{};

  REPDL_HD void add(R x) {
    const double_word<R> s = two_sum(hi, x);
    hi = s.hi;
    add_low(s.lo);
  }
  // hi + lo, exactly.
  REPDL_HD void add(double_word<R> x) {
    add(x.hi);
    add_low(x.lo);
  }
  REPDL_HD void merge(const twice_tracked_sum& o) {
    add(o.hi);
    add_low(o.lo);
    error += o.error;
  }
  REPDL_HD double_word<R> total() const { return two_sum(hi, lo); }
  REPDL_HD double bound() const { return error * (1 + 0x1p-10); }

 private:
  REPDL_HD void add_low(R x) {
    const double_word<R> s = two_sum(lo, x);
    lo = s.hi;
    error += magnitude_of(s.lo);
  }
};

// RN(S) of terms of binary64, and RN(S / n), 1 <= n <= 2^53; force: 0, or +inf for undecided. Errors of low parts are multiples of 2^-1074, so
// that nothing of them is lost where they are tiny; where a sum overflows, or a term is not finite, error is no number, or infinite.
REPDL_HD decided_value<double> certify_sum(const twice_tracked_sum<double>& s, double force) {
  return certify<double>(s.total(), s.bound() + force);
}
// A sum that is one number is divided by the hardware, with one rounding; one that is two is rounded, and then divided by a power of two
// where that is exact: ties, which certify_mean leaves undecided.
REPDL_HD decided_value<double> certify_mean_of_sum(const twice_tracked_sum<double>& s, double force, std::int64_t n) {
  const auto d = static_cast<double>(n);
  const double bound = s.bound() + force;
  const dd total = s.total();
  if (bound == 0 && total.lo == 0) return {(total.hi + 0.0) / d, true};
  if ((n & (n - 1)) == 0 && is_in_middle(total.hi)) {
    const auto c = certify<double>(total, bound);
    return {c.value / d, c.decided};
  }
  return certify_mean<double>(total, bound, n);
}

// A compensated sum of terms whose magnitudes are added up, too.
struct measured_sum : compensated_sum<double> {
  double magnitude = 0;

  REPDL_HD void add_term(double x) { add_term(x, num::magnitude_of(x)); }
  REPDL_HD void add_term(double x, double size) {
    add(x);
    magnitude += size;
  }
  REPDL_HD void merge(const measured_sum& o) {
    compensated_sum::merge(o);
    magnitude += o.magnitude;
  }
  REPDL_HD double bound(std::int64_t height, int leaf = 0) const { return compensated_bound(height, magnitude, leaf); }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
