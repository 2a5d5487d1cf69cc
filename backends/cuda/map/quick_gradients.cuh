// Quick bodies of two and three numbers: powers, gated units, and gradients. As in quick.cuh the bits are those of the body
// proper, which decides what these leave undecided: what their tests cannot round, and operands that they do not cover.
//
// Bounds: u = 2^-53; an error of 2^-b of a number is at most 2^(53 - b) of its ulps. Behind a bar: in units of binary32's u =
// 2^-24, for f16 and bf16, without those of the ends. g is a factor, exactly; a product by it u. Zero is 0 only where g or a
// coefficient is, with the sign of the product.
#pragma once

#include "backends/cuda/map/quick.cuh"
#include "librepdl/ops/elementwise/backward.hpp"
#include "librepdl/ops/elementwise/circular.hpp"
#include "librepdl/ops/elementwise/circular_backward.hpp"
#include "librepdl/ops/elementwise/elu_backward.hpp"
#include "librepdl/ops/elementwise/error_function_backward.hpp"
#include "librepdl/ops/elementwise/gelu_backward.hpp"
#include "librepdl/ops/elementwise/glu.hpp"
#include "librepdl/ops/elementwise/gradients.hpp"
#include "librepdl/ops/elementwise/logaddexp_backward.hpp"
#include "librepdl/ops/elementwise/logarithmic_backward.hpp"
#include "librepdl/ops/elementwise/logit.hpp"
#include "librepdl/ops/elementwise/pow.hpp"
#include "librepdl/ops/elementwise/pow_backward.hpp"
#include "librepdl/ops/elementwise/pow_scalar.hpp"
#include "librepdl/ops/elementwise/pow_scalar_backward.hpp"
#include "librepdl/ops/elementwise/silu_backward.hpp"
#include "librepdl/ops/elementwise/softplus.hpp"

