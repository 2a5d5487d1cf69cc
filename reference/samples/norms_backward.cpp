// Inputs of the gradients of norms.
//
// To x, with t = g w, d = x - mean and r = rstd: n grad_x = r (n t - A - d r^2 S), A = sum of t, S = sum of t d. The rows aimed at
// midpoints and at exact results have t, d and r of few integers in units of their own: r = 1/2, S odd times 2 n and A a multiple
// of n, so that d r^2 S / n is an odd number of halves of an ulp where d is odd; or A odd times n / 2 and S a multiple of 4 n. Two
// elements are moved until that is so. Near-ties are these with something tiny: a mean, an element, a t. Weights are powers of
// two there, and g = t / w.
//
// To the weight: terms g h with h = +-2^s, so that the terms are those of fill_terms; or elements in pairs that cancel, of any
// numbers.
//
// Other classes, both: the mean and rstd of x to an ulp or so, or any numbers. cancelling: t a multiple of h and of 1 (0 where the
// statistics are exact, else tiny); exact_gaps: outliers; multiplicities: groups of equal elements, constant rows;
// overflow_border: results next to the largest number.
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "librepdl/ops/formats.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;
using std::uint64_t;

__extension__ using int128 = __int128;

int length_of(uint64_t v) { return 64 - std::countl_zero(v); }

/// x 2^k, where that is a number.
template <class Word>
std::optional<Word> scaled(const patterns_of<Word>& t, Word x, int k) {
  const number n = widen(t.type, x);
  if (n.kind == number_kind::zero) return x;
  if (n.kind != number_kind::finite) return std::nullopt;
  const int zeros = std::countr_zero(n.significand), e = n.exponent + zeros + k;
  const uint64_t m = n.significand >> zeros;
  if (e < t.f.ulp_min() || e + length_of(m) > t.f.emax + 1) return std::nullopt;
  return t.pattern(n.negative, m, e);
}

/// v 2^e with v's leading bits, 0 or the largest number where that is nearest; of the format of statistics.
template <class Word>
Word leading(const patterns_of<Word>& t, bool negative, int128 v, int e) {
  for (; v >> t.p != 0; v >>= 1) ++e;
  for (; e < t.f.ulp_min() && v != 0; v >>= 1) ++e;
  if (e + length_of(static_cast<uint64_t>(v)) > t.f.emax + 1)
    return static_cast<Word>(t.largest() | (negative ? t.sign() : 0));
  return t.pattern(negative, static_cast<uint64_t>(v), v == 0 ? 0 : e);
}

template <class Word>
struct row_statistics {
  Word mean, rstd;
};
/// Those of finite numbers, to an ulp of binary32 or so; of a constant row rstd is 1 / sqrt(1e-5).
template <class Word>
row_statistics<Word> statistics_of(const patterns_of<Word>& t, const patterns_of<Word>& statistic,
                                   const std::vector<Word>& x, bool centred) {
  int top = std::min(-200, t.f.ulp_min());
  for (const Word v : x) {
    const number a = widen(t.type, v);
    if (a.kind == number_kind::finite) top = std::max(top, a.exponent + length_of(a.significand));
  }
  const int unit = top - 40;
  int128 sum = 0, squares = 0;
  for (const Word v : x) {
    const number a = widen(t.type, v);
    if (a.kind != number_kind::finite) continue;
    const int shift = a.exponent - unit;
    const int128 m = shift >= 0    ? int128{static_cast<std::int64_t>(a.significand)} << shift
                     : shift > -64 ? static_cast<std::int64_t>(a.significand >> -shift)
                                   : 0;
    sum += a.negative ? -m : m;
    squares += m * m;
  }
  const auto n = static_cast<std::int64_t>(x.size());
  const int128 magnitude = sum < 0 ? -sum : sum;
  const Word mean = leading(statistic, sum < 0, (magnitude << 20) / n, unit - 20);
  int128 v = (centred ? n * squares - sum * sum : n * squares) / n;  // n times the variance
  int e = 2 * unit;
  if (v <= 0) return {mean, statistic.pattern(false, 0x9e1ad1, -15)};
  for (; v >> 61 != 0; v >>= 2) e += 2;
  for (; v >> 59 == 0; v <<= 2) e -= 2;
  const int more = length_of(static_cast<uint64_t>(n)) / 2 * 2;  // v / n in units of 2^(e - more)
  uint64_t s = static_cast<uint64_t>(v) / static_cast<uint64_t>(n) << more;
  if (s >> 62 != 0) s >>= 2, e += 2;
  const uint64_t root = std::max<uint64_t>(root_of(s), 1);
  return {mean, leading(statistic, false, (uint64_t{1} << 62) / root, -62 - (e - more) / 2)};
}

