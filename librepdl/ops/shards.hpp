// Backends compile the elementwise loops in shards: so many consecutive rows of elementwise.def, a translation unit each. A
// row that is appended leaves the earlier shards as they are. backends/CMakeLists.txt writes the translation units.
#pragma once

#include "librepdl/ops/registry.hpp"

namespace repdl::ops {

inline constexpr int rows_per_shard = 4;
inline constexpr int shard_count = (elementwise_count + rows_per_shard - 1) / rows_per_shard;
constexpr int shard_of(op_id op) { return static_cast<int>(op) / rows_per_shard; }
constexpr int row_in_shard(op_id op) { return static_cast<int>(op) % rows_per_shard; }

}  // namespace repdl::ops
