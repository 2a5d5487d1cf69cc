// Inputs of the softmax family.
//
// The results are transcendental, so ties and exact zeros exist only where all finite elements are equal; the classes
// mean: near_ties: gaps x_i - M of 25 bits, midpoints of binary32, with all else far below, so
// that log_softmax lies beside them; exact_gaps: the same with gaps of any length, 2^-149 to 2^128, and known hard
// pairs; multiplicities: groups of equal elements; ties: 2^k equal elements (for the gradients, g / 2^k).
#include <algorithm>
#include <tuple>
#include <utility>

#include "reference/samples/class_losses.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;

/// Two elements: powers of two and the gap between 2^27 and -8, 2^24 and -1 and so on, all midpoints or beside, where 27 is
/// 3 bits more than binary32 has.
std::pair<std::uint32_t, std::uint32_t> hard_pair(const numbers_of& t, word_stream& w) {
  const int least = t.f.ulp_min();
  const std::uint32_t one = t.pattern(false, 1, 0), ulp = t.pattern(false, 1, least);
  const std::pair<std::uint32_t, std::uint32_t> all[] = {
      {t.rounded(false, 1, t.p + 3), t.pattern(true, 1, 3)},
      {t.pattern(false, 100, 0), t.pattern(false, 1, 6 - t.p)},
      {t.pattern(false, 1, t.p), t.pattern(true, 1, 0)},
      {0, t.pattern(true, 1000, 0)},
      {t.pattern(false, 1, t.p), one},
      {t.largest(), t.largest() | t.sign()},              // the largest gap
      {0, ulp | t.sign()},                                // the least
      {one, one - 1},                                     // neighbours
      {t.largest(), t.pattern(true, 1, t.f.emax - t.p)},  // the overflow threshold
      {ulp, ulp | t.sign()},
      {t.pattern(false, 16, 0), t.pattern(true, 1, 4 - t.p)},
      {t.pattern(false, 87, 0), ulp | t.sign()},  // and a subnormal
  };
  return all[w.below(static_cast<std::uint32_t>(std::size(all)))];
}

/// Where the elements of a row that mean something go: the others are -inf or far below.
std::uint32_t lowest(const numbers_of& t) { return t.largest() | t.sign(); }
std::uint32_t background(const numbers_of& t, word_stream& w) { return w.flip() ? t.minus_infinity() : lowest(t); }

/// Minus a gap whose e^gap is subnormal, or beyond.
struct gap_range {
  std::uint32_t least, most;
};
std::uint32_t deep_gap(const numbers_of& t, gap_range of_binary32, word_stream& w) {
  const gap_range r = t.type == dtype::f32 ? of_binary32 : t.type == dtype::f16 ? gap_range{9, 18} : gap_range{86, 94};
  return t.rounded(true, (r.least << 16) + w.below((r.most - r.least) << 16), -16);
}

patterns near_tie_row(const numbers_of& t, std::size_t n, word_stream& w) {
  const int e = w.between(6 - t.p, std::min(60, t.f.emax - t.p - 1));
  const std::uint64_t even = (std::uint64_t{1} << t.p) | 2 * w.below(1U << (t.p - 2));
  patterns row(n);
  const std::size_t greatest = w.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t odd = 2 * w.below(1U << std::min(10, t.p - 2)) + 1;
    row[i] = i == greatest ? t.pattern(false, even, e) : t.pattern(true, odd, e);
  }
  return row;
}

patterns gap_row(const numbers_of& t, std::size_t n, word_stream& w) {
  patterns row(n);
  const bool below = w.flip();
  for (std::uint32_t& x : row) x = below ? background(t, w) : lowest(t);
  const std::size_t first = w.below(static_cast<std::uint32_t>(n));
  const std::size_t second = (first + 1 + (n > 2 ? w.below(static_cast<std::uint32_t>(n - 1)) : 0)) % n;
  std::uint32_t high = 0, low = 0;
  switch (w.below(4)) {
    case 0: {
      std::tie(high, low) = hard_pair(t, w);
      break;
    }
    case 1: {  // 2^a and -2^b: a gap of any length
      const int a = w.between(t.f.ulp_min(), t.f.emax), b = w.between(t.f.ulp_min(), t.f.emax);
      high = t.pattern(false, 1, a);
      low = t.pattern(true, 1, b);
      break;
    }
    case 2: {  // one element some ulp above another
      high = t.ordinary(normal_range, w);
      low = high + 1 + w.below(3);
      break;
    }
    default: {  // subnormal results
      high = t.ordinary(narrow_lattice, w);
      low = deep_gap(t, {88, 104}, w);
    }
  }
  row[first] = high;
  row[second] = low;
  return row;
}

patterns group_row(const numbers_of& t, std::size_t n, word_stream& w) {
  std::uint32_t value[4];
  const std::uint32_t kinds = 1 + w.below(4);
  const bool far = w.flip();
  value[0] = t.ordinary(normal_range, w);
  for (std::uint32_t k = 1; k < kinds; ++k) value[k] = far ? t.ordinary(normal_range, w) : value[0] + w.below(4);
  patterns row(n);
  for (std::uint32_t& x : row) x = value[w.below(kinds)];
  return row;
}

