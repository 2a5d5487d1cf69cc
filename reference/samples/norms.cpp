// Inputs of layer_norm, rms_norm, group_norm and batch_norm.
//
// A result is rational only where v + eps is the square of a rational number. The rows aimed at midpoints are such: elements
// of two values (or of one value, its negative and 0) in numbers whose product, or quotient by the length, is a square,
// without eps, so that z = (x - m) / sqrt(v) is rational whatever the values are; or +-3/4 2^t with eps = 4^t, where sqrt(v + eps)
// is 5/4 2^t. A weight makes of z an odd number of half ulp of the bias. Near-ties are these with one element an ulp off, or with
// eps far below v, down to 2^-400 of it. What attributes and operands do not allow is made as well as they do: of rows without
// weights means are midpoints. (1 / sqrt(v + eps) is one only in rows of 2^21 elements: its significand divides their number.)
//
// Other classes: cancelling: also tiny differences beside a big mean; exact_gaps: outliers; multiplicities: groups of equal
// elements, constant rows; overflow_border: z = 1 and weights near the largest number.
#include <algorithm>
#include <bit>
#include <numeric>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;
using std::uint64_t;
__extension__ using uint128 = unsigned __int128;

/// z of an element: numerator / denominator in lowest terms and without their twos, times 2^twos.
struct odd_ratio {
  uint64_t numerator = 1, denominator = 1;
  int twos = 0;
  odd_ratio(uint64_t p, uint64_t q) {
    const uint64_t g = std::gcd(p, q);
    if (p == 0) return;
    twos = std::countr_zero(p / g) - std::countr_zero(q / g);
    numerator = p / g >> std::countr_zero(p / g);
    denominator = q / g >> std::countr_zero(q / g);
  }
};

/// So many elements are above and below the mean, at z = above and -below; the others are the mean.
struct design {
  std::size_t high, low;
  odd_ratio above, below;
};

/// The first ones of a row of n elements, that with the most of +-1 first.
std::vector<design> designs_of(std::size_t n, bool centred, bool with_eps) {
  std::vector<design> all;
  if (n < (centred ? 2U : 1U)) return all;
  if (!centred || n % 2 == 0) {
    const uint64_t p = with_eps ? 3 : 1, q = with_eps ? 5 : 1;
    all.push_back({n - n / 2, n / 2, {p, q}, {p, q}});
  }
  for (std::size_t j = 1; j < n && !with_eps && all.size() < 24; ++j) {
    if (const uint64_t r = root_of(j * (n - j)); centred && r * r == j * (n - j))
      all.push_back({j, n - j, {n - j, r}, {j, r}});
    const std::size_t both = centred ? 2 * j : j;
    if (const uint64_t r = root_of(both * n); both < n && r * r == both * n)
      all.push_back({centred ? j : both - both / 2, centred ? j : both / 2, {r, both}, {r, both}});
  }
  return all;
}

/// t where v = 4^t.
std::optional<int> quarter_exponent(double v) {
  const number n = widen(dtype::f64, std::bit_cast<uint64_t>(v));
  if (n.kind != number_kind::finite || !std::has_single_bit(n.significand)) return std::nullopt;
  const int e = n.exponent + std::countr_zero(n.significand);
  return e % 2 == 0 ? std::optional(e / 2) : std::nullopt;
}

int exponent_of(double v) { return static_cast<int>(std::bit_cast<uint64_t>(v) >> 52) - 1023; }

/// Whether, with or without weight and bias, some result can be a midpoint.
bool has_midpoints(const design& d, bool weight, bool bias) {
  const auto either = [&](const auto& f) { return f(d.above) || (d.low != 0 && f(d.below)); };
  if (bias) return weight || either([](const odd_ratio& z) { return z.denominator == 1; });
  return weight && either([](const odd_ratio& z) { return z.numerator > z.denominator || z.twos < 0; });
}

/// Of formats of 32 bits or fewer, or of binary64.
template <class Word>
class norm_maker {
  using row_patterns = std::vector<Word>;

