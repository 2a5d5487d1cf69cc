#include "backends/cuda/product/conv_product.cuh"

namespace repdl::cuda::conv {

void launch_wide(const problem& p, const schedule& s, const loading& l, const job& j) {
  launch_tile<wide_tile>(p, s, l, j);
}

}  // namespace repdl::cuda::conv
