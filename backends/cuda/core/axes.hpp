// Where the elements of strided operands are: the one walk from a row-major index to offsets.
//
// Axes lie innermost first and the walk over them is unrolled in full, so that every size and stride is at a constant
// place of the kernel's parameters. (A loop that indexes them, over a rank known at run time, is what nvcc 13.0 turned
// into reads of the wrong array: docs/nvcc-parameter-loop.md. tools/check_ptx.py refuses kernels that index their
// parameters by a register.)
#pragma once

#include <cstdint>

#include "backends/cuda/core/device.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

// Not 0 in the programs that show that the self-test finds a fault (tests/cuda/seeded_fault.cpp): 1: the first operand's
// element 0 in every place, 2: addresses outside of all memory.
#if defined(REPDL_SEEDED_FAULT)
inline constexpr int fault = REPDL_SEEDED_FAULT;
#else
inline constexpr int fault = 0;
#endif

// The axes that `Operands` operands are walked along together. Rank 0: a single element. Zero where there is no axis.
template <int Operands>
struct strided_axes {
  int rank;
  std::int64_t size[max_rank];
  std::int64_t stride[Operands][max_rank];

  // Of a plan, whose axes lie outermost first.
  void set_shape(int axes, const plan::axes& shape) {
    rank = axes;
    for (int d = 0; d < axes; ++d) size[d] = shape[static_cast<std::size_t>(axes - 1 - d)];
  }
  void set_stride(int operand, const plan::axes& strides) {
    for (int d = 0; d < rank; ++d) stride[operand][d] = strides[static_cast<std::size_t>(rank - 1 - d)];
  }

#if defined(__CUDACC__) || defined(REPDL_EMULATED)
  // The offsets of operands First, First + 1, ... at a row-major index. Index is 32 bits wide where the number of
  // elements allows it, for the divisions.
  template <int First = 0, class Index, int N>
  __device__ void locate(Index index, std::int64_t (&offset)[N]) const {
    static_assert(First + N <= Operands);
#if defined(__CUDACC__)
    // Marks the walk for tools/check_ptx.py: it divides by the sizes that follow the rank. ptxas drops the move.
    asm volatile("{ .reg .b32 strided_axes_%1_%2; mov.b32 strided_axes_%1_%2, %0; }" ::"r"(rank), "n"(max_rank),
                 "n"(Operands));
#endif
#pragma unroll
    for (int k = 0; k < N; ++k) offset[k] = 0;
#pragma unroll
    for (int d = 0; d < max_rank; ++d) {
      Index at = index;
      const bool last = d + 1 == max_rank || d + 1 >= rank;
      if (!last) {
        const Index count = static_cast<Index>(size[d]);
        index /= count;
        at -= index * count;
      }
#pragma unroll
      for (int k = 0; k < N; ++k) offset[k] += static_cast<std::int64_t>(at) * stride[First + k][d];
      if (last) break;
    }
    if (fault == 1) offset[0] = 0;
    if (fault == 2) offset[0] += std::int64_t{1} << 44;
  }
  template <int Operand, class Index>
  __device__ std::int64_t offset(Index index) const {
    std::int64_t at[1];
    locate<Operand>(index, at);
    return at[0];
  }
#endif
};

}  // namespace repdl::cuda
