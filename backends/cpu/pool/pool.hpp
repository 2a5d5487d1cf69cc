// The pooling kernels of one instruction set.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

// Rows [begin, end) of the output of one plane, at `depth` of a volume.
struct pool_rows {
  std::int64_t sample, channel, depth, begin, end;
  bool force_exact;
};

struct pool_counts {
  std::int64_t elements[4] = {};
};

struct pool_kernels {
  // Not noexcept, though nothing throws: see gemm_kernels::multiply.
  void (*run)(const plan::pool_plan&, const pool_rows&, pool_counts&);
};

}  // namespace repdl::cpu
