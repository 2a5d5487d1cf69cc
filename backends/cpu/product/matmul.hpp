// The matmul kernels of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/product/gemm.hpp"

namespace repdl::cpu {

// Their operands are a plan::matmul_plan.
struct matmul_kernels {
  gemm_kernels exact;
  gemm_kernels fma_chain;
};

}  // namespace repdl::cpu
