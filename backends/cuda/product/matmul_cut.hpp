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
enum product_tile { square_tiles, small_tiles, thin_tiles };
struct tile_size {
  int rows, cols, slices;
  std::int64_t shared_bytes;
};
inline constexpr tile_size tile_sizes[thin_tiles] = {{64, 64, 1, 73 << 10}, {32, 32, 4, 110 << 10}};

// Where one operand has few lines (matmul_thin.cu), a block has so many lines of the other one, in so many slices, and so many terms of them between two barriers: 256
// bytes of a line and a slice, or half or a fourth of that.
inline constexpr int most_thin_lines = 32;
inline constexpr int thin_lines = 32;
inline constexpr int thin_slices = 8;
inline constexpr std::int64_t thin_shared_bytes = 176 << 10;
constexpr std::int64_t thin_step_terms(std::size_t element_bytes, std::int64_t few) {
  return thin_slices * (few <= 8 ? 256 : few <= 16 ? 128 : 64) / static_cast<std::int64_t>(element_bytes);
}

// Whether the outputs are computed as dot products.
bool goes_by_dots(const plan::product_plan& p, bool self_test);

struct product_cut {
  int tile;
  int parts;            // blocks that share a tile, each with some of the terms
  std::int64_t steps;   // of panel_k terms in each slice, or of thin_step_terms, of all parts
  std::int64_t height;  // H of the bound
  bool is_proved;       // the bound
  bool swapped;         // thin tiles: it is a that has few lines
};
product_cut cut_product(const plan::product_plan& p, const properties& device);

}  // namespace repdl::cuda