namespace repdl::cuda {
namespace {

// A product with an exponential and a reciprocal: 2^-44.8 | exponential 2.5, reciprocal 2, products 3. A power's: pow, below.
constexpr std::uint32_t exp_width = 1u << 10, power_width = 1u << 11;
constexpr float exp_units = 9;

// e <= 0, 2^e <= |h|.
__device__ inline int log2_of_cancelled(double h) {
  const std::uint32_t twice = 2 * static_cast<std::uint32_t>(__double2hiint(h));  // without its sign
  return min(static_cast<int>(twice - 0x7fe00000u) >> 21, 0);
}
// g f h, h from a cancellation. With P = max(1, 1/|h|) it errs by 2^log2_ulps P ulps | h errs by units (1 + 2 |h|) u, two of |h| for
// the ends.
template <class R>
__device__ inline approximation<R> within_cancelled(R gf, R h, int log2_ulps, float units, bool covered) {
  if constexpr (std::is_same_v<R, double>) {
    return {gf * h, eighths_of_power(log2_ulps, log2_of_cancelled(h)), covered};
  } else {
    const float error = fused(fabsf(h), units * 0x1p-23f, units * 0x1p-24f);
    return {gf * (h - error), gf * (h + error), covered};
  }
}

// `width` ulps | units + slope |w| u, two for the ends: of a product with e^w, where w errs by `slope` u of itself.
template <class R>
__device__ inline approximation<R> within_power(R value, std::uint32_t width, R w, float slope, float units,
                                                bool covered) {
  if constexpr (std::is_same_v<R, double>) {
    return {value, eighths_of(width), covered};
  } else {
    const float error = fused(fabsf(w), slope * 0x1p-24f, units * 0x1p-24f);
    return {value * (1 - error), value * (1 + error), covered};
  }
}
template <class R>
constexpr float greatest_exponent = std::is_same_v<R, double> ? 80.0f : 60.0f;
// Of a product with more factors.
template <class R>
constexpr float greatest_power = std::is_same_v<R, double> ? 80.0f : 40.0f;
// Of a product with two operands.
template <class R>
constexpr float greatest_gate = std::is_same_v<R, double> ? 80.0f : 30.0f;

// e^(y ln |x|). ln |x| is within 2^-49.4 | 5.6 u of itself; y ln |x|, at most 86: 2^-42.9 | 6.6 u |w|; with the exponential below
// 2^-42.5 | 2.5 u more. Ties are within the test's reach, powers that are numbers are not. x < 0 and a whole y: with the sign of
// (-1)^y; numbers of 2^24 and more are even.
struct parity {
  bool whole, odd;
};
__device__ inline parity parity_of(double y) { return {trunc(y) == y, trunc(0.5 * y) != 0.5 * y}; }
// | |y| < 2^22
template <class R>
__device__ inline parity parity_of(float y) {
  if constexpr (std::is_same_v<R, float>) {
    const float t = y + quick_exp<float>::shifter;
    return {t - quick_exp<float>::shifter == y, (__float_as_uint(t) & 1) != 0};
  } else {
    return {truncf(y) == y, truncf(0.5f * y) != 0.5f * y};
  }
}
template <class R>
__device__ inline parity parity_of(double y) {
  return parity_of(y);
}
// The power of |x|, negated where x < 0 and y is odd, or, `other`, even.
template <class R, class Y>
__device__ inline R with_sign_of_power(R power, float x, Y y, bool other) {
  if constexpr (std::is_same_v<R, float> && std::is_same_v<Y, float>) {
    const std::uint32_t t = __float_as_uint(y + quick_exp<float>::shifter) ^ (other ? 1u : 0u);  // as in parity_of
    return __uint_as_float(__float_as_uint(power) ^ (t << 31 & __float_as_uint(x)));
  } else {
    return (x < 0) & (parity_of<R>(y).odd != other) ? -power : power;
  }
}
constexpr float infinite = __builtin_inff();
// x is a finite number and y one whose parity is known: what tests have in common, first.
template <class R, class Y>
__device__ inline bool is_usual_power(float x, Y y) {
  const bool known = std::is_same_v<R, float> && std::is_same_v<Y, float> ? fabs(y) < Y(0x1p22) : y == y;
  return (fabsf(x) < infinite) & known;
}
template <class R>
__device__ inline R quick_power_log(float x) {
  return quick_log<R>(fabsf(x)).close_value();
}
template <class R, class Y>
__device__ inline approximation<R> quick_power(float x, Y y) {
  const R w = static_cast<R>(y) * quick_power_log<R>(x);
  const R power = quick_exp<R>(w).value();
  constexpr R limit = std::is_same_v<R, double> ? 86 : 80;
  const bool covered = is_usual_power<R>(x, y) & (x != 0) & (fabs(w) < limit);
  return within_power<R>(with_sign_of_power(power, x, y, false), power_width, w, 7.5f, 5, covered);
}
template <class R, class Y>
__device__ inline bool power_is_invalid(float x, Y y) {
  return is_usual_power<R>(x, y) & (x < 0) & !parity_of<R>(y).whole;
}
template <>
struct quick<ops::pow> {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    return quick_power<R>(x, y);
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float x, float y) {
    return power_is_invalid<R>(x, y);
  }
};
// x^2 is exact, x^3 and x^4 are products of exact numbers: u.
template <>
struct quick<ops::pow_scalar> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float x, const num::parameters& p) {
    return quick_power<R>(x, p.value[0]);
  }
  __device__ static bool is_product(const num::parameters& p) {
    const double y = p.value[0];
    return y == 1 || y == 2 || y == 3 || y == 4;
  }
  template <class R>
  __device__ static approximation<R> product(float x, const num::parameters& p) {
    const double y = p.value[0];
    const R b = static_cast<R>(x);
    const R square = b * b;
    const R value = y == 1 ? b : y == 2 ? square : y == 3 ? square * b : square * square;
    return y <= 2 ? within<R>(value, 0, 0, x == x) : within<R>(value, 3, 3, fabsf(x) < infinite);
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float x, const num::parameters& p) {
    return power_is_invalid<R>(x, p.value[0]);
  }
};
template <>
struct quick<ops::scalar_pow> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float x, const num::parameters& p) {
    const double base = p.value[0];
    const R w = static_cast<R>(x) * static_cast<R>(quick_log<>(base).close_value());
    const bool covered = (base > 0x1p-1000) & (base < 0x1p1000) & (fabs(w) < greatest_exponent<R>);
    return within_power<R>(quick_exp<R>(w).value(), power_width, w, 2, 5, covered);
  }
};
// g y x^(y-1), y - 1 within u, times ln |x|, at most 80: 2^-46; the rest as pow's. | g y is exact and between 2^-60 and 2^60 (above, in
// f16), or g is 0; the power is between 2^-58 and 2^58.
template <class R, class T, class Y>
__device__ inline approximation<R> quick_power_slope(float g, float x, Y y) {
  const R less =
      std::is_same_v<Y, R> || std::is_same_v<R, double> ? static_cast<R>(y) - R{1} : static_cast<R>(y - Y{1});
  const R w = less * quick_power_log<R>(x);
  const R power = quick_exp<R>(w).value();
  const R c = static_cast<R>(g) * static_cast<R>(y);
  bool covered = is_usual_power<R>(x, y) & (y != 0) & (fabs(w) < greatest_power<R>);
  if constexpr (std::is_same_v<R, float>) {
    covered = covered & (fabsf(x) >= 0x1p-126f) & (fabsf(c) <= 0x1p60f);
    if constexpr (!std::is_same_v<T, f16>) covered = covered & ((fabsf(c) >= 0x1p-60f) | (g == 0));
  } else {
    covered = covered & (x != 0);
  }
  return within_power<R>(c * with_sign_of_power(power, x, y, true), power_width, w, 9, 8, covered);
}
template <>
struct quick<ops::pow_backward_x> {
  static constexpr bool bounds_operands = true;
  template <class R, class T>
  __device__ static approximation<R> approximate(float g, float x, float y) {
    return quick_power_slope<R, T>(g, x, y);
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float, float x, float y) {
    return power_is_invalid<R>(x, y);
  }
};
template <>
struct quick<ops::pow_scalar_backward> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, const num::parameters& p) {
    const double y = p.value[0];
    const bool moderate = std::is_same_v<R, double> ? (fabs(y) < 0x1p100) & (fabs(y) > 0x1p-100) : is_moderate(y);
    approximation<R> r = quick_power_slope<R, void>(g, x, y);
    r.covered = r.covered & moderate;
    return r;
  }
  __device__ static bool is_product(const num::parameters& p) {
    return p.value[0] == 1 || p.value[0] == 2 || p.value[0] == 3;
  }
  template <class R>
  __device__ static approximation<R> product(float g, float x, const num::parameters& p) {
    const double y = p.value[0];
    const R b = static_cast<R>(x);
    const R value = static_cast<R>(g) * (y == 1 ? R{1} : y == 2 ? R{2} * b : R{3} * b * b);
    const bool finite = (fabsf(g) < infinite) & (fabsf(x) < infinite);
    return y <= 2 ? within<R>(value, 0, 0, finite) : within<R>(value, 4, 4, finite);
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float, float x, const num::parameters& p) {
    return power_is_invalid<R>(x, p.value[0]);
  }
};
// g x^y ln x.
template <class R>
__device__ inline approximation<R> quick_power_growth(float g, R log, float y, bool covered) {
  const R w = static_cast<R>(y) * log;
  const R value = static_cast<R>(g) * log * quick_exp<R>(w).value();
  return within_power<R>(value, power_width, w, 7.5f, 12.5f, covered & (fabs(w) < greatest_power<R>));
}
template <>
struct quick<ops::pow_backward_y> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, float y) {
    return quick_power_growth<R>(g, quick_power_log<R>(x), y, (x > 0) & (x < infinite) & (x != 1));
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float, float x, float) {
    return x < 0;
  }
};
template <>
struct quick<ops::scalar_pow_backward> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, const num::parameters& p) {
    const double base = p.value[0];
    const R log = static_cast<R>(quick_log<>(base).close_value());
    return quick_power_growth<R>(g, log, x, (base > 0x1p-1000) & (base < 0x1p1000) & (fabs(log) > R(0x1p-30)));
  }
};

