// Inputs of the benchmarks: normally distributed enough for the purpose (sums of uniform integers), deterministic.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

// Mean 0, standard deviation 1, scaled.
inline std::vector<float> normal(std::int64_t n, std::uint64_t seed, float scale = 1.0f) {
  std::vector<float> v(static_cast<std::size_t>(n));
  std::uint64_t w = seed * 0x9e3779b97f4a7c15u + 1;
  const auto next = [&] {
    w ^= w << 13;
    w ^= w >> 7;
    w ^= w << 17;
    return static_cast<float>(w >> 40) * 0x1p-24f;
  };
  for (float& x : v) {
    float s = -6.0f;
    for (int i = 0; i < 12; ++i) s += next();
    x = s * scale;
  }
  return v;
}

// The same numbers, with 53 bits.
inline std::vector<double> normal_wide(std::int64_t n, std::uint64_t seed) {
  const std::vector<float> high = normal(n, seed), low = normal(n, seed + 99);
  std::vector<double> v(high.begin(), high.end());
  for (std::size_t i = 0; i < v.size(); ++i) v[i] += static_cast<double>(low[i]) * 1e-9;
  return v;
}

// Uniform on [lo, hi).
template <class T = float>
std::vector<T> uniform(std::int64_t n, std::uint64_t seed, T lo, T hi) {
  constexpr int bits = sizeof(T) == 4 ? 24 : 53;
  std::vector<T> v(static_cast<std::size_t>(n));
  std::uint64_t w = seed * 0x9e3779b97f4a7c15u + 1;
  for (T& x : v) {
    w ^= w << 13;
    w ^= w >> 7;
    w ^= w << 17;
    x = lo + (hi - lo) * (static_cast<T>(w >> (64 - bits)) / static_cast<T>(std::uint64_t{1} << bits));
  }
  return v;
}

}  // namespace bench
