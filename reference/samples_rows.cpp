// Inputs of the softmax family.
//
// The results are transcendental, so ties and exact zeros exist only where all finite elements are equal; the classes
// mean: near_ties: gaps x_i - M of 25 bits, midpoints of binary32, with all else far below, so
// that log_softmax lies beside them; exact_gaps: the same with gaps of any length, 2^-149 to 2^128, and known hard
// pairs; multiplicities: groups of equal elements; ties: 2^k equal elements (for the gradients, g / 2^k).
#include <algorithm>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples_detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;

/// Two elements each: powers of two and the gap between 2^27 and -8, 2^24 and -1 and so on, all midpoints or beside.
constexpr std::uint32_t hard_pairs[][2] = {
    {0x4d000000, 0xc1000000},  // 2^27, -8
    {0x42c80000, 0x36800000},  // 100, 2^-18
    {0x4b800000, 0xbf800000},  // 2^24, -1
    {0x00000000, 0xc47a0000},  // 0, -1000
    {0x4b800000, 0x3f800000},  // 2^24, 1
    {0x7f7fffff, 0xff7fffff},  // the largest gap
    {0x00000000, 0x80000001},  // the least
    {0x3f800000, 0x3f7fffff},  // neighbours
    {0x7f7fffff, 0xf3000000},  // the overflow threshold, 2^128 - 2^103
    {0x00000001, 0x80000001},  // 2^-148
    {0x41800000, 0xb5800000},  // 16, -2^-20
    {0x42ae0000, 0x80000001},  // 87, and a subnormal
};

/// Where the elements of a row that mean something go: the others are -inf or far below.
std::uint32_t background(word_stream& w) { return w.flip() ? minus_infinity32 : 0xff7fffff; }

patterns near_tie_row(std::size_t n, word_stream& w) {
  const int e = w.between(-18, 60);
  const std::uint64_t even = (std::uint64_t{1} << 24) | 2 * w.below(1 << 22);
  patterns row(n);
  const std::size_t greatest = w.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t odd = 2 * w.below(1 << 10) + 1;
    row[i] = i == greatest ? pattern32(false, even, e) : pattern32(true, odd, e);
  }
  return row;
}

patterns gap_row(std::size_t n, word_stream& w) {
  patterns row(n);
  const bool below = w.flip();
  for (std::uint32_t& x : row) x = below ? background(w) : 0xff7fffff;
  const std::size_t first = w.below(static_cast<std::uint32_t>(n));
  const std::size_t second = (first + 1 + (n > 2 ? w.below(static_cast<std::uint32_t>(n - 1)) : 0)) % n;
  std::uint32_t high = 0, low = 0;
  switch (w.below(4)) {
    case 0: {
      const auto& p = hard_pairs[w.below(static_cast<std::uint32_t>(std::size(hard_pairs)))];
      high = p[0];
      low = p[1];
      break;
    }
    case 1: {  // 2^a and -2^b: a gap of any length
      const int a = w.between(-149, 127), b = w.between(-149, 127);
      high = pattern32(false, 1, a);
      low = pattern32(true, 1, b);
      break;
    }
    case 2: {  // one element 2^-149 .. 2^-1 above a common value
      high = ordinary(normal_range, w);
      low = high + 1 + w.below(3);
      break;
    }
    default: {  // subnormal results: gaps around 88 .. 104
      high = ordinary(narrow_lattice, w);
      low = pattern32(true, (88 << 16) + w.below(16 << 16), -16);
    }
  }
  row[first] = high;
  row[second] = low;
  return row;
}

patterns group_row(std::size_t n, word_stream& w) {
  std::uint32_t value[4];
  const std::uint32_t kinds = 1 + w.below(4);
  const bool far = w.flip();
  value[0] = ordinary(normal_range, w);
  for (std::uint32_t k = 1; k < kinds; ++k) value[k] = far ? ordinary(normal_range, w) : value[0] + w.below(4);
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
patterns equal_row(std::size_t n, bool far_below, word_stream& w) {
  std::size_t equal = power_below(n);
  while (equal > 1 && w.below(8) == 0) equal /= 2;
  const std::uint32_t v = ordinary(normal_range, w);
  const std::uint32_t far = 0xc4800000U + (w.below(1 << 20) << 3);
  patterns row(n, far_below ? far : minus_infinity32);
  const std::size_t first = w.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < equal; ++i) row[(first + i) % n] = v;
  return row;
}

