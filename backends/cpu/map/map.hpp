// The elementwise inner loops of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "librepdl/ops/body.hpp"

namespace repdl::cpu {

struct map_kernels {
  // out[i] = op(in[0][i], ...) for i < n, all contiguous. `options`: of a loop that takes them. Where a rounding test
  // decides, open[i] says that it did not, and out must not be an input; otherwise out may be one.
  using loop = void (*)(const void* const* in, void* out, std::int64_t n, const double* options, bool* open);
  // For the options' defaults, and with options; null where there is none (or no such format).
  struct loops {
    loop plain;
    loop with_options;
  };
  loops elementwise[ops::elementwise_count][4];  // [op][format]
  loop convert[4][4];                            // [from][to], by dtype
};

}  // namespace repdl::cpu
