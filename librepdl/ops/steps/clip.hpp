// The norm of a list of tensors as one vector, and gradients clipped by it (contract, section 4):
//
//     N = sum |x|, sqrt(sum x^2) or the greatest |x|,   f = min(1, c / (N + 10^-6)),   g' = RN(g f),   c the double max_norm.
//
// f is one number for all elements, and g' a step function of it. Its steps are where g f is a midpoint of T, at the rational
// numbers
//     M 2^k / G,   M < 2^25 a midpoint's significand, G < 2^24 that of g (of binary32; those of f16 and bf16 are among them).
// Let f 2^t be in [1, 2). A step there, or at 2, is P / Q with P and Q below 2^25: P = M 2^k or M, which is at most 2 G, Q = G or
// G 2^-k, which is at most M. So two of them are more than 2^-50 apart, and instead of f any number will do that lies between the same
// two. It is found once:
//     F: f 2^t rounded to binary64, off by less than 2^-52
//     no step closer to F than 2^-51: then F lies between the same steps as f 2^t
//     else P / Q is that step, and f 2^t less than 2^-50 from it: if f 2^t < P / Q, take RN(P / Q) - 2^-51, which is less than P / Q,
//     by less than 2^-50; likewise above; if they are equal, the quotient of P and Q
// A step so close is a convergent of F's continued fraction (Legendre: it is closer than 1 / (2 Q^2)), and the last one with P below
// 2^25, for a later one would be closer still. On which side of it f lies is asked of double-double first, then of integers
// (compare_exactly): once a call, whatever the elements are, before any of them is written.
//
// Elements: g a / b, rounded once by way of rounding to odd, with b = 1, or a = P 2^-t, b = Q and g a exact (clipped).
//
// When is f = P / Q? N is a binary fraction n / 2^k (a root of one is one, or irrational), and f = c 10^6 2^k / (10^6 n + 2^k), whose
// denominator 5 does not divide: 5^6 divides P. So f is never 1 exactly, nor a power of two, and ties, M = P G / Q, are of more than
// 12 bits: of binary32 alone. Nothing here relies on that.
//
// Sums: tracked_sum (sums.hpp), which knows its error, and that it made none. Squares and magnitudes do not cancel, so that it is
// below 3 h^2 u^2 S; where that is too much for F, of sums higher than 2^24, integers find S.
//
// Of f64 steps are 2^-108 apart, and no binary64 number stands for f. F is a ball of double-doubles, by which elements are multiplied; one
// in which the product's rounding test fails is decided by the exact side of the step that is its midpoint, one comparison for each. That
// takes S by integers, which are made before the first element is written, where any element's test fails: all are tried first.
// Checked by tests/steps/clip_test.cpp against GMP and MPFR.
#pragma once

#include <type_traits>

#include "librepdl/num/dd_ball.hpp"
#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/wide.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

enum class norm_kind : std::int32_t { magnitudes, squares, greatest };  // p = 1, 2, inf
inline norm_kind norm_of(double p) {
  return p == 1 ? norm_kind::magnitudes : p == 2 ? norm_kind::squares : norm_kind::greatest;
}

// What elements of T are read as.
template <class T>
using norm_term = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A sum of magnitudes or squares, or the greatest magnitude's bits: NaN's are above infinity's, and those above numbers'.
template <class Term>
struct norm_sum {
  tracked_sum<double> sum;
  std::uint64_t greatest = 0;

  template <norm_kind Kind>
  REPDL_HD void add(float x) {
    const auto v = static_cast<double>(x);
    if constexpr (Kind == norm_kind::greatest) {
      const std::uint64_t b = bits_of(x) & 0x7fffffff;
      greatest = b > greatest ? b : greatest;
    } else {
      sum.add(Kind == norm_kind::squares ? v * v : magnitude_of(v));
    }
  }
  REPDL_HD void merge(const norm_sum& o) {
    sum.merge(o.sum);
    greatest = o.greatest > greatest ? o.greatest : greatest;
  }
};

// Of f64 both, for squares may be beyond its range. Long sums, too, are known as well as elements need it.
template <>
struct norm_sum<double> {
  twice_tracked_sum<double> sum;
  std::uint64_t greatest = 0;

