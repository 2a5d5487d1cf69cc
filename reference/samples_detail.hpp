// What the makers of sample inputs share. Integers only. The order of the draws is part of the digests.
#pragma once

#include <cstdint>
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
inline std::uint64_t size_at(const shape_list& s, std::size_t i) { return static_cast<std::uint64_t>(s.at(i)); }
/// The families (samples_layers.cpp, samples_rows.cpp, samples_norms.cpp, samples_norms_backward.cpp, samples_norms_given.cpp,
/// samples_steps.cpp).
std::vector<array> layer_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                const attributes& attrs, word_stream& w);
std::vector<array> row_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                              const attributes& attrs, word_stream& w);
std::vector<array> norm_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w);
std::vector<array> norm_gradient_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                        const attributes& attrs, word_stream& w);
std::vector<array> given_norm_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                                     const attributes& attrs, word_stream& w);
std::vector<array> step_inputs(const std::string& op, sample_class c, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w);
std::vector<array> random_inputs(sample_class c, const std::vector<shape_list>& shapes, const attributes& attrs,
                                 word_stream& w);

}  // namespace repdl::reference::detail