// For f16 and bf16 alone.
struct quick_narrow {
  static constexpr bool narrow = true;
};
// By a result y; what they multiply is exact, or off by u: at most 3 u. Infinities and NaN are left to the body.
template <>
struct quick<ops::tanh_backward> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float y) {
    const R d = static_cast<R>(y);
    return within<R>(static_cast<R>(g) * fused(-d, d, R{1}), 4, 4, true);
  }
};
template <>
struct quick<ops::sigmoid_backward> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float y) {
    const R d = static_cast<R>(y);
    return within<R>(static_cast<R>(g) * d * (R{1} - d), 4, 4, true);
  }
};
// g y ln 2: g y is exact.
template <>
struct quick<ops::exp2_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float y) {
    return within<R>(static_cast<R>(g) * static_cast<R>(y) * static_cast<R>(ln2), 4, 4, true);
  }
};
// x <= -3 ? +0 : x < 3 ? g (x + 3/2) / 3 : g: a sum, two products, 1/3. Many are midpoints of f16 and bf16: those are exact.
template <>
struct quick<ops::hardswish_backward> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    const R d = static_cast<R>(g);
    const R sum = static_cast<R>(x) + R(1.5), product = d * sum;
    const R inside = product * static_cast<R>(1.0 / 3);
    const bool exact =
        (sum - R(1.5) == static_cast<R>(x)) & (fused(d, sum, -product) == 0) & (fused(inside, R{-3}, product) == 0);
    const R value = x <= -3 ? R{0} : x < 3 ? inside : d;
    const approximation<R> r = within<R>(value, 8, 5, x == x), tie = within<R>(value, 0, 0, x == x);
    return exact ? tie : r;
  }
};
// g (1 - weight).
template <>
struct quick<ops::lerp_scalar_backward_x> : quick_narrow {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, const num::parameters& p) {
    const double c = 1.0 - p.value[0];
    return within<R>(static_cast<R>(g) * static_cast<R>(c), 4, 4,
                     (c == 0) | ((fabs(c) > 0x1p-60) & (fabs(c) < 0x1p60)));
  }
};
// g / (1 + |x|)^2: a sum, a reciprocal, two products.
template <>
struct quick<ops::softsign_backward> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    const R r = reciprocal<R>(R{1} + static_cast<R>(fabsf(x)));
    return within<R>(static_cast<R>(g) * r * r, 8, 8, fabsf(x) < infinite);
  }
};
// Quotients: a reciprocal of 1.1 u, which keeps the sign of zeros; a denominator within u, a numerator within u, its product, a
// constant within u / 2, its product.
template <class R>
__device__ inline approximation<R> quick_quotient(R a, R d, R factor = R{1}) {
  return within<R>(reciprocal<R>(d) * a * factor, 8, 7,
                   (d != 0) & (fabs(d) < (std::is_same_v<R, double> ? R(0x1p300) : R(0x1p90))));
}
template <>
struct quick<ops::log2_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    return quick_quotient<R>(g, x, static_cast<R>(log2e));
  }
};
template <>
struct quick<ops::log10_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    return quick_quotient<R>(g, x, static_cast<R>(log10e));
  }
};
template <>
struct quick<ops::log1p_backward> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    return quick_quotient<R>(g, R{1} + static_cast<R>(x));
  }
};
// g a / (a^2 + b^2): the squares are exact; the first one is, and the sum is rounded once.
template <class R>
__device__ inline approximation<R> quick_inverse_gradient(float g, float a, float b) {
  const R d = fused(static_cast<R>(b), static_cast<R>(b), static_cast<R>(a) * static_cast<R>(a));
  approximation<R> r = quick_quotient<R>(static_cast<R>(g) * static_cast<R>(a), d);
  r.covered = r.covered & (d > (std::is_same_v<R, double> ? R(0x1p-300) : R(0x1p-90)));
  return r;
}
template <>
struct quick<ops::atan2_backward_y> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float y, float x) {
    return quick_inverse_gradient<R>(g, x, y);
  }
};
template <>
struct quick<ops::atan2_backward_x> : quick_narrow {
  template <class R>
  __device__ static approximation<R> approximate(float g, float y, float x) {
    return quick_inverse_gradient<R>(-g, y, x);
  }
};
// g / (x (1 - x)) within (0, 1) and the margin, if there is one: comparisons with NaN are false.
template <>
struct quick<ops::logit_backward> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, const num::parameters& p) {
    const R v = static_cast<R>(x);
    const R rest = R{1} - v;
    approximation<R> r = quick_quotient<R>(g, v * rest);
    constexpr double wide = std::is_same_v<R, double> ? 0x1p-50 : 0x1p-22;
    const bool beyond =
        (v < static_cast<R>(p.value[0] * (1 + wide))) | (rest <= static_cast<R>(p.value[0] * (1 + wide)));
    r.covered = (x > 0) & (x < 1) & !beyond;
    return r;
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float, float x, const num::parameters& p) {
    return ((x < 0) | (x > 1)) & (p.value[0] != p.value[0]);
  }
};