/// Of formats of 32 bits or fewer, or of binary64.
template <class Word>
class gradient_maker {
 public:
  gradient_maker(const std::string& op, sample_class c, const std::vector<shape_list>& shapes, const attributes& attrs,
                 word_stream& w, dtype type)
      : t_(type),
        statistic_(ops::state_format(type)),
        c_(c),
        w_(w),
        centred_(!op.starts_with("rms")),
        to_weight_(op.ends_with("weight_backward")),
        l_(norm_layout_of(op, shapes.at(1), attrs)),
        n_(l_.rows.reduced.size()) {
    rstd_ = centred_ ? 3 : 2;
    for (size k = 0; k < shapes.size(); ++k) {
      const bool is_statistic = k >= 2 && k <= rstd_;
      all_.push_back(shapes[k] == absent_shape ? array::none()
                                               : array(is_statistic ? statistic_.type : type, shapes[k]));
    }
    has_weight_ = all_.size() > rstd_ + 1 && !all_.back().absent();
    make_weights();
    if (to_weight_ && aims()) {
      if (c_ == cancelling && w_.flip()) {
        make_pairs();
      } else {
        make_terms();
      }
    } else {
      for (size r = 0; r < l_.rows.kept.size(); ++r) put(r, make_row());
    }
    if (c == single_nonfinite) add_special();
  }
  std::vector<array> result() { return std::move(all_); }

 private:
  using uint32_t = std::uint32_t;
  using int64 = std::int64_t;
  using size = std::size_t;

  struct row {
    std::vector<Word> g, x;  ///< in aimed classes t for g
    Word mean = 0, rstd = 0;
  };

  bool aims() const { return c_ == ties || c_ == near_ties || c_ == cancelling || c_ == overflow_border; }
  bool divides() const { return !to_weight_ && (aims() || c_ == narrow_lattice); }
  uint32_t below(size n) { return w_.below(static_cast<uint32_t>(n)); }
  size place(size r, size i) const { return index(l_.rows.kept[r] + l_.rows.reduced[i]); }

  void make_weights() {
    if (!has_weight_) return;
    const bool keep = w_.below(16) == 0;
    power_.assign(index(all_.back().count()), 0);
    for (size k = 0; k < power_.size(); ++k) {
      const bool own = c_ == uniform_patterns || c_ == wide_exponents || c_ == zeros || c_ == all_patterns;
      Word weight = t_.drawn(own ? c_ : normal_range, keep, w_);
      if (divides()) {
        power_[k] = between(-10, 10, -4, 4);
        weight = t_.pattern(w_.flip(), 1, power_[k]);
      }
      all_.back().set(k, weight);
    }
  }

  void put(size r, const row& a) {
    if (centred_) all_[2].set(r, a.mean);
    all_[rstd_].set(r, a.rstd);
    for (size i = 0; i < n_; ++i) {
      const size p = place(r, i);
      Word g = a.g[i];
      if (divides() && has_weight_) {
        const size k = l_.weight_of(i, static_cast<int64>(p));
        g = scaled(t_, g, -power_[k]).value_or(g) ^ (static_cast<Word>(all_.back().get(k)) & t_.sign());
      }
      all_[0].set(p, g);
      all_[1].set(p, a.x[i]);
    }
  }

