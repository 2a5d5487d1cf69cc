// The inner loops of the softmax family, one table per instruction set; the driver (rows.cpp) is compiled once and
// walks over strides, threads and tiers. The numerics are those of librepdl/ops/rows.hpp.
//
// A block is a piece of one row whose elements lie side by side, or a tile: columns rows side by side, element j of row
// c at [j * columns + c]. What belongs to a row (its maximum, its sums, ...) is in row_state, at 0 or at c.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

// Elements of one row per call, and rows per tile (a multiple of column_step).
inline constexpr std::int64_t row_chunk = 2048;
inline constexpr int tile_columns = 256;
inline constexpr int column_step = 16;
// From this number of elements on, outputs are written past the caches, which they would only go through.
inline constexpr std::int64_t streamed_length = std::int64_t{1} << 24;

struct alignas(64) row_state {
  double max[tile_columns];    // M
  double rest[tile_columns];   // sum of e^(x - M) over x < M, or over all x (count 0)
  double count[tile_columns];  // the number of x = M
  double scale[tile_columns];  // in: g; in of gaps(): the other operand of the gap
  double low[tile_columns];    // the ends of g / n / S; or R and its slack
  double high[tile_columns];
  double sum[tile_columns];  // tracked sums (ops/rows.hpp): hi, lo, error; slack from the driver
  double lo[tile_columns];
  double error[tile_columns];
  double slack[tile_columns];
  float top[tile_columns];
  std::int32_t magnitude[tile_columns];  // the greatest |x| as bits
  std::int32_t special[tile_columns];    // track(): not 0 where b has NaN or +inf
  float value[tile_columns];             // gaps(): the rows' results
  std::uint32_t open[tile_columns];
};

struct row_slice {
  const float* a;
  const float* b;
  double* keep;  // of the block's shape, room for one register more; may be null
  std::int64_t n;
  std::int64_t columns;  // 0: a piece of one row
  std::uintptr_t ahead;  // address of n elements that weights() brings closer: they are wanted next; 0: none
  float* out;
  bool stream;          // out is written past the caches
  std::uint32_t* open;  // of the block's shape, or null: not 0 for elements that are not decided
  row_state* state;
};

// One row in double-double.
struct wide_row {
  float max;
  double count;
  double rest[2];
  std::int64_t height;
};

struct row_kernels {
  int lanes;  // of binary64
  // state.top and .magnitude |= the block's. NaN: magnitude says so.
  void (*top)(const row_slice&) noexcept;
  // state.rest, .count of the block. separate: the elements at the maximum are counted, -inf has weight 0; else count
  // = 0 and rest has all (-inf counts as the least gap). keep: e^(x - M) of every element. Additions on a path:
  // weights_height.
  void (*weights)(const row_slice&, bool separate) noexcept;
  // low, high of scale / n / S, relative bound as given; infinite for an infinite bound.
  void (*factors)(row_state&, std::int64_t rows, double n, double bound) noexcept;
  // low, high = R and its slack.
  void (*logarithms)(row_state&, std::int64_t rows, double bound) noexcept;
  // value = (max - scale) + R.
  void (*gaps)(row_state&, std::int64_t rows) noexcept;
  // These return how many elements are not decided (some twice where they are streamed). scale: e^(x - M) between low
  // and high, from keep where it is not null. The others: see ops/rows.hpp.
  std::int64_t (*scale)(const row_slice&) noexcept;
  std::int64_t (*log_softmax)(const row_slice&) noexcept;
  std::int64_t (*softmax_backward)(const row_slice&) noexcept;      // a = g, b = y
  std::int64_t (*log_softmax_backward)(const row_slice&) noexcept;  // a = g, b = y
  void (*drain)() noexcept;                                         // what was streamed comes before all later stores
  // state.sum, .lo, .error of the block: of a, or of a b.
  void (*track)(const row_slice&, bool products) noexcept;

  // Double-double. rest += e^(x - max) over x < max.
  void (*rest_dd)(const float* x, std::int64_t n, float max, double* rest) noexcept;
  // R's hi, lo, absolute error.
  void (*logarithm_dd)(const wide_row&, double* r) noexcept;
  // decided[i] != 0: out[i] is the result. The element operations, one after the other:
  void (*settle_weights)(const wide_row&, const float* x, int count, float g, double n, bool target, float* out,
                         std::uint8_t* decided) noexcept;
  void (*settle_gaps)(const wide_row&, const float* a, const float* b, int count, double sign, float* out,
                      std::uint8_t* decided) noexcept;
  void (*settle_softmax_backward)(const double* tracked, const float* g, const float* y, int count, float* out,
                                  std::uint8_t* decided) noexcept;
  void (*settle_log_softmax_backward)(const double* tracked, const float* g, const float* y, int count, float* out,
                                      std::uint8_t* decided) noexcept;
};

// Additions on the longest path of weights().
inline std::int64_t weights_height(int lanes, std::int64_t n, bool tile) noexcept {
  return tile ? n / 4 + 6 : n / (4 * lanes) + 8 + lanes;
}

}  // namespace repdl::cpu
