// Elementwise operations and conversions: one kernel template, one row of a table per operation.
//
// Memory-bound code. Contiguous operands are read and written four elements at a time; so are strided ones whose
// innermost axis allows it (a broadcast row or scalar included), with one index computation per four elements.
#include <array>
#include <type_traits>

#include "backends/cuda/drivers.hpp"
#include "backends/cuda/launch.cuh"
#include "librepdl/error.hpp"
#include "librepdl/ops/bodies.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int batch = 4;  // elements that a thread works on at a time

struct operands {
  const void* in[3];
  void* out;
  std::int64_t count;
  int rank;
  std::int64_t shape[max_rank];
  std::int64_t in_stride[3][max_rank];
  std::int64_t out_stride[max_rank];
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
__global__ void __launch_bounds__(threads) map_contiguous(const operands p, counter* counters) {
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

// Offsets of element `index`; Index is 32 bits wide where the count allows it, for the divisions.
template <int Arity, class Index>
__device__ void locate(const operands& p, Index index, std::int64_t (&in)[Arity], std::int64_t& out) {
  out = 0;
#pragma unroll
  for (int a = 0; a < Arity; ++a) in[a] = 0;
  for (int d = p.rank - 1; d >= 0; --d) {
    Index at = index;
    if (d > 0) {
      const Index size = static_cast<Index>(p.shape[d]);
      index /= size;
      at -= index * size;
    }
    out += static_cast<std::int64_t>(at) * p.out_stride[d];
#pragma unroll
    for (int a = 0; a < Arity; ++a) in[a] += static_cast<std::int64_t>(at) * p.in_stride[a][d];
  }
}

// Any strides. Packed: the innermost size is a multiple of `batch`, its stride is 1 for the output and 0 or 1 for the
// inputs, and every pack with stride 1 is aligned.
template <class F, class Index, bool Packed>
__global__ void __launch_bounds__(threads) map_strided(const operands p, counter* counters) {
  using In = typename F::input;
  using Out = typename F::output;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  if (first == 0) count_elements(counters, tier::proved, p.count);
  pack<In> x[F::arity];
  pack<Out> y;
  if constexpr (Packed) {
    for (std::int64_t i = first; i < p.count / batch; i += step) {
      std::int64_t in[F::arity];
      std::int64_t out;
      locate<F::arity>(p, static_cast<Index>(i * batch), in, out);
#pragma unroll
      for (int a = 0; a < F::arity; ++a) {
        const In* from = static_cast<const In*>(p.in[a]) + in[a];
        if (p.in_stride[a][p.rank - 1] != 0) {
          x[a] = *reinterpret_cast<const pack<In>*>(from);
        } else {
#pragma unroll
          for (int j = 0; j < batch; ++j) x[a].v[j] = *from;
        }
      }
      apply<F>(x, y);
      *reinterpret_cast<pack<Out>*>(static_cast<Out*>(p.out) + out) = y;
    }
  } else {
    for (std::int64_t i = first; i < p.count; i += step * batch) {
      std::int64_t out[batch];
#pragma unroll
      for (int j = 0; j < batch; ++j) {
        std::int64_t in[F::arity];
        const std::int64_t element = i + j * step;
        locate<F::arity>(p, static_cast<Index>(element < p.count ? element : i), in, out[j]);
#pragma unroll
        for (int a = 0; a < F::arity; ++a) x[a].v[j] = static_cast<const In*>(p.in[a])[in[a]];
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
template <class In, class Out>
bool can_pack(const operands& p, int arity) {
  const int last = p.rank - 1;
  if (p.rank == 0 || p.shape[last] % batch != 0 || p.out_stride[last] != 1 || !aligned<Out>(p.out)) return false;
  for (int d = 0; d < last; ++d) {
    if (p.out_stride[d] % batch != 0) return false;
  }
  for (int a = 0; a < arity; ++a) {
    if (p.in_stride[a][last] == 0) continue;
    if (p.in_stride[a][last] != 1 || !aligned<In>(p.in[a])) return false;
    for (int d = 0; d < last; ++d) {
      if (p.in_stride[a][d] % batch != 0) return false;
    }
  }
  return true;
}

template <class F>
void launch(const operands& p, const job& j) {
  using In = typename F::input;
  using Out = typename F::output;
  bool contiguous = p.count == 1 || (p.rank == 1 && p.out_stride[0] == 1);
  bool packed = aligned<Out>(p.out);
  for (int a = 0; a < F::arity; ++a) {
    contiguous = contiguous && (p.count == 1 || p.in_stride[a][0] == 1);
    packed = packed && aligned<In>(p.in[a]);
  }
  const unsigned grid = grid_for(j.device, ceil_div(p.count, threads * batch), 32);
  const bool small = p.count < (std::int64_t{1} << 31);
  if (contiguous && packed) {
    map_contiguous<F, true><<<grid, threads, 0, j.stream>>>(p, j.counters);
  } else if (contiguous) {
    map_contiguous<F, false><<<grid, threads, 0, j.stream>>>(p, j.counters);
  } else if (can_pack<In, Out>(p, F::arity)) {
    if (small) {
      map_strided<F, std::uint32_t, true><<<grid, threads, 0, j.stream>>>(p, j.counters);
    } else {
      map_strided<F, std::uint64_t, true><<<grid, threads, 0, j.stream>>>(p, j.counters);
    }
  } else if (small) {
    map_strided<F, std::uint32_t, false><<<grid, threads, 0, j.stream>>>(p, j.counters);
  } else {
    map_strided<F, std::uint64_t, false><<<grid, threads, 0, j.stream>>>(p, j.counters);
  }
  check_launch("map");
}

using launcher = void (*)(const operands&, const job&);

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

void run_map(const plan::map_plan& p, const job& j) {
  operands o{};
  o.out = p.out;
  o.count = p.count;
  o.rank = p.rank;
  for (int a = 0; a < p.arity; ++a) o.in[a] = p.in[a].data;
  for (int d = 0; d < p.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    o.shape[d] = p.shape[i];
    o.out_stride[d] = p.out_stride[i];
    for (int a = 0; a < p.arity; ++a) o.in_stride[a][d] = p.in[a].stride[i];
  }
  if (p.op == ops::op_id::convert) {
    conversion_table[static_cast<std::size_t>(p.in_type)][static_cast<std::size_t>(p.out_type)](o, j);
  } else {
    elementwise_table[static_cast<std::size_t>(p.op)](o, j);
  }
}

}  // namespace repdl::cuda
