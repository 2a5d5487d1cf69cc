// How reductions (reduce.cu) are cut.
//
// An output's terms are cut into `chunks`; a work item is one chunk of one output.
//   rows      a team (some lanes of a warp, or a block) per item, for terms that lie side by side in memory
//   columns   a thread per item, for outputs that lie side by side; its terms are `chunks` apart, so that neighbouring
//             threads read neighbouring addresses even with few outputs
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/core/axes.hpp"
#include "backends/cuda/core/device.hpp"
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

// Terms that are added up at once, and terms that a thread has loaded before it does: as many bytes of each format.
inline constexpr int batch_terms = 16;
REPDL_HD constexpr int loaded_terms(std::size_t bytes, int inputs) {
  return bytes >= 4 ? batch_terms : 2 * batch_terms / inputs;
}

// For sums of numbers that are rounded, the repairing launches divide the work differently; few sums, not long ones, are
// joined and repaired by a block each, which reads them, too, where they are short; of few long ones each of the blocks that repair them joins
// all chunks for itself.
struct reduce_cut {
  reduce_geometry first;
  reduce_geometry repair;  // of such sums, if there are not few
  bool is_few;
  bool is_long;

  std::int64_t chunks() const {
    return first.chunks < repair.chunks ? repair.chunks : first.chunks;
  }  // of an output, at most
};
reduce_cut cut_reduction(const plan::reduce_plan& p, const properties& device);

// Blocks that take the items of a launch; resident: how many of them a multiprocessor has at once.
std::int64_t item_blocks(const reduce_geometry& g, int resident, const properties& device);
unsigned repair_grid(const reduce_geometry& g, const properties& device);

}  // namespace repdl::cuda
