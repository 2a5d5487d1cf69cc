// The later tiers of convolutions, for the outputs that the binary64 tier marked: double-double with the lattice rule,
// then exact integers. Here absent terms are skipped, and all indices have 64 bits.
#include "backends/cuda/product/conv_terms.cuh"
#include "backends/cuda/product/exact_dot.cuh"

namespace repdl::cuda::conv {
namespace {

// Synchronises the threads of an output.
template <int Group>
__device__ void wait_for_group() {
  if constexpr (Group == 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

// In shared memory, which no constructor initialises: kernels declare bytes.
template <int Group, class N>
struct group_state {
  view v;
  walk w;
  dot_sum<N> sums[Group / 32];
  exact_products<N> exact[Group / 32];
  std::uint32_t words[Group];
};

// The view of a product and its walk, by all threads of a group.
template <int Group, class N>
__device__ void enter(group_state<Group, N>& state, const problem& p, std::int64_t product, int rank) {
  wait_for_group<Group>();
  make_view(state.v, p, product, rank, Group, [] { wait_for_group<Group>(); });
  state.w.describe(state.v, Group, rank);
  wait_for_group<Group>();
}

// The sum of an output's terms first .. end - 1, in all threads of the group.
template <int Group, class N>
__device__ dot_sum<N> double_double(group_state<Group, N>& state, std::int64_t row, std::int64_t col, int rank,
                                    std::int64_t first, std::int64_t end) {
  dot_sum<N> sum;
  terms t(state.v, state.w, row, col, first + rank, end, Group);
  while (t.more()) {
    // Loads first: most of the time is their latency.
    constexpr int together = 4;
    N x[together];
    N y[together];
    bool there[together];
#pragma unroll
    for (int i = 0; i < together; ++i) there[i] = t.more() && t.next(x[i], y[i]);
#pragma unroll
    for (int i = 0; i < together; ++i) {
      if (there[i]) sum.add_product(x[i], y[i]);
    }
  }
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) sum.merge_lanes(distance);
  if constexpr (Group > 32) {
    if (rank % 32 == 0) state.sums[rank / 32] = sum;
    __syncthreads();
    sum = state.sums[0];
    for (int w = 1; w < Group / 32; ++w) sum.merge(state.sums[w]);
    __syncthreads();
  }
  return sum;
}

// With the bias, and rounded. `height`: additions on a term's path so far.
template <class Out, class N>
__device__ num::decided_value<Out> round(dot_sum<N> sum, const view& v, std::int64_t row, std::int64_t height) {
  if (v.bias != nullptr) sum.add_bias(v.bias_of<N>(row));
  return sum.template finish<Out>(height + 1, v.k + (std::int64_t{1} << 16));  // merging lanes and chunks included
}

template <class Out>
__device__ void store(const view& v, std::int64_t row, std::int64_t col, Out x) {
  static_cast<Out*>(v.result)[v.out.outer.offset_at(v.row.split(row)) + v.out.inner.offset_at(v.col.split(col))] = x;
}

template <class Out, int Group, class N>
__device__ __noinline__ Out exact(group_state<Group, N>& state, std::int64_t row, std::int64_t col, int rank) {
  const view& v = state.v;
  exact_products<N> sum;
  for (terms t(v, state.w, row, col, rank, v.k, Group); t.more();) {
    N x;
    N y;
    if (t.next(x, y)) sum.add_product(x, y);
  }
  if (v.bias != nullptr && rank == 0) sum.add(v.bias_of<N>(row));
  sum.merge_lanes();
  if constexpr (Group > 32) {
    if (rank % 32 == 0) state.exact[rank / 32] = sum;
    __syncthreads();
    sum = state.exact[0];
    for (int w = 1; w < Group / 32; ++w) sum.merge(state.exact[w]);
    __syncthreads();
  }
  return sum.template round<Out>();
}

struct output_index {
  std::int64_t product, row, col;
  __device__ output_index(const problem& p, std::int64_t entry) {
    const std::int64_t word = entry / 32;
    const std::int64_t product_row = word / p.marks.words_per_row;
    col = entry - product_row * p.marks.words_per_row * 32;
    product = product_row / p.m;
    row = product_row - product * p.m;
  }
};

__device__ inline std::int64_t listed_outputs(const problem& p) {
  return min(static_cast<std::int64_t>(*p.marks.listed), p.marks.capacity);
}

// Writes a listed output, or leaves it to the exact tier.
template <class Out>
__device__ void settle(const problem& p, const view& v, const output_index& at, std::int64_t entry,
                       const num::decided_value<Out>& result) {
  if (result.decided) {
    store(v, at.row, at.col, result.value);
  } else {
    p.marks.add_to_bitmap(entry, 1u);
  }
}

// The double-double tier of the listed outputs, a warp for each part of k of each.
template <class Out>
__global__ void __launch_bounds__(256) list_kernel(const __grid_constant__ problem p, counter* counters) {
  using group = group_state<32, number_of<Out>>;
  alignas(group) __shared__ unsigned char states[8 * sizeof(group)];
  group& state = reinterpret_cast<group*>(states)[threadIdx.x / 32];
  const int lane = lane_of_thread();
  const std::int64_t items = listed_outputs(p) * p.marks.chunks;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * 8;
  std::int64_t of_view = -1;
  std::int64_t decided = 0;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32; item < items; item += warps) {
    const std::int64_t entry = p.marks.list[item / p.marks.chunks];
    const std::int64_t chunk = item % p.marks.chunks;
    const output_index at(p, entry);
    if (at.product != of_view) {
      of_view = at.product;
      enter(state, p, at.product, lane);
    }
    const view& v = state.v;
    const std::int64_t length = (v.k + p.marks.chunks - 1) / p.marks.chunks;
    const std::int64_t first = chunk * length;
    const dot_sum<number_of<Out>> sum = double_double(state, at.row, at.col, lane, first, min(v.k, first + length));
    if (p.marks.chunks > 1) {
      if (lane == 0) reinterpret_cast<dot_sum<number_of<Out>>*>(p.marks.partial)[item] = sum;
    } else {
      const num::decided_value<Out> result = round<Out>(sum, v, at.row, length / 32 + 8);
      decided += result.decided ? 1 : 0;
      if (lane == 0) settle(p, v, at, entry, result);
    }
  }
  if (lane == 0) count_elements(counters, tier::double_double, decided);
}

template <class Out>
__global__ void __launch_bounds__(256) finish_list_kernel(const __grid_constant__ problem p, counter* counters) {
  __shared__ view views[8];
  view& v = views[threadIdx.x / 32];
  const int lane = lane_of_thread();
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * 8;
  std::int64_t decided = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / 32; i < listed_outputs(p);
       i += warps) {
    const std::int64_t entry = p.marks.list[i];
    const output_index at(p, entry);
    __syncwarp();
    make_view(v, p, at.product, lane, 32, [] { __syncwarp(); });
    using sum_of_part = dot_sum<number_of<Out>>;
    const sum_of_part* const parts = reinterpret_cast<const sum_of_part*>(p.marks.partial) + i * p.marks.chunks;
    sum_of_part sum;
    for (std::int64_t chunk = lane; chunk < p.marks.chunks; chunk += 32) sum.merge(parts[chunk]);
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) sum.merge_lanes(distance);
    const num::decided_value<Out> result =
        round<Out>(sum, v, at.row, v.k / p.marks.chunks / 32 + p.marks.chunks / 32 + 16);
    decided += result.decided ? 1 : 0;
    if (lane == 0) settle(p, v, at, entry, result);
  }
  if (lane == 0) count_elements(counters, tier::double_double, decided);
}

