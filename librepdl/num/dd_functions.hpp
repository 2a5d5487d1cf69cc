// e^x, ln x, sin, cos and arctan in balls of double-doubles: relative errors of 2^-68 and less, without branches, of R =
// binary64 and registers of it alike.
//
// Method: an argument is reduced by parts of a constant, on a CPU e^x, ln x and arctan by a table, too, and a Taylor series summed by Horner's rule: its last terms, below 2^-17 of the
// sum, in binary64, the first ones in double-double. u = 2^-53. The errors of double-double operations are those of dd.hpp and dd_ball.hpp; a dozen of them
// after another stay below 2^-96 and are nothing beside the others, and are not counted below. The terms
// that binary64 sums fall by 1/30 each, so that their sum is off by less than 3.2 u of itself: the leading coefficient's rounding, that of the
// last sum and that of the last product, and what the other terms add to these. The argument's low part, which they do without, is at most
// 3 u of it (of a normalised one u), and so is what the sum, a product with it, lacks: 6.3 u in all (4.3 u).
//
// Checked by tests/numerics/dd_functions_test.cpp against MPFR.
#pragma once

#include "librepdl/num/dd_ball.hpp"
#include "librepdl/num/dd_constants.hpp"
#include "librepdl/num/dd_tables.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// inverse_factorial<0>() + x (inverse_factorial<1>() + x (inverse_factorial<2>() + ...)), in binary64.
template <class R>
REPDL_HD R horner(R, double last) {
  return math<R>::all(last);
}
template <class R, class... C>
REPDL_HD R horner(R x, double first, C... more) {
  return math<R>::muladd(x, horner(x, more...), math<R>::all(first));
}
template <class R>
REPDL_HD double_word<R> all_of(dd c) {
  return {math<R>::all(c.hi), math<R>::all(c.lo)};
}
REPDL_HD constexpr dd negative(dd c) { return {-c.hi, -c.lo}; }
// c + p for a number p, |p| <= |c|; as `sum`.
template <class R>
REPDL_HD double_word<R> sum(double_word<R> c, R p) {
  const double_word<R> s = fast_two_sum(c.hi, p);
  return {s.hi, c.lo + s.lo};
}
// The nearest whole number, of |x| < 2^51.
template <class R>
REPDL_HD R nearest(R x) {
  return (x + 0x1.8p52) - 0x1.8p52;
}

// ---------------------------------------------------------------------------------------------------------------- exp

// True where e^x and ln x are looked up in tables (dd_tables.hpp), of a register's lanes at once, and short series do the rest. A GPU
// has longer series instead.
inline constexpr bool uses_tables = !on_device;

// e^x = 2^k row e^r: k whole, `row` a power of 2^(1/256) in [0.70, 1.42], or 1 where there are no tables; r within `error`.
template <class R>
struct reduced_exponent {
  double_word<R> r;
  R k, error;
  double_word<R> row;
};

// For n = 256 k + j, j in [-128, 127]: k, and 2^(j/256); `bits` are those of n + 1.5 2^52. (n + 1/4) / 256 is never halfway between whole
// numbers.
template <class R>
struct looked_up_power {
  double_word<R> row;
  R k;
};
template <class R>
REPDL_HD looked_up_power<R> look_up_power(R n, decltype(math<R>::to_bits(R{})) bits) {
  const auto i = (bits + 128) & 255;
  return {math<R>::look_up(exponential_on_host.row, i).two(0),
          nearest(math<R>::muladd(n, math<R>::all(0x1p-8), math<R>::all(0x1p-10)))};
}

// For |x| <= 760. With tables: x = n ln 2 / 256 + r, |r| <= 0.0014 = 2^-9.48. The parts of ln 2 / 256 have 34, 34 and 53 bits, n 19:
// products with the first two are exact. So is f = x.hi - n part_0: where n != 0 it is a multiple of 2^-62, the last bit of x.hi or a smaller number, and
// below 2^-9.5 + n 2^-42 < 2^-9. Of h = RN(f - p), p = n part_1, f - h - p is exact: |f| >= |p| makes it fast_two_sum's; else |p| < 2^-24, f and
// p are multiples of 2^-76, and h is exact. What is rounded: the third product, below 2^-58, and the sum of it and x.lo, below 2^-43, twice:
// r within 2^-94, and exactly where n = 0.
//
// Without: x = k ln 2 + r, |r| <= 0.3467. The parts of ln 2 have 42, 42 and 53 bits, k 11: products with the first two are
// exact, and so is x.hi - k ln2_parts[0]: both are multiples of the last bit of x.hi, >= 2^-54 where k != 0, and the difference is less
// than 1/2. What is rounded: the third product, u 2^-74; low parts, below 2^-42, twice; hence r within 2^-94, and exactly where k = 0.
template <class R>
REPDL_HD reduced_exponent<R> reduce_exponent(double_word<R> x) {
  const auto error = [](R n) -> R { return n == 0 ? math<R>::all(0) : math<R>::all(0x1p-94); };
  if constexpr (uses_tables) {
    const R shifted = math<R>::muladd(x.hi, math<R>::all(256 * dd_log2_e.hi), math<R>::all(0x1.8p52));
    const R n = shifted - 0x1.8p52;
    const looked_up_power<R> power = look_up_power(n, math<R>::to_bits(shifted));
    const R first = math<R>::muladd(-n, math<R>::all(ln2_256th_parts[0]), x.hi);
    const R hi = math<R>::muladd(-n, math<R>::all(ln2_256th_parts[1]), first);
    const R rest = math<R>::muladd(-n, math<R>::all(ln2_256th_parts[1]), first - hi);
    const R lo = rest + math<R>::muladd(-n, math<R>::all(ln2_256th_parts[2]), x.lo);
    return {fast_two_sum(hi, lo), power.k, error(n), power.row};
  } else {
    const R k = nearest(x.hi * dd_log2_e.hi);
    const R first = x.hi - k * ln2_parts[0];
    const double_word<R> s = two_sum(first, -(k * ln2_parts[1]));
    const R low = s.lo + (x.lo - k * ln2_parts[2]);
    return {fast_two_sum(s.hi, low), k, error(k), all_of<R>(dd{1, 0})};
  }
}
// 2^x for |x| <= 1100: x = n/256 + f, exactly, r = f ln 2 within 2^-103 of itself, which the bounds below have room for; exactly where f = 0.
template <class R>
REPDL_HD reduced_exponent<R> reduce_exponent_of_2(R x) {
  const auto reduced = [](R f, R k, double_word<R> row) -> reduced_exponent<R> {
    const double_word<R> r = product(all_of<R>(dd_ln2), double_word<R>{f, math<R>::all(0)});
    return {r, k, math<R>::all(0), row};
  };
  if constexpr (uses_tables) {
    const R shifted = math<R>::muladd(x, math<R>::all(256), math<R>::all(0x1.8p52));
    const R n = shifted - 0x1.8p52;
    const looked_up_power<R> power = look_up_power(n, math<R>::to_bits(shifted));
    return reduced(math<R>::muladd(n, math<R>::all(-0x1p-8), x), power.k, power.row);
  } else {
    const R k = nearest(x);
    return reduced(x - k, k, all_of<R>(dd{1, 0}));
  }
}

