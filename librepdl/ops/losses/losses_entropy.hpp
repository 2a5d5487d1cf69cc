// Losses with logarithms and exponentials of their operands: binary_cross_entropy, kl_div and their gradients. The first tiers below are
// those of f16, bf16, binary32: u = 2^-53; errors in u. Binary64: as in losses_logistic.hpp. There 100 is A up to the greatest number
// below e^-100, 10^-12 is greater also next to 1, and the gradient of binary_cross_entropy is in the end a quotient of integers (decide).
// With log_target e^t - 1 is below 2^-109 next to t = 0, and t - x, or g, the exact part.
//
// ---- binary_cross_entropy: w (t A + (1 - t) B), A = min(-ln x, 100), B = min(-ln(1 - x), 100)
//
// 100 is A for x <= 26 2^-149 < e^-100 < 27 2^-149 and B for x = 1: ln 2^-24 > -100 (ln 2^-53, too).
// First tier. Logarithms 4 (logarithmic.hpp; 1 - x is exact for x > 1/4, else -x is its f), 1 - t 1, the products 1, their sum 1, w 1,
//   the ends 1: 9 of |t A| + |(1 - t) B|, 2^-49 covers them.
// Last tier. part: x = 0: w t 100, x = 1: w (1 - t) 100, and all of it; A = 100: w t 100, rest of the sign of w (1 - t). Else there
//   is no part. An element of 0 < x < 1 without a 100 is transcendental for w != 0: a combination of logarithms of rationals with
//   rational coefficients is 0 or that (Baker). It is not 0: with x = a / 2^m, a odd, m >= 1, a^k (2^m - a)^(n - k) is a quotient of
//   odd numbers, 2^(m n) is not. Parts have bits 2^-447 to 2^392. A sum with terms of both signs may be rational, where all its
//   logarithms cancel; where that leaves it next to a midpoint, no level decides, but where those of each x do (key_groups).
//
// Its gradient, g w (x - t) / (max(x (1 - x), 10^-12) n): 10^-12 is the greater one for x < 0x1.19799ap-40 and x = 1, and outside of
// [0, 1]. First tier: g w is exact; x - t 1, the product 1, 1 - x 1, x (1 - x) 1, times n 1 (or the numerator times 10^12), the quotient,
// RO, 2, the ends 1: 2^-50 = 8 u. Where nothing is lost before it, that is RO of the exact quotient: ties, which are frequent in f16
// and bf16, are right. Exactly: the numerator has bits 2^-447 to 2^425, the denominator 2^-298 to 2^52, so that 1024 bits hold
// N - m D for a midpoint m.
//
// ---- kl_div: t (ln t - x); with log_target e^t (t - x)
//
// First tier. ln t 4, the difference 1, the product 1, the ends 1: 2^-50 (|t ln t| + |t x|). e^t for |t| <= 440 as (e^(t/4))^4: 4 5.1
//   and 3; t - x 1, the product 1, the ends 1: 2^-48. t < -440: e^t is in (0, 2^-634), its stand-in 2^-635 within all of itself but
//   2^-30. t > 440: t != x differ by 2^-15 at least, and the result overflows, as its stand-in 2^700 with that error does; of a sum
//   it tells nothing.
// Last tier. part -t x, rest t ln t of the sign of t - 1; t = 1 has none. ln t is transcendental for t != 1. A sum of terms with t
//   below and above 1 may be rational, and undecided. log_target: no part, rest of the sign of t - x; t = 0 is its part, -x. e^t is
//   transcendental for t != 0, and a sum is rational only where the coefficients t - x of equal t all add up to 0
//   (Lindemann-Weierstrass), which a CPU adds first (key_groups); sums of t - x are multiples of 2^-149. t < -8000: e^t in
//   (0, 2^-11500); t > 9000, t > 7000:
//   beyond_range (last_common).
//
// Its gradient: -g t / n is a product of 48 bits over n; -g e^t / n as above; for t > 440 it overflows: 2^634 2^-149 2^-53.
//
// Checked by tests/losses/losses_test.cpp.
#pragma once