// |x| = whole |y| + rest, quotients below 2^27 | 2^21: n is an integer next to the quotient, |x| - n |y| exact (n = 0, or |x| > |y| / 4: a
// multiple of an ulp of |y| / 8 below |y|), and its sign says on which side of n the quotient is. rest is a number.
template <class R>
struct whole_division {
  R whole, rest;
  bool negative;  // the quotient
  bool covered;

  __device__ whole_division(float x, float y) {
    constexpr R limit = std::is_same_v<R, double> ? 0x1p27 : 0x1p21f;
    negative = ((__float_as_uint(x) ^ __float_as_uint(y)) >> 31) != 0;
    const R a = static_cast<R>(fabsf(x)), b = static_cast<R>(fabsf(y));
    const R n = rint(quotient<R>(a, b));
    const R left = fused(-n, b, a);
    const bool above = left < 0;
    whole = above ? n - R{1} : n;
    rest = above ? left + b : left;
    covered = (n < limit) & (y != 0);
  }
};
// trunc(x / y) and floor(x / y) times -g. The product of an integer with g is exact | if it is below 2^12, and ties are ties.
template <bool Floor>
struct quick_whole_division_gradient {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, float y) {
    constexpr R exact_limit = std::is_same_v<R, double> ? 0x1p27 : 0x1p12f;
    const whole_division<R> d(x, y);
    const R whole = d.whole + (Floor & d.negative & (d.rest != 0) ? R{1} : R{0});
    const R value = static_cast<R>(d.negative ? g : -g) * whole;
    const bool exact = whole < exact_limit;
    return within<R>(value, exact ? 0 : 1, exact ? 0.0f : 2.0f, d.covered);
  }
};
template <>
struct quick<ops::fmod_backward_y> : quick_whole_division_gradient<false> {};
template <>
struct quick<ops::remainder_backward_y> : quick_whole_division_gradient<true> {};

