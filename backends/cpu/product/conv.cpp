// Convolution on the CPU: a call as products with gathered operands (conv.hpp), and how their axes are ordered.
#include "backends/cpu/product/conv.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "backends/cpu/core/tasks.hpp"
#include "librepdl/plan/depth_parts.hpp"

namespace repdl::cpu {
namespace {

using plan::conv_plan;

bool empty(const conv_axis* axes) {
  return std::any_of(axes, axes + conv_rank, [](const conv_axis& a) { return a.size == 0; });
}

// The extremes of the axes' part of a coordinate.
struct extent {
  std::int64_t low = 0, high = 0;
};
extent extent_of(const conv_axis* axes, std::int64_t conv_axis::*step) {
  extent e;
  for (int i = 0; i < conv_rank; ++i) {
    const std::int64_t last = (axes[i].size - 1) * axes[i].*step;
    (last < 0 ? e.low : e.high) += last;
  }
  return e;
}

// Axes of size 1 go, neighbouring axes that one step leads through become one; what is left comes last.
void merge(conv_axis* axes) {
  conv_axis kept[conv_rank];
  int n = 0;
  for (int i = 0; i < conv_rank; ++i) {
    const conv_axis& inner = axes[i];
    if (inner.size == 1) continue;
    const auto continues = [&](std::int64_t conv_axis::*step) { return kept[n - 1].*step == inner.size * inner.*step; };
    if (n > 0 && continues(&conv_axis::gathered) && continues(&conv_axis::other) && continues(&conv_axis::y) &&
        continues(&conv_axis::x)) {
      const std::int64_t size = kept[n - 1].size * inner.size;
      kept[n - 1] = inner;
      kept[n - 1].size = size;
    } else {
      kept[n++] = inner;
    }
  }
  for (int i = 0; i < conv_rank; ++i)
    axes[i] = i < conv_rank - n ? conv_axis{1, 0, 0, 0, 0} : kept[i - (conv_rank - n)];
}

// No result depends on the order of the sites; on the order of the terms only a chain's does. The shortest steps
// through the gathered tensor come last.
void sort(conv_axis* axes) {
  std::stable_sort(axes, axes + conv_rank,
                   [](const conv_axis& a, const conv_axis& b) { return std::abs(a.gathered) > std::abs(b.gathered); });
}

// The extremes of the terms' part of the coordinates, and whether dense is a line.
void summarise(conv_product& p) {
  p.dense_line = true;
  std::int64_t inner = 1;  // terms that one step of an axis passes
  for (int i = conv_rank - 1; i >= 0; --i) {
    p.dense_line &= p.term[i].size <= 1 || p.term[i].other == inner * p.term[conv_rank - 1].other;
    inner *= p.term[i].size;
  }
  const extent y = extent_of(p.term, &conv_axis::y), x = extent_of(p.term, &conv_axis::x);
  p.low_y = y.low, p.high_y = y.high;
  p.low_x = x.low, p.high_x = x.high;
}

void arrange(conv_product& p, bool any_order) {
  if (empty(p.term)) {
    for (conv_axis& a : p.term) a.size = 1;
    p.term[0].size = 0;
  } else {
    // A coordinate that never leaves its range need not be looked at.
    const auto settle = [&](std::int64_t conv_axis::*step, std::int64_t& start, std::int64_t& size) {
      const extent t = extent_of(p.term, step), s = extent_of(p.site, step);
      if (start + t.low + s.low < 0 || start + t.high + s.high >= size) return;
      for (conv_axis& a : p.term) a.*step = 0;
      for (conv_axis& a : p.site) a.*step = 0;
      start = 0;
      size = 1;
    };
    settle(&conv_axis::y, p.y, p.height);
    settle(&conv_axis::x, p.x, p.width);
    if (any_order) sort(p.term);
    merge(p.term);
  }
  sort(p.site);
  merge(p.site);

  summarise(p);
  // Runs along terms are transposed, runs along sites copied; either way short runs cost most.
  const auto cost = [](const conv_axis& a, double unit, double strided) {
    return (std::abs(a.gathered) == 1 ? unit : strided) + 6.0 / static_cast<double>(std::max<std::int64_t>(1, a.size));
  };
  p.gather_terms = cost(p.term[conv_rank - 1], 0.4, 1.3) < cost(p.site[conv_rank - 1], 0.2, 1.0);
}

using plan::depth_part;
using plan::phase;

conv_product forward(const conv_plan& p, const depth_part& z) {
  conv_product q{};
  const plan::window_axis &h = p.axis[1], &v = p.axis[2];
  const auto& x = p.image.stride;
  const auto& w = p.kernel.stride;
  const auto& y = p.result.stride;
  q.site[0] = {p.n, x[0], y[0], 0, 0};
  q.site[1] = {z.windows, z.image.window * x[2], z.result.window * y[2], 0, 0};
  q.site[2] = {h.windows, h.stride * x[3], y[3], h.stride, 0};
  q.site[3] = {v.windows, v.stride * x[4], y[4], 0, v.stride};
  q.term[0] = {p.c, x[1], w[1], 0, 0};
  q.term[1] = {z.taps, z.image.tap * x[2], z.kernel.tap * w[2], 0, 0};
  q.term[2] = {h.kernel, h.dilation * x[3], w[3], h.dilation, 0};
  q.term[3] = {v.kernel, v.dilation * x[4], w[4], 0, v.dilation};
  q.groups = p.groups;
  q.channels = p.o;
  q.dense = p.kernel.data;
  q.dense_first = z.kernel.first * w[2];
  q.dense_group = p.o * w[0];
  q.dense_channel = w[0];
  q.gathered = p.image.data;
  q.gathered_group = p.c * x[1];
  q.origin = z.image.first * x[2] - h.before * x[3] - v.before * x[4];
  q.y = -h.before;
  q.x = -v.before;
  q.height = h.image;
  q.width = v.image;
  q.out = p.out;
  q.out_first = z.result.first * y[2];
  q.out_group = p.o * y[1];
  q.out_channel = y[1];
  q.bias = p.bias;
  q.bias_group = p.o * p.bias_stride;
  q.bias_channel = p.bias_stride;
  return q;
}

conv_product grad_weight(const conv_plan& p, const depth_part& z) {
  conv_product q = forward(p, z);
  std::swap(q.site, q.term);
  const auto& w = p.kernel.stride;
  const auto& y = p.result.stride;
  q.site[0].other = w[1], q.site[1].other = z.kernel.tap * w[2], q.site[2].other = w[3], q.site[3].other = w[4];
  q.term[0].other = y[0], q.term[1].other = z.result.window * y[2], q.term[2].other = y[3], q.term[3].other = y[4];
  q.dense = p.result.data;
  std::swap(q.dense_first, q.out_first);
  std::swap(q.dense_group, q.out_group);
  std::swap(q.dense_channel, q.out_channel);
  q.bias = nullptr;
  return q;
}

conv_product grad_input(const conv_plan& p, const depth_part& z, const phase& down, const phase& across) {
  conv_product q{};
  const plan::window_axis &h = p.axis[1], &v = p.axis[2];
  const auto& x = p.image.stride;
  const auto& w = p.kernel.stride;
  const auto& y = p.result.stride;
  q.site[0] = {p.n, y[0], x[0], 0, 0};
  q.site[1] = {z.windows, z.result.window * y[2], z.image.window * x[2], 0, 0};
  q.site[2] = {down.sites, y[3], h.stride * x[3], 1, 0};
  q.site[3] = {across.sites, y[4], v.stride * x[4], 0, 1};
  q.term[0] = {p.o, y[1], w[0], 0, 0};
  q.term[1] = {z.taps, z.result.tap * y[2], z.kernel.tap * w[2], 0, 0};
  q.term[2] = {down.taps, -down.result_step * y[3], down.tap_step * w[3], -down.result_step, 0};
  q.term[3] = {across.taps, -across.result_step * y[4], across.tap_step * w[4], 0, -across.result_step};
  q.groups = p.groups;
  q.channels = p.c;
  q.dense = p.kernel.data;
  if (!empty(q.term)) q.dense_first = z.kernel.first * w[2] + down.tap * w[3] + across.tap * w[4];
  q.dense_group = p.o * w[0];
  q.dense_channel = w[1];
  q.gathered = p.result.data;
  q.gathered_group = p.o * y[1];
  q.origin = z.result.first * y[2] + down.start * y[3] + across.start * y[4];
  q.y = down.start;
  q.x = across.start;
  q.height = h.windows;
  q.width = v.windows;
  q.out = p.out;
  q.out_first = z.image.first * x[2] + down.first * x[3] + across.first * x[4];
  q.out_group = p.c * x[1];
  q.out_channel = x[1];
  return q;
}

// Calls body(product) for every product of the call; together they compute every output once.
template <class Body>
void for_each_product(const conv_plan& p, const Body& body) {
  const auto use = [&](const conv_product& q) {
    if (!empty(q.site) && q.channels != 0) body(q);
  };
  plan::for_each_depth_part(p, [&](const depth_part& z) {
    switch (p.computed) {
      case conv_plan::role::result:
        return use(forward(p, z));
      case conv_plan::role::kernel:
        return use(grad_weight(p, z));
      case conv_plan::role::image:
        return plan::for_each_phase(p.axis[1], [&](const phase& down) {
          plan::for_each_phase(p.axis[2], [&](const phase& across) { use(grad_input(p, z, down, across)); });
        });
    }
  });
}

// ------------------------------------------------------------------------------------------------- few channels

constexpr std::int64_t plane_budget = std::int64_t{256} << 10;  // bytes, of a band's copy, and of its sums
constexpr std::int64_t most_weights = 32768;
constexpr std::int64_t most_taps = 1024;
constexpr std::int64_t most_input_channels =
    8;  // of direct_taps, and planes of them: every one reads the result's gradient again

std::int64_t planes(const conv_axis* axes) { return axes[0].size * axes[1].size; }

std::int64_t padded(std::int64_t count, std::size_t size) {
  return (count * static_cast<std::int64_t>(size) + 63) / 64 * 64;
}

// The band that fits the budget, `rows` being the axis that is cut and `line` the one that vectors run along, and
// row_taps and line_taps what moves y and x beside them. False: not even one row does.
bool cut(const conv_product& p, const conv_axis& rows, const conv_axis& line, const conv_axis& row_taps,
         const conv_axis& line_taps, std::int64_t bytes_per_row, conv_planes& d) {
  const std::int64_t reach = (line_taps.size - 1) * line_taps.x;
  const std::int64_t span = std::abs(reach);
  d.step = line.x;
  d.first_x = p.x + std::min<std::int64_t>(0, reach);
  d.lines = std::min(d.step, span + 1);
  d.length = span / d.step + line.size + conv_planes::slack;
  const auto copied = [&](std::int64_t count) {
    return std::min(p.height, (count - 1) * rows.y + std::abs((row_taps.size - 1) * row_taps.y) + 1);
  };
  const auto fits = [&](std::int64_t count) {
    return (1 + copied(count)) * d.lines * d.length * 4 <= plane_budget && count * bytes_per_row <= plane_budget;
  };
  // The first two keep the products of the third in int64.
  if (d.length > plane_budget || d.lines > plane_budget / d.length || !fits(1)) return false;
  std::int64_t low = 1, high = rows.size;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    (fits(middle) ? low : high) = fits(middle) ? middle : middle - 1;
  }
  d.bands = (rows.size + low - 1) / low;
  d.rows = (rows.size + d.bands - 1) / d.bands;
  d.copied = copied(d.rows);
  return true;
}

struct direct_form {
  bool taken = false;
  conv_planes planes{};
};

direct_form direct(const conv_plan& plan, const conv_product& p, const conv_kernels::loops& loops) {
  direct_form f;
  conv_planes& d = f.planes;
  if (p.channels > conv_planes::most_channels || empty(p.term)) return f;
  const auto plane_bytes = [&] { return padded((1 + d.copied) * d.lines * d.length, 4); };
  std::int64_t bytes = 0;
  if (plan.computed == conv_plan::role::kernel) {
    const std::int64_t taps = p.site[2].size * p.site[3].size;
    if (loops.taps == nullptr || planes(p.site) > most_input_channels || taps > most_taps) return f;
    const std::int64_t row = p.term[3].size + conv_planes::slack;
    f.taken = cut(p, p.term[2], p.term[3], p.site[2], p.site[3], row * 4, d);
    // Vectors are at most 8 lanes of binary64.
    bytes = plane_bytes() + padded(d.rows * row, 4) + padded(p.channels * taps * 8, 8) + 2 * padded(taps, 8) +
            padded(taps + 8, 8) + padded(p.channels, 8) + padded(taps + 8, 4);
  } else {
    if (loops.band[0] == nullptr || p.terms() * p.channels > most_weights) return f;
    const std::int64_t row = (p.site[3].size + conv_planes::slack) * p.channels * 8;
    const bool one_plane = planes(p.term) == 1;
    f.taken = cut(p, p.site[2], p.site[3], p.term[2], p.term[3], one_plane ? 0 : row, d);
    bytes = plane_bytes() + padded((one_plane ? 1 : d.rows) * row, 1) + padded(p.terms() * p.channels, 8) +
            padded(p.term[3].size, 8) + padded(d.rows, 8) + padded(1 + d.copied, 8) +
            padded(p.site[3].size + conv_planes::slack, 4);
  }
  d.scratch_bytes = static_cast<std::size_t>((bytes + 255) / 256 * 256);
  return f;
}

// Of a group: a plane of the kernel, or a band of one of the output.
std::int64_t tasks_of_group(const conv_plan& plan, const conv_product& p, const conv_planes& d) {
  return plan.computed == conv_plan::role::kernel ? planes(p.site) : planes(p.site) * d.bands;
}
// As many as for_each_task uses.
int direct_threads(const conv_plan& plan, const conv_product& p, const conv_planes& d, const dispatch::launch& l) {
  const double work =
      static_cast<double>(p.groups * p.channels) * static_cast<double>(p.sites()) * static_cast<double>(p.terms());
  return static_cast<int>(
      std::clamp<std::int64_t>(p.groups * tasks_of_group(plan, p, d), 1, worthwhile_threads(l.threads, work, 0.1)));
}

void run_direct(const conv_plan& plan, const conv_product& p, const conv_planes& d, const setting& s, void* workspace) {
  const conv_kernels::loops& loops = s.set.conv->of(plan);
  const dispatch::launch& launch = s.launch;
  const bool taps = plan.computed == conv_plan::role::kernel;
  const auto band = loops.band[p.channels - 1];
  std::atomic<std::int64_t> elements[4] = {};
  const std::int64_t each = tasks_of_group(plan, p, d);
  for_each_task(direct_threads(plan, p, d, launch), p.groups * each, [&](std::int64_t i, int thread) {
    void* const scratch = static_cast<char*>(workspace) + static_cast<std::size_t>(thread) * d.scratch_bytes;
    const std::int64_t j = i % each;
    const tier_counts c = taps ? loops.taps(p, d, launch.first_tier, i / each, j, scratch)
                               : band(p, d, launch.first_tier, i / each, j / d.bands, j % d.bands, scratch);
    for (int t = 0; t < 4; ++t)
      if (c.elements[t] != 0) elements[t].fetch_add(c.elements[t], std::memory_order_relaxed);
  });
  for (int t = 0; t < 4; ++t)
    if (elements[t] != 0) s.count.add(static_cast<tier>(t), elements[t]);
}

// ----------------------------------------------------------------------------------------------- blocked products

bool sites_in_rows(const conv_product& p) { return std::abs(p.out_channel) < std::abs(p.site[conv_rank - 1].other); }

const gemm_kernels& engine(const conv_product& p, const conv_kernels::loops& loops) {
  return sites_in_rows(p) ? loops.sites_by_channels : loops.channels_by_sites;
}

constexpr std::int64_t packed_once = std::int64_t{32} << 20;  // bytes

gemm_problem problem_of(const conv_product& p, const gemm_kernels& kernels, tier first_tier) {
  const bool swap = sites_in_rows(p);
  gemm_problem g = {p.groups,  swap ? p.sites() : p.channels, swap ? p.channels : p.sites(), p.terms(), false, &p,
                    first_tier};
  // Columns that more than two blocks of rows meet are worth keeping.
  g.blocks_pack =
      g.m <= 2 * kernels.row_block || g.n > packed_once / kernels.number_bytes / std::max<std::int64_t>(1, g.k);
  return g;
}

bool any_order(const conv_plan& plan) { return plan.accumulate == plan::accumulate_kind::exact; }

class conv_work final : public planned<conv_plan> {
 public:
  conv_work(const conv_plan& plan, const setting& setting) : planned(plan, setting) {
    const conv_kernels::loops& loops = s.set.conv->of(p);
    for_each_product(p, [&](conv_product product) {
      piece x{.planes = {}, .cut = {}};
      if (const direct_form f = direct(p, product, loops); f.taken) {
        const int threads = direct_threads(p, product, f.planes, s.launch);
        bytes_ = std::max(bytes_, plan::checked_size::product(threads, f.planes.scratch_bytes));
        x.planes = f.planes;
      } else {
        arrange(product, any_order(p));
        const gemm_kernels& k = engine(product, loops);
        x.cut.emplace(problem_of(product, k, s.launch.first_tier), k, s.launch.threads);
        bytes_ = std::max(bytes_, x.cut->bytes());
      }
      pieces_.push_back(x);
    });
  }

  plan::checked_size bytes() const override { return bytes_; }
  void run(void* workspace) override {
    std::size_t i = 0;
    for_each_product(p, [&](conv_product product) {
      const piece& x = pieces_[i++];
      if (x.planes) {
        summarise(product);
        return run_direct(p, product, *x.planes, s, workspace);
      }
      arrange(product, any_order(p));
      const gemm_kernels& k = engine(product, s.set.conv->of(p));
      run_gemm(problem_of(product, k, s.launch.first_tier), k, *x.cut, workspace, s.count);
    });
  }

 private:
  // One product, in either form. A gradient of stride 2 has four.
  struct piece {
    std::optional<conv_planes> planes;
    std::optional<gemm_blocking> cut;
  };
  plan::inline_vector<piece, 4> pieces_;
  plan::checked_size bytes_;
};

}  // namespace

void prepare(const plan::conv_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<conv_work>(p, s); }

}  // namespace repdl::cpu