/// The greatest power of two <= n.
std::size_t power_below(std::size_t n) {
  std::size_t p = 1;
  while (p * 2 <= n) p *= 2;
  return p;
}

/// power_below(n) elements are equal (in some rows fewer); the others have weight 0 (ties) or are far below
/// (near-ties).
patterns equal_row(const numbers_of& t, std::size_t n, bool far_below, word_stream& w) {
  std::size_t equal = power_below(n);
  while (equal > 1 && w.below(8) == 0) equal /= 2;
  const std::uint32_t v = t.ordinary(normal_range, w);
  const std::uint32_t far = t.with_exponent(true, 10, w.below(1 << 20) << (t.p >= 24 ? 3 : 0));
  patterns row(n, far_below ? far : t.minus_infinity());
  const std::size_t first = w.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < equal; ++i) row[(first + i) % n] = v;
  return row;
}

/// `gradient`: rows for operations that multiply the softmax with g.
patterns logits_row(const numbers_of& t, sample_class c, std::size_t n, bool gradient, word_stream& w) {
  const bool keep = w.below(16) == 0, narrow = w.flip();
  if (n == 0) return {};
  if (c == near_ties) return gradient ? equal_row(t, n, true, w) : near_tie_row(t, n, w);
  if (c == exact_gaps) return gap_row(t, n, w);
  if (c == multiplicities) return group_row(t, n, w);
  if (c == ties) return equal_row(t, n, false, w);
  patterns row(n);
  for (std::uint32_t& x : row) {
    x = t.drawn(c, keep, w);
    const bool negative = w.flip();
    if (c == normal_range && narrow) x = t.with_exponent(negative, w.between(-8, 2), x);  // differences of a few units
    if (c == subnormal && narrow) x = deep_gap(t, {85, 107}, w);                          // subnormal softmax
    if (c == single_nonfinite) x = t.ordinary(normal_range, w);
  }
  if (c == subnormal && narrow) row[w.below(static_cast<std::uint32_t>(n))] = 0;
  if (c == single_nonfinite) {
    row[w.below(static_cast<std::uint32_t>(n))] = t.special(w);
    if (n > 1 && w.flip()) row[w.below(static_cast<std::uint32_t>(n))] = t.minus_infinity();
  }
  return row;
}

/// Rows put where the reduced axes want them.
array placed(dtype type, const shape_list& shape, const reduce_layout& l, const std::vector<patterns>& rows) {
  array x(type, shape);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < l.reduced.size(); ++i) x.set(index(l.kept[r] + l.reduced[i]), rows[r][i]);
  return x;
}

/// A factor of the gradients: for ties an odd multiple of half the least number when divided by n (that cannot be for an odd n).
std::uint32_t factor(const numbers_of& t, sample_class c, std::int64_t n, word_stream& w) {
  const bool negative = w.flip();
  if (c == ties || c == near_ties) {
    int twos = 0;
    for (; n > 1 && n % 2 == 0; n /= 2) ++twos;
    const std::uint64_t m = odd_of(w.between(1, std::min(10, t.p - 6)), w) * static_cast<std::uint64_t>(n);
    return t.rounded(negative, m, twos + t.f.ulp_min() - (twos > 0 ? 1 : 0));
  }
  if (c == exact_gaps || c == multiplicities) return t.ordinary(w.flip() ? subnormal : normal_range, w);
  const bool keep = w.below(16) == 0;
  return t.drawn(c, keep, w);
}

/// Odd numbers m whose squares have a bit more than the format; some next to the root of 2^(p + 1).
struct product_sizes {
  std::uint64_t odd;
  std::uint32_t many;
  std::uint64_t at_border;
  std::uint32_t few;
  int shift;
};
product_sizes product_sizes_of(const numbers_of& t) {
  if (t.type == dtype::f16) return {47, 8, 61, 4, 6};
  if (t.type == dtype::bf16) return {17, 3, 21, 3, 20};
  return {4801, 301, 5787, 11, 20};
}

