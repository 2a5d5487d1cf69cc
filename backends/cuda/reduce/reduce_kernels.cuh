// The kernels of reductions.
#pragma once

#include <algorithm>
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

// Terms of input K, loaded before any of them is used: single ones along one axis, `step` apart from r on ...
template <int K, class P, class T, int N>
__device__ void load_single(const reduce_geometry& g, const row_pointers<P>& row, std::int64_t r, std::int64_t step,
                            T (&x)[N]) {
  const T* const from = row.at[K] + r * g.reduced.stride[K][0];
  const std::int64_t apart = step * g.reduced.stride[K][0];
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = from[i * apart];
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
    typename P::term a[batch_terms];
    typename P::term b[batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) {
      a[i] = as_term(x[first + i]);
      if constexpr (P::inputs == 2) b[i] = as_term(y[first + i]);
    }
    acc.take_batch(p, a, b, [&](int i) { return index_of(first + i); });
  }
}

// Term r of both inputs.
template <class P>
__device__ void take_term(P& acc, const reduce_geometry& g, const reduce_parameters& p, const row_pointers<P>& row,
                          std::int64_t r) {
  const typename P::term x = as_term(*row.template term<0>(g, r));
  typename P::term y = 0;
  if constexpr (P::inputs == 2) y = as_term(*row.template term<1>(g, r));
  acc.take(p, x, y, r);
}

// The terms from `begin` to where the inputs are aligned; a pack's, if they never are together.
template <class P>
__device__ int terms_to_alignment(const row_pointers<P>& row, std::int64_t begin) {
  constexpr int pack = per_pack<typename P::element>;
  const auto past = [&](int k) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(row.at[k] + begin) / sizeof(typename P::element)) &
           (pack - 1);
  };
  if (past(0) != past(P::inputs - 1)) return pack;
  return (pack - past(0)) & (pack - 1);
}

// Adds the terms begin + lane, begin + lane + step, ... below end, or packs of them; full loads first.
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
    bool packed = g.packed;
    if (!packed && g.side_by_side) {
      const int head = terms_to_alignment(row, begin);
      if (head < min(static_cast<std::int64_t>(pack), end - begin)) {
        for (int i = lane; i < head; i += static_cast<int>(step)) take_term(acc, g, p, row, r + i);
        r += head;
        packed = true;
      }
    }
    // From r to the end of what is loaded; single terms along several axes are divided for, one at a time.
    const std::int64_t span = packed || g.reduced.rank <= 1 ? step * (n - 1) + g.team : end - begin + 1;
    for (; end - r >= span; r += step * n) {
      if (packed) {
        load_packed<0>(g, row, r, step, lane, x);
        if constexpr (P::inputs == 2) load_packed<1>(g, row, r, step, lane, y);
        take_loaded(acc, p, x, y, [&](int i) { return r + ((i / pack) * step + lane) * pack + i % pack; });
      } else {
        load_single<0>(g, row, r + lane, step, x);
        if constexpr (P::inputs == 2) load_single<1>(g, row, r + lane, step, y);
        take_loaded(acc, p, x, y, [&](int i) { return r + lane + i * step; });
      }
    }
    if (packed) {
      const int packs = static_cast<int>((end - r) / pack);
      for (int c = lane; c < packs; c += static_cast<int>(step)) {
        T u[pack];
        T v[pack];
        load_packed<0>(g, row, r, step, c, u);
        if constexpr (P::inputs == 2) load_packed<1>(g, row, r, step, c, v);
#pragma unroll
        for (int i = 0; i < pack; ++i) {
          typename P::term b = 0;
          if constexpr (P::inputs == 2) b = as_term(v[i]);
          acc.take(p, as_term(u[i]), b, r + c * pack + i);
        }
      }
      r += packs * pack;
    }
  }
#pragma unroll 4
  for (r += lane; r < end; r += step) take_term(acc, g, p, row, r);
}

