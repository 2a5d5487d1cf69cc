// Elementwise operations and conversions: one kernel template, one row of a table per operation.
//
// Memory-bound code. Contiguous operands are read and written four elements at a time; so are strided ones whose
// innermost axis allows it (a broadcast row or scalar included), with one index computation per four elements.
#include <array>
#include <type_traits>

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/ops/bodies.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int batch = 4;  // elements that a thread works on at a time

template <int Arity>
struct operands {
  const void* in[Arity];
  void* out;
  std::int64_t count;
  strided_axes<Arity + 1> axes;  // the inputs, then the output
};

template <class T>
struct alignas(sizeof(T) * batch < 16 ? sizeof(T) * batch : 16) pack {
  T v[batch];
};

// How an operation is applied to a thread's elements.
template <class Op>
struct elementwise {
  static constexpr int arity = Op::arity;
  using input = float;
  using output = float;
  __device__ static float eval(const float* x) {
    if constexpr (arity == 1) return num::body<Op>::eval(x[0]);
    if constexpr (arity == 2) return num::body<Op>::eval(x[0], x[1]);
    if constexpr (arity == 3) return num::body<Op>::eval(x[0], x[1], x[2]);
  }
};
template <class To, class From>
struct conversion {
  static constexpr int arity = 1;
  using input = From;
  using output = To;
  __device__ static To eval(const From* x) { return num::convert_body<To, From>::eval(x[0]); }
};

template <class F>
__device__ void apply(const pack<typename F::input> (&x)[F::arity], pack<typename F::output>& y) {
#pragma unroll
  for (int j = 0; j < batch; ++j) {
    typename F::input arguments[F::arity];
#pragma unroll
    for (int a = 0; a < F::arity; ++a) arguments[a] = x[a].v[j];
    y.v[j] = F::eval(arguments);
  }
}

// Rank 1, stride 1. Packed: every pointer is aligned to a pack; otherwise a thread's elements are a block apart, so
// that a warp still reads and writes side by side. Exact aliasing of out and an input is legal: a thread reads its
// elements before it writes them.
template <class F, bool Packed>
__global__ void __launch_bounds__(threads) map_contiguous(const operands<F::arity> p, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  if (first == 0) count_elements(counters, tier::proved, p.count);
  pack<In> x[F::arity];
  pack<Out> y;
  if constexpr (Packed) {
    const std::int64_t packs = p.count / batch;
    for (std::int64_t i = first; i < packs; i += step) {
#pragma unroll
      for (int a = 0; a < F::arity; ++a) x[a] = static_cast<const pack<In>*>(p.in[a])[i];
      apply<F>(x, y);
      static_cast<pack<Out>*>(p.out)[i] = y;
    }
    const std::int64_t rest = packs * batch + first;
    if (rest < p.count) {
      In last[F::arity];
#pragma unroll
      for (int a = 0; a < F::arity; ++a) last[a] = static_cast<const In*>(p.in[a])[rest];
      static_cast<Out*>(p.out)[rest] = F::eval(last);
    }
  } else {
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads * batch + threadIdx.x; i < p.count;
         i += step * batch) {
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        const std::int64_t at = i + j * threads < p.count ? i + j * threads : i;
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a].v[j] = static_cast<const In*>(p.in[a])[at];
      }
      apply<F>(x, y);
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        if (i + j * threads < p.count) static_cast<Out*>(p.out)[i + j * threads] = y.v[j];
      }
    }
  }
}

// Any strides. Packed: the innermost size is a multiple of `batch`, its stride is 1 for the output and 0 or 1 for the
// inputs, and every pack with stride 1 is aligned.
template <class F, class Index, bool Packed>
__global__ void __launch_bounds__(threads) map_strided(const operands<F::arity> p, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  if (first == 0) count_elements(counters, tier::proved, p.count);
  pack<In> x[F::arity];
  pack<Out> y;
  if constexpr (Packed) {
    for (std::int64_t i = first; i < p.count / batch; i += step) {
      std::int64_t at[F::arity + 1];
      p.axes.locate(static_cast<Index>(i * batch), at);
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        const In* from = static_cast<const In*>(p.in[a]) + at[a];
        if (p.axes.stride[a][0] != 0) {
          x[a] = *reinterpret_cast<const pack<In>*>(from);
        } else {
#pragma unroll
          for (int j = 0; j < batch; ++j) x[a].v[j] = *from;
        }
      }
      apply<F>(x, y);
      *reinterpret_cast<pack<Out>*>(static_cast<Out*>(p.out) + at[F::arity]) = y;
    }
  } else {
    for (std::int64_t i = first; i < p.count; i += step * batch) {
      std::int64_t out[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        std::int64_t at[F::arity + 1];
        const std::int64_t element = i + j * step;
        p.axes.locate(static_cast<Index>(element < p.count ? element : i), at);
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a].v[j] = static_cast<const In*>(p.in[a])[at[a]];
        out[j] = at[F::arity];
      }
      apply<F>(x, y);
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        if (i + j * step < p.count) static_cast<Out*>(p.out)[out[j]] = y.v[j];
      }
    }
  }
}

