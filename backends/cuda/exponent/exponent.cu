// ldexp and frexp (librepdl/ops/exponents/exponents.hpp): a thread an element.
#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/exponents/exponents.hpp"
#include "librepdl/ops/formats.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

struct exponent_geometry {
  const void* x;
  const void* n;           // ldexp
  std::int32_t* exponent;  // frexp; else null
  void* out;
  std::int64_t count;
  bool is_long;  // n is of i64
  strided_axes<3> axes;
};

template <class T>
__global__ void __launch_bounds__(threads)
    exponent_kernel(const __grid_constant__ exponent_geometry g, counter* counters) {
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::proved, g.count);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < g.count; i += step) {
    std::int64_t at[3];
    g.axes.locate(i, at);
    const T x = static_cast<const T*>(g.x)[at[0]];
    T* const out = static_cast<T*>(g.out) + at[1];
    if (g.exponent != nullptr) {
      const num::taken_apart<T> r = num::take_apart(x);
      *out = r.value;
      g.exponent[at[2]] = r.exponent;
    } else {
      const std::int64_t n = g.is_long ? static_cast<const std::int64_t*>(g.n)[at[2]]
                                       : std::int64_t{static_cast<const std::int32_t*>(g.n)[at[2]]};
      *out = num::scaled_by_power(x, n);
    }
  }
}

}  // namespace

void prepare(const plan::exponent_plan& p, const job& j, dispatch::task& t) {
  exponent_geometry g{};
  g.x = p.x;
  g.n = p.n;
  g.exponent = p.exponent;
  g.out = p.out;
  g.count = p.count;
  g.is_long = p.exponent_type == dtype::i64;
  g.axes.set_shape(p.rank, p.shape);
  g.axes.set_stride(0, p.x_stride);
  g.axes.set_stride(1, p.out_stride);
  g.axes.set_stride(2, p.exponent_stride);
  const unsigned grid = grid_for(j.device, ceil_div(p.count, threads), 32);
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> == p.type) plan_launch<exponent_kernel<T>>(t, j, grid, threads, g, j.counters);
  });
}

}  // namespace repdl::cuda
