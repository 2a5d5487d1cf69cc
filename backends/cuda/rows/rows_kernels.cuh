// The binary64 kernels of rows: in the registers of a team of threads, and a thread each. Included by rows.cu only.
#pragma once

#include "backends/cuda/rows/rows.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

// Blocks of a cluster, from which a block may read (9.0 and newer; else a block is alone).
struct cluster {
  int blocks;
  int rank;
  int exchanges = 0;

  __device__ explicit cluster(int of_row) : blocks(of_row), rank(static_cast<int>(blockIdx.x) & (of_row - 1)) {}
  __device__ void meet() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  }
  // v of all blocks, combined. slots: two of this block's memory, used in turns: who writes to one has met all that read it.
  template <class T, class Combine>
  __device__ T combined(T v, std::byte* slots, Combine&& combine) {
#if __CUDA_ARCH__ >= 900
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= slot_bytes);
    std::byte* const slot = slots + (exchanges++ & 1) * slot_bytes;
    if (threadIdx.x == 0) *reinterpret_cast<T*>(slot) = v;
    meet();
    const auto own = static_cast<unsigned>(__cvta_generic_to_shared(slot));
    unsigned from;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(from) : "r"(own), "r"(lane_of_thread() & (blocks - 1)));
    std::uint32_t w[sizeof(T) / 4];
#pragma unroll
    for (unsigned i = 0; i < sizeof(T) / 4; ++i) {
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(w[i]) : "r"(from + 4 * i) : "memory");
    }
    memcpy(&v, w, sizeof(T));
    for (int distance = blocks / 2; distance >= 1; distance /= 2) v = combine(v, from_lane(v, distance));
#endif
    return v;
  }
  static constexpr int slot_bytes = 32;
};

// Combines v over the team. scratch: two slots for the cluster, and one for each warp: teams of a block do not wait for each other.
template <class T, class Combine>
__device__ T over_team(T v, int team, cluster& blocks, std::byte* scratch, Combine&& combine) {
  for (int distance = min(team, 32) / 2; distance >= 1; distance /= 2) v = combine(v, from_lane(v, distance));
  if (team > 32) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int of_team = team / 32;
    const int first = warp / of_team * of_team;
    const auto slot = [&](int i) -> T& { return *reinterpret_cast<T*>(scratch + (2 + i) * cluster::slot_bytes); };
    const auto meet = [&] { asm volatile("bar.sync %0, %1;" ::"r"(1 + first / of_team), "r"(team) : "memory"); };
    meet();
    if (lane_of_thread() == 0) slot(warp) = v;
    meet();
    v = slot(first + (lane_of_thread() & (of_team - 1)));
    for (int distance = of_team / 2; distance >= 1; distance /= 2) v = combine(v, from_lane(v, distance));
    if (blocks.blocks > 1) v = blocks.combined(v, scratch, combine);
  }
  return v;
}

// Elements j .. j + 3 of a row of `length` that lie side by side, a + j at a multiple of 16 bytes; `outside` for those that are not.
__device__ inline float4 load_four(const float* a, int j, int length, float outside) {
  if (j >= 0 && j + 4 <= length) return *reinterpret_cast<const float4*>(a + j);
  const auto at = [&](int i) { return i >= 0 && i < length ? a[i] : outside; };
  return {at(j), at(j + 1), at(j + 2), at(j + 3)};
}
__device__ inline void store_four(float* to, int j, int length, float4 v) {
  if (j >= 0 && j + 4 <= length) {
    *reinterpret_cast<float4*>(to + j) = v;
    return;
  }
  const auto set = [&](int i, float x) {
    if (i >= 0 && i < length) to[i] = x;
  };
  set(j, v.x), set(j + 1, v.y), set(j + 2, v.z), set(j + 3, v.w);
}

// The place in its row of a thread's element i.
template <bool Packed>
__device__ int place_of(int i, int lane, int lanes, int head) {
  return Packed ? ((i / 4) * lanes + lane) * 4 + i % 4 - head : i * lanes + lane;
}
template <bool Packed>
__device__ int head_of(const float* row) {
  return Packed ? static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / 4 & 3) : 0;
}

// Whether the operation has operands that are not as x[0] is: rows of such have several axes often.
template <class Rule>
inline constexpr bool has_more = num::elements_of<Rule> > Rule::required;

