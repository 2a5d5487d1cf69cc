// Losses with logistic terms: soft_margin_loss, binary_cross_entropy_with_logits and their gradients. The first tiers below are those of
// f16, bf16, binary32.
//
// Binary64. First tier, `wide`: the formula in double-doubles, each with its bound (dd_ball.hpp, dd_functions.hpp); a sum as in
// losses.hpp. The last tier is that of the other formats: products of two operands are balls, exact from 128 bits on. What is special,
// is_special, is found from signs, zeros, infinities and NaN alone, since products of finite numbers may over- and underflow. Next to x =
// 0 (z = 0) a gradient is as near its value there as x is small, down to 2^-2148 of it: from 2^-110 on that value is its exact part, and
// the sign of the rest decides. A factor 0 or infinite: replace_bare_factors (losses.hpp).
//
// ---- soft_margin_loss
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
// ---- binary_cross_entropy_with_logits
//
// With d = |x|, e = e^-d, q = pos_weight, b = q t, c = 1 - t + b, L = ln(1 + e):
//   loss      w (c L + D), D = x > 0 ? (1 - t) x : -b x
//   gradient  g w f, f = x > 0 ? (1 - t) - c e / (1 + e) : x < 0 ? c e / (1 + e) - b : (1 - t - b) / 2, or
//             ((1 - t) - b e) / (1 + e) and ((1 - t) e - b) / (1 + e)
// b is exact: 48 bits. 1 - t = hi + lo. c, and 1 - t - b: two_sum(hi, +-b) is exact, or not smaller than hi / 2; so its sum with
// lo is within 2 u of the value, and 0 only where that is.
//
// First tier. Errors in u:
//   loss      c L: L as above, c 2, the product 1; D: 1 - t 1, the product 1; their sum 1, w 1, the ends 1: 2^-46 |c| L + 2^-50 (|c| L
//             + |D|) covers 6. d > 110: L between 0 and twice 2^-159, as above, also for D = 0.
//   gradient  terms: 1 - t 1, e 5.1, the product 1; their sum 1, 1 + e 3.6, the quotient 1, / n 1, g w 1 (itself exact), the ends 1:
//             15.7 of the sum of their magnitudes, 2^-48 covers them. d > 110: e as above. x = 0: 2 and the same.
// Sizes: w c L is above 2^-298 2^-149 2^-160, g w f / n above 2^-298 2^-458 2^-53: nothing underflows. All is below 2^600.
// A factor 0 or infinite needs the sign of what it multiplies (with_factor), which here may cancel.
// Infinities: operands that are not finite go through the formula as it is written. x = +-inf: w (1 - t) inf, w b inf, of which a
// factor 0 makes +0; in the gradient e = 0.
//
// Last tier. part w D, rest w c L of the sign of w c; gradient: g w (1 - t), rest of the sign of -g w c; -g w b, rest of g w c; x = 0:
// all of it. An element is rational only where c = 0 or x = 0 in the gradient, where it is its part: e^x is transcendental. The
// parts have bits 2^-596 to 2^513. In a sum the L of different |x| are linearly independent over the rationals, with 1 beside them:
// were it not so, a product of powers of 1 + z^k, with different k >= 0 and z = e^(1/N), would be a power of z, as polynomials
// since z is transcendental; but 1 + z^k has a cyclotomic factor of order 2 k, the others with smaller k have not. So a sum is
// rational only where the coefficients w c of equal |x| all add up to 0, which takes both signs: a CPU adds these first (key_groups).
//
// Checked by tests/losses/losses_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/logarithmic.hpp"
#include "librepdl/ops/losses/losses.hpp"

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
// ln(1 + e^-d), likewise; from d = 8000 on it is as little as e^-d.
template <int L>
REPDL_HD ball<L> log_1p_exp_of_minus(const ball<L>& d, double near) {
  ball<L> e = exponential_of_minus(d, near);
  if (near < 8000) to_logarithm_1p(e);
  return e;
}
template <int L>
REPDL_HD_CALL ball<L> exact_product(double a, double b) {
  return number<L>(a) * number<L>(b);
}

