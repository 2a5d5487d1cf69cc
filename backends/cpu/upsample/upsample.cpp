// The driver of nearest neighbours: threads, each with runs of rows of the planes.
#include "backends/cpu/upsample/upsample.hpp"

#include <algorithm>

#include "backends/cpu/core/parallel.hpp"
#include "librepdl/num/certify.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

class upsample_work final : public planned<plan::upsample_plan> {
 public:
  using planned::planned;

  void run(void*) override {
    const std::int64_t rows = p.height(), total = p.n * p.c * rows;
    const std::int64_t elements = p.n * p.c * (p.y.image * p.x.image + p.y.size * p.x.size);
    const int threads = worthwhile_threads(s.launch.threads, static_cast<double>(elements), 0.4);
    const double force = s.launch.first_tier > tier::double_double ? num::infinity : 0.0;
    parallel(threads, [&](int thread, int workers) {
      tally counted;
      const range mine = share(total, thread, workers);
      for (std::int64_t at = mine.begin; at < mine.end && !stopped();) {
        const std::int64_t plane = at / rows, begin = at % rows, end = std::min(rows, begin + mine.end - at);
        s.set.upsample->run(p, plane / p.c, plane % p.c, begin, end, force, counted);
        at += end - begin;
      }
      s.count.add(counted);
    });
  }
};

}  // namespace

void prepare(const plan::upsample_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<upsample_work>(p, s);
}

}  // namespace repdl::cpu
