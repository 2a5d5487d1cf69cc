// Rows of binary64 (librepdl/ops/rows/wide_rule.hpp), those that the quick tier listed, if there is one: a block has a row, and goes on with it until it is done: wide numbers, balls of 256
// bits, balls of 512, or exact sums. What a level leaves undecided is told by asking it again, so that nothing is listed.
// Means and sums of losses: a launch for each level, of which the last block to be done adds up what the others found.
#include <algorithm>

#include "backends/cuda/rows/rows_wide.cuh"
#include "librepdl/ops/rows/cross_entropy_binary64.hpp"
#include "librepdl/ops/rows/norm_binary64.hpp"
#include "librepdl/ops/rows/softmax_binary64.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = late_threads;
constexpr int warps = threads / 32;

// The levels of an operation: of one that has no formula with more and more bits the second is the last, and decides everything.
template <op_id Op>
inline constexpr int wide_levels = num::wide_rule<Op>::exact_limbs != 0 ? 2 : 3;
template <op_id Op, int Level>
using wide_sums = typename num::wide_rule<Op>::template late<std::tuple_element_t<Level, late_arithmetics>>;
template <op_id Op>
inline constexpr std::size_t wide_bytes = std::max({sizeof(wide_sums<Op, 0>), sizeof(wide_sums<Op, 1>),
                                                    sizeof(wide_sums<Op, 2>)});

// The greatest element, by a block.
template <op_id Op>
__device__ void look(wide_row<Op>& row, const row_geometry& to, std::byte* scratch) {
  double top = -num::infinity;
  for (std::int64_t j = threadIdx.x; j < to.length; j += threads)
    top = wide_max_or_nan(top, row.template value<0>(to, j));
  __syncwarp();
  over_block<threads>(top, scratch, [](double& a, double b) { a = wide_max_or_nan(a, b); });
  row.given.top = top;
}

// The sums of a row in an arithmetic, by a block.
template <op_id Op, int Level>
__device__ __noinline__ void wide_sums_of(wide_sums<Op, Level>& to, const row_geometry& g, const wide_row<Op>& row,
                                          std::byte* scratch) {
  wide_sums<Op, Level> s{};
  num::start_sums(s, row.given.top, row.given);
  for (std::int64_t j = threadIdx.x; num::wide_rule<Op>::has_sums && j < g.length; j += threads) {
    [&]<int... K>(std::integer_sequence<int, K...>) { s.add(row.template value<K>(g, j)...); }
    (std::make_integer_sequence<int, num::wide_rule<Op>::summed>{});
  }
  __syncwarp();
  over_block<threads>(s, scratch, [](auto& a, const auto& b) { a.merge(b); });
  to = s;
}

template <op_id Op, int Level>
__device__ __noinline__ num::decided64 wide_settle(const num::wide_row_given& given, const wide_sums<Op, Level>& s,
                                                   const double* x, int what) {
  return num::wide_rule<Op>::template settle<std::tuple_element_t<Level, late_arithmetics>>(given, s, x, what);
}

// What a thread decided and left.
struct wide_tally {
  int decided[2] = {};  // by wide numbers, by balls
  int left = 0;
};

// The outputs of a row from a level on, by a block. before(x, what): whether a level before this one decides.
template <op_id Op, int Level, class Before>
__device__ void settle_from(const row_geometry& g, const wide_row<Op>& row, std::byte* scratch, wide_tally& tally,
                            const Before& before) {
  constexpr bool is_last = Level + 1 == wide_levels<Op>;
  if (!runs(g, Level)) {
    if constexpr (!is_last) settle_from<Op, Level + 1>(g, row, scratch, tally, before);
    return;
  }
  wide_sums<Op, Level> s;
  wide_sums_of<Op, Level>(s, g, row, scratch);
  const bool ends = is_last || (g.levels >> static_cast<unsigned>(Level + 1)) == 0;
  bool left = false;
  for (std::int64_t j = threadIdx.x; j < wide_row<Op>::outputs(g); j += threads) {
    if (!row.wants(g, j)) continue;
    const int output = wide_row<Op>::output_of(g, j);
    const int what = num::wide_rule<Op>::has_exception && j == row.given.target ? 1 : output;
    double x[wide_row<Op>::elements];
    for_each_of<wide_row<Op>::elements>([&]<int K>() {
      x[K] = 0;
      if constexpr (wide_row<Op>::per_element) {
        if (output == 0) x[K] = row.template value<K>(g, j);
      }
    });
    if (before(x, what)) continue;
    const num::decided64 v = wide_settle<Op, Level>(row.given, s, x, what);
    if (v.decided) {
      row.set_in_format(g, j, v.value);
      ++tally.decided[Level == 0 ? 0 : 1];
    } else {
      left = true;
      tally.left += ends ? 1 : 0;
    }
  }
  __syncwarp();
  if (__syncthreads_or(left ? 1 : 0) == 0) return;
  if constexpr (!is_last) {
    if (ends) return;
    settle_from<Op, Level + 1>(g, row, scratch, tally, [&](const double* x, int what) {
      return before(x, what) || wide_settle<Op, Level>(row.given, s, x, what).decided;
    });
  }
}

