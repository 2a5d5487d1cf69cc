// The fp64 matrix instruction and the layout of its operands in shared memory.
//
// Documented: operands and result are binary64, rounding is .rn. Not documented: the order of the additions and the
// width between them. What matmul.cu assumes, for any evaluation order:
//   (D1) each output is an evaluation tree over c and the exact products; every addition has a relative error of at most
//        u_D = 2^-52 (twice that of round to nearest: truncation would do) and is exact when its result is representable;
//   (D2) no operand or intermediate result is flushed.
// Observed on compute capability 9.0 for m8n8k4, m16n8k8 and m16n8k16, on 9.7e8 outputs of six classes of inputs each:
// the result is the chain c, then fma(a_k, b_k, .) for k ascending, bit for bit, while descending and pairwise orders
// differ on 20 to 45 %. The start-up self-test (self_test.cu) repeats a small part of that comparison on the device at
// hand.
#pragma once

#include <cstdint>

#include "backends/cuda/product/matmul_cut.hpp"

namespace repdl::cuda {

// d (16 x 8) += a (16 x 16) b (16 x 8), one warp. With g = lane / 4, t = lane % 4:
//   a[2 j + h] = A(g + 8 h, 4 j + t)     b[j] = B(4 j + t, g)     d[2 h + i] = D(g + 8 h, 2 t + i)
__device__ inline void multiply_add(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
#if __CUDA_ARCH__ >= 900
#pragma unroll
  for (int j = 0; j < 4; j += 2) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rn {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[2 * j]), "d"(a[2 * j + 1]), "d"(a[2 * j + 2]), "d"(a[2 * j + 3]), "d"(b[j]), "d"(b[j + 1]));
  }
#else
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+d"(d[2 * h]), "+d"(d[2 * h + 1])
                   : "d"(a[2 * j + h]), "d"(b[j]));
    }
  }
#endif
}

// Operands are packed in panels of 64 rows x 16 k of binary64 numbers, 8 KiB each, as they will lie in shared memory:
// in the order in which lanes read them, two numbers (16 bytes) at a time, into neighbouring registers. A warp's reads
// are then contiguous: no bank conflicts, no moves.
//   a: [16 rows][j][lane][h]          b: [8 rows][j / 2][lane][j % 2]          (rows of b are columns of the product)
__host__ __device__ constexpr int place_a(int row, int k) {
  return row / 16 * 256 + k / 4 * 64 + (row % 8 * 4 + k % 4) * 2 + row / 8 % 2;
}
__host__ __device__ constexpr int place_b(int row, int k) {
  return row / 8 * 128 + k / 8 * 64 + (row % 8 * 4 + k % 4) * 2 + k / 4 % 2;
}

}  // namespace repdl::cuda
