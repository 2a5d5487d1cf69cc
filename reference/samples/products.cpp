// Factors of prod and cumprod: rows whose product is of the class.
//
// Two factors carry the result; the others are powers of two, in pairs that cancel, so that every prefix behind those two is of the class:
//   ties             odd numbers whose product has p + 1 bits; or one, and a result half of the least number's multiple
//   near_ties        a and b of p bits, b = t / a modulo 2^p with t next to 2^(p - 1): a b has p bits and then t
//   overflow_border  factors of 2^(p + 1) - 1, or next to them
//   cancelling       magnitudes that leave the range and come back
#include <algorithm>

#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using std::uint64_t;
using numbers64 = detail::patterns_of<uint64_t>;

class row_of_factors {
 public:
  row_of_factors(sample_class c, std::size_t k, dtype t, word_stream& w)
      : c_(c),
        k_(k),
        t_(t),
        w_(w),
        most_(t == dtype::f16   ? 6
              : t == dtype::f64 ? 500
                                : 60) {}

  std::vector<uint64_t> make() {
    if (k_ == 0) return {};
    switch (c_) {
      case ties:
      case near_ties:
      case overflow_border:
        aim();
        break;
      case cancelling:
        wander();
        break;
      case subnormal:
        sink();
        break;
      default: {
        const bool keep = w_.below(16) == 0, zeros_too = c_ == zeros || (c_ == single_nonfinite && w_.below(4) == 0);
        for (std::size_t i = 0; i < k_; ++i) {
          const sample_class kind = c_ == single_nonfinite || c_ == zeros ? normal_range : c_;
          uint64_t x = t_.finite(t_.ordinary(kind, w_), keep);
          if (zeros_too && w_.below(8) == 0) x &= t_.sign();
          row_.push_back(x);
        }
        if (c_ == single_nonfinite) row_[place()] = t_.special(w_);
      }
    }
    return std::move(row_);
  }

 private:
  std::size_t place() { return w_.below(static_cast<std::uint32_t>(k_)); }
  void put(uint64_t m, int e) {
    const bool negative = w_.flip();
    if (row_.size() < k_) row_.push_back(t_.pattern(negative, m, e));
  }
  // Powers of two whose product is 1, shuffled among themselves, and the factors so far among the first of them.
  void fill() {
    const std::size_t carriers = row_.size();
    while (row_.size() + 1 < k_) {
      const int e = w_.between(0, most_);
      put(1, e);
      put(1, -e);
    }
    put(1, 0);
    for (std::size_t i = carriers; i + 1 < k_; ++i) {
      const std::size_t left = k_ - i;
      std::swap(row_[i], row_[i + w_.below(static_cast<std::uint32_t>(left))]);
    }
    for (std::size_t i = 0; i < carriers; ++i) {
      const std::size_t reach = std::min<std::size_t>(k_, 8);
      std::swap(row_[i], row_[w_.below(static_cast<std::uint32_t>(reach))]);
    }
  }
  void aim() {
    const int p = t_.p, e = t_.type == dtype::f16 ? w_.between(-6, 0) : w_.between(-20, 20);
    if (k_ == 1) return put(detail::odd_of(p, w_), e);
    if (c_ == overflow_border) {
      // (2^27 - 1)(2^27 + 1), 31 * 1082401, 63 * 65, 7 * 73.
      uint64_t a = 31, b = 1082401;
      if (t_.type == dtype::f64) a = (1U << 27) - 1, b = (1U << 27) + 1;
      if (t_.type == dtype::f16) a = 63, b = 65;
      if (t_.type == dtype::bf16) a = 7, b = 73;
      const int half = (t_.f.emax - p) / 2;
      const std::uint32_t turn = w_.below(3);
      put(a, half);
      put(turn == 0 ? b : turn == 1 ? b - 2 : b + 2, t_.f.emax - p - half);
    } else if (c_ == near_ties) {
      const uint64_t mask = (uint64_t{1} << p) - 1;
      uint64_t a = 0, b = 0;
      for (int turn = 0; turn < 40; ++turn) {
        a = detail::odd_of(p, w_);
        const uint64_t beside = 2 * w_.below(4) + 1;
        const uint64_t target = (uint64_t{1} << (p - 1)) + (w_.flip() ? beside : -beside);
        b = detail::inverse(a) * target & mask;
        // Both of p bits, their product of 2 p.
        const bool is_long = b >> (p - 1) != 0 && (a >> (p - p / 2)) * (b >> (p - p / 2)) >> (2 * (p / 2) - 1) != 0;
        if (is_long) break;
      }
      put(a, e - p);
      put(b, -p);
    } else if (w_.below(3) == 0) {  // half of an odd multiple of the least number
      const uint64_t m = detail::odd_of(1 + static_cast<int>(w_.below(static_cast<std::uint32_t>(p - 1))), w_);
      const int last = t_.f.emin / 2;
      put(m, t_.f.ulp_min() - 1 - last);
      put(1, last);
    } else {
      uint64_t a = 0, b = 0;
      do {
        const int bits = w_.between(2, p - 1);
        a = detail::odd_of(bits, w_);
        b = detail::odd_of(p + 1 - bits + (w_.flip() ? 1 : 0), w_);
      } while (a * b >> p != 1 || b >> p != 0);
      put(a, e - p);
      put(b, 0);
    }
    fill();
  }
  void wander() {
    int sum = 0;
    const int step = t_.f.emax - 2;
    for (std::size_t i = 0; i < k_; ++i) {
      const bool negative = w_.flip();
      const int e = w_.between(step / 2, step), towards = sum > 0 ? -1 : 1;
      const bool turns = w_.below(3) == 0;
      const int chosen = std::clamp((turns ? -towards : towards) * e, 4 - step, step);
      sum += chosen;
      row_.push_back(t_.with_exponent(negative, chosen, w_.next64()));
    }
  }
  // Into the subnormal numbers, and beyond, slowly.
  void sink() {
    int left = t_.f.emin - static_cast<int>(w_.below(static_cast<std::uint32_t>(t_.p + 2)));
    for (std::size_t i = 0; i < k_; ++i) {
      const bool negative = w_.flip();
      const auto rest = static_cast<int>(k_ - i);
      const int e = std::max(rest == 1 ? left : left / rest + w_.between(-1, 1), t_.f.emin);
      left -= e;
      row_.push_back(t_.with_exponent(negative, std::min(e, 1), w_.next64()));
    }
  }

  sample_class c_;
  std::size_t k_;
  numbers64 t_;
  word_stream& w_;
  int most_;
  std::vector<uint64_t> row_;
};

}  // namespace

array fill_products(sample_class c, std::int64_t rows, std::int64_t k, std::uint64_t seed, std::uint64_t stream,
                    dtype type) {
  array a(type, {rows, k});
  word_stream w(seed, stream);
  std::size_t i = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (const uint64_t x : row_of_factors(c, index(k), type, w).make()) a.set(i++, x);
  }
  return a;
}

}  // namespace repdl::reference
