// The fp64 matrix instruction as it was observed (backends/cuda/product/mma.cuh): chains of fused multiply-adds. Emulated: tests/cuda/emulation/emulation.hpp.
#pragma once

namespace repdl::cuda {

template <int Fours>
void multiply_add(double (&d)[4], const double (&a)[2 * Fours], const double (&b)[Fours]) {
  struct operands {
    double a[2 * Fours], b[Fours];
  };
  operands mine, all[32];
  std::memcpy(mine.a, a, sizeof(mine.a));
  std::memcpy(mine.b, b, sizeof(mine.b));
  emulation::block& block = emulation::block::current();
  block.exchange(mine, all);
  const int g = block.thread() % 32 / 4, t = block.thread() % 4;
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 4 * Fours; ++k)
        d[2 * h + i] =
            std::fma(all[4 * g + k % 4].a[k / 4 * 2 + h], all[4 * (2 * t + i) + k % 4].b[k / 4], d[2 * h + i]);
    }
  }
}

}  // namespace repdl::cuda
