// Means and sums of losses over rows: from what binary64 knows of every row, and where that does not decide, from all rows in the late
// arithmetics, one after the other. The last block of a launch to be done adds up what the others found.
#include <algorithm>

#include "backends/cuda/rows/rows_chunks.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / 32;
constexpr int total_blocks = 264;

// Of some rows in binary64.
struct total_part {
  num::tracked_sum<double> sum;
  double slack;

  __device__ void merge(const total_part& o) {
    sum.merge(o.sum);
    slack += o.slack;
  }
};

template <op_id Op, int Level>
using late_total = typename device_rule<Op>::template late_total<late_arithmetic<Op, Level>>;

__device__ void set_total(const row_geometry& g, float v) { set_number<any_format>(g.out[0], 0, g.out_type[0], v); }

// Stores the block's part; true in all threads of the last block, which then sees all parts.
template <class Part>
__device__ bool is_last_block(const row_geometry& g, int launch, std::byte* parts, const Part& part) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    reinterpret_cast<Part*>(parts)[blockIdx.x] = part;
    __threadfence();
    last = atomicAdd(&g.status->blocks_done[launch], 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

__global__ void __launch_bounds__(threads)
    total_kernel(const __grid_constant__ row_geometry g, std::byte* parts, counter* counters) {
  alignas(16) __shared__ std::byte scratch[warps * sizeof(total_part)];
  const auto merge = [](total_part& a, const total_part& b) { a.merge(b); };
  total_part part{};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    const loss_row r = g.losses[row];
    part.sum.add(num::dd{r.gap, r.low});
    part.sum.add(r.r);
    part.slack += r.slack;
  }
  __syncwarp();
  over_block<threads>(part, scratch, merge);
  if (!is_last_block(g, 0, parts, part)) return;
  part = total_part{};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += threads) part.merge(reinterpret_cast<const total_part*>(parts)[i]);
  __syncwarp();
  over_block<threads>(part, scratch, merge);
  if (threadIdx.x != 0) return;
  const std::int64_t counted = counted_rows(g);
  if (counted == 0 || !num::is_finite(part.sum.hi)) {
    set_total(g, counted == 0 ? (g.is_mean ? row_nan() : 0.0f) : num::non_finite_result(part.sum.hi));
    count_elements(counters, tier::proved, 1);
    return;
  }
  num::certified c{0.0f, false};
  if (g.bounds.weight < 1) {  // every term is at least 0
    const double e = (part.slack + part.sum.bound(2 * g.rows + 4096)) * (1 + 0x1p-20);
    c = num::round_loss(g.out_type[0], part.sum.total(), e, call_of(g));
  }
  if (c.decided) {
    set_total(g, c.value);
    count_elements(counters, tier::binary64, 1);
  } else if (g.levels != 0) {
    g.status->total_undecided = 1;
  } else {
    atomicAdd(counters + undecided_counter, counter{1});
  }
}

template <op_id Op, int Level>
__device__ __noinline__ void add_row(late_total<Op, Level>& total, const row_geometry& g, std::int64_t row,
                                     std::byte* scratch) {
  constexpr int summed = device_rule<Op>::summed;
  const row_site<Op, any_format> at(g, row);
  const num::row_operands o = operands_of(g, at);
  const num::row_call call = call_of(g);
  if (device_rule<Op>::classify(call, o, 0).fills) return;  // the whole block: ignored, or without classes
  float top = -row_inf;
  for (std::int64_t j = threadIdx.x; j < g.length; j += threads) top = max_or_nan(top, at.template value<0>(g, j));
  __syncwarp();
  over_block<threads>(top, scratch, [](float& a, float b) { a = max_or_nan(a, b); });
  late_sums<Op, Level> s{};
  num::start_sums(s, static_cast<double>(top), call);
  for (std::int64_t j = threadIdx.x; j < g.length; j += threads) {
    const row_values<summed> v = at.template values<summed>(g, j);
    [&]<int... K>(std::integer_sequence<int, K...>) { s.add(static_cast<double>(v.x[K])...); }
    (std::make_integer_sequence<int, summed>{});
  }
  __syncwarp();
  over_block<threads>(s, scratch, [](auto& a, const auto& b) { a.merge(b); });
  if (threadIdx.x == 0) total.add_row(s, o);
  __syncwarp();
}

