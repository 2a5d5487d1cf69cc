// Terms and factors whose sums belong to a class by construction. As in samples.cpp, the order of the draws is fixed.
#include <algorithm>

#include "reference/numbers/wide_integer.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using numbers_of = detail::patterns_of<std::uint64_t>;
using patterns = std::vector<std::uint64_t>;

/// Every product of two binary32 numbers is a multiple of 2^-298, and every term here that is made for a sum of binary64; at the end of
/// that range the sums lie elsewhere.
int unit_of_sums(dtype type, sample_class c) {
  return type == dtype::f64 && c == sample_class::overflow_border ? 400 : -298;
}

/// Appends terms, each the residual's leading bits, until nothing is left or `limit` terms were made.
void decompose(const numbers_of& t, int sum_unit, wide_integer residual, std::size_t limit, patterns* terms) {
  for (; limit > 0 && !residual.is_zero(); --limit) {
    const wide_integer magnitude = residual.magnitude();
    const int low = std::max(magnitude.length() - t.f.precision, t.f.ulp_min() - sum_unit);
    const std::uint64_t top = magnitude.bits_from(low);
    if (top == 0) break;
    std::uint64_t x = t.pattern(residual.negative(), top, low + sum_unit);
    if (!t.is_finite(x)) x -= 1;  // at most the largest number
    terms->push_back(x);
    const number n = widen(t.type, x);
    residual.add(!n.negative, n.significand, n.exponent - sum_unit);
  }
}

/// A row whose sum (or mean) is what the class says: random terms, then the few that lead to the target.
patterns aimed_row(const numbers_of& t, sample_class c, std::size_t k, bool mean, word_stream& w) {
  patterns row;
  const int p = t.f.precision;
  const bool is_wide = t.type == dtype::f64;
  const int sum_unit = unit_of_sums(t.type, c);
  const std::size_t reserve = is_wide ? 6 : t.type != f32 ? 10 : c == sample_class::overflow_border ? 6 : 4;
  const bool short_near = c == sample_class::near_ties && k == 3;  // two terms for the tie, one beside it
  const std::size_t free = k > reserve + 1 ? k - reserve : k < 2 ? k : short_near ? 0 : 1;
  wide_integer sum;
  const int e = w.between(-6, 10);
  for (std::size_t i = 0; i < free; ++i) {
    std::uint64_t x = 0;
    if (c == sample_class::overflow_border) {  // pairs that nearly cancel
      x = i % 2 == 0 ? t.ordinary(c, w) : (row.back() ^ t.sign()) - w.below(4);
    } else {
      x = t.ordinary(sample_class::normal_range, w);
    }
    row.push_back(x);
    const number n = widen(t.type, x);
    sum.add(n.negative, n.significand, n.exponent - sum_unit);
  }
  wide_integer target;
  const bool negative = w.flip(), other = w.flip();
  const std::uint64_t leading = is_wide ? w.next64() >> (64 - p) : std::uint64_t{w.next()} >> (32 - p);
  const std::uint64_t odd = leading | std::uint64_t{1} << p | 1;  // p + 1 bits
  switch (c) {
    case sample_class::ties:
      target.add(negative, odd, e - p - sum_unit);
      break;
    case sample_class::near_ties:
      target.add(negative, odd, e - p - sum_unit);
      break;
    case sample_class::overflow_border: {  // the threshold, or next to it
      const int half = t.f.emax - p;       // of the last place
      target.add(negative, (std::uint64_t{1} << (p + 1)) - 1, half - sum_unit);
      const int below = w.between(is_wide ? sum_unit : std::max(-40, t.f.ulp_min()), half - 3);
      if (w.below(4) != 0) target.add(other, 1, below - sum_unit);
      break;
    }
    default:  // cancelling
      if (w.below(is_wide ? 5 : 4) == 0) target.add(negative, odd, std::max(e - 90, t.f.ulp_min()) - sum_unit);
  }
  if (mean) target = target.times(static_cast<std::uint32_t>(k));
  // The tiny part of a near-tie is a term of its own: the others are as many bits apart as they are.
  std::uint64_t tiny = 0;
  if (c == sample_class::near_ties && k > 2) tiny = t.tiny(other, e - w.between(60, 100) - (is_wide ? 50 : 0));
  target.add(true, sum);
  if (c == sample_class::overflow_border && mean) target = {};  // a mean cannot overflow
  if (row.size() < k) decompose(t, sum_unit, target, k - row.size() - (tiny != 0 ? 1 : 0), &row);
  if (tiny != 0) row.push_back(tiny);
  row.resize(k, 0);
  std::rotate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(w.below(static_cast<std::uint32_t>(k))),
              row.end());
  return row;
}

}  // namespace

