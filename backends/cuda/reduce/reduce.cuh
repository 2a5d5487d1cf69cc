// What the driver of reductions (reduce.cu) and its kernels (reduce_kernels.cuh), a translation unit for each format, both know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/core/launch.cuh"
#include "backends/cuda/reduce/reduce_cut.hpp"
#include "librepdl/num/platform.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

// The same for every thread of a launch.
struct reduce_parameters {
  std::int64_t length;  // terms per output
  std::int64_t height;  // double-double: additions on the longest path of a term
  bool is_mean;
  bool is_root;        // of a sum of products, and of a spread
  double correction;   // of a spread
  double alpha, beta;  // of a scaled sum
  bool forced;         // the test of this tier must fail (context_options::first_tier)
  std::uint32_t flip;  // extremum: order_max or order_min
};

struct reduction {
  ops::op_id op;
  bool magnitudes;
  bool is_scaled;
  void* mean;  // of spreads; null: none
  plan::axes mean_stride;
  reduce_parameters p;
  reduce_geometry first;
  reduce_geometry repair;
  bool is_few;
  bool is_long;
  // What the repairs know of outputs: a bit for each that is undecided; then, where they join chunks, how many are
  // there.
  std::uint32_t* marks;
  std::int64_t mark_words;
  std::byte* partials;
  std::byte* next_partials;  // of long sums
};

// Results in another format than the operands' (reduce_other.cu).
void prepare_other(const plan::reduce_plan& p, const job& j, dispatch::task& t);

// Launches the kernels of terms of type T.
template <class T>
void launch_reduction(const reduction& r, const job& j);

}  // namespace repdl::cuda
