// Losses of d = x - t and their gradients in binary64: what their elements and sums are exactly.
//
// First tier, of an element: the formula in double-doubles that carry their bound (dd_ball.hpp); d is exact there unless it overflows. Of a
// sum: the elements' hi and lo, compensated, with the sum of their bounds (certify_total in losses.hpp).
//
// Last tier: N 2^power / (by n), N a sum of products of two numbers, as an integer (fixed_point.hpp), which is divided bit by bit.
//   losses      d^2 = x^2 + t^2 - x t - x t where it is quadratic in d, else |d|, or 2 c |d| - c^2, c not 0: mse_loss by 1, l1_loss by 1,
//               smooth_l1_loss by 2 c (by 1 where c is 0), huber_loss by 2
//   gradients   g x - g t where it is quadratic, else g or g c with the sign of d: mse_loss_backward twice that,
//               smooth_l1_loss_backward by c
// That are four products an element at most, so there is room for 2^60 elements; 2 c is a number, as c <= 2^200. by n has bits 2^-252 to
// 2^262. A single element is a sum of one.
//
// Checked by tests/losses/losses_test.cpp.
#pragma once

#include "librepdl/num/fixed_point.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

struct loss_scale {
  double by;  // > 0
  int power;
};

struct wide_loss_sum {
  exact_sum<double, 2> terms;

  // x and t are finite.
  REPDL_HD void add_square(double x, double t) {
    terms.finite.add_product(x, x);
    terms.finite.add_product(t, t);
    terms.finite.add_product(-x, t);
    terms.finite.add_product(-x, t);
  }
  // |x - t|, or 2 c |x - t| - c^2.
  REPDL_HD void add_line(double x, double t, double c) {
    const double by = (x < t ? -1.0 : 1.0) * (c == 0 ? 1.0 : 2 * c);
    terms.finite.add_product(x, by);
    terms.finite.add_product(-t, by);
    terms.finite.add_product(-c, c);
  }
  // g (x - t).
  REPDL_HD void add_slope(double g, double x, double t) {
    terms.finite.add_product(g, x);
    terms.finite.add_product(-g, t);
  }
  REPDL_HD void merge(const wide_loss_sum& o) { terms.merge(o.terms); }
  // n >= 1.
  REPDL_HD_CALL double round(loss_scale scale, std::int64_t n) const {
    if (terms.special.any()) return terms.special.value<double>();
    fixed_point<-256, 9> divisor;
    const integral_parts by = decompose(scale.by);
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(by.significand, static_cast<std::uint64_t>(n), &high);
    divisor.add_scaled(low, by.exponent, false);
    divisor.add_scaled(high, by.exponent + 64, false);
    return round_quotient<double>(terms.finite, divisor, scale.power);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
