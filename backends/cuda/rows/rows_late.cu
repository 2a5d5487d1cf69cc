// The late tiers of rows: wide numbers, balls of 256 bits, balls of 512. Of rows that binary64 left undecided it is asked again, with the
// numbers that it had. A row of up to 4096 elements is then decided by a block in one launch; where there are few of them, they are
// computed in that launch, too. Of longer ones a block has a chunk. Where the last level decides everything the call is one launch: the block
// that is the last one of a row to be done goes on with the row. Else each level is two launches: sums, and what this level decides that those
// before it do not, in which a block has a row, or, where too many outputs of it are undecided for a list, a chunk.
#include "backends/cuda/rows/rows_chunks.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = late_threads;
constexpr int warps = threads / 32;
// Rows of any format: late tiers are few, and their numbers wide.
template <op_id Op>
using row_anywhere = row_site<Op, any_format>;

constexpr int sum_threads = 256;  // rows with undecided outputs are few: what a thread does takes the time

__device__ bool runs(const row_geometry& g, int level) { return (g.levels >> static_cast<unsigned>(level) & 1u) != 0; }
__device__ tier tier_of(int level) { return level == 0 ? tier::double_double : tier::exact; }

// The sums of elements [begin, end) in an arithmetic, by a block. In registers, if they are not too many: not in what it is given.
template <op_id Op, int Level, int Threads>
__device__ __noinline__ void late_sums_of(late_sums<Op, Level>& to, const row_geometry& g, const row_anywhere<Op>& at,
                                          float top, std::int64_t begin, std::int64_t end, std::byte* scratch) {
  constexpr int summed = device_rule<Op>::summed;
  constexpr int ahead = 4;
  late_sums<Op, Level> s{};
  num::start_sums(s, static_cast<double>(top), call_of(g));
  const auto add = [&](const row_values<summed>& v) {
    [&]<int... K>(std::integer_sequence<int, K...>) { s.add(static_cast<double>(v.x[K])...); }
    (std::make_integer_sequence<int, summed>{});
  };
  std::int64_t j = begin + threadIdx.x;
  for (; j + (ahead - 1) * Threads < end; j += ahead * Threads) {
    row_values<summed> v[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) v[i] = at.template values<summed>(g, j + i * Threads);
#pragma unroll 1
    for (int i = 0; i < ahead; ++i) {
      add(v[0]);
#pragma unroll
      for (int k = 1; k < ahead; ++k) v[k - 1] = v[k];
    }
  }
  for (; j < end; j += Threads) add(at.template values<summed>(g, j));
  __syncwarp();
  over_block<Threads>(s, scratch, [](auto& a, const auto& b) { a.merge(b); });
  to = s;
}

template <op_id Op, int Level>
__device__ __noinline__ num::certified settle(const row_geometry& g, const num::row_call& call,
                                              const num::row_operands& o, const late_sums<Op, Level>& s, const float* x,
                                              int what) {
  const dtype to = type_of_output(g, device_rule<Op>::has_exception ? 0 : what);
  return device_rule<Op>::template settle<late_arithmetic<Op, Level>>(to, call, o, s, x, what);
}

template <op_id Op>
inline constexpr std::size_t late_bytes = std::max({sizeof(late_sums<Op, 0>), sizeof(late_sums<Op, 1>),
                                                    sizeof(late_sums<Op, 2>)});
// The sums of a level among those of all.
template <op_id Op, int Level>
__device__ late_sums<Op, Level>* chunk_sums(std::byte* sums, const row_geometry& g) {
  constexpr std::size_t before =
      (Level > 0 ? sizeof(late_sums<Op, 0>) : 0) + (Level > 1 ? sizeof(late_sums<Op, 1>) : 0);
  return reinterpret_cast<late_sums<Op, Level>*>(sums +
                                                 before * static_cast<std::size_t>(g.rows * chunks_of(g, late_chunk)));
}

// num::with_format for what is of the device alone.
template <class F>
__device__ void in_format(dtype type, F&& f) {
  if (type == dtype::f16) return f.template operator()<f16>();
  if (type == dtype::bf16) return f.template operator()<bf16>();
  f.template operator()<float>();
}

