// Operands of attention. Most classes make averages: keys lie in blocks of two, the last of three where their number is odd, and the
// numbers of v add up, over each block, to as many times a number c as it has keys: a midpoint, 0, or one of few bits. So a result is c
// where the keys of a block have equal scores: because the query is 0, or they are equal, or permutations of each other before a query
// whose numbers are all one; a query that is 0 needs no more than an even number of keys in a row. Near-ties have a key outside
// the blocks whose score is far below, or scores that differ by little within blocks.
#include <cmath>

#include "reference/attributes.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using std::int64_t;
using std::uint32_t;
using std::uint64_t;

class attention_maker {
 public:
  attention_maker(sample_class c, const std::vector<dtype>& formats, const std::vector<shape_list>& shapes,
                  const attributes& attrs, uint64_t seed)
      : c_(c), t_(formats.at(0)), w_(seed, 0) {
    const shape_list &q = shapes.at(0), &k = shapes.at(1), &v = shapes.at(2);
    const std::size_t rank = q.size();
    for (std::size_t i = 0; i + 3 < rank; ++i) blocks_ *= q[i];
    if (rank > 2) heads_ = q[rank - 3], groups_ = k[rank - 3];
    queries_ = q[rank - 2], inner_ = q[rank - 1], keys_ = k[rank - 2], columns_ = v[rank - 1];
    offset_ = attribute_or(attrs, "bottom_right", false) ? keys_ - queries_ : 0;
    left_ = attribute_or<int64_t>(attrs, "left", -1);
    right_ = attribute_or<int64_t>(attrs, "right", -1);
    if (attribute_or(attrs, "causal", false)) right_ = right_ < 0 ? 0 : std::min<int64_t>(right_, 0);
    scale_ = attribute_or(attrs, "scale", inner_ == 0 ? 1 : 1 / std::sqrt(static_cast<double>(inner_)));
    const number s = widen(dtype::f64, std::bit_cast<uint64_t>(scale_));
    flat_ = s.kind == number_kind::zero;
    if (!flat_) scale_exponent_ = s.exponent + static_cast<int>(std::bit_width(s.significand)) - 1;
    const bool far_mask = shapes.size() > 3 && shapes[3] != absent_shape && formats.at(3) != dtype::boolean;
    if (c == near_ties && keys_ >= 3 && left_ < 0 && (far_mask || (inner_ > 0 && !flat_)) && w_.below(4) != 0)
      outlier_ = right_ < 0 && w_.flip() ? keys_ - 1 : 0;
    for (int64_t i = 0; i < blocks_ * groups_; ++i) slices_.push_back(new_slice());
  }

  array q(const shape_list& shape) {
    array a(t_.type, shape);
    for (std::size_t row = 0; row < index(blocks_ * heads_ * queries_); ++row) {
      const auto h = static_cast<int64_t>(row) / queries_;
      const slice& s = slices_[index(h / heads_ * groups_ + h % heads_ * groups_ / heads_)];
      const line x = query(s);
      for (std::size_t d = 0; d < x.size(); ++d) a.set(row * x.size() + d, x[d]);
    }
    return a;
  }