// Writes one output, if that is decided.
template <class P>
__device__ bool write_result(P acc, const reduce_geometry& g, const reduce_parameters& p, std::int64_t output) {
  if constexpr (P::inputs == 2) {
    if (g.bias != nullptr) {  // c is the product c * 1
      std::int64_t offset[1];
      locate<3>(g, g.kept, output, offset);
      acc.take(p, as_term(static_cast<const typename P::element*>(g.bias)[offset[0]]), 1, g.length);
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
// The same, or marks it.
template <class P>
__device__ bool finish(const P& acc, const reduce_geometry& g, const reduce_parameters& p, std::int64_t output,
                       std::uint32_t* marks) {
  const bool decided = write_result(acc, g, p, output);
  if (!decided) atomicOr(marks + (output >> 5), 1u << (output & 31));
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

// Merges what the lanes of a team hold into its first thread's; in a team within a warp, into every lane's.
template <class P>
__device__ void merge_team(P& acc, int team, P* of_warp) {
  __syncwarp();
  merge_lanes(acc, min(team, 32));
  if (team > 32) merge_block(acc, of_warp);
}

// What each thread of a block decided.
__device__ inline void count_of_block(counter* counters, tier t, int decided) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0 && decided != 0) atomicAdd(&total, decided);
  __syncthreads();
  if (threadIdx.x == 0) count_elements(counters, t, total);
}

// A launch that leaves chunks clears what joining them marks.
__device__ inline void clear_marks(const reduce_geometry& g, std::uint32_t* marks, std::int64_t words) {
  if (g.chunks == 1) return;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < words; i += step)
    marks[i] = 0;
}

__device__ inline std::int64_t place_of(const reduce_geometry& g, std::int64_t output, std::int64_t chunk) {
  return g.columns ? chunk * g.outputs + output : output * g.chunks + chunk;
}

// Teams in a warp take as many items each, in turn, as they have lanes, of which then each finishes one.
template <class P>
__global__ void __launch_bounds__(threads, P::resident)
    reduce_rows(const reduce_geometry g, const reduce_parameters p, P* partials, std::uint32_t* marks,
                std::int64_t mark_words, counter* counters) {
  alignas(16) __shared__ unsigned char shared[warps * sizeof(P)];
  clear_marks(g, marks, mark_words);
  const int lane = static_cast<int>(threadIdx.x) & (g.team - 1);
  const int rounds = g.team > 32 ? 1 : g.team;
  const std::int64_t items = g.outputs * g.chunks;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (threads / g.team);
  const int in_warp = g.team > 32 ? 0 : lane_of_thread() / g.team;
  // Of a warp's first team, so that all of its lanes go the same way.
  std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * (threads / g.team) + threadIdx.x / g.team - in_warp;
  int decided = 0;
  while (base < items) {
    P mine;
    std::int64_t item_of_mine = items;
    for (int i = 0; i < rounds && base < items; ++i, base += step) {
      const std::int64_t item = base + in_warp;
      P acc;
      if (item < items) {
        const std::int64_t output = g.chunks == 1 ? item : item / g.chunks;
        const std::int64_t begin = (item - output * g.chunks) * g.chunk_length;
        const std::int64_t end = min(begin + g.chunk_length, g.length);
        take_terms(acc, g, p, row_pointers<P>(g, output), begin, end, g.team, lane);
      }
      merge_team(acc, g.team, reinterpret_cast<P*>(shared));
      if (lane == i) {
        mine = acc;
        item_of_mine = item;
      }
    }
    if (item_of_mine < items) {
      if (g.chunks > 1) {
        partials[item_of_mine] = mine;
      } else {
        decided += finish(mine, g, p, item_of_mine, marks) ? 1 : 0;
      }
    }
    __syncwarp();
  }
  count_of_block(counters, P::decides, decided);
}

// Adds the terms chunk, chunk + g.chunks, ... of two neighbouring outputs of 16 bits, which have one axis of terms.
template <class P>
__device__ void take_pairs(P (&acc)[2], const reduce_geometry& g, const reduce_parameters& p, std::int64_t output,
                           std::int64_t chunk) {
  using T = typename P::element;
  struct alignas(4) pair {
    T of[2];
  };
  const T* const row = row_pointers<P>(g, output).at[0];
  const std::int64_t apart = g.chunks * g.reduced.stride[0][0];
  const auto at = [&](std::int64_t r) { return reinterpret_cast<const pair*>(row + r * g.reduced.stride[0][0]); };
  std::int64_t r = chunk;
  for (; g.length - r > g.chunks * (batch_terms - 1); r += g.chunks * batch_terms) {
    const pair* const from = at(r);
    pair v[batch_terms];
#pragma unroll
    for (int i = 0; i < batch_terms; ++i) v[i] = from[i * (apart / 2)];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float x[batch_terms];
#pragma unroll
      for (int i = 0; i < batch_terms; ++i) x[i] = num::widen_to_float(v[i].of[k]);
      acc[k].take_batch(p, x, x, [&](int i) { return r + i * g.chunks; });
    }
  }
  for (; r < g.length; r += g.chunks) {
    const pair v = *at(r);
    for (int k = 0; k < 2; ++k) acc[k].take(p, num::widen_to_float(v.of[k]), 0, r);
  }
}

