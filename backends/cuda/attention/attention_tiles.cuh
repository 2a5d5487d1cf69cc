// What is known of a head's keys and values, of some of them in each chunk: before their tiles, by attention_survey, or, where few queries have the keys in parts, by attention_split (attention_tiles.cu).
#pragma once

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/staged_tile.cuh"

namespace repdl::cuda {

inline constexpr int chunk_keys = 128;
inline constexpr int numbers_of_chunk =
    1 + 2 * most_size;  // the greatest norm; of each column the greatest |v_je|, and the sum of squares
inline constexpr double most_score = 300;  // of those that tiles compute the exponentials of

inline std::int64_t chunks_of(std::int64_t keys, std::int64_t parts) {
  return parts != 0 ? parts : std::max<std::int64_t>(ceil_div(keys, chunk_keys), 1);
}

__device__ inline float greatest_norm(const float* statistics, std::int64_t of, std::int64_t chunks) {
  float norm = 0;
  for (std::int64_t c = 0; c < chunks; ++c) {
    norm = greater(statistics[(of * chunks + c) * numbers_of_chunk], norm);
  }
  return norm;
}
struct of_column {
  float most, norm;
};
__device__ inline of_column column_of(const float* statistics, std::int64_t of, std::int64_t chunks, int e) {
  float most = 0, squares = 0;
  for (std::int64_t c = 0; c < chunks; ++c) {
    const float* const from = statistics + (of * chunks + c) * numbers_of_chunk + 1 + e;
    most = greater(from[0], most);
    squares = __fadd_ru(squares, from[most_size]);
  }
  return {most, __fsqrt_ru(squares)};
}

}  // namespace repdl::cuda
