// The kernels of reductions.
#pragma once

#include <cstring>

#include "backends/cuda/reduce/reduce_policies.cuh"
#include "librepdl/ops/structured.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = reduce_threads;
constexpr int warps = threads / 32;

// Offsets of operands First, First + 1, ... at a row-major index.
template <int First, class Axes, int N>
__device__ void locate(const reduce_geometry& g, const Axes& axes, std::int64_t index, std::int64_t (&offset)[N]) {
  if (g.small) {
    axes.template locate<First>(static_cast<std::uint32_t>(index), offset);
  } else {
    axes.template locate<First>(static_cast<std::uint64_t>(index), offset);
  }
}

template <class P>
struct row_pointers {
  using T = typename P::element;
  const T* at[P::inputs];

  __device__ row_pointers(const reduce_geometry& g, std::int64_t output) {
    std::int64_t offset[P::inputs];
    locate<0>(g, g.kept, output, offset);
#pragma unroll
    for (int k = 0; k < P::inputs; ++k) at[k] = static_cast<const T*>(g.in[k]) + offset[k];
  }
  template <int K>
  __device__ const T* term(const reduce_geometry& g, std::int64_t r) const {
    std::int64_t offset[1];
    locate<K>(g, g.reduced, r, offset);
    return at[K] + offset[0];
  }
};

// Terms of input K, loaded before any of them is used: single ones, `step` apart from r on ...
template <int K, class P, class T, int N>
__device__ void load_single(const reduce_geometry& g, const row_pointers<P>& row, std::int64_t r, std::int64_t step,
                            T (&x)[N]) {
  if (g.reduced.rank <= 1) {
    const T* const from = row.at[K] + r * g.reduced.stride[K][0];
    const std::int64_t apart = step * g.reduced.stride[K][0];
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = from[i * apart];
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = *row.template term<K>(g, r + i * step);
  }
}

// ... or 16 bytes at a time, lane after lane.
template <class T>
constexpr int per_pack = 16 / sizeof(T);
template <int K, class P, class T, int N>
__device__ void load_packed(const reduce_geometry& g, const row_pointers<P>& row, std::int64_t r, std::int64_t step,
                            int lane, T (&x)[N]) {
  constexpr int packs = N / per_pack<T>;
  uint4 v[packs];
  if (g.reduced.rank <= 1) {
    const uint4* const from = reinterpret_cast<const uint4*>(row.at[K] + r) + lane;
#pragma unroll
    for (int q = 0; q < packs; ++q) v[q] = from[q * step];
  } else {
#pragma unroll
    for (int q = 0; q < packs; ++q) {
      v[q] = *reinterpret_cast<const uint4*>(row.template term<K>(g, r + (q * step + lane) * per_pack<T>));
    }
  }
  memcpy(x, v, sizeof v);
}

// Gives a policy what was loaded. index_of(i): which term i is.
template <class P, class T, int N, class Index>
__device__ void take_loaded(P& acc, const reduce_parameters& p, const T (&x)[N], const T (&y)[N],
                            const Index& index_of) {
#pragma unroll
  for (int first = 0; first < N; first += batch_terms) {
    float a[batch_terms];
    float b[batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) {
      a[i] = num::widen_to_float(x[first + i]);
      if constexpr (P::inputs == 2) b[i] = num::widen_to_float(y[first + i]);
    }
    acc.take_batch(p, a, b, [&](int i) { return index_of(first + i); });
  }
}

// Adds the terms begin + lane, begin + lane + step, ... below end; full loads first.
template <class P>
__device__ void take_terms(P& acc, const reduce_geometry& g, const reduce_parameters& p, const row_pointers<P>& row,
                           std::int64_t begin, std::int64_t end, std::int64_t step, int lane) {
  using T = typename P::element;
  std::int64_t r = begin;
  if constexpr (P::batched) {
    constexpr int n = loaded_terms(sizeof(T), P::inputs);
    constexpr int pack = per_pack<T>;
    T x[n];
    T y[n];
    const std::int64_t span = step * (n - 1) + g.team;  // from r to the end of what is loaded
    for (; end - r >= span; r += step * n) {
      if (g.packed) {
        load_packed<0>(g, row, r, step, lane, x);
        if constexpr (P::inputs == 2) load_packed<1>(g, row, r, step, lane, y);
        take_loaded(acc, p, x, y, [&](int i) { return r + ((i / pack) * step + lane) * pack + i % pack; });
      } else {
        load_single<0>(g, row, r + lane, step, x);
        if constexpr (P::inputs == 2) load_single<1>(g, row, r + lane, step, y);
        take_loaded(acc, p, x, y, [&](int i) { return r + lane + i * step; });
      }
    }
  }
#pragma unroll 4
  for (r += lane; r < end; r += step) {
    const float x = num::widen_to_float(*row.template term<0>(g, r));
    float y = 0;
    if constexpr (P::inputs == 2) y = num::widen_to_float(*row.template term<1>(g, r));
    acc.take(p, x, y, r);
  }
}

