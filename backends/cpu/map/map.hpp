// The elementwise inner loops of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "librepdl/ops/loops.hpp"

namespace repdl::cpu {

// out[i] = op(in[0][i], ...) for i < n, all contiguous. `options`: of a loop that takes them. Where a rounding test decides,
// undecided[i] says that it did not, and out must not be an input; otherwise out may be one.
using map_loop = void (*)(const void* const* in, void* out, std::int64_t n, const double* options, bool* undecided);

// Decides element i, which a loop left undecided: in binary64, unless that is skipped, or with so many bits. Returns who decided.
enum class repaired_by { binary64, exact, nobody };
using map_repair = repaired_by (*)(const void* const* in, void* out, std::int64_t i, const double* options,
                                   bool skips_binary64, int last_tier_bits);

// Results in binary64, by the operands' format: those of binary64, and those to be rounded to a narrower format
// (librepdl/ops/elementwise/other_format.hpp).
struct wide_loops {
  ops::loops<map_loop> to_nearest[4];
  ops::loops<map_loop> to_odd[4];
};

// An elementwise operation, by format.
struct map_operation {
  ops::loops<map_loop> loops[ops::dtype_count];
  const wide_loops* wide;                 // null, but of operations whose results are of any format
  const ops::loops<map_repair>* repairs;  // [ops::dtype_count], in the first set, for all of them
};

struct map_kernels {
  const map_operation* const* operations;                // by op_id
  map_loop convert[ops::dtype_count][ops::dtype_count];  // [from][to]
};

}  // namespace repdl::cpu
