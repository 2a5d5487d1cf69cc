// The loops of sums to places of one instruction set. The driver (scatter.cpp) sorts the positions and shares out the work.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

inline constexpr std::int64_t scatter_block = 64;

// num::scatter_terms of each element of a block, the same for every instruction set.
struct scatter_sums {
  alignas(64) double hi[scatter_block];
  alignas(64) double lo[scatter_block];
  alignas(64) double error[scatter_block];
};

// The terms of one target that is one element, so far.
struct scatter_sum {
  double hi, lo, error;  // num::scatter_terms
  std::int64_t n;        // how many; -1: they are left undecided
};

// Positions whose terms, indices and targets lie in a row.
struct scatter_line {
  std::int64_t length;
  std::int64_t source, index, target;  // of the first one: two offsets, and one of its target's number
  std::int64_t source_step, index_step, target_step;
};

// Up to scatter_block inner elements that lie in a row.
struct scatter_columns {
  std::int64_t width;
  std::int64_t source, x, out;  // offsets of the first one
  std::int64_t source_step, x_step, out_step;
};

// A call whose positions are sorted: target t has those from ends[t - 1] to ends[t], whose slices lie at these offsets; ends[-1] = 0.
struct scatter_call {
  const plan::scatter_plan& p;
  const std::int64_t* ends;
  const std::int64_t* offsets;
  bool force_exact;
  std::int64_t longest;  // lists with more terms are left to `add` and `finish`
  std::int64_t* long_targets;
  std::int64_t* long_count;  // counted by all workers; null: they are not noted
};

struct scatter_kernels {
  struct loops {
    // Targets [first, last).
    void (*targets)(const scatter_call&, const scatter_columns&, std::int64_t first, std::int64_t last,
                    tally&) noexcept;
    // The sums of the slices from `begin` to `end`.
    void (*add)(const scatter_call&, const scatter_columns&, std::int64_t begin, std::int64_t end,
                scatter_sums& to) noexcept;
    // A target of which `parts` sums are known.
    void (*finish)(const scatter_call&, const scatter_columns&, std::int64_t target, scatter_sums* sums, int parts,
                   tally&) noexcept;
    // Where targets are single elements, without order. The terms of a line for targets [first, last) are added to the sums of all; false where
    // an index is out of range.
    bool (*add_line)(const plan::scatter_plan&, const scatter_line&, std::int64_t first, std::int64_t last,
                     scatter_sum*) noexcept;
    // Targets [first, last) of these sums; how many are left undecided.
    std::int64_t (*decide)(const scatter_call&, const scatter_columns&, std::int64_t first, std::int64_t last,
                           scatter_sum*, tally&) noexcept;
    // Those, once the positions are sorted.
    void (*decide_exactly)(const scatter_call&, const scatter_columns&, std::int64_t first, std::int64_t last,
                           const scatter_sum*, tally&) noexcept;
  };
  loops (*of)(dtype) noexcept;
};

}  // namespace repdl::cpu
