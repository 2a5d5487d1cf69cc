// Blocks of attention and its gradients: rows in binary64, columns in binary32, a block of them at a time. Included by kernels only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/attention/attention.hpp"
#include "backends/cpu/core/simd.hpp"
#include "backends/cpu/random/philox_lanes.hpp"
#include "librepdl/ops/attention/attention.hpp"

namespace repdl::cpu::REPDL_ISA {

extern const gradient_kernels attention_gradients_table;  // attention_backward_kernels.cpp

inline constexpr int block_columns = 64, terms_of_chunk = 16;  // of a sum of products, whose terms are added up first
inline constexpr int tile_rows = vector_bytes == 64 ? 8 : 4, tile_columns = 2 * lanes64;
static_assert(attention_rows % tile_rows == 0 && block_columns % tile_columns == 0);

// Columns of sums: whole tiles.
inline std::int64_t padded(std::int64_t n) { return (n + tile_columns - 1) / tile_columns * tile_columns; }
// Rows of tiles.
inline int padded_rows(int n) { return (n + tile_rows - 1) / tile_rows * tile_rows; }

// The parts of a workspace, in numbers of binary64.
struct workspace_parts {
  std::int64_t total = 0;

  std::int64_t take(std::int64_t n) {
    const std::int64_t begin = total;
    total += (n + 7) / 8 * 8;
    return begin;
  }
};

// kept[i] = 1 where pair first + i step is not dropped, else 0. Of pairs side by side four have their words in one block of the generator.
inline void find_kept(const num::attention_draws& draws, std::int64_t first, std::int64_t step, double* kept) {
  constexpr int side_by_side = block_columns / 4 + 1;
  std::uint32_t words[block_columns][4];
  const auto start = static_cast<std::uint64_t>(first), along = static_cast<std::uint64_t>(step);
  const auto block_of = [&](int b) {
    const auto n = static_cast<std::uint64_t>(b);
    return step == 1 ? (start >> 2) + n : (start + n * along) >> 2;
  };
  for (int b = 0; b < (step == 1 ? side_by_side : block_columns); b += lanes64) {
    u64v index{};
    for (int l = 0; l < lanes64; ++l) index[l] = block_of(b + l);
    philox_state s{index, index >> 32, broadcast<u64v>(draws.stream), broadcast<u64v>(draws.stream >> 32)};
    auto k0 = static_cast<std::uint32_t>(draws.seed), k1 = static_cast<std::uint32_t>(draws.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9, k1 += 0xbb67ae85) s.round(k0, k1);
    for (int l = 0; l < lanes64; ++l) {
      const std::uint64_t of_lane[] = {s.c0[l], s.c1[l], s.c2[l], s.c3[l]};
      for (int w = 0; w < 4; ++w) words[b + l][w] = static_cast<std::uint32_t>(of_lane[w]);
    }
  }
  for (int i = 0; i < block_columns; ++i) {
    const std::uint64_t n = start + static_cast<std::uint64_t>(i) * along;
    const std::uint32_t w =
        words[step == 1 ? static_cast<std::size_t>((n >> 2) - (start >> 2)) : static_cast<std::size_t>(i)][n & 3];
    kept[i] = w >= draws.threshold ? 1.0 : 0.0;
  }
}

// The products of padded_rows(count) rows [.][size] and columns [size][block_columns]: a few terms at a time, in order. Roundings on a
// term's way: chunk_height.
inline double chunk_height(std::int64_t size) {
  return static_cast<double>(std::min<std::int64_t>(size, terms_of_chunk) +
                             (size + terms_of_chunk - 1) / terms_of_chunk);
}
inline void multiply_columns(const double* rows, int count, std::int64_t size, const float* columns, double* to) {
  for (int r = 0; r < count; r += tile_rows) {
    for (int j = 0; j < block_columns; j += tile_columns) {
      double* const tile = to + r * block_columns + j;
      for (std::int64_t first = 0; first == 0 || first < size; first += terms_of_chunk) {
        f64v sum[tile_rows][2] = {};
        const float* k = columns + first * block_columns + j;
        const double* const a = rows + r * size + first;
        const std::int64_t n = std::min<std::int64_t>(terms_of_chunk, size - first);
        for (std::int64_t d = 0; d < n; ++d, k += block_columns) {
          const auto k0 = widen(load<f32h>(k)), k1 = widen(load<f32h>(k + lanes64));
          for (int i = 0; i < tile_rows; ++i) {
            const auto x = broadcast<f64v>(a[i * size + d]);
            sum[i][0] = fma_exact_product(x, k0, sum[i][0]);
            sum[i][1] = fma_exact_product(x, k1, sum[i][1]);
          }
        }
        for (int i = 0; i < tile_rows; ++i) {
          double* const t = tile + i * block_columns;
          store(t, first == 0 ? sum[i][0] : load<f64v>(t) + sum[i][0]);
          store(t + lanes64, first == 0 ? sum[i][1] : load<f64v>(t + lanes64) + sum[i][1]);
        }
      }
    }
  }
}
// sums [.][width] of each row += weights [.][block_columns] times values [n][width], added up before.
inline void add_weighted(const double* weights, int count, const float* values, int n, std::int64_t width,
                         double* sums) {
  for (int r = 0; r < count; r += tile_rows) {
    const int rows = std::min(tile_rows, count - r);
    for (std::int64_t e = 0; e < width; e += tile_columns) {
      f64v sum[tile_rows][2] = {};
      const float* v = values + e;
      const double* const w = weights + r * block_columns;
      for (int j = 0; j < n; ++j, v += width) {
        const auto v0 = widen(load<f32h>(v)), v1 = widen(load<f32h>(v + lanes64));
        for (int i = 0; i < tile_rows; ++i) {
          const auto x = broadcast<f64v>(w[i * block_columns + j]);
          sum[i][0] = num::math<f64v>::muladd(x, v0, sum[i][0]);
          sum[i][1] = num::math<f64v>::muladd(x, v1, sum[i][1]);
        }
      }
      for (int i = 0; i < rows; ++i) {
        double* const to = sums + (r + i) * width + e;
        store(to, load<f64v>(to) + sum[i][0]);
        store(to + lanes64, load<f64v>(to + lanes64) + sum[i][1]);
      }
    }
  }
}

// Of values [n][width] the greatest magnitude, or NaN, and the sum of squares of every column, beside what was looked at before.
inline void measure_values(const float* values, int n, std::int64_t width, double* most, double* squares) {
  for (std::int64_t e = 0; e < width; e += lanes64) {
    f64v greatest = load<f64v>(most + e), sum = load<f64v>(squares + e);
    for (int i = 0; i < n; ++i) {
      const f64v v = widen(load<f32h>(values + i * width + e)), size = num::magnitude_of(v);
      greatest = as<i64v>(size) > as<i64v>(greatest) ? size : greatest;  // of their bits NaN's are the greatest
      sum = fma_exact_product(v, v, sum);
    }
    store(most + e, greatest);
    store(squares + e, sum);
  }
}
// The norms of columns [size][block_columns].
inline void measure_columns(const float* columns, std::int64_t size, double* norms) {
  f64v square[block_columns / lanes64] = {};
  for (std::int64_t d = 0; d < size; ++d) {
    for (int i = 0; i < block_columns / lanes64; ++i) {
      const f64v x = widen(load<f32h>(columns + d * block_columns + i * lanes64));
      square[i] = fma_exact_product(x, x, square[i]);
    }
  }
  for (int i = 0; i < block_columns / lanes64; ++i) store(norms + i * lanes64, square_root(square[i]));
}

}  // namespace repdl::cpu::REPDL_ISA
