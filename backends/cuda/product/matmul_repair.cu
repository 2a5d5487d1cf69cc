// The repair of the outputs that a product by residues left open, if they are few: from a list.
#include "backends/cuda/product/launch_next.cuh"
#include "backends/cuda/product/matmul_repair.cuh"
#include "backends/cuda/product/residues.hpp"

namespace repdl::cuda {
namespace {

template <class T, bool Scaled>
__global__ void __launch_bounds__(256, 4) repair_kernel(const __grid_constant__ product p, counter* counters) {
  wait_for_former();
  if (p.choice.wants_binary64()) return;
  const counter count = *p.choice.open;
  const unsigned warps = gridDim.x * (blockDim.x / 32);
  const unsigned warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  std::int64_t near = 0;
  std::int64_t exact = 0;
  for (counter i = warp; i < count; i += warps) {
    const std::int64_t output = p.list[i];
    const std::int64_t batch_row = output / p.n;
    const std::int64_t batch = batch_row / p.m;
    const std::int64_t row = batch_row - batch * p.m;
    const std::int64_t col = output - batch_row * p.n;
    const std::int64_t a = p.source_a.matrix_of(batch) * p.m + row;
    const std::int64_t b = p.source_b.matrix_of(batch) * p.n + col;
    const tier by =
        repair_output<T, Scaled>(p, batch_pointers<T>(p, batch), p.first_tier, batch, row, col,
                                 p.lines_a.norm(a) * p.lines_b.norm(b), p.lines_a.lsb(a) + p.lines_b.lsb(b));
    ++(by == tier::exact ? exact : near);
  }
  if (lane_of_thread() != 0) return;
  if (warp == 0) count_elements(counters, tier::binary64, p.batches * p.m * p.n - static_cast<std::int64_t>(count));
  count_elements(counters, tier::double_double, near);
  count_elements(counters, tier::exact, exact);
}

}  // namespace

void launch_repair(const product& p, const job& j) {
  with_kernels(p, [&]<class T, bool Scaled>() {
    launch_next<repair_kernel<T, Scaled>>(j, std::int64_t{j.device.multiprocessors} * 4, 256, 0, p, j.counters);
  });
}

}  // namespace repdl::cuda
