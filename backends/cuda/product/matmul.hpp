// Private to matmul*.cu: the operands of the exact product after packing.
#pragma once

#include <cstdint>

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/drivers.hpp"
#include "backends/cuda/product/line_summary.cuh"
#include "backends/cuda/product/matmul_cut.hpp"
#include "librepdl/num/residues.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {

// One operand of a product, seen as rows of length k: A as it is, B transposed.
struct operand_source {
  const void* data;
  dtype type;
  bool second;  // packed as b
  std::int64_t rows;
  std::int64_t row_panels;  // whole tiles
  std::int64_t k;
  std::int64_t row_stride;
  std::int64_t k_stride;
  std::int64_t batches;  // 1 when every batch uses the same matrix
  strided_axes<1> batch;
};

// The same as binary64 panels (mma.cuh): panel (r, c) of a batch is number r * k_panels + c. Zero padding.
struct operand_panels {
  double* data;
  std::int64_t row_panels;
  std::int64_t k_panels;
  std::int64_t batches;
  line_bounds lines;  // per batch and row (row_panels * 64 of them)

  __host__ __device__ std::int64_t padded_rows() const { return row_panels * 64; }
  __host__ __device__ std::int64_t batch(std::int64_t b) const { return batches == 1 ? 0 : b; }
};

// Each element is looked at once, while it waits for memory.
using lane_of_line = lane_summary<double, exact_lattice>;
using summary = line_summary<exact_lattice>;

#if defined(__CUDACC__)
template <class T>
__device__ const T* batch_of(const operand_source& s, std::int64_t batch) {
  return static_cast<const T*>(s.data) + s.batch.offset<0>(batch);
}
#endif

// What is known on the device alone: whether residues (residues.hpp) decide enough to be worth it, of normally distributed sums about `scale` times the
// mean ratios stays open; else the engine of binary64 makes the product. And how many outputs they left open: few are repaired with the operands
// that the caller has, many, which cancel, with panels.
struct residue_choice {
  const double* ratios;  // of a, of b: the sums of residual / norm over lines; null: there are no residues
  double scale_a, scale_b;
  double most_open;
  const counter* open;
  counter few;

#if defined(__CUDACC__)
  __device__ bool goes_by_residues() const {
    return ratios != nullptr && ratios[0] * scale_a + ratios[1] * scale_b < most_open;
  }
  __device__ bool wants_panels() const { return !goes_by_residues() || *open > few; }
#endif
};

operand_source source_of(const plan::product_plan& p, bool second, const operand_cut& cut);
void take_panels(operand_panels& p, const operand_source& s, carver& c);
// Launches: panels and what is known of their lines, from the source. `parts`: per k-split, batch and row.
void pack(const operand_source& s, const operand_panels& to, summary* parts, int splits, const residue_choice& choice,
          const job& j);

struct product {
  operand_panels a;
  operand_panels b;
  operand_source source_a;
  operand_source source_b;
  residue_choice choice;
  const num::residue_line* residue_lines[2];
  std::int64_t m, n, k, batches;
  dtype type;      // of the output and the bias
  bool is_scaled;  // alpha a b + beta bias
  double alpha, beta;
  const void* bias;  // null: none
  std::int64_t bias_row, bias_col;
  void* out;
  std::int64_t out_row, out_col;
  strided_axes<2> batch;      // of the output, of the bias
  std::int64_t block_panels;  // panels of k per block
  std::int64_t height;        // H above
  tier first_tier;
  std::uint32_t* undecided;  // [batch][row][words_per_row], a bit per output
  std::int64_t words_per_row;
};

// matmul_repair.cu: launches the double-double and exact tiers for the outputs that `undecided` marks; with the operands as panels, where residues left
// the product to binary64, and with what the caller has, where they did not.
void repair(const product& p, const job& j);
void repair_residues(const product& p, const job& j);

#if defined(__CUDACC__)
template <class T>
struct batch_pointers {
  const T* bias;
  T* out;

  __device__ batch_pointers(const product& p, std::int64_t batch) {
    std::int64_t offset[2];
    p.batch.locate(batch, offset);
    out = static_cast<T*>(p.out) + offset[0];
    bias = p.bias == nullptr ? nullptr : static_cast<const T*>(p.bias) + offset[1];
  }
};

__device__ inline void load_pair(const double* from, double& x, double& y) {
  const double2 v = *reinterpret_cast<const double2*>(from);
  x = v.x;
  y = v.y;
}
#endif

// f.template operator()<T, Scaled>() for the kernels of a product: narrower formats than f32 are always scaled.
template <class F>
void with_kernels(const product& p, const F& f) {
  ops::for_each_format<ops::NARROW>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    if (!std::is_same_v<T, float> || p.is_scaled) return f.template operator()<T, true>();
    if constexpr (std::is_same_v<T, float>) f.template operator()<T, false>();
  });
}

// fma_chain.cu: out = the f32 fma chain over ascending k.
void prepare_fma_chain(const plan::product_plan& p, const job& j, dispatch::task& t);

}  // namespace repdl::cuda