// row e^r with a relative error below exp_reduced_error, or without tables e^r - 1 with one below 2^-68.5; of |r| < 2^-400 products underflow, and
// the latter is meaningless.
//
// With tables, |r| <= 2^-9.48, r.lo <= u |r|:
//   e^r - 1 = r + r^2 q, q = 1/2 + r/6 + ... + r^4/720, beside 1:
//     left out: r^7/7! and more                                                       < 2^-78
//     r.hi for r in r^2 q: u r^2                                                      < 2^-71.9
//     in binary64, 3.3 u of r^2/2                                                     < 2^-71.2
//   times row: r.lo + r^2 q < 2^-19.9 |row|; five roundings of that, without FMA, or of what is less: < 2^-70.5 of row. In all < 2^-69.4.
//
// Without, row = 1, |r| <= 0.3467: s = r / 8, |s| <= 0.0434: p = e^s - 1 = s + s^2 (1/2 + s (1/6 + s q)), q = 1/4! + s/5! + ... + s^7/11!;
// then three times e^2s - 1 = p (2 + p) = 2 p + p^2, or the square of 1 + p. Relative errors of p:
//   left out: s^11/12! and more                                                       < 2^-78
//   s q, 4.3 u of s/24 (1 + 2^-6), times s^2                                          < 2^-68.9
// A relative error d of e^s - 1 is as one of d (e^s - 1) / (s e^s) <= 1.03 d of s, and that one of at most r e^r / (e^r - 1) <= 1.19 of
// itself of the result; 1.03 for s < 0, where the other factor is less than 1: 2^-68.9 1.21 < 2^-68.6. Squares multiply the relative error of 1 + p by 8, which is
// 0.0444/1.0444 of p's or 0.0425/0.9575: 2^-68.9 8 0.0445 < 2^-70.3 of e^r. Their low parts are at most 4, 9, 19 u, then 39 u.
inline constexpr double exp_reduced_error = uses_tables ? 0x1.8p-70 : 0x1p-70;
template <bool MinusOne, class R>
REPDL_HD double_word<R> exp_reduced(const reduced_exponent<R>& e) {
  if constexpr (uses_tables) {
    static_assert(!MinusOne);
    const R q = horner(e.r.hi, inverse_factorial<2>(), inverse_factorial<3>(), inverse_factorial<4>(),
                       inverse_factorial<5>(), inverse_factorial<6>());
    const R low = math<R>::muladd(e.r.hi * e.r.hi, q, e.r.lo);
    const double_word<R> p = two_prod(e.row.hi, e.r.hi);
    const double_word<R> s = fast_two_sum(e.row.hi, p.hi);
    return fast_two_sum(s.hi,
                        s.lo + (math<R>::muladd(e.row.hi, low, e.row.lo) + math<R>::muladd(e.row.lo, e.r.hi, p.lo)));
  } else {
    const double_word<R> s{0.125 * e.r.hi, 0.125 * e.r.lo};
    const R q =
        horner(s.hi, inverse_factorial<4>(), inverse_factorial<5>(), inverse_factorial<6>(), inverse_factorial<7>(),
               inverse_factorial<8>(), inverse_factorial<9>(), inverse_factorial<10>(), inverse_factorial<11>());
    double_word<R> t = sum(all_of<R>(dd_inverse_factorial<3>()), s.hi * q);
    t = sum(all_of<R>(dd_inverse_factorial<2>()), product(s, t));
    double_word<R> p = sum(s, product(square(s), t));
    if constexpr (!MinusOne) p = sum(all_of<R>(dd{1, 0}), p);
    REPDL_UNROLL
    for (int i = 0; i < 3; ++i) {
      const double_word<R> squared = square(p);
      p = MinusOne ? sum(double_word<R>{2.0 * p.hi, 2.0 * p.lo}, squared) : squared;
    }
    return normalised(p);
  }
}

