// Rows that are too long for a cluster: cut into chunks, a block for each. Their greatest keys meet in an integer maximum,
// their sums are joined by a warp per row, then every chunk writes its outputs. Rows that lie side by side, whose neighbours are nearer
// than their own elements, likewise, 32 or 128 at a time. And many long rows, a block for each. Included once for each format (rows_f32.cu).
#pragma once

#include "backends/cuda/rows/rows_chunks.cuh"
#include "backends/cuda/rows/rows_outputs.cuh"

namespace repdl::cuda {
namespace {

// keys: order_key with the sign flipped, so that 0 is less than any.
template <op_id Op, class T>
__device__ float top_of(const row_geometry& g, const long_work& w, const row_site<Op, T>& at) {
  if constexpr (device_rule<Op>::look != num::row_look::greatest) return least_top(g, at);
  return num::order_value(static_cast<std::int32_t>(w.keys[at.row()] ^ 0x80000000u), num::order_max);
}

template <class T>
__global__ void __launch_bounds__(threads) top_kernel(const __grid_constant__ row_geometry g, std::uint32_t* keys) {
  for_chunks(g, g.chunk, g.rows, [&](std::int64_t, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const T* const x = static_cast<const T*>(g.x[0]) + row_offset<0>(g, row);
    std::int32_t key = num::order_key(-row_inf, num::order_max);
#pragma unroll 8
    for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
      key = max(key, num::order_key(num::widen_to_float(x[element_offset<0>(g, j)]), num::order_max));
    }
    key = __reduce_max_sync(full_warp, key);
    if (lane_of_thread() == 0) atomicMax(keys + row, static_cast<std::uint32_t>(key) ^ 0x80000000u);
  });
}

// Where rows are packed, a thread has fours of a chunk, one after the other for each thread.
constexpr int at_a_time = 16;
__device__ inline walk_of_fours walk_of_chunk(const row_geometry& g, std::int64_t begin) {
  return {g, static_cast<int>(begin) + static_cast<int>(threadIdx.x) * 4, threads * 4};
}
struct chunk_place {
  std::int64_t begin;
  int first;
  __device__ int operator()(int i) const {
    return static_cast<int>(begin) + place_of<true>(first + i, static_cast<int>(threadIdx.x), threads, 0);
  }
};

// f<how many, whether all of them are of the row>(place) for a thread's elements [begin, past): many at a time, then by fours. The
// threads of a warp go together: of some the last four lies beyond.
template <class F>
__device__ void for_groups(std::int64_t begin, int past, F&& f) {
  chunk_place place{begin, 0};
  int next = static_cast<int>(begin) + at_a_time * threads;
#pragma unroll 1
  for (; next <= past; next += at_a_time * threads, place.first += at_a_time)
    f.template operator()<at_a_time, true>(place);
#pragma unroll 1
  for (; place(0) - 4 * lane_of_thread() < past; place.first += 4) f.template operator()<4, false>(place);
}

// What a thread finds of [begin, past), packed.
template <op_id Op, class T>
__device__ auto sums_of_fours(const row_geometry& g, const row_site<Op, T>& at, float top, std::int64_t begin,
                              int past) {
  using rule = device_rule<Op>;
  constexpr int chains = part_chains<rule, T>;
  part_sums<rule, T> part[chains];
  walk_of_fours walk = walk_of_chunk(g, begin);
  for_groups(begin, past, [&]<int Count, bool Inside>(const chunk_place& place) {
    float v[Count][rule::summed];
    read_fours<Op, rule::summed, Inside>(
        g, at, place, [&] { return walk; }, past, v);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (Inside || place(i) < past) add_element<Op>(part[i % chains], v[i], top);
    }
    walk.advance(Count / 4);
  });
  for (int i = 1; i < chains; ++i) part[0].merge(part[i]);
  return part[0];
}

