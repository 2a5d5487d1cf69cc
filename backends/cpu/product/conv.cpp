// Convolution on the CPU: a call as products with gathered operands (conv.hpp), and how their axes are ordered.
#include "backends/cpu/product/conv.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "backends/cpu/core/tasks.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

using plan::conv_plan;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

bool empty(const conv_axis* axes) { return axes[0].size == 0 || axes[1].size == 0 || axes[2].size == 0; }

// The extremes of the axes' part of a coordinate.
struct extent {
  std::int64_t low = 0, high = 0;
};
extent extent_of(const conv_axis* axes, std::int64_t conv_axis::*step) {
  extent e;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t last = (axes[i].size - 1) * axes[i].*step;
    (last < 0 ? e.low : e.high) += last;
  }
  return e;
}

// Axes of size 1 go, neighbouring axes that one step leads through become one; what is left comes last.
void merge(conv_axis* axes) {
  conv_axis kept[3];
  int n = 0;
  for (int i = 0; i < 3; ++i) {
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
  for (int i = 0; i < 3; ++i) axes[i] = i < 3 - n ? conv_axis{1, 0, 0, 0, 0} : kept[i - (3 - n)];
}

// No result depends on the order of the sites; on the order of the terms only a chain's does. The shortest steps
// through the gathered tensor come last.
void sort(conv_axis* axes) {
  std::stable_sort(axes, axes + 3,
                   [](const conv_axis& a, const conv_axis& b) { return std::abs(a.gathered) > std::abs(b.gathered); });
}

// The extremes of the terms' part of the coordinates, and whether dense is a line.
void summarise(conv_product& p) {
  p.dense_line = true;
  std::int64_t inner = 1;  // terms that one step of an axis passes
  for (int i = 2; i >= 0; --i) {
    p.dense_line &= p.term[i].size <= 1 || p.term[i].other == inner * p.term[2].other;
    inner *= p.term[i].size;
  }
  const extent y = extent_of(p.term, &conv_axis::y), x = extent_of(p.term, &conv_axis::x);
  p.low_y = y.low, p.high_y = y.high;
  p.low_x = x.low, p.high_x = x.high;
}

void arrange(conv_product& p, bool any_order) {
  if (empty(p.term)) {
    p.term[0].size = 0;
    p.term[1].size = p.term[2].size = 1;
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
  p.gather_terms = cost(p.term[2], 0.4, 1.3) < cost(p.site[2], 0.2, 1.0);
}

conv_product forward(const conv_plan& p) {
  conv_product q{};
  const auto& x = p.image.stride;
  const auto& w = p.kernel.stride;
  const auto& y = p.result.stride;
  q.site[0] = {p.n, x[0], y[0], 0, 0};
  q.site[1] = {p.oh, p.stride.h * x[2], y[2], p.stride.h, 0};
  q.site[2] = {p.ow, p.stride.w * x[3], y[3], 0, p.stride.w};
  q.term[0] = {p.c, x[1], w[1], 0, 0};
  q.term[1] = {p.kh, p.dilation.h * x[2], w[2], p.dilation.h, 0};
  q.term[2] = {p.kw, p.dilation.w * x[3], w[3], 0, p.dilation.w};
  q.groups = p.groups;
  q.channels = p.o;
  q.dense = p.kernel.data;
  q.dense_group = p.o * w[0];
  q.dense_channel = w[0];
  q.gathered = p.image.data;
  q.gathered_group = p.c * x[1];
  q.origin = -p.top * x[2] - p.left * x[3];
  q.y = -p.top;
  q.x = -p.left;
  q.height = p.h;
  q.width = p.w;
  q.out = p.out;
  q.out_group = p.o * y[1];
  q.out_channel = y[1];
  q.bias = p.bias;
  q.bias_group = p.o * p.bias_stride;
  q.bias_channel = p.bias_stride;
  return q;
}

conv_product grad_weight(const conv_plan& p) {
  conv_product q = forward(p);
  const auto& w = p.kernel.stride;
  const auto& y = p.result.stride;
  std::swap(q.site, q.term);
  q.site[0].other = w[1], q.site[1].other = w[2], q.site[2].other = w[3];
  q.term[0].other = y[0], q.term[1].other = y[2], q.term[2].other = y[3];
  q.dense = p.result.data;
  std::swap(q.dense_group, q.out_group);
  std::swap(q.dense_channel, q.out_channel);
  q.bias = nullptr;
  return q;
}

// One direction of a phase: image coordinate = first + i * stride for i < sites, kernel coordinate = tap + j * tap_step
// for j < taps; the pair meets result coordinate start + i - j * result_step.
struct phase {
  std::int64_t first, sites, tap, tap_step, taps, start, result_step;

  phase(std::int64_t remainder, std::int64_t size, std::int64_t before, std::int64_t stride, std::int64_t dilation,
        std::int64_t kernel) {
    const std::int64_t q0 = ceil_div(before - remainder, stride);
    first = stride * q0 + remainder - before;
    sites = std::max<std::int64_t>(0, ceil_div(size - first, stride));
    tap_step = stride / std::gcd(stride, dilation);
    tap = 0;
    while (tap < std::min(tap_step, kernel) && tap * (dilation % stride) % stride != remainder) ++tap;
    taps = tap < std::min(tap_step, kernel) ? (kernel - tap + tap_step - 1) / tap_step : 0;
    start = taps > 0 ? q0 - (tap * dilation - remainder) / stride : 0;
    result_step = taps > 1 ? tap_step * dilation / stride : 0;
  }
};

conv_product grad_input(const conv_plan& p, const phase& down, const phase& across) {
  conv_product q{};
  const auto& x = p.image.stride;
  const auto& w = p.kernel.stride;
  const auto& y = p.result.stride;
  q.site[0] = {p.n, y[0], x[0], 0, 0};
  q.site[1] = {down.sites, y[2], p.stride.h * x[2], 1, 0};
  q.site[2] = {across.sites, y[3], p.stride.w * x[3], 0, 1};
  q.term[0] = {p.o, y[1], w[0], 0, 0};
  q.term[1] = {down.taps, -down.result_step * y[2], down.tap_step * w[2], -down.result_step, 0};
  q.term[2] = {across.taps, -across.result_step * y[3], across.tap_step * w[3], 0, -across.result_step};
  q.groups = p.groups;
  q.channels = p.c;
  q.dense = p.kernel.data;
  if (down.taps > 0 && across.taps > 0 && p.o > 0) q.dense_first = down.tap * w[2] + across.tap * w[3];
  q.dense_group = p.o * w[0];
  q.dense_channel = w[1];
  q.gathered = p.result.data;
  q.gathered_group = p.o * y[1];
  q.origin = down.start * y[2] + across.start * y[3];
  q.y = down.start;
  q.x = across.start;
  q.height = p.oh;
  q.width = p.ow;
  q.out = p.out;
  q.out_first = down.first * x[2] + across.first * x[3];
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
  ops::for_operation<ops::family::convolution>(p.op, [&]<class Op>() {
    if constexpr (Op::id == ops::op_id::conv2d) {
      use(forward(p));
    } else if constexpr (Op::id == ops::op_id::conv2d_grad_weight) {
      use(grad_weight(p));
    } else if constexpr (Op::id == ops::op_id::conv2d_grad_input) {
      for (std::int64_t i = 0; i < std::min(p.stride.h, p.h); ++i) {
        const phase down((i + p.top) % p.stride.h, p.h, p.top, p.stride.h, p.dilation.h, p.kh);
        for (std::int64_t j = 0; j < std::min(p.stride.w, p.w); ++j) {
          const phase across((j + p.left) % p.stride.w, p.w, p.left, p.stride.w, p.dilation.w, p.kw);
          use(grad_input(p, down, across));
        }
      }
    } else {  // a sum is planned as one
      static_assert(Op::id == ops::op_id::conv2d_grad_bias || ops::has_no_case<Op>, "a convolution without products");
    }
  });
}

// ------------------------------------------------------------------------------------------------- few channels

constexpr std::int64_t plane_budget = std::int64_t{256} << 10;  // bytes, of a band's copy, and of its sums
constexpr std::int64_t most_weights = 32768;
constexpr std::int64_t most_taps = 1024;
constexpr std::int64_t most_input_channels = 8;  // of direct_taps: every one reads the result's gradient again

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
  if (plan.op == ops::op_id::conv2d_grad_weight) {
    const std::int64_t taps = p.site[1].size * p.site[2].size;
    if (loops.taps == nullptr || p.site[0].size > most_input_channels || taps > most_taps) return f;
    const std::int64_t row = p.term[2].size + conv_planes::slack;
    f.taken = cut(p, p.term[1], p.term[2], p.site[1], p.site[2], row * 4, d);
    // Vectors are at most 8 lanes of binary64.
    bytes = plane_bytes() + padded(d.rows * row, 4) + padded(p.channels * taps * 8, 8) + 2 * padded(taps, 8) +
            padded(taps + 8, 8) + padded(p.channels, 8) + padded(taps + 8, 4);
  } else {
    if (loops.band[0] == nullptr || p.terms() * p.channels > most_weights) return f;
    const std::int64_t row = (p.site[2].size + conv_planes::slack) * p.channels * 8;
    const bool one_plane = p.term[0].size == 1;
    f.taken = cut(p, p.site[1], p.site[2], p.term[1], p.term[2], one_plane ? 0 : row, d);
    bytes = plane_bytes() + padded((one_plane ? 1 : d.rows) * row, 1) + padded(p.terms() * p.channels, 8) +
            padded(p.term[2].size, 8) + padded(d.rows, 8) + padded(1 + d.copied, 8) +
            padded(p.site[2].size + conv_planes::slack, 4);
  }
  d.scratch_bytes = static_cast<std::size_t>((bytes + 255) / 256 * 256);
  return f;
}

// Of a group: an input channel, or a sample's band.
std::int64_t tasks_of_group(const conv_plan& plan, const conv_product& p, const conv_planes& d) {
  return plan.op == ops::op_id::conv2d_grad_weight ? p.site[0].size : p.site[0].size * d.bands;
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
  const bool taps = plan.op == ops::op_id::conv2d_grad_weight;
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

bool sites_in_rows(const conv_product& p) { return std::abs(p.out_channel) < std::abs(p.site[2].other); }

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
