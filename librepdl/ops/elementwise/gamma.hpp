// ln |gamma x|, gamma x and their digamma psi x = (ln |gamma x|)', binary16, bfloat16 and binary32, correctly rounded.
//
// Method, one formula in balls (num/formula.hpp): in double-doubles for every operand, in multi-limb balls for what these leave
// undecided. With a = x for x > 0 and 1 - x for x < 0, z = a + n, P = a (a + 1) ... (a + n - 1), n the least with z >= stirling_from:
//   gamma a = e^A sqrt(2 pi) / P,  A = (z - 1/2) ln z - z + S(z)
//   psi a = ln z - 1/(2z) - T(z) - P'/P
//   x < 0:  gamma x = pi / (sin(pi x) gamma a),  psi x = psi a - pi cos(pi x) / sin(pi x)
// Source: M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions" (1964), 6.1.17, 6.1.42, 6.3.7, 6.3.18.
//
// S(z) is the integral over t > 0 of e^(-zt) f(t), f(t) the sum over n > 0 of 2 / (t^2 + (2 pi n)^2) (Binet), and T = -S' that of
// t e^(-zt) f(t). Of each such quotient the geometric series alternates, and the quotient lies between successive sums of it: so do S and
// T between those of
//   S: the sum of B_2k / (2k (2k - 1) z^(2k - 1)),  T: the sum of B_2k / (2k z^2k)
// and what is left out is less than the first term that is.
//
// Exact results: ln gamma of 1 and 2 is 0; gamma of whole x is (x - 1)!, up to 22! a number of at most 51 bits, of 23! to 34! with 56
// bits and more no number or midpoint of 24. The former are not plain. Of other results nothing is known: were one nearer to a
// midpoint than its balls tell, the call would fail with `undecided`. The more bits, the smaller the balls, down to what 17 terms of the
// series leave out: 2^-141 with 128 bits, 2^-246 with 256 and more. Of 2^32 results at random the nearest to a midpoint is
// about 2^-57 of itself from it.
#pragma once

#include "librepdl/ops/elementwise/bernoulli_table.hpp"
#include "librepdl/ops/elementwise/circular_pi.hpp"

namespace repdl::ops {
struct lgamma;
struct tgamma;
struct digamma;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// Where Stirling's series is used: its terms decide how far it reaches.
template <class Ball>
inline constexpr double stirling_from = limbs_of_ball<Ball> == 0   ? 8
                                        : limbs_of_ball<Ball> == 2 ? 32
                                                                   : 256;

// The k-th coefficient of S, or of T.
template <bool IsT, int K>
REPDL_HD constexpr double stirling_coefficient() {
  constexpr double divisor = bernoulli_on_host.denominator[K - 1] * (2 * K) * (IsT ? 1 : 2 * K - 1);
  constexpr double c = bernoulli_on_host.numerator[K - 1] / divisor;
  return c;
}

// S(z), or T(z), of z >= stirling_from but for roundings of z.
//
// In double-doubles, in binary64, 12 terms. Relative errors, u = 2^-53, S (T); the sums' second terms are less than 2^-10 of the first:
//   z.lo and z's error, below 2^-100 of it                                             1 u (2 u)
//   r = 1/z, w = r^2 at the front                                                      1 u (3 u)
//   the first coefficient, the last sum, the others                                    2.1 u
//   product                                                                            1 u
//   sum                                                                                8.1 u < 2^-49
// Left out: B_26 / (26 25 z^25) = 2193.1 z^-25 < 2^-63, B_26 / (26 z^26) = 54828 z^-26 < 2^-62.
// In multi-limb balls 17 terms. Left out: 1.0883e10 z^-35 < 2^33.4 z^-35, 3.8088e11 z^-36 < 2^38.5 z^-36, and z >= 2^(exponent - 1).
template <bool IsT, class Ball>
REPDL_HD Ball stirling_sum(const Ball& z) {
  if constexpr (is_multi_limb<Ball>) {
    const Ball r = number<Ball>(1) / z;
    const Ball w = r * r;
    Ball t = number<Ball>(0);
    REPDL_LIMB_LOOP(7)
    for (int k = bernoulli_count; k > 0; --k) {
      const double factor = 2.0 * k * (IsT ? 1 : 2 * k - 1);
      const Ball divisor = number<Ball>(bernoulli_table().denominator[k - 1] * factor);
      t = t * w + number<Ball>(bernoulli_table().numerator[k - 1]) / divisor;
    }
    const std::int64_t power = z.middle.exponent - 1;
    return grown(t * (IsT ? w : r), power_magnitude(IsT ? 39 - 36 * power : 34 - 35 * power));
  } else {
    const double r = 1.0 / z.hi;
    const double w = r * r;
    const double q = with_places<12>([&]<int... K>() { return horner(w, stirling_coefficient<IsT, K + 1>()...); });
    const double s = (IsT ? w : r) * q;
    return {s, 0, 0x1p-49 * s + 0x1p-62};
  }
}

// z and P of a = x or 1 - x, and P'.
template <class Ball, bool WithSlope>
struct rising_product {
  Ball z, product, slope;
  explicit REPDL_HD rising_product(double x)
      : z(x > 0 ? number<Ball>(x) : number<Ball>(1) - number<Ball>(x)),
        product(number<Ball>(1)),
        slope(number<Ball>(0)) {
    REPDL_LIMB_LOOP(7)
    for (double about = x > 0 ? x : 1 - x; about < stirling_from<Ball>; about += 1) {
      if constexpr (WithSlope) slope = slope * z + product;
      product = product * z;
      z = z + number<Ball>(1);
    }
  }
};

// With b = P of x > 0, P pi / sin(pi x) of x < 0: gamma x = e^A sqrt(2 pi) / b, or b / (e^A sqrt(2 pi)).
template <class Ball>
struct gamma_parts {
  Ball a, b;
  explicit REPDL_HD gamma_parts(double x) {
    const rising_product<Ball, false> p(x);
    a = (p.z - number<Ball>(0.5)) * logarithm(p.z) - p.z + stirling_sum<false>(p.z);
    b = p.product;
    if (x < 0) b = b * scaled(half_pi<Ball>(), 1) / circular_pi_of<Ball>(x, true);
  }
};

// 0, -1, -2 ..., -inf.
REPDL_HD bool is_pole_of_gamma(double x) { return x <= 0 && (x <= -0x1p51 || nearest(x) == x); }

// A definition D for formats of at most 24 bits: its double-doubles are tested for T at once, without a rounding to binary64 between.
template <class D>
struct by_double_doubles : by_binary64<D> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x) {
    const double v = widen(x);
    const bounded_value y = value(v);
    return certify_as<T>(y.value, y.error);
  }

 private:
  struct bounded_value {
    double value, error;
  };
  // The bound has room for two roundings of value + error. It is 0 for what is not plain: exact, or a constant next to no midpoint.
  REPDL_HD_CALL static bounded_value value(double x) {
    if (!D::plain(x)) return {D::special(x), 0};
    const dd_ball<double> y = D::template formula<dd_ball<double>>(x);
    const double error = up(y.error + magnitude_of(y.lo) + 0x1p-51 * magnitude_of(y.hi));
    const bool known = error < infinity;
    return {known ? y.hi : 0.0, known ? error : infinity};
  }
};

