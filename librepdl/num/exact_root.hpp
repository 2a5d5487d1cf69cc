// Of binary64: products of several numbers, and P / sqrt(W) + b, exactly: P and W integers in fixed point, b a number.
//
// No approximation decides anything: y = P / sqrt(W) + b is compared with the midpoints of neighbouring numbers by an exact sign,
// and a search, whose guess only saves comparisons, finds the two between which y lies.
//
// With C = t - b, y - t has the sign of P - C sqrt(W): that of P or of -C where these do not differ, else that of P^2 - C^2 W, or its opposite.
// Checked by tests/numerics/exact_root_test.cpp against GMP.
#pragma once

#include "librepdl/num/fixed_point.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// (-1)^negative word 2^exponent: a product of up to five numbers of binary64, or of numbers and counts, of 320 bits at most.
struct number_product {
  static constexpr int words = 5;
  std::uint64_t word[words] = {1, 0, 0, 0, 0};
  int exponent = 0;
  bool negative = false;

  REPDL_HD number_product& times(std::uint64_t count) {
    std::uint64_t carry = 0;
    for (int i = 0; i < words; ++i) word[i] = multiply_add(word[i], count, 0, &carry);
    return *this;
  }
  REPDL_HD number_product& times(double x) {
    const integral_parts p = decompose(x);
    exponent += p.exponent;
    negative = negative != p.negative;
    return times(p.significand);
  }
};
// x y .., finite numbers, or counts of std::uint64_t.
template <class... Factor>
REPDL_HD number_product product_of(Factor... x) {
  number_product p;
  (p.times(x), ...);
  return p;
}

// to += p, a multiple of 2^lsb with exponent >= lsb.
template <int Lsb, int Words>
REPDL_HD void add(fixed_point<Lsb, Words>& to, const number_product& p) {
  for (int i = 0; i < number_product::words; ++i)
    if (p.word[i] != 0) to.add_scaled(p.word[i], p.exponent + 64 * i, p.negative);
}
// to += p s, likewise of every word.
template <int ToLsb, int ToWords, int Lsb, int Words>
REPDL_HD_CALL void add_multiple(fixed_point<ToLsb, ToWords>& to, const fixed_point<Lsb, Words>& s,
                                const number_product& p) {
  const bool is_negative = s.negative();
  std::uint64_t carry = is_negative ? 1 : 0;
  for (int i = 0; i < Words; ++i) {
    const std::uint64_t word = add_carry(is_negative ? ~s.word(i) : s.word(i), 0, &carry);
    for (int k = 0; word != 0 && k < number_product::words; ++k) {
      if (p.word[k] == 0) continue;
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(word, p.word[k], &high);
      const int exponent = Lsb + 64 * (i + k) + p.exponent;
      to.add_scaled(low, exponent, is_negative != p.negative);
      if (high != 0) to.add_scaled(high, exponent + 64, is_negative != p.negative);
    }
  }
}
// to -= a^2.
template <int Lsb, int ToWords, int Words>
REPDL_HD_CALL void subtract_square(fixed_point<2 * Lsb, ToWords>& to, const fixed_point<Lsb, Words>& a) {
  fixed_point<Lsb, Words> s = a;
  if (s.negative()) s.negate();
  for (int i = 0; i < Words; ++i) {
    for (int k = 0; s.word(i) != 0 && k < Words; ++k) {
      if (s.word(k) == 0) continue;
      std::uint64_t high = 0;
      const std::uint64_t low = multiply_wide(s.word(i), s.word(k), &high);
      to.add_scaled(low, 2 * Lsb + 64 * (i + k), true);
      if (high != 0) to.add_scaled(high, 2 * Lsb + 64 * (i + k + 1), true);
    }
  }
}

// What is left of columns of words: 192 bits in two's complement, which hold the products of a column and what the columns before it carry.
struct column_sum {
  std::uint64_t w[3] = {0, 0, 0};

  REPDL_HD void add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t high = 0;
    std::uint64_t carry = 0;
    w[0] = add_carry(w[0], multiply_wide(a, b, &high), &carry);
    w[1] = add_carry(w[1], high, &carry);
    w[2] += carry;
  }
  REPDL_HD void subtract(std::uint64_t a, std::uint64_t b) {
    std::uint64_t high = 0;
    const std::uint64_t low = multiply_wide(a, b, &high);
    std::uint64_t carry = 1;
    w[0] = add_carry(w[0], ~low, &carry);
    w[1] = add_carry(w[1], ~high, &carry);
    w[2] += carry - 1;
  }
  // The lowest word, which the next column is without.
  REPDL_HD std::uint64_t next() {
    const std::uint64_t low = w[0];
    w[0] = w[1];
    w[1] = w[2];
    w[2] = (w[2] >> 63) != 0 ? ~std::uint64_t{0} : 0;
    return low;
  }
};
// Words [first, end) are those that are not 0.
struct word_range {
  int first, end;
};
template <class Sum>
REPDL_HD word_range words_of(const Sum& s) {
  word_range r{0, Sum::words};
  while (r.end > 0 && s.word(r.end - 1) == 0) --r.end;
  while (r.first < r.end && s.word(r.first) == 0) ++r.first;
  return r;
}
REPDL_HD int later(int a, int b) { return a > b ? a : b; }
REPDL_HD int earlier(int a, int b) { return a < b ? a : b; }

