// The matmul kernels of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/product/gemm.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

// A plan of matrices as the kernels read it: their `operands`.
struct strided_product {
  template <class Memory>
  struct matrices {
    Memory* data;
    plan::axes batch;
    std::int64_t outer, inner;  // strides, as in the plan
    bool is_shared;             // by all batches
  };
  int batch_rank;
  std::int64_t batches, m, n, k;
  plan::axes batch_shape;
  double alpha, beta;
  matrices<const void> a, b, bias;
  matrices<void> out;
};

struct product_kernels {
  gemm_kernels exact;
  gemm_kernels fma_chain;
  gemm_kernels scaled, f16, bf16;  // exact, with alpha and beta: of f32, of the others

  const gemm_kernels& of(const plan::product_plan& p) const noexcept {
    if (p.accumulate == plan::accumulate_kind::fma_chain) return fma_chain;
    switch (p.out.type) {
      case dtype::f16:
        return f16;
      case dtype::bf16:
        return bf16;
      case dtype::f32:
        return p.is_scaled() ? scaled : exact;
      case dtype::f64:
      case dtype::i64:
      case dtype::boolean:
      case dtype::i32:
      case dtype::f8_e4m3fn:
      case dtype::f8_e5m2:
        break;
    }
    __builtin_unreachable();
  }
};

}  // namespace repdl::cpu
