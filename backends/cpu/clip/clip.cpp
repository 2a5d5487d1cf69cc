// The driver of norms of lists and of clipping by them: threads and strides. What decides the norm and the factor is known before the
// first output is written, which may be an input.
#include "backends/cpu/clip/clip.hpp"

#include <algorithm>

#include "backends/cpu/core/strided_runs.hpp"
#include "backends/cpu/core/team_sum.hpp"
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
  // Calls use(tensor, first, n, its elements side by side) for the blocks of one of so many threads.
  template <class T, class Use>
  void for_blocks(int thread, int threads, const Use& use) const {
    alignas(64) T buffer[clip_block];
    const range mine = share(blocks_, thread, threads);
    for_blocks_of(p.tensors, clip_block, mine.begin, mine.end,
                  [&](const plan::clip_tensor& t, std::int64_t first, std::int64_t n) {
                    use(t, first, n, side_by_side(t, t.in_stride, static_cast<const T*>(t.in), first, n, buffer));
                  });
  }

  template <class T>
  void run_as(worker* workers) {
    const auto fast = [&](int t) -> num::norm_sum& { return workers[t].sum; };
    const auto add = [&](num::norm_sum& mine, int thread, int used) {
      for_blocks<T>(thread, used, [&](const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
        const norm_partial part = loops_.sum(x, n);
        mine.merge({{part.hi, part.lo, part.error}, part.greatest});
      });
    };
    const num::norm_sum& all = add_up(threads_, num::norm_sum{}, fast, add);
    const norm_kind kind = num::norm_of(p.p);
    const num::wide<double> sum = num::total_of(kind, all, clip_height + blocks_ + threads_);
    num::clip_result<T> found = num::attempt_clip<T>(kind, sum, p.max_norm, p.total != nullptr);
    tier by = tier::double_double;
    const bool finite = num::is_finite(sum.value.hi);
    if (!found.decided || (finite && s.launch.first_tier > tier::double_double)) {
      by = tier::exact;
      found = num::decide_clip<T>(kind, exact_sum<T>(kind, all.greatest, workers), p.max_norm);
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

  // greatest: the bits of the greatest magnitude.
  template <class T>
  num::norm_accumulator exact_sum(norm_kind kind, std::uint32_t greatest, worker* workers) const {
    if (kind == norm_kind::greatest) {
      num::norm_accumulator one;
      one.add(num::float_of(greatest));
      return one;
    }
    const auto exact = [&](int t) -> num::norm_accumulator& { return workers[t].exact; };
    return add_up(threads_, num::norm_accumulator{}, exact, [&](num::norm_accumulator& mine, int thread, int used) {
      for_blocks<T>(thread, used, [&](const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
        for (std::int64_t i = 0; i < n; ++i) num::add_exactly(mine, kind, num::widen_to_float(x[i]));
      });
    });
  }

  template <class T>
  void write(const clip_quotient& factor) const {
    parallel(threads_, [&](int thread, int used) {
      for_blocks<T>(thread, used, [&](const plan::clip_tensor& t, std::int64_t first, std::int64_t n, const T* x) {
        if (factor.a == factor.b && t.in == t.out) return;
        alignas(64) T results[clip_block];
        T* const to = in_place(t, t.out_stride, static_cast<T*>(t.out), first, n);
        loops_.clip(x, to != nullptr ? to : results, n, factor);
        if (to == nullptr) scatter_to(t, t.out_stride, results, static_cast<T*>(t.out), first, n);
      });
    });
  }

  const clip_kernels::loops loops_;
  const std::int64_t blocks_;
  const int threads_;
};

}  // namespace

void prepare(const plan::clip_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<clip_work>(p, s); }

}  // namespace repdl::cpu