template <class P>
__global__ void __launch_bounds__(threads, P::resident)
    reduce_columns(const reduce_geometry g, const reduce_parameters p, P* partials, std::uint32_t* marks,
                   std::int64_t mark_words, counter* counters) {
  clear_marks(g, marks, mark_words);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  const std::int64_t of_chunk = g.paired ? g.outputs / 2 : g.outputs;
  const std::int64_t items = of_chunk * g.chunks;
  int decided = 0;
  const auto settle = [&](const P& acc, std::int64_t chunk, std::int64_t output) {
    if (g.chunks > 1) {
      partials[place_of(g, output, chunk)] = acc;
    } else {
      decided += finish(acc, g, p, output, marks) ? 1 : 0;
    }
  };
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; item < items; item += step) {
    const std::int64_t chunk = g.chunks == 1 ? 0 : item / of_chunk;
    const std::int64_t at = item - chunk * of_chunk;
    if constexpr (sizeof(typename P::element) == 2 && P::inputs == 1) {
      if (g.paired) {
        P acc[2];
        take_pairs(acc, g, p, 2 * at, chunk);
        for (int k = 0; k < 2; ++k) settle(acc[k], chunk, 2 * at + k);
        continue;
      }
    }
    P acc;
    take_terms(acc, g, p, row_pointers<P>(g, at), chunk, g.length, g.chunks, 0);
    settle(acc, chunk, at);
  }
  count_of_block(counters, P::decides, decided);
}

// Joins the chunks of each output: a warp per output.
template <class P>
__global__ void __launch_bounds__(threads) join_chunks(const reduce_geometry g, const reduce_parameters p,
                                                       const P* partials, std::uint32_t* marks, counter* counters) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  int decided = 0;
  for (std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; output < g.outputs;
       output += step) {
    P acc;
    for (std::int64_t c = lane_of_thread(); c < g.chunks; c += 32) acc.merge(partials[place_of(g, output, c)]);
    merge_lanes(acc, 32);
    if (lane_of_thread() == 0) decided += finish(acc, g, p, output, marks) ? 1 : 0;
  }
  count_of_block(counters, P::decides, decided);
}

// A team adds the terms of a chunk to an output. Of the teams that have an output's chunks the last to be done joins them, and its first lane
// calls settle(whether the output is decided).
template <class P, class Settle>
__device__ void take_chunk(const reduce_geometry& g, const reduce_parameters& p, std::int64_t output,
                           std::int64_t chunk, int lane, P* partials, std::uint32_t* arrived, P* of_warp,
                           const Settle& settle) {
  P acc;
  const std::int64_t begin = chunk * g.chunk_length;
  take_terms(acc, g, p, row_pointers<P>(g, output), begin, min(begin + g.chunk_length, g.length), g.team, lane);
  merge_team(acc, g.team, of_warp);
  if (g.chunks > 1) {
    bool last = false;
    if (lane == 0) {
      partials[place_of(g, output, chunk)] = acc;
      __threadfence();
      last = atomicAdd(arrived + output, 1u) + 1 == g.chunks;
    }
    last = g.team > 32 ? __syncthreads_or(last) != 0 : __shfl_sync(full_warp, last, 0);
    if (!last) return;
    __threadfence();
    acc = P();
    for (std::int64_t c = lane; c < g.chunks; c += g.team) acc.merge(partials[place_of(g, output, c)]);
    merge_team(acc, g.team, of_warp);
    if (lane == 0) arrived[output] = 0;
  }
  if (lane == 0) settle(write_result(acc, g, p, output));
  __syncwarp();
}