/// `gradient`: rows for operations that multiply the softmax with g.
patterns logits_row(sample_class c, std::size_t n, bool gradient, word_stream& w) {
  const bool keep = w.below(16) == 0, narrow = w.flip();
  if (n == 0) return {};
  if (c == near_ties) return gradient ? equal_row(n, true, w) : near_tie_row(n, w);
  if (c == exact_gaps) return gap_row(n, w);
  if (c == multiplicities) return group_row(n, w);
  if (c == ties) return equal_row(n, false, w);
  patterns row(n);
  for (std::uint32_t& x : row) {
    x = drawn(c, keep, w);
    const bool negative = w.flip();
    if (c == normal_range && narrow)  // differences of a few units
      x = static_cast<std::uint32_t>(compose(dtype::f32, negative, w.between(-8, 2), x));
    if (c == subnormal && narrow)  // subnormal softmax
      x = pattern32(true, (85 << 16) + w.below(22 << 16), -16);
    if (c == single_nonfinite) x = ordinary(normal_range, w);
  }
  if (c == subnormal && narrow) row[w.below(static_cast<std::uint32_t>(n))] = 0;
  if (c == single_nonfinite) {
    row[w.below(static_cast<std::uint32_t>(n))] = special32(w);
    if (n > 1 && w.flip()) row[w.below(static_cast<std::uint32_t>(n))] = minus_infinity32;
  }
  return row;
}

/// Rows put where the reduced axes want them.
array placed(const shape_list& shape, const reduce_layout& l, const std::vector<patterns>& rows) {
  array x(dtype::f32, shape);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < l.reduced.size(); ++i) x.set(index(l.kept[r] + l.reduced[i]), rows[r][i]);
  return x;
}

/// A factor of the gradients: for ties an odd multiple of 2^-150 when divided by n (that cannot be for an odd n).
std::uint32_t factor(sample_class c, std::int64_t n, word_stream& w) {
  const bool negative = w.flip();
  if (c == ties || c == near_ties) {
    int twos = 0;
    for (; n > 1 && n % 2 == 0; n /= 2) ++twos;
    const std::uint64_t m = odd_of(w.between(1, 10), w) * static_cast<std::uint64_t>(n);
    return pattern32(negative, m, twos - (twos > 0 ? 150 : 149));
  }
  if (c == exact_gaps || c == multiplicities) return ordinary(w.flip() ? subnormal : normal_range, w);
  const bool keep = w.below(16) == 0;
  return drawn(c, keep, w);
}

/// g and y of softmax_backward: y_i (g_i - sum of g_j y_j).
void product_row(sample_class c, std::size_t n, patterns* g, patterns* y, word_stream& w) {
  const bool keep = w.below(16) == 0, uneven = w.below(8) == 0;
  const std::size_t carrier = n == 0 ? 0 : w.below(static_cast<std::uint32_t>(n)),
                    beside = n < 3 ? n : (carrier + 1) % n;
  const int e = w.between(-20, 20);
  const std::uint32_t common = ordinary(normal_range, w);
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = w.flip(), other = w.flip();
    std::uint32_t gi = drawn(c, keep, w), yi = drawn(c, keep, w);
    const std::uint32_t offset = w.below(301);
    if (c == ties || c == near_ties || c == overflow_border) {
      // The sum is an odd integer q of 13 bits, y_i another: 25 bits; tiny numbers beside for the near-ties.
      const std::uint64_t m = c == overflow_border ? 5787 + 2 * (offset % 11) : 4801 + 2 * offset;
      const int scale = c == overflow_border ? 51 : e;
      gi = i == carrier                    ? pattern32(negative, m, scale + (c == overflow_border ? 1 : 0))
           : c == near_ties && i == beside ? pattern32(negative, 1, scale - 50)
                                           : (negative ? sign32 : 0);
      yi = i == carrier ? one32 : pattern32(other, m, c == overflow_border ? 51 : -13);
    }
    if (c == cancelling) {  // y sums to 1, g is constant: zero
      gi = common ^ (uneven && i == carrier ? 1U : 0U);
      yi = pattern32(false, 1, -static_cast<int>(std::min<std::size_t>(std::min(i + 1, n - 1), 140)));
    }
    if (c == single_nonfinite && i != carrier) {
      gi = ordinary(normal_range, w);
      yi = ordinary(normal_range, w);
    }
    if (c == single_nonfinite && i == carrier) (other ? gi : yi) = special32(w);
    g->push_back(gi);
    y->push_back(yi);
  }
}

