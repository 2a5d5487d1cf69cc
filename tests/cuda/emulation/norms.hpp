// Of the row operations those that are emulated: kernels are instantiated for no others. Included before rows*.cu.
#pragma once

#include "librepdl/ops/structured.hpp"

namespace repdl::cuda::ops {

using namespace repdl::ops;

template <class F>
void for_row_operation(op_id id, F&& f) {
  if (id == op_id::layer_norm) f.template operator()<layer_norm>();
  if (id == op_id::batch_norm_running) f.template operator()<batch_norm_running>();
  if (id == op_id::layer_norm_backward) f.template operator()<layer_norm_backward>();
  if (id == op_id::layer_norm_weight_backward) f.template operator()<layer_norm_weight_backward>();
}

}  // namespace repdl::cuda::ops