// Writes one output, if that is decided.
template <class P>
__device__ bool write_result(P acc, const reduce_geometry& g, const reduce_parameters& p, std::int64_t output) {
  if constexpr (P::inputs == 2) {
    if (g.bias != nullptr) {  // c is the product c * 1
      std::int64_t offset[1];
      locate<3>(g, g.kept, output, offset);
      acc.take(p, num::widen_to_float(static_cast<const typename P::element*>(g.bias)[offset[0]]), 1.0f, g.length);
    }
  }
  typename P::output value;
  const bool decided = acc.finish(p, &value);
  if (decided) {
    std::int64_t offset[1];
    locate<2>(g, g.kept, output, offset);
    static_cast<typename P::output*>(g.out)[offset[0]] = value;
  }
  return decided;
}
// The same, or marks it. `marked`: the bitmap held the outputs to work off, decided ones are cleared.
template <class P>
__device__ bool finish(const P& acc, const reduce_geometry& g, const reduce_parameters& p, std::int64_t output,
                       std::uint32_t* undecided, bool marked) {
  const bool decided = write_result(acc, g, p, output);
  const std::uint32_t bit = 1u << (output & 31);
  if (decided && marked) atomicAnd(undecided + (output >> 5), ~bit);
  if (!decided && !marked) atomicOr(undecided + (output >> 5), bit);
  return decided;
}

template <class P>
__device__ P shuffle(const P& from, int distance) {
  static_assert(std::is_trivially_copyable_v<P> && sizeof(P) % 4 == 0);
  constexpr int words = sizeof(P) / 4;
  std::uint32_t w[words];
  memcpy(w, &from, sizeof(P));
#pragma unroll
  for (int i = 0; i < words; ++i) w[i] = __shfl_xor_sync(full_warp, w[i], distance);
  P to;
  memcpy(&to, w, sizeof(P));
  return to;
}

// Among `lanes` neighbouring lanes; all lanes of the warp take part.
template <class P>
__device__ void merge_lanes(P& acc, int lanes) {
  for (int distance = lanes / 2; distance >= 1; distance /= 2) acc.merge(shuffle(acc, distance));
}

// Merges what all threads of a block hold into thread 0's. The block meets before it uses the memory, and after.
template <class P>
__device__ void merge_block(P& acc, P* of_warp) {
  __syncthreads();
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x / 32] = acc;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < warps; ++i) acc.merge(of_warp[i]);
  }
}

template <class P>
__global__ void __launch_bounds__(threads, 3)
    reduce_rows(const reduce_geometry g, const reduce_parameters p, P* partials, std::uint32_t* undecided, bool marked,
                counter* counters) {
  alignas(16) __shared__ unsigned char shared[warps * sizeof(P)];
  P* const of_warp = reinterpret_cast<P*>(shared);
  const int lane = static_cast<int>(threadIdx.x) & (g.team - 1);
  const int in_warp = static_cast<int>(threadIdx.x & 31u) / g.team;  // which of the warp's teams this is
  const std::int64_t teams = static_cast<std::int64_t>(gridDim.x) * (threads / g.team);
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (threads / g.team) + threadIdx.x / g.team - in_warp;
  // Marked outputs are worked off by whole warps or blocks, a word of the bitmap at a time.
  const std::int64_t groups = (marked ? (g.outputs + 31) / 32 : g.outputs) * g.chunks;
  std::int64_t decided = 0;
  for (std::int64_t base = first; base < groups; base += teams) {
    const std::int64_t group = base + in_warp;
    const bool active = group < groups;
    const std::int64_t row = g.chunks == 1 ? group : group / g.chunks;
    const std::int64_t chunk = group - row * g.chunks;
    std::uint32_t bits = marked ? undecided[row] : 1u;
    for (; bits != 0; bits &= bits - 1) {
      const std::int64_t output = marked ? row * 32 + (__ffs(static_cast<int>(bits)) - 1) : row;
      P acc;
      if (active) {
        const std::int64_t begin = chunk * g.chunk_length;
        const std::int64_t end = min(begin + g.chunk_length, g.length);
        take_terms(acc, g, p, row_pointers<P>(g, output), begin, end, g.team, lane);
      }
      __syncwarp();
      merge_lanes(acc, min(g.team, 32));
      if (g.team > 32) merge_block(acc, of_warp);
      if (lane == 0 && active) {
        if (g.chunks > 1) {
          partials[output * g.chunks + chunk] = acc;
        } else {
          decided += finish(acc, g, p, output, undecided, marked) ? 1 : 0;
        }
      }
      __syncwarp();
    }
  }
  if (lane == 0) count_elements(counters, P::decides, decided);
}

