// The backends in this build.
#include "backends/cpu/core/cpu_backend.hpp"
#include "librepdl/dispatch/backend.hpp"
#if defined(REPDL_CUDA_IN_ONE)
#include "backends/cuda/core/cuda_backend.hpp"
#elif defined(REPDL_WITH_CUDA)
#include "backends/loaded/loaded_backend.hpp"
#endif

namespace repdl::dispatch {

std::span<const backend> backends() noexcept {
  static const backend all[] = {
    cpu::cpu_backend(),
#if defined(REPDL_CUDA_IN_ONE)
    cuda::cuda_backend(),
#elif defined(REPDL_WITH_CUDA)
    loaded::cuda_backend(),
#endif
  };
  return all;
}

}  // namespace repdl::dispatch
