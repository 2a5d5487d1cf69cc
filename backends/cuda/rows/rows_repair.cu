// The double-double tier of the softmax family (librepdl/ops/rows.hpp): the listed rows are read again, a block for
// each 8192 of their elements.
#include "backends/cuda/rows/rows.cuh"
#include "librepdl/ops/rows_wide.hpp"

namespace repdl::cuda {

// Of cross_entropy's total, over some rows. binary64: tracked; double-double: hi + lo with its own error in slack.
struct total_part {
  double hi;
  double lo;
  double error;
  double slack;
};

namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

// The block's sum, the same in all threads. Every thread takes part.
__device__ part_sums over_block(part_sums s, bool tracked) {
  __shared__ part_sums of_warp[warps];
  s.merge_lanes(tracked);
  __syncthreads();
  if (lane_of_thread() == 0) of_warp[threadIdx.x / 32] = s;
  __syncthreads();
  s = of_warp[0];
  for (int i = 1; i < warps; ++i) s.merge(of_warp[i], tracked);
  return s;
}

__device__ __noinline__ num::dd wide_weight(float x, float max) { return num::dd_weight(x, max); }

// The greatest key of elements [begin, end), in all threads of the block.
__device__ std::int32_t block_key(const row_geometry& g, const row_site& at, std::int64_t begin, std::int64_t end) {
  __shared__ std::int32_t of_warp[warps];
  std::int32_t key = num::order_key(-row_inf, num::order_max);
  for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
    key = max(key, num::order_key(at.x(g, j), num::order_max));
  }
  key = __reduce_max_sync(full_warp, key);
  __syncthreads();
  if (lane_of_thread() == 0) of_warp[threadIdx.x / 32] = key;
  __syncthreads();
  for (int i = 0; i < warps; ++i) key = max(key, of_warp[i]);
  return key;
}

__device__ part_sums block_sums(const row_geometry& g, const row_site& at, float max, std::int64_t begin,
                                std::int64_t end, bool tracked) {
  part_sums s{0, 0, 0};
  if (tracked) {
    num::tracked_sum<double> t;
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      t.add(g.op == op_id::softmax_backward ? static_cast<double>(at.x(g, j)) * static_cast<double>(at.y(g, j))
                                            : static_cast<double>(at.x(g, j)));
    }
    s = {t.hi, t.lo, t.error};
  } else {
    num::dd rest = {0, 0};
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      const float x = at.x(g, j);
      if (x == max) s.third += 1.0;
      if (x < max && x != -row_inf) rest = num::add(rest, wide_weight(x, max));
    }
    s.hi = rest.hi;
    s.lo = rest.lo;
  }
  return over_block(s, tracked);
}

__global__ void __launch_bounds__(threads) wide_top_kernel(const __grid_constant__ row_geometry g, repair_work work) {
  const std::int64_t items = static_cast<std::int64_t>(*g.open.count) * g.chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t index = item / g.chunks;
    const std::int64_t begin = (item - index * g.chunks) * long_chunk;
    const std::int32_t key = block_key(g, row_site(g, g.open.rows[index]), begin, min(begin + long_chunk, g.length));
    if (threadIdx.x == 0) atomicMax(work.keys + index, static_cast<std::uint32_t>(key) ^ 0x80000000u);
  }
}

__global__ void __launch_bounds__(threads) wide_sum_kernel(const __grid_constant__ row_geometry g, repair_work work) {
  const std::int64_t items = static_cast<std::int64_t>(*g.open.count) * g.chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t index = item / g.chunks;
    const std::int64_t begin = (item - index * g.chunks) * long_chunk;
    const float max = num::order_value(static_cast<std::int32_t>(work.keys[index] ^ 0x80000000u), num::order_max);
    const part_sums s = block_sums(g, row_site(g, g.open.rows[index]), max, begin, min(begin + long_chunk, g.length),
                                   cuda_is_tracked(g.op));
    if (threadIdx.x == 0) work.chunks[item] = s;
  }
}

// What the elements of one row are decided from.
struct wide_numbers {
  num::dd_row row;
  num::tracked_sum<double> sum;
  float g;
  double n;
  std::int64_t target;
};

__device__ num::certified settle(const row_geometry& g, const wide_numbers& r, float x, float y, std::int64_t j) {
  switch (g.op) {
    case op_id::log_softmax:
      return r.row.gap(x, r.row.max, 1.0);
    case op_id::softmax_backward:
      return num::dd_softmax_gradient(x, y, r.sum, r.sum.bound(g.tracked_height));
    case op_id::log_softmax_backward:
      if (y == row_inf) return {0.0f, false};  // open only for the sign of the sum: integers
      return num::dd_log_softmax_gradient(x, y, r.sum, r.sum.bound(g.tracked_height));
    default:
      return j == r.target ? r.row.target_weight(x, r.g, r.n) : r.row.weight(x, r.g, r.n);
  }
}

