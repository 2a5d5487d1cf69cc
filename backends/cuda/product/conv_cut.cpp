#include "backends/cuda/product/conv_cut.hpp"

#include <algorithm>

#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda::conv {
namespace {

// Estimates. Seconds.
constexpr double flops_per_multiprocessor = 5.0e11;
constexpr double seconds_per_tile = 3e-6;
constexpr double seconds_per_finish = 6e-6;
constexpr double bytes_per_second = 2.5e12;

}  // namespace

double tile_cost(std::int64_t m, std::int64_t n) {
  double best = 0;
  for (const tile_figures& f : tile_shapes) {
    const double cost =
        static_cast<double>(round_up(m, f.rows)) * static_cast<double>(round_up(n, f.cols)) / f.efficiency;
    if (best == 0 || cost < best) best = cost;
  }
  return best;
}

schedule plan_product(const product_size& p, const properties& device) {
  schedule best{};
  double best_time = 0;
  const dispatch::kernel_choice& given = device.choice;
  for (int kind = 0; kind < tile_kinds; ++kind) {
    if (given.tile >= 0 && kind != given.tile) continue;
    const tile_figures& f = tile_shapes[kind];
    schedule s{};
    s.tile = kind;
    s.row_tiles = ceil_div(p.m, f.rows);
    s.col_tiles = ceil_div(p.n, f.cols);
    const std::int64_t tiles = s.row_tiles * s.col_tiles * p.products;
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
        if (given.tile >= 0 && given.split != (parts > 1)) continue;
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

bool is_proved(const schedule& s, std::int64_t k) {
  const std::int64_t part_terms = ceil_div(k, s.whole == 0 ? s.parts : 1);
  return s.height <= (std::int64_t{1} << 20) && part_terms <= (std::int64_t{1} << 23);
}

repair_cut cut_repair(const product_size& p) {
  repair_cut c{};
  c.chunks = std::clamp<std::int64_t>(p.k / 2048, 1, 256);
  const auto outputs = static_cast<std::int64_t>(plan::checked_size::product(p.products, p.m, p.n).value());
  c.capacity = std::clamp<std::int64_t>(outputs / 16, 64, std::int64_t{1} << (c.chunks > 1 ? 12 : 16));
  return c;
}

int chain_width(const product_size& p, const properties& device) {
  const auto blocks = [&](int tile) { return ceil_div(p.m, tile) * ceil_div(p.n, tile) * p.products; };
  const std::int64_t wanted = device.multiprocessors;
  if (blocks(128) >= wanted && p.m > 64 && p.n > 64) return 8;
  if (blocks(64) >= wanted && p.m > 32 && p.n > 32) return 4;
  return blocks(32) >= wanted / 4 ? 2 : 1;
}

}  // namespace repdl::cuda::conv