#include "librepdl/ops/losses/losses_logistic.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// -ln x, x > 0.
REPDL_HD double minus_log(double x) {
  const pow_reduced r = pow_reduce(x);
  return -log_binary64(r.exponent, r.fraction);
}
// ln(1 - x), 0 < x < 1.
template <int L>
REPDL_HD ball<L> log_of_rest(double x) {
  ball<L> rest = x < 0x1p-33 ? number<L>(-x) : number<L>(1) - number<L>(x);
  if (x < 0x1p-33) {
    to_logarithm_1p_small(rest);
  } else {
    rest = logarithm(rest.middle);  // exact: 86 bits
  }
  return rest;
}

template <>
struct loss_body<ops::binary_cross_entropy> {
  static constexpr double last_clamped = 0x1.a8c1f14e2af5cp-145;  // the greatest number of binary64 below e^-100
  REPDL_HD static bool is_factor(int i) { return i == 2; }
  REPDL_HD static bool is_special(const loss_constants&, double x, double t, double w) {
    return !(x >= 0 && x <= 1) || !is_finite(t) || w != w || (x == 0 && t == 0) || (x == 1 && t == 1);
  }
  REPDL_HD static double special(const loss_constants&, double x, double t, double w) {
    return x >= 0 && x <= 1 && is_finite(t) ? as_factor(w) * 0.0 : double_of(format<double>::nan);
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants&, double x, double t, double w) {
    using Ball = dd_ball<double>;
    const Ball most = number<Ball>(100.0);
    const Ball a = select(x <= last_clamped, most, negated(logarithm(number<Ball>(x))));
    // -ln(1 - x) = x + x^2/2 + ...
    const Ball small{x, 0.0, 0x1p-128 * x + 0x1p-1010};
    const Ball b = select(x == 1, most, select(x < 0x1p-130, small, negated(logarithm_1p(number<Ball>(-x)))));
    return number<Ball>(w) * (number<Ball>(t) * a + (number<Ball>(1.0) - number<Ball>(t)) * b);
  }
  REPDL_HD static loss_term first(const loss_constants&, double x, double t, double w) {
    const bool small = x <= 0.25;
    const pow_reduced r = pow_reduce(1.0 - x);
    const double log = log_binary64(small ? 0.0 : r.exponent, small ? -x : r.fraction);
    const double a = t * (x <= last_clamped ? 100.0 : minus_log(x));
    const double b = (1.0 - t) * (x == 1 ? 100.0 : -log);
    const double error = 0x1p-49 * (magnitude_of(a) + magnitude_of(b));
    const double v = (a + b) + 0.0;
    const bool inside = (x >= 0) & (x <= 1);
    return with_factor(w, {inside ? v : double_of(format<double>::nan), inside & is_regular(v) ? error : 0.0});
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants&, const double* in) {
    const double x = in[0];
    const double t = in[1];
    const ball<L> w = number<L>(in[2]);
    const ball<L> a = w * number<L>(t);
    const ball<L> b = w * (number<L>(1) - number<L>(t));
    loss_parts<L> r;
    if (x <= last_clamped) r.part = a * number<L>(100);
    if (x == 1) r.part = b * number<L>(100);
    r.value = r.part;
    if (x == 0 || x == 1) return r;
    if (x > last_clamped) r.value = negated(a * logarithm(limbs_of_value<L>(x)));
    r.value = r.value - b * log_of_rest<L>(x);
    r.rest = x <= last_clamped ? sign_of(b) : (t >= 0) & (t <= 1) ? sign_of(w) : 2;
    return r;
  }
  static double key(const loss_constants&, const double* in) { return (in[0] > 0) & (in[0] < 1) ? in[0] : -infinity; }
  template <int L>
  static ball<L> part(const loss_constants&, const double* in) {
    const ball<L> t = number<L>(in[1]);
    const ball<L> clamped = in[0] <= last_clamped ? t : in[0] == 1 ? number<L>(1) - t : number<L>(0);
    return number<L>(in[2]) * clamped * number<L>(100);
  }
  template <int L>
  static void multiples(const loss_constants&, const double* in, ball<L>& first, ball<L>& second) {
    const ball<L> w = number<L>(in[2]);
    const ball<L> t = number<L>(in[1]);
    if (in[0] > last_clamped) first = w * t;
    second = w * (number<L>(1) - t);
  }
  template <int L>
  static key_number<L> number_of_key(const loss_constants&, double key, int which) {
    return {negated(which == 0 ? logarithm(limbs_of_value<L>(key)) : log_of_rest<L>(key))};
  }
};

