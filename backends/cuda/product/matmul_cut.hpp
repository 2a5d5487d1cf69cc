// How the exact matrix product (matmul.cu) is cut: whether it is one, the tiles of its outputs, the blocks of k, and how the operands
// are packed.
#pragma once

#include <cstdint>

#include "backends/cuda/core/device.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

// Packed operands lie in panels of so many rows by so many terms.
inline constexpr int panel_rows = 64;
inline constexpr int panel_k = 16;
inline constexpr int panel_size = panel_rows * panel_k;
inline constexpr int pack_k = 64;  // terms of a step of a block that packs

// Where the bound of the binary64 tier is proved (matmul.cu).
inline constexpr std::int64_t greatest_k = std::int64_t{1} << 26;
inline constexpr std::int64_t greatest_height = std::int64_t{1} << 20;

// Outputs of a block.
struct tile_size {
  int rows, cols;
};
inline constexpr tile_size large_tile_size{64, 128};
inline constexpr tile_size small_tile_size{64, 64};

// Whether the outputs are computed as dot products.
bool goes_by_dots(const plan::product_plan& p, bool self_test);

struct operand_cut {
  std::int64_t batches;     // 1 when every batch uses the same matrix
  std::int64_t row_panels;  // whole tiles
  int splits;               // of k, packed by a block each
};
struct product_cut {
  bool large;  // tiles
  operand_cut operand[2];
  std::int64_t k_panels;
  std::int64_t block_panels;  // panels of k whose sums are added up before they meet the others'
  std::int64_t height;        // H of the bound
  bool is_proved;             // the bound

  constexpr tile_size tile() const { return large ? large_tile_size : small_tile_size; }
};
product_cut cut_product(const plan::product_plan& p, const properties& device);

inline constexpr int repair_warps = 8;  // of a block of the repairing kernel
// Bytes of the bitmap of undecided outputs that one of them looks at together.
int repair_span(std::int64_t rows, std::int64_t bytes_per_row, const properties& device);

}  // namespace repdl::cuda
