// Interpolation: a kernel that makes the tables of the axes, and one whose threads have an output element each (ops/sums/interpolation.hpp), which
// they decide themselves: later tiers are rare.
#include "backends/cuda/core/divider.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/sums/interpolation.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

// By a number of 64 bits.
struct long_division {
  std::int64_t d;
  explicit long_division(std::int64_t by) : d(by) {}
  __device__ std::int64_t split(std::int64_t& n) const {
    const std::int64_t q = n / d, r = n - q * d;
    n = q;
    return r;
  }
};

struct axes_and_tables {
  plan::interpolation_axis axis[3];
  plan::interpolation_table table[3];
};

__global__ void __launch_bounds__(threads) table_kernel(const __grid_constant__ axes_and_tables g) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (int a = 0; a < 3; ++a) {
    const plan::interpolation_axis& x = g.axis[a];
    for (std::int64_t i = first; i < x.size; i += step) num::fill_position(x, g.table[a], i);
    if (!g.table[a].backward) continue;
    for (std::int64_t i = first; i < x.image; i += step) num::fill_pixel(x, g.table[a], i);
  }
}

// A plan and how its threads divide: 32 bits and divider, or 64 bits.
template <class Index, class Division>
struct geometry {
  using index = Index;
  Division width, height, depth, channels;  // of the output
  std::int64_t elements;
  const void* in;
  void* out;
  std::int64_t in_stride[5], out_stride[5];
  double denominator, common;

  explicit geometry(const plan::interpolation_plan& p)
      : width(positive(p.length(2))),
        height(positive(p.length(1))),
        depth(positive(p.length(0))),
        channels(positive(p.c)),
        elements(p.n * p.c * p.length(0) * p.length(1) * p.length(2)),
        in(p.in),
        out(p.out),
        denominator(1),
        common(p.common) {
    for (int i = 0; i < 5; ++i) in_stride[i] = p.in_stride[i], out_stride[i] = p.out_stride[i];
    for (const plan::interpolation_axis& x : p.axis) denominator *= num::denominator_of(x);
  }

 private:
  static std::int64_t positive(std::int64_t n) { return n > 0 ? n : 1; }
};
using small_geometry = geometry<std::int32_t, divider>;
using wide_geometry = geometry<std::int64_t, long_division>;

// Rare, so that their registers are not everybody's.
template <class T>
__device__ __noinline__ num::decided_value<T> decide_twice(const axes_and_tables& axes, const std::int64_t (&o)[3],
                                                           const T* plane, const std::int64_t (&stride)[3],
                                                           double common, double force) {
  return num::interpolated_twice(axes.table, o, plane, stride, common, force);
}
template <class T>
__device__ __noinline__ T decide_exactly(const axes_and_tables& axes, const std::int64_t (&o)[3], const T* plane,
                                         const std::int64_t (&stride)[3]) {
  return num::interpolated_exactly(axes.axis, axes.table, o, plane, stride);
}

template <class T, class Geometry>
__global__ void __launch_bounds__(threads)
    interpolation_kernel(const __grid_constant__ Geometry g, const __grid_constant__ axes_and_tables axes,
                         double first_force, double second_force, counter* counters) {
  using index = typename Geometry::index;
  constexpr bool is_wide = std::is_same_v<T, double>;
  constexpr tier first = is_wide ? tier::double_double : tier::binary64;
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, first, g.elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t stride[3] = {g.in_stride[2], g.in_stride[3], g.in_stride[4]};
  std::int64_t twice = 0, exact = 0;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < g.elements; at += step) {
    auto rest = static_cast<index>(at);
    std::int64_t o[3];
    o[2] = g.width.split(rest);
    o[1] = g.height.split(rest);
    o[0] = g.depth.split(rest);
    const std::int64_t c = g.channels.split(rest), n = rest;
    const T* const plane = static_cast<const T*>(g.in) + n * g.in_stride[0] + c * g.in_stride[1];
    num::decided_value<T> r{T{}, false};
    if constexpr (!is_wide) {
      r = num::interpolated(axes.table, o, plane, stride, g.denominator, first_force);
      twice += r.decided ? 0 : 1;
    }
    if (!r.decided && g.common != 0) r = decide_twice(axes, o, plane, stride, g.common, second_force);
    if (!r.decided) {
      r.value = decide_exactly(axes, o, plane, stride);
      ++exact;
    }
    static_cast<T*>(g.out)[n * g.out_stride[0] + c * g.out_stride[1] + o[0] * g.out_stride[2] + o[1] * g.out_stride[3] +
                           o[2] * g.out_stride[4]] = r.value;
  }
  if ((twice | exact) != 0) {
    count_elements(counters, tier::exact, exact);
    if constexpr (is_wide) {
      count_elements(counters, first, -exact);
    } else {
      count_elements(counters, tier::double_double, twice - exact);
      count_elements(counters, first, -twice);
    }
  }
}

template <class T, class Geometry>
class interpolation_work final : public planned {
 public:
  interpolation_work(const plan::interpolation_plan& p, const job& given) : planned(given), geometry_(p) {
    std::int64_t longest = 0;
    for (int a = 0; a < 3; ++a) {
      const plan::interpolation_axis& x = p.axis[a];
      axes_.axis[a] = x;
      plan::interpolation_table& t = axes_.table[a];
      t.taps = x.taps;
      t.backward = p.backward;
      space.take(t.first, x.size);
      space.take(t.numerators, x.size, x.taps);
      if (p.backward) {
        space.take(t.from, x.image);
        space.take(t.to, x.image);
      }
      longest = std::max(longest, std::max(x.size, p.backward ? x.image : 0));
    }
    table_grid_ = grid_for(j.device, ceil_div(longest, threads), 32);
    grid_ = grid_for(j.device, ceil_div(geometry_.elements, threads), 32);
  }

 private:
  void enqueue() override {
    launch_kernel<table_kernel>(j, table_grid_, threads, 0, axes_);
    const double first = j.first_tier > tier::binary64 ? num::infinity : 0.0;
    const double second = j.first_tier > tier::double_double ? num::infinity : 0.0;
    launch_kernel<interpolation_kernel<T, Geometry>>(j, grid_, threads, 0, geometry_, axes_, first, second, j.counters);
  }

  Geometry geometry_;
  axes_and_tables axes_{};
  unsigned table_grid_, grid_;
};

}  // namespace

void prepare(const plan::interpolation_plan& p, const job& j, dispatch::task& t) {
  std::int64_t elements = p.n * p.c;
  for (int a = 0; a < 3; ++a) elements *= p.length(a);
  const bool is_small = fits_32_bits(elements) && fits_32_bits(p.c) && !j.device.choice.wide;
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != p.type) return;
    if (is_small) {
      t.emplace<interpolation_work<T, small_geometry>>(p, j);
    } else {
      t.emplace<interpolation_work<T, wide_geometry>>(p, j);
    }
  });
}

}  // namespace repdl::cuda
