// RN_T of an exact sum of quotients g / n, for divisors n without a small common multiple. Of numbers of binary64 where T is that, of
// binary32 else: their greatest one is below 2^1024, or 2^128, and their least one 2^least, least = -1074 or -149.
//
// Every quotient is divided out to 2^lsb, lsb = least - 320, in integers; R is the sum of those, truncated, in units of
// 2^lsb. With K truncated terms the exact sum S lies in (R - K, R + K). Where both ends round to one number of T, S does too.
//
// Otherwise a boundary of rounding is in between: 0, or the middle between two numbers of T. All of them are multiples of
// 2^(least - 1) = 2^319 units and the interval is shorter than 2^63, so there is one, b, and R = b + c with |c| <= K: c is the
// low word of R. What is left is the sign of S - b, which takes no common denominator either: the rests r of the
// divisions are known modulo their n at any place behind the point, so each pass brings 320 more bits of c + sum r / n,
// until their sum is further from 0 than the truncated terms can make up for.
//
// If S = b, no number of bits shows it. But S - b is a multiple of 2^(least - 1) / D, D the least common multiple of the
// divisors, and after bits of fraction it is known to be below 2K 2^(least - bits) <= 2^(least + 63 - bits): it is 0 as soon as
// D <= 2^(bits - 64).
//
// Sizes: |g| < 2^128, n < 2^62, fewer than 2^62 terms: |R| < 2^(128 + 469 + 62), 660 bits with the sign, in 704. Of binary64
// |R| < 2^(1024 + 1394 + 62), 2481 bits in 2496.
// A pass: c < 2^62 and fewer than 2^62 terms below 1, times 2^320: 384 bits with the sign, in 448.
// Checked by tests/convolution/pool_test.cpp against GMP.
#pragma once

#include "librepdl/num/fixed_point.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// floor((high 2^64 + low) / n), high < n < 2^62; *rest becomes the remainder. Digits of 32 bits where n has no more.
REPDL_HD std::uint64_t divide_wide(std::uint64_t high, std::uint64_t low, std::uint64_t n, std::uint64_t* rest) {
  if (n >> 32 == 0) {
    const std::uint64_t first = high << 32 | low >> 32;
    const std::uint64_t second = (first % n) << 32 | (low & 0xffffffffu);
    *rest = second % n;
    return (first / n) << 32 | second / n;
  }
  std::uint64_t quotient = 0;
  for (int bit = 63; bit >= 0; --bit) {
    high = high << 1 | ((low >> bit) & 1);
    const bool fits = high >= n;
    high -= fits ? n : 0;
    quotient = quotient << 1 | static_cast<std::uint64_t>(fits);
  }
  *rest = high;
  return quotient;
}

REPDL_HD std::uint64_t multiply_modulo(std::uint64_t a, std::uint64_t b, std::uint64_t n) {  // a, b < n
  std::uint64_t high = 0;
  const std::uint64_t low = multiply_wide(a, b, &high);
  std::uint64_t rest = 0;
  divide_wide(high, low, n, &rest);
  return rest;
}

// 2^exponent modulo n, exponent >= 0.
REPDL_HD std::uint64_t power_modulo(std::int64_t exponent, std::uint64_t n) {
  std::uint64_t r = 1 % n;
  for (int bit = 63 - leading_zeros(static_cast<std::uint64_t>(exponent) | 1); bit >= 0; --bit) {
    r = multiply_modulo(r, r, n);
    if ((exponent >> bit & 1) != 0) r = 2 * r >= n ? 2 * r - n : 2 * r;
  }
  return r;
}

// sum += (-1)^negative floor(m 2^(exponent - lsb) / n) 2^lsb; returns the remainder.
template <int Lsb, int Words>
REPDL_HD std::uint64_t add_quotient(fixed_point<Lsb, Words>& sum, std::uint64_t m, int exponent, std::uint64_t n,
                                    bool negative) {
  const int at = (exponent - Lsb) >> 6;
  const int by = (exponent - Lsb) & 63;
  std::uint64_t rest = 0;
  for (int i = at + 1; i >= 0; --i) {
    const std::uint64_t word = i > at ? (m >> 1) >> (63 - by) : i == at ? m << by : 0;
    if ((rest | word) == 0) continue;
    sum.add_scaled(divide_wide(rest, word, n, &rest), Lsb + 64 * i, negative);
  }
  return rest;
}

// What is added up for results of T.
template <class T>
using widest_of = std::conditional_t<std::is_same_v<T, double>, double, float>;

// terms(use) calls use(g, n) for every term: a number of widest_of<T>, and 1 <= n < 2^62. common_bits: the divisors have a common
// multiple of at most 2^common_bits.
template <class T = float, class Terms>
REPDL_HD T round_quotient_sum(const Terms& terms, std::int64_t common_bits) {
  using number = widest_of<T>;
  constexpr int step = 320;
  constexpr int least = least_exponent<number>;
  fixed_point<least - step, (format<number>::emax + 1 - least + step + 62 + 1 + 63) / 64> sum;
  special_terms special;
  std::uint64_t cut = 0;  // terms that were truncated
  terms([&](number g, std::uint64_t n) {
    if (!is_finite(static_cast<double>(g))) return special.add(static_cast<double>(g));
    const auto x = decompose(g);
    cut += add_quotient(sum, x.significand, x.exponent, n, x.negative) != 0 ? 1 : 0;
  });
  if (special.any()) return special.value<T>();
  auto low = sum;
  auto high = sum;
  low.add_scaled(cut, sum.lsb, true);
  high.add_scaled(cut, sum.lsb, false);
  const T below = low.template round<T>();
  const T above = high.template round<T>();
  if (to_bits(below) == to_bits(above)) return below;

  auto c = static_cast<std::int64_t>(sum.word(0));
  auto boundary = sum;
  boundary.add_scaled(static_cast<std::uint64_t>(c < 0 ? -c : c), sum.lsb, c >= 0);
  for (std::int64_t bits = step; bits - 64 < common_bits; bits += step) {
    fixed_point<0, 7> y;
    y.add_scaled(static_cast<std::uint64_t>(c < 0 ? -c : c), step, c < 0);
    cut = 0;
    terms([&](number g, std::uint64_t n) {
      if (g == 0) return;
      const auto x = decompose(g);
      const std::uint64_t power = power_modulo(x.exponent - least + bits, n);
      std::uint64_t rest = multiply_modulo(x.significand % n, power, n);
      for (int i = step / 64 - 1; i >= 0 && rest != 0; --i) {
        y.add_scaled(divide_wide(rest, 0, n, &rest), 64 * i, x.negative);
      }
      cut += rest != 0 ? 1 : 0;
    });
    auto nearer = y;
    nearer.add_scaled(cut, 0, !y.negative());
    if (y.sign() != 0 && (nearer.is_zero() || nearer.negative() == y.negative())) return y.negative() ? below : above;
    c = static_cast<std::int64_t>(y.word(0));
  }
  return boundary.template round<T>();
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
