// The softmax family: softmax, log_softmax, logsumexp, cross_entropy and their backward operations.
//
// Rows of up to 4096 elements are held in registers by a team of threads (some lanes of a warp, or some warps), longer
// ones in the shared memory of a block as far as it goes: one read, one write. Rows whose neighbours are nearer than
// their own elements (a class axis that is not the last) take a thread each, which reads the row as often as it needs
// it. Longer rows are cut into chunks (rows_long.cu). Elements that binary64 leaves open are marked in bitmaps for
// rows_repair.cu and rows_exact.cu. The launches do not depend on the data.
#include <algorithm>
#include <cstdint>

#include "backends/cuda/rows/rows_kernels.cuh"

namespace repdl::cuda {
namespace {

enum class manner { registers, blocks, columns, chunks };

struct division {
  row_geometry g;
  manner how;
  int per_thread;            // registers: elements, 8 or 16
  std::size_t shared_bytes;  // blocks
};

division divide(const plan::row_plan& p, const properties& device, tier first, int bits) {
  division d{};
  row_geometry& g = d.g;
  g.op = p.op;
  for (int k = 0; k < 2; ++k) g.in[k] = p.in[k].data;
  if (!cuda_is_tracked(p.op)) g.in[1] = nullptr;
  g.out = p.out;
  g.row_g = p.row_g;
  g.target = p.target;
  g.rows = p.rows;
  g.length = p.length;
  g.kept.set_shape(p.kept_rank, p.kept_shape);
  g.reduced.set_shape(p.reduced_rank, p.reduced_shape);
  for (int k = 0; k < 2; ++k) {
    g.kept.set_stride(k, p.in[k].kept_stride);
    g.reduced.set_stride(k, p.in[k].reduced_stride);
  }
  g.kept.set_stride(2, p.out_kept_stride);
  g.reduced.set_stride(2, p.out_reduced_stride);
  g.kept.set_stride(3, p.row_g_stride);
  g.kept.set_stride(4, p.target_stride);
  g.ignore_index = p.ignore_index;
  g.is_mean = cuda_is_loss(p.op) && p.reduction == repdl::reduction::mean;
  g.is_total = p.op == op_id::cross_entropy && p.reduction != repdl::reduction::none;
  g.skip_dd = first > tier::double_double;
  g.last_tier_bits = bits;

  const auto size = [](std::int64_t s) { return s < 0 ? -s : s; };
  const std::int64_t along = size(g.reduced.stride[0][0]);
  const std::int64_t across = p.kept_rank == 0 ? INT64_MAX : size(g.kept.stride[0][0]);
  const std::int64_t floats = p.length * (cuda_is_tracked(p.op) ? 2 : 1);
  d.shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  d.how = p.length <= 16 * threads                                                     ? manner::registers
          : floats <= shared_limit(device) / 4 && p.rows >= device.multiprocessors / 2 ? manner::blocks
                                                                                       : manner::chunks;
  if (across < along && p.rows >= std::int64_t{device.multiprocessors} * 32) d.how = manner::columns;
  g.team = 1;
  d.per_thread = p.length <= 256 ? 8 : 16;
  while (g.team < threads && std::int64_t{g.team} * d.per_thread < p.length) g.team *= 2;
  g.chunks = ceil_div(std::max<std::int64_t>(p.length, 1), long_chunk);
  const auto aligned = [](const void* q) { return reinterpret_cast<std::uintptr_t>(q) % 16 == 0; };
  g.packed = p.reduced_rank == 1 && p.length % 4 == 0 && aligned(g.in[0]) && g.reduced.stride[0][0] == 1;
  for (int i = 0; i < p.kept_rank; ++i) g.packed = g.packed && g.kept.stride[0][i] % 4 == 0;
  if (g.in[1] != nullptr) {
    g.packed = g.packed && aligned(g.in[1]) && g.reduced.stride[1][0] == 1;
    for (int i = 0; i < p.kept_rank; ++i) g.packed = g.packed && g.kept.stride[1][i] % 4 == 0;
  }
  if (cuda_per_element(p.op)) {
    g.packed = g.packed && aligned(g.out) && g.reduced.stride[2][0] == 1;
    for (int i = 0; i < p.kept_rank; ++i) g.packed = g.packed && g.kept.stride[2][i] % 4 == 0;
  }

  // Additions on a path: a thread's own (32 in a chunk), the team's.
  const std::int64_t own = d.how == manner::columns ? p.length / 4 + 4 : d.how == manner::registers ? 6 : 36;
  const bool gradient = p.op == op_id::logsumexp_backward || p.op == op_id::cross_entropy_backward;
  g.bounds = num::bounds_of_rows(p.length, own + 5 + warps, gradient);
  if (first > tier::binary64) g.bounds = {num::infinity, num::infinity};
  g.tracked_height = (d.how == manner::columns ? p.length : 128) + 5 + warps + ceil_div(g.chunks, 32) + 16;
  return d;
}

class row_work final : public planned {
 public:
  row_work(const plan::row_plan& p, const job& given)
      : planned(given), d_(divide(p, j.device, j.first_tier, j.last_tier_bits)) {
    row_geometry& g = d_.g;
    // Up to here, `zeroed_` bytes, the workspace is set to zero before every call.
    space.take(g.counted, 1);
    space.take(g.total_open, 1);
    const std::int64_t row_words = g.is_total ? 0 : ceil_div(g.rows, 32);
    for (open_list* l : {&g.open, &g.left}) {
      space.take(l->count, 1);
      space.take(l->bits, row_words);
    }
    space.take(g.open_elements, cuda_per_element(g.op) ? ceil_div(g.rows * g.length, 32) : 0);
    zeroed_ = space.used().value();
    for (open_list* l : {&g.open, &g.left}) space.take(l->rows, g.is_total ? 0 : g.rows);
    if (g.is_total) space.take(g.losses, g.rows);
    space.take_in_turn(
        [&] {
          if (d_.how == manner::chunks) take_workspace(long_, g, space);
        },
        [&] {
          if (g.is_total) {
            take_workspace(total_, space);
          } else {
            take_workspace(repair_, g, space);
          }
        },
        [&] { take_exact_workspace(exact_, g, space); });
  }

