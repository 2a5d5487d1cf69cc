// The pooling kernels of one instruction set.
#pragma once

#include "backends/cpu/isa.hpp"

namespace repdl::cpu {

// Rows [begin, end) of the output of one plane.
struct pool_rows {
  std::int64_t sample, channel, begin, end;
  bool force_exact;
};

struct pool_counts {
  std::int64_t elements[4] = {};
};

struct pool_kernels {
  // Not noexcept, though nothing throws: see gemm_kernels::multiply.
  void (*run)(const plan::pool_plan&, const pool_rows&, pool_counts&);
};

// clang-format off
namespace baseline { extern const pool_kernels pool_table; }
namespace avx2 { extern const pool_kernels pool_table; }
namespace avx512 { extern const pool_kernels pool_table; }
namespace neon { extern const pool_kernels pool_table; }
// clang-format on

}  // namespace repdl::cpu
