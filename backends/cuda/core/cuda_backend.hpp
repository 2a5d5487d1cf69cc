// The CUDA backend: the same operations and the same bits as the CPU's, on NVIDIA GPUs of compute capability 8.0 and
// up.
#pragma once

#include "librepdl/dispatch/backend.hpp"

namespace repdl::cuda {

/// The entry for the list of backends (backends/backends.cpp). Needs no driver until a context is opened.
const dispatch::backend& cuda_backend();

}  // namespace repdl::cuda
