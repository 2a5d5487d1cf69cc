#include "reference/numbers/series.hpp"

#include <gmpxx.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace repdl::reference {
namespace {

constexpr error_bound tiny = 0x1p-16000L;

error_bound up(error_bound v) { return v * (1 + 0x1p-30L) + tiny; }
error_bound down(error_bound v) { return std::max<error_bound>(0, v * (1 - 0x1p-30L) - tiny); }
/// v 2^e, infinite or 0 beyond the range.
error_bound scaled_up(error_bound v, mpfr_exp_t e) {
  return std::ldexp(v, static_cast<int>(std::clamp<mpfr_exp_t>(e, -40000, 40000)));
}
/// At least |x|, at most (1 + 2^-52) |x|, or 2^-16000.
error_bound magnitude(mpfr_srcptr x) {
  if (mpfr_zero_p(x) != 0) return 0;
  if (mpfr_regular_p(x) == 0) return unknown;
  long e = 0;
  const double v = mpfr_get_d_2exp(&e, x, MPFR_RNDA);
  return std::max(scaled_up(std::fabs(v), e), tiny);
}
/// Half an ulp: what rounding to nearest may have cost.
error_bound rounding(mpfr_srcptr x) {
  if (mpfr_zero_p(x) != 0) return 0;  // exact: nothing here comes near MPFR's least number
  if (mpfr_regular_p(x) == 0) return unknown;
  return scaled_up(1, mpfr_get_exp(x) - mpfr_get_prec(x) - 1);
}

}  // namespace

template <class F>
ball ball::rounded(mpfr_prec_t p, error_bound radius, F&& f) {
  ball r(p);
  const bool exact = f(r.mid) == 0;
  r.radius = exact && radius == 0 ? 0 : up(radius + rounding(r.mid));
  return r;
}

ball::ball(mpfr_prec_t p, mpfr_srcptr x) : ball(p) {
  if (mpfr_set(mid, x, MPFR_RNDN) != 0) radius = up(rounding(mid));
}
ball::ball(mpfr_prec_t p, double x) : ball(p) {
  if (mpfr_set_d(mid, x, MPFR_RNDN) != 0) radius = up(rounding(mid));
}
ball::ball(mpfr_prec_t p, const char* decimal) : ball(p) {
  mpfr_set_str(mid, decimal, 10, MPFR_RNDN);
  radius = up(rounding(mid));
}
ball& ball::operator=(const ball& o) {
  if (this == &o) return *this;
  if (precision() != o.precision()) mpfr_set_prec(mid, o.precision());
  mpfr_set(mid, o.mid, MPFR_RNDN);
  radius = o.radius;
  return *this;
}

error_bound ball::most() const { return up(magnitude(mid) + radius); }
error_bound ball::least() const {
  // Written so that a NaN gives 0. magnitude() is rounded away from 0, by 2^-52: covered by down().
  const error_bound v = down(magnitude(mid)) - up(radius);
  return v > 0 ? down(v) : 0;
}