template <class To>
REPDL_HD void add_product_of_three(To& to, double a, double b, double c) {
  const integral_parts x = decompose(a), y = decompose(b), z = decompose(c);
  const bool negative = (x.negative != y.negative) != z.negative;
  std::uint64_t words[2];
  words[0] = multiply_wide(x.significand, y.significand, &words[1]);
  for (int i = 0; i < 2; ++i) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(words[i], z.significand, &high);
    const int exponent = x.exponent + y.exponent + z.exponent + 64 * i;
    to.add_scaled(low, exponent, negative);
    if (high != 0) to.add_scaled(high, exponent + 64, negative);
  }
}

template <>
struct loss_body<ops::binary_cross_entropy_backward> {
  // x (1 - x) > 10^-12, of numbers of binary64.
  REPDL_HD static bool is_steep(double x) { return (x >= 0x1.19799812dfd69p-40) & (x <= 0x1.fffffffffdcd0p-1); }
  REPDL_HD static bool is_special(const loss_constants&, double g, double x, double t, double w) {
    return g == 0 || w == 0 || x == t || !is_finite(g) || !is_finite(w) || !is_finite(x) || !is_finite(t);
  }
  REPDL_HD static double special(const loss_constants&, double g, double x, double t, double w) {
    const double d = is_finite(x) && is_finite(t) ? (x > t ? 1.0 : x < t ? -1.0 : 0.0) : x - t;
    return as_factor(g) * as_factor(w) * d;
  }
  // g w x - g w t, of 10^12, over n; or over n (x - x^2), where x has bits 2^-92 to 1.
  REPDL_HD_CALL static double decide(const loss_constants& k, double g, double x, double t, double w) {
    fixed_point<-3222, 100> numerator;
    add_product_of_three(numerator, g, w, x);
    add_product_of_three(numerator, g, w, -t);
    fixed_point<-192, 6> divisor;
    const auto n = static_cast<std::uint64_t>(k.n);
    if (!is_steep(x)) {
      divisor.add_scaled(n, 0, false);
      fixed_point<-3222, 101> more;
      add_multiple(more, numerator, 0x1.d1a94a2p39);
      return round_quotient<double>(more, divisor);
    }
    const integral_parts v = decompose(x);
    std::uint64_t high = 0, low = multiply_wide(v.significand, n, &high);
    divisor.add_scaled(low, v.exponent, false);
    divisor.add_scaled(high, v.exponent + 64, false);
    const std::uint64_t words[] = {low, high};
    for (int i = 0; i < 2; ++i) {
      low = multiply_wide(words[i], v.significand, &high);
      divisor.add_scaled(low, 2 * v.exponent + 64 * i, true);
      divisor.add_scaled(high, 2 * v.exponent + 64 * i + 64, true);
    }
    return round_quotient<double>(numerator, divisor);
  }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double x, double t, double w) {
    const dd d = distance(x, t);
    const bool steep = is_steep(x);
    const dd rest = two_sum(1.0, -x);
    const dd top = two_prod(g * w, d.hi);
    const dd numerator = two_prod(top.hi, steep ? 1.0 : 0x1.d1a94a2p39);  // 10^12
    const dd product = two_prod(steep ? x : 1.0, steep ? rest.hi : 1.0);
    const dd denominator = two_prod(product.hi, k.count);
    // What the numbers lost; nothing, often: then ties are right.
    const double lost = magnitude_of(d.lo) + magnitude_of(top.lo) + magnitude_of(numerator.lo) +
                        magnitude_of(steep ? rest.lo : 0.0) + magnitude_of(product.lo) + magnitude_of(denominator.lo);
    return with_error(divide_to_odd(numerator.hi, denominator.hi), lost == 0 ? k.count_error : 0x1p-50);
  }
  template <class Ball>
  REPDL_HD_CALL static auto exact(const loss_constants& k, double g, double x, double t, double w) {
    const Ball top = number<Ball>(g) * number<Ball>(w) * distance_of<Ball>(x, t);
    if (!is_steep(x)) return quotient_of(top * number<Ball>(0x1.d1a94a2p39), count_of<Ball>(k.n));
    return quotient_of(top, number<Ball>(x) * distance_of<Ball>(1, x) * count_of<Ball>(k.n));
  }
};