template <op_id Op, class T, bool Packed>
__global__ void __launch_bounds__(threads, num::has_line<device_rule<Op>> ? 4 : 0)
    sum_kernel(const __grid_constant__ row_geometry g, long_work work) {
  using rule = device_rule<Op>;
  using total = typename rule::total;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(total)];
  wait_for_former();
  clear_lists(g);
  const num::row_call call = call_of(g);
  const auto sum_chunk = [&](std::int64_t item, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const row_site<Op, T> at(g, row);
    const row_state<Op> state = state_of(g, call, at, top_of(g, work, at));
    part_sums<rule, T> part;
    if (state.c.fills) {
    } else if constexpr (Packed) {
      part = sums_of_fours(g, at, state.top, begin, static_cast<int>(end));
    } else {
      with_factors<rule::summed>(g, at, [&](const auto& site) {
#pragma unroll 4
        for (std::int64_t j = begin + threadIdx.x; j < end; j += threads) {
          add_element<Op>(part, site.template values<rule::summed>(g, j).x, state.top);
        }
      });
    }
    total sum;
    sum.join(part);
    over_block<threads>(sum, scratch, [](total& a, const total& b) { a.join(b); });
    if (threadIdx.x == 0) reinterpret_cast<total*>(work.chunks)[item] = sum;
  };
  for_chunks(g, g.chunk, g.rows, sum_chunk);
}

// Rows that lie side by side, in tiles: `lanes` lanes have Each of them, a thread every element `step` further of a chunk. f(first row of the
// thread, whether it is one, chunk, the thread's first element, end), by all threads of a block. What lies together is read at the same time.
template <int Each>
struct tiles_of {
  const int lanes, step;

  __device__ explicit tiles_of(const row_geometry& g) : lanes(tile_lanes(g.rows, Each)), step(threads / lanes) {}
  template <class F>
  __device__ void for_each(const row_geometry& g, F&& f) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread & (lanes - 1);
    const std::int64_t tiles = (g.rows + lanes * Each - 1) / (lanes * Each);
    const std::int64_t items = tiles * chunks_of(g, g.chunk);
    for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
      const std::int64_t chunk = item / tiles;
      const std::int64_t row = ((item - chunk * tiles) * lanes + lane) * Each;
      const std::int64_t begin = chunk * g.chunk;
      f(row < g.rows ? row : 0, row < g.rows, chunk, begin + thread / lanes, min(begin + g.chunk, g.length));
    }
  }
};
// A thread's elements of rows side by side, along one axis or two, `step` further each.
class walk_along_rows {
 public:
  __device__ walk_along_rows(const row_geometry& g, std::int64_t first, int step)
      : inner_(static_cast<std::uint32_t>(first)), inner_step_(static_cast<std::uint32_t>(step)) {
    if (g.reduced.rank != 2) return;
    size_ = static_cast<std::uint32_t>(g.reduced.size[0]);
    outer_ = inner_ / size_;
    inner_ -= outer_ * size_;
    outer_step_ = inner_step_ / size_;
    inner_step_ -= outer_step_ * size_;
  }
  template <int Operand>
  __device__ std::int64_t offset(const row_geometry& g) const {
    return inner_ * g.reduced.stride[Operand][0] + outer_ * g.reduced.stride[Operand][1];
  }
  __device__ void advance() {
    inner_ += inner_step_;
    outer_ += outer_step_;
    if (inner_ < size_) return;
    inner_ -= size_;
    ++outer_;
  }

 private:
  std::uint32_t size_ = ~0u, inner_, outer_ = 0, inner_step_, outer_step_ = 0;
};
// How far statistics are from one row to those beside it.
template <op_id Op, int N, int Each>
struct distances_of_rows {
  int of[N][Each];

  __device__ distances_of_rows(const row_geometry& g, std::int64_t row) {
    for_each_of<N>([&]<int K>() {
      if constexpr (K >= device_rule<Op>::formatted) {
        const std::int64_t first = row_offset<K>(g, row);
        for (int r = 0; r < Each; ++r) of[K][r] = static_cast<int>(row_offset<K>(g, row + r) - first);
      }
    });
  }
};
// The first N operands of an element of Each rows side by side.
template <op_id Op, class T, int N, int Each>
struct values_of_rows {
  float x[N][Each];