// Output i of a row: of element i, or, after those of all elements, a result.
template <op_id Op>
struct row_output {
  using rule = device_rule<Op>;
  bool wanted;
  int what;  // settle's
  row_values<num::elements_of<rule>> of{};

  // How many there are, results wanted or not.
  __device__ static std::int64_t elements(const row_geometry& g) { return rule::per_element ? g.length : 0; }
  __device__ static std::int64_t all(const row_geometry& g) { return elements(g) + rule::results; }

  __device__ row_output(const row_geometry& g, const row_anywhere<Op>& at, const row_state<Op>& s, std::int64_t i) {
    if constexpr (rule::per_element) {
      if (i < g.length) {
        wanted = true;
        what = rule::has_exception && i == s.o.target ? 1 : 0;
        of = at.values(g, i);
        return;
      }
    }
    wanted = false;
    for_each_of<rule::results>([&]<int K>() {
      if (i - elements(g) == K) wanted = at.template wants<K>(g);
    });
    what = static_cast<int>(i - elements(g)) + (rule::per_element ? 1 : 0);
  }
  __device__ void set(const row_geometry& g, const row_anywhere<Op>& at, std::int64_t i, float v) const {
    if constexpr (rule::per_element) {
      if (i < g.length) return at.set(g, i, v);
    }
    for_each_of<rule::results>([&]<int K>() {
      if (i - elements(g) == K) at.template set_result<K>(g, v);
    });
  }
  // Whether binary64 leaves it undecided. What it decides is written, again.
  template <class Numbers, class Row>
  __device__ bool is_undecided(const row_geometry& g, const num::row_call& call, const row_anywhere<Op>& at,
                               const row_state<Op>& s, const Numbers& numbers, const Row& row, std::int64_t i) const {
    if (!wanted) return false;
    num::certified v{};
    if (i < elements(g)) {
      if constexpr (rule::per_element) {
        in_format(g.type, [&]<class T>() {
          const num::verdict<double> y = output_of<Op, T>(call, s, numbers, row, i, of.x);
          v = {y.value, !y.undecided};
        });
      }
    } else {
      if constexpr (rule::results != 0) v = result_of<Op>(g, call, s, numbers, static_cast<int>(i - elements(g)));
    }
    if (v.decided) set(g, at, i, v.value);
    return !v.decided;
  }
};

// One level's try at the undecided outputs of a row; whether this thread leaves one undecided.
template <op_id Op, int Level>
__device__ bool try_level(const row_geometry& g, const num::row_call& call, const row_anywhere<Op>& at,
                          const row_state<Op>& state, std::uint32_t* undecided, std::byte* scratch, counter* counters) {
  late_sums<Op, Level> s;
  late_sums_of<Op, Level, threads>(s, g, at, state.top, 0, g.length, scratch);
  int decided = 0;
  bool left = false;
  for (std::int64_t i = threadIdx.x; i < row_output<Op>::all(g); i += threads) {
    const std::uint32_t bit = 1u << static_cast<unsigned>(i & 31);
    if ((undecided[i / 32] & bit) == 0) continue;
    const row_output<Op> y(g, at, state, i);
    const num::certified c = settle<Op, Level>(g, call, state.o, s, y.of.x, y.what);
    left |= !c.decided;
    if (!c.decided) continue;
    y.set(g, at, i, c.value);
    atomicAnd(undecided + i / 32, ~bit);
    ++decided;
  }
  __syncwarp();
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier_of(Level), decided);
  return left;
}

// A block's, for a row of up to late_chunk elements.
template <op_id Op>
struct late_memory {
  std::uint32_t undecided[late_chunk / 32 + 1];  // a bit for each output
  alignas(16) std::byte scratch[warps * late_bytes<Op>];
};