  // ---- rows

  row make_row() {
    row a;
    a.rstd = statistic_.pattern(false, 1, 0);
    if (n_ == 0) return a;
    if (divides() && c_ != cancelling && c_ != overflow_border) {
      a = n_ == 1 ? single() : lattice_row();
    } else if (divides() && c_ == cancelling) {
      a = zero_row();
    } else if (divides()) {
      a = border_row();
    } else {
      return drawn_row();
    }
    if (w_.flip()) a.rstd ^= statistic_.sign();
    return a;
  }

  /// Integers times 2^unit_x, their mean that times offset; t times 2^unit_t.
  row of_integers(const std::vector<int64>& t, const std::vector<int64>& d, int unit_t, int unit_x, int64 offset) {
    row a;
    for (size i = 0; i < n_; ++i) {
      a.g.push_back(number_of(t[i], unit_t));
      a.x.push_back(number_of(offset + d[i], unit_x));
    }
    a.mean = statistic_of(offset, unit_x);
    return a;
  }
  static Word rounded(const patterns_of<Word>& t, int64 m, int e) {
    return t.rounded(m < 0, static_cast<uint64_t>(m < 0 ? -m : m), e);
  }
  Word number_of(int64 m, int e) const { return rounded(t_, m, e); }
  Word statistic_of(int64 m, int e) const { return rounded(statistic_, m, e); }
  /// Draws of as many bits as a pattern has.
  uint64_t number_below(uint64_t n) { return sizeof(Word) == 8 ? w_.next64() % n : below(n); }
  int64 integer_between(int64 low, int64 high) {
    if (sizeof(Word) == 4) return w_.between(static_cast<int>(low), static_cast<int>(high));
    return low + static_cast<int64>(w_.next64() % static_cast<uint64_t>(high - low + 1));
  }
  /// Exponents of units, within what binary16 has.
  int between(int least, int most, int least_of_f16, int most_of_f16) {
    const bool half = t_.type == dtype::f16;
    return w_.between(half ? least_of_f16 : least, half ? most_of_f16 : most);
  }
  int unit_of_x() { return between(-30, 30, -10, 8); }
  int unit_of_t() { return between(-20, 20, -14, 4); }
  int64 far() const { return int64{1} << (t_.p - 4); }
  int64 any_offset() { return centred_ && w_.flip() ? integer_between(-far(), far()) : 0; }

  /// Of one element: -r^3 d^2 t, rms_norm r t (1 - r^2 d^2); r d = +-3 or next to nothing.
  row single() {
    const int unit = unit_of_x(), unit_t = unit_of_t();
    const uint64_t f = centred_ ? 27 : 3;
    const uint64_t least = (uint64_t{1} << t_.p) / f + 1;
    auto t = static_cast<int64>((least + number_below(least - 2)) | 1);
    if (c_ == narrow_lattice) t = w_.between(-few_, few_);
    const bool near = c_ == near_ties, t_negative = w_.flip(), d_negative = w_.flip(), tiny_negative = w_.flip();
    const int e = w_.between(30, 60);
    row a = of_integers({t_negative ? -t : t}, {d_negative ? -1 : 1}, unit_t, unit, near ? 0 : any_offset());
    a.rstd = statistic_.pattern(false, 3, -unit);
    if (near && centred_) a.mean = statistic_.pattern(tiny_negative, 1, unit - e);
    if (near && !centred_) a.x[0] = t_.tiny(tiny_negative, unit - e);
    return a;
  }