// An operation that settle has no case for is an error of the compiler.
[[maybe_unused]] constexpr void check_cases(op_id op) {
  ops::for_operation<ops::family::softmax>(op, [&]<class Op>() {
    constexpr bool weight =
        ops::is_one_of<Op, op_id::softmax, op_id::logsumexp_backward, op_id::cross_entropy_backward>;
    constexpr bool other = ops::is_one_of<Op, op_id::log_softmax, op_id::softmax_backward, op_id::log_softmax_backward>;
    static_assert(weight || other || !cuda_per_element(Op::id) || ops::has_no_case<Op>, "elements that nobody settles");
  });
}

__global__ void __launch_bounds__(threads)
    settle_kernel(const __grid_constant__ row_geometry g, repair_work work, counter* counters) {
  __shared__ wide_numbers shared;
  const std::int64_t items = static_cast<std::int64_t>(*g.open.count) * g.chunks;
  const bool tracked = cuda_is_tracked(g.op);
  const bool elements = cuda_per_element(g.op);
  int decided = 0;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t index = item / g.chunks;
    const std::int64_t row = g.open.rows[index];
    const std::int64_t begin = (item - index * g.chunks) * long_chunk;
    const std::int64_t end = min(begin + long_chunk, g.length);
    if (g.skip_dd) {
      if (threadIdx.x == 0) g.left.add(row);
      continue;
    }
    if (!elements && begin != 0) continue;
    const row_site at(g, row);
    part_sums s{0, 0, 0};
    float max = 0;
    if (g.chunks == 1) {
      if (!tracked) max = num::order_value(block_key(g, at, begin, end), num::order_max);
      s = block_sums(g, at, max, begin, end, tracked);
    } else {
      if (!tracked) max = num::order_value(static_cast<std::int32_t>(work.keys[index] ^ 0x80000000u), num::order_max);
      for (std::int64_t c = threadIdx.x; c < g.chunks; c += threads)
        s.merge(work.chunks[index * g.chunks + c], tracked);
      s = over_block(s, tracked);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      shared.g = 1;
      shared.n = 1;
      shared.target = -1;
      if (g.op == op_id::logsumexp_backward || g.op == op_id::cross_entropy_backward) {
        shared.g = g.row_g[row_offset<3>(g.kept, row)];
      }
      if (cuda_is_loss(g.op)) shared.target = g.target[row_offset<4>(g.kept, row)];
      if (g.op == op_id::cross_entropy_backward) shared.n = divisor_of(g);
      if (tracked) {
        shared.sum = {s.hi, s.lo, s.third};
      } else {
        shared.row.finish(max, s.third, num::dd{s.hi, s.lo}, 128 + g.chunks);
      }
    }
    __syncthreads();
    if (!elements) {
      if (threadIdx.x == 0) {
        const float x = g.op == op_id::cross_entropy ? at.x(g, shared.target) : -0.0f;
        const num::certified c = shared.row.gap(max, x, -1.0);
        if (c.decided) {
          *at.out = c.value;
          ++decided;
        } else {
          g.left.add(row);
        }
      }
      continue;
    }
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      const std::int64_t bit = row * g.length + j;
      const std::uint32_t mask = 1u << static_cast<unsigned>(bit & 31);
      if ((g.open_elements[bit >> 5] & mask) == 0) continue;
      const num::certified c = settle(g, shared, at.x(g, j), tracked ? at.y(g, j) : 0.0f, j);
      if (c.decided) {
        at.to(g, j) = c.value;
        atomicAnd(g.open_elements + (bit >> 5), ~mask);
        ++decided;
      } else {
        g.left.add(row);
      }
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier::double_double, decided);
}

// ------------------------------------------------------------------------------------- cross_entropy, mean and sum

constexpr int total_blocks = 264;

// One block's total over its threads; the result in thread 0.
__device__ total_part over_block(total_part p, bool wide) {
  __shared__ total_part of_warp[warps];
  const auto join = [wide](total_part& a, const total_part& b) {
    part_sums s{a.hi, a.lo, a.error};
    s.merge({b.hi, b.lo, b.error}, !wide);
    a = {s.hi, s.lo, s.third, a.slack + b.slack};
  };
  for (int distance = 16; distance >= 1; distance /= 2) {
    const total_part o = {__shfl_xor_sync(full_warp, p.hi, distance), __shfl_xor_sync(full_warp, p.lo, distance),
                          __shfl_xor_sync(full_warp, p.error, distance), __shfl_xor_sync(full_warp, p.slack, distance)};
    join(p, o);
  }
  __syncthreads();
  if (lane_of_thread() == 0) of_warp[threadIdx.x / 32] = p;
  __syncthreads();
  if (threadIdx.x == 0) {
    p = of_warp[0];
    for (int i = 1; i < warps; ++i) join(p, of_warp[i]);
  }
  return p;
}

__global__ void __launch_bounds__(threads) total_kernel(const __grid_constant__ row_geometry g, total_part* parts) {
  num::tracked_sum<double> sum;
  double slack = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    const loss_row r = g.losses[row];
    sum.add(num::dd{r.gap, r.low});
    sum.add(r.r);
    slack += r.slack;
  }
  const total_part p = over_block({sum.hi, sum.lo, sum.error, slack}, false);
  if (threadIdx.x == 0) parts[blockIdx.x] = p;
}

