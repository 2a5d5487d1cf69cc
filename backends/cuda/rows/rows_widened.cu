// Copies of x in a wider format: of softmax and log_softmax whose results have another format than x (rows_cut.hpp).
#include "backends/cuda/rows/rows_chunks.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = row_threads;

__global__ void __launch_bounds__(threads) widen_kernel(const __grid_constant__ widened_x x) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const bool is_short = x.count >> 31 == 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < x.count; i += step) {
    const std::int64_t at =
        is_short ? x.at.template offset<0>(static_cast<std::uint32_t>(i)) : x.at.template offset<0>(i);
    num::set_number_of(x.to, x.copy, i, num::number_of(x.type, x.from, at));
  }
}

}  // namespace

void run_widening(const widened_x& x, const job& j) {
  if (x.count == 0) return;
  launch_kernel<widen_kernel>(j, grid_for(j.device, ceil_div(x.count, threads), 16), threads, 0, x);
}

}  // namespace repdl::cuda
