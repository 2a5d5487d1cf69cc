// The fp64 matrix instruction.
//
// Documented: operands and result are binary64, rounding is .rn, multiplication and addition are as precise as those of the
// fma of binary64 (PTX ISA, mma). Not documented: the order of the additions. What kernels assume, for any order:
//   (D1) each output is an evaluation tree over c and the exact products; every addition has a relative error of at most
//        u = 2^-53 and is exact when its result is representable;
//   (D2) no operand or intermediate result is flushed.
// Observed on compute capability 9.0 for m8n8k4, m16n8k8 and m16n8k16, on 9.7e8 outputs of six classes of inputs each:
// the result is the chain c, then fma(a_k, b_k, .) for k ascending, bit for bit, while descending and pairwise orders
// differ on 20 to 45 %. The start-up self-test (self_test.cu) repeats a small part of that comparison on the device at
// hand, and a device that does anything else is not used.
#pragma once

#include <cstdint>

namespace repdl::cuda {

// d (16 x 8) += a (16 x K) b (K x 8), K = 8 or 16, one warp. With g = lane / 4, t = lane % 4:
//   a[2 j + h] = A(g + 8 h, 4 j + t)     b[j] = B(4 j + t, g)     d[2 h + i] = D(g + 8 h, 2 t + i)
template <int Fours>
__device__ void multiply_add(double (&d)[4], const double (&a)[2 * Fours], const double (&b)[Fours]) {
#if __CUDA_ARCH__ >= 900
#pragma unroll
  for (int j = 0; j < Fours; j += 2) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rn {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[2 * j]), "d"(a[2 * j + 1]), "d"(a[2 * j + 2]), "d"(a[2 * j + 3]), "d"(b[j]), "d"(b[j + 1]));
  }
#else
#pragma unroll
  for (int j = 0; j < Fours; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+d"(d[2 * h]), "+d"(d[2 * h + 1])
                   : "d"(a[2 * j + h]), "d"(b[j]));
    }
  }
#endif
}

}  // namespace repdl::cuda
