// How the exact matrix product in binary64 (matmul_tiles.cu) is cut: whether it is one, the tiles of its outputs, and the parts of its terms.
#pragma once

#include <cstdint>

#include "backends/cuda/core/device.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

inline constexpr int panel_k = 16;       // terms that a warp multiplies between two barriers
inline constexpr int block_panels = 16;  // whose sums are added up before they meet the others'

// Where the bound of the binary64 tier is proved (matmul_tiles.cu).
inline constexpr std::int64_t greatest_k = std::int64_t{1} << 26;
inline constexpr std::int64_t greatest_steps =
    std::int64_t{1} << 20;  // of a part: 2^22 terms of a lane, 4 in a step (line_summary.cuh), and H <= 2^20

// Tiles of outputs, in how many slices a block's warps share the terms, and the shared memory that it needs, at least.
enum product_tile { square_tiles, small_tiles, product_tile_count };
struct tile_size {
  int rows, cols, slices;
  std::int64_t shared_bytes;
};
inline constexpr tile_size tile_sizes[product_tile_count] = {{64, 64, 1, 73 << 10}, {32, 32, 4, 110 << 10}};

// Whether the outputs are computed as dot products.
bool goes_by_dots(const plan::product_plan& p, bool self_test);

struct product_cut {
  int tile;
  int parts;            // blocks that share a tile, each with some of the terms
  std::int64_t steps;   // of panel_k terms in each slice, of all parts
  std::int64_t height;  // H of the bound
  bool is_proved;       // the bound
};
product_cut cut_product(const plan::product_plan& p, const properties& device);

}  // namespace repdl::cuda
