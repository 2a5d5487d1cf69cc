// The driver of the blocked matrix product: what is packed when, and who computes which block.
//
// The packed form of b is made once and shared: for as many batches as fit the budget, or, where not even one does, for
// as many of its columns (at least one panel). The budget is `packed_budget`, or, where only one block of rows will
// read each packed column, what stays in the caches (`cached_budget` per worker). Then blocks of row_block rows by some
// panels are handed out one by one; each worker packs its own rows. Blocks are narrowed until every worker has a few.
//
// Where blocks pack their own columns there is nothing to share: what a block packs is used by that block alone, so
// blocks are as large as the workers allow.
#include "backends/cpu/product/gemm.hpp"

#include <algorithm>
#include <atomic>

#include "backends/cpu/core/tasks.hpp"

namespace repdl::cpu {
namespace {

using plan::checked_size;

constexpr std::int64_t packed_budget = std::int64_t{64} << 20;  // bytes
constexpr std::int64_t cached_budget = std::int64_t{512} << 10;
constexpr std::int64_t widest_block = 2048;  // columns
constexpr std::int64_t blocks_per_thread = 4;
constexpr std::int64_t narrowest_block = 8;  // panels, of a block that packs its own

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

gemm_blocking::gemm_blocking(const gemm_problem& g, const gemm_kernels& kernels, int most_threads) noexcept {
  const double work = static_cast<double>(g.batches) * static_cast<double>(g.m) * static_cast<double>(g.n) *
                      static_cast<double>(g.k + 8);
  threads = worthwhile_threads(most_threads, work, 0.1);
  if (g.blocks_pack) {
    divide(g, kernels);
    return;
  }
  const std::int64_t width = kernels.columns;
  const std::int64_t row_blocks = ceil_div(g.m, kernels.row_block);
  const bool read_once = row_blocks == 1 && !(g.shared_b && g.batches > 1);
  const std::int64_t budget = read_once ? std::min(packed_budget, cached_budget * threads) : packed_budget;
  const std::int64_t fitting =
      std::max<std::int64_t>(width, budget / kernels.number_bytes / std::max<std::int64_t>(1, g.k) / width * width);
  columns = std::min(round_up(g.n, width), fitting);
  group = g.shared_b ? g.batches : columns < g.n ? 1 : std::clamp<std::int64_t>(fitting / columns, 1, g.batches);
  packs = g.shared_b ? 1 : group;

  block_rows = round_up(ceil_div(g.m, row_blocks), kernels.rows);
  const std::int64_t wanted = threads == 1 ? 1 : ceil_div(blocks_per_thread * threads, group * row_blocks);
  const std::int64_t pieces = std::max(wanted, ceil_div(columns, widest_block));
  block_columns = std::min(columns, std::max(round_up(ceil_div(columns, pieces), width), 2 * width));

  panel_bytes = checked_size::product(packs, columns, g.k, kernels.number_bytes).rounded_up(256);
  summary_bytes = checked_size::product(packs, columns, sizeof(double)).rounded_up(256);
  scratch_bytes = checked_size(kernels.scratch_bytes(block_columns, g.k)).rounded_up(256);
}

void gemm_blocking::divide(const gemm_problem& g, const gemm_kernels& kernels) noexcept {
  const std::int64_t width = kernels.columns;
  columns = round_up(g.n, width);
  group = g.batches;
  packs = 0;
  block_rows = round_up(ceil_div(g.m, ceil_div(g.m, kernels.row_block)), kernels.rows);
  std::int64_t pieces = ceil_div(columns, widest_block);
  const auto blocks = [&] { return g.batches * ceil_div(g.m, block_rows) * pieces; };
  if (threads > 1 && blocks() < blocks_per_thread * threads) {
    pieces = std::clamp(ceil_div(blocks_per_thread * threads, g.batches * ceil_div(g.m, block_rows)), pieces,
                        std::max(pieces, columns / (narrowest_block * width)));
    // Still too few: as many blocks as workers, of fewer columns, then of fewer rows.
    if (blocks() < threads)
      pieces = std::min(ceil_div(threads, g.batches * ceil_div(g.m, block_rows)), columns / width);
    if (blocks() < threads) {
      const std::int64_t down = std::min(ceil_div(threads, g.batches * pieces), ceil_div(g.m, kernels.rows));
      block_rows = std::min(block_rows, round_up(ceil_div(g.m, down), kernels.rows));
    }
  }
  block_columns = round_up(ceil_div(columns, pieces), width);
  scratch_bytes = checked_size(kernels.scratch_bytes(block_columns, g.k)).rounded_up(256);
}

void run_gemm(const gemm_problem& g, const gemm_kernels& kernels, const gemm_blocking& cut, void* workspace,
              counters& counted) noexcept {
  char* const base = static_cast<char*>(workspace);
  char* const summaries = base + cut.panel_bytes.value();
  double* const norms = reinterpret_cast<double*>(summaries);
  double* const lowest_bits = reinterpret_cast<double*>(summaries + cut.summary_bytes.value());
  char* const scratch = summaries + 2 * cut.summary_bytes.value();
  // The packed columns from `column` of one pack of the group on.
  const auto packed_at = [&](std::int64_t pack, std::int64_t column) {
    const std::int64_t at = pack * cut.columns + column;
    if (cut.packs == 0) return packed_columns{};
    return packed_columns{base + at * g.k * kernels.number_bytes, norms + at, lowest_bits + at};
  };

  std::atomic<std::int64_t> elements[4] = {};
  for (std::int64_t first = 0; first < g.batches && !stopped(); first += cut.group) {
    const std::int64_t batches = std::min(cut.group, g.batches - first);
    const std::int64_t packs = g.shared_b ? 1 : batches;
    for (std::int64_t column0 = 0; column0 < g.n; column0 += cut.columns) {
      const std::int64_t columns = std::min(cut.columns, g.n - column0);

      const std::int64_t panels = g.blocks_pack ? 0 : ceil_div(columns, kernels.columns);
      for_each_task(cut.threads, packs * panels, [&](std::int64_t i, int) {
        const std::int64_t column = i % panels * kernels.columns;
        kernels.pack_panel(g, first + i / panels, column0 + column, packed_at(i / panels, column));
      });

      const std::int64_t down = ceil_div(g.m, cut.block_rows);
      const std::int64_t across = ceil_div(columns, cut.block_columns);
      for_each_task(cut.threads, batches * down * across, [&](std::int64_t i, int thread) {
        const std::int64_t batch = i / (down * across);
        const std::int64_t row = i / across % down * cut.block_rows;
        const std::int64_t column = i % across * cut.block_columns;
        const gemm_block block = {first + batch,
                                  row,
                                  std::min(cut.block_rows, g.m - row),
                                  column0 + column,
                                  std::min(cut.block_columns, columns - column),
                                  packed_at(g.shared_b ? 0 : batch, column),
                                  scratch + static_cast<std::size_t>(thread) * cut.scratch_bytes.value()};
        const tier_counts c = kernels.multiply(g, block);
        for (int t = 0; t < 4; ++t)
          if (c.elements[t] != 0) elements[t].fetch_add(c.elements[t], std::memory_order_relaxed);
      });
    }
  }
  for (int t = 0; t < 4; ++t)
    if (elements[t] != 0) counted.add(static_cast<tier>(t), elements[t]);
}

}  // namespace repdl::cpu