// The fours of a thread, one after the other, along two axes: each is within the inner one.
class walk_of_fours {
 public:
  // Of element j, and `step` further each.
  __device__ walk_of_fours(const row_geometry& g, int j, int step)
      : size_(static_cast<unsigned>(g.reduced.size[0])),
        inner_(static_cast<unsigned>(j) % size_),
        outer_(static_cast<unsigned>(j) / size_),
        inner_step_(static_cast<unsigned>(step) % size_),
        outer_step_(static_cast<unsigned>(step) / size_) {}
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
  unsigned size_, inner_, outer_, inner_step_, outer_step_;
};

// f(i, a) for the fours of a thread, elements i .. i + 3 of its own: a + place(i) is where they begin in an operand that has them side
// by side.
template <op_id Op, int Operand, int Count, class T, class Place, class F>
__device__ void for_fours(const row_geometry& g, T* row, const Place& place, F&& f) {
  if (!has_more<row_rule<Op>> || g.access[Operand] == quad_access::flat) {
#pragma unroll
    for (int i = 0; i < Count; i += 4) f(i, row);
    return;
  }
  walk_of_fours walk(g, place(0), place(4) - place(0));
#pragma unroll
  for (int i = 0; i < Count; i += 4, walk.advance()) f(i, row + (walk.template offset<Operand>(g) - place(i)));
}
// f(i, v), v being those elements of an operand of any kind.
template <op_id Op, int Operand, int Count, class Place, class F>
__device__ void for_more(const row_geometry& g, const float* row, const Place& place, int length, F&& f) {
  constexpr float absent = row_rule<Op>::absent[Operand];
  const auto all = [](float v) { return float4{v, v, v, v}; };
  const quad_access how = g.access[Operand];
  if (row == nullptr || how == quad_access::constant) {
    const float v = row == nullptr ? absent : *row;
#pragma unroll
    for (int i = 0; i < Count; i += 4) f(i, all(v));
  } else if (how == quad_access::each) {
    const std::int64_t stride = g.reduced.stride[Operand][0];
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const auto at = [&](int j) { return j >= 0 && j < length ? row[j * stride] : absent; };
      f(i, float4{at(place(i)), at(place(i + 1)), at(place(i + 2)), at(place(i + 3))});
    }
  } else if (how == quad_access::one) {
    for_fours<Op, Operand, Count>(g, row, place,
                                  [&](int i, const float* a) { f(i, all(place(i) < length ? a[place(i)] : absent)); });
  } else {
    for_fours<Op, Operand, Count>(g, row, place,
                                  [&](int i, const float* a) { f(i, load_four(a, place(i), length, absent)); });
  }
}

// The outputs of a thread's elements that are open, a few: at more cost, where the rule knows how. The number of those that stay open.
template <op_id Op, bool Packed, class Sums>
__device__ __noinline__ int outputs_again(const row_geometry& g, std::int64_t row, float top, Sums whole, unsigned open,
                                          int lane, int lanes, int length) {
  const row_site<Op> at(g, row);
  const num::row_call call = call_of(g);
  const row_state<Op> state = state_of<Op>(g, call, at, top);
  const auto numbers = numbers_of<Op>(call, state, whole.of_row());
  int left = 0;
  for (; open != 0; open &= open - 1) {
    const int j = place_of<Packed>(__ffs(static_cast<int>(open)) - 1, lane, lanes, head_of<Packed>(at.x[0]));
    if (j < 0 || j >= length) continue;
    const num::verdict<double> v = output_of<Op>(call, state, numbers, whole.of_row(), j, at.values(g, j).x);
    if (v.open) {
      ++left;
    } else {
      at.to(g, j) = v.value;
    }
  }
  if (left != 0) leave_open<Op>(g, row, top, whole);
  return left;
}

// Blocks of a multiprocessor: what an element takes of registers decides.
template <class Rule>
constexpr int blocks_at_once(int per) {
  if (per == 32) return Rule::per_element ? 2 : 3;
  if (Rule::summed > 2 || (has_more<Rule> && per == 16)) return 2;
  return num::elements_of<Rule> == 1 && !Rule::keeps_term ? 4 : 3;
}

// Elements that a thread holds.
constexpr int most_per_thread(int summed) { return summed > 2 ? 16 : 32; }
// Partial sums of a thread, so that additions do not wait for each other.
template <class Rule>
inline constexpr int chains_of = Rule::summed == 1 ? 4 : 1;

