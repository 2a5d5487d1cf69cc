// The quick tier of rows of binary64 (librepdl/ops/rows/quick_rule.hpp): a team of threads has a row, some lanes, warps, or a block; of few and
// long ones a block has a part. Rows of which it leaves something undecided are listed for rows_wide.cu.
#include <algorithm>

#include "backends/cuda/rows/rows_wide.cuh"
#include "librepdl/ops/rows/norm_quick.hpp"
#include "librepdl/ops/rows/softmax_quick.hpp"

namespace repdl::cuda {
namespace {

constexpr int threads = row_threads;
constexpr int warps = row_warps;
constexpr int most_terms = static_cast<int>(num::most_kept_terms) / threads;  // of a thread
constexpr int slot_bytes = 64;  // of a warp: what it hands to the others of its team

// Of rows whose results may lie where what they are made of was, nothing is written before all is decided: by one block, in rows_wide.cu.
template <op_id Op>
concept has_quick_rows = num::has_quick_rule<Op> && num::formers_of<num::wide_rule<Op>>
== 0;
template <op_id Op>
using quick_rule = num::quick_rule<Op>;
template <op_id Op>
using quick_sums = typename quick_rule<Op>::sums;
// Whether a thread keeps its terms: of rows whose terms are precise none does.
template <op_id Op, bool Precise>
inline constexpr bool keeps_terms = quick_rule<Op>::keeps_term && !Precise;

// Combines v over the team, into every thread's: teams of a block do not wait for each other.
template <class T, class Combine>
__device__ void over_team(T& v, int team, std::byte* scratch, Combine&& combine) {
  static_assert(sizeof(T) <= slot_bytes);
  for (int distance = min(team, 32) / 2; distance >= 1; distance /= 2) combine(v, from_lane(v, distance));
  if (team <= 32) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, of_team = team / 32, first = warp / of_team * of_team;
  const auto slot = [&](int i) -> T& { return *reinterpret_cast<T*>(scratch + i * slot_bytes); };
  const auto meet = [&] { asm volatile("bar.sync %0, %1;" ::"r"(1 + first / of_team), "r"(team) : "memory"); };
  meet();
  if (lane_of_thread() == 0) slot(warp) = v;
  meet();
  v = slot(first + (lane_of_thread() & (of_team - 1)));
  for (int distance = of_team / 2; distance >= 1; distance /= 2) combine(v, from_lane(v, distance));
}
__device__ void to_greater(double& a, double b) { a = wide_max_or_nan(a, b); }

// A thread's share of a row or of a part of it: elements first, first + step, ..
struct share_of_row {
  std::int64_t first;
  std::int64_t end;
  int step;
};

// The first N operands of a share's elements, some elements at a time, and their outputs. Where elements lie along one axis, pointers move.
template <op_id Op, int N>
class walk_of_share {
  using rule = num::wide_rule<Op>;

 public:
  __device__ walk_of_share(const row_geometry& g, const wide_row<Op>& row, const share_of_row& mine)
      : g_(g), row_(row), mine_(mine), is_flat_(g.reduced.rank <= 1) {
    for_each_of<N>([&]<int K>() {
      by_[K] = mine.step * g.reduced.stride[K][0];
      x_[K] = row.x[K] + mine.first * g.reduced.stride[K][0];
      asm volatile("" : "+l"(by_[K]));  // or it is multiplied again and again
    });
    if constexpr (rule::per_element) {
      out_by_ = mine.step * g.reduced.stride[out_place][0];
      to_ = static_cast<double*>(g.out[0]) + row_offset<out_place>(g, row.index);
      out_ = to_ + mine.first * g.reduced.stride[out_place][0];
      asm volatile("" : "+l"(out_by_));
    }
  }
  // f.template operator()<count>(): the next elements are as many.
  template <class F>
  __device__ void run(const F& f) {
    std::int64_t& j = j_;
    for (j = mine_.first; j + 3 * mine_.step < mine_.end; j += 4 * mine_.step) {
      f.template operator()<4>();
      advance<4>();
    }
#pragma unroll 1
    for (; j < mine_.end; j += mine_.step) {
      f.template operator()<1>();
      advance<1>();
    }
  }
  template <int Count>
  __device__ void read(double (&x)[Count][N]) const {
    for_each_of<N>([&]<int K>() {
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        if (K >= rule::required && g_.x[K] == nullptr) {
          x[i][K] = static_cast<double>(rule::absent[K]);
        } else {
          x[i][K] = is_flat_ ? x_[K][i * by_[K]] : row_.x[K][element_offset_of_axes<K>(g_, j_ + i * mine_.step)];
        }
      }
    });
  }
  __device__ void set(int i, double v) const {
    if (is_flat_) {
      out_[i * out_by_] = v;
    } else {
      to_[element_offset_of_axes<out_place>(g_, j_ + i * mine_.step)] = v;
    }
  }

