// Nearest neighbours: a thread an output element (ops/sums/upsample.hpp). Sums that binary64 does not decide are added up in
// integers at once, by the same thread.
#include "backends/cuda/core/divider.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/sums/upsample.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

// A plan and how its threads divide: 32 bits and divider, or 64 bits.
template <class Index, class Division>
struct geometry {
  using index = Index;
  num::nearest_axis<Index, Division> y, x;
  Division width, height, channels;  // of the output
  std::int64_t elements;
  const void* in;
  void* out;
  std::int64_t in_stride[4], out_stride[4];

  explicit geometry(const plan::upsample_plan& p)
      : y(p.y, most),
        x(p.x, most),
        width(positive(p.width())),
        height(positive(p.height())),
        channels(positive(p.c)),
        elements(p.n * p.c * p.height() * p.width()),
        in(p.in),
        out(p.out) {
    for (int i = 0; i < 4; ++i) in_stride[i] = p.in_stride[i], out_stride[i] = p.out_stride[i];
  }

  // Of an output element: its row and column, and where its plane begins in `in`, and it itself in `out`.
  struct place {
    Index y, x;
    std::int64_t in, out;
  };
  __device__ place locate(Index at) const {
    place to;
    to.x = width.split(at);
    to.y = height.split(at);
    const auto c = static_cast<std::int64_t>(channels.split(at)), n = static_cast<std::int64_t>(at);
    to.in = n * in_stride[0] + c * in_stride[1];
    to.out = n * out_stride[0] + c * out_stride[1] + static_cast<std::int64_t>(to.y) * out_stride[2] +
             static_cast<std::int64_t>(to.x) * out_stride[3];
    return to;
  }

 private:
  static constexpr std::uint64_t most = sizeof(Index) == 4 ? INT32_MAX : ~std::uint64_t{0};
  static std::int64_t positive(std::int64_t n) { return n > 0 ? n : 1; }
};
using small_geometry = geometry<std::int32_t, divider>;
using wide_geometry = geometry<std::uint64_t, num::plain_division>;

// Bits are kept: T is an unsigned integer.
template <class T, class Geometry>
__global__ void __launch_bounds__(threads) forward_kernel(const __grid_constant__ Geometry g, counter* counters) {
  using index = typename Geometry::index;
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, tier::proved, g.elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < g.elements; at += step) {
    const auto to = g.locate(static_cast<index>(at));
    static_cast<T*>(g.out)[to.out] =
        static_cast<const T*>(g.in)[to.in + static_cast<std::int64_t>(g.y.source(to.y)) * g.in_stride[2] +
                                    static_cast<std::int64_t>(g.x.source(to.x)) * g.in_stride[3]];
  }
}

// Rare, so that its registers are not everybody's.
template <class T, class Index>
__device__ __noinline__ T add_exactly(const T* plane, std::int64_t row, std::int64_t column, Index y0, Index y1,
                                      Index x0, Index x1) {
  return num::exact_pixel_sum(plane, row, column, y0, y1, x0, x1);
}

template <class T, class Geometry>
__global__ void __launch_bounds__(threads)
    backward_kernel(const __grid_constant__ Geometry g, double force, counter* counters) {
  using index = typename Geometry::index;
  constexpr tier first = std::is_same_v<T, double> ? tier::double_double : tier::binary64;
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, first, g.elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  std::int64_t later = 0;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < g.elements; at += step) {
    const auto to = g.locate(static_cast<index>(at));
    const T* const plane = static_cast<const T*>(g.in) + to.in;
    const index y0 = g.y.first(to.y), y1 = g.y.first(to.y + 1), x0 = g.x.first(to.x), x1 = g.x.first(to.x + 1);
    auto r = num::pixel_sum(plane, g.in_stride[2], g.in_stride[3], y0, y1, x0, x1, force);
    if (!r.decided) {
      r.value = add_exactly(plane, g.in_stride[2], g.in_stride[3], y0, y1, x0, x1);
      ++later;
    }
    static_cast<T*>(g.out)[to.out] = r.value;
  }
  if (later != 0) {
    count_elements(counters, tier::exact, later);
    count_elements(counters, first, -later);
  }
}

// Whether 31 bits hold every number of an axis that is divided.
bool is_small(const plan::nearest_axis& x) {
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  return x.a < most && x.b < most && static_cast<std::uint64_t>(x.size) < most / 4 &&
         static_cast<std::uint64_t>(x.image) * x.b + x.a < most;
}

template <class Geometry>
void prepare_with(const plan::upsample_plan& p, const job& j, dispatch::task& t) {
  const Geometry g(p);
  const unsigned grid = grid_for(j.device, ceil_div(g.elements, threads), 32);
  if (p.backward) {
    const double force = j.first_tier > tier::double_double ? num::infinity : 0.0;
    ops::for_each_format<ops::FLOATS>([&]<class T>() {
      if (dtype_of<T> == p.type) plan_launch<backward_kernel<T, Geometry>>(t, j, grid, threads, g, force, j.counters);
    });
  } else if (p.type == dtype::f64) {
    plan_launch<forward_kernel<std::uint64_t, Geometry>>(t, j, grid, threads, g, j.counters);
  } else if (p.type == dtype::f32) {
    plan_launch<forward_kernel<std::uint32_t, Geometry>>(t, j, grid, threads, g, j.counters);
  } else {
    plan_launch<forward_kernel<std::uint16_t, Geometry>>(t, j, grid, threads, g, j.counters);
  }
}

}  // namespace

void prepare(const plan::upsample_plan& p, const job& j, dispatch::task& t) {
  const bool few = p.n * p.c * p.height() * p.width() < std::int64_t{1} << 31 && p.c < std::int64_t{1} << 31;
  if (few && is_small(p.y) && is_small(p.x) && !j.device.choice.wide) {
    prepare_with<small_geometry>(p, j, t);
  } else {
    prepare_with<wide_geometry>(p, j, t);
  }
}

}  // namespace repdl::cuda
