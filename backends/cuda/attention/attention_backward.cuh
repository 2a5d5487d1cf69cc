// What the kernels of attention's gradients share.
#pragma once

#include "backends/cuda/attention/attention.cuh"
#include "librepdl/ops/attention/attention_backward.hpp"

namespace repdl::cuda {

// Rows are the queries of all heads of q, then the keys of all heads of k.
template <class T>
struct gradient_geometry {
  num::attention_operands<T> of;  // of the first batch
  T *grad_q, *grad_k, *grad_v;
  std::int64_t batches, heads, key_heads;
  num::attention_steps grad_q_at, grad_k_at, grad_v_at;
  strided_axes<10> batch;  // of q, k, v, g, y, mask, lse, grad_q, grad_k, grad_v

  __host__ __device__ std::int64_t query_rows() const { return batches * heads * of.queries; }
  __host__ __device__ std::int64_t key_rows() const { return batches * key_heads * of.keys; }
  __host__ __device__ std::int64_t rows() const { return query_rows() + key_rows(); }
};

// A row's bits, of results that are not decided yet: words of grad_q or grad_k, then of grad_v.
struct gradient_bits {
  std::uint32_t* words;
  std::int64_t first, all;  // words of grad_q or grad_k; of a row

  __device__ bool is_open(std::int64_t row, std::int64_t e, std::int64_t size) const {
    const std::int64_t bit = e < size ? e : 32 * first + (e - size);
    return (words[row * all + bit / 32] >> (bit % 32) & 1) != 0;
  }
};

// gradient_tiles.cu: whether a call is for it, the numbers of binary64, for sums and for lines, and of binary32 that it takes, and its launches.
bool is_for_gradient_tiles(const plan::attention_plan&, const properties&);
std::int64_t sums_of_gradient_tiles(const plan::attention_plan&);
std::int64_t packed_of_gradient_tiles(const plan::attention_plan&);
std::int64_t statistics_of_gradient_tiles(const plan::attention_plan&);
// Rows with bits, of each head of keys: of queries, of which there are `most_queries`, and of keys.
struct open_rows {
  std::int64_t* rows;
  int* counts;
  std::int64_t most_queries, most_keys, heads;

  __device__ std::int64_t* list(bool is_key, std::int64_t of) const {
    return rows + (is_key ? heads * most_queries + of * most_keys : of * most_queries);
  }
};
template <class T>
void enqueue_gradient_tiles(const gradient_geometry<T>&, bool by_first, double* sums, double* packed, float* statistics,
                            const gradient_bits&, const open_rows&, const job&);
// gradient_second.cu: decides most of what these leave, and takes the bits away.
template <class T>
void enqueue_gradient_second(const gradient_geometry<T>&, const double* sums, const float* statistics,
                             const gradient_bits&, const open_rows&, const job&);

}  // namespace repdl::cuda