/// g and y of softmax_backward: y_i (g_i - sum of g_j y_j).
void product_row(const numbers_of& t, sample_class c, std::size_t n, patterns* g, patterns* y, word_stream& w) {
  const bool keep = w.below(16) == 0, uneven = w.below(8) == 0;
  const std::size_t carrier = n == 0 ? 0 : w.below(static_cast<std::uint32_t>(n)),
                    beside = n < 3 ? n : (carrier + 1) % n;
  const product_sizes z = product_sizes_of(t);
  const int e = w.between(-z.shift, z.shift);
  const std::uint32_t common = t.ordinary(normal_range, w);
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = w.flip(), other = w.flip();
    std::uint32_t gi = t.drawn(c, keep, w), yi = t.drawn(c, keep, w);
    const std::uint32_t offset = w.below(301);
    if (c == ties || c == near_ties || c == overflow_border) {
      // The sum is an odd integer q, y_i another: a bit more than the format has; tiny numbers beside for the near-ties.
      const bool border = c == overflow_border;
      const std::uint64_t m = border ? z.at_border + 2 * (offset % z.few) : z.odd + 2 * (offset % z.many);
      const int half = (t.f.emax - t.p) / 2;  // of the exponent of half an ulp of the largest number
      gi = i == carrier                    ? t.pattern(negative, m, border ? t.f.emax - t.p - half : e)
           : c == near_ties && i == beside ? t.tiny(negative, e - 50)
                                           : (negative ? t.sign() : 0);
      yi = i == carrier ? t.pattern(false, 1, 0) : t.pattern(other, m, border ? half : -(t.p + 2) / 2);
    }
    if (c == cancelling) {  // y sums to 1, g is constant: zero
      const auto most = static_cast<std::size_t>(std::min(140, -t.f.ulp_min()));
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

/// g and y of log_softmax_backward: g_i - e^y_i sum of g_j. With y_i = 0 it is g_i - sum: midpoints in the tie classes,
/// beside which tiny y_i put the result.
void exponential_row(const numbers_of& t, sample_class c, std::size_t n, patterns* g, patterns* y, word_stream& w) {
  const bool keep = w.below(16) == 0, wide = w.below(4) == 0;
  const int e = t.type == dtype::f16 ? w.between(-6, 3) : w.between(-20, 20);
  const std::uint32_t common = t.ordinary(normal_range, w), carrier = w.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = w.flip();
    std::uint32_t gi = t.drawn(c, keep, w), yi = 0;
    const std::uint32_t word = w.next();
    if (c == ties || c == near_ties || c == exact_gaps) {
      const std::uint64_t even = 2 * (word % (t.p >= 24 ? 1000U : 1U << (t.p - 6)));
      const std::uint64_t m = i == 0 ? (1U << t.p) + (1U << (t.p - 4)) + even : i == 1 ? even + 1 : i == 2 ? 0 : even;
      gi = t.pattern(negative && i > 1, m, e);
      const int length = 1 + static_cast<int>(word % 20);
      yi = c == ties ? (negative ? t.sign() : 0)
                     : t.pattern(negative, word % 3 + 1, std::max(c == near_ties ? -60 - length : -149, t.f.ulp_min()));
    } else if (c == uniform_patterns || c == wide_exponents) {
      yi = t.drawn(c, keep, w);
    } else if (c == single_nonfinite) {  // a NaN or infinity in y, or in g, where it reaches the whole row
      const bool special = word % 4 == 0;
      yi = special ? t.special(w) : t.rounded(true, word >> 8, -21);
      gi = i == carrier && wide ? t.special(w) : t.ordinary(normal_range, w);
    } else {  // what a log_softmax is
      yi = t.rounded(true, word >> 8, wide ? -17 : -21);
    }
    if (c == multiplicities || c == cancelling) gi = common ^ (n % 2 == 0 && i % 2 == 0 ? t.sign() : 0);
    if (c == multiplicities && i == 0) gi = t.ordinary(normal_range, w);
    g->push_back(gi);
    y->push_back(yi);
  }
}

}  // namespace

std::vector<array> row_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                              const attributes& attrs, word_stream& w, dtype type) {
  if (type == dtype::f64) return wide_row_inputs(op, c, shapes, attrs, w);
  const numbers_of t(type);
  const bool loss = op.starts_with("cross_entropy"), gradient = op.ends_with("backward");
  const bool several = op.starts_with("logsumexp"), probabilities = op.starts_with("cross_entropy_prob");
  const shape_list& shape = shapes[gradient && (loss || several) ? 1 : 0];  // of the logits
  std::optional<shape_list> axes;
  if (several) {
    axes = attribute_of<std::vector<std::int64_t>>(attrs, "axis");
  } else {
    axes = shape_list{attribute_or<std::int64_t>(attrs, "axis", !loss ? -1 : shape.size() == 1 ? 0 : 1)};
  }
  const reduce_layout l = layout_of(shape, axes, false);
  const std::size_t n = l.reduced.size();
  if (op == "softmax_backward" || op == "log_softmax_backward") {
    std::vector<patterns> g(l.kept.size()), y(l.kept.size());
    for (std::size_t r = 0; r < g.size(); ++r)
      (op == "softmax_backward" ? product_row : exponential_row)(t, c, n, &g[r], &y[r], w);
    return {placed(type, shape, l, g), placed(type, shape, l, y)};
  }
  std::vector<patterns> rows;
  const sample_class of_row = probabilities && !gradient && c == ties ? near_ties : c;
  for (std::size_t r = 0; r < l.kept.size(); ++r) rows.push_back(logits_row(t, of_row, n, gradient, w));
  const array x = placed(type, shape, l, rows);
  const std::int64_t equal = n == 0 ? 1 : static_cast<std::int64_t>(power_below(n));
  if (loss) {
    return loss_inputs(
        op, c, t, shapes, attrs, x, rows, equal, w,
        [&](const std::vector<patterns>& all) { return placed(type, shape, l, all); },
        [&](std::int64_t divisor) { return factor(t, c, divisor, w); });
  }
  if (!gradient) return {x};
  array g(type, shapes[0]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.count()); ++i) g.set(i, factor(t, c, equal, w));
  return {g, x};
}

}  // namespace repdl::reference::detail
