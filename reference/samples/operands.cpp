// Operands of elementwise operations, made together: x + y, x - y, x * y, x / y, x * y + z and the backward formulas
// get their share of ties, cancellations and so on. The same construction in every format; the comments give binary32's
// bits.
#include <algorithm>
#include <bit>

#include "reference/samples/binary64.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using detail::inverse, detail::odd_of, detail::special;
__extension__ using wide = unsigned __int128;  // products of two significands

struct operands {
  std::uint64_t v[3];
};

class maker {
 public:
  maker(dtype t, word_stream& draws) : t_(t), f_(format_of(t)), w_(draws) {}

  operands make(sample_class c) const {
    const bool s = w_.flip(), t = w_.flip();
    switch (c) {
      case sample_class::ties:
        return ties();
      case sample_class::near_ties:
        return near_ties();
      case sample_class::cancelling: {
        const std::uint64_t x = ordinary();
        const std::uint64_t y = (x + (w_.flip() ? 0 : std::uint64_t{w_.below(5)} - 2)) ^ (s ? f_.sign_bit() : 0);
        return {x, y, rounded_product(t, x, y)};  // z is RN(|x y|)
      }
      case sample_class::subnormal:
        return subnormal(s, t);
      case sample_class::overflow_border:
        return overflow_border(s, t);
      case sample_class::single_nonfinite: {
        operands o{ordinary(), ordinary(), ordinary()};
        o.v[w_.below(3)] = special(t_, w_);
        if (w_.below(3) == 0) o.v[w_.below(3)] = s ? f_.sign_bit() : 0;
        if (w_.below(3) == 0) o.v[w_.below(3)] = pattern(!t, 1, 0);
        return o;
      }
      default:
        break;
    }
    operands o{};
    for (std::uint64_t& x : o.v) x = sample(c, t_, w_);
    return o;
  }

 private:
  std::uint64_t pattern(bool negative, std::uint64_t m, int e) const { return exact_pattern(t_, negative, m, e); }
  std::uint64_t ordinary() const { return sample(sample_class::normal_range, t_, w_); }
  std::uint64_t rounded_product(bool negative, std::uint64_t x, std::uint64_t y) const {
    const number a = widen(t_, x), b = widen(t_, y);
    const wide m = wide{a.significand} * b.significand;
    if (m >> 64 == 0) return exact_pattern(t_, negative, static_cast<std::uint64_t>(m), a.exponent + b.exponent);
    const int cut = 64 - std::countl_zero(static_cast<std::uint64_t>(m >> 64));
    const bool sticky = (m & ((wide{1} << cut) - 1)) != 0;
    return round(t_, negative, static_cast<std::uint64_t>(m >> cut), a.exponent + b.exponent + cut, sticky);
  }

  operands ties() const {
    const bool s = w_.flip(), t = w_.flip(), u = w_.flip();
    const int e = w_.between(-moderate(), moderate());
    switch (w_.below(4)) {
      case 0: {  // an odd product of 24 or 25 bits; the addend is a multiple of two such units
        const std::uint64_t x = pattern(s, odd_of(left(), w_), e), y = pattern(t, odd_of(right(), w_), -p() / 2);
        return {x, y, pattern(u, w_.below(1U << std::min(p() - 4, 20)), e - p() / 2 + 1)};
      }
      case 1: {  // x plus half of its ulp; x * 1 plus half an ulp
        const std::uint64_t x = pattern(s, odd_of(p(), w_) ^ static_cast<unsigned>(u), e);
        const std::uint64_t half = pattern(t, 1, e - 1);
        return w_.flip() ? operands{x, half, half} : operands{x, pattern(false, 1, 0), half};
      }
      case 2: {  // g * (1 - y^2) and g * y * (1 - y) with y an odd multiple of 2^-7: 14 bits and 11 to 13
        const int k = (p() - 3) / 3, length = w_.between(p() + 1 - 2 * k, std::min(p(), p() + 3 - 2 * k));
        return {pattern(s, odd_of(length, w_), e), pattern(false, odd_of(w_.between(1, k), w_), -k), 0};
      }
      default: {  // odd * 2^-150, half of the least number, as a product and as a quotient
        const int k = w_.between(1, std::min(30, f_.emax - 1));
        return {pattern(s, odd_of(w_.between(1, p() - 1), w_), f_.ulp_min() - 1 + k), pattern(t, 1, u ? -k : k), 0};
      }
    }
  }

  operands near_ties() const {
    const bool s = w_.flip(), t = w_.flip(), u = w_.flip();
    const int e = w_.between(-moderate(), moderate());
    const std::uint64_t unit = std::uint64_t{1} << p();
    // An odd number from -7 to 7, modulo 2^64.
    const auto small = [&] { return 2 * std::uint64_t{w_.below(8)} + 1 - 8; };
    switch (w_.below(5)) {
      case 0: {  // x plus nearly half of its ulp
        const std::uint64_t x = pattern(s, odd_of(p(), w_), e);
        const std::uint64_t half = pattern(t, 1, e - 1) + (w_.flip() ? 1 : ~std::uint64_t{0});
        return {x, half, half};
      }
      case 1: {  // x * y = 2^23 + d (mod 2^24) with a small d; a product of 48 bits is cut by 24
        std::uint64_t x = 0, y = 0;
        for (int i = 0; i < 64; ++i) {
          x = odd_of(p(), w_);
          y = (inverse(x) * (unit / 2 + small())) & (unit - 1);
          if (wide{x} * y >> (2 * p() - 1) == 1) break;
        }
        return {pattern(s, x, e), pattern(t, y, -p()), 0};
      }
      case 2: {  // x * 2^25 = q * y + d with q odd of 25 bits: x / y lies d / y from a midpoint
        std::uint64_t x = 0, y = 0;
        for (int i = 0; i < 64; ++i) {
          y = odd_of(p(), w_);
          const std::uint64_t d = small(), q = (inverse(y) * (0 - d)) & (2 * unit - 1);
          x = static_cast<std::uint64_t>((wide{q} * y + (d + 8) - 8) >> (p() + 1));
          if (q >> p() == 1 && x >> (p() - 1) == 1) break;
        }
        return {pattern(s, x, e), pattern(t, y, w_.between(-moderate() / 2, moderate() / 2)), 0};
      }
      case 3: {  // an odd product of 25 bits plus a tiny number
        const std::uint64_t x = pattern(s, odd_of(left(), w_) | std::uint64_t{3} << (left() - 2), e);
        const std::uint64_t y = pattern(t, odd_of(right(), w_) | std::uint64_t{3} << (right() - 2), -p() / 2);
        return {x, y, pattern(u, odd_of(3, w_), std::max(e - 60, f_.ulp_min()))};
      }
      default:  // g - g * 2^-24 with g just above a power of two, by 1 - y^2 and by 1 - y
        return {pattern(s, unit / 2 + 1 + w_.below(14), e), pattern(t, 1, u ? -p() / 2 : -p()), 0};
    }
  }