template <class P>
__global__ void __launch_bounds__(threads, 3)
    reduce_columns(const reduce_geometry g, const reduce_parameters p, P* partials, std::uint32_t* undecided,
                   bool marked, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t items = g.outputs * g.chunks;
  int decided = 0;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; item < items; item += step) {
    const std::int64_t chunk = g.chunks == 1 ? 0 : item / g.outputs;
    const std::int64_t output = item - chunk * g.outputs;
    if (marked && ((undecided[output >> 5] >> (output & 31)) & 1) == 0) continue;
    P acc;
    take_terms(acc, g, p, row_pointers<P>(g, output), chunk, g.length, g.chunks, 0);
    if (g.chunks > 1) {
      partials[item] = acc;
    } else {
      decided += finish(acc, g, p, output, undecided, marked) ? 1 : 0;
    }
  }
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, P::decides, decided);
}

// Joins the chunks of each output: a warp per output.
template <class P>
__global__ void __launch_bounds__(threads)
    join_chunks(const reduce_geometry g, const reduce_parameters p, const P* partials, std::uint32_t* undecided,
                bool marked, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  std::int64_t decided = 0;
  for (std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; output < g.outputs;
       output += step) {
    if (marked && ((undecided[output >> 5] >> (output & 31)) & 1) == 0) continue;
    P acc;
    for (std::int64_t c = lane_of_thread(); c < g.chunks; c += 32) {
      acc.merge(partials[g.columns ? c * g.outputs + output : output * g.chunks + c]);
    }
    merge_lanes(acc, 32);
    if (lane_of_thread() == 0) decided += finish(acc, g, p, output, undecided, marked) ? 1 : 0;
  }
  if (lane_of_thread() == 0) count_elements(counters, P::decides, decided);
}

// Few short sums: a block for each, which goes on to the next tier where one leaves its output open.
template <class P>
__device__ bool attempt(const reduce_geometry& g, const reduce_parameters& p, unsigned char* shared, bool* decided,
                        counter* counters) {
  const std::int64_t output = blockIdx.x;
  P acc;
  take_terms(acc, g, p, row_pointers<P>(g, output), 0, g.length, threads, static_cast<int>(threadIdx.x));
  __syncwarp();
  merge_lanes(acc, 32);
  merge_block(acc, reinterpret_cast<P*>(shared));
  if (threadIdx.x == 0) {
    *decided = write_result(acc, g, p, output);
    count_elements(counters, P::decides, *decided ? 1 : 0);
  }
  __syncthreads();
  return *decided;
}
template <class Fast, class DoubleDouble, class Exact>
__global__ void __launch_bounds__(threads)
    short_sums(const reduce_geometry g, const reduce_parameters p, bool force_exact, counter* counters) {
  constexpr std::size_t largest = sizeof(DoubleDouble) > sizeof(Exact) ? sizeof(DoubleDouble) : sizeof(Exact);
  static_assert(sizeof(Fast) <= largest);
  alignas(16) __shared__ unsigned char shared[warps * largest];
  __shared__ bool decided;
  if (attempt<Fast>(g, p, shared, &decided, counters)) return;
  reduce_parameters late = p;
  late.forced = force_exact;
  if (attempt<DoubleDouble>(g, late, shared, &decided, counters)) return;
  attempt<Exact>(g, late, shared, &decided, counters);
}