 public:
  norm_maker(const std::string& op, sample_class c, const std::vector<shape_list>& shapes, const attributes& attrs,
             word_stream& w, dtype type)
      : t_(type), c_(c), w_(w), l_(norm_layout_of(op, shapes.at(0), attrs)), n_(l_.rows.reduced.size()) {
    centred_ = op != "rms_norm";
    eps_ = attribute_or(attrs, "eps", 1e-5);
    has_weight_ = shapes.size() > 1 && shapes[1] != absent_shape;
    has_bias_ = shapes.size() > 2 && shapes[2] != absent_shape;
    choose_design();
    const std::vector<uint32_t> first = arrange_places();
    all_.emplace_back(type, shapes[0]);
    for (std::size_t r = 0; r < l_.rows.kept.size(); ++r) {
      const row_patterns row = make_row();
      for (std::size_t i = 0; i < n_; ++i) all_[0].set(index(l_.rows.kept[r] + l_.rows.reduced[i]), row[i]);
    }
    for (std::size_t k = 1; k < shapes.size(); ++k) {
      all_.push_back(shapes[k] == absent_shape ? array::none() : array(type, l_.weight));
    }
    make_weights(first);
    if (c == single_nonfinite) add_special();
  }
  std::vector<array> result() { return std::move(all_); }

 private:
  using uint32_t = std::uint32_t;
  using size = std::size_t;

  bool aims() const { return c_ == ties || c_ == near_ties || c_ == cancelling || c_ == narrow_lattice; }
  uint32_t below(size n) { return w_.below(static_cast<uint32_t>(n)); }
  /// Draws of as many bits as a pattern has.
  uint64_t word() { return sizeof(Word) == 8 ? w_.next64() : w_.next(); }
  uint64_t number_below(uint64_t n) { return sizeof(Word) == 8 ? w_.next64() % n : below(n); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    if (sizeof(Word) == 4) return w_.between(static_cast<int>(low), static_cast<int>(high));
    return low + static_cast<std::int64_t>(w_.next64() % static_cast<uint64_t>(high - low + 1));
  }

  void choose_design() {
    const bool near = c_ == near_ties || c_ == overflow_border;  // also with an eps that is next to nothing
    quarter_ = quarter_exponent(eps_);
    const bool with_eps = eps_ != 0 && !near;
    if ((!aims() && c_ != overflow_border) || (with_eps && !quarter_)) return;
    std::vector<design> all = designs_of(n_, centred_, with_eps);
    if (c_ == ties || c_ == near_ties)
      std::erase_if(all, [&](const design& d) { return !has_midpoints(d, has_weight_, has_bias_); });
    // Without a bias zeros are elements that are the mean, and near-ties need something far smaller than an ulp.
    if (!has_bias_ && eps_ == 0 && (c_ == cancelling || c_ == near_ties))
      std::erase_if(all, [&](const design& d) { return d.high + d.low == n_; });
    if (all.empty()) return;
    design_ = all[w_.flip() ? 0 : below(all.size())];
  }

  /// The places of a design's elements, the same in all rows: 1 above, -1 below. Of each weight, that of an element that has it.
  std::vector<uint32_t> arrange_places() {
    place_.assign(n_, 0);
    if (design_) {
      for (size i = 0; i < design_->high + design_->low; ++i) place_[i] = i < design_->high ? 1 : -1;
      for (size i = n_; i > 1; --i) std::swap(place_[i - 1], place_[below(i)]);
    }
    std::vector<uint32_t> first(index(count_of(l_.weight)), 0);
    std::vector<bool> found(first.size(), false);
    for (const std::int64_t base : l_.rows.kept) {
      for (size i = 0; i < n_; ++i) {
        const size k = l_.weight_of(i, base + l_.rows.reduced[i]);
        if (!found[k]) first[k] = static_cast<uint32_t>(i);
        found[k] = true;
      }
    }
    return first;
  }

  // ---- rows

