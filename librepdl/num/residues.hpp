// Sums of products in integers, modulo small numbers, whose results meet as fractions: what a matrix unit for 8-bit integers can do of an exact
// product of binary32 numbers.
//
// A line (a row of a, a column of b) is scaled and rounded to integers, a' = rint(2^s a), |a'| its Euclidean norm. With pairwise coprime moduli
// p_1 ... p_n, P their product and 2 |a'| |b'| < P, the integer S' = sum a'_k b'_k lies in (-P/2, P/2) (Cauchy-Schwarz), and its residues
// say which it is. Instead of the Chinese remainder theorem fractions are added: with q_i = (P / p_i)^-1 modulo p_i
//     S' / P = sum r_i q_i / p_i  modulo 1                for any r_i = S' modulo p_i,
// so with weights F_i = rint(2^64 q_i / p_i) the 64-bit number f = sum r_i F_i, wrapping around, is 2^64 S' / P, modulo 2^64, up to sum |r_i| / 2: integers
// in any order, so moduli may be divided among threads. |r_i| < 3 p_i <= 768 here. Of sums |S| <= 2^30 the quotient q = floor(S R / 2^32), R = floor(2^32 / p), has
// S / p - 5/4 < q < S / p + 1/4, so that S - q p lies between -p / 4 and 5/4 p.
//
// Errors. A, B >= |a|, |b| and R >= |a - 2^-s a'| (residual_a, residual_b), all Euclidean norms. f as a signed number times unit = 2^-64 P 2^(-s - t) is v:
//     |v - a b| <= 384 n unit                                     of the weights
//                + R_a |b| + 2^-s |a'| R_b                        of what rounding took: a b = (2^-s a' + alpha)(2^-t b' + beta), and 2^-s |a'| <= |a| + R_a
//                + 3 u' |v|, u' = 2^-53 (1 + 2^-50)               f to binary64, P 2^-64 as one, their product
// and (C) of certify.hpp wants u |v| more and e (1 - u): e = (1 + 2^-40) (385 n unit + R_a B + (A + R_a) R_b + 2^-50 |v|) has all that, and the six roundings
// that e itself takes. f does not wrap: |S'| <= P (1/2 - 2^-20) and 384 n 2^-64 < 2^-20.
//
// In units, with X >= 2^s A, X_r >= 2^s R, and Y, Y_r of b's: |f unit - a b| <= E unit with E = 384 n + (X_r Y + (X + X_r) Y_r) 2^64 / P, so
// with d = fl(f), W = (1 + 2^-20)(385 n + 2^13 + (X_r Y + (X + X_r) Y_r) / (P 2^-64)) the ends fl(fl(d - W) fl(unit)), fl(fl(d + W) fl(unit)) enclose a b: five roundings of
// 2^-53, that of P among them, move an end by at most (2^63 + W) 2^-50.6 unit, and those of W, five on the longest path, W by less than 2^-50 W: less than
// (2^13 + 2^-20 W) unit. What is the row's in W is computed once (fraction_width). Residuals of lines differ: normally distributed numbers lose only where they are small.
//
// Ties and zeros: with no residuals S = a b is a multiple of g = 2^(lsb_a + lsb_b); where e < g / 4 and |v| < 2^51 g it is the multiple next to v.
//
// s is the greatest integer with 2^s A <= limit(K): |a'| <= 2^s |a| + sqrt(K) / 2, as each of K numbers is off by at most 1/2; so limit(K) = sqrt(P / 2) (1 - 2^-20)
// - sqrt(K) / 2 - 1 has |a'| |b'| <= P (1/2 - 2^-20). n <= 12, P < 2^96: |a'_k| < 2^48.
//
// Sources: K. Ozaki, Y. Uchino, T. Imamura, "Ozaki scheme II: a GEMM-oriented emulation of floating-point matrix multiplication using an integer
// modular technique" (2025), for residues on matrix units; the fractions: N. Szabo, R. Tanaka, "Residue arithmetic and its applications to computer technology"
// (1967). Checked by tests/numerics/residues_test.cpp.
#pragma once

#include <cstdint>

#include "librepdl/num/bounded_value.hpp"
#include "librepdl/num/certify.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

inline constexpr int most_moduli = 12;

// The greatest pairwise coprime numbers up to 256.
struct coprime_numbers {
  int at[most_moduli];
};
constexpr coprime_numbers coprime_moduli() {
  coprime_numbers found{};
  int count = 0;
  for (int candidate = 256; count < most_moduli; --candidate) {
    bool is_coprime = true;
    for (int i = 0; i < count; ++i) {
      int x = found.at[i], y = candidate;
      while (y != 0) {
        const int rest = x % y;
        x = y;
        y = rest;
      }
      is_coprime = is_coprime && x == 1;
    }
    if (is_coprime) found.at[count++] = candidate;
  }
  return found;
}
inline constexpr coprime_numbers moduli = coprime_moduli();

