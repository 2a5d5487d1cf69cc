// Quick bodies of functions with options or of two numbers: remainders and rounded quotients, elu, celu, softplus, logit, and
// logarithms of two numbers. As in quick.cuh the bits are those of the body proper, which decides what these leave undecided.
//
// Those with an exponential or a logarithm are computed in binary64 for f16 and bf16, too. Bounds: quick_gradients.cuh.
#pragma once

#include "backends/cuda/map/quick_gradients.cuh"
#include "librepdl/ops/elementwise/elu.hpp"
#include "librepdl/ops/elementwise/logaddexp2.hpp"
#include "librepdl/ops/elementwise/logarithmic.hpp"
#include "librepdl/ops/elementwise/remainder.hpp"

namespace repdl::cuda {
namespace {

struct quick_in_binary64 {
  static constexpr bool in_binary64 = true;
};

// x mod y, of the sign of x; of the sign of y: y less that where the signs differ.
template <>
struct quick<ops::fmod> {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    const whole_division<R> d(x, y);
    return within<R>(copysign(d.rest, static_cast<R>(x)), 0, 0, d.covered);
  }
};
// |y| - rest is exact, or off by u.
template <>
struct quick<ops::remainder> {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    const whole_division<R> d(x, y);
    const R size = static_cast<R>(fabsf(y));
    const R other = size - d.rest;
    const bool differ = d.negative & (d.rest != 0);
    const bool exact = !differ | ((size - other) == d.rest);
    const R value = copysign(differ ? other : d.rest, static_cast<R>(y));
    return within<R>(value, exact ? 0 : 1, exact ? 0.0f : 2.0f, d.covered);
  }
};
template <bool Floor>
struct quick_whole_division {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    const whole_division<R> d(x, y);
    const R whole = d.whole + (Floor & d.negative & (d.rest != 0) ? R{1} : R{0});
    return within<R>(d.negative ? -whole : whole, 0, 0, d.covered);
  }
};
template <>
struct quick<ops::div_trunc> : quick_whole_division<false> {};
template <>
struct quick<ops::div_floor> : quick_whole_division<true> {};

