// The driver of ldexp and frexp: threads share the elements.
#include "backends/cpu/exponent/exponent.hpp"

#include <algorithm>

#include "backends/cpu/core/parallel.hpp"

namespace repdl::cpu {
namespace {

// What an element takes, in nanoseconds (bench/thread_estimates.cpp).
double element_time(ops::op_id op) noexcept { return op == ops::op_id::ldexp ? 1.5 : 3; }

class exponent_work final : public planned<plan::exponent_plan> {
 public:
  using planned::planned;

  void run(void*) override {
    constexpr std::int64_t block = 1 << 16;  // between two questions whether the call was broken off
    const int threads = worthwhile_threads(s.launch.threads, static_cast<double>(p.count), element_time(p.op));
    parallel(threads, [&](int thread, int workers) {
      const range mine = share(p.count, thread, workers);
      for (std::int64_t at = mine.begin; at < mine.end && !stopped(); at += block) {
        s.set.exponent->run(p, at, std::min(at + block, mine.end));
      }
    });
    s.count.add(tier::proved, p.count);
  }
};

}  // namespace

void prepare(const plan::exponent_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<exponent_work>(p, s);
}

}  // namespace repdl::cpu
