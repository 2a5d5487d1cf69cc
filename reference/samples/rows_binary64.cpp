// Inputs of the softmax family in binary64: the classes of rows.cpp, for 53 bits.
#include <algorithm>
#include <bit>

#include "reference/samples/class_losses.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;
using words = std::vector<std::uint64_t>;
using numbers64 = patterns_of<std::uint64_t>;

std::size_t place_in(std::size_t n, word_stream& w) { return w.below(static_cast<std::uint32_t>(n)); }

/// Minus a gap whose e^gap is about the least number.
std::uint64_t deep_gap(const numbers64& t, word_stream& w) {
  const std::uint64_t whole = 690 + w.below(70);
  const std::uint64_t fraction = w.next64() >> 22;
  return t.rounded(true, (whole << 42) + fraction, -42);
}

/// Gaps of 54 bits, with all else far below.
words near_tie_row(const numbers64& t, std::size_t n, word_stream& w) {
  const int e = w.between(-47, 60);
  const std::uint64_t even = (std::uint64_t{1} << 53) | 2 * (w.next64() >> 13);
  words row(n);
  const std::size_t greatest = place_in(n, w);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t odd = 2 * w.below(1 << 10) + 1;
    row[i] = i == greatest ? t.pattern(false, even, e) : t.pattern(true, odd, e);
  }
  return row;
}

/// Two numbers and a gap of any length between them; the others mean nothing.
words gap_row(const numbers64& t, std::size_t n, word_stream& w) {
  words row(n, w.flip() ? t.minus_infinity() : t.largest() | t.sign());
  const std::size_t first = place_in(n, w), second = (first + 1 + (n > 2 ? place_in(n - 1, w) : 0)) % n;
  const std::uint64_t one = t.pattern(false, 1, 0), ulp = 1;
  std::uint64_t high = 0, low = 0;
  switch (w.below(5)) {
    case 0: {
      const std::pair<std::uint64_t, std::uint64_t> all[] = {
          {t.pattern(false, 1, 56), t.pattern(true, 1, 3)},
          {t.pattern(false, 1, 53), t.pattern(true, 1, 0)},
          {t.pattern(false, 1, 53), one},
          {0, t.pattern(true, 1000, 0)},
          {0, t.pattern(true, 745, 0)},
          {t.largest(), t.largest() | t.sign()},
          {t.largest(), t.pattern(true, 1, 970)},
          {t.largest(), t.pattern(true, 1, 969)},
          {0, ulp | t.sign()},
          {ulp, ulp | t.sign()},
          {ulp, t.pattern(true, 740, 0)},
          {one, one - 1},
          {t.pattern(false, 16, 0), t.pattern(true, 1, -49)},
          {t.pattern(false, 700, 0), ulp | t.sign()},
      };
      const auto& pair = all[w.below(static_cast<std::uint32_t>(std::size(all)))];
      high = pair.first;
      low = pair.second;
      break;
    }
    case 1: {
      const int a = w.between(-1074, 1023), b = w.between(-1074, 1023);
      high = t.pattern(false, 1, a);
      low = t.pattern(true, 1, b);
      break;
    }
    case 2: {  // numbers next to each other
      high = t.ordinary(normal_range, w);
      low = high + 1 + w.below(3);
      break;
    }
    case 3: {  // their sum's logarithm next to 0
      high = t.pattern(true, 0x162e42fefa39ef + w.below(3), -53);
      low = high;
      break;
    }
    default: {  // subnormal results
      high = t.ordinary(narrow_lattice, w);
      low = deep_gap(t, w);
    }
  }
  row[first] = high;
  row[second] = low;
  return row;
}

words group_row(const numbers64& t, std::size_t n, word_stream& w) {
  std::uint64_t value[4];
  const std::uint32_t kinds = 1 + w.below(4);
  const bool far = w.flip();
  value[0] = t.ordinary(normal_range, w);
  for (std::uint32_t k = 1; k < kinds; ++k) value[k] = far ? t.ordinary(normal_range, w) : value[0] + w.below(4);
  words row(n);
  for (std::uint64_t& x : row) x = value[w.below(kinds)];
  return row;
}