struct residue_weight {
  std::int32_t negative;    // less than 0: minus the modulus
  std::int32_t reciprocal;  // floor(2^32 / modulus)
  std::int32_t low;         // high 2^32 + low: the weight, modulo 2^64
  std::uint32_t high;
};

// The first `count` moduli.
struct residue_system {
  int count;
  double unit;   // P 2^-64
  double limit;  // of norms, for K = 0: less than sqrt(P / 2) (1 - 2^-20)
  residue_weight of[most_moduli];
};

constexpr residue_system residue_system_of(int count) {
  __extension__ using wide = unsigned __int128;
  residue_system s{};
  s.count = count;
  wide product = 1;
  for (int i = 0; i < count; ++i) {
    const auto p = static_cast<unsigned>(moduli.at[i]);
    product *= p;
    unsigned others = 1;  // P / p modulo p
    for (int j = 0; j < count; ++j) {
      if (j != i) others = others * static_cast<unsigned>(moduli.at[j]) % p;
    }
    unsigned inverse = 1;
    while (others * inverse % p != 1) ++inverse;
    const auto weight = static_cast<std::uint64_t>(((wide{inverse} << 65) + p) / (2 * p));
    const auto low = static_cast<std::int32_t>(static_cast<std::uint32_t>(weight));
    s.of[i] = {-static_cast<std::int32_t>(p), static_cast<std::int32_t>((std::uint64_t{1} << 32) / p), low,
               static_cast<std::uint32_t>((weight - static_cast<std::uint64_t>(std::int64_t{low})) >> 32)};
  }
  s.unit = static_cast<double>(product) * 0x1p-64;
  wide root = 0;  // of P / 2, rounded down
  for (wide bit = wide{1} << 48; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= product / 2) root += bit;
  }
  s.limit = static_cast<double>(static_cast<std::uint64_t>(root)) * (1 - 0x1p-19);
  return s;
}

// sqrt_of_length: at least the square root of the terms' number.
REPDL_HD double residue_limit(double limit, double sqrt_of_length) { return limit - 0.5 * sqrt_of_length - 2; }

// The greatest s with 2^s norm <= limit; 0 for norms that are 0 or not finite, whose lines are decided otherwise. Norms of binary32 numbers: from 2^-149
// to 2^160, limits from 2^7 to 2^48.
REPDL_HD int residue_shift(double limit, double norm) {
  if (!(norm > 0 && norm < infinity)) return 0;
  constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
  const std::uint64_t l = bits_of(limit), n = bits_of(norm);
  return static_cast<int>(l >> 52) - static_cast<int>(n >> 52) - ((n & fraction) > (l & fraction) ? 1 : 0);
}

// What is known of a line.
struct residue_line {
  double norm;      // A: infinite or NaN where an element is
  double residual;  // R
  int shift;        // s
  int lsb;          // of the line's elements: they are multiples of 2^lsb
};

// e of a value v != S, from norms, residuals and unit = 2^(-s - t) P 2^-64.
REPDL_HD double bound_of_fraction(double v, double unit, const residue_line& a, const residue_line& b, int count) {
  const double sum = fma(a.norm + a.residual, b.residual, fma(a.residual, b.norm, 385.0 * count * unit));
  return fma(0x1p-50, magnitude_of(v), sum) * (1 + 0x1p-40);
}

// W of the comment above.
struct fraction_width {
  double least, residual, both;  // X_r, X + X_r

  REPDL_HD fraction_width(double x, double x_residual, double unit_of_system, int count) {
    const double per_unit = (1 + 0x1p-20) / unit_of_system;
    least = (385.0 * count + 0x1p13) * (1 + 0x1p-20);
    residual = x_residual * per_unit;
    both = (x + x_residual) * per_unit;
  }
  REPDL_HD double with(double y, double y_residual) const { return fma(residual, y, fma(both, y_residual, least)); }
};

// a b from f, with e of (C); e = 0: exactly. Where a norm is not finite, e is not.
REPDL_HD bounded_value<double> value_of_fraction(std::int64_t f, const residue_line& a, const residue_line& b,
                                                 double unit_of_system, int count) {
  const double unit = power_of_two(-a.shift - b.shift) * unit_of_system;
  double v = static_cast<double>(f) * unit;
  double e = bound_of_fraction(v, unit, a, b, count);
  if (a.residual == 0 && b.residual == 0) {
    if (a.norm == 0 || b.norm == 0) {  // and the other one is finite, or NaN is decided elsewhere
      const double zero = a.norm * b.norm;
      return {zero, zero};
    }
    const double g = power_of_two(a.lsb + b.lsb);
    if (e < 0.25 * g && magnitude_of(v) < 0x1p51 * g) {
      v = g * ((v / g + 0x1.8p52) - 0x1.8p52);
      e = 0;
    }
  }
  return {v, e};
}

}  // namespace REPDL_ISA
}  // namespace repdl::num
