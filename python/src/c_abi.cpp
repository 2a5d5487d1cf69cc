// The addresses of the C ABI, for librepdl.torch.
#include "c_abi.hpp"

#include "../librepdl/torch/src/c_abi.hpp"

namespace repdl::python {

std::uintptr_t c_abi_address() {
#define REPDL_ADDRESS(name) &::repdl_##name,
  static const repdl_torch::c_abi table{sizeof(repdl_torch::c_abi), REPDL_C_ABI(REPDL_ADDRESS)};
#undef REPDL_ADDRESS
  return reinterpret_cast<std::uintptr_t>(&table);
}

}  // namespace repdl::python