// All that the tiers can do for a row that does not fill, by a block. What binary64 decides is written; the number of such outputs of this
// thread.
template <op_id Op>
__device__ int settle_row(const row_geometry& g, const num::row_call& call, const row_anywhere<Op>& at,
                          const row_state<Op>& state, const known_row<Op>& known, late_memory<Op>& m,
                          counter* counters) {
  const auto whole = whole_of(known.sums);
  const auto numbers = numbers_of<Op>(call, state, whole);
  const std::int64_t all = row_output<Op>::all(g);
  __syncthreads();
  int decided = 0;
  bool left = false;
  for (std::int64_t i = threadIdx.x; i - lane_of_thread() < all; i += threads) {
    bool asked = false;
    if (i < all) {
      const row_output<Op> y(g, at, state, i);
      asked = y.is_undecided(g, call, at, state, numbers, whole, i);
      decided += y.wanted && !asked ? 1 : 0;
    }
    const unsigned word = __ballot_sync(full_warp, asked);
    if (lane_of_thread() == 0) m.undecided[i / 32] = word;
    left |= asked;
  }
  if (__syncthreads_or(left ? 1 : 0) == 0) return decided;
  if (runs(g, 0)) left = try_level<Op, 0>(g, call, at, state, m.undecided, m.scratch, counters);
  if (__syncthreads_or(left ? 1 : 0) != 0 && runs(g, 1)) {
    left = try_level<Op, 1>(g, call, at, state, m.undecided, m.scratch, counters);
  }
  if constexpr (late_levels < Op >> 2) {
    if (__syncthreads_or(left ? 1 : 0) != 0 && runs(g, 2)) {
      try_level<Op, 2>(g, call, at, state, m.undecided, m.scratch, counters);
    }
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i * 32 < all; i += threads) {
    if (m.undecided[i] != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(__popc(m.undecided[i])));
  }
  return decided;
}

// Rows that binary64 left undecided.
template <op_id Op>
__global__ void __launch_bounds__(threads) late_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  __shared__ late_memory<Op> m;
  wait_for_former();
  const undecided_list list = g.list(0);
  const auto rows = static_cast<std::int64_t>(*list.count);
  const num::row_call call = call_of(g);
  if (g.levels == 0) {  // nothing is to be tried
    if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(counters + undecided_counter, static_cast<counter>(rows));
    return;
  }
  for (std::int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const row_anywhere<Op> at(g, list.rows[index]);
    const known_row<Op> known = known_of<Op>(g, at.row());
    settle_row<Op>(g, call, at, state_of(g, call, at, known.top), known, m, counters);
  }
}

// All tiers of few rows, a block for each.
template <op_id Op>
__global__ void __launch_bounds__(threads) few_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using rule = device_rule<Op>;
  __shared__ late_memory<Op> m;
  const num::row_call call = call_of(g);
  const row_anywhere<Op> at(g, blockIdx.x);
  float top = least_top(g, at);
  if constexpr (rule::look == num::row_look::greatest) {
    for (std::int64_t j = threadIdx.x; j < g.length; j += threads) top = max_or_nan(top, at.template value<0>(g, j));
    __syncwarp();
    over_block<threads>(top, m.scratch, [](float& a, float b) { a = max_or_nan(a, b); });
  }
  const row_state<Op> state = state_of(g, call, at, top);
  row_tally tally;
  if (state.c.fills) {
    if constexpr (rule::per_element) fill_elements(g, at, state.c.value, threadIdx.x, threads, g.length, tally);
    for_each_of<rule::results>([&]<int K>() {
      if (threadIdx.x != 0 || !at.template wants<K>(g)) return;
      at.template set_result<K>(g, state.c.value);
      ++tally.proved;
    });
  } else {
    static_assert(sizeof(typename rule::template sums<double>) <= late_bytes<Op>);
    typename rule::template sums<double> sums;
    for (std::int64_t j = threadIdx.x; j < g.length; j += threads) {
      add_element<Op>(sums, at.template values<rule::summed>(g, j).x, state.top);
    }
    __syncwarp();
    over_block<threads>(sums, m.scratch, [](auto& a, const auto& b) { a.merge(b); });
    known_row<Op> known{{}, state.top};
    known.sums.join(sums);
    tally.decided = settle_row<Op>(g, call, at, state, known, m, counters);
  }
  __syncwarp();
  count_rows_decided(counters, tally);
}

