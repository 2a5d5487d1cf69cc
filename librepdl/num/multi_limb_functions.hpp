// e^x, ln x, ln(1 + x), sqrt x, sin and cos of x and of 2 pi u in multi-limb balls.
//
// Methods: R. P. Brent and P. Zimmermann, "Modern Computer Arithmetic" (2010), 4.3 and 4.4: argument reduction by ln 2
// and by repeated halving, Taylor series in fixed point, squaring back; the logarithm by one Newton-like step from a
// binary64 value. N = Limbs + 1 limbs of fraction carry 64 guard bits through; a unit is 2^(-64 N). Constants:
// reference/gen/multi_limb_constants.py.
//
// Results of exact arguments are within about one ulp, where the comments below say so; arguments that are balls add
// their own part. Checked by tests/numerics/multi_limb_test.cpp against MPFR.
#pragma once

#include "librepdl/num/multi_limb_ball.hpp"
#include "librepdl/num/multi_limb_constants.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// -------------------------------------------------------------------------------------- how many terms a series needs
constexpr int floor_log2(std::uint64_t a) { return a <= 1 ? 0 : 1 + floor_log2(a >> 1); }

// Halvings of the argument of e^x: balances squarings against terms.
template <int N>
inline constexpr int exp_halvings = N <= 5    ? 20
                                    : N <= 9  ? 26
                                    : N <= 17 ? 34
                                              : 44;
// A K with r^(K+1)/(K+1)! (1 + r) < 2^(-64 N) for r < 2^-s ln 2: log2 of the (K+1)-th term's inverse is at
// least the sum over k <= K+1 of s + floor(log2 k), and (ln 2)^2 (1 + r) < 1/2.
constexpr int exp_terms(int bits, int s) {
  int k = 0;
  for (int have = 0; have < bits; have += s + floor_log2(static_cast<std::uint64_t>(k))) ++k;
  return k < 2 ? 2 : k;
}
// sin and cos: a K with w^(K+1)/(2K+2)! < 2^(-64 N - 1), w < 0.62 < 1.
constexpr int circular_terms(int bits) {
  int k = 0;
  for (int have = 0; have < bits + 1; have += floor_log2(static_cast<std::uint64_t>((2 * k - 1) * (2 * k)))) ++k;
  return k;
}
template <int N>
inline constexpr int exp_term_count = exp_terms(64 * N, exp_halvings<N>);
template <int N>
inline constexpr int circular_term_count = circular_terms(64 * N);

// ------------------------------------------------------------------------------------------- conversions of fractions

// head + a, head <= 1.
template <int L, int N>
REPDL_HD_CALL multi_limb<L> limbs_of_fraction(std::uint64_t head, const fraction<N>& a, bool* inexact) {
  std::uint64_t w[N + 1];
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) w[i] = a.limb[i];
  w[N] = head;
  return normalise<L, N + 1>(w, 64, 0, inexact);
}
// |a| mod 1 rounded down (less than a unit below), for |a| < 2^64; its integer part goes to *head.
template <int N, int L>
REPDL_HD_CALL fraction<N> fraction_of(const multi_limb<L>& a, std::uint64_t* head) {
  fraction<N + 1> f;  // head and fraction, as a number below 2^64
  REPDL_LIMB_LOOP(N + 1)
  for (int i = 0; i < N + 1; ++i) f.limb[i] = i + L >= N + 1 ? a.limb[i + L >= N + 1 ? i + L - N - 1 : 0] : 0;
  f = shift_right(f, 64 - a.exponent);
  *head = f.limb[N];
  fraction<N> r;
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) r.limb[i] = f.limb[i];
  return r;
}

// ---------------------------------------------------------------------------------------------------------------- exp

// t = t^2 + 2t mod 1, the square rounded down.
template <int N>
REPDL_HD_CALL void square_and_double(fraction<N>& t) {
  std::uint64_t w[2 * N];
  multiply_limbs<N>(t.limb, t.limb, w);
  std::uint64_t carry = 0;
  add_to(t, t);
  REPDL_LIMB_LOOP(N)
  for (int j = 0; j < N; ++j) t.limb[j] = add_carry(t.limb[j], w[N + j], &carry);
}