ball ball::operator-() const {
  ball r(*this);
  mpfr_neg(r.mid, r.mid, MPFR_RNDN);
  return r;
}
ball operator+(const ball& a, const ball& b) {
  return ball::rounded(std::max(a.precision(), b.precision()), a.radius + b.radius,
                       [&](mpfr_ptr y) { return mpfr_add(y, a.mid, b.mid, MPFR_RNDN); });
}
ball operator-(const ball& a, const ball& b) {
  return ball::rounded(std::max(a.precision(), b.precision()), a.radius + b.radius,
                       [&](mpfr_ptr y) { return mpfr_sub(y, a.mid, b.mid, MPFR_RNDN); });
}
ball operator*(const ball& a, const ball& b) {
  const error_bound radius = a.radius == 0 && b.radius == 0
                                 ? 0
                                 : magnitude(a.mid) * b.radius + magnitude(b.mid) * a.radius + a.radius * b.radius;
  return ball::rounded(std::max(a.precision(), b.precision()), radius,
                       [&](mpfr_ptr y) { return mpfr_mul(y, a.mid, b.mid, MPFR_RNDN); });
}
ball operator/(const ball& a, const ball& b) {
  // |A/B - a/b| <= (|a/b| rb + ra) / |B|
  const error_bound least = b.least();
  ball q(std::max(a.precision(), b.precision()));
  const bool exact = mpfr_div(q.mid, a.mid, b.mid, MPFR_RNDN) == 0;
  if (!(least > 0)) {
    q.radius = unknown;
  } else if (!exact || a.radius != 0 || b.radius != 0) {
    const error_bound r = rounding(q.mid);
    q.radius = up(((magnitude(q.mid) + r) * b.radius + a.radius) / least + r);
  }
  return q;
}
ball ball::over(unsigned long n) const {
  return rounded(precision(), radius / static_cast<error_bound>(n),
                 [&](mpfr_ptr y) { return mpfr_div_ui(y, mid, n, MPFR_RNDN); });
}
ball ball::times(unsigned long n) const {
  return rounded(precision(), radius * static_cast<error_bound>(n),
                 [&](mpfr_ptr y) { return mpfr_mul_ui(y, mid, n, MPFR_RNDN); });
}
ball ball::scaled(mpfr_exp_t exponent) const {
  ball r(precision());
  mpfr_mul_2si(r.mid, mid, exponent, MPFR_RNDN);
  if (radius != 0) r.radius = up(scaled_up(radius, exponent));
  return r;
}

namespace {

/// f of a ball's middle; the radius from that of the argument, a bound of |f'| on the ball times its radius.
template <class F>
ball at(const ball& a, error_bound radius, F&& f) {
  return ball::rounded(a.precision(), a.radius == 0 ? 0 : radius, [&](mpfr_ptr y) { return f(y, a.mid, MPFR_RNDN); });
}
/// An exponential: |y| (e^r - 1), and e^r - 1 <= r + r^2 for r <= 1. `most` is not below y at the middle.
error_bound exponential_radius(error_bound most, error_bound r) { return r <= 1 ? up(most) * (r + r * r) : unknown; }

ball exponential(const ball& a) {
  ball y = at(a, 0, mpfr_exp);
  if (a.radius != 0) y.radius = up(y.radius + exponential_radius(magnitude(y.mid), a.radius));
  return y;
}

}  // namespace

series::series(int n, const ball& centre, const ball& width)
    : c(static_cast<std::size_t>(n) + 1, ball(centre.precision())) {
  c[0] = centre;
  if (n > 0) c[1] = width;
}

series series::constant(const ball& v) const {
  series r(v);
  r.c.resize(c.size(), ball(precision()));
  return r;
}
series series::pi() const {
  return constant(ball::rounded(precision(), 0, [](mpfr_ptr y) { return mpfr_const_pi(y, MPFR_RNDN); }));
}

series series::operator-() const {
  series r(*this);
  for (ball& b : r.c) b = -b;
  return r;
}
series operator+(const series& a, const series& b) {
  series r(a);
  for (std::size_t k = 0; k < r.c.size(); ++k) r.c[k] = a.c[k] + b.c[k];
  return r;
}
series operator*(const series& a, const series& b) {
  series r = a.constant(a.c[0] * b.c[0]);
  for (std::size_t k = 1; k < r.c.size(); ++k) {
    r.c[k] = a.c[0] * b.c[k];
    for (std::size_t j = 1; j <= k; ++j) r.c[k] = r.c[k] + a.c[j] * b.c[k - j];
  }
  return r;
}
series operator/(const series& a, const series& b) {
  series r = a.constant(a.c[0] / b.c[0]);
  for (std::size_t k = 1; k < r.c.size(); ++k) {
    ball t = a.c[k];
    for (std::size_t j = 1; j <= k; ++j) t = t - b.c[j] * r.c[k - j];
    r.c[k] = t / b.c[0];
  }
  return r;
}

template <class G>
series series::integral(const ball& y0, const series& a, G&& g) {
  series y = a.constant(y0);
  for (std::size_t k = 1; k < y.c.size(); ++k) {
    ball t = a.c[1] * g(y, k - 1);
    for (std::size_t j = 2; j <= k; ++j) t = t + a.c[j].times(j) * g(y, k - j);
    y.c[k] = t.over(k);
  }
  return y;
}

