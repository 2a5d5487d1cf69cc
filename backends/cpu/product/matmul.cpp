// matmul on the CPU: the engine, and which operand plays a and which b.
#include "backends/cpu/product/matmul.hpp"

#include <cassert>
#include <utility>

#include "librepdl/dispatch/widened_product.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

strided_product strided(const plan::product_plan& p) {
  const auto matrices = [&]<class Memory>(const plan::product_plan::operand<Memory>& o) {
    return strided_product::matrices<Memory>{o.begin(), o.batch, o.outer[0], o.inner[0], o.is_shared(p.batch)};
  };
  return {p.batch.rank, p.batch.count, p.row.count,   p.column.count, p.term.count,     p.batch.shape,
          p.alpha,      p.beta,        matrices(p.a), matrices(p.b),  matrices(p.bias), matrices(p.out)};
}

// A tile is narrowed by single rows but only by whole vectors of columns, so the transposed product, out' = b' a', may
// fill its tiles better: it is taken when it needs clearly fewer lanes. No bit depends on it (multiplication commutes,
// and the terms keep their order).
strided_product oriented(strided_product p, const gemm_kernels& kernels) {
  const auto lanes = [&](std::int64_t rows, std::int64_t columns) {
    return rows * ((columns + kernels.vector - 1) / kernels.vector * kernels.vector);
  };
  if (lanes(p.n, p.m) >= lanes(p.m, p.n) / 8 * 7) return p;
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.bias.outer, p.bias.inner);
  std::swap(p.out.outer, p.out.inner);
  return p;
}

constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t longest_panel = std::int64_t{512} << 10;  // bytes
constexpr std::int64_t most_dots = 8;

// So few outputs that a packed panel, gemm_kernels::columns wide whatever it holds, is more than twice the operands (4
// columns k bytes against 4 (m + n) k), of sums so long that it stays in no cache. Blocks then pack slices of their
// own.
bool is_slender(std::int64_t m, std::int64_t n, std::int64_t k, const gemm_kernels& kernels) {
  return 2 * (m + n) < kernels.columns && k > longest_panel / element_bytes / kernels.columns;
}

// The fewest are dot products: at 0.6 ns a term, 6 where the operands are strided, against 60 for a step of a tile.
bool by_dots(const plan::product_plan& p, const gemm_kernels& kernels) {
  return p.accumulate == plan::accumulate_kind::exact && !p.is_scaled() &&
         is_slender(p.row.count, p.column.count, p.term.count, kernels) && p.row.count * p.column.count <= most_dots;
}

class product_work final : public dispatch::work {
 public:
  product_work(const plan::product_plan& p, const gemm_kernels& kernels, const setting& s) noexcept
      : p_(oriented(strided(p), kernels)),
        kernels_(kernels),
        count_(s.count),
        problem_{p_.batches,
                 p_.m,
                 p_.n,
                 p_.k,
                 p_.b.is_shared,
                 &p_,
                 s.launch.first_tier,
                 is_slender(p_.m, p_.n, p_.k, kernels)},
        cut_(problem_, kernels, s.launch.threads) {}

  plan::checked_size bytes() const override { return cut_.bytes(); }
  void run(void* workspace) override { run_gemm(problem_, kernels_, cut_, workspace, count_); }

 private:
  const strided_product p_;
  const gemm_kernels& kernels_;
  counters& count_;
  const gemm_problem problem_;  // refers to p_
  const gemm_blocking cut_;
};

}  // namespace

void prepare(const plan::product_plan& p, const setting& s, dispatch::task& t) noexcept {
  assert(p.has_matrices());
  if (plan::is_widened(p)) {
    const auto driver = [s](const auto& plan, const dispatch::subject&, dispatch::task& to) { prepare(plan, s, to); };
    t.emplace<dispatch::widened_product_work<plan::product_plan, decltype(driver)>>(p, driver);
    return;
  }
  if (p.out.type == dtype::f64) return prepare(plan::dots_of(p), s, t);
  const gemm_kernels& k = s.set.product->of(p);
  if (by_dots(p, k)) return prepare(plan::dots_of(p), s, t);
  t.emplace<product_work>(p, k, s);
}

}  // namespace repdl::cpu
