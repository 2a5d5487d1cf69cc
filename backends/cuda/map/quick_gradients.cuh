// Quick bodies of two and three numbers: pow, and gradients. As in quick.cuh the bits are those of the body proper, which
// decides what these leave open: what their tests cannot round, and operands that they do not cover.
//
// Bounds: u = 2^-53; an error of 2^-b of a number is at most 2^(53 - b) of its ulps. Errors for f16 and bf16, whose exponential
// has 2^-27.7 and whose quotients 2^-38, stand behind a bar. g is a factor, exactly; a product by it u. Zero is 0 only where g
// or a coefficient is, with the sign of the product.
#pragma once

#include "backends/cuda/map/quick.cuh"
#include "librepdl/ops/circular.hpp"
#include "librepdl/ops/gelu_backward.hpp"
#include "librepdl/ops/selu.hpp"

namespace repdl::cuda {
namespace {

// A product with an exponential, whose own error is 2^-44.8 | 2^-27.7; a power's is 2^-42.5 | 2^-27.2.
template <class T>
constexpr std::uint32_t exp_width = 1u << (sizeof(T) == 2 ? 26 : 10);
template <class T>
constexpr std::uint32_t power_width = 1u << (sizeof(T) == 2 ? 26 : 11);

// The least power of two that is at least 1 and 1/|h|, up to 2^16.
__device__ inline std::uint32_t cancellation(double h) {
  const int k = 1023 - (__double2hiint(h) >> 20 & 0x7ff);
  return 1u << (k < 0 ? 0 : k > 16 ? 16 : k);
}

// e^(y ln |x|). ln |x|: with one coefficient more the polynomial is 2^-50.4, in all below 2^-49.4 | 2^-36; y ln |x|, at most
// 86: 2^-42.9 | 2^-29.5; with the exponential below 2^-42.5 | 2^-27.2. Ties are within the test's reach, powers that are
// numbers are not. x < 0 and a whole y: with the sign of (-1)^y; numbers of 2^24 and more are even.
template <class T>
__device__ inline double quick_power_log(float x) {
  const quick_log log(fabsf(x));
  return num::fma(log.e, ln2, sizeof(T) == 2 ? log.rest(pow_log_rest_short) : log.rest(pow_log_rest));
}
template <>
struct quick<ops::pow> {
  template <class T>
  __device__ static approximation approximate(float x, float y) {
    const double w = static_cast<double>(y) * quick_power_log<T>(x);
    const double power = quick_exp<T>(w).value();
    const bool whole = truncf(y) == y, even = truncf(0.5f * y) == 0.5f * y;
    const bool covered = (x > 0 || (x < 0 && whole)) && fabsf(x) < __int_as_float(0x7f800000) && fabs(w) < 86.0;
    return {x < 0 && !even ? -power : power, power_width<T>, covered};
  }
};
// g y x^(y-1) for x > 0: y - 1 within u, times ln x, at most 80: 2^-46; the rest as pow's.
template <>
struct quick<ops::pow_backward_x> {
  template <class T>
  __device__ static approximation approximate(float g, float x, float y) {
    const double w = (static_cast<double>(y) - 1.0) * quick_power_log<T>(x);
    const bool covered = x > 0 && x < __int_as_float(0x7f800000) && y != 0 && fabs(w) < 80.0;
    return {static_cast<double>(g) * static_cast<double>(y) * quick_exp<T>(w).value(), power_width<T>, covered};
  }
};
// g x^y ln x for x > 0.
template <>
struct quick<ops::pow_backward_y> {
  template <class T>
  __device__ static approximation approximate(float g, float x, float y) {
    const double log = quick_power_log<T>(x);
    const double w = static_cast<double>(y) * log;
    const bool covered = x > 0 && x < __int_as_float(0x7f800000) && x != 1 && fabs(w) < 80.0;
    return {static_cast<double>(g) * log * quick_exp<T>(w).value(), power_width<T>, covered};
  }
};

// By a result y; what they multiply is exact, or off by u: at most 3 u. Infinities and NaN are left to the body.
struct quick_gradient_by_result {
  static constexpr bool narrow = true;
};
template <>
struct quick<ops::tanh_backward> : quick_gradient_by_result {
  template <class T>
  __device__ static approximation approximate(float g, float y) {
    const double d = static_cast<double>(y);
    return {static_cast<double>(g) * num::fma(-d, d, 1.0), 4, true};
  }
};
template <>
struct quick<ops::sigmoid_backward> : quick_gradient_by_result {
  template <class T>
  __device__ static approximation approximate(float g, float y) {
    const double d = static_cast<double>(y);
    return {static_cast<double>(g) * d * (1.0 - d), 4, true};
  }
};
// g y ln 2: g y is exact.
template <>
struct quick<ops::exp2_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float y) {
    return {static_cast<double>(g) * static_cast<double>(y) * ln2, 4, true};
  }
};
// g / (1 + |x|)^2: a sum, a reciprocal of 1.1 u | 2^-38, two products.
template <>
struct quick<ops::softsign_backward> {
  static constexpr bool narrow = true;
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    const double r = reciprocal<T>(1.0 + static_cast<double>(fabsf(x)));
    return {static_cast<double>(g) * r * r, sizeof(T) == 2 ? 1u << 16 : 8u, fabsf(x) < __int_as_float(0x7f800000)};
  }
};
// Quotients: a reciprocal of 1.1 u | 2^-38, which keeps the sign of zeros; a denominator within u, a numerator within u, its
// product, a constant within u / 2, its product.
template <class T>
__device__ inline approximation quick_quotient(double a, double d, double factor = 1.0) {
  return {reciprocal<T>(d) * a * factor, sizeof(T) == 2 ? 1u << 16 : 8u, d != 0 && fabs(d) < 0x1p300};
}
template <>
struct quick<ops::log2_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    return quick_quotient<T>(g, x, log2e);
  }
};
template <>
struct quick<ops::log10_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    return quick_quotient<T>(g, x, log10e);
  }
};
template <>
struct quick<ops::log1p_backward> {
  static constexpr bool narrow = true;
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    return quick_quotient<T>(g, 1.0 + static_cast<double>(x));
  }
};
// g a / (a^2 + b^2): the squares are exact.
template <class T>
__device__ inline approximation quick_inverse_gradient(float g, float a, float b) {
  const double d = num::fma(static_cast<double>(b), static_cast<double>(b), static_cast<double>(a) * a);
  approximation r = quick_quotient<T>(static_cast<double>(g) * a, d);
  r.covered = r.covered && d > 0x1p-300;
  return r;
}
template <>
struct quick<ops::atan2_backward_y> {
  static constexpr bool narrow = true;
  template <class T>
  __device__ static approximation approximate(float g, float y, float x) {
    return quick_inverse_gradient<T>(g, x, y);
  }
};
template <>
struct quick<ops::atan2_backward_x> {
  static constexpr bool narrow = true;
  template <class T>
  __device__ static approximation approximate(float g, float y, float x) {
    return quick_inverse_gradient<T>(-g, y, x);
  }
};
// g / (x (1 - x)) within (0, 1) and the margin, if there is one: comparisons with NaN are false.
template <>
struct quick<ops::logit_backward> {
  static constexpr bool takes_options = true;
  template <class T>
  __device__ static approximation approximate(float g, float x, const num::parameters& p) {
    const double v = static_cast<double>(x);
    const double rest = 1.0 - v;
    approximation r = quick_quotient<T>(g, v * rest);
    const bool beyond = v < p.value[0] || rest <= p.value[0] * (1 + 0x1p-50);
    r.covered = x > 0 && x < 1 && !beyond;
    return r;
  }
};