// y = P / sqrt(W) + b. Units: of P and W 2^-2176, of the numbers that y is compared with, and of b, 2^-1088: a word of each product has its
// place in the difference of squares.
struct root_quotient {
  static constexpr int unit = -1088;
  using quotient_term = fixed_point<2 * unit, 68>;
  using compared = fixed_point<unit, 35>;

  quotient_term numerator;  // P, its magnitude
  quotient_term square;     // W > 0
  double b = 0;
  int sign = 0;  // of P

  // After numerator was set.
  REPDL_HD void split_sign() {
    sign = numerator.sign();
    if (sign < 0) numerator.negate();
  }

  // The sign of y - t, t = b + C.
  REPDL_HD_CALL int side(compared& c) const {
    const int of_c = c.sign();
    if (of_c * sign <= 0) return sign != 0 ? sign : -of_c;
    if (of_c < 0) c.negate();
    std::uint64_t squared[2 * compared::words];
    const word_range in_c = words_of(c);
    const word_range in_square{2 * in_c.first, 2 * in_c.end};
    column_sum column;
    for (int k = in_square.first; k < in_square.end; ++k) {
      for (int i = later(in_c.first, k - in_c.end + 1); i < earlier(in_c.end, k - in_c.first + 1); ++i)
        column.add(c.word(i), c.word(k - i));
      squared[k] = column.next();
    }
    const word_range in_p = words_of(numerator);
    const word_range in_w = words_of(square);
    const int end = later(2 * in_p.end, in_square.end + in_w.end);
    std::uint64_t any = 0;
    column = column_sum{};
    for (int k = earlier(2 * in_p.first, in_square.first + in_w.first); k < end; ++k) {
      for (int i = later(in_p.first, k - in_p.end + 1); i < earlier(in_p.end, k - in_p.first + 1); ++i)
        column.add(numerator.word(i), numerator.word(k - i));
      for (int i = later(in_square.first, k - in_w.end + 1); i < earlier(in_square.end, k - in_w.first + 1); ++i)
        column.subtract(squared[i], square.word(k - i));
      any |= column.next();
    }
    const bool negative = (column.w[0] >> 63) != 0;
    const int order = negative ? -1 : static_cast<int>((any | column.w[0]) != 0);
    return order * sign;
  }

  // Numbers in their order: k counts from 0, infinity as 2^1024.
  static constexpr std::int64_t most = 0x7ff0000000000000;
  REPDL_HD static std::int64_t place_of(double x) {
    const auto k = static_cast<std::int64_t>(bits_of(x) & 0x7fffffffffffffff);
    return x < 0 ? -k : k;
  }
  REPDL_HD static double at_place(std::int64_t k) {
    return double_of(static_cast<std::uint64_t>(k < 0 ? -k : k) | (k < 0 ? sign_mask<double> : 0));
  }
  REPDL_HD static std::int64_t longer(std::int64_t step) { return step >> 62 != 0 ? step : step + step; }
  // The sign of y - (half of the numbers at places k and l).
  REPDL_HD_CALL int side_of_middle(std::int64_t k, std::int64_t l) const {
    compared c;
    const double ends[] = {at_place(k), at_place(l)};
    for (const double end : ends) {
      const integral_parts p = decompose(end);  // of infinity 2^52 2^972
      c.add_scaled(p.significand, p.exponent - 1, p.negative);
    }
    c.add(-b);
    return side(c);
  }

  // About y.
  REPDL_HD double guess() const {
    const first_bits p = first_bits_of(numerator);
    const first_bits w = first_bits_of(square);
    const double quotient = static_cast<double>(p.high) / num::sqrt(static_cast<double>(w.high));
    const std::int64_t power = p.exponent + 64 - (w.exponent + 64) / 2;
    if (power > 1000) return sign < 0 ? -infinity : infinity;
    const double z = power < -1000 ? 0.0 : quotient * power_of_two(static_cast<int>(power));
    return (sign < 0 ? -z : z) + b;
  }

  // RN(y); of a y that is 0 +0.
  REPDL_HD_CALL double round() const {
    // The least k with y <= the middle of k and k + 1: from a guess by steps that double, then by halves. y is above the middle at `below`.
    const double near = guess();
    std::int64_t k = near == near ? place_of(near) : 0;
    std::int64_t below = -most - 1;
    int side_of_k = k == most ? -1 : side_of_middle(k, k + 1);
    std::int64_t step = 1;
    if (side_of_k > 0) {
      while (side_of_k > 0) {
        below = k;
        k = k > most - step ? most : k + step;
        side_of_k = k == most ? -1 : side_of_middle(k, k + 1);
        step = longer(step);
      }
    } else {
      while (k > -most) {
        const std::int64_t next = k < step - most ? -most : k - step;
        const int side_of_next = side_of_middle(next, next + 1);
        if (side_of_next > 0) {
          below = next;
          break;
        }
        k = next;
        side_of_k = side_of_next;
        step = longer(step);
      }
    }
    while (k - 1 > below) {
      const std::int64_t half = (below & k) + ((below ^ k) >> 1);  // of numbers whose sum may be too large
      const int side_of_half = side_of_middle(half, half + 1);
      if (side_of_half > 0) {
        below = half;
      } else {
        k = half;
        side_of_k = side_of_half;
      }
    }
    if (side_of_k == 0 && (k & 1) != 0) ++k;
    if (k == 0) return side_of_middle(0, 0) < 0 ? -0.0 : 0.0;
    return at_place(k);
  }
};

}  // namespace REPDL_ISA
}  // namespace repdl::num