// g ln y: 2^-42.9 | 4.6, the product.
template <>
struct quick<ops::xlogy_backward_x> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float, float y) {
    return within<R>(static_cast<R>(g) * quick_log<R>(fabsf(y)).value(), 1u << 11, 8, (y > 0) & (y < infinite));
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float, float x, float y) {
    return (y < 0) & ((x < 0) | (x > 0));
  }
};

// A factor e^w, c = e^w up to |w| = 80; w may err by 80 u of itself, 2^-46.7 + 2^-46.3.
// Reciprocals of 1 + e^w count the exponential once at most.
template <>
struct quick<ops::log_sigmoid_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    const R r = reciprocal<R>(R{1} + quick_exp<R>(static_cast<R>(x)).value());
    return within<R>(static_cast<R>(g) * r, exp_width, exp_units, fabsf(x) < greatest_exponent<R>);
  }
};
// y - x errs by u of itself.
template <>
struct quick<ops::logaddexp_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, float y) {
    const R d = static_cast<R>(y) - static_cast<R>(x);
    const R r = reciprocal<R>(R{1} + quick_exp<R>(d).value());
    return within_power<R>(static_cast<R>(g) * r, exp_width, d, 1, exp_units + 1, fabs(d) < greatest_exponent<R>);
  }
};
// 2^d = 2^k e^((d - k) ln 2). Where d is an integer the quotient may be a midpoint, which the test leaves undecided.
template <>
struct quick<ops::logaddexp2_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, float y) {
    const R d = static_cast<R>(y) - static_cast<R>(x);
    const R r = reciprocal<R>(R{1} + quick_exp<R>::of_power(d).value());
    return within_power<R>(static_cast<R>(g) * r, exp_width, d, 1, exp_units + 1, fabs(d) < greatest_exponent<R>);
  }
};
template <>
struct quick<ops::erf_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    const R square = static_cast<R>(x) * static_cast<R>(x);
    const R factor = static_cast<R>(0x1.20dd750429b6dp0) * quick_exp<R>(-square).value();
    return within<R>(static_cast<R>(g) * factor, exp_width, exp_units, square < greatest_exponent<R>);
  }
};
template <>
struct quick<ops::erfc_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    return quick<ops::erf_backward>::approximate<R>(-g, x);
  }
};
template <>
struct quick<ops::selu_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    using forward = quick<ops::selu>;
    constexpr float limit = greatest_exponent<R>;
    const R e = quick_exp<R>(static_cast<R>(fmaxf(fminf(x, 0.0f), -limit))).value();
    const R factor = x > 0 ? static_cast<R>(forward::scale) : static_cast<R>(forward::product) * e;
    return within<R>(static_cast<R>(g) * factor, exp_width, exp_units, x > -limit);
  }
};
// In binary32 the options and their products are off by u / 2 and u, w by 2 u.
template <>
struct quick<ops::elu_backward> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, const num::parameters& p) {
    const R w = static_cast<R>(p.value[2]) * static_cast<R>(x);
    const bool above = x > 0;
    const R scaled = static_cast<R>(g) * static_cast<R>(p.value[1]);
    const R below = scaled * static_cast<R>(p.value[0] * p.value[2]) * quick_exp<R>(above ? R{0} : w).value();
    const bool moderate = std::is_same_v<R, double> ||
                          (is_moderate(p.value[0] * p.value[2]) && is_moderate(p.value[1]) && is_moderate(p.value[2]));
    const bool covered = moderate & (above | (fabs(w) < greatest_power<R>));
    return within_power<R>(above ? scaled : below, exp_width, above ? R{0} : w, 2, exp_units + 1, covered);
  }
};
template <>
struct quick<ops::celu_backward> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, const num::parameters& p) {
    const R w = x < 0 ? static_cast<R>(x) * static_cast<R>(reciprocal<double>(p.value[0])) : R{0};
    const R e = quick_exp<R>(w).value();
    const bool moderate = std::is_same_v<R, double> || is_moderate(p.value[0]);
    const bool covered = moderate & (x == x) & (fabs(w) < greatest_exponent<R>);
    return within_power<R>(static_cast<R>(g) * e, exp_width, w, 2, exp_units + 1, covered);
  }
};
// b x > threshold ? g : g / (1 + e^(-b x)); b x is rounded, what is next to the threshold left to the body.
template <>
struct quick<ops::softplus_backward> {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x, const num::parameters& p) {
    const R w = static_cast<R>(p.value[0]) * static_cast<R>(x);
    const R threshold = static_cast<R>(fmax(fmin(p.value[1], 0x1p100), -0x1p100));
    const bool passes = w > threshold;
    const R r = reciprocal<R>(R{1} + quick_exp<R>(-w).value());
    constexpr double margin = std::is_same_v<R, double> ? 0x1p-50 : 0x1p-20;
    const bool moderate = std::is_same_v<R, double> || is_moderate(p.value[0]);
    const bool covered = moderate & (fabs(w - threshold) > fabs(threshold) * static_cast<R>(margin));
    return within_power<R>(static_cast<R>(g) * (passes ? R{1} : r), exp_width, passes ? R{0} : w, 2, exp_units + 1,
                           covered & (passes | (fabs(w) < greatest_exponent<R>)));
  }
};

