// Inputs of cross_entropy and its gradient beside the logits, in every format (rows.cpp, rows_binary64.cpp).
#pragma once

#include <algorithm>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {

using enum sample_class;

template <class Word>
array class_targets(const patterns_of<Word>& f, sample_class c, const shape_list& shape,
                    const std::vector<std::vector<Word>>& rows, const attributes& attrs, word_stream& w) {
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
    if ((c == near_ties || c == exact_gaps) && n > 1 && (rows[r][index(v)] & f.sign()) == 0)
      v = (v + 1) % static_cast<std::int64_t>(n);
    if ((kind == 0 && c != ties) || (all && kind < 28)) v = ignored;
    const std::int64_t beyond[] = {-1, static_cast<std::int64_t>(n), INT64_MIN};
    if (kind == 1 && outside && c != ties) v = beyond[w.below(3)];
    t.set(r, static_cast<std::uint64_t>(v));
  }
  return t;
}

// Whether numbers are small ones, so that outputs are where the class wants them.
inline bool aims(sample_class c) { return c == ties || c == near_ties || c == exact_gaps || c == multiplicities; }

/// For each class. In classes that aim: of losses beside a gap one power of two for all, else integers.
template <class Word>
array class_weights(const patterns_of<Word>& t, sample_class c, std::int64_t classes, bool gradient, word_stream& w) {
  array a(t.type, {classes});
  const bool keeps_sign = w.below(8) == 0, one = !gradient && (c == near_ties || c == ties);
  const int power = w.between(-2, 2);
  for (std::size_t i = 0; i < index(classes); ++i) {
    const std::uint32_t word = w.next();
    Word v = one ? t.pattern(false, 1, power) : t.pattern(false, 1 + word % 3, 0);
    if (!aims(c)) {
      v = t.drawn(c, false, w);
      if (!keeps_sign) v &= ~t.sign();
      if (word % 16 == 0) v = 0;
    }
    if (c == single_nonfinite) v = word % 32 == 0 ? t.special(w) : t.pattern(false, 1 + word % 3, -1);
    a.set(i, v);
  }
  return a;
}
/// Where classes aim: of a loss 1 beside the greatest, and for ties -1 there, so that the coefficients add up to 0 and the loss is a gap;
/// of gradients quarters. Where there is -inf, mostly 0.
template <class Word>
std::vector<std::vector<Word>> class_probabilities(const patterns_of<Word>& t, sample_class c,
                                                   const std::vector<std::vector<Word>>& rows, bool gradient,
                                                   word_stream& w) {
  std::vector<std::vector<Word>> all;
  for (const std::vector<Word>& row : rows) {
    const std::size_t n = row.size();
    std::vector<Word> p(n);
    const bool keeps_sign = w.below(8) == 0;
    const std::uint32_t chosen = n == 0 ? 0 : w.below(static_cast<std::uint32_t>(n));
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t word = w.next();
      if (aims(c)) {
        p[i] = gradient || c == multiplicities ? t.pattern(false, word % 4, -2)
               : i == chosen                   ? t.pattern(false, 1, 0)
                                               : 0;
      } else if (c == wide_exponents || c == uniform_patterns || c == subnormal) {
        p[i] = t.drawn(c, false, w);
        if (!keeps_sign) p[i] &= ~t.sign();
      } else {
        p[i] = word % 4 == 0 ? 0 : t.rounded(keeps_sign && word % 8 == 1, word >> 8, -24);
      }
      if (c == single_nonfinite && word % 64 == 7) p[i] = t.special(w);
      if (row[i] == t.minus_infinity() && word % 5 != 2) p[i] = 0;
    }
    if (c == ties && !gradient) {
      for (std::size_t i = 0; i < n && n > 1; ++i) {
        if ((row[i] & t.sign()) != 0) continue;  // the greatest
        if (i == chosen) p[(i + 1) % n] = t.pattern(false, 1, 0);
        p[i] = t.pattern(true, 1, 0);
      }
    }
    all.push_back(std::move(p));
  }
  return all;
}
/// A small number that weights or rows add up to, or 1.
template <class Word>
std::int64_t divisor_of(const patterns_of<Word>& t, sample_class c, const array& targets, const array& weight,
                        std::uint64_t ignored) {
  if (!aims(c)) return 1;
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < index(targets.count()); ++r) {
    const std::uint64_t v = targets.get(r);
    if (v == ignored || v >= static_cast<std::uint64_t>(weight.count())) continue;
    for (std::int64_t k = 1; k <= 3; ++k) {
      if (weight.get(v) == t.pattern(false, static_cast<std::uint64_t>(k), 0)) sum += k;
    }
  }
  return std::max<std::int64_t>(sum, 1);
}

/// All operands, of logits x and their rows; place(rows) is an array of x's shape, factor(n) draws a g, for ties an odd multiple of half the
/// least number, when divided by n, of which `equal` is a factor.
template <class Word, class Place, class Factor>
std::vector<array> loss_inputs(const std::string& op, sample_class c, const patterns_of<Word>& t,
                               const std::vector<shape_list>& shapes, const attributes& attrs, const array& x,
                               const std::vector<std::vector<Word>>& rows, std::int64_t equal, word_stream& w,
                               const Place& place, const Factor& factor) {
  const bool gradient = op.ends_with("backward"), probabilities = op.starts_with("cross_entropy_prob");
  const std::size_t first = gradient ? 1 : 0;  // the logits
  const bool weighted = first + 2 < shapes.size() && shapes[first + 2] != absent_shape;
  std::vector<array> v{x};
  v.push_back(probabilities ? place(class_probabilities(t, c, rows, gradient, w))
                            : class_targets(t, c, shapes[first + 1], rows, attrs, w));
  if (weighted) v.push_back(class_weights(t, c, shapes[first + 2][0], gradient, w));
  if (!gradient) return v;
  std::int64_t divisor = 1;
  if (attribute_or<std::string>(attrs, "reduction", "mean") == "mean") {
    const auto ignored = static_cast<std::uint64_t>(attribute_or<std::int64_t>(attrs, "ignore_index", -100));
    divisor = 0;
    if (probabilities) {
      divisor = std::ssize(rows);
    } else if (weighted) {
      divisor = divisor_of(t, c, v[1], v[2], ignored);
    } else {
      for (std::size_t r = 0; r < rows.size(); ++r) divisor += v[1].get(r) != ignored;
    }
  }
  array g(t.type, shapes[0]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.count()); ++i) g.set(i, factor(divisor * equal));
  v.insert(v.begin(), g);
  return v;
}

}  // namespace repdl::reference::detail
