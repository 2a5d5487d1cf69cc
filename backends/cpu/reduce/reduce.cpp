// The driver of the CPU reductions: sum, mean, max, min, argmax, argmin, dot, prelu_weight_backward, sum_squares, vector_norm, and var,
// stddev and var_mean of binary64.
//
// Which terms meet in which order depends on the strides, the number of threads and the instruction set; the results do
// not, because each is the correctly rounded value of the exact result (sums), or a selection in a total order.
#include "backends/cpu/reduce/reduce.hpp"

#include <cstddef>
#include <limits>

#include "backends/cpu/reduce/reduce_columns.hpp"
#include "backends/cpu/reduce/reduce_rows.hpp"

namespace repdl::cpu {
namespace {

using ops::op_id;

int useful_threads(const plan::reduce_plan& p, const dispatch::launch& launch) noexcept {
  const double terms = static_cast<double>(p.outputs) * static_cast<double>(p.length);  // the product could overflow
  return worthwhile_threads(launch.threads, terms, p.is_spread() ? 1.2 : 0.15);
}

template <class T>
void run_columns(const reduce_call<T>& c, const column_layout& layout, worker<T>* workers, int threads,
                 counters& count) noexcept {
  const auto finish = [&](column_task<T>& task, std::int64_t(&decided)[4]) { task.finish(decided); };
  const auto add = [&](const std::int64_t(&decided)[4]) {
    for (int t = 0; t < 4; ++t) {
      if (decided[t] != 0) count.add(static_cast<tier>(t), decided[t]);
    }
  };
  if (layout.parts == 1) {
    parallel(threads, [&](int thread, int used) {
      std::int64_t decided[4] = {};
      const range mine = share(layout.tasks, thread, used);
      for (std::int64_t t = mine.begin; t < mine.end && !stopped(); ++t) {
        column_task<T> task(c, layout, t, workers[thread]);
        task.run(0, c.plan.length);
        finish(task, decided);
      }
      add(decided);
    });
    return;
  }
  // Each (task, part) has a worker of its own: tasks * parts <= threads.
  const int parts = static_cast<int>(layout.parts);
  parallel(threads, [&](int thread, int used) {
    const range mine = share(layout.tasks * parts, thread, used);
    for (std::int64_t i = mine.begin; i < mine.end && !stopped(); ++i) {
      const range rows = share(c.plan.length, static_cast<int>(i % parts), parts, row_group);
      column_task<T>(c, layout, i / parts, workers[i]).run(rows.begin, rows.end);
    }
  });
  if (stopped()) return;
  parallel(threads, [&](int thread, int used) {
    std::int64_t decided[4] = {};
    const range mine = share(layout.tasks, thread, used);
    for (std::int64_t t = mine.begin; t < mine.end; ++t) {
      column_task<T> task(c, layout, t, workers[t * parts]);
      for (int p = 1; p < parts; ++p) task.merge(workers[t * parts + p]);
      finish(task, decided);
    }
    add(decided);
  });
}

// Writes outputs [first, last), the threads of the team sharing each of them.
template <class T>
void run_rows(const reduce_call<T>& c, range outputs, const team<T>& team, counters& count) noexcept {
  std::int64_t decided[4] = {};
  walk<4> kept = kept_walk(c.plan, outputs.begin);
  for (std::int64_t i = outputs.begin; i < outputs.end && !stopped(); ++i) {
    const output_terms<T> output = terms_at<T>(c.plan, kept);
    const std::int64_t at = kept.offset(2);
    kept.advance(1);
    if (c.plan.is_sum()) {
      if constexpr (std::is_integral_v<T>) {
        write_integers(c.plan, collect(c, output, team, integer_partial{}).sum, at);
        ++decided[static_cast<int>(tier::proved)];
      } else {
        const decision<T> d = sum_output(c, output, team);
        static_cast<T*>(c.plan.out)[at] = d.value;
        ++decided[static_cast<int>(d.by)];
      }
      continue;
    }
    const order_partial<T> p = order_output(c, output, team);
    if (p.wants_index) {
      static_cast<std::int64_t*>(c.plan.out)[at] = p.index;
    } else {
      static_cast<T*>(c.plan.out)[at] = num::order_value<T>(p.key, p.flip);
    }
    ++decided[static_cast<int>(tier::proved)];
  }
  for (int t = 0; t < 4; ++t) {
    if (decided[t] != 0) count.add(static_cast<tier>(t), decided[t]);
  }
}

// The sum of nothing is +0, the mean of nothing NaN, and so is a variance without degrees of freedom.
template <class T>
void fill_empty(const reduce_call<T>& c, counters& count) noexcept {
  walk<4> kept = kept_walk(c.plan, 0);
  for (std::int64_t i = 0; i < c.plan.outputs; ++i) {
    if constexpr (std::is_integral_v<T>) {
      write_integers(c.plan, {}, kept.offset(2));
    } else {
      const bool is_nan = c.plan.op == op_id::mean || c.plan.is_spread();
      static_cast<T*>(c.plan.out)[kept.offset(2)] = is_nan ? num::from_bits<T>(num::format<T>::nan) : T{};
    }
    kept.advance(1);
  }
  count.add(tier::proved, c.plan.outputs);
}

class reduce_work final : public planned<plan::reduce_plan> {
 public:
  reduce_work(const plan::reduce_plan& plan, const setting& setting) noexcept
      : planned(plan, setting), threads_(useful_threads(p, s.launch)) {
    if (p.length != 0) columns_ = plan_columns(p, threads_);
  }

  plan::checked_size bytes() const override {
    plan::checked_size size;
    for_format([&]<class T>() {
      if (p.length != 0 || p.bias != nullptr) size = plan::checked_size::product(sizeof(worker<T>), threads_);
    });
    return size;
  }

  void run(void* workspace) override {
    for_format([&]<class T>() { run_as(reduce_call<T>{p, s.set.reduce->of<T>(), s.launch.first_tier}, workspace); });
    if (p.mean == nullptr) return;
    const plan::reduce_plan mean = plan::mean_beside(p);
    run_as(reduce_call<double>{mean, s.set.reduce->of_f64, s.launch.first_tier}, workspace);
  }

 private:
  template <class F>
  void for_format(const F& f) const {
    ops::for_each_format<ops::FLOATS | ops::INTEGERS>([&]<class T>() {
      if (dtype_of<T> == p.type) f.template operator()<num::element_of<T>>();
    });
  }

  template <class T>
  void run_as(const reduce_call<T>& call, void* workspace) {
    const bool is_undefined = call.plan.is_spread() && !call.spread().is_defined();
    if ((p.length == 0 && p.bias == nullptr) || is_undefined) return fill_empty(call, s.count);
    auto* workers = static_cast<worker<T>*>(workspace);
    if (columns_.use) return run_columns(call, columns_, workers, threads_, s.count);
    // Whole outputs per thread where there are enough of them, or where one is too short to share.
    if (threads_ == 1 || p.outputs >= 4 * threads_ || p.length < 4 * row_block) {
      parallel(threads_, [&](int thread, int used) {
        run_rows(call, share(p.outputs, thread, used), team<T>{&workers[thread], 1}, s.count);
      });
    } else {
      run_rows(call, {0, p.outputs}, team<T>{workers, threads_}, s.count);
    }
  }

  const int threads_;
  column_layout columns_;
};

}  // namespace

void prepare(const plan::reduce_plan& p, const setting& s, dispatch::task& t) noexcept {
  if (p.other_format) return prepare_other(p, s, t);
  t.emplace<reduce_work>(p, s);
}

}  // namespace repdl::cpu
