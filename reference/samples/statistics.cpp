// Inputs of var, stddev and var_mean.
//
// Rows aimed at midpoints have j elements d above the others, so that V / (n f) = d^2 j (n - j) / (n f), f = n - correction, or j
// elements a, as many -a and zeros: 2 j a^2 / f. Of that ratio in lowest terms, p / q, only the odd parts of p and q matter: d is
// q k, and p q k^2 an odd number of 25 bits; of roots p and q are squares, and p k is such a number. Near-ties are these with
// something tiny in the place of a 0. Cancelling: rows of one number, and of x and -x. Others are the rows of norms.
#include <bit>
#include <numeric>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;
using std::uint32_t;
using std::uint64_t;

uint64_t odd_part(uint64_t n) { return n >> std::countr_zero(n); }

struct spread_design {
  std::size_t high, low;
  uint64_t p, q;  ///< odd
  bool about_zero;
};

/// Word: as wide as the format, or 32 bits.
template <class Word>
class statistics_maker {
  using size = std::size_t;
  using patterns = std::vector<Word>;
  static constexpr bool is_wide = sizeof(Word) == 8;

 public:
  statistics_maker(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                   const attributes& attrs, word_stream& w, dtype type)
      : t_(type),
        c_(c),
        w_(w),
        root_(op == "stddev"),
        l_(norm_layout_of(op, shapes.at(0), attrs)),
        n_(l_.rows.reduced.size()) {
    if constexpr (is_wide) {
      all_.emplace_back(type, shapes.at(0));
    } else {
      all_ = norm_inputs(op, c, shapes, attrs, w, type);
    }
    if (n_ == 0) return;
    find_designs(attribute_or(attrs, "correction", 1.0));
    for (const std::int64_t base : l_.rows.kept) {
      patterns row = make_row();
      if (is_wide && row.empty()) row = ordinary_row();
      for (size i = 0; i < row.size(); ++i) all_[0].set(index(base + l_.rows.reduced[i]), row[i]);
    }
  }
  std::vector<array> result() { return std::move(all_); }

 private:
  uint32_t below(size n) { return w_.below(static_cast<uint32_t>(n)); }
  uint64_t below64(uint64_t n) {
    if constexpr (is_wide) return w_.next64() % n;
    return w_.below(static_cast<uint32_t>(n));
  }

  void find_designs(double correction) {
    const double halves = 2 * (static_cast<double>(n_) - correction);
    if (!(halves > 0 && halves < 0x1p20) || halves != static_cast<double>(static_cast<std::int64_t>(halves))) return;
    const auto f = static_cast<uint64_t>(halves);
    const uint64_t n = n_;
    for (uint64_t j = 1; j <= n / 2 && designs_.size() < 16; j = j == 12 && n > 26 ? n / 2 : j + 1) {
      if (j < n) add_design({j, n - j, 2 * j * (n - j), n * f, false});
      add_design({j, j, 4 * j, f, true});
    }
  }
  void add_design(spread_design d) {
    const uint64_t g = std::gcd(d.p, d.q);
    d.p /= g;
    d.q /= g;
    if (root_) {
      const uint64_t p = root_of(d.p), q = root_of(d.q);
      if (p * p != d.p || q * q != d.q) return;
      d.p = p;
      d.q = q;
    }
    d.p = odd_part(d.p);
    d.q = odd_part(d.q);
    if (d.p > 1 << 10 || d.q > 1 << 10) return;
    const bool has_zero = d.about_zero ? d.high + d.low < n_ : !root_;
    if (c_ == near_ties && (!has_zero || (root_ && 2 * d.q > d.p))) return;
    if (d.about_zero && root_ && c_ == ties && d.q > d.p / 2) return;
    designs_.push_back(d);
  }