// ln(1 + e^-d) of binary64, d >= 0. Beyond 130 it is below e^-d < 2^-187 by less than 2^-187 of it, beyond 600 between 0 and 2^-865.
REPDL_HD dd_ball<double> wide_log_1p_exp(const dd_ball<double>& d) {
  const dd_ball<double> tiny{0.0, 0.0, d.error <= 1 ? 0x1p-860 : infinity};
  const dd_ball<double> e = exponential(negated(d));
  return select(d.hi > 600, tiny, select(d.hi > 130, grown(e, 0x1p-180 * e.hi), logarithm_1p(e)));
}
template <>
struct loss_body<ops::soft_margin_loss> {
  REPDL_HD static bool is_special(const loss_constants&, double x, double t) { return !is_finite(x) || !is_finite(t); }
  REPDL_HD static double special(const loss_constants&, double x, double t) {
    const double z = as_factor(t) * as_factor(x);
    return z < 0 ? infinity : z > 0 ? 0.0 : z;
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants&, double x, double t) {
    using Ball = dd_ball<double>;
    const Ball z = number<Ball>(t) * number<Ball>(x);
    const Ball d = magnitude_of(z);
    return select(z.hi < 0, d, number<Ball>(0.0)) + wide_log_1p_exp(d);
  }
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
    loss_parts<L> r;
    const ball<L> d = magnitude_of(exact_product<L>(in[0], in[1]));
    if ((in[0] < 0) != (in[1] < 0)) r.part = d;
    r.value = r.part + log_1p_exp_of_minus(d, magnitude_of(in[0] * in[1]));
    r.rest = 1;
    return r;
  }
  static constexpr bool key_is_product = true;
  static double key(const loss_constants&, const double* in) { return magnitude_of(in[0] * in[1]); }
  template <int L>
  static ball<L> part(const loss_constants&, const double* in) {
    const double z = in[0] * in[1];
    return number<L>(z < 0 ? -z : 0.0);
  }
  template <int L>
  static void multiples(const loss_constants&, const double*, ball<L>& first, ball<L>&) {
    first = number<L>(1);
  }
  template <int L>
  static key_number<L> number_of_key(const loss_constants&, double key, int) {
    return {log_1p_exp_of_minus(number<L>(key), key)};
  }
};

