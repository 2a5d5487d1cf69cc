// Numbers at equal distances, a thread an element (ops/random/sequence.hpp).
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/random/sequence.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

// Rare, so that its registers are not everybody's.
template <class T>
__device__ __noinline__ T exact_element(double a, double b, std::int64_t n, bool between, std::int64_t i) {
  return num::sequence{a, b, n, between}.exact<T>(i);
}

template <class T>
__global__ void __launch_bounds__(threads)
    sequence_kernel(const plan::sequence_plan p, double force, counter* counters) {
  const num::sequence s{p.first, p.last, p.parts, p.between};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  int later = 0;
  for (std::int64_t i = begin; i < p.count; i += step) {
    const auto ends = s.template first<T>(i, force);
    T value = ends.below;
    if (num::to_bits(ends.below) != num::to_bits(ends.above)) {
      value = exact_element<T>(p.first, p.last, p.parts, p.between, i);
      ++later;
    }
    static_cast<T*>(p.out)[i * p.stride] = value;
  }
  if (begin == 0) count_elements(counters, tier::double_double, p.count);
  later = __reduce_add_sync(full_warp, later);
  if (lane_of_thread() == 0 && later != 0) {
    count_elements(counters, tier::exact, later);
    count_elements(counters, tier::double_double, -static_cast<std::int64_t>(later));
  }
}

}  // namespace

void prepare(const plan::sequence_plan& p, const job& j, dispatch::task& t) {
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.out_type) return;
    plan_launch<sequence_kernel<T>>(t, j, grid_for(j.device, ceil_div(p.count, threads), 32), threads, p,
                                    j.first_tier == tier::exact ? num::infinity : 0.0, j.counters);
  });
}

}  // namespace repdl::cuda
