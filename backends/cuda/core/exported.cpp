// librepdl_cuda.so exports the CUDA backend.
#include "backends/cuda/core/cuda_backend.hpp"
#include "backends/loaded/exported_backend.hpp"

const repdl::dispatch::backend& repdl::loaded::exported_backend() { return cuda::cuda_backend(); }
