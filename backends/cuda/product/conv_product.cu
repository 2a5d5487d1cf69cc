// The binary64 tier of convolutions: an implicit product on the fp64 tensor cores.
//
// Method: elements are gathered from the tensors by asynchronous copies of binary32 numbers into shared memory, zeros
// where they are absent, and become binary64 operands of the matrix instruction on the way to its registers. The norms
// and lattices of the rows and columns are collected from the same registers. Products of 24-bit factors are exact, so
// what is rounded are additions, and a rounding test decides most outputs (certify.hpp); the others are marked for
// conv_repair.cu.
//
// Error, under the assumptions (D1), (D2) of mma.cuh: a chain of at most L = 256 additions (block_panels
// panels) per block, the blocks of a part added one after the other, then the parts in a tree of at most as many
// additions as there are parts. A product passes at most H = L + blocks of a part + parts additions, so that as in
// matmul.cu
//     e = dot_bound(H + 4, A, B) = fl((H + 8) u A B),     with a bias c: + 4u(|s| + |c|).
// A and B: a lane's sum of squares is an upper bound (line_summary.cuh); 4 lanes and the parts are added in binary64: at
// most N = 2 + parts additions, so A B falls short of |a||b| by at most (N + 6) u, and N <= 2^26, H <= 2^20 is what
// matmul.cu's derivation asks for. K <= 2^24 per part, that is 2^22 steps of a lane.
//
// Absent terms are zeros here, which is the same unless the other factor is infinite or NaN. A non-finite sum therefore
// only counts where no term of the row or the column can be absent.
#include "backends/cuda/core/drivers.hpp"
#include "backends/cuda/product/conv.hpp"

namespace repdl::cuda::conv {

void take_workspace(schedule& s, carver& c) {
  const tile_figures& f = tile_shapes[s.tile];
  c.take(s.partial, s.split, s.parts, f.sums);
  c.take(s.partial_summary, s.split, s.parts, f.lines, 2);
}

void run_product(const problem& p, const schedule& s, const loading& l, const job& j) {
  problem q = p;  // without this tier where its bound is not proved
  if (!is_proved(s, p.k)) q.first_tier = std::max(p.first_tier, tier::double_double);
  with_result(p, [&]<class Out>() {
    if constexpr (sizeof(Out) < 8) {
      switch (s.tile) {
        case wide_tiles:
          return launch_tile<wide_tile, Out>(q, s, l, j);
        case square_tiles:
          return launch_tile<square_tile, Out>(q, s, l, j);
        case flat_tiles:
          return launch_tile<flat_tile, Out>(q, s, l, j);
        default:
          return launch_tile<small_tile, Out>(q, s, l, j);
      }
    }
  });
}

}  // namespace repdl::cuda::conv
