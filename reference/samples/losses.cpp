// Operands of losses and their gradients. Where few elements or none are combined, the classes aim at the loss of each, or at g
// times the derivative: d = x - t is a number, or the half of one, with few bits. Of a sum or mean the other elements are 0, or
// tiny beside one.
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "reference/attributes.hpp"
#include "reference/layout.hpp"
#include "reference/samples/detail.hpp"

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
      if (square) {                                    // odd, m^2 in [2^p, 2^(p + 1))
        const auto root_above = [](std::uint64_t v) {  // the least whose square is v or more
          auto r = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(v)));
          while (r * r >= v) --r;
          while (r * r < v) ++r;
          return r;
        };
        const std::uint64_t least = root_above(std::uint64_t{1} << f.precision);
        const std::uint64_t end = root_above(std::uint64_t{2} << f.precision);
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

/// x, t, weight, pos_weight.
using drawn_entropy = std::array<std::uint64_t, 4>;

/// Operands of binary_cross_entropy, with logits, and kl_div: mostly probabilities, x of kl_div their logarithms. Ties are of what is
/// rational: with logits of -w x for t = 2, q = 1/2 and of the gradient at x = 0; of 100 w t, and of the gradient at 1/2; of sums of -x
/// for t = 1 (log_target 0), and of -3 t. Near-ties have a rest far below them. Weights of sums are positive where numbers come twice.
class entropies {
 public:
  entropies(const std::string& op, sample_class c, dtype type, bool each, bool weighted, word_stream& w)
      : c_(c),
        type_(type),
        logits_(op.starts_with("binary_cross_entropy_with")),
        divergence_(op.starts_with("kl_div")),
        gradient_(op.ends_with("_backward")),
        each_(each),
        weighted_(weighted),
        keep_(w.below(16) == 0),
        both_signs_(each || c == normal_range || c == uniform_patterns || c == wide_exponents),
        w_(w) {}

  drawn_entropy next(std::int64_t i, bool log_target) {
    if (c_ == ties || c_ == near_ties) {
      if (!each_ && i > 0) return beside(i, log_target);
      if (gradient_ && divergence_) return {zero(), times_three(), one(), one()};
      if (divergence_) return {odd_number(), log_target ? zero() : one(), one(), one()};
      return logits_ ? logits_tie() : tie();
    }
    const std::uint64_t weight = w_.flip() ? one() : signed_one(finite(sample(c_, type_, w_)));
    const std::uint64_t other = w_.flip() ? one() : positive(finite(sample(c_, type_, w_)));
    if (logits_) return {finite(sample(c_, type_, w_)), target(), weight, other};
    if (!divergence_) return {w_.below(16) != 0 ? chance() : finite(sample(c_, type_, w_)), target(), weight, other};
    const std::uint64_t x = w_.flip() ? negative(few()) : finite(sample(c_, type_, w_));
    std::uint64_t t = log_target ? (w_.flip() ? negative(few()) : finite(sample(c_, type_, w_))) : target();
    // Of terms beyond all formats with both signs some sums stay undecided.
    if (log_target && !each_ && positive(t) > power(12) && positive(t) < f().infinity()) t = negative(few());
    return {x, t, one(), one()};
  }

