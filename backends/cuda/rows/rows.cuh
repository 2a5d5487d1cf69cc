// What the kernels of rows share: where rows are, and how a rule (librepdl/ops/rows/rule.hpp) is given what it asks for.
#pragma once

#include <tuple>
#include <type_traits>

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/order.hpp"
#include "librepdl/ops/rows/softmax.hpp"

namespace repdl::cuda {

using num::row_rule;
using ops::op_id;

// (max - x_t) + R of a row: gap + low + r +- slack. gap = NaN, +inf: the row is. Ignored rows: all 0.
struct loss_row {
  double gap;
  double low;
  double r;
  double slack;
};

// Rows that a tier left open: a bit each, and a list in no particular order (nothing depends on it).
struct open_list {
  std::uint32_t* bits;
  unsigned long long* count;
  std::int64_t* rows;

  __device__ void add(std::int64_t row) const {
    const std::uint32_t bit = 1u << static_cast<unsigned>(row & 31);
    if ((atomicOr(bits + (row >> 5), bit) & bit) == 0) rows[atomicAdd(count, 1ull)] = row;
  }
};

// The arithmetics of the late tiers, in this order.
using late_arithmetics = std::tuple<num::wide<double>, num::ball<4>, num::ball<8>>;
template <op_id Op>
inline constexpr int late_levels = row_rule<Op>::exact_limbs != 0 ? 2 : 3;
// Of a rule that has an arithmetic in which everything is decided.
template <op_id Op, int Level>
using late_arithmetic =
    std::conditional_t<(Level > 0 && row_rule<Op>::exact_limbs != 0), num::ball<row_rule<Op>::exact_limbs>,
                       std::tuple_element_t<Level, late_arithmetics>>;
template <op_id Op, int Level>
using late_sums = typename row_rule<Op>::template late<late_arithmetic<Op, Level>>;

// Zero before every call.
struct row_status {
  unsigned long long counted;    // rows that are not ignored
  unsigned long long open[3];    // lengths of the lists
  std::uint32_t total_open;      // not 0: the total is not decided yet
  std::uint32_t blocks_done[4];  // of each launch for the total
};

struct row_geometry {
  op_id op;
  const float* in[2];
  float* out;
  const float* row_g;
  const std::int64_t* target;
  std::int64_t rows;
  std::int64_t length;
  strided_axes<5> kept;     // of in[0], in[1], the output, row_g, target
  strided_axes<3> reduced;  // of in[0], in[1], the output
  std::int64_t ignore_index;
  bool is_mean;
  bool is_total;  // cross_entropy, mean or sum
  int cluster;    // blocks per row, and
  int team;       // threads per row of a block
  num::row_bounds bounds;
  unsigned levels;  // a bit for each late level that is to run
  // Workspace. Of the lists there is one for what each tier leaves open, but the last; rows in chunks need more than the first.
  row_status* status;
  std::uint32_t* list_bits;
  std::int64_t* list_rows;
  std::byte* known;  // known_row of those in a list, at least
  loss_row* losses;  // is_total

  REPDL_HD std::int64_t list_words() const { return (rows + 31) / 32; }
  __device__ open_list list(int i) const {
    return {list_bits + i * list_words(), &status->open[i], list_rows + i * rows};
  }
};

// The offset of an operand at a row-major index. Out of line beyond one axis: the divisions are rare and large.
template <int Operand, class Axes>
__device__ __noinline__ std::int64_t row_offset_of_axes(const Axes& axes, std::int64_t index) {
  return axes.template offset<Operand>(index);
}
template <int Operand, class Axes>
__device__ std::int64_t row_offset(const Axes& axes, std::int64_t index) {
  if (axes.rank <= 1) return index * axes.stride[Operand][0];  // rank 0: index 0
  return row_offset_of_axes<Operand>(axes, index);
}

// A row as it is read, of the first operand; and with the others.
struct row_source {
  const float* a;
  std::int64_t row;

  __device__ row_source(const row_geometry& g, std::int64_t r) : a(g.in[0] + row_offset<0>(g.kept, r)), row(r) {}
  __device__ const float& x(const row_geometry& g, std::int64_t j) const { return a[row_offset<0>(g.reduced, j)]; }
};
struct row_site : row_source {
  const float* b;
  float* out;

