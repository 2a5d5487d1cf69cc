// The elementwise inner loops of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "librepdl/ops/shards.hpp"

namespace repdl::cpu {

struct map_kernels {
  // out[i] = op(in[0][i], ...) for i < n, all contiguous. `options`: of a loop that takes them. Where a rounding test
  // decides, open[i] says that it did not, and out must not be an input; otherwise out may be one.
  using loop = void (*)(const void* const* in, void* out, std::int64_t n, const double* options, bool* open);
  const ops::shard<loop>* const* shards;             // [ops::shard_count]
  loop convert[ops::dtype_count][ops::dtype_count];  // [from][to]
  // Results in binary64, of rows of ops::any_float_index, by the operands' format: those of binary64, and those to be rounded
  // to a narrower format (librepdl/ops/other_format.hpp).
  ops::loops<loop> to_nearest[ops::any_float_count][4];
  ops::loops<loop> to_odd[ops::any_float_count][4];

  const ops::loops<loop>& elementwise(ops::op_id op, dtype format) const {
    return shards[ops::shard_of(op)]->all[ops::row_in_shard(op)][static_cast<int>(format)];
  }
};
using map_shard = ops::shard<map_kernels::loop>;

}  // namespace repdl::cpu
