#include "backends/cuda/product/matmul_cut.hpp"

#include <algorithm>

#include "librepdl/plan/checked_size.hpp"

namespace repdl::cuda {
namespace {

std::int64_t batches_of(const plan::matmul_plan& p, const plan::matmul_plan::matrix& m) {
  const auto* const stride = m.batch_stride.data();
  return std::all_of(stride, stride + p.batch_rank, [](std::int64_t s) { return s == 0; }) ? 1 : p.batches;
}

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
// product, which all multiprocessors share. So do the outputs of small products, which are less work than the launches
// that pack, multiply and repair.
bool goes_by_dots(const plan::matmul_plan& p, bool self_test) {
  if (p.type == dtype::f64) return true;
  constexpr std::int64_t long_sum = 8192;
  constexpr std::int64_t most_dots = 4096;
  constexpr std::int64_t most_terms = 1 << 21;  // of a small product; like the others, a matter of speed alone
  if (p.is_scaled()) return false;
  if (!self_test && p.k != 0 && p.m * p.n * p.batches <= most_terms / p.k) return true;
  return p.k >= long_sum && p.m <= 64 && p.n <= 64 && p.m * p.n * std::min<std::int64_t>(p.batches, 16) <= most_dots;
}

product_cut cut_product(const plan::matmul_plan& p, const properties& device) {
  product_cut c{};
  const std::int64_t large_tiles =
      ceil_div(p.m, large_tile_size.rows) * ceil_div(p.n, large_tile_size.cols) * p.batches;
  c.large = 2 * large_tiles >= 3 * device.multiprocessors;
  for (const bool second : {false, true}) {
    operand_cut& o = c.operand[second];
    const int tile_panels = (second ? c.tile().cols : c.tile().rows) / panel_rows;
    o.batches = batches_of(p, second ? p.b : p.a);
    o.row_panels = round_up(ceil_div(second ? p.n : p.m, panel_rows), tile_panels);
    o.splits = pack_splits(o, p.k, device);
  }
  c.k_panels = ceil_div(p.k, panel_k);
  // Blocks of k of about 256: the height grows by the number of blocks, the sums of the blocks cost shared memory
  // traffic.
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(c.k_panels, 16));
  c.block_panels = std::max<std::int64_t>(1, ceil_div(c.k_panels, blocks));
  c.height = c.block_panels * panel_k + blocks;
  c.is_proved = p.k <= greatest_k && c.height <= greatest_height;
  return c;
}

// Enough visits for every warp of the device, of as many bytes as that leaves.
int repair_span(std::int64_t rows, std::int64_t bytes_per_row, const properties& device) {
  const std::int64_t visits = std::int64_t{device.multiprocessors} * 8 * repair_warps * 4;
  return static_cast<int>(
      std::clamp<std::int64_t>(rows * bytes_per_row / visits, 1, std::min<std::int64_t>(32, bytes_per_row)));
}

}  // namespace repdl::cuda