// row e^r - c with tables, c = 2^-k of the number x that was reduced, so that 2^k times it is e^x - 1; relative error below 2^-70.5.
//
// e^r - 1 = r + (r^2/2 + r^3 q), q = 1/6 + r/24 + ... + r^4/5040, beside r:
//   left out: r^7/8! and more                                                         < 2^-81
//   r^3 q, 6.3 u of r^2/6, and the roundings of sums of low parts, 2 u of it          < 2^-71
// Then (row - c) + row (e^r - 1). Where row = c = 1, the first part is 0. Else it is 0.0027 at least, and the second one less than 0.51 times that: the
// sum has at most 0.51/0.49 times the relative error of e^r - 1.
template <class R>
REPDL_HD double_word<R> exp_reduced_less(const reduced_exponent<R>& e, R c) {
  const double_word<R> w = square(e.r);
  const R q = horner(e.r.hi, inverse_factorial<3>(), inverse_factorial<4>(), inverse_factorial<5>(),
                     inverse_factorial<6>(), inverse_factorial<7>());
  const double_word<R> s = fast_two_sum(e.r.hi, 0.5 * w.hi);
  const R low = math<R>::muladd(math<R>::all(0.5), w.lo, e.r.lo) + (w.hi * e.r.hi) * q;
  const double_word<R> y = product(e.row, double_word<R>{s.hi, s.lo + low});
  const double_word<R> less = two_sum(e.row.hi, -c);
  const double_word<R> z = fast_two_sum(less.hi, y.hi);
  return fast_two_sum(z.hi, z.lo + ((less.lo + e.row.lo) + y.lo));
}

// m 2^k, m in [0.70, 1.42].
template <class R>
struct scaled_ball {
  dd_ball<R> m;
  R k;
};
// e^x for |x| <= 760, else of k = NaN and no meaning; e^(x + d) - e^x <= 1.01 e^x |d| for |d| <= 2^-10, else nothing is known. The relative error is less than
// exp_reduced_error, 2^-94 (r) in it.
template <class R>
REPDL_HD scaled_ball<R> scaled_exponential(const dd_ball<R>& x) {
  const reduced_exponent<R> e = reduce_exponent(value_of(x));
  const double_word<R> m = exp_reduced<false>(e);
  const mask_of<R> exact = (x.hi == 0) & (x.error == 0);
  const R own = exact ? math<R>::all(0) : exp_reduced_error * m.hi;
  const R brought = x.error <= 0x1p-10 ? 1.5 * x.error : math<R>::all(infinity);
  return {{m.hi, m.lo, up(own + brought)},
          magnitude_of(x.hi) <= 760 ? e.k : math<R>::all(double_of(format<double>::nan))};
}
template <class R>
REPDL_HD dd_ball<R> exponential(const dd_ball<R>& x) {
  const scaled_ball<R> e = scaled_exponential(x);
  const R s = power_of(e.k);
  const mask_of<R> known = magnitude_of(x.hi) <= 620;
  return {e.m.hi * s, e.m.lo * s, known ? e.m.error * s : math<R>::all(infinity)};
}

// e^x - 1 with a small relative error. Without tables 2^k E + (2^k - 1): of results next to 0 k = 0, and of others the sum is at least 0.29 2^k, beside
// which E has its error: 0.415 2^-68.5 / 0.29 of it, 2^-67.9 in all. e^(x + d) - e^x <= 1.5 (|e^x - 1| + 1) |d|.
template <class R>
REPDL_HD double_word<R> exponential_minus_one(const reduced_exponent<R>& e) {
  const R s = power_of(e.k);
  if constexpr (uses_tables) {
    const double_word<R> z = exp_reduced_less(e, power_of(-e.k));
    return {s * z.hi, s * z.lo};
  } else {
    const double_word<R> p = exp_reduced<true>(e);
    return add(double_word<R>{s * p.hi, s * p.lo}, two_sum(s, math<R>::all(-1)));
  }
}
template <class R>
REPDL_HD dd_ball<R> exponential_minus_one(const dd_ball<R>& x) {
  const reduced_exponent<R> e = reduce_exponent(value_of(x));
  const double_word<R> z = exponential_minus_one(e);
  const R own = 0x1.2p-68 * magnitude_of(z.hi) + 1.5 * (magnitude_of(z.hi) + 1) * e.error;
  const R brought = x.error <= 0x1p-10 ? 1.5 * (magnitude_of(z.hi) + 1) * x.error : math<R>::all(infinity);
  const mask_of<R> known = (magnitude_of(x.hi) <= 620) & (magnitude_of(x.hi) >= 0x1p-400);
  return {z.hi, z.lo, known ? up(own + brought) : math<R>::all(infinity)};
}

// ---------------------------------------------------------------------------------------------------------------- log

