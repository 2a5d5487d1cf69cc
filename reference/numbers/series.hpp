// Truncated power series whose coefficients are balls: MPFR numbers with a bound of their error. One expression,
// written once, is evaluated at a number (order 0: what Ziv's loop rounds), expanded about a number (a Taylor
// polynomial), and expanded about a whole interval (a bound of that polynomial's remainder).
#pragma once

#include <mpfr.h>

#include <limits>
#include <vector>

namespace repdl::reference {

/// A bound. Of more exponents than binary64: errors of binary64's subnormal results are far below its least number.
using error_bound = long double;
static_assert(std::numeric_limits<error_bound>::digits >= 53 &&
              std::numeric_limits<error_bound>::min_exponent < -16000);
inline constexpr error_bound unknown = std::numeric_limits<error_bound>::infinity();

/// The real numbers within `radius` of `mid`. Every operation encloses all exact results of numbers in its operands:
/// mid is rounded to nearest, which costs half an ulp; the radius adds to that what the operands' radii do; each formula has at most
/// ten roundings of 2^-53 and is enlarged by 2^-30 and by 2^-16000, which also covers underflow. An infinite or NaN radius says that
/// nothing is known.
class ball {
 public:
  explicit ball(mpfr_prec_t p) {
    mpfr_init2(mid, p);
    mpfr_set_zero(mid, 1);
  }
  /// A number that p bits may have to round.
  ball(mpfr_prec_t p, mpfr_srcptr x);
  ball(mpfr_prec_t p, double x);
  /// The exact decimal number.
  ball(mpfr_prec_t p, const char* decimal);
  ball(const ball& o) : ball(mpfr_get_prec(o.mid)) { *this = o; }
  ball& operator=(const ball& o);
  ~ball() { mpfr_clear(mid); }

  mpfr_prec_t precision() const { return mpfr_get_prec(mid); }
  error_bound most() const;   ///< not below any |number| in the ball
  error_bound least() const;  ///< not above any, at least 0

  ball operator-() const;
  friend ball operator+(const ball& a, const ball& b);
  friend ball operator-(const ball& a, const ball& b);
  friend ball operator*(const ball& a, const ball& b);
  friend ball operator/(const ball& a, const ball& b);
  ball over(unsigned long n) const;        ///< divided by n
  ball times(unsigned long n) const;       ///< multiplied by n
  ball scaled(mpfr_exp_t exponent) const;  ///< by 2^exponent, exact

  mpfr_t mid;
  error_bound radius = 0;

  /// Sets mid = f(mid), RNDN, of a ball whose radius is known but for the rounding.
  template <class F>
  static ball rounded(mpfr_prec_t p, error_bound radius, F&& f);
};

/// c[0] + c[1] s + ... + c[n] s^n + O(s^(n+1)).
class series {
 public:
  explicit series(const ball& constant) : c{constant} {}
  /// centre + width s, to order n.
  series(int n, const ball& centre, const ball& width);

  int order() const { return static_cast<int>(c.size()) - 1; }
  mpfr_prec_t precision() const { return c[0].precision(); }
  /// A number, as a series of the order and the precision of this one.
  series constant(const ball& v) const;
  series constant(double v) const { return constant(ball(precision(), v)); }
  series decimal(const char* v) const { return constant(ball(precision(), v)); }

  series operator-() const;
  friend series operator+(const series& a, const series& b);
  friend series operator-(const series& a, const series& b) { return a + -b; }
  friend series operator*(const series& a, const series& b);
  friend series operator/(const series& a, const series& b);
  friend series operator+(const series& a, double b) { return a + a.constant(b); }
  friend series operator-(const series& a, double b) { return a + -b; }
  friend series operator*(const series& a, double b) { return a * a.constant(b); }
  friend series operator/(const series& a, double b) { return a / a.constant(b); }
  friend series operator+(double a, const series& b) { return b + a; }
  friend series operator-(double a, const series& b) { return -b + a; }
  friend series operator/(double a, const series& b) { return b.constant(a) / b; }

  friend series exp(const series& a);
  friend series exp2(const series& a);
  friend series expm1(const series& a);
  friend series log(const series& a);
  friend series log1p(const series& a);
  friend series sqrt(const series& a);
  friend series rsqrt(const series& a);
  friend series cbrt(const series& a);
  friend series sin(const series& a);
  friend series cos(const series& a);
  friend series tan(const series& a);
  /// sin(pi a)
  friend series sinpi(const series& a);
  friend series asin(const series& a);
  friend series acos(const series& a);
  friend series atan(const series& a);
  friend series sinh(const series& a);
  friend series cosh(const series& a);
  friend series tanh(const series& a);
  friend series asinh(const series& a);
  friend series acosh(const series& a);
  friend series atanh(const series& a);
  friend series erf(const series& a);
  friend series erfc(const series& a);
  /// |a| < 1 on the ball.
  friend series erfinv(const series& a);
  /// 0 < a < 2 on the ball.
  friend series erfcinv(const series& a);
  /// For a ball that does not contain 0 inside.
  friend series abs(const series& a) { return a.negative() ? -a : a; }
  bool negative() const { return mpfr_signbit(c[0].mid) != 0; }
  series pi() const;

  std::vector<ball> c;

 private:
  /// y with y' = a' g, y(0) = y0, where g(k) is the coefficient k of g and may read y's up to k.
  template <class G>
  static series integral(const ball& y0, const series& a, G&& g);
  static series logarithm(const ball& y0, const series& a, const series& argument);
  /// a^(n/d), d > 0, whose constant term is y0.
  static series power(const ball& y0, const series& a, int n, int d);
  /// y with y' = a' (1 + y^2), or a' (1 - y^2), y(0) = y0.
  static series tangent(const ball& y0, const series& a, bool plus);
  /// y with y' = a' e^(y^2) sqrt(pi) / 2 or minus that, y(0) = y0.
  static series inverse_error_function(const ball& y0, const series& a, bool plus);
  /// f(a), f a function of MPFR; slope(a) is f'(a).
  template <class F, class G>
  static series primitive(const series& a, F&& f, G&& slope);
};

/// The logarithm of the normal distribution; modified Bessel functions, and e^-|a| times them; ln |gamma|, gamma and its
/// logarithm's derivative (special.cpp). abs(a) and a.negative() stand for a ball that does not contain 0 inside.
series log_normal_distribution(const series& a);
series bessel_i0(const series& a);
series bessel_i1(const series& a);
series bessel_i0e(const series& a);
series bessel_i1e(const series& a);
series lgamma(const series& a);
series tgamma(const series& a);
series digamma(const series& a);

}  // namespace repdl::reference
