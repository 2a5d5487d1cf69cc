#include "reference/random/philox.hpp"

#include <algorithm>

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

std::uint64_t wide_word(const philox_block& b, int r) { return b.w[2 * r] + (std::uint64_t{b.w[2 * r + 1]} << 32); }

}  // namespace repdl::reference
