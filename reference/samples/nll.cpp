// Operands of nll_loss and its gradient. Some samples are ignored; some calls have targets that are no class. Products of elements are
// midpoints where the factors are odd integers whose product has one bit more than the format (p), and next to midpoints where its p last
// bits are 2^(p - 1) + 1 or - 1; the gradient's divisor divides the weights. Of a sum all other samples come in pairs that cancel; without
// weights two make the midpoint. Of a mean all x are y but two, 2 y and n / 2 units, and all weights are one number: it is a half beside y,
// exactly, or with a rest within reach of binary64 or beyond it.
#include <bit>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using std::int64_t;
using std::uint32_t;
using std::uint64_t;

class nll_maker {
 public:
  nll_maker(sample_class c, dtype t, word_stream& w) : c_(c), t_(t), f_(format_of(t)), w_(w) {
    keep_ = w.below(16) == 0 || c == single_nonfinite;
    divisor_ = c == near_ties ? 1 : 1 + 2 * w.below(3);
    for (uint64_t& a : factor_) a = c == near_ties ? detail::odd_of(f_.precision, w) : 1 + 2 * w.below(8);
  }

  /// plain: no sample is ignored, and every class is there.
  array targets(const shape_list& shape, int64_t classes, int64_t ignored, bool plain) {
    array a(dtype::i64, shape);
    const bool odd = !plain && (keep_ || w_.below(4) == 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
      int64_t v = classes == 0 ? ignored : static_cast<int64_t>(w_.below(static_cast<uint32_t>(classes)));
      const uint32_t u = w_.below(64);
      if (u < 4 && !plain) v = ignored;
      if (u == 63 && odd) v = w_.flip() ? classes : -1 - static_cast<int64_t>(w_.below(3));
      a.set(i, static_cast<uint64_t>(v));
    }
    return a;
  }
  bool aims() const { return c_ == ties || c_ == near_ties; }

  /// For class k. In aims of a mean they are all one.
  uint64_t weight(std::size_t k, bool equal) {
    if (equal) return exact_pattern(t_, false, 3 * divisor_, -2);
    if (aims()) {
      const int length = static_cast<int>(std::bit_width(factor_[k % 4]));
      return exact_pattern(t_, false, divisor_ * factor_[k % 4], static_cast<int>(k % 3) - length);
    }
    if (c_ == overflow_border) return exact_pattern(t_, false, 1 + k % 4, -1);
    if (c_ == subnormal) {
      const bool negative = w_.flip();
      return exact_pattern(t_, negative, 1 + w_.below(4), -1);
    }
    return tame(sample(c_ == single_nonfinite && w_.below(8) != 0 ? normal_range : c_, t_, w_));
  }
  /// Of f32, or of f64.
  uint64_t total(dtype t) {
    if (aims()) {
      const int e = w_.between(-2, 2);
      return exact_pattern(t, w_.flip(), divisor_, e);
    }
    if (w_.below(8) == 0) return special(t);
    return sample(w_.flip() ? normal_range : c_, t, w_);
  }
  /// The other factor for class k's weight (1: none).
  uint64_t element(std::size_t k, bool weighted) {
    const int p = f_.precision;
    if (aims()) {
      const uint64_t a = weighted ? factor_[k % 4] : 1;
      const bool negative = w_.flip();
      const int e = w_.between(-3, 3);
      if (a == 1) return exact_pattern(t_, negative, detail::odd_of(p, w_), e - p);
      if (c_ == near_ties) {
        const uint64_t r = (uint64_t{1} << (p - 1)) + (w_.flip() ? 1 : uint64_t{0} - 1);
        return exact_pattern(t_, negative, (detail::inverse(a) * r) & ((uint64_t{1} << p) - 1), e - p);
      }
      // a b of p + 1 bits.
      uint64_t b = 0;
      do {
        b = detail::odd_of(p + 1 - static_cast<int>(std::bit_width(a)) + static_cast<int>(w_.below(2)), w_);
      } while (std::bit_width(a * b) != static_cast<unsigned>(p) + 1);
      return exact_pattern(t_, negative, b, e - p);
    }
    if (c_ == overflow_border) {
      const uint64_t m = detail::odd_of(p, w_);
      const bool negative = w_.flip();
      return exact_pattern(t_, negative, m, f_.emax - p + 1 - w_.between(0, 1));
    }
    return tame(sample(c_ == single_nonfinite && w_.flip() ? normal_range : c_, t_, w_));
  }
  uint64_t tame(uint64_t x) const {
    const bool finite = (x & f_.infinity()) != f_.infinity();
    return finite || keep_ ? x : x ^ (uint64_t{1} << (f_.precision - 1));
  }
  uint64_t ordinary() {
    const uint64_t x = sample(normal_range, t_, w_);
    return tame(x);
  }

