// Operands of losses and their gradients. Where few elements or none are combined, the classes aim at the loss of each, or at g
// times the derivative: d = x - t is a number, or the half of one, with few bits. Of a sum or mean the other elements are 0, or
// tiny beside one.
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples_detail.hpp"

namespace repdl::reference {
namespace {

using enum sample_class;
using detail::odd_of;

struct drawn_pair {
  std::uint64_t x, t;
};

/// x and t with x - t = ±m 2^e, m odd of at most p + 1 bits, e and the numbers within the format.
drawn_pair apart(dtype type, std::uint64_t m, int e, word_stream& w) {
  const format& f = format_of(type);
  const bool negative = w.flip();
  const bool long_one = m >> f.precision != 0;
  const std::uint64_t x = exact_pattern(type, negative, long_one ? m - 1 : m, e);
  const std::uint64_t t = long_one ? exact_pattern(type, !negative, 1, e) : zero_bits(type, w.flip());
  return w.flip() ? drawn_pair{x, t} : drawn_pair{t, x};
}

class pairs {
 public:
  pairs(const std::string& op, sample_class c, dtype type, bool each, word_stream& w)
      : c_(c),
        type_(type),
        square_(op == "mse_loss"),
        margin_(op.starts_with("soft_margin")),
        either_(op.starts_with("smooth") || op.starts_with("huber")),
        each_(each),
        keep_(w.below(16) == 0),
        w_(w) {}

  drawn_pair next(std::int64_t i) {
    const format& f = format_of(type_);
    if (margin_) return margin(i);
    if (c_ == ties || c_ == near_ties) {
      if (!each_ && i > 0) return beside();
      // A square of p + 1 bits, or p + 1 bits.
      const bool square = square_ || (either_ && w_.flip());
      std::uint64_t m = odd_of(f.precision + 1, w_);
      if (square) {  // odd, m^2 in [2^p, 2^(p + 1))
        std::uint64_t least = 1;
        while (least * least >> f.precision == 0) ++least;
        std::uint64_t end = least;
        while (end * end >> (f.precision + 1) == 0) ++end;
        m = (least + w_.below(static_cast<std::uint32_t>(end - least))) | 1;
        if (m >= end) m -= 2;
      }
      return apart(type_, m, square ? w_.between(-6, -4) : w_.between(-3, 3) - f.precision, w_);
    }
    if (c_ == cancelling || (c_ == zeros && w_.below(4) != 0)) {
      const std::uint64_t x = sample(normal_range, type_, w_);
      return {x, x + (c_ == cancelling && w_.below(8) == 0 ? 1 : 0)};
    }
    if (c_ == overflow_border && (square_ || w_.flip())) {
      const int e = square_ ? (f.emax + 1) / 2 : f.emax;
      const std::uint64_t m = odd_of(f.precision, w_);
      return apart(type_, m, (each_ ? e : w_.between(e - 6, e)) - f.precision, w_);
    }
    const std::uint64_t x = tame(sample(c_, type_, w_));
    const std::uint64_t t = tame(sample(c_ == single_nonfinite && w_.flip() ? normal_range : c_, type_, w_));
    return {x, t};
  }
  /// A sum with an infinity or NaN is one: only some calls keep theirs.
  std::uint64_t tame(std::uint64_t x) const {
    const format& f = format_of(type_);
    const bool finite = (x & f.infinity()) != f.infinity();
    return finite || each_ || keep_ || c_ == single_nonfinite ? x : x ^ (std::uint64_t{1} << (f.precision - 1));
  }

 private:
  /// t is 1 or -1, mostly. x t far below 0, and a midpoint, in the tie classes.
  drawn_pair margin(std::int64_t i) {
    const format& f = format_of(type_);
    if ((c_ == ties || c_ == near_ties) && (each_ || i == 0)) {
      const int half = (f.precision + 2) / 2;
      std::uint64_t a = 0, b = 0;
      do {
        a = odd_of(half, w_);
        b = odd_of(f.precision + 2 - half, w_);
      } while ((a * b) >> f.precision != 1);  // p + 1 bits
      const bool negative = w_.flip();
      return {exact_pattern(type_, negative, a, w_.between(7, 12) - half),
              exact_pattern(type_, !negative, b, half - f.precision)};
    }
    const std::uint64_t one = round(type_, w_.flip(), 1, 0, false);
    std::uint64_t x = tame(sample(c_ == ties || c_ == near_ties ? normal_range : c_, type_, w_));
    if (c_ == near_ties) x = exact_pattern(type_, (one & f.sign_bit()) != 0, 2 + w_.below(3), 10);  // next to no loss
    const bool plain = w_.below(4) != 0;
    return {x, plain ? one : tame(sample(c_, type_, w_))};
  }
  drawn_pair beside() {
    const std::uint64_t x = sample(normal_range, type_, w_);
    if (c_ == ties || w_.flip()) return {x, x};
    return {zero_bits(type_, w_.flip()), exact_pattern(type_, w_.flip(), 1, format_of(type_).ulp_min() + 1)};
  }

  sample_class c_;
  dtype type_;
  bool square_, margin_, either_, each_, keep_;
  word_stream& w_;
};

}  // namespace

std::vector<array> fill_losses(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                               const attributes& attrs, std::uint64_t seed, std::uint64_t stream) {
  const bool gradient = op.ends_with("_backward");
  const std::size_t first = gradient ? 1 : 0;
  if (shapes.size() != first + 2) throw std::invalid_argument("reference: operands of " + op);
  word_stream w(seed, stream);
  const bool each = gradient || attribute_or<std::string>(attrs, "reduction", "mean") == "none";
  pairs draw(op, c, t, each, w);
  std::vector<array> v;
  for (const shape_list& s : shapes) v.emplace_back(t, s);
  array &x = v[first], &target = v[first + 1];
  const std::int64_t n = std::max(x.count(), target.count());
  for (std::int64_t i = 0; i < n; ++i) {
    const drawn_pair p = draw.next(i);
    if (i < x.count()) x.set(index(i), p.x);
    if (i < target.count()) target.set(index(i), p.t);
  }
  if (!gradient) return v;
  for (std::int64_t i = 0; i < v[0].count(); ++i) {
    const bool aimed = c == ties || c == near_ties || (c == cancelling && w.flip());
    const bool negative = w.flip();
    const int e = w.between(-2, 2);
    std::uint64_t g = aimed ? exact_pattern(t, negative, 1, e) : draw.tame(sample(c, t, w));
    if (c == near_ties) g += 1;
    v[0].set(index(i), g);
  }
  return v;
}

}  // namespace repdl::reference