  template <norm_kind Kind>
  REPDL_HD void add(double x) {
    const std::uint64_t b = bits_of(x) & 0x7fffffffffffffff;
    greatest = b > greatest ? b : greatest;
    if constexpr (Kind == norm_kind::magnitudes) sum.add(magnitude_of(x));
    if constexpr (Kind == norm_kind::squares) sum.add(two_prod(x, x));
  }
  REPDL_HD void merge(const norm_sum& o) {
    sum.merge(o.sum);
    greatest = o.greatest > greatest ? o.greatest : greatest;
  }
};

// The sum S, or the greatest magnitude; infinite or NaN where that is what it is.
REPDL_HD wide<double> total_of(norm_kind kind, const norm_sum<float>& s, std::int64_t height) {
  if (kind == norm_kind::greatest) {
    return {{static_cast<double>(float_of(static_cast<std::uint32_t>(s.greatest))), 0.0}, 0.0};
  }
  if (!is_finite(s.sum.hi)) return {{s.sum.hi, 0.0}, 0.0};
  return {s.sum.total(), s.sum.bound(height)};
}

// Of f64 also an infinite bound, where squares may be out of range: nothing is known of the sum. Of a greatest magnitude from 2^-400 to
// 2^400 (squares), or 2^800, additions do not overflow, and what two_prod and the bound lose to underflow is far below 2^-1000, and that
// below 2^-200 S.
REPDL_HD wide<double> total_of(norm_kind kind, const norm_sum<double>& s, std::int64_t) {
  const double greatest = double_of(s.greatest);
  if (kind == norm_kind::greatest || !is_finite(greatest) || greatest == 0) return {{greatest, 0.0}, 0.0};
  if (greatest < 0x1p-400 || greatest > (kind == norm_kind::squares ? 0x1p400 : 0x1p800)) return {{1.0, 0.0}, infinity};
  const double bound = s.sum.bound();
  return {s.sum.total(), bound + (bound != 0 || kind == norm_kind::squares ? 0x1p-1000 : 0.0)};
}

// Exactly, of finite elements; narrow formats' numbers are those of binary32.
template <class Term>
using norm_accumulator_of = exact_accumulator<Term, 2>;
using norm_accumulator = norm_accumulator_of<float>;
template <class Term>
REPDL_HD void add_exactly(norm_accumulator_of<Term>& s, norm_kind kind, Term x) {
  if (kind == norm_kind::squares) {
    s.add_product(x, x);
  } else {
    s.add(from_bits<Term>(to_bits(x) & static_cast<storage_of<Term>>(~sign_mask<Term>)));
  }
}
// hi = RN(S), lo = RN(S - hi), and what that leaves.
REPDL_HD wide<double> total_of(const norm_accumulator& s) {
  const auto hi = s.round<double>();
  norm_accumulator rest = s;
  rest.add(-hi);
  const auto lo = rest.round<double>();
  rest.add(-lo);
  return {{hi, lo}, rest.is_zero() ? 0.0 : 0x1p-53 * magnitude_of(lo)};
}

// RN_T(N).
template <class T>
REPDL_HD decided_value<T> round_norm(norm_kind kind, const wide<double>& s) {
  if (!is_finite(s.value.hi)) return {non_finite_result<T>(s.value.hi), true};
  if (s.value.hi == 0 && s.error == 0) return {T{}, true};
  if (!(s.error < infinity)) return {T{}, false};
  const double e = s.error * (1 + 0x1p-10);
  return kind == norm_kind::squares ? certify_root<T>(s.value, e) : certify<T>(s.value, e);
}
template <class T>
REPDL_HD T round_norm(norm_kind kind, const norm_accumulator_of<norm_term<T>>& s) {
  return kind == norm_kind::squares ? round_root<T>(s) : s.template round<T>();
}

// What stands for f: a / b.
struct clip_factor {
  double a, b;
  REPDL_HD bool is_one() const { return a == b; }
};

