// The elementwise inner loops of one instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/core/families.hpp"
#include "librepdl/ops/registry.hpp"

namespace repdl::cpu {

struct map_kernels {
  // out[i] = op(in[0][i], ...) for i < n, all contiguous. out may be one of the inputs.
  using loop = void (*)(const void* const* in, void* out, std::int64_t n);
  loop elementwise[ops::elementwise_count];
  loop convert[4][4];  // [from][to], by dtype
};

}  // namespace repdl::cpu
