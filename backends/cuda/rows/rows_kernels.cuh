// The binary64 kernels of rows: in the registers of a team of threads, and a thread each. Included once for each format (rows_f32.cu).
#pragma once

#include "backends/cuda/rows/rows_outputs.cuh"

namespace repdl::cuda {
namespace {

constexpr int threads = row_threads;
constexpr int warps = row_warps;

// Blocks of a cluster, which write into each other's memory (9.0 and newer; else a block is alone). A barrier of the cluster would wait
// for all that was written to the rows, too: here a block waits for so many bytes from the others.
struct cluster {
  static constexpr int slot_bytes = 48;
  static constexpr int most_blocks = 16;
  // Used in turns: who sends to one has heard from all blocks since they read it.
  struct memory {
    alignas(16) std::byte slots[2][most_blocks][slot_bytes];
    std::uint64_t arrived[2];
  };
  int blocks;
  int rank;
  memory& own;
  int exchanges = 0;

  __device__ cluster(int of_row, memory& m)
      : blocks(of_row), rank(static_cast<int>(blockIdx.x) & (of_row - 1)), own(m) {
#if __CUDA_ARCH__ >= 900
    if (blocks == 1) return;
    if (threadIdx.x == 0) {
      for (std::uint64_t& a : own.arrived) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&a)) : "memory");
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  }
  // v of all blocks, combined.
  template <class T, class Combine>
  __device__ T combined(T v, Combine&& combine) {
#if __CUDA_ARCH__ >= 900
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= slot_bytes);
    const int turn = exchanges & 1;
    const unsigned arrived = address_of(own.arrived + turn);
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived),
                   "r"(blocks * static_cast<int>(sizeof(T)))
                   : "memory");
    }
    if (static_cast<int>(threadIdx.x) < blocks) {
      const unsigned to = in_block(address_of(own.slots[turn][rank]), threadIdx.x);
      const unsigned count = in_block(arrived, threadIdx.x);
      std::uint32_t w[sizeof(T) / 4];
      memcpy(w, &v, sizeof(T));
#pragma unroll
      for (unsigned i = 0; i < sizeof(T) / 4; ++i) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to + 4 * i),
                     "r"(w[i]), "r"(count)
                     : "memory");
      }
    }
    wait_for(arrived, static_cast<unsigned>(exchanges) >> 1 & 1u);
    memcpy(&v, own.slots[turn][lane_of_thread() & (blocks - 1)], sizeof(T));
    for (int distance = blocks / 2; distance >= 1; distance /= 2) v = combine(v, from_lane(v, distance));
    ++exchanges;
#endif
    return v;
  }

 private:
  __device__ static unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
#if __CUDA_ARCH__ >= 900
  __device__ static unsigned in_block(unsigned address, unsigned block) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
    return there;
  }
  __device__ static void wait_for(unsigned arrived, unsigned parity) {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(arrived), "r"(parity)
          : "memory");
    }
  }
#endif
};

// Combines v over the team. scratch: a slot for each warp: teams of a block do not wait for each other.
template <class T, class Combine>
__device__ T over_team(T v, int team, cluster& blocks, std::byte* scratch, Combine&& combine) {
  for (int distance = min(team, 32) / 2; distance >= 1; distance /= 2) v = combine(v, from_lane(v, distance));
  if (team > 32) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int of_team = team / 32;
    const int first = warp / of_team * of_team;
    const auto slot = [&](int i) -> T& { return *reinterpret_cast<T*>(scratch + i * cluster::slot_bytes); };
    const auto meet = [&] { asm volatile("bar.sync %0, %1;" ::"r"(1 + first / of_team), "r"(team) : "memory"); };
    meet();
    if (lane_of_thread() == 0) slot(warp) = v;
    meet();
    v = slot(first + (lane_of_thread() & (of_team - 1)));
    for (int distance = of_team / 2; distance >= 1; distance /= 2) v = combine(v, from_lane(v, distance));
    if (blocks.blocks > 1) v = blocks.combined(v, combine);
  }
  return v;
}