array fill_terms(sample_class c, std::int64_t rows, std::int64_t k, bool mean, std::uint64_t seed, std::uint64_t stream,
                 dtype type) {
  const numbers_of t(type);
  array a(type, {rows, k});
  word_stream w(seed, stream);
  const auto n = static_cast<std::size_t>(k);
  for (std::size_t r = 0; n != 0 && r < static_cast<std::size_t>(rows); ++r) {
    patterns row;
    switch (c) {
      case sample_class::ties:
      case sample_class::near_ties:
      case sample_class::cancelling:
      case sample_class::overflow_border:
        row = aimed_row(t, c, n, mean, w);
        break;
      case sample_class::single_nonfinite:
        for (std::size_t i = 0; i < n; ++i) row.push_back(t.ordinary(sample_class::normal_range, w));
        row[w.below(static_cast<std::uint32_t>(n))] = t.special(w);
        if (w.flip()) row[w.below(static_cast<std::uint32_t>(n))] = t.special(w);
        break;
      case sample_class::zeros: {
        const std::uint32_t kind = w.below(4);  // all -0, all +0, both, or with numbers
        for (std::size_t i = 0; i < n; ++i) {
          const std::uint64_t zero = w.flip() ? t.sign() : 0;
          row.push_back(kind == 0 ? t.sign() : kind == 1 ? 0 : kind == 2 ? zero : t.ordinary(c, w));
        }
        break;
      }
      default: {
        const bool keep = w.below(16) == 0;
        for (std::size_t i = 0; i < n; ++i) row.push_back(t.finite(t.ordinary(c, w), keep));
      }
    }
    for (std::size_t i = 0; i < n; ++i) a.set(r * n + i, row[i]);
  }
  return a;
}

array fill_ordered(sample_class c, std::int64_t rows, std::int64_t k, std::uint64_t seed, std::uint64_t stream,
                   dtype type) {
  array a(type, {rows, k});
  word_stream w(seed, stream);
  const auto n = static_cast<std::size_t>(k);
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    const bool repeats = w.flip(), nans = w.below(8) == 0;
    const auto at = [&](std::size_t i) { return r * n + i; };
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t x = sample(c, type, w);
      if (!nans && widen(type, x).kind == number_kind::nan) x = sample(sample_class::normal_range, type, w);
      if (repeats && i != 0 && w.flip()) {
        x = a.get(at(w.below(static_cast<std::uint32_t>(i))));
        if (w.below(4) == 0) x ^= format_of(type).sign_bit();
      }
      a.set(at(i), x);
    }
  }
  return a;
}

array fill_integers(sample_class c, std::int64_t rows, std::int64_t k, std::uint64_t seed, std::uint64_t stream,
                    dtype type, bool factors) {
  array a(type, {rows, k});
  word_stream w(seed, stream);
  const bool aims = type == dtype::i64 && (c == sample_class::ties || c == sample_class::near_ties);
  const bool opposite = c == sample_class::cancelling && type != dtype::boolean;
  const auto n = static_cast<std::size_t>(k);
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    const bool repeats = w.flip(), equal = w.below(8) == 0, negative = w.flip(), above = w.flip();
    const int length = w.between(0, 8);
    const std::uint64_t middle = detail::odd_of(54, w) << length;
    const auto at = [&](std::size_t i) { return r * n + i; };
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t before = i == 0 ? 0 : a.get(at(i - 1));
      std::uint64_t x = sample(c, type, w);
      if (aims) {  // pairs about the middle; the last one of an odd number is it
        const std::uint64_t away = w.next64() >> 24, center = negative ? 0 - middle : middle;
        x = i % 2 == 1 ? 2 * center - before : i + 1 == n ? center : center + away;
        if (c == sample_class::near_ties && i + 1 == n) x += above ? 1 : ~std::uint64_t{0};
      } else if (opposite) {
        if (i % 2 == 1) x = 0 - before;
      } else if (i != 0 && (equal || (repeats && w.flip()))) {
        x = equal ? before : a.get(at(w.below(static_cast<std::uint32_t>(i))));
      }
      if (factors && above && w.below(32) != 0) x |= 1;
      a.set(at(i), x);
    }
  }
  return a;
}