// g' of an element x. a = 0 where N is infinite: so infinities there are NaN. Otherwise a is in [2^-300, 2^25): x a is 0 or above
// 2^-450, a multiple of 2^-502, and nothing underflows. Divides: b is not 1; then x a is exact.
template <bool Divides, class T>
REPDL_HD T clipped(const clip_factor& f, T g) {
  const dd s = two_prod(widen(g), f.a);
  if constexpr (!Divides) return narrow<T>(round_to_odd(s.hi, s.lo));
  const double q = s.hi / f.b;
  const dd p = two_prod(q, f.b);
  return narrow<T>(round_to_odd(q, (s.hi - p.hi) - p.lo));
}

// The factor, or the step P / Q beside which, or at which, f 2^t lies; the largest factor is 1.
struct factor_guess {
  clip_factor factor;
  bool undecided;
  double p, q;
  int t;
};

// side: that of f 2^t less P / Q.
REPDL_HD clip_factor factor_beside(const factor_guess& g, int side) {
  const double scale = power_of_two(-g.t);
  const clip_factor f =
      side == 0 ? clip_factor{g.p * scale, g.q} : clip_factor{(g.p / g.q + side * 0x1p-51) * scale, 1};
  return f.a >= f.b ? clip_factor{1, 1} : f;
}

// Factors below 2^-300 make zeros, as 2^-300 does: elements are below 2^128. With c in [2^-400, 2^200] f is in [2^-591, 2^220].
REPDL_HD factor_guess guess_factor(norm_kind kind, const wide<double>& s, double c) {
  const auto known = [](double a) { return factor_guess{{a >= 1 ? 1.0 : a, 1}, false, 0, 0, 0}; };
  constexpr double least = 0x1p-300;
  if (!is_finite(s.value.hi)) return known(s.value.hi == infinity ? 0.0 : s.value.hi);
  if (s.value.hi == 0 || c > 0x1p200) return known(1);  // zeros keep their bits
  if (c < 0x1p-400) return known(c == 0 ? 0.0 : least);
  constexpr dd millionth = {0x1.0c6f7a0b5ed8dp-20, 0x1.b5a63f9a49c2cp-75};  // off by less than 2^-130
  wide<double> n = s;
  if (kind == norm_kind::squares) to_square_root(n);
  wide<double> f = arithmetic<wide<double>>::number(c);
  divide_by(f, add(n, wide<double>{millionth, 0x1p-130}));
  factor_guess g{{}, true, 1, 1, 0};
  if (!(f.error < 0x1p-55 * f.value.hi)) return g;  // too little is known of S
  if (f.value.hi >= 2) return known(1);
  if (f.value.hi < least) return known(least);
  // F = m / 2^52, and its last convergent p / q.
  const std::uint64_t bits = bits_of(f.value.hi);
  const std::uint64_t m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  std::uint64_t numerator = m, denominator = std::uint64_t{1} << 52;
  std::uint64_t p = 1, q = 0, before_p = 0, before_q = 1;
  constexpr std::uint64_t limit = std::uint64_t{1} << 25;
  while (denominator != 0) {
    const std::uint64_t part = numerator / denominator;
    if (part >= limit || part * p + before_p >= limit) break;
    const std::uint64_t rest = numerator - part * denominator;
    numerator = denominator;
    denominator = rest;
    const std::uint64_t next_p = part * p + before_p;
    const std::uint64_t next_q = part * q + before_q;
    before_p = p;
    before_q = q;
    p = next_p;
    q = next_q;
  }
  // 2^52 q |F - p / q|, at most 2^52 of a convergent.
  const auto off = static_cast<std::int64_t>(m * q - (p << 52));
  if ((off < 0 ? -off : off) >= static_cast<std::int64_t>(2 * q)) return known(f.value.hi);
  g.p = static_cast<double>(p);
  g.q = static_cast<double>(q);
  g.t = 1023 - static_cast<int>(bits >> 52);
  multiply_by_value(f, power_of_two(g.t) * g.q);
  add_value(f, -g.p);
  const int side = sign_in(f);
  if (side == 2) return g;
  g.factor = factor_beside(g, side);
  g.undecided = false;
  return g;
}