// Rows of up to 8192 elements by some of a block's threads, longer ones by a cluster of blocks. Packed: the elements of a row lie side
// by side, in all operands in the same place of 16 bytes: four of them an access, `head` of the first four not being the row's. Or
// four do, everywhere.
template <op_id Op, int Per, bool Packed>
__global__ void __launch_bounds__(threads, blocks_at_once<row_rule<Op>>(Per))
    row_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using rule = row_rule<Op>;
  using sums = typename rule::template sums<double>;
  alignas(16) __shared__ std::byte scratch[(2 + warps) * cluster::slot_bytes];
  constexpr int summed = rule::summed;
  constexpr int elements = num::elements_of<rule>;
  constexpr bool keeps = rule::keeps_term;
  cluster blocks(g.cluster);
  const int team = g.team;
  const int n = static_cast<int>(g.length);
  const int lane = (static_cast<int>(threadIdx.x) & (team - 1)) + blocks.rank * threads;
  const int lanes = team * blocks.blocks;
  const std::int64_t at_once = threads / team;  // rows of a cluster
  const num::row_call call = call_of(g);
  row_tally tally;
  const std::int64_t step = gridDim.x / static_cast<unsigned>(blocks.blocks) * at_once;
  for (std::int64_t base = blockIdx.x / static_cast<unsigned>(blocks.blocks) * at_once; base < g.rows; base += step) {
    const std::int64_t row = base + static_cast<int>(threadIdx.x) / team;
    const bool active = row < g.rows;
    const int length = active ? n : 0;
    const row_site<Op> at(g, active ? row : base);
    const int head = head_of<Packed>(at.x[0]);
    const auto place = [&](int i) { return place_of<Packed>(i, lane, lanes, head); };
    float top = least_top<Op>(g, at);
    float x[Per][summed];  // outside of the row: what adds nothing
    for_each_of<summed>([&]<int K>() {
      const float outside = K != 0 ? 1.0f : rule::look == num::row_look::given ? 0.0f : top;
      if constexpr (Packed && K >= rule::required) {
        for_more<Op, K, Per>(g, at.x[K], place, length, [&](int i, const float4& v) {
          x[i][K] = v.x, x[i + 1][K] = v.y, x[i + 2][K] = v.z, x[i + 3][K] = v.w;
        });
      } else if constexpr (Packed) {
        for_fours<Op, K, Per>(g, at.x[K], place, [&](int i, const float* a) {
          const float4 v = load_four(a, place(i), length, outside);
          x[i][K] = v.x, x[i + 1][K] = v.y, x[i + 2][K] = v.z, x[i + 3][K] = v.w;
        });
      } else {
#pragma unroll
        for (int i = 0; i < Per; ++i) x[i][K] = place(i) < length ? at.template value<K>(g, place(i)) : outside;
      }
    });

    if constexpr (rule::look == num::row_look::greatest) {
#pragma unroll
      for (int i = 0; i < Per; ++i) top = max_or_nan(top, x[i][0]);
      top = over_team(top, team, blocks, scratch, [](float a, float b) { return max_or_nan(a, b); });
    }
    const row_state<Op> state = state_of<Op>(g, call, at, top);
    constexpr int chains = chains_of<rule>;
    sums part[chains];
    double term[keeps ? Per : 1];
#pragma unroll
    for (int i = 0; i < Per; ++i) {
      const double t = add_element<Op>(part[i % chains], x[i], state.top);
      if constexpr (keeps) term[i] = t;
    }
    if constexpr (chains == 4) {
      part[0].merge(part[1]);
      part[2].merge(part[3]);
      part[0].merge(part[2]);
    }
    const sums whole = over_team(part[0], team, blocks, scratch, [](sums a, const sums& b) {
      a.merge(b);
      return a;
    });
    if constexpr (!rule::per_element) {
      if (lane == 0 && active) {
        finish_row<Op>(g, call, at, state, numbers_of<Op>(call, state, whole.of_row()), whole, tally);
      }
    } else {
      const auto numbers = numbers_of<Op>(call, state, whole.of_row());
      if constexpr (rule::results != 0) {
        if (lane == 0 && active) finish_row<Op>(g, call, at, state, numbers, whole, tally);
      }
      unsigned open = 0;
      float out[Per];
      // Operands that are not in registers are read for some elements at a time.
      constexpr int at_a_time = elements > summed ? 8 : Per;
#pragma unroll
      for (int first = 0; first < Per; first += at_a_time) {
        float v[at_a_time][elements];
        for_each_of<elements>([&]<int K>() {
          if constexpr (K < summed) {
#pragma unroll
            for (int i = 0; i < at_a_time; ++i) v[i][K] = x[first + i][K];
          } else if constexpr (Packed) {
            for_more<Op, K, at_a_time>(
                g, at.x[K], [&](int i) { return place(first + i); }, length,
                [&](int i, const float4& w) {
                  v[i][K] = w.x, v[i + 1][K] = w.y, v[i + 2][K] = w.z, v[i + 3][K] = w.w;
                });
          } else {
            constexpr float outside = rule::absent[K];
#pragma unroll
            for (int i = 0; i < at_a_time; ++i) {
              const int j = place(first + i);
              v[i][K] = j < length ? at.template value<K>(g, j) : outside;
            }
          }
        });
#pragma unroll
        for (int i = 0; i < at_a_time; ++i) {
          double t = 0;
          if constexpr (keeps) t = term[first + i];
          const num::verdict<double> y = element_of<Op>(numbers, v[i], t);
          out[first + i] = state.c.fills ? state.c.value : y.value;
          open |= y.open ? 1u << (first + i) : 0u;
        }
      }
      if (state.c.fills || !active) {
        open = 0;
      } else if constexpr (rule::has_exception) {
#pragma unroll
        for (int i = 0; i < Per; ++i) open |= place(i) == static_cast<int>(state.o.target) ? 1u << i : 0u;
      }
      if constexpr (Packed) {
        for_fours<Op, out_place, Per>(g, at.out, place, [&](int i, float* a) {
          store_four(a, place(i), length, float4{out[i], out[i + 1], out[i + 2], out[i + 3]});
        });
      } else {
#pragma unroll
        for (int i = 0; i < Per; ++i) {
          if (place(i) < length) at.to(g, place(i)) = out[i];
        }
      }
      if (lane == 0 && active) tally.add(state.c.fills, n);
      if (open != 0) tally.decided -= outputs_again<Op, Packed>(g, row, top, whole, open, lane, lanes, length);
    }
  }
  if (blocks.blocks > 1) blocks.meet();  // its memory is read
  count_rows_decided(counters, tally);
}

