// Terms and factors whose sums belong to a class by construction. As in samples.cpp, the order of the draws is fixed.
#include <algorithm>

#include "reference/samples.hpp"
#include "reference/wide_integer.hpp"

namespace repdl::reference {
namespace {

constexpr int unit = -298;  // of all sums: every product of two binary32 numbers is a multiple of 2^unit

using patterns = std::vector<std::uint32_t>;

std::uint32_t pattern32(bool negative, std::uint64_t m, int e) {
  return static_cast<std::uint32_t>(exact_pattern(f32, negative, m, e));
}

/// A uniform pattern for sums: all of them would be NaN, so only some rows keep non-finite patterns.
std::uint32_t finite_pattern(std::uint32_t x, bool keep) {
  return !keep && (x & 0x7f800000) == 0x7f800000 ? x ^ 0x00800000 : x;
}

std::uint32_t ordinary(sample_class c, word_stream& w) { return static_cast<std::uint32_t>(sample(c, f32, w)); }

std::uint32_t special32(word_stream& w) {
  constexpr std::uint32_t list[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001};
  return list[w.below(5)];
}

/// Appends terms, each the residual's leading 24 bits, until nothing is left or `limit` terms were made.
void decompose(wide_integer residual, std::size_t limit, patterns* terms) {
  for (; limit > 0 && !residual.is_zero(); --limit) {
    const wide_integer magnitude = residual.magnitude();
    const int low = std::max(magnitude.length() - 24, 149);  // 2^149 units are 2^-149
    const std::uint64_t top = magnitude.bits_from(low);
    if (top == 0) break;
    std::uint32_t x = pattern32(residual.negative(), top, low + unit);
    if ((x & 0x7f800000) == 0x7f800000) x -= 1;  // at most the largest number
    terms->push_back(x);
    const number n = widen(f32, x);
    residual.add(!n.negative, n.significand, n.exponent - unit);
  }
}

/// A row whose sum (or mean) is what the class says: random terms, then the few that lead to the target.
patterns aimed_row(sample_class c, std::size_t k, bool mean, word_stream& w) {
  patterns row;
  const std::size_t reserve = c == sample_class::overflow_border ? 6 : 4;
  const bool short_near = c == sample_class::near_ties && k == 3;  // two terms for the tie, one beside it
  const std::size_t free = k > reserve + 1 ? k - reserve : k < 2 ? k : short_near ? 0 : 1;
  wide_integer sum;
  const int e = w.between(-6, 10);
  for (std::size_t i = 0; i < free; ++i) {
    std::uint32_t x = 0;
    if (c == sample_class::overflow_border) {  // pairs that nearly cancel
      x = i % 2 == 0 ? ordinary(c, w) : (row.back() ^ 0x80000000) - w.below(4);
    } else {
      x = ordinary(sample_class::normal_range, w);
    }
    row.push_back(x);
    const number n = widen(f32, x);
    sum.add(n.negative, n.significand, n.exponent - unit);
  }
  wide_integer target;
  const bool negative = w.flip(), other = w.flip();
  const auto odd = std::uint64_t{w.next()} >> 8 | (1U << 24) | 1;  // 25 bits
  switch (c) {
    case sample_class::ties:
      target.add(negative, odd, e - 24 - unit);
      break;
    case sample_class::near_ties:
      target.add(negative, odd, e - 24 - unit);
      break;
    case sample_class::overflow_border: {  // the threshold, or next to it
      target.add(negative, (1U << 25) - 1, 103 - unit);
      const int below = w.between(-40, 100);
      if (w.below(4) != 0) target.add(other, 1, below - unit);
      break;
    }
    default:  // cancelling
      if (w.below(4) == 0) target.add(negative, odd, e - 90 - unit);
  }
  if (mean) target = target.times(static_cast<std::uint32_t>(k));
  // The tiny part of a near-tie is a term of its own: the others are as many bits apart as they are.
  std::uint32_t tiny = 0;
  if (c == sample_class::near_ties && k > 2) tiny = pattern32(other, 1, e - w.between(60, 100));
  target.add(true, sum);
  if (c == sample_class::overflow_border && mean) target = {};  // a mean cannot overflow
  if (row.size() < k) decompose(target, k - row.size() - (tiny != 0 ? 1 : 0), &row);
  if (tiny != 0) row.push_back(tiny);
  row.resize(k, 0);
  std::rotate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(w.below(static_cast<std::uint32_t>(k))),
              row.end());
  return row;
}

}  // namespace

