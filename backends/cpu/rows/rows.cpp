// The driver of row operations: the softmax family and norms.
//
// Rows that are long and contiguous are worked off one at a time, in chunks, others side by side in tiles; a single
// very long row is shared by the threads. In which order elements meet depends on that; the results do not, because
// each is the correctly rounded value of the exact result.
#include "backends/cpu/rows/rows.hpp"

#include <algorithm>

#include "backends/cpu/core/parallel.hpp"
#include "backends/cpu/rows/rows_places.hpp"
#include "librepdl/ops/rows/rules.hpp"

namespace repdl::cpu {
namespace {

using namespace REPDL_ISA;
using ops::op_id;

// What the driver wants to know of a rule.
struct row_facts {
  num::row_inputs inputs;
  float absent[num::most_elements];
  bool one_pass;  // outputs, of one operand that is read twice
  bool is_loss;
};
template <class Rule>
constexpr row_facts facts_of_rule() noexcept {
  row_facts f = {Rule::inputs, {}, Rule::per_element && Rule::summed == 1, num::is_loss<Rule>};
  std::copy_n(Rule::absent, num::most_elements, f.absent);
  return f;
}
const row_facts& facts_of(ops::op_id op) noexcept {
  const row_facts* f = nullptr;
  ops::for_row_operation(op, [&]<class Op>() {
    static constexpr row_facts facts = facts_of_rule<num::row_rule<Op::id>>();
    f = &facts;
  });
  return *f;
}

// How the work is cut.
struct row_layout {
  std::int64_t columns;  // rows per tile; 0: one row at a time
  int threads;
  int team;            // threads that share one row: 1 or `threads`
  std::int64_t block;  // numbers in a worker's x, out
  std::int64_t kept;   // and in keep
  std::size_t bytes;   // of a worker
  const row_facts* facts;
};
constexpr std::size_t worker_bytes = (sizeof(row_worker) + 63) / 64 * 64;
// Room for one register more, a multiple of 64 bytes.
std::size_t floats(std::int64_t n) noexcept { return static_cast<std::size_t>(n + 32) / 16 * 64; }

row_layout lay_out(const plan::row_plan& p, int threads) noexcept {
  row_layout l{};
  l.facts = &facts_of(p.op);
  const plan::row_plan::strides& x = p.in_stride[l.facts->inputs.element[0]];
  l.threads = worthwhile_threads(threads, static_cast<double>(p.rows) * static_cast<double>(p.length), 1.2);
  l.team = 1;
  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along = p.reduced_rank == 0 ? 0 : size(x.reduced[static_cast<std::size_t>(p.reduced_rank - 1)]);
  const std::int64_t across = p.kept_rank == 0 ? INT64_MAX : size(x.kept[static_cast<std::size_t>(p.kept_rank - 1)]);
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
  l.block = l.columns == 0 ? row_chunk : l.columns * p.length;
  l.kept = l.columns == 0 ? kept_length : l.block;
  l.bytes =
      worker_bytes + static_cast<std::size_t>(l.facts->inputs.elements() + 1) * floats(l.block) + 2 * floats(l.kept);
  return l;
}

class row_call {
 public:
  row_call(const plan::row_plan& p, const dispatch::launch& launch, void* workspace, const row_kernels& k,
           const row_layout& l) noexcept
      : p_(p), k_(k), layout_(l) {
    job_.plan = &p;
    job_.columns = l.columns;
    job_.team = l.team;
    job_.forced = launch.first_tier > tier::binary64;
    job_.skips_wide = launch.first_tier > tier::double_double;
    // Where the next row's elements are on their way too (row_kernels): else the stores hold up the loads.
    job_.streams = l.facts->one_pass && p.out_type[0] == dtype::f32 && l.columns == 0 && l.team == 1 &&
                   contiguous(p, p.out_stride[0].reduced) && p.rows * p.length >= streamed_length;
    job_.last_tier_bits = launch.last_tier_bits;
    job_.workers = static_cast<unsigned char*>(workspace);
    job_.worker_bytes = l.bytes;
    job_.exact = settle_exactly;
  }

  void run(counters& count) noexcept {
    for (int t = 0; t < layout_.threads; ++t) set_up(job_.worker(t));
    count_rows();
    if (layout_.facts->is_loss && p_.reduction != repdl::reduction::none) {
      loss();
    } else {
      each_row();
    }
    for (int t = 0; t < layout_.threads; ++t) count.add(job_.worker(t).count);
  }

