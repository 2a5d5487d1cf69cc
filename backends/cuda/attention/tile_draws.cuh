// Which weights of a tile are dropped (num::attention_draws), by the lanes of a warp as the matrix instruction leaves them.
#pragma once

#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/attention/attention.hpp"

namespace repdl::cuda {

// The words of a block that are not below the threshold: bit i.
__device__ inline unsigned kept_words(const num::attention_draws& draws, std::uint64_t block) {
  const num::philox_block words = num::philox(draws.seed, draws.stream, block);
  const auto last_dropped = static_cast<std::uint32_t>(draws.threshold - 1);
  unsigned kept = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) kept |= words.w[i] > last_dropped ? 1u << i : 0u;
  return kept;
}

// Of a lane with rows r and r + 8 of a tile, r = lane / 4, and columns 2 t and 2 t + 1 of eight, t = lane % 4: bit 2 h + c of the pair of row r + 8 h and
// column 2 t + c. pair[h]: the number of the pair of row r + 8 h with column 0 of the eight; along: from one column to the next, 1 where rows are
// queries, else the number of keys. All lanes ask. Where that is a multiple of four, four pairs of which lanes that lie side by side have the
// words are those of one block: each lane makes one for all of them.
template <bool IsKey>
__device__ unsigned kept_pairs(const num::attention_draws& draws, const std::uint64_t (&pair)[2], std::uint64_t along,
                               bool by_fours) {
  const int lane = lane_of_thread(), t = lane % 4;
  unsigned kept = 0;
  if (!by_fours) {
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t n = (i < 2 ? pair[0] : pair[1]) + static_cast<std::uint64_t>(2 * t + i % 2) * along;
      kept |= (kept_words(draws, n >> 2) >> (n & 3) & 1) << i;
    }
  } else if constexpr (IsKey) {
    // Lanes whose rows are 4 m to 4 m + 3: number i makes the block of row 4 m + 8 (i / 2) and column 2 t + i % 2.
    const int mine = lane / 4 % 4;
    const std::uint64_t n = (mine < 2 ? pair[0] : pair[1]) + static_cast<std::uint64_t>(2 * t + mine % 2) * along;
    const unsigned words = kept_words(draws, n >> 2);
#pragma unroll
    for (int by = 0; by < 4; ++by) {
      const unsigned other = by == 0 ? words : __shfl_xor_sync(full_warp, words, 4 * by);
      kept |= (other >> mine & 1) << (mine ^ by);
    }
  } else {
    // Lanes 2 m and 2 m + 1: the first makes the block of row r, the second that of row r + 8.
    const std::uint64_t n = (t % 2 == 0 ? pair[0] : pair[1]) + static_cast<std::uint64_t>(2 * t);
    const unsigned words = kept_words(draws, n >> 2), other = __shfl_xor_sync(full_warp, words, 1);
    const unsigned of_first = t % 2 == 0 ? words : other, of_second = t % 2 == 0 ? other : words;
    const int place = 2 * (t % 2);
    kept = (of_first >> place & 3) | (of_second >> place & 3) << 2;
  }
  return kept;
}

}  // namespace repdl::cuda
