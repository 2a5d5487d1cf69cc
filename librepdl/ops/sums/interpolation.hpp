// Interpolation: sums of pixels with rational weights, or of positions with the weights that a pixel has in them.
//
// Along an axis position i lies at u = (a i + b) / d (plan::interpolation_axis), and with u = i0 + n / d, 0 <= n < d, m = d - n, pixels have the
// numerators
//     linear:  i0: m;  i0 + 1: n;  over d
//     cubic:   i0 - 1: -3 n m^2;  i0: m (4 m^2 + 12 m n + 3 n^2);  i0 + 1: n (4 n^2 + 12 n m + 3 m^2);  i0 + 2: -3 m n^2;  over 4 d^3
// (with t = n / d those of Keys's cubic convolution with A = -3/4: A t (1 - t)^2, (1 - t) (1 + t - (5/4) t^2), and their mirror images). Taps outside
// the image are on its border, those on one pixel add up, and a pixel with 0 is absent. Linear: u < 0 is 0, u > image - 1 that. A cubic one has no
// u < -1, and from u = image on all taps are on the last pixel.
//
// A weight is a product of such quotients along the axes, so that an output is S / D, S a sum of products of integers N and numbers, D one for all:
// - first, of narrow formats: S in binary64. |fl(N) - N| <= 96 u |N|: along an axis at most 20 u |N|, below, and two products. A term is off by
//   97 u of itself, a sum of h by h - 1 more, fl(D) by 26 u and the quotient by 1: with M the terms' magnitudes the quotient is off by
//   (h + 125) u M / D; (h + 192) has room for what M, and u^2, err by, and for certify's (C). Nothing overflows or underflows: 1 <= |N|, D < 2^498.
// - where D <= 2^50: N are numbers of binary64 (|N| < 2 D), N x two of them, exactly, and S a twice_tracked_sum, whose quotient by D is certified;
//   ties, too, where S is one number.
// - exactly: |N| < 2^498 in words, S an integer of as many bits as that and the format need, and the quotient of integers.
//
// Along an axis, in binary64: d, n and m are off by u each, a product of three of them and a constant by 6 u, the sum of the inner taps' three
// positive products by 6 u and m times it by 8 u. On a border pixel there are an outer tap and one or two inner ones, one of which is at least 4 times
// the outer one (3 n m^2 beside 12 m^2 n): they are off by 10 u of their magnitudes, which are at most 5/3 of the sum: 17 u. Where 4 d^3 < 2^50
// all is exact.
// Checked by tests/places/interpolation_test.cpp.
#pragma once

#include "librepdl/num/quotient_sum.hpp"
#include "librepdl/num/sums.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// u = whole + rest / d.
struct interpolated_place {
  std::int64_t whole;
  std::uint64_t rest;
};
template <class Axis>
REPDL_HD interpolated_place place_of(const Axis& x, std::int64_t i) {
  using integer = typename Axis::integer;
  const integer t = x.a * i + x.b, d = static_cast<integer>(x.d);
  if (t < 0) return x.cubic ? interpolated_place{-1, static_cast<std::uint64_t>(t + d)} : interpolated_place{0, 0};
  const integer last = x.image - 1;
  if (t >= (x.cubic ? x.image : last) * d) return {x.image - 1, 0};
  const auto low = static_cast<std::uint64_t>(t), high = static_cast<std::uint64_t>(t >> 64);
  if (high == 0) return {static_cast<std::int64_t>(low / x.d), low % x.d};
  std::uint64_t rest = 0;
  const std::uint64_t whole = divide_wide(high, low, x.d, &rest);
  return {static_cast<std::int64_t>(whole), rest};
}
// The first of the `taps` neighbouring pixels that a position at `whole` is made of.
template <class Axis>
REPDL_HD std::int64_t first_pixel(const Axis& x, std::int64_t whole) {
  const std::int64_t first = x.cubic ? whole - 1 : whole, most = x.image - x.taps;
  return first < 0 ? 0 : first > most ? most : first;
}

// The numerators of a position, as binary64 numbers.
template <class Axis>
REPDL_HD void numerators_of(const Axis& x, interpolated_place u, double* out) {
  for (int k = 0; k < x.taps; ++k) out[k] = 0;
  const std::int64_t first = first_pixel(x, u.whole);
  const auto add = [&](std::int64_t pixel, double numerator) {
    const std::int64_t last = x.image - 1;
    out[(pixel < 0 ? 0 : pixel > last ? last : pixel) - first] += numerator;
  };
  const auto n = static_cast<double>(u.rest), m = static_cast<double>(x.d - u.rest);
  if (!x.cubic) {
    add(u.whole, m);
    if (u.rest != 0) add(u.whole + 1, n);
    return;
  }
  add(u.whole - 1, -3 * n * m * m);
  add(u.whole, m * (4 * m * m + 12 * m * n + 3 * n * n));
  add(u.whole + 1, n * (4 * n * n + 12 * n * m + 3 * m * m));
  add(u.whole + 2, -3 * m * n * n);
}
template <class Axis>
REPDL_HD double denominator_of(const Axis& x) {
  const auto d = static_cast<double>(x.d);
  return x.cubic ? 4 * d * d * d : d;
}

