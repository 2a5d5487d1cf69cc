// matmul on the CPU: the engine, batches that are rows, and which operand plays a and which b.
#include "backends/cpu/product/matmul.hpp"

#include <algorithm>
#include <utility>

#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

// Where every batch has the same b and the rows of a, bias and out go on from one batch to the next, the batch is more
// rows: (batch, rows, k) times (k, n), the usual product in a network, is one matrix product.
plan::matmul_plan folded(plan::matmul_plan p) {
  while (p.batch_rank > 0) {
    const auto axis = static_cast<std::size_t>(p.batch_rank - 1);
    const auto continues = [&](std::int64_t batch_stride, std::int64_t row) {
      return p.m == 1 || batch_stride == p.m * row;
    };
    const bool folds = p.b.batch_stride[axis] == 0 && continues(p.a.batch_stride[axis], p.a.row) &&
                       continues(p.out_batch_stride[axis], p.out_row) &&
                       (p.bias.data == nullptr || continues(p.bias.batch_stride[axis], p.bias.row));
    if (!folds) return p;
    if (p.m == 1) {
      p.a.row = p.a.batch_stride[axis];
      p.bias.row = p.bias.batch_stride[axis];
      p.out_row = p.out_batch_stride[axis];
    }
    p.m *= p.batch_shape[axis];
    p.batches /= p.batch_shape[axis];
    --p.batch_rank;
  }
  return p;
}

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

constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t longest_panel = std::int64_t{512} << 10;  // bytes
constexpr std::int64_t most_dots = 8;

// So few outputs that a packed panel, gemm_kernels::columns wide whatever it holds, is more than twice the operands (4
// columns k bytes against 4 (m + n) k), of sums so long that it stays in no cache. Blocks then pack slices of their
// own.
bool is_slender(const plan::matmul_plan& p, const gemm_kernels& kernels) {
  return 2 * (p.m + p.n) < kernels.columns && p.k > longest_panel / element_bytes / kernels.columns;
}

// The fewest are dot products: at 0.6 ns a term, 6 where the operands are strided, against 60 for a step of a tile.
bool by_dots(const plan::matmul_plan& p, const gemm_kernels& kernels) {
  return p.accumulate == plan::accumulate_kind::exact && !p.is_scaled() && is_slender(p, kernels) &&
         p.m * p.n <= most_dots;
}

gemm_problem problem_of(const plan::matmul_plan& p, const gemm_kernels& kernels, tier first_tier) {
  const auto rank = static_cast<std::size_t>(p.batch_rank);
  const auto& strides = p.b.batch_stride;
  const bool shared_b = std::all_of(strides.begin(), strides.begin() + rank, [](std::int64_t s) { return s == 0; });
  return {p.batches, p.m, p.n, p.k, shared_b, &p, first_tier, is_slender(p, kernels)};
}

class matmul_work final : public dispatch::work {
 public:
  matmul_work(const plan::matmul_plan& plan, const gemm_kernels& kernels, const setting& s) noexcept
      : p_(plan),
        kernels_(kernels),
        count_(s.count),
        problem_(problem_of(p_, kernels, s.launch.first_tier)),
        cut_(problem_, kernels, s.launch.threads) {}

  plan::checked_size bytes() const override { return cut_.bytes(); }
  void run(void* workspace) override { run_gemm(problem_, kernels_, cut_, workspace, count_); }

 private:
  const plan::matmul_plan p_;
  const gemm_kernels& kernels_;
  counters& count_;
  const gemm_problem problem_;  // refers to p_
  const gemm_blocking cut_;
};

}  // namespace

void prepare(const plan::matmul_plan& plan, const setting& s, dispatch::task& t) noexcept {
  if (plan.type == dtype::f64) return prepare(plan::dots_of(plan), s, t);
  const gemm_kernels& k = s.set.matmul->of(plan);
  const plan::matmul_plan p = oriented(folded(plan), k);
  if (by_dots(p, k)) return prepare(plan::dots_of(p), s, t);
  t.emplace<matmul_work>(p, k, s);
}

}  // namespace repdl::cpu
