// Operands of products on their way into blocks of binary32 numbers, or of binary64. Included by kernels only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/core/formats.hpp"
#include "backends/cpu/core/simd.hpp"

namespace repdl::cpu::REPDL_ISA {

// Rows or columns of numbers N, float or double, in memory, `lane` elements from one to the next, `depth` from one term to
// the next.
template <class N>
struct strided_loader {
  const N* data;
  std::int64_t lane;
  std::int64_t depth;

  template <int Width>
  void load(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, N* to) const noexcept {
    const N* const from = data + first * lane + k0 * depth;
    if constexpr (Width % 4 == 0) {
      if (depth == 1) return transpose<Width>(from, count, terms, to);
      if (lane == 1 && count == Width) {
        for (std::int64_t k = 0; k < terms; ++k) __builtin_memcpy(to + k * Width, from + k * depth, Width * sizeof(N));
        return;
      }
    } else if constexpr (Width == 1) {
      if (depth == 1) {
        __builtin_memcpy(to, from, static_cast<std::size_t>(terms) * sizeof(N));
        return;
      }
    }
    for (std::int64_t k = 0; k < terms; ++k) {
      for (int l = 0; l < count; ++l) to[k * Width + l] = from[k * depth + l * lane];
      for (int l = count; l < Width; ++l) to[k * Width + l] = 0;
    }
  }

 private:
  // depth = 1: four lanes by four terms at a time.
  template <int Width>
  void transpose(const N* from, int count, std::int64_t terms, N* to) const noexcept {
    using quad = vec<N, 4>;
    const std::int64_t whole = terms / 4 * 4;
    for (int l = 0; l < Width; l += 4) {
      const auto row = [&](int i) { return from + (l + i) * lane; };
      const int present = std::clamp(count - l, 0, 4);
      for (std::int64_t k = 0; k < whole; k += 4) {
        quad r[4] = {};
        // Not by `load`: a function that returns 32 bytes is another one with AVX and without.
        const auto read = [&](int i) { __builtin_memcpy(&r[i], row(i) + k, sizeof(quad)); };
        if (present == 4) {
          for (int i = 0; i < 4; ++i) read(i);
        } else {
          for (int i = 0; i < present; ++i) read(i);
        }
        const quad low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
        const quad low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
        const quad high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
        const quad high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
        N* t = to + k * Width + l;
        REPDL_ISA::store(t, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
        REPDL_ISA::store(t + Width, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
        REPDL_ISA::store(t + 2 * Width, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
        REPDL_ISA::store(t + 3 * Width, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
      }
      for (std::int64_t k = whole; k < terms; ++k)
        for (int i = 0; i < 4; ++i) to[k * Width + l + i] = i < present ? row(i)[k] : 0;
    }
  }
};

// to[0 .. count) = from[0 .. count), widened.
template <class T>
inline void widen_run(const T* from, std::int64_t count, float* to) noexcept {
  const std::int64_t whole = count - count % lanes64;
  for (std::int64_t i = 0; i < whole; i += lanes64) store(to + i, widened<f32h>(from + i));
  for (std::int64_t i = whole; i < count; ++i) to[i] = num::widen_to_float(from[i]);
}

// Rows or columns of a narrower format, widened.
template <class T>
struct widening_loader {
  const T* data;
  std::int64_t lane;
  std::int64_t depth;

  template <int Width>
  void load(std::int64_t first, int count, std::int64_t k0, std::int64_t terms, float* to) const noexcept {
    const T* const from = data + first * lane + k0 * depth;
    if (Width > 1 && depth == 1) {
      constexpr std::int64_t chunk = 64;
      alignas(64) float rows[Width * chunk];
      for (std::int64_t k = 0; k < terms; k += chunk) {
        const std::int64_t n = std::min(chunk, terms - k);
        for (int l = 0; l < count; ++l) widen_run(from + l * lane + k, n, rows + l * chunk);
        strided_loader<float>{rows, chunk, 1}.template load<Width>(0, count, 0, n, to + k * Width);
      }
      return;
    }
    if (Width == 1 && depth == 1) return widen_run(from, terms, to);
    for (std::int64_t k = 0; k < terms; ++k) {
      if (lane == 1 && count == Width) {
        widen_run(from + k * depth, Width, to + k * Width);
        continue;
      }
      for (int l = 0; l < count; ++l) to[k * Width + l] = num::widen_to_float(from[k * depth + l * lane]);
      for (int l = count; l < Width; ++l) to[k * Width + l] = 0;
    }
  }
};

// What products of T are made of: T itself, or binary32, which has every number of a format of 16 bits.
template <class T>
using number_of = std::conditional_t<sizeof(T) == 2, float, T>;
template <class T>
using loader_of = std::conditional_t<sizeof(T) == 2, widening_loader<T>, strided_loader<T>>;

}  // namespace repdl::cpu::REPDL_ISA