/// A power of two of equal elements; the others have the weight 0, or are far below.
words equal_row(const numbers64& t, std::size_t n, bool far_below, word_stream& w) {
  std::size_t equal = std::bit_floor(n);
  while (equal > 1 && w.below(8) == 0) equal /= 2;
  const std::uint64_t v = t.ordinary(normal_range, w);
  const int e = w.between(9, 30);
  const std::uint64_t far = t.with_exponent(true, e, w.next64());
  words row(n, far_below ? far : t.minus_infinity());
  const std::size_t first = place_in(n, w);
  for (std::size_t i = 0; i < equal; ++i) row[(first + i) % n] = v;
  return row;
}

words logits_row(const numbers64& t, sample_class c, std::size_t n, bool gradient, word_stream& w) {
  const bool keep = w.below(16) == 0, narrow = w.flip();
  if (n == 0) return {};
  if (c == near_ties) return gradient ? equal_row(t, n, true, w) : near_tie_row(t, n, w);
  if (c == exact_gaps) return gap_row(t, n, w);
  if (c == multiplicities) return group_row(t, n, w);
  if (c == ties) return equal_row(t, n, false, w);
  words row(n);
  for (std::uint64_t& x : row) {
    x = t.drawn(c, keep, w);
    const bool negative = w.flip();
    if (c == normal_range && narrow) x = t.with_exponent(negative, w.between(-8, 2), x);
    if (c == subnormal && narrow) x = deep_gap(t, w);
    if (c == single_nonfinite) x = t.ordinary(normal_range, w);
  }
  if (c == subnormal && narrow) row[place_in(n, w)] = 0;
  if (c == single_nonfinite) {
    row[place_in(n, w)] = t.special(w);
    if (n > 1 && w.flip()) row[place_in(n, w)] = t.minus_infinity();
  }
  return row;
}

/// For ties an odd multiple of half the least number, when divided by n.
std::uint64_t factor(const numbers64& t, sample_class c, std::int64_t n, word_stream& w) {
  const bool negative = w.flip();
  if (c == ties || c == near_ties) {
    int twos = 0;
    for (; n > 1 && n % 2 == 0; n /= 2) ++twos;
    const std::uint64_t m = odd_of(w.between(1, 40), w) * static_cast<std::uint64_t>(n);
    return t.rounded(negative, m, twos + t.f.ulp_min() - (twos > 0 ? 1 : 0));
  }
  if (c == exact_gaps || c == multiplicities) return t.ordinary(w.flip() ? subnormal : normal_range, w);
  const bool keep = w.below(16) == 0;
  return t.drawn(c, keep, w);
}

/// g and y of softmax_backward. Ties: the sum is an odd number q, a y_i an odd number m, their product has 54 bits; at the border of
/// overflow about 2^54 - 1 = (2^27 - 1)(2^27 + 1).
void product_row_binary64(const numbers64& t, sample_class c, std::size_t n, words* g, words* y, word_stream& w) {
  const bool keep = w.below(16) == 0, uneven = w.below(8) == 0;
  const std::size_t carrier = n == 0 ? 0 : place_in(n, w), beside = n < 3 ? n : (carrier + 1) % n;
  const int e = w.between(-40, 40);
  const std::uint64_t common = t.ordinary(normal_range, w);
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = w.flip(), other = w.flip();
    std::uint64_t gi = t.drawn(c, keep, w), yi = t.drawn(c, keep, w);
    const std::uint32_t offset = w.below(1 << 24);
    if (c == ties || c == near_ties || c == overflow_border) {
      const bool border = c == overflow_border;
      const std::uint64_t at_border = (std::uint64_t{1} << 27) + (i == carrier ? std::uint64_t{1} : ~std::uint64_t{0});
      const std::uint64_t m =
          border ? at_border + (offset % 3 == 0 ? 0 : 2 * (offset % 5)) : 94906267 + 2 * (offset >> 1);
      gi = i == carrier                    ? t.pattern(negative, m, border ? 500 : e)
           : c == near_ties && i == beside ? t.tiny(negative, e - 100 - static_cast<int>(offset % 800))
                                           : (negative ? t.sign() : 0);
      yi = i == carrier ? t.pattern(false, 1, 0) : t.pattern(other, m, border ? 470 : -27);
    }
    if (c == cancelling) {
      const auto most = static_cast<std::size_t>(1000);
      gi = common ^ (uneven && i == carrier ? 1U : 0U);
      yi = t.pattern(false, 1, -static_cast<int>(std::min(std::min(i + 1, n - 1), most)));
    }
    if (c == single_nonfinite && i != carrier) {
      gi = t.ordinary(normal_range, w);
      yi = t.ordinary(normal_range, w);
    }
    if (c == single_nonfinite && i == carrier) (other ? gi : yi) = t.special(w);
    g->push_back(gi);
    y->push_back(yi);
  }
}

