// Quick bodies of the gradients of losses, as in map/quick_gradients.cuh: of f16 and bf16 in binary32, of f32 those that are long. What
// they leave undecided is decided by the first tier of librepdl/ops/losses/losses*.hpp, or its last one.
//
// Bounds: u = 2^-53 | 2^-24; a constant of the call within u / 2, a conversion of it | another u / 2, each product u. Where a result
// is below 2^-100, or 2^100 and more, it is left undecided: what comes before it is then a normal number, or 0. A zero has the sign of
// the product that it is. In binary32 c is 0 or in [2^-60, 2^60] (loss_each.cuh).
#pragma once

#include "backends/cuda/map/quick_gradients.cuh"
#include "librepdl/ops/losses/losses_entropy.hpp"

namespace repdl::cuda {
namespace {

// What all elements of a call have in common, beside the constants of the first tier.
struct quick_loss_constants {
  double per_count, per_divisor;  // 1 / n, 1 / (c n)
  bool alone;                     // n = 1
};

template <class Op>
struct quick_loss;
template <class Op, class T>
concept has_quick_loss = requires {
  sizeof(quick_loss<Op>);
}
&&(sizeof(T) == 2 || (sizeof(T) == 4 && quick_loss<Op>::is_long));

// x - t; an exact zero is +0.
template <class R>
__device__ inline R quick_distance(float x, float t) {
  return (static_cast<R>(x) - static_cast<R>(t)) + R{0};
}
// Whether d = x - t and p = g d are so exactly: then products that are midpoints, which are frequent, are rounded at once.
template <class R>
__device__ inline bool is_exact_distance(float x, float t, R d) {
  const R r = d - static_cast<R>(x);  // two_sum (num/eft.hpp)
  return (static_cast<R>(x) - (d - r)) - (static_cast<R>(t) + r) == 0;
}
template <class R>
__device__ inline bool is_exact_product(float g, R d, R p) {
  return fused(static_cast<R>(g), d, -p) == 0;
}
template <class R>
__device__ inline approximation<R> in_range(R value, bool zero, std::uint32_t width, float units, bool covered) {
  const bool normal = (fabs(value) >= R(0x1p-100)) & (fabs(value) < R(0x1p100));
  return within<R>(value, width, units, covered & (normal | (zero & (value == 0))));
}

// 2 g d / n: d, the product, / n.
template <>
struct quick_loss<ops::mse_loss_backward> {
  static constexpr bool is_long = false;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants&, const quick_loss_constants& q, float g,
                                                 float x, float t) {
    const R d = quick_distance<R>(x, t);
    const R product = static_cast<R>(g) * d;
    const R value = product * static_cast<R>(2 * q.per_count);
    const bool exact = q.alone & is_exact_distance(x, t, d) & is_exact_product(g, d, product);
    return in_range<R>(value, (g == 0) | (d == 0), exact ? 0 : 8, exact ? 0.0f : 6.0f, true);
  }
};
// The sign of x - t is exact; so is g where n = 1.
template <>
struct quick_loss<ops::l1_loss_backward> {
  static constexpr bool is_long = false;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants&, const quick_loss_constants& q, float g,
                                                 float x, float t) {
    const R line = static_cast<R>(g) * static_cast<R>(q.per_count);
    const R value = x > t ? line : x < t ? -line : R{0};
    const bool ordered = (x >= t) | (x <= t);
    return in_range<R>(value, (x == t) | (g == 0), q.alone ? 0 : 4, q.alone ? 0.0f : 4.0f, ordered);
  }
};
// |d| next to c is left undecided.
template <class R>
__device__ inline bool is_apart(R d, double c) {
  constexpr double margin = std::is_same_v<R, double> ? 0x1p-50 : 0x1p-21;
  const R limit = static_cast<R>(c);
  return fabs(fabs(d) - limit) > limit * static_cast<R>(margin);
}
template <class R>
__device__ inline R signed_like(R v, R d) {
  return d < 0 ? -v : v;
}
// d, two products | one conversion more.
template <>
struct quick_loss<ops::smooth_l1_loss_backward> {
  static constexpr bool is_long = true;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants& k, const quick_loss_constants& q, float g,
                                                 float x, float t) {
    const R d = quick_distance<R>(x, t);
    const bool quadratic = fabs(d) < static_cast<R>(k.c);
    const R product = static_cast<R>(g) * d;
    const R slope = product * static_cast<R>(quadratic ? q.per_divisor : 0.0);
    const R line = signed_like(static_cast<R>(g) * static_cast<R>(q.per_count), d);
    const R value = quadratic ? slope : line;
    const bool exact_slope = (k.c == 1) & is_exact_distance(x, t, d) & is_exact_product(g, d, product);
    const bool exact = q.alone & (!quadratic | exact_slope);
    return in_range<R>(value, (g == 0) | (quadratic & (d == 0)), exact ? 0 : 8, exact ? 0.0f : 6.0f, is_apart(d, k.c));
  }
};
template <>
struct quick_loss<ops::huber_loss_backward> {
  static constexpr bool is_long = true;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants& k, const quick_loss_constants& q, float g,
                                                 float x, float t) {
    const R d = quick_distance<R>(x, t);
    const R c = static_cast<R>(k.c);
    const bool quadratic = fabs(d) < c;
    const R slope = quadratic ? d : signed_like(c, d);
    const R product = static_cast<R>(g) * slope;
    const R value = product * static_cast<R>(q.per_count);
    const bool exact_slope = quadratic ? is_exact_distance(x, t, d) : static_cast<double>(c) == k.c;
    const bool exact = q.alone & exact_slope & is_exact_product(g, slope, product);
    return in_range<R>(value, (g == 0) | (d == 0), exact ? 0 : 8, exact ? 0.0f : 7.0f, is_apart(d, k.c));
  }
};
// -g t / (1 + e^z) / n, z = t x | within u |z|: as log_sigmoid_backward, one product and / n more.
template <>
struct quick_loss<ops::soft_margin_loss_backward> {
  static constexpr bool is_long = true;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants&, const quick_loss_constants& q, float g,
                                                 float x, float t) {
    const R z = static_cast<R>(t) * static_cast<R>(x);
    const R r = reciprocal<R>(R{1} + quick_exp<R>(z).value());
    const R value = -(static_cast<R>(g) * static_cast<R>(t)) * r * static_cast<R>(q.per_count);
    const bool normal = (fabs(value) >= R(0x1p-100)) & (fabs(value) < R(0x1p100));
    return within_power<R>(value, exp_width, z, 1, exp_units + 5, normal & (fabs(z) < greatest_exponent<R>));
  }
};
// g w h / (1 + e) / n, e = e^-|x|, h = x >= 0 ? (1 - t) - b e : (1 - t) e - b, b = q t, M the sum of the magnitudes of its terms.
//   h: 1 - t 1, e 2^8.2, a product and the sum: 2^8.3 M; 1 + e 2^8.2, its reciprocal 2, the products by g w and 1 / n: in all 2^9.4
//   M / |h|
// | b 1, e 2.5, its product 1, 1 - t 1 and the sum: 6 M; 1 + e 3.5, the reciprocal 2, g w and products 5, two ends: 13 |h|
template <>
struct quick_loss<ops::binary_cross_entropy_with_logits_backward> {
  static constexpr bool is_long = true;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants&, const quick_loss_constants& q, float g,
                                                 float x, float t, float w, float pos_weight) {
    const R e = quick_exp<R>(static_cast<R>(-fabsf(x))).value();
    const R a = R{1} - static_cast<R>(t), b = static_cast<R>(pos_weight) * static_cast<R>(t);
    const bool right = x >= 0;
    const R head = right ? a : -b, tail = (right ? -b : a) * e;
    const R h = head + tail, m = fabs(head) + fabs(tail);
    const R factor = static_cast<R>(g) * static_cast<R>(w) * reciprocal<R>(R{1} + e) * static_cast<R>(q.per_count);
    const R value = factor * h;
    const bool normal = (fabs(value) >= R(0x1p-100)) & (fabs(value) < R(0x1p100));
    const bool covered = normal & (fabsf(x) < greatest_gate<R>);
    if constexpr (std::is_same_v<R, double>) {
      const int e = (__double2hiint(h) >> 20 & 0x7ff) - (__double2hiint(m) >> 20) - 1;  // 2^e <= |h| / M
      return {value, eighths_of_power(10, min(e, 0)), covered};
    } else {
      const float error = fused(m, 6 * 0x1p-24f, fabsf(h) * (13 * 0x1p-24f));
      return {factor * (h - error), factor * (h + error), covered};
    }
  }
};
// g w (x - t) / (x (1 - x) n), or times 10^12: d, g w, their product, 1 - x, its product, the reciprocal 2, two products | 10^12, as
// 1 / n.
template <>
struct quick_loss<ops::binary_cross_entropy_backward> {
  static constexpr bool is_long = false;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants&, const quick_loss_constants& q, float g,
                                                 float x, float t, float w) {
    const R v = static_cast<R>(x);
    const R d = quick_distance<R>(x, t);
    const bool steep = num::loss_body<ops::binary_cross_entropy_backward>::is_steep(x);
    const R per = reciprocal<R>(steep ? v * (R{1} - v) : R{1});
    const R scale = static_cast<R>(q.per_count) * (steep ? R{1} : static_cast<R>(1e12));
    const R value = static_cast<R>(g) * static_cast<R>(w) * d * per * scale;
    return in_range<R>(value, (g == 0) | (w == 0) | (d == 0), 16, 12, true);
  }
};
// -g t / n, for n = 1 exactly, or -g e^t / n.
template <>
struct quick_loss<ops::kl_div_backward> {
  static constexpr bool is_long = false;
  template <class R>
  __device__ static approximation<R> approximate(const ops::loss_constants& k, const quick_loss_constants& q, float g,
                                                 float, float t) {
    const R c = -static_cast<R>(g) * static_cast<R>(q.per_count);
    if (k.c == 0)
      return in_range<R>(c * static_cast<R>(t), (g == 0) | (t == 0), q.alone ? 0 : 8, q.alone ? 0 : 5, true);
    const R value = c * quick_exp<R>(static_cast<R>(t)).value();
    return in_range<R>(value, false, exp_width, exp_units, fabsf(t) < greatest_gate<R>);
  }
};

}  // namespace
}  // namespace repdl::cuda
