// Pooling windows: which pixels a window holds, which windows hold a pixel, and one output element at a time, for every
// geometry. Kernels with faster loops come here for the elements that they cannot decide.
//
//     max_pool2d            the greatest x in the window in the contract's order (order.hpp); absent taps do not count;
//                           with_indices: and where in the plane, row-major, the first of them is
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

// One plane (sample and channel) of a pooling operation on elements of format T. Strides in elements; pointers to the plane.
template <class T, class Index>
struct pool_plane {
  using number = widest_of<T>;
  using key_type = order_key_of<T>;
  using sum_of_terms = std::conditional_t<std::is_same_v<T, double>, twice_tracked_sum<double>, bounded_sum<double>>;

  pool_axis<Index> y, x;
  bool count_include_pad;
  std::int64_t divisor;  // of all windows, or 0
  bool negated;          // the sums of averages
  std::int64_t common;   // avg_pool2d_backward: of all windows' divisors, below 2^29; else 0
  const T* image;        // x
  const T* pooled;       // g
  std::int64_t image_row, image_column, pooled_row, pooled_column;

  REPDL_HD T at_image(Index i, Index j) const { return image[i * image_row + j * image_column]; }
  REPDL_HD T at_pooled(Index i, Index j) const { return pooled[i * pooled_row + j * pooled_column]; }

  // The divisor of a window: 2^62 at most, and 0 where no tap is present.
  REPDL_HD std::int64_t count(Index oy, Index ox) const {
    if (divisor != 0) return divisor;
    if (count_include_pad) return static_cast<std::int64_t>(y.padded_taps(oy)) * x.padded_taps(ox);
    const typename pool_axis<Index>::range r = y.present(oy);
    const typename pool_axis<Index>::range s = x.present(ox);
    return static_cast<std::int64_t>(r.end - r.begin) * (s.end - s.begin);
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
    return divisor != 0 ? 62 : count_include_pad || y.adaptive ? 124 : y.common_bits() + x.common_bits();
  }

  // Calls use(value, r, s) for the present taps of a window, row-major.
  template <class Use>
  REPDL_HD void for_window(Index oy, Index ox, Use&& use) const {
    const typename pool_axis<Index>::range rows = y.present(oy);
    const typename pool_axis<Index>::range columns = x.present(ox);
    const Index column = x.origin(ox);
    for (Index r = rows.begin; r < rows.end; ++r) {
      const Index i = y.position(oy, r);
      for (Index s = columns.begin; s < columns.end; ++s) use(at_image(i, column + s * x.dilation), r, s);
    }
  }
  REPDL_HD T max_value(Index oy, Index ox) const {
    key_type best = no_key_of<key_type>;
    for_window(oy, ox, [&](T v, Index, Index) {
      const key_type key = order_key(v, order_max);
      best = key > best ? key : best;
    });
    return order_value<T>(best, order_max);
  }
  // The tap that wins its window.
  struct winner {
    key_type key;
    Index r, s;
  };
  REPDL_HD winner winner_of(Index oy, Index ox) const {
    winner best{no_key_of<key_type>, 0, 0};
    for_window(oy, ox, [&](T v, Index r, Index s) {
      const key_type key = order_key(v, order_max);
      if (key > best.key) best = {key, r, s};
    });
    return best;
  }
  // A pixel's index in the plane, row-major.
  REPDL_HD std::int64_t index_of(Index i, Index j) const { return static_cast<std::int64_t>(i) * x.image + j; }
  // max_value, and where it is.
  REPDL_HD T max_value(Index oy, Index ox, std::int64_t* where) const {
    const winner w = winner_of(oy, ox);
    *where = index_of(y.position(oy, w.r), x.position(ox, w.s));
    return order_value<T>(w.key, order_max);
  }
  // Calls use(g, oy, ox) for the windows that hold pixel (i, j); of max_pool2d: that it wins.
  template <bool Max, class Use>
  REPDL_HD void for_pixel(Index i, Index j, Use&& use) const {
    const typename pool_axis<Index>::range rows = y.covering(i);
    const typename pool_axis<Index>::range columns = x.covering(j);
    for (Index oy = rows.begin; oy < rows.end; ++oy) {
      const Index r = y.tap(oy, i);
      if (r < 0) continue;
      for (Index ox = columns.begin; ox < columns.end; ++ox) {
        const Index s = x.tap(ox, j);
        if (s < 0) continue;
        if constexpr (Max) {
          const winner w = winner_of(oy, ox);
          if (w.r != r || w.s != s) continue;
        }
        use(at_pooled(oy, ox), oy, ox);
      }
    }
  }