// Late tiers: warps or blocks work off the marks, g.words at a time, and clear those of what they decide. A mark stays until then, so that every
// chunk's team sees it.
template <class P>
__global__ void __launch_bounds__(threads, repair_blocks)
    repair_rows(const reduce_geometry g, const reduce_parameters p, P* partials, std::uint32_t* marks,
                std::uint32_t* arrived, counter* counters) {
  alignas(16) __shared__ unsigned char shared[warps * sizeof(P)];
  const int lane = static_cast<int>(threadIdx.x) & (g.team - 1);
  const std::int64_t words = (g.outputs + 31) / 32;
  const std::int64_t teams = static_cast<std::int64_t>(gridDim.x) * (threads / g.team);
  const std::int64_t items = (words + g.words - 1) / g.words * g.chunks;
  int decided = 0;
  const auto repair = [&](std::int64_t output, std::int64_t chunk) {
    take_chunk(g, p, output, chunk, lane, partials, arrived, reinterpret_cast<P*>(shared), [&](bool is_decided) {
      if (!is_decided) return;
      atomicAnd(marks + (output >> 5), ~(1u << (output & 31)));
      ++decided;
    });
  };
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * (threads / g.team) + threadIdx.x / g.team;
       item < items; item += teams) {
    const std::int64_t group = item / g.chunks;
    const std::int64_t word = group * g.words + lane_of_thread();
    const std::uint32_t mine = lane_of_thread() < g.words && word < words ? marks[word] : 0;
    for (std::uint32_t undecided = __ballot_sync(full_warp, mine != 0); undecided != 0; undecided &= undecided - 1) {
      const int at = __ffs(static_cast<int>(undecided)) - 1;
      for (std::uint32_t bits = __shfl_sync(full_warp, mine, at); bits != 0; bits &= bits - 1) {
        repair((group * g.words + at) * 32 + __ffs(static_cast<int>(bits)) - 1, item - group * g.chunks);
      }
    }
  }
  count_of_block(counters, P::decides, decided);
}

// Merges the chunks that the first launch left of an output into thread 0's.
template <class P>
__device__ P joined_chunks(const reduce_geometry& g, const P* partials, std::int64_t output, P* of_warp) {
  P acc;
  for (std::int64_t c = threadIdx.x; c < g.chunks; c += threads) acc.merge(partials[place_of(g, output, c)]);
  merge_team(acc, threads, of_warp);
  return acc;
}

// Few long sums: each of the blocks that share an output joins what the first launch left of it, and if that does not decide it, takes a chunk of
// its terms for the next tier; what that leaves is marked.
template <class First, class Next>
__global__ void __launch_bounds__(threads, repair_blocks)
    join_or_repair(const reduce_geometry g, const reduce_parameters p, const First* partials,
                   const reduce_geometry next, const reduce_parameters next_p, Next* next_partials,
                   std::uint32_t* marks, std::uint32_t* arrived, counter* counters) {
  alignas(16) __shared__ unsigned char shared[warps * (sizeof(First) > sizeof(Next) ? sizeof(First) : sizeof(Next))];
  wait_for_former();
  const std::int64_t output = blockIdx.x / next.chunks;
  const std::int64_t chunk = blockIdx.x - output * next.chunks;
  const First acc = joined_chunks(g, partials, output, reinterpret_cast<First*>(shared));
  const bool is_decided = threadIdx.x == 0 && write_result(acc, g, p, output);  // by every block the same
  if (is_decided && chunk == 0) count_elements(counters, First::decides, 1);
  if (__syncthreads_or(is_decided) != 0) return;
  take_chunk(next, next_p, output, chunk, static_cast<int>(threadIdx.x), next_partials, arrived,
             reinterpret_cast<Next*>(shared), [&](bool is_repaired) {
               if (is_repaired) {
                 count_elements(counters, Next::decides, 1);
               } else {
                 atomicOr(marks + (output >> 5), 1u << (output & 31));
               }
             });
}

