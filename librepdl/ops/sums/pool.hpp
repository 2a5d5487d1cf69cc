// Pooling windows: which pixels a window holds, which windows hold a pixel, and one output element at a time, for every
// geometry. Kernels with faster loops come here for the elements that they cannot decide.
//
//     max_pool2d            the greatest x in the window in the contract's order (order.hpp); absent taps do not count;
//                           with_indices: and where in the volume, row-major, the first of them is
//     max_pool2d_backward   the sum of g over the windows whose winner (the first greatest, row-major) is the pixel
//     avg_pool2d            RN(sum of the present x / count)
//     avg_pool2d_backward   RN(sum of g_o / count_o over the windows o that hold the pixel)
//
// Sums: first bounded_sum, whose zero error decides ties, or of binary64 twice_tracked_sum; what that does not decide is summed in
// integers, which always decide.
//
// The terms of avg_pool2d_backward have different denominators. Where `common`, their least common multiple, is below
// 2^29, S = (sum of g_o (common / count_o)) / common: the products are exact in binary64, of binary64 as two numbers (two_prod: g_o is a
// multiple of 2^-1074, and so are the product and its rounding error; where either is not finite, neither is the sum's error), and in
// integers the sum is below 2^(128 + 29 + 62) in units of 2^-149, 369 bits with the sign, of binary64 below 2^(1024 + 29 + 62) in units
// of 2^-1074, 2190 bits. Else `common` is 0: binary64 takes fl(g_o / count_o) as the term, with an error of at most 2u|.| and a little
// (count_o < 2^62 is rounded as well), and the integers are those of quotient_sum.hpp. Of binary64 (add_quotient_to) the term is
// q + d, q = fl(g / n), d = fl((g - q n) / n), where n <= 2^53 and g is where nothing underflows: the remainder is exact, at most
// (1 + u) u |q| n, and d is off by u of itself, below 2^-105 |q|.
// Checked by tests/convolution/pool_test.cpp against exact rationals.
// Of two axes there is one slice, and one tap in depth.
#pragma once

#include "librepdl/num/certify.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/order.hpp"
#include "librepdl/num/quotient_sum.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// One axis: output positions against image positions, position y and tap r meeting at y * stride + r * dilation -
// before; if adaptive at floor(y image / pooled) + r, up to and without ceil((y + 1) image / pooled). Index: std::int64_t, or
// std::int32_t where every position and product fits.
template <class Index>
struct pool_axis {
  Index image, pooled, taps, stride, dilation, before;
  Index padded;  // the image and what pads it, as far as windows reach
  bool adaptive;

  struct range {
    Index begin, end;
  };
  // Where tap 0 of output y is.
  REPDL_HD Index origin(Index y) const { return adaptive ? y * image / pooled : y * stride - before; }
  REPDL_HD Index position(Index y, Index r) const { return origin(y) + r * dilation; }
  // The taps of output y that are present.
  REPDL_HD range present(Index y) const {
    if (adaptive) return {0, ((y + 1) * image + pooled - 1) / pooled - this->origin(y)};
    const Index origin = y * stride - before;
    const Index below = origin >= 0 ? 0 : -origin;
    const Index above = image - origin <= 0 ? 0 : image - origin;
    const Index from = dilation == 1 ? below : (below + dilation - 1) / dilation;
    const Index to = dilation == 1 ? above : (above + dilation - 1) / dilation;
    return {from < taps ? from : taps, to < taps ? (to > from ? to : from) : taps};
  }
  // The taps of output y that are on the padded image; of dilation 1. Only the last window may reach over it.
  REPDL_HD Index padded_taps(Index y) const {
    const Index above = padded - y * stride;
    return above < taps ? above : taps;
  }
  // The outputs between the first and the last whose window can hold image position i; with dilation not all do.
  REPDL_HD range covering(Index i) const {
    if (adaptive) return {i * pooled / image, ((i + 1) * pooled + image - 1) / image};
    const Index first = i + before - (taps - 1) * dilation;
    const Index from = first <= 0 ? 0 : (first + stride - 1) / stride;
    const Index to = (i + before) / stride + 1;
    return {from, to < pooled ? (to > from ? to : from) : pooled};
  }
  // The least common multiple of any of the windows that hold one position has at most so many bits: the lcm of
  // 1 .. n is below 3^n (D. Hanson, "On the product of the primes", 1972), and that of numbers below 2^31 no larger
  // than their product.
  REPDL_HD std::int64_t common_bits() const {
    const std::int64_t windows = (static_cast<std::int64_t>(taps) - 1) / stride + 1;
    const std::int64_t largest = static_cast<std::int64_t>(taps < image ? taps : image);
    const std::int64_t multiple = 8 * largest / 5 + 1;
    return multiple < 31 * windows ? multiple : 31 * windows;
  }
  // The tap of output y that is at i, or -1.
  REPDL_HD Index tap(Index y, Index i) const {
    const Index distance = i - origin(y);
    if (adaptive || distance < 0) return distance < 0 ? -1 : distance;
    if (dilation == 1) return distance < taps ? distance : -1;
    const Index r = distance / dilation;
    return r < taps && r * dilation == distance ? r : -1;
  }
};