// ln(1 + f) without tables, f in [-0.2929, 0.4143], relative error below 2^-73, or with more terms in double-double below 2^-84; of f below
// 2^-400 meaningless, but 0 of 0.
//
// s = f / (2 + f), |s| <= 0.1716, w = s^2 <= 0.02945: 2 artanh s = 2 s (1 + w (1/3 + w (1/5 + ...))), with 14 terms; beside 1:
//   left out: w^14/29 and more                                                        < 2^-75.9
//   from w^4/9 on (w^6/13 on) in binary64: 6.3 u of them                              < 2^-73.8 (2^-84.4)
// and 2^-84 has no room for what is left out: 17 terms then, w^17/35 < 2^-91.
template <bool Precise, class R>
REPDL_HD double_word<R> log1p_by_artanh(double_word<R> f) {
  const double_word<R> s = ratio(f, add(f, math<R>::all(2)));
  const double_word<R> w = square(s);
  double_word<R> t;
  if constexpr (Precise) {
    const R q = horner(w.hi, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29,
                       1.0 / 31, 1.0 / 33);
    t = sum(all_of<R>(dd_odd_inverse<5>()), w.hi * q);
    t = sum(all_of<R>(dd_odd_inverse<4>()), product(w, t));
    t = sum(all_of<R>(dd_odd_inverse<3>()), product(w, t));
  } else {
    const R q =
        horner(w.hi, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27);
    t = sum(all_of<R>(dd_odd_inverse<3>()), w.hi * q);
  }
  t = sum(all_of<R>(dd_odd_inverse<2>()), product(w, t));
  t = sum(all_of<R>(dd_odd_inverse<1>()), product(w, t));
  const double_word<R> z = normalised(sum(s, product(s, product(w, t))));
  return {2.0 * z.hi, 2.0 * z.lo};
}

// x = 2^k m, ln m = row + ln(1 + f), for a normal number x.hi > 0; with x.lo beside it, x in [2^-900, 2^1022].
// With tables, m in [0.7037, 1.4076], row = -ln c, f = m c - 1 within 2^-106 and normalised, |f| < 2^-9: m.hi c is exact in two numbers, of which the first
// is within 2^-8 of 1. Where c = 1, row is 0, and f = m - 1 exactly, |f| <= 2^-9 2/3.
// Without, f = m - 1 exactly, m in [0.7071, 1.4143].
template <class R>
struct reduced_logarithm {
  double_word<R> f;
  R k;
  double_word<R> row;
};
template <class R>
REPDL_HD reduced_logarithm<R> reduce_logarithm(double_word<R> x) {
  constexpr std::uint64_t least =
      uses_tables ? logarithm_rows::first_bits : 0x3fe6a09e667f3bcd;  // m's; that of sqrt(1/2)
  constexpr std::uint64_t one = std::uint64_t{1023} << 52;
  const auto bits = math<R>::to_bits(x.hi);
  const auto biased = (bits + (one - least)) >> 52;  // k + 1023
  const R k = math<R>::from_bits(biased | 0x4330000000000000) - (0x1p52 + 1023);
  const auto bits_of_m = bits - (biased << 52) + one;
  const R m = math<R>::from_bits(bits_of_m);
  const R low = 0.5 * (x.lo * math<R>::from_bits((2047 - biased) << 52));
  if constexpr (uses_tables) {
    const auto i = ((bits_of_m - least) >> 44) & 255;
    const auto row = math<R>::look_up(logarithm_on_host.row, i);
    const double_word<R> first = row.two(0), second = row.two(2);
    const R c = first.hi;
    const double_word<R> p = two_prod(m, c);
    return {fast_two_sum(p.hi - 1.0, math<R>::muladd(low, c, p.lo)), k, {first.lo, second.hi}};
  } else {
    return {fast_two_sum(m - 1.0, low), k, all_of<R>(dd{0, 0})};
  }
}
// The same of 1 + v, with f = v where v is small: up to 2^-9 2/3, or from -0.29 to 0.41. Elsewhere the sum 1 + v is a double-double,
// whose error is 2^-104 of it.
template <class R>
REPDL_HD reduced_logarithm<R> reduce_logarithm_1p(double_word<R> v, double_word<R> sum) {
  reduced_logarithm<R> a = reduce_logarithm(sum);
  const mask_of<R> small = uses_tables ? (a.row.hi == 0) & (a.k == 0) : (v.hi > -0.29) & (v.hi < 0.41);
  a.f = {small ? v.hi : a.f.hi, small ? v.lo : a.f.lo};
  a.k = small ? math<R>::all(0) : a.k;
  return a;
}