series exp(const series& a) {
  return series::integral(exponential(a.c[0]), a, [](const series& y, std::size_t k) { return y.c[k]; });
}
series exp2(const series& a) {
  const ball ln2 = ball::rounded(a.precision(), 0, [](mpfr_ptr y) { return mpfr_const_log2(y, MPFR_RNDN); });
  ball y0 = at(a.c[0], 0, mpfr_exp2);
  if (a.c[0].radius != 0) {
    y0.radius = up(y0.radius + exponential_radius(magnitude(y0.mid), a.c[0].radius * 0.6931471805599454));
  }
  return series::integral(y0, a * a.constant(ln2), [](const series& y, std::size_t k) { return y.c[k]; });
}
series expm1(const series& a) {
  series y = exp(a);
  ball y0 = at(a.c[0], 0, mpfr_expm1);
  if (a.c[0].radius != 0) y0.radius = up(y0.radius + exponential_radius(magnitude(y.c[0].mid), a.c[0].radius));
  y.c[0] = y0;
  return y;
}

/// y0 + the integral of a' / argument.
series series::logarithm(const ball& y0, const series& a, const series& argument) {
  series y = a.constant(y0);
  for (std::size_t k = 1; k < y.c.size(); ++k) {
    ball t = a.c[k].times(k);
    for (std::size_t j = 1; j < k; ++j) t = t - y.c[j].times(j) * argument.c[k - j];
    y.c[k] = t.over(k) / argument.c[0];
  }
  return y;
}
series log(const series& a) { return series::logarithm(at(a.c[0], a.c[0].radius / a.c[0].least(), mpfr_log), a, a); }
series log1p(const series& a) {
  const series argument = a + 1;
  return series::logarithm(at(a.c[0], a.c[0].radius / argument.c[0].least(), mpfr_log1p), a, argument);
}

// y = a^q solves a y' = q a' y: k a_0 y_k is the sum over j = 1 to k of ((q + 1) j - k) a_j y_(k-j).
series series::power(const ball& y0, const series& a, int n, int d) {
  series y = a.constant(y0);
  for (int k = 1; k <= y.order(); ++k) {
    ball t(a.precision());
    for (int j = 1; j <= k; ++j) {
      const int factor = (n + d) * j - d * k;
      const ball term = (a.c[static_cast<std::size_t>(j)] * y.c[static_cast<std::size_t>(k - j)])
                            .times(static_cast<unsigned long>(std::abs(factor)));
      t = factor < 0 ? t - term : t + term;
    }
    y.c[static_cast<std::size_t>(k)] =
        t.over(static_cast<unsigned long>(k)).over(static_cast<unsigned long>(d)) / a.c[0];
  }
  return y;
}
series rsqrt(const series& a) {
  const error_bound least = a.c[0].least();  // |f'| = 1 / (2 x sqrt x)
  return series::power(at(a.c[0], a.c[0].radius / (2 * least * std::sqrt(least)), mpfr_rec_sqrt), a, -1, 2);
}
series cbrt(const series& a) {
  const error_bound root = std::cbrt(a.c[0].least());  // f' = 1 / (3 y^2)
  return series::power(at(a.c[0], a.c[0].radius / (3 * root * root), mpfr_cbrt), a, 1, 3);
}
series sqrt(const series& a) { return a * rsqrt(a); }

namespace {
/// Sine and cosine together; their derivatives are at most 1.
std::pair<series, series> sine_and_cosine(const series& a) {
  series s = a.constant(at(a.c[0], a.c[0].radius, mpfr_sin)), c = a.constant(at(a.c[0], a.c[0].radius, mpfr_cos));
  for (std::size_t k = 1; k < s.c.size(); ++k) {
    ball u(a.precision()), v(a.precision());
    for (std::size_t j = 1; j <= k; ++j) {
      const ball d = a.c[j].times(j);
      u = u + d * c.c[k - j];
      v = v - d * s.c[k - j];
    }
    s.c[k] = u.over(k);
    c.c[k] = v.over(k);
  }
  return {s, c};
}
}  // namespace
series sin(const series& a) { return sine_and_cosine(a).first; }
series cos(const series& a) { return sine_and_cosine(a).second; }