// e^r - 1 for r in [0, ln 2] up to 2^15 units off: E with e^r - E - 1 in e^r (-1, 6) 2^s units for the given r.
//
// Everything rounds down. r' = floor(r 2^-s): less than a unit. Horner: t_k = (r' + r' t_{k+1}) / k for
// sum_{j>=k} r'^(j-k+1) (k-1)!/j!: each step is at most (r' e + 1)/k + 1 units low, so t_1 is at most 2.1, the terms
// left out are a unit, and with the first part e^(r 2^-s) - 1 is at most 4.2 (< 5) units low. Squaring, (1 + p)^2 - 1 =
// 2p + p^2: from e units low to at most 2e(1 + P) + 1, P exact; relative to 1 + P this is d' <= 2d + 1, so after s
// steps at most 5 · 2^s + 2^s. All stay below the exact values, hence p < 1.
template <int N>
REPDL_HD_CALL fraction<N> expm1_reduced(const fraction<N>& r) {
  constexpr int s = exp_halvings<N>;
  constexpr int terms = exp_term_count<N>;
  const fraction<N> x = shift_right(r, s);
  fraction<N> t = x;
  divide_by(t, static_cast<std::uint32_t>(terms));
  REPDL_LIMB_LOOP(7)
  for (int k = terms - 1; k >= 1; --k) {
    multiply_by(t, x);
    add_to(t, x);
    divide_by(t, static_cast<std::uint32_t>(k));
  }
  REPDL_LIMB_LOOP(7)
  for (int i = 0; i < s; ++i) square_and_double(t);
  return t;
}

// e^x for |x| < 2^14, within (1 + 2^-10) ulp.
//
// x = n ln 2 + r, r in [0, ln 2): |x| mod 2^(-64 N) is less than a unit low and n times the truncated ln 2 less than
// n + 1 <= 2^15 - 1 units, so r is off by less than 2^15 units, which e^r turns into a relative error of 2^15 units;
// with expm1_reduced's 6 · 2^s, s <= 44, less than 2^47 units = 2^(-17 - 64 L), or 2^-16 ulp; then one truncation.
template <int L>
REPDL_HD_ONCE ball<L> exponential(const multi_limb<L>& x) {
  constexpr int N = L + 1;
  if (x.is_zero()) return exact_ball(limbs_of<L>(1));
  std::uint64_t head = 0;
  fraction<N> r = fraction_of<N>(x, &head);
  const fraction<N> ln2 = ln2_fraction<N>();
  // The quotient from 14 + 32 leading bits, off by at most one.
  const double leading = static_cast<double>(head) + static_cast<double>(r.limb[N - 1] >> 32) * 0x1p-32;
  std::uint64_t n = static_cast<std::uint64_t>(leading * 0x1.71547652b82fep0);  // RN(1 / ln 2)
  {
    fraction<N> product;  // n ln 2: a fraction, and carry before the point
    std::uint64_t carry = 0;
    REPDL_LIMB_LOOP(N)
    for (int i = 0; i < N; ++i) product.limb[i] = multiply_add(ln2.limb[i], n, 0, &carry);
    std::uint64_t fits = 1;
    REPDL_LIMB_LOOP(N)
    for (int i = 0; i < N; ++i) r.limb[i] = add_carry(r.limb[i], ~product.limb[i], &fits);
    head = head - carry - (1 - fits);  // two's complement
  }
  for (; head >> 63 != 0; --n) head += add_to(r, ln2);
  for (; head != 0 || compare(r, ln2) >= 0; ++n) {
    std::uint64_t fits = 1;
    REPDL_LIMB_LOOP(N)
    for (int i = 0; i < N; ++i) r.limb[i] = add_carry(r.limb[i], ~ln2.limb[i], &fits);
    head -= 1 - fits;
  }
  std::int64_t exponent = static_cast<std::int64_t>(n);
  if (x.negative != 0) {  // -x = -(n + 1) ln 2 + (ln 2 - r)
    subtract_from(ln2, r);
    exponent = -exponent - 1;
  }
  bool inexact = true;
  const multi_limb<L> m = scaled(limbs_of_fraction<L>(1, expm1_reduced(r), &inexact), exponent);
  return {m, {0x80000000u + 0x200000u, m.exponent - 64 * L - 31}};
}

