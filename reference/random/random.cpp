// What is made of Philox words (contract, section 6).
#include <algorithm>

#include "reference/structured/structured.hpp"

namespace repdl::reference {

array uniform(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::uint64_t low,
              std::uint64_t high, outcomes* where) {
  array out(t, shape);
  // u = j / 2^bits; low + (high - low) u = (low (2^bits - j) + high j) / 2^bits, an integer in units of 2^-1074.
  const int bits = format_of(t).precision;
  constexpr int unit = -1074;
  mpz_t end[2], term[2], one;
  mpz_inits(end[0], end[1], term[0], term[1], nullptr);
  mpz_init_set_ui(one, 1);
  const std::uint64_t ends[2] = {low, high};
  for (int e = 0; e < 2; ++e) {
    const number v = widen(dtype::f64, ends[e]);
    mpz_set_ui(end[e], v.significand);
    if (v.kind == number_kind::finite) mpz_mul_2exp(end[e], end[e], static_cast<mp_bitcnt_t>(v.exponent - unit));
    if (v.negative) mpz_neg(end[e], end[e]);
  }
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    const std::uint64_t j = t == dtype::f64 ? wide_word(philox(seed, stream, n / 2), static_cast<int>(n % 2)) >> 11
                                            : philox(seed, stream, n / 4).w[n % 4] >> (32 - bits);
    mpz_mul_ui(term[0], end[0], (std::uint64_t{1} << bits) - j);
    mpz_mul_ui(term[1], end[1], j);
    mpz_add(term[0], term[0], term[1]);
    out.set(n, round_integer(t, term[0], unit - bits));
    if (where != nullptr) where->push_back(locate(t, term[0], one, unit - bits));
  }
  mpz_clears(end[0], end[1], term[0], term[1], one, nullptr);
  return out;
}

array permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> v;
  for (std::int64_t i = 0; i < n; ++i)
    v.emplace_back(wide_word(philox(seed, stream, static_cast<std::uint64_t>(i) / 2), static_cast<int>(i % 2)), i);
  std::sort(v.begin(), v.end());
  array out(dtype::i64, {n});
  for (std::size_t i = 0; i < v.size(); ++i) out.set(i, static_cast<std::uint64_t>(v[i].second));
  return out;
}

}  // namespace repdl::reference
