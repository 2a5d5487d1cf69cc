// The inner loops of a blocked matrix product (K. Goto, R. van de Geijn, "Anatomy of high-performance matrix
// multiplication", ACM TOMS 34 (2008); F. Van Zee, R. van de Geijn, "BLIS", ACM TOMS 41 (2015)), as templates over
//   Engine   how a tile of sums is accumulated, and how a sum becomes an output (gemm_engines.hpp);
//   Problem  where the operands and the outputs are: a type that is made from (operands, batch) and has
//     number       float, or double where the engine's is
//     a, b         loaders: load<Width>(first, count, k0, depth, to) writes to[depth][Width] numbers: rows of a or columns of
//                  b, zeros from `count` on
//     format       of the outputs
//     has_bias, load_bias(i, j, count, to), store<Width>(i, j, count, from)
//                  a segment of count <= Width outputs of row i; the bias as numbers
//     is_scaled    false: outputs are S + bias; true: alpha S + beta bias
//     skips_terms  true: operands have absent entries, whose products are no terms. They load as zeros; a and b then have
//                  load_presence too, and the Problem whole(i, j): no term of that output is absent
//
// One block is up to row_block rows times any number of panels of b. k is cut into slices of at most `slice` terms; per
// slice the rows of a are packed, then every tile of the block advances by that slice: the tile's sums start from +0,
// and are added to (Engine::exact) or continue (fma_chain) the sums of the slices before. After the last slice the
// tile, still in the first-level cache, is finished: tested, rounded, stored, repaired. Where the driver has not packed
// b (gemm_problem::blocks_pack), the block packs its panels slice by slice, each just before its only use; repairs then
// load from memory, not from panels.
//
// Terms are added in ascending k in every lane; no result depends on the blocking (exact: proved to; fma_chain: by
// order).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "backends/cpu/core/formats.hpp"
#include "backends/cpu/core/loaders.hpp"
#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/product/gemm.hpp"
#include "backends/cpu/product/gemm_engines.hpp"

namespace repdl::cpu::REPDL_ISA {

// How k is cut: equal slices of at most most_terms, and one, empty, for k = 0.
struct slices {
  static constexpr std::int64_t most_terms = 384;
  std::int64_t count;
  std::int64_t terms;
  explicit slices(std::int64_t k)
      : count(std::max<std::int64_t>(1, (k + most_terms - 1) / most_terms)), terms((k + count - 1) / count) {}
};

// A tile's sums over one slice. Rows and Vectors are those that the tile has; packed operands and sums always have the
// engine's full width.
template <class Engine, int Rows, int Vectors>
void advance(std::int64_t terms, const typename Engine::row_type* a, const typename Engine::number* b,
             typename Engine::sum_type* sums, bool first) noexcept {
  using V = typename Engine::vector;
  using S = typename Engine::vector_sum;
  constexpr int lanes = Engine::lanes;
  S s[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) s[r][v] = S{};
  if constexpr (Engine::continues) {
    if (!first)
      for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Vectors; ++v) s[r][v] = Engine::load_sum(sums + r * Engine::columns + v * lanes);
  }
  for (std::int64_t k = 0; k < terms; ++k) {
    V column[Vectors];
    for (int v = 0; v < Vectors; ++v) column[v] = Engine::load_column(b + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const V row = broadcast<V>(a[r]);
      for (int v = 0; v < Vectors; ++v) s[r][v] = Engine::add_product(row, column[v], s[r][v]);
    }
    a += Engine::rows;
    b += Engine::columns;
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) Engine::store_sum(sums + r * Engine::columns + v * lanes, s[r][v], first);
}

// advance<Engine, rows, vectors> for every tile shape, the full one last.
template <class Engine>
struct tile_shapes {
  using function = void (*)(std::int64_t, const typename Engine::row_type*, const typename Engine::number*,
                            typename Engine::sum_type*, bool) noexcept;
  template <int... I>
  static constexpr std::array<function, sizeof...(I)> make(std::integer_sequence<int, I...>) {
    return {&advance<Engine, I / Engine::vectors + 1, I % Engine::vectors + 1>...};
  }
  static constexpr auto table = make(std::make_integer_sequence<int, Engine::rows * Engine::vectors>{});
  static function of(int rows, int vectors) noexcept {
    return table[static_cast<std::size_t>((rows - 1) * Engine::vectors + vectors - 1)];
  }
};

template <class Engine, class Problem>
struct gemm {
  using row_type = typename Engine::row_type;
  using sum_type = typename Engine::sum_type;
  using number = typename Engine::number;
  static_assert(std::is_same_v<number, typename Problem::number>);
  static constexpr std::int64_t row_block = Engine::rows * Engine::row_panels;
  static constexpr std::int64_t tile_size = Engine::tile_planes * Engine::rows * Engine::columns;
  static constexpr std::size_t rows_bytes = sizeof(row_type) * row_block * slices::most_terms;
  static_assert(rows_bytes % 256 == 0);

  using column_summary = typename Engine::template summary<Engine::columns>;
  static constexpr std::size_t panel_bytes = sizeof(number) * Engine::columns * slices::most_terms;
  static_assert(panel_bytes % 256 == 0);
  static std::size_t summary_bytes(std::int64_t panels) noexcept {
    return (sizeof(column_summary) * static_cast<std::size_t>(panels) + 255) / 256 * 256;
  }

  static std::size_t scratch_bytes(std::int64_t columns, std::int64_t k) noexcept {
    const std::int64_t panels = (columns + Engine::columns - 1) / Engine::columns;
    const std::int64_t tiles = slices(k).count == 1 ? 1 : panels * Engine::row_panels;
    return rows_bytes + panel_bytes + summary_bytes(panels) +
           sizeof(sum_type) * static_cast<std::size_t>(tiles * tile_size);
  }