template <>
struct loss_body<ops::soft_margin_loss_backward> {
  REPDL_HD static bool is_special(const loss_constants&, double g, double x, double t) {
    const double z = as_factor(t) * as_factor(x);
    return g == 0 || t == 0 || !is_finite(g) || !is_finite(t) || z != z || z == infinity;
  }
  REPDL_HD static double special(const loss_constants&, double g, double x, double t) {
    const double product = -(as_factor(g) * as_factor(t));
    const double z = as_factor(t) * as_factor(x);
    const bool beyond = z > 0 && !(is_finite(x) && is_finite(t));  // the factor is 0
    return z != z ? z : beyond ? product * 0.0 : product;
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants& k, double g, double x, double t) {
    using Ball = dd_ball<double>;
    const Ball z = number<Ball>(t) * number<Ball>(x);
    const Ball e = exponential(negated(magnitude_of(z)));
    const Ball slope = select(z.hi > 0, e, number<Ball>(1.0)) / (number<Ball>(1.0) + e);
    return number<Ball>(-g) * number<Ball>(t) * slope / count_of<Ball>(k.n);
  }
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
    const double near = magnitude_of(in[2] * in[1]);
    const ball<L> product = negated(exact_product<L>(in[0], in[2]));
    const int sign = (in[0] < 0) == (in[2] < 0) ? -1 : 1;
    const bool positive = (in[1] < 0) == (in[2] < 0);
    loss_parts<L> r;
    if (!is_regular(in[1]) || !is_regular(in[2])) {  // z = -inf: +inf has no rest
      r.value = product;
      r.part = product;
      return r;
    }
    const ball<L> one = number<L>(1);
    if (near < 0x1p-110) {  // 1 / (1 + e^z) = 1/2 - z/4 + ...: half is as near as z is small
      r.part = scaled(product, -1);
      const ball<L> e = exponential(exact_product<L>(in[2], in[1]));
      r.value = in[1] == 0 || in[2] == 0 ? r.part : product / (one + e);
      if (in[1] != 0 && in[2] != 0) r.rest = positive ? -sign : sign;
      return r;
    }
    const ball<L> e = exponential_of_minus(magnitude_of(exact_product<L>(in[2], in[1])), near);
    if (positive) {
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

// a + b + p, a = RN(a + b): zero only where that is.
REPDL_HD double sum_of_three(dd a, double p) {
  const dd s = two_sum(a.hi, p);
  return s.hi + (s.lo + a.lo);
}
// The share of a value between 0 and twice 2^-159 times c that is its error: all of it, or, where it stands alone, so much that
// it rounds as its ends do, if these are zeros. They are numbers of T or zeros at most: w c < 2^256, g w c < 2^385 (where the
// ends could be infinities, and all of it is the error).
REPDL_HD double error_of_tiny(bool alone) { return alone ? 1 - 0x1p-30 : 1.0; }

// ---- binary64
//
// a = 1 - t is exact in double-double, b = q t within its bound (dd_ball.hpp). The formulas are 0 where c = a + b, or a - b, is 0
// and so is what is beside it; c = 0 says that t (1 - q) = 1: t is a power of 2, from 2^-54 to 2^54 as q has 53 bits, where both sides of
// q t = t - 1 are exact double-doubles.
REPDL_HD bool is_balanced(double t, double q) {  // c = 0
  const double size = magnitude_of(t);
  if (!(size >= 0x1p-60 && size <= 0x1p60)) return false;
  const dd p = two_prod(q, t), d = two_sum(t, -1.0);
  return p.hi == d.hi && p.lo == d.lo;
}
// w c and so on, where t or q is infinite; `rising` and `falling`: what a and b are multiplied by.
REPDL_HD double sign_of_rest(double t) { return is_finite(t) ? signed_as(1, 1.0 - t) : 1.0 - t; }

template <>
struct loss_body<ops::binary_cross_entropy_with_logits> {
  REPDL_HD static bool is_factor(int i) { return i == 2; }
  // Exactly 0: c ln(1 + e^-|x|) is not, but where c is.
  REPDL_HD static bool is_zero(double x, double t, double q) { return is_balanced(t, q) && (x == 0 || t == 1); }
  REPDL_HD static bool is_special(const loss_constants&, double x, double t, double w, double q) {
    return !is_finite(x) || !is_finite(t) || !is_finite(q) || w != w || is_zero(x, t, q);
  }
  REPDL_HD static double special(const loss_constants&, double x, double t, double w, double q) {
    const double by = as_factor(w);
    if (x != x || t != t || w != w || q != q) return x + t + w + q;
    if (magnitude_of(x) == infinity) {
      const double factor = by * (x > 0 ? sign_of_rest(t) : as_factor(q) * as_factor(t));
      return factor == 0 ? 0.0 : factor * infinity;
    }
    if (is_finite(t) && is_finite(q)) return by * 0.0;
    const double more = is_finite(q) ? signed_as(1, q - 1.0) : q;
    const double c = more * as_factor(t);
    return by * (is_finite(t) ? c : (1.0 - t) * as_factor(x) + c);
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants&, double x, double t, double w, double q) {
    using Ball = dd_ball<double>;
    const Ball a = number<Ball>(1.0) - number<Ball>(t), b = number<Ball>(q) * number<Ball>(t);
    const Ball d = number<Ball>(magnitude_of(x));
    return number<Ball>(w) * ((a + b) * wide_log_1p_exp(d) + select(x > 0, a, b) * d);
  }
  REPDL_HD static loss_term first(const loss_constants&, double x, double t, double w, double q) {
    const dd a = two_sum(1.0, -t);
    const double b = q * t;
    const double d = magnitude_of(x);
    const loss_term g = log_1p_exp(d);
    const bool finite = is_regular(a.hi) & is_regular(b) & is_regular(x);
    const double c = sum_of_three(a, b);
    const double line = x > 0 ? a.hi * d : b * d;
    const double tail = c * g.value;
    const double rest = magnitude_of(c) * (d <= 110 ? g.error : error_of_tiny(line == 0) * g.error);
    const double error = rest + 0x1p-50 * (magnitude_of(tail) + magnitude_of(line));
    const double plain = a.hi * x + (1.0 + (q - 1.0) * t) * g.value;
    const loss_term r = with_factor(w, {finite ? tail + line : plain, finite ? error : 0.0});
    const double factor = x > 0 ? w * a.hi : w * b;
    const double limit = q != q ? q : factor == 0 ? 0.0 : factor * infinity;
    return {d == infinity ? limit : r.value, d == infinity ? 0.0 : r.error};
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants&, const double* in) {
    const double x = in[0];
    const ball<L> a = number<L>(1) - number<L>(in[1]);
    const ball<L> b = exact_product<L>(in[3], in[1]);
    const ball<L> w = number<L>(in[2]);
    const double near = magnitude_of(x);
    const ball<L> d = number<L>(near);
    loss_parts<L> r;
    r.part = w * ((x > 0 ? a : b) * d);
    const ball<L> factor = w * (a + b);
    r.value = r.part + factor * log_1p_exp_of_minus(d, near);
    r.rest = sign_of(factor);
    return r;
  }
  static double key(const loss_constants&, const double* in) { return magnitude_of(in[0]); }
  template <int L>
  static ball<L> part(const loss_constants&, const double* in) {
    const ball<L> line = in[0] > 0 ? number<L>(1) - number<L>(in[1]) : exact_product<L>(in[3], in[1]);
    return number<L>(in[2]) * (line * number<L>(magnitude_of(in[0])));
  }
  template <int L>
  static void multiples(const loss_constants&, const double* in, ball<L>& first, ball<L>&) {
    first = number<L>(in[2]) * (number<L>(1) - number<L>(in[1]) + exact_product<L>(in[3], in[1]));
  }
  template <int L>
  static key_number<L> number_of_key(const loss_constants&, double key, int) {
    return {log_1p_exp_of_minus(number<L>(key), key)};
  }
};

template <>
struct loss_body<ops::binary_cross_entropy_with_logits_backward> {
  REPDL_HD static bool is_factor(int i) { return (i == 0) | (i == 3); }
  REPDL_HD static bool is_zero(double x, double t, double q) {
    if (x == infinity) return t == 1;
    if (x == -infinity) return q == 0 || t == 0;
    return x == 0 ? is_balanced(t, -q) : t == 1 && q == 0;
  }
  REPDL_HD static bool is_special(const loss_constants&, double g, double x, double t, double w, double q) {
    const double product = as_factor(g) * as_factor(w);
    return product != product || x != x || !is_finite(t) || !is_finite(q) || is_zero(x, t, q);
  }
  REPDL_HD static double special(const loss_constants&, double g, double x, double t, double w, double q) {
    const double product = as_factor(g) * as_factor(w);
    if (x != x || t != t || q != q) return x + t + q;
    if (is_finite(t) && is_finite(q)) return product * 0.0;
    const double rising = x == -infinity ? 0.0 : 1.0, falling = x == infinity ? 0.0 : 1.0;
    return product * (sign_of_rest(t) * rising - as_factor(q) * as_factor(t) * falling);
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants& k, double g, double x, double t, double w, double q) {
    using Ball = dd_ball<double>;
    const Ball a = number<Ball>(1.0) - number<Ball>(t), b = number<Ball>(q) * number<Ball>(t);
    const Ball e = exponential(number<Ball>(-magnitude_of(x)));
    const Ball slope = select(x >= 0, a, negated(b)) + select(x >= 0, negated(b), a) * e;
    const Ball factor = number<Ball>(g) * number<Ball>(w);
    return quotient_of(factor * slope, (number<Ball>(1.0) + e) * count_of<Ball>(k.n));
  }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t, double w, double q) {
    const dd a = two_sum(1.0, -t);
    const double b = q * t;
    const double d = magnitude_of(x);
    const bool near = d <= 110;
    const bool far = (d > 110) & (d < infinity);
    const double e = near ? exp_core::eval(near ? -d : 0.0) : far ? 0x1p-159 : d == infinity ? 0.0 : d;
    const double head = x >= 0 ? a.hi : -b;
    const double tail = (x >= 0 ? -b : a.hi) * e;
    const double size = magnitude_of(tail);
    const bool middle = (x == 0) & is_regular(a.hi) & is_regular(b);
    const double f = middle ? sum_of_three(a, -b) : (head + tail) + 0.0;
    const double spread = 0x1p-48 * (middle ? magnitude_of(f) : magnitude_of(head) + size);
    const double error = spread + (far ? error_of_tiny(head == 0) * size : 0.0);
    const loss_term r = with_factor(g * w, {f / (1.0 + e) / k.count, error / k.count});
    const bool large = far & (head == 0) & is_regular(r.value) & (magnitude_of(r.value) > 0x1p-160);
    return {r.value, large ? magnitude_of(r.value) : r.error};
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants&, const double* in) {
    const double x = in[1];
    const ball<L> one = number<L>(1);
    const ball<L> a = one - number<L>(in[2]);
    const ball<L> b = exact_product<L>(in[4], in[2]);
    const ball<L> product = exact_product<L>(in[0], in[3]);
    const double near = magnitude_of(x);
    loss_parts<L> r;
    r.part = x == 0 ? scaled(product * (a - b), -1) : x > 0 ? product * a : negated(product * b);
    r.value = r.part;
    if (x == 0 || near == infinity) return r;
    const ball<L> factor = x > 0 ? negated(product * (a + b)) : product * (a + b);
    if (near < 0x1p-110) {  // (a - b) / 2 + c (x / 4 - ...): as near as x is small
      r.part = scaled(product * (a - b), -1);
      r.rest = -sign_of(factor);
      if (r.rest == -2) r.rest = 2;
    }
    const ball<L> e = exponential_of_minus(number<L>(near), near);
    r.value = (x > 0 ? product * a : negated(product * b)) + factor * (e / (one + e));
    if (!(near < 0x1p-110)) r.rest = sign_of(factor);
    return r;
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