// ---------------------------------------------------------------------------------------------------------------- log

template <int L>
REPDL_HD ball<L> ln2_ball() {
  bool inexact = true;
  const multi_limb<L> m = limbs_of_fraction<L>(0, ln2_fraction<L>(), &inexact);
  return {m, rounding_error(m, true)};
}

// pi / 4
template <int L>
REPDL_HD ball<L> quarter_pi_ball() {
  bool inexact = true;
  const multi_limb<L> m = limbs_of_fraction<L>(0, quarter_pi_fraction<L>(), &inexact);
  return {m, rounding_error(m, true)};
}

// artanh(z) / z = 1 + t, t = w (1/3 + w (1/5 + ...)), w = z^2 < 2^-65: each term is less than 2^-65 of the one before,
// so N - 1 terms leave less than a unit. Rounding down: w is less than 3 units low (2^(1 - 64 L) of itself and its own
// unit), a third of that and a unit for the last product, 2.1; with the rest t is less than 4 units low.
template <int L>
REPDL_HD_CALL fraction<L + 1> artanh_series(const multi_limb<L>& z) {
  constexpr int N = L + 1;
  bool inexact = false;
  std::uint64_t head = 0;
  const fraction<N> w = fraction_of<N>(multiply(z, z, &inexact), &head);
  fraction<N> t = zero_fraction<N>();
  REPDL_LIMB_LOOP(7)
  for (int k = N - 1; k >= 1; --k) {
    fraction<N> inverse = zero_fraction<N>();
    divide_by(inverse, static_cast<std::uint32_t>(2 * k + 1), 1);
    add_to(t, inverse);
    multiply_by(t, w);
  }
  return t;
}
template <int L>
REPDL_HD_CALL ball<L> artanh_bracket(const multi_limb<L>& z) {
  bool inexact = true;
  const multi_limb<L> m = limbs_of_fraction<L>(1, artanh_series(z), &inexact);
  return {m, add(rounding_error(m, true), power_magnitude(2 - 64 * (L + 1)))};
}

// v becomes ln(1 + v), for |v| < 2^-32 with a radius below 2^-33: 2 artanh(z), z = v / (2 + v), relative error about 4
// ulps. The middle of z is used; its radius passes with the derivative of 2 artanh, at most 2 (1 + 2^-60).
template <int L>
REPDL_HD_ONCE void to_logarithm_1p_small(ball<L>& v) {
  {
    ball<L> two = exact_ball(limbs_of<L>(2));
    add_to(two, v);
    divide_by(v, two);
  }
  const magnitude spread = multiply(v.radius, magnitude{0x80000100u, -30});
  v.radius = {0, 0};
  if (!v.middle.is_zero()) multiply_by(v, artanh_bracket(v.middle));
  v = grown(scaled(v, v.middle.is_zero() ? 0 : 1), spread);
}

// About ln m in binary64 for m in [0.7, 1.42]: a multiple of 2^-40, off by less than 2^-40. 2 artanh(s), |s| < 0.177:
// the first omitted term is 2 s^25 / 25 < 2^-65, twelve roundings of numbers below 0.36 less than 2^-50, the last one
// 2^-41.
REPDL_HD double log_start(double m) {
  const double s = (m - 1) / (m + 1);
  const double w = s * s;
  double t = 1.0 / 23;
  for (int k = 21; k >= 1; k -= 2) t = t * w + 1.0 / k;
  return (2 * s * t + 0x1.8p12) - 0x1.8p12;
}

