// What the kernels of the softmax family share: where the rows are, what a row's numbers are, and the rules by which
// binary64 decides an element (librepdl/ops/rows.hpp).
#pragma once

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/order.hpp"
#include "librepdl/ops/rows.hpp"

namespace repdl::cuda {

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
  bool packed;    // four elements per access, in and out
  int team;       // threads per row
  std::int64_t chunks;
  num::row_bounds bounds;  // infinite: forced
  std::int64_t tracked_height;
  bool skip_dd;
  int last_tier_bits;
  // Workspace.
  unsigned long long* counted;   // rows that are not ignored
  open_list open;                // after binary64
  open_list left;                // after double-double
  std::uint32_t* open_elements;  // a bit per element, row-major
  loss_row* losses;              // is_total
  std::uint32_t* total_open;     // not 0: the total is not decided yet
};

REPDL_HD constexpr bool cuda_is_loss(op_id op) {
  return op == op_id::cross_entropy || op == op_id::cross_entropy_backward;
}
REPDL_HD constexpr bool cuda_is_tracked(op_id op) {
  return op == op_id::softmax_backward || op == op_id::log_softmax_backward;
}
REPDL_HD constexpr bool cuda_per_element(op_id op) { return op != op_id::logsumexp && op != op_id::cross_entropy; }
REPDL_HD constexpr bool cuda_is_separate(op_id op) { return op != op_id::softmax && op != op_id::logsumexp_backward; }

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

struct row_site {
  const float* a;
  const float* b;
  float* out;
  std::int64_t row;

  __device__ row_site(const row_geometry& g, std::int64_t r) : row(r) {
    a = g.in[0] + row_offset<0>(g.kept, r);
    b = g.in[1] == nullptr ? a : g.in[1] + row_offset<1>(g.kept, r);
    out = g.out + row_offset<2>(g.kept, r);
  }
  __device__ const float& x(const row_geometry& g, std::int64_t j) const { return a[row_offset<0>(g.reduced, j)]; }
  __device__ const float& y(const row_geometry& g, std::int64_t j) const { return b[row_offset<1>(g.reduced, j)]; }
  __device__ float& to(const row_geometry& g, std::int64_t j) const { return out[row_offset<2>(g.reduced, j)]; }
};

inline constexpr float row_inf = __builtin_inff();
__device__ inline float row_nan() { return num::float_of(num::canonical_nan_f32); }

// ---------------------------------------------------------------------------------------------------- a row's numbers

// What decides a row's elements. fills: every element is `fill`.
struct row_numbers {
  float max;
  float g;
  bool fills;
  bool ignored;
  float fill;
  double rest;
  double count;
  double n;  // the divisor
  double low, high;
  unsigned margin;
  std::int64_t target;
  num::tracked_sum<double> sum;
  double slack;
};

__device__ inline double divisor_of(const row_geometry& g) { return g.is_mean ? static_cast<double>(*g.counted) : 1.0; }

// Everything that the row's class and its greatest key decide.
template <op_id Op>
__device__ void classify(row_numbers& r, const row_geometry& g, std::int64_t row, std::int32_t key) {
  r.g = 1;
  r.n = 1;
  r.target = -1;
  r.ignored = false;
  r.fills = false;
  r.fill = 0;
  bool invalid = false;
  if constexpr (cuda_is_loss(Op)) {
    r.target = g.target[row_offset<4>(g.kept, row)];
    r.ignored = r.target == g.ignore_index;
    invalid = r.target < 0 || r.target >= g.length;
    if (Op == op_id::cross_entropy_backward) r.n = divisor_of(g);
  }
  if constexpr (Op == op_id::logsumexp_backward || Op == op_id::cross_entropy_backward) {
    r.g = g.row_g[row_offset<3>(g.kept, row)];
  }
  r.max = num::order_value(key, num::order_max);
  const bool bad = !(fabsf(r.max) < row_inf);
  if (r.ignored) {
    r.fills = true;
  } else if (bad || invalid) {
    r.fills = true;
    r.fill = Op == op_id::logsumexp ? r.max : row_nan();
  }
}

// rest and count are known: the ends of g / n / S, or R and its slack.
template <op_id Op>
__device__ void prepare(row_numbers& r, const row_geometry& g) {
  if constexpr (Op == op_id::log_softmax || !cuda_per_element(Op)) {
    const auto l = num::logarithm_of_row(r.count, r.rest, g.bounds.logarithm);
    r.low = l.value;
    r.high = g.bounds.logarithm < 1 ? l.slack : num::infinity;
  } else {
    // low: the factor of e^(x - M); high: the bound, infinite when forced.
    const double sum = r.count + r.rest;
    r.low = (Op == op_id::softmax ? 1.0 : static_cast<double>(r.g) / r.n) / sum;
    r.high = g.bounds.weight;
    r.margin = g.bounds.weight < 1 ? static_cast<unsigned>(g.bounds.weight * 0x1p53) + 2u : 0x10000000u;
  }
}