// k ln 2 + row + ln(1 + f), with its error.
//
// With tables. s = k ln2_parts[0] + row.hi is exact: a multiple of 2^-42 below 2^10; the rest is below 2^-32, rounded twice: 2^-94 of |k| + 2^-10. Where s != 0
// it is 0.0032 at least, and f less than 0.002: the result is 0.0012 at least.
//   ln(1 + f) = f - f^2/2 + f^3 q, q = 1/3 - f/4 + ... - f^5/8, absolute errors in |f|^3/3:
//     left out: f^9/9 and more                                                        < 2^-54
//     f.hi for f in f^3 q: 3 u, or 2^-80 |f|^2 3 where only f.hi is normalised; in binary64, 4.4 u; the sum with low parts, three roundings: 3.1 u
//   10.5 u |f|^3/3 in all. row.lo errs by 2^-97, the sums of low parts, below 2^-41 where k = 0, by 2^-94 each, thrice: 2^-93 of a result of
//   0.0012 at least, unless row = 0, where they are less than 2 u f. Less than 2^-51 |f|^3 + 2^-83 of the result.
// Precise, relative to f:
//   ln(1 + f) = f - f^2 (1/2 - f (1/3 - f (1/4 - f q))), q = 1/5 - f/6 + ... - f^5/10; the brackets in double-double
//     left out: f^10/11 and more                                                      < 2^-93
//     f^4 q, 6.3 u of f^4/5                                                           < 2^-88
//   and of the sum of low parts, below 2^-42 where k = 0, of a result of 0.0012: 2^-86: in all < 2^-85.
//
// Without: sums below 2^11 of the first two parts are exact. Where k != 0, the result is more than 0.346 |k|, beside which
// ln(1 + f) is less than 0.3467 and the rest errs by less than 2^-94; 2^-72, or 2^-83, in all.
template <bool Precise, class R>
REPDL_HD dd_ball<R> join_logarithm(const reduced_logarithm<R>& a) {
  if constexpr (uses_tables) {
    const R s = math<R>::muladd(a.k, math<R>::all(ln2_parts[0]), a.row.hi);
    const R rest = math<R>::muladd(a.k, math<R>::all(dd_ln2.hi - ln2_parts[0]),
                                   math<R>::muladd(a.k, math<R>::all(dd_ln2.lo), a.row.lo));
    const double_word<R> w = square(a.f);
    if constexpr (Precise) {
      const R q = horner(a.f.hi, 1.0 / 5, -1.0 / 6, 1.0 / 7, -1.0 / 8, 1.0 / 9, -1.0 / 10);
      double_word<R> t = sum_of_product(all_of<R>(dd{-0.25, 0}), a.f.hi, q);
      t = sum_of_product(all_of<R>(dd_odd_inverse<1>()), a.f, t);
      t = sum_of_product(all_of<R>(dd{-0.5, 0}), a.f, t);
      const double_word<R> y = sum(a.f, product(w, t));
      const double_word<R> z = fast_two_sum(s, y.hi);
      const double_word<R> r = fast_two_sum(z.hi, z.lo + (rest + y.lo));
      return {r.hi, r.lo, 0x1p-83 * magnitude_of(r.hi)};
    } else {
      const R q = horner(a.f.hi, 1.0 / 3, -1.0 / 4, 1.0 / 5, -1.0 / 6, 1.0 / 7, -1.0 / 8);
      const R cube = w.hi * a.f.hi;
      const double_word<R> y = fast_two_sum(s, a.f.hi);
      const double_word<R> z = fast_two_sum(y.hi, -0.5 * w.hi);
      const R low = math<R>::muladd(math<R>::all(-0.5), w.lo, a.f.lo) + (rest + (y.lo + z.lo));
      const double_word<R> r = fast_two_sum(z.hi, math<R>::muladd(cube, q, low));
      return {r.hi, r.lo, 0x1p-51 * magnitude_of(cube) + 0x1p-83 * magnitude_of(r.hi)};
    }
  } else {
    const double_word<R> s = fast_two_sum(a.k * ln2_parts[0], a.k * ln2_parts[1]);
    const double_word<R> power{s.hi, s.lo + a.k * ln2_parts[2]};
    const double_word<R> z = add(fast_two_sum(power.hi, power.lo), log1p_by_artanh<Precise>(a.f));
    return {z.hi, z.lo, (Precise ? 0x1p-83 : 0x1p-72) * magnitude_of(z.hi)};
  }
}
// ln(2^e x), x a normal number, e a whole one, |e| <= 54, 2^e x != 1, by a short table: within `error` of itself, 2^-66.4 at most. |value.lo| <= 2^-36 |value.hi|.
//
// x = 2^k m, m in [0.7071, 1.4143); and with k + e for k, k ln 2 - ln c + ln(1 + f), c = j/16, f = m c - 1. j is what 16 r is rounded to; m r is within 0.0102 of 1,
// being 1 + T_3(2 sqrt(8) m - 3) / 99 (Chebyshev's T_3, T_3(-3) = -99) with rounded coefficients. So |f| <= 0.0102 + m/32 < 0.055 < 1/16, and f is exact: a multiple of
// 2^-57. s = k ln2_parts[0] - ln c, without the rest of ln c, is exact, and 0 or more than |f|.
//   ln(1 + f) = f + f^2 (-1/2 + f (1/3 + f q)), q = -1/4 + f/5 - ... + f^11/15
//     left out: f^16/16 and more                                                      f^16/16
//     f^4 q in binary64: the last sum 1.06 u, what is added there, below 1/20, 3 u    1.3 u f^4/4
//   of the result, where k = 0 (reference/gen/dd_tables.py)                           < 0.03 u f^2
//   elsewhere, of 0.34 at least, |f| < 0.055                                          < 0.004 u f^2
// The rests of ln 2 and ln c, as those of join_logarithm, and double-doubles err by less than 2^-88 of the result: 2^-82 has room for them.
template <class R>
struct short_logarithm {
  double_word<R> value;
  R error;  // relative
};
template <class R>
REPDL_HD short_logarithm<R> logarithm_by_short_table(R x, R e) {
  constexpr std::uint64_t least = 0x3fe6a09e667f3bcd, one = std::uint64_t{1023} << 52;  // of sqrt(1/2), of 1
  const auto bits = math<R>::to_bits(x);
  const auto biased = (bits + (one - least)) >> 52;  // k + 1023
  const R k = (math<R>::from_bits(biased | 0x4330000000000000) - (0x1p52 + 1023)) + e;
  const R m = math<R>::from_bits(bits - (biased << 52) + one);
  const R r =
      math<R>::muladd(m, math<R>::muladd(m, math<R>::all(14.628), math<R>::all(-46.545)), math<R>::all(47.9975));
  const R shifted = r + 0x1.8p52;
  const R c = 0.0625 * (shifted - 0x1.8p52);
  const double_word<R> row = math<R>::look_up(short_logarithm_on_host.row, math<R>::to_bits(shifted) & 15).two(0);
  const R f = exact_muladd(m, c, math<R>::all(-1));
  const R s = math<R>::muladd(k, math<R>::all(ln2_parts[0]), row.hi);
  const R rest =
      math<R>::muladd(k, math<R>::all(dd_ln2.hi - ln2_parts[0]), math<R>::muladd(k, math<R>::all(dd_ln2.lo), row.lo));
  const double_word<R> w = two_prod(f, f);
  const R even = horner(w.hi, -1.0 / 6, -1.0 / 8, -1.0 / 10, -1.0 / 12, -1.0 / 14);
  const R odd = horner(w.hi, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15);
  const R q = math<R>::muladd(f, odd, w.hi * even) - 0.25;
  double_word<R> p = sum_of_product(all_of<R>(dd_odd_inverse<1>()), f, q);
  p = sum_of_product(all_of<R>(dd{-0.5, 0}), f, p);
  const double_word<R> z = product(w, p);
  const double_word<R> y = fast_two_sum(s, f);
  const double_word<R> t = fast_two_sum(y.hi, z.hi);
  return {{t.hi, t.lo + ((y.lo + z.lo) + rest)},
          math<R>::muladd(w.hi, math<R>::all(0.03 * 0x1p-53), math<R>::all(0x1p-82))};
}
// row + ln(1 + f)
template <class R>
REPDL_HD dd_ball<R> logarithm_without_power(reduced_logarithm<R> a) {
  if constexpr (uses_tables) {
    a.k = math<R>::all(0);
    return join_logarithm<false>(a);
  } else {
    const double_word<R> log = log1p_by_artanh<false>(a.f);
    return {log.hi, log.lo, 0x1p-73 * magnitude_of(log.hi)};
  }
}
// ln x, x > 0: relative error below 2^-68 (2^-83), that of f = 2^-9 beside 0.0032, and mostly much less. |ln(x + d) - ln x| <= 1.125 |d| / x for |d| <= x/16.
template <bool Precise = false, class R>
REPDL_HD dd_ball<R> logarithm(const dd_ball<R>& x) {
  const dd_ball<R> z = join_logarithm<Precise>(reduce_logarithm(value_of(x)));
  const mask_of<R> known = (x.hi >= 0x1p-1022) & (x.hi <= 0x1.fffffffffffffp1023) & (16 * x.error <= x.hi) &
                           (is_in_middle(x.hi) | (x.lo == 0));
  return {z.hi, z.lo, known ? up(z.error + 1.125 * (x.error / x.hi)) : math<R>::all(infinity)};
}
// ln(1 + v), v > -1 and not below 2^-400 in magnitude, with a small relative error; |ln(1 + v + d) - ln(1 + v)| <= 1.125 |d| / (1 + v).
template <class R>
REPDL_HD dd_ball<R> logarithm_1p(const dd_ball<R>& v) {
  const double_word<R> sum = add(value_of(v), math<R>::all(1));
  const dd_ball<R> z = join_logarithm<false>(reduce_logarithm_1p(value_of(v), sum));
  const mask_of<R> known =
      (magnitude_of(v.hi) >= 0x1p-400) & (sum.hi >= 0x1p-900) & (sum.hi <= 0x1p1022) & (16 * v.error <= sum.hi);
  return {z.hi, z.lo, known ? up(z.error + 1.125 * (v.error / sum.hi)) : math<R>::all(infinity)};
}

