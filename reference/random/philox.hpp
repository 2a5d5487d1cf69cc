// Philox4x32-10 (Salmon et al., SC 2011), written from the paper.
#pragma once

#include <cstdint>

namespace repdl::reference {

/// Words w0 .. w3.
struct philox_block {
  std::uint32_t w[4];
};
philox_block philox(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]);
/// Counter (block, stream) and key (seed) as in section 6 of the contract.
philox_block philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t block);
/// w_{2r} + 2^32 w_{2r+1}.
std::uint64_t wide_word(const philox_block& b, int r);

}  // namespace repdl::reference
