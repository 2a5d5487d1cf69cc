// Draws in proportion to weights: sums of integers, keys in MPFR.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "reference/numbers/real.hpp"
#include "reference/random/philox.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

mpq_class weight(const array& x, std::size_t i) {
  const number w = widen(x.type, x.get(i));
  if (w.kind == number_kind::zero) return 0;
  if (w.kind != number_kind::finite || w.negative) throw std::invalid_argument("reference: no weight");
  return mpq_class(mpz_class(static_cast<unsigned long>(w.significand))) * power_of_two(w.exponent);
}

/// W_{i mod 2} of block i div 2.
mpz_class word(std::uint64_t seed, std::uint64_t stream, std::size_t i) {
  return mpz_class(static_cast<unsigned long>(wide_word(philox(seed, stream, i / 2), static_cast<int>(i % 2))));
}

}  // namespace

array multinomial(const array& x, std::int64_t samples, bool replacement, std::uint64_t seed, std::uint64_t stream,
                  outcomes* where) {
  const bool one = x.shape.size() == 1;
  const std::size_t rows = one ? 1 : index(x.shape[0]), n = index(x.shape.back()), k = index(samples);
  array out(dtype::i64, one ? shape_list{samples} : shape_list{x.shape[0], samples});
  for (std::size_t r = 0; r < rows; ++r) {
    if (replacement) {
      std::vector<mpq_class> sums;
      mpq_class sum = 0;
      for (std::size_t i = 0; i < n; ++i) sums.push_back(sum += weight(x, r * n + i));
      for (std::size_t j = 0; j < k; ++j) {
        const mpq_class t = sum * word(seed, stream, r * k + j) * power_of_two(-64);
        const auto at = std::upper_bound(sums.begin(), sums.end(), t);
        if (at == sums.end()) throw std::invalid_argument("reference: weights are 0");
        out.set(r * k + j, static_cast<std::uint64_t>(at - sums.begin()));
      }
      continue;
    }
    std::vector<std::pair<std::uint64_t, std::size_t>> keys;
    for (std::size_t i = 0; i < n; ++i) {
      const mpq_class w = weight(x, r * n + i);
      if (w == 0) continue;
      const mpq_class u = (word(seed, stream, r * n + i) + 1) * power_of_two(-64);
      outcome o;
      const auto f = [&](mpfr_prec_t p) { return -log(interval(p, u)) / interval(p, w); };
      keys.emplace_back(u == 1 ? 0 : decide(dtype::f64, f, &o), i);
      if (where != nullptr) where->push_back(o);
    }
    if (keys.size() < k) throw std::invalid_argument("reference: too many weights are 0");
    std::sort(keys.begin(), keys.end());
    for (std::size_t j = 0; j < k; ++j) out.set(r * k + j, keys[j].second);
  }
  return out;
}

}  // namespace repdl::reference