// A group of threads (a warp or a block) looks at as many words of the bitmap at a time, far apart, because undecided
// outputs like company; and works off their bits one after the other.
template <int Group, class Out>
__global__ void __launch_bounds__(256) repair_kernel(const __grid_constant__ problem p, counter* counters) {
  if (p.marks.listed[1] == 0) return;
  constexpr int groups = 256 / Group;
  using group = group_state<Group, number_of<Out>>;
  alignas(group) __shared__ unsigned char states[groups * sizeof(group)];
  group& state = reinterpret_cast<group*>(states)[threadIdx.x / Group];
  const int rank = static_cast<int>(threadIdx.x % Group);
  const std::int64_t all_groups = static_cast<std::int64_t>(gridDim.x) * groups;
  const std::int64_t words = p.products() * p.m * p.marks.words_per_row;
  const bool skip_dd = p.first_tier > tier::double_double;
  std::int64_t of_view = -1;
  std::int64_t count_dd = 0;
  std::int64_t count_exact = 0;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * groups + threadIdx.x / Group; first < words;
       first += all_groups * Group) {
    const std::int64_t mine = first + rank * all_groups;
    const std::uint32_t word = mine < words ? p.marks.bitmap[mine] : 0;
    if constexpr (Group == 32) {
      if (!__any_sync(full_warp, word != 0)) continue;
    } else {
      if (!__syncthreads_or(word != 0)) continue;
    }
    state.words[rank] = word;
    wait_for_group<Group>();
    for (int i = 0; i < Group; ++i) {
      std::uint32_t bits = state.words[i];
      if (bits == 0) continue;
      const std::int64_t at = first + i * all_groups;
      const std::int64_t product = at / p.marks.words_per_row / p.m;
      const std::int64_t row = at / p.marks.words_per_row % p.m;
      if (product != of_view) {
        of_view = product;
        enter(state, p, product, rank);
      }
      const view& v = state.v;
      for (; bits != 0; bits &= bits - 1) {
        const std::int64_t col = at % p.marks.words_per_row * 32 + (__ffs(static_cast<int>(bits)) - 1);
        if (col >= v.n) break;
        const index4 r = v.row.split(row);
        const index4 c = v.col.split(col);
        if (v.out.outer.y_at(r) + v.out.inner.y_at(c) >= v.out.h) continue;
        if (v.out.outer.x_at(r) + v.out.inner.x_at(c) >= v.out.w) continue;
        num::decided_value<Out> result = {Out{}, false};
        if (!skip_dd) {
          const dot_sum<number_of<Out>> sum = double_double(state, row, col, rank, 0, v.k);
          result = round<Out>(sum, v, row, (v.k + Group - 1) / Group + Group / 32 + 8);
        }
        if (result.decided) {
          ++count_dd;
        } else {
          result.value = exact<Out>(state, row, col, rank);
          ++count_exact;
        }
        if (rank == 0) store(v, row, col, result.value);
      }
    }
    wait_for_group<Group>();
  }
  if (rank == 0) {
    count_elements(counters, tier::double_double, count_dd);
    count_elements(counters, tier::exact, count_exact);
  }
}

}  // namespace