// Few sums that are not long: a block for each, which reads it or joins its chunks, and goes on to the next tier where one leaves it undecided.
template <class P>
__device__ bool attempt(const reduce_geometry& g, const reduce_parameters& p, const P* partials, unsigned char* shared,
                        bool* decided, counter* counters) {
  const std::int64_t output = blockIdx.x;
  P acc;
  if (partials != nullptr) {
    acc = joined_chunks(g, partials, output, reinterpret_cast<P*>(shared));
  } else {
    take_terms(acc, g, p, row_pointers<P>(g, output), 0, g.length, threads, static_cast<int>(threadIdx.x));
    merge_team(acc, threads, reinterpret_cast<P*>(shared));
  }
  if (threadIdx.x == 0) {
    *decided = write_result(acc, g, p, output);
    count_elements(counters, P::decides, *decided ? 1 : 0);
  }
  __syncthreads();
  return *decided;
}
template <class Fast, class DoubleDouble, class Exact>
__global__ void __launch_bounds__(threads) few_sums(const reduce_geometry g, const reduce_parameters p,
                                                    const Fast* partials, bool force_exact, counter* counters) {
  constexpr std::size_t largest = sizeof(DoubleDouble) > sizeof(Exact) ? sizeof(DoubleDouble) : sizeof(Exact);
  static_assert(sizeof(Fast) <= largest);
  alignas(16) __shared__ unsigned char shared[warps * largest];
  __shared__ bool decided;
  if (attempt<Fast>(g, p, partials, shared, &decided, counters)) return;
  reduce_parameters late = p;
  late.forced = force_exact;
  if constexpr (!std::is_same_v<Fast, DoubleDouble>) {
    if (attempt<DoubleDouble>(g, late, nullptr, shared, &decided, counters)) return;
  }
  attempt<Exact>(g, late, nullptr, shared, &decided, counters);
}

template <class P>
void launch_items(const reduction& r, const reduce_parameters& p, const job& j) {
  const reduce_geometry& g = r.first;
  P* const partials = reinterpret_cast<P*>(r.partials);
  const std::int64_t grid = item_blocks(g, P::resident, j.device);
  if (g.columns) {
    launch_kernel<reduce_columns<P>>(j, grid, threads, 0, g, p, partials, r.marks, r.mark_words, j.counters);
  } else {
    launch_kernel<reduce_rows<P>>(j, grid, threads, 0, g, p, partials, r.marks, r.mark_words, j.counters);
  }
}
template <class P>
void launch_first(const reduction& r, const reduce_parameters& p, const job& j) {
  launch_items<P>(r, p, j);
  if (r.first.chunks == 1) return;
  const unsigned grid = grid_for(j.device, ceil_div(r.first.outputs, warps), 16);
  launch_kernel<join_chunks<P>>(j, grid, threads, 0, r.first, p, reinterpret_cast<const P*>(r.partials), r.marks,
                                j.counters);
}
// How many of an output's chunks are there.
std::uint32_t* arrived_of(const reduction& r) { return r.marks + ceil_div(r.repair.outputs, 32); }
template <class P>
void launch_repair(const reduction& r, const reduce_parameters& p, const job& j) {
  const reduce_geometry& g = r.repair;
  const unsigned grid = repair_grid(g, j.device);
  launch_kernel<repair_rows<P>>(j, grid, threads, 0, g, p, reinterpret_cast<P*>(r.partials), r.marks, arrived_of(r),
                                j.counters);
}

// A thread's own terms, the merges in a team, the chunks of a joining lane, the merges in its warp, a bias.
std::int64_t height_of(std::int64_t terms, std::int64_t chunks) { return terms + 16 + ceil_div(chunks, 32) + 16 + 1; }

// The terms of a thread, or more: a share, and what does not fill a load.
std::int64_t terms_of_thread(const reduce_geometry& g) {
  return g.columns ? ceil_div(g.length, g.chunks) : ceil_div(g.chunk_length, g.team) + 2 * loaded_terms(8, 1);
}

