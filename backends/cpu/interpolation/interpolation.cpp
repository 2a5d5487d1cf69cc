// The driver of interpolation: tables of the axes, then threads, each with runs of rows of the planes.
#include "backends/cpu/interpolation/interpolation.hpp"

#include <algorithm>

#include "backends/cpu/core/parallel.hpp"
#include "librepdl/ops/sums/interpolation.hpp"

namespace repdl::cpu {
namespace {

using plan::checked_size;
using std::int64_t;

class interpolation_work final : public planned<plan::interpolation_plan> {
 public:
  using planned::planned;

  checked_size bytes() const override {
    plan::interpolation_table tables[3];
    return lay_out(nullptr, tables);
  }

  void run(void* workspace) override {
    plan::interpolation_table tables[3];
    lay_out(static_cast<std::byte*>(workspace), tables);
    for (int a = 0; a < 3; ++a) {
      for (int64_t i = 0; i < p.axis[a].size && !stopped(); ++i) num::fill_position(p.axis[a], tables[a], i);
      for (int64_t i = 0; p.backward && i < p.axis[a].image && !stopped(); ++i)
        num::fill_pixel(p.axis[a], tables[a], i);
    }
    if (stopped()) return;
    const int64_t rows = p.length(0) * p.length(1), total = p.n * p.c * rows;
    double terms = static_cast<double>(total) * static_cast<double>(p.length(2));
    for (const auto& x : p.axis) {
      terms *= p.backward ? x.taps * static_cast<double>(x.size) / static_cast<double>(x.image) : x.taps;
    }
    const int threads = worthwhile_threads(s.launch.threads, terms, 1.0);
    parallel(threads, [&](int thread, int workers) {
      tally counted;
      const range mine = share(total, thread, workers);
      for (int64_t at = mine.begin; at < mine.end && !stopped();) {
        const int64_t plane = at / rows, begin = at % rows, end = std::min(rows, begin + mine.end - at);
        s.set.interpolation->run(p, tables, plane / p.c, plane % p.c, begin, end, s.launch.first_tier, counted);
        at += end - begin;
      }
      s.count.add(counted);
    });
  }

 private:
  // Says how much there is, and where it lies, where there is a base.
  checked_size lay_out(std::byte* base, plan::interpolation_table (&tables)[3]) const {
    checked_size used;
    const auto take = [&]<class T>(T*& to, checked_size n) {
      if (base != nullptr) to = reinterpret_cast<T*>(base + used.value());
      used += checked_size::product(n, sizeof(T)).rounded_up(64);
    };
    for (int a = 0; a < 3; ++a) {
      const plan::interpolation_axis& x = p.axis[a];
      plan::interpolation_table& t = tables[a];
      take(t.first, x.size);
      take(t.numerators, checked_size::product(x.size, x.taps));
      take(t.from, p.backward ? x.image : 0);
      take(t.to, p.backward ? x.image : 0);
      t.taps = x.taps;
      t.backward = p.backward;
    }
    return used;
  }
};

}  // namespace

void prepare(const plan::interpolation_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<interpolation_work>(p, s);
}

}  // namespace repdl::cpu