series sinpi(const series& a) {
  // a = n / 2 + d, n the integer nearest to twice the middle of a's ball: n mod 4 says which of the four quarters' functions
  // of d it is. The difference of the middles is exact, so that nothing is lost next to the zeros.
  ball half(a.precision());
  mpfr_mul_2ui(half.mid, a.c[0].mid, 1, MPFR_RNDN);
  if (mpfr_number_p(half.mid) == 0) return a.constant(ball(a.precision(), HUGE_VAL));
  mpfr_rint(half.mid, half.mid, MPFR_RNDN);
  mpz_class n;
  mpfr_get_z(n.get_mpz_t(), half.mid, MPFR_RNDN);
  const auto quarter = mpz_fdiv_ui(n.get_mpz_t(), 4);
  const auto [s, c] = sine_and_cosine((a - a.constant(half.scaled(-1))) * a.pi());
  const series& y = quarter % 2 == 0 ? s : c;
  return quarter < 2 ? y : -y;
}

series series::tangent(const ball& y0, const series& a, bool plus) {
  return integral(y0, a, [&](const series& y, std::size_t k) {
    ball t(y.precision(), k == 0 ? 1.0 : 0.0);
    for (std::size_t j = 0; j <= k; ++j) t = plus ? t + y.c[j] * y.c[k - j] : t - y.c[j] * y.c[k - j];
    return t;
  });
}
series tan(const series& a) {
  const auto [s, c] = sine_and_cosine(series(a.c[0]));
  return series::tangent(s.c[0] / c.c[0], a, true);
}
series tanh(const series& a) {
  // f' = 1 - y^2 <= min(1, 4 e^(-2x)) for x >= 0, e^-1 < 2^-1
  const error_bound nearest = std::min<error_bound>(a.c[0].least(), 500);
  const error_bound slope = std::min<error_bound>(1, scaled_up(4, -static_cast<int>(2 * nearest)));
  return series::tangent(at(a.c[0], slope * a.c[0].radius, mpfr_tanh), a, false);
}

template <class F, class G>
series series::primitive(const series& a, F&& f, G&& slope) {
  if (a.order() == 0 && a.c[0].radius == 0) return series(at(a.c[0], 0, f));
  // The mean value theorem: the constant term of the slope encloses f' on the ball. Where the ball leaves f's domain,
  // that is unknown, or f of the middle NaN.
  const series g = slope(a);
  return integral(at(a.c[0], a.c[0].radius * g.c[0].most(), f), a,
                  [&](const series&, std::size_t k) { return g.c[k]; });
}
series asin(const series& a) {
  return series::primitive(a, mpfr_asin, [](const series& x) { return rsqrt((1 - x) * (1 + x)); });
}
series acos(const series& a) {
  return series::primitive(a, mpfr_acos, [](const series& x) { return -rsqrt((1 - x) * (1 + x)); });
}
series atan(const series& a) {
  return series::primitive(a, mpfr_atan, [](const series& x) { return 1 / (1 + x * x); });
}
series sinh(const series& a) {
  return series::primitive(a, mpfr_sinh, [](const series& x) { return (exp(x) + exp(-x)) / 2; });
}
series cosh(const series& a) {
  return series::primitive(a, mpfr_cosh, [](const series& x) { return (exp(x) - exp(-x)) / 2; });
}
series asinh(const series& a) {
  return series::primitive(a, mpfr_asinh, [](const series& x) { return rsqrt(1 + x * x); });
}
series acosh(const series& a) {
  return series::primitive(a, mpfr_acosh, [](const series& x) { return rsqrt((x - 1) * (x + 1)); });
}
series atanh(const series& a) {
  return series::primitive(a, mpfr_atanh, [](const series& x) { return 1 / ((1 - x) * (1 + x)); });
}