// Of a row in registers.
template <op_id Op, class T, class Place, class Sums>
__device__ __noinline__ int row_outputs_again(const row_geometry& g, std::int64_t row, float top, Sums sums,
                                              unsigned undecided, Place place, int length, counter* counters) {
  const int left = outputs_again<Op, T>(g, row, top, sums, undecided, place, length, counters);
  if (left != 0) leave_undecided<Op>(g, row, top, sums);
  return left;
}

// The operands of a thread's elements in a row.
template <class T, int Per, int Held, bool Words>
struct row_elements {
  float x[Per][Held];

  __device__ void set(int i, int k, float v) { x[i][k] = v; }
  __device__ void set(int i, int k, const four_of<T>& f) {
    const float4 v = widened(f);
    x[i][k] = v.x, x[i + 1][k] = v.y, x[i + 2][k] = v.z, x[i + 3][k] = v.w;
  }
  __device__ float at(int i, int k) const { return x[i][k]; }
  __device__ float greatest(float top) const {
    float of[4] = {top, top, top, top};  // not one after the other
#pragma unroll
    for (int i = 0; i < Per; ++i) of[i % 4] = max_or_nan(of[i % 4], x[i][0]);
    return max_or_nan(max_or_nan(of[0], of[1]), max_or_nan(of[2], of[3]));
  }
  // What was made of them is made again: registers.
  __device__ void forget() {
#pragma unroll
    for (int i = 0; i < Per; ++i) {
      for (float& v : x[i]) asm volatile("" : "+f"(v));
    }
  }
};
// Of 16 bits, two in a word.
template <class T, int Per, int Held>
struct row_elements<T, Per, Held, true> {
  std::uint32_t x[Per / 2][Held];

  __device__ void set(int i, int k, float v) {
    const std::uint32_t bits = narrowed<T>(v).bits;
    x[i / 2][k] = i % 2 == 0 ? bits : x[i / 2][k] | bits << 16;
  }
  __device__ void set(int i, int k, const four_of<T>& f) {
    const auto v = __builtin_bit_cast(uint2, f);
    x[i / 2][k] = v.x, x[i / 2 + 1][k] = v.y;
  }
  __device__ float at(int i, int k) const { return num::widen_to_float(half_of<T>(x[i / 2][k], i)); }
  __device__ float greatest(float top) const {
    std::uint32_t all = x[0][0];
#pragma unroll
    for (int i = 1; i < Per / 2; ++i) {
      if constexpr (std::is_same_v<T, f16>) {
        asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(all) : "r"(x[i][0]));
      } else {
        asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(all) : "r"(x[i][0]));
      }
    }
    for (int i = 0; i < 2; ++i) top = max_or_nan(top, num::widen_to_float(half_of<T>(all, i)));
    return top;
  }
  __device__ void forget() {
#pragma unroll
    for (int i = 0; i < Per / 2; ++i) {
      for (std::uint32_t& v : x[i]) asm volatile("" : "+r"(v));
    }
  }
};

// Blocks of a multiprocessor: what an element takes of registers decides.
template <class Rule, class T>
constexpr int blocks_at_once(int per, bool lines) {
  if (per == 32) return Rule::per_element || held_of<Rule> == 2 ? 2 : 3;
  if (lines) return per == 8 ? 3 : 2;
  if (held_of < Rule >> 2 || (has_more<Rule> && per == 16)) return 2;
  return num::elements_of<Rule> == 1 && !Rule::keeps_term && !has_lanes<Rule, T> ? 4 : 3;
}

// f<whether all of a thread's fours are of the row>(), if that is asked.
template <int Per, bool Asked, class Place, class F>
__device__ void within(const Place& place, int length, F&& f) {
  if (Asked && place(0) >= 0 && place(Per - 4) + 4 <= length) {
    f.template operator()<true>();
  } else {
    f.template operator()<false>();
  }
}

// What stands for operand K outside of a row: it adds nothing.
template <class Rule, int K>
__device__ float outside_of(float top) {
  return K != 0 ? 1.0f : Rule::look == num::row_look::given ? 0.0f : top;
}

