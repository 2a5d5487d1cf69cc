// The matmul kernels of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/product/gemm.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

// Their operands are a plan::matmul_plan.
struct matmul_kernels {
  gemm_kernels exact;
  gemm_kernels fma_chain;
  gemm_kernels scaled, f16, bf16;  // exact, with alpha and beta: of f32, of the others

  const gemm_kernels& of(const plan::matmul_plan& p) const noexcept {
    if (p.accumulate == plan::accumulate_kind::fma_chain) return fma_chain;
    return p.type == dtype::f16 ? f16 : p.type == dtype::bf16 ? bf16 : p.is_scaled() ? scaled : exact;
  }
};

}  // namespace repdl::cpu