series erfc(const series& a) {
  const ball& x = a.c[0];
  ball y0 = at(x, 0, mpfr_erfc);
  if (x.radius != 0) {
    // |f'(t)| = 2 / sqrt(pi) e^(-t^2) < 1.13, and for t >= 0 it is below erfc(t) (t + sqrt(t^2 + 2)), so below
    // erfc(t) (2t + 2). Within r of m >= 0 it is at most e^(2mr) times its value at m, and e^(2mr) < 3 for 2mr <= 1.
    const error_bound m = mpfr_get_d(x.mid, MPFR_RNDU), r = x.radius;
    const bool steep = m >= r && 2 * m * r <= 1;
    y0.radius = up(y0.radius + (steep ? 3 * r * magnitude(y0.mid) * (2 * m + 2) : 1.13L * r));
  }
  if (a.order() == 0) return series(y0);
  const series g = exp(-(a * a)) * -2.0 / sqrt(a.pi());
  return series::integral(y0, a, [&](const series&, std::size_t k) { return g.c[k]; });
}
series erf(const series& a) {
  const ball y0 = at(a.c[0], 1.13 * a.c[0].radius, mpfr_erf);
  if (a.order() == 0) return series(y0);
  const series g = exp(-(a * a)) * 2.0 / sqrt(a.pi());
  return series::integral(y0, a, [&](const series&, std::size_t k) { return g.c[k]; });
}

namespace {

/// erf or erfc.
using error_function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

/// Compares f(y) with x: less than 0 is sure where f is rounded up, greater than 0 where down.
int compare(error_function f, mpfr_srcptr y, mpfr_rnd_t rounding, mpfr_srcptr x) {
  mpfr_t v;
  mpfr_init2(v, mpfr_get_prec(y));
  f(v, y, rounding);
  const int order = mpfr_cmp(v, x);
  mpfr_clear(v);
  return order;
}

/// A number near the y with erf y = v, 0 < v < 1.
double guess_erfinv(double v) {
  if (v < 0.25) return v * 0.9;
  double z = std::sqrt(-std::log1p(-v * v));  // for erfc, which is convex, Newton's method converges from anywhere near
  for (int i = 0; i < 8; ++i) z += (std::erfc(z) - (1 - v)) * 0.8862 * std::exp(z * z);
  return z;
}
/// With erfc y = v, 0 < v <= 1/2: erfc y is about e^(-y^2) / (y sqrt pi).
double guess_erfcinv(double v) {
  if (v > 1e-6) return guess_erfinv(1 - v);
  double z = std::sqrt(-std::log(v));
  for (int i = 0; i < 4; ++i) z = std::sqrt(-std::log(v) - std::log(z * 1.7724538));
  for (int i = 0; i < 3 && v > 1e-290; ++i) z += (std::erfc(z) / v - 1) * v * 0.8862 * std::exp(z * z);
  return z;
}

/// The y > 0 with f(y) = x, to within 2^-(p + 2) of itself, p the precision of y: Newton's method until f, which is
/// monotone, is below x on one side and above it on the other.
bool invert(error_function f, double guess, mpfr_ptr y, mpfr_srcptr x) {
  const mpfr_prec_t p = mpfr_get_prec(y);
  const bool increasing = f == mpfr_erf;
  mpfr_t m, step, slope, side;
  mpfr_inits2(p + 64, m, step, slope, side, nullptr);
  mpfr_set_d(m, guess, MPFR_RNDN);
  bool enclosed = false;
  for (int i = 0; i < 24 && !enclosed; ++i) {
    f(step, m, MPFR_RNDN);
    mpfr_sub(step, x, step, MPFR_RNDN);
    mpfr_sqr(slope, m, MPFR_RNDN);
    mpfr_exp(slope, slope, MPFR_RNDN);
    mpfr_mul(step, step, slope, MPFR_RNDN);
    mpfr_const_pi(slope, MPFR_RNDN);
    mpfr_sqrt(slope, slope, MPFR_RNDN);
    mpfr_mul(step, step, slope, MPFR_RNDN);
    mpfr_div_2ui(step, step, 1, MPFR_RNDN);
    (increasing ? mpfr_add : mpfr_sub)(m, m, step, MPFR_RNDN);
    if (mpfr_zero_p(step) == 0 && mpfr_get_exp(step) > mpfr_get_exp(m) - p / 2 - 8) continue;
    mpfr_div_2si(slope, m, p + 4, MPFR_RNDN);
    mpfr_sub(side, m, slope, MPFR_RNDD);
    enclosed = increasing ? compare(f, side, MPFR_RNDU, x) < 0 : compare(f, side, MPFR_RNDD, x) > 0;
    mpfr_add(side, m, slope, MPFR_RNDU);
    enclosed = enclosed && (increasing ? compare(f, side, MPFR_RNDD, x) > 0 : compare(f, side, MPFR_RNDU, x) < 0);
  }
  mpfr_set(y, m, MPFR_RNDN);
  mpfr_clears(m, step, slope, side, nullptr);
  return enclosed;
}

}  // namespace