// c (e^w - 1), w <= 0 off by 3 u of itself, which counts once at most: with minus_one's 2^-41.6 and products below 2^-41.5. From -80
// down it is what it is at -80; w = 0: c w, for the zero's sign.
__device__ inline double quick_growth(double w) {
  const double e = quick_exp<>(fmax(w, -80.0)).minus_one();
  return w == 0 ? w : e;
}
// scale x has 77 bits: rounded to odd, since 1.05 x, say, is next to a midpoint for one x in twenty.
template <>
struct quick<ops::elu> : quick_in_binary64 {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float x, const num::parameters& p) {
    const double d = static_cast<double>(x), scale = p.value[1], rate = p.value[2];
    const double c = p.value[0] * scale;
    const bool moderate = (fabs(c) > 0x1p-100) & (fabs(c) < 0x1p100) & (fabs(scale) > 0x1p-100) &
                          (fabs(scale) < 0x1p100) & (rate > 0x1p-100) & (rate < 0x1p100);
    const num::dd line = num::two_prod(scale, d);
    const double value = x > 0 ? num::round_to_odd(line.hi, line.lo) : c * quick_growth(fmin(rate * d, 0.0));
    return within<R>(value, x > 0 ? 0 : 1u << 12, 0, moderate & (x == x));
  }
};
template <>
struct quick<ops::celu> : quick_in_binary64 {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float x, const num::parameters& p) {
    const double d = static_cast<double>(x), alpha = p.value[0];
    const bool moderate = (alpha > 0x1p-100) & (alpha < 0x1p100);
    const double value = x > 0 ? d : alpha * quick_growth(fmin(d * reciprocal<double>(alpha), 0.0));
    return within<R>(value, 1u << 12, 0, moderate & (x == x));
  }
};
// (max(w, 0) + ln(1 + e^-|w|)) / b, w = b x: w errs by u |w|, which counts as much at most, 2^-46.7; the exponential and the logarithm
// 2^-42.6, of a sum of numbers that are not negative; in all below 2^-42.3. What is next to the threshold is left to the body.
template <>
struct quick<ops::softplus> : quick_in_binary64 {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float x, const num::parameters& p) {
    const double d = static_cast<double>(x), b = p.value[0];
    const double w = b * d;
    const double threshold = fmax(fmin(p.value[1], 0x1p100), -0x1p100);
    const double log = quick_log<>::of_one_plus(quick_exp<>(-fmin(fabs(w), 80.0)).value()).value();
    const double value = (fmax(w, 0.0) + log) * reciprocal<double>(b);
    const bool passes = w > threshold;
    const bool moderate =
        (fabs(b) > 0x1p-100) & (fabs(b) < 0x1p100) & (fabs(w - threshold) > fabs(threshold) * 0x1p-50);
    return within<R>(passes ? d : value, 1u << 11, 0, moderate & (x == x) & (passes | (fabs(w) < 80)));
  }
};
// ln(z / (1 - z)), z = x cut to the margin eps, which 1 - eps has with the other sign; where that is next to 0, as ln(1 + f), f = (2 z -
// 1) / (1 - z), whose subtractions are exact or off by u. The comparisons of the margin are exact.
template <>
struct quick<ops::logit> : quick_in_binary64 {
  static constexpr bool takes_options = true;
  template <class R>
  __device__ static approximation<R> approximate(float x, const num::parameters& p) {
    const double d = static_cast<double>(x), eps = p.value[0];
    const bool above = 1.0 - d < eps;
    const double z = above | (d < eps) ? eps : d;
    const double r = reciprocal<double>(1.0 - z);
    quick_log<> log(z * r);
    log.f = log.e == 0 ? (2.0 * z - 1.0) * r : log.f;
    const double value = log.value();
    return within<R>(above ? -value : value, 1u << 11, 0, (z > 0x1p-1000) & (z < 1) & (z != 0.5));
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float x, const num::parameters& p) {
    return ((x < 0) | (x > 1)) & (p.value[0] != p.value[0]);
  }
};

// x ln y; +0 where x is 0.
template <>
struct quick<ops::xlogy> : quick_in_binary64 {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    const double value = static_cast<double>(x) * quick_log<>(static_cast<double>(fabsf(y))).value();
    const bool zero = (x == 0) & (y == y);
    return within<R>(zero ? 0.0 : value, 1u << 11, 0, zero | ((y > 0) & (y < infinite) & (y != 1)));
  }
  static constexpr bool may_be_invalid = true;
  template <class R>
  __device__ static bool invalid(float x, float y) {
    return (y < 0) & ((x < 0) | (x > 0));
  }
};
// m + ln(1 + e^-d), m the larger one, d the distance, which errs by u d: the second term, at most 0.7, errs by 2^-42.3 of itself.
template <>
struct quick<ops::logaddexp> : quick_in_binary64 {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    const double d = fabs(static_cast<double>(x) - static_cast<double>(y));
    const double rest = quick_log<>::of_one_plus(quick_exp<>(-fmin(d, 80.0)).value()).value();
    return within_cancelled<R>(1.0, static_cast<double>(fmaxf(x, y)) + rest, 11, 0, d < 80);
  }
};
// The second term is at most 1.
template <>
struct quick<ops::logaddexp2> : quick_in_binary64 {
  template <class R>
  __device__ static approximation<R> approximate(float x, float y) {
    const double d = fabs(static_cast<double>(x) - static_cast<double>(y));
    const quick_log<> log = quick_log<>::of_one_plus(quick_exp<>::of_power(-fmin(d, 80.0)).value());
    const double rest = num::fma(log.rest(), log2e, log.e);
    return within_cancelled<R>(1.0, static_cast<double>(fmaxf(x, y)) + rest, 11, 0, d < 80);
  }
};

}  // namespace
}  // namespace repdl::cuda