  array k(const shape_list& shape) {
    array a(t_.type, shape);
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const slice& s = slices_[i];
      const int64_t special = s.place == in_k ? visible_key() : -1;
      line base, all;
      for (int64_t j = 0; j < keys_; ++j) {
        if (j == 0 || member_of(j) == 0) base = s.one_key && !base.empty() ? base : key(s);
        line x = j == outlier_ ? key_far_below(s) : is_paired() ? base : key(s);
        const auto shift = static_cast<std::ptrdiff_t>(member_of(j) % std::max<int64_t>(inner_, 1));
        if (c_ == narrow_lattice) std::rotate(x.begin(), x.begin() + shift, x.end());
        if (s.way == beside && inner_ > 0) x[0] = ordinary(s.key_exponent);
        if (j > 0 && w_.below(8) == 0 && !is_paired()) x = {all.end() - inner_, all.end()};
        if (j == special && inner_ > 0) x[w_.below(static_cast<uint32_t>(inner_))] = t_.special(w_);
        all.insert(all.end(), x.begin(), x.end());
      }
      for (std::size_t n = 0; n < all.size(); ++n) a.set(i * all.size() + n, all[n]);
    }
    return a;
  }

  array v(const shape_list& shape) {
    array a(t_.type, shape);
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      for (int64_t e = 0; e < columns_; ++e) {
        const line x = column(slices_[i]);
        for (std::size_t j = 0; j < x.size(); ++j) a.set((i * x.size() + j) * index(columns_) + index(e), x[j]);
      }
    }
    return a;
  }

  array mask(dtype type, const shape_list& shape) {
    array a(type, shape);
    const bool boolean = type == dtype::boolean;
    const int64_t across = shape.empty() ? 1 : shape.back(), down = shape.size() < 2 ? 1 : shape[shape.size() - 2];
    const bool wide = across == keys_, full = wide && down == queries_;
    hidden_ = c_ == single_nonfinite && wide && keys_ > 1 && w_.flip() ? visible_key() : -1;
    for (int64_t row = 0; row * across < a.count(); ++row) {
      const bool empty = w_.below(down == 1 ? 64 : 16) == 0, one = w_.flip(), whole = full && w_.below(4) != 0;
      const bool far = c_ == near_ties && !boolean && wide && w_.flip();
      const int64_t odd = c_ == single_nonfinite && !boolean && w_.flip() ? visible_key() : -1;
      bool absent = false;
      uint64_t value = 0;
      for (int64_t j = 0; j < across; ++j) {
        if (j == 0 || !is_paired() || member_of(j) == 0) {
          absent = w_.below(8) == 0;
          if (j == 0 || !one) value = mask_number();
        }
        const bool cut = whole && is_paired() && !block_in_reach(row % down, j);
        if (empty || cut || (absent && j != outlier_ && across > 1) || j == hidden_) {
          a.set(index(row * across + j), boolean ? 0 : t_.minus_infinity());
        } else if (boolean) {
          a.set(index(row * across + j), w_.below(8) == 0 ? 1 + w_.below(255) : 1);
        } else {
          a.set(index(row * across + j), far && j == outlier_ ? of_double(-gap())
                                         : j == odd           ? not_minus_infinity()
                                                              : value);
        }
      }
    }
    return a;
  }

  array slopes(const shape_list& shape) {
    array a(dtype::f32, shape);
    const detail::numbers_of f(dtype::f32);
    const int length = static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max(queries_, keys_))));
    for (std::size_t i = 0; i < index(a.count()); ++i) {
      const bool negative = w_.below(8) == 0, zero = is_paired() && w_.below(8) != 0;
      const int e = c_ == near_ties ? w_.between(-90, -26) : w_.between(-4, 2) - length;
      const uint32_t x = f.with_exponent(negative, e, w_.next());
      a.set(i, zero && (c_ != near_ties || w_.flip()) ? (negative ? f.sign() : 0) : x);
      if (c_ == single_nonfinite && w_.below(4) == 0) a.set(i, f.special(w_));
    }
    return a;
  }

  /// NaN and infinities in the key that no query sees.
  void spoil(array& x, int64_t length) {
    if (hidden_ < 0) return;
    for (int64_t i = 0; i < blocks_ * groups_; ++i)
      for (int64_t d = 0; d < length; ++d) x.set(index((i * keys_ + hidden_) * length + d), t_.special(w_));
  }

 private:
  using line = std::vector<uint64_t>;
  enum score_way { plain, below, beside };  ///< of near-ties: a key far below, or scores that differ by little
  enum odd_place { nowhere, in_q, in_k, in_v };
  /// What a head of k and v has, and the heads of q that go with it.
  struct slice {
    int query_exponent, key_exponent;
    score_way way = plain;
    odd_place place = nowhere;
    bool one_key = false;   ///< all keys are one
    bool keep = false;      ///< uniform patterns may be NaN
    int any_exponents = 0;  ///< of wide_exponents: independent ones
    double gap = 0;         ///< from other scores down to the outlier's
    int far_exponent = 0;   ///< the query's first number is 2^far_exponent
  };

  bool is_paired() const {
    return c_ == ties || c_ == near_ties || c_ == cancelling || c_ == zeros || c_ == narrow_lattice;
  }

  slice new_slice() {
    // Scores have magnitudes up to about 10, of wide_exponents others.
    int sum = 1 - scale_exponent_ - static_cast<int>(std::bit_width(static_cast<uint64_t>(inner_))) / 2;
    slice s{};
    if (c_ == wide_exponents) {
      const uint32_t u = w_.below(4);
      s.any_exponents = u == 0 ? 1 : 0;
      sum += u == 1 ? w_.between(4, 12) : u == 2 ? w_.between(13, 100) : 0;
    }
    s.query_exponent = sum / 2 + w_.between(-2, 2);
    s.key_exponent = sum - s.query_exponent;
    s.one_key = is_paired() && (w_.below(4) == 0) == (left_ < 0);  // windows cut blocks
    s.keep = w_.below(16) == 0;
    if (c_ == near_ties) s.way = outlier_ >= 0 ? below : beside;
    if (c_ == single_nonfinite) {
      constexpr odd_place places[] = {in_q, in_q, in_k, in_k, in_k, in_v, in_v, in_v};
      s.place = places[w_.below(8)];
    }
    s.gap = gap();
    s.far_exponent = std::clamp((std::ilogb(s.gap) - scale_exponent_) / 2, t_.f.emin, t_.f.emax);
    return s;
  }

  /// Next to a midpoint by 25 to 40 bits, by more than any format of numbers, or by more than one of exponents.
  double gap() {
    const uint32_t kind = w_.below(4), fraction = w_.below(256);
    const double more = fraction / 256.0;
    switch (kind) {
      case 0:
        return 17 + 11 * more;
      case 1:
        return 28 + 100 * more;
      case 2:
        return 100 + 5000 * more;
      default:
        return std::ldexp(1 + more, w_.between(12, std::min(100, t_.f.emax)));
    }
  }

  uint64_t of_double(double x) const {
    const uint64_t bits = convert(dtype::f64, t_.type, std::bit_cast<uint64_t>(x));
    return t_.is_finite(bits) ? bits : (x < 0 ? t_.sign() : 0) | t_.largest();
  }
  /// A word for a number's fraction; and 0 .. n - 1.
  uint64_t fraction() { return t_.p > 32 ? w_.next64() : w_.next(); }
  uint64_t less_than(uint64_t n) { return n >> 32 != 0 ? w_.next64() % n : w_.below(static_cast<uint32_t>(n)); }
  uint64_t of_integer(int64_t n, int e) const { return t_.rounded(n < 0, static_cast<uint64_t>(n < 0 ? -n : n), e); }
  uint64_t zero() { return w_.flip() ? t_.sign() : 0; }
  uint64_t ordinary(int exponent) {
    const bool negative = w_.flip();
    const int e = std::clamp(exponent - w_.between(0, c_ == wide_exponents ? 12 : 2), t_.f.emin, t_.f.emax - 1);
    return t_.with_exponent(negative, e, fraction());
  }
  /// Few bits.
  uint64_t on_lattice(int exponent) {
    const bool negative = w_.flip();
    return t_.rounded(negative, w_.below(8), std::clamp(exponent - 2, t_.f.emin, t_.f.emax - 3));
  }
  uint64_t factor(const slice& s, int exponent) {
    if (c_ == narrow_lattice) return on_lattice(exponent);
    if (c_ == uniform_patterns || s.any_exponents != 0) return t_.drawn(c_, s.keep, w_);
    if (c_ == zeros && w_.below(8) != 0) return zero();
    return ordinary(exponent);
  }

  line query(const slice& s) {
    line x(index(inner_));
    const bool no_scores = is_paired() && w_.flip();
    for (uint64_t& one : x) one = no_scores ? zero() : factor(s, s.query_exponent);
    if (x.empty()) return x;
    if (c_ == narrow_lattice && !no_scores) x.assign(x.size(), x[0]);
    if (s.way == below) x[0] = t_.pattern(false, 1, s.far_exponent);
    if (s.way == beside) {
      const int e = std::clamp(w_.between(-90, -22) - scale_exponent_ - s.key_exponent, t_.f.ulp_min(), t_.f.emax);
      x[0] = t_.pattern(w_.flip(), 1, e);
    }
    if (s.place == in_q && w_.below(4) != 0) x[w_.below(static_cast<uint32_t>(inner_))] = t_.special(w_);
    return x;
  }
  line key(const slice& s) {
    line x(index(inner_));
    for (uint64_t& one : x) one = factor(s, s.key_exponent);
    if (s.way == below && !x.empty()) x[0] = zero();
    return x;
  }
  line key_far_below(const slice& s) {
    line x(index(inner_));
    if (s.way != below || flat_) return key(s);
    if (!x.empty()) x[0] = of_double(-std::ldexp(s.gap / scale_, -s.far_exponent));
    return x;
  }

  /// Blocks of keys: of two, the last of three, or of one where it is alone; the outlier is none's.
  int64_t in_blocks() const { return outlier_ < 0 ? keys_ : keys_ - 1; }
  int64_t rank_of(int64_t j) const { return outlier_ == 0 ? j - 1 : j; }
  int64_t block_of(int64_t j) const { return std::min(rank_of(j) / 2, std::max<int64_t>(in_blocks() / 2 - 1, 0)); }
  /// 0, 1 or 2.
  int64_t member_of(int64_t j) const { return j == outlier_ ? 0 : rank_of(j) - 2 * block_of(j); }
  bool in_reach(int64_t i, int64_t j) const {
    const int64_t d = j - i - offset_;
    return !(left_ >= 0 && d < -left_) && !(right_ >= 0 && d > right_);
  }
  bool block_in_reach(int64_t i, int64_t j) const {
    for (int64_t other = 0; other < keys_; ++other)
      if (other != outlier_ && j != outlier_ && block_of(other) == block_of(j) && !in_reach(i, other)) return false;
    return true;
  }
  /// Causal ones see the first key most.
  int64_t visible_key() {
    if (keys_ == 0 || (right_ >= 0 && left_ < 0 && w_.flip())) return keys_ == 0 ? -1 : 0;
    return w_.below(static_cast<uint32_t>(keys_));
  }

  uint64_t mask_number() {
    if (c_ == zeros && w_.below(4) != 0) return zero();
    if (c_ == narrow_lattice) return on_lattice(2);
    return ordinary(2);
  }
  uint64_t not_minus_infinity() {
    const uint64_t x = t_.special(w_);
    return x == t_.minus_infinity() ? x ^ t_.sign() : x;
  }

  /// The middle between m and m + 1 units 2^exponent: what the blocks of a column add up to.
  struct middle {
    bool negative;
    uint64_t m;
    int exponent;
  };
  uint64_t units_of(const middle& c, int64_t units, int finer = 0) const {
    const bool negative = c.negative != (units < 0);
    return t_.pattern(negative, static_cast<uint64_t>(units < 0 ? -units : units), c.exponent - finer);
  }
  middle new_middle() {
    middle c{};
    c.negative = w_.flip();
    const uint64_t top = uint64_t{1} << (t_.p - 1);
    c.exponent = std::max(w_.between(-8, 6) - t_.p, t_.f.ulp_min() + 1);
    c.m = top + less_than(top / 4);
    if (w_.below(8) == 0) {
      c.exponent = t_.f.ulp_min();
      c.m = less_than(top);
    }
    return c;
  }

  /// Member r of a block of n keys, so that they add up to n times the middle: in binades where a half of a unit is no number, of three
  /// two are 3 m / 2, and the third has the rest.
  uint64_t towards(const middle& c, int64_t n, int64_t r, int64_t spread) {
    const auto m = static_cast<int64_t>(c.m);
    if (n == 3 && c.exponent > t_.f.ulp_min()) {
      const int64_t odd = m % 2;
      return r < 2 ? units_of(c, (3 * m - odd) / 2) : units_of(c, 3 + 2 * odd, 1);
    }
    return units_of(c, r == 0 ? m - spread : m + 1 + spread);
  }

  line column(const slice& s) {
    line x(index(keys_));
    const middle c = new_middle();
    const uint64_t common = on_lattice(2);
    const uint32_t kind = w_.below(4);
    const bool negative = w_.flip();
    const int64_t special = s.place == in_v && w_.below(4) != 0 ? visible_key() : -1;
    int64_t spread = 0;
    uint64_t former = 0;
    for (int64_t j = 0; j < keys_; ++j) {
      const int64_t r = member_of(j), n = block_of(j) * 2 + 3 == in_blocks() ? 3 : std::min<int64_t>(in_blocks(), 2);
      if (r == 0) spread = spread_of(c);
      uint64_t y = 0;
      if (j == outlier_) {
        const int64_t off = w_.between(1, 30);
        const bool near = s.gap < 100;
        y = near ? units_of(c, static_cast<int64_t>(c.m) + (w_.flip() || c.m < 30 ? off : -off)) : ordinary(3);
      } else if (c_ == ties || c_ == near_ties) {
        y = towards(c, n, r, spread);
      } else if (c_ == cancelling || c_ == zeros) {
        // Pairs cancel, but some of cancelling by some last bits; some columns are zeros alone.
        if (r == 0) former = c_ == zeros && kind != 0 ? zero() : ordinary(3);
        y = r == 0 ? former : r == 1 ? former ^ t_.sign() : zero();
        if (c_ == cancelling && kind == 0 && r == 1) y += w_.below(4);
        if (c_ == cancelling && n == 1) y = ordinary(3);
      } else if (c_ == narrow_lattice && kind == 1) {
        y = on_lattice(2);
      } else if (c_ == narrow_lattice) {
        const number a = widen(t_.type, common);
        const int64_t d = (r == 2 ? 0 : r == 0 ? spread % 4 : -(spread % 4)) * (kind == 0 ? 0 : 1);
        const int64_t units =
            a.kind == number_kind::zero ? 0 : static_cast<int64_t>(a.significand >> std::countr_zero(a.significand));
        const int e = a.kind == number_kind::zero ? 0 : a.exponent + std::countr_zero(a.significand);
        y = of_integer((a.negative ? -units : units) + d, e);
      } else if (c_ == overflow_border) {
        const bool opposite = kind == 0 && w_.flip();
        y = (negative != opposite ? t_.sign() : 0) | (t_.largest() - w_.below(kind == 1 ? 8 : 2));
      } else if (c_ == subnormal && kind == 0) {  // of both signs, and normal ones beside them
        y = w_.flip() ? t_.drawn(c_, false, w_) : ordinary(t_.f.emin + 2);
      } else {
        y = c_ == single_nonfinite || c_ == normal_range ? ordinary(3) : t_.drawn(c_, s.keep, w_);
      }
      x[index(j)] = j == special ? t_.special(w_) : y;
    }
    return x;
  }
  /// How far the two of a pair lie from the middle, in units.
  int64_t spread_of(const middle& c) {
    if (w_.flip()) return 0;
    if (c_ != ties) return w_.below(4);
    return static_cast<int64_t>(less_than((uint64_t{1} << t_.p) - c.m));
  }

  sample_class c_;
  detail::patterns_of<uint64_t> t_;
  word_stream w_;
  int64_t blocks_ = 1, heads_ = 1, groups_ = 1, queries_ = 0, keys_ = 0, inner_ = 0, columns_ = 0;
  int64_t offset_ = 0, left_ = -1, right_ = -1;
  double scale_ = 1;
  bool flat_ = false;
  int scale_exponent_ = 0;
  int64_t outlier_ = -1, hidden_ = -1;  ///< the key far below others; the one that is absent everywhere
  std::vector<slice> slices_;
};

}  // namespace

std::vector<array> fill_attention(sample_class c, const std::vector<dtype>& formats,
                                  const std::vector<shape_list>& shapes, const attributes& attrs, std::uint64_t seed) {
  attention_maker maker(c, formats, shapes, attrs, seed);
  std::vector<array> all;
  all.push_back(maker.q(shapes.at(0)));
  all.push_back(maker.k(shapes.at(1)));
  all.push_back(maker.v(shapes.at(2)));
  for (std::size_t i = 3; i < shapes.size(); ++i) {
    if (shapes[i] == absent_shape) {
      all.push_back(array::none());
    } else {
      all.push_back(i == 3 ? maker.mask(formats.at(3), shapes[3]) : maker.slopes(shapes[4]));
    }
  }
  maker.spoil(all[1], shapes[1].back());
  maker.spoil(all[2], shapes[2].back());
  return all;
}

}  // namespace repdl::reference