// e^t, and an error of it.
REPDL_HD loss_term wide_exponential(double t) {
  const bool near = magnitude_of(t) <= 440;
  const double root = exp_core::eval(near ? 0.25 * t : 0.0);
  const double square = root * root;
  const double e = near ? square * square : t > 0 ? 0x1p700 : 0x1p-635;
  return {e, (near ? 0x1p-48 : 1 - 0x1p-30) * e};
}
// e^t of t beyond first_huge, times 2^-1074, is above 2^11900; up to last_common, times 2^1025, for 2^62 elements, it is below 2^11200.
inline constexpr double last_common = 7000, first_huge = 9000;
template <int L>
REPDL_HD_CALL ball<L> exponential_of(double t) {
  return t < 0 ? exponential_of_minus(number<L>(-t), -t) : exponential(number<L>(t));
}

template <>
struct loss_body<ops::kl_div> {
  // Where e^t or ln t is not there, or the difference is 0.
  REPDL_HD static bool is_special(const loss_constants& k, double x, double t) {
    return !is_finite(x) || !is_finite(t) || (k.c == 0 ? t <= 0 : t == x);
  }
  REPDL_HD static double special(const loss_constants& k, double x, double t) {
    const double nan = double_of(format<double>::nan);
    const double rest = t - x;  // inf - x, t - inf, or 0
    if (x != x || t != t) return nan;
    if (k.c != 0 && t == -infinity) return is_finite(x) ? -0.0 : nan;
    if (k.c == 0 && t <= 0) return t == 0 && is_finite(x) ? 0.0 : nan;
    return rest + 0.0;
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants& k, double x, double t) {
    using Ball = dd_ball<double>;
    if (k.c == 0) return number<Ball>(t) * (logarithm(number<Ball>(t)) - number<Ball>(x));
    return exponential(number<Ball>(t)) * distance_of<Ball>(t, x);
  }
  REPDL_HD static loss_term first(const loss_constants& k, double x, double t) {
    const double nan = double_of(format<double>::nan);
    const bool finite = is_regular(x);
    if (k.c != 0) {
      const double d = (t - x) + 0.0;
      const loss_term e = wide_exponential(t);
      const double v = is_regular(d) ? e.value * d : d;
      const double value = t == -infinity ? (finite ? -0.0 : nan) : v;
      return {value, is_regular(d) ? e.error * magnitude_of(d) : 0.0};
    }
    const double log = t == infinity ? t : -minus_log(t);
    const double v = t * (log - x);
    const double value = t > 0 ? v : (t == 0) & finite ? 0.0 : nan;
    const double error = 0x1p-50 * (t * (magnitude_of(log) + magnitude_of(x)));
    return {value, (t > 0) & is_regular(v) ? error : 0.0};
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants& k, const double* in) {
    const double x = in[0];
    const double t = in[1];
    loss_parts<L> r;
    if (k.c == 0) {
      r.part = negated(exact_product<L>(t, x));
      r.value = r.part;
      if (t == 1) return r;
      r.value = r.part + number<L>(t) * logarithm(limbs_of_value<L>(t));
      r.rest = t > 1 ? 1 : -1;
      return r;
    }
    const ball<L> d = exact_distance<L>(t, x);
    r.value = d;
    if (t == 0) {
      r.part = d;
      return r;
    }
    const bool negative = t < x;
    r.rest = negative ? -1 : 1;
    if (magnitude_of(t) < 0x1p-110) {  // (t - x) (1 + t + ...): as near as t is small
      r.part = d;
      r.rest = (t < 0) != negative ? -1 : 1;
    }
    if (t > last_common) r.beyond = negative ? minus_large_term : large_term;
    if (t > first_huge) {
      r.beyond = negative ? minus_huge_term : huge_term;
      return r;
    }
    r.value = d * exponential_of<L>(t);
    return r;
  }
  static double key(const loss_constants& k, const double* in) {
    return in[1] == (k.c == 0 ? 1.0 : 0.0) ? -infinity : in[1];
  }
  template <int L>
  static ball<L> part(const loss_constants& k, const double* in) {
    if (k.c == 0) return negated(exact_product<L>(in[1], in[0]));
    return in[1] == 0 ? number<L>(-in[0]) : number<L>(0);
  }
  template <int L>
  static void multiples(const loss_constants& k, const double* in, ball<L>& first, ball<L>&) {
    first = k.c == 0 ? number<L>(in[1]) : exact_distance<L>(in[1], in[0]);
  }
  template <int L>
  static key_number<L> number_of_key(const loss_constants& k, double key, int) {
    if (k.c == 0) return {logarithm(limbs_of_value<L>(key)), key > 1 ? 1 : -1};
    if (key > first_huge) return {number<L>(0), 1, huge_term};
    return {exponential_of<L>(key), 1, key > last_common ? std::int64_t{large_term} : 0};
  }
};

