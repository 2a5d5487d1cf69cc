// Operations on rows (librepdl/ops/rows/rule.hpp).
//
// Rows are held in registers, by a team of threads: some lanes of a warp, some warps, or, of more than 8192 elements, a cluster of
// blocks: one read, one write. Rows whose neighbours are nearer than their own elements (a class axis that is not the last) take a
// thread each, which reads the row as often as it needs it. Rows that are too long for a cluster are cut into chunks (rows_long.cuh), and
// so are long rows with near neighbours, but for those whose greatest element is looked for. Of norms with few weights, which are quick
// to compute, a block reads a long row twice. Where a multiprocessor has no more than a row, and not a long one, a block goes on with it
// until it is done: the call is one launch, as calls of few numbers take as long as they have launches.
// Rows with elements that binary64 leaves undecided are listed for rows_late.cu. The launches do not depend on the data.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "backends/cuda/rows/rows_chunks.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = row_threads;

// What the last results of rows were before: a copy of it.
__global__ void __launch_bounds__(threads)
    copy_former(const __grid_constant__ row_geometry g, const void* first, const void* second, dtype type, float* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    to[row] = number_at<any_format>(first, row_offset<former_place>(g, row), type);
    to[g.rows + row] = number_at<any_format>(second, row_offset<former_place + 1>(g, row), type);
  }
}

__global__ void __launch_bounds__(threads) count_targets(const __grid_constant__ row_geometry g) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  unsigned n = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    n += g.target[row_offset<target_place>(g, row)] != g.ignore_index ? 1u : 0u;
  }
  n = __reduce_add_sync(full_warp, n);
  if (lane_of_thread() == 0 && n != 0) atomicAdd(&g.status->counted, static_cast<unsigned long long>(n));
}

class row_work final : public planned {
 public:
  row_work(const plan::row_plan& p, std::unique_ptr<widened_x> x, const job& given) : planned(given), x_(std::move(x)) {
    row_geometry& g = g_;
    ops::for_row_operation(p.op, [&]<class Op>() {
      using rule = device_rule<Op::id>;
      constexpr row_facts facts = row_facts_of<rule>(is_whole<rule, float>);
      cut_ = cut_rows(g, p, facts, j.device, j.first_tier, j.last_tier_bits);
      // Few rows are a kernel's that knows no format.
      const bool precise = num::has_precise_sums<rule> && g.type == dtype::f32 && cut_.how != row_manner::few;
      g.bounds = j.first_tier > tier::binary64 ? num::row_bounds::nothing()
                                               : rule::bounds(p.length, precise ? 0 : cut_.additions, cut_.tracked);
      g.settles = precise && rule::per_element && (cut_.levels & 1u) != 0;
    });
    g.levels = g.settles ? cut_.levels & ~1u : cut_.levels;
    if (x_ != nullptr) space.take(x_->copy, x_->count, size_of(x_->to));
    if (cut_.former[0] != nullptr) space.take(former_, 2, g.rows);
    if (cut_.how == row_manner::few) return;
    const int lists = g.is_total ? 0 : g.length > late_chunk ? 3 : 1;
    const std::size_t before = space.used().value();
    // Up to here, `zeroed_` bytes, the workspace is set to zero before every call.
    space.take(g.status, 1);
    space.take(g.list_bits, lists, g.list_words());
    if (lists == 3) {
      space.take(g.undecided_count, g.rows);
      space.take(g.chunks_done, g.rows);
    }
    zeroed_ = space.used().value() - before;
    if (cut_.how == row_manner::chunks && !g.whole &&
        g.target == nullptr) {  // their first kernel sums up, and lists nothing
      g.cleared_words = static_cast<std::int64_t>(std::exchange(zeroed_, 0) / sizeof(std::uint32_t));
    }
    space.take(g.list_rows, lists, g.rows);
    if (lists == 3) space.take(g.undecided, g.rows);
    ops::for_row_operation(g.op, [&]<class Op>() { space.take(g.known, g.rows, sizeof(known_row<Op::id>)); });
    if (cut_.how == row_manner::chunks) take_workspace(long_, g, space);
    if (g.is_weighted) take_weight_workspace(weights_, space);
    if (g.is_total) {
      space.take(g.losses, g.rows);
      take_total_workspace(parts_, g, space);
    } else {
      take_late_workspace(parts_, g, space);
    }
  }

 private:
  template <class T>
  void launch_fast() {
    const row_geometry& g = g_;
    if (g.rows == 0) return;
    if (cut_.how == row_manner::chunks) return run_long_rows<T>(g, long_, j);
    if (cut_.how == row_manner::columns) return run_columns<T>(g, j);
    run_registers<T>(g, cut_.per_thread, cut_.packed, j);
  }

  void enqueue() override {
    row_geometry& g = g_;
    if (x_ != nullptr) {
      run_widening(*x_, j);
      g.x[0] = x_->copy;
    }
    if (zeroed_ != 0) check(cudaMemsetAsync(g.status, 0, zeroed_, j.stream), "rows", "cudaMemsetAsync");
    if (cut_.former[0] != nullptr && g.rows != 0) {
      for (int k = 0; k < 2; ++k) g.row_former[k] = former_ + k * g.rows;
      launch_kernel<copy_former>(j, grid_for(j.device, ceil_div(g.rows, threads), 8), threads, 0, g, cut_.former[0],
                                 cut_.former[1], cut_.former_type, former_);
    }
    if (g.target != nullptr && g.rows != 0) {
      launch_kernel<count_targets>(j, grid_for(j.device, ceil_div(g.rows, threads), 8), threads, 0, g);
    }
    if (cut_.how == row_manner::few) return run_few_rows(g, j);
    if (g.is_weighted && g.rows != 0) run_weights(g, weights_, j);
    ops::for_each_format<ops::NARROW>([&]<class T>() {
      if (dtype_of<T> == g.type) launch_fast<T>();
    });
    if (g.is_total) {
      run_total(g, parts_, j);
    } else {
      run_late_rows(g, parts_, j);
    }
  }

  const std::unique_ptr<widened_x> x_;  // null: there is no copy of x
  row_geometry g_{};
  row_cut cut_{};
  std::size_t zeroed_ = 0;
  float* former_ = nullptr;
  long_work long_{};
  std::byte* weights_ = nullptr;  // parts of the sum of weights,
  std::byte* parts_ = nullptr;    // of the total, or late sums
};

}  // namespace

void take_workspace(long_work& w, const row_geometry& g, carver& c) {
  c.take(w.keys, g.rows);
  ops::for_row_operation(g.op, [&]<class Op>() {
    c.take(w.chunks, g.rows, chunks_of(g, g.chunk), sizeof(typename device_rule<Op::id>::total));
  });
}

void prepare(const plan::row_plan& p, const job& j, dispatch::task& t) {
  if (p.has_other_format()) {
    auto [q, x] = widen_x(p);
    return q.in_type[0] == dtype::f64 ? prepare_wide(q, std::move(x), j, t) : t.emplace<row_work>(q, std::move(x), j);
  }
  if (p.in_type[0] == dtype::f64)
    return p.is_spread() ? prepare(plan::spreads_of(p), j, t) : prepare_wide(p, nullptr, j, t);
  t.emplace<row_work>(p, nullptr, j);
}

}  // namespace repdl::cuda