// One volume (of a sample and a channel; of two axes a plane) of a pooling operation on elements of format T. Strides in elements;
// pointers to the volume.
template <class T, class Index>
struct pool_volume {
  using number = widest_of<T>;
  using key_type = order_key_of<T>;
  using sum_of_terms = std::conditional_t<std::is_same_v<T, double>, twice_tracked_sum<double>, bounded_sum<double>>;

  pool_axis<Index> z, y, x;
  bool count_include_pad;
  std::int64_t divisor;  // of all windows, or 0
  bool negated;          // the sums of averages
  std::int64_t common;   // avg_pool2d_backward: of all windows' divisors, below 2^29; else 0
  const T* image;        // x
  const T* pooled;       // g
  std::int64_t image_slice, image_row, image_column, pooled_slice, pooled_row, pooled_column;

  using range = typename pool_axis<Index>::range;
  // Of an output: the window and its taps; of a pixel: the windows around it. Both as (slice, row, column).
  struct place {
    Index z, y, x;
  };

  REPDL_HD T at_image(place i) const { return image[i.z * image_slice + i.y * image_row + i.x * image_column]; }
  REPDL_HD T at_pooled(place o) const { return pooled[o.z * pooled_slice + o.y * pooled_row + o.x * pooled_column]; }

  // The divisor of a window: 2^62 at most, and 0 where no tap is present.
  REPDL_HD std::int64_t count(place o) const {
    if (divisor != 0) return divisor;
    return counted(z, o.z) * counted(y, o.y) * counted(x, o.x);
  }
  // The taps of output o along an axis that an average divides by.
  REPDL_HD std::int64_t counted(const pool_axis<Index>& axis, Index o) const {
    if (count_include_pad) return axis.padded_taps(o);
    const range taps = axis.present(o);
    return taps.end - taps.begin;
  }

  // A term of an average's sum, exactly.
  REPDL_HD number term(T v) const {
    const auto t = static_cast<number>(widened(v));
    return negated ? -t : t;
  }
  REPDL_HD static number widened(T v) {
    if constexpr (std::is_same_v<T, double>) {
      return v;
    } else {
      return widen_to_float(v);
    }
  }
  // The divisors have a common multiple of at most so many bits: of the two counts of windows along each axis that are
  // divided by their taps on the padded image, or are adaptive, the product.
  REPDL_HD std::int64_t common_bits() const {
    return divisor != 0                      ? 62
           : count_include_pad || y.adaptive ? 186
                                             : z.common_bits() + y.common_bits() + x.common_bits();
  }