// Rows of up to 8192 elements by some of a block's threads, longer ones by a cluster of blocks. Packed: the elements of a row lie side
// by side, in all operands in the same place of 16 bytes: four of them an access, `head` of the first four not being the row's. Or
// four do, everywhere. Lines: packed, and elements are on lines. F: the format of factors.
template <op_id Op, class T, class F, int Per, bool Packed, bool Lines>
__global__ void __launch_bounds__(threads, blocks_at_once<device_rule<Op>, T>(Per, Lines))
    row_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using rule = device_rule<Op>;
  using sums = part_sums<rule, T>;
  alignas(16) __shared__ std::byte scratch[warps * cluster::slot_bytes];
  __shared__ cluster::memory exchanged;
  constexpr int summed = rule::summed;
  constexpr int elements = num::elements_of<rule>;
  constexpr int held = held_of<rule>;
  constexpr bool keeps = rule::keeps_term;
  constexpr bool quick = is_quick<rule, T>;
  using kept = std::conditional_t<quick, float, double>;
  cluster blocks(g.cluster, exchanged);
  const int team = g.team;
  const int n = static_cast<int>(g.length);
  const int lane = (static_cast<int>(threadIdx.x) & (team - 1)) + blocks.rank * threads;
  const int lanes = team * blocks.blocks;
  const std::int64_t at_once = threads / team;  // rows of a cluster
  num::row_call call = call_of(g);
  call.mixed = !std::is_same_v<F, T>;
  row_tally tally;
  constexpr bool of_lanes = has_lanes<rule, T>;
  constexpr bool elements_of_lanes = has_lanes_for_elements<rule, T>;
  [[maybe_unused]] const std::conditional_t<of_lanes || elements_of_lanes, exponential_of_lanes, num::plain_exponential>
      exponential;
  const std::int64_t step = gridDim.x / static_cast<unsigned>(blocks.blocks) * at_once;
  const std::int64_t first_base = blockIdx.x / static_cast<unsigned>(blocks.blocks) * at_once;
  // Where elements are on lines, that of all rows: they begin at multiples of four, if there is something to walk along.
  [[maybe_unused]] const walk_of_fours first_walk = Lines ? walk_of_fours(g, lane * 4, lanes * 4) : walk_of_fours();
  // While a row is computed with the next one comes to shared memory: a thread's own elements.
  constexpr bool ahead = Packed && reads_ahead<rule, T>;
  __shared__ four_of<T> next[ahead ? held * Per / 4 * threads : 1];
  const auto fetch_row = [&]([[maybe_unused]] std::int64_t base) {
    if constexpr (ahead) {
      const std::int64_t row = base + static_cast<int>(threadIdx.x) / team;
      const bool active = row < g.rows;
      const row_site<Op, T, F> at(g, active ? row : base);
      const int head = head_of<Packed>(at.template begin<0>());
      const row_places<Packed> place{lane, lanes, head};
      const auto walk = [&] { return walk_of_fours(g, place(0), lanes * 4); };
      const int length = active ? n : 0;
      within<Per, ahead>(place, length, [&]<bool Inside>() {
        for_each_of<held>([&]<int K>() {
          for_fours<Op, K, Per>(g, at.template begin<K>(), place, walk, [&](int i, const auto* a) {
            fetch_four<Inside>(next + (K * Per + i) / 4 * threads + threadIdx.x, a, place(i), length,
                               Inside ? 0.0f : outside_of<rule, K>(least_top(g, at)));
          });
        });
      });
    }
  };
  if (ahead && first_base < g.rows) fetch_row(first_base);
  for (std::int64_t base = first_base; base < g.rows; base += step) {
    const std::int64_t row = base + static_cast<int>(threadIdx.x) / team;
    const bool active = row < g.rows;
    const int length = active ? n : 0;
    const row_site<Op, T, F> at(g, active ? row : base);
    const int head = head_of<Packed>(at.template begin<0>());
    const row_places<Packed> place{lane, lanes, head};
    const auto walk = [&] { return Lines ? first_walk : walk_of_fours(g, place(0), lanes * 4); };
    float top = least_top(g, at);
    const num::row_operands own = operands_of(g, at);  // read with the elements
    // Outside of the row: what adds nothing.
    row_elements<T, Per, held, quick> x;
    if constexpr (ahead) wait_for_fours();
    for_each_of<held>([&]<int K>() {
      [[maybe_unused]] const float outside = outside_of<rule, K>(top);
      if constexpr (ahead) {
#pragma unroll
        for (int i = 0; i < Per; i += 4) {
          x.set(i, K, next[(K * Per + i) / 4 * threads + threadIdx.x]);
        }
      } else if constexpr (Packed) {
        for_fours<Op, K, Per>(g, at.template begin<K>(), place, walk, [&](int i, const auto* a) {
          const float4 v = load_four(a, place(i), length, outside);
          x.set(i, K, v.x), x.set(i + 1, K, v.y), x.set(i + 2, K, v.z), x.set(i + 3, K, v.w);
        });
      } else {
#pragma unroll
        for (int i = 0; i < Per; ++i) x.set(i, K, place(i) < length ? at.template value<K>(g, place(i)) : outside);
      }
    });

    if constexpr (rule::look == num::row_look::greatest) {
      top = x.greatest(top);
      if (ahead && base + step < g.rows) fetch_row(base + step);  // the elements were read
      top = over_team(top, team, blocks, scratch, [](float a, float b) { return max_or_nan(a, b); });
    }
    const row_state<Op> state = state_of<Op>(call, own, top);
    constexpr int chains = part_chains<rule, T>;
    sums part[chains];
    kept term[keeps ? Per : 1];
    // The first N operands of elements first, first + 1, ..: those that are not held are read for some of them at a time.
    const auto fetch = [&]<int N, int Count>(int first, float(&v)[Count][N]) {
      if constexpr (N > held) asm volatile("" ::: "memory");  // not before the others are done with: registers
      for_each_of<N>([&]<int K>() {
        if constexpr (K < held) {
#pragma unroll
          for (int i = 0; i < Count; ++i) v[i][K] = x.at(first + i, K);
        } else {
          with_factors<K + 1>(g, at, [&](const auto& site) {
            if constexpr (Packed) {
              for_more<Op, K, Count>(
                  g, site.template begin<K>(), [&](int i) { return place(first + i); },
                  [&] { return walk_of_fours(g, place(first), lanes * 4); }, length,
                  [&](int i, const float4& w) {
                    v[i][K] = w.x, v[i + 1][K] = w.y, v[i + 2][K] = w.z, v[i + 3][K] = w.w;
                  });
            } else {
              constexpr float outside = rule::absent[K];
#pragma unroll
              for (int i = 0; i < Count; ++i) {
                const int j = place(first + i);
                v[i][K] = j < length ? site.template value<K>(g, j) : outside;
              }
            }
          });
        }
      });
    };
    constexpr int summed_at_once = summed > held ? 8 : Per;
#pragma unroll
    for (int first = 0; first < Per; first += summed_at_once) {
      float v[summed_at_once][summed];
      fetch(first, v);
#pragma unroll
      for (int i = 0; i < summed_at_once; ++i) {
        double t;
        if constexpr (of_lanes) {
          t = add_element<Op>(part[(first + i) % chains], v[i], state.top, exponential);
        } else {
          t = add_element<Op>(part[(first + i) % chains], v[i], state.top);
        }
        if constexpr (keeps && quick) {
          // Here, not where it is used: registers.
          asm volatile("cvt.rz.f32.f64 %0, %1;" : "=f"(term[first + i]) : "d"(t));
        } else if constexpr (keeps) {
          term[first + i] = t;
        }
      }
    }
    if constexpr (ahead && rule::look != num::row_look::greatest) {
      if (base + step < g.rows) fetch_row(base + step);
    }
    // What sums make of elements is not kept for the outputs: registers.
    if constexpr (rule::per_element && (elements > 2 || quick || of_lanes) && Per > 8) x.forget();
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
        finish_row(g, call, at, state, numbers_of<Op>(call, state, whole.of_row()), whole, tally);
      }
    } else {
      const auto numbers = numbers_of<Op>(call, state, whole.of_row());
      if constexpr (rule::results != 0) {
        if (lane == 0 && active) finish_row(g, call, at, state, numbers, whole, tally);
      }
      row_outputs<T, Per, quick> out;
      constexpr int at_a_time = elements > held ? 8 : Per;
      [[maybe_unused]] const auto q = quick_of<rule, quick>(numbers);
      if constexpr (Lines) {
        set_on_line<false>(out, g, at, numbers, line_of_four(g, at, numbers, first_walk, true), first_walk, place,
                           length, [&](int i) { return x.at(i, 0); });
      } else {
#pragma unroll
        for (int first = 0; first < Per; first += at_a_time) {
          float v[at_a_time][elements];
          fetch(first, v);
          if constexpr (quick) {
#pragma unroll
            for (int i = 0; i < at_a_time; i += 2) {
              const auto ends_of = [&](int k) { return rule::quick_ends(q, v[k], keeps ? term[first + k] : 0.0f); };
              out.set(first + i, ends_of(i), ends_of(i + 1));
            }
          } else {
#pragma unroll
            for (int i = 0; i < at_a_time; ++i) {
              double t = 0;
              if constexpr (keeps) t = term[first + i];
              if constexpr (elements_of_lanes) {
                out.set(first + i, element_of<Op, T>(numbers, v[i], t, exponential));
              } else {
                out.set(first + i, element_of<Op, T>(numbers, v[i], t));
              }
            }
          }
        }
        if constexpr (quick) {
          if (!q.known) out.leave_all_undecided();
        }
      }
      unsigned undecided = out.undecided;
      if (state.c.fills) out.fill(state.c.value);
      if (state.c.fills || !active) undecided = 0;
      [[maybe_unused]] unsigned exceptional = 0;  // a bit for element i, and whether it is undecided
      [[maybe_unused]] bool is_undecided = false;
      if constexpr (rule::has_exception) {
        if (!state.c.fills && active && state.o.target >= 0) {
#pragma unroll
          for (int i = 0; i < Per; ++i) exceptional |= place(i) == static_cast<int>(state.o.target) ? 1u << i : 0u;
        }
        if (exceptional != 0) {
          const auto c =
              num::verdict_of<T>(rule::exception(call, state.o, static_cast<double>(state.top), whole.of_row()));
          is_undecided = c.undecided;
          out.set(exceptional, c.value);
        }
      }
      if constexpr (Packed) {
        within<Per, ahead>(place, length, [&]<bool Inside>() {
          for_fours<Op, out_place, Per>(g, at.template begin<out_place>(), place, walk,
                                        [&](int i, T* a) { store_four<Inside>(a, place(i), length, out.four(i)); });
        });
      } else {
#pragma unroll
        for (int i = 0; i < Per; ++i) {
          if (place(i) < length) at.set(g, place(i), out.one(i));
        }
      }
      if (lane == 0 && active) tally.add(state.c.fills, n);
      if constexpr (quick) undecided = ask_again(g, at, numbers, state.top, undecided, exceptional, place, length);
      if constexpr (rule::has_exception) undecided = is_undecided ? undecided | exceptional : undecided & ~exceptional;
      if (undecided != 0)
        tally.decided -= row_outputs_again<Op, T>(g, row, top, whole, undecided, place, length, counters);
    }
  }
  count_rows_decided(counters, tally);
}