  /// v with the remainder `to` modulo m: moves it by at most m / 2.
  static int64 move(int64 v, int64 to, int64 m) {
    int64 r = (to - v) % m;
    if (r < 0) r += m;
    return r > m / 2 ? r - m : r;
  }
  row lattice_row() {
    const int unit = unit_of_x(), unit_t = unit_of_t(), tiny = w_.between(50, 90);
    const bool few = c_ == narrow_lattice, near = c_ == near_ties, negative = w_.flip();
    const auto n = static_cast<int64>(n_);
    const size a = below(n_), b = (a + 1 + below(n_ - 1)) % n_, other = below(n_);
    const bool of_sum = centred_ && n % 2 == 0 && !few && w_.flip(),
               by_term = near && other != a && other != b && w_.flip();
    std::vector<int64> t(n_), d(n_);
    for (size i = 0; i < n_; ++i) {
      const int64 m = few ? w_.between(0, few_)
                          : (int64{5} << (t_.p - 3)) + static_cast<int64>(number_below(uint64_t{1} << (t_.p - 2)));
      t[i] = i % 2 == 0 ? m : -m;
      d[i] = w_.below(8) == 0 ? w_.between(-3, 3) : w_.between(-1, 1);
    }
    d[a] = w_.flip() ? 1 : -1;
    d[b] = 0;
    if (by_term) {
      t[other] = 0;
      d[other] = 1;
    }
    int64 s = 0;
    for (size i = 0; i < n_; ++i) s += t[i] * d[i];
    t[a] += d[a] * move(s, few || of_sum ? 0 : 2 * n, 4 * n);
    const int64 sum = std::accumulate(t.begin(), t.end(), int64{0});
    if (centred_) t[b] += move(sum, of_sum ? n / 2 : 0, n);
    row r = of_integers(t, d, unit_t, unit, near && !by_term ? 0 : any_offset());
    r.rstd = statistic_.pattern(false, 1, -unit - (of_sum && w_.flip() ? 0 : 1));
    if (by_term) r.g[other] = t_.tiny(negative, unit_t - tiny);
    if (near && !by_term && centred_) r.mean = statistic_.pattern(negative, 1, unit - tiny);
    if (near && !by_term && !centred_) r.x[b] = t_.tiny(negative, unit - tiny);
    return r;
  }

  /// t a multiple of 1 and of h.
  row zero_row() {
    const int unit = unit_of_x(), unit_t = unit_of_t();
    const uint32_t kind = w_.below(4);
    if (kind == 3 && w_.flip()) {  // with rounded statistics
      row a = drawn_row();
      const int e = w_.between(-4, 4);
      const bool constant = centred_ && w_.below(4) == 0;
      for (size i = 0; i < n_; ++i) a.g[i] = constant ? number_of(3, e) : scaled(t_, a.x[i], e).value_or(0);
      return a;
    }
    const bool whole = !centred_ || n_ % 2 == 0;
    const size quarter = n_ % (centred_ ? 8 : 4) == 0 && w_.flip() ? 4 : 1;
    const bool parallel = !centred_ || (whole && kind != 0);
    const int64 alpha = centred_ ? integer_between(-far(), far()) : 0;
    const int64 beta = parallel ? integer_between(1, far()) : 0;
    std::vector<int64> t(n_), d(n_);
    if (parallel) {  // the sum of d^2 is n / r^2
      for (size i = 0; i < n_ / quarter; ++i) d[i] = i % 2 == 0 ? 1 : -1;
    } else {
      for (size i = 0; i < n_ / 2; ++i) d[2 * i] = -(d[2 * i + 1] = integer_between(0, far()));
    }
    for (size i = n_; i > 1; --i) std::swap(d[i - 1], d[below(i)]);
    for (size i = 0; i < n_; ++i) t[i] = alpha + beta * d[i];
    row a = of_integers(t, d, unit_t, unit, any_offset());
    a.rstd = parallel ? statistic_.pattern(false, quarter == 4 ? 2 : 1, -unit) : statistic_.ordinary(normal_range, w_);
    if (w_.below(6) == 0) {
      std::vector<Word>& v = w_.flip() ? a.g : a.x;
      v[below(n_)] += 1;
    }
    return a;
  }