  patterns make_row() {
    if (c_ == cancelling) return is_wide && w_.flip() ? patterns{} : cancelled_row();
    if (c_ == subnormal || c_ == overflow_border) return row_at_the_end();
    const bool aims = c_ == ties || c_ == near_ties || c_ == narrow_lattice;
    if (!aims || designs_.empty() || below(16) == 0) return {};
    const spread_design& d = designs_[below(designs_.size())];
    const uint64_t least = root_ ? (uint64_t{1} << t_.p) / d.p + 1 : root_of((uint64_t{1} << t_.p) / (d.p * d.q)) + 1;
    const uint64_t most = root_ ? ((uint64_t{2} << t_.p) - 1) / d.p : root_of((uint64_t{2} << t_.p) / (d.p * d.q));
    uint64_t k = (least + (most > least ? below64(most - least) : 0)) | 1;
    if (c_ == narrow_lattice) k = 1 + w_.below(64);
    const uint64_t step = d.q * k;
    const int e = t_.type == dtype::f16 ? w_.between(-10, 0) : w_.between(-40, 20);
    Word high = 0, low = 0;
    const uint64_t base = below64(uint64_t{1} << (t_.p - 4));
    const bool negative = w_.flip();
    if (d.about_zero) {
      high = t_.rounded(negative, step, e);
      low = high ^ t_.sign();
    } else if (step < uint64_t{1} << (t_.p - 1) && c_ != near_ties) {
      high = t_.rounded(negative, base + step, e);
      low = t_.rounded(negative, base, e);
    } else {
      const int cut = std::max(0, static_cast<int>(std::bit_width(step)) - t_.p);
      high = t_.rounded(negative, step >> cut, e + cut);
      low = t_.rounded(!negative, step & ((uint64_t{1} << cut) - 1), e);
    }
    patterns row(n_, d.about_zero ? 0 : low);
    for (size i = 0; i < d.high; ++i) row[i] = high;
    for (size i = d.high; d.about_zero && i < d.high + d.low; ++i) row[i] = low;
    if (c_ == near_ties) {
      const int exponent = is_wide ? w_.between(-1074, -120) : w_.between(-149, -90);
      row[n_ - 1] = t_.tiny(w_.flip(), exponent);
    }
    for (size i = n_; i > 1; --i) std::swap(row[i - 1], row[below(i)]);
    return row;
  }

  patterns cancelled_row() {
    const Word x = t_.ordinary(w_.flip() ? wide_exponents : normal_range, w_);
    patterns row(n_, t_.finite(x, false));
    for (size i = 1; w_.below(4) == 0 && i < n_; i += 2) row[i] ^= t_.sign();
    return row;
  }

  /// What the class is of single numbers; of cancelled ones, next to each other.
  patterns ordinary_row() {
    patterns row(n_);
    for (Word& x : row) x = t_.finite(t_.ordinary(c_, w_), false);
    if (c_ == single_nonfinite && !w_.flip()) row[below(n_)] = t_.special(w_);
    if (c_ == cancelling) {
      const Word far = t_.ordinary(normal_range, w_);
      for (Word& x : row) x = far ^ (w_.next() & 0xffff);
    }
    return row;
  }

  /// Of elements about the least or greatest ones, or the roots of those.
  patterns row_at_the_end() {
    const bool least = c_ == subnormal;
    const int end = least ? (t_.f.emin + t_.f.ulp_min()) / 2 - (t_.p == 24 ? 3 : 1) : t_.f.emax,
              middle = root_ ? end : end / 2 - (least && t_.p == 24 ? 2 : 0);
    patterns row(n_);
    for (Word& x : row) {
      const bool negative = w_.flip();
      const int e = middle + (root_ && !least ? -w_.between(0, 1) : w_.between(-2, 2));
      x = t_.with_exponent(negative, e, is_wide ? w_.next64() : w_.next());
    }
    return row;
  }

  patterns_of<Word> t_;
  sample_class c_;
  word_stream& w_;
  bool root_;
  norm_layout l_;
  size n_;
  std::vector<spread_design> designs_;
  std::vector<array> all_;
};

}  // namespace

std::vector<array> statistics_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                     const attributes& attrs, word_stream& w, dtype type) {
  if (type == dtype::f64) return statistics_maker<uint64_t>(op, c, shapes, attrs, w, type).result();
  return statistics_maker<uint32_t>(op, c, shapes, attrs, w, type).result();
}

}  // namespace repdl::reference::detail