array fill_terms(sample_class c, std::int64_t rows, std::int64_t k, bool mean, std::uint64_t seed,
                 std::uint64_t stream) {
  array a(f32, {rows, k});
  word_stream w(seed, stream);
  const auto n = static_cast<std::size_t>(k);
  for (std::size_t r = 0; n != 0 && r < static_cast<std::size_t>(rows); ++r) {
    patterns row;
    switch (c) {
      case sample_class::ties:
      case sample_class::near_ties:
      case sample_class::cancelling:
      case sample_class::overflow_border:
        row = aimed_row(c, n, mean, w);
        break;
      case sample_class::single_nonfinite:
        for (std::size_t i = 0; i < n; ++i) row.push_back(ordinary(sample_class::normal_range, w));
        row[w.below(static_cast<std::uint32_t>(n))] = special32(w);
        if (w.flip()) row[w.below(static_cast<std::uint32_t>(n))] = special32(w);
        break;
      case sample_class::zeros: {
        const std::uint32_t kind = w.below(4);  // all -0, all +0, both, or with numbers
        for (std::size_t i = 0; i < n; ++i) {
          const std::uint32_t zero = w.flip() ? 0x80000000 : 0;
          row.push_back(kind == 0 ? 0x80000000 : kind == 1 ? 0 : kind == 2 ? zero : ordinary(c, w));
        }
        break;
      }
      default: {
        const bool keep = w.below(16) == 0;
        for (std::size_t i = 0; i < n; ++i) row.push_back(finite_pattern(ordinary(c, w), keep));
      }
    }
    for (std::size_t i = 0; i < n; ++i) a.set(r * n + i, row[i]);
  }
  return a;
}

// Products share their factors, so the classes are built from small integers: rows of a are 2^r_i times integers,
// columns of b 2^c_j times integers, and one pair p_i * q_j carries the result's magnitude.
factors fill_factors(sample_class c, std::int64_t m, std::int64_t n, std::int64_t k, bool with_bias, std::uint64_t seed,
                     std::uint64_t stream) {
  factors f{array(f32, {m, k}), array(f32, {k, n}), with_bias ? array(f32, {n}) : array()};
  word_stream w(seed, stream);
  const auto rows = static_cast<std::size_t>(m), cols = static_cast<std::size_t>(n),
             inner = static_cast<std::size_t>(k);
  const bool border = c == sample_class::overflow_border;
  const bool tie = c == sample_class::ties || c == sample_class::near_ties;
  // Even integers below 2^bits on both sides: sums of k products stay below 2^21.
  int spare = 0;
  while ((std::int64_t{1} << spare) < k) ++spare;
  const int bits = std::max(2, std::min(9, (21 - spare) / 2));
  const auto even = [&](bool at_all) { return at_all ? (std::uint64_t{w.next()} >> (33 - bits)) << 1 : 0; };
  const std::size_t carrier = inner == 0 ? 0 : w.below(static_cast<std::uint32_t>(inner));
  const std::size_t trifle = c == sample_class::near_ties && inner > 1 ? (carrier + 1) % inner : inner;
  // Cancelling: the factors of k and of its mirror image are equal in a and opposite in b.
  const auto fill_side = [&](array& a, bool left) {
    const std::size_t lines = left ? rows : cols;
    for (std::size_t i = 0; i < lines; ++i) {
      const int scale = with_bias && left ? 0 : w.between(-9, 9);
      const bool sign = w.flip(), trifle_sign = w.flip(), keep = w.below(16) == 0;
      const std::size_t odd_one = inner == 0 ? 0 : w.below(static_cast<std::uint32_t>(4 * inner));
      const std::uint32_t odd_value = special32(w);
      const int offset = w.between(0, 300);
      patterns line(inner);
      for (std::size_t l = 0; l < inner; ++l) {
        const bool negative = w.flip();
        std::uint32_t x = 0;
        if (tie || border) {
          // 4801 .. 5401 squared has 25 bits; 5792.6^2 is 2^25: the border is on both sides of it.
          const std::uint64_t p =
              border ? 5783 + 2 * (static_cast<unsigned>(offset) % 11) : 4801 + 2 * static_cast<unsigned>(offset);
          const int e = border ? (left ? 51 : 52) : scale;
          x = l == carrier  ? pattern32(sign, p, e)
              : l == trifle ? pattern32(trifle_sign, 1, e - 40)
                            : pattern32(negative, even(inner > 1), e);
        } else if (c == sample_class::subnormal) {
          x = pattern32(negative, w.next() >> 26, -75);  // products in units of 2^-150
        } else if (c == sample_class::cancelling) {
          const std::size_t mirror = inner - 1 - l;
          x = ordinary(sample_class::normal_range, w);
          if (l > mirror) x = line[mirror] ^ (left ? 0 : 0x80000000);
          if (l == mirror) x = left && w.flip() ? pattern32(sign, 1, -70) : 0;
        } else if (c == sample_class::single_nonfinite) {
          x = l == odd_one ? odd_value : ordinary(sample_class::normal_range, w);
          if (w.below(40) == 0) x &= 0x80000000;
        } else if (c == sample_class::wide_exponents) {
          const int e = w.between(-60, 60);
          x = static_cast<std::uint32_t>(compose(f32, negative, e, w.next()));
        } else {
          x = finite_pattern(ordinary(c, w), keep);
        }
        line[l] = x;
      }
      for (std::size_t l = 0; l < inner; ++l) a.set(left ? i * inner + l : l * cols + i, line[l]);
      if (left || !with_bias) continue;
      const bool negative = w.flip();
      std::uint32_t b = ordinary(c, w);
      if (tie) b = pattern32(negative, even(true), scale);
      if (border) b = pattern32(negative, even(true), 103);
      if (c == sample_class::cancelling && w.flip()) b = negative ? 0x80000000 : 0;
      f.bias.set(i, b);
    }
  };
  fill_side(f.a, true);
  fill_side(f.b, false);
  return f;
}

}  // namespace repdl::reference
