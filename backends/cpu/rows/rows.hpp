// Rows of the softmax family and of norms: one table of functions per instruction set, which know how rows are read, summed up and
// written; the driver (rows.cpp) is compiled once and divides rows among threads. What is computed is said in
// librepdl/ops/rows/rule.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"
#include "librepdl/ops/rows/rule.hpp"
#include "librepdl/plan/plans.hpp"

namespace repdl::cpu {

// Elements of one row that are worked on at a time, and rows per tile (a multiple of column_step).
inline constexpr std::int64_t row_chunk = 2048;
inline constexpr int tile_columns = 256;
inline constexpr int column_step = 16;
// Up to this length a row's terms are kept from its sums for its outputs.
inline constexpr std::int64_t kept_length = 4096;
// From this number of elements on, outputs are written past the caches, which they would only go through.
inline constexpr std::int64_t streamed_length = std::int64_t{1} << 24;

// Chunks of a row that are listed.
inline constexpr int undecided_chunks = 1024;

// Offsets of a row in the operands, as a rule names them.
struct row_place {
  std::int64_t x[num::most_elements];
  std::int64_t out[plan::row_plan::most_outputs];
  std::int64_t g;
  std::int64_t target;
  std::int64_t top;
  std::int64_t former[2];
};

// What one thread works with; x, out and keep are carved from the workspace behind it.
struct row_worker {
  alignas(64) unsigned char row[1024];   // the kernels': of the row that a team works on, in the first worker,
  alignas(64) unsigned char part[1024];  // of one's part of it,
  alignas(64) unsigned char loss[1024];  // of the sum over all rows
  float* x[num::most_elements];          // of an operand that the call lacks: the number that stands for it
  float* out;
  double* keep;
  std::int64_t chunk[undecided_chunks];  // first elements of chunks with undecided outputs
  std::uint32_t undecided[row_chunk];
  // Elements for the last tier.
  float left[row_chunk][num::most_elements];
  float value[row_chunk];
  std::int64_t index[row_chunk];
  row_place place[tile_columns];
  tally count;
};

// A call.
struct row_job {
  const plan::row_plan* plan;
  std::int64_t n;                    // what results are divided by, but for
  num::exact_sum<float, 1> weights;  // the sum of the weights at targets,
  double total;                      // which is this, or n
  bool weighted;
  std::int64_t columns;  // rows per tile; 0: one row at a time
  int team;              // threads that share one row
  bool forced;           // binary64 decides nothing
  bool skips_wide;       // nor do wide numbers
  bool streams;          // outputs
  bool wide_loss;        // a loss over all rows: in wide numbers
  int last_tier_bits;
  unsigned char* workers;
  std::size_t worker_bytes;
  // The last tier: value[i] for the elements x[i] of a row, or for another output of it (rule.hpp, settle); how many are undecided.
  std::int64_t (*exact)(const row_job&, const row_place&, float top, const float (*x)[num::most_elements],
                        std::int64_t count, int what, float* value) noexcept;

  row_worker& worker(int i) const noexcept {
    return *reinterpret_cast<row_worker*>(workers + worker_bytes * static_cast<std::size_t>(i));
  }
};

// What is done with a row: all pieces of it, then what follows from them all.
enum class row_phase { look, sums, outputs, late, settle, done };

struct row_loss {
  float value;
  bool decided;
  bool special;  // known from NaN and infinities
};

struct row_kernels {
  // Rows [begin, end), by one worker.
  void (*rows)(const row_job&, row_worker&, std::int64_t begin, std::int64_t end) noexcept;
  // One row by a team: its first phase; the piece [begin, end) of a phase, beginning at a multiple of row_chunk, by a
  // worker; and, by one thread, what the pieces of the first `team` workers make, and the next phase.
  row_phase (*begin)(const row_job&, std::int64_t row) noexcept;
  void (*piece)(const row_job&, row_worker&, row_phase, std::int64_t begin, std::int64_t end) noexcept;
  row_phase (*join)(const row_job&, int team, row_phase) noexcept;
  // A loss over all rows, of what `workers` of them added up since start_loss.
  void (*start_loss)(const row_job&, int workers) noexcept;
  row_loss (*loss)(const row_job&, int workers) noexcept;
};

// The last tier (rows_exact.cpp): of a row's elements, and of the sum over all rows, which are finite.
std::int64_t settle_exactly(const row_job&, const row_place&, float top, const float (*x)[num::most_elements],
                            std::int64_t count, int what, float* value) noexcept;
row_loss loss_exactly(const row_job&) noexcept;

// Rows of binary64 (rows_wide.cpp).
void prepare_wide(const plan::row_plan&, const setting&, dispatch::task&) noexcept;

}  // namespace repdl::cpu