  static void pack_panel(const gemm_problem& g, std::int64_t batch, std::int64_t column,
                         const packed_columns& to) noexcept {
    const Problem problem(g.operands, batch);
    const int count = static_cast<int>(std::min<std::int64_t>(Engine::columns, g.n - column));
    typename Engine::template summary<Engine::columns> seen;
    const slices cut(g.k);
    for (std::int64_t k0 = 0; k0 < g.k; k0 += cut.terms) {
      const std::int64_t terms = std::min(cut.terms, g.k - k0);
      number* const panel = static_cast<number*>(to.panels) + k0 * Engine::columns;
      problem.b.template load<Engine::columns>(column, count, k0, terms, panel);
      seen.add(panel, terms);
    }
    seen.finish(to.norm, to.lowest_bit);
  }

  static tier_counts multiply(const gemm_problem& g, const gemm_block& block) {
    const Problem problem(g.operands, block.batch);
    const slices cut(g.k);
    const int row_panels = static_cast<int>((block.rows + Engine::rows - 1) / Engine::rows);
    char* const scratch = static_cast<char*>(block.scratch);
    auto* const rows = reinterpret_cast<row_type*>(scratch);
    auto* const own_panel = reinterpret_cast<number*>(scratch + rows_bytes);
    auto* const seen_columns = reinterpret_cast<column_summary*>(scratch + rows_bytes + panel_bytes);
    auto* const sums = reinterpret_cast<sum_type*>(
        scratch + rows_bytes + panel_bytes + summary_bytes((block.columns + Engine::columns - 1) / Engine::columns));
    typename Engine::template summary<Engine::rows> seen[Engine::row_panels];
    double norm[row_block];
    double lowest_bit[row_block];
    tier_counts counts;

    for (std::int64_t slice = 0; slice < cut.count; ++slice) {
      const std::int64_t k0 = slice * cut.terms;
      const std::int64_t terms = std::min(cut.terms, g.k - k0);
      for (int p = 0; p < row_panels; ++p) {
        const std::int64_t row = static_cast<std::int64_t>(p) * Engine::rows;
        const int count = static_cast<int>(std::min<std::int64_t>(Engine::rows, block.rows - row));
        pack_rows(problem, block.row + row, count, k0, terms, rows + row * terms, seen[p]);
      }
      const bool last = slice + 1 == cut.count;
      if (last)
        for (int p = 0; p < row_panels; ++p) seen[p].finish(norm + p * Engine::rows, lowest_bit + p * Engine::rows);

      for (std::int64_t column = 0; column < block.columns; column += Engine::columns) {
        const int columns = static_cast<int>(std::min<std::int64_t>(Engine::columns, block.columns - column));
        const int vectors = (columns + Engine::lanes - 1) / Engine::lanes;
        const number* const panel = g.blocks_pack ? nullptr : static_cast<const number*>(block.b.panels) + column * g.k;
        const number* slice_panel = own_panel;
        alignas(64) double own_norm[Engine::columns];
        alignas(64) double own_bit[Engine::columns];
        if (g.blocks_pack) {
          problem.b.template load<Engine::columns>(block.column + column, columns, k0, terms, own_panel);
          column_summary& s = seen_columns[column / Engine::columns];
          if (slice == 0) s = column_summary();
          s.add(own_panel, terms);
          if (last) s.finish(own_norm, own_bit);
        } else {
          slice_panel = panel + k0 * Engine::columns;
        }
        sum_type* tile = sums + (cut.count == 1 ? 0 : Engine::tile_planes * column * row_block);
        for (int p = 0; p < row_panels; ++p) {
          const std::int64_t row = static_cast<std::int64_t>(p) * Engine::rows;
          const int count = static_cast<int>(std::min<std::int64_t>(Engine::rows, block.rows - row));
          tile_shapes<Engine>::of(count, vectors)(terms, rows + row * terms, slice_panel, tile, slice == 0);
          if (last) {
            const tile_position at{block.row + row,
                                   block.column + column,
                                   count,
                                   columns,
                                   norm + row,
                                   lowest_bit + row,
                                   g.blocks_pack ? own_norm : block.b.norm + column,
                                   g.blocks_pack ? own_bit : block.b.lowest_bit + column,
                                   panel};
            Engine::finish(problem, g, Engine::height(cut.terms, cut.count), at, tile, counts);
          }
          if (cut.count != 1) tile += tile_size;
        }
      }
    }
    return counts;
  }

  static constexpr gemm_kernels table() {
    return {
        Engine::rows,  Engine::columns, Engine::lanes, static_cast<int>(row_block), static_cast<int>(sizeof(number)),
        scratch_bytes, pack_panel,      multiply};
  }

 private:
  // One panel of rows over one slice: to[term][row] in the type that the engine broadcasts from.
  static void pack_rows(const Problem& problem, std::int64_t row, int count, std::int64_t k0, std::int64_t terms,
                        row_type* to, typename Engine::template summary<Engine::rows>& seen) noexcept {
    if constexpr (std::is_same_v<row_type, number>) {
      problem.a.template load<Engine::rows>(row, count, k0, terms, to);
      seen.add(to, terms);
    } else {
      alignas(64) number values[slices::most_terms * Engine::rows];
      problem.a.template load<Engine::rows>(row, count, k0, terms, values);
      seen.add(values, terms);
      for (std::int64_t i = 0; i < terms * Engine::rows; ++i) to[i] = static_cast<row_type>(values[i]);
    }
  }
};

}  // namespace repdl::cpu::REPDL_ISA
