// Terms of sum_squares and vector_norm: rows whose sum of |x| or x^2, or the root of that, is of the class.
//
// Ties: T of one bit more than the format has, odd, is a sum of few squares: the greatest square in it, then in what is left, and so
// on. The root is T where the first square is (T - 1)^2 and the others add up to 2 T - 1; the sum of |x| where they are T - 1 and 1.
// Near-ties: something tiny besides.
#include <algorithm>
#include <bit>

#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using std::uint64_t;

class magnitude_row {
 public:
  magnitude_row(sample_class c, std::size_t k, magnitude_sum kind, dtype t, word_stream& w)
      : c_(c), k_(k), kind_(kind), t_(t), f_(format_of(t)), w_(w) {}

  std::vector<uint64_t> make() {
    if (k_ == 0) return {};
    if (c_ == ties || c_ == near_ties) {
      aim();
    } else if (c_ == subnormal || c_ == overflow_border) {
      place_at_the_end();
    } else {
      const bool keep = w_.below(16) == 0;
      for (std::size_t i = 0; i < k_; ++i) {
        uint64_t x = c_ == cancelling ? 0 : sample(c_ == single_nonfinite ? normal_range : c_, t_, w_);
        if (!keep && (x & f_.infinity()) == f_.infinity()) x &= ~(uint64_t{1} << (f_.precision - 1));
        row_.push_back(x);
      }
      if (c_ == single_nonfinite) row_[w_.below(static_cast<std::uint32_t>(k_))] = detail::special(t_, w_);
    }
    row_.resize(k_, 0);
    for (std::size_t i = k_; i > 1; --i) std::swap(row_[i - 1], row_[w_.below(static_cast<std::uint32_t>(i))]);
    for (uint64_t& x : row_) x ^= w_.flip() ? f_.sign_bit() : 0;
    return std::move(row_);
  }

 private:
  void put(uint64_t m, int e) {
    if (row_.size() < k_) row_.push_back(exact_pattern(t_, false, m, e));
  }
  void aim() {
    const bool half = t_ == dtype::f16;
    const int e = half ? (c_ == near_ties ? 2 : w_.between(-5, 2)) : w_.between(-30, 30);
    const uint64_t target = detail::odd_of(f_.precision + 1, w_);
    const int below = t_ == dtype::f64 ? w_.between(40, 90) : 40;
    if (c_ == near_ties) put(1, half ? f_.ulp_min() : e - below);
    if (kind_ == magnitude_sum::plain) {
      put(target - 1, e);
      put(1, e);
      return;
    }
    uint64_t rest = target;
    if (kind_ == magnitude_sum::root) {
      put(target - 1, e);
      rest = 2 * target - 1;
    }
    for (uint64_t a = 0; rest != 0; rest -= a * a) {
      a = detail::root_of(rest);
      put(a, e);
    }
  }
  /// Elements about the ends of the format, or of squares their roots.
  void place_at_the_end() {
    const bool squares = kind_ == magnitude_sum::squares;
    const int end = c_ == subnormal ? f_.emin - 2 : f_.emax;
    const int spread = c_ == subnormal
                           ? 0
                           : (static_cast<int>(std::bit_width(k_)) - (kind_ == magnitude_sum::plain ? 1 : 0)) /
                                 (kind_ == magnitude_sum::plain ? 1 : 2);
    for (std::size_t i = 0; i < k_; ++i) {
      const int e = (squares ? (end - spread) / 2 : end - spread) + w_.between(-1, 0) + (c_ == subnormal ? 0 : 1);
      row_.push_back(compose(t_, false, std::min(e, f_.emax), w_.next64()));
    }
  }

  sample_class c_;
  std::size_t k_;
  magnitude_sum kind_;
  dtype t_;
  const format& f_;
  word_stream& w_;
  std::vector<uint64_t> row_;
};

}  // namespace

array fill_magnitudes(sample_class c, std::int64_t rows, std::int64_t k, magnitude_sum kind, std::uint64_t seed,
                      std::uint64_t stream, dtype type) {
  array a(type, {rows, k});
  word_stream w(seed, stream);
  std::size_t at = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (const uint64_t x : magnitude_row(c, index(k), kind, type, w).make()) a.set(at++, x);
  return a;
}

}  // namespace repdl::reference
