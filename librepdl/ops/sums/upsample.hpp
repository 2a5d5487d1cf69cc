// Nearest neighbours: which pixel of the image an output pixel takes, and the sum over the output pixels that take one.
//
//     source(o) = min(floor(t a / b), image - 1), t = 2 o + half
//
// in integers (plan::nearest_axis): a / b is half of image / size, or stands for half of 1 / scale: the planner's
// fraction, of which every floor is the same (plan/upsample_planner.cpp). source does not decrease, so the output
// pixels that take pixel i are those from first(i) up to and without first(i + 1), and there may be none.
//
// Sums: first bounded_sum, whose zero error decides ties, or of binary64 twice_tracked_sum; what that does not decide is summed in
// integers, which always decide. Checked by tests/places/upsample_test.cpp.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// By a number d: n / d.
struct plain_division {
  std::uint64_t d;

  REPDL_HD explicit plain_division(std::uint64_t by) : d(by) {}
  REPDL_HD std::uint64_t quotient(std::uint64_t n) const { return n / d; }
  // n becomes the quotient; returns the remainder.
  REPDL_HD std::uint64_t split(std::uint64_t& n) const {
    const std::uint64_t q = n / d, r = n - q * d;
    n = q;
    return r;
  }
};

// Index: std::uint64_t, or a type that holds image b + a and every t.
template <class Index, class Division>
struct nearest_axis {
  Index image, size, a, b, limit, half;
  Division by_a, by_b;

  template <class Axis>
  explicit nearest_axis(const Axis& x, std::uint64_t most = ~std::uint64_t{0})
      : image(static_cast<Index>(x.image)),
        size(static_cast<Index>(x.size)),
        a(static_cast<Index>(x.a)),
        b(static_cast<Index>(x.b)),
        limit(static_cast<Index>(x.limit < most ? x.limit : most)),
        half(static_cast<Index>(x.half)),
        by_a(x.a == 0 ? 1 : x.a),
        by_b(x.b == 0 ? 1 : x.b) {}

  REPDL_HD Index source(Index o) const {
    const Index t = 2 * o + half;
    return t >= limit ? image - 1 : by_b.quotient(t * a);
  }
  // The first output pixel that takes pixel i or one behind it: t a >= i b.
  REPDL_HD Index first(Index i) const {
    if (i == 0) return 0;
    if (i >= image || a == 0) return size;
    const Index t = by_a.quotient(i * b + (a - 1));
    const Index o = t / 2 + ((t & 1) > half ? 1 : 0);
    return o < size ? o : size;
  }
};

// The sum of the pixels of rows [y0, y1) and columns [x0, x1).
template <class T, class Use, class Index>
REPDL_HD void for_pixels(const T* plane, std::int64_t row, std::int64_t column, Index y0, Index y1, Index x0, Index x1,
                         Use&& use) {
  for (Index y = y0; y < y1; ++y) {
    for (Index x = x0; x < x1; ++x) {
      use(plane[static_cast<std::int64_t>(y) * row + static_cast<std::int64_t>(x) * column]);
    }
  }
}
template <class T, class Index>
REPDL_HD decided_value<T> pixel_sum(const T* plane, std::int64_t row, std::int64_t column, Index y0, Index y1, Index x0,
                                    Index x1, double force) {
  using sum_of_terms = std::conditional_t<std::is_same_v<T, double>, twice_tracked_sum<double>, bounded_sum<double>>;
  sum_of_terms sum;
  for_pixels(plane, row, column, y0, y1, x0, x1, [&](T v) { sum.add(widen(v)); });
  if constexpr (std::is_same_v<T, double>) {
    return certify_sum(sum, force);
  } else {
    return certify<T>(sum.hi, sum.bound() + force);
  }
}
template <class T, class Index>
REPDL_HD T exact_pixel_sum(const T* plane, std::int64_t row, std::int64_t column, Index y0, Index y1, Index x0,
                           Index x1) {
  using number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  exact_sum<number, 1> sum;
  for_pixels(plane, row, column, y0, y1, x0, x1, [&](T v) { sum.add(static_cast<number>(widen(v))); });
  return sum.template round<T>();
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