__device__ inline num::certified same_ends(num::float_ends<double> e) { return num::same_bits(e.low, e.high); }

// The gap cut at -600: a gap is +0 or negative, so its upper word orders as an unsigned number (-600 is 0xc082c000
// 00000000; what is left of the lower word moves the cut by less than 2^-11).
__device__ inline double cut_gap(float x, float max) {
  const double d = static_cast<double>(x) - static_cast<double>(max);
  const auto upper = static_cast<unsigned>(__double2hiint(d));
  return __hiloint2double(static_cast<int>(min(upper, 0xc082c000u)), __double2loint(d));
}
__device__ inline double weight_of(float x, float max) { return num::fast_exp(cut_gap(x, max)); }

// e f, whose relative error is `bound`, margin >= bound / 2^-53 + 1: the bits of binary64 below a binary32 number's
// last one, 29 of them, say how far the product is from a midpoint (2^28), in its own ulps; the bound is at most as
// many ulps as margin says. Products below 2^-125, forced ones (margin 2^28) and non-finite ones: both ends are
// rounded.
__device__ inline num::certified scaled_weight(double e, double f, double bound, unsigned margin) {
  const double p = e * f;
  const unsigned below = static_cast<unsigned>(__double2loint(p)) & 0x1fffffffu;
  const unsigned upper = static_cast<unsigned>(__double2hiint(p)) & 0x7fffffffu;
  const bool far = below - (0x10000000u - margin) > 2 * margin;
  const bool normal = upper - 0x38200000u < 0x47d00000u - 0x38200000u;  // 2^-125 to 2^126
  if (far && normal) return {static_cast<float>(p), true};
  if (normal) return {0.0f, false};
  return num::same_bits(static_cast<float>(p * (1 - bound)), static_cast<float>(p * (1 + bound)));
}

// cross_entropy_backward's target: g / n (p - 1) = -(g / n)(S - e^d) / S. S - e^d is rest, or at least S / 2: three
// times the bound, and 2^-43 for the gaps in a rest made of small weights (ops/rows.hpp).
__device__ inline num::certified target_value(const row_numbers& r, const row_geometry& g, float x) {
  const double w = x == -row_inf ? 0.0 : weight_of(x, r.max);
  const double z = x == r.max ? (r.count - 1) + r.rest : (r.count + r.rest) - w;
  if (z == 0) return {0.0f * r.g, true};
  const double v = -(z / (r.count + r.rest)) * (static_cast<double>(r.g) / r.n);
  if (v == 0) return {static_cast<float>(v), g.bounds.weight < 1};
  const double e = (4 * g.bounds.weight + 0x1p-43) * num::magnitude_of(v);
  return num::same_bits(static_cast<float>(v - e), static_cast<float>(v + e));
}

// g (p - t) / n for a g that is infinite or NaN, by the formula's tree: inf times a p, or p - 1, of exactly 0 is NaN.
__device__ inline float infinite_gradient(const row_numbers& r, float x, bool target) {
  const bool absent = x == -row_inf;
  const bool zero = target ? !absent && r.count == 1 && r.rest == 0 : absent;
  return num::canonical(zero ? row_nan() : target ? -r.g : r.g);
}

// One element; e = e^(x - max) cut at -600 where the operation has it.
template <op_id Op>
__device__ num::certified element_of(const row_numbers& r, const row_geometry& g, float x, float y, double e,
                                     std::int64_t j) {
  if constexpr (Op == op_id::log_softmax) {
    if (x == -row_inf) return {x, true};
    const num::certified quick =
        same_ends(num::quick_gap_ends(static_cast<double>(x), static_cast<double>(r.max), r.low, r.high));
    if (quick.decided) return quick;
    return same_ends(num::gap_ends(static_cast<double>(x), static_cast<double>(r.max), r.low, r.high));
  } else if constexpr (Op == op_id::softmax_backward) {
    if (!num::is_finite(r.sum.hi)) {
      const double v = static_cast<double>(y) * (static_cast<double>(x) - r.sum.hi);
      return {num::canonical(static_cast<float>(v)), true};
    }
    return same_ends(
        num::softmax_gradient(static_cast<double>(x), static_cast<double>(y), r.sum.hi, r.sum.lo, r.slack));
  } else if constexpr (Op == op_id::log_softmax_backward) {
    if (!(fabsf(y) < row_inf) || !num::is_finite(r.sum.hi)) {
      // e^y is NaN, infinite, 0, or some positive number: only its kind matters beside an infinite sum, and only the
      // sum's sign beside an infinite e^y.
      const double kind = y != y          ? num::double_of(0x7ff8000000000000)
                          : y == row_inf  ? num::infinity
                          : y == -row_inf ? 0.0
                                          : 1.0;
      const double total = r.sum.hi + r.sum.lo;
      if (num::is_finite(r.sum.hi) && y == row_inf) {
        const double error = r.sum.bound(g.tracked_height);
        const bool known = error == 0 || num::magnitude_of(total) > 2 * error;
        return {num::canonical(static_cast<float>(static_cast<double>(x) - num::infinity * total)), known};
      }
      const double by = num::is_finite(r.sum.hi) ? 0.0 : r.sum.hi;
      return {num::canonical(static_cast<float>((static_cast<double>(x) - kind * by) + 0.0)), true};
    }
    const double c = static_cast<double>(y);
    const double w = num::fast_exp(c > 600.0 ? 600.0 : c < -600.0 ? -600.0 : c);
    return same_ends(num::log_softmax_gradient(static_cast<double>(x), w, r.sum.hi, r.sum.lo, r.slack));
  } else {
    if constexpr (Op != op_id::softmax) {
      if (!(fabsf(r.g) < row_inf)) return {infinite_gradient(r, x, j == r.target), true};
      if (Op == op_id::cross_entropy_backward && j == r.target) return target_value(r, g, x);
    }
    return scaled_weight(e, r.low, r.high, r.margin);
  }
}

