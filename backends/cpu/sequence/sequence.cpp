// Numbers at equal distances. The kernels decide most; what they leave undecided is decided here, element by element.
#include "backends/cpu/sequence/sequence.hpp"

#include <algorithm>

#include "backends/cpu/core/isa.hpp"
#include "backends/cpu/core/parallel.hpp"
#include "librepdl/ops/random/sequence.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::cpu {
namespace {

constexpr std::int64_t block = 1024;

class sequence_work final : public planned<plan::sequence_plan> {
 public:
  using planned::planned;

  void run(void*) override {
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p.out_type) run_in<T>();
    });
  }

 private:
  template <class T>
  void run_in() {
    const num::sequence exact{p.first, p.last, p.parts, p.between};
    const auto loop = s.set.sequence->loop[static_cast<int>(p.out_type)];
    const double force = s.launch.first_tier == tier::exact ? num::infinity : 0.0;
    const bool direct = p.count == 1 || p.stride == 1;
    const int threads = worthwhile_threads(s.launch.threads, static_cast<double>(p.count), 12);
    parallel(threads, [&](int thread, int workers) {
      alignas(64) T buffer[block];
      std::uint32_t undecided[block];
      tally counted;
      const range mine = share(p.count, thread, workers, block);
      for (std::int64_t first = mine.begin; first < mine.end && !stopped(); first += block) {
        const std::int64_t n = std::min(block, mine.end - first);
        T* const to = direct ? static_cast<T*>(p.out) + first : buffer;
        std::int64_t later = 0;
        if (loop(p, first, n, force, to, undecided)) {
          for (std::int64_t i = 0; i < n; ++i) {
            if (undecided[i] == 0) continue;
            to[i] = exact.exact<T>(first + i);
            ++later;
          }
        }
        counted.add(tier::exact, later);
        counted.add(tier::double_double, n - later);
        if (!direct) {
          for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(p.out)[(first + i) * p.stride] = buffer[i];
        }
      }
      s.count.add(counted);
    });
  }
};

}  // namespace

void prepare(const plan::sequence_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<sequence_work>(p, s);
}

}  // namespace repdl::cpu
