#include "reference/samples.hpp"

#include <stdexcept>
#include <string>

// The order of the draws is part of the digests: never two draws in one expression whose operands the language may
// evaluate in either order (braced lists are evaluated from left to right).
namespace repdl::reference {
namespace {

constexpr dtype f32 = dtype::f32;
constexpr std::string_view names[sample_class_count] = {
    "uniform_patterns", "normal_range",    "narrow_lattice",   "cancelling",     "ties",  "near_ties",
    "subnormal",        "overflow_border", "single_nonfinite", "wide_exponents", "zeros", "all_patterns",
    "exact_gaps",       "multiplicities"};

std::uint64_t special(dtype t, word_stream& w) {
  const format& f = format_of(t);
  switch (w.below(5)) {
    case 0:
      return infinity_bits(t, false);
    case 1:
      return infinity_bits(t, true);
    case 2:
      return nan_bits(t);
    case 3:
      return nan_bits(t) | f.sign_bit() | w.below(64);
    default:
      return f.infinity() + 1 + w.below(64);  // signalling
  }
}

/// An odd integer of exactly `length` bits.
std::uint64_t odd_of(int length, word_stream& w) {
  const std::uint64_t top = std::uint64_t{1} << (length - 1);
  return top | (w.next64() & (top - 1)) | 1;
}

/// 1/x modulo 2^32 for odd x (Newton: each step doubles the correct bits, 3 at first).
std::uint32_t inverse(std::uint32_t x) {
  std::uint32_t y = x;
  for (int i = 0; i < 4; ++i) y *= 2 - x * y;
  return y;
}

std::uint32_t pattern32(bool negative, std::uint64_t m, int e) {
  return static_cast<std::uint32_t>(exact_pattern(f32, negative, m, e));
}

struct operands {
  std::uint32_t v[3];
};

std::uint32_t ordinary(word_stream& w) {
  return static_cast<std::uint32_t>(sample(sample_class::normal_range, f32, w));
}

operands tie_operands(word_stream& w) {
  const bool s = w.flip(), t = w.flip(), u = w.flip();
  const int e = w.between(-20, 20);
  switch (w.below(4)) {
    case 0:  // an odd product of 24 or 25 bits; the addend is a multiple of two such units
      return {pattern32(s, odd_of(13, w), e), pattern32(t, odd_of(12, w), -12), pattern32(u, w.below(1 << 20), e - 11)};
    case 1: {  // x plus half of its ulp; x * 1 plus half an ulp
      const std::uint32_t x = pattern32(s, odd_of(24, w) ^ static_cast<unsigned>(u), e);
      const std::uint32_t half = pattern32(t, 1, e - 1);
      return w.flip() ? operands{x, half, half} : operands{x, pattern32(false, 1, 0), half};
    }
    case 2: {  // g * (1 - y^2) and g * y * (1 - y) with y an odd multiple of 2^-7
      return {pattern32(s, odd_of(w.between(11, 13), w), e), pattern32(false, odd_of(w.between(1, 7), w), -7), 0};
    }
    default: {  // odd * 2^-150 as a product and as a quotient
      const int k = w.between(1, 30);
      return {pattern32(s, odd_of(w.between(1, 23), w), -150 + k), pattern32(t, 1, u ? -k : k), 0};
    }
  }
}

operands near_tie_operands(word_stream& w) {
  const bool s = w.flip(), t = w.flip(), u = w.flip();
  const int e = w.between(-20, 20);
  switch (w.below(5)) {
    case 0: {  // x plus nearly half of its ulp
      const std::uint32_t x = pattern32(s, odd_of(24, w), e);
      const std::uint32_t half = pattern32(t, 1, e - 1) + (w.flip() ? 1 : ~0U);
      return {x, half, half};
    }
    case 1: {  // x * y = 2^23 + d (mod 2^24) with a small d; a product of 48 bits is cut by 24
      std::uint64_t x = 0, y = 0;
      for (int i = 0; i < 64; ++i) {
        x = odd_of(24, w);
        const std::uint32_t d = 2 * w.below(8) + 1 - 8;
        y = (inverse(static_cast<std::uint32_t>(x)) * ((1U << 23) + d)) & 0xffffff;
        if ((x * y) >> 47 == 1) break;
      }
      return {pattern32(s, x, e), pattern32(t, y, -24), 0};
    }
    case 2: {  // x * 2^25 = q * y + d with q odd of 25 bits: x / y lies d / y from a midpoint
      std::uint64_t x = 0, y = 0;
      for (int i = 0; i < 64; ++i) {
        y = odd_of(24, w);
        const std::uint32_t d = 2 * w.below(8) + 1 - 8;
        const std::uint64_t q = (inverse(static_cast<std::uint32_t>(y)) * (0 - d)) & 0x1ffffff;
        const auto sum = static_cast<std::int64_t>(q * y) + static_cast<std::int32_t>(d);
        x = static_cast<std::uint64_t>(sum) >> 25;
        if (q >> 24 == 1 && x >> 23 == 1) break;
      }
      return {pattern32(s, x, e), pattern32(t, y, w.between(-10, 10)), 0};
    }
    case 3:  // an odd product of 25 bits plus a tiny number
      return {pattern32(s, odd_of(13, w) | 0x1800, e), pattern32(t, odd_of(12, w) | 0xc00, -12),
              pattern32(u, odd_of(3, w), e - 60)};
    default:  // g - g * 2^-24 with g just above a power of two, by 1 - y^2 and by 1 - y
      return {pattern32(s, (1U << 23) + 1 + w.below(14), e), pattern32(t, 1, u ? -12 : -24), 0};
  }
}

operands related(sample_class c, word_stream& w) {
  const bool s = w.flip(), t = w.flip();
  switch (c) {
    case sample_class::ties:
      return tie_operands(w);
    case sample_class::near_ties:
      return near_tie_operands(w);
    case sample_class::cancelling: {
      const std::uint32_t x = ordinary(w);
      const std::uint32_t y = (x + (w.flip() ? 0 : w.below(5) - 2)) ^ (s ? 0x80000000U : 0);
      const number p = widen(f32, x), q = widen(f32, y);
      return {x, y, pattern32(t, p.significand * q.significand, p.exponent + q.exponent)};  // z is RN(|x y|)
    }
    case sample_class::subnormal: {
      const auto tiny = [&] { return static_cast<std::uint32_t>(sample(c, f32, w)); };
      if (w.flip()) return {tiny(), w.flip() ? tiny() : ordinary(w), tiny()};
      const int e = w.between(-100, -40);  // a product or a quotient in the subnormal range
      const int f = w.between(-150, -127);
      const int g = w.flip() ? f - e : e - f;
      return {pattern32(s, odd_of(24, w), e - 23), pattern32(t, odd_of(24, w), g - 23), tiny()};
    }
    case sample_class::overflow_border: {
      const auto huge = [&] { return static_cast<std::uint32_t>(sample(c, f32, w)); };
      switch (w.below(3)) {
        case 0: {  // the largest number plus about half of its ulp
          const std::uint32_t x = 0x7f7fffff, half = pattern32(false, 1, 103) + w.below(3) - 1;
          const std::uint32_t sign = s ? 0x80000000U : 0;
          return w.flip() ? operands{x | sign, half | sign, half | sign}
                          : operands{x | sign, pattern32(false, 1, 0), half | sign};
        }
        case 1: {  // a product or a quotient near 2^128
          const int e = w.between(2, 120);
          const int g = w.flip() ? 127 - e : e - 127;
          return {pattern32(s, odd_of(24, w), e - 23), pattern32(t, odd_of(24, w), g - 23), huge()};
        }
        default:
          return {huge(), huge(), huge()};
      }
    }
    case sample_class::single_nonfinite: {
      operands o{ordinary(w), ordinary(w), ordinary(w)};
      o.v[w.below(3)] = static_cast<std::uint32_t>(special(f32, w));
      if (w.below(3) == 0) o.v[w.below(3)] = s ? 0x80000000U : 0;
      if (w.below(3) == 0) o.v[w.below(3)] = t ? 0x3f800000U : 0xbf800000U;
      return o;
    }
    default:
      break;
  }
  operands o{};
  for (std::uint32_t& x : o.v) x = static_cast<std::uint32_t>(sample(c, f32, w));
  return o;
}

}  // namespace

std::string_view name_of(sample_class c) { return names[static_cast<int>(c)]; }

sample_class sample_class_named(std::string_view name) {
  for (int i = 0; i < sample_class_count; ++i)
    if (names[i] == name) return static_cast<sample_class>(i);
  throw std::invalid_argument("reference: no sample class is named " + std::string(name));
}

std::uint32_t word_stream::next() {
  if (used_ == 4) {
    words_ = philox(seed_, stream_, block_++);
    used_ = 0;
  }
  return words_.w[used_++];
}

std::uint64_t compose(dtype t, bool negative, int e, std::uint64_t fraction) {
  const format& f = format_of(t);
  if (e > f.emax) return infinity_bits(t, negative);
  fraction &= (std::uint64_t{1} << (f.precision - 1)) - 1;
  const std::uint64_t biased = e < f.emin ? 0 : static_cast<std::uint64_t>(e - f.emin + 1);
  return zero_bits(t, negative) | (biased << (f.precision - 1)) | fraction;
}

std::uint64_t exact_pattern(dtype t, bool negative, std::uint64_t m, int e) { return round(t, negative, m, e, false); }

std::uint64_t sample(sample_class c, dtype t, word_stream& w) {
  const format& f = format_of(t);
  const std::uint64_t word = w.next64();
  const bool negative = w.flip();
  const int half = (f.precision + 1) / 2;  // bits of a half-length significand
  switch (c) {
    case sample_class::uniform_patterns:
    case sample_class::all_patterns:
    case sample_class::exact_gaps:
    case sample_class::multiplicities:
      return word & (f.sign_bit() | (f.sign_bit() - 1));
    case sample_class::normal_range:
      return compose(t, negative, w.between(-8, 7), word);
    case sample_class::narrow_lattice:
      return compose(t, negative, w.between(-3, 3), (word & 7) << (f.precision - 4));
    case sample_class::cancelling:
      return compose(t, negative, 0, 0) + (word & 31) - 16;
    case sample_class::ties:
    case sample_class::near_ties: {
      const std::uint64_t m = odd_of(half, w);
      const std::uint64_t x = exact_pattern(t, negative, m, w.between(-3, 3) - half);
      return c == sample_class::ties ? x : x + ((word & 1) != 0 ? 1 : ~0ULL);
    }
    case sample_class::subnormal: {
      const auto length = 1 + w.below(static_cast<std::uint32_t>(f.precision - 1));
      return zero_bits(t, negative) | (word >> (64 - length));
    }
    case sample_class::overflow_border: {
      const std::uint64_t range = w.flip() ? 8 : std::uint64_t{1} << f.precision;
      return zero_bits(t, negative) | (f.largest() - (word & (range - 1)));
    }
    case sample_class::single_nonfinite:
      return w.below(17) == 0 ? special(t, w) : compose(t, negative, w.between(-8, 7), word);
    case sample_class::wide_exponents:
      return compose(t, negative, w.between(f.emin - 1, f.emax), word);
    case sample_class::zeros:
      return w.below(8) == 0 ? compose(t, negative, w.between(-8, 7), word) : zero_bits(t, negative);
  }
  throw std::invalid_argument("reference::sample: class");
}

array fill(sample_class c, dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream) {
  array a(t, shape);
  word_stream w(seed, stream);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i)
    a.set(i, c == sample_class::all_patterns ? i : sample(c, t, w));
  return a;
}

