// What the makers of sample inputs share. Integers only. The order of the draws is part of the digests: no two of them are
// arguments of one call, whose order compilers choose.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "librepdl/dynamic.hpp"
#include "reference/samples.hpp"

namespace repdl::reference::detail {

using patterns = std::vector<std::uint32_t>;

inline constexpr std::uint32_t sign32 = 0x80000000, one32 = 0x3f800000, minus_infinity32 = 0xff800000;

/// (-1)^negative * m * 2^e, which must be a binary32 number.
inline std::uint32_t pattern32(bool negative, std::uint64_t m, int e) {
  return static_cast<std::uint32_t>(exact_pattern(dtype::f32, negative, m, e));
}
inline std::uint32_t ordinary(sample_class c, word_stream& w) {
  return static_cast<std::uint32_t>(sample(c, dtype::f32, w));
}
inline std::uint32_t special32(word_stream& w) {
  constexpr std::uint32_t list[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001};
  return list[w.below(5)];
}
/// floor(sqrt n).
inline std::uint64_t root_of(std::uint64_t n) {
  std::uint64_t r = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint64_t t = r | std::uint64_t{1} << bit;
    if (t * t <= n) r = t;
  }
  return r;
}
/// 1/x modulo 2^64 for odd x (Newton: each step doubles the correct bits, 3 at first).
inline std::uint64_t inverse(std::uint64_t x) {
  std::uint64_t y = x;
  for (int i = 0; i < 5; ++i) y *= 2 - x * y;
  return y;
}
/// Infinities, NaN, payloads, signalling ones.
std::uint64_t special(dtype t, word_stream& w);
/// A uniform pattern, finite unless `keep`.
inline std::uint32_t finite_pattern(std::uint32_t x, bool keep) {
  return !keep && (x & 0x7f800000) == 0x7f800000 ? x ^ 0x00800000 : x;
}
/// An element of the class; of the uniform patterns only some lines `keep` the non-finite ones.
inline std::uint32_t drawn(sample_class c, bool keep, word_stream& w) {
  return finite_pattern(ordinary(c, w), keep || c == sample_class::single_nonfinite);
}
/// The same, of a format of at most 32 bits.
inline std::uint32_t drawn(sample_class c, dtype t, bool keep, word_stream& w) {
  const auto x = static_cast<std::uint32_t>(sample(c, t, w));
  const auto infinity = static_cast<std::uint32_t>(format_of(t).infinity());
  const bool change = !keep && c != sample_class::single_nonfinite && (x & infinity) == infinity;
  return change ? x ^ (1U << (format_of(t).precision - 1)) : x;
}
/// An integer of exactly `length` bits; odd.
inline std::uint64_t odd_of(int length, word_stream& w) {
  const std::uint64_t top = std::uint64_t{1} << (length - 1);
  return top | (w.next64() & (top - 1)) | 1;
}
/// Patterns of a format, of at most as many bits as Word has. Of binary32 the draws are those of the functions above.
template <class Word>
struct patterns_of {
  dtype type;
  const format& f;
  int p;  ///< precision

  explicit patterns_of(dtype t) : type(t), f(format_of(t)), p(f.precision) {}

  Word sign() const { return static_cast<Word>(f.sign_bit()); }
  Word largest() const { return static_cast<Word>(f.largest()); }
  Word minus_infinity() const { return static_cast<Word>(infinity_bits(type, true)); }
  bool is_finite(Word x) const { return (x & f.infinity()) != f.infinity(); }
  /// (-1)^negative * m * 2^e, which must be a number of the format; rounded to one; its least number where that is 0.
  Word pattern(bool negative, std::uint64_t m, int e) const {
    return static_cast<Word>(exact_pattern(type, negative, m, e));
  }
  Word rounded(bool negative, std::uint64_t m, int e) const {
    return static_cast<Word>(round(type, negative, m, e, false));
  }
  Word tiny(bool negative, int e) const { return pattern(negative, 1, std::max(e, f.ulp_min())); }
  Word with_exponent(bool negative, int e, std::uint64_t word) const {
    return static_cast<Word>(compose(type, negative, e, word));
  }
  /// A uniform pattern, finite unless `keep`.
  Word finite(Word x, bool keep) const { return !keep && !is_finite(x) ? x ^ (Word{1} << (p - 1)) : x; }
  Word ordinary(sample_class c, word_stream& w) const { return static_cast<Word>(sample(c, type, w)); }
  Word drawn(sample_class c, bool keep, word_stream& w) const {
    return finite(ordinary(c, w), keep || c == sample_class::single_nonfinite);
  }
  Word special(word_stream& w) const {
    return type == dtype::f32 ? special32(w) : static_cast<Word>(detail::special(type, w));
  }
};
using numbers_of = patterns_of<std::uint32_t>;
/// m 2^e, or what it is rounded to.
inline std::uint32_t of_integer(const numbers_of& t, std::int64_t m, int e) {
  return t.rounded(m < 0, static_cast<std::uint64_t>(m < 0 ? -m : m), e);
}
/// k where v = 2^k; absent else.
inline std::optional<int> exponent_of_power(double v) {
  const number n = widen(dtype::f64, std::bit_cast<std::uint64_t>(v));
  if (n.kind != number_kind::finite || n.negative || !std::has_single_bit(n.significand)) return std::nullopt;
  return n.exponent + std::countr_zero(n.significand);
}
inline std::uint64_t size_at(const shape_list& s, std::size_t i) { return static_cast<std::uint64_t>(s.at(i)); }
/// The families (layers.cpp, rows.cpp, rows_binary64.cpp, norms.cpp, norms_backward.cpp, norms_given.cpp, statistics.cpp, steps.cpp, lists.cpp).
std::vector<array> layer_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                const attributes& attrs, word_stream& w, dtype type);
std::vector<array> row_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                              const attributes& attrs, word_stream& w, dtype type);
/// Of binary64 (rows_binary64.cpp).
std::vector<array> wide_row_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                   const attributes& attrs, word_stream& w);
std::vector<array> norm_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w, dtype type);
std::vector<array> norm_gradient_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                        const attributes& attrs, word_stream& w, dtype type);
std::vector<array> given_norm_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                     const attributes& attrs, word_stream& w, dtype type);
std::vector<array> statistics_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                     const attributes& attrs, word_stream& w, dtype type);
std::vector<array> step_inputs(const std::string& op, sample_class c, dtype type, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w);
std::vector<array> list_inputs(const std::string& op, sample_class c, dtype type, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w);
std::vector<array> random_inputs(sample_class c, const std::vector<shape_list>& shapes, const attributes& attrs,
                                 word_stream& w, dtype type);

}  // namespace repdl::reference::detail
