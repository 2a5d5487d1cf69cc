// The driver of nll_loss and its gradient: threads. Sums are added up in binary64 first; if that decides nothing, once more, exactly.
#include "backends/cpu/nll/nll.hpp"

#include <algorithm>

#include "backends/cpu/core/team_sum.hpp"
#include "backends/cpu/nll/nll_terms.hpp"

namespace repdl::cpu {
namespace {

using std::int64_t;

// Elements whose sums are added up one after the other.
constexpr int64_t block = 4096;

// What a worker knows of the sums.
struct worker {
  num::nll_sum sum;
  alignas(8) std::byte exact[sizeof(num::exact_nll_sum<double>)];

  template <class W>
  num::exact_nll_sum<W>& exact_of() {
    return *reinterpret_cast<num::exact_nll_sum<W>*>(exact);
  }
};

num::measured_sum measured(const nll_partial::sum& s) { return {{s.hi, s.lo}, s.magnitude}; }

class nll_work final : public planned<plan::nll_plan> {
 public:
  nll_work(const plan::nll_plan& plan, const setting& setting) noexcept
      : planned(plan, setting),
        loops_(s.set.nll->of(p.op, p.type)),
        threads_(worthwhile_threads(s.launch.threads, static_cast<double>(p.count), 3)) {}

  plan::checked_size bytes() const override {
    return p.has_sums() ? plan::checked_size::product(sizeof(worker), threads_) : plan::checked_size();
  }

  void run(void* workspace) override {
    if (p.each) {
      parallel(threads_, [&](int thread, int used) {
        const range mine = share(p.count, thread, used);
        in_pieces(mine, 16 * block, [&](range r) { loops_.each(p, r.begin, r.end); });
      });
      s.count.add(tier::proved, p.count);
    }
    if (!p.has_sums()) return;
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p.type) add_terms<T>(static_cast<worker*>(workspace));
    });
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  template <class T>
  void add_terms(worker* workers) {
    const auto fast = [&](int t) -> num::nll_sum& { return workers[t].sum; };
    const num::nll_sum& sum = add_up(threads_, num::nll_sum{}, fast, [&](num::nll_sum& mine, int thread, int used) {
      in_pieces(share(p.count, thread, used, block), block, [&](range r) {
        const nll_partial part = loops_.sum(p, r.begin, r.end);
        mine.merge({measured(part.products), measured(part.weights)});
      });
    });
    const num::nll_total how{p.reduction == repdl::reduction::mean, p.weight != nullptr,
                             s.launch.first_tier > tier::binary64, p.count / block + block + max_threads, p.count};
    tally counted;
    using weight = num::nll_weight<T>;
    T* const out = p.each ? nullptr : static_cast<T*>(p.out);
    auto* const total_weight = static_cast<weight*>(p.total_weight);
    bool undecided = false;
    const auto write = [&](auto* to, auto result) {
      if (to == nullptr) return;
      if (result.decided) *to = result.value;
      counted.add(result.decided ? tier::binary64 : tier::exact, 1);
      undecided |= !result.decided;
    };
    write(out, num::certify_nll<T>(sum, how));
    write(total_weight, num::certify_weights<weight>(sum, how));
    if (undecided) {
      using exact_sum = num::exact_nll_sum<weight>;
      const auto exact = [&](int t) -> exact_sum& { return workers[t].template exact_of<weight>(); };
      const auto add = [&](exact_sum& mine, int thread, int used) {
        const range r = share(p.count, thread, used);
        for_targets<T>(p, r.begin, r.end, [&](num::nll_target kind, T x, T w, int64_t) {
          if (kind != num::nll_target::ignored)
            mine.add(static_cast<weight>(num::widen(x)), static_cast<weight>(num::widen(w)));
        });
      };
      const exact_sum& all = add_up(threads_, exact_sum{}, exact, add);
      if (out != nullptr) {
        const num::decided_value<T> r = num::round_nll<T>(all, how.mean);
        *out = r.value;
        counted.undecided += r.decided ? 0 : 1;
      }
      if (total_weight != nullptr) *total_weight = all.weights.template round<weight>();
    }
    s.count.add(counted);
  }

  const nll_kernels::loops loops_;
  const int threads_;
};

}  // namespace

void prepare(const plan::nll_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<nll_work>(p, s); }

}  // namespace repdl::cpu
