// Losses and their gradients with an output for each element: what loss.cu calls, in parts that are a translation unit each.
#pragma once

#include "backends/cuda/map/undecided_elements.hpp"
#include "librepdl/ops/losses/losses.hpp"

namespace repdl::cuda {

// backends/cuda/CMakeLists.txt writes as many; operation n belongs to part n mod loss_parts.
inline constexpr int loss_parts = 4;

// Launches the operations of a part, and nothing for others.
template <int Part>
void launch_each(const plan::loss_plan& plan, const ops::loss_constants& k, const job& j,
                 const undecided_elements& undecided);

}  // namespace repdl::cuda