  operands subnormal(bool s, bool t) const {
    const auto tiny = [&] { return sample(sample_class::subnormal, t_, w_); };
    if (w_.flip()) return {tiny(), w_.flip() ? tiny() : ordinary(), tiny()};
    const int e = w_.between(f_.emin * 100 / 126, f_.emin * 40 / 126);
    const int f = w_.between(f_.ulp_min() - 1, f_.emin - 1);  // the exponent of a product or a quotient
    const int g = w_.flip() ? f - e : std::min(e - f, f_.emax);
    return {pattern(s, odd_of(p(), w_), e - (p() - 1)), pattern(t, odd_of(p(), w_), g - (p() - 1)), tiny()};
  }

  operands overflow_border(bool s, bool t) const {
    const auto huge = [&] { return sample(sample_class::overflow_border, t_, w_); };
    switch (w_.below(3)) {
      case 0: {  // the largest number plus about half of its ulp
        const std::uint64_t sign = s ? f_.sign_bit() : 0, x = f_.largest() | sign;
        const std::uint64_t half = (pattern(false, 1, f_.emax - p()) + w_.below(3) - 1) | sign;
        return w_.flip() ? operands{x, half, half} : operands{x, pattern(false, 1, 0), half};
      }
      case 1: {  // a product or a quotient near 2^128
        const int e = w_.between(2, f_.emax - 7);
        const int g = w_.flip() ? f_.emax - e : e - f_.emax;
        return {pattern(s, odd_of(p(), w_), e - (p() - 1)), pattern(t, odd_of(p(), w_), g - (p() - 1)), huge()};
      }
      default:
        return {huge(), huge(), huge()};
    }
  }

  int p() const { return f_.precision; }
  /// Exponents of ordinary numbers.
  int moderate() const { return f_.emax < 20 ? 4 : 20; }
  /// Lengths of factors whose product has 24 or 25 bits: 13 and 12.
  int left() const { return p() / 2 + 1; }
  int right() const { return p() + 1 - left(); }

  dtype t_;
  const format& f_;
  word_stream& w_;
};

}  // namespace

std::vector<array> fill_operands(sample_class c, dtype t, int arity, std::int64_t count, std::uint64_t seed,
                                 std::uint64_t stream) {
  std::vector<array> v(static_cast<std::size_t>(arity), array(t, {count}));
  word_stream w(seed, stream), more(seed, ~stream);  // more: beyond the third
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    operands o{};
    if (t == dtype::boolean) {
      for (std::uint64_t& x : o.v) x = sample(c, t, w);
    } else {
      o = maker(t, w).make(c);
    }
    for (std::size_t j = 0; j < v.size(); ++j)
      v[j].set(i, j < std::size(o.v) ? o.v[j] : more.below(3) == 0 ? o.v[more.below(3)] : sample(c, t, more));
  }
  return v;
}

std::vector<array> fill_operands(sample_class c, dtype t, dtype to, int arity, std::int64_t count, std::uint64_t seed,
                                 std::uint64_t stream) {
  std::vector<array> v(static_cast<std::size_t>(arity), array(t, {count}));
  word_stream w(seed, stream);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::uint32_t u = w.below(4);
    operands o = maker(u == 0 ? t : to, w).make(c);
    for (std::uint64_t& x : o.v) x = u == 0 ? x : convert(to, t, x);
    if (u == 3) o.v[w.below(static_cast<std::uint32_t>(arity))] ^= 1;
    for (std::size_t j = 0; j < v.size(); ++j) v[j].set(i, o.v[j]);
  }
  return v;
}

std::vector<array> fill_operands(sample_class c, const ops::elementwise_row& row, dtype t, std::int64_t count,
                                 std::uint64_t seed, std::uint64_t stream) {
  std::vector<array> v = fill_operands(c, t, row.arity, count, seed, stream);
  for (int k = 0; k < row.arity; ++k) {
    const dtype type = row.operand_type(k, t);
    if (type != t)
      v[static_cast<std::size_t>(k)] = fill(c, type, {count}, seed, ~(3 * stream + static_cast<unsigned>(k)));
  }
  if (t != dtype::f64) return v;
  word_stream w(~seed, stream);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::uint64_t in[ops::most_operands] = {};
    if (!detail::difficult_operands(row, c, w, in)) continue;
    for (std::size_t k = 0; k < v.size(); ++k) v[k].set(i, in[k]);
  }
  return v;
}

}  // namespace repdl::reference