// The side of f 2^t less P / Q, exactly, P and Q below 2^54. With c 2^t 10^6 Q = X, Y = P 10^6, and A = X - P > 0:
//     of a sum's root          A > sqrt(S) Y, both sides squared
//     of others                A > S Y
// N being below 2^top (2^62 numbers below 2^(emax + 1), or the root of so many squares), f 2^t about 1 and c 2^t >= 2^-22, so that X is
// a multiple of 2^-80 below 2^(top + 76); A^2 and S Y^2 are below 2^(2 top + 154), multiples of S's unit.
template <class Term>
REPDL_HD_CALL int compare_exactly(norm_kind kind, const norm_accumulator_of<Term>& s, double c, std::uint64_t p,
                                  std::uint64_t q, int t) {
  constexpr int top = format<Term>::emax + 64;
  constexpr int lsb = norm_accumulator_of<Term>::lsb;
  constexpr int unit = -80;
  using linear = fixed_point<unit, (top + 76 - unit + 1) / 64 + 1>;
  using squared = fixed_point<lsb, (2 * top + 154 - lsb + 1) / 64 + 1>;
  const integral_parts of_c = decompose(c);
  linear a;
  std::uint64_t part[2];
  part[0] = multiply_wide(of_c.significand, q, &part[1]);
  for (int i = 0; i < 2; ++i) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(part[i], 1000000, &high);
    const int exponent = of_c.exponent + t + 64 * i;
    a.add_scaled(low, exponent, false);
    a.add_scaled(high, exponent + 64, false);
  }
  a.add_scaled(p, 0, true);
  if (a.sign() <= 0) return -1;
  const bool squares = kind == norm_kind::squares;
  squared left, right;
  for (int i = 0; i < norm_accumulator_of<Term>::words; ++i) right.add_scaled(s.word(i), lsb + 64 * i, false);
  for (int i = 0; i < (squares ? 2 : 1); ++i) {
    right.multiply_by(p);
    right.multiply_by(1000000);
  }
  for (int i = 0; i < linear::words; ++i) {
    if (!squares) left.add_scaled(a.word(i), unit + 64 * i, false);
    for (int j = 0; squares && j < linear::words; ++j) {
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(a.word(i), a.word(j), &high);
      left.add_scaled(low, 2 * unit + 64 * (i + j), false);
      left.add_scaled(high, 2 * unit + 64 * (i + j) + 64, false);
    }
  }
  return left.compare(right);
}
REPDL_HD int compare_exactly(norm_kind kind, const norm_accumulator& s, double c, const factor_guess& g) {
  return compare_exactly<float>(kind, s, c, static_cast<std::uint64_t>(g.p), static_cast<std::uint64_t>(g.q), g.t);
}

// ----------------------------------------------------------------------------------------------------------- binary64

// What elements of f64 are multiplied by: F 2^-t, F a ball about [1, 2); or F = 1, t = 0, exactly: they keep their bits; or F = 0 or
// NaN: they become zeros, of infinities NaN, or NaN.
struct ball_factor {
  dd_ball<double> f;
  double t;
  REPDL_HD bool is_one() const { return f.hi == 1 && f.error == 0 && t == 0; }
  REPDL_HD bool is_plain() const { return !(f.hi > 0) || is_one(); }  // no product needs a test
};
REPDL_HD ball_factor known_factor(double f) { return {{f, 0, 0}, 0}; }