series series::inverse_error_function(const ball& y0, const series& a, bool plus) {
  if (a.order() == 0) return series(y0);
  // y' = a' g, g = sqrt(pi) / 2 e^(y^2): with z = y^2, k g_k = sum over j = 1 to k of j z_j g_(k-j).
  std::vector<ball> z, g;
  const ball half_root = ((plus ? sqrt(a.pi()) : -sqrt(a.pi())) / 2).c[0];
  return integral(y0, a, [&](const series& y, std::size_t k) {
    while (g.size() <= k) {
      const std::size_t n = g.size();
      ball square(y.precision());
      for (std::size_t j = 0; j <= n; ++j) square = square + y.c[j] * y.c[n - j];
      z.push_back(square);
      ball t(y.precision());
      for (std::size_t j = 1; j <= n; ++j) t = t + z[j].times(j) * g[n - j];
      g.push_back(n == 0 ? half_root * exponential(z[0]) : t.over(n));
    }
    return g[k];
  });
}

series erfinv(const series& a) {
  const ball& x = a.c[0];
  ball y0(a.precision());
  if (mpfr_zero_p(x.mid) == 0) {
    mpfr_t magnitude;
    mpfr_init2(magnitude, mpfr_get_prec(x.mid));
    mpfr_abs(magnitude, x.mid, MPFR_RNDN);
    const double guess = guess_erfinv(mpfr_get_d(magnitude, MPFR_RNDD));
    const bool known = mpfr_cmp_ui(magnitude, 1) < 0 && invert(mpfr_erf, guess, y0.mid, magnitude);
    y0.radius = known ? up(rounding(y0.mid) * 2) : unknown;
    mpfr_setsign(y0.mid, y0.mid, mpfr_signbit(x.mid), MPFR_RNDN);
    mpfr_clear(magnitude);
  }
  if (x.radius != 0) {
    // f' = sqrt(pi) / 2 e^(f^2), and e^-(y^2) >= erfc(y) = 1 - |x|.
    const error_bound rest = 1 - x.most();
    y0.radius = up(y0.radius + (rest > 0 ? 0.8863 / down(rest) * x.radius : unknown));
  }
  return series::inverse_error_function(y0, a, true);
}

series erfcinv(const series& a) {
  const ball& x = a.c[0];
  if (!(mpfr_cmp_d(x.mid, 0.5) < 0)) return erfinv(1 - a);  // exact next to 1
  ball y0(a.precision());
  const double v = mpfr_get_d(x.mid, MPFR_RNDD);
  const bool known = v > 0 && invert(mpfr_erfc, guess_erfcinv(v), y0.mid, x.mid);
  y0.radius = known ? up(rounding(y0.mid) * 2) : unknown;
  // |f'| = sqrt(pi) / 2 e^(f^2), and e^-(y^2) >= erfc(y), y >= 0: for x <= 1.
  if (x.radius != 0)
    y0.radius = up(y0.radius + (x.least() > 0 && x.most() <= 1 ? 0.8863 / x.least() * x.radius : unknown));
  return series::inverse_error_function(y0, a, false);
}

}  // namespace repdl::reference
