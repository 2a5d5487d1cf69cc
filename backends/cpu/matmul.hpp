// The matmul kernels of one instruction set.
#pragma once

#include "backends/cpu/gemm.hpp"

namespace repdl::cpu {

// Their operands are a plan::matmul_plan.
struct matmul_kernels {
  gemm_kernels exact;
  gemm_kernels fma_chain;
};

// clang-format off
namespace baseline { extern const matmul_kernels matmul_table; }
namespace avx2 { extern const matmul_kernels matmul_table; }
namespace avx512 { extern const matmul_kernels matmul_table; }
namespace neon { extern const matmul_kernels matmul_table; }
// clang-format on

}  // namespace repdl::cpu