struct ball_factor_guess {
  ball_factor factor;
  bool known;   // F; else nothing
  bool beside;  // 1 is in the ball: which side f lies on is to be found
};
// From N = n 2^h, n > 0 a ball, 2^-400 <= n <= 2^800 with h = 0, or n in [1, 4).
// The divisor is N + 10^-6, or, where one of the two is below 2^-600 of the other, that, with 2^-500 of it as its error: D 2^(h or 0).
REPDL_HD ball_factor_guess guess_ball_factor(const dd_ball<double>& n, int h, double c) {
  using Ball = dd_ball<double>;
  const Ball millionth = {0x1.0c6f7a0b5ed8dp-20, 0x1.b5a63f9a49c2cp-75, 0x1p-129};  // off by less than 2^-130
  const integral_parts of_c = decompose(c);
  const int zeros = leading_zeros(of_c.significand | 1) - 11;  // c = 0: nothing is known below
  const int c_exponent = of_c.exponent - zeros;
  const bool large = h > 620, small = h < -620;
  const double scale = large || small ? 1.0 : power_of_two(h);
  const Ball size = {n.hi * scale, n.lo * scale, n.error * scale};
  const Ball divisor = large ? grown(n, 0x1p-500 * n.hi) : small ? grown(millionth, 0x1p-520) : size + millionth;
  const Ball f = number<Ball>(static_cast<double>(of_c.significand << zeros)) / divisor;
  if (!(f.error < 0x1p-70 * f.hi)) return {known_factor(0), false, false};
  const int e = static_cast<int>(bits_of(f.hi) >> 52) - 1023;
  const double down = power_of_two(-e);
  const int t = (large ? h : 0) - c_exponent - e;
  const Ball scaled_f = {f.hi * down, f.lo * down, f.error * down};
  if (t < -1) return {known_factor(1), true, false};
  if (t > 1) return {{scaled_f, static_cast<double>(t)}, true, false};
  const Ball above_one = scaled(scaled_f, -t) - number<Ball>(1.0);
  const bool beside = !(magnitude_of(above_one.hi) > 2 * above_one.error);
  if (!beside && above_one.hi > 0) return {known_factor(1), true, false};
  return {{scaled_f, static_cast<double>(t)}, true, beside};
}
// The factors that need no division.
REPDL_HD bool is_plain_factor(double size, double c, ball_factor* factor) {
  *factor = known_factor(size == infinity ? 0.0 : !is_finite(size) ? size : size == 0 || c == infinity ? 1.0 : 0.0);
  return !is_finite(size) || size == 0 || c == infinity || c == 0;
}