template <op_id Op>
__global__ void __launch_bounds__(threads) wide_kernel(const __grid_constant__ wide_geometry g, counter* counters) {
  using rule = num::wide_rule<Op>;
  alignas(16) __shared__ std::byte scratch[warps * wide_bytes<Op>];
  std::int64_t proved = 0;
  std::int64_t decided[2] = {};
  std::int64_t undecided = 0;
  std::int64_t quickly = 0;  // what the quick tier decided of rows in its list, and what is decided again
  const bool is_listed = g.quick.team != 0;
  const std::int64_t rows = is_listed ? *g.quick.count : g.rows;
  for (std::int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    const std::int64_t r = is_listed ? g.quick.rows[i] : i;
    wide_row<Op> row(g, r);
    if constexpr (rule::look == num::row_look::greatest) look(row, g, scratch);
    const num::row_class64 what = rule::classify(row.given);
    if (what.fills || g.levels == 0) {
      for (std::int64_t j = threadIdx.x; j < wide_row<Op>::outputs(g); j += threads) {
        if (!row.wants(g, j)) continue;
        if (what.fills) row.set_in_format(g, j, what.value);
        ++(what.fills ? proved : undecided);
      }
    } else {
      wide_tally tally;
      settle_from<Op, 0>(g, row, scratch, tally, [](const double*, int) { return false; });
      for (int k = 0; k < 2; ++k) decided[k] += tally.decided[k];
      undecided += tally.left;
      if (is_listed) quickly -= tally.decided[0] + tally.decided[1] + tally.left;
      if (is_listed && threadIdx.x == 0) quickly += g.quick.left[r];
    }
    __syncthreads();
  }
  __syncwarp();
  for (int distance = 16; distance >= 1; distance /= 2) {
    proved += from_lane(proved, distance);
    undecided += from_lane(undecided, distance);
    quickly += from_lane(quickly, distance);
    for (std::int64_t& d : decided) d += from_lane(d, distance);
  }
  if (lane_of_thread() != 0) return;
  count_elements(counters, tier::proved, proved);
  count_elements(counters, tier::binary64, quickly);
  count_elements(counters, tier::double_double, decided[0]);
  count_elements(counters, tier::exact, decided[1]);
  if (undecided != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(undecided));
}

// What a loss is divided by, by one block. NaN outside the classes.
__global__ void __launch_bounds__(threads) divisor_kernel(const __grid_constant__ wide_geometry g, counter* counters) {
  using sum = num::exact_sum<double, 1>;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(sum)];
  sum part{};
  if (g.is_mean && g.target != nullptr) {
    for (std::int64_t row = threadIdx.x; row < g.rows; row += threads) {
      const std::int64_t t = g.target[row_offset<target_place>(g, row)];
      if (t == g.ignore_index) continue;
      const bool outside = t < 0 || t >= g.length;
      part.add(!g.is_weighted ? 1.0
               : outside      ? num::double_of(num::format<double>::nan)
                              : static_cast<const double*>(g.x[1])[element_offset<1>(g, t)]);
    }
  } else if (threadIdx.x == 0) {
    part.add(g.is_mean ? static_cast<double>(g.rows) : 1.0);
  }
  __syncwarp();
  over_block<threads>(part, scratch, [](sum& a, const sum& b) { a.merge(b); });
  if (threadIdx.x != 0) return;
  g.divisor->sum = part;
  g.divisor->find_near();
  if (g.total != nullptr && g.levels == 0) atomicAdd(counters + undecided_counter, counter{1});
}

template <op_id Op, int Level>
using wide_total = typename num::wide_rule<Op>::template late_total<std::tuple_element_t<Level, late_arithmetics>>;

template <op_id Op, int Level>
__device__ __noinline__ void add_wide_row(wide_total<Op, Level>& total, const wide_geometry& g, std::int64_t r,
                                          std::byte* scratch) {
  wide_row<Op> row(g, r);
  look(row, g, scratch);
  const num::row_class64 what = num::wide_rule<Op>::classify(row.given);
  if (what.fills) {  // the whole block
    if (threadIdx.x == 0) total.add_special(what.value);
    return;
  }
  wide_sums<Op, Level> s;
  wide_sums_of<Op, Level>(s, g, row, scratch);
  if (threadIdx.x == 0) total.add_row(s, row.given);
  __syncwarp();
}