// -------------------------------------------------------------------------------------------------------- sin and cos

// x = q (pi/2) + r, |r| <= 0.7855, for |x| <= 2^24: q whole, |q| < 2^24. The first three parts of pi/2 have 29 bits, so that their products
// with q are exact, and so is x - q half_pi_parts[0], a multiple of 2^-53 (where q != 0) below 2. Then low parts: those of the two exact sums,
// below 2^-53, and the fourth product, below 2^-63, are added in three roundings: r within 2^-104, and exactly where q = 0.
template <class R>
struct reduced_angle {
  double_word<R> r;
  R error;
  decltype(math<R>::to_bits(R{})) quadrant;  // q, in its last two bits
};
template <class R>
REPDL_HD reduced_angle<R> reduce_angle(R x) {
  const R turns = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;  // RN(2 / pi)
  const R q = turns - 0x1.8p52;
  const double_word<R> s = two_sum(x - q * half_pi_parts[0], -(q * half_pi_parts[1]));
  const double_word<R> t = two_sum(s.hi, -(q * half_pi_parts[2]));
  const R low = (t.lo + s.lo) - q * half_pi_parts[3];
  return {fast_two_sum(t.hi, low), q == 0 ? math<R>::all(0) : math<R>::all(0x1p-104), math<R>::to_bits(turns)};
}

