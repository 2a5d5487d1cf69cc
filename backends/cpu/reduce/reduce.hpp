// The inner loops of the CPU reductions, one table per instruction set; the driver (reduce.cpp) is compiled once and
// walks over strides, threads and tiers.
//
// Row kernels take one block of contiguous terms of one output, column kernels some rows of many outputs side by side.
// Everything that a kernel returns is a certificate's ingredient, so the instruction sets may differ in every
// intermediate bit and never in a result.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"
#include "librepdl/num/order.hpp"
#include "librepdl/tensor.hpp"

namespace repdl::cpu {

// Terms per call of a row kernel, and columns per call of a column kernel.
inline constexpr std::int64_t row_block = 2048;
inline constexpr std::int64_t column_tile = 512;
// Rows that a column kernel adds up at once, and rows after which the driver calls close_columns.
inline constexpr int row_group = 8;
inline constexpr std::int64_t column_block = 512;
// Columns up to this length are summed by the tracking kernels.
inline constexpr std::int64_t tracked_length = 64;
// The height of the evaluation tree over one column block: 3 levels in a group, one addition per group.
inline constexpr int column_height = static_cast<int>(column_block) / row_group + 3;

// What becomes of sums, as a number: 0 nothing, n a mean of n terms, and
inline constexpr std::int64_t root_of_sum = -1;

// value: the block's sum by binary64 additions over a tree of height <= reduce_loops::row_height.
// magnitude >= (1 - 2^-45) · the sum of the terms' absolute values. Non-finite terms: value says so, magnitude is void.
struct block_sum {
  double value;
  double magnitude;
};

// hi + lo: the block's sum with |error| <= row_dd_height · 4 · 2^-106 · magnitude, and no error at all where
// row_plain_errors · magnitude <= 2^104 g (dd.hpp). magnitude as above. Terms are finite.
struct block_dd {
  double hi;
  double lo;
  double magnitude;
};

// Of differences, D and Q of ops/sums/spread.hpp: |errors| <= row_spread_height * 4 * 2^-106 relative to the magnitudes.
struct block_spread {
  double sum_hi, sum_lo;
  double squares_hi, squares_lo;
  double magnitude;
};

// Of integers: the sum is low + 2^32 high. Of less than 64 bits high is 0.
struct block_integer {
  std::int64_t low;
  std::int64_t high;
};

// Of terms of type T, in the order of num/order.hpp.
template <class T>
struct order_loops {
  using key_type = num::order_key_of<T>;

  // 0 < n <= row_block. The greatest order_key(x[i], flip), and the first i that has a given one (n if there is none).
  key_type (*key_row)(const T* x, std::int64_t n, std::uint32_t flip) noexcept;
  std::int64_t (*find_row)(const T* x, std::int64_t n, std::uint32_t flip, key_type key) noexcept;
  // columns <= column_tile; rows[r][j], r < row_group. For r ascending: where order_key(rows[r][j], flip) > key[j], that becomes
  // key[j] and index[j] becomes at + r.
  void (*key_columns)(const T* const* rows, std::int64_t columns, std::uint32_t flip, std::int32_t at, key_type* key,
                      std::int32_t* index) noexcept;
};

// Of terms and results of format T.
template <class T>
struct reduce_loops {
  order_loops<T> order;
  int row_height;
  std::int64_t row_dd_height;
  std::int64_t row_plain_errors;

  // 0 < n <= row_block. dot: the terms are x[i] · y[i].
  block_sum (*sum_row)(const T* x, std::int64_t n) noexcept;
  block_sum (*dot_row)(const T* x, const T* y, std::int64_t n) noexcept;
  block_dd (*sum_row_dd)(const T* x, std::int64_t n) noexcept;
  block_dd (*dot_row_dd)(const T* x, const T* y, std::int64_t n) noexcept;
  // The minimum of num::lsb_exponent.
  std::int32_t (*lsb_row)(const T* x, std::int64_t n) noexcept;