// A thread per row. 0: the compiler's choice.
template <class Rule, class T>
inline constexpr int column_blocks = !num::has_line<Rule> ? 0
                                     : sizeof(T) == 4     ? 3
                                                          : 4;
template <op_id Op, class T>
__global__ void __launch_bounds__(threads, column_blocks<device_rule<Op>, T>)
    column_kernel(const __grid_constant__ row_geometry g, counter* counters) {
  using rule = device_rule<Op>;
  const num::row_call call = call_of(g);
  row_tally tally;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; row < g.rows; row += step) {
    const row_site<Op, T> at(g, row);
    float top = least_top(g, at);
    if constexpr (rule::look == num::row_look::greatest) {
#pragma unroll 8
      for (std::int64_t j = 0; j < g.length; ++j) top = max_or_nan(top, at.template value<0>(g, j));
    }
    const row_state<Op> state = state_of(g, call, at, top);
    part_sums<rule, T> part[4];
    if (!state.c.fills) {
      with_factors<rule::summed>(g, at, [&](const auto& site) {
        const auto add = [&](int i, std::int64_t j) {
          add_element<Op>(part[i], site.template values<rule::summed>(g, j).x, state.top);
        };
        std::int64_t j = 0;
        for (; j + 4 <= g.length; j += 4) {
#pragma unroll
          for (int i = 0; i < 4; ++i) add(i, j + i);
        }
        for (; j < g.length; ++j) add(0, j);
      });
    }
    part[0].merge(part[1]);
    part[2].merge(part[3]);
    part[0].merge(part[2]);
    if constexpr (rule::results != 0) {
      finish_row(g, call, at, state, numbers_of<Op>(call, state, part[0].of_row()), part[0], tally);
    }
    if constexpr (rule::per_element) {
      if (write_elements(g, call, at, state, part[0], 0, 1, g.length, tally, counters)) {
        leave_undecided<Op>(g, row, top, part[0]);
      }
    }
  }
  count_rows_decided(counters, tally);
}

