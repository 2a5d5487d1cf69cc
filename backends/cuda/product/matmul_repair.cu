// The repair of the outputs that a product by residues left open, if they are few: from a list.
#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul_repair.cuh"
#include "backends/cuda/product/residues.hpp"

namespace repdl::cuda {
namespace {

constexpr int block_warps = 8;
constexpr int blocks_at_once = 4;  // of a multiprocessor

// Warps that share an output, where few outputs of many terms are open.
__device__ int sharing_of(counter count, std::int64_t k) {
  constexpr std::int64_t least_terms = 512;  // of a warp
  int sharing = 1;
  while (sharing < block_warps && count * 2 * sharing <= gridDim.x * block_warps && k >= least_terms * 2 * sharing) {
    sharing *= 2;
  }
  return sharing;
}

template <class T, bool Scaled>
__global__ void __launch_bounds__(32 * block_warps, blocks_at_once)
    repair_kernel(const __grid_constant__ product p, counter* counters) {
  wait_for_former();
  if (p.choice.wants_binary64()) return;
  __shared__ dot_sum sum_of[block_warps];
  const counter count = *p.choice.open;
  const int sharing = sharing_of(count, p.k);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int part = warp % sharing;
  const unsigned outputs = static_cast<unsigned>(block_warps / sharing);  // of a block at a time
  std::int64_t near = 0;
  std::int64_t exact = 0;
  for (counter first = blockIdx.x * outputs; first < count; first += gridDim.x * outputs) {
    const counter i = first + static_cast<unsigned>(warp / sharing);
    const bool is_one = i < count;
    const auto [batch_row, col] = p.list[is_one ? i : first];
    const std::uint32_t batch = p.batches == 1 ? 0 : batch_row / static_cast<std::uint32_t>(p.m);
    const std::uint32_t row = batch_row - batch * static_cast<std::uint32_t>(p.m);
    const std::int64_t a = p.source_a.matrix_of(batch) * p.m + row;
    const std::int64_t b = p.source_b.matrix_of(batch) * p.n + col;
    const open_output<T, Scaled> open(p, batch_pointers<T>(p, batch), batch, row, col,
                                      p.lines_a.norm(a) * p.lines_b.norm(b), p.lines_a.lsb(a) + p.lines_b.lsb(b));
    tier by = tier::exact;
    if (p.first_tier > tier::double_double) {
      if (is_one && part == 0) by = open.decide_exactly();
    } else {
      dot_sum sum = open.add_up(part, sharing);
      if (sharing > 1) {
        if (lane_of_thread() == 0) sum_of[warp] = sum;
        __syncthreads();
        for (int other = 1; other < sharing && part == 0; ++other) sum.merge(sum_of[warp + other]);
        __syncthreads();
      }
      if (is_one && part == 0) by = open.decide(sum);
    }
    if (is_one && part == 0) ++(by == tier::exact ? exact : near);
  }
  if (lane_of_thread() != 0) return;
  if (blockIdx.x == 0 && warp == 0) {
    count_elements(counters, tier::binary64, p.batches * p.m * p.n - static_cast<std::int64_t>(count));
  }
  count_elements(counters, tier::double_double, near);
  count_elements(counters, tier::exact, exact);
}

}  // namespace

void launch_repair(const product& p, const job& j) {
  with_kernels(p, [&]<class T, bool Scaled>() {
    launch_next<repair_kernel<T, Scaled>>(j, std::int64_t{j.device.multiprocessors} * blocks_at_once, 32 * block_warps,
                                          0, p, j.counters);
  });
}

}  // namespace repdl::cuda