  values_of_rows() = default;
  template <class F>
  __device__ values_of_rows(const row_geometry& g, const row_site<Op, T, F>& at, std::int64_t j) {
    for_each_of<N>([&]<int K>() {
      if constexpr (Each == 1) {
        x[K][0] = at.template value<K>(g, j);
      } else {
        set<K>(g, at.template begin<K>() + j * g.reduced.stride[K][0]);
      }
    });
  }
  template <class F>
  __device__ values_of_rows(const row_geometry& g, const row_site<Op, T, F>& at,
                            const distances_of_rows<Op, N, Each>& distances, const walk_along_rows& walk) {
    for_each_of<N>([&]<int K>() {
      const auto* const from = at.template begin<K>() + walk.offset<K>(g);
      if constexpr (K >= device_rule<Op>::formatted) {
        if (g.across[K] == row_access::each) {
          for (int r = 0; r < Each; ++r) x[K][r] = from[distances.of[K][r]];
          return;
        }
      }
      set<K>(g, from);
    });
  }
  __device__ row_values<N> row(int r) const {
    row_values<N> v;
#pragma unroll
    for (int k = 0; k < N; ++k) v.x[k] = x[k][r];
    return v;
  }

 private:
  // Four rows, or one number for all of them.
  template <int K, class From>
  __device__ void set(const row_geometry& g, const From* from) {
    float4 v;
    if (K >= device_rule<Op>::required && g.across[K] == row_access::one) {
      constexpr float absent = device_rule<Op>::absent[K];
      const float all = g.x[K] == nullptr ? absent : num::widen_to_float(*from);
      v = {all, all, all, all};
    } else {
      v = four_at(from);
    }
    x[K][0] = v.x, x[K][1] = v.y, x[K][2] = v.z, x[K][3] = v.w;
  }
};
template <op_id Op, class T, int Each>
__global__ void __launch_bounds__(threads, Each == 1 ? 0 : tile_blocks)
    tile_sum_kernel(const __grid_constant__ row_geometry g, long_work work) {
  using rule = device_rule<Op>;
  using sums = part_sums<rule, T>;
  constexpr int ahead = Each == 4 && rule::summed > 1 ? tile_ahead / 2 : tile_ahead;
  constexpr int chains = Each == 1 && !is_precise<rule, T> ? ahead : 1;
  alignas(16) __shared__ std::byte scratch[warps * 32 * Each * sizeof(sums)];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  sums* const of_lane = reinterpret_cast<sums*>(scratch) + lane_of_thread() * Each;
  wait_for_former();
  clear_lists(g);
  const tiles_of<Each> tiles(g);
  const int step = tiles.step;
  tiles.for_each(g, [&](std::int64_t row, bool active, std::int64_t chunk, std::int64_t first, std::int64_t end) {
    const row_site<Op, T> at(g, row);
    float top[Each];
    for (int r = 0; r < Each; ++r) top[r] = least_top(g, row_site<Op, T>(g, row + r));
    sums part[Each][chains];
    const distances_of_rows<Op, rule::summed, Each> distances(g, row);
    walk_along_rows walk(g, first, step);
    with_factors<rule::summed>(g, at, [&](const auto& site) {
      const auto add = [&]<int Count>(std::int64_t j) {
        values_of_rows<Op, T, rule::summed, Each> v[Count];
#pragma unroll
        for (int i = 0; i < Count; ++i, walk.advance()) {
          if constexpr (Each == 1) {
            v[i] = {g, site, j + i * step};
          } else {
            v[i] = {g, site, distances, walk};
          }
        }
#pragma unroll
        for (int i = 0; i < Count; ++i) {
#pragma unroll
          for (int r = 0; r < Each; ++r) add_element<Op>(part[r][i % chains], v[i].row(r).x, top[r]);
        }
      };
      std::int64_t j = first;
      for (; j + (ahead - 1) * step < end; j += ahead * step) add.template operator()<ahead>(j);
      for (; j < end; j += step) add.template operator()<1>(j);
    });
    __syncthreads();
    for (int r = 0; r < Each; ++r) {
      for (int c = 1; c < chains; ++c) part[r][0].merge(part[r][c]);
      for (int distance = 16; distance >= tiles.lanes; distance /= 2) part[r][0].merge(from_lane(part[r][0], distance));
      of_lane[warp * 32 * Each + r] = part[r][0];
    }
    __syncthreads();
    if (warp >= Each || lane_of_thread() >= tiles.lanes || !active) return;
    sums whole = of_lane[warp];
    for (int i = 1; i < warps; ++i) whole.merge(of_lane[i * 32 * Each + warp]);
    typename rule::total sum;
    sum.join(whole);
    reinterpret_cast<typename rule::total*>(work.chunks)[(row + warp) * chunks_of(g, g.chunk) + chunk] = sum;
  });
}