  /// v = t or next to it, r t next to the largest number.
  row border_row() {
    const int unit_t = between(-20, 60, -14, 4), unit = unit_t - (t_.f.emax - t_.p + 1);
    std::vector<int64> t(n_), d(n_);
    for (size i = 0; i < n_; ++i) {  // neighbours have the same d, and opposite t
      const int64 m = (int64{1} << t_.p) - 1 - static_cast<int64>(w_.below(3));
      const bool alone = i + 1 == n_ && n_ % 2 != 0;
      t[i] = i % 2 != 0 ? (t[i - 1] > 0 ? -m : m) : w_.flip() ? m : -m;
      d[i] = i % 2 != 0 ? d[i - 1] : w_.between(-1, 1);
      if (alone) d[i] = centred_ && n_ == 1 ? 1 : 0;
      if (alone && centred_ && n_ > 1) t[i] = 0;
    }
    row a = of_integers(t, d, unit_t, unit, centred_ ? w_.between(-8, 8) : 0);
    a.rstd = statistic_.pattern(false, 1, -unit);
    return a;
  }

  /// Whatever the class has, with the statistics of x or with others.
  row drawn_row() {
    const bool keep = w_.below(16) == 0, narrow = w_.flip(), constant = w_.below(8) == 0;
    const int shift = between(-40, 40, -8, 8), shift_g = between(-40, 40, -8, 8);
    const bool plain =
        c_ == single_nonfinite || c_ == cancelling || c_ == multiplicities || c_ == exact_gaps || c_ == subnormal;
    const sample_class own = plain ? normal_range : c_;
    row a;
    for (size i = 0; i < n_; ++i) {
      Word x = t_.drawn(own, keep, w_), g = t_.drawn(c_ == subnormal ? c_ : own, keep, w_);
      const bool negative = w_.flip();
      if (c_ == normal_range && narrow) {
        x = t_.with_exponent(negative, shift, x);
        g = t_.with_exponent(!negative != w_.flip(), shift_g, g);
      }
      if (c_ == exact_gaps && below(n_) < 2) x = scaled(t_, x, between(1, 100, 1, 8)).value_or(x);
      if (c_ == exact_gaps && below(n_) < 2) g = scaled(t_, g, between(1, 100, 1, 8)).value_or(g);
      if (c_ == overflow_border) x = t_.ordinary(normal_range, w_);
      a.x.push_back(x);
      a.g.push_back(g);
    }
    if (c_ == multiplicities) {
      const uint32_t kinds = 1 + w_.below(4);
      for (size i = kinds; i < n_; ++i) {
        a.x[i] = a.x[below(kinds)];
        a.g[i] = narrow ? a.g[below(kinds)] : a.g[i];
      }
    }
    if (c_ == zeros && constant) std::fill(a.x.begin(), a.x.end(), a.x[0]);
    const bool real = c_ == cancelling || (c_ != narrow_lattice && c_ != wide_exponents && w_.below(4) != 0);
    if (real) {
      const row_statistics<Word> s = statistics_of(t_, statistic_, a.x, centred_);
      a.mean = s.mean;
      a.rstd = s.rstd;
      if (c_ == zeros && w_.below(4) == 0) a.rstd = w_.flip() ? 0 : statistic_.sign();
    } else {
      a.mean = statistic_.drawn(own, keep, w_);
      a.rstd = statistic_.drawn(own, keep, w_);
      if (c_ == zeros && w_.flip()) a.rstd = statistic_.ordinary(normal_range, w_);
    }
    return a;
  }

  // ---- sums over rows