  row_patterns make_row() {
    if (n_ == 0) return {};
    if (design_) return designed_row();
    if (c_ == cancelling && eps_ != 0 && w_.flip()) return row_patterns(n_, t_.ordinary(normal_range, w_));
    if (c_ == cancelling || ((c_ == ties || c_ == near_ties) && n_ % 2 == 0)) return spread_row();
    if (c_ == exact_gaps) return outlier_row();
    if (c_ == multiplicities) return group_row();
    const bool keep = w_.below(16) == 0, narrow = w_.flip(), constant = w_.below(8) == 0;
    const int shift = t_.type == dtype::f16 ? w_.between(-10, 10) : w_.between(-60, 60);
    row_patterns row(n_);
    for (Word& x : row) {
      x = t_.drawn(c_, keep, w_);
      const bool negative = w_.flip();
      if (c_ == normal_range && narrow) x = t_.with_exponent(negative, shift, x);
      if (c_ == subnormal && narrow && has_weight_) x = t_.ordinary(normal_range, w_);
      if (c_ == single_nonfinite || ((c_ == ties || c_ == near_ties) && !has_weight_))
        x = t_.ordinary(normal_range, w_);
    }
    if (c_ == zeros && constant) std::fill(row.begin(), row.end(), row[0]);
    return row;
  }

  row_patterns designed_row() {
    const design& d = *design_;
    Word high = 0, low = 0, middle = 0;
    const bool near = c_ == near_ties || c_ == overflow_border;
    if (eps_ != 0 && near) {  // its square is at least 2^26 eps, at times as far above as can be
      const int last = t_.f.emax - 1, least = exponent_of(eps_) / 2 + (has_bias_ ? t_.p / 2 + 2 : t_.p + 2),
                most = w_.flip() ? last : std::min(least + 40, last);
      const uint64_t m = odd_of(t_.p, w_);
      high = t_.pattern(false, m, w_.between(std::min(least, most), most) - t_.p + 1);
      low = high ^ t_.sign();
    } else if (eps_ != 0) {
      const std::int64_t far = std::int64_t{1} << (t_.p - 4), c = centred_ && w_.flip() ? between(-far, far) : 0;
      high = of_integer(c + 3, *quarter_ - 2);
      low = of_integer(c - 3, *quarter_ - 2);
    } else if (!centred_ || (near && d.high + d.low < n_)) {
      high = t_.ordinary(normal_range, w_) & ~t_.sign();
      low = high ^ t_.sign();
    } else if (d.high + d.low < n_) {
      const int most = 1 << std::min(10, t_.p - 4);
      const std::int64_t c = between((std::int64_t{1} << (t_.p - 1)) + most, (std::int64_t{1} << t_.p) - most),
                         a = w_.between(1, most - 1);
      const int e = t_.type == dtype::f16 ? w_.between(-14, 4) : w_.between(-40, 20);
      high = of_integer(c + a, e);
      low = of_integer(c - a, e);
      middle = of_integer(c, e);
    } else if (!near && w_.flip()) {  // next to each other: an odd number of ulp
      low = t_.ordinary(normal_range, w_);
      high = low + 1 + 2 * w_.below(8);
    } else {
      high = t_.ordinary(normal_range, w_);
      const Word other = t_.ordinary(w_.flip() && !near ? wide_exponents : normal_range, w_);
      low = t_.finite(other, false) == high ? high ^ t_.sign() : t_.finite(other, false);
      const Word significand = (Word{1} << (t_.p - 1)) - 1;
      if (near) low = (low & significand) | ((high ^ t_.sign()) & ~significand);
    }
    if (w_.below(4) == 0 && (c_ != cancelling || !has_bias_)) std::swap(high, low);
    row_patterns row(n_);
    for (size i = 0; i < n_; ++i) row[i] = place_[i] > 0 ? high : place_[i] < 0 ? low : middle;
    if (eps_ == 0 && near) disturb(row);
    return row;
  }
  /// Something tiny in the place of a 0, or an ulp.
  void disturb(row_patterns& row) {
    const auto middle = std::find(place_.begin(), place_.end(), 0);
    const bool negative = w_.flip();
    const int e = t_.type == dtype::f16 ? w_.between(-24, -14) : w_.between(t_.f.ulp_min(), -40);
    Word& x = middle == place_.end() ? row[below(n_)] : row[index(middle - place_.begin())];
    x = middle != place_.end() ? t_.pattern(negative, 1, e) : negative ? x + 1 : x - 1;
  }
  Word of_integer(std::int64_t m, int e) const { return t_.pattern(m < 0, static_cast<uint64_t>(m < 0 ? -m : m), e); }