// -------------------------------------------------------------------------------------------------------- rows in chunks

// What the levels before this one left undecided: of those that run, the last has a list of its own.
__device__ undecided_list list_before(const row_geometry& g, int level) {
  const unsigned before = g.levels & ((1u << static_cast<unsigned>(level)) - 1u);
  return g.list(before == 0 ? 0 : 32 - __clz(static_cast<int>(before)));
}

// A chunk's sums, kept by the first thread of a block.
template <op_id Op, int Level>
__device__ void add_chunk(const row_geometry& g, std::byte* sums, std::int64_t row, std::int64_t begin,
                          std::int64_t end, std::byte* scratch) {
  late_sums<Op, Level> s;
  __syncthreads();
  late_sums_of<Op, Level, sum_threads>(s, g, row_anywhere<Op>(g, row), known_of<Op>(g, row).top, begin, end, scratch);
  if (threadIdx.x == 0) chunk_sums<Op, Level>(sums, g)[row * chunks_of(g, late_chunk) + begin / late_chunk] = s;
}

template <op_id Op, int Level>
__global__ void __launch_bounds__(sum_threads)
    late_sum_kernel(const __grid_constant__ row_geometry g, std::byte* sums) {
  alignas(16) __shared__ std::byte scratch[sum_threads / 32 * late_bytes<Op>];
  wait_for_former();
  const undecided_list list = list_before(g, Level);
  for_chunks(g, late_chunk, static_cast<std::int64_t>(*list.count),
             [&](std::int64_t, std::int64_t index, std::int64_t begin, std::int64_t end) {
               add_chunk<Op, Level>(g, sums, list.rows[index], begin, end, scratch);
             });
}

// The sums of a row from those of its chunks, in every thread.
template <op_id Op, int Level, int Threads>
__device__ __noinline__ void join_chunks(late_sums<Op, Level>& s, const row_geometry& g, std::byte* sums,
                                         std::int64_t row, float top, std::byte* scratch) {
  const std::int64_t chunks = chunks_of(g, late_chunk);
  const late_sums<Op, Level>* const parts = chunk_sums<Op, Level>(sums, g) + row * chunks;
  s = late_sums<Op, Level>{};
  num::start_sums(s, static_cast<double>(top), call_of(g));
  for (std::int64_t c = threadIdx.x; c < chunks; c += Threads) s.merge(parts[c]);
  __syncwarp();
  over_block<Threads>(s, scratch, [](auto& a, const auto& b) { a.merge(b); });
}