// g s h, h = 1 + c z, s = 1 / (1 + e), c = e s. With d the error of e: s errs by d + 2.1 u, c by d + 3.1 u, c z, at most 1 + |h|, by d +
// 4.1 u and z's error, h by u besides; with products 2 d + 9.2 u + (d + 4.1 u) / |h|, and twice z's error. silu: d = 2^-47.8, in all
// 2^-46 P.
// | In units: s d + 2, c d + 3, c z d + 3 + z's, h that of 1 + |h| and 1 of |h|, all with the products 2 d + 7 + z's of |h| and d + 3 +
// z's of 1.
template <class R>
__device__ inline approximation<R> quick_logistic_gradient(R g, R w, R z, int log2_ulps, float units, bool covered) {
  const R e = quick_exp<R>(-w).close_value();
  const R s = reciprocal<R>(R{1} + e);
  const R h = fused(e * s, z, R{1});
  return within_cancelled<R>(g * s, h, log2_ulps, units, covered);
}
template <>
struct quick<ops::silu_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    const R d = static_cast<R>(x);
    return quick_logistic_gradient<R>(static_cast<R>(g), d, d, 7, 8, fabsf(x) < greatest_exponent<R>);
  }
};
// w and z err by 4 u. |x| <= 3: |w| < 6.8, d = 2^-47.8 + 28 u, in all 2^-45.2 P; else |w| <= 77, 2^-42.8 P.
// | w errs by 3 u, z by 3.5 u: d = 2.5 + 3 |w|, at most 15 where |x| < 2.
template <>
struct quick<ops::gelu_tanh_backward> {
  static constexpr int factor_operand = 1;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    using core = num::body<ops::gelu_tanh>;
    const R d = static_cast<R>(x);
    const R square = d * d;
    constexpr double a = core::a.hi, b = core::b.hi;
    const R w = d * fused(square, static_cast<R>(b), static_cast<R>(a));
    const R z = d * fused(square, static_cast<R>(3 * b), static_cast<R>(a));
    const float units = std::is_same_v<R, double> ? 0 : fused(3.0f, static_cast<float>(fabs(w)), 10.0f);
    return quick_logistic_gradient<R>(static_cast<R>(g), w, z, fabsf(x) <= 3.0f ? 8 : 11, units,
                                      fabsf(x) <= (std::is_same_v<R, double> ? 9.5f : 8.0f));
  }
};
// g w r h, w = e^x, r = 1 / (w (w + 2) + 2), h = w + 2 + 4 x (1 + w) r: w d = 2^-47.8, r 2 d + 4.1 u, the second term of h 3 d + 6.1 u,
// which x < 0 makes negative: its magnitude is at most w + 2 + |h| <= 3 + |h|. h errs by (4 d + 7.1 u) 3 / |h| + 3 d + 7.1 u of itself,
// the product by 3 d + 6.1 u more. Of h/4 and its P: 9 d + 19 u, 2^-44.5 P.
// | w 2.5, r 7.1, the second term 12.6 of at most 3 + |h|, w + 2 3.5 of 3 + |h|, w r 10.6: in all 49 and 28 |h|.
template <>
struct quick<ops::mish_backward> {
  static constexpr int factor_operand = 1;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    const R w = quick_exp<R>(static_cast<R>(x)).close_value();
    const R r = reciprocal<R>(fused(w, w + R{2}, R{2}));
    const R h = fused(R{4} * static_cast<R>(x), (R{1} + w) * r, w + R{2});
    return within_cancelled<R>(R{4} * static_cast<R>(g) * (w * r), R{0.25} * h, 9, 60.0f / 4, fabsf(x) < 40.0f);
  }
};
// x < 0: E (G - v c), v = |x|, E = e^(-v^2/2); else 1 - that. E 2^-44.8; G <= 1/2 by 2^-41.2: h = G - v c with its roundings is off by
// 2^-42.2, in all below 2^-41.9 P. x > 0: E |h| <= 1/2 by 2^-45.8 and 2^-42.2, of a difference of 1/2 or more 2^-41, and 3 u: 2^12 ulps
// both.
// | G: its argument, 2.5 of 1, counts 2.3 times, the polynomial 1.2, its steps 2.2: 9.2. v c 0.5, v c <= G + |h|: h 9.7/2 and 1.5 |h|; E
// 2.5, two products, the test: 5 and 7 |h|. x > 0: E (5 + 4 |h|), |h| <= 1/2; a difference, a product, the test, of at most 1.13: 11.
__device__ inline float normal_tail(float v) { return polynomial(gelu_tail_short, quotient(v - 5.75f, v + 5.75f)); }
__device__ inline double normal_bell(double v) { return quick_bell(v * v); }
__device__ inline float normal_bell(float v) { return quick_exp<float>(-0.5f * (v * v)).value(); }
// e > 0, negative unless x is: an integer operation.
__device__ inline double with_sign_against(double e, float x) {
  return __hiloint2double(__double2hiint(e) | (~__float_as_int(x) & 0x80000000), __double2loint(e));
}
__device__ inline float with_sign_against(float e, float x) {
  return __int_as_float(__float_as_int(e) | (~__float_as_int(x) & 0x80000000));
}
template <class R>
__device__ inline approximation<R> quick_normal_gradient(R g, float x) {
  const R v = static_cast<R>(fabsf(x));
  const R h = fused(-v, static_cast<R>(num::normal_gate::c), normal_tail(v));
  const R e = normal_bell(v);
  const bool negative = __float_as_int(x) < 0;
  const R factor = fused(with_sign_against(e, x), h, negative ? R{0} : R{1});
  if constexpr (std::is_same_v<R, double>) {
    return {g * factor, eighths_of_power(12, negative ? log2_of_cancelled(h) : 0), fabsf(x) <= 10.0f};
  } else {
    const float error = negative ? e * fused(fabsf(h), 11 * 0x1p-24f, 6 * 0x1p-24f) : 13 * 0x1p-24f;
    return {g * (factor - error), g * (factor + error), fabsf(x) <= 9.0f};
  }
}
template <>
struct quick<ops::gelu_backward> {
  static constexpr int factor_operand = 1;
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    return quick_normal_gradient<R>(static_cast<R>(g), x);
  }
};

