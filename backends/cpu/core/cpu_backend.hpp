// The CPU backend's entry in the list of backends.
#pragma once

#include "librepdl/dispatch/backend.hpp"

namespace repdl::cpu {

dispatch::backend cpu_backend() noexcept;

}  // namespace repdl::cpu
