// Bessel and gamma functions, and the logarithm of the normal distribution, over series of balls: what MPFR has no function
// for, or no derivatives.
//
// Three of them are, from some x on, Laplace transforms f(x) = integral over u > 0 of e^(-xu) dm(u), m positive. Then
// (-1)^j f^(j)(x) is the moment M_j(x), the integral of u^j e^(-xu) dm(u), positive and decreasing, with
// M_j' = -M_(j+1); and it has an asymptotic series, which ends with a bound of what it leaves out.
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "reference/numbers/series.hpp"

namespace repdl::reference {
namespace {

/// The numbers within r of 0.
ball around_zero(mpfr_prec_t p, error_bound r) {
  ball b(p);
  b.radius = r;
  return b;
}
double middle(const series& a) { return mpfr_get_d(a.c[0].mid, MPFR_RNDN); }
/// x^-n
ball inverse_power(const ball& x, unsigned n) {
  ball y(x.precision(), 1.0);
  for (unsigned i = 0; i < n; ++i) y = y / x;
  return y;
}

template <class M>
series laplace_transform(const series& a, M&& moment) {
  const ball& x = a.c[0];
  const mpfr_prec_t p = a.precision();
  ball centre = x, lowest = x;
  centre.radius = lowest.radius = 0;
  if (x.radius != 0) {
    mpfr_set_ld(lowest.mid, x.radius, MPFR_RNDU);
    mpfr_sub(lowest.mid, x.mid, lowest.mid, MPFR_RNDD);
  }
  std::vector<ball> f;
  for (unsigned j = 0; j < a.c.size(); ++j) {
    ball m = moment(j, centre);
    if (x.radius != 0) {  // the mean value theorem
      const bool positive = mpfr_sgn(lowest.mid) > 0;
      m = m + around_zero(p, positive ? moment(j + 1, lowest).most() * x.radius * 1.001L : unknown);
    }
    for (unsigned i = 2; i <= j; ++i) m = m.over(i);
    f.push_back(j % 2 == 0 ? m : -m);
  }
  series step = a;
  step.c[0] = ball(p);
  series y = a.constant(f.back());
  for (std::size_t j = f.size() - 1; j-- > 0;) y = y * step + a.constant(f[j]);
  return y;
}

/// t_0 + ... + t_(k-1), t_0 = term(first, 0), t_k = term(next(...), k), until the terms are small or grow, with a radius of
/// `times` |t_k|.
template <class Next, class Term>
ball asymptotic_sum(const ball& first, int times, Next&& next, Term&& term) {
  const mpfr_prec_t p = first.precision();
  ball t = first, sum(p);
  ball now = term(t, 0);
  const error_bound enough = std::ldexp(now.most(), -static_cast<int>(p) - 8);
  for (unsigned k = 0;; ++k) {
    sum = sum + now;
    t = next(t, k);
    const ball after = term(t, k + 1);
    if (after.most() <= enough || !(after.most() < now.most())) {
      return sum + around_zero(p, static_cast<error_bound>(times) * after.most());
    }
    now = after;
  }
}
const auto as_it_is = [](const ball& t, unsigned) { return t; };

/// Of Mills' ratio, the integral of e^(-zu - u^2 / 2): e^(-s) lies between any two successive sums of its Taylor series, so that
/// an error is below the first term left out. The terms are (-1)^k (2k + j)! / (2^k k! z^(2k + j + 1)).
ball mills_moment(unsigned j, const ball& z) {
  ball first = inverse_power(z, j + 1);
  for (unsigned i = 2; i <= j; ++i) first = first.times(i);
  const ball square = z * z;
  return asymptotic_sum(
      first, 1,
      [&](const ball& t, unsigned k) {
        return -(t.times(2 * k + j + 1).times(2 * k + j + 2).over(2 * (k + 1)) / square);
      },
      as_it_is);
}

/// Of e^-x I_0(x), with u = 1 - cos angle the integral from 0 to 2 of e^(-xu) (2u)^(-1/2) (1 - u / 2)^(-1/2) / pi. The last
/// factor is the sum of b_k u^k, b_k = (2k over k) / 8^k <= 2^-k, b_(k+1) < b_k / 2. Summed to k < K and integrated to
/// infinity it has the terms t_k = b_k (1/2)(3/2)...(k + j - 1/2) x^-(k + j) / sqrt(2 pi x). What is wrong, by parts:
/// - up to 1: the rest of the sum is below 2 b_K u^K: 2 t_K;
/// - from 1 to 2: less than all of the factor, whose integral there is 2 sqrt 2: 2^j e^-x;
/// - beyond 2: the sum is below K (u / 2)^K, and u / 2 < e^(u/2 - 1): 2^j K e^-2x if x > K + j + 1, which is less than 2^j e^-x.
ball bessel_moment(unsigned j, const ball& x) {
  const series s(x);
  ball first = rsqrt(s.pi() * s * 2.0).c[0];
  for (unsigned i = 0; i < j; ++i) first = first.times(2 * i + 1).over(2) / x;
  unsigned terms = 0;
  const ball sum = asymptotic_sum(
      first, 2,
      [&](const ball& t, unsigned k) {
        terms = k + 1;
        return t.times(2 * k + 1).times(2 * k + 2 * j + 1).over(8 * (k + 1)) / x;
      },
      as_it_is);
  if (!(x.least() > terms + j + 1)) return around_zero(x.precision(), unknown);
  return sum + around_zero(x.precision(), std::ldexp(exp(-s).c[0].most(), static_cast<int>(j) + 1));
}

/// zeta(n), n even and not 0. What was found before is kept: most of the time would go into it.
const ball& zeta_of_even(mpfr_prec_t p, std::size_t n) {
  thread_local std::map<mpfr_prec_t, std::vector<ball>> found;
  std::vector<ball>& values = found[p];
  while (values.size() < n / 2) {
    ball zeta(p);
    mpfr_zeta_ui(zeta.mid, 2 * values.size() + 2, MPFR_RNDN);
    zeta.radius = std::ldexp(1.0L, -static_cast<int>(p));  // half an ulp of a number in [1, 2)
    values.push_back(zeta);
  }
  return values[n / 2 - 1];
}

/// Of what Stirling's formula lacks (Binet): the integral of e^(-zu) w(u), w = (1/2 - 1/u + 1/(e^u - 1)) / u, which is the sum over
/// n >= 1 of 2 / (u^2 + 4 pi^2 n^2): each lies between successive sums of its geometric series, so that an error is below the
/// first term left out. The terms, k >= 0, are (-1)^k 2 zeta(2k + 2) (2k + j)! / ((2 pi)^(2k + 2) z^(2k + j + 1)).
ball stirling_moment(unsigned j, const ball& z) {
  const ball turn = series(z).pi().c[0].times(2), square = turn * turn, both = square * z * z;
  ball first = inverse_power(z, j + 1).times(2) / square;
  for (unsigned i = 2; i <= j; ++i) first = first.times(i);
  return asymptotic_sum(
      first, 1, [&](const ball& t, unsigned k) { return -(t.times(2 * k + j + 1).times(2 * k + j + 2) / both); },
      [](const ball& t, unsigned k) { return t * zeta_of_even(t.precision(), 2 * k + 2); });
}

/// I_0 and I_1 together: I_0' = I_1, I_1' = I_0 - I_1 / x.
std::pair<series, series> bessel(const series& a) {
  const ball& x = a.c[0];
  ball centre = x;
  centre.radius = 0;
  // With q = x^2 / 4, the sums of t_k = q^k / k!^2, and x / 2 times that of t_k / (k + 1). From (k + 1)^2 >= 2q on each t is at
  // most half of the one before: what is left out is below twice the first.
  const ball q = (centre * centre).scaled(-2);
  ball t(a.precision(), 1.0), even(a.precision()), odd(a.precision());
  for (unsigned long k = 0;; ++k) {
    if (k > 0) t = (t * q).over(k).over(k);
    if (static_cast<error_bound>(k + 1) * static_cast<error_bound>(k + 1) >= 2 * q.most() &&
        t.most() <= std::ldexp(even.most(), -static_cast<int>(a.precision()) - 8)) {
      break;
    }
    if (k > 1000000) t.radius = unknown;
    even = even + t;
    odd = odd + t.over(k + 1);
    if (!(t.radius < unknown)) break;
  }
  const ball rest = around_zero(a.precision(), 2 * t.most());
  even = even + rest;
  odd = (odd + rest) * centre.scaled(-1);
  if (const error_bound r = x.radius; r != 0) {
    // |I_1| < I_0, so that within r of x I_0 is at most e^r times as large, and |I_1'| is not above I_0; e^r - 1 <= r + r^2.
    const error_bound growth = r <= 1 ? r + r * r : unknown, most = even.most() * 1.001L;
    even = even + around_zero(a.precision(), most * growth);
    odd = odd + around_zero(a.precision(), most * (1 + growth) * r);
  }
  series i0 = a.constant(even), i1 = a.constant(odd);
  std::vector<ball> ratio;  // I_1 / x
  for (std::size_t k = 1; k < a.c.size(); ++k) {
    ball e = i1.c[k - 1];
    for (std::size_t j = 1; j < k; ++j) e = e - a.c[j] * ratio[k - 1 - j];
    ratio.push_back(e / x);
    ball u(a.precision()), v(a.precision());
    for (std::size_t j = 1; j <= k; ++j) {
      const ball d = a.c[j].times(j);
      u = u + d * i1.c[k - j];
      v = v + d * (i0.c[k - j] - ratio[k - j]);
    }
    i0.c[k] = u.over(k);
    i1.c[k] = v.over(k);
  }
  return {i0, i1};
}
/// Where the asymptotic series has all bits: its least term is about e^-2x.
bool far(const series& a) { return std::fabs(middle(a)) >= 2.0 * static_cast<double>(a.precision()); }

/// a + n, n >= 0 the least with which Stirling's formula has all bits, e^(-2 pi z) < 2^(-9z); each(a + i) for i < n.
template <class F>
series shifted(const series& a, F&& each) {
  series z = a;
  while (middle(z) < static_cast<double>(a.precision()) / 4) {
    each(z);
    z = z + 1;
  }
  return z;
}
series stirling(const series& z) {
  return (z - 0.5) * log(z) - z + log(z.pi() * 2) / 2 + laplace_transform(z, stirling_moment);
}

}  // namespace

series log_normal_distribution(const series& a) {
  const series root = sqrt(a.constant(2));
  if (!a.negative()) return log1p(-erfc(a / root) / 2);
  // Phi(-z) is the density at z times Mills' ratio, whose least term is about e^(-z^2 / 2).
  const double z = -middle(a);
  if (z * z < 2.0 * static_cast<double>(a.precision())) return log(erfc(-a / root) / 2);
  return log(laplace_transform(-a, mills_moment)) - (a * a + log(a.pi() * 2)) / 2;
}

series bessel_i0(const series& a) { return bessel(a).first; }
series bessel_i1(const series& a) { return bessel(a).second; }
series bessel_i0e(const series& a) {
  if (!far(a)) return exp(-abs(a)) * bessel_i0(a);
  return laplace_transform(abs(a), bessel_moment);
}
series bessel_i1e(const series& a) {
  if (!far(a)) return exp(-abs(a)) * bessel_i1(a);
  // The factor is cos angle = 1 - u.
  const series x = abs(a), y = laplace_transform(x, bessel_moment) -
                               laplace_transform(x, [](unsigned j, const ball&v) { return bessel_moment(j + 1, v); });
  return a.negative() ? -y : y;
}

series lgamma(const series& a) {
  if (a.negative()) return log(a.pi() / abs(sinpi(a))) - lgamma(1 - a);
  series product = a.constant(1);
  const series z = shifted(a, [&](const series& factor) { product = product * factor; });
  return stirling(z) - log(product);
}
series tgamma(const series& a) {
  if (a.negative()) return a.pi() / (sinpi(a) * tgamma(1 - a));
  series product = a.constant(1);
  const series z = shifted(a, [&](const series& factor) { product = product * factor; });
  return exp(stirling(z)) / product;
}
series digamma(const series& a) {
  if (a.negative()) return digamma(1 - a) - a.pi() * sinpi(a + 0.5) / sinpi(a);
  series sum = a.constant(0);
  const series z = shifted(a, [&](const series& term) { sum = sum + 1 / term; });
  const auto next_moment = [](unsigned j, const ball& v) { return stirling_moment(j + 1, v); };
  return log(z) - 0.5 / z - laplace_transform(z, next_moment) - sum;
}

}  // namespace repdl::reference