 private:
  const format& f() const { return format_of(type_); }
  std::uint64_t one() const { return round(type_, false, 1, 0, false); }
  std::uint64_t zero() const { return 0; }
  std::uint64_t power(int e) const { return exact_pattern(type_, false, 1, e); }
  std::uint64_t positive(std::uint64_t x) const { return x & ~f().sign_bit(); }
  std::uint64_t negative(std::uint64_t x) const { return x | f().sign_bit(); }
  std::uint64_t signed_one(std::uint64_t x) const { return both_signs_ ? x : positive(x); }
  /// A sum with an infinity or NaN is one: only some calls keep theirs.
  std::uint64_t finite(std::uint64_t x) const {
    const bool is = (x & f().infinity()) != f().infinity();
    return is || each_ || keep_ || c_ == single_nonfinite ? x : x ^ (std::uint64_t{1} << (f().precision - 1));
  }
  std::uint64_t odd_number() {
    const std::uint64_t odd = odd_of(f().precision, w_);
    return exact_pattern(type_, w_.flip(), odd, -f().precision);
  }
  /// Three times it has p + 1 bits.
  std::uint64_t times_three() {
    const int bits = f().precision;
    const std::uint64_t low = w_.next64() & ((std::uint64_t{1} << (bits - 3)) - 1);
    const int exponent = w_.between(-2, 2) - bits;
    return exact_pattern(type_, w_.flip(), (std::uint64_t{1} << (bits - 1)) | low | 1, exponent);
  }
  std::uint64_t few() { return exact_pattern(type_, false, odd_of(w_.between(1, f().precision), w_), -4); }
  /// In [0, 1].
  std::uint64_t chance() {
    const std::uint32_t u = w_.below(16);
    if (u == 0) return w_.flip() ? one() : zero();
    if (u == 1) return 1 + w_.below(40);  // least numbers
    if (u == 2) return one() - 1 - w_.below(4);
    const int bits = u < 6 ? w_.between(1, 4) : f().precision;
    const int exponent = -bits - (u == 7 ? w_.between(0, 12) : 0);
    return exact_pattern(type_, false, odd_of(bits, w_), exponent);
  }
  std::uint64_t target() {
    const std::uint32_t u = w_.below(8);
    if (u < 3) return w_.flip() ? one() : zero();
    if (u < 6) return chance();
    const std::uint64_t t = finite(sample(c_, type_, w_));
    return both_signs_ ? t : positive(t);
  }
  /// Odd a and b of about half the bits, whose product times `factor` has p + 1.
  std::pair<std::uint64_t, std::uint64_t> factors(std::uint64_t factor, int a_bits) {
    for (;;) {
      const std::uint64_t a = odd_of(a_bits, w_);
      const int rest = f().precision + 2 - a_bits - (factor > 1 ? 4 : 0);
      const std::uint64_t b = rest > 1 ? odd_of(w_.between(rest - 1, rest), w_) : 1;
      if ((factor * a * b) >> f().precision == 1) return {a, b};
    }
  }
  drawn_entropy logits_tie() {
    const int half = (f().precision + 2) / 2;
    const auto [a, b] = factors(1, half);
    const std::uint64_t by = exact_pattern(type_, false, b, half - f().precision);
    if (gradient_) {  // g w a / 2^half / 2, with q = 0
      const std::uint64_t t = exact_pattern(type_, false, (std::uint64_t{1} << half) - a, -half);
      if (c_ == ties) return {w_.flip() ? negative(zero()) : zero(), t, by, zero()};
      return {exact_pattern(type_, false, 1 + w_.below(3), 10), t, by, one()};
    }
    if (c_ == ties) return {exact_pattern(type_, w_.flip(), a, -2), power(1), by, power(-1)};
    return {exact_pattern(type_, false, a, 10 - half), zero(), by, one()};
  }
  drawn_entropy tie() {
    if (gradient_) {
      const int half = (f().precision + 2) / 2;
      const auto [a, b] = factors(1, half);
      const std::uint64_t t = exact_pattern(type_, false, (std::uint64_t{1} << half) - a, -half - 1);
      return {power(-1), t, exact_pattern(type_, false, b, half - f().precision), one()};
    }
    const int a_bits = weighted_ ? (f().precision - 4) / 2 : f().precision - 3;
    const auto [a, b] = weighted_ ? factors(25, a_bits) : std::pair{odd_target(), std::uint64_t{1}};
    const std::uint64_t t = exact_pattern(type_, false, a, -f().precision);
    const std::uint64_t x = c_ == ties || type_ != dtype::f32 ? zero() : 1 + w_.below(26);
    return {x, t, exact_pattern(type_, false, b, 0), one()};
  }
  /// 25 times it has p + 1 bits.
  std::uint64_t odd_target() {
    for (;;) {
      const std::uint64_t a = odd_of(w_.between(f().precision - 4, f().precision - 3), w_);
      if ((25 * a) >> f().precision == 1) return a;
    }
  }
  drawn_entropy beside(std::int64_t i, bool log_target) {
    const bool exact = c_ == ties;
    if (logits_) {  // nothing, or e^-2048
      if (exact && weighted_) return {one(), one(), zero(), one()};
      return {exact_pattern(type_, true, 2 + w_.below(3), 10), zero(), one(), one()};
    }
    if (!divergence_) return {exact ? one() : power(f().ulp_min() + 2), exact ? one() : zero(), one(), one()};
    if (i == 1) {  // half an ulp
      return {exact_pattern(type_, w_.flip(), 1, -f().precision - 1), log_target ? zero() : one(), one(), one()};
    }
    if (exact) return {zero(), log_target ? zero() : one(), one(), one()};
    return {zero(), log_target ? exact_pattern(type_, true, 2 + w_.below(3), 10) : 1, one(), one()};
  }

  sample_class c_;
  dtype type_;
  bool logits_, divergence_, gradient_, each_, weighted_, keep_, both_signs_;
  word_stream& w_;
};

}  // namespace

std::vector<array> fill_losses(const std::string& op, sample_class c, dtype t, const std::vector<shape_list>& shapes,
                               const attributes& attrs, std::uint64_t seed, std::uint64_t stream) {
  const bool gradient = op.ends_with("_backward");
  const std::size_t first = gradient ? 1 : 0;
  const bool entropy = op.starts_with("binary_") || op.starts_with("kl_div");
  const std::size_t most = first + (op.starts_with("binary_cross_entropy_with") ? 4
                                    : op.starts_with("binary_")                 ? 3
                                                                                : 2);
  if (shapes.size() < first + 2 || shapes.size() > most) throw std::invalid_argument("reference: operands of " + op);
  word_stream w(seed, stream);
  const bool each = gradient || attribute_or<std::string>(attrs, "reduction", "mean") == "none";
  pairs draw(op, c, t, each, w);
  std::vector<array> v;
  for (const shape_list& s : shapes) v.emplace_back(t, s);
  std::int64_t n = 0;
  for (std::size_t k = first; k < v.size(); ++k) n = std::max(n, v[k].count());
  const bool weighted = v.size() > first + 2 && !v[first + 2].absent();
  const bool log_target = attribute_or(attrs, "log_target", false);
  std::optional<entropies> draw_entropy;  // it draws when it is made
  if (entropy) draw_entropy.emplace(op, c, t, each, weighted, w);
  for (std::int64_t i = 0; i < n; ++i) {
    drawn_entropy all{};
    if (entropy) {
      all = draw_entropy->next(i, log_target);
    } else {
      const drawn_pair p = draw.next(i);
      all = {p.x, p.t, 0, 0};
    }
    for (std::size_t k = first; k < v.size(); ++k)
      if (i < v[k].count()) v[k].set(index(i), all[k - first]);
  }
  if (!gradient) return v;
  for (std::int64_t i = 0; i < v[0].count(); ++i) {
    const bool aimed = c == ties || c == near_ties || (c == cancelling && w.flip());
    const bool negative = w.flip();
    const int e = w.between(-2, 2);
    const bool three = c == ties && op.starts_with("kl_div");
    std::uint64_t g = aimed ? exact_pattern(t, negative, three ? 3 : 1, e) : draw.tame(sample(c, t, w));
    if (c == near_ties) g += 1;
    v[0].set(index(i), g);
  }
  return v;
}

}  // namespace repdl::reference
