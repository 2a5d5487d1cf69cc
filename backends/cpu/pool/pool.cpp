// The driver of the pooling operations: threads. The output's rows are shared out in pieces of one plane; the order of
// the pieces follows the image's strides, so that with channels innermost all channels of a row are done while the row
// is in the cache.
#include "backends/cpu/pool/pool.hpp"

#include "backends/cpu/core/parallel.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

void run_pool(const plan::pool_plan& p, const dispatch::launch& l, const pool_kernels& kernels,
              counters& count) noexcept {
  const auto out_size = [&](std::size_t d) { return p.backward() ? p.axis[d].image : p.axis[d].windows; };
  const std::int64_t depth = out_size(0), height = out_size(1);
  const bool channels_inside = p.c > 1 && p.out_stride[1] < p.out_stride[3];
  const std::int64_t piece = channels_inside ? 4 : 32;
  const std::int64_t of_plane = (height + piece - 1) / piece;
  const std::int64_t pieces = depth * of_plane;
  const std::int64_t total = p.n * p.c * pieces;
  const auto& [z, y, x] = p.axis;
  const std::int64_t elements = p.n * p.c * (z.image * y.image * x.image + z.windows * y.windows * x.windows);
  const int threads = worthwhile_threads(l.threads, static_cast<double>(elements), 0.5);
  parallel(threads, [&](int thread, int workers) {
    pool_counts counts;
    const range mine = share(total, thread, workers);
    for (std::int64_t i = mine.begin; i < mine.end && !stopped(); ++i) {
      const std::int64_t inner = channels_inside ? p.c : pieces;
      const std::int64_t outer = i / inner;
      const std::int64_t channel = channels_inside ? i % inner : outer % p.c;
      const std::int64_t at = channels_inside ? outer % pieces : i % inner;
      const std::int64_t sample = outer / (channels_inside ? pieces : p.c);
      const std::int64_t first = at % of_plane * piece;
      const pool_rows rows{
          sample, channel, at / of_plane, first, std::min(height, first + piece), l.first_tier > tier::double_double};
      kernels.run(p, rows, counts);
    }
    for (int k = 0; k < 4; ++k) count.add(static_cast<tier>(k), counts.elements[k]);
  });
}

class pool_work final : public planned<plan::pool_plan> {
 public:
  using planned::planned;
  void run(void*) override { run_pool(p, s.launch, *s.set.pool, s.count); }
};

}  // namespace

void prepare(const plan::pool_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<pool_work>(p, s); }

}  // namespace repdl::cpu
