// The binary64 tier of convolutions: an implicit product on the fp64 tensor cores.
//
// Method: elements are gathered from the tensors by asynchronous copies of binary32 numbers into shared memory, zeros
// where they are absent, and become binary64 operands of the matrix instruction on the way to its registers. The norms
// and lattices of the rows and columns are collected from the same registers. Products of 24-bit factors are exact, so
// what is rounded are additions, and a rounding test decides most outputs (certify.hpp); the others are marked for
// conv_repair.cu.
//
// Error, under the assumptions (D1), (D2) of mma.cuh, u_D = 2u: a chain of at most L = 256 additions (block_panels
// panels) per block, the blocks of a part added one after the other, then the parts in a tree of at most as many
// additions as there are parts. A product passes at most H = L + blocks of a part + parts additions, so that as in
// matmul.cu
//     e = dot_bound(2H + 4, A, B) = fl((2H + 8) u A B),    with a bias c: + 4u(|s| + |c|).
// A and B: a lane's sum of squares is an upper bound (lane_summary); 4 lanes and the parts are added in binary64: at
// most N = 2 + parts additions, so A B falls short of |a||b| by at most (N + 6) u, and N <= 2^26, H <= 2^20 is what
// matmul.cu's derivation asks for. K <= 2^24 per part, that is 2^22 steps of a lane.
//
// Absent terms are zeros here, which is the same unless the other factor is infinite or NaN. A non-finite sum therefore
// only counts where no term of the row or the column can be absent.
#include "backends/cuda/product/conv_product.cuh"

namespace repdl::cuda::conv {
namespace {

enum tile_kind { wide, square, flat, small_one, tile_kinds };

// Estimates, relative to the tensor cores' peak, which only decide between shapes.
struct tile_figures {
  int rows, cols, sums, lines, blocks;
  double efficiency;
};
template <class T>
constexpr tile_figures figures(double efficiency) {
  return {T::rows, T::cols, T::sums, T::lines, T::blocks, efficiency};
}
constexpr tile_figures shapes[tile_kinds] = {figures<wide_tile>(0.70), figures<square_tile>(0.60),
                                             figures<flat_tile>(0.40), figures<small_tile>(0.15)};

// Seconds.
constexpr double flops_per_multiprocessor = 5.0e11;
constexpr double seconds_per_tile = 3e-6;
constexpr double seconds_per_finish = 6e-6;
constexpr double bytes_per_second = 2.5e12;

}  // namespace

double tile_cost(std::int64_t m, std::int64_t n) {
  double best = 0;
  for (const tile_figures& f : shapes) {
    const double cost =
        static_cast<double>(round_up(m, f.rows)) * static_cast<double>(round_up(n, f.cols)) / f.efficiency;
    if (best == 0 || cost < best) best = cost;
  }
  return best;
}

schedule plan_product(const problem& p, const properties& device) {
  schedule best{};
  double best_time = 0;
  const dispatch::kernel_choice& given = device.choice;
  for (int kind = 0; kind < tile_kinds; ++kind) {
    if (given.conv_tile >= 0 && kind != given.conv_tile) continue;
    const tile_figures& f = shapes[kind];
    schedule s{};
    s.tile = kind;
    s.row_tiles = ceil_div(p.m, f.rows);
    s.col_tiles = ceil_div(p.n, f.cols);
    const std::int64_t tiles = s.row_tiles * s.col_tiles * p.products();
    const std::int64_t slots = std::int64_t{device.multiprocessors} * f.blocks;
    const std::int64_t panels = std::max<std::int64_t>(ceil_div(p.k, panel_k), 1);
    const double unit = static_cast<double>(f.rows) * f.cols * 2 * panel_k * f.blocks /
                        (flops_per_multiprocessor * f.efficiency);  // of a panel
    const double whole_time = unit * static_cast<double>(panels) + seconds_per_tile;
    const std::int64_t waves = tiles / slots;
    // What is left over after full waves, or that and one wave more, is split.
    for (std::int64_t kept = waves; kept >= 0 && kept + 1 >= waves; --kept) {
      const std::int64_t rest = tiles - kept * slots;
      for (std::int64_t parts = 1; parts <= 256; ++parts) {
        if (parts > 1 && (panels / parts < 4 || rest * parts > 4 * slots || rest == 0)) break;
        const double part_panels = static_cast<double>(ceil_div(panels, parts));
        double time = static_cast<double>(kept) * whole_time +
                      static_cast<double>(ceil_div(rest * parts, slots)) * (unit * part_panels + seconds_per_tile);
        if (parts > 1) {
          time += seconds_per_finish + static_cast<double>(rest * parts) * f.sums * 16 / bytes_per_second;
        }
        if (given.conv_tile >= 0 && given.conv_split != (parts > 1)) continue;
        if (best_time == 0 || time < best_time) {
          best_time = time;
          best = s;
          best.parts = static_cast<int>(parts);
          best.split = parts > 1 ? rest : 0;
          best.whole = tiles - best.split;
        }
      }
    }
  }
  const std::int64_t part_panels =
      ceil_div(std::max<std::int64_t>(ceil_div(p.k, panel_k), 1), best.whole == 0 ? best.parts : 1);
  best.height = block_panels * panel_k + ceil_div(part_panels, block_panels) + best.parts + 1;
  return best;
}

void take_workspace(schedule& s, carver& c) {
  const tile_figures& f = shapes[s.tile];
  c.take(s.partial, s.split, s.parts, f.sums);
  c.take(s.partial_summary, s.split, s.parts, f.lines, 2);
}

void run_product(const problem& p, const schedule& s, const loading& l, const job& j) {
  problem q = p;
  // Beyond this the bound is not proved.
  const std::int64_t part_terms = ceil_div(p.k, s.whole == 0 ? s.parts : 1);
  if (s.height > (std::int64_t{1} << 20) || part_terms > (std::int64_t{1} << 23)) {
    q.first_tier = std::max(p.first_tier, tier::double_double);
  }
  switch (s.tile) {
    case wide:
      launch_wide(q, s, l, j);
      break;
    case square:
      launch_square(q, s, l, j);
      break;
    case flat:
      launch_flat(q, s, l, j);
      break;
    default:
      launch_small(q, s, l, j);
  }
}

}  // namespace repdl::cuda::conv
