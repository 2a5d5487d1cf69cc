#include "backends/cuda/product/conv_product.cuh"

template void repdl::cuda::conv::launch_tile<repdl::cuda::conv::wide_tile, float>(const problem&, const schedule&,
                                                                                  const loading&, const job&);