void take_marks(problem& p, carver& c) {
  static_assert(sizeof(dot_sum<float>) <= 4 * sizeof(double));
  undecided_marks& m = p.marks;
  c.take(m.listed, 2);
  c.take(m.bitmap, p.products(), p.m, m.words_per_row);
  const repair_cut cut = cut_repair(p.size());
  m.chunks = cut.chunks;
  m.capacity = cut.capacity;
  c.take(m.list, m.capacity);
  c.take(m.partial, m.chunks > 1 ? m.capacity : 0, m.chunks, 4);
}

void clear_marks(const problem& p, const job& j) {
  // The counts and the bitmap lie side by side.
  const std::int64_t words = p.products() * p.m * p.marks.words_per_row;
  const auto bytes = static_cast<std::size_t>(reinterpret_cast<std::byte*>(p.marks.bitmap + words) -
                                              reinterpret_cast<std::byte*>(p.marks.listed));
  check(cudaMemsetAsync(p.marks.listed, 0, bytes, j.stream), "conv", "cudaMemsetAsync");
}

void mark_all(const problem& p, const job& j) {
  const std::int64_t words = p.products() * p.m * p.marks.words_per_row;
  check(cudaMemsetAsync(p.marks.bitmap, 0xff, static_cast<std::size_t>(words) * 4, j.stream), "conv",
        "cudaMemsetAsync");
  check(cudaMemsetAsync(p.marks.listed + 1, 0xff, sizeof(*p.marks.listed), j.stream), "conv", "cudaMemsetAsync");
}

void repair(const problem& p, const job& j) {
  const undecided_marks& m = p.marks;
  with_result(p, [&]<class Out>() {
    if constexpr (sizeof(Out) < 8) {  // of f64 there is no list
      if (m.capacity > 0) {
        launch_kernel<list_kernel<Out>>(j, grid_for(j.device, ceil_div(m.capacity * m.chunks, 8), 8), 256, 0, p,
                                        j.counters);
        if (m.chunks > 1) {
          launch_kernel<finish_list_kernel<Out>>(j, grid_for(j.device, ceil_div(m.capacity, 8), 8), 256, 0, p,
                                                 j.counters);
        }
      }
    }
    const std::int64_t words = p.products() * p.m * m.words_per_row;
    if (p.k > 8192) {
      launch_kernel<repair_kernel<256, Out>>(j, grid_for(j.device, words, 8), 256, 0, p, j.counters);
    } else {
      launch_kernel<repair_kernel<32, Out>>(j, grid_for(j.device, ceil_div(words, 8), 8), 256, 0, p, j.counters);
    }
  });
}

}  // namespace repdl::cuda::conv