  /// Two elements whose sum is a midpoint, or next to one.
  std::vector<uint64_t> sum_terms() {
    const int p = f_.precision;
    const bool negative = w_.flip();
    const int e = f_.emax == 15 ? w_.between(-12, 2) : w_.between(-20, 20);
    const int beside = c_ == near_ties ? std::min(p - 1, e - 1 - f_.ulp_min()) : 0;
    const uint64_t y = detail::odd_of(p, w_);
    const uint64_t half = (uint64_t{1} << beside) + (beside > 0 ? 1 : 0);
    return {exact_pattern(t_, negative, y, e), exact_pattern(t_, negative, half, e - 1 - beside)};
  }
  /// n elements of x whose mean is a midpoint, or next to one.
  std::vector<uint64_t> mean_terms(std::size_t n) {
    const int p = f_.precision;
    const int bits = static_cast<int>(std::bit_width(n));
    const bool negative = w_.flip();
    const int e = f_.emax == 15 ? w_.between(-13, -11) : w_.between(-20, 20);
    const uint64_t y = detail::odd_of(p, w_);
    std::vector<uint64_t> all(n, exact_pattern(t_, negative, y, e));
    const int beside = c_ == near_ties ? p - bits : 0;
    if (n < 2 || beside < 0 || e - 1 - beside < f_.ulp_min()) return all;
    all[0] = exact_pattern(t_, negative, y, e + 1);
    const bool far = n >= 4 && w_.flip() && e - 40 >= f_.ulp_min();  // what is beside it is beyond binary64
    all[1] = exact_pattern(t_, negative, (uint64_t{n} << beside) + (beside > 0 && !far ? 1 : 0), e - 1 - beside);
    if (beside > 0 && far) {
      const bool other = w_.flip();
      const int below = w_.between(30, 40);
      all[2] = exact_pattern(t_, other, 1, e - below);
      all[3] = all[0];
    }
    return all;
  }

 private:
  uint64_t special(dtype t) {
    if (t == dtype::f32) return detail::special32(w_);
    const uint32_t kind = w_.below(3);
    const bool negative = w_.flip();
    return kind == 0 ? zero_bits(t, negative) : kind == 1 ? infinity_bits(t, negative) : nan_bits(t);
  }

  sample_class c_;
  dtype t_;
  const format& f_;
  word_stream& w_;
  bool keep_;
  uint64_t divisor_;
  uint64_t factor_[4];
};

}  // namespace

std::vector<array> fill_nll(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                            const attributes& attrs, uint64_t seed, uint64_t stream) {
  word_stream w(seed, stream);
  nll_maker make(c, t, w);
  const bool gradient = op == "nll_loss_backward";
  const std::string reduction = attribute_or<std::string>(attrs, "reduction", "mean");
  const shape_list& shape = shapes.at(gradient ? 1 : 0);
  const reduce_layout l = layout_of_classes(shape, attribute_of<int64_t>(attrs, "axis"));
  const int64_t classes = std::ssize(l.reduced);
  const bool sums = !gradient && reduction != "none";
  const bool mean_of_aims = sums && reduction == "mean" && make.aims();
  const array targets =
      make.targets(l.kept_shape, classes, attribute_or<int64_t>(attrs, "ignore_index", -100), sums && make.aims());
  const std::size_t first = gradient ? 3 : 2;
  const bool weighted = shapes.size() > first && shapes[first] != absent_shape;
  array weight = array::none(), x(t, shape);
  if (weighted) {
    weight = array(t, shapes[first]);
    for (int64_t k = 0; k < classes; ++k) weight.set(index(k), make.weight(index(k), mean_of_aims));
  }
  for (int64_t i = 0; i < x.count(); ++i) x.set(index(i), make.ordinary());
  const std::size_t n = l.kept.size();
  const auto has_class = [&](std::size_t i) {
    const auto k = static_cast<int64_t>(targets.get(i));
    return k >= 0 && k < classes;
  };
  if (gradient) {
    array g(t, shapes[0]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(g.count()); ++i)
      g.set(i, make.element(has_class(i) ? static_cast<std::size_t>(targets.get(i)) : 0, weighted));
    std::vector<array> in{g, x, targets};
    if (shapes.size() > 3) in.push_back(weight);
    if (shapes.size() > 4) {
      const dtype total = t == dtype::f64 ? t : dtype::f32;
      in.push_back(shapes[4] == absent_shape ? array::none() : array(total, {}));
      if (!in[4].absent()) in[4].set(0, make.total(total));
    }
    return in;
  }
  array chosen = targets;
  std::vector<uint64_t> terms;
  if (mean_of_aims) {
    terms = make.mean_terms(n);
  } else if (sums && make.aims() && !weighted) {
    terms = make.sum_terms();
  } else if (sums && (make.aims() || c == overflow_border) && n > 0) {
    terms = {make.element(static_cast<std::size_t>(targets.get(0)), weighted)};
  }
  const bool pairs = sums && (!terms.empty() || c == cancelling);
  uint64_t before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool second = pairs && i >= terms.size() && (i - terms.size()) % 2 == 1;
    if (second) chosen.set(i, chosen.get(i - 1));
    const auto k = static_cast<int64_t>(chosen.get(i));
    if (k < 0 || k >= classes) continue;
    uint64_t v = i < terms.size() ? terms[i] : pairs ? make.ordinary() : make.element(index(k), weighted);
    if (pairs && i >= terms.size() && !second && i + 1 == n) v = zero_bits(t, w.flip());
    if (second) v = before ^ format_of(t).sign_bit();
    before = v;
    x.set(index(l.kept[i] + l.reduced[index(k)]), v);
  }
  std::vector<array> in{x, chosen};
  if (shapes.size() > 2) in.push_back(weight);
  return in;
}

}  // namespace repdl::reference