// The same exactly.
using axis_integer = fixed_point<0, 3>;  // below 2^165
template <int Words, int A, int B>
REPDL_HD fixed_point<0, Words> product_of(const fixed_point<0, A>& a, const fixed_point<0, B>& b) {  // of magnitudes
  fixed_point<0, Words> p;
  for (int i = 0; i < A; ++i) {
    for (int j = 0; j < B; ++j) {
      if (a.word(i) == 0 || b.word(j) == 0) continue;
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(a.word(i), b.word(j), &high);
      p.add_scaled(low, 64 * (i + j), false);
      if (high != 0) p.add_scaled(high, 64 * (i + j + 1), false);
    }
  }
  return p;
}
// to -= 3 n m^2; to += m (4 m^2 + 12 m n + 3 n^2).
REPDL_HD void add_outer(axis_integer& to, std::uint64_t n, std::uint64_t m) {
  axis_integer p;
  p.add_scaled(3, 0, false);
  p.multiply_by(n);
  p.multiply_by(m);
  p.multiply_by(m);
  p.negate();
  to.merge(p);
}
REPDL_HD void add_inner(axis_integer& to, std::uint64_t n, std::uint64_t m) {
  axis_integer p;
  const auto add = [&](std::uint64_t factor, std::uint64_t a, std::uint64_t b) {
    axis_integer q;
    q.add_scaled(factor, 0, false);
    q.multiply_by(a);
    q.multiply_by(b);
    p.merge(q);
  };
  add(4, m, m);
  add(12, m, n);
  add(3, n, n);
  p.multiply_by(m);
  to.merge(p);
}
template <class Axis>
REPDL_HD axis_integer numerator_of(const Axis& x, std::int64_t position, std::int64_t pixel) {
  const interpolated_place u = place_of(x, position);
  const std::uint64_t n = u.rest, m = x.d - u.rest;
  const std::int64_t last = x.image - 1;
  axis_integer sum;
  for (int k = x.cubic ? -1 : 0; k <= (x.cubic ? 2 : 1); ++k) {
    const std::int64_t at = u.whole + k;
    if ((at < 0 ? 0 : at > last ? last : at) != pixel) continue;
    if (!x.cubic) {
      sum.add_scaled(k == 0 ? m : n, 0, false);
    } else if (k == -1) {
      add_outer(sum, n, m);
    } else if (k == 0) {
      add_inner(sum, n, m);
    } else if (k == 1) {
      add_inner(sum, m, n);
    } else {
      add_outer(sum, m, n);
    }
  }
  return sum;
}

