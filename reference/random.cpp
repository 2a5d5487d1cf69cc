// Philox4x32-10 and what is made of it (contract, section 6).
#include <algorithm>
#include <numeric>

#include "reference/structured.hpp"

namespace repdl::reference {

philox_block philox(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]) {
  std::uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
  std::uint32_t k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t q = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t d[4] = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q),
                                static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p)};
    std::copy_n(d, 4, c);
    k[0] += 0x9E3779B9;  // the golden ratio's fraction
    k[1] += 0xBB67AE85;  // that of sqrt(3)
  }
  return {{c[0], c[1], c[2], c[3]}};
}

philox_block philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  const std::uint32_t counter[4] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                    static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  const std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  return philox(counter, key);
}

std::uint64_t wide_word(const philox_block& b, int r) {
  return b.w[2 * r] + (std::uint64_t{b.w[2 * r + 1]} << 32);
}

array uniform(dtype t, const shape_list& shape, std::uint64_t seed, std::uint64_t stream, std::uint64_t low,
              std::uint64_t high, outcomes* where) {
  array out(t, shape);
  // u = j / 2^bits; low + (high - low) u = (low (2^bits - j) + high j) / 2^bits, an integer in units of 2^-1074.
  const int bits = t == dtype::f16 ? 11 : t == dtype::bf16 ? 8 : t == dtype::f32 ? 24 : 53;
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
