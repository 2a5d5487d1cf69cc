// The driver of norms of lists and of clipping by them: threads and strides. What decides the norm and the factor is known before the
// first output is written, which may be an input.
#include "backends/cpu/clip/clip.hpp"

#include <algorithm>
#include <atomic>

#include "backends/cpu/core/strided_runs.hpp"
#include "backends/cpu/core/team_sum.hpp"
#include "librepdl/ops/steps/clip.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

using num::norm_kind;

// What a worker knows of the sum.
template <class T>
struct worker {
  num::norm_sum<num::norm_term<T>> sum;
  num::norm_accumulator_of<num::norm_term<T>> exact;
};

class clip_work final : public planned<plan::clip_plan> {
 public:
  clip_work(const plan::clip_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        loops_(s.set.clip->of(p.type, p.p)),
        blocks_(blocks_of(p.tensors, clip_block)),
        threads_(worthwhile_threads(s.launch.threads, static_cast<double>(blocks_ * clip_block), 0.5)) {}

  plan::checked_size bytes() const override {
    return plan::checked_size::product(p.type == dtype::f64 ? sizeof(worker<double>) : sizeof(worker<float>), threads_);
  }

  void run(void* workspace) override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p.type) run_as<T>(static_cast<worker<T>*>(workspace));
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
  using accumulator = num::norm_accumulator_of<num::norm_term<T>>;

  template <class T>
  void run_as(worker<T>* workers) {
    using norm_sum = num::norm_sum<num::norm_term<T>>;
    const auto fast = [&](int t) -> norm_sum& { return workers[t].sum; };
    const auto add = [&](norm_sum& mine, int thread, int used) {
      for_blocks<T>(thread, used, [&](const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
        const norm_partial part = loops_.sum(x, n);
        mine.merge({{part.hi, part.lo, part.error}, part.greatest});
      });
    };
    const norm_sum& all = add_up(threads_, norm_sum{}, fast, add);
    const norm_kind kind = num::norm_of(p.p);
    const num::wide<double> sum = num::total_of(kind, all, clip_height + blocks_ + threads_);
    num::clip_result<T> found = num::attempt_clip<T>(kind, sum, p.max_norm, p.total != nullptr);
    tier by = tier::double_double;
    const bool finite = num::is_finite(sum.value.hi);
    const accumulator<T>* exact = nullptr;
    if (!found.decided || (finite && s.launch.first_tier > tier::double_double) || leaves_some(found)) {
      by = tier::exact;
      exact = &exact_sum<T>(kind, all.greatest, workers);
      found = num::decide_clip<T>(kind, *exact, p.max_norm);
    }
    std::int64_t decided = 0;
    if (p.total != nullptr) {
      *static_cast<T*>(p.total) = found.total;
      ++decided;
    }
    if (p.clips()) {
      write<T>(found.factor, exact);
      for (const plan::clip_tensor& t : p.tensors) decided += t.count;
    }
    s.count.add(std::max(by, finite ? by : s.launch.first_tier), decided);
  }

  // greatest: the bits of the greatest magnitude.
  template <class T>
  const accumulator<T>& exact_sum(norm_kind kind, std::uint64_t greatest, worker<T>* workers) const {
    using term = num::norm_term<T>;
    const auto exact = [&](int t) -> accumulator<T>& { return workers[t].exact; };
    if (kind == norm_kind::greatest) {
      exact(0) = {};
      exact(0).add(num::from_bits<term>(static_cast<num::storage_of<term>>(greatest)));
      return exact(0);
    }
    return add_up(threads_, accumulator<T>{}, exact, [&](accumulator<T>& mine, int thread, int used) {
      for_blocks<T>(thread, used, [&](const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
        for (std::int64_t i = 0; i < n; ++i) num::add_exactly<term>(mine, kind, static_cast<term>(number_of(x[i])));
      });
    });
  }
  static double number_of(double x) { return x; }
  template <class T>
  static float number_of(T x) {
    return num::widen_to_float(x);
  }

  static clip_ball ball_of(const num::ball_factor& f) { return {f.f.hi, f.f.lo, f.f.error, f.t}; }
  // Of f64: whether the factor leaves an element undecided.
  template <class T>
  bool leaves_some(const num::clip_result<T>& found) const {
    if constexpr (std::is_same_v<T, double>) {
      if (!p.clips() || found.factor.is_plain()) return false;
      std::atomic<bool> some{false};
      parallel(threads_, [&](int thread, int used) {
        for_blocks<T>(thread, used, [&](const plan::clip_tensor&, std::int64_t, std::int64_t n, const T* x) {
          T results[clip_block];
          std::uint8_t undecided[clip_block];
          if (loops_.clip_by_ball(x, results, undecided, n, ball_of(found.factor)) != 0) some = true;
        });
      });
      return some;
    }
    return false;
  }

  void clip(const double* x, double* y, std::int64_t n, const num::ball_factor& factor,
            const accumulator<double>* exact) const {
    std::uint8_t undecided[clip_block];
    if (loops_.clip_by_ball(x, y, undecided, n, ball_of(factor)) == 0) return;
    for (std::int64_t i = 0; i < n; ++i) {
      if (undecided[i] != 0) y[i] = num::decide_clipped(num::norm_of(p.p), *exact, p.max_norm, factor, x[i]);
    }
  }
  template <class T>
  void clip(const T* x, T* y, std::int64_t n, const num::clip_factor& factor, const accumulator<T>*) const {
    loops_.clip(x, y, n, {factor.a, factor.b});
  }

  template <class T>
  void write(const num::factor_of<T>& factor, const accumulator<T>* exact) const {
    parallel(threads_, [&](int thread, int used) {
      for_blocks<T>(thread, used, [&](const plan::clip_tensor& t, std::int64_t first, std::int64_t n, const T* x) {
        if (factor.is_one() && t.in == t.out) return;
        alignas(64) T results[clip_block];
        // Where an element of f64 needs its number once more, results are not written over it.
        const bool twice = std::is_same_v<T, double> && exact != nullptr;
        T* const to = twice ? nullptr : in_place(t, t.out_stride, static_cast<T*>(t.out), first, n);
        clip(x, to != nullptr ? to : results, n, factor, exact);
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