  // ---- binary64 sums of one element, or double-doubles

  REPDL_HD sum_of_terms average(Index oy, Index ox) const {
    sum_of_terms sum;
    for_window(oy, ox, [&](T v, Index, Index) { sum.add(static_cast<double>(term(v))); });
    return sum;
  }
  REPDL_HD sum_of_terms max_gradient(Index i, Index j) const {
    sum_of_terms sum;
    for_pixel<true>(i, j, [&](T g, Index, Index) { sum.add(widen(g)); });
    return sum;
  }
  REPDL_HD sum_of_terms average_gradient(Index i, Index j) const {
    sum_of_terms sum;
    for_pixel<false>(i, j, [&](T g, Index oy, Index ox) {
      const auto v = static_cast<double>(term(g));
      const std::int64_t n = count(oy, ox);
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

  REPDL_HD T exact_average(Index oy, Index ox) const {
    const std::int64_t n = count(oy, ox);
    if (n == 0) return from_bits<T>(format<T>::nan);
    exact_sum<number, 1> sum;
    for_window(oy, ox, [&](T v, Index, Index) { sum.add(term(v)); });
    return sum.template mean<T>(n);
  }
  REPDL_HD T exact_max_gradient(Index i, Index j) const {
    exact_sum<number, 1> sum;
    for_pixel<true>(i, j, [&](T g, Index, Index) { sum.add(widened(g)); });
    return sum.template round<T>();
  }
  REPDL_HD T exact_average_gradient(Index i, Index j) const {
    if (common == 0) {
      const auto terms = [&](auto&& use) {
        for_pixel<false>(i, j,
                         [&](T g, Index oy, Index ox) { use(term(g), static_cast<std::uint64_t>(count(oy, ox))); });
      };
      return round_quotient_sum<T>(terms, common_bits());
    }
    constexpr int least = least_exponent<number>;
    fixed_point<least, (format<number>::emax + 1 - least + 29 + 62 + 1 + 2 + 63) / 64> sum;
    special_terms special;
    for_pixel<false>(i, j, [&](T g, Index oy, Index ox) {
      const number v = term(g);
      if (!is_finite(widen(v))) return special.add(widen(v));
      const auto parts = decompose(v);
      const auto weight = static_cast<std::uint64_t>(common / count(oy, ox));
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

// The plane of sample n and channel c. Plan is plan::pool_plan.
template <class T, class Index, class Plan>
REPDL_HD pool_plane<T, Index> plane_of(const Plan& p, std::int64_t n, std::int64_t c) {
  const std::int64_t image_at = n * p.image_stride[0] + c * p.image_stride[1];
  const std::int64_t pooled_at = n * p.pooled_stride[0] + c * p.pooled_stride[1];
  const auto at = [](std::int64_t i) { return static_cast<Index>(i); };
  return {{at(p.h), at(p.oh), at(p.kh), at(p.stride.h), at(p.dilation.h), at(p.top), at(p.padded.h), p.adaptive},
          {at(p.w), at(p.ow), at(p.kw), at(p.stride.w), at(p.dilation.w), at(p.left), at(p.padded.w), p.adaptive},
          p.count_include_pad,
          p.divisor,
          p.negated,
          p.common,
          p.x == nullptr ? nullptr : static_cast<const T*>(p.x) + image_at,
          p.g == nullptr ? nullptr : static_cast<const T*>(p.g) + pooled_at,
          p.image_stride[2],
          p.image_stride[3],
          p.pooled_stride[2],
          p.pooled_stride[3]};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
