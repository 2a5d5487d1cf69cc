#include "backends/cuda/product/matmul_cut.hpp"

#include <algorithm>

#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda {
namespace {

// As many as the device has room for: beyond that, their number does not matter.
int pack_splits(const operand_cut& o, std::int64_t k, const properties& device) {
  const auto blocks = static_cast<std::int64_t>(plan::checked_size::product(o.row_panels, o.batches).value());
  const std::int64_t wanted = std::int64_t{device.multiprocessors} * 8;
  return static_cast<int>(
      std::clamp<std::int64_t>(wanted / blocks, 1, std::clamp<std::int64_t>(ceil_div(k, pack_k), 1, 64)));
}

}  // namespace

// Few outputs of long sums: their tiles are hardly filled, leave most multiprocessors idle, and have panels that are
// many times the operands (1024 k bytes for up to 64 rows and 64 columns, against 4 (m + n) k). Each becomes a dot
// product, which all multiprocessors share. So do a matrix times one or two vectors, whose tiles would be hardly filled
// however many there are, and the outputs of small products, which are less work than the launches that pack, multiply
// and repair.
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
  product_cut c{};
  const std::int64_t m = p.row.count;
  const std::int64_t n = p.column.count;
  const std::int64_t k = p.term.count;
  const std::int64_t large_tiles =
      ceil_div(m, large_tile_size.rows) * ceil_div(n, large_tile_size.cols) * p.batch.count;
  c.large = 2 * large_tiles >= 3 * device.multiprocessors;
  for (const bool second : {false, true}) {
    operand_cut& o = c.operand[second];
    const int tile_panels = (second ? c.tile().cols : c.tile().rows) / panel_rows;
    o.batches = (second ? p.b : p.a).is_shared(p.batch) ? 1 : p.batch.count;
    o.row_panels = round_up(ceil_div(second ? n : m, panel_rows), tile_panels);
    o.splits = pack_splits(o, k, device);
  }
  c.k_panels = ceil_div(k, panel_k);
  // Blocks of k of about 256: the height grows by the number of blocks, the sums of the blocks cost shared memory
  // traffic.
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(c.k_panels, 16));
  c.block_panels = std::max<std::int64_t>(1, ceil_div(c.k_panels, blocks));
  c.height = c.block_panels * panel_k + blocks;
  c.is_proved = k <= greatest_k && c.height <= greatest_height;
  return c;
}

// Enough visits for every warp of the device, of as many bytes as that leaves.
int repair_span(std::int64_t rows, std::int64_t bytes_per_row, const properties& device) {
  const std::int64_t visits = std::int64_t{device.multiprocessors} * 8 * repair_warps * 4;
  return static_cast<int>(
      std::clamp<std::int64_t>(rows * bytes_per_row / visits, 1, std::min<std::int64_t>(32, bytes_per_row)));
}

}  // namespace repdl::cuda