// Threads that join a row's chunks, of which there may be many.
__host__ __device__ inline int joining_team(const row_geometry& g) {
  return chunks_of(g, g.chunk) > 4 * 32 ? threads : 32;
}
template <op_id Op, class T>
__global__ void __launch_bounds__(threads)
    join_kernel(const __grid_constant__ row_geometry g, long_work work, counter* counters) {
  using total = typename device_rule<Op>::total;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(total)];
  const int team = joining_team(g);
  const int lane = static_cast<int>(threadIdx.x) & (team - 1);
  const std::int64_t at_once = threads / team;
  const std::int64_t step = gridDim.x * at_once;
  wait_for_former();
  const num::row_call call = call_of(g);
  const std::int64_t chunks = chunks_of(g, g.chunk);
  row_tally tally;
  for (std::int64_t row = blockIdx.x * at_once + threadIdx.x / static_cast<unsigned>(team); row < g.rows; row += step) {
    total sum;
#pragma unroll 4
    for (std::int64_t c = lane; c < chunks; c += team) {
      sum.join(reinterpret_cast<const total*>(work.chunks)[row * chunks + c]);
    }
    __syncwarp();
    if (team == threads) {
      over_block<threads>(sum, scratch, [](total& a, const total& b) { a.join(b); });
    } else {
      for (int distance = 16; distance >= 1; distance /= 2) sum.join(from_lane(sum, distance));
    }
    if (lane != 0) continue;
    const row_site<Op, T> at(g, row);
    const float top = top_of(g, work, at);
    known_of<Op>(g, row) = {sum, top};
    if constexpr (device_rule<Op>::results != 0) {
      const row_state<Op> state = state_of(g, call, at, top);
      finish_row(g, call, at, state, numbers_of<Op>(call, state, whole_of(sum)), sum, tally);
    }
  }
  count_rows_decided(counters, tally);
}

template <op_id Op, class T>
__device__ __noinline__ int chunk_outputs_again(const row_geometry& g, std::int64_t row, unsigned undecided,
                                                chunk_place place, int past, counter* counters) {
  const known_row<Op> known = known_of<Op>(g, row);
  return outputs_again<Op, T>(g, row, known.top, known.sums, undecided, place, past, counters);
}