// sin(r + q pi/2), where `sine`, or cos: of r within `error`.
//
// sin r = r (1 - w (1/3! - w (1/5! - ...))), cos r = 1 - w (1/2! - w (1/4! - ...)), w = r^2 <= 0.6171, with 11 terms, of which the
// coefficients are chosen; of those of cos, which are larger, beside cos r > 0.707:
//   left out: w^11/22! and more                                                       < 2^-77
//   from w^5/10! on in binary64: 6.3 u of them                                        < 2^-75.1
//   sum                                                                               < 2^-74.8
template <class R>
REPDL_HD dd_ball<R> circular(const reduced_angle<R>& a, bool sine) {
  const auto quadrant = a.quadrant + (sine ? 0 : 1);                                            // sin, cos, -sin, -cos
  const mask_of<R> odd = math<R>::from_bits((quadrant << 52) & (std::uint64_t{1} << 52)) == 0;  // of r
  const double_word<R> w = square(a.r);
  const R q = odd ? -horner(w.hi, inverse_factorial<11>(), -inverse_factorial<13>(), inverse_factorial<15>(),
                            -inverse_factorial<17>(), inverse_factorial<19>(), -inverse_factorial<21>())
                  : -horner(w.hi, inverse_factorial<10>(), -inverse_factorial<12>(), inverse_factorial<14>(),
                            -inverse_factorial<16>(), inverse_factorial<18>(), -inverse_factorial<20>());
  const auto choose = [&](dd of_sin, dd of_cos) -> double_word<R> {
    return {odd ? math<R>::all(of_sin.hi) : math<R>::all(of_cos.hi),
            odd ? math<R>::all(of_sin.lo) : math<R>::all(of_cos.lo)};
  };
  double_word<R> p = sum_of_product(choose(dd_inverse_factorial<9>(), dd_inverse_factorial<8>()), w.hi, q);
  p = sum_of_product(choose(negative(dd_inverse_factorial<7>()), negative(dd_inverse_factorial<6>())), w, p);
  p = sum_of_product(choose(dd_inverse_factorial<5>(), dd_inverse_factorial<4>()), w, p);
  p = sum_of_product(choose(negative(dd_inverse_factorial<3>()), negative(dd_inverse_factorial<2>())), w, p);
  const double_word<R> first{odd ? a.r.hi : math<R>::all(1), odd ? a.r.lo : math<R>::all(0)};
  const double_word<R> z = normalised(sum(first, product(first, product(w, p))));
  const auto flip = (quadrant << 62) & (std::uint64_t{1} << 63);
  const auto with_flip = [&](R v) { return math<R>::from_bits(math<R>::to_bits(v) ^ flip); };
  return {with_flip(z.hi), with_flip(z.lo), up(0x1.3p-75 * magnitude_of(z.hi) + a.error)};
}
// sin x or cos x, |x| in [2^-400, 2^24]; of other x nothing is known.
template <class R>
REPDL_HD dd_ball<R> circular(R x, bool sine) {
  const dd_ball<R> z = circular(reduce_angle(x), sine);
  const mask_of<R> known = (magnitude_of(x) >= 0x1p-400) & (magnitude_of(x) <= 0x1p24);
  return {z.hi, z.lo, known ? z.error : math<R>::all(infinity)};
}

// ------------------------------------------------------------------------------------------------------------- arctan