// Of binary64 the first tier is the double-double one.
template <class Fast, class DoubleDouble, class Exact>
void launch_sum(const reduction& r, const job& j) {
  reduce_parameters p = r.p;
  constexpr bool one_tier = std::is_same_v<Fast, DoubleDouble>;
  p.forced = j.first_tier > Fast::decides;
  p.height = height_of(terms_of_thread(r.first), r.first.chunks);
  if (r.is_few) {
    const bool joins = r.first.chunks > 1;
    if (joins) launch_items<Fast>(r, p, j);
    if (!(one_tier && joins))
      p.height = height_of(ceil_div(r.first.length, threads) + (one_tier ? 2 * loaded_terms(8, 1) : 0), 1);
    return launch_kernel<few_sums<Fast, DoubleDouble, Exact>>(
        j, r.first.outputs, threads, 0, r.first, p, joins ? reinterpret_cast<const Fast*>(r.partials) : nullptr,
        j.first_tier > tier::double_double, j.counters);
  }
  if (r.first.chunks == 1) {
    check(cudaMemsetAsync(r.marks, 0, static_cast<std::size_t>(r.mark_words) * 4, j.stream), "reduce",
          "cudaMemsetAsync");
  }
  reduce_parameters late = r.p;
  late.forced = j.first_tier > tier::double_double;
  late.height = height_of(ceil_div(r.repair.chunk_length, r.repair.team), r.repair.chunks);
  using next = std::conditional_t<one_tier, Exact, DoubleDouble>;
  if (r.is_long) {
    launch_items<Fast>(r, p, j);
    launch_kernel<join_or_repair<Fast, next>>(
        j, r.repair.outputs * r.repair.chunks, threads, 0, r.first, p, reinterpret_cast<const Fast*>(r.partials),
        r.repair, late, reinterpret_cast<next*>(r.next_partials), r.marks, arrived_of(r), j.counters);
  } else {
    launch_first<Fast>(r, p, j);
    launch_repair<next>(r, late, j);
  }
  if constexpr (!one_tier) launch_repair<Exact>(r, late, j);
}

template <class T>
void launch_integers(const reduction& r, const job& j) {
  switch (r.op) {
    using enum ops::op_id;
    case sum:
      return launch_first<integer_sum<T, std::int64_t>>(r, r.p, j);
    case mean:
      return launch_first<integer_sum<T, double>>(r, r.p, j);
    case max:
    case min:
      return launch_first<extremum<T>>(r, r.p, j);
    default:  // argmax, argmin: the last ones of integers
      return launch_first<arg_extremum<T>>(r, r.p, j);
  }
}
template <class T>
void launch_numbers(const reduction& r, const job& j) {
  if constexpr (sizeof(T) == 8) {
    if (r.op == ops::op_id::var) return launch_sum<wide_spread, wide_spread, exact_spread>(r, j);
    if (r.is_scaled) {
      return launch_sum<scaled<wide_sum<2>>, scaled<wide_sum<2>>, scaled<exact_sum<2, double>>>(r, j);
    }
  }
  ops::for_operation<ops::family::reduce>(r.op, [&]<class Op>() {
    using enum ops::op_id;
    constexpr int inputs = Op::id == dot || Op::id == prelu_weight_backward ? 2 : 1;
    using fast = typename first_sums<inputs, T>::fast;
    using late = typename first_sums<inputs, T>::late;
    using exact = exact_sum<inputs, T>;
    if constexpr (Op::id == ops::op_id::dot) {
      launch_sum<fast, late, exact>(r, j);
    } else if constexpr (Op::id == ops::op_id::prelu_weight_backward) {
      launch_sum<without_positive<fast>, without_positive<late>, without_positive<exact>>(r, j);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::sum, ops::op_id::mean>) {
      if constexpr (Op::id == ops::op_id::sum) {
        if (r.magnitudes) return launch_sum<of_magnitudes<fast>, of_magnitudes<late>, of_magnitudes<exact>>(r, j);
      }
      launch_sum<fast, late, exact>(r, j);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::argmax, ops::op_id::argmin>) {
      launch_first<arg_extremum<T>>(r, r.p, j);
    } else if constexpr (ops::is_one_of<Op, ops::op_id::max, ops::op_id::min>) {
      if (r.magnitudes) return launch_first<of_magnitudes<extremum<T>>>(r, r.p, j);
      launch_first<extremum<T>>(r, r.p, j);
    } else if constexpr (!ops::is_one_of<Op, ops::op_id::sum_squares,
                                         ops::op_id::vector_norm>) {  // plans of the others
      static_assert(ops::has_no_case<Op>, "a reduction without a kernel");
    }
  });
}

}  // namespace

template <class T>
void launch_reduction(const reduction& r, const job& j) {
  if constexpr (std::is_integral_v<T>) {
    launch_integers<T>(r, j);
  } else {
    launch_numbers<T>(r, j);
  }
}

}  // namespace repdl::cuda