// ln x for an exact x > 0: absolute error at most 2^(5 - 64 L) max(1, |ln x|).
// x = m 2^k; y = log_start(m); m e^-y = 1 + v with |v| < 2^-39; ln x = y + ln(1 + v) + k ln 2. k = 0 for x in
// [0.7072, 1.4142), so ln x keeps a relative accuracy there down to |ln x| = 2^-40 or so; the ball's radius says it
// exactly.
template <int L>
REPDL_HD_ONCE ball<L> logarithm(const multi_limb<L>& x) {
  const double half = double_near(scaled(x, -x.exponent));  // in [1/2, 1)
  const bool below = half < 0.7071;
  const std::int64_t k = x.exponent - (below ? 1 : 0);
  const double y = log_start(below ? 2 * half : half);
  ball<L> r = exponential(limbs_of_value<L>(-y));
  multiply_by(r, exact_ball(scaled(x, -k)));
  add_value(r, -1.0);
  to_logarithm_1p_small(r);
  add_value(r, y);
  if (k != 0) {
    ball<L> power = ln2_ball<L>();
    multiply_by(power, exact_ball(limbs_of<L>(static_cast<std::uint64_t>(k < 0 ? -k : k), 0, k < 0)));
    add_to(r, power);
  }
  return r;
}
// The same of a ball: |ln x - ln x'| <= r / (x' - r), and r / x' (1 + 2^-3) covers it for r <= x'/16.
template <int L>
REPDL_HD_ONCE void to_logarithm(ball<L>& x) {
  if (x.middle.is_zero() || x.middle.negative != 0 || !x.radius.below_power(x.middle.exponent - 5)) {
    x.radius = unknown();
    return;
  }
  const magnitude spread = with_eighth(divide(x.radius, lower(x.middle)));
  x = logarithm(x.middle);
  x.radius = add(x.radius, spread);
}
// ln(1 + v), v >= 0: relative accuracy for every v.
template <int L>
REPDL_HD_ONCE void to_logarithm_1p(ball<L>& v) {
  if (upper(v).below_power(-33)) {
    to_logarithm_1p_small(v);
  } else {
    add_value(v, 1.0);
    to_logarithm(v);
  }
}

// --------------------------------------------------------------------------------------------------------------- sqrt

// sqrt x, x > 0. Newton for 1 / sqrt x from binary64 (49 bits, doubled by each step but for a few ulps), s = x y; what
// counts is measured: |s - sqrt x| = |s^2 - x| / (s + sqrt x) <= (|s^2 - x'| + rx) / s.
template <int L>
REPDL_HD_ONCE ball<L> square_root(const ball<L>& x) {
  if (x.middle.is_zero() || x.middle.negative != 0) return {x.middle, unknown()};
  const std::int64_t even = x.middle.exponent & 1;
  const std::int64_t half = (x.middle.exponent - even) / 2;
  const multi_limb<L> m = scaled(x.middle, -2 * half);  // in [1/2, 2)
  multi_limb<L> y = limbs_of_value<L>(1 / num::sqrt(double_near(m)));
  bool inexact = false;
  const multi_limb<L> one = limbs_of<L>(1);
  for (int bits = 48; bits < 64 * L; bits *= 2) {  // y += y (1 - m y^2) / 2
    const multi_limb<L> residual = add(one, negated(multiply(m, multiply(y, y, &inexact), &inexact)), &inexact);
    y = add(y, scaled(multiply(y, residual, &inexact), -1), &inexact);
  }
  const ball<L> s = exact_ball(multiply(m, y, &inexact));
  const ball<L> difference = subtract(multiply(s, s), exact_ball(m));
  const magnitude relative_to = lower(s.middle);
  magnitude error = upper(difference);
  if (!x.radius.is_zero()) error = add(error, magnitude{x.radius.significand, x.radius.exponent - 2 * half});
  return scaled(ball<L>{s.middle, divide(error, relative_to)}, half);
}

// -------------------------------------------------------------------------------------------------------- sin and cos

template <int L>
struct circular_value {
  ball<L> value;
  int exact;  // -1, 0, 1: the value is exactly that; 2: it is none of them
};

