// How rows (rows.cu) are cut: which kernel has them, and how many threads, blocks and chunks a row is for.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/device.hpp"
#include "librepdl/ops/rows/rule.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

// Elements that a thread holds, of `held` operands.
constexpr int most_per_thread(int held) { return held > 2 ? 16 : 32; }
// The same where factors are of another format: no choice, as kernels take long to compile.
inline constexpr int per_thread_of_mixed = 16;
inline constexpr int row_threads = 256;  // of a block, but in the late tiers
inline constexpr int row_warps = row_threads / 32;

inline constexpr std::int64_t long_chunk = 8192;  // elements of a row per block, where a row has more than a cluster
inline constexpr std::int64_t tile_chunk = 2048;  // the same of rows side by side, at most
inline constexpr int tile_blocks = 2;             // of a multiprocessor, which has them at once
inline constexpr std::int64_t late_chunk = 4096;  // the same of the late tiers
// The same where there are few rows. Speed alone: a launch or two against what 128 threads take for so many elements.
inline constexpr std::int64_t most_of_few = 2048;
inline constexpr int late_threads = 128;  // of a block, in the late tiers and of few rows
// Elements of a row that a block reads twice: a thread adds up fewer than 2^16 (device_norms.cuh).
inline constexpr std::int64_t most_of_whole = std::int64_t{1} << 23;
inline constexpr std::int64_t most_in_fours = INT32_MAX - 4 * long_chunk;  // places, and some beyond, are of 32 bits

// Rows side by side are read in tiles. Lanes of a warp have `each` rows; where that is all rows, the others have more elements of the same.
inline constexpr int tile_ahead = 4;  // elements of a row that a thread has loaded before it adds them up
REPDL_HD constexpr int tile_lanes(std::int64_t rows, int each) {
  int lanes = 32;
  while (lanes > 1 && std::int64_t{lanes / 2} * each >= rows) lanes /= 2;
  return lanes;
}

// Places of operands: first those with elements, x[0], ..
inline constexpr int out_place = num::most_elements;
inline constexpr int g_place = out_place + plan::row_plan::most_outputs;
inline constexpr int target_place = g_place + 1;
inline constexpr int top_place = target_place + 1;
inline constexpr int former_place = top_place + 1;  // two

// How an operand has four elements of a row, one after the other, that a thread holds.
enum class quad_access {
  each,      // anywhere
  constant,  // as one number, which is the whole row's
  one,       // as one number
  four,      // side by side
  flat,      // side by side, as the whole row is
};
// How an operand has four rows side by side.
enum class row_access { each, one, four };

// What a row's operands beyond those of sums are: a number for each element, for four of a thread's, or for all, as absent ones are.
enum class other_operands { of_elements, of_fours, of_rows };

// Where a call's rows lie, and how they are cut.
struct row_layout {
  ops::op_id op;
  dtype type;                         // of elements, but for statistics and factors among them
  const void* x[num::most_elements];  // null: the call lacks it
  void* out[plan::row_plan::most_outputs];
  dtype out_type[plan::row_plan::most_outputs];
  const void* row_g;
  dtype g_type;
  dtype factor_type;  // `type`, or binary32
  const std::int64_t* target;
  const float* row_top;
  const float* row_former[2];  // copies, one for each row: results may be written where they were
  std::int64_t rows;
  std::int64_t length;
  strided_axes<former_place + 2> kept;
  strided_axes<out_place + 1> reduced;  // of x and the first output
  quad_access access[out_place + 1];    // likewise
  row_access across[out_place + 1];     // where rows side by side are read together
  int inner_bits;  // of elements along two axes, of 2^inner_bits and fewer than 2^31 in all; else -1
  other_operands others;
  bool aligned;  // rows of x[0] begin at multiples of four elements
  std::int64_t ignore_index;
  double eps;
  double momentum;
  bool biased;  // row_call's
  bool is_mean;
  bool is_weighted;       // means are divided by the sum of the weights at targets
  bool is_total;          // a loss, mean or sum
  std::int64_t chunk;     // elements of a row per block, of rows in chunks, and
  bool tiled;             // whether rows side by side are read together
  bool whole;             // whether a block has a row, not a chunk
  bool in_fours;          // whether four elements, or four such rows, are
  bool outputs_in_fours;  // of such rows: whether four are of all operands and the output
  int cluster;            // blocks per row, and
  int team;               // threads per row of a block
};