template <>
struct loss_body<ops::kl_div_backward> {
  REPDL_HD static bool is_special(const loss_constants& k, double g, double, double t) {
    return g == 0 || !is_finite(g) || !is_finite(t) || (k.c == 0 && t == 0);
  }
  REPDL_HD static double special(const loss_constants& k, double g, double, double t) {
    if (k.c == 0) return -(as_factor(g) * as_factor(t));
    return -(as_factor(g) * (t == -infinity ? 0.0 : is_finite(t) ? 1.0 : t));
  }
  REPDL_HD static dd_ball<double> wide(const loss_constants& k, double g, double, double t) {
    using Ball = dd_ball<double>;
    const Ball slope = k.c == 0 ? number<Ball>(t) : exponential(number<Ball>(t));
    return quotient_of(number<Ball>(-g) * slope, count_of<Ball>(k.n));
  }
  REPDL_HD static loss_term first(const loss_constants& k, double g, double, double t) {
    if (k.c == 0) return with_error(divide_to_odd(-(g * t), k.count), k.count_error);
    const loss_term e = wide_exponential(t);
    const bool finite = is_regular(t);
    const double limit = t == -infinity ? 0.0 : t;
    const double v = -(g * (finite ? e.value : limit)) / k.count;
    const double error = magnitude_of(g) * e.error / k.count;
    return {v, finite & is_regular(v) ? error : 0.0};
  }
  template <int L>
  REPDL_HD_CALL static loss_parts<L> parts(const loss_constants& k, const double* in) {
    const lanes_together lanes;
    const double t = in[2];
    const ball<L> g = number<L>(-in[0]);
    loss_parts<L> r;
    if (k.c == 0 || t == 0) {
      r.part = k.c == 0 ? g * number<L>(t) : g;
      r.value = r.part;
    } else {
      r.rest = in[0] < 0 ? 1 : -1;
      if (magnitude_of(t) < 0x1p-110) {
        r.part = g;
        r.rest = (t < 0) != (in[0] < 0) ? 1 : -1;
      }
      if (t > first_huge) {
        r.value = g;
        r.beyond = in[0] < 0 ? huge_term : minus_huge_term;
      } else {
        r.value = g * exponential_of<L>(t);
      }
    }
    lanes.meet();
    return r;
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