constexpr unsigned most_wide_parts = 264;

template <op_id Op, int Level>
__global__ void __launch_bounds__(threads)
    wide_total_kernel(const __grid_constant__ wide_geometry g, std::byte* parts, counter* counters) {
  using part = wide_total<Op, Level>;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(wide_sums<Op, Level>)];
  __shared__ bool is_last;
  if (g.total->is_decided != 0) return;
  part total;
  total.start();
  for (std::int64_t r = blockIdx.x; r < g.rows; r += gridDim.x) {
    add_wide_row<Op, Level>(total, g, r, scratch);
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    reinterpret_cast<part*>(parts)[blockIdx.x] = total;
    __threadfence();
    is_last = atomicAdd(&g.total->blocks_done[Level], 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  total.start();
  for (unsigned i = 0; i < gridDim.x; ++i) total.merge(reinterpret_cast<const part*>(parts)[i]);
  num::wide_row_given call{};
  call.length = g.length;
  call.divisor = g.divisor;
  const num::decided64 v = total.finish(call);
  if (v.decided) {
    static_cast<double*>(g.out[0])[0] = v.value;
    g.total->is_decided = 1;
    count_elements(counters, Level == 0 ? tier::double_double : tier::exact, 1);
  } else if ((g.levels >> static_cast<unsigned>(Level + 1)) == 0) {
    atomicAdd(counters + undecided_counter, counter{1});
  }
}

class wide_work final : public planned {
 public:
  wide_work(const plan::row_plan& p, std::unique_ptr<widened_x> x, const job& given)
      : planned(given), x_(std::move(x)) {
    if (x_ != nullptr) space.take(x_->copy, x_->count, size_of(x_->to));
    ops::for_row_operation(p.op, [&]<class Op>() {
      if constexpr (num::has_wide_rule<Op::id>) {
        constexpr row_facts facts = row_facts_of<num::wide_rule<Op::id>>(false);
        const row_cut cut = cut_rows(g_, p, facts, j.device, j.first_tier, j.last_tier_bits);
        g_.levels = cut.levels;
        for (int k = 0; k < 2; ++k) g_.former[k] = static_cast<const double*>(cut.former[k]);
        if constexpr (num::wide_rule<Op::id>::inputs.target >= 0) space.take(g_.divisor, 1);
        take_quick_workspace(g_, j, space);
        if constexpr (num::is_loss<num::wide_rule<Op::id>>) {
          if (!g_.is_total) return;
          space.take(g_.total, 1);
          space.take(parts_, most_wide_parts, sizeof(wide_total<Op::id, 2>));
        }
      }
    });
  }

 private:
  template <op_id Op, int Level>
  void launch_total() {
    if (!runs(g_, Level)) return;
    const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(g_.rows, 1, most_wide_parts));
    launch_kernel<wide_total_kernel<Op, Level>>(j, blocks, threads, 0, g_, parts_, j.counters);
  }

  void enqueue() override {
    if (x_ != nullptr) {
      run_widening(*x_, j);
      g_.x[0] = x_->copy;
    }
    if (g_.divisor != nullptr) launch_kernel<divisor_kernel>(j, 1, threads, 0, g_, j.counters);
    if (g_.total != nullptr) {
      check(cudaMemsetAsync(g_.total, 0, sizeof *g_.total, j.stream), "rows", "cudaMemsetAsync");
      ops::for_row_operation(g_.op, [&]<class Op>() {
        if constexpr (num::has_wide_rule<Op::id>) {
          if constexpr (num::is_loss<num::wide_rule<Op::id>>) {
            launch_total<Op::id, 0>();
            launch_total<Op::id, 1>();
            launch_total<Op::id, 2>();
          }
        }
      });
      return;
    }
    if (g_.rows == 0) return;
    if (g_.quick.team != 0) run_quick_rows(g_, j);
    const unsigned blocks = grid_for(j.device, g_.rows, 16);
    ops::for_row_operation(g_.op, [&]<class Op>() {
      if constexpr (num::has_wide_rule<Op::id>) {
        launch_kernel<wide_kernel<Op::id>>(j, blocks, threads, 0, g_, j.counters);
      }
    });
  }

  const std::unique_ptr<widened_x> x_;  // null: there is no copy of x
  wide_geometry g_{};
  std::byte* parts_ = nullptr;  // of the total
};

}  // namespace

void prepare_wide(const plan::row_plan& p, std::unique_ptr<widened_x> x, const job& j, dispatch::task& t) {
  t.emplace<wide_work>(p, std::move(x), j);
}

}  // namespace repdl::cuda