__device__ __noinline__ inline void mark_element(const row_geometry& g, std::int64_t row, std::int64_t j) {
  const std::int64_t index = row * g.length + j;
  atomicOr(g.open_elements + (index >> 5), 1u << static_cast<unsigned>(index & 31));
  g.open.add(row);
}

// The result of a row of logsumexp or cross_entropy, or its part of the total. Returns how many elements were decided.
template <op_id Op>
__device__ int finish_row(row_numbers& r, const row_geometry& g, const row_site& at) {
  if (r.fills) {
    if (g.is_total) {
      g.losses[at.row] = {r.ignored ? 0.0 : static_cast<double>(row_nan()), 0, 0, 0};
      return 0;
    }
    *at.out = r.fill;
    return 1;
  }
  const float x = Op == op_id::cross_entropy ? at.x(g, r.target) : -0.0f;
  if (Op == op_id::cross_entropy && x == -row_inf) {
    if (g.is_total) {
      g.losses[at.row] = {num::infinity, 0, 0, 0};
      return 0;
    }
    *at.out = row_inf;
    return 1;
  }
  prepare<Op>(r, g);
  if (g.is_total) {
    const num::dd gap = num::two_sum(static_cast<double>(r.max), -static_cast<double>(x));
    g.losses[at.row] = {gap.hi, gap.lo, r.low, r.high + (r.low == 0 ? 0.0 : 0x1p-690)};
    return 0;
  }
  const num::certified c = same_ends(num::gap_ends(static_cast<double>(r.max), static_cast<double>(x), -r.low, r.high));
  if (!c.decided) {
    g.open.add(at.row);
    return 0;
  }
  *at.out = c.value;
  return 1;
}

// Adds what every thread of the grid decided.
__device__ inline void count_rows_decided(counter* counters, int proved, int decided) {
  proved = __reduce_add_sync(full_warp, proved);
  decided = __reduce_add_sync(full_warp, decided);
  if (lane_of_thread() == 0) {
    count_elements(counters, tier::proved, proved);
    count_elements(counters, tier::binary64, decided);
  }
}

// Sums over a part of a row: rest as a double-double and count, or a tracked sum and its error.
struct part_sums {
  double hi;
  double lo;
  double third;

  __device__ void merge(const part_sums& o, bool tracked) {
    if (tracked) {
      num::tracked_sum<double> s{hi, lo, third};
      s.merge({o.hi, o.lo, o.third});
      *this = {s.hi, s.lo, s.error};
    } else {
      const num::dd s = num::add(num::dd{hi, lo}, num::dd{o.hi, o.lo});
      *this = {s.hi, s.lo, third + o.third};
    }
  }
  __device__ void merge_lanes(bool tracked) {
    for (int distance = 16; distance >= 1; distance /= 2) {
      merge({__shfl_xor_sync(full_warp, hi, distance), __shfl_xor_sync(full_warp, lo, distance),
             __shfl_xor_sync(full_warp, third, distance)},
            tracked);
    }
  }
};

// What rows_long.cu has in the workspace.
struct long_work {
  std::uint32_t* keys;
  part_sums* chunks;
  part_sums* rows;
};
// And rows_repair.cu.
struct repair_work {
  std::uint32_t* keys;  // by position in the list
  part_sums* chunks;
};
struct total_part;

// The parts of rows.cu, rows_long.cu, rows_repair.cu and rows_exact.cu: what they take of the workspace, and their
// launches.
void take_workspace(long_work& w, const row_geometry& g, carver& c);
void run_long_rows(const row_geometry& g, const long_work& w, const job& j);
void take_workspace(repair_work& w, const row_geometry& g, carver& c);
void repair_rows(const row_geometry& g, const repair_work& w, const job& j);
void take_workspace(total_part*& parts, carver& c);
void run_total(const row_geometry& g, total_part* parts, const job& j);
void take_exact_workspace(std::byte*& parts, const row_geometry& g, carver& c);
void decide_rows_exactly(const row_geometry& g, std::byte* parts, const job& j);

inline constexpr std::int64_t long_chunk = 8192;  // elements of a row per block, where a row has more

}  // namespace repdl::cuda