std::vector<array> fill_operands(sample_class c, int arity, std::int64_t count, std::uint64_t seed,
                                 std::uint64_t stream) {
  std::vector<array> v(static_cast<std::size_t>(arity), array(f32, {count}));
  word_stream w(seed, stream);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const operands o = related(c, w);
    for (std::size_t j = 0; j < v.size(); ++j) v[j].set(i, o.v[j]);
  }
  return v;
}

array fill_conversion(sample_class c, dtype from, dtype to, std::int64_t count, std::uint64_t seed,
                      std::uint64_t stream) {
  const format& f = format_of(from);
  const format& g = format_of(to);
  const bool narrows = f.precision > g.precision && f.emin <= g.emin && f.emax >= g.emax;
  array a = fill(c, from, {count}, seed, stream);
  const bool tie = c == sample_class::ties, near = c == sample_class::near_ties;
  const bool border = c == sample_class::overflow_border, tiny = c == sample_class::subnormal;
  if (!narrows || !(tie || near || border || tiny)) return a;
  word_stream w(seed, ~stream);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    // A number of `to` and half of its ulp; for the border the largest one and its neighbours, below 2^emin else.
    std::uint64_t magnitude = w.next64() & (g.sign_bit() - 1);
    if (magnitude >= g.infinity()) magnitude -= g.infinity();
    if (border) magnitude = g.largest() - (w.flip() ? 0 : w.below(8));
    if (tiny)
      magnitude = (magnitude & ((std::uint64_t{1} << (g.precision - 1)) - 1)) >>
                  w.below(static_cast<std::uint32_t>(g.precision));
    const number n = widen(to, magnitude);
    const std::uint64_t odd = 2 * n.significand + 1;
    const int e = n.kind == number_kind::zero ? g.ulp_min() : n.exponent;
    std::uint64_t bits = exact_pattern(from, w.flip(), odd, e - 1);  // one bit more than `to` has: exact in `from`
    if (!tie) bits += near ? (w.flip() ? 1 : ~0ULL) : w.below(5) - 2ULL;
    if (tiny && w.flip()) {  // full significands from around half of the least number up to 2^3 times the least one
      const int shift = w.between(-3, 3) + f.precision;
      bits = exact_pattern(from, (bits & f.sign_bit()) != 0, w.next64() >> (64 - f.precision), g.ulp_min() - shift);
    }
    a.set(i, bits);
  }
  return a;
}

bool hit(sample_class c, const outcome& o) {
  switch (c) {
    case sample_class::ties:
      return o.tie;
    case sample_class::near_ties:
      return o.near_tie;
    case sample_class::cancelling:
      return o.exact_zero;
    case sample_class::subnormal:
      return o.subnormal;
    case sample_class::overflow_border:
      return o.overflow || o.border;
    case sample_class::single_nonfinite:
      return o.nan || o.infinite;
    case sample_class::zeros:
      return o.exact_zero;
    case sample_class::narrow_lattice:
      return o.exact || o.tie;
    default:
      return true;
  }
}

}  // namespace repdl::reference