template <op_id Op, int Level>
__global__ void __launch_bounds__(threads)
    late_settle_kernel(const __grid_constant__ row_geometry g, std::byte* sums, counter* counters) {
  alignas(16) __shared__ std::byte scratch[warps * late_bytes<Op>];
  wait_for_former();
  const undecided_list list = list_before(g, Level);
  const bool last = (g.levels >> static_cast<unsigned>(Level + 1)) == 0;
  const num::row_call call = call_of(g);
  int decided = 0;
  const auto settle_chunk = [&](std::int64_t, std::int64_t index, std::int64_t begin, std::int64_t end) {
    const std::int64_t row = list.rows[index];
    const unsigned listed = g.undecided_count[row];
    const bool few = listed <= most_listed;
    // Results are beside the last elements.
    const bool results = device_rule<Op>::results != 0 && end == g.length;
    if (few ? begin != 0 : !device_rule<Op>::per_element && !results) return;
    const row_anywhere<Op> at(g, row);
    const known_row<Op> known = known_of<Op>(g, row);
    const row_state<Op> state = state_of(g, call, at, known.top);
    const auto whole = whole_of(known.sums);
    const auto numbers = numbers_of<Op>(call, state, whole);
    __syncthreads();
    late_sums<Op, 0> s0;
    late_sums<Op, Level >= 1 ? 1 : 0> s1;
    late_sums<Op, Level> s;
    if (Level > 0 && runs(g, 0)) join_chunks<Op, 0, threads>(s0, g, sums, row, known.top, scratch);
    if (Level > 1 && runs(g, 1)) join_chunks<Op, Level >= 1 ? 1 : 0, threads>(s1, g, sums, row, known.top, scratch);
    join_chunks<Op, Level, threads>(s, g, sums, row, known.top, scratch);
    const std::int64_t first = few || !device_rule<Op>::per_element ? 0 : begin;
    const std::int64_t past = few ? listed : results ? row_output<Op>::all(g) : end;
    for (std::int64_t k = first + threadIdx.x; k < past; k += threads) {
      const std::int64_t i = few ? g.undecided[row].of[k] : k;
      const row_output<Op> y(g, at, state, i);
      if (!few && !y.is_undecided(g, call, at, state, numbers, whole, i)) continue;
      if (Level > 0 && runs(g, 0) && settle<Op, 0>(g, call, state.o, s0, y.of.x, y.what).decided) continue;
      if constexpr (Level > 1) {
        if (runs(g, 1) && settle<Op, 1>(g, call, state.o, s1, y.of.x, y.what).decided) continue;
      }
      const num::certified c = settle<Op, Level>(g, call, state.o, s, y.of.x, y.what);
      if (c.decided) {
        y.set(g, at, i, c.value);
        ++decided;
      } else if (last) {
        atomicAdd(counters + undecided_counter, counter{1});
      } else {
        g.list(Level + 1).add(row);
      }
    }
    __syncwarp();
  };
  for_chunks(g, late_chunk, static_cast<std::int64_t>(*list.count), settle_chunk);
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) count_elements(counters, tier_of(Level), decided);
}

// Decides what binary64 left of a row, by a block, from the sums of its chunks at the first level that runs; what that leaves, if it is not the
// last one, from its elements.
template <op_id Op, int First>
__device__ void decide_row(const row_geometry& g, const num::row_call& call, std::byte* sums, std::int64_t row,
                           std::byte* scratch, counter* counters) {
  const unsigned listed = g.undecided_count[row];
  const bool few = listed <= most_listed;
  const row_anywhere<Op> at(g, row);
  const known_row<Op> known = known_of<Op>(g, row);
  const row_state<Op> state = state_of(g, call, at, known.top);
  const auto whole = whole_of(known.sums);
  const auto numbers = numbers_of<Op>(call, state, whole);
  // Every undecided output that is not `decided` before, by a level; whether this thread leaves one.
  const auto decide = [&]<int Level>(const late_sums<Op, Level>& s, auto&& decided_before) {
    int decided = 0, left = 0;
    const std::int64_t all = few ? listed : row_output<Op>::all(g);
    for (std::int64_t k = threadIdx.x; k < all; k += sum_threads) {
      const std::int64_t i = few ? g.undecided[row].of[k] : k;
      const row_output<Op> y(g, at, state, i);
      if (!few && !y.is_undecided(g, call, at, state, numbers, whole, i)) continue;
      if (decided_before(y)) continue;
      const num::certified c = settle<Op, Level>(g, call, state.o, s, y.of.x, y.what);
      if (c.decided) y.set(g, at, i, c.value);
      ++(c.decided ? decided : left);
    }
    __syncwarp();
    decided = __reduce_add_sync(full_warp, decided);
    if (lane_of_thread() == 0) count_elements(counters, tier_of(Level), decided);
    return left;
  };
  late_sums<Op, First> s;
  join_chunks<Op, First, sum_threads>(s, g, sums, row, known.top, scratch);
  int left = decide.template operator()<First>(s, [](const row_output<Op>&) { return false; });
  if constexpr (First == 0) {
    if (__syncthreads_or(left) == 0 || !runs(g, 1)) return;
    late_sums<Op, 1> all;
    late_sums_of<Op, 1, sum_threads>(all, g, at, known.top, 0, g.length, scratch);
    left = decide.template operator()<1>(
        all, [&](const row_output<Op>& y) { return settle<Op, 0>(g, call, state.o, s, y.of.x, y.what).decided; });
  }
  if (left != 0) atomicAdd(counters + undecided_counter, static_cast<counter>(left));
}

