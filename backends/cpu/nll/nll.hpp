// The loops of nll_loss and its gradient of one instruction set. The driver (nll.cpp) shares out the elements of a plan's space.
#pragma once

#include "backends/cpu/core/families.hpp"
#include "backends/cpu/core/isa.hpp"

namespace repdl::cpu {

// num::nll_sum, the same for every instruction set.
struct nll_partial {
  struct sum {
    double hi, lo, magnitude;
  } products, weights;
};

struct nll_kernels {
  struct loops {
    // Results of the elements from `first` to `last`: losses, or gradients.
    void (*each)(const plan::nll_plan&, std::int64_t first, std::int64_t last) noexcept;
    // The sums of their terms.
    nll_partial (*sum)(const plan::nll_plan&, std::int64_t first, std::int64_t last) noexcept;
  };
  loops (*of)(ops::op_id, dtype) noexcept;
};

}  // namespace repdl::cpu
