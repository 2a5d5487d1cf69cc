// Inputs of total_norm and clip_grad_norm: lists of tensors.
//
// Ties of clip_grad_norm need a norm that max_norm is made for: N = 1 and max_norm = 1000001 / 2^20 give the factor 15625 / 2^14,
// and gradients of 11 bits times 15625 have 25, those of 40 bits 54: in binary32, and in binary64. So they add up to 1, or the greatest
// is 1: what is missing is put in the first places. Near-ties: something tiny besides. Otherwise, and of 16 bits, where
// products are no ties, the norm is of the class.
#include "reference/attributes.hpp"
#include "reference/samples/detail.hpp"

namespace repdl::reference::detail {
namespace {

using enum sample_class;
using std::uint64_t;

__extension__ typedef unsigned __int128 wide_integer;

/// floor(sqrt n), n < 2^106.
uint64_t wide_root_of(wide_integer n) {
  uint64_t r = 0;
  for (int bit = 52; bit >= 0; --bit) {
    const uint64_t t = r | uint64_t{1} << bit;
    if (wide_integer{t} * t <= n) r = t;
  }
  return r;
}

/// Of f32 or f64: numbers m 2^-p, p the precision, that add up to 1, or their squares to 1.
std::vector<uint64_t> with_norm_one(sample_class c, dtype type, std::size_t count, double p, word_stream& w) {
  const bool is_wide = type == dtype::f64;
  const int precision = format_of(type).precision;
  std::vector<uint64_t> v;
  const auto put = [&](uint64_t m, int e) {
    if (v.size() < count) v.push_back(exact_pattern(type, false, m, e));
  };
  // Places for what is missing; the others' sum, or that of their squares, is far below 1.
  constexpr std::size_t spare = 12;
  uint64_t sum = 0;
  wide_integer squares = 0;
  std::vector<uint64_t> ties_of_elements;
  for (std::size_t i = spare; i < count; ++i) {
    // Odd, times 15625 in [2^p, 2^(p + 1)).
    const uint64_t m = is_wide ? 576460752305 + 2 * (w.next64() % 288'000'000'000) : 1075 + 2 * w.below(486);
    const bool fits = p != 1 || sum + m < uint64_t{1} << (precision - 1);
    if (!fits) break;
    ties_of_elements.push_back(m);
    sum += m;
    squares += wide_integer{m} * m;
  }
  if (c == near_ties) put(1, is_wide ? (p == 1 ? -900 : -450) : p == 1 ? -120 : -60);
  if (p == 2) {
    for (wide_integer rest = (wide_integer{1} << (2 * precision)) - squares; rest != 0;) {
      const uint64_t a = wide_root_of(rest);
      put(a, -precision);
      rest -= wide_integer{a} * a;
    }
  } else {
    put((uint64_t{1} << precision) - (p == 1 ? sum : 0), -precision);
  }
  for (const uint64_t m : ties_of_elements) put(m, -precision);
  v.resize(count, 0);
  return v;
}

}  // namespace

std::vector<array> list_inputs(const std::string& op, sample_class c, dtype type, const std::vector<shape_list>& shapes,
                               const attributes& attrs, word_stream& w) {
  const double p = attribute_or(attrs, "p", 2.0);
  std::size_t count = 0;
  for (const shape_list& s : shapes) count += static_cast<std::size_t>(count_of(s));
  const bool aimed = op == "clip_grad_norm" && (type == dtype::f32 || type == dtype::f64) &&
                     (c == ties || c == near_ties) && attribute_or(attrs, "max_norm", 1.0) == 1000001 * 0x1p-20;
  std::vector<uint64_t> all;
  if (aimed) {
    all = with_norm_one(c, type, count, p, w);
    for (std::size_t i = count; i > 1; --i) std::swap(all[i - 1], all[w.below(static_cast<std::uint32_t>(i))]);
    for (uint64_t& x : all) x ^= w.flip() ? format_of(type).sign_bit() : 0;
  } else {
    const uint64_t seed = w.next64();
    const uint64_t stream = w.next64();
    const array a = fill_magnitudes(c, 1, static_cast<std::int64_t>(count),
                                    p == 2 ? magnitude_sum::root : magnitude_sum::plain, seed, stream, type);
    for (std::size_t i = 0; i < count; ++i) all.push_back(a.get(i));
  }
  std::vector<array> v;
  std::size_t next = 0;
  for (const shape_list& s : shapes) {
    array& a = v.emplace_back(type, s);
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) a.set(i, all[next++]);
  }
  return v;
}

}  // namespace repdl::reference::detail
