// Pooling: a thread per output element, which gathers what it needs (ops/sums/pool.hpp); no atomics. Elements that binary64
// does not decide are summed in integers at once, by the same thread.
#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/pool/pool.cuh"
#include "librepdl/ops/sums/pool.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;

template <class T, class Index>
using volume = num::pool_volume<T, Index>;
template <class T, class Index>
using place = typename volume<T, Index>::place;

template <class T>
inline constexpr tier first_tier_of_sums = std::is_same_v<T, double> ? tier::double_double : tier::binary64;

// One element per operation. `force`: 0, or +inf for undecided.
struct max_pool {
  static constexpr bool backward = false;
  template <class T>
  static constexpr tier first = tier::proved;
  template <class T, class Index>
  __device__ static num::decided_value<T> attempt(const volume<T, Index>& p, place<T, Index> o, double) {
    return {p.max_value(o), true};
  }
  template <class T, class Index>
  __device__ static T exact(const volume<T, Index>&, place<T, Index>) {
    return T{};
  }
};
struct max_pool_with_indices : max_pool {};
struct max_pool_backward {
  static constexpr bool backward = true;
  template <class T>
  static constexpr tier first = first_tier_of_sums<T>;
  template <class T, class Index>
  __device__ static num::decided_value<T> attempt(const volume<T, Index>& p, place<T, Index> o, double force) {
    return volume<T, Index>::finish_max_gradient(p.max_gradient(o), force);
  }
  template <class T, class Index>
  __device__ static T exact(const volume<T, Index>& p, place<T, Index> o) {
    return p.exact_max_gradient(o);
  }
};
struct avg_pool {
  static constexpr bool backward = false;
  template <class T>
  static constexpr tier first = first_tier_of_sums<T>;
  template <class T, class Index>
  __device__ static num::decided_value<T> attempt(const volume<T, Index>& p, place<T, Index> o, double force) {
    return volume<T, Index>::finish_average(p.average(o), force, p.count(o));
  }
  template <class T, class Index>
  __device__ static T exact(const volume<T, Index>& p, place<T, Index> o) {
    return p.exact_average(o);
  }
};
struct avg_pool_backward {
  static constexpr bool backward = true;
  template <class T>
  static constexpr tier first = first_tier_of_sums<T>;
  template <class T, class Index>
  __device__ static num::decided_value<T> attempt(const volume<T, Index>& p, place<T, Index> o, double force) {
    return p.finish_average_gradient(p.average_gradient(o), force);
  }
  template <class T, class Index>
  __device__ static T exact(const volume<T, Index>& p, place<T, Index> o) {
    return p.exact_average_gradient(o);
  }
};

template <class Operation, class T, class Index>
__device__ __noinline__ T decide_exactly(const volume<T, Index>& p, place<T, Index> o) {
  return Operation::exact(p, o);
}

// Neighbouring threads write neighbouring elements: along a row, or along the channels where those are innermost.
template <class Operation, class T, class Index>
__global__ void __launch_bounds__(threads) pool_kernel(const __grid_constant__ pool_geometry g, counter* counters) {
  const auto size = [&](int d) {
    return static_cast<Index>(Operation::backward ? g.axis[d].image : g.axis[d].windows);
  };
  const Index depth = size(0), height = size(1), width = size(2);
  const Index channels = static_cast<Index>(g.c);
  if (blockIdx.x == 0 && threadIdx.x == 0) count_elements(counters, Operation::template first<T>, g.elements);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  std::int64_t undecided = 0;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < g.elements; at += step) {
    Index rest = static_cast<Index>(at);
    Index c = 0;
    if (g.channels_inside) {
      c = rest % channels;
      rest /= channels;
    }
    const Index x = rest % width;
    rest /= width;
    const Index y = rest % height;
    rest /= height;
    Index z = 0;
    if (depth != 1) {
      z = rest % depth;
      rest /= depth;
    }
    if (!g.channels_inside) {
      c = rest % channels;
      rest /= channels;
    }
    const volume<T, Index> p = num::volume_of<T, Index>(g, rest, c);
    const place<T, Index> o{z, y, x};
    const auto at_strides = [&](const std::int64_t(&stride)[5]) {
      return rest * stride[0] + c * stride[1] + z * stride[2] + y * stride[3] + x * stride[4];
    };
    num::decided_value<T> result;
    if constexpr (std::is_same_v<Operation, max_pool_with_indices>) {
      std::int64_t where;
      result = {p.max_value(o, &where), true};
      g.indices[at_strides(g.indices_stride)] = where;
    } else {
      result = Operation::attempt(p, o, g.force);
    }
    if (!result.decided) {
      result.value = decide_exactly<Operation>(p, o);
      ++undecided;
    }
    static_cast<T*>(g.out)[at_strides(g.out_stride)] = result.value;
  }
  if (undecided != 0) {
    count_elements(counters, tier::exact, undecided);
    count_elements(counters, Operation::template first<T>, -undecided);
  }
}

template <class Operation>
void prepare_general(const pool_geometry& g, const job& j, dispatch::task& t) {
  const unsigned grid = grid_for(j.device, ceil_div(g.elements, threads), 32);
  ops::for_each_format<ops::FLOATS>([&]<class T>() {
    if (dtype_of<T> != g.type) return;
    if (g.small() && !j.device.choice.wide) {
      plan_launch<pool_kernel<Operation, T, std::int32_t>>(t, j, grid, threads, g, j.counters);
    } else {
      plan_launch<pool_kernel<Operation, T, std::int64_t>>(t, j, grid, threads, g, j.counters);
    }
  });
}

}  // namespace

void prepare(const plan::pool_plan& p, const job& j, dispatch::task& t) {
  pool_geometry g{};
  g.type = p.type;
  g.n = p.n, g.c = p.c;
  g.adaptive = p.adaptive;
  g.count_include_pad = p.count_include_pad;
  g.divisor = p.divisor;
  g.negated = p.negated;
  g.common = p.common;
  g.x = p.x, g.g = p.g, g.out = p.out;
  g.indices = p.indices;
  g.elements = p.n * p.c;
  for (std::size_t d = 0; d < 3; ++d) {
    g.axis[d] = p.axis[d];
    g.padded[d] = p.padded[d];
    g.elements *= p.backward() ? p.axis[d].image : p.axis[d].windows;
  }
  for (std::size_t d = 0; d < 5; ++d) {
    g.image_stride[d] = p.image_stride[d];
    g.pooled_stride[d] = p.pooled_stride[d];
    g.out_stride[d] = p.out_stride[d];
    g.indices_stride[d] = p.indices_stride[d];
  }
  g.channels_inside = p.c > 1 && p.out_stride[1] < p.out_stride[4];
  g.force = j.first_tier > tier::double_double ? num::infinity : 0.0;
  if (!j.device.choice.wide && prepare_fast(p.op, g, j, t)) return;
  switch (p.op) {
    case ops::op_id::max_pool2d:
      return p.indices != nullptr ? prepare_general<max_pool_with_indices>(g, j, t)
                                  : prepare_general<max_pool>(g, j, t);
    case ops::op_id::max_pool2d_backward:
      return prepare_general<max_pool_backward>(g, j, t);
    case ops::op_id::avg_pool2d:
      return prepare_general<avg_pool>(g, j, t);
    default:
      return prepare_general<avg_pool_backward>(g, j, t);
  }
}

}  // namespace repdl::cuda