// arctan t, |t| <= 0.124: t (1 - w (1/3 - w (1/5 - ...))), w = t^2 < 0.0154, with 13 terms; beside 1:
//   left out: w^13/27 and more                                                        < 2^-83
//   from w^4/9 on in binary64: 6.3 u of them                                          < 2^-77.6
template <class R>
REPDL_HD double_word<R> arctangent_of_small(double_word<R> t) {
  const double_word<R> w = square(t);
  const R q = horner(w.hi, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21, -1.0 / 23, 1.0 / 25);
  double_word<R> p = sum(all_of<R>(negative(dd_odd_inverse<3>())), w.hi * q);
  p = sum(all_of<R>(dd_odd_inverse<2>()), product(w, p));
  p = sum(all_of<R>(negative(dd_odd_inverse<1>())), product(w, p));
  return normalised(sum(t, product(t, product(w, p))));
}
// arctan(n / d), 0 <= n <= d, 1 <= d < 2, by a table: within 2^-71 of itself where it is not below 2^-400, |lo| <= 8 u |hi|.
//
// The angle is arctan c + arctan t, c = i/16, i <= 15, t = (n - c d) / (d + c n).
//   i is what 16 n r - 0.02 is rounded to, at most 15; r d = 1 + T_3(2 d - 3) / 99 is within 1/99 of 1 (Chebyshev's T_3, T_3(-3) = -99). So n/d is between
//     (i - 0.48) / 16.17 (0 of i = 0) and (i + 0.52) / 15.83, and |t| < 0.0335 < 2^-4.89; of i = 0 t = n/d, else |t| < 0.95 arctan(n/d).
//   n - c d is exact: of i > 0 n/d > 1/32 >= c/2, so that it is less than n. n < 2^-4 has i = 1: a multiple of 2^-57 below 2^-4. Else it is a multiple of 2^-56 that
//     is less than 0.04 d < 2^-3.
//   s = RN(d + c n) is between d and 2 d, so that d - s is exact, and so is d + c n - s, a multiple of 2^-61. Without FMA, it is rounded: 2 u^2.
//   t as in `ratio`, |t.lo| <= 3 u |t|.
// arctan t = t - t w (1/3 - w q), q = 1/5 - w/7 + ... - w^5/15, w = t^2 < 2^-9.78; relative to t:
//   left out: w^8/17 and more                                                         < 2^-82
//   w^2 q: in binary64, 3.3 u, and w.hi for w, 7 u, of w^2/5                          < 2^-71.4
// and the steps in double-double add less than 2^-96.
template <class R>
REPDL_HD double_word<R> arctangent_by_table(R n, R d) {
  const R r = math<R>::muladd(d, math<R>::muladd(d, math<R>::all(32.0 / 99), math<R>::all(-144.0 / 99)),
                              math<R>::all(210.0 / 99));
  const R about = math<R>::muladd(16.0 * n, r, math<R>::all(-0.02));
  const R shifted = (about < 15 ? about : math<R>::all(15)) + 0x1.8p52;
  const R c = 0.0625 * (shifted - 0x1.8p52);
  const double_word<R> angle = math<R>::look_up(arctangent_on_host.row, math<R>::to_bits(shifted) & 15).two(0);
  const double_word<R> divisor = sum_of_product(double_word<R>{d, math<R>::all(0)}, c, n);
  const double_word<R> t = ratio(exact_muladd(-c, d, n), divisor);
  const double_word<R> w = square(t);
  const R q = horner(w.hi, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15);
  const double_word<R> p = sum_of_product(all_of<R>(negative(dd_odd_inverse<1>())), w.hi, q);
  const double_word<R> z = product(t, product(w, p));
  const double_word<R> s = fast_two_sum(angle.hi, t.hi);
  const double_word<R> y = fast_two_sum(s.hi, z.hi);
  return {y.hi, y.lo + (s.lo + ((angle.lo + t.lo) + z.lo))};
}
// arctan(n / d) for numbers 0 < n <= d, both in [2^-400, 2^400], n/d >= 2^-400.
//
// With a table 1 <= d < 2, and the error is arctangent_by_table's. Without, arctan(n/d) = arctan c + arctan t, t = (n - c d) / (d + c n), of c = 0, 1/4, 1/2, 13/16 the one with |t| <= 0.13: n/d <= 0.123 and 0: t <=
// 0.123; <= 0.37 and 1/4: t in [-0.1232, 0.1099]; <= 0.645 and 1/2: t in [-0.1098, 0.1097]; <= 1 and 13/16: t in [-0.1099, 0.1035]. Products
// with c are exact (two_prod), sums double-doubles within 2 u^2. w = t^2 < 0.0152: t (1 - w (1/3 - w (1/5 - ...))), with 13 terms; beside 1:
//   left out: w^13/27 and more                                                        < 2^-83
//   from w^4/9 on in binary64: 6.3 u of them                                          < 2^-77.6
// |t| <= arctan(n/d) 1.01 in all four cases: 2^-77.5 of the sum.
template <class R>
REPDL_HD dd_ball<R> arctangent(R n, R d) {
  if constexpr (uses_tables) {
    const double_word<R> z = normalised(arctangent_by_table(n, d));
    const mask_of<R> known = (n <= d) & (n >= 0x1p-400) & (d >= 1) & (d < 2);
    return {z.hi, z.lo, known ? 0x1p-71 * z.hi : math<R>::all(infinity)};
  } else {
    const mask_of<R> beyond_0 = n > 0.123 * d, beyond_1 = n > 0.37 * d, beyond_2 = n > 0.645 * d;
    const auto choose = [&](double c0, double c1, double c2, double c3) -> R {
      const R upper = beyond_2 ? math<R>::all(c3) : math<R>::all(c2);
      const R lower = beyond_0 ? math<R>::all(c1) : math<R>::all(c0);
      return beyond_1 ? upper : lower;
    };
    const R c = choose(0, 0.25, 0.5, 0.8125);
    const double_word<R> angle{choose(0, dd_arctan<1>().hi, dd_arctan<2>().hi, dd_arctan<3>().hi),
                               choose(0, dd_arctan<1>().lo, dd_arctan<2>().lo, dd_arctan<3>().lo)};
    const double_word<R> cd = two_prod(c, d);
    const double_word<R> t = ratio(add(double_word<R>{-cd.hi, -cd.lo}, n), add(two_prod(c, n), d));
    const double_word<R> z = add(angle, arctangent_of_small(t));
    const mask_of<R> known = (n <= d) & (n >= 0x1p-400 * d) & (n >= 0x1p-400) & (d <= 0x1p400);
    return {z.hi, z.lo, known ? 0x1p-77 * z.hi : math<R>::all(infinity)};
  }
}

// The same of balls, n at most little more than d: products with c and sums err by 2^-99 beside d, which where c is not 0 is less than 2^-95 of the
// result. Beside them the operands' bounds: the derivative of arctan is at most 1, and d's bound at most d/16.
template <class R>
REPDL_HD dd_ball<R> arctangent(const dd_ball<R>& n, const dd_ball<R>& d) {
  const mask_of<R> beyond_0 = n.hi > 0.123 * d.hi, beyond_1 = n.hi > 0.37 * d.hi, beyond_2 = n.hi > 0.645 * d.hi;
  const auto choose = [&](double c0, double c1, double c2, double c3) -> R {
    const R upper = beyond_2 ? math<R>::all(c3) : math<R>::all(c2);
    const R lower = beyond_0 ? math<R>::all(c1) : math<R>::all(c0);
    return beyond_1 ? upper : lower;
  };
  const double_word<R> c{choose(0, 0.25, 0.5, 0.8125), math<R>::all(0)};
  const double_word<R> angle{choose(0, dd_arctan<1>().hi, dd_arctan<2>().hi, dd_arctan<3>().hi),
                             choose(0, dd_arctan<1>().lo, dd_arctan<2>().lo, dd_arctan<3>().lo)};
  const double_word<R> cd = normalised(product(c, value_of(d)));
  const double_word<R> cn = normalised(product(c, value_of(n)));
  const double_word<R> t = ratio(add(value_of(n), double_word<R>{-cd.hi, -cd.lo}), add(value_of(d), cn));
  const double_word<R> z = add(angle, arctangent_of_small(t));
  const mask_of<R> known = (n.hi <= 1.01 * d.hi) & (n.hi >= 0x1p-400 * d.hi) & (n.hi >= 0x1p-400) & (d.hi <= 0x1p400) &
                           (16 * d.error <= d.hi);
  const R brought = 1.125 * ((n.error + (n.hi / d.hi) * d.error) / d.hi);
  return {z.hi, z.lo, known ? up(0x1p-77 * z.hi + brought) : math<R>::all(infinity)};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
