// Weights of draws: finite, none negative, and enough of them positive.
#include "reference/numbers/format.hpp"
#include "reference/samples.hpp"

namespace repdl::reference {

array fill_weights(sample_class c, dtype t, const shape_list& shape, std::int64_t positive, std::uint64_t seed) {
  array x = fill(c, t, shape, seed, 0);
  const format& f = format_of(t);
  const std::size_t n = index(shape.back());
  for (std::size_t i = 0; i < index(x.count()); ++i) {
    std::uint64_t w = x.get(i) & ~f.sign_bit();
    if ((w & f.infinity()) == f.infinity()) w ^= std::uint64_t{1} << (f.precision - 1);
    x.set(i, w);
  }
  for (std::size_t first = 0; first < index(x.count()); first += n) {
    std::int64_t missing = positive;
    for (std::size_t i = 0; i < n; ++i) missing -= x.get(first + i) != 0 ? 1 : 0;
    for (std::size_t i = n; i-- > 0 && missing > 0;) {
      if (x.get(first + i) != 0) continue;
      x.set(first + i, 1 + i % 3);
      --missing;
    }
  }
  return x;
}

}  // namespace repdl::reference