/// g and y of log_softmax_backward, as in rows.cpp.
void exponential_row_binary64(const numbers64& t, sample_class c, std::size_t n, words* g, words* y, word_stream& w) {
  const bool keep = w.below(16) == 0, wide = w.below(4) == 0;
  const int e = w.between(-20, 20);
  const std::uint64_t common = t.ordinary(normal_range, w);
  const std::size_t carrier = n == 0 ? 0 : place_in(n, w);
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = w.flip();
    std::uint64_t gi = t.drawn(c, keep, w), yi = 0;
    const std::uint64_t word = w.next64() >> 11;
    if (c == ties || c == near_ties || c == exact_gaps) {
      const std::uint64_t even = 2 * (word % 1000), high = (std::uint64_t{1} << 53) + (std::uint64_t{1} << 49);
      const std::uint64_t m = i == 0 ? high + even : i == 1 ? even + 1 : i == 2 ? 0 : even;
      gi = t.pattern(negative && i > 1, m, e);
      const int length = 1 + static_cast<int>(word % 50);
      yi = c == ties ? (negative ? t.sign() : 0)
                     : t.pattern(negative, word % 3 + 1,
                                 c == near_ties    ? -110 - length
                                 : length % 2 == 0 ? -1074
                                                   : -300);
    } else if (c == uniform_patterns || c == wide_exponents) {
      yi = t.drawn(c, keep, w);
    } else if (c == single_nonfinite) {
      yi = word % 4 == 0 ? t.special(w) : t.rounded(true, word, -50);
      gi = i == carrier && wide ? t.special(w) : t.ordinary(normal_range, w);
    } else {  // what a log_softmax is
      yi = t.rounded(true, word, wide ? -43 : -50);
    }
    if (c == multiplicities || c == cancelling) gi = common ^ (n % 2 == 0 && i % 2 == 0 ? t.sign() : 0);
    if (c == multiplicities && i == 0) gi = t.ordinary(normal_range, w);
    g->push_back(gi);
    y->push_back(yi);
  }
}

array placed(const shape_list& shape, const reduce_layout& l, const std::vector<words>& rows) {
  array x(dtype::f64, shape);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < l.reduced.size(); ++i) x.set(index(l.kept[r] + l.reduced[i]), rows[r][i]);
  return x;
}

}  // namespace

std::vector<array> wide_row_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                   const attributes& attrs, word_stream& w) {
  const numbers64 t(dtype::f64);
  const bool loss = op.starts_with("cross_entropy"), gradient = op.ends_with("backward");
  const bool several = op.starts_with("logsumexp"), probabilities = op.starts_with("cross_entropy_prob");
  const shape_list& shape = shapes[gradient && (loss || several) ? 1 : 0];
  std::optional<shape_list> axes;
  if (several) {
    axes = attribute_of<std::vector<std::int64_t>>(attrs, "axis");
  } else {
    axes = shape_list{attribute_or<std::int64_t>(attrs, "axis", !loss ? -1 : shape.size() == 1 ? 0 : 1)};
  }
  const reduce_layout l = layout_of(shape, axes, false);
  const std::size_t n = l.reduced.size();
  std::vector<words> first(l.kept.size()), second(l.kept.size());
  if (gradient && !several && !loss) {
    for (std::size_t r = 0; r < first.size(); ++r)
      (op == "softmax_backward" ? product_row_binary64 : exponential_row_binary64)(t, c, n, &first[r], &second[r], w);
    return {placed(shape, l, first), placed(shape, l, second)};
  }
  const sample_class of_row = probabilities && !gradient && c == ties ? near_ties : c;
  for (words& row : first) row = logits_row(t, of_row, n, gradient, w);
  const array x = placed(shape, l, first);
  const auto equal = static_cast<std::int64_t>(std::max<std::size_t>(std::bit_floor(n), 1));
  if (loss) {
    return loss_inputs(
        op, c, t, shapes, attrs, x, first, equal, w,
        [&](const std::vector<words>& all) { return placed(shape, l, all); },
        [&](std::int64_t divisor) { return factor(t, c, divisor, w); });
  }
  if (!gradient) return {x};
  array g(dtype::f64, shapes[0]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.count()); ++i) g.set(i, factor(t, c, equal, w));
  return {g, x};
}

}  // namespace repdl::reference::detail