// A thread per row.
template <op_id Op>
__global__ void __launch_bounds__(threads) column_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using rule = row_rule<Op>;
  const num::row_call call = call_of(g);
  row_tally tally;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    const row_site<Op> at(g, row);
    float top = least_top<Op>(g, at);
    if constexpr (rule::look == num::row_look::greatest) {
#pragma unroll 8
      for (std::int64_t j = 0; j < g.length; ++j) top = max_or_nan(top, at.template value<0>(g, j));
    }
    const row_state<Op> state = state_of<Op>(g, call, at, top);
    typename rule::template sums<double> part[4];
    if (!state.c.fills) {
      const auto add = [&](int i, std::int64_t j) {
        add_element<Op>(part[i], at.template values<rule::summed>(g, j).x, state.top);
      };
      std::int64_t j = 0;
      for (; j + 4 <= g.length; j += 4) {
#pragma unroll
        for (int i = 0; i < 4; ++i) add(i, j + i);
      }
      for (; j < g.length; ++j) add(0, j);
    }
    part[0].merge(part[1]);
    part[2].merge(part[3]);
    part[0].merge(part[2]);
    if constexpr (rule::results != 0) {
      finish_row<Op>(g, call, at, state, numbers_of<Op>(call, state, part[0].of_row()), part[0], tally);
    }
    if constexpr (rule::per_element) {
      if (write_elements<Op>(g, call, at, state, part[0].of_row(), 0, 1, g.length, tally)) {
        leave_open<Op>(g, row, top, part[0]);
      }
    }
  }
  count_rows_decided(counters, tally);
}

// What the last results of rows were before: a copy of it.
__global__ void __launch_bounds__(threads)
    copy_former(const __grid_constant__ row_geometry g, const float* first, const float* second, float* to) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    to[row] = first[row_offset<former_place>(g, row)];
    to[g.rows + row] = second[row_offset<former_place + 1>(g, row)];
  }
}

__global__ void __launch_bounds__(threads) count_targets(const __grid_constant__ row_geometry g) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  unsigned n = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    n += g.target[row_offset<target_place>(g, row)] != g.ignore_index ? 1u : 0u;
  }
  n = __reduce_add_sync(full_warp, n);
  if (lane_of_thread() == 0 && n != 0) atomicAdd(&g.status->counted, static_cast<unsigned long long>(n));
}

}  // namespace
}  // namespace repdl::cuda
