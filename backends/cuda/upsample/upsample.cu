// Nearest neighbours: a thread an output element (ops/upsample.hpp). Sums that binary64 does not decide are added up in integers at
// once, by the same thread.
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/upsample.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

// Of an output element: its row and column, and where its plane begins in both tensors.
template <class Index>
struct place {
  Index y, x;
  std::int64_t in, out;

  __device__ place(const plan::upsample_plan& p, Index at) {
    const Index width = static_cast<Index>(p.backward ? p.x.image : p.x.size);
    const Index height = static_cast<Index>(p.backward ? p.y.image : p.y.size);
    const Index channels = static_cast<Index>(p.c);
    x = at % width;
    at /= width;
    y = at % height;
    at /= height;
    const auto c = static_cast<std::int64_t>(at % channels), n = static_cast<std::int64_t>(at / channels);
    in = n * p.in_stride[0] + c * p.in_stride[1];
    out = n * p.out_stride[0] + c * p.out_stride[1] + static_cast<std::int64_t>(y) * p.out_stride[2] +
          static_cast<std::int64_t>(x) * p.out_stride[3];
  }
};

// Bits are kept: T is an unsigned integer.
template <class T, class Index>
__global__ void __launch_bounds__(threads)
    forward_kernel(const __grid_constant__ plan::upsample_plan p, std::int64_t elements, counter* counters) {
  const auto y = num::nearest_axis<Index>::of(p.y), x = num::nearest_axis<Index>::of(p.x);
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::proved, elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < elements; at += step) {
    const place<Index> to(p, static_cast<Index>(at));
    static_cast<T*>(p.out)[to.out] =
        static_cast<const T*>(p.in)[to.in + static_cast<std::int64_t>(y.source(to.y)) * p.in_stride[2] +
                                    static_cast<std::int64_t>(x.source(to.x)) * p.in_stride[3]];
  }
}

// Rare, so that its registers are not everybody's.
template <class T, class Index>
__device__ __noinline__ T add_exactly(const T* plane, std::int64_t row, std::int64_t column, Index y0, Index y1,
                                      Index x0, Index x1) {
  return num::exact_pixel_sum(plane, row, column, y0, y1, x0, x1);
}

template <class T, class Index>
__global__ void __launch_bounds__(threads) backward_kernel(const __grid_constant__ plan::upsample_plan p,
                                                           std::int64_t elements, double force, counter* counters) {
  const auto y = num::nearest_axis<Index>::of(p.y), x = num::nearest_axis<Index>::of(p.x);
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::binary64, elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  std::int64_t later = 0;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < elements; at += step) {
    const place<Index> to(p, static_cast<Index>(at));
    const T* const plane = static_cast<const T*>(p.in) + to.in;
    const Index y0 = y.first(to.y), y1 = y.first(to.y + 1), x0 = x.first(to.x), x1 = x.first(to.x + 1);
    auto r = num::pixel_sum(plane, p.in_stride[2], p.in_stride[3], y0, y1, x0, x1, force);
    if (!r.decided) {
      r.value = add_exactly(plane, p.in_stride[2], p.in_stride[3], y0, y1, x0, x1);
      ++later;
    }
    static_cast<T*>(p.out)[to.out] = r.value;
  }
  if (later != 0) {
    count_elements(counters, tier::exact, later);
    count_elements(counters, tier::binary64, -later);
  }
}

// Whether nearest_axis<std::uint32_t> will do.
bool is_small(const plan::nearest_axis& x) {
  constexpr std::uint64_t most = std::uint64_t{1} << 32;
  return x.a < most && x.b < most && static_cast<std::uint64_t>(x.size) < most / 4 &&
         static_cast<std::uint64_t>(x.image) * x.b + x.a < most;
}

template <class Index>
void prepare_with(const plan::upsample_plan& p, std::int64_t elements, const job& j, dispatch::task& t) {
  const unsigned grid = grid_for(j.device, ceil_div(elements, threads), 32);
  if (p.backward) {
    const double force = j.first_tier > tier::double_double ? num::infinity : 0.0;
    ops::for_each_format<ops::NARROW>([&]<class T>() {
      if (dtype_of<T> != p.type) return;
      plan_launch<backward_kernel<T, Index>>(t, j, grid, threads, p, elements, force, j.counters);
    });
  } else if (p.type == dtype::f32) {
    plan_launch<forward_kernel<std::uint32_t, Index>>(t, j, grid, threads, p, elements, j.counters);
  } else {
    plan_launch<forward_kernel<std::uint16_t, Index>>(t, j, grid, threads, p, elements, j.counters);
  }
}

}  // namespace

void prepare(const plan::upsample_plan& p, const job& j, dispatch::task& t) {
  const std::int64_t elements = p.n * p.c * p.height() * p.width();
  if (is_small(p.y) && is_small(p.x) && elements < std::int64_t{1} << 31 && !j.device.choice.wide) {
    prepare_with<std::uint32_t>(p, elements, j, t);
  } else {
    prepare_with<std::uint64_t>(p, elements, j, t);
  }
}

}  // namespace repdl::cuda