template <op_id Op, int Level>
__global__ void __launch_bounds__(threads)
    late_total_kernel(const __grid_constant__ row_geometry g, std::byte* parts, counter* counters) {
  alignas(16) __shared__ std::byte scratch[warps * sizeof(late_sums<Op, 2>)];
  if (g.status->total_undecided == 0) return;
  late_total<Op, Level> total;
  total.start();
  for (std::int64_t row = blockIdx.x; row < g.rows; row += gridDim.x) add_row<Op, Level>(total, g, row, scratch);
  if (!is_last_block(g, 1 + Level, parts, total) || threadIdx.x != 0) return;
  total.start();
  for (unsigned i = 0; i < gridDim.x; ++i) total.merge(reinterpret_cast<const late_total<Op, Level>*>(parts)[i]);
  const num::certified c = total.finish(g.out_type[0], call_of(g));
  if (c.decided) {
    set_total(g, c.value);
    g.status->total_undecided = 0;
    count_elements(counters, Level == 0 ? tier::double_double : tier::exact, 1);
  } else if ((g.levels >> static_cast<unsigned>(Level + 1)) == 0) {
    atomicAdd(counters + undecided_counter, counter{1});
  }
}

template <op_id Op, int Level>
void launch(const row_geometry& g, std::byte* parts, const job& j) {
  if ((g.levels >> static_cast<unsigned>(Level) & 1u) == 0) return;
  launch_kernel<late_total_kernel<Op, Level>>(j, total_blocks, threads, 0, g, parts, j.counters);
}

// f.template operator()<Op>() for the call's operation, which is a loss.
template <class F>
void with_loss(op_id op, F&& f) {
  ops::for_row_operation(op, [&]<class Op>() {
    if constexpr (num::is_loss<device_rule<Op::id>>) f.template operator()<Op::id>();
  });
}

// The weights at targets, exactly; NaN outside the classes.
__global__ void __launch_bounds__(threads) weight_kernel(const __grid_constant__ row_geometry g, std::byte* parts) {
  using sum = num::exact_sum<float, 1>;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(sum)];
  const auto merge = [](sum& a, const sum& b) { a.merge(b); };
  sum part{};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    const std::int64_t t = g.target[row_offset<target_place>(g, row)];
    if (t == g.ignore_index) continue;
    part.add(t < 0 || t >= g.length ? row_nan() : number_at<any_format>(g.x[1], element_offset<1>(g, t), g.type));
  }
  __syncwarp();
  over_block<threads>(part, scratch, merge);
  if (!is_last_block(g, 4, parts, part)) return;
  part = sum{};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += threads) part.merge(reinterpret_cast<const sum*>(parts)[i]);
  __syncwarp();
  over_block<threads>(part, scratch, merge);
  if (threadIdx.x != 0) return;
  g.status->weights = part;
  g.status->total = part.round<double>();
}
constexpr unsigned weight_blocks = 64;

}  // namespace

void take_weight_workspace(std::byte*& parts, carver& c) {
  c.take(parts, weight_blocks, sizeof(num::exact_sum<float, 1>));
}
void run_weights(const row_geometry& g, std::byte* parts, const job& j) {
  launch_kernel<weight_kernel>(j, std::min(weight_blocks, grid_for(j.device, ceil_div(g.rows, threads), 8)), threads, 0,
                               g, parts);
}

void take_total_workspace(std::byte*& parts, const row_geometry& g, carver& c) {
  with_loss(g.op, [&]<op_id Op>() { c.take(parts, total_blocks, sizeof(late_total<Op, 2>)); });
}

void run_total(const row_geometry& g, std::byte* parts, const job& j) {
  launch_kernel<total_kernel>(j, total_blocks, threads, 0, g, parts, j.counters);
  with_loss(g.op, [&]<op_id Op>() {
    launch<Op, 0>(g, parts, j);
    launch<Op, 1>(g, parts, j);
    launch<Op, 2>(g, parts, j);
  });
}

}  // namespace repdl::cuda
