// Operands of ldexp and frexp.
#include <bit>
#include <limits>

#include "reference/numbers/format.hpp"
#include "reference/samples.hpp"

namespace repdl::reference {
namespace {

/// n by which x 2^n is of the class; of classes that say nothing of it, by which its leading bit is near 1.
std::int64_t aimed(sample_class c, dtype t, std::uint64_t x, word_stream& w) {
  const format& f = format_of(t);
  const number v = widen(t, x);
  const int lead = v.exponent + static_cast<int>(std::bit_width(v.significand)) - 1;
  switch (c) {
    case sample_class::ties:  // the last bit of x is half of the least number
      return f.ulp_min() - 1 - v.exponent - std::countr_zero(v.significand);
    case sample_class::near_ties:  // x is next to 3/2 times a power of two
      return f.ulp_min() - lead;
    case sample_class::subnormal:
      return f.emin - w.between(1, f.precision + 1) - lead;
    case sample_class::overflow_border:
      return f.emax + w.between(-1, 2) - lead;
    default:
      return w.between(-f.precision, f.precision) - lead;
  }
}

/// A number next to 3/2 times a power of two.
std::uint64_t near_middle(dtype t, word_stream& w) {
  const format& f = format_of(t);
  const std::uint64_t half = std::uint64_t{1} << (f.precision - 2);
  const bool negative = w.flip(), above = w.flip();
  return compose(t, negative, w.between(f.emin, f.emax), above ? half + 1 : half - 1);
}

std::int64_t any_exponent(word_stream& w) {
  constexpr std::int64_t ends[] = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                                   0};
  if (w.below(4) == 0) return ends[w.below(5)];
  if (w.flip()) return w.between(-2300, 2300);
  const int length = w.between(0, 63);
  return static_cast<std::int64_t>(w.next64()) >> length;
}

}  // namespace

std::vector<array> fill_exponents(sample_class c, const std::vector<dtype>& formats,
                                  const std::vector<shape_list>& shapes, std::uint64_t seed) {
  const dtype t = formats[0];
  word_stream w(seed, 0);
  std::vector<array> all{array(t, shapes[0])};
  array& x = all[0];
  const auto count = static_cast<std::size_t>(x.count());
  for (std::size_t i = 0; i < count; ++i) {
    x.set(i, c == sample_class::near_ties ? near_middle(t, w) : sample(c, t, w));
  }
  if (shapes.size() < 2) return all;
  array n(formats[1], shapes[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n.count()); ++i) {
    const std::uint64_t of = count == 0 ? 0 : x.get(i % count);
    const bool aims = widen(t, of).kind == number_kind::finite && w.below(8) != 0;
    n.set(i, static_cast<std::uint64_t>(aims ? aimed(c, t, of, w) : any_exponent(w)));
  }
  all.push_back(n);
  return all;
}

}  // namespace repdl::reference