 private:
  void set_up(row_worker& w) const noexcept {
    auto* at = reinterpret_cast<unsigned char*>(&w) + worker_bytes;
    const auto take = [&] {
      auto* const array = reinterpret_cast<float*>(at);
      at += floats(layout_.block);
      return array;
    };
    const row_facts& facts = *layout_.facts;
    for (int k = 0; k < facts.inputs.elements(); ++k) {
      w.x[k] = take();
      if (p_.in[facts.inputs.element[k]] == nullptr)
        std::fill_n(w.x[k], floats(layout_.block) / sizeof(float), facts.absent[k]);
    }
    w.out = take();
    w.keep = reinterpret_cast<double*>(at);
    w.count = {};
  }

  // What results are divided by.
  void count_rows() noexcept {
    const int target = layout_.facts->inputs.target;
    job_.n = 1;
    job_.total = 1;
    if (target < 0 || p_.reduction != repdl::reduction::mean) return;
    const auto* const targets = static_cast<const std::int64_t*>(p_.in[target]);
    if (targets == nullptr) {
      job_.n = p_.rows;
    } else {
      const int weight = layout_.facts->inputs.elements() > 1 ? layout_.facts->inputs.element[1] : -1;
      job_.weighted = weight >= 0 && p_.in[weight] != nullptr;
      job_.n = 0;
      walk<1> w(p_.kept_rank, p_.kept_shape, {&p_.in_stride[target].kept}, 0);
      for (std::int64_t r = 0; r < p_.rows; ++r, w.advance(1)) {
        const std::int64_t t = targets[w.offset(0)];
        if (t == p_.ignore_index) continue;
        ++job_.n;
        if (job_.weighted) job_.weights.add(weight_of(weight, t));
      }
    }
    job_.total = job_.weighted ? job_.weights.round<double>() : static_cast<double>(job_.n);
  }
  // NaN outside the classes.
  float weight_of(int weight, std::int64_t target) const noexcept {
    if (target < 0 || target >= p_.length) return num::float_of(num::canonical_nan_f32);
    return number_at(p_.in[weight], p_.in_type[weight], offset_in_row(p_, p_.in_stride[weight].reduced, target));
  }

  void each_row() noexcept {
    if (layout_.team > 1) {
      for (std::int64_t r = 0; r < p_.rows && !stopped(); ++r) shared_row(r);
      return;
    }
    // Of so many elements, and of whole tiles.
    constexpr std::int64_t elements = std::int64_t{1} << 18;
    const std::int64_t tile = std::max<std::int64_t>(layout_.columns, 1);
    const std::int64_t piece = (elements / std::max<std::int64_t>(p_.length, 1) / tile + 1) * tile;
    parallel(layout_.threads, [&](int thread, int used) {
      const range mine = share(p_.rows, thread, used, tile);
      in_pieces(mine, piece, [&](range r) { k_.rows(job_, job_.worker(thread), r.begin, r.end); });
    });
  }
  void shared_row(std::int64_t row) noexcept {
    for (row_phase phase = k_.begin(job_, row); phase != row_phase::done && !stopped();) {
      int team = 1;
      parallel(layout_.team, [&](int thread, int used) {
        if (thread == 0) team = used;
        const range mine = share(p_.length, thread, used, row_chunk);
        k_.piece(job_, job_.worker(thread), phase, mine.begin, mine.end);
      });
      phase = k_.join(job_, team, phase);
    }
  }

  // Of a loss, mean or sum.
  void loss() noexcept {
    tally& count = job_.worker(0).count;
    if (job_.n == 0) {
      set_number(p_.out[0], p_.out_type[0], 0, num::float_of(num::canonical_nan_f32));
      count.add(tier::proved, 1);
      return;
    }
    row_loss l{};
    for (const bool wide : {false, true}) {
      if (wide && job_.skips_wide) break;
      job_.wide_loss = wide;
      k_.start_loss(job_, layout_.threads);
      each_row();
      if (stopped()) return;
      l = k_.loss(job_, layout_.threads);
      if (!l.decided) continue;
      set_number(p_.out[0], p_.out_type[0], 0, l.value);
      count.add(l.special ? tier::proved : wide ? tier::double_double : tier::binary64, 1);
      return;
    }
    l = loss_exactly(job_);
    set_number(p_.out[0], p_.out_type[0], 0, l.value);
    if (l.decided) {
      count.add(tier::exact, 1);
    } else {
      ++count.undecided;
    }
  }

  const plan::row_plan& p_;
  const row_kernels& k_;
  const row_layout& layout_;
  row_job job_{};
};

class row_work final : public planned<const plan::row_plan&> {
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

void prepare(const plan::row_plan& p, const setting& s, dispatch::task& t) noexcept {
  if (p.is_binary64()) return p.is_spread() ? prepare(plan::spreads_of(p), s, t) : prepare_wide(p, s, t);
  t.emplace<row_work>(p, s);
}

}  // namespace repdl::cpu