// Of element o of the result along an axis (plan::interpolation_table): the elements that it is made of, and the numerators that they have.
template <class Table>
REPDL_HD std::int64_t first_term(const Table& t, std::int64_t o) {
  return t.backward ? t.from[o] : t.first[o];
}
template <class Table>
REPDL_HD std::int64_t end_of_terms(const Table& t, std::int64_t o) {
  return t.backward ? t.to[o] : t.first[o] + t.taps;
}
template <class Table>
REPDL_HD double numerator_at(const Table& t, std::int64_t o, std::int64_t term) {
  return t.backward ? t.numerators[term * t.taps + (o - t.first[term])]
                    : t.numerators[o * t.taps + (term - t.first[o])];
}
template <class Axis, class Table>
REPDL_HD void fill_position(const Axis& x, const Table& t, std::int64_t i) {
  const interpolated_place u = place_of(x, i);
  t.first[i] = first_pixel(x, u.whole);
  numerators_of(x, u, t.numerators + i * x.taps);
}
// The first position whose first pixel is `pixel` or one behind it: first_pixel does not decrease.
template <class Axis>
REPDL_HD std::int64_t first_position(const Axis& x, std::int64_t pixel) {
  std::int64_t low = 0, high = x.size;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (first_pixel(x, place_of(x, middle).whole) < pixel) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
template <class Axis, class Table>
REPDL_HD void fill_pixel(const Axis& x, const Table& t, std::int64_t pixel) {
  t.from[pixel] = first_position(x, pixel - x.taps + 1);
  t.to[pixel] = first_position(x, pixel + 1);
}

// use(fl(N), x) of the terms of an element of the result, but of absent ones.
template <class T, class Table, class Use>
REPDL_HD void for_terms(const Table (&t)[3], const std::int64_t (&o)[3], const T* in, const std::int64_t (&stride)[3],
                        Use&& use) {
  for (std::int64_t z = first_term(t[0], o[0]); z < end_of_terms(t[0], o[0]); ++z) {
    const double wz = numerator_at(t[0], o[0], z);
    if (wz == 0) continue;
    for (std::int64_t y = first_term(t[1], o[1]); y < end_of_terms(t[1], o[1]); ++y) {
      const double wy = wz * numerator_at(t[1], o[1], y);
      if (wy == 0) continue;
      const T* const row = in + z * stride[0] + y * stride[1];
      for (std::int64_t x = first_term(t[2], o[2]); x < end_of_terms(t[2], o[2]); ++x) {
        const double w = wy * numerator_at(t[2], o[2], x);
        if (w != 0) use(w, row[x * stride[2]]);
      }
    }
  }
}

// The first tier of narrow formats; `denominator` is fl(D).
REPDL_HD double interpolation_bound(double terms, double magnitude) { return (terms + 192) * 0x1p-53 * magnitude; }
template <class T>
REPDL_HD decided_value<T> certify_interpolated(double sum, double bound, double denominator, double force) {
  // Products with infinities and NaN are left to the later tiers, which know what is absent.
  const auto c = certify<T>(sum / denominator, bound / denominator + force);
  return {c.value, c.decided && is_finite(sum)};
}
template <class T, class Table>
REPDL_HD decided_value<T> interpolated(const Table (&t)[3], const std::int64_t (&o)[3], const T* in,
                                       const std::int64_t (&stride)[3], double denominator, double force) {
  double sum = 0, magnitude = 0, terms = 0;
  for_terms(t, o, in, stride, [&](double w, T v) {
    const double p = w * widen(v);
    sum += p;
    magnitude += magnitude_of(p);
    terms += 1;
  });
  return certify_interpolated<T>(sum, interpolation_bound(terms, magnitude), denominator, force);
}

// The second tier, for common = D <= 2^50.
template <class T, class Table>
REPDL_HD decided_value<T> interpolated_twice(const Table (&t)[3], const std::int64_t (&o)[3], const T* in,
                                             const std::int64_t (&stride)[3], double common, double force) {
  twice_tracked_sum<double> sum;
  for_terms(t, o, in, stride, [&](double w, T v) { sum.add(two_prod(w, widen(v))); });
  const auto n = static_cast<std::int64_t>(common);
  if constexpr (std::is_same_v<T, double>) {
    const auto c = certify_mean_of_sum(sum, force, n);
    return {c.value, c.decided && is_finite(c.value)};
  } else {
    if (!is_finite(sum.hi)) return {non_finite_result<T>(sum.hi), true};
    const dd total = sum.total();
    const double bound = sum.bound() + force;
    return bound == 0 && total.lo == 0 ? certify_mean<T>(total.hi, 0, n) : certify_mean<T>(total, bound, n);
  }
}

// The last tier.
template <class T, class Axis, class Table>
REPDL_HD T interpolated_exactly(const Axis (&axis)[3], const Table (&t)[3], const std::int64_t (&o)[3], const T* in,
                                const std::int64_t (&stride)[3]) {
  using number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr int least = least_exponent<number>;
  fixed_point<least, (format<number>::emax + 1 - least + 498 + 62 + 1 + 63) / 64> sum;
  special_terms special;
  const auto numerator = [&](int a, std::int64_t of) {
    return t[a].backward ? numerator_of(axis[a], of, o[a]) : numerator_of(axis[a], o[a], of);
  };
  for (std::int64_t z = first_term(t[0], o[0]); z < end_of_terms(t[0], o[0]); ++z) {
    axis_integer wz = numerator(0, z);
    const bool negative_z = wz.negative();
    if (negative_z) wz.negate();
    for (std::int64_t y = first_term(t[1], o[1]); y < end_of_terms(t[1], o[1]); ++y) {
      axis_integer wy = numerator(1, y);
      const bool negative_y = wy.negative() != negative_z;
      if (wy.negative()) wy.negate();
      const auto wzy = product_of<6>(wz, wy);
      const T* const row = in + z * stride[0] + y * stride[1];
      for (std::int64_t x = first_term(t[2], o[2]); x < end_of_terms(t[2], o[2]); ++x) {
        axis_integer wx = numerator(2, x);
        bool negative = wx.negative() != negative_y;
        if (wx.negative()) wx.negate();
        const auto w = product_of<8>(wzy, wx);
        if (w.is_zero()) continue;
        const auto v = static_cast<number>(widen(row[x * stride[2]]));
        if (!is_finite(static_cast<double>(v))) {
          special.add(negative ? -static_cast<double>(v) : static_cast<double>(v));
          continue;
        }
        const integral_parts parts = decompose(v);
        negative = negative != parts.negative;
        for (int k = 0; k < 8; ++k) {
          if (w.word(k) == 0) continue;
          std::uint64_t high = 0;
          const std::uint64_t low = multiply_wide(w.word(k), parts.significand, &high);
          sum.add_scaled(low, parts.exponent + 64 * k, negative);
          sum.add_scaled(high, parts.exponent + 64 * (k + 1), negative);
        }
      }
    }
  }
  if (special.any()) return special.value<T>();
  const auto denominator = [&](int a) {
    axis_integer d;
    d.add_scaled(axis[a].d, 0, false);
    if (!axis[a].cubic) return d;
    d.multiply_by(axis[a].d);
    d.multiply_by(axis[a].d);
    d.multiply_by(4);
    return d;
  };
  return round_quotient<T>(sum, product_of<8>(product_of<6>(denominator(0), denominator(1)), denominator(2)));
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
