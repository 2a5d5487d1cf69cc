// The blocked matrix product that matmul runs on, and convolution after it: what its driver (gemm.cpp, compiled once)
// and its kernels (gemm_loops.hpp, compiled per instruction set) say to each other. Neither knows how operands are
// stored: a kernel family names a Problem type (gemm_loops.hpp), and `operands` is what that type is made from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

// out[batch] (m x n) = a[batch] (m x k) * b[batch] (k x n), with what the Problem adds to it.
struct gemm_problem {
  std::int64_t batches, m, n, k;
  bool shared_b;  // b is the same for every batch
  const void* operands;
  tier first_tier;
  bool blocks_pack = false;  // blocks pack their columns themselves, a slice of k at a time: for a long k, or few rows
};

// The columns of b are packed in panels of gemm_kernels::columns: panel[k][column], zeros behind the last column. Beside each
// column: its norm and the value of its least significant bit, or what the engine sees of it instead (gemm_loops.hpp).
struct packed_columns {
  void* panels;  // of numbers of gemm_kernels::number_bytes
  double* norm;
  double* lowest_bit;
};

// One block of the output, computed by one worker.
struct gemm_block {
  std::int64_t batch;
  std::int64_t row, rows;        // rows <= gemm_kernels::row_block
  std::int64_t column, columns;  // column is a multiple of gemm_kernels::columns, counted from the problem's column 0
  packed_columns b;              // from `column` on, if the driver packs them
  void* scratch;                 // of this worker: gemm_kernels::scratch_bytes(columns, k), 256-byte aligned
};

struct tier_counts {
  std::int64_t elements[4] = {};
};

struct gemm_kernels {
  int rows;          // of a register tile
  int columns;       // of a register tile, and of a panel of b
  int vector;        // the columns that a tile is narrowed by
  int row_block;     // the most rows of a block: its packed rows stay in the second-level cache
  int number_bytes;  // of a packed number: binary32 or binary64
  std::size_t (*scratch_bytes)(std::int64_t columns, std::int64_t k) noexcept;
  // Packs the panel of columns [column, column + columns) of one batch.
  void (*pack_panel)(const gemm_problem&, std::int64_t batch, std::int64_t column, const packed_columns& to) noexcept;
  // Not noexcept, though nothing throws: the landing pads of clang's noexcept functions call a helper that has no
  // instruction set in its name.
  tier_counts (*multiply)(const gemm_problem&, const gemm_block&);
};

/// How a product is cut.
struct gemm_blocking {
  int threads;
  std::int64_t columns;  // packed at a time, of each batch in a group; a multiple of a panel
  std::int64_t group;    // batches whose b is packed at a time
  std::int64_t packs;    // copies of b in a group: 1 where it is shared
  std::int64_t block_rows;
  std::int64_t block_columns;
  plan::checked_size panel_bytes;    // all packed panels
  plan::checked_size summary_bytes;  // norms; as many again for the least significant bits
  plan::checked_size scratch_bytes;  // of one worker

  gemm_blocking(const gemm_problem&, const gemm_kernels&, int most_threads) noexcept;
  /// Of workspace.
  plan::checked_size bytes() const noexcept {
    return panel_bytes + summary_bytes + summary_bytes + plan::checked_size::product(threads, scratch_bytes);
  }

 private:
  // Blocks that pack their own columns.
  void divide(const gemm_problem&, const gemm_kernels&) noexcept;
};
void run_gemm(const gemm_problem&, const gemm_kernels&, const gemm_blocking&, void* workspace, counters&) noexcept;

}  // namespace repdl::cpu
