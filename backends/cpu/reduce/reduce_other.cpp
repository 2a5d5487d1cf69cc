// Sums, means and dot products whose results have another format than their operands (librepdl/ops/sums/other_format.hpp), by plain loops.
// Threads share the outputs, or, where there are fewer of them than threads, the terms of each.
#include "backends/cpu/core/team_sum.hpp"
#include "backends/cpu/reduce/reduce_walk.hpp"
#include "librepdl/ops/sums/other_format.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;
using std::int64_t;

constexpr int64_t piece = 1 << 16;  // terms between two looks at whether the call was broken off

class other_work final : public planned<plan::reduce_plan> {
 public:
  other_work(const plan::reduce_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        threads_(
            worthwhile_threads(s.launch.threads, static_cast<double>(p.outputs) * static_cast<double>(p.length), 2)),
        is_shared_(p.outputs < threads_ && p.length >= 4096) {}

  plan::checked_size bytes() const override { return plan::checked_size::product(sizeof(slot), threads_); }
  void run(void* workspace) override {
    auto* const slots = static_cast<slot*>(workspace);
    num::with_float(p.type, [&]<class T>() {
      if (p.inputs == 2) {
        run_as<T, 2>(slots);
      } else {
        run_as<T, 1>(slots);
      }
    });
  }

 private:
  struct slot {
    alignas(16) unsigned char sum[sizeof(num::other_exact_sum<2>)];
  };
  bool is_mean() const noexcept { return p.op == ops::op_id::mean; }

  template <class T, int Factors>
  void run_as(slot* slots) {
    const range all{0, p.outputs};
    if (is_shared_) return outputs<T, Factors>(all, slots, threads_);
    parallel(threads_,
             [&](int thread, int used) { outputs<T, Factors>(share(p.outputs, thread, used), slots + thread, 1); });
  }

  // Writes outputs of a range, each by so many threads.
  template <class T, int Factors>
  void outputs(range r, slot* slots, int threads) {
    tally counted;
    walk<4> kept = kept_walk(p, r.begin);
    for (int64_t i = r.begin; i < r.end && !stopped(); ++i, kept.advance(1)) {
      const T* const x[] = {static_cast<const T*>(p.in[0].data) + kept.offset(0),
                            static_cast<const T*>(p.in[p.inputs - 1].data) + kept.offset(1)};
      num::decided_value<double> v{num::other_empty(is_mean()), p.length == 0};
      tier by = tier::proved;
      if (!v.decided && s.launch.first_tier <= tier::double_double) {
        by = tier::double_double;
        v = sum_of<num::other_wide_sum<Factors>>(x, slots, threads);
      }
      if (!v.decided) {
        by = tier::exact;
        v = sum_of<num::other_exact_sum<Factors>>(x, slots, threads);
      }
      num::set_number_of(*p.other_format, p.out, kept.offset(2), v.value);
      counted.add(by, 1);
    }
    s.count.add(counted);
  }

  template <class Sum, class T>
  num::decided_value<double> sum_of(const T* const (&x)[2], slot* slots, int threads) const {
    static_assert(sizeof(Sum) <= sizeof(slot::sum));
    const auto part = [&](int thread) -> Sum& { return *reinterpret_cast<Sum*>(slots[thread].sum); };
    return add_up(threads, Sum{}, part,
                  [&](Sum& mine, int thread, int used) {
                    Sum sum{};
                    const range r = share(p.length, thread, used);
                    walk<2> w = reduced_walk(p, r.begin);
                    for (int64_t j = r.begin; j < r.end; ++j, w.advance(1)) {
                      sum.add(num::widen(x[0][w.offset(0)]), num::widen(x[1][w.offset(1)]));
                      if (j % piece == 0 && stopped()) break;
                    }
                    mine = sum;
                  })
        .round(*p.other_format, p.length, is_mean());
  }

  const int threads_;
  const bool is_shared_;
};

}  // namespace

void prepare_other(const plan::reduce_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<other_work>(p, s);
}

}  // namespace repdl::cpu