// sin phi = phi s and cos phi = s, w = phi^2 < 0.62: s = 1 - t_1, t_k = w (1 - t_{k+1}) / (2k (2k + 1)) of sin, of cos
// over (2k - 1) 2k. w is less than 6 units low. With e the error of t_{k+1}, t_k is off by at most (6 + w e + 1) / 2 +
// 1 units, hence always by less than 7; the terms left out are less than one: 2^3 units.
template <int L>
REPDL_HD_CALL ball<L> circular_series(const fraction<L + 1>& w, bool cosine) {
  constexpr int N = L + 1;
  fraction<N> t = zero_fraction<N>();
  REPDL_LIMB_LOOP(7)
  for (int k = circular_term_count<N>; k >= 1; --k) {
    const int divisor = cosine ? (2 * k - 1) * (2 * k) : 2 * k * (2 * k + 1);
    multiply_by(t, w);
    subtract_from(w, t);
    divide_by(t, static_cast<std::uint32_t>(divisor));
  }
  const std::uint64_t carry = subtract_from(zero_fraction<N>(), t);  // 1 - t mod 1; carry = 1 for t = 0
  bool inexact = true;
  ball<L> value = exact_ball(limbs_of_fraction<L>(carry, t, &inexact));
  value.radius = add(rounding_error(value.middle, true), power_magnitude(3 - 64 * N));
  return value;
}

// (sine ? sin : cos)(2 pi a / 2^64), relative error a few ulps.
//
// The nearest quarter turn q and the rest d, |d| <= 2^61: sin or cos of phi = (pi/4) |d| / 2^61 in [0, pi/4], by
// symmetry. The product pi/4 |d| is exact but for the truncated constant: a relative 2^(1 - 64 N), so phi as a fraction
// is less than 3 units low and w = phi^2 less than 6.
template <int L>
REPDL_HD_ONCE circular_value<L> circular(std::uint64_t a, bool sine) {
  constexpr int N = L + 1;
  const std::uint64_t q = (a + (std::uint64_t{1} << 61)) >> 62;
  const std::uint64_t d = a - (q << 62);  // two's complement
  const bool minus = (d >> 63) != 0;
  const bool cosine = ((q & 1) != 0) == sine;  // of phi
  // sin: s(phi), c, -s, -c for q = 0 .. 3; cos: c, -s, -c, s; s is odd in d.
  const bool flip = sine ? (q & 2) != 0 : ((q + 1) & 2) != 0;
  if (d == 0) {
    if (!cosine) return {exact_ball(zero_limbs<L>()), 0};
    return {exact_ball(limbs_of<L>(1, 0, flip)), flip ? -1 : 1};
  }
  std::uint64_t carry = 0;
  const fraction<N> quarter = quarter_pi_fraction<N>();
  fraction<N + 1> turn;  // phi 2^61 units
  REPDL_LIMB_LOOP(N)
  for (int i = 0; i < N; ++i) turn.limb[i] = multiply_add(quarter.limb[i], minus ? 0 - d : d, 0, &carry);
  turn.limb[N] = carry;
  fraction<N> w;
  {
    const fraction<N + 1> shifted = shift_right(turn, 61);
    REPDL_LIMB_LOOP(N)
    for (int i = 0; i < N; ++i) w.limb[i] = shifted.limb[i];
  }
  multiply_by(w, w);
  bool inexact = true;
  ball<L> value = circular_series<L>(w, cosine);
  if (!cosine) {
    const multi_limb<L> phi = normalise<L, N + 1>(turn.limb, 3, 0, &inexact);
    value = multiply(ball<L>{phi, power_magnitude(phi.exponent - 64 * L + 1)}, value);
  }
  return {flip != (!cosine && minus) ? negated(value) : value, 2};
}

// The integer part of a, 0 <= a < 2^(64 L - 2), and its two last bits.
template <int L>
REPDL_HD_CALL multi_limb<L> integer_part(const multi_limb<L>& a, std::uint64_t* last) {
  *last = 0;
  if (a.exponent <= 0) return zero_limbs<L>();
  const std::int64_t drop = 64 * L - a.exponent;  // bits after the point
  multi_limb<L> r = a;
  REPDL_LIMB_LOOP(L)
  for (int i = 0; i < L; ++i) {
    const std::int64_t here = drop - 64 * i;
    const std::uint64_t kept = here <= 0 ? ~std::uint64_t{0} : here >= 64 ? 0 : ~std::uint64_t{0} << here;
    r.limb[i] &= kept;
    for (int bit = 0; bit < 2; ++bit) {
      const std::int64_t at = here + bit;
      if (at >= 0 && at < 64) *last |= (a.limb[i] >> at & 1) << bit;
    }
  }
  return r;
}

