// matmul on the CPU: which operand plays a and which b, and the engine.
#include "backends/cpu/matmul.hpp"

#include <algorithm>
#include <utility>

#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

// A tile is narrowed by single rows but only by whole vectors of columns, so the transposed product, out' = b' a', may
// fill its tiles better: it is taken when it needs clearly fewer lanes. No bit depends on it (multiplication commutes,
// and the terms keep their order).
plan::matmul_plan oriented(const plan::matmul_plan& p, const gemm_kernels& kernels) {
  const auto lanes = [&](std::int64_t rows, std::int64_t columns) {
    return rows * ((columns + kernels.vector - 1) / kernels.vector * kernels.vector);
  };
  if (lanes(p.n, p.m) >= lanes(p.m, p.n) / 8 * 7) return p;
  plan::matmul_plan t = p;
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  std::swap(t.a.row, t.a.col);
  std::swap(t.b.row, t.b.col);
  std::swap(t.bias.row, t.bias.col);
  std::swap(t.out_row, t.out_col);
  return t;
}

const gemm_kernels& engine(const plan::matmul_plan& p, const matmul_kernels& kernels) {
  return p.accumulate == plan::accumulate_kind::exact ? kernels.exact : kernels.fma_chain;
}

gemm_problem problem_of(const plan::matmul_plan& p, tier first_tier) {
  const auto rank = static_cast<std::size_t>(p.batch_rank);
  const auto& strides = p.b.batch_stride;
  const bool shared_b = std::all_of(strides.begin(), strides.begin() + rank, [](std::int64_t s) { return s == 0; });
  return {p.batches, p.m, p.n, p.k, shared_b, &p, first_tier};
}

}  // namespace

std::size_t matmul_workspace(const plan::matmul_plan& plan, const dispatch::launch& launch,
                             const matmul_kernels& kernels) noexcept {
  const gemm_kernels& k = engine(plan, kernels);
  const plan::matmul_plan p = oriented(plan, k);
  return gemm_workspace(problem_of(p, launch.first_tier), k, launch.threads);
}

void run_matmul(const plan::matmul_plan& plan, const dispatch::launch& launch, const matmul_kernels& kernels,
                counters& counted) noexcept {
  const gemm_kernels& k = engine(plan, kernels);
  const plan::matmul_plan p = oriented(plan, k);
  run_gemm(problem_of(p, launch.first_tier), k, launch.threads, launch.workspace, counted);
}

}  // namespace repdl::cpu
