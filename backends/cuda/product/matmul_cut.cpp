#include "backends/cuda/product/matmul_cut.hpp"

#include <algorithm>
#include <tuple>

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

namespace {

// So many bytes at a time along terms, and nothing is left.
bool is_packed(const plan::product_plan::operand<const void>& o, std::size_t bytes, std::int64_t terms,
               const plan::product_plan::space& batch) {
  const auto unit = static_cast<std::int64_t>(bytes / size_of(o.type));
  bool is = terms % unit == 0 && o.inner[0] == 1 && o.outer[0] % unit == 0 &&
            reinterpret_cast<std::uintptr_t>(o.begin()) % bytes == 0;
  for (int d = 0; d < batch.rank; ++d) is = is && o.batch[d] % unit == 0;
  return is;
}

double thin_blocks(const plan::product_plan& p) {
  return static_cast<double>(ceil_div(std::max(p.row.count, p.column.count), thin_lines)) *
         static_cast<double>(p.batch.count);
}

// Up to most_thin_lines lines and 2^30 terms matmul_thin.cu can do; the other numbers are matters of speed alone.
bool goes_by_thin_tiles(const plan::product_plan& p, const properties& device) {
  const bool swapped = p.row.count < p.column.count;
  const std::int64_t few = std::min(p.row.count, p.column.count);
  if (few > most_thin_lines || shared_limit(device) < thin_shared_bytes) return false;
  // Of longer chains the bound leaves too much open: of normal numbers in f32 one output in a hundred, or more.
  if (p.term.count > (size_of(p.a.type) == 4 ? 1 << 16 : 1 << 22)) return false;
  const auto& [thin, matrix] = swapped ? std::tie(p.a, p.b) : std::tie(p.b, p.a);
  if (!is_packed(matrix, 16, p.term.count, p.batch)) return false;
  if (!is_packed(thin, 4 * size_of(thin.type), p.term.count, p.batch)) return false;
  if (device.choice.tile >= 0) return device.choice.tile == thin_tiles;
  if (few > 16 && thin_blocks(p) < .75 * device.multiprocessors) return false;  // small tiles are faster
  return p.term.count >= 256;
}

product_cut cut_thin(const plan::product_plan& p, const properties& device) {
  product_cut c{};
  c.tile = thin_tiles;
  c.swapped = p.row.count < p.column.count;
  const std::int64_t step = thin_step_terms(size_of(p.a.type), std::min(p.row.count, p.column.count));
  c.steps = ceil_div(p.term.count, step);
  // A block for each multiprocessor, if it has something to do.
  constexpr int most_parts = 4;
  c.parts = 1;
  while (device.capability >= 90 && c.parts < most_parts &&
         2 * c.parts * thin_blocks(p) <= 1.1 * device.multiprocessors && 16 * c.parts <= c.steps) {
    c.parts *= 2;
  }
  if (device.choice.split) c.parts = device.capability >= 90 ? 2 : 1;
  c.height = step / thin_slices * ceil_div(c.steps, c.parts) + thin_slices + c.parts;
  c.is_proved = p.term.count <= greatest_k && c.height <= greatest_steps;
  return c;
}

}  // namespace

product_cut cut_product(const plan::product_plan& p, const properties& device) {
  const auto tiles_of = [&](const tile_size& t) {
    return static_cast<double>(ceil_div(p.row.count, t.rows)) * static_cast<double>(ceil_div(p.column.count, t.cols)) *
           static_cast<double>(p.batch.count);
  };
  // So many blocks share a tile that every multiprocessor has two (one square tile of numbers of 16 bits), but each of them has some steps. These numbers, and which tile is
  // taken, are matters of speed alone.
  const bool is_narrow = size_of(p.a.type) == 2;
  const auto parts_of = [&](const tile_size& t, std::int64_t least_steps) {
    constexpr int most = 4;
    const double most_blocks = (is_narrow && t.slices == 1 ? 1.1 : 2.0) * device.multiprocessors;
    const std::int64_t steps = ceil_div(p.term.count, panel_k * t.slices);
    int parts = 1;
    while (device.capability >= 90 && parts < most && 2 * parts * tiles_of(t) <= most_blocks &&
           2 * parts * least_steps <= steps) {
      parts *= 2;
    }
    return parts;
  };
  const bool by_residues = device.choice.engine == product_engine::residues;  // whose tiles are chosen
  if (!by_residues && goes_by_thin_tiles(p, device)) return cut_thin(p, device);
  product_cut c{};
  const tile_size& square = tile_sizes[square_tiles];
  const int parts = parts_of(square, 32);
  const bool is_wide = std::min(p.row.count, p.column.count) > tile_sizes[small_tiles].rows;
  c.tile = is_wide && parts * tiles_of(square) >= (is_narrow ? .9 : 1.5) * device.multiprocessors ? square_tiles
                                                                                                  : small_tiles;
  if (device.choice.tile >= 0 && !by_residues) c.tile = std::min<int>(device.choice.tile, small_tiles);
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