template <class P>
void launch(const reduce_geometry& g, const reduce_parameters& p, void* partials, std::uint32_t* undecided, bool marked,
            const job& j) {
  P* const parts = static_cast<P*>(partials);
  const auto rows = [&] {
    const unsigned grid = grid_for(j.device, ceil_div(g.outputs * g.chunks * g.team, threads), 16);
    launch_kernel<reduce_rows<P>>(j, grid, threads, 0, g, p, parts, undecided, marked, j.counters);
  };
  if constexpr (P::batched) {
    const unsigned grid = grid_for(j.device, ceil_div(g.outputs * g.chunks, threads), 16);
    if (g.columns) {
      launch_kernel<reduce_columns<P>>(j, grid, threads, 0, g, p, parts, undecided, marked, j.counters);
    } else {
      rows();
    }
  } else {
    rows();  // repairs
  }
  if (g.chunks > 1) {
    const unsigned grid = grid_for(j.device, ceil_div(g.outputs, warps), 16);
    launch_kernel<join_chunks<P>>(j, grid, threads, 0, g, p, parts, undecided, marked, j.counters);
  }
}

// A thread's own terms, the merges in a team, the chunks of a joining lane, the merges in its warp, a bias.
std::int64_t height_of(const reduce_geometry& g) {
  return (g.columns ? g.chunk_length : ceil_div(g.chunk_length, g.team)) + 4 * batch_terms + 16 +
         ceil_div(g.chunks, 32) + 9;
}

template <class Fast, class DoubleDouble, class Exact>
void launch_sum(const reduction& r, const job& j) {
  if (r.is_short) {
    reduce_parameters p = r.p;
    p.forced = j.first_tier > tier::binary64;
    p.height = height_of(r.first);
    return launch_kernel<short_sums<Fast, DoubleDouble, Exact>>(j, r.first.outputs, threads, 0, r.first, p,
                                                                j.first_tier > tier::double_double, j.counters);
  }
  check(cudaMemsetAsync(r.undecided, 0, static_cast<std::size_t>(ceil_div(r.first.outputs, 32)) * 4, j.stream),
        "reduce", "cudaMemsetAsync");
  reduce_parameters p = r.p;
  p.forced = j.first_tier > tier::binary64;
  p.height = height_of(r.first);
  launch<Fast>(r.first, p, r.partials, r.undecided, false, j);
  p.forced = j.first_tier > tier::double_double;
  p.height = height_of(r.repair);
  launch<DoubleDouble>(r.repair, p, r.partials, r.undecided, true, j);
  launch<Exact>(r.repair, p, r.partials, r.undecided, true, j);
}

}  // namespace

template <class T>
void launch_reduction(const reduction& r, const job& j) {
  ops::for_operation<ops::family::reduce>(r.op, [&]<class Op>() {
    if constexpr (Op::id == ops::op_id::dot) {
      launch_sum<fast_sum<2, T>, dd_sum<2, T>, exact_sum<2, T>>(r, j);
    } else if constexpr (Op::id == ops::op_id::prelu_weight_backward) {
      launch_sum<without_positive<fast_sum<2, T>>, without_positive<dd_sum<2, T>>, without_positive<exact_sum<2, T>>>(
          r, j);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::sum, ops::op_id::mean>) {
      if constexpr (Op::id == ops::op_id::sum) {
        if (r.magnitudes) {
          return launch_sum<of_magnitudes<fast_sum<1, T>>, of_magnitudes<dd_sum<1, T>>, of_magnitudes<exact_sum<1, T>>>(
              r, j);
        }
      }
      launch_sum<fast_sum<1, T>, dd_sum<1, T>, exact_sum<1, T>>(r, j);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::argmax, ops::op_id::argmin>) {
      launch<arg_extremum<T>>(r.first, r.p, r.partials, r.undecided, false, j);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::max, ops::op_id::min>) {
      if (r.magnitudes) return launch<of_magnitudes<extremum<T>>>(r.first, r.p, r.partials, r.undecided, false, j);
      launch<extremum<T>>(r.first, r.p, r.partials, r.undecided, false, j);
    } else if constexpr (!ops::is_one_of<Op, ops::op_id::sum_squares,
                                         ops::op_id::vector_norm>) {  // plans of the others
      static_assert(ops::has_no_case<Op>, "a reduction without a kernel");
    }
  });
}

}  // namespace repdl::cuda
