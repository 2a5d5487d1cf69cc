// The driver of sums to places: reads the indices, sorts their positions by target, and shares the targets out. Of a target with
// many positions all workers add up parts, which are then joined. Where targets are single elements each has a sum of its own, to which
// terms are added as they come; positions are then sorted only for what these sums leave undecided.
#include "backends/cpu/scatter/scatter.hpp"

#include <algorithm>

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/core/tasks.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {
namespace {

using plan::checked_size;
using std::int64_t;

constexpr int64_t longest_list = 16384;

// Calls use(line, its first position) for lines of positions in [first, last).
template <class Use>
void for_lines(const plan::scatter_plan& p, int64_t first, int64_t last, const Use& use) {
  const auto rank = static_cast<std::size_t>(p.positions.rank);
  const int64_t length = rank == 0 ? 1 : p.positions.shape[rank - 1];
  scatter_line line{};
  if (rank != 0) {
    line.source_step = p.source.outer_stride[rank - 1];
    line.index_step = p.index_stride[rank - 1];
    line.target_step = p.target_stride[rank - 1];
  }
  while (first < last) {
    line.source = line.index = line.target = 0;
    int64_t rest = first;
    for (std::size_t a = rank; a-- > 0;) {
      const int64_t at = rest % p.positions.shape[a];
      rest /= p.positions.shape[a];
      line.index += at * p.index_stride[a];
      line.source += at * p.source.outer_stride[a];
      line.target += at * p.target_stride[a];
    }
    line.length = std::min(last - first, length - first % length);
    use(line, first);
    first += line.length;
  }
}
// Calls use(position, index's offset, source's offset, offset of the target's number) for positions in [first, last).
template <class Use>
void for_positions(const plan::scatter_plan& p, int64_t first, int64_t last, const Use& use) {
  for_lines(p, first, last, [&](const scatter_line& l, int64_t at) {
    for (int64_t i = 0; i < l.length; ++i) {
      use(at + i, l.index + i * l.index_step, l.source + i * l.source_step, l.target + i * l.target_step);
    }
  });
}

class scatter_work final : public planned<plan::scatter_plan> {
 public:
  scatter_work(const plan::scatter_plan& plan, const setting& setting) noexcept
      : planned(plan, setting), loops_(s.set.scatter->of(p.type)) {
    const auto rank = static_cast<std::size_t>(p.inner.rank);
    length_ = rank == 0 ? 1 : p.inner.shape[rank - 1];
    blocks_of_row_ = (length_ + scatter_block - 1) / scatter_block;
    // In floating point: a product of counts may be no int64.
    const double terms = (static_cast<double>(p.positions.count) + static_cast<double>(p.targets.count)) *
                         static_cast<double>(p.inner.count);
    threads_ = worthwhile_threads(s.launch.threads, terms, 1.5);
  }

  checked_size bytes() const override {
    memory m{};
    return lay_out(nullptr, m);
  }

  void run(void* workspace) override {
    memory m{};
    lay_out(static_cast<std::byte*>(workspace), m);
    *m.ends++ = 0;
    if (p.inner.count != 1) {
      sort(m);
      add_up(m);
    } else if (!add_directly(m)) {
      sort(m);
      settle(m);
    }
  }

 private:
  struct memory {
    int64_t* ends;
    int64_t* offsets;
    int64_t* totals;  // positions of each part of the targets
    int64_t* long_targets;
    scatter_sums* parts;
    scatter_sum* sums;  // of each target, where it is one element
  };
  int64_t longest() const { return threads_ > 1 ? longest_list : INT64_MAX; }

  // Says how much there is, and where it lies, where there is a base.
  checked_size lay_out(std::byte* base, memory& m) const {
    checked_size used;
    const auto take = [&]<class T>(T*& to, checked_size n) {
      if (base != nullptr) to = reinterpret_cast<T*>(base + used.value());
      used += checked_size::product(n, sizeof(T)).rounded_up(64);
    };
    take(m.ends, checked_size(p.targets.count) + 1);
    take(m.offsets, p.positions.count);
    take(m.totals, threads_);
    take(m.long_targets, p.positions.count / longest_list + 1);
    take(m.parts, threads_);
    take(m.sums, p.inner.count == 1 ? p.targets.count : 0);
    return used;
  }

  // Calls body(part) for [0, threads_).
  template <class Body>
  void for_parts(const Body& body) const {
    parallel(threads_, [&](int thread, int used) {
      for (int part = thread; part < threads_; part += used) body(part);
    });
  }

  [[noreturn]] void refuse(int64_t position) const {
    int64_t value = 0;
    for_positions(p, position, position + 1, [&](int64_t, int64_t index, int64_t, int64_t) { value = p.index[index]; });
    std::string_view op, operand;
    ops::for_operation<ops::family::scatter>(p.op, [&]<class Op>() { op = Op::name, operand = Op::in[1].name; });
    fail(error_site::index_range, op, operand, "indices in [0, " + std::to_string(p.bound) + ")",
         std::to_string(value));
  }

  // Counts the positions of each target, then puts them in the order of the targets. Each part has some of the targets and looks at
  // all positions: nothing is shared.
  void sort(const memory& m) const {
    std::atomic<int64_t> bad{INT64_MAX};  // the first position whose index is out of range
    for_parts([&](int part) {
      const range mine = share(p.targets.count, part, threads_);
      std::fill(m.ends + mine.begin, m.ends + mine.end, 0);
      int64_t total = 0;
      int64_t first_bad = INT64_MAX;
      for_positions(p, 0, p.positions.count, [&](int64_t at, int64_t index, int64_t, int64_t target) {
        const int64_t i = p.index[index];
        if (i < 0 || i >= p.bound) {
          first_bad = std::min(first_bad, at);
          return;
        }
        const int64_t key = i * p.target_step + target;
        if (i == p.skipped || key < mine.begin || key >= mine.end) return;
        ++m.ends[key];
        ++total;
      });
      m.totals[part] = total;
      int64_t known = bad.load(std::memory_order_relaxed);
      while (first_bad < known && !bad.compare_exchange_weak(known, first_bad, std::memory_order_relaxed)) {
      }
    });
    if (bad.load() != INT64_MAX) refuse(bad.load());
    int64_t before = 0;
    for (int part = 0; part < threads_; ++part) {
      const int64_t total = m.totals[part];
      m.totals[part] = before;
      before += total;
    }
    for_parts([&](int part) {
      const range mine = share(p.targets.count, part, threads_);
      int64_t next = m.totals[part];
      for (int64_t t = mine.begin; t < mine.end; ++t) {
        const int64_t n = m.ends[t];
        m.ends[t] = next;  // where its list begins, for now
        next += n;
      }
      for_positions(p, 0, p.positions.count, [&](int64_t, int64_t index, int64_t source, int64_t target) {
        const int64_t i = p.index[index];
        const int64_t key = i * p.target_step + target;
        if (i != p.skipped && key >= mine.begin && key < mine.end) m.offsets[m.ends[key]++] = source;
      });
    });
  }

  // The inner elements of a block.
  scatter_columns columns_of(int64_t block) const {
    scatter_columns c{};
    const int64_t first = block % blocks_of_row_ * scatter_block;
    c.width = std::min(scatter_block, length_ - first);
    const auto rank = static_cast<std::size_t>(p.inner.rank);
    if (rank == 0) return c;
    c.source_step = p.source.inner_stride[rank - 1];
    c.x_step = p.x.inner_stride[rank - 1];
    c.out_step = p.out_inner_stride[rank - 1];
    c.source = first * c.source_step, c.x = first * c.x_step, c.out = first * c.out_step;
    int64_t rest = block / blocks_of_row_;
    for (std::size_t a = rank - 1; a-- > 0;) {
      const int64_t at = rest % p.inner.shape[a];
      rest /= p.inner.shape[a];
      c.source += at * p.source.inner_stride[a];
      c.x += at * p.x.inner_stride[a];
      c.out += at * p.out_inner_stride[a];
    }
    return c;
  }

  scatter_call call_of(const memory& m, int64_t* long_count) const {
    const tier first = p.type == dtype::f64 ? tier::double_double : tier::binary64;
    return {p, m.ends, m.offsets, s.launch.first_tier > first, longest(), m.long_targets, long_count};
  }

  // Each part has some of the targets and looks at all positions. Whether all are decided, and no index is out of range.
  bool add_directly(const memory& m) const {
    const scatter_call c = call_of(m, nullptr);
    std::atomic<bool> all{true};
    for_parts([&](int part) {
      const range mine = share(p.targets.count, part, threads_);
      std::fill(m.sums + mine.begin, m.sums + mine.end, scatter_sum{});
      bool in_range = true;
      for_lines(p, 0, p.positions.count, [&](const scatter_line& line, int64_t) {
        in_range &= loops_.add_line(p, line, mine.begin, mine.end, m.sums);
      });
      if (!in_range) all = false;
    });
    if (!all) return false;
    for_parts([&](int part) {
      const range mine = share(p.targets.count, part, threads_);
      tally counted;
      if (loops_.decide(c, columns_of(0), mine.begin, mine.end, m.sums, counted) != 0) all = false;
      s.count.add(counted);
    });
    return all;
  }

  void settle(const memory& m) const {
    const scatter_call c = call_of(m, nullptr);
    for_parts([&](int part) {
      const range mine = share(p.targets.count, part, threads_);
      tally counted;
      loops_.decide_exactly(c, columns_of(0), mine.begin, mine.end, m.sums, counted);
      s.count.add(counted);
    });
  }

  void add_up(const memory& m) const {
    int64_t long_count = 0;
    const scatter_call c = call_of(m, &long_count);
    const int64_t blocks = p.inner.count / length_ * blocks_of_row_;
    // Of all targets, cut where the work is even: a target is as much as a term.
    const int64_t cuts = threads_ == 1 ? 1 : std::max<int64_t>(1, 8 * threads_ / blocks);
    const int64_t all = p.targets.count + m.ends[p.targets.count - 1];
    const int64_t piece = (all + cuts - 1) / cuts;
    const auto cut = [&](int64_t i) {
      if (i == cuts) return p.targets.count;
      int64_t low = 0, high = p.targets.count;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (c.ends[middle - 1] + middle < piece * i) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    for_each_task(threads_, blocks * cuts, [&](int64_t i, int) {
      tally counted;
      scatter_call mine = c;
      if (i / cuts != 0) mine.long_count = nullptr;  // every block finds the same ones
      loops_.targets(mine, columns_of(i / cuts), cut(i % cuts), cut(i % cuts + 1), counted);
      s.count.add(counted);
    });
    for (int64_t i = 0; i < long_count; ++i) {
      for (int64_t block = 0; block < blocks; ++block) add_long(c, m, columns_of(block), m.long_targets[i]);
    }
  }

  void add_long(const scatter_call& c, const memory& m, const scatter_columns& columns, int64_t target) const {
    const int64_t begin = c.ends[target - 1];
    for_parts([&](int part) {
      const range mine = share(c.ends[target] - begin, part, threads_);
      loops_.add(c, columns, begin + mine.begin, begin + mine.end, m.parts[part]);
    });
    tally counted;
    loops_.finish(c, columns, target, m.parts, threads_, counted);
    s.count.add(counted);
  }

  const scatter_kernels::loops loops_;
  int64_t length_;         // of the innermost axis
  int64_t blocks_of_row_;  // along it
  int threads_;
};

}  // namespace

void prepare(const plan::scatter_plan& p, const setting& s, dispatch::task& t) noexcept {
  t.emplace<scatter_work>(p, s);
}

}  // namespace repdl::cpu