/// g and y of log_softmax_backward: g_i - e^y_i sum of g_j. With y_i = 0 it is g_i - sum: midpoints in the tie classes,
/// beside which tiny y_i put the result.
void exponential_row(sample_class c, std::size_t n, patterns* g, patterns* y, word_stream& w) {
  const bool keep = w.below(16) == 0, wide = w.below(4) == 0;
  const int e = w.between(-20, 20);
  const std::uint32_t common = ordinary(normal_range, w), carrier = w.below(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = w.flip();
    std::uint32_t gi = drawn(c, keep, w), yi = 0;
    const std::uint32_t word = w.next();
    if (c == ties || c == near_ties || c == exact_gaps) {
      const std::uint64_t even = 2 * (word % 1000);
      const std::uint64_t m = i == 0 ? (1U << 24) + (1U << 20) + even : i == 1 ? even + 1 : i == 2 ? 0 : even;
      gi = pattern32(negative && i > 1, m, e);
      const int length = 1 + static_cast<int>(word % 20);
      yi =
          c == ties ? (negative ? sign32 : 0) : pattern32(negative, word % 3 + 1, c == near_ties ? -60 - length : -149);
    } else if (c == uniform_patterns || c == wide_exponents) {
      yi = drawn(c, keep, w);
    } else if (c == single_nonfinite) {  // a NaN or infinity in y, or in g, where it reaches the whole row
      const bool special = word % 4 == 0;
      yi = special ? special32(w) : pattern32(true, word >> 8, -21);
      gi = i == carrier && wide ? special32(w) : ordinary(normal_range, w);
    } else {  // what a log_softmax is
      yi = pattern32(true, word >> 8, wide ? -17 : -21);
    }
    if (c == multiplicities || c == cancelling) gi = common ^ (n % 2 == 0 && i % 2 == 0 ? sign32 : 0);
    if (c == multiplicities && i == 0) gi = ordinary(normal_range, w);
    g->push_back(gi);
    y->push_back(yi);
  }
}

array class_targets(sample_class c, const shape_list& shape, const std::vector<patterns>& rows, const attributes& attrs,
                    word_stream& w) {
  const auto ignored = attribute_or<std::int64_t>(attrs, "ignore_index", -100);
  const bool each = attribute_or<std::string>(attrs, "reduction", "mean") == "none", all = w.below(16) == 0;
  const bool outside = each || w.below(16) == 0;  // one makes the whole mean or sum NaN
  array t(dtype::i64, shape);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::size_t n = rows[r].size();
    std::int64_t v = static_cast<std::int64_t>(w.below(static_cast<std::uint32_t>(n)));
    const std::uint32_t kind = w.below(32);
    if (n == 0) v = 0;
    // The greatest element's loss is tiny; the gaps are in the others.
    if ((c == near_ties || c == exact_gaps) && n > 1 && rows[r][index(v)] >> 31 == 0)
      v = (v + 1) % static_cast<std::int64_t>(n);
    if ((kind == 0 && c != ties) || (all && kind < 28)) v = ignored;
    const std::int64_t beyond[] = {-1, static_cast<std::int64_t>(n), INT64_MIN};
    if (kind == 1 && outside && c != ties) v = beyond[w.below(3)];
    t.set(r, static_cast<std::uint64_t>(v));
  }
  return t;
}

}  // namespace

std::vector<array> row_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                              const attributes& attrs, word_stream& w) {
  const bool loss = op.starts_with("cross_entropy"), gradient = op.ends_with("backward");
  const bool several = op.starts_with("logsumexp");
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
      (op == "softmax_backward" ? product_row : exponential_row)(c, n, &g[r], &y[r], w);
    return {placed(shape, l, g), placed(shape, l, y)};
  }
  std::vector<patterns> rows;
  for (std::size_t r = 0; r < l.kept.size(); ++r) rows.push_back(logits_row(c, n, gradient, w));
  const array x = placed(shape, l, rows);
  std::vector<array> v{x};
  if (loss) v.push_back(class_targets(c, shapes.back(), rows, attrs, w));
  if (!gradient) return v;
  std::int64_t divisor = 1;
  if (loss && attribute_or<std::string>(attrs, "reduction", "mean") == "mean") {
    const auto ignored = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "ignore_index", -100));
    divisor = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) divisor += v[1].get(r) != ignored;
  }
  array g(dtype::f32, shapes[0]);
  if (n != 0) divisor *= static_cast<std::int64_t>(power_below(n));
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.count()); ++i) g.set(i, factor(c, divisor, w));
  v.insert(v.begin(), g);
  return v;
}

}  // namespace repdl::reference::detail
