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
// Checked by tests/steps/clip_test.cpp against GMP and MPFR.
#pragma once

#include "librepdl/num/fixed_point.hpp"
#include "librepdl/num/wide.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

enum class norm_kind : std::int32_t { magnitudes, squares, greatest };  // p = 1, 2, inf
inline norm_kind norm_of(double p) {
  return p == 1 ? norm_kind::magnitudes : p == 2 ? norm_kind::squares : norm_kind::greatest;
}

// A sum of magnitudes or squares, or the greatest magnitude's bits: NaN's are above infinity's, and those above numbers'.
struct norm_sum {
  tracked_sum<double> sum;
  std::uint32_t greatest = 0;

  template <norm_kind Kind>
  REPDL_HD void add(float x) {
    const auto v = static_cast<double>(x);
    if constexpr (Kind == norm_kind::greatest) {
      const std::uint32_t b = bits_of(x) & 0x7fffffff;
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

// The sum S, or the greatest magnitude; infinite or NaN where that is what it is.
REPDL_HD wide<double> total_of(norm_kind kind, const norm_sum& s, std::int64_t height) {
  if (kind == norm_kind::greatest) return {{static_cast<double>(float_of(s.greatest)), 0.0}, 0.0};
  if (!is_finite(s.sum.hi)) return {{s.sum.hi, 0.0}, 0.0};
  return {s.sum.total(), s.sum.bound(height)};
}

// Exactly, of finite elements; of every format, whose numbers are those of binary32.
using norm_accumulator = dot_accumulator;
REPDL_HD void add_exactly(norm_accumulator& s, norm_kind kind, float x) {
  if (kind == norm_kind::squares) {
    s.add_product(x, x);
  } else {
    s.add(float_of(bits_of(x) & 0x7fffffff));
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
  const double e = s.error * (1 + 0x1p-10);
  return kind == norm_kind::squares ? certify_root<T>(s.value, e) : certify<T>(s.value, e);
}
template <class T>
REPDL_HD T round_norm(norm_kind kind, const norm_accumulator& s) {
  return kind == norm_kind::squares ? round_root<T>(s) : s.template round<T>();
}

// What stands for f: a / b.
struct clip_factor {
  double a, b;
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

// The side of f 2^t less P / Q, exactly. With c 2^t 10^6 Q = X 2^e, and Y = P 10^6:
//     of a sum's root          X 2^e - P > sqrt(S) Y, both sides squared: X^2 2^2e - 2 X P 2^e + P^2 - S Y^2, where X 2^e > P
//     of others                X 2^e - P - S Y
// X < 2^98, Y < 2^45. f 2^t being in [1, 2) and N below 2^190, 2^159 of a root, c 2^t is in [2^-20, 2^192), so that e >= -72 and
// X 2^e < 2^237; in all multiples of 2^-298 below 2^475.
REPDL_HD int compare_exactly(norm_kind kind, const norm_accumulator& s, double c, const factor_guess& g) {
  using sum = fixed_point<norm_accumulator::lsb, 13>;
  const auto add = [](sum& to, std::uint64_t a, std::uint64_t b, int exponent, bool negative) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(a, b, &high);
    to.add_scaled(low, exponent, negative);
    to.add_scaled(high, exponent + 64, negative);
  };
  const auto subtract_multiple = [&](sum& to, std::uint64_t factor, int exponent) {
    for (int i = 0; i < norm_accumulator::words; ++i)
      add(to, s.word(i), factor, norm_accumulator::lsb + 64 * i + exponent, true);
  };
  const integral_parts of_c = decompose(c);
  const auto p = static_cast<std::uint64_t>(g.p);
  const int e = of_c.exponent + g.t;
  std::uint64_t high = 0;
  const std::uint64_t low = multiply_wide(of_c.significand, 1000000 * static_cast<std::uint64_t>(g.q), &high);
  sum d;
  d.add_scaled(low, e, false);
  d.add_scaled(high, e + 64, false);
  d.add_scaled(p, 0, true);
  const std::uint64_t y = 1000000 * p;
  if (kind != norm_kind::squares) {
    subtract_multiple(d, y, 0);
    return d.sign();
  }
  if (d.sign() <= 0) return -1;
  sum squares;
  add(squares, low, low, 2 * e, false);
  add(squares, low, high, 2 * e + 65, false);
  add(squares, high, high, 2 * e + 128, false);
  add(squares, low, 2 * p, e, true);
  add(squares, high, 2 * p, e + 64, true);
  add(squares, p, p, 0, false);
  std::uint64_t y_high = 0;
  const std::uint64_t y_low = multiply_wide(y, y, &y_high);
  subtract_multiple(squares, y_low, 0);
  subtract_multiple(squares, y_high, 64);
  return squares.sign();
}

// What one call finds: RN_T(N), and what stands for the factor.
template <class T>
struct clip_result {
  T total;
  clip_factor factor;
  bool decided;
};
// By double-double. Without clipping c is 0.
template <class T>
REPDL_HD clip_result<T> attempt_clip(norm_kind kind, const wide<double>& s, double c, bool wants_total) {
  const decided_value<T> total = round_norm<T>(kind, s);
  const factor_guess g = guess_factor(kind, s, c);
  return {total.value, g.factor, (total.decided || !wants_total) && !g.undecided};
}
// By integers; S is finite.
template <class T>
REPDL_HD clip_result<T> decide_clip(norm_kind kind, const norm_accumulator& s, double c) {
  const factor_guess g = guess_factor(kind, total_of(s), c);
  return {round_norm<T>(kind, s), g.undecided ? factor_beside(g, compare_exactly(kind, s, c, g)) : g.factor, true};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
