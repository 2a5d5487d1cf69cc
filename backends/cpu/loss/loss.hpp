// The loops of losses of one instruction set: the first tier. The driver (loss.cpp) is compiled once and walks over strides and
// threads; it decides what the loops leave undecided.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::ops {
struct loss_constants;
}

namespace repdl::cpu {

inline constexpr std::int64_t loss_block = 1024;

// num::loss_sum, the same for every instruction set.
struct loss_partial {
  double hi, lo, magnitude, error;
};

struct loss_kernels {
  struct loops {
    // out[i] and whether it is left undecided, for n <= loss_block elements side by side.
    void (*each)(const void* const* in, void* out, std::int64_t n, const ops::loss_constants&,
                 bool* undecided) noexcept;
    // The sum of n <= loss_block elements. Null for gradients.
    loss_partial (*sum)(const void* const* in, std::int64_t n, const ops::loss_constants&) noexcept;
  };
  loops (*of)(ops::op_id, dtype) noexcept;
};

}  // namespace repdl::cpu
