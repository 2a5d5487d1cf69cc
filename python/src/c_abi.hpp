#pragma once

#include <cstdint>

namespace repdl::python {

// Of a repdl_torch::c_abi, which lives as long as the process.
std::uintptr_t c_abi_address();

}  // namespace repdl::python
