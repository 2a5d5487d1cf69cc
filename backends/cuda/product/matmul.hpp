// Private to matmul*.cu and residue_*.cu: the exact product, as its kernels see it.
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
  std::int64_t rows;
  std::int64_t k;
  std::int64_t row_stride;
  std::int64_t k_stride;
  std::int64_t batches;  // 1 when every batch uses the same matrix
  strided_axes<1> batch;

  // The matrix of a batch among those that there are.
  __host__ __device__ std::int64_t matrix_of(std::int64_t b) const { return batches == 1 ? 0 : b; }
};

#if defined(__CUDACC__)
template <class T>
__device__ const T* batch_of(const operand_source& s, std::int64_t batch) {
  return static_cast<const T*>(s.data) + s.batch.offset<0>(batch);
}
#endif

// What is known of the lines of an operand whose residues are there (librepdl/num/residues.hpp).
struct residue_lines {
  double* squares;    // of a line, per batch and row; `count` of them, then as many of what rounding took
  unsigned* lattice;  // likewise: 1024 - lsb; 0: there are zeros only
  std::int64_t count;
  double limit;  // of norms of integers

#if defined(__CUDACC__)
  // At least the norm, and at most 1 + 2^-19 times that: N additions of exact squares fall short by N 2^-53 at most, N < 2^17; m to binary32, and its root, by
  // 2^-24 each.
  static __device__ double norm_of(double squares) {
    if (!(squares > 0 && squares < num::infinity)) return squares;
    const std::uint64_t bits = num::bits_of(squares);  // a normal number: at least 2^-298
    const int half = (static_cast<int>(bits >> 52) - 1023) >> 1;
    const auto m = static_cast<float>(num::double_of(bits - (static_cast<std::uint64_t>(std::int64_t{half}) << 53)));
    return static_cast<double>(num::sqrt(m)) * num::power_of_two(half) * (1 + 0x1p-20);
  }
  __device__ double norm(std::int64_t line) const { return norm_of(squares[line]); }
  __device__ double residual(std::int64_t line) const { return norm_of(squares[count + line]); }
  __device__ int lsb(std::int64_t line) const {
    const unsigned known = lattice[line];
    return known == 0 ? num::no_lsb : 1024 - static_cast<int>(known);
  }
  __device__ num::residue_line operator[](std::int64_t line) const {
    const double a = norm(line);
    return {a, residual(line), num::residue_shift(limit, a), lsb(line)};
  }
#endif
};

// What is known on the device alone: whether residues (residues.hpp) decide enough to be worth it, of normally distributed sums about `scale` times the
// mean ratios stays open; else the engine of binary64 makes the product. And how many outputs they left open: few are repaired, and where many cancel, the
// engine of binary64 makes all of them again.
struct residue_choice {
  const double* ratios;  // of a, of b: the sums of residual / norm over lines; null: there are no residues
  double scale_a, scale_b;
  double most_open;
  counter* open;
  counter few;  // at most: a list has room for them

#if defined(__CUDACC__)
  __device__ bool goes_by_residues() const {
    return ratios != nullptr && ratios[0] * scale_a + ratios[1] * scale_b < most_open;
  }
  __device__ bool wants_binary64() const { return !goes_by_residues() || *open > few; }
#endif
};

struct listed_output {
  std::uint32_t row, col;  // rows of all batches
};

struct product {
  operand_source source_a;
  operand_source source_b;
  residue_choice choice;
  // Of a product by residues. Where an operand's terms are not side by side, the repair has a copy in which they are.
  residue_lines lines_a, lines_b;
  operand_source near_a, near_b;
  bool near_packed;     // their lines begin at multiples of 16 bytes
  listed_output* list;  // what is left, if it is little (choice)
  std::int64_t m, n, k, batches;
  dtype type;      // of the output and the bias
  bool is_scaled;  // alpha a b + beta bias
  double alpha, beta;
  const void* bias;  // null: none
  std::int64_t bias_row, bias_col;
  void* out;
  std::int64_t out_row, out_col;
  strided_axes<2> batch;  // of the output, of the bias
  tier first_tier;
};

// matmul_tiles.cu: the engine of binary64, with all tiers.
void launch_tiles(const product& p, const product_cut& cut, const job& j);
// matmul_thin.cu: the same, of which launch_tiles makes use where one operand has few lines.
void launch_thin(product p, const product_cut& cut, const job& j);
// matmul_repair.cu: the later tiers for what residues left, if it is little.
void launch_repair(const product& p, const job& j);

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
