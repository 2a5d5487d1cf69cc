// Rows of binary64 in the operands (librepdl/ops/rows/wide_rule.hpp): what the kernels of rows_quick.cu and rows_wide.cu share.
#pragma once

#include "backends/cuda/rows/rows_chunks.cuh"
#include "librepdl/ops/rows/wide_rule.hpp"

namespace repdl::cuda {

// Of a loss over all rows; zero before every call.
struct wide_status {
  unsigned blocks_done[3];  // of each level
  unsigned is_decided;
};
// The quick tier (rows_quick.cu), if there is one: what it leaves undecided.
struct quick_work {
  int team;         // threads of a row, 0: there is none,
  int parts;        // or blocks, if there are more
  std::byte* tops;  // of each part, and
  std::byte* sums;
  unsigned* count;     // of the rows in the list,
  unsigned* left;      // outputs of each row, both zero before every call, and
  std::int64_t* rows;  // the list

  __device__ void leave(std::int64_t row, int outputs) const {
    if (outputs != 0 && atomicAdd(left + row, static_cast<unsigned>(outputs)) == 0) rows[atomicAdd(count, 1u)] = row;
  }
};
struct wide_geometry : row_geometry {
  const double* former[2];     // where former statistics are; null: there are none
  num::wide_divisor* divisor;  // of losses
  wide_status* total;          // null: the call has a result for each row
  quick_work quick;
};

__host__ __device__ inline bool runs(const row_geometry& g, int level) {
  return (g.levels >> static_cast<unsigned>(level) & 1u) != 0;
}
__device__ inline double wide_max_or_nan(double a, double b) { return a != a || a > b ? a : b; }

// A row in the operands.
template <op_id Op>
struct wide_row {
  using rule = num::wide_rule<Op>;
  static constexpr int elements = num::elements_of<rule>;
  static constexpr bool per_element = rule::per_element;
  static constexpr int first_result = per_element ? 1 : 0;

  row_index index;
  const double* x[elements];
  num::wide_row_given given;

  __device__ wide_row(const wide_geometry& to, std::int64_t row)
      : index(to, row), given{to.length, to.eps, to.momentum, to.biased} {
    if constexpr (num::any_format<Op>) given.to = to.out_type[0];
    for_each_of<elements>([&]<int K>() { x[K] = static_cast<const double*>(to.x[K]) + row_offset<K>(to, index); });
    if constexpr (rule::inputs.g >= 0) given.g = static_cast<const double*>(to.row_g)[row_offset<g_place>(to, index)];
    if constexpr (rule::look == num::row_look::given) {
      given.top = static_cast<const double*>(static_cast<const void*>(to.row_top))[row_offset<top_place>(to, index)];
    } else if constexpr (rule::look == num::row_look::first) {
      given.top = to.length == 0 ? 0 : value<0>(to, 0);
    }
    for_each_of<num::formers_of<rule>>(
        [&]<int K>() { given.former[K] = to.former[K][row_offset<former_place + K>(to, index)]; });
    if constexpr (rule::inputs.target >= 0) {
      given.divisor = to.divisor;
      if (to.target == nullptr) return;
      given.target = to.target[row_offset<target_place>(to, index)];
      given.is_ignored = given.target == to.ignore_index;
      if (!given.has_target()) return;
      given.at_target = value<0>(to, given.target);
      given.weight = value<1>(to, given.target);
    }
  }
  // Outputs are numbered: those of elements, if there are any, then those of the row.
  __device__ static std::int64_t outputs(const row_geometry& to) {
    return (per_element ? to.length : 0) + rule::results;
  }
  // The output that it is one of, of all the elements' or of the row's.
  __device__ static int output_of(const row_geometry& to, std::int64_t j) {
    return !per_element ? static_cast<int>(j) : j < to.length ? 0 : static_cast<int>(j - to.length) + 1;
  }
  template <int K>
  __device__ double value(const row_geometry& to, std::int64_t j) const {
    if constexpr (K >= rule::required) {
      constexpr double absent = static_cast<double>(rule::absent[K]);
      if (to.x[K] == nullptr) return absent;
    }
    return x[K][element_offset<K>(to, j)];
  }
  // Whether there is such an output.
  __device__ bool wants(const row_geometry& to, std::int64_t j) const {
    bool is = output_of(to, j) < first_result;
    for_each_of<rule::results>(
        [&]<int K>() { is = is || (output_of(to, j) == first_result + K && to.out[first_result + K] != nullptr); });
    return is;
  }
  __device__ void set(const row_geometry& to, std::int64_t j, double v) const {
    const int what = output_of(to, j);
    if constexpr (per_element) {
      if (what == 0) {
        static_cast<double*>(to.out[0])[row_offset<out_place>(to, index) + element_offset<out_place>(to, j)] = v;
        return;
      }
    }
    for_each_of<rule::results>([&]<int K>() {
      constexpr int output = first_result + K;
      if (what == output) static_cast<double*>(to.out[output])[row_offset<out_place + output>(to, index)] = v;
    });
  }
  // The same of results of any format.
  __device__ void set_in_format(const row_geometry& to, std::int64_t j, double v) const {
    if constexpr (num::any_format<Op>) {
      if (given.to != dtype::f64) {
        const std::int64_t at = row_offset<out_place>(to, index) + element_offset<out_place>(to, j);
        return num::set_number_of(given.to, to.out[0], at, v);
      }
    }
    set(to, j, v);
  }
};

// The quick tier of all rows: what it takes of the workspace, if the operation has it and the call begins with it, and its launches.
void take_quick_workspace(wide_geometry& g, const job& j, carver& space);
void run_quick_rows(const wide_geometry& g, const job& j);

}  // namespace repdl::cuda
