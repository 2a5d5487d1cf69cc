#include "reference/samples.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "reference/samples/detail.hpp"

// The order of the draws is part of the digests: never two draws in one expression whose operands the language may
// evaluate in either order (braced lists are evaluated from left to right).
namespace repdl::reference {

using detail::odd_of, detail::special;

namespace {

constexpr std::string_view class_names[sample_class_count] = {
    "uniform_patterns", "normal_range",    "narrow_lattice",   "cancelling",     "ties",  "near_ties",
    "subnormal",        "overflow_border", "single_nonfinite", "wide_exponents", "zeros", "all_patterns",
    "exact_gaps",       "multiplicities"};
constexpr double inf64 = std::numeric_limits<double>::infinity(), nan64 = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::uint64_t detail::special(dtype t, word_stream& w) {
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
      return f.first_nan() + w.below(64) % (f.sign_bit() - f.first_nan());  // signalling
  }
}

std::string_view name_of(sample_class c) { return class_names[static_cast<int>(c)]; }

sample_class sample_class_named(std::string_view name) {
  for (int i = 0; i < sample_class_count; ++i)
    if (class_names[i] == name) return static_cast<sample_class>(i);
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

namespace {

/// An integer as a pattern.
std::uint64_t integer_pattern(dtype t, bool negative, std::uint64_t m) {
  return (negative ? 0 - m : m) & (~std::uint64_t{0} >> (64 - 8 * size_of(t)));
}

std::uint64_t sample_integer(sample_class c, dtype t, word_stream& w) {
  const auto width = static_cast<std::uint32_t>(8 * size_of(t));
  const std::uint64_t word = w.next64();
  const bool negative = w.flip();
  switch (c) {
    case sample_class::uniform_patterns:
    case sample_class::all_patterns:
      return integer_pattern(t, false, word);
    case sample_class::narrow_lattice:
      return integer_pattern(t, negative, (word & 7) << w.below(width - 3));
    case sample_class::cancelling:
    case sample_class::subnormal:
      return integer_pattern(t, negative, word & 31);
    case sample_class::overflow_border: {
      const std::uint64_t range = std::uint64_t{1} << (w.flip() ? 3 : w.below(width - 1));
      return integer_pattern(t, negative,
                             (std::uint64_t{1} << (width - 1)) - (negative ? 0 : 1) - (word & (range - 1)));
    }
    case sample_class::zeros:
      return w.below(8) == 0 ? integer_pattern(t, negative, word >> (64 - width / 2)) : 0;
    default:
      return integer_pattern(t, negative, word >> (64 - width + 1 + w.below(width - 1)));
  }
}

}  // namespace

std::uint64_t sample(sample_class c, dtype t, word_stream& w) {
  if (t == dtype::boolean) {
    const std::uint32_t u = w.below(c == sample_class::zeros ? 16 : 4);
    return u == 0 ? 1 : u == 1 ? w.below(256) : 0;
  }
  if (!is_floating(t)) return sample_integer(c, t, w);
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
      return compose(t, negative, w.between(-3, 3), (word & 7) << std::max(f.precision - 4, 0));
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

namespace {

/// A double that enters in a format, or is compared with its numbers.
double sample_value(dtype t, word_stream& w) {
  constexpr double specials[] = {0.0, -0.0, 1, -1, inf64, -inf64, nan64, 1e300, -0x1p-1074};
  const auto in_binary64 = [&](std::uint64_t bits) { return std::bit_cast<double>(convert(t, dtype::f64, bits)); };
  switch (w.below(4)) {
    case 0:
      return specials[w.below(std::size(specials))];
    case 1:
      return in_binary64(sample(sample_class::uniform_patterns, t, w));
    case 2: {  // between two numbers, in the middle or not
      const number n = widen(t, sample(sample_class::wide_exponents, t, w));
      const std::uint64_t more = w.flip() ? 2 : 1 + w.below(3);
      if (n.kind != number_kind::finite || t == dtype::f64) return specials[w.below(std::size(specials))];
      return std::bit_cast<double>(round(dtype::f64, n.negative, 4 * n.significand + more, n.exponent - 2, false));
    }
    default:
      return std::bit_cast<double>(sample(sample_class::normal_range, dtype::f64, w));
  }
}

/// In [0, 1/2]; some next to 0, some beyond every format.
double sample_margin(word_stream& w) {
  constexpr double specials[] = {0.0, 0.5, 0x1p-1074, 0x1p-24};
  if (w.below(4) == 0) return specials[w.below(std::size(specials))];
  return std::ldexp(static_cast<double>(w.below(1 << 20)), -21 - static_cast<int>(w.flip() ? w.below(30) : 0));
}

}  // namespace

attributes sample_options(const ops::elementwise_row& row, dtype t, word_stream& w,
                          const std::function<double(word_stream&)>& coefficient) {
  attributes attrs;
  std::vector<double> all;
  for (int i = 0; i < row.options.count(); ++i) {
    const ops::real_option& o = row.options.all[i];
    double v = o.otherwise.in(t);
    if (w.flip()) {
      v = o.kind <= ops::option_kind::positive ? coefficient(w)
          : o.kind == ops::option_kind::margin ? sample_margin(w)
                                               : sample_value(t, w);
      attrs.push_back({std::string(o.name), v});
    }
    all.push_back(v);
  }
  return row.options.accepts(all) ? attrs : attributes();
}

namespace {

/// Of an integer that is converted to a format: midpoints, and numbers next to them by 1; around the largest number, or the
/// ends of the type.
std::uint64_t integer_to_round(sample_class c, dtype from, dtype to, word_stream& w) {
  const format& g = format_of(to);
  const int width = static_cast<int>(8 * size_of(from)) - 1;
  const int length = g.precision + 1, most = std::min(width, g.emax + 1);
  const bool negative = w.flip();
  if ((c == sample_class::ties || c == sample_class::near_ties) && length <= most) {
    const std::uint64_t m = odd_of(length, w);
    const std::uint64_t tie = m << w.between(0, most - length);
    return integer_pattern(from, negative, tie + (c == sample_class::ties ? 0 : w.flip() ? 1 : ~std::uint64_t{0}));
  }
  if (c == sample_class::overflow_border && g.emax < width && w.below(4) != 0) {
    // Half an ulp above the largest number.
    const std::uint64_t threshold = (2 * g.largest_significand() + 1) << (g.emax - g.precision);
    return integer_pattern(from, negative, threshold - 2 + w.below(5));
  }
  return sample(c, from, w);
}

/// Of 64 bits to 32: around the ends of the range of 32.
std::uint64_t integer_to_saturate(sample_class c, word_stream& w) {
  if (c != sample_class::overflow_border || w.below(4) == 0) return sample(c, dtype::i64, w);
  const bool negative = w.flip();
  return integer_pattern(dtype::i64, negative, (std::uint64_t{1} << 31) + w.below(9) - 4);
}

/// Of a number that becomes an integer: integers and the middles between them, and numbers next to these; around the ends of the
/// type, and of the other one.
std::uint64_t number_to_truncate(sample_class c, dtype from, dtype to, word_stream& w) {
  const format& f = format_of(from);
  const bool negative = w.flip();
  const bool other = w.below(8) == 0;
  const int width = (to == dtype::i64) != other ? 63 : 31;
  switch (c) {
    case sample_class::ties:
    case sample_class::near_ties: {
      const int length = w.between(2, f.precision);
      const std::uint64_t twice = w.next64() >> (64 - length), x = exact_pattern(from, negative, twice, -1);
      return c == sample_class::ties || twice == 0 ? x : x + (w.flip() ? 1 : ~std::uint64_t{0});
    }
    case sample_class::overflow_border: {
      if (f.emax < width) return sample(c, from, w);
      if (f.precision > width + 2 && w.flip())  // halves around it
        return exact_pattern(from, negative, (std::uint64_t{2} << width) + w.below(9) - 5, -1);
      return compose(from, negative, width, 0) + w.below(9) - 4;
    }
    case sample_class::wide_exponents: {
      const int e = w.between(-3, std::min(width + 2, f.emax));
      return compose(from, negative, e, w.next64());
    }
    default:
      return sample(c, from, w);
  }
}

}  // namespace

array fill_conversion(sample_class c, dtype from, dtype to, std::int64_t count, std::uint64_t seed,
                      std::uint64_t stream) {
  if (!is_floating(from) || !is_floating(to)) {
    const bool truncates = is_floating(from) && to != dtype::boolean,
               rounds = is_floating(to) && from != dtype::boolean;
    if (c == sample_class::all_patterns || (!truncates && !rounds && !(from == dtype::i64 && to == dtype::i32)))
      return fill(c, from, {count}, seed, stream);
    array a(from, {count});
    word_stream w(seed, stream);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      a.set(i, truncates ? number_to_truncate(c, from, to, w)
               : rounds  ? integer_to_round(c, from, to, w)
                         : integer_to_saturate(c, w));
    }
    return a;
  }
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
