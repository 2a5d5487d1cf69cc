// What is known before the tiles of gradients: gradient_sums, gradient_survey and gradient_join (gradient_tiles.cu).
#pragma once

#include "backends/cuda/attention/attention_backward.cuh"
#include "backends/cuda/attention/staged_tile.cuh"

namespace repdl::cuda {

inline constexpr int chunk_lines = 128;
inline constexpr double most_exponent = 300;  // of what tiles compute the exponentials of

// lse and D of a query. lse and hi are copied to shared memory at once.
struct alignas(16) query_sum {
  double lse, hi, lo, error;

  __device__ double bound() const {
    return (unit_roundoff * num::magnitude_of(hi) + error) * (1 + 0x1p-10);
  }  // of hi alone
};

// Of the lines of a head: the greatest norm, of q and g also the greatest |lse|, bound of D and its error, and then of each column.
struct line_record {
  float norm, logarithm, bound, error;
  float most[most_size], squares[most_size];
};

// Where the records are: of heads of q, of g, of k and of v; of chunks, and joined.
struct record_places {
  std::int64_t query_heads, key_heads, query_chunks, key_chunks;  // heads of all batches

  __host__ __device__ std::int64_t heads() const { return 2 * (query_heads + key_heads); }
  __host__ __device__ std::int64_t chunks() const { return 2 * (query_heads * query_chunks + key_heads * key_chunks); }
  // Of a head among all of these: its chunks.
  __host__ __device__ std::int64_t first_chunk(std::int64_t head) const {
    return head < 2 * query_heads ? head * query_chunks
                                  : 2 * query_heads * query_chunks + (head - 2 * query_heads) * key_chunks;
  }
  __host__ __device__ std::int64_t chunks_of(std::int64_t head) const {
    return head < 2 * query_heads ? query_chunks : key_chunks;
  }
};

inline record_places places_of(std::int64_t query_heads, std::int64_t key_heads, std::int64_t queries,
                               std::int64_t keys) {
  return {query_heads, key_heads, ceil_div(queries, chunk_lines), ceil_div(keys, chunk_lines)};
}

// What is known of a row's columns: the greatest norms of their two lines, |lse|, bound of D and its error. Of keys, which have no lse and D, these
// are of no use.
struct column_facts {
  float norm[2], logarithm, bound, error;
};
template <bool IsKey>
__device__ column_facts facts_of(const record_places& places, const line_record* records, std::int64_t of,
                                 std::int64_t first_head, std::int64_t group) {
  column_facts f{};
  for (std::int64_t h = 0; h < (IsKey ? group : 1); ++h) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const line_record& r = IsKey ? records[which * places.query_heads + first_head + h]
                                   : records[2 * places.query_heads + which * places.key_heads + of];
      f.norm[which] = greater(r.norm, f.norm[which]);
    }
    const line_record& r = records[places.query_heads + first_head + h];
    f.logarithm = greater(r.logarithm, f.logarithm);
    f.bound = greater(r.bound, f.bound);
    f.error = greater(r.error, f.error);
  }
  return f;
}
// The greatest magnitude of number e of the first or second lines of the columns.
template <bool IsKey>
__device__ float most_of(const record_places& places, const line_record* records, std::int64_t of,
                         std::int64_t first_head, std::int64_t group, int which, int e) {
  float most = 0;
  for (std::int64_t h = 0; h < (IsKey ? group : 1); ++h) {
    const line_record& r = IsKey ? records[which * places.query_heads + first_head + h]
                                 : records[2 * places.query_heads + which * places.key_heads + of];
    most = greater(r.most[e], most);
  }
  return most;
}

}  // namespace repdl::cuda
