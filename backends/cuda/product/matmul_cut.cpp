#include "backends/cuda/product/matmul_cut.hpp"

#include <algorithm>

namespace repdl::cuda {
// Few outputs of long sums: their tiles are hardly filled and leave most multiprocessors idle. Each becomes a dot product, which all multiprocessors share. So do a
// matrix times one or two vectors, whose tiles would be hardly filled however many there are, and the outputs of small products. (The numbers are from when a
// product was five launches, and not measured since.)
bool goes_by_dots(const plan::product_plan& p, bool self_test) {
  if (p.out.type == dtype::f64) return true;
  constexpr std::int64_t long_sum = 8192;
  constexpr std::int64_t most_dots = 4096;
  constexpr std::int64_t most_terms = 1 << 21;  // of a small product; like the others, a matter of speed alone
  if (p.is_scaled()) return false;
  const std::int64_t outputs = p.row.count * p.column.count;  // of a batch
  const std::int64_t k = p.term.count;
  if (!self_test && k != 0 && outputs * p.batch.count <= most_terms / k) return true;
  if (k < long_sum) return false;
  const bool few = outputs * std::min<std::int64_t>(p.batch.count, 16) <= most_dots;
  return few || (p.batch.count == 1 && std::min(p.row.count, p.column.count) <= 2);
}

product_cut cut_product(const plan::product_plan& p, const properties& device) {
  const auto tiles_of = [&](const tile_size& t) {
    return static_cast<double>(ceil_div(p.row.count, t.rows)) * static_cast<double>(ceil_div(p.column.count, t.cols)) *
           static_cast<double>(p.batch.count);
  };
  // So many blocks share a tile that every multiprocessor has two, but each of them has some steps. These numbers, and which tile is taken, are matters of speed
  // alone.
  const auto parts_of = [&](const tile_size& t, std::int64_t least_steps) {
    constexpr int most = 4;
    const std::int64_t steps = ceil_div(p.term.count, panel_k * t.slices);
    int parts = 1;
    while (device.capability >= 90 && parts < most && parts * tiles_of(t) <= device.multiprocessors &&
           2 * parts * least_steps <= steps) {
      parts *= 2;
    }
    return parts;
  };
  const bool by_residues = device.choice.engine == dispatch::engine_choice::residues;  // whose tiles are chosen
  product_cut c{};
  const tile_size& square = tile_sizes[square_tiles];
  const int parts = parts_of(square, 32);
  const bool is_wide = std::min(p.row.count, p.column.count) > tile_sizes[small_tiles].rows;
  c.tile = is_wide && parts * tiles_of(square) >= 1.5 * device.multiprocessors ? square_tiles : small_tiles;
  if (device.choice.tile >= 0 && !by_residues) c.tile = device.choice.tile;
  if (tile_sizes[c.tile].shared_bytes > shared_limit(device)) c.tile = square_tiles;
  const tile_size& t = tile_sizes[c.tile];
  c.steps = ceil_div(p.term.count, panel_k * t.slices);
  c.parts = c.tile == square_tiles ? parts : parts_of(t, 2);
  if (device.choice.split && !by_residues) c.parts = device.capability >= 90 ? 2 : 1;
  const std::int64_t steps = ceil_div(c.steps, c.parts);  // of a part
  c.height = panel_k * std::min<std::int64_t>(steps, block_panels) + ceil_div(steps, block_panels) + c.parts * t.slices;
  c.is_proved = p.term.count <= greatest_k && steps <= greatest_steps;
  return c;
}

}  // namespace repdl::cuda