  // columns <= column_tile; rows[r][j], r < row_group. sum[j] += the group's sum; the largest |x| goes into largest[j],
  // for dot the sum of |x y| is added to magnitude[j].
  void (*sum_columns)(const T* const* rows, std::int64_t columns, double* sum, float* largest) noexcept;
  void (*dot_columns)(const T* const* x, const T* const* y, std::int64_t columns, double* sum,
                      double* magnitude) noexcept;
  // For short columns: sum[j] by a chain of two_sum, and the absolute values of its errors added to error[j]. Zero
  // error proves that the sum is exact, which decides the ties that sums of a few numbers often are.
  void (*sum_columns_tracked)(const T* const* rows, std::int64_t columns, double* sum, double* error) noexcept;
  void (*dot_columns_tracked)(const T* const* x, const T* const* y, std::int64_t columns, double* sum,
                              double* error) noexcept;
  // hi = sum, lo = 0, magnitude = a bound with the slack of certify.hpp (C) on sum's error: 0 if error is.
  void (*close_columns_tracked)(std::int64_t columns, const double* sum, const double* error, double* hi, double* lo,
                                double* magnitude) noexcept;
  // (hi, lo) += sum by two_sum; sum = 0. magnitude += rows · largest; largest = 0. (dot: largest stays 0.)
  void (*close_columns)(std::int64_t columns, std::int64_t rows, double* sum, float* largest, double* hi, double* lo,
                        double* magnitude) noexcept;
  // certify(hi + lo, factor · magnitude), certify_mean with `count` > 0, certify_root with root_of_sum; returns how many are
  // undecided. factor is num::rounded_compensated_bound of a magnitude of 1, 1 for tracked columns, or infinity to make every
  // test fail.
  std::int64_t (*certify_columns)(std::int64_t columns, std::int64_t count, double factor, const double* hi,
                                  const double* lo, const double* magnitude, T* out, std::int32_t* decided) noexcept;
  // lsb[j] = min(lsb[j], lsb_exponent(row[j])).
  void (*lsb_columns)(const T* row, std::int64_t columns, std::int32_t* lsb) noexcept;
};
// What the blocks of a row of binary64 hand on. No result depends on `start`: what a lane's sum begins with, a guess from the block before;
// 0: there was none. exact: every block's sum was, as long as no product's error underflowed.
struct wide_row {
  double start = 0;
  bool exact = true;
};
// Of binary64: sums in double-double from the start.
template <>
struct reduce_loops<double> {
  order_loops<double> order;
  std::int64_t row_dd_height;
  std::int64_t row_spread_height;

  // |error| <= row_dd_height * 4 * 2^-106 * magnitude. Of terms that are not finite, or above 2^1008, nothing is known, and lo is NaN.
  block_dd (*sum_row_dd)(const double* x, std::int64_t n, wide_row* row) noexcept;
  block_dd (*dot_row_dd)(const double* x, const double* y, std::int64_t n, wide_row* row) noexcept;
  // Of x[i] - y[i].
  block_spread (*spread_row)(const double* x, const double* y, std::int64_t n) noexcept;
  // columns <= column_tile; rows[r][j], r < row_group. sum[j] + error[j]: a compensated sum, which close_columns adds to hi[j] + lo[j]
  // after column_block rows; magnitude[j] += the terms' magnitudes.
  void (*sum_columns)(const double* const* rows, std::int64_t columns, double* sum, double* error,
                      double* magnitude) noexcept;
  void (*dot_columns)(const double* const* x, const double* const* y, std::int64_t columns, double* sum, double* error,
                      double* magnitude) noexcept;
  // The same of x[r][j] - y[r][j]; and their squares' sum.
  void (*spread_columns)(const double* const* x, const double* const* y, std::int64_t columns, double* sum,
                         double* error, double* magnitude, double* squares, double* squares_error) noexcept;
  void (*close_columns)(std::int64_t columns, double* sum, double* error, double* hi, double* lo) noexcept;
  // certify(hi + lo, wide_dd_bound(height, magnitude, products)), or of a mean or root (count); returns how many are undecided.
  std::int64_t (*certify_columns)(std::int64_t columns, std::int64_t count, std::int64_t height, std::int64_t products,
                                  const double* hi, const double* lo, const double* magnitude, double* out,
                                  std::int32_t* decided) noexcept;
};
// A compensated sum of column_block terms, of products with their errors: 3 (column_block + 1)^2 u^2 of their magnitudes, in units of 4 u^2.
inline constexpr std::int64_t wide_column_height = (column_block + 1) * (column_block + 1);
// Of spreads (num::spread_height).
inline constexpr std::int64_t spread_column_height = (column_block + 2) * (column_block + 2);

// Of integers, and of booleans, which are bytes.
template <class T>
requires std::is_integral_v<T>
struct reduce_loops<T> {
  order_loops<T> order;

  // 0 < n <= row_block.
  block_integer (*sum_row)(const T* x, std::int64_t n) noexcept;
  // columns <= column_tile; rows[r][j], r < row_group. low[j] + 2^32 high[j] += the group's sum; of fewer than 2^31 rows both fit.
  void (*sum_columns)(const T* const* rows, std::int64_t columns, std::int64_t* low, std::int64_t* high) noexcept;
};

// Results in another format than the operands' (reduce_other.cpp).
void prepare_other(const plan::reduce_plan&, const setting&, dispatch::task&) noexcept;

struct reduce_kernels {
  reduce_loops<f16> of_f16;
  reduce_loops<bf16> of_bf16;
  reduce_loops<float> of_f32;
  reduce_loops<double> of_f64;
  reduce_loops<std::int64_t> of_i64;
  reduce_loops<std::int32_t> of_i32;
  reduce_loops<std::uint8_t> of_bool;

  template <class T>
  const reduce_loops<T>& of() const noexcept {
    if constexpr (std::is_same_v<T, f16>) {
      return of_f16;
    } else if constexpr (std::is_same_v<T, bf16>) {
      return of_bf16;
    } else if constexpr (std::is_same_v<T, float>) {
      return of_f32;
    } else if constexpr (std::is_same_v<T, double>) {
      return of_f64;
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      return of_i64;
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
      return of_i32;
    } else {
      static_assert(std::is_same_v<T, std::uint8_t>);
      return of_bool;
    }
  }
};

}  // namespace repdl::cpu