// trunc(x / y) and floor(x / y) times -g, where the quotient is below 2^27 and further than its error, 2^-24, from an integer: then the
// integer is right, its product with g exact, and ties are ties.
template <bool Floor>
struct quick_whole_division_gradient {
  template <class T>
  __device__ static approximation approximate(float g, float x, float y) {
    const double q = quotient(static_cast<double>(x), static_cast<double>(y));
    const double distance = fabs(q - rint(q));
    const double whole = Floor ? floor(q) : trunc(q);
    return {-static_cast<double>(g) * whole, 0, distance > 0x1p-24 && fabs(q) < 0x1p27 && y != 0};
  }
};
template <>
struct quick<ops::fmod_backward_y> : quick_whole_division_gradient<false> {};
template <>
struct quick<ops::remainder_backward_y> : quick_whole_division_gradient<true> {};

// g ln y: 2^-42.9.
template <>
struct quick<ops::xlogy_backward_x> {
  template <class T>
  __device__ static approximation approximate(float g, float, float y) {
    return {static_cast<double>(g) * quick_log(fabsf(y)).value(), 1u << 11, y > 0 && y < __int_as_float(0x7f800000)};
  }
};

// A factor e^w, c = e^w up to |w| = 80; w may err by 80 u of itself, 2^-46.7 + 2^-46.3.
// Reciprocals of 1 + e^w count the exponential once at most.
template <>
struct quick<ops::log_sigmoid_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    const double r = reciprocal<T>(1.0 + quick_exp<T>(x).value());
    return {static_cast<double>(g) * r, exp_width<T>, fabsf(x) < 80.0f};
  }
};
template <>
struct quick<ops::logaddexp_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x, float y) {
    const double d = static_cast<double>(y) - static_cast<double>(x);
    const double r = reciprocal<T>(1.0 + quick_exp<T>(d).value());
    return {static_cast<double>(g) * r, exp_width<T>, fabs(d) < 80.0};
  }
};
// 2^d = 2^k e^((d - k) ln 2). Where d is an integer the quotient may be a midpoint, which the test leaves open.
template <>
struct quick<ops::logaddexp2_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x, float y) {
    const double d = static_cast<double>(y) - static_cast<double>(x);
    const double r = reciprocal<T>(1.0 + quick_exp<T>::of_power(d).value());
    return {static_cast<double>(g) * r, exp_width<T>, fabs(d) < 100.0};
  }
};
template <>
struct quick<ops::erf_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    const double square = static_cast<double>(x) * static_cast<double>(x);
    return {static_cast<double>(g) * 0x1.20dd750429b6dp0 * quick_exp<T>(-square).value(), exp_width<T>, square < 80.0};
  }
};
template <>
struct quick<ops::erfc_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    return quick<ops::erf_backward>::approximate<T>(-g, x);
  }
};
template <>
struct quick<ops::selu_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    using forward = quick<ops::selu>;
    const double e = quick_exp<T>(fmaxf(fminf(x, 0.0f), -80.0f)).value();
    return {static_cast<double>(g) * (x > 0 ? forward::scale : forward::product * e), exp_width<T>, x > -80.0f};
  }
};
template <>
struct quick<ops::elu_backward> {
  static constexpr bool takes_options = true;
  template <class T>
  __device__ static approximation approximate(float g, float x, const num::parameters& p) {
    const double w = p.value[2] * static_cast<double>(x);
    const bool above = x > 0;
    const double scaled = static_cast<double>(g) * p.value[1];
    const double below = scaled * (p.value[0] * p.value[2]) * quick_exp<T>(above ? 0.0 : w).value();
    return {above ? scaled : below, exp_width<T>, above || fabs(w) < 80.0};
  }
};
template <>
struct quick<ops::celu_backward> {
  static constexpr bool takes_options = true;
  template <class T>
  __device__ static approximation approximate(float g, float x, const num::parameters& p) {
    const double w = x < 0 ? static_cast<double>(x) * reciprocal(p.value[0]) : 0.0;
    const double e = quick_exp<T>(w).value();
    return {static_cast<double>(g) * e, exp_width<T>, x == x && fabs(w) < 80.0};
  }
};
// b x > threshold ? g : g / (1 + e^(-b x)); b x is rounded, the threshold itself left to the body.
template <>
struct quick<ops::softplus_backward> {
  static constexpr bool takes_options = true;
  template <class T>
  __device__ static approximation approximate(float g, float x, const num::parameters& p) {
    const double w = p.value[0] * static_cast<double>(x);
    const bool passes = w > p.value[1];
    const double r = reciprocal<T>(1.0 + quick_exp<T>(-w).value());
    return {static_cast<double>(g) * (passes ? 1.0 : r), exp_width<T>, w != p.value[1] && (passes || fabs(w) < 80.0)};
  }
};

