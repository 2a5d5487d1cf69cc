// What the driver of reductions (reduce.cu) and its kernels (reduce_kernels.cuh), a translation unit for each format, both know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/core/axes.cuh"
#include "backends/cuda/core/launch.cuh"
#include "librepdl/num/platform.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cuda {

inline constexpr int reduce_threads = 256;
inline constexpr int repair_blocks = 3;  // on a multiprocessor

// How a launch divides the work.
struct reduce_geometry {
  const void* in[2];
  void* out;
  const void* bias;  // dot: one more term, or null
  std::int64_t outputs;
  std::int64_t length;
  std::int64_t chunks;
  std::int64_t chunk_length;  // rows
  int team;                   // rows: threads per item, a power of two up to 32, or 256
  int words;                  // repairs: of the bitmap, that a team looks at together, at most 32
  bool columns;
  bool small;               // outputs and length below 2^31
  bool packed;              // rows: 16 bytes per load
  bool side_by_side;        // rows: the same once a row's first terms are taken
  bool paired;              // columns of 16 bits: two neighbours per load
  strided_axes<4> kept;     // of two inputs, the output and the bias
  strided_axes<2> reduced;  // of two inputs
};

// The same for every thread of a launch.
struct reduce_parameters {
  std::int64_t length;  // terms per output
  std::int64_t height;  // double-double: additions on the longest path of a term
  bool is_mean;
  bool is_root;        // of a sum of products
  bool forced;         // the test of this tier must fail (context_options::first_tier)
  std::uint32_t flip;  // extremum: order_max or order_min
};

// Terms that are added up at once, and terms that a thread has loaded before it does: as many bytes of each format.
inline constexpr int batch_terms = 16;
REPDL_HD constexpr int loaded_terms(std::size_t bytes, int inputs) {
  return bytes >= 4 ? batch_terms : 2 * batch_terms / inputs;
}

// For sums, the repairing launches divide the work differently; few sums, not long ones, are joined and repaired by a
// block each, which reads them, too, where they are short.
struct reduction {
  ops::op_id op;
  bool magnitudes;
  reduce_parameters p;
  reduce_geometry first;
  reduce_geometry repair;
  bool is_few;
  // What the repairs know of outputs: a bit for each that is undecided; then, where they join chunks, how many are
  // there.
  std::uint32_t* marks;
  std::int64_t mark_words;
  std::byte* partials;
};

// Launches the kernels of terms of format T.
template <class T>
void launch_reduction(const reduction& r, const job& j);

}  // namespace repdl::cuda
