// The elementwise inner loops of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "librepdl/ops/shards.hpp"

namespace repdl::cpu {

struct map_shard;

struct map_kernels {
  // out[i] = op(in[0][i], ...) for i < n, all contiguous. `options`: of a loop that takes them. Where a rounding test
  // decides, open[i] says that it did not, and out must not be an input; otherwise out may be one.
  using loop = void (*)(const void* const* in, void* out, std::int64_t n, const double* options, bool* open);
  // For the options' defaults, and with options; null where there is none (or no such format).
  struct loops {
    loop plain;
    loop with_options;
  };
  const map_shard* shards[ops::shard_count];
  loop convert[4][4];  // [from][to], by dtype

  const loops& elementwise(ops::op_id op, dtype format) const;
};

// The loops of ops::rows_per_shard rows of elementwise.def.
struct map_shard {
  map_kernels::loops loops[ops::rows_per_shard][4];  // [row][format]
};

inline const map_kernels::loops& map_kernels::elementwise(ops::op_id op, dtype format) const {
  return shards[ops::shard_of(op)]->loops[ops::row_in_shard(op)][static_cast<int>(format)];
}

}  // namespace repdl::cpu