// g s h, h = 1 + c z, s = 1 / (1 + e), c = e s: e counts e/(1 + e) of its error in s, and 1/(1 + e) in c. With 2^-43.6 of e
// (gelu_tanh's w errs by 2^-44.7) h errs by 2^-43.5 |c z| <= 2^-43.5 (1 + |h|); with s in all 2^-43.5 (2 + 1/|h|).
__device__ inline approximation quick_logistic_gradient(double g, double w, double z, bool covered) {
  const double e = quick_exp<>(-w).value();
  const double s = reciprocal(1.0 + e);
  const double h = num::fma(e * s, z, 1.0);
  return {g * s * h, cancellation(h) << 12, covered};
}
template <>
struct quick<ops::silu_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    return quick_logistic_gradient(g, x, x, fabsf(x) < 80.0f);
  }
};
template <>
struct quick<ops::gelu_tanh_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    using core = num::body<ops::gelu_tanh>;
    const double d = static_cast<double>(x);
    const double square = d * d;
    const double w = d * num::fma(square, core::b.hi, core::a.hi);
    return quick_logistic_gradient(g, w, d * num::fma(square, 3 * core::b.hi, core::a.hi), fabsf(x) <= 9.5f);
  }
};
// g w r h, w = e^x, r = 1 / (w (w + 2) + 2), h = w + 2 + 4 x (1 + w) r: w 2^-44.8, r 2^-43.7, the second term of h 2^-43.2,
// which x < 0 makes negative: its magnitude is at most w + 2 + |h| <= 3 + |h|. h 2^-43.2 (1 + 6/|h|); in all 2^-43.2 (2 + 6/|h|).
template <>
struct quick<ops::mish_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    const double w = quick_exp<>(x).value();
    const double r = reciprocal(num::fma(w, w + 2.0, 2.0));
    const double h = num::fma(4.0 * static_cast<double>(x), (1.0 + w) * r, w + 2.0);
    return {static_cast<double>(g) * (w * r * h), cancellation(0.25 * h) << 12, fabsf(x) < 40.0f};
  }
};
// x < 0: E (G - v c), v = |x|, E = e^(-v^2/2); else 1 - that. G 2^-43.2, E 2^-44.8 and two steps; G <= 1/2, so that G + v c <=
// 1 + |G - v c|: 2^-43 (2 + 1/|h|) of h = G - v c. x > 0: 2^-43 E (G + v c), E (G + v c) <= 1/2, of 1/2 or more.
__device__ inline approximation quick_normal_gradient(double g, float x) {
  const double v = static_cast<double>(fabsf(x));
  const double tail = polynomial(gelu_tail, quotient(v - 5.75, v + 5.75));
  const double h = num::fma(-v, num::normal_gate::c, tail);
  const double below = quick_exp<>(-0.5 * (v * v)).value() * h;
  return {g * (x < 0 ? below : 1.0 - below), x < 0 ? cancellation(h) << 12 : 1u << 11, fabsf(x) <= 12.5f};
}
template <>
struct quick<ops::gelu_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    return quick_normal_gradient(g, x);
  }
};