// Gated units and their gradients: products of 48 bits in place of g, or the functions that they multiply.
template <>
struct quick<ops::glu> {
  template <class R>
  __device__ static approximation<R> approximate(float a, float b) {
    const R s = reciprocal<R>(R{1} + quick_exp<R>(-static_cast<R>(b)).value());
    return within<R>(static_cast<R>(a) * s, exp_width, exp_units, fabsf(b) < greatest_exponent<R>);
  }
};
template <>
struct quick<ops::glu_backward_b> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float a, float b) {
    const R e = quick_exp<R>(-static_cast<R>(b)).value();
    const R s = reciprocal<R>(R{1} + e);
    const R product = static_cast<R>(g) * static_cast<R>(a) * s * (e * s);
    return within<R>(product, exp_width, exp_units + 6, fabsf(b) < greatest_gate<R>);
  }
};
template <>
struct quick<ops::swiglu> {
  template <class R>
  __device__ static approximation<R> approximate(float a, float b) {
    const R s = reciprocal<R>(R{1} + quick_exp<R>(-static_cast<R>(a)).value());
    const R product = static_cast<R>(a) * static_cast<R>(b) * s;
    return within<R>(product, exp_width, exp_units, fabsf(a) < greatest_gate<R>);
  }
};
template <>
struct quick<ops::swiglu_backward_a> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float a, float b) {
    const R d = static_cast<R>(a);
    const bool covered = fabsf(a) < greatest_gate<R>;
    return quick_logistic_gradient<R>(static_cast<R>(g) * static_cast<R>(b), d, d, 7, 8, covered);
  }
};
// | Phi: 9.2 and 2.5, a product; 1 - Phi, of 1/2 or more, a product, the test: 16.
template <>
struct quick<ops::geglu> {
  template <class R>
  __device__ static approximation<R> approximate(float a, float b) {
    if constexpr (std::is_same_v<R, double>) {
      return within<R>(quick_gelu(a) * b, 1u << 12, 0, fabsf(a) <= 10.0f);
    } else {
      const float v = fabsf(a);
      const float tail = normal_bell(v) * normal_tail(v);
      return within<R>(a * b * (a < 0 ? tail : 1.0f - tail), 0, 17, v <= 7.0f);
    }
  }
};
template <>
struct quick<ops::geglu_backward_a> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float a, float b) {
    approximation<R> r = quick_normal_gradient<R>(static_cast<R>(g) * static_cast<R>(b), a);
    if constexpr (std::is_same_v<R, float>) r.covered = r.covered & (fabsf(a) <= 7.0f);
    return r;
  }
};