// Launches Kernel as launch_kernel does, its blocks in clusters.
template <auto Kernel>
void launch_in_clusters(const job& j, unsigned grid, int cluster, const row_geometry& g) {
  if (cluster == 1) return launch_kernel<Kernel>(j, grid, threads, 0, g, j.counters);
  if (!before_launch(record_of<Kernel>, j)) return;
  if (cluster > 8) {  // what every device can do
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), j.what.name(),
          "cudaFuncSetAttribute");
  }
  cudaLaunchAttribute shape{};
  shape.id = cudaLaunchAttributeClusterDimension;
  shape.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  launch_with<Kernel>(shape, j, grid, threads, g, j.counters);
}

template <op_id Op, class T, class F, int Per>
void launch_registers(const row_geometry& g, bool packed, const job& j) {
  const unsigned grid = register_grid(g, j.device);
  if (!packed) return launch_in_clusters<row_kernel<Op, T, F, Per, false, false>>(j, grid, g.cluster, g);
  with_lines<Op, T>(
      g, [&]<bool Lines>() { launch_in_clusters<row_kernel<Op, T, F, Per, true, Lines>>(j, grid, g.cluster, g); });
}

}  // namespace

template <class T>
void run_registers(const row_geometry& g, int per_thread, bool packed, const job& j) {
  ops::for_row_operation(g.op, [&]<class Op>() {
    constexpr int most = most_per_thread(held_of<device_rule<Op::id>>);
    if constexpr (may_mix<device_rule<Op::id>, T>) {
      if (is_mixed(g)) return launch_registers<Op::id, T, float, per_thread_of_mixed>(g, packed, j);
    }
    if (per_thread == 8) return launch_registers<Op::id, T, T, 8>(g, packed, j);
    if constexpr (most == 16 || !device_rule<Op::id>::is_costly) {
      if (per_thread == 16) return launch_registers<Op::id, T, T, 16>(g, packed, j);
    }
    if constexpr (most == 32) launch_registers<Op::id, T, T, 32>(g, packed, j);
  });
}

template <class T>
void run_columns(const row_geometry& g, const job& j) {
  const unsigned grid = grid_for(j.device, ceil_div(g.rows, threads), 16);
  ops::for_row_operation(
      g.op, [&]<class Op>() { launch_kernel<column_kernel<Op::id, T>>(j, grid, threads, 0, g, j.counters); });
}

}  // namespace repdl::cuda