// |g| F as a 2^k, a in [1, 4); g is finite. What is below 2^-1076 rounds to 0, wherever it is.
template <class R>
struct scaled_product {
  dd_ball<R> a;
  R k;
};
template <class R>
REPDL_HD scaled_product<R> product_of(const ball_factor& f, const R& g) {
  using Ball = dd_ball<R>;
  const R size = magnitude_of(g);
  const mask_of<R> small = size < 0x1p-1022;
  const auto bits = math<R>::to_bits(small ? size * 0x1p54 : size);
  const R exponent = math<R>::from_bits((bits >> 52) | 0x4330000000000000ull) - (0x1p52 + 1023);
  const R m = math<R>::from_bits((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  const R k = exponent - (small ? math<R>::all(54) : math<R>::all(0)) - f.t;
  const Ball factor = {math<R>::all(f.f.hi), math<R>::all(f.f.lo), math<R>::all(f.f.error)};
  return {number<Ball>(m) * factor, k < -1100 ? math<R>::all(-1100) : k};
}
// g' of a finite g, by a factor that is not plain. A zero's product is below 2^-1076, too.
template <class R>
REPDL_HD decided_lanes<R> attempt_clipped(const ball_factor& f, const R& g) {
  const scaled_product<R> p = product_of(f, g);
  const decided_lanes<R> r = round_scaled(p.a, p.k);
  const auto sign = math<R>::to_bits(g) & 0x8000000000000000ull;
  return {math<R>::from_bits(math<R>::to_bits(r.value) | sign), r.decided};
}
// By a plain factor.
REPDL_HD double plainly_clipped(const ball_factor& f, double g) { return f.is_one() ? g : canonical(g * f.f.hi); }

// The same exactly: the ends of the product's ball are rounded to neighbours, n 2^q and (n + 1) 2^q, or to one number; f 2^t is compared
// with the step P / Q = (2 n + 1) 2^(q - 1 + t) / |g|, of which the numerator or the denominator takes the power of two.
REPDL_HD_CALL double decide_clipped(norm_kind kind, const norm_accumulator_of<double>& s, double c,
                                    const ball_factor& f, double g) {
  const scaled_product<double> p = product_of(f, g);
  // round_scaled takes off 2^-52 of the low part and, of a subnormal result, of what is below its last bit, 2^(-1074 - k).
  const double below = p.k < -1020 ? power_of_two(-1022 - static_cast<int>(p.k) - 104) : 0.0;
  const double e = 2 * (p.a.error + 0x1p-100 * p.a.hi + below);
  const auto end = [&](double by) {
    const dd moved = fast_two_sum(p.a.hi, p.a.lo + by);
    return round_scaled(dd_ball<double>{moved.hi, moved.lo, 0.0}, p.k).value;
  };
  const double low = end(-e), high = end(e);
  double value = low;
  if (low != high) {
    const integral_parts n = decompose(low);
    const integral_parts of_g = decompose(g);
    const int t = static_cast<int>(f.t);
    const int power = n.exponent - 1 + t - of_g.exponent;
    const std::uint64_t numerator = 2 * n.significand + 1;
    const int side = compare_exactly<double>(kind, s, c, power > 0 ? numerator << power : numerator,
                                             power < 0 ? of_g.significand << -power : of_g.significand, t);
    value = side < 0 || (side == 0 && (n.significand & 1) == 0) ? low : high;
  }
  return double_of(bits_of(value) | (bits_of(g) & 0x8000000000000000ull));
}

// ------------------------------------------------------------------------------------------------------------- calls

template <class T>
using factor_of = std::conditional_t<std::is_same_v<T, double>, ball_factor, clip_factor>;

// What one call finds: RN_T(N), and what stands for the factor.
template <class T>
struct clip_result {
  T total;
  factor_of<T> factor;
  bool decided;
};
// By double-double. Without clipping c is 0.
template <class T>
REPDL_HD clip_result<T> attempt_clip(norm_kind kind, const wide<double>& s, double c, bool wants_total) {
  const decided_value<T> total = round_norm<T>(kind, s);
  const bool enough = total.decided || !wants_total;
  if constexpr (std::is_same_v<T, double>) {
    ball_factor plain{};
    if (s.error < infinity && is_plain_factor(s.value.hi, c, &plain)) return {total.value, plain, enough};
    const dd_ball<double> sum = {s.value.hi, s.value.lo, s.error * (1 + 0x1p-10)};
    const ball_factor_guess g = guess_ball_factor(kind == norm_kind::squares ? square_root(sum) : sum, 0, c);
    return {total.value, g.factor, enough && s.error < infinity && g.known && !g.beside};
  } else {
    const factor_guess g = guess_factor(kind, s, c);
    return {total.value, g.factor, enough && !g.undecided};
  }
}
// By integers; S is finite.
template <class T>
REPDL_HD clip_result<T> decide_clip(norm_kind kind, const norm_accumulator_of<norm_term<T>>& s, double c) {
  const T total = round_norm<T>(kind, s);
  if constexpr (std::is_same_v<T, double>) {
    ball_factor plain{};
    const first_bits first = first_bits_of(s);
    if (is_plain_factor(first.high == 0 ? 0.0 : 1.0, c, &plain)) return {total, plain, true};
    // S = (M + f) 2^exponent as a ball in [1, 4) times a power of 4.
    using Ball = dd_ball<double>;
    const auto part = [](std::uint64_t bits, double power) { return number<Ball>(static_cast<double>(bits) * power); };
    const Ball m = (part(first.high >> 32, 0x1p-30) + part(first.high & 0xffffffff, 0x1p-62)) +
                   (part(first.low >> 32, 0x1p-94) + part(first.low & 0xffffffff, 0x1p-126));
    const Ball size = grown(m, first.cut ? 0x1p-126 : 0.0);
    const auto h = static_cast<int>(first.exponent) + 126;
    const bool squares = kind == norm_kind::squares;
    const ball_factor_guess g = guess_ball_factor(squares ? square_root(size) : size, squares ? h / 2 : h, c);
    const bool keeps = g.beside && compare_exactly<double>(kind, s, c, 1, 1, 0) >= 0;
    return {total, keeps ? known_factor(1) : g.factor, true};
  } else {
    const factor_guess g = guess_factor(kind, total_of(s), c);
    return {total, g.undecided ? factor_beside(g, compare_exactly(kind, s, c, g)) : g.factor, true};
  }
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