  /// A number and a few ulp; of an even length, half of them lie an odd number of ulp above the others: the mean is a midpoint.
  row_patterns spread_row() {
    const Word c = t_.ordinary(normal_range, w_);
    const uint32_t range = w_.flip() ? 2 : 16, odd = 1 + 2 * w_.below(8);
    const Word last = t_.p < 24 ? 0xf : 0xff;
    row_patterns row(n_);
    for (size i = 0; i < n_; ++i)
      row[i] = c_ == cancelling ? (c & ~last) + w_.below(range) : (c & ~last) + (i % 2 != 0 ? odd : 0);
    return row;
  }

  row_patterns outlier_row() {
    const uint32_t many = 1 + w_.below(3);
    const int e = w_.between(t_.f.ulp_min(), t_.type == dtype::f16 ? 12 : 100), above = w_.between(1, t_.f.emax - e);
    row_patterns row(n_);
    for (Word& x : row) {
      const bool negative = w_.flip(), more = w_.flip();
      x = t_.with_exponent(negative, e + (more ? 1 : 0), word());
    }
    for (uint32_t k = 0; k < many; ++k) {
      const bool negative = w_.flip();
      Word& x = row[below(n_)];
      x = t_.with_exponent(negative, e + above, word());
    }
    return row;
  }

  row_patterns group_row() {
    Word value[4];
    const uint32_t kinds = 1 + w_.below(4);
    const bool far = w_.flip();
    value[0] = t_.ordinary(far ? wide_exponents : normal_range, w_);
    for (uint32_t k = 1; k < kinds; ++k) value[k] = far ? t_.ordinary(normal_range, w_) : value[0] + w_.below(4);
    row_patterns row(n_);
    for (Word& x : row) x = t_.finite(value[w_.below(kinds)], false);
    return row;
  }

  // ---- weights

  void make_weights(const std::vector<uint32_t>& first) {
    const bool keep = w_.below(16) == 0;
    for (size k = 0; k < first.size(); ++k) {
      Word weight = t_.drawn(c_, keep, w_), bias = t_.drawn(c_, keep, w_);
      const bool negative = w_.flip();
      if (c_ == cancelling || c_ == exact_gaps || c_ == multiplicities || c_ == single_nonfinite) {
        weight = t_.ordinary(normal_range, w_);
        bias = t_.ordinary(normal_range, w_);
      }
      if (c_ == overflow_border && has_weight_)
        bias = t_.pattern(negative, 1, w_.between(std::max(t_.f.emax - 37, 0), t_.f.emax - t_.p + 1));
      if (c_ == cancelling && !design_ && weight % 4 != 0) bias &= t_.sign();
      const int place = design_ && n_ != 0 ? place_[first[k]] : 0;
      if (place != 0) aim(place > 0 ? design_->above : design_->below, place < 0, weight, bias);
      if (has_weight_) all_[1].set(k, weight);
      if (has_bias_) all_[2].set(k, bias);
    }
  }

