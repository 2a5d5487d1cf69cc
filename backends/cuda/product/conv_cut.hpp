// How the products of a convolution (conv.hpp) are cut: the shapes of tiles that there are, which one a product takes, and which of
// its tiles are cut into parts of their sums.
#pragma once

#include <cstdint>

#include "backends/cuda/core/device.hpp"
#include "librepdl/num/platform.hpp"

namespace repdl::cuda::conv {

inline constexpr int panel_k = 16;       // terms of a step
inline constexpr int block_panels = 16;  // steps before the sums are put aside

REPDL_HD constexpr int least_of(int a, int b) { return a < b ? a : b; }
REPDL_HD constexpr int greatest_of(int a, int b) { return a > b ? a : b; }

// A block of warps_m x warps_n warps computes a tile of (warps_m 16 m_tiles) x (warps_n 8 n_tiles) outputs. A lane
// has 2 m_tiles rows of a and n_tiles columns of b; so that it reads up to four neighbouring ones at once, row q of
// lane (g, t) is q / V * 8 V + g V + q % V of its warp's, V = min(4, 2 m_tiles), and columns likewise.
template <int WarpsM, int WarpsN, int MTiles, int NTiles, int Stages, int Blocks>
struct tile_shape {
  static constexpr int warps_m = WarpsM;
  static constexpr int warps_n = WarpsN;
  static constexpr int m_tiles = MTiles;
  static constexpr int n_tiles = NTiles;
  static constexpr int stages = Stages;
  static constexpr int blocks = Blocks;       // per multiprocessor
  static constexpr bool ahead = Blocks <= 2;  // registers to spare for places loaded early
  static constexpr int threads = WarpsM * WarpsN * 32;
  static constexpr int rows = WarpsM * MTiles * 16;
  static constexpr int cols = WarpsN * NTiles * 8;
  static constexpr int lines = rows + cols;
  static constexpr int row_vector = least_of(4, 2 * MTiles);
  static constexpr int col_vector = least_of(4, NTiles);
  static constexpr int lane_sums = MTiles * NTiles * 4;
  static constexpr int sums = lane_sums * threads;

  REPDL_HD static int row(int q, int g) { return q / row_vector * 8 * row_vector + g * row_vector + q % row_vector; }
  REPDL_HD static int col(int q, int c) { return q / col_vector * 8 * col_vector + c * col_vector + q % col_vector; }
};
using wide_tile = tile_shape<1, 4, 4, 4, 3, 2>;    // 64 x 128
using square_tile = tile_shape<2, 2, 2, 4, 3, 3>;  // 64 x 64
using flat_tile = tile_shape<1, 4, 1, 8, 3, 2>;    // 16 x 256
using small_tile = tile_shape<1, 4, 1, 1, 4, 4>;   // 16 x 32

// Their numbers: kernel_choice::tile.
enum tile_kind { wide_tiles, square_tiles, flat_tiles, small_tiles, tile_kinds };
struct tile_figures {
  int rows, cols, sums, lines, blocks;
  double efficiency;  // estimated, relative to the tensor cores' peak; only decides between shapes
};
template <class T>
constexpr tile_figures figures(double efficiency) {
  return {T::rows, T::cols, T::sums, T::lines, T::blocks, efficiency};
}
inline constexpr tile_figures tile_shapes[tile_kinds] = {figures<wide_tile>(0.70), figures<square_tile>(0.60),
                                                         figures<flat_tile>(0.40), figures<small_tile>(0.15)};

// Products of the same size: the greatest that any of them has.
struct product_size {
  std::int64_t m, n, k;
  std::int64_t products;
};

// A tile (rows x cols outputs) of a product is a block's work, or, of the last tiles, which do not fill the device, a
// part of k is; their sums meet in the workspace.
struct schedule {
  int tile;  // which of tile_shapes
  std::int64_t row_tiles, col_tiles;
  std::int64_t whole;  // tiles computed by one block each
  std::int64_t split;  // tiles computed by `parts` blocks each
  int parts;
  std::int64_t height;      // H of the bound (conv_product.cu)
  double* partial;          // [split][parts][sums of a tile]
  double* partial_summary;  // [split][parts][rows + cols][2]
};
schedule plan_product(const product_size& p, const properties& device);
// Whether the bound of the binary64 tier is proved for sums of k terms.
bool is_proved(const schedule& s, std::int64_t k);
// What the best shape of tiles takes for a term of m x n outputs, in arbitrary units.
double tile_cost(std::int64_t m, std::int64_t n);

// How undecided outputs are repaired: of those in a list, which has room for `capacity`, each in `chunks` parts of k.
struct repair_cut {
  std::int64_t chunks;
  std::int64_t capacity;
};
repair_cut cut_repair(const product_size& p);

// accumulate::fma_chain: R of the kernel whose blocks compute 16 R x 16 R outputs: 8, 4, 2 or 1. The chain of an output is one
// thread's: small tiles where there are few outputs.
int chain_width(const product_size& p, const properties& device);

}  // namespace repdl::cuda::conv
