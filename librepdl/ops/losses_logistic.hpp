// Losses with logistic terms: soft_margin_loss and its gradient, for f16, bf16, binary32.
//
// z = t x and g t are exact in binary64: 48 bits. d = |z|, e = e^-d, u = 2^-53.
//
// First tier. d <= 110: e from exp.hpp, 5.1 u. Beyond, e is in (0, 2^-158), which is 2^-159 up to 2^-159.
//   ln(1 + e^-z) = max(-z, 0) + ln(1 + e): as logarithmic.hpp derives, 2^-46 of the logarithm and 2^-51 of the sum.
//   1 / (1 + e^z) = (z > 0 ? e : 1) / (1 + e): e 5.1 u, 1 + e at most 1 + 2.6 u, the quotient 1 u; g t times it, / n, and the ends
//     1 u each, n 1 u: less than 16 u = 2^-49. For z > 110 the value is between 0 and twice the one with e = 2^-159: that one, and
//     an error just below itself, so that it is decided where both ends are zeros of its sign.
// Products and quotients are above 2^-298 2^-159 2^-53: nothing underflows.
//
// Last tier: balls beside an exact part (losses.hpp).
//   loss      part max(-z, 0), rest ln(1 + e) > 0
//   gradient  z > 0: part 0, rest of the sign of -g t; z < 0: part -g t, rest g t e / (1 + e); z = 0: -g t / 2, exactly
// e^-d for d >= 8000 is in (0, 2^-11500). No value is a midpoint for z != 0: e^z is transcendental (Lindemann), and for a sum with
// few different z some level decides, though no theorem says which.
//
// Checked by tests/losses_test.cpp.
#pragma once

#include "librepdl/ops/logarithmic.hpp"
#include "librepdl/ops/losses.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// ln(1 + e^-d), d >= 0, as above.
REPDL_HD loss_term log_1p_exp(double d) {
  const bool near = d <= 110;
  const double w = exp_core::eval(near ? -d : 0.0);
  const bool upper = w > 0x1.a8p-2;
  const double g = log_binary64(upper ? 1.0 : 0.0, upper ? 0.5 * (w - 1.0) : w);
  return {near ? g : 0x1p-159, near ? 0x1p-46 * g : 0x1p-159};
}

// e^-d for an exact d >= 0, near: about d.
template <int L>
REPDL_HD_CALL ball<L> exponential_of_minus(const ball<L>& d, double near) {
  if (near >= 8000) return {limbs_of_power<L>(-11501), power_magnitude(-11501)};
  return exponential(negated(d));
}
template <int L>
REPDL_HD_CALL ball<L> exact_product(double a, double b) {
  return number<L>(a) * number<L>(b);
}

template <>
struct loss_body<ops::soft_margin_loss> {
  REPDL_HD static loss_term first(const loss_constants&, double x, double t) {
    const double z = t * x;
    const double d = magnitude_of(z);
    const loss_term g = log_1p_exp(d);
    const double m = z < 0 ? d : 0.0;
    const double v = m + g.value;
    const double error = g.error + 0x1p-51 * (d <= 110 ? v : m);
    const double limit = z < 0 ? infinity : z > 0 ? 0.0 : z;
    return {is_regular(z) ? v : limit, is_regular(z) ? error : 0.0};
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants&, const double* in) {
    const double z = in[0] * in[1];
    loss_parts<L> r;
    if (z == infinity) return r;
    const ball<L> d = magnitude_of(exact_product<L>(in[0], in[1]));
    if (z < 0) r.part = d;
    const double near = magnitude_of(z);
    ball<L> e = exponential_of_minus(d, near);
    if (near < 8000) to_logarithm_1p(e);  // else it is as little as e
    r.value = r.part + e;
    r.rest = 1;
    return r;
  }
};

template <>
struct loss_body<ops::soft_margin_loss_backward> {
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t) {
    const double z = t * x;
    const double d = magnitude_of(z);
    const double product = -(g * t);
    const bool near = d <= 110;
    const double e = near ? exp_core::eval(near ? -d : 0.0) : 0x1p-159;
    const double v = product * ((z > 0 ? e : 1.0) / (1.0 + e)) / k.count;
    const double error = near || z < 0 ? 0x1p-49 * magnitude_of(v) : (1 - 0x1p-30) * magnitude_of(v);
    const double line = divide_to_odd(product, k.count);
    const double limit = z < 0 ? line : z > 0 ? product * 0.0 : z;
    const bool finite = is_regular(z);
    const double value = finite ? v : limit;
    const double relative = k.count_error * magnitude_of(line);
    return {value, !is_regular(value) ? 0.0 : finite ? error : z < 0 ? relative : 0.0};
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants&, const double* in) {
    const double z = in[2] * in[1];
    const ball<L> product = negated(exact_product<L>(in[0], in[2]));
    const int sign = (in[0] < 0) == (in[2] < 0) ? -1 : 1;
    loss_parts<L> r;
    if (!is_regular(z)) {  // -inf: +inf has no rest
      r.value = product;
      r.part = product;
      return r;
    }
    const ball<L> one = number<L>(1);
    if (z == 0) {
      r.value = scaled(product, -1);
      r.part = r.value;
      return r;
    }
    const double near = magnitude_of(z);
    const ball<L> e = exponential_of_minus(magnitude_of(exact_product<L>(in[2], in[1])), near);
    if (z > 0) {
      r.value = product * (e / (one + e));
      r.rest = sign;
    } else {
      r.value = product / (one + e);
      r.part = product;
      r.rest = -sign;
    }
    return r;
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