 private:
  template <int Count>
  __device__ void advance() {
    for (int k = 0; k < N; ++k) x_[k] += Count * by_[k];
    if constexpr (rule::per_element) out_ += Count * out_by_;
  }

  const row_geometry& g_;
  const wide_row<Op>& row_;
  const share_of_row& mine_;
  std::int64_t j_ = 0;
  const double* x_[N];
  std::int64_t by_[N];
  double* to_ = nullptr;
  double* out_ = nullptr;
  std::int64_t out_by_ = 0;
  const bool is_flat_;
};

template <op_id Op>
__device__ double greatest_of(const row_geometry& g, const wide_row<Op>& row, const share_of_row& mine) {
  double top = -num::infinity;
  walk_of_share<Op, 1> walk(g, row, mine);
  walk.run([&]<int Count>() {
    double x[Count][1];
    walk.read(x);
    for (int i = 0; i < Count; ++i) to_greater(top, x[i][0]);
  });
  return top;
}
// kept: where the thread keeps its terms, `threads` of them apart.
template <op_id Op, bool Precise>
__device__ quick_sums<Op> sums_of(const row_geometry& g, const wide_row<Op>& row, const share_of_row& mine,
                                  [[maybe_unused]] double2* kept) {
  constexpr int summed = num::wide_rule<Op>::summed;
  quick_sums<Op> s;
  s.start(row.given);
  if constexpr (!num::wide_rule<Op>::has_sums) return s;
  walk_of_share<Op, summed> walk(g, row, mine);
  walk.run([&]<int Count>() {
    double x[Count][summed];
    num::dd term[Count];
    walk.read(x);
#pragma unroll
    for (int i = 0; i < Count; ++i) term[i] = num::quick_term<quick_rule<Op>, Precise>(row.given, x[i]);
#pragma unroll
    for (int i = 0; i < Count; ++i) s.add(term[i], x[i]);
    if constexpr (keeps_terms<Op, Precise>) {
#pragma unroll
      for (int i = 0; i < Count; ++i) kept[i * threads] = {term[i].hi, term[i].lo};
      kept += Count * threads;
    }
  });
  return s;
}

// Outputs that a thread decided.
struct quick_tally {
  std::int64_t proved = 0;
  std::int64_t decided = 0;
};
// An element that was left, of a precise term: rare, and large.
template <op_id Op>
struct operands_of_one {
  double x[num::elements_of<num::wide_rule<Op>>];
};
template <op_id Op>
__device__ __noinline__ num::decided64 precise_element(typename quick_rule<Op>::numbers n, num::wide_row_given o,
                                                       operands_of_one<Op> of) {
  using quick = quick_rule<Op>;
  return num::quick_element<quick, true>(n, num::quick_term<quick, true>(o, of.x), of.x);
}
// The outputs of a share, and, by the thread whose share begins with it, of the row.
template <op_id Op, bool Precise>
__device__ void set_outputs(const wide_geometry& g, const wide_row<Op>& row, const share_of_row& mine,
                            const quick_sums<Op>& s, [[maybe_unused]] const double2* kept, quick_tally& tally) {
  using quick = quick_rule<Op>;
  using rule = num::wide_rule<Op>;
  const auto n = num::quick_numbers<quick, Precise>(row.given, s);
  int left = 0;
  std::int64_t asked = 0;
  if constexpr (rule::per_element) {
    constexpr int elements = num::elements_of<rule>;
    walk_of_share<Op, elements> walk(g, row, mine);
    walk.run([&]<int Count>() {
      double x[Count][elements]{};
      num::decided64 v[Count];
      if constexpr (keeps_terms<Op, Precise>) {
        num::dd term[Count];
        bool needs = false;
#pragma unroll
        for (int i = 0; i < Count; ++i) {
          term[i] = {kept[i * threads].x, kept[i * threads].y};
          needs = needs || quick::needs_operands(term[i]);
        }
        if (needs) walk.read(x);
#pragma unroll
        for (int i = 0; i < Count; ++i) v[i] = num::quick_element<quick, false>(n, term[i], x[i]);
        kept += Count * threads;
      } else {
        walk.read(x);
#pragma unroll
        for (int i = 0; i < Count; ++i) {
          v[i] = num::quick_element<quick, false>(n, num::quick_term<quick, false>(row.given, x[i]), x[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        if constexpr (Precise && num::has_precise_terms<quick>) {
          if (!v[i].decided) {
            operands_of_one<Op> of{};
            for_each_of<elements>([&]<int K>() { of.x[K] = x[i][K]; });
            v[i] = precise_element<Op>(n, row.given, of);
          }
        }
        if (v[i].decided && n.is_known) {
          walk.set(i, v[i].value);
        } else {
          ++left;
        }
      }
    });
    if (mine.first < mine.end) asked = (mine.end - mine.first - 1) / mine.step + 1;
  }
  if constexpr (rule::results != 0) {
    if (mine.first == 0) {
      for_each_of<rule::results>([&]<int K>() {
        constexpr int output = wide_row<Op>::first_result + K;
        const std::int64_t j = rule::per_element ? g.length + K : K;
        if (!row.wants(g, j)) return;
        const num::decided64 v = quick::result(row.given, n, s, output);
        ++asked;
        if (v.decided) {
          row.set(g, j, v.value);
        } else {
          ++left;
        }
      });
    }
  }
  tally.decided += asked - left;
  g.quick.leave(row.index.row, left);
}
template <op_id Op>
__device__ void fill_outputs(const row_geometry& g, const wide_row<Op>& row, const share_of_row& mine, double value,
                             quick_tally& tally) {
  const auto fill = [&](std::int64_t j) {
    if (!row.wants(g, j)) return;
    row.set(g, j, value);
    ++tally.proved;
  };
  for (std::int64_t j = mine.first; num::wide_rule<Op>::per_element && j < mine.end; j += mine.step) fill(j);
  const std::int64_t elements = num::wide_rule<Op>::per_element ? g.length : 0;
  for (std::int64_t j = elements; mine.first == 0 && j < wide_row<Op>::outputs(g); ++j) fill(j);
}
__device__ void count_decided(counter* counters, quick_tally t) {
  __syncwarp();
  for (int distance = 16; distance >= 1; distance /= 2) {
    t.proved += from_lane(t.proved, distance);
    t.decided += from_lane(t.decided, distance);
  }
  if (lane_of_thread() != 0) return;
  count_elements(counters, tier::proved, t.proved);
  count_elements(counters, tier::binary64, t.decided);
}

template <op_id Op, bool Precise>
__global__ void __launch_bounds__(threads) quick_kernel(const __grid_constant__ wide_geometry g, counter* counters) {
  alignas(16) __shared__ std::byte scratch[warps * slot_bytes];
  extern __shared__ double2 terms[];
  double2* const kept = terms + threadIdx.x;
  const int team = g.quick.team;
  const std::int64_t at_once = threads / team;
  quick_tally tally;
  for (std::int64_t base = blockIdx.x * at_once; base < g.rows; base += gridDim.x * at_once) {
    const std::int64_t r = base + static_cast<int>(threadIdx.x) / team;
    const bool is_there = r < g.rows;
    wide_row<Op> row(g, is_there ? r : base);
    const share_of_row mine{static_cast<int>(threadIdx.x) & (team - 1), is_there ? g.length : 0, team};
    if constexpr (num::wide_rule<Op>::look == num::row_look::greatest) {
      row.given.top = greatest_of(g, row, mine);
      over_team(row.given.top, team, scratch, to_greater);
    }
    const num::row_class64 what = num::wide_rule<Op>::classify(row.given);
    quick_sums<Op> s{};
    if (!what.fills) s = sums_of<Op, Precise>(g, row, mine, kept);
    __syncwarp();
    over_team(s, team, scratch, [](auto& a, const auto& b) { a.merge(b); });
    if (is_there) {
      if (what.fills) {
        fill_outputs(g, row, mine, what.value, tally);
      } else {
        set_outputs<Op, Precise>(g, row, mine, s, kept, tally);
      }
    }
    __syncwarp();
  }
  count_decided(counters, tally);
}

// Parts of rows: their tops, their sums, and outputs.
enum class row_phase { top, sums, outputs };

template <op_id Op>
struct row_part {
  std::int64_t row;
  int part;
  share_of_row mine;

  __device__ explicit row_part(const wide_geometry& g) {
    const int parts = g.quick.parts;
    row = blockIdx.x / static_cast<unsigned>(parts);
    part = static_cast<int>(blockIdx.x - row * parts);
    const std::int64_t size = (g.length - 1) / parts + 1;
    mine = {part * size + threadIdx.x, min((part + 1) * size, g.length), threads};
  }
};
template <op_id Op, row_phase Phase>
__global__ void __launch_bounds__(threads)
    quick_part_kernel(const __grid_constant__ wide_geometry g, counter* counters) {
  alignas(16) __shared__ std::byte scratch[warps * slot_bytes];
  const row_part<Op> at(g);
  wide_row<Op> row(g, at.row);
  const std::int64_t first = at.row * g.quick.parts, own = first + at.part;
  auto* const tops = reinterpret_cast<double*>(g.quick.tops);
  auto* const sums = reinterpret_cast<quick_sums<Op>*>(g.quick.sums);
  if constexpr (Phase == row_phase::top) {
    double top = greatest_of(g, row, at.mine);
    over_team(top, threads, scratch, to_greater);
    if (threadIdx.x == 0) tops[own] = top;
  } else {
    if constexpr (num::wide_rule<Op>::look == num::row_look::greatest) {
      row.given.top = tops[first];
      for (int i = 1; i < g.quick.parts; ++i) to_greater(row.given.top, tops[first + i]);
    }
    const num::row_class64 what = num::wide_rule<Op>::classify(row.given);
    if constexpr (Phase == row_phase::sums) {
      if (what.fills) return;  // all of the block
      quick_sums<Op> s = sums_of<Op, true>(g, row, at.mine, nullptr);
      over_team(s, threads, scratch, [](auto& a, const auto& b) { a.merge(b); });
      if (threadIdx.x == 0) sums[own] = s;
    } else {
      quick_tally tally;
      if (what.fills) {
        fill_outputs(g, row, at.mine, what.value, tally);
      } else {
        quick_sums<Op> s = sums[first];
        for (int i = 1; i < g.quick.parts; ++i) s.merge(sums[first + i]);
        set_outputs<Op, true>(g, row, at.mine, s, nullptr, tally);
      }
      count_decided(counters, tally);
    }
  }
}

template <op_id Op, bool Precise>
void launch_rows(const wide_geometry& g, const job& j) {
  const std::size_t shared = keeps_terms<Op, Precise> ? most_terms * threads * sizeof(double2) : 0;
  const unsigned blocks = grid_for(j.device, ceil_div(g.rows, threads / g.quick.team), 16);
  launch_kernel<quick_kernel<Op, Precise>>(j, blocks, threads, shared, g, j.counters);
}
template <op_id Op>
void launch_parts(const wide_geometry& g, const job& j) {
  const std::int64_t blocks = g.rows * g.quick.parts;
  if constexpr (num::wide_rule<Op>::look == num::row_look::greatest) {
    launch_kernel<quick_part_kernel<Op, row_phase::top>>(j, blocks, threads, 0, g, j.counters);
  }
  launch_kernel<quick_part_kernel<Op, row_phase::sums>>(j, blocks, threads, 0, g, j.counters);
  launch_kernel<quick_part_kernel<Op, row_phase::outputs>>(j, blocks, threads, 0, g, j.counters);
}

constexpr std::int64_t part_elements = 8192;  // at least

}  // namespace

void take_quick_workspace(wide_geometry& g, const job& j, carver& space) {
  quick_work& q = g.quick;
  bool has_rule = false;
  ops::for_row_operation(g.op, [&]<class Op>() {
    has_rule = has_quick_rows<Op::id> && (!num::any_format<Op::id> || g.out_type[0] == dtype::f64);
  });
  if (!has_rule || j.first_tier > tier::binary64) return;
  space.take(q.count, 1);
  space.take(q.left, g.rows);
  space.take(q.rows, g.rows);
  q.team = 1;
  while (q.team < threads && std::int64_t{q.team} * most_terms < g.length) q.team *= 2;
  // Eight blocks for each multiprocessor, if rows are so few.
  const std::int64_t wanted = 8 * j.device.multiprocessors / std::max<std::int64_t>(1, g.rows);
  q.parts = static_cast<int>(std::clamp<std::int64_t>(g.length / part_elements, 1, std::max<std::int64_t>(1, wanted)));
  if (q.parts == 1) return;
  space.take(q.tops, g.rows * q.parts, sizeof(double));
  space.take(q.sums, g.rows * q.parts, slot_bytes);
}

void run_quick_rows(const wide_geometry& g, const job& j) {
  const auto clear = [&](unsigned* p, std::int64_t n) {
    check(cudaMemsetAsync(p, 0, sizeof(unsigned) * static_cast<std::size_t>(n), j.stream), "rows", "cudaMemsetAsync");
  };
  clear(g.quick.count, 1);
  clear(g.quick.left, g.rows);
  ops::for_row_operation(g.op, [&]<class Op>() {
    if constexpr (has_quick_rows<Op::id>) {
      if (g.quick.parts > 1) {
        launch_parts<Op::id>(g, j);
      } else if (num::has_precise_terms<quick_rule<Op::id>> && g.length > num::most_kept_terms) {
        if constexpr (num::has_precise_terms<quick_rule<Op::id>>) launch_rows<Op::id, true>(g, j);
      } else {
        launch_rows<Op::id, false>(g, j);
      }
    }
  });
}

}  // namespace repdl::cuda
