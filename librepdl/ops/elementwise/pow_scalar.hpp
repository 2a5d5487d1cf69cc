// pow_scalar(x; exponent) = x^exponent and scalar_pow(x; base) = base^x, the scalar any binary64 number, for f16, bf16,
// binary32: binary64 with a rounding test; pow_exact.hpp decides what it leaves undecided.
//
// Specials are C23's (F.10.4.5); whether a power is odd is asked of the number that it is.
//
// e^w, w = y ln x, |w| cut down to 105, as in pow.hpp. Errors, u = 2^-53:
//   ln x: 4 u (logarithmic.hpp); e ln2_hi is not exact where the exponent e of a scalar base has more than 8 bits:   5 u |w|
//     1 u more; a subnormal base is scaled by 2^200
//   w                                                                                1 u |w|, and 2^-1075
//   e^w (exp.hpp), the ends and the error                                            8.2 u
// 8 u |w| + 16 u has room for them. Values next to a number are decided (unpacked ones, too, such as 2^x of a whole x): only
// midpoints, and what is within 2^-42 of one, unpacked within 2^-24, are left undecided.
//
// Shorter, for the CPU's loops. x^1, x^2: x itself and mul. x^3, x^4: products of numbers of 24 and 48 bits, rounded to odd:
// midpoints among them are right. base^x, of a base in [2^-1000, inf) other than 1: no x but NaN is special, for w = 0 of x = 0
// makes 1 within the error, which is decided, and an infinite w is cut down as every w beyond 105 is.
//
// Checked by tests/elementwise/several_test.cpp.
#pragma once

#include "librepdl/ops/elementwise/basic.hpp"
#include "librepdl/ops/elementwise/logarithmic.hpp"

namespace repdl::ops {
struct pow_scalar;
struct scalar_pow;
}  // namespace repdl::ops

namespace repdl::num {
inline namespace REPDL_ISA {

// e^w within error.
struct pow_near {
  double value, error;
};
REPDL_HD pow_near pow_of_logarithm(double full) {
  const double w = pow_limited(full, 105.0, pow_beyond(full, 105.0));
  const double e = exp_core::eval(w);
  return {e, e * muladd(magnitude_of(w), 0x1p-50, 0x1p-49)};
}

// RN_T(x^y) from a number next to ln |x|; where `product` is a number, that is x^y rounded to odd.
template <class T>
REPDL_HD decided_value<T> certify_pow(double x, double y, double log, bool is_product, double product) {
  const auto [e, error] = pow_of_logarithm(y * log);
  const double power = (x < 0) & is_odd(y) ? -e : e;
  const bool plain = pow_is_plain(x, y);
  const double v = choose(is_product, product, choose(plain, power, pow_special(x, y)));
  return certify_as<T>(v, plain & !is_product ? error : 0.0);
}

template <>
struct body<ops::pow_scalar> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double v = widen(x);
    const auto [e, f] = pow_reduce(magnitude_of(v));
    return certify_pow<T>(v, p.value[0], log_binary64(e, f), short_form(p) != 0, product(v, p.value[0]));
  }
  template <class T, int N>
  REPDL_HD static decided_value<T> eval(T x, const short_parameters<N>&) {
    if constexpr (N == 1) {
      return decided<T>(canonical(x));
    } else if constexpr (N == 2) {
      return decided<T>(body<ops::mul>::eval(x, x));
    } else {
      return decided_as<T>(product(widen(x), N));
    }
  }
  static constexpr int short_forms = 4;
  REPDL_HD static int short_form(const parameters& p) {
    const double y = p.value[0];
    return (y == 1) | (y == 2) | (y == 3) | (y == 4) ? static_cast<int>(y) : 0;
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    return pow_exact<T>(widen(x), p.value[0], last_tier_bits);
  }

 private:
  // x, x^2, x^3 or x^4, rounded to odd.
  REPDL_HD static double product(double x, double y) {
    const dd r = two_prod(choose(y == 1, x, x * x), choose(y == 4, x * x, choose(y == 3, x, 1.0)));
    return round_to_odd(r.hi, r.lo);
  }
};