  __device__ row_site(const row_geometry& g, std::int64_t r) : row_source(g, r) {
    b = g.in[1] == nullptr ? a : g.in[1] + row_offset<1>(g.kept, r);
    out = g.out + row_offset<2>(g.kept, r);
  }
  __device__ const float& y(const row_geometry& g, std::int64_t j) const { return b[row_offset<1>(g.reduced, j)]; }
  __device__ float& to(const row_geometry& g, std::int64_t j) const { return out[row_offset<2>(g.reduced, j)]; }
};

inline constexpr float row_inf = __builtin_inff();
__device__ inline float row_nan() { return num::float_of(num::canonical_nan_f32); }

// ---------------------------------------------------------------------------------------------------- a rule's questions

__device__ inline num::row_call call_of(const row_geometry& g) {
  return {g.bounds, g.length, g.is_mean ? static_cast<std::int64_t>(g.status->counted) : 1};
}
template <op_id Op>
__device__ num::row_operands operands_of(const row_geometry& g, const row_source& at) {
  num::row_operands o;
  if constexpr (row_rule<Op>::reads_g) o.g = g.row_g[row_offset<3>(g.kept, at.row)];
  if constexpr (row_rule<Op>::reads_target) {
    o.target = g.target[row_offset<4>(g.kept, at.row)];
    o.ignored = o.target == g.ignore_index;
    if (o.has_target(g.length)) o.at_target = at.x(g, o.target);
  }
  return o;
}
template <op_id Op>
__device__ float second_of(const row_geometry& g, const row_site& at, std::int64_t j) {
  if constexpr (row_rule<Op>::operands == 2) return at.y(g, j);
  return 0.0f;
}

// An output at the most that binary64 can do.
template <op_id Op>
__device__ num::verdict<double> element_of(const typename row_rule<Op>::template numbers<double>& n, float x, float y,
                                           double term) {
  using rule = row_rule<Op>;
  const auto a = static_cast<double>(x);
  const auto b = static_cast<double>(y);
  if constexpr (requires { rule::template careful<double>(n, a, b, term); }) {
    return rule::template careful<double>(n, a, b, term);
  } else {
    return rule::template element<double>(n, a, b, term);
  }
}
template <op_id Op>
__device__ double term_of(float x, float y, float max) {
  return row_rule<Op>::template term<double>(static_cast<double>(x), static_cast<double>(y), static_cast<double>(max));
}

// Adds an element to the sums; its term.
template <op_id Op, class Sums>
__device__ double add_element(Sums& s, float x, float y, float max) {
  const double term = term_of<Op>(x, y, max);
  s.add(static_cast<double>(x), static_cast<double>(max), term);
  return term;
}

// What one thread knows of a row.
template <op_id Op>
struct row_state {
  num::row_operands o;
  num::row_class c;
  float max;  // 0 where the row fills
};
template <op_id Op>
__device__ row_state<Op> state_of(const row_geometry& g, const num::row_call& call, const row_site& at, float top) {
  row_state<Op> s;
  s.o = operands_of<Op>(g, at);
  s.c = row_rule<Op>::classify(call, s.o, top);
  s.max = s.c.fills ? 0.0f : top;
  return s;
}
template <op_id Op, class Row>
__device__ auto numbers_of(const num::row_call& call, const row_state<Op>& s, const Row& row) {
  return row_rule<Op>::template prepare<double>(call, static_cast<double>(s.o.g), static_cast<double>(s.max), row);
}

// Of a part that is the whole, or of a total.
template <class Sums>
__device__ auto whole_of(const Sums& s) {
  if constexpr (requires { s.of_row(); }) {
    return s.of_row();
  } else {
    return s.template of_row<double>();
  }
}

// Output j, of x and y; the target's may be another.
template <op_id Op, class Numbers, class Row>
__device__ num::verdict<double> output_of(const num::row_call& call, const row_state<Op>& s, const Numbers& numbers,
                                          const Row& row, std::int64_t j, float x, float y) {
  using rule = row_rule<Op>;
  if constexpr (rule::has_exception) {
    if (j == s.o.target) {
      const num::certified c = rule::exception(call, s.o, static_cast<double>(s.max), row);
      return {c.value, !c.decided};
    }
  }
  const double term = rule::keeps_term ? term_of<Op>(x, y, s.max) : 0.0;
  const num::verdict<double> v =
      rule::template element<double>(numbers, static_cast<double>(x), static_cast<double>(y), term);
  return v.open ? element_of<Op>(numbers, x, y, term) : v;
}

// Elements decided by a thread.
struct row_tally {
  std::int64_t proved = 0;
  std::int64_t decided = 0;
  __device__ void add(bool fills, std::int64_t n) { (fills ? proved : decided) += n; }
};

// What the late tiers want to know of a row: what binary64 does.
template <op_id Op>
struct known_row {
  typename row_rule<Op>::total sums;
  float top;
};
template <op_id Op>
__device__ known_row<Op>& known_of(const row_geometry& g, std::int64_t row) {
  return reinterpret_cast<known_row<Op>*>(g.known)[row];
}
// By one thread or more.
template <op_id Op, class Sums>
__device__ __noinline__ void leave_open(const row_geometry& g, std::int64_t row, float top, const Sums& sums) {
  known_row<Op> k{{}, top};
  k.sums.join(sums);
  known_of<Op>(g, row) = k;
  g.list(0).add(row);
}

// The result of a row, or its part of the total, by one thread.
template <op_id Op, class Sums>
__device__ void finish_row(const row_geometry& g, const num::row_call& call, const row_site& at, const row_state<Op>& s,
                           const Sums& sums, row_tally& tally) {
  using rule = row_rule<Op>;
  if (s.c.fills) {
    if (g.is_total) {
      g.losses[at.row] = {s.o.ignored ? 0.0 : static_cast<double>(s.c.value), 0, 0, 0};
    } else {
      *at.out = s.c.value;
      ++tally.proved;
    }
    return;
  }
  const auto n = numbers_of<Op>(call, s, whole_of(sums));
  const float counterpart = rule::counterpart(s.o);
  if (g.is_total) {
    const num::loss_part p = num::loss_of_row(n, counterpart);
    g.losses[at.row] = {p.gap.hi, p.gap.lo, p.log, p.slack};
    return;
  }
  const num::verdict<double> v = rule::template result<double>(n, static_cast<double>(counterpart));
  if (v.open) return leave_open<Op>(g, at.row, s.max, sums);
  *at.out = v.value;
  ++tally.decided;
}

__device__ inline float max_or_nan(float a, float b) {
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
  return m;
}

template <class T>
__device__ T from_lane(const T& v, int distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  constexpr int words = sizeof(T) / 4;
  std::uint32_t w[words];
  memcpy(w, &v, sizeof(T));
  for (int i = 0; i < words; ++i) w[i] = __shfl_xor_sync(full_warp, w[i], distance);
  T out;
  memcpy(&out, w, sizeof(T));
  return out;
}

// Writes outputs first, first + step, ... < end of a row; whether one is open.
template <op_id Op, class Row>
__device__ bool write_elements(const row_geometry& g, const num::row_call& call, const row_site& at,
                               const row_state<Op>& s, const Row& row, std::int64_t first, std::int64_t step,
                               std::int64_t end, row_tally& tally) {
  if (s.c.fills) {
    for (std::int64_t j = first; j < end; j += step) {
      at.to(g, j) = s.c.value;
      ++tally.proved;
    }
    return false;
  }
  const auto numbers = numbers_of<Op>(call, s, row);
  bool open = false;
#pragma unroll 4
  for (std::int64_t j = first; j < end; j += step) {
    const num::verdict<double> v = output_of<Op>(call, s, numbers, row, j, at.x(g, j), second_of<Op>(g, at, j));
    at.to(g, j) = v.value;
    tally.decided += v.open ? 0 : 1;
    open |= v.open;
  }
  return open;
}

// Adds what every thread of the grid decided.
__device__ inline void count_rows_decided(counter* counters, row_tally t) {
  for (int distance = 16; distance >= 1; distance /= 2) {
    t.proved += from_lane(t.proved, distance);
    t.decided += from_lane(t.decided, distance);
  }
  if (lane_of_thread() == 0) {
    count_elements(counters, tier::proved, t.proved);
    count_elements(counters, tier::binary64, t.decided);
  }
}

// The parts of rows.cu, rows_long.cu, rows_late.cu and rows_total.cu: what they take of the workspace, and their launches.
struct long_work {
  std::uint32_t* keys;
  std::byte* chunks;  // a rule's totals
};
void take_workspace(long_work& w, const row_geometry& g, carver& c);
void run_long_rows(const row_geometry& g, const long_work& w, const job& j);
void take_late_workspace(std::byte*& sums, const row_geometry& g, carver& c);
void run_late_rows(const row_geometry& g, std::byte* sums, const job& j);
void take_total_workspace(std::byte*& parts, carver& c);
void run_total(const row_geometry& g, std::byte* parts, const job& j);

inline constexpr std::int64_t long_chunk = 8192;  // elements of a row per block, where a row has more than a cluster
inline constexpr std::int64_t late_chunk = 2048;  // the same of the late tiers

}  // namespace repdl::cuda
