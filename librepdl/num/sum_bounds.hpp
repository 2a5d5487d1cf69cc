// Bounds on the errors of sums and products of binary64 numbers, for the rounding test (certify.hpp): they hold its (C).
//
// u = 2^-53 throughout. Sources of the bounds: S. Rump, "Error estimation of floating-point summation and dot product",
// BIT 52 (2012); C.-P. Jeannerod and S. Rump, "Improved error bounds for inner products in floating-point arithmetic",
// SIAM J. Matrix Anal. 34 (2013): no restriction on the number of terms, any order.
// Checked by tests/num_test.cpp.
#pragma once

#include "librepdl/num/certify.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// Dot product of f32 factors (products exact), K terms in any order, any tree, fma or mul + add:
//     |s - S| <= (K - 1) u |a||b|,  |a|, |b| the Euclidean norms.
// A = fl(sqrt(fl(sum a²))): sums of K nonnegative terms have fl >= (1 - (K-1)u) sum, so A >= |a|(1 - (K-1)u/2 - 2u),
// B likewise, and e = fl(fl((K+4)u A) B) >= (K+4)u|a||b|(1 - (K+6)u). (C) needs e(1 - u) >= (K-1)u|a||b| + u|s|, with
// |s| <= |a||b|(1 + Ku): (K+4)(1 - (K+7)u) >= K + Ku holds when 4 >= 2K²u + small, which K <= 2^26 makes 1 + small.
// A bias c is one more term: dot_bound(K + 1, ...) + sum_bound(K + 1, |c|). Blocked accumulation: K becomes the height
// of the tree (block length + number of blocks) in the factor, and the norms keep all terms (heights <= 2^26).
REPDL_HD double dot_bound(std::int64_t height, double norm_a, double norm_b) {
  return static_cast<double>(height + 4) * 0x1p-53 * norm_a * norm_b;
}

// Sum of terms x that are binary64 numbers, over an evaluation tree of the given height (additions on the longest path;
// a chain of K terms has K - 1): |s - S| <= height · u · sum|x|. magnitude >= sum|x|(1 - (height + 1)u), such as
// fl(sum|x|) over a tree no higher, or anything larger (count times maximum).
// (C): |s| <= sum|x|(1 + height·u), and (height + 4)(1 - (height + 4)u) >= height + 1 + height·u for height <= 2^25.
REPDL_HD double sum_bound(std::int64_t height, double magnitude) {
  return static_cast<double>(height + 4) * 0x1p-53 * magnitude;
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