__device__ num::certified round_total(num::dd s, double e, std::int64_t n) {
  return n == 1 ? num::certify(s, e) : num::certify_mean(s, e, n);
}

__global__ void __launch_bounds__(threads)
    total_finish_kernel(const __grid_constant__ row_geometry g, const total_part* parts, int count, bool wide,
                        counter* counters) {
  if (wide && *g.total_open == 0) return;
  total_part p{0, 0, 0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
    const total_part o = parts[i];
    part_sums s{p.hi, p.lo, p.error};
    s.merge({o.hi, o.lo, o.error}, !wide);
    p = {s.hi, s.lo, s.third, p.slack + o.slack};
  }
  p = over_block(p, wide);
  if (threadIdx.x != 0) return;
  const std::int64_t counted = static_cast<std::int64_t>(*g.counted);
  if (!wide && (counted == 0 || !num::is_finite(p.hi))) {
    *g.out = counted == 0 ? (g.is_mean ? row_nan() : 0.0f) : num::non_finite_result(p.hi);
    count_elements(counters, tier::proved, 1);
    return;
  }
  num::certified c{0.0f, false};
  const double terms = static_cast<double>(g.rows);
  if (!wide && g.bounds.weight < 1) {
    const num::tracked_sum<double> sum{p.hi, p.lo, p.error};
    c = round_total(sum.total(), (p.slack + sum.bound(2 * g.rows + 4096)) * (1 + 0x1p-20), g.is_mean ? counted : 1);
  }
  if (wide && !g.skip_dd) {
    c = round_total(num::dd{p.hi, p.lo}, (p.slack + 0x1p-103 * (2 * terms + 64) * p.hi) * (1 + 0x1p-20),
                    g.is_mean ? counted : 1);
  }
  if (c.decided) {
    *g.out = c.value;
    count_elements(counters, wide ? tier::double_double : tier::binary64, 1);
  }
  *g.total_open = c.decided ? 0 : 1;
}

// All rows in double-double, a block for each.
__global__ void __launch_bounds__(threads)
    wide_total_kernel(const __grid_constant__ row_geometry g, total_part* parts) {
  if (*g.total_open == 0 || g.skip_dd) return;
  num::dd total = {0, 0};
  double slack = 0;
  for (std::int64_t row = blockIdx.x; row < g.rows; row += gridDim.x) {
    const std::int64_t target = g.target[row_offset<4>(g.kept, row)];
    if (target == g.ignore_index) continue;
    const row_site at(g, row);
    const float max = num::order_value(block_key(g, at, 0, g.length), num::order_max);
    const part_sums s = block_sums(g, at, max, 0, g.length, false);
    if (threadIdx.x != 0) continue;
    total = num::add(total, num::two_sum(static_cast<double>(max), -static_cast<double>(at.x(g, target))));
    if (s.third < 2 && s.hi == 0) continue;
    num::dd_row r;
    r.finish(max, s.third, num::dd{s.hi, s.lo}, 128 + g.length / threads);
    total = num::add(total, r.log);
    slack += r.shallow ? 4 * r.error * r.log.hi : 0x1p-600;
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = {total.hi, total.lo, 0, slack};
}

}  // namespace

void take_workspace(repair_work& w, const row_geometry& g, carver& c) {
  if (g.chunks == 1) return;
  c.take(w.keys, g.rows);
  c.take(w.chunks, g.rows, g.chunks);
}

void repair_rows(const row_geometry& g, const repair_work& w, const job& j) {
  if (g.rows == 0) return;
  const unsigned grid = grid_for(j.device, g.rows * g.chunks, 4);
  if (g.chunks > 1 && !g.skip_dd) {
    if (!cuda_is_tracked(g.op)) {
      check(cudaMemsetAsync(w.keys, 0, static_cast<std::size_t>(g.rows) * 4, j.stream), "rows", "cudaMemsetAsync");
      launch_kernel<wide_top_kernel>(j, grid, threads, 0, g, w);
    }
    launch_kernel<wide_sum_kernel>(j, grid, threads, 0, g, w);
  }
  launch_kernel<settle_kernel>(j, grid, threads, 0, g, w, j.counters);
}

void take_workspace(total_part*& parts, carver& c) { c.take(parts, total_blocks); }

void run_total(const row_geometry& g, total_part* parts, const job& j) {
  launch_kernel<total_kernel>(j, total_blocks, threads, 0, g, parts);
  launch_kernel<total_finish_kernel>(j, 1, threads, 0, g, parts, total_blocks, false, j.counters);
  launch_kernel<wide_total_kernel>(j, total_blocks, threads, 0, g, parts);
  launch_kernel<total_finish_kernel>(j, 1, threads, 0, g, parts, total_blocks, true, j.counters);
}

}  // namespace repdl::cuda
