// What is known of a finished tile of a matrix product besides its sums: where it is, and of each row and column the
// norm and the value of the least significant bit. gemm_engines.hpp says what they prove.
#pragma once

#include <cstdint>

#include "backends/cpu/core/simd.hpp"
#include "librepdl/num/certify.hpp"

namespace repdl::cpu::REPDL_ISA {

// The bounds hold for evaluation trees up to this height.
inline constexpr std::int64_t largest_height = std::int64_t{1} << 26;

// A finished tile: its first row and column in the output, its size, and what is known of its rows and columns.
struct tile_position {
  std::int64_t row, column;
  int rows, columns;
  const double* row_norm;
  const double* row_bit;
  const double* column_norm;
  const double* column_bit;
  const void* panel;  // the packed columns, from k = 0; null where blocks pack their own
};

// Norms and least significant bits of Width rows or columns, while they are packed.
template <int Width>
class lane_summary {
 public:
  // values[terms][Width]. Sums of squares: `terms` additions per slice, then one per slice.
  void add(const float* values, std::int64_t terms) noexcept {
    for (int l = 0; l < Width; l += lanes64) {
      f64v squares{};
      f32h bit = load<f32h>(bit_ + l);
      for (std::int64_t k = 0; k < terms; ++k) {
        const f32h x = load<f32h>(values + k * Width + l);
        const f64v wide = widen(x);
        squares = fma_exact_product(wide, wide, squares);
        bit = smaller(bit, lowest_bit(x));
      }
      store(squares_ + l, load<f64v>(squares_ + l) + squares);
      store(bit_ + l, bit);
    }
  }
  void finish(double* norm, double* lowest) const noexcept {
    for (int l = 0; l < Width; ++l) {
      norm[l] = num::sqrt(squares_[l]);
      lowest[l] = bit_[l];
    }
  }
  lane_summary() noexcept {
    for (float& b : bit_) b = __builtin_inff();
  }

 private:
  double squares_[Width] = {};
  float bit_[Width];
};

// Of binary64: the greatest magnitude, in the norm's place; infinity, or anything, where one of them is not finite.
template <int Width>
class greatest_of_lines {
 public:
  void add(const double* values, std::int64_t terms) noexcept {
    for (std::int64_t k = 0; k < terms; ++k)
      for (int l = 0; l < Width; ++l) {
        const double a = num::magnitude_of(values[k * Width + l]);
        greatest_[l] = a > greatest_[l] ? a : greatest_[l];
      }
  }
  void finish(double* greatest, double*) const noexcept {
    for (int l = 0; l < Width; ++l) greatest[l] = greatest_[l];
  }

 private:
  double greatest_[Width] = {};
};

template <int>
struct no_summary {
  void add(const float*, std::int64_t) noexcept {}
  void finish(double*, double*) const noexcept {}
};

// The same of one row or column, from memory. The roots of the lanes are squared again: at most 4 u relative, which the
// double-double bound, its only user, has room for (8 / N > 2^-23 against 2 (N + 9) u).
struct operand_summary {
  double norm, lowest_bit;

  template <class Loader>
  [[gnu::noinline]] operand_summary(const Loader& loader, std::int64_t index, std::int64_t k) noexcept {
    constexpr int chunk = 256;
    alignas(64) float values[chunk];
    lane_summary<lanes64> seen;
    for (std::int64_t k0 = 0; k0 < k; k0 += chunk) {
      std::int64_t terms = k - k0 < chunk ? k - k0 : chunk;
      loader.template load<1>(index, 1, k0, terms, values);
      for (; terms % lanes64 != 0; ++terms) values[terms] = 0;
      seen.add(values, terms / lanes64);
    }
    double norms[lanes64], bits[lanes64];
    seen.finish(norms, bits);
    double squares = 0;
    lowest_bit = num::infinity;
    for (int l = 0; l < lanes64; ++l) {
      squares += norms[l] * norms[l];
      lowest_bit = bits[l] < lowest_bit ? bits[l] : lowest_bit;
    }
    norm = num::sqrt(squares);
  }
};

// The exponent of a power of two, num::no_lsb for infinity.
inline int lsb_of(double bit) noexcept {
  return num::is_finite(bit) ? static_cast<int>(num::bits_of(bit) >> 52) - 1023 : num::no_lsb;
}

}  // namespace repdl::cpu::REPDL_ISA
