// Inputs of the consumer programs and of their expected results: bit patterns made by integer operations only, so that
// no floating-point environment and no compiler flag has a say in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace samples {

using patterns = std::vector<std::uint32_t>;

// splitmix64, high half (S. Vigna, public domain).
inline std::uint32_t word(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

// Any pattern; every fourth one is subnormal, and the list begins with the least subnormals.
inline patterns any(std::size_t n, std::uint64_t seed) {
  patterns p(n);
  for (std::size_t i = 0; i < n; ++i) {
    p[i] = word(seed * n + i);
    if (i % 4 == 0) p[i] &= 0x807fffffu;
    if (i < 64) p[i] = static_cast<std::uint32_t>(i / 2) | (i % 2 != 0 ? 0x80000000u : 0u);
  }
  return p;
}

// Finite, exponents in [first, first + 2^bits).
inline patterns finite(std::size_t n, std::uint64_t seed, std::uint32_t first, std::uint32_t bits) {
  patterns p(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t w = word(seed * n + i);
    p[i] = (w & 0x807fffffu) | ((first + (w >> 23 & ((1u << bits) - 1))) << 23);
  }
  return p;
}

inline constexpr std::size_t count = 20000;
inline constexpr const char* unary[] = {"exp", "log", "tanh", "sigmoid", "sqrt"};
inline constexpr const char* binary[] = {"add", "mul", "div", "sigmoid_backward"};

inline patterns x() { return any(count, 1); }
// Exponents around 127 - 64, so that products and quotients of x and y are often subnormal.
inline patterns y() { return finite(count, 2, 32, 6); }
// exp, log, tanh, sigmoid where something happens: 2^-8 to 2^7.
inline patterns moderate() { return finite(count, 3, 119, 4); }

// Sums: all of a (100, 200) matrix, its rows, its columns; wide exponents, so that subnormals and cancellation matter.
inline constexpr std::int64_t rows = 100, columns = 200;
inline patterns terms() { return finite(rows * columns, 4, 0, 5); }

inline constexpr std::int64_t m = 33, k = 65, n = 17;
inline patterns a() { return finite(m * k, 5, 120, 3); }
inline patterns b() { return finite(k * n, 6, 120, 3); }
// Products near 2^-149.
inline patterns small_a() { return finite(m * k, 7, 40, 4); }
inline patterns small_b() { return finite(k * n, 8, 10, 4); }
inline patterns bias() { return finite(n, 9, 120, 3); }

}  // namespace samples