// The outputs of a thread's elements [begin, past) of a row that does not fill, packed; how many stay undecided.
template <op_id Op, class T, bool Lines, class Numbers>
__device__ int write_fours(const row_geometry& g, const row_site<Op, T>& at, const row_state<Op>& state,
                           const Numbers& numbers, std::int64_t begin, int past, counter* counters) {
  using rule = device_rule<Op>;
  constexpr int read = Lines ? rule::summed : num::elements_of<rule>;
  constexpr bool quick = is_quick<rule, T>;
  [[maybe_unused]] const auto q = quick_of<rule, quick>(numbers);
  constexpr bool elements_of_lanes = has_lanes_for_elements<rule, T>;
  [[maybe_unused]] const std::conditional_t<elements_of_lanes, exponential_of_lanes, num::plain_exponential>
      exponential;
  walk_of_fours walk = walk_of_chunk(g, begin);
  [[maybe_unused]] const auto line = [&] {
    if constexpr (Lines) {
      return line_of_four(g, at, numbers, walk, true);
    } else {
      return 0;
    }
  }();
  int left = 0;
  for_groups(begin, past, [&]<int Count, bool Inside>(const chunk_place& place) {
    const auto from = [&] { return walk; };
    float v[Count][read];
    read_fours<Op, read, Inside>(g, at, place, from, past, v);
    row_outputs<T, Count, quick> out;
    if constexpr (Lines) {
      set_on_line<Inside>(out, g, at, numbers, line, walk, place, past, [&](int i) { return v[i][0]; });
    } else if constexpr (quick) {
#pragma unroll
      for (int i = 0; i < Count; i += 2) {
        const auto ends_of = [&](int k) {
          return rule::quick_ends(q, v[k], rule::keeps_term ? __double2float_rz(term_of<Op>(v[k], state.top)) : 0.0f);
        };
        out.set(i, ends_of(i), ends_of(i + 1));
      }
      if (!q.known) out.leave_all_undecided();
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        const double term = rule::keeps_term ? term_of<Op>(v[i], state.top) : 0.0;
        if constexpr (elements_of_lanes) {
          out.set(i, element_of<Op, T>(numbers, v[i], term, exponential));
        } else {
          out.set(i, element_of<Op, T>(numbers, v[i], term));
        }
      }
    }
    for_fours<Op, out_place, Count>(g, at.template begin<out_place>(), place, from,
                                    [&](int i, T* a) { store_four<Inside>(a, place(i), past, out.four(i)); });
    unsigned undecided = out.undecided;
    if constexpr (quick) undecided = ask_again(g, at, numbers, state.top, undecided, 0, place, past);
    if constexpr (rule::has_exception) {
#pragma unroll
      for (int i = 0; i < Count; ++i) undecided |= place(i) == state.o.target ? 1u << i : 0u;
    }
    if (undecided != 0) left += chunk_outputs_again<Op, T>(g, at.row(), undecided, place, past, counters);
    walk.advance(Count / 4);
  });
  return left;
}

// Lines: packed, and elements are on lines.
template <op_id Op, class T, bool Packed, bool Lines>
__global__ void __launch_bounds__(threads, 2) output_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  wait_for_former();
  const num::row_call call = call_of(g);
  row_tally tally;
  const auto write_chunk = [&](std::int64_t, std::int64_t row, std::int64_t begin, std::int64_t end) {
    const row_site<Op, T> at(g, row);
    const known_row<Op> known = known_of<Op>(g, row);
    const row_state<Op> state = state_of(g, call, at, known.top);
    bool undecided = false;
    if (state.c.fills) {
      fill_elements(g, at, state.c.value, begin + threadIdx.x, threads, end, tally);
    } else if constexpr (Packed) {
      const auto numbers = numbers_of<Op>(call, state, whole_of(known.sums));
      const int left = write_fours<Op, T, Lines>(g, at, state, numbers, begin, static_cast<int>(end), counters);
      tally.decided += (threadIdx.x == 0 ? end - begin : 0) - left;
      undecided = left != 0;
    } else {
      undecided = write_elements(g, call, at, state, known.sums, begin + threadIdx.x, threads, end, tally, counters);
    }
    if (__any_sync(full_warp, undecided) && lane_of_thread() == 0) g.list(0).add(row);
  };
  for_chunks(g, g.chunk, g.rows, write_chunk);
  count_rows_decided(counters, tally);
}

// A block for each row, which it reads twice: again from the cache.
template <op_id Op, class T>
__global__ void __launch_bounds__(threads, 2) whole_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using total = typename device_rule<Op>::total;
  alignas(16) __shared__ std::byte scratch[warps * sizeof(total)];
  const num::row_call call = call_of(g);
  const int n = static_cast<int>(g.length);
  row_tally tally;
  for (std::int64_t row = blockIdx.x; row < g.rows; row += gridDim.x) {
    const row_site<Op, T> at(g, row);
    const row_state<Op> state = state_of(g, call, at, least_top(g, at));
    total sum;
    sum.join(sums_of_fours(g, at, state.top, 0, n));
    over_block<threads>(sum, scratch, [](total& a, const total& b) { a.join(b); });
    const auto numbers = numbers_of<Op>(call, state, whole_of(sum));
    if (threadIdx.x == 0) {
      known_of<Op>(g, row) = {sum, state.top};
      finish_row(g, call, at, state, numbers, sum, tally);
      tally.decided += n;
    }
    __syncthreads();
    const int left = write_fours<Op, T, true>(g, at, state, numbers, 0, n, counters);
    tally.decided -= left;
    if (__any_sync(full_warp, left != 0) && lane_of_thread() == 0) g.list(0).add(row);
  }
  count_rows_decided(counters, tally);
}

