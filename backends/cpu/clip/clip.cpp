// The driver of norms of lists and of clipping by them: threads and strides. What decides the norm and the factor is known before the
// first output is written, which may be an input.
#include "backends/cpu/clip/clip.hpp"

#include <algorithm>
#include <new>

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/strided_runs.hpp"
#include "librepdl/ops/steps/clip.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

using num::norm_kind;

// What a worker knows of the sum.
struct worker {
  num::norm_sum sum;
  num::norm_accumulator exact;
};

class clip_work final : public planned<plan::clip_plan> {
 public:
  clip_work(const plan::clip_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        loops_(s.set.clip->of(p.type, p.p)),
        blocks_(blocks_of(p.tensors, clip_block)),
        threads_(worthwhile_threads(s.launch.threads, static_cast<double>(blocks_ * clip_block), 0.5)) {}

  plan::checked_size bytes() const override { return plan::checked_size::product(sizeof(worker), threads_); }

  void run(void* workspace) override {
    ops::for_each_format<ops::NARROW>([&]<class T>() {
      if (dtype_of<T> == p.type) run_as<T>(static_cast<worker*>(workspace));
    });
  }

 private:
  // Calls use(worker's number, tensor, first, n, its elements side by side) for all blocks.
  template <class T, class Use>
  void for_all_blocks(const Use& use) const {
    parallel(threads_, [&](int thread, int used) {
      alignas(64) T buffer[clip_block];
      const range mine = share(blocks_, thread, used);
      for_blocks_of(p.tensors, clip_block, mine.begin, mine.end,
                    [&](const plan::clip_tensor& t, std::int64_t first, std::int64_t n) {
                      use(thread, t, first, n,
                          side_by_side(t, t.in_stride, static_cast<const T*>(t.in), first, n, buffer));
                    });
    });
  }

  template <class T>
  void run_as(worker* workers) {
    for (int t = 0; t < threads_; ++t) new (workers + t) worker;
    for_all_blocks<T>([&](int thread, const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
      const norm_partial part = loops_.sum(x, n);
      workers[thread].sum.merge({{part.hi, part.lo, part.error}, part.greatest});
    });
    for (int t = 1; t < threads_; ++t) workers[0].sum.merge(workers[t].sum);
    const norm_kind kind = num::norm_of(p.p);
    const num::wide<double> sum = num::total_of(kind, workers[0].sum, clip_height + blocks_ + threads_);
    num::clip_result<T> found = num::attempt_clip<T>(kind, sum, p.max_norm, p.total != nullptr);
    tier by = tier::double_double;
    const bool finite = num::is_finite(sum.value.hi);
    if (!found.decided || (finite && s.launch.first_tier > tier::double_double)) {
      by = tier::exact;
      found = num::decide_clip<T>(kind, exact_sum<T>(kind, workers), p.max_norm);
    }
    std::int64_t decided = 0;
    if (p.total != nullptr) {
      *static_cast<T*>(p.total) = found.total;
      ++decided;
    }
    if (p.clips()) {
      write<T>({found.factor.a, found.factor.b});
      for (const plan::clip_tensor& t : p.tensors) decided += t.count;
    }
    s.count.add(std::max(by, finite ? by : s.launch.first_tier), decided);
  }

  template <class T>
  num::norm_accumulator exact_sum(norm_kind kind, worker* workers) const {
    num::norm_accumulator& all = workers[0].exact;
    if (kind == norm_kind::greatest) {
      all.add(num::float_of(workers[0].sum.greatest));
      return all;
    }
    for_all_blocks<T>([&](int thread, const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
      for (std::int64_t i = 0; i < n; ++i) num::add_exactly(workers[thread].exact, kind, num::widen_to_float(x[i]));
    });
    for (int t = 1; t < threads_; ++t) all.merge(workers[t].exact);
    return all;
  }

  template <class T>
  void write(const clip_quotient& factor) const {
    for_all_blocks<T>([&](int, const plan::clip_tensor& t, std::int64_t first, std::int64_t n, const T* x) {
      if (factor.a == factor.b && t.in == t.out) return;
      alignas(64) T results[clip_block];
      T* const to = in_place(t, t.out_stride, static_cast<T*>(t.out), first, n);
      loops_.clip(x, to != nullptr ? to : results, n, factor);
      if (to == nullptr) scatter_to(t, t.out_stride, results, static_cast<T*>(t.out), first, n);
    });
  }

  const clip_kernels::loops loops_;
  const std::int64_t blocks_;
  const int threads_;
};

}  // namespace

void prepare(const plan::clip_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<clip_work>(p, s); }

}  // namespace repdl::cpu