  /// weight z + bias is what the class says, z = +-ratio (in rows whose values were exchanged: with the other sign).
  void aim(const odd_ratio& z, bool negative, Word& weight, Word& bias) {
    const bool turned = w_.flip(), other = w_.flip();
    const int e = t_.type == dtype::f16 ? w_.between(-10, 3) : w_.between(-20, 20);
    const int p = t_.p;
    if (c_ == overflow_border) {  // the largest number / z
      uint128 m = (static_cast<uint128>((uint64_t{1} << p) - 1 - w_.below(3)) * z.denominator << p) / z.numerator;
      int exponent = t_.f.emax - 2 * p + 1 - z.twos;
      for (; m >> p != 0; m >>= 1) ++exponent;
      if (z.denominator < 1 << 15 && exponent <= t_.f.emax - p + 1)
        weight = t_.pattern(turned, static_cast<uint64_t>(m), exponent);
      return;
    }
    uint64_t odd = c_ == near_ties ? 1 + 2 * w_.below(4) : odd_of(w_.between(1, std::min(8, p - 5)), w_);
    if (has_weight_ && !has_bias_) {
      // Itself a number of 25 bits, or an odd number of 2^-150.
      const bool long_enough = z.numerator > z.denominator;
      if (c_ == ties || c_ == near_ties) {
        if (long_enough) {
          const uint64_t least = (uint64_t{1} << p) / z.numerator + 1, most = (uint64_t{2} << p) / z.numerator;
          odd = least + number_below(std::max<uint64_t>(most - least, 1));
          odd |= 1;
        }
        if (odd * z.denominator >= uint64_t{1} << p || (!long_enough && z.twos >= 0)) return;
        weight = t_.pattern(turned, odd * z.denominator, long_enough ? e : t_.f.ulp_min() - 1 - z.twos);
      } else if (odd * z.denominator < uint64_t{1} << p) {
        weight = t_.pattern(turned, odd * z.denominator, e);
      }
      return;
    }
    if (!has_weight_) odd = 1;
    if (odd * std::max(z.numerator, z.denominator) >= uint64_t{1} << (p - 2) || (!has_weight_ && z.denominator != 1))
      return;
    // The product is odd z.numerator 2^half.
    const int half = has_weight_ ? e : z.twos;
    if (has_weight_) weight = t_.pattern(turned, odd * z.denominator, half - z.twos);
    const bool product_negative = negative != (has_weight_ && turned);
    if (c_ == cancelling) {
      bias = t_.pattern(!product_negative, odd * z.numerator, half);
    } else if (c_ == narrow_lattice) {
      const uint64_t few = w_.below(1U << std::min(6, p - 3));
      bias = t_.pattern(other, few, half + w_.between(-1, 2));
    } else {
      bias = t_.pattern(other, (uint64_t{3} << (p - 2)) + number_below(uint64_t{1} << (p - 3)), half + 1);
    }
  }

  /// In one operand, or in all.
  void add_special() {
    size where = below(all_.size() + 1);
    if (where < all_.size() && all_[where].absent()) where = 0;
    for (size k = 0; k < all_.size(); ++k) {
      if (where != k && where != all_.size()) continue;
      for (size i = 0; k > 0 && i < index(all_[k].count()); ++i) {
        const Word special = t_.special(w_);
        const uint32_t u = w_.below(8);
        if (u < 5) all_[k].set(i, u == 0 ? 0 : special);
      }
      for (size r = 0; k == 0 && n_ != 0 && r < l_.rows.kept.size(); ++r) {
        const std::int64_t at = l_.rows.kept[r] + l_.rows.reduced[below(n_)];
        const Word special = t_.special(w_);
        if (where == 0 || w_.below(4) == 0) all_[0].set(index(at), special);
      }
    }
  }

  patterns_of<Word> t_;
  sample_class c_;
  word_stream& w_;
  norm_layout l_;
  size n_;
  bool centred_ = true, has_weight_ = false, has_bias_ = false;
  double eps_ = 0;
  std::optional<int> quarter_;
  std::optional<design> design_;
  std::vector<int> place_;
  std::vector<array> all_;
};

}  // namespace
}  // namespace repdl::reference::detail

namespace repdl::reference {

std::vector<array> in_formats(std::vector<array> in, const std::vector<dtype>& formats, std::uint64_t seed) {
  word_stream w(seed, 1);
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k].absent() || formats.at(k) == in[k].type) continue;
    if (in[k].type == f32) {
      array narrow(formats[k], in[k].shape);
      for (std::size_t i = 0; i < static_cast<std::size_t>(narrow.count()); ++i)
        narrow.set(i, convert(f32, narrow.type, in[k].get(i)));
      in[k] = std::move(narrow);
      continue;
    }
    const int more = format_of(f32).precision - format_of(in[k].type).precision;
    array wide = widened(in[k]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(wide.count()); ++i) {
      const std::uint64_t bits = wide.get(i);
      const std::uint32_t below = w.next() >> (32 - more), how = w.below(4);
      const number_kind kind = widen(f32, bits).kind;
      if (kind == number_kind::finite && how > 1) wide.set(i, bits | (how == 2 ? 1 : below));
    }
    in[k] = std::move(wide);
  }
  return in;
}

}  // namespace repdl::reference

namespace repdl::reference::detail {

std::vector<array> norm_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w, dtype type) {
  if (type == dtype::f64) return norm_maker<uint64_t>(op, c, shapes, attrs, w, type).result();
  return norm_maker<std::uint32_t>(op, c, shapes, attrs, w, type).result();
}

}  // namespace repdl::reference::detail