// Whether output j stays undecided.
template <op_id Op, class T>
__device__ __noinline__ bool tile_output_again(const row_geometry& g, std::int64_t row, std::int64_t j,
                                               counter* counters) {
  const known_row<Op> known = known_of<Op>(g, row);
  const auto place = [&](int) { return j; };
  return outputs_again<Op, T>(g, row, known.top, known.sums, 1u, place, g.length, counters) != 0;
}
template <op_id Op, class T, int Each>
__global__ void __launch_bounds__(threads, Each == 1 ? 3 : 2)
    tile_output_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using rule = device_rule<Op>;
  static_assert(!rule::has_exception);
  constexpr int elements = num::elements_of<rule>;
  wait_for_former();
  const num::row_call call = call_of(g);
  row_tally tally;
  const tiles_of<Each> tiles(g);
  const int step = tiles.step;
  tiles.for_each(g, [&](std::int64_t row, bool active, std::int64_t, std::int64_t first, std::int64_t end) {
    if (!active) return;
    const row_site<Op, T> at(g, row);
    typename rule::template numbers<double> numbers[Each];
    float top[Each], fill[Each];
    unsigned filled = 0, undecided = 0;  // a bit for each row
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      const known_row<Op> known = known_of<Op>(g, row + r);
      const row_state<Op> state = state_of(g, call, row_site<Op, T>(g, row + r), known.top);
      numbers[r] = numbers_of<Op>(call, state, whole_of(known.sums));
      top[r] = state.top;
      fill[r] = state.c.value;
      filled |= state.c.fills ? 1u << r : 0u;
    }
    // read(j): what `output(r, of it)` makes row r's output of.
    const auto write = [&]<int Most>(const auto& read, const auto& output) {
      const auto some = [&]<int N>(std::int64_t j) {
        decltype(read(j)) x[N];
        unsigned open = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) x[i] = read(j + i * step);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const std::int64_t k = j + i * step;
          float y[Each];
#pragma unroll
          for (int r = 0; r < Each; ++r) {
            const num::verdict<double> v = output(r, x[i].row(r).x);
            const bool fills = (filled >> r & 1u) != 0;
            y[r] = fills ? fill[r] : v.value;
            open |= v.undecided && !fills ? 1u << (i * Each + r) : 0u;
          }
          if constexpr (Each == 1) {
            at.set(g, k, y[0]);
          } else {
            set_four(at.template begin<out_place>() + k * g.reduced.stride[out_place][0],
                     {narrowed<T>(y[0]), narrowed<T>(y[1]), narrowed<T>(y[2]), narrowed<T>(y[3])});
          }
        }
        tally.proved += N * __popc(filled);
        tally.decided += N * (Each - __popc(filled));
        for (; open != 0; open &= open - 1) {
          const int bit = __ffs(static_cast<int>(open)) - 1;
          if (!tile_output_again<Op, T>(g, row + bit % Each, j + bit / Each * step, counters)) continue;
          undecided |= 1u << bit % Each;
          --tally.decided;
        }
      };
      std::int64_t j = first;
      for (; j + (Most - 1) * step < end; j += Most * step) some.template operator()<Most>(j);
      for (; j < end; j += step) some.template operator()<1>(j);
    };
    with_factors<elements>(g, at, [&](const auto& site) {
      if constexpr (is_on_line<rule, T>) {
        if (g.others == other_operands::of_rows) {
          decltype(rule::line_of(numbers[0], top)) line[Each];
#pragma unroll
          for (int r = 0; r < Each; ++r) {
            const row_site<Op, T> of(g, row + r);
            line[r] = line_at(g, of, numbers[r], [&]<int K>() { return of.template number<K>(g, 0); });
          }
          return write.template operator()<tile_ahead>(
              [&](std::int64_t j) { return values_of_rows<Op, T, 1, Each>(g, site, j); },
              [&](int r, const float* x) { return line[r].at(x[0]); });
        }
      }
      write.template operator()<(Each == 1 ? tile_ahead : 2)>(
          [&](std::int64_t j) { return values_of_rows<Op, T, elements, Each>(g, site, j); },
          [&](int r, const float* x) {
            return element_of<Op, T>(numbers[r], x, rule::keeps_term ? term_of<Op>(x, top[r]) : 0.0);
          });
    });
    for (; undecided != 0; undecided &= undecided - 1) g.list(0).add(row + __ffs(static_cast<int>(undecided)) - 1);
  });
  count_rows_decided(counters, tally);
}