// Products share their factors, so the classes are built from small integers: rows of a are 2^r_i times integers,
// columns of b 2^c_j times integers, and one pair p_i * q_j carries the result's magnitude.
factors fill_factors(sample_class c, std::int64_t m, std::int64_t n, std::int64_t k, bool with_bias, std::uint64_t seed,
                     std::uint64_t stream, dtype type) {
  const numbers_of t(type);
  factors f{array(type, {m, k}), array(type, {k, n}), with_bias ? array(type, {n}) : array()};
  word_stream w(seed, stream);
  const auto rows = static_cast<std::size_t>(m), cols = static_cast<std::size_t>(n),
             inner = static_cast<std::size_t>(k);
  const bool border = c == sample_class::overflow_border;
  const bool tie = c == sample_class::ties || c == sample_class::near_ties;
  // Even integers below 2^bits on both sides: sums of k products stay below 2^(p - 3), of few bits mostly.
  const int p = t.f.precision;
  int spare = 0;
  while ((std::int64_t{1} << spare) < k) ++spare;
  const int bits = std::max(2, std::min(9, (p - 3 - spare) / 2));
  // Odd integers whose squares have p + 1 bits, others whose squares are on both sides of 2^(p + 1).
  unsigned odd = 4801, odds = 301, border_odd = 5783;
  if (type == dtype::f64) {
    odd = 94906267;
    border_odd = 134217721;
  } else if (type != f32) {
    odd = type == dtype::f16 ? 49 : 17;
    odds = type == dtype::f16 ? 6 : 3;
    border_odd = type == dtype::f16 ? 55 : 13;
  }
  const int border_scale = t.f.emax - p;
  const int scales = type == dtype::f16 ? 2 : 9, wide = type == dtype::f16 ? 7 : type == dtype::f64 ? 500 : 60;
  const auto even = [&](bool at_all) { return at_all ? (std::uint64_t{w.next()} >> (33 - bits)) << 1 : 0; };
  const std::size_t carrier = inner == 0 ? 0 : w.below(static_cast<std::uint32_t>(inner));
  const std::size_t trifle = c == sample_class::near_ties && inner > 1 ? (carrier + 1) % inner : inner;
  // Cancelling: the factors of k and of its mirror image are equal in a and opposite in b.
  const auto fill_side = [&](array& a, bool left) {
    const std::size_t lines = left ? rows : cols;
    for (std::size_t i = 0; i < lines; ++i) {
      const int scale = with_bias && left ? 0 : w.between(-scales, scales);
      const bool sign = w.flip(), trifle_sign = w.flip(), keep = w.below(16) == 0;
      const std::size_t odd_one = inner == 0 ? 0 : w.below(static_cast<std::uint32_t>(4 * inner));
      const std::uint64_t odd_value = t.special(w);
      const int offset = w.between(0, 300);
      patterns line(inner);
      for (std::size_t l = 0; l < inner; ++l) {
        const bool negative = w.flip();
        std::uint64_t x = 0;
        if (tie || border) {
          // Of f32 4801 .. 5401 squared has 25 bits; 5792.6^2 is 2^25. Of f64 94906266^2 is below 2^53, 134217728^2 is 2^54.
          const std::uint64_t factor = border ? border_odd + 2 * (static_cast<unsigned>(offset) % 11)
                                              : odd + 2 * (static_cast<unsigned>(offset) % odds);
          const int e = border ? (border_scale + (left ? 0 : 1)) / 2 : scale;
          x = l == carrier  ? t.pattern(sign, factor, e)
              : l == trifle ? t.tiny(trifle_sign, e - 40)
                            : t.pattern(negative, even(inner > 1), e);
        } else if (c == sample_class::subnormal) {
          x = t.pattern(negative, w.next() >> 26, (t.f.ulp_min() - 2) / 2);  // of f32 products in units of 2^-150
        } else if (c == sample_class::cancelling) {
          const std::size_t mirror = inner - 1 - l;
          x = t.ordinary(sample_class::normal_range, w);
          if (l > mirror) x = line[mirror] ^ (left ? 0 : t.sign());
          if (l == mirror) x = left && w.flip() ? t.tiny(sign, -70) : 0;
        } else if (c == sample_class::single_nonfinite) {
          x = l == odd_one ? odd_value : t.ordinary(sample_class::normal_range, w);
          if (w.below(40) == 0) x &= t.sign();
        } else if (c == sample_class::wide_exponents) {
          const int e = w.between(-wide, wide);
          x = compose(type, negative, e, type == dtype::f64 ? w.next64() : w.next());
        } else {
          x = t.finite(t.ordinary(c, w), keep);
        }
        line[l] = x;
      }
      for (std::size_t l = 0; l < inner; ++l) a.set(left ? i * inner + l : l * cols + i, line[l]);
      if (left || !with_bias) continue;
      const bool negative = w.flip();
      std::uint64_t b = t.ordinary(c, w);
      if (tie) b = t.pattern(negative, even(true), scale);
      if (border) b = t.pattern(negative, even(true), border_scale);
      if (c == sample_class::cancelling && w.flip()) b = negative ? t.sign() : 0;
      f.bias.set(i, b);
    }
  };
  fill_side(f.a, true);
  fill_side(f.b, false);
  return f;
}

}  // namespace repdl::reference
