// The fp64 matrix instruction as it was observed (backends/cuda/product/mma.cuh): chains of fused multiply-adds. Emulated: tests/cuda/emulation/emulation.hpp.
#pragma once

namespace repdl::cuda {

template <int Fours>
void multiply_add(double (&d)[4], const double (&a)[2 * Fours], const double (&b)[Fours]) {
  static_assert(Fours == 2);
  struct operands {
    double a[4], b[2];
  };
  operands mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, all[32];
  emulation::block& block = emulation::block::current();
  block.exchange(mine, all);
  const int g = block.thread() % 32 / 4, t = block.thread() % 4;
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 8; ++k)
        d[2 * h + i] =
            std::fma(all[4 * g + k % 4].a[k / 4 * 2 + h], all[4 * (2 * t + i) + k % 4].b[k / 4], d[2 * h + i]);
    }
  }
}

}  // namespace repdl::cuda