// g cos x and -g sin x, circular.hpp's quick: 2^-41.1 where |r| >= 2^-24, of which |cos x|, |sin x| >= 2^-22 says enough; for
// |x| < 1 r is x in a sine.
// | x = k pi + r, k whole or half of an odd number, below 2^11: k pi_hi from x is exact where r < 1 and elsewhere rounded once, as the
// rest is; pi_hi + pi_lo is pi up to 2^-48, k times that 2^-25 of |sine| >= 2^-12. The polynomial 0.5, its steps 1.5, products 2.
template <int Quarter>
__device__ inline float quick_sine(float x) {
  constexpr float shifter = 0x1.8p23f, pi_hi = 0x1.921fb6p1f, pi_lo = -0x1.777a5cp-24f, reciprocal_pi = 0x1.45f306p-2f;
  const float t = Quarter == 0 ? fused(x, reciprocal_pi, shifter) : fused(x, reciprocal_pi, 0.5f) + shifter;
  const float k = Quarter == 0 ? t - shifter : (t - shifter) - 0.5f;
  const float r = fused(k, -pi_lo, fused(k, -pi_hi, x));
  const float z = r * r;
  const float s = r * fused(polynomial(sine_short, z), z, 1.0f);
  return __int_as_float(__float_as_int(s) ^ (__float_as_int(t) << 31));
}
template <>
struct quick<ops::sin_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    if constexpr (std::is_same_v<R, float>) {
      const float c = quick_sine<1>(x);
      return within<R>(g * c, 0, 8, (fabsf(x) <= 0x1p12f) & (fabsf(c) >= 0x1p-12f));
    } else {
      using core = num::circular_core<1>;
      const double c = core::quick(static_cast<double>(x));
      const bool far = (fabs(c) >= 0x1p-22) & (fabsf(x) <= core::quick_limit);
      return within<R>(static_cast<double>(g) * c, 1u << 13, 0, far);
    }
  }
};
template <>
struct quick<ops::cos_backward> {
  template <class R>
  __device__ static approximation<R> approximate(float g, float x) {
    if constexpr (std::is_same_v<R, float>) {
      const float s = quick_sine<0>(x);
      return within<R>(-g * s, 0, 8, (fabsf(x) <= 0x1p12f) & ((fabsf(s) >= 0x1p-12f) | (fabsf(x) < 1.0f)) & (x != 0));
    } else {
      using core = num::circular_core<0>;
      const double s = core::quick(static_cast<double>(x));
      const bool far = ((fabs(s) >= 0x1p-22) | (fabsf(x) < 1.0f)) & (fabsf(x) <= core::quick_limit) & (x != 0);
      return within<R>(-static_cast<double>(g) * s, 1u << 13, 0, far);
    }
  }
};

}  // namespace
}  // namespace repdl::cuda
