#include "backends/cuda/product/conv_product.cuh"

template void repdl::cuda::conv::launch_tile<repdl::cuda::conv::square_tile, repdl::f16>(const problem&,
                                                                                         const schedule&,
                                                                                         const loading&, const job&);
template void repdl::cuda::conv::launch_tile<repdl::cuda::conv::square_tile, repdl::bf16>(const problem&,
                                                                                          const schedule&,
                                                                                          const loading&, const job&);