 private:
  template <op_id Op>
  void launch_fast() {
    const row_geometry& g = d_.g;
    if (g.rows == 0) return;
    if (d_.how == manner::chunks) {
      run_long_rows(g, long_, j);
    } else if (d_.how == manner::columns) {
      const unsigned grid = grid_for(j.device, ceil_div(g.rows, threads), 16);
      launch_kernel<column_kernel<Op>>(j, grid, threads, 0, g, j.counters);
    } else if (d_.how == manner::blocks) {
      launch_kernel<block_kernel<Op>>(j, grid_for(j.device, g.rows, 8), block_threads, d_.shared_bytes, g, j.counters);
    } else {
      const unsigned grid = grid_for(j.device, ceil_div(g.rows, threads / g.team), 24);
      if (d_.per_thread == 8) {
        launch_kernel<row_kernel<Op, 8>>(j, grid, threads, 0, g, j.counters);
      } else {
        launch_kernel<row_kernel<Op, 16>>(j, grid, threads, 0, g, j.counters);
      }
    }
  }

  void enqueue() override {
    const row_geometry& g = d_.g;
    check(cudaMemsetAsync(g.counted, 0, zeroed_, j.stream), "rows", "cudaMemsetAsync");
    if (cuda_is_loss(g.op) && g.rows != 0) {
      launch_kernel<count_targets>(j, grid_for(j.device, ceil_div(g.rows, threads), 8), threads, 0, g);
    }
    ops::for_operation<ops::family::softmax>(g.op, [&]<class Op>() { launch_fast<Op::id>(); });
    if (g.is_total) {
      run_total(g, total_, j);
    } else {
      repair_rows(g, repair_, j);
    }
    decide_rows_exactly(g, exact_, j);
  }

  division d_;
  std::size_t zeroed_ = 0;
  long_work long_{};
  repair_work repair_{};
  total_part* total_ = nullptr;
  std::byte* exact_ = nullptr;
};

}  // namespace

void prepare(const plan::row_plan& p, const job& j, dispatch::task& t) { t.emplace<row_work>(p, j); }

}  // namespace repdl::cuda