  /// h = +-2^s, and the terms of a class.
  void make_terms() {
    std::vector<std::vector<size>> places(index(count_of(l_.weight)));
    std::vector<size> row_at(index(all_[1].count()));
    std::vector<int> unit(l_.rows.kept.size());
    std::vector<int64> offset(unit.size());
    for (size r = 0; r < unit.size(); ++r) {
      unit[r] = unit_of_x();
      offset[r] = any_offset();
      if (centred_) all_[2].set(r, statistic_of(offset[r], unit[r]));
      all_[rstd_].set(r, statistic_.pattern(w_.flip(), 1, -unit[r]));
      for (size i = 0; i < n_; ++i) {
        const size p = place(r, i);
        row_at[p] = r;
        places[l_.weight_of(i, static_cast<int64>(p))].push_back(p);
      }
    }
    for (const std::vector<size>& those : places) {
      const auto k = static_cast<int64>(those.size());
      if (k == 0) continue;
      const uint64_t seed = w_.next64();
      const array terms = fill_terms(c_, 1, k, false, seed, w_.next64(), t_.type);
      for (size i = 0; i < those.size(); ++i) {
        const size r = row_at[those[i]];
        const int s = w_.between(0, 2);
        const auto term = static_cast<Word>(terms.get(i));
        const std::optional<Word> g = scaled(t_, term, -s);
        const bool negative = w_.flip(), r_negative = (all_[rstd_].get(r) & statistic_.sign()) != 0;
        const int64 d = int64{1} << (g ? s : 0);
        all_[1].set(those[i], number_of(offset[r] + (negative ? -d : d), unit[r]));
        all_[0].set(those[i], g.value_or(term) ^ (negative != r_negative ? t_.sign() : 0));
      }
    }
  }

  /// Terms of any numbers and their negatives: rows that repeat the one before, or elements within a row.
  void make_pairs() {
    for (size r = 0; r < l_.rows.kept.size(); ++r) put(r, drawn_row());
    std::vector<size> last(index(count_of(l_.weight)));  // what waits for its negative
    std::vector<bool> waits(last.size(), false);
    for (size r = 0; r < l_.rows.kept.size(); ++r) {
      const bool repeats = l_.channels == 0 && r % 2 != 0;
      for (size k = 2; repeats && k <= rstd_; ++k) all_[k].set(r, all_[k].get(r - 1));
      for (size i = 0; i < n_; ++i) {
        const size p = place(r, i), k = l_.weight_of(i, static_cast<int64>(p));
        if (l_.channels != 0 && i == 0) std::fill(waits.begin(), waits.end(), false);
        if (waits[k]) {
          all_[0].set(p, all_[0].get(last[k]) ^ t_.sign());
          all_[1].set(p, all_[1].get(last[k]));
        }
        waits[k] = !waits[k];
        last[k] = p;
      }
    }
    if (w_.below(4) == 0 && all_[0].count() > 0) {
      const size p = below(index(all_[0].count()));
      all_[0].set(p, all_[0].get(p) + 1);
    }
  }

  /// In one operand, or in all.
  void add_special() {
    size where = below(all_.size() + 1);
    if (where < all_.size() && all_[where].absent()) where = 0;
    for (size k = 0; k < all_.size(); ++k) {
      if (all_[k].absent() || (where != k && where != all_.size())) continue;
      if (k < 2 && n_ != 0) {  // an element of a row
        for (size r = 0; r < l_.rows.kept.size(); ++r) {
          const size p = place(r, below(n_));
          const Word special = t_.special(w_);
          if (where == k || w_.below(4) == 0) all_[k].set(p, special);
        }
      }
      for (size i = 0; k >= 2 && i < index(all_[k].count()); ++i) {
        const patterns_of<Word> t(all_[k].type);
        const Word special = t.special(w_);
        const uint32_t u = w_.below(8);
        if (u < (where == k ? 5U : 2U)) all_[k].set(i, u == 0 ? (special & t.sign()) : special);
      }
    }
  }

  patterns_of<Word> t_, statistic_;
  const int few_ = 1 << std::min(6, t_.p - 3);
  sample_class c_;
  word_stream& w_;
  bool centred_, to_weight_, has_weight_ = false;
  norm_layout l_;
  size n_, rstd_;
  std::vector<int> power_;  ///< of weights that are powers of two
  std::vector<array> all_;
};

}  // namespace

std::vector<array> norm_gradient_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                        const attributes& attrs, word_stream& w, dtype type) {
  if (type == dtype::f64) return gradient_maker<uint64_t>(op, c, shapes, attrs, w, type).result();
  return gradient_maker<std::uint32_t>(op, c, shapes, attrs, w, type).result();
}

}  // namespace repdl::reference::detail
