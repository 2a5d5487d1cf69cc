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

// Uniform on [lo, hi).
inline std::vector<float> uniform(std::int64_t n, std::uint64_t seed, float lo, float hi) {
  std::vector<float> v(static_cast<std::size_t>(n));
  std::uint64_t w = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& x : v) {
    w ^= w << 13;
    w ^= w >> 7;
    w ^= w << 17;
    x = lo + (hi - lo) * (static_cast<float>(w >> 40) * 0x1p-24f);
  }
  return v;
}

}  // namespace bench