struct lgamma_definition {
  REPDL_HD static bool plain(double x) {
    return magnitude_of(x) < infinity && !is_pole_of_gamma(x) && x != 1 && x != 2;
  }
  REPDL_HD static double special(double x) {
    const double limit = x == 1 || x == 2 ? 0.0 : infinity;
    return x == x ? limit : nan_of<double>();
  }
  // -+(ln(b^2 / (2 pi)) / 2 - A)
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const gamma_parts<Ball> g(x);
    const Ball y = scaled(logarithm(g.b * g.b / scaled(half_pi<Ball>(), 2)), -1) - g.a;
    return x > 0 ? negated(y) : y;
  }
};
template <>
struct body<ops::lgamma> : by_double_doubles<lgamma_definition> {};

// Of whole x up to 23 (x - 1)! is a product of numbers. 35! > 2^132. |gamma x| = pi / (|sin pi x| gamma(1 - x)) with |sin pi x| >= 2 d,
// d the distance to a whole number: from -45 down numbers of 24 bits that are not whole have d >= 2^-18, and pi 2^17 / 45! < 2^-168.
// Between -n and 1 - n, n even, gamma is positive.
struct tgamma_definition {
  REPDL_HD static bool plain(double x) {
    return x > -45 && x < 36 && !is_pole_of_gamma(x) && !(x <= 23 && nearest(x) == x);
  }
  REPDL_HD static double special(double x) {
    if (x == 0) return copy_sign(infinity, x);
    if (!(x > 0)) {
      const double size = x > -0x1p51 ? -x : 0;
      const bool above_even = (static_cast<std::int64_t>(size) & 1) != 0;
      return x == x && !is_pole_of_gamma(x) ? (above_even ? 0.0 : -0.0) : nan_of<double>();
    }
    double factorial = 1;
    for (double k = 2; k < x && x <= 23; k += 1) factorial *= k;
    return x <= 23 ? factorial : infinity;
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const gamma_parts<Ball> g(x);
    const Ball whole = exponential(g.a) * square_root(scaled(half_pi<Ball>(), 2));
    return x > 0 ? whole / g.b : g.b / whole;
  }
};
template <>
struct body<ops::tgamma> : by_double_doubles<tgamma_definition> {};

struct digamma_definition {
  REPDL_HD static bool plain(double x) { return magnitude_of(x) < infinity && !is_pole_of_gamma(x); }
  REPDL_HD static double special(double x) {
    const double at_zero = copy_sign(infinity, -x);
    return x == 0 ? at_zero : x > 0 ? x : nan_of<double>();
  }
  template <class Ball>
  REPDL_HD static Ball formula(double x) {
    const rising_product<Ball, true> p(x);
    const Ball rest = number<Ball>(0.5) / p.z + stirling_sum<true>(p.z) + p.slope / p.product;
    const Ball y = logarithm(p.z) - rest;
    if (x > 0) return y;
    return y - scaled(half_pi<Ball>(), 1) * circular_pi_of<Ball>(x, false) / circular_pi_of<Ball>(x, true);
  }
};
template <>
struct body<ops::digamma> : by_double_doubles<digamma_definition> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