  // Calls use(value, tap) for the present taps of a window, row-major.
  template <class Use>
  REPDL_HD void for_window(place o, Use&& use) const {
    const range slices = z.present(o.z);
    const range rows = y.present(o.y);
    const range columns = x.present(o.x);
    const Index column = x.origin(o.x);
    for (Index q = slices.begin; q < slices.end; ++q) {
      const Index slice = z.position(o.z, q);
      for (Index r = rows.begin; r < rows.end; ++r) {
        const Index row = y.position(o.y, r);
        for (Index s = columns.begin; s < columns.end; ++s)
          use(at_image({slice, row, column + s * x.dilation}), place{q, r, s});
      }
    }
  }
  REPDL_HD T max_value(place o) const {
    key_type best = no_key_of<key_type>;
    for_window(o, [&](T v, place) {
      const key_type key = order_key(v, order_max);
      best = key > best ? key : best;
    });
    return order_value<T>(best, order_max);
  }
  // The tap that wins its window.
  struct winner {
    key_type key;
    place tap;
  };
  REPDL_HD winner winner_of(place o) const {
    winner best{no_key_of<key_type>, {0, 0, 0}};
    for_window(o, [&](T v, place tap) {
      const key_type key = order_key(v, order_max);
      if (key > best.key) best = {key, tap};
    });
    return best;
  }
  // Where a tap of a window is.
  REPDL_HD place position(place o, place tap) const {
    return {z.position(o.z, tap.z), y.position(o.y, tap.y), x.position(o.x, tap.x)};
  }
  // A pixel's index in the volume, row-major.
  REPDL_HD std::int64_t index_of(place i) const {
    return (static_cast<std::int64_t>(i.z) * y.image + i.y) * x.image + i.x;
  }
  // max_value, and where it is.
  REPDL_HD T max_value(place o, std::int64_t* where) const {
    const winner w = winner_of(o);
    *where = index_of(position(o, w.tap));
    return order_value<T>(w.key, order_max);
  }
  // Calls use(g, window) for the windows that hold a pixel; of max_pool2d: that it wins.
  template <bool Max, class Use>
  REPDL_HD void for_pixel(place i, Use&& use) const {
    const range slices = z.covering(i.z);
    const range rows = y.covering(i.y);
    const range columns = x.covering(i.x);
    for (Index oz = slices.begin; oz < slices.end; ++oz) {
      const Index q = z.tap(oz, i.z);
      if (q < 0) continue;
      for (Index oy = rows.begin; oy < rows.end; ++oy) {
        const Index r = y.tap(oy, i.y);
        if (r < 0) continue;
        for (Index ox = columns.begin; ox < columns.end; ++ox) {
          const Index s = x.tap(ox, i.x);
          if (s < 0) continue;
          if constexpr (Max) {
            const winner w = winner_of({oz, oy, ox});
            if (w.tap.z != q || w.tap.y != r || w.tap.x != s) continue;
          }
          use(at_pooled({oz, oy, ox}), place{oz, oy, ox});
        }
      }
    }
  }

  // ---- binary64 sums of one element, or double-doubles

  REPDL_HD sum_of_terms average(place o) const {
    sum_of_terms sum;
    for_window(o, [&](T v, place) { sum.add(static_cast<double>(term(v))); });
    return sum;
  }
  REPDL_HD sum_of_terms max_gradient(place i) const {
    sum_of_terms sum;
    for_pixel<true>(i, [&](T g, place) { sum.add(widen(g)); });
    return sum;
  }
  REPDL_HD sum_of_terms average_gradient(place i) const {
    sum_of_terms sum;
    for_pixel<false>(i, [&](T g, place o) {
      const auto v = static_cast<double>(term(g));
      const std::int64_t n = count(o);
      if constexpr (std::is_same_v<T, double>) {
        if (common != 0) {
          sum.add(two_prod(v, static_cast<double>(common / n)));
        } else {
          add_quotient_to(sum, v, n);
        }
      } else if (common != 0) {
        sum.add(v * static_cast<double>(common / n));
      } else {
        const double quotient = v / static_cast<double>(n);
        sum.add(quotient, 0x1p-51 * magnitude_of(quotient));
      }
    });
    return sum;
  }
  REPDL_HD static void add_quotient_to(twice_tracked_sum<double>& sum, double g, std::int64_t n) {
    if (g == 0) return;
    const auto d = static_cast<double>(n);
    const double q = g / d;
    const dd p = two_prod(q, d);
    sum.add(dd{q, ((g - p.hi) - p.lo) / d});
    sum.error += is_in_middle(g) && n <= std::int64_t{1} << 53 ? 0x1p-105 * magnitude_of(q) : infinity;
  }

  // ---- from a sum to the element; `force`: 0, or +inf for undecided