// Whether the block is the last one of those that have chunks of a row; it then sees the others' sums.
__device__ inline bool is_last_of_row(const row_geometry& g, std::int64_t row) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(g.chunks_done + row, 1u) == static_cast<unsigned>(chunks_of(g, late_chunk) - 1);
    __threadfence();
  }
  __syncthreads();
  return last;
}

template <op_id Op>
__global__ void __launch_bounds__(sum_threads)
    late_rows_kernel(const __grid_constant__ row_geometry g, std::byte* sums, counter* counters) {
  alignas(16) __shared__ std::byte scratch[sum_threads / 32 * late_bytes<Op>];
  wait_for_former();
  const undecided_list list = g.list(0);
  const num::row_call call = call_of(g);
  const auto one_level = [&]<int First>() {
    for_chunks(g, late_chunk, static_cast<std::int64_t>(*list.count),
               [&](std::int64_t, std::int64_t index, std::int64_t begin, std::int64_t end) {
                 const std::int64_t row = list.rows[index];
                 add_chunk<Op, First>(g, sums, row, begin, end, scratch);
                 if (is_last_of_row(g, row)) decide_row<Op, First>(g, call, sums, row, scratch, counters);
               });
  };
  if (runs(g, 0)) {
    one_level.template operator()<0>();
  } else {
    one_level.template operator()<1>();
  }
}

template <op_id Op, int Level>
void launch_level(const row_geometry& g, std::byte* sums, unsigned grid, const job& j) {
  if constexpr (Level < late_levels<Op>) {
    if ((g.levels >> static_cast<unsigned>(Level) & 1u) == 0) return;
    launch_behind<late_sum_kernel<Op, Level>>(j, grid, sum_threads, g, sums);
    launch_behind<late_settle_kernel<Op, Level>>(j, grid, threads, g, sums, j.counters);
  }
}

template <op_id Op>
void launch(const row_geometry& g, std::byte* sums, const job& j) {
  const unsigned grid = grid_for(j.device, g.rows * chunks_of(g, late_chunk), decides_all<Op> ? 1 : 4);
  if (g.length <= late_chunk || g.levels == 0) {
    launch_behind<late_kernel<Op>>(j, grid, threads, g, j.counters);
  } else if constexpr (decides_all<Op>) {
    launch_behind<late_rows_kernel<Op>>(j, grid, sum_threads, g, sums, j.counters);
  } else {
    launch_level<Op, 0>(g, sums, grid, j);
    launch_level<Op, 1>(g, sums, grid, j);
    launch_level<Op, 2>(g, sums, grid, j);
  }
}

}  // namespace

void run_few_rows(const row_geometry& g, const job& j) {
  if (g.rows == 0) return;
  ops::for_row_operation(g.op, [&]<class Op>() {
    using rule = device_rule<Op::id>;
    // Rows with targets are never few (rows_cut.cpp); of a rule of several operands probabilities may stand in their place.
    if constexpr (rule::inputs.target < 0 || num::elements_of<rule> != 1) {
      launch_kernel<few_kernel<Op::id>>(j, g.rows, threads, 0, g, j.counters);
    }
  });
}

void take_late_workspace(std::byte*& sums, const row_geometry& g, carver& c) {
  if (g.length <= late_chunk) return;
  ops::for_row_operation(g.op, [&]<class Op>() {
    constexpr std::size_t third = late_levels < Op::id >> 2 ? sizeof(late_sums<Op::id, 2>) : 0;
    c.take(sums, g.rows, chunks_of(g, late_chunk), sizeof(late_sums<Op::id, 0>) + sizeof(late_sums<Op::id, 1>) + third);
  });
}

void run_late_rows(const row_geometry& g, std::byte* sums, const job& j) {
  if (g.rows == 0) return;
  ops::for_row_operation(g.op, [&]<class Op>() { launch<Op::id>(g, sums, j); });
}

}  // namespace repdl::cuda
