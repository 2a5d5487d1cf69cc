// The driver of the softmax family: softmax, log_softmax, logsumexp, cross_entropy and their backward operations.
//
// Rows that are long and contiguous are worked off one at a time, in chunks, others side by side in tiles; a single
// very long row is shared by the threads. In which order elements meet depends on that; the results do not, because
// each is the correctly rounded value of the exact result.
#include "backends/cpu/rows/rows.hpp"

#include <new>

#include "backends/cpu/rows/rows_in_tiles.hpp"

namespace repdl::cpu {
namespace {

constexpr std::int64_t elements_per_thread = 8192;

row_layout lay_out(const plan::row_plan& p, int threads) noexcept {
  row_layout l{};
  const double worth = static_cast<double>(p.rows) * static_cast<double>(p.length) / double{elements_per_thread};
  l.threads = worth >= threads ? std::max(threads, 1) : std::max(static_cast<int>(worth), 1);
  l.team = 1;
  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along =
      p.reduced_rank == 0 ? 0 : size(p.in[0].reduced_stride[static_cast<std::size_t>(p.reduced_rank - 1)]);
  const std::int64_t across =
      p.kept_rank == 0 ? INT64_MAX : size(p.in[0].kept_stride[static_cast<std::size_t>(p.kept_rank - 1)]);
  const bool tiles = p.rows >= 4 && (p.length < 48 || (across < along && p.length <= 4096));
  if (tiles) {
    const std::int64_t fit = 16384 / std::max<std::int64_t>(p.length, 1) / column_step * column_step;
    const std::int64_t all = (p.rows + column_step - 1) / column_step * column_step;
    l.columns = std::min(std::clamp<std::int64_t>(fit, column_step, tile_columns), all);
    l.threads = static_cast<int>(std::min<std::int64_t>(l.threads, (p.rows + l.columns - 1) / l.columns));
  } else if (p.rows < l.threads && p.length >= 16 * row_chunk) {
    l.team = l.threads;
  } else {
    l.threads = static_cast<int>(std::min<std::int64_t>(l.threads, std::max<std::int64_t>(p.rows, 1)));
  }
  const std::int64_t block = l.columns == 0 ? row_chunk : l.columns * p.length;
  const std::int64_t kept = l.columns == 0 ? kept_length : block;
  const auto round = [](std::int64_t n) { return static_cast<std::size_t>(n + 32) / 16 * 64; };
  l.bytes = (sizeof(row_worker) + 63) / 64 * 64 + 4 * round(block) + 2 * round(kept);
  return l;
}

class row_call final : public rows_in_tiles {
 public:
  using rows_in_tiles::rows_in_tiles;

  void run(counters& count) noexcept {
    if (is_cross_entropy(p_.op)) count_rows();
    for (int t = 0; t < layout_.threads; ++t) {
      row_worker& w = worker(t);
      std::fill_n(w.by, 4, 0);
      w.undecided = 0;
    }
    const bool total = p_.op == op_id::cross_entropy && p_.reduction != repdl::reduction::none;
    if (total) {
      total_loss();
    } else {
      loss_total none;
      each_row(none, false);
    }
    for (int t = 0; t < layout_.threads; ++t) {
      const row_worker& w = worker(t);
      for (int i = 0; i < 4; ++i) {
        if (w.by[i] != 0) count.add(static_cast<tier>(i), w.by[i]);
      }
      if (w.undecided != 0) count.undecided.fetch_add(w.undecided, std::memory_order_relaxed);
    }
  }

 private:
  // Calls f(total, worker, rows of the tile or the one row) for all rows.
  void each_row(loss_total& total, bool wide) noexcept {
    if (layout_.team > 1) {
      walk<5> w = across_rows(p_, 0);
      for (std::int64_t r = 0; r < p_.rows; ++r, w.advance(1))
        one_row(worker(0), place_of(w), layout_.team, total, wide);
      return;
    }
    const std::int64_t grain = std::max<std::int64_t>(layout_.columns, 1);
    alignas(64) unsigned char parts[max_parts * sizeof(loss_total)];
    auto* part = reinterpret_cast<loss_total*>(parts);
    const int threads = std::min(layout_.threads, max_parts);
    for (int t = 0; t < threads; ++t) new (part + t) loss_total;
    parallel(threads, [&](int thread, int used) {
      const range mine = share(p_.rows, thread, used, grain);
      row_worker& w = worker(thread);
      loss_total local;
      walk<5> at = across_rows(p_, mine.begin);
      for (std::int64_t r = mine.begin; r < mine.end;) {
        if (layout_.columns != 0 && !wide) {
          const std::int64_t m = std::min(mine.end - r, layout_.columns);
          for (std::int64_t c = 0; c < m; ++c, at.advance(1)) w.place[c] = place_of(at);
          tile(w, m, local);
          r += m;
        } else {
          one_row(w, place_of(at), 1, local, wide);
          at.advance(1);
          ++r;
        }
      }
      if (streams_) k_.drain();
      part[thread] = local;
    });
    for (int t = 0; t < threads; ++t) total.merge(part[t]);
  }

  void total_loss() noexcept {
    row_worker& w = worker(0);
    float& out = *p_.out;
    if (counted_ == 0) {
      out = p_.reduction == repdl::reduction::mean ? row_nan() : 0.0f;
      ++w.by[0];
      return;
    }
    loss_total t;
    each_row(t, false);
    if (t.nan || t.infinite) {
      out = t.nan ? row_nan() : row_inf;
      ++w.by[0];
      return;
    }
    const auto round = [this](num::dd s, double e) {
      return divisor_ == 1 ? num::certify(s, e) : num::certify_mean(s, e, divisor_);
    };
    // Every term is at least 0.
    num::certified c{0.0f, false};
    if (!forced_) {
      const double e = (t.slack + t.sum.bound(4 * t.rows)) * (1 + 0x1p-20);
      c = round(num::two_sum(t.sum.hi, t.sum.lo), e);
      w.by[1] += c.decided ? 1 : 0;
    }
    if (!c.decided && !skip_dd_) {
      loss_total wide;
      each_row(wide, true);
      const double e = (wide.slack + 0x1p-103 * static_cast<double>(2 * wide.rows + 2) * wide.wide.hi) * (1 + 0x1p-20);
      c = round(wide.wide, e);
      w.by[2] += c.decided ? 1 : 0;
    }
    if (!c.decided) {
      c = total_exactly(p_, divisor_, launch_.last_tier_bits);
      (c.decided ? w.by[3] : w.undecided) += 1;
    }
    out = c.value;
  }

  static constexpr int max_parts = 256;
};

class row_work final : public planned<plan::row_plan> {
 public:
  row_work(const plan::row_plan& plan, const setting& setting) noexcept
      : planned(plan, setting), layout_(lay_out(p, s.launch.threads)) {}

  plan::checked_size bytes() const override { return plan::checked_size::product(layout_.bytes, layout_.threads); }
  void run(void* workspace) override {
    row_call(p, s.launch, workspace, *s.set.row, layout_).run(s.count);
    s.count.check_decided(s.launch.last_tier_bits);
  }

 private:
  const row_layout layout_;
};

}  // namespace

void prepare(const plan::row_plan& p, const setting& s, dispatch::task& t) noexcept { t.emplace<row_work>(p, s); }

}  // namespace repdl::cpu