// Gated units and their gradients: products of 48 bits in place of g, or the functions that they multiply.
template <>
struct quick<ops::glu> {
  template <class T>
  __device__ static approximation approximate(float a, float b) {
    const double s = reciprocal<T>(1.0 + quick_exp<T>(-static_cast<double>(b)).value());
    return {static_cast<double>(a) * s, exp_width<T>, fabsf(b) < 80.0f};
  }
};
template <>
struct quick<ops::glu_backward_b> {
  template <class T>
  __device__ static approximation approximate(float g, float a, float b) {
    const double e = quick_exp<T>(-static_cast<double>(b)).value();
    const double s = reciprocal<T>(1.0 + e);
    return {static_cast<double>(g) * a * s * (e * s), exp_width<T>, fabsf(b) < 80.0f};
  }
};
template <>
struct quick<ops::swiglu> {
  template <class T>
  __device__ static approximation approximate(float a, float b) {
    const double s = reciprocal<T>(1.0 + quick_exp<T>(-static_cast<double>(a)).value());
    return {static_cast<double>(a) * b * s, exp_width<T>, fabsf(a) < 80.0f};
  }
};
template <>
struct quick<ops::swiglu_backward_a> {
  template <class T>
  __device__ static approximation approximate(float g, float a, float b) {
    return quick_logistic_gradient(static_cast<double>(g) * b, a, a, fabsf(a) < 80.0f);
  }
};
template <>
struct quick<ops::geglu> {
  template <class T>
  __device__ static approximation approximate(float a, float b) {
    return {quick<ops::gelu>::eval(a) * b, 2u << quick<ops::gelu>::log2_ulps, fabsf(a) <= 12.5f};
  }
};
template <>
struct quick<ops::geglu_backward_a> {
  template <class T>
  __device__ static approximation approximate(float g, float a, float b) {
    return quick_normal_gradient(static_cast<double>(g) * b, a);
  }
};

// g cos x and -g sin x, circular.hpp's quick: 2^-41.1 where |r| >= 2^-24, of which |cos x|, |sin x| >= 2^-22 says enough; for
// |x| < 1 r is x in a sine.
template <>
struct quick<ops::sin_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    using core = num::circular_core<1>;
    const double c = core::quick(static_cast<double>(x));
    return {static_cast<double>(g) * c, 1u << 13, fabsf(x) <= core::quick_limit && fabs(c) >= 0x1p-22};
  }
};
template <>
struct quick<ops::cos_backward> {
  template <class T>
  __device__ static approximation approximate(float g, float x) {
    using core = num::circular_core<0>;
    const double s = core::quick(static_cast<double>(x));
    const bool far = fabs(s) >= 0x1p-22 || fabsf(x) < 1.0f;
    return {-static_cast<double>(g) * s, 1u << 13, fabsf(x) <= core::quick_limit && far && x != 0};
  }
};

}  // namespace
}  // namespace repdl::cuda