// Whether the operation has operands that are not as x[0] is: rows of such have several axes often.
template <class Rule>
inline constexpr bool has_more = num::elements_of<Rule> > Rule::required;
// Partial sums of a thread, so that additions do not wait for each other.
template <class Rule>
inline constexpr int chains_of = Rule::summed == 1 ? 4 : 1;
// Rows side by side are read together where what is found of a row is a sum.
template <class Rule>
inline constexpr bool is_tiled = Rule::look != num::row_look::greatest&& Rule::has_sums;
// Operands of which a thread holds its elements: those of sums. A third one that may be absent, often the same for all rows, is read
// again.
template <class Rule>
inline constexpr int held_of = Rule::summed > 2 && has_more<Rule> ? Rule::required : Rule::summed;

// What is asked of a rule.
struct row_facts {
  int element[num::most_elements];  // numbers of the call's inputs, as in num::row_inputs
  int elements;
  int g;
  int target;
  int top;
  int former[2];
  int summed;
  int held;
  int chains;
  int required;
  int formatted;
  bool has_factors;
  bool per_element;
  bool exact;
  bool looks;  // for the greatest element
  bool is_costly;
  bool is_tiled;
  bool is_whole;
  bool exact_totals;
};
// is_whole: whether long rows of binary32 may be a block's (rows.cuh).
template <class Rule>
constexpr row_facts row_facts_of(bool is_whole) {
  constexpr num::row_inputs in = Rule::inputs;
  row_facts f{};
  for (int k = 0; k < num::most_elements; ++k) f.element[k] = in.element[k];
  f.elements = in.elements();
  f.g = in.g;
  f.target = in.target;
  f.top = in.top;
  for (int k = 0; k < 2; ++k) f.former[k] = in.former[k];
  f.summed = Rule::summed;
  f.held = held_of<Rule>;
  f.chains = chains_of<Rule>;
  f.required = Rule::required;
  f.formatted = Rule::formatted;
  f.has_factors = Rule::has_factors;
  f.per_element = Rule::per_element;
  f.exact = Rule::exact_limbs != 0;
  f.looks = Rule::look == num::row_look::greatest;
  f.is_costly = Rule::is_costly;
  f.is_tiled = is_tiled<Rule>;
  f.is_whole = is_whole;
  f.exact_totals = Rule::exact_totals;
  return f;
}

enum class row_manner { registers, columns, chunks, few };

struct row_cut {
  row_manner how;
  int per_thread;         // registers: elements: 8, 16 or 32
  bool packed;            // registers: four elements of an operand are one access
  const void* former[2];  // null: the operation has none
  dtype former_type;
  unsigned levels;  // a bit for each late level that is to run
  // Additions on the longest path from an element to a sum, and to a tracked one: what the bounds are made of.
  std::int64_t additions;
  std::int64_t tracked;
};
// Sets all of g.
[[nodiscard]] row_cut cut_rows(row_layout& g, const plan::row_plan& p, const row_facts& rule, const properties& device,
                               tier first, int last_tier_bits);

// x of softmax or log_softmax whose results have another format: a copy in one that has all of its numbers. That is the results' format,
// where it has them, and else binary64, from which results are rounded (rows_wide.cu). An x of that format needs no copy.
struct widened_x {
  const void* from;
  dtype type, to;
  std::int64_t count;
  strided_axes<1> at;  // x, in the order of the copy, which is x's own, without gaps
  std::byte* copy;
};
// The call with that copy, which is not there yet: at an address that is a multiple of 256.
struct widened_rows {
  plan::row_plan plan;
  std::unique_ptr<widened_x> x;  // null: there is no copy
};
[[nodiscard]] widened_rows widen_x(const plan::row_plan& p);

// Blocks of a launch of rows in registers: whole clusters.
unsigned register_grid(const row_layout& g, const properties& device);

}  // namespace repdl::cuda