// |x| mod (pi/2), for |x| >= 2^54 (Payne and Hanek): the rest r, |r| < 0.7855, and the last two bits of the number of quarter turns.
//
// |x| = m 2^e, m of 53 bits, and |x| / (2 pi) mod 1 is m W mod 1, W the bits of 2/pi from the (e - 2)-nd on, as a fraction: those before are
// whole turns. W is truncated to L + 3 limbs, so that m W is less than 2^53 units of 2^(-64 (L + 3)) low.
template <int L>
REPDL_HD_CALL ball<L> quarter_turns(double x, std::uint64_t* q) {
  constexpr int M = L + 3;
  const std::uint64_t b = bits_of(x);
  const std::uint64_t m = (b & 0xfffffffffffffull) | 0x10000000000000ull;
  const int skipped = (static_cast<int>(b >> 52) & 0x7ff) - 1075 - 2;
  const int limb = skipped / 64;
  const int shift = skipped % 64;
  std::uint64_t turn[M];
  std::uint64_t carry = 0;
  REPDL_LIMB_LOOP(M)
  for (int i = 0; i < M; ++i) {
    const std::uint64_t high = two_over_pi_limb(limb + M - 1 - i);
    const std::uint64_t next = two_over_pi_limb(limb + M - i);
    const std::uint64_t w = shift == 0 ? high : high << shift | next >> (64 - shift);
    turn[i] = multiply_add(w, m, 0, &carry);
  }
  *q = (turn[M - 1] + (std::uint64_t{1} << 61)) >> 62;
  turn[M - 1] -= *q << 62;  // two's complement
  const std::uint64_t negative = turn[M - 1] >> 63;
  std::uint64_t one = negative;
  REPDL_LIMB_LOOP(M)
  for (int i = 0; i < M; ++i) turn[i] = add_carry(negative != 0 ? ~turn[i] : turn[i], 0, &one);
  bool inexact = false;
  ball<L> r = exact_ball(normalise<L, M>(turn, 0, negative, &inexact));
  r.radius = add(rounding_error(r.middle, true), power_magnitude(53 - 64 * M));
  return scaled(multiply(quarter_pi_ball<L>(), r), 3);
}

// (sine ? sin : cos)(r + q pi/2), |r| < 0.7855: of r's middle, whose fraction phi is less than a unit low: w = phi^2 less than 3 units.
// |sin'|, |cos'| <= 1: r's radius passes. Of an exact r, sin r has a relative error of a few ulps.
template <int L>
REPDL_HD_CALL ball<L> circular_of_rest(const ball<L>& r, std::uint64_t q, bool sine) {
  constexpr int N = L + 1;
  const bool cosine = ((q & 1) != 0) == sine;  // of r
  const bool flip = sine ? (q & 2) != 0 : ((q + 1) & 2) != 0;
  multi_limb<L> phi = r.middle;
  phi.negative = 0;
  std::uint64_t head = 0;
  fraction<N> w = fraction_of<N>(phi, &head);
  multiply_by(w, w);
  ball<L> value = circular_series<L>(w, cosine);
  if (!cosine) value = multiply(exact_ball(r.middle), value);
  value = grown(value, r.radius);
  return flip ? negated(value) : value;
}

// (sine ? sin : cos) x, exact x.
//
// |x| < 2^54: q is an integer next to |x| / (pi/2), off by less than 1/2 + 2^-38, and r = |x| - q (pi/2), |r| < 0.7855, its radius
// less than q 2^(2 - 64 L). q = 0: r is exact.
template <int L>
REPDL_HD_ONCE ball<L> circular(double x, bool sine) {
  const double magnitude = magnitude_of(x);
  std::uint64_t q = 0;
  ball<L> r;
  if (magnitude >= 0x1p54) {
    r = quarter_turns<L>(x, &q);
  } else {
    const multi_limb<L> a = limbs_of_value<L>(magnitude);
    r = scaled(quarter_pi_ball<L>(), 1);
    bool inexact = false;
    const multi_limb<L> turns = add(divide(a, r.middle, &inexact), limbs_of_power<L>(-1), &inexact);
    multiply_by(r, exact_ball(integer_part(turns, &q)));
    r = subtract(exact_ball(a), r);
  }
  if (sine && x < 0) q += 2;
  return circular_of_rest(r, q, sine);
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