  using decision = decided_value<T>;
  REPDL_HD static decision finish_average(const sum_of_terms& sum, double force, std::int64_t n) {
    if (n == 0) return {from_bits<T>(format<T>::nan), true};
    if (n > std::int64_t{1} << 53) return {T{}, false};
    return mean_of(sum, force, n);
  }
  REPDL_HD static decision finish_max_gradient(const bounded_sum<double>& sum, double force) {
    return certify<T>(sum.hi, sum.bound() + force);
  }
  REPDL_HD static decision finish_max_gradient(const twice_tracked_sum<double>& sum, double force) {
    return certify_sum(sum, force);
  }
  REPDL_HD decision finish_average_gradient(const sum_of_terms& sum, double force) const {
    return common != 0 ? mean_of(sum, force, common) : finish_max_gradient(sum, force);
  }
  REPDL_HD static decision mean_of(const bounded_sum<double>& sum, double force, std::int64_t n) {
    return certify_mean<T>(sum.hi, sum.bound() + force, n);
  }
  REPDL_HD static decision mean_of(const twice_tracked_sum<double>& sum, double force, std::int64_t n) {
    return certify_mean_of_sum(sum, force, n);
  }

  // ---- exact, always decided; numbers of narrower formats are summed as binary32 ones

  REPDL_HD T exact_average(place o) const {
    const std::int64_t n = count(o);
    if (n == 0) return from_bits<T>(format<T>::nan);
    exact_sum<number, 1> sum;
    for_window(o, [&](T v, place) { sum.add(term(v)); });
    return sum.template mean<T>(n);
  }
  REPDL_HD T exact_max_gradient(place i) const {
    exact_sum<number, 1> sum;
    for_pixel<true>(i, [&](T g, place) { sum.add(widened(g)); });
    return sum.template round<T>();
  }
  REPDL_HD T exact_average_gradient(place i) const {
    if (common == 0) {
      const auto terms = [&](auto&& use) {
        for_pixel<false>(i, [&](T g, place o) { use(term(g), static_cast<std::uint64_t>(count(o))); });
      };
      return round_quotient_sum<T>(terms, common_bits());
    }
    constexpr int least = least_exponent<number>;
    fixed_point<least, (format<number>::emax + 1 - least + 29 + 62 + 1 + 2 + 63) / 64> sum;
    special_terms special;
    for_pixel<false>(i, [&](T g, place o) {
      const number v = term(g);
      if (!is_finite(widen(v))) return special.add(widen(v));
      const auto parts = decompose(v);
      const auto weight = static_cast<std::uint64_t>(common / count(o));
      if constexpr (std::is_same_v<T, double>) {  // a product of 82 bits, in two
        constexpr int half = 32;
        const std::uint64_t low = parts.significand & ((std::uint64_t{1} << half) - 1);
        sum.add_scaled(low * weight, parts.exponent, parts.negative);
        sum.add_scaled((parts.significand >> half) * weight, parts.exponent + half, parts.negative);
      } else {
        sum.add_scaled(parts.significand * weight, parts.exponent, parts.negative);
      }
    });
    return special.any() ? special.value<T>() : sum.template mean<T>(common);
  }
};

// The volume of sample n and channel c. Plan is plan::pool_plan.
template <class T, class Index, class Plan>
REPDL_HD pool_volume<T, Index> volume_of(const Plan& p, std::int64_t n, std::int64_t c) {
  const std::int64_t image_at = n * p.image_stride[0] + c * p.image_stride[1];
  const std::int64_t pooled_at = n * p.pooled_stride[0] + c * p.pooled_stride[1];
  const auto axis = [&](int d) {
    const auto at = [](std::int64_t i) { return static_cast<Index>(i); };
    const auto& a = p.axis[d];
    return pool_axis<Index>{at(a.image),    at(a.windows), at(a.kernel),    at(a.stride),
                            at(a.dilation), at(a.before),  at(p.padded[d]), p.adaptive};
  };
  return {axis(0),
          axis(1),
          axis(2),
          p.count_include_pad,
          p.divisor,
          p.negated,
          p.common,
          p.x == nullptr ? nullptr : static_cast<const T*>(p.x) + image_at,
          p.g == nullptr ? nullptr : static_cast<const T*>(p.g) + pooled_at,
          p.image_stride[2],
          p.image_stride[3],
          p.image_stride[4],
          p.pooled_stride[2],
          p.pooled_stride[3],
          p.pooled_stride[4]};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