template <class T>
bool aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(pack<T>) == 0;
}

// Whether map_strided<F, ., Packed = true> may run.
template <class In, class Out, int Arity>
bool can_pack(const operands<Arity>& p) {
  const strided_axes<Arity + 1>& x = p.axes;
  if (x.rank == 0 || x.size[0] % batch != 0 || x.stride[Arity][0] != 1 || !aligned<Out>(p.out)) return false;
  for (int a = 0; a <= Arity; ++a) {
    if (x.stride[a][0] == 0) continue;
    if (x.stride[a][0] != 1 || (a < Arity && !aligned<In>(p.in[a]))) return false;
    for (int d = 1; d < x.rank; ++d) {
      if (x.stride[a][d] % batch != 0) return false;
    }
  }
  return true;
}

template <class F>
void launch(const plan::map_plan& plan, const job& j) {
  using In = typename F::input;
  using Out = typename F::output;
  operands<F::arity> p{};
  p.out = plan.out;
  p.count = plan.count;
  p.axes.set_shape(plan.rank, plan.shape);
  p.axes.set_stride(F::arity, plan.out_stride);
  bool contiguous = p.count == 1 || (plan.rank == 1 && plan.out_stride[0] == 1);
  bool packed = aligned<Out>(p.out);
  for (int a = 0; a < F::arity; ++a) {
    p.in[a] = plan.in[a].data;
    p.axes.set_stride(a, plan.in[a].stride);
    contiguous = contiguous && (p.count == 1 || plan.in[a].stride[0] == 1);
    packed = packed && aligned<In>(p.in[a]);
  }
  const unsigned grid = grid_for(j.device, ceil_div(p.count, threads * batch), 32);
  const bool small = !j.device.choice.wide && fits_32_bits(p.count);
  if (contiguous && packed) {
    launch_kernel<map_contiguous<F, true>>(j, grid, threads, 0, p, j.counters);
  } else if (contiguous) {
    launch_kernel<map_contiguous<F, false>>(j, grid, threads, 0, p, j.counters);
  } else if (can_pack<In, Out>(p)) {
    if (small) {
      launch_kernel<map_strided<F, std::uint32_t, true>>(j, grid, threads, 0, p, j.counters);
    } else {
      launch_kernel<map_strided<F, std::uint64_t, true>>(j, grid, threads, 0, p, j.counters);
    }
  } else if (small) {
    launch_kernel<map_strided<F, std::uint32_t, false>>(j, grid, threads, 0, p, j.counters);
  } else {
    launch_kernel<map_strided<F, std::uint64_t, false>>(j, grid, threads, 0, p, j.counters);
  }
}

using launcher = void (*)(const plan::map_plan&, const job&);

constexpr auto elementwise_table = [] {
  std::array<launcher, ops::elementwise_count> table{};
  std::size_t i = 0;
  ops::for_each_elementwise([&]<class Op>() { table[i++] = launch<elementwise<Op>>; });
  return table;
}();

// [from][to], in the order of dtype.
template <class From>
constexpr std::array<launcher, 4> conversions_from = {launch<conversion<f16, From>>, launch<conversion<bf16, From>>,
                                                      launch<conversion<float, From>>,
                                                      launch<conversion<double, From>>};
constexpr std::array<std::array<launcher, 4>, 4> conversion_table = {conversions_from<f16>, conversions_from<bf16>,
                                                                     conversions_from<float>, conversions_from<double>};

}  // namespace

void run(const plan::map_plan& p, const job& j) {
  const launcher run = p.op == ops::op_id::convert
                           ? conversion_table[static_cast<std::size_t>(p.in_type)][static_cast<std::size_t>(p.out_type)]
                           : elementwise_table[static_cast<std::size_t>(p.op)];
  run(p, j);
}

}  // namespace repdl::cuda