template <>
struct body<ops::scalar_pow> {
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const parameters& p) {
    const double base = magnitude_of(p.value[0]);
    const bool tiny = base < 0x1p-1000;
    const auto [e, f] = pow_reduce(tiny ? base * 0x1p200 : base);
    return certify_pow<T>(p.value[0], widen(x), log_binary64(tiny ? e - 200.0 : e, f), false, 0.0);
  }
  template <class T>
  REPDL_HD static decided_value<T> eval(T x, const short_parameters<1>& p) {
    const auto [e, f] = pow_reduce(p.value[0]);
    const double y = widen(x);
    const auto [power, error] = pow_of_logarithm(y * log_binary64(e, f));
    return certify_as<T>(choose(y == y, power, y), error);
  }
  static constexpr int short_forms = 1;
  REPDL_HD static int short_form(const parameters& p) {
    const double base = p.value[0];
    return (base >= 0x1p-1000) & (base < infinity) & (base != 1) ? 1 : 0;
  }
  template <class T>
  REPDL_HD_CALL static decided_value<T> exact(T x, const parameters& p, int last_tier_bits) {
    return pow_exact<T>(p.value[0], widen(x), last_tier_bits);
  }
};

// Binary64. The exponents 1, 2, 3, 4, 1/2, -1 and -2, which are frequent, are products, quotients and a root.
struct pow_scalar64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, const parameters& p) {
    return pow64::plain(x, math<R>::all(p.value[0]));
  }
  template <class R>
  REPDL_HD static R special(R x, const parameters& p) {
    return pow64::special(x, math<R>::all(p.value[0]));
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, const parameters& p) {
    const double y = p.value[0];
    const bool is_short = (y == 1) | (y == 2) | (y == 3) | (y == 4) | (y == 0.5) | (y == -1) | (y == -2);
    return is_short ? short_power(x, y) : pow64::first(x, math<R>::all(y));
  }
  template <class R, int N>
  REPDL_HD static decided_lanes<R> first(R x, const short_parameters<N>&) {
    return short_power(x, static_cast<double>(N));
  }
  REPDL_HD static decided_value<double> known(double x, const parameters& p) { return pow64::known(x, p.value[0]); }
  template <class Ball>
  REPDL_HD static Ball formula(double x, const parameters& p) {
    return pow64::formula<Ball>(x, p.value[0]);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> short_power(R x, double y) {
    const mask_of<R> decided = x == x;
    if (y == 1) return {x, decided};
    if (y == 2) return {x * x, decided};
    if (y == 0.5) return {math<R>::sqrt(x), decided};
    if (y == -1) return {1.0 / x, decided};
    const decided_lanes<R> r = round_with_whole_power(number<dd_ball<R>>(1.0), math<R>::all(0), x, static_cast<int>(y));
    return {y == 3 ? copy_sign(r.value, x) : r.value, r.decided};
  }
};
template <>
struct body64<ops::pow_scalar> : by_formula<pow_scalar64> {};

struct scalar_pow64 {
  template <class R>
  REPDL_HD static mask_of<R> plain(R x, const parameters& p) {
    return pow64::plain(math<R>::all(p.value[0]), x);
  }
  template <class R>
  REPDL_HD static R special(R x, const parameters& p) {
    return pow64::special(math<R>::all(p.value[0]), x);
  }
  template <class R>
  REPDL_HD static decided_lanes<R> first(R x, const parameters& p) {
    return pow64::first(math<R>::all(p.value[0]), x);
  }
  REPDL_HD static decided_value<double> known(double x, const parameters& p) { return pow64::known(p.value[0], x); }
  template <class Ball>
  REPDL_HD static Ball formula(double x, const parameters& p) {
    return pow64::formula<Ball>(p.value[0], x);
  }
};
template <>
struct body64<ops::scalar_pow> : by_formula<scalar_pow64> {};

}  // namespace REPDL_ISA
}  // namespace repdl::num
