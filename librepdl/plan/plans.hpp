// What a backend is given: validated, normalised descriptions of one call. Plain data; strides in elements.
//
// Everything here was checked at the API boundary: shapes agree, pointers are aligned and on the right device, outputs
// do not overlap anything that the operation does not allow. Axes of size 1 are gone and neighbouring axes are merged
// where the strides allow it, so a contiguous tensor has rank 1 (rank 0: a single element). Plans with nothing to
// compute are not handed to a backend.
#pragma once

#include <array>
#include <cstdint>

#include "librepdl/ops/registry.hpp"
#include "librepdl/options.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::plan {

using axes = std::array<std::int64_t, max_rank>;

/// Elementwise: out[i] = op(in[0][i], ...) over `rank` axes, row-major, the last one innermost (it is the output's most
/// contiguous one). Broadcast inputs have stride 0.
struct map_plan {
  ops::op_id op;
  int arity;
  int rank;
  std::int64_t count;  // the product of shape
  axes shape;
  struct operand {
    const void* data;
    axes stride;
  } in[3];
  void* out;
  axes out_stride;
  dtype in_type;
  dtype out_type;
};

/// Reductions: for every index of the kept axes, reduce over all indices of the reduced axes.
/// sum, mean, max, min: out f32. argmax, argmin: out i64, the row-major index within the reduced axes as the caller
/// gave them (merging axes keeps it). dot: two inputs, the terms are their products.
struct reduce_plan {
  ops::op_id op;
  int inputs;  // 1, or 2 for dot
  int kept_rank;
  int reduced_rank;
  std::int64_t outputs;  // the product of kept_shape, >= 1
  std::int64_t length;   // the product of reduced_shape, may be 0 (sum, mean, dot)
  axes kept_shape;
  axes reduced_shape;  // row-major, in the order of the input's axes
  struct operand {
    const float* data;
    axes kept_stride;
    axes reduced_stride;
  } in[2];
  void* out;
  axes out_stride;  // along the kept axes
};

using accumulate_kind = repdl::accumulate;

/// out[b][i][j] = sum_k a[b][i][k] * b[b][k][j] + bias[b][i][j]; transposition is in the strides.
struct matmul_plan {
  accumulate_kind accumulate;
  int batch_rank;
  std::int64_t batches;  // the product of batch_shape, >= 1
  axes batch_shape;
  std::int64_t m, n, k;  // k may be 0
  struct matrix {
    const float* data;  // null: no bias
    axes batch_stride;  // 0 where broadcast
    std::int64_t row;   // stride from one row to the next
    std::int64_t col;
  } a, b, bias;
  float* out;
  axes out_batch_stride;
  std::int64_t out_row, out_col;
};

/// Philox (contract, section 6). Element i is the row-major logical index in `shape`.
struct random_plan {
  ops::op_id op;  // uniform, permutation
  std::uint64_t seed;
  std::uint64_t stream;
  std::int64_t count;
  int rank;
  axes shape;
  void* out;
  axes out_stride;
  dtype out_type;  // permutation: i64
  double low, high;
};

}  // namespace repdl::plan