template <op_id Op, class T>
void launch_tiles(const row_geometry& g, const long_work& w, const job& j, unsigned joins) {
  const auto grid = [&](int each) {
    const std::int64_t tiles = ceil_div(g.rows, std::int64_t{tile_lanes(g.rows, each)} * each);
    return grid_for(j.device, tiles * chunks_of(g, g.chunk), 8);
  };
  if (g.in_fours) {
    launch_kernel<tile_sum_kernel<Op, T, 4>>(j, grid(4), threads, 0, g, w);
  } else {
    launch_kernel<tile_sum_kernel<Op, T, 1>>(j, grid(1), threads, 0, g, w);
  }
  launch_behind<join_kernel<Op, T>>(j, joins, threads, g, w, j.counters);
  if constexpr (device_rule<Op>::per_element) {
    if (g.outputs_in_fours) return launch_behind<tile_output_kernel<Op, T, 4>>(j, grid(4), threads, g, j.counters);
    launch_behind<tile_output_kernel<Op, T, 1>>(j, grid(1), threads, g, j.counters);
  }
}
template <op_id Op, class T, bool Packed>
void launch_chunks(const row_geometry& g, const long_work& w, const job& j, unsigned joins) {
  if constexpr (Packed && is_whole<device_rule<Op>, T>) {
    if (g.whole) {
      return launch_kernel<whole_kernel<Op, T>>(j, grid_for(j.device, g.rows, 24), threads, 0, g, j.counters);
    }
  }
  const unsigned grid = grid_for(j.device, g.rows * chunks_of(g, g.chunk), 8);
  launch_kernel<sum_kernel<Op, T, Packed>>(j, grid, threads, 0, g, w);
  launch_behind<join_kernel<Op, T>>(j, joins, threads, g, w, j.counters);
  if constexpr (device_rule<Op>::per_element) {
    if constexpr (Packed) {
      with_lines<Op, T>(
          g, [&]<bool Lines>() { launch_behind<output_kernel<Op, T, true, Lines>>(j, grid, threads, g, j.counters); });
    } else {
      launch_behind<output_kernel<Op, T, false, false>>(j, grid, threads, g, j.counters);
    }
  }
}
template <op_id Op, class T>
void launch_long(const row_geometry& g, const long_work& w, const job& j) {
  const unsigned joins = grid_for(j.device, ceil_div(g.rows, threads / joining_team(g)), 8);
  if constexpr (is_tiled<device_rule<Op>>) {
    if (g.tiled) return launch_tiles<Op, T>(g, w, j, joins);
  }
  if constexpr (device_rule<Op>::look == num::row_look::greatest) {
    const unsigned grid = grid_for(j.device, g.rows * chunks_of(g, g.chunk), 8);
    check(cudaMemsetAsync(w.keys, 0, static_cast<std::size_t>(g.rows) * 4, j.stream), "rows", "cudaMemsetAsync");
    launch_kernel<top_kernel<T>>(j, grid, threads, 0, g, w.keys);
  }
  if (g.in_fours) return launch_chunks<Op, T, true>(g, w, j, joins);
  launch_chunks<Op, T, false>(g, w, j, joins);
}

}  // namespace

template <class T>
void run_long_rows(const row_geometry& g, const long_work& w, const job& j) {
  ops::for_row_operation(g.op, [&]<class Op>() { launch_long<Op::id, T>(g, w, j); });
}

}  // namespace repdl::cuda
